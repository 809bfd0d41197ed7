#include "tests/sim/sim.h"

#include "common/array.h"
#include "common/check.h"
#include "proto/packet.h"
#include "tests/sim/trace.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- members ---- */

enum socket { SOCKET_INBOX, SOCKET_SUB, SOCKET_QUERY, SOCKET_GHOST, SOCKET_FEEDS };

static void url_of(uint32_t member, uint32_t socket, char *url)
{
    snprintf(url, LIMIT_URL, "tcp://127.0.0.1:%u", 10000 + member * 20 + socket);
}

uint32_t sim_member_at(const struct sim *sim, const char *url, size_t size)
{
    static const char scheme[] = "tcp://127.0.0.1:";
    size_t length = sizeof scheme - 1;
    if (size > LIMIT_URL || size <= length || memcmp(url, scheme, length) != 0) return MEMBER_NONE;
    char port[LIMIT_URL + 1] = {0};
    memcpy(port, url + length, size - length);
    unsigned long number = strtoul(port, NULL, 10);
    if (number < 10000 || (number - 10000) / 20 >= sim->member_count) return MEMBER_NONE;
    return (uint32_t)((number - 10000) / 20);
}

static struct node_info info_of(const struct sim *sim, uint32_t index)
{
    const struct member *m = &sim->members[index];
    struct node_info info = {.role = m->role, .node = m->node};
    static const char *const roles[] = {"coordinator", "server", "gateway"};
    snprintf(info.name, sizeof info.name, "%s-%u", roles[m->role], m->number);
    snprintf(info.host, sizeof info.host, "host-%u", index % 3);
    url_of(index, SOCKET_INBOX, info.inbox_url);
    if (m->role != ROLE_COORDINATOR) url_of(index, SOCKET_SUB, info.sub_url);
    if (m->role != ROLE_GATEWAY) url_of(index, SOCKET_QUERY, info.query_url);
    if (m->role != ROLE_CELLSERVER) return info;
    url_of(index, SOCKET_GHOST, info.ghost_feed_url);
    info.feed_count = sim->plan.feeds;
    for (uint32_t i = 0; i < info.feed_count; i++) url_of(index, SOCKET_FEEDS + i, info.feed_urls[i]);
    return info;
}

/* A timer of this incarnation. */
static void plan_again(struct sim *sim, enum happening_kind kind, uint32_t member, uint64_t at_us)
{
    queue_push(&sim->queue, (struct happening){.kind = kind,
                                               .at_us = at_us,
                                               .member = member,
                                               .connection = (uint32_t)sim->members[member].incarnation});
}

/* With --balance: a world of a few minutes is to see as many moves as a real one in hours. */
static const struct balance_knobs restless = {
    .trigger = 0.02, .level = 0.01, .lack = 0.05, .urgent = 0.03, .calm_part = 100, .rest_us = 400000};

static void start_coordinator(struct sim *sim, struct member *m)
{
    const struct plan *plan = &sim->plan;
    struct coordinator_options options = {.info = info_of(sim, COORDINATOR),
                                          .world = plan->world,
                                          .split_depth = plan->split_depth,
                                          .leaves = plan->leaf_count > 0 ? plan->leaves : NULL,
                                          .leaf_count = plan->leaf_count,
                                          .expect_servers = plan->servers,
                                          .lease_us = plan->lease_us,
                                          .no_standbys = plan->no_standbys,
                                          .storeless = plan->storeless,
                                          .balance = plan->balance,
                                          .knobs = restless};
    enum terrane_error error = coordinator_open(&options, &m->coordinator);
    CHECK(error == TERRANE_ERR_OK);
}

static void start_gateway(struct sim *sim, struct member *m, uint32_t index, const char *coordinator_url)
{
    struct gateway_options options = {.info = info_of(sim, index),
                                      .coordinator_url = coordinator_url,
                                      .wall_us = UINT64_C(1700000000000000) + sim->now_us,
                                      .request_timeout_us = 60000000,
                                      .callbacks = checker_callbacks,
                                      .context = &sim->checker.contexts[m->number]};
    m->gateway = gateway_open(&options);
}

/* ---- clocks ---- */

uint64_t sim_clock(const struct sim *sim, const struct member *m)
{
    uint64_t past_us = sim->now_us - m->clock_base_us;
    return m->clock_local_us + past_us + (uint64_t)((int64_t)past_us * m->clock_ppm / 1000000);
}

void sim_clock_jump(struct sim *sim, uint32_t index, uint64_t by_us)
{
    sim->members[index].clock_local_us += by_us;
    sim_rearm(sim, index);
}

/* The simulation's time when a member's clock says so; not before now. */
static uint64_t time_of(const struct sim *sim, const struct member *m, uint64_t local_us)
{
    uint64_t now_us = sim_clock(sim, m), rate = (uint64_t)(1000000 + m->clock_ppm);
    if (local_us <= now_us) return sim->now_us;
    uint64_t left_us = local_us - now_us;
    return sim->now_us + left_us / rate * 1000000 + left_us % rate * 1000000 / rate;
}

static void start_clock(struct sim *sim, struct member *m)
{
    m->clock_base_us = m->clock_local_us = sim->now_us;
    m->clock_ppm = 0;
    if (sim->plan.faults < FAULTS_DEATHS) return;
    m->clock_local_us += 1 + dice_below(&sim->clocks, 1000000000);
    m->clock_ppm = (int64_t)(sim->plan.skew * 1e6 * (2 * dice_fraction(&sim->clocks) - 1));
}

static void start(struct sim *sim, const struct happening *what)
{
    uint32_t index = what->member;
    struct member *m = &sim->members[index];
    char coordinator_url[LIMIT_URL];
    if (m->listening || what->connection != m->incarnation) return; /* somebody has started it already */
    url_of(COORDINATOR, SOCKET_INBOX, coordinator_url);
    start_clock(sim, m);
    m->node = (struct node_id){16 + (dice_next(&sim->ids) >> 2)};
    m->listening = true;
    m->timeout_us = UINT64_MAX;
    m->incarnation++;
    if (m->role == ROLE_COORDINATOR) {
        start_coordinator(sim, m);
    } else if (m->role == ROLE_CELLSERVER) {
        struct cellserver_options options = {.info = info_of(sim, index),
                                             .capacity = 100,
                                             .coordinator_url = coordinator_url,
                                             .entities = 256,
                                             .tick_hz = sim->plan.world.tick_hz,
                                             .aoi_index = sim->plan.aoi,
                                             .unique_ids = true};
        m->server = cellserver_open(&options);
        m->tick_due_us = sim->now_us + dice_below(&sim->timers, 50000);
        plan_again(sim, HAPPEN_TICK, index, m->tick_due_us);
    } else {
        start_gateway(sim, m, index, coordinator_url);
        plan_again(sim, HAPPEN_WORK, index, sim->now_us + dice_below(&sim->timers, 50000));
    }
    sim_step(sim, index, &(struct event){.kind = EVENT_START});
}

static void forget_prefixes(struct member *m)
{
    for (uint32_t i = 0; i < m->prefix_count; i++) free(m->prefixes[i]);
    m->prefix_count = 0;
}

static void close_core(struct member *m)
{
    if (m->coordinator != NULL) coordinator_close(m->coordinator);
    if (m->server != NULL) cellserver_close(m->server);
    if (m->gateway != NULL) gateway_close(m->gateway);
    m->coordinator = NULL;
    m->server = NULL;
    m->gateway = NULL;
    forget_prefixes(m);
}

static void end(struct sim *sim, uint32_t index)
{
    struct member *m = &sim->members[index];
    CHECK(m->listening);
    if (m->server != NULL) {
        struct cellserver_stats stats;
        cellserver_stats(m->server, &stats);
        sim->past.handoffs_in += stats.handoffs_in;
        sim->past.handoffs_local += stats.handoffs_local;
        sim->past.promotions += stats.promotions;
    }
    close_core(m);
    m->listening = m->doomed = false;
    m->busy_until_us = 0;
    m->timeout_us = UINT64_MAX;
    network_member_gone(sim, index);
}

void sim_kill(struct sim *sim, uint32_t index)
{
    struct member *m = &sim->members[index];
    struct node_id node = m->node;
    static const char *const roles[] = {"the coordinator", "server", "gateway"};
    sim_say(sim, "%s %u dies", roles[m->role], m->number);
    end(sim, index);
    if (m->role == ROLE_GATEWAY) checker_gateway_gone(sim, m->number);
    faults_died(sim, index, node);
}

void sim_restart_coordinator(struct sim *sim, uint64_t after_us)
{
    end(sim, COORDINATOR);
    plan_again(sim, HAPPEN_START, COORDINATOR, sim->now_us + after_us);
}

void sim_open(struct sim *sim, const struct plan *plan, enum plant plant, FILE *trace)
{
    *sim = (struct sim){.plan = *plan, .plant = plant, .trace = trace, .trace_hash = 1};
    sim->network.dice = dice_of(plan->seed, 2);
    sim->timers = dice_of(plan->seed, 3);
    sim->ids = dice_of(plan->seed, 4);
    sim->plants = dice_of(plan->seed, 5);
    sim->clocks = dice_of(plan->seed, 10);
    sim->server_first = 1;
    sim->gateway_first = 1 + plan->servers;
    sim->member_count = sim->gateway_first + plan->gateways;
    CHECK(sim->member_count <= MEMBERS && plan->feeds <= NODE_FEEDS);
    for (uint32_t i = 0; i < sim->member_count; i++) {
        struct member *m = &sim->members[i];
        m->role = i == COORDINATOR ? ROLE_COORDINATOR : i < sim->gateway_first ? ROLE_CELLSERVER : ROLE_GATEWAY;
        m->number = i == COORDINATOR ? 0 : i < sim->gateway_first ? i - 1 : i - sim->gateway_first;
        uint64_t at_us = dice_below(&sim->timers, plan->start_spread_us + 1);
        queue_push(&sim->queue, (struct happening){.kind = HAPPEN_START, .at_us = at_us, .member = i});
    }
    plants_open(sim);
    crowd_open(sim);
    checker_open(sim);
}

void sim_close(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->member_count; i++) {
        struct member *m = &sim->members[i];
        close_core(m);
        free(m->prefixes);
    }
    faults_close(sim);
    plants_open(NULL);
    checker_close(sim);
    crowd_close(sim);
    store_close(&sim->store);
    network_close(&sim->network);
    queue_close(&sim->queue);
    outbox_close(&sim->outbox);
    writer_close(&sim->plant_writer);
}

/* ---- a step and what comes out of it ---- */

static uint64_t deadline_of(const struct member *m)
{
    if (m->coordinator != NULL) return coordinator_deadline_us(m->coordinator);
    if (m->server != NULL) return cellserver_deadline_us(m->server);
    return gateway_deadline_us(m->gateway);
}

void sim_rearm(struct sim *sim, uint32_t index)
{
    struct member *m = &sim->members[index];
    if (!m->listening) return;
    uint64_t due_us = deadline_of(m);
    if (due_us == UINT64_MAX) return;
    /* A shell's timer is always a little late; so time goes on even if a core asks for a moment that has passed. */
    uint64_t at_us = time_of(sim, m, due_us) + 50 + dice_below(&sim->timers, 1000);
    if (m->timeout_us != UINT64_MAX && m->timeout_us <= at_us) return;
    m->timeout_us = at_us;
    queue_push(&sim->queue, (struct happening){.kind = HAPPEN_TIMEOUT, .at_us = at_us, .member = index});
}

void sim_tell_later(struct sim *sim, uint32_t link)
{
    const struct sim_link *l = &sim->network.links[link];
    queue_push(&sim->queue, (struct happening){.kind = HAPPEN_LINK_UP,
                                               .at_us = sim->now_us,
                                               .member = l->from,
                                               .link = link,
                                               .connection = l->connection});
}

static void watch(struct member *m, const uint8_t *prefix, size_t size, bool wanted)
{
    char *text = calloc(size + 1, 1);
    CHECK(text != NULL);
    memcpy(text, prefix, size);
    uint32_t at = 0;
    while (at < m->prefix_count && strcmp(m->prefixes[at], text) != 0) at++;
    if (wanted && at == m->prefix_count) {
        ARRAY_RESERVE(m->prefixes, m->prefix_room, (size_t)m->prefix_count + 1);
        m->prefixes[m->prefix_count++] = text;
        return;
    }
    if (!wanted && at < m->prefix_count) {
        free(m->prefixes[at]);
        m->prefixes[at] = m->prefixes[--m->prefix_count];
    }
    free(text);
}

/* What its receiver refuses comes again and again, and nothing behind it ever comes. */
static void judge_packet(struct sim *sim, uint32_t index, const uint8_t *bytes, size_t size)
{
    struct packet packet;
    enum terrane_error error = packet_decode(bytes, size, &packet);
    if (error == TERRANE_ERR_OK) return;
    sim_violation(sim, "member %u sends what nobody can read: %s", index, terrane_error_name(error));
}

static void carry_out(struct sim *sim, uint32_t index, const struct output *o, const uint8_t *bytes)
{
    trace_output(sim, index, o, bytes);
    if (o->kind == OUTPUT_SEND) judge_packet(sim, index, bytes, o->size);
    switch (o->kind) {
    case OUTPUT_SEND: network_send(sim, index, o->node, bytes, o->size); break;
    case OUTPUT_PUBLISH: network_publish(sim, index, o->feed, bytes, o->size); break;
    case OUTPUT_REPLY: checker_reply(sim, index, o->token, bytes, o->size); break;
    case OUTPUT_STORE: store_execute(sim, index, o, bytes); break;
    case OUTPUT_WATCH: watch(&sim->members[index], bytes, o->size, true); break;
    case OUTPUT_UNWATCH: watch(&sim->members[index], bytes, o->size, false); break;
    case OUTPUT_LINK:
    case OUTPUT_FEED_LINK: network_link(sim, index, o, bytes); break;
    case OUTPUT_UNLINK:
    case OUTPUT_FEED_UNLINK: network_unlink(sim, index, o); break;
    case OUTPUT_LOG: break;
    }
}

void sim_step(struct sim *sim, uint32_t index, const struct event *event)
{
    struct member *m = &sim->members[index];
    if (sim->violated || !m->listening) return;
    CHECK(!sim->stepping);
    sim->steps++;
    sim_note(sim, sim->now_us << 8 | index, (uint64_t)event->kind << 32 | (uint64_t)event->size << 8 | event->lane);
    sim_note_bytes(sim, event->bytes, event->size);
    trace_event(sim, index, event);
    sim->stepping = true;
    outbox_clear(&sim->outbox);
    uint64_t now_us = sim_clock(sim, m);
    if (m->coordinator != NULL) coordinator_step(m->coordinator, event, now_us, &sim->outbox);
    if (m->server != NULL) cellserver_step(m->server, event, now_us, &sim->outbox);
    if (m->gateway != NULL) gateway_step(m->gateway, event, now_us, &sim->outbox);
    bool dies = m->doomed && sim->outbox.count > 0;
    struct dice doom = {m->doom_dice};
    size_t count = dies ? dice_below(&doom, sim->outbox.count + 1) : sim->outbox.count;
    for (size_t i = 0; i < count; i++) {
        const struct output *o = &sim->outbox.items[i];
        carry_out(sim, index, o, outbox_bytes(&sim->outbox, o));
    }
    sim->stepping = false;
    bool ends = m->server != NULL && cellserver_closed(m->server);
    if (ends && !dies) sim_say(sim, "server %u ends", m->number);
    if ((dies || ends) && !sim->violated)
        sim_kill(sim, index);
    else
        sim_rearm(sim, index);
}

void sim_query(struct sim *sim, uint32_t member, uint64_t token, const void *bytes, size_t size)
{
    queue_push(&sim->queue, (struct happening){.kind = HAPPEN_QUERY,
                                               .at_us = sim->now_us + 100,
                                               .member = member,
                                               .token = token,
                                               .bytes = queue_bytes(bytes, size),
                                               .size = size});
}

/* ---- time ---- */

static bool watched(const struct member *m, const struct happening *what)
{
    for (uint32_t i = 0; i < m->prefix_count; i++) {
        size_t length = strlen(m->prefixes[i]);
        if (length <= what->size && memcmp(m->prefixes[i], what->bytes, length) == 0) return true;
    }
    return false;
}

static void tick(struct sim *sim, const struct happening *what)
{
    struct member *m = &sim->members[what->member];
    const struct plan *plan = &sim->plan;
    if (!m->listening || what->connection != m->incarnation) return;
    struct event event = {.kind = EVENT_TICK, .late_us = sim->now_us - m->tick_due_us};
    m->ticked_us = sim->now_us;
    sim_step(sim, what->member, &event);
    if (!sim->violated && m->listening && plan->fail_overs) checker_ticked(sim, what->member);
    if (sim->violated || !m->listening) return;
    uint64_t interval_us = cellserver_tick_us(m->server);
    m->tick_due_us += interval_us;
    /* As a timer does after a pause: what was missed is not made up for. */
    if (m->tick_due_us + interval_us < sim->now_us) m->tick_due_us = sim->now_us;
    uint64_t at_us = m->tick_due_us > sim->now_us ? m->tick_due_us : sim->now_us;
    at_us += dice_below(&sim->timers, plan->tick_jitter_us + 1);
    if (!sim->network.healed && dice_chance(&sim->timers, plan->stall_chance))
        m->busy_until_us = sim->now_us + dice_below(&sim->timers, plan->stall_max_us + 1);
    plan_again(sim, HAPPEN_TICK, what->member, at_us);
}

static void message(struct sim *sim, struct happening *what)
{
    struct member *m = &sim->members[what->member];
    struct event event = {.kind = EVENT_MESSAGE, .bytes = what->bytes, .size = what->size, .token = what->token};
    if (what->kind == HAPPEN_QUERY) {
        event.lane = LANE_QUERY;
    } else {
        if (!network_arrives(sim, what)) return;
        event.lane = what->kind == HAPPEN_FRAME ? LANE_FEED : LANE_INBOX;
        if (event.lane == LANE_FEED && !watched(m, what)) return;
    }
    sim_step(sim, what->member, &event);
}

static void timeout(struct sim *sim, const struct happening *what)
{
    struct member *m = &sim->members[what->member];
    if (!m->listening || m->timeout_us != what->at_us) return;
    m->timeout_us = UINT64_MAX;
    if (deadline_of(m) <= sim_clock(sim, m))
        sim_step(sim, what->member, &(struct event){.kind = EVENT_TIMEOUT});
    else
        sim_rearm(sim, what->member);
}

static void happen(struct sim *sim, struct happening *what)
{
    struct member *m = &sim->members[what->member];
    if (what->kind == HAPPEN_FAULT) {
        faults_happen(sim, what);
        return;
    }
    if (m->busy_until_us > sim->now_us) {
        /* The process stands still; all that concerns it waits, in order. */
        struct happening later = *what;
        if (what->kind == HAPPEN_TIMEOUT) {
            if (m->timeout_us != what->at_us) return;
            m->timeout_us = m->busy_until_us;
        }
        later.at_us = m->busy_until_us;
        what->bytes = NULL;
        queue_push(&sim->queue, later);
        return;
    }
    switch (what->kind) {
    case HAPPEN_START: start(sim, what); break;
    case HAPPEN_TICK: tick(sim, what); break;
    case HAPPEN_TIMEOUT: timeout(sim, what); break;
    case HAPPEN_PACKET:
    case HAPPEN_FRAME:
    case HAPPEN_QUERY: message(sim, what); break;
    case HAPPEN_STORED: store_answered(sim, what); break;
    case HAPPEN_LINK_UP: network_link_up(sim, what); break;
    case HAPPEN_LINK_DOWN: network_link_down(sim, what); break;
    case HAPPEN_WORK: crowd_work(sim, what); break;
    case HAPPEN_TOLD: network_told(sim, what); break;
    case HAPPEN_FAULT: break;
    }
}

void sim_run_until(struct sim *sim, uint64_t at_us)
{
    uint64_t next_us;
    while (!sim->violated) {
        bool any = queue_peek(&sim->queue, &next_us) && next_us <= at_us;
        uint64_t check_us = sim->checker.next_us;
        if (check_us <= at_us && (!any || check_us <= next_us)) {
            sim->now_us = check_us;
            checker_look(sim);
            sim->checker.next_us = check_us + CHECK_US;
            continue;
        }
        if (!any) break;
        sim->now_us = next_us;
        struct happening what = queue_pop(&sim->queue);
        happen(sim, &what);
        happening_free(&what);
    }
    if (!sim->violated) sim->now_us = at_us;
}
