/* State blobs of replicas: short byte strings that come, change and go with every frame.
 *
 * Blocks of twelve sizes (16 bytes to 32 KiB, doubling) cut from slabs of 64 KiB, a free list a size: after the
 * working set has been seen once, nothing is allocated. A blob is named by a 32-bit reference, 0 is the empty one.
 * What it is not: no sharing, no counting; who puts a blob drops it, once.
 * Memory: owned here; a blob's bytes stay where they are until it is dropped or set anew. Zero-initialise to open. */
#ifndef TERRANE_STREAM_BLOBS_H
#define TERRANE_STREAM_BLOBS_H

#include <stddef.h>
#include <stdint.h>

#define BLOB_CLASSES 12u

struct blobs {
    uint8_t **slabs;
    uint32_t slab_count, slab_room;
    uint32_t used; /* units of the last slab */
    uint32_t free[BLOB_CLASSES];
};

void blobs_close(struct blobs *b);
/* size at most LIMIT_STATE_BYTES. */
uint32_t blobs_put(struct blobs *b, const uint8_t *bytes, uint32_t size);
/* Replaces *ref's bytes, in place where they fit. */
void blobs_set(struct blobs *b, uint32_t *ref, const uint8_t *bytes, uint32_t size);
void blobs_drop(struct blobs *b, uint32_t ref);
/* The empty blob: NULL and size 0. */
const uint8_t *blobs_get(const struct blobs *b, uint32_t ref, uint32_t *size);

#endif
