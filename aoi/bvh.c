/* A bounding volume hierarchy for what moves: a binary tree of boxes over leaves of up to eight points.
 *
 * When it wins: in space, where the crowd is flat here and a tower there: boxes are as tight as what is in them, and
 * empty space costs nothing, wherever the bounds of the world are.
 * When it loses: with one change at a time and nothing else, since some change has to wait for the refit; and on the
 * plane, where squares do the same for less.
 *
 * A point that moves within its leaf's box, or only as far as its parent's, changes the leaf and nothing above (the box
 * of the leaf grows). One that goes farther climbs to the first ancestor whose box holds it and is put anew from there,
 * into the child whose cost grows least. Boxes never shrink on the way; instead all are made tight from the leaves up
 * once as many changes have been made as there are points (a refit: one pass, in a whole tick's moves once a tick), and
 * if the leaves have become half as costly again as when the tree was built, or the points twice as many, it is built
 * anew. Both are spread over the
 * changes that made them necessary, so a change is O(log n) on average; single ones wait for a pass over all.
 *
 * Sources: the cost is the surface-area heuristic (J. Goldsmith and J. Salmon, "Automatic creation of object
 * hierarchies for ray tracing", 1987); refitting as in collision detection (G. van den Bergen, "Efficient collision
 * detection of complex deformable models using AABB trees", 1997); growing boxes instead of re-inserting as in the
 * dynamic trees of the physics engines. Balance: bvh_build.c. */
#include "aoi/bvh.h"

#include <string.h>

/* ---- tables ---- */

static bool bvh_init(struct stratum *stratum)
{
    struct bvh *t = (struct bvh *)stratum;
    t->root = t->node_free = t->bucket_free = TREE_NONE;
    return true;
}

static void bvh_close(struct stratum *stratum)
{
    struct bvh *t = (struct bvh *)stratum;
    free(t->nodes);
    free(t->buckets);
    free(t->items);
}

static size_t bvh_bytes(const struct stratum *stratum)
{
    const struct bvh *t = (const struct bvh *)stratum;
    return t->node_room * sizeof *t->nodes + t->bucket_room * sizeof *t->buckets + t->items_room * sizeof *t->items;
}

uint32_t bvh_node_take(struct bvh *t, uint32_t up)
{
    uint32_t node = t->node_free;
    if (node != TREE_NONE) {
        t->node_free = t->nodes[node].up;
        t->nodes_idle--;
    } else {
        void *nodes = t->nodes;
        CHECK(tree_table_reserve(&nodes, &t->node_room, (uint64_t)t->node_count + 1, sizeof *t->nodes));
        t->nodes = nodes;
        node = t->node_count++;
    }
    t->nodes[node] = (struct bvh_node){.up = up};
    return node;
}

void bvh_node_give(struct bvh *t, uint32_t node)
{
    t->nodes[node].up = t->node_free;
    t->node_free = node;
    t->nodes_idle++;
}

uint32_t bvh_bucket_take(struct bvh *t, uint32_t node, uint32_t next)
{
    uint32_t bucket = t->bucket_free;
    if (bucket != TREE_NONE) {
        t->bucket_free = t->buckets[bucket].next;
        t->buckets_idle--;
    } else {
        void *buckets = t->buckets;
        CHECK(tree_table_reserve(&buckets, &t->bucket_room, (uint64_t)t->bucket_count + 1, sizeof *t->buckets));
        t->buckets = buckets;
        bucket = t->bucket_count++;
    }
    t->buckets[bucket] = (struct bvh_bucket){.node = node, .next = next};
    return bucket;
}

void bvh_bucket_give(struct bvh *t, uint32_t bucket)
{
    t->buckets[bucket].next = t->bucket_free;
    t->bucket_free = bucket;
    t->buckets_idle++;
}

/* ---- putting ---- */

static void leaf_append(struct bvh *t, uint32_t leaf, uint32_t handle, struct position at)
{
    uint32_t bucket = t->nodes[leaf].count ? t->nodes[leaf].child[0] : TREE_NONE;
    if (bucket == TREE_NONE || t->buckets[bucket].count == SLOTS) {
        bucket = bvh_bucket_take(t, leaf, bucket);
        t->nodes[leaf].child[0] = bucket;
    }
    struct bvh_box point = box_of_point(at);
    if (t->nodes[leaf].count++) {
        box_add(&t->nodes[leaf].box, &point);
    } else {
        t->nodes[leaf].box = point;
    }
    bucket_write(t, bucket, t->buckets[bucket].count++, handle, at);
}

/* Puts `node` where `old` hangs. */
static void node_replace(struct bvh *t, uint32_t old, uint32_t node)
{
    uint32_t up = t->nodes[old].up;
    t->nodes[node].up = up;
    if (up == TREE_NONE) {
        t->root = node;
    } else {
        t->nodes[up].child[t->nodes[up].child[1] == old] = node;
    }
}

/* A leaf without room takes one more: it is cut in two, or, if all of it stands in one point, becomes longer or gets a
 * neighbour. Returns how many levels deeper the tree is there. */
static uint32_t leaf_overflow(struct bvh *t, uint32_t leaf, uint32_t handle, struct position at)
{
    struct bvh_box box = t->nodes[leaf].box;
    bool point = box.min[0] == box.max[0] && box.min[1] == box.max[1] && box.min[2] == box.max[2];
    if (point && box_has(&box, at)) {
        leaf_append(t, leaf, handle, at);
        return 0;
    }
    if (point) {
        uint32_t parent = bvh_node_take(t, TREE_NONE), other = bvh_node_take(t, parent);
        struct bvh_box newcomer = box_of_point(at);
        node_replace(t, leaf, parent);
        t->nodes[parent].box = box;
        box_add(&t->nodes[parent].box, &newcomer);
        t->nodes[parent].child[0] = leaf;
        t->nodes[parent].child[1] = other;
        t->nodes[leaf].up = parent;
        leaf_append(t, other, handle, at);
        return 1;
    }
    struct bvh_item items[SLOTS + 1] = {[SLOTS] = {.handle = handle, .at = {at.x, at.y, at.z}}};
    const struct bvh_bucket *b = &t->buckets[t->nodes[leaf].child[0]];
    CHECK(t->nodes[leaf].count == SLOTS);
    for (uint32_t i = 0; i < SLOTS; i++) {
        items[i].handle = b->handle[i];
        for (unsigned a = 0; a < TREE_AXES; a++) items[i].at[a] = b->at[a][i];
    }
    bvh_bucket_give(t, t->nodes[leaf].child[0]);
    bvh_build(t, leaf, items, SLOTS + 1);
    return 1;
}

static double growth(const struct bvh_box *box, const struct bvh_box *point)
{
    struct bvh_box grown = *box;
    box_add(&grown, point);
    return box_cost(&grown) - box_cost(box);
}

static uint32_t depth_of(const struct bvh *t, uint32_t node)
{
    uint32_t depth = 0;
    for (; t->nodes[node].up != TREE_NONE; node = t->nodes[node].up) depth++;
    return depth;
}

/* From a node down; the boxes of all above it hold the place. */
static void put_below(struct bvh *t, uint32_t node, uint32_t handle, struct position at)
{
    struct bvh_box point = box_of_point(at);
    while (t->nodes[node].count == 0) {
        struct bvh_node *n = &t->nodes[node];
        box_add(&n->box, &point);
        const struct bvh_box *left = &t->nodes[n->child[0]].box, *right = &t->nodes[n->child[1]].box;
        double a = growth(left, &point), b = growth(right, &point);
        node = n->child[b < a || (b == a && box_cost(right) < box_cost(left))];
    }
    if (t->nodes[node].count < SLOTS) {
        leaf_append(t, node, handle, at);
    } else if (leaf_overflow(t, node, handle, at)) {
        uint32_t leaf = t->buckets[where_of(t)[handle] / SLOTS].node;
        bvh_balance(t, leaf, depth_of(t, leaf));
    }
}

static void changed(struct bvh *t)
{
    if (++t->stale > t->base.population + SLOTS) bvh_refit(t);
}

static bool bvh_add(struct stratum *stratum, uint32_t handle)
{
    struct bvh *t = (struct bvh *)stratum;
    struct position at = stratum->engine->motes[handle].at;
    void *items = t->items;
    bool well = tree_table_reserve(&items, &t->items_room, (uint64_t)stratum->population + SLOTS + 1, sizeof *t->items);
    t->items = items;
    if (!well) return false;
    if (t->root == TREE_NONE) {
        t->root = bvh_node_take(t, TREE_NONE);
        leaf_append(t, t->root, handle, at);
    } else {
        put_below(t, t->root, handle, at);
    }
    changed(t);
    return true;
}

/* ---- taking ---- */

/* Takes a member out of its leaf, which may then be empty. Returns the leaf. */
static uint32_t leaf_remove(struct bvh *t, uint32_t handle)
{
    uint32_t bucket = where_of(t)[handle] / SLOTS, slot = where_of(t)[handle] % SLOTS, leaf = t->buckets[bucket].node;
    uint32_t first = t->nodes[leaf].child[0];
    struct bvh_bucket *from = &t->buckets[first];
    uint32_t last = --from->count;
    bucket_write(t, bucket, slot, from->handle[last], bucket_position(from, last));
    if (last == 0) {
        t->nodes[leaf].child[0] = from->next;
        bvh_bucket_give(t, first);
    }
    t->nodes[leaf].count--;
    return leaf;
}

/* An empty leaf goes, and its sibling takes its parent's place. */
static void leaf_prune(struct bvh *t, uint32_t leaf)
{
    if (t->nodes[leaf].count) return;
    uint32_t up = t->nodes[leaf].up;
    if (up == TREE_NONE) {
        t->root = TREE_NONE;
    } else {
        node_replace(t, up, t->nodes[up].child[t->nodes[up].child[0] == leaf]);
        bvh_node_give(t, up);
    }
    bvh_node_give(t, leaf);
}

static void bvh_remove(struct stratum *stratum, uint32_t handle)
{
    struct bvh *t = (struct bvh *)stratum;
    leaf_prune(t, leaf_remove(t, handle));
    changed(t);
}

static bool bvh_move(struct stratum *stratum, uint32_t handle, struct position to)
{
    struct bvh *t = (struct bvh *)stratum;
    uint32_t bucket = where_of(t)[handle] / SLOTS, leaf = t->buckets[bucket].node;
    struct bvh_node *n = &t->nodes[leaf];
    bool inside = box_has(&n->box, to), chain = n->count > SLOTS;
    if (!inside && !chain && (n->up == TREE_NONE || box_has(&t->nodes[n->up].box, to))) {
        struct bvh_box point = box_of_point(to);
        box_add(&n->box, &point);
        inside = true;
    }
    if (inside) {
        bucket_write(t, bucket, where_of(t)[handle] % SLOTS, handle, to);
        changed(t);
        return true;
    }
    uint32_t node = leaf;
    while (t->nodes[node].up != TREE_NONE && !box_has(&t->nodes[node].box, to)) node = t->nodes[node].up;
    leaf_remove(t, handle);
    if (t->nodes[leaf].count == 0) {
        const struct bvh_node *parent = &t->nodes[t->nodes[leaf].up];
        uint32_t sibling = parent->child[parent->child[0] == leaf];
        if (node == t->nodes[leaf].up) node = sibling; /* which takes its parent's place */
        leaf_prune(t, leaf);
    }
    put_below(t, node, handle, to);
    changed(t);
    return true;
}

/* ---- finding ---- */

static inline bool box_meets(const struct bvh_box *b, const struct volume *volume)
{
    return (b->min[0] <= volume->max.x) & (b->max[0] >= volume->min.x) & (b->min[1] <= volume->max.y) &
           (b->max[1] >= volume->min.y) & (b->min[2] <= volume->max.z) & (b->max[2] >= volume->min.z);
}

static inline bool box_inside(const struct bvh_box *b, const struct volume *volume)
{
    return (b->min[0] >= volume->min.x) & (b->max[0] <= volume->max.x) & (b->min[1] >= volume->min.y) &
           (b->max[1] <= volume->max.y) & (b->min[2] >= volume->min.z) & (b->max[2] <= volume->max.z);
}

/* Of one bucket's members those that are in the volume. */
static inline size_t bucket_sift(const struct bvh_bucket *b, const struct volume *volume, uint32_t *out)
{
    uint32_t in[SLOTS];
    for (uint32_t i = 0; i < SLOTS; i++) in[i] = i < b->count;
    for (unsigned a = 0; a < TREE_AXES; a++) {
        int32_t min = tree_axis(volume->min, a), max = tree_axis(volume->max, a);
        for (uint32_t i = 0; i < SLOTS; i++) in[i] &= (uint32_t)(b->at[a][i] >= min) & (uint32_t)(b->at[a][i] <= max);
    }
    size_t taken = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        out[taken] = b->handle[i];
        taken += in[i];
    }
    return taken;
}

/* A node that has still to be looked at; `whole`: all in it is wanted. */
struct task {
    uint32_t node;
    bool whole;
};

static void bvh_find(struct stratum *stratum, const struct volume *volume, struct found *found)
{
    const struct bvh *t = (const struct bvh *)stratum;
    struct task tasks[DEPTH_MOST];
    size_t count = 0;
    if (t->root != TREE_NONE) tasks[count++] = (struct task){.node = t->root};
    while (count) {
        struct task task = tasks[--count];
        const struct bvh_node *n = &t->nodes[task.node];
        if (!task.whole && !box_meets(&n->box, volume)) continue;
        bool whole = task.whole || box_inside(&n->box, volume);
        if (n->count == 0) {
            CHECK(count + 2 <= DEPTH_MOST);
            tasks[count++] = (struct task){.node = n->child[1], .whole = whole};
            tasks[count++] = (struct task){.node = n->child[0], .whole = whole};
            continue;
        }
        uint32_t *out = tree_found_end(found, n->count + SLOTS);
        for (uint32_t b = n->child[0]; b != TREE_NONE; b = t->buckets[b].next) {
            if (whole) {
                memcpy(out, t->buckets[b].handle, SLOTS * sizeof *out);
                out += t->buckets[b].count;
            } else {
                out += bucket_sift(&t->buckets[b], volume, out);
            }
        }
        found->count = (size_t)(out - found->handles);
    }
}

static const struct structure bvh = {.stratum_bytes = sizeof(struct bvh),
                                     .init = bvh_init,
                                     .close = bvh_close,
                                     .add = bvh_add,
                                     .remove = bvh_remove,
                                     .move = bvh_move,
                                     .find = bvh_find,
                                     .bytes = bvh_bytes};

const struct aoi_index index_bvh = {
    .info = {.name = "bvh",
             .about = "a binary tree of boxes, refitted as all move: for space without bounds and uneven crowds",
             .abilities = AOI_CAN_BLOCK | AOI_CAN_RADIUS | AOI_CAN_PLANE | AOI_CAN_SPACE},
    .create = engine_create,
    .ops = &engine_ops,
    .structure = &bvh,
};
