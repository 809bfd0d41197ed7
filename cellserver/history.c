#include "cellserver/history.h"

#include "cellserver/internal.h"

#include <stdlib.h>

void history_open(struct history_side *side, uint64_t now_us)
{
    side->ring = calloc(HISTORY_RING, sizeof *side->ring);
    CHECK(side->ring != NULL);
    side->from_us = now_us;
}

void history_close(struct history_side *side)
{
    free(side->ring);
}

void history_note(struct cellserver *cs, uint32_t entity, const struct trace_step *step)
{
    struct history_side *side = &cs->history;
    const struct entity *e = &cs->entities[entity];
    struct history_entry *entry = &side->ring[side->count++ % HISTORY_RING];
    *entry = (struct history_entry){.at_us = cs->now_us, .id = e->id.v, .step = *step};
    entry->step.version = e->version;
}

static enum trace_role role_of(const struct cellserver *cs, struct entity_id id)
{
    uint32_t at = entity_find(cs, id);
    if (at != NONE) return cs->entities[at].status == ENTITY_OWNED ? TRACE_OWNED : TRACE_GHOST;
    return replica_holds(cs, id) ? TRACE_STANDBY : TRACE_UNKNOWN;
}

void history_answer(const struct cellserver *cs, const struct trace *m, struct writer *w)
{
    const struct history_side *side = &cs->history;
    uint64_t kept = side->count < HISTORY_RING ? side->count : HISTORY_RING, first = side->count - kept;
    uint32_t found[TRACE_STEPS_MAX];
    struct trace_result r = {.id = m->id, .role = role_of(cs, m->id)};
    uint64_t oldest_us = kept == HISTORY_RING ? side->ring[first % HISTORY_RING].at_us : side->from_us;
    r.horizon_us = cs->now_us - oldest_us;
    for (uint64_t i = side->count; i > first && r.count < TRACE_STEPS_MAX; i--) {
        uint32_t at = (uint32_t)((i - 1) % HISTORY_RING);
        if (side->ring[at].id == m->id.v) found[r.count++] = at;
    }
    trace_result_begin(w, &r);
    for (uint32_t i = r.count; i-- > 0;) {
        struct trace_step step = side->ring[found[i]].step;
        step.age_us = cs->now_us - side->ring[found[i]].at_us;
        trace_result_step(w, &step);
    }
}
