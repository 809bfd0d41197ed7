/* Hand-offs between cell servers: OFFER, ACCEPT, REFUSE. */
#include "proto/codec.h"

void offer_begin(struct writer *w, const struct offer *m)
{
    head_write(w, MESSAGE_OFFER, 5);
    writer_uint(w, m->from.v);
    writer_uint(w, m->to.v);
    writer_uint(w, m->from_epoch);
    writer_uint(w, m->to_epoch);
    writer_array(w, m->count);
}

void offer_add(struct writer *w, const struct transfer *item)
{
    writer_array(w, 6);
    entity_record_write(w, &item->record);
    writer_uint(w, item->gateway.v);
    writer_uint(w, item->position_sequence);
    writer_uint(w, item->state_sequence);
    writer_uint(w, item->radius_sequence);
    writer_array(w, item->recall_count);
}

static void transfer_read(struct cursor *c, struct transfer *item)
{
    (void)cursor_array(c, 6, 6);
    entity_record_read(c, &item->record);
    if (item->record.version > VERSION_OFFER_MAX) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    item->gateway = node_or_none_read(c);
    item->position_sequence = number_read(c);
    item->state_sequence = number_read(c);
    item->radius_sequence = number_read(c);
    item->recall = ids_read(c, false, &item->recall_count);
}

enum terrane_error offer_decode(struct cursor c, struct offer *m)
{
    head_read(&c, MESSAGE_OFFER, 5);
    m->from = quadkey_read(&c);
    m->to = quadkey_read(&c);
    m->from_epoch = word_read(&c);
    m->to_epoch = word_read(&c);
    m->count = cursor_array(&c, 0, LIMIT_ENTITIES);
    m->items = list_open(&c);
    struct transfer item;
    for (uint32_t i = 0; i < m->count && c.error == TERRANE_ERR_OK; i++) transfer_read(&c, &item);
    list_close(&m->items, &c);
    return cursor_end(&c);
}

bool offer_next(struct offer *m, struct transfer *item)
{
    if (!list_more(&m->items)) return false;
    transfer_read(&m->items, item);
    return m->items.error == TERRANE_ERR_OK;
}

void accept_begin(struct writer *w, const struct accept *m)
{
    head_write(w, MESSAGE_ACCEPT, 3);
    writer_uint(w, m->to.v);
    writer_uint(w, m->to_epoch);
    writer_array(w, m->count);
}

void accept_add(struct writer *w, const struct accept_item *item)
{
    writer_array(w, 3);
    writer_uint(w, item->id.v);
    writer_uint(w, item->offered);
    writer_uint(w, item->version);
}

static void accept_item_read(struct cursor *c, struct accept_item *item)
{
    (void)cursor_array(c, 3, 3);
    item->id = id_read(c);
    item->offered = version_read(c);
    item->version = version_read(c);
}

static bool accept_item_next(struct cursor *list, struct accept_item *item)
{
    if (!list_more(list)) return false;
    accept_item_read(list, item);
    return list->error == TERRANE_ERR_OK;
}

static struct cursor accept_items_read(struct cursor *c, uint32_t *count)
{
    *count = cursor_array(c, 0, LIMIT_ENTITIES);
    struct cursor items = list_open(c);
    struct accept_item item;
    for (uint32_t i = 0; i < *count && c->error == TERRANE_ERR_OK; i++) accept_item_read(c, &item);
    list_close(&items, c);
    return items;
}

enum terrane_error accept_decode(struct cursor c, struct accept *m)
{
    head_read(&c, MESSAGE_ACCEPT, 3);
    m->to = quadkey_read(&c);
    m->to_epoch = word_read(&c);
    m->items = accept_items_read(&c, &m->count);
    return cursor_end(&c);
}

bool accept_next(struct accept *m, struct accept_item *item)
{
    return accept_item_next(&m->items, item);
}

void refuse_begin(struct writer *w, const struct refuse *m)
{
    head_write(w, MESSAGE_REFUSE, 4);
    writer_uint(w, m->to.v);
    writer_uint(w, m->to_epoch);
    writer_uint(w, (uint64_t)m->error);
    writer_array(w, m->count);
}

enum terrane_error refuse_decode(struct cursor c, struct refuse *m)
{
    head_read(&c, MESSAGE_REFUSE, 4);
    m->to = quadkey_read(&c);
    m->to_epoch = word_read(&c);
    m->error = error_read(&c);
    m->items = accept_items_read(&c, &m->count);
    return cursor_end(&c);
}

bool refuse_next(struct refuse *m, struct accept_item *item)
{
    return accept_item_next(&m->items, item);
}
