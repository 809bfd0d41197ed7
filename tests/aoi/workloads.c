/* The benchmark's workloads as worlds of aoi_differ. */
#include "bench/workload.h"
#include "tests/aoi/worlds.h"

#include <stdlib.h>

/* A whole tick: somebody's radius changes, and all move. */
static bool tick_run(struct differ *d, struct workload *w)
{
    uint32_t one = (uint32_t)(workload_draw(w) % w->options.count);
    bool well = rivals_set_radius(&d->rivals, one, (uint32_t)(workload_draw(w) % (d->radius_most + 1)));
    for (uint32_t i = 0; well && i < w->options.count; i++) well = rivals_stage(&d->rivals, i, d->at[i]);
    return well && rivals_tick(&d->rivals);
}

static bool enter(struct differ *d, uint32_t i)
{
    return rivals_enter(&d->rivals, i,
                        &(struct aoi_place){.position = d->at[i], .radius = (uint32_t)d->options.cell_size});
}

/* The same one at a time; of ten, one leaves and enters. */
static bool singles_run(struct differ *d, struct workload *w)
{
    bool well = true;
    for (uint32_t i = 0; well && i < w->options.count; i++) {
        if (workload_draw(w) % 10) {
            well = rivals_move(&d->rivals, i, d->at[i]);
        } else {
            well = rivals_leave(&d->rivals, i) && enter(d, i);
        }
    }
    return well;
}

static bool query_run(struct differ *d, struct workload *w)
{
    uint32_t i = (uint32_t)(workload_draw(w) % w->options.count), j = (uint32_t)(workload_draw(w) % w->options.count);
    return rivals_query(&d->rivals, d->at[i], d->at[j], (uint32_t)(workload_draw(w) % (d->radius_most + 1)), -1, i);
}

static void positions_take(struct differ *d, const struct workload *w)
{
    for (uint32_t i = 0; i < w->options.count; i++) {
        d->at[i] = (struct position){w->at[i].x + d->options.min_x, w->at[i].y + d->options.min_y, w->at[i].z};
    }
}

bool workload_run(struct differ *d, uint64_t seed, uint64_t operations)
{
    size_t kinds = 1; /* there are some */
    while (workload_list(kinds)) kinds++;
    struct workload_options options = {.name = workload_list(seed / 8 % kinds)->name,
                                       .count = d->rivals.room,
                                       .side = d->options.max_x - d->options.min_x,
                                       .cell = d->options.cell_size,
                                       .step = d->options.cell_size / 4,
                                       .metre = d->options.cell_size / 50.0,
                                       .tick_s = 0.05,
                                       .space = d->options.dimensions == 3,
                                       .crowds = getenv("TERRANE_CROWDS"),
                                       .seed = seed};
    struct workload w;
    workload_open(&w, &options);
    positions_take(d, &w);
    bool well = true;
    for (uint32_t i = 0; well && i < options.count; i++) well = enter(d, i);
    while (well && d->rivals.operations < operations) {
        workload_step(&w);
        workload_accept(&w);
        positions_take(d, &w);
        well = (workload_draw(&w) % 3 ? tick_run(d, &w) : singles_run(d, &w)) && query_run(d, &w);
    }
    for (uint32_t i = 0; well && i < options.count; i++) well = rivals_leave(&d->rivals, i);
    workload_close(&w);
    return well;
}
