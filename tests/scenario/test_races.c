/* Stories of what falls between two ticks: nobody may keep seeing who has gone, and nothing that was said is lost. */
#include "tests/scenario/story.h"

/* Four servers, a quarter of the world each, and slow ticks: there is room between two of them. */
static struct sim *slow_quarters(uint32_t walkers)
{
    struct plan plan;
    plan_quiet(&plan, 4, 1);
    plan.world.tick_hz = 10;
    return story_open(&plan, walkers);
}

/* Walker 1 watches the border from the west, walker 2 from the east. */
static void post_watchers(struct sim *sim)
{
    story_enter(sim, 1, "0", 0.9, 0.5, 3);
    story_enter(sim, 2, "1", 0.1, 0.5, 3);
}

static void wait_until_gone(struct sim *sim, uint32_t walker)
{
    for (int i = 0; i < 300 && sim->crowd.walkers[walker].presence != ABSENT; i++) story_run(sim, 10);
    ck_assert_int_eq(sim->crowd.walkers[walker].presence, ABSENT);
}

START_TEST(who_leaves_right_after_a_crossing_is_gone_for_all)
{
    struct sim *sim = slow_quarters(3);
    post_watchers(sim);
    for (uint64_t wait = 0; wait < 260; wait += 20) {
        story_enter(sim, 0, "0", 0.97, 0.5, 1);
        story_run(sim, 400);
        story_move(sim, 0, "1", 0.03, 0.5);
        story_run(sim, wait + 1);
        story_leave(sim, 0);
        wait_until_gone(sim, 0);
        story_run(sim, 400);
        ck_assert_msg(!story_sees(sim, 1, 0) && !story_sees(sim, 2, 0), "still seen, left after %d ms", (int)wait);
    }
    story_close(sim);
}
END_TEST

START_TEST(crossings_faster_than_ticks_leave_no_phantom_where_they_began)
{
    struct sim *sim = slow_quarters(3);
    post_watchers(sim);
    story_enter(sim, 0, "0", 0.97, 0.5, 1);
    for (uint64_t wait = 10; wait < 220; wait += 15) {
        story_move(sim, 0, "0", 0.97, 0.5);
        story_run(sim, 700);
        ck_assert(story_sees(sim, 1, 0) && story_sees(sim, 2, 0));
        story_move(sim, 0, "1", 0.03, 0.5);
        story_run(sim, wait);
        story_move(sim, 0, "3", 0.9, 0.9);
        story_run(sim, wait);
        story_move(sim, 0, "2", 0.1, 0.9);
        story_run(sim, 700);
        ck_assert_msg(!story_sees(sim, 1, 0) && !story_sees(sim, 2, 0), "a phantom after steps of %d ms", (int)wait);
    }
    story_close(sim);
}
END_TEST

START_TEST(a_walk_on_through_the_next_server_leaves_no_phantom_behind)
{
    struct plan plan;
    plan_quiet(&plan, 2, 2); /* the west and the east half, eight leaves each */
    plan.world.tick_hz = 10;
    plan.world.radius_max = 1024; /* the west follows no stream of the far east */
    struct sim *sim = story_open(&plan, 3);
    story_enter(sim, 1, "03", 0.8, 0.5, 1);
    story_enter(sim, 2, "12", 0.2, 0.5, 1);
    story_enter(sim, 0, "03", 0.97, 0.5, 1);
    for (uint64_t wait = 5; wait < 220; wait += 5) {
        story_move(sim, 0, "03", 0.97, 0.5);
        story_run(sim, 700);
        ck_assert(story_sees(sim, 1, 0) && story_sees(sim, 2, 0));
        ck_assert_uint_ne(story_owner(sim, 1), story_owner(sim, 2));
        story_move(sim, 0, "12", 0.03, 0.5);
        story_run(sim, wait);
        story_move(sim, 0, "33", 0.9, 0.9); /* the same server's, far from the west */
        story_run(sim, 700);
        ck_assert_msg(!story_sees(sim, 1, 0) && !story_sees(sim, 2, 0), "a phantom after %d ms", (int)wait);
    }
    story_close(sim);
}
END_TEST

START_TEST(who_goes_to_another_leaf_out_of_sight_is_gone_for_the_neighbours)
{
    struct plan plan;
    plan_quiet(&plan, 2, 2);
    plan.world.radius_max = 1024;
    struct sim *sim = story_open(&plan, 3);
    story_enter(sim, 1, "03", 0.8, 0.5, 1);
    story_enter(sim, 0, "12", 0.03, 0.5, 1);
    for (uint64_t round = 0; round < 8; round++) {
        story_move(sim, 0, "12", 0.03, 0.5);
        story_run(sim, 700 + 13 * round);
        ck_assert(story_sees(sim, 1, 0));
        story_move(sim, 0, "30", 0.9, 0.9); /* the west follows that leaf's border too, but not what is deep in it */
        story_run(sim, 700);
        ck_assert(!story_sees(sim, 1, 0));
    }
    story_close(sim);
}
END_TEST

START_TEST(a_move_between_a_crossing_and_the_next_is_not_lost)
{
    struct sim *sim = slow_quarters(3);
    post_watchers(sim);
    story_enter(sim, 0, "0", 0.97, 0.5, 1);
    story_calm(sim);
    /* The gateway hears late of the east's part in it, so it does not say its position again. */
    network_slow(sim, story_server(sim, story_owner(sim, 2)), story_gateway(sim, 0), false, 700000);
    for (uint64_t first = 20; first <= 200; first += 30) {
        for (uint64_t second = 20; second <= 140; second += 20) {
            story_move(sim, 0, "1", 0.03, 0.5);
            story_run(sim, first);
            story_move(sim, 0, "0", 0.95, 0.5);
            story_run(sim, second);
            story_move(sim, 0, "0", 0.93, 0.5);
            story_run(sim, 800);
            struct position stands = story_place(sim, "0", 0.93, 0.5);
            story_owner(sim, 0);
            ck_assert_int_eq(sim->checker.owned[0].entity.record.position.x, stands.x);
        }
    }
    story_close(sim);
}
END_TEST

START_TEST(who_enters_and_crosses_before_the_next_tick_gets_its_owner)
{
    struct sim *sim = slow_quarters(3);
    post_watchers(sim);
    for (uint64_t wait = 0; wait < 130; wait += 10) {
        story_enter(sim, 0, "0", 0.97, 0.5, 1);
        story_run(sim, wait);
        story_move(sim, 0, "1", 0.5, 0.5);
        story_run(sim, 600);
        ck_assert_uint_eq(story_owner(sim, 0), story_owner(sim, 2));
        story_leave(sim, 0);
        wait_until_gone(sim, 0);
    }
    story_close(sim);
}
END_TEST

START_TEST(the_last_of_moves_around_a_crossing_is_what_holds)
{
    struct sim *sim = slow_quarters(12);
    for (uint32_t i = 0; i < 12; i++) story_enter(sim, i, "0", 0.97, 0.08 * i, 1);
    struct dice d = dice_of(7, 7);
    for (int round = 0; round < 12; round++) {
        for (int step = 0; step < 12; step++) {
            for (uint32_t i = 0; i < 12; i++) {
                bool east = dice_chance(&d, 0.5);
                story_move(sim, i, east ? "1" : "0", east ? 0.03 : 0.97, 0.08 * i + 0.002 * step);
            }
            story_run(sim, 5 + dice_below(&d, 40));
        }
        story_calm(sim); /* positions are compared here */
    }
    story_close(sim);
}
END_TEST

/* Walker 0 goes from the west to the east; the east has taken it over, but its word to the west is lost, and the link
 * stays down for long. */
static void cross_and_lose_the_accept(struct sim *sim)
{
    uint32_t west = story_server(sim, story_owner(sim, 1)), east = story_server(sim, story_owner(sim, 2));
    network_slow(sim, east, west, false, 300000);
    story_move(sim, 0, "1", 0.03, 0.5);
    for (int i = 0; i < 100 && story_owner(sim, 0) != east - sim->server_first; i++) story_run(sim, 5);
    ck_assert_uint_eq(story_owner(sim, 0), east - sim->server_first);
    ck_assert_uint_eq(sim->checker.owned[0].listed, 2); /* the west does not know yet */
    sim->plan.down_max_us = 1;
    network_break(sim, east, west);
    network_slow(sim, east, west, false, 1500000);
}

START_TEST(an_id_enters_anew_while_word_of_its_last_crossing_is_lost)
{
    struct sim *sim = slow_quarters(3);
    post_watchers(sim);
    story_enter(sim, 0, "0", 0.97, 0.5, 1);
    story_calm(sim);
    cross_and_lose_the_accept(sim);
    story_run(sim, 50);
    story_leave(sim, 0);
    wait_until_gone(sim, 0);
    story_enter(sim, 0, "0", 0.95, 0.5, 1);
    story_run(sim, 1000);
    ck_assert_int_eq(sim->crowd.walkers[0].presence, PRESENT);
    story_run(sim, 3000);
    ck_assert(story_sees(sim, 1, 0));
    story_close(sim);
}
END_TEST

START_TEST(a_late_accept_leaves_no_phantom)
{
    struct sim *sim = slow_quarters(3);
    post_watchers(sim);
    story_enter(sim, 0, "0", 0.97, 0.5, 1);
    story_calm(sim);
    cross_and_lose_the_accept(sim);
    story_run(sim, 200);
    story_move(sim, 0, "3", 0.9, 0.9); /* far from all who watch */
    sim->plan.window_us += 2000000;    /* the west knows only when the link is back */
    story_run(sim, 3000);
    ck_assert(!story_sees(sim, 1, 0) && !story_sees(sim, 2, 0));
    ck_assert_uint_eq(sim->checker.owned[0].listed, 1);
    story_close(sim);
}
END_TEST

SUITE_MAIN("races", who_leaves_right_after_a_crossing_is_gone_for_all,
           crossings_faster_than_ticks_leave_no_phantom_where_they_began,
           a_walk_on_through_the_next_server_leaves_no_phantom_behind,
           who_goes_to_another_leaf_out_of_sight_is_gone_for_the_neighbours,
           a_move_between_a_crossing_and_the_next_is_not_lost,
           who_enters_and_crosses_before_the_next_tick_gets_its_owner,
           the_last_of_moves_around_a_crossing_is_what_holds, an_id_enters_anew_while_word_of_its_last_crossing_is_lost,
           a_late_accept_leaves_no_phantom)
