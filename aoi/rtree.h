/* An R-tree of rectangles on the plane. See rtree.c; shared by the rtree*.c files and nobody else.
 * Memory: a tree owns its nodes; they grow before a change, never in it. */
#ifndef TERRANE_AOI_RTREE_H
#define TERRANE_AOI_RTREE_H

#include "aoi/tree.h"

#define RTREE_SLOTS 16u

/* Closed. What an extent has beyond the last position is cut off: nobody can be nearer to that than to the rest. */
struct rtree_box {
    int32_t min[2], max[2];
};

/* Entries in columns, so that all are compared at once. */
struct rtree_node {
    int32_t min[2][RTREE_SLOTS], max[2][RTREE_SLOTS];
    uint32_t child[RTREE_SLOTS]; /* leaf: handles */
    uint32_t up;                 /* parent * RTREE_SLOTS + slot; TREE_NONE: a root; free: the next free one */
    uint16_t count, level;       /* level 0: leaf */
};

struct rtree {
    struct stratum base;
    struct rtree_node *nodes;
    uint32_t node_count, node_room, node_free, nodes_idle;
    uint32_t root;
};

/* rtree_split.c: which of one entry more than fit go to the new node, a bit each (R*-tree's way). */
uint32_t rtree_split(const struct rtree_box boxes[RTREE_SLOTS + 1]);

/* In positions, which are 1 x 1: so flat boxes (all on a line) are told apart by their length. */
static inline double rtree_area(const struct rtree_box *b)
{
    return ((double)b->max[0] - b->min[0] + 1) * ((double)b->max[1] - b->min[1] + 1);
}

static inline void rtree_box_add(struct rtree_box *b, const struct rtree_box *more)
{
    for (unsigned a = 0; a < 2; a++) {
        if (more->min[a] < b->min[a]) b->min[a] = more->min[a];
        if (more->max[a] > b->max[a]) b->max[a] = more->max[a];
    }
}

#endif
