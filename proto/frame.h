/* Frames: everything that happened to one leaf in one tick, as published on r/<quadkey>/ and g/<quadkey>/.
 *
 * An nng message "r/<quadkey>/" + msgpack body:
 *   [epoch, seq, tick, [codes...], [dx, dy, ...], section...]      (sections only where something is in them)
 * codes name the slots that moved, ascending: start at slot -1; a code c >= 0 goes on by c + 1 and takes that slot;
 * c < 0 takes the next -c slots. dx, dy: position minus the last published one, a pair for each slot taken.
 * Sections, in this order, each [number, item...]:
 *   1 left      [slot, reason] or, moved to another leaf, [slot, reason, version, quadkey]
 *   2 entered   [slot, record]                    record: see entity_record
 *   3 turned    [codes...], [yaw...]              absolute yaw, for slots coded as above
 *   4 climbed   [codes...], [dz...]
 *   5 state     [slot, bin]
 *   6 changed   [slot, kind, flags, layer, radius]
 * A receiver applies left, entered, then moves and the rest. A slot that leaves may be entered anew in the same frame.
 * seq rises by one a frame. A beat is a frame with empty codes and no sections that repeats the last seq: it tells a
 * receiver that missed the last frame before a silence. */
#ifndef TERRANE_PROTO_FRAME_H
#define TERRANE_PROTO_FRAME_H

#include "common/limits.h"
#include "proto/wire.h"

/* Positions on the wire: x and y in [0, POSITION_END), z in [-HEIGHT_END, HEIGHT_END), so that a position plus a delta
 * always fits int32 (and must then be checked against the world). */
#define POSITION_END (INT32_C(1) << LIMIT_RESOLUTION_BITS)
#define HEIGHT_END   (INT32_C(1) << (LIMIT_RESOLUTION_BITS - 1))
/* Versions stay below 2^63 on the wire. Where an entity comes in from outside (ENTER) or from a peer (OFFER) the bound
 * is lower, so that what an owner adds to it for as long as it lives can't pass VERSION_MAX: receivers would refuse the
 * whole stream of its leaf. */
#define VERSION_MAX       ((uint64_t)INT64_MAX)
#define VERSION_ENTER_MAX (UINT64_C(1) << 62)
#define VERSION_OFFER_MAX (VERSION_MAX - UINT32_MAX)

enum stream_kind { STREAM_REGION = 'r', STREAM_GHOST = 'g' };

/* Section numbers of a frame, in the order in which they stand in it. */
enum frame_section {
    SECTION_LEFT = 1,
    SECTION_ENTERED,
    SECTION_TURNED,
    SECTION_CLIMBED,
    SECTION_STATE,
    SECTION_CHANGED,
};

/* Why an entity is in a leaf's stream no more. */
enum left_reason {
    LEFT_GONE,  /* it left the world */
    LEFT_MOVED, /* it belongs to another leaf now */
    LEFT_STRIP, /* ghost streams: it is no longer near the border */
};

/* What everybody may know of an entity.
 * msgpack: [id, version, kind, flags, layer, x, y, z, yaw, radius, bin state] */
struct entity_record {
    struct entity_id id;
    uint64_t version;
    uint32_t kind, flags;
    uint16_t layer;
    uint8_t yaw; /* 1/256 turn */
    uint32_t radius;
    struct position position;
    const uint8_t *state; /* borrowed */
    uint32_t state_size;  /* at most LIMIT_STATE_BYTES */
};

void entity_record_write(struct writer *w, const struct entity_record *record);
/* Sticky errors. Checked: id not 0, version at most VERSION_MAX, position in range, radius at most INT32_MAX. */
void entity_record_read(struct cursor *c, struct entity_record *out);
void position_write(struct writer *w, struct position position);
struct position position_read(struct cursor *c);
struct quadkey quadkey_read(struct cursor *c); /* sticky MESSAGE_RANGE unless quadkey_valid */

/* Slot lists as codes. Zero-initialise; slots ascend strictly. The count of codes is known when all are added. */
struct slot_codes {
    int32_t *codes;
    uint32_t count, room;
    int64_t last; /* last slot taken, where count is not 0 */
};
void slot_codes_clear(struct slot_codes *codes);
void slot_codes_close(struct slot_codes *codes);
void slot_codes_add(struct slot_codes *codes, uint32_t slot);
void slot_codes_write(const struct slot_codes *codes, struct writer *w); /* the array */

/* Reads slots out of an array of codes. */
struct slot_iterator {
    struct cursor codes;
    uint32_t codes_left, run_left;
    int64_t slot;
};
struct slot_iterator slot_iterator_of(struct cursor codes, uint32_t count); /* codes: over the array's items */
bool slot_iterator_next(struct slot_iterator *it, uint32_t *slot);

struct topic {
    enum stream_kind kind;
    struct quadkey leaf;
    size_t size; /* bytes of the topic in the message */
};
/* "r/<quadkey>/" or "g/<quadkey>/" at the message's beginning. Errors: MESSAGE_*, QUADKEY_INVALID. */
enum terrane_error topic_decode(const uint8_t *bytes, size_t size, struct topic *out) TERRANE_MUST_CHECK;
void topic_write(struct writer *w, enum stream_kind kind, struct quadkey leaf);

/* A decoded frame: cursors into the message, already validated whole. */
struct frame {
    uint32_t epoch;
    uint64_t seq, tick;
    uint32_t moved_count, left_count, entered_count, turned_count, climbed_count, state_count, changed_count;
    struct slot_iterator moved, turned, climbed;
    struct cursor moved_deltas, turned_yaws, climbed_deltas, left, entered, states, changed;
};

/* Validates the body whole (slots < LIMIT_ENTITIES, counts agree, records well-formed).  Errors: MESSAGE_*. */
enum terrane_error frame_decode(const uint8_t *body, size_t size, struct frame *out) TERRANE_MUST_CHECK;
bool frame_is_beat(const struct frame *frame);

/* Iteration; false at the end. */
bool frame_next_left(struct frame *f, uint32_t *slot, enum left_reason *reason, uint64_t *version, struct quadkey *to);
bool frame_next_entered(struct frame *f, uint32_t *slot, struct entity_record *record);
bool frame_next_moved(struct frame *f, uint32_t *slot, int32_t *dx, int32_t *dy);
bool frame_next_turned(struct frame *f, uint32_t *slot, uint8_t *yaw);
bool frame_next_climbed(struct frame *f, uint32_t *slot, int32_t *dz);
bool frame_next_state(struct frame *f, uint32_t *slot, const uint8_t **state, uint32_t *size);
bool frame_next_changed(struct frame *f, uint32_t *slot, uint32_t *kind, uint32_t *flags, uint16_t *layer,
                        uint32_t *radius);

/* Builds one frame: fill the columns in any order of sections (slots ascending inside moved, turned and climbed), then
 * frame_builder_write. Keeps its buffers. Zero-initialise to open. */
struct frame_builder {
    struct slot_codes moved, turned, climbed;
    uint32_t moved_count, turned_count, climbed_count, left_count, entered_count, state_count, changed_count;
    struct writer moved_deltas, turned_yaws, climbed_deltas, left, entered, states, changed;
};
void frame_builder_close(struct frame_builder *b);
void frame_builder_clear(struct frame_builder *b);
bool frame_builder_empty(const struct frame_builder *b);
void frame_builder_moved(struct frame_builder *b, uint32_t slot, int32_t dx, int32_t dy);
void frame_builder_turned(struct frame_builder *b, uint32_t slot, uint8_t yaw);
void frame_builder_climbed(struct frame_builder *b, uint32_t slot, int32_t dz);
void frame_builder_left(struct frame_builder *b, uint32_t slot, enum left_reason reason, uint64_t version,
                        struct quadkey to);
void frame_builder_entered(struct frame_builder *b, uint32_t slot, const struct entity_record *record);
void frame_builder_state(struct frame_builder *b, uint32_t slot, const uint8_t *state, uint32_t size);
void frame_builder_changed(struct frame_builder *b, uint32_t slot, uint32_t kind, uint32_t flags, uint16_t layer,
                           uint32_t radius);
/* Appends the body (not the topic) to w. */
void frame_builder_write(const struct frame_builder *b, uint32_t epoch, uint64_t seq, uint64_t tick, struct writer *w);

#endif
