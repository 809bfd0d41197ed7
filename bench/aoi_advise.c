/* Which index to take for a world of the user's own: all that can are run on worlds of that size, and what each takes
 * of a core decides. */
#include "bench/bench_aoi.h"
#include "bench/race.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PLANS_MOST    64u
#define WORLDS_MOST   2u
#define UNITS_A_METRE (8192 / 50.0) /* as the cluster's default world has them */
#define SIDE_MOST     (1 << 29)
#define ALIKE         1.1 /* differences below a tenth are noise: then memory decides */

/* An index with a size of cells, and what it took in each kind of world. */
struct plan {
    const char *index;
    double cell; /* m */
    struct {
        double tick_ms, query_us, bytes, visible;
        bool sampled; /* not all could move in a tick; the rest is taken to cost the same */
    } in[WORLDS_MOST];
    double share, bytes; /* of a core, in the worst world; the most memory an entity */
};

struct advice {
    const struct advise_options *options;
    const char *worlds[WORLDS_MOST];
    size_t world_count;
    double metre; /* position units */
    struct plan plans[PLANS_MOST];
    size_t plan_count;
};

static void plan_measure(struct advice *a, struct plan *plan, size_t world)
{
    const struct advise_options *o = a->options;
    struct racer_options options = {.index = plan->index,
                                    .mode = AOI_RADIUS,
                                    .cell = (int32_t)fmax(1, plan->cell * a->metre),
                                    .radius = (uint32_t)fmax(1, o->radius * a->metre),
                                    .budget_ns = o->quick ? fmin(5e6, o->entities * 1e4) : 100e6,
                                    .load = {.name = a->worlds[world],
                                             .count = o->entities,
                                             .side = (int32_t)(o->map * a->metre),
                                             .cell = (int32_t)fmax(1, o->radius * a->metre),
                                             .step = (int32_t)fmax(1, o->speed / o->rate * a->metre),
                                             .metre = a->metre,
                                             .tick_s = 1 / o->rate,
                                             .space = o->space,
                                             .crowds = o->crowds}};
    struct racer racer;
    double found;
    uint32_t movers;
    kit_progress("%s: %s, cells of %g m", a->worlds[world], plan->index, plan->cell);
    racer_open(&racer, &options);
    struct lap_result move = racer_move(&racer), query = racer_query(&racer, &found);
    struct lap_result tick = racer_tick(&racer, move.mean, &movers);
    plan->in[world].tick_ms = tick.mean * o->entities / 1e6;
    plan->in[world].query_us = query.mean / 1e3;
    plan->in[world].bytes = racer_bytes(&racer);
    plan->in[world].visible = found - 1;
    plan->in[world].sampled = movers < o->entities;
    double share = (tick.mean * o->entities * o->rate + query.mean * o->queries) / 1e9;
    if (share > plan->share) plan->share = share;
    if (plan->in[world].bytes > plan->bytes) plan->bytes = plan->in[world].bytes;
    racer_close(&racer);
}

static void plan_add(struct advice *a, const char *index, double cell)
{
    if (a->plan_count == PLANS_MOST) kit_fail(1, "more than %u plans", PLANS_MOST);
    struct plan *plan = &a->plans[a->plan_count++];
    *plan = (struct plan){.index = index, .cell = cell};
    for (size_t world = 0; world < a->world_count; world++) plan_measure(a, plan, world);
}

static int plan_compare(const void *x, const void *y)
{
    const struct plan *a = x, *b = y;
    return (a->share > b->share) - (a->share < b->share);
}

/* The cheapest; of those that are about as cheap the smallest. The plans are sorted by their share. */
static const struct plan *plan_best(const struct advice *a)
{
    const struct plan *best = &a->plans[0];
    for (size_t i = 1; i < a->plan_count && a->plans[i].share <= a->plans[0].share * ALIKE; i++) {
        if (a->plans[i].bytes < best->bytes) best = &a->plans[i];
    }
    return best;
}

static void plans_print(const struct advice *a)
{
    printf("%-12s %8s %10s", "index", "cell, m", "of a core");
    for (size_t world = 0; world < a->world_count; world++) {
        printf("   %8s: tick, ms  query, us  bytes", a->worlds[world]);
    }
    putchar('\n');
    for (size_t i = 0; i < a->plan_count; i++) {
        const struct plan *p = &a->plans[i];
        printf("%-12s %8g %9.3g%%", p->index, p->cell, p->share * 100);
        for (size_t world = 0; world < a->world_count; world++) {
            printf("   %19.3g%c %9.3g %6.0f", p->in[world].tick_ms, p->in[world].sampled ? '*' : ' ',
                   p->in[world].query_us, p->in[world].bytes);
        }
        putchar('\n');
    }
    for (size_t i = 0; i < a->plan_count * a->world_count; i++) {
        if (!a->plans[i / a->world_count].in[i % a->world_count].sampled) continue;
        puts("* from a part of the moves of a tick; all would have taken too long to measure");
        break;
    }
}

static void advice_print(const struct advice *a, const struct plan *best)
{
    const struct advise_options *o = a->options;
    printf("%g m x %g m%s, %u entities that see %g m and go %g m/s, %g ticks and %g queries a second\n\n", o->map,
           o->map, o->space ? " x as high" : "", o->entities, o->radius, o->speed, o->rate, o->queries);
    plans_print(a);
    printf("\nTake `%s` with cells of %g m: it takes %.3g%% of a core where that is most, and %.0f bytes an entity.\n",
           best->index, best->cell, best->share * 100, best->bytes);
    for (size_t i = 0; i < a->plan_count; i++) {
        const struct plan *other = &a->plans[i];
        if (!strcmp(other->index, best->index)) continue;
        printf("`%s`, the next other index, takes %.2g times as much time and %.2g times the memory.\n", other->index,
               other->share / best->share, other->bytes / best->bytes);
        break;
    }
    if (best->share > 1)
        puts("No index does this on one core: share the world among several (that is what Terrane does).");
    for (size_t world = 0; world < a->world_count; world++) {
        double messages = o->entities * best->in[world].visible * o->rate;
        printf("Traffic (%s): everybody sees %.3g others: %.3g updates/s, at %g bytes each %.3g MB/s.\n",
               a->worlds[world], best->in[world].visible, messages, o->bytes, messages * o->bytes / 1e6);
    }
}

static void advice_json(const struct advice *a, const struct plan *best)
{
    const struct advise_options *o = a->options;
    printf("{\"bench\":\"aoi\",\"advice\":\"%s\",\"cell_m\":%g,\"core_share\":%.4g,\"bytes\":%.4g,\"worlds\":[",
           best->index, best->cell, best->share, best->bytes);
    for (size_t world = 0; world < a->world_count; world++) {
        double messages = o->entities * best->in[world].visible * o->rate;
        printf("%s{\"workload\":\"%s\",\"tick_ms\":%.4g,\"query_us\":%.4g,\"visible\":%.4g,\"messages_per_s\":%.4g,"
               "\"bytes_per_s\":%.4g}",
               world ? "," : "", a->worlds[world], best->in[world].tick_ms, best->in[world].query_us,
               best->in[world].visible, messages, messages * o->bytes);
    }
    printf("],\"plans\":[");
    for (size_t i = 0; i < a->plan_count; i++) {
        printf("%s{\"index\":\"%s\",\"cell_m\":%g,\"core_share\":%.4g,\"bytes\":%.4g}", i ? "," : "", a->plans[i].index,
               a->plans[i].cell, a->plans[i].share, a->plans[i].bytes);
    }
    puts("]}");
}

void advise_run(const struct advise_options *options)
{
    static struct advice advice;
    advice.options = options;
    advice.metre = fmin(UNITS_A_METRE, SIDE_MOST / options->map);
    if (options->workload) {
        advice.worlds[advice.world_count++] = options->workload;
    } else {
        advice.worlds[advice.world_count++] = "uniform";
        advice.worlds[advice.world_count++] = "hotspot";
    }
    const struct aoi_index_info *info;
    unsigned needs = AOI_CAN_RADIUS | (options->space ? AOI_CAN_SPACE : AOI_CAN_PLANE);
    for (size_t i = 0; (info = aoi_index_list(i)); i++) {
        if ((info->abilities & needs) != needs) continue;
        plan_add(&advice, info->name, options->radius);
        if (strcmp(info->name, "grid") != 0) continue;
        plan_add(&advice, info->name, options->radius / 2);
        plan_add(&advice, info->name, options->radius * 2);
    }
    kit_progress_end();
    qsort(advice.plans, advice.plan_count, sizeof *advice.plans, plan_compare);
    const struct plan *best = plan_best(&advice);
    if (options->json) {
        advice_json(&advice, best);
    } else {
        advice_print(&advice, best);
    }
}
