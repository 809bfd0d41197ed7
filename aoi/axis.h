/* A list ordered by one coordinate: an unrolled skip list. Blocks of up to 48 entries lie in order; lanes lead over
 * many blocks at a time. So an insertion finds its place in O(log n), a short move shifts a few entries of one block,
 * and a walk along the list reads adjacent memory.
 *
 * An entry has the other coordinate with it, so that a walk needs nobody's mote. Entries are ordered by (key, handle),
 * which no two share: thousands on one coordinate are as quickly found as others.
 * The caller owns the list (zero-initialised is empty) and the column of places by handle that the lists of one
 * stratum may share if no handle is in two of them. */
#ifndef TERRANE_AOI_AXIS_H
#define TERRANE_AOI_AXIS_H

#include "aoi/engine.h"

#define AXIS_BLOCK 48
#define AXIS_LANES 10
#define AXIS_NONE  UINT32_MAX

struct axis_block {
    uint32_t count, lanes;     /* lanes: how many of next[] are used */
    uint32_t next[AXIS_LANES]; /* block behind this one in each lane */
    int32_t keys[AXIS_BLOCK];
    int32_t across[AXIS_BLOCK]; /* the other coordinate */
    uint32_t handles[AXIS_BLOCK];
};

struct axis {
    struct axis_block *blocks;
    uint32_t high, room, count; /* blocks ever used; room; entries */
    uint32_t free;              /* list of free blocks through next[0]; one more than the first; 0: none */
    uint32_t drawn;             /* lanes are drawn by counting, not by chance */
    uint32_t head[AXIS_LANES];  /* one more than the first block of each lane; 0: none */
};

/* By handle: the block that holds it. */
struct axis_places {
    uint32_t *block;
    uint32_t room;
};

void axis_close(struct axis *axis);
/* False when memory ran out; nothing has changed then. */
bool axis_add(struct axis *axis, struct axis_places *places, uint32_t handle, int32_t key, int32_t across);
void axis_remove(struct axis *axis, struct axis_places *places, uint32_t handle);
/* To another place of the same list; false when memory ran out, likewise. */
bool axis_move(struct axis *axis, struct axis_places *places, uint32_t handle, int32_t key, int32_t across);
size_t axis_bytes(const struct axis *axis);

/* The first block that may hold a key of at least `key`; AXIS_NONE: there is none. On from it by axis_after. */
uint32_t axis_seek(const struct axis *axis, int32_t key);
static inline uint32_t axis_after(const struct axis *axis, uint32_t block)
{
    return axis->blocks[block].next[0];
}
/* Adds all with a key in [low, high] whose other coordinate is in [across_low, across_high], from a block of axis_seek
 * on. */
void axis_find(const struct axis *axis, uint32_t block, int32_t low, int32_t high, int32_t across_low,
               int32_t across_high, struct found *found);

#endif
