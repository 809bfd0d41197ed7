/* The query lane: many askers at once, slow answers, askers that go away. The askers use nng as any tool would. */
#include "ends.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>

#define ASKERS 200u

struct asker {
    nng_ctx context;
    nng_aio *aio;
    _Atomic int done; /* 1: sent, 2: answered, -1: failed */
    char answer[32];
};

static void asker_moved(void *argument)
{
    struct asker *a = argument;
    if (nng_aio_result(a->aio) != 0) {
        a->done = -1;
        return;
    }
    if (a->done == 0) {
        a->done = 1;
        nng_ctx_recv(a->context, a->aio);
        return;
    }
    nng_msg *message = nng_aio_get_msg(a->aio);
    size_t size = nng_msg_len(message) < 31 ? nng_msg_len(message) : 31;
    memcpy(a->answer, nng_msg_body(message), size);
    nng_msg_free(message);
    a->done = 2;
}

static void asker_ask(struct asker *a, nng_socket req, const char *text)
{
    nng_msg *message;
    *a = (struct asker){.done = 0};
    ck_assert_int_eq(nng_ctx_open(&a->context, req), 0);
    ck_assert_int_eq(nng_aio_alloc(&a->aio, asker_moved, a), 0);
    ck_assert_int_eq(nng_msg_alloc(&message, 0), 0);
    ck_assert_int_eq(nng_msg_append(message, text, strlen(text)), 0);
    nng_aio_set_msg(a->aio, message);
    nng_ctx_send(a->context, a->aio);
}

static void asker_close(struct asker *a)
{
    nng_ctx_close(a->context);
    nng_aio_free(a->aio);
}

static nng_socket req_dialled(const char *url)
{
    nng_socket req;
    ck_assert_int_eq(nng_req0_open(&req), 0);
    ck_assert_int_eq(nng_dial(req, url, NULL, 0), 0);
    return req;
}

static uint32_t answered(const struct asker *askers, uint32_t count)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) n += askers[i].done == 2;
    return n;
}

START_TEST(two_hundred_askers_at_once_each_get_their_own_answer)
{
    static struct asker askers[ASKERS];
    struct end server;
    char text[16];
    end_open(&server, (struct link_options){.query_url = ANY});
    server.answers = true;
    nng_socket req[4];
    for (uint32_t i = 0; i < 4; i++) req[i] = req_dialled(link_urls(server.link)->query);
    for (uint32_t i = 0; i < ASKERS; i++) {
        snprintf(text, sizeof text, "question %u", i);
        asker_ask(&askers[i], req[i % 4], text);
    }
    WAIT_FOR(answered(askers, ASKERS) == ASKERS, &server);
    for (uint32_t i = 0; i < ASKERS; i++) {
        snprintf(text, sizeof text, "question %u", i);
        ck_assert_str_eq(askers[i].answer, text);
        asker_close(&askers[i]);
    }
    ck_assert_uint_eq(end_counters(&server).replied, ASKERS);
    ck_assert_uint_eq(end_count(&server, EVENT_MESSAGE), ASKERS);
    for (uint32_t i = 0; i < 4; i++) nng_close(req[i]);
    WAIT_FOR(link_quiet(server.link), &server);
    end_close(&server);
}
END_TEST

START_TEST(an_answer_that_takes_its_time_holds_up_no_other)
{
    static struct asker slow[8], quick[40];
    struct end server;
    end_open(&server, (struct link_options){.query_url = ANY});
    nng_socket req = req_dialled(link_urls(server.link)->query);
    for (uint32_t i = 0; i < 8; i++) asker_ask(&slow[i], req, "slow");
    WAIT_FOR(end_count(&server, EVENT_MESSAGE) == 8, &server);
    server.answers = true;
    for (uint32_t i = 0; i < 40; i++) asker_ask(&quick[i], req, "quick");
    WAIT_FOR(answered(quick, 40) == 40, &server);
    ck_assert_uint_eq(answered(slow, 8), 0);
    /* Last asked, first answered. */
    for (uint32_t i = 8; i-- > 0;) {
        char text[32];
        snprintf(text, sizeof text, "at last %u", i);
        link_reply(server.link, server.items[i].event.token, text, strlen(text));
    }
    WAIT_FOR(answered(slow, 8) == 8, &server);
    for (uint32_t i = 0; i < 8; i++) ck_assert_int_eq(strncmp(slow[i].answer, "at last ", 8), 0);
    for (uint32_t i = 0; i < 8; i++) asker_close(&slow[i]);
    for (uint32_t i = 0; i < 40; i++) asker_close(&quick[i]);
    nng_close(req);
    WAIT_FOR(link_quiet(server.link), &server);
    end_close(&server);
}
END_TEST

START_TEST(a_second_answer_is_counted_and_goes_nowhere)
{
    static struct asker first, second;
    struct end server;
    end_open(&server, (struct link_options){.query_url = ANY});
    nng_socket req = req_dialled(link_urls(server.link)->query);
    asker_ask(&first, req, "a");
    WAIT_FOR(end_count(&server, EVENT_MESSAGE) == 1, &server);
    uint64_t token = server.items[0].event.token;
    link_reply(server.link, token, "one", 3);
    link_reply(server.link, token, "two", 3);
    link_reply(server.link, 0, "never", 5);
    link_reply(server.link, UINT64_MAX, "never", 5);
    WAIT_FOR(first.done == 2, &server);
    ck_assert_str_eq(first.answer, "one");
    ck_assert_uint_eq(end_counters(&server).reply_unknown, 3);
    asker_ask(&second, req, "b");
    WAIT_FOR(end_count(&server, EVENT_MESSAGE) == 2, &server);
    ck_assert_uint_ne(server.items[1].event.token, token);
    link_reply(server.link, token, "stale", 5);
    link_reply(server.link, server.items[1].event.token, "fresh", 5);
    WAIT_FOR(second.done == 2, &server);
    ck_assert_str_eq(second.answer, "fresh");
    asker_close(&first);
    asker_close(&second);
    nng_close(req);
    WAIT_FOR(link_quiet(server.link), &server);
    end_close(&server);
}
END_TEST

START_TEST(askers_that_leave_before_their_answer_cost_nothing)
{
    struct end server;
    static struct asker asker;
    end_open(&server, (struct link_options){.query_url = ANY});
    for (uint32_t round = 0; round < 200; round++) {
        nng_socket req = req_dialled(link_urls(server.link)->query);
        asker_ask(&asker, req, "gone");
        WAIT_FOR(end_count(&server, EVENT_MESSAGE) == 1, &server);
        asker_close(&asker);
        nng_close(req);
        link_reply(server.link, server.items[0].event.token, "nobody", 6);
        end_forget(&server);
    }
    nng_socket req = req_dialled(link_urls(server.link)->query);
    server.answers = true;
    asker_ask(&asker, req, "still there?");
    WAIT_FOR(asker.done == 2, &server);
    ck_assert_str_eq(asker.answer, "still there?");
    asker_close(&asker);
    nng_close(req);
    WAIT_FOR(link_quiet(server.link), &server);
    end_close(&server);
}
END_TEST

SUITE_MAIN("link_query", two_hundred_askers_at_once_each_get_their_own_answer,
           an_answer_that_takes_its_time_holds_up_no_other, a_second_answer_is_counted_and_goes_nowhere,
           askers_that_leave_before_their_answer_cost_nothing)
