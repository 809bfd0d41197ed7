#include "tests/vectors/vectors.h"

#include "common/check.h"

#include <string.h>

static void put_fields(struct text *t, const struct standby_item *item)
{
    text_open(t, NULL, '{');
    text_record(t, "record", &item->transfer.record);
    text_uint(t, "gateway", item->transfer.gateway.v);
    text_uint(t, "position_sequence", item->transfer.position_sequence);
    text_uint(t, "state_sequence", item->transfer.state_sequence);
    text_uint(t, "radius_sequence", item->transfer.radius_sequence);
    text_uint(t, "enter_request", item->enter_request);
    text_uint(t, "slot", item->slot);
    text_quadkey(t, "leaving_to", item->leaving_to);
    text_bool(t, "pending", item->pending);
    text_close(t, '}');
    CHECK(item->transfer.recall_count == 0);
}

static void move_fields(struct text *t, const struct standby_move *move)
{
    text_open(t, NULL, '{');
    text_uint(t, "slot", move->slot);
    text_int(t, "dx", move->dx);
    text_int(t, "dy", move->dy);
    text_int(t, "dz", move->dz);
    text_uint(t, "yaw", move->yaw);
    text_close(t, '}');
}

static enum terrane_error standby_message_fields(struct cursor c, struct text *t)
{
    struct standby m;
    struct entity_id id;
    struct standby_item item;
    struct standby_move move;
    uint32_t drops = 0, puts = 0, moves = 0;
    enum terrane_error error = standby_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_quadkey(t, "leaf", m.leaf);
    text_uint(t, "epoch", m.epoch);
    text_uint(t, "seq", m.seq);
    text_uint(t, "part", m.part);
    text_uint(t, "parts", m.parts);
    text_open(t, "drops", '[');
    for (; standby_next_drop(&m, &id); drops++) text_uint(t, NULL, id.v);
    text_close(t, ']');
    text_open(t, "puts", '[');
    for (; standby_next_put(&m, &item); puts++) put_fields(t, &item);
    text_close(t, ']');
    text_open(t, "moves", '[');
    for (; standby_next_move(&m, &move); moves++) move_fields(t, &move);
    text_close(t, ']');
    CHECK(drops == m.drop_count && puts == m.put_count && moves == m.move_count);
    return error;
}

static enum terrane_error ack_fields(struct cursor c, struct text *t)
{
    struct standby_ack m;
    struct standby_ack_item item;
    uint32_t seen = 0;
    enum terrane_error error = standby_ack_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_uint(t, "stamp", m.stamp);
    text_open(t, "items", '[');
    for (; standby_ack_next(&m, &item); seen++) {
        text_open(t, NULL, '{');
        text_quadkey(t, "leaf", item.leaf);
        text_uint(t, "epoch", item.epoch);
        text_uint(t, "seq", item.seq);
        text_bool(t, "refused", item.refused);
        text_close(t, '}');
    }
    text_close(t, ']');
    CHECK(seen == m.count);
    return error;
}

static enum terrane_error beat_fields(struct cursor c, struct text *t)
{
    struct standby_beat m;
    enum terrane_error error = standby_beat_decode(c, &m);
    if (error == TERRANE_ERR_OK) text_uint(t, "stamp", m.stamp);
    return error;
}

static enum terrane_error release_fields(struct cursor c, struct text *t)
{
    struct release m;
    enum terrane_error error = release_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_quadkey(t, "leaf", m.leaf);
    text_uint(t, "epoch", m.epoch);
    text_uint(t, "seq", m.seq);
    return error;
}

static enum terrane_error end_fields(struct cursor c, struct text *t)
{
    struct standby_end m;
    enum terrane_error error = standby_end_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_quadkey(t, "leaf", m.leaf);
    text_uint(t, "epoch", m.epoch);
    return error;
}

static enum terrane_error death_fields(struct cursor c, struct text *t)
{
    struct death m;
    enum terrane_error error = death_decode(c, &m);
    if (error == TERRANE_ERR_OK) text_uint(t, "node", m.node.v);
    return error;
}

static enum terrane_error drain_fields(struct cursor c, struct text *t)
{
    struct drain m;
    enum terrane_error error = drain_decode(c, &m);
    if (error == TERRANE_ERR_OK) text_str(t, "name", m.name, strlen(m.name));
    return error;
}

static enum terrane_error explain_fields(struct cursor c, struct text *t)
{
    struct explain m;
    enum terrane_error error = explain_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_uint(t, "what", (uint64_t)m.what);
    text_uint(t, "since", m.since);
    return error;
}

static enum terrane_error place_fields(struct cursor c, struct text *t)
{
    struct place m;
    enum terrane_error error = place_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_uint(t, "what", (uint64_t)m.what);
    text_quadkey(t, "leaf", m.leaf);
    text_str(t, "name", m.name, strlen(m.name));
    return error;
}

static enum terrane_error done_fields(struct cursor c, struct text *t)
{
    struct done m;
    enum terrane_error error = done_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_uint(t, "count", m.count);
    text_str(t, "text", m.text, strlen(m.text));
    return error;
}

bool standby_fields(enum message_kind kind, struct cursor c, struct text *t, enum terrane_error *error)
{
    if (kind == MESSAGE_STANDBY)
        *error = standby_message_fields(c, t);
    else if (kind == MESSAGE_STANDBY_ACK)
        *error = ack_fields(c, t);
    else if (kind == MESSAGE_STANDBY_BEAT)
        *error = beat_fields(c, t);
    else if (kind == MESSAGE_RELEASE)
        *error = release_fields(c, t);
    else if (kind == MESSAGE_STANDBY_END)
        *error = end_fields(c, t);
    else if (kind == MESSAGE_DEATH)
        *error = death_fields(c, t);
    else if (kind == MESSAGE_DRAIN)
        *error = drain_fields(c, t);
    else if (kind == MESSAGE_EXPLAIN)
        *error = explain_fields(c, t);
    else if (kind == MESSAGE_PLACE)
        *error = place_fields(c, t);
    else if (kind == MESSAGE_DONE)
        *error = done_fields(c, t);
    else
        return false;
    return true;
}
