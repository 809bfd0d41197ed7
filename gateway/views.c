/* Pairs: which own observer sees which subject. Two sources must agree before the game hears of a pair: the observer's
 * server says that it is in the view (VIEWS, ids only), and the region streams know the subject's data.
 *
 * A pair is told when its turn in the queue of callbacks comes, by what is true then; only the pair's TOLD bit decides
 * whether an unsee is due. Pairs are freed only there and when a whole view is settled, never in an API call, so that
 * walks over pairs survive callbacks. */
#include "gateway/internal.h"

#include <stdlib.h>

void gateway_views_open(struct gateway *g)
{
    struct replicas_options options = {
        .kind = STREAM_REGION,
        .listener = {.context = g, .entity = gateway_views_entity, .subscribe = gateway_watch_subscribe}};
    g->replicas = replicas_open(&options);
}

void gateway_views_close(struct gateway *g)
{
    replicas_close(g->replicas);
    free(g->pairs);
    free(g->subjects);
    free(g->handle_subject);
    table_close(&g->pair_index);
    table_close(&g->subject_index);
}

static void set_flags(struct gateway *g, struct pair *p, uint32_t flags)
{
    bool waited = (p->flags & (PAIR_IN | PAIR_TOLD)) == PAIR_IN, waits = (flags & (PAIR_IN | PAIR_TOLD)) == PAIR_IN;
    g->pairs_waiting += (uint32_t)waits - (uint32_t)waited;
    g->pairs_told += (uint32_t)((flags & PAIR_TOLD) != 0) - (uint32_t)((p->flags & PAIR_TOLD) != 0);
    p->flags = flags;
}

static uint64_t pair_key(uint32_t observer, uint32_t subject)
{
    return ((uint64_t)observer + 1) << 32 | subject;
}

/* Whether the pair may be told: its subject's data is there, and the game knows that its observer is. */
static bool tellable(const struct gateway *g, const struct pair *p)
{
    return g->own[p->observer].announced && (g->no_updates || g->subjects[p->subject].handle != SLOT_NONE);
}

static uint32_t subject_get(struct gateway *g, struct entity_id id)
{
    uint32_t slot = table_get(&g->subject_index, id.v);
    if (slot != TABLE_NONE) return slot;
    slot = g->subject_free;
    if (slot != SLOT_NONE) {
        g->subject_free = g->subjects[slot].next;
    } else {
        slot = g->subject_count++;
        ARRAY_RESERVE(g->subjects, g->subject_room, g->subject_count);
    }
    struct subject *s = &g->subjects[slot];
    *s = (struct subject){.id = id, .handle = replicas_find(g->replicas, id), .pairs = SLOT_NONE};
    struct entity_record record;
    if (s->handle != SLOT_NONE && replicas_get(g->replicas, s->handle, &record)) {
        g->handle_subject[s->handle] = slot;
        s->kind = record.kind;
        s->flags = record.flags;
        s->layer = record.layer;
        s->radius = record.radius;
    }
    table_put(&g->subject_index, id.v, slot);
    return slot;
}

static void subject_free(struct gateway *g, uint32_t slot)
{
    struct subject *s = &g->subjects[slot];
    if (s->handle != SLOT_NONE) g->handle_subject[s->handle] = SLOT_NONE;
    table_remove(&g->subject_index, s->id.v);
    *s = (struct subject){.next = g->subject_free};
    g->subject_free = slot;
}

static uint32_t pair_find(const struct gateway *g, uint32_t observer, struct entity_id id)
{
    uint32_t subject = table_get(&g->subject_index, id.v);
    return subject == TABLE_NONE ? SLOT_NONE : table_get(&g->pair_index, pair_key(observer, subject));
}

/* SLOT_NONE, counted: there are too many. */
static uint32_t pair_get(struct gateway *g, uint32_t observer, struct entity_id id)
{
    uint32_t slot = pair_find(g, observer, id);
    if (slot != SLOT_NONE) return slot;
    if (g->pair_index.count >= LIMIT_PAIRS) {
        g->counters.dropped++;
        return SLOT_NONE;
    }
    uint32_t subject = subject_get(g, id);
    slot = g->pair_free;
    if (slot != SLOT_NONE) {
        g->pair_free = g->pairs[slot].observer_next;
    } else {
        slot = g->pair_count++;
        ARRAY_RESERVE(g->pairs, g->pair_room, g->pair_count);
    }
    struct pair *p = &g->pairs[slot];
    *p = (struct pair){.observer_id = g->own[observer].id,
                       .observer = observer,
                       .subject = subject,
                       .observer_prev = SLOT_NONE,
                       .observer_next = g->own[observer].pairs,
                       .subject_prev = SLOT_NONE,
                       .subject_next = g->subjects[subject].pairs};
    if (p->observer_next != SLOT_NONE) g->pairs[p->observer_next].observer_prev = slot;
    if (p->subject_next != SLOT_NONE) g->pairs[p->subject_next].subject_prev = slot;
    g->own[observer].pairs = g->subjects[subject].pairs = slot;
    table_put(&g->pair_index, pair_key(observer, subject), slot);
    return slot;
}

static void pair_free_if_over(struct gateway *g, uint32_t slot)
{
    struct pair *p = &g->pairs[slot];
    const struct own_view *view = &g->own[p->observer].view;
    bool named = view->filling && p->mark == view->mark;
    if ((p->flags & (PAIR_IN | PAIR_TOLD | PAIR_QUEUED)) != 0 || named) return;
    if (p->observer_prev != SLOT_NONE)
        g->pairs[p->observer_prev].observer_next = p->observer_next;
    else
        g->own[p->observer].pairs = p->observer_next;
    if (p->observer_next != SLOT_NONE) g->pairs[p->observer_next].observer_prev = p->observer_prev;
    if (p->subject_prev != SLOT_NONE)
        g->pairs[p->subject_prev].subject_next = p->subject_next;
    else
        g->subjects[p->subject].pairs = p->subject_next;
    if (p->subject_next != SLOT_NONE) g->pairs[p->subject_next].subject_prev = p->subject_prev;
    table_remove(&g->pair_index, pair_key(p->observer, p->subject));
    uint32_t observer = p->observer, subject = p->subject;
    p->observer_next = g->pair_free;
    g->pair_free = slot;
    if (g->subjects[subject].pairs == SLOT_NONE) subject_free(g, subject);
    gateway_own_free_if_over(g, observer);
}

static void pair_queue(struct gateway *g, uint32_t slot)
{
    struct pair *p = &g->pairs[slot];
    if (p->flags & PAIR_QUEUED) return;
    p->flags |= PAIR_QUEUED;
    struct note note = {.kind = NOTE_PAIR, .slot = slot};
    gateway_notify(g, &note, NULL, 0);
}

static void pair_in(struct gateway *g, uint32_t slot)
{
    struct pair *p = &g->pairs[slot];
    if (p->flags & PAIR_IN) return;
    set_flags(g, p, p->flags | PAIR_IN);
    if (tellable(g, p)) pair_queue(g, slot);
}

static void pair_out(struct gateway *g, uint32_t slot)
{
    struct pair *p = &g->pairs[slot];
    if (p->flags & PAIR_TOLD) p->flags |= PAIR_BROKEN;
    set_flags(g, p, p->flags & ~(uint32_t)PAIR_IN);
    pair_queue(g, slot);
}

void gateway_pair_tell(struct gateway *g, uint32_t slot)
{
    struct pair *p = &g->pairs[slot];
    uint64_t observer = p->observer_id.v, subject = g->subjects[p->subject].id.v;
    p->flags &= ~(uint32_t)PAIR_QUEUED;
    if ((p->flags & PAIR_TOLD) && (p->flags & (PAIR_IN | PAIR_BROKEN)) != PAIR_IN) {
        set_flags(g, p, p->flags & ~(uint32_t)(PAIR_TOLD | PAIR_BROKEN));
        if (g->callbacks.unsee != NULL) g->callbacks.unsee(g->context, observer, subject);
        p = &g->pairs[slot];
    }
    if ((p->flags & (PAIR_IN | PAIR_TOLD)) == PAIR_IN && tellable(g, p)) {
        struct terrane_entity entity = {.id = subject};
        struct entity_record record;
        uint32_t handle = g->subjects[p->subject].handle;
        if (handle != SLOT_NONE && replicas_get(g->replicas, handle, &record)) gateway_to_entity(g, &record, &entity);
        set_flags(g, p, p->flags | PAIR_TOLD);
        if (g->callbacks.see != NULL) g->callbacks.see(g->context, observer, &entity);
    }
    pair_free_if_over(g, slot);
}

void gateway_subject_tell(struct gateway *g, uint32_t slot)
{
    struct subject *s = &g->subjects[slot];
    uint32_t changes = s->changes, next;
    struct entity_record record;
    struct terrane_entity entity;
    if (s->id.v == 0 || !s->queued) return;
    s->queued = false;
    s->changes = 0;
    if (s->handle == SLOT_NONE || !replicas_get(g->replicas, s->handle, &record)) return;
    gateway_to_entity(g, &record, &entity);
    for (uint32_t at = s->pairs; at != SLOT_NONE; at = next) {
        const struct pair *p = &g->pairs[at];
        next = p->subject_next;
        if ((p->flags & (PAIR_IN | PAIR_TOLD | PAIR_BROKEN)) != (PAIR_IN | PAIR_TOLD)) continue;
        g->callbacks.update(g->context, p->observer_id.v, &entity, changes);
    }
}

static void subject_changed(struct gateway *g, uint32_t slot, uint32_t changes)
{
    struct subject *s = &g->subjects[slot];
    if (changes == 0 || g->callbacks.update == NULL) return;
    s->changes |= changes;
    if (s->queued) return;
    s->queued = true;
    struct note note = {.kind = NOTE_UPDATE, .slot = slot};
    gateway_notify(g, &note, NULL, 0);
}

/* Constants that really differ: the streams also report a new version alone. */
static uint32_t subject_learn(struct subject *s, const struct entity_record *record)
{
    bool same = s->kind == record->kind && s->flags == record->flags && s->layer == record->layer &&
                s->radius == record->radius;
    s->kind = record->kind;
    s->flags = record->flags;
    s->layer = record->layer;
    s->radius = record->radius;
    return same ? 0 : TERRANE_CONSTANTS_CHANGED;
}

static void subject_appeared(struct gateway *g, uint32_t handle, const struct entity_record *record)
{
    uint32_t slot = table_get(&g->subject_index, record->id.v);
    if (handle >= g->handle_room) ARRAY_RESERVE(g->handle_subject, g->handle_room, handle + 1);
    g->handle_subject[handle] = slot;
    if (slot == TABLE_NONE) return;
    g->subjects[slot].handle = handle;
    (void)subject_learn(&g->subjects[slot], record);
    bool told = false;
    for (uint32_t at = g->subjects[slot].pairs; at != SLOT_NONE; at = g->pairs[at].subject_next) {
        if (g->pairs[at].flags & PAIR_TOLD)
            told = true;
        else if (g->pairs[at].flags & PAIR_IN)
            pair_queue(g, at);
    }
    if (told) subject_changed(g, slot, TERRANE_MOVED | TERRANE_STATE_CHANGED | TERRANE_CONSTANTS_CHANGED);
}

void gateway_views_entity(void *context, uint32_t handle, const struct entity_record *record, uint32_t changes)
{
    struct gateway *g = context;
    if (changes & 1u << REPLICA_MOVED) g->counters.frame_moves++;
    if (changes & 1u << REPLICA_APPEARED) {
        subject_appeared(g, handle, record);
        return;
    }
    uint32_t slot = g->handle_subject[handle];
    if (slot == SLOT_NONE) return;
    if (changes & 1u << REPLICA_VANISHED) {
        /* The server's unsee follows, or has been; until then there is nothing to tell. */
        g->subjects[slot].handle = SLOT_NONE;
        g->handle_subject[handle] = SLOT_NONE;
        return;
    }
    uint32_t told = 0;
    if (changes & 1u << REPLICA_MOVED) told |= TERRANE_MOVED;
    if (changes & 1u << REPLICA_STATE) told |= TERRANE_STATE_CHANGED;
    if (changes & 1u << REPLICA_CHANGED) told |= subject_learn(&g->subjects[slot], record);
    subject_changed(g, slot, told);
}

void gateway_views_announce(struct gateway *g, uint32_t observer)
{
    for (uint32_t at = g->own[observer].pairs; at != SLOT_NONE; at = g->pairs[at].observer_next) {
        if ((g->pairs[at].flags & (PAIR_IN | PAIR_TOLD)) == PAIR_IN) pair_queue(g, at);
    }
}

void gateway_views_drop(struct gateway *g, uint32_t observer)
{
    g->own[observer].view.filling = false;
    for (uint32_t at = g->own[observer].pairs; at != SLOT_NONE; at = g->pairs[at].observer_next) pair_out(g, at);
}

static void apply_changes(struct gateway *g, uint32_t observer, struct view_item *item)
{
    struct entity_id id;
    while (entity_next(&item->unsee, &id)) {
        uint32_t slot = pair_find(g, observer, id);
        if (slot != SLOT_NONE) pair_out(g, slot);
    }
    while (entity_next(&item->see, &id)) {
        if (entity_id_equal(id, g->own[observer].id)) continue;
        uint32_t pair = pair_get(g, observer, id);
        if (pair != SLOT_NONE) pair_in(g, pair);
    }
}

/* The whole view is there: what it does not name is over, what it names and was not seen begins, in this order. */
static void settle_whole(struct gateway *g, uint32_t observer, uint32_t mark)
{
    uint32_t next;
    for (uint32_t at = g->own[observer].pairs; at != SLOT_NONE; at = next) {
        next = g->pairs[at].observer_next;
        if (g->pairs[at].mark == mark) continue;
        if (g->pairs[at].flags & PAIR_IN)
            pair_out(g, at);
        else
            pair_free_if_over(g, at); /* named by a whole view that was given up */
    }
    for (uint32_t at = g->own[observer].pairs; at != SLOT_NONE; at = g->pairs[at].observer_next) {
        if (g->pairs[at].mark == mark) pair_in(g, at);
    }
}

static void apply_whole(struct gateway *g, uint32_t observer, struct node_id from, struct view_item *item)
{
    struct own_view *view = &g->own[observer].view;
    if (!view->filling || !node_id_equal(view->filling_node, from) || view->filling_version != item->version) {
        view->filling = true;
        view->filling_node = from;
        view->filling_version = item->version;
        view->mark = ++g->marks;
    }
    struct entity_id id;
    while (entity_next(&item->see, &id)) {
        if (entity_id_equal(id, g->own[observer].id)) continue;
        uint32_t pair = pair_get(g, observer, id); /* may move g->pairs */
        if (pair != SLOT_NONE) g->pairs[pair].mark = view->mark;
    }
    if (item->part != VIEW_WHOLE_LAST) return;
    view->filling = false;
    settle_whole(g, observer, view->mark);
    gateway_own_view_whole(g, observer, from);
}

static void apply_item(struct gateway *g, struct node_id from, struct view_item *item)
{
    uint32_t slot = gateway_own_find(g, item->observer);
    if (slot == SLOT_NONE) {
        g->counters.stale++;
        return;
    }
    if (!gateway_own_claim(g, slot, from, item->version) || g->own[slot].leaving) return;
    if (item->part != VIEW_CHANGES) {
        apply_whole(g, slot, from, item);
    } else if (node_id_equal(g->own[slot].view.node, from)) {
        apply_changes(g, slot, item);
    } else {
        g->counters.stale++; /* differences to a whole view that we don't have; it follows */
    }
}

void gateway_views_apply(struct gateway *g, struct node_id from, struct views *views)
{
    struct view_item item;
    while (views_next(views, &item)) apply_item(g, from, &item);
}

static int id_order(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

size_t gateway_view(const struct gateway *g, uint64_t observer, uint64_t *ids, size_t room)
{
    uint32_t own = gateway_own_find(g, (struct entity_id){observer});
    size_t count = 0, filled = 0;
    if (own == SLOT_NONE) return 0;
    for (uint32_t at = g->own[own].pairs; at != SLOT_NONE; at = g->pairs[at].observer_next) {
        if (!(g->pairs[at].flags & PAIR_TOLD)) continue;
        uint64_t id = g->subjects[g->pairs[at].subject].id.v;
        count++;
        if (filled < room) {
            ids[filled++] = id;
            if (filled == room) qsort(ids, filled, sizeof *ids, id_order);
        } else if (room > 0 && id < ids[room - 1]) {
            /* Too little room: keep the lowest ids. */
            size_t place = room - 1;
            for (; place > 0 && ids[place - 1] > id; place--) ids[place] = ids[place - 1];
            ids[place] = id;
        }
    }
    if (filled < room && filled > 1) qsort(ids, filled, sizeof *ids, id_order);
    return count;
}

bool gateway_get(const struct gateway *g, uint64_t id, struct terrane_entity *out)
{
    struct entity_record record;
    uint32_t own = gateway_own_find(g, (struct entity_id){id});
    uint32_t handle = replicas_find(g->replicas, (struct entity_id){id});
    if (own != SLOT_NONE)
        gateway_own_record(g, own, &record);
    else if (handle == SLOT_NONE || !replicas_get(g->replicas, handle, &record))
        return false;
    gateway_to_entity(g, &record, out);
    return true;
}
