/* A running cluster as tools see it from outside: the coordinator's STATUS, each cell server's, and what they own.
 * All over query sockets, blocking with time-outs.
 *
 * What it is not: no member of the cluster; nothing here is known to the servers.
 * Memory: the struct owns its documents; texts point into them until the next cluster_refresh. The query lane stays
 * open until the process ends (io/query.h). */
#ifndef TERRANE_TOOLS_CLUSTER_H
#define TERRANE_TOOLS_CLUSTER_H

#include "common/limits.h"
#include "common/types.h"
#include "io/query.h"
#include "tools/document.h"

#define CLUSTER_PATIENCE_MS 2000u

/* One cell server: what the coordinator says of it, and its own STATUS. */
struct cluster_server {
    const char *name, *query_url;
    uint32_t listed; /* its object in cluster.map */
    struct document status;
    bool answered; /* it has sent its own STATUS */
};

struct cluster { /* zero-initialise, then cluster_open */
    struct query_lane *lane;
    char query_url[LIMIT_URL]; /* the coordinator's */
    struct document map;       /* the coordinator's STATUS */
    struct cluster_server *servers;
    uint32_t server_count, server_room;
};

/* Sums over the servers that have answered. */
struct cluster_sums {
    uint64_t owned, ghosts, leaving, moves, handoffs_in, handoffs_out;
    uint64_t frames, frame_bytes, frame_moves, gaps, gaps_open, ticks, ticks_late;
    uint64_t silent; /* servers that have not answered */
};

/* The query url that belongs to a coordinator's inbox unless it says otherwise: the next port. Errors: ADDRESS. */
enum terrane_error cluster_query_url(const char *inbox_url, char out[LIMIT_URL]) TERRANE_MUST_CHECK;

void cluster_open(struct cluster *c, const char *query_url);
void cluster_close(struct cluster *c);
/* The coordinator's STATUS anew. Errors: those of query_status, CONFIG (the answer is no JSON). */
enum terrane_error cluster_refresh(struct cluster *c, uint32_t timeout_ms) TERRANE_MUST_CHECK;
/* Also each server's; one that does not answer is left as not answered. */
enum terrane_error cluster_refresh_all(struct cluster *c, uint32_t timeout_ms) TERRANE_MUST_CHECK;
/* The map is stored, `servers` cell servers have joined and every region has one. After cluster_refresh. */
bool cluster_ready(const struct cluster *c, uint64_t servers);
struct cluster_sums cluster_sums(const struct cluster *c);
struct cluster_server *cluster_server(struct cluster *c, const char *name); /* NULL: none */

/* Every entity that a server owns: asks for a snapshot of every region. `between` (may be NULL) is called between two
 * questions, for whoever has other things to do. After cluster_refresh. Errors: as query_ask, MESSAGE_*, and what a
 * server answers (NOT_OWNER: the map is changing; try again). */
struct cluster_entity {
    uint64_t id;
    struct position position;
    const void *state; /* borrowed for the call */
    size_t state_size;
};
enum terrane_error cluster_census(struct cluster *c, void (*each)(void *context, const struct cluster_entity *entity),
                                  void (*between)(void *context), void *context) TERRANE_MUST_CHECK;

#endif
