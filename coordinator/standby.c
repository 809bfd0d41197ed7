/* Who stands by for which leaf.
 *
 * The leaves of one server are shared out, in stretches along the curve, among up to STANDBYS_MAX others: on another
 * host if there is one, those with the least to stand by for first. So a death doubles nobody's load, and neighbours
 * stay together. A leaf keeps its standby as long as that serves, since each change costs a whole copy and leaves the
 * leaf alone until it is there. Changes that are only better (another host, a server that has too little) are few at
 * a time and wait until the former ones are level. */
#include "coordinator/internal.h"

#include <stdlib.h>
#include <string.h>

#define STANDBYS_MAX  3u
#define VOLUNTARY_MAX 16u                 /* leaves without a level standby that better choices may add up to */
#define COPY_US       UINT64_C(5000000)   /* a copy that takes longer holds no other up */
#define STUCK_US      UINT64_C(30000000)  /* and after that another server has its turn */
#define SHUNNED_US    UINT64_C(300000000) /* for so long the former one gets nothing more, if others can */

/* Who stands by for one server's leaves; those beyond the first few are not noted. */
struct trio {
    uint32_t members[STANDBYS_MAX], count;
};

struct ranked {
    const char *name;
    uint32_t member;
    bool candidate, spare; /* spare: shunned, it gets something only if no candidate can */
};

struct want {
    uint32_t rank, place, leaf; /* its server's place among the names; its own on the curve */
};

/* One round. Candidates may get something; servers also have something. */
struct choice {
    struct coordinator *c;
    struct ranked *servers; /* by name */
    uint32_t server_count;
    uint32_t *rank;      /* member -> its place among them */
    uint64_t capacities; /* of the candidates */
    struct trio *trios;  /* by rank */
    struct want *wants;  /* leaves without a standby: by rank, along the curve */
    uint32_t want_count, in_flight;
    uint32_t server_room, rank_room, trio_room, want_room; /* the arrays are kept from round to round */
};

static int name_order(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order != 0 ? order : (left->member > right->member) - (left->member < right->member);
}

static int want_order(const void *a, const void *b)
{
    const struct want *left = a, *right = b;
    if (left->rank != right->rank) return left->rank < right->rank ? -1 : 1;
    return left->place < right->place ? -1 : left->place > right->place;
}

static void choice_open(struct choice *o, struct coordinator *c)
{
    o->c = c;
    o->server_count = o->want_count = o->in_flight = 0;
    o->capacities = 0;
    ARRAY_RESERVE(o->servers, o->server_room, c->member_count + 1u);
    ARRAY_RESERVE(o->rank, o->rank_room, c->member_count + 1u);
    ARRAY_RESERVE(o->trios, o->trio_room, c->member_count + 1u);
    ARRAY_RESERVE(o->wants, o->want_room, c->leaf_count);
    memset(o->rank, 0, c->member_count * sizeof *o->rank);
    memset(o->trios, 0, c->member_count * sizeof *o->trios);
    for (uint32_t i = 0; i < c->member_count; i++) {
        const struct member *m = &c->members[i];
        bool there = (m->state == MEMBER_ACTIVE || m->state == MEMBER_EXPECTED) && member_is_server(m);
        if (!there) continue;
        bool able = member_able(c, m) && !m->draining, shunned = c->now_us < m->shunned_us;
        o->servers[o->server_count++] = (struct ranked){m->info.name, i, able && !shunned, able && shunned};
        if (able && !shunned) o->capacities += m->capacity;
    }
    qsort(o->servers, o->server_count, sizeof *o->servers, name_order);
    for (uint32_t i = 0; i < o->server_count; i++) o->rank[o->servers[i].member] = i;
}

static bool trio_has(const struct trio *t, uint32_t member)
{
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->members[i] == member) return true;
    }
    return false;
}

static void trio_add(struct trio *t, uint32_t member)
{
    if (t->count < STANDBYS_MAX && !trio_has(t, member)) t->members[t->count++] = member;
}

static bool same_host(const struct choice *o, uint32_t a, uint32_t b)
{
    return strcmp(o->c->members[a].info.host, o->c->members[b].info.host) == 0;
}

/* Some candidate is on another host than this server. */
static bool other_host(const struct choice *o, uint32_t primary)
{
    for (uint32_t i = 0; i < o->server_count; i++) {
        if (o->servers[i].candidate && !same_host(o, o->servers[i].member, primary)) return true;
    }
    return false;
}

/* Whether the candidate of that rank may stand by for that server. */
static bool suits(const struct choice *o, uint32_t rank, uint32_t primary, bool elsewhere)
{
    uint32_t member = o->servers[rank].member;
    return o->servers[rank].candidate && member != primary && !(elsewhere && same_host(o, member, primary));
}

static uint64_t share_of(const struct choice *o, uint32_t member)
{
    if (o->capacities == 0) return 0;
    return (uint64_t)o->c->leaf_count * o->c->members[member].capacity / o->capacities;
}

/* a stands by for less than b, measured by what they can bear. */
static bool bears_less(const struct choice *o, uint32_t a, uint32_t b)
{
    const struct member *left = &o->c->members[a], *right = &o->c->members[b];
    return (uint64_t)left->stands * right->capacity < (uint64_t)right->stands * left->capacity;
}

/* Who may stand by for this server's leaves: those who do, and up to `wanted` in all of those who bear least. Names
 * in a circle break ties, so that equals stand by for each other in turn. */
static struct trio trio_for(const struct choice *o, uint32_t primary, uint32_t wanted)
{
    struct trio t = {0};
    bool elsewhere = other_host(o, primary);
    const struct trio *now = &o->trios[o->rank[primary]];
    for (uint32_t i = 0; i < now->count; i++) {
        if (suits(o, o->rank[now->members[i]], primary, elsewhere)) trio_add(&t, now->members[i]);
    }
    while (t.count < STANDBYS_MAX && t.count < wanted) {
        uint32_t best = NONE;
        for (uint32_t i = 1; i < o->server_count; i++) {
            uint32_t rank = (o->rank[primary] + i) % o->server_count, member = o->servers[rank].member;
            if (!suits(o, rank, primary, elsewhere) || trio_has(&t, member)) continue;
            if (best == NONE || bears_less(o, member, best)) best = member;
        }
        if (best == NONE) break;
        trio_add(&t, best);
    }
    for (uint32_t i = 0; i < o->server_count && t.count == 0; i++) {
        if (o->servers[i].spare && o->servers[i].member != primary) trio_add(&t, o->servers[i].member);
    }
    return t;
}

static uint32_t primary_of(const struct coordinator *c, const struct leaf *leaf)
{
    return leaf->next.primary.v == 0 ? NONE : member_find(c, leaf->next.primary);
}

static uint32_t standby_of(const struct coordinator *c, const struct leaf *leaf)
{
    return leaf->next.standby.v == 0 ? NONE : member_find(c, leaf->next.standby);
}

/* Notes what is: the trios, leaves that want a standby, copies under way. A silent server can't feed a standby. */
static void survey(struct choice *o)
{
    struct coordinator *c = o->c;
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        struct leaf *leaf = &c->leaves[c->curve[i]];
        uint32_t primary = primary_of(c, leaf), standby = standby_of(c, leaf);
        if (primary == NONE || member_fate(c, primary) != FATE_SERVES) continue;
        bool silent = standby != NONE && member_fate(c, standby) == FATE_SILENT; /* failover.c lets it wait */
        if (standby != NONE && standby != primary && member_fate(c, standby) == FATE_SERVES) {
            trio_add(&o->trios[o->rank[primary]], standby);
            o->in_flight += leaf->saving || (!leaf_level(c, leaf) && c->now_us < leaf->stands_us + COPY_US);
        } else if (!silent) {
            o->wants[o->want_count++] = (struct want){o->rank[primary], i, c->curve[i]};
        }
    }
    if (o->want_count > 1) qsort(o->wants, o->want_count, sizeof *o->wants, want_order);
}

/* One server's leaves that want a standby, cut into stretches by what each of the trio lacks of its share. */
static void share_out(struct choice *o, const struct want *wants, uint32_t count)
{
    uint32_t primary = o->servers[wants[0].rank].member;
    struct trio t = trio_for(o, primary, count < STANDBYS_MAX ? count : STANDBYS_MAX);
    uint64_t weights[STANDBYS_MAX] = {0}, weight = 0, sum = 0;
    for (uint32_t i = 0; i < t.count; i++) {
        uint64_t share = share_of(o, t.members[i]), has = o->c->members[t.members[i]].stands;
        weights[i] = share > has ? share - has : 0;
        weight += weights[i];
    }
    for (uint32_t i = 0; i < t.count && weight == 0; i++) weights[i] = o->c->members[t.members[i]].capacity;
    for (uint32_t i = 0; i < t.count && weight == 0; i++) sum += weights[i];
    weight += sum;
    sum = 0;
    for (uint32_t i = 0, at = 0; i < t.count; i++) {
        sum += weights[i];
        uint32_t end = (uint32_t)(count * sum / weight);
        for (; at < end; at++) {
            plan_leaf(o->c, wants[at].leaf, primary, t.members[i],
                      "it had none; these bear least, on another host where there is one");
            trio_add(&o->trios[o->rank[primary]], t.members[i]);
            o->in_flight++;
        }
    }
}

/* Whether this leaf may lose its standby for a better one now: if it has a whole copy there, only a few may. */
static bool may_change(struct choice *o, const struct leaf *leaf)
{
    const struct member *m = &o->c->members[primary_of(o->c, leaf)];
    if (!leaf_level(o->c, leaf)) return true;
    if (o->c->now_us > m->heard_us + o->c->options.lease_us / 2) { /* it may be dead already */
        assign_at(o->c, o->c->now_us + o->c->options.lease_us / 2);
        return false;
    }
    if (o->in_flight >= VOLUNTARY_MAX) {
        o->c->awaits_level = true;
        assign_at(o->c, o->c->now_us + COPY_US);
        return false;
    }
    o->in_flight++;
    return true;
}

static void change(struct choice *o, uint32_t at, uint32_t primary, uint32_t standby, const char *why)
{
    plan_leaf(o->c, at, primary, standby, why);
    o->c->awaits_level = true;
    if (standby != NONE) trio_add(&o->trios[o->rank[primary]], standby);
}

/* One of the trio but `former`: the one of the leaf before on the curve if it lacks something, else who bears least. */
static uint32_t pick(const struct choice *o, uint32_t primary, uint32_t former, uint32_t neighbour)
{
    struct trio t = trio_for(o, primary, STANDBYS_MAX);
    uint32_t best = NONE;
    for (uint32_t i = 0; i < t.count; i++) {
        uint32_t member = t.members[i];
        if (member == former) continue;
        if (member == neighbour && o->c->members[member].stands < share_of(o, member)) return member;
        if (best == NONE || bears_less(o, member, best)) best = member;
    }
    return best;
}

static void shun(struct choice *o, uint32_t member)
{
    struct ranked *r = &o->servers[o->rank[member]];
    o->c->members[member].shunned_us = o->c->now_us + SHUNNED_US;
    if (!r->candidate) return;
    r->candidate = false;
    r->spare = true;
    o->capacities -= o->c->members[member].capacity;
}

/* Leaves whose standby is to be emptied, is on its server's host without need, or does not get level. */
static void improve(struct choice *o)
{
    struct coordinator *c = o->c;
    uint32_t before = NONE, neighbour = NONE; /* the last leaf's */
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        uint32_t at = c->curve[i];
        const struct leaf *leaf = &c->leaves[at];
        uint32_t primary = primary_of(c, leaf), standby = standby_of(c, leaf);
        if (primary != before) neighbour = NONE;
        before = primary;
        bool idle = leaf->saving || primary == NONE || standby == NONE || member_fate(c, primary) != FATE_SERVES ||
                    migrate_is_on(leaf) || leaf->moving_us != 0;
        if (!idle) {
            bool leaves = c->members[standby].draining, level = leaf_level(c, leaf);
            bool near = same_host(o, primary, standby) && other_host(o, primary);
            bool stuck = !level && c->now_us >= leaf->stands_us + STUCK_US;
            if (!level) assign_at(c, leaf->stands_us + STUCK_US);
            uint32_t other = leaves || near || stuck ? pick(o, primary, standby, neighbour) : NONE;
            if (leaves && other == NONE) change(o, at, primary, NONE, "its standby is being emptied, nobody else can");
            if (other != NONE && stuck) shun(o, standby);
            if (other != NONE && may_change(o, leaf))
                change(o, at, primary, other,
                       leaves ? "its standby is being emptied"
                       : near ? "on another host now"
                              : "the former one did not get level");
        }
        neighbour = standby_of(c, leaf);
    }
}

/* The candidate with the least for what it can bear, if that is less than half of its share. */
static uint32_t idler(const struct choice *o)
{
    uint32_t least = NONE;
    for (uint32_t i = 0; i < o->server_count; i++) {
        uint32_t member = o->servers[i].member;
        if (o->servers[i].candidate && (least == NONE || bears_less(o, member, least))) least = member;
    }
    if (least == NONE || (uint64_t)o->c->members[least].stands * 2 >= share_of(o, least)) return NONE;
    return least;
}

/* Somebody came back or is new: it takes some from those who have more than their share. At first from servers that
 * it may stand by for without a fourth one; if there are none, from any. */
static void level_out(struct choice *o, bool fourth)
{
    struct coordinator *c = o->c;
    uint32_t to = idler(o), moved = 0;
    for (uint32_t i = 0; to != NONE && i < c->leaf_count; i++) {
        uint32_t at = c->curve[i];
        const struct leaf *leaf = &c->leaves[at];
        uint32_t primary = primary_of(c, leaf), standby = standby_of(c, leaf);
        bool idle = leaf->saving || primary == NONE || standby == NONE || primary == to || standby == to;
        if (idle || migrate_is_on(leaf) || leaf->moving_us != 0 || !leaf_level(c, leaf)) continue;
        if (c->members[to].stands >= share_of(o, to)) continue;
        if (c->members[standby].stands <= share_of(o, standby)) continue;
        if (member_fate(c, primary) != FATE_SERVES || !suits(o, o->rank[to], primary, other_host(o, primary))) continue;
        const struct trio *t = &o->trios[o->rank[primary]];
        if (!fourth && !trio_has(t, to) && t->count == STANDBYS_MAX) continue;
        if (!may_change(o, leaf)) return;
        change(o, at, primary, to, "it stands by for less than its share");
        moved++;
    }
    if (to != NONE && moved == 0 && !fourth) level_out(o, true);
}

static void switch_off(struct coordinator *c)
{
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        const struct leaf *leaf = &c->leaves[i];
        uint32_t primary = primary_of(c, leaf);
        bool dead = primary == NONE || member_fate(c, primary) == FATE_DEAD;
        if (leaf->next.standby.v != 0 && !dead) plan_leaf(c, i, primary, NONE, "standbys are switched off");
    }
}

static void share_all(struct choice *o)
{
    for (uint32_t i = 0, end; i < o->want_count; i = end) {
        for (end = i + 1; end < o->want_count && o->wants[end].rank == o->wants[i].rank;) end++;
        share_out(o, &o->wants[i], end - i);
    }
}

void standbys_plan(struct coordinator *c)
{
    if (c->options.no_standbys) {
        switch_off(c);
        return;
    }
    if (c->choice == NULL) c->choice = calloc(1, sizeof *c->choice);
    CHECK(c->choice != NULL);
    choice_open(c->choice, c);
    survey(c->choice);
    share_all(c->choice);
    improve(c->choice);
    level_out(c->choice, false);
}

void standbys_close(struct coordinator *c)
{
    if (c->choice == NULL) return;
    free(c->choice->servers);
    free(c->choice->rank);
    free(c->choice->trios);
    free(c->choice->wants);
    free(c->choice);
}
