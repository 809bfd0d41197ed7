/* The bots' checker: a right world passes, and each planted fault is found by the check that is there for it. */
#include "common/geometry.h"
#include "tests/unit/suite.h"
#include "tools/checker.h"
#include "tools/dice.h"

#include <string.h>

#define FIRST  1000u
#define BOTS   60u
#define RADIUS 3000
#define BAND   800 /* hysteresis */

static struct checker *checker(enum view_mode mode)
{
    struct checker_options options = {.count = BOTS, .first_id = FIRST, .radius = RADIUS, .world = world_default()};
    options.world.hysteresis = BAND;
    options.world.view_mode = mode;
    return checker_open(&options);
}

/* Where the tests' bots stand: within a few radii, so that all three verdicts occur. */
static struct position place(uint32_t bot, uint32_t round)
{
    struct dice d = {bot * 1000 + round};
    return (struct position){500000 + (int32_t)dice_below(&d, 12000), 500000 + (int32_t)dice_below(&d, 12000), 0};
}

static int64_t squared(struct position a, struct position b)
{
    int64_t dx = a.x - b.x, dy = a.y - b.y;
    return dx * dx + dy * dy;
}

/* All bots at their places, everybody told exactly what it should be. */
static struct checker *right_world(void)
{
    struct checker *c = checker(VIEW_RADIUS);
    for (uint32_t i = 0; i < BOTS; i++) checker_place(c, i, place(i, 0));
    for (uint32_t i = 0; i < BOTS; i++)
        for (uint32_t j = 0; j < BOTS; j++)
            if (i != j && squared(place(i, 0), place(j, 0)) <= (int64_t)RADIUS * RADIUS)
                checker_see(c, FIRST + i, FIRST + j);
    return c;
}

/* Somebody `bot` must see, or must not, other than `but`. */
static uint32_t somebody(uint32_t bot, bool near)
{
    for (uint32_t j = 0; j < BOTS; j++) {
        int64_t square = squared(place(bot, 0), place(j, 0));
        if (j == bot) continue;
        if (near && square <= (int64_t)RADIUS * RADIUS) return j;
        if (!near && square > (int64_t)(RADIUS + BAND) * (RADIUS + BAND)) return j;
    }
    ck_abort_msg("nobody there");
    return 0;
}

static struct checker_calm calm(struct checker *c, checker_view *view, void *context)
{
    struct checker_calm out = {0};
    checker_calm(c, 0, BOTS, view, context, &out);
    ck_assert_uint_eq(out.views, BOTS);
    return out;
}

START_TEST(a_right_world_passes_all_checks)
{
    struct checker *c = right_world();
    struct checker_calm result = calm(c, NULL, NULL);
    ck_assert_uint_eq(result.wrong, 0);
    for (uint32_t i = 0; i < CHECKER_SAMPLES; i++) checker_sample(c);
    checker_moving(c);
    const struct checker_counts *counts = checker_counts(c);
    ck_assert_uint_gt(counts->moving_pairs, 100);
    ck_assert_uint_eq(counts->moving_missing + counts->moving_false, 0);
    ck_assert_uint_eq(counts->seen_twice + counts->unseen_unsee + counts->unseen_update + counts->foreign, 0);
    ck_assert_ptr_null(checker_fault(c, 0));
    checker_close(c);
}
END_TEST

START_TEST(a_missing_and_a_false_subject_are_found_in_the_calm)
{
    struct checker *c = right_world();
    checker_unsee(c, FIRST + 3, FIRST + somebody(3, true));
    checker_see(c, FIRST + 9, FIRST + somebody(9, false));
    struct checker_calm result = calm(c, NULL, NULL);
    ck_assert_uint_eq(result.wrong, 2);
    ck_assert_uint_eq(result.missing, 1);
    ck_assert_uint_eq(result.false_seen, 1);
    ck_assert_ptr_nonnull(checker_fault(c, 1));
    checker_close(c);
}
END_TEST

START_TEST(a_blink_of_who_was_near_or_far_for_the_whole_window_is_found)
{
    struct checker *c = right_world();
    uint32_t near = somebody(3, true), far = somebody(9, false);
    checker_unsee(c, FIRST + 3, FIRST + near); /* the window does not reach back far enough yet */
    checker_see(c, FIRST + 3, FIRST + near);
    for (uint32_t i = 0; i < CHECKER_SAMPLES; i++) checker_sample(c);
    checker_measure(c);
    ck_assert_uint_eq(checker_counts(c)->unseen_near + checker_counts(c)->seen_far, 0);
    checker_unsee(c, FIRST + 3, FIRST + near);
    ck_assert_uint_eq(checker_counts(c)->unseen_near, 1);
    checker_see(c, FIRST + 9, FIRST + far);
    ck_assert_uint_eq(checker_counts(c)->seen_far, 1);
    ck_assert_ptr_nonnull(checker_fault(c, 1));
    checker_close(c);
}
END_TEST

START_TEST(who_has_moved_since_the_last_measure_may_be_seen_or_unseen)
{
    struct checker *c = right_world();
    uint32_t near = somebody(3, true);
    struct position here = checker_position(c, near);
    for (uint32_t i = 0; i < CHECKER_SAMPLES; i++) checker_sample(c);
    checker_measure(c);
    checker_place(c, near, (struct position){here.x + 2 * (RADIUS + BAND), here.y, 0});
    checker_place(c, near, here); /* there and back between two samples */
    checker_unsee(c, FIRST + 3, FIRST + near);
    checker_see(c, FIRST + 3, FIRST + near);
    ck_assert_uint_eq(checker_counts(c)->unseen_near + checker_counts(c)->seen_far, 0);
    checker_close(c);
}
END_TEST

START_TEST(who_leaves_or_comes_may_be_seen_or_not_until_the_window_has_passed)
{
    struct checker *c = right_world();
    uint32_t near = somebody(3, true), far = somebody(3, false);
    for (uint32_t i = 0; i < CHECKER_SAMPLES; i++) checker_sample(c);
    checker_measure(c);
    checker_blur(c, near);
    checker_blur(c, far);
    checker_unsee(c, FIRST + 3, FIRST + near);
    checker_see(c, FIRST + 3, FIRST + far);
    for (uint32_t i = 1; i < CHECKER_SAMPLES; i++) {
        checker_sample(c);
        checker_moving(c);
        ck_assert_uint_eq(checker_counts(c)->unseen_near + checker_counts(c)->seen_far, 0);
        ck_assert_uint_eq(checker_counts(c)->moving_missing + checker_counts(c)->moving_false, 0);
    }
    checker_sample(c);
    checker_moving(c);
    ck_assert_uint_gt(checker_counts(c)->moving_missing, 0);
    ck_assert_uint_gt(checker_counts(c)->moving_false, 0);
    checker_close(c);
}
END_TEST

START_TEST(the_band_between_see_and_unsee_is_tolerated_and_its_ends_are_exact)
{
    struct checker *c = checker(VIEW_RADIUS);
    const struct {
        int32_t distance;
        bool seen, wrong;
    } cases[] = {{RADIUS, true, false},           {RADIUS, false, true},
                 {RADIUS + 1, false, false},      {RADIUS + 1, true, false},
                 {RADIUS + BAND, true, false},    {RADIUS + BAND, false, false},
                 {RADIUS + BAND + 1, true, true}, {RADIUS + BAND + 1, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct checker_calm result = {0};
        checker_place(c, 0, (struct position){500000, 500000, 0});
        checker_place(c, 1, (struct position){500000 + cases[i].distance, 500000, 0});
        if (cases[i].seen) checker_see(c, FIRST, FIRST + 1);
        checker_calm(c, 0, 1, NULL, NULL, &result);
        ck_assert_msg((result.wrong == 1) == cases[i].wrong, "case %zu", i);
        if (cases[i].seen) checker_unsee(c, FIRST, FIRST + 1);
    }
    checker_close(c);
}
END_TEST

START_TEST(block_views_are_exact_in_cells)
{
    struct checker *c = checker(VIEW_BLOCK);
    int32_t cell = (int32_t)world_cell_side(&(struct world){.resolution_bits = 21, .depth = 8});
    struct checker_calm result = {0};
    checker_place(c, 0, (struct position){10 * cell, 10 * cell, 0});
    checker_place(c, 1, (struct position){12 * cell - 1, 11 * cell, 0}); /* next cell: seen */
    checker_place(c, 2, (struct position){12 * cell, 11 * cell, 0});     /* the one behind: not */
    checker_see(c, FIRST, FIRST + 1);
    checker_calm(c, 0, 1, NULL, NULL, &result);
    ck_assert_uint_eq(result.wrong, 0);
    checker_see(c, FIRST, FIRST + 2);
    checker_calm(c, 0, 1, NULL, NULL, &result);
    ck_assert_uint_eq(result.false_seen, 1);
    checker_unsee(c, FIRST, FIRST + 1);
    checker_calm(c, 0, 1, NULL, NULL, &result);
    ck_assert_uint_eq(result.missing, 1);
    checker_close(c);
}
END_TEST

/* A library whose view of one bot lacks its last subject, or names one twice. */
struct liar {
    struct checker *checker;
    uint32_t bot;
    bool twice;
};

static size_t lying_view(void *context, uint32_t bot, uint64_t *ids, size_t room)
{
    const struct liar *liar = context;
    size_t count = 0;
    for (uint32_t j = 0; j < BOTS; j++)
        if (j != bot && squared(place(bot, 0), place(j, 0)) <= (int64_t)RADIUS * RADIUS && count++ < room)
            ids[count - 1] = FIRST + j;
    if (bot != liar->bot) return count;
    if (!liar->twice) return count - 1;
    if (count < room) ids[count] = ids[0];
    return count + 1;
}

START_TEST(a_library_whose_view_differs_from_its_callbacks_is_found)
{
    for (int twice = 0; twice <= 1; twice++) {
        struct checker *c = right_world();
        struct liar liar = {c, 5, twice == 1};
        ck_assert_uint_eq(calm(c, lying_view, &liar).wrong, 1);
        liar.bot = BOTS; /* nobody: honest */
        ck_assert_uint_eq(calm(c, lying_view, &liar).wrong, 0);
        checker_close(c);
    }
}
END_TEST

START_TEST(each_breach_of_pairing_is_counted_by_its_kind)
{
    struct checker *c = right_world();
    uint64_t near = FIRST + somebody(0, true), far = FIRST + somebody(0, false);
    const struct checker_counts *counts = checker_counts(c);
    checker_see(c, FIRST, near);
    ck_assert_uint_eq(counts->seen_twice, 1);
    checker_unsee(c, FIRST, far);
    ck_assert_uint_eq(counts->unseen_unsee, 1);
    checker_update(c, FIRST, near);
    ck_assert_uint_eq(counts->unseen_update, 0);
    checker_update(c, FIRST, far);
    ck_assert_uint_eq(counts->unseen_update, 1);
    checker_see(c, FIRST + BOTS, near);
    ck_assert_uint_eq(counts->foreign, 1);
    checker_unsee(c, FIRST, near);
    checker_unsee(c, FIRST, near);
    ck_assert_uint_eq(counts->unseen_unsee, 2);
    checker_close(c);
}
END_TEST

START_TEST(while_moving_a_lasting_fault_is_found_and_a_late_change_is_not)
{
    struct checker *c = checker(VIEW_RADIUS);
    struct position far = {500000 + 20000, 500000, 0}, near = {500000 + 1000, 500000, 0};
    checker_place(c, 0, (struct position){500000, 500000, 0});
    checker_place(c, 1, far);
    for (uint32_t i = 0; i < CHECKER_SAMPLES; i++) checker_sample(c);
    checker_place(c, 1, near); /* has just come: not seeing it yet is fine, seeing it too */
    checker_sample(c);
    checker_moving(c);
    ck_assert_uint_eq(checker_counts(c)->moving_missing, 0);
    checker_see(c, FIRST, FIRST + 1);
    checker_moving(c);
    ck_assert_uint_eq(checker_counts(c)->moving_false, 0);
    checker_unsee(c, FIRST, FIRST + 1);
    for (uint32_t i = 0; i < CHECKER_SAMPLES; i++) checker_sample(c);
    checker_moving(c); /* near for the whole window: both must see the other */
    ck_assert_uint_eq(checker_counts(c)->moving_missing, 2);
    checker_see(c, FIRST, FIRST + 1);
    checker_see(c, FIRST + 1, FIRST);
    checker_place(c, 1, far);
    for (uint32_t i = 0; i < CHECKER_SAMPLES; i++) checker_sample(c);
    checker_moving(c);
    ck_assert_uint_eq(checker_counts(c)->moving_false, 2);
    checker_close(c);
}
END_TEST

START_TEST(what_happens_between_two_samples_is_forgiven)
{
    struct checker *c = checker(VIEW_RADIUS);
    struct position near = {500000 + RADIUS - 10, 500000, 0}, out = {500000 + RADIUS + BAND + 10, 500000, 0};
    checker_place(c, 0, (struct position){500000, 500000, 0});
    checker_place(c, 1, near);
    for (uint32_t i = 0; i < CHECKER_HISTORY; i++) checker_sample(c);
    checker_place(c, 1, out);
    checker_place(c, 1, near);
    checker_sample(c);
    checker_moving(c); /* it was away for a moment that no sample shows: not seeing it is fine */
    ck_assert_uint_eq(checker_counts(c)->moving_missing, 0);
    ck_assert_int_eq(checker_inside(c, 1, (struct position){500000, 500000, 0}, RADIUS), CHECKER_CROSSED);
    for (uint32_t i = 0; i < CHECKER_HISTORY; i++) checker_sample(c);
    checker_moving(c);
    ck_assert_uint_eq(checker_counts(c)->moving_missing, 2);
    ck_assert_int_eq(checker_inside(c, 1, (struct position){500000, 500000, 0}, RADIUS), CHECKER_INSIDE);
    checker_close(c);
}
END_TEST

START_TEST(the_grid_finds_as_many_missing_as_brute_force)
{
    struct checker *c = checker(VIEW_RADIUS);
    for (uint32_t i = 0; i < BOTS; i++) checker_place(c, i, place(i, 0));
    for (uint32_t i = 0; i < CHECKER_SAMPLES; i++) checker_sample(c);
    checker_moving(c);
    uint64_t near = 0;
    for (uint32_t i = 0; i < BOTS; i++)
        for (uint32_t j = 0; j < BOTS; j++)
            near += i != j && squared(place(i, 0), place(j, 0)) <= (int64_t)RADIUS * RADIUS;
    ck_assert_uint_gt(near, 100);
    ck_assert_uint_eq(checker_counts(c)->moving_missing, near);
    checker_close(c);
}
END_TEST

/* Every bot once at its place with its state, but for what the caller plants. */
static struct checker_census census(uint32_t lost, uint32_t doubled, uint32_t misplaced, uint32_t stale)
{
    struct checker *c = right_world();
    struct checker_census out;
    static uint8_t state[CHECKER_STATE_MAX];
    checker_census_begin(c);
    for (uint32_t i = 0; i < BOTS; i++) {
        size_t size = checker_state(FIRST + i, 0, state);
        struct position p = place(i, 0);
        if (i == misplaced) p.y++;
        if (i == stale) state[size / 2] ^= 1;
        for (uint32_t owner = 0; owner < (i == lost ? 0u : i == doubled ? 2u : 1u); owner++)
            checker_census_add(c, FIRST + i, p, state, size);
    }
    checker_census_add(c, FIRST + BOTS, place(0, 0), NULL, 0); /* somebody else's */
    checker_census_end(c, &out);
    checker_close(c);
    return out;
}

/* A bot whose state is not empty. */
static uint32_t stateful(void)
{
    static uint8_t state[CHECKER_STATE_MAX];
    for (uint32_t i = 0; i < BOTS; i++)
        if (checker_state(FIRST + i, 0, state) > 0) return i;
    return BOTS;
}

START_TEST(the_census_finds_lost_doubled_misplaced_and_changed_entities)
{
    struct checker_census out = census(BOTS, BOTS, BOTS, BOTS);
    ck_assert_uint_eq(out.owned, BOTS);
    ck_assert_uint_eq(out.lost + out.doubled + out.misplaced + out.states_wrong, 0);
    ck_assert_uint_eq(census(4, BOTS, BOTS, BOTS).lost, 1);
    ck_assert_uint_eq(census(BOTS, 4, BOTS, BOTS).doubled, 1);
    ck_assert_uint_eq(census(BOTS, BOTS, 4, BOTS).misplaced, 1);
    ck_assert_uint_eq(census(BOTS, BOTS, BOTS, stateful()).states_wrong, 1);
}
END_TEST

START_TEST(a_renewed_state_is_expected_and_the_old_one_is_not)
{
    struct checker *c = right_world();
    struct checker_census out;
    static uint8_t state[CHECKER_STATE_MAX];
    size_t size = checker_renew(c, 3, state);
    for (int old = 0; old <= 1; old++) {
        if (old == 1) size = checker_state(FIRST + 3, 0, state);
        checker_census_begin(c);
        checker_census_add(c, FIRST + 3, place(3, 0), state, size);
        checker_census_end(c, &out);
        ck_assert_uint_eq(out.states_wrong, (uint64_t)old);
        ck_assert_uint_eq(out.lost, BOTS - 1);
    }
    checker_close(c);
}
END_TEST

START_TEST(states_are_of_every_size_and_stay_the_same)
{
    static uint8_t a[CHECKER_STATE_MAX], b[CHECKER_STATE_MAX];
    size_t largest = 0, empty = 0;
    for (uint64_t id = 1; id < 20000; id++) {
        size_t size = checker_state(id, 0, a);
        ck_assert_uint_le(size, CHECKER_STATE_MAX);
        ck_assert_uint_eq(checker_state(id, 0, b), size);
        ck_assert(size == 0 || memcmp(a, b, size) == 0);
        if (size > largest) largest = size;
        empty += size == 0;
    }
    ck_assert_uint_gt(largest, CHECKER_STATE_MAX * 9 / 10);
    ck_assert_uint_gt(empty, 100);
}
END_TEST

SUITE_MAIN("checker", a_right_world_passes_all_checks, a_missing_and_a_false_subject_are_found_in_the_calm,
           the_band_between_see_and_unsee_is_tolerated_and_its_ends_are_exact,
           a_blink_of_who_was_near_or_far_for_the_whole_window_is_found,
           who_has_moved_since_the_last_measure_may_be_seen_or_unseen,
           who_leaves_or_comes_may_be_seen_or_not_until_the_window_has_passed, block_views_are_exact_in_cells,
           a_library_whose_view_differs_from_its_callbacks_is_found, each_breach_of_pairing_is_counted_by_its_kind,
           while_moving_a_lasting_fault_is_found_and_a_late_change_is_not, what_happens_between_two_samples_is_forgiven,
           the_grid_finds_as_many_missing_as_brute_force, the_census_finds_lost_doubled_misplaced_and_changed_entities,
           a_renewed_state_is_expected_and_the_old_one_is_not, states_are_of_every_size_and_stay_the_same)
