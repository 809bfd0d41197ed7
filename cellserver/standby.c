/* What the standbys of our leaves are told, and what waits until they have it.
 *
 * A step notes what changes (slots in `changed`, `gone`, `moved`); its end writes it, from what is true then, so
 * several changes of one entity in a step are one put. All that the standbys of a step are told goes out in two rounds:
 * the puts of every leaf, then the drops. So an entity that went from one leaf to another is in the new one's copy
 * before it is out of the old one's, whichever message the primary dies behind. A slot whose drop has not been written
 * is not used again, but for the same entity, whose put then takes the place of the drop.
 *
 * Waiting: whoever must not be answered before the standby has what he asked for stands in the leaf's queue, in order.
 * He gets the seq of the step's last message of that leaf, or of the whole copy's last part if one is due: a copy holds
 * all that is waited for. Nothing is let go while the leaf is fenced. Each change of standby or epoch begins with a
 * whole copy; without a standby nobody waits.
 *
 * Bounds: with its queue towards the standby half full a leaf takes no more commands; with three quarters nothing is
 * written until there is room. Moves are held back from a quarter on: each is a difference to what the standby has, so
 * later ones make up for it. */
#include "cellserver/internal.h"

#include "common/mutation.h"

#include <stdlib.h>

#define MESSAGE_ROOM (LIMIT_MESSAGE_BYTES - 128u)
#define WAITING_MAX  65536u

bool standby_named(const struct cellserver *cs, uint32_t leaf)
{
    return cs->leaves[leaf].standby.node.v != 0;
}

static bool level(const struct standby_stream *s)
{
    return s->node.v != 0 && !s->refused && !s->whole && s->level_seq > 0 && s->acked >= s->level_seq;
}

bool standby_level(const struct cellserver *cs, uint32_t leaf)
{
    return level(&cs->leaves[leaf].standby);
}

bool standby_shared(const struct cellserver *cs, uint32_t at, uint32_t to)
{
    const struct entity *e = &cs->entities[at];
    const struct standby_stream *a = &cs->leaves[e->leaf].standby, *b = &cs->leaves[to].standby;
    if (a->node.v == 0 && b->node.v == 0) return true;
    /* A put that has not gone out yet is waited for in the old leaf; so it goes the long way. */
    return node_id_equal(a->node, b->node) && level(a) && level(b) && e->standby_slot != STREAM_SLOT_NONE &&
           a->slots[e->standby_slot].sent;
}

static size_t queued_bytes(const struct cellserver *cs, const struct standby_stream *s)
{
    uint32_t peer = peer_find(cs, s->node);
    return peer == NONE ? 0 : session_queued_bytes(cs->peers[peer].session);
}

bool standby_room(const struct cellserver *cs, uint32_t leaf)
{
    const struct standby_stream *s = &cs->leaves[leaf].standby;
    if (s->node.v == 0) return true;
    return cs->stats.standby_waiting < WAITING_MAX && queued_bytes(cs, s) < LIMIT_SURE_BYTES / 2;
}

/* ---- slots ---- */

static void dirty(struct cellserver *cs, struct standby_stream *s)
{
    s->dirty = cs->standby_noted = true;
}

static uint32_t slot_take(struct standby_stream *s, struct entity_id id, uint32_t owner, bool pending)
{
    uint32_t slot = STREAM_SLOT_NONE;
    bool sent = false;
    for (uint32_t i = s->gone_count; i-- > 0 && slot == STREAM_SLOT_NONE;) {
        if (s->gone[i].id.v != id.v) continue;
        slot = s->gone[i].slot;
        sent = true;
        s->gone[i] = s->gone[--s->gone_count];
    }
    if (slot == STREAM_SLOT_NONE) slot = slot_set_next(&s->free, 0);
    if (slot == SLOT_SET_NONE) {
        slot = s->slot_count++;
        ARRAY_RESERVE(s->slots, s->slot_room, s->slot_count);
        slot_set_reserve(&s->free, s->slot_count);
        slot_set_reserve(&s->changed, s->slot_count);
        slot_set_reserve(&s->moved, s->slot_count);
    }
    slot_set_remove(&s->free, slot);
    s->slots[slot] = (struct standby_slot){.owner = owner, .pending = pending, .sent = sent};
    return slot;
}

void standby_note_put(struct cellserver *cs, uint32_t at)
{
    struct entity *e = &cs->entities[at];
    if (e->leaf == NONE || cs->leaves[e->leaf].standby.node.v == 0) return;
    struct standby_stream *s = &cs->leaves[e->leaf].standby;
    if (e->standby_slot == STREAM_SLOT_NONE) e->standby_slot = slot_take(s, e->id, at, false);
    slot_set_add(&s->changed, e->standby_slot);
    dirty(cs, s);
}

void standby_note_move(struct cellserver *cs, uint32_t at)
{
    const struct entity *e = &cs->entities[at];
    if (e->standby_slot == STREAM_SLOT_NONE) return;
    struct standby_stream *s = &cs->leaves[e->leaf].standby;
    slot_set_add(&s->moved, e->standby_slot);
    dirty(cs, s);
}

void standby_note_pending(struct cellserver *cs, uint32_t at)
{
    struct pending *p = &cs->pendings[at];
    struct standby_stream *s = &cs->leaves[p->leaf].standby;
    if (s->node.v == 0) return;
    if (p->slot == STREAM_SLOT_NONE) p->slot = slot_take(s, p->transfer.record.id, at, true);
    slot_set_add(&s->changed, p->slot);
    dirty(cs, s);
}

void standby_note_drop(struct cellserver *cs, uint32_t leaf, struct entity_id id, uint32_t slot)
{
    struct standby_stream *s = &cs->leaves[leaf].standby;
    if (s->node.v == 0 || slot == STREAM_SLOT_NONE) return;
    slot_set_remove(&s->changed, slot);
    slot_set_remove(&s->moved, slot);
    s->slots[slot].owner = NONE;
    if (!s->slots[slot].sent) {
        slot_set_add(&s->free, slot);
        return;
    }
    ARRAY_RESERVE(s->gone, s->gone_room, s->gone_count + 1);
    s->gone[s->gone_count++] = (struct standby_gone){.id = id, .slot = slot};
    dirty(cs, s);
}

/* ---- waiting ---- */

static struct waiting *wait_new(struct cellserver *cs, uint32_t leaf, enum waiting_kind kind)
{
    uint32_t at = cs->waiting_free;
    if (at != WAITING_NONE) {
        cs->waiting_free = cs->waiting[at].next;
    } else {
        at = cs->waiting_count == 0 ? 1 : cs->waiting_count;
        cs->waiting_count = at + 1;
        ARRAY_RESERVE(cs->waiting, cs->waiting_room, cs->waiting_count);
    }
    struct standby_stream *s = &cs->leaves[leaf].standby;
    struct waiting *w = &cs->waiting[at];
    *w = (struct waiting){.kind = kind, .leaf = leaf, .next = WAITING_NONE, .seq = UINT64_MAX};
    if (s->wait_first == WAITING_NONE) {
        s->wait_first = at;
    } else {
        cs->waiting[s->wait_last].next = at;
    }
    s->wait_last = at;
    if (s->wait_open == WAITING_NONE) s->wait_open = at;
    cs->stats.standby_waiting++;
    dirty(cs, s);
    return w;
}

static void wait_pop(struct cellserver *cs, struct standby_stream *s)
{
    uint32_t at = s->wait_first;
    struct waiting *w = &cs->waiting[at];
    if (s->wait_open == at) s->wait_open = w->next;
    s->wait_first = w->next;
    w->leaf = NONE;
    w->next = cs->waiting_free;
    cs->waiting_free = at;
    cs->stats.standby_waiting--;
}

void standby_wait_result(struct cellserver *cs, uint32_t leaf, struct node_id gateway, const struct result *result)
{
    if (!standby_named(cs, leaf) || MUTATION(ACKED_EARLY)) {
        command_result(cs, gateway, result);
    } else if (result->request != 0) {
        struct waiting *w = wait_new(cs, leaf, WAITING_RESULT);
        w->gateway = gateway;
        w->result = *result;
    }
}

void standby_wait_mark(struct cellserver *cs, uint32_t leaf, uint32_t entity, uint64_t order)
{
    struct waiting *w = wait_new(cs, leaf, WAITING_MARK);
    w->index = entity;
    w->order = order;
}

void standby_wait_pending(struct cellserver *cs, uint32_t leaf, uint32_t pending, uint64_t order)
{
    struct waiting *w = wait_new(cs, leaf, WAITING_PENDING);
    w->index = pending;
    w->order = order;
}

uint32_t standby_waits_for(const struct cellserver *cs, struct entity_id id)
{
    for (uint32_t i = 1; cs->stats.standby_waiting > 0 && i < cs->waiting_count; i++) {
        const struct waiting *w = &cs->waiting[i];
        if (w->leaf != NONE && w->kind == WAITING_RESULT && w->result.id.v == id.v) return w->leaf;
    }
    return NONE;
}

void standby_release(struct cellserver *cs, uint32_t leaf)
{
    struct standby_stream *s = &cs->leaves[leaf].standby;
    while (s->wait_first != WAITING_NONE) {
        struct waiting w = cs->waiting[s->wait_first];
        if (s->node.v != 0 && (s->refused || w.seq > s->acked || !leaf_serves(cs, leaf))) break;
        wait_pop(cs, s);
        switch (w.kind) {
        case WAITING_RESULT: command_result(cs, w.gateway, &w.result); break;
        case WAITING_MARK: handoff_marked(cs, w.index, w.order); break;
        case WAITING_PENDING: takeover_commit(cs, w.index, w.order); break;
        }
    }
    takeover_flush(cs);
}

/* ---- writing ---- */

static void emit(struct cellserver *cs, uint32_t leaf_at, struct standby *m)
{
    struct own_leaf *leaf = &cs->leaves[leaf_at];
    struct standby_stream *s = &leaf->standby;
    m->leaf = leaf->key;
    m->epoch = s->epoch;
    m->seq = ++s->seq;
    writer_clear(&cs->message);
    standby_begin(&cs->message, m);
    writer_raw(&cs->message, cs->standby_drops.data, cs->standby_drops.size);
    standby_puts(&cs->message, m->put_count);
    writer_raw(&cs->message, cs->standby_puts.data, cs->standby_puts.size);
    standby_moves(&cs->message, m->move_count);
    writer_raw(&cs->message, cs->standby_moves.data, cs->standby_moves.size);
    cs->stats.standby_bytes += cs->message.size;
    uint32_t peer = peer_find(cs, s->node);
    if (peer == NONE || !peer_send(cs, peer, &cs->message, true)) s->whole = true; /* a copy makes up for it */
    writer_clear(&cs->standby_drops);
    writer_clear(&cs->standby_puts);
    writer_clear(&cs->standby_moves);
}

static void put_write(struct cellserver *cs, struct standby_stream *s, uint32_t slot, struct writer *w)
{
    struct standby_slot *there = &s->slots[slot];
    struct standby_item item = there->pending ? pending_standby_item(&cs->pendings[there->owner])
                                              : entity_standby_item(&cs->entities[there->owner]);
    item.slot = slot;
    there->position = item.transfer.record.position;
    there->yaw = item.transfer.record.yaw;
    there->sent = true;
    standby_put(w, &item);
}

/* What is in standby_puts does not fit any more: sends all but the last put, which begins the next message. */
static void puts_cut(struct cellserver *cs, uint32_t leaf, size_t before, struct standby *m)
{
    size_t over = cs->standby_puts.size - before;
    writer_clear(&cs->scratch);
    writer_raw(&cs->scratch, cs->standby_puts.data + before, over);
    cs->standby_puts.size = before;
    m->put_count--;
    emit(cs, leaf, m);
    writer_raw(&cs->standby_puts, cs->scratch.data, over);
    m->put_count = 1;
}

static void write_moves(struct cellserver *cs, uint32_t leaf, struct standby *m)
{
    struct standby_stream *s = &cs->leaves[leaf].standby;
    for (uint32_t slot = 0; (slot = slot_set_next(&s->moved, slot)) != SLOT_SET_NONE; slot++) {
        struct standby_slot *there = &s->slots[slot];
        slot_set_remove(&s->moved, slot);
        struct transfer now;
        entity_transfer(&cs->entities[there->owner], &now);
        struct position p = now.record.position;
        struct standby_move move = {.slot = slot,
                                    .dx = p.x - there->position.x,
                                    .dy = p.y - there->position.y,
                                    .dz = p.z - there->position.z,
                                    .yaw = now.record.yaw};
        if (move.dx == 0 && move.dy == 0 && move.dz == 0 && move.yaw == there->yaw) continue;
        there->position = p;
        there->yaw = now.record.yaw;
        if (cs->standby_puts.size + cs->standby_moves.size + 32 > MESSAGE_ROOM) {
            emit(cs, leaf, m);
            m->put_count = m->move_count = 0;
        }
        standby_move(&cs->standby_moves, &move);
        m->move_count++;
    }
}

/* The first round. */
static void send_puts(struct cellserver *cs, uint32_t leaf)
{
    struct standby_stream *s = &cs->leaves[leaf].standby;
    struct standby m = {0};
    for (uint32_t slot = 0; (slot = slot_set_next(&s->changed, slot)) != SLOT_SET_NONE; slot++) {
        size_t before = cs->standby_puts.size;
        slot_set_remove(&s->changed, slot);
        slot_set_remove(&s->moved, slot);
        put_write(cs, s, slot, &cs->standby_puts);
        m.put_count++;
        if (cs->standby_puts.size > MESSAGE_ROOM && m.put_count > 1) puts_cut(cs, leaf, before, &m);
    }
    if (cs->standby_ticks && queued_bytes(cs, s) < LIMIT_SURE_BYTES / 4) write_moves(cs, leaf, &m);
    if (m.put_count + m.move_count > 0) emit(cs, leaf, &m);
}

/* The second. */
static void send_drops(struct cellserver *cs, uint32_t leaf)
{
    struct standby_stream *s = &cs->leaves[leaf].standby;
    struct standby m = {0};
    for (uint32_t i = 0; i < s->gone_count; i++) {
        entity_add(&cs->standby_drops, s->gone[i].id);
        slot_set_add(&s->free, s->gone[i].slot);
        s->slots[s->gone[i].slot].sent = false;
        m.drop_count++;
        if (cs->standby_drops.size < MESSAGE_ROOM) continue;
        emit(cs, leaf, &m);
        m.drop_count = 0;
    }
    s->gone_count = 0;
    if (m.drop_count > 0) emit(cs, leaf, &m);
}

/* What the standby was told of the slots so far counts no more. */
static void forget_sent(struct standby_stream *s)
{
    for (uint32_t i = 0; i < s->gone_count; i++) slot_set_add(&s->free, s->gone[i].slot);
    for (uint32_t i = 0; i < s->slot_count; i++) s->slots[i].sent = false;
    s->gone_count = 0;
}

/* One walk over all of a leaf; with parts == 0 it only counts how many messages that takes. */
static uint32_t whole_walk(struct cellserver *cs, uint32_t leaf, uint32_t parts)
{
    struct standby_stream *s = &cs->leaves[leaf].standby;
    struct standby m = {.parts = parts};
    for (uint32_t slot = 0; slot < s->slot_count; slot++) {
        if (slot_set_has(&s->free, slot) || s->slots[slot].owner == NONE) continue;
        if (slot == 0 && MUTATION(SNAPSHOT_SHORT)) continue;
        size_t before = cs->standby_puts.size;
        put_write(cs, s, slot, &cs->standby_puts);
        m.put_count++;
        if (cs->standby_puts.size <= MESSAGE_ROOM || m.put_count == 1) continue;
        if (parts > 0) {
            puts_cut(cs, leaf, before, &m);
        } else {
            cs->standby_puts.size -= before; /* as if the rest had been sent */
            m.put_count = 1;
        }
        m.part++;
    }
    if (parts > 0) {
        emit(cs, leaf, &m);
    } else {
        writer_clear(&cs->standby_puts);
    }
    return m.part + 1;
}

static void send_whole(struct cellserver *cs, uint32_t leaf)
{
    struct standby_stream *s = &cs->leaves[leaf].standby;
    s->whole = false;
    forget_sent(s);
    uint32_t parts = whole_walk(cs, leaf, 0);
    whole_walk(cs, leaf, parts);
    s->level_seq = s->seq;
    for (uint32_t slot = 0; slot < s->slot_count; slot++) {
        slot_set_remove(&s->changed, slot);
        slot_set_remove(&s->moved, slot);
    }
    for (uint32_t at = s->wait_first; at != WAITING_NONE; at = cs->waiting[at].next) cs->waiting[at].seq = UINT64_MAX;
    s->wait_open = s->wait_first;
}

static bool sendable(const struct cellserver *cs, const struct standby_stream *s)
{
    uint32_t peer = peer_find(cs, s->node);
    return peer != NONE && !cs->peers[peer].standby_blocked &&
           session_queued_bytes(cs->peers[peer].session) < LIMIT_SURE_BYTES / 4 * 3 &&
           session_queued_messages(cs->peers[peer].session) < LIMIT_SURE_MESSAGES / 4 * 3;
}

static void round_one(struct cellserver *cs, uint32_t leaf)
{
    struct standby_stream *s = &cs->leaves[leaf].standby;
    uint32_t peer = peer_find(cs, s->node);
    if (!sendable(cs, s)) {
        if (peer != NONE) cs->peers[peer].standby_blocked = true;
        return;
    }
    if (!s->whole) send_puts(cs, leaf);
    if (s->whole) send_whole(cs, leaf);
}

/* Drops of a peer to whom some leaf's puts did not go stay behind too. */
static void round_two(struct cellserver *cs, uint32_t leaf)
{
    struct standby_stream *s = &cs->leaves[leaf].standby;
    if (!sendable(cs, s) || s->whole) return;
    send_drops(cs, leaf);
    for (uint32_t at = s->wait_open; at != WAITING_NONE; at = cs->waiting[at].next) cs->waiting[at].seq = s->seq;
    s->wait_open = WAITING_NONE;
    s->dirty = slot_set_next(&s->moved, 0) != SLOT_SET_NONE || s->whole;
}

void standby_flush(struct cellserver *cs)
{
    /* Whoever is let go may note something new, and a leaf that is behind is looked at again at the next tick. */
    for (uint32_t turn = 0; turn < 4 && cs->standby_noted; turn++) {
        cs->standby_noted = false;
        for (uint32_t i = 0; i < cs->peer_count; i++) cs->peers[i].standby_blocked = false;
        for (uint32_t i = 0; i < cs->leaf_count; i++) {
            if (cs->leaves[i].used && cs->leaves[i].standby.dirty) round_one(cs, i);
        }
        for (uint32_t i = 0; i < cs->leaf_count; i++) {
            if (cs->leaves[i].used && cs->leaves[i].standby.dirty) round_two(cs, i);
        }
        cs->standby_ticks = false;
        for (uint32_t i = 0; i < cs->leaf_count; i++) {
            if (cs->leaves[i].used && cs->leaves[i].standby.wait_first != WAITING_NONE) standby_release(cs, i);
        }
    }
    cs->standby_ticks = false;
}

void standby_publish(struct cellserver *cs)
{
    cs->standby_ticks = true;
    for (uint32_t i = 0; i < cs->leaf_count; i++) {
        struct standby_stream *s = &cs->leaves[i].standby;
        if (!cs->leaves[i].used || s->node.v == 0) continue;
        cs->standby_noted |= s->dirty;
        uint32_t peer = peer_find(cs, s->node);
        if (peer == NONE || cs->peers[peer].beat_us == cs->now_us) continue;
        cs->peers[peer].beat_us = cs->now_us;
        writer_clear(&cs->message);
        standby_beat_encode(&cs->message, &(struct standby_beat){.stamp = cs->now_us});
        if (session_push_fast(cs->peers[peer].session, cs->message.data, cs->message.size) != TERRANE_ERR_OK) {
            cs->stats.dropped++;
        }
    }
}

void standby_acked(struct cellserver *cs, uint32_t peer, struct standby_ack *m)
{
    struct peer *from = &cs->peers[peer];
    if (m->stamp > from->echoed_us && m->stamp <= cs->now_us) from->echoed_us = m->stamp;
    struct standby_ack_item item;
    while (standby_ack_next(m, &item)) {
        uint32_t leaf = leaf_find(cs, item.leaf);
        struct standby_stream *s = leaf == NONE ? NULL : &cs->leaves[leaf].standby;
        bool ours = s != NULL && node_id_equal(s->node, from->info.node);
        bool current = ours && (item.refused ? item.epoch >= s->epoch : item.epoch == s->epoch);
        if (!current || item.seq > s->seq) {
            cs->stats.stale++;
            continue;
        }
        if (item.refused) {
            s->refused = true;
        } else if (item.seq == 0) {
            s->whole = true; /* it has lost the thread */
            dirty(cs, s);
        } else if (item.seq > s->acked) {
            s->acked = item.seq;
            if (level(s)) formers_end(cs, leaf);
        }
        standby_release(cs, leaf);
    }
}

/* ---- the map ---- */

static void stream_forget(struct cellserver *cs, uint32_t leaf)
{
    struct standby_stream *s = &cs->leaves[leaf].standby;
    slot_set_close(&s->free);
    slot_set_close(&s->changed);
    slot_set_close(&s->moved);
    free(s->slots);
    free(s->gone);
    uint32_t first = s->wait_first, last = s->wait_last;
    *s = (struct standby_stream){.wait_first = first, .wait_last = last, .wait_open = first};
    for (uint32_t i = 0; i < cs->entity_count; i++) {
        struct entity *e = &cs->entities[i];
        if (e->status == ENTITY_OWNED && e->leaf == leaf) e->standby_slot = STREAM_SLOT_NONE;
    }
    for (uint32_t i = 0; i < cs->pending_count; i++) {
        if (cs->pendings[i].used && cs->pendings[i].leaf == leaf) cs->pendings[i].slot = STREAM_SLOT_NONE;
    }
}

static void stream_begin(struct cellserver *cs, uint32_t leaf, struct node_id node)
{
    struct standby_stream *s = &cs->leaves[leaf].standby;
    s->node = node;
    s->epoch = cs->leaves[leaf].epoch;
    s->seq = s->acked = s->level_seq = 0;
    s->refused = false;
    s->whole = true;
    forget_sent(s);
    for (uint32_t at = s->wait_first; at != WAITING_NONE; at = cs->waiting[at].next) cs->waiting[at].seq = UINT64_MAX;
    s->wait_open = s->wait_first;
    dirty(cs, s);
    for (uint32_t i = 0; i < cs->entity_count; i++) {
        if (cs->entities[i].status == ENTITY_OWNED && cs->entities[i].leaf == leaf) standby_note_put(cs, i);
    }
    for (uint32_t i = 0; i < cs->pending_count; i++) {
        if (cs->pendings[i].used && cs->pendings[i].leaf == leaf) standby_note_pending(cs, i);
    }
}

void standby_sync(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->leaf_count; i++) {
        struct own_leaf *leaf = &cs->leaves[i];
        const struct leaf_owner *owner = leaf->used ? ownership_leaf(&cs->map, leaf->key) : NULL;
        if (owner == NULL) continue;
        bool alone = node_id_equal(owner->standby, cs->options.info.node);
        struct node_id node = alone ? NODE_NONE : owner->standby;
        bool same = node_id_equal(node, leaf->standby.node);
        if (node.v == 0 && !same) {
            formers_note(&leaf->formers, leaf->standby.node);
            stream_forget(cs, i);
            formers_end(cs, i);
            standby_release(cs, i);
        } else if (node.v != 0 && !(same && leaf->standby.epoch == leaf->epoch)) {
            if (!same && leaf->standby.node.v != 0) formers_note(&leaf->formers, leaf->standby.node);
            stream_begin(cs, i, node);
        }
    }
}

/* The leaf is closed. Its new primary answers for who stands in it, but not for who has gone to another of our leaves
 * meanwhile: that one's gateway sees no change of server, and does not ask again. */
static void waits_move_on(struct cellserver *cs, uint32_t leaf)
{
    while (cs->leaves[leaf].standby.wait_first != WAITING_NONE) {
        struct waiting w = cs->waiting[cs->leaves[leaf].standby.wait_first];
        wait_pop(cs, &cs->leaves[leaf].standby);
        uint32_t at = w.kind == WAITING_RESULT ? entity_find(cs, w.result.id) : NONE;
        const struct entity *e = at == NONE ? NULL : &cs->entities[at];
        if (e != NULL && e->status == ENTITY_OWNED && e->leaf != leaf && cs->leaves[e->leaf].used)
            standby_wait_result(cs, e->leaf, w.gateway, &w.result);
    }
}

uint64_t standby_close_leaf(struct cellserver *cs, uint32_t leaf)
{
    struct standby_stream *s = &cs->leaves[leaf].standby;
    uint64_t seq = 0;
    if (s->node.v != 0) {
        uint32_t peer = peer_find(cs, s->node);
        if (peer != NONE) cs->peers[peer].standby_blocked = false;
        cs->standby_ticks = true;
        /* Even if it has refused: the map has told it earlier than us. */
        bool has = !s->whole && s->level_seq > 0 && !MUTATION(RELEASED_EARLY);
        if (has) round_one(cs, leaf);
        if (has) round_two(cs, leaf);
        cs->standby_ticks = false;
        seq = s->seq;
    }
    takeover_close_leaf(cs, leaf);
    stream_forget(cs, leaf);
    waits_move_on(cs, leaf);
    return seq;
}

void standby_close(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->leaf_count; i++) {
        if (cs->leaves[i].used) stream_forget(cs, i);
    }
    free(cs->waiting);
    writer_close(&cs->standby_puts);
    writer_close(&cs->standby_moves);
    writer_close(&cs->standby_drops);
}
