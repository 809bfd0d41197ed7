/* The destination's side of a hand-off: what others OFFER is taken over.
 *
 * A leaf without a standby takes an entity over at once. Otherwise the OFFER becomes pending first: the standby gets
 * it, and when it has it the entity is ours with version + 1 and the ACCEPT goes out. That moment is the commit. A
 * pending entity is dropped only with its leaf: then its source, or that one's successor, asks the leaf's new owner. An
 * OFFER that names a later `since` of our leaf than our map does, or a leaf that waits for its promotion, is kept until
 * we know.
 *
 * An OFFER may come again: from a source whose standby took over, or to the standby of a destination that died. So
 * what is known here of the entity is asked before anything else: what we own, what is pending, what has gone from here
 * (forward.c). Whoever OFFERs a lower version than any of these holds the past, and an ACCEPT makes it let go.
 *
 * A border between two leaves of this process whose standbys differ is the same change, with ourselves as the source.
 */
#include "cellserver/internal.h"

#include "common/mutation.h"

#include <stdlib.h>
#include <string.h>

#define PARKED_MAX 1024u

/* Makes room for another version of an entity that is ours and in a leaf. */
static void displace(struct cellserver *cs, uint32_t at, uint32_t leaf)
{
    struct entity *e = &cs->entities[at];
    if (e->leaving) cs->stats.leaving--;
    entity_part_leaf(cs, at, LEFT_MOVED, cs->leaves[leaf].key);
}

uint32_t entity_install(struct cellserver *cs, uint32_t leaf, struct transfer *item, uint64_t version)
{
    const struct entity_record *record = &item->record;
    uint32_t at = entity_find(cs, record->id);
    bool placed = at != NONE;
    if (placed && cs->entities[at].status == ENTITY_OWNED) {
        displace(cs, at, leaf);
    } else if (placed) {
        cs->stats.ghosts--;
    }
    if (!placed) at = entity_new(cs, record, ENTITY_OWNED);
    struct entity *e = &cs->entities[at];
    /* A move that its gateway was told to be taken is newer than what its former owner knew, or was known there. */
    uint64_t waiting = e->status == ENTITY_OWNED ? entity_move_waits(e) : 0;
    bool move_waits = waiting > item->position_sequence && node_id_equal(e->gateway, item->gateway);
    entity_drop_move(cs, at);
    e->status = ENTITY_OWNED;
    e->view_whole = true; /* so what the AOI says of its view is not noted one by one */
    e->leaving = e->move_buffered = false;
    e->version = version;
    e->kind = record->kind;
    e->flags = record->flags;
    e->yaw = record->yaw;
    e->radius = record->radius;
    e->gateway = item->gateway;
    e->enter_request = 0;
    e->position_sequence = move_waits ? waiting : item->position_sequence;
    if (move_waits) entity_note_move(cs, at);
    e->state_sequence = item->state_sequence;
    e->radius_sequence = item->radius_sequence;
    entity_set_state(e, record->state, record->state_size);
    if (placed) {
        e->position = record->position;
        e->layer = record->layer;
        CHECK(aoi_move(cs->aoi, e->aoi, e->position, views_sink, cs) == TERRANE_ERR_OK);
        CHECK(aoi_stage(cs->aoi, e->aoi, e->position) == TERRANE_ERR_OK);
        CHECK(aoi_set_layer(cs->aoi, e->aoi, e->layer, views_sink, cs) == TERRANE_ERR_OK);
        CHECK(aoi_set_radius(cs->aoi, e->aoi, e->radius, views_sink, cs) == TERRANE_ERR_OK);
    } else {
        CHECK(entity_place(cs, at, e->radius) == TERRANE_ERR_OK);
    }
    return at;
}

static void take_over(struct cellserver *cs, uint32_t leaf, struct transfer *item)
{
    uint32_t at = entity_install(cs, leaf, item, item->record.version + 1);
    struct entity *e = &cs->entities[at];
    struct entity_id seen;
    while (entity_next(&item->recall, &seen)) {
        uint32_t other = entity_find(cs, seen);
        if (other != NONE) aoi_recall(cs->aoi, e->aoi, cs->entities[other].aoi);
    }
    replicas_supersede(cs->ghosts, cs->now_us, e->id, e->version);
    forward_forget(cs, e->id);
    entity_join_leaf(cs, at, leaf);
    entity_show(cs, at);
    e->view_whole = true;
    views_touch(cs, at);
    handoff_tell_owner(cs, at);
    event_tell_arrival(cs, at);
    absent_note(cs, e->gateway);
    cs->stats.handoffs_in++;
    history_note(cs, at, &(struct trace_step){.cause = TRACE_ARRIVED, .to = cs->leaves[leaf].key});
    registry_here(cs, at);
    handoff_check(cs, at);
}

/* The version of the entity that is ours; 0: it is not. */
static uint64_t version_owned(const struct cellserver *cs, struct entity_id id)
{
    uint32_t at = entity_find(cs, id);
    return at != NONE && cs->entities[at].status == ENTITY_OWNED ? cs->entities[at].version : 0;
}

/* The highest version of the entity that is or was ours; 0: none. */
static uint64_t version_here(const struct cellserver *cs, struct entity_id id)
{
    uint64_t gone = forward_version(cs, id), own = version_owned(cs, id);
    return own > gone ? own : gone;
}

/* ---- answers ---- */

/* ACCEPTs of one step for one asker and leaf are one message. */
static void accept_flush(struct cellserver *cs)
{
    struct acceptances *a = &cs->accepted;
    if (a->count == 0) return;
    uint32_t leaf = leaf_find(cs, a->to), peer = peer_find(cs, a->asker);
    if (peer != NONE) {
        writer_clear(&cs->message);
        uint32_t since = leaf == NONE ? 0 : cs->leaves[leaf].since;
        accept_begin(&cs->message, &(struct accept){.to = a->to, .to_epoch = since, .count = a->count});
        writer_raw(&cs->message, a->items.data, a->items.size);
        peer_send(cs, peer, &cs->message, true);
    }
    a->count = 0;
    writer_clear(&a->items);
}

static void accept(struct cellserver *cs, struct node_id asker, struct quadkey to, const struct accept_item *item)
{
    struct acceptances *a = &cs->accepted;
    bool same = node_id_equal(a->asker, asker) && quadkey_equal(a->to, to);
    if (!same || a->items.size > LIMIT_MESSAGE_BYTES - 128) accept_flush(cs);
    a->asker = asker;
    a->to = to;
    accept_add(&a->items, item);
    a->count++;
}

void takeover_flush(struct cellserver *cs)
{
    accept_flush(cs);
}

static void answer_refusals(struct cellserver *cs, uint32_t peer, const struct offer *m, enum terrane_error error,
                            uint32_t count)
{
    if (count == 0) return;
    writer_clear(&cs->message);
    uint32_t since = cs->leaves[leaf_find(cs, m->to)].since;
    refuse_begin(&cs->message, &(struct refuse){.to = m->to, .to_epoch = since, .error = error, .count = count});
    writer_raw(&cs->message, cs->refusals.data, cs->refusals.size);
    peer_send(cs, peer, &cs->message, true);
}

/* ---- pending ---- */

static uint32_t pending_find(const struct cellserver *cs, struct entity_id id)
{
    return table_get(&cs->pending_index, id.v);
}

struct standby_item pending_standby_item(const struct pending *p)
{
    struct standby_item item = {.pending = true, .transfer = p->transfer};
    item.transfer.recall_count = 0;
    return item;
}

bool takeover_pends(const struct cellserver *cs, struct entity_id id)
{
    return table_get(&cs->pending_index, id.v) != TABLE_NONE;
}

static uint32_t pending_new(struct cellserver *cs, struct entity_id id, uint32_t leaf)
{
    uint32_t at = 0;
    if (cs->pending_free_count > 0) {
        at = cs->pending_free[--cs->pending_free_count];
    } else {
        at = cs->pending_count++;
        ARRAY_RESERVE(cs->pendings, cs->pending_room, cs->pending_count);
        ARRAY_RESERVE(cs->pending_free, cs->pending_free_room, cs->pending_count);
    }
    struct pending *p = &cs->pendings[at];
    p->used = true;
    p->leaf = leaf;
    p->slot = STREAM_SLOT_NONE;
    p->floor = 0;
    p->transfer = (struct transfer){.record = {.id = id}};
    table_put(&cs->pending_index, id.v, at);
    cs->stats.pending++;
    return at;
}

static void pending_free(struct cellserver *cs, uint32_t at)
{
    struct pending *p = &cs->pendings[at];
    standby_note_drop(cs, p->leaf, p->transfer.record.id, p->slot);
    table_remove(&cs->pending_index, p->transfer.record.id.v);
    p->used = false;
    cs->pending_free[cs->pending_free_count++] = at;
    cs->stats.pending--;
}

/* A copy that outlives the message. */
static void pending_fill(struct pending *p, const struct transfer *item)
{
    p->transfer = *item;
    ARRAY_RESERVE(p->state, p->state_room, item->record.state_size);
    if (item->record.state_size > 0) memcpy(p->state, item->record.state, item->record.state_size);
    p->transfer.record.state = p->state;
    writer_clear(&p->recall);
    if (item->recall_count > 0) writer_raw(&p->recall, item->recall.at, (size_t)(item->recall.end - item->recall.at));
    p->transfer.recall = cursor_of(p->recall.data, p->recall.size);
}

static void pend(struct cellserver *cs, struct node_id asker, struct quadkey from, uint32_t leaf,
                 const struct transfer *item)
{
    uint32_t own = entity_find(cs, item->record.id), at = pending_find(cs, item->record.id);
    /* Somebody holds a later version of what we thought ours. Here it is a ghost until the commit. */
    if (own != NONE && cs->entities[own].status == ENTITY_OWNED) {
        handoff_let_go(cs, own, asker, from, item->record.version);
    }
    if (at != NONE && cs->pendings[at].leaf != leaf) {
        pending_free(cs, at);
        at = NONE;
    }
    if (at == NONE) at = pending_new(cs, item->record.id, leaf);
    struct pending *p = &cs->pendings[at];
    p->entity = NONE;
    p->asker = asker;
    p->order = ++cs->draft_order;
    pending_fill(p, item);
    standby_note_pending(cs, at);
    standby_wait_pending(cs, leaf, at, p->order);
}

void takeover_local(struct cellserver *cs, uint32_t entity, uint32_t leaf)
{
    struct entity *e = &cs->entities[entity];
    if (!standby_named(cs, leaf)) {
        handoff_local_done(cs, entity, leaf, e->draft_order);
        return;
    }
    uint32_t at = pending_find(cs, e->id);
    if (at != NONE) pending_free(cs, at);
    at = pending_new(cs, e->id, leaf);
    struct pending *p = &cs->pendings[at];
    p->entity = entity;
    p->order = ++cs->draft_order;
    e->draft_order = p->order;
    e->asked = true; /* a standby that takes that leaf over has it then */
    struct transfer item;
    entity_transfer(e, &item);
    pending_fill(p, &item);
    standby_note_pending(cs, at);
    standby_wait_pending(cs, leaf, at, p->order);
}

void takeover_commit(struct cellserver *cs, uint32_t at, uint64_t order)
{
    struct pending *p = &cs->pendings[at];
    if (!p->used || p->order != order) return;
    struct transfer item = p->transfer;
    struct node_id asker = p->asker;
    uint32_t leaf = p->leaf, entity = p->entity;
    uint64_t floor = p->floor;
    pending_free(cs, at); /* its buffers stay until another OFFER becomes pending */
    if (entity != NONE) {
        handoff_local_done(cs, entity, leaf, order);
        return;
    }
    struct accept_item answer = {.id = item.record.id, .offered = item.record.version};
    if (floor > item.record.version) item.record.version = floor;
    if (version_here(cs, item.record.id) <= item.record.version) take_over(cs, leaf, &item);
    answer.version = version_here(cs, item.record.id);
    accept(cs, asker, cs->leaves[leaf].key, &answer);
}

void takeover_forget(struct cellserver *cs, uint32_t entity)
{
    uint32_t at = cs->stats.pending == 0 ? NONE : pending_find(cs, cs->entities[entity].id);
    if (at != NONE && cs->pendings[at].entity == entity) pending_free(cs, at);
}

void takeover_close_leaf(struct cellserver *cs, uint32_t leaf)
{
    for (uint32_t i = 0; i < cs->pending_count; i++) {
        if (cs->pendings[i].used && cs->pendings[i].leaf == leaf) pending_free(cs, i);
    }
}

/* ---- OFFERs ---- */

/* Whether the offered entity, which is new here, can be ours. */
static enum terrane_error judge(const struct cellserver *cs, const struct transfer *item)
{
    if (!world_contains(&cs->world, item->record.position)) return TERRANE_ERR_POSITION_OUTSIDE;
    if (item->record.radius > cs->world.radius_max) return TERRANE_ERR_RADIUS_TOO_LARGE;
    if (cs->stats.owned + cs->stats.pending >= LIMIT_ENTITIES) return TERRANE_ERR_LIMIT;
    return TERRANE_ERR_OK;
}

static enum terrane_error offer_item(struct cellserver *cs, struct node_id asker, const struct offer *m, uint32_t leaf,
                                     struct transfer *item)
{
    struct accept_item answer = {.id = item->record.id, .offered = item->record.version};
    uint32_t pending = pending_find(cs, item->record.id);
    /* Our last words about the leaf with which it went have not come there: its new primary knows what it has. Until it
     * is ours again, what still comes for it goes on to that one. */
    bool gave = forward_gave(cs, item->record.id, asker);
    uint64_t floor = gave ? forward_version(cs, item->record.id) : 0;
    uint64_t later = gave ? version_owned(cs, item->record.id) : version_here(cs, item->record.id);
    if (pending != NONE && cs->pendings[pending].transfer.record.version > later) {
        later = cs->pendings[pending].transfer.record.version;
    }
    if (later > item->record.version) {
        answer.version = later;
        accept(cs, asker, m->to, &answer);
        return TERRANE_ERR_OK;
    }
    if (pending != NONE && cs->pendings[pending].leaf == leaf && cs->pendings[pending].entity == NONE &&
        cs->pendings[pending].transfer.record.version == item->record.version) {
        cs->pendings[pending].asker = asker; /* the newest one gets the answer */
        return TERRANE_ERR_OK;
    }
    enum terrane_error error = judge(cs, item);
    if (error != TERRANE_ERR_OK) return error;
    if (standby_named(cs, leaf) && !MUTATION(ACCEPTED_EARLY)) {
        pend(cs, asker, m->from, leaf, item);
        if (gave) cs->pendings[pending_find(cs, item->record.id)].floor = floor;
        return TERRANE_ERR_OK;
    }
    if (floor > item->record.version) item->record.version = floor;
    take_over(cs, leaf, item);
    answer.version = item->record.version + 1;
    accept(cs, asker, m->to, &answer);
    return TERRANE_ERR_OK;
}

/* Whether this source has lost its leaf to another since. The highest `since` of each leaf is kept, from the map and
 * from OFFERs. */
static bool source_is_stale(struct cellserver *cs, const struct offer *m)
{
    uint32_t known = table_get(&cs->since_index, m->from.v);
    if (known != TABLE_NONE && m->from_epoch < known) return !MUTATION(STALE_OFFER);
    if (ownership_leaf(&cs->map, m->from) != NULL) table_put(&cs->since_index, m->from.v, m->from_epoch);
    return false;
}

enum standing { STANDING_OWNER, STANDING_SOON, STANDING_STRANGER };

/* SOON: our map is behind the source's, or the leaf waits for its promotion. */
static enum standing standing_of(const struct cellserver *cs, const struct offer *m)
{
    if (leaf_find(cs, m->to) != NONE) return STANDING_OWNER;
    const struct leaf_owner *owner = ownership_leaf(&cs->map, m->to);
    bool behind = owner == NULL || m->to_epoch > owner->since;
    return behind || node_id_equal(owner->primary, cs->options.info.node) ? STANDING_SOON : STANDING_STRANGER;
}

static void park(struct cellserver *cs, struct node_id asker, struct cursor message)
{
    uint32_t at = 0;
    while (at < cs->parked_count && cs->parked[at].asker.v != 0) at++;
    if (at == PARKED_MAX) {
        cs->stats.dropped++;
        return;
    }
    if (at == cs->parked_count) ARRAY_RESERVE(cs->parked, cs->parked_room, ++cs->parked_count);
    cs->parked[at].asker = asker;
    writer_clear(&cs->parked[at].message);
    writer_raw(&cs->parked[at].message, message.at, (size_t)(message.end - message.at));
}

/* Who is not the owner (any more) does not answer: the source asks again when it hears who is. */
void handoff_offer(struct cellserver *cs, uint32_t peer, struct cursor message, struct offer *m)
{
    struct node_id asker = cs->peers[peer].info.node;
    enum standing standing = standing_of(cs, m);
    if (source_is_stale(cs, m) || standing == STANDING_STRANGER) {
        cs->stats.stale++;
        return;
    }
    if (standing == STANDING_SOON) {
        park(cs, asker, message);
        return;
    }
    uint32_t leaf = leaf_find(cs, m->to), refused = 0;
    enum terrane_error why = TERRANE_ERR_OK;
    struct transfer item;
    writer_clear(&cs->refusals);
    while (offer_next(m, &item)) {
        enum terrane_error error = offer_item(cs, asker, m, leaf, &item);
        if (error == TERRANE_ERR_OK) continue;
        why = error;
        accept_add(&cs->refusals, &(struct accept_item){.id = item.record.id, .offered = item.record.version});
        refused++;
    }
    accept_flush(cs);
    answer_refusals(cs, peer, m, why, refused);
}

/* Looks again at what came too early. */
static void unpark(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->parked_count; i++) {
        struct parked_offer *parked = &cs->parked[i];
        struct node_id asker = parked->asker;
        struct offer m;
        if (asker.v == 0) continue;
        struct cursor message = cursor_of(parked->message.data, parked->message.size);
        CHECK(offer_decode(message, &m) == TERRANE_ERR_OK);
        uint32_t peer = peer_find(cs, asker);
        if (peer != NONE && standing_of(cs, &m) == STANDING_SOON) continue;
        parked->asker = NODE_NONE;
        if (peer != NONE) handoff_offer(cs, peer, message, &m);
    }
}

void takeover_sync(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->map.now.leaf_count; i++) {
        const struct leaf_owner *owner = &cs->map.now.leaves[i];
        uint32_t known = table_get(&cs->since_index, owner->leaf.v);
        if (known == TABLE_NONE || known < owner->since) table_put(&cs->since_index, owner->leaf.v, owner->since);
    }
    unpark(cs);
}

void takeover_close(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->pending_room; i++) {
        free(cs->pendings[i].state);
        writer_close(&cs->pendings[i].recall);
    }
    free(cs->pendings);
    free(cs->pending_free);
    table_close(&cs->pending_index);
    table_close(&cs->since_index);
    for (uint32_t i = 0; i < cs->parked_room; i++) writer_close(&cs->parked[i].message);
    free(cs->parked);
    writer_close(&cs->accepted.items);
    writer_close(&cs->refusals);
}
