/* A leaf's standby: what it keeps of the primary's word, and what it says back. */
#include "tests/unit/standby_rig.h"

#include "tests/unit/suite.h"

#define UNIT 164 /* position units in about a metre */

static struct stand s;
static int32_t half;

static void open_rig(void)
{
    struct world world = world_default();
    world.radius_max = 200 * UNIT;
    half = 1 << (world.resolution_bits - 1);
    stand_open(&s, &world);
}

static void two_entities(void)
{
    struct standby_item items[] = {stand_item(7, 0, 1000, 1000, 0), stand_item(8, 1, 2000, 2000, 0)};
    stand_snapshot(&s, 0, items, 2);
}

START_TEST(a_snapshot_is_acked_at_once_and_makes_it_level)
{
    open_rig();
    two_entities();
    ck_assert_uint_eq(stand_acked(&s, 0).seq, 1);
    ck_assert(!stand_acked(&s, 0).refused);
    struct stand_found found = stand_held(&s, 7);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_str_eq(found.state, "hp=7");
    ck_assert_uint_eq(stand_stats(&s).replicas, 2);
    ck_assert_uint_eq(stand_stats(&s).replica_leaves, 1);
    ck_assert_uint_eq(stand_owned(&s, 7).count, 0); /* it is served to nobody */
    ck_assert_uint_eq(stand_stats(&s).owned, 0);
    stand_close(&s);
}
END_TEST

START_TEST(a_snapshot_in_parts_counts_only_when_the_last_is_there)
{
    open_rig();
    for (uint32_t part = 0; part < 3; part++) {
        struct standby_item item = stand_item(7 + part, part, 1000, 1000, 0);
        ck_assert_uint_eq(s.told[STAND_PRIMARY].ack_count, 0);
        ck_assert_uint_eq(stand_stats(&s).replica_leaves, 0);
        standby_begin(
            &s.w, &(struct standby){.leaf = stand_leaf(0), .epoch = 1, .seq = ++s.seq[0], .part = part, .parts = 3});
        standby_puts(&s.w, 1);
        standby_put(&s.w, &item);
        standby_moves(&s.w, 0);
        stand_say(&s, STAND_PRIMARY, true);
    }
    ck_assert_uint_eq(stand_acked(&s, 0).seq, 3);
    ck_assert_uint_eq(stand_held(&s, 9).count, 1);
    stand_close(&s);
}
END_TEST

START_TEST(a_new_snapshot_replaces_the_old_as_a_whole)
{
    open_rig();
    two_entities();
    struct standby_item item = stand_item(9, 0, 1000, 1000, 0);
    standby_begin(&s.w, &(struct standby){.leaf = stand_leaf(0), .epoch = 1, .seq = ++s.seq[0], .parts = 2});
    standby_puts(&s.w, 1);
    standby_put(&s.w, &item);
    standby_moves(&s.w, 0);
    stand_say(&s, STAND_PRIMARY, true);
    ck_assert_uint_eq(stand_held(&s, 7).count, 1); /* the old one, as long as the new one is not whole */
    ck_assert_uint_eq(stand_held(&s, 9).count, 0);
    item = stand_item(10, 1, 1000, 1000, 0);
    standby_begin(&s.w, &(struct standby){.leaf = stand_leaf(0), .epoch = 1, .seq = ++s.seq[0], .part = 1, .parts = 2});
    standby_puts(&s.w, 1);
    standby_put(&s.w, &item);
    standby_moves(&s.w, 0);
    stand_say(&s, STAND_PRIMARY, true);
    ck_assert_uint_eq(stand_held(&s, 7).count, 0);
    ck_assert_uint_eq(stand_held(&s, 9).count + stand_held(&s, 10).count, 2);
    ck_assert_uint_eq(stand_stats(&s).replicas, 2);
    stand_close(&s);
}
END_TEST

START_TEST(puts_and_drops_are_acked_at_once_and_moves_with_the_beat)
{
    open_rig();
    two_entities();
    stand_forget(&s);
    stand_change(&s, 0, 0, NULL, &(struct standby_move){.slot = 1, .dx = 5, .dy = -3, .dz = 2, .yaw = 9});
    ck_assert_uint_eq(s.told[STAND_PRIMARY].ack_count, 0);
    struct stand_found found = stand_held(&s, 8);
    ck_assert_int_eq(found.entity.record.position.x, 2005);
    ck_assert_int_eq(found.entity.record.position.y, 1997);
    ck_assert_int_eq(found.entity.record.position.z, 2);
    ck_assert_uint_eq(found.entity.record.yaw, 9);
    stand_beat(&s);
    ck_assert_uint_eq(stand_acked(&s, 0).seq, 2);
    ck_assert_uint_eq(s.told[STAND_PRIMARY].ack.stamp, s.stamp);
    struct standby_item item = stand_item(9, 2, 3000, 3000, 0);
    stand_change(&s, 0, 0, &item, NULL);
    ck_assert_uint_eq(stand_acked(&s, 0).seq, 3);
    stand_change(&s, 0, 7, NULL, NULL);
    ck_assert_uint_eq(stand_acked(&s, 0).seq, 4);
    ck_assert_uint_eq(stand_held(&s, 7).count, 0);
    ck_assert_uint_eq(stand_held(&s, 9).count, 1);
    stand_close(&s);
}
END_TEST

START_TEST(a_beat_is_answered_even_if_nothing_is_new)
{
    open_rig();
    two_entities();
    stand_forget(&s);
    stand_beat(&s);
    ck_assert_uint_eq(s.told[STAND_PRIMARY].count[MESSAGE_STANDBY_ACK], 1);
    ck_assert_uint_eq(s.told[STAND_PRIMARY].ack.stamp, s.stamp);
    ck_assert_uint_eq(s.told[STAND_PRIMARY].ack_count, 0);
    stand_close(&s);
}
END_TEST

START_TEST(a_put_replaces_all_of_an_entity_and_may_take_a_slot_that_the_same_message_frees)
{
    open_rig();
    two_entities();
    struct standby_item item = stand_item(8, 0, 4000, 4000, 3 * UNIT);
    item.transfer.record.version = 1009;
    item.transfer.record.state = (const uint8_t *)"gold";
    item.leaving_to = stand_leaf(3);
    stand_change(&s, 0, 7, &item, NULL);
    ck_assert_uint_eq(stand_acked(&s, 0).seq, 2);
    struct stand_found found = stand_held(&s, 8);
    ck_assert_str_eq(found.state, "gold");
    ck_assert_uint_eq(found.entity.record.version, 1009);
    ck_assert(found.entity.leaving);
    stand_change(&s, 0, 0, NULL, &(struct standby_move){.slot = 0, .dx = 1});
    ck_assert_int_eq(stand_held(&s, 8).entity.record.position.x, 4001);
    ck_assert_uint_eq(stand_stats(&s).replicas_broken, 0);
    stand_close(&s);
}
END_TEST

/* The content is lost and the primary is asked for a new one, by an ack of seq 0. */
static void expect_broken(void)
{
    ck_assert_uint_eq(stand_stats(&s).replicas_broken, 1);
    ck_assert_uint_eq(stand_stats(&s).replicas, 0);
    ck_assert_uint_eq(stand_stats(&s).replica_leaves, 0);
    ck_assert_uint_eq(stand_acked(&s, 0).seq, 0);
    ck_assert(!stand_acked(&s, 0).refused);
    stand_forget(&s);
    two_entities();
    ck_assert_uint_eq(stand_acked(&s, 0).seq, s.seq[0]);
    ck_assert_uint_eq(stand_held(&s, 7).count, 1);
    stand_close(&s);
}

START_TEST(a_missing_message_costs_the_content)
{
    open_rig();
    two_entities();
    s.seq[0]++;
    stand_change(&s, 0, 7, NULL, NULL);
    expect_broken();
}
END_TEST

START_TEST(a_move_of_an_unknown_slot_costs_the_content)
{
    open_rig();
    two_entities();
    stand_change(&s, 0, 0, NULL, &(struct standby_move){.slot = 4000, .dx = 1});
    expect_broken();
}
END_TEST

START_TEST(a_move_out_of_the_world_costs_the_content)
{
    open_rig();
    two_entities();
    stand_change(&s, 0, 0, NULL, &(struct standby_move){.slot = 0, .dx = -1001});
    expect_broken();
}
END_TEST

START_TEST(a_put_into_a_taken_slot_costs_the_content)
{
    open_rig();
    two_entities();
    struct standby_item item = stand_item(9, 1, 1000, 1000, 0);
    stand_change(&s, 0, 0, &item, NULL);
    expect_broken();
}
END_TEST

START_TEST(an_entity_outside_the_world_costs_the_content)
{
    open_rig();
    two_entities();
    struct standby_item item = stand_item(9, 2, 2 * half, 1000, 0);
    stand_change(&s, 0, 0, &item, NULL);
    expect_broken();
}
END_TEST

START_TEST(a_radius_beyond_the_worlds_costs_the_content)
{
    open_rig();
    two_entities();
    struct standby_item item = stand_item(9, 2, 1000, 1000, s.world.radius_max + 1);
    stand_change(&s, 0, 0, &item, NULL);
    expect_broken();
}
END_TEST

START_TEST(changes_before_any_snapshot_are_answered_by_asking_for_one)
{
    open_rig();
    struct standby_item item = stand_item(9, 2, 1000, 1000, 0);
    stand_change(&s, 0, 0, &item, NULL);
    expect_broken();
}
END_TEST

START_TEST(a_standby_that_hears_nothing_asks_every_second)
{
    open_rig();
    for (int i = 0; i < 25; i++) stand_tick(&s);
    ck_assert_uint_eq(stand_acked(&s, 0).seq, 0);
    ck_assert_uint_eq(stand_acked(&s, 0).epoch, 1);
    uint32_t asked = s.told[STAND_PRIMARY].ack_count;
    ck_assert_uint_eq(asked, 2); /* both leaves, once */
    for (int i = 0; i < 20; i++) stand_tick(&s);
    ck_assert_uint_eq(s.told[STAND_PRIMARY].ack_count, 4);
    two_entities();
    stand_forget(&s);
    for (int i = 0; i < 30; i++) stand_tick(&s);
    ck_assert_uint_gt(s.told[STAND_PRIMARY].ack_count, 0);
    for (uint32_t i = 0; i < s.told[STAND_PRIMARY].ack_count; i++) {
        ck_assert(quadkey_equal(s.told[STAND_PRIMARY].acks[i].leaf, stand_leaf(2)));
    }
    stand_close(&s);
}
END_TEST

START_TEST(a_drop_of_what_is_not_there_is_no_fault)
{
    open_rig();
    two_entities();
    stand_change(&s, 0, 99, NULL, NULL);
    stand_change(&s, 0, 7, NULL, NULL);
    stand_change(&s, 0, 7, NULL, NULL);
    ck_assert_uint_eq(stand_acked(&s, 0).seq, 4);
    ck_assert_uint_eq(stand_stats(&s).replicas, 1);
    stand_close(&s);
}
END_TEST

START_TEST(who_is_not_named_by_the_map_is_refused)
{
    open_rig();
    struct standby_item item = stand_item(9, 0, half + 1000, half + 1000, 0);
    stand_snapshot(&s, 3, &item, 1); /* the third's leaf, and we are no standby of it */
    ck_assert(stand_acked(&s, 3).refused);
    ck_assert_uint_eq(stand_stats(&s).replicas, 0);
    stand_close(&s);
}
END_TEST

START_TEST(a_primary_whose_map_is_ahead_of_ours_is_believed)
{
    open_rig();
    s.map[3].epoch = s.map[3].since = 2; /* as the primary knows it, not we */
    s.map[3].primary = stand_node[STAND_PRIMARY];
    s.map[3].standby = STAND_SELF;
    struct standby_item item = stand_item(9, 0, half + 1000, half + 1000, 0);
    stand_snapshot(&s, 3, &item, 1);
    ck_assert_uint_eq(stand_acked(&s, 3).seq, 1);
    ck_assert_uint_eq(stand_acked(&s, 3).epoch, 2);
    stand_map(&s);
    ck_assert_uint_eq(stand_held(&s, 9).count, 1);
    stand_close(&s);
}
END_TEST

static void end_of(enum stand_peer peer, uint32_t epoch)
{
    standby_end_encode(&s.w, &(struct standby_end){.leaf = stand_leaf(0), .epoch = epoch});
    stand_say(&s, peer, true);
}

/* That peer has the first message of our leaf 1, a whole copy. */
static void acks(enum stand_peer peer, uint32_t epoch)
{
    standby_ack_begin(&s.w, &(struct standby_ack){.count = 1});
    standby_ack_add(&s.w, &(struct standby_ack_item){.leaf = stand_leaf(1), .epoch = epoch, .seq = 1});
    stand_say(&s, peer, true);
}

START_TEST(a_replaced_standby_keeps_its_copy_until_the_other_is_level_and_refuses_what_still_comes)
{
    open_rig();
    two_entities();
    struct leaf_owner before = s.map[0];
    s.map[0].epoch = 2;
    s.map[0].standby = stand_node[STAND_THIRD];
    stand_map(&s);
    ck_assert_uint_eq(stand_stats(&s).replicas, 2); /* its successor may not be level yet */
    struct leaf_owner after = s.map[0];
    s.map[0] = before; /* the primary does not know yet */
    stand_forget(&s);
    stand_change(&s, 0, 7, NULL, NULL);
    ck_assert(stand_acked(&s, 0).refused);
    for (int i = 0; i < 200; i++) stand_tick(&s); /* ten seconds: how long a copy takes nobody knows */
    ck_assert_uint_eq(stand_stats(&s).replicas, 2);
    end_of(STAND_THIRD, 2);   /* a stranger */
    end_of(STAND_PRIMARY, 1); /* of our own time */
    ck_assert_uint_eq(stand_stats(&s).replicas, 2);
    end_of(STAND_PRIMARY, 2);
    ck_assert_uint_eq(stand_stats(&s).replicas, 0);
    ck_assert_uint_eq(stand_stats(&s).replica_leaves, 0);
    s.map[0] = after;
    stand_close(&s);
}
END_TEST

START_TEST(the_copy_of_a_leaf_without_a_standby_is_kept_until_its_primary_says_that_it_answers_alone)
{
    open_rig();
    two_entities();
    s.map[0].epoch = 2;
    s.map[0].standby = NODE_NONE;
    stand_map(&s);
    ck_assert_uint_eq(stand_stats(&s).replicas, 2); /* it may have died before it heard that */
    end_of(STAND_PRIMARY, 2);
    ck_assert_uint_eq(stand_stats(&s).replicas, 0);
    stand_close(&s);
}
END_TEST

START_TEST(who_stands_by_once_more_keeps_its_copy_until_the_next_one_is_there)
{
    open_rig();
    two_entities();
    struct node_id self = s.map[0].standby;
    s.map[0].epoch = 2;
    s.map[0].standby = stand_node[STAND_THIRD];
    stand_map(&s);
    s.map[0].epoch = 3;
    s.map[0].standby = self;
    stand_map(&s);
    ck_assert_uint_eq(stand_stats(&s).replicas, 2);
    ck_assert_uint_eq(stand_stats(&s).replica_leaves, 1);
    stand_close(&s);
}
END_TEST

START_TEST(a_primary_that_has_no_standby_any_more_tells_the_former_one)
{
    open_rig();
    struct leaf_owner *leaf = &s.map[1]; /* ours */
    leaf->standby = stand_node[STAND_PRIMARY];
    leaf->epoch = 2;
    stand_map(&s);
    leaf->standby = NODE_NONE;
    leaf->epoch = 3;
    stand_map(&s);
    ck_assert_uint_eq(s.told[STAND_PRIMARY].count[MESSAGE_STANDBY_END], 1);
    ck_assert_uint_eq(s.told[STAND_PRIMARY].end.epoch, 3);
    stand_close(&s);
}
END_TEST

START_TEST(a_primary_tells_the_former_standby_when_the_present_one_is_level)
{
    open_rig();
    struct leaf_owner *leaf = &s.map[1]; /* ours */
    leaf->standby = stand_node[STAND_PRIMARY];
    leaf->epoch = 2;
    stand_map(&s);
    acks(STAND_PRIMARY, 2);
    ck_assert_uint_eq(s.told[STAND_PRIMARY].count[MESSAGE_STANDBY_END], 0); /* there was none before */
    leaf->standby = stand_node[STAND_THIRD];
    leaf->epoch = 3;
    stand_map(&s);
    for (int i = 0; i < 40; i++) stand_tick(&s);
    ck_assert_uint_eq(s.told[STAND_PRIMARY].count[MESSAGE_STANDBY_END], 0);
    acks(STAND_THIRD, 3);
    ck_assert_uint_eq(s.told[STAND_PRIMARY].count[MESSAGE_STANDBY_END], 1);
    ck_assert(quadkey_equal(s.told[STAND_PRIMARY].end.leaf, stand_leaf(1)));
    ck_assert_uint_eq(s.told[STAND_PRIMARY].end.epoch, 3);
    ck_assert_uint_eq(s.told[STAND_THIRD].count[MESSAGE_STANDBY_END], 0);
    stand_close(&s);
}
END_TEST

START_TEST(who_stood_by_before_and_does_so_again_is_not_told_to_forget)
{
    open_rig();
    struct leaf_owner *leaf = &s.map[1];
    static const enum stand_peer turns[] = {STAND_PRIMARY, STAND_THIRD, STAND_PRIMARY};
    for (uint32_t i = 0; i < 3; i++) {
        leaf->standby = stand_node[turns[i]];
        leaf->epoch++;
        stand_map(&s);
        if (i != 1) acks(turns[i], leaf->epoch); /* the third never gets level */
    }
    ck_assert_uint_eq(s.told[STAND_PRIMARY].count[MESSAGE_STANDBY_END], 0);
    ck_assert_uint_eq(s.told[STAND_THIRD].count[MESSAGE_STANDBY_END], 1);
    stand_close(&s);
}
END_TEST

START_TEST(a_higher_epoch_of_the_same_pair_costs_no_snapshot)
{
    open_rig();
    two_entities();
    s.map[0].epoch = 3;
    s.seq[0] = 0; /* counts from 1 within an epoch */
    stand_change(&s, 0, 7, NULL, NULL);
    ck_assert_uint_eq(stand_acked(&s, 0).seq, 1);
    ck_assert_uint_eq(stand_acked(&s, 0).epoch, 3);
    ck_assert_uint_eq(stand_held(&s, 8).count, 1);
    stand_map(&s);
    stand_change(&s, 0, 8, NULL, NULL);
    ck_assert_uint_eq(stand_stats(&s).replicas, 0);
    ck_assert_uint_eq(stand_stats(&s).replicas_broken, 0);
    s.map[0].epoch = 1; /* and never back */
    s.seq[0] = 2;
    struct standby_item item = stand_item(9, 2, 1000, 1000, 0);
    stand_change(&s, 0, 0, &item, NULL);
    ck_assert_uint_eq(stand_stats(&s).replicas, 0);
    stand_close(&s);
}
END_TEST

START_TEST(a_new_primary_begins_anew)
{
    open_rig();
    s.map[0].epoch = 2;
    two_entities();
    s.map[0].primary = stand_node[STAND_THIRD];
    s.map[0].epoch = s.map[0].since = 3;
    stand_map(&s);
    ck_assert_uint_eq(stand_stats(&s).replicas, 0);
    stand_forget(&s);
    stand_change(&s, 0, 7, NULL, NULL); /* of the former one */
    ck_assert(stand_acked(&s, 0).refused);
    stand_close(&s);
}
END_TEST

START_TEST(a_thousand_come_and_go_and_nothing_is_left)
{
    open_rig();
    two_entities();
    for (uint64_t round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < 50; i++) {
            uint8_t state[300] = {(uint8_t)i};
            struct standby_item item = stand_item(100 + i, 2 + i, 1000, 1000, 0);
            item.transfer.record.state = state;
            item.transfer.record.state_size = (uint32_t)(round * 7 % sizeof state);
            stand_change(&s, 0, 0, &item, NULL);
        }
        for (uint32_t i = 0; i < 50; i++) stand_change(&s, 0, 100 + i, NULL, NULL);
    }
    ck_assert_uint_eq(stand_stats(&s).replicas, 2);
    ck_assert_uint_eq(stand_stats(&s).replicas_broken, 0);
    ck_assert_uint_eq(stand_acked(&s, 0).seq, 2001);
    stand_close(&s);
}
END_TEST

SUITE_MAIN("cellserver_replica", a_snapshot_is_acked_at_once_and_makes_it_level,
           a_snapshot_in_parts_counts_only_when_the_last_is_there, a_new_snapshot_replaces_the_old_as_a_whole,
           puts_and_drops_are_acked_at_once_and_moves_with_the_beat, a_beat_is_answered_even_if_nothing_is_new,
           a_put_replaces_all_of_an_entity_and_may_take_a_slot_that_the_same_message_frees,
           a_missing_message_costs_the_content, a_move_of_an_unknown_slot_costs_the_content,
           a_move_out_of_the_world_costs_the_content, a_put_into_a_taken_slot_costs_the_content,
           an_entity_outside_the_world_costs_the_content, a_radius_beyond_the_worlds_costs_the_content,
           changes_before_any_snapshot_are_answered_by_asking_for_one, a_standby_that_hears_nothing_asks_every_second,
           a_drop_of_what_is_not_there_is_no_fault, who_is_not_named_by_the_map_is_refused,
           a_primary_whose_map_is_ahead_of_ours_is_believed,
           a_replaced_standby_keeps_its_copy_until_the_other_is_level_and_refuses_what_still_comes,
           the_copy_of_a_leaf_without_a_standby_is_kept_until_its_primary_says_that_it_answers_alone,
           who_stands_by_once_more_keeps_its_copy_until_the_next_one_is_there,
           a_primary_that_has_no_standby_any_more_tells_the_former_one,
           a_primary_tells_the_former_standby_when_the_present_one_is_level,
           who_stood_by_before_and_does_so_again_is_not_told_to_forget,
           a_higher_epoch_of_the_same_pair_costs_no_snapshot, a_new_primary_begins_anew,
           a_thousand_come_and_go_and_nothing_is_left)
