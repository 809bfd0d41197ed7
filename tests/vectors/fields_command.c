#include "tests/vectors/vectors.h"

#include "common/check.h"

static void command_head(struct text *t, uint64_t request, uint64_t sequence)
{
    text_uint(t, "request", request);
    text_uint(t, "sequence", sequence);
}

static enum terrane_error enter_fields(struct cursor c, struct text *t)
{
    struct enter m;
    enum terrane_error error = enter_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    command_head(t, m.request, m.sequence);
    text_record(t, "record", &m.record);
    return error;
}

static enum terrane_error leave_fields(struct cursor c, struct text *t)
{
    struct leave m;
    enum terrane_error error = leave_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    command_head(t, m.request, m.sequence);
    text_uint(t, "id", m.id.v);
    return error;
}

static enum terrane_error set_state_fields(struct cursor c, struct text *t)
{
    struct set_state m;
    enum terrane_error error = set_state_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    command_head(t, m.request, m.sequence);
    text_uint(t, "id", m.id.v);
    text_bin(t, "state", m.state, m.state_size);
    return error;
}

static enum terrane_error set_radius_fields(struct cursor c, struct text *t)
{
    struct set_radius m;
    enum terrane_error error = set_radius_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    command_head(t, m.request, m.sequence);
    text_uint(t, "id", m.id.v);
    text_uint(t, "radius", m.radius);
    return error;
}

static enum terrane_error attach_fields(struct cursor c, struct text *t)
{
    struct attach m;
    enum terrane_error error = attach_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    command_head(t, m.request, m.sequence);
    text_uint(t, "id", m.id.v);
    text_uint(t, "former", m.former.v);
    return error;
}

static enum terrane_error attached_fields(struct cursor c, struct text *t)
{
    struct attached m;
    enum terrane_error error = attached_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_uint(t, "request", m.request);
    text_quadkey(t, "leaf", m.leaf);
    text_record(t, "record", &m.record);
    return error;
}

static enum terrane_error moves_fields(struct cursor c, struct text *t)
{
    struct moves m;
    struct move move;
    uint32_t seen = 0;
    enum terrane_error error = moves_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_uint(t, "sequence", m.sequence);
    text_open(t, "moves", '[');
    for (; moves_next(&m, &move); seen++) {
        text_open(t, NULL, '{');
        text_uint(t, "id", move.id.v);
        text_position(t, move.position);
        text_uint(t, "yaw", move.yaw);
        text_close(t, '}');
    }
    text_close(t, ']');
    CHECK(seen == m.count);
    return error;
}

static enum terrane_error result_fields(struct cursor c, struct text *t)
{
    struct result m;
    enum terrane_error error = result_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_uint(t, "request", m.request);
    text_uint(t, "id", m.id.v);
    text_uint(t, "error", (uint64_t)m.error);
    text_uint(t, "version", m.version);
    return error;
}

static enum terrane_error owner_fields(struct cursor c, struct text *t)
{
    struct owner m;
    enum terrane_error error = owner_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_uint(t, "id", m.id.v);
    text_uint(t, "version", m.version);
    text_quadkey(t, "leaf", m.leaf);
    return error;
}

static enum terrane_error forward_fields(struct cursor c, struct text *t)
{
    struct forward m;
    enum terrane_error error = forward_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_uint(t, "gateway", m.gateway.v);
    text_uint(t, "hops", m.hops);
    text_open(t, "command", '[');
    error = message_fields(m.command, t);
    text_close(t, ']');
    return error;
}

static enum terrane_error moves_lost_fields(struct cursor c, struct text *t)
{
    struct moves_lost m;
    enum terrane_error error = moves_lost_decode(c, &m);
    if (error == TERRANE_ERR_OK) text_uint(t, "packets", m.packets);
    return error;
}

bool command_fields(enum message_kind kind, struct cursor c, struct text *t, enum terrane_error *error)
{
    if (kind == MESSAGE_ENTER)
        *error = enter_fields(c, t);
    else if (kind == MESSAGE_LEAVE)
        *error = leave_fields(c, t);
    else if (kind == MESSAGE_SET_STATE)
        *error = set_state_fields(c, t);
    else if (kind == MESSAGE_SET_RADIUS)
        *error = set_radius_fields(c, t);
    else if (kind == MESSAGE_ATTACH)
        *error = attach_fields(c, t);
    else if (kind == MESSAGE_ATTACHED)
        *error = attached_fields(c, t);
    else if (kind == MESSAGE_MOVES)
        *error = moves_fields(c, t);
    else if (kind == MESSAGE_RESULT)
        *error = result_fields(c, t);
    else if (kind == MESSAGE_OWNER)
        *error = owner_fields(c, t);
    else if (kind == MESSAGE_FORWARD)
        *error = forward_fields(c, t);
    else if (kind == MESSAGE_MOVES_LOST)
        *error = moves_lost_fields(c, t);
    else
        return false;
    return true;
}
