/* An agent's word reaches a coordinator, whatever state the coordinators are in. The coordinators are links whose
 * answers the tests give. */
#include "ends.h"

#include "proto/messages.h"
#include "tools/reports.h"

#define LIVES 3u

/* There is no close: kept, so that nobody takes them for leaked. */
static struct reports *all[8];
static uint32_t all_count;

static struct reports *reports_to(const char *urls)
{
    struct reports *r;
    ck_assert_int_eq(reports_open(&r), TERRANE_ERR_OK);
    ck_assert_int_eq(reports_add(r, urls), TERRANE_ERR_OK);
    all[all_count++] = r;
    return r;
}

static uint32_t open_count(struct reports *r)
{
    (void)reports_step(r, loop_now_us());
    return reports_counts(r).open;
}

/* Whose death the n-th question told. */
static uint64_t told_of(const struct end *e, uint32_t n)
{
    struct death death;
    const struct seen *s = end_nth(e, EVENT_MESSAGE, n);
    ck_assert_ptr_nonnull(s);
    ck_assert_int_eq(death_decode(cursor_of(s->bytes, s->event.size), &death), TERRANE_ERR_OK);
    return death.node.v;
}

static void answer(struct end *e, uint32_t n, bool done)
{
    struct writer w = {0};
    const struct seen *s = end_nth(e, EVENT_MESSAGE, n);
    ck_assert_ptr_nonnull(s);
    if (done)
        done_encode(&w, &(struct done){.count = 1});
    else
        fault_encode(&w, &(struct fault){.error = TERRANE_ERR_NOT_READY});
    link_reply(e->link, s->event.token, w.data, w.size);
    writer_close(&w);
}

START_TEST(a_death_is_told_to_all_until_one_has_taken_it)
{
    static struct end silent, leader;
    char urls[2 * LIMIT_URL];
    end_open(&silent, (struct link_options){.query_url = ANY});
    end_open(&leader, (struct link_options){.query_url = ANY});
    snprintf(urls, sizeof urls, "%s,%s", link_urls(silent.link)->query, link_urls(leader.link)->query);
    struct reports *r = reports_to(urls);
    reports_death(r, node(77), loop_now_us());
    WAIT_FOR(open_count(r) == 1 && end_count(&leader, EVENT_MESSAGE) == 1, &silent, &leader);
    answer(&leader, 0, false); /* it does not lead yet */
    WAIT_FOR(open_count(r) == 1 && end_count(&leader, EVENT_MESSAGE) == 2, &silent, &leader);
    answer(&leader, 1, true);
    WAIT_FOR(open_count(r) == 0, &silent, &leader);
    ck_assert_uint_eq(told_of(&leader, 0), 77);
    ck_assert_uint_eq(told_of(&leader, 1), 77);
    ck_assert_uint_eq(told_of(&silent, 0), 77);
    ck_assert_uint_eq(reports_counts(r).told, 1);
}
END_TEST

START_TEST(deaths_are_told_in_order_each_once)
{
    static struct end leader;
    end_open(&leader, (struct link_options){.query_url = ANY});
    struct reports *r = reports_to(link_urls(leader.link)->query);
    for (uint32_t i = 0; i < LIVES; i++) reports_death(r, node(100 + i), loop_now_us());
    for (uint32_t i = 0; i < LIVES; i++) {
        WAIT_FOR(open_count(r) == LIVES - i && end_count(&leader, EVENT_MESSAGE) == i + 1, &leader);
        ck_assert_uint_eq(told_of(&leader, i), 100 + i);
        answer(&leader, i, true);
    }
    WAIT_FOR(open_count(r) == 0, &leader);
    ck_assert_uint_eq(end_count(&leader, EVENT_MESSAGE), LIVES);
    ck_assert_uint_eq(reports_counts(r).told, LIVES);
}
END_TEST

START_TEST(a_coordinator_that_was_away_is_told_when_it_is_back)
{
    static struct end leader;
    char url[LIMIT_URL];
    end_open(&leader, (struct link_options){.query_url = ANY});
    snprintf(url, sizeof url, "%s", link_urls(leader.link)->query);
    end_close(&leader);
    struct reports *r = reports_to(url);
    reports_death(r, node(5), loop_now_us());
    ck_assert_uint_eq(open_count(r), 1);
    end_open(&leader, (struct link_options){.query_url = url});
    WAIT_FOR(open_count(r) == 1 && end_count(&leader, EVENT_MESSAGE) == 1, &leader);
    answer(&leader, 0, true);
    WAIT_FOR(open_count(r) == 0, &leader);
}
END_TEST

START_TEST(more_deaths_than_can_be_kept_give_up_the_oldest_and_say_so)
{
    struct reports *r = reports_to("tcp://127.0.0.1:9");
    for (uint32_t i = 0; i < REPORTS_DEATHS + 2; i++) reports_death(r, node(1000 + i), loop_now_us());
    ck_assert_uint_eq(reports_counts(r).open, REPORTS_DEATHS);
    ck_assert_uint_eq(reports_counts(r).given_up, 2);
    ck_assert_int_eq(reports_add(r, "udp://here"), TERRANE_ERR_ADDRESS);
    ck_assert_int_eq(reports_add(r, "tcp://127.0.0.1:9,"), TERRANE_ERR_OK);
    ck_assert_int_eq(reports_add(r, ",tcp://127.0.0.1:9"), TERRANE_ERR_ADDRESS);
}
END_TEST

SUITE_MAIN("reports", a_death_is_told_to_all_until_one_has_taken_it, deaths_are_told_in_order_each_once,
           a_coordinator_that_was_away_is_told_when_it_is_back,
           more_deaths_than_can_be_kept_give_up_the_oldest_and_say_so)
