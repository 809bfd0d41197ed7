/* An R-tree for what moves (A. Guttman, "R-trees", 1984; cuts as in rtree_split.c).
 *
 * When it wins: where entities have an extent of their own (buildings, vehicles, areas of effect), since a rectangle is
 * one entry however large it is; and for queries of any size over a world that hardly moves.
 * When it loses: where all are points that walk. Every crossing of a leaf's border changes boxes on the way up.
 *
 * A rectangle that moves within the box of its leaf is changed in place. One that leaves it climbs to the first
 * ancestor whose box holds its new place, and is put anew from there (M. L. Lee and others, "Supporting frequent
 * updates in R-trees: a bottom-up approach", 2003); textbook trees, and the libraries that we measured, take it out and
 * put it in from the root. Boxes grow when somebody is put, and are made tight when somebody is taken out who touched
 * their border; in between they are at most too large, which costs time and no answer.
 *
 * Entries lie in columns of sixteen, so that a node is compared with the shape in a few vector instructions; on the way
 * down the least growth is found likewise. A node that becomes small goes into a sibling with room. */
#include "aoi/rtree.h"

#define SLOTS      RTREE_SLOTS
#define SMALL      5u /* a node with fewer entries looks for a sibling to go to */
#define DEPTH_MOST 32u

/* ---- tables ---- */

/* Where a handle is: leaf * SLOTS + slot. */
static inline uint32_t *where_of(const struct rtree *t)
{
    return t->base.engine->slots;
}

/* For one more change. The worst cuts a node at every level and makes a new root. */
static bool change_reserve(struct rtree *t)
{
    if (t->nodes_idle + (t->node_room - t->node_count) > DEPTH_MOST) return true;
    void *nodes = t->nodes;
    bool well = tree_table_reserve(&nodes, &t->node_room, (uint64_t)t->node_room + DEPTH_MOST, sizeof *t->nodes);
    t->nodes = nodes;
    return well;
}

static uint32_t node_take(struct rtree *t, uint32_t level)
{
    uint32_t node = t->node_free;
    if (node != TREE_NONE) {
        t->node_free = t->nodes[node].up;
        t->nodes_idle--;
    } else {
        CHECK(t->node_count < t->node_room);
        node = t->node_count++;
    }
    t->nodes[node].up = TREE_NONE;
    t->nodes[node].count = 0;
    t->nodes[node].level = (uint16_t)level;
    return node;
}

static bool rtree_init(struct stratum *stratum)
{
    struct rtree *t = (struct rtree *)stratum;
    t->node_free = TREE_NONE;
    if (!change_reserve(t)) return false;
    t->root = node_take(t, 0);
    return true;
}

static void rtree_close(struct stratum *stratum)
{
    free(((struct rtree *)stratum)->nodes);
}

static size_t rtree_bytes(const struct stratum *stratum)
{
    const struct rtree *t = (const struct rtree *)stratum;
    return t->node_room * sizeof *t->nodes;
}

static void node_give(struct rtree *t, uint32_t node)
{
    t->nodes[node].up = t->node_free;
    t->node_free = node;
    t->nodes_idle++;
}

/* ---- entries ---- */

static struct rtree_box entry_box(const struct rtree_node *n, uint32_t slot)
{
    return (struct rtree_box){.min = {n->min[0][slot], n->min[1][slot]}, .max = {n->max[0][slot], n->max[1][slot]}};
}

static void entry_set_box(struct rtree_node *n, uint32_t slot, const struct rtree_box *b)
{
    for (unsigned a = 0; a < 2; a++) {
        n->min[a][slot] = b->min[a];
        n->max[a][slot] = b->max[a];
    }
}

static void entry_set(struct rtree *t, uint32_t node, uint32_t slot, const struct rtree_box *box, uint32_t child)
{
    struct rtree_node *n = &t->nodes[node];
    entry_set_box(n, slot, box);
    n->child[slot] = child;
    if (n->level) {
        t->nodes[child].up = node * SLOTS + slot;
    } else {
        where_of(t)[child] = node * SLOTS + slot;
    }
}

static void entry_remove(struct rtree *t, uint32_t node, uint32_t slot)
{
    struct rtree_node *n = &t->nodes[node];
    uint32_t last = --n->count;
    if (slot == last) return;
    struct rtree_box box = entry_box(n, last);
    entry_set(t, node, slot, &box, n->child[last]);
}

static struct rtree_box node_box(const struct rtree_node *n)
{
    struct rtree_box box = entry_box(n, 0);
    for (uint32_t i = 1; i < n->count; i++) {
        struct rtree_box more = entry_box(n, i);
        rtree_box_add(&box, &more);
    }
    return box;
}

static bool box_holds(const struct rtree_box *a, const struct rtree_box *b)
{
    return a->min[0] <= b->min[0] && a->min[1] <= b->min[1] && a->max[0] >= b->max[0] && a->max[1] >= b->max[1];
}

static bool box_touches(const struct rtree_box *outer, const struct rtree_box *b)
{
    return outer->min[0] == b->min[0] || outer->min[1] == b->min[1] || outer->max[0] == b->max[0] ||
           outer->max[1] == b->max[1];
}

/* The parent's entry of a node that has one. */
static struct rtree_box box_above(const struct rtree *t, uint32_t node)
{
    uint32_t up = t->nodes[node].up;
    return entry_box(&t->nodes[up / SLOTS], up % SLOTS);
}

/* ---- putting ---- */

/* The slot whose box grows least; of those the smallest. */
static uint32_t least_growth(const struct rtree_node *n, const struct rtree_box *box)
{
    float growth[SLOTS], area[SLOTS];
    for (uint32_t i = 0; i < SLOTS; i++) {
        float sides[2], grown[2];
        for (unsigned a = 0; a < 2; a++) {
            int32_t min = n->min[a][i] < box->min[a] ? n->min[a][i] : box->min[a];
            int32_t max = n->max[a][i] > box->max[a] ? n->max[a][i] : box->max[a];
            sides[a] = (float)n->max[a][i] - (float)n->min[a][i] + 1; /* as rtree_area */
            grown[a] = (float)max - (float)min + 1;
        }
        area[i] = sides[0] * sides[1];
        growth[i] = grown[0] * grown[1] - area[i];
    }
    uint32_t best = 0;
    for (uint32_t i = 1; i < n->count; i++) {
        if (growth[i] < growth[best] || (growth[i] == growth[best] && area[i] < area[best])) best = i;
    }
    return best;
}

/* Makes the boxes above a node hold what its box is now. */
static void boxes_grow(struct rtree *t, uint32_t node, const struct rtree_box *box)
{
    for (uint32_t up; (up = t->nodes[node].up) != TREE_NONE; node = up / SLOTS) {
        struct rtree_box above = entry_box(&t->nodes[up / SLOTS], up % SLOTS);
        if (box_holds(&above, box)) return;
        rtree_box_add(&above, box);
        entry_set_box(&t->nodes[up / SLOTS], up % SLOTS, &above);
    }
}

static void node_add(struct rtree *t, uint32_t node, const struct rtree_box *box, uint32_t child);

/* Cuts a full node in two, and puts the second half beside it. */
static void node_split(struct rtree *t, uint32_t node, const struct rtree_box *box, uint32_t child)
{
    struct rtree_node *n = &t->nodes[node];
    struct rtree_box boxes[SLOTS + 1];
    uint32_t children[SLOTS + 1];
    for (uint32_t i = 0; i < SLOTS; i++) {
        boxes[i] = entry_box(n, i);
        children[i] = n->child[i];
    }
    boxes[SLOTS] = *box;
    children[SLOTS] = child;
    uint32_t other = node_take(t, n->level), moved = rtree_split(boxes);
    n->count = 0;
    for (uint32_t i = 0; i <= SLOTS; i++) {
        uint32_t to = moved >> i & 1 ? other : node;
        entry_set(t, to, t->nodes[to].count++, &boxes[i], children[i]);
    }
    struct rtree_box stays = node_box(n), goes = node_box(&t->nodes[other]);
    if (n->up == TREE_NONE) {
        uint32_t root = node_take(t, n->level + 1u);
        entry_set(t, root, t->nodes[root].count++, &stays, node);
        entry_set(t, root, t->nodes[root].count++, &goes, other);
        t->root = root;
        return;
    }
    uint32_t parent = n->up / SLOTS;
    entry_set_box(&t->nodes[parent], n->up % SLOTS, &stays);
    node_add(t, parent, &goes, other);
}

/* The node must be able to hold it as far as its level goes; the boxes above may still have to grow. */
static void node_add(struct rtree *t, uint32_t node, const struct rtree_box *box, uint32_t child)
{
    if (t->nodes[node].count == SLOTS) {
        node_split(t, node, box, child);
        return;
    }
    entry_set(t, node, t->nodes[node].count++, box, child);
}

static void put_below(struct rtree *t, uint32_t node, uint32_t handle, const struct rtree_box *box)
{
    while (t->nodes[node].level) node = t->nodes[node].child[least_growth(&t->nodes[node], box)];
    boxes_grow(t, node, box);
    node_add(t, node, box, handle);
}

static int32_t clamped(int64_t v)
{
    return v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : (int32_t)v;
}

static struct rtree_box mote_box(const struct mote *mote, struct position at)
{
    int64_t x = mote->extent_x, y = mote->extent_y;
    return (struct rtree_box){.min = {clamped(at.x - x), clamped(at.y - y)},
                              .max = {clamped(at.x + x), clamped(at.y + y)}};
}

static bool rtree_add(struct stratum *stratum, uint32_t handle)
{
    struct rtree *t = (struct rtree *)stratum;
    const struct mote *mote = &stratum->engine->motes[handle];
    struct rtree_box box = mote_box(mote, mote->at);
    if (!change_reserve(t)) return false;
    put_below(t, t->root, handle, &box);
    return true;
}

/* ---- taking ---- */

/* Makes the boxes above a node tight, as far up as that changes anything. */
static void boxes_tighten(struct rtree *t, uint32_t node)
{
    for (uint32_t up; (up = t->nodes[node].up) != TREE_NONE; node = up / SLOTS) {
        struct rtree_box box = node_box(&t->nodes[node]), above = entry_box(&t->nodes[up / SLOTS], up % SLOTS);
        if (box_holds(&box, &above)) return;
        entry_set_box(&t->nodes[up / SLOTS], up % SLOTS, &box);
    }
}

/* The sibling with room whose box would grow least; TREE_NONE: there is none. */
static uint32_t sibling_with_room(const struct rtree *t, uint32_t node)
{
    uint32_t up = t->nodes[node].up, best = TREE_NONE;
    const struct rtree_node *parent = &t->nodes[up / SLOTS];
    struct rtree_box own = entry_box(parent, up % SLOTS);
    double least = 0;
    for (uint32_t i = 0; i < parent->count; i++) {
        if (i == up % SLOTS || t->nodes[parent->child[i]].count + t->nodes[node].count > SLOTS - 2) continue;
        struct rtree_box both = entry_box(parent, i);
        double area = rtree_area(&both);
        rtree_box_add(&both, &own);
        double growth = rtree_area(&both) - area;
        if (best != TREE_NONE && growth >= least) continue;
        best = i;
        least = growth;
    }
    return best;
}

/* A node has lost an entry: it may be empty or small, and so may those above become. */
static void node_condense(struct rtree *t, uint32_t node)
{
    for (;;) {
        struct rtree_node *n = &t->nodes[node];
        if (n->up == TREE_NONE) break;
        uint32_t parent = n->up / SLOTS, slot = n->up % SLOTS;
        if (n->count >= SMALL) return;
        if (n->count) {
            uint32_t sibling = sibling_with_room(t, node);
            if (sibling == TREE_NONE) return;
            uint32_t to = t->nodes[parent].child[sibling];
            struct rtree_box both = entry_box(&t->nodes[parent], sibling), own = node_box(n);
            rtree_box_add(&both, &own);
            entry_set_box(&t->nodes[parent], sibling, &both);
            for (uint32_t i = 0; i < n->count; i++) {
                struct rtree_box box = entry_box(n, i);
                entry_set(t, to, t->nodes[to].count++, &box, n->child[i]);
            }
        }
        node_give(t, node);
        entry_remove(t, parent, slot);
        if (t->nodes[parent].count) boxes_tighten(t, parent);
        node = parent;
    }
    /* A root with one child gives way to it; an empty one becomes a leaf. */
    struct rtree_node *root = &t->nodes[node];
    if (root->count == 0) {
        root->level = 0;
    } else if (root->level && root->count == 1) {
        t->root = root->child[0];
        t->nodes[root->child[0]].up = TREE_NONE;
        node_give(t, node);
    }
}

/* Takes an entry out of its leaf; the leaf is left as it is, perhaps empty. */
static void leaf_remove(struct rtree *t, uint32_t leaf, uint32_t slot)
{
    struct rtree_box box = entry_box(&t->nodes[leaf], slot);
    entry_remove(t, leaf, slot);
    if (!t->nodes[leaf].count || t->nodes[leaf].up == TREE_NONE) return;
    struct rtree_box above = box_above(t, leaf);
    if (box_touches(&above, &box)) boxes_tighten(t, leaf);
}

static void rtree_remove(struct stratum *stratum, uint32_t handle)
{
    struct rtree *t = (struct rtree *)stratum;
    uint32_t at = where_of(t)[handle], leaf = at / SLOTS;
    leaf_remove(t, leaf, at % SLOTS);
    node_condense(t, leaf);
}

static bool rtree_move(struct stratum *stratum, uint32_t handle, struct position to)
{
    struct rtree *t = (struct rtree *)stratum;
    struct rtree_box box = mote_box(&stratum->engine->motes[handle], to);
    uint32_t at = where_of(t)[handle], leaf = at / SLOTS, node = leaf;
    while (t->nodes[node].up != TREE_NONE) {
        struct rtree_box above = box_above(t, node);
        if (box_holds(&above, &box)) break;
        node = t->nodes[node].up / SLOTS;
    }
    if (node == leaf) {
        entry_set_box(&t->nodes[leaf], at % SLOTS, &box);
        return true;
    }
    if (!change_reserve(t)) return false;
    /* Put first: what condensing gives back must not be what is gone down from. */
    leaf_remove(t, leaf, at % SLOTS);
    put_below(t, node, handle, &box);
    node_condense(t, leaf);
    return true;
}

/* ---- finding ---- */

/* A bit for each entry that meets the volume. */
static inline uint32_t node_sift(const struct rtree_node *n, const struct volume *volume)
{
    int32_t min_x = volume->min.x, min_y = volume->min.y, max_x = volume->max.x, max_y = volume->max.y;
    uint32_t in[SLOTS], bits = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        in[i] = (uint32_t)(n->min[0][i] <= max_x) & (uint32_t)(n->max[0][i] >= min_x) &
                (uint32_t)(n->min[1][i] <= max_y) & (uint32_t)(n->max[1][i] >= min_y);
    }
    for (uint32_t i = 0; i < SLOTS; i++) bits |= in[i] << i;
    return bits & ((1u << n->count) - 1);
}

static void rtree_find(struct stratum *stratum, const struct volume *volume, struct found *found)
{
    const struct rtree *t = (const struct rtree *)stratum;
    uint32_t tasks[DEPTH_MOST * SLOTS];
    size_t count = 0;
    tasks[count++] = t->root;
    while (count) {
        const struct rtree_node *n = &t->nodes[tasks[--count]];
        uint32_t bits = node_sift(n, volume);
        if (n->level) {
            for (; bits; bits &= bits - 1) tasks[count++] = n->child[__builtin_ctz(bits)];
        } else {
            uint32_t *out = tree_found_end(found, SLOTS);
            for (; bits; bits &= bits - 1) *out++ = n->child[__builtin_ctz(bits)];
            found->count = (size_t)(out - found->handles);
        }
    }
}

static const struct structure rtree = {.stratum_bytes = sizeof(struct rtree),
                                       .init = rtree_init,
                                       .close = rtree_close,
                                       .add = rtree_add,
                                       .remove = rtree_remove,
                                       .move = rtree_move,
                                       .find = rtree_find,
                                       .bytes = rtree_bytes};

const struct aoi_index index_rtree = {
    .info = {.name = "rtree",
             .about = "nested rectangles: for entities that have an extent, and for queries of any shape and size",
             .abilities = AOI_CAN_BLOCK | AOI_CAN_RADIUS | AOI_CAN_PLANE | AOI_CAN_EXTENT},
    .create = engine_create,
    .ops = &engine_ops,
    .structure = &rtree,
};
