/* The checker's frame: tables, callbacks of the gateways, what is looked at as time passes. */
#include "tests/sim/checker.h"

#include "common/array.h"
#include "common/check.h"
#include "tests/sim/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint32_t checker_walker(const struct sim *sim, uint64_t id)
{
    return id >= 1 && id <= sim->crowd.count ? (uint32_t)(id - 1) : WALKER_NONE;
}

static uint8_t *held(struct sim *sim, uint32_t observer, uint32_t subject)
{
    return &sim->checker.held[(size_t)observer * sim->checker.count + subject];
}

static uint64_t window_start(const struct sim *sim)
{
    return faults_window(sim, sim->now_us);
}

/* ---- callbacks ---- */

/* The observer of a callback at this gateway; WALKER_NONE after a violation. */
static uint32_t observer_of(struct checker_context *c, uint64_t id, const char *what)
{
    struct sim *sim = c->sim;
    uint32_t observer = checker_walker(sim, id);
    sim_note(sim, (uint64_t)what[0] << 8 | c->gateway, id);
    if (observer == WALKER_NONE || sim->crowd.walkers[observer].gateway != c->gateway) {
        sim_violation(sim, "gateway %u is told of a %s for %llu, which is not its own", c->gateway, what,
                      (unsigned long long)id);
        return WALKER_NONE;
    }
    if (sim->crowd.walkers[observer].presence == ABSENT || sim->crowd.walkers[observer].presence == ORPHANED) {
        sim_violation(sim, "%s for observer %llu, which has left", what, (unsigned long long)id);
        return WALKER_NONE;
    }
    return observer;
}

/* A subject as a callback gives it: its data must be of its life now, or of the one before if that is not long ago. */
static void judge_subject(struct sim *sim, uint32_t subject, const struct terrane_entity *e)
{
    const struct walker *w = &sim->crowd.walkers[subject];
    uint32_t life, number;
    if (!state_read(w->id, e->state, e->state_size, &life, &number)) {
        sim_violation(sim, "the state of %llu arrives changed (%zu bytes)", (unsigned long long)w->id, e->state_size);
        return;
    }
    if (life > w->life)
        sim_violation(sim, "%llu is seen in life %u, now it is life %u", (unsigned long long)w->id, life, w->life);
    if (life == w->life && (e->kind != w->kind || e->flags != w->flags || e->layer != w->layer))
        sim_violation(sim, "kind, flags or layer of %llu differ", (unsigned long long)w->id);
    struct position p;
    if (world_position(&sim->plan.world, e->x, e->y, e->z, &p) != TERRANE_ERR_OK) {
        sim_violation(sim, "%llu is seen outside the world", (unsigned long long)w->id);
        return;
    }
    for (uint64_t i = w->history_end, from = walker_history_from(w, window_start(sim)); i-- > from;) {
        struct position q = walker_history(w, i)->position;
        if (p.x == q.x && p.y == q.y && p.z == q.z) return;
    }
    sim_violation(sim, "%llu is seen at (%d, %d, %d), where it has not been lately", (unsigned long long)w->id, p.x,
                  p.y, p.z);
}

static uint32_t subject_of(struct sim *sim, uint32_t observer, uint64_t id, const char *what)
{
    uint32_t subject = checker_walker(sim, id);
    if (subject == WALKER_NONE || subject == observer) {
        sim_violation(sim, "%s of %llu by %llu: no such subject", what, (unsigned long long)id,
                      (unsigned long long)sim->crowd.walkers[observer].id);
        return WALKER_NONE;
    }
    return subject;
}

static void take_see(struct checker_context *c, uint64_t observer_id, const struct terrane_entity *e)
{
    struct sim *sim = c->sim;
    uint32_t observer = observer_of(c, observer_id, "see");
    if (observer == WALKER_NONE) return;
    uint32_t subject = subject_of(sim, observer, e->id, "see");
    if (subject == WALKER_NONE) return;
    sim->checker.sees++;
    sim_say(sim, "g%u see %llu %llu", c->gateway, (unsigned long long)observer_id, (unsigned long long)e->id);
    if (*held(sim, observer, subject) != 0)
        sim_violation(sim, "%llu sees %llu a second time without an unsee", (unsigned long long)observer_id,
                      (unsigned long long)e->id);
    *held(sim, observer, subject) = 1;
    judge_subject(sim, subject, e);
    const struct walker *o = &sim->crowd.walkers[observer], *s = &sim->crowd.walkers[subject];
    if (!view_possible(&sim->plan, o, s, window_start(sim)))
        sim_violation(sim,
                      "false see: %llu at (%d, %d, %d) with radius %u sees %llu at (%d, %d, %d), which was not in its "
                      "view in the last %.1f s",
                      (unsigned long long)observer_id, o->position.x, o->position.y, o->position.z, o->radius,
                      (unsigned long long)e->id, s->position.x, s->position.y, s->position.z,
                      (double)sim->plan.window_us / 1e6);
    if (sim->plan.callbacks_act) crowd_inside_callback(sim, observer);
}

static void on_see(void *context, uint64_t observer, const struct terrane_entity *subject)
{
    struct checker_context *c = context;
    if (plants_strike(c->sim, PLANT_SEE_LOST)) return;
    take_see(c, observer, subject);
    if (plants_strike(c->sim, PLANT_SEE_TWICE)) take_see(c, observer, subject);
}

/* Nothing may blink: not with a whole network, and not when servers die. */
static void judge_unsee(struct sim *sim, uint32_t observer, uint32_t subject)
{
    const struct walker *o = &sim->crowd.walkers[observer], *s = &sim->crowd.walkers[subject];
    struct span from, to;
    uint64_t from_us = window_start(sim);
    if (from_us == 0 || (sim->plan.faults != FAULTS_NONE && sim->plan.faults != FAULTS_DEATHS)) return;
    span_of(sim, o, from_us, &from);
    span_of(sim, s, from_us, &to);
    if (view_always(&sim->plan, &from, &to))
        sim_violation(sim, "blink: %llu loses %llu, in its view for %.1f s", (unsigned long long)o->id,
                      (unsigned long long)s->id, (double)(sim->now_us - from_us) / 1e6);
}

static void on_unsee(void *context, uint64_t observer_id, uint64_t subject_id)
{
    struct checker_context *c = context;
    struct sim *sim = c->sim;
    if (plants_strike(sim, PLANT_UNSEE_LOST)) return;
    uint32_t observer = observer_of(c, observer_id, "unsee");
    if (observer == WALKER_NONE) return;
    uint32_t subject = subject_of(sim, observer, subject_id, "unsee");
    if (subject == WALKER_NONE) return;
    sim->checker.unsees++;
    sim_say(sim, "g%u unsee %llu %llu", c->gateway, (unsigned long long)observer_id, (unsigned long long)subject_id);
    if (*held(sim, observer, subject) == 0)
        sim_violation(sim, "unsee of %llu by %llu without a see", (unsigned long long)subject_id,
                      (unsigned long long)observer_id);
    *held(sim, observer, subject) = 0;
    judge_unsee(sim, observer, subject);
    if (sim->plan.callbacks_act) crowd_inside_callback(sim, observer);
}

static void on_update(void *context, uint64_t observer_id, const struct terrane_entity *e, uint32_t changes)
{
    struct checker_context *c = context;
    struct sim *sim = c->sim;
    uint32_t observer = observer_of(c, observer_id, "update");
    if (observer == WALKER_NONE) return;
    uint32_t subject = subject_of(sim, observer, e->id, "update");
    if (subject == WALKER_NONE) return;
    sim->checker.updates++;
    sim_note(sim, changes, e->id);
    if (*held(sim, observer, subject) == 0)
        sim_violation(sim, "update of %llu for %llu, which does not see it", (unsigned long long)e->id,
                      (unsigned long long)observer_id);
    judge_subject(sim, subject, e);
}

static void take_event(struct checker_context *c, uint64_t observer_id, const struct terrane_event *event)
{
    struct sim *sim = c->sim;
    uint32_t observer = observer_of(c, observer_id, "event");
    if (observer == WALKER_NONE) return;
    sim->checker.events++;
    sim_say(sim, "g%u event %u for %llu", c->gateway, event->code, (unsigned long long)observer_id);
    if (event->code == 0 || event->code > sim->checker.emission_count) {
        sim_violation(sim, "event %u was never emitted", event->code);
        return;
    }
    struct emission *e = &sim->checker.emissions[event->code - 1];
    if (event->payload_size != sizeof e->code || memcmp(event->payload, &e->code, sizeof e->code) != 0)
        sim_violation(sim, "the payload of event %u arrives changed", event->code);
    if (e->told[observer] == sim->crowd.walkers[observer].life)
        sim_violation(sim, "event %u is told to %llu twice", event->code, (unsigned long long)observer_id);
    const struct walker *w = &sim->crowd.walkers[observer];
    e->told[observer] = w->life;
    uint64_t from_us = faults_window(sim, e->at_us);
    if (w->layer != e->layer || !span_possibly_within(w, from_us, e->place, e->radius, false))
        sim_violation(sim, "event %u is told to %llu, which was not near", event->code,
                      (unsigned long long)observer_id);
}

static void on_event(void *context, uint64_t observer, const struct terrane_event *event)
{
    struct checker_context *c = context;
    if (plants_strike(c->sim, PLANT_EVENT_LOST)) return;
    take_event(c, observer, event);
    if (plants_strike(c->sim, PLANT_EVENT_TWICE)) take_event(c, observer, event);
}

static void on_done(void *context, uint64_t request, enum terrane_operation operation, uint64_t id,
                    enum terrane_error error)
{
    struct checker_context *c = context;
    if (plants_strike(c->sim, PLANT_DONE_LOST)) return;
    requests_done(c->sim, c->gateway, request, operation, id, error);
    if (plants_strike(c->sim, PLANT_DONE_TWICE)) requests_done(c->sim, c->gateway, request, operation, id, error);
}

static void on_found(void *context, uint64_t request, const struct terrane_entity *entities, size_t count)
{
    struct checker_context *c = context;
    requests_found(c->sim, c->gateway, request, entities, count);
}

static void on_error(void *context, uint64_t id, enum terrane_error error, const char *text)
{
    struct checker_context *c = context;
    if (c->sim->plan.faults == FAULTS_BEYOND && error == TERRANE_ERR_ENTITY_LOST) {
        checker_lost(c->sim, c->gateway, id);
        return;
    }
    sim_violation(c->sim, "gateway %u reports an error for %llu: %s (%s)", c->gateway, (unsigned long long)id,
                  terrane_error_name(error), text != NULL ? text : "");
}

const struct terrane_callbacks checker_callbacks = {.see = on_see,
                                                    .unsee = on_unsee,
                                                    .update = on_update,
                                                    .event = on_event,
                                                    .done = on_done,
                                                    .found = on_found,
                                                    .error = on_error};

/* ---- deaths ---- */

/* A gateway's moves may be so old when they are applied: they wait for connections. */
#define UNSENT_US UINT64_C(5000000)

static void forget_views(struct sim *sim, uint32_t observer)
{
    memset(held(sim, observer, 0), 0, sim->checker.count);
}

void checker_gateway_gone(struct sim *sim, uint32_t gateway)
{
    requests_forget(sim, gateway);
    for (uint32_t i = 0; i < sim->crowd.count; i++) {
        struct walker *w = &sim->crowd.walkers[i];
        if (w->gateway != gateway || w->presence == ABSENT) continue;
        w->orphan_sure = w->presence == PRESENT;
        w->presence = ORPHANED;
        w->orphaned_us = sim->now_us;
        w->unlisted_us = 0;
        w->unsure_us = sim->now_us > UNSENT_US ? sim->now_us - UNSENT_US : 1;
        forget_views(sim, i);
        /* Its next incarnation may be told of an event that this one was told of. */
        for (uint32_t e = 0; e < sim->checker.emission_count; e++) sim->checker.emissions[e].told[i] = 0;
    }
}

void checker_lost(struct sim *sim, uint32_t gateway, uint64_t id)
{
    uint32_t walker = checker_walker(sim, id);
    sim_say(sim, "g%u %llu is lost", gateway, (unsigned long long)id);
    if (walker == WALKER_NONE || sim->crowd.walkers[walker].gateway != gateway) {
        sim_violation(sim, "gateway %u says that %llu is lost, which is not its own", gateway, (unsigned long long)id);
        return;
    }
    struct walker *w = &sim->crowd.walkers[walker];
    sim->checker.lost++;
    for (uint32_t s = 0; s < sim->checker.count; s++)
        if (*held(sim, walker, s) != 0)
            sim_violation(sim, "%llu is lost, but its see of %llu had no unsee", (unsigned long long)id,
                          (unsigned long long)sim->crowd.walkers[s].id);
    w->presence = ABSENT;
    w->left_us = sim->now_us;
}

/* ---- as time passes ---- */

/* Pairs that must be seen by now, and pairs that must not be seen any more. */
static void look_at_windows(struct sim *sim)
{
    struct checker *k = &sim->checker;
    uint64_t from_us = window_start(sim);
    /* In trouble a view may go wrong; it must be right a window after. */
    if (from_us == 0 || faults_troubled(sim, from_us)) return;
    for (uint32_t i = 0; i < k->count; i++) span_of(sim, &sim->crowd.walkers[i], from_us, &k->spans[i]);
    for (uint32_t o = 0; o < k->count && !sim->violated; o++) {
        for (uint32_t s = 0; s < k->count; s++) {
            if (s == o) continue;
            bool seen = *held(sim, o, s) != 0;
            if (!seen && view_always(&sim->plan, &k->spans[o], &k->spans[s]))
                sim_violation(sim, "missing: %llu does not see %llu, in its view for %.1f s",
                              (unsigned long long)sim->crowd.walkers[o].id,
                              (unsigned long long)sim->crowd.walkers[s].id, (double)sim->plan.window_us / 1e6);
            if (seen && view_never(&sim->plan, &k->spans[o], &k->spans[s]))
                sim_violation(sim, "stale: %llu still sees %llu, out of its view for %.1f s",
                              (unsigned long long)sim->crowd.walkers[o].id,
                              (unsigned long long)sim->crowd.walkers[s].id, (double)sim->plan.window_us / 1e6);
        }
    }
}

void checker_look(struct sim *sim)
{
    uint64_t look = sim->checker.looks++;
    census_look(sim, false);
    faults_look(sim);
    if (look % 10 == 0) census_leaves(sim);
    if (look % 15 == 0) look_at_windows(sim);
    if (look % 15 == 7) emissions_look(sim);
}

void checker_open(struct sim *sim)
{
    struct checker *k = &sim->checker;
    k->count = sim->crowd.count;
    CHECK(sim->plan.gateways <= GATEWAYS);
    for (uint32_t i = 0; i < GATEWAYS; i++) k->contexts[i] = (struct checker_context){sim, i};
    k->held = calloc((size_t)k->count * k->count + 1, 1);
    k->spans = calloc(k->count + 1u, sizeof *k->spans);
    k->owned = calloc(k->count + 1u, sizeof *k->owned);
    k->copies = calloc((size_t)sim->plan.servers * k->count + 1u, sizeof *k->copies);
    k->replied = calloc(k->count + 1u, 1);
    checker_leaves_open(sim);
    CHECK(k->held != NULL && k->spans != NULL && k->owned != NULL && k->copies != NULL && k->replied != NULL);
}

void checker_close(struct sim *sim)
{
    struct checker *k = &sim->checker;
    for (uint32_t i = 0; i < k->request_count; i++) free(k->requests[i].found);
    for (uint32_t i = 0; i < k->emission_count; i++) free(k->emissions[i].told);
    free(k->requests);
    free(k->emissions);
    free(k->held);
    free(k->spans);
    free(k->owned);
    free(k->copies);
    free(k->replied);
    free(k->claims);
    *k = (struct checker){0};
}
