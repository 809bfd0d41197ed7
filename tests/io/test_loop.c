/* Ticks by any clock, and the loop's timers and wake-ups by the real one. */
#include "io/loop.h"
#include "suite.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

START_TEST(ticks_are_due_without_drift)
{
    struct ticker t = {0};
    ticker_set(&t, 50000, 1000000);
    for (uint64_t i = 1; i <= 1000; i++) {
        ck_assert_uint_eq(t.due_us, 1000000 + i * 50000);
        /* Each starts a little late; the next is not later for that. */
        ck_assert_uint_eq(ticker_fire(&t, t.due_us + 7000), 7000);
    }
    ck_assert_uint_eq(t.ticks, 1000);
    ck_assert_uint_eq(t.late, 0);
    ck_assert_uint_eq(t.skipped, 0);
    ck_assert_uint_eq(t.late_worst_us, 7000);
}
END_TEST

START_TEST(a_tick_is_late_beyond_a_quarter_of_its_interval)
{
    struct ticker t = {0};
    ticker_set(&t, 50000, 0);
    ticker_fire(&t, t.due_us + 12500);
    ck_assert_uint_eq(t.late, 0);
    ticker_fire(&t, t.due_us + 12501);
    ck_assert_uint_eq(t.late, 1);
}
END_TEST

START_TEST(a_stall_skips_what_was_missed_and_counts_it)
{
    struct ticker t = {0};
    ticker_set(&t, 50000, 0);
    ck_assert_uint_eq(ticker_fire(&t, 50000 + 230000), 230000);
    ck_assert_uint_eq(t.ticks, 1);
    ck_assert_uint_eq(t.skipped, 4);
    ck_assert_uint_eq(t.late, 1);
    /* Back in the old rhythm, in the future: no burst. */
    ck_assert_uint_eq(t.due_us, 300000);
}
END_TEST

START_TEST(another_interval_counts_from_the_last_tick)
{
    struct ticker t = {0};
    ticker_set(&t, 50000, 0);
    ticker_fire(&t, 50000);
    ticker_set(&t, 20000, 55000);
    ck_assert_uint_eq(t.due_us, 70000);
    ticker_set(&t, 20000, 60000);
    ck_assert_uint_eq(t.due_us, 70000);
    ticker_set(&t, 100000, 60000);
    ck_assert_uint_eq(t.due_us, 150000);
    ticker_set(&t, 16666, 140000); /* its first is overdue: at once, not in the past */
    ck_assert_uint_eq(t.due_us, 140000);
}
END_TEST

/* What the handlers saw. */
struct probe {
    struct loop *loop;
    uint32_t wakes, ticks, deadlines, stops, stop_after;
    uint64_t deadline_at_us, early, began_us;
    _Atomic uint32_t calls;
};

static void on_wake(void *context)
{
    struct probe *p = context;
    p->wakes++;
    if (p->calls == 4000) loop_stop(p->loop);
}

static void on_tick(void *context, uint64_t late_us)
{
    struct probe *p = context;
    (void)late_us;
    if (++p->ticks == p->stop_after) loop_stop(p->loop);
}

static void on_deadline(void *context)
{
    struct probe *p = context;
    p->deadlines++;
    if (loop_now_us() < p->deadline_at_us) p->early++;
    if (p->deadlines == p->stop_after) {
        loop_stop(p->loop);
        return;
    }
    p->deadline_at_us = loop_now_us() + 3000;
    loop_deadline(p->loop, p->deadline_at_us);
}

static void on_stop(void *context)
{
    struct probe *p = context;
    p->stops++;
    loop_stop(p->loop);
}

static void probe_open(struct probe *p, bool signals)
{
    *p = (struct probe){.began_us = loop_now_us()};
    struct loop_handlers handlers = {
        .context = p, .wake = on_wake, .tick = on_tick, .deadline = on_deadline, .stop = on_stop};
    ck_assert_int_eq(loop_open(&handlers, signals, &p->loop), TERRANE_ERR_OK);
}

static void *wake_a_thousand_times(void *context)
{
    struct probe *p = context;
    for (int i = 0; i < 1000; i++) {
        p->calls++;
        loop_wake(p->loop);
    }
    return NULL;
}

START_TEST(wakes_from_four_threads_are_never_lost)
{
    struct probe p;
    pthread_t threads[4];
    probe_open(&p, false);
    for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, wake_a_thousand_times, &p), 0);
    loop_run(p.loop); /* ends only by a wake after the last call */
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    ck_assert_uint_ge(p.wakes, 1);
    ck_assert_uint_le(p.wakes, 4000);
    loop_close(p.loop);
}
END_TEST

START_TEST(ticks_come_at_their_rate)
{
    struct probe p;
    probe_open(&p, false);
    p.stop_after = 20;
    loop_tick(p.loop, 5000);
    loop_run(p.loop);
    ck_assert_uint_ge(loop_now_us() - p.began_us, 20 * 5000);
    const struct ticker *t = loop_ticker(p.loop);
    ck_assert_uint_eq(t->ticks, 20);
    /* However slow the machine: nothing is run twice, what was missed is counted. */
    ck_assert_uint_ge((t->ticks + t->skipped + 1) * 5000 + 5000, t->due_us - p.began_us);
    loop_close(p.loop);
}
END_TEST

START_TEST(a_deadline_never_comes_early_and_comes_once)
{
    struct probe p;
    probe_open(&p, false);
    p.stop_after = 10;
    p.deadline_at_us = loop_now_us() + 3000;
    loop_deadline(p.loop, UINT64_MAX);
    loop_deadline(p.loop, p.deadline_at_us + 1000000);
    loop_deadline(p.loop, p.deadline_at_us);
    loop_run(p.loop);
    ck_assert_uint_eq(p.deadlines, 10);
    ck_assert_uint_eq(p.early, 0);
    loop_close(p.loop);
}
END_TEST

START_TEST(a_deadline_in_the_past_comes_at_once)
{
    struct probe p;
    probe_open(&p, false);
    p.stop_after = 1;
    loop_deadline(p.loop, 1);
    loop_run(p.loop);
    ck_assert_uint_eq(p.deadlines, 1);
    loop_close(p.loop);
}
END_TEST

START_TEST(a_termination_signal_stops_gracefully)
{
    const int signals[] = {SIGTERM, SIGINT};
    for (int i = 0; i < 2; i++) {
        struct probe p;
        probe_open(&p, true);
        kill(getpid(), signals[i]);
        loop_run(p.loop);
        ck_assert_uint_eq(p.stops, 1);
        loop_close(p.loop);
    }
}
END_TEST

SUITE_MAIN("loop", ticks_are_due_without_drift, a_tick_is_late_beyond_a_quarter_of_its_interval,
           a_stall_skips_what_was_missed_and_counts_it, another_interval_counts_from_the_last_tick,
           wakes_from_four_threads_are_never_lost, ticks_come_at_their_rate,
           a_deadline_never_comes_early_and_comes_once, a_deadline_in_the_past_comes_at_once,
           a_termination_signal_stops_gracefully)
