/* The core's surface: step, tick, the link to the coordinator, what checkers may see. */
#include "cellserver/internal.h"

#include <stdlib.h>
#include <string.h>

struct cellserver *cellserver_open(const struct cellserver_options *options)
{
    struct cellserver *cs = calloc(1, sizeof *cs);
    CHECK(cs != NULL);
    CHECK(options->info.feed_count <= NODE_FEEDS);
    cs->options = *options;
    if (cs->options.capacity == 0) cs->options.capacity = 100;
    if (cs->options.entities == 0) cs->options.entities = 16384;
    if (cs->options.beat_ticks == 0) cs->options.beat_ticks = 10;
    if (cs->options.tick_hz == 0) cs->options.tick_hz = 20;
    CHECK(urls_parse(options->coordinator_url, &cs->coordinators));
    cs->entity_free = cs->entering = NONE;
    cs->lease_us = LEASE_US;
    cs->coordinator.session = session_open(&(struct session_options){.self = options->info.node});
    return cs;
}

void cellserver_close(struct cellserver *cs)
{
    if (cs == NULL) return;
    peers_close(cs);
    standby_close(cs);
    leaves_close(cs);
    entities_close(cs);
    handoff_close(cs);
    takeover_close(cs);
    forward_close(cs);
    queries_close(cs);
    registry_close(cs);
    survey_close(&cs->survey);
    history_close(&cs->history);
    quota_close(cs);
    ownership_close(&cs->map);
    session_close(cs->coordinator.session);
    aoi_destroy(cs->aoi);
    if (cs->ghosts != NULL) replicas_close(cs->ghosts);
    free(cs->watched);
    free(cs->changes);
    free(cs->absent);
    free(cs->early);
    replica_close_all(cs);
    writer_close(&cs->message);
    writer_close(&cs->packet);
    writer_close(&cs->frame);
    writer_close(&cs->scratch);
    writer_close(&cs->single);
    free(cs);
}

static void world_open(struct cellserver *cs, const struct world *world)
{
    cs->world = *world;
    cs->strip = world_strip(world);
    int32_t side = INT32_C(1) << world->resolution_bits;
    struct aoi_options options = {.index = cs->options.aoi_index,
                                  .mode = world->view_mode == VIEW_BLOCK ? AOI_BLOCK : AOI_RADIUS,
                                  .cell_size = (int32_t)world_cell_side(world),
                                  .max_x = side,
                                  .max_y = side,
                                  .radius_max = (int32_t)world->radius_max,
                                  .hysteresis = (int32_t)world->hysteresis,
                                  .z_range = world->z_range,
                                  .capacity = cs->options.entities,
                                  .direct = true};
    CHECK(aoi_create(&options, &cs->aoi) == TERRANE_ERR_OK);
    ghosts_open(cs);
    table_reserve(&cs->entity_index, cs->options.entities);
    ARRAY_RESERVE(cs->entities, cs->entity_room, cs->options.entities);
    ARRAY_RESERVE(cs->moved, cs->moved_room, cs->options.entities);
    ARRAY_RESERVE(cs->touched, cs->touched_room, cs->options.entities);
    ARRAY_RESERVE(cs->handles, cs->query_room, 4096);
    ARRAY_RESERVE(cs->ids, cs->id_room, 4096);
    survey_open(&cs->survey);
    history_open(&cs->history, cs->now_us);
    cs->has_world = true;
}

static void coordinator_welcome(struct cellserver *cs, struct node_id from, const struct welcome *m)
{
    struct coordinator_link *link = &cs->coordinator;
    if (!node_id_equal(m->node, from) || m->term < link->term || world_check(&m->world) != TERRANE_ERR_OK) {
        cs->stats.malformed++;
        return;
    }
    cs->lease_us = m->lease_us;
    if (!cs->has_world) {
        world_open(cs, &m->world);
    } else if (!world_equal(&m->world, &cs->world)) {
        outbox_log(cs->out, LOG_ERROR,
                   "event=world_mismatch hint=\"the coordinator's world differs from the one this "
                   "server runs; restart the server or the coordinator with one configuration\"");
        return;
    }
    link->term = m->term;
    link->heard_us = cs->now_us;
    if (link->known && node_id_equal(link->node, from)) return;
    session_close(link->session);
    link->session = session_open(&(struct session_options){.self = cs->options.info.node, .peer = from});
    link->node = from;
    link->known = true;
    outbox_log(cs->out, LOG_INFO, "event=welcomed coordinator=%016llx term=%llu", (unsigned long long)from.v,
               (unsigned long long)m->term);
}

static void map_received(struct cellserver *cs, struct cursor message)
{
    struct map m;
    if (map_decode(message, &m) != TERRANE_ERR_OK) {
        cs->stats.malformed++;
        return;
    }
    switch (ownership_apply(&cs->map, &m)) {
    case OWNERSHIP_SAME: break;
    case OWNERSHIP_CHANGED:
        peers_sync(cs);
        leaves_sync(cs);
        standby_sync(cs);
        handoff_sync(cs);
        handoff_retry_straying(cs);
        registry_sync(cs);
        events_retell(cs);
        break;
    case OWNERSHIP_ASK:
        writer_clear(&cs->message);
        map_request_encode(&cs->message, &(struct map_request){.rev = cs->map.rev});
        if (session_push(cs->coordinator.session, cs->message.data, cs->message.size) != TERRANE_ERR_OK) {
            cs->stats.dropped++;
        }
        break;
    }
}

static void heartbeat_received(struct cellserver *cs, struct cursor message)
{
    struct heartbeat m;
    if (heartbeat_decode(message, &m) != TERRANE_ERR_OK) {
        cs->stats.malformed++;
        return;
    }
    cs->coordinator.heard_us = cs->now_us;
    if (m.echo > cs->coordinator.echoed_us && m.echo <= cs->now_us) cs->coordinator.echoed_us = m.echo;
}

static void coordinator_deliver(void *context, struct cursor message, bool sure)
{
    struct cellserver *cs = context;
    enum message_kind kind;
    (void)sure;
    if (message_kind_of(message, &kind) != TERRANE_ERR_OK) {
        cs->stats.malformed++;
    } else if (kind == MESSAGE_MAP) {
        map_received(cs, message);
    } else if (kind == MESSAGE_BYE) {
        closing_dismiss(cs);
    } else if (kind == MESSAGE_HEARTBEAT) {
        heartbeat_received(cs, message);
    } else if (kind == MESSAGE_WELCOME) {
        cs->coordinator.heard_us = cs->now_us; /* it has been looked at before */
    } else {
        cs->stats.malformed++;
    }
}

/* Whether we ask for a coordinator, with HELLO. */
static bool coordinator_is_sought(const struct cellserver *cs)
{
    return !cs->coordinator.known || cs->now_us - cs->coordinator.heard_us > COORDINATOR_SILENT_US;
}

/* The answer to HELLO is looked for before the session: a WELCOME names its sender and may be what makes the session,
 * and a BYE may come from one that we never had a WELCOME of. */
static void coordinator_look_for_answer(struct cellserver *cs, const struct packet *packet)
{
    bool other = !cs->coordinator.known || !node_id_equal(packet->from, cs->coordinator.node);
    struct cursor list = packet->fast, message;
    while (packet_next(&list, &message)) {
        enum message_kind kind;
        struct welcome m;
        if (message_kind_of(message, &kind) != TERRANE_ERR_OK) continue;
        if (kind == MESSAGE_WELCOME && welcome_decode(message, &m) == TERRANE_ERR_OK)
            coordinator_welcome(cs, packet->from, &m);
        else if (kind == MESSAGE_BYE && other && coordinator_is_sought(cs))
            closing_dismiss(cs);
    }
}

static void inbox_received(struct cellserver *cs, const uint8_t *bytes, size_t size)
{
    struct packet packet;
    if (packet_decode(bytes, size, &packet) != TERRANE_ERR_OK) {
        cs->stats.malformed++;
        return;
    }
    if (packet.to.v != 0 && !node_id_equal(packet.to, cs->options.info.node)) {
        cs->stats.stale++;
        return;
    }
    if (peer_find(cs, packet.from) != NONE) {
        peer_receive(cs, bytes, size);
        return;
    }
    coordinator_look_for_answer(cs, &packet);
    if (!cs->coordinator.known || !node_id_equal(packet.from, cs->coordinator.node)) {
        cs->stats.stale++;
        return;
    }
    uint64_t lost = 0;
    if (session_receive(cs->coordinator.session, cs->now_us, &packet, coordinator_deliver, cs, &lost) !=
        TERRANE_ERR_OK) {
        cs->stats.stale++;
    }
}

/* To whoever is the coordinator now: outside any session, so that it needs no answer to be repeated. */
static void coordinator_hello(struct cellserver *cs)
{
    struct packet head = {.from = cs->options.info.node, .fast_total = 1};
    writer_clear(&cs->packet);
    packet_begin(&cs->packet, &head, 0);
    packet_fast(&cs->packet, 1);
    hello_encode(
        &cs->packet,
        &(struct hello){.info = cs->options.info, .capacity = cs->options.capacity, .term = cs->coordinator.term});
    outbox_push(cs->out, (struct output){.kind = OUTPUT_SEND, .node = NODE_COORDINATOR}, cs->packet.data,
                cs->packet.size);
    cs->coordinator.hello_us = cs->now_us;
}

/* Says that we live, and asks for the echo that keeps our lease; with `report`, what we own and stand by for. */
static void coordinator_heartbeat(struct cellserver *cs, bool report)
{
    struct coordinator_link *link = &cs->coordinator;
    struct heartbeat m = {.term = cs->map.term,
                          .rev = cs->map.rev,
                          .tick = cs->tick,
                          .ticks_late = cs->stats.ticks_late,
                          .ghosts = cs->stats.ghosts,
                          .stamp = cs->now_us,
                          .count = report ? cs->stats.leaves : 0};
    writer_clear(&cs->message);
    heartbeat_begin(&cs->message, &m);
    for (uint32_t i = 0; report && i < cs->leaf_count; i++) {
        const struct own_leaf *leaf = &cs->leaves[i];
        if (!leaf->used) continue;
        heartbeat_add(
            &cs->message,
            &(struct leaf_load){.leaf = leaf->key, .epoch = leaf->epoch, .since = leaf->since, .owned = leaf->count});
    }
    if (report) {
        replica_stands(cs, &cs->message);
        link->report_us = cs->now_us;
        cs->report_due = false;
    } else {
        heartbeat_stands(&cs->message, 0);
    }
    link->heartbeat_us = cs->now_us;
    if (session_push_fast(link->session, cs->message.data, cs->message.size) != TERRANE_ERR_OK) cs->stats.dropped++;
}

void coordinator_flush(struct cellserver *cs)
{
    while (cs->coordinator.known && session_fill(cs->coordinator.session, cs->now_us, &cs->packet)) {
        outbox_push(cs->out, (struct output){.kind = OUTPUT_SEND, .node = NODE_COORDINATOR}, cs->packet.data,
                    cs->packet.size);
    }
}

static void coordinator_dial(struct cellserver *cs)
{
    const char *url = urls_now(&cs->coordinators);
    outbox_push(cs->out, (struct output){.kind = OUTPUT_LINK, .node = NODE_COORDINATOR}, url, strlen(url) + 1);
}

/* At each tick, and between two that are too far apart to keep a lease. */
static void coordinator_tick(struct cellserver *cs)
{
    struct coordinator_link *link = &cs->coordinator;
    bool silent = coordinator_is_sought(cs);
    if (silent && urls_turn(&cs->coordinators, cs->now_us)) {
        outbox_push(cs->out, (struct output){.kind = OUTPUT_UNLINK, .node = NODE_COORDINATOR}, NULL, 0);
        link->up = false;
        coordinator_dial(cs);
    }
    if (silent && cs->now_us - link->hello_us >= HELLO_EVERY_US) coordinator_hello(cs);
    if (!link->known) return;
    coordinator_heartbeat(cs, cs->report_due || cs->now_us - link->report_us >= REPORT_EVERY_US);
    coordinator_flush(cs);
}

static void tell_moves_lost(struct cellserver *cs)
{
    for (uint32_t at = 0; at < cs->peer_count; at++) {
        struct peer *peer = &cs->peers[at];
        if (!peer->used || peer->moves_lost == 0) continue;
        writer_clear(&cs->message);
        moves_lost_encode(&cs->message, &(struct moves_lost){.packets = peer->moves_lost});
        if (peer_send(cs, at, &cs->message, false)) peer->moves_lost = 0;
    }
}

static void tick(struct cellserver *cs, const struct event *in)
{
    cs->tick++;
    if (in->late_us > cellserver_tick_us(cs) / 4) cs->stats.ticks_late++;
    if (cs->has_world) {
        replicas_tick(cs->ghosts, cs->now_us);
        entities_apply_moves(cs);
        if (cs->straying_count > 0 && cs->now_us >= cs->stray_us) {
            cs->stray_us = cs->now_us + BORDER_RETRY_US;
            handoff_retry_straying(cs);
        }
        lease_tick(cs);
        handoff_send_offers(cs);
        leaves_publish(cs);
        cs->published++;
        entities_settle_shown(cs);
        forward_run_deferred(cs);
        views_publish(cs);
        tell_moves_lost(cs);
        asks_reset(cs);
        forward_expire(cs);
        events_expire(cs);
        absent_expire(cs);
        registry_tick(cs);
        peers_expire(cs);
        standby_publish(cs);
        standby_flush(cs);
        replica_ack_tick(cs);
        replica_flush(cs);
        peers_flush(cs, true);
    }
    coordinator_tick(cs);
}

static void message(struct cellserver *cs, const struct event *in)
{
    switch (in->lane) {
    case LANE_INBOX: inbox_received(cs, in->bytes, in->size); break;
    case LANE_FEED:
        if (!cs->has_world || replicas_frame(cs->ghosts, cs->now_us, in->bytes, in->size) != TERRANE_ERR_OK) {
            cs->stats.stale++;
        }
        break;
    case LANE_QUERY: query_lane(cs, in->token, cursor_of(in->bytes, in->size)); break;
    }
}

static void peer_up(struct cellserver *cs, struct node_id node)
{
    if (node_id_equal(node, NODE_COORDINATOR)) {
        cs->coordinator.up = true;
        session_link_up(cs->coordinator.session, cs->now_us);
        if (coordinator_is_sought(cs)) coordinator_hello(cs);
        return;
    }
    uint32_t at = peer_find(cs, node);
    if (at == NONE) return;
    session_link_up(cs->peers[at].session, cs->now_us);
    cs->peers[at].urgent = true;
}

static void feed_up(struct cellserver *cs, const struct event *in, bool up)
{
    uint32_t at = peer_find(cs, in->node);
    if (at == NONE || in->feed > ghost_feed(cs) || cs->peers[at].feed_refs[in->feed] == 0) return;
    cs->peers[at].feed_up[in->feed] = up;
    if (up) leaves_feed_up(cs, at, in->feed);
}

void cellserver_step(struct cellserver *cs, const struct event *in, uint64_t now_us, struct outbox *out)
{
    cs->now_us = now_us;
    cs->out = out;
    switch (in->kind) {
    case EVENT_START:
        coordinator_dial(cs);
        cs->coordinators.turn_us = now_us + URLS_TURN_US;
        coordinator_hello(cs);
        break;
    case EVENT_MESSAGE: message(cs, in); break;
    case EVENT_TICK: tick(cs, in); break;
    case EVENT_PEER_UP: peer_up(cs, in->node); break;
    case EVENT_FEED_UP: feed_up(cs, in, true); break;
    case EVENT_FEED_DOWN: feed_up(cs, in, false); break;
    case EVENT_PEER_DOWN:
        if (node_id_equal(in->node, NODE_COORDINATOR)) cs->coordinator.up = false;
        break;
    case EVENT_TIMEOUT:
        if (cs->now_us >= cellserver_deadline_us(cs)) coordinator_tick(cs);
        break;
    case EVENT_STORED: break;
    }
    if (cs->has_world) {
        promote_check(cs);
        registry_flush(cs);
        if (cs->offers_due) handoff_send_offers(cs);
        standby_flush(cs);
        if (cs->offers_due) handoff_send_offers(cs);
        replica_flush(cs);
        peers_flush(cs, false);
    }
    cs->out = NULL;
}

uint64_t cellserver_deadline_us(const struct cellserver *cs)
{
    /* Everything else that waits is looked at in the next tick. */
    bool beats = cs->coordinator.known && cellserver_tick_us(cs) > cs->lease_us / 4;
    return beats ? cs->coordinator.heartbeat_us + cs->lease_us / 4 : UINT64_MAX;
}

uint64_t cellserver_tick_us(const struct cellserver *cs)
{
    return UINT64_C(1000000) / (cs->has_world ? cs->world.tick_hz : cs->options.tick_hz);
}

bool cellserver_ready(const struct cellserver *cs)
{
    return cs->has_world && cs->stats.leaves > 0;
}

void cellserver_stats(const struct cellserver *cs, struct cellserver_stats *out)
{
    *out = cs->stats;
    out->tick = cs->tick;
    for (uint32_t i = 0; i < cs->peer_count; i++) out->sessions += cs->peers[i].used;
    out->memory_bytes = cs->entity_room * sizeof *cs->entities + table_memory_bytes(&cs->entity_index);
    if (!cs->has_world) return;
    const struct replicas_counters *ghosts = replicas_counters(cs->ghosts);
    out->gaps = ghosts->gaps;
    out->gaps_repaired = ghosts->gaps_repaired;
    out->gaps_open = replicas_waiting(cs->ghosts);
    out->memory_bytes += aoi_memory_bytes(cs->aoi);
}

void cellserver_census(const struct cellserver *cs, void (*each)(void *context, const struct cellserver_entity *entity),
                       void *context)
{
    for (uint32_t i = 0; i < cs->entity_count; i++) {
        const struct entity *e = &cs->entities[i];
        if (e->status != ENTITY_OWNED) continue;
        struct cellserver_entity entity = {
            .gateway = e->gateway, .leaf = cs->leaves[e->leaf].key, .leaving = e->leaving};
        entity.fenced = !leaf_serves(cs, e->leaf);
        entity_record_of(e, &entity.record);
        each(context, &entity);
    }
}

#define CALM_BYTES 1024u

/* Answers to beats are always on their way between a primary and its standby; they are not worth waiting for. */
static bool is_quiet(const struct peer *peer)
{
    if (peer->moves_lost > 0 || peer->resync) return false;
    if (peer->info.role != ROLE_CELLSERVER) return session_idle(peer->session);
    return session_queued_bytes(peer->session) <= CALM_BYTES;
}

bool cellserver_calm(const struct cellserver *cs)
{
    if (!cs->has_world || cs->stats.leaving > 0 || cs->stats.pending > 0 || cs->stats.standby_waiting > 0) return false;
    if (cs->moved_count > 0 || cs->touched_count > 0 || cs->registry.claim_count > 0) return false;
    if (cs->stats.fenced > 0 || cs->straying_count > 0 || replicas_waiting(cs->ghosts) > 0) return false;
    if (replicas_orphaned(cs->ghosts)) return false;
    if (replica_is_ending(cs)) return false;
    for (uint32_t i = 0; i < cs->peer_count; i++) {
        if (cs->peers[i].used && !is_quiet(&cs->peers[i])) return false;
    }
    return true;
}
