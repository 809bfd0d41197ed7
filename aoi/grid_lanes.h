/* Vectors of packed positions, three ways: sixteen with AVX-512, eight with AVX2, or eight in plain C. Included by
 * grid_kernels.h, once for each.
 *
 * `picks` says which of the lanes are meant: a mask register, a vector of all ones and zeros, or a number. */
#ifndef TERRANE_AOI_GRID_LANES_H
#define TERRANE_AOI_GRID_LANES_H

#include <stdint.h>

#if defined(__AVX512BW__)
#include <immintrin.h>

#define LANES 16
typedef __m512i lanes;
typedef __mmask16 picks;

static inline lanes lanes_all(uint32_t v)
{
    return _mm512_set1_epi32((int)v);
}
static inline lanes lanes_load(const uint32_t *at)
{
    return _mm512_loadu_si512(at);
}
static inline lanes lanes_distance(lanes a, lanes b)
{
    lanes d = _mm512_sub_epi16(a, b);
    return _mm512_madd_epi16(d, d);
}
static inline picks lanes_below(lanes a, lanes b)
{
    return _mm512_cmplt_epi32_mask(a, b);
}
static inline picks picks_and(picks a, picks b)
{
    return (picks)(a & b);
}
static inline picks picks_or(picks a, picks b)
{
    return (picks)(a | b);
}
static inline picks picks_without(picks a, picks b)
{
    return (picks)(a & ~b);
}
static inline unsigned picks_mask(picks a)
{
    return a;
}

/* Writes the words whose bits are in the mask one after the other; returns the end. A whole vector is written. */
static inline uint32_t *lanes_put(uint32_t *to, const uint32_t *words, unsigned mask)
{
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi32((__mmask16)mask, lanes_load(words)));
    return to + __builtin_popcount(mask);
}

#elif defined(__AVX2__)
#include <immintrin.h>

#define LANES 8
typedef __m256i lanes;
typedef __m256i picks;

static inline lanes lanes_all(uint32_t v)
{
    return _mm256_set1_epi32((int)v);
}
static inline lanes lanes_load(const uint32_t *at)
{
    return _mm256_loadu_si256((const __m256i *)at);
}
static inline lanes lanes_distance(lanes a, lanes b)
{
    lanes d = _mm256_sub_epi16(a, b);
    return _mm256_madd_epi16(d, d);
}
static inline picks lanes_below(lanes a, lanes b)
{
    return _mm256_cmpgt_epi32(b, a);
}
static inline picks picks_and(picks a, picks b)
{
    return _mm256_and_si256(a, b);
}
static inline picks picks_or(picks a, picks b)
{
    return _mm256_or_si256(a, b);
}
static inline picks picks_without(picks a, picks b)
{
    return _mm256_andnot_si256(b, a);
}
static inline unsigned picks_mask(picks a)
{
    return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(a));
}

/* For each mask the numbers of its bits, lowest first, four bits each: which of eight lanes to take. */
static const uint32_t lane_orders[256] = {
    0,        0x0,       0x1,      0x10,      0x2,       0x20,      0x21,     0x210,     0x3,      0x30,
    0x31,     0x310,     0x32,     0x320,     0x321,     0x3210,    0x4,      0x40,      0x41,     0x410,
    0x42,     0x420,     0x421,    0x4210,    0x43,      0x430,     0x431,    0x4310,    0x432,    0x4320,
    0x4321,   0x43210,   0x5,      0x50,      0x51,      0x510,     0x52,     0x520,     0x521,    0x5210,
    0x53,     0x530,     0x531,    0x5310,    0x532,     0x5320,    0x5321,   0x53210,   0x54,     0x540,
    0x541,    0x5410,    0x542,    0x5420,    0x5421,    0x54210,   0x543,    0x5430,    0x5431,   0x54310,
    0x5432,   0x54320,   0x54321,  0x543210,  0x6,       0x60,      0x61,     0x610,     0x62,     0x620,
    0x621,    0x6210,    0x63,     0x630,     0x631,     0x6310,    0x632,    0x6320,    0x6321,   0x63210,
    0x64,     0x640,     0x641,    0x6410,    0x642,     0x6420,    0x6421,   0x64210,   0x643,    0x6430,
    0x6431,   0x64310,   0x6432,   0x64320,   0x64321,   0x643210,  0x65,     0x650,     0x651,    0x6510,
    0x652,    0x6520,    0x6521,   0x65210,   0x653,     0x6530,    0x6531,   0x65310,   0x6532,   0x65320,
    0x65321,  0x653210,  0x654,    0x6540,    0x6541,    0x65410,   0x6542,   0x65420,   0x65421,  0x654210,
    0x6543,   0x65430,   0x65431,  0x654310,  0x65432,   0x654320,  0x654321, 0x6543210, 0x7,      0x70,
    0x71,     0x710,     0x72,     0x720,     0x721,     0x7210,    0x73,     0x730,     0x731,    0x7310,
    0x732,    0x7320,    0x7321,   0x73210,   0x74,      0x740,     0x741,    0x7410,    0x742,    0x7420,
    0x7421,   0x74210,   0x743,    0x7430,    0x7431,    0x74310,   0x7432,   0x74320,   0x74321,  0x743210,
    0x75,     0x750,     0x751,    0x7510,    0x752,     0x7520,    0x7521,   0x75210,   0x753,    0x7530,
    0x7531,   0x75310,   0x7532,   0x75320,   0x75321,   0x753210,  0x754,    0x7540,    0x7541,   0x75410,
    0x7542,   0x75420,   0x75421,  0x754210,  0x7543,    0x75430,   0x75431,  0x754310,  0x75432,  0x754320,
    0x754321, 0x7543210, 0x76,     0x760,     0x761,     0x7610,    0x762,    0x7620,    0x7621,   0x76210,
    0x763,    0x7630,    0x7631,   0x76310,   0x7632,    0x76320,   0x76321,  0x763210,  0x764,    0x7640,
    0x7641,   0x76410,   0x7642,   0x76420,   0x76421,   0x764210,  0x7643,   0x76430,   0x76431,  0x764310,
    0x76432,  0x764320,  0x764321, 0x7643210, 0x765,     0x7650,    0x7651,   0x76510,   0x7652,   0x76520,
    0x76521,  0x765210,  0x7653,   0x76530,   0x76531,   0x765310,  0x76532,  0x765320,  0x765321, 0x7653210,
    0x7654,   0x76540,   0x76541,  0x765410,  0x76542,   0x765420,  0x765421, 0x7654210, 0x76543,  0x765430,
    0x765431, 0x7654310, 0x765432, 0x7654320, 0x7654321, 0x76543210};

/* Writes the words whose bits are in the mask one after the other; returns the end. A whole vector is written. */
static inline uint32_t *lanes_put(uint32_t *to, const uint32_t *words, unsigned mask)
{
    __m256i numbers = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    __m256i order = _mm256_srlv_epi32(_mm256_set1_epi32((int)lane_orders[mask]), numbers); /* the low 3 bits count */
    _mm256_storeu_si256((__m256i *)to, _mm256_permutevar8x32_epi32(lanes_load(words), order));
    return to + __builtin_popcount(mask);
}

#else

#define LANES 8
typedef struct {
    uint32_t v[LANES];
} lanes;
typedef unsigned picks;

static inline lanes lanes_all(uint32_t v)
{
    lanes result;
    for (unsigned i = 0; i < LANES; i++) result.v[i] = v;
    return result;
}
static inline lanes lanes_load(const uint32_t *at)
{
    lanes result;
    for (unsigned i = 0; i < LANES; i++) result.v[i] = at[i];
    return result;
}
static inline uint32_t packed_distance(uint32_t a, uint32_t b)
{
    int32_t dx = (int16_t)(uint16_t)(a - b), dy = (int16_t)(uint16_t)((a >> 16) - (b >> 16));
    return (uint32_t)(dx * dx) + (uint32_t)(dy * dy);
}
static inline lanes lanes_distance(lanes a, lanes b)
{
    lanes result;
    for (unsigned i = 0; i < LANES; i++) result.v[i] = packed_distance(a.v[i], b.v[i]);
    return result;
}
static inline picks lanes_below(lanes a, lanes b)
{
    picks result = 0;
    for (unsigned i = 0; i < LANES; i++) result |= (picks)(a.v[i] < b.v[i]) << i;
    return result;
}
static inline picks picks_and(picks a, picks b)
{
    return a & b;
}
static inline picks picks_or(picks a, picks b)
{
    return a | b;
}
static inline picks picks_without(picks a, picks b)
{
    return a & ~b;
}
static inline unsigned picks_mask(picks a)
{
    return a;
}

/* Writes the words whose bits are in the mask one after the other; returns the end. */
static inline uint32_t *lanes_put(uint32_t *to, const uint32_t *words, unsigned mask)
{
    for (; mask; mask &= mask - 1) *to++ = words[__builtin_ctz(mask)];
    return to;
}
#endif

/* The mask of the first `count` lanes, all if there are more. */
static inline unsigned lanes_first(uint32_t count)
{
    return count < LANES ? (1u << count) - 1 : (1u << LANES) - 1;
}

#endif
