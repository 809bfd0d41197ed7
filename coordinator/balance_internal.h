/* What the planner's files share: balance.c (shares, splits, merges) and balance_moves.c. */
#ifndef TERRANE_COORDINATOR_BALANCE_INTERNAL_H
#define TERRANE_COORDINATOR_BALANCE_INTERNAL_H

#include "coordinator/balance.h"

struct balancer {
    const struct balance_input *in;
    struct balance_knobs knobs; /* without zeros */
    struct balance_view view;
    double *load, *share;     /* of servers */
    uint64_t *entities;       /* of servers */
    uint32_t *first, *leaves; /* leaves[first[s] .. first[s + 1]): the leaves of server s, along the curve */
    uint32_t *owner;          /* of leaves, as decided so far */
    bool *taken;              /* leaves about which something is decided */
    bool *spent;              /* servers that have nothing (more) to give */
    uint32_t *hot;            /* leaves above the split mark */
    struct balance_decision *decisions;
    uint32_t hot_count, decision_count;
    uint32_t load_room, share_room, entities_room, first_room, leaves_room, owner_room, taken_room, spent_room,
        hot_room, decision_room;
};

double balance_leaf_load(const struct balancer *b, uint32_t leaf);
double balance_part(const struct balancer *b, uint32_t server); /* of its share that it bears */
bool balance_takes(const struct balancer *b, uint32_t server);
void balance_decide(struct balancer *b, const struct balance_decision *decision);
bool balance_can_split(const struct balancer *b, uint32_t leaf); /* deep enough it is not, and nothing forbids it */
void balance_refuse_or_split(struct balancer *b, uint32_t leaf, const char *why);

/* balance_moves.c */
void balance_moves(struct balancer *b);
/* Siblings of four that are to be joined come to one server, if the allowance reaches. */
void balance_gather(struct balancer *b, uint32_t leaf);
uint32_t balance_move_room(const struct balancer *b);
void balance_refill(struct balancer *b);

#endif
