/* What a cell server remembers of its entities' changes of owner (proto/trace.h): one ring for all of them, so that
 * it costs the same however many there are. At 200 changes a second it reaches back five minutes.
 *
 * Memory: the side owns its ring, 64 bytes an entry; it is made whole at the first need. */
#ifndef TERRANE_CELLSERVER_HISTORY_H
#define TERRANE_CELLSERVER_HISTORY_H

#include "proto/trace.h"

#define HISTORY_RING (1u << 16)

struct cellserver;

struct history_entry {
    uint64_t at_us, id;
    struct trace_step step; /* age_us is not used */
};

struct history_side {
    struct history_entry *ring; /* HISTORY_RING */
    uint64_t count;             /* so far; the last one lies at (count - 1) % HISTORY_RING */
    uint64_t from_us;           /* when it began */
};

void history_open(struct history_side *side, uint64_t now_us);
void history_close(struct history_side *side);
/* Of an entity under its version of now. */
void history_note(struct cellserver *cs, uint32_t entity, const struct trace_step *step);
/* Writes a TRACE_RESULT. A walk over the whole ring: some hundred microseconds. */
void history_answer(const struct cellserver *cs, const struct trace *m, struct writer *w);

#endif
