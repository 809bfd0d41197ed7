/* How a world of the benchmarks moves: where all stand at first, and where each is a tick later.
 *
 * Everything follows from the options and the seed, so that every index gets the same operations.
 * Memory: a workload owns its arrays until workload_close. */
#ifndef TERRANE_BENCH_WORKLOAD_H
#define TERRANE_BENCH_WORKLOAD_H

#include "common/types.h"

struct workload_info {
    const char *name, *about;
};
/* By place; NULL behind the last. */
const struct workload_info *workload_list(size_t at);
const struct workload_info *workload_find(const char *name); /* NULL: none is called so */

struct workload_options {
    const char *name;   /* one of workload_list; borrowed */
    uint32_t count;     /* entities */
    int32_t side;       /* of the world, from 0, in position units */
    int32_t cell;       /* the side of a cell, for `cell` and `line` */
    int32_t step;       /* the longest step of a tick */
    double metre;       /* position units in a metre, and */
    double tick_s;      /* seconds a tick: `crowd` only */
    bool space;         /* z moves too, from 0 up to the side */
    const char *crowds; /* folder of recordings; NULL: people are made up */
    uint64_t seed;      /* 0: always the same */
};

struct workload {
    struct workload_options options;
    const struct workload_kind *kind;
    uint64_t random;
    struct position *at, *next;
    struct track_state *states; /* what a kind remembers of an entity; NULL: nothing */
    struct crowd *crowd;
    struct recording *recording;
};

void workload_open(struct workload *workload, const struct workload_options *options);
void workload_close(struct workload *workload);
/* Fills `next` from `at`. */
void workload_step(struct workload *workload);
/* Makes `next` be `at`. */
void workload_accept(struct workload *workload);
/* 53 random bits. */
uint64_t workload_draw(struct workload *workload);

#endif
