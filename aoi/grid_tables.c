/* The hash table from ids to handles.
 *
 * It stores handles, not ids: a slot is four bytes, the id itself is looked at in the bodies' id column. The bits that
 * a handle does not need hold a piece of the id's hash, so a probe that passes over a foreign slot nearly never touches
 * that column. It probes linearly and closes the gap on removal: no tombstones, no rebuilds. */
#include "aoi/grid.h"
#include "aoi/hash.h"

#include <stdlib.h>
#include <string.h>

/* How full the id map is at most, in percent: memory counts more where there is much of it. */
#define IDMAP_LOAD       80
#define IDMAP_LOAD_LARGE 90
#define IDMAP_LARGE      (512u << 10)

static uint32_t idmap_slot(const struct idmap *map, uint64_t hash, uint32_t handle)
{
    return (uint32_t)hash << map->handle_bits | (handle + 1);
}

bool idmap_resize(struct grid *grid, uint32_t capacity)
{
    size_t size = (size_t)capacity * 100 / (capacity < IDMAP_LARGE ? IDMAP_LOAD : IDMAP_LOAD_LARGE) + 8;
    uint32_t *slots = calloc(size, sizeof *slots);
    if (!slots) return false;
    free(grid->idmap.slots);
    unsigned handle_bits = 1;
    while (capacity >> handle_bits) handle_bits++;
    grid->idmap = (struct idmap){.slots = slots, .size = size, .handle_bits = handle_bits};
    for (uint32_t i = 0; i < grid->high; i++) {
        if (grid->bodies[i].radius != BODY_DEAD) idmap_add(grid, i);
    }
    return true;
}

uint32_t idmap_find(const struct grid *grid, struct entity_id id)
{
    const struct idmap *map = &grid->idmap;
    if (!map->size || !id.v) return AOI_HANDLE_NONE;
    uint64_t hash = hash_mix(id.v);
    uint32_t handle_mask = (1u << map->handle_bits) - 1, tag = (uint32_t)hash << map->handle_bits;
    for (size_t i = hash_home(hash, map->size);; i = i + 1 == map->size ? 0 : i + 1) {
        uint32_t slot = map->slots[i];
        if (!slot) return AOI_HANDLE_NONE;
        uint32_t handle = (slot & handle_mask) - 1;
        if ((slot & ~handle_mask) == tag && grid->ids[handle].v == id.v) return handle;
    }
}

void idmap_add(struct grid *grid, uint32_t handle)
{
    struct idmap *map = &grid->idmap;
    uint64_t hash = hash_mix(grid->ids[handle].v);
    size_t i = hash_home(hash, map->size);
    while (map->slots[i]) i = i + 1 == map->size ? 0 : i + 1;
    map->slots[i] = idmap_slot(map, hash, handle);
}

void idmap_remove(struct grid *grid, uint32_t handle)
{
    struct idmap *map = &grid->idmap;
    uint64_t hash = hash_mix(grid->ids[handle].v);
    uint32_t wanted = idmap_slot(map, hash, handle), handle_mask = (1u << map->handle_bits) - 1;
    size_t hole = hash_home(hash, map->size);
    while (map->slots[hole] != wanted) {
        CHECK(map->slots[hole]);
        hole = hole + 1 == map->size ? 0 : hole + 1;
    }
    for (size_t i = hole;;) {
        i = i + 1 == map->size ? 0 : i + 1;
        if (!map->slots[i]) break;
        size_t home = hash_home(hash_mix(grid->ids[(map->slots[i] & handle_mask) - 1].v), map->size);
        if (hash_steps(home, i, map->size) < hash_steps(hole, i, map->size)) continue;
        map->slots[hole] = map->slots[i];
        hole = i;
    }
    map->slots[hole] = 0;
}
