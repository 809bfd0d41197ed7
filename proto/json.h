/* JSON for people and scripts, appended to a writer's buffer: STATUS answers and the store's values.
 *
 * Commas come by themselves. Strings must be UTF-8; what is not is written as '?'. 64-bit identities go out as strings
 * (json_id), since many readers keep numbers as doubles.
 * What it is not: no reader, and no check that keys and brackets fit together. */
#ifndef TERRANE_PROTO_JSON_H
#define TERRANE_PROTO_JSON_H

#include "proto/wire.h"

void json_open(struct writer *w, char bracket); /* '{' or '[' */
void json_close(struct writer *w, char bracket);
void json_key(struct writer *w, const char *key);
void json_text(struct writer *w, const char *text);
void json_uint(struct writer *w, uint64_t v);
void json_double(struct writer *w, double v); /* finite; reads back as the same number */
void json_bool(struct writer *w, bool v);
void json_null(struct writer *w);
void json_id(struct writer *w, uint64_t v); /* decimal digits in quotes; 0: null */
/* All constants of a world under the names of their fields, as one object. */
void json_world(struct writer *w, const struct world *world);

#endif
