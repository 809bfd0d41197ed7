/* Worlds made from seeds, and what happens in them: the same to all rivals.
 *
 * Worlds differ in shape (cells of one unit or a million, bounds at the ends of the range, plane or space, one radius
 * or many, hysteresis, layers, heights, extents) and in where entities are drawn to. */
#ifndef TERRANE_TESTS_AOI_WORLDS_H
#define TERRANE_TESTS_AOI_WORLDS_H

#include "tests/aoi/rivals.h"

enum drawn { ANYWHERE, ONE_POINT, THREE_POINTS, LINE_X, LINE_Y, ONE_CELL, CORNERS, FAR, DRAWN_COUNT };

struct differ {
    uint64_t random;
    struct aoi_options options;
    struct rivals rivals;
    int64_t spread; /* entities keep within this distance of the middle */
    uint32_t radius_most, extent_most;
    unsigned layers;
    int64_t z_spread;
    enum drawn drawn;
    struct position *at; /* by entity, where it was last sent */
};

/* Draws a world; the rivals are not open yet. */
void world_draw(struct differ *d, uint64_t seed);
/* Makes of it one for crowd_run: a square of twenty cells for a crowd's square. */
void crowd_world(struct differ *d);
/* Random operations until the rivals have had so many; then all leave. False: they differ, see the rivals' fault. */
bool world_run(struct differ *d, uint64_t operations);
/* The same with a crowd that walks as recorded (TERRANE_CROWDS, a folder; made up without it), whole ticks at a time.
 */
bool crowd_run(struct differ *d, uint64_t seed, uint64_t operations);
/* The same with the benchmark's workloads, in turn by seed / 8, in ticks and one at a time; in crowd_world's world. */
bool workload_run(struct differ *d, uint64_t seed, uint64_t operations);

#endif
