/* The checker: an independent brute-force world that judges what the cores say by what the players did.
 *
 * It knows nothing of any core but its census, counters and callbacks. Always:
 *   - an id has at most one owner. Several servers may list it while a hand-off runs: then the one with the highest
 *     version is the owner and all others must be `leaving`, with lower versions. No acknowledged entity is unlisted;
 *     its version never falls; its state is the acknowledged one or a later one, byte for byte. After a death it may be
 *     listed by nobody while a level replica holds it, with the acknowledged state. Who is fenced, stands still or has
 *     not ticked since its successor began lists it in vain;
 *   - a level standby that the coordinator's map names holds all that its primary has acknowledged;
 *   - a leaf has at most one server that takes itself for the owner at its ticks, and epochs only rise;
 *   - at every gateway sees and unsees alternate, updates and events name only what is seen, nothing is reported to
 *     who has left, every request is done once.
 * Within the plan's window_us, the longest that any news may take (plan_bounds), over the places where both were in
 * that time, each moment of one with each of the other:
 *   - a see is false if at no such pair of moments the subject was in view;
 *   - a pair is missing if it was in view at all of them and is not seen, and stale if at none and is still seen.
 * At a calm everything is exact (checker_calm.c).
 *
 * Memory: owned by the simulation. */
#ifndef TERRANE_TESTS_SIM_CHECKER_H
#define TERRANE_TESTS_SIM_CHECKER_H

#include "cellserver/cellserver.h"
#include "common/table.h"
#include "gateway/core.h"
#include "tests/sim/crowd.h"

struct sim;

#define GATEWAYS 8u
#define CHECK_US UINT64_C(20000) /* between two looks */

struct checker_context {
    struct sim *sim;
    uint32_t gateway;
};

/* A request that waits for its `done`. */
struct request {
    uint32_t gateway;
    uint64_t number;
    enum terrane_operation operation;
    uint32_t walker;      /* WALKER_NONE: none */
    uint32_t life, value; /* SET_STATE: the state's number */
    uint64_t asked_us;
    bool exact; /* asked on the still world */
    /* QUERY; FIND: the id is in `id` */
    bool rectangle;
    struct position place;
    uint32_t radius;
    uint64_t id;
    uint32_t found_count;
    uint8_t *found; /* by walker */
};

struct emission {
    struct position place;
    uint32_t radius, code;
    uint16_t layer;
    uint64_t at_us;
    bool exact, judged;
    uint32_t *told; /* by walker: the life in which it was told; 0: it was not */
};

/* Where a walker was in a stretch of time. */
struct span {
    int32_t min_x, max_x, min_y, max_y, min_z, max_z;
    uint32_t radius_min, radius_max;
    bool sure; /* it was in the world all that time, and the history goes back so far */
    bool gone; /* it was not in the world at any time of it */
    uint16_t layer;
};

#define TRAIL 64u

/* What the census says of one walker. */
struct owned {
    uint32_t listed, server;         /* by how many that are in force, and which of them has the highest version */
    struct cellserver_entity entity; /* as that one says; its state is borrowed until the next step */
    uint32_t idle;                   /* by how many that are fenced or stand still */
    uint64_t best;                   /* the highest version of all that was listed, in replicas too */
    uint32_t kept;                   /* level replicas with the acknowledged state */
    uint64_t version_before;         /* highest ever, of this life */
    uint32_t life_before;
    /* Of the owner at the last look that found one. */
    uint32_t server_before, incarnation_before;
    struct quadkey leaf_before;
    uint64_t owner_since_us, owner_seen_us;
    uint64_t trail[TRAIL]; /* by look: the newest sample of its history that the owner had applied */
    uint64_t missing_us;   /* FAULTS_BEYOND: since when nobody has it; 0: somebody has */
};

/* What a standby has of a walker, in all the leaves that it stands by for. */
struct held_copy {
    uint32_t copies;
    bool level;
    struct quadkey leaf; /* the rest is of the copy that a promotion would take */
    uint32_t epoch, life, number, radius;
    uint64_t version;
    struct position position;
};

/* Who served a leaf at its last tick. */
struct leaf_claim {
    struct quadkey leaf;
    struct node_id node;
    uint32_t server, epoch;
};

struct checker {
    struct checker_context contexts[GATEWAYS];
    uint32_t count; /* walkers */
    uint8_t *held;  /* [observer * count + subject] */
    struct span *spans;
    struct owned *owned;
    struct held_copy *copies; /* [server * count + walker] */
    struct request *requests;
    uint32_t request_count, request_room;
    struct emission *emissions;
    uint32_t emission_count, emission_room, emission_next;
    uint64_t next_us, looks;
    uint64_t lost;                                         /* as gateways reported (FAULTS_BEYOND) */
    uint64_t sees, unsees, updates, events, queries_short; /* queries that missed an entity in a hand-off */
    /* The outside tool's query under way. */
    uint64_t reply_token;
    uint32_t replies;
    uint8_t *replied; /* by walker: times named */
    uint32_t census_server;
    struct leaf_claim *claims; /* of each leaf of the plan */
    uint32_t claim_count, claim_room;
};

extern const struct terrane_callbacks checker_callbacks;

void checker_open(struct sim *sim);
void checker_close(struct sim *sim);
/* All that can be said at any moment. Called every 20 ms. */
void checker_look(struct sim *sim);
/* A cell server has ticked: who serves what. */
void checker_ticked(struct sim *sim, uint32_t member);
/* A gateway's process has died: its players' entities are nobody's. */
void checker_gateway_gone(struct sim *sim, uint32_t gateway);
/* A gateway says that a walker is lost. */
void checker_lost(struct sim *sim, uint32_t gateway, uint64_t id);
/* All cores are calm: everything must be equal to the truth. */
void checker_calm(struct sim *sim);
/* A core answers the outside query `token`. */
void checker_reply(struct sim *sim, uint32_t member, uint64_t token, const uint8_t *bytes, size_t size);

/* Waits for a request's `done` from now on. */
struct request *checker_expect(struct sim *sim, const struct request *like);
struct emission *checker_emission(struct sim *sim, struct position p, uint16_t layer, uint32_t radius);
uint32_t checker_walker(const struct sim *sim, uint64_t id); /* WALKER_NONE */

/* checker_view.c: who is in view of whom, by the semantics alone. */
bool view_within(const struct plan *plan, struct position a, struct position b, uint64_t radius);
/* Observer at o with that radius, subject at s; `extra` is added to the radius (hysteresis), 0 in block mode. */
bool view_holds(const struct plan *plan, struct position o, uint32_t radius, struct position s, uint32_t extra);
/* Whether some moment of one and some moment of the other since from_us put the subject in view. */
bool view_possible(const struct plan *plan, const struct walker *o, const struct walker *s, uint64_t from_us);
bool view_always(const struct plan *plan, const struct span *o, const struct span *s);
bool view_never(const struct plan *plan, const struct span *o, const struct span *s);
void span_of(const struct sim *sim, const struct walker *w, uint64_t from_us, struct span *out);
/* A place and a radius against a span: for map events and queries. */
bool span_always_within(const struct span *s, struct position p, uint64_t radius, bool rectangle);
bool span_possibly_within(const struct walker *w, uint64_t from_us, struct position p, uint64_t radius, bool rectangle);

/* checker_census.c */
void census_look(struct sim *sim, bool exact);
void census_leaves(struct sim *sim);
/* checker_replica.c: what standbys hold. Called by census_look when the owners are known. */
void replicas_look(struct sim *sim);
void replicas_judge(struct sim *sim, bool exact);
/* checker_leaf.c */
void checker_leaves_open(struct sim *sim);
/* checker_request.c */
void requests_forget(struct sim *sim, uint32_t gateway); /* it has died */
void requests_done(struct sim *sim, uint32_t gateway, uint64_t number, enum terrane_operation operation, uint64_t id,
                   enum terrane_error error);
void requests_found(struct sim *sim, uint32_t gateway, uint64_t number, const struct terrane_entity *entities,
                    size_t count);
void emissions_look(struct sim *sim);
/* All events that were emitted on the still world. */
void checker_calm_emissions(struct sim *sim);

#endif
