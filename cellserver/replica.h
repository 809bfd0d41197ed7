/* The standby's side of a leaf: what its primary has told of it, ready to be taken over.
 *
 * What it is not: nothing of it is in the entity table, the AOI or a stream; it is served to nobody before promotion.
 * held.c keeps the content of one leaf, replica.c speaks with the primary, promote.c takes over.
 *
 * A standby leaf is made when the map or a primary's first message names it, and gone when the map names another
 * standby or when it has been promoted. Its content is *level* when a whole snapshot and every change since has come;
 * a change that does not fit (its seq, a slot, a place) costs the content: it is counted, and the primary is asked for
 * a new snapshot by an ack of seq 0, which is repeated until one comes. Only what is level is promoted or acked.
 * Memory: all of it is owned by the struct cellserver; a leaf's content is given back when the leaf goes. */
#ifndef TERRANE_CELLSERVER_REPLICA_H
#define TERRANE_CELLSERVER_REPLICA_H

#include "common/table.h"
#include "proto/messages.h"
#include "stream/blobs.h"

struct entity;
struct pending;

/* One entity of a standby leaf, as its primary has it. */
struct held_entity {
    struct entity_id id; /* 0: free */
    uint64_t version;
    struct position position;
    uint32_t kind, flags, radius, slot;
    uint16_t layer;
    uint8_t yaw;
    bool pending;   /* offered to the primary, not committed yet */
    uint32_t state; /* a blob */
    uint32_t next_free;
    struct node_id gateway;
    uint64_t position_sequence, state_sequence, radius_sequence, enter_request;
    struct quadkey leaving_to; /* QUADKEY_NONE: it is not leaving */
    uint64_t move_sequence;    /* of the newest move that its gateway has sent to us meanwhile; 0: none */
    struct position move_position;
    uint8_t move_yaw;
};

/* A primary may have raised a version so often, and told it to others, without its standby's having heard of that. */
#define VERSIONS_UNHEARD UINT64_C(1024)

/* Zero-initialise to open. Slots are the primary's choice; entities stand densely, so that a wild slot costs four bytes
 * a number and not an entity. */
struct held_content {
    struct held_entity *entities;
    uint32_t count, end, room, free; /* free: index + 1 */
    uint32_t *slots;                 /* index + 1; 0: empty */
    uint32_t slot_room;
    struct table ids;
    struct blobs blobs;
};

/* What a standby is told of an own entity, or of one that was offered and is not ours yet; in slot 0. The state stays
 * theirs. */
struct standby_item entity_standby_item(const struct entity *e);
struct standby_item pending_standby_item(const struct pending *p);

void held_close(struct held_content *c);
/* Puts or replaces. False: the slot is another entity's, or the content is full; nothing changes then. */
bool held_put(struct held_content *c, const struct standby_item *item);
bool held_drop(struct held_content *c, struct entity_id id); /* false: not there */
/* False: no entity in that slot, or the place would not be in this world; nothing changes then. */
bool held_move(struct held_content *c, const struct world *world, const struct standby_move *move);
/* NULL: not there. Valid until the next put. */
struct held_entity *held_find(const struct held_content *c, struct entity_id id);
/* What a hand-off needs of it; the state points here. */
void held_transfer(const struct held_content *c, const struct held_entity *e, struct transfer *out);
size_t held_memory_bytes(const struct held_content *c);

/* A reader that asked for the leaf's stream before it is ours: its subscription is made at promotion. The feed that it
 * will probably come by is held for it until then, so that it is dialled when it is needed. */
struct early_reader {
    struct node_id node;
    enum stream_kind stream;
    uint32_t feed;
};

/* A command that came for an entity of a leaf that is about to be ours: it is run after the promotion. */
struct held_command {
    struct node_id gateway;
    uint32_t hops;
    struct writer command;
};

void held_commands_free(struct held_command *commands, uint32_t count);

struct held_leaf {
    bool used;
    struct quadkey key;
    struct node_id primary;
    uint32_t epoch;      /* of the primary's newest message; 0: none has come */
    uint64_t seq, acked; /* applied; last told to the primary */
    uint64_t raise;      /* versions that its present primary may have given beyond these; 0 after a copy of its own */
    bool level;          /* `content` is whole up to seq */
    bool ask;            /* tell the primary that a snapshot is needed */
    uint64_t asked_us;   /* when it was last asked for, or the leaf made */
    struct held_content content;
    struct {
        bool active;
        uint32_t epoch, next, parts;
        uint64_t seq;
        struct held_content content;
    } incoming;          /* the snapshot whose parts are coming in */
    bool retired;        /* the map names another standby */
    bool promoting;      /* the map says that it is ours, its former primary may still serve */
    uint64_t quiet_us;   /* promoting, or the primary is not in the map: when the last beat came whose ack may have been
                            taken for leave to serve */
    uint64_t named_term; /* the last term whose map named the primary's node */
    uint32_t released;   /* the former primary has given it up under the ownership of that epoch */
    bool taken;          /* it has just been promoted */
    struct early_reader *early;
    uint32_t early_count, early_room;
    struct held_command *commands;
    uint32_t command_count, command_room;
    size_t command_bytes;
};

/* An answer to a primary that we do not stand by for. */
struct standby_refusal {
    struct node_id primary;
    struct quadkey leaf;
    uint32_t epoch;
};

struct held_side {
    struct held_leaf *leaves;
    uint32_t count, room; /* of the array */
    uint32_t used;
    struct table index;               /* quadkey -> leaf */
    struct standby_refusal *refusals; /* to be told at the end of the step */
    uint32_t refusal_count, refusal_room;
    uint32_t promoting; /* leaves */
    bool due;           /* some peer is to be acked at the end of the step */
};

/* Of a peer that is the primary of leaves that we stand by for. */
struct standby_beats {
    uint64_t stamp;    /* of its newest beat; 0: none */
    uint64_t heard_us; /* when that came */
    bool due;          /* it is to be acked at the end of the step */
};

#endif
