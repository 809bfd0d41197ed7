/* Area of interest: who sees whom. One interface, several indexes behind it; aoi_index_list() names them.
 *
 * What it is not: it knows nothing of servers, borders, sessions or the network; positions are integers.
 * Memory: an index owns all it allocates. Handles are dense, recycled after leave, and valid from enter to leave.
 * Not thread-safe.
 *
 * Semantics, the same for every index
 *  - AOI_BLOCK: an observer sees all others in the 3x3 cells around its own; cell = floor(p / cell_size), half-open.
 *    Every entity is an observer; radius is ignored (a caller with mere subjects ignores their views).
 *  - AOI_RADIUS: a sees b once distance <= a.radius, and loses it once distance > a.radius + hysteresis (exact,
 *    integer arithmetic). Radius 0 sees nothing.
 *  - On the plane distances and cells are of x and y, and only within |dz| <= z_range. In space (dimensions = 3) they
 *    are of x, y and z: spheres, and 3x3x3 cells; z_range is ignored.
 *  - Only within the same layer. An entity never sees itself.
 *  - Each see of a pair (observer, subject) is followed by exactly one unsee before the next see of that pair.
 *    The unsees of one call come before its sees. A leave reports only unsee and unseen_by.
 *  - Where an index knows extents, an entity is a rectangle of that half-width and half-height: it is seen, and found,
 *    when its nearest point is. Observers and the centres of queries stay points; blocks go by the position.
 *
 * Two ways to change: one operation at a time (aoi_enter, aoi_leave, aoi_move, aoi_set_radius, aoi_set_layer), or
 * a whole tick's moves at once: aoi_stage (or aoi_stage_many), then aoi_tick, which reports the net changes of the
 * tick.
 *
 * Sinks. Unless options say `direct`, a sink may call anything but aoi_destroy: the operation takes effect at once, and
 * what it changes is told after what is being told, in order, before the outermost call returns. So the stream of
 * changes is always one that could have come from operations one after another. An entity that has left in between is
 * still named in what was to be told of it: aoi_id answers for its handle, which nobody else gets, until the outermost
 * call returns; all else says that it is gone. */
#ifndef TERRANE_AOI_AOI_H
#define TERRANE_AOI_AOI_H

#include "common/errors.h"
#include "common/types.h"

enum aoi_mode { AOI_BLOCK, AOI_RADIUS };

/* What an index can do. */
enum aoi_ability {
    AOI_CAN_BLOCK = 1,
    AOI_CAN_RADIUS = 2,
    AOI_CAN_PLANE = 4,  /* dimensions = 2 */
    AOI_CAN_SPACE = 8,  /* dimensions = 3 */
    AOI_CAN_EXTENT = 16 /* entities that are rectangles */
};

struct aoi_index_info {
    const char *name, *about; /* about: one line, when to take it */
    unsigned abilities;       /* of enum aoi_ability */
};

/* The indexes that there are, in the order of their names; by place, NULL behind the last. */
const struct aoi_index_info *aoi_index_list(size_t at);
/* NULL: no index is called so. */
const struct aoi_index_info *aoi_index_find(const char *name);

struct aoi_options {
    const char *index; /* name; NULL: "grid". Borrowed for aoi_create */
    enum aoi_mode mode;
    int32_t cell_size;    /* position units, > 0 (a power of two is fastest) */
    int32_t min_x, min_y; /* lowest valid position; may be negative */
    int32_t max_x, max_y; /* first invalid position (exclusive); > min */
    int32_t radius_max;   /* largest radius accepted; 0: INT32_MAX / 4 */
    int32_t hysteresis;   /* >= 0; AOI_RADIUS only */
    uint32_t z_range;     /* UINT32_MAX: no limit; 0: only exactly equal z */
    uint32_t capacity;    /* entities expected; 0: small. Grows by itself */
    unsigned dimensions;  /* 0 or 2: plane; 3: space */
    int32_t min_z, max_z; /* space only: like min_x, max_x; both 0: all */
    /* Spans straight out of the index, while it changes: the fastest. Then no sink may call back into the index (it may
     * record, and act after the call). Otherwise what changes is copied first, and sinks may call anything. */
    bool direct;
};

/* Where an entity is and how far it sees. */
struct aoi_place {
    struct position position;
    uint32_t radius;             /* position units; 0: sees nothing (AOI_RADIUS) */
    uint32_t extent_x, extent_y; /* half-width and half-height, at most radius_max; 0: a point */
    uint16_t layer;
};

#define AOI_HANDLE_NONE UINT32_MAX

/* What a span says of `subject` and each of `others`. OUT: the subject's view changes. IN: the others' views do. */
enum aoi_change {
    AOI_SEE = 1,       /* subject begins to see others */
    AOI_SEEN_BY = 2,   /* others begin to see subject */
    AOI_UNSEE = 4,     /* subject ceases to see others */
    AOI_UNSEEN_BY = 8, /* others cease to see subject */
};

/* One subject, many others, straight out of the index. Borrowed for the sink's call. */
struct aoi_span {
    uint32_t subject;       /* handle */
    uint32_t change;        /* AOI_SEE | AOI_SEEN_BY, one of the two, or the same of the UN- pair; never mixed */
    const uint32_t *others; /* handles, no particular order, never the subject itself, each once a span */
    uint32_t count;         /* > 0 */
};

/* Takes spans as they are found. `spans` is an array of `count`. A pair and change is reported once a call. */
typedef void aoi_sink(void *context, const struct aoi_span *spans, size_t count);

struct aoi; /* opaque */

/* What is wrong with the options, as a sentence in static memory; NULL: nothing. */
const char *aoi_options_fault(const struct aoi_options *options);
/* Makes an index. Errors: CONFIG (aoi_options_fault says which option), MEMORY; then *out is NULL. */
enum terrane_error aoi_create(const struct aoi_options *options, struct aoi **out) TERRANE_MUST_CHECK;
void aoi_destroy(struct aoi *aoi); /* NULL is fine */

/* Places an entity and reports whom it sees and who sees it. *handle is its handle until it leaves.
 * Errors (nothing changes then): ENTITY_NONE (id 0), ENTITY_EXISTS (*handle is then the existing one),
 * POSITION_OUTSIDE, RADIUS_TOO_LARGE (radius or extent), UNSUPPORTED (an extent, and the index knows none), MEMORY.
 * sink may be NULL: changes happen unreported (bulk load). */
enum terrane_error aoi_enter(struct aoi *aoi, struct entity_id id, const struct aoi_place *place, aoi_sink *sink,
                             void *context, uint32_t *handle) TERRANE_MUST_CHECK;
/* Takes an entity out. Errors: ENTITY_UNKNOWN (handle not live). */
enum terrane_error aoi_leave(struct aoi *aoi, uint32_t handle, aoi_sink *sink, void *context) TERRANE_MUST_CHECK;
/* Moves one entity now; a move staged for it before is forgotten. A move inside a cell changes no view in AOI_BLOCK.
 * Errors: ENTITY_UNKNOWN, POSITION_OUTSIDE, MEMORY (nothing changes then). */
enum terrane_error aoi_move(struct aoi *aoi, uint32_t handle, struct position position, aoi_sink *sink,
                            void *context) TERRANE_MUST_CHECK;
/* Changes a view radius now. Errors: ENTITY_UNKNOWN, RADIUS_TOO_LARGE. */
enum terrane_error aoi_set_radius(struct aoi *aoi, uint32_t handle, uint32_t radius, aoi_sink *sink,
                                  void *context) TERRANE_MUST_CHECK;
/* Changes a layer now; unsees all of the old layer, sees those of the new. Errors: ENTITY_UNKNOWN, MEMORY. */
enum terrane_error aoi_set_layer(struct aoi *aoi, uint32_t handle, uint16_t layer, aoi_sink *sink,
                                 void *context) TERRANE_MUST_CHECK;
/* Tells the index, without a report, that `observer` already saw `subject` (hysteresis carried over by a hand-off).
 * Takes effect only if the pair is eligible and lies in (radius, radius + hysteresis]; returns whether it did.
 * Call it right after the observer's enter or radius change. AOI_BLOCK: always false. */
bool aoi_recall(struct aoi *aoi, uint32_t observer, uint32_t subject);

/* Notes that the entity will be at `position` at the next aoi_tick (the last call wins). Queries and one-at-a-time
 * operations before that tick still use the old place for it. Errors: ENTITY_UNKNOWN, POSITION_OUTSIDE, MEMORY. */
enum terrane_error aoi_stage(struct aoi *aoi, uint32_t handle, struct position position) TERRANE_MUST_CHECK;
/* aoi_stage for `count` entities, in order; far faster where their handles are consecutive. Stops at the first that
 * aoi_stage refuses, with its error: those before it are staged, it and those behind it are not. *staged (unless NULL)
 * is its index, or count when all went well; to skip it, call again with what follows. */
enum terrane_error aoi_stage_many(struct aoi *aoi, const uint32_t *handles, const struct position *positions,
                                  size_t count, size_t *staged) TERRANE_MUST_CHECK;
/* Applies all staged moves and reports the net changes: exactly the difference of the views before and after
 * (AOI_RADIUS: with hysteresis judged on the tick's end positions). No allocation in the steady state. */
void aoi_tick(struct aoi *aoi, aoi_sink *sink, void *context);

/* Look-ups. Stale handles: AOI_HANDLE_NONE / false / id 0. */
uint32_t aoi_find(const struct aoi *aoi, struct entity_id id);
struct entity_id aoi_id(const struct aoi *aoi, uint32_t handle);
bool aoi_place_of(const struct aoi *aoi, uint32_t handle, struct aoi_place *out);
/* Whether observer's view holds subject now. */
bool aoi_sees(const struct aoi *aoi, uint32_t observer, uint32_t subject);
size_t aoi_count(const struct aoi *aoi);
size_t aoi_memory_bytes(const struct aoi *aoi);

/* Queries. `layer` < 0: all layers. Shapes are closed: distance <= radius; min <= p <= max. They fill `out` with up
 * to `room` handles in no particular order and return how many there are in all (may exceed room). They may refresh
 * caches inside the index, hence no const. Circle, rectangle and block are of x and y whatever z is; a sphere is of all
 * three, also on the plane. */
size_t aoi_query_circle(struct aoi *aoi, struct position centre, uint32_t radius, int32_t layer, uint32_t *out,
                        size_t room);
size_t aoi_query_rectangle(struct aoi *aoi, int32_t min_x, int32_t min_y, int32_t max_x, int32_t max_y, int32_t layer,
                           uint32_t *out, size_t room);
size_t aoi_query_sphere(struct aoi *aoi, struct position centre, uint32_t radius, int32_t layer, uint32_t *out,
                        size_t room);
/* The 3x3 block around the cell of `centre`. */
size_t aoi_query_block(struct aoi *aoi, struct position centre, int32_t layer, uint32_t *out, size_t room);
/* The view of one observer (handles). */
size_t aoi_view(struct aoi *aoi, uint32_t observer, uint32_t *out, size_t room);
/* How many observers would be told of something at `place` (the ones that would see an entity placed there), without
 * telling them. O(cells of the largest radius in use). */
size_t aoi_fanout(struct aoi *aoi, const struct aoi_place *place);

/* The same changes as a caller of a textbook interface wants them: ids, ascending, of one subject. Reused between
 * calls; grows as needed. Ask for it with aoi_delta_sink as the sink and &delta as the context of a single operation.
 */
struct aoi_delta {
    struct aoi *aoi; /* set by aoi_delta_open */
    struct entity_id subject;
    struct entity_id *see, *unsee, *seen_by, *unseen_by;
    size_t see_count, unsee_count, seen_by_count, unseen_by_count;
    size_t room[4];
};
void aoi_delta_open(struct aoi_delta *delta, struct aoi *aoi);
void aoi_delta_begin(struct aoi_delta *delta, struct entity_id subject); /* empties it for the next operation */
void aoi_delta_sink(void *delta, const struct aoi_span *spans, size_t count);
void aoi_delta_end(struct aoi_delta *delta); /* sorts; from here on the four lists are ascending */
void aoi_delta_close(struct aoi_delta *delta);

#endif
