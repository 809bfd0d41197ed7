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

START_TEST(a_silent_coordinator_is_sought_and_play_goes_on)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    uint64_t version = rig_enter(&rig, 7, 100, 100, 50, 0), nine = 9;
    rig_snapshot(&rig, 0, 0, 1, 1, &nine, 1, 110, 100, 3);
    /* Heartbeats of the coordinator keep it quiet. */
    struct heartbeat beat = {.term = 1, .rev = rig.rev};
    int hellos = rig.hellos;
    for (int i = 0; i < 12; i++) {
        heartbeat_begin(&rig.w, &beat);
        heartbeat_stands(&rig.w, 0);
        ck_assert_int_eq(session_push_fast(rig.coordinator.session, rig.w.data, rig.w.size), TERRANE_ERR_OK);
        writer_clear(&rig.w);
        rig_pump(&rig, &rig.coordinator);
        rig_run(&rig, 250000);
    }
    ck_assert_int_eq(rig.hellos, hellos);
    rig_run(&rig, 2000000);
    ck_assert_int_ge(rig.hellos, hellos + 4);
    ck_assert_int_eq(gateway_move(rig.g, 7, 101, 100, 0, 0), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    ck_assert_ptr_nonnull(rig_last(&rig.servers[0], MESSAGE_MOVES));
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, &nine, 1);
    ck_assert_uint_eq(rig.seen_count, 1);
    /* The same incarnation answers again: the session goes on where it was. */
    rig_welcome(&rig);
    hellos = rig.hellos;
    rig_run(&rig, 900000);
    ck_assert_int_eq(rig.hellos, hellos);
    ck_assert_uint_eq(rig_told(&rig, TOLD_ERROR), 0);
    rig_close(&rig);
}
END_TEST

static void restart_coordinator(struct rig *rig, uint64_t node)
{
    session_close(rig->coordinator.session);
    rig->coordinator.node = (struct node_id){node};
    rig->coordinator.session = rig_session(rig->coordinator.node);
}

START_TEST(a_restarted_coordinator_is_believed_and_its_map_taken)
{
    struct rig rig = {0};
    struct leaf_owner leaves[4];
    rig_open_ready(&rig);
    rig_enter(&rig, 7, 100, 100, 50, 0);
    rig_step(&rig, (struct event){.kind = EVENT_PEER_DOWN, .node = NODE_COORDINATOR});
    int hellos = rig.hellos;
    rig_run(&rig, 500000);
    ck_assert_int_gt(rig.hellos, hellos);
    restart_coordinator(&rig, 41);
    rig.told_count = 0;
    rig_welcome(&rig);
    ck_assert_uint_eq(rig_told(&rig, TOLD_READY), 1);
    rig_quadrants(leaves);
    rig_map(&rig, leaves, 4, 4);
    rig_run(&rig, 3000000);
    ck_assert_int_eq(gateway_move(rig.g, 7, 101, 100, 0, 0), TERRANE_ERR_OK);
    ck_assert_uint_eq(rig_told(&rig, TOLD_ERROR), 0);
    rig_close(&rig);
}
END_TEST

START_TEST(a_coordinator_of_another_world_or_an_older_term_is_refused)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    restart_coordinator(&rig, 42);
    rig.world.cell_size = 25;
    rig_welcome(&rig);
    ck_assert_uint_eq(rig_told(&rig, TOLD_ERROR), 1);
    ck_assert_int_eq(rig_last_told(&rig, TOLD_ERROR)->error, TERRANE_ERR_WORLD_MISMATCH);
    ck_assert_double_eq(gateway_world(rig.g)->cell_size, 50);
    rig.world.cell_size = 50;
    struct welcome old = {.node = rig.coordinator.node, .term = 0, .world = rig.world, .lease_us = 250000};
    welcome_encode(&rig.w, &old);
    ck_assert_int_eq(session_push_fast(rig.coordinator.session, rig.w.data, rig.w.size), TERRANE_ERR_OK);
    writer_clear(&rig.w);
    struct terrane_stats before, after;
    gateway_stats(rig.g, &before);
    rig_pump(&rig, &rig.coordinator);
    gateway_stats(rig.g, &after);
    ck_assert_uint_gt(after.stale, before.stale);
    rig_close(&rig);
}
END_TEST

static void map_change(struct rig *rig, uint64_t rev, uint64_t base, const struct leaf_owner *leaf)
{
    struct map map = {.term = 1, .rev = rev, .base = base, .part = 0, .parts = 1};
    map_begin(&rig->w, &map);
    map_list(&rig->w, 0);
    map_list(&rig->w, 1);
    map_add_leaf(&rig->w, leaf);
    map_list(&rig->w, 0);
    map_list(&rig->w, 0);
    rig_say(rig, &rig->coordinator);
}

START_TEST(a_change_to_an_unknown_map_is_not_taken_but_asked_for)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    struct leaf_owner leaf = {.leaf = quadkey_child(QUADKEY_ROOT, 0), .epoch = 2, .since = 2, .primary = SERVER(3)};
    map_change(&rig, rig.rev + 2, rig.rev + 1, &leaf);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig.coordinator, MESSAGE_MAP_REQUEST), 1);
    struct terrane_entity entity = {.id = 7, .x = 100, .y = 100};
    ck_assert_int_eq(gateway_enter(rig.g, &entity, NULL), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_ENTER), 1);
    map_change(&rig, rig.rev + 1, rig.rev, &leaf);
    entity.id = 8;
    ck_assert_int_eq(gateway_enter(rig.g, &entity, NULL), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig.servers[3], MESSAGE_ENTER), 2); /* what is unanswered moves as well */
    /* An older map changes nothing. */
    leaf.primary = SERVER(2);
    map_change(&rig, rig.rev, rig.rev - 1, &leaf);
    entity.id = 9;
    ck_assert_int_eq(gateway_enter(rig.g, &entity, NULL), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig.servers[2], MESSAGE_ENTER), 0);
    rig_close(&rig);
}
END_TEST

START_TEST(strangers_and_garbage_are_dropped_and_counted)
{
    struct rig rig = {0};
    struct terrane_stats stats;
    rig_open_ready(&rig);
    struct rig_peer stranger = {.node = {999}, .session = rig_session((struct node_id){999})};
    struct owner owner = {.id = {7}, .version = 1, .leaf = QUADKEY_ROOT};
    owner_encode(&rig.w, &owner);
    rig_say(&rig, &stranger);
    session_close(stranger.session);
    const uint8_t garbage[] = {0x98, 1, 2, 3};
    rig_step(&rig, (struct event){.kind = EVENT_MESSAGE, .lane = LANE_INBOX, .bytes = garbage, .size = 4});
    rig_step(&rig, (struct event){.kind = EVENT_MESSAGE, .lane = LANE_FEED, .bytes = garbage, .size = 4});
    /* A known server says what no server may say, and something that no one can read. */
    bye_encode(&rig.w);
    rig_say(&rig, &rig.servers[0]);
    writer_array(&rig.w, 2);
    writer_uint(&rig.w, MESSAGE_RESULT);
    writer_str(&rig.w, "?");
    rig_say(&rig, &rig.servers[0]);
    gateway_stats(rig.g, &stats);
    ck_assert_uint_eq(stats.dropped, 1);
    ck_assert_uint_eq(stats.malformed, 4);
    ck_assert_uint_eq(rig.told_count, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(a_server_is_linked_only_when_there_is_something_to_say)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    for (int i = 0; i < 4; i++) ck_assert_int_eq(rig.servers[i].links, 0);
    rig_enter(&rig, 7, 100, 100, 0, 0);
    ck_assert_int_eq(rig.servers[0].links, 1);
    ck_assert_int_eq(rig.servers[1].links, 0);
    struct map map = {.term = 1, .rev = ++rig.rev, .part = 0, .parts = 1};
    map_begin(&rig.w, &map);
    for (int i = 0; i < 4; i++) map_list(&rig.w, 0);
    rig_say(&rig, &rig.coordinator);
    ck_assert_int_eq(rig.servers[0].unlinks, 1);
    rig_close(&rig);
}
END_TEST

START_TEST(positions_are_sent_again_when_moves_may_be_lost)
{
    struct rig rig = {0};
    struct moves moves;
    rig_open_ready(&rig);
    rig_enter(&rig, 7, 100, 100, 50, 0);
    rig_enter(&rig, 8, 7000, 100, 50, 1);
    ck_assert_int_eq(gateway_move(rig.g, 7, 101, 100, 0, 0), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    ck_assert_int_eq(moves_decode(rig_cursor(rig_last(&rig.servers[0], MESSAGE_MOVES)), &moves), TERRANE_ERR_OK);
    uint64_t sequence = moves.sequence;
    size_t before = rig_messages(&rig.servers[0], MESSAGE_MOVES), other = rig_messages(&rig.servers[1], MESSAGE_MOVES);
    struct moves_lost lost = {.packets = 1};
    moves_lost_encode(&rig.w, &lost);
    rig_say(&rig, &rig.servers[0]);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_MOVES), before + 1);
    ck_assert_int_eq(moves_decode(rig_cursor(rig_last(&rig.servers[0], MESSAGE_MOVES)), &moves), TERRANE_ERR_OK);
    ck_assert_uint_gt(moves.sequence, sequence);
    rig_step(&rig, (struct event){.kind = EVENT_PEER_DOWN, .node = SERVER(0)});
    /* While the link is down nothing is wasted on it. */
    ck_assert_int_eq(gateway_move(rig.g, 7, 105, 100, 0, 0), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_set_state(rig.g, 7, "x", 1, NULL), TERRANE_ERR_OK);
    rig_run(&rig, 50000);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_MOVES), before + 1);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_SET_STATE), 0);
    rig_step(&rig, (struct event){.kind = EVENT_PEER_UP, .node = SERVER(0)});
    rig_run(&rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_MOVES), before + 2);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_SET_STATE), 1);
    ck_assert_uint_eq(rig_messages(&rig.servers[1], MESSAGE_MOVES), other);
    rig_close(&rig);
}
END_TEST

START_TEST(a_server_that_does_not_answer_is_dialled_anew)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    rig_enter(&rig, 7, 100, 100, 50, 0);
    rig_run(&rig, 3000);
    rig.servers[0].deaf = true;
    ck_assert_int_eq(gateway_set_state(rig.g, 7, "x", 1, NULL), TERRANE_ERR_OK);
    rig_run(&rig, 5000000);
    ck_assert_int_ge(rig.servers[0].links, 2);
    ck_assert_int_le(rig.servers[0].links, 4);
    rig.servers[0].deaf = false;
    rig_run(&rig, 1000000);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_SET_STATE), 1);
    rig_close(&rig);
}
END_TEST

START_TEST(a_flush_sends_at_once)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    rig_enter(&rig, 7, 100, 100, 50, 0);
    rig_run(&rig, 50000);
    size_t before = rig_messages(&rig.servers[0], MESSAGE_MOVES);
    ck_assert_int_eq(gateway_move(rig.g, 7, 101, 100, 0, 0), TERRANE_ERR_OK);
    gateway_flush(rig.g, rig.now, &rig.out);
    rig_carry(&rig);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_MOVES), before + 1);
    rig_close(&rig);
}
END_TEST

START_TEST(shutdown_takes_all_out_and_says_bye)
{
    struct rig rig = {0};
    uint64_t ids[] = {7, 8};
    rig_open_ready(&rig);
    for (int i = 0; i < 2; i++) rig_enter(&rig, ids[i], 100, 100, 50, 0);
    gateway_shutdown(rig.g);
    struct terrane_entity entity = {.id = 9, .x = 1, .y = 1};
    ck_assert_int_eq(gateway_enter(rig.g, &entity, NULL), TERRANE_ERR_CLOSED);
    ck_assert_int_eq(gateway_find(rig.g, 9, NULL), TERRANE_ERR_CLOSED);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_LEAVE), 2);
    ck_assert_uint_eq(rig_messages(&rig.coordinator, MESSAGE_BYE), 0);
    ck_assert(!gateway_closed(rig.g));
    for (size_t i = 0, end = rig.servers[0].count; i < end; i++) {
        struct leave leave;
        if (leave_decode(rig_cursor(&rig.servers[0].messages[i]), &leave) != TERRANE_ERR_OK) continue;
        rig_result(&rig, 0, leave.request, leave.id.v, TERRANE_ERR_OK, 0);
    }
    rig_run(&rig, 20000);
    ck_assert_uint_eq(rig_messages(&rig.coordinator, MESSAGE_BYE), 1);
    ck_assert(gateway_closed(rig.g));
    rig_close(&rig);
}
END_TEST

SUITE_MAIN("gateway_session", hello_is_repeated_until_welcome_and_the_first_map_makes_ready,
           enter_move_leave_reach_the_owner_of_the_place,
           an_observer_sees_when_view_and_data_are_there_and_hears_of_moves,
           a_silent_coordinator_is_sought_and_play_goes_on, a_restarted_coordinator_is_believed_and_its_map_taken,
           a_coordinator_of_another_world_or_an_older_term_is_refused,
           a_change_to_an_unknown_map_is_not_taken_but_asked_for, strangers_and_garbage_are_dropped_and_counted,
           a_server_is_linked_only_when_there_is_something_to_say, positions_are_sent_again_when_moves_may_be_lost,
           a_server_that_does_not_answer_is_dialled_anew, a_flush_sends_at_once, shutdown_takes_all_out_and_says_bye)
