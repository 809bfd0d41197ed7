/* A session's numbers for scrapers, added to what other sessions of the process have put there. */
#include "common/metrics.h"
#include "gateway/core.h"

#define PREFIX "terrane_gateway_"

static void add(struct metrics *m, enum metric_kind kind, const char *name, const char *labels, const char *help,
                uint64_t value)
{
    metrics_add(m, metrics_register(m, kind, name, labels, help), value);
}

static void add_now(struct metrics *m, const char *name, const char *help, uint64_t value)
{
    add(m, METRIC_GAUGE, name, "", help, value);
}

static void add_count(struct metrics *m, const char *name, const char *help, uint64_t value)
{
    add(m, METRIC_COUNTER, name, "", help, value);
}

void gateway_metrics(const struct gateway *g, struct metrics *m)
{
    static const char refused[] = "Messages and commands that were not taken, by cause.";
    struct terrane_stats s;
    gateway_stats(g, &s);
    add_now(m, PREFIX "sessions", "Sessions of this process.", 1);
    add_now(m, PREFIX "sessions_ready", "Sessions that know the world and its map.", gateway_is_ready(g));
    add_now(m, PREFIX "entities", "Entities of this process's sessions.", s.own);
    add_now(m, PREFIX "seen_pairs", "Pairs of observer and subject that the game has been told of.", s.seen_pairs);
    add_now(m, PREFIX "servers", "Cell servers that are connected, by session.", s.servers);
    add_now(m, PREFIX "leaves_watched", "Regions whose streams are followed, by session.", s.leaves_watched);
    add_now(m, PREFIX "stream_gaps_open", "Streams that wait for a snapshot.", s.gaps_open);
    add_count(m, PREFIX "moves_total", "Moves sent.", s.moves_sent);
    add_count(m, PREFIX "moves_repeated_total", "Moves sent again after a loss.", s.moves_repeated);
    add_count(m, PREFIX "handoffs_total", "Times that an entity of this process changed its server.", s.handoffs);
    add_count(m, PREFIX "frames_total", "Frames received.", s.frames);
    add_count(m, PREFIX "frame_bytes_total", "Bytes of frames received.", s.frame_bytes);
    add_count(m, PREFIX "frame_moves_total", "Moves in frames received.", s.frame_moves);
    add_count(m, PREFIX "stream_gaps_total", "Gaps seen in streams.", s.gaps);
    add_count(m, PREFIX "stream_gaps_repaired_total", "Gaps that a snapshot has repaired.", s.gaps_repaired);
    add_count(m, PREFIX "sure_repeated_total", "Messages of the sure lane that were sent again.", s.sure_repeated);
    add(m, METRIC_COUNTER, PREFIX "refused_total", "cause=\"malformed\"", refused, s.malformed);
    add(m, METRIC_COUNTER, PREFIX "refused_total", "cause=\"stale\"", refused, s.stale);
    add(m, METRIC_COUNTER, PREFIX "refused_total", "cause=\"dropped\"", refused, s.dropped);
}
