/* A gateway that notes when it hears from whom: libterrane's core in an embedded shell, whose events pass a tap. One
 * walking entity in each leaf makes every leaf speak at every tick.
 *
 * Times are CLOCK_MONOTONIC (loop_now_us), taken when an event comes to the core.
 * Memory: opaque but for the leaves; there is no close: the process ends with _exit(). */
#ifndef TERRANE_BENCH_FAILOVER_PROBE_H
#define TERRANE_BENCH_FAILOVER_PROBE_H

#include "common/limits.h"
#include "common/types.h"

struct probe; /* opaque */

/* What has been heard of a leaf: frames and snapshots. */
struct probe_leaf {
    struct quadkey key;
    uint32_t epoch;    /* the highest heard: rises when another server takes over */
    uint64_t first_us; /* when that epoch was first heard */
    uint64_t last_us;  /* the last time that it was */
    uint64_t stale;    /* frames of a lower epoch that came after it */
};

/* Waits until the coordinator has told the world; NULL: it did not within timeout_ms. */
struct probe *probe_open(const char *coordinator_url, const char *name, uint32_t timeout_ms);
/* One entity in the middle of that leaf. */
void probe_add(struct probe *p, struct quadkey leaf);
uint32_t probe_count(const struct probe *p);
const struct probe_leaf *probe_leaf(const struct probe *p, uint32_t index);
/* Readable when probe_step has something to do. */
int probe_fd(const struct probe *p);
/* Dispatches, and moves all entities when their time has come. Returns when that is next. */
uint64_t probe_step(struct probe *p);
/* True: every leaf was heard within the last `age_us`. */
bool probe_hears_all(const struct probe *p, uint64_t age_us);
/* Who this session is, and when a map was last told that has `node` in it (0: never). */
struct node_id probe_node(const struct probe *p);
void probe_expect(struct probe *p, struct node_id node);
uint64_t probe_told_us(const struct probe *p);
uint64_t probe_lost(const struct probe *p); /* entities that the library gave up */

/* Another session that begins to look for the coordinator now; told by nobody what it hears. */
struct probe *probe_begin(const char *coordinator_url, const char *name);
/* Leaves. The session is gone when it has been told so; it must be stepped until then. */
void probe_leave(struct probe *p);

#endif
