/* Where browsers find the consoles of all coordinators: a page whose own coordinator is gone for good goes on at
 * another. Memory: values, nothing to free. */
#ifndef TERRANE_CONSOLE_CONSOLES_H
#define TERRANE_CONSOLE_CONSOLES_H

#include "common/limits.h"
#include "proto/wire.h"

#define CONSOLES_MAX    8u
#define CONSOLES_POLICY (CONSOLES_MAX * LIMIT_URL + 256u)

struct consoles {
    char urls[CONSOLES_MAX][LIMIT_URL]; /* without a path */
    uint32_t count;
};

/* Of "http://HOST:PORT,https://HOST"; "" is none. False: something in it is no such url, or they are too many. */
bool consoles_parse(const char *text, struct consoles *out);
/* The page's Content-Security-Policy: the browser runs and loads nothing but what comes from here, and asks the other
 * consoles alone whether they are there. */
void consoles_policy(const struct consoles *consoles, char policy[CONSOLES_POLICY]);
/* A JSON array. */
void consoles_write(const struct consoles *consoles, struct writer *json);

#endif
