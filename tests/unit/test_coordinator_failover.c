/* Who takes over from a server that is dead or silent. */
#include "tests/unit/coordinator_fixture.h"

#define SERVERS 3u

struct trio {
    struct fixture f;
    struct tester *t[SERVERS];
};

/* Three servers, 16 leaves, all standbys level. */
static void trio_open(struct trio *trio)
{
    struct coordinator_options options = fixture_protected(SERVERS);
    fixture_open(&trio->f, &options);
    for (uint32_t i = 0; i < SERVERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "cell-%u", i + 1);
        trio->t[i] = tester_join(&trio->f, ROLE_CELLSERVER, name, 101 + i);
    }
    fixture_run(&trio->f, 600 * MS);
    ck_assert_uint_eq(fixture_stats(&trio->f).unprotected, 0);
}

static void dies(struct fixture *f, struct tester *t)
{
    t->cut = true;
    (void)fixture_death(f, t->info.node);
}

/* Of the leaves that `was` owned before, each is now with its standby, one epoch higher. */
static void check_promoted(const struct leaf_owner *before, const struct tester *told, uint64_t was, uint64_t except)
{
    for (uint32_t i = 0; i < 16; i++) {
        struct leaf_owner now = tester_leaf(told, i);
        bool moved = before[i].primary.v == was;
        ck_assert_uint_eq(now.primary.v, moved ? before[i].standby.v : before[i].primary.v);
        if (moved) ck_assert_uint_eq(now.epoch, before[i].epoch + 1);
        ck_assert_uint_eq(now.since, moved ? now.epoch : before[i].since);
        ck_assert_uint_ne(now.standby.v, 0);
        ck_assert_uint_ne(now.standby.v, except);
    }
}

static void leaves_copy(struct leaf_owner *to, const struct tester *t)
{
    for (uint32_t i = 0; i < 16; i++) to[i] = tester_leaf(t, i);
}

START_TEST(proof_of_death_promotes_the_level_standbys_at_once_in_one_save)
{
    static struct trio trio;
    struct leaf_owner before[16];
    trio_open(&trio);
    leaves_copy(before, trio.t[1]);
    uint32_t had = leaves_of(&trio.f, &trio.t[1]->map, trio.t[0]);
    uint64_t saves = trio.f.saves, rev = fixture_stats(&trio.f).rev, now_us = trio.f.now_us;
    trio.t[0]->cut = true;
    struct done done = fixture_death(&trio.f, trio.t[0]->info.node);
    ck_assert_uint_eq(done.count, had);
    ck_assert_uint_eq(trio.f.now_us, now_us);
    check_promoted(before, trio.t[1], 101, 101);
    ck_assert_uint_eq(trio.f.saves, saves + 1);
    ck_assert_uint_eq(fixture_stats(&trio.f).rev, rev + 1);
    ck_assert_ptr_null(ownership_node(&trio.t[1]->map, trio.t[0]->info.node));
    ck_assert_uint_eq(fixture_stats(&trio.f).promotions, had);
    /* Once more, or of somebody else, does no harm. */
    ck_assert_uint_eq(fixture_death(&trio.f, trio.t[0]->info.node).count, 0);
    ck_assert_uint_eq(fixture_death(&trio.f, (struct node_id){4711}).count, 0);
    fixture_run(&trio.f, 1000 * MS);
    ck_assert_uint_eq(fixture_stats(&trio.f).rev, rev + 1);
    fixture_close(&trio.f);
}
END_TEST

START_TEST(a_silent_server_is_replaced_by_level_standbys_and_gets_nothing_back_when_it_returns)
{
    static struct trio trio;
    struct leaf_owner before[16];
    trio_open(&trio);
    leaves_copy(before, trio.t[1]);
    trio.t[0]->cut = true;
    fixture_run(&trio.f, 400 * MS);
    ck_assert_uint_eq(fixture_stats(&trio.f).lapsed, 1);
    check_promoted(before, trio.t[1], 101, 101);
    /* Nothing proves that it is dead: it stays in the map. */
    ck_assert_ptr_nonnull(ownership_node(&trio.t[1]->map, trio.t[0]->info.node));
    struct leaf_owner after[16];
    leaves_copy(after, trio.t[1]);
    trio.t[0]->cut = false;
    fixture_run(&trio.f, 2000 * MS);
    ck_assert_uint_eq(fixture_stats(&trio.f).lapsed, 0);
    ck_assert_uint_eq(leaves_of(&trio.f, &trio.t[1]->map, trio.t[0]), 0);
    for (uint32_t i = 0; i < 16; i++) ck_assert_uint_eq(tester_leaf(trio.t[1], i).primary.v, after[i].primary.v);
    /* But it stands by again. */
    ck_assert_uint_gt(stands_of(&trio.t[1]->map, trio.t[0]), 0);
    ck_assert_uint_eq(fixture_stats(&trio.f).unprotected, 0);
    fixture_close(&trio.f);
}
END_TEST

START_TEST(a_standby_that_is_not_level_is_not_promoted_while_its_server_may_come_back)
{
    static struct fixture f;
    struct coordinator_options options = fixture_protected(2);
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    struct tester *b = tester_new(&f, ROLE_CELLSERVER, "cell-2", 102);
    b->unlevel = true;
    tester_hello(&f, b);
    fixture_run(&f, 1000 * MS);
    uint32_t had = leaves_of(&f, &b->map, a);
    ck_assert_uint_eq(stands_of(&b->map, b), had);
    a->cut = true;
    fixture_run(&f, 20000 * MS);
    ck_assert_uint_eq(leaves_of(&f, &b->map, a), had);
    ck_assert_uint_eq(fixture_stats(&f).lapsed, 1);
    a->cut = false;
    fixture_run(&f, 1000 * MS);
    ck_assert_uint_eq(leaves_of(&f, &a->map, a), had);
    /* With a proof the leaves begin anew elsewhere: nobody has what was in them. */
    uint64_t promotions = fixture_stats(&f).promotions;
    dies(&f, a);
    fixture_run(&f, 8000 * MS);
    ck_assert_uint_eq(leaves_of(&f, &b->map, b), 16);
    ck_assert_uint_eq(fixture_stats(&f).promotions, promotions);
    fixture_close(&f);
}
END_TEST

/* What it stands by for is level from now on. */
static void level_all(struct tester *t)
{
    for (uint32_t i = 0; i < 16; i++) {
        struct leaf_owner leaf = tester_leaf(t, i);
        if (node_id_equal(leaf.standby, t->info.node)) table_put(&t->level, leaf.leaf.v, leaf.epoch);
    }
}

START_TEST(a_standby_that_gets_level_after_the_lapse_takes_over_then)
{
    static struct fixture f;
    struct coordinator_options options = fixture_protected(2);
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    struct tester *b = tester_new(&f, ROLE_CELLSERVER, "cell-2", 102);
    b->unlevel = true;
    tester_hello(&f, b);
    fixture_run(&f, 1000 * MS);
    a->cut = true;
    fixture_run(&f, 1000 * MS);
    ck_assert_uint_eq(leaves_of(&f, &b->map, b), 8);
    level_all(b); /* the last of the copy was on its way */
    fixture_run(&f, 300 * MS);
    ck_assert_uint_eq(leaves_of(&f, &b->map, b), 16);
    fixture_close(&f);
}
END_TEST

START_TEST(lists_that_were_on_their_way_do_not_say_that_a_standby_is_not_level)
{
    static struct fixture f;
    struct coordinator_options options = fixture_protected(2);
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    struct tester *b = tester_new(&f, ROLE_CELLSERVER, "cell-2", 102);
    b->unlevel = true;
    tester_hello(&f, b);
    fixture_run(&f, 1000 * MS);
    uint64_t promotions = fixture_stats(&f).promotions;
    dies(&f, a);
    fixture_run(&f, 200 * MS); /* b's heartbeats come meanwhile, without the leaves */
    level_all(b);
    fixture_run(&f, 300 * MS);
    ck_assert_uint_eq(leaves_of(&f, &b->map, b), 16);
    ck_assert_uint_eq(fixture_stats(&f).promotions, promotions + 8);
    fixture_close(&f);
}
END_TEST

START_TEST(the_only_copy_moves_on_proof_of_death_alone)
{
    static struct fixture f;
    struct coordinator_options options = fixture_protected(1);
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    fixture_run(&f, 500 * MS);
    ck_assert_uint_eq(leaves_of(&f, &a->map, a), 16);
    ck_assert_uint_eq(fixture_stats(&f).unprotected, 16);
    a->cut = true;
    fixture_run(&f, 1000 * MS);
    struct tester *b = tester_join(&f, ROLE_CELLSERVER, "cell-2", 102);
    fixture_run(&f, 30000 * MS);
    ck_assert_uint_eq(leaves_of(&f, &b->map, a), 16);
    ck_assert_uint_eq(tester_leaf(b, 0).epoch, 1); /* a silent server can't feed a standby: it got none */
    (void)fixture_death(&f, a->info.node);
    fixture_run(&f, 100 * MS);
    ck_assert_uint_eq(leaves_of(&f, &b->map, b), 16);
    fixture_close(&f);
}
END_TEST

START_TEST(a_level_standby_that_is_silent_keeps_the_only_copy_of_a_dead_server)
{
    static struct fixture f;
    struct coordinator_options options = fixture_protected(2);
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    struct tester *b = tester_join(&f, ROLE_CELLSERVER, "cell-2", 102);
    fixture_run(&f, 600 * MS);
    a->cut = b->cut = true;
    fixture_run(&f, 1000 * MS);
    ck_assert_uint_eq(fixture_stats(&f).lapsed, 2);
    ck_assert_uint_eq(fixture_stats(&f).promotions, 0);
    (void)fixture_death(&f, a->info.node);
    struct tester *c = tester_join(&f, ROLE_CELLSERVER, "cell-3", 103);
    fixture_run(&f, 30000 * MS);
    ck_assert_uint_eq(leaves_of(&f, &c->map, b), 16);
    b->cut = false;
    fixture_run(&f, 1000 * MS);
    ck_assert_uint_eq(leaves_of(&f, &b->map, b), 16);
    ck_assert_uint_eq(fixture_stats(&f).unprotected, 0); /* by the third */
    fixture_close(&f);
}
END_TEST

START_TEST(a_dead_standby_is_replaced_and_the_streams_go_on)
{
    static struct trio trio;
    struct leaf_owner before[16];
    trio_open(&trio);
    leaves_copy(before, trio.t[0]);
    dies(&trio.f, trio.t[2]);
    for (uint32_t i = 0; i < 16; i++) {
        struct leaf_owner now = tester_leaf(trio.t[0], i);
        bool touched = before[i].primary.v == 103 || before[i].standby.v == 103;
        ck_assert_uint_eq(now.epoch, before[i].epoch + (touched ? 1 : 0));
        if (before[i].primary.v != 103) ck_assert_uint_eq(now.since, before[i].since);
        ck_assert_uint_eq(now.standby.v, now.primary.v == 101 ? 102 : 101);
    }
    fixture_run(&trio.f, 500 * MS);
    ck_assert_uint_eq(fixture_stats(&trio.f).unprotected, 0);
    fixture_close(&trio.f);
}
END_TEST

START_TEST(a_death_while_a_save_is_under_way_is_acted_upon_when_it_is_over)
{
    static struct trio trio;
    struct leaf_owner before[16];
    trio_open(&trio);
    trio.f.mood = MOOD_HOLD;
    trio.t[0]->cut = true;
    (void)fixture_death(&trio.f, trio.t[0]->info.node);
    leaves_copy(before, trio.t[1]); /* nothing is told yet */
    ck_assert(trio.f.asked);
    trio.t[2]->cut = true;
    (void)fixture_death(&trio.f, trio.t[2]->info.node);
    ck_assert_ptr_nonnull(ownership_node(&trio.t[1]->map, trio.t[0]->info.node));
    store_release(&trio.f);
    ck_assert(trio.f.asked); /* the second round follows at once */
    trio.f.mood = MOOD_WELL;
    store_release(&trio.f);
    fixture_run(&trio.f, 8000 * MS);
    ck_assert_uint_eq(leaves_of(&trio.f, &trio.t[1]->map, trio.t[1]), 16);
    ck_assert_uint_eq(trio.t[1]->map.now.node_count, 1);
    /* What it stood by for, and what the third had not taken over before, is its by promotion. */
    uint32_t lost = 0;
    for (uint32_t i = 0; i < 16; i++) lost += before[i].primary.v != 102 && before[i].standby.v != 102;
    ck_assert_uint_eq(fixture_stats(&trio.f).unprotected, 16);
    ck_assert_uint_lt(lost, 8);
    fixture_close(&trio.f);
}
END_TEST

START_TEST(a_second_death_after_the_copies_are_level_again_loses_nothing)
{
    static struct trio trio;
    trio_open(&trio);
    dies(&trio.f, trio.t[0]);
    fixture_run(&trio.f, 500 * MS);
    ck_assert_uint_eq(fixture_stats(&trio.f).unprotected, 0);
    uint64_t promotions = fixture_stats(&trio.f).promotions;
    uint32_t had = leaves_of(&trio.f, &trio.t[1]->map, trio.t[2]);
    dies(&trio.f, trio.t[2]);
    ck_assert_uint_eq(fixture_stats(&trio.f).promotions, promotions + had);
    ck_assert_uint_eq(leaves_of(&trio.f, &trio.t[1]->map, trio.t[1]), 16);
    fixture_close(&trio.f);
}
END_TEST

START_TEST(a_new_incarnation_proves_the_death_of_the_former_one_and_stands_by)
{
    static struct trio trio;
    struct leaf_owner before[16];
    trio_open(&trio);
    leaves_copy(before, trio.t[1]);
    trio.t[0]->cut = true;
    fixture_step(&trio.f, (struct event){.kind = EVENT_PEER_DOWN, .node = trio.t[0]->info.node});
    struct tester *again = tester_join(&trio.f, ROLE_CELLSERVER, "cell-1", 111);
    fixture_run(&trio.f, 100 * MS);
    check_promoted(before, trio.t[1], 101, 101);
    ck_assert_uint_eq(leaves_of(&trio.f, &trio.t[1]->map, again), 0);
    ck_assert_uint_gt(stands_of(&trio.t[1]->map, again), 0);
    fixture_close(&trio.f);
}
END_TEST

START_TEST(a_restarted_coordinator_does_not_promote_before_it_knows_who_is_level)
{
    static struct trio trio;
    trio_open(&trio);
    struct leaf_owner before[16];
    leaves_copy(before, trio.t[1]);
    fixture_restart(&trio.f);
    trio.t[0]->cut = true;
    (void)fixture_death(&trio.f, trio.t[0]->info.node);
    fixture_run(&trio.f, 1900 * MS);
    /* Its standbys come at the last moment: their copies are not given away. */
    tester_hello(&trio.f, trio.t[1]);
    tester_hello(&trio.f, trio.t[2]);
    fixture_run(&trio.f, 1000 * MS);
    check_promoted(before, trio.t[1], 101, 101);
    fixture_close(&trio.f);
}
END_TEST

/* Says for each leaf of `before` that `t` stood by for that it still has that copy. */
static void stands_as_before(struct fixture *f, struct tester *t, const struct leaf_owner *before)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < 16; i++) count += before[i].standby.v == t->info.node.v;
    struct heartbeat beat = {.term = t->map.term, .rev = t->map.rev, .stamp = f->now_us};
    writer_clear(&f->message);
    heartbeat_begin(&f->message, &beat);
    heartbeat_stands(&f->message, count);
    for (uint32_t i = 0; i < 16; i++) {
        if (before[i].standby.v != t->info.node.v) continue;
        heartbeat_add_stand(&f->message, &(struct leaf_stand){before[i].leaf, before[i].epoch});
    }
    ck_assert_int_eq(session_push_fast(t->session, f->message.data, f->message.size), TERRANE_ERR_OK);
    tester_flush(f, t, t->session);
}

START_TEST(a_death_while_a_better_standby_is_not_level_yet_falls_back_to_the_one_before)
{
    static struct fixture f;
    struct leaf_owner before[16];
    struct coordinator_options options = fixture_protected(2);
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    struct tester *b = tester_join(&f, ROLE_CELLSERVER, "cell-2", 102);
    fixture_run(&f, 600 * MS);
    leaves_copy(before, a);
    struct tester *far = tester_new(&f, ROLE_CELLSERVER, "cell-3", 103);
    snprintf(far->info.host, sizeof far->info.host, "elsewhere");
    far->unlevel = true;
    tester_hello(&f, far);
    ck_assert_uint_eq(stands_of(&a->map, far), 16);
    dies(&f, a);
    for (uint32_t i = 0; i < 10; i++) {
        fixture_run(&f, 25 * MS);
        stands_as_before(&f, b, before);
    }
    for (uint32_t i = 0; i < 16; i++) ck_assert_uint_eq(tester_leaf(b, i).primary.v, 102);
    fixture_close(&f);
}
END_TEST

START_TEST(no_standby_is_changed_for_a_better_one_while_its_server_is_quiet)
{
    static struct fixture f;
    struct coordinator_options options = fixture_protected(2);
    options.lease_us = 1000 * MS;
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    struct tester *b = tester_join(&f, ROLE_CELLSERVER, "cell-2", 102);
    fixture_run(&f, 600 * MS);
    a->cut = true;
    fixture_run(&f, 600 * MS); /* not lapsed yet */
    struct tester *far = tester_new(&f, ROLE_CELLSERVER, "cell-3", 103);
    snprintf(far->info.host, sizeof far->info.host, "elsewhere");
    tester_hello(&f, far);
    fixture_run(&f, 300 * MS);
    for (uint32_t i = 0; i < 16; i++) {
        struct leaf_owner leaf = tester_leaf(b, i);
        if (leaf.primary.v == 101) ck_assert_uint_eq(leaf.standby.v, 102);
    }
    fixture_run(&f, 600 * MS);
    for (uint32_t i = 0; i < 16; i++) ck_assert_uint_eq(tester_leaf(b, i).primary.v, 102);
    fixture_close(&f);
}
END_TEST

SUITE_MAIN("coordinator_failover", proof_of_death_promotes_the_level_standbys_at_once_in_one_save,
           a_silent_server_is_replaced_by_level_standbys_and_gets_nothing_back_when_it_returns,
           a_standby_that_is_not_level_is_not_promoted_while_its_server_may_come_back,
           a_standby_that_gets_level_after_the_lapse_takes_over_then,
           lists_that_were_on_their_way_do_not_say_that_a_standby_is_not_level,
           the_only_copy_moves_on_proof_of_death_alone,
           a_level_standby_that_is_silent_keeps_the_only_copy_of_a_dead_server,
           a_dead_standby_is_replaced_and_the_streams_go_on,
           a_death_while_a_save_is_under_way_is_acted_upon_when_it_is_over,
           a_second_death_after_the_copies_are_level_again_loses_nothing,
           a_new_incarnation_proves_the_death_of_the_former_one_and_stands_by,
           a_restarted_coordinator_does_not_promote_before_it_knows_who_is_level,
           a_death_while_a_better_standby_is_not_level_yet_falls_back_to_the_one_before,
           no_standby_is_changed_for_a_better_one_while_its_server_is_quiet)
