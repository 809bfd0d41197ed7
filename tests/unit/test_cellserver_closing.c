/* A cell server is asked to end. */
#include "tests/unit/standby_rig.h"

#include "tests/unit/suite.h"

static struct stand s;

static void open_rig(void)
{
    struct world world = world_default();
    stand_open(&s, &world);
}

static void say_bye(void)
{
    struct outbox out = {0};
    cellserver_say_bye(s.server, s.now_us, &out);
    for (size_t i = 0; i < out.count; i++) {
        struct output item = out.items[i];
        stand_output(&s, &item, outbox_bytes(&out, &item));
    }
    outbox_close(&out);
}

static void hand_everything_to_the_third(void)
{
    for (uint32_t i = 0; i < s.map_count; i++) {
        if (node_id_equal(s.map[i].standby, STAND_SELF)) s.map[i].standby = NODE_NONE;
        s.map[i].epoch++;
        if (!node_id_equal(s.map[i].primary, STAND_SELF)) continue;
        s.map[i].primary = stand_node[STAND_THIRD];
        s.map[i].since = s.map[i].epoch;
    }
    stand_map(&s);
}

START_TEST(it_says_bye_and_serves_on_until_others_have_its_leaves)
{
    open_rig();
    ck_assert(!cellserver_closed(s.server));
    say_bye();
    say_bye();
    ck_assert_uint_eq(s.told[STAND_COORDINATOR].count[MESSAGE_BYE], 1);
    for (int i = 0; i < 10; i++) stand_tick(&s);
    uint32_t epoch;
    ck_assert(cellserver_owns(s.server, stand_leaf(1), &epoch));
    ck_assert(!cellserver_closed(s.server));
    hand_everything_to_the_third();
    ck_assert_uint_eq(s.told[STAND_THIRD].count[MESSAGE_RELEASE], 1);
    stand_tick(&s);
    stand_tick(&s);
    ck_assert(cellserver_closed(s.server));
    ck_assert(!cellserver_dismissed(s.server));
    stand_close(&s);
}
END_TEST

START_TEST(it_waits_until_the_new_primary_has_heard_all)
{
    open_rig();
    say_bye();
    hand_everything_to_the_third(); /* the RELEASE has arrived, its ack comes with a tick */
    ck_assert(!cellserver_closed(s.server));
    stand_tick(&s);
    stand_tick(&s);
    ck_assert(cellserver_closed(s.server));
    stand_close(&s);
}
END_TEST

START_TEST(it_waits_for_a_few_seconds_at_most)
{
    open_rig();
    say_bye();
    for (int i = 0; i < 99; i++) stand_tick(&s);
    ck_assert(!cellserver_closed(s.server));
    stand_tick(&s);
    ck_assert(cellserver_closed(s.server));
    stand_close(&s);
}
END_TEST

START_TEST(the_only_server_waits_for_nobody)
{
    open_rig();
    s.gone[STAND_PRIMARY] = s.gone[STAND_THIRD] = true;
    for (uint32_t i = 0; i < 4; i++) stand_give(&s, i, NODE_NONE);
    stand_map(&s);
    stand_tick(&s);
    say_bye();
    stand_tick(&s);
    ck_assert(cellserver_closed(s.server));
    stand_close(&s);
}
END_TEST

START_TEST(without_a_coordinator_it_waits_for_nobody)
{
    open_rig();
    say_bye();
    ck_assert(!cellserver_closed(s.server));
    stand_step(&s, &(struct event){.kind = EVENT_PEER_DOWN, .node = NODE_COORDINATOR});
    ck_assert(cellserver_closed(s.server));
    stand_close(&s);
}
END_TEST

START_TEST(it_ends_when_the_coordinator_says_that_it_is_dead)
{
    open_rig();
    bye_encode(&s.w);
    stand_say(&s, STAND_COORDINATOR, false);
    ck_assert(cellserver_closed(s.server));
    ck_assert(cellserver_dismissed(s.server));
    stand_close(&s);
}
END_TEST

START_TEST(nobody_else_can_end_it)
{
    open_rig();
    bye_encode(&s.w);
    stand_say(&s, STAND_THIRD, false);
    bye_encode(&s.w);
    stand_say(&s, STAND_GATEWAY, true);
    ck_assert(!cellserver_closed(s.server));
    ck_assert_uint_eq(stand_stats(&s).malformed, 2);
    stand_close(&s);
}
END_TEST

static void bye_from_stranger(void)
{
    struct writer w = {0};
    struct packet head = {.from = {101}, .to = STAND_SELF, .fast_total = UINT64_C(1) << 62};
    packet_begin(&w, &head, 0);
    packet_fast(&w, 1);
    bye_encode(&w);
    stand_step(&s, &(struct event){.kind = EVENT_MESSAGE, .bytes = w.data, .size = w.size});
    writer_close(&w);
}

START_TEST(it_ends_when_a_coordinator_that_has_never_welcomed_it_says_that_it_is_dead)
{
    s = (struct stand){.now_us = 1000000};
    struct node_info info = stand_info(STAND_THIRD);
    info.node = STAND_SELF;
    s.server = cellserver_open(&(struct cellserver_options){.info = info, .coordinator_url = "tcp://127.0.0.1:7070"});
    stand_step(&s, &(struct event){.kind = EVENT_START});
    ck_assert(!cellserver_closed(s.server));
    bye_from_stranger();
    ck_assert(cellserver_closed(s.server));
    ck_assert(cellserver_dismissed(s.server));
    stand_close(&s);
}
END_TEST

START_TEST(another_coordinator_ends_it_only_when_its_own_is_silent)
{
    open_rig();
    bye_from_stranger();
    ck_assert(!cellserver_closed(s.server));
    for (int i = 0; i < 100; i++) {
        s.now_us += STAND_TICK_US;
        stand_step(&s, &(struct event){.kind = EVENT_TICK});
    }
    ck_assert(!cellserver_closed(s.server));
    bye_from_stranger();
    ck_assert(cellserver_dismissed(s.server));
    stand_close(&s);
}
END_TEST

SUITE_MAIN("cellserver_closing", it_says_bye_and_serves_on_until_others_have_its_leaves,
           it_waits_until_the_new_primary_has_heard_all, it_waits_for_a_few_seconds_at_most,
           the_only_server_waits_for_nobody, without_a_coordinator_it_waits_for_nobody,
           it_ends_when_the_coordinator_says_that_it_is_dead, nobody_else_can_end_it,
           it_ends_when_a_coordinator_that_has_never_welcomed_it_says_that_it_is_dead,
           another_coordinator_ends_it_only_when_its_own_is_silent)
