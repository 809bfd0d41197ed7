#include "tests/sim/crowd.h"

#include "common/check.h"
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define STATE_BIG UINT32_C(0x80000000)

/* ---- states ---- */

static uint64_t state_key(uint64_t id, uint32_t life, uint32_t number)
{
    return dice_mix(id ^ dice_mix((uint64_t)life << 32 | number));
}

uint32_t state_fill(uint64_t id, uint32_t life, uint32_t number, uint8_t *bytes)
{
    struct dice d = {state_key(id, life, number)};
    uint64_t most = number & STATE_BIG ? LIMIT_STATE_BYTES - STATE_HEADER + 1 : 48;
    uint32_t size = STATE_HEADER + (uint32_t)dice_below(&d, most);
    memcpy(bytes, &id, 8);
    memcpy(bytes + 8, &life, 4);
    memcpy(bytes + 12, &number, 4);
    for (uint32_t i = STATE_HEADER; i < size; i += 8) {
        uint64_t word = dice_next(&d);
        memcpy(bytes + i, &word, size - i < 8 ? size - i : 8);
    }
    return size;
}

bool state_read(uint64_t id, const uint8_t *bytes, size_t size, uint32_t *life, uint32_t *number)
{
    uint8_t expected[LIMIT_STATE_BYTES];
    uint64_t named;
    if (size < STATE_HEADER) return false;
    memcpy(&named, bytes, 8);
    memcpy(life, bytes + 8, 4);
    memcpy(number, bytes + 12, 4);
    if (named != id) return false;
    return state_fill(id, *life, *number, expected) == size && memcmp(expected, bytes, size) == 0;
}

/* ---- history ---- */

static void note(struct sim *sim, struct walker *w)
{
    w->history[w->history_end++ % HISTORY] = (struct sample){sim->now_us, w->position, w->radius};
}

uint64_t walker_history_from(const struct walker *w, uint64_t from_us)
{
    uint64_t oldest = w->history_end > HISTORY ? w->history_end - HISTORY : 0;
    if (w->unsure_us != 0 && w->unsure_us < from_us) from_us = w->unsure_us;
    uint64_t low = oldest, high = w->history_end; /* the first sample after from_us lies in [low, high] */
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (w->history[middle % HISTORY].at_us > from_us)
            high = middle;
        else
            low = middle + 1;
    }
    return low > oldest ? low - 1 : oldest;
}

const struct sample *walker_sample(const struct walker *w, uint64_t at_us)
{
    return w->history_end == 0 ? NULL : walker_history(w, walker_history_from(w, at_us));
}

/* ---- acts ---- */

static struct gateway *gateway_of(struct sim *sim, uint32_t gateway)
{
    return sim_gateway(sim, gateway);
}

static void must(struct sim *sim, enum terrane_error error, const char *what, uint64_t id)
{
    if (error != TERRANE_ERR_OK)
        sim_violation(sim, "the API refuses to %s %llu: %s", what, (unsigned long long)id, terrane_error_name(error));
}

void crowd_enter(struct sim *sim, uint32_t walker, struct position p, uint32_t radius)
{
    struct walker *w = &sim->crowd.walkers[walker];
    CHECK(w->presence == ABSENT);
    uint8_t state[LIMIT_STATE_BYTES];
    w->life++;
    w->unsure_us = 0;
    w->presence = ENTERING;
    w->left_us = 0;
    w->position = p;
    w->radius = radius;
    w->kind = (uint32_t)(state_key(w->id, w->life, 1) % 50);
    w->flags = (uint32_t)(state_key(w->id, w->life, 2) % 1000);
    w->layer = (uint16_t)(state_key(w->id, w->life, 3) % sim->plan.layers);
    w->state_acked = ++w->state_number;
    note(sim, w);
    const struct world *world = &sim->plan.world;
    struct terrane_entity entity = {.id = w->id, .kind = w->kind, .flags = w->flags, .layer = w->layer};
    world_coordinates(world, p, &entity.x, &entity.y, &entity.z);
    entity.radius = radius * world_unit(world);
    entity.yaw = w->yaw * (2 * 3.14159265358979323846 / 256);
    entity.state = state;
    entity.state_size = state_fill(w->id, w->life, w->state_number, state);
    struct request like = {.gateway = w->gateway, .operation = TERRANE_ENTER, .walker = walker, .life = w->life};
    must(sim, gateway_enter(gateway_of(sim, w->gateway), &entity, &like.number), "enter", w->id);
    checker_expect(sim, &like);
}

void crowd_attach(struct sim *sim, uint32_t walker)
{
    struct walker *w = &sim->crowd.walkers[walker];
    CHECK(w->presence == ORPHANED);
    struct request like = {.gateway = w->gateway, .operation = TERRANE_ATTACH, .walker = walker, .life = w->life};
    w->presence = ATTACHING;
    must(sim, gateway_attach(gateway_of(sim, w->gateway), w->id, &like.number), "attach", w->id);
    checker_expect(sim, &like);
}

void crowd_renew(struct sim *sim, uint32_t walker)
{
    struct walker *w = &sim->crowd.walkers[walker];
    crowd_move(sim, walker, w->position);
    crowd_set_radius(sim, walker, w->radius);
    crowd_set_state(sim, walker, false);
}

void crowd_leave(struct sim *sim, uint32_t walker)
{
    struct walker *w = &sim->crowd.walkers[walker];
    CHECK(w->presence == PRESENT || w->presence == ENTERING);
    struct request like = {.gateway = w->gateway, .operation = TERRANE_LEAVE, .walker = walker, .life = w->life};
    w->presence = LEAVING;
    must(sim, gateway_leave(gateway_of(sim, w->gateway), w->id, &like.number), "leave", w->id);
    checker_expect(sim, &like);
}

void crowd_move(struct sim *sim, uint32_t walker, struct position p)
{
    struct walker *w = &sim->crowd.walkers[walker];
    const struct world *world = &sim->plan.world;
    double x, y, z;
    world_coordinates(world, p, &x, &y, &z);
    sim->crowd.moves++;
    if (plan_leaf_at(&sim->plan, w->position).v != plan_leaf_at(&sim->plan, p).v) {
        sim->crowd.crossings++;
        w->crossed_us = sim->now_us;
    }
    w->position = p;
    note(sim, w);
    w->yaw++;
    double yaw = w->yaw * (2 * 3.14159265358979323846 / 256);
    must(sim, gateway_move(gateway_of(sim, w->gateway), w->id, x, y, z, yaw), "move", w->id);
}

void crowd_set_state(struct sim *sim, uint32_t walker, bool big)
{
    struct walker *w = &sim->crowd.walkers[walker];
    uint8_t state[LIMIT_STATE_BYTES];
    w->state_number = ((w->state_number & ~STATE_BIG) + 1) | (big ? STATE_BIG : 0);
    uint32_t size = state_fill(w->id, w->life, w->state_number, state);
    struct request like = {.gateway = w->gateway,
                           .operation = TERRANE_SET_STATE,
                           .walker = walker,
                           .life = w->life,
                           .value = w->state_number};
    must(sim, gateway_set_state(gateway_of(sim, w->gateway), w->id, state, size, &like.number), "set the state of",
         w->id);
    checker_expect(sim, &like);
}

void crowd_set_radius(struct sim *sim, uint32_t walker, uint32_t radius)
{
    struct walker *w = &sim->crowd.walkers[walker];
    w->radius = radius;
    note(sim, w);
    struct request like = {.gateway = w->gateway, .operation = TERRANE_SET_RADIUS, .walker = walker, .life = w->life};
    double length = radius * world_unit(&sim->plan.world);
    must(sim, gateway_set_radius(gateway_of(sim, w->gateway), w->id, length, &like.number), "set the radius of", w->id);
    checker_expect(sim, &like);
}

void crowd_emit(struct sim *sim, uint32_t gateway, struct position p, uint16_t layer, uint32_t radius)
{
    double x, y, z;
    world_coordinates(&sim->plan.world, p, &x, &y, &z);
    struct emission *e = checker_emission(sim, p, layer, radius);
    struct request like = {.gateway = gateway, .operation = TERRANE_EMIT, .walker = WALKER_NONE};
    must(sim,
         gateway_emit(gateway_of(sim, gateway), e->code, x, y, z, layer, radius * world_unit(&sim->plan.world),
                      &e->code, sizeof e->code, &like.number),
         "emit", e->code);
    checker_expect(sim, &like);
}

void crowd_query(struct sim *sim, uint32_t gateway, struct position p, uint32_t radius, bool rectangle)
{
    const struct world *world = &sim->plan.world;
    struct gateway *g = gateway_of(sim, gateway);
    struct request like = {.gateway = gateway,
                           .operation = TERRANE_QUERY,
                           .walker = WALKER_NONE,
                           .place = p,
                           .radius = radius,
                           .rectangle = rectangle,
                           .exact = sim->crowd.still};
    double x, y, z, unit = world_unit(world), reach = radius * unit;
    world_coordinates(world, p, &x, &y, &z);
    enum terrane_error error =
        rectangle ? gateway_query_rectangle(g, x - reach, y - reach, x + reach, y + reach, -1, &like.number)
                  : gateway_query_circle(g, x, y, reach, -1, &like.number);
    must(sim, error, "query for", radius);
    checker_expect(sim, &like);
}

void crowd_find(struct sim *sim, uint32_t gateway, uint64_t id)
{
    struct request like = {
        .gateway = gateway, .operation = TERRANE_FIND, .walker = WALKER_NONE, .id = id, .exact = sim->crowd.still};
    must(sim, gateway_find(gateway_of(sim, gateway), id, &like.number), "find", id);
    checker_expect(sim, &like);
}

/* ---- a player's time ---- */

static uint32_t draw_radius(struct sim *sim)
{
    const struct plan *plan = &sim->plan;
    struct dice *d = &sim->crowd.dice;
    if (dice_chance(d, plan->radius_none_chance)) return 0;
    if (dice_chance(d, plan->radius_large_chance)) return plan->radius_large;
    return plan->radius_typical / 2 + (uint32_t)dice_below(d, plan->radius_typical / 2 + 1);
}

static void act(struct sim *sim, uint32_t walker)
{
    const struct plan *plan = &sim->plan;
    struct dice *d = &sim->crowd.dice;
    struct walker *w = &sim->crowd.walkers[walker];
    if (w->presence == ABSENT) {
        bool first = w->life == 0;
        if (!first && !dice_chance(d, plan->enter_chance)) return;
        /* The next life may come through another gateway. */
        uint32_t other = (uint32_t)dice_below(d, plan->gateways);
        const struct gateway *gateway = sim_gateway(sim, other);
        if (!first && dice_chance(d, plan->switch_chance) && gateway != NULL && gateway_is_ready(gateway))
            w->gateway = other;
        w->position = position_random(sim);
        gait_begin(sim, w, gait_draw(sim));
        crowd_enter(sim, walker, gait_next(sim, w), draw_radius(sim));
        sim_rearm(sim, sim->gateway_first + w->gateway);
        return;
    }
    if (w->presence == PRESENT && w->unsure_us != 0 && faults_window(sim, sim->now_us) > w->entered_us)
        w->unsure_us = 0;
    if (w->presence == ORPHANED && dice_chance(d, plan->attach_chance)) crowd_attach(sim, walker);
    if (w->presence == LEAVING || w->presence == ORPHANED || w->presence == ATTACHING) return;
    if (dice_chance(d, 0.003)) gait_begin(sim, w, gait_draw(sim));
    struct position p = gait_next(sim, w);
    bool moves = p.x != w->position.x || p.y != w->position.y || p.z != w->position.z;
    if (moves || dice_chance(d, 0.01)) crowd_move(sim, walker, p);
    if (dice_chance(d, plan->state_chance)) crowd_set_state(sim, walker, dice_chance(d, plan->big_state_chance));
    if (dice_chance(d, plan->radius_chance)) crowd_set_radius(sim, walker, draw_radius(sim));
    if (dice_chance(d, plan->leave_chance)) crowd_leave(sim, walker);
}

/* A place where something is going on. */
static struct position busy_place(struct sim *sim)
{
    const struct walker *w = &sim->crowd.walkers[dice_below(&sim->crowd.dice, sim->crowd.count)];
    return w->presence == PRESENT ? w->position : position_random(sim);
}

static uint32_t draw_reach(struct sim *sim)
{
    uint64_t cell = world_cell_side(&sim->plan.world);
    return (uint32_t)dice_below(&sim->crowd.dice, sim->plan.world.radius_max + cell);
}

static void act_gateway(struct sim *sim, uint32_t gateway)
{
    const struct plan *plan = &sim->plan;
    struct dice *d = &sim->crowd.dice;
    if (dice_chance(d, plan->emit_chance))
        crowd_emit(sim, gateway, busy_place(sim), (uint16_t)dice_below(d, plan->layers),
                   (uint32_t)dice_below(d, plan->world.radius_max));
    if (dice_chance(d, plan->query_chance))
        crowd_query(sim, gateway, busy_place(sim), draw_reach(sim), dice_chance(d, 0.5));
    if (dice_chance(d, plan->find_chance)) crowd_find(sim, gateway, 1 + dice_below(d, sim->crowd.count + 2));
}

void crowd_work(struct sim *sim, const struct happening *what)
{
    struct member *m = &sim->members[what->member];
    if (!m->listening || what->connection != m->incarnation) return;
    if (!sim->crowd.still && !sim->crowd.manual && gateway_is_ready(m->gateway)) {
        for (uint32_t i = 0; i < sim->crowd.count && !sim->violated; i++)
            if (sim->crowd.walkers[i].gateway == m->number) act(sim, i);
        if (sim->crowd.asks) act_gateway(sim, m->number);
        sim_rearm(sim, what->member);
    }
    uint64_t jitter_us = dice_below(&sim->crowd.dice, sim->plan.work_us / 10 + 1);
    queue_push(&sim->queue, (struct happening){.kind = HAPPEN_WORK,
                                               .at_us = sim->now_us + sim->plan.work_us + jitter_us,
                                               .member = what->member,
                                               .connection = what->connection});
}

void crowd_inside_callback(struct sim *sim, uint32_t walker)
{
    struct dice *d = &sim->crowd.dice;
    const struct walker *w = &sim->crowd.walkers[walker];
    if (sim->crowd.still || w->presence != PRESENT || !dice_chance(d, 0.02)) return;
    uint64_t ids[4];
    struct terrane_entity entity;
    switch (dice_below(d, 5)) {
    case 0: gateway_view(gateway_of(sim, w->gateway), w->id, ids, 4); break;
    case 1: gateway_get(gateway_of(sim, w->gateway), w->id, &entity); break;
    case 2: crowd_set_state(sim, walker, false); break;
    case 3: crowd_set_radius(sim, walker, draw_radius(sim)); break;
    default: crowd_leave(sim, walker); break;
    }
}

void crowd_ask(struct sim *sim)
{
    const struct plan *plan = &sim->plan;
    struct dice *d = &sim->crowd.dice;
    for (uint32_t g = 0; g < plan->gateways; g++) {
        for (int i = 0; i < 2; i++)
            crowd_emit(sim, g, busy_place(sim), (uint16_t)dice_below(d, plan->layers),
                       (uint32_t)dice_below(d, plan->world.radius_max));
        crowd_query(sim, g, busy_place(sim), draw_reach(sim), false);
        crowd_query(sim, g, busy_place(sim), draw_reach(sim), true);
        crowd_find(sim, g, 1 + dice_below(d, sim->crowd.count));
        crowd_find(sim, g, sim->crowd.count + 1 + dice_below(d, 100));
        sim_rearm(sim, sim->gateway_first + g);
    }
}

void crowd_open(struct sim *sim)
{
    struct crowd *c = &sim->crowd;
    CHECK(sim->plan.entities <= WALKERS);
    c->dice = dice_of(sim->plan.seed, 6);
    c->count = sim->plan.entities;
    c->walkers = calloc(c->count + 1u, sizeof *c->walkers);
    CHECK(c->walkers != NULL);
    c->hotspot = position_random(sim);
    for (uint32_t i = 0; i < c->count; i++) {
        struct walker *w = &c->walkers[i];
        w->id = i + 1;
        w->gateway = i % sim->plan.gateways;
        w->history = calloc(HISTORY, sizeof *w->history);
        CHECK(w->history != NULL);
    }
}

void crowd_close(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->crowd.count; i++) free(sim->crowd.walkers[i].history);
    free(sim->crowd.walkers);
    sim->crowd = (struct crowd){0};
}
