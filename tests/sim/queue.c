#include "tests/sim/queue.h"

#include "common/array.h"
#include "common/check.h"

#include <stdlib.h>
#include <string.h>

void queue_close(struct queue *q)
{
    for (uint32_t i = 0; i < q->count; i++) free(q->items[i].bytes);
    free(q->items);
    *q = (struct queue){0};
}

static bool before(const struct happening *a, const struct happening *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->sequence < b->sequence;
}

void queue_push(struct queue *q, struct happening what)
{
    ARRAY_RESERVE(q->items, q->room, (size_t)q->count + 1);
    what.sequence = ++q->sequence;
    uint32_t at = q->count++;
    while (at > 0) {
        uint32_t parent = (at - 1) / 2;
        if (!before(&what, &q->items[parent])) break;
        q->items[at] = q->items[parent];
        at = parent;
    }
    q->items[at] = what;
}

uint8_t *queue_bytes(const void *bytes, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    CHECK(copy != NULL);
    if (size > 0) memcpy(copy, bytes, size);
    return copy;
}

bool queue_peek(const struct queue *q, uint64_t *at_us)
{
    if (q->count == 0) return false;
    *at_us = q->items[0].at_us;
    return true;
}

struct happening queue_pop(struct queue *q)
{
    CHECK(q->count > 0);
    struct happening first = q->items[0], last = q->items[--q->count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= q->count) break;
        if (child + 1 < q->count && before(&q->items[child + 1], &q->items[child])) child++;
        if (!before(&q->items[child], &last)) break;
        q->items[at] = q->items[child];
        at = child;
    }
    if (q->count > 0) q->items[at] = last;
    return first;
}

void happening_free(struct happening *what)
{
    free(what->bytes);
    what->bytes = NULL;
}
