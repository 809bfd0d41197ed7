#include "tests/vectors/vectors.h"

#include "common/check.h"

#include <string.h>

static void name_field(struct text *t, const char *key, const char *v)
{
    text_str(t, key, v, strlen(v));
}

static void node_fields(struct text *t, const char *key, const struct node_info *info)
{
    text_open(t, key, '{');
    text_uint(t, "role", (uint64_t)info->role);
    text_uint(t, "node", info->node.v);
    name_field(t, "name", info->name);
    name_field(t, "host", info->host);
    name_field(t, "inbox_url", info->inbox_url);
    name_field(t, "sub_url", info->sub_url);
    name_field(t, "query_url", info->query_url);
    name_field(t, "ghost_feed_url", info->ghost_feed_url);
    text_open(t, "feed_urls", '[');
    for (uint32_t i = 0; i < info->feed_count; i++) name_field(t, NULL, info->feed_urls[i]);
    text_close(t, ']');
    text_close(t, '}');
}

static void world_fields(struct text *t, const struct world *world)
{
    text_open(t, "world", '{');
    text_double(t, "origin_x", world->origin_x);
    text_double(t, "origin_y", world->origin_y);
    text_double(t, "cell_size", world->cell_size);
    text_uint(t, "depth", world->depth);
    text_uint(t, "resolution_bits", world->resolution_bits);
    text_uint(t, "view_mode", (uint64_t)world->view_mode);
    text_uint(t, "edge", (uint64_t)world->edge);
    text_uint(t, "radius_max", world->radius_max);
    text_uint(t, "hysteresis", world->hysteresis);
    text_uint(t, "z_range", world->z_range);
    text_uint(t, "handoff_hysteresis", world->handoff_hysteresis);
    text_uint(t, "tick_hz", world->tick_hz);
    text_close(t, '}');
}

static enum terrane_error hello_fields(struct cursor c, struct text *t)
{
    struct hello m;
    enum terrane_error error = hello_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    node_fields(t, "info", &m.info);
    text_uint(t, "capacity", m.capacity);
    text_uint(t, "term", m.term);
    return error;
}

static enum terrane_error welcome_fields(struct cursor c, struct text *t)
{
    struct welcome m;
    enum terrane_error error = welcome_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_uint(t, "node", m.node.v);
    text_uint(t, "term", m.term);
    world_fields(t, &m.world);
    text_uint(t, "lease_us", m.lease_us);
    return error;
}

static enum terrane_error heartbeat_fields(struct cursor c, struct text *t)
{
    struct heartbeat m;
    struct leaf_load load;
    struct leaf_stand stand;
    uint32_t loads = 0, stands = 0;
    enum terrane_error error = heartbeat_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_uint(t, "term", m.term);
    text_uint(t, "rev", m.rev);
    text_uint(t, "tick", m.tick);
    text_uint(t, "ticks_late", m.ticks_late);
    text_uint(t, "ghosts", m.ghosts);
    text_uint(t, "stamp", m.stamp);
    text_uint(t, "echo", m.echo);
    text_open(t, "loads", '[');
    for (; heartbeat_next(&m, &load); loads++) {
        text_open(t, NULL, '{');
        text_quadkey(t, "leaf", load.leaf);
        text_uint(t, "epoch", load.epoch);
        text_uint(t, "since", load.since);
        text_uint(t, "owned", load.owned);
        text_close(t, '}');
    }
    text_close(t, ']');
    text_open(t, "stands", '[');
    for (; heartbeat_next_stand(&m, &stand); stands++) {
        text_open(t, NULL, '{');
        text_quadkey(t, "leaf", stand.leaf);
        text_uint(t, "epoch", stand.epoch);
        text_close(t, '}');
    }
    text_close(t, ']');
    CHECK(loads == m.count && stands == m.stand_count);
    return error;
}

static void map_lists(struct map *m, struct text *t)
{
    struct node_info info;
    struct leaf_owner leaf;
    struct node_id node;
    struct quadkey gone;
    uint32_t nodes = 0, leaves = 0, gone_nodes = 0, gone_leaves = 0;
    text_open(t, "nodes", '[');
    for (; map_next_node(m, &info); nodes++) node_fields(t, NULL, &info);
    text_close(t, ']');
    text_open(t, "leaves", '[');
    for (; map_next_leaf(m, &leaf); leaves++) {
        text_open(t, NULL, '{');
        text_quadkey(t, "leaf", leaf.leaf);
        text_uint(t, "epoch", leaf.epoch);
        text_uint(t, "since", leaf.since);
        text_uint(t, "primary", leaf.primary.v);
        text_uint(t, "standby", leaf.standby.v);
        text_uint(t, "feed", leaf.feed);
        text_close(t, '}');
    }
    text_close(t, ']');
    text_open(t, "gone_nodes", '[');
    for (; map_next_gone_node(m, &node); gone_nodes++) text_uint(t, NULL, node.v);
    text_close(t, ']');
    text_open(t, "gone_leaves", '[');
    for (; map_next_gone_leaf(m, &gone); gone_leaves++) text_quadkey(t, NULL, gone);
    text_close(t, ']');
    CHECK(nodes == m->node_count && leaves == m->leaf_count);
    CHECK(gone_nodes == m->gone_node_count && gone_leaves == m->gone_leaf_count);
}

static enum terrane_error map_fields(struct cursor c, struct text *t)
{
    struct map m;
    enum terrane_error error = map_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_uint(t, "term", m.term);
    text_uint(t, "rev", m.rev);
    text_uint(t, "base", m.base);
    text_uint(t, "part", m.part);
    text_uint(t, "parts", m.parts);
    map_lists(&m, t);
    return error;
}

static enum terrane_error map_request_fields(struct cursor c, struct text *t)
{
    struct map_request m;
    enum terrane_error error = map_request_decode(c, &m);
    if (error == TERRANE_ERR_OK) text_uint(t, "rev", m.rev);
    return error;
}

bool member_fields(enum message_kind kind, struct cursor c, struct text *t, enum terrane_error *error)
{
    if (kind == MESSAGE_HELLO)
        *error = hello_fields(c, t);
    else if (kind == MESSAGE_WELCOME)
        *error = welcome_fields(c, t);
    else if (kind == MESSAGE_HEARTBEAT)
        *error = heartbeat_fields(c, t);
    else if (kind == MESSAGE_BYE)
        *error = bye_decode(c);
    else if (kind == MESSAGE_MAP)
        *error = map_fields(c, t);
    else if (kind == MESSAGE_MAP_REQUEST)
        *error = map_request_fields(c, t);
    else
        return false;
    return true;
}
