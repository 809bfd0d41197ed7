/* The network as the shells see it: every nng socket of one process, behind one inbound queue. The only user of nng.
 *
 * What it is not: it knows no message's content, keeps no session and no time, and calls no core; io/shell does.
 *
 * Senders dial, receivers listen. A link has at most one PULL inbox, one SUB listener and one REP listener, any number
 * of PUB feeds (each listens for outside readers and dials those who asked), and one dialing PUSH a peer. nng 1.5.2
 * decides that shape: closing a receiving socket while traffic arrives may deadlock, a listening PUSH is a
 * use-after-free, so receivers are never closed in operation and PUSH only dials.
 *
 * Threads. nng's threads receive (one receive operation always pending a socket), append to a bounded, locked queue
 * and call options.wake when it was empty. All functions here belong to the one thread that calls link_drain.
 *
 * Nothing blocks. What overflows is dropped and counted by cause (struct link_counters).
 * Memory: opaque; a drained event's bytes are borrowed until the callback returns. */
#ifndef TERRANE_IO_LINK_H
#define TERRANE_IO_LINK_H

#include "common/core.h"
#include "common/limits.h"

struct link; /* opaque */

/* Urls are tcp://HOST:PORT; port 0 takes any free one. NULL or "": no such socket. */
struct link_options {
    const char *inbox_url, *sub_url, *query_url;
    const char *feed_urls[LIMIT_FEEDS];    /* feed i listens at feed_urls[i]; NULL or "": it only dials */
    const char *feed_ws_urls[LIMIT_FEEDS]; /* where it listens for browsers, too: ws://HOST:PORT/PATH; NULL: nowhere */
    uint32_t feed_count;
    const char *advertise_host;  /* host in the urls that peers dial; NULL: the one that is listened on */
    size_t inbound_bytes;        /* waiting in the inbox lane, and again in the feed lane; 0: 64 MiB */
    uint32_t inbound_messages;   /* likewise; 0: 65,536 */
    void (*wake)(void *context); /* from nng's threads: link_drain has something to do; must not call back */
    void *wake_context;
};

/* The urls that others dial, with real ports; "" where there is no such socket. */
struct link_urls {
    char inbox[LIMIT_URL], sub[LIMIT_URL], query[LIMIT_URL];
    char feeds[LIMIT_FEEDS][LIMIT_URL];
};

/* What to tell a person when opening fails. */
struct link_fault {
    char text[320];
};

struct link_counters {
    uint64_t received[3], received_bytes[3]; /* by lane */
    uint64_t dropped_full[3];                /* by lane: the inbound queue was full */
    uint64_t receive_errors;                 /* nng could not receive (memory) */
    uint64_t sent, sent_bytes, send_retries; /* retries: the first attempt met a full buffer */
    uint64_t send_full, send_unlinked;       /* dropped: full buffer twice; the peer has no standing pipe */
    uint64_t send_errors, send_oversize;
    uint64_t published, published_bytes, published_nobody; /* nobody: the feed had no pipe, nothing was sent */
    uint64_t publish_errors;
    uint64_t replied, reply_unknown, reply_errors;
    uint64_t peers_up, peers_down, feeds_up, feeds_down, urls_refused;
    uint32_t peers, subscribers; /* now */
};

/* Makes and binds all sockets; messages queue from now on.
 * Errors: ADDRESS (a url is malformed, not tcp, can't be bound, or listens on a wildcard without advertise_host),
 * LIMIT, MEMORY; `fault` says which and what to do. */
enum terrane_error link_open(const struct link_options *options, struct link **out,
                             struct link_fault *fault) TERRANE_MUST_CHECK;
/* Closes the sending sockets, and the receiving ones if they are quiet (link_quiet); else these stay open, dumb and
 * allocated until the process ends, because closing them could hang. NULL is fine. */
void link_close(struct link *l);
/* Nobody is connected to a receiving socket. */
bool link_quiet(const struct link *l);
const struct link_urls *link_urls(const struct link *l);

/* Calls `each` for at most `max` events that wait, in order of arrival: MESSAGE, PEER_UP, PEER_DOWN, FEED_UP,
 * FEED_DOWN. Returns whether more wait (no further wake comes for these). `each` may call any function of this link but
 * link_drain and link_close. */
typedef void link_each(void *context, const struct event *event);
bool link_drain(struct link *l, uint32_t max, link_each *each, void *context);

/* Dials a PUSH to `url` for `node`; PEER_UP follows when its pipe stands, PEER_DOWN when that breaks, PEER_UP again
 * when it was redialled. Another url replaces the former link. The same url keeps it, and says PEER_UP again if it
 * stands. Errors: ADDRESS (counted). */
enum terrane_error link_peer(struct link *l, struct node_id node, const char *url) TERRANE_MUST_CHECK;
/* No event follows. What nng has taken still goes out for about 100 ms. Unknown: nothing. */
void link_unpeer(struct link *l, struct node_id node);
/* Hands the packet to nng, or drops it, counted. A full buffer gets a second attempt in link_flush; order is kept. */
void link_send(struct link *l, struct node_id node, const void *bytes, size_t size);

/* The same for a feed's dialer to a SUB listener, with FEED_UP and FEED_DOWN. */
enum terrane_error link_feed(struct link *l, uint32_t feed, struct node_id node, const char *url) TERRANE_MUST_CHECK;
void link_unfeed(struct link *l, uint32_t feed, struct node_id node);
void link_publish(struct link *l, uint32_t feed, const void *bytes, size_t size);

/* Topic prefixes of the own SUB listener. Repeating either is fine. */
void link_watch(struct link *l, const void *prefix, size_t size);
void link_unwatch(struct link *l, const void *prefix, size_t size);

/* Answers the query `token`, once; another time it is counted and nothing happens. */
void link_reply(struct link *l, uint64_t token, const void *bytes, size_t size);

/* Second attempts of this round's refused sends. Call it when an outbox has been carried out. */
void link_flush(struct link *l);

void link_counters(const struct link *l, struct link_counters *out);
/* Connections to the own listeners that ended otherwise than by us, since the start: refused greetings, wrong
 * protocols, forged lengths, resets, and peers that simply went (nng tells these no closer apart). Walks all of nng's
 * statistics: for status pages, not for loops. */
uint64_t link_refused(const struct link *l);

#endif
