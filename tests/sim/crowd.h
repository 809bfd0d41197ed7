/* The players: what every entity has been told to do, which is the truth that the checker compares with.
 *
 * Each entity belongs to one gateway as long as it lives, comes and goes (each time another life), moves by its gait,
 * and changes its state and radius. Positions and radii are kept with their history for as long as news may travel.
 *
 * What it is not: it asks no core for anything; it only calls the gateways' API.
 * Memory: owned by the simulation. */
#ifndef TERRANE_TESTS_SIM_CROWD_H
#define TERRANE_TESTS_SIM_CROWD_H

#include "tests/sim/dice.h"
#include "tests/sim/plan.h"
#include "tests/sim/queue.h"

struct sim;

#define WALKER_NONE  UINT32_MAX
#define HISTORY      2048u /* samples a walker: 60 a second for 34 s */
#define WALKERS      2048u
#define STATE_HEADER 16u

/* ORPHANED: its gateway has died; it stays in the world for a while and is taken out of it, unless the gateway's next
 * incarnation attaches it meanwhile (ATTACHING). */
enum presence { ABSENT, ENTERING, PRESENT, LEAVING, ORPHANED, ATTACHING };

/* True from at_us until the next sample. */
struct sample {
    uint64_t at_us;
    struct position position;
    uint32_t radius;
};

struct walker {
    uint64_t id;
    uint32_t gateway, life;
    enum presence presence;
    uint64_t entered_us;               /* when its enter was acknowledged */
    uint64_t crossed_us;               /* when it was last asked across a leaf border */
    uint64_t left_us;                  /* when its leave was acknowledged; 0: not since its life began */
    uint64_t orphaned_us, unlisted_us; /* ORPHANED: since when; since when no server has it, 0: one has */
    bool orphan_sure;                  /* it was PRESENT when its gateway died */
    /* Its last moves may have died with its gateway: it may be where it was since then. 0: it has been told anew. */
    uint64_t unsure_us;
    struct position position;
    uint8_t yaw;
    uint32_t radius, kind, flags;
    uint16_t layer;
    uint32_t state_number, state_acked; /* see state_fill */

    struct sample *history; /* a ring of HISTORY */
    uint64_t history_end;   /* samples ever noted in this life */

    enum gait gait;
    double x, y, heading, phase, size; /* of the gait */
    struct position anchor;
    uint32_t rest;
};

struct crowd {
    struct walker *walkers;
    uint32_t count;
    bool still;  /* nobody acts; what is asked is answered exactly */
    bool asks;   /* every region has its owner: queries and map events may begin */
    bool manual; /* a scenario acts, not the gaits */
    struct dice dice;
    struct position hotspot;
    uint64_t moves, crossings; /* of leaf borders, as asked for */
    uint32_t event_code;
};

void crowd_open(struct sim *sim);
void crowd_close(struct sim *sim);
/* A gateway's players act; plans the next time. */
void crowd_work(struct sim *sim, const struct happening *what);
/* A callback of the gateway that may call anything: does so now and then. */
void crowd_inside_callback(struct sim *sim, uint32_t walker);
/* On the still world: a map event, queries and finds at each gateway. */
void crowd_ask(struct sim *sim);

/* Single acts, for scenarios too. They fail the run if the API refuses what it must take. */
void crowd_enter(struct sim *sim, uint32_t walker, struct position p, uint32_t radius);
void crowd_attach(struct sim *sim, uint32_t walker);
/* An attached entity is told where it is and what it is, since what its former gateway sent may be lost. */
void crowd_renew(struct sim *sim, uint32_t walker);
void crowd_leave(struct sim *sim, uint32_t walker);
void crowd_move(struct sim *sim, uint32_t walker, struct position p);
void crowd_set_state(struct sim *sim, uint32_t walker, bool big);
void crowd_set_radius(struct sim *sim, uint32_t walker, uint32_t radius);
void crowd_emit(struct sim *sim, uint32_t gateway, struct position p, uint16_t layer, uint32_t radius);
void crowd_query(struct sim *sim, uint32_t gateway, struct position p, uint32_t radius, bool rectangle);
void crowd_find(struct sim *sim, uint32_t gateway, uint64_t id);

/* The sample in force at `at_us`, or the oldest kept; NULL: none. */
const struct sample *walker_sample(const struct walker *w, uint64_t at_us);
/* Samples from the one in force at `from_us` to the last: index of the first, and one past the last (history_end). */
uint64_t walker_history_from(const struct walker *w, uint64_t from_us);
static inline const struct sample *walker_history(const struct walker *w, uint64_t index)
{
    return &w->history[index % HISTORY];
}

/* The state blob number `number` of that life: its header names it, the rest follows from the header. Fills at most
 * LIMIT_STATE_BYTES, returns the size. */
uint32_t state_fill(uint64_t id, uint32_t life, uint32_t number, uint8_t *bytes);
/* Whether a blob is one that was made for this id, unchanged; says which. */
bool state_read(uint64_t id, const uint8_t *bytes, size_t size, uint32_t *life, uint32_t *number);

/* crowd_gait.c: where a walker goes next. */
void gait_begin(struct sim *sim, struct walker *w, enum gait gait);
enum gait gait_draw(struct sim *sim);
struct position gait_next(struct sim *sim, struct walker *w);
struct position position_random(struct sim *sim);

#endif
