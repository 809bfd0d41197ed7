/* Own entities: entering, commands, change of owner, loss. */
#include "gateway_rig.h"

#include <math.h>

static struct set_state last_state(const struct rig_peer *peer)
{
    struct set_state state;
    ck_assert_int_eq(set_state_decode(rig_cursor(rig_last(peer, MESSAGE_SET_STATE)), &state), TERRANE_ERR_OK);
    return state;
}

static struct enter last_enter(const struct rig_peer *peer)
{
    struct enter enter;
    ck_assert_int_eq(enter_decode(rig_cursor(rig_last(peer, MESSAGE_ENTER)), &enter), TERRANE_ERR_OK);
    return enter;
}

static struct leave last_leave(const struct rig_peer *peer)
{
    struct leave leave;
    ck_assert_int_eq(leave_decode(rig_cursor(rig_last(peer, MESSAGE_LEAVE)), &leave), TERRANE_ERR_OK);
    return leave;
}

/* The one entity in the newest MOVES; its sequence. */
static uint64_t last_move(const struct rig *rig, const struct rig_peer *peer, uint64_t id, double *x)
{
    struct moves moves;
    struct move move;
    double y, z;
    ck_assert_int_eq(moves_decode(rig_cursor(rig_last(peer, MESSAGE_MOVES)), &moves), TERRANE_ERR_OK);
    ck_assert(moves_next(&moves, &move));
    ck_assert_uint_eq(move.id.v, id);
    world_coordinates(&rig->world, move.position, x, &y, &z);
    return moves.sequence;
}

static uint64_t enter(struct rig *rig, uint64_t id, double x, double y)
{
    struct terrane_entity entity = {.id = id, .x = x, .y = y, .radius = 50, .state = "abc", .state_size = 3};
    uint64_t request;
    ck_assert_int_eq(gateway_enter(rig->g, &entity, &request), TERRANE_ERR_OK);
    return request;
}

START_TEST(faults_of_arguments_are_told_at_once)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    struct terrane_entity entity = {.id = 0, .x = 1, .y = 1};
    ck_assert_int_eq(gateway_enter(rig.g, &entity, NULL), TERRANE_ERR_ENTITY_NONE);
    entity.id = 1;
    entity.x = -1;
    ck_assert_int_eq(gateway_enter(rig.g, &entity, NULL), TERRANE_ERR_POSITION_OUTSIDE);
    entity.x = (double)NAN;
    ck_assert_int_eq(gateway_enter(rig.g, &entity, NULL), TERRANE_ERR_POSITION_INVALID);
    entity.x = 1;
    entity.yaw = (double)INFINITY;
    ck_assert_int_eq(gateway_enter(rig.g, &entity, NULL), TERRANE_ERR_POSITION_INVALID);
    entity.yaw = 0;
    entity.radius = 200.1;
    ck_assert_int_eq(gateway_enter(rig.g, &entity, NULL), TERRANE_ERR_RADIUS_TOO_LARGE);
    entity.radius = (double)NAN;
    ck_assert_int_eq(gateway_enter(rig.g, &entity, NULL), TERRANE_ERR_RADIUS_TOO_LARGE);
    entity.radius = 200;
    entity.state = "";
    entity.state_size = LIMIT_STATE_BYTES + 1;
    ck_assert_int_eq(gateway_enter(rig.g, &entity, NULL), TERRANE_ERR_STATE_TOO_LARGE);
    entity.state_size = 0;
    ck_assert_int_eq(gateway_enter(rig.g, &entity, NULL), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_enter(rig.g, &entity, NULL), TERRANE_ERR_ENTITY_EXISTS);
    ck_assert_int_eq(gateway_move(rig.g, 2, 1, 1, 0, 0), TERRANE_ERR_ENTITY_UNKNOWN);
    ck_assert_int_eq(gateway_move(rig.g, 0, 1, 1, 0, 0), TERRANE_ERR_ENTITY_NONE);
    ck_assert_int_eq(gateway_move(rig.g, 1, 1e9, 1, 0, 0), TERRANE_ERR_POSITION_OUTSIDE);
    ck_assert_int_eq(gateway_set_radius(rig.g, 1, -1, NULL), TERRANE_ERR_RADIUS_TOO_LARGE);
    ck_assert_int_eq(gateway_set_state(rig.g, 1, "", LIMIT_STATE_BYTES + 1, NULL), TERRANE_ERR_STATE_TOO_LARGE);
    ck_assert_int_eq(gateway_leave(rig.g, 2, NULL), TERRANE_ERR_ENTITY_UNKNOWN);
    rig_close(&rig);
}
END_TEST

START_TEST(enter_waits_for_an_owner_of_the_place)
{
    struct rig rig = {0};
    struct gateway_options options = rig_options(&rig);
    struct leaf_owner leaves[4];
    rig_open_with(&rig, &options);
    rig_welcome(&rig);
    rig_quadrants(leaves);
    leaves[0].primary = NODE_NONE;
    rig_map(&rig, leaves, 4, 4);
    uint64_t request = enter(&rig, 7, 100, 100);
    rig_run(&rig, 1000000);
    ck_assert_uint_eq(rig_told(&rig, TOLD_DONE), 0);
    leaves[0].primary = SERVER(2);
    leaves[0].epoch = leaves[0].since = 2;
    rig_map(&rig, leaves, 4, 4);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(last_enter(&rig.servers[2]).request, request);
    rig_close(&rig);
}
END_TEST

START_TEST(a_refused_enter_is_tried_again_with_the_newer_map)
{
    struct rig rig = {0};
    struct leaf_owner leaves[4];
    rig_open_ready(&rig);
    uint64_t request = enter(&rig, 7, 100, 100);
    rig_run(&rig, 3000);
    rig_result(&rig, 0, request, 7, TERRANE_ERR_NOT_OWNER, 0);
    rig_quadrants(leaves);
    leaves[0].primary = SERVER(3);
    leaves[0].epoch = leaves[0].since = 2;
    rig_map(&rig, leaves, 4, 4);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(last_enter(&rig.servers[3]).request, request);
    ck_assert_uint_eq(rig_told(&rig, TOLD_DONE), 0);
    rig_result(&rig, 3, request, 7, TERRANE_ERR_OK, last_enter(&rig.servers[3]).record.version);
    ck_assert_uint_eq(rig_told(&rig, TOLD_DONE), 1);
    /* A late or repeated answer to a request that is done changes nothing. */
    rig_result(&rig, 0, request, 7, TERRANE_ERR_ENTITY_EXISTS, 0);
    ck_assert_uint_eq(rig_told(&rig, TOLD_DONE), 1);
    rig_close(&rig);
}
END_TEST

START_TEST(a_refused_enter_is_tried_again_even_if_the_map_stays)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    uint64_t request = enter(&rig, 7, 100, 100);
    rig_run(&rig, 3000);
    for (int i = 0; i < 3; i++) {
        rig_result(&rig, 0, request, 7, TERRANE_ERR_REGION_UNOWNED, 0);
        rig_run(&rig, 110000);
    }
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_ENTER), 4);
    rig_close(&rig);
}
END_TEST

START_TEST(an_enter_that_another_holds_is_done_with_its_error)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    uint64_t request = enter(&rig, 7, 100, 100), set;
    ck_assert_int_eq(gateway_set_state(rig.g, 7, "x", 1, &set), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    rig_result(&rig, 0, request, 7, TERRANE_ERR_ENTITY_EXISTS, 0);
    ck_assert_uint_eq(rig_told(&rig, TOLD_DONE), 2);
    ck_assert_uint_eq(rig.told[0].a, set);
    ck_assert_int_eq(rig.told[0].error, TERRANE_ERR_ENTITY_UNKNOWN);
    ck_assert_uint_eq(rig.told[1].a, request);
    ck_assert_int_eq(rig.told[1].error, TERRANE_ERR_ENTITY_EXISTS);
    ck_assert_int_eq(gateway_move(rig.g, 7, 1, 1, 0, 0), TERRANE_ERR_ENTITY_UNKNOWN);
    rig_snapshot(&rig, 0, 0, 1, 1, NULL, 0, 1, 1, 1);
    rig_run(&rig, 50000);
    ck_assert(gateway_calm(rig.g));
    rig_close(&rig);
}
END_TEST

START_TEST(commands_wait_for_the_enter_and_keep_their_order)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    uint64_t request = enter(&rig, 7, 100, 100), set, leave;
    ck_assert_int_eq(gateway_set_state(rig.g, 7, "new", 3, &set), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_move(rig.g, 7, 105, 100, 0, 0), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    ck_assert_int_eq(gateway_move(rig.g, 7, 106, 100, 0, 0), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_SET_STATE), 0);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_MOVES), 0);
    rig_result(&rig, 0, request, 7, TERRANE_ERR_OK, last_enter(&rig.servers[0]).record.version);
    rig_run(&rig, 3000);
    struct set_state state = last_state(&rig.servers[0]);
    ck_assert_uint_eq(state.request, set);
    ck_assert_uint_gt(state.sequence, last_enter(&rig.servers[0]).sequence);
    ck_assert_mem_eq(state.state, "new", 3);
    double x;
    ck_assert_uint_gt(last_move(&rig, &rig.servers[0], 7, &x), last_enter(&rig.servers[0]).sequence);
    ck_assert_double_eq_tol(x, 106, 0.01);
    ck_assert_int_eq(gateway_leave(rig.g, 7, &leave), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(last_leave(&rig.servers[0]).request, leave);
    rig_close(&rig);
}
END_TEST

START_TEST(an_entity_may_leave_before_its_enter_is_answered)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    uint64_t request = enter(&rig, 7, 100, 100), leave;
    rig_run(&rig, 3000);
    ck_assert_int_eq(gateway_leave(rig.g, 7, &leave), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_LEAVE), 0);
    rig_result(&rig, 0, request, 7, TERRANE_ERR_OK, last_enter(&rig.servers[0]).record.version);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(last_leave(&rig.servers[0]).request, leave);
    rig_result(&rig, 0, leave, 7, TERRANE_ERR_OK, 0);
    ck_assert_uint_eq(rig_told(&rig, TOLD_DONE), 2);
    ck_assert_uint_eq(rig_last_told(&rig, TOLD_DONE)->a, leave);
    ck_assert_int_eq(rig_last_told(&rig, TOLD_DONE)->error, TERRANE_ERR_OK);
    rig_snapshot(&rig, 0, 0, 1, 1, NULL, 0, 1, 1, 1);
    rig_run(&rig, 50000);
    ck_assert(gateway_calm(rig.g));
    rig_close(&rig);
}
END_TEST

START_TEST(an_enter_that_times_out_is_taken_back)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    uint64_t request = enter(&rig, 7, 100, 100);
    rig_run(&rig, 9900000);
    ck_assert_uint_eq(rig_told(&rig, TOLD_DONE), 0);
    rig_run(&rig, 200000);
    ck_assert_uint_eq(rig_told(&rig, TOLD_DONE), 1);
    ck_assert_uint_eq(rig.told[0].a, request);
    ck_assert_int_eq(rig.told[0].error, TERRANE_ERR_TIMED_OUT);
    ck_assert_uint_eq(last_leave(&rig.servers[0]).id.v, 7);
    rig_close(&rig);
}
END_TEST

START_TEST(a_new_owner_gets_unanswered_commands_and_the_position_again)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    uint64_t version = rig_enter(&rig, 7, 100, 100, 50, 0), set;
    rig_enter(&rig, 8, 7000, 100, 50, 1); /* so that the link with server 1 has stood for long */
    ck_assert_int_eq(gateway_set_state(rig.g, 7, "s1", 2, &set), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_move(rig.g, 7, 120, 100, 0, 0), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    struct set_state first = last_state(&rig.servers[0]), again;
    double x;
    uint64_t moved = last_move(&rig, &rig.servers[0], 7, &x);
    rig_owner(&rig, 1, 7, version + 1);
    rig_run(&rig, 3000);
    again = last_state(&rig.servers[1]);
    ck_assert_uint_eq(again.request, set);
    ck_assert_uint_eq(again.sequence, first.sequence);
    ck_assert_mem_eq(again.state, "s1", 2);
    ck_assert_uint_gt(last_move(&rig, &rig.servers[1], 7, &x), moved);
    ck_assert_double_eq_tol(x, 120, 0.01);
    /* Both answer: once is told. */
    rig_result(&rig, 1, set, 7, TERRANE_ERR_OK, 0);
    rig_result(&rig, 0, set, 7, TERRANE_ERR_OK, 0);
    ck_assert_uint_eq(rig_told(&rig, TOLD_DONE), 3);
    struct terrane_stats stats;
    gateway_stats(rig.g, &stats);
    ck_assert_uint_eq(stats.handoffs, 1);
    /* From now on commands go to the new owner only. */
    size_t before = rig_messages(&rig.servers[0], MESSAGE_MOVES);
    ck_assert_int_eq(gateway_move(rig.g, 7, 121, 100, 0, 0), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_MOVES), before);
    last_move(&rig, &rig.servers[1], 7, &x);
    ck_assert_double_eq_tol(x, 121, 0.01);
    rig_close(&rig);
}
END_TEST

START_TEST(an_older_owner_is_not_believed)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    uint64_t version = rig_enter(&rig, 7, 100, 100, 50, 0);
    rig_owner(&rig, 1, 7, version + 2);
    rig_owner(&rig, 2, 7, version + 1);
    rig_owner(&rig, 3, 7, version + 2);
    ck_assert_int_eq(gateway_move(rig.g, 7, 121, 100, 0, 0), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig.servers[2], MESSAGE_MOVES), 0);
    ck_assert_uint_eq(rig_messages(&rig.servers[3], MESSAGE_MOVES), 0);
    ck_assert_uint_ge(rig_messages(&rig.servers[1], MESSAGE_MOVES), 1);
    struct terrane_stats stats;
    gateway_stats(rig.g, &stats);
    ck_assert_uint_eq(stats.handoffs, 1);
    ck_assert_uint_eq(stats.stale, 2);
    rig_close(&rig);
}
END_TEST

START_TEST(a_handed_over_entity_counts_as_entered_before_the_answer_comes)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    uint64_t request = enter(&rig, 7, 100, 100);
    rig_run(&rig, 3000);
    uint64_t version = last_enter(&rig.servers[0]).record.version;
    rig_owner(&rig, 1, 7, version + 1);
    ck_assert_uint_eq(rig_told(&rig, TOLD_DONE), 1);
    ck_assert_uint_eq(rig.told[0].a, request);
    ck_assert_int_eq(rig.told[0].error, TERRANE_ERR_OK);
    rig_result(&rig, 0, request, 7, TERRANE_ERR_OK, version);
    ck_assert_uint_eq(rig_told(&rig, TOLD_DONE), 1);
    ck_assert_int_eq(gateway_move(rig.g, 7, 121, 100, 0, 0), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_MOVES), 0);
    ck_assert_uint_ge(rig_messages(&rig.servers[1], MESSAGE_MOVES), 1);
    rig_close(&rig);
}
END_TEST

START_TEST(a_leave_follows_the_entity_and_is_done_once)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    uint64_t version = rig_enter(&rig, 7, 100, 100, 50, 0), leave;
    ck_assert_int_eq(gateway_leave(rig.g, 7, &leave), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    rig_owner(&rig, 1, 7, version + 1);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(last_leave(&rig.servers[1]).request, leave);
    ck_assert_uint_eq(last_leave(&rig.servers[1]).sequence, last_leave(&rig.servers[0]).sequence);
    /* The former owner does not know it any more; only the owner's word counts. */
    rig_result(&rig, 0, leave, 7, TERRANE_ERR_ENTITY_UNKNOWN, 0);
    ck_assert_uint_eq(rig_told(&rig, TOLD_DONE), 1);
    rig_result(&rig, 1, leave, 7, TERRANE_ERR_ENTITY_UNKNOWN, 0);
    ck_assert_uint_eq(rig_told(&rig, TOLD_DONE), 2);
    ck_assert_int_eq(rig_last_told(&rig, TOLD_DONE)->error, TERRANE_ERR_OK);
    rig_close(&rig);
}
END_TEST

START_TEST(what_is_owned_for_us_but_is_not_ours_is_taken_out)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    rig_owner(&rig, 1, 99, 5);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(last_leave(&rig.servers[1]).id.v, 99);
    ck_assert_uint_eq(rig.told_count, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(many_moves_travel_in_few_packets_below_the_limit)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    const uint64_t count = 9000;
    for (uint64_t i = 1; i <= count; i++) enter(&rig, (UINT64_C(1) << 60) + i, 100 + (double)(i % 1000), 100);
    rig_run(&rig, 3000);
    for (size_t i = 0; i < rig.servers[0].count; i++) {
        struct enter entered;
        if (enter_decode(rig_cursor(&rig.servers[0].messages[i]), &entered) != TERRANE_ERR_OK) continue;
        struct result result = {.request = entered.request, .id = entered.record.id, .version = entered.record.version};
        result_encode(&rig.w, &result);
        ck_assert_int_eq(session_push(rig.servers[0].session, rig.w.data, rig.w.size), TERRANE_ERR_OK);
        writer_clear(&rig.w);
    }
    rig_pump(&rig, &rig.servers[0]);
    ck_assert_uint_eq(rig_told(&rig, TOLD_DONE), count);
    for (uint64_t i = 1; i <= count; i++) {
        (void)!gateway_move(rig.g, (UINT64_C(1) << 60) + i, 3, 3, 0, 0);
        ck_assert_int_eq(gateway_move(rig.g, (UINT64_C(1) << 60) + i, 12000, 5000, 0, 0), TERRANE_ERR_OK);
    }
    rig_run(&rig, 3000);
    uint64_t moved = 0;
    for (size_t i = 0; i < rig.servers[0].count; i++) {
        struct moves moves;
        if (moves_decode(rig_cursor(&rig.servers[0].messages[i]), &moves) == TERRANE_ERR_OK) moved += moves.count;
    }
    ck_assert_uint_eq(moved, count);
    rig_close(&rig);
}
END_TEST

SUITE_MAIN("gateway_own", faults_of_arguments_are_told_at_once, enter_waits_for_an_owner_of_the_place,
           a_refused_enter_is_tried_again_with_the_newer_map, a_refused_enter_is_tried_again_even_if_the_map_stays,
           an_enter_that_another_holds_is_done_with_its_error, commands_wait_for_the_enter_and_keep_their_order,
           an_entity_may_leave_before_its_enter_is_answered, an_enter_that_times_out_is_taken_back,
           a_new_owner_gets_unanswered_commands_and_the_position_again, an_older_owner_is_not_believed,
           a_handed_over_entity_counts_as_entered_before_the_answer_comes, a_leave_follows_the_entity_and_is_done_once,
           what_is_owned_for_us_but_is_not_ours_is_taken_out, many_moves_travel_in_few_packets_below_the_limit)
