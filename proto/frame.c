#include "proto/frame.h"

#include "common/geometry.h"

#include <string.h>

#define DELTA_MAX ((int64_t)POSITION_END - 1)
#define CLIMB_MAX (2 * (int64_t)HEIGHT_END - 1)

void position_write(struct writer *w, struct position position)
{
    writer_int(w, position.x);
    writer_int(w, position.y);
    writer_int(w, position.z);
}

struct position position_read(struct cursor *c)
{
    struct position p;
    p.x = (int32_t)cursor_int(c, 0, POSITION_END - 1);
    p.y = (int32_t)cursor_int(c, 0, POSITION_END - 1);
    p.z = (int32_t)cursor_int(c, -HEIGHT_END, HEIGHT_END - 1);
    return p;
}

struct quadkey quadkey_read(struct cursor *c)
{
    uint64_t v = cursor_uint(c, UINT64_MAX);
    if (!quadkey_valid(v)) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    return (struct quadkey){v};
}

void entity_record_write(struct writer *w, const struct entity_record *record)
{
    writer_array(w, 11);
    writer_uint(w, record->id.v);
    writer_uint(w, record->version);
    writer_uint(w, record->kind);
    writer_uint(w, record->flags);
    writer_uint(w, record->layer);
    position_write(w, record->position);
    writer_uint(w, record->yaw);
    writer_uint(w, record->radius);
    writer_bin(w, record->state, record->state_size);
}

void entity_record_read(struct cursor *c, struct entity_record *out)
{
    (void)cursor_array(c, 11, 11);
    out->id.v = cursor_uint(c, UINT64_MAX);
    if (out->id.v == 0) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    out->version = cursor_uint(c, VERSION_MAX);
    out->kind = (uint32_t)cursor_uint(c, UINT32_MAX);
    out->flags = (uint32_t)cursor_uint(c, UINT32_MAX);
    out->layer = (uint16_t)cursor_uint(c, UINT16_MAX);
    out->position = position_read(c);
    out->yaw = (uint8_t)cursor_uint(c, UINT8_MAX);
    out->radius = (uint32_t)cursor_uint(c, INT32_MAX);
    out->state_size = (uint32_t)cursor_bin(c, LIMIT_STATE_BYTES, &out->state);
}

struct slot_iterator slot_iterator_of(struct cursor codes, uint32_t count)
{
    return (struct slot_iterator){.codes = codes, .codes_left = count, .slot = -1};
}

bool slot_iterator_next(struct slot_iterator *it, uint32_t *slot)
{
    if (it->run_left > 0) {
        it->run_left--;
        *slot = (uint32_t)++it->slot;
        return true;
    }
    if (it->codes_left == 0) return false;
    it->codes_left--;
    int64_t code = cursor_int(&it->codes, -(int64_t)LIMIT_ENTITIES, (int64_t)LIMIT_ENTITIES - 1);
    if (it->codes.error != TERRANE_ERR_OK) return false;
    if (code >= 0)
        it->slot += code + 1;
    else {
        it->slot++;
        it->run_left = (uint32_t)(-code - 1);
    }
    *slot = (uint32_t)it->slot;
    return true;
}

enum terrane_error topic_decode(const uint8_t *bytes, size_t size, struct topic *out)
{
    if (size < 3) return TERRANE_ERR_MESSAGE_TRUNCATED;
    if ((bytes[0] != STREAM_REGION && bytes[0] != STREAM_GHOST) || bytes[1] != '/') return TERRANE_ERR_MESSAGE_UNKNOWN;
    size_t most = size - 2 < LIMIT_QUADKEY_TEXT ? size - 2 : LIMIT_QUADKEY_TEXT;
    const uint8_t *slash = memchr(bytes + 2, '/', most);
    if (slash == NULL) return most < LIMIT_QUADKEY_TEXT ? TERRANE_ERR_MESSAGE_TRUNCATED : TERRANE_ERR_QUADKEY_INVALID;
    out->kind = (enum stream_kind)bytes[0];
    out->size = (size_t)(slash - bytes) + 1;
    return quadkey_parse((const char *)bytes + 2, (size_t)(slash - bytes) - 2, &out->leaf);
}

void topic_write(struct writer *w, enum stream_kind kind, struct quadkey leaf)
{
    char text[LIMIT_QUADKEY_TEXT + 3] = {(char)kind, '/'};
    quadkey_text(leaf, text + 2);
    size_t size = strlen(text);
    text[size++] = '/';
    writer_raw(w, text, size);
}

static uint32_t slot_read(struct cursor *c)
{
    return (uint32_t)cursor_uint(c, LIMIT_ENTITIES - 1);
}

/* An array of slot codes; how many slots they take. */
static uint32_t codes_read(struct cursor *c, struct slot_iterator *out)
{
    uint32_t count = cursor_array(c, 0, LIMIT_ENTITIES);
    *out = slot_iterator_of(*c, count);
    int64_t slot = -1, taken = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t code = cursor_int(c, -(int64_t)LIMIT_ENTITIES, (int64_t)LIMIT_ENTITIES - 1);
        slot += code >= 0 ? code + 1 : -code;
        taken += code >= 0 ? 1 : -code;
        if (slot >= (int64_t)LIMIT_ENTITIES) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
        if (c->error != TERRANE_ERR_OK) return 0;
    }
    out->codes.end = c->at;
    return (uint32_t)taken;
}

/* An array of exactly `count` integers in [min, max]. */
static struct cursor column_read(struct cursor *c, uint32_t count, int64_t min, int64_t max)
{
    (void)cursor_array(c, count, count);
    struct cursor column = *c;
    for (uint32_t i = 0; i < count && c->error == TERRANE_ERR_OK; i++) (void)cursor_int(c, min, max);
    column.end = c->at;
    return column;
}

/* [slot, reason] or [slot, LEFT_MOVED, version, quadkey] */
static void left_read(struct cursor *c, uint32_t *slot, enum left_reason *reason, uint64_t *version, struct quadkey *to)
{
    uint32_t fields = cursor_array(c, 2, 4);
    *slot = slot_read(c);
    *reason = (enum left_reason)cursor_uint(c, LEFT_STRIP);
    *version = 0;
    *to = QUADKEY_NONE;
    if (fields != (*reason == LEFT_MOVED ? 4u : 2u)) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    if (fields != 4) return;
    *version = cursor_uint(c, VERSION_MAX);
    *to = quadkey_read(c);
}

static void entered_read(struct cursor *c, uint32_t *slot, struct entity_record *record)
{
    (void)cursor_array(c, 2, 2);
    *slot = slot_read(c);
    entity_record_read(c, record);
}

static void state_read(struct cursor *c, uint32_t *slot, const uint8_t **state, uint32_t *size)
{
    (void)cursor_array(c, 2, 2);
    *slot = slot_read(c);
    *size = (uint32_t)cursor_bin(c, LIMIT_STATE_BYTES, state);
}

static void changed_read(struct cursor *c, uint32_t *slot, uint32_t *kind, uint32_t *flags, uint16_t *layer,
                         uint32_t *radius)
{
    (void)cursor_array(c, 5, 5);
    *slot = slot_read(c);
    *kind = (uint32_t)cursor_uint(c, UINT32_MAX);
    *flags = (uint32_t)cursor_uint(c, UINT32_MAX);
    *layer = (uint16_t)cursor_uint(c, UINT16_MAX);
    *radius = (uint32_t)cursor_uint(c, INT32_MAX);
}

/* Walks the items of an item section once, checking them; returns the cursor over them. */
static struct cursor items_read(struct cursor *c, enum frame_section section, uint32_t count)
{
    struct cursor items = *c;
    uint32_t slot, word;
    enum left_reason reason;
    uint64_t version;
    uint16_t layer;
    struct quadkey to;
    struct entity_record record;
    const uint8_t *state;
    for (uint32_t i = 0; i < count && c->error == TERRANE_ERR_OK; i++) {
        switch (section) {
        case SECTION_LEFT: left_read(c, &slot, &reason, &version, &to); break;
        case SECTION_ENTERED: entered_read(c, &slot, &record); break;
        case SECTION_STATE: state_read(c, &slot, &state, &word); break;
        case SECTION_CHANGED: changed_read(c, &slot, &word, &word, &layer, &word); break;
        case SECTION_TURNED:
        case SECTION_CLIMBED:
        default: cursor_fail(c, TERRANE_ERR_MESSAGE_UNKNOWN);
        }
    }
    items.end = c->at;
    return items;
}

static void section_read(struct cursor *c, enum frame_section section, uint32_t count, struct frame *out)
{
    switch (section) {
    case SECTION_LEFT:
        out->left_count = count;
        out->left = items_read(c, section, count);
        break;
    case SECTION_ENTERED:
        out->entered_count = count;
        out->entered = items_read(c, section, count);
        break;
    case SECTION_TURNED:
        out->turned_count = codes_read(c, &out->turned);
        out->turned_yaws = column_read(c, out->turned_count, 0, UINT8_MAX);
        break;
    case SECTION_CLIMBED:
        out->climbed_count = codes_read(c, &out->climbed);
        out->climbed_deltas = column_read(c, out->climbed_count, -CLIMB_MAX, CLIMB_MAX);
        break;
    case SECTION_STATE:
        out->state_count = count;
        out->states = items_read(c, section, count);
        break;
    case SECTION_CHANGED:
        out->changed_count = count;
        out->changed = items_read(c, section, count);
        break;
    default: cursor_fail(c, TERRANE_ERR_MESSAGE_UNKNOWN);
    }
}

enum terrane_error frame_decode(const uint8_t *body, size_t size, struct frame *out)
{
    if (size > LIMIT_FRAME_BYTES) return TERRANE_ERR_MESSAGE_TOO_LARGE;
    *out = (struct frame){0};
    struct cursor c = cursor_of(body, size);
    uint32_t fields = cursor_array(&c, 5, 5 + SECTION_CHANGED);
    out->epoch = (uint32_t)cursor_uint(&c, UINT32_MAX);
    out->seq = cursor_uint(&c, INT64_MAX);
    out->tick = cursor_uint(&c, INT64_MAX);
    out->moved_count = codes_read(&c, &out->moved);
    out->moved_deltas = column_read(&c, 2 * out->moved_count, -DELTA_MAX, DELTA_MAX);
    uint32_t before = 0;
    for (uint32_t i = 5; i < fields && c.error == TERRANE_ERR_OK; i++) {
        uint32_t items = cursor_array(&c, 2, UINT32_MAX);
        uint32_t section = (uint32_t)cursor_uint(&c, SECTION_CHANGED);
        bool columns = section == SECTION_TURNED || section == SECTION_CLIMBED;
        if (section <= before || (columns && items != 3)) cursor_fail(&c, TERRANE_ERR_MESSAGE_RANGE);
        if (c.error != TERRANE_ERR_OK) break;
        section_read(&c, (enum frame_section)section, items - 1, out);
        before = section;
    }
    return cursor_end(&c);
}

bool frame_is_beat(const struct frame *frame)
{
    return frame->moved_count == 0 && frame->left_count == 0 && frame->entered_count == 0 && frame->turned_count == 0 &&
           frame->climbed_count == 0 && frame->state_count == 0 && frame->changed_count == 0;
}

static bool list_more(const struct cursor *c)
{
    return c->at < c->end;
}

bool frame_next_left(struct frame *f, uint32_t *slot, enum left_reason *reason, uint64_t *version, struct quadkey *to)
{
    if (!list_more(&f->left)) return false;
    left_read(&f->left, slot, reason, version, to);
    return f->left.error == TERRANE_ERR_OK;
}

bool frame_next_entered(struct frame *f, uint32_t *slot, struct entity_record *record)
{
    if (!list_more(&f->entered)) return false;
    entered_read(&f->entered, slot, record);
    return f->entered.error == TERRANE_ERR_OK;
}

bool frame_next_moved(struct frame *f, uint32_t *slot, int32_t *dx, int32_t *dy)
{
    if (!slot_iterator_next(&f->moved, slot)) return false;
    *dx = (int32_t)cursor_int(&f->moved_deltas, -DELTA_MAX, DELTA_MAX);
    *dy = (int32_t)cursor_int(&f->moved_deltas, -DELTA_MAX, DELTA_MAX);
    return true;
}

bool frame_next_turned(struct frame *f, uint32_t *slot, uint8_t *yaw)
{
    if (!slot_iterator_next(&f->turned, slot)) return false;
    *yaw = (uint8_t)cursor_int(&f->turned_yaws, 0, UINT8_MAX);
    return true;
}

bool frame_next_climbed(struct frame *f, uint32_t *slot, int32_t *dz)
{
    if (!slot_iterator_next(&f->climbed, slot)) return false;
    *dz = (int32_t)cursor_int(&f->climbed_deltas, -CLIMB_MAX, CLIMB_MAX);
    return true;
}

bool frame_next_state(struct frame *f, uint32_t *slot, const uint8_t **state, uint32_t *size)
{
    if (!list_more(&f->states)) return false;
    state_read(&f->states, slot, state, size);
    return f->states.error == TERRANE_ERR_OK;
}

bool frame_next_changed(struct frame *f, uint32_t *slot, uint32_t *kind, uint32_t *flags, uint16_t *layer,
                        uint32_t *radius)
{
    if (!list_more(&f->changed)) return false;
    changed_read(&f->changed, slot, kind, flags, layer, radius);
    return f->changed.error == TERRANE_ERR_OK;
}
