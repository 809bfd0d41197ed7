#include "tests/vectors/vectors.h"

#include "common/check.h"

static void codes_fields(const struct slot_iterator *slots, struct text *t)
{
    struct cursor codes = slots->codes;
    text_open(t, "codes", '[');
    for (uint32_t i = 0; i < slots->codes_left; i++) text_int(t, NULL, cursor_int(&codes, INT32_MIN, INT32_MAX));
    text_close(t, ']');
    CHECK(cursor_end(&codes) == TERRANE_ERR_OK);
}

static void column_fields(struct cursor column, const char *key, uint32_t count, struct text *t)
{
    text_open(t, key, '[');
    for (uint32_t i = 0; i < count; i++) text_int(t, NULL, cursor_int(&column, INT64_MIN, INT64_MAX));
    text_close(t, ']');
    CHECK(cursor_end(&column) == TERRANE_ERR_OK);
}

static void section_open(struct text *t, enum frame_section section, bool items)
{
    text_open(t, NULL, '{');
    text_uint(t, "section", (uint64_t)section);
    if (items) text_open(t, "items", '[');
}

static void section_close(struct text *t, bool items)
{
    if (items) text_close(t, ']');
    text_close(t, '}');
}

static void left_fields(struct frame *f, struct text *t)
{
    uint32_t slot, seen = 0;
    enum left_reason reason;
    uint64_t version;
    struct quadkey to;
    section_open(t, SECTION_LEFT, true);
    while (frame_next_left(f, &slot, &reason, &version, &to)) {
        seen++;
        text_open(t, NULL, '{');
        text_uint(t, "slot", slot);
        text_uint(t, "reason", (uint64_t)reason);
        if (reason == LEFT_MOVED) {
            text_uint(t, "version", version);
            text_quadkey(t, "leaf", to);
        }
        text_close(t, '}');
    }
    section_close(t, true);
    CHECK(seen == f->left_count);
}

static void entered_fields(struct frame *f, struct text *t)
{
    uint32_t slot, seen = 0;
    struct entity_record record;
    section_open(t, SECTION_ENTERED, true);
    while (frame_next_entered(f, &slot, &record)) {
        seen++;
        text_open(t, NULL, '{');
        text_uint(t, "slot", slot);
        text_record(t, "record", &record);
        text_close(t, '}');
    }
    section_close(t, true);
    CHECK(seen == f->entered_count);
}

static void state_fields(struct frame *f, struct text *t)
{
    uint32_t slot, size, seen = 0;
    const uint8_t *state;
    section_open(t, SECTION_STATE, true);
    while (frame_next_state(f, &slot, &state, &size)) {
        seen++;
        text_open(t, NULL, '{');
        text_uint(t, "slot", slot);
        text_bin(t, "state", state, size);
        text_close(t, '}');
    }
    section_close(t, true);
    CHECK(seen == f->state_count);
}

static void changed_fields(struct frame *f, struct text *t)
{
    uint32_t slot, kind, flags, radius, seen = 0;
    uint16_t layer;
    section_open(t, SECTION_CHANGED, true);
    while (frame_next_changed(f, &slot, &kind, &flags, &layer, &radius)) {
        seen++;
        text_open(t, NULL, '{');
        text_uint(t, "slot", slot);
        text_uint(t, "kind", kind);
        text_uint(t, "flags", flags);
        text_uint(t, "layer", layer);
        text_uint(t, "radius", radius);
        text_close(t, '}');
    }
    section_close(t, true);
    CHECK(seen == f->changed_count);
}

static void columns_fields(struct frame *f, struct text *t)
{
    if (f->turned_count > 0) {
        section_open(t, SECTION_TURNED, false);
        codes_fields(&f->turned, t);
        column_fields(f->turned_yaws, "yaws", f->turned_count, t);
        section_close(t, false);
    }
    if (f->climbed_count > 0) {
        section_open(t, SECTION_CLIMBED, false);
        codes_fields(&f->climbed, t);
        column_fields(f->climbed_deltas, "deltas", f->climbed_count, t);
        section_close(t, false);
    }
}

/* Walks the columns slot by slot: they must be as long as the codes say. */
static void columns_walk(struct frame *f)
{
    uint32_t slot, moved = 0, turned = 0, climbed = 0;
    int32_t dx, dy, dz;
    uint8_t yaw;
    while (frame_next_moved(f, &slot, &dx, &dy)) moved++;
    while (frame_next_turned(f, &slot, &yaw)) turned++;
    while (frame_next_climbed(f, &slot, &dz)) climbed++;
    CHECK(moved == f->moved_count && turned == f->turned_count && climbed == f->climbed_count);
    CHECK(cursor_end(&f->moved_deltas) == TERRANE_ERR_OK && cursor_end(&f->turned_yaws) == TERRANE_ERR_OK);
    CHECK(cursor_end(&f->climbed_deltas) == TERRANE_ERR_OK);
}

enum terrane_error frame_fields(const uint8_t *bytes, size_t size, struct text *t)
{
    struct topic topic;
    struct frame frame;
    enum terrane_error error = topic_decode(bytes, size, &topic);
    if (error == TERRANE_ERR_OK) error = frame_decode(bytes + topic.size, size - topic.size, &frame);
    if (error != TERRANE_ERR_OK) return error;
    text_open(t, NULL, '{');
    text_uint(t, "epoch", frame.epoch);
    text_uint(t, "seq", frame.seq);
    text_uint(t, "tick", frame.tick);
    codes_fields(&frame.moved, t);
    column_fields(frame.moved_deltas, "deltas", 2 * frame.moved_count, t);
    text_open(t, "sections", '[');
    if (frame.left_count > 0) left_fields(&frame, t);
    if (frame.entered_count > 0) entered_fields(&frame, t);
    columns_fields(&frame, t);
    if (frame.state_count > 0) state_fields(&frame, t);
    if (frame.changed_count > 0) changed_fields(&frame, t);
    text_close(t, ']');
    text_close(t, '}');
    columns_walk(&frame);
    return TERRANE_ERR_OK;
}
