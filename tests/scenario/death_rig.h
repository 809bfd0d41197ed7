/* Cell servers and gateways, all real cores, and a coordinator made by hand, whose messages a test carries one by one:
 * so a death can be placed between any two of them.
 *
 * Whatever is on its way is in one queue for each pair of nodes and lane (packets, feeds; what happens at a node itself
 * is on its way from it to it), in order. death_event delivers the first of
 * one queue (the oldest of all, or, with a seed, any), or lets time pass if there is none. A node that is dead gets
 * nothing; one that is frozen gets nothing until it thaws, then all that waited. */
#ifndef TERRANE_TESTS_SCENARIO_DEATH_RIG_H
#define TERRANE_TESTS_SCENARIO_DEATH_RIG_H

#include "cellserver/cellserver.h"
#include "common/check.h"
#include "common/geometry.h"
#include "gateway/core.h"
#include "proto/messages.h"
#include "proto/session.h"
#include "tests/sim/dice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERVERS = 5, GATEWAY = SERVERS, WATCHER, COORDINATOR, NODES, LANES = 2, LEAVES = 4, WATCHES = 16, IDS = 8 };

#define DEATH_TICK_US  UINT64_C(50000)
#define DEATH_LEASE_US UINT64_C(250000)

/* What can't fail here; Check's own assertions are too slow for as many. */
#define MUST(call) CHECK((call) == TERRANE_ERR_OK)

struct carried {
    struct event event;
    uint8_t *bytes;
    uint64_t order;
    struct carried *next;
};

struct lane_queue {
    struct carried *first, *last;
};

/* What a gateway's game has been told. */
struct game {
    struct rig *rig;
    struct gateway *core;
    bool sees[IDS][IDS]; /* observer, subject */
    uint32_t see_count, unsee_count, mispaired, errors, done_ok, done_failed;
};

struct rig {
    struct world world;
    struct cellserver *servers[SERVERS];
    struct game games[2];            /* of GATEWAY and WATCHER */
    struct session *sessions[NODES]; /* the coordinator's */
    struct lane_queue queues[LANES][NODES][NODES];
    char watches[NODES][WATCHES][64];
    bool dead[NODES], frozen[NODES], listed[NODES];
    struct leaf_owner map[LEAVES];
    uint64_t rev, now_us, tick_us, orders, ticks;
    struct dice dice;
    bool shuffled;
    struct outbox out;
    struct writer w, packet;
};

static inline struct node_id rig_node(uint32_t node)
{
    return (struct node_id){100 + node};
}

static inline bool is_gateway(uint32_t node)
{
    return node == GATEWAY || node == WATCHER;
}

static inline struct gateway *core_of(const struct rig *rig, uint32_t gateway)
{
    return rig->games[gateway - GATEWAY].core;
}

static inline uint32_t rig_index(struct node_id node)
{
    if (node_id_equal(node, NODE_COORDINATOR)) return COORDINATOR;
    CHECK(node.v >= 100 && node.v < 100 + NODES);
    return (uint32_t)(node.v - 100);
}

static inline struct node_info rig_info(uint32_t node)
{
    struct node_info info = {.role = is_gateway(node) ? ROLE_GATEWAY : ROLE_CELLSERVER, .node = rig_node(node)};
    snprintf(info.name, sizeof info.name, "node-%u", node);
    snprintf(info.host, sizeof info.host, "host");
    snprintf(info.inbox_url, sizeof info.inbox_url, "tcp://127.0.0.1:%u", 1000 + node);
    snprintf(info.sub_url, sizeof info.sub_url, "tcp://127.0.0.1:%u", 2000 + node);
    if (is_gateway(node)) return info;
    info.feed_count = 1;
    snprintf(info.query_url, sizeof info.query_url, "tcp://127.0.0.1:%u", 3000 + node);
    snprintf(info.ghost_feed_url, sizeof info.ghost_feed_url, "tcp://127.0.0.1:%u", 4000 + node);
    snprintf(info.feed_urls[0], sizeof info.feed_urls[0], "tcp://127.0.0.1:%u", 5000 + node);
    return info;
}

/* ---- queues ---- */

static inline void rig_put(struct rig *rig, uint32_t lane, uint32_t from, uint32_t to, struct event event)
{
    struct carried *item = calloc(1, sizeof *item);
    *item = (struct carried){.event = event, .order = ++rig->orders};
    if (event.bytes != NULL) {
        item->bytes = malloc(event.size + 1);
        memcpy(item->bytes, event.bytes, event.size);
        item->event.bytes = item->bytes;
    }
    struct lane_queue *q = &rig->queues[lane][from][to];
    if (q->first == NULL) {
        q->first = item;
    } else {
        q->last->next = item;
    }
    q->last = item;
}

static inline void rig_drop_first(struct lane_queue *q)
{
    struct carried *item = q->first;
    q->first = item->next;
    free(item->bytes);
    free(item);
}

/* What `node` has said and nobody has heard yet is lost. */
static inline void rig_lose(struct rig *rig, uint32_t node)
{
    for (uint32_t lane = 0; lane < LANES; lane++) {
        for (uint32_t to = 0; to < NODES; to++) {
            while (rig->queues[lane][node][to].first != NULL) rig_drop_first(&rig->queues[lane][node][to]);
        }
    }
}

/* Queue number `at` in [0, LANES * NODES * NODES); NULL: nothing in it can be delivered now. */
static inline struct lane_queue *rig_ready(struct rig *rig, uint32_t at)
{
    uint32_t to = at % NODES;
    struct lane_queue *q = &rig->queues[at / NODES / NODES][at / NODES % NODES][to];
    while (rig->dead[to] && q->first != NULL) rig_drop_first(q);
    return q->first == NULL || rig->frozen[to] ? NULL : q;
}

static inline uint32_t rig_next_queue(struct rig *rig)
{
    uint32_t best = UINT32_MAX, ready = 0;
    uint64_t order = UINT64_MAX;
    for (uint32_t at = 0; at < LANES * NODES * NODES; at++) {
        struct lane_queue *q = rig_ready(rig, at);
        if (q == NULL) continue;
        ready++;
        if (rig->shuffled ? dice_below(&rig->dice, ready) != 0 : q->first->order > order) continue;
        best = at;
        order = q->first->order;
    }
    return best;
}

/* ---- the coordinator ---- */

static inline void rig_tell_node(struct rig *rig, uint32_t node)
{
    while (session_fill(rig->sessions[node], rig->now_us, &rig->packet)) {
        rig_put(rig, 0, COORDINATOR, node,
                (struct event){.kind = EVENT_MESSAGE, .bytes = rig->packet.data, .size = rig->packet.size});
    }
}

static inline void coordinator_take(void *context, struct cursor message, bool sure)
{
    struct session *session = context;
    enum message_kind kind;
    struct heartbeat m;
    struct writer w = {0};
    (void)sure;
    MUST(message_kind_of(message, &kind));
    if (kind != MESSAGE_HEARTBEAT) return;
    MUST(heartbeat_decode(message, &m));
    heartbeat_begin(&w, &(struct heartbeat){.term = 1, .rev = m.rev, .echo = m.stamp});
    heartbeat_stands(&w, 0);
    MUST(session_push_fast(session, w.data, w.size));
    writer_close(&w);
}

static inline void coordinator_receive(struct rig *rig, const struct event *event)
{
    struct packet packet;
    uint64_t lost;
    MUST(packet_decode(event->bytes, event->size, &packet));
    if (packet.to.v == 0) return; /* HELLO: all are known */
    uint32_t from = rig_index(packet.from);
    MUST(session_receive(rig->sessions[from], rig->now_us, &packet, coordinator_take, rig->sessions[from], &lost));
    rig_tell_node(rig, from);
}

/* Tells the map, rig->map and the listed nodes, to all who live. */
static inline void coordinator_tell(struct rig *rig)
{
    uint32_t listed = 0;
    writer_clear(&rig->w);
    map_begin(&rig->w, &(struct map){.term = 1, .rev = ++rig->rev, .parts = 1});
    for (uint32_t node = 0; node < COORDINATOR; node++) listed += rig->listed[node];
    map_list(&rig->w, listed);
    for (uint32_t node = 0; node < COORDINATOR; node++) {
        struct node_info info = rig_info(node);
        if (rig->listed[node]) map_add_node(&rig->w, &info);
    }
    map_list(&rig->w, LEAVES);
    for (uint32_t leaf = 0; leaf < LEAVES; leaf++) map_add_leaf(&rig->w, &rig->map[leaf]);
    map_list(&rig->w, 0);
    map_list(&rig->w, 0);
    for (uint32_t node = 0; node < COORDINATOR; node++) {
        if (rig->dead[node]) continue;
        MUST(session_push(rig->sessions[node], rig->w.data, rig->w.size));
        rig_tell_node(rig, node);
    }
}

/* ---- games ---- */

static inline void game_see(void *context, uint64_t observer, const struct terrane_entity *subject)
{
    struct game *game = context;
    game->mispaired += game->sees[observer][subject->id];
    game->sees[observer][subject->id] = true;
    game->see_count++;
}

static inline void game_unsee(void *context, uint64_t observer, uint64_t subject)
{
    struct game *game = context;
    game->mispaired += !game->sees[observer][subject];
    game->sees[observer][subject] = false;
    game->unsee_count++;
}

static inline void game_update(void *context, uint64_t observer, const struct terrane_entity *subject, uint32_t changes)
{
    struct game *game = context;
    (void)changes;
    game->mispaired += !game->sees[observer][subject->id];
}

static inline void game_done(void *context, uint64_t request, enum terrane_operation operation, uint64_t id,
                             enum terrane_error error)
{
    struct game *game = context;
    (void)request;
    (void)operation;
    (void)id;
    game->done_ok += error == TERRANE_ERR_OK;
    game->done_failed += error != TERRANE_ERR_OK;
}

static inline void game_error(void *context, uint64_t id, enum terrane_error error, const char *text)
{
    struct game *game = context;
    (void)id;
    (void)error;
    (void)text;
    game->errors++;
}

/* ---- stepping ---- */

static inline void rig_watch(struct rig *rig, uint32_t node, const uint8_t *bytes, size_t size, bool on)
{
    char topic[64] = {0};
    CHECK(size < sizeof topic);
    memcpy(topic, bytes, size);
    for (uint32_t i = 0; i < WATCHES; i++) {
        char *slot = rig->watches[node][i];
        if (strcmp(slot, on ? "" : topic) != 0) continue;
        memcpy(slot, on ? topic : "", on ? sizeof topic : 1);
        return;
    }
    CHECK(!on);
}

static inline void rig_publish(struct rig *rig, uint32_t from, const uint8_t *bytes, size_t size)
{
    for (uint32_t to = 0; to < COORDINATOR; to++) {
        for (uint32_t i = 0; i < WATCHES; i++) {
            const char *prefix = rig->watches[to][i];
            if (prefix[0] == '\0' || strncmp((const char *)bytes, prefix, strlen(prefix)) != 0) continue;
            rig_put(rig, 1, from, to,
                    (struct event){.kind = EVENT_MESSAGE, .lane = LANE_FEED, .bytes = bytes, .size = size});
            break;
        }
    }
}

static inline void rig_output(struct rig *rig, uint32_t from, const struct output *item, const uint8_t *bytes)
{
    struct event up = {.node = item->node, .feed = item->feed};
    switch ((int)item->kind) {
    case OUTPUT_SEND:
        rig_put(rig, 0, from, rig_index(item->node),
                (struct event){.kind = EVENT_MESSAGE, .bytes = bytes, .size = item->size});
        break;
    case OUTPUT_PUBLISH: rig_publish(rig, from, bytes, item->size); break;
    case OUTPUT_WATCH: rig_watch(rig, from, bytes, item->size, true); break;
    case OUTPUT_UNWATCH: rig_watch(rig, from, bytes, item->size, false); break;
    case OUTPUT_LINK:
        up.kind = EVENT_PEER_UP;
        if (!rig->dead[rig_index(item->node)]) rig_put(rig, 0, from, from, up);
        break;
    case OUTPUT_FEED_LINK:
        up.kind = EVENT_FEED_UP;
        if (!rig->dead[rig_index(item->node)]) rig_put(rig, 0, from, from, up);
        break;
    default: break;
    }
}

static inline void rig_step(struct rig *rig, uint32_t node, const struct event *event)
{
    if (node == COORDINATOR) {
        coordinator_receive(rig, event);
        return;
    }
    outbox_clear(&rig->out);
    if (is_gateway(node)) {
        gateway_step(core_of(rig, node), event, rig->now_us, &rig->out);
    } else {
        cellserver_step(rig->servers[node], event, rig->now_us, &rig->out);
    }
    for (size_t i = 0; i < rig->out.count; i++) {
        struct output item = rig->out.items[i];
        rig_output(rig, node, &item, outbox_bytes(&rig->out, &item));
    }
}

static inline void rig_pass_time(struct rig *rig)
{
    uint64_t due = rig->tick_us;
    for (uint32_t node = GATEWAY; node <= WATCHER; node++) {
        uint64_t wants = rig->dead[node] || rig->frozen[node] ? UINT64_MAX : gateway_deadline_us(core_of(rig, node));
        if (wants < due) due = wants;
    }
    if (due > rig->now_us) rig->now_us = due;
    for (uint32_t node = GATEWAY; node <= WATCHER; node++) {
        if (rig->dead[node] || rig->frozen[node] || gateway_deadline_us(core_of(rig, node)) > rig->now_us) continue;
        rig_put(rig, 0, node, node, (struct event){.kind = EVENT_TIMEOUT});
    }
    if (rig->now_us < rig->tick_us) return;
    rig->tick_us += DEATH_TICK_US;
    rig->ticks++;
    for (uint32_t node = 0; node < SERVERS; node++) {
        if (rig->dead[node] || rig->frozen[node]) continue;
        rig_put(rig, 0, node, node, (struct event){.kind = EVENT_TICK});
        rig_tell_node(rig, node);
    }
}

/* One thing happens. Each takes a microsecond. */
static inline void death_event(struct rig *rig)
{
    bool late = rig->shuffled && dice_below(&rig->dice, 100) == 0; /* some messages are slower than a tick */
    uint32_t at = late ? UINT32_MAX : rig_next_queue(rig);
    if (at == UINT32_MAX) {
        rig_pass_time(rig);
        return;
    }
    struct lane_queue *q = rig_ready(rig, at);
    struct carried *item = q->first;
    q->first = item->next;
    rig->now_us++;
    rig_step(rig, at % NODES, &item->event);
    free(item->bytes);
    free(item);
}

static inline void death_ticks(struct rig *rig, uint64_t count)
{
    uint64_t until = rig->ticks + count;
    while (rig->ticks < until) death_event(rig);
}

/* ---- what is there ---- */

struct death_found {
    const struct rig *rig;
    uint64_t id;
    uint32_t owned, served, leaving;
    uint32_t server, looking; /* where it is; the one that is looked at */
    struct quadkey leaf;
    struct position position;
    uint64_t version;
    char state[8];
};

static inline void death_note(struct death_found *found, const struct cellserver_entity *e)
{
    found->owned++;
    found->leaving += e->leaving;
    found->served += !e->leaving && !e->fenced;
    found->leaf = e->leaf;
    found->position = e->record.position;
    found->version = e->record.version;
    snprintf(found->state, sizeof found->state, "%.*s", (int)e->record.state_size, (const char *)e->record.state);
}

/* Served as of now: a server that has slept and not stepped since judges by its old clock. */
static inline void death_note_owned(void *context, const struct cellserver_entity *e)
{
    struct death_found *found = context;
    const struct rig *rig = found->rig;
    uint32_t epoch, served = found->served;
    if (e->record.id.v != found->id) return;
    death_note(found, e);
    found->server = found->looking;
    if (!cellserver_owns_at(rig->servers[found->looking], e->leaf, rig->now_us, &epoch)) found->served = served;
}

static inline void death_note_held(void *context, struct quadkey leaf, uint32_t epoch, bool level,
                                   const struct cellserver_entity *e)
{
    struct death_found *found = context;
    (void)epoch;
    if (e->record.id.v != found->id) return;
    uint32_t served = found->served;
    death_note(found, e);
    found->server = found->looking;
    found->leaf = leaf;
    found->served = served + level;
}

static inline struct death_found death_find_owned(const struct rig *rig, uint64_t id)
{
    struct death_found found = {.rig = rig, .id = id};
    for (found.looking = 0; found.looking < SERVERS; found.looking++) {
        if (rig->dead[found.looking] || rig->frozen[found.looking]) continue;
        cellserver_census(rig->servers[found.looking], death_note_owned, &found);
    }
    return found;
}

/* At one server; `served`: its copy is level. */
static inline struct death_found death_find_held_at(const struct rig *rig, uint64_t id, uint32_t server)
{
    struct death_found found = {.rig = rig, .id = id, .looking = server};
    if (!rig->dead[server]) cellserver_replicas(rig->servers[server], death_note_held, &found);
    return found;
}

static inline struct death_found death_find_held(const struct rig *rig, uint64_t id)
{
    struct death_found found = {.rig = rig, .id = id};
    for (found.looking = 0; found.looking < SERVERS; found.looking++) {
        if (!rig->dead[found.looking]) cellserver_replicas(rig->servers[found.looking], death_note_held, &found);
    }
    return found;
}

/* ---- opening ---- */

static inline void rig_open_gateway(struct rig *rig, uint32_t node)
{
    struct game *game = &rig->games[node - GATEWAY];
    struct gateway_options options = {.info = rig_info(node),
                                      .coordinator_url = "tcp://127.0.0.1:7070",
                                      .wall_us = UINT64_C(1700000000000000),
                                      .request_timeout_us = 60000000,
                                      .callbacks = {.see = game_see,
                                                    .unsee = game_unsee,
                                                    .update = game_update,
                                                    .done = game_done,
                                                    .error = game_error},
                                      .context = game};
    game->rig = rig;
    game->core = gateway_open(&options);
}

/* `map` is what rig->map begins as. seed 0: everything in the order in which it was said. */
static inline void death_open(struct rig *rig, const struct leaf_owner map[LEAVES], uint64_t seed)
{
    *rig = (struct rig){.world = world_default(), .now_us = 1000000, .tick_us = 1000000};
    rig->dice = dice_of(seed, 1);
    memcpy(rig->map, map, sizeof rig->map);
    for (uint32_t node = 0; node < COORDINATOR; node++) {
        struct session_options options = {.self = rig_node(COORDINATOR), .peer = rig_node(node)};
        rig->sessions[node] = session_open(&options);
        rig->listed[node] = true;
        if (is_gateway(node)) {
            rig_open_gateway(rig, node);
        } else {
            rig->servers[node] = cellserver_open(&(struct cellserver_options){
                .info = rig_info(node), .coordinator_url = "tcp://127.0.0.1:7070", .entities = 64});
        }
        rig_step(rig, node, &(struct event){.kind = EVENT_START});
        writer_clear(&rig->w);
        welcome_encode(&rig->w,
                       &(struct welcome){
                           .node = rig_node(COORDINATOR), .term = 1, .world = rig->world, .lease_us = DEATH_LEASE_US});
        MUST(session_push_fast(rig->sessions[node], rig->w.data, rig->w.size));
        rig_tell_node(rig, node);
    }
    death_ticks(rig, 2);
    coordinator_tell(rig);
    death_ticks(rig, 6);
    rig->shuffled = seed != 0;
}

static inline void death_close(struct rig *rig)
{
    for (uint32_t node = 0; node < NODES; node++) {
        rig_lose(rig, node);
        session_close(rig->sessions[node]);
        if (node < SERVERS) cellserver_close(rig->servers[node]);
        if (is_gateway(node)) gateway_close(core_of(rig, node));
    }
    outbox_close(&rig->out);
    writer_close(&rig->w);
    writer_close(&rig->packet);
}

#endif
