#include "tools/reports.h"

#include "common/check.h"
#include "common/limits.h"
#include "io/caller.h"
#include "proto/messages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A coordinator that does not lead, or has no store, says so at once: it is asked again a little later. */
#define AGAIN_US      20000u
#define AGAIN_US_MOST 1000000u
#define REDIAL_MS     100u

struct line {
    struct caller *caller;
    struct node_id asked;
    uint64_t again_us, wait_us;
};

struct untold {
    struct node_id node;
    uint64_t since_us;
};

struct reports {
    int bell; /* an eventfd, rung by nng's threads */
    struct line lines[REPORTS_URLS];
    uint32_t line_count;
    struct untold deaths[REPORTS_DEATHS]; /* oldest first */
    struct reports_counts counts;         /* counts.open: of deaths */
    struct writer question;
};

static void ring(void *context)
{
    const struct reports *r = context;
    uint64_t one = 1;
    ssize_t written = write(r->bell, &one, sizeof one);
    (void)written; /* full: it is ringing already */
}

static enum terrane_error add_line(struct reports *r, const char *url, size_t size)
{
    char text[LIMIT_URL];
    if (size == 0 || size >= sizeof text) return TERRANE_ERR_ADDRESS;
    if (r->line_count == REPORTS_URLS) return TERRANE_ERR_LIMIT;
    snprintf(text, sizeof text, "%.*s", (int)size, url);
    if (strncmp(text, "tcp://", 6) != 0) return TERRANE_ERR_ADDRESS;
    struct line *l = &r->lines[r->line_count];
    *l = (struct line){.wait_us = AGAIN_US};
    enum terrane_error error = caller_open(text, REDIAL_MS, ring, r, &l->caller);
    if (error == TERRANE_ERR_OK) r->line_count++;
    return error;
}

enum terrane_error reports_open(struct reports **out)
{
    struct reports *r = calloc(1, sizeof *r);
    *out = r;
    if (r == NULL) return TERRANE_ERR_MEMORY;
    r->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return r->bell < 0 ? TERRANE_ERR_LIMIT : TERRANE_ERR_OK;
}

enum terrane_error reports_add(struct reports *r, const char *urls)
{
    enum terrane_error error = TERRANE_ERR_OK;
    for (const char *at = urls; error == TERRANE_ERR_OK && *at != '\0';) {
        size_t size = strcspn(at, ",");
        error = add_line(r, at, size);
        at += size + (at[size] == ',');
    }
    return error;
}

int reports_fd(const struct reports *r)
{
    return r->bell;
}

static void forget(struct reports *r, uint32_t at)
{
    memmove(&r->deaths[at], &r->deaths[at + 1], (r->counts.open - at - 1) * sizeof r->deaths[0]);
    r->counts.open--;
}

void reports_death(struct reports *r, struct node_id node, uint64_t now_us)
{
    if (r->counts.open == REPORTS_DEATHS) {
        forget(r, 0);
        r->counts.given_up++;
    }
    r->deaths[r->counts.open++] = (struct untold){node, now_us};
    for (uint32_t i = 0; i < r->line_count; i++) r->lines[i].wait_us = AGAIN_US;
}

static void told(struct reports *r, struct node_id node, uint64_t now_us)
{
    for (uint32_t i = 0; i < r->counts.open; i++) {
        if (r->deaths[i].node.v != node.v) continue;
        uint64_t took_us = now_us - r->deaths[i].since_us;
        if (took_us > r->counts.told_us_worst) r->counts.told_us_worst = took_us;
        r->counts.told++;
        forget(r, i);
        return;
    }
}

static void take_answer(struct reports *r, struct line *l, uint64_t now_us)
{
    const uint8_t *bytes;
    size_t size;
    struct done done;
    if (!caller_answer(l->caller, &bytes, &size)) return;
    if (done_decode(cursor_of(bytes, size), &done) == TERRANE_ERR_OK) {
        told(r, l->asked, now_us);
        l->wait_us = AGAIN_US;
        l->again_us = now_us;
        return;
    }
    l->again_us = now_us + l->wait_us;
    l->wait_us = l->wait_us * 2 < AGAIN_US_MOST ? l->wait_us * 2 : AGAIN_US_MOST;
}

static void ask(struct reports *r, struct line *l, uint64_t now_us)
{
    l->asked = r->deaths[0].node;
    writer_clear(&r->question);
    death_encode(&r->question, &(struct death){.node = l->asked});
    if (caller_ask(l->caller, r->question.data, r->question.size) != TERRANE_ERR_OK) l->again_us = now_us + l->wait_us;
}

uint64_t reports_step(struct reports *r, uint64_t now_us)
{
    uint64_t next_us = UINT64_MAX, rung;
    ssize_t got = read(r->bell, &rung, sizeof rung);
    (void)got; /* nothing rang: looking costs nothing */
    for (uint32_t i = 0; i < r->line_count; i++) take_answer(r, &r->lines[i], now_us);
    for (uint32_t i = 0; i < r->line_count && r->counts.open > 0; i++) {
        struct line *l = &r->lines[i];
        if (!caller_idle(l->caller)) continue;
        if (now_us >= l->again_us) ask(r, l, now_us);
        if (caller_idle(l->caller) && l->again_us < next_us) next_us = l->again_us;
    }
    return next_us;
}

struct reports_counts reports_counts(const struct reports *r)
{
    return r->counts;
}
