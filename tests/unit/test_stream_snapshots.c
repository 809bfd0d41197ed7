/* Snapshots in parts, the backlog that waits for them, and frames that do not fit. */
#include "tests/unit/stream_kit.h"
#include "tests/unit/suite.h"

static struct kit_log log_;
static struct replicas *r;
static struct kit_source *s;

static void begin(void)
{
    r = kit_replicas_open(&log_);
    s = kit_source_open("03", 1);
    for (uint32_t i = 0; i < 6; i++) kit_enter(s, i, kit_record(i + 1, 10, 1000, 1000));
    kit_publish(s);
}

static void end(void)
{
    replicas_close(r);
    kit_source_close(s);
}

/* Feeds the source's items [from, to) as one part of a snapshot. */
static enum terrane_error part_feed(uint64_t now_us, uint32_t epoch, uint64_t seq, uint32_t part, uint32_t parts,
                                    uint32_t from, uint32_t to)
{
    struct writer w = {0};
    struct snapshot m = {.stream = STREAM_GHOST,
                         .leaf = s->leaf,
                         .epoch = epoch,
                         .seq = seq,
                         .part = part,
                         .parts = parts,
                         .count = to - from};
    snapshot_begin(&w, &m);
    for (uint32_t i = from; i < to; i++) {
        struct entity_record record;
        kit_describe(s, i, &record);
        snapshot_add(&w, s->entities[i].slot, &record);
    }
    ck_assert_int_eq(snapshot_decode(cursor_of(w.data, w.size), &m), TERRANE_ERR_OK);
    enum terrane_error error = replicas_snapshot(r, now_us, &m);
    writer_close(&w);
    return error;
}

START_TEST(a_snapshot_is_complete_with_its_last_part)
{
    begin();
    replicas_watch(r, 0, s->leaf);
    part_feed(1, 1, 1, 0, 3, 0, 2);
    part_feed(1, 1, 1, 1, 3, 2, 4);
    ck_assert(!replicas_level(r, s->leaf) && replicas_counters(r)->snapshots == 0);
    part_feed(1, 1, 1, 2, 3, 4, 6);
    ck_assert(replicas_level(r, s->leaf) && replicas_counters(r)->snapshots == 1);
    ck_assert(replicas_count(r) == 6 && log_.seen == 6);
    end();
}
END_TEST

START_TEST(parts_that_a_newer_snapshot_interrupts_start_over)
{
    begin();
    replicas_watch(r, 0, s->leaf);
    part_feed(1, 1, 1, 0, 3, 0, 2);
    part_feed(1, 1, 2, 0, 2, 2, 4);
    /* The rest of the first one is for nothing, its last part too. */
    part_feed(1, 1, 1, 1, 3, 2, 4);
    part_feed(1, 1, 1, 2, 3, 4, 6);
    ck_assert(!replicas_level(r, s->leaf));
    ck_assert_uint_eq(replicas_counters(r)->stale, 2);
    part_feed(1, 1, 2, 1, 2, 4, 6);
    ck_assert(replicas_level(r, s->leaf) && replicas_counters(r)->snapshots == 1);
    replicas_tick(r, 3 * KIT_SECOND);
    /* Entities 1 and 2 were only in the snapshot that was given up. */
    ck_assert_uint_eq(replicas_count(r), 4);
    ck_assert(replicas_find(r, (struct entity_id){1}) == UINT32_MAX);
    end();
}
END_TEST

START_TEST(parts_out_of_place_are_ignored)
{
    begin();
    replicas_watch(r, 0, s->leaf);
    part_feed(1, 1, 1, 1, 2, 0, 6);
    ck_assert(replicas_count(r) == 0 && !replicas_level(r, s->leaf));
    part_feed(1, 1, 1, 0, 3, 0, 2);
    part_feed(1, 1, 1, 2, 3, 4, 6);
    ck_assert(!replicas_level(r, s->leaf));
    part_feed(1, 1, 1, 1, 3, 2, 4);
    ck_assert(!replicas_level(r, s->leaf) && replicas_count(r) == 4);
    part_feed(1, 1, 1, 2, 3, 4, 6);
    ck_assert(replicas_level(r, s->leaf) && replicas_count(r) == 6);
    end();
}
END_TEST

START_TEST(a_new_epoch_ends_the_parts_of_the_old_one)
{
    begin();
    replicas_watch(r, 0, s->leaf);
    part_feed(1, 1, 1, 0, 2, 0, 2);
    replicas_set_epoch(r, 2, s->leaf, 2);
    ck_assert_int_eq(part_feed(3, 1, 1, 1, 2, 2, 6), TERRANE_ERR_EPOCH_STALE);
    ck_assert(!replicas_level(r, s->leaf));
    part_feed(4, 2, 0, 0, 1, 0, 6);
    ck_assert(replicas_level(r, s->leaf) && replicas_count(r) == 6);
    end();
}
END_TEST

START_TEST(frames_wait_while_parts_come_in_also_at_a_level_replica)
{
    begin();
    kit_level(r, 0, s);
    kit_move(s, 0, 1, 1);
    kit_publish(s); /* missed, but the snapshot knows of it */
    part_feed(1, 1, 2, 0, 2, 0, 3);
    part_feed(1, 1, 2, 0, 2, 0, 3);
    struct entity_record last = s->entities[5].record;
    kit_move(s, 5, 1, 1);
    kit_publish(s);
    kit_feed(r, 2, s);
    ck_assert(!replicas_level(r, s->leaf));
    s->entities[5].record = last;
    part_feed(3, 1, 2, 1, 2, 3, 6);
    ck_assert(replicas_level(r, s->leaf));
    struct entity_record record;
    ck_assert(replicas_get(r, replicas_find(r, (struct entity_id){6}), &record));
    ck_assert_int_eq(record.position.x, 1001);
    ck_assert(replicas_counters(r)->gaps == 0 && replicas_counters(r)->stale == 0);
    end();
}
END_TEST

START_TEST(parts_that_come_in_put_off_the_next_question)
{
    begin();
    replicas_watch(r, 0, s->leaf);
    uint64_t now = 0;
    for (uint32_t part = 0; part < 20; part++) {
        now += KIT_SECOND;
        if (part == 0) now = 400000;
        part_feed(now, 1, 1, part, 100, 0, 1);
        replicas_tick(r, now);
    }
    ck_assert_uint_eq(log_.asked_count, 1);
    replicas_tick(r, now + 3 * KIT_SECOND);
    ck_assert_uint_eq(log_.asked_count, 2);
    end();
}
END_TEST

START_TEST(the_backlog_is_bounded_and_the_oldest_frames_go_first)
{
    begin();
    replicas_watch(r, 0, s->leaf);
    struct writer early = {0};
    stream_snapshot_from(s->stream, s->tick, 0, kit_describe, s, &early);
    static uint8_t blob[LIMIT_STATE_BYTES];
    uint32_t frames = 0;
    struct frame_builder b = {0};
    for (; frames < 100; frames++) {
        frame_builder_clear(&b);
        blob[0] = (uint8_t)frames;
        frame_builder_state(&b, 0, blob, sizeof blob);
        writer_clear(&s->out);
        topic_write(&s->out, STREAM_GHOST, s->leaf);
        frame_builder_write(&b, 1, 2 + frames, frames, &s->out);
        ck_assert_int_eq(kit_feed(r, 1, s), TERRANE_ERR_OK);
    }
    uint64_t dropped = replicas_counters(r)->backlog_dropped;
    ck_assert(dropped > 100 - 64 && dropped < 100 - 60);
    struct kit_delivery to = {.r = r, .now_us = 2};
    kit_take(&to, early.data, early.size);
    ck_assert(!replicas_level(r, s->leaf) && replicas_counters(r)->gaps == 1);
    /* The snapshot of the newest frame that was dropped connects to what is left. */
    part_feed(3, 1, 1 + dropped, 0, 1, 0, 6);
    ck_assert(replicas_level(r, s->leaf));
    ck_assert_uint_eq(replicas_counters(r)->gaps_repaired, 1);
    struct entity_record record;
    ck_assert(replicas_get(r, replicas_find(r, (struct entity_id){1}), &record));
    ck_assert(record.state_size == LIMIT_STATE_BYTES && record.state[0] == 99);
    frame_builder_close(&b);
    writer_close(&early);
    end();
}
END_TEST

/* Feeds a frame that is built by hand as the next one. */
static enum terrane_error built_feed(struct frame_builder *b, uint64_t now_us, uint64_t seq)
{
    writer_clear(&s->out);
    topic_write(&s->out, STREAM_GHOST, s->leaf);
    frame_builder_write(b, 1, seq, seq, &s->out);
    frame_builder_clear(b);
    return kit_feed(r, now_us, s);
}

START_TEST(a_frame_that_does_not_fit_changes_nothing_and_costs_the_level)
{
    struct entity_record fresh = kit_record(77, 1, 0, 0);
    for (int wrong = 0; wrong < 9; wrong++) {
        begin();
        s->entities[1].record.position = (struct position){POSITION_END - 1, 0, HEIGHT_END - 1};
        kit_move(s, 1, 0, 0);
        kit_publish(s);
        kit_level(r, 0, s);
        log_.count = 0;
        struct frame_builder b = {0};
        /* All that is right in the frame must not stay either. */
        frame_builder_left(&b, 0, LEFT_GONE, 0, QUADKEY_NONE);
        frame_builder_entered(&b, 0, &fresh);
        if (wrong != 0) frame_builder_moved(&b, 0, 1, 1);
        fresh.id.v = 78;
        switch (wrong) {
        case 0: frame_builder_moved(&b, 1, 1, 0); break;
        case 1: frame_builder_moved(&b, 1, 0, -1); break;
        case 2: frame_builder_moved(&b, 6, 1, 1); break;
        case 3: frame_builder_climbed(&b, 1, 1); break;
        case 4: frame_builder_turned(&b, 9, 1); break;
        case 5: frame_builder_state(&b, 1000, NULL, 0); break;
        case 6: frame_builder_changed(&b, 6, 1, 1, 1, 1); break;
        case 7: frame_builder_entered(&b, 3, &fresh); break;
        default: frame_builder_entered(&b, 0, &fresh); break;
        }
        fresh.id.v = 77;
        ck_assert_int_eq(built_feed(&b, 10 * KIT_SECOND, 3), TERRANE_ERR_MESSAGE_RANGE);
        ck_assert(replicas_counters(r)->malformed == 1 && replicas_counters(r)->gaps == 0);
        ck_assert(!replicas_level(r, s->leaf) && log_.asked_count == 2);
        ck_assert(log_.count == 0 && replicas_count(r) == 6);
        part_feed(10 * KIT_SECOND, 1, 3, 0, 1, 0, 6);
        ck_assert(replicas_level(r, s->leaf) && log_.count == 0);
        /* And the marks of the check are gone. */
        frame_builder_moved(&b, 0, 1, 1);
        ck_assert_int_eq(built_feed(&b, 10 * KIT_SECOND, 4), TERRANE_ERR_OK);
        ck_assert_uint_eq(log_.count, 1);
        frame_builder_close(&b);
        end();
    }
}
END_TEST

START_TEST(a_slot_may_leave_and_be_entered_and_move_in_one_frame)
{
    begin();
    kit_level(r, 0, s);
    log_.count = 0;
    struct entity_record fresh = kit_record(77, 1, 500, 500);
    struct frame_builder b = {0};
    frame_builder_left(&b, 2, LEFT_GONE, 0, QUADKEY_NONE);
    frame_builder_entered(&b, 2, &fresh);
    frame_builder_moved(&b, 2, -500, 20);
    frame_builder_turned(&b, 2, 9);
    frame_builder_climbed(&b, 2, 3);
    frame_builder_state(&b, 2, (const uint8_t *)"xy", 2);
    frame_builder_changed(&b, 2, 1, 2, 3, 4);
    ck_assert_int_eq(built_feed(&b, 1, 2), TERRANE_ERR_OK);
    ck_assert_uint_eq(log_.count, 2);
    ck_assert(log_.told[0].changes == BIT(REPLICA_VANISHED) && log_.told[0].record.id.v == 3);
    ck_assert(log_.told[1].changes == BIT(REPLICA_APPEARED) && log_.told[1].record.id.v == 77);
    const struct entity_record *record = &log_.told[1].record;
    ck_assert(record->position.x == 0 && record->position.y == 520 && record->position.z == 8 && record->yaw == 9);
    ck_assert(record->kind == 1 && record->flags == 2 && record->layer == 3 && record->radius == 4);
    ck_assert(record->state_size == 2 && memcmp(log_.told[1].state, "xy", 2) == 0);
    frame_builder_close(&b);
    end();
}
END_TEST

START_TEST(leaving_an_empty_slot_is_nothing)
{
    begin();
    kit_level(r, 0, s);
    struct frame_builder b = {0};
    frame_builder_left(&b, 50, LEFT_GONE, 0, QUADKEY_NONE);
    frame_builder_left(&b, 1, LEFT_GONE, 0, QUADKEY_NONE);
    frame_builder_left(&b, 1, LEFT_STRIP, 0, QUADKEY_NONE);
    ck_assert_int_eq(built_feed(&b, 1, 2), TERRANE_ERR_OK);
    ck_assert(replicas_level(r, s->leaf) && replicas_count(r) == 5);
    frame_builder_close(&b);
    end();
}
END_TEST

START_TEST(malformed_and_foreign_messages_are_refused_and_counted)
{
    begin();
    kit_level(r, 0, s);
    kit_move(s, 0, 1, 1);
    kit_publish(s);
    uint64_t malformed = 0;
    for (size_t size = 0; size < s->out.size; size++) {
        ck_assert_int_ne(replicas_frame(r, 1, s->out.data, size), TERRANE_ERR_OK);
        ck_assert_uint_eq(replicas_counters(r)->malformed, ++malformed);
    }
    s->out.data[0] = 'r';
    ck_assert_int_eq(kit_feed(r, 1, s), TERRANE_ERR_NOT_OWNER);
    ck_assert_uint_eq(replicas_counters(r)->unwatched, 1);
    s->out.data[0] = 'g';
    ck_assert(replicas_level(r, s->leaf));
    ck_assert_int_eq(kit_feed(r, 1, s), TERRANE_ERR_OK);
    struct snapshot m = {.stream = STREAM_REGION, .leaf = s->leaf, .epoch = 1, .parts = 1};
    ck_assert_int_eq(replicas_snapshot(r, 1, &m), TERRANE_ERR_NOT_OWNER);
    end();
}
END_TEST

START_TEST(a_forged_epoch_shuts_the_leaf_only_for_a_while)
{
    begin();
    kit_level(r, 0, s);
    struct frame_builder b = {0};
    frame_builder_moved(&b, 0, 1, 1);
    writer_clear(&s->out);
    topic_write(&s->out, STREAM_GHOST, s->leaf);
    frame_builder_write(&b, UINT32_MAX, 1, 1, &s->out);
    uint64_t now = 10 * KIT_SECOND;
    kit_feed(r, now, s);
    ck_assert(!replicas_level(r, s->leaf) && log_.asked_count == 2);
    ck_assert_int_eq(kit_snapshot(r, now, s), TERRANE_ERR_EPOCH_STALE);
    while (!replicas_level(r, s->leaf)) {
        now = replicas_deadline_us(r);
        ck_assert_uint_le(now, 14 * KIT_SECOND);
        uint32_t before = log_.asked_count;
        replicas_tick(r, now);
        if (log_.asked_count > before) (void)kit_snapshot(r, now, s);
    }
    ck_assert_uint_eq(replicas_counters(r)->gaps, 1);
    ck_assert_uint_eq(replicas_counters(r)->gaps_repaired, 1);
    frame_builder_close(&b);
    end();
}
END_TEST

SUITE_MAIN("stream_snapshots", a_snapshot_is_complete_with_its_last_part,
           parts_that_a_newer_snapshot_interrupts_start_over, parts_out_of_place_are_ignored,
           a_new_epoch_ends_the_parts_of_the_old_one, frames_wait_while_parts_come_in_also_at_a_level_replica,
           parts_that_come_in_put_off_the_next_question, the_backlog_is_bounded_and_the_oldest_frames_go_first,
           a_frame_that_does_not_fit_changes_nothing_and_costs_the_level,
           a_slot_may_leave_and_be_entered_and_move_in_one_frame, leaving_an_empty_slot_is_nothing,
           malformed_and_foreign_messages_are_refused_and_counted, a_forged_epoch_shuts_the_leaf_only_for_a_while)
