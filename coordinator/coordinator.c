#include "coordinator/internal.h"

#include <stdio.h>
#include <stdlib.h>

static enum terrane_error options_check(const struct coordinator_options *options, char *fault, size_t room)
{
    if (world_check(&options->world) != TERRANE_ERR_OK) {
        snprintf(fault, room, "a constant of the world is out of its range; see docs/OPERATIONS.md or --help");
        return TERRANE_ERR_CONFIG;
    }
    if (options->info.node.v < NODE_RESERVED || options->info.role != ROLE_COORDINATOR) {
        snprintf(fault, room, "the coordinator needs a node id of at least %u and its role", NODE_RESERVED);
        return TERRANE_ERR_CONFIG;
    }
    if (options->lease_us != 0 && (options->lease_us < LIMIT_LEASE_MIN_US || options->lease_us > LIMIT_LEASE_MAX_US)) {
        snprintf(fault, room, "a lease of %llu us is not from 100 ms to 10 s", (unsigned long long)options->lease_us);
        return TERRANE_ERR_CONFIG;
    }
    if (options->expect_servers > LIMIT_NODES) {
        snprintf(fault, room, "%u expected servers exceed the limit of %u nodes", options->expect_servers, LIMIT_NODES);
        return TERRANE_ERR_CONFIG;
    }
    return TERRANE_ERR_OK;
}

enum terrane_error coordinator_check(const struct coordinator_options *options, char *fault, size_t room)
{
    struct coordinator *c;
    enum terrane_error error = options_check(options, fault, room);
    if (error != TERRANE_ERR_OK) return error;
    c = calloc(1, sizeof *c);
    CHECK(c != NULL);
    c->options = *options;
    error = leaves_open(c, fault, room);
    coordinator_leaves_close(c);
    free(c);
    return error;
}

enum terrane_error coordinator_open(const struct coordinator_options *options, struct coordinator **out)
{
    char fault[256];
    *out = NULL;
    enum terrane_error error = options_check(options, fault, sizeof fault);
    if (error != TERRANE_ERR_OK) return error;
    struct coordinator *c = calloc(1, sizeof *c);
    CHECK(c != NULL);
    c->options = *options;
    if (c->options.expect_servers == 0) c->options.expect_servers = 1;
    if (c->options.leader_lease_us == 0) c->options.leader_lease_us = LEADER_LEASE_US;
    if (c->options.lease_us == 0) c->options.lease_us = LEASE_US;
    if (c->options.silence_us == 0) c->options.silence_us = SILENCE_US;
    error = leaves_open(c, fault, sizeof fault);
    c->options.leaves = NULL; /* the caller's */
    if (error != TERRANE_ERR_OK) {
        coordinator_close(c);
        return error;
    }
    c->due_us = UINT64_MAX;
    c->assign_due_us = UINT64_MAX;
    *out = c;
    return TERRANE_ERR_OK;
}

void coordinator_close(struct coordinator *c)
{
    if (c == NULL) return;
    members_close(c);
    coordinator_leaves_close(c);
    map_close(c);
    farewell_close(c);
    standbys_close(c);
    rebalance_close(c);
    explain_close(c);
    writer_close(&c->save);
    writer_close(&c->message);
    writer_close(&c->packet);
    writer_close(&c->json);
    free(c);
}

/* Nobody is told apart from us being stopped: who is not stepped can't hear anybody. So we are stepped at least this
 * often, and a longer gap between two steps is our own pause, which doesn't count as the members' silence. */
static uint64_t pulse_us(const struct coordinator *c)
{
    return lapse_margin_us(c) / 2;
}

/* Without members, and not waiting for any, there is nothing to count against anybody. */
static bool pulses(const struct coordinator *c)
{
    return c->members_used > 0 || c->last_step_us < c->settle_us;
}

static void notice_pause(struct coordinator *c, uint64_t now_us)
{
    uint64_t gap_us = now_us > c->last_step_us ? now_us - c->last_step_us : 0;
    if (c->last_step_us != 0 && pulses(c) && gap_us > lapse_margin_us(c)) {
        if (gap_us > c->options.lease_us)
            outbox_log(c->out, LOG_WARNING, "event=paused ms=%llu reason=\"this process itself; nobody lapses by it\"",
                       (unsigned long long)(gap_us / 1000));
        /* A pulse short of all of it: where every gap is too long, time still passes. */
        members_shift(c, gap_us - pulse_us(c));
        if (c->settle_us > c->last_step_us) c->settle_us += gap_us;
    }
    c->last_step_us = now_us;
    c->now_us = now_us;
}

static void link_changed(struct coordinator *c, struct node_id node, bool up)
{
    uint32_t index = member_find(c, node);
    farewell_link(c, node, up);
    if (index == NONE || c->members[index].session == NULL) return;
    c->members[index].link_down = !up;
    if (!up) return;
    bool known = c->members[index].proved;
    session_link_up(c->members[index].session, c->now_us);
    member_touch(c, index);
    (void)member_prove(c, index);       /* if its name is not free yet, its packets will prove it later */
    if (!known) send_welcome(c, index); /* the one that answered HELLO had no link to travel on */
}

void coordinator_step(struct coordinator *c, const struct event *in, uint64_t now_us, struct outbox *out)
{
    c->out = out;
    notice_pause(c, now_us);
    switch (in->kind) {
    case EVENT_START: lead_start(c); break;
    case EVENT_MESSAGE:
        if (in->lane == LANE_INBOX) packet_arrived(c, in->bytes, in->size);
        if (in->lane == LANE_QUERY) query_answer(c, in->token, in->bytes, in->size);
        break;
    case EVENT_STORED:
        if (!lead_stored(c, in)) keep_stored(c, in);
        break;
    case EVENT_PEER_UP:
    case EVENT_PEER_DOWN: link_changed(c, in->node, in->kind == EVENT_PEER_UP); break;
    case EVENT_TICK:
    case EVENT_TIMEOUT:
    case EVENT_FEED_UP:
    case EVENT_FEED_DOWN: break;
    }
    members_check(c);
    farewell_step(c);
    lead_step(c);
    keep_step(c);
    map_tell(c);
    map_send_due(c);
    sessions_flush(c);
    c->out = NULL;
}

uint64_t coordinator_deadline_us(const struct coordinator *c)
{
    uint64_t due_us = c->due_us, keep_us = keep_due_us(c), farewell_us = farewell_due_us(c);
    if (c->members_used > 0 && c->due_us == UINT64_MAX) due_us = c->now_us;
    if (pulses(c) && c->last_step_us + pulse_us(c) < due_us) due_us = c->last_step_us + pulse_us(c);
    if (farewell_us < due_us) due_us = farewell_us;
    if (lead_due_us(c) < due_us) due_us = lead_due_us(c);
    return keep_us < due_us ? keep_us : due_us;
}

void coordinator_show_console(struct coordinator *c, const char *http_url)
{
    snprintf(c->http_url, sizeof c->http_url, "%s", http_url);
}

void coordinator_stats(const struct coordinator *c, struct coordinator_stats *out)
{
    *out = c->stats;
    out->term = c->term;
    out->rev = c->rev;
    out->ready = c->ready;
    out->leads = lead_is_fresh(c) && c->ready;
    out->leader = c->lead.leader.node;
    out->stalled = c->lead.stats.stalled;
    out->deposed = c->lead.stats.deposed;
    out->restored = c->lead.stats.restored;
    out->leaves = c->leaf_count;
    out->migrating = migrate_count(c);
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        bool owned = c->leaves[i].owner.primary.v != 0;
        out->unowned += !owned;
        out->unprotected += owned && !leaf_level(c, &c->leaves[i]);
        out->owned_entities += c->leaves[i].load;
    }
    for (uint32_t i = 0; i < c->member_count; i++) {
        const struct member *m = &c->members[i];
        if (m->state != MEMBER_ACTIVE && m->state != MEMBER_EXPECTED) continue;
        if (member_is_server(m))
            out->servers++;
        else
            out->gateways++;
        out->silent += m->silent;
        out->lapsed += m->lapsed;
        out->draining += m->draining;
        out->ticks += m->tick;
        out->ticks_late += m->ticks_late;
    }
}

void coordinator_leaves(const struct coordinator *c, void (*each)(void *context, const struct leaf_owner *leaf),
                        void *context)
{
    for (uint32_t i = 0; i < c->leaf_count; i++) each(context, &c->leaves[i].owner);
}
