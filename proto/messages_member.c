/* Membership and the ownership map: HELLO, WELCOME, HEARTBEAT, BYE, MAP, MAP_REQUEST. */
#include "proto/codec.h"

void hello_encode(struct writer *w, const struct hello *m)
{
    head_write(w, MESSAGE_HELLO, 3);
    node_info_write(w, &m->info);
    writer_uint(w, m->capacity);
    writer_uint(w, m->term);
}

enum terrane_error hello_decode(struct cursor c, struct hello *m)
{
    head_read(&c, MESSAGE_HELLO, 3);
    node_info_read(&c, &m->info);
    m->capacity = (uint32_t)cursor_uint(&c, 1000);
    m->term = cursor_uint(&c, INT64_MAX);
    if (m->info.role == ROLE_CELLSERVER && m->capacity == 0) cursor_fail(&c, TERRANE_ERR_MESSAGE_RANGE);
    return cursor_end(&c);
}

void welcome_encode(struct writer *w, const struct welcome *m)
{
    head_write(w, MESSAGE_WELCOME, 4);
    writer_uint(w, m->node.v);
    writer_uint(w, m->term);
    world_write(w, &m->world);
    writer_uint(w, m->lease_us);
}

enum terrane_error welcome_decode(struct cursor c, struct welcome *m)
{
    head_read(&c, MESSAGE_WELCOME, 4);
    m->node = node_read(&c);
    m->term = number_read(&c);
    world_read(&c, &m->world);
    m->lease_us = cursor_uint(&c, LIMIT_LEASE_MAX_US);
    if (m->lease_us < LIMIT_LEASE_MIN_US) cursor_fail(&c, TERRANE_ERR_MESSAGE_RANGE);
    return cursor_end(&c);
}

void bye_encode(struct writer *w)
{
    head_write(w, MESSAGE_BYE, 0);
}

enum terrane_error bye_decode(struct cursor c)
{
    head_read(&c, MESSAGE_BYE, 0);
    return cursor_end(&c);
}

void map_request_encode(struct writer *w, const struct map_request *m)
{
    head_write(w, MESSAGE_MAP_REQUEST, 1);
    writer_uint(w, m->rev);
}

enum terrane_error map_request_decode(struct cursor c, struct map_request *m)
{
    head_read(&c, MESSAGE_MAP_REQUEST, 1);
    m->rev = number_read(&c);
    return cursor_end(&c);
}

void heartbeat_begin(struct writer *w, const struct heartbeat *m)
{
    head_write(w, MESSAGE_HEARTBEAT, 9);
    writer_uint(w, m->term);
    writer_uint(w, m->rev);
    writer_uint(w, m->tick);
    writer_uint(w, m->ticks_late);
    writer_uint(w, m->ghosts);
    writer_uint(w, m->stamp);
    writer_uint(w, m->echo);
    writer_array(w, m->count);
}

void heartbeat_add(struct writer *w, const struct leaf_load *load)
{
    writer_array(w, 4);
    writer_uint(w, load->leaf.v);
    writer_uint(w, load->epoch);
    writer_uint(w, load->since);
    writer_uint(w, load->owned);
}

static void load_read(struct cursor *c, struct leaf_load *load)
{
    (void)cursor_array(c, 4, 4);
    load->leaf = quadkey_read(c);
    load->epoch = word_read(c);
    load->since = (uint32_t)cursor_uint(c, load->epoch);
    if (load->since == 0 && load->epoch > 0) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    load->owned = word_read(c);
}

void heartbeat_stands(struct writer *w, uint32_t count)
{
    writer_array(w, count);
}

void heartbeat_add_stand(struct writer *w, const struct leaf_stand *stand)
{
    writer_array(w, 2);
    writer_uint(w, stand->leaf.v);
    writer_uint(w, stand->epoch);
}

static void stand_read(struct cursor *c, struct leaf_stand *stand)
{
    (void)cursor_array(c, 2, 2);
    stand->leaf = quadkey_read(c);
    stand->epoch = word_read(c);
}

enum terrane_error heartbeat_decode(struct cursor c, struct heartbeat *m)
{
    head_read(&c, MESSAGE_HEARTBEAT, 9);
    m->term = number_read(&c);
    m->rev = number_read(&c);
    m->tick = number_read(&c);
    m->ticks_late = number_read(&c);
    m->ghosts = word_read(&c);
    m->stamp = number_read(&c);
    m->echo = number_read(&c);
    m->count = cursor_array(&c, 0, LIMIT_LEAVES);
    m->loads = list_open(&c);
    struct leaf_load load;
    for (uint32_t i = 0; i < m->count && c.error == TERRANE_ERR_OK; i++) load_read(&c, &load);
    list_close(&m->loads, &c);
    m->stand_count = cursor_array(&c, 0, LIMIT_LEAVES);
    m->stands = list_open(&c);
    struct leaf_stand stand;
    for (uint32_t i = 0; i < m->stand_count && c.error == TERRANE_ERR_OK; i++) stand_read(&c, &stand);
    list_close(&m->stands, &c);
    return cursor_end(&c);
}

bool heartbeat_next(struct heartbeat *m, struct leaf_load *load)
{
    if (!list_more(&m->loads)) return false;
    load_read(&m->loads, load);
    return m->loads.error == TERRANE_ERR_OK;
}

bool heartbeat_next_stand(struct heartbeat *m, struct leaf_stand *stand)
{
    if (!list_more(&m->stands)) return false;
    stand_read(&m->stands, stand);
    return m->stands.error == TERRANE_ERR_OK;
}

void map_begin(struct writer *w, const struct map *m)
{
    head_write(w, MESSAGE_MAP, 9);
    writer_uint(w, m->term);
    writer_uint(w, m->rev);
    writer_uint(w, m->base);
    writer_uint(w, m->part);
    writer_uint(w, m->parts);
}

void map_list(struct writer *w, uint32_t count)
{
    writer_array(w, count);
}

void map_add_node(struct writer *w, const struct node_info *node)
{
    node_info_write(w, node);
}

void map_add_leaf(struct writer *w, const struct leaf_owner *leaf)
{
    writer_array(w, 6);
    leaf_owner_write(w, leaf);
}

void map_add_gone_node(struct writer *w, struct node_id node)
{
    writer_uint(w, node.v);
}

void map_add_gone_leaf(struct writer *w, struct quadkey leaf)
{
    writer_uint(w, leaf.v);
}

static void map_leaf_read(struct cursor *c, struct leaf_owner *leaf)
{
    (void)cursor_array(c, 6, 6);
    leaf_owner_read(c, leaf);
}

enum map_item { MAP_NODES, MAP_LEAVES, MAP_GONE_NODES, MAP_GONE_LEAVES };

static struct cursor map_list_read(struct cursor *c, enum map_item item, uint32_t most, uint32_t *count)
{
    *count = cursor_array(c, 0, most);
    struct cursor list = list_open(c);
    struct node_info info;
    struct leaf_owner leaf;
    for (uint32_t i = 0; i < *count && c->error == TERRANE_ERR_OK; i++) {
        switch (item) {
        case MAP_NODES: node_info_read(c, &info); break;
        case MAP_LEAVES: map_leaf_read(c, &leaf); break;
        case MAP_GONE_NODES: (void)node_read(c); break;
        case MAP_GONE_LEAVES: (void)quadkey_read(c); break;
        }
    }
    list_close(&list, c);
    return list;
}

enum terrane_error map_decode(struct cursor c, struct map *m)
{
    head_read(&c, MESSAGE_MAP, 9);
    m->term = number_read(&c);
    m->rev = number_read(&c);
    m->base = number_read(&c);
    parts_read(&c, &m->part, &m->parts);
    m->nodes = map_list_read(&c, MAP_NODES, LIMIT_NODES, &m->node_count);
    m->leaves = map_list_read(&c, MAP_LEAVES, LIMIT_LEAVES, &m->leaf_count);
    m->gone_nodes = map_list_read(&c, MAP_GONE_NODES, LIMIT_NODES, &m->gone_node_count);
    m->gone_leaves = map_list_read(&c, MAP_GONE_LEAVES, LIMIT_LEAVES, &m->gone_leaf_count);
    return cursor_end(&c);
}

bool map_next_node(struct map *m, struct node_info *node)
{
    if (!list_more(&m->nodes)) return false;
    node_info_read(&m->nodes, node);
    return m->nodes.error == TERRANE_ERR_OK;
}

bool map_next_leaf(struct map *m, struct leaf_owner *leaf)
{
    if (!list_more(&m->leaves)) return false;
    map_leaf_read(&m->leaves, leaf);
    return m->leaves.error == TERRANE_ERR_OK;
}

bool map_next_gone_node(struct map *m, struct node_id *node)
{
    if (!list_more(&m->gone_nodes)) return false;
    *node = node_read(&m->gone_nodes);
    return m->gone_nodes.error == TERRANE_ERR_OK;
}

bool map_next_gone_leaf(struct map *m, struct quadkey *leaf)
{
    if (!list_more(&m->gone_leaves)) return false;
    *leaf = quadkey_read(&m->gone_leaves);
    return m->gone_leaves.error == TERRANE_ERR_OK;
}
