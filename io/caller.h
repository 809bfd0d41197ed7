/* One question at a time to one query socket, without waiting: for whoever must not block, like the agent.
 *
 * A question is sent when somebody is there, and again whenever the other side comes back without having answered, so
 * what is asked must be harmless to hear twice. It stays open until it is answered or another one replaces it.
 * What it is not: no time-out (the owner asks anew, or elsewhere), and there is no close: closing a REQ socket may
 * deadlock in nng 1.5.2. A process that has called ends with _exit().
 * Memory: opaque; an answer is borrowed until the next caller_ask. */
#ifndef TERRANE_IO_CALLER_H
#define TERRANE_IO_CALLER_H

#include "common/errors.h"
#include "common/types.h"

struct caller; /* opaque */

/* `wake` is called from a thread of nng's when there may be news. Where nobody listens it dials again after redial_ms
 * at the latest. Errors: ADDRESS (the url is malformed), MEMORY. */
enum terrane_error caller_open(const char *url, uint32_t redial_ms, void (*wake)(void *context), void *context,
                               struct caller **out) TERRANE_MUST_CHECK;
const char *caller_url(const struct caller *c);
/* True: no question is open. */
bool caller_idle(const struct caller *c);
/* Only while it is idle: CHECK. Errors: MEMORY. */
enum terrane_error caller_ask(struct caller *c, const void *question, size_t size) TERRANE_MUST_CHECK;
/* True: the answer has come, and the caller is idle again. */
bool caller_answer(struct caller *c, const uint8_t **bytes, size_t *size);

#endif
