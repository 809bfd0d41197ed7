/* Map events and the servers around: who has a region that the circle meets hears of it, even if it gets that region a
 * moment later, because the one that was told has died. */
#include "tests/unit/standby_rig.h"

#include "tests/unit/suite.h"

enum { UNIT = 164, HALF = 1 << 20 };

static struct stand s;

/* Leaf 1 (the south-east) is ours, leaf 3 (the north-east) the third's. The circle meets both, far from the others. */
static void open_and_emit(int32_t radius)
{
    struct world world = world_default();
    stand_open(&s, &world);
    emit_encode(&s.w, MESSAGE_EMIT,
                &(struct emit){.origin = stand_node[STAND_GATEWAY],
                               .request = 77,
                               .radius = (uint32_t)radius,
                               .position = {HALF + HALF / 2, HALF - 5 * UNIT, 0}});
    stand_say(&s, STAND_GATEWAY, true);
    ck_assert_int_eq(s.told[STAND_GATEWAY].result.error, TERRANE_ERR_OK);
}

static uint32_t relays(enum stand_peer peer)
{
    return s.told[peer].count[MESSAGE_EVENT_RELAY];
}

static void third_dies(void)
{
    s.gone[STAND_THIRD] = true;
    s.map[3] = (struct leaf_owner){
        .leaf = stand_leaf(3), .epoch = 2, .since = 2, .primary = stand_node[STAND_PRIMARY], .feed = 0};
    stand_map(&s);
    stand_tick(&s);
}

START_TEST(the_successor_of_a_neighbour_that_died_is_told_of_the_event_once)
{
    open_and_emit(20 * UNIT);
    ck_assert_uint_eq(relays(STAND_THIRD), 1);
    ck_assert_uint_eq(relays(STAND_PRIMARY), 0);
    third_dies();
    ck_assert_uint_eq(relays(STAND_PRIMARY), 1);
    s.map[3].epoch++;
    stand_map(&s);
    ck_assert_uint_eq(relays(STAND_PRIMARY), 1);
    stand_close(&s);
}
END_TEST

START_TEST(an_event_that_is_over_or_does_not_meet_the_region_is_told_to_nobody)
{
    open_and_emit(20 * UNIT);
    for (int i = 0; i < 80; i++) stand_tick(&s); /* four seconds */
    third_dies();
    ck_assert_uint_eq(relays(STAND_PRIMARY), 0);
    stand_close(&s);
    open_and_emit(2 * UNIT);
    third_dies();
    ck_assert_uint_eq(relays(STAND_THIRD) + relays(STAND_PRIMARY), 0);
    stand_close(&s);
}
END_TEST

START_TEST(a_relay_that_comes_again_is_told_to_nobody_again)
{
    struct world world = world_default();
    stand_open(&s, &world);
    struct enter enter = {.request = 8, .sequence = 1};
    enter.record = (struct entity_record){
        .id = {8}, .version = 1000, .radius = 20 * UNIT, .position = {HALF + HALF / 2, HALF - 5 * UNIT, 0}};
    enter_encode(&s.w, &enter);
    stand_say(&s, STAND_GATEWAY, true);
    for (int again = 0; again < 2; again++) {
        emit_encode(&s.w, MESSAGE_EVENT_RELAY,
                    &(struct emit){.origin = stand_node[STAND_GATEWAY],
                                   .request = 77,
                                   .radius = 20 * UNIT,
                                   .position = {HALF + HALF / 2, HALF + 5 * UNIT, 0}});
        stand_say(&s, again == 0 ? STAND_THIRD : STAND_PRIMARY, true);
        ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_EVENT], 1);
    }
    stand_close(&s);
}
END_TEST

SUITE_MAIN("cellserver_events", the_successor_of_a_neighbour_that_died_is_told_of_the_event_once,
           an_event_that_is_over_or_does_not_meet_the_region_is_told_to_nobody,
           a_relay_that_comes_again_is_told_to_nobody_again)
