/* Reads the JSON that our programs answer with (STATUS): whole texts into a list of values that refer to each other by
 * index.
 *
 * Tolerant where that costs nothing: unknown members are ignored by whoever looks for others, a missing one reads as
 * none. Strict about what could mislead: trailing text, unfinished values, more than 64 levels are errors.
 * What it is not: no writer, no stream, no general library: numbers are doubles (exact up to 2^53).
 * Memory: json_parse copies the text; a document owns all until json_close; zero-initialise to open. */
#ifndef TERRANE_TOOLS_JSON_H
#define TERRANE_TOOLS_JSON_H

#include "common/errors.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_NONE UINT32_MAX

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_TEXT, JSON_ARRAY, JSON_OBJECT };

struct json_value {
    enum json_kind kind;
    uint32_t next;    /* the value after this one in its array or object; JSON_NONE: the last */
    uint32_t first;   /* ARRAY, OBJECT: the first inside; JSON_NONE: empty */
    uint32_t count;   /* ARRAY, OBJECT */
    const char *key;  /* member of an OBJECT; else NULL */
    const char *text; /* TEXT, unescaped, NUL-terminated; an inner NUL is an error */
    double number;
};

struct json {
    struct json_value *values; /* 0 is the root */
    uint32_t count, room;
    char *text;
};

/* Replaces what the document held. Errors: CONFIG (not JSON), LIMIT (deeper than 64). */
enum terrane_error json_parse(struct json *j, const char *text, size_t size) TERRANE_MUST_CHECK;
void json_close(struct json *j);

/* Of an object; JSON_NONE if it is none or has no such member. `value` may be JSON_NONE. */
uint32_t json_member(const struct json *j, uint32_t value, const char *key);
/* The first inside an array or object, then the next ones: for (v = json_first(..); v != JSON_NONE; v = json_next(..))
 */
uint32_t json_first(const struct json *j, uint32_t value);
uint32_t json_next(const struct json *j, uint32_t value);

/* Of a member, or `otherwise` if it is absent or of another kind. */
double json_number(const struct json *j, uint32_t value, const char *key, double otherwise);
/* Truncated to a whole number from 0 to 2^53. */
uint64_t json_count(const struct json *j, uint32_t value, const char *key);
const char *json_text(const struct json *j, uint32_t value, const char *key); /* otherwise "" */
bool json_bool(const struct json *j, uint32_t value, const char *key);        /* otherwise false */

#endif
