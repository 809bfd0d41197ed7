/* What is done to bodies by the thousand, in the order of their handles; chooses the vector kernels at run time. */
#ifndef TERRANE_AOI_GRID_BULK_H
#define TERRANE_AOI_GRID_BULK_H

#include "aoi/grid.h"

#define BULK_LANES 8

/* Stages as many of the first as have consecutive handles and ordinary moves (no z, no jump, nothing to refuse), in
 * multiples of BULK_LANES; returns how many. */
size_t bulk_stage(struct grid *grid, const uint32_t *handles, const struct position *positions, size_t count);

/* Commits the staged moves of bodies [from, to) that stay in their cell; writes the handles of the others, which keep
 * theirs, and returns how many. `crossers` needs room for to - from + BULK_LANES. */
uint32_t bulk_sweep(struct grid *grid, uint32_t from, uint32_t to, uint32_t *crossers);

#endif
