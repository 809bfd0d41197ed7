/* The subscribing side: copies of foreign leaves' streams, kept level by frames and repaired by snapshots, and one
 * answer per entity out of all of them. Cell servers keep ghosts so, gateways what their players see.
 *
 * A replica of a leaf is fed frames (lossy, in order but for reconnects) and snapshots (sure lane):
 *   WAITING  subscribed, no snapshot yet: frames are buffered (bounded by LIMIT_STREAM_BACKLOG; oldest go first)
 *   LEVEL    frames apply as seq + 1; lower seq or epoch is stale (counted), a higher one is a gap (counted) ->
 *            WAITING and a new SUBSCRIBE; a beat with a higher seq is a gap as well
 * In WAITING after a gap the old content stays as it was: nothing blinks. A snapshot replaces content by difference.
 * A replica that hears neither frame nor beat nor snapshot for `silence_us` asks again.
 *
 * One entity may be claimed by several leaves while it moves between them (or between servers): the claim with the
 * highest version is the entity. When that one goes and no other is at least as new, the entity is held as an orphan
 * for `orphan_us`, since its next leaf's stream may not have spoken yet: after LEFT_MOVED (ghosts: to a watched leaf),
 * after unwatching, when a snapshot does not have it, and after replicas_adopt. Older claims are not shown instead; but
 * when the time is over and an older claim stands in a level leaf, that one is the entity again. A ghost vanishes at
 * once after LEFT_STRIP and after LEFT_MOVED to a leaf that is not watched. LEFT_GONE ends it at once, and a tombstone
 * (id, version) of `orphan_us` keeps late frames of the same life from bringing it back.
 *
 * The owner hears through `listener`, in order, only about the winning claim. In a callback it must not call back in.
 *
 * Memory: owned here. Records' state blobs are copies owned here, valid until the next call. */
#ifndef TERRANE_STREAM_REPLICAS_H
#define TERRANE_STREAM_REPLICAS_H

#include "proto/frame.h"
#include "proto/messages.h"

enum replica_change {
    REPLICA_APPEARED, /* first claim of an entity */
    REPLICA_MOVED,    /* position or yaw */
    REPLICA_STATE,
    REPLICA_CHANGED,  /* kind, flags, layer, radius or version (a new claim won) */
    REPLICA_VANISHED, /* gone, or its orphan time has passed; the record is its last state */
};

struct replica_listener {
    void *context;
    /* `handle` is a dense index of the entity, stable from APPEARED to VANISHED. changes: bit (1 << change). */
    void (*entity)(void *context, uint32_t handle, const struct entity_record *record, uint32_t changes);
    /* Send SUBSCRIBE for this leaf to its owner (again). Sent at watch, on a gap, on silence (with back-off). */
    void (*subscribe)(void *context, enum stream_kind kind, struct quadkey leaf);
};

struct replicas_options {
    enum stream_kind kind;
    uint64_t orphan_us;  /* 0: 2,000,000 */
    uint64_t silence_us; /* 0: 3,000,000 */
    uint64_t retry_us;   /* 0: 500,000: between SUBSCRIBEs of one leaf */
    struct replica_listener listener;
};

struct replicas_counters {
    uint64_t frames, beats, stale, gaps, gaps_repaired, snapshots, backlog_dropped, malformed, unwatched;
};

struct replicas; /* opaque */

struct replicas *replicas_open(const struct replicas_options *options);
void replicas_close(struct replicas *r);

/* Begins to keep a leaf; idempotent. Calls listener.subscribe. */
void replicas_watch(struct replicas *r, uint64_t now_us, struct quadkey leaf);
/* Forgets a leaf; its entities without another claim become orphans (gone at once if `hold` is false). */
void replicas_unwatch(struct replicas *r, uint64_t now_us, struct quadkey leaf, bool hold);
bool replicas_watches(const struct replicas *r, struct quadkey leaf);
/* The leaf's owner or epoch changed: lower epochs are stale from now on; content stays until a snapshot comes; asks for
 * it at once (but for the first epoch right at watch, which has just asked). A lower or equal epoch changes nothing. */
void replicas_set_epoch(struct replicas *r, uint64_t now_us, struct quadkey leaf, uint32_t epoch);

/* A feed message (topic and body). Errors: MESSAGE_* (malformed, counted), NOT_OWNER (leaf not watched), EPOCH_STALE;
 * nothing changes then. A gap is no error. */
enum terrane_error replicas_frame(struct replicas *r, uint64_t now_us, const uint8_t *bytes, size_t size);
/* One SNAPSHOT part (decoded). Parts of one snapshot arrive in order. */
enum terrane_error replicas_snapshot(struct replicas *r, uint64_t now_us, const struct snapshot *snapshot);
/* Time passes: orphans end, silent leaves ask again. */
void replicas_tick(struct replicas *r, uint64_t now_us);
uint64_t replicas_deadline_us(const struct replicas *r);

/* Reports an entity's life as over by better knowledge (its owner is this process, or the gateway was told): drops the
 * orphan or tombstones the version; claims below `version` are ignored from now on. */
void replicas_supersede(struct replicas *r, uint64_t now_us, struct entity_id id, uint64_t version);
/* Keeps an entity that this process has just given away visible until its next owner's stream speaks: an orphan with
 * this record (unless a claim of at least its version is there already). Reports APPEARED (or nothing). `leaf`: where
 * it went, as its owner has just said on the sure lane: if the next whole snapshot of that leaf does not have it, and
 * all leaves are level, it ends after an eighth of its time. */
void replicas_adopt(struct replicas *r, uint64_t now_us, struct quadkey leaf, const struct entity_record *record);

/* Handle of an entity, or UINT32_MAX. */
uint32_t replicas_find(const struct replicas *r, struct entity_id id);
bool replicas_get(const struct replicas *r, uint32_t handle, struct entity_record *out);
bool replicas_level(const struct replicas *r, struct quadkey leaf); /* has content up to date as far as known */
/* Asks the owner of a level leaf for a snapshot, to learn what it would show now (ghosts: to whom it shows them may
 * have changed). Frames apply meanwhile. _sure: level, and no such answer is awaited. */
void replicas_confirm(struct replicas *r, uint64_t now_us, struct quadkey leaf);
bool replicas_sure(const struct replicas *r, struct quadkey leaf);
/* Has ever had content, be it out of date or of a former owner: what is shown of it does not begin with the next
 * snapshot. */
bool replicas_filled(const struct replicas *r, struct quadkey leaf);
size_t replicas_count(const struct replicas *r); /* live entities, orphans included */
size_t replicas_watched(const struct replicas *r);
size_t replicas_waiting(const struct replicas *r); /* leaves that wait for a snapshot */
bool replicas_orphaned(const struct replicas *r);  /* some entity is shown in wait for its next leaf's word */
const struct replicas_counters *replicas_counters(const struct replicas *r);

#endif
