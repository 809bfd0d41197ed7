/* A cluster of bench_balance under one policy: leaves, who serves them, moves on their way, and what came of it.
 *
 * All policies see the same world. Loads are reported with 5 % of noise each quarter of a second and smoothed as cell
 * servers do; a move takes a second, during which the former server bears the leaf.
 * Memory: opaque, owned by the caller through open/close. */
#ifndef TERRANE_BENCH_BALANCE_POLICY_H
#define TERRANE_BENCH_BALANCE_POLICY_H

#include "bench/balance_world.h"
#include "coordinator/balance.h"

enum policy {
    POLICY_PLANNER, /* coordinator/balance.h */
    POLICY_STATIC,  /* one square a server, for ever */
    POLICY_GREEDY,  /* 1,024 equal leaves; who has most entities gives to who has fewest */
    POLICY_RECUT,   /* the planner's leaves; the whole curve is cut anew when somebody is above the trigger */
    POLICIES
};

extern const char *const POLICY_NAMES[POLICIES];

#define BENCH_SERVERS 16u

struct cluster; /* opaque */

struct cluster *cluster_open(enum policy policy, const struct balance_world *world, uint64_t seed);
void cluster_close(struct cluster *c);
/* The world has taken a step. `counts`: it is part of the measurement. */
void cluster_step(struct cluster *c, const struct balance_world *world, bool jumped, bool counts);

struct cluster_figures {
    double imbalance_mean, imbalance_p99; /* of load max / mean over servers, over time */
    double recover_s;                     /* longest from a jump until it is under 1.15; 0: no jump */
    double migrated_per_min;              /* of all entities, in percent */
    uint32_t moved_twice;                 /* leaves that moved again within 30 s */
    uint32_t leaves, stretches;           /* at the end */
};
struct cluster_figures cluster_figures(struct cluster *c);

#endif
