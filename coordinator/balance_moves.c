/* Which leaves change hands: see balance.h. */
#include "coordinator/balance_internal.h"

#include <math.h>

/* A move is worth more where it keeps regions compact: measured with bench_balance, not derived. */
#define BESIDE_NONE 0.4 /* the receiver owns neither neighbour on the curve */
#define BESIDE_HOST 0.5 /* nor does it, but another server on its host does */
#define BESIDE_BOTH 1.5
#define CUTS        0.6 /* the giver owns both: its stretch is cut */
#define HAS_COPY    1.3
#define LEAF_COST   10.0 /* a move costs something besides its entities: so many more */

#define TIDY_MAX 2u

struct offer {
    uint32_t leaf, to;
    double score;
};

void balance_refill(struct balancer *b)
{
    struct balance_state *state = b->in->state;
    double entities = 0, most;
    for (uint32_t s = 0; s < b->in->server_count; s++) entities += (double)b->entities[s];
    most = b->knobs.calm_part * entities;
    uint64_t span_us = state->refilled_us == 0 ? 0 : b->in->now_us - state->refilled_us;
    state->allowance = fmin(most, state->allowance + most * (double)span_us / 60e6);
    state->refilled_us = b->in->now_us;
}

uint32_t balance_move_room(const struct balancer *b)
{
    uint32_t moves = 0;
    for (uint32_t i = 0; i < b->decision_count; i++) moves += b->decisions[i].kind == BALANCE_MOVE;
    uint32_t under_way = b->view.moving + moves;
    return under_way < b->knobs.moves_max ? b->knobs.moves_max - under_way : 0;
}

static bool rested(const struct balancer *b, const struct balance_leaf *leaf)
{
    return leaf->moved_us == 0 || b->in->now_us - leaf->moved_us >= b->knobs.rest_us;
}

static bool same_host(const struct balancer *b, uint32_t neighbour, uint32_t to)
{
    return neighbour != BALANCE_NONE && b->in->servers[neighbour].host == b->in->servers[to].host;
}

static double affinity(const struct balancer *b, uint32_t leaf, uint32_t from, uint32_t to)
{
    uint32_t before = leaf > 0 ? b->owner[leaf - 1] : BALANCE_NONE;
    uint32_t after = leaf + 1 < b->in->leaf_count ? b->owner[leaf + 1] : BALANCE_NONE;
    bool beside = before == to || after == to;
    double worth = before == to && after == to ? BESIDE_BOTH : beside ? 1 : BESIDE_NONE;
    if (!beside && (same_host(b, before, to) || same_host(b, after, to))) worth = BESIDE_HOST;
    if (before == from && after == from) worth *= CUTS;
    if (b->in->leaves[leaf].standby == to) worth *= HAS_COPY;
    return worth;
}

/* How much load a move makes good, 0 if it would only carry the trouble elsewhere. */
static double gain_of(const struct balancer *b, double load, uint32_t from, uint32_t to)
{
    if (b->in->servers[from].draining) return load;
    double surplus = b->load[from] - b->share[from], lack = b->share[to] - b->load[to];
    double from_after = (b->load[from] - load) / b->share[from], to_after = (b->load[to] + load) / b->share[to];
    if (to_after > 1 + b->knobs.level && to_after > from_after) return 0;
    if (from_after < 1 - b->knobs.level && from_after < to_after) return 0;
    return fmin(load, fmin(surplus, lack));
}

static void consider(const struct balancer *b, uint32_t leaf, uint32_t to, struct offer *best)
{
    uint32_t from = b->owner[leaf];
    if (to == BALANCE_NONE || to == from || !balance_takes(b, to)) return;
    double load = balance_leaf_load(b, leaf), gain = gain_of(b, load, from, to);
    if (!(gain > 0)) return;
    /* Entities that are dear to serve: the same load for fewer copies. */
    double usual = ((double)b->entities[from] + LEAF_COST) / b->load[from];
    double thrift = sqrt(usual * load / (b->in->leaves[leaf].entities + LEAF_COST));
    double score = gain * (gain / load) * affinity(b, leaf, from, to) * thrift;
    if (score > best->score) *best = (struct offer){leaf, to, score};
}

/* Who bears the least, and who the most of those that still have something to give. */
static uint32_t neediest(const struct balancer *b)
{
    uint32_t least = BALANCE_NONE;
    for (uint32_t s = 0; s < b->in->server_count; s++) {
        if (balance_takes(b, s) && (least == BALANCE_NONE || balance_part(b, s) < balance_part(b, least))) least = s;
    }
    return least;
}

static uint32_t fullest(const struct balancer *b)
{
    uint32_t most = BALANCE_NONE;
    for (uint32_t s = 0; s < b->in->server_count; s++) {
        bool gives = !b->spent[s] && b->load[s] > 0 && (balance_takes(b, s) || b->in->servers[s].draining);
        if (gives && (most == BALANCE_NONE || balance_part(b, s) > balance_part(b, most))) most = s;
    }
    return most;
}

static struct offer best_offer(const struct balancer *b, uint32_t from, uint32_t least, bool calm)
{
    struct offer best = {.score = 0};
    bool draining = b->in->servers[from].draining;
    for (uint32_t at = b->first[from]; at < b->first[from + 1]; at++) {
        uint32_t leaf = b->leaves[at];
        const struct balance_leaf *l = &b->in->leaves[leaf];
        if (b->taken[leaf] || (!draining && (l->guessed || !rested(b, l)))) continue;
        if (calm && l->entities > b->in->state->allowance) continue;
        if (leaf > 0) consider(b, leaf, b->owner[leaf - 1], &best);
        if (leaf + 1 < b->in->leaf_count) consider(b, leaf, b->owner[leaf + 1], &best);
        consider(b, leaf, l->standby, &best);
        consider(b, leaf, least, &best);
    }
    return best;
}

static void move(struct balancer *b, uint32_t leaf, uint32_t to, const char *why, double mark)
{
    struct balance_state *state = b->in->state;
    uint32_t from = b->owner[leaf], entities = b->in->leaves[leaf].entities;
    double load = balance_leaf_load(b, leaf);
    struct balance_decision d = {.kind = BALANCE_MOVE,
                                 .leaf = leaf,
                                 .from = from,
                                 .to = to,
                                 .why = why,
                                 .load = load,
                                 .mark = mark,
                                 .from_part = balance_part(b, from),
                                 .to_part = balance_part(b, to)};
    balance_decide(b, &d);
    b->owner[leaf] = to;
    b->load[from] -= load;
    b->load[to] += load;
    b->entities[from] -= entities;
    b->entities[to] += entities;
    if (d.from_part <= 1 + b->knobs.urgent) state->allowance = fmax(0, state->allowance - entities);
}

/* Nothing of its can go as it is: its heaviest leaf is too much at once. */
static void cut_heaviest(struct balancer *b, uint32_t server)
{
    uint32_t heaviest = BALANCE_NONE;
    for (uint32_t at = b->first[server]; at < b->first[server + 1]; at++) {
        uint32_t leaf = b->leaves[at];
        if (b->taken[leaf] || balance_leaf_load(b, leaf) < 2 * b->view.merge_mark) continue;
        if (!balance_can_split(b, leaf) || balance_leaf_load(b, leaf) < b->knobs.split_least) continue;
        if (heaviest == BALANCE_NONE || balance_leaf_load(b, leaf) > balance_leaf_load(b, heaviest)) heaviest = leaf;
    }
    bool above = balance_part(b, server) > 1 + b->knobs.trigger;
    if (heaviest != BALANCE_NONE && above)
        balance_refuse_or_split(b, heaviest, "its server bears more than its share and no leaf is small enough to go");
}

/* A single leaf of one server between two of another costs both a border on each side. While all is well and half of
 * the allowance is left, it goes to the other, if that has room. */
static void tidy(struct balancer *b, uint32_t room)
{
    const struct balance_input *in = b->in;
    double entities = 0;
    for (uint32_t s = 0; s < in->server_count; s++) entities += (double)b->entities[s];
    double reserve = b->knobs.calm_part * entities / 2;
    if (room > TIDY_MAX) room = TIDY_MAX;
    for (uint32_t i = 1; i + 1 < in->leaf_count && room > 0; i++) {
        uint32_t to = b->owner[i - 1], from = b->owner[i];
        if (b->taken[i] || to == from || to == BALANCE_NONE || b->owner[i + 1] != to || !balance_takes(b, to)) continue;
        if (!rested(b, &in->leaves[i]) || in->leaves[i].guessed) continue;
        if (in->state->allowance - in->leaves[i].entities < reserve) continue;
        double load = balance_leaf_load(b, i);
        if (b->load[to] + load > b->share[to] * (1 + b->knobs.level)) continue;
        if (b->load[from] - load < b->share[from] * (1 - b->knobs.lack / 2)) continue;
        move(b, i, to, "both its neighbours on the curve are the other's", b->share[to]);
        room--;
    }
}

void balance_moves(struct balancer *b)
{
    struct balance_state *state = b->in->state;
    uint32_t room = balance_move_room(b);
    if (b->view.worst > 1 + b->knobs.trigger || b->view.least < 1 - b->knobs.lack) state->levelling = true;
    while (room > 0) {
        uint32_t least = neediest(b), most = fullest(b);
        if (least == BALANCE_NONE || most == BALANCE_NONE) break;
        double part = balance_part(b, most);
        bool draining = b->in->servers[most].draining;
        bool high = part > 1 + b->knobs.level, low = balance_part(b, least) < 1 - b->knobs.lack / 2;
        if (!draining && !((high || (low && part > 1)) && state->levelling)) break;
        bool calm = !draining && part <= 1 + b->knobs.urgent && !low;
        struct offer offer = best_offer(b, most, least, calm);
        if (!(offer.score > 0)) {
            if (!draining && !calm) cut_heaviest(b, most);
            b->spent[most] = true;
            continue;
        }
        move(b, offer.leaf, offer.to,
             draining ? "its server is being emptied"
             : high   ? "its server bears more than its share"
                      : "the other bears less than its share",
             draining ? 0 : b->share[most]);
        room--;
    }
    double worst = 0, least = HUGE_VAL;
    for (uint32_t s = 0; s < b->in->server_count; s++) {
        if (!balance_takes(b, s)) continue;
        worst = fmax(worst, balance_part(b, s));
        least = fmin(least, balance_part(b, s));
    }
    if (!state->levelling) tidy(b, room);
    if (worst <= 1 + b->knobs.level && least >= 1 - b->knobs.lack / 2) state->levelling = false;
}

/* Where most of the four's entities are, among servers that take leaves; NONE: nowhere. */
static uint32_t home_of(const struct balancer *b, uint32_t leaf)
{
    uint32_t home = BALANCE_NONE, most = 0;
    for (uint32_t i = leaf; i < leaf + 4; i++) {
        uint32_t sum = 0;
        for (uint32_t k = leaf; k < leaf + 4; k++)
            sum += b->owner[k] == b->owner[i] ? b->in->leaves[k].entities + 1 : 0;
        if (sum <= most || !balance_takes(b, b->owner[i])) continue;
        most = sum;
        home = b->owner[i];
    }
    return home;
}

void balance_gather(struct balancer *b, uint32_t leaf)
{
    const struct balance_leaf *l = &b->in->leaves[leaf];
    uint32_t room = balance_move_room(b), to = home_of(b, leaf), entities = 0, moves = 0;
    for (uint32_t k = 0; k < 4; k++) {
        if (b->owner[leaf + k] == to) continue;
        if (!rested(b, &l[k])) return;
        entities += l[k].entities;
        moves++;
    }
    if (to == BALANCE_NONE || moves > room || entities > b->in->state->allowance) return;
    for (uint32_t k = leaf; k < leaf + 4; k++) {
        if (b->owner[k] != to) move(b, k, to, "to its siblings, which are to be joined", b->view.merge_mark);
    }
}
