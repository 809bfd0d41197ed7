/* The sure lane over a channel that loses, doubles, reorders, holds packets of an old connection back for seconds, and
 * over peers that stall: by seed, on a simulated clock. */
#include "proto/session.h"

#include "common/limits.h"
#include "tests/unit/suite.h"

#include <string.h>

#define KIND       99u
#define FLIGHT_MAX 4096u
#define MS         1000u
/* libcheck writes to a file at each assertion that holds; the frequent ones speak only when they don't. */
#define HOLDS(condition) ((condition) ? (void)0 : ck_abort_msg("%s:%d: %s", __FILE__, __LINE__, #condition))

static uint64_t draw(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15ULL;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static bool chance(uint64_t *state, uint32_t percent)
{
    return draw(state) % 100 < percent;
}

/* One packet on its way. */
struct flight {
    uint64_t due_us, order;
    uint8_t *bytes;
    size_t size;
};

struct side {
    struct session *session;
    struct node_id id;
    uint64_t sure_pushed, fast_pushed;   /* numbers given out so far */
    uint64_t sure_taken, fast_taken;     /* last numbers delivered here */
    uint64_t fast_packets_out;           /* packets with fast messages that session_fill made */
    uint64_t fast_packets_in, fast_lost; /* taken, and reported as missing */
    uint64_t stalled_until_us;
    bool echo; /* push an answer for each sure message, from inside deliver */
    bool fast_seen;
    struct flight flights[FLIGHT_MAX]; /* towards this side */
    uint32_t flight_count;
};

struct channel {
    struct side sides[2];
    uint64_t now_us, order, seed;
    uint32_t loss, doubling, late; /* percent */
    uint32_t delay_ms;
    struct writer packet, message;
};

static void message_write(struct writer *w, uint64_t number, size_t padding)
{
    static const uint8_t zeros[LIMIT_MESSAGE_BYTES];
    writer_clear(w);
    writer_array(w, 3);
    writer_uint(w, KIND);
    writer_uint(w, number);
    writer_bin(w, zeros, padding);
}

static enum terrane_error side_push(struct channel *c, struct side *s, bool sure, size_t padding)
{
    uint64_t *pushed = sure ? &s->sure_pushed : &s->fast_pushed;
    message_write(&c->message, *pushed + 1, padding);
    enum terrane_error error = sure ? session_push(s->session, c->message.data, c->message.size)
                                    : session_push_fast(s->session, c->message.data, c->message.size);
    if (error == TERRANE_ERR_OK) ++*pushed;
    return error;
}

static struct channel *delivering;

static void side_deliver(void *context, struct cursor message, bool sure)
{
    struct side *s = context;
    HOLDS(cursor_array(&message, 3, 3) == 3);
    HOLDS(cursor_uint(&message, UINT64_MAX) == KIND);
    uint64_t number = cursor_uint(&message, UINT64_MAX);
    cursor_skip(&message);
    HOLDS(cursor_end(&message) == TERRANE_ERR_OK);
    if (sure) {
        HOLDS(number == s->sure_taken + 1);
        s->sure_taken = number;
        if (s->echo) HOLDS(side_push(delivering, s, true, 3) == TERRANE_ERR_OK);
    } else {
        HOLDS(number > s->fast_taken);
        s->fast_taken = number;
        s->fast_seen = true;
    }
}

static void side_receive(struct channel *c, struct side *s, const uint8_t *bytes, size_t size)
{
    struct packet packet;
    uint64_t lost;
    HOLDS(packet_decode(bytes, size, &packet) == TERRANE_ERR_OK);
    s->fast_seen = false;
    delivering = c;
    HOLDS(session_receive(s->session, c->now_us, &packet, side_deliver, s, &lost) == TERRANE_ERR_OK);
    s->fast_lost += lost;
    if (s->fast_seen) s->fast_packets_in++;
}

static void channel_open(struct channel *c, uint64_t seed, const struct session_options *like)
{
    *c = (struct channel){.seed = seed, .delay_ms = 2};
    for (uint32_t i = 0; i < 2; i++) {
        struct session_options options = like != NULL ? *like : (struct session_options){0};
        options.self.v = 100 + i;
        options.peer.v = 101 - i;
        c->sides[i].id = options.self;
        c->sides[i].session = session_open(&options);
    }
}

static void channel_close(struct channel *c)
{
    for (uint32_t i = 0; i < 2; i++) {
        session_close(c->sides[i].session);
        for (uint32_t j = 0; j < c->sides[i].flight_count; j++) free(c->sides[i].flights[j].bytes);
    }
    writer_close(&c->packet);
    writer_close(&c->message);
}

static void channel_carry(struct channel *c, struct side *to, uint64_t delay_us)
{
    HOLDS(to->flight_count < FLIGHT_MAX);
    uint8_t *bytes = malloc(c->packet.size);
    HOLDS(bytes != NULL);
    memcpy(bytes, c->packet.data, c->packet.size);
    to->flights[to->flight_count++] = (struct flight){c->now_us + delay_us, c->order++, bytes, c->packet.size};
}

static void channel_send(struct channel *c, uint32_t from)
{
    struct side *s = &c->sides[from], *to = &c->sides[1 - from];
    if (s->stalled_until_us > c->now_us) return;
    while (session_fill(s->session, c->now_us, &c->packet)) {
        struct packet packet;
        HOLDS(c->packet.size <= LIMIT_PACKET_TARGET);
        HOLDS(packet_decode(c->packet.data, c->packet.size, &packet) == TERRANE_ERR_OK);
        if (packet.fast_count > 0) s->fast_packets_out++;
        if (chance(&c->seed, c->loss)) continue;
        uint32_t copies = chance(&c->seed, c->doubling) ? 2 : 1;
        for (uint32_t i = 0; i < copies; i++) {
            /* An old connection's packet comes after seconds of newer ones. */
            bool late = chance(&c->seed, c->late);
            uint64_t delay = (draw(&c->seed) % (c->delay_ms * MS) + MS) + (late ? 2000 * MS : 0);
            channel_carry(c, to, delay);
        }
    }
}

static void channel_arrive(struct channel *c, struct side *s)
{
    if (s->stalled_until_us > c->now_us) return;
    for (;;) {
        uint32_t best = UINT32_MAX;
        for (uint32_t i = 0; i < s->flight_count; i++) {
            const struct flight *f = &s->flights[i];
            if (f->due_us > c->now_us) continue;
            bool sooner = best == UINT32_MAX || f->due_us < s->flights[best].due_us ||
                          (f->due_us == s->flights[best].due_us && f->order < s->flights[best].order);
            if (sooner) best = i;
        }
        if (best == UINT32_MAX) return;
        struct flight taken = s->flights[best];
        s->flights[best] = s->flights[--s->flight_count];
        side_receive(c, s, taken.bytes, taken.size);
        free(taken.bytes);
    }
}

static void channel_turn(struct channel *c, uint64_t span_us)
{
    c->now_us += span_us;
    for (uint32_t i = 0; i < 2; i++) channel_arrive(c, &c->sides[i]);
    for (uint32_t i = 0; i < 2; i++) channel_send(c, i);
}

static bool channel_quiet(const struct channel *c)
{
    bool idle = session_idle(c->sides[0].session) && session_idle(c->sides[1].session);
    return idle && c->sides[0].flight_count == 0 && c->sides[1].flight_count == 0;
}

static void channel_drain(struct channel *c)
{
    c->loss = c->doubling = c->late = 0;
    uint64_t deadline = c->now_us + 120 * 1000 * MS;
    while (!channel_quiet(c)) {
        HOLDS(c->now_us < deadline);
        channel_turn(c, 5 * MS);
    }
}

static void channel_story(uint64_t seed)
{
    static struct channel c;
    channel_open(&c, seed, NULL);
    c.loss = (uint32_t)(draw(&c.seed) % 30);
    c.doubling = (uint32_t)(draw(&c.seed) % 30);
    c.late = (uint32_t)(draw(&c.seed) % 10);
    c.delay_ms = 1 + (uint32_t)(draw(&c.seed) % 40);
    c.sides[1].echo = chance(&c.seed, 50);
    for (uint32_t turn = 0; turn < 400; turn++) {
        for (uint32_t i = 0; i < 2; i++) {
            struct side *s = &c.sides[i];
            for (uint64_t n = draw(&c.seed) % 4; n > 0; n--) {
                size_t padding = chance(&c.seed, 3) ? LIMIT_MESSAGE_BYTES - 32 : draw(&c.seed) % 200;
                bool sure = chance(&c.seed, 60);
                enum terrane_error error = side_push(&c, s, sure, padding);
                /* A stalled side's fast queue may fill. */
                HOLDS(error == TERRANE_ERR_OK || (error == TERRANE_ERR_QUEUE_FULL && !sure));
            }
            if (chance(&c.seed, 1)) s->stalled_until_us = c.now_us + draw(&c.seed) % (2000 * MS);
            if (chance(&c.seed, 2)) session_link_up(s->session, c.now_us);
        }
        channel_turn(&c, draw(&c.seed) % (20 * MS));
    }
    channel_drain(&c);
    /* A last fast packet tells what was lost at the end. */
    for (uint32_t i = 0; i < 2; i++) ck_assert_int_eq(side_push(&c, &c.sides[i], false, 1), TERRANE_ERR_OK);
    channel_drain(&c);
    for (uint32_t i = 0; i < 2; i++) {
        const struct side *from = &c.sides[i], *to = &c.sides[1 - i];
        const struct session_counters *counters = session_counters(to->session);
        ck_assert_uint_eq(to->sure_taken, from->sure_pushed);
        ck_assert_uint_eq(counters->sure_received, from->sure_pushed);
        ck_assert_uint_eq(to->fast_taken, from->fast_pushed);
        ck_assert_uint_eq(to->fast_packets_in + to->fast_lost, from->fast_packets_out);
        ck_assert_uint_eq(counters->fast_lost, to->fast_lost);
        ck_assert_uint_gt(from->sure_pushed, 100);
    }
    channel_close(&c);
}

START_TEST(every_seed_delivers_sure_once_in_order_and_counts_each_lost_fast_packet)
{
    for (uint64_t seed = 1; seed <= 60; seed++) channel_story(seed);
}
END_TEST

START_TEST(a_full_queue_refuses_counts_and_recovers_when_the_peer_answers)
{
    static struct channel c;
    struct session_options small = {.queue_bytes = 10000, .queue_messages = 50};
    channel_open(&c, 7, &small);
    struct side *a = &c.sides[0];
    uint32_t taken = 0;
    enum terrane_error error = TERRANE_ERR_OK;
    while ((error = side_push(&c, a, true, 10)) == TERRANE_ERR_OK) taken++;
    ck_assert_int_eq(error, TERRANE_ERR_QUEUE_FULL);
    ck_assert_uint_eq(taken, 50);
    channel_drain(&c);
    ck_assert_uint_eq(c.sides[1].sure_taken, 50);
    ck_assert_uint_eq(session_queued_messages(a->session), 0);

    taken = 0;
    while ((error = side_push(&c, a, true, 1000)) == TERRANE_ERR_OK) taken++;
    ck_assert_int_eq(error, TERRANE_ERR_QUEUE_FULL);
    ck_assert_uint_eq(taken, 9);
    ck_assert_uint_le(session_queued_bytes(a->session), 10000);
    ck_assert_uint_eq(session_counters(a->session)->refused_full, 2);
    channel_drain(&c);
    ck_assert_uint_eq(c.sides[1].sure_taken, 59);
    ck_assert_int_eq(side_push(&c, a, true, 1000), TERRANE_ERR_OK);

    while ((error = side_push(&c, a, false, 1000)) == TERRANE_ERR_OK) taken++;
    ck_assert_int_eq(error, TERRANE_ERR_QUEUE_FULL);
    ck_assert_uint_lt(taken, 300);
    channel_drain(&c);
    ck_assert_uint_eq(c.sides[1].fast_taken, a->fast_pushed);
    channel_close(&c);
}
END_TEST

START_TEST(a_message_above_the_limit_is_refused_and_nothing_is_queued)
{
    static struct channel c;
    channel_open(&c, 1, NULL);
    ck_assert_int_eq(side_push(&c, &c.sides[0], true, LIMIT_MESSAGE_BYTES), TERRANE_ERR_MESSAGE_TOO_LARGE);
    ck_assert_int_eq(side_push(&c, &c.sides[0], false, LIMIT_MESSAGE_BYTES), TERRANE_ERR_MESSAGE_TOO_LARGE);
    ck_assert(session_idle(c.sides[0].session));
    channel_close(&c);
}
END_TEST

START_TEST(packets_of_or_to_another_incarnation_deliver_and_acknowledge_nothing)
{
    static struct channel c;
    channel_open(&c, 1, NULL);
    struct side *a = &c.sides[0], *b = &c.sides[1];
    ck_assert_int_eq(side_push(&c, a, true, 1), TERRANE_ERR_OK);
    ck_assert_int_eq(side_push(&c, b, true, 1), TERRANE_ERR_OK);
    ck_assert(session_fill(a->session, 0, &c.packet));
    ck_assert(session_fill(b->session, 0, &c.packet));
    struct packet packet;
    uint64_t lost;
    ck_assert_int_eq(packet_decode(c.packet.data, c.packet.size, &packet), TERRANE_ERR_OK);
    packet.sure_ack = 1;
    packet.to.v = 55;
    ck_assert_int_eq(session_receive(a->session, 0, &packet, side_deliver, a, &lost), TERRANE_ERR_PEER_MISMATCH);
    packet.to = a->id;
    packet.from.v = 56;
    ck_assert_int_eq(session_receive(a->session, 0, &packet, side_deliver, a, &lost), TERRANE_ERR_PEER_MISMATCH);
    packet.from = b->id;
    packet.to.v = 0; /* sure messages need an address */
    ck_assert_int_eq(session_receive(a->session, 0, &packet, side_deliver, a, &lost), TERRANE_ERR_PEER_MISMATCH);
    ck_assert_uint_eq(a->sure_taken, 0);
    ck_assert_uint_eq(session_queued_messages(a->session), 1);
    packet.to = a->id;
    ck_assert_int_eq(session_receive(a->session, 0, &packet, side_deliver, a, &lost), TERRANE_ERR_OK);
    ck_assert_uint_eq(a->sure_taken, 1);
    ck_assert_uint_eq(session_queued_messages(a->session), 0);
    channel_close(&c);
}
END_TEST

START_TEST(acks_of_what_was_never_sent_and_forged_numbers_change_nothing)
{
    static struct channel c;
    channel_open(&c, 1, NULL);
    struct side *a = &c.sides[0];
    for (uint32_t i = 0; i < 3; i++) ck_assert_int_eq(side_push(&c, a, true, 1), TERRANE_ERR_OK);
    struct packet forged = {.from = c.sides[1].id, .to = a->id, .sure_ack = 3};
    uint64_t lost;
    ck_assert_int_eq(session_receive(a->session, 0, &forged, side_deliver, a, &lost), TERRANE_ERR_OK);
    ck_assert_uint_eq(session_queued_messages(a->session), 3);
    forged.sure_ack = UINT64_MAX;
    ck_assert_int_eq(session_receive(a->session, 0, &forged, side_deliver, a, &lost), TERRANE_ERR_OK);
    ck_assert_uint_eq(session_queued_messages(a->session), 3);
    channel_drain(&c);
    ck_assert_uint_eq(c.sides[1].sure_taken, 3);
    channel_close(&c);
}
END_TEST

START_TEST(at_most_4_mib_are_in_flight_and_a_silent_peer_is_only_probed)
{
    static struct channel c;
    channel_open(&c, 1, NULL);
    struct side *a = &c.sides[0];
    for (uint32_t i = 0; i < 200; i++) ck_assert_int_eq(side_push(&c, a, true, 50000), TERRANE_ERR_OK);
    size_t sent = 0;
    while (session_fill(a->session, 0, &c.packet)) sent += c.packet.size;
    ck_assert_uint_le(sent, (4u << 20) + LIMIT_PACKET_TARGET);
    ck_assert_uint_ge(sent, (4u << 20) - 2 * LIMIT_PACKET_TARGET);
    uint64_t deadline = session_deadline_us(a->session);
    ck_assert_uint_eq(deadline, 250 * MS);
    ck_assert(!session_fill(a->session, deadline - 1, &c.packet));
    for (uint32_t i = 0; i < 4; i++) {
        deadline = session_deadline_us(a->session);
        ck_assert(session_fill(a->session, deadline, &c.packet));
        ck_assert(!session_fill(a->session, deadline, &c.packet));
        ck_assert_uint_le(session_deadline_us(a->session) - deadline, 1000 * MS);
    }
    /* A new link repeats the whole window without waiting. */
    session_link_up(a->session, deadline + 1);
    ck_assert_uint_le(session_deadline_us(a->session), deadline + 1);
    size_t again = 0;
    while (session_fill(a->session, deadline + 1, &c.packet)) again += c.packet.size;
    ck_assert_uint_eq(again, sent);
    channel_close(&c);
}
END_TEST

START_TEST(before_the_peer_is_known_fast_messages_go_to_whoever_listens)
{
    static struct channel c;
    channel_open(&c, 1, NULL);
    struct session *nameless = session_open(&(struct session_options){.self = {100}});
    message_write(&c.message, 1, 1);
    ck_assert_int_eq(session_push_fast(nameless, c.message.data, c.message.size), TERRANE_ERR_OK);
    ck_assert(session_fill(nameless, 0, &c.packet));
    struct packet packet;
    ck_assert_int_eq(packet_decode(c.packet.data, c.packet.size, &packet), TERRANE_ERR_OK);
    ck_assert_uint_eq(packet.to.v, 0);
    side_receive(&c, &c.sides[1], c.packet.data, c.packet.size);
    ck_assert_uint_eq(c.sides[1].fast_taken, 1);
    c.sides[1].fast_taken = 0;
    /* The counts of the session that follows start anew: nothing is stale. */
    ck_assert_int_eq(side_push(&c, &c.sides[0], false, 1), TERRANE_ERR_OK);
    ck_assert_int_eq(side_push(&c, &c.sides[0], false, 1), TERRANE_ERR_OK);
    channel_drain(&c);
    ck_assert_uint_eq(session_counters(c.sides[1].session)->fast_stale, 0);
    ck_assert_uint_eq(c.sides[1].fast_lost, 0);
    session_close(nameless);
    channel_close(&c);
}
END_TEST

START_TEST(an_ack_travels_alone_only_if_nothing_else_is_to_be_said_and_is_not_acknowledged)
{
    static struct channel c;
    channel_open(&c, 1, NULL);
    ck_assert_int_eq(side_push(&c, &c.sides[0], true, 1), TERRANE_ERR_OK);
    channel_drain(&c);
    ck_assert_uint_eq(session_counters(c.sides[0].session)->packets_sent, 1);
    ck_assert_uint_eq(session_counters(c.sides[1].session)->packets_sent, 1);
    ck_assert_uint_eq(session_deadline_us(c.sides[0].session), UINT64_MAX);
    c.sides[1].echo = true;
    ck_assert_int_eq(side_push(&c, &c.sides[0], true, 1), TERRANE_ERR_OK);
    channel_drain(&c);
    ck_assert_uint_eq(session_counters(c.sides[1].session)->packets_sent, 2);
    channel_close(&c);
}
END_TEST

START_TEST(a_lost_ack_is_given_again_when_the_repetition_comes)
{
    static struct channel c;
    channel_open(&c, 1, NULL);
    struct side *a = &c.sides[0], *b = &c.sides[1];
    ck_assert_int_eq(side_push(&c, a, true, 1), TERRANE_ERR_OK);
    ck_assert(session_fill(a->session, 0, &c.packet));
    side_receive(&c, b, c.packet.data, c.packet.size);
    ck_assert(session_fill(b->session, 0, &c.packet)); /* the ack, lost */
    ck_assert(!session_fill(b->session, 0, &c.packet));
    c.now_us = session_deadline_us(a->session);
    ck_assert(session_fill(a->session, c.now_us, &c.packet));
    side_receive(&c, b, c.packet.data, c.packet.size);
    ck_assert_uint_eq(session_counters(b->session)->sure_duplicates, 1);
    ck_assert(session_fill(b->session, c.now_us, &c.packet));
    side_receive(&c, a, c.packet.data, c.packet.size);
    ck_assert(session_idle(a->session));
    channel_close(&c);
}
END_TEST

START_TEST(the_repeat_interval_doubles_while_nothing_moves_and_is_short_again_after_an_ack)
{
    static struct channel c;
    channel_open(&c, 1, NULL);
    struct side *a = &c.sides[0];
    ck_assert_int_eq(side_push(&c, a, true, 1), TERRANE_ERR_OK);
    ck_assert(session_fill(a->session, 0, &c.packet));
    static const uint64_t intervals_ms[] = {250, 500, 1000, 1000};
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(session_deadline_us(a->session) - c.now_us, intervals_ms[i] * MS);
        c.now_us = session_deadline_us(a->session);
        ck_assert(session_fill(a->session, c.now_us, &c.packet));
    }
    channel_drain(&c);
    ck_assert_int_eq(side_push(&c, a, true, 1), TERRANE_ERR_OK);
    ck_assert(session_fill(a->session, c.now_us, &c.packet));
    ck_assert_uint_eq(session_deadline_us(a->session) - c.now_us, 250 * MS);
    channel_close(&c);
}
END_TEST

START_TEST(fast_messages_never_overtake_sure_ones_that_went_before_them)
{
    static struct channel c;
    channel_open(&c, 1, NULL);
    struct side *a = &c.sides[0], *b = &c.sides[1];
    ck_assert_int_eq(side_push(&c, a, true, 1), TERRANE_ERR_OK);
    ck_assert(session_fill(a->session, 0, &c.packet)); /* lost */
    ck_assert_int_eq(side_push(&c, a, true, 1), TERRANE_ERR_OK);
    ck_assert_int_eq(side_push(&c, a, false, 1), TERRANE_ERR_OK);
    ck_assert(session_fill(a->session, 0, &c.packet));
    side_receive(&c, b, c.packet.data, c.packet.size);
    ck_assert_uint_eq(b->fast_taken, 0);
    ck_assert_uint_eq(b->fast_lost, 1);
    ck_assert_uint_eq(session_counters(b->session)->sure_gaps, 1);
    channel_drain(&c);
    ck_assert_uint_eq(b->sure_taken, 2);
    ck_assert_uint_eq(b->fast_taken, 0);
    channel_close(&c);
}
END_TEST

SUITE_MAIN("session", every_seed_delivers_sure_once_in_order_and_counts_each_lost_fast_packet,
           a_full_queue_refuses_counts_and_recovers_when_the_peer_answers,
           a_message_above_the_limit_is_refused_and_nothing_is_queued,
           packets_of_or_to_another_incarnation_deliver_and_acknowledge_nothing,
           acks_of_what_was_never_sent_and_forged_numbers_change_nothing,
           at_most_4_mib_are_in_flight_and_a_silent_peer_is_only_probed,
           before_the_peer_is_known_fast_messages_go_to_whoever_listens,
           an_ack_travels_alone_only_if_nothing_else_is_to_be_said_and_is_not_acknowledged,
           a_lost_ack_is_given_again_when_the_repetition_comes,
           the_repeat_interval_doubles_while_nothing_moves_and_is_short_again_after_an_ack,
           fast_messages_never_overtake_sure_ones_that_went_before_them)
