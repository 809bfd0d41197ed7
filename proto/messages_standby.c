/* Between a leaf's primary and its standby: STANDBY, STANDBY_ACK, STANDBY_BEAT, STANDBY_END, RELEASE. */
#include "proto/codec.h"

#define MOVE_FIELDS 5u

void standby_begin(struct writer *w, const struct standby *m)
{
    head_write(w, MESSAGE_STANDBY, 8);
    writer_uint(w, m->leaf.v);
    writer_uint(w, m->epoch);
    writer_uint(w, m->seq);
    writer_uint(w, m->part);
    writer_uint(w, m->parts);
    writer_array(w, m->drop_count);
}

void standby_puts(struct writer *w, uint32_t count)
{
    writer_array(w, count);
}

void standby_put(struct writer *w, const struct standby_item *item)
{
    writer_array(w, 9);
    entity_record_write(w, &item->transfer.record);
    writer_uint(w, item->transfer.gateway.v);
    writer_uint(w, item->transfer.position_sequence);
    writer_uint(w, item->transfer.state_sequence);
    writer_uint(w, item->transfer.radius_sequence);
    writer_uint(w, item->enter_request);
    writer_uint(w, item->slot);
    writer_uint(w, item->leaving_to.v);
    writer_bool(w, item->pending);
}

void standby_moves(struct writer *w, uint32_t count)
{
    writer_array(w, count * MOVE_FIELDS);
}

void standby_move(struct writer *w, const struct standby_move *move)
{
    writer_uint(w, move->slot);
    writer_int(w, move->dx);
    writer_int(w, move->dy);
    writer_int(w, move->dz);
    writer_uint(w, move->yaw);
}

static struct quadkey quadkey_or_none_read(struct cursor *c)
{
    struct cursor here = *c;
    if (cursor_uint(&here, UINT64_MAX) != 0 || here.error != TERRANE_ERR_OK) return quadkey_read(c);
    *c = here;
    return (struct quadkey){0};
}

static void item_read(struct cursor *c, struct standby_item *item)
{
    *item = (struct standby_item){0};
    (void)cursor_array(c, 9, 9);
    entity_record_read(c, &item->transfer.record);
    if (item->transfer.record.version >= VERSION_MAX) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    item->transfer.gateway = node_or_none_read(c);
    item->transfer.position_sequence = number_read(c);
    item->transfer.state_sequence = number_read(c);
    item->transfer.radius_sequence = number_read(c);
    item->enter_request = number_read(c);
    item->slot = choice_read(c, LIMIT_ENTITIES - 1);
    item->leaving_to = quadkey_or_none_read(c);
    item->pending = cursor_bool(c);
    if (item->pending && item->leaving_to.v != 0) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
}

static int32_t delta_read(struct cursor *c, int32_t most)
{
    return (int32_t)cursor_int(c, -most, most);
}

static void move_read(struct cursor *c, struct standby_move *move)
{
    move->slot = choice_read(c, LIMIT_ENTITIES - 1);
    move->dx = delta_read(c, POSITION_END - 1);
    move->dy = delta_read(c, POSITION_END - 1);
    move->dz = delta_read(c, 2 * HEIGHT_END - 1);
    move->yaw = (uint8_t)choice_read(c, UINT8_MAX);
}

enum terrane_error standby_decode(struct cursor c, struct standby *m)
{
    head_read(&c, MESSAGE_STANDBY, 8);
    m->leaf = quadkey_read(&c);
    m->epoch = word_read(&c);
    m->seq = number_read(&c);
    m->part = word_read(&c);
    m->parts = word_read(&c);
    bool well = m->epoch > 0 && m->seq > 0 && (m->parts == 0 ? m->part == 0 : m->part < m->parts);
    m->drops = ids_read(&c, false, &m->drop_count);
    m->put_count = cursor_array(&c, 0, LIMIT_ENTITIES);
    m->puts = list_open(&c);
    struct standby_item item;
    for (uint32_t i = 0; i < m->put_count && c.error == TERRANE_ERR_OK; i++) item_read(&c, &item);
    list_close(&m->puts, &c);
    uint32_t numbers = cursor_array(&c, 0, LIMIT_ENTITIES * MOVE_FIELDS);
    m->move_count = numbers / MOVE_FIELDS;
    if (numbers % MOVE_FIELDS != 0) well = false;
    m->moves = list_open(&c);
    struct standby_move move;
    for (uint32_t i = 0; i < m->move_count && well && c.error == TERRANE_ERR_OK; i++) move_read(&c, &move);
    list_close(&m->moves, &c);
    if (m->parts > 0 && m->drop_count + m->move_count > 0) well = false;
    if (c.error == TERRANE_ERR_OK && !well) cursor_fail(&c, TERRANE_ERR_MESSAGE_RANGE);
    return cursor_end(&c);
}

bool standby_next_drop(struct standby *m, struct entity_id *id)
{
    return entity_next(&m->drops, id);
}

bool standby_next_put(struct standby *m, struct standby_item *item)
{
    if (!list_more(&m->puts)) return false;
    item_read(&m->puts, item);
    return m->puts.error == TERRANE_ERR_OK;
}

bool standby_next_move(struct standby *m, struct standby_move *move)
{
    if (!list_more(&m->moves)) return false;
    move_read(&m->moves, move);
    return m->moves.error == TERRANE_ERR_OK;
}

void standby_ack_begin(struct writer *w, const struct standby_ack *m)
{
    head_write(w, MESSAGE_STANDBY_ACK, 2);
    writer_uint(w, m->stamp);
    writer_array(w, m->count);
}

void standby_ack_add(struct writer *w, const struct standby_ack_item *item)
{
    writer_array(w, 4);
    writer_uint(w, item->leaf.v);
    writer_uint(w, item->epoch);
    writer_uint(w, item->seq);
    writer_bool(w, item->refused);
}

static void ack_item_read(struct cursor *c, struct standby_ack_item *item)
{
    (void)cursor_array(c, 4, 4);
    item->leaf = quadkey_read(c);
    item->epoch = word_read(c);
    item->seq = number_read(c);
    item->refused = cursor_bool(c);
}

enum terrane_error standby_ack_decode(struct cursor c, struct standby_ack *m)
{
    head_read(&c, MESSAGE_STANDBY_ACK, 2);
    m->stamp = number_read(&c);
    m->count = cursor_array(&c, 0, LIMIT_LEAVES);
    m->items = list_open(&c);
    struct standby_ack_item item;
    for (uint32_t i = 0; i < m->count && c.error == TERRANE_ERR_OK; i++) ack_item_read(&c, &item);
    list_close(&m->items, &c);
    return cursor_end(&c);
}

bool standby_ack_next(struct standby_ack *m, struct standby_ack_item *item)
{
    if (!list_more(&m->items)) return false;
    ack_item_read(&m->items, item);
    return m->items.error == TERRANE_ERR_OK;
}

void standby_beat_encode(struct writer *w, const struct standby_beat *m)
{
    head_write(w, MESSAGE_STANDBY_BEAT, 1);
    writer_uint(w, m->stamp);
}

enum terrane_error standby_beat_decode(struct cursor c, struct standby_beat *m)
{
    head_read(&c, MESSAGE_STANDBY_BEAT, 1);
    m->stamp = number_read(&c);
    return cursor_end(&c);
}

void release_encode(struct writer *w, const struct release *m)
{
    head_write(w, MESSAGE_RELEASE, 3);
    writer_uint(w, m->leaf.v);
    writer_uint(w, m->epoch);
    writer_uint(w, m->seq);
}

enum terrane_error release_decode(struct cursor c, struct release *m)
{
    head_read(&c, MESSAGE_RELEASE, 3);
    m->leaf = quadkey_read(&c);
    m->epoch = word_read(&c);
    m->seq = number_read(&c);
    return cursor_end(&c);
}

void standby_end_encode(struct writer *w, const struct standby_end *m)
{
    head_write(w, MESSAGE_STANDBY_END, 2);
    writer_uint(w, m->leaf.v);
    writer_uint(w, m->epoch);
}

enum terrane_error standby_end_decode(struct cursor c, struct standby_end *m)
{
    head_read(&c, MESSAGE_STANDBY_END, 2);
    m->leaf = quadkey_read(&c);
    m->epoch = word_read(&c);
    return cursor_end(&c);
}
