/* Stories of entities that go from one server to another. */
#include "tests/scenario/story.h"

/* Four servers, a quarter of the world each: "0" SW, "1" SE, "2" NW, "3" NE; eight cells a side. */
static struct sim *four_quarters(uint32_t walkers, uint32_t gateways)
{
    struct plan plan;
    plan_quiet(&plan, 4, 1);
    plan.gateways = gateways;
    return story_open(&plan, walkers);
}

START_TEST(whoever_enters_a_region_nobody_watched_sees_all_in_it_and_is_seen)
{
    struct sim *sim = four_quarters(3, 2);
    story_enter(sim, 0, "3", 0.9, 0.9, 1);
    story_enter(sim, 1, "0", 0.1, 0.1, 1); /* the other gateway: it watches nothing near leaf 3 */
    story_calm(sim);
    story_move(sim, 1, "3", 0.9, 0.88);
    story_run(sim, 600);
    ck_assert(story_sees(sim, 1, 0) && story_sees(sim, 0, 1));
    story_close(sim);
}
END_TEST

START_TEST(a_late_remove_of_the_old_owner_does_not_take_the_entity_away)
{
    struct sim *sim = four_quarters(4, 2);
    story_enter(sim, 0, "0", 0.9, 0.9, 3);
    story_enter(sim, 1, "0", 0.95, 0.9, 0);
    story_calm(sim);
    uint32_t old = story_owner(sim, 1);
    network_slow(sim, story_server(sim, old), story_gateway(sim, 0), true, 900000);
    uint64_t unsees = sim->checker.unsees;
    story_move(sim, 1, "1", 0.05, 0.9);
    story_run(sim, 500);
    ck_assert_uint_ne(story_owner(sim, 1), old);
    story_run(sim, 3000);
    ck_assert(story_sees(sim, 0, 1));
    ck_assert_uint_eq(sim->checker.unsees, unsees);
    story_close(sim);
}
END_TEST

START_TEST(crossings_keep_states_of_every_size)
{
    struct sim *sim = four_quarters(40, 1);
    for (uint32_t i = 0; i < 40; i++) story_enter(sim, i, "0", 0.95, 0.02 * i, 1);
    for (uint32_t i = 0; i < 40; i++) story_state(sim, i, i % 2 == 0);
    story_calm(sim);
    static const char *const leaves[] = {"1", "3", "2", "0"};
    for (int round = 0; round < 4; round++) {
        for (uint32_t i = 0; i < 40; i++) story_move(sim, i, leaves[round], 0.05 + 0.02 * i, 0.5);
        story_run(sim, 400);
    }
    story_calm(sim);
    ck_assert_uint_ge(story_stats(sim).handoffs_in, 160);
    story_close(sim);
}
END_TEST

START_TEST(views_queries_and_events_reach_across_the_seam)
{
    struct sim *sim = four_quarters(5, 2);
    static const char *const leaves[] = {"0", "1", "2", "3"};
    for (uint32_t i = 0; i < 4; i++) story_enter(sim, i, leaves[i], i % 2 == 0 ? 0.97 : 0.03, i < 2 ? 0.97 : 0.03, 2);
    story_calm(sim);
    for (uint32_t o = 0; o < 4; o++)
        for (uint32_t s = 0; s < 4; s++) ck_assert(o == s || story_sees(sim, o, s));
    sim->crowd.still = true; /* from here on answers must be exact */
    struct position corner = story_place(sim, "3", 0, 0);
    uint64_t told = sim->checker.events;
    crowd_query(sim, 0, corner, 1024, false);
    crowd_query(sim, 1, corner, 1024, true);
    crowd_emit(sim, 0, corner, 0, 1024);
    for (uint32_t g = 0; g < 2; g++) sim_rearm(sim, story_gateway(sim, g));
    story_run(sim, 1000);
    ck_assert_uint_eq(sim->checker.request_count, 0);
    ck_assert_uint_eq(sim->checker.events, told + 4);
    story_close(sim);
}
END_TEST

START_TEST(a_crossing_that_the_network_interrupts_is_completed_and_nobody_blinks)
{
    struct sim *sim = four_quarters(3, 1);
    story_enter(sim, 0, "0", 0.9, 0.5, 3);
    story_enter(sim, 1, "0", 0.97, 0.5, 1);
    story_enter(sim, 2, "1", 0.05, 0.5, 3);
    story_calm(sim);
    uint32_t from = story_server(sim, story_owner(sim, 1)), to = story_server(sim, story_owner(sim, 2));
    uint64_t unsees = sim->checker.unsees;
    network_slow(sim, from, to, false, 200000);
    sim->plan.down_max_us = 800000;
    story_move(sim, 1, "1", 0.03, 0.5);
    for (int i = 0; i < 4; i++) { /* the offer is under way, again and again */
        story_run(sim, 100);
        network_break(sim, from, to);
        network_break(sim, to, from);
    }
    ck_assert_uint_eq(story_owner(sim, 1), from - sim->server_first);
    ck_assert(story_sees(sim, 0, 1) && story_sees(sim, 2, 1));
    story_run(sim, 4000);
    ck_assert_uint_eq(story_owner(sim, 1), to - sim->server_first);
    ck_assert_uint_eq(sim->checker.unsees, unsees);
    story_close(sim);
}
END_TEST

START_TEST(pacing_over_a_border_faster_than_the_handshake_keeps_one_owner)
{
    struct sim *sim = four_quarters(20, 2);
    for (uint32_t i = 0; i < 20; i++) story_enter(sim, i, "0", 0.98, 0.05 * i, 1);
    story_calm(sim);
    for (uint32_t a = 0; a < 4; a++)
        for (uint32_t b = 0; b < 4; b++)
            if (a != b) network_slow(sim, story_server(sim, a), story_server(sim, b), false, 120000);
    for (uint32_t step = 0; step < 60; step++) {
        for (uint32_t i = 0; i < 20; i++)
            story_move(sim, i, (step + i) % 2 == 0 ? "1" : "0", (step + i) % 2 == 0 ? 0.02 : 0.98, 0.05 * i);
        if (step % 10 == 5) network_break(sim, story_server(sim, 0), story_server(sim, 1));
        story_run(sim, 50);
    }
    ck_assert_uint_ge(story_stats(sim).handoffs_in, 100);
    story_close(sim);
}
END_TEST

START_TEST(a_teleport_of_any_distance_is_an_ordinary_crossing)
{
    struct sim *sim = four_quarters(4, 2);
    story_enter(sim, 0, "0", 0.01, 0.01, 1);
    story_enter(sim, 1, "0", 0.02, 0.01, 1);
    story_enter(sim, 2, "3", 0.98, 0.99, 1);
    story_enter(sim, 3, "2", 0.01, 0.99, 1);
    story_calm(sim);
    story_move(sim, 0, "3", 0.99, 0.99);
    story_calm(sim);
    ck_assert(story_sees(sim, 0, 2) && story_sees(sim, 2, 0) && !story_sees(sim, 1, 0));
    for (int i = 0; i < 20; i++) { /* every tick somewhere else */
        static const char *const leaves[] = {"3", "0", "2", "1"};
        story_move(sim, 0, leaves[i % 4], 0.01, 0.99);
        story_move(sim, 2, leaves[(i + 2) % 4], 0.01, 0.99);
        story_run(sim, 50);
    }
    story_close(sim);
}
END_TEST

START_TEST(a_crossing_needs_no_word_from_the_gateway)
{
    struct sim *sim = four_quarters(2, 2);
    story_enter(sim, 0, "0", 0.9, 0.5, 1);
    story_enter(sim, 1, "1", 0.1, 0.5, 3);
    story_calm(sim);
    uint32_t old = story_owner(sim, 0), new = story_owner(sim, 1);
    sim->plan.window_us += 2000000; /* its own news waits so long */
    story_move(sim, 0, "1", 0.05, 0.5);
    story_run(sim, 5); /* the move is out */
    sim->members[story_gateway(sim, 0)].busy_until_us = sim->now_us + 2000000;
    story_run(sim, 1000);
    ck_assert_uint_ne(old, new);
    ck_assert_uint_eq(story_owner(sim, 0), new);
    ck_assert_uint_eq(sim->checker.owned[0].listed, 1);
    ck_assert(story_sees(sim, 1, 0));
    story_close(sim);
}
END_TEST

START_TEST(where_four_servers_meet_everybody_has_one_owner_and_is_seen)
{
    struct sim *sim = four_quarters(24, 3);
    for (uint32_t i = 0; i < 24; i++) story_enter(sim, i, "0", 0.99, 0.99, 1);
    story_calm(sim);
    for (int step = 0; step < 80; step++) {
        for (uint32_t i = 0; i < 24; i++) {
            struct position p = story_place(sim, "3", 0, 0);
            uint32_t turn = (uint32_t)step + i;
            p.x += turn & 1 ? 60 : -60;
            p.y += turn & 2 ? 60 : -60;
            crowd_move(sim, i, p);
        }
        for (uint32_t g = 0; g < 3; g++) sim_rearm(sim, story_gateway(sim, g));
        story_run(sim, 50);
        if (step % 40 == 39) story_calm(sim);
    }
    for (uint32_t o = 0; o < 24; o++)
        for (uint32_t s = 0; s < 24; s++) ck_assert(o == s || story_sees(sim, o, s));
    story_close(sim);
}
END_TEST

SUITE_MAIN("crossing", whoever_enters_a_region_nobody_watched_sees_all_in_it_and_is_seen,
           a_late_remove_of_the_old_owner_does_not_take_the_entity_away, crossings_keep_states_of_every_size,
           views_queries_and_events_reach_across_the_seam,
           a_crossing_that_the_network_interrupts_is_completed_and_nobody_blinks,
           pacing_over_a_border_faster_than_the_handshake_keeps_one_owner,
           a_teleport_of_any_distance_is_an_ordinary_crossing, a_crossing_needs_no_word_from_the_gateway,
           where_four_servers_meet_everybody_has_one_owner_and_is_seen)
