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

static bool options_valid(const struct aoi_options *o)
{
    if (o->mode != AOI_BLOCK && o->mode != AOI_RADIUS) return false;
    if (o->cell_size <= 0 || o->max_x <= o->min_x || o->max_y <= o->min_y) return false;
    return o->radius_max >= 0 && o->hysteresis >= 0 && o->capacity <= CAPACITY_MAX;
}

/* Positions become cell numbers by a shift or by a multiplication, never by a division. The product of the rounded-up
 * reciprocal is exact because offset * cell_size stays below 2^64 (Granlund and Montgomery 1994). */
static void geometry_set(struct aoi *aoi)
{
    const struct aoi_options *o = &aoi->options;
    uint64_t size = (uint64_t)o->cell_size;
    if (size & (size - 1)) {
        aoi->reciprocal = UINT64_MAX / size + 1;
    } else {
        aoi->cell_shift = (unsigned)__builtin_ctzll(size);
    }
    aoi->span_x = (uint32_t)o->max_x - (uint32_t)o->min_x;
    aoi->span_y = (uint32_t)o->max_y - (uint32_t)o->min_y;
    aoi->narrow = aoi->span_x <= INT32_MAX && aoi->span_y <= INT32_MAX;
    aoi->base_x = floor_to(o->min_x, o->cell_size);
    aoi->base_y = floor_to(o->min_y, o->cell_size);
    aoi->cells_x = cell_x(aoi, o->max_x - 1) + 1;
    aoi->cells_y = cell_y(aoi, o->max_y - 1) + 1;
    aoi->step_max = 8191;
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

void aoi_kernels_limit(struct aoi *aoi, enum kernels most)
{
    enum kernels best = kernels_best();
    aoi->kernels = best < most ? best : most;
}

static bool tables_resize(struct aoi *aoi, uint32_t capacity);

enum terrane_error aoi_create(const struct aoi_options *options, struct aoi **out)
{
    *out = NULL;
    if (!options_valid(options)) return TERRANE_ERR_CONFIG;
    struct aoi *aoi = calloc(1, sizeof *aoi);
    if (!aoi) return TERRANE_ERR_MEMORY;
    aoi->options = *options;
    aoi->radius_max = options->radius_max ? (uint32_t)options->radius_max : INT32_MAX / 4;
    aoi->hysteresis = options->mode == AOI_RADIUS ? (uint32_t)options->hysteresis : 0;
    aoi->free_head = AOI_HANDLE_NONE;
    aoi->generation = 1;
    geometry_set(aoi);
    aoi_kernels_limit(aoi, KERNELS_AVX512);
    if (!pages_open(aoi) || !tables_resize(aoi, options->capacity ? options->capacity : 64)) {
        aoi_destroy(aoi);
        return TERRANE_ERR_MEMORY;
    }
    *out = aoi;
    return TERRANE_ERR_OK;
}

void aoi_destroy(struct aoi *aoi)
{
    if (!aoi) return;
    pages_close(aoi);
    pool_close(&aoi->pool);
    changes_close(&aoi->changes);
    join_close(aoi);
    free(aoi->bodies);
    free(aoi->ids);
    free(aoi->layers);
    free(aoi->z);
    free(aoi->z_next);
    free(aoi->idmap.slots);
    free(aoi->band.slots);
    free(aoi->jumps);
    free(aoi->jump_of);
    free(aoi->movers);
    free(aoi->crossers);
    free(aoi->crossings);
    free(aoi);
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
static bool tables_resize(struct aoi *aoi, uint32_t capacity)
{
    uint32_t old = aoi->capacity;
    if (capacity > CAPACITY_MAX) return false;
    if (!column_resize(&aoi->bodies, old, capacity, sizeof *aoi->bodies)) return false;
    if (!column_resize(&aoi->ids, old, capacity, sizeof *aoi->ids)) return false;
    if (aoi->layers && !column_resize(&aoi->layers, old, capacity, sizeof *aoi->layers)) return false;
    if (aoi->z && !column_resize(&aoi->z, old, capacity, sizeof *aoi->z)) return false;
    if (aoi->z_next && !column_resize(&aoi->z_next, old, capacity, sizeof *aoi->z_next)) return false;
    if (aoi->jump_of && !column_resize(&aoi->jump_of, old, capacity, sizeof *aoi->jump_of)) return false;
    if (!idmap_resize(aoi, capacity)) return false;
    aoi->capacity = capacity;
    return true;
}

bool z_make(struct aoi *aoi)
{
    if (aoi->z) return true;
    int32_t *z = calloc(aoi->capacity, sizeof *z), *z_next = calloc(aoi->capacity, sizeof *z_next);
    if (!z || !z_next) {
        free(z);
        free(z_next);
        return false;
    }
    aoi->z = z;
    aoi->z_next = z_next;
    return true;
}

static bool layers_make(struct aoi *aoi)
{
    if (!aoi->layers) aoi->layers = calloc(aoi->capacity, sizeof *aoi->layers);
    return aoi->layers != NULL;
}

static uint32_t handle_take(struct aoi *aoi)
{
    uint32_t handle = aoi->free_head;
    if (handle == AOI_HANDLE_NONE) return aoi->high++;
    aoi->free_head = (uint32_t)aoi->bodies[handle].x;
    return handle;
}

static void handle_give(struct aoi *aoi, uint32_t handle)
{
    aoi->bodies[handle] = (struct body){.x = (int32_t)aoi->free_head, .radius = BODY_DEAD};
    aoi->ids[handle] = (struct entity_id){0};
    aoi->free_head = handle;
}

/* ---- cells of entities ---- */

struct seat seat_make(struct aoi *aoi, uint16_t layer, int32_t x, int32_t y)
{
    uint32_t cx = cell_x(aoi, x), cy = cell_y(aoi, y);
    struct page *page = page_make(aoi, layer, cx >> PAGE_BITS, cy >> PAGE_BITS);
    if (!page) return (struct seat){0};
    struct cell *cell = page_cell(page, cx, cy);
    if (!cell_reserve(aoi, cell)) return (struct seat){0};
    return (struct seat){.page = page, .cell = cell};
}

struct seat seat_of(const struct aoi *aoi, const struct side *side)
{
    uint32_t cx = cell_x(aoi, side->x), cy = cell_y(aoi, side->y);
    struct page *page = page_find(aoi, side->layer, cx >> PAGE_BITS, cy >> PAGE_BITS);
    CHECK(page != NULL);
    return (struct seat){.page = page, .cell = page_cell(page, cx, cy)};
}

void seat_leave(struct aoi *aoi, struct seat seat, uint32_t handle)
{
    cell_remove_at(aoi, seat.page, seat.cell, cell_search(aoi, seat.cell, handle));
}

/* ---- single operations ---- */

static enum terrane_error place_check(const struct aoi *aoi, const struct aoi_place *place)
{
    if (!position_inside(aoi, place->position.x, place->position.y)) return TERRANE_ERR_POSITION_OUTSIDE;
    return place->radius > aoi->radius_max ? TERRANE_ERR_RADIUS_TOO_LARGE : TERRANE_ERR_OK;
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

enum terrane_error aoi_enter(struct aoi *aoi, struct entity_id id, const struct aoi_place *place, aoi_sink *sink,
                             void *context, uint32_t *handle)
{
    *handle = AOI_HANDLE_NONE;
    if (!id.v) return TERRANE_ERR_ENTITY_NONE;
    enum terrane_error error = place_check(aoi, place);
    if (error) return error;
    *handle = idmap_find(aoi, id);
    if (*handle != AOI_HANDLE_NONE) return TERRANE_ERR_ENTITY_EXISTS;
    if (place->position.z && !z_make(aoi)) return TERRANE_ERR_MEMORY;
    if (place->layer && !layers_make(aoi)) return TERRANE_ERR_MEMORY;
    if (aoi->free_head == AOI_HANDLE_NONE && aoi->high == aoi->capacity &&
        !tables_resize(aoi, aoi->capacity + aoi->capacity / 4 + 64)) {
        return TERRANE_ERR_MEMORY;
    }
    struct seat seat = seat_make(aoi, place->layer, place->position.x, place->position.y);
    if (!seat.cell) {
        pages_sweep(aoi);
        return TERRANE_ERR_MEMORY;
    }
    uint32_t taken = handle_take(aoi);
    aoi->bodies[taken] = (struct body){.x = place->position.x, .y = place->position.y, .radius = place->radius};
    aoi->ids[taken] = id;
    if (aoi->layers) aoi->layers[taken] = place->layer;
    if (aoi->z) aoi->z[taken] = aoi->z_next[taken] = place->position.z;
    idmap_add(aoi, taken);
    aoi->count++;
    struct side before = {0}, after = side_from(place);
    change_views(aoi, taken, &before, &after, sink, context);
    view_count_add(aoi, place->radius);
    CHECK(cell_add(aoi, seat.page, seat.cell, taken));
    *handle = taken;
    return TERRANE_ERR_OK;
}

enum terrane_error aoi_leave(struct aoi *aoi, uint32_t handle, aoi_sink *sink, void *context)
{
    if (!live(aoi, handle)) return TERRANE_ERR_ENTITY_UNKNOWN;
    struct side before = side_of(aoi, handle), after = {0};
    struct seat seat = seat_of(aoi, &before);
    seat_leave(aoi, seat, handle);
    change_views(aoi, handle, &before, &after, sink, context);
    if (!seat.page->population) page_drop(aoi, seat.page);
    view_count_remove(aoi, before.radius);
    idmap_remove(aoi, handle);
    handle_give(aoi, handle);
    aoi->count--;
    return TERRANE_ERR_OK;
}

/* Changes position and layer, and with them the cell. */
static enum terrane_error move_across(struct aoi *aoi, uint32_t handle, const struct side *before,
                                      const struct side *after, aoi_sink *sink, void *context)
{
    struct seat to = seat_make(aoi, after->layer, after->x, after->y);
    if (!to.cell) {
        pages_sweep(aoi);
        return TERRANE_ERR_MEMORY;
    }
    struct seat from = seat_of(aoi, before);
    bool stays = from.cell == to.cell;
    if (!stays) seat_leave(aoi, from, handle);
    change_views(aoi, handle, before, after, sink, context);
    if (stays) {
        cell_copy_spoil(from.cell);
    } else {
        CHECK(cell_add(aoi, to.page, to.cell, handle));
    }
    if (!from.page->population) page_drop(aoi, from.page);
    struct body *body = &aoi->bodies[handle];
    body->x = after->x;
    body->y = after->y;
    if (aoi->z) aoi->z[handle] = after->z;
    if (aoi->layers) aoi->layers[handle] = after->layer;
    return TERRANE_ERR_OK;
}

/* All but the usual moves; apart from them, so that those need no stack. */
__attribute__((noinline)) static enum terrane_error move_slowly(struct aoi *aoi, uint32_t handle,
                                                                struct position position, aoi_sink *sink, void *context)
{
    if (position.z && !z_make(aoi)) return TERRANE_ERR_MEMORY;
    struct side before = side_of(aoi, handle), after = before;
    after.x = position.x;
    after.y = position.y;
    after.z = position.z;
    enum terrane_error error = move_across(aoi, handle, &before, &after, sink, context);
    if (!error) staged_clear(aoi, handle);
    return error;
}

/* In AOI_BLOCK where z decides nothing, a move inside its cell changes nobody's view. Going to the cell to spoil its
 * copy would cost five times the move, so the next query spoils them all. */
enum terrane_error aoi_move(struct aoi *aoi, uint32_t handle, struct position position, aoi_sink *sink, void *context)
{
    if (!live(aoi, handle)) return TERRANE_ERR_ENTITY_UNKNOWN;
    if (!position_inside(aoi, position.x, position.y)) return TERRANE_ERR_POSITION_OUTSIDE;
    struct body *body = &aoi->bodies[handle];
    if (aoi->options.mode != AOI_BLOCK || z_matters(aoi) || (position.z && !aoi->z) ||
        x_cells_differ(aoi, body->x, position.x) || y_cells_differ(aoi, body->y, position.y)) {
        return move_slowly(aoi, handle, position, sink, context);
    }
    body->x = position.x;
    body->y = position.y;
    body->step_x = body->step_y = 0;
    if (aoi->z) aoi->z[handle] = aoi->z_next[handle] = position.z;
    aoi->copies_stale = true;
    return TERRANE_ERR_OK;
}

enum terrane_error aoi_set_radius(struct aoi *aoi, uint32_t handle, uint32_t radius, aoi_sink *sink, void *context)
{
    if (!live(aoi, handle)) return TERRANE_ERR_ENTITY_UNKNOWN;
    if (radius > aoi->radius_max) return TERRANE_ERR_RADIUS_TOO_LARGE;
    struct side before = side_of(aoi, handle), after = before;
    after.radius = radius;
    if (radius == before.radius) return TERRANE_ERR_OK;
    if (aoi->options.mode == AOI_RADIUS) change_views(aoi, handle, &before, &after, sink, context);
    view_count_remove(aoi, before.radius);
    view_count_add(aoi, radius);
    aoi->bodies[handle].radius = radius;
    return TERRANE_ERR_OK;
}

enum terrane_error aoi_set_layer(struct aoi *aoi, uint32_t handle, uint16_t layer, aoi_sink *sink, void *context)
{
    if (!live(aoi, handle)) return TERRANE_ERR_ENTITY_UNKNOWN;
    struct side before = side_of(aoi, handle), after = before;
    after.layer = layer;
    if (layer == before.layer) return TERRANE_ERR_OK;
    if (layer && !layers_make(aoi)) return TERRANE_ERR_MEMORY;
    return move_across(aoi, handle, &before, &after, sink, context);
}

bool aoi_recall(struct aoi *aoi, uint32_t observer, uint32_t subject)
{
    if (!aoi->hysteresis || observer == subject || !live(aoi, observer) || !live(aoi, subject)) return false;
    struct side a = side_of(aoi, observer), b = side_of(aoi, subject);
    if (!a.radius || a.layer != b.layer || !z_within(aoi, a.z, b.z)) return false;
    uint64_t dx = gap(a.x, b.x), dy = gap(a.y, b.y);
    if (within(dx, dy, a.radius) || !within(dx, dy, view_limit(aoi, a.radius))) return false;
    band_add(&aoi->band, observer, subject);
    return true;
}

/* ---- look-ups ---- */

uint32_t aoi_find(const struct aoi *aoi, struct entity_id id)
{
    return idmap_find(aoi, id);
}

struct entity_id aoi_id(const struct aoi *aoi, uint32_t handle)
{
    return live(aoi, handle) ? aoi->ids[handle] : (struct entity_id){0};
}

bool aoi_place_of(const struct aoi *aoi, uint32_t handle, struct aoi_place *out)
{
    if (!live(aoi, handle)) return false;
    const struct body *body = &aoi->bodies[handle];
    *out = (struct aoi_place){.position = {.x = body->x, .y = body->y, .z = z_of(aoi, handle)},
                              .radius = body->radius,
                              .layer = layer_of(aoi, handle)};
    return true;
}

bool aoi_sees(const struct aoi *aoi, uint32_t observer, uint32_t subject)
{
    if (observer == subject || !live(aoi, observer) || !live(aoi, subject)) return false;
    struct side a = side_of(aoi, observer), b = side_of(aoi, subject), gone = {0};
    return pair_judge(aoi, observer, &a, &gone, subject, &b, &gone).before & SIDE_OUT;
}

size_t aoi_count(const struct aoi *aoi)
{
    return aoi->count;
}

size_t aoi_memory_bytes(const struct aoi *aoi)
{
    size_t row = sizeof *aoi->bodies + sizeof *aoi->ids + (aoi->layers ? sizeof *aoi->layers : 0) +
                 (aoi->z ? sizeof *aoi->z + sizeof *aoi->z_next : 0) + (aoi->jump_of ? sizeof *aoi->jump_of : 0);
    return sizeof *aoi + row * aoi->capacity + aoi->idmap.size * sizeof *aoi->idmap.slots +
           aoi->band.size * sizeof *aoi->band.slots + (aoi->pool.size + POOL_PADDING) * sizeof *aoi->pool.words +
           pages_memory_bytes(aoi) + aoi->jump_room * sizeof *aoi->jumps + aoi->mover_room * sizeof *aoi->movers +
           aoi->crosser_room * sizeof *aoi->crossers + aoi->crossing_room * sizeof *aoi->crossings +
           aoi->changes.room * CHANGE_KINDS * sizeof(uint32_t) + join_memory_bytes(aoi);
}
