#include "bench/balance_policy.h"

#include "common/array.h"
#include "common/check.h"
#include "tools/dice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOVE_US     UINT64_C(1000000)
#define REST_US     UINT64_C(30000000)
#define NOISE       0.05
#define SMOOTHING   0.4 /* of the newest report */
#define TRIGGER     1.06
#define RECOVERED   1.15
#define FIRST_DEPTH 4u
#define GREEDY_MAX  64u

const char *const POLICY_NAMES[POLICIES] = {"planner", "static", "greedy", "recut"};

struct place {
    struct balance_leaf leaf; /* its primary: where it goes, if it is on its way */
    uint32_t server;          /* who serves it */
    uint64_t due_us, hilbert;
    bool reported;
};

struct cluster {
    enum policy policy;
    struct dice dice;
    uint64_t now_us;
    struct place *places;
    struct balance_leaf *leaves;
    uint32_t count, room, leaf_room;
    struct balance_server servers[BENCH_SERVERS];
    struct balance_state state;
    struct balance_knobs knobs;
    struct balancer *balancer;
    double *ratios;
    uint32_t ratio_count, ratio_room;
    double recovering_s, recover_s, migrated, counted_s; /* recovering_s < 0: not */
    uint32_t moved_twice;
};

static int place_order(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    return left->hilbert < right->hilbert ? -1 : left->hilbert > right->hilbert;
}

static struct place place_at(struct quadkey key)
{
    struct place p = {.leaf = {.key = key, .standby = BALANCE_NONE}};
    p.hilbert = quadkey_hilbert(key) << 2 * (WORLD_DEPTH - quadkey_depth(key));
    return p;
}

/* One report of each leaf. */
static void report(struct cluster *c, const struct balance_world *world)
{
    for (uint32_t i = 0; i < c->count; i++) {
        struct place *p = &c->places[i];
        double load = balance_world_load(world, p->leaf.key) * (1 + NOISE * dice_normal(&c->dice));
        p->leaf.load = p->reported ? p->leaf.load + SMOOTHING * (load - p->leaf.load) : load;
        p->leaf.entities = balance_world_entities(world, p->leaf.key);
        p->reported = true;
        p->leaf.guessed = false;
    }
}

/* By count, along the curve: a fair start for everybody. */
static void hand_out(struct cluster *c, const struct balance_world *world)
{
    double total = balance_world_load(world, QUADKEY_ROOT), sum = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        double load = balance_world_load(world, c->places[i].leaf.key);
        uint32_t server = (uint32_t)((sum + load / 2) / (total + 1e-9) * BENCH_SERVERS);
        if (c->policy == POLICY_STATIC) server = i;
        c->places[i].server = c->places[i].leaf.primary = server < BENCH_SERVERS ? server : BENCH_SERVERS - 1;
        sum += load;
    }
}

struct cluster *cluster_open(enum policy policy, const struct balance_world *world, uint64_t seed)
{
    struct cluster *c = calloc(1, sizeof *c);
    CHECK(c != NULL);
    *c = (struct cluster){.policy = policy, .dice = {seed}, .now_us = 1000000000, .recovering_s = -1};
    uint32_t depth = policy == POLICY_STATIC ? 2 : policy == POLICY_GREEDY ? 5 : FIRST_DEPTH;
    c->count = 1u << 2 * depth;
    ARRAY_RESERVE(c->places, c->room, c->count);
    for (uint32_t i = 0; i < c->count; i++) c->places[i] = place_at((struct quadkey){c->count | i});
    qsort(c->places, c->count, sizeof *c->places, place_order);
    for (uint32_t s = 0; s < BENCH_SERVERS; s++)
        c->servers[s] = (struct balance_server){.host = s / 2, .capacity = 1, .able = true};
    c->knobs = balance_knobs_default(WORLD_DEPTH);
    c->balancer = balancer_open();
    hand_out(c, world);
    report(c, world);
    return c;
}

void cluster_close(struct cluster *c)
{
    balancer_close(c->balancer);
    free(c->places);
    free(c->leaves);
    free(c->ratios);
    free(c);
}

static void start_move(struct cluster *c, uint32_t at, uint32_t to)
{
    struct place *p = &c->places[at];
    p->leaf.primary = to;
    p->leaf.busy = true;
    p->due_us = c->now_us + MOVE_US;
}

static void arrive(struct cluster *c, bool counts)
{
    for (uint32_t i = 0; i < c->count; i++) {
        struct place *p = &c->places[i];
        if (!p->leaf.busy || c->now_us < p->due_us) continue;
        if (counts && p->leaf.moved_us != 0 && c->now_us - p->leaf.moved_us < REST_US) c->moved_twice++;
        if (counts) c->migrated += p->leaf.entities;
        p->leaf.busy = false;
        p->leaf.moved_us = c->now_us;
        p->server = p->leaf.primary;
    }
}

static void split(struct cluster *c, uint32_t at)
{
    struct place parent = c->places[at];
    for (uint32_t digit = 0; digit < 4; digit++) {
        struct place child = place_at(quadkey_child(parent.leaf.key, digit));
        child.leaf.primary = parent.leaf.primary;
        child.server = parent.server;
        child.leaf.load = parent.leaf.load / 4;
        child.leaf.entities = parent.leaf.entities / 4;
        child.leaf.moved_us = parent.leaf.moved_us;
        child.leaf.cut_us = c->now_us;
        child.leaf.guessed = true;
        if (digit > 0) ARRAY_RESERVE(c->places, c->room, c->count + 1u);
        c->places[digit == 0 ? at : c->count++] = child;
    }
}

static void merge(struct cluster *c, uint32_t at)
{
    struct place whole = place_at(quadkey_parent(c->places[at].leaf.key));
    whole.leaf.primary = c->places[at].leaf.primary;
    whole.server = c->places[at].server;
    whole.leaf.cut_us = c->now_us;
    whole.reported = true;
    for (uint32_t i = at; i < at + 4; i++) {
        whole.leaf.load += c->places[i].leaf.load;
        whole.leaf.entities += c->places[i].leaf.entities;
        if (c->places[i].leaf.moved_us > whole.leaf.moved_us) whole.leaf.moved_us = c->places[i].leaf.moved_us;
        c->places[i].leaf.key = QUADKEY_NONE;
    }
    c->places[at] = whole;
}

/* Splits and merges are done at once. */
static void reshape(struct cluster *c, const struct balance_decision *decisions, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (decisions[i].kind == BALANCE_SPLIT) split(c, decisions[i].leaf);
        if (decisions[i].kind == BALANCE_MERGE) merge(c, decisions[i].leaf);
    }
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->places[i].leaf.key.v != 0) c->places[kept++] = c->places[i];
    }
    c->count = kept;
    qsort(c->places, c->count, sizeof *c->places, place_order);
}

static bool plan_once(struct cluster *c, bool moves)
{
    uint32_t leaves = c->count;
    ARRAY_RESERVE(c->leaves, c->leaf_room, c->count);
    for (uint32_t i = 0; i < c->count; i++) c->leaves[i] = c->places[i].leaf;
    struct balance_input in = {.leaves = c->leaves,
                               .servers = c->servers,
                               .leaf_count = c->count,
                               .server_count = BENCH_SERVERS,
                               .now_us = c->now_us,
                               .knobs = c->knobs,
                               .state = &c->state};
    uint32_t count = balancer_plan(c->balancer, &in);
    const struct balance_decision *decisions = balancer_decisions(c->balancer);
    for (uint32_t i = 0; i < c->count; i++) c->places[i].leaf = c->leaves[i];
    for (uint32_t i = 0; i < count && moves; i++) {
        if (decisions[i].kind == BALANCE_MOVE) start_move(c, decisions[i].leaf, decisions[i].to);
    }
    reshape(c, decisions, count);
    return c->count > leaves;
}

/* A round that has cut something is followed by the next at once. */
static void run_planner(struct cluster *c, bool moves)
{
    for (uint32_t round = 0; round < WORLD_DEPTH && plan_once(c, moves); round++) continue;
}

/* What each server bears, or has to when all moves have arrived; by load or entities. */
static void tally(const struct cluster *c, bool later, bool entities, double *sums)
{
    memset(sums, 0, BENCH_SERVERS * sizeof *sums);
    for (uint32_t i = 0; i < c->count; i++) {
        const struct place *p = &c->places[i];
        sums[later ? p->leaf.primary : p->server] += entities ? p->leaf.entities : p->leaf.load;
    }
}

static void extremes(const double *sums, uint32_t *most, uint32_t *least)
{
    *most = *least = 0;
    for (uint32_t s = 1; s < BENCH_SERVERS; s++) {
        if (sums[s] > sums[*most]) *most = s;
        if (sums[s] < sums[*least]) *least = s;
    }
}

static double mean_of(const double *sums)
{
    double sum = 0;
    for (uint32_t s = 0; s < BENCH_SERVERS; s++) sum += sums[s];
    return sum / BENCH_SERVERS;
}

static void run_greedy(struct cluster *c)
{
    double sums[BENCH_SERVERS];
    uint32_t under_way = 0, most, least;
    tally(c, true, true, sums);
    for (uint32_t i = 0; i < c->count; i++) under_way += c->places[i].leaf.busy;
    for (; under_way < GREEDY_MAX; under_way++) {
        extremes(sums, &most, &least);
        if (sums[most] <= TRIGGER * mean_of(sums)) return;
        double half = (sums[most] - sums[least]) / 2;
        uint32_t best = BALANCE_NONE;
        for (uint32_t i = 0; i < c->count; i++) {
            const struct balance_leaf *l = &c->places[i].leaf;
            if (l->busy || l->primary != most || l->entities == 0 || l->entities > half) continue;
            if (best == BALANCE_NONE || l->entities > c->places[best].leaf.entities) best = i;
        }
        if (best == BALANCE_NONE) return;
        sums[most] -= c->places[best].leaf.entities;
        sums[least] += c->places[best].leaf.entities;
        start_move(c, best, least);
    }
}

/* Cuts the curve into equal stretches; each leaf goes to the server of the stretch that holds its middle. */
static void run_recut(struct cluster *c)
{
    double sums[BENCH_SERVERS], sum = 0;
    uint32_t most, least;
    run_planner(c, false);
    tally(c, true, false, sums);
    extremes(sums, &most, &least);
    double mean = mean_of(sums);
    if (sums[most] <= TRIGGER * mean) return;
    for (uint32_t i = 0; i < c->count; i++) {
        double load = c->places[i].leaf.load;
        uint32_t server = (uint32_t)((sum + load / 2) / mean);
        if (server >= BENCH_SERVERS) server = BENCH_SERVERS - 1;
        sum += load;
        if (!c->places[i].leaf.busy && c->places[i].leaf.primary != server) start_move(c, i, server);
    }
}

/* By what leaves really cost, not by what was reported. */
static void measure(struct cluster *c, const struct balance_world *world, bool counts)
{
    double sums[BENCH_SERVERS] = {0};
    uint32_t most, least;
    for (uint32_t i = 0; i < c->count; i++)
        sums[c->places[i].server] += balance_world_load(world, c->places[i].leaf.key);
    extremes(sums, &most, &least);
    double ratio = sums[most] / mean_of(sums);
    if (c->recovering_s >= 0 && ratio < RECOVERED) {
        if (c->recovering_s > c->recover_s) c->recover_s = c->recovering_s;
        c->recovering_s = -1;
    }
    if (!counts) return;
    ARRAY_RESERVE(c->ratios, c->ratio_room, c->ratio_count + 1u);
    c->ratios[c->ratio_count++] = ratio;
    c->counted_s += STEP_S;
}

void cluster_step(struct cluster *c, const struct balance_world *world, bool jumped, bool counts)
{
    c->now_us += (uint64_t)(STEP_S * 1e6);
    arrive(c, counts);
    if (jumped) c->recovering_s = 0;
    measure(c, world, counts);
    if (c->recovering_s >= 0) c->recovering_s += STEP_S;
    if (c->recovering_s > c->recover_s) c->recover_s = c->recovering_s; /* not yet, or never */
    report(c, world);
    if (c->policy == POLICY_PLANNER) run_planner(c, true);
    if (c->policy == POLICY_GREEDY) run_greedy(c);
    if (c->policy == POLICY_RECUT) run_recut(c);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct cluster_figures cluster_figures(struct cluster *c)
{
    struct cluster_figures f = {.recover_s = c->recover_s, .moved_twice = c->moved_twice, .leaves = c->count};
    double sum = 0, entities = 0;
    for (uint32_t i = 0; i < c->ratio_count; i++) sum += c->ratios[i];
    for (uint32_t i = 0; i < c->count; i++) {
        entities += c->places[i].leaf.entities;
        f.stretches += i == 0 || c->places[i].server != c->places[i - 1].server;
    }
    CHECK(c->ratio_count > 0 && entities > 0);
    qsort(c->ratios, c->ratio_count, sizeof *c->ratios, ascending);
    f.imbalance_mean = sum / c->ratio_count;
    f.imbalance_p99 = c->ratios[(uint32_t)(0.99 * (c->ratio_count - 1))];
    f.migrated_per_min = 100 * c->migrated / entities / (c->counted_s / 60);
    return f;
}
