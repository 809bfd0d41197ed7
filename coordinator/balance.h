/* The planner: which leaves to split, to merge and to move, so that each server bears its share, and which can't be
 * helped. It decides; it changes nothing: who carries the decisions out is told why each was made.
 *
 * Shares. A server that takes leaves is to bear total load x its capacity / all capacities. A leaf above the split
 * mark, a part of the mean share, is cut in four when its server bears too much, so that what is moved is never much
 * (far above the mark, in any case); four siblings well below are joined. Between the marks nothing happens; a leaf
 * must stay beyond one for a while (the dwell), far beyond the upper one for a shorter while.
 *
 * Moves. Who is furthest above its share gives a leaf to one below: the leaf that makes good most for the fewest
 * entities, preferring a receiver that owns the leaf before or after it on the Hilbert curve (so that regions stay
 * compact), or that holds its copy already. Levelling begins beyond one threshold and goes on to a lower one. Unless
 * somebody is far above its share, the entities that may move in a minute are limited: a small imbalance costs nobody
 * anything, a move costs a copy.
 *
 * What was tried and measured beside it, with bench_balance: cutting the whole curve anew (weighted chains on chains:
 * Pinar and Aykanat, "Fast optimal load balancing algorithms for 1D partitioning", JPDC 64, 2004) balances best and
 * moves many times more, since each cut shifts all those behind it; handing load to the next server on the curve only
 * (diffusion: Cybenko, JPDC 7, 1989) is the same in small steps. The curve as the order that keeps stretches compact:
 * Pilkington and Baden, "Dynamic partitioning of non-uniform structured workloads with spacefilling curves", IEEE TPDS
 * 7, 1996. So stretches are a preference here and no rule.
 *
 * What it is not: it knows no nodes, epochs, clocks or stores.
 * Memory: opaque, owned by the caller through open/close: buffers that are kept from plan to plan, nothing else. */
#ifndef TERRANE_COORDINATOR_BALANCE_H
#define TERRANE_COORDINATOR_BALANCE_H

#include "common/geometry.h"

#define BALANCE_NONE UINT32_MAX

/* Loads are in any unit that adds up, the same for all. */
struct balance_leaf {
    struct quadkey key;
    uint32_t primary, standby; /* indices of servers, or BALANCE_NONE; of one on its way: where it goes */
    uint32_t entities;
    double load;       /* smoothed by who measures it */
    uint64_t moved_us; /* when it, or what it was cut from, changed hands; 0: never */
    uint64_t cut_us;   /* when it was made by a split or a merge; 0: never */
    uint64_t hot_us;   /* in and out: since when it is above the split mark; 0: it is not */
    uint64_t cold_us;  /* in and out, in the first of four siblings: since when they are below the merge mark */
    bool pinned;       /* an operator wants it as it is */
    bool busy;         /* something is being done with it: nothing new is decided */
    bool guessed;      /* the load is a guess (a quarter of its parent's): it may be cut, but not moved or joined */
};

struct balance_server {
    uint32_t host;     /* equal on one machine */
    uint32_t capacity; /* relative weight, at least 1 */
    bool able;         /* may be given leaves */
    bool draining;     /* gives all away */
};

/* Zero means the default of balance_knobs_default. Thresholds are parts of a server's share. */
struct balance_knobs {
    double split_part;     /* a leaf is cut above this part of the mean share */
    double split_least;    /* but only if its load is at least this, in the load's unit */
    double merge_part;     /* four siblings are joined below this part of the split mark */
    double leaf_load;      /* what each leaf costs by being there, added to its load */
    double trigger, level; /* levelling begins when somebody is so far above its share, and goes on to this */
    double lack;           /* or when somebody is so far below */
    double urgent;         /* beyond this above its share, calm_part does not limit */
    double calm_part;      /* of all entities may move in a minute while nobody is far above */
    double jam;            /* a leaf that can't be cut is refused above this part of its server's share */
    uint64_t dwell_us;     /* beyond the split mark; a quarter of it beyond twice the mark */
    uint64_t cool_us;      /* between a leaf's cut and its joining; below the merge mark for as long */
    uint64_t rest_us;      /* between two moves of one leaf */
    uint32_t depth_min, depth_max;
    uint32_t moves_max;  /* on their way at a time */
    uint32_t splits_max; /* in one plan; as many merges */
};
struct balance_knobs balance_knobs_default(uint32_t world_depth);

/* What is remembered from plan to plan. Zero-initialise. */
struct balance_state {
    double allowance; /* entities that may move while it is calm */
    uint64_t refilled_us;
    bool levelling;
};

enum balance_kind {
    BALANCE_SPLIT,
    BALANCE_MERGE, /* `leaf` is the first of the four */
    BALANCE_MOVE,
    BALANCE_REFUSE, /* nothing can be done about `leaf` */
};

struct balance_decision {
    enum balance_kind kind;
    uint32_t leaf, from, to; /* servers; to: MOVE */
    const char *why;         /* static text */
    double load, mark;       /* of the leaf or leaves; what it was compared with, if anything */
    double from_part;        /* of the giver's share that it bears, before; 1: all of it */
    double to_part;          /* of the receiver, before */
};

struct balance_input {
    struct balance_leaf *leaves; /* along the Hilbert curve; they tile the world */
    const struct balance_server *servers;
    uint32_t leaf_count, server_count;
    uint64_t now_us;
    struct balance_knobs knobs;
    struct balance_state *state;
};

struct balancer; /* opaque */

struct balancer *balancer_open(void);
void balancer_close(struct balancer *b); /* NULL is fine */
/* Plans, and returns the number of decisions: valid until the next plan, most urgent first in each kind. In the plan a
 * leaf is the subject of one decision at most. O(leaves + moves x (servers + leaves of a server)). */
uint32_t balancer_plan(struct balancer *b, const struct balance_input *in);
const struct balance_decision *balancer_decisions(const struct balancer *b);

/* How the load lies as of the last plan, before its decisions. */
struct balance_view {
    double total, mean; /* mean: the share of a server of mean capacity */
    double split_mark, merge_mark;
    double worst, least;        /* parts of their shares that servers bear; 1: all as it should be */
    uint32_t moving, stretches; /* leaves on their way; runs on the curve with one server */
};
struct balance_view balancer_view(const struct balancer *b);

#endif
