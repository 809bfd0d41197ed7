/* The row kernel, compiled twice: grid_join_plain.c and grid_join_avx2.c define JOIN_ROW and include this.
 *
 * For each entity of the row: eight candidates at a time, in both directions of sight at once. Distances are of
 * differences modulo 2^16, which are the true ones for all candidates of the stencil. */
#include "aoi/grid_join.h"

#ifdef __AVX2__
#include <immintrin.h>

typedef __m256i lanes;

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
static inline lanes lanes_below(lanes a, lanes b)
{
    return _mm256_cmpgt_epi32(b, a);
}
static inline lanes lanes_and(lanes a, lanes b)
{
    return _mm256_and_si256(a, b);
}
static inline lanes lanes_or(lanes a, lanes b)
{
    return _mm256_or_si256(a, b);
}
static inline lanes lanes_without(lanes a, lanes b)
{
    return _mm256_andnot_si256(b, a);
}
static inline unsigned lanes_mask(lanes a)
{
    return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(a));
}

#else

typedef struct {
    uint32_t v[8];
} lanes;

#define LANES(expression)                                                                                              \
    lanes result;                                                                                                      \
    for (unsigned i = 0; i < 8; i++) result.v[i] = (expression);                                                       \
    return result

static inline uint32_t packed_distance(uint32_t a, uint32_t b)
{
    int32_t dx = (int16_t)(uint16_t)(a - b), dy = (int16_t)(uint16_t)((a >> 16) - (b >> 16));
    return (uint32_t)(dx * dx) + (uint32_t)(dy * dy);
}
static inline lanes lanes_all(uint32_t v)
{
    LANES(v);
}
static inline lanes lanes_load(const uint32_t *at)
{
    LANES(at[i]);
}
static inline lanes lanes_distance(lanes a, lanes b)
{
    LANES(packed_distance(a.v[i], b.v[i]));
}
static inline lanes lanes_below(lanes a, lanes b)
{
    LANES(a.v[i] < b.v[i] ? UINT32_MAX : 0);
}
static inline lanes lanes_and(lanes a, lanes b)
{
    LANES(a.v[i] & b.v[i]);
}
static inline lanes lanes_or(lanes a, lanes b)
{
    LANES(a.v[i] | b.v[i]);
}
static inline lanes lanes_without(lanes a, lanes b)
{
    LANES(a.v[i] & ~b.v[i]);
}
static inline unsigned lanes_mask(lanes a)
{
    unsigned mask = 0;
    for (unsigned i = 0; i < 8; i++) mask |= (a.v[i] & 1) << i;
    return mask;
}
#endif

/* One that looks at the candidates. */
struct looker {
    lanes near, far, in, out, radius_out;
    uint32_t handle;
};

/* Which of eight pairs must be noted, by one side's limits. First pass, or no hysteresis: seen at the near end, not
 * seen at the far one. Second pass with hysteresis: in view at the near (new) end, and the line of the radius crossed
 * one way or the other. */
static inline lanes pairs_noted(lanes near, lanes far, lanes in, lanes out, lanes radius_out, bool banded)
{
    lanes in_view = lanes_below(near, in);
    if (!banded) return lanes_without(in_view, lanes_below(far, out));
    lanes both_in = lanes_and(lanes_below(near, out), lanes_below(far, out));
    lanes one_in = lanes_or(lanes_below(near, radius_out), lanes_below(far, radius_out));
    return lanes_without(lanes_and(in_view, one_in), both_in);
}

static inline void pairs_tell(struct join *join, const struct looker *me, const uint32_t *handles, unsigned out,
                              unsigned in)
{
    struct emitter *emitter = &join->aoi->emitter;
    for (unsigned left = out | in; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        if (!join->exact) {
            join_judge(join, me->handle, handles[i]);
            continue;
        }
        unsigned sides = (out >> i & 1) * SIDE_OUT | (in >> i & 1) * SIDE_IN;
        emit_note(emitter, me->handle, join->first, sides, handles[i]);
    }
}

/* All candidates [from, to) of a row. */
static inline bool looker_run(struct join *join, const struct looker *me, const struct join_row *row, uint32_t from,
                              uint32_t to, bool mixed, bool banded)
{
    bool told = false;
    for (uint32_t i = from; i < to; i += 8) {
        unsigned real = to - i < 8 ? (1u << (to - i)) - 1 : 0xff;
        lanes near = lanes_distance(lanes_load(row->near + i), me->near);
        lanes far = lanes_distance(lanes_load(row->far + i), me->far);
        unsigned out = lanes_mask(pairs_noted(near, far, me->in, me->out, me->radius_out, banded)) & real, in = out;
        if (mixed) {
            lanes radius_out = banded ? lanes_load(row->radius_out + i) : me->radius_out;
            in = lanes_mask(
                     pairs_noted(near, far, lanes_load(row->in + i), lanes_load(row->out + i), radius_out, banded)) &
                 real;
        }
        if (!(out | in)) continue;
        pairs_tell(join, me, row->handles + i, out, in);
        told = true;
    }
    return told;
}

static inline void row_run(struct join *join, uint32_t columns_from, uint32_t columns_to, bool mixed, bool banded)
{
    const struct join_row *own = join->rows[0];
    uint32_t reach = join->reach;
    for (uint32_t column = columns_from; column < columns_to; column++) {
        for (uint32_t i = own->start[column]; i < own->start[column + 1]; i++) {
            struct looker me = {.near = lanes_all(own->near[i]),
                                .far = lanes_all(own->far[i]),
                                .in = lanes_all(own->in[i]),
                                .out = lanes_all(own->out[i]),
                                .radius_out = lanes_all(own->radius_out[i]),
                                .handle = own->handles[i]};
            bool told = looker_run(join, &me, own, i + 1, own->start[column + reach + 1], mixed, banded);
            for (uint32_t up = 1; up <= reach; up++) {
                const struct join_row *row = join->rows[up];
                told |= looker_run(join, &me, row, row->start[column - reach], row->start[column + reach + 1], mixed,
                                   banded);
            }
            if (told) emit_note_end(&join->aoi->emitter, me.handle, join->first);
        }
    }
}

/* One radius for all in the rows, the usual case, saves half of the comparisons. */
static bool rows_mixed(const struct join *join)
{
    uint32_t radius = join->rows[0]->radius;
    for (uint32_t up = 0; up <= join->reach; up++) {
        const struct join_row *row = join->rows[up];
        if (row->count && (row->mixed || row->radius != radius)) return true;
    }
    return false;
}

void JOIN_ROW(struct join *join, uint32_t columns_from, uint32_t columns_to)
{
    bool mixed = rows_mixed(join);
    if (join->banded) {
        row_run(join, columns_from, columns_to, true, true);
    } else if (mixed) {
        row_run(join, columns_from, columns_to, true, false);
    } else {
        row_run(join, columns_from, columns_to, false, false);
    }
}
