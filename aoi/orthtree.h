/* A quadtree (two axes) or octree (three) of points. See orthtree.c; shared by the orthtree*.c files and nobody else.
 * Memory: a tree owns its tables; they grow before a change, never in it. */
#ifndef TERRANE_AOI_ORTHTREE_H
#define TERRANE_AOI_ORTHTREE_H

#include "aoi/tree.h"

struct orthtree_node {
    uint32_t first; /* leaf: its first bucket, or TREE_NONE; otherwise its first child, the others follow in Z-order */
    uint32_t count; /* leaf: entities; otherwise INNER */
};

struct orthtree {
    struct stratum base;
    unsigned axes, top_shift, least_shift; /* sides of the root and of the smallest leaf are 2^shift */
    bool z_clamped;                        /* z has no bounds, and is taken as in the root where it is beyond */
    int64_t corner[TREE_AXES];             /* lowest position of the root */
    struct orthtree_node *nodes;           /* in blocks of 2^axes siblings; the first is the root, alone in its block */
    uint32_t *parents;                     /* by block: the node whose children these are; free: the next free one */
    uint32_t block_count, block_room, block_free, blocks_idle;
    uint32_t *words; /* buckets: see orthtree_bucket.h */
    uint32_t bucket_count, bucket_room, bucket_free, buckets_idle;
    uint32_t churn; /* splits and merges since the tables were last in Z-order */
};

void orthtree_find(struct stratum *stratum, const struct volume *volume, struct found *found);
/* Lays nodes and buckets out in Z-order again if much has changed since; O(all), but seldom. */
void orthtree_settle(struct orthtree *tree);

#endif
