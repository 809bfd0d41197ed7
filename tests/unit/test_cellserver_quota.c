/* A gateway session has a bounded number of entities at a server: more are refused, and none is lost over it. */
#include "tests/unit/cell_rig.h"

#include "tests/unit/suite.h"

#define MOST 20u

static struct rig rig;

static void open_rig(uint32_t most)
{
    struct world world = world_default();
    rig_session_entities = most;
    rig_open(&rig, &world);
}

static struct cellserver_stats stats_of(uint32_t server)
{
    struct cellserver_stats stats;
    cellserver_stats(rig.servers[server], &stats);
    return stats;
}

static enum terrane_error enter(uint32_t server, uint64_t id, int32_t x)
{
    uint32_t answers = rig.seen.count[MESSAGE_RESULT];
    rig_enter(&rig, server, id, x, 1000, 0);
    ck_assert_uint_eq(rig.seen.count[MESSAGE_RESULT], answers + 1);
    ck_assert_uint_eq(rig.seen.result.id.v, id);
    return rig.seen.result.error;
}

static void leave(uint32_t server, uint64_t id)
{
    struct leave leave = {.request = 7, .sequence = 20, .id = {id}};
    leave_encode(&rig.w, &leave);
    rig_say(&rig, server, true);
    ck_assert_int_eq(rig.seen.result.error, TERRANE_ERR_OK);
}

START_TEST(over_the_quota_an_enter_is_refused_and_counted_until_one_leaves)
{
    open_rig(MOST);
    for (uint32_t i = 1; i <= MOST; i++) ck_assert_int_eq(enter(0, i, 1000), TERRANE_ERR_OK);
    for (uint32_t i = 0; i < 3; i++) ck_assert_int_eq(enter(0, MOST + 1 + i, 1000), TERRANE_ERR_LIMIT);
    ck_assert_uint_eq(stats_of(0).refused_entities, 3);
    ck_assert_uint_eq(stats_of(0).owned, MOST);
    ck_assert_int_eq(enter(0, 1, 1000), TERRANE_ERR_OK); /* a repetition asks for no more */
    rig_tick(&rig);
    leave(0, 5);
    ck_assert_int_eq(enter(0, MOST + 1, 1000), TERRANE_ERR_OK);
    ck_assert_int_eq(enter(0, MOST + 2, 1000), TERRANE_ERR_LIMIT);
    rig_close(&rig);
}
END_TEST

START_TEST(each_server_counts_for_itself_and_0_is_no_bound)
{
    open_rig(MOST);
    int32_t east = (1 << 20) + 1000;
    for (uint32_t i = 1; i <= MOST; i++) ck_assert_int_eq(enter(0, i, 1000), TERRANE_ERR_OK);
    ck_assert_int_eq(enter(1, 100, east), TERRANE_ERR_OK);
    rig_close(&rig);
    open_rig(0);
    for (uint32_t i = 1; i <= 3 * MOST; i++) ck_assert_int_eq(enter(0, i, 1000), TERRANE_ERR_OK);
    ck_assert_uint_eq(stats_of(0).refused_entities, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(who_crosses_into_a_server_that_is_full_of_its_gateway_is_let_in)
{
    open_rig(MOST);
    int32_t east = 1 << 20;
    for (uint32_t i = 1; i <= MOST; i++) ck_assert_int_eq(enter(1, i, east + 100000), TERRANE_ERR_OK);
    ck_assert_int_eq(enter(0, 100, east - 1000), TERRANE_ERR_OK);
    rig_tick(&rig);
    rig_move(&rig, 0, 10, 100, east + 50000, 1000);
    for (int i = 0; i < 4; i++) rig_tick(&rig);
    ck_assert_uint_eq(stats_of(0).owned, 0);
    ck_assert_uint_eq(stats_of(1).owned, MOST + 1);
    ck_assert_uint_eq(stats_of(1).refused_entities, 0);
    ck_assert_int_eq(enter(1, 101, east + 100000), TERRANE_ERR_LIMIT);
    ck_assert_int_eq(enter(0, 102, 1000), TERRANE_ERR_OK); /* what has gone on is not counted any more */
    rig_close(&rig);
}
END_TEST

SUITE_MAIN("cellserver_quota", over_the_quota_an_enter_is_refused_and_counted_until_one_leaves,
           each_server_counts_for_itself_and_0_is_no_bound,
           who_crosses_into_a_server_that_is_full_of_its_gateway_is_let_in)
