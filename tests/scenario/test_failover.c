/* Stories of servers that die, sleep, or are emptied: the world goes on elsewhere, and nobody blinks. */
#include "tests/scenario/story.h"

/* Three servers, 16 leaves; walkers 0 to 9 stand around the corner of leaves 00 and 01, all in sight of each other. */
static struct sim *a_crowd(uint32_t walkers)
{
    struct plan plan;
    plan_quiet(&plan, 3, 2);
    plan.faults = FAULTS_DEATHS; /* so the checker counts what standbys keep */
    plan.no_standbys = false;
    struct sim *sim = story_open(&plan, walkers);
    for (uint32_t i = 0; i < walkers; i++) {
        story_enter(sim, i, i % 2 == 0 ? "00" : "01", i % 2 == 0 ? 0.8 : 0.2, 0.3 + 0.04 * i, 3);
    }
    story_calm(sim);
    for (uint32_t i = 0; i < walkers; i++) story_state(sim, i, i % 3 == 0);
    story_calm(sim);
    return sim;
}

static struct cellserver_stats stats_of(const struct sim *sim, uint32_t member)
{
    struct cellserver_stats stats;
    cellserver_stats(sim->members[member].server, &stats);
    return stats;
}

START_TEST(when_a_server_dies_nobody_blinks_and_states_are_kept)
{
    struct sim *sim = a_crowd(10);
    uint64_t unsees = sim->checker.unsees, sees = sim->checker.sees;
    uint64_t version = sim->checker.owned[0].entity.record.version;
    uint32_t dead = story_owner(sim, 0);
    version = sim->checker.owned[0].entity.record.version;
    sim_kill(sim, story_server(sim, dead));
    story_run(sim, 1000);
    story_owner(sim, 0);
    ck_assert_uint_gt(sim->checker.owned[0].entity.record.version, version);
    story_calm(sim); /* places and states are compared here */
    ck_assert_uint_eq(sim->checker.unsees, unsees);
    ck_assert_uint_eq(sim->checker.sees, sees);
    story_close(sim);
}
END_TEST

START_TEST(commands_during_a_fail_over_are_done_once)
{
    struct sim *sim = a_crowd(10);
    for (uint32_t round = 0; round < 4; round++) {
        sim_kill(sim, story_server(sim, story_owner(sim, 0)));
        for (uint32_t i = 0; i < 10; i++) {
            story_state(sim, i, round % 2 == 0);
            story_move(sim, i, i % 2 == 0 ? "00" : "01", i % 2 == 0 ? 0.7 : 0.3, 0.3 + 0.04 * i + 0.01 * round);
            story_run(sim, 37);
        }
        story_run(sim, 3000);
        story_calm(sim);
    }
    story_close(sim);
}
END_TEST

START_TEST(who_crosses_while_its_server_dies_is_there_once)
{
    struct sim *sim = a_crowd(6);
    for (uint64_t wait = 0; wait < 240; wait += 30) {
        story_move(sim, 0, "00", 0.9, 0.5);
        story_run(sim, 600);
        story_calm(sim);
        story_move(sim, 0, "33", 0.5, 0.5); /* another server's */
        story_run(sim, wait);
        sim_kill(sim, story_server(sim, story_owner(sim, 1)));
        story_run(sim, 3000);
        story_calm(sim);
    }
    story_close(sim);
}
END_TEST

START_TEST(who_crosses_while_its_next_server_dies_is_there_once)
{
    struct sim *sim = a_crowd(6);
    for (uint64_t wait = 0; wait < 240; wait += 30) {
        story_move(sim, 0, "00", 0.9, 0.5);
        story_move(sim, 5, "33", 0.5, 0.5);
        story_run(sim, 600);
        story_calm(sim);
        uint32_t next = story_owner(sim, 5);
        story_move(sim, 0, "33", 0.5, 0.45);
        story_run(sim, wait);
        sim_kill(sim, story_server(sim, next));
        story_run(sim, 3000);
        story_calm(sim);
    }
    story_close(sim);
}
END_TEST

START_TEST(a_server_that_sleeps_longer_than_its_lease_finds_its_leaves_served)
{
    struct sim *sim = a_crowd(10);
    uint64_t unsees = sim->checker.unsees;
    uint32_t sleeper = story_owner(sim, 0), member = story_server(sim, sleeper);
    sim->members[member].busy_until_us = sim->now_us + 1500000;
    story_run(sim, 1200);
    ck_assert_uint_ne(story_owner(sim, 0), sleeper);
    story_run(sim, 3000); /* it is awake: the checker sees to it that it answers for nothing that is another's */
    ck_assert_uint_eq(stats_of(sim, member).owned, 0);
    story_calm(sim);
    ck_assert_uint_eq(sim->checker.unsees, unsees);
    story_close(sim);
}
END_TEST

START_TEST(entities_of_a_dead_gateway_leave_wherever_they_are_by_then)
{
    struct plan plan;
    plan_quiet(&plan, 3, 2);
    plan.faults = FAULTS_DEATHS; /* so the checker counts what standbys keep */
    plan.no_standbys = false;
    plan.gateways = 2;
    struct sim *sim = story_open(&plan, 4);
    for (uint32_t i = 0; i < 4; i++) story_enter(sim, i, "00", 0.5, 0.5 + 0.05 * i, 3);
    story_calm(sim);
    ck_assert(story_sees(sim, 0, 1));
    sim_kill(sim, story_gateway(sim, 1)); /* walkers 1 and 3 */
    story_run(sim, 1000);
    sim_kill(sim, story_server(sim, story_owner(sim, 0)));
    story_run(sim, 25000);
    ck_assert(!story_sees(sim, 0, 1) && story_sees(sim, 0, 2));
    story_close(sim);
}
END_TEST

SUITE_MAIN("failover", when_a_server_dies_nobody_blinks_and_states_are_kept, commands_during_a_fail_over_are_done_once,
           who_crosses_while_its_server_dies_is_there_once, who_crosses_while_its_next_server_dies_is_there_once,
           a_server_that_sleeps_longer_than_its_lease_finds_its_leaves_served,
           entities_of_a_dead_gateway_leave_wherever_they_are_by_then)
