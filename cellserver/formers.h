/* Who stood by for a leaf before its present standby.
 *
 * A standby that the map replaces keeps its copy: until the new one is level nobody is told of anything that is not in
 * it, and if the primary dies before, it is all that is left of the leaf. How long that takes nobody can know, so no
 * clock ends it: the primary tells the former ones (STANDBY_END) when the present one is level, or when it hears that
 * it has none: then it answers alone, and every copy is out of date.
 *
 * Memory: part of the leaf. */
#ifndef TERRANE_CELLSERVER_FORMERS_H
#define TERRANE_CELLSERVER_FORMERS_H

#include "common/types.h"

#define FORMERS_MAX 4u /* changes within one copy's time; a fifth's copy lasts until the leaf has another primary */

struct cellserver;

struct standby_formers {
    uint32_t count;
    struct node_id nodes[FORMERS_MAX];
};

void formers_note(struct standby_formers *formers, struct node_id node);
/* The leaf's standby is level: the former ones are told and forgotten. */
void formers_end(struct cellserver *cs, uint32_t leaf);

#endif
