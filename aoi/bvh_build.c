/* How the hierarchy is built and kept in shape.
 *
 * Built from the top: the points are cut in two at the median of their longest axis, with equals on the same side, down
 * to leaves of eight. Points that are all the same become one leaf, a chain.
 *
 * Nobody keeps the balance of a single change. If a leaf comes to be deeper than twice log2(n) and some, then some part
 * above it holds more than two thirds of its points in one half; the lowest such part is built anew. (That is the
 * scapegoat tree: I. Galperin and R. Rivest, 1993. Log n a change on average, without a word in the nodes.) */
#include "aoi/bvh.h"

#include <string.h>

static int32_t middle_of_three(int32_t a, int32_t b, int32_t c)
{
    int32_t low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

/* Those below `value` to the front; how many they are. */
static uint32_t items_part(struct bvh_item *items, uint32_t count, unsigned axis, int64_t value)
{
    uint32_t below = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].at[axis] >= value) continue;
        struct bvh_item item = items[i];
        items[i] = items[below];
        items[below++] = item;
    }
    return below;
}

/* Cuts the items, which are not all equal on the axis, near the median; how many are in front. */
static uint32_t items_cut(struct bvh_item *items, uint32_t count, unsigned axis)
{
    uint32_t low = 0, high = count, half = count / 2;
    while (high - low > 1) { /* the median lies in [low, high); those in front are smaller, those behind larger */
        int32_t pivot =
            middle_of_three(items[low].at[axis], items[(low + high) / 2].at[axis], items[high - 1].at[axis]);
        uint32_t below = low + items_part(items + low, high - low, axis, pivot);
        uint32_t equal = below + items_part(items + below, high - below, axis, (int64_t)pivot + 1);
        if (half < below) {
            high = below;
        } else if (half >= equal) {
            low = equal;
        } else { /* the median is the pivot: its equals go to the side that is smaller without them */
            if (below == 0) return equal;
            if (equal == count) return below;
            return half - below < equal - half ? below : equal;
        }
    }
    return half ? half : 1;
}

static struct bvh_box items_box(const struct bvh_item *items, uint32_t count)
{
    struct bvh_box box;
    for (unsigned a = 0; a < TREE_AXES; a++) box.min[a] = box.max[a] = items[0].at[a];
    for (uint32_t i = 1; i < count; i++) {
        for (unsigned a = 0; a < TREE_AXES; a++) {
            if (items[i].at[a] < box.min[a]) box.min[a] = items[i].at[a];
            if (items[i].at[a] > box.max[a]) box.max[a] = items[i].at[a];
        }
    }
    return box;
}

static void leaf_build(struct bvh *t, uint32_t node, const struct bvh_item *items, uint32_t count)
{
    uint32_t bucket = TREE_NONE;
    t->nodes[node].count = count;
    for (uint32_t i = 0; i < count; i++) {
        if (bucket == TREE_NONE || t->buckets[bucket].count == SLOTS) bucket = bvh_bucket_take(t, node, bucket);
        struct position at = {.x = items[i].at[0], .y = items[i].at[1], .z = items[i].at[2]};
        bucket_write(t, bucket, t->buckets[bucket].count++, items[i].handle, at);
    }
    t->nodes[node].child[0] = bucket;
}

void bvh_build(struct bvh *t, uint32_t node, struct bvh_item *items, uint32_t count)
{
    struct bvh_box box = items_box(items, count);
    t->nodes[node].box = box;
    unsigned axis = 0;
    for (unsigned a = 1; a < TREE_AXES; a++) {
        if ((int64_t)box.max[a] - box.min[a] > (int64_t)box.max[axis] - box.min[axis]) axis = a;
    }
    if (count <= SLOTS || box.max[axis] == box.min[axis]) {
        leaf_build(t, node, items, count);
        return;
    }
    uint32_t front = items_cut(items, count, axis);
    t->nodes[node].count = 0;
    for (unsigned side = 0; side < 2; side++) {
        uint32_t child = bvh_node_take(t, node);
        t->nodes[node].child[side] = child;
        bvh_build(t, child, side ? items + front : items, side ? count - front : front);
    }
}

/* Gives back all below a node, its members into items. Returns how many there are now. */
static uint32_t part_clear(struct bvh *t, uint32_t node, uint32_t count)
{
    struct bvh_node n = t->nodes[node];
    if (n.count == 0) {
        for (unsigned side = 0; side < 2; side++) {
            count = part_clear(t, n.child[side], count);
            bvh_node_give(t, n.child[side]);
        }
        return count;
    }
    for (uint32_t bucket = n.child[0], next; bucket != TREE_NONE; bucket = next) {
        const struct bvh_bucket *b = &t->buckets[bucket];
        for (uint32_t i = 0; i < b->count; i++) {
            t->items[count++] = (struct bvh_item){b->handle[i], {b->at[0][i], b->at[1][i], b->at[2][i]}};
        }
        next = b->next;
        bvh_bucket_give(t, bucket);
    }
    return count;
}

static void part_rebuild(struct bvh *t, uint32_t node)
{
    uint32_t count = part_clear(t, node, 0);
    bvh_build(t, node, t->items, count);
}

static uint32_t part_count(const struct bvh *t, uint32_t node)
{
    const struct bvh_node *n = &t->nodes[node];
    return n->count ? n->count : part_count(t, n->child[0]) + part_count(t, n->child[1]);
}

void bvh_balance(struct bvh *t, uint32_t leaf, uint32_t depth)
{
    uint32_t limit = DEPTH_SPARE;
    for (uint32_t rest = t->base.population; rest; rest >>= 1) limit += 2;
    if (depth <= limit) return;
    uint32_t node = leaf;
    for (uint64_t count = part_count(t, node); t->nodes[node].up != TREE_NONE;) {
        uint32_t up = t->nodes[node].up;
        uint64_t more = part_count(t, t->nodes[up].child[t->nodes[up].child[0] == node]);
        node = up;
        if (3 * count > 2 * (count + more)) break;
        count += more;
    }
    part_rebuild(t, node);
}

/* ---- refitting ---- */

struct quality {
    double cost;
    uint64_t leaves;
};

static void part_refit(struct bvh *t, uint32_t node, struct quality *quality)
{
    struct bvh_node *n = &t->nodes[node];
    if (n->count) {
        n->box = bucket_box(&t->buckets[n->child[0]]);
        quality->cost += box_cost(&n->box);
        quality->leaves++;
        return;
    }
    part_refit(t, n->child[0], quality);
    part_refit(t, n->child[1], quality);
    n->box = t->nodes[n->child[0]].box;
    box_add(&n->box, &t->nodes[n->child[1]].box);
}

/* Returns the mean cost of a leaf. */
static double all_refit(struct bvh *t)
{
    struct quality quality = {0};
    if (t->root == TREE_NONE) return 0;
    part_refit(t, t->root, &quality);
    return quality.cost / (double)quality.leaves;
}

/* All anew, in memory in the order from left to right, so that neighbours in the world are neighbours there. */
static void all_rebuild(struct bvh *t)
{
    uint32_t count = part_clear(t, t->root, 0);
    t->node_count = t->nodes_idle = t->bucket_count = t->buckets_idle = 0;
    t->node_free = t->bucket_free = TREE_NONE;
    t->root = bvh_node_take(t, TREE_NONE);
    bvh_build(t, t->root, t->items, count);
    t->built_count = count;
}

void bvh_refit(struct bvh *t)
{
    t->stale = 0;
    if (t->root == TREE_NONE) return;
    if (all_refit(t) <= t->built * 1.5 && t->base.population / 2 <= t->built_count) return;
    all_rebuild(t);
    t->built = all_refit(t);
}
