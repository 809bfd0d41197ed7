#include "gateway/internal.h"

#include <stdlib.h>
#include <string.h>

/* One MOVES holds so many: at most 26 bytes each, so that it stays under LIMIT_MESSAGE_BYTES. */
#define MOVES_PER_MESSAGE 2000u

uint32_t gateway_peer_find(const struct gateway *g, struct node_id node)
{
    return table_get(&g->peer_index, node.v); /* TABLE_NONE is SLOT_NONE */
}

static void link_peer(struct gateway *g, struct peer *peer)
{
    const struct node_info *info = ownership_node(&g->map, peer->node);
    CHECK(info != NULL);
    struct output link = {.kind = OUTPUT_LINK, .node = peer->node};
    outbox_push(g->out, link, info->inbox_url, strlen(info->inbox_url) + 1);
    peer->linked_us = g->now_us;
}

/* A partition shows in the link only after tens of seconds, so a silent one is dialled anew. */
static void relink_peer(struct gateway *g, struct peer *peer)
{
    struct output unlink = {.kind = OUTPUT_UNLINK, .node = peer->node};
    outbox_push(g->out, unlink, NULL, 0);
    peer->up = false;
    link_peer(g, peer);
}

uint32_t gateway_peer_get(struct gateway *g, struct node_id node)
{
    uint32_t slot = gateway_peer_find(g, node);
    if (slot != SLOT_NONE) return slot;
    if (!gateway_map_is_server(g, node)) return SLOT_NONE;
    slot = g->peer_free;
    if (slot != SLOT_NONE) {
        g->peer_free = g->peers[slot].next;
    } else {
        slot = g->peer_count++;
        ARRAY_RESERVE(g->peers, g->peer_room, g->peer_count);
    }
    struct peer *peer = &g->peers[slot];
    *peer = (struct peer){.node = node,
                          .own = SLOT_NONE,
                          .moves = peer->moves,
                          .move_room = peer->move_room,
                          .heard_us = g->now_us,
                          .named_term = g->map.term,
                          .beat_us = g->now_us + PEER_HEARTBEAT_US};
    struct session_options options = {.self = g->info.node, .peer = node};
    peer->session = session_open(&options);
    table_put(&g->peer_index, node.v, slot);
    link_peer(g, peer);
    return slot;
}

static void peer_remove(struct gateway *g, uint32_t slot)
{
    struct node_id node = g->peers[slot].node;
    while (g->peers[slot].own != SLOT_NONE) gateway_own_set_peer(g, g->peers[slot].own, SLOT_NONE);
    gateway_requests_node_gone(g, node);
    struct peer *peer = &g->peers[slot];
    g->counters.sure_repeated += session_counters(peer->session)->sure_repeated;
    session_close(peer->session);
    table_remove(&g->peer_index, node.v);
    struct output unlink = {.kind = OUTPUT_UNLINK, .node = node};
    outbox_push(g->out, unlink, NULL, 0);
    *peer = (struct peer){.own = SLOT_NONE, .moves = peer->moves, .move_room = peer->move_room, .next = g->peer_free};
    g->peer_free = slot;
}

void gateway_peers_renew(struct gateway *g)
{
    g->listed = false;
    for (uint32_t slot = 0; slot < g->peer_count; slot++) {
        struct peer *peer = &g->peers[slot];
        if (peer->node.v == 0) continue;
        g->counters.sure_repeated += session_counters(peer->session)->sure_repeated;
        session_close(peer->session);
        struct session_options options = {.self = g->info.node, .peer = peer->node};
        peer->session = session_open(&options);
        peer->heard_us = g->now_us;
    }
}

/* Servers drop what a node says that their map does not name. Ours names us now, so theirs do or will soon. */
static void say_again(struct gateway *g)
{
    if (g->listed || ownership_node(&g->map, g->info.node) == NULL) return;
    g->listed = true;
    for (uint32_t slot = 0; slot < g->peer_count; slot++) {
        if (g->peers[slot].node.v != 0) session_link_up(g->peers[slot].session, g->now_us);
    }
}

/* Gone is who the same coordinator has named before. False: it is removed. */
static bool look_at_peer(struct gateway *g, uint32_t slot)
{
    struct peer *peer = &g->peers[slot];
    bool named = gateway_map_is_server(g, peer->node);
    if (named) peer->named_term = g->map.term;
    if (named)
        peer->unnamed_us = 0;
    else if (peer->unnamed_us == 0)
        peer->unnamed_us = g->now_us;
    bool gone = !named && (peer->named_term == g->map.term || g->now_us - peer->unnamed_us >= LIMIT_UNNAMED_US);
    if (gone) peer_remove(g, slot);
    return !gone;
}

void gateway_peers_map_changed(struct gateway *g)
{
    say_again(g);
    for (uint32_t slot = 0; slot < g->peer_count; slot++) {
        if (g->peers[slot].node.v != 0) (void)look_at_peer(g, slot);
    }
}

enum terrane_error gateway_peer_push(struct gateway *g, struct node_id node)
{
    uint32_t slot = gateway_peer_get(g, node);
    if (slot == SLOT_NONE) return TERRANE_ERR_NOT_OWNER;
    gateway_want_flush(g, FLUSH_US);
    return session_push(g->peers[slot].session, g->message.data, g->message.size);
}

void gateway_peers_up(struct gateway *g, struct node_id node)
{
    uint32_t slot = gateway_peer_find(g, node);
    if (slot == SLOT_NONE) return;
    struct peer *peer = &g->peers[slot];
    peer->up = true;
    peer->heard_us = g->now_us;
    session_link_up(peer->session, g->now_us);
    /* What was in flight when the last link broke may be lost, moves for good. */
    gateway_peer_resend_positions(g, slot);
    gateway_watch_peer_up(g, node);
    gateway_want_flush(g, 0);
}

void gateway_peers_down(struct gateway *g, struct node_id node)
{
    uint32_t slot = gateway_peer_find(g, node);
    if (slot != SLOT_NONE) g->peers[slot].up = false;
}

void gateway_peer_resend_positions(struct gateway *g, uint32_t peer)
{
    for (uint32_t own = g->peers[peer].own; own != SLOT_NONE; own = g->own[own].peer_next) {
        if (g->own[own].state != OWN_LIVE || g->own[own].dirty) continue;
        gateway_own_dirty(g, own);
        g->counters.moves_repeated++;
    }
}

struct delivery {
    struct gateway *g;
    struct node_id from;
};

static enum terrane_error deliver_answer(struct gateway *g, struct node_id from, enum message_kind kind,
                                         struct cursor message)
{
    enum terrane_error error;
    if (kind == MESSAGE_RESULT) {
        struct result result;
        error = result_decode(message, &result);
        if (error == TERRANE_ERR_OK) gateway_requests_result(g, from, &result);
    } else if (kind == MESSAGE_ATTACHED) {
        struct attached attached;
        error = attached_decode(message, &attached);
        if (error == TERRANE_ERR_OK) gateway_attached(g, from, &attached);
    } else if (kind == MESSAGE_QUERY_RESULT) {
        struct query_result result;
        error = query_result_decode(message, &result);
        if (error == TERRANE_ERR_OK) gateway_inquiry_query_result(g, from, &result);
    } else if (kind == MESSAGE_LOOKUP_RESULT) {
        struct lookup_result result;
        error = lookup_result_decode(message, &result);
        if (error == TERRANE_ERR_OK && !gateway_seek_answer(g, from, &result))
            gateway_inquiry_lookup_result(g, from, &result);
    } else {
        error = TERRANE_ERR_MESSAGE_UNKNOWN;
    }
    return error;
}

static enum terrane_error deliver_stream(struct gateway *g, struct node_id from, enum message_kind kind,
                                         struct cursor message)
{
    enum terrane_error error;
    if (kind == MESSAGE_SNAPSHOT) {
        struct snapshot snapshot;
        error = snapshot_decode(message, &snapshot);
        /* A snapshot of a leaf that is watched no more, or of a former epoch, is the replicas' to count. */
        if (error == TERRANE_ERR_OK && replicas_snapshot(g->replicas, g->now_us, &snapshot) != TERRANE_ERR_OK)
            g->counters.stale++;
    } else {
        struct unsubscribed unsubscribed;
        error = unsubscribed_decode(message, &unsubscribed);
        if (error == TERRANE_ERR_OK) gateway_watch_unsubscribed(g, from, &unsubscribed);
    }
    return error;
}

static void deliver(void *context, struct cursor message, bool sure)
{
    (void)sure;
    struct delivery *d = context;
    struct gateway *g = d->g;
    enum message_kind kind;
    enum terrane_error error = message_kind_of(message, &kind);
    if (error == TERRANE_ERR_OK && kind == MESSAGE_VIEWS) {
        struct views views;
        error = views_decode(message, &views);
        if (error == TERRANE_ERR_OK) gateway_views_apply(g, d->from, &views);
    } else if (error == TERRANE_ERR_OK && kind == MESSAGE_OWNER) {
        struct owner owner;
        error = owner_decode(message, &owner);
        if (error == TERRANE_ERR_OK) gateway_own_owner(g, d->from, &owner);
    } else if (error == TERRANE_ERR_OK && kind == MESSAGE_EVENT) {
        struct event_told event;
        error = event_told_decode(message, &event);
        if (error == TERRANE_ERR_OK) gateway_notify_event(g, d->from, &event);
    } else if (error == TERRANE_ERR_OK && (kind == MESSAGE_SNAPSHOT || kind == MESSAGE_UNSUBSCRIBED)) {
        error = deliver_stream(g, d->from, kind, message);
    } else if (error == TERRANE_ERR_OK && kind == MESSAGE_MOVES_LOST) {
        struct moves_lost lost;
        error = moves_lost_decode(message, &lost);
        uint32_t slot = gateway_peer_find(g, d->from);
        if (error == TERRANE_ERR_OK && slot != SLOT_NONE) gateway_peer_resend_positions(g, slot);
    } else if (error == TERRANE_ERR_OK && kind == MESSAGE_HEARTBEAT) {
        struct heartbeat beat;
        error = heartbeat_decode(message, &beat);
    } else if (error == TERRANE_ERR_OK) {
        error = deliver_answer(g, d->from, kind, message);
    }
    if (error != TERRANE_ERR_OK) g->counters.malformed++;
}

void gateway_peers_packet(struct gateway *g, const uint8_t *bytes, size_t size)
{
    struct packet packet;
    if (packet_decode(bytes, size, &packet) != TERRANE_ERR_OK) {
        g->counters.malformed++;
        return;
    }
    if (gateway_membership_packet(g, &packet)) return;
    uint32_t slot = gateway_peer_get(g, packet.from);
    if (slot == SLOT_NONE) {
        /* Not in the map (yet): the sender repeats what is sure. */
        g->counters.dropped++;
        return;
    }
    g->peers[slot].heard_us = g->now_us;
    struct delivery delivery = {g, packet.from};
    uint64_t lost;
    struct session *session = g->peers[slot].session;
    if (session_receive(session, g->now_us, &packet, deliver, &delivery, &lost) != TERRANE_ERR_OK) {
        g->counters.dropped++;
        return;
    }
    if (packet.sure_count > 0) gateway_want_flush(g, ACK_US);
}

static void pump(struct gateway *g, struct peer *peer)
{
    /* Without a link the shell would drop it all; the session repeats only after a while. */
    if (!peer->up) return;
    while (session_fill(peer->session, g->now_us, &g->packet)) {
        struct output send = {.kind = OUTPUT_SEND, .node = peer->node};
        outbox_push(g->out, send, g->packet.data, g->packet.size);
    }
}

void gateway_peers_pump(struct gateway *g)
{
    for (uint32_t slot = 0; slot < g->peer_count; slot++) {
        if (g->peers[slot].node.v != 0) pump(g, &g->peers[slot]);
    }
}

/* Sorts the positions to send by the server that gets them. What can't be sent now is sent when it can: the entity is
 * entered, has an owner again, or the owner's link is up again, each of which marks it dirty. */
static void sort_moves(struct gateway *g)
{
    for (uint32_t i = 0; i < g->dirty_count; i++) {
        uint32_t slot = g->dirty[i];
        struct own *own = &g->own[slot];
        own->dirty = false;
        if (own->state == OWN_ENTERING) own->moved = true;
        if (own->state == OWN_GONE) gateway_own_free_if_over(g, slot);
        if (own->state != OWN_LIVE || own->peer == SLOT_NONE || !g->peers[own->peer].up) continue;
        struct peer *peer = &g->peers[own->peer];
        ARRAY_RESERVE(peer->moves, peer->move_room, peer->move_count + 1);
        peer->moves[peer->move_count++] = slot;
    }
    g->dirty_count = 0;
}

static void encode_moves(struct gateway *g, const uint32_t *slots, uint32_t count, uint64_t sequence)
{
    struct moves moves = {.sequence = sequence, .count = count};
    writer_clear(&g->message);
    moves_begin(&g->message, &moves);
    for (uint32_t i = 0; i < count; i++) {
        const struct own *own = &g->own[slots[i]];
        struct move move = {.id = own->id, .position = own->position, .yaw = own->yaw};
        moves_add(&g->message, &move);
    }
}

static void send_moves(struct gateway *g, struct peer *peer, uint64_t sequence)
{
    for (uint32_t at = 0; at < peer->move_count;) {
        uint32_t count = peer->move_count - at;
        if (count > MOVES_PER_MESSAGE) count = MOVES_PER_MESSAGE;
        encode_moves(g, &peer->moves[at], count, sequence);
        if (session_push_fast(peer->session, g->message.data, g->message.size) != TERRANE_ERR_OK) {
            pump(g, peer); /* makes room: fast messages never stay behind */
            enum terrane_error error = session_push_fast(peer->session, g->message.data, g->message.size);
            if (error != TERRANE_ERR_OK) g->counters.dropped += count;
        }
        g->counters.moves_sent += count;
        at += count;
    }
    peer->move_count = 0;
}

void gateway_peers_moves(struct gateway *g)
{
    if (g->dirty_count == 0) return;
    sort_moves(g);
    uint64_t sequence = ++g->sequence;
    for (uint32_t slot = 0; slot < g->peer_count; slot++) {
        if (g->peers[slot].move_count > 0) send_moves(g, &g->peers[slot], sequence);
    }
}

void gateway_peers_timers(struct gateway *g)
{
    for (uint32_t slot = 0; slot < g->peer_count; slot++) {
        struct peer *peer = &g->peers[slot];
        if (peer->node.v == 0 || g->now_us < peer->beat_us) continue;
        peer->beat_us = g->now_us + PEER_HEARTBEAT_US;
        if (peer->unnamed_us != 0 && !look_at_peer(g, slot)) continue;
        bool waits = peer->unnamed_us == 0 && session_queued_messages(peer->session) > 0;
        if (waits && g->now_us >= peer->heard_us + PEER_SILENCE_US && g->now_us >= peer->linked_us + PEER_SILENCE_US)
            relink_peer(g, peer);
        if (!peer->up) continue;
        struct heartbeat heartbeat = {.term = g->map.term, .rev = g->map.rev};
        writer_clear(&g->message);
        heartbeat_begin(&g->message, &heartbeat);
        heartbeat_stands(&g->message, 0);
        if (session_push_fast(peer->session, g->message.data, g->message.size) != TERRANE_ERR_OK) g->counters.dropped++;
        gateway_want_flush(g, FLUSH_US);
    }
}

uint64_t gateway_peers_deadline_us(const struct gateway *g)
{
    uint64_t due = UINT64_MAX;
    for (uint32_t slot = 0; slot < g->peer_count; slot++) {
        const struct peer *peer = &g->peers[slot];
        if (peer->node.v == 0) continue;
        if (peer->beat_us < due) due = peer->beat_us;
        uint64_t repeat = peer->up ? session_deadline_us(peer->session) : UINT64_MAX;
        if (repeat < due) due = repeat;
    }
    return due;
}

void gateway_peers_close(struct gateway *g)
{
    for (uint32_t slot = 0; slot < g->peer_count; slot++) {
        session_close(g->peers[slot].session);
        free(g->peers[slot].moves);
    }
    free(g->peers);
    table_close(&g->peer_index);
}
