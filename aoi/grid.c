/* The edge of the grid: handles, places and single operations.
 *
 * Every operation is: check, make room (the only point that may fail for memory), then change and report. */
#include "aoi/grid.h"

#include <stdlib.h>
#include <string.h>

#define CAPACITY_MAX (1u << 30)

bool grow(void *array, size_t *room, size_t need, size_t member_size)
{
    if (need <= *room) return true;
    size_t next = need + need / 16 + 16;
    void **at = array, *grown = realloc(*at, next * member_size);
    if (!grown) return false;
    *at = grown;
    *room = next;
    return true;
}

static int64_t floor_to(int64_t value, int64_t step)
{
    int64_t rest = value % step;
    return value - (rest < 0 ? rest + step : rest);
}

/* Positions become cell numbers by a shift or by a multiplication, never by a division. The product of the rounded-up
 * reciprocal is exact because offset * cell_size stays below 2^64 (Granlund and Montgomery 1994). */
static void geometry_set(struct grid *grid)
{
    const struct aoi_options *o = &grid->options;
    uint64_t size = (uint64_t)o->cell_size;
    if (size & (size - 1)) {
        grid->reciprocal = UINT64_MAX / size + 1;
    } else {
        grid->cell_shift = (unsigned)__builtin_ctzll(size);
    }
    grid->span_x = (uint32_t)o->max_x - (uint32_t)o->min_x;
    grid->span_y = (uint32_t)o->max_y - (uint32_t)o->min_y;
    grid->narrow = grid->span_x <= INT32_MAX && grid->span_y <= INT32_MAX;
    grid->base_x = floor_to(o->min_x, o->cell_size);
    grid->base_y = floor_to(o->min_y, o->cell_size);
    grid->cells_x = cell_x(grid, o->max_x - 1) + 1;
    grid->cells_y = cell_y(grid, o->max_y - 1) + 1;
    grid->step_max = 8191;
}

/* The best kernels that this machine runs. */
static enum kernels kernels_best(void)
{
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2")) return KERNELS_PLAIN;
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") ? KERNELS_AVX512 : KERNELS_AVX2;
#else
    return KERNELS_PLAIN;
#endif
}

void grid_kernels_limit(struct grid *grid, enum kernels most)
{
    enum kernels best = kernels_best();
    grid->kernels = best < most ? best : most;
}

static bool tables_resize(struct grid *grid, uint32_t capacity);

enum terrane_error grid_create(const struct aoi_index *index, const struct aoi_options *options, struct aoi **out)
{
    (void)index;
    struct grid *grid = calloc(1, sizeof *grid);
    if (!grid) return TERRANE_ERR_MEMORY;
    grid->options = *options;
    grid->radius_max = options->radius_max ? (uint32_t)options->radius_max : INT32_MAX / 4;
    grid->hysteresis = options->mode == AOI_RADIUS ? (uint32_t)options->hysteresis : 0;
    grid->free_head = AOI_HANDLE_NONE;
    grid->generation = 1;
    geometry_set(grid);
    grid_kernels_limit(grid, KERNELS_AVX512);
    if (!pages_open(grid) || !tables_resize(grid, options->capacity ? options->capacity : 64)) {
        grid_destroy(&grid->base);
        return TERRANE_ERR_MEMORY;
    }
    *out = &grid->base;
    return TERRANE_ERR_OK;
}

void grid_destroy(struct aoi *aoi)
{
    struct grid *grid = grid_of(aoi);
    pages_close(grid);
    pool_close(&grid->pool);
    changes_close(&grid->changes);
    join_close(grid);
    free(grid->bodies);
    free(grid->ids);
    free(grid->layers);
    free(grid->z);
    free(grid->z_next);
    free(grid->idmap.slots);
    free(grid->band.slots);
    free(grid->jumps);
    free(grid->jump_of);
    free(grid->movers);
    free(grid->crossers);
    free(grid->crossings);
    free(grid);
}

/* ---- tables ---- */

static bool column_resize(void *column, uint32_t old_rows, uint32_t rows, size_t row_size)
{
    char **at = column, *grown = realloc(*at, rows * row_size);
    if (!grown) return false;
    memset(grown + old_rows * row_size, 0, (rows - old_rows) * row_size);
    *at = grown;
    return true;
}

/* A failure half-way leaves some columns longer than needed, which does no harm. */
static bool tables_resize(struct grid *grid, uint32_t capacity)
{
    uint32_t old = grid->capacity;
    if (capacity > CAPACITY_MAX) return false;
    if (!column_resize(&grid->bodies, old, capacity, sizeof *grid->bodies)) return false;
    if (!column_resize(&grid->ids, old, capacity, sizeof *grid->ids)) return false;
    if (grid->layers && !column_resize(&grid->layers, old, capacity, sizeof *grid->layers)) return false;
    if (grid->z && !column_resize(&grid->z, old, capacity, sizeof *grid->z)) return false;
    if (grid->z_next && !column_resize(&grid->z_next, old, capacity, sizeof *grid->z_next)) return false;
    if (grid->jump_of && !column_resize(&grid->jump_of, old, capacity, sizeof *grid->jump_of)) return false;
    if (!idmap_resize(grid, capacity)) return false;
    grid->capacity = capacity;
    return true;
}

bool z_make(struct grid *grid)
{
    if (grid->z) return true;
    int32_t *z = calloc(grid->capacity, sizeof *z), *z_next = calloc(grid->capacity, sizeof *z_next);
    if (!z || !z_next) {
        free(z);
        free(z_next);
        return false;
    }
    grid->z = z;
    grid->z_next = z_next;
    return true;
}

static bool layers_make(struct grid *grid)
{
    if (!grid->layers) grid->layers = calloc(grid->capacity, sizeof *grid->layers);
    return grid->layers != NULL;
}

static uint32_t handle_take(struct grid *grid)
{
    uint32_t handle = grid->free_head;
    if (handle == AOI_HANDLE_NONE || grid->base.held) return grid->high++;
    grid->free_head = (uint32_t)grid->bodies[handle].x;
    return handle;
}

static void handle_give(struct grid *grid, uint32_t handle)
{
    grid->bodies[handle] = (struct body){.x = (int32_t)grid->free_head, .radius = BODY_DEAD};
    grid->ids[handle] = (struct entity_id){0};
    grid->free_head = handle;
}

/* ---- cells of entities ---- */

struct seat seat_make(struct grid *grid, uint16_t layer, int32_t x, int32_t y)
{
    uint32_t cx = cell_x(grid, x), cy = cell_y(grid, y);
    struct page *page = page_make(grid, layer, cx >> PAGE_BITS, cy >> PAGE_BITS);
    if (!page) return (struct seat){0};
    struct cell *cell = page_cell(page, cx, cy);
    if (!cell_reserve(grid, cell)) return (struct seat){0};
    return (struct seat){.page = page, .cell = cell};
}

struct seat seat_of(const struct grid *grid, const struct side *side)
{
    uint32_t cx = cell_x(grid, side->x), cy = cell_y(grid, side->y);
    struct page *page = page_find(grid, side->layer, cx >> PAGE_BITS, cy >> PAGE_BITS);
    CHECK(page != NULL);
    return (struct seat){.page = page, .cell = page_cell(page, cx, cy)};
}

void seat_leave(struct grid *grid, struct seat seat, uint32_t handle)
{
    cell_remove_at(grid, seat.page, seat.cell, cell_search(grid, seat.cell, handle));
}

/* ---- single operations ---- */

static enum terrane_error place_check(const struct grid *grid, const struct aoi_place *place)
{
    if (!position_inside(grid, place->position.x, place->position.y)) return TERRANE_ERR_POSITION_OUTSIDE;
    return place->radius > grid->radius_max ? TERRANE_ERR_RADIUS_TOO_LARGE : TERRANE_ERR_OK;
}

static struct side side_from(const struct aoi_place *place)
{
    return (struct side){.x = place->position.x,
                         .y = place->position.y,
                         .z = place->position.z,
                         .radius = place->radius,
                         .layer = place->layer,
                         .there = true};
}

enum terrane_error grid_enter(struct aoi *aoi, struct entity_id id, const struct aoi_place *place, aoi_sink *sink,
                              void *context, uint32_t *handle)
{
    struct grid *grid = grid_of(aoi);
    enum terrane_error error = place_check(grid, place);
    if (error) return error;
    *handle = idmap_find(grid, id);
    if (*handle != AOI_HANDLE_NONE) return TERRANE_ERR_ENTITY_EXISTS;
    if (place->position.z && !z_make(grid)) return TERRANE_ERR_MEMORY;
    if (place->layer && !layers_make(grid)) return TERRANE_ERR_MEMORY;
    bool recycles = grid->free_head != AOI_HANDLE_NONE && !grid->base.held;
    if (!recycles && grid->high == grid->capacity && !tables_resize(grid, grid->capacity + grid->capacity / 4 + 64)) {
        return TERRANE_ERR_MEMORY;
    }
    struct seat seat = seat_make(grid, place->layer, place->position.x, place->position.y);
    if (!seat.cell) {
        pages_sweep(grid);
        return TERRANE_ERR_MEMORY;
    }
    uint32_t taken = handle_take(grid);
    grid->bodies[taken] = (struct body){.x = place->position.x, .y = place->position.y, .radius = place->radius};
    grid->ids[taken] = id;
    if (grid->layers) grid->layers[taken] = place->layer;
    if (grid->z) grid->z[taken] = grid->z_next[taken] = place->position.z;
    idmap_add(grid, taken);
    grid->count++;
    struct side before = {0}, after = side_from(place);
    change_views(grid, taken, &before, &after, sink, context);
    view_count_add(grid, place->radius);
    CHECK(cell_add(grid, seat.page, seat.cell, taken));
    *handle = taken;
    return TERRANE_ERR_OK;
}

enum terrane_error grid_leave(struct aoi *aoi, uint32_t handle, aoi_sink *sink, void *context)
{
    struct grid *grid = grid_of(aoi);
    if (!live(grid, handle)) return TERRANE_ERR_ENTITY_UNKNOWN;
    struct side before = side_of(grid, handle), after = {0};
    struct seat seat = seat_of(grid, &before);
    seat_leave(grid, seat, handle);
    change_views(grid, handle, &before, &after, sink, context);
    if (!seat.page->population) page_drop(grid, seat.page);
    view_count_remove(grid, before.radius);
    idmap_remove(grid, handle);
    handle_give(grid, handle);
    grid->count--;
    return TERRANE_ERR_OK;
}

/* Changes position and layer, and with them the cell. */
static enum terrane_error move_across(struct grid *grid, uint32_t handle, const struct side *before,
                                      const struct side *after, aoi_sink *sink, void *context)
{
    struct seat to = seat_make(grid, after->layer, after->x, after->y);
    if (!to.cell) {
        pages_sweep(grid);
        return TERRANE_ERR_MEMORY;
    }
    struct seat from = seat_of(grid, before);
    bool stays = from.cell == to.cell;
    if (!stays) seat_leave(grid, from, handle);
    change_views(grid, handle, before, after, sink, context);
    if (stays) {
        cell_copy_spoil(from.cell);
    } else {
        CHECK(cell_add(grid, to.page, to.cell, handle));
    }
    if (!from.page->population) page_drop(grid, from.page);
    struct body *body = &grid->bodies[handle];
    body->x = after->x;
    body->y = after->y;
    if (grid->z) grid->z[handle] = after->z;
    if (grid->layers) grid->layers[handle] = after->layer;
    return TERRANE_ERR_OK;
}

/* All but the usual moves; apart from them, so that those need no stack. */
__attribute__((noinline)) static enum terrane_error move_slowly(struct grid *grid, uint32_t handle,
                                                                struct position position, aoi_sink *sink, void *context)
{
    if (position.z && !z_make(grid)) return TERRANE_ERR_MEMORY;
    struct side before = side_of(grid, handle), after = before;
    after.x = position.x;
    after.y = position.y;
    after.z = position.z;
    enum terrane_error error = move_across(grid, handle, &before, &after, sink, context);
    if (!error) staged_clear(grid, handle);
    return error;
}

/* In AOI_BLOCK where z decides nothing, a move inside its cell changes nobody's view. Going to the cell to spoil its
 * copy would cost five times the move, so the next query spoils them all. */
enum terrane_error grid_move(struct aoi *aoi, uint32_t handle, struct position position, aoi_sink *sink, void *context)
{
    struct grid *grid = grid_of(aoi);
    if (!live(grid, handle)) return TERRANE_ERR_ENTITY_UNKNOWN;
    if (!position_inside(grid, position.x, position.y)) return TERRANE_ERR_POSITION_OUTSIDE;
    struct body *body = &grid->bodies[handle];
    if (grid->options.mode != AOI_BLOCK || z_matters(grid) || (position.z && !grid->z) ||
        x_cells_differ(grid, body->x, position.x) || y_cells_differ(grid, body->y, position.y)) {
        return move_slowly(grid, handle, position, sink, context);
    }
    body->x = position.x;
    body->y = position.y;
    body->step_x = body->step_y = 0;
    if (grid->z) grid->z[handle] = grid->z_next[handle] = position.z;
    grid->copies_stale = true;
    return TERRANE_ERR_OK;
}

enum terrane_error grid_set_radius(struct aoi *aoi, uint32_t handle, uint32_t radius, aoi_sink *sink, void *context)
{
    struct grid *grid = grid_of(aoi);
    if (!live(grid, handle)) return TERRANE_ERR_ENTITY_UNKNOWN;
    if (radius > grid->radius_max) return TERRANE_ERR_RADIUS_TOO_LARGE;
    struct side before = side_of(grid, handle), after = before;
    after.radius = radius;
    if (radius == before.radius) return TERRANE_ERR_OK;
    if (grid->options.mode == AOI_RADIUS) change_views(grid, handle, &before, &after, sink, context);
    view_count_remove(grid, before.radius);
    view_count_add(grid, radius);
    grid->bodies[handle].radius = radius;
    return TERRANE_ERR_OK;
}

enum terrane_error grid_set_layer(struct aoi *aoi, uint32_t handle, uint16_t layer, aoi_sink *sink, void *context)
{
    struct grid *grid = grid_of(aoi);
    if (!live(grid, handle)) return TERRANE_ERR_ENTITY_UNKNOWN;
    struct side before = side_of(grid, handle), after = before;
    after.layer = layer;
    if (layer == before.layer) return TERRANE_ERR_OK;
    if (layer && !layers_make(grid)) return TERRANE_ERR_MEMORY;
    return move_across(grid, handle, &before, &after, sink, context);
}

bool grid_recall(struct aoi *aoi, uint32_t observer, uint32_t subject)
{
    struct grid *grid = grid_of(aoi);
    if (!grid->hysteresis || observer == subject || !live(grid, observer) || !live(grid, subject)) return false;
    struct side a = side_of(grid, observer), b = side_of(grid, subject);
    if (!a.radius || a.layer != b.layer || !z_within(grid, a.z, b.z)) return false;
    uint64_t dx = gap(a.x, b.x), dy = gap(a.y, b.y);
    if (within(dx, dy, a.radius) || !within(dx, dy, view_limit(grid, a.radius))) return false;
    band_add(&grid->band, observer, subject);
    return true;
}

/* ---- look-ups ---- */

uint32_t grid_find(const struct aoi *aoi, struct entity_id id)
{
    const struct grid *grid = grid_of(aoi);
    return idmap_find(grid, id);
}

struct entity_id grid_id(const struct aoi *aoi, uint32_t handle)
{
    const struct grid *grid = grid_of(aoi);
    return live(grid, handle) ? grid->ids[handle] : (struct entity_id){0};
}

bool grid_place_of(const struct aoi *aoi, uint32_t handle, struct aoi_place *out)
{
    const struct grid *grid = grid_of(aoi);
    if (!live(grid, handle)) return false;
    const struct body *body = &grid->bodies[handle];
    *out = (struct aoi_place){.position = {.x = body->x, .y = body->y, .z = z_of(grid, handle)},
                              .radius = body->radius,
                              .layer = layer_of(grid, handle)};
    return true;
}

bool grid_sees(const struct aoi *aoi, uint32_t observer, uint32_t subject)
{
    const struct grid *grid = grid_of(aoi);
    if (observer == subject || !live(grid, observer) || !live(grid, subject)) return false;
    struct side a = side_of(grid, observer), b = side_of(grid, subject), gone = {0};
    return pair_judge(grid, observer, &a, &gone, subject, &b, &gone).before & SIDE_OUT;
}

size_t grid_count(const struct aoi *aoi)
{
    const struct grid *grid = grid_of(aoi);
    return grid->count;
}

size_t grid_memory_bytes(const struct aoi *aoi)
{
    const struct grid *grid = grid_of(aoi);
    size_t row = sizeof *grid->bodies + sizeof *grid->ids + (grid->layers ? sizeof *grid->layers : 0) +
                 (grid->z ? sizeof *grid->z + sizeof *grid->z_next : 0) + (grid->jump_of ? sizeof *grid->jump_of : 0);
    return sizeof *grid + row * grid->capacity + grid->idmap.size * sizeof *grid->idmap.slots +
           grid->band.size * sizeof *grid->band.slots + (grid->pool.size + POOL_PADDING) * sizeof *grid->pool.words +
           pages_memory_bytes(grid) + grid->jump_room * sizeof *grid->jumps + grid->mover_room * sizeof *grid->movers +
           grid->crosser_room * sizeof *grid->crossers + grid->crossing_room * sizeof *grid->crossings +
           grid->changes.room * CHANGE_KINDS * sizeof(uint32_t) + join_memory_bytes(grid);
}

static const struct aoi_ops grid_ops = {.destroy = grid_destroy,
                                        .enter = grid_enter,
                                        .leave = grid_leave,
                                        .move = grid_move,
                                        .set_radius = grid_set_radius,
                                        .set_layer = grid_set_layer,
                                        .recall = grid_recall,
                                        .stage = grid_stage,
                                        .stage_many = grid_stage_many,
                                        .tick = grid_tick,
                                        .find = grid_find,
                                        .id = grid_id,
                                        .place_of = grid_place_of,
                                        .sees = grid_sees,
                                        .count = grid_count,
                                        .memory_bytes = grid_memory_bytes,
                                        .query_circle = grid_query_circle,
                                        .query_rectangle = grid_query_rectangle,
                                        .query_sphere = grid_query_sphere,
                                        .query_block = grid_query_block,
                                        .view = grid_view,
                                        .fanout = grid_fanout};

const struct aoi_index index_grid = {
    .info = {.name = "grid",
             .about = "one grid of cells, swept and joined whole: the cluster's, for worlds of walkers of any size",
             .abilities = AOI_CAN_BLOCK | AOI_CAN_RADIUS | AOI_CAN_PLANE},
    .create = grid_create,
    .ops = &grid_ops,
};
