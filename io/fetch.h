/* One GET over HTTP/1.1, blocking with a time-out: for tools that ask a server on the same machine or network.
 *
 * What it is not: no client for the web: no TLS, no redirects, no chunked answers (http.h sends none).
 * Memory: the caller's. */
#ifndef TERRANE_IO_FETCH_H
#define TERRANE_IO_FETCH_H

#include "common/errors.h"
#include "proto/wire.h"

/* GET `path` of the server at "HOST:PORT". *status and the body (into `body`, cleared first) are what it answered.
 * Errors: ADDRESS (malformed, or the host is not found), CLOSED (nobody listens, or no whole answer), TIMED_OUT, LIMIT
 * (more than LIMIT_FETCH_BYTES). */
#define LIMIT_FETCH_BYTES (16u << 20)
enum terrane_error fetch(const char *address, const char *path, uint32_t timeout_ms, unsigned *status,
                         struct writer *body) TERRANE_MUST_CHECK;

#endif
