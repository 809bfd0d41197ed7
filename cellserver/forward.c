/* Commands for entities that are not to be had now: they wait here, or go on to whoever owns the entity by now.
 *
 * An entity is not to be had while it leaves, while its leaf may not serve, and for one frame after it has arrived. A
 * former owner remembers for a while where an entity went and under which version, for commands that come late, and so
 * that a stale OFFER of it is known for what it is: whoever asks with a lower version holds the past. */
#include "cellserver/internal.h"

#include "common/mutation.h"

#include <stdlib.h>

#define FORWARDS_MAX 65536u
#define HELD_MAX     16384u

static void forget_oldest(struct cellserver *cs)
{
    struct forward_entry *oldest = &cs->forwards[cs->forward_first];
    if (table_get(&cs->forward_index, oldest->id.v) == cs->forward_first) {
        table_remove(&cs->forward_index, oldest->id.v);
    }
    cs->forward_first = (cs->forward_first + 1) % cs->forward_room;
    cs->forward_count--;
}

void forward_depart(struct cellserver *cs, struct entity_id id, uint64_t version, struct node_id to)
{
    if (cs->forwards == NULL) {
        cs->forward_room = FORWARDS_MAX;
        cs->forwards = calloc(cs->forward_room, sizeof *cs->forwards);
        CHECK(cs->forwards != NULL);
        table_reserve(&cs->forward_index, FORWARDS_MAX);
    }
    uint32_t known = table_get(&cs->forward_index, id.v);
    if (known != TABLE_NONE && cs->forwards[known].version > version) return;
    if (known != TABLE_NONE && to.v == 0) to = cs->forwards[known].to;
    if (cs->forward_count == cs->forward_room) forget_oldest(cs);
    uint32_t at = (cs->forward_first + cs->forward_count++) % cs->forward_room;
    cs->forwards[at] =
        (struct forward_entry){.id = id, .to = to, .version = version, .until_us = cs->now_us + FORWARD_KEEP_US};
    table_put(&cs->forward_index, id.v, at);
}

void forward_remember(struct cellserver *cs, struct entity_id id, struct node_id to)
{
    uint32_t at = entity_find(cs, id);
    forward_depart(cs, id, at == NONE ? 0 : cs->entities[at].version, to);
}

void forward_give(struct cellserver *cs, struct entity_id id, struct node_id to)
{
    forward_remember(cs, id, to);
    uint32_t at = table_get(&cs->forward_index, id.v);
    if (at != TABLE_NONE) cs->forwards[at].given = true;
}

bool forward_gave(const struct cellserver *cs, struct entity_id id, struct node_id to)
{
    uint32_t at = table_get(&cs->forward_index, id.v);
    return at != TABLE_NONE && cs->forwards[at].given && node_id_equal(cs->forwards[at].to, to);
}

uint64_t forward_version(const struct cellserver *cs, struct entity_id id)
{
    uint32_t at = table_get(&cs->forward_index, id.v);
    return at == TABLE_NONE ? 0 : cs->forwards[at].version;
}

void forward_forget(struct cellserver *cs, struct entity_id id)
{
    table_remove(&cs->forward_index, id.v);
}

void forward_expire(struct cellserver *cs)
{
    while (cs->forward_count > 0 && cs->forwards[cs->forward_first].until_us <= cs->now_us) forget_oldest(cs);
}

static bool forward_to(struct cellserver *cs, struct node_id to, struct node_id gateway, uint32_t hops,
                       struct cursor command)
{
    uint32_t peer = to.v == 0 ? NONE : peer_find(cs, to);
    if (peer == NONE || hops >= FORWARD_HOPS) return false;
    writer_clear(&cs->message);
    forward_encode(&cs->message, &(struct forward){.gateway = gateway, .hops = hops + 1, .command = command});
    if (!peer_send(cs, peer, &cs->message, true)) return false;
    cs->stats.forwarded++;
    return true;
}

bool forward_command(struct cellserver *cs, struct entity_id id, struct node_id gateway, uint32_t hops,
                     struct cursor command)
{
    uint32_t at = table_get(&cs->forward_index, id.v);
    return at != TABLE_NONE && !MUTATION(FORWARD_FORGOTTEN) &&
           forward_to(cs, cs->forwards[at].to, gateway, hops, command);
}

bool forward_hold(struct cellserver *cs, uint32_t at, struct node_id gateway, struct cursor command)
{
    uint32_t slot = 0;
    while (slot < cs->buffered_count && cs->buffered[slot].used) slot++;
    if (slot == HELD_MAX) return false;
    if (slot == cs->buffered_count) ARRAY_RESERVE(cs->buffered, cs->buffered_room, ++cs->buffered_count);
    struct buffered *b = &cs->buffered[slot];
    b->used = true;
    b->entity = at;
    b->order = ++cs->buffered_order;
    b->gateway = gateway;
    writer_clear(&b->command);
    writer_raw(&b->command, command.at, (size_t)(command.end - command.at));
    return true;
}

void forward_drop_held(struct cellserver *cs, uint32_t at)
{
    for (uint32_t i = 0; i < cs->buffered_count; i++) {
        if (cs->buffered[i].entity == at) cs->buffered[i].used = false;
    }
}

/* The oldest waiting command of an entity; NULL: none. */
static struct buffered *held_next(struct cellserver *cs, uint32_t at)
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
    uint64_t sequence = entity_move_waits(e);
    if (sequence > 0) {
        e->move_buffered = false;
        writer_clear(&cs->single);
        moves_begin(&cs->single, &(struct moves){.sequence = sequence, .count = 1});
        moves_add(&cs->single, &(struct move){.id = e->id, .position = e->pending_position, .yaw = e->pending_yaw});
        forward_to(cs, to, e->gateway, 0, cursor_of(cs->single.data, cs->single.size));
    }
    for (struct buffered *b = held_next(cs, at); b != NULL; b = held_next(cs, at)) {
        b->used = false;
        forward_to(cs, to, b->gateway, 0, cursor_of(b->command.data, b->command.size));
    }
}

void forward_run_held(struct cellserver *cs, uint32_t at)
{
    struct entity_id id = cs->entities[at].id;
    uint64_t last = cs->buffered_order;
    for (struct buffered *b = held_next(cs, at); b != NULL && b->order <= last; b = held_next(cs, at)) {
        b->used = false;
        if (entity_find(cs, id) == at) {
            command_handle(cs, b->gateway, 0, cursor_of(b->command.data, b->command.size));
        }
    }
}

void forward_run_deferred(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->buffered_count; i++) {
        const struct buffered *b = &cs->buffered[i];
        if (!b->used) continue;
        const struct entity *e = &cs->entities[b->entity];
        bool waits = e->status == ENTITY_OWNED && (e->leaving || !leaf_serves(cs, e->leaf));
        if (!waits) forward_run_held(cs, b->entity);
    }
}

void forward_close(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->buffered_room; i++) writer_close(&cs->buffered[i].command);
    free(cs->buffered);
    free(cs->forwards);
    table_close(&cs->forward_index);
}
