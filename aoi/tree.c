#include "aoi/tree.h"

bool tree_table_reserve(void **items, uint32_t *room, uint64_t count, size_t size)
{
    if (count <= *room) return true;
    uint64_t grown = (uint64_t)*room + *room / 2 + 8;
    if (grown < count) grown = count;
    if (grown > UINT32_MAX) return false;
    void *table = realloc(*items, grown * size);
    if (!table) return false;
    *items = table;
    *room = (uint32_t)grown;
    return true;
}
