/* The ownership map as a member (cell server or gateway) knows it: built from MAP messages, whole or by changes.
 *
 * What it is not: it sends nothing and decides nothing; its owner asks for the map again when told to.
 * Order is (term, rev); a whole map arrives in parts and counts only when the last is there.
 * Memory: owned here; pointers into it are valid until the next ownership_apply. */
#ifndef TERRANE_PROTO_OWNERSHIP_H
#define TERRANE_PROTO_OWNERSHIP_H

#include "common/table.h"
#include "proto/messages.h"

/* Leaves sorted by quadkey, nodes in the order in which the map told them. */
struct ownership_list {
    struct leaf_owner *leaves;
    struct node_info *nodes;
    uint32_t leaf_count, leaf_room, node_count, node_room;
    struct table leaf_index, node_index;
    uint32_t depth_min, depth_max; /* of the leaves */
};

struct ownership {      /* zero-initialise to open */
    uint64_t term, rev; /* 0, 0: nothing known yet */
    struct ownership_list now, incoming;
    uint64_t incoming_term, incoming_rev;
    uint32_t incoming_parts; /* parts received so far of the incoming whole map */
};

enum ownership_result {
    OWNERSHIP_SAME,    /* older, a repetition, or a part of a whole map that goes on */
    OWNERSHIP_CHANGED, /* a new revision is in force */
    OWNERSHIP_ASK,     /* a revision was missed: send MAP_REQUEST */
};

void ownership_close(struct ownership *o);
/* Takes a decoded MAP (its lists are consumed). */
enum ownership_result ownership_apply(struct ownership *o, struct map *map);
/* NULL: no such leaf / node. */
const struct leaf_owner *ownership_leaf(const struct ownership *o, struct quadkey leaf);
const struct node_info *ownership_node(const struct ownership *o, struct node_id node);
/* The leaf that holds p; NULL: none in the map. O(depths in use). */
const struct leaf_owner *ownership_at(const struct ownership *o, const struct world *world, struct position p);

#endif
