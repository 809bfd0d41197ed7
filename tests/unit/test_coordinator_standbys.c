/* Who stands by for whom. */
#include "tests/unit/coordinator_fixture.h"

static struct tester *join_on(struct fixture *f, const char *name, uint64_t node, const char *host, uint32_t capacity)
{
    struct tester *t = tester_new(f, ROLE_CELLSERVER, name, node);
    snprintf(t->info.host, sizeof t->info.host, "%s", host);
    t->capacity = capacity;
    tester_hello(f, t);
    return t;
}

struct grid {
    struct fixture f;
    struct tester *t[10];
};

/* `count` servers on `hosts` hosts in turn, 16 leaves a server or so. */
static void grid_open(struct grid *g, uint32_t count, uint32_t hosts)
{
    struct coordinator_options options = fixture_protected(count);
    options.split_depth = 3;
    fixture_open(&g->f, &options);
    for (uint32_t i = 0; i < count; i++) {
        char name[16], host[16];
        snprintf(name, sizeof name, "cell-%u", i);
        snprintf(host, sizeof host, "host-%u", i % hosts);
        g->t[i] = join_on(&g->f, name, 101 + i, host, 100);
    }
    fixture_run(&g->f, 600 * MS);
    ck_assert_uint_eq(fixture_stats(&g->f).unprotected, 0);
}

/* How many leaves of `primary` have `standby`. */
static uint32_t pairs(const struct ownership *map, const struct tester *primary, const struct tester *standby)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < map->now.leaf_count; i++) {
        const struct leaf_owner *leaf = &map->now.leaves[i];
        count += node_id_equal(leaf->primary, primary->info.node) && node_id_equal(leaf->standby, standby->info.node);
    }
    return count;
}

/* How often the pair of primary and standby changes along the curve. */
static uint32_t stretches(const struct ownership *map)
{
    uint64_t pair[64][2], count = 0;
    for (uint32_t i = 0; i < map->now.leaf_count; i++) {
        const struct leaf_owner *leaf = &map->now.leaves[i];
        uint64_t place = quadkey_hilbert(leaf->leaf);
        ck_assert_uint_lt(place, 64);
        pair[place][0] = leaf->primary.v;
        pair[place][1] = leaf->standby.v;
    }
    for (uint32_t i = 1; i < 64; i++) count += pair[i][0] != pair[i - 1][0] || pair[i][1] != pair[i - 1][1];
    return (uint32_t)count + 1;
}

START_TEST(the_first_assignment_sets_primaries_and_standbys_in_one_save)
{
    static struct fixture f;
    struct coordinator_options options = fixture_protected(3);
    fixture_open(&f, &options);
    (void)join_on(&f, "cell-0", 101, "a", 100);
    (void)join_on(&f, "cell-1", 102, "b", 100);
    uint64_t saves = f.saves, rev = fixture_stats(&f).rev;
    struct tester *t = join_on(&f, "cell-2", 103, "c", 100);
    ck_assert_uint_eq(f.saves, saves + 1);
    ck_assert_uint_le(fixture_stats(&f).rev, rev + 2); /* with the node itself */
    for (uint32_t i = 0; i < 16; i++) {
        struct leaf_owner leaf = tester_leaf(t, i);
        ck_assert_uint_eq(leaf.epoch, 1);
        ck_assert_uint_eq(leaf.since, 1);
        ck_assert_uint_ne(leaf.standby.v, 0);
        ck_assert_uint_ne(leaf.standby.v, leaf.primary.v);
    }
    fixture_close(&f);
}
END_TEST

START_TEST(standbys_are_on_another_host_where_there_is_one)
{
    static struct grid g;
    grid_open(&g, 6, 2);
    for (uint32_t i = 0; i < 6; i++) {
        for (uint32_t j = 0; j < 6; j++) {
            if (i % 2 == j % 2) ck_assert_uint_eq(pairs(&g.t[0]->map, g.t[i], g.t[j]), 0);
        }
    }
    fixture_close(&g.f);
    grid_open(&g, 3, 1); /* one host: better than none */
    fixture_close(&g.f);
}
END_TEST

START_TEST(the_leaves_of_one_server_have_several_standbys_in_few_stretches_and_all_bear_alike)
{
    static struct grid g;
    grid_open(&g, 8, 8);
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t partners = 0;
        for (uint32_t j = 0; j < 8; j++) partners += pairs(&g.t[0]->map, g.t[i], g.t[j]) > 0;
        ck_assert_uint_ge(partners, 2);
        ck_assert_uint_le(partners, 3);
        ck_assert_uint_ge(stands_of(&g.t[0]->map, g.t[i]), 5);
        ck_assert_uint_le(stands_of(&g.t[0]->map, g.t[i]), 11);
    }
    ck_assert_uint_le(stretches(&g.t[0]->map), 24);
    fixture_close(&g.f);
}
END_TEST

START_TEST(capacity_weighs_standbys_too)
{
    static struct fixture f;
    struct coordinator_options options = fixture_protected(3);
    options.split_depth = 4;
    fixture_open(&f, &options);
    struct tester *large = join_on(&f, "cell-0", 101, "a", 300);
    struct tester *b = join_on(&f, "cell-1", 102, "b", 100), *c = join_on(&f, "cell-2", 103, "c", 100);
    fixture_run(&f, 600 * MS);
    ck_assert_uint_gt(stands_of(&b->map, large), stands_of(&b->map, c) / 2);
    ck_assert_uint_eq(stands_of(&b->map, large) + stands_of(&b->map, b) + stands_of(&b->map, c), 256);
    ck_assert_uint_eq(pairs(&b->map, b, large) + pairs(&b->map, b, c), leaves_of(&f, &b->map, b));
    ck_assert_uint_ge(pairs(&b->map, b, large), pairs(&b->map, b, c));
    fixture_close(&f);
}
END_TEST

START_TEST(a_death_changes_the_standby_of_no_leaf_that_it_does_not_concern)
{
    static struct grid g;
    grid_open(&g, 8, 8);
    struct leaf_owner before[64];
    for (uint32_t i = 0; i < 64; i++) before[i] = tester_leaf(g.t[0], i);
    g.t[5]->cut = true;
    (void)fixture_death(&g.f, g.t[5]->info.node);
    for (uint32_t i = 0; i < 64; i++) {
        struct leaf_owner now = tester_leaf(g.t[0], i);
        bool concerned = before[i].primary.v == 106 || before[i].standby.v == 106;
        if (!concerned) ck_assert_uint_eq(now.epoch, before[i].epoch);
    }
    fixture_close(&g.f);
}
END_TEST

START_TEST(a_server_that_comes_back_takes_its_share_of_standbys_a_few_at_a_time)
{
    static struct grid g;
    grid_open(&g, 4, 4);
    g.t[3]->cut = true;
    fixture_run(&g.f, 1000 * MS);
    ck_assert_uint_eq(fixture_stats(&g.f).unprotected, 0);
    ck_assert_uint_eq(stands_of(&g.t[0]->map, g.t[3]), 0);
    g.t[3]->cut = false;
    g.f.slow = true;
    uint32_t most = 0;
    for (uint32_t i = 0; i < 120; i++) {
        fixture_run(&g.f, 25 * MS);
        uint32_t open = fixture_stats(&g.f).unprotected;
        if (open > most) most = open;
    }
    ck_assert_uint_ge(stands_of(&g.t[0]->map, g.t[3]), 8); /* half of 16 */
    ck_assert_uint_gt(most, 0);
    ck_assert_uint_le(most, 16);
    ck_assert_uint_eq(leaves_of(&g.f, &g.t[0]->map, g.t[3]), 0);
    ck_assert_uint_eq(fixture_stats(&g.f).unprotected, 0);
    /* Then nothing changes any more. */
    uint64_t rev = fixture_stats(&g.f).rev;
    fixture_run(&g.f, 60000 * MS);
    ck_assert_uint_eq(fixture_stats(&g.f).rev, rev);
    fixture_close(&g.f);
}
END_TEST

START_TEST(a_second_host_draws_the_standbys_over_a_few_at_a_time)
{
    static struct grid g;
    grid_open(&g, 3, 1);
    g.f.slow = true;
    struct tester *far = join_on(&g.f, "far", 201, "elsewhere", 100);
    uint32_t most = 0;
    for (uint32_t i = 0; i < 200; i++) {
        fixture_run(&g.f, 25 * MS);
        uint32_t open = fixture_stats(&g.f).unprotected;
        if (open > most) most = open;
    }
    ck_assert_uint_eq(stands_of(&g.t[0]->map, far), 64);
    ck_assert_uint_gt(most, 0);
    ck_assert_uint_le(most, 16);
    for (uint32_t i = 0; i < 64; i++) ck_assert_uint_eq(tester_leaf(far, i).since, 1);
    fixture_close(&g.f);
}
END_TEST

START_TEST(a_standby_that_does_not_get_level_is_replaced_after_half_a_minute)
{
    static struct fixture f;
    struct coordinator_options options = fixture_protected(3);
    fixture_open(&f, &options);
    struct tester *a = join_on(&f, "cell-0", 101, "a", 100), *b = join_on(&f, "cell-1", 102, "b", 100);
    struct tester *c = tester_new(&f, ROLE_CELLSERVER, "cell-2", 103);
    c->unlevel = true; /* as if it could not reach the others */
    tester_hello(&f, c);
    fixture_run(&f, 20000 * MS);
    ck_assert_uint_gt(stands_of(&a->map, c), 0);
    fixture_run(&f, 12000 * MS);
    ck_assert_uint_eq(stands_of(&a->map, c), 0);
    ck_assert_uint_eq(fixture_stats(&f).unprotected, 0);
    ck_assert_uint_eq(leaves_of(&f, &a->map, a) + leaves_of(&f, &a->map, b) + leaves_of(&f, &a->map, c), 16);
    fixture_close(&f);
}
END_TEST

START_TEST(without_another_server_a_leaf_has_none_and_the_first_that_joins_stands_by)
{
    static struct fixture f;
    struct coordinator_options options = fixture_protected(1);
    fixture_open(&f, &options);
    struct tester *a = join_on(&f, "cell-0", 101, "a", 100);
    fixture_run(&f, 500 * MS);
    ck_assert_uint_eq(fixture_stats(&f).unprotected, 16);
    struct tester *b = join_on(&f, "cell-1", 102, "a", 100);
    ck_assert_uint_eq(stands_of(&a->map, b), 16);
    for (uint32_t i = 0; i < 16; i++) {
        ck_assert_uint_eq(tester_leaf(a, i).epoch, 2);
        ck_assert_uint_eq(tester_leaf(a, i).since, 1);
    }
    fixture_run(&f, 500 * MS);
    ck_assert_uint_eq(fixture_stats(&f).unprotected, 0);
    fixture_close(&f);
}
END_TEST

START_TEST(switched_off_nobody_stands_by_and_stored_standbys_are_dropped)
{
    static struct fixture f;
    struct coordinator_options options = fixture_protected(2);
    fixture_open(&f, &options);
    struct tester *a = join_on(&f, "cell-0", 101, "a", 100), *b = join_on(&f, "cell-1", 102, "b", 100);
    fixture_run(&f, 500 * MS);
    ck_assert_uint_eq(stands_of(&a->map, a) + stands_of(&a->map, b), 16);
    f.options.no_standbys = true;
    fixture_restart(&f);
    tester_hello(&f, a);
    tester_hello(&f, b);
    fixture_run(&f, 3000 * MS);
    ck_assert_uint_eq(stands_of(&a->map, a) + stands_of(&a->map, b), 0);
    ck_assert_uint_eq(tester_leaf(a, 0).since, 1);
    fixture_close(&f);
}
END_TEST

SUITE_MAIN("coordinator_standbys", the_first_assignment_sets_primaries_and_standbys_in_one_save,
           standbys_are_on_another_host_where_there_is_one,
           the_leaves_of_one_server_have_several_standbys_in_few_stretches_and_all_bear_alike,
           capacity_weighs_standbys_too, a_death_changes_the_standby_of_no_leaf_that_it_does_not_concern,
           a_server_that_comes_back_takes_its_share_of_standbys_a_few_at_a_time,
           a_second_host_draws_the_standbys_over_a_few_at_a_time,
           a_standby_that_does_not_get_level_is_replaced_after_half_a_minute,
           without_another_server_a_leaf_has_none_and_the_first_that_joins_stands_by,
           switched_off_nobody_stands_by_and_stored_standbys_are_dropped)
