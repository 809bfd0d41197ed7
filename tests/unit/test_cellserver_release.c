/* A leaf is given up: the new primary is told, nobody loses sight, nothing that comes late is lost. */
#include "tests/unit/standby_rig.h"

#include "tests/unit/suite.h"

#define UNIT 164 /* position units in about a metre */

static struct stand s;
static int32_t half;

/* Leaves 0 and 1 are ours, both near the border between them: observer 7 in leaf 0, entity 8 in leaf 1. */
static void open_rig(void)
{
    struct world world = world_default();
    world.radius_max = 200 * UNIT;
    half = 1 << (world.resolution_bits - 1);
    stand_open(&s, &world);
    s.map[0].primary = STAND_SELF;
    s.map[0].standby = NODE_NONE;
    s.map[0].since = ++s.map[0].epoch;
    s.gone[STAND_PRIMARY] = true;
    s.map[2].primary = s.map[2].standby = NODE_NONE;
    s.map[2].epoch++;
    stand_map(&s);
}

static void enter(uint64_t id, int32_t x, uint32_t radius)
{
    struct enter enter = {.request = id, .sequence = 1};
    enter.record = (struct entity_record){.id = {id},
                                          .version = 1000,
                                          .radius = radius,
                                          .position = {x, 1000, 0},
                                          .state = (const uint8_t *)"hp=7",
                                          .state_size = 4};
    enter_encode(&s.w, &enter);
    stand_say(&s, STAND_GATEWAY, true);
    ck_assert_int_eq(s.told[STAND_GATEWAY].result.error, TERRANE_ERR_OK);
}

/* Long enough for views that wait for ghosts. */
static void settle(void)
{
    for (int i = 0; i < 18; i++) stand_tick(&s);
    stand_forget(&s);
}

static void give_to_third(uint32_t child)
{
    s.map[child].primary = stand_node[STAND_THIRD];
    s.map[child].since = ++s.map[child].epoch;
    stand_map(&s);
}

static bool serves(uint32_t child)
{
    uint32_t epoch;
    return cellserver_owns(s.server, stand_leaf(child), &epoch);
}

START_TEST(the_new_primary_is_told_at_once)
{
    open_rig();
    enter(8, half + 1000, 0);
    settle();
    give_to_third(1);
    ck_assert(!serves(1) && serves(0));
    ck_assert_uint_eq(s.told[STAND_THIRD].count[MESSAGE_RELEASE], 1);
    ck_assert(quadkey_equal(s.told[STAND_THIRD].release.leaf, stand_leaf(1)));
    ck_assert_uint_eq(s.told[STAND_THIRD].release.epoch, s.map[1].since);
    ck_assert_uint_eq(stand_owned(&s, 8).count, 0);
    ck_assert_uint_eq(stand_stats(&s).owned, 0);
    ck_assert_uint_eq(stand_stats(&s).ghosts, 1);
    stand_close(&s);
}
END_TEST

START_TEST(nobody_loses_sight_of_who_stood_there)
{
    open_rig();
    enter(7, half - 1000, 100 * UNIT);
    enter(8, half + 1000, 0);
    settle();
    give_to_third(1);
    for (int i = 0; i < 20; i++) stand_tick(&s);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_VIEWS], 0);
    /* The new primary speaks: the same entity, its next version. */
    struct entity_record record = {.id = {8}, .version = 1001, .position = {half + 1000, 1000, 0}};
    snapshot_begin(&s.w,
                   &(struct snapshot){
                       .stream = STREAM_GHOST, .leaf = stand_leaf(1), .epoch = s.map[1].since, .parts = 1, .count = 1});
    snapshot_add(&s.w, 0, &record);
    stand_say(&s, STAND_THIRD, true);
    for (int i = 0; i < 100; i++) stand_tick(&s);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_VIEWS], 0);
    ck_assert_uint_eq(stand_stats(&s).ghosts, 1);
    stand_close(&s);
}
END_TEST

START_TEST(ghosts_of_a_leaf_that_is_nobodys_stay_until_its_next_owner_speaks)
{
    open_rig();
    enter(7, half - 1000, 100 * UNIT);
    enter(8, half + 1000, 0);
    settle();
    give_to_third(1);
    struct entity_record record = {.id = {8}, .version = 1001, .position = {half + 1000, 1000, 0}};
    snapshot_begin(&s.w,
                   &(struct snapshot){
                       .stream = STREAM_GHOST, .leaf = stand_leaf(1), .epoch = s.map[1].since, .parts = 1, .count = 1});
    snapshot_add(&s.w, 0, &record);
    stand_say(&s, STAND_THIRD, true);
    s.gone[STAND_THIRD] = true; /* dead, and nobody has its leaves yet */
    s.map[1].primary = s.map[3].primary = NODE_NONE;
    s.map[1].epoch++;
    s.map[3].epoch++;
    stand_map(&s);
    for (int i = 0; i < 200; i++) stand_tick(&s);
    ck_assert_uint_eq(stand_stats(&s).ghosts, 1);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_VIEWS], 0);
    stand_close(&s);
}
END_TEST

START_TEST(what_comes_late_goes_on_to_the_new_primary)
{
    open_rig();
    enter(8, half + 1000, 0);
    settle();
    give_to_third(1);
    set_state_encode(&s.w, &(struct set_state){.request = 31, .sequence = 11, .id = {8}});
    stand_say(&s, STAND_GATEWAY, true);
    ck_assert_uint_eq(s.told[STAND_THIRD].count[MESSAGE_FORWARD], 1);
    ck_assert_int_eq(s.told[STAND_THIRD].forwarded, MESSAGE_SET_STATE);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_RESULT], 0);
    stand_close(&s);
}
END_TEST

START_TEST(a_move_that_was_taken_is_not_lost_with_the_leaf)
{
    open_rig();
    enter(7, half - 1000, 100 * UNIT);
    enter(8, half + 1000, 0);
    settle();
    moves_begin(&s.w, &(struct moves){.sequence = 12, .count = 1});
    moves_add(&s.w, &(struct move){.id = {8}, .position = {half + 300 * UNIT, 1000, 0}});
    stand_say(&s, STAND_GATEWAY, false);
    give_to_third(1); /* before the tick that would have applied it */
    stand_tick(&s);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].view.unsee_count, 1);
    stand_close(&s);
}
END_TEST

START_TEST(who_was_on_its_way_out_is_not_owned_any_more)
{
    open_rig();
    enter(8, half + 1000, 0);
    settle();
    moves_begin(&s.w, &(struct moves){.sequence = 12, .count = 1});
    moves_add(&s.w, &(struct move){.id = {8}, .position = {half + 1000, half + 30 * UNIT, 0}});
    stand_say(&s, STAND_GATEWAY, false);
    settle();
    ck_assert_uint_eq(stand_stats(&s).leaving, 1); /* OFFERed to the third's leaf 3, not answered */
    give_to_third(1);
    ck_assert_uint_eq(stand_stats(&s).leaving, 0);
    ck_assert_uint_eq(stand_stats(&s).owned, 0);
    settle();
    stand_close(&s);
}
END_TEST

START_TEST(a_leaf_that_was_anothers_in_between_begins_empty)
{
    open_rig();
    enter(8, half + 1000, 0);
    settle();
    s.map[1].epoch += 2;
    s.map[1].since = s.map[1].epoch;
    stand_map(&s);
    uint32_t epoch;
    ck_assert(cellserver_owns(s.server, stand_leaf(1), &epoch));
    ck_assert_uint_eq(stand_owned(&s, 8).count, 0);
    ck_assert_uint_eq(stand_stats(&s).ghosts, 0);
    settle();
    stand_close(&s);
}
END_TEST

START_TEST(a_change_of_standby_restarts_no_stream)
{
    open_rig();
    enter(8, half + 1000, 0);
    subscribe_encode(&s.w, MESSAGE_SUBSCRIBE, &(struct subscribe){.stream = STREAM_REGION, .leaf = stand_leaf(1)});
    stand_say(&s, STAND_GATEWAY, true);
    settle();
    s.map[1].epoch++;
    s.map[1].standby = stand_node[STAND_THIRD];
    stand_map(&s);
    settle();
    stand_tick(&s);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_SNAPSHOT], 0);
    ck_assert_uint_eq(stand_owned(&s, 8).count, 1);
    stand_close(&s);
}
END_TEST

SUITE_MAIN("cellserver_release", the_new_primary_is_told_at_once, nobody_loses_sight_of_who_stood_there,
           ghosts_of_a_leaf_that_is_nobodys_stay_until_its_next_owner_speaks,
           what_comes_late_goes_on_to_the_new_primary, a_move_that_was_taken_is_not_lost_with_the_leaf,
           who_was_on_its_way_out_is_not_owned_any_more, a_leaf_that_was_anothers_in_between_begins_empty,
           a_change_of_standby_restarts_no_stream)
