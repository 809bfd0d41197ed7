/* What gateways see and ask: VIEWS, EMIT, EVENT_RELAY, EVENT, QUERY, QUERY_RESULT, LOOKUP, LOOKUP_RESULT. */
#include "common/geometry.h"
#include "proto/codec.h"

#define EMIT_FIELDS 9u

void views_begin(struct writer *w, const struct views *m)
{
    head_write(w, MESSAGE_VIEWS, 2);
    writer_uint(w, m->tick);
    writer_array(w, m->count);
}

void views_add(struct writer *w, const struct view_item *item)
{
    writer_array(w, 5);
    writer_uint(w, item->observer.v);
    writer_uint(w, item->version);
    writer_uint(w, (uint64_t)item->part);
    writer_array(w, item->unsee_count);
}

void entity_list(struct writer *w, uint32_t count)
{
    writer_array(w, count);
}

void entity_add(struct writer *w, struct entity_id id)
{
    writer_uint(w, id.v);
}

bool entity_next(struct cursor *list, struct entity_id *id)
{
    if (!list_more(list)) return false;
    *id = id_read(list);
    return list->error == TERRANE_ERR_OK;
}

static void view_item_read(struct cursor *c, struct view_item *item)
{
    (void)cursor_array(c, 5, 5);
    item->observer = id_read(c);
    item->version = version_read(c);
    item->part = (enum view_part)choice_read(c, VIEW_WHOLE_LAST);
    item->unsee = ids_read(c, true, &item->unsee_count);
    if (item->part != VIEW_CHANGES && item->unsee_count > 0) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    item->see = ids_read(c, true, &item->see_count);
}

enum terrane_error views_decode(struct cursor c, struct views *m)
{
    head_read(&c, MESSAGE_VIEWS, 2);
    m->tick = number_read(&c);
    m->count = cursor_array(&c, 0, LIMIT_ENTITIES);
    m->items = list_open(&c);
    struct view_item item;
    for (uint32_t i = 0; i < m->count && c.error == TERRANE_ERR_OK; i++) view_item_read(&c, &item);
    list_close(&m->items, &c);
    return cursor_end(&c);
}

bool views_next(struct views *m, struct view_item *item)
{
    if (!list_more(&m->items)) return false;
    view_item_read(&m->items, item);
    return m->items.error == TERRANE_ERR_OK;
}

static void emit_fields_write(struct writer *w, const struct emit *m)
{
    writer_uint(w, m->origin.v);
    writer_uint(w, m->request);
    writer_uint(w, m->code);
    writer_uint(w, m->radius);
    writer_uint(w, m->layer);
    position_write(w, m->position);
    writer_bin(w, m->payload, m->payload_size);
}

static void emit_fields_read(struct cursor *c, struct emit *m)
{
    m->origin = node_read(c);
    m->request = number_read(c);
    m->code = word_read(c);
    m->radius = radius_read(c);
    m->layer = (uint16_t)cursor_uint(c, UINT16_MAX);
    m->position = position_read(c);
    m->payload_size = (uint32_t)cursor_bin(c, LIMIT_EVENT_BYTES, &m->payload);
}

void emit_encode(struct writer *w, enum message_kind kind, const struct emit *m)
{
    head_write(w, kind, EMIT_FIELDS);
    emit_fields_write(w, m);
}

enum terrane_error emit_decode(struct cursor c, struct emit *m)
{
    head_read_either(&c, MESSAGE_EMIT, MESSAGE_EVENT_RELAY, EMIT_FIELDS);
    emit_fields_read(&c, m);
    return cursor_end(&c);
}

void event_told_begin(struct writer *w, const struct event_told *m)
{
    head_write(w, MESSAGE_EVENT, EMIT_FIELDS + 1);
    emit_fields_write(w, &m->emit);
    writer_array(w, m->count);
}

enum terrane_error event_told_decode(struct cursor c, struct event_told *m)
{
    head_read(&c, MESSAGE_EVENT, EMIT_FIELDS + 1);
    emit_fields_read(&c, &m->emit);
    m->observers = ids_read(&c, false, &m->count);
    return cursor_end(&c);
}

void query_encode(struct writer *w, const struct query *m)
{
    head_write(w, MESSAGE_QUERY, 7);
    writer_uint(w, m->request);
    writer_uint(w, (uint64_t)m->shape);
    writer_int(w, m->layer);
    writer_int(w, m->a);
    writer_int(w, m->b);
    writer_int(w, m->c);
    writer_int(w, m->d);
}

static int32_t query_coordinate(struct cursor *c)
{
    return (int32_t)cursor_int(c, 1 - POSITION_END, INT32_MAX);
}

enum terrane_error query_decode(struct cursor c, struct query *m)
{
    head_read(&c, MESSAGE_QUERY, 7);
    m->request = number_read(&c);
    m->shape = (enum query_shape)choice_read(&c, QUERY_RECTANGLE);
    m->layer = (int32_t)cursor_int(&c, -1, UINT16_MAX);
    m->a = query_coordinate(&c);
    m->b = query_coordinate(&c);
    m->c = query_coordinate(&c);
    m->d = query_coordinate(&c);
    bool circle = m->c >= 0 && m->d == 0, rectangle = m->a <= m->c && m->b <= m->d;
    if (m->shape == QUERY_CIRCLE ? !circle : !rectangle) cursor_fail(&c, TERRANE_ERR_MESSAGE_RANGE);
    return cursor_end(&c);
}

void query_result_begin(struct writer *w, const struct query_result *m)
{
    head_write(w, MESSAGE_QUERY_RESULT, 5);
    writer_uint(w, m->request);
    writer_uint(w, (uint64_t)m->error);
    writer_uint(w, m->part);
    writer_uint(w, m->parts);
    writer_array(w, m->count);
}

void query_result_add(struct writer *w, const struct query_item *item)
{
    writer_array(w, 5);
    writer_uint(w, item->id.v);
    writer_uint(w, item->version);
    position_write(w, item->position);
}

static void query_item_read(struct cursor *c, struct query_item *item)
{
    (void)cursor_array(c, 5, 5);
    item->id = id_read(c);
    item->version = version_read(c);
    item->position = position_read(c);
}

enum terrane_error query_result_decode(struct cursor c, struct query_result *m)
{
    head_read(&c, MESSAGE_QUERY_RESULT, 5);
    m->request = number_read(&c);
    m->error = error_read(&c);
    parts_read(&c, &m->part, &m->parts);
    m->count = cursor_array(&c, 0, LIMIT_ENTITIES);
    m->items = list_open(&c);
    struct query_item item;
    for (uint32_t i = 0; i < m->count && c.error == TERRANE_ERR_OK; i++) query_item_read(&c, &item);
    list_close(&m->items, &c);
    return cursor_end(&c);
}

bool query_result_next(struct query_result *m, struct query_item *item)
{
    if (!list_more(&m->items)) return false;
    query_item_read(&m->items, item);
    return m->items.error == TERRANE_ERR_OK;
}

void lookup_encode(struct writer *w, const struct lookup *m)
{
    head_write(w, MESSAGE_LOOKUP, 2);
    writer_uint(w, m->request);
    writer_uint(w, m->id.v);
}

enum terrane_error lookup_decode(struct cursor c, struct lookup *m)
{
    head_read(&c, MESSAGE_LOOKUP, 2);
    m->request = number_read(&c);
    m->id = id_read(&c);
    return cursor_end(&c);
}

void lookup_result_encode(struct writer *w, const struct lookup_result *m)
{
    head_write(w, MESSAGE_LOOKUP_RESULT, 8);
    writer_uint(w, m->request);
    writer_uint(w, m->id.v);
    writer_uint(w, (uint64_t)m->error);
    writer_uint(w, m->version);
    writer_uint(w, m->leaf.v);
    position_write(w, m->position);
}

enum terrane_error lookup_result_decode(struct cursor c, struct lookup_result *m)
{
    head_read(&c, MESSAGE_LOOKUP_RESULT, 8);
    m->request = number_read(&c);
    m->id = id_read(&c);
    m->error = error_read(&c);
    m->version = version_read(&c);
    /* Where nothing was found there is no leaf. */
    m->leaf.v = number_read(&c);
    bool none = m->error != TERRANE_ERR_OK && m->leaf.v == 0;
    if (!none && !quadkey_valid(m->leaf.v)) cursor_fail(&c, TERRANE_ERR_MESSAGE_RANGE);
    m->position = position_read(&c);
    return cursor_end(&c);
}
