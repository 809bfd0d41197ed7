#include "proto/wire.h"

#include "common/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 8u

void writer_close(struct writer *w)
{
    free(w->data);
    *w = (struct writer){0};
}

void writer_clear(struct writer *w)
{
    w->size = 0;
}

static void writer_grow(struct writer *w, size_t size)
{
    CHECK(size <= SIZE_MAX / 4 && w->size <= SIZE_MAX / 4);
    size_t room = w->room == 0 ? 64 : w->room;
    while (room < w->size + size) room *= 2;
    uint8_t *data = realloc(w->data, room);
    CHECK(data != NULL);
    w->data = data;
    w->room = room;
}

/* Makes room for `size` more bytes and takes them. */
static inline uint8_t *writer_take(struct writer *w, size_t size)
{
    if (w->room - w->size < size) writer_grow(w, size);
    uint8_t *at = w->data + w->size;
    w->size += size;
    return at;
}

/* A type byte and the low `bytes` bytes of v, big-endian. Stores eight whatever the width, into room taken for them:
 * a copy of varying length would cost more than all the rest. */
static void writer_tagged(struct writer *w, uint8_t type, uint64_t v, size_t bytes)
{
    uint8_t *at = writer_take(w, 9);
    at[0] = type;
    uint64_t big = __builtin_bswap64(v << (64 - 8 * bytes));
    memcpy(at + 1, &big, sizeof big);
    w->size -= 8 - bytes;
}

void writer_raw(struct writer *w, const void *bytes, size_t size)
{
    if (size > 0) memcpy(writer_take(w, size), bytes, size);
}

void writer_nil(struct writer *w)
{
    *writer_take(w, 1) = 0xc0;
}

void writer_bool(struct writer *w, bool v)
{
    *writer_take(w, 1) = v ? 0xc3 : 0xc2;
}

void writer_uint_long(struct writer *w, uint64_t v)
{
    if (v < 0x80)
        *writer_take(w, 1) = (uint8_t)v;
    else if (v <= UINT8_MAX)
        writer_tagged(w, 0xcc, v, 1);
    else if (v <= UINT16_MAX)
        writer_tagged(w, 0xcd, v, 2);
    else if (v <= UINT32_MAX)
        writer_tagged(w, 0xce, v, 4);
    else
        writer_tagged(w, 0xcf, v, 8);
}

void writer_int_long(struct writer *w, int64_t v)
{
    if (v >= 0)
        writer_uint_long(w, (uint64_t)v);
    else if (v >= -32)
        *writer_take(w, 1) = (uint8_t)v;
    else if (v >= INT8_MIN)
        writer_tagged(w, 0xd0, (uint64_t)v, 1);
    else if (v >= INT16_MIN)
        writer_tagged(w, 0xd1, (uint64_t)v, 2);
    else if (v >= INT32_MIN)
        writer_tagged(w, 0xd2, (uint64_t)v, 4);
    else
        writer_tagged(w, 0xd3, (uint64_t)v, 8);
}

void writer_double(struct writer *w, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    writer_tagged(w, 0xcb, bits, 8);
}

void writer_str(struct writer *w, const char *text)
{
    size_t size = text == NULL ? 0 : strlen(text);
    CHECK(size <= UINT32_MAX);
    if (size < 32)
        *writer_take(w, 1) = (uint8_t)(0xa0 | size);
    else if (size <= UINT8_MAX)
        writer_tagged(w, 0xd9, size, 1);
    else if (size <= UINT16_MAX)
        writer_tagged(w, 0xda, size, 2);
    else
        writer_tagged(w, 0xdb, size, 4);
    writer_raw(w, text, size);
}

void writer_bin(struct writer *w, const void *bytes, size_t size)
{
    CHECK(size <= UINT32_MAX);
    if (size <= UINT8_MAX)
        writer_tagged(w, 0xc4, size, 1);
    else if (size <= UINT16_MAX)
        writer_tagged(w, 0xc5, size, 2);
    else
        writer_tagged(w, 0xc6, size, 4);
    writer_raw(w, bytes, size);
}

void writer_array(struct writer *w, uint32_t count)
{
    if (count < 16)
        *writer_take(w, 1) = (uint8_t)(0x90 | count);
    else if (count <= UINT16_MAX)
        writer_tagged(w, 0xdc, count, 2);
    else
        writer_tagged(w, 0xdd, count, 4);
}

size_t writer_array_open(struct writer *w)
{
    size_t mark = w->size;
    writer_tagged(w, 0xdc, 0, 2);
    return mark;
}

void writer_array_close(struct writer *w, size_t mark, uint32_t count)
{
    CHECK(mark + 3 <= w->size && w->data[mark] == 0xdc && count <= UINT16_MAX);
    w->data[mark + 1] = (uint8_t)(count >> 8);
    w->data[mark + 2] = (uint8_t)count;
}

struct cursor cursor_of(const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    return (struct cursor){.at = at, .end = size == 0 ? at : at + size};
}

void cursor_fail(struct cursor *c, enum terrane_error error)
{
    if (c->error == TERRANE_ERR_OK) c->error = error;
    c->end = c->at;
}

static size_t cursor_left(const struct cursor *c)
{
    return (size_t)(c->end - c->at);
}

/* The big-endian number of `bytes` bytes behind the type byte. Moves past both. */
static uint64_t cursor_number(struct cursor *c, size_t bytes)
{
    size_t left = cursor_left(c);
    uint64_t v = 0;
    if (left >= 9)
        memcpy(&v, c->at + 1, sizeof v);
    else if (left >= 1 + bytes)
        memcpy(&v, c->at + 1, bytes);
    else {
        cursor_fail(c, TERRANE_ERR_MESSAGE_TRUNCATED);
        return 0;
    }
    c->at += 1 + bytes;
    return __builtin_bswap64(v) >> (64 - 8 * bytes);
}

/* Any integer as a sign and 64 bits: if negative, *v is its two's complement. False after a fault. */
static bool cursor_integer(struct cursor *c, bool *negative, uint64_t *v)
{
    if (c->at == c->end) {
        cursor_fail(c, TERRANE_ERR_MESSAGE_TRUNCATED);
        return false;
    }
    uint8_t type = *c->at;
    *negative = false;
    if (type < 0x80 || type >= 0xe0) {
        c->at++;
        *negative = type >= 0xe0;
        *v = (uint64_t)(int64_t)(int8_t)type;
        return true;
    }
    if (type < 0xcc || type > 0xd3) {
        cursor_fail(c, TERRANE_ERR_MESSAGE_TYPE);
        return false;
    }
    uint32_t bytes = 1u << (type & 3);
    uint64_t raw = cursor_number(c, bytes);
    if (c->error != TERRANE_ERR_OK) return false;
    if (type >= 0xd0) {
        uint32_t shift = 64 - 8 * bytes;
        raw = (uint64_t)((int64_t)(raw << shift) >> shift);
        *negative = (int64_t)raw < 0;
    }
    *v = raw;
    return true;
}

uint64_t cursor_uint_long(struct cursor *c, uint64_t max)
{
    const uint8_t *start = c->at;
    bool negative;
    uint64_t v;
    if (!cursor_integer(c, &negative, &v)) return 0;
    if (!negative && v <= max) return v;
    c->at = start;
    cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    return 0;
}

int64_t cursor_int_long(struct cursor *c, int64_t min, int64_t max)
{
    const uint8_t *start = c->at;
    bool negative;
    uint64_t v;
    if (!cursor_integer(c, &negative, &v)) return 0;
    bool fits = negative || v <= INT64_MAX;
    if (fits && (int64_t)v >= min && (int64_t)v <= max) return (int64_t)v;
    c->at = start;
    cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    return 0;
}

double cursor_double(struct cursor *c)
{
    if (c->at < c->end && *c->at != 0xcb) {
        bool negative;
        uint64_t v;
        if (!cursor_integer(c, &negative, &v)) return 0;
        return negative ? (double)(int64_t)v : (double)v;
    }
    const uint8_t *start = c->at;
    uint64_t bits = cursor_number(c, 8);
    double v;
    memcpy(&v, &bits, sizeof v);
    if (isfinite(v)) return v;
    c->at = start;
    cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    return 0;
}

/* The next type byte, or 0xc1 (which msgpack never uses) after a fault. */
static uint8_t cursor_type(struct cursor *c)
{
    if (c->at < c->end) return *c->at;
    cursor_fail(c, TERRANE_ERR_MESSAGE_TRUNCATED);
    return 0xc1;
}

bool cursor_bool(struct cursor *c)
{
    uint8_t type = cursor_type(c);
    if (type != 0xc2 && type != 0xc3) {
        cursor_fail(c, TERRANE_ERR_MESSAGE_TYPE);
        return false;
    }
    c->at++;
    return type == 0xc3;
}

bool cursor_nil(struct cursor *c)
{
    if (c->at == c->end || *c->at != 0xc0) return false;
    c->at++;
    return true;
}

uint32_t cursor_array(struct cursor *c, uint32_t min, uint32_t max)
{
    const uint8_t *start = c->at;
    uint8_t type = cursor_type(c);
    uint64_t count = 0;
    if (type >= 0x90 && type < 0xa0) {
        count = type & 0x0f;
        c->at++;
    } else if (type == 0xdc || type == 0xdd) {
        count = cursor_number(c, type == 0xdc ? 2 : 4);
    } else {
        cursor_fail(c, TERRANE_ERR_MESSAGE_TYPE);
    }
    if (c->error != TERRANE_ERR_OK) return 0;
    enum terrane_error error = TERRANE_ERR_OK;
    if (count < min || count > max)
        error = TERRANE_ERR_MESSAGE_RANGE;
    else if (count > cursor_left(c))
        error = TERRANE_ERR_MESSAGE_TRUNCATED;
    if (error == TERRANE_ERR_OK) return (uint32_t)count;
    c->at = start;
    cursor_fail(c, error);
    return 0;
}

/* `size` bytes after a header that began at `start`. */
static size_t cursor_bytes(struct cursor *c, const uint8_t *start, uint64_t size, size_t max, const uint8_t **bytes)
{
    *bytes = NULL;
    if (c->error != TERRANE_ERR_OK) return 0;
    if (size > max || size > cursor_left(c)) {
        enum terrane_error error = size > max ? TERRANE_ERR_MESSAGE_RANGE : TERRANE_ERR_MESSAGE_TRUNCATED;
        c->at = start;
        cursor_fail(c, error);
        return 0;
    }
    *bytes = c->at;
    c->at += size;
    return (size_t)size;
}

size_t cursor_bin(struct cursor *c, size_t max, const uint8_t **bytes)
{
    const uint8_t *start = c->at;
    uint8_t type = cursor_type(c);
    uint64_t size = 0;
    if (type >= 0xc4 && type <= 0xc6)
        size = cursor_number(c, (size_t)1 << (type - 0xc4));
    else
        cursor_fail(c, TERRANE_ERR_MESSAGE_TYPE);
    return cursor_bytes(c, start, size, max, bytes);
}

size_t cursor_text(struct cursor *c, size_t max, const char **text)
{
    const uint8_t *start = c->at, *bytes;
    uint8_t type = cursor_type(c);
    uint64_t size = 0;
    if (type >= 0xa0 && type < 0xc0) {
        size = type & 0x1f;
        c->at++;
    } else if (type >= 0xd9 && type <= 0xdb) {
        size = cursor_number(c, (size_t)1 << (type - 0xd9));
    } else {
        cursor_fail(c, TERRANE_ERR_MESSAGE_TYPE);
    }
    size = cursor_bytes(c, start, size, max, &bytes);
    if (size > 0 && memchr(bytes, 0, size) != NULL) {
        c->at = start;
        cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
        size = 0;
        bytes = NULL;
    }
    *text = (const char *)bytes;
    return size;
}

void cursor_str(struct cursor *c, char *out, size_t room)
{
    CHECK(room > 0);
    const char *text;
    size_t size = cursor_text(c, room - 1, &text);
    if (size > 0) memcpy(out, text, size);
    out[size] = '\0';
}

/* Skips one value but enters arrays; returns how many items follow. */
static uint32_t cursor_skip_head(struct cursor *c)
{
    uint8_t type = cursor_type(c);
    bool negative;
    uint64_t v;
    const uint8_t *bytes;
    const char *text;
    if ((type >= 0x90 && type < 0xa0) || type == 0xdc || type == 0xdd) return cursor_array(c, 0, UINT32_MAX);
    if (type == 0xc0 || type == 0xc2 || type == 0xc3)
        c->at++;
    else if (type == 0xcb)
        (void)cursor_number(c, 8);
    else if (type >= 0xc4 && type <= 0xc6)
        (void)cursor_bin(c, SIZE_MAX, &bytes);
    else if ((type >= 0xa0 && type < 0xc0) || (type >= 0xd9 && type <= 0xdb))
        (void)cursor_text(c, SIZE_MAX, &text);
    else
        (void)cursor_integer(c, &negative, &v);
    return 0;
}

void cursor_skip(struct cursor *c)
{
    uint32_t left[DEPTH_MAX];
    uint32_t depth = 0;
    do {
        uint32_t items = cursor_skip_head(c);
        if (c->error != TERRANE_ERR_OK) return;
        if (items > 0) {
            if (depth == DEPTH_MAX) {
                cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
                return;
            }
            left[depth++] = items + 1;
        }
        while (depth > 0 && --left[depth - 1] == 0) depth--;
    } while (depth > 0);
}

enum terrane_error cursor_end(const struct cursor *c)
{
    if (c->error != TERRANE_ERR_OK) return c->error;
    return c->at == c->end ? TERRANE_ERR_OK : TERRANE_ERR_MESSAGE_TRAILING;
}
