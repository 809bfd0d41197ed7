/* The cell server's pure core (common/core.h): entities of the leaves it owns, ghosts of those around, views,
 * hand-offs, frames.
 *
 * A tick: moves that have arrived are applied, the AOI reports view changes, entities that are past a border are
 * offered to their new owner, frames and view changes go out, then heartbeats. Sure messages that somebody waits for
 * (hand-offs, enters, queries) are handled and answered when they arrive, not at the next tick.
 * Memory: opaque, owned by the caller through open/close. In the steady state a tick allocates nothing. */
#ifndef TERRANE_CELLSERVER_CELLSERVER_H
#define TERRANE_CELLSERVER_CELLSERVER_H

#include "common/core.h"
#include "common/geometry.h"
#include "proto/messages.h"

struct cellserver; /* opaque */

struct cellserver_options {
    struct node_info info;       /* role cellserver; feed_count region feeds, ghost feed is number feed_count */
    uint32_t capacity;           /* relative weight; 0: 100 */
    const char *coordinator_url; /* or several, as in common/urls.h */
    uint32_t entities;           /* expected; tables are reserved for so many. 0: 16384 */
    uint32_t beat_ticks;         /* a silent stream sends a beat after so many ticks; 0: 10 */
    uint32_t tick_hz;            /* until WELCOME tells the world's */
    uint32_t session_rate;       /* commands a second that a gateway may give (rate.c); 0: any */
    uint32_t session_entities;   /* that a gateway may have here when it enters or attaches one more; 0: any */
    const char *aoi_index;       /* of the plane, of aoi_index_list; NULL: grid. Must outlive the server */
    bool unique_ids;             /* an ENTER asks its id's home first (proto/registry.h): no id lives twice */
};

struct cellserver *cellserver_open(const struct cellserver_options *options);
void cellserver_close(struct cellserver *cs);
void cellserver_step(struct cellserver *cs, const struct event *in, uint64_t now_us, struct outbox *out);
uint64_t cellserver_deadline_us(const struct cellserver *cs); /* UINT64_MAX: none */

/* The process is asked to end: says BYE to the coordinator. Steps go on as before until cellserver_closed: its leaves
 * are with others and all is said, or nobody can take them, or it has waited for a few seconds. Once; more calls do
 * nothing. */
void cellserver_say_bye(struct cellserver *cs, uint64_t now_us, struct outbox *out);
/* True after BYE, when there is nothing more to wait for; and when the coordinator has declared this process dead. */
bool cellserver_closed(const struct cellserver *cs);
bool cellserver_dismissed(const struct cellserver *cs); /* the latter */

/* The tick interval the shell must keep: the world's after WELCOME. */
uint64_t cellserver_tick_us(const struct cellserver *cs);
bool cellserver_ready(const struct cellserver *cs); /* has the world and at least one leaf */

struct cellserver_stats {
    uint64_t tick, ticks_late;
    uint32_t leaves, owned, ghosts, leaving, pending, sessions;
    uint64_t moves, enters, leaves_done, handoffs_out, handoffs_in, handoffs_refused, handoffs_local;
    uint64_t frames, frame_bytes, frame_moves, ghost_frames, ghost_bytes;
    uint64_t view_changes, views_whole, views_dropped;
    uint64_t forwarded, not_owner, stale, malformed, dropped, moves_lost;
    uint64_t gaps, gaps_repaired, gaps_open;
    uint64_t memory_bytes;
    /* Leaves that it stands by for and their entities; own leaves that may not serve now; leaves taken over from a
     * primary; what standbys were told; answers that wait for a standby. */
    uint32_t replica_leaves, replicas, fenced, standby_waiting;
    uint64_t promotions, fences, standby_bytes;
    uint64_t refused_rate;     /* commands of gateways over options.session_rate */
    uint64_t refused_entities; /* enters and attaches of gateways over options.session_entities */
    uint64_t replicas_broken;  /* copies that did not follow their primary any more and were asked for anew */
};
void cellserver_stats(const struct cellserver *cs, struct cellserver_stats *out);
struct metrics;
void cellserver_metrics(const struct cellserver *cs, struct metrics *m); /* the same for scrapers */
/* NULL: it serves, or would serve what the map gave it. Else why not, as one clause. */
const char *cellserver_unready(const struct cellserver *cs);

/* For checkers: every entity this core answers for. `leaving`: offered and not yet accepted. `fenced`: its leaf may not
 * serve now, so it is not answered for. */
struct cellserver_entity {
    struct entity_record record;
    struct node_id gateway;
    struct quadkey leaf;
    bool leaving, fenced;
};
void cellserver_census(const struct cellserver *cs, void (*each)(void *context, const struct cellserver_entity *entity),
                       void *context);
/* Every entity of every leaf that it stands by for. `level`: it has all that the primary had when it last spoke. */
void cellserver_replicas(const struct cellserver *cs,
                         void (*each)(void *context, struct quadkey leaf, uint32_t epoch, bool level,
                                      const struct cellserver_entity *entity),
                         void *context);
/* Whether it believes itself the owner of the leaf, and under which epoch; false also while it may not serve it. As of
 * its last step; the second as of now_us, if nothing has reached it since. */
bool cellserver_owns(const struct cellserver *cs, struct quadkey leaf, uint32_t *epoch);
bool cellserver_owns_at(const struct cellserver *cs, struct quadkey leaf, uint64_t now_us, uint32_t *epoch);
/* No hand-off under way, no stream waits for a snapshot, nothing queued for anybody. */
bool cellserver_calm(const struct cellserver *cs);

#endif
