/* The store of the ownership map: Redis by hiredis on libev. The only user of hiredis. Keys and values: docs/STORE.md.
 *
 * One operation at a time; each is answered exactly once, by `stored`, perhaps from within store_execute. Nothing
 * blocks: a watchdog ends what takes too long, for hiredis has no time-outs and a stopped server still takes
 * connections. After a TIMED_OUT the operation may have happened or not; repeating it with the same bytes is right.
 * The connection is made anew, with back-off, whenever it breaks or the watchdog cut it.
 *
 * With sentinels each connection begins with asking one of them where the master is, and a server that turns out to be
 * a replica is left.
 *
 * Memory: opaque; bytes are borrowed for each call. */
#ifndef TERRANE_IO_STORE_H
#define TERRANE_IO_STORE_H

#include "common/core.h"
#include "io/lookup.h"

struct store;   /* opaque */
struct ev_loop; /* libev's */

struct store_options {
    struct ev_loop *loop;
    const char *address; /* io/store_address.h; names are looked up by store_open, and again when the server is gone */
    const char *user, *password;                   /* NULL or "": no AUTH; a password alone is the default user's */
    const char *sentinel_user, *sentinel_password; /* likewise, of the sentinels */
    lookup_resolve *resolve;                       /* NULL: store_address_parse */
    const char *world;                             /* keys are terrane:{WORLD}:...; 1 to 63 characters, no braces */
    uint64_t timeout_us;                           /* of an operation or a connection attempt; 0: 1,000,000 */
    void *context;
    void (*stored)(void *context, uint64_t token, enum terrane_error error, const uint8_t *bytes, size_t size);
    void (*log)(void *context, enum log_level level, const char *line, size_t size); /* logfmt; NULL: nowhere */
    void *log_context;
};

/* Begins to connect; waits for nothing but the look-up of a name. `fault` says what is wrong with which option.
 * Errors: ADDRESS, CONFIG. */
enum terrane_error store_open(const struct store_options *options, struct store **out, char *fault,
                              size_t room) TERRANE_MUST_CHECK;
/* What is under way stays unanswered. NULL is fine. */
void store_close(struct store *s);

/* `stored` errors: OK (LOAD: bytes are a store_map, LEAD: a store_leader, proto/store.h), STORE_UNAVAILABLE (not
 * connected, or Redis refused it), TIMED_OUT, STORE_CONFLICT, MESSAGE_* (what is stored, or what is to be, is
 * malformed), QUEUE_FULL (another operation is under way). */
void store_execute(struct store *s, enum store_operation operation, uint64_t token, const uint8_t *bytes, size_t size);

struct store_counters {
    uint64_t operations, answered, failed, timeouts, conflicts, connects, disconnects;
    bool connected;
};
void store_counters(const struct store *s, struct store_counters *out);

#endif
