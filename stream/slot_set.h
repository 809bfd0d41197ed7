/* A set of slots as a tree of bits: level 0 has a bit a slot, each level above a bit for every word below that is not
 * zero. The lowest member at or after a slot is found in one look a level (64 slots each), whatever the population;
 * walking a set in ascending order needs no sort.
 *
 * What it is not: it knows no meaning of a slot. Writers keep their free, changed and leaving slots in such sets.
 * Memory: owned here; grows (doubling) only in slot_set_reserve. Zero-initialise to open. */
#ifndef TERRANE_STREAM_SLOT_SET_H
#define TERRANE_STREAM_SLOT_SET_H

#include <stdbool.h>
#include <stdint.h>

#define SLOT_SET_LEVELS 4u /* 64^4 slots are more than LIMIT_ENTITIES */
#define SLOT_SET_NONE   UINT32_MAX

struct slot_set {
    uint64_t *words[SLOT_SET_LEVELS];
    uint32_t room; /* slots; a power of two from 64 on */
};

void slot_set_close(struct slot_set *set);
/* Makes room for slots [0, count). */
void slot_set_reserve(struct slot_set *set, uint32_t count);

static inline bool slot_set_has(const struct slot_set *set, uint32_t slot)
{
    return slot < set->room && (set->words[0][slot >> 6] >> (slot & 63) & 1) != 0;
}

/* slot < room. Adding a member and removing a stranger change nothing. */
static inline void slot_set_add(struct slot_set *set, uint32_t slot)
{
    for (uint32_t level = 0; level < SLOT_SET_LEVELS; level++, slot >>= 6) {
        uint64_t *word = &set->words[level][slot >> 6];
        uint64_t before = *word;
        *word = before | UINT64_C(1) << (slot & 63);
        if (before != 0) return;
    }
}

static inline void slot_set_remove(struct slot_set *set, uint32_t slot)
{
    for (uint32_t level = 0; level < SLOT_SET_LEVELS; level++, slot >>= 6) {
        uint64_t *word = &set->words[level][slot >> 6];
        *word &= ~(UINT64_C(1) << (slot & 63));
        if (*word != 0) return;
    }
}

/* The members among the 64 slots around `slot`, a bit each. */
static inline uint64_t slot_set_word(const struct slot_set *set, uint32_t slot)
{
    return set->words[0][slot >> 6];
}

/* Removes those of `bits` from the 64 slots around `slot`. */
static inline void slot_set_take(struct slot_set *set, uint32_t slot, uint64_t bits)
{
    uint64_t *word = &set->words[0][slot >> 6];
    if (*word == 0 || (*word &= ~bits) != 0) return;
    *word = UINT64_C(1) << (slot & 63); /* the last one goes the usual way, up through the levels */
    slot_set_remove(set, slot);
}

/* The lowest member at or after `from`; SLOT_SET_NONE: there is none. */
static inline uint32_t slot_set_next(const struct slot_set *set, uint32_t from)
{
    if (from >= set->room) return SLOT_SET_NONE;
    uint32_t level = 0, room = set->room;
    for (;;) {
        uint64_t bits = set->words[level][from >> 6] >> (from & 63);
        if (bits != 0) {
            from += (uint32_t)__builtin_ctzll(bits);
            break;
        }
        from = (from >> 6) + 1;
        room = (room + 63) >> 6;
        if (++level == SLOT_SET_LEVELS || from >= room) return SLOT_SET_NONE;
    }
    while (level-- > 0) from = from << 6 | (uint32_t)__builtin_ctzll(set->words[level][from]);
    return from;
}

#endif
