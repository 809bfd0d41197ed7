/* The publishing side of one stream (r/<leaf>/ or g/<leaf>/): which entities are in it, in which slot, what was last
 * published of each, and the frames that say what changed.
 *
 * What it is not: it decides nothing. Its owner says who is in; it publishes by PUBLISHing the bytes itself.
 * Slots are dense, lowest free first, so that slot gaps stay small; a slot freed in a frame may be used again in the
 * next. Callers hold `slot` beside their entity.
 *
 * A tick: stream_enter / stream_leave / stream_move / ... in any order, then stream_publish once.
 * Several changes of one entity in a tick become one; enter and leave of the same entity in one tick become nothing. */
#ifndef TERRANE_STREAM_WRITER_H
#define TERRANE_STREAM_WRITER_H

#include "proto/frame.h"
#include "proto/messages.h"

#define STREAM_SLOT_NONE UINT32_MAX

struct stream_writer; /* opaque */

struct stream_writer *stream_writer_open(enum stream_kind kind, struct quadkey leaf, uint32_t epoch);
void stream_writer_close(struct stream_writer *s);
/* A new epoch starts seq at 0 again and keeps the slots; subscribers need a snapshot. */
void stream_writer_set_epoch(struct stream_writer *s, uint32_t epoch);

/* Puts an entity in; `owner` is the caller's index of it, given back by stream_owner. state is copied when published,
 * so *record may go away but record->state must stay valid until stream_publish. Returns the slot. */
uint32_t stream_enter(struct stream_writer *s, uint32_t owner, const struct entity_record *record);
/* Takes it out. version and to: with LEFT_MOVED. */
void stream_leave(struct stream_writer *s, uint32_t slot, enum left_reason reason, uint64_t version, struct quadkey to);
/* Notes what is true now; compared with what was last published at stream_publish. */
void stream_move(struct stream_writer *s, uint32_t slot, struct position position, uint8_t yaw);
/* Marks the state blob / the constants (kind, flags, layer, radius) as changed. */
void stream_touch_state(struct stream_writer *s, uint32_t slot);
void stream_touch_constants(struct stream_writer *s, uint32_t slot);

/* Fills a record for an owner index: for entered, state and changed sections, and snapshots. */
typedef void stream_describe(void *context, uint32_t owner, struct entity_record *out);

/* Appends topic and body of this tick's frame to w and returns true; false (nothing appended) if nothing happened,
 * except that a beat is appended when the stream has been silent for `beat_ticks` since its last frame or beat
 * (0: never). What does not fit LIMIT_FRAME_BYTES goes with the next ticks' frames: departures first, nothing twice. */
bool stream_publish(struct stream_writer *s, uint64_t tick, uint32_t beat_ticks, stream_describe *describe,
                    void *context, struct writer *w);

/* Everything as of the last published frame, as SNAPSHOT messages of at most LIMIT_MESSAGE_BYTES each: calls `take` for
 * each part. Call only right after stream_publish (no unpublished changes), or right after open. describe is called
 * twice for an entity and must say the same. */
typedef void stream_take(void *context, const void *message, size_t size);
void stream_snapshot(struct stream_writer *s, uint64_t tick, stream_describe *describe, void *context,
                     stream_take *take, void *take_context);
/* The same for the query lane: one SNAPSHOT from `from_slot` on, as much as fits; parts = 1 when it reaches the end,
 * 2 when there is more. */
void stream_snapshot_from(struct stream_writer *s, uint64_t tick, uint32_t from_slot, stream_describe *describe,
                          void *context, struct writer *w);

uint32_t stream_owner(const struct stream_writer *s, uint32_t slot); /* as given to stream_enter */
uint32_t stream_count(const struct stream_writer *s);                /* entities in it */
uint64_t stream_seq(const struct stream_writer *s);
uint32_t stream_epoch(const struct stream_writer *s);
struct stream_counters {
    uint64_t frames, beats, bytes, moves, entered, left;
};
const struct stream_counters *stream_counters(const struct stream_writer *s);

#endif
