/* Staging a whole tick, and the sweep over all bodies that begins a tick of AOI_BLOCK.
 *
 * Both only stream: a body is half a vector, so two are handled at a time, and eight share the decision whether they
 * are all of the usual kind. What is unusual (a jump, z, something to refuse) is left to the plain code. */
#include "aoi/grid_bulk.h"

/* Without a branch on what is not foreseeable: six in a hundred cross, and a wrong guess costs more than the work. */
static uint32_t *sweep_plain(struct grid *grid, uint32_t from, uint32_t to, uint32_t *crossers)
{
    for (uint32_t handle = from; handle < to; handle++) {
        struct body *body = &grid->bodies[handle];
        int32_t x = body->x, y = body->y, next_x = x + body->step_x, next_y = y + body->step_y;
        if (__builtin_expect(body->step_x == STEP_JUMP, 0)) {
            struct position next = staged_of(grid, handle);
            next_x = next.x;
            next_y = next.y;
        }
        bool crosses = x_cells_differ(grid, x, next_x) | y_cells_differ(grid, y, next_y);
        body->x = crosses ? x : next_x;
        body->y = crosses ? y : next_y;
        body->step_x = crosses ? body->step_x : 0;
        body->step_y = crosses ? body->step_y : 0;
        *crossers = handle;
        crossers += crosses;
    }
    return crossers;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define WITH_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))

/* The words of two bodies: x, y, steps, radius. */
enum { WORD_STEPS = 1 << 2 | 1 << 6, WORD_RADIUS = 1 << 3 | 1 << 7 };

WITH_AVX2 static inline __m256i pair_load(const void *at)
{
    return _mm256_loadu_si256((const __m256i *)at);
}

WITH_AVX2 static inline __m256i pair_all(int32_t x, int32_t y, int32_t third, int32_t fourth)
{
    return _mm256_setr_epi32(x, y, third, fourth, x, y, third, fourth);
}

/* Two positions, with whatever follows in their fourth words; reads four bytes more than they are. */
WITH_AVX2 static inline __m256i positions_load(const struct position *at)
{
    __m128i first = _mm_loadu_si128((const __m128i *)at), second = _mm_loadu_si128((const __m128i *)(at + 1));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1);
}

WITH_AVX2 static inline bool handles_follow(const uint32_t *handles)
{
    __m256i numbers = _mm256_add_epi32(_mm256_set1_epi32((int)handles[0]), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm256_movemask_epi8(_mm256_cmpeq_epi32(pair_load(handles), numbers)) == -1;
}

WITH_AVX2 static size_t stage_avx2(struct grid *grid, const uint32_t *handles, const struct position *positions,
                                   size_t count)
{
    const __m256i low = pair_all(grid->options.min_x, grid->options.min_y, 0, 0),
                  most = _mm256_set1_epi32(grid->step_max);
    /* The largest allowed of: the place in the bounds (and z 0); the step; the radius. */
    const __m256i place_most = pair_all((int)(grid->span_x - 1), (int)(grid->span_y - 1), 0, -1);
    const __m256i step_most = pair_all(2 * grid->step_max, 2 * grid->step_max, -1, -1);
    const __m256i radius_most = pair_all(-1, -1, -1, (int)(BODY_DEAD - 1));
    const __m256i to_steps =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, 0, 1, 4, 5, -1, -1, -1, -1));
    uint32_t fresh = 0;
    size_t done = 0;
    for (; done + BULK_LANES < count; done += BULK_LANES) { /* the last position could not be read so broadly */
        if (handles[done] + (uint64_t)BULK_LANES > grid->high || !handles_follow(handles + done)) break;
        struct body *bodies = grid->bodies + handles[done];
        __m256i places = _mm256_setzero_si256(), steps = places, radii = places, after[BULK_LANES / 2];
        unsigned idle = 0;
#pragma GCC unroll 4
        for (unsigned i = 0; i < BULK_LANES / 2; i++) {
            __m256i body = pair_load(bodies + 2 * i), position = positions_load(positions + done + 2 * i);
            __m256i step = _mm256_sub_epi32(position, body);
            places = _mm256_max_epu32(places, _mm256_sub_epi32(position, low));
            steps = _mm256_max_epu32(steps, _mm256_add_epi32(step, most));
            radii = _mm256_max_epu32(radii, body);
            after[i] = _mm256_blend_epi32(body, _mm256_shuffle_epi8(step, to_steps), WORD_STEPS);
            __m256i still = _mm256_cmpeq_epi32(body, _mm256_setzero_si256());
            idle += (unsigned)__builtin_popcount((unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(still)) & WORD_STEPS);
        }
        __m256i places_fit = _mm256_cmpeq_epi32(_mm256_max_epu32(places, place_most), place_most);
        __m256i steps_fit = _mm256_cmpeq_epi32(_mm256_max_epu32(steps, step_most), step_most);
        __m256i radii_fit = _mm256_cmpeq_epi32(_mm256_max_epu32(radii, radius_most), radius_most);
        __m256i fit = _mm256_and_si256(_mm256_and_si256(places_fit, steps_fit), radii_fit);
        if (_mm256_movemask_epi8(fit) != -1) break;
#pragma GCC unroll 4
        for (unsigned i = 0; i < BULK_LANES / 2; i++) _mm256_storeu_si256((__m256i *)(bodies + 2 * i), after[i]);
        fresh += idle;
    }
    grid->staged += fresh;
    return done;
}

/* What the sweep asks of a pair of bodies, the same for all. */
struct sweep {
    __m256i base, reciprocal_high, reciprocal_low;
    __m128i shift;
    bool shifts;
};

/* Of (x, -, y, -) twice, the cells in the same words. */
WITH_AVX2 static inline __m256i pair_cells(const struct sweep *sweep, __m256i places)
{
    __m256i offsets = _mm256_shuffle_epi32(_mm256_sub_epi32(places, sweep->base), 0x50);
    __m256i low = _mm256_srli_epi64(_mm256_mul_epu32(offsets, sweep->reciprocal_low), 32);
    return _mm256_srli_epi64(_mm256_add_epi64(_mm256_mul_epu32(offsets, sweep->reciprocal_high), low), 32);
}

/* All ones for each of two bodies that stays in its cell. */
WITH_AVX2 static inline __m256i pair_stays(const struct sweep *sweep, __m256i body, __m256i next)
{
    __m256i apart, both = _mm256_xor_si256(body, next);
    if (sweep->shifts) {
        apart = _mm256_srl_epi32(_mm256_unpacklo_epi64(both, both), sweep->shift);
    } else {
        apart = _mm256_xor_si256(pair_cells(sweep, body), pair_cells(sweep, next));
        apart = _mm256_shuffle_epi32(apart, 0x88);
    }
    __m256i same = _mm256_cmpeq_epi32(apart, _mm256_setzero_si256());
    return _mm256_and_si256(same, _mm256_shuffle_epi32(same, 0xb1));
}

/* Eight bodies; returns which cross. Not for those that jump. */
WITH_AVX2 static inline unsigned sweep_eight(const struct sweep *sweep, struct body *bodies)
{
    const __m256i to_words =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(-1, -1, 8, 9, -1, -1, 10, 11, -1, -1, -1, -1, -1, -1, -1, -1));
    __m256i stays[BULK_LANES / 2];
#pragma GCC unroll 4
    for (unsigned i = 0; i < BULK_LANES / 2; i++) {
        __m256i body = pair_load(bodies + 2 * i);
        __m256i next = _mm256_add_epi32(body, _mm256_srai_epi32(_mm256_shuffle_epi8(body, to_words), 16));
        stays[i] = pair_stays(sweep, body, next);
        next = _mm256_blend_epi32(next, _mm256_setzero_si256(), WORD_STEPS);
        _mm256_storeu_si256((__m256i *)(bodies + 2 * i), _mm256_blendv_epi8(body, next, stays[i]));
    }
    /* Four bits a body: the even ones in the low half, the odd ones in the high half. */
    __m256i all = _mm256_packs_epi16(_mm256_packs_epi32(stays[0], stays[1]), _mm256_packs_epi32(stays[2], stays[3]));
    unsigned bits = ~(unsigned)_mm256_movemask_epi8(all);
    return _pdep_u32(_pext_u32(bits, 0x1111), 0x55) | _pdep_u32(_pext_u32(bits, 0x11110000), 0xaa);
}

WITH_AVX2 static inline bool any_jumps(const struct body *bodies)
{
    __m256i jumps = _mm256_setzero_si256();
    for (unsigned i = 0; i < BULK_LANES / 2; i++) {
        jumps = _mm256_or_si256(jumps, _mm256_cmpeq_epi16(pair_load(bodies + 2 * i), _mm256_set1_epi16(STEP_JUMP)));
    }
    return _mm256_movemask_epi8(jumps) & 0x03000300;
}

/* Writes the numbers of a mask's bits, from `first` on, one after the other; returns the end. */
WITH_AVX2 static inline uint32_t *numbers_put(uint32_t *to, uint32_t first, unsigned mask)
{
    uint64_t bytes = _pext_u64(0x0706050403020100u, _pdep_u64(mask, 0x0101010101010101u) * 0xff);
    __m256i numbers = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)bytes));
    _mm256_storeu_si256((__m256i *)to, _mm256_add_epi32(numbers, _mm256_set1_epi32((int)first)));
    return to + __builtin_popcount(mask);
}

WITH_AVX2 static uint32_t *sweep_avx2(struct grid *grid, uint32_t from, uint32_t to, uint32_t *crossers)
{
    struct sweep sweep = {.base = pair_all((int32_t)grid->base_x, (int32_t)grid->base_y, 0, 0),
                          .reciprocal_high = _mm256_set1_epi64x((int64_t)(grid->reciprocal >> 32)),
                          .reciprocal_low = _mm256_set1_epi64x((int64_t)(grid->reciprocal & UINT32_MAX)),
                          .shift = _mm_cvtsi32_si128((int)grid->cell_shift),
                          .shifts = !grid->reciprocal};
    uint32_t handle = from;
    for (; handle + BULK_LANES <= to; handle += BULK_LANES) {
        if (__builtin_expect(grid->jump_count != 0, 0) && any_jumps(grid->bodies + handle)) {
            crossers = sweep_plain(grid, handle, handle + BULK_LANES, crossers);
        } else {
            crossers = numbers_put(crossers, handle, sweep_eight(&sweep, grid->bodies + handle));
        }
    }
    return sweep_plain(grid, handle, to, crossers);
}
#endif

size_t bulk_stage(struct grid *grid, const uint32_t *handles, const struct position *positions, size_t count)
{
#if defined(__x86_64__)
    if (grid->kernels >= KERNELS_AVX2 && grid->narrow && !grid->z) return stage_avx2(grid, handles, positions, count);
#endif
    (void)grid, (void)handles, (void)positions, (void)count;
    return 0;
}

uint32_t bulk_sweep(struct grid *grid, uint32_t from, uint32_t to, uint32_t *crossers)
{
#if defined(__x86_64__)
    if (grid->kernels >= KERNELS_AVX2 && grid->narrow)
        return (uint32_t)(sweep_avx2(grid, from, to, crossers) - crossers);
#endif
    return (uint32_t)(sweep_plain(grid, from, to, crossers) - crossers);
}
