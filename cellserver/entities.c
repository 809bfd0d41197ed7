/* The entity table: owned entities and ghosts in one array, their place in the AOI and in their leaf's streams. */
#include "cellserver/internal.h"

#include "common/mutation.h"

#include <stdlib.h>
#include <string.h>

uint32_t entity_find(const struct cellserver *cs, struct entity_id id)
{
    return table_get(&cs->entity_index, id.v);
}

uint32_t entity_new(struct cellserver *cs, const struct entity_record *record, enum entity_status status)
{
    uint32_t at = cs->entity_free;
    if (at != NONE) {
        cs->entity_free = cs->entities[at].next_free;
    } else {
        at = cs->entity_count++;
        ARRAY_RESERVE(cs->entities, cs->entity_room, cs->entity_count);
    }
    struct entity *e = &cs->entities[at];
    uint8_t *state = e->state;
    uint32_t state_room = e->state_room;
    *e = (struct entity){.status = status,
                         .layer = record->layer,
                         .yaw = record->yaw,
                         .kind = record->kind,
                         .flags = record->flags,
                         .radius = record->radius,
                         .id = record->id,
                         .version = record->version,
                         .position = record->position,
                         .state = state,
                         .state_room = state_room,
                         .leaf = NONE,
                         .region_slot = STREAM_SLOT_NONE,
                         .standby_slot = STREAM_SLOT_NONE,
                         .ghost_slot = STREAM_SLOT_NONE,
                         .aoi = AOI_HANDLE_NONE,
                         .view_head = NONE};
    entity_set_state(e, record->state, record->state_size);
    table_put(&cs->entity_index, record->id.v, at);
    return at;
}

static void list_remove(uint32_t *items, uint32_t *count, uint32_t value)
{
    for (uint32_t i = 0; i < *count; i++) {
        if (items[i] == value) {
            items[i] = items[--*count];
            return;
        }
    }
}

void entity_drop_move(struct cellserver *cs, uint32_t at)
{
    if (cs->entities[at].moved) list_remove(cs->moved, &cs->moved_count, at);
    cs->entities[at].moved = false;
}

uint64_t entity_move_waits(const struct entity *e)
{
    return e->move_buffered ? e->buffered_sequence : e->moved ? e->position_sequence : 0;
}

/* Forgets an entity altogether; it is in no stream and not in the AOI any more. Its state's buffer stays for the next
 * user of the slot. */
void entity_free(struct cellserver *cs, uint32_t at)
{
    struct entity *e = &cs->entities[at];
    if (e->leaving) handoff_abandon(cs, at);
    entity_drop_move(cs, at);
    if (e->straying) list_remove(cs->straying, &cs->straying_count, at);
    if (e->touched) list_remove(cs->touched, &cs->touched_count, at);
    views_forget(cs, at);
    table_remove(&cs->entity_index, e->id.v);
    e->status = ENTITY_FREE;
    e->straying = e->touched = false;
    e->next_free = cs->entity_free;
    cs->entity_free = at;
}

void entity_record_of(const struct entity *e, struct entity_record *out)
{
    *out = (struct entity_record){.id = e->id,
                                  .version = e->version,
                                  .kind = e->kind,
                                  .flags = e->flags,
                                  .layer = e->layer,
                                  .yaw = e->yaw,
                                  .radius = e->radius,
                                  .position = e->position,
                                  .state = e->state,
                                  .state_size = e->state_size};
}

void entity_transfer(const struct entity *e, struct transfer *out)
{
    *out = (struct transfer){.gateway = e->gateway,
                             .position_sequence = e->position_sequence,
                             .state_sequence = e->state_sequence,
                             .radius_sequence = e->radius_sequence};
    entity_record_of(e, &out->record);
    if (!e->moved) return;
    out->record.position = e->pending_position; /* position_sequence counts it already */
    out->record.yaw = e->pending_yaw;
}

struct standby_item entity_standby_item(const struct entity *e)
{
    struct standby_item item = {.enter_request = e->enter_request};
    entity_transfer(e, &item.transfer);
    if (e->leaving && !MUTATION(MARK_LOST)) item.leaving_to = e->leaving_to;
    return item;
}

void entity_set_state(struct entity *e, const uint8_t *state, uint32_t size)
{
    ARRAY_RESERVE(e->state, e->state_room, size);
    if (size > 0) memcpy(e->state, state, size);
    e->state_size = size;
}

/* The AOI reports an entity's first view changes before it has returned its handle; until then `entering` stands for
 * every handle that the map does not know. */
enum terrane_error entity_place(struct cellserver *cs, uint32_t at, uint32_t radius)
{
    struct entity *e = &cs->entities[at];
    struct aoi_place place = {.position = e->position, .radius = radius, .layer = e->layer};
    cs->entering = at;
    uint32_t handle = AOI_HANDLE_NONE;
    enum terrane_error error = aoi_enter(cs->aoi, e->id, &place, views_sink, cs, &handle);
    cs->entering = NONE;
    if (error != TERRANE_ERR_OK) return error;
    uint32_t room = cs->handle_room;
    ARRAY_RESERVE(cs->entity_of_handle, cs->handle_room, handle + 1);
    for (uint32_t i = room; i < cs->handle_room; i++) cs->entity_of_handle[i] = NONE;
    cs->entity_of_handle[handle] = at;
    cs->entities[at].aoi = handle;
    return TERRANE_ERR_OK;
}

void entity_unplace(struct cellserver *cs, uint32_t at)
{
    struct entity *e = &cs->entities[at];
    CHECK(aoi_leave(cs->aoi, e->aoi, views_sink, cs) == TERRANE_ERR_OK);
    cs->entity_of_handle[e->aoi] = NONE;
    e->aoi = AOI_HANDLE_NONE;
}

void entity_join_leaf(struct cellserver *cs, uint32_t at, uint32_t leaf_at)
{
    struct entity *e = &cs->entities[at];
    struct own_leaf *leaf = &cs->leaves[leaf_at];
    struct entity_record record;
    entity_record_of(e, &record);
    e->leaf = leaf_at;
    e->joined_at = cs->published;
    e->region_slot = stream_enter(leaf->region, at, &record);
    e->ghost_slot = STREAM_SLOT_NONE;
    leaf->count++;
    cs->stats.owned++;
    quota_take(cs, e->gateway);
    standby_note_put(cs, at);
    entity_update_strip(cs, at);
}

void entity_part_leaf(struct cellserver *cs, uint32_t at, enum left_reason reason, struct quadkey to)
{
    struct entity *e = &cs->entities[at];
    struct own_leaf *leaf = &cs->leaves[e->leaf];
    uint64_t version = reason == LEFT_MOVED ? e->version : 0;
    stream_leave(leaf->region, e->region_slot, reason, version, to);
    if (e->ghost_slot != STREAM_SLOT_NONE) stream_leave(leaf->ghost, e->ghost_slot, reason, version, to);
    standby_note_drop(cs, e->leaf, e->id, e->standby_slot);
    e->region_slot = e->ghost_slot = e->standby_slot = STREAM_SLOT_NONE;
    e->leaf = NONE;
    leaf->count--;
    cs->stats.owned--;
    quota_give(cs, e->gateway);
}

void entity_remove(struct cellserver *cs, uint32_t at)
{
    struct entity *e = &cs->entities[at];
    CHECK(e->status == ENTITY_OWNED);
    history_note(cs, at,
                 &(struct trace_step){.cause = TRACE_LEFT, .from = cs->leaves[e->leaf].key, .node = e->gateway});
    registry_gone(cs, at);
    entity_unplace(cs, at);
    entity_part_leaf(cs, at, LEFT_GONE, QUADKEY_NONE);
    replicas_supersede(cs->ghosts, cs->now_us, e->id, e->version + 1);
    forward_depart(cs, e->id, e->version + 1, NODE_NONE);
    entity_free(cs, at);
}

/* Brings the leaf's ghost stream in line with where the entity stands now. */
void entity_update_strip(struct cellserver *cs, uint32_t at)
{
    struct entity *e = &cs->entities[at];
    struct own_leaf *leaf = &cs->leaves[e->leaf];
    if (!leaf->ghost_on) return;
    bool inside = leaf_shows(cs, leaf, e->position);
    if (inside && e->ghost_slot == STREAM_SLOT_NONE) {
        struct entity_record record;
        entity_record_of(e, &record);
        e->ghost_slot = stream_enter(leaf->ghost, at, &record);
    } else if (!inside && e->ghost_slot != STREAM_SLOT_NONE && e->joined_at != cs->published) {
        stream_leave(leaf->ghost, e->ghost_slot, LEFT_STRIP, 0, QUADKEY_NONE);
        e->ghost_slot = STREAM_SLOT_NONE;
    } else if (e->ghost_slot != STREAM_SLOT_NONE) {
        stream_move(leaf->ghost, e->ghost_slot, e->position, e->yaw);
    }
}

void entity_show(struct cellserver *cs, uint32_t at)
{
    struct entity *e = &cs->entities[at];
    ARRAY_RESERVE(cs->shown, cs->shown_room, cs->shown_count + 1);
    cs->shown[cs->shown_count++] = at;
    if (!cs->leaves[e->leaf].ghost_on || e->ghost_slot != STREAM_SLOT_NONE) return;
    struct entity_record record;
    entity_record_of(e, &record);
    e->ghost_slot = stream_enter(cs->leaves[e->leaf].ghost, at, &record);
}

void entities_settle_shown(struct cellserver *cs)
{
    uint32_t count = cs->shown_count;
    if (count == 0) return; /* there may be no array yet */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = cs->shown[i];
        if (cs->entities[at].status != ENTITY_OWNED) continue;
        entity_update_strip(cs, at);
        handoff_check(cs, at);
    }
    cs->shown_count -= count;
    memmove(cs->shown, cs->shown + count, cs->shown_count * sizeof *cs->shown);
}

void entity_note_move(struct cellserver *cs, uint32_t at)
{
    struct entity *e = &cs->entities[at];
    if (e->moved) return;
    e->moved = true;
    ARRAY_RESERVE(cs->moved, cs->moved_room, cs->moved_count + 1);
    cs->moved[cs->moved_count++] = at;
}

/* The tick's moves, at once: positions, AOI, streams. Borders are looked at afterwards (handoff_check), when every
 * position of the tick is known. */
void entities_apply_moves(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->moved_count; i++) {
        struct entity *e = &cs->entities[cs->moved[i]];
        e->position = e->pending_position;
        e->yaw = e->pending_yaw;
        CHECK(aoi_stage(cs->aoi, e->aoi, e->position) == TERRANE_ERR_OK);
        stream_move(cs->leaves[e->leaf].region, e->region_slot, e->position, e->yaw);
        entity_update_strip(cs, cs->moved[i]);
        standby_note_move(cs, cs->moved[i]);
    }
    cs->stats.moves += cs->moved_count;
    aoi_tick(cs->aoi, views_sink, cs);
    for (uint32_t i = 0; i < cs->moved_count; i++) {
        cs->entities[cs->moved[i]].moved = false;
        handoff_check(cs, cs->moved[i]);
    }
    cs->moved_count = 0;
}

void entities_close(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->entity_room; i++) free(cs->entities[i].state);
    free(cs->entities);
    free(cs->entity_of_handle);
    free(cs->moved);
    free(cs->straying);
    free(cs->touched);
    free(cs->shown);
    table_close(&cs->entity_index);
}
