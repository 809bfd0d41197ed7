/* Queries and finds that bots ask while all stand still, and whether the answers are exactly right: who is in the
 * shape, all of them, once each, where they truly are.
 *
 * What it is not: it asks nothing; the caller does and passes on what it is told.
 * Memory: opaque, owned by the caller through open/close; one byte a bot and open question. */
#ifndef TERRANE_TOOLS_QUESTIONS_H
#define TERRANE_TOOLS_QUESTIONS_H

#include "tools/checker.h"

#define QUESTIONS_OPEN 16u

struct questions; /* opaque */

/* A closed rectangle, a closed circle (centre min, radius), or one bot. */
enum question_kind { QUESTION_CIRCLE, QUESTION_RECTANGLE, QUESTION_FIND };
struct question {
    enum question_kind kind;
    struct position min, max;
    uint32_t radius, bot;
};

struct question_counts {
    uint64_t asked, answered, failed, missing, false_found; /* failed: done with an error */
    uint64_t unknown;                                       /* answers to nobody's question */
};

struct questions *questions_open(const struct checker *checker, uint32_t bots, uint64_t first_id);
void questions_close(struct questions *q);
/* Requests are numbered a session. False: too many are open. */
bool questions_begin(struct questions *q, uint32_t session, uint64_t request, const struct question *question);
void questions_found(struct questions *q, uint32_t session, uint64_t request, uint64_t id, struct position position);
/* The answer is whole: it is judged. */
void questions_done(struct questions *q, uint32_t session, uint64_t request, bool failed);
uint32_t questions_open_count(const struct questions *q);
/* What is still open has not been answered: failed. */
void questions_give_up(struct questions *q);
const struct question_counts *questions_counts(const struct questions *q);

#endif
