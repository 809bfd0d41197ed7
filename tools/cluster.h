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
#include "proto/wire.h"
#include "tools/document.h"

#define CLUSTER_PATIENCE_MS 2000u
#define CLUSTER_URLS        8u

/* One cell server: what the coordinator says of it, and its own STATUS. */
struct cluster_server {
    const char *name, *query_url;
    uint32_t listed; /* its object in cluster.map */
    struct document status;
    bool answered; /* it has sent its own STATUS */
};

struct cluster { /* zero-initialise, then cluster_open */
    struct query_lane *lane;
    char query_urls[CLUSTER_URLS][LIMIT_URL]; /* the coordinators' */
    uint32_t url_count, leader;               /* leader: which of them is asked first */
    const char *query_url;                    /* who answered last, or is to */
    struct document map;                      /* the coordinator's STATUS */
    struct cluster_server *servers;
    uint32_t server_count, server_room;
};

/* Sums over the servers that have answered. */
struct cluster_sums {
    uint64_t owned, ghosts, leaving, moves, handoffs_in, handoffs_out;
    uint64_t frames, frame_bytes, frame_moves, gaps, gaps_open, ticks, ticks_late;
    uint64_t promotions; /* the coordinator's */
    uint64_t silent;     /* servers that have not answered */
};

#define CLUSTER_URLS_TEXT (CLUSTER_URLS * LIMIT_URL)
/* The query urls that belong to coordinators' inboxes (one, or several separated by commas) unless they say otherwise:
 * the next ports. Errors: ADDRESS, LIMIT (too many). */
enum terrane_error cluster_query_urls(const char *inbox_urls, char out[CLUSTER_URLS_TEXT]) TERRANE_MUST_CHECK;

/* One query url or several, separated by commas; more than CLUSTER_URLS or LIMIT_URL: CHECK. */
void cluster_open(struct cluster *c, const char *query_urls);
void cluster_close(struct cluster *c);
/* The STATUS of the coordinator that leads anew (or of one that answers, if none leads); servers by name. Each is
 * waited for at most timeout_ms, half of it if there are others. Errors: those of query_status, CONFIG (the answer is
 * no JSON). */
enum terrane_error cluster_refresh(struct cluster *c, uint32_t timeout_ms) TERRANE_MUST_CHECK;
/* Also each server's; one that does not answer is left as not answered. */
enum terrane_error cluster_refresh_all(struct cluster *c, uint32_t timeout_ms) TERRANE_MUST_CHECK;
/* The map is stored, `servers` cell servers have joined and every region has one. After cluster_refresh. */
bool cluster_ready(const struct cluster *c, uint64_t servers);
struct cluster_sums cluster_sums(const struct cluster *c);
struct cluster_sums cluster_server_sums(const struct cluster_server *s); /* of one, which must have answered */
void cluster_sums_add(struct cluster_sums *to, const struct cluster_sums *from);
struct cluster_server *cluster_server(struct cluster *c, const char *name); /* NULL: none */

/* The cluster's world, from the map. After cluster_refresh. Errors: CONFIG (the map does not say it). */
enum terrane_error cluster_world(const struct cluster *c, struct world *out) TERRANE_MUST_CHECK;
/* The name of a server, gateway or coordinator with that id; NULL: the map knows none. */
const char *cluster_node_name(const struct cluster *c, struct node_id node);
/* Asks a server one question of the query lane; the answer is borrowed until the next one. Errors: as query_ask, and
 * what a FAULT names. */
enum terrane_error cluster_ask(struct cluster *c, const struct cluster_server *server, const struct writer *question,
                               uint32_t timeout_ms, struct cursor *answer) TERRANE_MUST_CHECK;

/* Every entity that a server owns: asks for a snapshot of every region. `between` (may be NULL) is called between two
 * questions, for whoever has other things to do. Each answer may take timeout_ms. After cluster_refresh. Errors: as
 * query_ask, MESSAGE_*, and what a server answers (NOT_OWNER: the map is changing; try again). */
struct cluster_entity {
    uint64_t id;
    struct position position;
    const void *state; /* borrowed for the call */
    size_t state_size;
};
enum terrane_error cluster_census(struct cluster *c, uint32_t timeout_ms,
                                  void (*each)(void *context, const struct cluster_entity *entity),
                                  void (*between)(void *context), void *context) TERRANE_MUST_CHECK;

#endif
