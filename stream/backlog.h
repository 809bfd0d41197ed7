/* Frames that wait for a snapshot: a queue of byte strings, bounded by LIMIT_STREAM_BACKLOG bytes; the oldest go first.
 * Memory: owned here, given back when the queue is cleared. Zero-initialise to open. */
#ifndef TERRANE_STREAM_BACKLOG_H
#define TERRANE_STREAM_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct backlog {
    uint8_t *bytes;
    size_t begin, end, room; /* of the buffer's used part */
    size_t held;             /* bytes of the frames themselves */
};

void backlog_clear(struct backlog *b);
/* Copies the frame to the end. Returns how many frames were dropped to make room (or were too large). */
uint64_t backlog_push(struct backlog *b, const uint8_t *frame, size_t size);
/* The oldest frame, valid until the next call that changes the queue; false if there is none. */
bool backlog_front(const struct backlog *b, const uint8_t **frame, size_t *size);
void backlog_pop(struct backlog *b);

#endif
