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
    result->violation_kind = sim->violation_kind;
    result->trace_hash = sim->trace_hash;
    result->faults = n->breaks + n->lost_frames + n->lost_packets + n->late_packets + sim->store.failures;
    result->sim_us = sim->now_us;
    result->steps = sim->steps;
    result->calms = sim->calms;
    result->sees = sim->checker.sees;
    result->events = sim->checker.events;
    result->queries_short = sim->checker.queries_short;
    result->deaths = sim->faults.deaths;
    result->faults_begun = sim->faults.begun;
    memcpy(result->happened, sim->faults.happened, sizeof result->happened);
    for (uint32_t i = 0; i < CLASS_COUNT; i++) result->faults += sim->faults.happened[i];
    result->handoffs = sim->past.handoffs_in;
    result->crossings = sim->past.handoffs_in + sim->past.handoffs_local;
    result->promotions = sim->past.promotions;
    for (uint32_t i = 0; i < sim->plan.servers; i++) {
        const struct member *m = &sim->members[sim->server_first + i];
        if (m->server == NULL) continue;
        struct cellserver_stats stats;
        cellserver_stats(m->server, &stats);
        result->handoffs += stats.handoffs_in;
        result->crossings += stats.handoffs_in + stats.handoffs_local;
        result->promotions += stats.promotions;
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
    fprintf(file, "lease %llu us, skew %.3f\n", (unsigned long long)plan->lease_us, plan->skew);
    for (uint32_t i = 0; i < plan->fault_count; i++) {
        const struct plan_fault *f = &plan->fault[i];
        fprintf(file, "fault %u: %s, phase %u, after %.3f s, %llu us, victim %u, side %llx%s%s%s%s%s\n", i + 1,
                fault_class_name(f->class), f->phase, (double)f->after_us / 1e6, (unsigned long long)f->span_us,
                f->victim, (unsigned long long)f->side[0], f->out ? " out" : "", f->in ? " in" : "",
                f->clogs ? " clogs" : "", f->more ? " more" : "", f->left_out ? " LEFT OUT" : "");
    }
    for (uint32_t i = 0; i < plan->leaf_count; i++) {
        quadkey_text(plan->leaves[i], text);
        fprintf(file, "leaf %s\n", text);
    }
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
            sim_stir(sim, phase);
            sim_run_until(sim, sim->now_us + plan.phase_us);
            if (!sim_calm(sim)) break;
        }
    }
    count(sim, result);
    sim_close(sim);
    free(sim);
}
