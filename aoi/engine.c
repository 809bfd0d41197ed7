/* The edge of the engine: handles, places, layers and single operations.
 *
 * Every operation is: check, change the structure (the only point that may fail for memory), collect what that does to
 * views, and when all is in its new place, tell it. */
#include "aoi/engine.h"
#include "common/array.h"
#include "common/check.h"

#include <stdlib.h>
#include <string.h>

void found_grow(struct found *found, size_t more)
{
    found->room = (found->count + more) * 2 + 64;
    found->handles = realloc(found->handles, found->room * sizeof *found->handles);
    CHECK(found->handles != NULL); /* in the midst of a report there is no way back */
}

void found_add_many(struct found *found, const uint32_t *handles, size_t count)
{
    if (!count) return;
    if (found->count + count > found->room) found_grow(found, count);
    memcpy(found->handles + found->count, handles, count * sizeof *handles);
    found->count += count;
}

void engine_cells_set(struct cells *cells, uint32_t size)
{
    *cells = (struct cells){.size = size, .base = -(((int64_t)1 << 31) + size - 1) / size * size};
    if (size & (size - 1)) {
        cells->reciprocal = UINT64_MAX / size + 1;
    } else {
        cells->shift = (unsigned)__builtin_ctz(size);
    }
}

/* ---- tables ---- */

static bool column_resize(void *column, size_t rows, size_t row_size)
{
    void **at = column, *grown = realloc(*at, rows * row_size);
    if (grown) *at = grown;
    return grown != NULL;
}

static bool tables_resize(struct engine *e, uint32_t capacity)
{
    if (!column_resize(&e->motes, capacity, sizeof *e->motes)) return false;
    if (!column_resize(&e->ids, capacity, sizeof *e->ids)) return false;
    if (!column_resize(&e->slots, capacity, sizeof *e->slots)) return false;
    if (e->next && !column_resize(&e->next, capacity, sizeof *e->next)) return false;
    table_reserve(&e->handles, capacity);
    e->capacity = capacity;
    return true;
}

/* Whether 64 bits hold the square of any distance within the bounds. */
static bool bounds_narrow(const struct engine *e)
{
    const struct aoi_options *o = &e->options;
    int64_t x = (int64_t)o->max_x - o->min_x, y = (int64_t)o->max_y - o->min_y, z = (int64_t)o->max_z - o->min_z;
    return x <= 1 << 30 && y <= 1 << 30 && (!e->space || z <= 1 << 30);
}

enum terrane_error engine_create(const struct aoi_index *index, const struct aoi_options *options, struct aoi **out)
{
    struct engine *e = calloc(1, sizeof *e);
    if (!e) return TERRANE_ERR_MEMORY;
    e->structure = index->structure;
    e->options = *options;
    e->options.index = index->info.name;
    e->space = options->dimensions == 3;
    if (!e->space || (!options->min_z && !options->max_z)) {
        e->options.min_z = INT32_MIN;
        e->options.max_z = INT32_MAX;
    }
    e->z_decides = !e->space && options->z_range != UINT32_MAX;
    e->radius_max = options->radius_max ? (uint32_t)options->radius_max : INT32_MAX / 4;
    e->hysteresis = options->mode == AOI_RADIUS ? (uint32_t)options->hysteresis : 0;
    e->plain = options->mode == AOI_RADIUS && !e->hysteresis && !e->z_decides && bounds_narrow(e);
    engine_cells_set(&e->cells, (uint32_t)options->cell_size);
    if (!tables_resize(e, options->capacity ? options->capacity : 64)) {
        engine_ops.destroy(&e->base);
        return TERRANE_ERR_MEMORY;
    }
    *out = &e->base;
    return TERRANE_ERR_OK;
}

static void stratum_free(struct engine *e, struct stratum *stratum)
{
    if (e->structure->close) e->structure->close(stratum);
    free(stratum);
}

static void engine_destroy(struct aoi *aoi)
{
    struct engine *e = engine_of(aoi);
    for (uint32_t i = 0; i < e->stratum_count; i++) stratum_free(e, e->strata[i]);
    for (unsigned sides = 0; sides < 4; sides++) {
        free(e->report.lost[sides].handles);
        free(e->report.gained[sides].handles);
    }
    free(e->strata);
    table_close(&e->stratum_of);
    table_close(&e->handles);
    free(e->band.slots);
    free(e->found.handles);
    free(e->motes);
    free(e->ids);
    free(e->slots);
    free(e->next);
    free(e->free);
    free(e->movers);
    free(e);
}

/* ---- layers ---- */

struct stratum *stratum_find(const struct engine *e, uint16_t layer)
{
    uint32_t at = table_get(&e->stratum_of, (uint64_t)layer + 1);
    return at == TABLE_NONE ? NULL : e->strata[at];
}

/* Finds or makes; NULL when memory ran out. */
static struct stratum *stratum_make(struct engine *e, uint16_t layer)
{
    struct stratum *stratum = stratum_find(e, layer);
    if (stratum) return stratum;
    stratum = calloc(1, e->structure->stratum_bytes);
    if (!stratum) return NULL;
    stratum->engine = e;
    stratum->layer = layer;
    if (e->structure->init && !e->structure->init(stratum)) {
        stratum_free(e, stratum);
        return NULL;
    }
    ARRAY_RESERVE(e->strata, e->stratum_room, e->stratum_count + 1);
    table_put(&e->stratum_of, (uint64_t)layer + 1, e->stratum_count);
    e->strata[e->stratum_count++] = stratum;
    return stratum;
}

/* Gives back a layer in which nobody is, but for the ground layer, which is bound to be entered again. */
static void stratum_sweep(struct engine *e, struct stratum *stratum)
{
    if (stratum->population || !stratum->layer) return;
    uint32_t at = table_get(&e->stratum_of, (uint64_t)stratum->layer + 1);
    table_remove(&e->stratum_of, (uint64_t)stratum->layer + 1);
    e->strata[at] = e->strata[--e->stratum_count];
    if (at < e->stratum_count) table_put(&e->stratum_of, (uint64_t)e->strata[at]->layer + 1, at);
    stratum_free(e, stratum);
}

static bool stratum_add(struct engine *e, uint16_t layer, uint32_t handle)
{
    struct stratum *stratum = stratum_make(e, layer);
    if (!stratum) return false;
    if (!e->structure->add(stratum, handle)) {
        stratum_sweep(e, stratum);
        return false;
    }
    stratum->population++;
    return true;
}

static void stratum_remove(struct engine *e, uint32_t handle)
{
    struct stratum *stratum = stratum_find(e, e->motes[handle].layer);
    e->structure->remove(stratum, handle);
    stratum->population--;
    stratum_sweep(e, stratum);
}

/* ---- single operations ---- */

static bool position_inside(const struct engine *e, struct position at)
{
    const struct aoi_options *o = &e->options;
    bool deep = !e->space || o->max_z == INT32_MAX ? at.z >= o->min_z : at.z >= o->min_z && at.z < o->max_z;
    return at.x >= o->min_x && at.x < o->max_x && at.y >= o->min_y && at.y < o->max_y && deep;
}

static enum terrane_error place_check(const struct engine *e, const struct aoi_place *place)
{
    if (!position_inside(e, place->position)) return TERRANE_ERR_POSITION_OUTSIDE;
    bool large = place->radius > e->radius_max || place->extent_x > e->radius_max || place->extent_y > e->radius_max;
    return large ? TERRANE_ERR_RADIUS_TOO_LARGE : TERRANE_ERR_OK;
}

/* The handle that the next to enter gets, which is not taken yet; AOI_HANDLE_NONE when memory ran out. */
static uint32_t handle_next(struct engine *e)
{
    if (e->free_count && !e->base.held) return e->free[e->free_count - 1];
    ARRAY_RESERVE(e->free, e->free_room, (size_t)e->high + 1);
    if (e->high == e->capacity && !tables_resize(e, e->capacity + e->capacity / 4 + 64)) return AOI_HANDLE_NONE;
    return e->high;
}

static void handle_take(struct engine *e, uint32_t handle)
{
    if (handle == e->high) {
        e->high++;
    } else {
        e->free_count--;
    }
}

static enum terrane_error engine_enter(struct aoi *aoi, struct entity_id id, const struct aoi_place *place,
                                       aoi_sink *sink, void *context, uint32_t *handle)
{
    struct engine *e = engine_of(aoi);
    enum terrane_error error = place_check(e, place);
    if (error) return error;
    *handle = aoi_find(aoi, id);
    if (*handle != AOI_HANDLE_NONE) return TERRANE_ERR_ENTITY_EXISTS;
    uint32_t next = handle_next(e);
    if (next == AOI_HANDLE_NONE) return TERRANE_ERR_MEMORY;
    struct mote before = {0}, after = {.at = place->position,
                                       .radius = place->radius,
                                       .extent_x = place->extent_x,
                                       .extent_y = place->extent_y,
                                       .layer = place->layer,
                                       .live = true};
    e->motes[next] = after;
    if (!stratum_add(e, place->layer, next)) {
        e->motes[next].live = false;
        return TERRANE_ERR_MEMORY;
    }
    e->extended |= place->extent_x || place->extent_y;
    handle_take(e, next);
    e->ids[next] = id;
    table_put(&e->handles, id.v, next);
    e->count++;
    sight_add(e, place->radius);
    *handle = next;
    if (sink || e->hysteresis) change_collect(e, next, &before, &after);
    change_tell(e, next, sink, context);
    return TERRANE_ERR_OK;
}

static enum terrane_error engine_leave(struct aoi *aoi, uint32_t handle, aoi_sink *sink, void *context)
{
    struct engine *e = engine_of(aoi);
    if (!engine_live(e, handle)) return TERRANE_ERR_ENTITY_UNKNOWN;
    struct mote before = e->motes[handle], after = {0};
    if (sink || e->hysteresis) change_collect(e, handle, &before, &after);
    stratum_remove(e, handle);
    change_tell(e, handle, sink, context);
    sight_remove(e, before.radius);
    table_remove(&e->handles, e->ids[handle].v);
    e->motes[handle] = after;
    e->ids[handle] = (struct entity_id){0};
    e->free[e->free_count++] = handle;
    e->count--;
    return TERRANE_ERR_OK;
}

static enum terrane_error engine_move(struct aoi *aoi, uint32_t handle, struct position position, aoi_sink *sink,
                                      void *context)
{
    struct engine *e = engine_of(aoi);
    if (!engine_live(e, handle)) return TERRANE_ERR_ENTITY_UNKNOWN;
    if (!position_inside(e, position)) return TERRANE_ERR_POSITION_OUTSIDE;
    struct mote *mote = &e->motes[handle], before = *mote, after = *mote;
    if (!e->structure->move(stratum_find(e, mote->layer), handle, position)) return TERRANE_ERR_MEMORY;
    mote->staged = false;
    mote->at = after.at = position;
    if ((!sink && !e->hysteresis) || views_stay(e, before.at, position)) return TERRANE_ERR_OK;
    change_collect(e, handle, &before, &after);
    change_tell(e, handle, sink, context);
    return TERRANE_ERR_OK;
}

static enum terrane_error engine_set_radius(struct aoi *aoi, uint32_t handle, uint32_t radius, aoi_sink *sink,
                                            void *context)
{
    struct engine *e = engine_of(aoi);
    if (!engine_live(e, handle)) return TERRANE_ERR_ENTITY_UNKNOWN;
    if (radius > e->radius_max) return TERRANE_ERR_RADIUS_TOO_LARGE;
    struct mote before = e->motes[handle], after = before;
    after.radius = radius;
    if (radius == before.radius) return TERRANE_ERR_OK;
    sight_add(e, radius);
    if (e->options.mode == AOI_RADIUS && (sink || e->hysteresis)) change_collect(e, handle, &before, &after);
    if (e->structure->look) e->structure->look(stratum_find(e, before.layer), handle, radius);
    e->motes[handle].radius = radius;
    sight_remove(e, before.radius);
    change_tell(e, handle, sink, context);
    return TERRANE_ERR_OK;
}

static enum terrane_error engine_set_layer(struct aoi *aoi, uint32_t handle, uint16_t layer, aoi_sink *sink,
                                           void *context)
{
    struct engine *e = engine_of(aoi);
    if (!engine_live(e, handle)) return TERRANE_ERR_ENTITY_UNKNOWN;
    struct mote before = e->motes[handle], after = before;
    after.layer = layer;
    if (layer == before.layer) return TERRANE_ERR_OK;
    /* For a moment it is in both layers; the slot is that of the old one until it has left. */
    uint32_t old_slot = e->slots[handle];
    if (!stratum_add(e, layer, handle)) return TERRANE_ERR_MEMORY;
    uint32_t new_slot = e->slots[handle];
    e->slots[handle] = old_slot;
    if (sink || e->hysteresis) change_collect(e, handle, &before, &after);
    stratum_remove(e, handle);
    e->slots[handle] = new_slot;
    e->motes[handle].layer = layer;
    change_tell(e, handle, sink, context);
    return TERRANE_ERR_OK;
}

static bool engine_recall(struct aoi *aoi, uint32_t observer, uint32_t subject)
{
    struct engine *e = engine_of(aoi);
    if (!e->hysteresis || observer == subject || !engine_live(e, observer) || !engine_live(e, subject)) return false;
    const struct mote *a = &e->motes[observer], *b = &e->motes[subject];
    if (!a->radius || a->layer != b->layer) return false;
    if (e->z_decides && gap(a->at.z, b->at.z) > e->options.z_range) return false;
    if (engine_within(e, a->at, b, a->radius) || !engine_within(e, a->at, b, view_limit(e, a->radius))) return false;
    band_add(&e->band, observer, subject);
    return true;
}

/* ---- staged moves ---- */

static enum terrane_error engine_stage(struct aoi *aoi, uint32_t handle, struct position position)
{
    struct engine *e = engine_of(aoi);
    if (!engine_live(e, handle)) return TERRANE_ERR_ENTITY_UNKNOWN;
    if (!position_inside(e, position)) return TERRANE_ERR_POSITION_OUTSIDE;
    if (!e->next && !column_resize(&e->next, e->capacity, sizeof *e->next)) return TERRANE_ERR_MEMORY;
    e->next[handle] = position;
    if (e->motes[handle].staged) return TERRANE_ERR_OK;
    ARRAY_RESERVE(e->movers, e->mover_room, e->mover_count + 1);
    e->movers[e->mover_count++] = handle;
    e->motes[handle].staged = true;
    return TERRANE_ERR_OK;
}

static enum terrane_error engine_stage_many(struct aoi *aoi, const uint32_t *handles, const struct position *positions,
                                            size_t count, size_t *staged)
{
    enum terrane_error error = TERRANE_ERR_OK;
    size_t i = 0;
    while (i < count && !(error = engine_stage(aoi, handles[i], positions[i]))) i++;
    if (staged) *staged = i;
    return error;
}

/* ---- look-ups ---- */

static uint32_t engine_find(const struct aoi *aoi, struct entity_id id)
{
    return id.v ? table_get(&engine_of(aoi)->handles, id.v) : AOI_HANDLE_NONE;
}

static struct entity_id engine_id(const struct aoi *aoi, uint32_t handle)
{
    const struct engine *e = engine_of(aoi);
    return engine_live(e, handle) ? e->ids[handle] : (struct entity_id){0};
}

static bool engine_place_of(const struct aoi *aoi, uint32_t handle, struct aoi_place *out)
{
    const struct engine *e = engine_of(aoi);
    if (!engine_live(e, handle)) return false;
    const struct mote *mote = &e->motes[handle];
    *out = (struct aoi_place){.position = mote->at,
                              .radius = mote->radius,
                              .extent_x = mote->extent_x,
                              .extent_y = mote->extent_y,
                              .layer = mote->layer};
    return true;
}

static bool engine_sees_live(const struct aoi *aoi, uint32_t observer, uint32_t subject)
{
    const struct engine *e = engine_of(aoi);
    bool two = observer != subject && engine_live(e, observer) && engine_live(e, subject);
    return two && engine_sees(e, observer, subject);
}

static size_t engine_count(const struct aoi *aoi)
{
    return engine_of(aoi)->count;
}

static size_t engine_memory_bytes(const struct aoi *aoi)
{
    const struct engine *e = engine_of(aoi);
    size_t row = sizeof *e->motes + sizeof *e->ids + (e->next ? sizeof *e->next : 0);
    size_t bytes = sizeof *e + row * e->capacity + e->free_room * sizeof *e->free + table_memory_bytes(&e->handles) +
                   e->band.size * sizeof *e->band.slots + e->mover_room * sizeof *e->movers +
                   e->found.room * sizeof *e->found.handles + e->stratum_room * sizeof *e->strata +
                   table_memory_bytes(&e->stratum_of);
    for (unsigned sides = 0; sides < 4; sides++) {
        bytes += (e->report.lost[sides].room + e->report.gained[sides].room) * sizeof(uint32_t);
    }
    for (uint32_t i = 0; i < e->stratum_count; i++) {
        bytes += e->structure->stratum_bytes + (e->structure->bytes ? e->structure->bytes(e->strata[i]) : 0);
    }
    return bytes;
}

const struct aoi_ops engine_ops = {
    .destroy = engine_destroy,
    .enter = engine_enter,
    .leave = engine_leave,
    .move = engine_move,
    .set_radius = engine_set_radius,
    .set_layer = engine_set_layer,
    .recall = engine_recall,
    .stage = engine_stage,
    .stage_many = engine_stage_many,
    .tick = engine_tick,
    .find = engine_find,
    .id = engine_id,
    .place_of = engine_place_of,
    .sees = engine_sees_live,
    .count = engine_count,
    .memory_bytes = engine_memory_bytes,
    .query_circle = engine_query_circle,
    .query_rectangle = engine_query_rectangle,
    .query_sphere = engine_query_sphere,
    .query_block = engine_query_block,
    .view = engine_view,
    .fanout = engine_fanout,
};
