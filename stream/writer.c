/* Slots and ticks. A change only sets a bit; stream_publish walks the bits in ascending order, so nothing is sorted
 * and an entity that did not change costs nothing.
 *
 * A frame that would grow past LIMIT_FRAME_BYTES takes what fits, in this order: who left, then the changes from
 * `resume` on. The rest stays marked and goes with the next tick. Nobody enters while a departure waits: an entity
 * that leaves a slot and enters another in one tick would else be there twice. */
#include "stream/writer.h"

#include "common/array.h"
#include "common/check.h"
#include "stream/writer_state.h"

#include <stdlib.h>

/* The topic, the frame's head and the heads of its sections. */
#define FRAME_MARGIN 256u
/* Most bytes of an item beside its state: a slot or a code takes 5, a record 73. */
#define MOVED_BYTES   15u
#define TURNED_BYTES  7u
#define CLIMBED_BYTES 10u
#define LEFT_BYTES    25u
#define ENTERED_BYTES 80u
#define STATE_BYTES   10u
#define CHANGED_BYTES 25u

struct stream_writer *stream_writer_open(enum stream_kind kind, struct quadkey leaf, uint32_t epoch)
{
    struct stream_writer *s = calloc(1, sizeof *s);
    CHECK(s != NULL);
    s->kind = kind;
    s->leaf = leaf;
    s->epoch = epoch;
    return s;
}

void stream_writer_close(struct stream_writer *s)
{
    if (s == NULL) return;
    free(s->slots);
    slot_set_close(&s->free);
    slot_set_close(&s->changed);
    slot_set_close(&s->leaving);
    frame_builder_close(&s->frame);
    free(s);
}

void stream_writer_set_epoch(struct stream_writer *s, uint32_t epoch)
{
    s->epoch = epoch;
    s->seq = 0;
}

static void place_check(struct position p)
{
    CHECK(p.x >= 0 && p.x < POSITION_END && p.y >= 0 && p.y < POSITION_END);
    CHECK(p.z >= -HEIGHT_END && p.z < HEIGHT_END);
}

static struct stream_slot *slot_of(struct stream_writer *s, uint32_t slot)
{
    CHECK(slot < s->slot_end && (s->slots[slot].marks & SLOT_USED) != 0);
    return &s->slots[slot];
}

static uint32_t slot_take(struct stream_writer *s)
{
    uint32_t slot = slot_set_next(&s->free, 0);
    if (slot != SLOT_SET_NONE) {
        slot_set_remove(&s->free, slot);
        return slot;
    }
    slot = s->slot_end++;
    ARRAY_RESERVE(s->slots, s->slot_room, s->slot_end);
    slot_set_reserve(&s->free, s->slot_end);
    slot_set_reserve(&s->changed, s->slot_end);
    slot_set_reserve(&s->leaving, s->slot_end);
    return slot;
}

static void slot_release(struct stream_writer *s, uint32_t slot)
{
    s->slots[slot] = (struct stream_slot){0};
    slot_set_add(&s->free, slot);
}

uint32_t stream_enter(struct stream_writer *s, uint32_t owner, const struct entity_record *record)
{
    place_check(record->position);
    uint32_t slot = slot_take(s);
    s->slots[slot] =
        (struct stream_slot){.now = record->position, .yaw_now = record->yaw, .owner = owner, .marks = SLOT_USED};
    slot_set_add(&s->changed, slot);
    s->count++;
    return slot;
}

void stream_leave(struct stream_writer *s, uint32_t slot, enum left_reason reason, uint64_t version, struct quadkey to)
{
    struct stream_slot *e = slot_of(s, slot);
    s->count--;
    slot_set_remove(&s->changed, slot);
    if ((e->marks & SLOT_TOLD) == 0) {
        slot_release(s, slot);
        return;
    }
    *e = (struct stream_slot){
        .version = version, .to = to, .marks = SLOT_TOLD | SLOT_LEAVING, .reason = (uint8_t)reason};
    slot_set_add(&s->leaving, slot);
}

void stream_move(struct stream_writer *s, uint32_t slot, struct position position, uint8_t yaw)
{
    place_check(position);
    struct stream_slot *e = slot_of(s, slot);
    e->now = position;
    e->yaw_now = yaw;
    slot_set_add(&s->changed, slot);
}

void stream_touch_state(struct stream_writer *s, uint32_t slot)
{
    slot_of(s, slot)->marks |= SLOT_STATE;
    slot_set_add(&s->changed, slot);
}

void stream_touch_constants(struct stream_writer *s, uint32_t slot)
{
    slot_of(s, slot)->marks |= SLOT_CONSTANTS;
    slot_set_add(&s->changed, slot);
}

uint32_t stream_owner(const struct stream_writer *s, uint32_t slot)
{
    CHECK(slot < s->slot_end && (s->slots[slot].marks & SLOT_USED) != 0);
    return s->slots[slot].owner;
}

/* What the frame holds so far, or a little more: a code is counted with the most that it can take. */
static size_t frame_bytes(const struct frame_builder *f)
{
    size_t codes = (size_t)f->moved.count + f->turned.count + f->climbed.count;
    return FRAME_MARGIN + 5 * codes + f->moved_deltas.size + f->turned_yaws.size + f->climbed_deltas.size +
           f->left.size + f->entered.size + f->states.size + f->changed.size;
}

/* Whether an item of at most `bytes` still goes into the frame. Counts with the worst case until that runs out, and
 * only then looks at what was really written. */
static bool frame_fits(struct stream_writer *s, size_t bytes)
{
    if (s->budget < bytes) {
        size_t used = frame_bytes(&s->frame);
        s->budget = used < LIMIT_FRAME_BYTES ? LIMIT_FRAME_BYTES - used : 0;
        if (s->budget < bytes) return false;
    }
    s->budget -= bytes;
    return true;
}

static void tell_departures(struct stream_writer *s)
{
    for (uint32_t slot = 0; (slot = slot_set_next(&s->leaving, slot)) != SLOT_SET_NONE; slot++) {
        const struct stream_slot *e = &s->slots[slot];
        if (!frame_fits(s, LEFT_BYTES)) return;
        frame_builder_left(&s->frame, slot, (enum left_reason)e->reason, e->version, e->to);
        slot_set_remove(&s->leaving, slot);
        slot_release(s, slot);
        s->counters.left++;
    }
}

static bool tell_entered(struct stream_writer *s, uint32_t slot, stream_describe *describe, void *context)
{
    struct stream_slot *e = &s->slots[slot];
    struct entity_record record = {0};
    describe(context, e->owner, &record);
    CHECK(record.state_size <= LIMIT_STATE_BYTES);
    if (!frame_fits(s, ENTERED_BYTES + record.state_size)) return false;
    record.position = e->now;
    record.yaw = e->yaw_now;
    frame_builder_entered(&s->frame, slot, &record);
    e->told = e->now;
    e->yaw_told = e->yaw_now;
    e->marks = SLOT_USED | SLOT_TOLD;
    s->counters.entered++;
    return true;
}

static bool tell_place(struct stream_writer *s, uint32_t slot)
{
    struct stream_slot *e = &s->slots[slot];
    int32_t dx = e->now.x - e->told.x, dy = e->now.y - e->told.y, dz = e->now.z - e->told.z;
    if ((dx | dy) != 0) {
        if (!frame_fits(s, MOVED_BYTES)) return false;
        frame_builder_moved(&s->frame, slot, dx, dy);
        e->told.x = e->now.x;
        e->told.y = e->now.y;
        s->counters.moves++;
    }
    if (e->yaw_now != e->yaw_told) {
        if (!frame_fits(s, TURNED_BYTES)) return false;
        frame_builder_turned(&s->frame, slot, e->yaw_now);
        e->yaw_told = e->yaw_now;
    }
    if (dz != 0) {
        if (!frame_fits(s, CLIMBED_BYTES)) return false;
        frame_builder_climbed(&s->frame, slot, dz);
        e->told.z = e->now.z;
    }
    return true;
}

static bool tell_blobs(struct stream_writer *s, uint32_t slot, stream_describe *describe, void *context)
{
    struct stream_slot *e = &s->slots[slot];
    struct entity_record record = {0};
    describe(context, e->owner, &record);
    CHECK(record.state_size <= LIMIT_STATE_BYTES);
    if ((e->marks & SLOT_STATE) != 0) {
        if (!frame_fits(s, STATE_BYTES + record.state_size)) return false;
        frame_builder_state(&s->frame, slot, record.state, record.state_size);
        e->marks &= (uint8_t)~SLOT_STATE;
    }
    if ((e->marks & SLOT_CONSTANTS) != 0) {
        if (!frame_fits(s, CHANGED_BYTES)) return false;
        frame_builder_changed(&s->frame, slot, record.kind, record.flags, record.layer, record.radius);
        e->marks &= (uint8_t)~SLOT_CONSTANTS;
    }
    return true;
}

/* Whether all of the slot's changes went into the frame. */
static bool tell_slot(struct stream_writer *s, uint32_t slot, stream_describe *describe, void *context)
{
    uint8_t marks = s->slots[slot].marks;
    if ((marks & SLOT_TOLD) == 0) return tell_entered(s, slot, describe, context);
    if (!tell_place(s, slot)) return false;
    return (marks & (SLOT_STATE | SLOT_CONSTANTS)) == 0 || tell_blobs(s, slot, describe, context);
}

/* Tells the slots of `bits`, all of one word, in ascending order; returns those that were told. */
static uint64_t tell_word(struct stream_writer *s, uint32_t first, uint64_t bits, stream_describe *describe,
                          void *context)
{
    uint64_t told = 0;
    bool doors_shut = s->doors_shut;
    for (; bits != 0; bits &= bits - 1) {
        uint32_t slot = first + (uint32_t)__builtin_ctzll(bits);
        if (doors_shut && (s->slots[slot].marks & SLOT_TOLD) == 0) continue;
        if (!tell_slot(s, slot, describe, context)) {
            s->resume = slot;
            s->full = true;
            break;
        }
        told |= bits & -bits;
    }
    return told;
}

static void tell_changes(struct stream_writer *s, stream_describe *describe, void *context)
{
    uint32_t slot = s->resume;
    s->resume = 0;
    s->full = false;
    s->doors_shut = slot_set_next(&s->leaving, 0) != SLOT_SET_NONE;
    while (!s->full && (slot = slot_set_next(&s->changed, slot)) != SLOT_SET_NONE) {
        uint32_t first = slot & ~63u;
        uint64_t bits = slot_set_word(&s->changed, slot) >> (slot & 63) << (slot & 63);
        slot_set_take(&s->changed, slot, tell_word(s, first, bits, describe, context));
        slot = first + 64;
    }
}

static bool beat_due(const struct stream_writer *s, uint64_t tick, uint32_t beat_ticks)
{
    return beat_ticks > 0 && tick >= s->spoke_tick && tick - s->spoke_tick >= beat_ticks;
}

bool stream_publish(struct stream_writer *s, uint64_t tick, uint32_t beat_ticks, stream_describe *describe,
                    void *context, struct writer *w)
{
    if (!s->spoken) s->spoke_tick = tick;
    s->spoken = true;
    frame_builder_clear(&s->frame);
    s->budget = LIMIT_FRAME_BYTES - FRAME_MARGIN;
    tell_departures(s);
    tell_changes(s, describe, context);
    bool beat = frame_builder_empty(&s->frame);
    if (beat && !beat_due(s, tick, beat_ticks)) return false;
    size_t before = w->size;
    if (!beat) s->seq++;
    topic_write(w, s->kind, s->leaf);
    frame_builder_write(&s->frame, s->epoch, s->seq, tick, w);
    CHECK(w->size - before <= LIMIT_FRAME_BYTES);
    s->spoke_tick = tick;
    s->counters.frames += !beat;
    s->counters.beats += beat;
    s->counters.bytes += w->size - before;
    return true;
}

uint32_t stream_count(const struct stream_writer *s)
{
    return s->count;
}

uint64_t stream_seq(const struct stream_writer *s)
{
    return s->seq;
}

uint32_t stream_epoch(const struct stream_writer *s)
{
    return s->epoch;
}

const struct stream_counters *stream_counters(const struct stream_writer *s)
{
    return &s->counters;
}
