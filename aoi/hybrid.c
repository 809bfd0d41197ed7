/* A coarse grid whose cells hold ordered lists.
 *
 * Cells are four times as wide as the usual radius, so most looks touch one or two; in each the list, ordered by x, is
 * entered at the view's beginning and left at its end. A list entry has both coordinates, so what is outside the view
 * is left out without a look at anybody.
 *
 * When it wins: radii and queries much smaller than a cell, or of all sizes, where any fixed cell is wrong for some;
 * crowds in one cell, which a list divides again; and coarse cells make few that have to be kept or crossed.
 * When it loses: a move shifts entries of a list although no border is crossed, which `grid` does not even notice;
 * where cells are of the radius' size, nothing is left for the lists to do. In a sparse world a list's first block, 640
 * bytes, is one entity's. Source: the mixed grid and crossed list ("the list per cell") of MMO engines' notes; the list
 * is crosslist's. */
#include "aoi/axis.h"
#include "common/check.h"

#include <stdlib.h>

#define COARSE 4 /* cells of the options' size a side */

struct coarse_cell {
    uint32_t x, y;
    struct axis list; /* by x; without entries: the cell is free, and its memory waits for the next */
};

struct hybrid {
    struct stratum base;
    struct cells cells; /* the coarse ones */
    struct coarse_cell *all;
    uint32_t high, room;
    uint32_t *free;
    uint32_t free_count;
    struct table index; /* name -> index in all */
    struct axis_places places;
};

static struct hybrid *hybrid_of(const struct stratum *stratum)
{
    return (struct hybrid *)stratum;
}

/* Numbers of coarse cells stay below 2^31. */
static uint64_t name_of(uint32_t x, uint32_t y)
{
    return ((uint64_t)x << 32 | y) + 1;
}

static struct coarse_cell *cell_find(const struct hybrid *h, uint32_t x, uint32_t y)
{
    uint32_t at = table_get(&h->index, name_of(x, y));
    return at == TABLE_NONE ? NULL : &h->all[at];
}

static struct coarse_cell *cell_of(const struct hybrid *h, struct position at)
{
    return cell_find(h, cell_at(&h->cells, at.x), cell_at(&h->cells, at.y));
}

static bool cells_reserve(struct hybrid *h)
{
    if (h->free_count || h->high < h->room) return true;
    uint32_t room = h->room + h->room / 2 + 16;
    struct coarse_cell *all = realloc(h->all, room * sizeof *all);
    if (all) h->all = all;
    uint32_t *spare = realloc(h->free, room * sizeof *spare);
    if (spare) h->free = spare;
    if (!all || !spare) return false;
    h->room = room;
    return true;
}

/* Finds or makes; NULL when memory ran out. */
static struct coarse_cell *cell_make(struct hybrid *h, struct position at)
{
    struct coarse_cell *cell = cell_of(h, at);
    if (cell) return cell;
    if (!cells_reserve(h)) return NULL;
    CHECK(h->all != NULL && h->free != NULL);
    bool fresh = !h->free_count;
    uint32_t index = fresh ? h->high++ : h->free[--h->free_count];
    cell = &h->all[index];
    if (fresh) *cell = (struct coarse_cell){0};
    cell->x = cell_at(&h->cells, at.x);
    cell->y = cell_at(&h->cells, at.y);
    table_put(&h->index, name_of(cell->x, cell->y), index);
    return cell;
}

static void cell_sweep(struct hybrid *h, struct coarse_cell *cell)
{
    if (cell->list.count) return;
    table_remove(&h->index, name_of(cell->x, cell->y));
    h->free[h->free_count++] = (uint32_t)(cell - h->all);
}

static bool hybrid_init(struct stratum *stratum)
{
    uint64_t side = (uint64_t)stratum->engine->options.cell_size * COARSE;
    engine_cells_set(&hybrid_of(stratum)->cells, side < 1u << 31 ? (uint32_t)side : 1u << 31);
    return true;
}

static void hybrid_close(struct stratum *stratum)
{
    struct hybrid *h = hybrid_of(stratum);
    for (uint32_t i = 0; i < h->high; i++) axis_close(&h->all[i].list);
    free(h->all);
    free(h->free);
    table_close(&h->index);
    free(h->places.block);
}

static bool entry_add(struct hybrid *h, uint32_t handle, struct position at)
{
    struct coarse_cell *cell = cell_make(h, at);
    if (!cell) return false;
    bool added = axis_add(&cell->list, &h->places, handle, at.x, at.y);
    cell_sweep(h, cell);
    return added;
}

static void entry_remove(struct hybrid *h, uint32_t handle, struct position at)
{
    struct coarse_cell *cell = cell_of(h, at);
    axis_remove(&cell->list, &h->places, handle);
    cell_sweep(h, cell);
}

static bool hybrid_add(struct stratum *stratum, uint32_t handle)
{
    return entry_add(hybrid_of(stratum), handle, stratum->engine->motes[handle].at);
}

static void hybrid_remove(struct stratum *stratum, uint32_t handle)
{
    entry_remove(hybrid_of(stratum), handle, stratum->engine->motes[handle].at);
}

/* Between cells: out of the old one first, for an entity has one place in all lists. */
static bool hybrid_move(struct stratum *stratum, uint32_t handle, struct position to)
{
    struct hybrid *h = hybrid_of(stratum);
    struct position from = stratum->engine->motes[handle].at;
    struct coarse_cell *old = cell_of(h, from);
    if (cell_at(&h->cells, to.x) == old->x && cell_at(&h->cells, to.y) == old->y) {
        return axis_move(&old->list, &h->places, handle, to.x, to.y);
    }
    entry_remove(h, handle, from);
    if (entry_add(h, handle, to)) return true;
    CHECK(entry_add(h, handle, from)); /* half a move has no other way back */
    return false;
}

static void list_find(const struct coarse_cell *cell, const struct volume *volume, struct found *found)
{
    uint32_t first = axis_seek(&cell->list, volume->min.x);
    axis_find(&cell->list, first, volume->min.x, volume->max.x, volume->min.y, volume->max.y, found);
}

static void hybrid_find(struct stratum *stratum, const struct volume *volume, struct found *found)
{
    const struct hybrid *h = hybrid_of(stratum);
    uint32_t x0 = cell_at(&h->cells, volume->min.x), x1 = cell_at(&h->cells, volume->max.x);
    uint32_t y0 = cell_at(&h->cells, volume->min.y), y1 = cell_at(&h->cells, volume->max.y);
    bool listed = ((uint64_t)x1 - x0 + 1) * ((uint64_t)y1 - y0 + 1) / 2 > h->high;
    for (uint32_t i = 0; listed && i < h->high; i++) {
        const struct coarse_cell *cell = &h->all[i];
        bool within = cell->list.count && cell->x >= x0 && cell->x <= x1 && cell->y >= y0 && cell->y <= y1;
        if (within) list_find(cell, volume, found);
    }
    for (uint32_t y = y0; !listed && y <= y1; y++) {
        for (uint32_t x = x0; x <= x1; x++) {
            const struct coarse_cell *cell = cell_find(h, x, y);
            if (cell) list_find(cell, volume, found);
        }
    }
}

static size_t hybrid_bytes(const struct stratum *stratum)
{
    const struct hybrid *h = hybrid_of(stratum);
    size_t bytes = h->room * (sizeof *h->all + sizeof *h->free) + table_memory_bytes(&h->index) +
                   h->places.room * sizeof *h->places.block;
    for (uint32_t i = 0; i < h->high; i++) bytes += axis_bytes(&h->all[i].list);
    return bytes;
}

static const struct structure hybrid = {
    .stratum_bytes = sizeof(struct hybrid),
    .init = hybrid_init,
    .close = hybrid_close,
    .add = hybrid_add,
    .remove = hybrid_remove,
    .move = hybrid_move,
    .find = hybrid_find,
    .bytes = hybrid_bytes,
};

const struct aoi_index index_hybrid = {
    .info = {.name = "hybrid",
             .about = "coarse cells with ordered lists: for queries of all sizes, and crowds in few cells",
             .abilities = AOI_CAN_BLOCK | AOI_CAN_RADIUS | AOI_CAN_PLANE},
    .create = engine_create,
    .ops = &engine_ops,
    .structure = &hybrid,
};
