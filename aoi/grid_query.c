/* Queries: all of a circle, rectangle, block or view; and how many would see something at a place.
 *
 * A circle is the query that must be fast. Cells keep a copy of their members' positions, made anew when stale, and all
 * cells of a page that the circle's box touches are sifted in one call, a vector of members at a time. Where there are
 * too many cells for all to have a copy, those without are poured into one batch first, for nine loops of unforeseeable
 * length cost more than the distances. What is found is written without a branch. */
#include "aoi/grid_join.h"

#include <string.h>

struct found {
    uint32_t *out;
    size_t room, count;
};

static inline void found_add(struct found *found, uint32_t handle)
{
    if (found->count < found->room) found->out[found->count] = handle;
    found->count++;
}

#define BATCH 256

/* A circle, and the candidates that wait to be measured. */
struct circle {
    struct grid *grid;
    struct position centre;
    uint64_t radius;
    struct found found;
    sift_kernel *sift; /* NULL: packed differences (radius plus a cell) would not fit into 16 bits */
    uint32_t packed_centre, packed_limit;
    bool small; /* 64 bits hold the squares: nothing in the cells touched is farther than radius + cell */
    uint32_t waiting;
    uint32_t batch[BATCH + 8];
};

/* Measures the batch; room for all of it is left in `out`. Only where `small`. */
static void batch_measure(struct circle *circle)
{
    const struct body *bodies = circle->grid->bodies;
    struct found *found = &circle->found;
    uint32_t *out = found->out + found->count;
    int64_t limit = (int64_t)(circle->radius * circle->radius);
    for (uint32_t i = 0; i < circle->waiting; i++) {
        const struct body *body = &bodies[circle->batch[i]];
        int64_t dx = (int64_t)body->x - circle->centre.x, dy = (int64_t)body->y - circle->centre.y;
        *out = circle->batch[i];
        out += dx * dx + dy * dy <= limit;
    }
    found->count = (size_t)(out - found->out);
    circle->waiting = 0;
}

/* The careful way: any radius, any room. */
static void cell_measure(struct circle *circle, const uint32_t *handles, uint32_t count)
{
    struct position centre = circle->centre;
    for (uint32_t i = 0; i < count; i++) {
        const struct body *body = &circle->grid->bodies[handles[i]];
        if (within(gap(body->x, centre.x), gap(body->y, centre.y), circle->radius)) {
            found_add(&circle->found, handles[i]);
        }
    }
}

/* Empties the batch, whatever room there is. */
static void batch_end(struct circle *circle)
{
    if (circle->found.count + circle->waiting < circle->found.room) {
        batch_measure(circle);
    } else {
        cell_measure(circle, circle->batch, circle->waiting);
        circle->waiting = 0;
    }
}

static void circle_open(struct circle *circle, struct grid *grid, struct position centre, uint32_t radius)
{
    uint64_t farthest = (uint64_t)radius + (uint64_t)grid->options.cell_size;
    circle->grid = grid;
    circle->centre = centre;
    circle->radius = radius;
    static sift_kernel *const kernels[] = {sift_plain, sift_avx2, sift_avx512};
    circle->sift = farthest > INT16_MAX ? NULL : kernels[grid->kernels];
    circle->packed_centre = ((uint32_t)centre.x & 0xffff) | (uint32_t)centre.y << 16;
    circle->packed_limit = (uint32_t)((uint64_t)radius * radius + 1);
    circle->small = farthest < 1u << 30;
    circle->waiting = 0;
}

/* A cell without a fresh copy. */
static void cell_look(struct circle *circle, const struct cell *cell)
{
    const uint32_t *handles = cell_handles(circle->grid, cell);
    if (cell->count > BATCH || !circle->small) {
        cell_measure(circle, handles, cell->count);
        return;
    }
    if (circle->waiting + cell->count > BATCH) batch_end(circle);
    uint32_t *to = circle->batch + circle->waiting;
    for (uint32_t i = 0; i < cell->count; i += 4) memcpy(to + i, handles + i, 4 * sizeof *to);
    circle->waiting += cell->count;
}

/* Cells in rows of one page. */
struct patch {
    struct cell *corner;
    uint32_t columns, rows;
};

/* Sees to fresh copies for all; false: not all can have one. */
__attribute__((noinline)) static bool patch_copy(struct grid *grid, const struct patch *patch)
{
    bool all = true;
    for (uint32_t row = 0; row < patch->rows; row++) {
        struct cell *cell = patch->corner + row * PAGE_SIDE, *end = cell + patch->columns;
        for (; cell < end; cell++) all &= cell_fresh(grid, cell) || cell_copy_make(grid, cell);
    }
    return all;
}

/* Sifts a patch of cells, which all have fresh copies. */
static inline void patch_sift(struct circle *circle, const struct cell *corner, uint32_t columns, uint32_t rows)
{
    struct found *found = &circle->found;
    struct sieve sieve = {.words = circle->grid->pool.words,
                          .centre = circle->packed_centre,
                          .limit = circle->packed_limit,
                          .columns = columns,
                          .rows = rows};
    found->count = (size_t)(circle->sift(&sieve, corner, found->out + found->count) - found->out);
}

/* The cells one by one, those with a fresh copy (if `fits`) and the others. */
__attribute__((noinline)) static void patch_look_closely(struct circle *circle, const struct patch *patch, bool fits)
{
    for (uint32_t row = 0; row < patch->rows; row++) {
        struct cell *cell = patch->corner + row * PAGE_SIDE, *end = cell + patch->columns;
        for (; cell < end; cell++) {
            if (fits && cell_fresh(circle->grid, cell)) {
                patch_sift(circle, cell, 1, 1);
            } else {
                cell_look(circle, cell);
            }
        }
    }
}

static inline void patch_look(struct circle *circle, struct patch patch)
{
    uint32_t members = 0;
    bool fresh = true;
    for (uint32_t row = 0; row < patch.rows; row++) {
        const struct cell *cell = patch.corner + row * PAGE_SIDE, *end = cell + patch.columns;
        for (; cell < end; cell++) {
            members += cell->count;
            fresh &= cell_fresh(circle->grid, cell);
        }
    }
    bool fits = circle->sift && circle->found.count + circle->waiting + members + SIFT_MORE <= circle->found.room;
    if (fits && (fresh || patch_copy(circle->grid, &patch))) {
        patch_sift(circle, patch.corner, patch.columns, patch.rows);
    } else {
        patch_look_closely(circle, &patch, fits);
    }
}

/* A box in one layer that touches at most 2 x 2 pages; a walk over so little would cost more than the looking. */
static inline void box_look(struct circle *circle, uint16_t layer, const struct box *box)
{
    for (uint32_t py = box->y0 >> PAGE_BITS; py <= box->y1 >> PAGE_BITS; py++) {
        for (uint32_t px = box->x0 >> PAGE_BITS; px <= box->x1 >> PAGE_BITS; px++) {
            struct page *page = page_find(circle->grid, layer, px, py);
            if (!page) continue;
            uint32_t x0 = px << PAGE_BITS, x1 = x0 + PAGE_MASK, y0 = py << PAGE_BITS, y1 = y0 + PAGE_MASK;
            if (x0 < box->x0) x0 = box->x0;
            if (x1 > box->x1) x1 = box->x1;
            if (y0 < box->y0) y0 = box->y0;
            if (y1 > box->y1) y1 = box->y1;
            patch_look(circle, (struct patch){page_cell(page, x0, y0), x1 - x0 + 1, y1 - y0 + 1});
        }
    }
}

static void box_walk(struct circle *circle, int32_t layer, struct box box)
{
    struct walk walk;
    uint32_t cells;
    walk_start(&walk, circle->grid, layer, box);
    for (struct cell *strip; (strip = walk_next(&walk, &cells));) patch_look(circle, (struct patch){strip, cells, 1});
}

size_t grid_query_circle(struct aoi *aoi, struct position centre, uint32_t radius, int32_t layer, uint32_t *out,
                         size_t room)
{
    struct grid *grid = grid_of(aoi);
    struct circle circle;
    if (grid->copies_stale) copies_age(grid);
    circle_open(&circle, grid, centre, radius);
    circle.found = (struct found){.out = out, .room = room};
    struct box box = box_around(grid, centre.x, centre.y, radius);
    bool one_layer = layer >= 0 || !grid->pages_layered;
    bool near =
        (box.x1 >> PAGE_BITS) - (box.x0 >> PAGE_BITS) <= 1 && (box.y1 >> PAGE_BITS) - (box.y0 >> PAGE_BITS) <= 1;
    if (one_layer && near && !box.empty) {
        box_look(&circle, (uint16_t)(layer < 0 ? 0 : layer), &box);
    } else {
        box_walk(&circle, layer, box);
    }
    if (circle.waiting) batch_end(&circle);
    return circle.found.count;
}

size_t grid_query_rectangle(struct aoi *aoi, int32_t min_x, int32_t min_y, int32_t max_x, int32_t max_y, int32_t layer,
                            uint32_t *out, size_t room)
{
    struct grid *grid = grid_of(aoi);
    struct found found = {.out = out, .room = room};
    struct walk walk;
    uint32_t cells;
    if (min_x > max_x || min_y > max_y) return 0;
    walk_start(&walk, grid, layer, box_of(grid, min_x, min_y, max_x, max_y));
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (; cells--; cell++) {
            const uint32_t *handles = cell_handles(grid, cell);
            for (uint32_t i = 0; i < cell->count; i++) {
                const struct body *body = &grid->bodies[handles[i]];
                if (body->x < min_x || body->x > max_x || body->y < min_y || body->y > max_y) continue;
                found_add(&found, handles[i]);
            }
        }
    }
    return found.count;
}

/* A column of cells holds all heights, so z only sifts. */
size_t grid_query_sphere(struct aoi *aoi, struct position centre, uint32_t radius, int32_t layer, uint32_t *out,
                         size_t room)
{
    const struct grid *grid = grid_of(aoi);
    struct found found = {.out = out, .room = room};
    struct walk walk;
    uint32_t cells;
    walk_start(&walk, grid, layer, box_around(grid, centre.x, centre.y, radius));
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (; cells--; cell++) {
            const uint32_t *handles = cell_handles(grid, cell);
            for (uint32_t i = 0; i < cell->count; i++) {
                const struct body *body = &grid->bodies[handles[i]];
                uint64_t dx = gap(body->x, centre.x), dy = gap(body->y, centre.y);
                if (within_sphere(dx, dy, gap(z_of(grid, handles[i]), centre.z), radius)) found_add(&found, handles[i]);
            }
        }
    }
    return found.count;
}

size_t grid_query_block(struct aoi *aoi, struct position centre, int32_t layer, uint32_t *out, size_t room)
{
    struct grid *grid = grid_of(aoi);
    struct found found = {.out = out, .room = room};
    struct walk walk;
    uint32_t cells;
    if (!position_inside(grid, centre.x, centre.y)) return 0;
    walk_start(&walk, grid, layer, box_block(grid, cell_x(grid, centre.x), cell_y(grid, centre.y)));
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (; cells--; cell++) {
            const uint32_t *handles = cell_handles(grid, cell);
            for (uint32_t i = 0; i < cell->count; i++) found_add(&found, handles[i]);
        }
    }
    return found.count;
}

/* The box of the observer's own view alone. */
static struct box view_box(const struct grid *grid, const struct side *side)
{
    if (grid->options.mode == AOI_BLOCK) return box_block(grid, cell_x(grid, side->x), cell_y(grid, side->y));
    if (!side->radius) return (struct box){.empty = true};
    return box_around(grid, side->x, side->y, view_limit(grid, side->radius));
}

size_t grid_view(struct aoi *aoi, uint32_t observer, uint32_t *out, size_t room)
{
    struct grid *grid = grid_of(aoi);
    if (!live(grid, observer)) return 0;
    struct found found = {.out = out, .room = room};
    struct side side = side_of(grid, observer);
    struct walk walk;
    uint32_t cells;
    walk_start(&walk, grid, side.layer, view_box(grid, &side));
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (; cells--; cell++) {
            const uint32_t *handles = cell_handles(grid, cell);
            for (uint32_t i = 0; i < cell->count; i++) {
                if (grid_sees(aoi, observer, handles[i])) found_add(&found, handles[i]);
            }
        }
    }
    return found.count;
}

size_t grid_fanout(struct aoi *aoi, const struct aoi_place *place)
{
    struct grid *grid = grid_of(aoi);
    struct position at = place->position;
    if (!position_inside(grid, at.x, at.y)) return 0;
    bool block = grid->options.mode == AOI_BLOCK;
    struct side side = {.x = at.x, .y = at.y, .there = true};
    struct walk walk;
    uint32_t cells;
    size_t count = 0;
    walk_start(&walk, grid, place->layer, side_box(grid, &side));
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (; cells--; cell++) {
            const uint32_t *handles = cell_handles(grid, cell);
            for (uint32_t i = 0; i < cell->count; i++) {
                const struct body *body = &grid->bodies[handles[i]];
                if (!z_within(grid, z_of(grid, handles[i]), at.z)) continue;
                bool sees = body->radius && within(gap(body->x, at.x), gap(body->y, at.y), body->radius);
                count += block || sees;
            }
        }
    }
    return count;
}
