/* A quadtree or octree with up to eight entities a leaf: the ninth splits it, and siblings that hold four or fewer
 * together are merged again (half of what splits, so that a walker on a border does not split and merge all the time).
 *
 * When it wins: where the crowd is a few spots in a vast world. Squares follow the crowd, so nobody has to choose a
 * size for them, and a spot in which a thousand stand is not one cell that must be looked through for every neighbour.
 * When it loses: where people are spread evenly, or the radius is about a well chosen cell: then the way down is work
 * that a grid does not have. (docs/AOI.md has the figures.)
 *
 * Linear: there are no pointers and no keys that are hashed. Siblings stand beside each other in Z-order (Morton's), so
 * an inner node is one number, a child is that number plus a bit for each axis, and the way down reads the bits of the
 * position from the top. Nodes and buckets are two arrays; orthtree_settle lays both out in Z-order again when many
 * nodes have changed, so that neighbours in the world are neighbours in memory.
 *
 * A bucket has the positions of its eight beside their handles, and knows the square of its leaf: a move that stays in
 * the leaf reads and writes one bucket, and does not see the tree. One that leaves it climbs as far as the first
 * ancestor that holds both places and goes down from there (R. A. Finkel and J. L. Bentley, "Quad trees", 1974, for the
 * tree; I. Gargantini, "An effective way to represent quadtrees", 1982, for the linear one; Samet's book for the rest).
 *
 * Squares of least size are not split: a leaf there is a chain of buckets of which only the first may have room. So all
 * who stand in one point cost no more than who stand apart: entering and leaving are O(depth), and a query that wants
 * them all takes buckets as they are.
 *
 * z is free, but the root is a cube: positions above and below it count as on its lid and floor. Clamping keeps the
 * order, so clamped boxes still find all, and buckets hold true positions. */
#include "aoi/orthtree_bucket.h"

#include <string.h>

#define MERGE_MOST 4u

/* ---- tables ---- */

static bool blocks_reserve(struct orthtree *t, uint32_t more)
{
    if (t->blocks_idle + (t->block_room - t->block_count) >= more) return true;
    uint32_t room = t->block_room + t->block_room / 2 + more;
    struct orthtree_node *nodes = realloc(t->nodes, ((size_t)room << t->axes) * sizeof *nodes);
    if (!nodes) return false;
    t->nodes = nodes;
    uint32_t *parents = realloc(t->parents, room * sizeof *parents);
    if (!parents) return false;
    t->parents = parents;
    t->block_room = room;
    return true;
}

static bool buckets_reserve(struct orthtree *t, uint32_t more)
{
    if (t->buckets_idle + (t->bucket_room - t->bucket_count) >= more) return true;
    uint32_t room = t->bucket_room + t->bucket_room / 2 + more;
    uint32_t *words = realloc(t->words, (size_t)room * stride(t->axes) * sizeof *words);
    if (!words) return false;
    t->words = words;
    t->bucket_room = room;
    return true;
}

static uint32_t block_take(struct orthtree *t, uint32_t parent)
{
    uint32_t block = t->block_free;
    if (block != TREE_NONE) {
        t->block_free = t->parents[block];
        t->blocks_idle--;
    } else {
        CHECK(t->block_count < t->block_room);
        block = t->block_count++;
    }
    t->parents[block] = parent;
    for (uint32_t i = 0; i < 1u << t->axes; i++) {
        t->nodes[(block << t->axes) + i] = (struct orthtree_node){.first = TREE_NONE};
    }
    return block << t->axes;
}

static void block_give(struct orthtree *t, uint32_t first_child)
{
    uint32_t block = first_child >> t->axes;
    t->parents[block] = t->block_free;
    t->block_free = block;
    t->blocks_idle++;
}

static uint32_t bucket_take(struct orthtree *t, unsigned axes)
{
    uint32_t bucket = t->bucket_free;
    if (bucket != TREE_NONE) {
        t->bucket_free = bucket_tail(bucket_at(t, axes, bucket), axes)[WORD_NEXT];
        t->buckets_idle--;
        return bucket;
    }
    CHECK(t->bucket_count < t->bucket_room);
    return t->bucket_count++;
}

static void bucket_give(struct orthtree *t, unsigned axes, uint32_t bucket)
{
    bucket_tail(bucket_at(t, axes, bucket), axes)[WORD_NEXT] = t->bucket_free;
    t->bucket_free = bucket;
    t->buckets_idle++;
}

static bool orthtree_init(struct orthtree *t, unsigned axes)
{
    const struct aoi_options *o = &t->base.engine->options;
    t->axes = axes;
    t->block_free = t->bucket_free = TREE_NONE;
    t->z_clamped = axes == 3 && (o->min_z == INT32_MIN || o->max_z == INT32_MAX);
    int64_t span = (int64_t)o->max_x - o->min_x, other = (int64_t)o->max_y - o->min_y;
    if (other > span) span = other;
    other = (int64_t)o->max_z - o->min_z;
    if (axes == 3 && !t->z_clamped && other > span) span = other;
    while ((span - 1) >> t->top_shift) t->top_shift++;
    /* A crowd in a part of a cell as small as this is wanted as a whole by nearly all who want any of it. */
    while (t->least_shift < t->top_shift && INT64_C(64) << t->least_shift < o->cell_size) t->least_shift++;
    t->corner[0] = o->min_x;
    t->corner[1] = o->min_y;
    t->corner[2] = t->z_clamped ? -(INT64_C(1) << t->top_shift) / 2 : o->min_z;
    if (!blocks_reserve(t, 1)) return false;
    block_take(t, TREE_NONE);
    return true;
}

static bool quadtree_init(struct stratum *stratum)
{
    return orthtree_init((struct orthtree *)stratum, 2);
}

static bool octree_init(struct stratum *stratum)
{
    return orthtree_init((struct orthtree *)stratum, 3);
}

static void orthtree_close(struct stratum *stratum)
{
    struct orthtree *t = (struct orthtree *)stratum;
    free(t->nodes);
    free(t->parents);
    free(t->words);
}

/* For one more change. The worst splits at every level, and ends with a bucket in each child. */
static bool change_reserve(struct orthtree *t)
{
    return blocks_reserve(t, DEPTH_MOST) && buckets_reserve(t, SLOTS + 2);
}

static size_t orthtree_bytes(const struct stratum *stratum)
{
    const struct orthtree *t = (const struct orthtree *)stratum;
    return ((size_t)t->block_room << t->axes) * sizeof *t->nodes + t->block_room * sizeof *t->parents +
           (size_t)t->bucket_room * stride(t->axes) * sizeof *t->words;
}

/* ---- leaves ---- */

/* Goes down one level, towards the offset. */
static inline void spot_descend(const struct orthtree *t, unsigned axes, struct spot *s, const uint32_t *offset)
{
    uint32_t child = t->nodes[s->node].first;
    s->shift--;
    for (unsigned a = 0; a < axes; a++) {
        uint32_t bit = offset[a] >> s->shift & 1;
        child += bit << a;
        s->corner[a] |= bit << s->shift;
    }
    s->node = child;
}

static void leaf_add(struct orthtree *t, unsigned axes, const struct spot *s, uint32_t handle, struct position at)
{
    struct orthtree_node *leaf = &t->nodes[s->node];
    uint32_t bucket = leaf->first;
    if (bucket == TREE_NONE || bucket_tail(bucket_at(t, axes, bucket), axes)[WORD_COUNT] == SLOTS) {
        bucket = bucket_take(t, axes);
        uint32_t *tail = bucket_tail(bucket_at(t, axes, bucket), axes);
        tail[WORD_NEXT] = leaf->first;
        tail[WORD_NODE] = s->node;
        tail[WORD_COUNT] = 0;
        tail[WORD_SHIFT] = s->shift;
        for (unsigned a = 0; a < axes; a++) tail[WORD_CORNER + a] = s->corner[a];
        leaf->first = bucket;
    }
    uint32_t *words = bucket_at(t, axes, bucket);
    uint32_t slot = bucket_tail(words, axes)[WORD_COUNT]++;
    words[slot] = handle;
    for (unsigned a = 0; a < axes; a++) words[SLOTS * (1 + a) + slot] = (uint32_t)tree_axis(at, a);
    where_of(t)[handle] = bucket * SLOTS + slot;
    leaf->count++;
}

/* The hole is filled with the last of the leaf's first bucket, the only one that may have room. */
static void leaf_remove(struct orthtree *t, unsigned axes, uint32_t node, uint32_t handle)
{
    struct orthtree_node *leaf = &t->nodes[node];
    uint32_t bucket = where_of(t)[handle] / SLOTS, slot = where_of(t)[handle] % SLOTS, first = leaf->first;
    uint32_t *words = bucket_at(t, axes, bucket), *from = bucket_at(t, axes, first);
    uint32_t last = --bucket_tail(from, axes)[WORD_COUNT];
    for (unsigned row = 0; row <= axes; row++) words[SLOTS * row + slot] = from[SLOTS * row + last];
    where_of(t)[words[slot]] = bucket * SLOTS + slot;
    leaf->count--;
    if (last == 0) {
        leaf->first = bucket_tail(from, axes)[WORD_NEXT];
        bucket_give(t, axes, first);
    }
}

/* Eight entities go to the leaf's new children. */
static void leaf_split(struct orthtree *t, unsigned axes, const struct spot *s)
{
    uint32_t members[SLOTS * (1 + TREE_AXES)], bucket = t->nodes[s->node].first;
    memcpy(members, bucket_at(t, axes, bucket), SLOTS * (1 + axes) * sizeof *members);
    bucket_give(t, axes, bucket);
    uint32_t children = block_take(t, s->node);
    t->nodes[s->node] = (struct orthtree_node){.first = children, .count = INNER};
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct position at = {.x = (int32_t)members[SLOTS + i], .y = (int32_t)members[2 * SLOTS + i]};
        if (axes == 3) at.z = (int32_t)members[3 * SLOTS + i];
        uint32_t offset[TREE_AXES];
        struct spot child = *s;
        offsets_of(t, axes, at, offset);
        spot_descend(t, axes, &child, offset);
        leaf_add(t, axes, &child, members[i], at);
    }
    t->churn++;
}

/* From a node that holds the place down to its leaf. */
static void spot_put(struct orthtree *t, unsigned axes, struct spot s, const uint32_t *offset, uint32_t handle,
                     struct position at)
{
    for (;;) {
        while (t->nodes[s.node].count == INNER) spot_descend(t, axes, &s, offset);
        if (t->nodes[s.node].count < SLOTS || s.shift <= t->least_shift) break;
        leaf_split(t, axes, &s);
    }
    leaf_add(t, axes, &s, handle, at);
}

/* The spot of the leaf in which the handle is. */
static inline struct spot spot_of(const struct orthtree *t, unsigned axes, uint32_t handle)
{
    const uint32_t *tail = bucket_tail(bucket_at(t, axes, where_of(t)[handle] / SLOTS), axes);
    struct spot s = {.node = tail[WORD_NODE], .shift = tail[WORD_SHIFT]};
    for (unsigned a = 0; a < axes; a++) s.corner[a] = tail[WORD_CORNER + a];
    return s;
}

static inline uint32_t parent_of(const struct orthtree *t, unsigned axes, uint32_t node)
{
    return t->parents[node >> axes];
}

static inline void spot_climb(const struct orthtree *t, unsigned axes, struct spot *s)
{
    s->node = parent_of(t, axes, s->node);
    s->shift++;
    for (unsigned a = 0; a < axes; a++) s->corner[a] &= ~(uint32_t)((UINT64_C(1) << s->shift) - 1);
}

/* Merges the children of the spot's ancestors, from the lowest up, as long as they are few. `s` is a leaf. */
static void merge_from(struct orthtree *t, unsigned axes, struct spot s)
{
    while (t->nodes[s.node].count <= MERGE_MOST && parent_of(t, axes, s.node) != TREE_NONE) {
        spot_climb(t, axes, &s);
        uint32_t children = t->nodes[s.node].first, count = 0;
        for (uint32_t i = 0; i < 1u << axes && count <= MERGE_MOST; i++) {
            uint32_t more = t->nodes[children + i].count;
            count = more > MERGE_MOST ? more : count + more; /* an inner node's is the largest number */
        }
        if (count > MERGE_MOST) return;
        t->nodes[s.node] = (struct orthtree_node){.first = TREE_NONE};
        uint32_t members[SLOTS * (1 + TREE_AXES)];
        for (uint32_t i = 0; i < 1u << axes; i++) {
            uint32_t bucket = t->nodes[children + i].first, few = t->nodes[children + i].count;
            if (!few) continue;
            memcpy(members, bucket_at(t, axes, bucket), SLOTS * (1 + axes) * sizeof *members);
            bucket_give(t, axes, bucket);
            for (uint32_t j = 0; j < few; j++) {
                struct position at = {.x = (int32_t)members[SLOTS + j], .y = (int32_t)members[2 * SLOTS + j]};
                if (axes == 3) at.z = (int32_t)members[3 * SLOTS + j];
                leaf_add(t, axes, &s, members[j], at);
            }
        }
        block_give(t, children);
        t->churn++;
    }
}

/* ---- changes ---- */

static inline void add(struct orthtree *t, unsigned axes, uint32_t handle, struct position at)
{
    uint32_t offset[TREE_AXES];
    offsets_of(t, axes, at, offset);
    spot_put(t, axes, (struct spot){.shift = t->top_shift}, offset, handle, at);
}

static bool orthtree_add(struct stratum *stratum, uint32_t handle)
{
    struct orthtree *t = (struct orthtree *)stratum;
    struct position at = stratum->engine->motes[handle].at;
    if (!change_reserve(t)) return false;
    if (t->axes == 2) {
        add(t, 2, handle, at);
    } else {
        add(t, 3, handle, at);
    }
    return true;
}

static inline void take(struct orthtree *t, unsigned axes, uint32_t handle)
{
    struct spot s = spot_of(t, axes, handle);
    leaf_remove(t, axes, s.node, handle);
    merge_from(t, axes, s);
}

static void orthtree_remove(struct stratum *stratum, uint32_t handle)
{
    struct orthtree *t = (struct orthtree *)stratum;
    if (t->axes == 2) {
        take(t, 2, handle);
    } else {
        take(t, 3, handle);
    }
}

static inline bool spot_holds(unsigned axes, const struct spot *s, const uint32_t *offset)
{
    uint32_t differs = 0;
    for (unsigned a = 0; a < axes; a++) differs |= offset[a] ^ s->corner[a];
    return (uint64_t)differs >> s->shift == 0;
}

static inline bool shift(struct orthtree *t, unsigned axes, uint32_t handle, struct position to)
{
    uint32_t offset[TREE_AXES], at = where_of(t)[handle];
    offsets_of(t, axes, to, offset);
    struct spot from = spot_of(t, axes, handle);
    if (spot_holds(axes, &from, offset)) {
        uint32_t *slot = bucket_at(t, axes, at / SLOTS) + at % SLOTS;
        for (unsigned a = 0; a < axes; a++) slot[SLOTS * (1 + a)] = (uint32_t)tree_axis(to, a);
        return true;
    }
    if (!change_reserve(t)) return false;
    leaf_remove(t, axes, from.node, handle);
    struct spot common = from;
    while (!spot_holds(axes, &common, offset)) spot_climb(t, axes, &common);
    spot_put(t, axes, common, offset, handle, to);
    merge_from(t, axes, from);
    if (t->churn > t->bucket_count + 64) orthtree_settle(t);
    return true;
}

static bool orthtree_move(struct stratum *stratum, uint32_t handle, struct position to)
{
    struct orthtree *t = (struct orthtree *)stratum;
    return t->axes == 2 ? shift(t, 2, handle, to) : shift(t, 3, handle, to);
}

/* ---- the indexes ---- */

static const struct structure quadtree = {.stratum_bytes = sizeof(struct orthtree),
                                          .init = quadtree_init,
                                          .close = orthtree_close,
                                          .add = orthtree_add,
                                          .remove = orthtree_remove,
                                          .move = orthtree_move,
                                          .find = orthtree_find,
                                          .bytes = orthtree_bytes};

const struct aoi_index index_quadtree = {
    .info = {.name = "quadtree",
             .about = "squares that split at eight: for crowds in a few spots of a vast world",
             .abilities = AOI_CAN_BLOCK | AOI_CAN_RADIUS | AOI_CAN_PLANE},
    .create = engine_create,
    .ops = &engine_ops,
    .structure = &quadtree,
};

static const struct structure octree = {.stratum_bytes = sizeof(struct orthtree),
                                        .init = octree_init,
                                        .close = orthtree_close,
                                        .add = orthtree_add,
                                        .remove = orthtree_remove,
                                        .move = orthtree_move,
                                        .find = orthtree_find,
                                        .bytes = orthtree_bytes};

const struct aoi_index index_octree = {
    .info = {.name = "octree",
             .about = "the same with cubes: for crowds in a few spots of space",
             .abilities = AOI_CAN_BLOCK | AOI_CAN_RADIUS | AOI_CAN_PLANE | AOI_CAN_SPACE},
    .create = engine_create,
    .ops = &engine_ops,
    .structure = &octree,
};
