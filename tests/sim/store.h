/* The store model: what Redis and its script do for the coordinator (proto/store.h), with delay and failure.
 *
 * It outlives every coordinator. Saves are fenced by term, leader and epochs, as the real script does; a failed one may
 * have been carried out or not, as with a broken connection.
 * Memory: owned by the simulation. */
#ifndef TERRANE_TESTS_SIM_STORE_H
#define TERRANE_TESTS_SIM_STORE_H

#include "proto/store.h"
#include "tests/sim/dice.h"
#include "tests/sim/queue.h"

struct sim;

#define STORE_PAST 4u

/* What a store holds. */
struct store_content {
    uint64_t term, rev;
    struct node_id leader;
    struct world world;
    struct store_leaf *leaves;
    struct store_server *servers;
    uint32_t leaf_count, leaf_room, server_count, server_room;
};

struct store_model {
    struct store_content now;
    struct store_content past[STORE_PAST]; /* before the last saves, oldest first */
    uint32_t past_count;
    struct store_leader leader; /* whose lease ends at leader_until_us */
    uint64_t leader_until_us;
    uint64_t saves, conflicts, failures;
    struct writer answer;
};

void store_close(struct store_model *s);
/* Its last saves are gone, or all: as after a crash without a journal. */
void store_forget(struct sim *sim, struct dice *d);
/* Carries out OUTPUT_STORE of a member; plans the answer. */
void store_execute(struct sim *sim, uint32_t member, const struct output *output, const uint8_t *bytes);
void store_answered(struct sim *sim, const struct happening *what);

#endif
