/* A cluster of real processes on this machine, kept running by an agent: Redis, coordinators, cell servers.
 *
 * Order: what others need starts first; each is ready when it says so (its ready line; Redis: when it listens), never
 * after a delay. The run folder has a log of each process, Redis's files, and children.json: who runs under which
 * process id, written anew (by a rename) at every start and death. A file hold-NAME there keeps NAME from being started
 * again.
 * What it is not: it starts no bots and checks nothing.
 * Memory: the struct is the caller's; texts live as long as the process. */
#ifndef TERRANE_TOOLS_LOCAL_H
#define TERRANE_TOOLS_LOCAL_H

#include "common/limits.h"
#include "tools/agent.h"

#define LOCAL_SERVERS      64u
#define LOCAL_COORDINATORS 4u

struct local_options {
    const char *name; /* for what is said on stderr */
    const char *programs, *run_dir;
    uint64_t servers, coordinators;
    uint64_t port; /* the first coordinator's inbox; 0: the usual one if it is free */
    uint64_t depth, split_depth, tick_hz, feeds, entities, lease_ms; /* entities: of each server */
    uint64_t restart_ms;
    uint64_t
        first_group; /* not 0: server i runs under group id first_group + i, so that a packet filter tells them apart */
    bool no_standbys;
    double radius_max, hysteresis;
    const char *view_mode;
};

struct local {
    struct local_options options;
    struct agent *agent;
    struct ward *redis, *coordinators[LOCAL_COORDINATORS], *servers[LOCAL_SERVERS];
    /* Of the coordinators, separated by commas. */
    char inboxes[LOCAL_COORDINATORS * LIMIT_URL], queries[LOCAL_COORDINATORS * LIMIT_URL];
    char redis_address[64];
    char fault[700]; /* what went wrong in local_start */
};

/* False: fault says what; what runs goes on running. *missing: a program is not installed. */
bool local_start(struct local *l, const struct local_options *options, bool *missing) TERRANE_MUST_CHECK;
/* The first process that has ended during the start; NULL: none. */
const struct ward *local_dead(struct local *l);
/* Ends everybody in order: the coordinators first, so that no server waits for somebody to take its regions; who does
 * not go is killed. */
void local_stop(struct local *l, int patience_ms);
/* "CPU seconds: ..." of the last incarnations on stderr. After local_stop. */
void local_report_cpu(const struct local *l);

#endif
