/* The one interface: options and the list of indexes; all else goes on to the index. */
#include "aoi/aoi.h"
#include "aoi/index.h"

#include <string.h>

#define CAPACITY_MAX (1u << 30)

static const struct aoi_index *const indexes[] = {&index_brute,    &index_bvh,         &index_crosslist, &index_grid,
                                                  &index_grid3d,   &index_grid_levels, &index_hybrid,    &index_octree,
                                                  &index_quadtree, &index_rtree,       &index_tower};
#define INDEX_COUNT (sizeof indexes / sizeof *indexes)

const struct aoi_index_info *aoi_index_list(size_t at)
{
    return at < INDEX_COUNT ? &indexes[at]->info : NULL;
}

static const struct aoi_index *index_find(const char *name)
{
    if (!name) name = "grid";
    for (size_t i = 0; i < INDEX_COUNT; i++) {
        if (!strcmp(indexes[i]->info.name, name)) return indexes[i];
    }
    return NULL;
}

const struct aoi_index_info *aoi_index_find(const char *name)
{
    const struct aoi_index *index = index_find(name);
    return index ? &index->info : NULL;
}

const char *aoi_options_fault(const struct aoi_options *o)
{
    const struct aoi_index *index = index_find(o->index);
    if (!index) return "no index is called so; aoi_index_list has the names";
    unsigned can = index->info.abilities;
    if (o->mode != AOI_BLOCK && o->mode != AOI_RADIUS) return "mode is neither AOI_BLOCK nor AOI_RADIUS";
    if (o->dimensions != 0 && o->dimensions != 2 && o->dimensions != 3) return "dimensions is none of 0, 2 and 3";
    if (o->mode == AOI_BLOCK && !(can & AOI_CAN_BLOCK)) return "the index does not know AOI_BLOCK";
    if (o->mode == AOI_RADIUS && !(can & AOI_CAN_RADIUS)) return "the index does not know AOI_RADIUS";
    if (o->dimensions == 3 && !(can & AOI_CAN_SPACE)) return "the index is one of the plane, not of space";
    if (o->dimensions != 3 && !(can & AOI_CAN_PLANE)) return "the index is one of space, not of the plane";
    if (o->cell_size <= 0) return "cell_size is not above 0";
    if (o->max_x <= o->min_x || o->max_y <= o->min_y) return "max is not above min";
    bool bounded = o->min_z || o->max_z;
    if (bounded && o->dimensions != 3) return "min_z and max_z are for dimensions = 3 only";
    if (bounded && o->max_z <= o->min_z) return "max_z is not above min_z";
    if (o->radius_max < 0) return "radius_max is below 0";
    if (o->hysteresis < 0) return "hysteresis is below 0";
    return o->capacity > CAPACITY_MAX ? "capacity is above 2^30" : NULL;
}

enum terrane_error aoi_create(const struct aoi_options *options, struct aoi **out)
{
    *out = NULL;
    if (aoi_options_fault(options)) return TERRANE_ERR_CONFIG;
    const struct aoi_index *index = index_find(options->index);
    struct aoi *aoi = NULL;
    enum terrane_error error = index->create(index, options, &aoi);
    if (error) return error;
    aoi->index = index;
    aoi->ops = index->ops;
    if (!options->direct && !retell_open(aoi)) {
        aoi_destroy(aoi);
        return TERRANE_ERR_MEMORY;
    }
    *out = aoi;
    return TERRANE_ERR_OK;
}

void aoi_destroy(struct aoi *aoi)
{
    if (!aoi) return;
    retell_close(aoi);
    aoi->index->ops->destroy(aoi);
}

enum terrane_error aoi_enter(struct aoi *aoi, struct entity_id id, const struct aoi_place *place, aoi_sink *sink,
                             void *context, uint32_t *handle)
{
    *handle = AOI_HANDLE_NONE;
    if (!id.v) return TERRANE_ERR_ENTITY_NONE;
    bool extended = place->extent_x || place->extent_y;
    if (extended && !(aoi->index->info.abilities & AOI_CAN_EXTENT)) return TERRANE_ERR_UNSUPPORTED;
    return aoi->ops->enter(aoi, id, place, sink, context, handle);
}

enum terrane_error aoi_leave(struct aoi *aoi, uint32_t handle, aoi_sink *sink, void *context)
{
    return aoi->ops->leave(aoi, handle, sink, context);
}

enum terrane_error aoi_move(struct aoi *aoi, uint32_t handle, struct position position, aoi_sink *sink, void *context)
{
    return aoi->ops->move(aoi, handle, position, sink, context);
}

enum terrane_error aoi_set_radius(struct aoi *aoi, uint32_t handle, uint32_t radius, aoi_sink *sink, void *context)
{
    return aoi->ops->set_radius(aoi, handle, radius, sink, context);
}

enum terrane_error aoi_set_layer(struct aoi *aoi, uint32_t handle, uint16_t layer, aoi_sink *sink, void *context)
{
    return aoi->ops->set_layer(aoi, handle, layer, sink, context);
}

bool aoi_recall(struct aoi *aoi, uint32_t observer, uint32_t subject)
{
    return aoi->ops->recall(aoi, observer, subject);
}

enum terrane_error aoi_stage(struct aoi *aoi, uint32_t handle, struct position position)
{
    return aoi->ops->stage(aoi, handle, position);
}

enum terrane_error aoi_stage_many(struct aoi *aoi, const uint32_t *handles, const struct position *positions,
                                  size_t count, size_t *staged)
{
    return aoi->ops->stage_many(aoi, handles, positions, count, staged);
}

void aoi_tick(struct aoi *aoi, aoi_sink *sink, void *context)
{
    aoi->ops->tick(aoi, sink, context);
}

uint32_t aoi_find(const struct aoi *aoi, struct entity_id id)
{
    return aoi->ops->find(aoi, id);
}

struct entity_id aoi_id(const struct aoi *aoi, uint32_t handle)
{
    return aoi->ops->id(aoi, handle);
}

bool aoi_place_of(const struct aoi *aoi, uint32_t handle, struct aoi_place *out)
{
    return aoi->ops->place_of(aoi, handle, out);
}

bool aoi_sees(const struct aoi *aoi, uint32_t observer, uint32_t subject)
{
    return aoi->ops->sees(aoi, observer, subject);
}

size_t aoi_count(const struct aoi *aoi)
{
    return aoi->ops->count(aoi);
}

size_t aoi_memory_bytes(const struct aoi *aoi)
{
    return aoi->ops->memory_bytes(aoi);
}

size_t aoi_query_circle(struct aoi *aoi, struct position centre, uint32_t radius, int32_t layer, uint32_t *out,
                        size_t room)
{
    return aoi->ops->query_circle(aoi, centre, radius, layer, out, room);
}

size_t aoi_query_rectangle(struct aoi *aoi, int32_t min_x, int32_t min_y, int32_t max_x, int32_t max_y, int32_t layer,
                           uint32_t *out, size_t room)
{
    return aoi->ops->query_rectangle(aoi, min_x, min_y, max_x, max_y, layer, out, room);
}

size_t aoi_query_sphere(struct aoi *aoi, struct position centre, uint32_t radius, int32_t layer, uint32_t *out,
                        size_t room)
{
    return aoi->ops->query_sphere(aoi, centre, radius, layer, out, room);
}

size_t aoi_query_block(struct aoi *aoi, struct position centre, int32_t layer, uint32_t *out, size_t room)
{
    return aoi->ops->query_block(aoi, centre, layer, out, room);
}

size_t aoi_view(struct aoi *aoi, uint32_t observer, uint32_t *out, size_t room)
{
    return aoi->ops->view(aoi, observer, out, room);
}

size_t aoi_fanout(struct aoi *aoi, const struct aoi_place *place)
{
    return aoi->ops->fanout(aoi, place);
}
