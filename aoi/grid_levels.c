/* Grids of several resolutions over one another: near, mid and far, each four times as coarse as the one below.
 *
 * Everybody is in a cell of each. A look at a wide area takes the coarse cells that lie wholly within it as they stand,
 * and only along its rim goes down to finer ones; a coarse cell without members ends the descent. Whoever observes is
 * also noted in a cell as large as his view or larger, so that those who see a place are in nine cells of each level in
 * use: one who sees across the map does not widen the look of everybody else.
 *
 * When it wins: radii differ widely (scouts, towers, cameras beside walkers), and queries of many cells: a circle of
 * r cells costs 2 r looks along its rim instead of r^2. Also where most of the world is empty.
 * When it loses: with one radius of about a cell it does three times the work of `grid` at each border, keeps three
 * times the lists, and finds the same nine cells.
 * Source: the hierarchical spatial hash of Mirtich, "Efficient Algorithms for Two-Phase Collision Detection" (1997),
 * and Eitz and Lixu, "Hierarchical Spatial Hashing for Real-time Collision Detection" (2007): objects by size there,
 * views by size here; whole cells as in a quadtree of fixed depth. */
#include "aoi/cellmap.h"
#include "common/check.h"

#define LEVELS     3  /* near, mid, far */
#define LEVEL_BITS 2u /* a cell is so many times twice as wide as one of the level below */
#define SIGHTS     16 /* levels of observers; the last has four cells by four at most, and any view fits in those */

struct grid_levels {
    struct stratum base;
    struct cellmap all[LEVELS];
    struct cellmap observers; /* z is the level */
    uint32_t observing[SIGHTS];
};

static struct grid_levels *levels_of(const struct stratum *stratum)
{
    return (struct grid_levels *)stratum;
}

static struct cell_name name_at(const struct engine *e, struct position at, uint32_t level)
{
    return (struct cell_name){cell_at(&e->cells, at.x) >> LEVEL_BITS * level,
                              cell_at(&e->cells, at.y) >> LEVEL_BITS * level, 0};
}

/* ---- observers ---- */

/* The level whose cells are as wide as the view, if there is one; none at all where views go by cells, or for one who
 * sees nothing. */
static bool sight_level(const struct engine *e, uint32_t radius, uint32_t *level)
{
    uint64_t limit = view_limit(e, radius);
    for (*level = 0; *level + 1 < SIGHTS && (uint64_t)e->cells.size << LEVEL_BITS * *level < limit;) ++*level;
    return limit && e->options.mode == AOI_RADIUS;
}

static struct cell_name sight_name(const struct engine *e, struct position at, uint32_t level)
{
    struct cell_name name = name_at(e, at, level);
    name.z = level;
    return name;
}

static bool observer_add(struct grid_levels *g, uint32_t handle, struct position at, uint32_t radius)
{
    const struct engine *e = g->base.engine;
    uint32_t level;
    if (!sight_level(e, radius, &level)) return true;
    if (!cellmap_add(&g->observers, sight_name(e, at, level), handle)) return false;
    g->observing[level]++;
    return true;
}

static void observer_remove(struct grid_levels *g, uint32_t handle, struct position at, uint32_t radius)
{
    const struct engine *e = g->base.engine;
    uint32_t level;
    if (!sight_level(e, radius, &level)) return;
    cellmap_remove(&g->observers, sight_name(e, at, level), handle);
    g->observing[level]--;
}

/* ---- everybody ---- */

static void levels_close(struct stratum *stratum)
{
    struct grid_levels *g = levels_of(stratum);
    for (unsigned level = 0; level < LEVELS; level++) cellmap_close(&g->all[level]);
    cellmap_close(&g->observers);
}

static bool levels_add(struct stratum *stratum, uint32_t handle)
{
    struct grid_levels *g = levels_of(stratum);
    const struct engine *e = stratum->engine;
    const struct mote *mote = &e->motes[handle];
    unsigned level = 0;
    while (level < LEVELS && cellmap_add(&g->all[level], name_at(e, mote->at, level), handle)) level++;
    if (level == LEVELS && observer_add(g, handle, mote->at, mote->radius)) return true;
    while (level-- > 0) cellmap_remove(&g->all[level], name_at(e, mote->at, level), handle);
    return false;
}

static void levels_remove(struct stratum *stratum, uint32_t handle)
{
    struct grid_levels *g = levels_of(stratum);
    const struct engine *e = stratum->engine;
    const struct mote *mote = &e->motes[handle];
    for (unsigned level = 0; level < LEVELS; level++) {
        cellmap_remove(&g->all[level], name_at(e, mote->at, level), handle);
    }
    observer_remove(g, handle, mote->at, mote->radius);
}

/* Within a near cell one is also within the cells above it, and within a view's, which are no smaller. */
static bool levels_move(struct stratum *stratum, uint32_t handle, struct position to)
{
    struct grid_levels *g = levels_of(stratum);
    const struct engine *e = stratum->engine;
    const struct mote *mote = &e->motes[handle];
    struct cell_name from = name_at(e, mote->at, 0);
    if (cell_names_equal(from, name_at(e, to, 0))) return true;
    if (!cellmap_move(&g->all[0], from, name_at(e, to, 0), handle)) return false;
    for (unsigned level = 1; level < LEVELS; level++) { /* half a move can't be undone */
        CHECK(cellmap_move(&g->all[level], name_at(e, mote->at, level), name_at(e, to, level), handle));
    }
    uint32_t sight;
    if (sight_level(e, mote->radius, &sight)) {
        CHECK(cellmap_move(&g->observers, sight_name(e, mote->at, sight), sight_name(e, to, sight), handle));
    }
    return true;
}

static void levels_look(struct stratum *stratum, uint32_t handle, uint32_t radius)
{
    struct grid_levels *g = levels_of(stratum);
    const struct mote *mote = &stratum->engine->motes[handle];
    observer_remove(g, handle, mote->at, mote->radius);
    CHECK(observer_add(g, handle, mote->at, radius)); /* the change has been judged */
}

/* ---- looks ---- */

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The cells of the level below that lie in this cell and in the range of near cells. */
static struct cell_range children_of(struct cell_name name, unsigned level, const struct cell_range *near)
{
    unsigned shift = LEVEL_BITS * (level - 1);
    uint32_t x = name.x << LEVEL_BITS, y = name.y << LEVEL_BITS, more = (1u << LEVEL_BITS) - 1;
    return (struct cell_range){
        .first = {larger(x, near->first.x >> shift), larger(y, near->first.y >> shift), 0},
        .last = {smaller(x + more, near->last.x >> shift), smaller(y + more, near->last.y >> shift), 0}};
}

/* Whether all near cells of this cell are in the range. */
static bool range_covers(const struct cell_range *near, struct cell_name name, unsigned level)
{
    unsigned shift = LEVEL_BITS * level;
    uint64_t x = (uint64_t)name.x << shift, y = (uint64_t)name.y << shift, more = (1u << shift) - 1;
    return x >= near->first.x && x + more <= near->last.x && y >= near->first.y && y + more <= near->last.y;
}

/* Adds all in these cells of one level that are in the range of near cells. */
static void cells_find(const struct grid_levels *g, unsigned level, const struct cell_range *cells,
                       const struct cell_range *near, struct found *found)
{
    struct cell_walk walk;
    cell_walk_start(&walk, &g->all[level], cells);
    for (const struct bucket *bucket; (bucket = cell_walk_next(&walk));) {
        if (level == 0 || range_covers(near, bucket->name, level)) {
            found_add_many(found, bucket->handles, bucket->count);
        } else {
            struct cell_range children = children_of(bucket->name, level, near);
            cells_find(g, level - 1, &children, near, found);
        }
    }
}

/* Adds all in the near cells that the volume touches; those cells. A few are looked at as they are. */
static struct cell_range area_find(const struct grid_levels *g, const struct volume *volume, struct found *found)
{
    const struct engine *e = g->base.engine;
    struct cell_range near = {name_at(e, volume->min, 0), name_at(e, volume->max, 0)};
    unsigned level = LEVELS - 1;
    while (level > 0 && (near.last.x - near.first.x) >> LEVEL_BITS * level < 2) level--;
    struct cell_range cells = {name_at(e, volume->min, level), name_at(e, volume->max, level)};
    cells_find(g, level, &cells, &near, found);
    return near;
}

static void levels_find(struct stratum *stratum, const struct volume *volume, struct found *found)
{
    area_find(levels_of(stratum), volume, found);
}

/* The cells in which those of a level are who may see a place in `name`. */
static struct cell_range around(struct cell_name name)
{
    if (name.z + 1 == SIGHTS) return (struct cell_range){{0, 0, name.z}, {UINT32_MAX, UINT32_MAX, name.z}};
    return (struct cell_range){.first = {name.x ? name.x - 1 : 0, name.y ? name.y - 1 : 0, name.z},
                               .last = {name.x + (name.x < UINT32_MAX), name.y + (name.y < UINT32_MAX), name.z}};
}

static void levels_near(struct stratum *stratum, const struct mote *mote, struct found *found)
{
    struct grid_levels *g = levels_of(stratum);
    const struct engine *e = stratum->engine;
    struct volume view = volume_view(e, mote);
    struct cell_range seen = area_find(g, &view, found);
    for (uint32_t level = 0; level < SIGHTS; level++) {
        if (!g->observing[level]) continue;
        struct cell_range range = around(sight_name(e, mote->at, level));
        struct cell_walk walk;
        cell_walk_start(&walk, &g->observers, &range);
        for (const struct bucket *bucket; (bucket = cell_walk_next(&walk));) {
            for (uint32_t i = 0; i < bucket->count; i++) {
                struct cell_name name = name_at(e, e->motes[bucket->handles[i]].at, 0);
                if (!range_holds(&seen, name)) found_add(found, bucket->handles[i]);
            }
        }
    }
}

static size_t levels_bytes(const struct stratum *stratum)
{
    const struct grid_levels *g = levels_of(stratum);
    size_t bytes = cellmap_bytes(&g->observers);
    for (unsigned level = 0; level < LEVELS; level++) bytes += cellmap_bytes(&g->all[level]);
    return bytes;
}

static const struct structure levels = {
    .stratum_bytes = sizeof(struct grid_levels),
    .close = levels_close,
    .add = levels_add,
    .remove = levels_remove,
    .move = levels_move,
    .look = levels_look,
    .find = levels_find,
    .near = levels_near,
    .bytes = levels_bytes,
};

const struct aoi_index index_grid_levels = {
    .info = {.name = "grid_levels",
             .about = "grids near, mid and far: for radii that differ widely, and looks over many cells",
             .abilities = AOI_CAN_BLOCK | AOI_CAN_RADIUS | AOI_CAN_PLANE},
    .create = engine_create,
    .ops = &engine_ops,
    .structure = &levels,
};
