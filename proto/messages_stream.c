/* Subscriptions and snapshots of streams, and the query lane's STATUS and FAULT. */
#include "proto/codec.h"

void subscribe_encode(struct writer *w, enum message_kind kind, const struct subscribe *m)
{
    head_write(w, kind, 2);
    writer_uint(w, (uint64_t)m->stream);
    writer_uint(w, m->leaf.v);
}

enum terrane_error subscribe_decode(struct cursor c, struct subscribe *m)
{
    head_read_either(&c, MESSAGE_SUBSCRIBE, MESSAGE_UNSUBSCRIBE, 2);
    m->stream = stream_read(&c);
    m->leaf = quadkey_read(&c);
    return cursor_end(&c);
}

void unsubscribed_encode(struct writer *w, const struct unsubscribed *m)
{
    head_write(w, MESSAGE_UNSUBSCRIBED, 3);
    writer_uint(w, (uint64_t)m->stream);
    writer_uint(w, m->leaf.v);
    writer_uint(w, (uint64_t)m->error);
}

enum terrane_error unsubscribed_decode(struct cursor c, struct unsubscribed *m)
{
    head_read(&c, MESSAGE_UNSUBSCRIBED, 3);
    m->stream = stream_read(&c);
    m->leaf = quadkey_read(&c);
    m->error = error_read(&c);
    return cursor_end(&c);
}

void snapshot_request_encode(struct writer *w, const struct snapshot_request *m)
{
    head_write(w, MESSAGE_SNAPSHOT_REQUEST, 3);
    writer_uint(w, (uint64_t)m->stream);
    writer_uint(w, m->leaf.v);
    writer_uint(w, m->from_slot);
}

enum terrane_error snapshot_request_decode(struct cursor c, struct snapshot_request *m)
{
    head_read(&c, MESSAGE_SNAPSHOT_REQUEST, 3);
    m->stream = stream_read(&c);
    m->leaf = quadkey_read(&c);
    m->from_slot = choice_read(&c, LIMIT_ENTITIES);
    return cursor_end(&c);
}

void snapshot_begin(struct writer *w, const struct snapshot *m)
{
    head_write(w, MESSAGE_SNAPSHOT, 8);
    writer_uint(w, (uint64_t)m->stream);
    writer_uint(w, m->leaf.v);
    writer_uint(w, m->epoch);
    writer_uint(w, m->seq);
    writer_uint(w, m->tick);
    writer_uint(w, m->part);
    writer_uint(w, m->parts);
    writer_array(w, m->count);
}

void snapshot_add(struct writer *w, uint32_t slot, const struct entity_record *record)
{
    writer_array(w, 2);
    writer_uint(w, slot);
    entity_record_write(w, record);
}

static void snapshot_item_read(struct cursor *c, uint32_t *slot, struct entity_record *record)
{
    (void)cursor_array(c, 2, 2);
    *slot = choice_read(c, LIMIT_ENTITIES - 1);
    entity_record_read(c, record);
}

enum terrane_error snapshot_decode(struct cursor c, struct snapshot *m)
{
    head_read(&c, MESSAGE_SNAPSHOT, 8);
    m->stream = stream_read(&c);
    m->leaf = quadkey_read(&c);
    m->epoch = word_read(&c);
    m->seq = cursor_uint(&c, INT64_MAX);
    m->tick = cursor_uint(&c, INT64_MAX);
    parts_read(&c, &m->part, &m->parts);
    m->count = cursor_array(&c, 0, LIMIT_ENTITIES);
    m->items = list_open(&c);
    uint32_t slot;
    struct entity_record record;
    for (uint32_t i = 0; i < m->count && c.error == TERRANE_ERR_OK; i++) snapshot_item_read(&c, &slot, &record);
    list_close(&m->items, &c);
    return cursor_end(&c);
}

bool snapshot_next(struct snapshot *m, uint32_t *slot, struct entity_record *record)
{
    if (!list_more(&m->items)) return false;
    snapshot_item_read(&m->items, slot, record);
    return m->items.error == TERRANE_ERR_OK;
}

void status_request_encode(struct writer *w)
{
    head_write(w, MESSAGE_STATUS_REQUEST, 0);
}

enum terrane_error status_request_decode(struct cursor c)
{
    head_read(&c, MESSAGE_STATUS_REQUEST, 0);
    return cursor_end(&c);
}

void status_encode(struct writer *w, const struct status *m)
{
    head_write(w, MESSAGE_STATUS, 1);
    writer_str(w, m->json);
}

enum terrane_error status_decode(struct cursor c, struct status *m)
{
    head_read(&c, MESSAGE_STATUS, 1);
    m->size = cursor_text(&c, LIMIT_PACKET_BYTES, &m->json);
    return cursor_end(&c);
}

void fault_encode(struct writer *w, const struct fault *m)
{
    head_write(w, MESSAGE_FAULT, 2);
    writer_uint(w, (uint64_t)m->error);
    writer_str(w, m->text);
}

enum terrane_error fault_decode(struct cursor c, struct fault *m)
{
    head_read(&c, MESSAGE_FAULT, 2);
    m->error = error_read(&c);
    cursor_str(&c, m->text, sizeof m->text);
    return cursor_end(&c);
}
