#include "common/array.h"
#include "common/check.h"
#include "proto/frame.h"

#include <stdlib.h>

/* The longest run that costs one byte; a longer one costs as much as two codes, so it is cut here. */
#define RUN_MAX 32

void slot_codes_clear(struct slot_codes *codes)
{
    codes->count = 0;
    codes->last = -1;
}

void slot_codes_close(struct slot_codes *codes)
{
    free(codes->codes);
    *codes = (struct slot_codes){0};
}

void slot_codes_add(struct slot_codes *codes, uint32_t slot)
{
    int64_t last = codes->count == 0 ? -1 : codes->last;
    CHECK((int64_t)slot > last && slot < LIMIT_ENTITIES);
    int64_t gap = (int64_t)slot - last - 1;
    codes->last = slot;
    if (gap == 0 && codes->count > 0) {
        int32_t *code = &codes->codes[codes->count - 1];
        if (*code < 0 && *code > -RUN_MAX) {
            (*code)--;
            return;
        }
    }
    if (codes->count == codes->room) ARRAY_RESERVE(codes->codes, codes->room, codes->count + 1u);
    codes->codes[codes->count++] = gap == 0 ? -1 : (int32_t)gap;
}

void slot_codes_write(const struct slot_codes *codes, struct writer *w)
{
    writer_array(w, codes->count);
    for (uint32_t i = 0; i < codes->count; i++) writer_int(w, codes->codes[i]);
}

void frame_builder_close(struct frame_builder *b)
{
    slot_codes_close(&b->moved);
    slot_codes_close(&b->turned);
    slot_codes_close(&b->climbed);
    writer_close(&b->moved_deltas);
    writer_close(&b->turned_yaws);
    writer_close(&b->climbed_deltas);
    writer_close(&b->left);
    writer_close(&b->entered);
    writer_close(&b->states);
    writer_close(&b->changed);
    *b = (struct frame_builder){0};
}

void frame_builder_clear(struct frame_builder *b)
{
    slot_codes_clear(&b->moved);
    slot_codes_clear(&b->turned);
    slot_codes_clear(&b->climbed);
    writer_clear(&b->moved_deltas);
    writer_clear(&b->turned_yaws);
    writer_clear(&b->climbed_deltas);
    writer_clear(&b->left);
    writer_clear(&b->entered);
    writer_clear(&b->states);
    writer_clear(&b->changed);
    b->moved_count = b->turned_count = b->climbed_count = 0;
    b->left_count = b->entered_count = b->state_count = b->changed_count = 0;
}

bool frame_builder_empty(const struct frame_builder *b)
{
    return (b->moved_count | b->turned_count | b->climbed_count | b->left_count | b->entered_count | b->state_count |
            b->changed_count) == 0;
}

void frame_builder_moved(struct frame_builder *b, uint32_t slot, int32_t dx, int32_t dy)
{
    slot_codes_add(&b->moved, slot);
    writer_int(&b->moved_deltas, dx);
    writer_int(&b->moved_deltas, dy);
    b->moved_count++;
}

void frame_builder_turned(struct frame_builder *b, uint32_t slot, uint8_t yaw)
{
    slot_codes_add(&b->turned, slot);
    writer_uint(&b->turned_yaws, yaw);
    b->turned_count++;
}

void frame_builder_climbed(struct frame_builder *b, uint32_t slot, int32_t dz)
{
    slot_codes_add(&b->climbed, slot);
    writer_int(&b->climbed_deltas, dz);
    b->climbed_count++;
}

void frame_builder_left(struct frame_builder *b, uint32_t slot, enum left_reason reason, uint64_t version,
                        struct quadkey to)
{
    bool moved = reason == LEFT_MOVED;
    writer_array(&b->left, moved ? 4 : 2);
    writer_uint(&b->left, slot);
    writer_uint(&b->left, (uint64_t)reason);
    if (moved) {
        writer_uint(&b->left, version);
        writer_uint(&b->left, to.v);
    }
    b->left_count++;
}

void frame_builder_entered(struct frame_builder *b, uint32_t slot, const struct entity_record *record)
{
    writer_array(&b->entered, 2);
    writer_uint(&b->entered, slot);
    entity_record_write(&b->entered, record);
    b->entered_count++;
}

void frame_builder_state(struct frame_builder *b, uint32_t slot, const uint8_t *state, uint32_t size)
{
    writer_array(&b->states, 2);
    writer_uint(&b->states, slot);
    writer_bin(&b->states, state, size);
    b->state_count++;
}

void frame_builder_changed(struct frame_builder *b, uint32_t slot, uint32_t kind, uint32_t flags, uint16_t layer,
                           uint32_t radius)
{
    writer_array(&b->changed, 5);
    writer_uint(&b->changed, slot);
    writer_uint(&b->changed, kind);
    writer_uint(&b->changed, flags);
    writer_uint(&b->changed, layer);
    writer_uint(&b->changed, radius);
    b->changed_count++;
}

/* A section of `count` items that are written already; nothing if there are none. */
static void items_write(struct writer *w, enum frame_section number, uint32_t count, const struct writer *items)
{
    if (count == 0) return;
    writer_array(w, count + 1);
    writer_uint(w, number);
    writer_raw(w, items->data, items->size);
}

/* A section of slots and a value for each. */
static void column_write(struct writer *w, enum frame_section number, uint32_t count, const struct slot_codes *codes,
                         const struct writer *values)
{
    if (count == 0) return;
    writer_array(w, 3);
    writer_uint(w, number);
    slot_codes_write(codes, w);
    writer_array(w, count);
    writer_raw(w, values->data, values->size);
}

void frame_builder_write(const struct frame_builder *b, uint32_t epoch, uint64_t seq, uint64_t tick, struct writer *w)
{
    uint32_t sections = (uint32_t)(b->left_count > 0) + (b->entered_count > 0) + (b->turned_count > 0) +
                        (b->climbed_count > 0) + (b->state_count > 0) + (b->changed_count > 0);
    writer_array(w, 5 + sections);
    writer_uint(w, epoch);
    writer_uint(w, seq);
    writer_uint(w, tick);
    slot_codes_write(&b->moved, w);
    writer_array(w, 2 * b->moved_count);
    writer_raw(w, b->moved_deltas.data, b->moved_deltas.size);
    items_write(w, SECTION_LEFT, b->left_count, &b->left);
    items_write(w, SECTION_ENTERED, b->entered_count, &b->entered);
    column_write(w, SECTION_TURNED, b->turned_count, &b->turned, &b->turned_yaws);
    column_write(w, SECTION_CLIMBED, b->climbed_count, &b->climbed, &b->climbed_deltas);
    items_write(w, SECTION_STATE, b->state_count, &b->states);
    items_write(w, SECTION_CHANGED, b->changed_count, &b->changed);
}
