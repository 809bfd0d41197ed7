/* The envelope of the inbox lanes: all that one process has for one peer at one moment, in one nng message.
 *
 * msgpack: [protocol, from, to, sure_first, sure_ack, fast_total, [sure messages...], [fast messages...]]
 *   protocol    PROTOCOL_VERSION
 *   from, to    node ids; to = 0: whoever listens (only HELLO and WELCOME travel so)
 *   sure_first  number of the first sure message in this packet; 0: none
 *   sure_ack    all sure messages of the other side up to this one have been handled
 *   fast_total  packets with fast messages sent to this peer so far, this one included
 * Each message is an array [kind, field...] (messages.h). */
#ifndef TERRANE_PROTO_PACKET_H
#define TERRANE_PROTO_PACKET_H

#include "proto/wire.h"

#define PROTOCOL_VERSION 2u

struct packet {
    struct node_id from, to;
    uint64_t sure_first, sure_ack, fast_total;
    uint32_t sure_count, fast_count;
    struct cursor sure, fast; /* over the messages; take each with packet_next */
};

/* Checks the envelope and that each message is an array (not what is in it).
 * Errors: MESSAGE_*, VERSION_MISMATCH. */
enum terrane_error packet_decode(const uint8_t *bytes, size_t size, struct packet *out) TERRANE_MUST_CHECK;
/* The bytes of the next message of one of the two lists, as a cursor; false at the end. */
bool packet_next(struct cursor *list, struct cursor *message);
/* Writes the envelope up to where the sure list's items follow. Then: `sure_count` messages raw,
 * packet_fast(w, fast_count), and `fast_count` messages raw. */
void packet_begin(struct writer *w, const struct packet *head, uint32_t sure_count);
void packet_fast(struct writer *w, uint32_t fast_count);

#endif
