/* Between the coordinator's store payloads (proto/store.h) and what lies in Redis (docs/STORE.md): the scripts'
 * arguments and answers, flat lists of texts.
 *
 * What it is not: it sends nothing; it knows no hiredis.
 * Memory: a list owns its bytes; zero-initialise to open. */
#ifndef TERRANE_IO_STORE_VALUES_H
#define TERRANE_IO_STORE_VALUES_H

#include "proto/wire.h"

struct value_list {
    struct writer bytes;
    size_t *ends; /* value i lies between ends[i - 1] and ends[i] */
    uint32_t count, room;
};

void value_list_close(struct value_list *list);
void value_list_clear(struct value_list *list);
void value_list_add(struct value_list *list, const void *bytes, size_t size);
const char *value_list_get(const struct value_list *list, uint32_t index, size_t *size);

/* The Lua sources. LOAD: KEYS map, meta, servers; answers a flat list. SAVE: the same keys and the values that
 * values_of_map makes as ARGV; answers OK or an error that begins with CONFLICT. LEAD: the same keys and leader, and
 * the values that values_of_lead makes; answers a flat list. */
const char *store_script_load(void);
const char *store_script_save(void);
const char *store_script_lead(void);

/* The arguments of SAVE for a STORE_SAVE payload, appended to out. Errors: MESSAGE_*. */
enum terrane_error values_of_map(const uint8_t *bytes, size_t size, struct value_list *out) TERRANE_MUST_CHECK;
/* The store_map payload for LOAD's answer, appended to out; an empty list is an empty store.
 * Errors: MESSAGE_* (somebody else wrote there: a value is missing, too long or no number). */
enum terrane_error map_of_values(const struct value_list *values, struct writer *out) TERRANE_MUST_CHECK;

/* The same for LEAD: a STORE_LEAD payload to arguments, and its answer to a store_leader payload. */
enum terrane_error values_of_lead(const uint8_t *bytes, size_t size, struct value_list *out) TERRANE_MUST_CHECK;
enum terrane_error leader_of_values(const struct value_list *values, struct writer *out) TERRANE_MUST_CHECK;

#endif
