/* Everything that the game gets an answer to. A request is sent when there is somebody to send it to, again when that
 * server says that it is not the one, or when another has taken the entity over, and is done exactly once: by an
 * answer, or by its time-out. What it says is not kept but taken from the entity's registers when it is sent. */
#include "gateway/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint32_t gateway_request_find(const struct gateway *g, uint64_t number)
{
    return table_get(&g->request_index, number); /* TABLE_NONE is SLOT_NONE */
}

enum terrane_error gateway_request_new(struct gateway *g, enum terrane_operation operation, struct entity_id id,
                                       uint32_t own, uint32_t *out)
{
    if (g->request_open >= LIMIT_REQUESTS) return TERRANE_ERR_LIMIT;
    uint32_t slot = g->request_free;
    if (slot != SLOT_NONE) {
        g->request_free = g->requests[slot].next;
    } else {
        slot = g->request_count++;
        ARRAY_RESERVE(g->requests, g->request_room, g->request_count);
    }
    struct request *r = &g->requests[slot];
    *r = (struct request){.number = ++g->request_number,
                          .operation = operation,
                          .id = id,
                          .own = own,
                          .sequence = ++g->sequence,
                          .issued_us = g->now_us,
                          .prev = g->request_last,
                          .next = SLOT_NONE,
                          .own_prev = SLOT_NONE,
                          .own_next = SLOT_NONE,
                          .inquiry = SLOT_NONE};
    if (r->prev != SLOT_NONE)
        g->requests[r->prev].next = slot;
    else
        g->request_first = slot;
    g->request_last = slot;
    if (own != SLOT_NONE) {
        struct own *entity = &g->own[own];
        r->own_prev = entity->requests_last;
        if (r->own_prev != SLOT_NONE)
            g->requests[r->own_prev].own_next = slot;
        else
            entity->requests = slot;
        entity->requests_last = slot;
    }
    table_put(&g->request_index, r->number, slot);
    g->request_open++;
    *out = slot;
    return TERRANE_ERR_OK;
}

static void unlink_own(struct gateway *g, struct request *r)
{
    if (r->own == SLOT_NONE) return;
    struct own *entity = &g->own[r->own];
    if (r->own_prev != SLOT_NONE)
        g->requests[r->own_prev].own_next = r->own_next;
    else
        entity->requests = r->own_next;
    if (r->own_next != SLOT_NONE)
        g->requests[r->own_next].own_prev = r->own_prev;
    else
        entity->requests_last = r->own_prev;
}

static void set_state(struct gateway *g, struct request *r, enum request_state state)
{
    if (r->state == REQUEST_WAITING) g->request_waiting--;
    r->state = state;
    if (state == REQUEST_WAITING) g->request_waiting++;
}

void gateway_request_queue(struct gateway *g, uint32_t slot)
{
    set_state(g, &g->requests[slot], REQUEST_QUEUED);
    ARRAY_RESERVE(g->sending, g->sending_room, g->sending_count + 1);
    g->sending[g->sending_count++] = slot;
    gateway_want_flush(g, FLUSH_US);
}

void gateway_request_hold(struct gateway *g, uint32_t slot)
{
    set_state(g, &g->requests[slot], REQUEST_HELD);
}

void gateway_request_wait(struct gateway *g, uint32_t slot, uint64_t delay_us)
{
    struct request *r = &g->requests[slot];
    set_state(g, r, REQUEST_WAITING);
    r->retry_us = g->now_us + delay_us;
    if (g->request_waiting == 1 || r->retry_us < g->retry_us) g->retry_us = r->retry_us;
}

void gateway_request_done(struct gateway *g, uint32_t slot, enum terrane_error error)
{
    struct request *r = &g->requests[slot];
    struct note note = {
        .kind = NOTE_DONE, .operation = r->operation, .error = error, .request = r->number, .id = r->id};
    set_state(g, r, REQUEST_SENT);
    unlink_own(g, r);
    if (r->prev != SLOT_NONE)
        g->requests[r->prev].next = r->next;
    else
        g->request_first = r->next;
    if (r->next != SLOT_NONE)
        g->requests[r->next].prev = r->prev;
    else
        g->request_last = r->prev;
    if (r->inquiry != SLOT_NONE) gateway_inquiry_free(g, r->inquiry);
    g->request_bytes -= r->emit.payload_size;
    free((void *)(uintptr_t)r->emit.payload);
    table_remove(&g->request_index, r->number);
    *r = (struct request){.next = g->request_free};
    g->request_free = slot;
    g->request_open--;
    gateway_notify(g, &note, NULL, 0);
}

/* Its entity ends with it. */
static void done_and_end(struct gateway *g, uint32_t slot, enum terrane_error error)
{
    gateway_own_end(g, g->requests[slot].own, slot, TERRANE_ERR_ENTITY_UNKNOWN);
    gateway_request_done(g, slot, error);
}

static void encode(struct gateway *g, const struct request *r)
{
    writer_clear(&g->message);
    if (r->operation == TERRANE_EMIT) {
        emit_encode(&g->message, MESSAGE_EMIT, &r->emit);
        return;
    }
    const struct own *own = &g->own[r->own];
    if (r->operation == TERRANE_ENTER) {
        struct enter enter = {.request = r->number, .sequence = r->sequence};
        gateway_own_record(g, r->own, &enter.record);
        enter_encode(&g->message, &enter);
    } else if (r->operation == TERRANE_LEAVE) {
        struct leave leave = {.request = r->number, .sequence = r->sequence, .id = r->id};
        leave_encode(&g->message, &leave);
    } else if (r->operation == TERRANE_SET_STATE) {
        struct set_state state = {.request = r->number,
                                  .sequence = own->state_sequence,
                                  .id = r->id,
                                  .state = own->blob,
                                  .state_size = own->blob_size};
        set_state_encode(&g->message, &state);
    } else {
        CHECK(r->operation == TERRANE_SET_RADIUS);
        struct set_radius radius = {
            .request = r->number, .sequence = own->radius_sequence, .id = r->id, .radius = own->radius};
        set_radius_encode(&g->message, &radius);
    }
}

static struct node_id target(const struct gateway *g, const struct request *r)
{
    if (r->operation == TERRANE_EMIT) return gateway_map_owner(g, r->emit.position);
    const struct own *own = &g->own[r->own];
    if (r->operation == TERRANE_ENTER) return gateway_map_owner(g, own->position);
    return own->peer == SLOT_NONE ? NODE_NONE : g->peers[own->peer].node;
}

static void send(struct gateway *g, uint32_t slot)
{
    struct request *r = &g->requests[slot];
    if (r->operation == TERRANE_QUERY || r->operation == TERRANE_FIND) {
        set_state(g, r, REQUEST_SENT);
        gateway_inquiry_send(g, slot);
        return;
    }
    struct node_id node = target(g, r);
    if (node.v == 0) {
        gateway_request_wait(g, slot, RETRY_US);
        return;
    }
    encode(g, r);
    if (gateway_peer_push(g, node) != TERRANE_ERR_OK) {
        gateway_request_wait(g, slot, RETRY_US);
        return;
    }
    set_state(g, r, REQUEST_SENT);
    r->sent_to = node;
    r->attempts++;
    if (r->operation == TERRANE_ENTER) gateway_own_set_peer(g, r->own, gateway_peer_find(g, node));
}

void gateway_requests_send(struct gateway *g)
{
    /* A slot that is in the list twice (freed and taken again) is sent the first time. */
    for (uint32_t i = 0; i < g->sending_count; i++) {
        const struct request *r = &g->requests[g->sending[i]];
        if (r->number != 0 && r->state == REQUEST_QUEUED) send(g, g->sending[i]);
    }
    g->sending_count = 0;
}

static bool is_no_owner(enum terrane_error error)
{
    return error == TERRANE_ERR_NOT_OWNER || error == TERRANE_ERR_REGION_UNOWNED || error == TERRANE_ERR_NOT_READY;
}

static void entered(struct gateway *g, uint32_t slot, struct node_id from, uint64_t version)
{
    uint32_t own = g->requests[slot].own, peer = gateway_peer_find(g, from);
    struct own *entity = &g->own[own];
    const struct leaf_owner *leaf = ownership_at(&g->map, &g->world, entity->position);
    gateway_own_set_peer(g, own, peer);
    if (version > entity->version) entity->version = version;
    entity->view.node = from;
    entity->leaf_epoch = 0;
    if (leaf != NULL && node_id_equal(leaf->primary, from)) {
        entity->leaf = leaf->leaf;
        entity->leaf_epoch = leaf->epoch;
    }
    gateway_own_entered(g, own); /* and so the request is done */
}

/* The answer to a command of an entity that is in the world. */
static void commanded(struct gateway *g, uint32_t slot, struct node_id from, enum terrane_error error)
{
    struct request *r = &g->requests[slot];
    uint32_t peer = g->own[r->own].peer;
    bool owner = peer != SLOT_NONE && node_id_equal(g->peers[peer].node, from);
    if (is_no_owner(error) || (error == TERRANE_ERR_ENTITY_UNKNOWN && !owner)) {
        gateway_request_wait(g, slot, RETRY_US);
        return;
    }
    if (r->operation != TERRANE_LEAVE) {
        gateway_request_done(g, slot, error);
        return;
    }
    /* Said twice, the first has done it and its answer may come second or not at all. */
    if (error == TERRANE_ERR_ENTITY_UNKNOWN && r->attempts > 1) error = TERRANE_ERR_OK;
    done_and_end(g, slot, error);
}

void gateway_requests_result(struct gateway *g, struct node_id from, const struct result *result)
{
    uint32_t slot = gateway_request_find(g, result->request);
    if (slot == SLOT_NONE) return; /* done before: an answer to a repetition */
    struct request *r = &g->requests[slot];
    bool inquiry = r->operation == TERRANE_QUERY || r->operation == TERRANE_FIND;
    if (inquiry || (r->own != SLOT_NONE && !entity_id_equal(r->id, result->id)) || r->attempts == 0) {
        g->counters.malformed++;
    } else if (r->operation == TERRANE_EMIT) {
        if (is_no_owner(result->error))
            gateway_request_wait(g, slot, RETRY_US);
        else
            gateway_request_done(g, slot, result->error);
    } else if (r->operation != TERRANE_ENTER) {
        commanded(g, slot, from, result->error);
    } else if (result->error == TERRANE_ERR_OK) {
        entered(g, slot, from, result->version);
    } else if (is_no_owner(result->error)) {
        gateway_own_set_peer(g, r->own, SLOT_NONE);
        gateway_request_wait(g, slot, RETRY_US);
    } else {
        done_and_end(g, slot, result->error);
    }
}

static void expire(struct gateway *g, uint32_t slot)
{
    struct request *r = &g->requests[slot];
    if (r->operation == TERRANE_ENTER || r->operation == TERRANE_LEAVE) {
        if (r->operation == TERRANE_ENTER) gateway_own_expel(g, r->own);
        done_and_end(g, slot, TERRANE_ERR_TIMED_OUT);
        return;
    }
    if (r->inquiry != SLOT_NONE) gateway_inquiry_tell(g, slot);
    gateway_request_done(g, slot, TERRANE_ERR_TIMED_OUT);
}

void gateway_requests_expire(struct gateway *g)
{
    while (g->request_first != SLOT_NONE && g->now_us >= g->requests[g->request_first].issued_us + g->timeout_us)
        expire(g, g->request_first);
}

void gateway_requests_retry(struct gateway *g)
{
    uint64_t soonest = UINT64_MAX;
    bool due = g->now_us >= g->retry_us;
    for (uint32_t slot = g->request_first; g->request_waiting > 0 && slot != SLOT_NONE; slot = g->requests[slot].next) {
        struct request *r = &g->requests[slot];
        if (r->state != REQUEST_WAITING) continue;
        /* A find's second round is a matter of time, not of the map. */
        bool ready = r->operation == TERRANE_FIND || due ? g->now_us >= r->retry_us : true;
        if (ready)
            gateway_request_queue(g, slot);
        else if (r->retry_us < soonest)
            soonest = r->retry_us;
    }
    g->retry_us = soonest;
}

void gateway_requests_resend(struct gateway *g, uint32_t own)
{
    for (uint32_t slot = g->own[own].requests; slot != SLOT_NONE; slot = g->requests[slot].own_next) {
        struct request *r = &g->requests[slot];
        bool given = r->state == REQUEST_SENT || r->state == REQUEST_WAITING;
        if (r->operation != TERRANE_ENTER && given) gateway_request_queue(g, slot);
    }
}

void gateway_requests_node_gone(struct gateway *g, struct node_id node)
{
    for (uint32_t slot = g->request_first, next; slot != SLOT_NONE; slot = next) {
        struct request *r = &g->requests[slot];
        next = r->next;
        if (r->state != REQUEST_SENT) continue;
        bool placed = r->operation == TERRANE_ENTER || r->operation == TERRANE_EMIT;
        if (r->inquiry != SLOT_NONE)
            gateway_inquiry_node_gone(g, slot, node);
        else if (placed && node_id_equal(r->sent_to, node))
            gateway_request_wait(g, slot, RETRY_US);
    }
}

uint64_t gateway_requests_deadline_us(const struct gateway *g)
{
    if (g->request_first == SLOT_NONE) return UINT64_MAX;
    uint64_t due = g->requests[g->request_first].issued_us + g->timeout_us;
    return g->request_waiting > 0 && g->retry_us < due ? g->retry_us : due;
}

enum terrane_error gateway_emit(struct gateway *g, uint32_t code, double x, double y, double z, uint16_t layer,
                                double radius, const void *payload, size_t size, uint64_t *request)
{
    struct position position;
    uint32_t slot;
    if (g->closing) return TERRANE_ERR_CLOSED;
    if (!gateway_is_ready(g)) return TERRANE_ERR_NOT_READY;
    enum terrane_error error = world_position(&g->world, x, y, z, &position);
    if (error != TERRANE_ERR_OK) return error;
    if (!isfinite(radius) || radius < 0 || world_length(&g->world, radius) > g->world.radius_max)
        return TERRANE_ERR_RADIUS_TOO_LARGE;
    if (size > LIMIT_EVENT_BYTES) return TERRANE_ERR_STATE_TOO_LARGE;
    if (g->request_bytes + size > LIMIT_REQUEST_BYTES) return TERRANE_ERR_LIMIT;
    error = gateway_request_new(g, TERRANE_EMIT, (struct entity_id){0}, SLOT_NONE, &slot);
    if (error != TERRANE_ERR_OK) return error;
    struct request *r = &g->requests[slot];
    r->emit = (struct emit){.origin = g->info.node,
                            .request = r->number,
                            .code = code,
                            .radius = world_length(&g->world, radius),
                            .layer = layer,
                            .position = position};
    if (size > 0) {
        uint8_t *copy = malloc(size);
        CHECK(copy != NULL);
        memcpy(copy, payload, size);
        r->emit.payload = copy;
        r->emit.payload_size = (uint32_t)size;
        g->request_bytes += size;
    }
    if (request != NULL) *request = r->number;
    gateway_request_queue(g, slot);
    return TERRANE_ERR_OK;
}

void gateway_requests_close(struct gateway *g)
{
    for (uint32_t i = 0; i < g->request_count; i++) free((void *)(uintptr_t)g->requests[i].emit.payload);
    free(g->requests);
    free(g->sending);
    table_close(&g->request_index);
}
