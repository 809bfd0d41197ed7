/* msgpack in memory: a writer that grows its buffer and a cursor that reads without allocating.
 *
 * What it is not: no message is known here (messages.h, frame.h), and it is not a general msgpack library: floats are
 * doubles, extension types are refused, maps never occur. Every writer call emits the shortest form.
 * Memory: a writer owns its buffer until writer_close; a cursor borrows the bytes that it reads. */
#ifndef TERRANE_PROTO_WIRE_H
#define TERRANE_PROTO_WIRE_H

#include "common/errors.h"
#include "common/types.h"

/* Grows by doubling; out of memory is a CHECK (bounds are enforced before encoding). Zero-initialise to open. */
struct writer {
    uint8_t *data;
    size_t size, room;
};

void writer_close(struct writer *w);
void writer_clear(struct writer *w); /* size = 0, keeps the buffer */
void writer_raw(struct writer *w, const void *bytes, size_t size);
void writer_nil(struct writer *w);
void writer_bool(struct writer *w, bool v);
static inline void writer_uint(struct writer *w, uint64_t v);
static inline void writer_int(struct writer *w, int64_t v);
void writer_double(struct writer *w, double v);
void writer_str(struct writer *w, const char *text); /* NUL-terminated; NULL is "" */
void writer_bin(struct writer *w, const void *bytes, size_t size);
void writer_array(struct writer *w, uint32_t count);
/* An array whose count is known only later: reserves a 3-byte header; count <= 65535. */
size_t writer_array_open(struct writer *w);
void writer_array_close(struct writer *w, size_t mark, uint32_t count);

/* A reader with a sticky error: after the first fault every call returns zero and moves nothing, so a decoder reads
 * straight through and checks once. A fault also sets end = at, which spares the hot paths a second test.
 * Values in a longer form than needed are accepted, as other libraries write them. */
struct cursor {
    const uint8_t *at, *end;
    enum terrane_error error;
};

struct cursor cursor_of(const void *bytes, size_t size);
void cursor_fail(struct cursor *c, enum terrane_error error);
/* Values outside [min, max]: MESSAGE_RANGE. Another type: MESSAGE_TYPE. Past the end: MESSAGE_TRUNCATED. */
static inline uint64_t cursor_uint(struct cursor *c, uint64_t max);
static inline int64_t cursor_int(struct cursor *c, int64_t min, int64_t max);
double cursor_double(struct cursor *c); /* finite, else MESSAGE_RANGE; integers are accepted */
bool cursor_bool(struct cursor *c);
bool cursor_nil(struct cursor *c); /* consumes a nil if one is next, and says so */
/* The count, bounded by max and by the bytes that are left (an item has at least one). */
uint32_t cursor_array(struct cursor *c, uint32_t min, uint32_t max);
/* Points into the message. Returns the size, at most max. */
size_t cursor_bin(struct cursor *c, size_t max, const uint8_t **bytes);
/* The same for text; an inner NUL: MESSAGE_RANGE. Not NUL-terminated. */
size_t cursor_text(struct cursor *c, size_t max, const char **text);
/* Copies at most room - 1 bytes and a NUL; longer or with an inner NUL: MESSAGE_RANGE. */
void cursor_str(struct cursor *c, char *out, size_t room);
/* Skips one value: anything the writer can write, arrays nested at most 8 deep (deeper: MESSAGE_RANGE). */
void cursor_skip(struct cursor *c);
/* The error so far, or MESSAGE_TRAILING if bytes are left. */
enum terrane_error cursor_end(const struct cursor *c) TERRANE_MUST_CHECK;

/* The rest is inline because frames are columns of small integers: one byte each, written and read in a few ns. */
void writer_uint_long(struct writer *w, uint64_t v);
void writer_int_long(struct writer *w, int64_t v);
uint64_t cursor_uint_long(struct cursor *c, uint64_t max);
int64_t cursor_int_long(struct cursor *c, int64_t min, int64_t max);

static inline void writer_uint(struct writer *w, uint64_t v)
{
    if (v < 0x80 && w->size < w->room)
        w->data[w->size++] = (uint8_t)v;
    else
        writer_uint_long(w, v);
}

static inline void writer_int(struct writer *w, int64_t v)
{
    if (v >= -32 && v < 0x80 && w->size < w->room)
        w->data[w->size++] = (uint8_t)v;
    else
        writer_int_long(w, v);
}

static inline uint64_t cursor_uint(struct cursor *c, uint64_t max)
{
    if (c->at < c->end && *c->at < 0x80 && *c->at <= max) return *c->at++;
    return cursor_uint_long(c, max);
}

static inline int64_t cursor_int(struct cursor *c, int64_t min, int64_t max)
{
    if (c->at < c->end) {
        int64_t v = (int8_t)*c->at;
        if (v >= -32 && v >= min && v <= max) {
            c->at++;
            return v;
        }
    }
    return cursor_int_long(c, min, max);
}

#endif
