/* The simulated network: links (PUSH to PULL) and feeds (PUB to SUB) between members, as io/link behaves.
 *
 * A link is one direction, dialled by its sender. It stands after a delay, delivers in order, breaks at random, and
 * is dialled again. What is in flight when it breaks is lost, or arrives seconds later, after newer packets of the next
 * connection (as kernels do after a partition). A packet for a link that does not stand is dropped, counted. A feed
 * also loses single messages. The subscriber filters by topic prefix.
 *
 * What it is not: it knows no message; plants.c may change bytes on the way.
 * Memory: owned by the simulation. */
#ifndef TERRANE_TESTS_SIM_NETWORK_H
#define TERRANE_TESTS_SIM_NETWORK_H

#include "common/core.h"
#include "tests/sim/dice.h"
#include "tests/sim/queue.h"

struct sim;

#define LINK_BROKEN_KEPT 8u

/* A connection that is no more, and what becomes of its packets. */
struct broken_connection {
    uint32_t connection;
    uint64_t late_us; /* they arrive so much later; 0: lost */
};

struct sim_link {
    uint32_t from, to;    /* members */
    struct node_id named; /* as the sender calls the receiver */
    bool feed;
    uint32_t feed_number;
    bool wanted, up;
    uint32_t connection; /* of now, or the last */
    uint64_t last_arrival_us;
    uint64_t slow_us; /* more delay (scenarios) */
    struct broken_connection broken[LINK_BROKEN_KEPT];
    uint32_t broken_next;
    /* For plants: the number of the message that was lost, the highest sent; the leaf whose frame was lost. */
    uint64_t sure_cut, sure_high, plant_leaf;
    bool plant_deaf; /* all moves are lost from now on */
};

struct network {
    struct sim_link *links;
    uint32_t count, room;
    struct dice dice;
    bool healed; /* nothing breaks or is lost any more */
    uint64_t packets, frames, dropped_unlinked, lost_frames, lost_packets, late_packets, breaks;
};

void network_close(struct network *n);
/* Carry out the outputs LINK, UNLINK, SEND, FEED_LINK, FEED_UNLINK and PUBLISH of a member. */
void network_link(struct sim *sim, uint32_t from, const struct output *output, const uint8_t *url);
void network_unlink(struct sim *sim, uint32_t from, const struct output *output);
void network_send(struct sim *sim, uint32_t from, struct node_id to, const uint8_t *bytes, size_t size);
void network_publish(struct sim *sim, uint32_t from, uint32_t feed, const uint8_t *bytes, size_t size);
/* Handle their happenings: give the event to the member that it concerns. */
void network_link_up(struct sim *sim, const struct happening *what);
void network_link_down(struct sim *sim, const struct happening *what);
void network_told(struct sim *sim, const struct happening *what);
/* True: the message reaches its receiver now. Else it is lost, or comes again later (its bytes are taken). */
bool network_arrives(struct sim *sim, struct happening *what);
/* Breaks a member's links to another at once (scenarios). */
void network_break(struct sim *sim, uint32_t from, uint32_t to);
/* What `from` sends to `to` takes so much longer from now on, packets or feeds (scenarios). */
void network_slow(struct sim *sim, uint32_t from, uint32_t to, bool feed, uint64_t slow_us);
/* A member's process is gone: its links end, those to it break. */
void network_member_gone(struct sim *sim, uint32_t member);

#endif
