#include "common/core.h"

#include "common/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void outbox_close(struct outbox *out)
{
    free(out->items);
    free(out->bytes);
    *out = (struct outbox){0};
}

void outbox_clear(struct outbox *out)
{
    out->count = 0;
    out->used = 0;
}

static size_t doubled(size_t room, size_t want)
{
    size_t grown = room == 0 ? 64 : room;
    while (grown < want) grown *= 2;
    return grown;
}

void outbox_push(struct outbox *out, struct output like, const void *bytes, size_t size)
{
    if (out->count == out->room) {
        out->room = doubled(out->room, out->count + 1);
        out->items = realloc(out->items, out->room * sizeof *out->items);
        CHECK(out->items != NULL);
    }
    if (out->used + size > out->bytes_room) {
        out->bytes_room = doubled(out->bytes_room, out->used + size);
        out->bytes = realloc(out->bytes, out->bytes_room);
        CHECK(out->bytes != NULL);
    }
    if (size > 0) memcpy(out->bytes + out->used, bytes, size);
    like.offset = out->used;
    like.size = size;
    out->used += size;
    out->items[out->count++] = like;
}

const uint8_t *outbox_bytes(const struct outbox *out, const struct output *item)
{
    return item->size == 0 ? out->bytes : out->bytes + item->offset;
}

void outbox_log(struct outbox *out, enum log_level level, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    CHECK(size >= 0);
    if ((size_t)size >= sizeof line) size = (int)sizeof line - 1;
    outbox_push(out, (struct output){.kind = OUTPUT_LOG, .level = level}, line, (size_t)size);
}
