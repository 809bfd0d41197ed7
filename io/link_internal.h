/* What the three files of the link share: link.c (open, close, counters), link_inbound.c (queue, receivers, queries),
 * link_outbound.c (peers, feeds). Nobody else includes this. */
#ifndef TERRANE_IO_LINK_INTERNAL_H
#define TERRANE_IO_LINK_INTERNAL_H

#include "common/table.h"
#include "io/link.h"

#include <nng/nng.h>
#include <pthread.h>
#include <stdatomic.h>

/* Queries that may be open at once. A slow answer holds one of them; what comes when all are held waits in nng. */
#define LINK_QUERIES 64u
/* Second attempts kept for one peer in one flush; beyond that its buffer is full for good. */
#define LINK_WAITING 64u
/* nng's buffers in messages (FACTS: measured): enough for a tick's burst, little enough to be dropped soon. */
#define LINK_SEND_BUFFER 256
#define LINK_SUB_BUFFER  1024
/* What may come in on a query socket, and on sockets from which nothing is read at all. */
#define LINK_QUERY_BYTES  (64u << 10)
#define LINK_UNREAD_BYTES 1024u

/* One entry of the inbound queue. Pipe notices name the dialer, which the draining thread looks up. */
struct arrival {
    enum event_kind kind;
    enum lane lane;
    uint64_t token;
    nng_msg *message;      /* MESSAGE; owned */
    uint32_t dialer, pipe; /* PEER_*, FEED_*; pipe 0: say again what stands */
};

struct arrivals {
    struct arrival *items;
    uint32_t count, room;
};

/* A socket with its one pending receive. */
struct receiver {
    struct link *link;
    enum lane lane;
    nng_socket socket;
    nng_aio *aio; /* NULL: no such socket */
};

/* One REP context: receiving -> asked (waits for the core) -> answering -> receiving. */
enum query_state { QUERY_RECEIVING, QUERY_ASKED, QUERY_ANSWERING };
struct query {
    struct link *link;
    nng_ctx context;
    nng_aio *aio;
    _Atomic uint32_t state; /* enum query_state; nng's threads and ours take turns */
    uint32_t generation;    /* counts questions, so that a late second answer is recognised */
};

struct peer {
    struct node_id node; /* NODE_NONE: free slot */
    nng_socket socket;
    uint32_t dialer, pipe; /* pipe 0: not standing */
    char url[LIMIT_URL];
    nng_msg *waiting[LINK_WAITING]; /* refused once; in order */
    uint32_t waiting_count;
};

/* A peer's socket after link_unpeer. nng 1.5.2 leaks what is being sent when it is closed, and what was handed over
 * just before should still go out: so it is closed a little later. */
#define LINK_LINGER_US 100000u
/* Closings in one round: each waits about a millisecond for nng's threads, and a thousand gateways may go at once. */
#define LINK_CLOSES 2u
struct closing {
    nng_socket socket;
    uint64_t at_us;
};

struct subscriber {
    struct node_id node; /* NODE_NONE: free slot */
    uint32_t feed;
    nng_dialer dialer;
    uint32_t pipe;
    char url[LIMIT_URL];
};

struct feed {
    struct link *link;
    nng_socket socket;
    _Atomic uint32_t pipes; /* dialled and listened, now */
};

struct link {
    struct link_urls urls;
    struct link_counters counters; /* written by the draining thread only */
    void (*wake)(void *context);
    void *wake_context;
    size_t inbound_bytes;
    uint32_t inbound_messages;

    /* Between nng's threads and ours. */
    pthread_mutex_t lock;
    struct arrivals arrived;
    size_t waiting_bytes[3];
    uint32_t waiting_messages[3];
    uint64_t received[3], received_bytes[3], dropped_full[3], receive_errors;
    bool woken;     /* wake has been called since the last swap */
    bool abandoned; /* link_close could not close the receivers: whatever arrives is freed */

    struct arrivals draining; /* ours; from `drained` on still to be delivered */
    uint32_t drained;

    nng_listener listeners[2 * LIMIT_FEEDS + 3];
    uint32_t listener_count;
    _Atomic uint32_t inbound_pipes;
    struct receiver inbox, sub;
    nng_socket rep;
    bool has_rep;
    struct query queries[LINK_QUERIES];

    struct feed *feeds;
    uint32_t feed_count;
    struct subscriber *subscribers;
    uint32_t subscriber_room;
    struct peer **peers; /* by slot; NULL: never used */
    uint32_t peer_room;
    struct table peer_slots; /* node id -> slot */
    struct table dialers;    /* dialer id -> slot of a peer, or of a subscriber with DIALER_FEED */
    struct closing *closing; /* by time */
    uint32_t closing_count, closing_room;
    uint32_t *retry; /* slots of peers with waiting messages */
    uint32_t retry_count, retry_room;
};

#define DIALER_FEED (1u << 31)

/* link_inbound.c */
enum terrane_error inbound_receive(struct receiver *r); /* allocates the aio and starts it */
enum terrane_error inbound_queries(struct link *l);     /* opens the contexts of l->rep and starts them */
void inbound_notice(struct link *l, struct arrival notice);
void inbound_free(struct link *l);                                      /* queues and what is in them */
void inbound_pipe_changed(nng_pipe pipe, nng_pipe_ev what, void *link); /* of a receiving socket */

/* link_outbound.c */
enum terrane_error feed_open(struct link *l, uint32_t index); /* the socket, not yet listening */
/* Turns a pipe notice into the event that the core is to see; false: nothing to see. */
bool outbound_notice(struct link *l, const struct arrival *notice, struct event *event);
void outbound_linger(struct link *l); /* closes what has lingered long enough */
void outbound_close(struct link *l);

#endif
