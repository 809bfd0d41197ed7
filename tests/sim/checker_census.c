/* Who answers for what: the servers' own lists against each other and against what the players did. */
#include "tests/sim/checker.h"

#include "tests/sim/sim.h"

#include <string.h>

#define STATE_ORDER    UINT32_C(0x7fffffff)
#define GRACE_US       UINT64_C(9800000)  /* an orphan stays at least so long, by a clock that is up to 2 % wrong */
#define UNLISTED_US    UINT64_C(2000000)  /* then nobody has it any more for so long: it has left */
#define ENTERING_US    UINT64_C(15000000) /* after a gateway's death no server holds an ENTER of it longer */
#define BEYOND_LATE_US UINT64_C(15000000)

static bool same(struct position a, struct position b)
{
    return a.x == b.x && a.y == b.y && a.z == b.z;
}

/* The newest sample of the history that stands there, from `from_us` on; history_end: none. */
static uint64_t sample_at(const struct walker *w, struct position p, uint64_t from_us)
{
    for (uint64_t i = w->history_end, from = walker_history_from(w, from_us); i-- > from;)
        if (same(walker_history(w, i)->position, p)) return i;
    return w->history_end;
}

/* The oldest one from `from` on that may be meant: who stands at the world's edge comes back to the same place. */
static uint64_t sample_from(const struct walker *w, struct position p, uint64_t from, uint64_t newest)
{
    uint64_t kept = walker_history_from(w, 0);
    if (newest == w->history_end) return 0;
    for (uint64_t i = from < kept ? kept : from; i < newest; i++)
        if (same(walker_history(w, i)->position, p)) return i;
    return newest;
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
    if (sample_at(w, e->record.position, faults_window(sim, sim->now_us)) < w->history_end) return;
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
    if (!node_id_equal(e->gateway, gateway_node(sim_gateway(sim, w->gateway))))
        sim_violation(sim, "%llu belongs to another gateway", (unsigned long long)w->id);
}

/* ---- taking the lists ---- */

/* Whether a server's word is not in force: it stands still, or has not ticked since the owner as of the last look
 * began, so that it may not have looked at its lease. */
static bool is_idle(const struct sim *sim, const struct owned *o, uint32_t server, bool fenced)
{
    const struct member *m = &sim->members[sim->server_first + server];
    if (!sim->plan.fail_overs) return false;
    if (fenced || m->busy_until_us > sim->now_us) return true;
    bool other = o->server_before != server || o->incarnation_before != (uint32_t)m->incarnation;
    return other && o->owner_since_us > 0 && m->ticked_us < o->owner_since_us;
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
    if (e->record.version > o->best) o->best = e->record.version;
    if (is_idle(sim, o, k->census_server, e->fenced)) {
        o->idle++;
        return;
    }
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

/* ---- judging them ---- */

/* Nobody has it in force. */
static void judge_missing(struct sim *sim, const struct walker *w, struct owned *o)
{
    o->trail[sim->checker.looks % TRAIL] = o->trail[(sim->checker.looks - 1) % TRAIL];
    if (o->idle > 0 || o->kept > 0) {
        o->missing_us = 0;
        return;
    }
    if (sim->plan.faults != FAULTS_BEYOND) {
        sim_violation(sim, "lost: no server answers for %llu", (unsigned long long)w->id);
        return;
    }
    /* It may be lost, but its gateway must say so or enter it again. */
    if (o->missing_us == 0) o->missing_us = sim->now_us;
    if (o->missing_us + BEYOND_LATE_US < sim->now_us && !faults_troubled(sim, o->missing_us + BEYOND_LATE_US / 2))
        sim_violation(sim, "lost: no server answers for %llu, and its gateway does not say so",
                      (unsigned long long)w->id);
}

static void judge_orphan(struct sim *sim, struct walker *w, const struct owned *o)
{
    if (o->listed > 0 || o->idle > 0 || o->kept > 0) {
        w->unlisted_us = 0;
        return;
    }
    if (w->unlisted_us == 0) w->unlisted_us = sim->now_us;
    bool early = sim->now_us < w->orphaned_us + GRACE_US;
    if (early && w->orphan_sure && sim->plan.faults != FAULTS_BEYOND)
        sim_violation(sim, "lost: %llu is gone before its dead gateway's grace is over", (unsigned long long)w->id);
    if (w->unlisted_us + UNLISTED_US > sim->now_us) return;
    /* Its ENTER was not answered: it may wait for the home of its id, and be granted while its session lasts. */
    if (!w->orphan_sure && sim->now_us < w->orphaned_us + ENTERING_US) return;
    w->presence = ABSENT;
    w->left_us = sim->now_us;
}

/* Another server has it, though it did not change its leaf: what that one knows is at most a tick old. Where nothing
 * but deaths happens, that can be told: the last tick but one that was on its way. */
static void judge_age(struct sim *sim, const struct walker *w, const struct owned *o, uint64_t sample)
{
    const struct plan *plan = &sim->plan;
    const struct member *m = &sim->members[sim->server_first + o->server];
    bool other = o->server != o->server_before || (uint32_t)m->incarnation != o->incarnation_before;
    if (plan->faults != FAULTS_DEATHS || !other || o->life_before != w->life || o->owner_seen_us == 0 ||
        o->entity.leaf.v != o->leaf_before.v || sample == w->history_end)
        return;
    uint64_t slack_us = 2 * (1000000 / plan->world.tick_hz) + plan->tick_jitter_us + plan->delay_max_us +
                        plan->delay_jitter_us + CHECK_US;
    uint64_t looks = (sim->now_us - o->owner_seen_us + slack_us) / CHECK_US + 1;
    if (looks >= TRAIL || looks > sim->checker.looks) return;
    uint64_t expected = o->trail[(sim->checker.looks - looks) % TRAIL];
    if (sample < expected)
        sim_violation(sim, "server %u takes over %llu as it was %.3f s ago, %llu moves older than what was known",
                      o->server, (unsigned long long)w->id,
                      (double)(sim->now_us - walker_history(w, sample)->at_us) / 1e6,
                      (unsigned long long)(expected - sample));
}

static void note_owner(struct sim *sim, const struct walker *w, struct owned *o)
{
    const struct member *m = &sim->members[sim->server_first + o->server];
    uint64_t sample = sample_at(w, o->entity.record.position, sim->now_us > 2000000 ? sim->now_us - 2000000 : 0);
    judge_age(sim, w, o, sample);
    uint64_t before = o->trail[(sim->checker.looks - 1) % TRAIL];
    bool other = o->server != o->server_before || (uint32_t)m->incarnation != o->incarnation_before;
    if (o->owner_since_us == 0 || other || o->life_before != w->life) {
        o->owner_since_us = sim->now_us;
        memset(o->trail, 0, sizeof o->trail);
        before = walker_history_from(w, sim->now_us > 2000000 ? sim->now_us - 2000000 : 0);
    }
    o->server_before = o->server;
    o->incarnation_before = (uint32_t)m->incarnation;
    o->leaf_before = o->entity.leaf;
    o->owner_seen_us = sim->now_us;
    o->trail[sim->checker.looks % TRAIL] = sample_from(w, o->entity.record.position, before, sample);
    o->missing_us = 0;
}

static void judge_owned(struct sim *sim, uint32_t walker, bool exact)
{
    struct walker *w = &sim->crowd.walkers[walker];
    struct owned *o = &sim->checker.owned[walker];
    bool deaths = sim->plan.fail_overs;
    /* The source's copy of an entity whose new owner has died may be old: it asks before it serves it again. */
    bool asks = deaths && o->listed > 0 && o->entity.leaving;
    if (w->presence == ORPHANED) judge_orphan(sim, w, o);
    if (o->listed > 0 && exact) judge_exact(sim, w, o);
    /* The full look at a record costs: each walker in turn. */
    if (o->listed > 0 && !asks && (exact || (sim->checker.looks + walker) % 16 == 0)) judge_record(sim, w, o);
    if (w->presence == PRESENT && o->listed == 0) judge_missing(sim, w, o);
    if (w->presence == ABSENT && o->listed > 0 && (!o->entity.leaving || exact))
        sim_violation(sim, "server %u still answers for %llu, which has left", o->server, (unsigned long long)w->id);
    if (exact && w->presence == PRESENT && (o->listed != 1 || o->idle != 0))
        sim_violation(sim, "doubled: %u servers list %llu though all is calm", o->listed + o->idle,
                      (unsigned long long)w->id);
    if (w->presence != PRESENT || o->listed == 0) return;
    uint64_t version = asks ? o->best : o->entity.record.version;
    if (o->life_before == w->life && version < o->version_before && !asks)
        sim_violation(sim, "the version of %llu falls from %llu to %llu", (unsigned long long)w->id,
                      (unsigned long long)o->version_before, (unsigned long long)version);
    if (deaths) note_owner(sim, w, o);
    if (version > o->version_before || o->life_before != w->life) o->version_before = version;
    o->life_before = w->life;
}

void census_look(struct sim *sim, bool exact)
{
    struct checker *k = &sim->checker;
    for (uint32_t i = 0; i < k->count; i++) {
        struct owned *o = &k->owned[i];
        o->listed = o->idle = o->kept = 0;
        o->best = 0;
    }
    for (uint32_t i = 0; i < sim->plan.servers && !sim->violated; i++) {
        const struct member *m = &sim->members[sim->server_first + i];
        k->census_server = i;
        if (m->server != NULL) cellserver_census(m->server, take, sim);
    }
    if (sim->plan.fail_overs) replicas_look(sim);
    for (uint32_t i = 0; i < k->count && !sim->violated; i++) judge_owned(sim, i, exact);
    if (sim->plan.fail_overs) replicas_judge(sim, exact);
}
