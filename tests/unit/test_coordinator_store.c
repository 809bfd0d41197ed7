/* The coordinator and its store: what is told is stored, failures, restarts, other leaders. */
#include "tests/unit/coordinator_fixture.h"

START_TEST(nothing_is_told_before_the_store_has_it)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    f = (struct fixture){.now_us = 1000 * MS, .options = options, .mood = MOOD_HOLD};
    fixture_start(&f);
    ck_assert(!fixture_stats(&f).ready);
    store_release(&f);
    ck_assert(!fixture_stats(&f).ready);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    ck_assert(!a->welcomed);
    store_release(&f);
    ck_assert(fixture_stats(&f).ready);
    tester_hello(&f, a);
    ck_assert(a->welcomed);
    ck_assert(f.asked);
    uint64_t saves = f.saves;
    fixture_run(&f, 1000 * MS);
    ck_assert_uint_eq(f.saves, saves);
    ck_assert_uint_eq(fixture_stats(&f).unowned, 16);
    ck_assert_uint_eq(leaves_of(&f, &a->map, a), 0);
    ck_assert_uint_eq(a->map.now.leaf_count, 16);
    store_release(&f);
    ck_assert_uint_eq(leaves_of(&f, &a->map, a), 16);
    fixture_close(&f);
}
END_TEST

START_TEST(a_failing_store_is_asked_again_with_back_off_and_the_told_map_is_served)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    fixture_run(&f, 500 * MS);
    uint64_t rev = fixture_stats(&f).rev;
    f.mood = MOOD_DOWN;
    struct tester *b = tester_join(&f, ROLE_CELLSERVER, "cell-2", 102);
    uint64_t saves = f.saves;
    fixture_run(&f, 10000 * MS);
    /* 200, 400, 800, 1600, 2000, 2000, 2000 ms */
    ck_assert_uint_ge(f.saves - saves, 6);
    ck_assert_uint_le(f.saves - saves, 8);
    ck_assert_uint_eq(fixture_stats(&f).store_failures, f.saves - saves + 1);
    ck_assert_uint_eq(fixture_stats(&f).rev, rev);
    ck_assert_uint_eq(b->map.now.leaf_count, 16);
    ck_assert_ptr_null(ownership_node(&a->map, b->info.node));
    /* Written, but the answer is lost: the same save once more is no conflict. */
    f.mood = MOOD_MUTE;
    fixture_run(&f, 4000 * MS);
    f.mood = MOOD_WELL;
    fixture_run(&f, 4000 * MS);
    ck_assert_ptr_nonnull(ownership_node(&a->map, b->info.node));
    ck_assert(fixture_stats(&f).ready);
    fixture_close(&f);
}
END_TEST

START_TEST(a_restart_keeps_owners_and_epochs_under_the_next_term)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    options.expect_servers = 2;
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    struct tester *b = tester_join(&f, ROLE_CELLSERVER, "cell-2", 102);
    struct tester *g = tester_join(&f, ROLE_GATEWAY, "gate", 201);
    fixture_run(&f, 1000 * MS);
    struct leaf_owner before[16];
    for (uint32_t i = 0; i < 16; i++) before[i] = tester_leaf(a, i);
    uint32_t maps = a->maps;
    fixture_restart(&f);
    ck_assert_uint_eq(fixture_stats(&f).term, 2);
    tester_hello(&f, a);
    tester_hello(&f, g);
    fixture_run(&f, 1000 * MS);
    /* Others may still be on their way: nobody is told a map without them. */
    ck_assert_uint_eq(a->maps, maps);
    ck_assert_uint_eq(a->welcome.term, 2);
    fixture_run(&f, 1500 * MS);
    ck_assert_uint_eq(a->map.term, 2);
    ck_assert_uint_eq(a->map.now.node_count, 3); /* b has not come back yet, but owns */
    for (uint32_t i = 0; i < 16; i++) {
        struct leaf_owner now = tester_leaf(a, i);
        ck_assert_uint_eq(now.primary.v, before[i].primary.v);
        ck_assert_uint_eq(now.epoch, before[i].epoch);
        ck_assert_uint_eq(now.feed, before[i].feed);
    }
    tester_hello(&f, b);
    fixture_run(&f, 1000 * MS);
    ck_assert_uint_eq(b->map.term, 2);
    ck_assert_uint_eq(leaves_of(&f, &b->map, b), 8);
    ck_assert_uint_eq(fixture_stats(&f).silent, 0);
    fixture_close(&f);
}
END_TEST

START_TEST(a_restart_tells_the_map_of_the_new_term_when_all_had_time_to_come_back)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    fixture_run(&f, 500 * MS);
    uint64_t rev = fixture_stats(&f).rev;
    fixture_restart(&f);
    tester_hello(&f, a);
    fixture_run(&f, 1900 * MS);
    ck_assert_uint_eq(f.feed.term, 1);
    fixture_run(&f, 200 * MS);
    ck_assert_uint_eq(f.feed.term, 2);
    ck_assert_uint_gt(f.feed.rev, rev);
    ck_assert_uint_eq(f.feed.now.leaf_count, 16);
    ck_assert_uint_eq(a->map.term, 2);
    ck_assert_uint_eq(a->map.rev, f.feed.rev);
    fixture_close(&f);
}
END_TEST

START_TEST(an_emptied_store_is_filled_again_with_the_next_change)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    fixture_run(&f, 500 * MS);
    f.stored_term = f.stored_count = f.server_count = 0;
    table_clear(&f.stored_index);
    struct tester *b = tester_join(&f, ROLE_CELLSERVER, "cell-2", 102);
    fixture_run(&f, 1000 * MS);
    ck_assert(fixture_stats(&f).ready);
    ck_assert_uint_eq(f.stored_count, 16);
    ck_assert_uint_eq(f.server_count, 2);
    ck_assert_uint_eq(f.stored_term, 2);
    ck_assert_uint_eq(leaves_of(&f, &b->map, a), 16);
    ck_assert_uint_eq(tester_leaf(b, 0).epoch, 1);
    fixture_close(&f);
}
END_TEST

START_TEST(a_restarted_cluster_gets_its_leaves_back_by_name)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    options.expect_servers = 2;
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    struct tester *b = tester_join(&f, ROLE_CELLSERVER, "cell-2", 102);
    fixture_run(&f, 500 * MS);
    struct leaf_owner before[16];
    for (uint32_t i = 0; i < 16; i++) before[i] = tester_leaf(a, i);
    a->cut = b->cut = true;
    fixture_restart(&f);
    struct tester *a2 = tester_join(&f, ROLE_CELLSERVER, "cell-1", 111);
    struct tester *b2 = tester_join(&f, ROLE_CELLSERVER, "cell-2", 112);
    for (uint32_t i = 0; i < 20; i++) {
        fixture_run(&f, 200 * MS);
        if (!a2->welcomed) tester_hello(&f, a2);
        if (!b2->welcomed) tester_hello(&f, b2);
    }
    for (uint32_t i = 0; i < 16; i++) {
        struct leaf_owner now = tester_leaf(a2, i);
        ck_assert_uint_eq(now.primary.v, before[i].primary.v + 10);
        ck_assert_uint_eq(now.epoch, before[i].epoch + 1);
    }
    fixture_close(&f);
}
END_TEST

START_TEST(another_world_in_the_store_is_refused)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    fixture_open(&f, &options);
    f.options.world.cell_size = 25.0;
    f.options.world.tick_hz = 30;
    fixture_restart(&f);
    ck_assert(!fixture_stats(&f).ready);
    ck_assert_uint_eq(f.warnings, 2);
    fixture_run(&f, 5000 * MS);
    ck_assert(!fixture_stats(&f).ready);
    f.options.world = options.world;
    fixture_restart(&f);
    ck_assert(fixture_stats(&f).ready);
    fixture_close(&f);
}
END_TEST

START_TEST(a_stored_map_that_does_not_tile_the_world_is_refused)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    fixture_open(&f, &options);
    f.stored[3] = f.stored[--f.stored_count];
    fixture_restart(&f);
    ck_assert(!fixture_stats(&f).ready);
    fixture_close(&f);
}
END_TEST

SUITE_MAIN("coordinator_store", nothing_is_told_before_the_store_has_it,
           a_failing_store_is_asked_again_with_back_off_and_the_told_map_is_served,
           a_restart_keeps_owners_and_epochs_under_the_next_term,
           a_restart_tells_the_map_of_the_new_term_when_all_had_time_to_come_back,
           an_emptied_store_is_filled_again_with_the_next_change, a_restarted_cluster_gets_its_leaves_back_by_name,
           another_world_in_the_store_is_refused, a_stored_map_that_does_not_tile_the_world_is_refused)
