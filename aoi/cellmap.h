/* Cells in a hash by their numbers, each with the handles in it; for the indexes that are grids without being `grid`.
 *
 * Empty cells cost nothing: a cell is made by the first to come and given back by the last to go, with its array, so
 * that a world in motion allocates only while it spreads. The caller owns the map (zero-initialised is empty) and knows
 * in which cell a handle is; where in the cell, the map knows. */
#ifndef TERRANE_AOI_CELLMAP_H
#define TERRANE_AOI_CELLMAP_H

#include "aoi/engine.h"

struct cell_name {
    uint32_t x, y, z; /* z is 0 on the plane */
};

struct bucket {
    struct cell_name name;
    uint32_t count, room;
    uint32_t *handles;
};

struct cellmap {
    struct bucket *buckets;
    uint32_t high, room; /* buckets ever used; those without members are free */
    uint32_t *free;      /* free buckets */
    uint32_t free_count;
    uint32_t *slots;     /* bucket + 1; 0: empty */
    uint32_t size, used; /* of slots: size is a power of two */
    uint32_t *where;     /* by handle: index in its bucket */
    uint32_t where_room;
};

void cellmap_close(struct cellmap *map);
/* NULL: nobody is in that cell. */
struct bucket *cellmap_find(const struct cellmap *map, struct cell_name name);
/* False when memory ran out. */
bool cellmap_add(struct cellmap *map, struct cell_name name, uint32_t handle);
void cellmap_remove(struct cellmap *map, struct cell_name name, uint32_t handle);
/* From one cell to another; false when memory ran out: nothing has changed. */
bool cellmap_move(struct cellmap *map, struct cell_name from, struct cell_name to, uint32_t handle);
static inline bool cell_names_equal(struct cell_name a, struct cell_name b)
{
    return a.x == b.x && a.y == b.y && a.z == b.z;
}
size_t cellmap_bytes(const struct cellmap *map);

/* Cells from first to last, inclusive. */
struct cell_range {
    struct cell_name first, last;
};
/* How many cells the range has, saturated at UINT32_MAX. */
uint32_t range_cells(const struct cell_range *range);
static inline bool range_holds(const struct cell_range *range, struct cell_name name)
{
    return name.x >= range->first.x && name.x <= range->last.x && name.y >= range->first.y && name.y <= range->last.y &&
           name.z >= range->first.z && name.z <= range->last.z;
}

/* Goes over the cells of a range that have members: through the range or through all buckets, whichever is shorter. */
struct cell_walk {
    const struct cellmap *map;
    struct cell_range range;
    struct cell_name at;
    uint32_t next; /* bucket, if `listed` */
    bool listed, done;
};
void cell_walk_start(struct cell_walk *walk, const struct cellmap *map, const struct cell_range *range);
struct bucket *cell_walk_next(struct cell_walk *walk); /* NULL at the end */

#endif
