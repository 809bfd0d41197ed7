/* The sure lane: exactly once, in order, between two incarnations, over links that may lose what was in flight.
 *
 * One session is one side's state towards one peer node: what is queued and unacknowledged for it, and what has been
 * received from it. Pure: no clock, no socket; the owner passes time in and carries packets.
 *
 * Method: sequence numbers, cumulative acks, go-back-n. A packet that starts beyond what is expected is a gap: its
 * sure and fast messages are dropped (counted) and the sender repeats everything unacknowledged after
 * `retransmit_us` without progress, or at once when the link comes up again. Acks ride on every packet; alone only
 * if nothing else is to be said. Fast messages ride in the next packet and are never repeated; `fast_total` lets
 * the receiver count what was lost.
 *
 * Why not selective repeat: links are TCP; loss happens only when a connection breaks, and then it is a suffix.
 *
 * Memory: a session owns its queues; bounded by queue_bytes and queue_messages. */
#ifndef TERRANE_PROTO_SESSION_H
#define TERRANE_PROTO_SESSION_H

#include "proto/packet.h"

struct session_options {
    struct node_id self, peer; /* peer NODE_NONE: not known yet; only fast messages then */
    size_t queue_bytes;        /* 0: LIMIT_SURE_BYTES */
    uint32_t queue_messages;   /* 0: LIMIT_SURE_MESSAGES */
    uint64_t retransmit_us;    /* 0: 250,000 */
};

/* fast_sent, fast_received: messages; fast_lost, fast_stale: packets with fast messages. */
struct session_counters {
    uint64_t packets_sent, packets_received;
    uint64_t sure_sent, sure_received, sure_repeated, sure_duplicates, sure_gaps;
    uint64_t fast_sent, fast_received, fast_lost, fast_stale;
    uint64_t refused_full;
};

struct session; /* opaque */

struct session *session_open(const struct session_options *options); /* never NULL (memory is CHECKed) */
void session_close(struct session *s);                               /* NULL is fine */

/* Queues one message ([kind, ...] in msgpack, at most LIMIT_MESSAGE_BYTES, else MESSAGE_TOO_LARGE); copied.
 * Errors: QUEUE_FULL (counted; nothing is queued). */
enum terrane_error session_push(struct session *s, const void *message, size_t size) TERRANE_MUST_CHECK;
/* The same for the fast lane: rides in the next packet, at most 256 KiB waiting. */
enum terrane_error session_push_fast(struct session *s, const void *message, size_t size) TERRANE_MUST_CHECK;

/* Writes the next packet that is due into w (cleared first); false: nothing to say now. Call until false.
 * A packet holds at most LIMIT_PACKET_TARGET bytes (one message may exceed it). At most 4 MiB are in flight
 * unacknowledged; the rest waits in the queue. */
bool session_fill(struct session *s, uint64_t now_us, struct writer *w);

/* Takes a packet from this peer (packet->from has been matched by the caller). `deliver` gets each new sure message in
 * order, then each fast message (sure = false). deliver may push into this session, not close it.
 * A packet addressed to nobody (to = 0) gives its fast messages and nothing else: its counts belong to the session
 * that the peer opens when it knows us.
 * *fast_lost: packets with fast messages that are missing before this one.
 * Errors: PEER_MISMATCH (addressed to another incarnation; nothing is delivered). */
typedef void session_deliver(void *context, struct cursor message, bool sure);
enum terrane_error session_receive(struct session *s, uint64_t now_us, const struct packet *packet,
                                   session_deliver *deliver, void *context, uint64_t *fast_lost) TERRANE_MUST_CHECK;

void session_link_up(struct session *s, uint64_t now_us); /* repeat what is unacknowledged, at once */
/* When session_fill will have something to say by itself (a repeat); UINT64_MAX: never. */
uint64_t session_deadline_us(const struct session *s);
/* Queued and unacknowledged sure bytes / messages: for flow control above. */
size_t session_queued_bytes(const struct session *s);
uint32_t session_queued_messages(const struct session *s);
bool session_idle(const struct session *s); /* nothing queued, in flight, or to acknowledge */
const struct session_counters *session_counters(const struct session *s);
struct node_id session_peer(const struct session *s);

#endif
