/* What the link promises to cores, with all ends in one process. Receivers here are closed only when quiet. */
#include "ends.h"

static void send_number(struct link *l, struct node_id to, uint32_t n)
{
    char text[16];
    snprintf(text, sizeof text, "%u", n);
    link_send(l, to, text, strlen(text));
}

static void assert_numbers(const struct end *e, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct seen *s = end_nth(e, EVENT_MESSAGE, i);
        ck_assert_ptr_nonnull(s);
        ck_assert_uint_eq((uint32_t)strtoul((char *)s->bytes, NULL, 10), i);
    }
}

/* Closing a receiver is safe when nobody is connected to it any more. */
static void close_both(struct end *sender, struct end *receiver)
{
    end_close(sender);
    WAIT_FOR(link_quiet(receiver->link), receiver);
    end_close(receiver);
}

START_TEST(port_zero_becomes_a_real_port_in_the_url)
{
    struct end e;
    end_open(&e, (struct link_options){
                     .inbox_url = ANY, .sub_url = ANY, .query_url = ANY, .feed_urls = {ANY, NULL}, .feed_count = 2});
    const struct link_urls *urls = link_urls(e.link);
    const char *all[] = {urls->inbox, urls->sub, urls->query, urls->feeds[0]};
    for (int i = 0; i < 4; i++) {
        ck_assert_msg(strncmp(all[i], "tcp://127.0.0.1:", 16) == 0, "%s", all[i]);
        ck_assert_int_gt(atoi(all[i] + 16), 0);
        for (int j = 0; j < i; j++) ck_assert_str_ne(all[i], all[j]);
    }
    ck_assert_str_eq(urls->feeds[1], "");
    end_close(&e);
}
END_TEST

START_TEST(the_advertised_host_stands_in_the_url)
{
    struct end e;
    end_open(&e, (struct link_options){.inbox_url = "tcp://0.0.0.0:0", .advertise_host = "node-7.example"});
    ck_assert_msg(strncmp(link_urls(e.link)->inbox, "tcp://node-7.example:", 21) == 0, "%s", link_urls(e.link)->inbox);
    end_close(&e);
}
END_TEST

static void assert_refused(struct link_options options, const char *says)
{
    struct link *l;
    struct link_fault fault;
    ck_assert_int_eq(link_open(&options, &l, &fault), TERRANE_ERR_ADDRESS);
    ck_assert_ptr_null(l);
    ck_assert_msg(strstr(fault.text, says) != NULL, "\"%s\" does not say \"%s\"", fault.text, says);
}

START_TEST(a_url_that_cannot_be_bound_is_refused_with_its_name)
{
    struct end e;
    end_open(&e, (struct link_options){.inbox_url = ANY});
    assert_refused((struct link_options){.inbox_url = link_urls(e.link)->inbox}, link_urls(e.link)->inbox);
    assert_refused((struct link_options){.sub_url = "tcp://0.0.0.0:0"}, "advertise");
    assert_refused((struct link_options){.inbox_url = "ipc:///tmp/terrane-test"}, "tcp://HOST:PORT");
    assert_refused((struct link_options){.inbox_url = "tcp://127.0.0.1"}, "tcp://HOST:PORT");
    assert_refused((struct link_options){.query_url = "tcp://127.0.0.1:70000"}, "tcp://HOST:PORT");
    assert_refused((struct link_options){.feed_urls = {"tcp://127.0.0.1:http"}, .feed_count = 1}, "tcp://HOST:PORT");
    end_close(&e);
}
END_TEST

START_TEST(packets_to_a_peer_arrive_in_order)
{
    struct end a, b;
    end_open(&a, (struct link_options){0});
    end_open(&b, (struct link_options){.inbox_url = ANY});
    ck_assert_int_eq(link_peer(a.link, node(77), link_urls(b.link)->inbox), TERRANE_ERR_OK);
    WAIT_FOR(end_count(&a, EVENT_PEER_UP) == 1, &a, &b);
    ck_assert_uint_eq(a.items[0].event.node.v, 77);
    for (uint32_t i = 0; i < 2000; i++) {
        send_number(a.link, node(77), i);
        if (i % 100 == 99) WAIT_FOR(end_count(&b, EVENT_MESSAGE) == i + 1, &a, &b);
    }
    assert_numbers(&b, 2000);
    ck_assert_int_eq(b.items[0].event.lane, LANE_INBOX);
    ck_assert_uint_eq(end_counters(&a).sent, 2000);
    ck_assert_uint_eq(end_counters(&b).received[LANE_INBOX], 2000);
    close_both(&a, &b);
}
END_TEST

START_TEST(a_peer_that_is_not_up_gets_nothing_and_it_is_counted)
{
    struct end a;
    end_open(&a, (struct link_options){0});
    ck_assert_int_eq(link_peer(a.link, node(77), "tcp://127.0.0.1:1"), TERRANE_ERR_OK);
    send_number(a.link, node(77), 1);
    send_number(a.link, node(78), 1);
    ck_assert_uint_eq(end_counters(&a).send_unlinked, 2);
    ck_assert_int_eq(link_peer(a.link, node(79), "http://127.0.0.1:1"), TERRANE_ERR_ADDRESS);
    ck_assert_int_eq(link_peer(a.link, node(79), "tcp://"), TERRANE_ERR_ADDRESS);
    ck_assert_int_eq(link_peer(a.link, node(79), ""), TERRANE_ERR_ADDRESS);
    ck_assert_uint_eq(end_counters(&a).urls_refused, 3);
    end_close(&a);
}
END_TEST

START_TEST(linking_the_same_url_again_says_up_again)
{
    struct end a, b;
    end_open(&a, (struct link_options){0});
    end_open(&b, (struct link_options){.inbox_url = ANY});
    const char *url = link_urls(b.link)->inbox;
    ck_assert_int_eq(link_peer(a.link, node(77), url), TERRANE_ERR_OK);
    WAIT_FOR(end_count(&a, EVENT_PEER_UP) == 1, &a, &b);
    ck_assert_int_eq(link_peer(a.link, node(77), url), TERRANE_ERR_OK);
    WAIT_FOR(end_count(&a, EVENT_PEER_UP) == 2, &a, &b);
    ck_assert_uint_eq(end_count(&a, EVENT_PEER_DOWN), 0);
    ck_assert_uint_eq(end_counters(&a).peers_up, 1);
    close_both(&a, &b);
}
END_TEST

START_TEST(another_url_replaces_the_link)
{
    struct end a, b, c;
    end_open(&a, (struct link_options){0});
    end_open(&b, (struct link_options){.inbox_url = ANY});
    end_open(&c, (struct link_options){.inbox_url = ANY});
    ck_assert_int_eq(link_peer(a.link, node(77), link_urls(b.link)->inbox), TERRANE_ERR_OK);
    WAIT_FOR(end_count(&a, EVENT_PEER_UP) == 1, &a, &b, &c);
    ck_assert_int_eq(link_peer(a.link, node(77), link_urls(c.link)->inbox), TERRANE_ERR_OK);
    WAIT_FOR(end_count(&a, EVENT_PEER_UP) == 2, &a, &b, &c);
    send_number(a.link, node(77), 0);
    WAIT_FOR(end_count(&c, EVENT_MESSAGE) == 1, &a, &b, &c);
    ck_assert_uint_eq(end_count(&b, EVENT_MESSAGE), 0);
    WAIT_FOR(link_quiet(b.link), &a, &b, &c);
    end_close(&b);
    close_both(&a, &c);
}
END_TEST

START_TEST(unlinking_and_linking_a_thousand_times_under_traffic_stays_alive)
{
    struct end a, b;
    end_open(&a, (struct link_options){0});
    end_open(&b, (struct link_options){.inbox_url = ANY});
    for (uint32_t i = 0; i < 1000; i++) {
        ck_assert_int_eq(link_peer(a.link, node(77), link_urls(b.link)->inbox), TERRANE_ERR_OK);
        WAIT_FOR(end_count(&a, EVENT_PEER_UP) == 1, &a, &b);
        for (uint32_t j = 0; j < 5; j++) send_number(a.link, node(77), j);
        link_unpeer(a.link, node(77));
        end_forget(&a);
        end_forget(&b);
    }
    ck_assert_uint_eq(end_counters(&a).peers_up, 1000);
    ck_assert_uint_eq(end_counters(&a).peers, 0);
    close_both(&a, &b);
}
END_TEST

START_TEST(what_was_sent_just_before_an_unlink_arrives)
{
    struct end a, b;
    end_open(&a, (struct link_options){0});
    end_open(&b, (struct link_options){.inbox_url = ANY});
    ck_assert_int_eq(link_peer(a.link, node(77), link_urls(b.link)->inbox), TERRANE_ERR_OK);
    WAIT_FOR(end_count(&a, EVENT_PEER_UP) == 1, &a, &b);
    for (uint32_t i = 0; i < 50; i++) send_number(a.link, node(77), i);
    link_unpeer(a.link, node(77));
    WAIT_FOR(end_count(&b, EVENT_MESSAGE) == 50, &a, &b);
    assert_numbers(&b, 50);
    WAIT_FOR(link_quiet(b.link), &a, &b);
    close_both(&a, &b);
}
END_TEST

START_TEST(subscribing_and_unsubscribing_under_traffic_stays_alive)
{
    struct end owner, reader;
    end_open(&owner, (struct link_options){.feed_count = 1});
    end_open(&reader, (struct link_options){.sub_url = ANY});
    link_watch(reader.link, "", 0);
    for (uint32_t i = 0; i < 300; i++) {
        ck_assert_int_eq(link_feed(owner.link, 0, node(55), link_urls(reader.link)->sub), TERRANE_ERR_OK);
        WAIT_FOR(end_count(&owner, EVENT_FEED_UP) == 1, &owner, &reader);
        for (uint32_t j = 0; j < 5; j++) link_publish(owner.link, 0, "frame", 5);
        link_unfeed(owner.link, 0, node(55));
        end_forget(&owner);
        end_forget(&reader);
    }
    ck_assert_uint_eq(end_counters(&owner).subscribers, 0);
    close_both(&owner, &reader);
}
END_TEST

START_TEST(a_feed_that_is_up_loses_nothing_of_what_is_published_at_once)
{
    struct end owner, reader;
    end_open(&reader, (struct link_options){.sub_url = ANY});
    link_watch(reader.link, "r/03/", 5);
    for (uint32_t round = 0; round < 100; round++) {
        end_open(&owner, (struct link_options){.feed_count = 2});
        ck_assert_int_eq(link_feed(owner.link, 1, node(55), link_urls(reader.link)->sub), TERRANE_ERR_OK);
        WAIT_FOR(end_count(&owner, EVENT_FEED_UP) == 1, &owner, &reader);
        ck_assert_uint_eq(owner.items[0].event.node.v, 55);
        ck_assert_uint_eq(owner.items[0].event.feed, 1);
        link_publish(owner.link, 1, "r/03/first", 10);
        link_publish(owner.link, 1, "r/031/other", 11);
        link_publish(owner.link, 1, "r/03/second", 11);
        WAIT_FOR(end_count(&reader, EVENT_MESSAGE) == 2, &owner, &reader);
        ck_assert_str_eq((char *)end_nth(&reader, EVENT_MESSAGE, 0)->bytes, "r/03/first");
        ck_assert_str_eq((char *)end_nth(&reader, EVENT_MESSAGE, 1)->bytes, "r/03/second");
        ck_assert_int_eq(reader.items[0].event.lane, LANE_FEED);
        end_close(&owner);
        end_forget(&reader);
    }
    WAIT_FOR(link_quiet(reader.link), &reader);
    end_close(&reader);
}
END_TEST

START_TEST(an_unlinked_feed_reaches_its_other_readers_only)
{
    struct end owner, left, right;
    end_open(&owner, (struct link_options){.feed_count = 1});
    end_open(&left, (struct link_options){.sub_url = ANY});
    end_open(&right, (struct link_options){.sub_url = ANY});
    link_watch(left.link, "", 0);
    link_watch(right.link, "", 0);
    ck_assert_int_eq(link_feed(owner.link, 0, node(31), link_urls(left.link)->sub), TERRANE_ERR_OK);
    ck_assert_int_eq(link_feed(owner.link, 0, node(32), link_urls(right.link)->sub), TERRANE_ERR_OK);
    WAIT_FOR(end_count(&owner, EVENT_FEED_UP) == 2, &owner, &left, &right);
    link_unfeed(owner.link, 0, node(31));
    WAIT_FOR(link_quiet(left.link), &owner, &left, &right);
    link_publish(owner.link, 0, "x", 1);
    WAIT_FOR(end_count(&right, EVENT_MESSAGE) == 1, &owner, &left, &right);
    ck_assert_uint_eq(end_count(&left, EVENT_MESSAGE), 0);
    link_unwatch(right.link, "", 0);
    link_publish(owner.link, 0, "y", 1);
    link_watch(right.link, "z", 1);
    link_publish(owner.link, 0, "z", 1);
    WAIT_FOR(end_count(&right, EVENT_MESSAGE) == 2, &owner, &left, &right);
    ck_assert_str_eq((char *)end_nth(&right, EVENT_MESSAGE, 1)->bytes, "z");
    link_unfeed(owner.link, 0, node(32));
    WAIT_FOR(link_quiet(right.link), &owner, &left, &right);
    link_publish(owner.link, 0, "x", 1);
    WAIT_FOR((link_publish(owner.link, 0, "x", 1), end_counters(&owner).published_nobody > 0), &owner);
    end_close(&left);
    close_both(&owner, &right);
}
END_TEST

START_TEST(closing_a_link_that_is_being_sent_to_neither_hangs_nor_wakes_anybody)
{
    struct end a, b, c;
    end_open(&a, (struct link_options){.feed_count = 1});
    end_open(&b, (struct link_options){.inbox_url = ANY, .sub_url = ANY});
    end_open(&c, (struct link_options){.inbox_url = ANY});
    link_watch(b.link, "", 0);
    ck_assert_int_eq(link_peer(a.link, node(77), link_urls(b.link)->inbox), TERRANE_ERR_OK);
    ck_assert_int_eq(link_peer(a.link, node(78), link_urls(c.link)->inbox), TERRANE_ERR_OK);
    ck_assert_int_eq(link_feed(a.link, 0, node(77), link_urls(b.link)->sub), TERRANE_ERR_OK);
    WAIT_FOR(a.count == 3, &a, &b, &c);
    for (uint32_t i = 0; i < 300; i++) {
        send_number(a.link, node(77), i);
        link_publish(a.link, 0, "frame", 5);
        if (i == 100) end_close(&b); /* its context is gone: a wake would write into freed memory */
        if (i % 50 == 49) end_pump(&a);
    }
    /* The sender is none the worse, and can let go. */
    send_number(a.link, node(78), 0);
    WAIT_FOR(end_count(&c, EVENT_MESSAGE) == 1, &a, &c);
    link_unpeer(a.link, node(77));
    link_unfeed(a.link, 0, node(77));
    close_both(&a, &c);
}
END_TEST

START_TEST(a_flooded_inbox_is_bounded_and_drops_are_counted)
{
    struct end a, b;
    end_open(&a, (struct link_options){0});
    end_open(&b, (struct link_options){.inbox_url = ANY, .inbound_messages = 10});
    ck_assert_int_eq(link_peer(a.link, node(77), link_urls(b.link)->inbox), TERRANE_ERR_OK);
    WAIT_FOR(end_count(&a, EVENT_PEER_UP) == 1, &a, &b);
    for (uint32_t i = 0; i < 100; i++) send_number(a.link, node(77), i);
    WAIT_FOR(end_counters(&b).received[LANE_INBOX] + end_counters(&b).dropped_full[LANE_INBOX] == 100, &a);
    ck_assert_uint_eq(end_counters(&b).dropped_full[LANE_INBOX], 90);
    WAIT_FOR(end_count(&b, EVENT_MESSAGE) == 10, &b);
    assert_numbers(&b, 10);
    /* What has been drained no longer counts. */
    send_number(a.link, node(77), 10);
    WAIT_FOR(end_count(&b, EVENT_MESSAGE) == 11, &b);
    close_both(&a, &b);
}
END_TEST

START_TEST(a_full_send_buffer_drops_without_waiting_and_is_counted)
{
    struct child slow;
    child_start(&slow, "inbox", ANY);
    struct end a;
    end_open(&a, (struct link_options){0});
    ck_assert_int_eq(link_peer(a.link, node(77), slow.url), TERRANE_ERR_OK);
    WAIT_FOR(end_count(&a, EVENT_PEER_UP) == 1, &a);
    kill(slow.pid, SIGSTOP);
    static char large[256 << 10];
    /* A send that waited for the stopped peer would never return. */
    for (uint32_t i = 0; i < 500; i++) link_send(a.link, node(77), large, sizeof large);
    link_flush(a.link);
    struct link_counters c = end_counters(&a);
    ck_assert_uint_gt(c.send_full, 100);
    ck_assert_uint_gt(c.send_retries, 0);
    ck_assert_uint_eq(c.sent + c.send_full, 500);
    link_send(a.link, node(77), large, LIMIT_PACKET_BYTES + 1);
    ck_assert_uint_eq(end_counters(&a).send_oversize, 1);
    child_kill(&slow);
    end_close(&a);
}
END_TEST

SUITE_MAIN("link", port_zero_becomes_a_real_port_in_the_url, the_advertised_host_stands_in_the_url,
           a_url_that_cannot_be_bound_is_refused_with_its_name, packets_to_a_peer_arrive_in_order,
           a_peer_that_is_not_up_gets_nothing_and_it_is_counted, linking_the_same_url_again_says_up_again,
           another_url_replaces_the_link, unlinking_and_linking_a_thousand_times_under_traffic_stays_alive,
           what_was_sent_just_before_an_unlink_arrives, subscribing_and_unsubscribing_under_traffic_stays_alive,
           a_feed_that_is_up_loses_nothing_of_what_is_published_at_once,
           an_unlinked_feed_reaches_its_other_readers_only,
           closing_a_link_that_is_being_sent_to_neither_hangs_nor_wakes_anybody,
           a_flooded_inbox_is_bounded_and_drops_are_counted, a_full_send_buffer_drops_without_waiting_and_is_counted)
