/* Own entities whose servers died together: who is asked, when they are entered again, when they are lost. */
#include "gateway_rig.h"

/* Entity 7 stands in quadrant 2 (server 2) and sees 9; entity 8 in quadrant 1. */
struct scene {
    struct rig rig;
    struct leaf_owner leaves[4];
    uint64_t version;
};

static void open_scene_with(struct scene *s, const struct gateway_options *options)
{
    const uint64_t nine = 9;
    rig_open_with(&s->rig, options);
    rig_welcome(&s->rig);
    rig_quadrants(s->leaves);
    rig_map(&s->rig, s->leaves, 4, 4);
    s->version = rig_enter(&s->rig, 7, 100, 7000, 50, 2);
    rig_enter(&s->rig, 8, 7000, 100, 50, 1);
    rig_run(&s->rig, 10000);
    rig_snapshot(&s->rig, 2, 2, 1, 5, &nine, 1, 100, 7010, 3);
    rig_snapshot(&s->rig, 1, 1, 1, 5, NULL, 0, 1, 1, 3);
    rig_views(&s->rig, 2, 7, s->version, VIEW_CHANGES, NULL, 0, &nine, 1);
    rig_run(&s->rig, 20000);
    ck_assert_uint_eq(s->rig.seen_count, 1);
    s->rig.told_count = 0;
}

static void open_scene(struct scene *s)
{
    struct gateway_options options = rig_options(&s->rig);
    open_scene_with(s, &options);
}

/* Server 2 and its standby are gone (and server 3 with them); server 1 has the leaf and nothing of what was in it. */
static void both_die(struct scene *s)
{
    rig_give(&s->leaves[2], SERVER(1));
    rig_give(&s->leaves[3], SERVER(0));
    rig_map(&s->rig, s->leaves, 4, 2);
}

static void nobody_knows(struct scene *s, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        size_t before = rig_messages(&s->rig.servers[0], MESSAGE_LOOKUP);
        rig_run(&s->rig, 600000);
        ck_assert_uint_eq(rig_messages(&s->rig.servers[0], MESSAGE_LOOKUP), before + 1);
        for (int i = 0; i < 2; i++) rig_looked_up(&s->rig, i, 0, TERRANE_ERR_ENTITY_UNKNOWN, 0);
    }
    rig_run(&s->rig, 3000);
}

static struct enter last_enter(struct rig *rig, int server)
{
    struct enter enter;
    ck_assert_int_eq(enter_decode(rig_cursor(rig_last(&rig->servers[server], MESSAGE_ENTER)), &enter), TERRANE_ERR_OK);
    return enter;
}

static struct leave last_leave(struct rig *rig, int server)
{
    struct leave leave;
    ck_assert_int_eq(leave_decode(rig_cursor(rig_last(&rig->servers[server], MESSAGE_LEAVE)), &leave), TERRANE_ERR_OK);
    return leave;
}

START_TEST(an_entity_whose_servers_died_together_is_entered_again_as_it_was)
{
    struct scene s = {0};
    const uint64_t nine = 9, ten = 10;
    uint64_t set;
    open_scene(&s);
    struct rig *rig = &s.rig;
    ck_assert_int_eq(gateway_set_state(rig->g, 7, "later", 5, &set), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_set_radius(rig->g, 7, 60, NULL), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_move(rig->g, 7, 105, 7000, 0, 0), TERRANE_ERR_OK);
    rig_run(rig, 3000);
    both_die(&s);
    size_t enters = rig_messages(&rig->servers[1], MESSAGE_ENTER);
    nobody_knows(&s, 1);
    ck_assert_uint_eq(rig_messages(&rig->servers[1], MESSAGE_ENTER), enters);
    nobody_knows(&s, 1);
    ck_assert_uint_eq(rig_messages(&rig->servers[1], MESSAGE_ENTER), enters + 1);
    struct enter enter = last_enter(rig, 1);
    double x, y, z;
    world_coordinates(&rig->world, enter.record.position, &x, &y, &z);
    ck_assert_double_eq_tol(x, 105, 0.01);
    ck_assert_uint_eq(enter.record.state_size, 5);
    ck_assert_mem_eq(enter.record.state, "later", 5);
    ck_assert_uint_eq(enter.record.radius, world_length(&rig->world, 60));
    ck_assert_uint_gt(enter.record.version, s.version + 1000);
    /* Nothing is told before it is in the world again; its view stands. */
    ck_assert_uint_eq(rig->told_count, 0);
    ck_assert_uint_eq(rig->seen_count, 1);
    rig_result(rig, 1, enter.request, 7, TERRANE_ERR_OK, enter.record.version);
    ck_assert_uint_eq(rig->told_count, 1);
    ck_assert_int_eq(rig->told[0].kind, TOLD_ERROR);
    ck_assert_uint_eq(rig->told[0].a, 7);
    ck_assert_int_eq(rig->told[0].error, TERRANE_ERR_ENTITY_REENTERED);
    rig_run(rig, 3000);
    struct set_state state;
    ck_assert_int_eq(set_state_decode(rig_cursor(rig_last(&rig->servers[1], MESSAGE_SET_STATE)), &state),
                     TERRANE_ERR_OK);
    ck_assert_uint_eq(state.request, set);
    ck_assert_uint_lt(state.sequence, enter.sequence); /* the ENTER has brought it */
    rig_result(rig, 1, set, 7, TERRANE_ERR_OK, 0);
    ck_assert_uint_eq(rig_last_told(rig, TOLD_DONE)->a, set);
    /* The new life's whole view is compared with what has been told. */
    const uint64_t both[] = {9, 10};
    rig_snapshot(rig, 1, 2, 2, 1, both, 2, 100, 7010, 4);
    rig_views(rig, 1, 7, enter.record.version, VIEW_WHOLE_LAST, NULL, 0, &ten, 1);
    ck_assert_uint_eq(rig_told(rig, TOLD_UNSEE), 1);
    ck_assert_uint_eq(rig_last_told(rig, TOLD_UNSEE)->b, nine);
    ck_assert_uint_eq(rig_told(rig, TOLD_SEE), 1);
    ck_assert_uint_eq(rig_last_told(rig, TOLD_SEE)->b, ten);
    rig_close(rig);
}
END_TEST

START_TEST(nobody_is_asked_while_the_leaf_has_no_owner)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    rig_give(&s.leaves[2], NODE_NONE);
    rig_give(&s.leaves[3], SERVER(0));
    rig_map(rig, s.leaves, 4, 2);
    rig_run(rig, 9000000);
    ck_assert_uint_eq(rig_messages(&rig->servers[0], MESSAGE_LOOKUP), 0);
    ck_assert_uint_eq(rig->told_count, 0);
    ck_assert(!gateway_calm(rig->g));
    ck_assert_int_eq(gateway_move(rig->g, 7, 101, 7000, 0, 0), TERRANE_ERR_OK);
    both_die(&s);
    nobody_knows(&s, 2);
    ck_assert_uint_eq(last_enter(rig, 1).record.id.v, 7);
    rig_close(rig);
}
END_TEST

START_TEST(whoever_can_not_say_yet_is_asked_until_it_can)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    both_die(&s);
    nobody_knows(&s, 1);
    for (int i = 0; i < 40; i++) {
        size_t before = rig_messages(&rig->servers[1], MESSAGE_LOOKUP);
        rig_run(rig, 250000);
        ck_assert_uint_eq(rig_messages(&rig->servers[1], MESSAGE_LOOKUP), before + 1);
        rig_looked_up(rig, 0, 0, TERRANE_ERR_ENTITY_UNKNOWN, 0);
        rig_looked_up(rig, 1, 2, TERRANE_ERR_NOT_READY, 0);
    }
    ck_assert_uint_eq(rig->told_count, 0);
    /* It was a promotion that took its time. */
    rig_owner_of(rig, 1, 2, 7, s.version + 1);
    rig_views(rig, 1, 7, s.version + 1, VIEW_WHOLE_LAST, NULL, 0, NULL, 0);
    rig_run(rig, 3000000);
    ck_assert_uint_eq(rig_told(rig, TOLD_ERROR), 0);
    ck_assert_uint_eq(last_enter(rig, 1).record.id.v, 8);
    rig_close(rig);
}
END_TEST

START_TEST(an_entity_that_was_handed_over_before_is_found_where_it_is)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    uint64_t set;
    ck_assert_int_eq(gateway_set_state(rig->g, 7, "s1", 2, &set), TERRANE_ERR_OK);
    both_die(&s);
    rig_run(rig, 600000);
    rig_looked_up(rig, 1, 0, TERRANE_ERR_ENTITY_UNKNOWN, 0);
    rig_looked_up(rig, 0, 0, TERRANE_ERR_OK, s.version + 1);
    rig_run(rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig->servers[0], MESSAGE_SET_STATE), 1);
    rig_run(rig, 3000000);
    ck_assert_uint_eq(rig->told_count, 0);
    ck_assert_uint_eq(rig_messages(&rig->servers[0], MESSAGE_LOOKUP), 1);
    rig_close(rig);
}
END_TEST

/* The last owner had told a version that died with it. */
START_TEST(what_is_left_counts_when_a_newer_version_died)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    rig_owner_of(rig, 2, 2, 7, s.version + 5);
    both_die(&s);
    rig_owner_of(rig, 1, 2, 7, s.version + 1);
    for (int round = 0; round < 2; round++) {
        rig_run(rig, 600000);
        rig_looked_up(rig, 0, 0, TERRANE_ERR_ENTITY_UNKNOWN, 0);
        rig_looked_up(rig, 1, 2, TERRANE_ERR_OK, s.version + 1);
    }
    ck_assert_uint_eq(rig->told_count, 0);
    rig_views(rig, 1, 7, s.version + 1, VIEW_WHOLE_LAST, NULL, 0, NULL, 0);
    ck_assert_uint_eq(rig_told(rig, TOLD_UNSEE), 1);
    rig_run(rig, 3000000);
    ck_assert_uint_eq(rig_told(rig, TOLD_ERROR), 0);
    rig_close(rig);
}
END_TEST

START_TEST(re_entry_can_be_switched_off)
{
    struct scene s = {0};
    struct gateway_options options = rig_options(&s.rig);
    uint64_t set;
    options.no_reenter = true;
    open_scene_with(&s, &options);
    struct rig *rig = &s.rig;
    ck_assert_int_eq(gateway_set_state(rig->g, 7, "s1", 2, &set), TERRANE_ERR_OK);
    both_die(&s);
    nobody_knows(&s, 2);
    ck_assert_uint_eq(rig->told_count, 3);
    ck_assert_uint_eq(rig_told(rig, TOLD_UNSEE), 1);
    ck_assert_uint_eq(rig_last_told(rig, TOLD_DONE)->a, set);
    ck_assert_int_eq(rig_last_told(rig, TOLD_DONE)->error, TERRANE_ERR_ENTITY_LOST);
    ck_assert_int_eq(rig->told[2].error, TERRANE_ERR_ENTITY_LOST);
    ck_assert_int_eq(gateway_move(rig->g, 8, 7001, 100, 0, 0), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_move(rig->g, 7, 101, 7000, 0, 0), TERRANE_ERR_ENTITY_UNKNOWN);
    rig_close(rig);
}
END_TEST

START_TEST(what_is_refused_for_good_is_lost)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    both_die(&s);
    nobody_knows(&s, 2);
    uint64_t request = last_enter(rig, 1).request;
    rig_result(rig, 1, request, 7, TERRANE_ERR_NOT_READY, 0); /* not for good */
    rig_run(rig, 13000);
    rig_result(rig, 1, request, 7, TERRANE_ERR_QUEUE_FULL, 0);
    rig_run(rig, 110000);
    ck_assert_uint_eq(rig_messages(&rig->servers[1], MESSAGE_ENTER), 4);
    ck_assert_uint_eq(rig->told_count, 0);
    rig_result(rig, 1, request, 7, TERRANE_ERR_LIMIT, 0);
    ck_assert_uint_eq(rig_told(rig, TOLD_ERROR), 1);
    ck_assert_int_eq(rig_last_told(rig, TOLD_ERROR)->error, TERRANE_ERR_ENTITY_LOST);
    ck_assert_uint_eq(rig_told(rig, TOLD_DONE), 0);
    ck_assert_uint_eq(rig->seen_count, 0);
    rig_close(rig);
}
END_TEST

START_TEST(an_old_owner_that_turns_up_is_made_to_forget_and_the_new_life_stays)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    both_die(&s);
    nobody_knows(&s, 2);
    struct enter enter = last_enter(rig, 1);
    rig_result(rig, 1, enter.request, 7, TERRANE_ERR_OK, enter.record.version);
    rig->told_count = 0;
    rig_owner(rig, 0, 7, s.version + 2);
    rig_views(rig, 0, 7, s.version + 2, VIEW_WHOLE_LAST, NULL, 0, NULL, 0);
    rig_run(rig, 3000);
    struct leave leave = last_leave(rig, 0);
    ck_assert_uint_eq(leave.id.v, 7);
    /* Whoever has the new life, too, takes that LEAVE for an older life's. */
    ck_assert_uint_lt(leave.sequence, enter.sequence);
    ck_assert_uint_eq(rig->told_count, 0);
    ck_assert_uint_eq(rig_messages(&rig->servers[1], MESSAGE_LEAVE), 0);
    rig_close(rig);
}
END_TEST

START_TEST(an_old_life_where_it_is_entered_again_gives_way)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    both_die(&s);
    nobody_knows(&s, 2);
    struct enter enter = last_enter(rig, 1);
    rig_result(rig, 1, enter.request, 7, TERRANE_ERR_ENTITY_EXISTS, s.version + 1);
    rig_run(rig, 13000);
    ck_assert_uint_lt(last_leave(rig, 1).sequence, enter.sequence);
    ck_assert_uint_eq(last_enter(rig, 1).request, enter.request);
    ck_assert_uint_eq(rig_messages(&rig->servers[1], MESSAGE_ENTER), 3);
    rig_result(rig, 1, enter.request, 7, TERRANE_ERR_OK, enter.record.version);
    ck_assert_int_eq(rig_last_told(rig, TOLD_ERROR)->error, TERRANE_ERR_ENTITY_REENTERED);
    rig_close(rig);
}
END_TEST

START_TEST(who_leaves_is_not_entered_again_and_its_leave_is_well)
{
    struct scene s = {0};
    uint64_t leave;
    open_scene(&s);
    struct rig *rig = &s.rig;
    ck_assert_int_eq(gateway_leave(rig->g, 7, &leave), TERRANE_ERR_OK);
    both_die(&s);
    nobody_knows(&s, 2);
    ck_assert_uint_eq(rig_told(rig, TOLD_DONE), 1);
    ck_assert_uint_eq(rig_last_told(rig, TOLD_DONE)->a, leave);
    ck_assert_int_eq(rig_last_told(rig, TOLD_DONE)->error, TERRANE_ERR_OK);
    ck_assert_uint_eq(rig_told(rig, TOLD_ERROR), 0);
    ck_assert_uint_eq(last_enter(rig, 1).record.id.v, 8);
    rig_close(rig);
}
END_TEST

START_TEST(what_who_leaves_has_asked_for_before_was_of_an_entity_that_is_unknown_now)
{
    struct scene s = {0};
    uint64_t set, leave;
    open_scene(&s);
    struct rig *rig = &s.rig;
    ck_assert_int_eq(gateway_set_state(rig->g, 7, "s1", 2, &set), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_leave(rig->g, 7, &leave), TERRANE_ERR_OK);
    both_die(&s);
    nobody_knows(&s, 2);
    ck_assert_uint_eq(rig_told(rig, TOLD_DONE), 2);
    for (size_t i = 0; i < rig->told_count; i++) {
        const struct told *told = &rig->told[i];
        if (told->kind != TOLD_DONE) continue;
        ck_assert(told->a == set || told->a == leave);
        ck_assert_int_eq(told->error, told->a == leave ? TERRANE_ERR_OK : TERRANE_ERR_ENTITY_UNKNOWN);
    }
    ck_assert_uint_eq(rig_told(rig, TOLD_ERROR), 0);
    rig_close(rig);
}
END_TEST

START_TEST(who_leaves_while_it_is_entered_again_leaves_after_it)
{
    struct scene s = {0};
    uint64_t leave;
    open_scene(&s);
    struct rig *rig = &s.rig;
    both_die(&s);
    nobody_knows(&s, 2);
    struct enter enter = last_enter(rig, 1);
    ck_assert_int_eq(gateway_leave(rig->g, 7, &leave), TERRANE_ERR_OK);
    rig_run(rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig->servers[1], MESSAGE_LEAVE), 0);
    ck_assert_uint_eq(rig->seen_count, 0);
    rig_result(rig, 1, enter.request, 7, TERRANE_ERR_OK, enter.record.version);
    rig_run(rig, 3000);
    ck_assert_uint_gt(last_leave(rig, 1).sequence, enter.sequence);
    rig_result(rig, 1, leave, 7, TERRANE_ERR_OK, 0);
    ck_assert_int_eq(rig_last_told(rig, TOLD_DONE)->error, TERRANE_ERR_OK);
    rig_close(rig);
}
END_TEST

START_TEST(a_silent_server_is_waited_for_but_not_for_ever)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    both_die(&s);
    rig->servers[0].deaf = true;
    size_t enters = rig_messages(&rig->servers[1], MESSAGE_ENTER), asked = 0;
    for (int i = 0; i < 42; i++) {
        rig_run(rig, 100000);
        size_t now = rig_messages(&rig->servers[1], MESSAGE_LOOKUP);
        if (now > asked) rig_looked_up(rig, 1, 0, TERRANE_ERR_ENTITY_UNKNOWN, 0);
        asked = now;
    }
    ck_assert_uint_eq(rig_messages(&rig->servers[1], MESSAGE_ENTER), enters);
    for (int i = 0; i < 60; i++) {
        rig_run(rig, 100000);
        size_t now = rig_messages(&rig->servers[1], MESSAGE_LOOKUP);
        if (now > asked) rig_looked_up(rig, 1, 0, TERRANE_ERR_ENTITY_UNKNOWN, 0);
        asked = now;
    }
    ck_assert_uint_eq(rig_messages(&rig->servers[1], MESSAGE_ENTER), enters + 1);
    rig_close(rig);
}
END_TEST

START_TEST(an_entity_that_its_living_owner_does_not_know_is_entered_again)
{
    struct scene s = {0};
    uint64_t set;
    open_scene(&s);
    struct rig *rig = &s.rig;
    ck_assert_int_eq(gateway_set_state(rig->g, 7, "s1", 2, &set), TERRANE_ERR_OK);
    rig_run(rig, 3000);
    rig_result(rig, 2, set, 7, TERRANE_ERR_ENTITY_UNKNOWN, 0);
    ck_assert_uint_eq(rig->told_count, 0);
    for (int round = 0; round < 2; round++) {
        rig_run(rig, 220000);
        for (int i = 0; i < 4; i++) rig_looked_up(rig, i, 0, TERRANE_ERR_ENTITY_UNKNOWN, 0);
    }
    rig_run(rig, 3000);
    struct enter enter = last_enter(rig, 2);
    ck_assert_mem_eq(enter.record.state, "s1", 2);
    rig_result(rig, 2, enter.request, 7, TERRANE_ERR_OK, enter.record.version);
    rig_run(rig, 3000);
    rig_result(rig, 2, set, 7, TERRANE_ERR_OK, 0);
    ck_assert_int_eq(rig_last_told(rig, TOLD_ERROR)->error, TERRANE_ERR_ENTITY_REENTERED);
    ck_assert_int_eq(rig_last_told(rig, TOLD_DONE)->error, TERRANE_ERR_OK);
    rig_close(rig);
}
END_TEST

START_TEST(a_leaf_that_changed_its_server_while_both_live_loses_nobody)
{
    struct scene s = {0};
    open_scene(&s);
    struct rig *rig = &s.rig;
    rig_give(&s.leaves[2], SERVER(1));
    rig_map(rig, s.leaves, 4, 4);
    ck_assert(!gateway_calm(rig->g));
    rig_run(rig, 5000000); /* nobody answers, but the former owner was asked for nothing */
    ck_assert_uint_eq(rig->told_count, 0);
    ck_assert_uint_eq(rig_messages(&rig->servers[2], MESSAGE_LOOKUP), 0);
    ck_assert_int_eq(gateway_move(rig->g, 7, 101, 7000, 0, 0), TERRANE_ERR_OK);
    rig_close(rig);
}
END_TEST

START_TEST(thousands_are_sought_in_portions)
{
    struct rig rig = {0};
    struct leaf_owner leaves[4];
    rig_open_ready(&rig);
    rig_quadrants(leaves);
    for (uint64_t i = 1; i <= 2000; i++) {
        struct terrane_entity entity = {.id = i, .x = 100, .y = 7000};
        ck_assert_int_eq(gateway_enter(rig.g, &entity, NULL), TERRANE_ERR_OK);
    }
    rig_run(&rig, 3000);
    for (size_t i = 0; i < rig.servers[2].count; i++) {
        struct enter entered;
        if (enter_decode(rig_cursor(&rig.servers[2].messages[i]), &entered) != TERRANE_ERR_OK) continue;
        struct result result = {.request = entered.request, .id = entered.record.id, .version = entered.record.version};
        result_encode(&rig.w, &result);
        ck_assert_int_eq(session_push(rig.servers[2].session, rig.w.data, rig.w.size), TERRANE_ERR_OK);
        writer_clear(&rig.w);
    }
    rig_pump(&rig, &rig.servers[2]);
    rig_give(&leaves[2], SERVER(1));
    rig_give(&leaves[3], SERVER(0));
    rig_map(&rig, leaves, 4, 2);
    rig_run(&rig, 503000);
    size_t first = rig_messages(&rig.servers[1], MESSAGE_LOOKUP);
    ck_assert_uint_gt(first, 0);
    ck_assert_uint_le(first, 512);
    rig_run(&rig, 200000);
    ck_assert_uint_eq(rig_messages(&rig.servers[1], MESSAGE_LOOKUP), 2000);
    rig_close(&rig);
}
END_TEST

SUITE_MAIN("gateway_seek", an_entity_whose_servers_died_together_is_entered_again_as_it_was,
           nobody_is_asked_while_the_leaf_has_no_owner, whoever_can_not_say_yet_is_asked_until_it_can,
           an_entity_that_was_handed_over_before_is_found_where_it_is, what_is_left_counts_when_a_newer_version_died,
           re_entry_can_be_switched_off, what_is_refused_for_good_is_lost,
           an_old_owner_that_turns_up_is_made_to_forget_and_the_new_life_stays,
           an_old_life_where_it_is_entered_again_gives_way, who_leaves_is_not_entered_again_and_its_leave_is_well,
           what_who_leaves_has_asked_for_before_was_of_an_entity_that_is_unknown_now,
           who_leaves_while_it_is_entered_again_leaves_after_it, a_silent_server_is_waited_for_but_not_for_ever,
           an_entity_that_its_living_owner_does_not_know_is_entered_again,
           a_leaf_that_changed_its_server_while_both_live_loses_nobody, thousands_are_sought_in_portions)
