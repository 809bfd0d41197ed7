/* SURVEY: counts of owned entities in a rectangle, the entities themselves where they are few, the latest hand-offs. */
#include "proto/survey.h"
#include "tests/unit/cell_rig.h"
#include "tests/unit/suite.h"

#define UNIT 164 /* position units in about a metre */

static struct rig rig;
static int32_t half, side;

static void open_rig(void)
{
    struct world world = world_default();
    world.radius_max = 200 * UNIT;
    half = 1 << (world.resolution_bits - 1);
    side = 2 * half;
    rig_open(&rig, &world);
}

static void settle(void)
{
    for (int i = 0; i < 6; i++) rig_tick(&rig);
}

static struct survey_result ask(uint32_t server, const struct survey *m)
{
    struct survey_result result;
    writer_clear(&rig.w);
    survey_encode(&rig.w, m);
    rig_step(&rig, server,
             &(struct event){
                 .kind = EVENT_MESSAGE, .lane = LANE_QUERY, .token = 1, .bytes = rig.w.data, .size = rig.w.size});
    writer_clear(&rig.w);
    ck_assert_int_eq(survey_result_decode(cursor_of(rig.reply.data, rig.reply.size), &result), TERRANE_ERR_OK);
    return result;
}

static struct survey world_in(uint32_t parts)
{
    return (struct survey){.max_x = side - 1, .max_y = side - 1, .columns = parts, .rows = parts};
}

START_TEST(counts_what_is_owned_in_each_part_and_nothing_of_others)
{
    open_rig();
    rig_enter(&rig, 0, 7, half - 10 * UNIT, 1000, 0);
    rig_enter(&rig, 0, 8, 1000, 1000, 0);
    rig_enter(&rig, 0, 9, 1001, 1001, 0);
    rig_enter(&rig, 1, 10, half + 10 * UNIT, 1000, 0); /* a ghost at server 0 */
    settle();
    struct survey m = world_in(4);
    struct survey_result r = ask(0, &m);
    struct survey_cell cell = {.index = UINT32_MAX};
    ck_assert_uint_eq(r.total, 3);
    ck_assert_uint_eq(r.stride, 1);
    ck_assert_uint_eq(r.cell_count, 2);
    ck_assert(survey_result_next_cell(&r, &cell));
    ck_assert_uint_eq(cell.index, 0);
    ck_assert_uint_eq(cell.count, 2);
    ck_assert(survey_result_next_cell(&r, &cell));
    ck_assert_uint_eq(cell.index, 1);
    ck_assert_uint_eq(cell.count, 1);
    ck_assert(!survey_result_next_cell(&r, &cell));
    r = ask(0, &m);
    ck_assert_uint_eq(r.cell_count, 2); /* the counts began anew */
    rig_close(&rig);
}
END_TEST

START_TEST(lists_entities_where_they_are_few_enough_else_none)
{
    open_rig();
    rig_enter(&rig, 0, 7, 5000, 6000, 0);
    rig_enter(&rig, 0, 8, 5001, 6000, 0);
    rig_enter(&rig, 0, 9, 5001, 6001, 0); /* outside: the rectangle is closed and ends at 6000 */
    settle();
    struct survey m = {.min_x = 5000, .min_y = 6000, .max_x = 5001, .max_y = 6000, .most = 2};
    struct survey_result r = ask(0, &m);
    struct survey_entity entity;
    ck_assert_uint_eq(r.total, 2);
    ck_assert_uint_eq(r.entity_count, 2);
    ck_assert(survey_result_next_entity(&r, &entity));
    ck_assert(survey_result_next_entity(&r, &entity));
    ck_assert_uint_eq(entity.id.v, 8);
    ck_assert_int_eq(entity.x, 5001);
    ck_assert_int_eq(entity.y, 6000);
    m.most = 1;
    r = ask(0, &m);
    ck_assert_uint_eq(r.total, 2);
    ck_assert_uint_eq(r.entity_count, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(tells_hand_offs_once_to_who_says_what_it_has_heard)
{
    open_rig();
    rig_enter(&rig, 0, 7, half - 10 * UNIT, 1000, 0);
    settle();
    rig_move(&rig, 0, 2, 7, half + 10 * UNIT, 1000);
    settle();
    struct survey m = world_in(1);
    struct survey_result r = ask(0, &m);
    struct survey_crossing crossing;
    ck_assert_uint_eq(r.crossings, 1);
    ck_assert(survey_result_next_crossing(&r, &crossing));
    ck_assert_uint_eq(crossing.id.v, 7);
    ck_assert_uint_eq(crossing.version, 1001);
    ck_assert_uint_eq(crossing.from.v, quadkey_child(QUADKEY_ROOT, 0).v);
    ck_assert_uint_eq(crossing.to.v, quadkey_child(QUADKEY_ROOT, 1).v);
    ck_assert_uint_eq(crossing.node.v, rig_node(1).v);
    m.after = 1;
    r = ask(0, &m);
    ck_assert_uint_eq(r.crossings, 1);
    ck_assert_uint_eq(r.crossing_count, 0);
    m.after = 99; /* of a former incarnation, so all is news */
    r = ask(0, &m);
    ck_assert_uint_eq(r.crossing_count, 1);
    rig_close(&rig);
}
END_TEST

START_TEST(remembers_a_bounded_number_of_hand_offs_the_latest_ones)
{
    open_rig();
    rig_enter(&rig, 0, 7, half - 10 * UNIT, half - 10 * UNIT, 0);
    settle();
    /* Between the two leaves of server 0, up and down. */
    for (uint64_t i = 0; i < SURVEY_CROSSINGS_MAX + 10; i++) {
        rig_move(&rig, 0, 2 + i, 7, half - 10 * UNIT, half + (i % 2 == 0 ? 10 : -10) * UNIT);
        rig_tick(&rig);
    }
    struct survey m = world_in(1);
    struct survey_result r = ask(0, &m);
    struct survey_crossing crossing;
    uint64_t last = 0;
    ck_assert_uint_eq(r.crossings, SURVEY_CROSSINGS_MAX + 10);
    ck_assert_uint_eq(r.crossing_count, SURVEY_CROSSINGS_MAX);
    while (survey_result_next_crossing(&r, &crossing)) {
        ck_assert_uint_gt(crossing.version, last);
        last = crossing.version;
    }
    ck_assert_uint_eq(last, 1000 + SURVEY_CROSSINGS_MAX + 10);
    rig_close(&rig);
}
END_TEST

START_TEST(questions_that_are_out_of_range_get_a_fault)
{
    open_rig();
    struct survey bad[] = {world_in(4), world_in(SURVEY_SIDE_MAX + 1), world_in(4), world_in(4)};
    bad[0].min_x = 5; /* behind its end */
    bad[0].max_x = 4;
    bad[2].rows = 0;
    bad[3].most = SURVEY_ENTITIES_MAX + 1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct fault fault;
        writer_clear(&rig.w);
        survey_encode(&rig.w, &bad[i]);
        rig_step(&rig, 0,
                 &(struct event){.kind = EVENT_MESSAGE, .lane = LANE_QUERY, .bytes = rig.w.data, .size = rig.w.size});
        ck_assert_int_eq(fault_decode(cursor_of(rig.reply.data, rig.reply.size), &fault), TERRANE_ERR_OK);
        ck_assert_int_eq(fault.error, TERRANE_ERR_MESSAGE_RANGE);
    }
    rig_close(&rig);
}
END_TEST

SUITE_MAIN("cellserver_survey", counts_what_is_owned_in_each_part_and_nothing_of_others,
           lists_entities_where_they_are_few_enough_else_none, tells_hand_offs_once_to_who_says_what_it_has_heard,
           remembers_a_bounded_number_of_hand_offs_the_latest_ones, questions_that_are_out_of_range_get_a_fault)
