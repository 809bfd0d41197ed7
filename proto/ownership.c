#include "proto/ownership.h"

#include "common/array.h"
#include "common/check.h"
#include "common/geometry.h"

#include <stdlib.h>
#include <string.h>

static void list_close(struct ownership_list *list)
{
    free(list->leaves);
    free(list->nodes);
    table_close(&list->leaf_index);
    table_close(&list->node_index);
    *list = (struct ownership_list){0};
}

void ownership_close(struct ownership *o)
{
    list_close(&o->now);
    list_close(&o->incoming);
    *o = (struct ownership){0};
}

static void list_put_node(struct ownership_list *list, const struct node_info *node)
{
    uint32_t at = table_get(&list->node_index, node->node.v);
    if (at == TABLE_NONE) {
        at = list->node_count++;
        ARRAY_RESERVE(list->nodes, list->node_room, list->node_count);
        table_put(&list->node_index, node->node.v, at);
    }
    CHECK(list->nodes != NULL);
    list->nodes[at] = *node;
}

static void list_put_leaf(struct ownership_list *list, const struct leaf_owner *leaf)
{
    uint32_t at = table_get(&list->leaf_index, leaf->leaf.v);
    if (at == TABLE_NONE) {
        at = list->leaf_count++;
        ARRAY_RESERVE(list->leaves, list->leaf_room, list->leaf_count);
        table_put(&list->leaf_index, leaf->leaf.v, at);
    }
    CHECK(list->leaves != NULL);
    list->leaves[at] = *leaf;
}

static void list_drop_node(struct ownership_list *list, struct node_id node)
{
    uint32_t at = table_get(&list->node_index, node.v);
    if (at == TABLE_NONE) return;
    CHECK(list->nodes != NULL);
    memmove(&list->nodes[at], &list->nodes[at + 1], (list->node_count - at - 1) * sizeof *list->nodes);
    list->node_count--;
    table_clear(&list->node_index);
    for (uint32_t i = 0; i < list->node_count; i++) table_put(&list->node_index, list->nodes[i].node.v, i);
}

static void list_drop_leaf(struct ownership_list *list, struct quadkey leaf)
{
    uint32_t at = table_get(&list->leaf_index, leaf.v);
    if (at == TABLE_NONE) return;
    CHECK(list->leaves != NULL);
    table_remove(&list->leaf_index, leaf.v);
    list->leaves[at] = list->leaves[--list->leaf_count];
    if (at < list->leaf_count) table_put(&list->leaf_index, list->leaves[at].leaf.v, at);
}

static int leaf_order(const void *a, const void *b)
{
    const struct leaf_owner *left = a, *right = b;
    return quadkey_compare(left->leaf, right->leaf);
}

/* Sorted leaves make every walk over the map the same on every machine. */
static void list_settle(struct ownership_list *list)
{
    if (list->leaf_count > 0) qsort(list->leaves, list->leaf_count, sizeof *list->leaves, leaf_order);
    list->depth_min = LIMIT_QUADKEY_DEPTH;
    list->depth_max = 0;
    for (uint32_t i = 0; i < list->leaf_count; i++) {
        uint32_t depth = quadkey_depth(list->leaves[i].leaf);
        if (depth < list->depth_min) list->depth_min = depth;
        if (depth > list->depth_max) list->depth_max = depth;
        table_put(&list->leaf_index, list->leaves[i].leaf.v, i);
    }
}

static void list_add(struct ownership_list *list, struct map *map)
{
    struct node_info node;
    struct leaf_owner leaf;
    struct quadkey gone_leaf;
    struct node_id gone_node;
    while (map_next_node(map, &node)) list_put_node(list, &node);
    while (map_next_leaf(map, &leaf)) list_put_leaf(list, &leaf);
    while (map_next_gone_node(map, &gone_node)) list_drop_node(list, gone_node);
    while (map_next_gone_leaf(map, &gone_leaf)) list_drop_leaf(list, gone_leaf);
}

static bool newer(const struct ownership *o, const struct map *map)
{
    return map->term > o->term || (map->term == o->term && map->rev > o->rev);
}

static enum ownership_result apply_whole(struct ownership *o, struct map *map)
{
    bool goes_on =
        map->part > 0 && map->term == o->incoming_term && map->rev == o->incoming_rev && map->part == o->incoming_parts;
    if (map->part == 0) {
        list_close(&o->incoming);
        o->incoming_term = map->term;
        o->incoming_rev = map->rev;
        o->incoming_parts = 0;
    } else if (!goes_on) {
        return OWNERSHIP_ASK;
    }
    list_add(&o->incoming, map);
    o->incoming_parts++;
    if (o->incoming_parts < map->parts) return OWNERSHIP_SAME;
    list_close(&o->now);
    o->now = o->incoming;
    o->incoming = (struct ownership_list){0};
    o->incoming_parts = 0;
    return OWNERSHIP_CHANGED;
}

enum ownership_result ownership_apply(struct ownership *o, struct map *map)
{
    if (!newer(o, map)) return OWNERSHIP_SAME;
    if (map->base == 0) {
        enum ownership_result result = apply_whole(o, map);
        if (result != OWNERSHIP_CHANGED) return result;
    } else {
        if (map->term != o->term || map->base != o->rev) return OWNERSHIP_ASK;
        list_add(&o->now, map);
    }
    list_settle(&o->now);
    o->term = map->term;
    o->rev = map->rev;
    return OWNERSHIP_CHANGED;
}

const struct leaf_owner *ownership_leaf(const struct ownership *o, struct quadkey leaf)
{
    uint32_t at = table_get(&o->now.leaf_index, leaf.v);
    return at == TABLE_NONE ? NULL : &o->now.leaves[at];
}

const struct node_info *ownership_node(const struct ownership *o, struct node_id node)
{
    uint32_t at = table_get(&o->now.node_index, node.v);
    return at == TABLE_NONE ? NULL : &o->now.nodes[at];
}

const struct leaf_owner *ownership_at(const struct ownership *o, const struct world *world, struct position p)
{
    if (o->now.leaf_count == 0 || !world_contains(world, p) || o->now.depth_max > world->resolution_bits) return NULL;
    struct quadkey deepest = quadkey_at(world, p, o->now.depth_max);
    for (uint32_t up = 0; up <= o->now.depth_max - o->now.depth_min; up++) {
        const struct leaf_owner *leaf = ownership_leaf(o, (struct quadkey){deepest.v >> (2 * up)});
        if (leaf != NULL) return leaf;
    }
    return NULL;
}
