/* The cell server's part in maps that people look at: counts of owned entities and the latest hand-offs
 * (proto/survey.h). It keeps a ring of those; the counts are made when somebody asks.
 *
 * Memory: survey_side owns its tables; they are made at the first need and do not grow after that. */
#ifndef TERRANE_CELLSERVER_SURVEY_H
#define TERRANE_CELLSERVER_SURVEY_H

#include "proto/survey.h"

struct cellserver;

struct survey_side {
    struct survey_crossing *ring; /* SURVEY_CROSSINGS_MAX */
    uint64_t crossings;           /* so far; the last one lies at (crossings - 1) % SURVEY_CROSSINGS_MAX */
    uint32_t *counts;             /* SURVEY_SIDE_MAX^2, zero between questions */
    struct survey_entity *listed; /* SURVEY_ENTITIES_MAX */
};

void survey_open(struct survey_side *side);
void survey_close(struct survey_side *side);
/* An owned entity is about to leave its leaf for `to`, which `node` has. */
void survey_note_crossing(struct cellserver *cs, uint32_t entity, struct quadkey to, struct node_id node);
/* Writes a SURVEY_RESULT. Looks at 2^17 places of the entity table at most. */
void survey_answer(struct cellserver *cs, const struct survey *m, struct writer *w);

#endif
