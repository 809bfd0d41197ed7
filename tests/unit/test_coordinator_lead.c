/* Several coordinators over one store: who leads, what becomes of the others, and a store that forgets. */
#include "tests/unit/coordinator_fixture.h"

#define TTL_US (2000 * MS)

/* Two coordinators; the store is the first one's. */
static struct fixture first, second;

static void open_first(void)
{
    struct coordinator_options options = fixture_options();
    fixture_open(&first, &options);
}

static void open_second(void)
{
    struct coordinator_options options = fixture_options();
    options.info.node.v = 950;
    snprintf(options.info.name, sizeof options.info.name, "second");
    second = (struct fixture){.now_us = first.now_us, .options = options, .store = &first};
    fixture_start(&second);
}

static void close_both(void)
{
    fixture_close(&second);
    fixture_close(&first);
}

static void run_both(uint64_t span_us)
{
    for (uint64_t past_us = 0; past_us < span_us; past_us += 25 * MS) {
        fixture_run(&first, 25 * MS);
        fixture_run(&second, 25 * MS);
    }
}

/* Only the second goes on. */
static void run_second(uint64_t span_us)
{
    fixture_run(&second, span_us);
}

static struct coordinator_stats stats(const struct fixture *f)
{
    return fixture_stats(f);
}

static void leave(struct fixture *f)
{
    outbox_clear(&f->out);
    coordinator_leave(f->core, f->now_us, &f->out);
    for (size_t i = 0; i < f->out.count; i++) fixture_output(f, &f->out.items[i]);
    if (f->lead_asked) store_release_lead(f);
}

static void forget_all(void)
{
    first.stored_term = first.stored_rev = first.stored_count = first.server_count = 0;
    first.leader_until_us = 0;
    table_clear(&first.stored_index);
}

/* The server as another coordinator gets to know it. */
static struct tester *find_second(const struct tester *t)
{
    struct tester *again = tester_new(&second, t->info.role, t->info.name, t->info.node.v);
    again->term = t->map.term;
    tester_hello(&second, again);
    return again;
}

START_TEST(the_second_follows_until_the_first_ends_in_order_and_gives_it_back)
{
    open_first();
    struct tester *a = tester_join(&first, ROLE_CELLSERVER, "cell-1", 101);
    fixture_run(&first, 500 * MS);
    open_second();
    run_both(5000 * MS);
    ck_assert(stats(&first).leads && !stats(&second).leads && !stats(&second).ready);
    ck_assert_uint_eq(stats(&second).leader.v, 900);
    ck_assert(!find_second(a)->welcomed);
    struct leaf_owner before = tester_leaf(a, 5);

    leave(&first);
    ck_assert(coordinator_left(first.core));
    ck_assert_uint_eq(first.given_back, 1);
    run_second(TTL_US / 3 + 25 * MS);
    ck_assert(stats(&second).leads);
    ck_assert_uint_eq(stats(&second).term, 2);
    struct tester *again = tester_of(&second, a->info.node);
    tester_hello(&second, again);
    ck_assert(again->welcomed);
    run_second(2500 * MS);
    ck_assert_uint_eq(again->map.term, 2);
    ck_assert_uint_eq(tester_leaf(again, 5).primary.v, before.primary.v);
    ck_assert_uint_eq(tester_leaf(again, 5).epoch, before.epoch);
    close_both();
}
END_TEST

START_TEST(a_dead_leader_is_followed_when_its_lease_is_over_and_not_before)
{
    open_first();
    open_second();
    run_both(1000 * MS);
    ck_assert_uint_ge(first.leader_until_us - first.now_us, TTL_US - TTL_US / 3 - 25 * MS);
    run_second(first.leader_until_us - second.now_us - MS);
    ck_assert(!stats(&second).leads);
    run_second(TTL_US / 3 + 2 * MS);
    ck_assert(stats(&second).leads);
    close_both();
}
END_TEST

START_TEST(without_the_store_a_leader_stalls_decides_nothing_and_goes_on_in_its_term)
{
    open_first();
    struct tester *a = tester_join(&first, ROLE_CELLSERVER, "cell-1", 101);
    struct tester *b = tester_join(&first, ROLE_CELLSERVER, "cell-2", 102);
    fixture_run(&first, 1000 * MS);
    ck_assert_uint_ne(a->beat.echo, 0);
    first.deaf = true;
    first.mood = MOOD_DOWN;
    fixture_run(&first, TTL_US);
    ck_assert(!stats(&first).leads && stats(&first).ready);
    uint64_t saves = first.saves;
    uint32_t beats = a->beats;
    b->cut = true;
    struct tester *g = tester_join(&first, ROLE_GATEWAY, "gate", 201);
    fixture_run(&first, 15000 * MS);
    ck_assert_uint_gt(a->beats, beats);
    ck_assert_uint_eq(a->beat.echo, 0);
    ck_assert_uint_eq(first.saves, saves);
    ck_assert_uint_eq(stats(&first).lapsed, 0);
    ck_assert_uint_eq(g->map.now.leaf_count, 16); /* who comes is told the map that there is */
    b->cut = false;
    first.deaf = false;
    first.mood = MOOD_WELL;
    fixture_run(&first, 1000 * MS);
    ck_assert(stats(&first).leads);
    ck_assert_uint_eq(stats(&first).term, 1);
    ck_assert_uint_eq(stats(&first).stalled, 1);
    ck_assert_uint_ne(a->beat.echo, 0);
    ck_assert_uint_eq(stats(&first).servers, 2);
    fixture_close(&first);
}
END_TEST

START_TEST(a_leader_that_was_overtaken_forgets_its_members_and_follows)
{
    open_first();
    struct tester *a = tester_join(&first, ROLE_CELLSERVER, "cell-1", 101);
    open_second();
    run_both(500 * MS);
    first.deaf = true;
    run_both(TTL_US + TTL_US / 3 + 50 * MS);
    ck_assert(stats(&second).leads);
    ck_assert(!stats(&first).leads);
    ck_assert_uint_eq(stats(&first).servers, 1);
    uint64_t saves = first.saves;
    first.deaf = false;
    run_both(1000 * MS);
    ck_assert_uint_eq(stats(&first).servers, 0);
    ck_assert_uint_eq(stats(&first).deposed, 1);
    ck_assert_uint_eq(stats(&first).leader.v, 950);
    ck_assert_uint_eq(first.saves, saves);
    uint32_t welcomes = a->welcomes;
    tester_hello(&first, a);
    ck_assert_uint_eq(a->welcomes, welcomes);
    /* And the other way round, with the same members. */
    second.deaf = true;
    run_both(TTL_US + TTL_US / 3 + 50 * MS);
    ck_assert(stats(&first).leads);
    ck_assert_uint_eq(stats(&first).term, 3);
    tester_hello(&first, a);
    ck_assert_uint_eq(a->welcome.term, 3);
    close_both();
}
END_TEST

START_TEST(an_emptied_store_is_written_again_at_once_by_the_leader_and_taken_by_nobody_else)
{
    open_first();
    (void)tester_join(&first, ROLE_CELLSERVER, "cell-1", 101);
    open_second();
    run_both(1000 * MS);
    forget_all();
    run_second(25 * MS); /* the other may be the first to ask */
    run_both(TTL_US / 3 + 25 * MS);
    ck_assert_uint_eq(first.stored_count, 16);
    ck_assert_uint_eq(first.server_count, 1);
    ck_assert_uint_eq(first.stored_term, 1);
    ck_assert_uint_eq(stats(&first).restored, 1);
    ck_assert(stats(&first).leads && !stats(&second).leads);
    run_both(5000 * MS);
    ck_assert_uint_eq(stats(&first).restored, 1);
    ck_assert(stats(&first).leads && !stats(&second).leads);
    close_both();
}
END_TEST

START_TEST(a_store_that_lost_the_last_writes_is_written_again)
{
    open_first();
    (void)tester_join(&first, ROLE_CELLSERVER, "cell-1", 101);
    fixture_run(&first, 1000 * MS);
    for (uint32_t i = 0; i < 16; i++) first.stored[i].owner = (struct leaf_owner){.leaf = first.stored[i].owner.leaf};
    first.stored_rev--;
    first.server_count = 0;
    fixture_run(&first, TTL_US / 3 + 25 * MS);
    ck_assert_uint_eq(stats(&first).restored, 1);
    ck_assert_uint_eq(first.stored[7].owner.primary.v, 101);
    ck_assert_uint_eq(first.stored[7].owner.epoch, 1);
    ck_assert_uint_eq(first.server_count, 1);
    fixture_close(&first);
}
END_TEST

static void beat_loads(struct fixture *f, struct tester *t, const struct leaf_load *loads, uint32_t count,
                       const struct leaf_stand *stand)
{
    writer_clear(&f->message);
    heartbeat_begin(&f->message, &(struct heartbeat){.term = t->map.term, .rev = t->map.rev, .count = count});
    for (uint32_t i = 0; i < count; i++) heartbeat_add(&f->message, &loads[i]);
    heartbeat_stands(&f->message, stand != NULL);
    if (stand != NULL) heartbeat_add_stand(&f->message, stand);
    ck_assert_int_eq(session_push_fast(t->session, f->message.data, f->message.size), TERRANE_ERR_OK);
    tester_flush(f, t, t->session);
}

START_TEST(a_new_leader_on_a_map_that_lost_writes_takes_the_servers_word)
{
    open_first();
    struct tester *a = tester_join(&first, ROLE_CELLSERVER, "cell-1", 101);
    struct tester *b = tester_join(&first, ROLE_CELLSERVER, "cell-2", 102);
    open_second();
    run_both(1000 * MS);
    struct quadkey moved = tester_leaf(a, 3).leaf, stood = tester_leaf(a, 4).leaf;
    leave(&first);
    run_second(TTL_US / 3 + 25 * MS);
    ck_assert(stats(&second).leads);
    struct tester *a2 = find_second(a), *b2 = find_second(b);
    /* Leaf 3 went to cell-2 under epoch 4, and cell-2 got a standby under 6; cell-1 still has what it had. */
    const struct leaf_load old[] = {{moved, 1, 1, 9}, {stood, 1, 1, 9}}, now = {moved, 6, 4, 9};
    const struct leaf_stand stand = {stood, 5};
    beat_loads(&second, b2, &now, 1, &stand);
    beat_loads(&second, a2, old, 2, NULL);
    run_second(2500 * MS);
    struct leaf_owner told = tester_leaf(a2, 3);
    ck_assert_uint_eq(told.primary.v, 102);
    ck_assert_uint_eq(told.epoch, 7);
    ck_assert_uint_eq(told.since, 4);
    told = tester_leaf(b2, 4);
    ck_assert_uint_eq(told.primary.v, 101);
    ck_assert_uint_ge(told.epoch, 6);
    ck_assert_uint_eq(told.since, 1);
    close_both();
}
END_TEST

START_TEST(a_follower_is_not_paused_and_a_leader_alone_settles)
{
    open_first();
    fixture_run(&first, 500 * MS);
    open_second();
    run_both(3000 * MS);
    ck_assert_uint_eq(second.warnings, 0);
    leave(&first);
    run_second(3500 * MS);
    ck_assert_uint_eq(second.warnings, 0);
    ck_assert_uint_eq(second.feed.term, 2); /* told to whoever reads map/ */
    close_both();
}
END_TEST

START_TEST(a_hello_of_a_later_term_raises_the_term_before_it_is_answered)
{
    open_first();
    struct tester *a = tester_new(&first, ROLE_CELLSERVER, "cell-1", 101);
    a->term = 7;
    tester_hello(&first, a);
    ck_assert(!a->welcomed);
    fixture_run(&first, 100 * MS);
    tester_hello(&first, a);
    ck_assert(a->welcomed);
    ck_assert_uint_eq(a->welcome.term, 8);
    ck_assert_uint_eq(first.stored_term, 8);
    fixture_run(&first, 500 * MS);
    ck_assert_uint_eq(a->map.term, 0); /* servers are heard before a map is told that has lost what they know */
    fixture_run(&first, 2500 * MS);
    ck_assert_uint_eq(a->map.term, 8);
    ck_assert(stats(&first).leads);
    fixture_close(&first);
}
END_TEST

START_TEST(a_term_that_another_leader_has_had_is_not_used_again)
{
    open_first();
    struct tester *a = tester_new(&first, ROLE_CELLSERVER, "cell-1", 101);
    a->term = 1; /* ours too, but we have welcomed nobody */
    tester_hello(&first, a);
    ck_assert(!a->welcomed);
    fixture_run(&first, 100 * MS);
    tester_hello(&first, a);
    ck_assert(a->welcomed);
    ck_assert_uint_gt(a->welcome.term, 1);
    ck_assert_uint_eq(a->welcome.term, first.stored_term);
    fixture_close(&first);
}
END_TEST

START_TEST(a_leader_and_the_store_gone_together_leave_a_world_that_the_second_takes_after_a_while)
{
    open_first();
    struct tester *a = tester_join(&first, ROLE_CELLSERVER, "cell-1", 101);
    open_second();
    run_both(1000 * MS);
    struct quadkey leaf = tester_leaf(a, 3).leaf;
    forget_all();
    run_second(4 * TTL_US);
    ck_assert(!stats(&second).leads);
    for (uint32_t i = 0; i < 120 && !stats(&second).leads; i++) run_second(50 * MS);
    ck_assert(stats(&second).leads);
    ck_assert_uint_eq(stats(&second).term, 2);
    struct tester *a2 = find_second(a);
    ck_assert(a2->welcomed);
    const struct leaf_load load = {leaf, 1, 1, 9};
    beat_loads(&second, a2, &load, 1, NULL);
    run_second(2500 * MS);
    ck_assert_uint_eq(tester_leaf(a2, 3).primary.v, 101);
    ck_assert_uint_eq(tester_leaf(a2, 3).epoch, 2);
    ck_assert_uint_eq(tester_leaf(a2, 3).since, 1);
    close_both();
}
END_TEST

START_TEST(who_can_not_use_the_stored_world_gives_the_leadership_back)
{
    open_first();
    fixture_run(&first, 1000 * MS);
    leave(&first);
    open_second();
    coordinator_close(second.core);
    second.options.world.cell_size = 25.0;
    second.options.info.node.v++;
    first.leader_until_us = 0;
    fixture_start(&second);
    fixture_run(&second, 100 * MS);
    ck_assert(!stats(&second).ready);
    ck_assert_uint_eq(first.given_back, 2);
    uint64_t asked = second.leads;
    fixture_run(&second, 10000 * MS);
    ck_assert_uint_eq(second.leads, asked);
    close_both();
}
END_TEST

SUITE_MAIN("coordinator_lead", the_second_follows_until_the_first_ends_in_order_and_gives_it_back,
           a_dead_leader_is_followed_when_its_lease_is_over_and_not_before,
           without_the_store_a_leader_stalls_decides_nothing_and_goes_on_in_its_term,
           a_leader_that_was_overtaken_forgets_its_members_and_follows,
           an_emptied_store_is_written_again_at_once_by_the_leader_and_taken_by_nobody_else,
           a_store_that_lost_the_last_writes_is_written_again,
           a_new_leader_on_a_map_that_lost_writes_takes_the_servers_word,
           a_follower_is_not_paused_and_a_leader_alone_settles, a_term_that_another_leader_has_had_is_not_used_again,
           a_hello_of_a_later_term_raises_the_term_before_it_is_answered,
           a_leader_and_the_store_gone_together_leave_a_world_that_the_second_takes_after_a_while,
           who_can_not_use_the_stored_world_gives_the_leadership_back)
