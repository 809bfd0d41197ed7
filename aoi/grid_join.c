/* The tick of AOI_RADIUS when most move: a self-join of the whole world, twice.
 *
 * Mover by mover, each pair is looked at from random memory, twice as often as needed. Instead, page by page, the rows
 * of cells are laid out as short columns: where each entity was and will be, 16 bits a coordinate, and its squared
 * radius. An entity is compared with all that follow it in reach: to the east in its row, and in the rows to the
 * north. A row of neighbouring cells is one stretch of memory, so eight candidates a step pay even at two or three a
 * cell. The first pass goes over the cells of the old places and finds what is lost, then crossers change over, and the
 * second goes over the new ones and finds what is gained. Laying out rows costs one random read an entity and pass;
 * keeping them would cost 12 bytes an entity.
 *
 * 16 bits: coordinates modulo 2^16 (after a shift, if cells are larger than some 8000 units), whose differences are
 * exact within the stencil. Where the shift is 0 and there is no hysteresis the comparison is the answer; otherwise it
 * is a sieve with a margin, and what it lets through is judged by the bodies.
 *
 * Left out of the join, and judged one by one: those that jump (their difference would not fit), and what the few see
 * whose radius is far larger than most (the stencil is not made for them). */
#include "aoi/grid_join.h"

#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

void join_close(struct grid *grid)
{
    for (size_t i = 0; i < grid->row_count; i++) free(grid->rows[i].words);
    free(grid->rows);
}

size_t join_memory_bytes(const struct grid *grid)
{
    size_t bytes = grid->row_count * sizeof *grid->rows;
    for (size_t i = 0; i < grid->row_count; i++) bytes += grid->rows[i].room * JOIN_COLUMNS * sizeof(uint32_t);
    return bytes;
}

bool join_judge(struct join *join, uint32_t subject, uint32_t other)
{
    struct grid *grid = join->grid;
    struct side a = side_of(grid, subject), b = side_of(grid, other);
    struct side a_after = side_next(grid, subject, &a), b_after = side_next(grid, other, &b);
    if (view_reach(grid, a.radius) > join->reach) a.radius = a_after.radius = 0;
    if (view_reach(grid, b.radius) > join->reach) b.radius = b_after.radius = 0;
    struct pair_change change = pair_judge(grid, subject, &a, &a_after, other, &b, &b_after);
    unsigned told;
    if (join->first == UNSEES) {
        told = change.before & ~change.after;
        pair_settle_lost(grid, subject, other, change);
    } else {
        told = change.after & ~change.before;
        pair_settle_kept(grid, subject, &a_after, other, &b_after, change);
    }
    if (told) emit_note(&grid->emitter, subject, join->first, told, other);
    return told;
}

/* ---- laying out rows ---- */

static void row_grow(struct join_row *row, size_t need)
{
    size_t room = 2 * need;
    uint32_t *words = calloc(room * JOIN_COLUMNS, sizeof *words);
    CHECK(words != NULL); /* a tick that is half reported can't be undone */
    uint32_t **columns[JOIN_COLUMNS] = {&row->handles, &row->near,       &row->far,   &row->in,
                                        &row->out,     &row->radius_out, &row->column};
    for (size_t i = 0; i < JOIN_COLUMNS; i++) {
        for (uint32_t j = 0; j < row->count; j++) words[i * room + j] = (*columns[i])[j];
        *columns[i] = words + i * room;
    }
    free(row->words);
    row->words = words;
    row->room = room;
}

static inline void row_reserve(struct join_row *row, size_t more)
{
    size_t need = row->count + more + 40; /* vectors may reach so far over the end */
    if (__builtin_expect(need > row->room, 0)) row_grow(row, need);
}

static uint32_t limit_above(uint64_t radius, unsigned shift)
{
    uint64_t r = radius >> shift;
    if (shift) r += 3;
    return (uint32_t)(r * r + 1);
}

static uint32_t limit_below(uint64_t radius, unsigned shift)
{
    uint64_t r = radius >> shift;
    if (shift) r = r > 2 ? r - 2 : 0;
    return r || !shift ? (uint32_t)(r * r + 1) : 0;
}

/* Distances of packed positions are off by less than 1.5 where there is a shift: `in` errs outwards, `out` inwards. */
static struct join_limits limits_of(const struct join *join, uint32_t radius)
{
    const struct grid *grid = join->grid;
    struct join_limits limits = {.radius = radius};
    if (!radius || view_reach(grid, radius) > join->reach) return limits;
    uint64_t limit = view_limit(grid, radius);
    limits.in = limit_above(limit, join->shift);
    limits.out = limit_below(join->banded ? radius : limit, join->shift);
    limits.radius_out = limit_above(radius, join->shift);
    return limits;
}

static inline uint32_t packed(int32_t x, int32_t y, unsigned shift)
{
    return ((uint32_t)(x >> shift) & 0xffff) | (uint32_t)(y >> shift) << 16;
}

/* What a row's bodies say as a whole. */
struct row_sum {
    uint32_t radius, others; /* of the first; 0 if all the others' are the same */
    bool jumps;
};

/* Reads four bodies a time, where positions are packed as they are; returns how many. */
static uint32_t row_read_fours(const struct join *join, const struct join_row *row, uint32_t *before, uint32_t *after,
                               struct row_sum *sum)
{
    uint32_t done = 0;
#if defined(__SSE2__)
    if (join->shift) return 0;
    const struct body *bodies = join->grid->bodies;
    const __m128i low_half = _mm_set1_epi32(0xffff), radius = _mm_set1_epi32((int)sum->radius);
    __m128i others = _mm_setzero_si128(), jumps = others;
    for (; done + 4 <= row->count; done += 4) {
        const uint32_t *handles = row->handles + done;
        __m128 x = _mm_loadu_ps((const float *)&bodies[handles[0]]),
               y = _mm_loadu_ps((const float *)&bodies[handles[1]]);
        __m128 steps = _mm_loadu_ps((const float *)&bodies[handles[2]]);
        __m128 radii = _mm_loadu_ps((const float *)&bodies[handles[3]]);
        _MM_TRANSPOSE4_PS(x, y, steps, radii);
        __m128i xs = _mm_and_si128(_mm_castps_si128(x), low_half), ys = _mm_slli_epi32(_mm_castps_si128(y), 16);
        __m128i at = _mm_or_si128(xs, ys), step = _mm_castps_si128(steps);
        _mm_storeu_si128((__m128i *)(before + done), at);
        _mm_storeu_si128((__m128i *)(after + done), _mm_add_epi16(at, step));
        jumps =
            _mm_or_si128(jumps, _mm_cmpeq_epi32(_mm_and_si128(step, low_half), _mm_set1_epi32((uint16_t)STEP_JUMP)));
        others = _mm_or_si128(others, _mm_xor_si128(_mm_castps_si128(radii), radius));
    }
    sum->jumps = _mm_movemask_epi8(jumps) != 0;
    sum->others = _mm_movemask_epi8(_mm_cmpeq_epi32(others, _mm_setzero_si128())) != 0xffff;
#else
    (void)join, (void)row, (void)before, (void)after, (void)sum;
#endif
    return done;
}

/* Reads the bodies of the row's handles. One flat loop with hardly a branch, so that many reads are under way at a
 * time. Returns whether anybody jumps. */
static bool row_read(const struct join *join, struct join_row *row)
{
    const struct body *bodies = join->grid->bodies;
    uint32_t *before = join->first == UNSEES ? row->near : row->far;
    uint32_t *after = join->first == UNSEES ? row->far : row->near;
    struct row_sum sum = {.radius = row->count ? bodies[row->handles[0]].radius : 0};
    for (uint32_t i = row_read_fours(join, row, before, after, &sum); i < row->count; i++) {
        const struct body *body = &bodies[row->handles[i]];
        before[i] = packed(body->x, body->y, join->shift);
        after[i] = packed(body->x + body->step_x, body->y + body->step_y, join->shift);
        sum.jumps |= body->step_x == STEP_JUMP;
        sum.others |= body->radius ^ sum.radius;
    }
    row->mixed = sum.others != 0;
    row->limits = limits_of(join, sum.radius);
    row->limited = false;
    return sum.jumps;
}

/* Fills in what each member's radius means, where one set of limits for all will not do. */
static void row_limit(const struct join *join, struct join_row *row)
{
    if (row->limited) return;
    struct join_limits limits = row->limits;
    for (uint32_t i = 0; i < row->count; i++) {
        uint32_t radius = join->grid->bodies[row->handles[i]].radius;
        if (radius != limits.radius) limits = limits_of(join, radius);
        row->in[i] = limits.in;
        row->out[i] = limits.out;
        row->radius_out[i] = limits.radius_out;
    }
    row->limited = true;
}

/* Whether the rows in reach hold more than one radius. */
static bool rows_mixed(const struct join *join)
{
    uint32_t radius = join->rows[0]->limits.radius;
    for (uint32_t up = 0; up <= join->reach; up++) {
        const struct join_row *row = join->rows[up];
        if (row->count && (row->mixed || row->limits.radius != radius)) return true;
    }
    return false;
}

/* Takes those who jump out of the row again. */
static void row_drop_jumps(const struct join *join, struct join_row *row)
{
    uint32_t kept = 0, cell = 0;
    for (uint32_t i = 0; i < row->count; i++) {
        while (row->start[cell] <= i && cell < PAGE_SIDE + 2 * join->reach) row->start[cell++] = kept;
        if (join->grid->bodies[row->handles[i]].step_x == STEP_JUMP) continue;
        row->handles[kept] = row->handles[i];
        row->column[kept] = row->column[i];
        row->near[kept] = row->near[i];
        row->far[kept++] = row->far[i];
    }
    while (cell <= PAGE_SIDE + 2 * join->reach) row->start[cell++] = kept;
    row->count = kept;
}

/* The pages around one: [row of pages up][left, own, right]. */
struct surroundings {
    struct page *pages[2][3];
};

static struct surroundings surroundings_of(const struct grid *grid, const struct page *page)
{
    struct surroundings s = {0};
    for (uint32_t up = 0; up < 2; up++) {
        for (uint32_t i = 0; i < 3; i++) {
            bool outside = i == 0 && page->x == 0;
            s.pages[up][i] = outside ? NULL : page_find(grid, page->layer, page->x + i - 1, page->y + up);
        }
    }
    return s;
}

/* Appends the handles of some cells of a page's row, from `index` on. */
static void row_take(const struct grid *grid, struct join_row *row, uint32_t column, const struct page *page,
                     uint32_t index, uint32_t cells)
{
    const uint32_t *words = grid->pool.words;
    for (uint32_t end = column + cells; column < end; column++, index++) {
        uint32_t at = row->count;
        row->start[column] = at;
        if (!page) continue;
        const struct cell *cell = &page->cells[index];
        /* The block above is wanted next. */
        if (index + PAGE_SIDE < PAGE_CELLS) __builtin_prefetch(words + cell[PAGE_SIDE].offset);
        row_reserve(row, cell->count);
        const uint32_t *handles = words + cell->offset;
        uint32_t i = 0;
        do { /* at once for most, and for the empty as well: nobody can foresee which they are */
            memcpy(row->handles + at + i, handles + i, 8 * sizeof *handles);
            for (uint32_t j = 0; j < 8; j++) row->column[at + i + j] = column;
            i += 8;
        } while (i < cell->count);
        row->count += cell->count;
    }
}

/* Collects the handles of row `y` of the page (or of the one above, from PAGE_SIDE on), with the columns in reach on
 * both sides, and asks for their bodies. */
static void row_fill(const struct join *join, const struct surroundings *around, struct join_row *row, uint32_t y)
{
    const struct grid *grid = join->grid;
    struct page *const *pages = around->pages[y / PAGE_SIDE];
    uint32_t reach = join->reach, index = (y & PAGE_MASK) << PAGE_BITS;
    row->count = 0;
    row_take(grid, row, 0, pages[0], index + PAGE_SIDE - reach, reach);
    row_take(grid, row, reach, pages[1], index, PAGE_SIDE);
    row_take(grid, row, reach + PAGE_SIDE, pages[2], index, reach);
    row->start[PAGE_SIDE + 2 * reach] = row->count;
    for (uint32_t i = 0; i < row->count; i++) __builtin_prefetch(&grid->bodies[row->handles[i]]);
}

static void row_finish(const struct join *join, struct join_row *row)
{
    if (row_read(join, row)) row_drop_jumps(join, row);
}

/* Rows go round: while one is joined with those in reach of it, the next but one is on its way from memory. */
static void page_join(struct join *join, const struct page *page, join_kernel *kernel)
{
    struct grid *grid = join->grid;
    struct surroundings around = surroundings_of(grid, page);
    uint32_t reach = join->reach, rows = reach + 2;
    for (uint32_t y = 0; y <= reach; y++) {
        row_fill(join, &around, &grid->rows[y], y);
        if (y < reach) row_finish(join, &grid->rows[y]);
    }
    for (uint32_t y = 0; y < PAGE_SIDE; y++) {
        if (y + 1 < PAGE_SIDE) row_fill(join, &around, &grid->rows[(y + reach + 1) % rows], y + reach + 1);
        row_finish(join, &grid->rows[(y + reach) % rows]);
        for (uint32_t up = 0; up <= reach; up++) join->rows[up] = &grid->rows[(y + up) % rows];
        if (!join->rows[0]->count) continue;
        join->mixed = rows_mixed(join) || !join->exact;
        for (uint32_t up = 0; join->mixed && up <= reach; up++) row_limit(join, join->rows[up]);
        kernel(join, reach, reach + PAGE_SIDE);
    }
}

/* ---- the tick ---- */

/* The stencil that costs least: those who see farther look for themselves, at several times the price a cell. */
static uint32_t reach_choose(const struct grid *grid)
{
    uint64_t best_cost = UINT64_MAX;
    uint32_t best = 1;
    for (uint32_t reach = 1; reach <= JOIN_REACH_MOST; reach++) {
        uint64_t cost = (uint64_t)grid->count * (2 * reach + 1) * (2 * reach + 1);
        for (uint32_t more = reach + 1; more <= REACH_COUNTED; more++) {
            cost += 8 * (uint64_t)grid->reach_count[more] * (2 * more + 1) * (2 * more + 1);
        }
        if (cost >= best_cost) continue;
        best_cost = cost;
        best = reach;
    }
    return best;
}

static unsigned shift_choose(const struct grid *grid, uint32_t reach)
{
    uint64_t farthest = (reach + (uint64_t)1) * (uint64_t)grid->options.cell_size + 2 * (uint64_t)grid->step_max;
    unsigned shift = 0;
    while ((farthest >> shift) + 1 > INT16_MAX) shift++;
    return shift;
}

static void join_pass(struct join *join, unsigned first)
{
    struct grid *grid = join->grid;
    join->first = first;
    join->banded = first == SEES && grid->hysteresis;
    static join_kernel *const kernels[] = {join_row_plain, join_row_avx2, join_row_avx512};
    for (uint32_t p = 0; p < grid->page_count; p++) page_join(join, grid->pages[p], kernels[grid->kernels]);
    emit_flush(&grid->emitter);
    for (size_t i = 0; i < grid->mover_count; i++) mover_scan(grid, grid->movers[i], first, true);
}

static void rows_make(struct grid *grid, uint32_t count)
{
    if (count <= grid->row_count) return;
    struct join_row *rows = realloc(grid->rows, count * sizeof *rows);
    CHECK(rows != NULL); /* nothing is reported yet, but a tick can't fail */
    grid->rows = rows;
    while (grid->row_count < count) {
        rows[grid->row_count] = (struct join_row){0};
        row_reserve(&rows[grid->row_count++], 256);
    }
}

/* Those that the join leaves out: who jump, and who see farther than the stencil. */
static void stragglers_note(struct grid *grid, uint32_t reach)
{
    grid->mover_count = 0;
    bool far = false;
    for (uint32_t more = reach + 1; more <= REACH_COUNTED; more++) far |= grid->reach_count[more] > 0;
    if (!far && !grid->jump_count) return;
    for (uint32_t handle = 0; handle < grid->high; handle++) {
        const struct body *body = &grid->bodies[handle];
        if (body->radius == BODY_DEAD) continue;
        if (body->step_x == STEP_JUMP || (far && view_reach(grid, body->radius) > reach)) mover_note(grid, handle);
    }
}

void tick_join(struct grid *grid)
{
    struct join join = {.grid = grid, .reach = reach_choose(grid)};
    join.shift = shift_choose(grid, join.reach);
    join.exact = !join.shift && !grid->hysteresis;
    rows_make(grid, join.reach + 2);
    stragglers_note(grid, join.reach);
    join_pass(&join, UNSEES);
    crossers_reseat(grid);
    join_pass(&join, SEES);
    moves_commit(grid);
}
