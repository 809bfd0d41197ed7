/* Blocks of handles, and the cells that live in them.
 *
 * All cells share one array of words, cut into blocks of about eighty sizes with a free list each. A malloc a cell
 * costs 16 bytes and a header's miss; a sorted array of all (counting sort each tick) can't take single moves. A
 * block grows by one class (4 handles, or a quarter) and shrinks two classes late, so that a cell whose population
 * swings does not copy all the time. The array grows by a sixteenth; before that larger free blocks are cut up, and
 * where more than a quarter lies idle, all blocks are written anew, page by page. */
#include "aoi/grid.h"

#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define COPY_WORDS_MOST (32u << 10)
#define COPY_ALL_MOST   400000 /* entities */
#define POOL_SLACK      (64u << 10)

#define OCTAVE(n)  5 * (n), 6 * (n), 7 * (n), 8 * (n)
#define OCTAVES(n) OCTAVE(n), OCTAVE((n) << 1), OCTAVE((n) << 2), OCTAVE((n) << 3)
const uint32_t pool_class_sizes[POOL_CLASSES] = {0,
                                                 4,
                                                 8,
                                                 12,
                                                 16,
                                                 20,
                                                 24,
                                                 28,
                                                 32,
                                                 OCTAVES(8u),
                                                 OCTAVES(8u << 4),
                                                 OCTAVES(8u << 8),
                                                 OCTAVES(8u << 12),
                                                 OCTAVES(8u << 16),
                                                 OCTAVES(8u << 20)};

static uint32_t class_size(unsigned block_class)
{
    return pool_class_sizes[block_class];
}

static unsigned pool_class_for(size_t words)
{
    if (words <= 32) return (unsigned)((words + 3) / 4);
    unsigned block_class = 9;
    while (class_size(block_class) < words) {
        block_class++;
        CHECK(block_class < POOL_CLASSES);
    }
    return block_class;
}

static void pool_give(struct pool *pool, uint32_t offset, unsigned block_class)
{
    pool->words[offset] = pool->free[block_class];
    pool->free[block_class] = offset;
    pool->idle += class_size(block_class);
}

static uint32_t pool_pop(struct pool *pool, unsigned block_class)
{
    uint32_t offset = pool->free[block_class];
    pool->free[block_class] = pool->words[offset];
    pool->idle -= class_size(block_class);
    return offset;
}

/* Cuts a block off the smallest larger free one; 0: there is none. */
static uint32_t pool_cut(struct pool *pool, unsigned block_class)
{
    uint32_t want = class_size(block_class);
    for (unsigned larger = block_class + 1; larger < POOL_CLASSES; larger++) {
        if (!pool->free[larger]) continue;
        uint32_t offset = pool_pop(pool, larger), rest = class_size(larger) - want, at = offset + want;
        while (rest) {
            unsigned piece = pool_class_for(rest);
            if (class_size(piece) > rest) piece--;
            pool_give(pool, at, piece);
            at += class_size(piece);
            rest -= class_size(piece);
        }
        return offset;
    }
    return 0;
}

/* The slack on top of `used` words: a sixteenth, but enough for a small world never to need more in its steady state.
 */
static size_t pool_slack(size_t used)
{
    size_t least = used / 2 < POOL_SLACK ? used / 2 : POOL_SLACK;
    return 1024 + (used / 16 > least ? used / 16 : least);
}

static bool pool_grow(struct pool *pool, uint32_t want)
{
    size_t size = pool->size + pool_slack(pool->size) + want;
    if (size > UINT32_MAX) return false;
    uint32_t *words = realloc(pool->words, (size + POOL_PADDING) * sizeof *words);
    if (!words) return false;
    memset(words + pool->size, 0, (size + POOL_PADDING - pool->size) * sizeof *words);
    if (!pool->used) pool->used = 4; /* offset 0 means "no block" */
    pool->words = words;
    pool->size = size;
    return true;
}

/* Moves a cell's block to the end of another array, as small as it may be. */
static void cell_transfer(struct cell *cell, const uint32_t *from, uint32_t *to, size_t *used)
{
    uint32_t size = class_size(cell->block_class);
    if (!cell->copied) {
        unsigned least = pool_class_for(cell->count + 1);
        if (least < cell->block_class) cell->block_class = (uint8_t)least;
        size = cell->count;
    }
    memcpy(to + *used, from + cell->offset, size * sizeof *to);
    cell->offset = (uint32_t)*used;
    *used += class_size(cell->block_class);
}

/* Makes a new array with the blocks page by page and nothing idle between them. Cells that fill up together leave
 * behind all the smaller sizes that they have grown out of; neighbours come to lie side by side besides. */
static bool pool_compact(struct grid *grid, uint32_t want)
{
    struct pool *pool = &grid->pool;
    size_t most = pool->used - pool->idle + 4;
    size_t size = most + pool_slack(most) + want, used = 4;
    uint32_t *words = calloc(size + POOL_PADDING, sizeof *words);
    if (!words) return false;
    for (uint32_t p = 0; p < grid->page_count; p++) {
        for (uint32_t c = 0; c < PAGE_CELLS; c++) {
            struct cell *cell = &grid->pages[p]->cells[c];
            if (cell->block_class) cell_transfer(cell, pool->words, words, &used);
        }
    }
    CHECK(used <= most);
    free(pool->words);
    *pool = (struct pool){.words = words, .used = used, .size = size};
    return true;
}

/* 0: memory ran out. May move all blocks. */
static uint32_t pool_take(struct grid *grid, unsigned block_class)
{
    struct pool *pool = &grid->pool;
    if (pool->free[block_class]) return pool_pop(pool, block_class);
    uint32_t want = class_size(block_class);
    if (pool->used + want > pool->size) {
        uint32_t offset = pool_cut(pool, block_class);
        if (offset) return offset;
        bool wasteful = pool->idle > pool->used / 4;
        if (wasteful ? !pool_compact(grid, want) : !pool_grow(pool, want)) return 0;
    }
    uint32_t offset = (uint32_t)pool->used;
    pool->used += want;
    return offset;
}

void pool_close(struct pool *pool)
{
    free(pool->words);
}

/* Moves the handles into a block of the class; with copied, the block is one for handles and a (stale) copy. */
static bool cell_reblock(struct grid *grid, struct cell *cell, unsigned block_class, bool copied)
{
    uint32_t offset = block_class ? pool_take(grid, block_class) : 0;
    if (block_class && !offset) return false;
    uint32_t *words = grid->pool.words;
    if (cell->count) memcpy(words + offset, words + cell->offset, cell->count * sizeof *words);
    if (cell->block_class) pool_give(&grid->pool, cell->offset, cell->block_class);
    if (cell->copied) grid->copy_words -= cell_room(cell);
    cell->offset = offset;
    cell->block_class = (uint8_t)block_class;
    cell->copied = copied;
    cell->generation = 0;
    if (copied) grid->copy_words += cell_room(cell);
    return true;
}

static void cell_shrink(struct grid *grid, struct cell *cell)
{
    if (!cell->count) {
        if (cell->block_class) CHECK(cell_reblock(grid, cell, 0, false));
    } else if (cell->copied) {
        /* A failure to shrink leaves the larger block. */
        if (cell->count < cell_room(cell) / 4 && cell_reblock(grid, cell, pool_class_for(cell->count + 1), false))
            return;
    } else if (cell->block_class > 2 && cell->count <= class_size(cell->block_class - 2u)) {
        if (!cell_reblock(grid, cell, pool_class_for(cell->count + 1), false)) return;
    }
}

bool cell_reserve(struct grid *grid, struct cell *cell)
{
    if (cell->count < cell_room(cell)) return true;
    return cell_reblock(grid, cell, pool_class_for(cell->count + 1), false);
}

bool cell_add(struct grid *grid, struct page *page, struct cell *cell, uint32_t handle)
{
    if (!cell_reserve(grid, cell)) return false;
    cell_copy_spoil(cell);
    cell_handles(grid, cell)[cell->count++] = handle;
    page->population++;
    return true;
}

void cell_remove_at(struct grid *grid, struct page *page, struct cell *cell, uint32_t index)
{
    uint32_t *handles = cell_handles(grid, cell);
    handles[index] = handles[--cell->count];
    page->population--;
    cell_copy_spoil(cell);
    cell_shrink(grid, cell);
}

/* Which of eight words are this one, as bits. */
static inline unsigned words_equal(const uint32_t *words, uint32_t word)
{
#if defined(__SSE2__)
    __m128i all = _mm_set1_epi32((int)word);
    __m128i low = _mm_cmpeq_epi32(_mm_loadu_si128((const __m128i *)words), all);
    __m128i high = _mm_cmpeq_epi32(_mm_loadu_si128((const __m128i *)(words + 4)), all);
    return (unsigned)_mm_movemask_ps(_mm_castsi128_ps(low)) | (unsigned)_mm_movemask_ps(_mm_castsi128_ps(high)) << 4;
#else
    unsigned equal = 0;
    for (unsigned i = 0; i < 8; i++) equal |= (unsigned)(words[i] == word) << i;
    return equal;
#endif
}

uint32_t cell_search(const struct grid *grid, const struct cell *cell, uint32_t handle)
{
    const uint32_t *handles = cell_handles(grid, cell);
    uint32_t i = 0;
    for (unsigned hit; i < cell->count; i += 8) { /* what lies behind the members may be read, but is not meant */
        hit = words_equal(handles + i, handle);
        if (!hit) continue;
        i += (uint32_t)__builtin_ctz(hit);
        break;
    }
    CHECK(i < cell->count);
    return i;
}

/* Generations are short, so once in 65,535 ticks all copies are spoilt one by one. */
void copies_age(struct grid *grid)
{
    grid->copies_stale = false;
    if (++grid->generation) return;
    grid->generation = 1;
    for (uint32_t p = 0; p < grid->page_count; p++) {
        for (uint32_t c = 0; c < PAGE_CELLS; c++) grid->pages[p]->cells[c].generation = 0;
    }
}

/* Copies pay while they stay in the caches and while there is memory for them: four words an entity is what a world of
 * three a cell needs, and what a world of a hundred thousand can afford. */
static size_t copy_words_most(const struct grid *grid)
{
    size_t most = COPY_WORDS_MOST;
    return grid->count < COPY_ALL_MOST && 4 * (size_t)grid->count > most ? 4 * (size_t)grid->count : most;
}

bool cell_copy_make(struct grid *grid, struct cell *cell)
{
    if (!cell->copied && cell->count) {
        unsigned block_class = pool_class_for(2 * (size_t)(cell->count + 1));
        if (grid->copy_words + cell->count > copy_words_most(grid)) return false;
        if (!cell_reblock(grid, cell, block_class, true)) return false;
    }
    uint32_t *handles = cell_handles(grid, cell), *copy = handles + cell_room(cell);
    for (uint32_t i = 0; i < cell->count; i++) {
        const struct body *body = &grid->bodies[handles[i]];
        copy[i] = ((uint32_t)body->x & 0xffff) | (uint32_t)body->y << 16;
    }
    cell->generation = grid->generation;
    return true;
}
