#include "gateway/internal.h"

bool gateway_map_is_server(const struct gateway *g, struct node_id node)
{
    const struct node_info *info = ownership_node(&g->map, node);
    return info != NULL && info->role == ROLE_CELLSERVER;
}

struct node_id gateway_map_owner(const struct gateway *g, struct position p)
{
    const struct leaf_owner *leaf = ownership_at(&g->map, &g->world, p);
    return leaf == NULL ? NODE_NONE : leaf->primary;
}

struct walk {
    const struct gateway *g;
    int64_t min_x, min_y, max_x, max_y;
    gateway_map_visit *visit;
    void *context;
};

/* The first leaf in [from, to) that is not before k. */
static uint32_t lower_bound(const struct ownership_list *list, uint32_t from, uint32_t to, struct quadkey k)
{
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (quadkey_compare(list->leaves[middle].leaf, k) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Leaves [from, to) of the sorted list lie in region k. Depth-first, at most LIMIT_QUADKEY_DEPTH deep. */
static void walk_region(const struct walk *walk, struct quadkey k, uint32_t from, uint32_t to)
{
    const struct ownership_list *list = &walk->g->map.now;
    if (from == to) return;
    struct square square = quadkey_square(&walk->g->world, k);
    if (!square_meets_rectangle(square, walk->min_x, walk->min_y, walk->max_x, walk->max_y)) return;
    if (quadkey_equal(list->leaves[from].leaf, k)) {
        walk->visit(walk->context, &list->leaves[from]);
        return;
    }
    if (quadkey_depth(k) >= walk->g->world.resolution_bits || quadkey_depth(k) >= LIMIT_QUADKEY_DEPTH) return;
    for (uint32_t digit = 0; digit < 4; digit++) {
        uint32_t end = to;
        if (digit < 3) end = lower_bound(list, from, to, quadkey_child(k, digit + 1));
        walk_region(walk, quadkey_child(k, digit), from, end);
        from = end;
    }
}

void gateway_map_leaves(const struct gateway *g, int64_t min_x, int64_t min_y, int64_t max_x, int64_t max_y,
                        gateway_map_visit *visit, void *context)
{
    struct walk walk = {g, min_x, min_y, max_x, max_y, visit, context};
    walk_region(&walk, QUADKEY_ROOT, 0, g->map.now.leaf_count);
}

/* Tells whether the set of leaves is another one; owners do not count. */
static uint64_t leaves_signature(const struct ownership_list *list)
{
    uint64_t signature = UINT64_C(0xcbf29ce484222325) + list->leaf_count; /* no set of leaves gives 0 */
    for (uint32_t i = 0; i < list->leaf_count; i++) {
        signature = (signature ^ list->leaves[i].leaf.v) * 0x9e3779b97f4a7c15ULL;
        signature ^= signature >> 29;
    }
    return signature;
}

/* Who can own an entity: whoever owns a leaf. */
static void find_owners(struct gateway *g)
{
    struct table seen = {0};
    g->owner_count = 0;
    ARRAY_RESERVE(g->owners, g->owner_room, g->map.now.node_count + 1u);
    for (uint32_t i = 0; i < g->map.now.leaf_count; i++) {
        struct node_id node = g->map.now.leaves[i].primary;
        if (node.v == 0 || !gateway_map_is_server(g, node) || table_get(&seen, node.v) != TABLE_NONE) continue;
        table_put(&seen, node.v, g->owner_count);
        g->owners[g->owner_count++] = node;
    }
    table_close(&seen);
}

static bool map_fits_world(const struct gateway *g)
{
    return g->map.now.depth_max <= g->world.resolution_bits;
}

void gateway_map_apply(struct gateway *g, struct map *map)
{
    switch (ownership_apply(&g->map, map)) {
    case OWNERSHIP_SAME: return;
    case OWNERSHIP_ASK: gateway_membership_ask_map(g); return;
    case OWNERSHIP_CHANGED: break;
    }
    if (!map_fits_world(g)) g->counters.malformed++;
    g->coordinator.ask_us = 0;
    find_owners(g);
    gateway_peers_map_changed(g);
    uint64_t signature = leaves_signature(&g->map.now);
    if (signature != g->leaves_signature) gateway_watch_rebuild(g);
    g->leaves_signature = signature;
    gateway_watch_epochs(g);
    gateway_owners_follow(g);
    gateway_seeks_renew(g);
    gateway_requests_moved(g);
    gateway_requests_retry(g);
    gateway_want_flush(g, 0); /* whoever waits for a successor has waited long enough */
    if (!g->ready_told && gateway_is_ready(g)) {
        g->ready_told = true;
        struct note note = {.kind = NOTE_READY};
        gateway_notify(g, &note, NULL, 0);
    }
}
