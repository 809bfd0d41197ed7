/* One rectangle of the world that somebody looks at, and what each cell server has answered about it last: SURVEY
 * questions, their answers, and the picture made of them as JSON.
 *
 * What it is not: it sends nothing and has no clock; console.c asks, and says what time it is.
 * Memory: a look owns copies of the answers; zero-initialise to open. */
#ifndef TERRANE_CONSOLE_LOOK_H
#define TERRANE_CONSOLE_LOOK_H

#include "common/geometry.h"
#include "proto/survey.h"

/* One server's part. */
struct look_share {
    struct node_id node;
    uint64_t asked_us, heard_us; /* 0: never */
    struct writer answer;        /* a SURVEY_RESULT that decodes */
};

struct look {
    struct survey survey; /* as asked; `after` is not used */
    uint32_t generation;  /* of this place in the table: an answer to a former look is not for this one */
    uint64_t wanted_us;   /* when somebody looked last; 0: the place is free */
    struct look_share *shares;
    uint32_t share_count, share_room;
};

/* The place is for that rectangle from now on. */
void look_reset(struct look *l, const struct survey *survey);
void look_close(struct look *l);
bool look_is(const struct look *l, const struct survey *survey); /* it is used, and for exactly that */
/* Of that server; it is added if it is not there. Valid until the next call. */
struct look_share *look_share(struct look *l, struct node_id node);
void look_forget(struct look *l, struct node_id node);
/* Takes an answer over. Errors: those of survey_result_decode, and MESSAGE_RANGE for an answer to another question. */
enum terrane_error look_answer(struct look *l, struct node_id node, uint64_t now_us, const uint8_t *bytes, size_t size,
                               struct survey_result *out) TERRANE_MUST_CHECK;

/* Entities are listed if no more than `most` lie in the rectangle, of all servers together.
 * {"pending": bool, "total": n, "min_x": m, ... "columns": c, "rows": r, "servers": [{"node": "id", "age_ms": n,
 * "tick": n, "stride": n, "total": n, "cells": [gap, count, ...], "entities": ["id", x, y, ...]}]}; lengths in world
 * units. Pending: some server has not answered yet. */
void look_write(const struct look *l, const struct world *world, uint64_t now_us, struct writer *json);

#endif
