#include "tests/vectors/vectors.h"

#include "common/check.h"

#include <string.h>

static void stream_head(struct text *t, enum stream_kind stream, struct quadkey leaf)
{
    text_uint(t, "stream", (uint64_t)stream);
    text_quadkey(t, "leaf", leaf);
}

static enum terrane_error subscribe_fields(struct cursor c, struct text *t)
{
    struct subscribe m;
    enum terrane_error error = subscribe_decode(c, &m);
    if (error == TERRANE_ERR_OK) stream_head(t, m.stream, m.leaf);
    return error;
}

static enum terrane_error snapshot_request_fields(struct cursor c, struct text *t)
{
    struct snapshot_request m;
    enum terrane_error error = snapshot_request_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    stream_head(t, m.stream, m.leaf);
    text_uint(t, "from_slot", m.from_slot);
    return error;
}

static enum terrane_error unsubscribed_fields(struct cursor c, struct text *t)
{
    struct unsubscribed m;
    enum terrane_error error = unsubscribed_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    stream_head(t, m.stream, m.leaf);
    text_uint(t, "error", (uint64_t)m.error);
    return error;
}

static enum terrane_error snapshot_fields(struct cursor c, struct text *t)
{
    struct snapshot m;
    struct entity_record record;
    uint32_t slot, seen = 0;
    enum terrane_error error = snapshot_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    stream_head(t, m.stream, m.leaf);
    text_uint(t, "epoch", m.epoch);
    text_uint(t, "seq", m.seq);
    text_uint(t, "tick", m.tick);
    text_uint(t, "part", m.part);
    text_uint(t, "parts", m.parts);
    text_open(t, "items", '[');
    for (; snapshot_next(&m, &slot, &record); seen++) {
        text_open(t, NULL, '{');
        text_uint(t, "slot", slot);
        text_record(t, "record", &record);
        text_close(t, '}');
    }
    text_close(t, ']');
    CHECK(seen == m.count);
    return error;
}

static void transfer_fields(struct text *t, const struct transfer *item)
{
    struct cursor recall = item->recall;
    struct entity_id id;
    uint32_t seen = 0;
    text_open(t, NULL, '{');
    text_record(t, "record", &item->record);
    text_uint(t, "gateway", item->gateway.v);
    text_uint(t, "position_sequence", item->position_sequence);
    text_uint(t, "state_sequence", item->state_sequence);
    text_uint(t, "radius_sequence", item->radius_sequence);
    text_open(t, "recall", '[');
    for (; entity_next(&recall, &id); seen++) text_uint(t, NULL, id.v);
    text_close(t, ']');
    text_close(t, '}');
    CHECK(seen == item->recall_count);
}

static enum terrane_error offer_fields(struct cursor c, struct text *t)
{
    struct offer m;
    struct transfer item;
    uint32_t seen = 0;
    enum terrane_error error = offer_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_quadkey(t, "from", m.from);
    text_quadkey(t, "to", m.to);
    text_uint(t, "from_epoch", m.from_epoch);
    text_uint(t, "to_epoch", m.to_epoch);
    text_open(t, "items", '[');
    for (; offer_next(&m, &item); seen++) transfer_fields(t, &item);
    text_close(t, ']');
    CHECK(seen == m.count);
    return error;
}

static void accept_item_fields(struct text *t, const struct accept_item *item)
{
    text_open(t, NULL, '{');
    text_uint(t, "id", item->id.v);
    text_uint(t, "offered", item->offered);
    text_uint(t, "version", item->version);
    text_close(t, '}');
}

static enum terrane_error accept_fields(struct cursor c, struct text *t)
{
    struct accept m;
    struct accept_item item;
    uint32_t seen = 0;
    enum terrane_error error = accept_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_quadkey(t, "to", m.to);
    text_uint(t, "to_epoch", m.to_epoch);
    text_open(t, "items", '[');
    for (; accept_next(&m, &item); seen++) accept_item_fields(t, &item);
    text_close(t, ']');
    CHECK(seen == m.count);
    return error;
}

static enum terrane_error refuse_fields(struct cursor c, struct text *t)
{
    struct refuse m;
    struct accept_item item;
    uint32_t seen = 0;
    enum terrane_error error = refuse_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_quadkey(t, "to", m.to);
    text_uint(t, "to_epoch", m.to_epoch);
    text_uint(t, "error", (uint64_t)m.error);
    text_open(t, "items", '[');
    for (; refuse_next(&m, &item); seen++) accept_item_fields(t, &item);
    text_close(t, ']');
    CHECK(seen == m.count);
    return error;
}

static enum terrane_error status_fields(struct cursor c, struct text *t)
{
    struct status m;
    enum terrane_error error = status_decode(c, &m);
    if (error == TERRANE_ERR_OK) text_str(t, "json", m.json, m.size);
    return error;
}

static enum terrane_error fault_fields(struct cursor c, struct text *t)
{
    struct fault m;
    enum terrane_error error = fault_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_uint(t, "error", (uint64_t)m.error);
    text_str(t, "text", m.text, strlen(m.text));
    return error;
}

bool stream_fields(enum message_kind kind, struct cursor c, struct text *t, enum terrane_error *error)
{
    if (kind == MESSAGE_SUBSCRIBE || kind == MESSAGE_UNSUBSCRIBE)
        *error = subscribe_fields(c, t);
    else if (kind == MESSAGE_SNAPSHOT_REQUEST)
        *error = snapshot_request_fields(c, t);
    else if (kind == MESSAGE_SNAPSHOT)
        *error = snapshot_fields(c, t);
    else if (kind == MESSAGE_UNSUBSCRIBED)
        *error = unsubscribed_fields(c, t);
    else if (kind == MESSAGE_OFFER)
        *error = offer_fields(c, t);
    else if (kind == MESSAGE_ACCEPT)
        *error = accept_fields(c, t);
    else if (kind == MESSAGE_REFUSE)
        *error = refuse_fields(c, t);
    else if (kind == MESSAGE_STATUS_REQUEST)
        *error = status_request_decode(c);
    else if (kind == MESSAGE_STATUS)
        *error = status_fields(c, t);
    else if (kind == MESSAGE_FAULT)
        *error = fault_fields(c, t);
    else
        return false;
    return true;
}
