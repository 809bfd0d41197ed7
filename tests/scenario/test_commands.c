/* Stories of commands that meet an entity on its way, and of those that must not be taken. */
#include "tests/scenario/story.h"

#include <math.h>

static struct sim *two_halves(uint32_t walkers)
{
    struct plan plan;
    plan_quiet(&plan, 2, 1);
    plan.gateways = 2;
    return story_open(&plan, walkers);
}

/* A leaf of the other server than the one that owns leaf "0", next to "0". */
static const char *other_leaf(struct sim *sim)
{
    struct quadkey east, home;
    uint32_t epoch;
    ck_assert_int_eq(quadkey_parse("1", 1, &east), TERRANE_ERR_OK);
    ck_assert_int_eq(quadkey_parse("0", 1, &home), TERRANE_ERR_OK);
    for (uint32_t i = 0; i < 2; i++) {
        const struct cellserver *server = sim->members[story_server(sim, i)].server;
        if (cellserver_owns(server, home, &epoch)) return cellserver_owns(server, east, &epoch) ? "2" : "1";
    }
    ck_abort_msg("nobody owns leaf 0");
    return "";
}

static void slow_between_servers(struct sim *sim, uint64_t ms)
{
    network_slow(sim, story_server(sim, 0), story_server(sim, 1), false, ms * 1000);
    network_slow(sim, story_server(sim, 1), story_server(sim, 0), false, ms * 1000);
}

static enum terrane_error move_to(struct sim *sim, uint64_t id, double x, double y, double z)
{
    return gateway_move(sim_gateway(sim, 0), id, x, y, z, 0);
}

START_TEST(a_position_outside_is_refused_and_nobody_else_notices)
{
    struct sim *sim = two_halves(3);
    story_enter(sim, 0, "0", 0.5, 0.5, 1);
    story_enter(sim, 2, "0", 0.52, 0.5, 1);
    story_calm(sim);
    uint64_t unsees = sim->checker.unsees;
    ck_assert_int_eq(move_to(sim, 1, NAN, 0, 0), TERRANE_ERR_POSITION_INVALID);
    ck_assert_int_eq(move_to(sim, 1, 0, INFINITY, 0), TERRANE_ERR_POSITION_INVALID);
    ck_assert_int_eq(move_to(sim, 1, -0.5, 10, 0), TERRANE_ERR_POSITION_OUTSIDE);
    ck_assert_int_eq(move_to(sim, 1, 10, 1e300, 0), TERRANE_ERR_POSITION_OUTSIDE);
    ck_assert_int_eq(move_to(sim, 1, 10, 800, 0), TERRANE_ERR_POSITION_OUTSIDE);
    struct terrane_entity entity = {.id = 2, .x = 1e9};
    ck_assert_int_eq(gateway_enter(sim_gateway(sim, 1), &entity, NULL), TERRANE_ERR_POSITION_OUTSIDE);
    entity.x = 10;
    entity.radius = 1e9;
    ck_assert_int_eq(gateway_enter(sim_gateway(sim, 1), &entity, NULL), TERRANE_ERR_RADIUS_TOO_LARGE);
    story_run(sim, 500);
    ck_assert_uint_eq(sim->checker.unsees, unsees);
    story_close(sim);
}
END_TEST

START_TEST(commands_during_a_crossing_are_applied_once_and_in_order)
{
    struct sim *sim = two_halves(2);
    const char *other = other_leaf(sim);
    story_enter(sim, 0, "0", 0.5, 0.5, 1);
    story_enter(sim, 1, other, 0.5, 0.5, 3);
    story_calm(sim);
    slow_between_servers(sim, 200);
    for (int step = 0; step < 40; step++) {
        story_move(sim, 0, step % 8 < 4 ? other : "0", 0.5, 0.5 + 0.001 * step);
        story_state(sim, 0, step % 5 == 0);
        if (step % 3 == 0) story_radius(sim, 0, 1 + step % 2);
        story_run(sim, 40);
    }
    ck_assert_uint_gt(story_stats(sim).handoffs_in, 2);
    story_calm(sim); /* all are acknowledged, and the last of each is what holds */
    story_close(sim);
}
END_TEST

START_TEST(moves_that_reach_a_former_owner_are_sent_on)
{
    struct sim *sim = two_halves(2);
    const char *other = other_leaf(sim);
    story_enter(sim, 0, "0", 0.5, 0.5, 1);
    story_enter(sim, 1, other, 0.5, 0.5, 3);
    story_calm(sim);
    /* The new owner's word to the gateway is slow, so the gateway goes on telling the old one. */
    uint32_t next = story_server(sim, story_owner(sim, 1));
    network_slow(sim, next, story_gateway(sim, 0), false, 1000000);
    story_move(sim, 0, other, 0.5, 0.5);
    story_run(sim, 300);
    for (int step = 0; step < 10; step++) {
        story_move(sim, 0, other, 0.5 + 0.01 * step, 0.5);
        story_run(sim, 50);
    }
    ck_assert_uint_gt(story_stats(sim).forwarded, 0);
    story_close(sim);
}
END_TEST

START_TEST(a_leave_on_the_way_is_carried_out_by_the_new_owner_once)
{
    struct sim *sim = two_halves(2);
    const char *other = other_leaf(sim);
    for (uint64_t wait = 0; wait <= 500; wait += 50) { /* before, during and after the hand-off */
        story_enter(sim, 0, "0", 0.5, 0.5, 1);
        if (wait == 0) story_enter(sim, 1, other, 0.5, 0.5, 3);
        story_calm(sim);
        slow_between_servers(sim, 150);
        story_move(sim, 0, other, 0.51, 0.5);
        story_run(sim, wait + 10);
        story_leave(sim, 0);
        story_calm(sim);
        ck_assert(!story_sees(sim, 1, 0));
    }
    story_close(sim);
}
END_TEST

START_TEST(a_repeated_leave_is_an_error_and_no_harm)
{
    struct sim *sim = two_halves(2);
    story_enter(sim, 0, "0", 0.5, 0.5, 1);
    story_calm(sim);
    story_leave(sim, 0);
    ck_assert_int_eq(gateway_leave(sim_gateway(sim, 0), 1, NULL), TERRANE_ERR_ENTITY_UNKNOWN);
    story_calm(sim);
    ck_assert_int_eq(gateway_leave(sim_gateway(sim, 0), 1, NULL), TERRANE_ERR_ENTITY_UNKNOWN);
    ck_assert_int_eq(gateway_leave(sim_gateway(sim, 1), 1, NULL), TERRANE_ERR_ENTITY_UNKNOWN);
    story_enter(sim, 0, "0", 0.5, 0.5, 1);
    story_close(sim);
}
END_TEST

START_TEST(a_late_leave_does_not_end_the_next_life)
{
    struct sim *sim = two_halves(4);
    const char *other = other_leaf(sim);
    story_enter(sim, 1, "0", 0.5, 0.5, 3);
    story_enter(sim, 3, other, 0.5, 0.5, 3);
    for (int round = 0; round < 6; round++) {
        story_enter(sim, 0, "0", 0.5, 0.5, 1);
        story_run(sim, 600);
        slow_between_servers(sim, 250);
        story_move(sim, 0, other, 0.5, 0.5);
        story_run(sim, 100);
        story_leave(sim, 0);
        for (int wait = 0; wait < 100 && sim->crowd.walkers[0].presence != ABSENT; wait++) story_run(sim, 20);
        story_enter(sim, 0, round % 2 == 0 ? "0" : other, 0.5, 0.5, 1);
        story_run(sim, 1500);
        ck_assert_int_eq(sim->crowd.walkers[0].presence, PRESENT);
        ck_assert(story_sees(sim, round % 2 == 0 ? 1 : 3, 0));
        story_leave(sim, 0);
        story_calm(sim);
    }
    story_close(sim);
}
END_TEST

START_TEST(a_server_whose_links_all_break_again_and_again_serves_on)
{
    struct sim *sim = two_halves(6);
    const char *other = other_leaf(sim);
    for (uint32_t i = 0; i < 6; i++) story_enter(sim, i, i % 2 == 0 ? "0" : other, 0.5, 0.5, 2);
    story_calm(sim);
    sim->plan.down_max_us = 5000;
    for (int round = 0; round < 30; round++) {
        for (uint32_t m = 0; m < sim->member_count; m++) {
            network_break(sim, story_server(sim, 0), m);
            network_break(sim, m, story_server(sim, 0));
        }
        for (uint32_t i = 0; i < 6; i++) story_move(sim, i, round % 2 == 0 ? other : "0", 0.5, 0.4 + 0.02 * i);
        story_run(sim, 120);
    }
    story_close(sim);
}
END_TEST

START_TEST(a_coordinator_that_starts_anew_finds_its_members_and_gives_nothing_away)
{
    struct plan plan;
    plan_quiet(&plan, 3, 2);
    plan.storeless = false;
    struct sim *sim = story_open(&plan, 4);
    for (uint32_t i = 0; i < 4; i++) story_enter(sim, i, "00", 0.2 * i, 0.5, 2);
    story_calm(sim);
    /* Servers know of a new map before the gateway is in it; what they have with the gateway goes on. */
    network_slow(sim, story_gateway(sim, 0), COORDINATOR, false, 1500000);
    sim_restart_coordinator(sim, 300000);
    for (int step = 0; step < 60; step++) { /* the data plane goes on */
        for (uint32_t i = 0; i < 4; i++) story_move(sim, i, step % 2 == 0 ? "33" : "00", 0.2 * i, 0.5);
        story_run(sim, 50);
    }
    ck_assert_uint_gt(story_stats(sim).handoffs_in, 0);
    story_run(sim, 2000);
    struct coordinator_stats stats;
    coordinator_stats(sim->members[COORDINATOR].coordinator, &stats);
    ck_assert_uint_eq(stats.servers, 3);
    ck_assert_uint_eq(stats.gateways, 1);
    ck_assert_uint_eq(stats.unowned, 0);
    story_close(sim);
}
END_TEST

SUITE_MAIN("commands", a_position_outside_is_refused_and_nobody_else_notices,
           commands_during_a_crossing_are_applied_once_and_in_order, moves_that_reach_a_former_owner_are_sent_on,
           a_leave_on_the_way_is_carried_out_by_the_new_owner_once, a_repeated_leave_is_an_error_and_no_harm,
           a_late_leave_does_not_end_the_next_life, a_server_whose_links_all_break_again_and_again_serves_on,
           a_coordinator_that_starts_anew_finds_its_members_and_gives_nothing_away)
