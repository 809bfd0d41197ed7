/* What standbys hold: a level one that the coordinator's map names may be promoted at any moment, so it must hold all
 * that its primary has acknowledged; on the still world it holds exactly what its primary has. */
#include "common/check.h"
#include "tests/sim/checker.h"
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define SETTLED_US  UINT64_C(1000000) /* what was under way when the cluster became protected is over */
#define STATE_ORDER UINT32_C(0x7fffffff)

static struct held_copy *copy_of(struct sim *sim, uint32_t server, uint32_t walker)
{
    return &sim->checker.copies[(size_t)server * sim->checker.count + walker];
}

static bool has_acknowledged(const struct walker *w, const struct held_copy *copy)
{
    return copy->level && copy->life == w->life && (copy->number & STATE_ORDER) >= (w->state_acked & STATE_ORDER);
}

static void take(void *context, struct quadkey leaf, uint32_t epoch, bool level, const struct cellserver_entity *e)
{
    struct sim *sim = context;
    struct checker *k = &sim->checker;
    uint32_t walker = checker_walker(sim, e->record.id.v);
    if (walker == WALKER_NONE) {
        sim_violation(sim, "server %u stands by for %llu, which never was", k->census_server,
                      (unsigned long long)e->record.id.v);
        return;
    }
    const struct walker *w = &sim->crowd.walkers[walker];
    struct owned *o = &k->owned[walker];
    struct held_copy copy = {.copies = 1, .level = level, .leaf = leaf, .epoch = epoch};
    copy.version = e->record.version;
    copy.position = e->record.position;
    copy.radius = e->record.radius;
    if (!state_read(w->id, e->record.state, e->record.state_size, &copy.life, &copy.number))
        sim_violation(sim, "server %u stands by with a changed state of %llu", k->census_server,
                      (unsigned long long)w->id);
    if (level && copy.version > o->best) o->best = copy.version;
    if (has_acknowledged(w, &copy)) o->kept++;
    struct held_copy *held = copy_of(sim, k->census_server, walker);
    copy.copies += held->copies;
    /* Of several leaves' copies the one that a promotion would take. */
    if (held->copies == 0 || (level && (!held->level || copy.version >= held->version)))
        *held = copy;
    else
        held->copies = copy.copies;
}

void replicas_look(struct sim *sim)
{
    struct checker *k = &sim->checker;
    memset(k->copies, 0, (size_t)sim->plan.servers * k->count * sizeof *k->copies);
    for (uint32_t i = 0; i < sim->plan.servers && !sim->violated; i++) {
        const struct member *m = &sim->members[sim->server_first + i];
        k->census_server = i;
        if (m->server != NULL) cellserver_replicas(m->server, take, sim);
    }
}

/* ---- against the primaries ---- */

struct pair_look {
    struct sim *sim;
    bool exact;
};

static uint32_t server_of(const struct sim *sim, struct node_id node)
{
    for (uint32_t i = 0; i < sim->plan.servers; i++) {
        const struct member *m = &sim->members[sim->server_first + i];
        if (m->listening && node_id_equal(m->node, node)) return i;
    }
    return UINT32_MAX;
}

static void judge_exact(struct sim *sim, const struct owned *o, const struct held_copy *copy, uint64_t id,
                        uint32_t standby)
{
    const struct entity_record *r = &o->entity.record;
    uint32_t life = 0, number = 0;
    bool same = state_read(id, r->state, r->state_size, &life, &number) && copy->life == life &&
                copy->number == number && copy->version == r->version && copy->radius == r->radius &&
                copy->position.x == r->position.x && copy->position.y == r->position.y &&
                copy->position.z == r->position.z && copy->leaf.v == o->entity.leaf.v;
    if (!same || copy->copies != 1)
        sim_violation(sim,
                      "standby %u has %llu as version %llu at (%d, %d, %d), state %u, in %u leaves; its primary %u as "
                      "version %llu at (%d, %d, %d), state %u",
                      standby, (unsigned long long)id, (unsigned long long)copy->version, copy->position.x,
                      copy->position.y, copy->position.z, copy->number & STATE_ORDER, copy->copies, o->server,
                      (unsigned long long)r->version, r->position.x, r->position.y, r->position.z,
                      number & STATE_ORDER);
}

static void judge_pair(void *context, const struct leaf_owner *leaf)
{
    const struct pair_look *look = context;
    struct sim *sim = look->sim;
    struct checker *k = &sim->checker;
    uint32_t primary = server_of(sim, leaf->primary), standby = server_of(sim, leaf->standby);
    if (primary == UINT32_MAX || standby == UINT32_MAX || sim->violated) return;
    /* While some leaf changes its standby, an entity may go from that leaf to one of the same server that is level. */
    if (!look->exact && sim->faults.unprotected_us + SETTLED_US > sim->now_us) return;
    bool level = look->exact;
    for (uint32_t i = 0; i < k->count && !level; i++) {
        const struct held_copy *copy = copy_of(sim, standby, i);
        level = copy->level && copy->leaf.v == leaf->leaf.v && copy->epoch == leaf->epoch;
    }
    if (!level) return;
    for (uint32_t i = 0; i < k->count && !sim->violated; i++) {
        const struct walker *w = &sim->crowd.walkers[i];
        const struct owned *o = &k->owned[i];
        const struct held_copy *copy = copy_of(sim, standby, i);
        if (look->exact && copy->copies > 0 && copy->leaf.v == leaf->leaf.v &&
            (w->presence != PRESENT || o->server != primary))
            sim_violation(sim, "server %u still stands by with %llu, which its primary %u has not got", standby,
                          (unsigned long long)w->id, primary);
        if (w->presence != PRESENT || o->listed == 0 || o->server != primary || o->entity.leaving ||
            o->entity.leaf.v != leaf->leaf.v)
            continue;
        if (look->exact)
            judge_exact(sim, o, copy, w->id, standby);
        else if (copy->copies == 0 || !has_acknowledged(w, copy))
            sim_violation(sim, "the level standby %u of server %u lacks %llu or its acknowledged state %u.%u", standby,
                          primary, (unsigned long long)w->id, w->life, w->state_acked & STATE_ORDER);
    }
}

void replicas_judge(struct sim *sim, bool exact)
{
    struct pair_look look = {.sim = sim, .exact = exact};
    struct coordinator_stats stats;
    const struct member *m = &sim->members[COORDINATOR];
    if (m->coordinator == NULL) return;
    coordinator_stats(m->coordinator, &stats);
    if (stats.ready) coordinator_leaves(m->coordinator, judge_pair, &look);
}

/* ---- protection ---- */

struct level_look {
    struct sim *sim;
    uint32_t living, walkers;
    bool safe;
};

/* Whether it was in the world at the last look, which knows whose it was then. */
static bool was_owned(const struct sim *sim, uint32_t walker)
{
    const struct walker *w = &sim->crowd.walkers[walker];
    const struct owned *o = &sim->checker.owned[walker];
    return w->presence == PRESENT && o->owner_seen_us > 0 && o->life_before == w->life;
}

static void look_at_leaf(void *context, const struct leaf_owner *leaf)
{
    struct level_look *look = context;
    struct sim *sim = look->sim;
    struct checker *k = &sim->checker;
    uint32_t primary = server_of(sim, leaf->primary), standby = server_of(sim, leaf->standby), epoch;
    if (!look->safe) return;
    if (primary == UINT32_MAX ||
        !cellserver_owns(sim->members[sim->server_first + primary].server, leaf->leaf, &epoch)) {
        look->safe = false;
        return;
    }
    if (look->living < 2 || sim->plan.no_standbys) return;
    if (standby == UINT32_MAX) look->safe = false;
    /* As of the last look; where a leaf is empty there is nothing to be lost. */
    for (uint32_t i = 0; i < k->count && look->safe; i++) {
        const struct owned *o = &k->owned[i];
        const struct held_copy *copy = copy_of(sim, standby, i);
        if (!was_owned(sim, i) || o->server_before != primary || o->leaf_before.v != leaf->leaf.v) continue;
        look->walkers++;
        look->safe = copy->level && copy->epoch == leaf->epoch && has_acknowledged(&sim->crowd.walkers[i], copy);
    }
}

bool faults_protected(struct sim *sim)
{
    const struct member *c = &sim->members[COORDINATOR];
    struct level_look look = {.sim = sim, .safe = true};
    struct coordinator_stats stats;
    if (!c->listening || c->busy_until_us > sim->now_us) return false;
    coordinator_stats(c->coordinator, &stats);
    if (!stats.ready) return false;
    for (uint32_t i = 0; i < sim->plan.servers; i++)
        look.living += sim->members[sim->server_first + i].listening ? 1 : 0;
    coordinator_leaves(c->coordinator, look_at_leaf, &look);
    if (look.living < 2 || sim->plan.no_standbys) return look.safe && look.living > 0;
    /* A leaf that was promoted since the last look seems to be empty: nobody knows yet what its standby must have. */
    uint32_t walkers = 0;
    for (uint32_t i = 0; i < sim->checker.count; i++) walkers += was_owned(sim, i);
    return look.safe && look.walkers == walkers;
}
