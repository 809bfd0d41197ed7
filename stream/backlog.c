#include "stream/backlog.h"

#include "common/check.h"
#include "common/limits.h"

#include <stdlib.h>
#include <string.h>

/* Each frame stands behind its size. */
#define HEAD sizeof(uint32_t)

void backlog_clear(struct backlog *b)
{
    free(b->bytes);
    *b = (struct backlog){0};
}

bool backlog_front(const struct backlog *b, const uint8_t **frame, size_t *size)
{
    if (b->begin == b->end) return false;
    uint32_t head;
    memcpy(&head, b->bytes + b->begin, HEAD);
    *frame = b->bytes + b->begin + HEAD;
    *size = head;
    return true;
}

void backlog_pop(struct backlog *b)
{
    const uint8_t *frame;
    size_t size;
    CHECK(backlog_front(b, &frame, &size));
    b->begin += HEAD + size;
    b->held -= size;
    if (b->begin == b->end) b->begin = b->end = 0;
}

static void room_make(struct backlog *b, size_t size)
{
    if (b->end + size <= b->room) return;
    if (b->begin > 0) memmove(b->bytes, b->bytes + b->begin, b->end - b->begin);
    b->end -= b->begin;
    b->begin = 0;
    size_t room = b->room == 0 ? 4096 : b->room;
    while (b->end + size > room) room *= 2;
    if (room == b->room) return;
    b->bytes = realloc(b->bytes, room);
    CHECK(b->bytes != NULL);
    b->room = room;
}

uint64_t backlog_push(struct backlog *b, const uint8_t *frame, size_t size)
{
    if (size > LIMIT_STREAM_BACKLOG) return 1;
    uint64_t dropped = 0;
    for (; b->held + size > LIMIT_STREAM_BACKLOG; dropped++) backlog_pop(b);
    room_make(b, HEAD + size);
    uint32_t head = (uint32_t)size;
    memcpy(b->bytes + b->end, &head, HEAD);
    memcpy(b->bytes + b->end + HEAD, frame, size);
    b->end += HEAD + size;
    b->held += size;
    return dropped;
}
