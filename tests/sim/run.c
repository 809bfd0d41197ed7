#include "tests/sim/run.h"

#include "common/check.h"
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define READY_LIMIT_US UINT64_C(20000000)

static void count(const struct sim *sim, struct run_result *result)
{
    const struct network *n = &sim->network;
    result->violated = sim->violated;
    memcpy(result->violation, sim->violation, sizeof result->violation);
    result->violated_us = sim->violated_us;
    result->trace_hash = sim->trace_hash;
    result->faults = n->breaks + n->lost_frames + n->lost_packets + n->late_packets + sim->store.failures;
    result->sim_us = sim->now_us;
    result->steps = sim->steps;
    result->calms = sim->calms;
    result->sees = sim->checker.sees;
    result->events = sim->checker.events;
    result->queries_short = sim->checker.queries_short;
    for (uint32_t i = 0; i < sim->plan.servers; i++) {
        const struct member *m = &sim->members[sim->server_first + i];
        if (m->server == NULL) continue;
        struct cellserver_stats stats;
        cellserver_stats(m->server, &stats);
        result->handoffs += stats.handoffs_in;
        result->crossings += stats.handoffs_in + stats.handoffs_local;
    }
}

static void plan_say(const struct plan *plan, FILE *file)
{
    const struct world *world = &plan->world;
    char text[LIMIT_QUADKEY_TEXT];
    fprintf(file,
            "seed %llu: %u servers, %u gateways, %u entities; depth %u, cell %u units, %s, hysteresis %u, hand-off %u, "
            "z_range %u, layers %u, %u Hz; delay %llu..%llu us, loss %.3f, breaks %llu us, down %llu us, late %.2f, "
            "stall %.4f, window %llu us\n",
            (unsigned long long)plan->seed, plan->servers, plan->gateways, plan->entities, world->depth,
            world_cell_side(world), world->view_mode == VIEW_BLOCK ? "block" : "radius", world->hysteresis,
            world->handoff_hysteresis, world->z_range, plan->layers, world->tick_hz,
            (unsigned long long)plan->delay_min_us, (unsigned long long)plan->delay_max_us, plan->feed_loss,
            (unsigned long long)plan->break_mean_us, (unsigned long long)plan->down_max_us, plan->late_chance,
            plan->stall_chance, (unsigned long long)plan->window_us);
    for (uint32_t i = 0; i < plan->leaf_count; i++) {
        quadkey_text(plan->leaves[i], text);
        fprintf(file, "leaf %s\n", text);
    }
}

/* One phase of movement. */
static void move(struct sim *sim)
{
    uint64_t end_us = sim->now_us + sim->plan.phase_us;
    if (sim->plan.restarts) {
        sim_run_until(sim, sim->now_us + dice_below(&sim->timers, sim->plan.phase_us));
        if (!sim->violated) sim_restart_coordinator(sim, dice_below(&sim->timers, 2000000));
    }
    sim_run_until(sim, end_us);
}

void run_seed(const struct plan_options *options, enum plant plant, FILE *trace, struct run_result *result)
{
    struct plan plan;
    struct sim *sim = malloc(sizeof *sim);
    CHECK(sim != NULL);
    *result = (struct run_result){0};
    plan_draw(&plan, options);
    if (trace != NULL) plan_say(&plan, trace);
    sim_open(sim, &plan, plant, trace);
    if (sim_run_ready(sim, READY_LIMIT_US)) {
        for (uint32_t phase = 0; phase < plan.phases && !sim->violated; phase++) {
            sim_stir(sim);
            move(sim);
            if (!sim_calm(sim)) break;
        }
    }
    count(sim, result);
    sim_close(sim);
    free(sim);
}
