/* Ties a pure core to the network, the clock, the store and the log: what happens becomes events, the outbox is carried
 * out in order.
 *
 * Two ways to run it:
 *   - a program of its own: shell_open, shell_start, shell_run (a libev loop, until SIGTERM or SIGINT);
 *   - inside somebody else's loop (libterrane): shell_open with `embedded`, shell_start, then poll shell_fd for
 *     reading and call shell_dispatch. That fd becomes readable for messages and for due time.
 *
 * What it is not: it knows no message, but that it adds its own counters to a STATUS answer (vitals.h), and that a
 * query that its core leaves unanswered is answered here after a while, with a FAULT, since every query gets exactly
 * one reply.
 *
 * One thread; nothing blocks but shell_run and shell_finish.
 * Memory: opaque; the core stays the caller's and must outlive the shell. */
#ifndef TERRANE_IO_SHELL_H
#define TERRANE_IO_SHELL_H

#include "common/core.h"
#include "common/metrics.h"
#include "io/link.h"
#include "io/loop.h"

struct shell; /* opaque */

struct shell_core {
    void *core;
    void (*step)(void *core, const struct event *in, uint64_t now_us, struct outbox *out);
    uint64_t (*deadline_us)(const void *core); /* UINT64_MAX: none */
    uint64_t (*tick_us)(const void *core); /* asked whenever the core has stepped; NULL: no ticks. Not when embedded */
    /* A core that has something to say before the process ends: SIGTERM and SIGINT call `close`, once, and the loop
     * ends when `closed` says so, asked whenever the core has stepped, even if no signal came. A second signal ends
     * the process at once (loop.h). NULL, both: the first signal ends the loop. */
    void (*close)(void *core, uint64_t now_us, struct outbox *out);
    bool (*closed)(const void *core);
};

/* Where OUTPUT_STORE goes. The answer is shell_stored(token), at once or later, exactly once. Without a store it is
 * STORE_UNAVAILABLE. */
struct shell_store {
    void *context;
    void (*execute)(void *context, enum store_operation operation, uint64_t token, const uint8_t *bytes, size_t size);
};

/* Where OUTPUT_LOG and the shell's own lines go: logfmt without time and level, not NUL-terminated. NULL: nowhere. */
struct shell_log {
    void *context;
    void (*write)(void *context, enum log_level level, const char *line, size_t size);
};

struct shell_options {
    struct link_options link; /* wake is the shell's */
    struct shell_log log;
    uint64_t query_patience_us; /* after that an unanswered query gets a FAULT; 0: 5 s */
    bool embedded;              /* no libev loop, no signals: shell_fd and shell_dispatch */
    bool no_signals;            /* leave SIGTERM, SIGINT and SIGPIPE alone (several shells in one process) */
};

/* A node id for this incarnation: random, above the reserved ones (core.h). */
struct node_id shell_node_id(void);

/* Makes the sockets, so that their urls are known before the core is made. Errors: as link_open; MEMORY, LIMIT (file
 * descriptors). */
enum terrane_error shell_open(const struct shell_options *options, struct shell **out,
                              struct link_fault *fault) TERRANE_MUST_CHECK;
const struct link_urls *shell_urls(const struct shell *s);
struct link *shell_link(struct shell *s);
struct loop *shell_loop(struct shell *s); /* NULL when embedded */

/* Before shell_start; the store may be made with loop_ev(shell_loop(s)). */
void shell_set_store(struct shell *s, struct shell_store store);
/* The answer to an OUTPUT_STORE: EVENT_STORED for the core. May be called from within execute. Bytes are copied if
 * they must wait. */
void shell_stored(struct shell *s, uint64_t token, enum terrane_error error, const uint8_t *bytes, size_t size);

/* Takes the core and gives it EVENT_START. Once. */
void shell_start(struct shell *s, const struct shell_core *core);

/* Runs until SIGTERM, SIGINT (see shell_core.close) or shell_stop. Then call shell_finish and leave the process with
 * _exit. */
void shell_run(struct shell *s);
void shell_stop(struct shell *s);
/* Gives nng's threads about 100 ms to send what was accepted. */
void shell_finish(struct shell *s);

/* Embedded: the fd to poll for reading; valid until shell_close. */
int shell_fd(const struct shell *s);
/* Does what is due. Not re-entrant: CHECK. */
void shell_dispatch(struct shell *s);

/* For a core that is also called directly (a library's API): the outbox such calls may fill, and carrying it out.
 * shell_flush also looks at the core's deadline again; call it, or only shell_rearm, after calls that may have
 * brought the deadline forward. Both are cheap if nothing changed. shell_flush inside a step (a core's callback) does
 * nothing: the step's end carries everything out. */
struct outbox *shell_outbox(struct shell *s);
void shell_flush(struct shell *s);
void shell_rearm(struct shell *s);

/* The link's and the ticks' numbers as they are now; they also stand in every STATUS answer as "io". Valid until the
 * next call. */
const struct metrics *shell_metrics(struct shell *s);

/* Closes as link_close says. The caller waits for link_quiet first where it can. NULL is fine. */
void shell_close(struct shell *s);

#endif
