/* A hash table from 64-bit keys to 32-bit values (indices into somebody's arrays), for entities, leaves and nodes.
 *
 * Open addressing, linear probing, power-of-two size, backward-shift deletion (no tombstones), keys mixed by a
 * 64-bit finaliser. Key 0 is not allowed (0 is "none" for every identity). Iteration follows insertion nowhere:
 * callers that need an order keep one (rule 18).
 * Memory: the table owns its array; it grows (doubling) in table_put at 7/8 load; table_reserve grows ahead. */
#ifndef TERRANE_COMMON_TABLE_H
#define TERRANE_COMMON_TABLE_H

#include "common/types.h"

#define TABLE_NONE UINT32_MAX

struct table {
    uint64_t *keys;
    uint32_t *values;
    uint32_t mask, count;
};

void table_close(struct table *t); /* back to the zero-initialised, empty state */
void table_clear(struct table *t);
void table_reserve(struct table *t, uint32_t count);
uint32_t table_get(const struct table *t, uint64_t key);       /* TABLE_NONE: absent */
void table_put(struct table *t, uint64_t key, uint32_t value); /* replaces */
bool table_remove(struct table *t, uint64_t key);
size_t table_memory_bytes(const struct table *t);

#endif
