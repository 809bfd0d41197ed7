/* Questions to many query sockets at once, without waiting: one question at a time to each, the next when it is
 * answered. For whoever shows others what processes say of themselves, and must not be slowed by one that says nothing.
 *
 * What it is not: no time-outs. Who does not answer keeps its one question open, and gets no others but those that wait
 * (ASKER_WAITING); it costs nothing else. No sockets are closed while somebody may answer over them (nng 1.5.2).
 * One thread, in a libev loop. Memory: opaque; an answer is borrowed for the callback. */
#ifndef TERRANE_IO_ASKER_H
#define TERRANE_IO_ASKER_H

#include "common/core.h"
#include "common/errors.h"

struct asker;   /* opaque */
struct ev_loop; /* libev's */

#define ASKER_WAITING 8u /* questions that may wait behind the open one of one process */

/* `tag`: of the question that is answered. */
typedef void asker_heard(void *context, struct node_id node, uint64_t tag, const uint8_t *bytes, size_t size);

/* Errors: MEMORY. */
enum terrane_error asker_open(struct ev_loop *loop, asker_heard *heard, void *context,
                              struct asker **out) TERRANE_MUST_CHECK;
/* Asks the process behind `url`. A question with that tag that is open or waits there already is not asked again.
 * False: too many wait, or the url can't be dialled; counted. */
bool asker_ask(struct asker *a, struct node_id node, const char *url, uint64_t tag, const void *question, size_t size);
/* That process is no more: what waits is forgotten, answers that still come are not told. */
void asker_forget(struct asker *a, struct node_id node);

struct asker_counters {
    uint64_t asked, answered, refused;
    uint32_t sockets;
};
void asker_counters(const struct asker *a, struct asker_counters *out);

#endif
