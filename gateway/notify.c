/* Callbacks are queued while a step runs and called at its end, so that they find the core in order and may call
 * any API function. A queued change of a pair is judged when its turn comes: what the game has been told of the pair
 * is a bit of the pair, so that each see has exactly one unsee whatever was queued. */
#include "gateway/internal.h"

#include <stdlib.h>
#include <string.h>

/* Notes whose bytes are the same share them: `offset` and `size` are the caller's. */
static void push(struct gateway *g, const struct note *note)
{
    struct notes *n = &g->notes;
    ARRAY_RESERVE(n->items, n->room, n->count + 1);
    n->items[n->count++] = *note;
}

void gateway_notify(struct gateway *g, const struct note *note, const void *bytes, size_t size)
{
    struct note copy = *note;
    copy.offset = g->notes.bytes.size;
    copy.size = size;
    if (size > 0) writer_raw(&g->notes.bytes, bytes, size);
    push(g, &copy);
}

/* A copy of an event comes when an observer is handed over while it is told. The key stands for (origin, request,
 * observer); two that mix to one key within seconds are less likely than a bit that flips in memory. */
static bool event_is_copy(struct gateway *g, const struct emit *emit, struct entity_id observer)
{
    uint64_t key = emit->origin.v * 0x9e3779b97f4a7c15ULL;
    key = (key ^ (key >> 31) ^ emit->request) * 0xbf58476d1ce4e5b9ULL;
    key = (key ^ (key >> 29) ^ observer.v) * 0x94d049bb133111ebULL;
    key = (key ^ (key >> 32)) | 1;
    if (table_get(&g->events[0], key) != TABLE_NONE || table_get(&g->events[1], key) != TABLE_NONE) return true;
    if (g->events[0].count >= EVENT_MEMORY || g->now_us >= g->events_us + EVENT_MEMORY_US) {
        struct table oldest = g->events[1];
        g->events[1] = g->events[0];
        table_clear(&oldest);
        g->events[0] = oldest;
        g->events_us = g->now_us;
    }
    table_put(&g->events[0], key, 1);
    return false;
}

/* A server that knows the observer's last life, but was not asked for the one that is to begin. */
static bool event_is_old(const struct gateway *g, const struct own *own, struct node_id from)
{
    bool owner = own->peer != SLOT_NONE && node_id_equal(g->peers[own->peer].node, from);
    return own->state == OWN_ENTERING && !owner && !node_id_equal(own->asked, from);
}

void gateway_notify_event(struct gateway *g, struct node_id from, const struct event_told *event)
{
    struct note note = {.kind = NOTE_EVENT,
                        .code = event->emit.code,
                        .position = event->emit.position,
                        .offset = g->notes.bytes.size,
                        .size = event->emit.payload_size};
    bool kept = false;
    struct cursor observers = event->observers;
    while (entity_next(&observers, &note.id)) {
        note.slot = gateway_own_find(g, note.id);
        if (note.slot == SLOT_NONE || g->own[note.slot].leaving) continue;
        if (event_is_old(g, &g->own[note.slot], from) || event_is_copy(g, &event->emit, note.id)) continue;
        if (g->callbacks.event == NULL) continue;
        if (!kept) writer_raw(&g->notes.bytes, event->emit.payload, event->emit.payload_size);
        kept = true;
        push(g, &note);
    }
}

/* The note's bytes, moved to where callbacks can't move them. */
static const void *payload(struct gateway *g, const struct note *note)
{
    struct notes *n = &g->notes;
    ARRAY_RESERVE(n->payload, n->payload_room, note->size);
    if (note->size > 0) memcpy(n->payload, n->bytes.data + note->offset, note->size);
    return n->payload;
}

static void tell_event(struct gateway *g, const struct note *note)
{
    uint32_t slot = gateway_own_find(g, note->id);
    if (slot == SLOT_NONE || slot != note->slot || g->own[slot].leaving) return;
    struct terrane_event event = {.code = note->code, .payload = payload(g, note), .payload_size = note->size};
    world_coordinates(&g->world, note->position, &event.x, &event.y, &event.z);
    g->callbacks.event(g->context, note->id.v, &event);
}

static void tell_found(struct gateway *g, const struct note *note)
{
    struct notes *n = &g->notes;
    size_t count = note->size / sizeof(struct query_item);
    if (g->callbacks.found == NULL || count == 0) return;
    ARRAY_RESERVE(n->found, n->found_room, count);
    for (size_t i = 0; i < count; i++) {
        struct query_item item;
        memcpy(&item, n->bytes.data + note->offset + i * sizeof item, sizeof item);
        n->found[i] = (struct terrane_entity){.id = item.id.v};
        world_coordinates(&g->world, item.position, &n->found[i].x, &n->found[i].y, &n->found[i].z);
    }
    g->callbacks.found(g->context, note->request, n->found, count);
}

static void tell(struct gateway *g, const struct note *note)
{
    const struct terrane_callbacks *call = &g->callbacks;
    switch (note->kind) {
    case NOTE_READY:
        if (call->ready != NULL) call->ready(g->context);
        break;
    case NOTE_PAIR: gateway_pair_tell(g, note->slot); break;
    case NOTE_UPDATE: gateway_subject_tell(g, note->slot); break;
    case NOTE_EVENT: tell_event(g, note); break;
    case NOTE_DONE:
        if (call->done != NULL) call->done(g->context, note->request, note->operation, note->id.v, note->error);
        break;
    case NOTE_FOUND: tell_found(g, note); break;
    case NOTE_ERROR:
        if (call->error != NULL) call->error(g->context, note->id.v, note->error, terrane_error_text(note->error));
        break;
    }
}

void gateway_notify_deliver(struct gateway *g)
{
    struct notes *n = &g->notes;
    /* Callbacks may queue more; it comes in the same round, in order. */
    while (n->head < n->count) {
        struct note note = n->items[n->head++];
        tell(g, &note);
    }
    n->head = n->count = 0;
    writer_clear(&n->bytes);
}

void gateway_notify_close(struct gateway *g)
{
    free(g->notes.items);
    free(g->notes.found);
    free(g->notes.payload);
    writer_close(&g->notes.bytes);
    table_close(&g->events[0]);
    table_close(&g->events[1]);
}
