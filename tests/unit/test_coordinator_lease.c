/* Leases of servers: echoes, lapses to the millisecond, own pauses, and who gets none. */
#include "tests/unit/coordinator_fixture.h"

/* Steps the core at its own deadlines, with nobody saying anything, until `condition`; the time it took. */
#define UNTIL(f, condition)                                                                                            \
    do {                                                                                                               \
        while (!(condition)) {                                                                                         \
            uint64_t next_us = coordinator_deadline_us((f)->core);                                                     \
            ck_assert_uint_lt(next_us, (f)->now_us + 60000 * MS);                                                      \
            (f)->now_us = next_us > (f)->now_us ? next_us : (f)->now_us + 1;                                           \
            fixture_step(f, (struct event){.kind = EVENT_TIMEOUT});                                                    \
        }                                                                                                              \
    } while (0)

static void pair_open(struct fixture *f, struct tester **a, struct tester **b, uint64_t lease_us)
{
    struct coordinator_options options = fixture_protected(2);
    options.lease_us = lease_us;
    fixture_open(f, &options);
    *a = tester_join(f, ROLE_CELLSERVER, "cell-1", 101);
    *b = tester_join(f, ROLE_CELLSERVER, "cell-2", 102);
    fixture_run(f, 600 * MS);
    ck_assert_uint_eq(fixture_stats(f).unprotected, 0);
}

START_TEST(welcome_tells_the_lease_and_every_heartbeat_is_echoed_in_its_own_step)
{
    static struct fixture f;
    struct tester *a, *b;
    pair_open(&f, &a, &b, 400 * MS);
    ck_assert_uint_eq(a->welcome.lease_us, 400 * MS);
    for (uint32_t i = 0; i < 50; i++) {
        f.now_us += 1234;
        uint32_t beats = a->beats;
        tester_light_beat(&f, a);
        ck_assert_uint_eq(a->beats, beats + 1);
        ck_assert_uint_eq(a->beat.echo, f.now_us);
        ck_assert_uint_eq(a->beat.stamp, f.now_us);
        ck_assert_uint_eq(a->beat.rev, fixture_stats(&f).rev);
    }
    fixture_close(&f);
}
END_TEST

START_TEST(light_heartbeats_leave_loads_and_levels_as_they_were)
{
    static struct fixture f;
    struct tester *a, *b;
    pair_open(&f, &a, &b, 0);
    uint64_t owned = fixture_stats(&f).owned_entities;
    ck_assert_uint_gt(owned, 0);
    for (uint32_t i = 0; i < 100; i++) {
        f.now_us += 50 * MS;
        tester_light_beat(&f, a);
        tester_light_beat(&f, b);
        fixture_step(&f, (struct event){.kind = EVENT_TIMEOUT});
    }
    ck_assert_uint_eq(fixture_stats(&f).owned_entities, owned);
    ck_assert_uint_eq(fixture_stats(&f).unprotected, 0);
    fixture_close(&f);
}
END_TEST

START_TEST(a_standby_whose_lists_name_a_leaf_no_more_is_not_level)
{
    static struct fixture f;
    struct tester *a, *b;
    pair_open(&f, &a, &b, 0);
    table_clear(&b->level);
    b->unlevel = true;
    fixture_run(&f, 3000 * MS);
    ck_assert_uint_eq(fixture_stats(&f).unprotected, 8);
    a->cut = true;
    fixture_run(&f, 3000 * MS);
    ck_assert_uint_eq(leaves_of(&f, &b->map, a), 8);
    fixture_close(&f);
}
END_TEST

START_TEST(a_server_lapses_exactly_a_lease_and_the_margin_after_its_last_word)
{
    static const uint64_t leases_us[] = {100 * MS, 250 * MS, 1000 * MS}, margins_us[] = {20 * MS, 50 * MS, 200 * MS};
    for (uint32_t i = 0; i < 3; i++) {
        static struct fixture f;
        struct tester *a, *b;
        pair_open(&f, &a, &b, leases_us[i]);
        tester_light_beat(&f, a);
        uint64_t last_us = f.now_us, due_us = last_us + leases_us[i] + margins_us[i];
        /* b goes on beating; only a is quiet. */
        while (f.now_us + 5 * MS < due_us) {
            f.now_us += 5 * MS;
            tester_light_beat(&f, b);
            fixture_step(&f, (struct event){.kind = EVENT_TIMEOUT});
        }
        ck_assert_uint_eq(fixture_stats(&f).lapsed, 0);
        UNTIL(&f, fixture_stats(&f).lapsed == 1);
        ck_assert_uint_eq(f.now_us, due_us);
        /* Decided, stored and told in that very step. */
        ck_assert_uint_eq(leaves_of(&f, &b->map, b), 16);
        fixture_close(&f);
    }
}
END_TEST

START_TEST(own_pauses_are_added_to_everybodys_deadline)
{
    static struct fixture f;
    struct tester *a, *b;
    pair_open(&f, &a, &b, 0);
    tester_light_beat(&f, a);
    tester_light_beat(&f, b);
    f.now_us += 3000 * MS;
    fixture_step(&f, (struct event){.kind = EVENT_TIMEOUT});
    ck_assert_uint_eq(fixture_stats(&f).lapsed, 0);
    uint64_t woken_us = f.now_us;
    UNTIL(&f, fixture_stats(&f).lapsed == 2);
    /* Less a pulse, as if the pause had begun after one. */
    ck_assert_uint_ge(f.now_us, woken_us + 275 * MS);
    ck_assert_uint_le(f.now_us, woken_us + 300 * MS);
    /* Both: nobody was promoted, and nobody is when they come back, one after the other. */
    f.now_us += 20 * MS;
    tester_beat(&f, b, 5);
    fixture_step(&f, (struct event){.kind = EVENT_TIMEOUT});
    f.now_us += 20 * MS;
    tester_beat(&f, a, 5);
    fixture_run(&f, 1000 * MS);
    ck_assert_uint_eq(fixture_stats(&f).promotions, 0);
    ck_assert_uint_eq(fixture_stats(&f).lapsed, 0);
    fixture_close(&f);
}
END_TEST

START_TEST(a_coordinator_that_is_always_late_still_finds_out)
{
    static struct fixture f;
    struct tester *a, *b;
    pair_open(&f, &a, &b, 0);
    tester_light_beat(&f, a);
    uint64_t last_us = f.now_us;
    while (fixture_stats(&f).lapsed == 0) {
        f.now_us += 80 * MS;
        tester_light_beat(&f, b);
        ck_assert_uint_lt(f.now_us, last_us + 3000 * MS);
    }
    fixture_close(&f);
}
END_TEST

START_TEST(who_lost_leaves_gets_no_lease_until_its_map_says_so)
{
    static struct fixture f;
    struct tester *a, *b;
    pair_open(&f, &a, &b, 0);
    tester_light_beat(&f, a);
    uint64_t rev = a->map.rev, lease_us = a->lease_us;
    f.mood = MOOD_HOLD;
    a->cut = true;
    fixture_run(&f, 350 * MS);
    ck_assert(f.asked);
    /* It speaks again while the store is still asked. */
    a->cut = false;
    tester_light_beat(&f, a);
    ck_assert_uint_eq(a->beat.echo, 0);
    f.mood = MOOD_WELL;
    a->cut = true; /* it does not get the map */
    store_release(&f);
    ck_assert_uint_eq(leaves_of(&f, &b->map, b), 16);
    a->cut = false;
    writer_clear(&f.message);
    heartbeat_bare(&f.message, &(struct heartbeat){.term = a->map.term, .rev = rev, .stamp = f.now_us});
    ck_assert_int_eq(session_push_fast(a->session, f.message.data, f.message.size), TERRANE_ERR_OK);
    tester_flush(&f, a, a->session);
    ck_assert_uint_eq(a->lease_us, lease_us);
    fixture_run(&f, 600 * MS); /* now it does */
    ck_assert_uint_gt(a->map.rev, rev);
    ck_assert_uint_gt(a->lease_us, f.now_us);
    fixture_close(&f);
}
END_TEST

START_TEST(a_new_coordinator_gives_no_lease_before_its_map_is_known)
{
    static struct fixture f;
    struct tester *a, *b;
    pair_open(&f, &a, &b, 0);
    fixture_restart(&f);
    tester_hello(&f, a);
    tester_hello(&f, b);
    uint64_t lease_us = a->lease_us;
    fixture_run(&f, 1900 * MS);
    ck_assert_uint_eq(a->lease_us, lease_us);
    fixture_run(&f, 300 * MS);
    ck_assert_uint_gt(a->lease_us, f.now_us);
    ck_assert_uint_eq(fixture_stats(&f).promotions, 0);
    fixture_close(&f);
}
END_TEST

START_TEST(leases_out_of_range_are_refused)
{
    struct coordinator_options options = fixture_options();
    char fault[256];
    static const uint64_t bad_us[] = {1, 99999, 10000001};
    for (uint32_t i = 0; i < 3; i++) {
        options.lease_us = bad_us[i];
        ck_assert_int_eq(coordinator_check(&options, fault, sizeof fault), TERRANE_ERR_CONFIG);
        ck_assert_ptr_nonnull(strstr(fault, "lease"));
    }
}
END_TEST

START_TEST(an_incarnation_that_is_over_is_told_so)
{
    static struct fixture f;
    struct tester *a, *b;
    pair_open(&f, &a, &b, 0);
    struct tester *g = tester_join(&f, ROLE_GATEWAY, "gate", 201);
    fixture_run(&f, 500 * MS);
    a->cut = g->cut = true;
    (void)fixture_death(&f, a->info.node); /* its agent was wrong */
    fixture_run(&f, 11000 * MS);
    ck_assert_ptr_null(ownership_node(&b->map, g->info.node));
    a->cut = g->cut = false;
    tester_hello(&f, a);
    tester_hello(&f, g);
    ck_assert(a->over && g->over);
    /* Again while the link still stands; then it is taken down, and made anew. */
    a->over = false;
    fixture_run(&f, 200 * MS);
    tester_hello(&f, a);
    ck_assert(a->over);
    fixture_run(&f, 3000 * MS);
    a->over = false;
    tester_hello(&f, a);
    ck_assert(a->over);
    ck_assert_uint_eq(fixture_stats(&f).servers, 1);
    fixture_close(&f);
}
END_TEST

START_TEST(a_flood_of_ended_incarnations_costs_a_few_links)
{
    static struct fixture f;
    struct tester *a, *b;
    pair_open(&f, &a, &b, 0);
    struct tester *g[40];
    for (uint32_t i = 0; i < 40; i++) g[i] = tester_join(&f, ROLE_GATEWAY, "gate", 300 + i);
    fixture_run(&f, 300 * MS);
    for (uint32_t i = 0; i < 40; i++) g[i]->cut = true;
    fixture_run(&f, 12000 * MS);
    ck_assert_uint_eq(fixture_stats(&f).gateways, 0);
    uint32_t told = 0, links = 0;
    for (uint32_t i = 0; i < 40; i++) {
        g[i]->cut = false;
        tester_hello(&f, g[i]);
        told += g[i]->over;
    }
    ck_assert_uint_eq(told, 16);
    fixture_run(&f, 2500 * MS);
    for (uint32_t i = 0; i < 40; i++) {
        if (g[i]->over) continue;
        tester_hello(&f, g[i]);
        links += g[i]->over;
    }
    ck_assert_uint_eq(links, 16);
    fixture_close(&f);
}
END_TEST

SUITE_MAIN("coordinator_lease", welcome_tells_the_lease_and_every_heartbeat_is_echoed_in_its_own_step,
           light_heartbeats_leave_loads_and_levels_as_they_were, a_standby_whose_lists_name_a_leaf_no_more_is_not_level,
           a_server_lapses_exactly_a_lease_and_the_margin_after_its_last_word,
           own_pauses_are_added_to_everybodys_deadline, a_coordinator_that_is_always_late_still_finds_out,
           who_lost_leaves_gets_no_lease_until_its_map_says_so,
           a_new_coordinator_gives_no_lease_before_its_map_is_known, leases_out_of_range_are_refused,
           an_incarnation_that_is_over_is_told_so, a_flood_of_ended_incarnations_costs_a_few_links)
