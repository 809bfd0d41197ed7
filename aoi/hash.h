/* What the open hash tables of this folder share: they probe linearly, over any size, and close the gap on removal. */
#ifndef TERRANE_AOI_HASH_H
#define TERRANE_AOI_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t hash_mix(uint64_t v)
{
    v = (v ^ v >> 32) * 0xd6e8feb86659fd93u;
    v = (v ^ v >> 32) * 0xd6e8feb86659fd93u;
    return v ^ v >> 32;
}

/* The high half of the hash spread over the slots. */
static inline size_t hash_home(uint64_t hash, size_t size)
{
    return (size_t)(((hash >> 32) * (uint64_t)size) >> 32);
}

/* How many steps lead from slot `from` to slot `to`. */
static inline size_t hash_steps(size_t from, size_t to, size_t size)
{
    return to >= from ? to - from : to + size - from;
}

#endif
