/* Tells the coordinators who has died: DEATH to each query url, again until one of them has taken it (DONE). A proof of
 * death spares everybody the wait for a lease.
 *
 * What it is not: it does not block, and it decides nothing: whoever calls it has seen the process end.
 * Memory: opaque; there is no close (io/caller.h). */
#ifndef TERRANE_TOOLS_REPORTS_H
#define TERRANE_TOOLS_REPORTS_H

#include "common/errors.h"
#include "common/types.h"

#define REPORTS_URLS   8u
#define REPORTS_DEATHS 256u /* untold at a time; beyond it the oldest are given up */

struct reports; /* opaque */

/* Errors: LIMIT (descriptors), MEMORY. */
enum terrane_error reports_open(struct reports **out) TERRANE_MUST_CHECK;
/* More to tell: query urls separated by commas. Errors: ADDRESS, LIMIT (too many), MEMORY. */
enum terrane_error reports_add(struct reports *r, const char *urls) TERRANE_MUST_CHECK;
/* Readable when reports_step has something to do. */
int reports_fd(const struct reports *r);
void reports_death(struct reports *r, struct node_id node, uint64_t now_us);
/* Does what can be done now; returns when it wants to be called again (UINT64_MAX: at news only). */
uint64_t reports_step(struct reports *r, uint64_t now_us);

struct reports_counts {
    uint64_t told, given_up;
    uint64_t told_us_worst; /* from the death to its DONE */
    uint32_t open;
};
struct reports_counts reports_counts(const struct reports *r);

#endif
