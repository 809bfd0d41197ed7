/* Who answers for what: the servers' own lists against each other and against what the players did. */
#include "tests/sim/checker.h"

#include "tests/sim/sim.h"

#include <string.h>

#define STATE_ORDER UINT32_C(0x7fffffff)

static bool same(struct position a, struct position b)
{
    return a.x == b.x && a.y == b.y && a.z == b.z;
}

/* An acknowledged state or a later one, and a position of late. */
static void judge_record(struct sim *sim, const struct walker *w, const struct owned *o)
{
    const struct cellserver_entity *e = &o->entity;
    uint32_t life, number;
    if (!state_read(w->id, e->record.state, e->record.state_size, &life, &number)) {
        sim_violation(sim, "server %u holds a changed state of %llu", o->server, (unsigned long long)w->id);
        return;
    }
    if (w->presence != PRESENT) return;
    uint32_t order = number & STATE_ORDER;
    if (life != w->life || order < (w->state_acked & STATE_ORDER) || order > (w->state_number & STATE_ORDER))
        sim_violation(sim, "server %u holds state %u.%u of %llu; acknowledged is %u.%u", o->server, life, order,
                      (unsigned long long)w->id, w->life, w->state_acked & STATE_ORDER);
    uint64_t from_us = sim->now_us > sim->plan.window_us ? sim->now_us - sim->plan.window_us : 0;
    for (uint64_t i = w->history_end, from = walker_history_from(w, from_us); i-- > from;)
        if (same(walker_history(w, i)->position, e->record.position)) return;
    sim_violation(sim, "server %u has %llu at (%d, %d, %d), where it has not been lately", o->server,
                  (unsigned long long)w->id, e->record.position.x, e->record.position.y, e->record.position.z);
}

/* On the still world: all of it. */
static void judge_exact(struct sim *sim, const struct walker *w, const struct owned *o)
{
    const struct cellserver_entity *e = &o->entity;
    const struct entity_record *r = &e->record;
    const struct world *world = &sim->plan.world;
    if (e->leaving)
        sim_violation(sim, "%llu is leaving server %u though all is calm", (unsigned long long)w->id, o->server);
    if (!same(r->position, w->position))
        sim_violation(sim, "%llu stands at (%d, %d, %d), last moved to (%d, %d, %d)", (unsigned long long)w->id,
                      r->position.x, r->position.y, r->position.z, w->position.x, w->position.y, w->position.z);
    uint8_t turned = (uint8_t)(r->yaw - w->yaw);
    if (turned != 0 && turned != 1 && turned != UINT8_MAX)
        sim_violation(sim, "%llu is turned to %u, last to %u", (unsigned long long)w->id, r->yaw, w->yaw);
    if (r->radius != w->radius || r->kind != w->kind || r->flags != w->flags || r->layer != w->layer)
        sim_violation(sim, "%llu has radius %u, kind %u, flags %u, layer %u; it should be %u, %u, %u, %u",
                      (unsigned long long)w->id, r->radius, r->kind, r->flags, r->layer, w->radius, w->kind, w->flags,
                      w->layer);
    uint32_t life, number;
    if (state_read(w->id, r->state, r->state_size, &life, &number) && number != w->state_number)
        sim_violation(sim, "%llu has state %u, last set was %u", (unsigned long long)w->id, number & STATE_ORDER,
                      w->state_number & STATE_ORDER);
    struct square leaf = quadkey_square(world, e->leaf);
    if (square_distance(leaf, r->position) > world->handoff_hysteresis)
        sim_violation(sim, "%llu is kept in a leaf that it has left", (unsigned long long)w->id);
    if (!node_id_equal(e->gateway, sim->members[sim->gateway_first + w->gateway].node))
        sim_violation(sim, "%llu belongs to another gateway", (unsigned long long)w->id);
}

static void take(void *context, const struct cellserver_entity *e)
{
    struct sim *sim = context;
    struct checker *k = &sim->checker;
    uint32_t walker = checker_walker(sim, e->record.id.v);
    if (walker == WALKER_NONE) {
        sim_violation(sim, "server %u lists %llu, which never was", k->census_server,
                      (unsigned long long)e->record.id.v);
        return;
    }
    const struct walker *w = &sim->crowd.walkers[walker];
    if (w->presence == PRESENT && plants_strike(sim, PLANT_ENTITY_LOST)) return;
    struct owned *o = &k->owned[walker];
    o->listed++;
    if (o->listed > 1) {
        uint64_t version = o->entity.record.version;
        bool later = e->record.version > version;
        bool lower_leaves = later ? o->entity.leaving : e->leaving;
        if (e->record.version == version || !lower_leaves) {
            sim_violation(sim, "doubled: %llu is answered for by server %u (version %llu%s) and server %u (%llu%s)",
                          (unsigned long long)w->id, o->server, (unsigned long long)version,
                          o->entity.leaving ? ", leaving" : "", k->census_server, (unsigned long long)e->record.version,
                          e->leaving ? ", leaving" : "");
        }
        if (!later) return;
    }
    o->server = k->census_server;
    o->entity = *e;
    if (plants_strike(sim, PLANT_ENTITY_DOUBLED) && o->listed == 1) {
        uint32_t other = k->census_server;
        k->census_server++;
        take(context, e);
        k->census_server = other;
    }
}

static void judge_owned(struct sim *sim, uint32_t walker, bool exact)
{
    const struct walker *w = &sim->crowd.walkers[walker];
    struct owned *o = &sim->checker.owned[walker];
    uint64_t version = o->entity.record.version;
    if (o->listed > 0 && exact) judge_exact(sim, w, o);
    /* The full look at a record costs: each walker in turn. */
    if (o->listed > 0 && (exact || (sim->checker.looks + walker) % 16 == 0)) judge_record(sim, w, o);
    if (w->presence == PRESENT && o->listed == 0)
        sim_violation(sim, "lost: no server answers for %llu", (unsigned long long)w->id);
    if (w->presence == ABSENT && o->listed > 0 && (!o->entity.leaving || exact))
        sim_violation(sim, "server %u still answers for %llu, which has left", o->server, (unsigned long long)w->id);
    if (exact && w->presence == PRESENT && o->listed != 1)
        sim_violation(sim, "doubled: %u servers list %llu though all is calm", o->listed, (unsigned long long)w->id);
    if (w->presence != PRESENT || o->listed == 0) return;
    if (o->life_before == w->life && version < o->version_before)
        sim_violation(sim, "the version of %llu falls from %llu to %llu", (unsigned long long)w->id,
                      (unsigned long long)o->version_before, (unsigned long long)version);
    o->version_before = version;
    o->life_before = w->life;
}

void census_look(struct sim *sim, bool exact)
{
    struct checker *k = &sim->checker;
    for (uint32_t i = 0; i < k->count; i++) k->owned[i].listed = 0;
    for (uint32_t i = 0; i < sim->plan.servers && !sim->violated; i++) {
        const struct member *m = &sim->members[sim->server_first + i];
        k->census_server = i;
        if (m->server != NULL) cellserver_census(m->server, take, sim);
    }
    for (uint32_t i = 0; i < k->count && !sim->violated; i++) judge_owned(sim, i, exact);
}

struct leaf_look {
    struct sim *sim;
    bool known; /* the coordinator has read its map */
};

static void take_leaf(void *context, const struct leaf_owner *leaf)
{
    struct leaf_look *look = context;
    struct sim *sim = look->sim;
    uint32_t owners = 0;
    char text[LIMIT_QUADKEY_TEXT];
    for (uint32_t i = 0; i < sim->plan.servers; i++) {
        const struct member *m = &sim->members[sim->server_first + i];
        uint32_t epoch = 0;
        if (m->server == NULL || !cellserver_owns(m->server, leaf->leaf, &epoch)) continue;
        owners++;
        if (plants_strike(sim, PLANT_LEAF_DOUBLED)) owners++;
        if (look->known && (epoch > leaf->epoch || (epoch == leaf->epoch && !node_id_equal(leaf->primary, m->node))))
            sim_violation(sim, "server %u owns a leaf under epoch %u, which the coordinator gave to another", i, epoch);
    }
    if (owners <= 1) return;
    quadkey_text(leaf->leaf, text);
    sim_violation(sim, "%u servers own the leaf \"%s\"", owners, text);
}

void census_leaves(struct sim *sim)
{
    const struct member *m = &sim->members[COORDINATOR];
    if (m->coordinator == NULL) return;
    struct coordinator_stats stats;
    coordinator_stats(m->coordinator, &stats);
    struct leaf_look look = {.sim = sim, .known = stats.ready};
    coordinator_leaves(m->coordinator, take_leaf, &look);
}
