/* Looks the store's name up again, on a thread of its own: a look-up blocks, and a name may mean another address after
 * a restart (a container's does).
 *
 * What it is not: the first look-up, which is store_open's own, so that a wrong name is told at once.
 * Memory: opaque. */
#ifndef TERRANE_IO_LOOKUP_H
#define TERRANE_IO_LOOKUP_H

#include "io/store_address.h"

struct lookup;  /* opaque */
struct ev_loop; /* libev's */

/* As store_address_parse, which it is but in tests. Called on the look-up's thread. */
typedef enum terrane_error lookup_resolve(const char *text, struct store_address *out, char *fault, size_t room);

/* `found` is called in the loop; a name that is not found any more is not told: the old addresses stay. `text` is
 * borrowed until lookup_close. */
struct lookup *lookup_open(struct ev_loop *loop, const char *text, lookup_resolve *resolve,
                           void (*found)(void *context, const struct store_address *address), void *context);
/* Nothing if one is under way. */
void lookup_start(struct lookup *l);
/* Waits for the one that is under way. NULL is fine. */
void lookup_close(struct lookup *l);

#endif
