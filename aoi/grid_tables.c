/* Two hash tables: id -> handle, and the set of pairs that only hysteresis keeps in view.
 *
 * The id map stores handles, not ids: a slot is four bytes, the id itself is looked at in the bodies' id column. The
 * bits that a handle does not need hold a piece of the id's hash, so a probe that passes over a foreign slot nearly
 * never touches that column. Both tables probe linearly and close the gap on removal: no tombstones, no rebuilds. */
#include "aoi/grid.h"

#include <stdlib.h>
#include <string.h>

/* How full the id map is at most, in percent: memory counts more where there is much of it. */
#define IDMAP_LOAD       80
#define IDMAP_LOAD_LARGE 90
#define IDMAP_LARGE      (512u << 10)

static uint64_t mix(uint64_t v)
{
    v = (v ^ v >> 32) * 0xd6e8feb86659fd93u;
    v = (v ^ v >> 32) * 0xd6e8feb86659fd93u;
    return v ^ v >> 32;
}

/* The high half of the hash spread over the slots. */
static size_t home_of(uint64_t hash, size_t size)
{
    return (size_t)(((hash >> 32) * (uint64_t)size) >> 32);
}

static uint32_t idmap_slot(const struct idmap *map, uint64_t hash, uint32_t handle)
{
    return (uint32_t)hash << map->handle_bits | (handle + 1);
}

bool idmap_resize(struct aoi *aoi, uint32_t capacity)
{
    size_t size = (size_t)capacity * 100 / (capacity < IDMAP_LARGE ? IDMAP_LOAD : IDMAP_LOAD_LARGE) + 8;
    uint32_t *slots = calloc(size, sizeof *slots);
    if (!slots) return false;
    free(aoi->idmap.slots);
    unsigned handle_bits = 1;
    while (capacity >> handle_bits) handle_bits++;
    aoi->idmap = (struct idmap){.slots = slots, .size = size, .handle_bits = handle_bits};
    for (uint32_t i = 0; i < aoi->high; i++) {
        if (aoi->bodies[i].radius != BODY_DEAD) idmap_add(aoi, i);
    }
    return true;
}

uint32_t idmap_find(const struct aoi *aoi, struct entity_id id)
{
    const struct idmap *map = &aoi->idmap;
    if (!map->size || !id.v) return AOI_HANDLE_NONE;
    uint64_t hash = mix(id.v);
    uint32_t handle_mask = (1u << map->handle_bits) - 1, tag = (uint32_t)hash << map->handle_bits;
    for (size_t i = home_of(hash, map->size);; i = i + 1 == map->size ? 0 : i + 1) {
        uint32_t slot = map->slots[i];
        if (!slot) return AOI_HANDLE_NONE;
        uint32_t handle = (slot & handle_mask) - 1;
        if ((slot & ~handle_mask) == tag && aoi->ids[handle].v == id.v) return handle;
    }
}

void idmap_add(struct aoi *aoi, uint32_t handle)
{
    struct idmap *map = &aoi->idmap;
    uint64_t hash = mix(aoi->ids[handle].v);
    size_t i = home_of(hash, map->size);
    while (map->slots[i]) i = i + 1 == map->size ? 0 : i + 1;
    map->slots[i] = idmap_slot(map, hash, handle);
}

/* How many steps lead from slot `from` to slot `to`. */
static size_t steps(size_t from, size_t to, size_t size)
{
    return to >= from ? to - from : to + size - from;
}

void idmap_remove(struct aoi *aoi, uint32_t handle)
{
    struct idmap *map = &aoi->idmap;
    uint64_t hash = mix(aoi->ids[handle].v);
    uint32_t wanted = idmap_slot(map, hash, handle), handle_mask = (1u << map->handle_bits) - 1;
    size_t hole = home_of(hash, map->size);
    while (map->slots[hole] != wanted) {
        CHECK(map->slots[hole]);
        hole = hole + 1 == map->size ? 0 : hole + 1;
    }
    for (size_t i = hole;;) {
        i = i + 1 == map->size ? 0 : i + 1;
        if (!map->slots[i]) break;
        size_t home = home_of(mix(aoi->ids[(map->slots[i] & handle_mask) - 1].v), map->size);
        if (steps(home, i, map->size) < steps(hole, i, map->size)) continue;
        map->slots[hole] = map->slots[i];
        hole = i;
    }
    map->slots[hole] = 0;
}

/* ---- the band ---- */

static uint64_t band_key(uint32_t observer, uint32_t subject)
{
    return (uint64_t)observer << 32 | subject;
}

/* The slot that holds the key, or the empty one where it would go. No key is 0: nobody observes himself. */
static size_t band_slot(const struct band *band, uint64_t key)
{
    size_t i = home_of(mix(key), band->size);
    while (band->slots[i] && band->slots[i] != key) i = i + 1 == band->size ? 0 : i + 1;
    return i;
}

bool band_holds(const struct band *band, uint32_t observer, uint32_t subject)
{
    uint64_t key = band_key(observer, subject);
    return band->count && band->slots[band_slot(band, key)] == key;
}

static void band_grow(struct band *band)
{
    struct band old = *band;
    band->size = old.size + old.size / 2 + 64;
    band->slots = calloc(band->size, sizeof *band->slots);
    CHECK(band->slots != NULL); /* a change that is half reported can't be undone */
    for (size_t i = 0; i < old.size; i++) {
        if (old.slots[i]) band->slots[band_slot(band, old.slots[i])] = old.slots[i];
    }
    free(old.slots);
}

void band_add(struct band *band, uint32_t observer, uint32_t subject)
{
    if ((band->count + 1) * 4 > band->size * 3) band_grow(band);
    uint64_t key = band_key(observer, subject);
    size_t i = band_slot(band, key);
    if (band->slots[i]) return;
    band->slots[i] = key;
    band->count++;
}

void band_remove(struct band *band, uint32_t observer, uint32_t subject)
{
    if (!band->count) return;
    size_t hole = band_slot(band, band_key(observer, subject));
    if (!band->slots[hole]) return;
    for (size_t i = hole;;) {
        i = i + 1 == band->size ? 0 : i + 1;
        if (!band->slots[i]) break;
        size_t home = home_of(mix(band->slots[i]), band->size);
        if (steps(home, i, band->size) < steps(hole, i, band->size)) continue;
        band->slots[hole] = band->slots[i];
        hole = i;
    }
    band->slots[hole] = 0;
    band->count--;
}
