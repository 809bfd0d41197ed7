/* What every server says over HTTP to those who watch it: /metrics (Prometheus), /healthz (the process's loop turns),
 * /readyz (it can do its work; 503 and the reason if not).
 *
 * What it is not: it judges and counts nothing itself; the core says what is so.
 * Memory: as http.h; there is no close, it lives as long as the process. */
#ifndef TERRANE_IO_PROBE_H
#define TERRANE_IO_PROBE_H

#include "common/metrics.h"
#include "io/http.h"
#include "io/shell.h"

struct probe_core {
    const void *core;
    /* Puts the core's numbers into the metrics; called for each scrape. */
    void (*collect)(const void *core, struct metrics *m);
    const char *(*unready)(const void *core); /* NULL: it is ready; else why not, one sentence without a full stop */
};

/* What a program's --http flag says, and for --help. */
#define PROBE_AUTO "auto"
#define PROBE_NONE "none"

struct probe_options {
    const char *program, *version;
    const char *address;   /* HOST:PORT, PROBE_AUTO or PROBE_NONE */
    const char *automatic; /* what PROBE_AUTO is: HOST:PORT; if it is taken, any port of that host */
    struct shell *shell;   /* not embedded: its loop serves, its numbers are told, too */
    struct loop *loop;     /* instead, of a program whose core has all there is to tell */
    struct probe_core core;
};

/* Listens and serves the three. More routes may be added. *out is NULL for PROBE_NONE. `fault` as http_open's.
 * Errors: ADDRESS, MEMORY. */
enum terrane_error probe_open(const struct probe_options *options, struct http **out, char *fault,
                              size_t room) TERRANE_MUST_CHECK;

#endif
