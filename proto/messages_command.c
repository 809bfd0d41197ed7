/* What gateways command and are answered: ENTER, LEAVE, SET_STATE, SET_RADIUS, MOVES, ATTACH, ATTACHED, RESULT, OWNER,
 * FORWARD, MOVES_LOST. */
#include "proto/codec.h"

#define FORWARD_HOPS_MAX 8u
#define MOVE_FIELDS      5u

void enter_encode(struct writer *w, const struct enter *m)
{
    head_write(w, MESSAGE_ENTER, 3);
    writer_uint(w, m->request);
    writer_uint(w, m->sequence);
    entity_record_write(w, &m->record);
}

enum terrane_error enter_decode(struct cursor c, struct enter *m)
{
    head_read(&c, MESSAGE_ENTER, 3);
    m->request = number_read(&c);
    m->sequence = number_read(&c);
    entity_record_read(&c, &m->record);
    if (m->record.version > VERSION_ENTER_MAX) cursor_fail(&c, TERRANE_ERR_MESSAGE_RANGE);
    return cursor_end(&c);
}

void leave_encode(struct writer *w, const struct leave *m)
{
    head_write(w, MESSAGE_LEAVE, 3);
    writer_uint(w, m->request);
    writer_uint(w, m->sequence);
    writer_uint(w, m->id.v);
}

enum terrane_error leave_decode(struct cursor c, struct leave *m)
{
    head_read(&c, MESSAGE_LEAVE, 3);
    m->request = number_read(&c);
    m->sequence = number_read(&c);
    m->id = id_read(&c);
    return cursor_end(&c);
}

void set_state_encode(struct writer *w, const struct set_state *m)
{
    head_write(w, MESSAGE_SET_STATE, 4);
    writer_uint(w, m->request);
    writer_uint(w, m->sequence);
    writer_uint(w, m->id.v);
    writer_bin(w, m->state, m->state_size);
}

enum terrane_error set_state_decode(struct cursor c, struct set_state *m)
{
    head_read(&c, MESSAGE_SET_STATE, 4);
    m->request = number_read(&c);
    m->sequence = number_read(&c);
    m->id = id_read(&c);
    m->state_size = (uint32_t)cursor_bin(&c, LIMIT_STATE_BYTES, &m->state);
    return cursor_end(&c);
}

void set_radius_encode(struct writer *w, const struct set_radius *m)
{
    head_write(w, MESSAGE_SET_RADIUS, 4);
    writer_uint(w, m->request);
    writer_uint(w, m->sequence);
    writer_uint(w, m->id.v);
    writer_uint(w, m->radius);
}

enum terrane_error set_radius_decode(struct cursor c, struct set_radius *m)
{
    head_read(&c, MESSAGE_SET_RADIUS, 4);
    m->request = number_read(&c);
    m->sequence = number_read(&c);
    m->id = id_read(&c);
    m->radius = radius_read(&c);
    return cursor_end(&c);
}

void moves_begin(struct writer *w, const struct moves *m)
{
    head_write(w, MESSAGE_MOVES, 2);
    writer_uint(w, m->sequence);
    writer_array(w, m->count * MOVE_FIELDS);
}

void moves_add(struct writer *w, const struct move *move)
{
    writer_uint(w, move->id.v);
    position_write(w, move->position);
    writer_uint(w, move->yaw);
}

static void move_read(struct cursor *c, struct move *move)
{
    move->id = id_read(c);
    move->position = position_read(c);
    move->yaw = (uint8_t)cursor_uint(c, UINT8_MAX);
}

enum terrane_error moves_decode(struct cursor c, struct moves *m)
{
    head_read(&c, MESSAGE_MOVES, 2);
    m->sequence = number_read(&c);
    uint32_t fields = cursor_array(&c, 0, LIMIT_ENTITIES * MOVE_FIELDS);
    if (fields % MOVE_FIELDS != 0) cursor_fail(&c, TERRANE_ERR_MESSAGE_RANGE);
    m->count = fields / MOVE_FIELDS;
    m->moves = list_open(&c);
    struct move move;
    for (uint32_t i = 0; i < m->count && c.error == TERRANE_ERR_OK; i++) move_read(&c, &move);
    list_close(&m->moves, &c);
    return cursor_end(&c);
}

bool moves_next(struct moves *m, struct move *move)
{
    if (!list_more(&m->moves)) return false;
    move_read(&m->moves, move);
    return m->moves.error == TERRANE_ERR_OK;
}

void attach_encode(struct writer *w, const struct attach *m)
{
    head_write(w, MESSAGE_ATTACH, 4);
    writer_uint(w, m->request);
    writer_uint(w, m->sequence);
    writer_uint(w, m->id.v);
    writer_uint(w, m->former.v);
}

enum terrane_error attach_decode(struct cursor c, struct attach *m)
{
    head_read(&c, MESSAGE_ATTACH, 4);
    m->request = number_read(&c);
    m->sequence = number_read(&c);
    m->id = id_read(&c);
    m->former = node_or_none_read(&c);
    return cursor_end(&c);
}

void attached_encode(struct writer *w, const struct attached *m)
{
    head_write(w, MESSAGE_ATTACHED, 3);
    writer_uint(w, m->request);
    writer_uint(w, m->leaf.v);
    entity_record_write(w, &m->record);
}

enum terrane_error attached_decode(struct cursor c, struct attached *m)
{
    head_read(&c, MESSAGE_ATTACHED, 3);
    m->request = number_read(&c);
    m->leaf = quadkey_read(&c);
    entity_record_read(&c, &m->record);
    return cursor_end(&c);
}

void result_encode(struct writer *w, const struct result *m)
{
    head_write(w, MESSAGE_RESULT, 4);
    writer_uint(w, m->request);
    writer_uint(w, m->id.v);
    writer_uint(w, (uint64_t)m->error);
    writer_uint(w, m->version);
}

enum terrane_error result_decode(struct cursor c, struct result *m)
{
    head_read(&c, MESSAGE_RESULT, 4);
    m->request = number_read(&c);
    m->id.v = number_read(&c);
    m->error = error_read(&c);
    m->version = version_read(&c);
    return cursor_end(&c);
}

void owner_encode(struct writer *w, const struct owner *m)
{
    head_write(w, MESSAGE_OWNER, 3);
    writer_uint(w, m->id.v);
    writer_uint(w, m->version);
    writer_uint(w, m->leaf.v);
}

enum terrane_error owner_decode(struct cursor c, struct owner *m)
{
    head_read(&c, MESSAGE_OWNER, 3);
    m->id = id_read(&c);
    m->version = version_read(&c);
    m->leaf = quadkey_read(&c);
    return cursor_end(&c);
}

void forward_encode(struct writer *w, const struct forward *m)
{
    head_write(w, MESSAGE_FORWARD, 3);
    writer_uint(w, m->gateway.v);
    writer_uint(w, m->hops);
    writer_raw(w, m->command.at, (size_t)(m->command.end - m->command.at));
}

/* The command that is forwarded is checked as if it had come by itself. */
static enum terrane_error command_check(struct cursor command)
{
    struct leave leave;
    struct set_state set_state;
    struct set_radius set_radius;
    struct attach attach;
    struct moves moves;
    enum message_kind kind = MESSAGE_FORWARD;
    enum terrane_error error = message_kind_of(command, &kind);
    if (error != TERRANE_ERR_OK) return error;
    if (kind == MESSAGE_LEAVE) return leave_decode(command, &leave);
    if (kind == MESSAGE_SET_STATE) return set_state_decode(command, &set_state);
    if (kind == MESSAGE_SET_RADIUS) return set_radius_decode(command, &set_radius);
    if (kind == MESSAGE_ATTACH) return attach_decode(command, &attach);
    if (kind != MESSAGE_MOVES) return TERRANE_ERR_MESSAGE_RANGE;
    error = moves_decode(command, &moves);
    return error == TERRANE_ERR_OK && moves.count != 1 ? TERRANE_ERR_MESSAGE_RANGE : error;
}

enum terrane_error forward_decode(struct cursor c, struct forward *m)
{
    head_read(&c, MESSAGE_FORWARD, 3);
    m->gateway = node_read(&c);
    m->hops = choice_read(&c, FORWARD_HOPS_MAX);
    m->command = list_open(&c);
    cursor_skip(&c);
    list_close(&m->command, &c);
    enum terrane_error error = cursor_end(&c);
    return error == TERRANE_ERR_OK ? command_check(m->command) : error;
}

void moves_lost_encode(struct writer *w, const struct moves_lost *m)
{
    head_write(w, MESSAGE_MOVES_LOST, 1);
    writer_uint(w, m->packets);
}

enum terrane_error moves_lost_decode(struct cursor c, struct moves_lost *m)
{
    head_read(&c, MESSAGE_MOVES_LOST, 1);
    m->packets = number_read(&c);
    return cursor_end(&c);
}
