/* What the tree indexes (orthtree, rtree, bvh) have in common. */
#ifndef TERRANE_AOI_TREE_H
#define TERRANE_AOI_TREE_H

#include "aoi/engine.h"
#include "common/check.h"

#include <stdlib.h>

#define TREE_NONE UINT32_MAX
#define TREE_AXES 3

static inline int32_t tree_axis(struct position p, unsigned axis)
{
    return axis == 0 ? p.x : axis == 1 ? p.y : p.z;
}

/* Room for `more` behind those that are there. */
static inline uint32_t *tree_found_end(struct found *found, size_t more)
{
    if (found->count + more > found->room) found_grow(found, more);
    return found->handles + found->count;
}

/* Grows a table of `size` bytes an item to hold `count`, by half at least. False: no memory, and all is as it was. */
bool tree_table_reserve(void **items, uint32_t *room, uint64_t count, size_t size);

#endif
