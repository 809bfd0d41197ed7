/* Stories of beginnings, and of feeds that lose. */
#include "tests/scenario/story.h"

/* The order in which coordinator, servers and gateways begin, 300 ms apart. */
static void begin_in_order(const uint32_t order[3])
{
    struct plan plan;
    plan_quiet(&plan, 3, 2);
    plan.gateways = 2;
    struct sim *sim = story_open_unready(&plan, 6);
    queue_close(&sim->queue); /* their starts as drawn */
    for (uint32_t i = 0; i < sim->member_count; i++) {
        uint64_t at_us = 1000 + 300000 * (uint64_t)order[sim->members[i].role] + i;
        queue_push(&sim->queue, (struct happening){.kind = HAPPEN_START, .at_us = at_us, .member = i});
    }
    ck_assert_msg(sim_run_ready(sim, 10000000), "%s", sim->violation);
    for (uint32_t i = 0; i < 6; i++) story_enter(sim, i, "03", 0.8 + 0.03 * i, 0.9, 1);
    story_calm(sim);
    for (uint32_t o = 0; o < 6; o++)
        for (uint32_t s = 0; s < 6; s++) ck_assert(o == s || story_sees(sim, o, s));
    for (uint32_t i = 0; i < 6; i++) story_move(sim, i, "30", 0.1 * i, 0.1);
    story_close(sim);
}

START_TEST(any_order_of_starting_works)
{
    static const uint32_t orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) begin_in_order(orders[i]);
}
END_TEST

START_TEST(an_enter_before_its_region_has_an_owner_waits_for_one)
{
    struct plan plan;
    plan_quiet(&plan, 2, 1);
    struct sim *sim = story_open_unready(&plan, 2);
    queue_close(&sim->queue);
    static const uint64_t at_us[] = {0, 3000000, 3000000, 0};
    for (uint32_t i = 0; i < sim->member_count; i++)
        queue_push(&sim->queue, (struct happening){.kind = HAPPEN_START, .at_us = at_us[i], .member = i});
    story_run(sim, 1000);
    if (gateway_is_ready(sim_gateway(sim, 0))) story_enter(sim, 0, "3", 0.5, 0.5, 1);
    story_run(sim, 4000);
    ck_assert_msg(sim_run_ready(sim, 1000000), "%s", sim->violation);
    if (sim->crowd.walkers[0].presence == ABSENT) story_enter(sim, 0, "3", 0.5, 0.5, 1);
    story_enter(sim, 1, "3", 0.51, 0.5, 1);
    story_calm(sim);
    ck_assert(story_sees(sim, 0, 1) && story_sees(sim, 1, 0));
    story_close(sim);
}
END_TEST

START_TEST(lost_frames_are_noticed_counted_and_repaired)
{
    struct plan plan;
    plan_quiet(&plan, 4, 1);
    plan.gateways = 2;
    plan.feed_loss = 0.3;
    struct sim *sim = story_open(&plan, 12);
    for (uint32_t i = 0; i < 12; i++) story_enter(sim, i, "0", 0.9, 0.08 * i, 3);
    for (int step = 0; step < 100; step++) {
        for (uint32_t i = 0; i < 12; i++)
            story_move(sim, i, step / 25 % 2 == 0 ? "0" : "1", 0.5 + 0.003 * step, 0.08 * i);
        story_run(sim, 50);
    }
    story_calm(sim); /* all equal again, no gap open */
    struct terrane_stats stats;
    uint64_t gaps = 0;
    for (uint32_t g = 0; g < 2; g++) {
        gateway_stats(sim_gateway(sim, g), &stats);
        ck_assert_uint_eq(stats.gaps, stats.gaps_repaired);
        gaps += stats.gaps;
    }
    ck_assert_uint_gt(sim->network.lost_frames, 100);
    ck_assert_uint_gt(gaps, 10);
    story_close(sim);
}
END_TEST

START_TEST(one_slow_subscriber_does_not_delay_the_others)
{
    struct plan plan;
    plan_quiet(&plan, 2, 1);
    plan.gateways = 2;
    struct sim *sim = story_open(&plan, 4);
    for (uint32_t i = 0; i < 4; i++) story_enter(sim, i, "0", 0.5 + 0.01 * i, 0.5, 1);
    story_calm(sim);
    sim->plan.window_us += 5000000; /* its own news waits so long */
    sim->members[story_gateway(sim, 1)].busy_until_us = sim->now_us + 5000000;
    story_move(sim, 0, "3", 0.9, 0.9);
    story_run(sim, 500);
    ck_assert(!story_sees(sim, 2, 0) && !story_sees(sim, 0, 2));
    story_move(sim, 0, "0", 0.5, 0.5);
    story_run(sim, 500);
    ck_assert(story_sees(sim, 2, 0) && story_sees(sim, 0, 2));
    story_close(sim);
}
END_TEST

SUITE_MAIN("start", any_order_of_starting_works, an_enter_before_its_region_has_an_owner_waits_for_one,
           lost_frames_are_noticed_counted_and_repaired, one_slow_subscriber_does_not_delay_the_others)
