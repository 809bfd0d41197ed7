/* The coordinator's core, story by story. */
#include "tests/unit/coordinator_fixture.h"

START_TEST(the_first_assignment_waits_for_the_expected_servers_and_is_even)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    options.expect_servers = 3;
    fixture_open(&f, &options);
    ck_assert(fixture_stats(&f).ready);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    struct tester *b = tester_join(&f, ROLE_CELLSERVER, "cell-2", 102);
    fixture_run(&f, 1000 * MS);
    ck_assert(a->welcomed);
    ck_assert_uint_eq(a->welcome.node.v, 900);
    ck_assert_uint_eq(a->welcome.world.depth, options.world.depth);
    ck_assert_uint_eq(fixture_stats(&f).unowned, 16);
    struct tester *c = tester_join(&f, ROLE_CELLSERVER, "cell-3", 103);
    fixture_run(&f, 1000 * MS);
    ck_assert_uint_eq(fixture_stats(&f).unowned, 0);
    uint32_t counts[3] = {leaves_of(&f, &a->map, a), leaves_of(&f, &b->map, b), leaves_of(&f, &c->map, c)};
    ck_assert_uint_eq(counts[0] + counts[1] + counts[2], 16);
    for (uint32_t i = 0; i < 3; i++) ck_assert(counts[i] == 5 || counts[i] == 6);
    ck_assert_uint_eq(a->map.now.node_count, 3);
    ck_assert_uint_eq(a->map.rev, fixture_stats(&f).rev);
    fixture_close(&f);
}
END_TEST

START_TEST(leaves_without_an_owner_wait_for_a_newcomer_and_then_go_to_those_who_are_there)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    options.expect_servers = 2;
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    struct tester *b = tester_join(&f, ROLE_CELLSERVER, "cell-2", 102);
    struct tester *late = tester_join(&f, ROLE_CELLSERVER, "cell-3", 103);
    fixture_run(&f, 500 * MS);
    ck_assert_uint_eq(leaves_of(&f, &late->map, late), 0);
    tester_bye(&f, a);
    fixture_run(&f, 500 * MS);
    ck_assert_uint_eq(leaves_of(&f, &late->map, late), 8);
    ck_assert_uint_eq(leaves_of(&f, &late->map, b), 8);
    ck_assert_uint_eq(late->map.now.node_count, 2);

    tester_bye(&f, late);
    fixture_run(&f, 3000 * MS);
    ck_assert_uint_eq(fixture_stats(&f).unowned, 8);
    ck_assert_uint_eq(leaves_of(&f, &b->map, b), 8);
    fixture_run(&f, 3000 * MS);
    ck_assert_uint_eq(fixture_stats(&f).unowned, 0);
    ck_assert_uint_eq(leaves_of(&f, &b->map, b), 16);
    fixture_close(&f);
}
END_TEST

START_TEST(a_new_incarnation_of_a_name_takes_over_its_leaves_one_epoch_higher)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    options.expect_servers = 2;
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    struct tester *b = tester_join(&f, ROLE_CELLSERVER, "cell-2", 102);
    fixture_run(&f, 500 * MS);
    uint32_t had = leaves_of(&f, &b->map, a);
    struct leaf_owner before[16];
    for (uint32_t i = 0; i < 16; i++) before[i] = tester_leaf(b, i);
    a->cut = true;
    fixture_step(&f, (struct event){.kind = EVENT_PEER_DOWN, .node = a->info.node});
    struct tester *again = tester_join(&f, ROLE_CELLSERVER, "cell-1", 111);
    fixture_run(&f, 500 * MS);
    ck_assert_uint_eq(leaves_of(&f, &b->map, again), had);
    ck_assert_uint_eq(leaves_of(&f, &b->map, a), 0);
    for (uint32_t i = 0; i < 16; i++) {
        struct leaf_owner now = tester_leaf(b, i);
        bool moved = before[i].primary.v == 101;
        ck_assert_uint_eq(now.primary.v, moved ? 111 : 102);
        ck_assert_uint_eq(now.epoch, before[i].epoch + (moved ? 1 : 0));
    }
    ck_assert_uint_eq(b->map.now.node_count, 2);

    /* The old one wakes: it is a member no more, and stays out. */
    a->cut = false;
    uint64_t refused = fixture_stats(&f).refused;
    tester_beat(&f, a, 1);
    tester_hello(&f, a);
    ck_assert_uint_eq(fixture_stats(&f).refused, refused + 2);
    fixture_run(&f, 1000 * MS);
    ck_assert_uint_eq(leaves_of(&f, &b->map, again), had);
    fixture_close(&f);
}
END_TEST

START_TEST(a_live_server_keeps_its_name)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    fixture_run(&f, 1000 * MS);
    struct tester *double_a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 102);
    fixture_run(&f, 1000 * MS);
    ck_assert(!double_a->welcomed);
    ck_assert_uint_eq(leaves_of(&f, &a->map, a), 16);
    ck_assert_uint_eq(fixture_stats(&f).servers, 1);
    ck_assert_uint_ge(fixture_stats(&f).refused, 1);
    /* When the first one is gone, the name is free. */
    a->cut = true;
    fixture_run(&f, 1500 * MS);
    tester_hello(&f, double_a);
    fixture_run(&f, 500 * MS);
    ck_assert_uint_eq(leaves_of(&f, &double_a->map, double_a), 16);
    fixture_close(&f);
}
END_TEST

/* It listens where the former incarnation did, so the link to that one comes up again. */
START_TEST(who_is_let_in_under_the_name_of_one_that_seems_alive_again_gets_it_a_little_later)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    fixture_run(&f, 500 * MS);
    a->cut = true;
    fixture_step(&f, (struct event){.kind = EVENT_PEER_DOWN, .node = a->info.node});
    f.no_links = true;
    struct tester *again = tester_join(&f, ROLE_CELLSERVER, "cell-1", 111);
    f.no_links = false;
    fixture_step(&f, (struct event){.kind = EVENT_PEER_UP, .node = a->info.node});
    fixture_step(&f, (struct event){.kind = EVENT_PEER_UP, .node = again->info.node});
    fixture_run(&f, 500 * MS);
    ck_assert_uint_eq(leaves_of(&f, &again->map, again), 0);
    fixture_run(&f, 1000 * MS);
    ck_assert_uint_eq(leaves_of(&f, &again->map, again), 16);
    fixture_close(&f);
}
END_TEST

START_TEST(who_only_says_hello_from_a_false_url_owns_nothing_and_takes_nobodys_name)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    fixture_run(&f, 500 * MS);
    a->cut = true;
    fixture_run(&f, 1500 * MS);
    f.no_links = true;
    struct tester *fake = tester_new(&f, ROLE_CELLSERVER, "cell-1", 666);
    struct tester *other = tester_new(&f, ROLE_CELLSERVER, "cell-9", 667);
    for (uint32_t i = 0; i < 5; i++) {
        tester_hello(&f, fake);
        tester_hello(&f, other);
    }
    ck_assert_uint_eq(fixture_stats(&f).unowned, 0);
    a->cut = false;
    f.no_links = false;
    fixture_run(&f, 1000 * MS);
    ck_assert_uint_eq(leaves_of(&f, &a->map, a), 16);
    ck_assert_uint_eq(tester_leaf(a, 0).epoch, 1);
    fixture_close(&f);
}
END_TEST

START_TEST(a_silent_server_is_reported_and_keeps_its_leaves_a_silent_gateway_leaves_the_map)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    options.expect_servers = 2;
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    struct tester *b = tester_join(&f, ROLE_CELLSERVER, "cell-2", 102);
    struct tester *g = tester_join(&f, ROLE_GATEWAY, "gate", 201);
    fixture_run(&f, 1000 * MS);
    ck_assert_uint_eq(a->map.now.node_count, 3);
    ck_assert_ptr_nonnull(ownership_node(&a->map, g->info.node));
    b->cut = g->cut = true;
    fixture_run(&f, 1900 * MS);
    ck_assert_uint_eq(fixture_stats(&f).silent, 0);
    fixture_run(&f, 1200 * MS);
    ck_assert_uint_eq(fixture_stats(&f).silent, 2);
    ck_assert_uint_eq(f.warnings, 3); /* the server's lease ran out before */
    ck_assert_uint_eq(a->map.now.node_count, 3);
    fixture_run(&f, 9000 * MS);
    ck_assert_uint_eq(a->map.now.node_count, 2);
    ck_assert_ptr_null(ownership_node(&a->map, g->info.node));
    ck_assert_uint_eq(leaves_of(&f, &a->map, b), 8);
    b->cut = false;
    fixture_run(&f, 1000 * MS);
    ck_assert_uint_eq(fixture_stats(&f).silent, 0);
    fixture_close(&f);
}
END_TEST

START_TEST(a_pause_of_the_coordinator_itself_makes_nobody_silent)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    struct tester *g = tester_join(&f, ROLE_GATEWAY, "gate", 201);
    fixture_run(&f, 1000 * MS);
    f.now_us += 60000 * MS;
    fixture_step(&f, (struct event){.kind = EVENT_TIMEOUT});
    ck_assert_uint_eq(fixture_stats(&f).silent, 0);
    fixture_run(&f, 1000 * MS);
    ck_assert_uint_eq(fixture_stats(&f).silent, 0);
    ck_assert_ptr_nonnull(ownership_node(&a->map, g->info.node));
    /* Nor does it give a live server's name away. */
    f.now_us += 60000 * MS;
    struct tester *double_a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 102);
    ck_assert(!double_a->welcomed);
    fixture_close(&f);
}
END_TEST

START_TEST(a_gateway_comes_and_goes_while_the_store_is_away)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    fixture_run(&f, 500 * MS);
    f.mood = MOOD_DOWN;
    struct tester *g = tester_join(&f, ROLE_GATEWAY, "gate", 201);
    fixture_run(&f, 100 * MS);
    ck_assert_uint_eq(g->map.now.leaf_count, 16);
    ck_assert_ptr_nonnull(ownership_node(&a->map, g->info.node));
    tester_bye(&f, g);
    ck_assert_ptr_null(ownership_node(&a->map, g->info.node));
    ck_assert(session_idle(g->session)); /* its BYE is acknowledged */
    fixture_close(&f);
}
END_TEST

START_TEST(heartbeats_are_answered_and_who_is_behind_gets_the_map_again)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    fixture_run(&f, 1000 * MS);
    ck_assert_uint_ge(a->beats, 3);
    ck_assert_uint_eq(a->beat.term, 1);
    ck_assert_uint_eq(a->beat.rev, fixture_stats(&f).rev);
    ck_assert_uint_eq(fixture_stats(&f).owned_entities, 16 * 5);
    ck_assert_uint_eq(fixture_stats(&f).ticks, 7);
    uint32_t maps = a->maps;
    fixture_run(&f, 1000 * MS);
    ck_assert_uint_eq(a->maps, maps);
    ownership_close(&a->map);
    fixture_run(&f, 1000 * MS);
    ck_assert_uint_eq(a->maps, maps + 1);
    ck_assert_uint_eq(a->map.now.leaf_count, 16);
    ck_assert_uint_eq(a->map.rev, fixture_stats(&f).rev);
    fixture_close(&f);
}
END_TEST

static void ask_map(struct fixture *f, struct tester *t)
{
    writer_clear(&f->message);
    map_request_encode(&f->message, &(struct map_request){.rev = 0});
    ck_assert_int_eq(session_push(t->session, f->message.data, f->message.size), TERRANE_ERR_OK);
}

START_TEST(a_flood_of_map_requests_gets_a_map_a_tenth_of_a_second)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    fixture_run(&f, 1000 * MS);
    uint32_t maps = a->maps;
    ask_map(&f, a);
    tester_flush(&f, a, a->session);
    ck_assert_uint_eq(a->maps, maps + 1);
    for (uint32_t turn = 0; turn < 20; turn++) {
        for (uint32_t i = 0; i < 100; i++) ask_map(&f, a);
        fixture_run(&f, 50 * MS);
    }
    ck_assert_uint_ge(a->maps, maps + 5);
    ck_assert_uint_le(a->maps, maps + 12);
    fixture_close(&f);
}
END_TEST

START_TEST(a_map_of_many_leaves_comes_in_parts_and_is_whole)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    options.split_depth = 6;
    options.expect_servers = 4;
    fixture_open(&f, &options);
    struct tester *t[5];
    for (uint32_t i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "cell-%u", i);
        t[i] = tester_join(&f, ROLE_CELLSERVER, name, 101 + i);
        fixture_run(&f, 300 * MS);
    }
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_uint_eq(t[i]->map.now.leaf_count, 4096);
        ck_assert_uint_eq(t[i]->map.now.node_count, 5);
        ck_assert_uint_eq(leaves_of(&f, &t[0]->map, t[i]), i < 4 ? 1024 : 0);
        ck_assert_uint_eq(t[i]->asks, 0);
    }
    ck_assert_uint_eq(f.feed.now.leaf_count, 4096);
    ck_assert_uint_eq(f.feed.now.node_count, 5);
    ck_assert_uint_ge(f.published, 16);
    fixture_close(&f);
}
END_TEST

START_TEST(the_leaves_of_a_server_are_cut_evenly_over_its_feeds_along_the_curve)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    options.split_depth = 3;
    options.expect_servers = 2;
    fixture_open(&f, &options);
    struct tester *a = tester_new(&f, ROLE_CELLSERVER, "cell-1", 101);
    a->info.feed_count = 3;
    snprintf(a->info.feed_urls[2], LIMIT_URL, "tcp://127.0.0.1:9999");
    tester_hello(&f, a);
    (void)tester_join(&f, ROLE_CELLSERVER, "cell-2", 102);
    fixture_run(&f, 500 * MS);
    struct {
        uint64_t hilbert;
        uint32_t feed;
    } order[64] = {0};
    uint32_t counts[3] = {0}, changes = 0, last = 0;
    for (uint32_t i = 0; i < 64; i++) {
        struct leaf_owner leaf = tester_leaf(a, i);
        uint64_t place = quadkey_hilbert(leaf.leaf);
        ck_assert_uint_lt(place, 64);
        if (leaf.primary.v != 101) continue;
        counts[leaf.feed]++;
        order[place].hilbert = 1;
        order[place].feed = leaf.feed;
    }
    for (uint32_t i = 0; i < 64; i++) {
        if (order[i].hilbert == 0) continue;
        changes += order[i].feed != last;
        last = order[i].feed;
    }
    ck_assert_uint_eq(changes, 2);
    for (uint32_t i = 0; i < 3; i++) ck_assert(counts[i] == 10 || counts[i] == 11);
    fixture_close(&f);
}
END_TEST

START_TEST(capacity_weighs_the_stretches)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    options.split_depth = 4;
    options.expect_servers = 3;
    fixture_open(&f, &options);
    struct tester *t[3];
    for (uint32_t i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "cell-%u", i);
        t[i] = tester_new(&f, ROLE_CELLSERVER, name, 101 + i);
        t[i]->capacity = i == 0 ? 200 : 100;
        tester_hello(&f, t[i]);
    }
    fixture_run(&f, 500 * MS);
    ck_assert_uint_eq(leaves_of(&f, &t[0]->map, t[0]), 128);
    ck_assert_uint_eq(leaves_of(&f, &t[0]->map, t[1]), 64);
    ck_assert_uint_eq(leaves_of(&f, &t[0]->map, t[2]), 64);
    fixture_close(&f);
}
END_TEST

SUITE_MAIN("coordinator", the_first_assignment_waits_for_the_expected_servers_and_is_even,
           leaves_without_an_owner_wait_for_a_newcomer_and_then_go_to_those_who_are_there,
           a_new_incarnation_of_a_name_takes_over_its_leaves_one_epoch_higher, a_live_server_keeps_its_name,
           who_is_let_in_under_the_name_of_one_that_seems_alive_again_gets_it_a_little_later,
           who_only_says_hello_from_a_false_url_owns_nothing_and_takes_nobodys_name,
           a_silent_server_is_reported_and_keeps_its_leaves_a_silent_gateway_leaves_the_map,
           a_pause_of_the_coordinator_itself_makes_nobody_silent, a_gateway_comes_and_goes_while_the_store_is_away,
           heartbeats_are_answered_and_who_is_behind_gets_the_map_again,
           a_flood_of_map_requests_gets_a_map_a_tenth_of_a_second, a_map_of_many_leaves_comes_in_parts_and_is_whole,
           the_leaves_of_a_server_are_cut_evenly_over_its_feeds_along_the_curve, capacity_weighs_the_stretches)
