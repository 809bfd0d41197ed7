/* A hierarchy of boxes around points in space. See bvh.c; shared by the bvh*.c files and nobody else.
 * Memory: a tree owns its tables. Nodes are had as they are needed, also in the middle of a change; where there are
 * none to be had the process ends. */
#ifndef TERRANE_AOI_BVH_H
#define TERRANE_AOI_BVH_H

#include "aoi/tree.h"

#define BVH_SLOTS 8u

struct bvh_box {
    int32_t min[TREE_AXES], max[TREE_AXES];
};

struct bvh_node {
    struct bvh_box box;
    uint32_t up;       /* the parent; TREE_NONE: the root; free: the next free one */
    uint32_t child[2]; /* inner; a leaf: child[0] is its first bucket */
    uint32_t count;    /* a leaf's members; inner: 0 */
};

/* A point and whose it is, while a part of the tree is built. */
struct bvh_item {
    uint32_t handle;
    int32_t at[TREE_AXES];
};

/* A leaf's members. Only leaves whose members all stand in one point have more than fit; of such a chain all but the
 * first are full. */
struct bvh_bucket {
    uint32_t handle[BVH_SLOTS];
    int32_t at[TREE_AXES][BVH_SLOTS];
    uint32_t next, node, count;
};

struct bvh {
    struct stratum base;
    struct bvh_node *nodes;
    uint32_t node_count, node_room, node_free, nodes_idle;
    struct bvh_bucket *buckets;
    uint32_t bucket_count, bucket_room, bucket_free, buckets_idle;
    uint32_t root;          /* TREE_NONE: nobody is there */
    struct bvh_item *items; /* room for all */
    uint32_t items_room;
    uint32_t stale;       /* changes since the boxes were last tight */
    uint32_t built_count; /* how many there were at the last build of all */
    double built;         /* mean cost of a leaf after the last build of all (bvh_build.c) */
};

#define SLOTS BVH_SLOTS
/* No leaf of a tree of n points is deeper than twice log2(n), and so much more: see bvh_build.c. */
#define DEPTH_SPARE 8u
#define DEPTH_MOST  80u

/* bvh.c */
uint32_t bvh_node_take(struct bvh *t, uint32_t up);
void bvh_node_give(struct bvh *t, uint32_t node);
uint32_t bvh_bucket_take(struct bvh *t, uint32_t node, uint32_t next);
void bvh_bucket_give(struct bvh *t, uint32_t bucket);

/* bvh_build.c */
/* Makes of the node, whose own boxes and buckets are gone, a tree of the items. Reorders them. */
void bvh_build(struct bvh *t, uint32_t node, struct bvh_item *items, uint32_t count);
/* Makes all boxes tight, and builds all anew where they have become too large. */
void bvh_refit(struct bvh *t);
/* A leaf of that depth has come to be: if that is too deep, the lowest part that is out of balance is built anew. */
void bvh_balance(struct bvh *t, uint32_t leaf, uint32_t depth);

static inline struct bvh_box box_of_point(struct position at)
{
    return (struct bvh_box){.min = {at.x, at.y, at.z}, .max = {at.x, at.y, at.z}};
}

static inline void box_add(struct bvh_box *b, const struct bvh_box *more)
{
    for (unsigned a = 0; a < TREE_AXES; a++) {
        b->min[a] = more->min[a] < b->min[a] ? more->min[a] : b->min[a];
        b->max[a] = more->max[a] > b->max[a] ? more->max[a] : b->max[a];
    }
}

static inline bool box_has(const struct bvh_box *b, struct position at)
{
    return at.x >= b->min[0] && at.x <= b->max[0] && at.y >= b->min[1] && at.y <= b->max[1] && at.z >= b->min[2] &&
           at.z <= b->max[2];
}

/* Half the surface, which is what the chance that a query meets a box goes by; plus the sides, so that flat boxes
 * (a plane's, a line's) are told apart too. */
static inline double box_cost(const struct bvh_box *b)
{
    double x = (double)b->max[0] - b->min[0], y = (double)b->max[1] - b->min[1], z = (double)b->max[2] - b->min[2];
    return x * y + y * z + z * x + x + y + z;
}

static inline struct position bucket_position(const struct bvh_bucket *b, uint32_t slot)
{
    return (struct position){.x = b->at[0][slot], .y = b->at[1][slot], .z = b->at[2][slot]};
}

/* Where a handle is: bucket * SLOTS + slot. */
static inline uint32_t *where_of(const struct bvh *t)
{
    return t->base.engine->slots;
}

static inline void bucket_write(struct bvh *t, uint32_t bucket, uint32_t slot, uint32_t handle, struct position at)
{
    struct bvh_bucket *b = &t->buckets[bucket];
    b->handle[slot] = handle;
    for (unsigned a = 0; a < TREE_AXES; a++) b->at[a][slot] = tree_axis(at, a);
    where_of(t)[handle] = bucket * SLOTS + slot;
}

/* Of the first bucket; those behind it in a chain stand in the same point. */
static inline struct bvh_box bucket_box(const struct bvh_bucket *b)
{
    struct bvh_box box = box_of_point(bucket_position(b, 0));
    for (uint32_t i = 1; i < b->count; i++) {
        struct bvh_box more = box_of_point(bucket_position(b, i));
        box_add(&box, &more);
    }
    return box;
}

#endif
