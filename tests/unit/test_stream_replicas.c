/* One leaf's replica: level, gaps, epochs, snapshots, silence. */
#include "tests/unit/stream_kit.h"
#include "tests/unit/suite.h"

static struct kit_log log_;
static struct replicas *r;
static struct kit_source *s;

static void begin(void)
{
    r = kit_replicas_open(&log_);
    s = kit_source_open("03", 1);
    for (uint32_t i = 0; i < 3; i++) kit_enter(s, i, kit_record(i + 1, 10, 1000, 1000));
    kit_publish(s);
}

static void end(void)
{
    replicas_close(r);
    kit_source_close(s);
}

/* The replica's content equals what the source has published and nothing is pending. */
static void equal(void)
{
    ck_assert(replicas_level(r, s->leaf));
    ck_assert_uint_eq(replicas_count(r), stream_count(s->stream));
    for (uint32_t i = 0; i < KIT_ENTITIES; i++) {
        struct entity_record want, have;
        kit_describe(s, i, &want);
        if (want.id.v == 0) continue;
        uint32_t handle = replicas_find(r, want.id);
        ck_assert(replicas_get(r, handle, &have));
        ck_assert(kit_record_equal(&want, &have));
    }
}

static void lose_a_frame(void)
{
    kit_move(s, 0, 1, 1);
    ck_assert(kit_publish(s));
}

START_TEST(watching_asks_and_the_snapshot_makes_it_level)
{
    begin();
    replicas_watch(r, 5, s->leaf);
    replicas_watch(r, 6, s->leaf);
    ck_assert_uint_eq(log_.asked_count, 1);
    ck_assert(quadkey_equal(log_.asked[0], s->leaf));
    ck_assert(replicas_watches(r, s->leaf) && !replicas_level(r, s->leaf));
    ck_assert(replicas_watched(r) == 1 && replicas_waiting(r) == 1);
    ck_assert_int_eq(kit_snapshot(r, 7, s), TERRANE_ERR_OK);
    ck_assert_uint_eq(replicas_waiting(r), 0);
    equal();
    ck_assert_uint_eq(log_.count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(log_.told[i].changes, BIT(REPLICA_APPEARED));
        ck_assert_uint_eq(log_.told[i].record.id.v, i + 1);
    }
    ck_assert_uint_eq(replicas_counters(r)->snapshots, 1);
    ck_assert_uint_eq(replicas_counters(r)->gaps, 0);
    end();
}
END_TEST

START_TEST(a_snapshot_of_nothing_makes_level_too)
{
    begin();
    struct kit_source *empty = kit_source_open("02", 4);
    kit_level(r, 0, empty);
    ck_assert_uint_eq(replicas_count(r), 0);
    kit_enter(empty, 0, kit_record(9, 1, 0, 0));
    kit_publish(empty);
    ck_assert_int_eq(kit_feed(r, 1, empty), TERRANE_ERR_OK);
    ck_assert_uint_eq(replicas_count(r), 1);
    kit_source_close(empty);
    end();
}
END_TEST

START_TEST(frames_that_come_before_the_snapshot_are_kept)
{
    begin();
    replicas_watch(r, 0, s->leaf);
    struct kit_delivery to = {.r = r, .now_us = 3};
    struct writer copy = {0};
    stream_snapshot_from(s->stream, s->tick, 0, kit_describe, s, &copy);
    for (uint64_t now = 1; now < 3; now++) {
        lose_a_frame();
        ck_assert_int_eq(kit_feed(r, now, s), TERRANE_ERR_OK);
    }
    ck_assert_uint_eq(replicas_count(r), 0);
    kit_take(&to, copy.data, copy.size);
    equal();
    ck_assert_uint_eq(replicas_counters(r)->gaps, 0);
    ck_assert_uint_eq(log_.count, 3); /* the frames' moves are part of the first word on each */
    writer_close(&copy);
    end();
}
END_TEST

START_TEST(everything_a_frame_can_say_arrives)
{
    begin();
    kit_level(r, 0, s);
    log_.count = 0;
    s->entities[1].record.yaw = 200;
    s->entities[1].record.position.z -= 70000;
    kit_move(s, 1, -5, 300);
    s->entities[1].record.state_size = 4;
    memcpy(s->entities[1].state, "wolf", 4);
    s->entities[1].record.flags = 99;
    stream_touch_state(s->stream, s->entities[1].slot);
    stream_touch_constants(s->stream, s->entities[1].slot);
    kit_enter(s, 3, kit_record(4, 10, 7, 7));
    kit_publish(s);
    ck_assert_int_eq(kit_feed(r, 1, s), TERRANE_ERR_OK);
    equal();
    ck_assert_uint_eq(log_.count, 2); /* one word an entity */
    ck_assert_uint_eq(log_.told[0].changes, BIT(REPLICA_APPEARED));
    ck_assert_uint_eq(log_.told[1].changes, BIT(REPLICA_MOVED) | BIT(REPLICA_STATE) | BIT(REPLICA_CHANGED));
    ck_assert(memcmp(log_.told[1].state, "wolf", 4) == 0);
    kit_leave(s, 0, LEFT_GONE);
    kit_publish(s);
    ck_assert_int_eq(kit_feed(r, 2, s), TERRANE_ERR_OK);
    s->entities[0].record.id.v = 0;
    equal();
    ck_assert_uint_eq(log_.told[2].changes, BIT(REPLICA_VANISHED));
    ck_assert_uint_eq(log_.told[2].record.id.v, 1);
    end();
}
END_TEST

START_TEST(a_frame_heard_twice_is_stale)
{
    begin();
    kit_level(r, 0, s);
    lose_a_frame();
    ck_assert_int_eq(kit_feed(r, 1, s), TERRANE_ERR_OK);
    ck_assert_int_eq(kit_feed(r, 2, s), TERRANE_ERR_OK);
    ck_assert_uint_eq(replicas_counters(r)->stale, 1);
    ck_assert_uint_eq(replicas_counters(r)->gaps, 0);
    equal();
    end();
}
END_TEST

START_TEST(a_gap_is_counted_asked_about_and_repaired_without_a_blink)
{
    begin();
    kit_level(r, 0, s);
    log_.count = 0;
    uint64_t now = 10 * KIT_SECOND;
    lose_a_frame();
    for (int i = 0; i < 3; i++) {
        kit_move(s, 1, 5, 5);
        kit_publish(s);
        ck_assert_int_eq(kit_feed(r, now, s), TERRANE_ERR_OK);
    }
    ck_assert_uint_eq(log_.asked_count, 2);
    ck_assert(replicas_counters(r)->gaps == 1 && replicas_counters(r)->gaps_repaired == 0);
    ck_assert(!replicas_level(r, s->leaf) && replicas_count(r) == 3 && log_.count == 0);
    ck_assert_int_eq(kit_snapshot(r, now + 1, s), TERRANE_ERR_OK);
    equal();
    ck_assert_uint_eq(replicas_counters(r)->gaps_repaired, 1);
    ck_assert_uint_eq(log_.count, 2);
    ck_assert_uint_eq(log_.told[0].changes, BIT(REPLICA_MOVED));
    ck_assert_uint_eq(log_.told[1].changes, BIT(REPLICA_MOVED));
    kit_move(s, 2, 5, 5);
    kit_publish(s);
    ck_assert_int_eq(kit_feed(r, now + 2, s), TERRANE_ERR_OK);
    equal();
    end();
}
END_TEST

START_TEST(a_beat_tells_of_a_frame_missed_before_a_silence)
{
    begin();
    kit_level(r, 0, s);
    for (uint32_t i = 0; i < KIT_BEAT; i++) kit_publish(s);
    ck_assert_int_eq(kit_feed(r, 1, s), TERRANE_ERR_OK);
    ck_assert(replicas_level(r, s->leaf) && replicas_counters(r)->beats == 1);
    lose_a_frame();
    for (uint32_t i = 0; i < KIT_BEAT; i++) kit_publish(s);
    ck_assert_int_eq(kit_feed(r, 2, s), TERRANE_ERR_OK);
    ck_assert(!replicas_level(r, s->leaf));
    ck_assert_uint_eq(replicas_counters(r)->gaps, 1);
    kit_snapshot(r, 3, s);
    equal();
    ck_assert_uint_eq(replicas_counters(r)->gaps_repaired, 1);
    end();
}
END_TEST

START_TEST(what_is_to_be_confirmed_stays_level_and_is_sure_after_a_snapshot)
{
    begin();
    kit_level(r, 0, s);
    uint32_t asked = log_.asked_count;
    ck_assert(replicas_sure(r, s->leaf));
    replicas_confirm(r, 1, s->leaf);
    replicas_confirm(r, 2, s->leaf); /* is asked for already */
    ck_assert_uint_eq(log_.asked_count, asked + 1);
    lose_a_frame();
    ck_assert_int_eq(kit_feed(r, 3, s), TERRANE_ERR_OK);
    ck_assert(!replicas_sure(r, s->leaf)); /* who speaks need not hear */
    equal();
    kit_snapshot(r, 4, s);
    ck_assert(replicas_sure(r, s->leaf));
    equal();
    end();
}
END_TEST

START_TEST(a_gap_after_the_snapshot_is_a_new_gap)
{
    begin();
    kit_level(r, 0, s);
    struct writer early = {0};
    lose_a_frame();
    kit_move(s, 0, 1, 1);
    kit_publish(s);
    kit_feed(r, 1, s);
    stream_snapshot_from(s->stream, s->tick, 0, kit_describe, s, &early);
    lose_a_frame();
    kit_move(s, 0, 1, 1);
    kit_publish(s);
    kit_feed(r, 2, s);
    struct kit_delivery to = {.r = r, .now_us = 3};
    kit_take(&to, early.data, early.size);
    ck_assert(!replicas_level(r, s->leaf));
    ck_assert(replicas_counters(r)->gaps == 2 && replicas_counters(r)->gaps_repaired == 1);
    kit_snapshot(r, 4, s);
    equal();
    ck_assert_uint_eq(replicas_counters(r)->gaps_repaired, 2);
    writer_close(&early);
    end();
}
END_TEST

START_TEST(lower_epochs_are_refused_and_a_higher_one_is_a_gap)
{
    begin();
    kit_level(r, 0, s);
    struct kit_source *old = kit_source_open("03", 0);
    kit_enter(old, 0, kit_record(50, 1, 0, 0));
    kit_publish(old);
    ck_assert_int_eq(kit_feed(r, 1, old), TERRANE_ERR_EPOCH_STALE);
    ck_assert_int_eq(kit_snapshot(r, 1, old), TERRANE_ERR_EPOCH_STALE);
    ck_assert_uint_eq(replicas_counters(r)->stale, 2);
    equal();
    stream_writer_set_epoch(s->stream, 2);
    lose_a_frame();
    ck_assert_int_eq(kit_feed(r, 2, s), TERRANE_ERR_OK);
    ck_assert(!replicas_level(r, s->leaf) && replicas_counters(r)->gaps == 1);
    /* The former owner's frames come in between. */
    stream_writer_set_epoch(old->stream, 1);
    kit_move(old, 0, 1, 1);
    kit_publish(old);
    ck_assert_int_eq(kit_feed(r, 3, old), TERRANE_ERR_EPOCH_STALE);
    ck_assert_int_eq(kit_snapshot(r, 3, old), TERRANE_ERR_EPOCH_STALE);
    lose_a_frame();
    ck_assert_int_eq(kit_feed(r, 4, s), TERRANE_ERR_OK);
    kit_snapshot(r, 5, s);
    equal();
    ck_assert_uint_eq(replicas_counters(r)->gaps_repaired, 1);
    kit_source_close(old);
    end();
}
END_TEST

START_TEST(a_new_owner_is_asked_at_once_and_content_stays)
{
    begin();
    kit_level(r, 0, s);
    replicas_set_epoch(r, 1, s->leaf, 1);
    replicas_set_epoch(r, 1, s->leaf, 0);
    ck_assert(replicas_level(r, s->leaf) && log_.asked_count == 1);
    lose_a_frame();
    replicas_set_epoch(r, 2, s->leaf, 2);
    ck_assert(!replicas_level(r, s->leaf) && log_.asked_count == 2 && replicas_count(r) == 3);
    ck_assert_int_eq(kit_feed(r, 3, s), TERRANE_ERR_EPOCH_STALE);
    ck_assert_int_eq(kit_snapshot(r, 3, s), TERRANE_ERR_EPOCH_STALE);
    ck_assert_uint_eq(replicas_counters(r)->gaps, 0);
    stream_writer_set_epoch(s->stream, 2);
    ck_assert_int_eq(kit_snapshot(r, 4, s), TERRANE_ERR_OK);
    equal();
    ck_assert_uint_eq(log_.lost, 0);
    replicas_set_epoch(r, 4, kit_leaf("0"), 7);
    end();
}
END_TEST

START_TEST(the_first_epoch_right_at_watch_does_not_ask_twice)
{
    begin();
    replicas_watch(r, 5, s->leaf);
    replicas_set_epoch(r, 5, s->leaf, 1);
    ck_assert_uint_eq(log_.asked_count, 1);
    replicas_set_epoch(r, 5, s->leaf, 2);
    ck_assert_uint_eq(log_.asked_count, 2);
    end();
}
END_TEST

START_TEST(silence_asks_again_with_back_off_and_beats_prevent_it)
{
    begin();
    kit_level(r, 0, s);
    uint64_t now = 0;
    for (int i = 0; i < 10; i++) {
        now += KIT_SECOND;
        for (uint32_t beat = 0; beat < KIT_BEAT; beat++) kit_publish(s);
        kit_feed(r, now, s);
        replicas_tick(r, now);
    }
    ck_assert_uint_eq(log_.asked_count, 1);
    uint64_t heard = now, asked[6];
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t before = log_.asked_count;
        while (log_.asked_count == before) {
            uint64_t due = replicas_deadline_us(r);
            ck_assert_uint_gt(due, now);
            now = due;
            replicas_tick(r, now);
        }
        asked[i] = now - heard;
    }
    const uint64_t ms = 1000;
    ck_assert_uint_eq(asked[0], 3000 * ms);
    ck_assert_uint_eq(asked[1], 3500 * ms);
    ck_assert_uint_eq(asked[2], 4500 * ms);
    ck_assert_uint_eq(asked[3], 6500 * ms);
    ck_assert_uint_eq(asked[4], 10500 * ms);
    ck_assert_uint_eq(asked[5], 14500 * ms);
    /* Silent is not wrong: what comes next still applies. */
    lose_a_frame();
    kit_feed(r, now, s);
    equal();
    end();
}
END_TEST

START_TEST(one_leaf_is_not_asked_twice_within_the_retry_time)
{
    begin();
    kit_level(r, 0, s);
    uint64_t now = 10 * KIT_SECOND;
    for (int i = 0; i < 20; i++) {
        lose_a_frame();
        lose_a_frame();
        kit_feed(r, now, s);
        kit_snapshot(r, now, s);
        lose_a_frame();
        lose_a_frame();
        kit_feed(r, now, s);
        replicas_tick(r, now);
        now += 100000;
    }
    /* At watch, and in two seconds every half. */
    ck_assert_uint_le(log_.asked_count, 1 + 4);
    ck_assert_uint_ge(log_.asked_count, 1 + 3);
    end();
}
END_TEST

START_TEST(an_older_snapshot_than_the_content_changes_nothing)
{
    begin();
    struct writer early = {0};
    stream_snapshot_from(s->stream, s->tick, 0, kit_describe, s, &early);
    kit_level(r, 0, s);
    lose_a_frame();
    kit_feed(r, 1, s);
    struct kit_delivery to = {.r = r, .now_us = 2};
    kit_take(&to, early.data, early.size);
    ck_assert_uint_eq(replicas_counters(r)->stale, 1);
    equal();
    writer_close(&early);
    end();
}
END_TEST

START_TEST(frames_behind_a_snapshot_that_overtook_them_are_stale)
{
    begin();
    kit_level(r, 0, s);
    struct writer late = {0};
    lose_a_frame();
    writer_raw(&late, s->out.data, s->out.size);
    kit_snapshot(r, 1, s);
    ck_assert_int_eq(replicas_frame(r, 2, late.data, late.size), TERRANE_ERR_OK);
    ck_assert(replicas_counters(r)->stale == 1 && replicas_counters(r)->gaps == 0);
    equal();
    writer_close(&late);
    end();
}
END_TEST

START_TEST(what_is_not_in_the_snapshot_left_and_slots_may_have_changed_hands)
{
    begin();
    kit_level(r, 0, s);
    /* Missed: 1 leaves, 4 takes its slot, 1 comes back in another one, 2 leaves the strip. */
    kit_leave(s, 0, LEFT_STRIP);
    kit_publish(s);
    kit_enter(s, 3, kit_record(4, 10, 70, 70));
    ck_assert_uint_eq(s->entities[3].slot, 0);
    kit_publish(s);
    kit_enter(s, 0, kit_record(1, 10, 1010, 1000));
    kit_leave(s, 1, LEFT_STRIP);
    kit_publish(s);
    s->entities[1].record.id.v = 0;
    log_.count = 0;
    kit_snapshot(r, 1, s);
    ck_assert_uint_eq(replicas_count(r), 4); /* 2 is held for a while */
    ck_assert_uint_eq(log_.lost, 0);
    replicas_tick(r, 1 + 2 * KIT_SECOND);
    equal();
    ck_assert_uint_eq(log_.lost, 1);
    ck_assert_uint_eq(log_.told[log_.count - 1].record.id.v, 2);
    end();
}
END_TEST

START_TEST(unwatching_closes_an_open_gap)
{
    begin();
    kit_level(r, 0, s);
    lose_a_frame();
    lose_a_frame();
    kit_feed(r, 1, s);
    ck_assert_uint_eq(replicas_counters(r)->gaps, 1);
    replicas_unwatch(r, 2, s->leaf, false);
    ck_assert_uint_eq(replicas_counters(r)->gaps_repaired, 1);
    ck_assert(!replicas_watches(r, s->leaf) && replicas_watched(r) == 0 && replicas_waiting(r) == 0);
    ck_assert_uint_eq(replicas_count(r), 0);
    ck_assert_uint_eq(log_.lost, 3);
    ck_assert_int_eq(kit_feed(r, 3, s), TERRANE_ERR_NOT_OWNER);
    ck_assert_int_eq(kit_snapshot(r, 3, s), TERRANE_ERR_NOT_OWNER);
    ck_assert_uint_eq(replicas_counters(r)->unwatched, 2);
    replicas_unwatch(r, 4, s->leaf, false);
    replicas_tick(r, 10 * KIT_SECOND);
    ck_assert(replicas_deadline_us(r) == UINT64_MAX);
    end();
}
END_TEST

START_TEST(deadlines_of_leaves_that_are_due_together_come_in_the_order_of_watching)
{
    begin();
    const char *const leaves[] = {"33", "01", "2", "1003", "00"};
    for (uint32_t i = 0; i < 5; i++) replicas_watch(r, 100, kit_leaf(leaves[i]));
    log_.asked_count = 0;
    uint64_t due = replicas_deadline_us(r);
    ck_assert_uint_eq(due, 100 + 500000);
    replicas_tick(r, due - 1);
    ck_assert_uint_eq(log_.asked_count, 0);
    replicas_tick(r, due);
    ck_assert_uint_eq(log_.asked_count, 5);
    for (uint32_t i = 0; i < 5; i++) ck_assert(quadkey_equal(log_.asked[i], kit_leaf(leaves[i])));
    end();
}
END_TEST

SUITE_MAIN("stream_replicas", watching_asks_and_the_snapshot_makes_it_level, a_snapshot_of_nothing_makes_level_too,
           frames_that_come_before_the_snapshot_are_kept, everything_a_frame_can_say_arrives,
           a_frame_heard_twice_is_stale, a_gap_is_counted_asked_about_and_repaired_without_a_blink,
           what_is_to_be_confirmed_stays_level_and_is_sure_after_a_snapshot,
           a_beat_tells_of_a_frame_missed_before_a_silence, a_gap_after_the_snapshot_is_a_new_gap,
           lower_epochs_are_refused_and_a_higher_one_is_a_gap, a_new_owner_is_asked_at_once_and_content_stays,
           the_first_epoch_right_at_watch_does_not_ask_twice, silence_asks_again_with_back_off_and_beats_prevent_it,
           one_leaf_is_not_asked_twice_within_the_retry_time, an_older_snapshot_than_the_content_changes_nothing,
           frames_behind_a_snapshot_that_overtook_them_are_stale,
           what_is_not_in_the_snapshot_left_and_slots_may_have_changed_hands, unwatching_closes_an_open_gap,
           deadlines_of_leaves_that_are_due_together_come_in_the_order_of_watching)
