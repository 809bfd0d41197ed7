/* A standby becomes the primary: when, with what, and what is told to whom. */
#include "tests/unit/standby_rig.h"

#include "tests/unit/suite.h"

#define UNHEARD 1024u /* by so much a promotion raises a version */
#define UNIT    164   /* position units in about a metre */

static struct stand s;
static int32_t half;

static void open_rig(void)
{
    struct world world = world_default();
    world.radius_max = 200 * UNIT;
    half = 1 << (world.resolution_bits - 1);
    stand_open(&s, &world);
}

static void level_with(struct standby_item item)
{
    stand_snapshot(&s, 0, &item, 1);
    stand_beat(&s);
    stand_forget(&s);
}

static bool serves(uint32_t child)
{
    uint32_t epoch;
    return cellserver_owns(s.server, stand_leaf(child), &epoch);
}

START_TEST(a_leaf_of_a_dead_primary_is_served_and_published_in_the_same_step)
{
    open_rig();
    level_with(stand_item(7, 0, 1000, 1000, 0));
    stand_primary_dies(&s);
    ck_assert(serves(0));
    struct stand_found found = stand_owned(&s, 7);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_uint_eq(found.entity.record.version, 1000 + UNHEARD);
    ck_assert_str_eq(found.state, "hp=7");
    ck_assert_uint_eq(s.entered, 1); /* the first frame is out before any tick */
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_OWNER], 1);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].owner.version, 1000 + UNHEARD);
    ck_assert_uint_eq(stand_stats(&s).replicas, 0);
    ck_assert_uint_eq(stand_stats(&s).promotions, 2); /* leaf 2 as well, empty */
    ck_assert_ptr_nonnull(strstr(s.logged, "cause=dead"));
    stand_close(&s);
}
END_TEST

START_TEST(a_leaf_without_a_replica_opens_empty)
{
    open_rig();
    s.gone[STAND_THIRD] = true;
    stand_give(&s, 3, NODE_NONE);
    stand_map(&s);
    ck_assert(serves(3));
    stand_close(&s);
}
END_TEST

START_TEST(a_silent_primary_is_replaced_only_when_its_last_ack_is_stale)
{
    open_rig();
    level_with(stand_item(7, 0, 1000, 1000, 0));
    uint64_t acked_us = s.now_us; /* of the last beat */
    stand_tick(&s);
    stand_give(&s, 0, NODE_NONE);
    stand_map(&s);
    ck_assert(!serves(0));
    ck_assert(stand_acked(&s, 0).refused); /* at once, so that a primary that lives stops early */
    while (s.now_us + STAND_TICK_US < acked_us + STAND_LEASE_US + STAND_LEASE_US / 5) {
        stand_tick(&s);
        ck_assert(!serves(0));
        ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_OWNER], 0);
    }
    stand_tick(&s);
    ck_assert(serves(0));
    ck_assert_ptr_nonnull(strstr(s.logged, "cause=quiet"));
    stand_close(&s);
}
END_TEST

START_TEST(beats_that_are_not_acked_any_more_do_not_put_it_off)
{
    open_rig();
    level_with(stand_item(7, 0, 1000, 1000, 0));
    stand_give(&s, 0, NODE_NONE);
    stand_map(&s);
    for (int i = 0; i < 6; i++) {
        stand_beat(&s); /* answered for leaf 2, which it has still */
        stand_tick(&s);
    }
    ck_assert(serves(0));
    stand_close(&s);
}
END_TEST

START_TEST(a_release_is_enough_and_what_came_before_it_counts)
{
    open_rig();
    level_with(stand_item(7, 0, 1000, 1000, 0));
    stand_give(&s, 0, stand_node[STAND_PRIMARY]);
    stand_map(&s);
    struct standby_item late = stand_item(8, 1, 2000, 2000, 0);
    s.map[0].epoch--; /* as the former primary sends it */
    stand_forget(&s);
    stand_change(&s, 0, 0, &late, NULL);
    s.map[0].epoch++;
    for (uint32_t i = 0; i < s.told[STAND_PRIMARY].ack_count; i++) ck_assert(s.told[STAND_PRIMARY].acks[i].refused);
    ck_assert(!serves(0));
    release_encode(&s.w, &(struct release){.leaf = stand_leaf(0), .epoch = s.map[0].since, .seq = s.seq[0]});
    stand_say(&s, STAND_PRIMARY, true);
    ck_assert(serves(0));
    ck_assert_uint_eq(stand_owned(&s, 7).count, 1);
    ck_assert_uint_eq(stand_owned(&s, 8).count, 1);
    ck_assert_ptr_nonnull(strstr(s.logged, "cause=released"));
    stand_close(&s);
}
END_TEST

START_TEST(a_release_that_comes_before_the_map_is_remembered_for_that_ownership_only)
{
    open_rig();
    level_with(stand_item(7, 0, 1000, 1000, 0));
    release_encode(&s.w, &(struct release){.leaf = stand_leaf(0), .epoch = 2, .seq = s.seq[0]});
    stand_say(&s, STAND_PRIMARY, true);
    ck_assert(!serves(0));
    stand_give(&s, 0, NODE_NONE);
    ck_assert_uint_eq(s.map[0].since, 2);
    stand_map(&s);
    ck_assert(serves(0));
    stand_close(&s);

    open_rig();
    level_with(stand_item(7, 0, 1000, 1000, 0));
    release_encode(&s.w, &(struct release){.leaf = stand_leaf(0), .epoch = 2, .seq = s.seq[0]});
    stand_say(&s, STAND_PRIMARY, true);
    s.map[0].epoch = 6;
    stand_give(&s, 0, NODE_NONE); /* since 7 */
    stand_map(&s);
    ck_assert(!serves(0));
    stand_close(&s);
}
END_TEST

START_TEST(a_release_of_a_stranger_is_ignored)
{
    open_rig();
    level_with(stand_item(7, 0, 1000, 1000, 0));
    stand_give(&s, 0, NODE_NONE);
    stand_map(&s);
    release_encode(&s.w, &(struct release){.leaf = stand_leaf(0), .epoch = 2, .seq = s.seq[0]});
    stand_say(&s, STAND_THIRD, true);
    ck_assert(!serves(0));
    stand_close(&s);
}
END_TEST

START_TEST(a_promoted_standby_never_acks_that_leaf_again)
{
    open_rig();
    level_with(stand_item(7, 0, 1000, 1000, 0));
    stand_give(&s, 0, NODE_NONE);
    stand_map(&s);
    for (int i = 0; i < 10; i++) stand_tick(&s);
    ck_assert(serves(0));
    stand_forget(&s);
    s.map[0].epoch--;
    struct standby_item late = stand_item(8, 1, 2000, 2000, 0);
    stand_change(&s, 0, 0, &late, NULL);
    stand_beat(&s);
    ck_assert_uint_gt(s.told[STAND_PRIMARY].ack_count, 0);
    ck_assert(stand_acked(&s, 0).refused);
    ck_assert_uint_eq(stand_owned(&s, 8).count, 0);
    stand_close(&s);
}
END_TEST

START_TEST(whatever_the_former_primary_still_says_is_refused_under_its_own_epoch)
{
    open_rig();
    level_with(stand_item(7, 0, 1000, 1000, 0));
    s.map[0].epoch = 4;
    stand_give(&s, 0, NODE_NONE);
    stand_map(&s);
    stand_forget(&s);
    s.map[0].epoch = 3; /* its map is ahead of what it has told us so far, and behind ours */
    s.seq[0] = 0;
    struct standby_item items[] = {stand_item(7, 0, 1000, 1000, 0), stand_item(8, 1, 2000, 2000, 0)};
    stand_snapshot(&s, 0, items, 2);
    ck_assert(stand_acked(&s, 0).refused);
    ck_assert_uint_eq(stand_acked(&s, 0).epoch, 3);
    ck_assert_uint_eq(stand_held(&s, 8).count, 1); /* it counts all the same, until the leaf is released */
    stand_close(&s);
}
END_TEST

START_TEST(the_map_back_at_the_former_primary_frees_the_replica)
{
    open_rig();
    level_with(stand_item(7, 0, 1000, 1000, 0));
    stand_give(&s, 0, NODE_NONE);
    stand_map(&s);
    s.map[0].primary = stand_node[STAND_PRIMARY];
    s.map[0].standby = STAND_SELF;
    s.map[0].since = ++s.map[0].epoch;
    stand_map(&s);
    ck_assert_uint_eq(stand_stats(&s).replicas, 0);
    for (int i = 0; i < 10; i++) stand_tick(&s);
    ck_assert(!serves(0));
    stand_forget(&s);
    s.seq[0] = 0;
    struct standby_item item = stand_item(7, 0, 1000, 1000, 0);
    stand_snapshot(&s, 0, &item, 1);
    ck_assert(!stand_acked(&s, 0).refused);
    ck_assert_uint_eq(stand_stats(&s).replicas, 1);
    stand_close(&s);
}
END_TEST

START_TEST(a_copy_whose_successor_was_not_level_in_time_is_promoted)
{
    open_rig();
    level_with(stand_item(7, 0, 1000, 1000, 0));
    s.map[0].epoch++;
    s.map[0].standby = stand_node[STAND_THIRD];
    stand_map(&s);
    stand_tick(&s);
    stand_primary_dies(&s); /* and leaf 0 comes to us after all */
    ck_assert(serves(0));
    ck_assert_uint_eq(stand_owned(&s, 7).count, 1);
    stand_close(&s);
}
END_TEST

START_TEST(a_repeated_enter_is_known_after_the_promotion)
{
    open_rig();
    level_with(stand_item(7, 0, 1000, 1000, 0));
    stand_primary_dies(&s);
    struct enter enter = {.request = 7, .sequence = 10};
    enter.record = (struct entity_record){.id = {7}, .version = 999, .position = {1000, 1000, 0}};
    enter_encode(&s.w, &enter);
    stand_say(&s, STAND_GATEWAY, true);
    ck_assert_int_eq(s.told[STAND_GATEWAY].result.error, TERRANE_ERR_OK);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].result.version, 1000 + UNHEARD);
    stand_close(&s);
}
END_TEST

START_TEST(who_was_marked_as_leaving_keeps_its_version_and_is_offered_again)
{
    open_rig();
    struct standby_item item = stand_item(7, 0, half - 1000, 1000, 0);
    item.transfer.record.position = (struct position){half + 30 * UNIT, half + 1000, 0};
    item.leaving_to = stand_leaf(3);
    level_with(item);
    stand_primary_dies(&s);
    stand_tick(&s);
    stand_tick(&s);
    struct stand_found found = stand_owned(&s, 7);
    ck_assert_uint_eq(found.count, 1);
    ck_assert(found.entity.leaving);
    ck_assert_uint_eq(found.entity.record.version, 1000);
    ck_assert_uint_eq(s.told[STAND_THIRD].offered_count, 1);
    ck_assert_uint_eq(s.told[STAND_THIRD].offered[0].id.v, 7);
    ck_assert_uint_eq(s.told[STAND_THIRD].offered[0].offered, 1000);
    ck_assert(quadkey_equal(s.told[STAND_THIRD].offered_to, stand_leaf(3)));
    stand_close(&s);
}
END_TEST

START_TEST(what_was_pending_counts_as_taken_over)
{
    open_rig();
    struct standby_item item = stand_item(7, 0, 1000, 1000, 0);
    item.pending = true;
    level_with(item);
    stand_primary_dies(&s);
    struct stand_found found = stand_owned(&s, 7);
    ck_assert_uint_eq(found.count, 1);
    ck_assert(!found.entity.leaving);
    ck_assert_uint_eq(found.entity.record.version, 1000 + UNHEARD);
    stand_close(&s);
}
END_TEST

START_TEST(of_two_replicas_with_one_id_the_higher_version_is_the_entity)
{
    for (uint32_t newer = 0; newer <= 2; newer += 2) {
        open_rig();
        struct standby_item in_0 = stand_item(7, 0, 1000, 1000, 0), in_2 = stand_item(7, 0, 1000, half + 1000, 0);
        (newer == 0 ? &in_0 : &in_2)->transfer.record.version = 1001;
        stand_snapshot(&s, 0, &in_0, 1);
        stand_snapshot(&s, 2, &in_2, 1);
        stand_primary_dies(&s);
        struct stand_found found = stand_owned(&s, 7);
        ck_assert_uint_eq(found.count, 1);
        ck_assert_uint_eq(found.entity.record.version, 1001 + UNHEARD);
        ck_assert(quadkey_equal(found.entity.leaf, stand_leaf(newer)));
        ck_assert_uint_eq(stand_stats(&s).owned, 1);
        stand_close(&s);
    }
}
END_TEST

START_TEST(two_leaves_promoted_one_after_the_other_keep_one_entity)
{
    for (uint32_t first = 0; first <= 2; first += 2) {
        open_rig();
        struct standby_item in_0 = stand_item(7, 0, 1000, half + 30 * UNIT, 0);
        in_0.leaving_to = stand_leaf(2);
        struct standby_item in_2 = stand_item(7, 0, 1000, half + 30 * UNIT, 0);
        in_2.pending = true;
        stand_snapshot(&s, 0, &in_0, 1);
        stand_snapshot(&s, 2, &in_2, 1);
        for (uint32_t turn = 0; turn < 2; turn++) {
            uint32_t child = turn == 0 ? first : 2 - first;
            stand_give(&s, child, NODE_NONE);
            stand_map(&s);
            release_encode(&s.w, &(struct release){.leaf = stand_leaf(child), .epoch = 2, .seq = s.seq[child]});
            stand_say(&s, STAND_PRIMARY, true);
            ck_assert(serves(child));
            ck_assert_uint_eq(stand_owned(&s, 7).count, 1);
        }
        stand_tick(&s);
        stand_tick(&s);
        struct stand_found found = stand_owned(&s, 7);
        ck_assert_uint_eq(found.count, 1);
        ck_assert_uint_eq(found.entity.record.version, 1000 + UNHEARD);
        ck_assert(quadkey_equal(found.entity.leaf, stand_leaf(2)));
        ck_assert(!found.entity.leaving);
        ck_assert_uint_eq(stand_stats(&s).leaving, 0);
        stand_close(&s);
    }
}
END_TEST

/* An entity of ours in leaf 1. */
static void enter_here(uint64_t id, uint64_t version)
{
    struct enter enter = {.request = id, .sequence = 20};
    enter.record = (struct entity_record){.id = {id}, .version = version, .position = {half + 1000, 1000, 0}};
    enter_encode(&s.w, &enter);
    stand_say(&s, STAND_GATEWAY, true);
    ck_assert_int_eq(s.told[STAND_GATEWAY].result.error, TERRANE_ERR_OK);
}

START_TEST(what_is_owned_here_under_a_higher_version_stays)
{
    open_rig();
    enter_here(7, 1000 + UNHEARD + 1);
    level_with(stand_item(7, 0, 1000, 1000, 0));
    stand_primary_dies(&s);
    struct stand_found found = stand_owned(&s, 7);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_uint_eq(found.entity.record.version, 1000 + UNHEARD + 1);
    ck_assert(quadkey_equal(found.entity.leaf, stand_leaf(1)));
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_OWNER], 0);
    stand_close(&s);
}
END_TEST

START_TEST(what_is_owned_here_under_a_lower_version_goes_to_the_promoted_leaf)
{
    open_rig();
    enter_here(7, 1000);
    level_with(stand_item(7, 0, 1000, 1000, 0));
    stand_primary_dies(&s);
    struct stand_found found = stand_owned(&s, 7);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_uint_eq(found.entity.record.version, 1000 + UNHEARD);
    ck_assert(quadkey_equal(found.entity.leaf, stand_leaf(0)));
    ck_assert_uint_eq(stand_stats(&s).owned, 1);
    stand_tick(&s);
    stand_close(&s);
}
END_TEST

START_TEST(a_reader_who_comes_early_gets_its_snapshot_without_a_tick)
{
    open_rig();
    level_with(stand_item(7, 0, 1000, 1000, 0));
    subscribe_encode(&s.w, MESSAGE_SUBSCRIBE, &(struct subscribe){.stream = STREAM_REGION, .leaf = stand_leaf(0)});
    stand_say(&s, STAND_GATEWAY, true);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_UNSUBSCRIBED], 0);
    stand_primary_dies(&s);
    stand_step(&s, &(struct event){.kind = EVENT_PEER_UP, .node = stand_node[STAND_GATEWAY]}); /* the packet goes */
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_SNAPSHOT], 1);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].snapshot.epoch, s.map[0].since);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].snapshot_entities, 1);
    stand_close(&s);
}
END_TEST

START_TEST(a_reader_whose_feed_comes_up_after_the_promotion_gets_what_it_has_missed)
{
    open_rig();
    s.feeds_stand = false;
    level_with(stand_item(7, 0, 1000, 1000, 0));
    subscribe_encode(&s.w, MESSAGE_SUBSCRIBE, &(struct subscribe){.stream = STREAM_REGION, .leaf = stand_leaf(0)});
    stand_say(&s, STAND_GATEWAY, true);
    stand_primary_dies(&s);
    for (int i = 0; i < 3; i++) stand_tick(&s); /* frames that nobody hears */
    uint32_t before = s.told[STAND_GATEWAY].count[MESSAGE_SNAPSHOT];
    const struct event up = {.kind = EVENT_FEED_UP, .node = stand_node[STAND_GATEWAY], .feed = 0};
    stand_step(&s, &up);
    stand_tick(&s);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_SNAPSHOT], before + 1);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].snapshot.epoch, s.map[0].since);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].snapshot_entities, 1);
    stand_close(&s);
}
END_TEST

START_TEST(a_reader_who_waited_for_a_leaf_that_went_elsewhere_is_told)
{
    open_rig();
    level_with(stand_item(7, 0, 1000, 1000, 0));
    subscribe_encode(&s.w, MESSAGE_SUBSCRIBE, &(struct subscribe){.stream = STREAM_GHOST, .leaf = stand_leaf(0)});
    stand_say(&s, STAND_THIRD, true);
    s.map[0].standby = stand_node[STAND_THIRD];
    s.map[0].epoch++;
    stand_map(&s);
    ck_assert_uint_eq(s.told[STAND_THIRD].count[MESSAGE_UNSUBSCRIBED], 1);
    stand_close(&s);
}
END_TEST

START_TEST(a_reader_may_wait_until_the_end)
{
    open_rig();
    level_with(stand_item(7, 0, 1000, 1000, 0));
    subscribe_encode(&s.w, MESSAGE_SUBSCRIBE, &(struct subscribe){.stream = STREAM_REGION, .leaf = stand_leaf(0)});
    stand_say(&s, STAND_GATEWAY, true);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_UNSUBSCRIBED], 0);
    stand_close(&s);
}
END_TEST

START_TEST(what_comes_before_the_release_is_done_after_it_in_order)
{
    open_rig();
    level_with(stand_item(7, 0, 1000, 1000, 0));
    stand_give(&s, 0, NODE_NONE);
    stand_map(&s);
    set_state_encode(&s.w,
                     &(struct set_state){
                         .request = 31, .sequence = 11, .id = {7}, .state = (const uint8_t *)"hp=6", .state_size = 4});
    stand_say(&s, STAND_GATEWAY, true);
    moves_begin(&s.w, &(struct moves){.sequence = 12, .count = 1});
    moves_add(&s.w, &(struct move){.id = {7}, .position = {1500, 1500, 0}});
    stand_say(&s, STAND_GATEWAY, false);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_RESULT], 0);
    release_encode(&s.w, &(struct release){.leaf = stand_leaf(0), .epoch = 2, .seq = s.seq[0]});
    stand_say(&s, STAND_PRIMARY, true);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].result.request, 31);
    ck_assert_int_eq(s.told[STAND_GATEWAY].result.error, TERRANE_ERR_OK);
    ck_assert_str_eq(stand_owned(&s, 7).state, "hp=6");
    stand_tick(&s);
    ck_assert_int_eq(stand_owned(&s, 7).entity.record.position.x, 1500);
    stand_close(&s);
}
END_TEST

START_TEST(nobody_is_told_that_an_entity_of_a_standby_leaf_is_unknown)
{
    open_rig();
    level_with(stand_item(7, 0, 1000, 1000, 0));
    leave_encode(&s.w, &(struct leave){.request = 31, .sequence = 11, .id = {7}});
    stand_say(&s, STAND_GATEWAY, true); /* its map is ahead of ours */
    ck_assert_int_eq(s.told[STAND_GATEWAY].result.error, TERRANE_ERR_NOT_OWNER);
    leave_encode(&s.w, &(struct leave){.request = 32, .sequence = 11, .id = {8}});
    stand_say(&s, STAND_GATEWAY, true);
    ck_assert_int_eq(s.told[STAND_GATEWAY].result.error, TERRANE_ERR_ENTITY_UNKNOWN);
    stand_close(&s);
}
END_TEST

START_TEST(questions_about_a_leaf_that_is_not_quite_ours_are_refused)
{
    open_rig();
    level_with(stand_item(7, 0, 1000, 1000, 0));
    stand_give(&s, 0, NODE_NONE);
    stand_map(&s);
    query_encode(&s.w, &(struct query){.request = 5, .shape = QUERY_CIRCLE, .layer = -1, .a = 1000, .b = 1000, .c = 9});
    stand_say(&s, STAND_GATEWAY, true);
    stand_tick(&s);
    ck_assert_int_eq(s.told[STAND_GATEWAY].query.error, TERRANE_ERR_NOT_READY);
    query_encode(&s.w, &(struct query){.request = 6, .layer = -1, .a = half + 90000, .b = 1000, .c = 9});
    stand_say(&s, STAND_GATEWAY, true);
    ck_assert_int_eq(s.told[STAND_GATEWAY].query.error, TERRANE_ERR_OK);
    lookup_encode(&s.w, &(struct lookup){.request = 7, .id = {7}});
    stand_say(&s, STAND_GATEWAY, true);
    stand_tick(&s);
    ck_assert_int_eq(s.told[STAND_GATEWAY].lookup.error, TERRANE_ERR_NOT_READY);
    stand_close(&s);
}
END_TEST

START_TEST(entities_of_a_gateway_that_nobody_knows_leave_after_its_grace)
{
    open_rig();
    struct standby_item item = stand_item(7, 0, 1000, 1000, 0);
    item.transfer.gateway = (struct node_id){999};
    level_with(item);
    stand_primary_dies(&s);
    for (int i = 0; i < 190; i++) stand_tick(&s);
    ck_assert_uint_eq(stand_owned(&s, 7).count, 1);
    for (int i = 0; i < 20; i++) stand_tick(&s);
    ck_assert_uint_eq(stand_owned(&s, 7).count, 0);
    stand_close(&s);
}
END_TEST

START_TEST(a_promoted_leaf_with_a_place_past_its_border_hands_over)
{
    open_rig();
    /* The primary died before it had marked it. */
    struct standby_item item = stand_item(7, 0, half + 30 * UNIT, 1000, 0);
    level_with(item);
    stand_primary_dies(&s);
    stand_tick(&s);
    stand_tick(&s);
    struct stand_found found = stand_owned(&s, 7);
    ck_assert_uint_eq(found.count, 1);
    ck_assert(quadkey_equal(found.entity.leaf, stand_leaf(1)));
    ck_assert_uint_eq(found.entity.record.version, 1001 + UNHEARD);
    stand_close(&s);
}
END_TEST

SUITE_MAIN("cellserver_promote", a_copy_whose_successor_was_not_level_in_time_is_promoted,
           whatever_the_former_primary_still_says_is_refused_under_its_own_epoch,
           a_leaf_of_a_dead_primary_is_served_and_published_in_the_same_step, a_leaf_without_a_replica_opens_empty,
           a_silent_primary_is_replaced_only_when_its_last_ack_is_stale,
           beats_that_are_not_acked_any_more_do_not_put_it_off, a_release_is_enough_and_what_came_before_it_counts,
           a_release_that_comes_before_the_map_is_remembered_for_that_ownership_only,
           a_release_of_a_stranger_is_ignored, a_promoted_standby_never_acks_that_leaf_again,
           the_map_back_at_the_former_primary_frees_the_replica, a_repeated_enter_is_known_after_the_promotion,
           who_was_marked_as_leaving_keeps_its_version_and_is_offered_again, what_was_pending_counts_as_taken_over,
           of_two_replicas_with_one_id_the_higher_version_is_the_entity,
           two_leaves_promoted_one_after_the_other_keep_one_entity, what_is_owned_here_under_a_higher_version_stays,
           what_is_owned_here_under_a_lower_version_goes_to_the_promoted_leaf,
           a_reader_who_comes_early_gets_its_snapshot_without_a_tick,
           a_reader_whose_feed_comes_up_after_the_promotion_gets_what_it_has_missed,
           a_reader_who_waited_for_a_leaf_that_went_elsewhere_is_told, a_reader_may_wait_until_the_end,
           what_comes_before_the_release_is_done_after_it_in_order,
           nobody_is_told_that_an_entity_of_a_standby_leaf_is_unknown,
           questions_about_a_leaf_that_is_not_quite_ours_are_refused,
           entities_of_a_gateway_that_nobody_knows_leave_after_its_grace,
           a_promoted_leaf_with_a_place_past_its_border_hands_over)
