/* The coordinator's pure core (common/core.h): who is there, which leaves the world has, who owns each.
 *
 * Several may run over one store: one leads, the others wait (lead.c).
 * Store before tell: a change of the map goes to the store first (OUTPUT_STORE, fenced by term and epoch) and to the
 * members only after EVENT_STORED. Restarting, it loads the map, takes term + 1, and goes on with the same owners.
 * Memory: opaque, owned by the caller through open/close. */
#ifndef TERRANE_COORDINATOR_COORDINATOR_H
#define TERRANE_COORDINATOR_COORDINATOR_H

#include "common/core.h"
#include "common/geometry.h"
#include "coordinator/balance.h"
#include "proto/messages.h"

struct coordinator; /* opaque */

struct coordinator_options {
    struct node_info info; /* role coordinator; node id drawn by the shell */
    struct world world;
    uint32_t split_depth;         /* all leaves of that depth, if leaf_count is 0 */
    const struct quadkey *leaves; /* else these: they must tile the world exactly */
    uint32_t leaf_count;
    uint32_t expect_servers;    /* first assignment waits for so many cell servers; 0: 1 */
    uint64_t silence_us;        /* a member not heard for that long is reported as silent; 0: 2,000,000 */
    uint64_t lease_us;          /* of every member, told by WELCOME; 0: 250,000 */
    bool no_standbys;           /* leaves have no standby: what a server held is gone with it */
    uint64_t leader_lease_us;   /* of one that leads among several; 0: 2,000,000 */
    bool storeless;             /* no Redis: the map lives in memory only (simulations, trials) */
    bool balance;               /* leaves go where the planner wants them; needs standbys */
    struct balance_knobs knobs; /* zeros: the defaults */
};

/* Errors: CONFIG (world_check, leaves that do not tile the world). */
enum terrane_error coordinator_open(const struct coordinator_options *options,
                                    struct coordinator **out) TERRANE_MUST_CHECK;
/* The same check without opening: says in `fault` what is wrong with which leaf or option, and what to do. */
enum terrane_error coordinator_check(const struct coordinator_options *options, char *fault,
                                     size_t room) TERRANE_MUST_CHECK;
void coordinator_close(struct coordinator *c); /* NULL is fine */
void coordinator_step(struct coordinator *c, const struct event *in, uint64_t now_us, struct outbox *out);
uint64_t coordinator_deadline_us(const struct coordinator *c); /* UINT64_MAX: none */

/* The process is asked to end: gives the leadership back, so that another need not wait. It has ended in order once
 * coordinator_left says so, which takes an answer of the store. */
void coordinator_leave(struct coordinator *c, uint64_t now_us, struct outbox *out);
bool coordinator_left(const struct coordinator *c);

/* For checkers and status. */
struct coordinator_stats {
    uint64_t term, rev;
    uint32_t servers, gateways, silent, lapsed, draining, leaves, unowned;
    uint32_t unprotected; /* leaves with an owner and no level standby */
    uint64_t promotions;  /* of standbys, stored */
    uint32_t migrating;   /* leaves on their way to another server */
    double worst, least;  /* parts of their shares that servers bore at the last plan; 0: none yet */
    uint64_t owned_entities, ticks, ticks_late, refused, stored, store_failures;
    bool ready;                          /* the map is loaded or new, and stored */
    bool leads;                          /* ready, and its lease of the leadership is fresh */
    struct node_id leader;               /* as the store said last; NODE_NONE: nobody, or no store */
    uint64_t stalled, deposed, restored; /* times: lease run out, another took over, all written again */
};
void coordinator_stats(const struct coordinator *c, struct coordinator_stats *out);
struct metrics;
void coordinator_metrics(const struct coordinator *c, struct metrics *m); /* the same for scrapers */
/* NULL: it leads, with a map in the store, or follows one that does. Else why not, as one clause. */
const char *coordinator_unready(const struct coordinator *c);
/* Calls `each` for every leaf in quadkey order, as stored. */
void coordinator_leaves(const struct coordinator *c, void (*each)(void *context, const struct leaf_owner *leaf),
                        void *context);

/* For the console. Appends one object: the world's constants, who leads, the servers, and the regions as
 * [quadkey, epoch, since, primary, standby, level, owned], in quadkey order; primary and standby are places in the list
 * of servers, or null. One that does not lead knows no servers. */
void coordinator_picture(struct coordinator *c, struct writer *json);
/* Calls `each` for every cell server that is a member. */
void coordinator_servers(const struct coordinator *c, void (*each)(void *context, const struct node_info *server),
                         void *context);
/* Who leads, as the store said last. False: nobody, or there is no store. */
bool coordinator_leader(const struct coordinator *c, struct node_id *node, char inbox_url[LIMIT_URL]);
/* Where its own console is, for STATUS: "" if nowhere. Called once, before the first step. */
void coordinator_show_console(struct coordinator *c, const char *http_url);

#endif
