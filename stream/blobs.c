#include "stream/blobs.h"

#include "common/array.h"
#include "common/check.h"
#include "common/limits.h"

#include <stdlib.h>
#include <string.h>

#define UNIT       16u /* bytes; the smallest block */
#define SLAB_BITS  12u /* of a reference: the unit in its slab */
#define SLAB_UNITS (1u << SLAB_BITS)
#define SLABS_MAX  (1u << (32 - SLAB_BITS))

/* In front of a blob's bytes; in a free block: the next free one of its class. */
struct header {
    uint32_t word;
};

void blobs_close(struct blobs *b)
{
    for (uint32_t i = 0; i < b->slab_count; i++) free(b->slabs[i]);
    free(b->slabs);
    *b = (struct blobs){0};
}

static struct header *header_of(const struct blobs *b, uint32_t ref)
{
    return (struct header *)(void *)(b->slabs[ref >> SLAB_BITS] + (size_t)(ref & (SLAB_UNITS - 1)) * UNIT);
}

static uint32_t class_of(uint32_t size)
{
    uint32_t units = (size + (uint32_t)sizeof(struct header) + UNIT - 1) / UNIT;
    return units <= 1 ? 0 : 32 - (uint32_t)__builtin_clz(units - 1);
}

/* Cuts a new block; what is left of a slab that is too short becomes free blocks. */
static uint32_t block_cut(struct blobs *b, uint32_t class)
{
    uint32_t units = 1u << class;
    if (b->slab_count == 0 || b->used + units > SLAB_UNITS) {
        while (b->slab_count > 0 && b->used < SLAB_UNITS) {
            uint32_t piece = 31 - (uint32_t)__builtin_clz(SLAB_UNITS - b->used);
            uint32_t ref = (b->slab_count - 1) << SLAB_BITS | b->used;
            header_of(b, ref)->word = b->free[piece];
            b->free[piece] = ref;
            b->used += 1u << piece;
        }
        CHECK(b->slab_count < SLABS_MAX);
        ARRAY_RESERVE(b->slabs, b->slab_room, b->slab_count + 1u);
        b->slabs[b->slab_count] = malloc((size_t)SLAB_UNITS * UNIT);
        CHECK(b->slabs[b->slab_count] != NULL);
        b->used = b->slab_count == 0; /* unit 0 of slab 0 would be reference 0 */
        b->slab_count++;
    }
    uint32_t ref = (b->slab_count - 1) << SLAB_BITS | b->used;
    b->used += units;
    return ref;
}

uint32_t blobs_put(struct blobs *b, const uint8_t *bytes, uint32_t size)
{
    CHECK(size <= LIMIT_STATE_BYTES);
    if (size == 0) return 0;
    uint32_t class = class_of(size), ref = b->free[class];
    if (ref != 0)
        b->free[class] = header_of(b, ref)->word;
    else
        ref = block_cut(b, class);
    struct header *header = header_of(b, ref);
    header->word = size;
    memcpy(header + 1, bytes, size);
    return ref;
}

void blobs_drop(struct blobs *b, uint32_t ref)
{
    if (ref == 0) return;
    struct header *header = header_of(b, ref);
    uint32_t class = class_of(header->word);
    header->word = b->free[class];
    b->free[class] = ref;
}

void blobs_set(struct blobs *b, uint32_t *ref, const uint8_t *bytes, uint32_t size)
{
    CHECK(size <= LIMIT_STATE_BYTES);
    if (*ref != 0 && size != 0 && class_of(header_of(b, *ref)->word) == class_of(size)) {
        struct header *header = header_of(b, *ref);
        header->word = size;
        memmove(header + 1, bytes, size);
        return;
    }
    uint32_t fresh = blobs_put(b, bytes, size);
    blobs_drop(b, *ref);
    *ref = fresh;
}

const uint8_t *blobs_get(const struct blobs *b, uint32_t ref, uint32_t *size)
{
    *size = 0;
    if (ref == 0) return NULL;
    const struct header *header = header_of(b, ref);
    *size = header->word;
    return (const uint8_t *)(header + 1);
}
