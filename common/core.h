/* The contract between a pure core and its shell: events in, outputs out.
 *
 * A core has no socket, clock, thread, file, random source or environment. Its shell (io/ and a main.c, or the
 * simulator) turns what happens into events, calls x_step, and carries out the outbox in order. Time is a monotonic
 * number of microseconds given with each step.
 *
 * Delivery. A core names a peer by node_id and says once where it is (OUTPUT_LINK: dial a PUSH to that url). Packets
 * to a node without a live link may be dropped by the shell, counted; the session layer repairs. Several LINKs of one
 * node replace each other. The same with feeds: OUTPUT_FEED_LINK makes feed `feed` dial the SUB listener of a node;
 * EVENT_FEED_UP says that its pipe stands (from then on, what is published reaches it, but may be dropped).
 *
 * Memory: an event's bytes are borrowed for the step; an outbox owns its bytes until outbox_clear. */
#ifndef TERRANE_COMMON_CORE_H
#define TERRANE_COMMON_CORE_H

#include "common/errors.h"
#include "common/types.h"

/* The coordinator before its id is known: outputs to it and link events of it carry this until WELCOME names it.
 * Cores LINK this alias themselves at START from their options. Node ids drawn by shells are above 15. */
#define NODE_NONE        ((struct node_id){0})
#define NODE_COORDINATOR ((struct node_id){1})

enum event_kind {
    EVENT_START,     /* once, first */
    EVENT_MESSAGE,   /* bytes from `lane` */
    EVENT_TICK,      /* the tick timer; `late_us` behind its due time */
    EVENT_TIMEOUT,   /* x_deadline_us has passed */
    EVENT_STORED,    /* the answer to the STORE with `token` */
    EVENT_PEER_UP,   /* the link to `node` stands */
    EVENT_PEER_DOWN, /* it broke; what was in flight may be lost */
    EVENT_FEED_UP,   /* the pipe of `feed` to `node` stands */
    EVENT_FEED_DOWN,
};

enum lane {
    LANE_INBOX, /* a packet (proto/packet.h) */
    LANE_FEED,  /* topic and body */
    LANE_QUERY, /* one message from an outside tool, to be answered with OUTPUT_REPLY {token}, once */
};

struct event {
    enum event_kind kind;
    enum lane lane;
    uint32_t feed;
    struct node_id node;
    uint64_t token;
    uint64_t late_us;
    const uint8_t *bytes; /* MESSAGE; STORED: what was read (see enum store_operation) */
    size_t size;
    enum terrane_error error; /* STORED */
};

enum output_kind {
    OUTPUT_SEND,        /* bytes: a packet, to `node` */
    OUTPUT_PUBLISH,     /* bytes: topic and body, on `feed` */
    OUTPUT_REPLY,       /* bytes: a message, to the query `token` */
    OUTPUT_STORE,       /* bytes: see enum store_operation; answered by EVENT_STORED {token} */
    OUTPUT_WATCH,       /* bytes: topic prefix to subscribe on the own SUB listener */
    OUTPUT_UNWATCH,     /* bytes: topic prefix */
    OUTPUT_LINK,        /* bytes: url of `node`'s inbox (NUL-terminated) */
    OUTPUT_UNLINK,      /* node */
    OUTPUT_FEED_LINK,   /* bytes: url of `node`'s SUB listener (NUL-terminated), feed */
    OUTPUT_FEED_UNLINK, /* node, feed */
    OUTPUT_LOG,         /* bytes: one logfmt line without time and level; `level` says how bad */
};

/* What a core may ask of the store. All are msgpack arrays in bytes (proto/store.h). */
enum store_operation {
    STORE_LOAD, /* read the world's map: EVENT_STORED.bytes holds it */
    STORE_SAVE, /* write changed leaves, fenced by term and epoch */
    STORE_LEAD, /* take, renew or give back the world's leadership: EVENT_STORED.bytes says who leads */
};

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };

struct output {
    enum output_kind kind;
    enum store_operation operation; /* STORE */
    enum log_level level;           /* LOG */
    uint32_t feed;
    struct node_id node;
    uint64_t token;
    size_t offset, size; /* of its bytes in the outbox's buffer */
};

/* Outputs of one step, in order. Zero-initialise to open; keeps its buffers between steps. */
struct outbox {
    struct output *items;
    size_t count, room;
    uint8_t *bytes;
    size_t used, bytes_room;
};

void outbox_close(struct outbox *out);
void outbox_clear(struct outbox *out);
/* Copies bytes. `like` gives kind and the other fields; its offset and size are ignored. */
void outbox_push(struct outbox *out, struct output like, const void *bytes, size_t size);
const uint8_t *outbox_bytes(const struct outbox *out, const struct output *item);
/* printf into an OUTPUT_LOG. */
void outbox_log(struct outbox *out, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
