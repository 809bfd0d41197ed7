#include "coordinator/balance_internal.h"

#include "common/array.h"
#include "common/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct balance_knobs balance_knobs_default(uint32_t world_depth)
{
    return (struct balance_knobs){
        .split_part = 0.06,
        .split_least = 1,
        .merge_part = 0.4,
        .leaf_load = 1e-9,
        .trigger = 0.05,
        .level = 0.025,
        .lack = 0.2,
        .urgent = 0.08,
        .calm_part = 0.015,
        .jam = 1.0,
        .dwell_us = 2000000,
        .cool_us = 15000000,
        .rest_us = 30000000,
        .depth_min = 0,
        .depth_max = world_depth,
        .moves_max = 64,
        .splits_max = 32,
    };
}

static void fill_knobs(struct balance_knobs *k)
{
    struct balance_knobs d = balance_knobs_default(LIMIT_WORLD_DEPTH);
    if (!(k->split_part > 0)) k->split_part = d.split_part;
    if (!(k->split_least > 0)) k->split_least = d.split_least;
    if (!(k->merge_part > 0)) k->merge_part = d.merge_part;
    if (!(k->leaf_load > 0)) k->leaf_load = d.leaf_load;
    if (!(k->trigger > 0)) k->trigger = d.trigger;
    if (!(k->level > 0)) k->level = d.level;
    if (!(k->lack > 0)) k->lack = d.lack;
    if (!(k->urgent > 0)) k->urgent = d.urgent;
    if (!(k->calm_part > 0)) k->calm_part = d.calm_part;
    if (!(k->jam > 0)) k->jam = d.jam;
    if (k->dwell_us == 0) k->dwell_us = d.dwell_us;
    if (k->cool_us == 0) k->cool_us = d.cool_us;
    if (k->rest_us == 0) k->rest_us = d.rest_us;
    if (k->depth_max == 0) k->depth_max = d.depth_max;
    if (k->moves_max == 0) k->moves_max = d.moves_max;
    if (k->splits_max == 0) k->splits_max = d.splits_max;
}

double balance_leaf_load(const struct balancer *b, uint32_t leaf)
{
    return b->in->leaves[leaf].load + b->knobs.leaf_load;
}

bool balance_takes(const struct balancer *b, uint32_t server)
{
    return b->in->servers[server].able && !b->in->servers[server].draining;
}

double balance_part(const struct balancer *b, uint32_t server)
{
    if (b->share[server] > 0) return b->load[server] / b->share[server];
    return b->load[server] > 0 ? HUGE_VAL : 0;
}

void balance_decide(struct balancer *b, const struct balance_decision *decision)
{
    ARRAY_RESERVE(b->decisions, b->decision_room, b->decision_count + 1u);
    b->decisions[b->decision_count++] = *decision;
    b->taken[decision->leaf] = true;
}

static void reserve(struct balancer *b)
{
    uint32_t servers = b->in->server_count, leaves = b->in->leaf_count;
    ARRAY_RESERVE(b->load, b->load_room, servers);
    ARRAY_RESERVE(b->share, b->share_room, servers);
    ARRAY_RESERVE(b->entities, b->entities_room, servers);
    ARRAY_RESERVE(b->spent, b->spent_room, servers);
    ARRAY_RESERVE(b->first, b->first_room, servers + 2u);
    ARRAY_RESERVE(b->leaves, b->leaves_room, leaves);
    ARRAY_RESERVE(b->owner, b->owner_room, leaves);
    ARRAY_RESERVE(b->taken, b->taken_room, leaves);
    ARRAY_RESERVE(b->hot, b->hot_room, leaves);
    memset(b->load, 0, servers * sizeof *b->load);
    memset(b->entities, 0, servers * sizeof *b->entities);
    memset(b->spent, 0, servers * sizeof *b->spent);
    memset(b->first, 0, (servers + 2u) * sizeof *b->first);
    b->decision_count = b->hot_count = 0;
}

/* Who bears what, and the leaves of each, in the curve's order. */
static void survey(struct balancer *b)
{
    const struct balance_input *in = b->in;
    struct balance_view *view = &b->view;
    *view = (struct balance_view){0};
    for (uint32_t i = 0; i < in->leaf_count; i++) {
        const struct balance_leaf *leaf = &in->leaves[i];
        b->owner[i] = leaf->primary;
        b->taken[i] = leaf->busy || leaf->pinned || leaf->primary == BALANCE_NONE;
        view->total += balance_leaf_load(b, i);
        view->moving += leaf->busy;
        view->stretches += i == 0 || leaf->primary != in->leaves[i - 1].primary;
        if (leaf->primary == BALANCE_NONE) continue;
        CHECK(leaf->primary < in->server_count);
        b->load[leaf->primary] += balance_leaf_load(b, i);
        b->entities[leaf->primary] += leaf->entities;
        b->first[leaf->primary + 2]++;
    }
    for (uint32_t s = 0; s < in->server_count; s++) b->first[s + 2] += b->first[s + 1];
    for (uint32_t i = 0; i < in->leaf_count; i++) {
        if (in->leaves[i].primary != BALANCE_NONE) b->leaves[b->first[in->leaves[i].primary + 1]++] = i;
    }
}

static void share_out(struct balancer *b)
{
    const struct balance_input *in = b->in;
    double capacities = 0;
    uint32_t takers = 0;
    for (uint32_t s = 0; s < in->server_count; s++) {
        if (!balance_takes(b, s)) continue;
        capacities += in->servers[s].capacity;
        takers++;
    }
    b->view.mean = takers > 0 ? b->view.total / takers : b->view.total;
    b->view.split_mark = fmax(b->knobs.split_part * b->view.mean, b->knobs.split_least);
    b->view.merge_mark = b->view.split_mark * b->knobs.merge_part;
    b->view.least = HUGE_VAL;
    for (uint32_t s = 0; s < in->server_count; s++) {
        bool takes = balance_takes(b, s);
        b->share[s] = takes ? b->view.total * in->servers[s].capacity / capacities : 0;
        if (takes) b->view.worst = fmax(b->view.worst, balance_part(b, s));
        if (takes) b->view.least = fmin(b->view.least, balance_part(b, s));
    }
    if (takers == 0) b->view.worst = b->view.least = 0;
}

bool balance_can_split(const struct balancer *b, uint32_t leaf)
{
    return quadkey_depth(b->in->leaves[leaf].key) < b->knobs.depth_max;
}

void balance_refuse_or_split(struct balancer *b, uint32_t leaf, const char *why)
{
    const struct balance_leaf *it = &b->in->leaves[leaf];
    double part = it->primary == BALANCE_NONE ? 0 : balance_part(b, it->primary);
    struct balance_decision d = {.kind = BALANCE_SPLIT,
                                 .leaf = leaf,
                                 .from = it->primary,
                                 .to = it->primary,
                                 .why = why,
                                 .load = balance_leaf_load(b, leaf),
                                 .mark = b->view.split_mark,
                                 .from_part = part,
                                 .to_part = part};
    if (balance_can_split(b, leaf)) {
        balance_decide(b, &d);
        return;
    }
    d.mark = it->primary == BALANCE_NONE ? b->view.mean : b->share[it->primary];
    if (d.load < b->knobs.jam * d.mark) return;
    d.kind = BALANCE_REFUSE;
    d.why = "it bears more than a server's share and is as small as regions get";
    balance_decide(b, &d);
}

/* It is cut whoever has it, and needs no second look. */
static bool far_above(const struct balancer *b, uint32_t leaf)
{
    return balance_leaf_load(b, leaf) > 4 * b->view.split_mark;
}

/* Notes who is above the mark, and who has been so for long enough. */
static void find_hot(struct balancer *b)
{
    const struct balance_input *in = b->in;
    for (uint32_t i = 0; i < in->leaf_count; i++) {
        struct balance_leaf *leaf = &in->leaves[i];
        double load = balance_leaf_load(b, i);
        if (load <= b->view.split_mark) {
            leaf->hot_us = 0;
            continue;
        }
        if (leaf->hot_us == 0) leaf->hot_us = in->now_us;
        uint64_t dwell_us = load > 2 * b->view.split_mark ? b->knobs.dwell_us / 4 : b->knobs.dwell_us;
        bool due = in->now_us - leaf->hot_us >= dwell_us || far_above(b, i);
        if (due && !b->taken[i]) b->hot[b->hot_count++] = i;
    }
}

struct ranked_leaf {
    double load;
    uint32_t leaf;
};

/* The heaviest first: a heap of the splits_max heaviest would do, sorting the few hot ones does as well. */
static int heavier(const void *a, const void *b)
{
    const struct ranked_leaf *left = a, *right = b;
    if (left->load != right->load) return left->load > right->load ? -1 : 1;
    return left->leaf < right->leaf ? -1 : left->leaf > right->leaf;
}

/* Those far above at first. When moves are decided, those of servers that still bear too much. */
static void splits(struct balancer *b, bool far)
{
    struct ranked_leaf *ranked = calloc(b->hot_count + 1u, sizeof *ranked);
    CHECK(ranked != NULL);
    uint32_t count = 0, cut = 0;
    for (uint32_t i = 0; i < b->hot_count; i++) {
        uint32_t leaf = b->hot[i], owner = b->owner[leaf];
        bool helps = owner == BALANCE_NONE || balance_part(b, owner) > 1 + b->knobs.trigger;
        if (b->taken[leaf] || (far ? !far_above(b, leaf) : !helps)) continue;
        ranked[count++] = (struct ranked_leaf){balance_leaf_load(b, leaf), leaf};
    }
    qsort(ranked, count, sizeof *ranked, heavier);
    for (uint32_t i = 0; i < b->decision_count; i++) cut += b->decisions[i].kind == BALANCE_SPLIT;
    for (uint32_t i = 0; i < count && cut < b->knobs.splits_max; i++, cut++)
        balance_refuse_or_split(b, ranked[i].leaf, "it bears more than the split mark");
    free(ranked);
}

/* Whether the leaf and the three after it on the curve are the four children of one region. The curve enters a region
 * once, so four siblings that are leaves lie side by side. */
static bool four_siblings(const struct balancer *b, uint32_t leaf)
{
    const struct balance_leaf *l = &b->in->leaves[leaf];
    uint32_t depth = quadkey_depth(l->key);
    if (leaf + 4 > b->in->leaf_count || depth == 0 || depth <= b->knobs.depth_min) return false;
    for (uint32_t i = 1; i < 4; i++) {
        if (l[i].key.v >> 2 != l->key.v >> 2) return false;
    }
    return true;
}

/* The four may be joined: they have been light for long enough and nothing else is decided about them. */
static bool join_due(struct balancer *b, uint32_t leaf, double load)
{
    struct balance_leaf *l = &b->in->leaves[leaf];
    uint64_t now_us = b->in->now_us;
    if (load >= b->view.merge_mark) {
        l->cold_us = 0;
        return false;
    }
    if (l->cold_us == 0) l->cold_us = now_us;
    bool due = now_us - l->cold_us >= b->knobs.cool_us;
    for (uint32_t i = 0; i < 4; i++) {
        bool cool = l[i].cut_us == 0 || now_us - l[i].cut_us >= b->knobs.cool_us;
        due = due && cool && !b->taken[leaf + i] && !l[i].guessed;
    }
    return due;
}

static void merges(struct balancer *b)
{
    uint32_t joined = 0;
    for (uint32_t i = 0; i + 4 <= b->in->leaf_count && joined < b->knobs.splits_max; i++) {
        if (!four_siblings(b, i)) continue;
        double load = 0;
        bool together = true;
        for (uint32_t k = 0; k < 4; k++) {
            load += balance_leaf_load(b, i + k);
            together = together && b->owner[i + k] == b->owner[i];
        }
        if (!join_due(b, i, load)) {
            i += 3;
            continue;
        }
        joined++;
        if (together) {
            struct balance_decision d = {.kind = BALANCE_MERGE,
                                         .leaf = i,
                                         .from = b->owner[i],
                                         .to = b->owner[i],
                                         .why = "the four bear less than the merge mark",
                                         .load = load,
                                         .mark = b->view.merge_mark,
                                         .from_part = balance_part(b, b->owner[i]),
                                         .to_part = balance_part(b, b->owner[i])};
            balance_decide(b, &d);
            for (uint32_t k = 1; k < 4; k++) b->taken[i + k] = true;
        } else {
            balance_gather(b, i);
        }
        i += 3;
    }
}

struct balancer *balancer_open(void)
{
    struct balancer *b = calloc(1, sizeof *b);
    CHECK(b != NULL);
    return b;
}

void balancer_close(struct balancer *b)
{
    if (b == NULL) return;
    free(b->load);
    free(b->share);
    free(b->entities);
    free(b->first);
    free(b->leaves);
    free(b->owner);
    free(b->taken);
    free(b->spent);
    free(b->hot);
    free(b->decisions);
    free(b);
}

uint32_t balancer_plan(struct balancer *b, const struct balance_input *in)
{
    CHECK(in->leaf_count > 0 && in->state != NULL);
    b->in = in;
    b->knobs = in->knobs;
    fill_knobs(&b->knobs);
    reserve(b);
    survey(b);
    share_out(b);
    balance_refill(b);
    find_hot(b);
    splits(b, true);
    balance_moves(b);
    splits(b, false);
    merges(b);
    b->in = NULL;
    return b->decision_count;
}

const struct balance_decision *balancer_decisions(const struct balancer *b)
{
    return b->decisions;
}

struct balance_view balancer_view(const struct balancer *b)
{
    return b->view;
}
