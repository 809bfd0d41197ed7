/* Nodes of the map, sessions with them, and what goes out to them. */
#include "cellserver/internal.h"
#include "cellserver/rate.h"

#include <stdlib.h>
#include <string.h>

uint32_t peer_find(const struct cellserver *cs, struct node_id node)
{
    return table_get(&cs->peer_index, node.v);
}

static uint32_t peer_add(struct cellserver *cs, const struct node_info *info)
{
    uint32_t at = 0;
    while (at < cs->peer_count && cs->peers[at].used) at++;
    if (at == cs->peer_count) ARRAY_RESERVE(cs->peers, cs->peer_room, ++cs->peer_count);
    struct peer *peer = &cs->peers[at];
    struct writer views = peer->views;
    *peer = (struct peer){.used = true, .info = *info, .views = views, .named_term = cs->map.term};
    peer->session = session_open(&(struct session_options){.self = cs->options.info.node, .peer = info->node});
    table_put(&cs->peer_index, info->node.v, at);
    return at;
}

void peer_remove(struct cellserver *cs, uint32_t at)
{
    struct peer *peer = &cs->peers[at];
    leaves_drop_subscriber(cs, at);
    if (peer->linked) outbox_push(cs->out, (struct output){.kind = OUTPUT_UNLINK, .node = peer->info.node}, NULL, 0);
    replica_peer_gone(cs, peer->info.node);
    session_close(peer->session);
    table_remove(&cs->peer_index, peer->info.node.v);
    peer->session = NULL;
    peer->used = false;
}

/* Entities may have come from other servers before the map named their gateway here: it has not heard of that. */
static void gateway_hears_all(struct cellserver *cs, uint32_t at)
{
    for (uint32_t i = 0; i < cs->entity_count; i++) {
        const struct entity *e = &cs->entities[i];
        if (e->status != ENTITY_OWNED || !node_id_equal(e->gateway, cs->peers[at].info.node)) continue;
        handoff_tell_owner(cs, i);
        cs->peers[at].resync = true;
    }
    command_results_early(cs, cs->peers[at].info.node);
}

/* Gone is who the same coordinator has named before. */
static void peer_look(struct cellserver *cs, uint32_t at)
{
    struct peer *peer = &cs->peers[at];
    bool named = ownership_node(&cs->map, peer->info.node) != NULL;
    if (named) peer->named_term = cs->map.term;
    if (named)
        peer->unnamed_us = 0;
    else if (peer->unnamed_us == 0)
        peer->unnamed_us = cs->now_us;
    bool gone = !named && (peer->named_term == cs->map.term || cs->now_us - peer->unnamed_us >= LIMIT_UNNAMED_US);
    if (gone) peer_remove(cs, at);
}

void peers_expire(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->peer_count; i++) {
        if (cs->peers[i].used && cs->peers[i].unnamed_us != 0) peer_look(cs, i);
    }
}

void peers_sync(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->peer_count; i++) {
        if (cs->peers[i].used && cs->peers[i].info.role != ROLE_GATEWAY) peer_look(cs, i);
    }
    for (uint32_t i = 0; i < cs->map.now.node_count; i++) {
        const struct node_info *info = &cs->map.now.nodes[i];
        if (node_id_equal(info->node, cs->options.info.node) || info->role == ROLE_COORDINATOR) continue;
        if (peer_find(cs, info->node) != NONE) continue;
        uint32_t at = peer_add(cs, info);
        if (info->role == ROLE_GATEWAY) gateway_hears_all(cs, at);
    }
    absent_sync(cs);
}

bool peer_send(struct cellserver *cs, uint32_t at, const struct writer *message, bool urgent)
{
    struct peer *peer = &cs->peers[at];
    enum terrane_error error = session_push(peer->session, message->data, message->size);
    if (error != TERRANE_ERR_OK) {
        cs->stats.dropped++;
        outbox_log(cs->out, LOG_WARNING, "event=queue_refused peer=%s error=%s size=%zu", peer->info.name,
                   terrane_error_name(error), message->size);
        return false;
    }
    peer->urgent |= urgent;
    return true;
}

static void peer_flush(struct cellserver *cs, struct peer *peer)
{
    while (session_fill(peer->session, cs->now_us, &cs->packet)) {
        if (!peer->linked) {
            peer->linked = true;
            outbox_push(cs->out, (struct output){.kind = OUTPUT_LINK, .node = peer->info.node}, peer->info.inbox_url,
                        strlen(peer->info.inbox_url) + 1);
        }
        outbox_push(cs->out, (struct output){.kind = OUTPUT_SEND, .node = peer->info.node}, cs->packet.data,
                    cs->packet.size);
    }
    peer->urgent = false;
}

void peers_flush(struct cellserver *cs, bool all)
{
    for (uint32_t i = 0; i < cs->peer_count; i++) {
        struct peer *peer = &cs->peers[i];
        if (peer->used && (all || peer->urgent)) peer_flush(cs, peer);
    }
}

void peer_feed_hold(struct cellserver *cs, uint32_t at, uint32_t feed)
{
    struct peer *peer = &cs->peers[at];
    if (peer->feed_refs[feed]++ > 0) return;
    peer->feed_up[feed] = false;
    outbox_push(cs->out, (struct output){.kind = OUTPUT_FEED_LINK, .node = peer->info.node, .feed = feed},
                peer->info.sub_url, strlen(peer->info.sub_url) + 1);
}

void peer_feed_release(struct cellserver *cs, uint32_t at, uint32_t feed)
{
    struct peer *peer = &cs->peers[at];
    CHECK(peer->feed_refs[feed] > 0);
    if (--peer->feed_refs[feed] > 0) return;
    peer->feed_up[feed] = false;
    outbox_push(cs->out, (struct output){.kind = OUTPUT_FEED_UNLINK, .node = peer->info.node, .feed = feed}, NULL, 0);
}

/* What one peer may say. The table keeps a gateway from hand-offs and a cell server from entering entities. */
static bool may_say(enum node_role role, enum message_kind kind)
{
    switch (kind) {
    case MESSAGE_ENTER:
    case MESSAGE_LEAVE:
    case MESSAGE_SET_STATE:
    case MESSAGE_SET_RADIUS:
    case MESSAGE_ATTACH:
    case MESSAGE_MOVES:
    case MESSAGE_EMIT:
    case MESSAGE_QUERY:
    case MESSAGE_LOOKUP: return role == ROLE_GATEWAY;
    case MESSAGE_EVENT_RELAY:
    case MESSAGE_SNAPSHOT:
    case MESSAGE_UNSUBSCRIBED:
    case MESSAGE_OFFER:
    case MESSAGE_ACCEPT:
    case MESSAGE_REFUSE:
    case MESSAGE_FORWARD:
    case MESSAGE_STANDBY:
    case MESSAGE_STANDBY_ACK:
    case MESSAGE_STANDBY_BEAT:
    case MESSAGE_RELEASE:
    case MESSAGE_STANDBY_END:
    case MESSAGE_REGISTRY: return role == ROLE_CELLSERVER;
    case MESSAGE_SUBSCRIBE:
    case MESSAGE_UNSUBSCRIBE:
    case MESSAGE_HEARTBEAT: return true;
    case MESSAGE_HELLO:
    case MESSAGE_WELCOME:
    case MESSAGE_BYE:
    case MESSAGE_MAP:
    case MESSAGE_MAP_REQUEST:
    case MESSAGE_RESULT:
    case MESSAGE_OWNER:
    case MESSAGE_VIEWS:
    case MESSAGE_EVENT:
    case MESSAGE_QUERY_RESULT:
    case MESSAGE_LOOKUP_RESULT:
    case MESSAGE_ATTACHED:
    case MESSAGE_SNAPSHOT_REQUEST:
    case MESSAGE_MOVES_LOST:
    case MESSAGE_STATUS_REQUEST:
    case MESSAGE_STATUS:
    case MESSAGE_FAULT:
    case MESSAGE_DEATH:
    case MESSAGE_DRAIN:
    case MESSAGE_DONE:
    case MESSAGE_EXPLAIN:
    case MESSAGE_PLACE:
    case MESSAGE_SURVEY:
    case MESSAGE_SURVEY_RESULT:
    case MESSAGE_TRACE:
    case MESSAGE_TRACE_RESULT: return false;
    }
    return false;
}

/* Decodes into a local, hands on, or counts what is malformed. */
#define HANDLE(type, decode, call)                                                                                     \
    do {                                                                                                               \
        struct type m;                                                                                                 \
        if (decode(message, &m) != TERRANE_ERR_OK) return false;                                                       \
        call;                                                                                                          \
        return true;                                                                                                   \
    } while (0)

static bool snapshot_apply(struct cellserver *cs, const struct snapshot *m)
{
    if (m->stream != STREAM_GHOST) return false;
    if (replicas_snapshot(cs->ghosts, cs->now_us, m) != TERRANE_ERR_OK) cs->stats.stale++;
    return true;
}

static bool peer_message(struct cellserver *cs, uint32_t at, enum message_kind kind, struct cursor message)
{
    struct peer *peer = &cs->peers[at];
    switch ((int)kind) {
    case MESSAGE_ENTER: command_enter(cs, at, message); return true;
    case MESSAGE_MOVES: command_moves(cs, peer->info.node, 0, message); return true;
    case MESSAGE_LEAVE:
    case MESSAGE_SET_STATE:
    case MESSAGE_ATTACH:
    case MESSAGE_SET_RADIUS: command_handle(cs, peer->info.node, 0, message); return true;
    case MESSAGE_EMIT: event_emit(cs, at, message); return true;
    case MESSAGE_EVENT_RELAY: event_relay(cs, message); return true;
    case MESSAGE_QUERY: query_handle(cs, at, message); return true;
    case MESSAGE_LOOKUP: lookup_handle(cs, at, message); return true;
    case MESSAGE_SUBSCRIBE: HANDLE(subscribe, subscribe_decode, leaf_subscribe(cs, at, &m));
    case MESSAGE_UNSUBSCRIBE: HANDLE(subscribe, subscribe_decode, leaf_unsubscribe(cs, at, &m));
    case MESSAGE_SNAPSHOT: HANDLE(snapshot, snapshot_decode, return snapshot_apply(cs, &m));
    case MESSAGE_UNSUBSCRIBED: HANDLE(unsubscribed, unsubscribed_decode, (void)m); /* replicas ask again */
    case MESSAGE_OFFER: HANDLE(offer, offer_decode, handoff_offer(cs, at, message, &m));
    case MESSAGE_ACCEPT: HANDLE(accept, accept_decode, handoff_accept(cs, at, &m));
    case MESSAGE_REFUSE: HANDLE(refuse, refuse_decode, handoff_refuse(cs, at, &m));
    case MESSAGE_FORWARD: HANDLE(forward, forward_decode, command_handle(cs, m.gateway, m.hops, m.command));
    case MESSAGE_STANDBY: HANDLE(standby, standby_decode, replica_receive(cs, at, &m));
    case MESSAGE_STANDBY_ACK: HANDLE(standby_ack, standby_ack_decode, standby_acked(cs, at, &m));
    case MESSAGE_STANDBY_BEAT: HANDLE(standby_beat, standby_beat_decode, replica_beat(cs, at, m.stamp));
    case MESSAGE_REGISTRY: HANDLE(registry, registry_decode, registry_received(cs, peer->info.node, &m));
    case MESSAGE_RELEASE: HANDLE(release, release_decode, release_received(cs, at, &m));
    case MESSAGE_STANDBY_END: HANDLE(standby_end, standby_end_decode, replica_ended(cs, at, &m));
    case MESSAGE_HEARTBEAT: HANDLE(heartbeat, heartbeat_decode, (void)m);
    default: return false;
    }
}

struct delivery {
    struct cellserver *cs;
    uint32_t peer;
};

static void deliver(void *context, struct cursor message, bool sure)
{
    struct delivery *to = context;
    (void)sure;
    enum message_kind kind;
    bool well = message_kind_of(message, &kind) == TERRANE_ERR_OK && may_say(to->cs->peers[to->peer].info.role, kind) &&
                (rate_refuses(to->cs, to->peer, kind, message) || peer_message(to->cs, to->peer, kind, message));
    if (!well) to->cs->stats.malformed++;
}

void peer_receive(struct cellserver *cs, const uint8_t *bytes, size_t size)
{
    struct packet packet;
    if (packet_decode(bytes, size, &packet) != TERRANE_ERR_OK) {
        cs->stats.malformed++;
        return;
    }
    uint32_t at = peer_find(cs, packet.from);
    if (at == NONE || !cs->has_world) {
        cs->stats.stale++;
        return;
    }
    if (cs->peers[at].info.role == ROLE_GATEWAY && size > LIMIT_GATEWAY_BYTES) {
        cs->stats.malformed++;
        return;
    }
    uint64_t fast_lost = 0;
    struct delivery to = {.cs = cs, .peer = at};
    if (session_receive(cs->peers[at].session, cs->now_us, &packet, deliver, &to, &fast_lost) != TERRANE_ERR_OK) {
        cs->stats.stale++;
        return;
    }
    cs->stats.moves_lost += fast_lost;
    if (cs->peers[at].info.role == ROLE_GATEWAY) cs->peers[at].moves_lost += fast_lost;
}

void peers_close(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->peer_count; i++) {
        session_close(cs->peers[i].session);
        writer_close(&cs->peers[i].views);
    }
    free(cs->peers);
    table_close(&cs->peer_index);
}
