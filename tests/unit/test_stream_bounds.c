/* The publishing side at its limits: frames that are full, snapshots in parts, large leaves. */
#include "tests/unit/stream_kit.h"
#include "tests/unit/suite.h"

#include "common/array.h"

/* Many entities with states of any size; the state is a run of a byte that tells whose it is. */
struct crowd {
    struct stream_writer *stream;
    uint32_t count, state_size;
    uint32_t *slots;
    struct position *positions;
    uint8_t *state;
    struct writer out;
    uint64_t tick;
};

static void crowd_describe(void *context, uint32_t owner, struct entity_record *out)
{
    struct crowd *c = context;
    *out = kit_record(owner + 1, 1, 0, 0);
    out->position = c->positions[owner];
    memset(c->state, (int)(owner & 0xff), c->state_size);
    out->state = c->state;
    out->state_size = c->state_size;
}

static struct crowd *crowd_open(uint32_t count, uint32_t state_size)
{
    struct crowd *c = calloc(1, sizeof *c);
    c->stream = stream_writer_open(STREAM_GHOST, QUADKEY_ROOT, 1);
    c->count = count;
    c->state_size = state_size;
    c->slots = calloc(count, sizeof *c->slots);
    c->positions = calloc(count, sizeof *c->positions);
    c->state = calloc(1, LIMIT_STATE_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        struct entity_record record;
        c->positions[i] = (struct position){(int32_t)i, (int32_t)i, 0};
        crowd_describe(c, i, &record);
        c->slots[i] = stream_enter(c->stream, i, &record);
    }
    return c;
}

static void crowd_close(struct crowd *c)
{
    stream_writer_close(c->stream);
    writer_close(&c->out);
    free(c->slots);
    free(c->positions);
    free(c->state);
    free(c);
}

/* The next frame, whose size is bounded. */
static bool crowd_publish(struct crowd *c, struct frame *f)
{
    writer_clear(&c->out);
    if (!stream_publish(c->stream, ++c->tick, 0, crowd_describe, c, &c->out)) return false;
    ck_assert_uint_le(c->out.size, LIMIT_FRAME_BYTES);
    struct topic topic;
    ck_assert_int_eq(topic_decode(c->out.data, c->out.size, &topic), TERRANE_ERR_OK);
    ck_assert_int_eq(frame_decode(c->out.data + topic.size, c->out.size - topic.size, f), TERRANE_ERR_OK);
    return true;
}

static void crowd_move(struct crowd *c, uint32_t owner, int32_t dx)
{
    c->positions[owner].x += dx;
    stream_move(c->stream, c->slots[owner], c->positions[owner], 0);
}

START_TEST(a_mass_enter_with_large_states_is_spread_over_frames)
{
    struct crowd *c = crowd_open(300, LIMIT_STATE_BYTES);
    uint32_t entered = 0, frames = 0;
    struct frame f;
    while (crowd_publish(c, &f)) {
        uint32_t slot;
        struct entity_record record;
        while (frame_next_entered(&f, &slot, &record)) {
            ck_assert_uint_eq(record.id.v, entered + 1);
            ck_assert_uint_eq(record.state_size, LIMIT_STATE_BYTES);
            ck_assert_uint_eq(record.state[LIMIT_STATE_BYTES - 1], entered & 0xff);
            entered++;
        }
        frames++;
    }
    ck_assert_uint_eq(entered, 300);
    ck_assert_uint_eq(frames, 5); /* 63 a frame */
    ck_assert_uint_eq(stream_seq(c->stream), 5);
    crowd_close(c);
}
END_TEST

START_TEST(who_waits_for_a_full_frame_is_not_starved_by_who_changes_every_tick)
{
    struct crowd *c = crowd_open(200, LIMIT_STATE_BYTES);
    struct frame f;
    while (crowd_publish(c, &f)) continue;
    uint32_t told[200] = {0};
    for (uint32_t round = 0; round < 12; round++) {
        for (uint32_t i = 0; i < c->count; i++) stream_touch_state(c->stream, c->slots[i]);
        ck_assert(crowd_publish(c, &f));
        uint32_t slot, size;
        const uint8_t *state;
        while (frame_next_state(&f, &slot, &state, &size)) told[slot]++;
    }
    for (uint32_t i = 0; i < c->count; i++) ck_assert_uint_ge(told[i], 2);
    crowd_close(c);
}
END_TEST

START_TEST(mass_departures_are_spread_and_nobody_enters_before_them)
{
    const uint32_t count = 200000;
    struct crowd *c = crowd_open(count, 0);
    struct frame f;
    while (crowd_publish(c, &f)) continue;
    for (uint32_t i = 0; i < count; i++)
        stream_leave(c->stream, c->slots[i], LEFT_MOVED, UINT64_C(1) << 50, QUADKEY_ROOT);
    ck_assert_uint_eq(stream_count(c->stream), 0);
    struct entity_record record;
    crowd_describe(c, 0, &record);
    c->slots[0] = stream_enter(c->stream, 0, &record);
    uint64_t left = 0, entered = 0, frames = 0;
    for (; crowd_publish(c, &f); frames++) {
        left += f.left_count;
        entered += f.entered_count;
        ck_assert(f.entered_count == 0 || left == count);
    }
    ck_assert_uint_gt(frames, 1);
    ck_assert_uint_eq(left, count);
    ck_assert_uint_eq(entered, 1);
    crowd_close(c);
}
END_TEST

START_TEST(a_hundred_thousand_walkers_fit_one_frame)
{
    const uint32_t count = 100000;
    struct crowd *c = crowd_open(count, 0);
    struct frame f;
    while (crowd_publish(c, &f)) continue;
    for (uint32_t i = 0; i < count; i++) crowd_move(c, i, 7);
    ck_assert(crowd_publish(c, &f));
    ck_assert_uint_eq(f.moved_count, count);
    ck_assert_uint_lt(c->out.size, 3 * count);
    ck_assert(!crowd_publish(c, &f));
    crowd_close(c);
}
END_TEST

struct pages {
    uint32_t parts, items, next_slot;
    const struct crowd *crowd;
};

static void page_take(void *context, const void *message, size_t size)
{
    struct pages *p = context;
    struct snapshot part;
    ck_assert_uint_le(size, LIMIT_MESSAGE_BYTES);
    ck_assert_int_eq(snapshot_decode(cursor_of(message, size), &part), TERRANE_ERR_OK);
    ck_assert_uint_eq(part.part, p->parts++);
    uint32_t slot;
    struct entity_record record;
    while (snapshot_next(&part, &slot, &record)) {
        ck_assert_uint_eq(slot, p->next_slot++);
        ck_assert_uint_eq(record.id.v, slot + 1);
        ck_assert_uint_eq(record.state_size, p->crowd->state_size);
        p->items++;
    }
    ck_assert_uint_ge(part.parts, p->parts);
}

START_TEST(a_large_snapshot_comes_in_parts_that_fit_a_message)
{
    const uint32_t sizes[] = {0, 1, 100, 5000, LIMIT_STATE_BYTES};
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct crowd *c = crowd_open(3000, sizes[i]);
        struct frame f;
        while (crowd_publish(c, &f)) continue;
        struct pages pages = {.crowd = c};
        stream_snapshot(c->stream, c->tick, crowd_describe, c, page_take, &pages);
        ck_assert_uint_eq(pages.items, 3000);
        ck_assert_uint_gt(pages.parts, 1);
        crowd_close(c);
    }
}
END_TEST

START_TEST(the_snapshot_of_an_empty_stream_is_one_empty_part)
{
    struct crowd *c = crowd_open(0, 0);
    struct pages pages = {.crowd = c};
    stream_snapshot(c->stream, 1, crowd_describe, c, page_take, &pages);
    ck_assert_uint_eq(pages.parts, 1);
    ck_assert_uint_eq(pages.items, 0);
    crowd_close(c);
}
END_TEST

START_TEST(a_snapshot_says_what_was_published_not_what_is_true_now)
{
    struct crowd *c = crowd_open(130, LIMIT_STATE_BYTES);
    struct frame f;
    ck_assert(crowd_publish(c, &f));
    uint32_t first = f.entered_count;
    ck_assert_uint_lt(first, 130);
    crowd_move(c, 0, 1000);
    struct writer w = {0};
    stream_snapshot_from(c->stream, c->tick, 0, crowd_describe, c, &w);
    struct snapshot part;
    ck_assert_int_eq(snapshot_decode(cursor_of(w.data, w.size), &part), TERRANE_ERR_OK);
    uint32_t slot;
    struct entity_record record;
    ck_assert(snapshot_next(&part, &slot, &record));
    ck_assert_int_eq(record.position.x, 0);
    struct pages pages = {.crowd = c};
    stream_snapshot(c->stream, c->tick, crowd_describe, c, page_take, &pages);
    ck_assert_uint_eq(pages.items, first);
    writer_close(&w);
    crowd_close(c);
}
END_TEST

START_TEST(a_snapshot_can_be_read_page_by_page)
{
    struct crowd *c = crowd_open(5000, 30);
    struct frame f;
    while (crowd_publish(c, &f)) continue;
    uint32_t from = 0, items = 0, pages = 0, last = 0;
    struct snapshot part;
    struct writer w = {0};
    do {
        writer_clear(&w);
        stream_snapshot_from(c->stream, c->tick, from, crowd_describe, c, &w);
        ck_assert_uint_le(w.size, LIMIT_MESSAGE_BYTES);
        ck_assert_int_eq(snapshot_decode(cursor_of(w.data, w.size), &part), TERRANE_ERR_OK);
        struct entity_record record;
        while (snapshot_next(&part, &last, &record)) items++;
        from = last + 1;
        pages++;
    } while (part.parts > 1);
    ck_assert_uint_eq(items, 5000);
    ck_assert_uint_gt(pages, 1);
    writer_clear(&w);
    stream_snapshot_from(c->stream, c->tick, 1000000, crowd_describe, c, &w);
    ck_assert_int_eq(snapshot_decode(cursor_of(w.data, w.size), &part), TERRANE_ERR_OK);
    ck_assert(part.count == 0 && part.parts == 1);
    writer_close(&w);
    crowd_close(c);
}
END_TEST

SUITE_MAIN("stream_bounds", a_mass_enter_with_large_states_is_spread_over_frames,
           who_waits_for_a_full_frame_is_not_starved_by_who_changes_every_tick,
           mass_departures_are_spread_and_nobody_enters_before_them, a_hundred_thousand_walkers_fit_one_frame,
           a_large_snapshot_comes_in_parts_that_fit_a_message, the_snapshot_of_an_empty_stream_is_one_empty_part,
           a_snapshot_says_what_was_published_not_what_is_true_now, a_snapshot_can_be_read_page_by_page)
