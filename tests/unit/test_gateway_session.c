/* How a gateway finds its coordinator, learns the map, and keeps its sessions. */
#include "gateway_rig.h"

START_TEST(hello_is_repeated_until_welcome_and_the_first_map_makes_ready)
{
    struct rig rig = {0};
    struct gateway_options options = rig_options(&rig);
    struct leaf_owner leaves[4];
    rig_open_with(&rig, &options);
    rig_run(&rig, 1000000);
    ck_assert_int_ge(rig.hellos, 5);
    ck_assert_int_le(rig.hellos, 7);
    ck_assert(!gateway_is_ready(rig.g));
    struct terrane_entity entity = {.id = 1};
    ck_assert_int_eq(gateway_enter(rig.g, &entity, NULL), TERRANE_ERR_NOT_READY);
    rig_welcome(&rig);
    ck_assert_uint_eq(rig_told(&rig, TOLD_READY), 0);
    rig_quadrants(leaves);
    rig_map(&rig, leaves, 4, 4);
    ck_assert_uint_eq(rig_told(&rig, TOLD_READY), 1);
    ck_assert(gateway_is_ready(rig.g));
    int hellos = rig.hellos;
    rig_run(&rig, 500000);
    ck_assert_int_eq(rig.hellos, hellos);
    rig_close(&rig);
}
END_TEST

START_TEST(enter_move_leave_reach_the_owner_of_the_place)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    rig_enter(&rig, 7, 100, 100, 50, 0);
    ck_assert_uint_eq(rig_last_told(&rig, TOLD_DONE)->b, 7);
    ck_assert_int_eq(rig_last_told(&rig, TOLD_DONE)->error, TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_move(rig.g, 7, 101, 100, 0, 0), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_move(rig.g, 7, 102, 100, 0, 0), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    struct moves moves;
    struct move move;
    ck_assert_int_eq(moves_decode(rig_cursor(rig_last(&rig.servers[0], MESSAGE_MOVES)), &moves), TERRANE_ERR_OK);
    ck_assert_uint_eq(moves.count, 1);
    ck_assert(moves_next(&moves, &move));
    double x, y, z;
    world_coordinates(&rig.world, move.position, &x, &y, &z);
    ck_assert_double_eq_tol(x, 102, 0.01);
    uint64_t request;
    ck_assert_int_eq(gateway_leave(rig.g, 7, &request), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    ck_assert_ptr_nonnull(rig_last(&rig.servers[0], MESSAGE_LEAVE));
    rig_result(&rig, 0, request, 7, TERRANE_ERR_OK, 0);
    ck_assert_int_eq(rig_last_told(&rig, TOLD_DONE)->operation, TERRANE_LEAVE);
    struct terrane_stats stats;
    gateway_stats(rig.g, &stats);
    ck_assert_uint_eq(stats.own, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(an_observer_sees_when_view_and_data_are_there_and_hears_of_moves)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    uint64_t version = rig_enter(&rig, 7, 100, 100, 50, 0), subject = 9;
    rig_run(&rig, 10000);
    ck_assert_str_eq(rig.last_watch, "r/0/");
    ck_assert_ptr_nonnull(rig_last(&rig.servers[0], MESSAGE_SUBSCRIBE));
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, &subject, 1);
    ck_assert_uint_eq(rig_told(&rig, TOLD_SEE), 0);
    ck_assert(!gateway_calm(rig.g));
    rig_snapshot(&rig, 0, 0, 1, 5, &subject, 1, 110, 100, 3);
    ck_assert_uint_eq(rig_told(&rig, TOLD_SEE), 1);
    ck_assert_double_eq_tol(rig_last_told(&rig, TOLD_SEE)->x, 110, 0.01);
    struct frame_builder builder = {0};
    frame_builder_clear(&builder);
    frame_builder_moved(&builder, 0, 164, 0);
    rig_frame(&rig, 0, &builder, 1, 6);
    frame_builder_close(&builder);
    ck_assert_uint_eq(rig_told(&rig, TOLD_UPDATE), 1);
    ck_assert_double_eq_tol(rig_last_told(&rig, TOLD_UPDATE)->x, 111, 0.01);
    rig_run(&rig, 20000);
    ck_assert(gateway_calm(rig.g));
    uint64_t ids[4];
    ck_assert_uint_eq(gateway_view(rig.g, 7, ids, 4), 1);
    ck_assert_uint_eq(ids[0], 9);
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, &subject, 1, NULL, 0);
    ck_assert_uint_eq(rig_told(&rig, TOLD_UNSEE), 1);
    rig_close(&rig);
}
END_TEST

SUITE_MAIN("gateway_session", hello_is_repeated_until_welcome_and_the_first_map_makes_ready,
           enter_move_leave_reach_the_owner_of_the_place,
           an_observer_sees_when_view_and_data_are_there_and_hears_of_moves)
