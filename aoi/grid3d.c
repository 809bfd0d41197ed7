/* A grid of space: cubes in a hash, a look goes through the 27 around.
 *
 * When it wins: flyers, divers, storeys; all that is spread over heights about as widely as over the plane. An update
 * is a hash look-up or two whatever the world's height, and no tree has to be kept in shape.
 * When it loses: against `octree` and `bvh` where most stand in one spot and radii are far smaller than the cubes or
 * far larger than them; against `grid` with a z_range where the world is a few storeys high, because 27 look-ups are
 * three times nine. A view of many cubes (radius of several cells) goes up with its third power. Source: the uniform
 * grid as in Teschner et al., "Optimized Spatial Hashing for Collision Detection of Deformable Objects" (VMV 2003),
 * with exact cell names instead of colliding ones. */
#include "aoi/cellmap.h"

struct grid3d {
    struct stratum base;
    struct cellmap map;
};

static struct cell_name name_of(const struct engine *e, struct position at)
{
    return (struct cell_name){cell_at(&e->cells, at.x), cell_at(&e->cells, at.y), cell_at(&e->cells, at.z)};
}

static void grid3d_close(struct stratum *stratum)
{
    cellmap_close(&((struct grid3d *)stratum)->map);
}

static bool grid3d_add(struct stratum *stratum, uint32_t handle)
{
    const struct engine *e = stratum->engine;
    return cellmap_add(&((struct grid3d *)stratum)->map, name_of(e, e->motes[handle].at), handle);
}

static void grid3d_remove(struct stratum *stratum, uint32_t handle)
{
    const struct engine *e = stratum->engine;
    cellmap_remove(&((struct grid3d *)stratum)->map, name_of(e, e->motes[handle].at), handle);
}

static bool grid3d_move(struct stratum *stratum, uint32_t handle, struct position to)
{
    const struct engine *e = stratum->engine;
    struct cellmap *map = &((struct grid3d *)stratum)->map;
    return cellmap_move(map, name_of(e, e->motes[handle].at), name_of(e, to), handle);
}

static void grid3d_find(struct stratum *stratum, const struct volume *volume, struct found *found)
{
    const struct engine *e = stratum->engine;
    struct cell_range range = {name_of(e, volume->min), name_of(e, volume->max)};
    struct cell_walk walk;
    cell_walk_start(&walk, &((struct grid3d *)stratum)->map, &range);
    for (const struct bucket *bucket; (bucket = cell_walk_next(&walk));) {
        found_add_many(found, bucket->handles, bucket->count);
    }
}

static size_t grid3d_bytes(const struct stratum *stratum)
{
    return cellmap_bytes(&((const struct grid3d *)stratum)->map);
}

static const struct structure grid3d = {
    .stratum_bytes = sizeof(struct grid3d),
    .close = grid3d_close,
    .add = grid3d_add,
    .remove = grid3d_remove,
    .move = grid3d_move,
    .find = grid3d_find,
    .bytes = grid3d_bytes,
};

const struct aoi_index index_grid3d = {
    .info = {.name = "grid3d",
             .about = "cubes in a hash, 27 around: for all that flies or dives, spread over space",
             .abilities = AOI_CAN_BLOCK | AOI_CAN_RADIUS | AOI_CAN_SPACE},
    .create = engine_create,
    .ops = &engine_ops,
    .structure = &grid3d,
};
