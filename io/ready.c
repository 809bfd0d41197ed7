#include "io/ready.h"

#include "common/check.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static bool add(int set, int fd)
{
    struct epoll_event interest = {.events = EPOLLIN, .data.fd = fd};
    return fd >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &interest) == 0;
}

enum terrane_error ready_open(struct ready *r)
{
    r->fd = epoll_create1(EPOLL_CLOEXEC);
    r->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    r->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    r->armed_us = UINT64_MAX;
    if (r->fd >= 0 && add(r->fd, r->bell) && add(r->fd, r->timer)) return TERRANE_ERR_OK;
    ready_close(r);
    return TERRANE_ERR_LIMIT;
}

void ready_close(struct ready *r)
{
    if (r->fd >= 0) close(r->fd);
    if (r->bell >= 0) close(r->bell);
    if (r->timer >= 0) close(r->timer);
    r->fd = r->bell = r->timer = -1;
}

void ready_ring(struct ready *r)
{
    uint64_t one = 1;
    ssize_t written = write(r->bell, &one, sizeof one);
    (void)written; /* a full counter is rung already */
}

void ready_clear(struct ready *r)
{
    uint64_t count;
    if (read(r->bell, &count, sizeof count) < 0) count = 0; /* it was not rung */
    if (read(r->timer, &count, sizeof count) == (ssize_t)sizeof count) r->armed_us = UINT64_MAX;
}

void ready_at(struct ready *r, uint64_t at_us)
{
    if (at_us >= r->armed_us) return;
    r->armed_us = at_us;
    if (at_us == 0) at_us = 1; /* all zero would disarm */
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(at_us / 1000000u), .tv_nsec = (long)(at_us % 1000000u) * 1000}};
    CHECK(timerfd_settime(r->timer, TFD_TIMER_ABSTIME, &when, NULL) == 0);
}
