#include "aoi/band.h"
#include "aoi/hash.h"
#include "common/check.h"

#include <stdlib.h>

static uint64_t band_key(uint32_t observer, uint32_t subject)
{
    return (uint64_t)observer << 32 | subject;
}

/* The slot that holds the key, or the empty one where it would go. No key is 0: nobody observes himself. */
static size_t band_slot(const struct band *band, uint64_t key)
{
    size_t i = hash_home(hash_mix(key), band->size);
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
        size_t home = hash_home(hash_mix(band->slots[i]), band->size);
        if (hash_steps(home, i, band->size) < hash_steps(hole, i, band->size)) continue;
        band->slots[hole] = band->slots[i];
        hole = i;
    }
    band->slots[hole] = 0;
    band->count--;
}
