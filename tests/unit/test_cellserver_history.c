/* TRACE: what a server remembers of an entity's changes of owner. */
#include "cellserver/history.h"
#include "common/geometry.h"
#include "proto/trace.h"
#include "tests/unit/cell_rig.h"
#include "tests/unit/suite.h"

#define UNIT 164 /* position units in about a metre */

static struct rig rig;
static int32_t half;

static void open_rig(void)
{
    struct world world = world_default();
    world.radius_max = 200 * UNIT;
    half = 1 << (world.resolution_bits - 1);
    rig_open(&rig, &world);
}

static void settle(void)
{
    for (int i = 0; i < 6; i++) rig_tick(&rig);
}

static struct trace_result ask(uint32_t server, uint64_t id)
{
    struct trace_result result;
    writer_clear(&rig.w);
    trace_encode(&rig.w, &(struct trace){.id = {id}});
    rig_step(&rig, server,
             &(struct event){
                 .kind = EVENT_MESSAGE, .lane = LANE_QUERY, .token = 1, .bytes = rig.w.data, .size = rig.w.size});
    writer_clear(&rig.w);
    ck_assert_int_eq(trace_result_decode(cursor_of(rig.reply.data, rig.reply.size), &result), TERRANE_ERR_OK);
    ck_assert_uint_eq(result.id.v, id);
    return result;
}

static struct trace_step next(struct trace_result *r, enum trace_cause cause, uint64_t version)
{
    struct trace_step step;
    ck_assert(trace_result_next(r, &step));
    ck_assert_int_eq(step.cause, cause);
    ck_assert_uint_eq(step.version, version);
    return step;
}

START_TEST(both_sides_of_a_hand_off_remember_it_under_one_version)
{
    open_rig();
    struct quadkey sw = quadkey_child(QUADKEY_ROOT, 0), se = quadkey_child(QUADKEY_ROOT, 1);
    rig_enter(&rig, 0, 7, half - 10 * UNIT, 1000, 0);
    settle();
    rig_move(&rig, 0, 2, 7, half + 10 * UNIT, 1000);
    settle();
    struct trace_result r = ask(0, 7);
    ck_assert_int_eq(r.role, TRACE_GHOST);
    ck_assert_uint_eq(r.count, 2);
    struct trace_step entered = next(&r, TRACE_ENTERED, 1000);
    ck_assert_uint_eq(entered.to.v, sw.v);
    ck_assert_uint_eq(entered.node.v, rig_gateway.v);
    struct trace_step passed = next(&r, TRACE_PASSED_ON, 1001);
    ck_assert_uint_eq(passed.from.v, sw.v);
    ck_assert_uint_eq(passed.to.v, se.v);
    ck_assert_uint_eq(passed.node.v, rig_node(1).v);
    ck_assert_uint_gt(entered.age_us, passed.age_us);
    ck_assert_uint_ge(r.horizon_us, entered.age_us);
    r = ask(1, 7);
    ck_assert_int_eq(r.role, TRACE_OWNED);
    ck_assert_uint_eq(r.count, 1);
    ck_assert_uint_eq(next(&r, TRACE_ARRIVED, 1001).to.v, se.v);
    rig_close(&rig);
}
END_TEST

START_TEST(an_end_is_remembered_and_strangers_are_unknown)
{
    open_rig();
    rig_enter(&rig, 0, 7, 1000, 1000, 0);
    settle();
    leave_encode(&rig.w, &(struct leave){.request = 2, .sequence = 5, .id = {7}});
    rig_say(&rig, 0, true);
    settle();
    struct trace_result r = ask(0, 7);
    ck_assert_int_eq(r.role, TRACE_UNKNOWN);
    next(&r, TRACE_ENTERED, 1000);
    struct trace_step left = next(&r, TRACE_LEFT, 1000);
    ck_assert_uint_eq(left.to.v, QUADKEY_NONE.v);
    r = ask(0, 8);
    ck_assert_int_eq(r.role, TRACE_UNKNOWN);
    ck_assert_uint_eq(r.count, 0);
    ck_assert_uint_gt(r.horizon_us, 0);
    rig_close(&rig);
}
END_TEST

/* To and fro between the two leaves of one server. */
static void cross(uint64_t id, uint32_t times)
{
    for (uint64_t i = 0; i < times; i++) {
        rig_move(&rig, 0, 2 + i, id, half - 10 * UNIT, half + (i % 2 == 0 ? 10 : -10) * UNIT);
        rig_tick(&rig);
    }
}

START_TEST(the_latest_steps_are_told_oldest_first)
{
    open_rig();
    rig_enter(&rig, 0, 7, half - 10 * UNIT, half - 10 * UNIT, 0);
    settle();
    cross(7, TRACE_STEPS_MAX + 10);
    struct trace_result r = ask(0, 7);
    struct trace_step step;
    uint64_t version = 1010;
    ck_assert_uint_eq(r.count, TRACE_STEPS_MAX);
    while (trace_result_next(&r, &step)) {
        ck_assert_int_eq(step.cause, TRACE_CROSSED);
        ck_assert_uint_eq(step.version, ++version);
        ck_assert_uint_eq(step.node.v, rig_node(0).v);
    }
    ck_assert_uint_eq(version, 1010 + TRACE_STEPS_MAX);
    rig_close(&rig);
}
END_TEST

START_TEST(what_is_older_than_the_ring_is_said_to_be_beyond_the_horizon)
{
    open_rig();
    rig_enter(&rig, 0, 7, half - 10 * UNIT, half - 10 * UNIT, 0);
    rig_enter(&rig, 0, 8, 1000, 1000, 0);
    settle();
    uint64_t whole_us = ask(0, 8).horizon_us;
    ck_assert_uint_eq(ask(0, 8).count, 1);
    cross(7, HISTORY_RING);
    struct trace_result r = ask(0, 8);
    ck_assert_int_eq(r.role, TRACE_OWNED);
    ck_assert_uint_eq(r.count, 0);
    ck_assert_uint_lt(r.horizon_us, rig.now_us);
    ck_assert_uint_gt(r.horizon_us, whole_us);
    rig_close(&rig);
}
END_TEST

SUITE_MAIN("cellserver_history", both_sides_of_a_hand_off_remember_it_under_one_version,
           an_end_is_remembered_and_strangers_are_unknown, the_latest_steps_are_told_oldest_first,
           what_is_older_than_the_ring_is_said_to_be_beyond_the_horizon)
