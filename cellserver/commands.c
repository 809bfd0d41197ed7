/* What gateways ask of their entities. Every command is an idempotent write of a register (position, state, radius),
 * ordered by the gateway's sequence, so repeating one is harmless. */
#include "cellserver/internal.h"

/* A forwarded command may come before the map names its gateway here: the answer waits for that, the oldest least. */
static void result_keep(struct cellserver *cs, struct node_id gateway, const struct result *result)
{
    ARRAY_RESERVE(cs->early, cs->early_room, EARLY_RESULTS);
    cs->early[cs->early_next % EARLY_RESULTS] = (struct early_result){.gateway = gateway, .result = *result};
    cs->early_next++;
}

void command_results_early(struct cellserver *cs, struct node_id gateway)
{
    uint32_t end = cs->early_next, count = end < EARLY_RESULTS ? end : EARLY_RESULTS;
    for (uint32_t i = end - count; i != end; i++) {
        struct early_result *early = &cs->early[i % EARLY_RESULTS];
        if (!node_id_equal(early->gateway, gateway)) continue;
        early->gateway = NODE_NONE;
        command_result(cs, gateway, &early->result);
    }
}

void command_result(struct cellserver *cs, struct node_id gateway, const struct result *result)
{
    uint32_t peer = peer_find(cs, gateway);
    if (result->request == 0) return;
    if (peer == NONE) {
        result_keep(cs, gateway, result);
        return;
    }
    writer_clear(&cs->message);
    result_encode(&cs->message, result);
    peer_send(cs, peer, &cs->message, true);
}

static void answer(struct cellserver *cs, struct node_id gateway, uint64_t request, struct entity_id id,
                   enum terrane_error error)
{
    command_result(cs, gateway, &(struct result){.request = request, .id = id, .error = error});
}

/* A change is answered when its leaf's standby has it; a repetition too, since the first may still be waiting. */
static void answer_durable(struct cellserver *cs, uint32_t leaf, struct node_id gateway, uint64_t request,
                           struct entity_id id)
{
    standby_wait_result(cs, leaf, gateway, &(struct result){.request = request, .id = id});
}

static enum terrane_error enter_leaf(struct cellserver *cs, struct node_id gateway, const struct entity_record *record,
                                     uint32_t *leaf)
{
    if (!world_contains(&cs->world, record->position)) return TERRANE_ERR_POSITION_OUTSIDE;
    if (record->radius > cs->world.radius_max) return TERRANE_ERR_RADIUS_TOO_LARGE;
    if (cs->stats.owned >= LIMIT_ENTITIES) return TERRANE_ERR_LIMIT;
    const struct leaf_owner *owner = ownership_at(&cs->map, &cs->world, record->position);
    if (owner == NULL || owner->primary.v == 0) return TERRANE_ERR_REGION_UNOWNED;
    *leaf = leaf_find(cs, owner->leaf);
    if (*leaf == NONE || !leaf_serves(cs, *leaf)) return TERRANE_ERR_NOT_OWNER;
    if (!standby_room(cs, *leaf)) return TERRANE_ERR_QUEUE_FULL;
    return quota_refuses(cs, gateway) ? TERRANE_ERR_LIMIT : TERRANE_ERR_OK;
}

static void enter_new(struct cellserver *cs, const struct enter *m, struct node_id gateway, uint32_t leaf)
{
    uint32_t ghost = entity_find(cs, m->record.id);
    if (ghost != NONE) {
        /* An older life of this id, last heard of from a neighbour. */
        entity_unplace(cs, ghost);
        entity_free(cs, ghost);
        cs->stats.ghosts--;
    }
    uint32_t at = entity_new(cs, &m->record, ENTITY_OWNED);
    struct entity *e = &cs->entities[at];
    e->gateway = gateway;
    e->enter_request = m->request;
    e->position_sequence = e->state_sequence = e->radius_sequence = m->sequence;
    e->view_whole = true;
    CHECK(entity_place(cs, at, m->record.radius) == TERRANE_ERR_OK);
    replicas_supersede(cs->ghosts, cs->now_us, m->record.id, m->record.version);
    entity_join_leaf(cs, at, leaf);
    views_touch(cs, at);
    history_note(cs, at, &(struct trace_step){.cause = TRACE_ENTERED, .to = cs->leaves[leaf].key, .node = gateway});
    cs->stats.enters++;
}

/* A gateway enters an id anew only when its last life is over. If that life is still on its way from here, its new
 * owner has ended it and the ACCEPT has yet to come. */
static bool life_is_over(const struct entity *e, struct node_id gateway, const struct enter *m)
{
    return e->status == ENTITY_OWNED && e->leaving && node_id_equal(e->gateway, gateway) &&
           m->record.version > e->version && m->sequence > e->state_sequence;
}

/* granted: its id's home has said that it may live, under that version at least; 0: it has not. */
static void enter(struct cellserver *cs, uint32_t peer, struct cursor message, uint64_t granted_version)
{
    bool granted = granted_version > 0;
    struct enter m;
    struct node_id gateway = cs->peers[peer].info.node;
    if (enter_decode(message, &m) != TERRANE_ERR_OK) {
        cs->stats.malformed++;
        return;
    }
    /* Versions come from the clocks of the gateways, and another's may have gone faster: this life must be above the
     * last one, or whoever remembers that one takes it for the past. */
    if (granted && granted_version > m.record.version) m.record.version = granted_version;
    if (granted && forward_version(cs, m.record.id) >= m.record.version)
        m.record.version = forward_version(cs, m.record.id) + 1;
    granted |= !cs->options.unique_ids;
    struct result result = {.request = m.request, .id = m.record.id, .version = m.record.version};
    uint32_t known = entity_find(cs, m.record.id), leaf = NONE;
    if (known != NONE && life_is_over(&cs->entities[known], gateway, &m)) {
        handoff_abandon(cs, known);
        entity_remove(cs, known);
        known = NONE;
    }
    struct entity *e = known == NONE ? NULL : &cs->entities[known];
    if (e != NULL && e->status == ENTITY_OWNED && !leaf_serves(cs, e->leaf)) {
        result.error = TERRANE_ERR_NOT_OWNER;
    } else if (e != NULL && e->status == ENTITY_OWNED && e->leaving && !node_id_equal(e->gateway, gateway)) {
        result.error = TERRANE_ERR_NOT_OWNER; /* whether that life goes on, its next owner knows: ask again */
    } else if (e != NULL && e->status == ENTITY_OWNED) {
        bool again = node_id_equal(e->gateway, gateway) && e->enter_request == m.request;
        result.error = again ? TERRANE_ERR_OK : TERRANE_ERR_ENTITY_EXISTS;
        result.version = e->version;
        leaf = e->leaf;
    } else if (e != NULL && granted && e->version >= m.record.version) {
        result.error = TERRANE_ERR_ENTITY_EXISTS;
    } else {
        result.error = enter_leaf(cs, gateway, &m.record, &leaf);
        if (result.error == TERRANE_ERR_OK && !granted) {
            result.error = registry_claim(cs, &m, gateway, message);
            if (result.error == TERRANE_ERR_OK) return; /* goes on when the home has answered */
        } else if (result.error == TERRANE_ERR_OK) {
            enter_new(cs, &m, gateway, leaf);
        }
    }
    if (result.error == TERRANE_ERR_OK) {
        standby_wait_result(cs, leaf, gateway, &result);
    } else {
        command_result(cs, gateway, &result);
    }
}

void command_enter(struct cellserver *cs, uint32_t peer, struct cursor message)
{
    enter(cs, peer, message, 0);
}

void command_enter_granted(struct cellserver *cs, uint32_t peer, struct cursor message, uint64_t version)
{
    enter(cs, peer, message, version);
}

/* A command for an entity that is not ours, and of which nobody knows where it went. */
static void answer_miss(struct cellserver *cs, struct node_id gateway, uint64_t request, struct entity_id id)
{
    struct result result = {.request = request, .id = id, .error = TERRANE_ERR_NOT_OWNER};
    if (entity_find(cs, id) == NONE && !replica_holds(cs, id)) result.error = TERRANE_ERR_ENTITY_UNKNOWN;
    cs->stats.not_owner++;
    uint32_t leaf = standby_waits_for(cs, id);
    if (leaf != NONE) {
        standby_wait_result(cs, leaf, gateway, &result); /* that it is gone is not certain before */
    } else {
        command_result(cs, gateway, &result);
    }
}

/* The owned entity that a command of this gateway is for; NONE: the command has been forwarded, buffered, or answered
 * with an error. */
static uint32_t command_target(struct cellserver *cs, struct node_id gateway, uint32_t hops, struct cursor command,
                               uint64_t request, struct entity_id id)
{
    uint32_t at = entity_find(cs, id);
    if (at == NONE || cs->entities[at].status != ENTITY_OWNED) {
        if (replica_keep_command(cs, id, gateway, hops, command)) return NONE;
        if (forward_command(cs, id, gateway, hops, command)) return NONE;
        answer_miss(cs, gateway, request, id);
        return NONE;
    }
    if (!node_id_equal(cs->entities[at].gateway, gateway)) {
        cs->stats.dropped++;
        answer(cs, gateway, request, id, TERRANE_ERR_NOT_OWNER);
        return NONE;
    }
    bool full = false;
    if (cs->entities[at].leaving || !leaf_serves(cs, cs->entities[at].leaf)) {
        full = !forward_hold(cs, at, gateway, command);
    } else if (standby_room(cs, cs->entities[at].leaf)) {
        return at;
    } else {
        full = true;
    }
    if (full) {
        cs->stats.dropped++;
        answer(cs, gateway, request, id, TERRANE_ERR_QUEUE_FULL);
    }
    return NONE;
}

static bool command_leave(struct cellserver *cs, struct node_id gateway, uint32_t hops, struct cursor command)
{
    struct leave m;
    if (leave_decode(command, &m) != TERRANE_ERR_OK) return false;
    uint32_t at = command_target(cs, gateway, hops, command, m.request, m.id);
    if (at == NONE) return true;
    if (m.sequence < cs->entities[at].state_sequence) {
        /* It was meant for an earlier life of this id, which is over; a leave comes after all else of its life. */
        cs->stats.stale++;
        answer(cs, gateway, m.request, m.id, TERRANE_ERR_OK);
        return true;
    }
    if (cs->entities[at].joined_at == cs->published) {
        /* A stream says nothing of who comes and goes between two frames; but others may still show the entity where it
         * came from, and wait for this stream to speak of it. So it stays for one frame. */
        if (!forward_hold(cs, at, gateway, command)) answer(cs, gateway, m.request, m.id, TERRANE_ERR_QUEUE_FULL);
        return true;
    }
    uint32_t leaf = cs->entities[at].leaf;
    entity_remove(cs, at);
    cs->stats.leaves_done++;
    answer_durable(cs, leaf, gateway, m.request, m.id);
    return true;
}

static bool command_set_state(struct cellserver *cs, struct node_id gateway, uint32_t hops, struct cursor command)
{
    struct set_state m;
    if (set_state_decode(command, &m) != TERRANE_ERR_OK) return false;
    uint32_t at = command_target(cs, gateway, hops, command, m.request, m.id);
    if (at == NONE) return true;
    struct entity *e = &cs->entities[at];
    if (m.sequence > e->state_sequence) {
        e->state_sequence = m.sequence;
        entity_set_state(e, m.state, m.state_size);
        stream_touch_state(cs->leaves[e->leaf].region, e->region_slot);
        if (e->ghost_slot != STREAM_SLOT_NONE) stream_touch_state(cs->leaves[e->leaf].ghost, e->ghost_slot);
        standby_note_put(cs, at);
    }
    answer_durable(cs, e->leaf, gateway, m.request, m.id);
    return true;
}

static bool command_set_radius(struct cellserver *cs, struct node_id gateway, uint32_t hops, struct cursor command)
{
    struct set_radius m;
    if (set_radius_decode(command, &m) != TERRANE_ERR_OK) return false;
    if (m.radius > cs->world.radius_max) {
        answer(cs, gateway, m.request, m.id, TERRANE_ERR_RADIUS_TOO_LARGE);
        return true;
    }
    uint32_t at = command_target(cs, gateway, hops, command, m.request, m.id);
    if (at == NONE) return true;
    struct entity *e = &cs->entities[at];
    if (m.sequence > e->radius_sequence) {
        e->radius_sequence = m.sequence;
        e->radius = m.radius;
        CHECK(aoi_set_radius(cs->aoi, e->aoi, m.radius, views_sink, cs) == TERRANE_ERR_OK);
        stream_touch_constants(cs->leaves[e->leaf].region, e->region_slot);
        if (e->ghost_slot != STREAM_SLOT_NONE) stream_touch_constants(cs->leaves[e->leaf].ghost, e->ghost_slot);
        standby_note_put(cs, at);
    }
    answer_durable(cs, e->leaf, gateway, m.request, m.id);
    return true;
}

static void move_elsewhere(struct cellserver *cs, struct node_id gateway, uint32_t hops, uint64_t sequence,
                           const struct move *move)
{
    if (hops == 0 && replica_keep_move(cs, gateway, sequence, move)) return;
    writer_clear(&cs->single);
    moves_begin(&cs->single, &(struct moves){.sequence = sequence, .count = 1});
    moves_add(&cs->single, move);
    struct cursor command = cursor_of(cs->single.data, cs->single.size);
    if (!forward_command(cs, move->id, gateway, hops, command)) cs->stats.not_owner++;
}

void command_moves(struct cellserver *cs, struct node_id gateway, uint32_t hops, struct cursor message)
{
    struct moves m;
    struct move move;
    if (moves_decode(message, &m) != TERRANE_ERR_OK) {
        cs->stats.malformed++;
        return;
    }
    while (moves_next(&m, &move)) {
        uint32_t at = entity_find(cs, move.id);
        if (at == NONE || cs->entities[at].status != ENTITY_OWNED) {
            move_elsewhere(cs, gateway, hops, m.sequence, &move);
            continue;
        }
        struct entity *e = &cs->entities[at];
        if (!node_id_equal(e->gateway, gateway) || !world_contains(&cs->world, move.position)) {
            cs->stats.malformed++;
        } else if (m.sequence <= e->position_sequence || (e->move_buffered && m.sequence <= e->buffered_sequence)) {
            cs->stats.stale++;
        } else {
            e->pending_position = move.position;
            e->pending_yaw = move.yaw;
            if (e->leaving) {
                e->move_buffered = true;
                e->buffered_sequence = m.sequence;
            } else {
                e->position_sequence = m.sequence;
                entity_note_move(cs, at);
            }
        }
    }
}

void command_handle(struct cellserver *cs, struct node_id gateway, uint32_t hops, struct cursor command)
{
    enum message_kind kind;
    bool well = message_kind_of(command, &kind) == TERRANE_ERR_OK;
    if (well && kind == MESSAGE_LEAVE) {
        well = command_leave(cs, gateway, hops, command);
    } else if (well && kind == MESSAGE_SET_STATE) {
        well = command_set_state(cs, gateway, hops, command);
    } else if (well && kind == MESSAGE_SET_RADIUS) {
        well = command_set_radius(cs, gateway, hops, command);
    } else if (well && kind == MESSAGE_ATTACH) {
        well = command_attach(cs, gateway, hops, command);
    } else if (well && kind == MESSAGE_MOVES) {
        command_moves(cs, gateway, hops, command);
    } else {
        well = false;
    }
    if (!well) cs->stats.malformed++;
}
