#include "common/array.h"

#include "common/check.h"

#include <stdlib.h>
#include <string.h>

void *array_grow(void *items, uint32_t *room, size_t count, size_t item_size)
{
    if (count <= *room) return items; /* nothing is asked for and nothing is there */
    size_t want = *room == 0 ? 8 : *room;
    while (want < count) want *= 2;
    CHECK(want <= UINT32_MAX);
    void *moved = realloc(items, want * item_size);
    CHECK(moved != NULL);
    memset((char *)moved + (size_t)*room * item_size, 0, (want - *room) * item_size);
    *room = (uint32_t)want;
    return moved;
}
