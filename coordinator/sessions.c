#include "coordinator/internal.h"

#include <inttypes.h>

struct delivery {
    struct coordinator *c;
    uint32_t member;
};

static void push_fast(struct coordinator *c, uint32_t index)
{
    struct member *m = &c->members[index];
    enum terrane_error error = session_push_fast(m->session, c->message.data, c->message.size);
    if (error != TERRANE_ERR_OK) refuse(c, error, "answer to a member that does not read", m->info.node);
    member_touch(c, index);
}

void send_welcome(struct coordinator *c, uint32_t index)
{
    writer_clear(&c->message);
    struct welcome m = {.node = c->options.info.node, .term = c->term, .world = c->options.world};
    m.lease_us = c->options.lease_us;
    welcome_encode(&c->message, &m);
    push_fast(c, index);
}

static void take_loads(struct coordinator *c, const struct member *m, struct heartbeat *heartbeat)
{
    struct leaf_load load;
    while (heartbeat_next(heartbeat, &load)) {
        uint32_t leaf = coordinator_leaf_find(c, load.leaf);
        if (leaf == NONE) continue;
        if (heartbeat->term <= c->term) lead_claimed(c, &c->leaves[leaf], &load, m->info.node);
        if (!node_id_equal(c->leaves[leaf].owner.primary, m->info.node)) continue;
        const struct leaf_owner *owner = &c->leaves[leaf].owner;
        if (load.epoch < owner->since || load.epoch > owner->epoch) continue;
        c->leaves[leaf].load = load.owned;
        c->leaves[leaf].told_epoch = load.epoch;
        c->leaves[leaf].served_us = c->now_us;
        if (c->leaves[leaf].moving_us == 0 || c->leaves[leaf].saving) continue;
        c->leaves[leaf].moving_us = 0; /* it has come */
        c->members_changed = true;
    }
}

static void take_stands(struct coordinator *c, const struct member *m, struct heartbeat *heartbeat)
{
    struct leaf_stand stand;
    while (heartbeat_next_stand(heartbeat, &stand)) {
        uint32_t at = coordinator_leaf_find(c, stand.leaf);
        if (at == NONE) continue;
        struct leaf *leaf = &c->leaves[at];
        bool formerly = node_id_equal(leaf->former, m->info.node) && stand.epoch == leaf->former_epoch;
        if (formerly && leaf->former_us == 0 && c->awaits_level) c->members_changed = true;
        if (formerly) leaf->former_us = c->now_us;
        if (heartbeat->term <= c->term) lead_stands(c, leaf, &stand, m->info.node);
        bool its = node_id_equal(leaf->owner.standby, m->info.node) && stand.epoch == leaf->owner.epoch;
        if (!its) continue;
        bool news = !leaf_level(c, leaf);
        leaf->stood_epoch = stand.epoch;
        leaf->stood_us = c->now_us;
        leaf->former = NODE_NONE;
        if (news && c->awaits_level) c->members_changed = true;
    }
}

/* An echo is a lease. Who has lost a leaf and does not know it yet could go on serving it with one. */
static bool lease_due(const struct coordinator *c, const struct member *m)
{
    if (m->losing || m->withheld_us != 0 || !lead_is_fresh(c)) return false;
    return m->lost_rev == 0 ? m->term == 0 || m->term == c->term : m->term == c->term && m->rev >= m->lost_rev;
}

static void take_heartbeat(struct coordinator *c, uint32_t index, struct heartbeat *heartbeat)
{
    struct member *m = &c->members[index];
    m->term = heartbeat->term;
    m->rev = heartbeat->rev;
    m->tick = heartbeat->tick;
    m->ticks_late = heartbeat->ticks_late;
    m->ghosts = heartbeat->ghosts;
    if (member_is_server(m) && heartbeat->count + heartbeat->stand_count > 0) {
        take_loads(c, m, heartbeat);
        take_stands(c, m, heartbeat);
        m->lists_us = c->now_us;
    }
    if (heartbeat->term > c->term) refuse(c, TERRANE_ERR_EPOCH_STALE, "heartbeat of a newer term", m->info.node);
    /* What is on its way makes it level; only who has acknowledged everything and is behind has missed something. */
    bool behind = heartbeat->term < c->term || (heartbeat->term == c->term && heartbeat->rev < c->rev);
    if (behind && session_queued_messages(m->session) == 0) member_needs_map(c, index, true);

    struct heartbeat answer = {.term = c->term, .rev = c->rev, .stamp = c->now_us};
    if (lease_due(c, m)) answer.echo = heartbeat->stamp;
    writer_clear(&c->message);
    heartbeat_begin(&c->message, &answer);
    heartbeat_stands(&c->message, 0);
    push_fast(c, index);
}

static enum terrane_error take_message(struct coordinator *c, uint32_t index, struct cursor message)
{
    enum message_kind kind;
    struct heartbeat heartbeat;
    struct map_request request;
    enum terrane_error error = message_kind_of(message, &kind);
    if (error != TERRANE_ERR_OK) return error;
    if (kind == MESSAGE_HELLO) {
        member_hello(c, c->members[index].info.node, message);
    } else if (kind == MESSAGE_HEARTBEAT) {
        error = heartbeat_decode(message, &heartbeat);
        if (error == TERRANE_ERR_OK) take_heartbeat(c, index, &heartbeat);
    } else if (kind == MESSAGE_MAP_REQUEST) {
        error = map_request_decode(message, &request);
        if (error == TERRANE_ERR_OK) member_needs_map(c, index, true);
    } else if (kind == MESSAGE_BYE) {
        error = bye_decode(message);
        if (error == TERRANE_ERR_OK) member_bye(c, index);
    } else {
        error = TERRANE_ERR_MESSAGE_UNKNOWN;
    }
    return error;
}

static void deliver(void *context, struct cursor message, bool sure)
{
    struct delivery *delivery = context;
    struct coordinator *c = delivery->c;
    (void)sure;
    if (c->members[delivery->member].state != MEMBER_ACTIVE) return; /* said BYE: the rest is only acknowledged */
    enum terrane_error error = take_message(c, delivery->member, message);
    if (error != TERRANE_ERR_OK) refuse(c, error, "message of a member", c->members[delivery->member].info.node);
}

/* Only HELLO comes from those who don't know us yet. */
static void take_unaddressed(struct coordinator *c, struct packet *packet)
{
    struct cursor message;
    enum message_kind kind;
    enum terrane_error error = packet->sure_count > 0 ? TERRANE_ERR_PEER_MISMATCH : TERRANE_ERR_OK;
    if (error == TERRANE_ERR_OK && !packet_next(&packet->fast, &message)) error = TERRANE_ERR_MESSAGE_RANGE;
    if (error == TERRANE_ERR_OK) error = message_kind_of(message, &kind);
    if (error == TERRANE_ERR_OK && kind != MESSAGE_HELLO) error = TERRANE_ERR_SESSION_UNKNOWN;
    if (error == TERRANE_ERR_OK)
        member_hello(c, packet->from, message);
    else
        refuse(c, error, "unaddressed packet", packet->from);
}

void packet_arrived(struct coordinator *c, const uint8_t *bytes, size_t size)
{
    struct packet packet;
    enum terrane_error error = packet_decode(bytes, size, &packet);
    if (error != TERRANE_ERR_OK) {
        refuse(c, error, "packet", NODE_NONE);
        return;
    }
    if (!c->ready) {
        refuse(c, TERRANE_ERR_NOT_READY, "packet", packet.from);
        return;
    }
    if (packet.to.v == 0) {
        take_unaddressed(c, &packet);
        return;
    }
    uint32_t index = member_find(c, packet.from);
    if (!node_id_equal(packet.to, c->options.info.node) || index == NONE || c->members[index].session == NULL) {
        bool ours = node_id_equal(packet.to, c->options.info.node);
        refuse(c, ours ? TERRANE_ERR_SESSION_UNKNOWN : TERRANE_ERR_PEER_MISMATCH, "packet", packet.from);
        return;
    }
    struct member *m = &c->members[index];
    member_heard(c, index);
    if (!member_prove(c, index)) return;
    uint64_t fast_lost;
    struct delivery delivery = {c, index};
    error = session_receive(m->session, c->now_us, &packet, deliver, &delivery, &fast_lost);
    if (error != TERRANE_ERR_OK) refuse(c, error, "packet", packet.from);
    member_touch(c, index);
}

void sessions_flush(struct coordinator *c)
{
    for (uint32_t i = 0; i < c->touched_count; i++) {
        struct member *m = &c->members[c->touched[i]];
        m->touched = false;
        if (m->session == NULL) continue;
        while (session_fill(m->session, c->now_us, &c->packet)) {
            outbox_push(c->out, (struct output){.kind = OUTPUT_SEND, .node = m->info.node}, c->packet.data,
                        c->packet.size);
        }
        uint64_t due_us = session_deadline_us(m->session);
        if (due_us < c->due_us) c->due_us = due_us;
    }
    c->touched_count = 0;
}
