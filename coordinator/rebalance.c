/* What the planner (balance.h) sees of the map, and what is begun of what it wants.
 *
 * It is asked at most each BALANCE_US, and only when nearly all owners have said what their leaves bear: a coordinator
 * that has just begun to lead knows nothing yet, and would level by number. */
#include "coordinator/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BALANCE_US UINT64_C(500000)
#define TOLD_PART  0.9

struct rebalance {
    struct balancer *balancer;
    struct balance_state state;
    struct balance_leaf *leaves;    /* along the curve */
    struct balance_server *servers; /* as members */
    uint32_t leaf_room, server_room;
    uint64_t due_us;
};

static bool told(const struct leaf *leaf)
{
    return leaf->told_epoch >= leaf->owner.since && leaf->told_epoch != 0;
}

/* The index of the first member on the same host stands for the host. */
static uint32_t host_of(const struct coordinator *c, uint32_t member)
{
    for (uint32_t i = 0; i < member; i++) {
        if (member_is_server(&c->members[i]) && strcmp(c->members[i].info.host, c->members[member].info.host) == 0)
            return i;
    }
    return member;
}

static void see_servers(struct coordinator *c)
{
    struct rebalance *r = c->rebalance;
    ARRAY_RESERVE(r->servers, r->server_room, c->member_count + 1u);
    for (uint32_t i = 0; i < c->member_count; i++) {
        const struct member *m = &c->members[i];
        bool server = m->state != MEMBER_FREE && member_is_server(m);
        r->servers[i] = (struct balance_server){.capacity = m->capacity > 0 ? m->capacity : 1};
        if (!server) continue;
        r->servers[i].host = host_of(c, i);
        r->servers[i].able = member_able(c, m);
        r->servers[i].draining = m->draining;
    }
}

static struct balance_leaf see_leaf(struct coordinator *c, const struct leaf *leaf)
{
    uint32_t primary = leaf->next.primary.v == 0 ? NONE : member_find(c, leaf->next.primary);
    uint32_t standby = leaf->next.standby.v == 0 ? NONE : member_find(c, leaf->next.standby);
    uint32_t target = migrate_is_on(leaf) ? member_find(c, leaf->course.target) : NONE;
    bool serves = primary != NONE && member_fate(c, primary) == FATE_SERVES;
    struct balance_leaf out = {.key = leaf->owner.leaf, .primary = primary, .standby = standby};
    if (target != NONE) out.primary = target;
    out.entities = leaf->load;
    out.load = leaf->load;
    out.moved_us = leaf->moved_us;
    out.cut_us = leaf->cut_us;
    out.hot_us = leaf->hot_us;
    out.cold_us = leaf->cold_us;
    /* Whose server is being emptied goes by another way (failover.c). */
    out.pinned = leaf->pinned || (serves && c->members[primary].draining);
    out.busy =
        !serves || leaf->saving || migrate_is_on(leaf) || leaf->moving_us != 0 || !told(leaf) || !leaf_level(c, leaf);
    return out;
}

/* False: too little is known. */
static bool see_leaves(struct coordinator *c)
{
    struct rebalance *r = c->rebalance;
    uint32_t known = 0, owned = 0;
    ARRAY_RESERVE(r->leaves, r->leaf_room, c->leaf_count);
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        const struct leaf *leaf = &c->leaves[c->curve[i]];
        r->leaves[i] = see_leaf(c, leaf);
        owned += leaf->owner.primary.v != 0;
        known += leaf->owner.primary.v != 0 && told(leaf);
    }
    return owned > 0 && known >= TOLD_PART * owned;
}

static struct balance_knobs knobs_of(const struct coordinator *c)
{
    struct balance_knobs knobs = c->options.knobs;
    knobs.moves_max = MIGRATIONS_MAX;
    knobs.split_least = HUGE_VAL;
    knobs.depth_min = c->options.world.depth; /* nobody joins leaves yet, so nobody need gather them */
    if (knobs.depth_max == 0 || knobs.depth_max > c->options.world.depth) knobs.depth_max = c->options.world.depth;
    return knobs;
}

static const char *const kinds[] = {
    [BALANCE_SPLIT] = "split", [BALANCE_MERGE] = "merge", [BALANCE_MOVE] = "move", [BALANCE_REFUSE] = "refuse"};

static void describe(const struct coordinator *c, const struct balance_decision *d, struct explained *e)
{
    const struct balance_leaf *leaf = &c->rebalance->leaves[d->leaf];
    const char *from = d->from == NONE ? "" : c->members[d->from].info.name;
    *e = (struct explained){.at_us = c->now_us, .kind = kinds[d->kind], .leaf = leaf->key, .leaves = 1};
    e->why = d->why;
    e->entities = leaf->entities;
    e->load = d->load;
    e->mark = d->mark;
    e->from_part = d->from_part;
    e->to_part = d->to_part;
    explain_servers(e, from, d->kind == BALANCE_MOVE ? c->members[d->to].info.name : from);
}

static void explain(struct coordinator *c, const struct balance_decision *d)
{
    char key[LIMIT_QUADKEY_TEXT];
    struct explained *e = explain_add(c, "", QUADKEY_NONE, "");
    describe(c, d, e);
    quadkey_text(e->leaf, key);
    outbox_log(c->out, LOG_INFO,
               "event=%s leaf=\"%s\" from=\"%s\" to=\"%s\" load=%.0f mark=%.0f entities=%u from_part=%.3f to_part=%.3f "
               "reason=\"%s\"",
               e->kind, key, e->from, e->to, e->load, e->mark, e->entities, e->from_part, e->to_part, e->why);
}

static void carry_out(struct coordinator *c, const struct balance_decision *d)
{
    uint32_t leaf = c->curve[d->leaf];
    if (d->kind == BALANCE_MOVE && migrate_start(c, leaf, d->to, d->why)) explain(c, d);
}

static struct rebalance *rebalance_of(struct coordinator *c)
{
    if (c->rebalance == NULL) {
        c->rebalance = calloc(1, sizeof *c->rebalance);
        CHECK(c->rebalance != NULL);
        c->rebalance->balancer = balancer_open();
    }
    return c->rebalance;
}

/* The number of decisions; those and the leaves' marks are in c->rebalance. */
static uint32_t ask(struct coordinator *c, struct balance_state *state)
{
    struct rebalance *r = c->rebalance;
    struct balance_input in = {.leaves = r->leaves,
                               .servers = r->servers,
                               .leaf_count = c->leaf_count,
                               .server_count = c->member_count,
                               .now_us = c->now_us,
                               .knobs = knobs_of(c),
                               .state = state};
    return balancer_plan(r->balancer, &in);
}

void rebalance_plan(struct coordinator *c)
{
    if (!c->options.balance || c->options.no_standbys) return;
    struct rebalance *r = rebalance_of(c);
    if (c->now_us < r->due_us) {
        assign_at(c, r->due_us);
        return;
    }
    r->due_us = c->now_us + BALANCE_US;
    assign_at(c, r->due_us);
    see_servers(c);
    if (!see_leaves(c)) return;
    uint32_t count = ask(c, &r->state);
    const struct balance_decision *decisions = balancer_decisions(r->balancer);
    struct balance_view view = balancer_view(r->balancer);
    c->stats.worst = view.worst;
    c->stats.least = view.least;
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        c->leaves[c->curve[i]].hot_us = r->leaves[i].hot_us;
        c->leaves[c->curve[i]].cold_us = r->leaves[i].cold_us;
    }
    for (uint32_t i = 0; i < count; i++) carry_out(c, &decisions[i]);
}

bool rebalance_preview(struct coordinator *c, struct balance_view *view,
                       void (*each)(void *context, const struct explained *decision), void *context)
{
    if (!c->ready || c->leaf_count == 0) return false;
    struct rebalance *r = rebalance_of(c);
    struct balance_state state = r->state;
    see_servers(c);
    if (!see_leaves(c)) return false;
    uint32_t count = ask(c, &state);
    *view = balancer_view(r->balancer);
    for (uint32_t i = 0; i < count; i++) {
        struct explained e;
        describe(c, &balancer_decisions(r->balancer)[i], &e);
        each(context, &e);
    }
    return true;
}

void rebalance_close(struct coordinator *c)
{
    if (c->rebalance == NULL) return;
    balancer_close(c->rebalance->balancer);
    free(c->rebalance->leaves);
    free(c->rebalance->servers);
    free(c->rebalance);
}
