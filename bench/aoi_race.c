/* Indexes next to each other: every one that can, on the same work, by workload and number of entities. The first (the
 * grid where it can) is the reference; the others must report the same as it, or the program fails. */
#include "bench/bench_aoi.h"
#include "bench/race.h"

#include <math.h>
#include <string.h>

#define TICK_S 0.05 /* what a step is taken in */

/* One case, and the reference's figures in the order in which they are measured. */
struct field {
    const struct bench_flags *flags;
    char name[96];
    struct racer_options options;
    const char *first; /* the reference; NULL: it is still to run */
    uint64_t sum;
    double reference[8];
    size_t measured;
};

static void figure(struct field *f, const char *figure, const char *unit, double scale, struct lap_result result)
{
    double *reference = &f->reference[f->measured++];
    if (!f->first) *reference = result.mean;
    record_print(&(struct record){.name = f->name,
                                  .index = f->options.index,
                                  .figure = figure,
                                  .unit = unit,
                                  .value = result.mean * scale,
                                  .p99 = result.p99 * scale,
                                  .per_s = strcmp(unit, "ns") != 0 ? 0 : 1e9 / result.mean,
                                  .misses = result.misses,
                                  .changes = result.changes,
                                  .reference = f->first ? f->first : f->options.index,
                                  .reference_value = *reference * scale},
                 f->flags->csv);
}

static void singles_run(struct field *f, struct racer *r)
{
    struct lap_result enter, leave;
    double found;
    kit_progress("%s: %s: enter and leave", f->name, f->options.index);
    racer_enter_leave(r, &enter, &leave);
    figure(f, "enter", "ns", 1, enter);
    figure(f, "leave", "ns", 1, leave);
    kit_progress("%s: %s: query", f->name, f->options.index);
    struct lap_result query = racer_query(r, &found);
    query.changes = found;
    figure(f, "query", "ns", 1, query);
    kit_progress("%s: %s: moves", f->name, f->options.index);
    struct lap_result move = racer_move(r);
    figure(f, "move_one", "ns", 1, move);
    kit_progress("%s: %s: ticks", f->name, f->options.index);
    uint32_t movers;
    struct lap_result tick = racer_tick(r, move.mean, &movers);
    figure(f, "move", "ns", 1, tick);
    if (movers == f->options.load.count) {
        figure(f, "tick", "ms", movers / 1e6, (struct lap_result){.mean = tick.mean, .p99 = tick.p99});
    } else {
        f->measured++;
        kit_note("%s: %s: %u of %u move in a tick, all would take too long", f->name, f->options.index, movers,
                 f->options.load.count);
    }
}

static void racer_run(struct field *f, const char *index)
{
    struct racer racer;
    f->options.index = index;
    f->measured = 0;
    kit_progress("%s: %s: loading", f->name, index);
    racer_open(&racer, &f->options);
    uint64_t sum = racer_verify(&racer);
    if (!f->first) f->sum = sum;
    if (sum != f->sum) kit_fail(1, "%s: %s reports other changes than %s", f->name, index, f->first);
    if (!strcmp(f->options.load.name, "mixed")) {
        kit_progress("%s: %s: mixed", f->name, index);
        figure(f, "mixed", "ns", 1, racer_mixed(&racer));
    } else {
        singles_run(f, &racer);
    }
    figure(f, "bytes", "bytes", 1, (struct lap_result){.mean = racer_bytes(&racer)});
    racer_close(&racer);
    if (!f->first) f->first = index;
}

static bool index_can(const struct aoi_index_info *info, enum aoi_mode mode, bool space)
{
    unsigned needs = (mode == AOI_BLOCK ? AOI_CAN_BLOCK : AOI_CAN_RADIUS) | (space ? AOI_CAN_SPACE : AOI_CAN_PLANE);
    return (info->abilities & needs) == needs;
}

static void field_run(struct field *f)
{
    const struct aoi_index_info *info = aoi_index_find("grid");
    const char *only = f->flags->index && strcmp(f->flags->index, "all") != 0 ? f->flags->index : NULL;
    bool space = f->flags->space, grid = index_can(info, f->options.mode, space);
    if (grid && (!only || !strcmp(only, "grid"))) racer_run(f, "grid");
    for (size_t i = 0; (info = aoi_index_list(i)); i++) {
        if (!strcmp(info->name, "grid") || !index_can(info, f->options.mode, space)) continue;
        if (!only || !strcmp(only, info->name)) racer_run(f, info->name);
    }
}

static void count_name(char *text, size_t size, uint32_t count)
{
    if (count % 1000000 == 0) {
        snprintf(text, size, "%um", count / 1000000);
    } else if (count % 1000 == 0) {
        snprintf(text, size, "%uk", count / 1000);
    } else {
        snprintf(text, size, "%u", count);
    }
}

/* mode/count/workload, and what is not as usual. */
static void field_name(struct field *f, const char *count)
{
    const char *mode = f->options.mode == AOI_BLOCK ? "block" : "radius";
    int used = snprintf(f->name, sizeof f->name, "%s/%s/%s%s", mode, count, f->options.load.name,
                        f->flags->space ? "/3d" : "");
    if (f->flags->cells == BENCH_CELLS) return;
    snprintf(f->name + used, sizeof f->name - (size_t)used, "/%ux%u", f->flags->cells, f->flags->cells);
}

struct workload_options race_load(const struct bench_flags *flags, const char *workload, uint32_t count)
{
    return (struct workload_options){.name = workload,
                                     .count = count,
                                     .side = (int32_t)(BENCH_CELL * flags->cells),
                                     .cell = BENCH_CELL,
                                     .step = BENCH_STEP,
                                     .metre = BENCH_CELL / 50.0,
                                     .tick_s = TICK_S,
                                     .space = flags->space,
                                     .crowds = flags->crowds};
}

unsigned race_run(const struct bench_flags *flags)
{
    static const uint32_t quick[BENCH_SIZES] = {1000, 10000}, full[BENCH_SIZES] = {1000, 10000, 100000};
    const uint32_t *sizes = flags->entities[0] ? flags->entities : flags->quick ? quick : full;
    bool every = !flags->workload || !strcmp(flags->workload, "all");
    unsigned run = 0;
    for (int mode = 0; mode < 2; mode++) {
        for (size_t size = 0; size < BENCH_SIZES && sizes[size]; size++) {
            const struct workload_info *info;
            for (size_t i = 0; (info = workload_list(i)); i++) {
                if (!every && strcmp(flags->workload, info->name) != 0) continue;
                char count[16];
                count_name(count, sizeof count, sizes[size]);
                struct field field = {
                    .flags = flags,
                    .options = {.mode = mode ? AOI_RADIUS : AOI_BLOCK,
                                .cell = BENCH_CELL,
                                .radius = BENCH_CELL,
                                .budget_ns = flags->quick ? fmin(10e6, sizes[size] * 1e4) : 200e6,
                                .load = race_load(flags, info->name, sizes[size])},
                };
                field_name(&field, count);
                if (flags->only && !strstr(field.name, flags->only)) continue;
                if (!strcmp(info->name, "crowd") && !flags->crowds)
                    kit_note("TERRANE_CROWDS is not set: a made-up crowd");
                field_run(&field);
                run++;
            }
        }
    }
    return run;
}
