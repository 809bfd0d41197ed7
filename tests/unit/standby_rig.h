/* One cell server core, the standby, between peers made by hand: a coordinator, two gateways, the primary whose leaves
 * it stands by for, and a third cell server. The test is those peers: it says what they say and looks at what they are
 * told. Everything is carried at once, without loss; links and feeds stand as soon as they are asked for. */
#ifndef TERRANE_TESTS_UNIT_STANDBY_RIG_H
#define TERRANE_TESTS_UNIT_STANDBY_RIG_H

#include "cellserver/cellserver.h"
#include "proto/messages.h"
#include "proto/session.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum stand_peer { STAND_COORDINATOR, STAND_GATEWAY, STAND_PRIMARY, STAND_THIRD, STAND_PEERS };

static uint32_t stand_session_entities; /* of servers that are opened; 0: any number */

#define STAND_SELF     ((struct node_id){300})
#define STAND_LEASE_US UINT64_C(250000)
#define STAND_TICK_US  UINT64_C(50000)
#define STAND_TOLD     64u

static const struct node_id stand_node[STAND_PEERS] = {{100}, {200}, {301}, {302}};

/* What a peer has been told: how many of each kind, the last one of some. */
struct stand_told {
    uint32_t count[64];
    struct owner owner;
    struct result result;
    struct release release;
    struct standby_end end;
    struct attached attached;
    struct unsubscribed unsubscribed;
    struct subscribe subscribe;
    struct standby_ack ack;
    struct standby_ack_item acks[STAND_TOLD]; /* all that came since stand_forget */
    uint32_t ack_count;
    struct accept_item offered[STAND_TOLD]; /* ids and versions of OFFERs */
    uint32_t offered_count;
    struct quadkey offered_to;
    struct snapshot snapshot;
    uint32_t snapshot_entities;
    struct view_item view;
    uint64_t see[STAND_TOLD];
    struct query_result query;
    struct lookup_result lookup;
    struct forward forward;
    enum message_kind forwarded; /* what was in it */
};

struct stand {
    struct world world;
    struct cellserver *server;
    struct session *session[STAND_PEERS]; /* the peers' ends */
    struct stand_told told[STAND_PEERS];
    bool gone[STAND_PEERS]; /* not a node of the map, and deaf */
    struct leaf_owner map[16];
    uint32_t map_count;
    uint64_t rev, now_us;
    struct writer w, packet;
    uint32_t published;      /* frames in all */
    uint32_t step_frames;    /* in the last step */
    bool feeds_stand;        /* FEED_LINK is answered at once */
    uint64_t seq[16], stamp; /* of the primary's standby streams, by leaf, and of its beats */
    uint64_t entered;        /* entities in the published region frames */
    char logged[4096];       /* the last log line that has "promoted" */
};

static inline struct node_info stand_info(enum stand_peer peer)
{
    bool server = peer == STAND_PRIMARY || peer == STAND_THIRD;
    struct node_info info = {.role = server                  ? ROLE_CELLSERVER
                                     : peer == STAND_GATEWAY ? ROLE_GATEWAY
                                                             : ROLE_COORDINATOR,
                             .node = stand_node[peer],
                             .feed_count = server};
    snprintf(info.name, sizeof info.name, "node-%u", (unsigned)peer);
    snprintf(info.host, sizeof info.host, "host");
    snprintf(info.inbox_url, sizeof info.inbox_url, "tcp://127.0.0.1:%u", 1000 + (unsigned)peer);
    snprintf(info.sub_url, sizeof info.sub_url, "tcp://127.0.0.1:%u", 2000 + (unsigned)peer);
    if (server) {
        snprintf(info.query_url, sizeof info.query_url, "tcp://127.0.0.1:%u", 3000 + (unsigned)peer);
        snprintf(info.ghost_feed_url, sizeof info.ghost_feed_url, "tcp://127.0.0.1:%u", 4000 + (unsigned)peer);
        snprintf(info.feed_urls[0], sizeof info.feed_urls[0], "tcp://127.0.0.1:%u", 5000 + (unsigned)peer);
    }
    return info;
}

static inline void stand_step(struct stand *s, const struct event *event);

static inline void stand_take_offer(struct stand_told *told, struct cursor message)
{
    struct offer offer;
    struct transfer item;
    ck_assert_int_eq(offer_decode(message, &offer), TERRANE_ERR_OK);
    told->offered_to = offer.to;
    while (offer_next(&offer, &item)) {
        struct entity_id id;
        told->offered[told->offered_count++ % STAND_TOLD] =
            (struct accept_item){.id = item.record.id, .offered = item.record.version};
        while (entity_next(&item.recall, &id)) continue;
    }
}

static inline void stand_take_views(struct stand_told *told, struct cursor message)
{
    struct views views;
    struct entity_id id;
    ck_assert_int_eq(views_decode(message, &views), TERRANE_ERR_OK);
    while (views_next(&views, &told->view)) {
        for (uint32_t i = 0; entity_next(&told->view.see, &id); i++) told->see[i % STAND_TOLD] = id.v;
    }
}

static inline void stand_take_snapshot(struct stand_told *told, struct cursor message)
{
    uint32_t slot;
    struct entity_record record;
    ck_assert_int_eq(snapshot_decode(message, &told->snapshot), TERRANE_ERR_OK);
    told->snapshot_entities = 0;
    while (snapshot_next(&told->snapshot, &slot, &record)) told->snapshot_entities++;
}

static inline void stand_take_ack(struct stand_told *told, struct cursor message)
{
    ck_assert_int_eq(standby_ack_decode(message, &told->ack), TERRANE_ERR_OK);
    struct standby_ack_item item;
    while (standby_ack_next(&told->ack, &item)) told->acks[told->ack_count++ % STAND_TOLD] = item;
}

static inline void stand_take(void *context, struct cursor message, bool sure)
{
    struct stand_told *told = context;
    enum message_kind kind;
    enum terrane_error error = TERRANE_ERR_OK;
    (void)sure;
    ck_assert_int_eq(message_kind_of(message, &kind), TERRANE_ERR_OK);
    told->count[kind]++;
    switch ((int)kind) {
    case MESSAGE_OWNER: error = owner_decode(message, &told->owner); break;
    case MESSAGE_RESULT: error = result_decode(message, &told->result); break;
    case MESSAGE_RELEASE: error = release_decode(message, &told->release); break;
    case MESSAGE_ATTACHED: error = attached_decode(message, &told->attached); break;
    case MESSAGE_STANDBY_END: error = standby_end_decode(message, &told->end); break;
    case MESSAGE_UNSUBSCRIBED: error = unsubscribed_decode(message, &told->unsubscribed); break;
    case MESSAGE_SUBSCRIBE: error = subscribe_decode(message, &told->subscribe); break;
    case MESSAGE_QUERY_RESULT: error = query_result_decode(message, &told->query); break;
    case MESSAGE_LOOKUP_RESULT: error = lookup_result_decode(message, &told->lookup); break;
    case MESSAGE_FORWARD:
        error = forward_decode(message, &told->forward);
        ck_assert_int_eq(message_kind_of(told->forward.command, &told->forwarded), TERRANE_ERR_OK);
        break;
    case MESSAGE_STANDBY_ACK: stand_take_ack(told, message); break;
    case MESSAGE_OFFER: stand_take_offer(told, message); break;
    case MESSAGE_VIEWS: stand_take_views(told, message); break;
    case MESSAGE_SNAPSHOT: stand_take_snapshot(told, message); break;
    default: break;
    }
    ck_assert_int_eq(error, TERRANE_ERR_OK);
}

static inline void stand_deliver(struct stand *s, struct node_id to, const uint8_t *bytes, size_t size)
{
    struct packet packet;
    uint64_t lost;
    ck_assert_int_eq(packet_decode(bytes, size, &packet), TERRANE_ERR_OK);
    if (packet.to.v == 0) return; /* HELLO */
    if (node_id_equal(to, NODE_COORDINATOR)) to = stand_node[STAND_COORDINATOR];
    for (int peer = 0; peer < STAND_PEERS; peer++) {
        if (!node_id_equal(to, stand_node[peer]) || s->gone[peer]) continue;
        ck_assert_int_eq(session_receive(s->session[peer], s->now_us, &packet, stand_take, &s->told[peer], &lost),
                         TERRANE_ERR_OK);
    }
}

static inline void stand_published(struct stand *s, const uint8_t *bytes, size_t size)
{
    struct topic topic;
    struct frame frame;
    ck_assert_int_eq(topic_decode(bytes, size, &topic), TERRANE_ERR_OK);
    ck_assert_int_eq(frame_decode(bytes + topic.size, size - topic.size, &frame), TERRANE_ERR_OK);
    if (frame_is_beat(&frame)) return;
    s->published++;
    s->step_frames++;
    uint32_t slot;
    struct entity_record record;
    while (topic.kind == STREAM_REGION && frame_next_entered(&frame, &slot, &record)) s->entered++;
}

static inline void stand_output(struct stand *s, const struct output *item, const uint8_t *bytes)
{
    struct event up = {.node = item->node, .feed = item->feed};
    switch ((int)item->kind) {
    case OUTPUT_SEND: stand_deliver(s, item->node, bytes, item->size); break;
    case OUTPUT_PUBLISH: stand_published(s, bytes, item->size); break;
    case OUTPUT_LINK:
        up.kind = EVENT_PEER_UP;
        stand_step(s, &up);
        break;
    case OUTPUT_FEED_LINK:
        up.kind = EVENT_FEED_UP;
        if (s->feeds_stand) stand_step(s, &up);
        break;
    case OUTPUT_LOG:
        if (item->size < sizeof s->logged && memmem(bytes, item->size, "promoted", 8) != NULL) {
            memcpy(s->logged, bytes, item->size);
            s->logged[item->size] = '\0';
        }
        break;
    default: break;
    }
}

static inline void stand_step(struct stand *s, const struct event *event)
{
    struct outbox out = {0};
    s->step_frames = 0;
    cellserver_step(s->server, event, s->now_us, &out);
    for (size_t i = 0; i < out.count; i++) {
        struct output item = out.items[i];
        stand_output(s, &item, outbox_bytes(&out, &item));
    }
    outbox_close(&out);
}

static inline void stand_flush(struct stand *s, enum stand_peer peer)
{
    while (!s->gone[peer] && session_fill(s->session[peer], s->now_us, &s->packet)) {
        stand_step(s, &(struct event){.kind = EVENT_MESSAGE, .bytes = s->packet.data, .size = s->packet.size});
    }
}

/* Queues the message in s->w; stand_flush sends all that is queued as one packet. */
static inline void stand_queue(struct stand *s, enum stand_peer peer, bool sure)
{
    struct session *session = s->session[peer];
    enum terrane_error error =
        sure ? session_push(session, s->w.data, s->w.size) : session_push_fast(session, s->w.data, s->w.size);
    ck_assert_int_eq(error, TERRANE_ERR_OK);
    writer_clear(&s->w);
}

static inline void stand_say(struct stand *s, enum stand_peer peer, bool sure)
{
    stand_queue(s, peer, sure);
    stand_flush(s, peer);
}

static inline void stand_forget(struct stand *s)
{
    memset(s->told, 0, sizeof s->told);
}

static inline void stand_tick(struct stand *s)
{
    s->now_us += STAND_TICK_US;
    heartbeat_begin(&s->w, &(struct heartbeat){.term = 1, .rev = s->rev, .echo = s->now_us});
    heartbeat_stands(&s->w, 0);
    stand_say(s, STAND_COORDINATOR, false);
    for (int peer = 0; peer < STAND_PEERS; peer++) stand_flush(s, (enum stand_peer)peer); /* acks */
    stand_step(s, &(struct event){.kind = EVENT_TICK});
}

static inline void stand_beat(struct stand *s)
{
    standby_beat_encode(&s->w, &(struct standby_beat){.stamp = ++s->stamp});
    stand_say(s, STAND_PRIMARY, false);
}

/* Tells the map as it stands in s->map. */
static inline void stand_map(struct stand *s)
{
    map_begin(&s->w, &(struct map){.term = 1, .rev = ++s->rev, .parts = 1});
    uint32_t nodes = 1;
    for (int peer = STAND_GATEWAY; peer < STAND_PEERS; peer++) nodes += !s->gone[peer];
    map_list(&s->w, nodes);
    for (int peer = STAND_GATEWAY; peer < STAND_PEERS; peer++) {
        struct node_info info = stand_info((enum stand_peer)peer);
        if (!s->gone[peer]) map_add_node(&s->w, &info);
    }
    struct node_info self = stand_info(STAND_THIRD);
    self.node = STAND_SELF;
    snprintf(self.name, sizeof self.name, "self");
    map_add_node(&s->w, &self);
    map_list(&s->w, s->map_count);
    for (uint32_t i = 0; i < s->map_count; i++) map_add_leaf(&s->w, &s->map[i]);
    map_list(&s->w, 0);
    map_list(&s->w, 0);
    stand_say(s, STAND_COORDINATOR, true);
}

static inline struct quadkey stand_leaf(uint32_t child)
{
    return quadkey_child(QUADKEY_ROOT, child);
}

/* Leaf 0 and 2 are the primary's with us as standby, 1 is ours, 3 the third's. */
static inline void stand_open(struct stand *s, const struct world *world)
{
    *s = (struct stand){.world = *world, .now_us = 1000000, .feeds_stand = true};
    struct node_info info = stand_info(STAND_THIRD);
    info.node = STAND_SELF;
    snprintf(info.name, sizeof info.name, "self");
    s->server = cellserver_open(&(struct cellserver_options){.info = info,
                                                             .coordinator_url = "tcp://127.0.0.1:7070",
                                                             .entities = 16384,
                                                             .session_entities = stand_session_entities});
    for (int peer = 0; peer < STAND_PEERS; peer++) {
        s->session[peer] = session_open(&(struct session_options){.self = stand_node[peer], .peer = STAND_SELF});
    }
    stand_step(s, &(struct event){.kind = EVENT_START});
    welcome_encode(&s->w,
                   &(struct welcome){
                       .node = stand_node[STAND_COORDINATOR], .term = 1, .world = *world, .lease_us = STAND_LEASE_US});
    stand_say(s, STAND_COORDINATOR, false);
    s->map_count = 4;
    for (uint32_t i = 0; i < 4; i++) {
        s->map[i] =
            (struct leaf_owner){.leaf = stand_leaf(i), .epoch = 1, .since = 1, .primary = stand_node[STAND_PRIMARY]};
        if (i % 2 == 0) s->map[i].standby = STAND_SELF;
    }
    s->map[1].primary = STAND_SELF;
    s->map[3].primary = stand_node[STAND_THIRD];
    stand_map(s);
    stand_tick(s);
    stand_forget(s);
}

static inline void stand_close(struct stand *s)
{
    cellserver_close(s->server);
    for (int peer = 0; peer < STAND_PEERS; peer++) session_close(s->session[peer]);
    writer_close(&s->w);
    writer_close(&s->packet);
}

/* The map names us for a leaf of the primary from the next epoch on. */
static inline void stand_give(struct stand *s, uint32_t child, struct node_id standby)
{
    struct leaf_owner *leaf = &s->map[child];
    leaf->epoch++;
    leaf->since = leaf->epoch;
    leaf->primary = STAND_SELF;
    leaf->standby = standby;
}

/* The primary is proved dead, and its leaves are ours. */
static inline void stand_primary_dies(struct stand *s)
{
    s->gone[STAND_PRIMARY] = true;
    for (uint32_t i = 0; i < s->map_count; i++) {
        if (node_id_equal(s->map[i].primary, stand_node[STAND_PRIMARY])) stand_give(s, i, NODE_NONE);
    }
    stand_map(s);
}

/* An entity as the primary has it; state "hp=7". */
static inline struct standby_item stand_item(uint64_t id, uint32_t slot, int32_t x, int32_t y, uint32_t radius)
{
    struct standby_item item = {.slot = slot, .enter_request = id};
    item.transfer = (struct transfer){
        .gateway = stand_node[STAND_GATEWAY], .position_sequence = 10, .state_sequence = 10, .radius_sequence = 10};
    item.transfer.record = (struct entity_record){.id = {id},
                                                  .version = 1000,
                                                  .radius = radius,
                                                  .position = {x, y, 0},
                                                  .state = (const uint8_t *)"hp=7",
                                                  .state_size = 4};
    return item;
}

/* A snapshot of a leaf, in one part; then its items are with the standby. */
static inline void stand_snapshot(struct stand *s, uint32_t child, const struct standby_item *items, uint32_t count)
{
    standby_begin(
        &s->w,
        &(struct standby){.leaf = stand_leaf(child), .epoch = s->map[child].epoch, .seq = ++s->seq[child], .parts = 1});
    standby_puts(&s->w, count);
    for (uint32_t i = 0; i < count; i++) standby_put(&s->w, &items[i]);
    standby_moves(&s->w, 0);
    stand_say(s, STAND_PRIMARY, true);
}

/* A message of changes with one of each that is given (NULL, 0: none). seq is the next one. */
static inline void stand_change(struct stand *s, uint32_t child, uint64_t drop, const struct standby_item *put,
                                const struct standby_move *move)
{
    standby_begin(&s->w, &(struct standby){.leaf = stand_leaf(child),
                                           .epoch = s->map[child].epoch,
                                           .seq = ++s->seq[child],
                                           .drop_count = drop != 0});
    if (drop != 0) entity_add(&s->w, (struct entity_id){drop});
    standby_puts(&s->w, put != NULL);
    if (put != NULL) standby_put(&s->w, put);
    standby_moves(&s->w, move != NULL);
    if (move != NULL) standby_move(&s->w, move);
    stand_say(s, STAND_PRIMARY, true);
}

/* The last ack of a leaf that the primary has got; fails the test if there is none. */
static inline struct standby_ack_item stand_acked(const struct stand *s, uint32_t child)
{
    const struct stand_told *told = &s->told[STAND_PRIMARY];
    for (uint32_t i = 0; i < told->ack_count && i < STAND_TOLD; i++) {
        struct standby_ack_item item = told->acks[(told->ack_count - 1 - i) % STAND_TOLD];
        if (quadkey_equal(item.leaf, stand_leaf(child))) return item;
    }
    ck_abort_msg("no ack of leaf %u", child);
    return (struct standby_ack_item){0};
}

static inline struct cellserver_stats stand_stats(const struct stand *s)
{
    struct cellserver_stats stats;
    cellserver_stats(s->server, &stats);
    return stats;
}

/* What this server has of an id, owned or in a replica. */
struct stand_found {
    uint64_t id;
    uint32_t count;
    struct cellserver_entity entity;
    char state[64];
};

static inline void stand_compare(void *context, const struct cellserver_entity *entity)
{
    struct stand_found *found = context;
    if (found->id != entity->record.id.v) return;
    found->count++;
    found->entity = *entity;
    ck_assert_uint_lt(entity->record.state_size, sizeof found->state);
    if (entity->record.state_size > 0) memcpy(found->state, entity->record.state, entity->record.state_size);
    found->state[entity->record.state_size] = '\0';
}

static inline void stand_compare_held(void *context, struct quadkey leaf, uint32_t epoch, bool level,
                                      const struct cellserver_entity *entity)
{
    (void)leaf;
    (void)epoch;
    if (level) stand_compare(context, entity);
}

static inline struct stand_found stand_owned(const struct stand *s, uint64_t id)
{
    struct stand_found found = {.id = id};
    cellserver_census(s->server, stand_compare, &found);
    return found;
}

static inline struct stand_found stand_held(const struct stand *s, uint64_t id)
{
    struct stand_found found = {.id = id};
    cellserver_replicas(s->server, stand_compare_held, &found);
    return found;
}

#endif
