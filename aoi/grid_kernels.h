/* The two inner loops, compiled twice: grid_kernels_plain.c and grid_kernels_avx2.c name them and include this.
 *
 * SIFT takes from a dense cell what lies in a circle. JOIN_ROW joins a row; for each entity of it: eight candidates at
 * a time, in both directions of sight at once. Distances are of differences modulo 2^16, which are the true ones for
 * all candidates of the stencil. */
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

/* For each mask the numbers of its bits, lowest first, four bits each: which of eight lanes to take. */
static const uint32_t join_orders[256] = {
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

/* All candidates [from, to) of a row, which each have limits of their own. */
static inline bool looker_run(struct join *join, const struct looker *me, const struct join_row *row, uint32_t from,
                              uint32_t to, bool banded)
{
    bool told = false;
    for (uint32_t i = from; i < to; i += 8) {
        unsigned real = to - i < 8 ? (1u << (to - i)) - 1 : 0xff;
        lanes near = lanes_distance(lanes_load(row->near + i), me->near);
        lanes far = lanes_distance(lanes_load(row->far + i), me->far);
        lanes in = lanes_load(row->in + i), out = lanes_load(row->out + i),
              radius_out = lanes_load(row->radius_out + i);
        unsigned i_see = lanes_mask(pairs_noted(near, far, me->in, me->out, me->radius_out, banded)) & real;
        unsigned they_see = lanes_mask(pairs_noted(near, far, in, out, radius_out, banded)) & real;
        if (!(i_see | they_see)) continue;
        pairs_tell(join, me, row->handles + i, i_see, they_see);
        told = true;
    }
    return told;
}

static inline void row_run_mixed(struct join *join, uint32_t columns_from, uint32_t columns_to, bool banded)
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
            bool told = looker_run(join, &me, own, i + 1, own->start[column + reach + 1], banded);
            for (uint32_t up = 1; up <= reach; up++) {
                const struct join_row *row = join->rows[up];
                told |= looker_run(join, &me, row, row->start[column - reach], row->start[column + reach + 1], banded);
            }
            if (told) emit_note_end(&join->aoi->emitter, me.handle, join->first);
        }
    }
}

/* ---- one radius for all: what changes, changes both ways ---- */

/* Writes the handles of the pairs noted one after the other; returns the end. Up to seven more words are written. */
static inline uint32_t *pairs_put(uint32_t *to, const uint32_t *handles, unsigned mask)
{
#ifdef __AVX2__
    __m256i numbers = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    __m256i order = _mm256_srlv_epi32(_mm256_set1_epi32((int)join_orders[mask]), numbers); /* the low 3 bits count */
    _mm256_storeu_si256((__m256i *)to, _mm256_permutevar8x32_epi32(lanes_load(handles), order));
    return to + __builtin_popcount(mask);
#else
    for (; mask; mask &= mask - 1) *to++ = handles[__builtin_ctz(mask)];
    return to;
#endif
}

/* Which of eight candidates are noted. */
static inline unsigned looker_eight(const struct looker *me, const struct join_row *row, uint32_t i)
{
    lanes near = lanes_distance(lanes_load(row->near + i), me->near);
    lanes far = lanes_distance(lanes_load(row->far + i), me->far);
    return lanes_mask(lanes_without(lanes_below(near, me->in), lanes_below(far, me->in)));
}

static inline uint32_t *looker_run_alike(uint32_t *to, const struct looker *me, const struct join_row *row,
                                         uint32_t from, uint32_t end)
{
    uint32_t i = from;
    for (; i + 8 <= end; i += 8) to = pairs_put(to, row->handles + i, looker_eight(me, row, i));
    if (i < end) to = pairs_put(to, row->handles + i, looker_eight(me, row, i) & ((1u << (end - i)) - 1));
    return to;
}

/* As looker_run, into the notes; long runs in pieces, so that the notes never overflow. */
static inline void looker_note(struct join *join, const struct looker *me, const struct join_row *row, uint32_t from,
                               uint32_t end)
{
    enum { PIECE = NOTES_BATCH / 2 };
    struct emitter *emitter = &join->aoi->emitter;
    struct notes *notes = &emitter->notes[(SIDE_OUT | SIDE_IN) - 1];
    while (from < end) {
        uint32_t piece = end - from < PIECE ? end - from : PIECE;
        if (__builtin_expect(notes->used + piece + 8 > NOTES_BATCH, 0)) {
            emit_note_end(emitter, me->handle, join->first);
            emit_flush(emitter);
        }
        uint32_t *to = looker_run_alike(notes->words + notes->used, me, row, from, from + piece);
        notes->used = (uint32_t)(to - notes->words);
        from += piece;
    }
}

/* What is noted of one that has few candidates: eight in its own row and sixteen above. */
static inline void looker_note_few(struct join *join, const struct looker *me, const uint32_t *own, const uint32_t *up,
                                   unsigned mask)
{
    struct emitter *emitter = &join->aoi->emitter;
    for (; mask; mask &= mask - 1) {
        unsigned bit = (unsigned)__builtin_ctz(mask);
        emit_note(emitter, me->handle, join->first, SIDE_OUT | SIDE_IN, bit < 8 ? own[bit] : up[bit - 8]);
    }
    emit_note_end(emitter, me->handle, join->first);
}

/* A column of a sparse world. Most note nothing, so all candidates are decided on at once, without a loop whose end
 * nobody foresees. */
static inline void column_run_few(struct join *join, uint32_t column)
{
    const struct join_row *own = join->rows[0], *up = join->rows[1];
    uint32_t own_end = own->start[column + 2], up_from = up->start[column - 1];
    unsigned up_real = (1u << (up->start[column + 2] - up_from)) - 1;
    lanes in = lanes_all(own->limits.in);
    for (uint32_t i = own->start[column]; i < own->start[column + 1]; i++) {
        struct looker me = {.near = lanes_all(own->near[i]), .far = lanes_all(own->far[i]), .in = in};
        unsigned mask = looker_eight(&me, own, i + 1) & ((1u << (own_end - i - 1)) - 1);
        mask |= ((looker_eight(&me, up, up_from) | looker_eight(&me, up, up_from + 8) << 8) & up_real) << 8;
        if (!mask) continue;
        me.handle = own->handles[i];
        looker_note_few(join, &me, own->handles + i + 1, up->handles + up_from, mask);
    }
}

static inline void column_run_alike(struct join *join, uint32_t column)
{
    const struct join_row *own = join->rows[0];
    const struct notes *notes = &join->aoi->emitter.notes[(SIDE_OUT | SIDE_IN) - 1];
    uint32_t reach = join->reach;
    lanes in = lanes_all(own->limits.in);
    for (uint32_t i = own->start[column]; i < own->start[column + 1]; i++) {
        struct looker me = {.near = lanes_all(own->near[i]), .far = lanes_all(own->far[i]), .in = in};
        me.handle = own->handles[i];
        looker_note(join, &me, own, i + 1, own->start[column + reach + 1]);
        for (uint32_t up = 1; up <= reach; up++) {
            const struct join_row *row = join->rows[up];
            looker_note(join, &me, row, row->start[column - reach], row->start[column + reach + 1]);
        }
        if (notes->used != notes->start) emit_note_end(&join->aoi->emitter, me.handle, join->first);
    }
}

static inline void row_run_alike(struct join *join, uint32_t columns_from, uint32_t columns_to)
{
    const struct join_row *own = join->rows[0], *up = join->rows[1];
    for (uint32_t column = columns_from; column < columns_to; column++) {
        if (join->reach == 1 && own->start[column + 2] - own->start[column] <= 9 &&
            up->start[column + 2] - up->start[column - 1] <= 16) {
            column_run_few(join, column);
        } else {
            column_run_alike(join, column);
        }
    }
}

void JOIN_ROW(struct join *join, uint32_t columns_from, uint32_t columns_to)
{
    if (!join->mixed) {
        if (join->rows[0]->limits.in) row_run_alike(join, columns_from, columns_to);
    } else if (join->banded) {
        row_run_mixed(join, columns_from, columns_to, true);
    } else {
        row_run_mixed(join, columns_from, columns_to, false);
    }
}

size_t SIFT(const uint32_t *copy, const uint32_t *handles, uint32_t count, uint32_t centre, uint32_t limit,
            uint32_t *out)
{
    lanes at = lanes_all(centre), below = lanes_all(limit);
    uint32_t *to = out;
    for (uint32_t i = 0; i < count; i += 8) {
        unsigned real = count - i < 8 ? (1u << (count - i)) - 1 : 0xff;
        unsigned mask = lanes_mask(lanes_below(lanes_distance(lanes_load(copy + i), at), below));
        to = pairs_put(to, handles + i, mask & real);
    }
    return (size_t)(to - out);
}
