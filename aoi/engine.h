/* The views of all indexes but the grid. An index of this kind is a `struct structure`: where entities lie, and who may
 * be near a place. The engine has the rest: ids and handles, places, staged moves, radii, hysteresis, layers, reports
 * and queries. So what aoi.h promises is written once, and a structure is only its method.
 *
 * A structure keeps handles of one layer at a time (a stratum, made when its first entity enters). It may read the
 * motes of the handles that it holds at any time: they are where the structure was last told that they are, but within
 * `move`, whose mote is still at the old place.
 *
 * An essay at the head of each structure's file says when it wins, when it loses, and where the method comes from. */
#ifndef TERRANE_AOI_ENGINE_H
#define TERRANE_AOI_ENGINE_H

#include "aoi/band.h"
#include "aoi/index.h"
#include "common/table.h"

/* An entity. */
struct mote {
    struct position at;
    uint32_t radius;
    uint32_t extent_x, extent_y;
    uint16_t layer;
    bool live : 1, staged : 1;
    bool moving : 1; /* in the tick that runs */
};

/* Closed: min <= p <= max. */
struct volume {
    struct position min, max;
};

/* Handles that a structure has found; they are exactly or nearly what was asked for. */
struct found {
    uint32_t *handles;
    size_t count, room;
};
void found_grow(struct found *found, size_t more);
static inline void found_add(struct found *found, uint32_t handle)
{
    if (found->count == found->room) found_grow(found, 1);
    found->handles[found->count++] = handle;
}
void found_add_many(struct found *found, const uint32_t *handles, size_t count);

/* What a structure keeps of one layer; its own struct begins with this. */
struct stratum {
    struct engine *engine;
    uint32_t population;
    uint16_t layer;
};

/* An index's method. NULL hooks are left out. What returns bool is false when memory ran out, and has changed nothing
 * then. No hook calls back into the engine but to read. */
struct structure {
    size_t stratum_bytes; /* of the structure's own struct; the engine allocates and zeroes it */
    bool (*init)(struct stratum *stratum);
    void (*close)(struct stratum *stratum);                   /* must cope with one whose init has failed */
    bool (*add)(struct stratum *stratum, uint32_t handle);    /* the mote is set */
    void (*remove)(struct stratum *stratum, uint32_t handle); /* the mote is still set */
    bool (*move)(struct stratum *stratum, uint32_t handle, struct position to);
    /* Told before the radius changes; the mote has the old one. */
    void (*look)(struct stratum *stratum, uint32_t handle, uint32_t radius);
    /* Adds all whose rectangle (a point, where there are no extents) touches the volume, each once. Others may be among
     * them, but not so many that it costs more to leave them out. */
    void (*find)(struct stratum *stratum, const struct volume *volume, struct found *found);
    /* Adds, each once, all who may see the mote or whom it may see. `mote` is a place, and need not be in the stratum;
     * if it is, it may be among the found. NULL: `find` in the largest view. */
    void (*near)(struct stratum *stratum, const struct mote *mote, struct found *found);
    size_t (*bytes)(const struct stratum *stratum); /* without the struct itself */
};

/* Positions to cell numbers, by a shift or by a multiplication (Granlund and Montgomery 1994). */
struct cells {
    int64_t base; /* position of the corner of cell 0: at or below INT32_MIN, a multiple of the size */
    uint64_t reciprocal;
    unsigned shift;
    uint32_t size;
};
void engine_cells_set(struct cells *cells, uint32_t size);
__extension__ typedef unsigned __int128 engine_u128;
static inline uint32_t cell_at(const struct cells *cells, int32_t p)
{
    uint64_t offset = (uint64_t)(p - cells->base);
    if (!cells->reciprocal) return (uint32_t)(offset >> cells->shift);
    return (uint32_t)(((engine_u128)cells->reciprocal * offset) >> 64);
}

/* Growing lists of handles by sides (bits: SIDE_OUT, SIDE_IN). */
enum { SIDE_OUT = 1, SIDE_IN = 2 };
struct report {
    struct found lost[4], gained[4];
};

/* View limits in use (radius plus hysteresis), by their length in bits. */
#define VIEW_CLASSES 34
struct sights {
    uint32_t count[VIEW_CLASSES];
    uint64_t most[VIEW_CLASSES]; /* the largest since the class was last empty */
};

struct engine {
    struct aoi base;
    const struct structure *structure;
    struct aoi_options options;
    bool space;     /* dimensions = 3 */
    bool extended;  /* somebody has had an extent */
    bool z_decides; /* on the plane: z_range is less than all */
    bool plain;     /* distances alone decide on views (but for layers and extents), and 64 bits hold their squares */
    uint32_t radius_max, hysteresis;
    struct cells cells; /* of options.cell_size */
    struct mote *motes; /* by handle */
    struct entity_id *ids;
    uint32_t *slots;       /* by handle, the structure's own: where it has put it */
    struct position *next; /* where those who are staged will be; during a tick, from the middle on, where they were */
    uint32_t capacity, high, count;
    uint32_t *free; /* handles given back */
    uint32_t free_count, free_room;
    struct table handles; /* by id */
    struct band band;
    struct sights sights;
    struct stratum **strata;
    uint32_t stratum_count, stratum_room;
    struct table stratum_of; /* layer + 1 -> index in strata */
    uint32_t *movers;
    uint32_t mover_count, mover_room;
    struct found found;
    struct report report;
};

static inline struct engine *engine_of(const struct aoi *aoi)
{
    return (struct engine *)aoi;
}

static inline bool engine_live(const struct engine *e, uint32_t handle)
{
    return handle < e->high && e->motes[handle].live;
}

/* ---- engine.c ---- */

enum terrane_error engine_create(const struct aoi_index *index, const struct aoi_options *options, struct aoi **out);
extern const struct aoi_ops engine_ops;

/* NULL: nobody is in that layer. */
struct stratum *stratum_find(const struct engine *e, uint16_t layer);

/* ---- engine_views.c ---- */

/* Radius and hysteresis together. */
static inline uint64_t view_limit(const struct engine *e, uint32_t radius)
{
    return radius ? (uint64_t)radius + e->hysteresis : 0;
}
void sight_add(struct engine *e, uint32_t radius);
void sight_remove(struct engine *e, uint32_t radius);
uint64_t sight_most(const struct engine *e); /* the largest limit in use; 0: nobody sees */

/* All that is within `x`, `y` (and in space `z`) of a position, as far as there are coordinates. */
struct volume volume_around(const struct engine *e, struct position at, uint64_t x, uint64_t y, uint64_t z);
/* The cells around the one of a position. */
struct volume volume_block(const struct engine *e, struct position at);
/* Where all are who may see the mote or whom it may see. */
struct volume volume_near(const struct engine *e, const struct mote *mote);
/* Where all are whom the mote may see. */
struct volume volume_view(const struct engine *e, const struct mote *mote);

/* Whether the rectangle of `subject` comes within `radius` of `from`. */
bool engine_within(const struct engine *e, struct position from, const struct mote *subject, uint64_t radius);
/* Whether nobody's view changes when somebody moves so. */
bool views_stay(const struct engine *e, struct position from, struct position to);
bool engine_sees(const struct engine *e, uint32_t observer, uint32_t subject);

/* Collects in e->report what the change of one entity does to views, and books it in the band; the structure may be
 * before or after the change. Either mote may be one that is not live: not there. */
void change_collect(struct engine *e, uint32_t handle, const struct mote *before, const struct mote *after);
/* Reports what was collected and empties it. */
void change_tell(struct engine *e, uint32_t handle, aoi_sink *sink, void *context);
void engine_tick(struct aoi *aoi, aoi_sink *sink, void *context);

/* ---- engine_query.c ---- */

size_t engine_query_circle(struct aoi *aoi, struct position centre, uint32_t radius, int32_t layer, uint32_t *out,
                           size_t room);
size_t engine_query_rectangle(struct aoi *aoi, int32_t min_x, int32_t min_y, int32_t max_x, int32_t max_y,
                              int32_t layer, uint32_t *out, size_t room);
size_t engine_query_sphere(struct aoi *aoi, struct position centre, uint32_t radius, int32_t layer, uint32_t *out,
                           size_t room);
size_t engine_query_block(struct aoi *aoi, struct position centre, int32_t layer, uint32_t *out, size_t room);
size_t engine_view(struct aoi *aoi, uint32_t observer, uint32_t *out, size_t room);
size_t engine_fanout(struct aoi *aoi, const struct aoi_place *place);

#endif
