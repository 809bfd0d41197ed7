/* Own entities. Each of position, state and radius is a register: the last value wins, the server orders writes by
 * `sequence`, so whatever is sent twice, or first to one server and then to the next, does no harm. */
#include "gateway/internal.h"

#include <math.h>
#include <string.h>

uint32_t gateway_own_find(const struct gateway *g, struct entity_id id)
{
    return table_get(&g->own_index, id.v); /* TABLE_NONE is SLOT_NONE */
}

uint64_t gateway_own_next_version(struct gateway *g)
{
    uint64_t now = g->wall_us + (g->now_us - g->start_us);
    g->version = now > g->version ? now : g->version + 1;
    return g->version;
}

void gateway_own_record(const struct gateway *g, uint32_t slot, struct entity_record *out)
{
    const struct own *own = &g->own[slot];
    *out = (struct entity_record){.id = own->id,
                                  .version = own->version,
                                  .kind = own->kind,
                                  .flags = own->flags,
                                  .layer = own->layer,
                                  .yaw = own->yaw,
                                  .radius = own->radius,
                                  .position = own->position,
                                  .state = own->blob,
                                  .state_size = own->blob_size};
}

static uint32_t own_new(struct gateway *g)
{
    uint32_t slot = g->own_free;
    if (slot != SLOT_NONE) {
        g->own_free = g->own[slot].next;
    } else {
        slot = g->own_count++;
        ARRAY_RESERVE(g->own, g->own_room, g->own_count);
    }
    struct own *own = &g->own[slot];
    *own = (struct own){.blob = own->blob,
                        .blob_room = own->blob_room,
                        .peer = SLOT_NONE,
                        .peer_prev = SLOT_NONE,
                        .peer_next = SLOT_NONE,
                        .pairs = SLOT_NONE,
                        .requests = SLOT_NONE,
                        .requests_last = SLOT_NONE,
                        .next = SLOT_NONE};
    return slot;
}

void gateway_own_free_if_over(struct gateway *g, uint32_t slot)
{
    struct own *own = &g->own[slot];
    if (own->state != OWN_GONE || own->pairs != SLOT_NONE || own->dirty || own->unsettled || own->needing) return;
    own->state = OWN_FREE;
    own->id = (struct entity_id){0};
    own->next = g->own_free;
    g->own_free = slot;
}

void gateway_own_set_peer(struct gateway *g, uint32_t slot, uint32_t peer)
{
    struct own *own = &g->own[slot];
    if (own->peer == peer) return;
    if (own->peer != SLOT_NONE) {
        if (own->peer_prev != SLOT_NONE)
            g->own[own->peer_prev].peer_next = own->peer_next;
        else
            g->peers[own->peer].own = own->peer_next;
        if (own->peer_next != SLOT_NONE) g->own[own->peer_next].peer_prev = own->peer_prev;
    }
    own->peer = peer;
    own->peer_prev = own->peer_next = SLOT_NONE;
    if (peer == SLOT_NONE) return;
    own->peer_next = g->peers[peer].own;
    if (own->peer_next != SLOT_NONE) g->own[own->peer_next].peer_prev = slot;
    g->peers[peer].own = slot;
}

void gateway_own_dirty(struct gateway *g, uint32_t slot)
{
    if (g->own[slot].dirty) return;
    g->own[slot].dirty = true;
    ARRAY_RESERVE(g->dirty, g->dirty_room, g->dirty_count + 1);
    g->dirty[g->dirty_count++] = slot;
    gateway_want_flush(g, FLUSH_US);
}

void gateway_own_unsettle(struct gateway *g, uint32_t slot)
{
    if (g->own[slot].unsettled) return;
    g->own[slot].unsettled = true;
    ARRAY_RESERVE(g->unsettled, g->unsettled_room, g->unsettled_count + 1);
    g->unsettled[g->unsettled_count++] = slot;
}

void gateway_own_view_missing(struct gateway *g, uint32_t slot, bool missing)
{
    struct own *own = &g->own[slot];
    missing = missing && own->state != OWN_LEAVING && own->state != OWN_GONE;
    if (own->view.missing == missing) return;
    own->view.missing = missing;
    if (missing)
        g->views_missing++;
    else
        g->views_missing--;
}

void gateway_own_view_whole(struct gateway *g, uint32_t slot, struct node_id node)
{
    g->own[slot].view.node = node;
    gateway_own_view_missing(g, slot, false);
}

void gateway_own_entered(struct gateway *g, uint32_t slot)
{
    struct own *own = &g->own[slot];
    if (own->state != OWN_ENTERING) return;
    bool first = !own->announced;
    own->state = OWN_LIVE;
    own->announced = true;
    own->attaching = own->blank = false;
    if (own->moved) gateway_own_dirty(g, slot);
    own->moved = false;
    uint32_t enter = SLOT_NONE;
    for (uint32_t at = own->requests; at != SLOT_NONE; at = g->requests[at].own_next) {
        if (g->requests[at].operation == TERRANE_ENTER || g->requests[at].operation == TERRANE_ATTACH)
            enter = at;
        else if (g->requests[at].operation == TERRANE_LEAVE)
            own->state = OWN_LEAVING;
        if (g->requests[at].state == REQUEST_HELD) gateway_request_queue(g, at);
    }
    if (own->state == OWN_LEAVING) gateway_own_view_missing(g, slot, false);
    if (enter != SLOT_NONE) gateway_request_done(g, enter, TERRANE_ERR_OK);
    if (first) gateway_views_announce(g, slot);
}

void gateway_own_hold(struct gateway *g, uint32_t slot)
{
    struct own *own = &g->own[slot];
    own->state = OWN_ENTERING;
    for (uint32_t at = own->requests; at != SLOT_NONE; at = g->requests[at].own_next) gateway_request_hold(g, at);
}

void gateway_own_end(struct gateway *g, uint32_t slot, uint32_t except, enum terrane_error error)
{
    struct own *own = &g->own[slot];
    if (own->state == OWN_GONE || own->state == OWN_FREE) return;
    gateway_own_view_missing(g, slot, false);
    gateway_seek_end(g, slot);
    own->state = OWN_GONE;
    gateway_own_set_peer(g, slot, SLOT_NONE);
    table_remove(&g->own_index, own->id.v);
    g->own_live--;
    gateway_views_drop(g, slot);
    for (uint32_t at = own->requests; at != SLOT_NONE;) {
        uint32_t next = g->requests[at].own_next;
        if (at != except) gateway_request_done(g, at, error);
        at = next;
    }
    gateway_own_unsettle(g, slot);
}

static uint8_t yaw_of(double yaw)
{
    double turns = yaw / (2 * M_PI);
    return (uint8_t)((unsigned)floor((turns - floor(turns)) * 256 + 0.5) & 255u);
}

enum terrane_error gateway_usable(const struct gateway *g)
{
    if (g->closing) return TERRANE_ERR_CLOSED;
    return gateway_is_ready(g) ? TERRANE_ERR_OK : TERRANE_ERR_NOT_READY;
}

/* Checks what all commands of an own entity check, and finds it. */
static enum terrane_error own_of(const struct gateway *g, uint64_t id, uint32_t *slot)
{
    enum terrane_error error = gateway_usable(g);
    if (error != TERRANE_ERR_OK) return error;
    if (id == 0) return TERRANE_ERR_ENTITY_NONE;
    *slot = gateway_own_find(g, (struct entity_id){id});
    if (*slot == SLOT_NONE || g->own[*slot].leaving || g->own[*slot].state == OWN_LEAVING)
        return TERRANE_ERR_ENTITY_UNKNOWN;
    return g->own[*slot].blank ? TERRANE_ERR_NOT_READY : TERRANE_ERR_OK;
}

static enum terrane_error radius_of(const struct gateway *g, double radius, uint32_t *out)
{
    if (!isfinite(radius) || radius < 0) return TERRANE_ERR_RADIUS_TOO_LARGE;
    *out = world_length(&g->world, radius);
    return *out > g->world.radius_max ? TERRANE_ERR_RADIUS_TOO_LARGE : TERRANE_ERR_OK;
}

static void set_blob(struct own *own, const void *state, size_t size)
{
    ARRAY_RESERVE(own->blob, own->blob_room, size);
    if (size > 0) memcpy(own->blob, state, size);
    own->blob_size = (uint32_t)size;
}

void gateway_own_learn(struct gateway *g, uint32_t slot, const struct entity_record *record)
{
    struct own *own = &g->own[slot];
    own->position = own->enter_position = record->position;
    own->yaw = record->yaw;
    own->layer = record->layer;
    own->kind = record->kind;
    own->flags = record->flags;
    own->radius = record->radius;
    own->blank = false;
    set_blob(own, record->state, record->state_size);
    gateway_own_unsettle(g, slot);
}

/* An own entity without registers that is ENTERING, and the request that waits for it. */
enum terrane_error gateway_own_new(struct gateway *g, struct entity_id id, enum terrane_operation operation,
                                   uint32_t *slot, uint32_t *request)
{
    if (g->own_live >= LIMIT_ENTITIES) return TERRANE_ERR_LIMIT;
    *slot = own_new(g);
    struct own *own = &g->own[*slot];
    enum terrane_error error = gateway_request_new(g, operation, id, *slot, request);
    if (error != TERRANE_ERR_OK) {
        own->state = OWN_GONE;
        gateway_own_free_if_over(g, *slot);
        return error;
    }
    own->id = id;
    own->state = OWN_ENTERING;
    table_put(&g->own_index, id.v, *slot);
    g->own_live++;
    return TERRANE_ERR_OK;
}

enum terrane_error gateway_enter(struct gateway *g, const struct terrane_entity *entity, uint64_t *request)
{
    enum terrane_error error = gateway_usable(g);
    struct position position;
    uint32_t radius, slot, at;
    struct entity_id id = {entity->id};
    if (error == TERRANE_ERR_OK && id.v == 0) error = TERRANE_ERR_ENTITY_NONE;
    if (error == TERRANE_ERR_OK && gateway_own_find(g, id) != SLOT_NONE) error = TERRANE_ERR_ENTITY_EXISTS;
    if (error == TERRANE_ERR_OK) error = world_position(&g->world, entity->x, entity->y, entity->z, &position);
    if (error == TERRANE_ERR_OK && !isfinite(entity->yaw)) error = TERRANE_ERR_POSITION_INVALID;
    if (error == TERRANE_ERR_OK) error = radius_of(g, entity->radius, &radius);
    if (error == TERRANE_ERR_OK && entity->state_size > LIMIT_STATE_BYTES) error = TERRANE_ERR_STATE_TOO_LARGE;
    if (error == TERRANE_ERR_OK) error = gateway_own_new(g, id, TERRANE_ENTER, &slot, &at);
    if (error != TERRANE_ERR_OK) return error;
    struct entity_record record = {.id = id,
                                   .kind = entity->kind,
                                   .flags = entity->flags,
                                   .layer = entity->layer,
                                   .yaw = yaw_of(entity->yaw),
                                   .radius = radius,
                                   .position = position,
                                   .state = entity->state,
                                   .state_size = (uint32_t)entity->state_size};
    gateway_own_learn(g, slot, &record);
    g->own[slot].version = gateway_own_next_version(g);
    if (request != NULL) *request = g->requests[at].number;
    gateway_request_queue(g, at);
    return TERRANE_ERR_OK;
}

enum terrane_error gateway_move(struct gateway *g, uint64_t id, double x, double y, double z, double yaw)
{
    uint32_t slot;
    struct position position;
    enum terrane_error error = own_of(g, id, &slot);
    if (error == TERRANE_ERR_OK && !isfinite(yaw)) error = TERRANE_ERR_POSITION_INVALID;
    if (error == TERRANE_ERR_OK) error = world_position(&g->world, x, y, z, &position);
    if (error != TERRANE_ERR_OK) return error;
    struct own *own = &g->own[slot];
    own->position = position;
    own->yaw = yaw_of(yaw);
    gateway_own_dirty(g, slot);
    if (own->cell_x != gateway_watch_cell(g, position.x) || own->cell_y != gateway_watch_cell(g, position.y))
        gateway_own_unsettle(g, slot);
    return TERRANE_ERR_OK;
}

/* A command of an own entity: sent at the next flush, or when its ENTER is answered. */
static enum terrane_error command(struct gateway *g, enum terrane_operation operation, uint32_t slot, uint64_t *request)
{
    uint32_t at;
    enum terrane_error error = gateway_request_new(g, operation, g->own[slot].id, slot, &at);
    if (error != TERRANE_ERR_OK) return error;
    if (request != NULL) *request = g->requests[at].number;
    if (g->own[slot].state == OWN_ENTERING)
        gateway_request_hold(g, at);
    else
        gateway_request_queue(g, at);
    return TERRANE_ERR_OK;
}

enum terrane_error gateway_set_state(struct gateway *g, uint64_t id, const void *state, size_t size, uint64_t *request)
{
    uint32_t slot;
    enum terrane_error error = own_of(g, id, &slot);
    if (error == TERRANE_ERR_OK && size > LIMIT_STATE_BYTES) error = TERRANE_ERR_STATE_TOO_LARGE;
    if (error == TERRANE_ERR_OK) error = command(g, TERRANE_SET_STATE, slot, request);
    if (error != TERRANE_ERR_OK) return error;
    set_blob(&g->own[slot], state, size);
    g->own[slot].state_sequence = ++g->sequence;
    return TERRANE_ERR_OK;
}

enum terrane_error gateway_set_radius(struct gateway *g, uint64_t id, double radius, uint64_t *request)
{
    uint32_t slot, units;
    enum terrane_error error = own_of(g, id, &slot);
    if (error == TERRANE_ERR_OK) error = radius_of(g, radius, &units);
    if (error == TERRANE_ERR_OK) error = command(g, TERRANE_SET_RADIUS, slot, request);
    if (error != TERRANE_ERR_OK) return error;
    g->own[slot].radius = units;
    g->own[slot].radius_sequence = ++g->sequence;
    gateway_own_unsettle(g, slot);
    return TERRANE_ERR_OK;
}

enum terrane_error gateway_leave(struct gateway *g, uint64_t id, uint64_t *request)
{
    uint32_t slot;
    enum terrane_error error = own_of(g, id, &slot);
    if (error == TERRANE_ERR_OK) error = command(g, TERRANE_LEAVE, slot, request);
    if (error != TERRANE_ERR_OK) return error;
    struct own *own = &g->own[slot];
    own->leaving = true;
    if (own->state == OWN_LIVE) own->state = OWN_LEAVING;
    gateway_own_view_missing(g, slot, false);
    gateway_views_drop(g, slot);
    return TERRANE_ERR_OK;
}
