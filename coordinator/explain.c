/* Why things are as they are: the last decisions with the figures that caused them, and what the planner would do now.
 * A decision has a number that rises; whoever asks for those after the last one that it knows misses none, unless more
 * than EXPLAINED_MAX have come in between (then the numbers have a gap), or another coordinator leads. */
#include "coordinator/internal.h"
#include "proto/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_BYTES (900u << 10)

struct explained *explain_add(struct coordinator *c, const char *kind, struct quadkey leaf, const char *why)
{
    if (c->explained == NULL) c->explained = calloc(EXPLAINED_MAX, sizeof *c->explained);
    CHECK(c->explained != NULL);
    struct explained *e = &c->explained[c->explained_count++ % EXPLAINED_MAX];
    *e = (struct explained){.at_us = c->now_us, .kind = kind, .leaf = leaf, .leaves = 1, .why = why};
    return e;
}

void explain_servers(struct explained *e, const char *from, const char *to)
{
    memcpy(e->from, from, strlen(from) + 1);
    memcpy(e->to, to, strlen(to) + 1);
}

static void put_figure(struct writer *w, const char *key, double value)
{
    json_key(w, key);
    if (isfinite(value))
        json_double(w, value);
    else
        json_null(w);
}

static void put_explained(struct coordinator *c, const struct explained *e)
{
    struct writer *w = &c->json;
    char key[LIMIT_QUADKEY_TEXT];
    quadkey_text(e->leaf, key);
    json_key(w, "event"), json_text(w, e->kind);
    json_key(w, "leaf"), json_text(w, key);
    json_key(w, "leaves"), json_uint(w, e->leaves);
    json_key(w, "from"), json_text(w, e->from);
    json_key(w, "to"), json_text(w, e->to);
    json_key(w, "entities"), json_uint(w, e->entities);
    put_figure(w, "load", e->load);
    put_figure(w, "mark", e->mark);
    put_figure(w, "from_part", e->from_part);
    put_figure(w, "to_part", e->to_part);
    json_key(w, "reason"), json_text(w, e->why);
}

static void put_events(struct coordinator *c, uint64_t since)
{
    struct writer *w = &c->json;
    uint64_t first = c->explained_count > EXPLAINED_MAX ? c->explained_count - EXPLAINED_MAX : 0;
    if (since > first) first = since < c->explained_count ? since : c->explained_count;
    json_key(w, "last"), json_uint(w, c->explained_count);
    json_key(w, "events"), json_open(w, '[');
    for (uint64_t i = first; i < c->explained_count && w->size < ANSWER_BYTES; i++) {
        const struct explained *e = &c->explained[i % EXPLAINED_MAX];
        json_open(w, '{');
        json_key(w, "number"), json_uint(w, i + 1);
        json_key(w, "ago_ms"), json_uint(w, (c->now_us - e->at_us) / 1000);
        put_explained(c, e);
        json_close(w, '}');
    }
    json_close(w, ']');
}

/* The same figures as an event's, for what has not been decided. */
static void put_decision(void *context, const struct explained *e)
{
    struct coordinator *c = context;
    if (c->json.size > ANSWER_BYTES) return;
    json_open(&c->json, '{');
    put_explained(c, e);
    json_close(&c->json, '}');
}

static void put_plan(struct coordinator *c)
{
    struct writer *w = &c->json;
    struct balance_view view = {0};
    json_key(w, "balance"), json_bool(w, c->options.balance && !c->options.no_standbys);
    json_key(w, "migrating"), json_uint(w, migrate_count(c));
    json_key(w, "decisions"), json_open(w, '[');
    bool known = rebalance_preview(c, &view, put_decision, c);
    json_close(w, ']');
    json_key(w, "known"), json_bool(w, known);
    put_figure(w, "load", view.total);
    put_figure(w, "mean", view.mean);
    put_figure(w, "worst", view.worst);
    put_figure(w, "least", view.least);
    json_key(w, "stretches"), json_uint(w, view.stretches);
}

void explain_write(struct coordinator *c, const struct explain *asked)
{
    struct writer *w = &c->json;
    writer_clear(w);
    json_open(w, '{');
    json_key(w, "name"), json_text(w, c->options.info.name);
    json_key(w, "node"), json_id(w, c->options.info.node.v);
    json_key(w, "term"), json_uint(w, c->term);
    json_key(w, "leads"), json_bool(w, c->ready && lead_is_fresh(c));
    if (asked->what == EXPLAIN_EVENTS)
        put_events(c, asked->since);
    else
        put_plan(c);
    json_close(w, '}');
    writer_raw(w, "", 1);
}

void explain_close(struct coordinator *c)
{
    free(c->explained);
}
