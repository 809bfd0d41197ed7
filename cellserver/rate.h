/* How many commands a gateway session may give in a second. Memory: none of its own. */
#ifndef TERRANE_CELLSERVER_RATE_H
#define TERRANE_CELLSERVER_RATE_H

#include "cellserver/internal.h"

/* Whether a message of that peer is a command over options.session_rate: then it has been answered with QUEUE_FULL and
 * counted, and must not be done. */
bool rate_refuses(struct cellserver *cs, uint32_t at, enum message_kind kind, struct cursor message);

#endif
