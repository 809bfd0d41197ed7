/* The inside of a stream_writer, shared by writer.c (ticks) and writer_snapshot.c. */
#ifndef TERRANE_STREAM_WRITER_STATE_H
#define TERRANE_STREAM_WRITER_STATE_H

#include "stream/slot_set.h"
#include "stream/writer.h"

/* A slot is free (0), new (USED), told (USED | TOLD) or leaving (TOLD | LEAVING). */
enum slot_mark {
    SLOT_USED = 1,      /* the owner has an entity here */
    SLOT_TOLD = 2,      /* subscribers have it */
    SLOT_LEAVING = 4,   /* the frame that says so is still to come */
    SLOT_STATE = 8,     /* the state blob differs from what was told */
    SLOT_CONSTANTS = 16 /* so do the constants */
};

struct stream_slot {
    union {
        struct {
            struct position now, told;
        };
        struct { /* LEAVING */
            uint64_t version;
            struct quadkey to;
        };
    };
    uint32_t owner;
    uint8_t yaw_now, yaw_told;
    uint8_t marks;  /* of enum slot_mark */
    uint8_t reason; /* LEAVING: enum left_reason */
};

struct stream_writer {
    enum stream_kind kind;
    uint32_t epoch;
    struct quadkey leaf;
    uint64_t seq;
    struct stream_slot *slots;
    uint32_t slot_room, slot_end; /* slots from slot_end on have never been used */
    uint32_t count;
    struct slot_set free;    /* below slot_end */
    struct slot_set changed; /* new ones included */
    struct slot_set leaving;
    uint32_t resume; /* where the walk over `changed` goes on after a frame that was full */
    bool full;       /* the frame of this tick is */
    bool doors_shut; /* departures wait, so nobody enters */
    bool spoken;     /* spoke_tick holds */
    uint64_t spoke_tick;
    struct frame_builder frame;
    size_t budget; /* bytes that may still be added without counting exactly */
    struct stream_counters counters;
};

#endif
