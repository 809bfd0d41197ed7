/* What every index has in common with the others, and how aoi.c finds its way to it. Shared by the indexes and by
 * nobody else.
 *
 * An index's own struct begins with a struct aoi. aoi.c has checked the options before `create`, and calls through
 * `ops`, which are those of the index (`inner`), or, unless the options say `direct`, those of retell.c around them. */
#ifndef TERRANE_AOI_INDEX_H
#define TERRANE_AOI_INDEX_H

#include "aoi/aoi.h"

struct aoi_ops {
    void (*destroy)(struct aoi *aoi);
    enum terrane_error (*enter)(struct aoi *aoi, struct entity_id id, const struct aoi_place *place, aoi_sink *sink,
                                void *context, uint32_t *handle);
    enum terrane_error (*leave)(struct aoi *aoi, uint32_t handle, aoi_sink *sink, void *context);
    enum terrane_error (*move)(struct aoi *aoi, uint32_t handle, struct position position, aoi_sink *sink,
                               void *context);
    enum terrane_error (*set_radius)(struct aoi *aoi, uint32_t handle, uint32_t radius, aoi_sink *sink, void *context);
    enum terrane_error (*set_layer)(struct aoi *aoi, uint32_t handle, uint16_t layer, aoi_sink *sink, void *context);
    bool (*recall)(struct aoi *aoi, uint32_t observer, uint32_t subject);
    enum terrane_error (*stage)(struct aoi *aoi, uint32_t handle, struct position position);
    enum terrane_error (*stage_many)(struct aoi *aoi, const uint32_t *handles, const struct position *positions,
                                     size_t count, size_t *staged);
    void (*tick)(struct aoi *aoi, aoi_sink *sink, void *context);
    uint32_t (*find)(const struct aoi *aoi, struct entity_id id);
    struct entity_id (*id)(const struct aoi *aoi, uint32_t handle);
    bool (*place_of)(const struct aoi *aoi, uint32_t handle, struct aoi_place *out);
    bool (*sees)(const struct aoi *aoi, uint32_t observer, uint32_t subject);
    size_t (*count)(const struct aoi *aoi);
    size_t (*memory_bytes)(const struct aoi *aoi);
    size_t (*query_circle)(struct aoi *aoi, struct position centre, uint32_t radius, int32_t layer, uint32_t *out,
                           size_t room);
    size_t (*query_rectangle)(struct aoi *aoi, int32_t min_x, int32_t min_y, int32_t max_x, int32_t max_y,
                              int32_t layer, uint32_t *out, size_t room);
    size_t (*query_sphere)(struct aoi *aoi, struct position centre, uint32_t radius, int32_t layer, uint32_t *out,
                           size_t room);
    size_t (*query_block)(struct aoi *aoi, struct position centre, int32_t layer, uint32_t *out, size_t room);
    size_t (*view)(struct aoi *aoi, uint32_t observer, uint32_t *out, size_t room);
    size_t (*fanout)(struct aoi *aoi, const struct aoi_place *place);
};

struct structure; /* engine.h */

struct aoi_index {
    struct aoi_index_info info;
    /* *out's struct aoi is all zero, for aoi.c to fill in. Errors: MEMORY. */
    enum terrane_error (*create)(const struct aoi_index *index, const struct aoi_options *options, struct aoi **out);
    const struct aoi_ops *ops;
    const struct structure *structure; /* where create is engine_create */
};

struct retelling; /* retell.c */

struct aoi {
    const struct aoi_ops *ops;
    const struct aoi_index *index;
    struct retelling *retelling; /* NULL: direct */
    bool held;                   /* handles that are given back must not be given out yet */
};

/* ---- retell.c ---- */

/* Puts the telling between the index and its callers; false when memory ran out. */
bool retell_open(struct aoi *aoi);
void retell_close(struct aoi *aoi);

/* ---- the indexes ---- */

extern const struct aoi_index index_brute, index_bvh, index_crosslist, index_grid, index_grid3d, index_grid_levels,
    index_hybrid, index_octree, index_quadtree, index_rtree, index_tower;

/* Whether dx^2 + dy^2 + dz^2 <= r^2, for gaps and radii below 2^32, without overflow. */
static inline bool within_sphere(uint64_t dx, uint64_t dy, uint64_t dz, uint64_t r)
{
    if (dx > r || dy > r || dz > r) return false;
    uint64_t rest = r * r, dx2 = dx * dx, dy2 = dy * dy;
    rest -= dx2;
    return dy2 <= rest && dz * dz <= rest - dy2;
}

/* |a - b| of any two 32-bit coordinates. */
static inline uint64_t gap(int32_t a, int32_t b)
{
    int64_t d = (int64_t)a - b;
    return (uint64_t)(d < 0 ? -d : d);
}

#endif
