#include "gateway/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct gateway *gateway_open(const struct gateway_options *options)
{
    CHECK(options->coordinator_url != NULL);
    CHECK(options->info.role == ROLE_GATEWAY && options->info.node.v > NODE_COORDINATOR.v);
    struct gateway *g = calloc(1, sizeof *g);
    CHECK(g != NULL);
    g->info = options->info;
    CHECK(urls_parse(options->coordinator_url, &g->coordinators));
    g->wall_us = options->wall_us;
    g->timeout_us = options->request_timeout_us == 0 ? 10000000 : options->request_timeout_us;
    g->no_updates = options->no_updates;
    g->no_reenter = options->no_reenter;
    g->callbacks = options->callbacks;
    g->context = options->context;
    g->peer_free = g->own_free = g->request_free = g->inquiry_free = g->pair_free = g->subject_free = SLOT_NONE;
    g->request_first = g->request_last = SLOT_NONE;
    g->flush_us = g->seek_us = g->watch_ask_us = UINT64_MAX;
    gateway_views_open(g);
    return g;
}

void gateway_close(struct gateway *g)
{
    if (g == NULL) return;
    gateway_peers_close(g);
    session_close(g->coordinator.session);
    gateway_requests_close(g);
    gateway_inquiries_close(g);
    gateway_views_close(g);
    gateway_notify_close(g);
    for (uint32_t i = 0; i < g->own_count; i++) free(g->own[i].blob);
    free(g->own);
    free(g->dirty);
    free(g->unsettled);
    free(g->watches);
    free(g->owners);
    table_close(&g->own_index);
    table_close(&g->seek_index);
    table_close(&g->watch_index);
    ownership_close(&g->map);
    writer_close(&g->message);
    writer_close(&g->packet);
    free(g);
}

void gateway_want_flush(struct gateway *g, uint64_t delay_us)
{
    uint64_t due = g->now_us + delay_us;
    if (due < g->flush_us) g->flush_us = due;
}

void gateway_to_entity(const struct gateway *g, const struct entity_record *record, struct terrane_entity *out)
{
    /* As world_coordinates, with the unit computed once: this runs for every update. */
    *out = (struct terrane_entity){.id = record->id.v,
                                   .x = g->world.origin_x + (record->position.x + 0.5) * g->unit,
                                   .y = g->world.origin_y + (record->position.y + 0.5) * g->unit,
                                   .z = record->position.z * g->unit,
                                   .yaw = record->yaw * (2 * M_PI / 256),
                                   .radius = record->radius * g->unit,
                                   .kind = record->kind,
                                   .flags = record->flags,
                                   .layer = record->layer,
                                   .state = record->state,
                                   .state_size = record->state_size};
}

static void receive_frame(struct gateway *g, const uint8_t *bytes, size_t size)
{
    if (g->no_updates) {
        g->counters.dropped++;
        return;
    }
    /* Faults are counted by the replicas; a frame has no sender to answer. */
    enum terrane_error error = replicas_frame(g->replicas, g->now_us, bytes, size);
    if (error == TERRANE_ERR_OK) g->counters.frame_bytes += size;
}

static void dispatch(struct gateway *g, const struct event *in)
{
    bool coordinator = node_id_equal(in->node, NODE_COORDINATOR) || node_id_equal(in->node, g->coordinator.node);
    switch (in->kind) {
    case EVENT_START:
        g->started = true;
        g->start_us = g->now_us;
        g->sweep_us = g->now_us + SWEEP_US;
        gateway_membership_start(g);
        break;
    case EVENT_MESSAGE:
        if (in->lane == LANE_INBOX)
            gateway_peers_packet(g, in->bytes, in->size);
        else if (in->lane == LANE_FEED)
            receive_frame(g, in->bytes, in->size);
        else
            g->counters.dropped++;
        break;
    case EVENT_PEER_UP:
        if (coordinator)
            gateway_membership_up(g);
        else
            gateway_peers_up(g, in->node);
        break;
    case EVENT_PEER_DOWN:
        if (coordinator)
            gateway_membership_down(g);
        else
            gateway_peers_down(g, in->node);
        break;
    case EVENT_TICK:
    case EVENT_TIMEOUT:
    case EVENT_STORED:
    case EVENT_FEED_UP:
    case EVENT_FEED_DOWN: break;
    }
}

static void flush(struct gateway *g)
{
    g->flush_us = UINT64_MAX;
    gateway_requests_send(g);
    gateway_peers_moves(g);
    gateway_peers_pump(g);
    gateway_membership_pump(g);
}

static void work(struct gateway *g)
{
    gateway_membership_timers(g);
    gateway_peers_timers(g);
    gateway_requests_expire(g);
    if (g->request_waiting > 0 && g->now_us >= g->retry_us) gateway_requests_retry(g);
    if (replicas_deadline_us(g->replicas) <= g->now_us) replicas_tick(g->replicas, g->now_us);
    if (g->now_us >= g->sweep_us) {
        g->sweep_us = g->now_us + SWEEP_US;
        gateway_watch_sweep(g);
    }
    gateway_seeks_work(g);
    gateway_watch_settle(g);
    gateway_watch_retry(g);
    if (g->closing && g->own_live == 0 && g->request_open == 0) gateway_membership_bye(g);
    if (g->flush_us <= g->now_us) {
        flush(g);
    } else if (gateway_peers_deadline_us(g) <= g->now_us || gateway_membership_deadline_us(g) <= g->now_us) {
        gateway_peers_pump(g);
        gateway_membership_pump(g);
    }
}

void gateway_step(struct gateway *g, const struct event *in, uint64_t now_us, struct outbox *out)
{
    CHECK(!g->stepping);
    g->stepping = true;
    if (now_us > g->now_us) g->now_us = now_us;
    g->out = out;
    dispatch(g, in);
    if (g->started) work(g);
    g->out = NULL;
    gateway_notify_deliver(g);
    g->stepping = false;
}

void gateway_flush(struct gateway *g, uint64_t now_us, struct outbox *out)
{
    struct outbox *outer = g->out;
    if (now_us > g->now_us) g->now_us = now_us;
    g->out = out;
    if (g->started) flush(g);
    g->out = outer;
}

uint64_t gateway_deadline_us(const struct gateway *g)
{
    if (!g->started) return UINT64_MAX;
    uint64_t due = g->sweep_us;
    if (g->flush_us < due) due = g->flush_us;
    if (g->watch_ask_us < due) due = g->watch_ask_us;
    if (g->seeks > 0 && g->seek_us < due) due = g->seek_us;
    const uint64_t others[] = {gateway_membership_deadline_us(g), gateway_peers_deadline_us(g),
                               gateway_requests_deadline_us(g), replicas_deadline_us(g->replicas)};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (others[i] < due) due = others[i];
    }
    return g->notes.head < g->notes.count || g->unsettled_count > 0 ? g->now_us : due;
}

void gateway_shutdown(struct gateway *g)
{
    if (g->closing) return;
    for (uint32_t i = 0; i < g->own_count; i++) {
        /* A leave that is under way already, or one more request than fits, needs no other. */
        if (g->own[i].state != OWN_ENTERING && g->own[i].state != OWN_LIVE) continue;
        enum terrane_error error = gateway_leave(g, g->own[i].id.v, NULL);
        if (error != TERRANE_ERR_OK) gateway_own_end(g, i, SLOT_NONE, TERRANE_ERR_CLOSED);
    }
    g->closing = true;
    gateway_want_flush(g, 0);
}

bool gateway_closed(const struct gateway *g)
{
    if (!g->closing || g->own_live > 0 || g->request_open > 0) return false;
    if (g->coordinator.session == NULL) return true;
    return g->coordinator.bye && session_queued_messages(g->coordinator.session) == 0;
}

bool gateway_is_ready(const struct gateway *g)
{
    return g->has_world && g->map.now.leaf_count > 0;
}

const struct world *gateway_world(const struct gateway *g)
{
    return g->has_world ? &g->world : NULL;
}

bool gateway_calm(const struct gateway *g)
{
    if (!gateway_is_ready(g) || g->request_open > 0 || g->notes.head < g->notes.count || g->dirty_count > 0 ||
        g->unsettled_count > 0 || g->pairs_waiting > 0 || g->seeks > 0 || g->views_missing > 0)
        return false;
    for (uint32_t i = 0; i < g->peer_count; i++) {
        const struct peer *peer = &g->peers[i];
        if (peer->node.v != 0 && session_queued_messages(peer->session) > 0) return false;
    }
    return replicas_waiting(g->replicas) == 0;
}

void gateway_stats(const struct gateway *g, struct terrane_stats *out)
{
    const struct replicas_counters *streams = replicas_counters(g->replicas);
    *out = (struct terrane_stats){.own = g->own_live,
                                  .seen_pairs = g->pairs_told,
                                  .moves_sent = g->counters.moves_sent,
                                  .frames = streams->frames,
                                  .frame_bytes = g->counters.frame_bytes,
                                  .frame_moves = g->counters.frame_moves,
                                  .gaps = streams->gaps,
                                  .gaps_repaired = streams->gaps_repaired,
                                  .gaps_open = streams->gaps - streams->gaps_repaired,
                                  .handoffs = g->counters.handoffs,
                                  .moves_repeated = g->counters.moves_repeated,
                                  .sure_repeated = g->counters.sure_repeated,
                                  .malformed = g->counters.malformed + streams->malformed,
                                  .stale = g->counters.stale + streams->stale,
                                  .dropped = g->counters.dropped + streams->backlog_dropped,
                                  .leaves_watched = replicas_watched(g->replicas)};
    for (uint32_t i = 0; i < g->peer_count; i++) {
        if (g->peers[i].node.v == 0) continue;
        out->servers += g->peers[i].up;
        out->sure_repeated += session_counters(g->peers[i].session)->sure_repeated;
    }
}
