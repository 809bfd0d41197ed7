/* One question to the coordinators, and what they said: DONE, STATUS or FAULT.
 *
 * Memory: an answer's `json` points into the query lane's buffer, until the next question. */
#ifndef TERRANE_TOOLS_ANSWER_H
#define TERRANE_TOOLS_ANSWER_H

#include "proto/messages.h"
#include "tools/cluster.h"

struct answer {
    enum terrane_error error; /* OK: `done` or `json` holds; TIMED_OUT: nobody has answered */
    struct done done;
    const char *json; /* STATUS: `json_size` bytes; else NULL */
    size_t json_size;
    char text[LIMIT_URL]; /* for people, of either */
};

/* Asks each coordinator until one takes it, that one first the next time; else the last refusal. *stop ends it. */
struct answer answer_ask(struct cluster *c, const struct writer *message, const volatile bool *stop);
/* Refusals that pass by themselves: nobody leads yet, or nobody is there. */
bool answer_passes(enum terrane_error error);
/* The same until one takes it or refuses for good, at most `patience_ms`. */
struct answer answer_wait(struct cluster *c, const struct writer *message, uint64_t patience_ms,
                          const volatile bool *stop);
/* Says on standard error why there was no good answer; the exit code. */
int answer_failed(const char *name, const struct answer *answer);

#endif
