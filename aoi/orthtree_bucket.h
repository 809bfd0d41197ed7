/* The inside of the orthtree, shared by the orthtree*.c files: how a bucket lies in memory, and how positions become
 * offsets from the root's corner. Everything takes the number of axes as a constant, so that the compiler makes one
 * copy for two axes and one for three. */
#ifndef TERRANE_AOI_ORTHTREE_BUCKET_H
#define TERRANE_AOI_ORTHTREE_BUCKET_H

#include "aoi/orthtree.h"

#define INNER UINT32_MAX
#define SLOTS 8u
/* A bucket in words: handles, then SLOTS coordinates for each axis, then these. */
enum bucket_word {
    WORD_NEXT,
    WORD_NODE,
    WORD_COUNT,
    WORD_SHIFT,
    WORD_CORNER,
    BUCKET_TAIL = WORD_CORNER + TREE_AXES + 1
};
#define DEPTH_MOST 33u

/* A node on the way: which, its lowest corner (offsets from the root's), and its side. */
struct spot {
    uint32_t node, shift;
    uint32_t corner[TREE_AXES];
};

static inline uint32_t stride(unsigned axes)
{
    return SLOTS * (1 + axes) + BUCKET_TAIL;
}

static inline uint32_t *bucket_at(const struct orthtree *t, unsigned axes, uint32_t bucket)
{
    return t->words + (size_t)bucket * stride(axes);
}

static inline uint32_t *bucket_tail(uint32_t *bucket, unsigned axes)
{
    return bucket + SLOTS * (1 + axes);
}

/* Where a handle is: bucket * SLOTS + slot. */
static inline uint32_t *where_of(const struct orthtree *t)
{
    return t->base.engine->slots;
}

static inline void offsets_of(const struct orthtree *t, unsigned axes, struct position at, uint32_t *offset)
{
    offset[0] = (uint32_t)(at.x - t->corner[0]);
    offset[1] = (uint32_t)(at.y - t->corner[1]);
    if (axes == 3) {
        int64_t z = at.z - t->corner[2], top = (INT64_C(1) << t->top_shift) - 1;
        offset[2] = (uint32_t)(z < 0 ? 0 : z > top ? top : z);
    }
}

#endif
