/* The numbered faults of a plan as they happen: deaths and their agents' reports, pauses, partitions, slow and flapping
 * paths, clocks that jump, a store that is away or forgets.
 *
 * A cell server is let die only while the cluster is protected (faults_protected): that is what the promise bears.
 * Trouble is a stretch of time in which a fault is at work, and a while after it: news may be late by so much.
 *
 * What it is not: losses, breaks, stalls and store failures by chance are in network.c, sim.c and store.c.
 * Memory: owned by the simulation. */
#ifndef TERRANE_TESTS_SIM_FAULTS_H
#define TERRANE_TESTS_SIM_FAULTS_H

#include "tests/sim/plan.h"
#include "tests/sim/queue.h"

struct sim;

#define REPORTS 64u

/* What an agent tells the coordinator until it is answered. */
struct report {
    struct node_id node;
    uint32_t tries;
    bool answered;
};

struct trouble {
    uint64_t from_us, to_us;
};

struct faults {
    bool active[PLAN_FAULTS];
    uint64_t until_us[PLAN_FAULTS]; /* of active ones */
    bool running;                   /* a phase of movement is on */
    uint32_t phase;
    struct report reports[REPORTS];
    uint32_t report_count;
    struct trouble *trouble; /* in order, none touches another */
    uint32_t trouble_count, trouble_room;
    uint64_t happened[CLASS_COUNT], begun; /* begun: by number, a bit each */
    uint64_t deaths;                       /* of cell servers */
    uint64_t unprotected_us;               /* the last look at which the cluster was not protected */
};

/* How a path from one member to another is. */
struct path {
    bool drops;       /* what is sent is lost */
    uint64_t held_us; /* what is sent arrives no earlier than then; 0: not held */
    uint64_t slow_us; /* and takes so much longer */
};

void faults_close(struct sim *sim);
/* Plans the faults of a phase. */
void faults_begin(struct sim *sim, uint32_t phase);
/* Ends all faults; who is dead starts anew. */
void faults_heal(struct sim *sim);
void faults_happen(struct sim *sim, const struct happening *what);
struct path faults_path(const struct sim *sim, uint32_t from, uint32_t to);
/* The store answers nobody. */
bool faults_store_away(const struct sim *sim);
/* No connection can be made between the two. */
bool faults_parted(const struct sim *sim, uint32_t a, uint32_t b);
/* Every leaf is served, and by its standby too if another server lives; the coordinator is there. */
bool faults_protected(struct sim *sim);
/* A member has died: its agent reports, it starts anew. */
void faults_died(struct sim *sim, uint32_t member, struct node_id node);
/* Called at each look: notes that trouble goes on. */
void faults_look(struct sim *sim);
/* The coordinator has answered a report. */
void faults_reported(struct sim *sim, uint64_t token);
bool faults_is_report(uint64_t token);
/* The latest moment with plan.window_us of untroubled time between it and at_us; 0: there is none. */
uint64_t faults_window(const struct sim *sim, uint64_t at_us);
/* Whether there was trouble at any time from from_us to now. */
bool faults_troubled(const struct sim *sim, uint64_t from_us);

#endif
