/* Frames: slot codes, columns, sections, sizes. */
#include "common/geometry.h"
#include "proto/frame.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NNG_HEADER 8u /* nng's TCP transport puts 8 bytes of length before each message */

static uint64_t random_next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Codes the slots and reads them back; returns how many codes it took. */
static uint32_t codes_round_trip(const uint32_t *slots, uint32_t count)
{
    struct slot_codes codes = {0};
    struct writer w = {0};
    for (uint32_t i = 0; i < count; i++) slot_codes_add(&codes, slots[i]);
    slot_codes_write(&codes, &w);
    struct cursor c = cursor_of(w.data, w.size);
    struct slot_iterator it = slot_iterator_of(c, cursor_array(&c, 0, UINT32_MAX));
    it.codes = c;
    uint32_t slot = 0;
    for (uint32_t i = 0; i < count; i++) {
        ck_assert(slot_iterator_next(&it, &slot));
        ck_assert_uint_eq(slot, slots[i]);
    }
    ck_assert(!slot_iterator_next(&it, &slot));
    uint32_t used = codes.count;
    writer_close(&w);
    slot_codes_close(&codes);
    return used;
}

START_TEST(slots_come_back_whatever_their_gaps)
{
    static const uint32_t first[] = {0}, last[] = {LIMIT_ENTITIES - 1}, both[] = {0, LIMIT_ENTITIES - 1};
    static const uint32_t holes[] = {1, 2, 4, 7, 8, 9, 500, 501, 1000000};
    ck_assert_uint_eq(codes_round_trip(NULL, 0), 0);
    ck_assert_uint_eq(codes_round_trip(first, 1), 1);
    ck_assert_uint_eq(codes_round_trip(last, 1), 1);
    ck_assert_uint_eq(codes_round_trip(both, 2), 2);
    ck_assert_uint_eq(codes_round_trip(holes, 9), 8);
}
END_TEST

START_TEST(a_run_of_any_length_comes_back_at_a_byte_for_every_32_slots)
{
    uint32_t slots[200];
    for (uint32_t start = 0; start < 3; start++) {
        for (uint32_t length = 1; length < 190; length++) {
            for (uint32_t i = 0; i < length; i++) slots[i] = start + i;
            uint32_t codes = codes_round_trip(slots, length);
            uint32_t runs = start == 0 ? length : length - 1;
            ck_assert_uint_eq(codes, (start == 0 ? 0 : 1) + (runs + 31) / 32);
        }
    }
}
END_TEST

START_TEST(random_slots_come_back)
{
    static uint32_t slots[3000];
    uint64_t seed = 5;
    for (uint32_t round = 0; round < 200; round++) {
        uint32_t count = 0, density = 1 + (uint32_t)random_next(&seed) % 300;
        for (uint32_t slot = 0; slot < 3000; slot++)
            if (random_next(&seed) % density == 0) slots[count++] = slot;
        codes_round_trip(slots, count);
    }
}
END_TEST

static enum terrane_error decode_codes(const int32_t *codes, uint32_t count, uint32_t deltas, struct frame *frame)
{
    struct writer w = {0};
    writer_array(&w, 5);
    for (uint32_t i = 0; i < 3; i++) writer_uint(&w, 1);
    writer_array(&w, count);
    for (uint32_t i = 0; i < count; i++) writer_int(&w, codes[i]);
    writer_array(&w, deltas);
    for (uint32_t i = 0; i < deltas; i++) writer_int(&w, 1);
    enum terrane_error error = frame_decode(w.data, w.size, frame);
    writer_close(&w);
    return error;
}

START_TEST(codes_that_leave_the_slots_or_miscount_are_refused)
{
    struct frame frame;
    int32_t beyond[] = {(int32_t)LIMIT_ENTITIES - 1, 0}, run[] = {-(int32_t)LIMIT_ENTITIES - 1};
    int32_t two[] = {3, -2}, run_beyond[] = {(int32_t)LIMIT_ENTITIES - 2, -2};
    ck_assert_int_eq(decode_codes(two, 2, 6, &frame), TERRANE_ERR_OK);
    ck_assert_uint_eq(frame.moved_count, 3);
    ck_assert_int_eq(decode_codes(two, 2, 5, &frame), TERRANE_ERR_MESSAGE_RANGE);
    ck_assert_int_eq(decode_codes(two, 2, 8, &frame), TERRANE_ERR_MESSAGE_RANGE);
    ck_assert_int_eq(decode_codes(beyond, 2, 4, &frame), TERRANE_ERR_MESSAGE_RANGE);
    ck_assert_int_eq(decode_codes(run_beyond, 2, 6, &frame), TERRANE_ERR_MESSAGE_RANGE);
    ck_assert_int_eq(decode_codes(run, 1, 2, &frame), TERRANE_ERR_MESSAGE_RANGE);
    ck_assert_int_eq(decode_codes(beyond, 1, 2, &frame), TERRANE_ERR_OK);
    int32_t slot_run[] = {-(int32_t)LIMIT_ENTITIES};
    ck_assert_int_eq(decode_codes(slot_run, 1, 2, &frame), TERRANE_ERR_MESSAGE_RANGE);
}
END_TEST

/* A section of one item as `state` or, for number 6, `changed` has it. */
static void section_write(struct writer *w, uint32_t number)
{
    writer_array(w, 2);
    writer_uint(w, number);
    writer_array(w, number == SECTION_CHANGED ? 5 : 2);
    writer_uint(w, 0);
    for (uint32_t i = 0; number == SECTION_CHANGED && i < 4; i++) writer_uint(w, i);
    if (number != SECTION_CHANGED) writer_bin(w, "", 0);
}

static enum terrane_error decode_sections(uint32_t first, uint32_t second)
{
    struct writer w = {0};
    struct frame frame;
    writer_array(&w, second == UINT32_MAX ? 6 : 7);
    for (uint32_t field = 0; field < 3; field++) writer_uint(&w, 1);
    writer_array(&w, 0);
    writer_array(&w, 0);
    section_write(&w, first);
    if (second != UINT32_MAX) section_write(&w, second);
    enum terrane_error error = frame_decode(w.data, w.size, &frame);
    writer_close(&w);
    return error;
}

START_TEST(sections_out_of_order_doubled_or_unknown_are_refused)
{
    ck_assert_int_eq(decode_sections(SECTION_STATE, SECTION_CHANGED), TERRANE_ERR_OK);
    ck_assert_int_eq(decode_sections(SECTION_STATE, UINT32_MAX), TERRANE_ERR_OK);
    ck_assert_int_eq(decode_sections(SECTION_CHANGED, SECTION_STATE), TERRANE_ERR_MESSAGE_RANGE);
    ck_assert_int_eq(decode_sections(SECTION_STATE, SECTION_STATE), TERRANE_ERR_MESSAGE_RANGE);
    ck_assert_int_eq(decode_sections(SECTION_CHANGED + 1, UINT32_MAX), TERRANE_ERR_MESSAGE_RANGE);
    ck_assert_int_eq(decode_sections(0, UINT32_MAX), TERRANE_ERR_MESSAGE_RANGE);
}
END_TEST

/* A frame of one section whose array announces `items`, made by `fill`; `fields` are announced for the whole. */
static enum terrane_error decode_forged(uint32_t fields, uint32_t items, void (*fill)(struct writer *))
{
    struct writer w = {0};
    struct frame frame;
    writer_array(&w, fields);
    for (uint32_t field = 0; field < 3; field++) writer_uint(&w, 1);
    writer_array(&w, 0);
    writer_array(&w, 0);
    writer_array(&w, items);
    fill(&w);
    enum terrane_error error = frame_decode(w.data, w.size, &frame);
    writer_close(&w);
    return error;
}

static void left_write(struct writer *w, uint32_t fields, enum left_reason reason)
{
    writer_uint(w, SECTION_LEFT);
    writer_array(w, fields);
    writer_uint(w, 0);
    writer_uint(w, (uint64_t)reason);
    for (uint32_t i = 2; i < fields; i++) writer_uint(w, i == 3 ? 19 : 7);
}

static void left_gone_with_leaf(struct writer *w)
{
    left_write(w, 4, LEFT_GONE);
}
static void left_moved_nowhere(struct writer *w)
{
    left_write(w, 2, LEFT_MOVED);
}
static void left_moved_halfway(struct writer *w)
{
    left_write(w, 3, LEFT_MOVED);
}
static void left_moved(struct writer *w)
{
    left_write(w, 4, LEFT_MOVED);
}

START_TEST(who_left_for_another_leaf_and_nobody_else_names_it)
{
    ck_assert_int_eq(decode_forged(6, 2, left_moved), TERRANE_ERR_OK);
    ck_assert_int_eq(decode_forged(6, 2, left_moved_halfway), TERRANE_ERR_MESSAGE_RANGE);
    ck_assert_int_eq(decode_forged(6, 2, left_moved_nowhere), TERRANE_ERR_MESSAGE_RANGE);
    ck_assert_int_eq(decode_forged(6, 2, left_gone_with_leaf), TERRANE_ERR_MESSAGE_RANGE);
}
END_TEST

/* Slot 0 turned, and behind that a section that would be the frame's own if the turned section had two items. */
static void turned_and_more(struct writer *w)
{
    writer_uint(w, SECTION_TURNED);
    writer_array(w, 1);
    writer_int(w, -1);
    writer_array(w, 1);
    writer_uint(w, 64);
    section_write(w, SECTION_STATE);
}

START_TEST(a_column_section_has_exactly_two_items)
{
    ck_assert_int_eq(decode_forged(7, 3, turned_and_more), TERRANE_ERR_OK);
    ck_assert_int_eq(decode_forged(7, 4, turned_and_more), TERRANE_ERR_MESSAGE_RANGE);
    ck_assert_int_eq(decode_forged(7, 2, turned_and_more), TERRANE_ERR_MESSAGE_RANGE);
}
END_TEST

/* What a frame holds, kept beside it as a model. */
struct change {
    bool moved, turned, climbed;
    int32_t dx, dy, dz;
    uint8_t yaw;
};

START_TEST(random_frames_come_back_whole)
{
    enum { SLOTS = 400 };
    static struct change model[SLOTS];
    struct frame_builder b = {0};
    struct writer w = {0};
    uint64_t seed = 11;
    for (uint32_t round = 0; round < 300; round++) {
        frame_builder_clear(&b);
        writer_clear(&w);
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            struct change *m = &model[slot];
            *m = (struct change){.moved = random_next(&seed) % 3 == 0, .turned = random_next(&seed) % 5 == 0};
            m->climbed = random_next(&seed) % 7 == 0;
            uint32_t bits = (uint32_t)random_next(&seed) % 30;
            m->dx = (int32_t)(random_next(&seed) >> (31 - bits)) * (slot % 2 ? 1 : -1);
            m->dy = (int32_t)(random_next(&seed) >> (31 - bits)) * (slot % 3 ? 1 : -1);
            m->dz = (int32_t)(random_next(&seed) >> (31 - bits));
            m->yaw = (uint8_t)random_next(&seed);
            if (m->moved) frame_builder_moved(&b, slot, m->dx, m->dy);
            if (m->turned) frame_builder_turned(&b, slot, m->yaw);
            if (m->climbed) frame_builder_climbed(&b, slot, m->dz);
        }
        frame_builder_write(&b, 3, round, 7, &w);
        struct frame f;
        ck_assert_int_eq(frame_decode(w.data, w.size, &f), TERRANE_ERR_OK);
        ck_assert_uint_eq(f.seq, round);
        uint32_t slot;
        struct change c;
        for (uint32_t s = 0; s < SLOTS; s++) {
            const struct change *m = &model[s];
            if (m->moved)
                ck_assert(frame_next_moved(&f, &slot, &c.dx, &c.dy) && slot == s && c.dx == m->dx && c.dy == m->dy);
            if (m->turned) ck_assert(frame_next_turned(&f, &slot, &c.yaw) && slot == s && c.yaw == m->yaw);
            if (m->climbed) ck_assert(frame_next_climbed(&f, &slot, &c.dz) && slot == s && c.dz == m->dz);
        }
        ck_assert(!frame_next_moved(&f, &slot, &c.dx, &c.dy));
        ck_assert(!frame_next_turned(&f, &slot, &c.yaw));
        ck_assert(!frame_next_climbed(&f, &slot, &c.dz));
    }
    frame_builder_close(&b);
    writer_close(&w);
}
END_TEST

START_TEST(a_frame_without_anything_is_a_beat_and_nothing_else_is)
{
    struct frame_builder b = {0};
    struct writer w = {0};
    struct frame f;
    frame_builder_write(&b, 1, 2, 3, &w);
    ck_assert(frame_builder_empty(&b));
    ck_assert_int_eq(frame_decode(w.data, w.size, &f), TERRANE_ERR_OK);
    ck_assert(frame_is_beat(&f));
    for (uint32_t kind = 0; kind < 7; kind++) {
        struct entity_record record = {.id = {1}};
        frame_builder_clear(&b);
        writer_clear(&w);
        if (kind == 0) frame_builder_moved(&b, 0, 1, 1);
        if (kind == 1) frame_builder_left(&b, 0, LEFT_GONE, 0, QUADKEY_NONE);
        if (kind == 2) frame_builder_entered(&b, 0, &record);
        if (kind == 3) frame_builder_turned(&b, 0, 1);
        if (kind == 4) frame_builder_climbed(&b, 0, 1);
        if (kind == 5) frame_builder_state(&b, 0, NULL, 0);
        if (kind == 6) frame_builder_changed(&b, 0, 1, 2, 3, 4);
        ck_assert(!frame_builder_empty(&b));
        frame_builder_write(&b, 1, 2, 3, &w);
        ck_assert_int_eq(frame_decode(w.data, w.size, &f), TERRANE_ERR_OK);
        ck_assert(!frame_is_beat(&f));
    }
    frame_builder_close(&b);
    writer_close(&w);
}
END_TEST

START_TEST(topics_come_back_and_others_are_refused)
{
    static const struct {
        const char *text;
        enum terrane_error error;
    } bad[] = {
        {"", TERRANE_ERR_MESSAGE_TRUNCATED},
        {"r/", TERRANE_ERR_MESSAGE_TRUNCATED},
        {"r/03", TERRANE_ERR_MESSAGE_TRUNCATED},
        {"map/", TERRANE_ERR_MESSAGE_UNKNOWN},
        {"x/03/", TERRANE_ERR_MESSAGE_UNKNOWN},
        {"r:03/", TERRANE_ERR_MESSAGE_UNKNOWN},
        {"r/04/", TERRANE_ERR_QUADKEY_INVALID},
        {"r/0000000000000000000000000000000/", TERRANE_ERR_QUADKEY_INVALID},
        {"r/000000000000000000000000000000000000", TERRANE_ERR_QUADKEY_INVALID},
    };
    struct writer w = {0};
    struct topic topic;
    struct quadkey leaf = QUADKEY_ROOT;
    for (uint32_t depth = 0; depth <= LIMIT_QUADKEY_DEPTH; depth++) {
        writer_clear(&w);
        topic_write(&w, depth % 2 ? STREAM_GHOST : STREAM_REGION, leaf);
        ck_assert_uint_eq(w.size, depth + 3);
        ck_assert_int_eq(topic_decode(w.data, w.size, &topic), TERRANE_ERR_OK);
        ck_assert_uint_eq(topic.leaf.v, leaf.v);
        ck_assert_uint_eq(topic.size, w.size);
        ck_assert_int_eq(topic.kind, depth % 2 ? STREAM_GHOST : STREAM_REGION);
        if (depth < LIMIT_QUADKEY_DEPTH) leaf = quadkey_child(leaf, depth % 4);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_int_eq(topic_decode((const uint8_t *)bad[i].text, strlen(bad[i].text), &topic), bad[i].error);
    writer_close(&w);
}
END_TEST

/* Bytes a moved entity of one frame, with topic, body and nng's header. */
static double bytes_per_move(double speed, double moving, uint32_t slots, uint64_t seed)
{
    struct world world = world_default();
    struct frame_builder b = {0};
    struct writer w = {0};
    size_t bytes = 0, moves = 0;
    for (uint32_t tick = 0; tick < 50; tick++) {
        frame_builder_clear(&b);
        writer_clear(&w);
        for (uint32_t slot = 0; slot < slots; slot++) {
            double angle = (double)(random_next(&seed) % 1000) * 0.00628318;
            double step =
                speed * (0.7 + 0.0006 * (double)(random_next(&seed) % 1000)) / world.tick_hz / world_unit(&world);
            if ((double)(random_next(&seed) % 1000) >= moving * 1000) continue;
            frame_builder_moved(&b, slot, (int32_t)lround(step * cos(angle)), (int32_t)lround(step * sin(angle)));
            moves++;
        }
        topic_write(&w, STREAM_REGION, (struct quadkey){UINT64_C(0x4e4)});
        frame_builder_write(&b, 3, 100000 + tick, 2000000 + tick, &w);
        bytes += w.size + NNG_HEADER;
    }
    frame_builder_close(&b);
    writer_close(&w);
    return (double)bytes / (double)moves;
}

START_TEST(a_walking_entity_costs_at_most_three_bytes_and_a_fifth_in_a_frame_of_a_hundred)
{
    ck_assert_double_le(bytes_per_move(1.4, 1.0, 100, 1), 3.2);
    ck_assert_double_le(bytes_per_move(2.0, 1.0, 100, 2), 3.2);
    /* Half of 200 stand: a hundred move, in no pattern. */
    ck_assert_double_le(bytes_per_move(1.4, 0.5, 200, 3), 3.2);
}
END_TEST

START_TEST(a_riding_entity_costs_at_most_four_and_a_half_bytes)
{
    ck_assert_double_le(bytes_per_move(7.0, 1.0, 100, 4), 4.5);
    ck_assert_double_le(bytes_per_move(14.0, 0.7, 150, 5), 5.3);
}
END_TEST

SUITE_MAIN("frame", slots_come_back_whatever_their_gaps, a_run_of_any_length_comes_back_at_a_byte_for_every_32_slots,
           random_slots_come_back, codes_that_leave_the_slots_or_miscount_are_refused,
           sections_out_of_order_doubled_or_unknown_are_refused, who_left_for_another_leaf_and_nobody_else_names_it,
           a_column_section_has_exactly_two_items, random_frames_come_back_whole,
           a_frame_without_anything_is_a_beat_and_nothing_else_is, topics_come_back_and_others_are_refused,
           a_walking_entity_costs_at_most_three_bytes_and_a_fifth_in_a_frame_of_a_hundred,
           a_riding_entity_costs_at_most_four_and_a_half_bytes)
