/* The coordinator's numbers for scrapers, and whether it is ready. */
#include "common/metrics.h"
#include "coordinator/internal.h"

#include <stdio.h>

#define PREFIX "terrane_coordinator_"

struct row {
    const char *name, *labels, *help;
    uint64_t value;
};

static void put(struct metrics *m, enum metric_kind kind, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) metrics_put(m, kind, rows[i].name, rows[i].labels, rows[i].help, rows[i].value);
}

static void put_refused(const struct coordinator *c, struct metrics *m)
{
    char labels[64];
    for (uint32_t i = 0; i < ERRORS_MAX; i++) {
        if (c->refused[i] == 0) continue;
        snprintf(labels, sizeof labels, "error=\"%s\"", terrane_error_name((enum terrane_error)i));
        metrics_put(m, METRIC_COUNTER, PREFIX "refused_total", labels, "Messages refused, by error.", c->refused[i]);
    }
}

void coordinator_metrics(const struct coordinator *c, struct metrics *m)
{
    static const char servers[] = "Cell servers, by state; one may be in several.";
    static const char leaves[] = "Regions, by state; one may be in several.";
    struct coordinator_stats s;
    coordinator_stats(c, &s);
    const struct row now[] = {
        {PREFIX "leads", "", "Whether it leads: 1 of exactly one coordinator.", s.leads},
        {PREFIX "map_term", "", "Term of its map.", s.term},
        {PREFIX "map_revision", "", "Revision of its map within the term.", s.rev},
        {PREFIX "servers", "state=\"known\"", servers, s.servers},
        {PREFIX "servers", "state=\"silent\"", servers, s.silent},
        {PREFIX "servers", "state=\"lapsed\"", servers, s.lapsed},
        {PREFIX "servers", "state=\"draining\"", servers, s.draining},
        {PREFIX "gateways", "", "Gateway sessions.", s.gateways},
        {PREFIX "leaves", "state=\"all\"", leaves, s.leaves},
        {PREFIX "leaves", "state=\"unowned\"", leaves, s.unowned},
        {PREFIX "leaves", "state=\"unprotected\"", leaves, s.unprotected},
        {PREFIX "entities", "", "Entities in all regions, as the servers last said.", s.owned_entities},
    };
    const struct row ever[] = {
        {PREFIX "promotions_total", "", "Standbys that became primaries.", s.promotions},
        {PREFIX "store_writes_total", "", "Writes of the map that the store has confirmed.", s.stored},
        {PREFIX "store_failures_total", "", "Operations that the store refused or did not answer.", s.store_failures},
        {PREFIX "stalled_total", "", "Times that its lease of the leadership ran out.", s.stalled},
        {PREFIX "deposed_total", "", "Times that another coordinator took over.", s.deposed},
        {PREFIX "restored_total", "", "Times that it wrote the whole map again because the store had lost it.",
         s.restored},
    };
    put(m, METRIC_GAUGE, now, sizeof now / sizeof *now);
    put(m, METRIC_COUNTER, ever, sizeof ever / sizeof *ever);
    put_refused(c, m);
}

const char *coordinator_unready(const struct coordinator *c)
{
    struct coordinator_stats s;
    coordinator_stats(c, &s);
    bool another_leads = s.leader.v != 0 && !node_id_equal(s.leader, c->options.info.node);
    if (another_leads) return NULL;
    if (s.leads && s.unowned == s.leaves)
        return "no region has a server yet: it waits for --expect-servers cell servers";
    if (s.leads) return NULL;
    if (!s.ready) return "it has no map yet: it waits for the store";
    return "the store does not confirm its leadership: nothing can be decided";
}
