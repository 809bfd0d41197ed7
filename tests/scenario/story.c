#include "tests/scenario/story.h"

#include <stdlib.h>
#include <string.h>

static void hold(const struct sim *sim)
{
    ck_assert_msg(!sim->violated, "at %.6f s: %s", (double)sim->violated_us / 1e6, sim->violation);
}

struct sim *story_open_unready(struct plan *plan, uint32_t walkers)
{
    struct sim *sim = malloc(sizeof *sim);
    ck_assert_ptr_nonnull(sim);
    plan->entities = walkers;
    plan_bounds(plan);
    sim_open(sim, plan, PLANT_NONE, getenv("STORY_TRACE") != NULL ? stdout : NULL);
    sim->crowd.manual = true;
    return sim;
}

struct sim *story_open(struct plan *plan, uint32_t walkers)
{
    struct sim *sim = story_open_unready(plan, walkers);
    sim_run_ready(sim, 10000000);
    story_run(sim, 1000);
    return sim;
}

void story_close(struct sim *sim)
{
    story_calm(sim);
    sim_close(sim);
    free(sim);
}

void story_run(struct sim *sim, uint64_t ms)
{
    sim_run_until(sim, sim->now_us + ms * 1000);
    hold(sim);
}

void story_calm(struct sim *sim)
{
    sim_calm(sim);
    hold(sim);
    sim_stir(sim, 0);
}

struct position story_place(const struct sim *sim, const char *leaf, double x, double y)
{
    struct quadkey key;
    ck_assert_int_eq(quadkey_parse(leaf, strlen(leaf), &key), TERRANE_ERR_OK);
    struct square s = quadkey_square(&sim->plan.world, key);
    return (struct position){s.x + (int32_t)(x * (double)s.side), s.y + (int32_t)(y * (double)s.side), 0};
}

static uint32_t units(const struct sim *sim, double cells)
{
    return (uint32_t)(cells * world_cell_side(&sim->plan.world));
}

/* The act is done: the gateway's timer may have to be set anew. */
static void acted(struct sim *sim, uint32_t walker)
{
    sim_rearm(sim, sim->gateway_first + sim->crowd.walkers[walker].gateway);
    hold(sim);
}

void story_enter(struct sim *sim, uint32_t walker, const char *leaf, double x, double y, double radius)
{
    crowd_enter(sim, walker, story_place(sim, leaf, x, y), units(sim, radius));
    acted(sim, walker);
}

void story_move(struct sim *sim, uint32_t walker, const char *leaf, double x, double y)
{
    crowd_move(sim, walker, story_place(sim, leaf, x, y));
    acted(sim, walker);
}

void story_leave(struct sim *sim, uint32_t walker)
{
    crowd_leave(sim, walker);
    acted(sim, walker);
}

void story_state(struct sim *sim, uint32_t walker, bool big)
{
    crowd_set_state(sim, walker, big);
    acted(sim, walker);
}

void story_radius(struct sim *sim, uint32_t walker, double radius)
{
    crowd_set_radius(sim, walker, units(sim, radius));
    acted(sim, walker);
}

bool story_sees(const struct sim *sim, uint32_t observer, uint32_t subject)
{
    return sim->checker.held[(size_t)observer * sim->checker.count + subject] != 0;
}

uint32_t story_owner(struct sim *sim, uint32_t walker)
{
    census_look(sim, false);
    hold(sim);
    ck_assert_uint_gt(sim->checker.owned[walker].listed, 0);
    return sim->checker.owned[walker].server;
}

uint32_t story_server(const struct sim *sim, uint32_t number)
{
    return sim->server_first + number;
}
uint32_t story_gateway(const struct sim *sim, uint32_t number)
{
    return sim->gateway_first + number;
}

struct cellserver_stats story_stats(const struct sim *sim)
{
    struct cellserver_stats sum = {0};
    for (uint32_t i = 0; i < sim->plan.servers; i++) {
        struct cellserver_stats one;
        cellserver_stats(sim->members[sim->server_first + i].server, &one);
        sum.handoffs_in += one.handoffs_in;
        sum.handoffs_out += one.handoffs_out;
        sum.handoffs_local += one.handoffs_local;
        sum.forwarded += one.forwarded;
        sum.gaps += one.gaps;
        sum.gaps_repaired += one.gaps_repaired;
        sum.gaps_open += one.gaps_open;
        sum.owned += one.owned;
        sum.moves_lost += one.moves_lost;
    }
    return sum;
}
