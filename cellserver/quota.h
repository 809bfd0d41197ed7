/* How many entities a gateway session may have here: counted per gateway as entities join and part from our leaves.
 * Only an ENTER or ATTACH is ever refused; who comes by a hand-off, a promotion or a move between servers was let in
 * where it entered, and nothing may be lost. Memory: cs->quota, freed by quota_close. */
#ifndef TERRANE_CELLSERVER_QUOTA_H
#define TERRANE_CELLSERVER_QUOTA_H

#include "common/table.h"

struct cellserver;

struct quota_count {
    struct node_id gateway;
    uint32_t owned;
};

struct quota_side {
    struct quota_count *items; /* of gateways that have entities here, in no order */
    uint32_t count, room;
    struct table index; /* node id -> item */
};

void quota_take(struct cellserver *cs, struct node_id gateway);
void quota_give(struct cellserver *cs, struct node_id gateway);
/* Whether that gateway may have no more of them here; then it is counted as refused. */
bool quota_refuses(struct cellserver *cs, struct node_id gateway);
uint32_t quota_owned(const struct cellserver *cs, struct node_id gateway);
void quota_close(struct cellserver *cs);

#endif
