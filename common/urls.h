/* Where the coordinators are: "URL" or "URL,URL...", and which of them has its turn.
 *
 * One of them leads and answers; who hears nothing goes on to the next. Memory: a value, nothing to free. */
#ifndef TERRANE_COMMON_URLS_H
#define TERRANE_COMMON_URLS_H

#include "common/limits.h"

#include <stdbool.h>

#define URLS_MAX     8u
#define URLS_TURN_US UINT64_C(400000) /* long enough for a connection, HELLO and WELCOME */

struct urls {
    char items[URLS_MAX][LIMIT_URL];
    uint32_t count, at;
    uint64_t turn_us; /* when the next one has its turn, if nobody answers */
};

/* False: an item is empty or too long, or there are too many. */
bool urls_parse(const char *text, struct urls *out);
const char *urls_now(const struct urls *urls);
/* Nobody answers. Whether it is the next one's turn; with a single url never. */
bool urls_turn(struct urls *urls, uint64_t now_us);

#endif
