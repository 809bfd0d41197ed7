#include "io/loop.h"

#include "common/check.h"

#include <ev.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct loop {
    struct ev_loop *ev;
    struct loop_handlers handlers;
    bool signals;
    uint32_t stop_signals;
    ev_async wake;
    ev_timer tick, deadline;
    ev_signal term, interrupt;
    struct ticker ticker;
    uint64_t deadline_us; /* UINT64_MAX: none */
};

uint64_t loop_now_us(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

void ticker_set(struct ticker *t, uint64_t interval_us, uint64_t now_us)
{
    if (interval_us == t->interval_us) return;
    uint64_t last_us = t->interval_us == 0 ? now_us : t->due_us - t->interval_us;
    t->interval_us = interval_us;
    t->due_us = last_us + interval_us;
    if (t->due_us < now_us) t->due_us = now_us;
}

uint64_t ticker_fire(struct ticker *t, uint64_t now_us)
{
    CHECK(t->interval_us != 0 && t->due_us <= now_us);
    uint64_t late_us = now_us - t->due_us;
    uint64_t missed = late_us / t->interval_us;
    t->ticks++;
    t->skipped += missed;
    if (late_us > t->interval_us / 4) t->late++;
    if (late_us > t->late_worst_us) t->late_worst_us = late_us;
    t->due_us += (missed + 1) * t->interval_us;
    return late_us;
}

/* libev's timers are relative to its own idea of now, which is as old as its last poll. */
static double seconds_until(struct loop *l, uint64_t at_us)
{
    uint64_t now_us = loop_now_us();
    ev_now_update(l->ev);
    return at_us > now_us ? (double)(at_us - now_us) * 1e-6 : 0.;
}

static void timer_arm(struct loop *l, ev_timer *timer, uint64_t at_us)
{
    ev_timer_stop(l->ev, timer);
    ev_timer_set(timer, seconds_until(l, at_us), 0.);
    ev_timer_start(l->ev, timer);
}

static void wake_came(struct ev_loop *ev, ev_async *watcher, int events)
{
    (void)ev, (void)events;
    struct loop *l = watcher->data;
    if (l->handlers.wake != NULL) l->handlers.wake(l->handlers.context);
}

static void tick_came(struct ev_loop *ev, ev_timer *watcher, int events)
{
    (void)ev, (void)events;
    struct loop *l = watcher->data;
    uint64_t now_us = loop_now_us();
    if (l->ticker.interval_us != 0 && l->ticker.due_us <= now_us) {
        uint64_t late_us = ticker_fire(&l->ticker, now_us);
        if (l->handlers.tick != NULL) l->handlers.tick(l->handlers.context, late_us);
    }
    if (l->ticker.interval_us != 0) timer_arm(l, &l->tick, l->ticker.due_us);
}

static void deadline_came(struct ev_loop *ev, ev_timer *watcher, int events)
{
    (void)ev, (void)events;
    struct loop *l = watcher->data;
    if (l->deadline_us > loop_now_us()) { /* libev rounds */
        if (l->deadline_us != UINT64_MAX) timer_arm(l, &l->deadline, l->deadline_us);
        return;
    }
    l->deadline_us = UINT64_MAX;
    if (l->handlers.deadline != NULL) l->handlers.deadline(l->handlers.context);
}

static void signal_came(struct ev_loop *ev, ev_signal *watcher, int events)
{
    (void)ev, (void)events;
    struct loop *l = watcher->data;
    if (l->stop_signals++ > 0) _exit(128 + watcher->signum);
    if (l->handlers.stop != NULL) l->handlers.stop(l->handlers.context);
}

enum terrane_error loop_open(const struct loop_handlers *handlers, bool signals, struct loop **out)
{
    *out = NULL;
    struct loop *l = calloc(1, sizeof *l);
    if (l == NULL) return TERRANE_ERR_MEMORY;
    l->ev = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);
    if (l->ev == NULL) {
        free(l);
        return TERRANE_ERR_MEMORY;
    }
    l->handlers = *handlers;
    l->signals = signals;
    l->deadline_us = UINT64_MAX;
    ev_async_init(&l->wake, wake_came);
    ev_timer_init(&l->tick, tick_came, 0., 0.);
    ev_timer_init(&l->deadline, deadline_came, 0., 0.);
    l->wake.data = l->tick.data = l->deadline.data = l;
    /* Time goes before what a flood of messages wants. */
    ev_set_priority(&l->tick, 2);
    ev_set_priority(&l->deadline, 1);
    ev_async_start(l->ev, &l->wake);
    if (signals) {
        signal(SIGPIPE, SIG_IGN);
        ev_signal_init(&l->term, signal_came, SIGTERM);
        ev_signal_init(&l->interrupt, signal_came, SIGINT);
        l->term.data = l->interrupt.data = l;
        ev_signal_start(l->ev, &l->term);
        ev_signal_start(l->ev, &l->interrupt);
    }
    *out = l;
    return TERRANE_ERR_OK;
}

void loop_close(struct loop *l)
{
    if (l == NULL) return;
    ev_async_stop(l->ev, &l->wake);
    ev_timer_stop(l->ev, &l->tick);
    ev_timer_stop(l->ev, &l->deadline);
    if (l->signals) {
        ev_signal_stop(l->ev, &l->term);
        ev_signal_stop(l->ev, &l->interrupt);
    }
    ev_loop_destroy(l->ev);
    free(l);
}

void loop_run(struct loop *l)
{
    ev_run(l->ev, 0);
}

void loop_poll(struct loop *l)
{
    ev_run(l->ev, EVRUN_NOWAIT);
}

void loop_stop(struct loop *l)
{
    ev_break(l->ev, EVBREAK_ALL);
}

void loop_wake(struct loop *l)
{
    ev_async_send(l->ev, &l->wake);
}

void loop_tick(struct loop *l, uint64_t interval_us)
{
    if (interval_us == l->ticker.interval_us) return;
    ticker_set(&l->ticker, interval_us, loop_now_us());
    if (interval_us == 0)
        ev_timer_stop(l->ev, &l->tick);
    else
        timer_arm(l, &l->tick, l->ticker.due_us);
}

void loop_deadline(struct loop *l, uint64_t at_us)
{
    if (at_us == l->deadline_us) return;
    l->deadline_us = at_us;
    if (at_us == UINT64_MAX)
        ev_timer_stop(l->ev, &l->deadline);
    else
        timer_arm(l, &l->deadline, at_us);
}

const struct ticker *loop_ticker(const struct loop *l)
{
    return &l->ticker;
}

struct ev_loop *loop_ev(struct loop *l)
{
    return l->ev;
}
