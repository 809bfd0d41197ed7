/* Growing arrays, one function: makes room for `count` items of `item_size` bytes, doubling. Out of memory is a CHECK:
 * every array's length is bounded by limits.h before it comes here. */
#ifndef TERRANE_COMMON_ARRAY_H
#define TERRANE_COMMON_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/* Returns items, perhaps moved; *room is the new capacity in items. New items are zeroed. */
void *array_grow(void *items, uint32_t *room, size_t count, size_t item_size);

/* The same with the common case inline: hot loops ask for every item. */
static inline void *array_reserve(void *items, uint32_t *room, size_t count, size_t item_size)
{
    return items != NULL && count <= *room ? items : array_grow(items, room, count, item_size);
}

#define ARRAY_RESERVE(items, room, count) ((items) = array_reserve((items), &(room), (count), sizeof *(items)))

#endif
