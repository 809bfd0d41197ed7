/* A swarm of bots: one process as one or several gateways, whose entities move like a crowd, tick by tick, and whose
 * callbacks go to a checker.
 *
 * What it is not: it judges nothing (trial.h does) and prints nothing.
 * One thread; everything happens in swarm_run and swarm_poll.
 * Memory: opaque but for what is read often; owned by the caller through open/close. */
#ifndef TERRANE_TOOLS_SWARM_H
#define TERRANE_TOOLS_SWARM_H

#include "gateway/terrane.h"
#include "tools/checker.h"
#include "tools/crowd.h"
#include "tools/dice.h"
#include "tools/hearing.h"
#include "tools/questions.h"

#define SWARM_GATEWAYS 16u

struct swarm_options {
    const char *coordinator_url, *listen_host;
    uint32_t gateways, bots;
    uint64_t first_id;
    double radius;              /* m */
    bool updates;               /* take the update callback */
    struct crowd_options crowd; /* recording, workload, speed, band, seed; the rest is filled here */
    uint32_t events_per_s, states_per_s;
    uint32_t churn_per_s;      /* bots that leave the world and enter it again */
    const volatile bool *stop; /* set by a signal: swarm_run returns early */
    struct loop *loop;         /* polled while the swarm runs; NULL: none */
};

/* Where a bot stands in its life. */
enum stay { STAY_HERE, STAY_LEAVING, STAY_AWAY, STAY_ENTERING };

struct gate {
    struct swarm *swarm;
    uint32_t index;
    struct terrane *session;
    struct position *told; /* of each bot, as the last see or update said */
};

struct swarm {
    struct swarm_options options;
    struct gate gates[SWARM_GATEWAYS];
    struct world world; /* as the gateways know it */
    double unit;
    struct crowd *crowd;
    struct checker *checker;
    struct hearing *hearing;
    struct questions *questions;
    struct dice dice;

    uint64_t tick_us, tick_due_us;
    uint64_t ticks, ticks_late; /* the swarm's own */
    uint64_t moves;             /* positions that changed and were given to the library */
    uint32_t entered, refused;
    uint8_t *stays;                /* enum stay of each bot, once all are in */
    uint32_t away;                 /* bots that are not STAY_HERE */
    uint64_t churned, churn_wrong; /* left and came back; answers that should not be */
    uint64_t entities_lost;        /* errors that say so, be it that they were entered again */
    bool moving;
    double event_debt, state_debt, churn_debt; /* parts of one that are due */
    enum terrane_error refusal;                /* why the first enter was refused */
    char fault[320];                           /* the first error that a session or request told */
};

/* Opens the sessions. Errors: as terrane_open; s->fault says more. */
enum terrane_error swarm_open(const struct swarm_options *options, struct swarm **out) TERRANE_MUST_CHECK;
/* Lets everybody leave. NULL is fine. */
void swarm_close(struct swarm *s);

/* Until all sessions know the world, then lays the crowd. Errors: TIMED_OUT, CONFIG (the radius or the world does not
 * suit; s->fault says how), CLOSED (stopped). */
enum terrane_error swarm_ready(struct swarm *s, uint32_t timeout_ms) TERRANE_MUST_CHECK;
/* Brings all bots into the world, a part at a time. Errors: TIMED_OUT, CLOSED, or what an enter was refused with. */
enum terrane_error swarm_enter(struct swarm *s, uint32_t timeout_ms) TERRANE_MUST_CHECK;
/* Dispatches, and ticks if s->moving, until that time or until told to stop. */
void swarm_run(struct swarm *s, uint64_t until_us);
/* What is due now, without waiting. */
void swarm_poll(struct swarm *s);
/* Tells the checker that nothing is known of where those are who are away; in each sample. */
void swarm_blur_away(struct swarm *s);
/* An event at a random bot's place; the hearing expects who is near. */
void swarm_emit(struct swarm *s);
/* A circle, a rectangle or a find, around or of a random bot. Only while nobody moves. False: it was refused at once.
 */
bool swarm_ask(struct swarm *s);

struct gate *swarm_gate_of(struct swarm *s, uint32_t bot);
/* Sums over the sessions. */
struct terrane_stats swarm_stats(const struct swarm *s);
struct position swarm_position(const struct swarm *s, double x, double y, double z);
void swarm_coordinates(const struct swarm *s, struct position p, double *x, double *y);

#endif
