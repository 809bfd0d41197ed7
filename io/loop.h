/* One event loop of one thread: time, ticks, wake-ups from other threads, signals. With io/store and io/http the only
 * user of libev.
 *
 * What it is not: it knows neither nng nor a core.
 * Time is CLOCK_MONOTONIC in microseconds everywhere.
 * Memory: opaque; handlers and their context must outlive it. */
#ifndef TERRANE_IO_LOOP_H
#define TERRANE_IO_LOOP_H

#include "common/errors.h"
#include "common/types.h"

struct loop;    /* opaque */
struct ev_loop; /* libev's, for adapters of other libraries (hiredis) */

uint64_t loop_now_us(void);

/* When ticks are due: start + n * interval, without drift. Pure arithmetic, apart from the loop so that it can be
 * tested with any clock. */
struct ticker {
    uint64_t interval_us; /* 0: no ticks */
    uint64_t due_us;      /* of the next tick */
    uint64_t ticks, late, skipped, late_worst_us;
};

/* The first tick is due one interval after now. Keeps the counters and, when only the interval changes, the phase. */
void ticker_set(struct ticker *t, uint64_t interval_us, uint64_t now_us);
/* Starts the tick that is due (CHECK: due_us <= now_us); returns how late it starts. Late by more than a quarter of
 * an interval counts as late. Ticks that have been missed whole are skipped and counted, never run in a burst. */
uint64_t ticker_fire(struct ticker *t, uint64_t now_us);

/* Any of them may be NULL. All are called from loop_run or loop_poll, never nested. */
struct loop_handlers {
    void *context;
    void (*wake)(void *context); /* loop_wake has been called, once or several times */
    void (*tick)(void *context, uint64_t late_us);
    void (*deadline)(void *context); /* the time of loop_deadline has come; it is then none */
    void (*stop)(void *context);     /* SIGTERM or SIGINT; a second one ends the process at once */
};

/* `signals`: take SIGTERM and SIGINT and ignore SIGPIPE; one loop a process. Errors: MEMORY. */
enum terrane_error loop_open(const struct loop_handlers *handlers, bool signals, struct loop **out) TERRANE_MUST_CHECK;
void loop_close(struct loop *l); /* NULL is fine */

void loop_run(struct loop *l);  /* until loop_stop */
void loop_poll(struct loop *l); /* what is due now, without waiting */
void loop_stop(struct loop *l);
void loop_wake(struct loop *l);                       /* from any thread */
void loop_tick(struct loop *l, uint64_t interval_us); /* 0: no ticks; the same as before: nothing happens */
void loop_deadline(struct loop *l, uint64_t at_us);   /* UINT64_MAX: none; replaces the former */
const struct ticker *loop_ticker(const struct loop *l);
struct ev_loop *loop_ev(struct loop *l);

#endif
