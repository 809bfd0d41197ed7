/* Peers in other processes that die, come back, or stand still. */
#include "ends.h"

START_TEST(a_killed_peer_is_down_and_after_its_restart_up_again)
{
    struct child child;
    struct end a;
    char line[64], url[LIMIT_URL];
    child_start(&child, "inbox", ANY);
    memcpy(url, child.url, sizeof url);
    end_open(&a, (struct link_options){0});
    ck_assert_int_eq(link_peer(a.link, node(77), url), TERRANE_ERR_OK);
    for (uint32_t round = 1; round <= 5; round++) {
        WAIT_FOR(end_count(&a, EVENT_PEER_UP) == round, &a);
        link_send(a.link, node(77), "hello", 5);
        child_line(&child, line, sizeof line);
        ck_assert_str_eq(line, "hello");
        child_kill(&child);
        WAIT_FOR(end_count(&a, EVENT_PEER_DOWN) == round, &a);
        ck_assert_uint_eq(end_nth(&a, EVENT_PEER_DOWN, round - 1)->event.node.v, 77);
        uint64_t unlinked = end_counters(&a).send_unlinked;
        link_send(a.link, node(77), "nobody", 6);
        ck_assert_uint_eq(end_counters(&a).send_unlinked, unlinked + 1);
        child_start(&child, "inbox", url);
    }
    child_kill(&child);
    end_close(&a);
}
END_TEST

START_TEST(a_peer_that_starts_later_is_found)
{
    struct child child;
    struct end a;
    char url[LIMIT_URL], line[64];
    child_start(&child, "inbox", ANY);
    memcpy(url, child.url, sizeof url);
    child_kill(&child);
    end_open(&a, (struct link_options){0});
    ck_assert_int_eq(link_peer(a.link, node(77), url), TERRANE_ERR_OK);
    end_pump(&a);
    ck_assert_uint_eq(a.count, 0);
    child_start(&child, "inbox", url);
    WAIT_FOR(end_count(&a, EVENT_PEER_UP) == 1, &a);
    link_send(a.link, node(77), "late", 4);
    child_line(&child, line, sizeof line);
    ck_assert_str_eq(line, "late");
    child_kill(&child);
    end_close(&a);
}
END_TEST

START_TEST(a_killed_reader_takes_its_feed_down_and_no_other)
{
    struct child child;
    struct end owner, reader;
    child_start(&child, "sub", ANY);
    end_open(&owner, (struct link_options){.feed_count = 1});
    end_open(&reader, (struct link_options){.sub_url = ANY});
    link_watch(reader.link, "", 0);
    ck_assert_int_eq(link_feed(owner.link, 0, node(31), child.url), TERRANE_ERR_OK);
    ck_assert_int_eq(link_feed(owner.link, 0, node(32), link_urls(reader.link)->sub), TERRANE_ERR_OK);
    WAIT_FOR(end_count(&owner, EVENT_FEED_UP) == 2, &owner, &reader);
    child_kill(&child);
    WAIT_FOR(end_count(&owner, EVENT_FEED_DOWN) == 1, &owner, &reader);
    ck_assert_uint_eq(end_nth(&owner, EVENT_FEED_DOWN, 0)->event.node.v, 31);
    link_publish(owner.link, 0, "still", 5);
    WAIT_FOR(end_count(&reader, EVENT_MESSAGE) == 1, &owner, &reader);
    end_close(&owner);
    WAIT_FOR(link_quiet(reader.link), &reader);
    end_close(&reader);
}
END_TEST

START_TEST(a_paused_reader_delays_neither_the_owner_nor_other_readers)
{
    static char frame[8 << 10];
    struct child child;
    struct end owner, reader;
    child_start(&child, "sub", ANY);
    end_open(&owner, (struct link_options){.feed_count = 1});
    end_open(&reader, (struct link_options){.sub_url = ANY});
    link_watch(reader.link, "", 0);
    ck_assert_int_eq(link_feed(owner.link, 0, node(31), child.url), TERRANE_ERR_OK);
    ck_assert_int_eq(link_feed(owner.link, 0, node(32), link_urls(reader.link)->sub), TERRANE_ERR_OK);
    WAIT_FOR(end_count(&owner, EVENT_FEED_UP) == 2, &owner, &reader);
    kill(child.pid, SIGSTOP);
    uint64_t worst_us = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        uint64_t began_us = loop_now_us();
        snprintf(frame, sizeof frame, "%u", i);
        link_publish(owner.link, 0, frame, sizeof frame);
        uint64_t took_us = loop_now_us() - began_us;
        if (took_us > worst_us) worst_us = took_us;
        /* 16 MB in all: far beyond what the paused one's buffers hold. */
        if (i % 50 == 49) WAIT_FOR(end_count(&reader, EVENT_MESSAGE) == i + 1, &owner, &reader);
    }
    for (uint32_t i = 0; i < 2000; i++)
        ck_assert_uint_eq(strtoul((char *)end_nth(&reader, EVENT_MESSAGE, i)->bytes, NULL, 10), i);
    ck_assert_uint_lt(worst_us, 1000000);
    kill(child.pid, SIGCONT);
    child_kill(&child);
    end_close(&owner);
    WAIT_FOR(link_quiet(reader.link), &reader);
    end_close(&reader);
}
END_TEST

START_TEST(a_paused_peer_delays_no_other_peer)
{
    static char packet[32 << 10];
    struct child paused;
    struct end a, b;
    child_start(&paused, "inbox", ANY);
    end_open(&a, (struct link_options){0});
    end_open(&b, (struct link_options){.inbox_url = ANY});
    ck_assert_int_eq(link_peer(a.link, node(77), paused.url), TERRANE_ERR_OK);
    ck_assert_int_eq(link_peer(a.link, node(78), link_urls(b.link)->inbox), TERRANE_ERR_OK);
    WAIT_FOR(end_count(&a, EVENT_PEER_UP) == 2, &a, &b);
    kill(paused.pid, SIGSTOP);
    for (uint32_t i = 0; i < 2000; i++) {
        snprintf(packet, sizeof packet, "%u", i);
        link_send(a.link, node(77), packet, sizeof packet);
        link_send(a.link, node(78), packet, 100);
        if (i % 50 == 49) WAIT_FOR(end_count(&b, EVENT_MESSAGE) == i + 1, &a, &b);
    }
    ck_assert_uint_gt(end_counters(&a).send_full, 0);
    for (uint32_t i = 0; i < 2000; i++)
        ck_assert_uint_eq(strtoul((char *)end_nth(&b, EVENT_MESSAGE, i)->bytes, NULL, 10), i);
    child_kill(&paused);
    WAIT_FOR(end_count(&a, EVENT_PEER_DOWN) == 1, &a, &b);
    end_close(&a);
    WAIT_FOR(link_quiet(b.link), &b);
    end_close(&b);
}
END_TEST

SUITE_MAIN("link_death", a_killed_peer_is_down_and_after_its_restart_up_again, a_peer_that_starts_later_is_found,
           a_killed_reader_takes_its_feed_down_and_no_other, a_paused_reader_delays_neither_the_owner_nor_other_readers,
           a_paused_peer_delays_no_other_peer)
