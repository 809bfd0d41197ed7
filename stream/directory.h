/* The entities behind all watched leaves: who claims each, which claim is the entity, and what the listener was told.
 *
 * A claim is one leaf's word on one entity (its slot there and a whole record). The claim with the highest version
 * wins. A claim that leaves while it wins, with no other of at least its version, stays the winner for `hold_us`
 * without a leaf: the orphan. A claim of a lower version is older knowledge and is never shown instead, unless the
 * orphan's time runs out and the claim's leaf is level: then it is the only truth there is.
 * A floor is the lowest version that may win: a tombstone (one above the version that is gone, for hold_us), the
 * version that was let go at once (likewise), or what directory_supersede said (for hold_us, and as long as anybody
 * claims the entity after that).
 *
 * What it is not: it knows no frames, epochs or states of leaves, but which leaf indices are level.
 *
 * Changes are collected and told by directory_tell, once an entity and call, in the order of their first change; an end
 * is told at once, since its last record is gone afterwards.
 * Memory: owned here. References are indices; pointers into the arrays hold until the next call that adds. */
#ifndef TERRANE_STREAM_DIRECTORY_H
#define TERRANE_STREAM_DIRECTORY_H

#include "common/array.h"
#include "common/table.h"
#include "stream/blobs.h"
#include "stream/replicas.h"

#define DIRECTORY_NONE UINT32_MAX

enum claim_mark {
    CLAIM_WINS = 1,
    CLAIM_SEEN = 2,   /* is in the snapshot that is being taken */
    CLAIM_LEAVES = 4, /* leaves in the frame that is being checked */
    CLAIM_MISSED = 8  /* an orphan: the leaf that was to speak of it has spoken, without it */
};

/* 64 bytes, a cache line: frames touch one claim for each moved entity. */
struct claim {
    uint64_t version;
    struct entity_id id;
    struct position position;
    uint32_t entity; /* its handle */
    uint32_t kind, flags, radius;
    uint16_t layer;
    uint8_t yaw, marks;
    uint32_t state;      /* a blob */
    uint32_t leaf, slot; /* orphans: DIRECTORY_NONE, and the index of the leaf that is to speak of it, if known */
    uint32_t next;       /* of the same entity; of the free list */
};

enum due_kind { DUE_ORPHAN, DUE_FLOOR, DUE_KINDS };

/* A place in a list of entities by time. All wait equally long, so appending keeps the order (time, sequence). */
struct due {
    uint64_t at_us; /* 0: not in the list */
    uint32_t before, after;
};

struct entity {
    struct entity_id id; /* 0: free, next free one in `claims` */
    uint64_t floor;
    uint32_t claims; /* those with a leaf, newest first */
    uint32_t winner; /* DIRECTORY_NONE: not visible */
    struct due due[DUE_KINDS];
    bool told; /* the listener has it */
    bool firm; /* the floor is by better knowledge: it stays while there are claims */
};

struct directory {
    struct replica_listener listener;
    uint64_t hold_us;
    struct entity *entities;
    uint32_t entity_room, entity_end, entity_free, visible;
    struct claim *claims;
    uint32_t claim_room, claim_end, claim_free;
    struct table ids;
    struct blobs blobs;
    uint8_t *pending; /* bits of enum replica_change, by entity */
    uint32_t pending_room;
    uint32_t *touched; /* entities with pending bits, in order */
    uint32_t touched_count, touched_room;
    bool *level; /* by leaf index */
    uint32_t level_room;
    uint32_t first[DUE_KINDS], last[DUE_KINDS];
    bool telling;
};

enum claim_release {
    RELEASE_HELD,    /* its next leaf may not have spoken yet */
    RELEASE_AT_ONCE, /* it is where nobody looks any more; older knowledge is not shown instead */
    RELEASE_ENDED    /* its life is over */
};

void directory_open(struct directory *d, const struct replica_listener *listener, uint64_t hold_us);
void directory_close(struct directory *d);
void directory_set_level(struct directory *d, uint32_t leaf, bool level);

/* A new claim; returns its index. */
uint32_t directory_claim(struct directory *d, uint32_t leaf, uint32_t slot, const struct entity_record *record);
/* The claim says all this now (a snapshot's item of the same id). Returns its index, perhaps another one. */
uint32_t directory_renew(struct directory *d, uint64_t now_us, uint32_t claim, const struct entity_record *record);
/* moved: the version under which another leaf has it now; 0: unknown. */
void directory_release(struct directory *d, uint64_t now_us, uint32_t claim, enum claim_release how, uint64_t moved);
void directory_supersede(struct directory *d, uint64_t now_us, struct entity_id id, uint64_t version);
/* leaf: the index of the one that is to speak of it; DIRECTORY_NONE: none is known. */
void directory_adopt(struct directory *d, uint64_t now_us, const struct entity_record *record, uint32_t leaf);
/* A whole snapshot of a leaf begins and ends: what it was to speak of before it began, and does not, is not there; it
 * may have gone on to another. */
void directory_whole_begins(struct directory *d, uint32_t leaf);
void directory_whole_ends(struct directory *d, uint32_t leaf);
void directory_forget_leaf(struct directory *d, uint32_t leaf); /* nobody waits for it any more */

/* All leaves are level: who is not where it was to be has little time left. */
void directory_hasten(struct directory *d, uint64_t now_us);
/* Ends orphans and floors whose time has come. */
void directory_expire(struct directory *d, uint64_t now_us);
uint64_t directory_due_us(const struct directory *d); /* UINT64_MAX: nothing waits */
/* Tells the listener what is pending. */
void directory_tell(struct directory *d);

/* Fills a record; its state points here. */
void directory_record(const struct directory *d, uint32_t claim, struct entity_record *out);
/* The visible entity's handle, or DIRECTORY_NONE. */
uint32_t directory_find(const struct directory *d, struct entity_id id);

static inline void directory_touch(struct directory *d, uint32_t entity, uint32_t bits)
{
    uint8_t before = d->pending[entity];
    d->pending[entity] = (uint8_t)(before | bits);
    if (before != 0 || bits == 0) return;
    ARRAY_RESERVE(d->touched, d->touched_room, d->touched_count + 1u);
    d->touched[d->touched_count++] = entity;
}

/* The claim's record was changed in place; bits: 1 << enum replica_change. */
static inline void directory_note(struct directory *d, const struct claim *claim, uint32_t bits)
{
    if ((claim->marks & CLAIM_WINS) != 0) directory_touch(d, claim->entity, bits);
}

#endif
