/* What a shell knows about itself that its core does not: traffic, drops by cause, ticks,
 * CPU time and memory. As metrics, and as the member
 * "io" of the JSON object that a core answers to STATUS_REQUEST.
 *
 * Memory: all of it the caller's. */
#ifndef TERRANE_IO_VITALS_H
#define TERRANE_IO_VITALS_H

#include "common/metrics.h"
#include "io/link.h"
#include "io/loop.h"
#include "proto/wire.h"

/* Registers the series on the first call and sets them. refused: see link_refused. ticker: NULL if nothing ticks. */
void vitals_collect(const struct link_counters *c, uint64_t refused, const struct ticker *ticker, struct metrics *m);

/* CPU time and memory of this process. */
void vitals_process(struct metrics *m);

/* If `reply` is a STATUS message with a JSON object: writes the same with "io": {metrics} added as its last member into
 * out (cleared first). Else, or if it would exceed LIMIT_PACKET_BYTES: false. */
bool vitals_join(const uint8_t *reply, size_t size, const struct metrics *m, struct writer *out);

#endif
