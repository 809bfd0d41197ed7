/* A whole Terrane in one thread: the cores of coordinator, cell servers and gateways under a seeded clock, network and
 * store, with players that act and a checker that knows the truth.
 *
 * sim_open makes it from a plan; sim_run_until lets simulated time pass. The first violation is kept and stops the run:
 * after it sim_run_until returns at once. Everything depends on the plan alone (seed included); the trace's hash says
 * so.
 *
 * What it is not: it is no part of Terrane; the cores under it are the very ones that the programs run.
 * Memory: one struct, owned by the caller, from sim_open to sim_close. */
#ifndef TERRANE_TESTS_SIM_SIM_H
#define TERRANE_TESTS_SIM_SIM_H

#include "cellserver/cellserver.h"
#include "coordinator/coordinator.h"
#include "gateway/core.h"
#include "tests/sim/checker.h"
#include "tests/sim/crowd.h"
#include "tests/sim/faults.h"
#include "tests/sim/network.h"
#include "tests/sim/plan.h"
#include "tests/sim/plants.h"
#include "tests/sim/queue.h"
#include "tests/sim/store.h"

#include <stdio.h>

#define MEMBER_NONE UINT32_MAX
#define MEMBERS     80u
#define COORDINATOR 0u /* its member number */

/* One process. */
struct member {
    enum node_role role;
    uint32_t number; /* among those of its role */
    struct node_id node;
    bool listening; /* its sockets are there */
    struct coordinator *coordinator;
    struct cellserver *server;
    struct gateway *gateway;
    uint64_t timeout_us; /* when a TIMEOUT is planned; UINT64_MAX: none */
    uint64_t busy_until_us;
    uint64_t tick_due_us, ticked_us;
    char **prefixes; /* of its SUB listener */
    uint32_t prefix_count, prefix_room;
    uint64_t incarnation;
    /* Its own clock: clock_local_us at the simulation's clock_base_us, clock_ppm too fast. */
    uint64_t clock_base_us, clock_local_us;
    int64_t clock_ppm;
    bool doomed; /* dies in the middle of the outputs of its next step that has any */
    uint64_t doom_dice, death_dice, away_us;
};

struct sim {
    struct plan plan;
    uint64_t now_us;
    struct queue queue;
    struct member members[MEMBERS];
    uint32_t member_count, server_first, gateway_first;
    struct network network;
    struct store_model store;
    struct crowd crowd;
    struct checker checker;
    struct faults faults;
    enum plant plant;
    struct dice timers, plants, ids, clocks;
    struct cellserver_stats past; /* of servers that are no more */
    struct outbox outbox;
    struct writer plant_writer;
    bool stepping;

    FILE *trace; /* NULL: silent */
    uint64_t trace_hash, steps, calms;

    bool violated;
    uint64_t violated_us;
    const char *violation_kind; /* the same for violations of one kind; a literal */
    char violation[512];
};

/* Makes the members and plans their start. `trace` may be NULL. */
void sim_open(struct sim *sim, const struct plan *plan, enum plant plant, FILE *trace);
void sim_close(struct sim *sim);
/* Lets everything happen until `at_us`, or until a violation. */
void sim_run_until(struct sim *sim, uint64_t at_us);
/* Waits until every gateway and every leaf is ready; a violation if that takes longer than `limit_us`. */
bool sim_run_ready(struct sim *sim, uint64_t limit_us);
/* Heals the network, stops the players, runs until all cores have been calm for the plan's quiet_us, and checks all
 * (checker.h). False: a violation. */
bool sim_calm(struct sim *sim);
/* Sets players, network and the faults of this phase going. */
void sim_stir(struct sim *sim, uint32_t phase);

/* Gives a member an event and carries out what it says. */
void sim_step(struct sim *sim, uint32_t member, const struct event *event);
/* After calls of a gateway's API: plans its TIMEOUT anew. */
void sim_rearm(struct sim *sim, uint32_t member);
/* Says PEER_UP or FEED_UP of a standing link once more, after this step. */
void sim_tell_later(struct sim *sim, uint32_t link);
/* The member whose listener has this url; MEMBER_NONE. */
uint32_t sim_member_at(const struct sim *sim, const char *url, size_t size);
/* An outside tool's message to a cell server; its answer comes to checker_reply with `token`. */
void sim_query(struct sim *sim, uint32_t member, uint64_t token, const void *bytes, size_t size);
/* A member's process ends at once. What it has sent is mostly still on its way. faults.c says what follows. */
void sim_kill(struct sim *sim, uint32_t member);
/* A member's own time now; moves it forward. */
uint64_t sim_clock(const struct sim *sim, const struct member *m);
void sim_clock_jump(struct sim *sim, uint32_t member, uint64_t by_us);
/* Ends a coordinator at once and starts another incarnation of it after `after_us`. */
void sim_restart_coordinator(struct sim *sim, uint64_t after_us);
bool sim_all_calm(const struct sim *sim);

/* Notes the first violation; later ones are consequences. */
void sim_violation(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Mixes words into the trace's hash. */
void sim_note(struct sim *sim, uint64_t a, uint64_t b);
void sim_note_bytes(struct sim *sim, const void *bytes, size_t size);
/* A line for people, if there is a trace. */
void sim_say(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline struct gateway *sim_gateway(struct sim *sim, uint32_t number)
{
    return sim->members[sim->gateway_first + number].gateway;
}

#endif
