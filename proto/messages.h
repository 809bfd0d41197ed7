/* Every message of the inbox and query lanes: a msgpack array [kind, field...], fields in the order of the struct.
 *
 * Decoding. message_kind peeks; x_decode checks the message whole (types, ranges, lengths, every list item) and fills
 * the struct; after that iterating its lists with x_next can't fail. Text and blobs point into the message.
 * Encoding. x_encode appends a whole message. A message with a list is x_begin(w, &head, count), then x_add for
 * exactly count items. Nothing here allocates but the writer.
 * Bounds: common/limits.h. Errors of every decode: MESSAGE_*. docs/PROTOCOL.md has an example of each. */
#ifndef TERRANE_PROTO_MESSAGES_H
#define TERRANE_PROTO_MESSAGES_H

#include "common/limits.h"
#include "proto/frame.h"
#include "proto/wire.h"

/* X(NAME, name, number, lane): numbers are the protocol; never reuse one. */
#define MESSAGE_KINDS(X)                                                                                               \
    X(HELLO, hello, 1, FAST)             /* any -> coordinator, until WELCOME */                                       \
    X(WELCOME, welcome, 2, FAST)         /* coordinator -> any */                                                      \
    X(HEARTBEAT, heartbeat, 3, FAST)     /* any <-> coordinator, gateway <-> cell server */                            \
    X(BYE, bye, 4, SURE)                 /* any -> coordinator: leaves for good */                                     \
    X(MAP, map, 5, SURE)                 /* coordinator -> any; the same body on topic map/ */                         \
    X(MAP_REQUEST, map_request, 6, SURE) /* any -> coordinator */                                                      \
    X(ENTER, enter, 10, SURE)            /* gateway -> cell server */                                                  \
    X(LEAVE, leave, 11, SURE)                                                                                          \
    X(SET_STATE, set_state, 12, SURE)                                                                                  \
    X(SET_RADIUS, set_radius, 13, SURE)                                                                                \
    X(MOVES, moves, 14, FAST)                                                                                          \
    X(RESULT, result, 15, SURE)           /* cell server -> gateway */                                                 \
    X(OWNER, owner, 16, SURE)             /* cell server -> gateway: I own that entity now */                          \
    X(VIEWS, views, 17, SURE)             /* cell server -> gateway */                                                 \
    X(EMIT, emit, 18, SURE)               /* gateway -> owner of the place */                                          \
    X(EVENT_RELAY, event_relay, 19, SURE) /* cell server -> cell server */                                             \
    X(EVENT, event, 20, SURE)             /* cell server -> gateway */                                                 \
    X(QUERY, query, 21, SURE)             /* gateway -> cell server; also on the query lane */                         \
    X(QUERY_RESULT, query_result, 22, SURE)                                                                            \
    X(LOOKUP, lookup, 23, SURE) /* gateway -> cell server; also on the query lane */                                   \
    X(LOOKUP_RESULT, lookup_result, 24, SURE)                                                                          \
    X(SUBSCRIBE, subscribe, 25, SURE) /* any -> owner of the leaf; answered by SNAPSHOT or UNSUBSCRIBED */             \
    X(UNSUBSCRIBE, unsubscribe, 26, SURE)                                                                              \
    X(SNAPSHOT_REQUEST, snapshot_request, 27, QUERY)                                                                   \
    X(SNAPSHOT, snapshot, 28, SURE)                                                                                    \
    X(UNSUBSCRIBED, unsubscribed, 29, SURE) /* owner -> subscriber: not here (any more) */                             \
    X(OFFER, offer, 30, SURE)               /* hand-off, cell server -> cell server */                                 \
    X(ACCEPT, accept, 31, SURE)                                                                                        \
    X(REFUSE, refuse, 32, SURE)                                                                                        \
    X(FORWARD, forward, 33, SURE)           /* a gateway's command that came to a former owner */                      \
    X(MOVES_LOST, moves_lost, 34, SURE)     /* cell server -> gateway: send positions again */                         \
    X(STANDBY, standby, 35, SURE)           /* primary -> standby: what changes in a leaf */                           \
    X(STANDBY_ACK, standby_ack, 36, SURE)   /* standby -> primary */                                                   \
    X(STANDBY_BEAT, standby_beat, 37, FAST) /* primary -> standby */                                                   \
    X(RELEASE, release, 38, SURE)           /* former primary -> new one: I serve that leaf no more */                 \
    X(STANDBY_END, standby_end, 56, SURE)   /* primary -> former standby: forget your copy */                          \
    X(REGISTRY, registry, 39, SURE)         /* cell server <-> cell server: who has which entity (registry.h) */       \
    X(ATTACH, attach, 46, SURE)             /* gateway -> owner: that entity is mine from now on */                    \
    X(ATTACHED, attached, 47, SURE)         /* owner -> gateway: what it is; then RESULT */                            \
    X(STATUS_REQUEST, status_request, 40, QUERY)                                                                       \
    X(STATUS, status, 41, QUERY)                                                                                       \
    X(FAULT, fault, 42, QUERY)     /* the answer to a query that can't be answered */                                  \
    X(DEATH, death, 43, QUERY)     /* agent -> coordinator: that process is no more */                                 \
    X(DRAIN, drain, 44, QUERY)     /* operator -> coordinator: take everything from that server */                     \
    X(DONE, done, 45, QUERY)       /* the answer to them, and to PLACE */                                              \
    X(EXPLAIN, explain, 48, QUERY) /* operator -> coordinator: what was decided, or would be; STATUS */                \
    X(PLACE, place, 50, QUERY)     /* operator -> coordinator: that leaf to that server, or no other */                \
    X(SURVEY, survey, 54, QUERY)   /* anybody -> cell server: how many are where? (survey.h) */                        \
    X(SURVEY_RESULT, survey_result, 55, QUERY)                                                                         \
    X(TRACE, trace, 58, QUERY) /* anybody -> cell server: where has it been? (trace.h) */                              \
    X(TRACE_RESULT, trace_result, 59, QUERY)

enum message_kind {
#define X(NAME, name, number, lane) MESSAGE_##NAME = number,
    MESSAGE_KINDS(X)
#undef X
};

/* The kind of a message of [kind, ...], without consuming anything. Errors: MESSAGE_TYPE, _TRUNCATED, _UNKNOWN. */
enum terrane_error message_kind_of(struct cursor message, enum message_kind *kind) TERRANE_MUST_CHECK;
const char *message_kind_name(enum message_kind kind);

enum node_role { ROLE_COORDINATOR, ROLE_CELLSERVER, ROLE_GATEWAY };
#define NODE_FEEDS 8u /* region feeds of one cell server at most */

/* Who a process is and where its sockets listen.
 * msgpack: [role, node, name, host, inbox, sub, query, ghost_feed, [feeds...]] */
struct node_info {
    enum node_role role;
    struct node_id node;
    char name[LIMIT_NAME], host[LIMIT_NAME];
    char inbox_url[LIMIT_URL];      /* its PULL listener */
    char sub_url[LIMIT_URL];        /* its SUB listener: owners dial it; "" if it takes no feeds */
    char query_url[LIMIT_URL];      /* its REP listener, or "" */
    char ghost_feed_url[LIMIT_URL]; /* cell servers: PUB listeners for outside readers, or "" */
    uint32_t feed_count;
    char feed_urls[NODE_FEEDS][LIMIT_URL];
};

struct hello {
    struct node_info info;
    uint32_t capacity; /* relative weight, 1..1000; cell servers only */
    uint64_t term;     /* the highest that it has heard of; 0: none. Below 2^63 */
};

struct welcome {
    struct node_id node; /* the coordinator's */
    uint64_t term;
    struct world world;
    uint64_t lease_us; /* from LIMIT_LEASE_MIN_US to LIMIT_LEASE_MAX_US */
};

/* Load of one leaf; epoch and since as its owner knows them. msgpack: [quadkey, epoch, since, owned] */
struct leaf_load {
    struct quadkey leaf;
    uint32_t epoch, since, owned;
};
/* A leaf whose standby the sender is, level with its primary under that epoch. msgpack: [quadkey, epoch] */
struct leaf_stand {
    struct quadkey leaf;
    uint32_t epoch;
};
/* Without lists it says only that its sender lives. */
struct heartbeat {
    uint64_t term, rev; /* the sender's map (coordinator: the current one) */
    uint64_t tick, ticks_late;
    uint32_t ghosts;
    uint64_t stamp; /* the sender's clock in us; 0: wants no echo */
    uint64_t echo;  /* the stamp that it answers; 0: none */
    uint32_t count, stand_count;
    struct cursor loads, stands;
};

/* `epoch` rises with every change of primary or standby; `since` is the one under which the present primary took over:
 * streams and hand-offs go by it. msgpack: [quadkey, epoch, since, primary, standby, feed] */
struct leaf_owner {
    struct quadkey leaf;
    uint32_t epoch, since;           /* since <= epoch; both 0: never owned */
    struct node_id primary, standby; /* NODE_NONE: none */
    uint32_t feed;                   /* which of the primary's feeds carries r/<leaf>/ */
};
/* base 0: the whole map, in `parts` messages; part counts from 0, here and everywhere. Else the changes from revision
 * base to rev, one part: nodes and leaves replace or add; nodes in gone_nodes and leaves in gone_leaves are no more. */
struct map {
    uint64_t term, rev, base;
    uint32_t part, parts;
    uint32_t node_count, leaf_count, gone_node_count, gone_leaf_count;
    struct cursor nodes, leaves, gone_nodes, gone_leaves;
};
struct map_request {
    uint64_t rev;
};

/* Commands of a gateway. `sequence` rises with every command of a gateway session; a command changes its register
 * (position, state, radius) only if its sequence is higher than the register's, so commands are idempotent. */
struct enter {
    uint64_t request, sequence;
    struct entity_record record; /* record.version: where its versions start; at most VERSION_ENTER_MAX */
};
struct leave {
    uint64_t request, sequence;
    struct entity_id id;
};
struct set_state {
    uint64_t request, sequence;
    struct entity_id id;
    const uint8_t *state;
    uint32_t state_size;
};
struct set_radius {
    uint64_t request, sequence;
    struct entity_id id;
    uint32_t radius;
};
struct move {
    struct entity_id id;
    struct position position;
    uint8_t yaw;
};
/* msgpack: [14, sequence, [id, x, y, z, yaw, ...]] flat */
struct moves {
    uint64_t sequence;
    uint32_t count; /* entities */
    struct cursor moves;
};
/* Another gateway, or another incarnation of one, takes an entity over. The owner's registers go by `sequence` from
 * then on, as after ENTER. */
struct attach {
    uint64_t request, sequence;
    struct entity_id id;
    struct node_id former; /* only if it is still this gateway's; NODE_NONE: whoever's it is */
};
struct attached {
    uint64_t request;
    struct quadkey leaf;
    struct entity_record record;
};
/* request 0: nobody asked; error DETACHED: another gateway has attached that entity. */
struct result {
    uint64_t request;
    struct entity_id id;
    enum terrane_error error;
    uint64_t version;
};
struct owner {
    struct entity_id id;
    uint64_t version;
    struct quadkey leaf;
};

enum view_part {
    VIEW_CHANGES,    /* unsee, then see */
    VIEW_WHOLE_MORE, /* see holds a part of the whole view, more follows */
    VIEW_WHOLE_LAST, /* see holds the last (or only) part */
};
/* msgpack: [observer, version, part, [unsee...], [see...]]; ids ascending */
struct view_item {
    struct entity_id observer;
    uint64_t version;    /* of the observer: older than the receiver's is ignored */
    enum view_part part; /* unsee is empty but in VIEW_CHANGES */
    uint32_t unsee_count, see_count;
    struct cursor unsee, see; /* entity_next */
};
struct views {
    uint64_t tick;
    uint32_t count;
    struct cursor items;
};

/* A map event. Its identity in the world is (origin, request). radius in position units. */
struct emit {
    struct node_id origin; /* the gateway that emitted it */
    uint64_t request;
    uint32_t code, radius;
    uint16_t layer;
    struct position position;
    const uint8_t *payload;
    uint32_t payload_size; /* at most LIMIT_EVENT_BYTES */
};
struct event_told {
    struct emit emit;
    uint32_t count;
    struct cursor observers; /* entity_next */
};

enum query_shape { QUERY_CIRCLE, QUERY_RECTANGLE };
struct query {
    uint64_t request;
    enum query_shape shape;
    int32_t layer; /* -1: all */
    /* circle: centre (a, b), radius c >= 0, d = 0; rectangle: min (a, b), max (c, d), closed, min <= max.
     * All above -POSITION_END: squares of differences then fit 63 bits. */
    int32_t a, b, c, d;
};
/* msgpack: [id, version, x, y, z] */
struct query_item {
    struct entity_id id;
    uint64_t version;
    struct position position;
};
struct query_result {
    uint64_t request;
    enum terrane_error error;
    uint32_t part, parts, count;
    struct cursor items;
};
struct lookup {
    uint64_t request;
    struct entity_id id;
};
struct lookup_result {
    uint64_t request;
    struct entity_id id;
    enum terrane_error error; /* ENTITY_UNKNOWN: not owned here */
    uint64_t version;
    struct quadkey leaf;
    struct position position;
};

struct subscribe { /* also UNSUBSCRIBE */
    enum stream_kind stream;
    struct quadkey leaf;
};
struct snapshot_request {
    enum stream_kind stream;
    struct quadkey leaf;
    uint32_t from_slot; /* answers hold what fits; ask again from the last slot + 1 while parts > 1 */
};
/* All entities of a stream as of frame `seq`; each item [slot, record]. */
struct snapshot {
    enum stream_kind stream;
    struct quadkey leaf;
    uint32_t epoch;
    uint64_t seq, tick;
    uint32_t part, parts, count;
    struct cursor items;
};
struct unsubscribed {
    enum stream_kind stream;
    struct quadkey leaf;
    enum terrane_error error;
};

/* All of an entity, for another owner; its version is at most VERSION_OFFER_MAX. `recall` are the ids that it sees in
 * its hysteresis band (they lie beyond its radius, so the new owner could not know). msgpack: [record, gateway, seq
 * position, seq state, seq radius, [recall]]
 */
struct transfer {
    struct entity_record record;
    struct node_id gateway;
    uint64_t position_sequence, state_sequence, radius_sequence;
    uint32_t recall_count;
    struct cursor recall; /* entity_next */
};
struct offer {
    struct quadkey from, to;
    uint32_t from_epoch, to_epoch;
    uint32_t count;
    struct cursor items;
};
/* The offered version and the one under which the destination owns it now. msgpack: [id, offered, version] */
struct accept_item {
    struct entity_id id;
    uint64_t offered, version;
};
struct accept {
    struct quadkey to;
    uint32_t to_epoch;
    uint32_t count;
    struct cursor items;
};
/* Only the leaf's owner refuses, under `to_epoch`; to an OFFER under another one it is no answer. */
struct refuse {
    struct quadkey to;
    uint32_t to_epoch;
    enum terrane_error error;
    uint32_t count;
    struct cursor items; /* accept_item, version 0 */
};
/* `command` is one ENTER-less gateway command (LEAVE, SET_STATE, SET_RADIUS, ATTACH, MOVES with one entity), inline. */
struct forward {
    struct node_id gateway;
    uint32_t hops; /* refused above 8 */
    struct cursor command;
};
struct moves_lost {
    uint64_t packets;
};

/* What a leaf's primary tells its standby. seq counts from 1 within an epoch. parts > 0: a part of a whole copy, puts
 * only. parts == 0: changes since the last seq, to be applied in the order drops, puts, moves. */
struct standby {
    struct quadkey leaf;
    uint32_t epoch; /* of the leaf_owner, not `since` */
    uint64_t seq;
    uint32_t part, parts;
    uint32_t drop_count, put_count, move_count;
    struct cursor drops, puts, moves;
};
/* Replaces what the standby has of that entity in that leaf. msgpack: [record, gateway, seq position, seq state,
 * seq radius, enter_request, slot, leaving_to, pending] */
struct standby_item {
    struct transfer transfer;  /* without recall; its version is below VERSION_MAX */
    uint64_t enter_request;    /* the request that entered it, so that a repetition is known; 0: none */
    uint32_t slot;             /* of this leaf's standby stream; below LIMIT_ENTITIES */
    struct quadkey leaving_to; /* the leaf that it is being handed to; v 0: none */
    bool pending;              /* offered to the sender, not committed yet */
};
/* Against the position that the standby has; each within what frames allow. msgpack, flat: slot, dx, dy, dz, yaw */
struct standby_move {
    uint32_t slot;
    int32_t dx, dy, dz;
    uint8_t yaw;
};
/* msgpack: [leaf, epoch, seq, refused] */
struct standby_ack_item {
    struct quadkey leaf;
    uint32_t epoch;
    uint64_t seq; /* all up to it are applied; 0: none */
    bool refused; /* the sender is no standby of that leaf under that epoch (any more) */
};
struct standby_ack {
    uint64_t stamp; /* of the newest STANDBY_BEAT */
    uint32_t count;
    struct cursor items;
};
struct standby_beat {
    uint64_t stamp; /* the primary's clock in us */
};
struct release {
    struct quadkey leaf;
    uint32_t epoch;
    uint64_t seq; /* the last one of its standby stream to the receiver; 0: there was none */
};
struct standby_end {
    struct quadkey leaf;
    uint32_t epoch; /* under which another standby is level */
};
struct death {
    struct node_id node;
};
struct drain {
    char name[LIMIT_NAME]; /* of a cell server */
};
enum explain_what { EXPLAIN_EVENTS, EXPLAIN_PLAN };
struct explain {
    enum explain_what what;
    uint64_t since; /* EVENTS: only those with a higher number */
};
enum place_what { PLACE_MOVE, PLACE_PIN, PLACE_UNPIN };
struct place {
    enum place_what what;
    struct quadkey leaf;
    char name[LIMIT_NAME]; /* MOVE: of a cell server; else empty */
};
struct done {
    uint32_t count;       /* DRAIN: leaves that it still has; DEATH: those that it had; PLACE: leaves on their way */
    char text[LIMIT_URL]; /* for people */
};
struct status {
    const char *json; /* encode: NUL-terminated; decode: not terminated, `size` bytes in the message */
    size_t size;
};
struct fault {
    enum terrane_error error;
    char text[LIMIT_URL];
};

/* Messages without a list. */
void hello_encode(struct writer *w, const struct hello *m);
enum terrane_error hello_decode(struct cursor c, struct hello *m) TERRANE_MUST_CHECK;
void welcome_encode(struct writer *w, const struct welcome *m);
enum terrane_error welcome_decode(struct cursor c, struct welcome *m) TERRANE_MUST_CHECK;
void bye_encode(struct writer *w);
enum terrane_error bye_decode(struct cursor c) TERRANE_MUST_CHECK;
void map_request_encode(struct writer *w, const struct map_request *m);
enum terrane_error map_request_decode(struct cursor c, struct map_request *m) TERRANE_MUST_CHECK;
void enter_encode(struct writer *w, const struct enter *m);
enum terrane_error enter_decode(struct cursor c, struct enter *m) TERRANE_MUST_CHECK;
void leave_encode(struct writer *w, const struct leave *m);
enum terrane_error leave_decode(struct cursor c, struct leave *m) TERRANE_MUST_CHECK;
void set_state_encode(struct writer *w, const struct set_state *m);
enum terrane_error set_state_decode(struct cursor c, struct set_state *m) TERRANE_MUST_CHECK;
void set_radius_encode(struct writer *w, const struct set_radius *m);
enum terrane_error set_radius_decode(struct cursor c, struct set_radius *m) TERRANE_MUST_CHECK;
void attach_encode(struct writer *w, const struct attach *m);
enum terrane_error attach_decode(struct cursor c, struct attach *m) TERRANE_MUST_CHECK;
void attached_encode(struct writer *w, const struct attached *m);
enum terrane_error attached_decode(struct cursor c, struct attached *m) TERRANE_MUST_CHECK;
void result_encode(struct writer *w, const struct result *m);
enum terrane_error result_decode(struct cursor c, struct result *m) TERRANE_MUST_CHECK;
void owner_encode(struct writer *w, const struct owner *m);
enum terrane_error owner_decode(struct cursor c, struct owner *m) TERRANE_MUST_CHECK;
void emit_encode(struct writer *w, enum message_kind kind, const struct emit *m);   /* EMIT or EVENT_RELAY */
enum terrane_error emit_decode(struct cursor c, struct emit *m) TERRANE_MUST_CHECK; /* either kind */
void query_encode(struct writer *w, const struct query *m);
enum terrane_error query_decode(struct cursor c, struct query *m) TERRANE_MUST_CHECK;
void lookup_encode(struct writer *w, const struct lookup *m);
enum terrane_error lookup_decode(struct cursor c, struct lookup *m) TERRANE_MUST_CHECK;
void lookup_result_encode(struct writer *w, const struct lookup_result *m);
enum terrane_error lookup_result_decode(struct cursor c, struct lookup_result *m) TERRANE_MUST_CHECK;
void subscribe_encode(struct writer *w, enum message_kind kind, const struct subscribe *m); /* SUBSCRIBE, UNSUBSCRIBE */
enum terrane_error subscribe_decode(struct cursor c, struct subscribe *m) TERRANE_MUST_CHECK; /* either kind */
void snapshot_request_encode(struct writer *w, const struct snapshot_request *m);
enum terrane_error snapshot_request_decode(struct cursor c, struct snapshot_request *m) TERRANE_MUST_CHECK;
void unsubscribed_encode(struct writer *w, const struct unsubscribed *m);
enum terrane_error unsubscribed_decode(struct cursor c, struct unsubscribed *m) TERRANE_MUST_CHECK;
void forward_encode(struct writer *w, const struct forward *m); /* command: its bytes */
enum terrane_error forward_decode(struct cursor c, struct forward *m) TERRANE_MUST_CHECK;
void moves_lost_encode(struct writer *w, const struct moves_lost *m);
enum terrane_error moves_lost_decode(struct cursor c, struct moves_lost *m) TERRANE_MUST_CHECK;
void status_request_encode(struct writer *w);
enum terrane_error status_request_decode(struct cursor c) TERRANE_MUST_CHECK;
void status_encode(struct writer *w, const struct status *m);
enum terrane_error status_decode(struct cursor c, struct status *m) TERRANE_MUST_CHECK;
void fault_encode(struct writer *w, const struct fault *m);
enum terrane_error fault_decode(struct cursor c, struct fault *m) TERRANE_MUST_CHECK;
void standby_beat_encode(struct writer *w, const struct standby_beat *m);
enum terrane_error standby_beat_decode(struct cursor c, struct standby_beat *m) TERRANE_MUST_CHECK;
void release_encode(struct writer *w, const struct release *m);
enum terrane_error release_decode(struct cursor c, struct release *m) TERRANE_MUST_CHECK;
void standby_end_encode(struct writer *w, const struct standby_end *m);
enum terrane_error standby_end_decode(struct cursor c, struct standby_end *m) TERRANE_MUST_CHECK;
void death_encode(struct writer *w, const struct death *m);
enum terrane_error death_decode(struct cursor c, struct death *m) TERRANE_MUST_CHECK;
void explain_encode(struct writer *w, const struct explain *m);
enum terrane_error explain_decode(struct cursor c, struct explain *m) TERRANE_MUST_CHECK;
void place_encode(struct writer *w, const struct place *m);
enum terrane_error place_decode(struct cursor c, struct place *m) TERRANE_MUST_CHECK;
void drain_encode(struct writer *w, const struct drain *m);
enum terrane_error drain_decode(struct cursor c, struct drain *m) TERRANE_MUST_CHECK;
void done_encode(struct writer *w, const struct done *m);
enum terrane_error done_decode(struct cursor c, struct done *m) TERRANE_MUST_CHECK;

/* Messages with lists. m->count loads follow heartbeat_begin, then heartbeat_stands and as many stands. */
void heartbeat_begin(struct writer *w, const struct heartbeat *m);
void heartbeat_add(struct writer *w, const struct leaf_load *load);
void heartbeat_stands(struct writer *w, uint32_t count);
void heartbeat_add_stand(struct writer *w, const struct leaf_stand *stand);
enum terrane_error heartbeat_decode(struct cursor c, struct heartbeat *m) TERRANE_MUST_CHECK;
bool heartbeat_next(struct heartbeat *m, struct leaf_load *load);
bool heartbeat_next_stand(struct heartbeat *m, struct leaf_stand *stand);

/* Four lists in order: each map_list(w, count), then its items. */
void map_begin(struct writer *w, const struct map *m);
void map_list(struct writer *w, uint32_t count);
void map_add_node(struct writer *w, const struct node_info *node);
void map_add_leaf(struct writer *w, const struct leaf_owner *leaf);
void map_add_gone_node(struct writer *w, struct node_id node);
void map_add_gone_leaf(struct writer *w, struct quadkey leaf);
enum terrane_error map_decode(struct cursor c, struct map *m) TERRANE_MUST_CHECK;
bool map_next_node(struct map *m, struct node_info *node);
bool map_next_leaf(struct map *m, struct leaf_owner *leaf);
bool map_next_gone_node(struct map *m, struct node_id *node);
bool map_next_gone_leaf(struct map *m, struct quadkey *leaf);

void moves_begin(struct writer *w, const struct moves *m); /* m->count moves follow */
void moves_add(struct writer *w, const struct move *move);
enum terrane_error moves_decode(struct cursor c, struct moves *m) TERRANE_MUST_CHECK;
bool moves_next(struct moves *m, struct move *move);

/* One item: views_add(w, item), then unsee_count ids, entity_list(w, see_count), see_count ids by entity_add. */
void views_begin(struct writer *w, const struct views *m);
void views_add(struct writer *w, const struct view_item *item);
void entity_list(struct writer *w, uint32_t count);
void entity_add(struct writer *w, struct entity_id id);
bool entity_next(struct cursor *list, struct entity_id *id);
enum terrane_error views_decode(struct cursor c, struct views *m) TERRANE_MUST_CHECK;
bool views_next(struct views *m, struct view_item *item);

void event_told_begin(struct writer *w, const struct event_told *m); /* count ids by entity_add follow */
enum terrane_error event_told_decode(struct cursor c, struct event_told *m) TERRANE_MUST_CHECK;

void query_result_begin(struct writer *w, const struct query_result *m);
void query_result_add(struct writer *w, const struct query_item *item);
enum terrane_error query_result_decode(struct cursor c, struct query_result *m) TERRANE_MUST_CHECK;
bool query_result_next(struct query_result *m, struct query_item *item);

void snapshot_begin(struct writer *w, const struct snapshot *m);
void snapshot_add(struct writer *w, uint32_t slot, const struct entity_record *record);
enum terrane_error snapshot_decode(struct cursor c, struct snapshot *m) TERRANE_MUST_CHECK;
bool snapshot_next(struct snapshot *m, uint32_t *slot, struct entity_record *record);

void offer_begin(struct writer *w, const struct offer *m);
void offer_add(struct writer *w, const struct transfer *item); /* then recall_count ids by entity_add */
enum terrane_error offer_decode(struct cursor c, struct offer *m) TERRANE_MUST_CHECK;
bool offer_next(struct offer *m, struct transfer *item);

void accept_begin(struct writer *w, const struct accept *m);
void accept_add(struct writer *w, const struct accept_item *item);
enum terrane_error accept_decode(struct cursor c, struct accept *m) TERRANE_MUST_CHECK;
bool accept_next(struct accept *m, struct accept_item *item);
void refuse_begin(struct writer *w, const struct refuse *m); /* items by accept_add */
enum terrane_error refuse_decode(struct cursor c, struct refuse *m) TERRANE_MUST_CHECK;
bool refuse_next(struct refuse *m, struct accept_item *item);

/* standby_begin, m->drop_count ids by entity_add, standby_puts and its items, standby_moves and its items. */
void standby_begin(struct writer *w, const struct standby *m);
void standby_puts(struct writer *w, uint32_t count);
void standby_put(struct writer *w, const struct standby_item *item);
void standby_moves(struct writer *w, uint32_t count);
void standby_move(struct writer *w, const struct standby_move *move);
enum terrane_error standby_decode(struct cursor c, struct standby *m) TERRANE_MUST_CHECK;
bool standby_next_drop(struct standby *m, struct entity_id *id);
bool standby_next_put(struct standby *m, struct standby_item *item);
bool standby_next_move(struct standby *m, struct standby_move *move);

void standby_ack_begin(struct writer *w, const struct standby_ack *m); /* m->count items follow */
void standby_ack_add(struct writer *w, const struct standby_ack_item *item);
enum terrane_error standby_ack_decode(struct cursor c, struct standby_ack *m) TERRANE_MUST_CHECK;
bool standby_ack_next(struct standby_ack *m, struct standby_ack_item *item);

#endif
