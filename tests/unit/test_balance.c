/* The planner by its properties, over random worlds: coordinator/balance.h. */
#include "coordinator/balance.h"

#include "common/array.h"
#include "tools/dice.h"

#include "tests/unit/suite.h"

#include <math.h>
#include <string.h>

#define MANY    4096u
#define SERVERS 12u
#define REST_US UINT64_C(30000000)
#define STEP_US UINT64_C(1000000)

struct rig {
    struct dice dice;
    struct balance_leaf leaves[MANY];
    uint64_t arrives_us[MANY];
    struct balance_server servers[SERVERS];
    uint32_t count, servers_used;
    struct balance_state state;
    struct balance_knobs knobs;
    struct balancer *balancer;
    uint64_t now_us;
    uint32_t splits, merges, moves, refusals;
    uint64_t migrated;
    double (*load_at)(const struct rig *rig, struct quadkey key);
};

static uint64_t hilbert(struct quadkey key)
{
    return quadkey_hilbert(key) << 2 * (LIMIT_WORLD_DEPTH - quadkey_depth(key));
}

static int curve_order(const void *a, const void *b)
{
    uint64_t left = hilbert(((const struct balance_leaf *)a)->key),
             right = hilbert(((const struct balance_leaf *)b)->key);
    return left < right ? -1 : left > right;
}

/* Load and entities lie somewhere in the world; a region has what lies in it. */
static double even(const struct rig *rig, struct quadkey key)
{
    (void)rig;
    return 64000.0 / (double)(UINT64_C(1) << 2 * quadkey_depth(key));
}

/* Half of all lies in the region 0120, evenly. */
static double spot(const struct rig *rig, struct quadkey key)
{
    struct quadkey place = {(UINT64_C(1) << 8) | 0x18};
    double rest = even(rig, key) / 2;
    if (quadkey_contains(key, place)) return rest + 32000;
    return quadkey_contains(place, key) ? rest + 32000.0 / (double)(UINT64_C(1) << 2 * (quadkey_depth(key) - 4)) : rest;
}

static void measure(struct rig *rig)
{
    for (uint32_t i = 0; i < rig->count; i++) {
        rig->leaves[i].load = rig->load_at(rig, rig->leaves[i].key);
        rig->leaves[i].entities = (uint32_t)(rig->leaves[i].load / 4);
        rig->leaves[i].guessed = false;
    }
}

static struct rig *rig_open(uint64_t seed, uint32_t servers, double (*load_at)(const struct rig *, struct quadkey))
{
    static struct rig rig;
    rig = (struct rig){.dice = {seed}, .servers_used = servers, .now_us = 1000000000, .load_at = load_at};
    rig.knobs = balance_knobs_default(8);
    rig.balancer = balancer_open();
    rig.count = 64;
    for (uint32_t i = 0; i < rig.count; i++)
        rig.leaves[i] = (struct balance_leaf){.key = {64 | i}, .standby = BALANCE_NONE};
    qsort(rig.leaves, rig.count, sizeof *rig.leaves, curve_order);
    for (uint32_t i = 0; i < rig.count; i++) rig.leaves[i].primary = i * servers / rig.count;
    for (uint32_t s = 0; s < SERVERS; s++)
        rig.servers[s] = (struct balance_server){.host = s / 2, .capacity = 1, .able = s < servers};
    rig.servers_used = SERVERS;
    measure(&rig);
    return &rig;
}

static void rig_split(struct rig *rig, uint32_t at)
{
    struct balance_leaf parent = rig->leaves[at];
    ck_assert_uint_le(rig->count + 3, MANY);
    for (uint32_t digit = 0; digit < 4; digit++) {
        struct balance_leaf child = parent;
        child.key = quadkey_child(parent.key, digit);
        child.cut_us = rig->now_us;
        child.hot_us = child.cold_us = 0;
        child.load = parent.load / 4;
        child.entities = parent.entities / 4;
        child.guessed = true;
        rig->leaves[digit == 0 ? at : rig->count++] = child;
    }
    rig->splits++;
}

static void rig_merge(struct rig *rig, uint32_t at)
{
    for (uint32_t i = at; i < at + 4; i++) {
        ck_assert_uint_eq(rig->leaves[i].key.v >> 2, rig->leaves[at].key.v >> 2);
        ck_assert_uint_eq(rig->leaves[i].primary, rig->leaves[at].primary);
        if (i > at && rig->leaves[i].moved_us > rig->leaves[at].moved_us)
            rig->leaves[at].moved_us = rig->leaves[i].moved_us;
        if (i > at) rig->leaves[i].key = QUADKEY_NONE;
    }
    rig->leaves[at].key = quadkey_parent(rig->leaves[at].key);
    rig->leaves[at].cut_us = rig->now_us;
    rig->leaves[at].hot_us = rig->leaves[at].cold_us = 0;
    rig->merges++;
}

/* What must hold of every decision, whatever the input. */
static void check_decision(const struct rig *rig, const struct balance_decision *d)
{
    const struct balance_leaf *leaf = &rig->leaves[d->leaf];
    ck_assert_uint_lt(d->leaf, rig->count);
    ck_assert(d->why != NULL && d->why[0] != '\0');
    ck_assert(!leaf->busy && !leaf->pinned);
    ck_assert_uint_eq(d->from, leaf->primary);
    if (d->kind == BALANCE_SPLIT) ck_assert_uint_lt(quadkey_depth(leaf->key), rig->knobs.depth_max);
    if (d->kind == BALANCE_REFUSE) ck_assert_uint_ge(quadkey_depth(leaf->key), rig->knobs.depth_max);
    if (d->kind == BALANCE_MERGE) ck_assert_uint_gt(quadkey_depth(leaf->key), rig->knobs.depth_min);
    if (d->kind != BALANCE_MOVE) return;
    ck_assert_uint_ne(d->to, d->from);
    ck_assert(rig->servers[d->to].able && !rig->servers[d->to].draining);
    bool rested = leaf->moved_us == 0 || rig->now_us - leaf->moved_us >= REST_US;
    ck_assert(rested || rig->servers[d->from].draining);
}

/* One plan; moves arrive `moves_us` later. */
static uint32_t rig_step(struct rig *rig, uint64_t moves_us)
{
    struct balance_input in = {.leaves = rig->leaves,
                               .servers = rig->servers,
                               .leaf_count = rig->count,
                               .server_count = rig->servers_used,
                               .now_us = rig->now_us,
                               .knobs = rig->knobs,
                               .state = &rig->state};
    uint32_t count = balancer_plan(rig->balancer, &in), kept = 0, busy = 0;
    static bool subject[MANY];
    memset(subject, 0, sizeof subject);
    const struct balance_decision *decisions = balancer_decisions(rig->balancer);
    for (uint32_t i = 0; i < count; i++) {
        const struct balance_decision *d = &decisions[i];
        check_decision(rig, d);
        ck_assert(!subject[d->leaf]);
        subject[d->leaf] = true;
        rig->refusals += d->kind == BALANCE_REFUSE;
        if (d->kind != BALANCE_MOVE) continue;
        rig->leaves[d->leaf].primary = d->to;
        rig->leaves[d->leaf].moved_us = rig->now_us;
        rig->leaves[d->leaf].busy = moves_us > 0;
        rig->arrives_us[d->leaf] = rig->now_us + moves_us;
        rig->migrated += rig->leaves[d->leaf].entities;
        rig->moves++;
    }
    for (uint32_t i = 0; i < rig->count; i++) busy += rig->leaves[i].busy;
    ck_assert_uint_le(busy, rig->knobs.moves_max);
    for (uint32_t i = 0; i < rig->count; i++) {
        if (rig->leaves[i].busy && rig->now_us + STEP_US >= rig->arrives_us[i]) rig->leaves[i].busy = false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (decisions[i].kind == BALANCE_SPLIT) rig_split(rig, decisions[i].leaf);
        if (decisions[i].kind == BALANCE_MERGE) rig_merge(rig, decisions[i].leaf);
    }
    for (uint32_t i = 0; i < rig->count; i++) {
        if (rig->leaves[i].key.v != 0) rig->leaves[kept++] = rig->leaves[i];
    }
    rig->count = kept;
    qsort(rig->leaves, rig->count, sizeof *rig->leaves, curve_order);
    measure(rig);
    rig->now_us += STEP_US;
    return count;
}

static void rig_run(struct rig *rig, uint32_t seconds)
{
    for (uint32_t i = 0; i < seconds; i++) rig_step(rig, STEP_US);
}

static struct balance_view view_of(struct rig *rig)
{
    struct balance_state state = rig->state;
    struct balance_input in = {.leaves = rig->leaves,
                               .servers = rig->servers,
                               .leaf_count = rig->count,
                               .server_count = rig->servers_used,
                               .now_us = rig->now_us,
                               .knobs = rig->knobs,
                               .state = &state};
    balancer_plan(rig->balancer, &in);
    return balancer_view(rig->balancer);
}

START_TEST(a_hot_spot_is_cut_and_spread)
{
    struct rig *rig = rig_open(1, 8, spot);
    ck_assert(view_of(rig).worst > 4);
    rig_run(rig, 10);
    ck_assert(view_of(rig).worst < 1.1);
    ck_assert_uint_gt(rig->splits, 4);
    balancer_close(rig->balancer);
}
END_TEST

START_TEST(when_all_is_even_nothing_is_done)
{
    struct rig *rig = rig_open(1, 8, even);
    for (uint32_t i = 0; i < 600; i++) ck_assert_uint_eq(rig_step(rig, STEP_US), 0);
    balancer_close(rig->balancer);
}
END_TEST

START_TEST(what_has_been_settled_stays_so)
{
    struct rig *rig = rig_open(1, 8, spot);
    rig_run(rig, 300); /* stretches are tidied for a while */
    uint32_t splits = rig->splits, merges = rig->merges;
    for (uint32_t i = 0; i < 600; i++) ck_assert_uint_eq(rig_step(rig, STEP_US), 0);
    ck_assert_uint_eq(rig->splits + rig->merges, splits + merges);
    balancer_close(rig->balancer);
}
END_TEST

START_TEST(what_was_cut_is_joined_when_the_crowd_has_gone)
{
    struct rig *rig = rig_open(1, 8, spot);
    rig_run(rig, 120);
    uint32_t most = rig->count;
    rig->load_at = even;
    measure(rig);
    rig_run(rig, 240);
    ck_assert_uint_gt(most, 100);
    ck_assert_uint_lt(rig->count, most * 2 / 3);
    ck_assert(view_of(rig).worst < 1.1);
    balancer_close(rig->balancer);
}
END_TEST

START_TEST(a_new_server_has_its_share_within_ten_seconds)
{
    struct rig *rig = rig_open(1, 4, even);
    rig_run(rig, 60);
    ck_assert_uint_eq(rig->moves, 0);
    rig->servers[4].able = true;
    rig_run(rig, 10);
    struct balance_view view = view_of(rig);
    ck_assert(view.least > 0.85 && view.worst < 1.12);
    balancer_close(rig->balancer);
}
END_TEST

START_TEST(a_server_that_is_drained_gives_all_away)
{
    struct rig *rig = rig_open(1, 4, spot);
    rig_run(rig, 30);
    rig->servers[2].draining = true;
    rig_run(rig, 20);
    for (uint32_t i = 0; i < rig->count; i++) ck_assert_uint_ne(rig->leaves[i].primary, 2);
    ck_assert(view_of(rig).worst < 1.15);
    balancer_close(rig->balancer);
}
END_TEST

START_TEST(who_can_bear_more_gets_more)
{
    struct rig *rig = rig_open(1, 4, even);
    rig->servers[1].capacity = 3;
    rig_run(rig, 60);
    struct balance_view view = view_of(rig);
    double has = 0;
    for (uint32_t i = 0; i < rig->count; i++) has += rig->leaves[i].primary == 1 ? rig->leaves[i].load : 0;
    ck_assert(view.worst < 1.1);
    ck_assert(has > 0.45 * view.total && has < 0.55 * view.total);
    balancer_close(rig->balancer);
}
END_TEST

START_TEST(one_with_all_leaves_and_no_load_gives_them_away_by_number)
{
    struct rig *rig = rig_open(1, 4, even);
    for (uint32_t i = 0; i < rig->count; i++) rig->leaves[i].primary = 0;
    rig->load_at = NULL;
    for (uint32_t i = 0; i < rig->count; i++) rig->leaves[i].load = rig->leaves[i].entities = 0;
    rig->load_at = even;
    struct balance_input in = {.leaves = rig->leaves,
                               .servers = rig->servers,
                               .leaf_count = rig->count,
                               .server_count = SERVERS,
                               .now_us = rig->now_us,
                               .knobs = rig->knobs,
                               .state = &rig->state};
    uint32_t count = balancer_plan(rig->balancer, &in), to[SERVERS] = {0};
    for (uint32_t i = 0; i < count; i++) to[balancer_decisions(rig->balancer)[i].to]++;
    for (uint32_t s = 1; s < 4; s++) ck_assert(to[s] >= 15 && to[s] <= 17);
    balancer_close(rig->balancer);
}
END_TEST

START_TEST(a_pinned_leaf_stays_as_it_is)
{
    struct rig *rig = rig_open(1, 8, spot);
    struct quadkey hot = {64 | 6}; /* holds 0120 */
    for (uint32_t i = 0; i < rig->count; i++) rig->leaves[i].pinned = quadkey_equal(rig->leaves[i].key, hot);
    rig_run(rig, 60);
    uint32_t found = 0;
    for (uint32_t i = 0; i < rig->count; i++) found += quadkey_equal(rig->leaves[i].key, hot);
    ck_assert_uint_eq(found, 1);
    balancer_close(rig->balancer);
}
END_TEST

START_TEST(a_leaf_that_cannot_be_cut_is_refused_with_its_figures)
{
    struct rig *rig = rig_open(1, 8, spot);
    rig->knobs.depth_max = 3;
    rig_run(rig, 60);
    ck_assert_uint_gt(rig->refusals, 0);
    ck_assert_uint_eq(rig->splits, 0);
    view_of(rig);
    bool refused = false;
    const struct balance_decision *d = balancer_decisions(rig->balancer);
    if (d[0].kind == BALANCE_REFUSE) refused = d[0].load > 30000 && d[0].mark > 0 && d[0].mark < 9000;
    ck_assert(refused);
    balancer_close(rig->balancer);
}
END_TEST

START_TEST(guessed_loads_move_nothing)
{
    struct rig *rig = rig_open(1, 8, spot);
    for (uint32_t i = 0; i < rig->count; i++) rig->leaves[i].guessed = true;
    struct balance_input in = {.leaves = rig->leaves,
                               .servers = rig->servers,
                               .leaf_count = rig->count,
                               .server_count = SERVERS,
                               .now_us = rig->now_us,
                               .knobs = rig->knobs,
                               .state = &rig->state};
    uint32_t count = balancer_plan(rig->balancer, &in);
    ck_assert_uint_gt(count, 0);
    for (uint32_t i = 0; i < count; i++) ck_assert_int_eq(balancer_decisions(rig->balancer)[i].kind, BALANCE_SPLIT);
    balancer_close(rig->balancer);
}
END_TEST

START_TEST(small_imbalance_moves_no_more_than_the_allowance)
{
    struct rig *rig = rig_open(1, 4, even);
    rig->servers[0].capacity = 20;
    for (uint32_t s = 1; s < 4; s++)
        rig->servers[s].capacity = 19; /* within urgent, beyond the trigger after a while */
    rig->servers[1].capacity = 18;
    rig_run(rig, 600);
    double entities = 0;
    for (uint32_t i = 0; i < rig->count; i++) entities += rig->leaves[i].entities;
    ck_assert((double)rig->migrated <= 10 * 0.02 * entities);
    balancer_close(rig->balancer);
}
END_TEST

/* Random worlds: loads that change, servers that come, go and drain, pins. rig_step checks each decision. */
static double patchy(const struct rig *rig, struct quadkey key)
{
    uint64_t epoch = rig->now_us / 20000000;
    double load = 0;
    for (uint32_t n = 0; n < 6; n++) {
        struct quadkey place = {(UINT64_C(1) << 10) | dice_mix(rig->dice.state ^ (epoch + n) / 3 * 7919 ^ n) % 1024};
        double share = 10000;
        if (quadkey_contains(key, place))
            load += share;
        else if (quadkey_contains(place, key))
            load += share / (double)(UINT64_C(1) << 2 * (quadkey_depth(key) - 5));
    }
    return load + even(rig, key) / 2;
}

START_TEST(random_worlds_break_no_rule_and_are_levelled_in_the_end)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct rig *rig = rig_open(dice_mix(seed), 3 + (uint32_t)(seed % 6), patchy);
        struct dice dice = {seed};
        for (uint32_t step = 0; step < 240; step++) {
            uint32_t server = dice_below(&dice, SERVERS), leaf = dice_below(&dice, rig->count);
            if (step % 20 == 0) rig->servers[server].able = !rig->servers[server].able;
            if (step % 30 == 0) rig->servers[dice_below(&dice, SERVERS)].draining = dice_below(&dice, 3) == 0;
            if (step % 10 == 0) rig->leaves[leaf].pinned = !rig->leaves[leaf].pinned;
            rig->servers[0].able = true;
            rig->servers[0].draining = false;
            rig_step(rig, STEP_US * dice_below(&dice, 3));
        }
        for (uint32_t i = 0; i < rig->count; i++) rig->leaves[i].pinned = false;
        rig->load_at = spot;
        measure(rig);
        rig_run(rig, 90);
        ck_assert_msg(view_of(rig).worst < 1.1, "seed %u: worst %.3f", (unsigned)seed, view_of(rig).worst);
        ck_assert_uint_gt(rig->splits, 0);
        ck_assert_uint_gt(rig->merges, 0);
        balancer_close(rig->balancer);
    }
}
END_TEST

SUITE_MAIN("balance", a_hot_spot_is_cut_and_spread, when_all_is_even_nothing_is_done, what_has_been_settled_stays_so,
           what_was_cut_is_joined_when_the_crowd_has_gone, a_new_server_has_its_share_within_ten_seconds,
           a_server_that_is_drained_gives_all_away, who_can_bear_more_gets_more,
           one_with_all_leaves_and_no_load_gives_them_away_by_number, a_pinned_leaf_stays_as_it_is,
           a_leaf_that_cannot_be_cut_is_refused_with_its_figures, guessed_loads_move_nothing,
           small_imbalance_moves_no_more_than_the_allowance, random_worlds_break_no_rule_and_are_levelled_in_the_end)
