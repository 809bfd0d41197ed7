/* Keeps processes running: sees at once that one has ended, tells the coordinators (if it was a node of the cluster),
 * and starts it again after a short while, which doubles as long as it keeps dying young.
 *
 * Each start of a node is a new incarnation with an id of its own (TERRANE_NODE_ID), which the agent knows: that is
 * what makes its word a proof of death. What it is not: it stops nobody; the owner signals ward->child and no longer
 * calls agent_wait. Memory: opaque but for the wards, which stay where they are; there is no close (io/caller.h). */
#ifndef TERRANE_TOOLS_AGENT_H
#define TERRANE_TOOLS_AGENT_H

#include "tools/child.h"
#include "tools/reports.h"

#define AGENT_WARDS 80u

struct ward_options {
    struct child_options child; /* borrowed as long as the agent lives; child.variable is the agent's */
    bool node;                  /* gets a node id, and its death is told */
};

struct ward {
    struct ward_options options;
    struct child child;
    struct node_id node;      /* of the running (or last) incarnation */
    uint32_t starts, deaths;  /* deaths: ends that agent_wait has seen */
    uint64_t started_us;      /* of the last start */
    uint64_t ended_us;        /* 0: it runs */
    uint64_t wait_us, due_us; /* before it is started again; when that is */
};

struct agent_options {
    const char *name;        /* for what it says on stderr */
    const char *hold_folder; /* while a file hold-NAME is there, NAME is not started again; NULL: none */
    uint64_t restart_ms;     /* 0: 100 */
    void *context;
    void (*changed)(void *context, const struct ward *ward); /* it has started or died; may be NULL */
};

struct agent; /* opaque */

/* Errors: those of reports_open. */
enum terrane_error agent_open(const struct agent_options *options, struct agent **out) TERRANE_MUST_CHECK;
/* From now on deaths are told to these: query urls separated by commas. Once. Errors: those of reports_add. */
enum terrane_error agent_tell(struct agent *a, const char *queries) TERRANE_MUST_CHECK;
/* Starts one more. NULL: it can't be started; errno says why. */
struct ward *agent_add(struct agent *a, const struct ward_options *options);
/* Ends the last one added and forgets it: it was started with what could not work. */
void agent_drop_last(struct agent *a);
uint32_t agent_count(const struct agent *a);
struct ward *agent_ward(struct agent *a, uint32_t index);
/* Waits until somebody ends or something is due or `fd` (-1: none) is readable, at most timeout_ms; deals with it. An
 * end is seen by the caller before its restart is due. */
void agent_wait(struct agent *a, int fd, int timeout_ms);
/* The last deaths: goes on telling, for at most that long, and starts nobody. */
void agent_finish(struct agent *a, int timeout_ms);
uint64_t agent_deaths(const struct agent *a);
const struct reports *agent_reports(const struct agent *a);

#endif
