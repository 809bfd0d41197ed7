/* The gateway session as a pure core (common/core.h); libterrane's shell and the simulator tie it to a network.
 *
 * Every function of terrane.h but open/close/fd/dispatch has its twin here with the same meaning. Such a call only
 * notes what is wanted and brings gateway_deadline_us forward; the next step or gateway_flush carries it out. Callbacks
 * are queued while a step runs and called at its end, one by one, so that they may call any function here but
 * gateway_step and gateway_close.
 *
 * Links: the coordinator is always NODE_COORDINATOR in outputs (and its link events may carry that or its node id), so
 * that a new incarnation at the same url needs no new link. Cell servers are linked when there is something to say.
 * Memory: opaque, owned by the caller through open/close; options are copied. */
#ifndef TERRANE_GATEWAY_CORE_H
#define TERRANE_GATEWAY_CORE_H

#include "common/core.h"
#include "gateway/terrane.h"
#include "proto/messages.h"

struct gateway; /* opaque */

struct gateway_options {
    struct node_info info; /* role gateway; its urls as others dial them */
    const char *coordinator_url;
    uint64_t wall_us; /* wall clock at open: first versions of entities start there (rises across sessions) */
    uint64_t request_timeout_us; /* 0: 10 s */
    bool no_updates, no_reenter;
    struct terrane_callbacks callbacks;
    void *context;
};

struct gateway *gateway_open(const struct gateway_options *options);
void gateway_close(struct gateway *g);
void gateway_step(struct gateway *g, const struct event *in, uint64_t now_us, struct outbox *out);
/* When a TIMEOUT is wanted; a shell may give it late. Flushing of queued commands is part of it (about 2 ms). Look at
 * it again after API calls. UINT64_MAX before EVENT_START. */
uint64_t gateway_deadline_us(const struct gateway *g);
/* Puts packets for everything queued into out, now. In a callback, `out` is the outbox of the step that calls it. */
void gateway_flush(struct gateway *g, uint64_t now_us, struct outbox *out);
/* Begins the end: LEAVE for every own entity, then BYE. gateway_closed says when all is answered or timed out and the
 * BYE has arrived. Commands are refused with CLOSED from now on. */
void gateway_shutdown(struct gateway *g);
bool gateway_closed(const struct gateway *g);

/* Under which id it is known now: options.info.node until the coordinator has given that up. */
struct node_id gateway_node(const struct gateway *g);
bool gateway_is_ready(const struct gateway *g);
const struct world *gateway_world(const struct gateway *g);
enum terrane_error gateway_enter(struct gateway *g, const struct terrane_entity *entity, uint64_t *request);
enum terrane_error gateway_move(struct gateway *g, uint64_t id, double x, double y, double z, double yaw);
enum terrane_error gateway_set_state(struct gateway *g, uint64_t id, const void *state, size_t size, uint64_t *request);
enum terrane_error gateway_set_radius(struct gateway *g, uint64_t id, double radius, uint64_t *request);
enum terrane_error gateway_leave(struct gateway *g, uint64_t id, uint64_t *request);
enum terrane_error gateway_emit(struct gateway *g, uint32_t code, double x, double y, double z, uint16_t layer,
                                double radius, const void *payload, size_t size, uint64_t *request);
enum terrane_error gateway_query_circle(struct gateway *g, double x, double y, double radius, int layer,
                                        uint64_t *request);
enum terrane_error gateway_query_rectangle(struct gateway *g, double min_x, double min_y, double max_x, double max_y,
                                           int layer, uint64_t *request);
enum terrane_error gateway_find(struct gateway *g, uint64_t id, uint64_t *request);
enum terrane_error gateway_attach(struct gateway *g, uint64_t id, uint64_t *request);
size_t gateway_view(const struct gateway *g, uint64_t observer, uint64_t *ids, size_t room);
bool gateway_get(const struct gateway *g, uint64_t id, struct terrane_entity *out);
void gateway_stats(const struct gateway *g, struct terrane_stats *out);
struct metrics;
void gateway_metrics(const struct gateway *g, struct metrics *m); /* adds the same for scrapers */

/* For checkers: ready, all requests answered, nothing queued or unacknowledged, every watched leaf level, no pair that
 * waits for data, no own entity whose new owner's whole view is still to come. */
bool gateway_calm(const struct gateway *g);

#endif
