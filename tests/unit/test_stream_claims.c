/* One entity, several leaves: who wins, who waits, what ends. */
#include "tests/unit/stream_kit.h"
#include "tests/unit/suite.h"

#define HOLD (2 * KIT_SECOND)

static struct kit_log log_;
static struct replicas *r;
static struct kit_source *west, *east;

static void begin_with(enum stream_kind kind)
{
    kit_kind = kind;
    r = kit_replicas_open(&log_);
    west = kit_source_open("0", 1);
    east = kit_source_open("1", 1);
    kit_level(r, 0, west);
    kit_level(r, 0, east);
}

static void begin(void)
{
    begin_with(STREAM_REGION);
}

static void end(void)
{
    replicas_close(r);
    kit_source_close(west);
    kit_source_close(east);
}

static void tell(uint64_t now_us, struct kit_source *s)
{
    ck_assert(kit_publish(s));
    ck_assert_int_eq(kit_feed(r, now_us, s), TERRANE_ERR_OK);
}

/* What is known of entity `id`; false: it is not visible. */
static bool known(uint64_t id, struct entity_record *out)
{
    uint32_t handle = replicas_find(r, (struct entity_id){id});
    return handle != UINT32_MAX && replicas_get(r, handle, out);
}

static bool visible(uint64_t id)
{
    struct entity_record record;
    return known(id, &record);
}

static uint64_t version_of(uint64_t id)
{
    struct entity_record record;
    ck_assert(known(id, &record));
    return record.version;
}

static void last_told(uint64_t id, uint32_t changes)
{
    ck_assert_uint_gt(log_.count, 0);
    ck_assert_uint_eq(log_.told[log_.count - 1].record.id.v, id);
    ck_assert_uint_eq(log_.told[log_.count - 1].changes, changes);
}

START_TEST(a_crossing_whose_new_leaf_speaks_first_is_one_change)
{
    begin();
    kit_enter(west, 0, kit_record(1, 10, 90, 0));
    tell(1, west);
    uint32_t handle = replicas_find(r, (struct entity_id){1});
    kit_enter(east, 0, kit_record(1, 11, 101, 0));
    tell(2, east);
    last_told(1, BIT(REPLICA_MOVED) | BIT(REPLICA_CHANGED));
    /* The old leaf is wrong now, whatever it says. */
    kit_move(west, 0, 1, 0);
    tell(3, west);
    kit_leave(west, 0, LEFT_MOVED);
    tell(4, west);
    ck_assert_uint_eq(log_.count, 2);
    ck_assert_uint_eq(replicas_find(r, (struct entity_id){1}), handle);
    ck_assert_uint_eq(version_of(1), 11);
    replicas_tick(r, 4 + HOLD);
    ck_assert(visible(1) && log_.lost == 0);
    end();
}
END_TEST

START_TEST(a_crossing_whose_old_leaf_speaks_first_is_held_until_the_new_one_does)
{
    begin();
    kit_enter(west, 0, kit_record(1, 10, 90, 0));
    tell(1, west);
    kit_leave(west, 0, LEFT_MOVED);
    tell(2, west);
    ck_assert(visible(1) && replicas_count(r) == 1);
    replicas_tick(r, 1 + HOLD);
    ck_assert(visible(1));
    kit_enter(east, 0, kit_record(1, 11, 101, 0));
    tell(1 + HOLD, east);
    last_told(1, BIT(REPLICA_MOVED) | BIT(REPLICA_CHANGED));
    replicas_tick(r, 10 * HOLD);
    ck_assert(visible(1) && log_.lost == 0);
    end();
}
END_TEST

START_TEST(an_orphan_that_nobody_claims_vanishes_when_its_time_is_over)
{
    begin();
    for (uint32_t i = 0; i < 3; i++) kit_enter(west, i, kit_record(i + 1, 10, 90, 0));
    tell(1, west);
    kit_leave(west, 2, LEFT_MOVED);
    tell(2, west);
    kit_leave(west, 0, LEFT_STRIP);
    kit_leave(west, 1, LEFT_MOVED);
    tell(3, west);
    log_.count = 0;
    replicas_tick(r, 2 + HOLD);
    ck_assert_uint_eq(log_.count, 1);
    last_told(3, BIT(REPLICA_VANISHED));
    replicas_tick(r, 3 + HOLD);
    ck_assert_uint_eq(log_.count, 3);
    ck_assert_uint_eq(log_.told[1].record.id.v, 1);
    ck_assert_uint_eq(log_.told[2].record.id.v, 2);
    ck_assert_uint_eq(replicas_count(r), 0);
    end();
}
END_TEST

START_TEST(who_is_gone_vanishes_at_once_and_late_words_of_that_life_are_ignored)
{
    begin();
    kit_enter(west, 0, kit_record(1, 11, 90, 0));
    tell(1, west);
    kit_leave(west, 0, LEFT_GONE);
    tell(2, west);
    ck_assert(!visible(1));
    last_told(1, BIT(REPLICA_VANISHED));
    /* The leaf that it was in before is late. */
    kit_enter(east, 0, kit_record(1, 10, 80, 0));
    kit_enter(east, 1, kit_record(2, 11, 80, 0));
    tell(3, east);
    kit_move(east, 0, 1, 1);
    tell(4, east);
    ck_assert(!visible(1) && visible(2));
    kit_snapshot(r, 5, east);
    ck_assert(!visible(1));
    kit_leave(east, 0, LEFT_MOVED);
    tell(6, east);
    replicas_tick(r, 10 * HOLD);
    ck_assert(!visible(1));
    ck_assert_uint_eq(log_.seen, 2);
    end();
}
END_TEST

START_TEST(a_new_life_with_a_higher_version_appears_at_once_after_the_old_one)
{
    begin();
    kit_enter(west, 0, kit_record(1, 10, 90, 0));
    tell(1, west);
    log_.count = 0;
    kit_leave(west, 0, LEFT_GONE);
    kit_enter(west, 1, kit_record(1, 500, 20, 0));
    tell(2, west);
    ck_assert_uint_eq(log_.count, 2);
    ck_assert_uint_eq(log_.told[0].changes, BIT(REPLICA_VANISHED));
    ck_assert_uint_eq(log_.told[0].record.version, 10);
    ck_assert_uint_eq(log_.told[1].changes, BIT(REPLICA_APPEARED));
    ck_assert_uint_eq(log_.told[1].record.version, 500);
    end();
}
END_TEST

START_TEST(a_late_gone_of_an_old_life_does_not_end_the_new_one)
{
    begin();
    kit_enter(west, 0, kit_record(1, 10, 90, 0));
    tell(1, west);
    kit_enter(east, 0, kit_record(1, 500, 120, 0));
    tell(2, east);
    kit_leave(west, 0, LEFT_GONE);
    tell(3, west);
    ck_assert(visible(1) && version_of(1) == 500 && log_.lost == 0);
    end();
}
END_TEST

START_TEST(a_new_life_whose_gateway_has_a_slow_clock_appears_when_the_tombstone_is_over)
{
    begin();
    kit_enter(west, 0, kit_record(1, 100, 90, 0));
    tell(1, west);
    kit_leave(west, 0, LEFT_GONE);
    tell(2, west);
    kit_enter(east, 0, kit_record(1, 50, 120, 0));
    tell(3, east);
    ck_assert(!visible(1));
    replicas_tick(r, 1 + HOLD);
    ck_assert(!visible(1));
    ck_assert_uint_eq(replicas_deadline_us(r), 2 + HOLD);
    replicas_tick(r, 2 + HOLD);
    ck_assert(visible(1) && version_of(1) == 50);
    last_told(1, BIT(REPLICA_APPEARED));
    end();
}
END_TEST

START_TEST(leaving_the_strip_changes_nothing_where_another_leaf_has_a_higher_version)
{
    begin();
    kit_enter(west, 0, kit_record(1, 10, 90, 0));
    tell(1, west);
    kit_enter(east, 0, kit_record(1, 11, 101, 0));
    tell(2, east);
    log_.count = 0;
    kit_leave(west, 0, LEFT_STRIP);
    tell(3, west);
    replicas_tick(r, 10 * HOLD);
    ck_assert(log_.count == 0 && version_of(1) == 11);
    end();
}
END_TEST

START_TEST(an_equal_version_elsewhere_takes_over_without_a_word_but_the_difference)
{
    begin();
    kit_enter(west, 0, kit_record(1, 10, 90, 0));
    kit_enter(east, 0, kit_record(1, 10, 90, 0));
    tell(1, west);
    tell(1, east);
    kit_move(east, 0, 5, 0);
    tell(2, east);
    ck_assert_uint_eq(log_.count, 1); /* the first one still is the entity */
    kit_leave(west, 0, LEFT_STRIP);
    tell(3, west);
    ck_assert_uint_eq(log_.count, 2);
    last_told(1, BIT(REPLICA_MOVED));
    replicas_tick(r, 10 * HOLD);
    ck_assert(visible(1));
    end();
}
END_TEST

START_TEST(coming_back_within_the_hold_time_is_nothing)
{
    begin();
    kit_enter(west, 0, kit_record(1, 10, 90, 0));
    tell(1, west);
    kit_leave(west, 0, LEFT_MOVED);
    tell(2, west);
    kit_enter(west, 0, kit_record(1, 12, 90, 0));
    tell(3, west);
    ck_assert_uint_eq(log_.count, 2);
    last_told(1, BIT(REPLICA_CHANGED));
    /* Also in one frame, which gives it another slot. */
    kit_leave(west, 0, LEFT_MOVED);
    kit_enter(west, 1, kit_record(1, 14, 95, 0));
    tell(4, west);
    ck_assert_uint_eq(log_.count, 3);
    last_told(1, BIT(REPLICA_MOVED) | BIT(REPLICA_CHANGED));
    replicas_tick(r, 10 * HOLD);
    ck_assert(visible(1) && log_.lost == 0);
    end();
}
END_TEST

START_TEST(a_ghost_that_leaves_the_strip_vanishes_at_once_and_may_come_back)
{
    begin_with(STREAM_GHOST);
    kit_enter(east, 0, kit_record(1, 9, 101, 0));
    tell(1, east);
    kit_enter(west, 0, kit_record(1, 10, 90, 0));
    tell(1, west);
    kit_leave(west, 0, LEFT_STRIP);
    tell(2, west);
    /* Not even the older claim is shown: it is just late. */
    ck_assert(!visible(1));
    last_told(1, BIT(REPLICA_VANISHED));
    kit_leave_to(east, 0, west->leaf);
    tell(3, east);
    ck_assert(!visible(1));
    kit_enter(west, 0, kit_record(1, 10, 90, 0));
    tell(4, west);
    ck_assert(visible(1));
    last_told(1, BIT(REPLICA_APPEARED));
    replicas_tick(r, 10 * HOLD);
    ck_assert(visible(1));
    end();
}
END_TEST

START_TEST(a_ghost_is_waited_for_only_where_it_is_looked_for)
{
    begin_with(STREAM_GHOST);
    kit_enter(west, 0, kit_record(1, 10, 90, 0));
    kit_enter(west, 1, kit_record(2, 10, 90, 0));
    tell(1, west);
    kit_enter(east, 1, kit_record(2, 9, 101, 0));
    tell(1, east);
    kit_leave_to(west, 0, east->leaf);
    kit_leave_to(west, 1, kit_leaf("3"));
    tell(2, west);
    ck_assert(visible(1) && !visible(2));
    kit_enter(east, 0, kit_record(1, 11, 101, 0));
    tell(3, east);
    replicas_tick(r, 10 * HOLD);
    ck_assert(visible(1) && version_of(1) == 11);
    /* Nobody has said anything else for long, and east still has 2. */
    ck_assert(visible(2) && version_of(2) == 9);
    end();
}
END_TEST

START_TEST(older_knowledge_is_not_shown_while_the_newer_is_held)
{
    begin();
    kit_enter(west, 0, kit_record(1, 12, 90, 0));
    tell(1, west);
    kit_leave(west, 0, LEFT_MOVED);
    tell(2, west);
    kit_enter(east, 0, kit_record(1, 11, 101, 0));
    tell(3, east);
    kit_move(east, 0, 1, 0);
    tell(4, east);
    ck_assert(version_of(1) == 12 && log_.count == 1);
    /* Nothing newer came, and the older leaf still says so and is level: it is right. */
    replicas_tick(r, 2 + HOLD);
    ck_assert_uint_eq(version_of(1), 11);
    last_told(1, BIT(REPLICA_MOVED) | BIT(REPLICA_CHANGED));
    ck_assert_uint_eq(log_.lost, 0);
    end();
}
END_TEST

START_TEST(older_knowledge_of_a_leaf_that_waits_counts_only_when_its_snapshot_confirms_it)
{
    begin();
    kit_enter(east, 0, kit_record(1, 11, 101, 0));
    tell(1, east);
    kit_enter(west, 0, kit_record(1, 12, 90, 0));
    tell(1, west);
    replicas_set_epoch(r, 1, east->leaf, 2); /* east waits */
    kit_leave(west, 0, LEFT_MOVED);
    tell(2, west);
    replicas_tick(r, 2 + HOLD);
    ck_assert(!visible(1) && log_.lost == 1);
    stream_writer_set_epoch(east->stream, 2);
    kit_snapshot(r, 3 + HOLD, east);
    ck_assert(visible(1) && version_of(1) == 11);
    end();
}
END_TEST

START_TEST(unwatching_holds_or_ends_who_has_no_other_leaf)
{
    for (int hold = 0; hold < 2; hold++) {
        begin();
        kit_enter(west, 0, kit_record(1, 10, 90, 0));
        kit_enter(west, 1, kit_record(2, 10, 90, 0));
        kit_enter(east, 0, kit_record(2, 11, 101, 0));
        tell(1, west);
        tell(1, east);
        replicas_unwatch(r, 2, west->leaf, hold != 0);
        ck_assert(visible(2));
        ck_assert(visible(1) == (hold != 0));
        replicas_tick(r, 1 + HOLD);
        ck_assert(visible(1) == (hold != 0));
        replicas_tick(r, 2 + HOLD);
        ck_assert(!visible(1) && visible(2));
        ck_assert_uint_eq(log_.lost, 1);
        end();
    }
}
END_TEST

START_TEST(a_leaf_watched_again_takes_its_orphans_back)
{
    begin();
    kit_enter(west, 0, kit_record(1, 10, 90, 0));
    tell(1, west);
    replicas_unwatch(r, 2, west->leaf, true);
    replicas_watch(r, 3, west->leaf);
    kit_snapshot(r, 4, west);
    replicas_tick(r, 10 * HOLD);
    ck_assert(visible(1) && log_.count == 1);
    end();
}
END_TEST

START_TEST(superseding_ends_the_copy_and_ignores_lower_versions_from_then_on)
{
    begin();
    kit_enter(west, 0, kit_record(1, 10, 90, 0));
    tell(1, west);
    replicas_supersede(r, 2, (struct entity_id){1}, 11);
    ck_assert(!visible(1));
    last_told(1, BIT(REPLICA_VANISHED));
    kit_move(west, 0, 1, 1);
    tell(3, west);
    kit_snapshot(r, 4, west);
    ck_assert(!visible(1));
    /* As long as the old leaf goes on claiming it. */
    replicas_tick(r, 10 * HOLD);
    replicas_tick(r, 20 * HOLD);
    kit_move(west, 0, 1, 1);
    tell(20 * HOLD, west);
    ck_assert(!visible(1) && log_.seen == 1);
    /* The version itself is a newer owner's word. */
    kit_enter(east, 0, kit_record(1, 11, 101, 0));
    tell(20 * HOLD, east);
    ck_assert(visible(1) && version_of(1) == 11);
    end();
}
END_TEST

START_TEST(superseding_the_unknown_and_the_newer)
{
    begin();
    replicas_supersede(r, 1, (struct entity_id){1}, 11);
    replicas_supersede(r, 1, (struct entity_id){2}, 0);
    ck_assert(replicas_count(r) == 0 && log_.count == 0);
    kit_enter(west, 0, kit_record(1, 10, 90, 0));
    tell(2, west);
    ck_assert(!visible(1));
    kit_leave(west, 0, LEFT_MOVED);
    kit_enter(west, 1, kit_record(1, 12, 90, 0));
    tell(3, west);
    ck_assert(visible(1));
    replicas_supersede(r, 4, (struct entity_id){1}, 12);
    replicas_supersede(r, 4, (struct entity_id){1}, 5);
    ck_assert(visible(1) && log_.count == 1);
    /* A tombstone of something that nobody claims is forgotten. */
    replicas_supersede(r, 5, (struct entity_id){3}, 100);
    replicas_tick(r, 5 + HOLD);
    kit_enter(west, 2, kit_record(3, 50, 0, 0));
    tell(6 + HOLD, west);
    ck_assert(visible(3));
    end();
}
END_TEST

START_TEST(superseding_drops_an_orphan)
{
    begin();
    kit_enter(west, 0, kit_record(1, 10, 90, 0));
    tell(1, west);
    kit_leave(west, 0, LEFT_MOVED);
    tell(2, west);
    replicas_supersede(r, 3, (struct entity_id){1}, 11);
    ck_assert(!visible(1) && log_.lost == 1);
    replicas_tick(r, 10 * HOLD);
    ck_assert_uint_eq(log_.lost, 1);
    ck_assert(replicas_deadline_us(r) > 10 * HOLD);
    end();
}
END_TEST

START_TEST(handles_are_stable_and_used_again)
{
    begin();
    for (uint32_t i = 0; i < 100; i++) kit_enter(west, i, kit_record(i + 1, 1, 0, 0));
    tell(1, west);
    uint32_t handles[100];
    for (uint32_t i = 0; i < 100; i++) {
        handles[i] = replicas_find(r, (struct entity_id){i + 1});
        ck_assert_uint_lt(handles[i], 100);
    }
    for (uint32_t round = 0; round < 5; round++) {
        for (uint32_t i = 0; i < 50; i++) kit_leave(west, i, LEFT_STRIP);
        tell(2 + round * 2 * HOLD, west);
        replicas_tick(r, 2 + round * 2 * HOLD + HOLD);
        ck_assert_uint_eq(replicas_count(r), 50);
        for (uint32_t i = 0; i < 50; i++) kit_enter(west, i, kit_record(1000 * (round + 1) + i, 1, 0, 0));
        tell(3 + round * 2 * HOLD + HOLD, west);
    }
    for (uint32_t i = 50; i < 100; i++) ck_assert_uint_eq(replicas_find(r, (struct entity_id){i + 1}), handles[i]);
    for (uint32_t i = 0; i < 50; i++) ck_assert_uint_lt(replicas_find(r, (struct entity_id){5000 + i}), 100);
    struct entity_record record;
    ck_assert(!replicas_get(r, 100, &record) && !replicas_get(r, UINT32_MAX, &record));
    end();
}
END_TEST

SUITE_MAIN("stream_claims", a_crossing_whose_new_leaf_speaks_first_is_one_change,
           a_crossing_whose_old_leaf_speaks_first_is_held_until_the_new_one_does,
           an_orphan_that_nobody_claims_vanishes_when_its_time_is_over,
           who_is_gone_vanishes_at_once_and_late_words_of_that_life_are_ignored,
           a_new_life_with_a_higher_version_appears_at_once_after_the_old_one,
           a_late_gone_of_an_old_life_does_not_end_the_new_one,
           a_new_life_whose_gateway_has_a_slow_clock_appears_when_the_tombstone_is_over,
           leaving_the_strip_changes_nothing_where_another_leaf_has_a_higher_version,
           an_equal_version_elsewhere_takes_over_without_a_word_but_the_difference,
           coming_back_within_the_hold_time_is_nothing,
           a_ghost_that_leaves_the_strip_vanishes_at_once_and_may_come_back,
           a_ghost_is_waited_for_only_where_it_is_looked_for, older_knowledge_is_not_shown_while_the_newer_is_held,
           older_knowledge_of_a_leaf_that_waits_counts_only_when_its_snapshot_confirms_it,
           unwatching_holds_or_ends_who_has_no_other_leaf, a_leaf_watched_again_takes_its_orphans_back,
           superseding_ends_the_copy_and_ignores_lower_versions_from_then_on, superseding_the_unknown_and_the_newer,
           superseding_drops_an_orphan, handles_are_stable_and_used_again)
