/* Who is in a volume, and the tables in Z-order.
 *
 * A node that lies in the volume as a whole is taken without a look at its members; of a leaf that does not, eight
 * positions are compared at a time. */
#include "aoi/orthtree_bucket.h"

#include <string.h>

/* The volume as offsets from the root's corner. */
struct want {
    const struct volume *volume;
    int64_t min[TREE_AXES], max[TREE_AXES];
    bool all_z; /* z does not matter */
};

/* A node that has still to be looked at; `whole`: all in it is wanted. */
struct task {
    struct spot spot;
    bool whole;
};

/* False: nobody can be there. */
static bool want_open(struct want *want, const struct orthtree *t, unsigned axes, const struct volume *volume)
{
    *want = (struct want){.volume = volume};
    int64_t top = (INT64_C(1) << t->top_shift) - 1;
    for (unsigned a = 0; a < axes; a++) {
        int64_t min = tree_axis(volume->min, a) - t->corner[a], max = tree_axis(volume->max, a) - t->corner[a];
        bool clamped = a == 2 && t->z_clamped;
        if (min > max || (!clamped && (max < 0 || min > top))) return false;
        want->min[a] = min < 0 ? 0 : min > top ? top : min;
        want->max[a] = max < 0 ? 0 : max > top ? top : max;
    }
    want->all_z = volume->min.z == INT32_MIN && volume->max.z == INT32_MAX;
    return true;
}

/* Whether all in the node is wanted. Of z without bounds the lowest and the highest node hold more than they say. */
static inline bool want_holds(const struct want *want, const struct orthtree *t, unsigned axes, const struct spot *s)
{
    int64_t side = (INT64_C(1) << s->shift) - 1;
    for (unsigned a = 0; a < axes; a++) {
        int64_t low = s->corner[a], high = low + side;
        if (want->min[a] > low || want->max[a] < high) return false;
        if (a == 2 && t->z_clamped && !want->all_z && (low == 0 || (high + 1) >> t->top_shift)) return false;
    }
    return true;
}

/* Of one bucket's `count` members those that are in the volume. */
static inline size_t bucket_sift(const uint32_t *bucket, unsigned axes, uint32_t count, const struct volume *volume,
                                 uint32_t *out)
{
    uint32_t in[SLOTS];
    for (uint32_t i = 0; i < SLOTS; i++) in[i] = i < count;
    for (unsigned a = 0; a < axes; a++) {
        const uint32_t *column = bucket + SLOTS * (1 + a);
        int32_t min = tree_axis(volume->min, a), max = tree_axis(volume->max, a);
        for (uint32_t i = 0; i < SLOTS; i++) {
            int32_t p = (int32_t)column[i];
            in[i] &= (uint32_t)(p >= min) & (uint32_t)(p <= max);
        }
    }
    size_t taken = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        out[taken] = bucket[i];
        taken += in[i];
    }
    return taken;
}

static inline void leaf_find(const struct orthtree *t, unsigned axes, const struct orthtree_node *leaf,
                             const struct volume *volume, bool whole, struct found *found)
{
    uint32_t *out = tree_found_end(found, leaf->count + SLOTS);
    for (uint32_t bucket = leaf->first; bucket != TREE_NONE;) {
        uint32_t *words = bucket_at(t, axes, bucket);
        const uint32_t *tail = bucket_tail(words, axes);
        if (whole) {
            memcpy(out, words, SLOTS * sizeof *words);
            out += tail[WORD_COUNT];
        } else {
            out += bucket_sift(words, axes, tail[WORD_COUNT], volume, out);
        }
        bucket = tail[WORD_NEXT];
    }
    found->count = (size_t)(out - found->handles);
}

/* Pushes those children that the box meets. */
static inline size_t tasks_push(const struct orthtree *t, unsigned axes, const struct want *want,
                                const struct task *parent, struct task *tasks, size_t count)
{
    uint32_t sides[TREE_AXES]; /* by axis: 1 for the lower half, 2 for the upper, 3 for both */
    uint32_t shift = parent->spot.shift - 1;
    for (unsigned a = 0; a < axes; a++) {
        int64_t middle = parent->spot.corner[a] + (INT64_C(1) << shift);
        sides[a] = parent->whole ? 3u : (uint32_t)(want->min[a] < middle) | (uint32_t)(want->max[a] >= middle) << 1;
    }
    uint32_t children = t->nodes[parent->spot.node].first;
    for (uint32_t i = 1u << axes; i-- > 0;) {
        uint32_t bits = sides[0] >> (i & 1) & sides[1] >> (i >> 1 & 1) & (axes == 3 ? sides[2] >> (i >> 2) : 1u) & 1u;
        if (!bits || t->nodes[children + i].count == 0) continue;
        struct task *task = &tasks[count++];
        *task = (struct task){.spot = {.node = children + i, .shift = shift}, .whole = parent->whole};
        for (unsigned a = 0; a < axes; a++) task->spot.corner[a] = parent->spot.corner[a] | (i >> a & 1) << shift;
    }
    return count;
}

static inline void find(const struct orthtree *t, unsigned axes, const struct volume *volume, struct found *found)
{
    struct want want;
    if (!want_open(&want, t, axes, volume)) return;
    struct task tasks[DEPTH_MOST * ((1u << TREE_AXES) - 1) + 1];
    size_t count = 0;
    tasks[count++] = (struct task){.spot = {.shift = t->top_shift}};
    while (count) {
        struct task task = tasks[--count];
        const struct orthtree_node *node = &t->nodes[task.spot.node];
        task.whole = task.whole || want_holds(&want, t, axes, &task.spot);
        if (node->count == INNER) {
            count = tasks_push(t, axes, &want, &task, tasks, count);
        } else if (node->count) {
            leaf_find(t, axes, node, volume, task.whole, found);
        }
    }
}

void orthtree_find(struct stratum *stratum, const struct volume *volume, struct found *found)
{
    const struct orthtree *t = (const struct orthtree *)stratum;
    if (t->axes == 2) {
        find(t, 2, volume, found);
    } else {
        find(t, 3, volume, found);
    }
}

/* ---- Z-order ---- */

/* Copies a leaf's chain; the buckets follow each other. */
static uint32_t chain_copy(struct orthtree *t, unsigned axes, uint32_t first, uint32_t node, uint32_t *words,
                           uint32_t *count)
{
    uint32_t start = *count;
    for (uint32_t bucket = first; bucket != TREE_NONE;) {
        uint32_t *from = bucket_at(t, axes, bucket), *to = words + (size_t)*count * stride(axes);
        memcpy(to, from, stride(axes) * sizeof *to);
        uint32_t *tail = bucket_tail(to, axes);
        for (uint32_t i = 0; i < tail[WORD_COUNT]; i++) where_of(t)[to[i]] = *count * SLOTS + i;
        bucket = tail[WORD_NEXT];
        tail[WORD_NODE] = node;
        ++*count;
        if (bucket != TREE_NONE) tail[WORD_NEXT] = *count;
    }
    return start;
}

/* New tables, filled in the order in which the nodes are met on the way down, lowest corner first. */
static void settle_into(struct orthtree *t, struct orthtree_node *nodes, uint32_t *parents, uint32_t *words)
{
    struct {
        uint32_t from, to;
    } tasks[DEPTH_MOST * ((1u << TREE_AXES) - 1) + 1] = {{0, 0}};
    uint32_t blocks = 1, buckets = 0, siblings = 1u << t->axes;
    size_t count = 1;
    memcpy(nodes, t->nodes, siblings * sizeof *nodes);
    parents[0] = TREE_NONE;
    while (count) {
        uint32_t from = tasks[--count].from, to = tasks[count].to;
        struct orthtree_node node = t->nodes[from];
        if (node.count == INNER) {
            uint32_t children = blocks++ << t->axes;
            parents[children >> t->axes] = to;
            nodes[to] = (struct orthtree_node){.first = children, .count = INNER};
            for (uint32_t c = siblings; c-- > 0;) {
                nodes[children + c] = (struct orthtree_node){.first = TREE_NONE};
                if (!t->nodes[node.first + c].count) continue;
                tasks[count].from = node.first + c;
                tasks[count++].to = children + c;
            }
        } else if (node.count) {
            nodes[to] = node;
            nodes[to].first = chain_copy(t, t->axes, node.first, to, words, &buckets);
        }
    }
    t->block_count = blocks;
    t->bucket_count = buckets;
}

void orthtree_settle(struct orthtree *t)
{
    t->churn = 0;
    struct orthtree_node *nodes = malloc(((size_t)t->block_room << t->axes) * sizeof *nodes);
    uint32_t *parents = malloc(t->block_room * sizeof *parents);
    uint32_t *words = malloc((size_t)t->bucket_room * stride(t->axes) * sizeof *words);
    if (!nodes || !parents || !words) { /* then they stay as they are, which is slower and as right */
        free(nodes);
        free(parents);
        free(words);
        return;
    }
    settle_into(t, nodes, parents, words);
    free(t->nodes);
    free(t->parents);
    free(t->words);
    t->nodes = nodes;
    t->parents = parents;
    t->words = words;
    t->block_free = t->bucket_free = TREE_NONE;
    t->blocks_idle = t->buckets_idle = 0;
}
