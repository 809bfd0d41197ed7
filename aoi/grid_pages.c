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

static uint32_t page_hash(const struct aoi *aoi, uint16_t layer, uint32_t x, uint32_t y)
{
    uint64_t h = ((uint64_t)x << 32 | y) * 0x9e3779b97f4a7c15u + layer * 0xc2b2ae3d27d4eb4fu;
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(h >> 32) & (aoi->page_slots_size - 1);
}

static bool slot_names(const struct page_slot *slot, uint16_t layer, uint32_t x, uint32_t y)
{
    return slot->x == x && slot->y == y && slot->layer == layer;
}

struct page *page_find_hashed(const struct aoi *aoi, uint16_t layer, uint32_t x, uint32_t y)
{
    uint32_t mask = aoi->page_slots_size - 1;
    for (uint32_t i = page_hash(aoi, layer, x, y);; i = (i + 1) & mask) {
        const struct page_slot *slot = &aoi->page_slots[i];
        if (slot->index == PAGE_NONE) return NULL;
        if (slot_names(slot, layer, x, y)) return aoi->pages[slot->index];
    }
}

static struct page_slot *slot_of(const struct aoi *aoi, const struct page *page)
{
    uint32_t mask = aoi->page_slots_size - 1, i = page_hash(aoi, page->layer, page->x, page->y);
    while (!slot_names(&aoi->page_slots[i], page->layer, page->x, page->y)) {
        CHECK(aoi->page_slots[i].index != PAGE_NONE);
        i = (i + 1) & mask;
    }
    return &aoi->page_slots[i];
}

static void slot_add(struct aoi *aoi, uint32_t index)
{
    const struct page *page = aoi->pages[index];
    uint32_t mask = aoi->page_slots_size - 1, i = page_hash(aoi, page->layer, page->x, page->y);
    while (aoi->page_slots[i].index != PAGE_NONE) i = (i + 1) & mask;
    aoi->page_slots[i] = (struct page_slot){.x = page->x, .y = page->y, .layer = page->layer, .index = index};
}

static bool slots_resize(struct aoi *aoi, uint32_t size)
{
    struct page_slot *slots = malloc(size * sizeof *slots);
    if (!slots) return false;
    for (uint32_t i = 0; i < size; i++) slots[i] = (struct page_slot){.index = PAGE_NONE};
    free(aoi->page_slots);
    aoi->page_slots = slots;
    aoi->page_slots_size = size;
    for (uint32_t i = 0; i < aoi->page_count; i++) slot_add(aoi, i);
    return true;
}

/* Empties a slot and closes the gap, so that probes need no tombstones. */
static void slot_remove(struct aoi *aoi, struct page_slot *slot)
{
    uint32_t mask = aoi->page_slots_size - 1, hole = (uint32_t)(slot - aoi->page_slots);
    for (uint32_t i = (hole + 1) & mask; aoi->page_slots[i].index != PAGE_NONE; i = (i + 1) & mask) {
        const struct page_slot *next = &aoi->page_slots[i];
        uint32_t home = page_hash(aoi, next->layer, next->x, next->y);
        if (((i - home) & mask) < ((i - hole) & mask)) continue;
        aoi->page_slots[hole] = *next;
        hole = i;
    }
    aoi->page_slots[hole].index = PAGE_NONE;
}

bool pages_open(struct aoi *aoi)
{
    uint32_t x = ((aoi->cells_x - 1) >> PAGE_BITS) + 1, y = ((aoi->cells_y - 1) >> PAGE_BITS) + 1;
    if ((uint64_t)x * y <= PLANE_MOST) {
        aoi->plane = calloc((size_t)x * y, sizeof(struct page *));
        if (!aoi->plane) return false;
        aoi->plane_x = x;
        aoi->plane_y = y;
    }
    return slots_resize(aoi, 64);
}

void pages_close(struct aoi *aoi)
{
    for (uint32_t i = 0; i < aoi->page_count + aoi->pages_free; i++) free(aoi->pages[i]);
    free(aoi->pages);
    free(aoi->page_slots);
    free(aoi->plane);
}

size_t pages_memory_bytes(const struct aoi *aoi)
{
    return (aoi->page_count + aoi->pages_free) * sizeof(struct page) + aoi->page_room * sizeof *aoi->pages +
           aoi->page_slots_size * sizeof *aoi->page_slots + (size_t)aoi->plane_x * aoi->plane_y * sizeof(struct page *);
}

struct page *page_make(struct aoi *aoi, uint16_t layer, uint32_t x, uint32_t y)
{
    struct page *page = page_find(aoi, layer, x, y);
    if (page) return page;
    if (aoi->page_count == PAGES_MOST) return NULL;
    if ((aoi->page_count + 1) * 2 > aoi->page_slots_size && !slots_resize(aoi, aoi->page_slots_size * 2)) return NULL;
    if (!aoi->pages_free) {
        size_t room = aoi->page_room;
        if (!grow(&aoi->pages, &room, aoi->page_count + 1, sizeof *aoi->pages)) return NULL;
        aoi->page_room = (uint32_t)room;
        page = calloc(1, sizeof *page);
        if (!page) return NULL;
        aoi->pages[aoi->page_count] = page;
        aoi->pages_free++;
    }
    aoi->pages_free--;
    page = aoi->pages[aoi->page_count];
    page->index = aoi->page_count++;
    page->x = x;
    page->y = y;
    page->layer = layer;
    memset(page->crossed, 0, sizeof page->crossed); /* it may be made, or made again, while a tick runs */
    if (layer) aoi->pages_layered++;
    slot_add(aoi, aoi->page_count - 1);
    if (!layer && aoi->plane) aoi->plane[(size_t)y * aoi->plane_x + x] = page;
    return page;
}

/* An empty page's cells hold no blocks, so it can serve again as it is. */
void page_drop(struct aoi *aoi, struct page *page)
{
    CHECK(!page->population);
    struct page_slot *slot = slot_of(aoi, page);
    uint32_t index = slot->index, last = aoi->page_count - 1;
    slot_remove(aoi, slot);
    if (!page->layer && aoi->plane) aoi->plane[(size_t)page->y * aoi->plane_x + page->x] = NULL;
    if (index != last) {
        slot_of(aoi, aoi->pages[last])->index = index;
        aoi->pages[index] = aoi->pages[last];
        aoi->pages[index]->index = index;
    }
    if (page->layer) aoi->pages_layered--;
    aoi->pages[last] = page;
    aoi->page_count--;
    if (++aoi->pages_free > PAGE_SPARES + aoi->page_count / 4) {
        uint32_t spare = aoi->page_count + --aoi->pages_free;
        free(aoi->pages[spare]);
    }
}

void pages_sweep(struct aoi *aoi)
{
    for (uint32_t i = aoi->page_count; i-- > 0;) {
        if (!aoi->pages[i]->population) page_drop(aoi, aoi->pages[i]);
    }
}

/* ---- boxes and walks ---- */

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* All cells that a square of this half side around (x, y) touches. */
struct box box_around(const struct aoi *aoi, int64_t x, int64_t y, uint64_t distance)
{
    return box_of(aoi, x - (int64_t)distance, y - (int64_t)distance, x + (int64_t)distance, y + (int64_t)distance);
}

struct box box_of(const struct aoi *aoi, int64_t min_x, int64_t min_y, int64_t max_x, int64_t max_y)
{
    const struct aoi_options *o = &aoi->options;
    if (max_x < o->min_x || max_y < o->min_y || min_x >= o->max_x || min_y >= o->max_y) {
        return (struct box){.empty = true};
    }
    return (struct box){
        .x0 = cell_x(aoi, (int32_t)clamp(min_x, o->min_x, o->max_x - (int64_t)1)),
        .y0 = cell_y(aoi, (int32_t)clamp(min_y, o->min_y, o->max_y - (int64_t)1)),
        .x1 = cell_x(aoi, (int32_t)clamp(max_x, o->min_x, o->max_x - (int64_t)1)),
        .y1 = cell_y(aoi, (int32_t)clamp(max_y, o->min_y, o->max_y - (int64_t)1)),
    };
}

/* The 3 x 3 cells around one, as far as they lie within the bounds. */
struct box box_block(const struct aoi *aoi, uint32_t x, uint32_t y)
{
    return (struct box){.x0 = x ? x - 1 : 0,
                        .y0 = y ? y - 1 : 0,
                        .x1 = x + 1 < aoi->cells_x ? x + 1 : x,
                        .y1 = y + 1 < aoi->cells_y ? y + 1 : y};
}

void walk_start(struct walk *walk, const struct aoi *aoi, int32_t layer, struct box box)
{
    if (layer < 0 && !aoi->pages_layered) layer = 0;
    *walk = (struct walk){.aoi = aoi, .box = box, .layer = layer};
    if (box.empty) {
        walk->listed = true;
        walk->listed_next = aoi->page_count;
        return;
    }
    walk->px = box.x0 >> PAGE_BITS;
    walk->py = box.y0 >> PAGE_BITS;
    uint64_t pages = ((uint64_t)(box.x1 >> PAGE_BITS) - walk->px + 1) * ((box.y1 >> PAGE_BITS) - walk->py + 1);
    walk->listed = layer < 0 || pages > aoi->page_count;
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
    const struct aoi *aoi = walk->aoi;
    while (walk->listed) {
        if (walk->listed_next >= aoi->page_count) return false;
        struct page *page = aoi->pages[walk->listed_next++];
        if ((walk->layer < 0 || page->layer == walk->layer) && walk_enter(walk, page)) return true;
    }
    while (walk->py <= walk->box.y1 >> PAGE_BITS) {
        struct page *page = page_find(aoi, (uint16_t)walk->layer, walk->px, walk->py);
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
void box_fetch(const struct aoi *aoi, int32_t layer, struct box box)
{
    enum { CELLS_MOST = 64 };
    struct walk walk;
    uint32_t cells;
    if (box.empty || (uint64_t)(box.x1 - box.x0 + 1) * (box.y1 - box.y0 + 1) > CELLS_MOST) return;
    walk_start(&walk, aoi, layer, box);
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (; cells--; cell++) __builtin_prefetch(cell_handles(aoi, cell));
    }
    walk_start(&walk, aoi, layer, box);
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (; cells--; cell++) {
            const uint32_t *handles = cell_handles(aoi, cell);
            for (uint32_t i = 0; i < cell->count; i++) __builtin_prefetch(&aoi->bodies[handles[i]]);
        }
    }
}
