/* A seeded source of chance for the simulator: splitmix64. Every concern draws from dice of its own, so that one more
 * throw in one place does not change the others.
 *
 * What it is not: no secret and no library for others; cores never see it. */
#ifndef TERRANE_TESTS_SIM_DICE_H
#define TERRANE_TESTS_SIM_DICE_H

#include <stdbool.h>
#include <stdint.h>

struct dice {
    uint64_t state;
};

static inline uint64_t dice_mix(uint64_t v)
{
    v = (v ^ (v >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    v = (v ^ (v >> 27)) * UINT64_C(0x94d049bb133111eb);
    return v ^ (v >> 31);
}

static inline struct dice dice_of(uint64_t seed, uint64_t concern)
{
    return (struct dice){dice_mix(seed + UINT64_C(0x9e3779b97f4a7c15)) ^ dice_mix(concern * 77 + 1)};
}

static inline uint64_t dice_next(struct dice *d)
{
    d->state += UINT64_C(0x9e3779b97f4a7c15);
    return dice_mix(d->state);
}

/* [0, count); 0 if count is 0. */
static inline uint64_t dice_below(struct dice *d, uint64_t count)
{
    return count == 0 ? 0 : dice_next(d) % count;
}

/* [low, high], both included. */
static inline int64_t dice_between(struct dice *d, int64_t low, int64_t high)
{
    return low + (int64_t)dice_below(d, (uint64_t)(high - low) + 1);
}

/* [0, 1). */
static inline double dice_fraction(struct dice *d)
{
    return (double)(dice_next(d) >> 11) * 0x1p-53;
}

static inline bool dice_chance(struct dice *d, double probability)
{
    return dice_fraction(d) < probability;
}

#endif
