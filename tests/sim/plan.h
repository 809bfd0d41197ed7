/* What a seed stands for: the world, who is in it, how bad the network is, how the players behave.
 *
 * Plain data, drawn once before a run; scenarios fill it by hand from plan_quiet. */
#ifndef TERRANE_TESTS_SIM_PLAN_H
#define TERRANE_TESTS_SIM_PLAN_H

#include "common/geometry.h"

enum fault_level {
    FAULTS_NONE,   /* short delays, nothing is lost */
    FAULTS_NET,    /* feeds lose, connections break, old connections deliver late, processes pause for a moment */
    FAULTS_DEATHS, /* any delays; cell servers die, one at a time, and nothing else goes wrong */
    FAULTS_ALL,    /* all classes of faults; cell servers still die one at a time */
    FAULTS_BEYOND, /* the same, and several die at once: more than Terrane promises to bear without telling */
    FAULT_LEVELS,
};

/* X(NAME, name, what). The first kinds happen by chance all the time; from CRASH on, single faults with a number. */
#define FAULT_CLASSES(X)                                                                                               \
    X(LOSS, loss, "feeds lose messages")                                                                               \
    X(BREAKS, breaks, "connections break; what was in flight is lost or late")                                         \
    X(STALLS, stalls, "cell servers stand still for a moment")                                                         \
    X(STORE, store, "the store fails now and then")                                                                    \
    X(SKEW, skew, "clocks go up to 2 % wrong")                                                                         \
    X(CRASH, crash, "a cell server dies, perhaps in the middle of a step's outputs")                                   \
    X(PAUSE, pause, "a process is stopped, and goes on later")                                                         \
    X(PARTITION, partition, "some processes can't reach the others, both ways or one way")                             \
    X(SLOW, slow, "what goes from some to the others takes long")                                                      \
    X(FLAP, flap, "the connections of a process break again and again")                                                \
    X(GATEWAY, gateway, "a gateway dies and starts anew")                                                              \
    X(COORDINATOR, coordinator, "the coordinator dies and starts anew")                                                \
    X(JUMP, jump, "a clock jumps forward")                                                                             \
    X(OUTAGE, outage, "the store answers nobody for a while")                                                          \
    X(FORGET, forget, "the store loses its last writes, or all")

enum fault_class {
#define X(NAME, name, what) CLASS_##NAME,
    FAULT_CLASSES(X)
#undef X
        CLASS_COUNT,
};

#define CLASS_SINGLE CLASS_CRASH /* the first of the single ones */

/* One numbered fault. Its number stays when others are left out. */
struct plan_fault {
    enum fault_class class;
    bool left_out;
    uint32_t phase; /* in which it begins, after_us from the phase's begin */
    uint64_t after_us, span_us;
    uint32_t victim;  /* a number among those of its role */
    uint64_t side[2]; /* PARTITION, SLOW: members on one side, a bit each */
    bool out, in;     /* what leaves that side is concerned; what comes to it */
    bool clogs;       /* PARTITION: what was sent arrives when it is over, instead of never */
    bool more;        /* CRASH: the next server dies with it (FAULTS_BEYOND) */
    uint64_t detail;  /* of its dice */
};

#define PLAN_FAULTS 64u
#define PLAN_LEAVES 96u

/* How an entity moves. */
enum gait {
    GAIT_WANDER,   /* random walk */
    GAIT_BORDER,   /* along a leaf's border, from one side to the other */
    GAIT_CORNER,   /* across the point where leaves meet, often diagonally */
    GAIT_CIRCLE,   /* around a place, through whatever lies there */
    GAIT_TELEPORT, /* any distance at once */
    GAIT_HOTSPOT,  /* back and forth in one crowded place */
    GAIT_STOPGO,   /* a walk with rests */
    GAIT_EDGE,     /* along the world's own edge */
    GAIT_STILL,
    GAITS,
};

/* What the caller may fix; 0: the seed chooses. */
struct plan_options {
    uint64_t seed;
    uint32_t servers, entities, ticks;
    enum fault_level faults;
    uint32_t without; /* classes left out, a bit each */
    bool standbys;    /* with NONE and NET as well */
    bool balance;     /* leaves are moved, more often than a real cluster moves them */
    bool only;        /* of the numbered faults, only those in `kept` (bit 0: number 1) */
    uint64_t kept;
    const char *aoi; /* index of the cell servers; NULL: grid */
};

struct plan {
    uint64_t seed;
    enum fault_level faults;
    struct world world;
    uint32_t servers, gateways, entities;
    uint32_t split_depth; /* if leaf_count is 0 */
    uint32_t leaf_count;
    struct quadkey leaves[PLAN_LEAVES];
    uint32_t feeds;
    bool storeless, no_standbys, balance;
    const char *aoi;
    bool fail_overs; /* a server may be taken for dead: an entity may be between a primary and its successor */

    uint64_t delay_min_us, delay_max_us, delay_jitter_us;
    double feed_loss;       /* share of frames lost */
    uint64_t break_mean_us; /* mean life of a connection; 0: for ever */
    uint64_t down_max_us;   /* until a broken one stands again */
    double late_chance;     /* share of breaks whose packets arrive late instead of never */
    uint64_t late_min_us, late_max_us;
    double stall_chance; /* per tick */
    uint64_t stall_max_us, tick_jitter_us;
    double store_failure;
    double skew; /* largest share by which a clock goes wrong */
    uint32_t fault_count;
    struct plan_fault fault[PLAN_FAULTS]; /* number 1 is the first */
    uint64_t lease_us;
    uint64_t start_spread_us; /* members begin within this, in any order */

    uint64_t work_us;  /* between two moves of a player */
    uint32_t phases;   /* times that the world moves and then stands still */
    uint64_t phase_us; /* moving time of one */
    double step;       /* typical step, position units */
    uint32_t gait_weight[GAITS];
    uint32_t radius_typical, radius_large; /* position units */
    double radius_large_chance, radius_none_chance;
    uint32_t layers;
    int32_t z_spread;
    /* Chances per entity and work step. */
    double attach_chance, leave_chance, enter_chance, switch_chance, state_chance, radius_chance, big_state_chance;
    /* Chances per gateway and work step. */
    double emit_chance, query_chance, find_chance;
    bool callbacks_act; /* callbacks call the API */

    uint64_t window_us; /* no news is later than this (see checker.h) */
    uint64_t quiet_us;  /* how long all must be calm before a calm counts */
};

/* Draws everything from the seed. */
void plan_draw(struct plan *plan, const struct plan_options *options);
/* A small still world without faults: `servers` cell servers, leaves of `split_depth`, one gateway, no players' acts.
 */
void plan_quiet(struct plan *plan, uint32_t servers, uint32_t split_depth);
/* faults_plan.c: draws the numbered faults and leaves out what the options say. */
void plan_draw_faults(struct plan *plan, const struct plan_options *options);
const char *fault_class_name(enum fault_class class);
const char *fault_class_text(enum fault_class class);
enum fault_class fault_class_of(const char *name, size_t size); /* CLASS_COUNT: none */
const char *fault_level_name(enum fault_level level);
enum fault_level fault_level_of(const char *name); /* FAULT_LEVELS: none */
/* Sets window_us and quiet_us from the rest. */
void plan_bounds(struct plan *plan);
/* The plan's leaf at a place (independent of any core). */
struct quadkey plan_leaf_at(const struct plan *plan, struct position p);

#endif
