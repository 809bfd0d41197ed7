/* Questions of tools on the query lane: one request, one answer, blocking with a time-out.
 *
 * What it is not: nothing for servers (they never block) and nothing for use inside a cluster. A socket once made for
 * an url is kept until the process ends, and there is no close: closing a REQ socket may deadlock in nng 1.5.2.
 * A process that has asked ends with _exit().
 * Memory: opaque; an answer is borrowed until the next question. */
#ifndef TERRANE_IO_QUERY_H
#define TERRANE_IO_QUERY_H

#include "common/errors.h"
#include "common/types.h"

struct query_lane; /* opaque */

struct query_lane *query_lane_open(void);

/* Sends `request` (one message of proto/messages.h) to a process's query url and waits for its answer, whatever that
 * is. A process that starts within the time-out is reached.
 * Errors: ADDRESS (the url is malformed), TIMED_OUT, LIMIT (too many urls), MEMORY. */
enum terrane_error query_ask(struct query_lane *q, const char *url, const void *request, size_t size,
                             uint32_t timeout_ms, const uint8_t **answer, size_t *answer_size) TERRANE_MUST_CHECK;

/* STATUS_REQUEST: the JSON, not NUL-terminated, borrowed likewise. Errors: also those of the decoding, and the error
 * that a FAULT names. */
enum terrane_error query_status(struct query_lane *q, const char *url, uint32_t timeout_ms, const char **json,
                                size_t *size) TERRANE_MUST_CHECK;

#endif
