/* A cell server core between a coordinator, a gateway and a second cell server, all made by hand. The rig owns the
 * cores; what they send is carried at once, without loss. Links and feeds stand as soon as they are asked for. */
#ifndef TERRANE_TESTS_UNIT_CELL_RIG_H
#define TERRANE_TESTS_UNIT_CELL_RIG_H

#include "cellserver/cellserver.h"
#include "proto/messages.h"
#include "proto/session.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RIG_SERVERS 2

static bool rig_unique_ids;                             /* of servers that are opened: ENTERs ask their ids' homes */
static uint32_t rig_session_rate, rig_session_entities; /* likewise */

static const struct node_id rig_coordinator = {100}, rig_gateway = {200};

struct rig_seen { /* what the gateway has been told, by kind */
    uint32_t count[64];
    struct result result;            /* the last one */
    struct view_item view;           /* the last one; its lists are gone */
    uint32_t sees, unsees;           /* in all */
    uint64_t see[4096], unsee[4096]; /* of the last item */
    struct owner owner;
};

struct rig {
    struct world world;
    struct cellserver *servers[RIG_SERVERS];
    struct session *coordinator[RIG_SERVERS], *gateway[RIG_SERVERS]; /* our ends */
    struct outbox out;
    struct writer w, packet;
    uint64_t now_us;
    struct rig_seen seen;
    char feeds[RIG_SERVERS][8][64]; /* topics watched by server */
    uint32_t feed_count[RIG_SERVERS];
    uint64_t published, published_bytes;
    uint32_t querying; /* replies seen */
    bool cut;          /* nothing passes between the servers */
    bool deaf;         /* the coordinator echoes nothing */
    struct writer reply;
};

static inline struct node_id rig_node(uint32_t server)
{
    return (struct node_id){300 + server};
}

static inline struct node_info rig_info(enum node_role role, struct node_id node)
{
    struct node_info info = {.role = role, .node = node, .feed_count = role == ROLE_CELLSERVER ? 1 : 0};
    snprintf(info.name, sizeof info.name, "node-%u", (unsigned)node.v);
    snprintf(info.host, sizeof info.host, "host");
    snprintf(info.inbox_url, sizeof info.inbox_url, "tcp://127.0.0.1:%u", (unsigned)node.v);
    snprintf(info.sub_url, sizeof info.sub_url, "tcp://127.0.0.1:%u", 10000 + (unsigned)node.v);
    if (role == ROLE_CELLSERVER) {
        snprintf(info.query_url, sizeof info.query_url, "tcp://127.0.0.1:%u", 20000 + (unsigned)node.v);
        snprintf(info.ghost_feed_url, sizeof info.ghost_feed_url, "tcp://127.0.0.1:%u", 30000 + (unsigned)node.v);
        snprintf(info.feed_urls[0], sizeof info.feed_urls[0], "tcp://127.0.0.1:%u", 40000 + (unsigned)node.v);
    }
    return info;
}

static inline void rig_step(struct rig *rig, uint32_t server, const struct event *event);

static inline void rig_gateway_message(void *context, struct cursor message, bool sure)
{
    struct rig *rig = context;
    enum message_kind kind;
    (void)sure;
    ck_assert_int_eq(message_kind_of(message, &kind), TERRANE_ERR_OK);
    rig->seen.count[kind]++;
    if (kind == MESSAGE_RESULT) ck_assert_int_eq(result_decode(message, &rig->seen.result), TERRANE_ERR_OK);
    if (kind == MESSAGE_OWNER) ck_assert_int_eq(owner_decode(message, &rig->seen.owner), TERRANE_ERR_OK);
    if (kind != MESSAGE_VIEWS) return;
    struct views views;
    ck_assert_int_eq(views_decode(message, &views), TERRANE_ERR_OK);
    while (views_next(&views, &rig->seen.view)) {
        struct entity_id id;
        rig->seen.sees += rig->seen.view.see_count;
        rig->seen.unsees += rig->seen.view.unsee_count;
        for (uint32_t i = 0; entity_next(&rig->seen.view.see, &id); i++) rig->seen.see[i % 4096] = id.v;
        for (uint32_t i = 0; entity_next(&rig->seen.view.unsee, &id); i++) rig->seen.unsee[i % 4096] = id.v;
    }
}

static inline void rig_ignore(void *context, struct cursor message, bool sure)
{
    (void)context;
    (void)message;
    (void)sure;
}

static inline void rig_deliver(struct rig *rig, uint32_t from, const struct output *item, const uint8_t *bytes)
{
    struct packet packet;
    uint64_t lost;
    for (uint32_t to = 0; to < RIG_SERVERS; to++) {
        if (!node_id_equal(item->node, rig_node(to))) continue;
        if (rig->cut) return;
        rig_step(rig, to, &(struct event){.kind = EVENT_MESSAGE, .bytes = bytes, .size = item->size});
        return;
    }
    ck_assert_int_eq(packet_decode(bytes, item->size, &packet), TERRANE_ERR_OK);
    bool gateway = node_id_equal(item->node, rig_gateway);
    struct session *session = gateway ? rig->gateway[from] : rig->coordinator[from];
    if (!gateway && packet.to.v == 0) return; /* HELLO */
    ck_assert_int_eq(
        session_receive(session, rig->now_us, &packet, gateway ? rig_gateway_message : rig_ignore, rig, &lost),
        TERRANE_ERR_OK);
}

static inline void rig_publish(struct rig *rig, const uint8_t *bytes, size_t size)
{
    rig->published++;
    rig->published_bytes += size;
    for (uint32_t to = 0; to < RIG_SERVERS; to++) {
        for (uint32_t i = 0; i < rig->feed_count[to]; i++) {
            if (strncmp((const char *)bytes, rig->feeds[to][i], strlen(rig->feeds[to][i])) != 0) continue;
            rig_step(rig, to, &(struct event){.kind = EVENT_MESSAGE, .lane = LANE_FEED, .bytes = bytes, .size = size});
        }
    }
}

static inline void rig_output(struct rig *rig, uint32_t from, const struct output *item, const uint8_t *bytes)
{
    struct event up = {.node = item->node, .feed = item->feed};
    switch ((int)item->kind) {
    case OUTPUT_SEND: rig_deliver(rig, from, item, bytes); break;
    case OUTPUT_PUBLISH: rig_publish(rig, bytes, item->size); break;
    case OUTPUT_LINK:
        up.kind = EVENT_PEER_UP;
        rig_step(rig, from, &up);
        break;
    case OUTPUT_FEED_LINK:
        up.kind = EVENT_FEED_UP;
        rig_step(rig, from, &up);
        break;
    case OUTPUT_WATCH:
        ck_assert_uint_lt(rig->feed_count[from], 8);
        memcpy(rig->feeds[from][rig->feed_count[from]], bytes, item->size);
        rig->feeds[from][rig->feed_count[from]++][item->size] = '\0';
        break;
    case OUTPUT_REPLY:
        rig->querying++;
        writer_clear(&rig->reply);
        writer_raw(&rig->reply, bytes, item->size);
        break;
    default: break;
    }
}

/* Carries out every output in order; a step may nest (its outputs come before the rest of the outer ones). Outboxes of
 * nested steps come from a small pool, so that a warm rig allocates nothing. */
static struct outbox rig_boxes[64];
static uint32_t rig_depth;

static inline void rig_step(struct rig *rig, uint32_t server, const struct event *event)
{
    ck_assert_uint_lt(rig_depth, 64);
    struct outbox *out = &rig_boxes[rig_depth++];
    outbox_clear(out);
#ifdef TERRANE_TESTS_UNIT_ALLOCATIONS_H
    allocations_counted = true;
#endif
    cellserver_step(rig->servers[server], event, rig->now_us, out);
#ifdef TERRANE_TESTS_UNIT_ALLOCATIONS_H
    allocations_counted = false;
#endif
    for (size_t i = 0; i < out->count; i++) {
        struct output item = out->items[i];
        rig_output(rig, server, &item, outbox_bytes(out, &item));
    }
    rig_depth--;
}

static inline void rig_flush(struct rig *rig, uint32_t server, struct session *session)
{
    while (session_fill(session, rig->now_us, &rig->packet)) {
        rig_step(rig, server,
                 &(struct event){.kind = EVENT_MESSAGE, .bytes = rig->packet.data, .size = rig->packet.size});
    }
}

/* The message in rig->w, from the gateway (or, second function, the coordinator) to a server. */
static inline void rig_say(struct rig *rig, uint32_t server, bool sure)
{
    struct session *s = rig->gateway[server];
    enum terrane_error error =
        sure ? session_push(s, rig->w.data, rig->w.size) : session_push_fast(s, rig->w.data, rig->w.size);
    ck_assert_int_eq(error, TERRANE_ERR_OK);
    rig_flush(rig, server, s);
    writer_clear(&rig->w);
}

static inline void rig_tick(struct rig *rig)
{
    rig->now_us += 50000;
    for (uint32_t i = 0; i < RIG_SERVERS; i++) {
        heartbeat_begin(&rig->w, &(struct heartbeat){.term = 1, .rev = 1, .echo = rig->deaf ? 0 : rig->now_us});
        heartbeat_stands(&rig->w, 0);
        ck_assert_int_eq(session_push_fast(rig->coordinator[i], rig->w.data, rig->w.size), TERRANE_ERR_OK);
        writer_clear(&rig->w);
        rig_flush(rig, i, rig->gateway[i]); /* acks */
        rig_flush(rig, i, rig->coordinator[i]);
        rig_step(rig, i, &(struct event){.kind = EVENT_TICK});
    }
}

/* The four leaves as given, to one server. alone: there is no other. */
static inline void rig_map_to(struct rig *rig, uint32_t server, uint64_t rev, const struct leaf_owner owners[4],
                              bool alone)
{
    writer_clear(&rig->w);
    map_begin(&rig->w, &(struct map){.term = 1, .rev = rev, .base = 0, .part = 0, .parts = 1});
    struct node_info infos[3] = {rig_info(ROLE_GATEWAY, rig_gateway), rig_info(ROLE_CELLSERVER, rig_node(0)),
                                 rig_info(ROLE_CELLSERVER, rig_node(1))};
    map_list(&rig->w, alone ? 2 : 3);
    for (int n = 0; n < (alone ? 2 : 3); n++) map_add_node(&rig->w, &infos[n]);
    map_list(&rig->w, 4);
    for (uint32_t k = 0; k < 4; k++) map_add_leaf(&rig->w, &owners[k]);
    map_list(&rig->w, 0);
    map_list(&rig->w, 0);
    ck_assert_int_eq(session_push(rig->coordinator[server], rig->w.data, rig->w.size), TERRANE_ERR_OK);
    writer_clear(&rig->w);
    rig_flush(rig, server, rig->coordinator[server]);
}

/* West (leaves 0 and 2) is server 0's, east (1 and 3) server 1's; with `paired` each stands by for the other. */
static inline void rig_map_of(struct rig *rig, uint64_t rev, uint32_t epoch, uint32_t since, bool paired)
{
    struct leaf_owner owners[4];
    for (uint32_t k = 0; k < 4; k++) {
        struct node_id standby = paired ? rig_node(1 - k % 2) : NODE_NONE;
        owners[k] = (struct leaf_owner){quadkey_child(QUADKEY_ROOT, k), epoch, since, rig_node(k % 2), standby, 0};
    }
    for (uint32_t i = 0; i < RIG_SERVERS; i++) rig_map_to(rig, i, rev, owners, false);
}

static inline void rig_map(struct rig *rig, uint64_t rev, uint32_t epoch)
{
    rig_map_of(rig, rev, epoch, epoch, false);
}

static inline void rig_open(struct rig *rig, const struct world *world)
{
    *rig = (struct rig){.world = *world, .now_us = 1000000};
    for (uint32_t i = 0; i < RIG_SERVERS; i++) {
        struct node_info info = rig_info(ROLE_CELLSERVER, rig_node(i));
        rig->servers[i] = cellserver_open(&(struct cellserver_options){.info = info,
                                                                       .coordinator_url = "tcp://127.0.0.1:7070",
                                                                       .entities = 2048,
                                                                       .session_rate = rig_session_rate,
                                                                       .session_entities = rig_session_entities,
                                                                       .unique_ids = rig_unique_ids});
        rig->coordinator[i] = session_open(&(struct session_options){.self = rig_coordinator, .peer = rig_node(i)});
        rig->gateway[i] = session_open(&(struct session_options){.self = rig_gateway, .peer = rig_node(i)});
    }
    for (uint32_t i = 0; i < RIG_SERVERS; i++) {
        rig_step(rig, i, &(struct event){.kind = EVENT_START});
        writer_clear(&rig->w);
        welcome_encode(&rig->w,
                       &(struct welcome){.node = rig_coordinator, .term = 1, .world = *world, .lease_us = 250000});
        ck_assert_int_eq(session_push_fast(rig->coordinator[i], rig->w.data, rig->w.size), TERRANE_ERR_OK);
        rig_flush(rig, i, rig->coordinator[i]);
    }
    rig_map(rig, 1, 1);
    for (int i = 0; i < 4; i++) rig_tick(rig);
}

static inline void rig_close(struct rig *rig)
{
    for (uint32_t i = 0; i < RIG_SERVERS; i++) {
        cellserver_close(rig->servers[i]);
        session_close(rig->coordinator[i]);
        session_close(rig->gateway[i]);
    }
    for (uint32_t i = 0; i < 64; i++) outbox_close(&rig_boxes[i]);
    writer_close(&rig->w);
    writer_close(&rig->packet);
    writer_close(&rig->reply);
}

static inline void rig_enter(struct rig *rig, uint32_t server, uint64_t id, int32_t x, int32_t y, uint32_t radius)
{
    struct enter enter = {.request = id, .sequence = 1};
    enter.record = (struct entity_record){.id = {id},
                                          .version = 1000,
                                          .radius = radius,
                                          .position = {x, y, 0},
                                          .state = (const uint8_t *)"hp=7",
                                          .state_size = 4};
    enter_encode(&rig->w, &enter);
    rig_say(rig, server, true);
}

static inline void rig_move(struct rig *rig, uint32_t server, uint64_t sequence, uint64_t id, int32_t x, int32_t y)
{
    moves_begin(&rig->w, &(struct moves){.sequence = sequence, .count = 1});
    moves_add(&rig->w, &(struct move){.id = {id}, .position = {x, y, 0}});
    rig_say(rig, server, false);
}

#endif
