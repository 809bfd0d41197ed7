/* A whole life on every socket, ended when all is still: nothing may be left (run under valgrind, too). */
#define ENDS_FORGIVE_NOTHING
#include "ends.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>

static void live_once(void)
{
    struct end a, b;
    struct link_options options = {
        .inbox_url = ANY, .sub_url = ANY, .query_url = ANY, .feed_urls = {ANY, ANY}, .feed_count = 2};
    end_open(&a, options);
    end_open(&b, options);
    b.answers = true;
    link_watch(b.link, "r/", 2);
    ck_assert_int_eq(link_peer(a.link, node(20), link_urls(b.link)->inbox), TERRANE_ERR_OK);
    ck_assert_int_eq(link_feed(a.link, 1, node(20), link_urls(b.link)->sub), TERRANE_ERR_OK);
    WAIT_FOR(a.count == 2, &a, &b);
    link_send(a.link, node(20), "packet", 6);
    link_publish(a.link, 1, "r/03/", 5);
    WAIT_FOR(end_count(&b, EVENT_MESSAGE) == 2, &a, &b);

    nng_socket req;
    char text[16];
    size_t size = sizeof text;
    ck_assert_int_eq(nng_req0_open(&req), 0);
    ck_assert_int_eq(nng_dial(req, link_urls(b.link)->query, NULL, 0), 0);
    ck_assert_int_eq(nng_send(req, (char[]){"ask"}, 3, 0), 0);
    WAIT_FOR(end_count(&b, EVENT_MESSAGE) == 3, &a, &b);
    ck_assert_int_eq(nng_recv(req, text, &size, 0), 0);
    ck_assert_uint_eq(size, 3);
    nng_close(req);

    link_unfeed(a.link, 1, node(20));
    link_unpeer(a.link, node(20));
    WAIT_FOR(link_quiet(b.link), &a, &b);
    end_close(&a);
    end_close(&b);
}

START_TEST(a_closed_link_leaves_nothing_behind)
{
    for (int i = 0; i < 3; i++) live_once();
    nng_fini();
}
END_TEST

SUITE_MAIN("link_quiet", a_closed_link_leaves_nothing_behind)
