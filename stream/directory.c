#include "stream/directory.h"

#include "common/check.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct claim) == 64, "a claim is a cache line");

#define BIT(change) (1u << (change))
/* Of the time that all orphans have: a lost frame is missed at the next one or a beat, and then asked for. */
#define MISSED_PART 2u

void directory_open(struct directory *d, const struct replica_listener *listener, uint64_t hold_us)
{
    *d = (struct directory){.listener = *listener,
                            .hold_us = hold_us,
                            .entity_free = DIRECTORY_NONE,
                            .claim_free = DIRECTORY_NONE,
                            .first = {DIRECTORY_NONE, DIRECTORY_NONE},
                            .last = {DIRECTORY_NONE, DIRECTORY_NONE}};
}

void directory_close(struct directory *d)
{
    free(d->entities);
    free(d->claims);
    free(d->pending);
    free(d->touched);
    free(d->level);
    table_close(&d->ids);
    blobs_close(&d->blobs);
    *d = (struct directory){0};
}

void directory_set_level(struct directory *d, uint32_t leaf, bool level)
{
    ARRAY_RESERVE(d->level, d->level_room, leaf + 1u);
    d->level[leaf] = level;
}

static void due_remove(struct directory *d, uint32_t entity, enum due_kind kind)
{
    struct due *due = &d->entities[entity].due[kind];
    if (due->at_us == 0) return;
    uint32_t *before = due->before == DIRECTORY_NONE ? &d->first[kind] : &d->entities[due->before].due[kind].after;
    uint32_t *after = due->after == DIRECTORY_NONE ? &d->last[kind] : &d->entities[due->after].due[kind].before;
    *before = due->after;
    *after = due->before;
    due->at_us = 0;
}

static void due_append(struct directory *d, uint32_t entity, enum due_kind kind, uint64_t now_us)
{
    due_remove(d, entity, kind);
    struct due *due = &d->entities[entity].due[kind];
    *due = (struct due){.at_us = now_us + d->hold_us, .before = d->last[kind], .after = DIRECTORY_NONE};
    if (due->before == DIRECTORY_NONE)
        d->first[kind] = entity;
    else
        d->entities[due->before].due[kind].after = entity;
    d->last[kind] = entity;
}

/* The entity of that id; a new, invisible one if there is none. */
static uint32_t entity_of(struct directory *d, struct entity_id id)
{
    uint32_t at = table_get(&d->ids, id.v);
    if (at != TABLE_NONE) return at;
    if (d->entity_free != DIRECTORY_NONE) {
        at = d->entity_free;
        d->entity_free = d->entities[at].claims;
    } else {
        at = d->entity_end++;
        ARRAY_RESERVE(d->entities, d->entity_room, d->entity_end);
        ARRAY_RESERVE(d->pending, d->pending_room, d->entity_end);
    }
    d->entities[at] = (struct entity){.id = id, .claims = DIRECTORY_NONE, .winner = DIRECTORY_NONE};
    d->pending[at] = 0;
    table_put(&d->ids, id.v, at);
    return at;
}

/* Forgets an entity of which nothing is known any more. */
static void entity_settle(struct directory *d, uint32_t at)
{
    struct entity *e = &d->entities[at];
    if (e->winner != DIRECTORY_NONE || e->claims != DIRECTORY_NONE || e->floor != 0) return;
    table_remove(&d->ids, e->id.v);
    *e = (struct entity){.claims = d->entity_free};
    d->entity_free = at;
}

static uint32_t claim_new(struct directory *d, uint32_t entity, uint32_t leaf, uint32_t slot,
                          const struct entity_record *record)
{
    uint32_t at = d->claim_free;
    if (at != DIRECTORY_NONE) {
        d->claim_free = d->claims[at].next;
    } else {
        at = d->claim_end++;
        ARRAY_RESERVE(d->claims, d->claim_room, d->claim_end);
    }
    d->claims[at] = (struct claim){.version = record->version,
                                   .id = record->id,
                                   .position = record->position,
                                   .entity = entity,
                                   .kind = record->kind,
                                   .flags = record->flags,
                                   .radius = record->radius,
                                   .layer = record->layer,
                                   .yaw = record->yaw,
                                   .state = blobs_put(&d->blobs, record->state, record->state_size),
                                   .leaf = leaf,
                                   .slot = slot,
                                   .next = DIRECTORY_NONE};
    return at;
}

static void claim_free(struct directory *d, uint32_t claim)
{
    struct claim *c = &d->claims[claim];
    blobs_drop(&d->blobs, c->state);
    *c = (struct claim){.entity = DIRECTORY_NONE, .next = d->claim_free};
    d->claim_free = claim;
}

static void claim_unlink(struct directory *d, uint32_t claim)
{
    uint32_t *link = &d->entities[d->claims[claim].entity].claims;
    while (*link != claim) link = &d->claims[*link].next;
    *link = d->claims[claim].next;
}

static bool same_place(const struct claim *c, struct position position, uint8_t yaw)
{
    return c->position.x == position.x && c->position.y == position.y && c->position.z == position.z && c->yaw == yaw;
}

static bool same_state(const struct directory *d, const struct claim *c, const uint8_t *state, uint32_t size)
{
    uint32_t mine_size;
    const uint8_t *mine = blobs_get(&d->blobs, c->state, &mine_size);
    return mine_size == size && (size == 0 || memcmp(mine, state, size) == 0);
}

/* What a listener that knows the claim must hear to know the record. */
static uint32_t difference(const struct directory *d, const struct claim *c, const struct entity_record *record)
{
    uint32_t bits = 0;
    if (!same_place(c, record->position, record->yaw)) bits |= BIT(REPLICA_MOVED);
    if (!same_state(d, c, record->state, record->state_size)) bits |= BIT(REPLICA_STATE);
    if (c->version != record->version || c->kind != record->kind || c->flags != record->flags ||
        c->layer != record->layer || c->radius != record->radius)
        bits |= BIT(REPLICA_CHANGED);
    return bits;
}

void directory_record(const struct directory *d, uint32_t claim, struct entity_record *out)
{
    const struct claim *c = &d->claims[claim];
    *out = (struct entity_record){.id = c->id,
                                  .version = c->version,
                                  .kind = c->kind,
                                  .flags = c->flags,
                                  .layer = c->layer,
                                  .yaw = c->yaw,
                                  .radius = c->radius,
                                  .position = c->position};
    out->state = blobs_get(&d->blobs, c->state, &out->state_size);
}

static void entity_crown(struct directory *d, uint32_t entity, uint32_t claim)
{
    d->entities[entity].winner = claim;
    d->claims[claim].marks |= CLAIM_WINS;
    d->visible++;
    directory_touch(d, entity, BIT(REPLICA_APPEARED));
}

/* Takes the crown away; a winner without a leaf ends with it. */
static void entity_uncrown(struct directory *d, uint32_t entity)
{
    struct entity *e = &d->entities[entity];
    uint32_t winner = e->winner;
    e->winner = DIRECTORY_NONE;
    d->visible--;
    d->claims[winner].marks &= (uint8_t)~CLAIM_WINS;
    if (d->claims[winner].leaf != DIRECTORY_NONE) return;
    due_remove(d, entity, DUE_ORPHAN);
    claim_free(d, winner);
}

static void entity_switch(struct directory *d, uint32_t entity, uint32_t to)
{
    struct entity_record record;
    directory_record(d, to, &record);
    uint32_t bits = difference(d, &d->claims[d->entities[entity].winner], &record);
    entity_uncrown(d, entity);
    d->entities[entity].winner = to;
    d->claims[to].marks |= CLAIM_WINS;
    d->visible++;
    directory_touch(d, entity, bits);
}

static void entity_vanish(struct directory *d, uint32_t entity)
{
    struct entity *e = &d->entities[entity];
    d->pending[entity] = 0;
    if (e->told) {
        struct entity_record record;
        directory_record(d, e->winner, &record);
        e->told = false;
        d->telling = true;
        d->listener.entity(d->listener.context, entity, &record, BIT(REPLICA_VANISHED));
        d->telling = false;
    }
    entity_uncrown(d, entity);
}

/* The claim of the highest version, from `version` and the floor on; the newest of equals. */
static uint32_t claim_best(const struct directory *d, uint32_t entity, uint64_t version, bool level)
{
    const struct entity *e = &d->entities[entity];
    uint32_t best = DIRECTORY_NONE;
    for (uint32_t at = e->claims; at != DIRECTORY_NONE; at = d->claims[at].next) {
        const struct claim *c = &d->claims[at];
        if (c->version < e->floor || c->version < version || (level && !d->level[c->leaf])) continue;
        if (best == DIRECTORY_NONE || c->version > d->claims[best].version) best = at;
    }
    return best;
}

/* The winner may be shown no longer: the best of what is level, or nothing. */
static void entity_lapse(struct directory *d, uint32_t entity)
{
    uint32_t best = claim_best(d, entity, 0, true);
    if (best == DIRECTORY_NONE)
        entity_vanish(d, entity);
    else
        entity_switch(d, entity, best);
}

/* A claim came or came back: does it become the entity? Of one leaf's claims of equal version the newest is meant. */
static void claim_contend(struct directory *d, uint32_t claim)
{
    const struct claim *c = &d->claims[claim];
    const struct entity *e = &d->entities[c->entity];
    if (c->version < e->floor || e->winner == claim) return;
    if (e->winner == DIRECTORY_NONE) {
        entity_crown(d, c->entity, claim);
        return;
    }
    const struct claim *w = &d->claims[e->winner];
    bool equal_wins = w->leaf == DIRECTORY_NONE || w->leaf == c->leaf;
    if (c->version > w->version || (c->version == w->version && equal_wins)) entity_switch(d, c->entity, claim);
}

uint32_t directory_claim(struct directory *d, uint32_t leaf, uint32_t slot, const struct entity_record *record)
{
    uint32_t entity = entity_of(d, record->id);
    uint32_t claim = claim_new(d, entity, leaf, slot, record);
    d->claims[claim].next = d->entities[entity].claims;
    d->entities[entity].claims = claim;
    claim_contend(d, claim);
    return claim;
}

uint32_t directory_renew(struct directory *d, uint64_t now_us, uint32_t claim, const struct entity_record *record)
{
    struct claim *c = &d->claims[claim];
    CHECK(entity_id_equal(c->id, record->id));
    if (c->version != record->version) {
        uint32_t leaf = c->leaf, slot = c->slot;
        directory_release(d, now_us, claim, RELEASE_HELD, 0);
        return directory_claim(d, leaf, slot, record);
    }
    uint32_t bits = difference(d, c, record);
    c->position = record->position;
    c->yaw = record->yaw;
    c->kind = record->kind;
    c->flags = record->flags;
    c->layer = record->layer;
    c->radius = record->radius;
    if ((bits & BIT(REPLICA_STATE)) != 0) blobs_set(&d->blobs, &c->state, record->state, record->state_size);
    directory_note(d, c, bits);
    claim_contend(d, claim);
    return claim;
}

static void floor_raise(struct directory *d, uint64_t now_us, uint32_t entity, uint64_t version, bool firm)
{
    struct entity *e = &d->entities[entity];
    if (version > 0 && version >= e->floor) {
        e->firm = firm || (e->firm && version == e->floor);
        e->floor = version;
        due_append(d, entity, DUE_FLOOR, now_us);
    }
    if (e->winner != DIRECTORY_NONE && d->claims[e->winner].version < e->floor) entity_lapse(d, entity);
}

void directory_release(struct directory *d, uint64_t now_us, uint32_t claim, enum claim_release how, uint64_t moved)
{
    struct claim *c = &d->claims[claim];
    uint32_t entity = c->entity;
    claim_unlink(d, claim);
    if (how == RELEASE_ENDED) floor_raise(d, now_us, entity, c->version + 1, false);
    if (how == RELEASE_AT_ONCE) floor_raise(d, now_us, entity, moved > c->version ? moved : c->version, false);
    if ((c->marks & CLAIM_WINS) != 0) {
        uint32_t best = claim_best(d, entity, c->version, false);
        if (best != DIRECTORY_NONE) {
            entity_switch(d, entity, best);
        } else if (how == RELEASE_HELD) {
            c->leaf = c->slot = c->next = DIRECTORY_NONE;
            c->marks = CLAIM_WINS;
            due_append(d, entity, DUE_ORPHAN, now_us);
            return;
        } else {
            entity_lapse(d, entity);
        }
    }
    claim_free(d, claim);
    entity_settle(d, entity);
}

void directory_supersede(struct directory *d, uint64_t now_us, struct entity_id id, uint64_t version)
{
    CHECK(id.v != 0);
    if (version == 0) return; /* nothing is below */
    uint32_t entity = entity_of(d, id);
    floor_raise(d, now_us, entity, version, true);
    entity_settle(d, entity);
}

void directory_adopt(struct directory *d, uint64_t now_us, const struct entity_record *record, uint32_t leaf)
{
    CHECK(record->id.v != 0);
    uint32_t entity = entity_of(d, record->id), winner = d->entities[entity].winner;
    if (winner != DIRECTORY_NONE) {
        const struct claim *w = &d->claims[winner];
        if (w->version > record->version || (w->version == record->version && w->leaf != DIRECTORY_NONE)) return;
    }
    if (record->version >= d->entities[entity].floor) {
        uint32_t claim = claim_new(d, entity, DIRECTORY_NONE, leaf, record);
        claim_contend(d, claim);
        due_append(d, entity, DUE_ORPHAN, now_us);
    }
    entity_settle(d, entity);
}

/* The next orphan from `entity` on that waits for the leaf. */
static uint32_t orphan_of(const struct directory *d, uint32_t entity, uint32_t leaf)
{
    while (entity != DIRECTORY_NONE && d->claims[d->entities[entity].winner].slot != leaf)
        entity = d->entities[entity].due[DUE_ORPHAN].after;
    return entity;
}

void directory_whole_begins(struct directory *d, uint32_t leaf)
{
    for (uint32_t at = orphan_of(d, d->first[DUE_ORPHAN], leaf); at != DIRECTORY_NONE;) {
        d->claims[d->entities[at].winner].marks |= CLAIM_SEEN;
        at = orphan_of(d, d->entities[at].due[DUE_ORPHAN].after, leaf);
    }
}

void directory_whole_ends(struct directory *d, uint32_t leaf)
{
    for (uint32_t at = orphan_of(d, d->first[DUE_ORPHAN], leaf); at != DIRECTORY_NONE;) {
        struct claim *c = &d->claims[d->entities[at].winner];
        if ((c->marks & CLAIM_SEEN) != 0) c->marks |= CLAIM_MISSED;
        at = orphan_of(d, d->entities[at].due[DUE_ORPHAN].after, leaf);
    }
}

/* Brings the end of an orphan forward to `at_us`: it comes behind all that end before. */
static void orphan_hasten(struct directory *d, uint32_t entity, uint64_t at_us)
{
    if (d->entities[entity].due[DUE_ORPHAN].at_us <= at_us) return;
    due_remove(d, entity, DUE_ORPHAN);
    uint32_t before = DIRECTORY_NONE, after = d->first[DUE_ORPHAN];
    while (after != DIRECTORY_NONE && d->entities[after].due[DUE_ORPHAN].at_us <= at_us) {
        before = after;
        after = d->entities[after].due[DUE_ORPHAN].after;
    }
    d->entities[entity].due[DUE_ORPHAN] = (struct due){.at_us = at_us, .before = before, .after = after};
    *(before == DIRECTORY_NONE ? &d->first[DUE_ORPHAN] : &d->entities[before].due[DUE_ORPHAN].after) = entity;
    *(after == DIRECTORY_NONE ? &d->last[DUE_ORPHAN] : &d->entities[after].due[DUE_ORPHAN].before) = entity;
}

void directory_hasten(struct directory *d, uint64_t now_us)
{
    for (uint32_t at = d->first[DUE_ORPHAN]; at != DIRECTORY_NONE;) {
        uint32_t next = d->entities[at].due[DUE_ORPHAN].after;
        struct claim *c = &d->claims[d->entities[at].winner];
        if ((c->marks & CLAIM_MISSED) != 0) orphan_hasten(d, at, now_us + d->hold_us / MISSED_PART);
        c->marks &= (uint8_t)~CLAIM_MISSED;
        at = next;
    }
}

void directory_forget_leaf(struct directory *d, uint32_t leaf)
{
    for (uint32_t at = orphan_of(d, d->first[DUE_ORPHAN], leaf); at != DIRECTORY_NONE;) {
        uint32_t next = d->entities[at].due[DUE_ORPHAN].after;
        d->claims[d->entities[at].winner].slot = DIRECTORY_NONE;
        at = orphan_of(d, next, leaf);
    }
}

static void floor_end(struct directory *d, uint64_t now_us, uint32_t entity)
{
    struct entity *e = &d->entities[entity];
    if (e->firm && e->claims != DIRECTORY_NONE) {
        due_append(d, entity, DUE_FLOOR, now_us);
        return;
    }
    due_remove(d, entity, DUE_FLOOR);
    e->floor = 0;
    e->firm = false;
    if (e->winner == DIRECTORY_NONE) {
        uint32_t best = claim_best(d, entity, 0, true);
        if (best != DIRECTORY_NONE) entity_crown(d, entity, best);
    }
    entity_settle(d, entity);
}

static uint64_t due_first(const struct directory *d, enum due_kind kind)
{
    return d->first[kind] == DIRECTORY_NONE ? UINT64_MAX : d->entities[d->first[kind]].due[kind].at_us;
}

void directory_expire(struct directory *d, uint64_t now_us)
{
    while (directory_due_us(d) <= now_us) {
        if (due_first(d, DUE_ORPHAN) <= due_first(d, DUE_FLOOR)) {
            uint32_t entity = d->first[DUE_ORPHAN];
            entity_lapse(d, entity);
            entity_settle(d, entity);
        } else {
            floor_end(d, now_us, d->first[DUE_FLOOR]);
        }
    }
}

uint64_t directory_due_us(const struct directory *d)
{
    uint64_t orphan = due_first(d, DUE_ORPHAN), floor = due_first(d, DUE_FLOOR);
    return orphan < floor ? orphan : floor;
}

void directory_tell(struct directory *d)
{
    d->telling = true;
    for (uint32_t i = 0; i < d->touched_count; i++) {
        uint32_t entity = d->touched[i], bits = d->pending[entity];
        if (bits == 0) continue;
        struct entity *e = &d->entities[entity];
        d->pending[entity] = 0;
        if (!e->told) bits = BIT(REPLICA_APPEARED);
        e->told = true;
        struct entity_record record;
        directory_record(d, e->winner, &record);
        d->listener.entity(d->listener.context, entity, &record, bits);
    }
    d->touched_count = 0;
    d->telling = false;
}

uint32_t directory_find(const struct directory *d, struct entity_id id)
{
    uint32_t at = table_get(&d->ids, id.v);
    return at == TABLE_NONE || d->entities[at].winner == DIRECTORY_NONE ? DIRECTORY_NONE : at;
}
