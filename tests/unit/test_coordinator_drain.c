/* Emptying servers: DRAIN by an operator, BYE of the server itself. */
#include "tests/unit/coordinator_fixture.h"

static struct tester *servers[4];

static void open_with(struct fixture *f, uint32_t count, uint32_t split_depth)
{
    struct coordinator_options options = fixture_protected(count);
    options.split_depth = split_depth;
    fixture_open(f, &options);
    for (uint32_t i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "cell-%u", i + 1);
        servers[i] = tester_join(f, ROLE_CELLSERVER, name, 101 + i);
    }
    fixture_run(f, 600 * MS);
    ck_assert_uint_eq(fixture_stats(f).unprotected, 0);
}

START_TEST(a_drained_server_ends_with_nothing_and_loses_nothing_on_the_way)
{
    static struct fixture f;
    open_with(&f, 3, 2);
    struct tester *told = servers[1];
    uint32_t had = leaves_of(&f, &told->map, servers[0]) + stands_of(&told->map, servers[0]);
    ck_assert_uint_eq(fixture_drain(&f, "cell-1").count, had);
    ck_assert_uint_eq(fixture_stats(&f).draining, 1);
    fixture_run(&f, 3000 * MS);
    ck_assert_uint_eq(leaves_of(&f, &told->map, servers[0]), 0);
    ck_assert_uint_eq(stands_of(&told->map, servers[0]), 0);
    ck_assert_uint_eq(fixture_drain(&f, "cell-1").count, 0);
    ck_assert_uint_eq(fixture_stats(&f).unowned, 0);
    ck_assert_uint_eq(fixture_stats(&f).unprotected, 0);
    /* The fixture saw that each leaf went to a level standby. It stays a member, and gets nothing. */
    ck_assert_ptr_nonnull(ownership_node(&told->map, servers[0]->info.node));
    servers[2]->cut = true;
    (void)fixture_death(&f, servers[2]->info.node);
    fixture_run(&f, 10000 * MS);
    ck_assert_uint_eq(leaves_of(&f, &told->map, told), 16);
    ck_assert_uint_eq(stands_of(&told->map, servers[0]), 0);
    fixture_close(&f);
}
END_TEST

START_TEST(a_drain_moves_no_leaf_before_the_lease_of_its_server_has_run_out)
{
    static struct fixture f;
    open_with(&f, 3, 2);
    struct tester *told = servers[1];
    tester_light_beat(&f, servers[0]);
    uint64_t lease_us = servers[0]->lease_us;
    ck_assert_uint_gt(lease_us, f.now_us);
    (void)fixture_drain(&f, "cell-1");
    uint32_t had = leaves_of(&f, &told->map, servers[0]);
    for (uint64_t given_us = lease_us; leaves_of(&f, &told->map, servers[0]) == had;) {
        ck_assert_uint_eq(given_us, lease_us); /* it lives on acks meanwhile */
        given_us = servers[0]->lease_us;
        ck_assert_uint_lt(f.now_us, lease_us + 1000 * MS);
        fixture_run(&f, 5 * MS);
    }
    ck_assert_uint_ge(f.now_us, lease_us);
    fixture_run(&f, 3000 * MS);
    ck_assert_uint_gt(servers[0]->lease_us, f.now_us); /* nothing is being taken from it now */
    fixture_close(&f);
}
END_TEST

START_TEST(at_most_sixteen_leaves_are_on_their_way_at_a_time)
{
    static struct fixture f;
    open_with(&f, 2, 3);
    struct tester *told = servers[1];
    ck_assert_uint_eq(leaves_of(&f, &told->map, servers[0]), 32);
    (void)fixture_drain(&f, "cell-1");
    uint32_t left = 32;
    while (left > 0) {
        fixture_run(&f, 5 * MS);
        uint32_t now = leaves_of(&f, &told->map, servers[0]);
        ck_assert_uint_le(left - now, 16);
        left = now;
        ck_assert_uint_lt(f.now_us, 60000 * MS);
    }
    fixture_close(&f);
}
END_TEST

START_TEST(a_drained_server_without_anybody_to_take_over_keeps_its_leaves_until_somebody_comes)
{
    static struct fixture f;
    struct coordinator_options options = fixture_protected(1);
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    fixture_run(&f, 500 * MS);
    ck_assert_uint_eq(fixture_drain(&f, "cell-1").count, 16);
    fixture_run(&f, 20000 * MS);
    ck_assert_uint_eq(leaves_of(&f, &a->map, a), 16);
    ck_assert_uint_eq(tester_leaf(a, 0).epoch, 1);
    struct tester *b = tester_join(&f, ROLE_CELLSERVER, "cell-2", 102);
    fixture_run(&f, 2000 * MS);
    ck_assert_uint_eq(leaves_of(&f, &a->map, b), 16);
    ck_assert_uint_eq(stands_of(&a->map, a), 0);
    fixture_close(&f);
}
END_TEST

START_TEST(a_draining_server_that_dies_is_replaced_and_its_next_incarnation_is_not_draining)
{
    static struct fixture f;
    open_with(&f, 3, 2);
    (void)fixture_drain(&f, "cell-1");
    fixture_run(&f, 100 * MS);
    servers[0]->cut = true;
    (void)fixture_death(&f, servers[0]->info.node);
    ck_assert_uint_eq(leaves_of(&f, &servers[1]->map, servers[0]), 0);
    ck_assert_uint_eq(fixture_stats(&f).unowned, 0);
    struct tester *again = tester_join(&f, ROLE_CELLSERVER, "cell-1", 111);
    fixture_run(&f, 2000 * MS);
    ck_assert_uint_eq(fixture_stats(&f).draining, 0);
    ck_assert_uint_gt(stands_of(&servers[1]->map, again), 0);
    fixture_close(&f);
}
END_TEST

START_TEST(a_draining_standby_still_takes_over_from_the_dead)
{
    static struct fixture f;
    open_with(&f, 3, 2);
    uint32_t had = leaves_of(&f, &servers[1]->map, servers[0]), took = 0;
    for (uint32_t i = 0; i < 16; i++) {
        struct leaf_owner leaf = tester_leaf(servers[1], i);
        took += leaf.primary.v == 101 && leaf.standby.v == 102;
    }
    ck_assert_uint_gt(took, 0);
    f.mood = MOOD_HOLD;
    struct tester *small = tester_new(&f, ROLE_CELLSERVER, "cell-4", 104);
    small->capacity = 1;
    tester_hello(&f, small); /* its save holds the next round up */
    (void)fixture_drain(&f, "cell-2");
    servers[0]->cut = true;
    (void)fixture_death(&f, servers[0]->info.node);
    store_release(&f);
    store_release(&f);
    ck_assert_uint_eq(fixture_stats(&f).promotions, had);
    f.mood = MOOD_WELL;
    if (f.asked) store_release(&f);
    fixture_run(&f, 3000 * MS);
    ck_assert_uint_eq(leaves_of(&f, &servers[2]->map, servers[1]), 0);
    ck_assert_uint_eq(fixture_stats(&f).unowned, 0);
    fixture_close(&f);
}
END_TEST

START_TEST(a_server_that_says_bye_is_emptied_first_and_leaves_the_map_then)
{
    static struct fixture f;
    open_with(&f, 3, 2);
    struct tester *told = servers[1];
    uint32_t had = leaves_of(&f, &told->map, servers[0]);
    tester_bye(&f, servers[0]);
    ck_assert(session_idle(servers[0]->session));
    ck_assert_uint_eq(leaves_of(&f, &told->map, servers[0]), had); /* it serves until others are ready */
    uint64_t empty_us = 0;
    while (ownership_node(&told->map, servers[0]->info.node) != NULL) {
        fixture_run(&f, 5 * MS);
        if (empty_us == 0 && leaves_of(&f, &told->map, servers[0]) == 0) {
            empty_us = f.now_us;
            ck_assert_uint_eq(leaves_of(&f, &servers[0]->map, servers[0]), 0); /* it knows */
        }
        ck_assert_uint_lt(f.now_us, 30000 * MS);
    }
    /* Its last words to its successors had time. */
    ck_assert_uint_gt(empty_us, 0);
    ck_assert_uint_ge(f.now_us, empty_us + 800 * MS);
    ck_assert_uint_eq(fixture_stats(&f).unowned, 0);
    ck_assert_uint_eq(f.server_count, 2);
    fixture_run(&f, 3000 * MS);
    tester_hello(&f, servers[0]);
    ck_assert(servers[0]->over);
    fixture_close(&f);
}
END_TEST

START_TEST(who_says_bye_and_is_heard_no_more_is_dead)
{
    static struct fixture f;
    struct coordinator_options options = fixture_protected(1);
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    fixture_run(&f, 500 * MS);
    tester_bye(&f, a);
    fixture_run(&f, 1000 * MS);
    ck_assert_uint_eq(fixture_stats(&f).unowned, 0);
    a->cut = true;
    fixture_run(&f, 400 * MS);
    ck_assert_uint_eq(fixture_stats(&f).unowned, 16);
    struct tester *b = tester_join(&f, ROLE_CELLSERVER, "cell-2", 102);
    fixture_run(&f, 200 * MS);
    ck_assert_uint_eq(leaves_of(&f, &b->map, b), 16);
    ck_assert_uint_eq(b->map.now.node_count, 1);
    fixture_close(&f);
}
END_TEST

START_TEST(deaths_and_drains_of_others_than_servers_are_answered)
{
    static struct fixture f;
    struct fault fault;
    struct drain drain = {.name = "nobody"};
    open_with(&f, 2, 2);
    struct tester *g = tester_join(&f, ROLE_GATEWAY, "gate", 201);
    ck_assert_uint_eq(fixture_death(&f, g->info.node).count, 0);
    ck_assert_uint_eq(fixture_stats(&f).gateways, 1);
    writer_clear(&f.message);
    drain_encode(&f.message, &drain);
    fixture_query(&f, &f.message);
    ck_assert_int_eq(fault_decode(cursor_of(f.reply.data, f.reply.size), &fault), TERRANE_ERR_OK);
    ck_assert_int_eq(fault.error, TERRANE_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(fault.text, "nobody"));
    fixture_close(&f);
    /* One that does not lead says so, and is asked again. */
    f = (struct fixture){.now_us = 1000 * MS, .options = fixture_protected(2), .mood = MOOD_HOLD};
    fixture_start(&f);
    writer_clear(&f.message);
    death_encode(&f.message, &(struct death){.node = {101}});
    fixture_query(&f, &f.message);
    ck_assert_int_eq(fault_decode(cursor_of(f.reply.data, f.reply.size), &fault), TERRANE_ERR_OK);
    ck_assert_int_eq(fault.error, TERRANE_ERR_NOT_READY);
    fixture_close(&f);
}
END_TEST

SUITE_MAIN("coordinator_drain", a_drained_server_ends_with_nothing_and_loses_nothing_on_the_way,
           a_drain_moves_no_leaf_before_the_lease_of_its_server_has_run_out,
           at_most_sixteen_leaves_are_on_their_way_at_a_time,
           a_drained_server_without_anybody_to_take_over_keeps_its_leaves_until_somebody_comes,
           a_draining_server_that_dies_is_replaced_and_its_next_incarnation_is_not_draining,
           a_draining_standby_still_takes_over_from_the_dead,
           a_server_that_says_bye_is_emptied_first_and_leaves_the_map_then, who_says_bye_and_is_heard_no_more_is_dead,
           deaths_and_drains_of_others_than_servers_are_answered)
