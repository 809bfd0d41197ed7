/* libterrane: a game's gateway in a Terrane world.
 *
 * A gateway opens one session, enters the entities that it answers for (its players, or NPCs that it runs), says what
 * they do, and is told what each of them sees. Which server owns what, borders, hand-offs, lost messages and
 * reconnects are hidden. One thread: all calls and callbacks happen in the thread that calls terrane_dispatch;
 * nothing blocks.
 *
 *     struct terrane_options options = {.coordinator_url = "tcp://127.0.0.1:7070", .callbacks = {...}};
 *     struct terrane *world;
 *     if (terrane_open(&options, &world)) ...
 *     for (;;) { poll(terrane_fd(world), POLLIN); terrane_dispatch(world); }
 *
 * Promises at this API, whatever happens below: each see of a pair (observer, subject) is followed by exactly one
 * unsee before the next see of the pair; update never names a subject that the observer does not see; an event is
 * heard once; each request has exactly one `done`. From the call of terrane_leave on, an observer hears only the
 * unsees of what it sees, and after `done` of that leave, or `error` ENTITY_LOST or DETACHED, nothing. Callbacks may
 * call any function but terrane_close and terrane_dispatch.
 *
 * A server dies: its standby takes over, and all goes on with it: views stand, what is unanswered is said again,
 * positions too. Only when a server and its standby died together are entities out of the world; then they are entered
 * again as this session knows them (`error` ENTITY_REENTERED), and what they see is compared with what was told. A
 * gateway that stood still for so long that it was held for dead goes on as another node and keeps its entities.
 *
 * Units: positions and radii are doubles in world units (m), yaw in radians, z up. Ids are 64-bit, not 0, unique in
 * the world. Structs given to callbacks are borrowed for the call.
 * Every function that can fail returns an enum terrane_error; 0 (TERRANE_ERR_OK) is well. */
#ifndef TERRANE_H
#define TERRANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "common/errors.h"

struct terrane; /* a session; opaque */

/* An entity as others see it. */
struct terrane_entity {
    uint64_t id;
    double x, y, z, yaw, radius;
    uint32_t kind, flags;
    uint16_t layer;
    const void *state; /* opaque to Terrane */
    size_t state_size;
};

enum terrane_operation {
    TERRANE_ENTER,
    TERRANE_LEAVE,
    TERRANE_SET_STATE,
    TERRANE_SET_RADIUS,
    TERRANE_EMIT,
    TERRANE_QUERY,
    TERRANE_FIND,
    TERRANE_MOVE,
    TERRANE_ATTACH,
};

/* What has changed in an update: bits. */
enum terrane_change { TERRANE_MOVED = 1, TERRANE_STATE_CHANGED = 2, TERRANE_CONSTANTS_CHANGED = 4 };

/* A map event as an observer hears it. */
struct terrane_event {
    uint32_t code;
    double x, y, z;
    const void *payload;
    size_t payload_size;
};

/* Any of them may be NULL. `context` is options.context. */
struct terrane_callbacks {
    /* The world is known and entities may be entered. Again after a new coordinator: no need to do anything. */
    void (*ready)(void *context);
    void (*see)(void *context, uint64_t observer, const struct terrane_entity *subject);
    void (*unsee)(void *context, uint64_t observer, uint64_t subject);
    void (*update)(void *context, uint64_t observer, const struct terrane_entity *subject, uint32_t changes);
    void (*event)(void *context, uint64_t observer, const struct terrane_event *event);
    /* The answer to a request (each has exactly one): error 0 is well. id: the entity, or 0. An entity is in the world
     * from the `done` of its enter to the `done` of its leave; an enter that fails takes the entity's other requests
     * with it (ENTITY_UNKNOWN). */
    void (*done)(void *context, uint64_t request, enum terrane_operation operation, uint64_t id,
                 enum terrane_error error);
    /* A query's or find's entities (only id and position are filled), before its `done`. */
    void (*found)(void *context, uint64_t request, const struct terrane_entity *entities, size_t count);
    /* Something went wrong that no request asked for. ENTITY_REENTERED (id): its servers died together, and it has been
     * entered again with what this session last said of it; it goes on. ENTITY_LOST (id): the same, but it was refused
     * or options.no_reenter is set; it is not in the world any more and may be entered again. DETACHED (id): another
     * gateway has attached it; it is in the world, but not this session's. WORLD_MISMATCH (id 0): another coordinator
     * has another world. */
    void (*error)(void *context, uint64_t id, enum terrane_error error, const char *text);
    /* A line for the log, logfmt without time and level. level: 0 debug, 1 information, 2 warning, 3 error. */
    void (*log)(void *context, int level, const char *line);
};

struct terrane_options {
    const char *coordinator_url; /* "tcp://127.0.0.1:7070", or several, separated by commas; required */
    const char *listen_host;     /* where cell servers reach this gateway; NULL: "127.0.0.1" */
    const char *name;            /* for people; NULL: "gateway" */
    struct terrane_callbacks callbacks;
    void *context;
    uint64_t request_timeout_ms; /* 0: 10,000; a request unanswered for that long is done with TIMED_OUT */
    bool no_updates;             /* do not subscribe to region topics: see/unsee carry ids, positions stay unknown */
    bool no_reenter;             /* an entity whose servers died together is ENTITY_LOST, not entered again */
    char *fault;                 /* where terrane_open puts what to tell a person if it fails; NULL: nowhere */
    size_t fault_size;
};

/* The world's constants, once ready. */
struct terrane_world {
    double origin_x, origin_y, side, cell_size, radius_max, hysteresis, unit;
    uint32_t tick_hz;
    bool block; /* views are 3x3 cells; radius is ignored */
};

/* Opens a session: makes its sockets and begins to look for the coordinator, which may start later.
 * Errors: CONFIG (coordinator_url is missing or not tcp://HOST:PORT), ADDRESS (listen_host can't be listened on), LIMIT
 * (file descriptors), MEMORY; *out is NULL then, options->fault says more. */
enum terrane_error terrane_open(const struct terrane_options *options, struct terrane **out) TERRANE_MUST_CHECK;
/* Takes this session's entities out of the world, waits at most a second for the answers (callbacks are called
 * meanwhile) and somewhat longer until the others have hung up, and frees everything. NULL is fine. */
void terrane_close(struct terrane *t);

/* Readable when terrane_dispatch has something to do (messages or time). Valid until terrane_close. */
int terrane_fd(const struct terrane *t);
/* Does what is due, calls callbacks, returns. Never blocks. */
void terrane_dispatch(struct terrane *t);
/* Commands go out with the next dispatch or after at most a few ms; this sends them now (end of a game tick). */
void terrane_flush(struct terrane *t);

bool terrane_is_ready(const struct terrane *t);
bool terrane_world(const struct terrane *t, struct terrane_world *out); /* false: not ready */

/* Commands. Those with `request` are answered by `done`; request may be NULL. They may be given at once one after the
 * other; order is kept per entity. Common errors: NOT_READY, ENTITY_NONE, ENTITY_UNKNOWN (not entered here), LIMIT. */

/* Errors: also ENTITY_EXISTS (of this session, until its leave is done), POSITION_INVALID, POSITION_OUTSIDE,
 * RADIUS_TOO_LARGE (or negative, or not a number), STATE_TOO_LARGE. `done` may also say ENTITY_EXISTS (of another) or
 * LIMIT (a server takes no more of this session: its --session-entities). */
enum terrane_error terrane_enter(struct terrane *t, const struct terrane_entity *entity,
                                 uint64_t *request) TERRANE_MUST_CHECK;
/* No answer: the last of several moves in a tick wins. Errors: also POSITION_INVALID, POSITION_OUTSIDE. */
enum terrane_error terrane_move(struct terrane *t, uint64_t id, double x, double y, double z,
                                double yaw) TERRANE_MUST_CHECK;
enum terrane_error terrane_set_state(struct terrane *t, uint64_t id, const void *state, size_t size,
                                     uint64_t *request) TERRANE_MUST_CHECK;
enum terrane_error terrane_set_radius(struct terrane *t, uint64_t id, double radius,
                                      uint64_t *request) TERRANE_MUST_CHECK;
enum terrane_error terrane_leave(struct terrane *t, uint64_t id, uint64_t *request) TERRANE_MUST_CHECK;
/* Takes an entity over that is in the world under another gateway, dead or alive: whoever had it gets `error` DETACHED
 * and may not command it any more. Servers keep the entities of a dead gateway for 10 s. With `done` its position,
 * state, radius and so on are known (terrane_get), and it is as if it had been entered here; until then other commands
 * for it are refused with NOT_READY. Errors: also ENTITY_EXISTS (of this session). `done` may also say ENTITY_UNKNOWN
 * (in nobody's hands), LIMIT (as for enter). */
enum terrane_error terrane_attach(struct terrane *t, uint64_t id, uint64_t *request) TERRANE_MUST_CHECK;
/* Tells every observer within `radius` of the place once, in that layer. Errors: also POSITION_INVALID,
 * POSITION_OUTSIDE, RADIUS_TOO_LARGE, STATE_TOO_LARGE (payload). */
enum terrane_error terrane_emit(struct terrane *t, uint32_t code, double x, double y, double z, uint16_t layer,
                                double radius, const void *payload, size_t size, uint64_t *request) TERRANE_MUST_CHECK;
/* Entities of all servers within the closed shape, by ascending id; layer < 0: all. Answered by found (if there are
 * any), then done; with an error, what was found is not all. Errors: also POSITION_INVALID (a corner, the radius, or
 * min > max), POSITION_OUTSIDE (the centre, or the whole rectangle). */
enum terrane_error terrane_query_circle(struct terrane *t, double x, double y, double radius, int layer,
                                        uint64_t *request) TERRANE_MUST_CHECK;
enum terrane_error terrane_query_rectangle(struct terrane *t, double min_x, double min_y, double max_x, double max_y,
                                           int layer, uint64_t *request) TERRANE_MUST_CHECK;
/* Where an entity is, whoever's it is. Done with ENTITY_UNKNOWN if nobody owns it. */
enum terrane_error terrane_find(struct terrane *t, uint64_t id, uint64_t *request) TERRANE_MUST_CHECK;

/* What this session knows. The view of an own entity as told by see and unsee: fills ids (ascending; the lowest if room
 * is short) up to room, returns how many there are. */
size_t terrane_view(const struct terrane *t, uint64_t observer, uint64_t *ids, size_t room);
/* An entity as last heard (own or near an own one); out->state is valid until the next dispatch. */
bool terrane_get(const struct terrane *t, uint64_t id, struct terrane_entity *out);

/* Counters of this session, for dashboards and tests. */
struct terrane_stats {
    uint64_t own, seen_pairs, moves_sent, frames, frame_bytes, frame_moves, gaps, gaps_repaired, gaps_open;
    uint64_t handoffs; /* times an own entity changed its server */
    uint64_t moves_repeated, sure_repeated, malformed, stale, dropped;
    uint64_t servers, leaves_watched;
};
void terrane_stats(const struct terrane *t, struct terrane_stats *out);

/* The sums over the sessions of this process, their traffic and drops by cause, CPU time and memory, in Prometheus's
 * text format: what the game's own server answers to GET /metrics. /readyz is terrane_is_ready of each, /healthz that
 * the loop turns. Fills text up to room with a NUL behind it; returns the whole size, and where that is not below room,
 * what was filled is cut: call again with more. Some 8 KB; not for each tick. */
size_t terrane_metrics(struct terrane *const *sessions, size_t count, char *text, size_t room);

#ifdef __cplusplus
}
#endif

#endif
