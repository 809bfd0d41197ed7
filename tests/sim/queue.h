/* The simulator's clock: what is going to happen, ordered by (time, sequence), a binary heap.
 *
 * Two happenings of the same microsecond come in the order in which they were planned, so a run depends on its seed
 * alone. Memory: the queue owns the bytes of what is in it; what queue_pop returns is the caller's (happening_free). */
#ifndef TERRANE_TESTS_SIM_QUEUE_H
#define TERRANE_TESTS_SIM_QUEUE_H

#include "common/core.h"

enum happening_kind {
    HAPPEN_START,     /* a member begins */
    HAPPEN_TICK,      /* a cell server's tick timer */
    HAPPEN_TIMEOUT,   /* a core's deadline */
    HAPPEN_PACKET,    /* arrives over link `link` */
    HAPPEN_FRAME,     /* arrives over the feed link `link` */
    HAPPEN_QUERY,     /* an outside tool's message with `token` */
    HAPPEN_STORED,    /* the store's answer to `token` */
    HAPPEN_LINK_UP,   /* a dial of `link` comes through */
    HAPPEN_LINK_DOWN, /* `link` breaks */
    HAPPEN_WORK,      /* a gateway's players act */
    HAPPEN_TOLD,      /* a process that stood still hears that `link` is up (token 1) or down (0) */
    HAPPEN_FAULT,     /* a stage of the numbered fault `link` (faults.c) */
};

struct happening {
    uint64_t at_us, sequence;
    enum happening_kind kind;
    uint32_t member;     /* whom it concerns */
    uint32_t link;       /* PACKET, FRAME, LINK_UP, LINK_DOWN */
    uint32_t connection; /* of the link, when it was sent; START, TICK, WORK, STORED, TOLD: the member's incarnation */
    bool late;           /* outlived its connection: arrives after newer ones */
    uint64_t token;
    uint64_t due_us; /* TICK: when it was due; others: unused */
    enum terrane_error error;
    uint8_t *bytes;
    size_t size;
};

struct queue {
    struct happening *items;
    uint32_t count, room;
    uint64_t sequence;
};

void queue_close(struct queue *q);
/* Plans `what` (its sequence is set here). Takes over what->bytes. */
void queue_push(struct queue *q, struct happening what);
/* A copy of bytes for a happening. */
uint8_t *queue_bytes(const void *bytes, size_t size);
bool queue_peek(const struct queue *q, uint64_t *at_us);
struct happening queue_pop(struct queue *q);
void happening_free(struct happening *what);

#endif
