/* The tick of AOI_BLOCK where z decides nothing: few cross a cell's border, and what they see are whole cells.
 *
 * A sweep over the bodies commits those that stay in their cell (94 of 100 walkers) and puts the rest at the end of
 * their cell's block, its tail. A crosser loses the cells of its old block that are not in its new one, and gains the
 * reverse; each such cell is one span, straight out of the pool, of the members before the tail. Pairs of crossers
 * need care, since each must be told once and net: they are judged one by one, from the lower of the two.
 *
 * For that the crossers are listed in the order of pages and cells, first by their old cells and, once they have
 * changed over, by their new ones. So the tails of adjacent cells are stretches of one array, and a block's headers are
 * read while they are in the first cache. Going over the crossers by handle instead took five times as long at a
 * million. */
#include "aoi/grid_bulk.h"

#include <string.h>

static inline bool cells_touch(uint32_t ax, uint32_t ay, uint32_t bx, uint32_t by)
{
    return (ax - bx + 1 <= 2) & (ay - by + 1 <= 2);
}

static inline void tail_mark(struct page *page, uint32_t x, uint32_t y)
{
    page->tails[y & PAGE_MASK] |= 1u << (x & PAGE_MASK);
}

static void sweep(struct aoi *aoi)
{
    enum { STRETCH = 4096 };
    aoi->crosser_count = 0;
    for (uint32_t from = 0; from < aoi->high; from += STRETCH) {
        uint32_t to = aoi->high - from > STRETCH ? from + STRETCH : aoi->high;
        size_t most = aoi->crosser_count + (size_t)(to - from);
        CHECK(grow(&aoi->crossers, &aoi->crosser_room, most, sizeof *aoi->crossers));
        bulk_sweep(aoi, from, to);
    }
    if (aoi->z) memcpy(aoi->z, aoi->z_next, aoi->high * sizeof *aoi->z);
}

/* The old cell of a crosser; marks that it will have a tail. */
static struct cell *crosser_cell(const struct aoi *aoi, uint32_t index)
{
    uint32_t handle = aoi->crossers[index].handle;
    const struct body *body = &aoi->bodies[handle];
    uint32_t x = cell_x(aoi, body->x), y = cell_y(aoi, body->y);
    struct page *page = page_find(aoi, layer_of(aoi, handle), x >> PAGE_BITS, y >> PAGE_BITS);
    CHECK(page != NULL);
    tail_mark(page, x, y);
    return page_cell(page, x, y);
}

/* Puts each crosser at the end of its old cell's block. The list is in no spatial order yet, so each is a miss or
 * two; they are asked for well ahead. */
static void crossers_set_aside(struct aoi *aoi)
{
    enum { AHEAD = 8 };
    struct cell *cells[2 * AHEAD];
    uint32_t count = aoi->crosser_count;
    for (uint32_t i = 0; i < count + 2 * AHEAD; i++) {
        if (i >= 2 * AHEAD) {
            struct cell *cell = cells[i % (2 * AHEAD)];
            uint32_t handle = aoi->crossers[i - 2 * AHEAD].handle;
            uint32_t *handles = cell_handles(aoi, cell), at = cell_search(aoi, cell, handle);
            uint32_t last = cell->count - ++cell->tail;
            handles[at] = handles[last];
            handles[last] = handle;
            cell_copy_spoil(cell);
        }
        if (i >= AHEAD && i < count + AHEAD) {
            __builtin_prefetch(cell_handles(aoi, cells[(i - AHEAD) % (2 * AHEAD)]), 1);
            __builtin_prefetch(cell_handles(aoi, cells[(i - AHEAD) % (2 * AHEAD)]) + 16, 1);
        }
        if (i + AHEAD < count) __builtin_prefetch(&aoi->bodies[aoi->crossers[i + AHEAD].handle]);
        if (i < count) {
            cells[i % (2 * AHEAD)] = crosser_cell(aoi, i);
            __builtin_prefetch(cells[i % (2 * AHEAD)], 1);
        }
    }
}

/* Notes the cell at the other end of each crosser's move: where it goes to, or (and then the move is committed) where
 * it came from. */
static void crossers_locate(struct aoi *aoi, bool arrived)
{
    enum { AHEAD = 16 };
    for (uint32_t i = 0; i < aoi->crosser_count; i++) {
        if (i + AHEAD < aoi->crosser_count) __builtin_prefetch(&aoi->bodies[aoi->crossers[i + AHEAD].handle], 1);
        struct crosser *crosser = &aoi->crossers[i];
        struct body *body = &aoi->bodies[crosser->handle];
        struct position next = staged_of(aoi, crosser->handle);
        crosser->x = cell_x(aoi, arrived ? body->x : next.x);
        crosser->y = cell_y(aoi, arrived ? body->y : next.y);
        if (!arrived) continue;
        body->x = next.x;
        body->y = next.y;
        body->step_x = body->step_y = 0;
    }
}

/* The cells with a tail, in the order of pages, rows and columns. */
struct tails {
    const struct aoi *aoi;
    struct page *page;
    uint32_t page_next, row, columns;
};

static inline struct cell *tails_next(struct tails *tails, uint32_t *x, uint32_t *y)
{
    while (!tails->columns) {
        if (!tails->page || ++tails->row == PAGE_SIDE) {
            if (tails->page_next == tails->aoi->page_count) return NULL;
            tails->page = tails->aoi->pages[tails->page_next++];
            tails->row = 0;
        }
        tails->columns = tails->page->tails[tails->row];
    }
    uint32_t column = (uint32_t)__builtin_ctz(tails->columns);
    tails->columns &= tails->columns - 1;
    *x = tails->page->x << PAGE_BITS | column;
    *y = tails->page->y << PAGE_BITS | tails->row;
    return &tails->page->cells[tails->row << PAGE_BITS | column];
}

/* Lists the crossers anew, in the order of the cells where they stand. */
static void crossers_list(struct aoi *aoi, bool arrived)
{
    struct tails tails = {.aoi = aoi};
    uint32_t listed = 0, x, y;
    for (struct cell *cell; (cell = tails_next(&tails, &x, &y));) {
        cell->first = listed;
        const uint32_t *tail = cell_handles(aoi, cell) + cell->count - cell->tail;
        for (uint32_t i = 0; i < cell->tail; i++) aoi->crossers[listed++].handle = tail[i];
    }
    CHECK(listed == aoi->crosser_count);
    crossers_locate(aoi, arrived);
}

/* The nine cells of a block, row by row, and which of them matter. */
struct block {
    const struct cell *cells[9];
    unsigned with_tail; /* bits: cells with a tail */
    /* The block lies within a page: the tails of its middle row and of the row above are stretches of the list, and the
     * crossers of the row below come earlier in it. */
    bool inside;
    uint32_t middle_end, above_from, above_end;
};

/* The bits of a block's cells that are not in the block one step away: [dy + 1][dx + 1]. */
static const uint16_t block_rest[3][3] = {{0x1e4, 0x1c0, 0x1c9}, {0x124, 0x000, 0x049}, {0x127, 0x007, 0x04f}};

static inline void block_put(struct block *block, unsigned i, const struct cell *cell)
{
    block->cells[i] = cell;
    block->with_tail |= (unsigned)(cell->tail > 0) << i;
}

/* A block that reaches over its page's edge. */
static void block_gather_edge(const struct aoi *aoi, const struct page *page, uint32_t x, uint32_t y,
                              struct block *block)
{
    static const struct cell nothing;
    struct box box = box_block(aoi, x, y);
    for (unsigned i = 0; i < 9; i++) {
        uint32_t cx = x + i % 3 - 1, cy = y + i / 3 - 1;
        const struct cell *cell = box_holds(&box, cx, cy) ? cell_find(aoi, page->layer, cx, cy) : NULL;
        block_put(block, i, cell ? cell : &nothing);
    }
}

static inline void block_gather(const struct aoi *aoi, struct page *page, uint32_t x, uint32_t y, struct block *block)
{
    uint32_t column = x & PAGE_MASK, row = y & PAGE_MASK;
    block->with_tail = 0;
    block->inside = false;
    if (column - 1 >= PAGE_SIDE - 2 || row - 1 >= PAGE_SIDE - 2) {
        block_gather_edge(aoi, page, x, y, block);
        return;
    }
    const struct cell *corner = page_cell(page, x - 1, y - 1);
#pragma GCC unroll 9
    for (unsigned i = 0; i < 9; i++) block_put(block, i, corner + (i / 3 * PAGE_SIDE + i % 3));
    block->inside = true;
    const struct cell *right = block->cells[block->with_tail >> 5 & 1 ? 5 : 4]; /* the middle one has a tail */
    block->middle_end = right->first + right->tail;
    unsigned above = block->with_tail >> 6;
    block->above_from = block->above_end = 0;
    if (!above) return;
    const struct cell *first = block->cells[6 + __builtin_ctz(above)];
    const struct cell *last = block->cells[6 + 31 - __builtin_clz(above)];
    block->above_from = first->first;
    block->above_end = last->first + last->tail;
}

/* The cells of the block around (x, y) that the block around another cell does not hold. */
static inline unsigned block_minus(uint32_t x, uint32_t y, uint32_t other_x, uint32_t other_y)
{
    uint32_t dx = other_x - x + 1, dy = other_y - y + 1;
    if (dx < 3 && dy < 3) return block_rest[dy][dx];
    unsigned rest = 0;
    for (uint32_t i = 0; i < 9; i++) {
        rest |= (unsigned)!cells_touch(x + i % 3 - 1, y + i / 3 - 1, other_x, other_y) << i;
    }
    return rest;
}

/* Tells a crosser of others in the list. Where the other ends touch too, nothing changes. */
static inline void crossers_judge(struct aoi *aoi, const struct crosser *me, uint32_t from, uint32_t to, unsigned first)
{
    enum { PIECE = NOTES_BATCH / 2 };
    struct notes *notes = &aoi->emitter.notes[(SIDE_OUT | SIDE_IN) - 1];
    while (from < to) {
        uint32_t end = to - from < PIECE ? to : from + PIECE;
        if (notes->used + (end - from) > NOTES_BATCH) {
            emit_note_end(&aoi->emitter, me->handle, first);
            emit_flush(&aoi->emitter);
        }
        uint32_t used = notes->used, x = me->x, y = me->y;
        for (; from < end; from++) {
            const struct crosser *other = &aoi->crossers[from];
            notes->words[used] = other->handle;
            used += !cells_touch(x, y, other->x, other->y);
        }
        notes->used = used;
    }
}

/* The same for a block over a page's edge: cell by cell, those who come later in the list. */
static void crossers_judge_edge(struct aoi *aoi, const struct block *block, uint32_t index, unsigned first)
{
    for (unsigned rest = block->with_tail; rest; rest &= rest - 1) {
        const struct cell *cell = block->cells[__builtin_ctz(rest)];
        uint32_t from = cell->first > index ? cell->first : index + 1;
        crossers_judge(aoi, &aoi->crossers[index], from, cell->first + cell->tail, first);
    }
}

static inline struct aoi_span span_of(uint32_t subject, unsigned first, const uint32_t *others, uint32_t count)
{
    unsigned change = change_of(first, SIDE_OUT | SIDE_IN);
    return (struct aoi_span){.subject = subject, .change = change, .others = others, .count = count};
}

/* Spans for the cells that the block around the other end does not hold, and the crossers in all nine. A span is
 * written for each and kept if there is anybody in it, since nobody can foresee that. */
static inline void crosser_tell(struct aoi *aoi, const struct block *block, uint32_t index, uint32_t x, uint32_t y,
                                unsigned first)
{
    const struct crosser *me = &aoi->crossers[index];
    struct emitter *emitter = &aoi->emitter;
    if (emitter->count + 10 > SPANS_BATCH) emit_flush(emitter);
    uint32_t count = (uint32_t)emitter->count;
    for (unsigned rest = block_minus(x, y, me->x, me->y); rest; rest &= rest - 1) {
        const struct cell *cell = block->cells[__builtin_ctz(rest)];
        emitter->spans[count] = span_of(me->handle, first, cell_handles(aoi, cell), cell->count - cell->tail);
        count += cell->count > cell->tail;
    }
    emitter->count = count;
    if (block->inside) {
        crossers_judge(aoi, me, index + 1, block->middle_end, first);
        crossers_judge(aoi, me, block->above_from, block->above_end, first);
    } else {
        crossers_judge_edge(aoi, block, index, first);
    }
    if (emitter->count == SPANS_BATCH) emit_flush(emitter);
    struct notes *notes = &emitter->notes[(SIDE_OUT | SIDE_IN) - 1];
    emitter->spans[emitter->count] =
        span_of(me->handle, first, notes->words + notes->start, notes->used - notes->start);
    emitter->count += notes->used != notes->start;
    notes->start = notes->used;
}

static void crossers_tell(struct aoi *aoi, unsigned first)
{
    struct tails tails = {.aoi = aoi};
    uint32_t x, y;
    for (const struct cell *cell; (cell = tails_next(&tails, &x, &y));) {
        struct block block;
        block_gather(aoi, tails.page, x, y, &block);
        for (uint32_t i = 0; i < cell->tail; i++) crosser_tell(aoi, &block, cell->first + i, x, y, first);
    }
    emit_flush(&aoi->emitter);
}

/* Ends all tails: those who go are taken off, those who came are members. */
static void tails_end(struct aoi *aoi, bool cut)
{
    struct tails tails = {.aoi = aoi};
    uint32_t x, y;
    for (struct cell *cell; (cell = tails_next(&tails, &x, &y));) {
        if (cut) cell_cut_tail(aoi, tails.page, cell);
        cell->tail = 0;
        tails.page->tails[tails.row] = tails.columns;
    }
}

/* Puts each crosser at the end of its new cell's block. */
static void crossers_arrive(struct aoi *aoi)
{
    for (uint32_t i = 0; i < aoi->crosser_count; i++) {
        const struct crosser *crosser = &aoi->crossers[i];
        uint16_t layer = layer_of(aoi, crosser->handle);
        struct page *page = page_make(aoi, layer, crosser->x >> PAGE_BITS, crosser->y >> PAGE_BITS);
        CHECK(page != NULL); /* a tick that is half reported can't be undone */
        struct cell *cell = page_cell(page, crosser->x, crosser->y);
        CHECK(cell_add(aoi, page, cell, crosser->handle));
        cell->tail++;
        tail_mark(page, crosser->x, crosser->y);
    }
}

void tick_block(struct aoi *aoi)
{
    sweep(aoi);
    if (!aoi->crosser_count) return;
    crossers_set_aside(aoi);
    crossers_list(aoi, false);
    crossers_tell(aoi, UNSEES);
    tails_end(aoi, true);
    crossers_arrive(aoi);
    crossers_list(aoi, true);
    crossers_tell(aoi, SEES);
    tails_end(aoi, false);
}
