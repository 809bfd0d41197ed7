/* Who stood by for a leaf before its present standby.
 *
 * A standby that the map replaces keeps its copy: until the new one is level nobody is told of anything that is not in
 * it, and if the primary dies before, it is all that is left of the leaf. How long that takes nobody can know, so no
 * clock ends it: the primary tells the former ones (STANDBY_END) when the present one is level, or when it hears that
 * it has none: then it answers alone, and every copy is out of date.
 *
 * A primary whose level standby is promoted has all of the leaf too, when it hears so: the new primary begins with what
 * the old one has told it, and answers nobody before a standby of its own has a whole copy. So what is given up is
 * kept, level at once: as the copy of the new primary's standby if the map makes us that, else as a former one's. It
 * would be promoted under versions above those that the new primary can have given. That holds only if the change is
 * the very next one that our map has seen of the leaf: else somebody may have served it in between; and not if
 * STANDBY_END was faster than our map.
 *
 * Memory: part of the leaf; what is kept belongs to the standby's side (replica.h). */
#ifndef TERRANE_CELLSERVER_FORMERS_H
#define TERRANE_CELLSERVER_FORMERS_H

#include "common/types.h"

#define FORMERS_MAX 4u /* changes within one copy's time; a fifth's copy lasts until the leaf has another primary */

struct cellserver;
struct leaf_owner;

struct standby_formers {
    uint32_t count;
    struct node_id nodes[FORMERS_MAX];
};

void formers_note(struct standby_formers *formers, struct node_id node);
/* The leaf's standby is level: the former ones are told and forgotten. */
void formers_end(struct cellserver *cs, uint32_t leaf);
/* The leaf is about to be given up to `owner`: becomes a level standby leaf. */
void formers_keep_given(struct cellserver *cs, uint32_t leaf, const struct leaf_owner *owner);

#endif
