#include "tests/sim/plan.h"

#include "common/check.h"
#include "tests/sim/dice.h"

#include <string.h>

#define ORPHAN_US UINT64_C(2000000) /* stream/replicas.h */

static void draw_world(struct plan *plan, struct dice *d)
{
    static const uint32_t rates[] = {10, 20, 20, 20, 30, 60};
    struct world *world = &plan->world;
    *world = world_default();
    world->cell_size = dice_chance(d, 0.7) ? 50.0 : 12.5 + (double)dice_below(d, 90);
    world->depth = (uint32_t)dice_between(d, 2, 5);
    world->resolution_bits = world->depth + (uint32_t)dice_between(d, 7, 13);
    double side = world->cell_size * (double)(1u << world->depth);
    world->origin_x = dice_chance(d, 0.5) ? 0 : -side * dice_fraction(d);
    world->origin_y = dice_chance(d, 0.5) ? 0 : -side * dice_fraction(d);
    world->view_mode = dice_chance(d, 0.25) ? VIEW_BLOCK : VIEW_RADIUS;
    world->edge = dice_chance(d, 0.5) ? WORLD_EDGE_REFUSE : WORLD_EDGE_CLAMP;
    uint32_t cell = world_cell_side(world);
    world->radius_max = cell + (uint32_t)dice_below(d, 2 * (uint64_t)cell);
    world->hysteresis = dice_chance(d, 0.4) ? 0 : 1 + (uint32_t)dice_below(d, cell / 4);
    world->handoff_hysteresis = dice_chance(d, 0.3) ? 0 : 1 + (uint32_t)dice_below(d, cell / 8);
    world->tick_hz = rates[dice_below(d, sizeof rates / sizeof *rates)];
    plan->layers = dice_chance(d, 0.75) ? 1 : 2 + (uint32_t)dice_below(d, 2);
    plan->z_spread = dice_chance(d, 0.6) ? 0 : (int32_t)cell;
    world->z_range = dice_chance(d, 0.5) ? UINT32_MAX : (uint32_t)dice_below(d, cell);
}

/* Splits random leaves of a whole world until there are about `want`, down to cells. */
static void draw_unequal_leaves(struct plan *plan, struct dice *d, uint32_t want)
{
    plan->leaves[0] = QUADKEY_ROOT;
    plan->leaf_count = 1;
    for (uint32_t tries = 0; tries < 400 && plan->leaf_count + 3 <= want; tries++) {
        uint32_t at = (uint32_t)dice_below(d, plan->leaf_count);
        struct quadkey leaf = plan->leaves[at];
        if (quadkey_depth(leaf) >= plan->world.depth) continue;
        plan->leaves[at] = quadkey_child(leaf, 0);
        for (uint32_t digit = 1; digit < 4; digit++) plan->leaves[plan->leaf_count++] = quadkey_child(leaf, digit);
    }
}

static void draw_members(struct plan *plan, struct dice *d, const struct plan_options *options)
{
    plan->servers = options->servers != 0 ? options->servers : 2 + (uint32_t)dice_below(d, 8);
    plan->gateways = 1 + (uint32_t)dice_below(d, 3);
    plan->entities = options->entities != 0 ? options->entities : 60 + (uint32_t)dice_below(d, 120);
    plan->feeds = 1 + (uint32_t)dice_below(d, 4);
    plan->storeless = dice_chance(d, 0.3);
    /* A third: as many servers as there are quarters, so that four of them meet in one point. */
    uint64_t layout = dice_below(d, 3);
    if (layout == 0 && options->servers == 0) {
        plan->servers = 4 + (uint32_t)dice_below(d, 2) * 4;
        plan->split_depth = plan->servers == 4 ? 1 : 2;
    } else if (layout == 1) {
        plan->split_depth = 1 + (uint32_t)dice_below(d, plan->world.depth > 3 ? 3 : plan->world.depth);
    } else {
        uint32_t least = plan->servers + 3;
        draw_unequal_leaves(plan, d, least + (uint32_t)dice_below(d, 30));
    }
}

static void draw_network(struct plan *plan, struct dice *d)
{
    static const uint64_t delays[] = {0, 1000, 5000, 20000, 60000, 150000};
    uint64_t slow = plan->faults == FAULTS_NONE ? 3 : sizeof delays / sizeof *delays;
    plan->delay_min_us = delays[dice_below(d, slow)];
    plan->delay_max_us = plan->delay_min_us + dice_below(d, plan->delay_min_us / 3 + 2000);
    plan->delay_jitter_us = dice_below(d, plan->delay_min_us / 4 + 1000);
    plan->tick_jitter_us = dice_below(d, 6000);
    plan->start_spread_us = dice_below(d, 1500000);
    if (plan->faults == FAULTS_NONE || plan->faults == FAULTS_DEATHS) return;
    plan->feed_loss = dice_chance(d, 0.3) ? 0 : 0.1 * dice_fraction(d);
    plan->break_mean_us = dice_chance(d, 0.2) ? 0 : (uint64_t)dice_between(d, 1500000, 20000000);
    plan->down_max_us = (uint64_t)dice_between(d, 20000, 1000000);
    plan->late_chance = dice_chance(d, 0.5) ? 0.3 : 0;
    plan->late_min_us = 500000;
    plan->late_max_us = 5000000;
    plan->stall_chance = dice_chance(d, 0.5) ? 0 : 0.002;
    plan->stall_max_us = 300000;
    if (plan->faults < FAULTS_ALL) return;
    plan->stall_chance = 0.004;
    plan->stall_max_us = 1500000;
    plan->store_failure = 0.3;
    plan->skew = 0.02;
}

/* As an operator sets it: a lease outlasts a round trip and what both sides' ticks and timers add to it. */
static void draw_lease(struct plan *plan, struct dice *d)
{
    uint64_t tick_us = 1000000 / plan->world.tick_hz;
    uint64_t trip_us = 2 * (plan->delay_max_us + plan->delay_jitter_us) + 3 * tick_us + plan->tick_jitter_us;
    plan->lease_us = UINT64_C(250000) << dice_below(d, 3);
    if (plan->lease_us < 2 * trip_us) plan->lease_us = 2 * trip_us;
}

static void draw_players(struct plan *plan, struct dice *d, const struct plan_options *options)
{
    double cell = world_cell_side(&plan->world);
    uint64_t ticks = options->ticks != 0 ? options->ticks : 300 + dice_below(d, 200);
    plan->phases = 2 + (uint32_t)dice_below(d, 3);
    plan->phase_us = ticks * 1000000 / plan->world.tick_hz / plan->phases;
    plan->work_us = dice_chance(d, 0.5) ? 1000000 / plan->world.tick_hz : (uint64_t)dice_between(d, 20000, 60000);
    plan->step = cell * (0.02 + 0.3 * dice_fraction(d));
    for (int i = 0; i < GAITS; i++) plan->gait_weight[i] = 1 + (uint32_t)dice_below(d, 4);
    plan->gait_weight[GAIT_BORDER] += 3;
    plan->gait_weight[GAIT_CORNER] += 3;
    plan->gait_weight[dice_below(d, GAITS)] += 6;
    plan->gait_weight[GAIT_STILL] = 1;
    plan->radius_typical = (uint32_t)(cell * (0.2 + 0.8 * dice_fraction(d)));
    if (plan->radius_typical > plan->world.radius_max) plan->radius_typical = plan->world.radius_max;
    plan->radius_large = plan->world.radius_max;
    plan->radius_large_chance = 0.1;
    plan->radius_none_chance = 0.1;
    plan->leave_chance = dice_chance(d, 0.7) ? 0.002 : 0;
    plan->enter_chance = 0.02;
    plan->switch_chance = 0.3;
    plan->state_chance = 0.005 * dice_fraction(d);
    plan->radius_chance = dice_chance(d, 0.6) ? 0.003 : 0;
    plan->big_state_chance = dice_chance(d, 0.2) ? 0.02 : 0;
    plan->emit_chance = 0.1;
    plan->query_chance = 0.05;
    plan->find_chance = 0.05;
    plan->callbacks_act = dice_chance(d, 0.3);
    plan->attach_chance = dice_chance(d, 0.3) ? 0 : 0.02;
}

void plan_draw(struct plan *plan, const struct plan_options *options)
{
    *plan = (struct plan){.seed = options->seed, .faults = options->faults};
    struct dice d = dice_of(options->seed, 1);
    draw_world(plan, &d);
    draw_members(plan, &d, options);
    draw_network(plan, &d);
    draw_players(plan, &d, options);
    struct dice lease = dice_of(options->seed, 9);
    draw_lease(plan, &lease);
    plan->aoi = options->aoi;
    plan->no_standbys = plan->faults < FAULTS_DEATHS && !options->standbys;
    plan->balance = options->balance;
    plan_draw_faults(plan, options);
    plan_bounds(plan);
}

void plan_bounds(struct plan *plan)
{
    plan->fail_overs =
        plan->faults >= FAULTS_DEATHS || (plan->faults == FAULTS_NET && !plan->no_standbys) || plan->balance;
    uint64_t tick_us = 1000000 / plan->world.tick_hz;
    uint64_t hop_us = plan->delay_max_us + plan->delay_jitter_us + plan->tick_jitter_us + tick_us;
    /* Move, offer, accept, ghost, view and frame: six hops, and as many again for what each waits for. */
    plan->window_us = 1000000 + 12 * hop_us;
    /* A hand-off waits for both sides' standbys: there and back, twice, and an entity may cross once more meanwhile. */
    if (!plan->no_standbys) plan->window_us += 8 * hop_us;
    plan->quiet_us = 12 * tick_us + 4 * hop_us + 100000;
    /* A lost frame is found by the next beat (10 ticks) and repaired by a snapshot, which may have to wait for a
     * connection on the way there and on the way back. What a snapshot no longer names may only have moved to a leaf
     * that has not spoken yet: it is shown for two more seconds. */
    bool gaps = plan->feed_loss > 0 || plan->break_mean_us > 0 || plan->stall_chance > 0;
    if (gaps) plan->window_us += 10 * tick_us + 1000000 + 4 * hop_us + ORPHAN_US;
    if (gaps) plan->quiet_us += ORPHAN_US;
    if (plan->break_mean_us > 0) plan->window_us += 4 * (plan->down_max_us + 500000);
    if (plan->stall_chance > 0) plan->window_us += 2 * plan->stall_max_us;
}

void plan_quiet(struct plan *plan, uint32_t servers, uint32_t split_depth)
{
    *plan = (struct plan){.seed = 1, .servers = servers, .split_depth = split_depth, .gateways = 1};
    plan->world = world_default();
    plan->world.depth = 4;
    plan->world.resolution_bits = 14; /* cells of 1024 units */
    plan->world.radius_max = 3072;
    plan->world.hysteresis = 102;
    plan->world.handoff_hysteresis = 20;
    plan->feeds = 2;
    plan->no_standbys = true;
    plan->storeless = true;
    plan->layers = 1;
    plan->delay_min_us = 1000;
    plan->delay_max_us = 2000;
    plan->lease_us = 250000;
    plan->work_us = 50000;
    plan->radius_typical = 1024;
    plan->radius_large = 3072;
    plan->gait_weight[GAIT_STILL] = 1;
    plan_bounds(plan);
}

struct quadkey plan_leaf_at(const struct plan *plan, struct position p)
{
    uint32_t last = plan->world.resolution_bits;
    if (plan->leaf_count == 0) return quadkey_at(&plan->world, p, plan->split_depth);
    for (uint32_t i = 0; i < plan->leaf_count; i++) {
        uint32_t depth = quadkey_depth(plan->leaves[i]);
        CHECK(depth <= last);
        if (quadkey_at(&plan->world, p, depth).v == plan->leaves[i].v) return plan->leaves[i];
    }
    CHECK(!"the plan's leaves do not cover the world");
    return QUADKEY_NONE;
}
