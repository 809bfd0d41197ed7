/* The live map: a page for browsers and the JSON that it and scripts read, served by a coordinator beside its work.
 *
 * What it shows of the map comes from the coordinator's core; what it shows of entities comes from the cell servers'
 * query sockets, which are asked only while somebody looks, at a bounded rate that all who look share. A server that
 * does not answer keeps nobody waiting: what it said last is shown, with its age.
 * What it is not: a way to change anything.
 * One thread, the coordinator's loop. Memory: opaque; there is no close, it lives as long as the process. */
#ifndef TERRANE_CONSOLE_CONSOLE_H
#define TERRANE_CONSOLE_CONSOLE_H

#include "console/consoles.h"
#include "coordinator/coordinator.h"
#include "io/http.h"
#include "io/shell.h"

struct console; /* opaque */

struct console_options {
    struct ev_loop *loop;
    struct http *http; /* gets the console's routes */
    struct coordinator *coordinator;
    struct world world;
    struct consoles consoles; /* of all coordinators, this one or not; none: unknown */
};

/* Errors: MEMORY. */
enum terrane_error console_open(const struct console_options *options, struct console **out) TERRANE_MUST_CHECK;
/* One line of the coordinator's log: lines with event=... become the console's events. */
void console_note(struct console *c, enum log_level level, const char *line, size_t size);

#endif
