/* Questions and map events: shapes, look-ups, who hears an event; and the query lane of outside tools. */
#include "cellserver/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESULT_ITEMS 1400u /* 38 bytes each at most: a part stays below LIMIT_MESSAGE_BYTES */
#define EVENTS_KEPT  1024u

/* Whether a gateway may still ask in this tick. */
static bool may_ask(struct cellserver *cs, uint32_t peer)
{
    if (cs->peers[peer].asks >= LIMIT_ASKS_PER_TICK) {
        cs->stats.dropped++;
        return false;
    }
    cs->peers[peer].asks++;
    return true;
}

void asks_reset(struct cellserver *cs)
{
    for (uint32_t at = 0; at < cs->peer_count; at++) cs->peers[at].asks = 0;
}

static size_t query_run(struct cellserver *cs, const struct query *m)
{
    for (;;) {
        size_t count;
        if (m->shape == QUERY_CIRCLE) {
            struct position centre = {m->a, m->b, 0};
            count = aoi_query_circle(cs->aoi, centre, (uint32_t)m->c, m->layer, cs->handles, cs->query_room);
        } else {
            count = aoi_query_rectangle(cs->aoi, m->a, m->b, m->c, m->d, m->layer, cs->handles, cs->query_room);
        }
        if (count <= cs->query_room) return count;
        ARRAY_RESERVE(cs->handles, cs->query_room, count);
    }
}

/* What is owned of it, to the front of cs->handles. Ghosts are their owners' to answer for: what is left here of one
 * whose owner has not spoken yet may be gone. */
static size_t query_owned(struct cellserver *cs, const struct query *m)
{
    size_t found = query_run(cs, m), count = 0;
    for (size_t i = 0; i < found; i++) {
        uint32_t handle = cs->handles[i];
        if (cs->entities[cs->entity_of_handle[handle]].status == ENTITY_OWNED) cs->handles[count++] = handle;
    }
    return count;
}

static void result_write(struct cellserver *cs, const struct query *m, uint32_t part, uint32_t parts, size_t first,
                         uint32_t count, struct writer *w)
{
    query_result_begin(w, &(struct query_result){.request = m->request, .part = part, .parts = parts, .count = count});
    for (uint32_t i = 0; i < count; i++) {
        const struct entity *e = &cs->entities[cs->entity_of_handle[cs->handles[first + i]]];
        query_result_add(w, &(struct query_item){.id = e->id, .version = e->version, .position = e->position});
    }
}

static bool shape_meets(const struct cellserver *cs, const struct query *m, struct square square)
{
    int64_t more = cs->world.handoff_hysteresis;
    if (m->shape == QUERY_CIRCLE) {
        return square_meets_circle(square, (struct position){m->a, m->b, 0}, (int64_t)m->c + more);
    }
    return square.x <= m->c + more && square.y <= m->d + more && square.x + square.side > m->a - more &&
           square.y + square.side > m->b - more;
}

/* A leaf that the map gives to us but that may not be served now, fenced or not promoted yet: what is asked of it is
 * refused as a whole, since the answer would lack its entities. */
static bool leaf_is_unready(const struct cellserver *cs, struct quadkey leaf)
{
    uint32_t at = leaf_find(cs, leaf);
    return at == NONE || !leaf_serves(cs, at);
}

static bool query_unready(const struct cellserver *cs, const struct query *m)
{
    for (uint32_t i = 0; i < cs->map.now.leaf_count; i++) {
        const struct leaf_owner *owner = &cs->map.now.leaves[i];
        if (!node_id_equal(owner->primary, cs->options.info.node) || quadkey_depth(owner->leaf) > cs->world.depth) {
            continue;
        }
        if (leaf_is_unready(cs, owner->leaf) && shape_meets(cs, m, quadkey_square(&cs->world, owner->leaf))) {
            return true;
        }
    }
    return false;
}

static void query_refuse(struct cellserver *cs, uint32_t peer, const struct query *m, enum terrane_error error)
{
    struct query_result refusal = {.request = m->request, .error = error, .parts = 1};
    writer_clear(&cs->message);
    query_result_begin(&cs->message, &refusal);
    peer_send(cs, peer, &cs->message, false);
}

void query_handle(struct cellserver *cs, uint32_t peer, struct cursor message)
{
    struct query m;
    if (query_decode(message, &m) != TERRANE_ERR_OK) {
        cs->stats.malformed++;
        return;
    }
    if (!may_ask(cs, peer)) {
        query_refuse(cs, peer, &m, TERRANE_ERR_QUEUE_FULL);
        return;
    }
    if (query_unready(cs, &m)) {
        query_refuse(cs, peer, &m, TERRANE_ERR_NOT_READY);
        return;
    }
    size_t count = query_owned(cs, &m);
    uint32_t parts = (uint32_t)((count + RESULT_ITEMS - 1) / RESULT_ITEMS);
    if (parts == 0) parts = 1;
    for (uint32_t part = 0; part < parts; part++) {
        size_t first = (size_t)part * RESULT_ITEMS;
        uint32_t size = count - first > RESULT_ITEMS ? RESULT_ITEMS : (uint32_t)(count - first);
        writer_clear(&cs->message);
        result_write(cs, &m, part, parts, first, size, &cs->message);
        peer_send(cs, peer, &cs->message, true);
    }
}

static void lookup_run(const struct cellserver *cs, const struct lookup *m, struct lookup_result *out)
{
    *out = (struct lookup_result){.request = m->request, .id = m->id, .error = TERRANE_ERR_ENTITY_UNKNOWN};
    out->leaf = QUADKEY_ROOT;
    uint32_t at = entity_find(cs, m->id);
    bool owned = at != NONE && cs->entities[at].status == ENTITY_OWNED;
    /* Whoever stands by for it, or has been offered it, may be asked because its owner is gone: "unknown" would be the
     * entity's end. */
    if (owned ? !leaf_serves(cs, cs->entities[at].leaf) : replica_holds(cs, m->id) || takeover_pends(cs, m->id)) {
        out->error = TERRANE_ERR_NOT_READY;
        return;
    }
    if (!owned) return;
    const struct entity *e = &cs->entities[at];
    out->error = TERRANE_ERR_OK;
    out->version = e->version;
    out->leaf = cs->leaves[e->leaf].key;
    out->position = e->position;
}

void lookup_handle(struct cellserver *cs, uint32_t peer, struct cursor message)
{
    struct lookup m;
    if (lookup_decode(message, &m) != TERRANE_ERR_OK) {
        cs->stats.malformed++;
        return;
    }
    struct lookup_result result;
    lookup_run(cs, &m, &result);
    writer_clear(&cs->message);
    lookup_result_encode(&cs->message, &result);
    peer_send(cs, peer, &cs->message, true);
}

static bool event_reaches(const struct cellserver *cs, const struct emit *emit, const struct entity *e)
{
    int64_t dx = (int64_t)e->position.x - emit->position.x, dy = (int64_t)e->position.y - emit->position.y;
    return entity_is_observer(cs, e) && e->layer == emit->layer &&
           dx * dx + dy * dy <= (int64_t)emit->radius * emit->radius;
}

static void tell_gateway(struct cellserver *cs, struct node_id gateway, const struct emit *emit, const uint64_t *ids,
                         uint32_t count)
{
    uint32_t peer = peer_find(cs, gateway);
    uint32_t most = (LIMIT_MESSAGE_BYTES - LIMIT_EVENT_BYTES - 128) / 9;
    for (uint32_t done = 0; peer != NONE && done < count;) {
        uint32_t part = count - done > most ? most : count - done;
        writer_clear(&cs->message);
        event_told_begin(&cs->message, &(struct event_told){.emit = *emit, .count = part});
        for (uint32_t i = 0; i < part; i++) entity_add(&cs->message, (struct entity_id){ids[done + i]});
        peer_send(cs, peer, &cs->message, true);
        done += part;
    }
}

/* Tells the gateways of the observers that are owned here: each observer has one owner, so each is told once; one that
 * is changing its owner is told by event_tell_arrival as well, and its gateway drops the repetition. */
static void event_deliver(struct cellserver *cs, const struct emit *emit)
{
    struct query shape = {.shape = QUERY_CIRCLE, .layer = emit->layer, .a = emit->position.x, .b = emit->position.y};
    shape.c = (int32_t)emit->radius;
    size_t found = query_run(cs, &shape);
    ARRAY_RESERVE(cs->ids, cs->id_room, found);
    for (uint32_t at = 0; at < cs->peer_count; at++) {
        if (!cs->peers[at].used || cs->peers[at].info.role != ROLE_GATEWAY) continue;
        struct node_id gateway = cs->peers[at].info.node;
        uint32_t count = 0;
        for (size_t i = 0; i < found; i++) {
            const struct entity *e = &cs->entities[cs->entity_of_handle[cs->handles[i]]];
            if (node_id_equal(e->gateway, gateway) && event_reaches(cs, emit, e)) cs->ids[count++] = e->id.v;
        }
        sort_ids(cs->ids, count);
        tell_gateway(cs, gateway, emit, cs->ids, count);
    }
}

static struct recent_event *event_remember(struct cellserver *cs, const struct emit *emit)
{
    if (cs->event_count == EVENTS_KEPT) {
        free(cs->events[0].payload);
        memmove(cs->events, cs->events + 1, (EVENTS_KEPT - 1) * sizeof *cs->events);
        cs->event_count--;
    }
    ARRAY_RESERVE(cs->events, cs->event_room, cs->event_count + 1);
    struct recent_event *recent = &cs->events[cs->event_count++];
    *recent = (struct recent_event){.emit = *emit, .until_us = cs->now_us + EVENT_KEEP_US};
    recent->payload = malloc(emit->payload_size + 1);
    CHECK(recent->payload != NULL);
    if (emit->payload_size > 0) memcpy(recent->payload, emit->payload, emit->payload_size);
    recent->emit.payload = recent->payload;
    return recent;
}

static bool event_is_known(const struct cellserver *cs, const struct emit *emit)
{
    for (uint32_t i = 0; i < cs->event_count; i++) {
        const struct emit *known = &cs->events[i].emit;
        if (known->request == emit->request && node_id_equal(known->origin, emit->origin)) return true;
    }
    return false;
}

void events_expire(struct cellserver *cs)
{
    uint32_t old = 0;
    while (old < cs->event_count && cs->events[old].until_us <= cs->now_us) free(cs->events[old++].payload);
    if (old == 0) return;
    memmove(cs->events, cs->events + old, (cs->event_count - old) * sizeof *cs->events);
    cs->event_count -= old;
}

void event_tell_arrival(struct cellserver *cs, uint32_t at)
{
    for (uint32_t i = 0; i < cs->event_count; i++) {
        const struct entity *e = &cs->entities[at];
        if (event_reaches(cs, &cs->events[i].emit, e)) tell_gateway(cs, e->gateway, &cs->events[i].emit, &e->id.v, 1);
    }
}

static bool event_meets(const struct cellserver *cs, const struct emit *emit, struct node_id node)
{
    for (uint32_t i = 0; i < cs->map.now.leaf_count; i++) {
        const struct leaf_owner *leaf = &cs->map.now.leaves[i];
        if (node_id_equal(leaf->primary, node) && quadkey_depth(leaf->leaf) <= cs->world.depth &&
            square_meets_circle(quadkey_square(&cs->world, leaf->leaf), emit->position,
                                (int64_t)emit->radius + cs->world.handoff_hysteresis))
            return true;
    }
    return false;
}

static bool event_was_told(const struct recent_event *event, struct node_id node)
{
    for (uint32_t i = 0; i < event->told_count; i++)
        if (node_id_equal(event->told[i], node)) return true;
    return false;
}

/* To the servers of all leaves that the circle meets, once each. */
static void event_relay_out(struct cellserver *cs, struct recent_event *event)
{
    for (uint32_t at = 0; at < cs->peer_count; at++) {
        const struct peer *peer = &cs->peers[at];
        if (!peer->used || peer->info.role != ROLE_CELLSERVER || event_was_told(event, peer->info.node)) continue;
        if (!event_meets(cs, &event->emit, peer->info.node)) continue;
        writer_clear(&cs->message);
        emit_encode(&cs->message, MESSAGE_EVENT_RELAY, &event->emit);
        if (!peer_send(cs, at, &cs->message, true)) continue;
        if (event->told_count < EVENT_TOLD) event->told_count++;
        event->told[event->told_count - 1] = peer->info.node;
    }
}

/* Who had a leaf may have died with the event unheard: its successor is told, too. */
void events_retell(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->event_count; i++)
        if (cs->events[i].ours) event_relay_out(cs, &cs->events[i]);
}

void event_emit(struct cellserver *cs, uint32_t peer, struct cursor message)
{
    struct emit emit;
    struct node_id gateway = cs->peers[peer].info.node;
    if (emit_decode(message, &emit) != TERRANE_ERR_OK || emit.radius > INT32_MAX) {
        cs->stats.malformed++;
        return;
    }
    emit.origin = gateway; /* whatever it says */
    struct result result = {.request = emit.request};
    const struct leaf_owner *owner = ownership_at(&cs->map, &cs->world, emit.position);
    if (owner == NULL) {
        result.error =
            world_contains(&cs->world, emit.position) ? TERRANE_ERR_REGION_UNOWNED : TERRANE_ERR_POSITION_OUTSIDE;
    } else if (leaf_find(cs, owner->leaf) == NONE) {
        result.error = TERRANE_ERR_NOT_OWNER;
    } else if (leaf_is_unready(cs, owner->leaf)) {
        result.error = TERRANE_ERR_NOT_READY;
    } else if (!may_ask(cs, peer)) {
        result.error = TERRANE_ERR_QUEUE_FULL;
    } else {
        struct recent_event *event = event_remember(cs, &emit);
        event->ours = true;
        event_deliver(cs, &emit);
        event_relay_out(cs, event);
    }
    command_result(cs, gateway, &result);
}

void event_relay(struct cellserver *cs, struct cursor message)
{
    struct emit emit;
    if (emit_decode(message, &emit) != TERRANE_ERR_OK || emit.radius > INT32_MAX) {
        cs->stats.malformed++;
        return;
    }
    if (event_is_known(cs, &emit)) return;
    (void)event_remember(cs, &emit);
    event_deliver(cs, &emit);
}

static void fault(struct cellserver *cs, uint64_t token, enum terrane_error error)
{
    struct fault m = {.error = error};
    snprintf(m.text, sizeof m.text, "%s", terrane_error_text(error));
    writer_clear(&cs->message);
    fault_encode(&cs->message, &m);
    outbox_push(cs->out, (struct output){.kind = OUTPUT_REPLY, .token = token}, cs->message.data, cs->message.size);
}

static enum terrane_error answer_snapshot(struct cellserver *cs, const struct snapshot_request *m)
{
    uint32_t at = leaf_find(cs, m->leaf);
    if (at == NONE && replica_find(cs, m->leaf) == NULL) return TERRANE_ERR_NOT_OWNER;
    if (leaf_is_unready(cs, m->leaf)) return TERRANE_ERR_NOT_READY;
    struct stream_writer *stream = m->stream == STREAM_GHOST ? cs->leaves[at].ghost : cs->leaves[at].region;
    stream_snapshot_from(stream, cs->tick, m->from_slot, leaves_describe, cs, &cs->message);
    return TERRANE_ERR_OK;
}

static enum terrane_error answer_query(struct cellserver *cs, const struct query *m)
{
    if (query_unready(cs, m)) return TERRANE_ERR_NOT_READY;
    size_t count = query_owned(cs, m);
    /* One reply is all that the lane has; it holds a packet's worth, and `parts` says how many it would have taken. */
    uint32_t parts = (uint32_t)((count + RESULT_ITEMS - 1) / RESULT_ITEMS);
    uint32_t first = count > RESULT_ITEMS ? RESULT_ITEMS : (uint32_t)count;
    result_write(cs, m, 0, parts == 0 ? 1 : parts, 0, first, &cs->message);
    return TERRANE_ERR_OK;
}

static enum terrane_error query_answer(struct cellserver *cs, struct cursor message)
{
    enum message_kind kind;
    enum terrane_error error = message_kind_of(message, &kind);
    if (error != TERRANE_ERR_OK) return error;
    if (kind == MESSAGE_STATUS_REQUEST) {
        if ((error = status_request_decode(message)) != TERRANE_ERR_OK) return error;
        writer_clear(&cs->scratch);
        status_write(cs, &cs->scratch);
        status_encode(&cs->message, &(struct status){.json = (const char *)cs->scratch.data});
        return TERRANE_ERR_OK;
    }
    if (!cs->has_world) return TERRANE_ERR_NOT_READY;
    if (kind == MESSAGE_SNAPSHOT_REQUEST) {
        struct snapshot_request m;
        return (error = snapshot_request_decode(message, &m)) == TERRANE_ERR_OK ? answer_snapshot(cs, &m) : error;
    }
    if (kind == MESSAGE_QUERY) {
        struct query m;
        return (error = query_decode(message, &m)) == TERRANE_ERR_OK ? answer_query(cs, &m) : error;
    }
    if (kind == MESSAGE_LOOKUP) {
        struct lookup m;
        struct lookup_result result;
        if ((error = lookup_decode(message, &m)) != TERRANE_ERR_OK) return error;
        lookup_run(cs, &m, &result);
        lookup_result_encode(&cs->message, &result);
        return TERRANE_ERR_OK;
    }
    if (kind == MESSAGE_TRACE) {
        struct trace m;
        if ((error = trace_decode(message, &m)) == TERRANE_ERR_OK) history_answer(cs, &m, &cs->message);
        return error;
    }
    if (kind == MESSAGE_SURVEY) {
        struct survey m;
        if ((error = survey_decode(message, &m)) == TERRANE_ERR_OK) survey_answer(cs, &m, &cs->message);
        return error;
    }
    return TERRANE_ERR_MESSAGE_UNKNOWN;
}

void query_lane(struct cellserver *cs, uint64_t token, struct cursor message)
{
    writer_clear(&cs->message);
    enum terrane_error error = query_answer(cs, message);
    if (error != TERRANE_ERR_OK) {
        cs->stats.malformed++;
        fault(cs, token, error);
        return;
    }
    outbox_push(cs->out, (struct output){.kind = OUTPUT_REPLY, .token = token}, cs->message.data, cs->message.size);
}

void queries_close(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->event_count; i++) free(cs->events[i].payload);
    free(cs->events);
    free(cs->handles);
    free(cs->ids);
}
