/* A gateway core between a fake coordinator and fake cell servers that a test drives by hand. The fakes are real
 * sessions and nothing else: what the gateway sends them is kept as a list of messages, what they say is whatever
 * the test encodes. Every callback of the API is kept as a list too, and pairs are checked against a model: a see of a
 * seen pair or an unsee of an unseen one fails at once. */
#ifndef TERRANE_TESTS_UNIT_GATEWAY_RIG_H
#define TERRANE_TESTS_UNIT_GATEWAY_RIG_H

#include "common/geometry.h"
#include "gateway/core.h"
#include "proto/session.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

#define RIG_SERVERS 4
#define RIG_LOG     65536
#define RIG_SELF    ((struct node_id){50})
#define SERVER(i)   ((struct node_id){101 + (uint64_t)(i)})

enum { TOLD_READY, TOLD_SEE, TOLD_UNSEE, TOLD_UPDATE, TOLD_EVENT, TOLD_DONE, TOLD_FOUND, TOLD_ERROR };

struct told {
    int kind;
    uint64_t a, b; /* observer and subject; request and id; id and 0 */
    int operation, error;
    double x, y;
    uint32_t changes, count;
};

struct rig_message {
    enum message_kind kind;
    uint8_t *bytes;
    size_t size;
};

struct rig_peer {
    struct node_id node;
    struct session *session;
    struct rig_message *messages;
    size_t count;
    bool linked, deaf; /* deaf: packets to it are lost */
    int links, unlinks;
};

struct rig {
    struct gateway *g;
    struct outbox out;
    uint64_t now;
    struct world world;
    struct rig_peer coordinator, servers[RIG_SERVERS];
    int hellos, watches, unwatches;
    char last_watch[64], last_unwatch[64];
    struct told *told;
    size_t told_count;
    uint64_t seen[4096][2];
    size_t seen_count;
    struct writer w, packet;
    uint64_t rev;
    void (*hook)(struct rig *rig, const struct told *told); /* called inside every callback */
    void *hook_context;
};

static inline void rig_tell(struct rig *rig, struct told told)
{
    ck_assert_uint_lt(rig->told_count, RIG_LOG);
    rig->told[rig->told_count++] = told;
    if (rig->hook != NULL) rig->hook(rig, &told);
}

static inline size_t rig_pair(const struct rig *rig, uint64_t observer, uint64_t subject)
{
    for (size_t i = 0; i < rig->seen_count; i++) {
        if (rig->seen[i][0] == observer && rig->seen[i][1] == subject) return i;
    }
    return SIZE_MAX;
}

static inline void rig_on_ready(void *context)
{
    rig_tell(context, (struct told){.kind = TOLD_READY});
}
static inline void rig_on_see(void *context, uint64_t observer, const struct terrane_entity *subject)
{
    struct rig *rig = context;
    ck_assert_msg(rig_pair(rig, observer, subject->id) == SIZE_MAX, "second see of a pair");
    ck_assert_uint_lt(rig->seen_count, 4096);
    rig->seen[rig->seen_count][0] = observer;
    rig->seen[rig->seen_count++][1] = subject->id;
    rig_tell(rig, (struct told){.kind = TOLD_SEE, .a = observer, .b = subject->id, .x = subject->x, .y = subject->y});
}
static inline void rig_on_unsee(void *context, uint64_t observer, uint64_t subject)
{
    struct rig *rig = context;
    size_t at = rig_pair(rig, observer, subject);
    ck_assert_msg(at != SIZE_MAX, "unsee of a pair that is not seen");
    rig->seen_count--;
    memcpy(rig->seen[at], rig->seen[rig->seen_count], sizeof rig->seen[at]);
    rig_tell(rig, (struct told){.kind = TOLD_UNSEE, .a = observer, .b = subject});
}
static inline void rig_on_update(void *context, uint64_t observer, const struct terrane_entity *subject,
                                 uint32_t changes)
{
    ck_assert_msg(rig_pair(context, observer, subject->id) != SIZE_MAX, "update of a pair that is not seen");
    rig_tell(context, (struct told){.kind = TOLD_UPDATE,
                                    .a = observer,
                                    .b = subject->id,
                                    .x = subject->x,
                                    .y = subject->y,
                                    .changes = changes});
}
static inline void rig_on_event(void *context, uint64_t observer, const struct terrane_event *event)
{
    rig_tell(context, (struct told){.kind = TOLD_EVENT, .a = observer, .b = event->code, .x = event->x, .y = event->y});
}
static inline void rig_on_done(void *context, uint64_t request, enum terrane_operation operation, uint64_t id,
                               enum terrane_error error)
{
    rig_tell(context,
             (struct told){.kind = TOLD_DONE, .a = request, .b = id, .operation = (int)operation, .error = (int)error});
}
static inline void rig_on_found(void *context, uint64_t request, const struct terrane_entity *entities, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rig_tell(context, (struct told){.kind = TOLD_FOUND,
                                        .a = request,
                                        .b = entities[i].id,
                                        .x = entities[i].x,
                                        .y = entities[i].y,
                                        .count = (uint32_t)count});
    }
}
static inline void rig_on_error(void *context, uint64_t id, enum terrane_error error, const char *text)
{
    ck_assert_ptr_nonnull(text);
    rig_tell(context, (struct told){.kind = TOLD_ERROR, .a = id, .error = (int)error});
}

static inline struct rig_peer *rig_peer_of(struct rig *rig, struct node_id node)
{
    if (node_id_equal(node, NODE_COORDINATOR) || node_id_equal(node, rig->coordinator.node)) return &rig->coordinator;
    for (int i = 0; i < RIG_SERVERS; i++) {
        if (node_id_equal(rig->servers[i].node, node)) return &rig->servers[i];
    }
    return NULL;
}

static inline void rig_keep(void *context, struct cursor message, bool sure)
{
    (void)sure;
    struct rig_peer *peer = context;
    enum message_kind kind;
    ck_assert_int_eq(message_kind_of(message, &kind), TERRANE_ERR_OK);
    if (kind == MESSAGE_HEARTBEAT) return;
    ck_assert_uint_lt(peer->count, RIG_LOG);
    struct rig_message *kept = &peer->messages[peer->count++];
    kept->kind = kind;
    kept->size = (size_t)(message.end - message.at);
    kept->bytes = malloc(kept->size + 1);
    memcpy(kept->bytes, message.at, kept->size);
}

static inline void rig_step(struct rig *rig, struct event event);

static inline struct session *rig_session_with(struct node_id self, struct node_id peer)
{
    struct session_options options = {.self = self, .peer = peer};
    return session_open(&options);
}

static inline struct session *rig_session(struct node_id self)
{
    return rig_session_with(self, RIG_SELF);
}

static inline void rig_take(struct rig *rig, const struct output *item, const uint8_t *bytes)
{
    struct rig_peer *peer = rig_peer_of(rig, item->node);
    struct packet packet;
    uint64_t lost;
    if (peer == NULL || peer->deaf) return;
    ck_assert_uint_le(item->size, LIMIT_PACKET_TARGET);
    ck_assert_int_eq(packet_decode(bytes, item->size, &packet), TERRANE_ERR_OK);
    if (packet.to.v == 0) {
        rig->hellos++;
        return;
    }
    ck_assert_ptr_nonnull(peer->session);
    if (!node_id_equal(session_peer(peer->session), packet.from)) {
        /* Another incarnation of the gateway: whoever is told of it by the map begins anew. */
        session_close(peer->session);
        peer->session = rig_session_with(peer->node, packet.from);
    }
    enum terrane_error error = session_receive(peer->session, rig->now, &packet, rig_keep, peer, &lost);
    ck_assert_int_eq(error, TERRANE_ERR_OK);
}

/* Carries out the outputs of a step: links come up at once. */
static inline void rig_carry(struct rig *rig)
{
    struct outbox taken = rig->out;
    rig->out = (struct outbox){0};
    for (size_t i = 0; i < taken.count; i++) {
        const struct output *item = &taken.items[i];
        const uint8_t *bytes = outbox_bytes(&taken, item);
        struct rig_peer *peer = rig_peer_of(rig, item->node);
        if (item->kind == OUTPUT_SEND) rig_take(rig, item, bytes);
        if (item->kind == OUTPUT_WATCH || item->kind == OUTPUT_UNWATCH) {
            bool on = item->kind == OUTPUT_WATCH;
            *(on ? &rig->watches : &rig->unwatches) += 1;
            snprintf(on ? rig->last_watch : rig->last_unwatch, 64, "%.*s", (int)item->size, (const char *)bytes);
        }
        if (item->kind == OUTPUT_UNLINK && peer != NULL) peer->unlinks++;
        if (item->kind == OUTPUT_LINK && peer != NULL) {
            peer->links++;
            peer->linked = true;
        }
    }
    outbox_close(&taken);
    for (int i = -1; i < RIG_SERVERS; i++) {
        struct rig_peer *peer = i < 0 ? &rig->coordinator : &rig->servers[i];
        if (!peer->linked) continue;
        peer->linked = false;
        struct node_id node = i < 0 ? NODE_COORDINATOR : peer->node;
        rig_step(rig, (struct event){.kind = EVENT_PEER_UP, .node = node});
    }
}

static inline void rig_step(struct rig *rig, struct event event)
{
    gateway_step(rig->g, &event, rig->now, &rig->out);
    rig_carry(rig);
}

/* What a fake has to say, acknowledgements included, reaches the gateway now. */
static inline void rig_pump(struct rig *rig, struct rig_peer *peer)
{
    while (peer->session != NULL && session_fill(peer->session, rig->now, &rig->packet)) {
        uint8_t *copy = malloc(rig->packet.size);
        size_t size = rig->packet.size;
        memcpy(copy, rig->packet.data, size);
        struct event event = {.kind = EVENT_MESSAGE, .lane = LANE_INBOX, .bytes = copy, .size = size};
        rig_step(rig, event);
        free(copy);
    }
}

static inline void rig_pump_all(struct rig *rig)
{
    rig_pump(rig, &rig->coordinator);
    for (int i = 0; i < RIG_SERVERS; i++) {
        if (!rig->servers[i].deaf) rig_pump(rig, &rig->servers[i]);
    }
}

/* Lets time pass: every deadline on the way is met. */
static inline void rig_run(struct rig *rig, uint64_t us)
{
    uint64_t end = rig->now + us;
    for (;;) {
        uint64_t due = gateway_deadline_us(rig->g);
        if (due > end) break;
        if (due > rig->now) rig->now = due;
        rig_step(rig, (struct event){.kind = EVENT_TIMEOUT});
        rig_pump_all(rig);
    }
    rig->now = end;
    rig_pump_all(rig);
}

/* The message in rig->w, on the sure lane of a fake; w is cleared for the next. */
static inline void rig_say(struct rig *rig, struct rig_peer *peer)
{
    ck_assert_int_eq(session_push(peer->session, rig->w.data, rig->w.size), TERRANE_ERR_OK);
    writer_clear(&rig->w);
    rig_pump(rig, peer);
}

static inline void rig_welcome(struct rig *rig)
{
    struct welcome welcome = {.node = rig->coordinator.node, .term = 1, .world = rig->world, .lease_us = 250000};
    welcome_encode(&rig->w, &welcome);
    ck_assert_int_eq(session_push_fast(rig->coordinator.session, rig->w.data, rig->w.size), TERRANE_ERR_OK);
    writer_clear(&rig->w);
    rig_pump(rig, &rig->coordinator);
}

static inline void rig_map(struct rig *rig, const struct leaf_owner *leaves, uint32_t count, uint32_t servers)
{
    struct map map = {.term = 1, .rev = ++rig->rev, .part = 0, .parts = 1};
    map_begin(&rig->w, &map);
    map_list(&rig->w, servers);
    for (uint32_t i = 0; i < servers; i++) {
        struct node_info info = {.role = ROLE_CELLSERVER, .node = SERVER(i), .feed_count = 1};
        snprintf(info.name, sizeof info.name, "s%u", i);
        snprintf(info.inbox_url, sizeof info.inbox_url, "tcp://127.0.0.1:%u", 9000 + i);
        snprintf(info.feed_urls[0], sizeof info.feed_urls[0], "tcp://127.0.0.1:%u", 9100 + i);
        map_add_node(&rig->w, &info);
    }
    map_list(&rig->w, count);
    for (uint32_t i = 0; i < count; i++) map_add_leaf(&rig->w, &leaves[i]);
    map_list(&rig->w, 0);
    map_list(&rig->w, 0);
    rig_say(rig, &rig->coordinator);
}

/* Leaf i (quadrant i) belongs to server i. */
static inline void rig_quadrants(struct leaf_owner leaves[4])
{
    for (uint32_t i = 0; i < 4; i++)
        leaves[i] =
            (struct leaf_owner){.leaf = quadkey_child(QUADKEY_ROOT, i), .epoch = 1, .since = 1, .primary = SERVER(i)};
}

/* Another primary takes the leaf over. */
static inline void rig_give(struct leaf_owner *leaf, struct node_id primary)
{
    leaf->primary = primary;
    leaf->epoch++;
    leaf->since = leaf->epoch;
}

/* The callbacks that a rig listens with; a test may take some away before it opens. */
static inline struct gateway_options rig_options(struct rig *rig)
{
    struct gateway_options options = {
        .info = {.role = ROLE_GATEWAY, .node = RIG_SELF, .name = "gateway", .inbox_url = "tcp://127.0.0.1:8000"},
        .coordinator_url = "tcp://127.0.0.1:7070",
        .wall_us = 1000000,
        .callbacks = {.ready = rig_on_ready,
                      .see = rig_on_see,
                      .unsee = rig_on_unsee,
                      .update = rig_on_update,
                      .event = rig_on_event,
                      .done = rig_on_done,
                      .found = rig_on_found,
                      .error = rig_on_error},
        .context = rig};
    strcpy(options.info.sub_url, "tcp://127.0.0.1:8001");
    return options;
}

static inline void rig_open_with(struct rig *rig, const struct gateway_options *options)
{
    rig->now = 1000;
    rig->world = world_default();
    rig->told = calloc(RIG_LOG, sizeof *rig->told);
    rig->coordinator.node = (struct node_id){40};
    for (int i = 0; i < RIG_SERVERS; i++) rig->servers[i].node = SERVER(i);
    for (int i = -1; i < RIG_SERVERS; i++) {
        struct rig_peer *peer = i < 0 ? &rig->coordinator : &rig->servers[i];
        peer->session = rig_session(peer->node);
        peer->messages = calloc(RIG_LOG, sizeof *peer->messages);
    }
    rig->g = gateway_open(options);
    rig_step(rig, (struct event){.kind = EVENT_START});
}

/* Opens and makes it ready with four quadrants on four servers. */
static inline void rig_open_ready(struct rig *rig)
{
    struct gateway_options options = rig_options(rig);
    struct leaf_owner leaves[4];
    rig_open_with(rig, &options);
    rig_welcome(rig);
    rig_quadrants(leaves);
    rig_map(rig, leaves, 4, 4);
    ck_assert(gateway_is_ready(rig->g));
    rig->told_count = 0;
}

static inline void rig_close(struct rig *rig)
{
    gateway_close(rig->g);
    outbox_close(&rig->out);
    for (int i = -1; i < RIG_SERVERS; i++) {
        struct rig_peer *peer = i < 0 ? &rig->coordinator : &rig->servers[i];
        session_close(peer->session);
        for (size_t j = 0; j < peer->count; j++) free(peer->messages[j].bytes);
        free(peer->messages);
    }
    free(rig->told);
    writer_close(&rig->w);
    writer_close(&rig->packet);
}

/* The newest message of that kind which the peer has, or NULL. */
static inline const struct rig_message *rig_last(const struct rig_peer *peer, enum message_kind kind)
{
    for (size_t i = peer->count; i-- > 0;) {
        if (peer->messages[i].kind == kind) return &peer->messages[i];
    }
    return NULL;
}
static inline size_t rig_messages(const struct rig_peer *peer, enum message_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < peer->count; i++) count += peer->messages[i].kind == kind;
    return count;
}
static inline struct cursor rig_cursor(const struct rig_message *message)
{
    ck_assert_ptr_nonnull(message);
    return cursor_of(message->bytes, message->size);
}
static inline size_t rig_told(const struct rig *rig, int kind)
{
    size_t count = 0;
    for (size_t i = 0; i < rig->told_count; i++) count += rig->told[i].kind == kind;
    return count;
}
static inline const struct told *rig_last_told(const struct rig *rig, int kind)
{
    for (size_t i = rig->told_count; i-- > 0;) {
        if (rig->told[i].kind == kind) return &rig->told[i];
    }
    return NULL;
}

/* What servers say. */
static inline void rig_result(struct rig *rig, int server, uint64_t request, uint64_t id, enum terrane_error error,
                              uint64_t version)
{
    struct result result = {.request = request, .id = {id}, .error = error, .version = version};
    result_encode(&rig->w, &result);
    rig_say(rig, &rig->servers[server]);
}
static inline void rig_views(struct rig *rig, int server, uint64_t observer, uint64_t version, enum view_part part,
                             const uint64_t *unsee, uint32_t unsee_count, const uint64_t *see, uint32_t see_count)
{
    struct views views = {.tick = 1, .count = 1};
    struct view_item item = {
        .observer = {observer}, .version = version, .part = part, .unsee_count = unsee_count, .see_count = see_count};
    views_begin(&rig->w, &views);
    views_add(&rig->w, &item);
    for (uint32_t i = 0; i < unsee_count; i++) entity_add(&rig->w, (struct entity_id){unsee[i]});
    entity_list(&rig->w, see_count);
    for (uint32_t i = 0; i < see_count; i++) entity_add(&rig->w, (struct entity_id){see[i]});
    rig_say(rig, &rig->servers[server]);
}
static inline void rig_owner_of(struct rig *rig, int server, uint32_t leaf, uint64_t id, uint64_t version)
{
    struct owner owner = {.id = {id}, .version = version, .leaf = quadkey_child(QUADKEY_ROOT, leaf)};
    owner_encode(&rig->w, &owner);
    rig_say(rig, &rig->servers[server]);
}
static inline void rig_owner(struct rig *rig, int server, uint64_t id, uint64_t version)
{
    rig_owner_of(rig, server, (uint32_t)server, id, version);
}
/* The answer to the last LOOKUP that the server has been sent; error OK: it owns the entity in quadrant `leaf`. */
static inline void rig_looked_up(struct rig *rig, int server, uint32_t leaf, enum terrane_error error, uint64_t version)
{
    struct lookup lookup;
    ck_assert_int_eq(lookup_decode(rig_cursor(rig_last(&rig->servers[server], MESSAGE_LOOKUP)), &lookup),
                     TERRANE_ERR_OK);
    struct lookup_result result = {.request = lookup.request,
                                   .id = lookup.id,
                                   .error = error,
                                   .version = version,
                                   .leaf = quadkey_child(QUADKEY_ROOT, leaf)};
    lookup_result_encode(&rig->w, &result);
    rig_say(rig, &rig->servers[server]);
}
/* A snapshot of quadrant `leaf` that holds entities at slots 0.. with these ids, all at (x, y) world units. */
static inline void rig_snapshot(struct rig *rig, int server, uint32_t leaf, uint32_t epoch, uint64_t seq,
                                const uint64_t *ids, uint32_t count, double x, double y, uint64_t version)
{
    struct snapshot snapshot = {.stream = STREAM_REGION,
                                .leaf = quadkey_child(QUADKEY_ROOT, leaf),
                                .epoch = epoch,
                                .seq = seq,
                                .tick = seq,
                                .part = 0,
                                .parts = 1,
                                .count = count};
    struct position position;
    ck_assert_int_eq(world_position(&rig->world, x, y, 0, &position), TERRANE_ERR_OK);
    snapshot_begin(&rig->w, &snapshot);
    for (uint32_t i = 0; i < count; i++) {
        struct entity_record record = {.id = {ids[i]}, .version = version, .position = position};
        snapshot_add(&rig->w, i, &record);
    }
    rig_say(rig, &rig->servers[server]);
}
/* A frame in which slot moves by (dx, dy) position units. */
static inline void rig_frame(struct rig *rig, uint32_t leaf, const struct frame_builder *builder, uint32_t epoch,
                             uint64_t seq)
{
    writer_clear(&rig->packet);
    topic_write(&rig->packet, STREAM_REGION, quadkey_child(QUADKEY_ROOT, leaf));
    frame_builder_write(builder, epoch, seq, seq, &rig->packet);
    struct event event = {
        .kind = EVENT_MESSAGE, .lane = LANE_FEED, .bytes = rig->packet.data, .size = rig->packet.size};
    rig_step(rig, event);
}

/* Enters an entity at (x, y) and has the server of that place answer; returns its version. */
static inline uint64_t rig_enter(struct rig *rig, uint64_t id, double x, double y, double radius, int server)
{
    struct terrane_entity entity = {.id = id, .x = x, .y = y, .radius = radius};
    uint64_t request;
    struct enter enter;
    ck_assert_int_eq(gateway_enter(rig->g, &entity, &request), TERRANE_ERR_OK);
    rig_run(rig, 3000);
    ck_assert_int_eq(enter_decode(rig_cursor(rig_last(&rig->servers[server], MESSAGE_ENTER)), &enter), TERRANE_ERR_OK);
    ck_assert_uint_eq(enter.request, request);
    rig_result(rig, server, request, id, TERRANE_ERR_OK, enter.record.version);
    rig_views(rig, server, id, enter.record.version, VIEW_WHOLE_LAST, NULL, 0, NULL, 0);
    return enter.record.version;
}

#endif
