/* One leaf's replica (replica.c, replica_frame.c) and the set that it belongs to (replicas.c). Internal to stream/. */
#ifndef TERRANE_STREAM_REPLICA_H
#define TERRANE_STREAM_REPLICA_H

#include "stream/backlog.h"
#include "stream/directory.h"

enum replica_state {
    REPLICA_WAITING, /* for a snapshot; frames are buffered */
    REPLICA_LEVEL,   /* frames apply */
    REPLICA_STATES
};

enum replica_event {
    REPLICA_GAP,       /* a frame or beat says that something was missed */
    REPLICA_BROKEN,    /* a frame does not fit the content */
    REPLICA_NEW_EPOCH, /* the leaf has another owner */
    REPLICA_PART,      /* the first of several parts of a snapshot */
    REPLICA_WHOLE,     /* a snapshot is complete */
    REPLICA_EVENTS
};

struct replica {
    struct quadkey leaf; /* NONE: free */
    enum replica_state state;
    uint32_t index;
    uint64_t order;      /* of watching: breaks ties of due_us */
    uint32_t epoch;      /* highest from the sure lane; lower ones are stale */
    uint32_t epoch_seen; /* highest from a frame, at least `epoch` */
    uint64_t seen_us;    /* when a frame last had it */
    bool content;        /* content_epoch and seq say what the slots hold */
    uint32_t content_epoch;
    uint64_t seq;
    bool gap_open; /* a gap is counted and not repaired yet */
    bool unsure;   /* asked to be confirmed, and no snapshot has come since */
    bool asked;
    uint64_t asked_us, wait_us, due_us; /* last SUBSCRIBE, time to the one after the next, next */
    struct {
        bool active;
        uint32_t epoch, next, parts;
        uint64_t seq;
    } incoming;       /* the snapshot whose parts are coming in */
    uint32_t *claims; /* by slot; DIRECTORY_NONE */
    uint32_t slot_room, slot_end;
    struct backlog backlog;
};

/* A move that has been checked. */
struct replica_move {
    uint32_t slot;
    int32_t x, y;
};

struct replicas {
    struct replicas_options options;
    struct replicas_counters counters;
    struct directory directory;
    struct replica *leaves;
    uint32_t leaf_room, leaf_end;
    struct table leaf_index;
    uint32_t watched, waiting;
    uint64_t order, now_us;
    uint64_t leaves_due_us; /* no leaf is due earlier */
    /* Kept for their memory. */
    struct replica_move *moves;
    uint32_t move_room;
    struct position *places; /* of the entities that enter in the frame that is being checked */
    uint32_t place_room;
    struct table entering; /* slot + 1 -> index in places */
    uint32_t *due;
    uint32_t due_room;
};

void replica_open(struct replicas *r, struct replica *leaf, struct quadkey key);
void replica_close(struct replicas *r, struct replica *leaf, enum claim_release how);
/* Subscribes (again) now. */
void replica_ask(struct replicas *r, struct replica *leaf);
void replica_set_epoch(struct replicas *r, struct replica *leaf, uint32_t epoch);
/* A decoded frame and its body. */
enum terrane_error replica_hear(struct replicas *r, struct replica *leaf, const struct frame *frame,
                                const uint8_t *body, size_t size);
enum terrane_error replica_snapshot(struct replicas *r, struct replica *leaf, struct snapshot part);

/* Applies a whole frame or, if it does not fit the content, nothing. Errors: MESSAGE_RANGE. */
enum terrane_error replica_apply(struct replicas *r, struct replica *leaf, const struct frame *frame);
/* Makes room for `slot` and puts the claim there. */
void replica_place(struct replica *leaf, uint32_t slot, uint32_t claim);

#endif
