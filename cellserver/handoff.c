/* The source's side of a hand-off: an entity past its leaf's border changes its owner, make before break.
 *
 * An owned entity that leaves goes through these steps; it stays visible and keeps its place, commands for it wait:
 *
 *   STEP_MARK   its leaf's standby must know where it goes before anybody else is asked    -> DRAFT when it does
 *   STEP_DRAFT  an OFFER is to be written at the end of the tick or step                   -> OFFER, LOCAL, WAIT
 *   STEP_OFFER  sent, not answered                      ACCEPT: a ghost; REFUSE: owned again; else -> DRAFT
 *   STEP_LOCAL  the destination is ours too, its standby must have the entity (takeover.c) -> owned in the other leaf
 *   STEP_WAIT   nobody to ask now                                                          -> DRAFT, by and by
 *
 * Once an owner has been OFFERed an entity it may have taken it over. So it is never taken back unasked: when the
 * destination leaf changes its primary (or that one's `since`), the new one is asked, with the same version. It comes
 * back by a REFUSE under the `since` of the last OFFER, or when the leaf has no owner at all.
 *
 * Between two leaves of this process it takes no messages: at once if both leaves have the same, level standby or none
 * (the put of the new leaf is on the same lane before the drop of the old), else by the same steps. */
#include "cellserver/internal.h"

#include <stdlib.h>
#include <string.h>

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
    survey_note_crossing(cs, at, cs->leaves[to].key, cs->options.info.node);
    history_note(cs, at,
                 &(struct trace_step){.cause = TRACE_CROSSED,
                                      .from = cs->leaves[e->leaf].key,
                                      .to = cs->leaves[to].key,
                                      .node = cs->options.info.node});
    entity_part_leaf(cs, at, LEFT_MOVED, cs->leaves[to].key);
    entity_join_leaf(cs, at, to);
    entity_show(cs, at);
    e->view_whole = true;
    views_touch(cs, at);
    handoff_tell_owner(cs, at);
    cs->stats.handoffs_local++;
}

/* ---- giving back what does not leave after all ---- */

static void stay(struct cellserver *cs, uint32_t at)
{
    struct entity *e = &cs->entities[at];
    e->leaving = false;
    cs->stats.leaving--;
    standby_note_put(cs, at); /* the mark goes */
    if (e->move_buffered) {
        e->move_buffered = false;
        e->position_sequence = e->buffered_sequence;
        entity_note_move(cs, at);
    }
}

/* Not given away now; tried again later. An entity may end by what waited. */
static void release_here(struct cellserver *cs, uint32_t at)
{
    stay(cs, at);
    stray(cs, at);
    forward_run_held(cs, at);
}

void handoff_local_done(struct cellserver *cs, uint32_t at, uint32_t leaf, uint64_t order)
{
    struct entity *e = &cs->entities[at];
    if (e->status != ENTITY_OWNED || !e->leaving || e->step != STEP_LOCAL || e->draft_order != order) return;
    stay(cs, at);
    handoff_local(cs, at, leaf);
    forward_run_held(cs, at);
}

/* ---- deciding whom to ask ---- */

static void wait_for_owner(struct cellserver *cs, uint32_t at)
{
    if (!cs->entities[at].asked) {
        release_here(cs, at);
        return;
    }
    cs->entities[at].step = STEP_WAIT;
    stray(cs, at);
}

/* Once somebody has been asked, his leaf it is; before, the one in which the entity stands now. */
static const struct leaf_owner *destination(const struct cellserver *cs, const struct entity *e)
{
    const struct leaf_owner *asked = !e->asked ? NULL : ownership_leaf(&cs->map, e->leaving_to);
    return asked != NULL ? asked : ownership_at(&cs->map, &cs->world, e->position);
}

/* Its standby knows: asks the owner. */
static void draft(struct cellserver *cs, uint32_t at)
{
    struct entity *e = &cs->entities[at];
    const struct leaf_owner *owner = destination(cs, e);
    uint32_t mine = owner == NULL ? NONE : leaf_find(cs, owner->leaf);
    if (owner == NULL || owner->primary.v == 0 || mine == e->leaf) {
        release_here(cs, at);
        return;
    }
    if (mine == NONE && peer_find(cs, owner->primary) == NONE) {
        wait_for_owner(cs, at);
        return;
    }
    if (!quadkey_equal(e->leaving_to, owner->leaf)) {
        e->leaving_to = owner->leaf;
        standby_note_put(cs, at);
    }
    if (mine != NONE) {
        e->step = STEP_LOCAL;
        takeover_local(cs, at, mine);
        return;
    }
    ARRAY_RESERVE(cs->drafts, cs->draft_room, cs->draft_count + 1);
    cs->drafts[cs->draft_count++] = (struct offer_draft){
        .entity = at, .order = ++cs->draft_order, .from = cs->leaves[e->leaf].key, .to = owner->leaf};
    e->step = STEP_DRAFT;
    e->draft_order = cs->draft_order;
    e->offered_to = owner->primary;
    e->offered_since = owner->since;
}

static void leave(struct cellserver *cs, uint32_t at, struct quadkey to)
{
    struct entity *e = &cs->entities[at];
    e->leaving = true;
    e->leaving_to = to;
    e->asked = false;
    cs->stats.leaving++;
    if (!standby_named(cs, e->leaf)) {
        draft(cs, at);
        return;
    }
    e->step = STEP_MARK;
    e->draft_order = ++cs->draft_order;
    standby_note_put(cs, at);
    standby_wait_mark(cs, e->leaf, at, e->draft_order);
}

void handoff_marked(struct cellserver *cs, uint32_t at, uint64_t order)
{
    const struct entity *e = &cs->entities[at];
    if (e->status != ENTITY_OWNED || !e->leaving || e->step != STEP_MARK || e->draft_order != order) return;
    draft(cs, at);
    cs->offers_due = true;
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
    if (mine == e->leaf) return;
    bool fenced = !leaf_serves(cs, e->leaf) || (mine != NONE && !leaf_serves(cs, mine));
    if (fenced || owner == NULL || (mine == NONE && peer_find(cs, owner->primary) == NONE)) {
        stray(cs, at);
    } else if (mine != NONE && standby_shared(cs, at, mine)) {
        handoff_local(cs, at, mine);
    } else {
        leave(cs, at, owner->leaf);
    }
}

void handoff_retry_straying(struct cellserver *cs)
{
    uint32_t count = cs->straying_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = cs->straying[0];
        struct entity *e = &cs->entities[at];
        cs->straying[0] = cs->straying[--cs->straying_count];
        e->straying = false;
        if (e->status == ENTITY_OWNED && e->leaving && e->step == STEP_WAIT) {
            draft(cs, at);
            cs->offers_due = true;
        } else {
            handoff_check(cs, at);
        }
    }
}

void handoff_leave_again(struct cellserver *cs, uint32_t at, struct quadkey to)
{
    struct entity *e = &cs->entities[at];
    e->leaving = true;
    e->leaving_to = to;
    e->asked = true; /* perhaps, by whom we succeed */
    cs->stats.leaving++;
    draft(cs, at);
    cs->offers_due = true;
}

/* Whether the answer that an entity waits for may never come, or the wrong one has been asked. */
static bool asks_amiss(const struct cellserver *cs, const struct entity *e)
{
    if (e->step == STEP_LOCAL) return leaf_find(cs, e->leaving_to) == NONE;
    if (e->step != STEP_DRAFT && e->step != STEP_OFFER) return false;
    const struct leaf_owner *owner = destination(cs, e);
    if (owner == NULL || owner->primary.v == 0) return true;
    if (leaf_find(cs, owner->leaf) != NONE) return true;
    return !node_id_equal(owner->primary, e->offered_to) || owner->since != e->offered_since;
}

void handoff_sync(struct cellserver *cs)
{
    takeover_sync(cs);
    for (uint32_t i = 0; i < cs->entity_count; i++) {
        const struct entity *e = &cs->entities[i];
        if (e->status != ENTITY_OWNED || !e->leaving || !asks_amiss(cs, e)) continue;
        draft(cs, i);
        cs->offers_due = true;
    }
}

/* ---- OFFERs ---- */

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
        bool holds = e->status == ENTITY_OWNED && e->leaving && e->step == STEP_DRAFT;
        if (holds && e->draft_order == cs->drafts[i].order) cs->drafts[valid++] = cs->drafts[i];
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
    struct transfer item;
    entity_transfer(&cs->entities[at], &item);
    item.recall_count = collect_recall(cs, &cs->entities[at]);
    if (item.recall_count > 1024) item.recall_count = 1024;
    offer_add(w, &item);
    for (uint32_t i = 0; i < item.recall_count; i++) entity_add(w, (struct entity_id){cs->ids[i]});
}

static void send_offer(struct cellserver *cs, const struct offer_draft *first, uint32_t count)
{
    const struct leaf_owner *to = ownership_leaf(&cs->map, first->to);
    uint32_t from = leaf_find(cs, first->from);
    uint32_t peer = peer_find(cs, cs->entities[first->entity].offered_to);
    bool sent = false;
    bool room = peer != NONE && session_queued_bytes(cs->peers[peer].session) < LIMIT_SURE_BYTES / 2;
    if (to != NULL && from != NONE && room && leaf_serves(cs, from)) {
        writer_clear(&cs->message);
        offer_begin(&cs->message, &(struct offer){.from = first->from,
                                                  .to = first->to,
                                                  .from_epoch = cs->leaves[from].since,
                                                  .to_epoch = to->since,
                                                  .count = count});
        writer_raw(&cs->message, cs->scratch.data, cs->scratch.size);
        sent = peer_send(cs, peer, &cs->message, true);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct entity *e = &cs->entities[first[i].entity];
        if (!sent) {
            wait_for_owner(cs, first[i].entity);
            continue;
        }
        e->step = STEP_OFFER;
        e->asked = true;
    }
}

void handoff_send_offers(struct cellserver *cs)
{
    cs->offers_due = false;
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

/* ---- answers ---- */

static uint32_t offered_entity(struct cellserver *cs, uint32_t peer, const struct accept_item *item)
{
    uint32_t at = entity_find(cs, item->id);
    if (at == NONE) return NONE;
    struct entity *e = &cs->entities[at];
    bool ours = e->status == ENTITY_OWNED && e->leaving && e->step == STEP_OFFER && e->version == item->offered &&
                node_id_equal(e->offered_to, cs->peers[peer].info.node);
    return ours ? at : NONE;
}

void handoff_let_go(struct cellserver *cs, uint32_t at, struct node_id to, struct quadkey leaf, uint64_t version)
{
    struct entity *e = &cs->entities[at];
    forward_waiting(cs, at, to);
    views_forget(cs, at);
    e->version = version;
    forward_remember(cs, e->id, to);
    survey_note_crossing(cs, at, leaf, to);
    history_note(
        cs, at,
        &(struct trace_step){.cause = TRACE_PASSED_ON, .from = cs->leaves[e->leaf].key, .to = leaf, .node = to});
    entity_part_leaf(cs, at, LEFT_MOVED, leaf);
    if (e->leaving) cs->stats.leaving--;
    cs->stats.handoffs_out++;
    ghost_from_owned(cs, at, leaf);
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
        handoff_let_go(cs, at, cs->entities[at].offered_to, m->to, item.version);
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
        if (m->to_epoch != cs->entities[at].offered_since) {
            cs->stats.stale++;
            continue;
        }
        cs->stats.handoffs_refused++;
        release_here(cs, at);
    }
}

void handoff_abandon(struct cellserver *cs, uint32_t at)
{
    forward_drop_held(cs, at);
    takeover_forget(cs, at);
    cs->entities[at].leaving = cs->entities[at].move_buffered = false;
    cs->stats.leaving--;
}

void handoff_close(struct cellserver *cs)
{
    free(cs->drafts);
}
