/* Members of one JSON object, found without reading what is in them: a server's STATUS is handed on but for its long
 * lists.
 *
 * What it is not: a validator. Text that is no JSON object yields nothing, never a read outside of it. */
#ifndef TERRANE_CONSOLE_MEMBERS_H
#define TERRANE_CONSOLE_MEMBERS_H

#include "proto/wire.h"

struct json_member {
    const char *key; /* without quotes, escapes not resolved */
    size_t key_size;
    const char *value;
    size_t value_size;
};

/* The member behind *at (0 at first), which moves on. False: there is none. */
bool json_member_next(const char *json, size_t size, size_t *at, struct json_member *out);
/* Appends the object without the members of these names (NULL behind the last). */
void json_without(struct writer *out, const char *json, size_t size, const char *const names[]);
/* The text of a member that is a string without escapes, into text[room]. False: there is none, or it does not fit. */
bool json_member_text(const char *json, size_t size, const char *name, char *text, size_t room);

#endif
