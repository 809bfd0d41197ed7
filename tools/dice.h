/* Seeded random numbers for workloads: splitmix64. The same seed gives the same numbers on every machine.
 *
 * What it is not: no source of secrets. Memory: plain data. */
#ifndef TERRANE_TOOLS_DICE_H
#define TERRANE_TOOLS_DICE_H

#include <math.h>
#include <stdint.h>

struct dice {
    uint64_t state;
};

static inline uint64_t dice_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t dice_next(struct dice *d)
{
    d->state += UINT64_C(0x9e3779b97f4a7c15);
    return dice_mix(d->state);
}

/* [0, 1) */
static inline double dice_unit(struct dice *d)
{
    return (double)(dice_next(d) >> 11) * 0x1p-53;
}

/* [low, high) */
static inline double dice_between(struct dice *d, double low, double high)
{
    return low + (high - low) * dice_unit(d);
}

/* [0, below); below is not 0. The bias is below 2^-32 for the small bounds used here. */
static inline uint32_t dice_below(struct dice *d, uint32_t below)
{
    return (uint32_t)(((dice_next(d) >> 32) * below) >> 32);
}

/* Normal with mean 0 and deviation 1 (Box and Muller, "A note on the generation of random normal deviates", 1958). */
static inline double dice_normal(struct dice *d)
{
    double radius = sqrt(-2.0 * log(1.0 - dice_unit(d)));
    return radius * cos(6.283185307179586 * dice_unit(d));
}

#endif
