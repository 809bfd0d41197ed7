/* Towers: each tower knows who stands in its square (markers) and whose view reaches into it (watchers).
 *
 * A view touches at most four towers, because whoever sees farther than half a tower's side watches from larger towers,
 * twice as large a level. Who sees a place is then one list a level in use; no largest radius of the world is asked
 * for, so one who sees far weighs on nobody but himself.
 *
 * When it wins: "who is to be told of this?" is asked far more often than anybody crosses a tower's border (events,
 * chat, effects), or few watch while many are watched: an entity that sees nothing is in no list of watchers. Radii may
 * differ widely.
 * When it loses: an update over a border is dearest of all grids, since it goes into and out of up to four lists
 * besides its own. Memory is up to four entries and their places more a watcher. And a square twice as large holds four
 * times as many as are seen: `grid` measures half as many.
 * Source: the towers of pomelo-aoi and of go-aoi. Theirs are of one size, and a view takes the towers whole or as many
 * as it touches; here it is exact, and the levels keep it at four. */
#include "aoi/cellmap.h"
#include "common/check.h"

#define LEVELS 32

struct tower {
    struct stratum base;
    struct cells cells;      /* towers of level 0; those of level n are 2^n times as large */
    struct cellmap markers;  /* by tower of level 0 */
    struct cellmap watchers; /* by tower, z is the level; members are watcher numbers */
    uint32_t watching[LEVELS];
};

/* The towers that a view touches: two at most in a row and in a column. */
struct reach {
    struct cell_range range;
    bool empty;
};

static struct tower *tower_of(const struct stratum *stratum)
{
    return (struct tower *)stratum;
}

static struct cell_name name_at(const struct tower *t, int32_t x, int32_t y, uint32_t level)
{
    return (struct cell_name){cell_at(&t->cells, x) >> level, cell_at(&t->cells, y) >> level, level};
}

/* A watcher is in up to four lists; towers next to each other differ in the parity of their numbers. */
static uint32_t watcher_number(uint32_t handle, struct cell_name name)
{
    return handle << 2 | (name.y & 1) << 1 | (name.x & 1);
}

static struct reach reach_of(const struct tower *t, struct position at, uint32_t radius)
{
    const struct engine *e = t->base.engine;
    uint64_t limit = view_limit(e, radius);
    if (!limit || e->options.mode == AOI_BLOCK) return (struct reach){.empty = true};
    uint32_t level = 0;
    while ((uint64_t)t->cells.size << level < 2 * limit) level++;
    struct volume volume = volume_around(e, at, limit, limit, limit);
    return (struct reach){
        .range = {name_at(t, volume.min.x, volume.min.y, level), name_at(t, volume.max.x, volume.max.y, level)}};
}

static bool reach_holds(const struct reach *reach, struct cell_name name)
{
    return !reach->empty && range_holds(&reach->range, name);
}

/* Enters or leaves the towers of one reach that are not in the other. */
static void reach_change(struct tower *t, uint32_t handle, const struct reach *in, const struct reach *not_in,
                         bool enter)
{
    if (in->empty) return;
    const struct cell_range *r = &in->range;
    for (uint32_t y = r->first.y; y <= r->last.y; y++) {
        for (uint32_t x = r->first.x; x <= r->last.x; x++) {
            struct cell_name name = {x, y, r->first.z};
            if (reach_holds(not_in, name)) continue;
            uint32_t number = watcher_number(handle, name);
            if (enter) {
                CHECK(cellmap_add(&t->watchers, name, number)); /* the markers have changed already */
            } else {
                cellmap_remove(&t->watchers, name, number);
            }
        }
    }
}

static void watch_change(struct tower *t, uint32_t handle, const struct reach *before, const struct reach *after)
{
    if (!before->empty) t->watching[before->range.first.z]--;
    if (!after->empty) t->watching[after->range.first.z]++;
    reach_change(t, handle, before, after, false);
    reach_change(t, handle, after, before, true);
}

/* A view of blocks is three cells wide, one of a circle twice the usual radius, which is a cell's size. */
static bool tower_init(struct stratum *stratum)
{
    const struct engine *e = stratum->engine;
    uint64_t cell = (uint64_t)e->options.cell_size;
    uint64_t side = e->options.mode == AOI_BLOCK ? 4 * cell : 2 * (cell + e->hysteresis);
    engine_cells_set(&tower_of(stratum)->cells, side < 1u << 31 ? (uint32_t)side : 1u << 31);
    return true;
}

static void tower_close(struct stratum *stratum)
{
    cellmap_close(&tower_of(stratum)->markers);
    cellmap_close(&tower_of(stratum)->watchers);
}

static bool tower_add(struct stratum *stratum, uint32_t handle)
{
    struct tower *t = tower_of(stratum);
    const struct mote *mote = &stratum->engine->motes[handle];
    if (!cellmap_add(&t->markers, name_at(t, mote->at.x, mote->at.y, 0), handle)) return false;
    struct reach before = {.empty = true}, after = reach_of(t, mote->at, mote->radius);
    watch_change(t, handle, &before, &after);
    return true;
}

static void tower_remove(struct stratum *stratum, uint32_t handle)
{
    struct tower *t = tower_of(stratum);
    const struct mote *mote = &stratum->engine->motes[handle];
    cellmap_remove(&t->markers, name_at(t, mote->at.x, mote->at.y, 0), handle);
    struct reach before = reach_of(t, mote->at, mote->radius), after = {.empty = true};
    watch_change(t, handle, &before, &after);
}

static bool tower_move(struct stratum *stratum, uint32_t handle, struct position to)
{
    struct tower *t = tower_of(stratum);
    const struct mote *mote = &stratum->engine->motes[handle];
    struct cell_name from = name_at(t, mote->at.x, mote->at.y, 0);
    if (!cellmap_move(&t->markers, from, name_at(t, to.x, to.y, 0), handle)) return false;
    struct reach before = reach_of(t, mote->at, mote->radius), after = reach_of(t, to, mote->radius);
    bool same = before.empty || (cell_names_equal(before.range.first, after.range.first) &&
                                 cell_names_equal(before.range.last, after.range.last));
    if (!same) watch_change(t, handle, &before, &after);
    return true;
}

static void tower_look(struct stratum *stratum, uint32_t handle, uint32_t radius)
{
    struct tower *t = tower_of(stratum);
    const struct mote *mote = &stratum->engine->motes[handle];
    struct reach before = reach_of(t, mote->at, mote->radius), after = reach_of(t, mote->at, radius);
    watch_change(t, handle, &before, &after);
}

/* Adds the markers of all towers that the volume touches; those towers. */
static struct cell_range markers_find(struct tower *t, const struct volume *volume, struct found *found)
{
    struct cell_range range = {name_at(t, volume->min.x, volume->min.y, 0),
                               name_at(t, volume->max.x, volume->max.y, 0)};
    struct cell_walk walk;
    cell_walk_start(&walk, &t->markers, &range);
    for (const struct bucket *bucket; (bucket = cell_walk_next(&walk));) {
        found_add_many(found, bucket->handles, bucket->count);
    }
    return range;
}

static void tower_find(struct stratum *stratum, const struct volume *volume, struct found *found)
{
    markers_find(tower_of(stratum), volume, found);
}

static void tower_near(struct stratum *stratum, const struct mote *mote, struct found *found)
{
    struct tower *t = tower_of(stratum);
    const struct engine *e = stratum->engine;
    struct volume view = volume_view(e, mote);
    struct cell_range seen = markers_find(t, &view, found);
    for (uint32_t level = 0; level < LEVELS && e->options.mode == AOI_RADIUS; level++) {
        if (!t->watching[level]) continue;
        const struct bucket *bucket = cellmap_find(&t->watchers, name_at(t, mote->at.x, mote->at.y, level));
        for (uint32_t i = 0; bucket && i < bucket->count; i++) {
            uint32_t watcher = bucket->handles[i] >> 2;
            struct position at = e->motes[watcher].at;
            if (!range_holds(&seen, name_at(t, at.x, at.y, 0))) found_add(found, watcher);
        }
    }
}

static size_t tower_bytes(const struct stratum *stratum)
{
    return cellmap_bytes(&tower_of(stratum)->markers) + cellmap_bytes(&tower_of(stratum)->watchers);
}

static const struct structure tower = {
    .stratum_bytes = sizeof(struct tower),
    .init = tower_init,
    .close = tower_close,
    .add = tower_add,
    .remove = tower_remove,
    .move = tower_move,
    .look = tower_look,
    .find = tower_find,
    .near = tower_near,
    .bytes = tower_bytes,
};

const struct aoi_index index_tower = {
    .info =
        {.name = "tower",
         .about =
             "towers with lists of those who watch them: for far more telling than moving, few watchers, mixed radii",
         .abilities = AOI_CAN_BLOCK | AOI_CAN_RADIUS | AOI_CAN_PLANE},
    .create = engine_create,
    .ops = &engine_ops,
    .structure = &tower,
};
