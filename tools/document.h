/* Reads the JSON that our programs answer with (STATUS): whole texts into a list of values that refer to each other by
 * index.
 *
 * Tolerant where that costs nothing: unknown members are ignored by whoever looks for others, a missing one reads as
 * none. Strict about what could mislead: trailing text, unfinished values, more than 64 levels are errors.
 * What it is not: no writer, no stream, no general library: numbers are doubles (exact up to 2^53).
 * Memory: document_parse copies the text; a document owns all until document_close; zero-initialise to open. */
#ifndef TERRANE_TOOLS_DOCUMENT_H
#define TERRANE_TOOLS_DOCUMENT_H

#include "common/errors.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOCUMENT_NONE UINT32_MAX

enum document_kind {
    DOCUMENT_NULL,
    DOCUMENT_FALSE,
    DOCUMENT_TRUE,
    DOCUMENT_NUMBER,
    DOCUMENT_TEXT,
    DOCUMENT_ARRAY,
    DOCUMENT_OBJECT
};

struct document_value {
    enum document_kind kind;
    uint32_t next;    /* the value after this one in its array or object; DOCUMENT_NONE: the last */
    uint32_t first;   /* ARRAY, OBJECT: the first inside; DOCUMENT_NONE: empty */
    uint32_t count;   /* ARRAY, OBJECT */
    const char *key;  /* member of an OBJECT; else NULL */
    const char *text; /* TEXT, unescaped, NUL-terminated; an inner NUL is an error */
    double number;
};

struct document {
    struct document_value *values; /* 0 is the root */
    uint32_t count, room;
    char *text;
};

/* Replaces what the document held. Errors: CONFIG (not JSON), LIMIT (deeper than 64). */
enum terrane_error document_parse(struct document *j, const char *text, size_t size) TERRANE_MUST_CHECK;
void document_close(struct document *j);

/* Of an object; DOCUMENT_NONE if it is none or has no such member. `value` may be DOCUMENT_NONE. */
uint32_t document_member(const struct document *j, uint32_t value, const char *key);
/* The first inside an array or object, and the one after a value; DOCUMENT_NONE: no more. */
uint32_t document_first(const struct document *j, uint32_t value);
uint32_t document_next(const struct document *j, uint32_t value);

/* Of a member, or `otherwise` if it is absent or of another kind. */
double document_number(const struct document *j, uint32_t value, const char *key, double otherwise);
/* Truncated to a whole number from 0 to 2^53. */
uint64_t document_count(const struct document *j, uint32_t value, const char *key);
const char *document_text(const struct document *j, uint32_t value, const char *key); /* otherwise "" */
bool document_bool(const struct document *j, uint32_t value, const char *key);        /* otherwise false */

#endif
