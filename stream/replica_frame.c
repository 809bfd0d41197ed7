/* One frame onto one replica. Whether a frame is well-formed is known already; whether it fits the content (its slots
 * are taken or free as it says, its deltas stay in the world) is found out in a first walk that changes nothing, so
 * that a frame is applied whole or not at all. The moves' new positions are kept from that walk. */
#include "common/array.h"
#include "common/check.h"
#include "stream/replica.h"

#define BIT(change) (1u << (change))

static uint32_t claim_at(const struct replica *leaf, uint32_t slot)
{
    return slot < leaf->slot_end ? leaf->claims[slot] : DIRECTORY_NONE;
}

void replica_place(struct replica *leaf, uint32_t slot, uint32_t claim)
{
    ARRAY_RESERVE(leaf->claims, leaf->slot_room, slot + 1u);
    while (leaf->slot_end <= slot) leaf->claims[leaf->slot_end++] = DIRECTORY_NONE;
    leaf->claims[slot] = claim;
}

static void mark_departures(struct replicas *r, struct replica *leaf, struct frame f, bool leaves)
{
    uint32_t slot;
    enum left_reason reason;
    uint64_t version;
    struct quadkey to;
    while (frame_next_left(&f, &slot, &reason, &version, &to)) {
        uint32_t claim = claim_at(leaf, slot);
        if (claim == DIRECTORY_NONE) continue;
        struct claim *c = &r->directory.claims[claim];
        c->marks = (uint8_t)(leaves ? c->marks | CLAIM_LEAVES : c->marks & ~CLAIM_LEAVES);
    }
}

/* The place of the entity that holds the slot after lefts and entereds; NULL: nobody does. */
static const struct position *place_of(const struct replicas *r, const struct replica *leaf, uint32_t slot)
{
    uint32_t claim = claim_at(leaf, slot);
    if (claim != DIRECTORY_NONE && (r->directory.claims[claim].marks & CLAIM_LEAVES) == 0)
        return &r->directory.claims[claim].position;
    uint32_t entering = table_get(&r->entering, (uint64_t)slot + 1);
    return entering == TABLE_NONE ? NULL : &r->places[entering];
}

static bool check_entered(struct replicas *r, struct replica *leaf, struct frame f)
{
    uint32_t slot, count = 0;
    struct entity_record record;
    while (frame_next_entered(&f, &slot, &record)) {
        if (place_of(r, leaf, slot) != NULL) return false;
        ARRAY_RESERVE(r->places, r->place_room, count + 1u);
        r->places[count] = record.position;
        table_put(&r->entering, (uint64_t)slot + 1, count++);
    }
    return true;
}

static bool check_moved(struct replicas *r, const struct replica *leaf, struct frame f)
{
    uint32_t slot, count = 0;
    int32_t dx, dy;
    ARRAY_RESERVE(r->moves, r->move_room, f.moved_count);
    while (frame_next_moved(&f, &slot, &dx, &dy)) {
        const struct position *place = place_of(r, leaf, slot);
        if (place == NULL) return false;
        int32_t x = place->x + dx, y = place->y + dy;
        if (x < 0 || x >= POSITION_END || y < 0 || y >= POSITION_END) return false;
        r->moves[count++] = (struct replica_move){slot, x, y};
    }
    CHECK(count == f.moved_count);
    return true;
}

static bool check_rest(struct replicas *r, const struct replica *leaf, struct frame f)
{
    uint32_t slot, word, size;
    uint16_t layer;
    uint8_t yaw;
    int32_t dz;
    const uint8_t *state;
    while (frame_next_turned(&f, &slot, &yaw)) {
        if (place_of(r, leaf, slot) == NULL) return false;
    }
    while (frame_next_climbed(&f, &slot, &dz)) {
        const struct position *place = place_of(r, leaf, slot);
        if (place == NULL) return false;
        int64_t z = (int64_t)place->z + dz;
        if (z < -HEIGHT_END || z >= HEIGHT_END) return false;
    }
    while (frame_next_state(&f, &slot, &state, &size)) {
        if (place_of(r, leaf, slot) == NULL) return false;
    }
    while (frame_next_changed(&f, &slot, &word, &word, &layer, &word)) {
        if (place_of(r, leaf, slot) == NULL) return false;
    }
    return true;
}

static void forget_entering(struct replicas *r, struct frame f)
{
    uint32_t slot;
    struct entity_record record;
    while (frame_next_entered(&f, &slot, &record)) table_remove(&r->entering, (uint64_t)slot + 1);
}

/* Of ghosts, only who went to a leaf whose stream is followed is waited for: it is shown there once, wherever it
 * stands. A region's follower waits for all of them: it follows a leaf when it hears that it must. */
static enum claim_release release_for(const struct replicas *r, enum left_reason reason, struct quadkey to)
{
    if (reason == LEFT_GONE) return RELEASE_ENDED;
    if (r->options.kind == STREAM_REGION) return RELEASE_HELD;
    return reason == LEFT_MOVED && replicas_watches(r, to) ? RELEASE_HELD : RELEASE_AT_ONCE;
}

static void apply_left(struct replicas *r, struct replica *leaf, struct frame f)
{
    uint32_t slot;
    enum left_reason reason;
    uint64_t version;
    struct quadkey to;
    while (frame_next_left(&f, &slot, &reason, &version, &to)) {
        uint32_t claim = claim_at(leaf, slot);
        if (claim == DIRECTORY_NONE) continue;
        leaf->claims[slot] = DIRECTORY_NONE;
        directory_release(&r->directory, r->now_us, claim, release_for(r, reason, to), version);
    }
}

static void apply_entered(struct replicas *r, struct replica *leaf, struct frame f)
{
    uint32_t slot;
    struct entity_record record;
    while (frame_next_entered(&f, &slot, &record))
        replica_place(leaf, slot, directory_claim(&r->directory, leaf->index, slot, &record));
}

static void apply_moved(struct replicas *r, struct replica *leaf, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct replica_move *move = &r->moves[i];
        struct claim *c = &r->directory.claims[leaf->claims[move->slot]];
        c->position.x = move->x;
        c->position.y = move->y;
        directory_note(&r->directory, c, BIT(REPLICA_MOVED));
    }
}

static void apply_rest(struct replicas *r, struct replica *leaf, struct frame f)
{
    struct directory *d = &r->directory;
    uint32_t slot, kind, flags, radius, size;
    uint16_t layer;
    uint8_t yaw;
    int32_t dz;
    const uint8_t *state;
    while (frame_next_turned(&f, &slot, &yaw)) {
        struct claim *c = &d->claims[leaf->claims[slot]];
        c->yaw = yaw;
        directory_note(d, c, BIT(REPLICA_MOVED));
    }
    while (frame_next_climbed(&f, &slot, &dz)) {
        struct claim *c = &d->claims[leaf->claims[slot]];
        c->position.z += dz;
        directory_note(d, c, BIT(REPLICA_MOVED));
    }
    while (frame_next_state(&f, &slot, &state, &size)) {
        struct claim *c = &d->claims[leaf->claims[slot]];
        blobs_set(&d->blobs, &c->state, state, size);
        directory_note(d, c, BIT(REPLICA_STATE));
    }
    while (frame_next_changed(&f, &slot, &kind, &flags, &layer, &radius)) {
        struct claim *c = &d->claims[leaf->claims[slot]];
        c->kind = kind;
        c->flags = flags;
        c->layer = layer;
        c->radius = radius;
        directory_note(d, c, BIT(REPLICA_CHANGED));
    }
}

enum terrane_error replica_apply(struct replicas *r, struct replica *leaf, const struct frame *frame)
{
    mark_departures(r, leaf, *frame, true);
    bool fits = check_entered(r, leaf, *frame) && check_moved(r, leaf, *frame) && check_rest(r, leaf, *frame);
    if (frame->entered_count > 0) forget_entering(r, *frame);
    if (!fits) {
        mark_departures(r, leaf, *frame, false);
        return TERRANE_ERR_MESSAGE_RANGE;
    }
    apply_left(r, leaf, *frame);
    apply_entered(r, leaf, *frame);
    apply_moved(r, leaf, frame->moved_count);
    apply_rest(r, leaf, *frame);
    return TERRANE_ERR_OK;
}
