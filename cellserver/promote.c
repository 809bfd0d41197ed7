/* A standby becomes the primary: when the map says so and the former primary can't serve any more.
 *
 * The former primary may believe itself the owner for as long as an ack of ours is fresh to it. So from the moment in
 * which the map names us its acks are refusals, and we wait for one of three: it is not among the map's nodes (it is
 * dead; but a map of a new term may not name it because its coordinator has not heard of it yet), its RELEASE has come
 * (it has given the leaf up), or the last beat that we acked is older than the lease and a margin for clocks. Until
 * then the leaf is nobody's here; what comes for its entities is kept (replica.c).
 *
 * Of one entity in several places (another standby leaf, an own leaf, a ghost) the highest version is the entity; the
 * others are dropped without a word, since nobody was told of them by us. A promoted entity's version rises by more
 * than the former primary can have raised it unheard, so that all who knew it elsewhere believe us, but for one that
 * was marked as leaving: whether its destination has it under the next version, only the destination knows, so it keeps
 * its version and is offered again. One that was pending counts as taken over: if its source still has it, it asks
 * again and hears so. */
#include "cellserver/internal.h"

#include <stdlib.h>

/* For ghosts that are still on their way; then views are told without them. Or so many leases, where that is longer: by
 * then a neighbour that has died as well is replaced. */
#define VIEWS_HELD_US     UINT64_C(500000)
#define VIEWS_HELD_LEASES 3u
/* And so much longer those views that reach a leaf which keeps silent: its owner has the only copy and hears nobody, so
 * nobody takes its place. What it would show is still there. */
#define RIM_HELD_US UINT64_C(2000000)

void promote_begin(struct cellserver *cs, struct held_leaf *leaf)
{
    if (leaf->promoting) return;
    uint32_t peer = peer_find(cs, leaf->primary);
    leaf->promoting = true;
    if (peer != NONE) leaf->quiet_us = cs->peers[peer].beats.heard_us;
    cs->held.promoting++;
    cs->report_due = true;
    const struct leaf_owner *owner = ownership_leaf(&cs->map, leaf->key);
    replica_refuse(cs, leaf->primary, leaf->key, owner->epoch);
}

/* NULL: it may not be taken over yet; else why it may. */
static const char *may_take(const struct cellserver *cs, const struct held_leaf *leaf, const struct leaf_owner *owner)
{
    if (MUTATION(PROMOTED_EARLY)) return "mutation";
    bool named = ownership_node(&cs->map, leaf->primary) != NULL;
    if (!named && leaf->named_term == cs->map.term) return "dead";
    if (leaf->released >= owner->since) return "released";
    uint64_t lease_us = cs->lease_us;
    return cs->now_us >= leaf->quiet_us + lease_us + lease_us / 5 ? "quiet" : NULL;
}

void release_received(struct cellserver *cs, uint32_t peer, const struct release *m)
{
    struct held_leaf *leaf = replica_find(cs, m->leaf);
    if (leaf == NULL || !node_id_equal(leaf->primary, cs->peers[peer].info.node)) {
        cs->stats.stale++;
        return;
    }
    if (m->seq != leaf->seq && m->seq != 0) {
        outbox_log(cs->out, LOG_WARNING, "event=release_short seq=%llu have=%llu", (unsigned long long)m->seq,
                   (unsigned long long)leaf->seq);
    }
    if (m->epoch > leaf->released) leaf->released = m->epoch;
}

/* Its primary moved it to another of its leaves and died behind the put in the new one, before the drop in the old: the
 * new one is promoted here as well. */
static bool newer_beside(const struct cellserver *cs, const struct held_leaf *held, const struct held_entity *item)
{
    for (uint32_t i = 0; cs->held.promoting > 1 && i < cs->held.count; i++) {
        const struct held_leaf *other = &cs->held.leaves[i];
        if (!other->used || !other->promoting || other == held) continue;
        const struct held_entity *e = held_find(&other->content, item->id);
        if (e != NULL && e->version > item->version && node_id_equal(other->primary, held->primary)) return true;
    }
    return false;
}

/* Whether what is known here under that id, in `known`, is newer than a replica's word. `version`: what it would be
 * promoted to. */
static bool superseded(const struct cellserver *cs, const struct held_entity *item, uint64_t version, uint64_t *known)
{
    uint32_t at = entity_find(cs, item->id);
    *known = forward_version(cs, item->id);
    /* What is pending stands for the version under which it was taken over: that of its former owner's departure. */
    if (*known > item->version + item->pending) return true;
    if (at == NONE) return false;
    const struct entity *e = &cs->entities[at];
    bool leaves = version == item->version;
    *known = e->version;
    if (e->status == ENTITY_OWNED) return leaves ? e->version >= version : e->version > item->version;
    return e->version > version;
}

static void install_move(struct cellserver *cs, uint32_t at, const struct held_entity *item)
{
    struct entity *e = &cs->entities[at];
    if (item->move_sequence <= e->position_sequence) return;
    e->pending_position = item->move_position;
    e->pending_yaw = item->move_yaw;
    if (e->leaving) {
        e->move_buffered = true;
        e->buffered_sequence = item->move_sequence;
    } else {
        e->position_sequence = item->move_sequence;
        entity_note_move(cs, at);
    }
}

static void install(struct cellserver *cs, uint32_t leaf_at, const struct held_leaf *held,
                    const struct held_entity *item)
{
    bool leaves = item->leaving_to.v != 0 && !MUTATION(MARK_IGNORED);
    uint64_t version = item->version + (leaves || MUTATION(VERSION_REUSED) ? 0 : VERSIONS_UNHEARD + held->raise);
    if (item->pending && MUTATION(PENDING_LOST)) return;
    uint64_t known = 0;
    if (superseded(cs, item, version, &known)) {
        /* A source that has not heard so may still OFFER it, and what we know it from may be gone by then. */
        if (known > item->version) forward_depart(cs, item->id, known, NODE_NONE);
        return;
    }
    struct transfer transfer;
    held_transfer(&held->content, item, &transfer);
    uint32_t at = entity_install(cs, leaf_at, &transfer, version);
    cs->entities[at].enter_request = item->enter_request;
    replicas_supersede(cs->ghosts, cs->now_us, item->id, version);
    forward_forget(cs, item->id);
    entity_join_leaf(cs, at, leaf_at);
    cs->entities[at].view_whole = true;
    views_touch(cs, at);
    struct quadkey key = cs->leaves[leaf_at].key;
    history_note(cs, at, &(struct trace_step){.cause = TRACE_PROMOTED, .from = key, .to = key});
    if (leaves) {
        handoff_leave_again(cs, at, item->leaving_to);
    } else {
        handoff_tell_owner(cs, at);
        event_tell_arrival(cs, at);
    }
    install_move(cs, at, item);
    absent_note(cs, item->gateway);
    registry_here(cs, at);
    if (!leaves) handoff_check(cs, at);
}

static void leaf_hold_views(struct cellserver *cs, uint32_t at)
{
    struct own_leaf *leaf = &cs->leaves[at];
    uint64_t leases_us = VIEWS_HELD_LEASES * cs->lease_us;
    leaf->hold_until_us = cs->now_us + (leases_us > VIEWS_HELD_US ? leases_us : VIEWS_HELD_US);
    leaf->rim_until_us = leaf->hold_until_us + RIM_HELD_US;
    leaf->level_us = 0;
}

static void leaf_promote(struct cellserver *cs, struct held_leaf *held, const char *why)
{
    const struct leaf_owner *owner = ownership_leaf(&cs->map, held->key);
    char key[LIMIT_QUADKEY_TEXT];
    quadkey_text(held->key, key);
    outbox_log(cs->out, LOG_INFO, "event=promoted leaf=%s epoch=%u entities=%u level=%d cause=%s", key, owner->epoch,
               held->content.count, held->level, why);
    uint32_t at = leaf_open(cs, owner);
    formers_note(&cs->leaves[at].formers, held->primary); /* it may have kept what it gave us */
    leaf_hold_views(cs, at);
    for (uint32_t i = 0; i < held->content.end; i++) {
        const struct held_entity *item = &held->content.entities[i];
        if (item->id.v != 0 && !newer_beside(cs, held, item)) install(cs, at, held, item);
    }
    cs->stats.promotions++;
}

/* What waited for the leaf: readers of its stream, commands for its entities. Then nothing is left of the standby. */
static void leaf_settle(struct cellserver *cs, struct quadkey key)
{
    struct held_leaf *held = replica_find(cs, key);
    for (uint32_t i = 0; i < held->early_count; i++) {
        uint32_t peer = peer_find(cs, held->early[i].node);
        if (peer == NONE) continue;
        leaf_subscribe(cs, peer, &(struct subscribe){.stream = held->early[i].stream, .leaf = key});
        peer_feed_release(cs, peer, held->early[i].feed);
    }
    held->early_count = 0;
    struct held_command *commands = held->commands;
    uint32_t count = held->command_count;
    held->commands = NULL;
    held->command_count = held->command_room = 0;
    replica_free(cs, held);
    for (uint32_t i = 0; i < count; i++) {
        const struct writer *w = &commands[i].command;
        command_handle(cs, commands[i].gateway, commands[i].hops, cursor_of(w->data, w->size));
    }
    held_commands_free(commands, count);
}

void promote_check(struct cellserver *cs)
{
    if (cs->held.promoting == 0) return;
    uint32_t first = 0, taken = 0;
    for (uint32_t i = 0; i < cs->held.count; i++) {
        struct held_leaf *held = &cs->held.leaves[i];
        if (!held->used || !held->promoting) continue;
        const char *why = may_take(cs, held, ownership_leaf(&cs->map, held->key));
        if (why == NULL) continue;
        leaf_promote(cs, held, why);
        held->taken = true;
        if (taken++ == 0) first = i;
    }
    if (taken == 0) return;
    ghosts_sync(cs);
    for (uint32_t i = first; i < cs->held.count; i++) {
        if (!cs->held.leaves[i].used || !cs->held.leaves[i].taken) continue;
        struct quadkey key = cs->held.leaves[i].key;
        leaf_settle(cs, key);
        leaf_publish_now(cs, leaf_find(cs, key));
        ghosts_confirm(cs, leaf_find(cs, key));
    }
    standby_sync(cs);
    handoff_sync(cs);
    handoff_retry_straying(cs);
}
