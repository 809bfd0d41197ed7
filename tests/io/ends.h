/* Links in one test process, each with what it has seen; waiting for a condition with a deadline, never for a time. */
#ifndef TERRANE_TESTS_IO_ENDS_H
#define TERRANE_TESTS_IO_ENDS_H

#include "common/array.h"
#include "io/link.h"
#include "io/loop.h"
#include "io/ready.h"
#include "suite.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* nng 1.5.2 leaks a message that is being sent at the moment when its pipe closes. Where nothing is under way
 * (test_link_quiet, which also runs under valgrind) nothing is forgiven. */
#ifndef ENDS_FORGIVE_NOTHING
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libnng.so";
}
#endif

#define ANY "tcp://127.0.0.1:0"

struct seen {
    struct event event; /* bytes: owned copy */
    uint8_t *bytes;
};

struct end {
    struct link *link;
    struct ready ready;
    struct seen *items;
    uint32_t count, room;
    bool answers; /* replies to every query with what it asked */
};

static inline void end_ring(void *context)
{
    ready_ring(&((struct end *)context)->ready);
}

static inline void end_seen(void *context, const struct event *event)
{
    struct end *e = context;
    ARRAY_RESERVE(e->items, e->room, (size_t)e->count + 1);
    struct seen *s = &e->items[e->count++];
    *s = (struct seen){.event = *event, .bytes = malloc(event->size + 1)};
    ck_assert_ptr_nonnull(s->bytes);
    if (event->size > 0) memcpy(s->bytes, event->bytes, event->size);
    s->bytes[event->size] = 0;
    if (e->answers && event->kind == EVENT_MESSAGE && event->lane == LANE_QUERY)
        link_reply(e->link, event->token, event->bytes, event->size);
}

static inline void end_open(struct end *e, struct link_options options)
{
    struct link_fault fault;
    *e = (struct end){0};
    ck_assert_int_eq(ready_open(&e->ready), TERRANE_ERR_OK);
    options.wake = end_ring;
    options.wake_context = e;
    enum terrane_error error = link_open(&options, &e->link, &fault);
    ck_assert_msg(error == TERRANE_ERR_OK, "%s", fault.text);
}

static inline void end_forget(struct end *e)
{
    for (uint32_t i = 0; i < e->count; i++) free(e->items[i].bytes);
    e->count = 0;
}

static inline void end_close(struct end *e)
{
    link_close(e->link);
    ready_close(&e->ready);
    end_forget(e);
    free(e->items);
    *e = (struct end){0};
}

static inline uint32_t end_count(const struct end *e, enum event_kind kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->count; i++) n += e->items[i].event.kind == kind;
    return n;
}

/* The n-th event of that kind, from 0; NULL: not yet. */
static inline const struct seen *end_nth(const struct end *e, enum event_kind kind, uint32_t n)
{
    for (uint32_t i = 0; i < e->count; i++)
        if (e->items[i].event.kind == kind && n-- == 0) return &e->items[i];
    return NULL;
}

static inline void end_pump(struct end *e)
{
    ready_clear(&e->ready);
    while (link_drain(e->link, 256, end_seen, e)) continue;
    link_flush(e->link);
}

/* Lets all ends run until the condition holds; fails after 20 s (sanitizers, two shared cores). */
#define WAIT_FOR(condition, ...)                                                                                       \
    do {                                                                                                               \
        struct end *const wait_ends[] = {__VA_ARGS__};                                                                 \
        uint64_t wait_limit_us = loop_now_us() + 20000000u;                                                            \
        for (;;) {                                                                                                     \
            struct pollfd wait_fds[8];                                                                                 \
            size_t wait_count = sizeof wait_ends / sizeof *wait_ends;                                                  \
            for (size_t wait_i = 0; wait_i < wait_count; wait_i++) {                                                   \
                end_pump(wait_ends[wait_i]);                                                                           \
                wait_fds[wait_i] = (struct pollfd){.fd = wait_ends[wait_i]->ready.fd, .events = POLLIN};               \
            }                                                                                                          \
            if (condition) break;                                                                                      \
            ck_assert_msg(loop_now_us() < wait_limit_us, "waited in vain for: %s", #condition);                        \
            poll(wait_fds, wait_count, 2);                                                                             \
        }                                                                                                              \
    } while (0)

static inline struct link_counters end_counters(const struct end *e)
{
    struct link_counters c;
    link_counters(e->link, &c);
    return c;
}

static inline struct node_id node(uint64_t v)
{
    return (struct node_id){v};
}

/* A process that receives: io_peer ROLE; says on its stdout, a line each, its url and then what it gets. */
struct child {
    pid_t pid;
    int out;
    char url[LIMIT_URL];
};

static inline void child_line(struct child *c, char *line, size_t room)
{
    size_t size = 0;
    while (size + 1 < room) {
        ssize_t got = read(c->out, line + size, 1);
        ck_assert_int_eq(got, 1);
        if (line[size] == '\n') break;
        size++;
    }
    line[size] = '\0';
}

/* role: "inbox" or "sub"; url: where it listens. Its url is known on return. */
static inline void child_start(struct child *c, const char *role, const char *url)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    char *const argv[] = {(char *)IO_PEER, (char *)role, (char *)url, NULL};
    char *const environment[] = {NULL};
    ck_assert_int_eq(posix_spawn(&c->pid, IO_PEER, &actions, NULL, argv, environment), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    c->out = ends[0];
    child_line(c, c->url, sizeof c->url);
}

static inline void child_kill(struct child *c)
{
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
    close(c->out);
}

#endif
