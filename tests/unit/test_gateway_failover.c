/* A leaf changes its primary: everything goes on with the successor, at once and exactly once. */
#include "gateway_rig.h"

/* Entity 7 stands in quadrant 2 (server 2) and sees 9 there; entity 8 in quadrant 1, so that server 1 is linked. */
struct scene {
    struct rig rig;
    struct leaf_owner leaves[4];
    uint64_t version;
};

static void open_scene(struct scene *s)
{
    const uint64_t nine = 9;
    rig_open_ready(&s->rig);
    rig_quadrants(s->leaves);
    s->version = rig_enter(&s->rig, 7, 100, 7000, 50, 2);
    rig_enter(&s->rig, 8, 7000, 100, 50, 1);
    rig_run(&s->rig, 10000);
    rig_snapshot(&s->rig, 2, 2, 1, 5, &nine, 1, 100, 7010, 3);
    rig_snapshot(&s->rig, 1, 1, 1, 5, NULL, 0, 1, 1, 3);
    rig_views(&s->rig, 2, 7, s->version, VIEW_CHANGES, NULL, 0, &nine, 1);
    rig_run(&s->rig, 20000);
    ck_assert_uint_eq(s->rig.seen_count, 1);
    ck_assert(gateway_calm(s->rig.g));
    s->rig.told_count = 0;
}

/* Server 1 takes quadrant 2 over; `servers`: how many the map still names. */
static void promote(struct scene *s, uint32_t servers)
{
    rig_give(&s->leaves[2], SERVER(1));
    if (servers < 4) rig_give(&s->leaves[3], SERVER(0));
    rig_map(&s->rig, s->leaves, 4, servers);
}

START_TEST(all_goes_to_the_successor_in_the_step_that_hears_of_it)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    ck_assert_int_eq(gateway_set_state(rig->g, 7, "s1", 2, NULL), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_move(rig->g, 7, 101, 7000, 0, 0), TERRANE_ERR_OK);
    rig_run(rig, 3000);
    size_t subscribes = rig_messages(&rig->servers[1], MESSAGE_SUBSCRIBE);
    uint64_t now = rig->now;
    promote(&s, 4); /* the former owner is only silent */
    ck_assert_uint_eq(rig->now, now);
    ck_assert_uint_eq(rig_messages(&rig->servers[1], MESSAGE_SUBSCRIBE), subscribes + 1);
    ck_assert_uint_eq(rig_messages(&rig->servers[1], MESSAGE_SET_STATE), 1);
    struct moves moves;
    struct move move;
    ck_assert_int_eq(moves_decode(rig_cursor(rig_last(&rig->servers[1], MESSAGE_MOVES)), &moves), TERRANE_ERR_OK);
    ck_assert(moves_next(&moves, &move));
    ck_assert_uint_eq(move.id.v, 7);
    ck_assert(!gateway_calm(rig->g));
    rig_close(rig);
}
END_TEST

START_TEST(what_a_promoting_successor_refuses_is_said_again_within_milliseconds)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    uint64_t set;
    promote(&s, 2);
    ck_assert_int_eq(gateway_set_state(rig->g, 7, "s1", 2, &set), TERRANE_ERR_OK);
    rig_run(rig, 3000);
    struct unsubscribed refusal = {STREAM_REGION, s.leaves[2].leaf, TERRANE_ERR_NOT_READY};
    for (int i = 0; i < 3; i++) {
        size_t states = rig_messages(&rig->servers[1], MESSAGE_SET_STATE);
        size_t subscribes = rig_messages(&rig->servers[1], MESSAGE_SUBSCRIBE);
        unsubscribed_encode(&rig->w, &refusal);
        rig_say(rig, &rig->servers[1]);
        rig_result(rig, 1, set, 7, TERRANE_ERR_NOT_READY, 0);
        rig_run(rig, 13000);
        ck_assert_uint_eq(rig_messages(&rig->servers[1], MESSAGE_SET_STATE), states + 1);
        ck_assert_uint_eq(rig_messages(&rig->servers[1], MESSAGE_SUBSCRIBE), subscribes + 1);
    }
    ck_assert_uint_eq(rig->told_count, 0);
    rig_owner_of(rig, 1, 2, 7, s.version + 1);
    rig_result(rig, 1, set, 7, TERRANE_ERR_OK, 0);
    ck_assert_uint_eq(rig->told_count, 1);
    ck_assert_int_eq(rig->told[0].error, TERRANE_ERR_OK);
    rig_close(rig);
}
END_TEST

START_TEST(what_was_refused_goes_out_when_the_successor_speaks)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    uint64_t set;
    ck_assert_int_eq(gateway_set_state(rig->g, 7, "s1", 2, &set), TERRANE_ERR_OK);
    rig_run(rig, 3000);
    promote(&s, 2);
    rig_result(rig, 1, set, 7, TERRANE_ERR_NOT_READY, 0);
    size_t moves = rig_messages(&rig->servers[1], MESSAGE_MOVES);
    rig_owner_of(rig, 1, 2, 7, s.version + 1);
    /* In the same step: the position that a promoting server has dropped, and the command. */
    ck_assert_uint_eq(rig_messages(&rig->servers[1], MESSAGE_SET_STATE), 2);
    ck_assert_uint_eq(rig_messages(&rig->servers[1], MESSAGE_MOVES), moves + 1);
    struct terrane_stats stats;
    gateway_stats(rig->g, &stats);
    ck_assert_uint_eq(stats.handoffs, 1);
    rig_close(rig);
}
END_TEST

START_TEST(an_owner_that_had_given_it_away_and_has_it_again_is_told_all_once_more)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    size_t moves = rig_messages(&rig->servers[2], MESSAGE_MOVES);
    rig_owner_of(rig, 2, 2, 7, s.version + 1); /* between two of its own leaves */
    rig_run(rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig->servers[2], MESSAGE_MOVES), moves);
    ck_assert_int_eq(gateway_set_state(rig->g, 7, "s1", 2, NULL), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_move(rig->g, 7, 101, 7000, 0, 0), TERRANE_ERR_OK);
    rig_run(rig, 3000);
    moves = rig_messages(&rig->servers[2], MESSAGE_MOVES);
    size_t states = rig_messages(&rig->servers[2], MESSAGE_SET_STATE);
    /* It passed both on to one that died before it said a word, and took that one's leaf over. */
    rig_owner_of(rig, 2, 2, 7, s.version + 1026);
    rig_run(rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig->servers[2], MESSAGE_MOVES), moves + 1);
    ck_assert_uint_eq(rig_messages(&rig->servers[2], MESSAGE_SET_STATE), states + 1);
    rig_close(rig);
}
END_TEST

START_TEST(nothing_blinks_and_a_deposed_owner_is_not_believed)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    const uint64_t nine = 9, ids[] = {9, 10};
    promote(&s, 4);
    /* The former owner wakes: its changes, its whole view, its frames. */
    rig_views(rig, 2, 7, s.version, VIEW_CHANGES, &nine, 1, NULL, 0);
    rig_views(rig, 2, 7, s.version, VIEW_WHOLE_LAST, NULL, 0, NULL, 0);
    struct frame_builder frame = {0};
    frame_builder_clear(&frame);
    frame_builder_left(&frame, 0, LEFT_GONE, 0, QUADKEY_NONE);
    rig_frame(rig, 2, &frame, 1, 6);
    frame_builder_close(&frame);
    rig_run(rig, 300000);
    ck_assert_uint_eq(rig->told_count, 0);
    rig_owner_of(rig, 1, 2, 7, s.version + 1);
    rig_snapshot(rig, 1, 2, 2, 1, ids, 2, 100, 7010, 4);
    rig_views(rig, 1, 7, s.version + 1, VIEW_WHOLE_LAST, NULL, 0, ids, 2);
    rig_views(rig, 2, 7, s.version, VIEW_CHANGES, &nine, 1, NULL, 0);
    rig_run(rig, 20000);
    ck_assert_uint_eq(rig->seen_count, 2);
    ck_assert_uint_eq(rig_told(rig, TOLD_SEE), 1);
    ck_assert_uint_eq(rig_told(rig, TOLD_UNSEE), 0);
    ck_assert(gateway_calm(rig->g));
    rig_close(rig);
}
END_TEST

START_TEST(the_successors_word_counts_before_the_map_comes)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    rig_owner_of(rig, 1, 2, 7, s.version + 1);
    rig_views(rig, 1, 7, s.version + 1, VIEW_WHOLE_LAST, NULL, 0, NULL, 0);
    ck_assert_uint_eq(rig_told(rig, TOLD_UNSEE), 1);
    promote(&s, 2);
    rig_snapshot(rig, 1, 2, 2, 1, NULL, 0, 100, 7010, 4);
    rig_run(rig, 2000000);
    ck_assert(gateway_calm(rig->g));
    ck_assert_uint_eq(rig_messages(&rig->servers[0], MESSAGE_LOOKUP), 0);
    rig_close(rig);
}
END_TEST

START_TEST(a_standby_is_asked_before_it_is_needed)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    ck_assert_int_eq(rig->servers[3].links, 0);
    s.leaves[2].standby = SERVER(3);
    s.leaves[2].epoch++;
    size_t subscribes = rig_messages(&rig->servers[2], MESSAGE_SUBSCRIBE);
    rig_map(rig, s.leaves, 4, 4);
    ck_assert_int_eq(rig->servers[3].links, 1);
    /* Another standby is no other stream. */
    ck_assert_uint_eq(rig_messages(&rig->servers[2], MESSAGE_SUBSCRIBE), subscribes);
    rig_run(rig, 20000);
    ck_assert(gateway_calm(rig->g));
    ck_assert_uint_eq(rig_messages(&rig->servers[3], MESSAGE_SUBSCRIBE), 1);
    /* One that does not know yet that it stands by is asked again, and the owner is not bothered. */
    struct unsubscribed refusal = {STREAM_REGION, s.leaves[2].leaf, TERRANE_ERR_NOT_OWNER};
    unsubscribed_encode(&rig->w, &refusal);
    rig_say(rig, &rig->servers[3]);
    rig_run(rig, 600000);
    ck_assert_uint_eq(rig_messages(&rig->servers[3], MESSAGE_SUBSCRIBE), 2);
    ck_assert_uint_eq(rig_messages(&rig->servers[2], MESSAGE_SUBSCRIBE), subscribes);
    /* What it publishes as the owner counts before the map comes, and nothing is asked for again when it does. */
    const uint64_t nine = 9;
    rig_snapshot(rig, 3, 2, 3, 1, &nine, 1, 100, 7020, 4);
    ck_assert_uint_eq(rig_told(rig, TOLD_UPDATE), 1);
    s.leaves[2].standby = NODE_NONE;
    rig_give(&s.leaves[2], SERVER(3));
    rig_map(rig, s.leaves, 4, 4);
    ck_assert_uint_eq(rig_messages(&rig->servers[3], MESSAGE_SUBSCRIBE), 2);
    ck_assert_int_eq(rig->servers[0].links, 0);
    rig_close(rig);
}
END_TEST

static struct enter last_enter(struct rig *rig, int server)
{
    struct enter enter;
    ck_assert_int_eq(enter_decode(rig_cursor(rig_last(&rig->servers[server], MESSAGE_ENTER)), &enter), TERRANE_ERR_OK);
    return enter;
}

START_TEST(an_enter_whose_answer_was_lost_is_repeated_where_it_was_entered)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    struct terrane_entity entity = {.id = 20, .x = 200, .y = 7000, .radius = 50};
    uint64_t request;
    ck_assert_int_eq(gateway_enter(rig->g, &entity, &request), TERRANE_ERR_OK);
    rig_run(rig, 3000);
    struct enter first = last_enter(rig, 2);
    /* It moves on into another's leaf meanwhile; whether it is in the world, only the successor knows. */
    ck_assert_int_eq(gateway_move(rig->g, 20, 200, 100, 0, 0), TERRANE_ERR_OK);
    promote(&s, 2);
    struct enter again = last_enter(rig, 1);
    ck_assert_uint_eq(again.request, request);
    ck_assert_uint_eq(again.sequence, first.sequence);
    ck_assert_int_eq(again.record.position.y, first.record.position.y);
    rig_result(rig, 1, request, 20, TERRANE_ERR_OK, first.record.version + 1);
    rig_result(rig, 1, request, 20, TERRANE_ERR_OK, first.record.version + 1);
    ck_assert_uint_eq(rig_told(rig, TOLD_DONE), 1);
    ck_assert_int_eq(rig->told[0].error, TERRANE_ERR_OK);
    rig_run(rig, 3000);
    struct moves moves;
    struct move move;
    ck_assert_int_eq(moves_decode(rig_cursor(rig_last(&rig->servers[1], MESSAGE_MOVES)), &moves), TERRANE_ERR_OK);
    ck_assert(moves_next(&moves, &move));
    ck_assert_uint_eq(move.id.v, 20);
    ck_assert_int_lt(move.position.y, first.record.position.y);
    rig_close(rig);
}
END_TEST

START_TEST(a_successors_refusal_does_not_say_that_nobody_entered_it)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    struct terrane_entity entity = {.id = 20, .x = 200, .y = 7000, .radius = 50};
    uint64_t request;
    ck_assert_int_eq(gateway_enter(rig->g, &entity, &request), TERRANE_ERR_OK);
    rig_run(rig, 3000);
    int32_t y = last_enter(rig, 2).record.position.y;
    ck_assert_int_eq(gateway_move(rig->g, 20, 200, 100, 0, 0), TERRANE_ERR_OK);
    promote(&s, 2);
    rig_result(rig, 1, request, 20, TERRANE_ERR_NOT_READY, 0);
    rig_run(rig, 13000);
    ck_assert_int_eq(last_enter(rig, 1).record.position.y, y);
    ck_assert_uint_eq(rig_messages(&rig->servers[0], MESSAGE_ENTER), 0);
    rig_close(rig);
}
END_TEST

START_TEST(a_repeated_enter_is_not_refused_for_a_ghost_of_the_first)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    struct terrane_entity entity = {.id = 20, .x = 200, .y = 7000, .radius = 50};
    uint64_t request;
    ck_assert_int_eq(gateway_enter(rig->g, &entity, &request), TERRANE_ERR_OK);
    rig_run(rig, 3000);
    promote(&s, 2);
    struct enter second = last_enter(rig, 1);
    rig_result(rig, 1, request, 20, TERRANE_ERR_ENTITY_EXISTS, second.record.version);
    rig_run(rig, 13000);
    struct enter third = last_enter(rig, 1);
    ck_assert_uint_eq(third.request, request);
    ck_assert_uint_gt(third.record.version, second.record.version);
    ck_assert_uint_gt(third.sequence, second.sequence);
    rig_result(rig, 1, request, 20, TERRANE_ERR_OK, third.record.version);
    ck_assert_uint_eq(rig->told_count, 1);
    ck_assert_int_eq(rig->told[0].error, TERRANE_ERR_OK);
    /* Somebody else's is refused all the same, if not at once. */
    entity.id = 21;
    ck_assert_int_eq(gateway_enter(rig->g, &entity, &request), TERRANE_ERR_OK);
    rig_run(rig, 3000);
    rig_give(&s.leaves[2], SERVER(0));
    rig_map(rig, s.leaves, 4, 2);
    for (int i = 0; i < 40 && rig_told(rig, TOLD_DONE) == 1; i++) {
        rig_result(rig, 0, request, 21, TERRANE_ERR_ENTITY_EXISTS, 1);
        rig_run(rig, 100000);
    }
    ck_assert_int_eq(rig_last_told(rig, TOLD_DONE)->error, TERRANE_ERR_ENTITY_EXISTS);
    rig_close(rig);
}
END_TEST

/* Frames and views do not wait for the standby; the answer does. */
START_TEST(an_enter_is_done_by_its_answer_and_not_by_a_view)
{
    struct rig rig = {0};
    const uint64_t nine = 9;
    struct terrane_entity entity = {.id = 7, .x = 100, .y = 100, .radius = 50};
    uint64_t request;
    rig_open_ready(&rig);
    ck_assert_int_eq(gateway_enter(rig.g, &entity, &request), TERRANE_ERR_OK);
    rig_run(&rig, 10000);
    uint64_t version = last_enter(&rig, 0).record.version;
    rig_snapshot(&rig, 0, 0, 1, 5, &nine, 1, 110, 100, 3);
    rig_views(&rig, 0, 7, version, VIEW_WHOLE_LAST, NULL, 0, &nine, 1);
    rig_owner(&rig, 0, 7, version + 1);
    rig_run(&rig, 20000);
    ck_assert_uint_eq(rig.told_count, 0);
    rig_result(&rig, 0, request, 7, TERRANE_ERR_OK, version + 1);
    ck_assert_uint_eq(rig.told_count, 2);
    ck_assert_int_eq(rig.told[0].kind, TOLD_DONE);
    ck_assert_int_eq(rig.told[1].kind, TOLD_SEE);
    rig_run(&rig, 20000);
    ck_assert(gateway_calm(rig.g));
    rig_close(&rig);
}
END_TEST

START_TEST(late_answers_of_a_former_owner_do_no_harm)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    uint64_t set[2];
    for (int i = 0; i < 2; i++) ck_assert_int_eq(gateway_set_state(rig->g, 7, "s1", 2, &set[i]), TERRANE_ERR_OK);
    rig_run(rig, 3000);
    promote(&s, 4);
    rig_owner_of(rig, 1, 2, 7, s.version + 1);
    rig_result(rig, 2, set[0], 7, TERRANE_ERR_OK, 0); /* its standby had it, so the successor has it */
    rig_result(rig, 2, set[1], 7, TERRANE_ERR_ENTITY_UNKNOWN, 0);
    ck_assert_uint_eq(rig_told(rig, TOLD_DONE), 1);
    rig_run(rig, 20000);
    rig_result(rig, 1, set[0], 7, TERRANE_ERR_OK, 0);
    rig_result(rig, 1, set[1], 7, TERRANE_ERR_OK, 0);
    ck_assert_uint_eq(rig_told(rig, TOLD_DONE), 2);
    for (size_t i = 0; i < rig->told_count; i++) ck_assert_int_eq(rig->told[i].error, TERRANE_ERR_OK);
    rig_run(rig, 2000000);
    ck_assert_uint_eq(rig_messages(&rig->servers[0], MESSAGE_LOOKUP), 0);
    rig_close(rig);
}
END_TEST

START_TEST(an_answer_of_a_deposed_owner_does_not_bind_the_entity_to_it)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    struct terrane_entity entity = {.id = 20, .x = 200, .y = 7000, .radius = 50};
    uint64_t request;
    ck_assert_int_eq(gateway_enter(rig->g, &entity, &request), TERRANE_ERR_OK);
    rig_run(rig, 3000);
    promote(&s, 4);
    rig_result(rig, 2, request, 20, TERRANE_ERR_OK, last_enter(rig, 2).record.version);
    ck_assert_uint_eq(rig_told(rig, TOLD_DONE), 1);
    size_t moves = rig_messages(&rig->servers[2], MESSAGE_MOVES);
    ck_assert_int_eq(gateway_move(rig->g, 20, 201, 7000, 0, 0), TERRANE_ERR_OK);
    rig_run(rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig->servers[2], MESSAGE_MOVES), moves);
    ck_assert_uint_ge(rig_messages(&rig->servers[1], MESSAGE_MOVES), 1);
    rig_close(rig);
}
END_TEST

START_TEST(a_leave_that_the_successor_has_carried_out_before_is_well)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    uint64_t leave;
    ck_assert_int_eq(gateway_leave(rig->g, 7, &leave), TERRANE_ERR_OK);
    rig_run(rig, 3000);
    ck_assert_uint_eq(rig_told(rig, TOLD_UNSEE), 1);
    promote(&s, 2);
    ck_assert_uint_eq(rig_messages(&rig->servers[1], MESSAGE_LEAVE), 1);
    rig_result(rig, 1, leave, 7, TERRANE_ERR_ENTITY_UNKNOWN, 0);
    ck_assert_uint_eq(rig_told(rig, TOLD_DONE), 0); /* it may be on its way somewhere: all are asked */
    for (int round = 0; round < 2; round++) {
        rig_run(rig, 220000);
        for (int i = 0; i < 2; i++) rig_looked_up(rig, i, 0, TERRANE_ERR_ENTITY_UNKNOWN, 0);
    }
    ck_assert_uint_eq(rig_told(rig, TOLD_DONE), 1);
    ck_assert_int_eq(rig_last_told(rig, TOLD_DONE)->error, TERRANE_ERR_OK);
    ck_assert_uint_eq(rig_told(rig, TOLD_ERROR), 0);
    ck_assert_uint_eq(rig_messages(&rig->servers[1], MESSAGE_ENTER), 0 + 1); /* of entity 8 */
    rig_close(rig);
}
END_TEST

static uint64_t query_number(const struct rig_peer *peer)
{
    struct query query;
    ck_assert_int_eq(query_decode(rig_cursor(rig_last(peer, MESSAGE_QUERY)), &query), TERRANE_ERR_OK);
    return query.request;
}

static void answer_query(struct rig *rig, int server, uint64_t number, uint64_t id, enum terrane_error error)
{
    struct query_result result = {.request = number, .error = error, .part = 0, .parts = 1, .count = id > 0};
    query_result_begin(&rig->w, &result);
    if (id > 0) query_result_add(&rig->w, &(struct query_item){{id}, 1, {100, 100, 0}});
    rig_say(rig, &rig->servers[server]);
}

START_TEST(a_query_is_asked_anew_of_the_successor)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    uint64_t request;
    ck_assert_int_eq(gateway_query_rectangle(rig->g, 100, 100, 7000, 7000, -1, &request), TERRANE_ERR_OK);
    rig_run(rig, 3000);
    uint64_t first = query_number(&rig->servers[1]);
    answer_query(rig, 0, first, 0, TERRANE_ERR_OK);
    answer_query(rig, 3, first, 0, TERRANE_ERR_OK);
    promote(&s, 4);
    answer_query(rig, 1, first, 0, TERRANE_ERR_OK); /* for what it owned when it was asked */
    ck_assert_uint_eq(rig->told_count, 0);
    uint64_t second = query_number(&rig->servers[1]);
    ck_assert_uint_ne(first, second);
    answer_query(rig, 0, second, 0, TERRANE_ERR_OK);
    answer_query(rig, 3, second, 0, TERRANE_ERR_OK);
    answer_query(rig, 1, second, 0, TERRANE_ERR_NOT_READY);
    ck_assert_uint_eq(rig->told_count, 0);
    rig_run(rig, 13000);
    uint64_t third = query_number(&rig->servers[1]);
    ck_assert_uint_ne(third, second);
    answer_query(rig, 0, third, 0, TERRANE_ERR_OK);
    answer_query(rig, 3, third, 0, TERRANE_ERR_OK);
    answer_query(rig, 1, third, 9, TERRANE_ERR_OK);
    ck_assert_uint_eq(rig->told_count, 2);
    ck_assert_uint_eq(rig->told[0].b, 9);
    ck_assert_uint_eq(rig->told[1].a, request);
    ck_assert_int_eq(rig->told[1].error, TERRANE_ERR_OK);
    rig_close(rig);
}
END_TEST

START_TEST(a_find_does_not_wait_for_a_server_that_owns_nothing)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    uint64_t request;
    ck_assert_int_eq(gateway_find(rig->g, 9, &request), TERRANE_ERR_OK);
    rig_run(rig, 3000);
    promote(&s, 4);
    rig_looked_up(rig, 1, 2, TERRANE_ERR_NOT_READY, 0);
    for (int i = 0; i < 4; i += 3) rig_looked_up(rig, i, 0, TERRANE_ERR_ENTITY_UNKNOWN, 0);
    size_t before = rig_messages(&rig->servers[2], MESSAGE_LOOKUP);
    rig_run(rig, 13000);
    ck_assert_uint_eq(rig_messages(&rig->servers[2], MESSAGE_LOOKUP), before);
    rig_looked_up(rig, 1, 2, TERRANE_ERR_OK, 4);
    ck_assert_uint_eq(rig_last_told(rig, TOLD_DONE)->a, request);
    ck_assert_int_eq(rig_last_told(rig, TOLD_DONE)->error, TERRANE_ERR_OK);
    rig_close(rig);
}
END_TEST

SUITE_MAIN("gateway_failover", all_goes_to_the_successor_in_the_step_that_hears_of_it,
           what_a_promoting_successor_refuses_is_said_again_within_milliseconds,
           what_was_refused_goes_out_when_the_successor_speaks,
           an_owner_that_had_given_it_away_and_has_it_again_is_told_all_once_more,
           nothing_blinks_and_a_deposed_owner_is_not_believed, the_successors_word_counts_before_the_map_comes,
           a_standby_is_asked_before_it_is_needed, an_enter_whose_answer_was_lost_is_repeated_where_it_was_entered,
           a_successors_refusal_does_not_say_that_nobody_entered_it,
           a_repeated_enter_is_not_refused_for_a_ghost_of_the_first, an_enter_is_done_by_its_answer_and_not_by_a_view,
           late_answers_of_a_former_owner_do_no_harm, an_answer_of_a_deposed_owner_does_not_bind_the_entity_to_it,
           a_leave_that_the_successor_has_carried_out_before_is_well, a_query_is_asked_anew_of_the_successor,
           a_find_does_not_wait_for_a_server_that_owns_nothing)
