/* A gateway that commands too much is refused what is over its rate, and nobody else is. */
#include "tests/unit/cell_rig.h"

#include "tests/unit/suite.h"

#define RATE 50u

static struct rig rig;

static void open_rig(uint32_t rate)
{
    struct world world = world_default();
    rig_session_rate = rate;
    rig_open(&rig, &world);
}

static uint64_t refused(uint32_t server)
{
    struct cellserver_stats stats;
    cellserver_stats(rig.servers[server], &stats);
    return stats.refused_rate;
}

/* How many of `count` new entities are let in, all of them at one instant. */
static uint32_t enter_many(uint32_t server, uint64_t first, uint32_t count)
{
    uint32_t entered = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t answers = rig.seen.count[MESSAGE_RESULT];
        rig_enter(&rig, server, first + i, 1000 + (int32_t)i, 1000, 0);
        ck_assert_uint_eq(rig.seen.count[MESSAGE_RESULT], answers + 1);
        ck_assert_uint_eq(rig.seen.result.id.v, first + i);
        if (rig.seen.result.error == TERRANE_ERR_OK)
            entered++;
        else
            ck_assert_int_eq(rig.seen.result.error, TERRANE_ERR_QUEUE_FULL);
    }
    return entered;
}

static enum terrane_error set_state(uint32_t server, uint64_t id, uint64_t sequence)
{
    struct set_state m = {
        .request = 1000 + sequence, .sequence = sequence, .id = {id}, .state = (const uint8_t *)"x", .state_size = 1};
    set_state_encode(&rig.w, &m);
    rig_say(&rig, server, true);
    ck_assert_uint_eq(rig.seen.result.request, m.request);
    return rig.seen.result.error;
}

START_TEST(a_seconds_worth_comes_at_once_and_the_rest_is_refused_and_answered)
{
    open_rig(RATE);
    ck_assert_uint_eq(enter_many(0, 1, RATE + 30), RATE);
    ck_assert_uint_eq(refused(0), 30);
    ck_assert_int_eq(set_state(0, 1, 5), TERRANE_ERR_QUEUE_FULL);
    ck_assert_uint_eq(refused(0), 31);
    rig_close(&rig);
}
END_TEST

START_TEST(a_rate_that_is_kept_is_never_refused)
{
    open_rig(RATE);
    ck_assert_uint_eq(enter_many(0, 1, RATE), RATE);
    for (uint32_t second = 1; second <= 3; second++) {
        rig.now_us += 1000000;
        rig_tick(&rig);
        for (uint32_t i = 1; i <= RATE; i++) ck_assert_int_eq(set_state(0, i, second * 10), TERRANE_ERR_OK);
    }
    ck_assert_uint_eq(refused(0), 0);
    ck_assert_int_eq(set_state(0, 1, 100), TERRANE_ERR_QUEUE_FULL);
    rig_close(&rig);
}
END_TEST

START_TEST(what_frees_or_costs_little_is_not_limited)
{
    open_rig(RATE);
    ck_assert_uint_eq(enter_many(0, 1, RATE + 1), RATE);
    for (uint64_t i = 1; i <= RATE; i++) rig_move(&rig, 0, 10, i, 2000 + (int32_t)i, 1000);
    rig_tick(&rig);
    struct leave leave = {.request = 7, .sequence = 20, .id = {1}};
    leave_encode(&rig.w, &leave);
    rig_say(&rig, 0, true);
    ck_assert_uint_eq(rig.seen.result.request, 7);
    ck_assert_int_eq(rig.seen.result.error, TERRANE_ERR_OK);
    ck_assert_uint_eq(refused(0), 1);
    rig_close(&rig);
}
END_TEST

START_TEST(the_other_server_counts_for_itself_and_rate_0_is_no_bound)
{
    open_rig(RATE);
    ck_assert_uint_eq(enter_many(0, 1, RATE + 1), RATE);
    ck_assert_uint_eq(refused(1), 0);
    rig_close(&rig);
    open_rig(0);
    ck_assert_uint_eq(enter_many(0, 1, RATE * 4), RATE * 4);
    ck_assert_uint_eq(refused(0), 0);
    rig_close(&rig);
}
END_TEST

SUITE_MAIN("cellserver_rate", a_seconds_worth_comes_at_once_and_the_rest_is_refused_and_answered,
           a_rate_that_is_kept_is_never_refused, what_frees_or_costs_little_is_not_limited,
           the_other_server_counts_for_itself_and_rate_0_is_no_bound)
