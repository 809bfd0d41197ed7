/* Listens to feeds from outside, as any nng client may: one SUB socket that dials PUB listeners.
 *
 * What it is not: no stream: what nng drops is gone (frames have sequence numbers that show it), and nothing is asked
 * for again. There is no close: closing a SUB socket may deadlock in nng 1.5.2. A process that has tapped ends with
 * _exit().
 * Memory: opaque; a message is borrowed until the next tap_next. */
#ifndef TERRANE_IO_TAP_H
#define TERRANE_IO_TAP_H

#include "common/errors.h"
#include "common/types.h"

struct tap; /* opaque */

/* All messages that begin with `prefix`. Errors: MEMORY. */
enum terrane_error tap_open(const char *prefix, struct tap **out) TERRANE_MUST_CHECK;
/* Another feed; it may start later. Dialling one twice does nothing. Errors: ADDRESS, MEMORY. */
enum terrane_error tap_dial(struct tap *t, const char *url) TERRANE_MUST_CHECK;
/* The next message, waiting for at most timeout_ms. Errors: TIMED_OUT, CLOSED. */
enum terrane_error tap_next(struct tap *t, int timeout_ms, const uint8_t **bytes, size_t *size) TERRANE_MUST_CHECK;

#endif
