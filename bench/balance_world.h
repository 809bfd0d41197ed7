/* The workloads of bench_balance: who is where, step by step, and what each region of the world costs.
 *
 * The world is 12.8 km wide, 256 x 256 cells of 50 m. An entity costs 1, and a hundredth more for each other one in the
 * 3 x 3 cells around it (who sees whom is what crowds cost), so a dense place is dearer than its entities' number says.
 * Memory: opaque, owned by the caller through open/close; the recording is borrowed. */
#ifndef TERRANE_BENCH_BALANCE_WORLD_H
#define TERRANE_BENCH_BALANCE_WORLD_H

#include "common/types.h"
#include "tools/recording.h"

#define WORLD_DEPTH 8u
#define STEP_S      0.25

enum workload {
    WORKLOAD_CROWDS, /* recorded or generated pedestrians around the world's middle lines */
    WORKLOAD_JUMP,   /* a quarter is a hot spot of 200 m deviation that jumps across the world; the others wander */
    WORKLOAD_STAR,   /* a quarter is a hot spot that runs along an eight-pointed star, 4 m/s */
    WORKLOAD_WAVES,  /* day and night pass from west to east once in 24 minutes: one in twenty at night */
    WORKLOADS
};

extern const char *const WORKLOAD_NAMES[WORKLOADS];

struct balance_world; /* opaque */

struct balance_world *balance_world_open(enum workload workload, uint32_t entities, uint64_t seed, double jump_every_s,
                                         const struct recording *recording);
void balance_world_close(struct balance_world *w);
/* STEP_S later. True: the hot spot has just jumped. */
bool balance_world_step(struct balance_world *w);
uint32_t balance_world_entities(const struct balance_world *w, struct quadkey region);
double balance_world_load(const struct balance_world *w, struct quadkey region);

#endif
