/* The coordinator as a gateway knows it. Packets to it always travel under the alias NODE_COORDINATOR, so that a new
 * incarnation at the same url needs no new link; who is meant stands in the packet. */
#include "gateway/internal.h"

#include <string.h>

static void link_coordinator(struct gateway *g)
{
    struct output link = {.kind = OUTPUT_LINK, .node = NODE_COORDINATOR};
    const char *url = urls_now(&g->coordinators);
    outbox_push(g->out, link, url, strlen(url) + 1);
    g->coordinator.linked_us = g->now_us;
}

void gateway_membership_start(struct gateway *g)
{
    link_coordinator(g);
    g->coordinator.hello_us = g->now_us;
    g->coordinators.turn_us = g->now_us + URLS_TURN_US;
}

static void say_hello(struct gateway *g)
{
    struct membership *m = &g->coordinator;
    struct hello hello = {.info = g->info, .capacity = 1, .term = m->term};
    struct packet head = {.from = g->info.node, .to = NODE_NONE, .fast_total = ++m->hellos};
    writer_clear(&g->packet);
    packet_begin(&g->packet, &head, 0);
    packet_fast(&g->packet, 1);
    hello_encode(&g->packet, &hello);
    struct output send = {.kind = OUTPUT_SEND, .node = NODE_COORDINATOR};
    outbox_push(g->out, send, g->packet.data, g->packet.size);
    m->hello_us = g->now_us + HELLO_US;
}

/* The next coordinator has its turn, if there are several. And after a partition the link may look whole for tens of
 * seconds: it is dialled anew. */
static void relink_if_silent(struct gateway *g)
{
    struct membership *m = &g->coordinator;
    bool stale =
        m->node.v != 0 && g->now_us >= m->linked_us + PEER_SILENCE_US && g->now_us >= m->heard_us + PEER_SILENCE_US;
    if (!urls_turn(&g->coordinators, g->now_us) && !stale) return;
    struct output unlink = {.kind = OUTPUT_UNLINK, .node = NODE_COORDINATOR};
    outbox_push(g->out, unlink, NULL, 0);
    link_coordinator(g);
}

static void seek(struct gateway *g)
{
    struct membership *m = &g->coordinator;
    if (!m->member) return;
    m->member = false;
    m->hello_us = g->now_us;
    outbox_log(g->out, LOG_WARNING, "event=coordinator_silent node=%llu", (unsigned long long)m->node.v);
}

static void beat(struct gateway *g)
{
    struct membership *m = &g->coordinator;
    struct heartbeat heartbeat = {.term = g->map.term, .rev = g->map.rev};
    writer_clear(&g->message);
    heartbeat_begin(&g->message, &heartbeat);
    heartbeat_stands(&g->message, 0);
    /* The lane is full only if nothing leaves, and then the next one is as good. */
    enum terrane_error error = session_push_fast(m->session, g->message.data, g->message.size);
    if (error != TERRANE_ERR_OK) g->counters.dropped++;
    m->beat_us = g->now_us + HEARTBEAT_US;
    gateway_want_flush(g, FLUSH_US);
}

void gateway_membership_timers(struct gateway *g)
{
    struct membership *m = &g->coordinator;
    if (m->bye) return;
    if (m->member && g->now_us >= m->heard_us + COORDINATOR_SILENCE_US) seek(g);
    if (m->member && g->now_us >= m->beat_us) beat(g);
    if (!m->member && g->now_us >= m->hello_us) {
        relink_if_silent(g);
        say_hello(g);
    }
}

void gateway_membership_up(struct gateway *g)
{
    if (g->coordinator.session != NULL) session_link_up(g->coordinator.session, g->now_us);
    if (!g->coordinator.member) g->coordinator.hello_us = g->now_us;
    gateway_want_flush(g, 0);
}

void gateway_membership_down(struct gateway *g)
{
    seek(g);
}

static bool same_world(const struct world *a, const struct world *b)
{
    return a->origin_x == b->origin_x && a->origin_y == b->origin_y && a->cell_size == b->cell_size &&
           a->depth == b->depth && a->resolution_bits == b->resolution_bits && a->view_mode == b->view_mode &&
           a->edge == b->edge && a->radius_max == b->radius_max && a->hysteresis == b->hysteresis &&
           a->z_range == b->z_range && a->handoff_hysteresis == b->handoff_hysteresis && a->tick_hz == b->tick_hz;
}

static bool welcomed(struct gateway *g, const struct welcome *welcome)
{
    struct membership *m = &g->coordinator;
    if (world_check(&welcome->world) != TERRANE_ERR_OK) {
        g->counters.malformed++;
        return false;
    }
    if (welcome->term < m->term) {
        g->counters.stale++;
        return false;
    }
    if (g->has_world && !same_world(&g->world, &welcome->world)) {
        struct note note = {.kind = NOTE_ERROR, .error = TERRANE_ERR_WORLD_MISMATCH};
        gateway_notify(g, &note, NULL, 0);
        return false;
    }
    bool another = !node_id_equal(m->node, welcome->node);
    if (another) {
        session_close(m->session);
        struct session_options options = {.self = g->info.node, .peer = welcome->node};
        m->session = session_open(&options);
        m->node = welcome->node;
        m->ask_us = 0;
        outbox_log(g->out, LOG_INFO, "event=welcome coordinator=%llu term=%llu", (unsigned long long)m->node.v,
                   (unsigned long long)welcome->term);
    }
    m->term = welcome->term;
    m->member = true;
    m->heard_us = g->now_us;
    m->beat_us = g->now_us;
    g->world = welcome->world;
    g->has_world = true;
    g->unit = world_unit(&g->world);
    if (another && g->ready_told) {
        struct note note = {.kind = NOTE_READY};
        gateway_notify(g, &note, NULL, 0);
    }
    return true;
}

void gateway_membership_renew(struct gateway *g)
{
    struct membership *m = &g->coordinator;
    session_close(m->session);
    m->session = NULL;
    m->node = NODE_NONE;
    m->member = false;
    m->hello_us = g->now_us;
    m->ask_us = 0;
}

void gateway_membership_ask_map(struct gateway *g)
{
    struct membership *m = &g->coordinator;
    if (m->session == NULL || g->now_us < m->ask_us) return;
    struct map_request request = {.rev = g->map.rev};
    writer_clear(&g->message);
    map_request_encode(&g->message, &request);
    enum terrane_error error = session_push(m->session, g->message.data, g->message.size);
    if (error != TERRANE_ERR_OK) g->counters.dropped++;
    m->ask_us = g->now_us + 4 * RETRY_US;
    gateway_want_flush(g, FLUSH_US);
}

static void deliver(void *context, struct cursor message, bool sure)
{
    (void)sure;
    struct gateway *g = context;
    enum message_kind kind;
    enum terrane_error error = message_kind_of(message, &kind);
    if (error == TERRANE_ERR_OK && kind == MESSAGE_MAP) {
        struct map map;
        error = map_decode(message, &map);
        if (error == TERRANE_ERR_OK) gateway_map_apply(g, &map);
    } else if (error == TERRANE_ERR_OK && kind == MESSAGE_HEARTBEAT) {
        struct heartbeat beat_back;
        error = heartbeat_decode(message, &beat_back);
        /* The map is on the sure lane, so being behind for longer than it takes means that it was lost with a former
         * incarnation of the session. */
        bool behind = error == TERRANE_ERR_OK &&
                      (beat_back.term > g->map.term || (beat_back.term == g->map.term && beat_back.rev > g->map.rev));
        if (behind && g->coordinator.ask_us == 0)
            g->coordinator.ask_us = g->now_us + 4 * RETRY_US;
        else if (behind)
            gateway_membership_ask_map(g);
    } else if (error == TERRANE_ERR_OK && kind == MESSAGE_WELCOME) {
        struct welcome welcome;
        error = welcome_decode(message, &welcome);
        /* Another node's WELCOME can't come in this node's packet. */
        if (error == TERRANE_ERR_OK && node_id_equal(welcome.node, g->coordinator.node)) (void)welcomed(g, &welcome);
    } else if (error == TERRANE_ERR_OK) {
        error = TERRANE_ERR_MESSAGE_UNKNOWN;
    }
    if (error != TERRANE_ERR_OK) g->counters.malformed++;
}

/* Looks for the WELCOME with which a coordinator of another incarnation, or the first, names itself. */
static bool find_welcome(struct gateway *g, const struct packet *packet)
{
    struct cursor list = packet->fast, message;
    while (packet_next(&list, &message)) {
        enum message_kind kind;
        struct welcome welcome;
        if (message_kind_of(message, &kind) != TERRANE_ERR_OK || kind != MESSAGE_WELCOME) continue;
        if (welcome_decode(message, &welcome) != TERRANE_ERR_OK || !node_id_equal(welcome.node, packet->from)) {
            g->counters.malformed++;
            return false;
        }
        return welcomed(g, &welcome);
    }
    return false;
}

/* A coordinator that has given this node up answers what it says with BYE, outside any session. */
static bool given_up(const struct gateway *g, const struct packet *packet)
{
    struct cursor list = packet->fast, message;
    if (!node_id_equal(packet->to, g->info.node) || gateway_peer_find(g, packet->from) != SLOT_NONE) return false;
    while (packet_next(&list, &message)) {
        enum message_kind kind;
        if (message_kind_of(message, &kind) != TERRANE_ERR_OK || kind != MESSAGE_BYE) continue;
        if (bye_decode(message) == TERRANE_ERR_OK) return true;
    }
    return false;
}

bool gateway_membership_packet(struct gateway *g, const struct packet *packet)
{
    struct membership *m = &g->coordinator;
    if (given_up(g, packet)) {
        if (!m->bye) gateway_reborn(g);
        return true;
    }
    bool known = m->session != NULL && node_id_equal(packet->from, m->node);
    if (!known || node_id_equal(packet->to, NODE_NONE)) {
        if (m->bye || !find_welcome(g, packet)) return known;
    }
    m->heard_us = g->now_us;
    if (!node_id_equal(packet->to, g->info.node)) {
        if (!node_id_equal(packet->to, NODE_NONE)) g->counters.dropped++;
        return true;
    }
    uint64_t lost;
    if (session_receive(m->session, g->now_us, packet, deliver, g, &lost) != TERRANE_ERR_OK) g->counters.dropped++;
    if (packet->sure_count > 0) gateway_want_flush(g, ACK_US);
    return true;
}

void gateway_membership_pump(struct gateway *g)
{
    struct membership *m = &g->coordinator;
    if (m->session == NULL) return;
    while (session_fill(m->session, g->now_us, &g->packet)) {
        struct output send = {.kind = OUTPUT_SEND, .node = NODE_COORDINATOR};
        outbox_push(g->out, send, g->packet.data, g->packet.size);
    }
}

void gateway_membership_bye(struct gateway *g)
{
    struct membership *m = &g->coordinator;
    if (m->bye) return;
    m->bye = true;
    if (m->session == NULL) return;
    writer_clear(&g->message);
    bye_encode(&g->message);
    enum terrane_error error = session_push(m->session, g->message.data, g->message.size);
    if (error != TERRANE_ERR_OK) g->counters.dropped++;
    gateway_want_flush(g, 0);
}

uint64_t gateway_membership_deadline_us(const struct gateway *g)
{
    const struct membership *m = &g->coordinator;
    uint64_t due = m->session == NULL ? UINT64_MAX : session_deadline_us(m->session);
    if (m->bye) return due;
    uint64_t next = m->hello_us;
    if (m->member) {
        uint64_t silent_us = m->heard_us + COORDINATOR_SILENCE_US;
        next = m->beat_us < silent_us ? m->beat_us : silent_us;
    }
    return next < due ? next : due;
}
