/* The publishing side: slots, ticks, frames, beats. */
#include "tests/unit/stream_kit.h"
#include "tests/unit/suite.h"

static struct frame frame_of(const struct writer *w)
{
    struct topic topic;
    struct frame frame;
    ck_assert_int_eq(topic_decode(w->data, w->size, &topic), TERRANE_ERR_OK);
    ck_assert_uint_le(w->size, LIMIT_FRAME_BYTES);
    ck_assert_int_eq(frame_decode(w->data + topic.size, w->size - topic.size, &frame), TERRANE_ERR_OK);
    return frame;
}

static struct frame published(struct kit_source *source)
{
    ck_assert(kit_publish(source));
    return frame_of(&source->out);
}

START_TEST(slots_are_dense_and_the_lowest_free_one_comes_first)
{
    struct kit_source *s = kit_source_open("03", 1);
    for (uint32_t i = 0; i < 200; i++) {
        kit_enter(s, i, kit_record(i + 1, 1, 0, 0));
        ck_assert_uint_eq(s->entities[i].slot, i);
    }
    kit_publish(s);
    for (uint32_t i = 10; i < 150; i += 10) kit_leave(s, i, LEFT_GONE);
    kit_publish(s);
    for (uint32_t i = 10; i < 150; i += 10) {
        kit_enter(s, i, kit_record(i + 1, 2, 0, 0));
        ck_assert_uint_eq(s->entities[i].slot, i);
        ck_assert_uint_eq(stream_owner(s->stream, i), i);
    }
    ck_assert_uint_eq(stream_count(s->stream), 200);
    kit_source_close(s);
}
END_TEST

START_TEST(a_freed_slot_is_used_again_only_when_its_leaving_was_published)
{
    struct kit_source *s = kit_source_open("03", 1);
    kit_enter(s, 0, kit_record(1, 1, 0, 0));
    kit_publish(s);
    kit_leave(s, 0, LEFT_STRIP);
    kit_enter(s, 1, kit_record(2, 1, 0, 0));
    ck_assert_uint_eq(s->entities[1].slot, 1);
    struct frame f = published(s);
    ck_assert_uint_eq(f.left_count, 1);
    ck_assert_uint_eq(f.entered_count, 1);
    kit_enter(s, 2, kit_record(3, 1, 0, 0));
    ck_assert_uint_eq(s->entities[2].slot, 0);
    kit_source_close(s);
}
END_TEST

START_TEST(entering_and_leaving_in_one_tick_is_nothing)
{
    struct kit_source *s = kit_source_open("03", 1);
    kit_enter(s, 0, kit_record(1, 1, 0, 0));
    kit_move(s, 0, 5, 5);
    kit_leave(s, 0, LEFT_GONE);
    ck_assert(!kit_publish(s));
    ck_assert_uint_eq(s->out.size, 0);
    ck_assert_uint_eq(stream_count(s->stream), 0);
    ck_assert_uint_eq(stream_seq(s->stream), 0);
    kit_enter(s, 1, kit_record(2, 1, 0, 0));
    ck_assert_uint_eq(s->entities[1].slot, 0);
    kit_source_close(s);
}
END_TEST

START_TEST(moves_of_a_tick_become_one_delta_to_what_was_published_last)
{
    struct kit_source *s = kit_source_open("03", 1);
    kit_enter(s, 0, kit_record(1, 1, 1000, 1000));
    kit_enter(s, 1, kit_record(2, 1, 2000, 2000));
    kit_publish(s);
    kit_move(s, 1, 3, 0);
    kit_move(s, 1, 4, -2);
    s->entities[1].record.position.z += 9;
    s->entities[1].record.yaw = 77;
    kit_move(s, 1, 0, 0);
    struct frame f = published(s);
    uint32_t slot;
    int32_t dx, dy, dz;
    uint8_t yaw;
    ck_assert_uint_eq(f.moved_count, 1);
    ck_assert(frame_next_moved(&f, &slot, &dx, &dy));
    ck_assert(slot == 1 && dx == 7 && dy == -2);
    ck_assert(frame_next_turned(&f, &slot, &yaw));
    ck_assert(slot == 1 && yaw == 77);
    ck_assert(frame_next_climbed(&f, &slot, &dz));
    ck_assert(slot == 1 && dz == 9);
    kit_move(s, 1, 1, 1);
    f = published(s);
    ck_assert(frame_next_moved(&f, &slot, &dx, &dy));
    ck_assert(dx == 1 && dy == 1);
    ck_assert_uint_eq(f.turned_count + f.climbed_count, 0);
    kit_source_close(s);
}
END_TEST

START_TEST(a_move_there_and_back_in_one_tick_is_nothing)
{
    struct kit_source *s = kit_source_open("03", 1);
    kit_enter(s, 0, kit_record(1, 1, 1000, 1000));
    kit_publish(s);
    kit_move(s, 0, 3, 3);
    kit_move(s, 0, -3, -3);
    ck_assert(!kit_publish(s));
    ck_assert_uint_eq(stream_seq(s->stream), 1);
    kit_source_close(s);
}
END_TEST

START_TEST(an_entity_that_moves_in_its_first_tick_enters_where_it_is)
{
    struct kit_source *s = kit_source_open("03", 1);
    kit_enter(s, 0, kit_record(1, 1, 1000, 1000));
    kit_move(s, 0, 50, 60);
    struct frame f = published(s);
    uint32_t slot;
    struct entity_record record;
    ck_assert(frame_next_entered(&f, &slot, &record));
    ck_assert(record.position.x == 1050 && record.position.y == 1060);
    ck_assert_uint_eq(f.moved_count, 0);
    kit_source_close(s);
}
END_TEST

START_TEST(state_and_constants_are_published_once_when_touched)
{
    struct kit_source *s = kit_source_open("03", 1);
    kit_enter(s, 0, kit_record(1, 1, 0, 0));
    kit_publish(s);
    s->entities[0].record.state_size = 3;
    memcpy(s->entities[0].state, "abc", 3);
    s->entities[0].record.radius = 55;
    s->entities[0].record.layer = 4;
    for (int i = 0; i < 3; i++) {
        stream_touch_state(s->stream, 0);
        stream_touch_constants(s->stream, 0);
    }
    struct frame f = published(s);
    uint32_t slot, size, kind, flags, radius;
    const uint8_t *state;
    uint16_t layer;
    ck_assert(frame_next_state(&f, &slot, &state, &size));
    ck_assert(size == 3 && memcmp(state, "abc", 3) == 0);
    ck_assert(!frame_next_state(&f, &slot, &state, &size));
    ck_assert(frame_next_changed(&f, &slot, &kind, &flags, &layer, &radius));
    ck_assert(kind == 7 && radius == 55 && layer == 4);
    ck_assert(!frame_next_changed(&f, &slot, &kind, &flags, &layer, &radius));
    ck_assert(!kit_publish(s));
    kit_source_close(s);
}
END_TEST

START_TEST(leaving_for_another_leaf_says_which_and_under_what_version)
{
    struct kit_source *s = kit_source_open("03", 1);
    for (uint32_t i = 0; i < 3; i++) kit_enter(s, i, kit_record(i + 1, 40, 0, 0));
    kit_publish(s);
    stream_leave(s->stream, 0, LEFT_GONE, 0, QUADKEY_NONE);
    stream_leave(s->stream, 1, LEFT_MOVED, 41, kit_leaf("02"));
    stream_leave(s->stream, 2, LEFT_STRIP, 0, QUADKEY_NONE);
    struct frame f = published(s);
    const enum left_reason reasons[] = {LEFT_GONE, LEFT_MOVED, LEFT_STRIP};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t slot;
        enum left_reason reason;
        uint64_t version;
        struct quadkey to;
        ck_assert(frame_next_left(&f, &slot, &reason, &version, &to));
        ck_assert(slot == i && reason == reasons[i]);
        if (reason == LEFT_MOVED) ck_assert(version == 41 && quadkey_equal(to, kit_leaf("02")));
    }
    kit_source_close(s);
}
END_TEST

START_TEST(a_silent_stream_beats_and_repeats_its_last_seq)
{
    struct kit_source *s = kit_source_open("03", 9);
    kit_enter(s, 0, kit_record(1, 1, 0, 0));
    ck_assert(!frame_is_beat(&(struct frame){.moved_count = 1}));
    published(s);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 1; i < KIT_BEAT; i++) ck_assert(!kit_publish(s));
        struct frame f = published(s);
        ck_assert(frame_is_beat(&f));
        ck_assert(f.seq == 1 && f.epoch == 9 && f.tick == s->tick);
    }
    ck_assert_uint_eq(stream_counters(s->stream)->beats, 3);
    ck_assert_uint_eq(stream_counters(s->stream)->frames, 1);
    struct writer w = {0};
    for (uint64_t tick = 1000; tick < 2000; tick += 100)
        ck_assert(!stream_publish(s->stream, tick, 0, kit_describe, s, &w));
    kit_source_close(s);
}
END_TEST

START_TEST(a_stream_that_never_had_anything_beats_too)
{
    struct kit_source *s = kit_source_open("03", 1);
    for (uint32_t i = 0; i < KIT_BEAT; i++) ck_assert(!kit_publish(s));
    struct frame f = published(s);
    ck_assert(frame_is_beat(&f) && f.seq == 0);
    kit_source_close(s);
}
END_TEST

START_TEST(a_new_epoch_starts_seq_anew_and_keeps_the_slots)
{
    struct kit_source *s = kit_source_open("03", 1);
    for (uint32_t i = 0; i < 3; i++) {
        kit_enter(s, i, kit_record(i + 1, 1, 0, 0));
        kit_publish(s);
    }
    ck_assert_uint_eq(stream_seq(s->stream), 3);
    stream_writer_set_epoch(s->stream, 2);
    ck_assert_uint_eq(stream_seq(s->stream), 0);
    ck_assert_uint_eq(stream_epoch(s->stream), 2);
    kit_move(s, 2, 1, 1);
    struct frame f = published(s);
    ck_assert(f.seq == 1 && f.epoch == 2 && f.moved_count == 1 && f.entered_count == 0);
    kit_source_close(s);
}
END_TEST

START_TEST(the_topic_names_kind_and_leaf)
{
    struct stream_writer *s = stream_writer_open(STREAM_REGION, kit_leaf("0123"), 1);
    struct entity_record record = kit_record(1, 1, 0, 0);
    struct kit_source *source = kit_source_open("0", 1);
    source->entities[0].record = record;
    stream_enter(s, 0, &record);
    struct writer w = {0};
    ck_assert(stream_publish(s, 1, 0, kit_describe, source, &w));
    ck_assert(w.size > 7 && memcmp(w.data, "r/0123/", 7) == 0);
    stream_writer_close(s);
    writer_close(&w);
    kit_source_close(source);
}
END_TEST

START_TEST(counters_count_what_was_published)
{
    struct kit_source *s = kit_source_open("03", 1);
    size_t bytes = 0;
    for (uint32_t i = 0; i < 5; i++) kit_enter(s, i, kit_record(i + 1, 1, 10, 10));
    kit_publish(s);
    bytes += s->out.size;
    for (uint32_t i = 0; i < 3; i++) kit_move(s, i, 1, 0);
    kit_leave(s, 4, LEFT_GONE);
    kit_publish(s);
    bytes += s->out.size;
    const struct stream_counters *c = stream_counters(s->stream);
    ck_assert(c->frames == 2 && c->beats == 0 && c->entered == 5 && c->left == 1 && c->moves == 3);
    ck_assert_uint_eq(c->bytes, bytes);
    kit_source_close(s);
}
END_TEST

SUITE_MAIN("stream_writer", slots_are_dense_and_the_lowest_free_one_comes_first,
           a_freed_slot_is_used_again_only_when_its_leaving_was_published, entering_and_leaving_in_one_tick_is_nothing,
           moves_of_a_tick_become_one_delta_to_what_was_published_last, a_move_there_and_back_in_one_tick_is_nothing,
           an_entity_that_moves_in_its_first_tick_enters_where_it_is,
           state_and_constants_are_published_once_when_touched,
           leaving_for_another_leaf_says_which_and_under_what_version, a_silent_stream_beats_and_repeats_its_last_seq,
           a_stream_that_never_had_anything_beats_too, a_new_epoch_starts_seq_anew_and_keeps_the_slots,
           the_topic_names_kind_and_leaf, counters_count_what_was_published)
