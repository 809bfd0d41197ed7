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

static void append(struct gateway *g, uint32_t slot)
{
    struct request *r = &g->requests[slot];
    r->prev = g->request_last;
    r->next = SLOT_NONE;
    if (r->prev != SLOT_NONE)
        g->requests[r->prev].next = slot;
    else
        g->request_first = slot;
    g->request_last = slot;
}

static void unlink(struct gateway *g, const struct request *r)
{
    if (r->prev != SLOT_NONE)
        g->requests[r->prev].next = r->next;
    else
        g->request_first = r->next;
    if (r->next != SLOT_NONE)
        g->requests[r->next].prev = r->prev;
    else
        g->request_last = r->prev;
}

static uint32_t request_new(struct gateway *g, enum terrane_operation operation, struct entity_id id, uint32_t own)
{
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
                          .own_prev = SLOT_NONE,
                          .own_next = SLOT_NONE,
                          .inquiry = SLOT_NONE};
    append(g, slot);
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
    return slot;
}

enum terrane_error gateway_request_new(struct gateway *g, enum terrane_operation operation, struct entity_id id,
                                       uint32_t own, uint32_t *out)
{
    if (g->request_open >= LIMIT_REQUESTS) return TERRANE_ERR_LIMIT;
    *out = request_new(g, operation, id, own);
    return TERRANE_ERR_OK;
}

uint32_t gateway_request_silent(struct gateway *g, enum terrane_operation operation, struct entity_id id, uint32_t own)
{
    uint32_t slot = request_new(g, operation, id, own);
    g->requests[slot].silent = true;
    return slot;
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

uint64_t gateway_retry_us(uint32_t refusals)
{
    uint32_t doublings = refusals / 3;
    return doublings > 3 ? RETRY_US : (uint64_t)RETRY_FIRST_US << doublings;
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
    unlink(g, r);
    if (r->inquiry != SLOT_NONE) gateway_inquiry_free(g, r->inquiry);
    if (r->wire != 0) table_remove(&g->request_index, r->wire);
    bool silent = r->silent;
    g->request_bytes -= r->emit.payload_size;
    free((void *)(uintptr_t)r->emit.payload);
    table_remove(&g->request_index, r->number);
    *r = (struct request){.next = g->request_free};
    g->request_free = slot;
    g->request_open--;
    if (!silent) gateway_notify(g, &note, NULL, 0);
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
    if (enters(r) && own->attaching) {
        struct attach attach = {.request = r->number, .sequence = r->sequence, .id = r->id};
        if (r->silent || r->operation == TERRANE_ENTER) attach.former = g->former;
        attach_encode(&g->message, &attach);
    } else if (r->operation == TERRANE_ENTER) {
        struct enter enter = {.request = r->number, .sequence = r->sequence};
        gateway_own_record(g, r->own, &enter.record);
        enter.record.position = own->enter_position;
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
    if (r->operation == TERRANE_ENTER && !own->attaching) return gateway_map_owner(g, own->enter_position);
    return own->peer == SLOT_NONE ? NODE_NONE : g->peers[own->peer].node;
}

static void send(struct gateway *g, uint32_t slot)
{
    struct request *r = &g->requests[slot];
    if (r->inquiry != SLOT_NONE) {
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
    r->unanswered++;
    if (!enters(r)) return;
    struct own *own = &g->own[r->own];
    uint32_t peer = gateway_peer_find(g, node);
    if (own->peer != peer) own->leaf = QUADKEY_NONE;
    own->asked = node;
    gateway_own_set_peer(g, r->own, peer);
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
    uint32_t own = g->requests[slot].own;
    bool again = g->requests[slot].silent && !g->own[g->requests[slot].own].attaching;
    struct own *entity = &g->own[own];
    struct note note = {.kind = NOTE_ERROR, .id = entity->id, .error = TERRANE_ERR_ENTITY_REENTERED};
    const struct leaf_owner *leaf = ownership_at(&g->map, &g->world, entity->enter_position);
    gateway_own_set_peer(g, own, gateway_peer_find(g, from));
    if (version > entity->version) entity->version = version;
    /* Its whole view may have come before. */
    if (!node_id_equal(entity->view.node, from)) gateway_own_view_missing(g, own, true);
    entity->view.node = from;
    if (entity->leaf.v == 0 && leaf != NULL) {
        entity->leaf = leaf->leaf;
        entity->leaf_since = node_id_equal(leaf->primary, from) ? leaf->since : 0;
    }
    const struct position *now = &entity->position, *said = &entity->enter_position;
    entity->moved |= entity->attaching || now->x != said->x || now->y != said->y || now->z != said->z;
    gateway_own_entered(g, own); /* and so the request is done */
    if (again) gateway_notify(g, &note, NULL, 0);
    gateway_own_follow(g, own); /* the answer may be a former owner's last word */
}

static void wait_for_owner(struct gateway *g, uint32_t slot)
{
    gateway_request_wait(g, slot, gateway_retry_us(g->requests[slot].refusals++));
}

/* An ENTER or ATTACH that is refused for good. */
static void enter_failed(struct gateway *g, uint32_t slot, enum terrane_error error)
{
    const struct request *r = &g->requests[slot];
    if (r->silent)
        gateway_own_lose(g, r->own, TERRANE_ERR_ENTITY_LOST);
    else
        done_and_end(g, slot, error);
}

static void enter_exists(struct gateway *g, uint32_t slot, struct node_id from, uint64_t version)
{
    struct request *r = &g->requests[slot];
    const struct own *own = &g->own[r->own];
    if (g->former.v != 0 && r->attempts > 1 && version >= own->life_version) {
        gateway_attach_instead(g, r->own, from); /* it was entered under the former id */
    } else if (r->silent && r->refusals < REENTER_TRIES) {
        /* A life that was believed to be over. What is known of it here is as new, and it may be anywhere soon. */
        if (version < own->life_version) gateway_own_expel_former(g, r->own, from);
        wait_for_owner(g, slot);
    } else if (!r->silent && r->attempts > 1 && r->refusals < REENTER_TRIES) {
        /* Perhaps what is left of a first try that died with its server, as a ghost with that version. */
        gateway_own_begin_life(g, r->own, slot);
        wait_for_owner(g, slot);
    } else {
        enter_failed(g, slot, TERRANE_ERR_ENTITY_EXISTS);
    }
}

/* The answer to an ENTER or ATTACH. */
static void enter_answered(struct gateway *g, uint32_t slot, struct node_id from, const struct result *result)
{
    struct request *r = &g->requests[slot];
    struct own *own = &g->own[r->own];
    bool refused = is_no_owner(result->error);
    if (r->unanswered > 0) r->unanswered--;
    if (own->attaching && (refused || result->error == TERRANE_ERR_ENTITY_UNKNOWN)) {
        gateway_request_wait(g, slot, RETRY_US);
        gateway_seek(g, r->own, refused ? SEEK_SOON_US : 0);
    } else if (r->silent && result->error == TERRANE_ERR_QUEUE_FULL) {
        gateway_request_wait(g, slot, RETRY_US); /* the game believes it to be in the world; so it waits */
    } else if (own->blank && result->error == TERRANE_ERR_OK) {
        g->counters.malformed++; /* ATTACHED comes before it */
    } else if (own->attaching && result->error == TERRANE_ERR_DETACHED) {
        /* Somebody else has attached it meanwhile. */
        if (r->silent)
            gateway_own_lose(g, r->own, TERRANE_ERR_DETACHED);
        else
            done_and_end(g, slot, r->operation == TERRANE_ENTER ? TERRANE_ERR_ENTITY_EXISTS : result->error);
    } else if (result->error == TERRANE_ERR_OK) {
        entered(g, slot, from, result->version);
    } else if (refused) {
        gateway_own_set_peer(g, r->own, SLOT_NONE);
        /* Nobody has entered it: it may enter where it is now. */
        if (r->unanswered == 0) own->enter_position = own->position;
        wait_for_owner(g, slot);
    } else if (result->error == TERRANE_ERR_ENTITY_EXISTS) {
        enter_exists(g, slot, from, result->version);
    } else {
        enter_failed(g, slot, result->error);
    }
}

/* The answer to a command of an entity that is in the world. */
static void commanded(struct gateway *g, uint32_t slot, struct node_id from, enum terrane_error error)
{
    struct request *r = &g->requests[slot];
    const struct own *own = &g->own[r->own];
    bool owner = own->peer != SLOT_NONE && node_id_equal(g->peers[own->peer].node, from);
    bool knows = owner && !own->doubtful;
    if (r->state == REQUEST_HELD || r->state == REQUEST_QUEUED) {
        /* It is said again anyway; only success needs no repetition. */
        if (error != TERRANE_ERR_OK) return;
    } else if (is_no_owner(error)) {
        wait_for_owner(g, slot);
        return;
    }
    if (error == TERRANE_ERR_ENTITY_UNKNOWN && !(knows && r->operation == TERRANE_LEAVE)) {
        /* A former owner, or its successor has not got it (yet), or the owner has lost it. */
        wait_for_owner(g, slot);
        if (owner) gateway_seek(g, r->own, knows ? 0 : SEEK_SOON_US);
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
    if (result->request == 0) {
        if (result->error == TERRANE_ERR_DETACHED)
            gateway_detached(g, from, result);
        else
            g->counters.malformed++;
        return;
    }
    uint32_t slot = gateway_request_find(g, result->request);
    if (slot == SLOT_NONE) return; /* done before: an answer to a repetition */
    struct request *r = &g->requests[slot];
    bool inquiry = r->inquiry != SLOT_NONE;
    if (inquiry || (r->own != SLOT_NONE && !entity_id_equal(r->id, result->id)) || r->attempts == 0)
        g->counters.malformed++;
    else if (r->operation == TERRANE_EMIT && is_no_owner(result->error))
        wait_for_owner(g, slot);
    else if (r->operation == TERRANE_EMIT)
        gateway_request_done(g, slot, result->error);
    else if (enters(r))
        enter_answered(g, slot, from, result);
    else
        commanded(g, slot, from, result->error);
}

static void expire(struct gateway *g, uint32_t slot)
{
    struct request *r = &g->requests[slot];
    if (r->silent) {
        /* The entity is in the world as far as the game knows: the servers are waited for. */
        unlink(g, r);
        append(g, slot);
        r->issued_us = g->now_us;
        return;
    }
    if (enters(r) || r->operation == TERRANE_LEAVE) {
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
    if (MUTATION(COMMAND_FORGOTTEN)) return;
    for (uint32_t slot = g->own[own].requests; slot != SLOT_NONE; slot = g->requests[slot].own_next) {
        struct request *r = &g->requests[slot];
        bool given = r->state == REQUEST_SENT || r->state == REQUEST_WAITING;
        if (enters(r) || !given) continue;
        r->refusals = 0;
        gateway_request_queue(g, slot);
    }
}

void gateway_requests_moved(struct gateway *g)
{
    for (uint32_t slot = g->request_first, next; slot != SLOT_NONE; slot = next) {
        struct request *r = &g->requests[slot];
        next = r->next;
        if (r->state != REQUEST_SENT) continue;
        if (r->inquiry != SLOT_NONE) {
            gateway_inquiry_moved(g, slot);
        } else if (enters(r) || r->operation == TERRANE_EMIT) {
            struct node_id node = target(g, r);
            if (node.v == 0)
                gateway_request_wait(g, slot, RETRY_US);
            else if (!node_id_equal(node, r->sent_to))
                gateway_request_queue(g, slot);
        }
    }
}

void gateway_requests_node_gone(struct gateway *g, struct node_id node)
{
    for (uint32_t slot = g->request_first, next; slot != SLOT_NONE; slot = next) {
        struct request *r = &g->requests[slot];
        next = r->next;
        if (r->state != REQUEST_SENT) continue;
        bool placed = enters(r) || r->operation == TERRANE_EMIT;
        if (placed && node_id_equal(r->sent_to, node)) gateway_request_wait(g, slot, RETRY_US);
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
