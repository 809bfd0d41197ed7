/* The tick of AOI_BLOCK where z decides nothing: few cross a cell's border, and what they see are whole cells.
 *
 * A sweep over the bodies commits all moves. Those that stay in their cell (94 of 100 walkers) need no more. The
 * others, the crossers, are taken out of their cells before anything is told, so that for the whole report a cell holds
 * who stays in it. A crosser loses the cells of its old block that are not in its new one, and gains the reverse; each
 * such cell is one span, straight out of the pool. When all is told, the crossers go to their new cells.
 *
 * Pairs of crossers are judged one by one, since each must be told once and net. For that they are listed in the order
 * of pages and cells, first by their old places and then by their new ones. So the crossers of adjacent cells are
 * stretches of one array, and all that is read of cells is read in order: going over the crossers by handle instead
 * took five times as long at a million. */
#include "aoi/grid_bulk.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* ---- places ---- */

static inline uint32_t place_of(const struct page *page, uint32_t x, uint32_t y)
{
    return page->index << PLACE_BITS | (y & PAGE_MASK) << PAGE_BITS | (x & PAGE_MASK);
}

static inline struct page *place_page(const struct grid *grid, uint32_t place)
{
    return grid->pages[place >> PLACE_BITS];
}

static inline struct cell *place_cell(const struct grid *grid, uint32_t place)
{
    return &place_page(grid, place)->cells[place & (PAGE_CELLS - 1)];
}

static inline uint32_t place_x(const struct page *page, uint32_t place)
{
    return page->x << PAGE_BITS | (place & PAGE_MASK);
}

static inline uint32_t place_y(const struct page *page, uint32_t place)
{
    return page->y << PAGE_BITS | (place >> PAGE_BITS & PAGE_MASK);
}

/* Whether two cells touch, by the low 16 bits of their numbers. */
static inline bool places_touch(uint32_t a, uint32_t b)
{
    return (((a - b + 1) & 0xffff) <= 2) & ((((a >> 16) - (b >> 16) + 1) & 0xffff) <= 2);
}

/* ---- who crosses ---- */

static void crossed_clear(const struct grid *grid)
{
    for (uint32_t p = 0; p < grid->page_count; p++) memset(grid->pages[p]->crossed, 0, sizeof grid->pages[p]->crossed);
}

/* Counts one more crosser of a cell. */
static inline void crossed_count(struct page *page, uint32_t place)
{
    uint32_t bit = 1u << (place & PAGE_MASK), *row = &page->crossed[place >> PAGE_BITS & PAGE_MASK];
    struct cell *cell = &page->cells[place & (PAGE_CELLS - 1)];
    cell->crosser = *row & bit ? cell->crosser + 1 : 1;
    *row |= bit;
}

/* Notes where a crosser comes from and goes to, counts it in its old cell, and commits its move. */
static void crosser_note(struct grid *grid, struct crosser *crosser, uint32_t handle)
{
    struct body *body = &grid->bodies[handle];
    struct position next = staged_of(grid, handle);
    uint16_t layer = layer_of(grid, handle);
    uint32_t x = cell_x(grid, body->x), y = cell_y(grid, body->y);
    uint32_t next_x = cell_x(grid, next.x), next_y = cell_y(grid, next.y);
    struct page *from = page_find(grid, layer, x >> PAGE_BITS, y >> PAGE_BITS), *to = from;
    if (((x ^ next_x) | (y ^ next_y)) >> PAGE_BITS) {
        to = page_make(grid, layer, next_x >> PAGE_BITS, next_y >> PAGE_BITS);
    }
    CHECK(from != NULL && to != NULL); /* nothing is reported yet, but a tick can't fail */
    *crosser = (struct crosser){.handle = handle, .place = {place_of(from, x, y), place_of(to, next_x, next_y)}};
    crossed_count(from, crosser->place[CROSSER_OLD]);
    body->x = next.x;
    body->y = next.y;
    body->step_x = body->step_y = 0;
}

static void crossers_note(struct grid *grid, const uint32_t *handles, uint32_t count)
{
    CHECK(
        grow(&grid->crossers, &grid->crosser_room, grid->crosser_count + (size_t)count + 256, sizeof *grid->crossers));
    for (uint32_t i = 0; i < count; i++) crosser_note(grid, &grid->crossers[grid->crosser_count++], handles[i]);
}

static void sweep(struct grid *grid)
{
    enum { STRETCH = 1024 }; /* its bodies are still in the first cache when its crossers are noted */
    uint32_t handles[STRETCH + BULK_LANES];
    grid->crosser_count = 0;
    crossed_clear(grid);
    for (uint32_t from = 0; from < grid->high; from += STRETCH) {
        uint32_t to = grid->high - from > STRETCH ? from + STRETCH : grid->high;
        uint32_t count = bulk_sweep(grid, from, to, handles);
        crossers_note(grid, handles, count);
    }
    if (grid->z) memcpy(grid->z, grid->z_next, grid->high * sizeof *grid->z);
}

/* ---- the list in the order of cells ---- */

/* A walk over the cells with crossers, in the order of pages, rows and columns. */
struct crossed {
    const struct grid *grid;
    struct page *page;
    uint32_t next, row, columns; /* next: over the rows of all pages */
    uint32_t index, from, to;    /* the cell in its page, and its stretch of the list */
};

/* Enters the next row that has any; false at the end. */
static bool crossed_next_row(struct crossed *walk)
{
    do {
        if (walk->next >> PAGE_BITS == walk->grid->page_count) return false;
        walk->page = walk->grid->pages[walk->next >> PAGE_BITS];
        walk->row = walk->next++ & PAGE_MASK;
        walk->columns = walk->page->crossed[walk->row];
    } while (!walk->columns);
    return true;
}

static inline uint32_t crossed_column(const struct crossed *walk)
{
    return walk->row << PAGE_BITS | (uint32_t)__builtin_ctz(walk->columns);
}

static inline void crossed_step(struct crossed *walk)
{
    const struct page *page = walk->page;
    walk->index = crossed_column(walk);
    walk->from = page->cells[walk->index].crosser;
    walk->columns &= walk->columns - 1;
    walk->to = walk->columns ? page->cells[crossed_column(walk)].crosser : page->crossed_end[walk->row];
}

/* Where in the list the crossers of a row begin that stand at this column (at most PAGE_SIDE) or east of it. */
static inline uint32_t crossed_from(const struct page *page, uint32_t row, uint32_t column)
{
    uint64_t east = (uint64_t)page->crossed[row] >> column;
    if (!east) return page->crossed_end[row];
    return page->cells[row << PAGE_BITS | (column + (uint32_t)__builtin_ctzll(east))].crosser;
}

/* Lists the crossers in the order of the cells at this end, where they have been counted. */
static void crossings_list(struct grid *grid, enum crosser_end end)
{
    uint32_t listed = 0;
    for (uint32_t p = 0; p < grid->page_count; p++) {
        struct page *page = grid->pages[p];
        for (uint32_t row = 0; row < PAGE_SIDE; row++) {
            for (uint32_t columns = page->crossed[row]; columns; columns &= columns - 1) {
                struct cell *cell = &page->cells[row << PAGE_BITS | (uint32_t)__builtin_ctz(columns)];
                listed = cell->crosser += listed;
            }
            page->crossed_end[row] = listed;
        }
    }
    size_t most = (size_t)grid->crosser_count + 256; /* vectors may read over the end */
    CHECK(grow(&grid->crossings, &grid->crossing_room, most, sizeof *grid->crossings));
    for (uint32_t i = grid->crosser_count; i-- > 0;) {
        const struct crosser *crosser = &grid->crossers[i];
        uint32_t there = crosser->place[!end];
        const struct page *page = place_page(grid, there);
        grid->crossings[--place_cell(grid, crosser->place[end])->crosser] = (struct crossing){
            .handle = crosser->handle, .there = (place_x(page, there) & 0xffff) | place_y(page, there) << 16};
    }
}

/* Asks for the blocks of the cells in the row after this one: all of most, or only the ends. */
static inline void crossed_fetch(const struct crossed *walk, bool ends)
{
    if (walk->row + 1 == PAGE_SIDE) return;
    const struct page *page = walk->page;
    for (uint32_t columns = page->crossed[walk->row + 1]; columns; columns &= columns - 1) {
        const struct cell *cell = &page->cells[(walk->row + 1) << PAGE_BITS | (uint32_t)__builtin_ctz(columns)];
        const uint32_t *handles = cell_handles(walk->grid, cell);
        if (!ends) __builtin_prefetch(handles, 1);
        if (!ends) __builtin_prefetch(handles + cell->count / 2, 1);
        __builtin_prefetch(handles + cell->count, 1);
    }
}

/* Takes all crossers out of their old cells. */
static void crossers_depart(struct grid *grid)
{
    struct crossed walk = {.grid = grid};
    while (crossed_next_row(&walk)) {
        crossed_fetch(&walk, false);
        while (walk.columns) {
            crossed_step(&walk);
            struct cell *cell = &walk.page->cells[walk.index];
            for (uint32_t i = walk.from; i < walk.to; i++) {
                cell_remove_at(grid, walk.page, cell, cell_search(grid, cell, grid->crossings[i].handle));
            }
        }
    }
}

/* Puts them into their new ones. A tick that is half reported can't be undone. */
static void crossers_arrive(struct grid *grid)
{
    struct crossed walk = {.grid = grid};
    while (crossed_next_row(&walk)) {
        crossed_fetch(&walk, true);
        while (walk.columns) {
            crossed_step(&walk);
            struct cell *cell = &walk.page->cells[walk.index];
            for (uint32_t i = walk.from; i < walk.to; i++) {
                CHECK(cell_add(grid, walk.page, cell, grid->crossings[i].handle));
            }
        }
    }
}

/* ---- what they lose and gain ---- */

/* A cell with crossers, and the block around it. */
struct block {
    const struct page *pages[3][3]; /* around the page: [below, same, above][left, same, right] */
    const struct cell *corner;      /* the lowest and leftmost of the nine, if `inside` */
    uint32_t x, y;
    unsigned first; /* UNSEES at the old end, SEES at the new one */
    bool inside;    /* the block lies within the page */
    /* The crossers of the middle row up to east_end, and (if `inside`) of the row above; each pair of crossers is
     * judged by the one that comes first in this order. */
    uint32_t east_end, above_from, above_end;
};

static void block_enter_page(const struct grid *grid, struct block *block, const struct page *page)
{
    for (uint32_t i = 0; i < 9; i++) {
        block->pages[i / 3][i % 3] = page_find(grid, page->layer, page->x + i % 3 - 1, page->y + i / 3 - 1);
    }
}

static inline void block_gather(struct block *block, const struct page *page, uint32_t index)
{
    uint32_t column = index & PAGE_MASK, row = index >> PAGE_BITS;
    block->x = page->x << PAGE_BITS | column;
    block->y = page->y << PAGE_BITS | row;
    block->inside = (column - 1 < PAGE_SIDE - 2) & (row - 1 < PAGE_SIDE - 2);
    block->east_end = crossed_from(page, row, column + 1 + block->inside);
    if (!block->inside) return;
    block->corner = &page->cells[index - PAGE_SIDE - 1];
    block->above_from = crossed_from(page, row + 1, column - 1);
    block->above_end = crossed_from(page, row + 1, column + 2);
}

/* The page and number of the block's i-th cell, row by row; NULL: it does not exist. */
static inline const struct page *block_page(const struct block *block, unsigned i, uint32_t *index)
{
    uint32_t column = (block->x & PAGE_MASK) + PAGE_SIDE - 1 + i % 3,
             row = (block->y & PAGE_MASK) + PAGE_SIDE - 1 + i / 3;
    *index = (row & PAGE_MASK) << PAGE_BITS | (column & PAGE_MASK);
    return block->pages[row >> PAGE_BITS][column >> PAGE_BITS];
}

static inline const struct cell *block_cell(const struct block *block, unsigned i)
{
    static const uint8_t offsets[9] = {
        0, 1, 2, PAGE_SIDE, PAGE_SIDE + 1, PAGE_SIDE + 2, 2 * PAGE_SIDE, 2 * PAGE_SIDE + 1, 2 * PAGE_SIDE + 2};
    static const struct cell nothing;
    if (block->inside) return block->corner + offsets[i];
    uint32_t index;
    const struct page *page = block_page(block, i, &index);
    return page ? &page->cells[index] : &nothing;
}

/* The bits of a block's cells that are not in the block one step away: [dy + 1][dx + 1]. */
static const uint16_t block_rest[3][3] = {{0x1e4, 0x1c0, 0x1c9}, {0x124, 0x000, 0x049}, {0x127, 0x007, 0x04f}};

__attribute__((noinline)) static unsigned block_minus_far(const struct block *block, uint32_t there)
{
    unsigned rest = 0;
    for (uint32_t i = 0; i < 9; i++) {
        uint32_t x = block->x + i % 3 - 1, y = block->y + i / 3 - 1;
        rest |= (unsigned)!places_touch((x & 0xffff) | y << 16, there) << i;
    }
    return rest;
}

/* The cells of the block that the block around another cell does not hold. */
static inline unsigned block_minus(const struct block *block, uint32_t there)
{
    uint32_t dx = (there - block->x + 1) & 0xffff, dy = ((there >> 16) - block->y + 1) & 0xffff;
    return dx < 3 && dy < 3 ? block_rest[dy][dx] : block_minus_far(block, there);
}

/* Of four in the list, those whose other end does not touch this one, as bits. */
static inline unsigned crossings_apart(const struct crossing *four, uint32_t there)
{
#if defined(__SSE2__)
    __m128 low = _mm_loadu_ps((const float *)four), high = _mm_loadu_ps((const float *)(four + 2));
    __m128i theirs = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
    __m128i gaps = _mm_add_epi16(_mm_sub_epi16(_mm_set1_epi32((int)there), theirs), _mm_set1_epi16(1));
    __m128i touch = _mm_cmpeq_epi32(_mm_subs_epu16(gaps, _mm_set1_epi16(2)), _mm_setzero_si128());
    return ~(unsigned)_mm_movemask_ps(_mm_castsi128_ps(touch)) & 0xf;
#else
    unsigned apart = 0;
    for (unsigned i = 0; i < 4; i++) apart |= (unsigned)!places_touch(there, four[i].there) << i;
    return apart;
#endif
}

/* Tells a crosser of others in the list. Where the other ends touch too, nothing changes. */
static inline void crossings_judge(struct grid *grid, const struct crossing *me, uint32_t from, uint32_t to,
                                   unsigned first)
{
    for (; from < to; from += 4) {
        unsigned apart = crossings_apart(&grid->crossings[from], me->there);
        if (to - from < 4) apart &= (1u << (to - from)) - 1;
        for (; apart; apart &= apart - 1) {
            uint32_t other = grid->crossings[from + (uint32_t)__builtin_ctz(apart)].handle;
            emit_note(&grid->emitter, me->handle, first, SIDE_OUT | SIDE_IN, other);
        }
    }
}

/* The same for the row above, where the block lies over a page's edge, and for the cell to the east. */
static void crossings_judge_edge(struct grid *grid, const struct block *block, const struct crossing *me)
{
    for (unsigned i = 5; i < 9; i++) {
        uint32_t index;
        const struct page *page = block_page(block, i, &index);
        uint32_t row = index >> PAGE_BITS, column = index & PAGE_MASK;
        if (!page || !(page->crossed[row] >> column & 1)) continue;
        crossings_judge(grid, me, page->cells[index].crosser, crossed_from(page, row, column + 1), block->first);
    }
}

/* Of so many in the list, at most eight, those whose other end does not touch this one, as bits. */
static inline unsigned crossings_apart_few(const struct crossing *few, uint32_t count, uint32_t there)
{
    unsigned apart = crossings_apart(few, there);
    if (count > 4) apart |= crossings_apart(few + 4, there) << 4;
    return apart & ((1u << count) - 1);
}

/* Judges a crosser with the others in the block that come behind it. Mostly there are few to the east and few above:
 * one decision, which in a sparse world is mostly that there is nothing to tell. */
static inline void crossing_judge(struct grid *grid, const struct block *block, uint32_t index)
{
    const struct crossing *me = &grid->crossings[index];
    struct notes *notes = &grid->emitter.notes[(SIDE_OUT | SIDE_IN) - 1];
    uint32_t east = block->east_end - index - 1, above = block->above_end - block->above_from;
    if (block->inside & (east <= 8) & (above <= 8) & (notes->used + 16 <= NOTES_BATCH)) {
        const struct crossing *up = &grid->crossings[block->above_from];
        unsigned apart = crossings_apart_few(me + 1, east, me->there);
        apart |= crossings_apart_few(up, above, me->there) << 8;
        if (!apart) return;
        uint32_t used = notes->used;
        for (; apart; apart &= apart - 1) {
            uint32_t i = (uint32_t)__builtin_ctz(apart);
            notes->words[used++] = (i < 8 ? me + 1 + i : up + i - 8)->handle;
        }
        notes->used = used;
    } else {
        crossings_judge(grid, me, index + 1, block->east_end, block->first);
        if (block->inside) {
            crossings_judge(grid, me, block->above_from, block->above_end, block->first);
        } else {
            crossings_judge_edge(grid, block, me);
        }
    }
    unsigned change = change_of(block->first, SIDE_OUT | SIDE_IN);
    emit(&grid->emitter, me->handle, change, notes->words + notes->start, notes->used - notes->start);
    notes->start = notes->used;
}

/* Spans for the cells that the block around the other end does not hold, and for the crossers. A span is written for
 * each cell and kept if there is anybody in it, since nobody can foresee that. */
static inline void crossing_tell(struct grid *grid, const struct block *block, uint32_t index)
{
    const struct crossing *me = &grid->crossings[index];
    struct emitter *emitter = &grid->emitter;
    if (emitter->count + 9 > SPANS_BATCH) emit_flush(emitter);
    struct aoi_span *span = emitter->spans + emitter->count;
    uint32_t subject = me->handle, change = change_of(block->first, SIDE_OUT | SIDE_IN);
    const uint32_t *words = grid->pool.words;
    for (unsigned rest = block_minus(block, me->there); rest; rest &= rest - 1) {
        const struct cell *cell = block_cell(block, (unsigned)__builtin_ctz(rest));
        uint32_t count = cell->count;
        *span = (struct aoi_span){.subject = subject, .change = change, .others = words + cell->offset, .count = count};
        span += count > 0;
    }
    emitter->count = (size_t)(span - emitter->spans);
    crossing_judge(grid, block, index);
}

static void crossers_tell(struct grid *grid, unsigned first)
{
    struct crossed walk = {.grid = grid};
    struct block block = {.first = first};
    uint32_t entered = PAGE_NONE;
    while (crossed_next_row(&walk)) {
        if (walk.page->index != entered) block_enter_page(grid, &block, walk.page);
        entered = walk.page->index;
        while (walk.columns) {
            crossed_step(&walk);
            block_gather(&block, walk.page, walk.index);
            for (uint32_t i = walk.from; i < walk.to; i++) crossing_tell(grid, &block, i);
        }
    }
    emit_flush(&grid->emitter);
}

static void crossers_count_new(struct grid *grid)
{
    crossed_clear(grid);
    for (uint32_t i = 0; i < grid->crosser_count; i++) {
        uint32_t place = grid->crossers[i].place[CROSSER_NEW];
        crossed_count(place_page(grid, place), place);
    }
}

void tick_block(struct grid *grid)
{
    sweep(grid);
    if (!grid->crosser_count) return;
    crossings_list(grid, CROSSER_OLD);
    crossers_depart(grid);
    crossers_tell(grid, UNSEES);
    crossers_count_new(grid);
    crossings_list(grid, CROSSER_NEW);
    crossers_tell(grid, SEES);
    crossers_arrive(grid);
}
