#include "tools/agent.h"

#include "common/check.h"
#include "io/loop.h"
#include "io/shell.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RESTART_MS   100u
#define WAIT_US_MOST 5000000u
#define OLD_US       2000000u /* who has lived so long has not failed at its start */
#define HOLD_LOOK_US 50000u

struct agent {
    struct agent_options options;
    struct reports *reports;
    struct ward wards[AGENT_WARDS];
    uint32_t count;
    bool finishing;
};

enum terrane_error agent_open(const struct agent_options *options, struct agent **out)
{
    struct agent *a = calloc(1, sizeof *a);
    *out = a;
    if (a == NULL) return TERRANE_ERR_MEMORY;
    a->options = *options;
    if (a->options.restart_ms == 0) a->options.restart_ms = RESTART_MS;
    return reports_open(&a->reports);
}

enum terrane_error agent_tell(struct agent *a, const char *queries)
{
    return reports_add(a->reports, queries);
}

static bool start(struct agent *a, struct ward *w)
{
    char variable[40];
    struct child_options options = w->options.child;
    if (w->options.node) {
        w->node = shell_node_id();
        snprintf(variable, sizeof variable, "TERRANE_NODE_ID=%016" PRIx64, w->node.v);
        options.variable = variable;
    }
    w->started_us = loop_now_us();
    if (!child_start(&w->child, &options)) return false;
    w->ended_us = 0;
    w->starts++;
    if (a->options.changed != NULL) a->options.changed(a->options.context, w);
    return true;
}

struct ward *agent_add(struct agent *a, const struct ward_options *options)
{
    CHECK(a->count < AGENT_WARDS);
    struct ward *w = &a->wards[a->count];
    *w = (struct ward){.options = *options, .wait_us = a->options.restart_ms * 1000};
    a->count++;
    if (start(a, w)) return w;
    a->count--;
    return NULL;
}

void agent_drop_last(struct agent *a)
{
    CHECK(a->count > 0);
    struct ward *w = &a->wards[--a->count];
    child_signal(&w->child, SIGKILL);
    child_wait(&w->child, 1000);
    child_close(&w->child);
}

uint32_t agent_count(const struct agent *a)
{
    return a->count;
}

struct ward *agent_ward(struct agent *a, uint32_t index)
{
    CHECK(index < a->count);
    return &a->wards[index];
}

/* Dies young: waits longer each time. */
static void plan(struct agent *a, struct ward *w, uint64_t now_us)
{
    uint64_t first_us = a->options.restart_ms * 1000, waited_us = w->wait_us;
    w->wait_us = w->deaths == 1 || now_us - w->started_us >= OLD_US ? first_us : waited_us * 2;
    if (w->wait_us > WAIT_US_MOST) w->wait_us = WAIT_US_MOST;
    w->due_us = now_us + w->wait_us;
}

static void ended(struct agent *a, struct ward *w, uint64_t now_us)
{
    char how[80];
    child_describe(&w->child, how, sizeof how);
    w->ended_us = now_us;
    w->deaths++;
    if (w->options.node) reports_death(a->reports, w->node, now_us);
    plan(a, w, now_us);
    fprintf(stderr, "%s: %s died: %s; it had lived %.1f s", a->options.name, w->options.child.name, how,
            (double)(now_us - w->started_us) / 1e6);
    if (!a->finishing) fprintf(stderr, "; starts again in %.1f s", (double)w->wait_us / 1e6);
    if (w->options.child.log != NULL) fprintf(stderr, "; see %s", w->options.child.log);
    fputc('\n', stderr);
    child_close(&w->child);
    if (a->options.changed != NULL) a->options.changed(a->options.context, w);
}

static bool is_held(const struct agent *a, const struct ward *w)
{
    char path[600];
    if (a->options.hold_folder == NULL) return false;
    snprintf(path, sizeof path, "%s/hold-%s", a->options.hold_folder, w->options.child.name);
    return access(path, F_OK) == 0;
}

static void restart(struct agent *a, struct ward *w, uint64_t now_us)
{
    if (is_held(a, w)) {
        w->due_us = now_us + HOLD_LOOK_US;
        return;
    }
    if (start(a, w)) return;
    fprintf(stderr, "%s: %s can't be started again: %s\n", a->options.name, w->options.child.name, strerror(errno));
    w->ended_us = now_us;
    plan(a, w, now_us);
}

/* What is due; returns when the next thing is. */
static uint64_t step(struct agent *a)
{
    uint64_t now_us = loop_now_us(), next_us = UINT64_MAX;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->wards[i].ended_us == 0 && child_ended(&a->wards[i].child)) ended(a, &a->wards[i], now_us);
    uint64_t report_us = reports_step(a->reports, now_us);
    if (report_us < next_us) next_us = report_us;
    for (uint32_t i = 0; i < a->count && !a->finishing; i++) {
        struct ward *w = &a->wards[i];
        if (w->ended_us != 0 && now_us >= w->due_us) restart(a, w, now_us);
        if (w->ended_us != 0 && w->due_us < next_us) next_us = w->due_us;
    }
    return next_us;
}

static int milliseconds_until(uint64_t at_us, uint64_t now_us, int most_ms)
{
    if (at_us <= now_us) return 0;
    uint64_t ms = (at_us - now_us + 999) / 1000;
    return ms < (uint64_t)most_ms ? (int)ms : most_ms;
}

uint64_t agent_deaths(const struct agent *a)
{
    uint64_t deaths = 0;
    for (uint32_t i = 0; i < a->count; i++) deaths += a->wards[i].deaths;
    return deaths;
}

void agent_wait(struct agent *a, int fd, int timeout_ms)
{
    struct pollfd fds[AGENT_WARDS + 2];
    nfds_t count = 0;
    uint64_t deaths = agent_deaths(a), next_us = step(a);
    if (agent_deaths(a) != deaths) return; /* the caller may not want it to be started again */
    fds[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    fds[count++] = (struct pollfd){.fd = reports_fd(a->reports), .events = POLLIN};
    for (uint32_t i = 0; i < a->count; i++)
        if (a->wards[i].ended_us == 0) fds[count++] = (struct pollfd){.fd = a->wards[i].child.end, .events = POLLIN};
    (void)poll(fds, count, milliseconds_until(next_us, loop_now_us(), timeout_ms));
    (void)step(a);
}

void agent_finish(struct agent *a, int timeout_ms)
{
    uint64_t until_us = loop_now_us() + (uint64_t)timeout_ms * 1000;
    a->finishing = true;
    (void)step(a);
    while (reports_counts(a->reports).open > 0 && loop_now_us() < until_us) agent_wait(a, -1, 50);
}

const struct reports *agent_reports(const struct agent *a)
{
    return a->reports;
}
