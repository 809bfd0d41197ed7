/* The band: directed pairs (observer, subject) that are seen although beyond the radius, thanks to the hysteresis.
 * Its owner frees `slots`. */
#ifndef TERRANE_AOI_BAND_H
#define TERRANE_AOI_BAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct band {
    uint64_t *slots;
    size_t count, size;
};

bool band_holds(const struct band *band, uint32_t observer, uint32_t subject);
void band_add(struct band *band, uint32_t observer, uint32_t subject);
void band_remove(struct band *band, uint32_t observer, uint32_t subject);

#endif
