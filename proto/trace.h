/* TRACE: what a cell server remembers of one entity's changes of owner; for people who ask where it has been.
 *
 * One question and one answer on the query lane. Each server tells its own part: who gave and who took both remember a
 * hand-off, under the same version, so the parts of all servers, sorted by version, are the entity's way.
 * Memory: a decoded answer's list points into the message. */
#ifndef TERRANE_PROTO_TRACE_H
#define TERRANE_PROTO_TRACE_H

#include "proto/messages.h"

#define TRACE_STEPS_MAX 64u /* of one entity, the latest ones */

/* X(NAME, name): in the protocol's order, from 1. */
#define TRACE_CAUSES(X)                                                                                                \
    X(ENTERED, entered)     /* a gateway entered it */                                                                 \
    X(ARRIVED, arrived)     /* taken over in a hand-off */                                                             \
    X(PASSED_ON, passed_on) /* its new owner has accepted it */                                                        \
    X(CROSSED, crossed)     /* between two leaves of this server */                                                    \
    X(PROMOTED, promoted)   /* taken over as the leaf's standby */                                                     \
    X(GIVEN_UP, given_up)   /* the leaf has another primary now */                                                     \
    X(LEFT, left)           /* the world */

enum trace_cause {
    TRACE_NONE,
#define X(NAME, name) TRACE_##NAME,
    TRACE_CAUSES(X)
#undef X
        TRACE_CAUSE_END
};

/* What the entity is to the server. */
enum trace_role { TRACE_UNKNOWN, TRACE_OWNED, TRACE_GHOST, TRACE_STANDBY, TRACE_ROLE_END };

/* msgpack: [58, id] */
struct trace {
    struct entity_id id;
};

/* msgpack: [59, id, role, horizon_us, [[age_us, cause, version, from, to, node], ...]], oldest first */
struct trace_result {
    struct entity_id id;
    enum trace_role role;
    uint64_t horizon_us; /* how far back this server remembers anybody; of what is older nothing is known */
    uint32_t count;      /* at most TRACE_STEPS_MAX */
    struct cursor steps;
};
struct trace_step {
    uint64_t age_us; /* before the answer */
    enum trace_cause cause;
    uint64_t version;        /* that the entity has since then */
    struct quadkey from, to; /* leaves; QUADKEY_NONE where there is none, or it isn't known here */
    struct node_id node;     /* the other one: who has it now, or its gateway; NODE_NONE: nobody, or not known here */
};

/* "passed_on". */
const char *trace_cause_name(enum trace_cause cause);
const char *trace_role_name(enum trace_role role);

void trace_encode(struct writer *w, const struct trace *m);
enum terrane_error trace_decode(struct cursor c, struct trace *m) TERRANE_MUST_CHECK;
/* Then m->count steps. */
void trace_result_begin(struct writer *w, const struct trace_result *m);
void trace_result_step(struct writer *w, const struct trace_step *step);
enum terrane_error trace_result_decode(struct cursor c, struct trace_result *m) TERRANE_MUST_CHECK;
bool trace_result_next(struct trace_result *m, struct trace_step *step);

#endif
