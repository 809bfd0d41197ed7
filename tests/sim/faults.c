#include "tests/sim/faults.h"

#include "common/array.h"
#include "common/check.h"
#include "tests/sim/sim.h"

#include <stdlib.h>

#define RETRY_US        UINT64_C(10000)
#define REPORT_TOKEN    (UINT64_C(1) << 40)
#define REPORT_EVERY_US UINT64_C(200000)
#define REPORT_TRIES    50u

enum stage { STAGE_BEGIN, STAGE_AGAIN, STAGE_BREAK, STAGE_END, STAGE_REPORT };

void faults_close(struct sim *sim)
{
    free(sim->faults.trouble);
    sim->faults = (struct faults){0};
}

static void plan_stage(struct sim *sim, uint32_t index, enum stage stage, uint64_t after_us)
{
    queue_push(&sim->queue, (struct happening){.kind = HAPPEN_FAULT,
                                               .at_us = sim->now_us + after_us,
                                               .link = index,
                                               .connection = sim->faults.phase,
                                               .token = (uint64_t)stage});
}

void faults_begin(struct sim *sim, uint32_t phase)
{
    sim->faults.running = true;
    sim->faults.phase = phase;
    for (uint32_t i = 0; i < sim->plan.fault_count; i++) {
        const struct plan_fault *f = &sim->plan.fault[i];
        if (f->phase == phase && !f->left_out) plan_stage(sim, i, STAGE_BEGIN, f->after_us);
    }
}

/* ---- trouble ---- */

/* What news may be late by after a fault: the lease runs out, successors are found, links are made, snapshots sent. */
static uint64_t recovery_us(const struct plan *plan)
{
    return 3 * plan->lease_us + 12 * (plan->delay_max_us + plan->delay_jitter_us) + 2500000;
}

static void note_trouble(struct sim *sim, uint64_t span_us)
{
    struct faults *f = &sim->faults;
    uint64_t from_us = sim->now_us, to_us = sim->now_us + span_us + recovery_us(&sim->plan);
    if (f->trouble_count > 0 && f->trouble[f->trouble_count - 1].to_us >= from_us) {
        struct trouble *last = &f->trouble[f->trouble_count - 1];
        if (to_us > last->to_us) last->to_us = to_us;
        return;
    }
    ARRAY_RESERVE(f->trouble, f->trouble_room, (size_t)f->trouble_count + 1);
    f->trouble[f->trouble_count++] = (struct trouble){from_us, to_us};
}

uint64_t faults_window(const struct sim *sim, uint64_t at_us)
{
    const struct faults *f = &sim->faults;
    uint64_t left_us = sim->plan.window_us, end_us = at_us;
    for (uint32_t i = f->trouble_count; i-- > 0;) {
        const struct trouble *t = &f->trouble[i];
        if (t->from_us >= end_us) continue;
        uint64_t quiet_us = t->to_us < end_us ? end_us - t->to_us : 0;
        if (quiet_us >= left_us) break;
        left_us -= quiet_us;
        end_us = t->from_us;
    }
    return end_us > left_us ? end_us - left_us : 0;
}

bool faults_troubled(const struct sim *sim, uint64_t from_us)
{
    const struct faults *f = &sim->faults;
    return f->trouble_count > 0 && f->trouble[f->trouble_count - 1].to_us >= from_us;
}

void faults_look(struct sim *sim)
{
    struct faults *f = &sim->faults;
    if (!sim->plan.fail_overs) return;
    if (faults_protected(sim)) return;
    f->unprotected_us = sim->now_us;
    if (sim->crowd.asks) note_trouble(sim, 0);
}

/* ---- what a path is like ---- */

static bool on_side(const struct plan_fault *f, uint32_t member)
{
    return (f->side[member / 64] >> member % 64 & 1) != 0;
}

static bool crosses(const struct plan_fault *f, uint32_t from, uint32_t to)
{
    bool from_side = on_side(f, from), to_side = on_side(f, to);
    return from_side != to_side && (from_side ? f->out : f->in);
}

struct path faults_path(const struct sim *sim, uint32_t from, uint32_t to)
{
    struct path path = {0};
    for (uint32_t i = 0; i < sim->plan.fault_count; i++) {
        const struct plan_fault *f = &sim->plan.fault[i];
        if (!sim->faults.active[i] || !crosses(f, from, to)) continue;
        uint64_t until_us = sim->faults.until_us[i];
        if (f->class == CLASS_SLOW)
            path.slow_us += f->detail % (2 * sim->plan.lease_us);
        else if (f->class == CLASS_PARTITION && !f->clogs)
            path.drops = true;
        else if (f->class == CLASS_PARTITION && until_us > path.held_us)
            path.held_us = until_us;
    }
    return path;
}

static bool stops(struct path path)
{
    return path.drops || path.held_us > 0;
}

bool faults_parted(const struct sim *sim, uint32_t a, uint32_t b)
{
    return stops(faults_path(sim, a, b)) || stops(faults_path(sim, b, a));
}

bool faults_store_away(const struct sim *sim)
{
    for (uint32_t i = 0; i < sim->plan.fault_count; i++)
        if (sim->faults.active[i] && sim->plan.fault[i].class == CLASS_OUTAGE) return true;
    return false;
}

static void break_crossing(struct sim *sim, const struct plan_fault *f)
{
    for (uint32_t a = 0; a < sim->member_count; a++)
        for (uint32_t b = 0; b < sim->member_count; b++)
            if (crosses(f, a, b) || crosses(f, b, a)) network_break(sim, a, b);
}

/* ---- deaths ---- */

static uint32_t victim_of(const struct sim *sim, const struct plan_fault *f)
{
    if (f->class == CLASS_COORDINATOR) return COORDINATOR;
    if (f->class == CLASS_GATEWAY) return sim->gateway_first + f->victim;
    if (f->victim < sim->plan.servers) return sim->server_first + f->victim;
    if (f->victim == sim->plan.servers) return COORDINATOR;
    return sim->gateway_first + (f->victim - sim->plan.servers - 1);
}

static void report_death(struct sim *sim, struct node_id node, struct dice *d)
{
    struct faults *f = &sim->faults;
    /* A third has no agent, or its report is lost: only the silence tells. */
    if (dice_chance(d, 0.33) || f->report_count == REPORTS) return;
    f->reports[f->report_count] = (struct report){.node = node};
    plan_stage(sim, f->report_count++, STAGE_REPORT, (uint64_t)dice_between(d, 500, 50000));
}

bool faults_is_report(uint64_t token)
{
    return token >= REPORT_TOKEN;
}

void faults_reported(struct sim *sim, uint64_t token)
{
    uint64_t at = token - REPORT_TOKEN;
    CHECK(at < sim->faults.report_count);
    sim->faults.reports[at].answered = true;
}

static void send_report(struct sim *sim, uint32_t index)
{
    struct report *report = &sim->faults.reports[index];
    if (report->answered || report->tries++ >= REPORT_TRIES) return;
    struct writer message = {0};
    death_encode(&message, &(struct death){.node = report->node});
    sim_query(sim, COORDINATOR, REPORT_TOKEN + index, message.data, message.size);
    writer_close(&message);
    plan_stage(sim, index, STAGE_REPORT, REPORT_EVERY_US);
}

static void start_later(struct sim *sim, uint32_t member, uint64_t after_us)
{
    queue_push(&sim->queue, (struct happening){.kind = HAPPEN_START,
                                               .at_us = sim->now_us + after_us,
                                               .member = member,
                                               .connection = (uint32_t)sim->members[member].incarnation});
}

void faults_died(struct sim *sim, uint32_t member, struct node_id node)
{
    struct member *m = &sim->members[member];
    struct dice d = {m->death_dice};
    if (!sim->faults.running && m->role == ROLE_CELLSERVER) {
        /* It was dismissed, after all faults were over: its agent starts it anew. */
        report_death(sim, node, &d);
        start_later(sim, member, 100000);
        return;
    }
    if (m->role == ROLE_CELLSERVER) sim->faults.deaths++;
    note_trouble(sim, 0);
    if (m->role == ROLE_CELLSERVER) report_death(sim, node, &d);
    /* Half of the servers come back only when the faults are over. */
    if (m->role != ROLE_CELLSERVER || dice_chance(&d, 0.5)) start_later(sim, member, m->away_us);
}

/* Dies now, or in the middle of the outputs of its next step. */
static void kill(struct sim *sim, uint32_t member, const struct plan_fault *f, uint64_t salt)
{
    struct member *m = &sim->members[member];
    if (!m->listening || m->doomed) return;
    struct dice d = {f->detail + salt};
    m->away_us = f->span_us;
    m->death_dice = dice_next(&d);
    if (dice_chance(&d, 0.5)) {
        m->doomed = true;
        m->doom_dice = dice_next(&d);
    } else {
        sim_kill(sim, member);
    }
}

static uint32_t servers_alive(const struct sim *sim)
{
    uint32_t alive = 0;
    for (uint32_t i = sim->server_first; i < sim->gateway_first; i++)
        if (sim->members[i].listening && !sim->members[i].doomed) alive++;
    return alive;
}

/* It is as good as dead: what it alone has is lost. */
static bool one_is_doomed(const struct sim *sim)
{
    for (uint32_t i = sim->server_first; i < sim->gateway_first; i++)
        if (sim->members[i].listening && sim->members[i].doomed) return true;
    return false;
}

/* False: not now. */
static bool crash(struct sim *sim, const struct plan_fault *f)
{
    uint32_t victim = victim_of(sim, f);
    if (!sim->members[victim].listening) return true;
    bool beyond = sim->plan.faults == FAULTS_BEYOND;
    if (servers_alive(sim) < 2 || (!beyond && (one_is_doomed(sim) || !faults_protected(sim)))) return false;
    kill(sim, victim, f, 0);
    if (f->more && servers_alive(sim) > 1) kill(sim, sim->server_first + (f->victim + 1) % sim->plan.servers, f, 1);
    return true;
}

/* ---- the stages of a fault ---- */

static void activate(struct sim *sim, uint32_t index, const struct plan_fault *f)
{
    sim->faults.active[index] = true;
    sim->faults.until_us[index] = sim->now_us + f->span_us;
    plan_stage(sim, index, STAGE_END, f->span_us);
}

static void begin(struct sim *sim, uint32_t index)
{
    const struct plan_fault *f = &sim->plan.fault[index];
    uint32_t victim = victim_of(sim, f);
    struct member *m = &sim->members[victim];
    struct dice d = {f->detail};
    if (!sim->faults.running || f->phase != sim->faults.phase) return;
    if (f->class == CLASS_CRASH && !crash(sim, f)) {
        plan_stage(sim, index, STAGE_BEGIN, RETRY_US);
        return;
    }
    sim_say(sim, "fault %u: %s, member %u, %llu us", index + 1, fault_class_name(f->class), victim,
            (unsigned long long)f->span_us);
    sim->faults.happened[f->class]++;
    sim->faults.begun |= UINT64_C(1) << index;
    note_trouble(sim, f->span_us);
    switch (f->class) {
    case CLASS_PAUSE:
        if (m->busy_until_us < sim->now_us + f->span_us) m->busy_until_us = sim->now_us + f->span_us;
        break;
    case CLASS_PARTITION:
        activate(sim, index, f);
        plan_stage(sim, index, STAGE_BREAK, dice_below(&d, f->clogs ? 2 * f->span_us : f->span_us));
        break;
    case CLASS_SLOW: activate(sim, index, f); break;
    case CLASS_FLAP:
        activate(sim, index, f);
        plan_stage(sim, index, STAGE_AGAIN, 0);
        break;
    case CLASS_OUTAGE: activate(sim, index, f); break;
    case CLASS_GATEWAY:
    case CLASS_COORDINATOR: kill(sim, victim, f, 0); break;
    case CLASS_JUMP:
        if (m->listening) sim_clock_jump(sim, victim, f->span_us);
        break;
    case CLASS_FORGET: store_forget(sim, &d); break;
    case CLASS_CRASH:
    case CLASS_LOSS:
    case CLASS_BREAKS:
    case CLASS_STALLS:
    case CLASS_STORE:
    case CLASS_SKEW:
    case CLASS_COUNT: break;
    }
}

static void flap(struct sim *sim, uint32_t index)
{
    const struct plan_fault *f = &sim->plan.fault[index];
    uint32_t victim = victim_of(sim, f);
    struct dice d = {f->detail ^ sim->now_us};
    for (uint32_t other = 0; other < sim->member_count; other++) {
        if (!dice_chance(&d, 0.5)) continue;
        network_break(sim, victim, other);
        network_break(sim, other, victim);
    }
    plan_stage(sim, index, STAGE_AGAIN, 10000 + dice_below(&d, 300000));
}

void faults_happen(struct sim *sim, const struct happening *what)
{
    uint32_t index = what->link;
    enum stage stage = (enum stage)what->token;
    if (stage == STAGE_REPORT) {
        send_report(sim, index);
        return;
    }
    if (what->connection != sim->faults.phase) return;
    const struct plan_fault *f = &sim->plan.fault[index];
    switch (stage) {
    case STAGE_BEGIN: begin(sim, index); break;
    case STAGE_AGAIN:
        if (sim->faults.active[index]) flap(sim, index);
        break;
    case STAGE_BREAK:
        if (sim->faults.active[index]) break_crossing(sim, f);
        break;
    case STAGE_END:
        /* What was dropped was dropped with its connection. */
        if (sim->faults.active[index] && f->class == CLASS_PARTITION && !f->clogs) break_crossing(sim, f);
        sim->faults.active[index] = false;
        break;
    case STAGE_REPORT: break;
    }
}

void faults_heal(struct sim *sim)
{
    struct faults *faults = &sim->faults;
    faults->running = false;
    for (uint32_t i = 0; i < sim->plan.fault_count; i++) {
        const struct plan_fault *f = &sim->plan.fault[i];
        if (faults->active[i] && f->class == CLASS_PARTITION && !f->clogs) break_crossing(sim, f);
        faults->active[i] = false;
    }
    for (uint32_t i = 0; i < sim->member_count; i++) {
        sim->members[i].doomed = false;
        if (!sim->members[i].listening && sim->members[i].incarnation > 0)
            start_later(sim, i, dice_below(&sim->timers, 500000));
    }
}
