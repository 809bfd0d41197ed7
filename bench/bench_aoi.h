/* The parts of bench_aoi: what its flags say, and the three things it does. */
#ifndef TERRANE_BENCH_BENCH_AOI_H
#define TERRANE_BENCH_BENCH_AOI_H

#include "bench/kit.h"
#include "bench/workload.h"

#define BENCH_SIZES 8u

/* The world of the benchmark: a cell of 50 m, which is also the radius; a step of at most a tenth of it. */
#define BENCH_CELL  8192
#define BENCH_CELLS 200
#define BENCH_SIDE  (BENCH_CELL * BENCH_CELLS)
#define BENCH_STEP  (BENCH_CELL / 10)

struct bench_flags {
    bool quick, plain, csv;
    bool space;                     /* --3d */
    uint32_t cells;                 /* side of the world in cells */
    const char *only;               /* --case; NULL: all */
    const char *index;              /* NULL: grid */
    const char *workload;           /* NULL: the duel's */
    uint32_t entities[BENCH_SIZES]; /* 0: no more */
    const char *crowds;             /* TERRANE_CROWDS */
};

/* aoi_duel.c: one index next to the textbook grid. Returns how many cases there were. */
unsigned duel_run(const struct bench_flags *flags);
/* aoi_race.c: indexes next to each other, by workload. Returns how many cases there were. */
unsigned race_run(const struct bench_flags *flags);
/* How the world of a race moves. */
struct workload_options race_load(const struct bench_flags *flags, const char *workload, uint32_t count);

/* aoi_advise.c: the user's own numbers, in metres and seconds. 0: the default. */
struct advise_options {
    double map, radius, speed, rate, bytes, queries;
    uint32_t entities;
    bool space, quick, json;
    const char *workload; /* NULL: uniform and hotspot */
    const char *crowds;
};
void advise_run(const struct advise_options *options);

#endif
