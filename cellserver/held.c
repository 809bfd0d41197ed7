/* The content of one standby leaf: its entities by id and by the primary's slot. */
#include "cellserver/replica.h"

#include "common/array.h"
#include "common/check.h"
#include "common/geometry.h"
#include "common/mutation.h"

#include <stdlib.h>

void held_close(struct held_content *c)
{
    free(c->entities);
    free(c->slots);
    table_close(&c->ids);
    blobs_close(&c->blobs);
    *c = (struct held_content){0};
}

static uint32_t at_slot(const struct held_content *c, uint32_t slot)
{
    return slot < c->slot_room ? c->slots[slot] : 0;
}

static uint32_t entity_take(struct held_content *c)
{
    if (c->free != 0) {
        uint32_t at = c->free - 1;
        c->free = c->entities[at].next_free;
        return at;
    }
    ARRAY_RESERVE(c->entities, c->room, c->end + 1u);
    return c->end++;
}

/* The entity's index; a new one if there is none. */
static uint32_t entity_for(struct held_content *c, struct entity_id id)
{
    uint32_t at = table_get(&c->ids, id.v);
    if (at != TABLE_NONE) {
        c->slots[c->entities[at].slot] = 0;
        return at;
    }
    at = entity_take(c);
    c->entities[at] = (struct held_entity){.id = id};
    table_put(&c->ids, id.v, at);
    c->count++;
    return at;
}

bool held_put(struct held_content *c, const struct standby_item *item)
{
    const struct transfer *t = &item->transfer;
    const struct entity_record *record = &t->record;
    uint32_t there = at_slot(c, item->slot);
    if (there != 0 && !entity_id_equal(c->entities[there - 1].id, record->id)) return false;
    if (item->slot >= LIMIT_ENTITIES) return false;
    uint32_t at = entity_for(c, record->id);
    struct held_entity *e = &c->entities[at];
    struct held_entity before = *e;
    uint32_t state = e->state;
    if (!MUTATION(STATE_OLD) || before.version == 0) blobs_set(&c->blobs, &state, record->state, record->state_size);
    *e = (struct held_entity){.id = record->id,
                              .version = record->version,
                              .position = record->position,
                              .kind = record->kind,
                              .flags = record->flags,
                              .radius = record->radius,
                              .slot = item->slot,
                              .layer = record->layer,
                              .yaw = record->yaw,
                              .pending = item->pending,
                              .state = state,
                              .gateway = t->gateway,
                              .position_sequence = t->position_sequence,
                              .state_sequence = t->state_sequence,
                              .radius_sequence = t->radius_sequence,
                              .enter_request = item->enter_request,
                              .leaving_to = item->leaving_to,
                              .move_sequence = before.move_sequence,
                              .move_position = before.move_position,
                              .move_yaw = before.move_yaw};
    ARRAY_RESERVE(c->slots, c->slot_room, item->slot + 1u);
    c->slots[item->slot] = at + 1;
    return true;
}

bool held_drop(struct held_content *c, struct entity_id id)
{
    uint32_t at = table_get(&c->ids, id.v);
    if (at == TABLE_NONE) return false;
    struct held_entity *e = &c->entities[at];
    c->slots[e->slot] = 0;
    blobs_drop(&c->blobs, e->state);
    table_remove(&c->ids, id.v);
    *e = (struct held_entity){.next_free = c->free};
    c->free = at + 1;
    c->count--;
    return true;
}

/* Deltas come from outside: their sums may be anything. */
static bool coordinate(int32_t from, int32_t delta, int32_t *out)
{
    int64_t sum = (int64_t)from + delta;
    *out = (int32_t)sum;
    return sum == *out;
}

bool held_move(struct held_content *c, const struct world *world, const struct standby_move *move)
{
    uint32_t there = at_slot(c, move->slot);
    if (there == 0) return false;
    struct held_entity *e = &c->entities[there - 1];
    struct position p;
    bool fits = coordinate(e->position.x, move->dx, &p.x) & coordinate(e->position.y, move->dy, &p.y) &
                coordinate(e->position.z, move->dz, &p.z);
    if (!fits || !world_contains(world, p) || p.z < -HEIGHT_END || p.z >= HEIGHT_END) return false;
    e->position = p;
    e->move_sequence = 0; /* the primary lives and has later ones */
    e->yaw = move->yaw;
    return true;
}

struct held_entity *held_find(const struct held_content *c, struct entity_id id)
{
    uint32_t at = table_get(&c->ids, id.v);
    return at == TABLE_NONE ? NULL : &c->entities[at];
}

void held_transfer(const struct held_content *c, const struct held_entity *e, struct transfer *out)
{
    *out = (struct transfer){.gateway = e->gateway,
                             .position_sequence = e->position_sequence,
                             .state_sequence = e->state_sequence,
                             .radius_sequence = e->radius_sequence};
    out->record = (struct entity_record){.id = e->id,
                                         .version = e->version,
                                         .kind = e->kind,
                                         .flags = e->flags,
                                         .layer = e->layer,
                                         .yaw = e->yaw,
                                         .radius = e->radius,
                                         .position = e->position};
    out->record.state = blobs_get(&c->blobs, e->state, &out->record.state_size);
}

size_t held_memory_bytes(const struct held_content *c)
{
    return c->room * sizeof *c->entities + c->slot_room * sizeof *c->slots + table_memory_bytes(&c->ids);
}

void held_commands_free(struct held_command *commands, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) writer_close(&commands[i].command);
    free(commands);
}
