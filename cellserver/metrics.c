/* The cell server's numbers for scrapers, and whether it is ready. */
#include "cellserver/internal.h"

#include "common/metrics.h"

#define PREFIX "terrane_cellserver_"

struct row {
    const char *name, *labels, *help;
    uint64_t value;
};

static void put(struct metrics *m, enum metric_kind kind, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) metrics_put(m, kind, rows[i].name, rows[i].labels, rows[i].help, rows[i].value);
}

static void put_now(const struct cellserver *cs, const struct cellserver_stats *s, struct metrics *m)
{
    static const char entities[] = "Entities here now, by what they are to this server.";
    static const char leaves[] = "Regions here now, by this server's part in them.";
    const struct row rows[] = {
        {PREFIX "entities", "kind=\"owned\"", entities, s->owned},
        {PREFIX "entities", "kind=\"ghost\"", entities, s->ghosts},
        {PREFIX "entities", "kind=\"leaving\"", entities, s->leaving},
        {PREFIX "entities", "kind=\"pending\"", entities, s->pending},
        {PREFIX "entities", "kind=\"replica\"", entities, s->replicas},
        {PREFIX "leaves", "role=\"primary\"", leaves, s->leaves},
        {PREFIX "leaves", "role=\"standby\"", leaves, s->replica_leaves},
        {PREFIX "leaves_fenced", "", "Own regions that it may not serve now: no fresh lease.", s->fenced},
        {PREFIX "standby_waiting", "", "Answers that wait until a standby has them.", s->standby_waiting},
        {PREFIX "sessions", "", "Peers that it has a session with.", s->sessions},
        {PREFIX "stream_gaps_open", "", "Streams of others that wait for a snapshot.", s->gaps_open},
        {PREFIX "table_bytes", "", "Memory of the entity table and the grid.", s->memory_bytes},
        {PREFIX "map_term", "", "Term of the ownership map that it has.", cs->map.term},
        {PREFIX "map_revision", "", "Revision of that map within its term.", cs->map.rev},
    };
    put(m, METRIC_GAUGE, rows, sizeof rows / sizeof *rows);
}

static void put_work(const struct cellserver_stats *s, struct metrics *m)
{
    static const char commands[] = "What gateways asked and what was done.";
    static const char handoffs[] = "Entities that changed their region, by the way they went.";
    static const char frames[] = "Frames published, by kind.", frame_bytes[] = "Bytes of frames published, by kind.";
    const struct row rows[] = {
        {PREFIX "commands_total", "kind=\"move\"", commands, s->moves},
        {PREFIX "commands_total", "kind=\"enter\"", commands, s->enters},
        {PREFIX "commands_total", "kind=\"leave\"", commands, s->leaves_done},
        {PREFIX "handoffs_total", "way=\"out\"", handoffs, s->handoffs_out},
        {PREFIX "handoffs_total", "way=\"in\"", handoffs, s->handoffs_in},
        {PREFIX "handoffs_total", "way=\"local\"", handoffs, s->handoffs_local},
        {PREFIX "handoffs_total", "way=\"refused\"", handoffs, s->handoffs_refused},
        {PREFIX "frames_total", "kind=\"region\"", frames, s->frames},
        {PREFIX "frames_total", "kind=\"ghost\"", frames, s->ghost_frames},
        {PREFIX "frame_bytes_total", "kind=\"region\"", frame_bytes, s->frame_bytes},
        {PREFIX "frame_bytes_total", "kind=\"ghost\"", frame_bytes, s->ghost_bytes},
        {PREFIX "frame_moves_total", "", "Moves in region frames.", s->frame_moves},
        {PREFIX "view_changes_total", "", "Sees and unsees told to gateways.", s->view_changes},
        {PREFIX "views_whole_total", "", "Whole views told to gateways.", s->views_whole},
        {PREFIX "standby_bytes_total", "", "Bytes told to standbys.", s->standby_bytes},
    };
    put(m, METRIC_COUNTER, rows, sizeof rows / sizeof *rows);
}

static void put_trouble(const struct cellserver_stats *s, struct metrics *m)
{
    static const char refused[] = "Commands and messages that were not done here, by cause.";
    const struct row rows[] = {
        {PREFIX "refused_total", "cause=\"not_owner\"", refused, s->not_owner},
        {PREFIX "refused_total", "cause=\"stale\"", refused, s->stale},
        {PREFIX "refused_total", "cause=\"malformed\"", refused, s->malformed},
        {PREFIX "refused_total", "cause=\"dropped\"", refused, s->dropped},
        {PREFIX "refused_total", "cause=\"rate\"", refused, s->refused_rate},
        {PREFIX "refused_total", "cause=\"entities\"", refused, s->refused_entities},
        {PREFIX "forwarded_total", "", "Commands passed on to an entity's new server.", s->forwarded},
        {PREFIX "move_packets_lost_total", "", "Packets of moves that were lost on the way here.", s->moves_lost},
        {PREFIX "views_dropped_total", "", "View changes dropped for a gateway that did not take them.",
         s->views_dropped},
        {PREFIX "stream_gaps_total", "", "Gaps seen in streams of others.", s->gaps},
        {PREFIX "stream_gaps_repaired_total", "", "Gaps that a snapshot has repaired.", s->gaps_repaired},
        {PREFIX "promotions_total", "", "Regions taken over from a primary.", s->promotions},
        {PREFIX "fences_total", "", "Times that an own region could not be served any more.", s->fences},
        {PREFIX "replicas_broken_total", "", "Standby copies that had to be asked for anew.", s->replicas_broken},
    };
    put(m, METRIC_COUNTER, rows, sizeof rows / sizeof *rows);
}

void cellserver_metrics(const struct cellserver *cs, struct metrics *m)
{
    struct cellserver_stats s;
    cellserver_stats(cs, &s);
    put_now(cs, &s, m);
    put_work(&s, m);
    put_trouble(&s, m);
}

const char *cellserver_unready(const struct cellserver *cs)
{
    if (cs->dismissed) return "the coordinator has declared this process dead";
    if (cs->closing_us != 0) return "it is being stopped";
    if (!cs->has_world) return "no coordinator has answered yet";
    if (cs->map.rev == 0) return "it has no map yet: the coordinator waits for more servers, or for its store";
    if (cs->stats.fenced > 0)
        return "neither the coordinator nor a standby has answered for a lease: it serves nothing";
    return NULL;
}
