/* Hand-off: an entity past a border changes its owner, make before break.
 *
 * At the source an entity is owned, then leaving (OFFERed; it stays visible and keeps its place, its commands are
 * buffered), then a ghost (ACCEPTed) or owned again (REFUSEd, or the destination is gone). At the destination the OFFER
 * is the commit: it owns the entity with version + 1 from the moment in which it writes the ACCEPT. Both ends are on
 * the sure lane, so each OFFER is answered exactly once while both live; versions settle everything else.
 *
 * A leaf border inside this process is the same change without the messages: version + 1, another leaf's streams. */
#include "cellserver/internal.h"

#include <stdlib.h>
#include <string.h>

#define FORWARDS_MAX 65536u

static void stray(struct cellserver *cs, uint32_t at)
{
    struct entity *e = &cs->entities[at];
    if (e->straying) return;
    e->straying = true;
    ARRAY_RESERVE(cs->straying, cs->straying_room, cs->straying_count + 1);
    cs->straying[cs->straying_count++] = at;
}

void handoff_tell_owner(struct cellserver *cs, uint32_t at)
{
    struct entity *e = &cs->entities[at];
    uint32_t peer = peer_find(cs, e->gateway);
    if (peer == NONE) return;
    writer_clear(&cs->message);
    owner_encode(&cs->message, &(struct owner){.id = e->id, .version = e->version, .leaf = cs->leaves[e->leaf].key});
    peer_send(cs, peer, &cs->message, true);
}

static void handoff_local(struct cellserver *cs, uint32_t at, uint32_t to)
{
    struct entity *e = &cs->entities[at];
    e->version++;
    entity_part_leaf(cs, at, LEFT_MOVED, cs->leaves[to].key);
    entity_join_leaf(cs, at, to);
    entity_show(cs, at);
    e->view_whole = true;
    views_touch(cs, at);
    handoff_tell_owner(cs, at);
    cs->stats.handoffs_local++;
}

void handoff_check(struct cellserver *cs, uint32_t at)
{
    struct entity *e = &cs->entities[at];
    if (e->status != ENTITY_OWNED || e->leaving) return;
    if (square_distance(cs->leaves[e->leaf].square, e->position) <= cs->world.handoff_hysteresis) return;
    if (e->joined_at == cs->published) { /* not shown here yet: entities_settle_shown looks again */
        entity_show(cs, at);
        return;
    }
    const struct leaf_owner *owner = ownership_at(&cs->map, &cs->world, e->position);
    uint32_t mine = owner == NULL ? NONE : leaf_find(cs, owner->leaf);
    if (mine != NONE) {
        if (mine != e->leaf) handoff_local(cs, at, mine);
    } else if (owner == NULL || peer_find(cs, owner->primary) == NONE) {
        stray(cs, at);
    } else {
        ARRAY_RESERVE(cs->drafts, cs->draft_room, cs->draft_count + 1);
        cs->drafts[cs->draft_count++] = (struct offer_draft){
            .entity = at, .order = ++cs->draft_order, .from = cs->leaves[e->leaf].key, .to = owner->leaf};
        e->draft_order = cs->draft_order;
        e->leaving = true;
        e->offered_to = owner->primary;
        cs->stats.leaving++;
    }
}

void handoff_retry_straying(struct cellserver *cs)
{
    uint32_t count = cs->straying_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = cs->straying[0];
        cs->straying[0] = cs->straying[--cs->straying_count];
        cs->entities[at].straying = false;
        handoff_check(cs, at);
    }
}

/* Drafts by destination leaf, source leaf, then id: one message for each pair of leaves. Insertion sort: a tick's
 * hand-offs are few and arrive nearly sorted. */
static bool draft_before(const struct cellserver *cs, const struct offer_draft *a, const struct offer_draft *b)
{
    int to = quadkey_compare(a->to, b->to), from = quadkey_compare(a->from, b->from);
    if (to != 0) return to < 0;
    if (from != 0) return from < 0;
    return cs->entities[a->entity].id.v < cs->entities[b->entity].id.v;
}

static void drafts_sort(struct cellserver *cs)
{
    uint32_t valid = 0;
    for (uint32_t i = 0; i < cs->draft_count; i++) {
        const struct entity *e = &cs->entities[cs->drafts[i].entity];
        bool holds = e->status == ENTITY_OWNED && e->leaving && e->draft_order == cs->drafts[i].order;
        if (holds) cs->drafts[valid++] = cs->drafts[i];
    }
    cs->draft_count = valid;
    for (uint32_t i = 1; i < cs->draft_count; i++) {
        struct offer_draft draft = cs->drafts[i];
        uint32_t j = i;
        for (; j > 0 && draft_before(cs, &draft, &cs->drafts[j - 1]); j--) cs->drafts[j] = cs->drafts[j - 1];
        cs->drafts[j] = draft;
    }
}

/* Ids that an observer sees although they are beyond its radius: they are in its hysteresis band. */
static uint32_t collect_recall(struct cellserver *cs, const struct entity *e)
{
    if (cs->world.view_mode == VIEW_BLOCK || e->radius == 0 || cs->world.hysteresis == 0) return 0;
    size_t seen = aoi_view(cs->aoi, e->aoi, cs->handles, cs->query_room);
    if (seen > cs->query_room) {
        ARRAY_RESERVE(cs->handles, cs->query_room, seen);
        seen = aoi_view(cs->aoi, e->aoi, cs->handles, cs->query_room);
    }
    uint32_t count = 0;
    ARRAY_RESERVE(cs->ids, cs->id_room, seen);
    for (size_t i = 0; i < seen; i++) {
        const struct entity *other = &cs->entities[cs->entity_of_handle[cs->handles[i]]];
        int64_t dx = (int64_t)other->position.x - e->position.x, dy = (int64_t)other->position.y - e->position.y;
        if (dx * dx + dy * dy > (int64_t)e->radius * e->radius) cs->ids[count++] = other->id.v;
    }
    return count;
}

static void write_transfer(struct cellserver *cs, uint32_t at, struct writer *w)
{
    struct entity *e = &cs->entities[at];
    struct transfer item = {.gateway = e->gateway,
                            .position_sequence = e->position_sequence,
                            .state_sequence = e->state_sequence,
                            .radius_sequence = e->radius_sequence,
                            .recall_count = collect_recall(cs, e)};
    if (item.recall_count > 1024) item.recall_count = 1024;
    entity_record_of(e, &item.record);
    offer_add(w, &item);
    for (uint32_t i = 0; i < item.recall_count; i++) entity_add(w, (struct entity_id){cs->ids[i]});
}

static void offer_withdraw(struct cellserver *cs, uint32_t at)
{
    struct entity *e = &cs->entities[at];
    if (!e->leaving) return;
    e->leaving = false;
    cs->stats.leaving--;
    stray(cs, at);
}

static void send_offer(struct cellserver *cs, const struct offer_draft *first, uint32_t count)
{
    const struct leaf_owner *to = ownership_leaf(&cs->map, first->to);
    uint32_t from = leaf_find(cs, first->from);
    uint32_t peer = peer_find(cs, cs->entities[first->entity].offered_to);
    bool sent = false;
    bool room = peer != NONE && session_queued_bytes(cs->peers[peer].session) < LIMIT_SURE_BYTES / 2;
    if (to != NULL && from != NONE && room) {
        writer_clear(&cs->message);
        offer_begin(&cs->message, &(struct offer){.from = first->from,
                                                  .to = first->to,
                                                  .from_epoch = cs->leaves[from].epoch,
                                                  .to_epoch = to->epoch,
                                                  .count = count});
        writer_raw(&cs->message, cs->scratch.data, cs->scratch.size);
        sent = peer_send(cs, peer, &cs->message, true);
    }
    if (sent) return;
    for (uint32_t i = 0; i < count; i++) offer_withdraw(cs, first[i].entity);
}

void handoff_send_offers(struct cellserver *cs)
{
    drafts_sort(cs);
    uint32_t first = 0;
    writer_clear(&cs->scratch);
    for (uint32_t i = 0; i < cs->draft_count; i++) {
        size_t before = cs->scratch.size;
        write_transfer(cs, cs->drafts[i].entity, &cs->scratch);
        bool last = i + 1 == cs->draft_count || !quadkey_equal(cs->drafts[i].to, cs->drafts[i + 1].to) ||
                    !quadkey_equal(cs->drafts[i].from, cs->drafts[i + 1].from);
        size_t room = LIMIT_MESSAGE_BYTES - 64;
        if (cs->scratch.size > room && i > first) {
            /* What does not fit goes into a message of its own. */
            size_t over = cs->scratch.size - before;
            cs->scratch.size = before;
            send_offer(cs, &cs->drafts[first], i - first);
            memmove(cs->scratch.data, cs->scratch.data + before, over);
            cs->scratch.size = over;
            first = i;
        }
        if (!last) continue;
        send_offer(cs, &cs->drafts[first], i + 1 - first);
        writer_clear(&cs->scratch);
        first = i + 1;
    }
    cs->draft_count = 0;
}

void forward_remember(struct cellserver *cs, struct entity_id id, struct node_id to)
{
    if (cs->forwards == NULL) {
        cs->forward_room = FORWARDS_MAX;
        cs->forwards = calloc(cs->forward_room, sizeof *cs->forwards);
        CHECK(cs->forwards != NULL);
        table_reserve(&cs->forward_index, FORWARDS_MAX);
    }
    if (cs->forward_count == cs->forward_room) {
        struct forward_entry *oldest = &cs->forwards[cs->forward_first];
        if (table_get(&cs->forward_index, oldest->id.v) == cs->forward_first) {
            table_remove(&cs->forward_index, oldest->id.v);
        }
        cs->forward_first = (cs->forward_first + 1) % cs->forward_room;
        cs->forward_count--;
    }
    uint32_t at = (cs->forward_first + cs->forward_count++) % cs->forward_room;
    cs->forwards[at] = (struct forward_entry){.id = id, .to = to, .until_us = cs->now_us + FORWARD_KEEP_US};
    table_put(&cs->forward_index, id.v, at);
}

void handoff_expire(struct cellserver *cs)
{
    while (cs->forward_count > 0 && cs->forwards[cs->forward_first].until_us <= cs->now_us) {
        struct forward_entry *oldest = &cs->forwards[cs->forward_first];
        if (table_get(&cs->forward_index, oldest->id.v) == cs->forward_first) {
            table_remove(&cs->forward_index, oldest->id.v);
        }
        cs->forward_first = (cs->forward_first + 1) % cs->forward_room;
        cs->forward_count--;
    }
}

static bool forward_to(struct cellserver *cs, struct node_id to, struct node_id gateway, uint32_t hops,
                       struct cursor command)
{
    uint32_t peer = peer_find(cs, to);
    if (peer == NONE || hops >= FORWARD_HOPS) return false;
    writer_clear(&cs->message);
    forward_encode(&cs->message, &(struct forward){.gateway = gateway, .hops = hops + 1, .command = command});
    if (!peer_send(cs, peer, &cs->message, true)) return false;
    cs->stats.forwarded++;
    return true;
}

bool handoff_forward(struct cellserver *cs, struct entity_id id, struct node_id gateway, uint32_t hops,
                     struct cursor command)
{
    uint32_t at = table_get(&cs->forward_index, id.v);
    return at != TABLE_NONE && forward_to(cs, cs->forwards[at].to, gateway, hops, command);
}

void handoff_buffer(struct cellserver *cs, uint32_t at, struct node_id gateway, struct cursor command)
{
    uint32_t slot = 0;
    while (slot < cs->buffered_count && cs->buffered[slot].used) slot++;
    if (slot == cs->buffered_count) ARRAY_RESERVE(cs->buffered, cs->buffered_room, ++cs->buffered_count);
    struct buffered *b = &cs->buffered[slot];
    b->used = true;
    b->entity = at;
    b->order = ++cs->buffered_order;
    b->gateway = gateway;
    writer_clear(&b->command);
    writer_raw(&b->command, command.at, (size_t)(command.end - command.at));
}

void handoff_abandon(struct cellserver *cs, uint32_t at)
{
    for (uint32_t i = 0; i < cs->buffered_count; i++) {
        if (cs->buffered[i].entity == at) cs->buffered[i].used = false;
    }
    cs->entities[at].leaving = cs->entities[at].move_buffered = false;
    cs->stats.leaving--;
}

/* The oldest waiting command of an entity; NULL: none. */
static struct buffered *buffered_next(struct cellserver *cs, uint32_t at)
{
    struct buffered *oldest = NULL;
    for (uint32_t i = 0; i < cs->buffered_count; i++) {
        struct buffered *b = &cs->buffered[i];
        if (b->used && b->entity == at && (oldest == NULL || b->order < oldest->order)) oldest = b;
    }
    return oldest;
}

void forward_waiting(struct cellserver *cs, uint32_t at, struct node_id to)
{
    struct entity *e = &cs->entities[at];
    if (e->move_buffered) {
        e->move_buffered = false;
        writer_clear(&cs->single);
        moves_begin(&cs->single, &(struct moves){.sequence = e->buffered_sequence, .count = 1});
        moves_add(&cs->single, &(struct move){.id = e->id, .position = e->pending_position, .yaw = e->pending_yaw});
        forward_to(cs, to, e->gateway, 0, cursor_of(cs->single.data, cs->single.size));
    }
    for (struct buffered *b = buffered_next(cs, at); b != NULL; b = buffered_next(cs, at)) {
        b->used = false;
        forward_to(cs, to, b->gateway, 0, cursor_of(b->command.data, b->command.size));
    }
}

/* What waited happens here, in order; an entity may leave by it. What is put off once more waits for another time. */
static void run_buffered(struct cellserver *cs, uint32_t at)
{
    struct entity_id id = cs->entities[at].id;
    uint64_t last = cs->buffered_order;
    for (struct buffered *b = buffered_next(cs, at); b != NULL && b->order <= last; b = buffered_next(cs, at)) {
        b->used = false;
        if (entity_find(cs, id) == at) {
            command_handle(cs, b->gateway, 0, cursor_of(b->command.data, b->command.size));
        }
    }
}

/* Not given away after all. */
static void release_here(struct cellserver *cs, uint32_t at)
{
    struct entity *e = &cs->entities[at];
    offer_withdraw(cs, at);
    if (e->move_buffered) {
        e->move_buffered = false;
        e->position_sequence = e->buffered_sequence;
        entity_note_move(cs, at);
    }
    run_buffered(cs, at);
}

void handoff_undo(struct cellserver *cs, struct node_id node)
{
    for (uint32_t i = 0; i < cs->entity_count; i++) {
        struct entity *e = &cs->entities[i];
        if (e->status == ENTITY_OWNED && e->leaving && node_id_equal(e->offered_to, node)) release_here(cs, i);
    }
}

static uint32_t offered_entity(struct cellserver *cs, uint32_t peer, const struct accept_item *item)
{
    uint32_t at = entity_find(cs, item->id);
    if (at == NONE) return NONE;
    struct entity *e = &cs->entities[at];
    bool ours = e->status == ENTITY_OWNED && e->leaving && e->version == item->offered &&
                node_id_equal(e->offered_to, cs->peers[peer].info.node);
    return ours ? at : NONE;
}

void handoff_accept(struct cellserver *cs, uint32_t peer, struct accept *m)
{
    struct accept_item item;
    while (accept_next(m, &item)) {
        uint32_t at = offered_entity(cs, peer, &item);
        if (at == NONE || item.version <= item.offered) {
            cs->stats.stale++;
            continue;
        }
        struct entity *e = &cs->entities[at];
        struct node_id to = e->offered_to;
        forward_waiting(cs, at, to);
        forward_remember(cs, e->id, to);
        views_forget(cs, at);
        e->version = item.version;
        entity_part_leaf(cs, at, LEFT_MOVED, m->to);
        cs->stats.leaving--;
        cs->stats.handoffs_out++;
        ghost_from_owned(cs, at, m->to);
    }
}

void handoff_refuse(struct cellserver *cs, uint32_t peer, struct refuse *m)
{
    struct accept_item item;
    while (refuse_next(m, &item)) {
        uint32_t at = offered_entity(cs, peer, &item);
        if (at == NONE) {
            cs->stats.stale++;
            continue;
        }
        cs->stats.handoffs_refused++;
        release_here(cs, at);
    }
}

/* Makes the entity ours, whether it was unknown here, a ghost, or (a hand-off back whose ACCEPT is still on its way) an
 * older version of our own. */
uint32_t entity_install(struct cellserver *cs, uint32_t leaf, struct transfer *item, uint64_t version)
{
    const struct entity_record *record = &item->record;
    uint32_t at = entity_find(cs, record->id);
    bool placed = at != NONE;
    if (placed && cs->entities[at].status == ENTITY_OWNED) {
        if (cs->entities[at].leaving) cs->stats.leaving--;
        entity_part_leaf(cs, at, LEFT_MOVED, cs->leaves[leaf].key);
    } else if (placed) {
        cs->stats.ghosts--;
    }
    if (!placed) at = entity_new(cs, record, ENTITY_OWNED);
    struct entity *e = &cs->entities[at];
    bool move_waits = e->status == ENTITY_OWNED && e->move_buffered && e->buffered_sequence > item->position_sequence;
    e->status = ENTITY_OWNED;
    e->leaving = e->move_buffered = false;
    e->version = version;
    e->kind = record->kind;
    e->flags = record->flags;
    e->yaw = record->yaw;
    e->radius = record->radius;
    e->gateway = item->gateway;
    e->enter_request = 0;
    e->position_sequence = move_waits ? e->buffered_sequence : item->position_sequence;
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
    table_remove(&cs->forward_index, e->id.v);
    entity_join_leaf(cs, at, leaf);
    entity_show(cs, at);
    e->view_whole = true;
    views_touch(cs, at);
    handoff_tell_owner(cs, at);
    event_tell_arrival(cs, at);
    cs->stats.handoffs_in++;
    handoff_check(cs, at);
}

void handoff_leave_again(struct cellserver *cs, uint32_t at, struct quadkey to)
{
    (void)to;
    handoff_check(cs, at);
}

void handoff_sync(struct cellserver *cs)
{
    (void)cs;
}

void handoff_run_deferred(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->buffered_count; i++) {
        const struct buffered *b = &cs->buffered[i];
        if (b->used && !cs->entities[b->entity].leaving) run_buffered(cs, b->entity);
    }
}

/* Whether the offered entity can be ours; OK also if it is already. */
static enum terrane_error judge(const struct cellserver *cs, uint32_t leaf, const struct transfer *item)
{
    if (leaf == NONE) return TERRANE_ERR_NOT_OWNER;
    if (!world_contains(&cs->world, item->record.position)) return TERRANE_ERR_POSITION_OUTSIDE;
    if (item->record.radius > cs->world.radius_max) return TERRANE_ERR_RADIUS_TOO_LARGE;
    if (cs->stats.owned >= LIMIT_ENTITIES) return TERRANE_ERR_LIMIT;
    return TERRANE_ERR_OK;
}

static void answer_refusals(struct cellserver *cs, uint32_t peer, const struct offer *m, enum terrane_error error,
                            uint32_t count)
{
    if (count == 0) return;
    writer_clear(&cs->message);
    refuse_begin(&cs->message, &(struct refuse){.to = m->to, .error = error, .count = count});
    writer_raw(&cs->message, cs->refusals.data, cs->refusals.size);
    peer_send(cs, peer, &cs->message, true);
}

void handoff_offer(struct cellserver *cs, uint32_t peer, struct offer *m)
{
    uint32_t leaf = leaf_find(cs, m->to), accepted = 0, refused = 0;
    enum terrane_error why = TERRANE_ERR_OK;
    struct transfer item;
    writer_clear(&cs->acceptances);
    writer_clear(&cs->refusals);
    while (offer_next(m, &item)) {
        struct accept_item answer = {.id = item.record.id, .offered = item.record.version};
        enum terrane_error error = judge(cs, leaf, &item);
        if (error != TERRANE_ERR_OK) {
            why = error;
            accept_add(&cs->refusals, &answer);
            refused++;
            continue;
        }
        uint32_t known = entity_find(cs, item.record.id);
        bool ours = known != NONE && cs->entities[known].status == ENTITY_OWNED &&
                    cs->entities[known].version > item.record.version;
        if (!ours) take_over(cs, leaf, &item);
        known = entity_find(cs, item.record.id);
        answer.version = cs->entities[known].version;
        accept_add(&cs->acceptances, &answer);
        accepted++;
    }
    if (accepted > 0) {
        writer_clear(&cs->message);
        accept_begin(&cs->message,
                     &(struct accept){.to = m->to, .to_epoch = cs->leaves[leaf].epoch, .count = accepted});
        writer_raw(&cs->message, cs->acceptances.data, cs->acceptances.size);
        peer_send(cs, peer, &cs->message, true);
    }
    answer_refusals(cs, peer, m, why, refused);
}

void handoff_close(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->buffered_room; i++) writer_close(&cs->buffered[i].command);
    free(cs->buffered);
    free(cs->drafts);
    free(cs->forwards);
    table_close(&cs->forward_index);
    writer_close(&cs->acceptances);
    writer_close(&cs->refusals);
}
