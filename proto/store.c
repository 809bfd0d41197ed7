#include "proto/store.h"

#include "proto/codec.h"

void store_map_begin(struct writer *w, const struct store_map *m)
{
    writer_array(w, 7);
    if (m->term == 0) {
        writer_nil(w);
    } else {
        writer_array(w, 3);
        writer_uint(w, m->leader.v);
        writer_uint(w, m->term);
        world_write(w, &m->world);
    }
    writer_uint(w, m->rev);
    writer_bool(w, m->whole);
}

void store_list(struct writer *w, uint32_t count)
{
    writer_array(w, count);
}

void store_add_leaf(struct writer *w, const struct store_leaf *leaf)
{
    writer_array(w, 8);
    leaf_owner_write(w, &leaf->owner);
    writer_str(w, leaf->primary);
    writer_str(w, leaf->standby);
}

void store_add_gone_leaf(struct writer *w, struct quadkey leaf)
{
    writer_uint(w, leaf.v);
}

void store_add_server(struct writer *w, const struct store_server *server)
{
    writer_array(w, 2);
    node_info_write(w, &server->info);
    writer_uint(w, server->capacity);
}

void store_add_gone_server(struct writer *w, const char *name)
{
    writer_str(w, name);
}

static void leaf_read(struct cursor *c, struct store_leaf *leaf)
{
    (void)cursor_array(c, 8, 8);
    leaf_owner_read(c, &leaf->owner);
    cursor_str(c, leaf->primary, sizeof leaf->primary);
    cursor_str(c, leaf->standby, sizeof leaf->standby);
}

static void server_read(struct cursor *c, struct store_server *server)
{
    (void)cursor_array(c, 2, 2);
    node_info_read(c, &server->info);
    server->capacity = (uint32_t)cursor_uint(c, 1000);
    bool well = server->info.role == ROLE_CELLSERVER && server->capacity > 0 && server->info.name[0] != '\0';
    if (c->error == TERRANE_ERR_OK && !well) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
}

static void head_of_map_read(struct cursor *c, struct store_map *m)
{
    (void)cursor_array(c, 7, 7);
    if (!cursor_nil(c)) {
        (void)cursor_array(c, 3, 3);
        m->leader = node_read(c);
        m->term = number_read(c);
        if (m->term == 0) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
        world_read(c, &m->world);
    }
    m->rev = number_read(c);
    m->whole = cursor_bool(c);
}

enum terrane_error store_map_decode(const uint8_t *bytes, size_t size, struct store_map *out)
{
    struct cursor c = cursor_of(bytes, size);
    struct store_leaf leaf;
    struct store_server server;
    char name[LIMIT_NAME];
    *out = (struct store_map){0};
    head_of_map_read(&c, out);
    out->leaf_count = cursor_array(&c, 0, LIMIT_LEAVES);
    out->leaves = list_open(&c);
    for (uint32_t i = 0; i < out->leaf_count && c.error == TERRANE_ERR_OK; i++) leaf_read(&c, &leaf);
    list_close(&out->leaves, &c);
    out->gone_leaf_count = cursor_array(&c, 0, LIMIT_LEAVES);
    out->gone_leaves = list_open(&c);
    for (uint32_t i = 0; i < out->gone_leaf_count && c.error == TERRANE_ERR_OK; i++) (void)quadkey_read(&c);
    list_close(&out->gone_leaves, &c);
    out->server_count = cursor_array(&c, 0, LIMIT_NODES);
    out->servers = list_open(&c);
    for (uint32_t i = 0; i < out->server_count && c.error == TERRANE_ERR_OK; i++) server_read(&c, &server);
    list_close(&out->servers, &c);
    out->gone_server_count = cursor_array(&c, 0, LIMIT_NODES);
    out->gone_servers = list_open(&c);
    for (uint32_t i = 0; i < out->gone_server_count && c.error == TERRANE_ERR_OK; i++)
        cursor_str(&c, name, sizeof name);
    list_close(&out->gone_servers, &c);
    return cursor_end(&c);
}

bool store_next_leaf(struct store_map *m, struct store_leaf *leaf)
{
    if (!list_more(&m->leaves)) return false;
    leaf_read(&m->leaves, leaf);
    return m->leaves.error == TERRANE_ERR_OK;
}

bool store_next_gone_leaf(struct store_map *m, struct quadkey *leaf)
{
    if (!list_more(&m->gone_leaves)) return false;
    *leaf = quadkey_read(&m->gone_leaves);
    return m->gone_leaves.error == TERRANE_ERR_OK;
}

bool store_next_server(struct store_map *m, struct store_server *server)
{
    if (!list_more(&m->servers)) return false;
    server_read(&m->servers, server);
    return m->servers.error == TERRANE_ERR_OK;
}

bool store_next_gone_server(struct store_map *m, char name[LIMIT_NAME])
{
    if (!list_more(&m->gone_servers)) return false;
    cursor_str(&m->gone_servers, name, LIMIT_NAME);
    return m->gone_servers.error == TERRANE_ERR_OK;
}

void store_lead_encode(struct writer *w, const struct store_lead *m)
{
    writer_array(w, 5);
    writer_uint(w, m->node.v);
    writer_str(w, m->name);
    writer_str(w, m->url);
    writer_uint(w, m->ttl_ms);
    writer_bool(w, m->even_empty);
}

enum terrane_error store_lead_decode(const uint8_t *bytes, size_t size, struct store_lead *out)
{
    struct cursor c = cursor_of(bytes, size);
    (void)cursor_array(&c, 5, 5);
    out->node = node_read(&c);
    text_plain_read(&c, out->name, sizeof out->name);
    text_plain_read(&c, out->url, sizeof out->url);
    out->ttl_ms = word_read(&c);
    out->even_empty = cursor_bool(&c);
    return cursor_end(&c);
}

void store_leader_encode(struct writer *w, const struct store_leader *m)
{
    writer_array(w, 5);
    writer_uint(w, m->node.v);
    writer_str(w, m->name);
    writer_str(w, m->url);
    writer_uint(w, m->term);
    writer_uint(w, m->rev);
}

enum terrane_error store_leader_decode(const uint8_t *bytes, size_t size, struct store_leader *out)
{
    struct cursor c = cursor_of(bytes, size);
    (void)cursor_array(&c, 5, 5);
    out->node = node_or_none_read(&c);
    text_plain_read(&c, out->name, sizeof out->name);
    text_plain_read(&c, out->url, sizeof out->url);
    out->term = number_read(&c);
    out->rev = number_read(&c);
    return cursor_end(&c);
}
