/* The inner loops, compiled three times: grid_kernels_plain.c, _avx2.c and _avx512.c name them and include this.
 *
 * SIFT takes from a patch of cells what lies in a circle. JOIN_ROW joins a row; for each entity of it: a
 * vector of candidates at a time, in both directions of sight at once. Distances are of differences modulo 2^16, which
 * are the true ones for all candidates of the stencil. */
#include "aoi/grid_join.h"
#include "aoi/grid_lanes.h"

#define FEW_ABOVE 16 /* candidates in the row above that column_run_few takes */

/* One that looks at the candidates. */
struct looker {
    lanes near, far, in, out, radius_out;
    uint32_t handle;
};

/* Which pairs must be noted, by one side's limits. First pass, or no hysteresis: seen at the near end, not
 * seen at the far one. Second pass with hysteresis: in view at the near (new) end, and the line of the radius crossed
 * one way or the other. */
static inline picks pairs_noted(lanes near, lanes far, lanes in, lanes out, lanes radius_out, bool banded)
{
    picks in_view = lanes_below(near, in);
    if (!banded) return picks_without(in_view, lanes_below(far, out));
    picks both_in = picks_and(lanes_below(near, out), lanes_below(far, out));
    picks one_in = picks_or(lanes_below(near, radius_out), lanes_below(far, radius_out));
    return picks_without(picks_and(in_view, one_in), both_in);
}

static inline void pairs_tell(struct join *join, const struct looker *me, const uint32_t *handles, unsigned out,
                              unsigned in)
{
    struct emitter *emitter = &join->grid->emitter;
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
    for (uint32_t i = from; i < to; i += LANES) {
        unsigned real = lanes_first(to - i);
        lanes near = lanes_distance(lanes_load(row->near + i), me->near);
        lanes far = lanes_distance(lanes_load(row->far + i), me->far);
        lanes in = lanes_load(row->in + i), out = lanes_load(row->out + i),
              radius_out = lanes_load(row->radius_out + i);
        unsigned i_see = picks_mask(pairs_noted(near, far, me->in, me->out, me->radius_out, banded)) & real;
        unsigned they_see = picks_mask(pairs_noted(near, far, in, out, radius_out, banded)) & real;
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
            if (told) emit_note_end(&join->grid->emitter, me.handle, join->first);
        }
    }
}

/* ---- one radius for all: what changes, changes both ways ---- */

/* Which candidates of a vector are noted. */
static inline unsigned looker_pick(const struct looker *me, const uint32_t *near, const uint32_t *far)
{
    picks in_view = lanes_below(lanes_distance(lanes_load(near), me->near), me->in);
    return picks_mask(picks_without(in_view, lanes_below(lanes_distance(lanes_load(far), me->far), me->in)));
}

/* Writes those of the candidates [from, end) that are noted; returns the end of what it wrote. */
static inline uint32_t *looker_put(uint32_t *to, const struct looker *me, const struct join_row *row, uint32_t from,
                                   uint32_t end)
{
    const uint32_t *near = row->near, *far = row->far, *handles = row->handles; /* nothing written lies in them */
    for (; from + LANES <= end; from += LANES) {
        to = lanes_put(to, handles + from, looker_pick(me, near + from, far + from));
    }
    unsigned real = (1u << (end - from)) - 1;
    return real ? lanes_put(to, handles + from, looker_pick(me, near + from, far + from) & real) : to;
}

/* The same into the notes, in pieces, so that they never overflow. */
static inline void looker_note(struct join *join, const struct looker *me, const struct join_row *row, uint32_t from,
                               uint32_t end)
{
    enum { PIECE = NOTES_BATCH / 2 };
    struct emitter *emitter = &join->grid->emitter;
    struct notes *notes = &emitter->notes[(SIDE_OUT | SIDE_IN) - 1];
    while (from < end) {
        uint32_t piece = end - from < PIECE ? end - from : PIECE;
        if (__builtin_expect(notes->used + piece + LANES > NOTES_BATCH, 0)) {
            emit_note_end(emitter, me->handle, join->first);
            emit_flush(emitter);
        }
        uint32_t *to = looker_put(notes->words + notes->used, me, row, from, from + piece);
        notes->used = (uint32_t)(to - notes->words);
        from += piece;
    }
}

/* Ends the span of those noted. It is written in any case and kept if there is anybody in it, since nobody can foresee
 * that. */
static inline void looker_end(struct join *join, uint32_t handle)
{
    struct emitter *emitter = &join->grid->emitter;
    struct notes *notes = &emitter->notes[(SIDE_OUT | SIDE_IN) - 1];
    if (__builtin_expect(emitter->count == SPANS_BATCH, 0)) emit_flush(emitter);
    emitter->spans[emitter->count] = (struct aoi_span){.subject = handle,
                                                       .change = change_of(join->first, SIDE_OUT | SIDE_IN),
                                                       .others = notes->words + notes->start,
                                                       .count = notes->used - notes->start};
    emitter->count += notes->used != notes->start;
    notes->start = notes->used;
}

/* What is noted of one that has few candidates: a vector of its own row and sixteen above. */
static inline void looker_note_few(struct join *join, const struct looker *me, const uint32_t *own, const uint32_t *up,
                                   uint32_t mask)
{
    struct emitter *emitter = &join->grid->emitter;
    for (; mask; mask &= mask - 1) {
        unsigned bit = (unsigned)__builtin_ctz(mask);
        emit_note(emitter, me->handle, join->first, SIDE_OUT | SIDE_IN, bit < LANES ? own[bit] : up[bit - LANES]);
    }
    looker_end(join, me->handle);
}

/* One that may have many candidates. */
static inline void looker_run_many(struct join *join, uint32_t i, uint32_t column, lanes in)
{
    const struct join_row *own = join->rows[0], *above = join->rows[1];
    struct notes *notes = &join->grid->emitter.notes[(SIDE_OUT | SIDE_IN) - 1];
    uint32_t reach = join->reach, own_end = own->start[column + reach + 1];
    uint32_t from = above->start[column - reach], end = above->start[column + reach + 1];
    struct looker me = {.near = lanes_all(own->near[i]), .far = lanes_all(own->far[i]), .in = in};
    me.handle = own->handles[i];
    if (__builtin_expect(reach == 1 && notes->used + (own_end - i) + (end - from) + LANES <= NOTES_BATCH, 1)) {
        uint32_t *to = looker_put(notes->words + notes->used, &me, own, i + 1, own_end);
        to = looker_put(to, &me, above, from, end);
        notes->used = (uint32_t)(to - notes->words);
    } else {
        looker_note(join, &me, own, i + 1, own_end);
        for (uint32_t up = 1; up <= reach; up++) {
            const struct join_row *row = join->rows[up];
            looker_note(join, &me, row, row->start[column - reach], row->start[column + reach + 1]);
        }
    }
    looker_end(join, me.handle);
}

/* In a sparse world all candidates are decided on at once, without a loop whose end nobody foresees, and most note
 * nothing. */
static inline void row_run_alike(struct join *join, uint32_t columns_from, uint32_t columns_to)
{
    const struct join_row *own = join->rows[0], *up = join->rows[1];
    uint32_t reach = join->reach;
    lanes in = lanes_all(own->limits.in);
    for (uint32_t i = own->start[columns_from], end = own->start[columns_to]; i < end; i++) {
        uint32_t column = own->column[i];
        uint32_t east = own->start[column + reach + 1] - i - 1;
        uint32_t above_from = up->start[column - reach], above = up->start[column + reach + 1] - above_from;
        if ((reach != 1) | (east > LANES) | (above > FEW_ABOVE)) {
            looker_run_many(join, i, column, in);
            continue;
        }
        struct looker me = {.near = lanes_all(own->near[i]), .far = lanes_all(own->far[i]), .in = in};
        uint32_t mask = looker_pick(&me, own->near + i + 1, own->far + i + 1) & lanes_first(east), above_mask = 0;
        const uint32_t *near = up->near + above_from, *far = up->far + above_from;
        for (uint32_t j = 0; j < FEW_ABOVE; j += LANES)
            above_mask |= (uint32_t)looker_pick(&me, near + j, far + j) << j;
        mask |= (above_mask & ((1u << above) - 1)) << LANES;
        if (!mask) continue;
        me.handle = own->handles[i];
        looker_note_few(join, &me, own->handles + i + 1, up->handles + above_from, mask);
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

uint32_t *SIFT(const struct sieve *sieve, const struct cell *corner, uint32_t *out)
{
    lanes at = lanes_all(sieve->centre), below = lanes_all(sieve->limit);
    const uint32_t *words = sieve->words;
    for (uint32_t row = 0; row < sieve->rows; row++) {
        const struct cell *cell = corner + row * PAGE_SIDE, *end = cell + sieve->columns;
        for (; cell < end; cell++) {
            const uint32_t *handles = words + cell->offset, *copy = handles + cell_room(cell);
            uint32_t i = 0, count = cell->count;
            do { /* at once for most, and for the empty as well: nobody can foresee which they are */
                unsigned mask = picks_mask(lanes_below(lanes_distance(lanes_load(copy + i), at), below));
                out = lanes_put(out, handles + i, mask & lanes_first(count - i));
                i += LANES;
            } while (i < count);
        }
    }
    return out;
}
