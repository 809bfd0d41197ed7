/* Requests and their answers; map events and who must have heard them. */
#include "tests/sim/checker.h"

#include "common/array.h"
#include "common/check.h"
#include "tests/sim/sim.h"

#include <stdlib.h>

#define STATE_ORDER UINT32_C(0x7fffffff)

struct request *checker_expect(struct sim *sim, const struct request *like)
{
    struct checker *k = &sim->checker;
    for (uint32_t i = 0; i < k->request_count; i++)
        if (k->requests[i].gateway == like->gateway && k->requests[i].number == like->number)
            sim_violation(sim, "gateway %u gives the request number %llu twice", like->gateway,
                          (unsigned long long)like->number);
    ARRAY_RESERVE(k->requests, k->request_room, (size_t)k->request_count + 1);
    struct request *r = &k->requests[k->request_count++];
    *r = *like;
    r->asked_us = sim->now_us;
    if (r->operation == TERRANE_QUERY || r->operation == TERRANE_FIND) {
        r->found = calloc(k->count + 1u, 1);
        CHECK(r->found != NULL);
    }
    sim_say(sim, "g%u request %llu operation %d walker %u", r->gateway, (unsigned long long)r->number,
            (int)r->operation, r->walker + 1);
    return r;
}

struct emission *checker_emission(struct sim *sim, struct position p, uint16_t layer, uint32_t radius)
{
    struct checker *k = &sim->checker;
    ARRAY_RESERVE(k->emissions, k->emission_room, (size_t)k->emission_count + 1);
    struct emission *e = &k->emissions[k->emission_count++];
    *e = (struct emission){.place = p, .radius = radius, .code = k->emission_count, .layer = layer};
    e->at_us = sim->now_us;
    e->exact = sim->crowd.still;
    e->told = calloc(k->count + 1u, sizeof *e->told);
    CHECK(e->told != NULL);
    return e;
}

static uint32_t find(const struct checker *k, uint32_t gateway, uint64_t number)
{
    for (uint32_t i = 0; i < k->request_count; i++)
        if (k->requests[i].gateway == gateway && k->requests[i].number == number) return i;
    return UINT32_MAX;
}

static uint64_t window_before(const struct sim *sim, uint64_t at_us)
{
    return faults_window(sim, at_us);
}

/* A query's answer against brute force; one that was asked while the world moved against what was possible. */
static void judge_query(struct sim *sim, const struct request *r)
{
    for (uint32_t i = 0; i < sim->checker.count; i++) {
        const struct walker *w = &sim->crowd.walkers[i];
        bool found = r->found[i] != 0;
        uint64_t from_us = r->exact ? sim->now_us : window_before(sim, r->asked_us);
        struct span span;
        span_of(sim, w, from_us, &span);
        if (found && (span.gone || !span_possibly_within(w, from_us, r->place, r->radius, r->rectangle)))
            sim_violation(sim, "a query finds %llu, which is not there", (unsigned long long)w->id);
        if (found || !span_always_within(&span, r->place, r->radius, r->rectangle)) continue;
        if (r->exact || (w->crossed_us < from_us && !faults_troubled(sim, from_us)))
            sim_violation(sim, "a query misses %llu, which is there", (unsigned long long)w->id);
        sim->checker.queries_short++;
    }
}

static void judge_find(struct sim *sim, const struct request *r, enum terrane_error error)
{
    uint32_t walker = checker_walker(sim, r->id);
    bool found = walker != WALKER_NONE && r->found[walker] != 0;
    if (error != TERRANE_ERR_OK && error != TERRANE_ERR_ENTITY_UNKNOWN)
        sim_violation(sim, "find request for %llu ends with %s", (unsigned long long)r->id, terrane_error_name(error));
    if (found != (error == TERRANE_ERR_OK))
        sim_violation(sim, "find request for %llu: found and answer disagree", (unsigned long long)r->id);
    if (walker == WALKER_NONE) return;
    const struct walker *w = &sim->crowd.walkers[walker];
    struct span span;
    uint64_t from_us = r->exact ? sim->now_us : window_before(sim, r->asked_us);
    span_of(sim, w, from_us, &span);
    if (found && span.gone) sim_violation(sim, "find finds %llu, which has left", (unsigned long long)r->id);
    if (found || !span.sure) return;
    if (r->exact || (w->crossed_us < from_us && !faults_troubled(sim, from_us)))
        sim_violation(sim, "find does not find %llu", (unsigned long long)r->id);
    sim->checker.queries_short++;
}

static void done_well(struct sim *sim, const struct request *r)
{
    if (r->walker == WALKER_NONE) return;
    struct walker *w = &sim->crowd.walkers[r->walker];
    if (r->operation == TERRANE_ENTER && w->presence == ENTERING) {
        w->presence = PRESENT;
        w->entered_us = sim->now_us;
    }
    if (r->operation == TERRANE_SET_STATE && r->life == w->life &&
        (r->value & STATE_ORDER) > (w->state_acked & STATE_ORDER))
        w->state_acked = r->value;
    if (r->operation == TERRANE_ATTACH && w->presence == ATTACHING) {
        w->presence = PRESENT;
        w->entered_us = sim->now_us;
        crowd_renew(sim, r->walker);
    }
    if (r->operation != TERRANE_LEAVE) return;
    w->presence = ABSENT;
    w->left_us = sim->now_us;
    for (uint32_t s = 0; s < sim->checker.count; s++)
        if (sim->checker.held[(size_t)r->walker * sim->checker.count + s] != 0)
            sim_violation(sim, "%llu has left, but its see of %llu had no unsee", (unsigned long long)w->id,
                          (unsigned long long)sim->crowd.walkers[s].id);
}

/* A command that the game took back by leaving may fail for that reason. */
static bool excused(const struct sim *sim, const struct request *r, enum terrane_error error)
{
    if (sim->plan.faults == FAULTS_BEYOND && error == TERRANE_ERR_REGION_UNOWNED) return true;
    if (r->operation == TERRANE_ATTACH && error == TERRANE_ERR_ENTITY_UNKNOWN) return true;
    if (r->walker == WALKER_NONE ||
        (r->operation != TERRANE_SET_STATE && r->operation != TERRANE_SET_RADIUS && r->operation != TERRANE_ENTER))
        return false;
    const struct walker *w = &sim->crowd.walkers[r->walker];
    if (sim->plan.faults == FAULTS_BEYOND && (error == TERRANE_ERR_ENTITY_UNKNOWN || error == TERRANE_ERR_ENTITY_LOST))
        return true;
    bool leaves = w->presence == LEAVING || w->presence == ABSENT || w->life != r->life;
    return leaves && (error == TERRANE_ERR_ENTITY_UNKNOWN || error == TERRANE_ERR_CLOSED);
}

void requests_done(struct sim *sim, uint32_t gateway, uint64_t number, enum terrane_operation operation, uint64_t id,
                   enum terrane_error error)
{
    struct checker *k = &sim->checker;
    uint32_t at = find(k, gateway, number);
    sim_note(sim, number, (uint64_t)error);
    sim_say(sim, "g%u done %llu: %s", gateway, (unsigned long long)number, terrane_error_name(error));
    if (at == UINT32_MAX) {
        sim_violation(sim, "the request %llu of gateway %u is done again, or never was", (unsigned long long)number,
                      gateway);
        return;
    }
    struct request r = k->requests[at];
    k->requests[at] = k->requests[--k->request_count];
    uint64_t named = r.walker != WALKER_NONE ? sim->crowd.walkers[r.walker].id : r.id;
    if (operation != r.operation || (named != 0 && id != named))
        sim_violation(sim, "the request %llu is done as operation %d of %llu", (unsigned long long)number,
                      (int)operation, (unsigned long long)id);
    if (r.operation == TERRANE_FIND) {
        judge_find(sim, &r, error);
    } else if (error == TERRANE_ERR_OK) {
        done_well(sim, &r);
        if (r.operation == TERRANE_QUERY) judge_query(sim, &r);
    } else if (excused(sim, &r, error)) {
        struct walker *w = r.walker == WALKER_NONE ? NULL : &sim->crowd.walkers[r.walker];
        if (r.operation == TERRANE_ATTACH && w->presence == ATTACHING) w->presence = ORPHANED;
        if (r.operation == TERRANE_ENTER && w != NULL && w->presence == ENTERING && w->life == r.life) {
            w->presence = ABSENT;
            w->left_us = sim->now_us;
        }
    } else {
        sim_violation(sim, "a request (operation %d, entity %llu) fails: %s", (int)operation, (unsigned long long)id,
                      terrane_error_name(error));
    }
    free(r.found);
}

void requests_forget(struct sim *sim, uint32_t gateway)
{
    struct checker *k = &sim->checker;
    for (uint32_t i = 0; i < k->request_count;) {
        if (k->requests[i].gateway != gateway) {
            i++;
            continue;
        }
        free(k->requests[i].found);
        k->requests[i] = k->requests[--k->request_count];
    }
}

void requests_found(struct sim *sim, uint32_t gateway, uint64_t number, const struct terrane_entity *entities,
                    size_t count)
{
    struct checker *k = &sim->checker;
    uint32_t at = find(k, gateway, number);
    if (at == UINT32_MAX || k->requests[at].found == NULL) {
        sim_violation(sim, "entities are found for request %llu, which asked for none", (unsigned long long)number);
        return;
    }
    struct request *r = &k->requests[at];
    for (size_t i = 0; i < count && !sim->violated; i++) {
        uint32_t walker = checker_walker(sim, entities[i].id);
        sim_note(sim, number, entities[i].id);
        if (walker == WALKER_NONE || (r->operation == TERRANE_FIND && entities[i].id != r->id)) {
            sim_violation(sim, "request %llu finds %llu, which it can't", (unsigned long long)number,
                          (unsigned long long)entities[i].id);
            return;
        }
        if (r->found[walker]++ != 0)
            sim_violation(sim, "request %llu finds %llu twice", (unsigned long long)number,
                          (unsigned long long)entities[i].id);
        struct position p;
        const struct walker *w = &sim->crowd.walkers[walker];
        enum terrane_error error = world_position(&sim->plan.world, entities[i].x, entities[i].y, entities[i].z, &p);
        if (error != TERRANE_ERR_OK) {
            sim_violation(sim, "a query finds %llu outside the world", (unsigned long long)w->id);
            return;
        }
        uint64_t from_us = r->exact ? sim->now_us : window_before(sim, r->asked_us);
        if (!span_possibly_within(w, from_us, p, 0, true))
            sim_violation(sim, "a query finds %llu at (%d, %d), where it has not been", (unsigned long long)w->id, p.x,
                          p.y);
    }
}

static bool observes(const struct sim *sim, const struct span *s)
{
    return sim->plan.world.view_mode == VIEW_BLOCK || s->radius_min > 0;
}

static void judge_emission(struct sim *sim, struct emission *e)
{
    e->judged = true;
    for (uint32_t i = 0; i < sim->checker.count && !sim->violated; i++) {
        const struct walker *w = &sim->crowd.walkers[i];
        struct span span;
        span_of(sim, w, e->exact ? sim->now_us : window_before(sim, e->at_us), &span);
        bool must = w->layer == e->layer && observes(sim, &span) &&
                    span_always_within(&span, e->place, e->radius, false) &&
                    (e->exact || !faults_troubled(sim, e->at_us));
        if (must && e->told[i] == 0)
            sim_violation(sim, "event %u is not told to %llu, which is within it", e->code, (unsigned long long)w->id);
        if (e->exact && !must && e->told[i] != 0)
            sim_violation(sim, "event %u is told to %llu, which is not within it", e->code, (unsigned long long)w->id);
    }
}

void emissions_look(struct sim *sim)
{
    struct checker *k = &sim->checker;
    while (k->emission_next < k->emission_count && !sim->violated) {
        struct emission *e = &k->emissions[k->emission_next];
        if (!e->exact && e->at_us + sim->plan.window_us > sim->now_us) return;
        if (e->exact && !e->judged) {
            if (e->at_us + 60000000 > sim->now_us) return; /* judged by the calm */
        }
        if (!e->judged) judge_emission(sim, e);
        k->emission_next++;
    }
}

void checker_calm_emissions(struct sim *sim)
{
    struct checker *k = &sim->checker;
    for (uint32_t i = k->emission_next; i < k->emission_count && !sim->violated; i++)
        if (k->emissions[i].exact && !k->emissions[i].judged) judge_emission(sim, &k->emissions[i]);
}
