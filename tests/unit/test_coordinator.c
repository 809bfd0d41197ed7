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

static struct leaf_owner owner_of(struct fixture *f, const struct tester *t, uint32_t index)
{
    (void)f;
    ck_assert_uint_lt(index, t->map.now.leaf_count);
    return t->map.now.leaves[index];
}

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
    for (uint32_t i = 0; i < 16; i++) before[i] = owner_of(&f, b, i);
    a->cut = true;
    fixture_step(&f, (struct event){.kind = EVENT_PEER_DOWN, .node = a->info.node});
    struct tester *again = tester_join(&f, ROLE_CELLSERVER, "cell-1", 111);
    fixture_run(&f, 500 * MS);
    ck_assert_uint_eq(leaves_of(&f, &b->map, again), had);
    ck_assert_uint_eq(leaves_of(&f, &b->map, a), 0);
    for (uint32_t i = 0; i < 16; i++) {
        struct leaf_owner now = owner_of(&f, b, i);
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
    ck_assert_uint_eq(owner_of(&f, a, 0).epoch, 1);
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
    ck_assert_uint_eq(f.warnings, 2);
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
    for (uint32_t i = 0; i < 16; i++) before[i] = owner_of(&f, a, i);
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
        struct leaf_owner now = owner_of(&f, a, i);
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
    for (uint32_t i = 0; i < 16; i++) before[i] = owner_of(&f, a, i);
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
        struct leaf_owner now = owner_of(&f, a2, i);
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

START_TEST(a_newer_leader_in_the_store_silences_this_one)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    fixture_run(&f, 500 * MS);
    f.stored_term = 9;
    struct tester *b = tester_join(&f, ROLE_CELLSERVER, "cell-2", 102);
    fixture_run(&f, 500 * MS);
    ck_assert(!fixture_stats(&f).ready);
    uint32_t beats = a->beats;
    uint64_t saves = f.saves;
    fixture_run(&f, 3000 * MS);
    ck_assert_uint_eq(a->beats, beats);
    ck_assert_uint_eq(f.saves, saves);
    ck_assert_ptr_null(ownership_node(&a->map, b->info.node));
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
        struct leaf_owner leaf = owner_of(&f, a, i);
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

int main(void)
{
    const TTest *const tests[] = {
        the_first_assignment_waits_for_the_expected_servers_and_is_even,
        leaves_without_an_owner_wait_for_a_newcomer_and_then_go_to_those_who_are_there,
        a_new_incarnation_of_a_name_takes_over_its_leaves_one_epoch_higher,
        a_live_server_keeps_its_name,
        who_only_says_hello_from_a_false_url_owns_nothing_and_takes_nobodys_name,
        a_silent_server_is_reported_and_keeps_its_leaves_a_silent_gateway_leaves_the_map,
        a_pause_of_the_coordinator_itself_makes_nobody_silent,
        a_gateway_comes_and_goes_while_the_store_is_away,
        nothing_is_told_before_the_store_has_it,
        a_failing_store_is_asked_again_with_back_off_and_the_told_map_is_served,
        a_restart_keeps_owners_and_epochs_under_the_next_term,
        a_restarted_cluster_gets_its_leaves_back_by_name,
        another_world_in_the_store_is_refused,
        a_stored_map_that_does_not_tile_the_world_is_refused,
        a_newer_leader_in_the_store_silences_this_one,
        heartbeats_are_answered_and_who_is_behind_gets_the_map_again,
        a_flood_of_map_requests_gets_a_map_a_tenth_of_a_second,
        a_map_of_many_leaves_comes_in_parts_and_is_whole,
        the_leaves_of_a_server_are_cut_evenly_over_its_feeds_along_the_curve,
        capacity_weighs_the_stretches,
    };
    return suite_run("coordinator", tests, sizeof tests / sizeof *tests);
}
