/* Asking and telling homes who has which entity (proto/registry.h).
 *
 * An ENTER waits until its id's home has granted it. All else is news: an entity has come (by a hand-off, or with a
 * leaf that was promoted) or has left the world. News is noted when it happens and sent at the end of the step, one
 * message a home. When a home gets another primary, all that is owned here is told to it anew, and then that this was
 * all.
 *
 * Lost claims are asked again; the home answers the same. */
#include "cellserver/internal.h"

#include <stdlib.h>

#define ASK_AGAIN_US UINT64_C(1000000)
#define CLAIMS_MAX   16384u

static uint32_t claim_find(const struct cellserver *cs, struct entity_id id)
{
    return table_get(&cs->registry.claim_index, id.v);
}

void registry_note(struct cellserver *cs, struct node_id to, const struct registry_item *item)
{
    struct registry_side *r = &cs->registry;
    const struct leaf_owner *home = registry_home(&cs->map, &cs->world, item->id);
    if (!cs->options.unique_ids || home == NULL) return;
    ARRAY_RESERVE(r->notes, r->note_room, r->note_count + 1);
    r->notes[r->note_count++] = (struct registry_note){.to = to, .home = home->leaf, .item = *item};
}

static void here(struct cellserver *cs, uint32_t at, uint64_t token)
{
    const struct entity *e = &cs->entities[at];
    registry_note(cs, NODE_NONE,
                  &(struct registry_item){.verb = REGISTRY_HERE,
                                          .id = e->id,
                                          .version = e->version,
                                          .gateway = e->gateway,
                                          .request = e->enter_request,
                                          .token = token});
}

void registry_here(struct cellserver *cs, uint32_t at)
{
    here(cs, at, 0);
}

void registry_gone(struct cellserver *cs, uint32_t at)
{
    const struct entity *e = &cs->entities[at];
    registry_note(cs, NODE_NONE, &(struct registry_item){.verb = REGISTRY_GONE, .id = e->id, .version = e->version});
}

/* ---- claims ---- */

static void claim_ask(struct cellserver *cs, struct registry_claim *claim)
{
    claim->asked_us = cs->now_us;
    registry_note(cs, NODE_NONE,
                  &(struct registry_item){.verb = REGISTRY_CLAIM,
                                          .id = claim->id,
                                          .version = claim->version,
                                          .gateway = claim->gateway,
                                          .request = claim->request});
}

enum terrane_error registry_claim(struct cellserver *cs, const struct enter *m, struct node_id gateway,
                                  struct cursor message)
{
    struct registry_side *r = &cs->registry;
    uint32_t at = claim_find(cs, m->record.id);
    if (at != NONE) {
        bool again = node_id_equal(r->claims[at].gateway, gateway) && r->claims[at].request == m->request;
        return again ? TERRANE_ERR_OK : TERRANE_ERR_NOT_OWNER; /* what becomes of the other is not known: ask again */
    }
    if (r->claim_count >= CLAIMS_MAX) return TERRANE_ERR_QUEUE_FULL;
    ARRAY_RESERVE(r->claims, r->claim_room, r->claim_count + 1);
    table_put(&r->claim_index, m->record.id.v, r->claim_count);
    struct registry_claim *claim = &r->claims[r->claim_count++];
    struct writer enter = claim->enter;
    *claim = (struct registry_claim){
        .id = m->record.id, .gateway = gateway, .request = m->request, .version = m->record.version, .enter = enter};
    writer_clear(&claim->enter);
    writer_raw(&claim->enter, message.at, (size_t)(message.end - message.at));
    claim_ask(cs, claim);
    return TERRANE_ERR_OK;
}

/* Takes a claim out; its message stays in the place behind the last, whose buffer is used again. */
static struct registry_claim *claim_take(struct registry_side *r, uint32_t at)
{
    struct registry_claim taken = r->claims[at];
    r->claims[at] = r->claims[--r->claim_count];
    table_put(&r->claim_index, r->claims[at].id.v, at);
    table_remove(&r->claim_index, taken.id.v);
    r->claims[r->claim_count] = taken;
    return &r->claims[r->claim_count];
}

static void claim_granted(struct cellserver *cs, uint32_t at, uint64_t version)
{
    struct registry_claim *claim = claim_take(&cs->registry, at);
    struct entity_id id = claim->id;
    uint32_t peer = peer_find(cs, claim->gateway);
    if (peer != NONE) {
        writer_clear(&cs->single);
        writer_raw(&cs->single, claim->enter.data, claim->enter.size);
        command_enter_granted(cs, peer, cursor_of(cs->single.data, cs->single.size), version);
    }
    uint32_t entity = entity_find(cs, id);
    bool owned = entity != NONE && cs->entities[entity].status == ENTITY_OWNED;
    if (!owned)
        registry_note(cs, NODE_NONE, &(struct registry_item){.verb = REGISTRY_GONE, .id = id, .version = version});
}

static void claim_denied(struct cellserver *cs, uint32_t at, const struct registry_item *item)
{
    struct registry_claim *claim = claim_take(&cs->registry, at);
    /* The same request has entered it somewhere else: it will come here, and then the repetition is answered. */
    bool same = node_id_equal(item->gateway, claim->gateway) && item->request == claim->request;
    command_result(cs, claim->gateway,
                   &(struct result){.request = claim->request,
                                    .id = claim->id,
                                    .error = same ? TERRANE_ERR_NOT_OWNER : TERRANE_ERR_ENTITY_EXISTS,
                                    .version = item->version});
}

/* It is on its way to us. */
static bool in_transit(const struct cellserver *cs, struct entity_id id)
{
    return takeover_pends(cs, id) || replica_promotes(cs, id);
}

/* To whom we have handed it on, if that one is still there; else NODE_NONE. */
static struct node_id handed_to(const struct cellserver *cs, struct entity_id id)
{
    uint32_t forward = table_get(&cs->forward_index, id.v);
    bool there = forward != TABLE_NONE && peer_find(cs, cs->forwards[forward].to) != NONE;
    return there ? cs->forwards[forward].to : NODE_NONE;
}

/* The home asks whether we have it. Whoever has handed it on has that one asked, under the version that it has there:
 * so it goes round in no circle, and who says that it is gone is believed although others had it earlier. */
static void answer_ask(struct cellserver *cs, struct node_id from, const struct registry_item *item)
{
    const struct leaf_owner *home = registry_home(&cs->map, &cs->world, item->id);
    uint32_t at = entity_find(cs, item->id);
    struct registry_item answer = {.id = item->id, .version = item->version, .token = item->token};
    struct node_id to = handed_to(cs, item->id);
    uint64_t version = forward_version(cs, item->id);
    if (at != NONE && cs->entities[at].status == ENTITY_OWNED) {
        /* Of one that is leaving its destination knows better; if it stays, the home asks again. */
        if (!cs->entities[at].leaving) here(cs, at, item->token);
        return;
    }
    /* With a leaf that was given up it went under the version that it had here, which the home knows: only an ASK that
     * another has passed on may have been here before. */
    bool first = home != NULL && node_id_equal(home->primary, from);
    bool been = first ? version < item->version : version <= item->version;
    if (in_transit(cs, item->id) || (to.v != 0 && been)) return;
    if (to.v == 0 && replica_holds(cs, item->id)) return; /* perhaps its leaf is ours and our map is behind */
    answer.verb = to.v != 0 ? REGISTRY_ASK : REGISTRY_GONE;
    if (version > answer.version) answer.version = version;
    registry_note(cs, to, &answer);
}

/* Under the version that was claimed, or a higher one. */
static bool grants(const struct registry_claim *claim, const struct registry_item *item)
{
    return node_id_equal(claim->gateway, item->gateway) && claim->request == item->request &&
           claim->version <= item->version;
}

static void take_item(struct cellserver *cs, struct node_id from, const struct registry_item *item)
{
    uint32_t claim = NONE;
    switch (item->verb) {
    case REGISTRY_CLAIM: registrar_claim(cs, from, item); break;
    case REGISTRY_HERE: registrar_here(cs, from, item); break;
    case REGISTRY_GONE: registrar_gone(cs, from, item); break;
    case REGISTRY_GRANT:
        claim = claim_find(cs, item->id);
        if (claim != NONE && grants(&cs->registry.claims[claim], item)) claim_granted(cs, claim, item->version);
        break;
    case REGISTRY_EXISTS:
        claim = claim_find(cs, item->id);
        if (claim != NONE) claim_denied(cs, claim, item);
        break;
    case REGISTRY_ASK: answer_ask(cs, from, item); break;
    case REGISTRY_VERBS: break;
    }
}

static bool for_the_home(enum registry_verb verb)
{
    return verb == REGISTRY_CLAIM || verb == REGISTRY_HERE || verb == REGISTRY_GONE;
}

void registry_received(struct cellserver *cs, struct node_id from, struct registry *m)
{
    struct registry_item item;
    const struct leaf_owner *home = ownership_leaf(&cs->map, m->leaf);
    if (!cs->options.unique_ids) return;
    while (registry_next(m, &item)) {
        /* News for a home that has had another primary since is sent to that one by itself. */
        if (for_the_home(item.verb) && home != NULL && home->since > m->since)
            cs->stats.stale++;
        else
            take_item(cs, from, &item);
    }
    if (m->complete) registrar_heard(cs, from, m->leaf, m->since);
}

/* ---- sending ---- */

static struct registry_told *told_of(struct cellserver *cs, struct quadkey home)
{
    uint32_t at = table_get(&cs->registry.told_index, home.v);
    return at == TABLE_NONE ? NULL : &cs->registry.told[at];
}

uint32_t registry_told_since(struct cellserver *cs, struct quadkey home)
{
    const struct registry_told *told = told_of(cs, home);
    return told == NULL ? 0 : told->since;
}

static struct node_id destination(const struct cellserver *cs, const struct registry_note *note)
{
    const struct leaf_owner *home = ownership_leaf(&cs->map, note->home);
    if (note->to.v != 0 || home == NULL) return note->to;
    return home->primary;
}

static void send_items(struct cellserver *cs, uint32_t peer, const struct leaf_owner *home, uint32_t count,
                       bool complete)
{
    struct registry_side *r = &cs->registry;
    writer_clear(&cs->message);
    registry_begin(&cs->message,
                   &(struct registry){.leaf = home->leaf, .since = home->since, .complete = complete, .count = count});
    writer_raw(&cs->message, r->items.data, r->items.size);
    writer_clear(&r->items);
    peer_send(cs, peer, &cs->message, true);
}

/* The note at `first` and all behind it that go the same way. */
static void send_alike(struct cellserver *cs, uint32_t first, uint32_t count, struct node_id to)
{
    struct registry_side *r = &cs->registry;
    struct quadkey leaf = r->notes[first].home;
    const struct leaf_owner *home = ownership_leaf(&cs->map, leaf);
    uint32_t peer = peer_find(cs, to), items = 0;
    writer_clear(&r->items);
    for (uint32_t i = first; i < count; i++) {
        struct registry_note *note = &r->notes[i];
        if (note->item.id.v == 0 || !quadkey_equal(note->home, leaf) || !node_id_equal(destination(cs, note), to)) {
            continue;
        }
        registry_add(&r->items, &note->item);
        note->item.id = (struct entity_id){0};
        if (++items < 100) continue;
        if (peer != NONE && home != NULL) send_items(cs, peer, home, items, false);
        writer_clear(&r->items);
        items = 0;
    }
    if (items > 0 && peer != NONE && home != NULL) send_items(cs, peer, home, items, false);
    writer_clear(&r->items); /* what nobody is there for goes to nobody else */
}

void registry_flush(struct cellserver *cs)
{
    struct registry_side *r = &cs->registry;
    /* Handling our own notes more: it is looked at in the same pass, and each answer ends a claim. */
    for (uint32_t i = 0; i < r->note_count; i++) {
        struct registry_item item = r->notes[i].item;
        if (item.id.v == 0) continue;
        struct node_id to = destination(cs, &r->notes[i]);
        if (node_id_equal(to, cs->options.info.node)) {
            r->notes[i].item.id = (struct entity_id){0};
            take_item(cs, to, &item);
        } else {
            send_alike(cs, i, r->note_count, to);
        }
    }
    r->note_count = 0;
}

/* ---- the map and time ---- */

/* Notes for each home that has another primary than the one we have told. */
static bool homes_changed(struct cellserver *cs)
{
    struct registry_side *r = &cs->registry;
    bool changed = false;
    for (uint32_t i = 0; i < cs->map.now.leaf_count; i++) {
        const struct leaf_owner *owner = &cs->map.now.leaves[i];
        struct registry_told *told = told_of(cs, owner->leaf);
        if (owner->primary.v == 0 || (told != NULL && told->since == owner->since)) continue;
        if (told == NULL) {
            table_put(&r->told_index, owner->leaf.v, r->told_count);
            ARRAY_RESERVE(r->told, r->told_room, r->told_count + 1);
            told = &r->told[r->told_count++];
            told->leaf = owner->leaf;
        }
        told->since = owner->since;
        told->complete_due = changed = true;
    }
    return changed;
}

/* Each home that is new has been told all. */
static void tell_complete(struct cellserver *cs)
{
    struct registry_side *r = &cs->registry;
    for (uint32_t i = 0; i < r->told_count; i++) {
        struct registry_told *told = &r->told[i];
        const struct leaf_owner *home = ownership_leaf(&cs->map, told->leaf);
        if (!told->complete_due) continue;
        told->complete_due = false;
        uint32_t peer = home == NULL ? NONE : peer_find(cs, home->primary);
        if (home != NULL && node_id_equal(home->primary, cs->options.info.node))
            registrar_heard(cs, home->primary, home->leaf, home->since);
        else if (peer != NONE)
            send_items(cs, peer, home, 0, true);
        else
            told->since = 0; /* its primary is not among the nodes yet */
    }
}

void registry_sync(struct cellserver *cs)
{
    struct registry_side *r = &cs->registry;
    if (!cs->options.unique_ids) return;
    registrar_sync(cs);
    if (!homes_changed(cs)) return;
    for (uint32_t at = 0; at < cs->entity_count; at++) {
        const struct entity *e = &cs->entities[at];
        if (e->status != ENTITY_OWNED) continue;
        const struct leaf_owner *home = registry_home(&cs->map, &cs->world, e->id);
        const struct registry_told *told = home == NULL ? NULL : told_of(cs, home->leaf);
        if (told != NULL && told->complete_due) registry_here(cs, at);
    }
    registry_flush(cs);
    tell_complete(cs);
    for (uint32_t i = 0; i < r->claim_count; i++) r->claims[i].asked_us = 0; /* perhaps of a home that is no more */
}

void registry_tick(struct cellserver *cs)
{
    struct registry_side *r = &cs->registry;
    if (!cs->options.unique_ids) return;
    for (uint32_t i = 0; i < r->claim_count; i++) {
        if (cs->now_us - r->claims[i].asked_us >= ASK_AGAIN_US) claim_ask(cs, &r->claims[i]);
    }
    registrar_tick(cs);
    registry_flush(cs);
}

void registry_close(struct cellserver *cs)
{
    struct registry_side *r = &cs->registry;
    for (uint32_t i = 0; i < r->claim_room; i++) writer_close(&r->claims[i].enter);
    free(r->claims);
    free(r->notes);
    free(r->told);
    table_close(&r->told_index);
    table_close(&r->claim_index);
    writer_close(&r->items);
    registrar_close(cs);
}
