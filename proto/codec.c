#include "proto/codec.h"

#include "common/core.h"
#include "common/geometry.h"

void head_write(struct writer *w, enum message_kind kind, uint32_t fields)
{
    writer_array(w, 1 + fields);
    writer_uint(w, (uint64_t)kind);
}

void head_read_either(struct cursor *c, enum message_kind a, enum message_kind b, uint32_t fields)
{
    (void)cursor_array(c, 1 + fields, 1 + fields);
    uint64_t kind = cursor_uint(c, UINT64_MAX);
    if (kind != (uint64_t)a && kind != (uint64_t)b) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
}

void head_read(struct cursor *c, enum message_kind kind, uint32_t fields)
{
    head_read_either(c, kind, kind, fields);
}

uint32_t choice_read(struct cursor *c, uint32_t last)
{
    return (uint32_t)cursor_uint(c, last);
}

uint32_t word_read(struct cursor *c)
{
    return (uint32_t)cursor_uint(c, UINT32_MAX);
}

uint64_t number_read(struct cursor *c)
{
    return cursor_uint(c, UINT64_MAX);
}

static uint64_t identity_read(struct cursor *c)
{
    uint64_t v = number_read(c);
    if (v == 0) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    return v;
}

struct entity_id id_read(struct cursor *c)
{
    return (struct entity_id){identity_read(c)};
}

struct node_id node_read(struct cursor *c)
{
    return (struct node_id){identity_read(c)};
}

struct node_id node_or_none_read(struct cursor *c)
{
    return (struct node_id){number_read(c)};
}

uint64_t version_read(struct cursor *c)
{
    return cursor_uint(c, VERSION_MAX);
}

uint32_t radius_read(struct cursor *c)
{
    return (uint32_t)cursor_uint(c, INT32_MAX);
}

enum terrane_error error_read(struct cursor *c)
{
    uint32_t number = word_read(c);
    switch (number) {
#define X(NAME, name, value, text)                                                                                     \
    case value: return TERRANE_ERR_##NAME;
        TERRANE_ERRORS(X)
#undef X
    default: cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE); return TERRANE_ERR_OK;
    }
}

enum stream_kind stream_read(struct cursor *c)
{
    uint32_t v = word_read(c);
    if (v != STREAM_REGION && v != STREAM_GHOST) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    return (enum stream_kind)v;
}

void parts_read(struct cursor *c, uint32_t *part, uint32_t *parts)
{
    *part = word_read(c);
    *parts = word_read(c);
    if (*part >= *parts) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
}

struct cursor list_open(const struct cursor *c)
{
    return *c;
}

void list_close(struct cursor *list, const struct cursor *c)
{
    list->end = c->at;
}

bool list_more(const struct cursor *list)
{
    return list->at < list->end;
}

struct cursor ids_read(struct cursor *c, bool ascending, uint32_t *count)
{
    *count = cursor_array(c, 0, LIMIT_ENTITIES);
    struct cursor list = list_open(c);
    uint64_t before = 0;
    for (uint32_t i = 0; i < *count && c->error == TERRANE_ERR_OK; i++) {
        uint64_t id = identity_read(c);
        if (ascending && id <= before) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
        before = id;
    }
    list_close(&list, c);
    return list;
}

void node_info_write(struct writer *w, const struct node_info *info)
{
    writer_array(w, 9);
    writer_uint(w, (uint64_t)info->role);
    writer_uint(w, info->node.v);
    writer_str(w, info->name);
    writer_str(w, info->host);
    writer_str(w, info->inbox_url);
    writer_str(w, info->sub_url);
    writer_str(w, info->query_url);
    writer_str(w, info->ghost_feed_url);
    writer_array(w, info->feed_count);
    for (uint32_t i = 0; i < info->feed_count; i++) writer_str(w, info->feed_urls[i]);
}

/* Names and urls end up in logs, JSON and dialers: printable ASCII without what would need quoting there. */
void text_plain_read(struct cursor *c, char *out, size_t room)
{
    cursor_str(c, out, room);
    for (const char *at = out; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~' || *at == '"' || *at == '\\') cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    }
}

void node_info_read(struct cursor *c, struct node_info *info)
{
    *info = (struct node_info){0};
    (void)cursor_array(c, 9, 9);
    info->role = (enum node_role)choice_read(c, ROLE_GATEWAY);
    info->node = node_read(c);
    if (node_id_equal(info->node, NODE_COORDINATOR)) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    text_plain_read(c, info->name, sizeof info->name);
    text_plain_read(c, info->host, sizeof info->host);
    text_plain_read(c, info->inbox_url, sizeof info->inbox_url);
    text_plain_read(c, info->sub_url, sizeof info->sub_url);
    text_plain_read(c, info->query_url, sizeof info->query_url);
    text_plain_read(c, info->ghost_feed_url, sizeof info->ghost_feed_url);
    info->feed_count = cursor_array(c, 0, NODE_FEEDS);
    for (uint32_t i = 0; i < info->feed_count && c->error == TERRANE_ERR_OK; i++)
        text_plain_read(c, info->feed_urls[i], sizeof info->feed_urls[i]);
}

void world_write(struct writer *w, const struct world *world)
{
    writer_array(w, 12);
    writer_double(w, world->origin_x);
    writer_double(w, world->origin_y);
    writer_double(w, world->cell_size);
    writer_uint(w, world->depth);
    writer_uint(w, world->resolution_bits);
    writer_uint(w, (uint64_t)world->view_mode);
    writer_uint(w, (uint64_t)world->edge);
    writer_uint(w, world->radius_max);
    writer_uint(w, world->hysteresis);
    writer_uint(w, world->z_range);
    writer_uint(w, world->handoff_hysteresis);
    writer_uint(w, world->tick_hz);
}

void world_read(struct cursor *c, struct world *world)
{
    (void)cursor_array(c, 12, 12);
    world->origin_x = cursor_double(c);
    world->origin_y = cursor_double(c);
    world->cell_size = cursor_double(c);
    world->depth = word_read(c);
    world->resolution_bits = word_read(c);
    world->view_mode = (enum view_mode)choice_read(c, VIEW_BLOCK);
    world->edge = (enum world_edge)choice_read(c, WORLD_EDGE_CLAMP);
    world->radius_max = radius_read(c);
    world->hysteresis = radius_read(c);
    world->z_range = word_read(c);
    world->handoff_hysteresis = radius_read(c);
    world->tick_hz = word_read(c);
    if (c->error == TERRANE_ERR_OK && world_check(world) != TERRANE_ERR_OK) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
}

void leaf_owner_write(struct writer *w, const struct leaf_owner *leaf)
{
    writer_uint(w, leaf->leaf.v);
    writer_uint(w, leaf->epoch);
    writer_uint(w, leaf->since);
    writer_uint(w, leaf->primary.v);
    writer_uint(w, leaf->standby.v);
    writer_uint(w, leaf->feed);
}

void leaf_owner_read(struct cursor *c, struct leaf_owner *leaf)
{
    leaf->leaf = quadkey_read(c);
    leaf->epoch = word_read(c);
    leaf->since = (uint32_t)cursor_uint(c, leaf->epoch);
    if (leaf->since == 0 && leaf->epoch > 0) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    leaf->primary = node_or_none_read(c);
    leaf->standby = node_or_none_read(c);
    leaf->feed = choice_read(c, NODE_FEEDS - 1);
}
