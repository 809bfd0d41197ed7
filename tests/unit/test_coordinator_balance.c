/* Leaves go where there is less to bear: rebalance.c and migrate.c. The fixture checks that each leaf changes hands
 * only to a standby that is level. */
#include "tests/unit/coordinator_fixture.h"

static struct tester *servers[5];

static void join(struct fixture *f, uint32_t i)
{
    char name[16];
    snprintf(name, sizeof name, "cell-%u", i + 1);
    servers[i] = tester_join(f, ROLE_CELLSERVER, name, 101 + i);
}

static void open_with(struct fixture *f, uint32_t count)
{
    struct coordinator_options options = fixture_protected(count);
    options.split_depth = 3;
    options.balance = true;
    fixture_open(f, &options);
    for (uint32_t i = 0; i < count; i++) join(f, i);
    fixture_run(f, 1000 * MS);
    if (count > 1) ck_assert_uint_eq(fixture_stats(f).unprotected, 0);
}

START_TEST(a_new_server_gets_its_share_within_ten_seconds)
{
    static struct fixture f;
    open_with(&f, 4);
    uint64_t promotions = fixture_stats(&f).promotions;
    ck_assert_uint_eq(leaves_of(&f, &servers[0]->map, servers[0]), 16);
    join(&f, 4);
    fixture_run(&f, 10000 * MS);
    uint32_t got = leaves_of(&f, &servers[0]->map, servers[4]);
    ck_assert_uint_ge(got, 12);
    ck_assert_uint_le(got, 14);
    ck_assert_uint_eq(fixture_stats(&f).promotions, promotions + got); /* nothing else moved */
    ck_assert_uint_eq(fixture_stats(&f).unprotected, 0);
    ck_assert_uint_eq(fixture_stats(&f).migrating, 0);
    fixture_close(&f);
}
END_TEST

START_TEST(when_all_is_even_nothing_moves)
{
    static struct fixture f;
    open_with(&f, 4);
    uint64_t rev = fixture_stats(&f).rev;
    fixture_run(&f, 30000 * MS);
    ck_assert_uint_eq(fixture_stats(&f).rev, rev);
    fixture_close(&f);
}
END_TEST

START_TEST(after_deaths_the_leaves_are_spread_again)
{
    static struct fixture f;
    open_with(&f, 3);
    for (uint32_t i = 0; i < 2; i++) {
        servers[i]->cut = true;
        (void)fixture_death(&f, servers[i]->info.node);
        fixture_run(&f, 1000 * MS);
    }
    ck_assert_uint_eq(leaves_of(&f, &servers[2]->map, servers[2]), 64);
    for (uint32_t i = 0; i < 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "cell-%u", i + 1);
        servers[i] = tester_join(&f, ROLE_CELLSERVER, name, 201 + i);
    }
    fixture_run(&f, 12000 * MS);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_ge(leaves_of(&f, &servers[2]->map, servers[i]), 19);
        ck_assert_uint_le(leaves_of(&f, &servers[2]->map, servers[i]), 23);
    }
    ck_assert_uint_eq(fixture_stats(&f).unprotected, 0);
    fixture_close(&f);
}
END_TEST

START_TEST(at_most_sixteen_leaves_are_on_their_way_at_a_time)
{
    static struct fixture f;
    open_with(&f, 1);
    for (uint32_t i = 1; i < 4; i++) join(&f, i);
    uint32_t most = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        fixture_run(&f, 10 * MS);
        uint32_t migrating = fixture_stats(&f).migrating;
        ck_assert_uint_le(migrating, 16);
        if (migrating > most) most = migrating;
    }
    ck_assert_uint_eq(most, 16);
    for (uint32_t i = 0; i < 4; i++) ck_assert_uint_ge(leaves_of(&f, &servers[0]->map, servers[i]), 14);
    fixture_close(&f);
}
END_TEST

START_TEST(a_target_that_dies_on_the_way_costs_nothing)
{
    static struct fixture f;
    open_with(&f, 4);
    join(&f, 4);
    servers[4]->unlevel = true;
    fixture_run(&f, 2000 * MS);
    ck_assert_uint_gt(fixture_stats(&f).migrating, 0);
    servers[4]->cut = true;
    (void)fixture_death(&f, servers[4]->info.node);
    fixture_run(&f, 3000 * MS);
    ck_assert_uint_eq(fixture_stats(&f).migrating, 0);
    ck_assert_uint_eq(fixture_stats(&f).unprotected, 0);
    ck_assert_uint_eq(fixture_stats(&f).unowned, 0);
    fixture_close(&f);
}
END_TEST

START_TEST(a_target_that_does_not_get_level_is_given_up)
{
    static struct fixture f;
    open_with(&f, 4);
    join(&f, 4);
    servers[4]->unlevel = true;
    fixture_run(&f, 5000 * MS);
    uint32_t migrating = fixture_stats(&f).migrating;
    ck_assert_uint_gt(migrating, 0);
    fixture_run(&f, 9000 * MS);
    ck_assert_uint_eq(leaves_of(&f, &servers[0]->map, servers[4]), 0);
    ck_assert_uint_eq(fixture_stats(&f).unowned, 0);
    fixture_run(&f, 60000 * MS); /* its leaves have got other standbys */
    ck_assert_uint_eq(fixture_stats(&f).unowned, 0);
    fixture_close(&f);
}
END_TEST

START_TEST(a_source_that_dies_on_the_way_is_replaced_by_who_has_a_copy)
{
    static struct fixture f;
    open_with(&f, 4);
    join(&f, 4);
    servers[4]->unlevel = true;
    fixture_run(&f, 1500 * MS);
    ck_assert_uint_gt(fixture_stats(&f).migrating, 0);
    servers[0]->cut = true;
    (void)fixture_death(&f, servers[0]->info.node);
    fixture_run(&f, 1000 * MS);
    servers[4]->unlevel = false;
    fixture_run(&f, 12000 * MS);
    ck_assert_uint_eq(fixture_stats(&f).unowned, 0);
    ck_assert_uint_eq(fixture_stats(&f).unprotected, 0);
    ck_assert_uint_ge(leaves_of(&f, &servers[1]->map, servers[4]), 14);
    fixture_close(&f);
}
END_TEST

START_TEST(who_is_drained_gets_nothing_and_the_others_are_level)
{
    static struct fixture f;
    open_with(&f, 4);
    (void)fixture_drain(&f, "cell-2");
    fixture_run(&f, 10000 * MS);
    ck_assert_uint_eq(leaves_of(&f, &servers[0]->map, servers[1]), 0);
    for (uint32_t i = 0; i < 4; i++) {
        if (i == 1) continue;
        ck_assert_uint_ge(leaves_of(&f, &servers[0]->map, servers[i]), 19);
        ck_assert_uint_le(leaves_of(&f, &servers[0]->map, servers[i]), 23);
    }
    fixture_close(&f);
}
END_TEST

START_TEST(a_leader_that_has_heard_nothing_yet_moves_nothing)
{
    static struct fixture f;
    open_with(&f, 4);
    fixture_restart(&f);
    uint64_t rev = fixture_stats(&f).rev;
    fixture_run(&f, 20000 * MS);
    for (uint32_t i = 0; i < 4; i++) ck_assert_uint_eq(leaves_of(&f, &servers[0]->map, servers[i]), 16);
    ck_assert_uint_eq(fixture_stats(&f).promotions, 0);
    ck_assert_uint_ge(fixture_stats(&f).rev, rev);
    fixture_close(&f);
}
END_TEST

/* ---- what operators ask ---- */

static enum terrane_error place(struct fixture *f, enum place_what what, struct quadkey leaf, const char *name,
                                struct done *done)
{
    struct place m = {.what = what, .leaf = leaf};
    struct fault fault = {0};
    snprintf(m.name, sizeof m.name, "%s", name);
    writer_clear(&f->message);
    place_encode(&f->message, &m);
    fixture_query(f, &f->message);
    if (fault_decode(cursor_of(f->reply.data, f->reply.size), &fault) != TERRANE_ERR_OK)
        return done_decode(cursor_of(f->reply.data, f->reply.size), done);
    ck_assert_uint_gt(strlen(fault.text), 10);
    return fault.error;
}

/* The answer's JSON. */
static const char *explain(struct fixture *f, enum explain_what what, uint64_t since)
{
    static char text[1 << 20];
    struct status status;
    writer_clear(&f->message);
    explain_encode(&f->message, &(struct explain){.what = what, .since = since});
    fixture_query(f, &f->message);
    ck_assert_int_eq(status_decode(cursor_of(f->reply.data, f->reply.size), &status), TERRANE_ERR_OK);
    ck_assert_uint_lt(status.size, sizeof text);
    memcpy(text, status.json, status.size);
    text[status.size] = '\0';
    return text;
}

START_TEST(an_operator_moves_a_leaf_and_pins_it_there)
{
    static struct fixture f;
    struct done done;
    open_with(&f, 2);
    struct leaf_owner leaf = tester_leaf(servers[0], 0);
    ck_assert(node_id_equal(leaf.primary, servers[0]->info.node));
    ck_assert_int_eq(place(&f, PLACE_PIN, leaf.leaf, "", &done), TERRANE_ERR_OK);
    ck_assert_int_eq(place(&f, PLACE_MOVE, leaf.leaf, "cell-2", &done), TERRANE_ERR_OK);
    ck_assert_uint_eq(done.count, 1);
    fixture_run(&f, 3000 * MS);
    ck_assert(node_id_equal(tester_leaf(servers[0], 0).primary, servers[1]->info.node));
    ck_assert_int_eq(place(&f, PLACE_MOVE, leaf.leaf, "cell-2", &done), TERRANE_ERR_OK);
    ck_assert_uint_eq(done.count, 0);
    join(&f, 2);
    join(&f, 3);
    fixture_run(&f, 60000 * MS); /* others go to the new ones */
    ck_assert(node_id_equal(tester_leaf(servers[0], 0).primary, servers[1]->info.node));
    ck_assert_uint_ge(leaves_of(&f, &servers[0]->map, servers[3]), 14);
    fixture_close(&f);
}
END_TEST

START_TEST(what_cannot_be_moved_is_refused_with_a_reason)
{
    static struct fixture f;
    struct done done;
    open_with(&f, 2);
    struct quadkey leaf = tester_leaf(servers[0], 0).leaf;
    ck_assert_int_eq(place(&f, PLACE_MOVE, leaf, "nobody", &done), TERRANE_ERR_CONFIG);
    ck_assert_int_eq(place(&f, PLACE_MOVE, quadkey_child(leaf, 2), "cell-2", &done), TERRANE_ERR_CONFIG);
    ck_assert_int_eq(place(&f, PLACE_PIN, quadkey_parent(leaf), "", &done), TERRANE_ERR_CONFIG);
    (void)fixture_drain(&f, "cell-2");
    ck_assert_int_eq(place(&f, PLACE_MOVE, leaf, "cell-2", &done), TERRANE_ERR_NOT_READY);
    fixture_close(&f);
}
END_TEST

START_TEST(each_move_and_promotion_is_explained_with_its_figures)
{
    static struct fixture f;
    open_with(&f, 4);
    join(&f, 4);
    fixture_run(&f, 700 * MS);
    const char *text = explain(&f, EXPLAIN_EVENTS, 0);
    ck_assert_ptr_nonnull(strstr(text, "\"event\":\"assigned\""));
    const char *move = strstr(text, "\"event\":\"move\"");
    ck_assert_ptr_nonnull(move);
    ck_assert_ptr_nonnull(strstr(move, "\"to\":\"cell-5\""));
    ck_assert_ptr_nonnull(strstr(move, "\"from_part\":1.25"));
    ck_assert_ptr_nonnull(strstr(move, "\"reason\":\"its server bears more than its share\""));
    uint64_t last = strtoull(strstr(text, "\"last\":") + 7, NULL, 10);
    ck_assert_uint_gt(last, 4);
    fixture_run(&f, 10000 * MS);
    text = explain(&f, EXPLAIN_EVENTS, last);
    ck_assert_ptr_null(strstr(text, "\"event\":\"assigned\""));
    ck_assert_ptr_nonnull(strstr(text, "\"event\":\"promoted\""));
    ck_assert_ptr_nonnull(strstr(explain(&f, EXPLAIN_EVENTS, UINT64_MAX), "\"events\":[]"));
    fixture_close(&f);
}
END_TEST

START_TEST(the_plan_says_what_would_be_done_and_does_nothing)
{
    static struct fixture f;
    struct coordinator_options options = fixture_protected(2);
    options.split_depth = 3;
    fixture_open(&f, &options); /* without balance */
    for (uint32_t i = 0; i < 2; i++) join(&f, i);
    fixture_run(&f, 1000 * MS);
    ck_assert_ptr_nonnull(strstr(explain(&f, EXPLAIN_PLAN, 0), "\"decisions\":[]"));
    join(&f, 2);
    fixture_run(&f, 5000 * MS);
    uint64_t rev = fixture_stats(&f).rev;
    const char *text = explain(&f, EXPLAIN_PLAN, 0);
    ck_assert_ptr_nonnull(strstr(text, "\"event\":\"move\""));
    ck_assert_ptr_nonnull(strstr(text, "\"balance\":false"));
    ck_assert_ptr_nonnull(strstr(text, "\"worst\":1.5"));
    fixture_run(&f, 5000 * MS);
    ck_assert_uint_eq(fixture_stats(&f).rev, rev);
    ck_assert_uint_eq(leaves_of(&f, &servers[0]->map, servers[2]), 0);
    fixture_close(&f);
}
END_TEST

SUITE_MAIN("coordinator: balance", a_new_server_gets_its_share_within_ten_seconds, when_all_is_even_nothing_moves,
           after_deaths_the_leaves_are_spread_again, at_most_sixteen_leaves_are_on_their_way_at_a_time,
           a_target_that_dies_on_the_way_costs_nothing, a_target_that_does_not_get_level_is_given_up,
           a_source_that_dies_on_the_way_is_replaced_by_who_has_a_copy,
           who_is_drained_gets_nothing_and_the_others_are_level, a_leader_that_has_heard_nothing_yet_moves_nothing,
           an_operator_moves_a_leaf_and_pins_it_there, what_cannot_be_moved_is_refused_with_a_reason,
           each_move_and_promotion_is_explained_with_its_figures, the_plan_says_what_would_be_done_and_does_nothing)
