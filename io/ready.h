/* One fd that is readable when messages wait or time is due: what an embedded shell gives to a foreign event loop.
 * An epoll set of an eventfd (rung from any thread) and a timerfd (CLOCK_MONOTONIC, as loop_now_us).
 * Memory: the struct owns its three descriptors between ready_open and ready_close. */
#ifndef TERRANE_IO_READY_H
#define TERRANE_IO_READY_H

#include "common/errors.h"
#include "common/types.h"

struct ready {
    int fd, bell, timer;
    uint64_t armed_us; /* UINT64_MAX: not armed */
};

enum terrane_error ready_open(struct ready *r) TERRANE_MUST_CHECK; /* Errors: LIMIT (descriptors) */
void ready_close(struct ready *r);
void ready_ring(struct ready *r); /* from any thread */
/* Silences both until the next ring or arming. */
void ready_clear(struct ready *r);
/* Readable at that time. Later than what is armed already: the earlier time stays (a needless wake-up is cheaper than
 * a system call a command). UINT64_MAX: nothing. */
void ready_at(struct ready *r, uint64_t at_us);

#endif
