#include "tests/fuzz/stage.h"

#include "common/check.h"
#include "proto/store.h"

#include <string.h>

void stage_open(struct stage *s, struct input *in, uint64_t self)
{
    static const uint64_t nodes[STAGE_REMOTES] = {FORGE_COORDINATOR, FORGE_PEER, FORGE_PEER + 1, FORGE_GATEWAY};
    *s = (struct stage){.self = {self}, .now_us = 1000000, .forge = {.in = in, .world = forge_world()}};
    for (uint32_t i = 0; i < STAGE_REMOTES; i++) {
        struct session_options options = {.self = {nodes[i] == self ? FORGE_SELF : nodes[i]}, .peer = {self}};
        s->remotes[i] = (struct remote){options.self, session_open(&options)};
    }
}

void stage_close(struct stage *s)
{
    for (uint32_t i = 0; i < STAGE_REMOTES; i++) session_close(s->remotes[i].session);
    outbox_close(&s->out);
    writer_close(&s->message);
    writer_close(&s->bytes);
    writer_close(&s->scratch.out);
    forge_close(&s->forge);
}

bool stage_ended(const struct stage *s)
{
    return input_ended(s->forge.in) || s->steps >= STAGE_STEPS;
}

static void note_offer(struct stage *s, struct cursor message)
{
    struct offer m;
    struct transfer item;
    struct forge_offers *o = &s->forge.offers;
    CHECK(offer_decode(message, &m) == TERRANE_ERR_OK);
    *o = (struct forge_offers){.to = m.to, .to_epoch = m.to_epoch};
    while (o->count < 16 && offer_next(&m, &item))
        o->items[o->count++] = (struct accept_item){.id = item.record.id, .offered = item.record.version};
}

/* A message that the core has sent. */
static void delivered(void *context, struct cursor message, bool sure)
{
    struct stage *s = context;
    enum message_kind kind = MESSAGE_FAULT;
    (void)sure;
    writer_clear(&s->scratch.out);
    CHECK(message_fields(message, &s->scratch) == TERRANE_ERR_OK);
    CHECK(message_kind_of(message, &kind) == TERRANE_ERR_OK);
    if (kind == MESSAGE_OFFER) note_offer(s, message);
}

static void take_packet(struct stage *s, const uint8_t *bytes, size_t size)
{
    struct packet packet;
    uint64_t lost;
    CHECK(packet_decode(bytes, size, &packet) == TERRANE_ERR_OK);
    CHECK(node_id_equal(packet.from, s->self));
    for (uint32_t i = 0; i < STAGE_REMOTES; i++) {
        struct remote *r = &s->remotes[i];
        if (!node_id_equal(packet.to, r->node)) continue;
        enum terrane_error error = session_receive(r->session, s->now_us, &packet, delivered, s, &lost);
        CHECK(error == TERRANE_ERR_OK || error == TERRANE_ERR_PEER_MISMATCH);
    }
}

static void take_published(struct stage *s, const uint8_t *bytes, size_t size)
{
    writer_clear(&s->scratch.out);
    if (size > 4 && memcmp(bytes, "map/", 4) == 0)
        CHECK(message_fields(cursor_of(bytes + 4, size - 4), &s->scratch) == TERRANE_ERR_OK);
    else
        CHECK(frame_fields(bytes, size, &s->scratch) == TERRANE_ERR_OK);
}

static void take_output(struct stage *s, const struct output *o)
{
    const uint8_t *bytes = outbox_bytes(&s->out, o);
    struct store_map stored;
    switch (o->kind) {
    case OUTPUT_SEND: take_packet(s, bytes, o->size); break;
    case OUTPUT_PUBLISH: take_published(s, bytes, o->size); break;
    case OUTPUT_REPLY:
        writer_clear(&s->scratch.out);
        CHECK(message_fields(cursor_of(bytes, o->size), &s->scratch) == TERRANE_ERR_OK);
        break;
    case OUTPUT_STORE:
        s->store_token = o->token;
        if (o->operation == STORE_SAVE) CHECK(store_map_decode(bytes, o->size, &stored) == TERRANE_ERR_OK);
        break;
    case OUTPUT_LINK: s->link = o->node; break;
    case OUTPUT_FEED_LINK:
        s->feed_node = o->node;
        s->feed = o->feed;
        break;
    case OUTPUT_WATCH:
    case OUTPUT_UNWATCH:
    case OUTPUT_UNLINK:
    case OUTPUT_FEED_UNLINK:
    case OUTPUT_LOG: break;
    }
}

void stage_take(struct stage *s)
{
    for (size_t i = 0; i < s->out.count; i++) take_output(s, &s->out.items[i]);
    outbox_clear(&s->out);
}

void stage_event(struct stage *s, struct event event)
{
    if (s->steps++ >= STAGE_STEPS) return;
    s->step(s->core, &event, s->now_us, &s->out);
    (void)s->deadline(s->core);
    stage_take(s);
}

void stage_tick(struct stage *s, uint64_t after_us)
{
    s->now_us += after_us;
    stage_event(s, (struct event){.kind = EVENT_TICK});
}

void stage_bytes(struct stage *s, enum lane lane)
{
    struct event event = {.kind = EVENT_MESSAGE, .lane = lane, .bytes = s->bytes.data, .size = s->bytes.size};
    if (lane == LANE_QUERY) event.token = ++s->token;
    stage_event(s, event);
}

void stage_flush(struct stage *s, uint32_t remote)
{
    struct writer packet = {0};
    while (session_fill(s->remotes[remote].session, s->now_us, &packet)) {
        struct event event = {.kind = EVENT_MESSAGE, .lane = LANE_INBOX, .bytes = packet.data, .size = packet.size};
        stage_event(s, event);
    }
    writer_close(&packet);
}

void stage_say(struct stage *s, uint32_t remote, bool sure)
{
    struct session *session = s->remotes[remote].session;
    enum terrane_error error = sure ? session_push(session, s->message.data, s->message.size)
                                    : session_push_fast(session, s->message.data, s->message.size);
    CHECK(error == TERRANE_ERR_OK || error == TERRANE_ERR_QUEUE_FULL || error == TERRANE_ERR_MESSAGE_TOO_LARGE);
    stage_flush(s, remote);
}

/* Alters a few bytes; what is no message any more must not get into a session, which would repeat it for ever. */
static bool spoil(struct stage *s)
{
    struct input *in = s->forge.in;
    for (uint32_t hits = 1 + input_choice(in, 3); hits > 0; hits--)
        s->message.data[(input_byte(in) * 256u + input_byte(in)) % s->message.size] = input_byte(in);
    struct cursor head = cursor_of(s->message.data, s->message.size), all = head;
    cursor_skip(&all);
    return cursor_array(&head, 1, UINT32_MAX) > 0 && cursor_end(&all) == TERRANE_ERR_OK;
}

static void operate_message(struct stage *s, uint32_t operation)
{
    struct input *in = s->forge.in;
    uint32_t who = input_byte(in), remote = who % STAGE_REMOTES;
    bool sure = who < 192;
    writer_clear(&s->message);
    if (operation == 3)
        forge_answer(&s->forge, &s->message);
    else if (operation == 4)
        forge_map(&s->forge, &s->message);
    else
        forge_message(&s->forge, &s->message);
    if (operation == 2 && !spoil(s)) return;
    stage_say(s, operation == 4 ? 0 : remote, sure);
}

static void operate_raw(struct stage *s)
{
    struct input *in = s->forge.in;
    enum lane lane = (enum lane)input_choice(in, 3);
    size_t size;
    const uint8_t *bytes = input_bytes(in, input_byte(in), &size);
    writer_clear(&s->bytes);
    writer_raw(&s->bytes, bytes, size);
    stage_bytes(s, lane);
}

static void operate_event(struct stage *s)
{
    struct input *in = s->forge.in;
    uint8_t how = input_byte(in);
    struct node_id node = how & 8 ? s->remotes[how >> 4 & 3].node : s->link;
    if (how & 128) node = NODE_COORDINATOR;
    struct event feed = {.node = s->feed_node, .feed = s->feed};
    if (how & 64) feed.feed = how & 7;
    switch (how & 7) {
    case 0:
    case 1: stage_event(s, (struct event){.kind = EVENT_PEER_UP, .node = node}); break;
    case 2: stage_event(s, (struct event){.kind = EVENT_PEER_DOWN, .node = node}); break;
    case 3:
    case 4:
        feed.kind = EVENT_FEED_UP;
        stage_event(s, feed);
        break;
    case 5:
        feed.kind = EVENT_FEED_DOWN;
        stage_event(s, feed);
        break;
    case 6: session_link_up(s->remotes[how >> 4 & 3].session, s->now_us); break;
    default: {
        uint64_t due_us = s->deadline(s->core);
        if (due_us > s->now_us && due_us - s->now_us < 60000000) s->now_us = due_us;
        stage_event(s, (struct event){.kind = EVENT_TIMEOUT});
    }
    }
}

static void operate_stored(struct stage *s)
{
    struct input *in = s->forge.in;
    struct event event = {.kind = EVENT_STORED, .token = s->store_token};
    uint8_t how = input_byte(in);
    if (how & 1) event.error = how & 2 ? TERRANE_ERR_STORE_CONFLICT : TERRANE_ERR_STORE_UNAVAILABLE;
    if (how & 4) event.bytes = input_bytes(in, input_byte(in), &event.size);
    if (how & 8) {
        writer_clear(&s->bytes);
        forge_stored(&s->forge, &s->bytes);
        event.bytes = s->bytes.data;
        event.size = s->bytes.size;
    }
    if (how == 255) event.token = input_byte(in);
    stage_event(s, event);
}

void stage_operate(struct stage *s)
{
    struct input *in = s->forge.in;
    uint32_t operation = input_choice(in, 16);
    switch (operation) {
    case 0:
    case 1: stage_tick(s, (1 + (uint64_t)input_byte(in)) * (operation == 0 ? 1000 : 40000)); break;
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
    case 7:
    case 8: operate_message(s, operation); break;
    case 9:
    case 10:
        writer_clear(&s->bytes);
        forge_frame(&s->forge, &s->bytes);
        if (operation == 10 && s->bytes.size > 0) s->bytes.data[input_byte(in) % s->bytes.size] = input_byte(in);
        stage_bytes(s, LANE_FEED);
        break;
    case 11: operate_raw(s); break;
    case 12:
        writer_clear(&s->bytes);
        forge_message(&s->forge, &s->bytes);
        stage_bytes(s, LANE_QUERY);
        break;
    case 13:
    case 14: operate_event(s); break;
    default: operate_stored(s);
    }
}
