/* A standby becomes the primary: when the map says so and the former primary can't serve any more. */
#include "cellserver/internal.h"

void promote_check(struct cellserver *cs)
{
    (void)cs;
}

void release_received(struct cellserver *cs, uint32_t peer, const struct release *m)
{
    (void)cs;
    (void)peer;
    (void)m;
}
