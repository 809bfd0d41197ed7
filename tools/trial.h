/* What a swarm's run amounts to: moving, standing still, checking, and the figures of it all.
 *
 * A calm: all bots stop; as soon as everything is right (views equal brute force, positions that others were told equal
 * the true ones, every bot owned once with its state) the bots go on. What is still wrong when the patience ends
 * counts. Where processes may die meanwhile (`deaths`), only delay is forgiven: a question that failed is asked again
 * until the patience ends.
 * What it is not: it prints nothing. Memory: plain data of the caller, zero-initialised, trial_close at the end; the
 * swarm and the cluster are borrowed. */
#ifndef TERRANE_TOOLS_TRIAL_H
#define TERRANE_TOOLS_TRIAL_H

#include "tools/cluster.h"
#include "tools/swarm.h"

struct trial {
    struct swarm *swarm;
    struct cluster *cluster;
    uint32_t window_ms;       /* the delay that is forgiven while moving */
    uint32_t patience_ms;     /* for a calm to become right */
    uint32_t events_in_calms; /* emitted in each calm, judged without slack */
    uint32_t queries;         /* asked in each calm */
    bool deaths;              /* processes may die */

    uint64_t calms, settle_ms_worst;
    uint64_t views, views_wrong, positions_wrong;
    uint64_t lost, doubled, misplaced, states_wrong; /* the worst of any calm */
    uint64_t unanswered;                             /* questions that nobody answered well in time */
    uint64_t uncounted;                              /* calms in which no census could be taken */
    enum terrane_error census_error;                 /* of the last census */
    struct cluster_sums begin, end;                  /* at the first tick and at the end, of all incarnations */

    struct incarnation *incarnations; /* of servers that have ever answered */
    uint32_t incarnation_count, incarnation_room;
};

/* What the servers have counted so far, also those that are gone, as far as they were asked before. Silent ones are
 * asked again until the patience ends, or only once. */
struct cluster_sums trial_sums(struct trial *t, bool patiently);
void trial_close(struct trial *t);

/* Stops the bots, looks until all is right or the patience ends, counts. The bots stay stopped. */
void trial_calm(struct trial *t);
/* While moving: remembers where all are and judges events that are old enough. Returns when it wants to be called
 * again. (The check of views with slack is checker_moving.) */
uint64_t trial_sample(struct trial *t, uint64_t now_us);

/* Figures. */
uint64_t trial_queries_wrong(const struct trial *t);
uint64_t trial_events_wrong(const struct trial *t);
uint64_t trial_gaps(const struct trial *t);
uint64_t trial_gaps_unrepaired(const struct trial *t);
double trial_bytes_per_move(const struct trial *t);
bool trial_holds(const struct trial *t);

#endif
