/* Ghosts, both ways: what neighbours see of us (the strip), what we keep of them (replicas). */
#include "cellserver/internal.h"

#define ORPHAN_US UINT64_C(2000000)

/* Whether an observer of a neighbour, standing as far past its border as it may, can see what stands at p. */
bool leaf_shows(const struct cellserver *cs, const struct own_leaf *leaf, struct position p)
{
    if (square_depth(leaf->square, p) > cs->strip) return false;
    for (uint32_t i = 0; i < leaf->near_count; i++) {
        if (square_distance(leaf->near[i], p) <= cs->strip) return true;
    }
    return false;
}

void leaf_ghosts_on(struct cellserver *cs, uint32_t at)
{
    if (cs->leaves[at].ghost_on) return;
    cs->leaves[at].ghost_on = true;
    for (uint32_t i = 0; i < cs->entity_count; i++) {
        if (cs->entities[i].status == ENTITY_OWNED && cs->entities[i].leaf == at) entity_update_strip(cs, i);
    }
}

/* Nobody listens: an empty stream costs nothing. Its next subscriber gets a snapshot. */
void leaf_ghosts_off(struct cellserver *cs, uint32_t at)
{
    struct own_leaf *leaf = &cs->leaves[at];
    if (!leaf->ghost_on) return;
    leaf->ghost_on = false;
    for (uint32_t i = 0; i < cs->entity_count; i++) {
        struct entity *e = &cs->entities[i];
        if (e->status != ENTITY_OWNED || e->leaf != at || e->ghost_slot == STREAM_SLOT_NONE) continue;
        stream_leave(leaf->ghost, e->ghost_slot, LEFT_STRIP, 0, QUADKEY_NONE);
        e->ghost_slot = STREAM_SLOT_NONE;
    }
}

static void topic_output(struct cellserver *cs, enum output_kind kind, struct quadkey leaf)
{
    writer_clear(&cs->scratch);
    topic_write(&cs->scratch, STREAM_GHOST, leaf);
    outbox_push(cs->out, (struct output){.kind = kind}, cs->scratch.data, cs->scratch.size);
}

static void ghost_subscribe(void *context, enum stream_kind kind, struct quadkey leaf)
{
    struct cellserver *cs = context;
    const struct leaf_owner *owner = ownership_leaf(&cs->map, leaf);
    uint32_t peer = owner == NULL ? NONE : peer_find(cs, owner->primary);
    if (peer == NONE) return; /* asked again when the map changes, and after retry_us */
    writer_clear(&cs->message);
    subscribe_encode(&cs->message, MESSAGE_SUBSCRIBE, &(struct subscribe){.stream = kind, .leaf = leaf});
    peer_send(cs, peer, &cs->message, false);
}

static void ghost_remove(struct cellserver *cs, uint32_t at)
{
    entity_unplace(cs, at);
    entity_free(cs, at);
    cs->stats.ghosts--;
}

static void ghost_update(struct cellserver *cs, uint32_t at, const struct entity_record *record)
{
    struct entity *e = &cs->entities[at];
    if (aoi_stage(cs->aoi, e->aoi, record->position) != TERRANE_ERR_OK) {
        cs->stats.malformed++;
        return;
    }
    e->version = record->version;
    e->kind = record->kind;
    e->flags = record->flags;
    e->radius = record->radius;
    e->yaw = record->yaw;
    e->position = record->position;
    if (e->layer == record->layer) return;
    e->layer = record->layer;
    CHECK(aoi_set_layer(cs->aoi, e->aoi, record->layer, views_sink, cs) == TERRANE_ERR_OK);
}

/* Ghosts carry no state: nobody reads it here, gateways hear it from the owner's region stream. */
static void ghost_add(struct cellserver *cs, const struct entity_record *record)
{
    if (cs->stats.ghosts >= LIMIT_ENTITIES) {
        cs->stats.dropped++;
        return;
    }
    struct entity_record bare = *record;
    bare.state_size = 0;
    uint32_t at = entity_new(cs, &bare, ENTITY_GHOST);
    if (entity_place(cs, at, 0) != TERRANE_ERR_OK) {
        entity_free(cs, at);
        cs->stats.malformed++;
        return;
    }
    cs->stats.ghosts++;
}

static void ghost_changed(void *context, uint32_t handle, const struct entity_record *record, uint32_t changes)
{
    struct cellserver *cs = context;
    (void)handle;
    uint32_t at = entity_find(cs, record->id);
    /* What is owned here is nobody's ghost, whatever a neighbour's stream still says of its past; and what it says of
     * an entity that has been offered to it counts when it has ACCEPTed. */
    if (at != NONE && cs->entities[at].status == ENTITY_OWNED) return;
    if (changes & (1u << REPLICA_VANISHED)) {
        if (at != NONE) ghost_remove(cs, at);
    } else if (at == NONE) {
        ghost_add(cs, record);
    } else {
        ghost_update(cs, at, record);
    }
}

/* Whether the owner of a foreign leaf will show us what stands at p: the same rule as leaf_shows, from the other side.
 */
static bool shown_to_us(const struct cellserver *cs, struct quadkey leaf, struct position p)
{
    if (!replicas_watches(cs->ghosts, leaf)) return false;
    for (uint32_t i = 0; i < cs->leaf_count; i++) {
        if (cs->leaves[i].used && square_distance(cs->leaves[i].square, p) <= cs->strip) return true;
    }
    return false;
}

/* An owned entity has been given away. Its leaf's new owner speaks of it on a stream that we follow, or will: until
 * then it stands where it stood, so that nobody here loses sight of it. Where it is out of our sight, it goes. */
void ghost_from_owned(struct cellserver *cs, uint32_t at, struct quadkey to)
{
    struct entity *e = &cs->entities[at];
    struct entity_record record;
    entity_record_of(e, &record);
    record.state_size = 0;
    entity_drop_move(cs, at);
    e->status = ENTITY_GHOST;
    e->leaving = false;
    cs->stats.ghosts++;
    CHECK(aoi_set_radius(cs->aoi, e->aoi, 0, NULL, NULL) == TERRANE_ERR_OK);
    uint32_t handle = replicas_find(cs->ghosts, e->id);
    struct entity_record spoken;
    if (handle != NONE && replicas_get(cs->ghosts, handle, &spoken) && spoken.version >= record.version) {
        ghost_update(cs, at, &spoken);
    } else if (shown_to_us(cs, to, record.position)) {
        replicas_adopt(cs->ghosts, cs->now_us, to, &record);
        /* Not taken: a stream has told of its later versions, and that it went out of sight. */
        if (replicas_find(cs->ghosts, record.id) == UINT32_MAX) ghost_remove(cs, at);
    } else {
        ghost_remove(cs, at);
    }
}

/* What was given away is shown until its next owner speaks, which may take a lease and its margin. */
void ghosts_open(struct cellserver *cs)
{
    uint64_t orphan_us = 2 * cs->lease_us > ORPHAN_US ? 2 * cs->lease_us : ORPHAN_US;
    cs->ghosts = replicas_open(
        &(struct replicas_options){.kind = STREAM_GHOST,
                                   .orphan_us = orphan_us,
                                   .listener = {.context = cs, .entity = ghost_changed, .subscribe = ghost_subscribe}});
}

/* A foreign leaf matters if an observer of ours, standing as far past our border as it may, can see something that
 * stands as far past its. */
static bool leaf_is_near(const struct cellserver *cs, const struct leaf_owner *owner)
{
    struct square square = quadkey_square(&cs->world, owner->leaf);
    for (uint32_t i = 0; i < cs->leaf_count; i++) {
        if (!cs->leaves[i].used) continue;
        if (square_gap(cs->leaves[i].square, square) <= cs->strip + cs->world.handoff_hysteresis) return true;
    }
    return false;
}

bool leaf_neighbours(const struct cellserver *cs, const struct own_leaf *leaf, struct quadkey other)
{
    return square_gap(leaf->square, quadkey_square(&cs->world, other)) <= cs->strip + cs->world.handoff_hysteresis;
}

static bool leaf_is_watchable(const struct cellserver *cs, const struct leaf_owner *owner)
{
    return owner != NULL && owner->primary.v != 0 && !node_id_equal(owner->primary, cs->options.info.node) &&
           quadkey_depth(owner->leaf) <= cs->world.depth && leaf_is_near(cs, owner);
}

static void ghost_unwatch(struct cellserver *cs, struct quadkey leaf, const struct leaf_owner *owner)
{
    uint32_t peer = owner == NULL ? NONE : peer_find(cs, owner->primary);
    if (peer != NONE) {
        writer_clear(&cs->message);
        subscribe_encode(&cs->message, MESSAGE_UNSUBSCRIBE, &(struct subscribe){.stream = STREAM_GHOST, .leaf = leaf});
        peer_send(cs, peer, &cs->message, false);
    }
    topic_output(cs, OUTPUT_UNWATCH, leaf);
    replicas_unwatch(cs->ghosts, cs->now_us, leaf, true);
}

/* Which foreign leaves can see into each of ours; then every owned entity's place in the strip. */
static void strips_sync(struct cellserver *cs)
{
    for (uint32_t at = 0; at < cs->leaf_count; at++) {
        struct own_leaf *leaf = &cs->leaves[at];
        leaf->near_count = 0;
        for (uint32_t i = 0; leaf->used && i < cs->map.now.leaf_count; i++) {
            const struct leaf_owner *owner = &cs->map.now.leaves[i];
            if (quadkey_depth(owner->leaf) > cs->world.depth || leaf_find(cs, owner->leaf) != NONE) continue;
            struct square square = quadkey_square(&cs->world, owner->leaf);
            if (square_gap(leaf->square, square) > cs->strip + cs->world.handoff_hysteresis) continue;
            ARRAY_RESERVE(leaf->near, leaf->near_room, leaf->near_count + 1);
            leaf->near[leaf->near_count++] = square;
        }
    }
    for (uint32_t i = 0; i < cs->entity_count; i++) {
        const struct entity *e = &cs->entities[i];
        if (e->status == ENTITY_OWNED && cs->leaves[e->leaf].used) entity_update_strip(cs, i);
    }
}

/* A leaf that we follow is followed on while nobody speaks for it: its ghosts stay until its next owner does. That
 * includes a leaf that we are about to take over. */
static bool leaf_stays_watched(const struct cellserver *cs, const struct leaf_owner *owner)
{
    return owner != NULL && leaf_find(cs, owner->leaf) == NONE && leaf_is_near(cs, owner);
}

void ghosts_sync(struct cellserver *cs)
{
    strips_sync(cs);
    for (uint32_t i = 0; i < cs->watched_count;) {
        struct quadkey leaf = cs->watched[i];
        const struct leaf_owner *owner = ownership_leaf(&cs->map, leaf);
        if (leaf_stays_watched(cs, owner)) {
            i++;
            continue;
        }
        ghost_unwatch(cs, leaf, owner);
        cs->watched[i] = cs->watched[--cs->watched_count];
    }
    for (uint32_t i = 0; i < cs->map.now.leaf_count; i++) {
        const struct leaf_owner *owner = &cs->map.now.leaves[i];
        if (!leaf_is_watchable(cs, owner)) continue;
        if (!replicas_watches(cs->ghosts, owner->leaf)) {
            ARRAY_RESERVE(cs->watched, cs->watched_room, cs->watched_count + 1);
            cs->watched[cs->watched_count++] = owner->leaf;
            topic_output(cs, OUTPUT_WATCH, owner->leaf);
            replicas_watch(cs->ghosts, cs->now_us, owner->leaf);
        }
        replicas_set_epoch(cs->ghosts, cs->now_us, owner->leaf, owner->since);
    }
}

/* An owner that has not heard of the leaf's last change shows what its former owner lacked, which is not what we lack:
 * that a stream is level says nothing of this. Whoever answers has ears, and hears of the map as we do. */
void ghosts_confirm(struct cellserver *cs, uint32_t leaf)
{
    const struct own_leaf *own = &cs->leaves[leaf];
    for (uint32_t i = 0; own->used && i < cs->watched_count; i++) {
        if (leaf_neighbours(cs, own, cs->watched[i])) replicas_confirm(cs->ghosts, cs->now_us, cs->watched[i]);
    }
}
