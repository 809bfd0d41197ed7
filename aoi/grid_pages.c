/* Pages of cells, found by (layer, x, y), and walks over boxes of cells.
 *
 * A flat array of all cells would be simplest, but a process owns a part of 4096 x 4096 cells and layers multiply
 * them. A page is 32 x 32 cells (16 KiB): a 3 x 3 block lies in a single page nine times out of ten, so the hash is
 * asked once, and an empty part of the world costs nothing. Pages are made when first used and given back when empty,
 * to a short list of spares, so that an entity that walks to and fro over a border does not allocate. */
#include "aoi/grid.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_SPARES 8

/* Layer 0 of bounds with at most so many pages (4096 x 4096 cells) has a flat directory besides, of a pointer each: the
 * hash takes as long as all the rest that is done to a cell. */
#define PLANE_MOST 16384

static uint32_t page_hash(const struct grid *grid, uint16_t layer, uint32_t x, uint32_t y)
{
    uint64_t h = ((uint64_t)x << 32 | y) * 0x9e3779b97f4a7c15u + layer * 0xc2b2ae3d27d4eb4fu;
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(h >> 32) & (grid->page_slots_size - 1);
}

static bool slot_names(const struct page_slot *slot, uint16_t layer, uint32_t x, uint32_t y)
{
    return slot->x == x && slot->y == y && slot->layer == layer;
}

struct page *page_find_hashed(const struct grid *grid, uint16_t layer, uint32_t x, uint32_t y)
{
    uint32_t mask = grid->page_slots_size - 1;
    for (uint32_t i = page_hash(grid, layer, x, y);; i = (i + 1) & mask) {
        const struct page_slot *slot = &grid->page_slots[i];
        if (slot->index == PAGE_NONE) return NULL;
        if (slot_names(slot, layer, x, y)) return grid->pages[slot->index];
    }
}

static struct page_slot *slot_of(const struct grid *grid, const struct page *page)
{
    uint32_t mask = grid->page_slots_size - 1, i = page_hash(grid, page->layer, page->x, page->y);
    while (!slot_names(&grid->page_slots[i], page->layer, page->x, page->y)) {
        CHECK(grid->page_slots[i].index != PAGE_NONE);
        i = (i + 1) & mask;
    }
    return &grid->page_slots[i];
}

static void slot_add(struct grid *grid, uint32_t index)
{
    const struct page *page = grid->pages[index];
    uint32_t mask = grid->page_slots_size - 1, i = page_hash(grid, page->layer, page->x, page->y);
    while (grid->page_slots[i].index != PAGE_NONE) i = (i + 1) & mask;
    grid->page_slots[i] = (struct page_slot){.x = page->x, .y = page->y, .layer = page->layer, .index = index};
}

static bool slots_resize(struct grid *grid, uint32_t size)
{
    struct page_slot *slots = malloc(size * sizeof *slots);
    if (!slots) return false;
    for (uint32_t i = 0; i < size; i++) slots[i] = (struct page_slot){.index = PAGE_NONE};
    free(grid->page_slots);
    grid->page_slots = slots;
    grid->page_slots_size = size;
    for (uint32_t i = 0; i < grid->page_count; i++) slot_add(grid, i);
    return true;
}

/* Empties a slot and closes the gap, so that probes need no tombstones. */
static void slot_remove(struct grid *grid, struct page_slot *slot)
{
    uint32_t mask = grid->page_slots_size - 1, hole = (uint32_t)(slot - grid->page_slots);
    for (uint32_t i = (hole + 1) & mask; grid->page_slots[i].index != PAGE_NONE; i = (i + 1) & mask) {
        const struct page_slot *next = &grid->page_slots[i];
        uint32_t home = page_hash(grid, next->layer, next->x, next->y);
        if (((i - home) & mask) < ((i - hole) & mask)) continue;
        grid->page_slots[hole] = *next;
        hole = i;
    }
    grid->page_slots[hole].index = PAGE_NONE;
}

bool pages_open(struct grid *grid)
{
    uint32_t x = ((grid->cells_x - 1) >> PAGE_BITS) + 1, y = ((grid->cells_y - 1) >> PAGE_BITS) + 1;
    if ((uint64_t)x * y <= PLANE_MOST) {
        grid->plane = calloc((size_t)x * y, sizeof(struct page *));
        if (!grid->plane) return false;
        grid->plane_x = x;
        grid->plane_y = y;
    }
    return slots_resize(grid, 64);
}

void pages_close(struct grid *grid)
{
    for (uint32_t i = 0; i < grid->page_count + grid->pages_free; i++) free(grid->pages[i]);
    free(grid->pages);
    free(grid->page_slots);
    free(grid->plane);
}

size_t pages_memory_bytes(const struct grid *grid)
{
    return (grid->page_count + grid->pages_free) * sizeof(struct page) + grid->page_room * sizeof *grid->pages +
           grid->page_slots_size * sizeof *grid->page_slots +
           (size_t)grid->plane_x * grid->plane_y * sizeof(struct page *);
}

struct page *page_make(struct grid *grid, uint16_t layer, uint32_t x, uint32_t y)
{
    struct page *page = page_find(grid, layer, x, y);
    if (page) return page;
    if (grid->page_count == PAGES_MOST) return NULL;
    if ((grid->page_count + 1) * 2 > grid->page_slots_size && !slots_resize(grid, grid->page_slots_size * 2))
        return NULL;
    if (!grid->pages_free) {
        size_t room = grid->page_room;
        if (!grow(&grid->pages, &room, grid->page_count + 1, sizeof *grid->pages)) return NULL;
        grid->page_room = (uint32_t)room;
        page = calloc(1, sizeof *page);
        if (!page) return NULL;
        grid->pages[grid->page_count] = page;
        grid->pages_free++;
    }
    grid->pages_free--;
    page = grid->pages[grid->page_count];
    page->index = grid->page_count++;
    page->x = x;
    page->y = y;
    page->layer = layer;
    memset(page->crossed, 0, sizeof page->crossed); /* it may be made, or made again, while a tick runs */
    if (layer) grid->pages_layered++;
    slot_add(grid, grid->page_count - 1);
    if (!layer && grid->plane) grid->plane[(size_t)y * grid->plane_x + x] = page;
    return page;
}

/* An empty page's cells hold no blocks, so it can serve again as it is. */
void page_drop(struct grid *grid, struct page *page)
{
    CHECK(!page->population);
    struct page_slot *slot = slot_of(grid, page);
    uint32_t index = slot->index, last = grid->page_count - 1;
    slot_remove(grid, slot);
    if (!page->layer && grid->plane) grid->plane[(size_t)page->y * grid->plane_x + page->x] = NULL;
    if (index != last) {
        slot_of(grid, grid->pages[last])->index = index;
        grid->pages[index] = grid->pages[last];
        grid->pages[index]->index = index;
    }
    if (page->layer) grid->pages_layered--;
    grid->pages[last] = page;
    grid->page_count--;
    if (++grid->pages_free > PAGE_SPARES + grid->page_count / 4) {
        uint32_t spare = grid->page_count + --grid->pages_free;
        free(grid->pages[spare]);
    }
}

void pages_sweep(struct grid *grid)
{
    for (uint32_t i = grid->page_count; i-- > 0;) {
        if (!grid->pages[i]->population) page_drop(grid, grid->pages[i]);
    }
}

/* ---- boxes and walks ---- */

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* All cells that a square of this half side around (x, y) touches. */
struct box box_around(const struct grid *grid, int64_t x, int64_t y, uint64_t distance)
{
    return box_of(grid, x - (int64_t)distance, y - (int64_t)distance, x + (int64_t)distance, y + (int64_t)distance);
}

struct box box_of(const struct grid *grid, int64_t min_x, int64_t min_y, int64_t max_x, int64_t max_y)
{
    const struct aoi_options *o = &grid->options;
    if (max_x < o->min_x || max_y < o->min_y || min_x >= o->max_x || min_y >= o->max_y) {
        return (struct box){.empty = true};
    }
    return (struct box){
        .x0 = cell_x(grid, (int32_t)clamp(min_x, o->min_x, o->max_x - (int64_t)1)),
        .y0 = cell_y(grid, (int32_t)clamp(min_y, o->min_y, o->max_y - (int64_t)1)),
        .x1 = cell_x(grid, (int32_t)clamp(max_x, o->min_x, o->max_x - (int64_t)1)),
        .y1 = cell_y(grid, (int32_t)clamp(max_y, o->min_y, o->max_y - (int64_t)1)),
    };
}

/* The 3 x 3 cells around one, as far as they lie within the bounds. */
struct box box_block(const struct grid *grid, uint32_t x, uint32_t y)
{
    return (struct box){.x0 = x ? x - 1 : 0,
                        .y0 = y ? y - 1 : 0,
                        .x1 = x + 1 < grid->cells_x ? x + 1 : x,
                        .y1 = y + 1 < grid->cells_y ? y + 1 : y};
}

void walk_start(struct walk *walk, const struct grid *grid, int32_t layer, struct box box)
{
    if (layer < 0 && !grid->pages_layered) layer = 0;
    *walk = (struct walk){.grid = grid, .box = box, .layer = layer};
    if (box.empty) {
        walk->listed = true;
        walk->listed_next = grid->page_count;
        return;
    }
    walk->px = box.x0 >> PAGE_BITS;
    walk->py = box.y0 >> PAGE_BITS;
    uint64_t pages = ((uint64_t)(box.x1 >> PAGE_BITS) - walk->px + 1) * ((box.y1 >> PAGE_BITS) - walk->py + 1);
    walk->listed = layer < 0 || pages > grid->page_count;
}

/* Enters the page if any of its cells lie in the box. */
static bool walk_enter(struct walk *walk, struct page *page)
{
    uint32_t x = page->x << PAGE_BITS, y = page->y << PAGE_BITS, x_last = x + PAGE_MASK, y_last = y + PAGE_MASK;
    const struct box *box = &walk->box;
    if (x > box->x1 || x_last < box->x0 || y > box->y1 || y_last < box->y0) return false;
    walk->page = page;
    walk->x = x > box->x0 ? x : box->x0;
    walk->x_last = x_last < box->x1 ? x_last : box->x1;
    walk->y = y > box->y0 ? y : box->y0;
    walk->y_last = y_last < box->y1 ? y_last : box->y1;
    return true;
}

bool walk_next_page(struct walk *walk)
{
    const struct grid *grid = walk->grid;
    while (walk->listed) {
        if (walk->listed_next >= grid->page_count) return false;
        struct page *page = grid->pages[walk->listed_next++];
        if ((walk->layer < 0 || page->layer == walk->layer) && walk_enter(walk, page)) return true;
    }
    while (walk->py <= walk->box.y1 >> PAGE_BITS) {
        struct page *page = page_find(grid, (uint16_t)walk->layer, walk->px, walk->py);
        if (walk->px++ == walk->box.x1 >> PAGE_BITS) {
            walk->px = walk->box.x0 >> PAGE_BITS;
            walk->py++;
        }
        if (page && walk_enter(walk, page)) return true;
    }
    return false;
}

/* A box of few cells is mostly waiting for memory: headers, blocks, bodies, one after the other for each cell, since
 * nobody can foresee how many members a cell has. Asking for all of a kind at once takes three waits instead of three
 * a cell. */
void box_fetch(const struct grid *grid, int32_t layer, struct box box)
{
    enum { CELLS_MOST = 64 };
    struct walk walk;
    uint32_t cells;
    if (box.empty || (uint64_t)(box.x1 - box.x0 + 1) * (box.y1 - box.y0 + 1) > CELLS_MOST) return;
    walk_start(&walk, grid, layer, box);
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (; cells--; cell++) __builtin_prefetch(cell_handles(grid, cell));
    }
    walk_start(&walk, grid, layer, box);
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (; cells--; cell++) {
            const uint32_t *handles = cell_handles(grid, cell);
            for (uint32_t i = 0; i < cell->count; i++) __builtin_prefetch(&grid->bodies[handles[i]]);
        }
    }
}
