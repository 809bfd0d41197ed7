/* One index under one workload: what the race and the advice measure.
 * Memory: a racer owns its index and its workload until racer_close. */
#ifndef TERRANE_BENCH_RACE_H
#define TERRANE_BENCH_RACE_H

#include "bench/kit.h"
#include "bench/workload.h"

struct racer_options {
    const char *index;
    enum aoi_mode mode;
    struct workload_options load;
    int32_t cell; /* of the index */
    uint32_t radius;
    double budget_ns; /* of processor time for each figure, about */
};

struct racer {
    struct racer_options options;
    struct aoi *aoi;
    struct workload load;
    uint32_t *handles;
    struct tally tally;
    struct misses misses;
    double overhead_ns; /* of telling the time */
    double *laps;       /* of single operations */
};

/* One figure of a racer; 0: not known. */
struct lap_result {
    double mean, p99, changes, misses; /* an operation: ns, ns, changes of views, cache misses */
};

void racer_open(struct racer *racer, const struct racer_options *options);
void racer_close(struct racer *racer);
/* The same few moves for every index, one at a time and in a tick; returns the sum over what was reported. */
uint64_t racer_verify(struct racer *racer);
/* Single operations, each timed. */
void racer_enter_leave(struct racer *racer, struct lap_result *enter, struct lap_result *leave);
struct lap_result racer_move(struct racer *racer);
/* Circles of the radius (in space spheres) around entities; *found is how many each finds, itself included. */
struct lap_result racer_query(struct racer *racer, double *found);
/* 70% moves, 20% queries, 5% leave and 5% enter. */
struct lap_result racer_mixed(struct racer *racer);
/* Whole ticks: a move's share; *movers is how many moved: all, unless that would take too long. */
struct lap_result racer_tick(struct racer *racer, double move_ns, uint32_t *movers);
double racer_bytes(const struct racer *racer); /* an entity */

#endif
