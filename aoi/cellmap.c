#include "aoi/cellmap.h"
#include "common/check.h"

#include <stdlib.h>

void cellmap_close(struct cellmap *map)
{
    for (uint32_t i = 0; i < map->high; i++) free(map->buckets[i].handles);
    free(map->buckets);
    free(map->free);
    free(map->slots);
    free(map->where);
    *map = (struct cellmap){0};
}

static uint32_t home_of(const struct cellmap *map, struct cell_name name)
{
    uint64_t h = (uint64_t)name.x * 0x9e3779b97f4a7c15u ^ (uint64_t)name.y * 0xc2b2ae3d27d4eb4fu ^
                 (uint64_t)name.z * 0x165667b19e3779f9u;
    return (uint32_t)((h ^ h >> 29) * 0xbf58476d1ce4e5b9u >> 32) & (map->size - 1);
}

/* The slot of the name, or the empty one where it would go. */
static uint32_t slot_of(const struct cellmap *map, struct cell_name name)
{
    uint32_t i = home_of(map, name);
    while (map->slots[i] && !cell_names_equal(map->buckets[map->slots[i] - 1].name, name))
        i = (i + 1) & (map->size - 1);
    return i;
}

struct bucket *cellmap_find(const struct cellmap *map, struct cell_name name)
{
    if (!map->used) return NULL;
    uint32_t slot = map->slots[slot_of(map, name)];
    return slot ? &map->buckets[slot - 1] : NULL;
}

static bool slots_grow(struct cellmap *map)
{
    if ((map->used + 1) * 2 <= map->size) return true;
    uint32_t size = map->size ? map->size * 2 : 64, *old = map->slots, old_size = map->size;
    uint32_t *slots = calloc(size, sizeof *slots);
    if (!slots) return false;
    map->slots = slots;
    map->size = size;
    CHECK(old_size == 0 || (old != NULL && map->buckets != NULL));
    for (uint32_t i = 0; i < old_size; i++) {
        if (old[i]) map->slots[slot_of(map, map->buckets[old[i] - 1].name)] = old[i];
    }
    free(old);
    return true;
}

static bool buckets_grow(struct cellmap *map)
{
    if (map->free_count || map->high < map->room) return true;
    uint32_t room = map->room + map->room / 2 + 32;
    struct bucket *buckets = realloc(map->buckets, room * sizeof *buckets);
    if (buckets) map->buckets = buckets;
    uint32_t *spare = realloc(map->free, room * sizeof *spare);
    if (spare) map->free = spare;
    if (!buckets || !spare) return false;
    map->room = room;
    return true;
}

static bool where_grow(struct cellmap *map, uint32_t handle)
{
    if (handle < map->where_room) return true;
    uint32_t room = handle + handle / 4 + 64;
    uint32_t *where = realloc(map->where, room * sizeof *where);
    if (!where) return false;
    map->where = where;
    map->where_room = room;
    return true;
}

static bool bucket_grow(struct bucket *bucket)
{
    if (bucket->count < bucket->room) return true;
    uint32_t room = bucket->room ? bucket->room * 2 : 4;
    uint32_t *handles = realloc(bucket->handles, room * sizeof *handles);
    if (!handles) return false;
    bucket->handles = handles;
    bucket->room = room;
    return true;
}

/* The bucket of a cell that has none yet, without members; NULL when memory ran out. */
static struct bucket *bucket_make(struct cellmap *map, struct cell_name name)
{
    if (!slots_grow(map) || !buckets_grow(map)) return NULL;
    CHECK(map->buckets != NULL && map->free != NULL);
    uint32_t index;
    if (map->free_count) {
        index = map->free[--map->free_count];
    } else {
        index = map->high++;
        map->buckets[index] = (struct bucket){0};
    }
    map->buckets[index].name = name;
    map->slots[slot_of(map, name)] = index + 1;
    map->used++;
    return &map->buckets[index];
}

/* Takes a bucket without members out of the hash and closes the gap. */
static void bucket_drop(struct cellmap *map, const struct bucket *bucket)
{
    uint32_t mask = map->size - 1, hole = slot_of(map, bucket->name);
    for (uint32_t i = hole;;) {
        i = (i + 1) & mask;
        if (!map->slots[i]) break;
        uint32_t home = home_of(map, map->buckets[map->slots[i] - 1].name);
        if (((i - home) & mask) < ((i - hole) & mask)) continue;
        map->slots[hole] = map->slots[i];
        hole = i;
    }
    map->slots[hole] = 0;
    map->used--;
    map->free[map->free_count++] = (uint32_t)(bucket - map->buckets);
}

bool cellmap_add(struct cellmap *map, struct cell_name name, uint32_t handle)
{
    if (!where_grow(map, handle)) return false;
    struct bucket *bucket = cellmap_find(map, name);
    if (!bucket) bucket = bucket_make(map, name);
    if (!bucket) return false;
    if (!bucket_grow(bucket)) {
        if (!bucket->count) bucket_drop(map, bucket);
        return false;
    }
    map->where[handle] = bucket->count;
    bucket->handles[bucket->count++] = handle;
    return true;
}

/* Takes the member at `at` out; the last takes its place. */
static void bucket_remove(struct cellmap *map, struct cell_name name, uint32_t at)
{
    struct bucket *bucket = cellmap_find(map, name);
    uint32_t last = bucket->handles[--bucket->count];
    if (at < bucket->count) {
        bucket->handles[at] = last;
        map->where[last] = at;
    }
    if (!bucket->count) bucket_drop(map, bucket);
}

void cellmap_remove(struct cellmap *map, struct cell_name name, uint32_t handle)
{
    bucket_remove(map, name, map->where[handle]);
}

bool cellmap_move(struct cellmap *map, struct cell_name from, struct cell_name to, uint32_t handle)
{
    if (cell_names_equal(from, to)) return true;
    uint32_t at = map->where[handle];
    if (!cellmap_add(map, to, handle)) return false;
    bucket_remove(map, from, at);
    return true;
}

size_t cellmap_bytes(const struct cellmap *map)
{
    size_t bytes = map->room * (sizeof *map->buckets + sizeof *map->free) + map->size * sizeof *map->slots +
                   map->where_room * sizeof *map->where;
    for (uint32_t i = 0; i < map->high; i++) bytes += map->buckets[i].room * sizeof(uint32_t);
    return bytes;
}

/* ---- walks ---- */

uint32_t range_cells(const struct cell_range *range)
{
    uint64_t x = (uint64_t)range->last.x - range->first.x + 1, y = (uint64_t)range->last.y - range->first.y + 1;
    uint64_t z = (uint64_t)range->last.z - range->first.z + 1;
    engine_u128 cells = (engine_u128)(x * y) * z; /* each factor is at most 2^32 */
    if (x > UINT32_MAX || y > UINT32_MAX) return UINT32_MAX;
    return cells > UINT32_MAX ? UINT32_MAX : (uint32_t)cells;
}

/* Asks for the memory of a few cells ahead of a walk: slot, bucket and handles are three misses one after another, but
 * those of different cells can be under way together. */
static void range_fetch(const struct cellmap *map, const struct cell_range *range, uint32_t cells)
{
    enum { CELLS_MOST = 32 };
    uint32_t homes[CELLS_MOST], count = 0;
    if (cells > CELLS_MOST) return;
    for (uint32_t z = range->first.z; z - range->first.z <= range->last.z - range->first.z; z++) {
        for (uint32_t y = range->first.y; y - range->first.y <= range->last.y - range->first.y; y++) {
            for (uint32_t x = range->first.x; x - range->first.x <= range->last.x - range->first.x; x++) {
                homes[count] = home_of(map, (struct cell_name){x, y, z});
                __builtin_prefetch(&map->slots[homes[count++]]);
            }
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = map->slots[homes[i]];
        if (slot) __builtin_prefetch(&map->buckets[slot - 1]);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = map->slots[homes[i]];
        if (slot) __builtin_prefetch(map->buckets[slot - 1].handles);
    }
}

void cell_walk_start(struct cell_walk *walk, const struct cellmap *map, const struct cell_range *range)
{
    bool listed = range_cells(range) / 2 > map->high;
    *walk = (struct cell_walk){.map = map, .range = *range, .at = range->first, .listed = listed, .done = !map->used};
    if (!listed && map->used) range_fetch(map, range, range_cells(range));
}

/* The next cell in the order of z, y, x. */
static void name_next(struct cell_walk *walk)
{
    if (walk->at.x++ < walk->range.last.x) return;
    walk->at.x = walk->range.first.x;
    if (walk->at.y++ < walk->range.last.y) return;
    walk->at.y = walk->range.first.y;
    walk->done = walk->at.z++ == walk->range.last.z;
}

struct bucket *cell_walk_next(struct cell_walk *walk)
{
    const struct cellmap *map = walk->map;
    while (walk->listed && walk->next < map->high) {
        struct bucket *bucket = &map->buckets[walk->next++];
        if (bucket->count && range_holds(&walk->range, bucket->name)) return bucket;
    }
    while (!walk->listed && !walk->done) {
        struct bucket *bucket = cellmap_find(map, walk->at);
        name_next(walk);
        if (bucket) return bucket;
    }
    return NULL;
}
