/* The still world: players rest, nothing is lost or broken, all cores say that they are calm. Then everything must be
 * equal to the truth: entities, leaves, views at the servers' word and at the API, what is known of every subject,
 * requests, events, queries; inside the hysteresis band either is allowed. */
#include "common/check.h"
#include "tests/sim/checker.h"
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define CALM_LIMIT_US UINT64_C(30000000)
/* Until the entities of a dead gateway are out of the world: it must be missed, then the grace runs. */
#define GRACE_LIMIT_US UINT64_C(30000000)
#define CALM_STEP_US   UINT64_C(20000)
#define SETTLE_US      UINT64_C(1500000)
#define STATE_ORDER    UINT32_C(0x7fffffff)

/* ---- getting there ---- */

bool sim_all_calm(const struct sim *sim)
{
    if (sim->checker.request_count > 0) return false;
    for (uint32_t i = 0; i < sim->crowd.count; i++)
        if (sim->crowd.walkers[i].presence == ORPHANED) return false;
    for (uint32_t i = 0; i < sim->member_count; i++) {
        const struct member *m = &sim->members[i];
        if (!m->listening) return false;
        if (m->server != NULL && !cellserver_calm(m->server)) return false;
        if (m->gateway != NULL && !gateway_calm(m->gateway)) return false;
    }
    return true;
}

/* Who is not calm now, as text. */
static void name_restless(struct sim *sim, char *who, size_t room)
{
    size_t size = 0;
    who[0] = '\0';
    if (sim->checker.request_count > 0)
        size += (size_t)snprintf(who + size, room - size, " %u requests", sim->checker.request_count);
    if (sim->plan.fail_overs && !faults_protected(sim))
        size += (size_t)snprintf(who + size, room - size, " a leaf without owner or level standby");
    for (uint32_t i = 0; i < sim->member_count && size + 24 < room; i++) {
        const struct member *m = &sim->members[i];
        bool calm = m->listening && (m->server == NULL || cellserver_calm(m->server)) &&
                    (m->gateway == NULL || gateway_calm(m->gateway));
        if (calm) continue;
        size += (size_t)snprintf(who + size, room - size, " %s %u", m->role == ROLE_CELLSERVER ? "server" : "gateway",
                                 m->number);
        if (m->server == NULL || size + 100 >= room) continue;
        struct cellserver_stats stats;
        cellserver_stats(m->server, &stats);
        size += (size_t)snprintf(who + size, room - size, " (leaving %u, pending %u, waiting %u, fenced %u, gaps %u)",
                                 stats.leaving, stats.pending, stats.standby_waiting, stats.fenced,
                                 (unsigned)stats.gaps_open);
    }
}

static void say_restless(struct sim *sim, const char *who)
{
    if (sim->checker.request_count > 0) {
        const struct request *r = &sim->checker.requests[0];
        sim_violation(sim,
                      "%u requests are not done, such as %llu of gateway %u (operation %d, entity %u); restless:%s",
                      sim->checker.request_count, (unsigned long long)r->number, r->gateway, (int)r->operation,
                      r->walker + 1, who);
    }
    for (uint32_t i = 0; i < sim->crowd.count; i++)
        if (sim->crowd.walkers[i].presence == ORPHANED)
            sim_violation(sim, "%llu is still in the world though its gateway has long been dead",
                          (unsigned long long)sim->crowd.walkers[i].id);
    sim_violation(sim, "no calm for long enough within 30 s; restless at last:%s", who);
}

/* Runs until all have been calm for quiet_us. */
static bool settle(struct sim *sim)
{
    uint64_t limit_us = sim->now_us + CALM_LIMIT_US, since_us = sim->now_us;
    char who[200] = "";
    if (sim->faults.happened[CLASS_GATEWAY] > 0) limit_us += GRACE_LIMIT_US;
    while (!sim->violated && sim->now_us < limit_us) {
        sim_run_until(sim, sim->now_us + CALM_STEP_US);
        if (sim->violated) return false;
        bool calm = sim_all_calm(sim) && (!sim->plan.fail_overs || faults_protected(sim));
        if (calm && sim->now_us - since_us >= sim->plan.quiet_us) return true;
        if (calm) continue;
        since_us = sim->now_us;
        name_restless(sim, who, sizeof who);
        sim_say(sim, "restless:%s", who);
    }
    if (!sim->violated) say_restless(sim, who);
    return false;
}

bool sim_run_ready(struct sim *sim, uint64_t limit_us)
{
    uint64_t end_us = sim->now_us + limit_us;
    while (!sim->violated && sim->now_us < end_us) {
        sim_run_until(sim, sim->now_us + CALM_STEP_US);
        struct coordinator_stats stats = {.unowned = 1};
        const struct member *m = &sim->members[COORDINATOR];
        if (m->coordinator != NULL) coordinator_stats(m->coordinator, &stats);
        bool ready = stats.ready && stats.unowned == 0;
        for (uint32_t g = 0; g < sim->plan.gateways; g++) {
            const struct gateway *gateway = sim_gateway(sim, g);
            if (gateway == NULL || !gateway_is_ready(gateway)) ready = false;
        }
        if (!ready) continue;
        sim_run_until(sim, sim->now_us + SETTLE_US); /* the map is on its way to all */
        sim->crowd.asks = true;
        return !sim->violated;
    }
    sim_violation(sim, "not all leaves and gateways are ready after %.0f s", (double)limit_us / 1e6);
    return false;
}

/* ---- what must be equal ---- */

static void judge_known(struct sim *sim, uint32_t observer, uint32_t subject)
{
    const struct walker *o = &sim->crowd.walkers[observer], *s = &sim->crowd.walkers[subject];
    struct terrane_entity e;
    if (!gateway_get(sim_gateway(sim, o->gateway), s->id, &e)) {
        sim_violation(sim, "gateway %u does not know %llu, which its observer %llu sees", o->gateway,
                      (unsigned long long)s->id, (unsigned long long)o->id);
        return;
    }
    struct position p = {0};
    if (world_position(&sim->plan.world, e.x, e.y, e.z, &p) != TERRANE_ERR_OK || p.x != s->position.x ||
        p.y != s->position.y || p.z != s->position.z)
        sim_violation(sim, "gateway %u knows %llu at (%d, %d, %d), it stands at (%d, %d, %d)", o->gateway,
                      (unsigned long long)s->id, p.x, p.y, p.z, s->position.x, s->position.y, s->position.z);
    uint32_t life, number;
    if (!state_read(s->id, e.state, e.state_size, &life, &number) || life != s->life || number != s->state_number)
        sim_violation(sim, "gateway %u knows another state of %llu than was set last", o->gateway,
                      (unsigned long long)s->id);
    if (world_length(&sim->plan.world, e.radius) != s->radius || e.kind != s->kind || e.flags != s->flags ||
        e.layer != s->layer)
        sim_violation(sim, "gateway %u knows other constants of %llu", o->gateway, (unsigned long long)s->id);
}

static void judge_view(struct sim *sim, uint32_t observer, uint64_t *ids)
{
    struct checker *k = &sim->checker;
    const struct plan *plan = &sim->plan;
    const struct walker *o = &sim->crowd.walkers[observer];
    size_t count = o->presence == PRESENT ? gateway_view(sim_gateway(sim, o->gateway), o->id, ids, k->count) : 0;
    size_t at = 0;
    for (uint32_t s = 0; s < k->count && !sim->violated; s++) {
        const struct walker *w = &sim->crowd.walkers[s];
        bool seen = k->held[(size_t)observer * k->count + s] != 0;
        bool listed = at < count && ids[at] == w->id;
        if (listed) at++;
        if (seen != listed)
            sim_violation(sim, "gateway_view of %llu %s %llu, the callbacks said otherwise", (unsigned long long)o->id,
                          listed ? "lists" : "does not list", (unsigned long long)w->id);
        bool there = s != observer && o->presence == PRESENT && w->presence == PRESENT && o->layer == w->layer;
        bool must = there && view_holds(plan, o->position, o->radius, w->position, 0);
        bool may = there && view_holds(plan, o->position, o->radius, w->position, plan->world.hysteresis);
        if ((must && !seen) || (seen && !may))
            sim_violation(sim, "%llu at (%d, %d, %d) with radius %u %s %llu at (%d, %d, %d) though all is calm",
                          (unsigned long long)o->id, o->position.x, o->position.y, o->position.z, o->radius,
                          seen ? "sees" : "does not see", (unsigned long long)w->id, w->position.x, w->position.y,
                          w->position.z);
        if (seen) judge_known(sim, observer, s);
    }
    if (at != count && !sim->violated)
        sim_violation(sim, "gateway_view of %llu lists an unknown or unordered id", (unsigned long long)o->id);
}

static void judge_counters(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->plan.servers && !sim->violated; i++) {
        struct cellserver_stats stats;
        const struct member *m = &sim->members[sim->server_first + i];
        if (m->server == NULL) continue;
        cellserver_stats(m->server, &stats);
        if (stats.gaps_open != 0 || stats.leaving != 0)
            sim_violation(sim, "server %u has %llu open gaps and %u leaving though all is calm", i,
                          (unsigned long long)stats.gaps_open, stats.leaving);
    }
    for (uint32_t g = 0; g < sim->plan.gateways && !sim->violated; g++) {
        struct terrane_stats stats;
        uint64_t own = 0, pairs = 0;
        gateway_stats(sim_gateway(sim, g), &stats);
        for (uint32_t i = 0; i < sim->checker.count; i++) {
            if (sim->crowd.walkers[i].gateway != g) continue;
            if (sim->crowd.walkers[i].presence == PRESENT) own++;
            for (uint32_t s = 0; s < sim->checker.count; s++)
                pairs += sim->checker.held[(size_t)i * sim->checker.count + s];
        }
        if (stats.gaps_open != 0) sim_violation(sim, "gateway %u has open gaps though all is calm", g);
        if (stats.own != own || stats.seen_pairs != pairs)
            sim_violation(sim, "gateway %u counts %llu own and %llu pairs, there are %llu and %llu", g,
                          (unsigned long long)stats.own, (unsigned long long)stats.seen_pairs, (unsigned long long)own,
                          (unsigned long long)pairs);
    }
}

void checker_calm(struct sim *sim)
{
    census_look(sim, true);
    census_leaves(sim);
    for (uint32_t i = 0; i < sim->checker.count; i++)
        if (sim->crowd.walkers[i].presence == PRESENT)
            sim->crowd.walkers[i].unsure_us = 0; /* it is where it was told */
    uint64_t *ids = calloc(sim->checker.count + 1u, sizeof *ids);
    CHECK(ids != NULL);
    for (uint32_t i = 0; i < sim->checker.count && !sim->violated; i++) judge_view(sim, i, ids);
    free(ids);
    judge_counters(sim);
}

/* ---- the query lane ---- */

static void take_query_result(struct sim *sim, struct cursor message)
{
    struct query_result result;
    struct query_item item;
    if (query_result_decode(message, &result) != TERRANE_ERR_OK) {
        sim_violation(sim, "a query result on the query lane is malformed");
        return;
    }
    while (query_result_next(&result, &item)) {
        uint32_t walker = checker_walker(sim, item.id.v);
        if (walker == WALKER_NONE)
            sim_violation(sim, "a query on the query lane finds an unknown entity");
        else if (sim->checker.replied[walker] < UINT8_MAX)
            sim->checker.replied[walker]++;
    }
}

void checker_reply(struct sim *sim, uint32_t member, uint64_t token, const uint8_t *bytes, size_t size)
{
    struct cursor message = cursor_of(bytes, size);
    enum message_kind kind;
    if (faults_is_report(token)) {
        if (message_kind_of(message, &kind) == TERRANE_ERR_OK && kind != MESSAGE_FAULT) faults_reported(sim, token);
        return;
    }
    if (token != sim->checker.reply_token || message_kind_of(message, &kind) != TERRANE_ERR_OK) {
        sim_violation(sim, "member %u replies to a query that nobody asked", member);
        return;
    }
    sim->checker.replies++;
    if (kind == MESSAGE_QUERY_RESULT)
        take_query_result(sim, message);
    else if (kind == MESSAGE_FAULT)
        sim_violation(sim, "member %u answers a query with a fault", member);
}

/* Asks one server's query lane and waits for the one answer. */
static void ask(struct sim *sim, uint32_t member, const struct writer *message)
{
    struct checker *k = &sim->checker;
    k->reply_token++;
    k->replies = 0;
    sim_query(sim, member, k->reply_token, message->data, message->size);
    sim_run_until(sim, sim->now_us + 5000);
    if (!sim->violated && k->replies != 1)
        sim_violation(sim, "member %u gives %u answers to one query", member, k->replies);
}

static void ask_servers(struct sim *sim)
{
    struct checker *k = &sim->checker;
    struct position p = position_random(sim);
    int32_t radius = (int32_t)world_cell_side(&sim->plan.world) * 2;
    struct query query = {.request = 7, .shape = QUERY_CIRCLE, .layer = -1, .a = p.x, .b = p.y, .c = radius};
    struct writer message = {0};
    memset(k->replied, 0, k->count);
    for (uint32_t i = 0; i < sim->plan.servers && !sim->violated; i++) {
        writer_clear(&message);
        query_encode(&message, &query);
        ask(sim, sim->server_first + i, &message);
        writer_clear(&message);
        status_request_encode(&message);
        ask(sim, sim->server_first + i, &message);
    }
    writer_close(&message);
    for (uint32_t i = 0; i < k->count && !sim->violated; i++) {
        const struct walker *w = &sim->crowd.walkers[i];
        bool there = w->presence == PRESENT && view_within(&sim->plan, w->position, p, (uint64_t)radius);
        if (there != (k->replied[i] > 0))
            sim_violation(sim, "the query lanes %s %llu, which %s within", there ? "miss" : "find",
                          (unsigned long long)w->id, there ? "is" : "is not");
    }
}

bool sim_calm(struct sim *sim)
{
    if (sim->violated) return false;
    sim->crowd.still = true;
    sim->network.healed = true;
    faults_heal(sim);
    sim_say(sim, "the world stands still");
    if (!settle(sim)) return false;
    checker_calm(sim);
    crowd_ask(sim);
    if (!settle(sim)) return false;
    checker_calm(sim);
    checker_calm_emissions(sim);
    ask_servers(sim);
    if (!sim->violated) sim->calms++;
    return !sim->violated;
}

void sim_stir(struct sim *sim, uint32_t phase)
{
    sim->crowd.still = false;
    sim->network.healed = false;
    sim_say(sim, "the world moves");
    faults_begin(sim, phase);
}
