/* What the files of the gateway core share: its tables and who may call what. Private to gateway/.
 *
 * One struct gateway holds everything; each file keeps one noun of it:
 *   own.c         own entities: registers, the commands of the API
 *   owner.c       who owns an own entity: what servers say, what the map shows
 *   seek.c        own entities whose owner is in doubt: asking for them, entering them again, giving them up
 *   attach.c      taking entities over from another gateway or another incarnation of this one
 *   requests.c    everything that is answered by `done`: sending, repeating, time-outs, results
 *   query.c       queries and finds, which ask several servers
 *   views.c       pairs (observer, subject): what the servers say, what the streams know, what has been told
 *   notify.c      the queue of callbacks
 *   watch.c       which leaves' streams are needed, and subscriptions to them
 *   map.c         the ownership map
 *   peers.c       sessions and links with cell servers, moves on the wire
 *   membership.c  the coordinator: HELLO, WELCOME, heartbeats
 *   core.c        open, close, step, deadlines
 *
 * API functions may be called in callbacks, so they only touch own entities, requests, pairs' flags and the queue; what
 * needs an outbox, a session or the replicas waits for the next step (gateway->flush_us asks for it).
 * Tables are arrays with free lists; others refer to an item by its slot. An array may move when it grows: slots are
 * kept across calls, pointers are not.
 * Memory: all of it belongs to the gateway. */
#ifndef TERRANE_GATEWAY_INTERNAL_H
#define TERRANE_GATEWAY_INTERNAL_H

#include "common/array.h"
#include "common/check.h"
#include "common/geometry.h"
#include "common/mutation.h"
#include "common/table.h"
#include "common/urls.h"
#include "gateway/core.h"
#include "proto/ownership.h"
#include "proto/session.h"
#include "stream/replicas.h"

#define SLOT_NONE  UINT32_MAX
#define NODE_FIRST 16u /* ids below are aliases (common/core.h) */

#define FLUSH_US               2000u  /* commands wait so long for company */
#define ACK_US                 10000u /* acknowledgements alone wait longer: moves usually come first */
#define HELLO_US               200000u
#define HEARTBEAT_US           250000u /* to the coordinator */
#define PEER_HEARTBEAT_US      500000u /* to cell servers */
#define COORDINATOR_SILENCE_US 1000000u
#define PEER_SILENCE_US        2000000u /* unanswered sure messages for so long: dial again */
#define RETRY_US               100000u  /* between tries of a command that found no owner */
#define RETRY_FIRST_US         10000u   /* the first tries: a successor may be about to serve */
#define FIND_AGAIN_US          200000u  /* an entity in transit has arrived by then */
#define SEEK_US                500000u  /* OWNER of a successor comes sooner; only then is it worth asking */
#define SEEK_SOON_US           50000u   /* somebody does not know (yet): again */
#define SEEK_AHEAD_US          1000000u /* an owner that the map does not name for so long is asked about */
#define SEEK_ROUND_US          1000000u /* answers to one round come sooner */
#define SEEK_SILENT_US         5000000u /* who has not answered for so long is not waited for any more */
#define SEEK_BATCH             256u     /* entities asked for at once */
#define SEEK_ROUNDS            2u       /* all servers must say so often that they do not know it */
#define REENTER_LEAP           4096u    /* more than the hand-offs that a gateway can have missed */
#define REENTER_TRIES          8u
#define LINGER_US              5000000u /* a leaf that is no longer needed is kept: who paces a border comes back */
#define SWEEP_US               250000u
#define KEPT_ITEMS             4096u     /* an inquiry that found more gives the memory back */
#define EVENT_MEMORY_US        10000000u /* a server tells it to others for 3 s, and they to arrivals for 3 s more */
#define EVENT_MEMORY           65536u    /* events remembered for telling copies apart, at least */
#define LIMIT_REQUESTS         (1u << 18)
#define LIMIT_REQUEST_BYTES    (16u << 20) /* payloads of unanswered emits */
#define LIMIT_PAIRS            (1u << 24)  /* a gigabyte of them; beyond, views show what was there first */
#define LIMIT_FOUND            (1u << 20)  /* entities in one query's answer */

/* ---- own.c ---- */

enum own_state {
    OWN_FREE,
    OWN_ENTERING, /* ENTER is not answered; other commands are held */
    OWN_LIVE,
    OWN_LEAVING, /* LEAVE is on its way: nothing but the last unsees is told of it */
    OWN_GONE,    /* out of the id table; the slot lives until its last pair is told */
};

/* An observer's whole view that is coming in, in parts. */
struct own_view {
    struct node_id node; /* whose changes are the view's: it sent the last whole one, or answered ENTER */
    bool missing;        /* a new owner is known and its whole view has not come */
    bool filling;        /* parts have come, the last has not */
    struct node_id filling_node;
    uint64_t filling_version;
    uint32_t mark; /* pairs that the whole view in progress has named carry it */
};

/* Looking for the owner of an own entity (seek.c). */
struct seek {
    uint64_t due_us;   /* what comes next is due; 0: nothing is sought */
    uint64_t began_us; /* first round */
    uint64_t number;   /* of the LOOKUPs of the round that is open; 0: none is */
    uint32_t open;     /* answers to come */
    uint32_t rounds;   /* complete ones in which nobody knew it */
    bool unsure;       /* somebody could not say */
    struct node_id node;
    uint64_t version; /* node owns it under that version, which is lower than we know; 0: nobody */
};

struct own {
    struct entity_id id;
    enum own_state state;
    bool announced; /* the game has had `done` of its enter: what is seen may be told */
    bool attaching; /* its ENTERING is an ATTACH */
    bool blank;     /* its registers are not known before ATTACHED */
    bool doubtful;  /* `peer` is the map's word; it has not spoken itself */
    struct position position;
    uint8_t yaw;
    uint16_t layer;
    uint32_t kind, flags, radius;
    uint8_t *blob; /* the state register */
    uint32_t blob_size, blob_room;
    uint64_t state_sequence, radius_sequence;
    uint64_t version;
    uint32_t peer, peer_prev, peer_next; /* the owner as far as known */
    struct node_id left;                 /* doubtful: whom the map took the leaf from */
    struct node_id asked;                /* ENTERING: to whom the ENTER or ATTACH went last */
    struct position enter_position;      /* as ENTER says it, until it is known to be refused */
    struct quadkey leaf;                 /* as the owner said; NONE: unknown */
    uint32_t leaf_since;                 /* of `leaf` in the map by which its owner is known */
    struct seek seek;
    /* Entered again: versions below are of a life that is over; a LEAVE of that sequence ends such a life and no later
     * one. 0: never. */
    uint64_t life_version, life_sequence;
    struct own_view view;
    uint32_t pairs; /* list head */
    uint32_t requests, requests_last;
    bool dirty;     /* in the list of positions to send */
    bool moved;     /* while it was entering */
    bool leaving;   /* the game has called leave, perhaps while it was entering */
    bool unsettled; /* in the list of those whose needed leaves may have changed */
    bool needing;   /* cell_x, cell_y, reach are counted in the watches */
    int32_t cell_x, cell_y;
    int64_t reach;
    uint32_t next; /* free list */
};

/* ---- requests.c, query.c ---- */

enum request_state {
    REQUEST_HELD,   /* until its entity's ENTER is answered */
    REQUEST_QUEUED, /* goes out at the next flush */
    REQUEST_SENT,
    REQUEST_WAITING, /* tried again at retry_us or when the map or the owner changes */
};

struct request {
    uint64_t number; /* 0: free */
    enum terrane_operation operation;
    enum request_state state;
    struct entity_id id;
    uint32_t own;
    uint64_t sequence, issued_us, retry_us;
    struct node_id sent_to;
    uint32_t attempts, refusals;
    uint32_t unanswered;         /* ENTER: servers that may have carried it out and have not said whether */
    bool silent;                 /* nobody waits for its `done`: an entity is entered again or taken over */
    uint32_t prev, next;         /* all requests in the order of issue; next also the free list */
    uint32_t own_prev, own_next; /* of one entity, in order */
    struct emit emit;            /* EMIT; payload is owned by the request */
    uint32_t inquiry;            /* QUERY, FIND */
    uint64_t wire;               /* QUERY, FIND: the number that this round's answers carry; 0: not asked yet */
};

struct inquiry_ask {
    struct node_id node;
    uint32_t parts; /* received so far */
    bool answered;
};

/* A query or find: several servers are asked, one answer is given. */
struct inquiry {
    struct query query;
    struct inquiry_ask *asks;
    uint32_t ask_count, ask_room, open; /* open: not answered yet */
    struct query_item *items;
    uint32_t item_count, item_room;
    enum terrane_error error;
    bool again;  /* find: the second round */
    bool unsure; /* somebody could not say (yet) */
    uint32_t next;
};

/* ---- views.c ---- */

enum { PAIR_IN = 1, PAIR_TOLD = 2, PAIR_QUEUED = 4, PAIR_BROKEN = 8 };

struct pair {
    struct entity_id observer_id; /* beside its slot, so that an update looks at nothing else */
    uint32_t observer, subject;   /* slots */
    uint32_t flags; /* IN: the server says so; TOLD: the game knows; BROKEN: out and in again since TOLD */
    uint32_t mark;
    uint32_t observer_prev, observer_next, subject_prev, subject_next;
};

/* An entity that some own observer sees or is about to. */
struct subject {
    struct entity_id id; /* 0: free */
    uint32_t handle;     /* in replicas; SLOT_NONE: no data */
    uint32_t pairs;
    uint32_t changes; /* not told yet */
    bool queued;
    uint16_t layer;
    uint32_t kind, flags, radius; /* as last heard, to tell a change from a mere new version */
    uint32_t next;
};

/* ---- notify.c ---- */

enum note_kind { NOTE_READY, NOTE_PAIR, NOTE_UPDATE, NOTE_EVENT, NOTE_DONE, NOTE_FOUND, NOTE_ERROR };

struct note {
    enum note_kind kind;
    uint32_t slot; /* PAIR, UPDATE, EVENT (observer) */
    enum terrane_operation operation;
    enum terrane_error error;
    uint64_t request;
    struct entity_id id;
    struct position position;
    uint32_t code;
    size_t offset, size; /* in bytes */
};

struct notes {
    struct note *items;
    uint32_t head, count, room;
    struct writer bytes;
    /* What a callback is given lies here, so that what it calls can't move it. */
    struct terrane_entity *found;
    uint32_t found_room;
    uint8_t *payload;
    uint32_t payload_room;
    bool delivering;
};

/* ---- watch.c ---- */

struct watch {
    struct quadkey leaf;
    uint32_t need;        /* own entities that need it */
    uint64_t unneeded_us; /* since when nobody does */
    uint64_t ask_us;      /* SUBSCRIBE again then; 0: not wanted */
    uint32_t refusals;    /* since the leaf has this owner */
    struct node_id asked; /* the last to whom SUBSCRIBE went */
    struct node_id early; /* the standby that has been asked beforehand; NONE: none has */
};

/* ---- peers.c, membership.c ---- */

struct peer {
    struct node_id node; /* 0: free */
    struct session *session;
    bool up;
    uint64_t heard_us, linked_us, beat_us;
    uint64_t named_term, unnamed_us; /* the last term whose map named it; since when none does, 0: it does */
    uint32_t own;                    /* list head of the own entities it owns */
    uint32_t *moves;                 /* own slots whose positions go out in this flush */
    uint32_t move_count, move_room;
    uint32_t next;
};

struct membership {
    struct node_id node; /* the coordinator; NONE before the first WELCOME */
    struct session *session;
    bool member; /* false: saying HELLO */
    uint64_t term, hellos;
    uint64_t heard_us, linked_us, hello_us, beat_us, ask_us;
    bool bye;
};

struct gateway_counters {
    uint64_t moves_sent, moves_repeated, frame_bytes, frame_moves, handoffs, malformed, stale, dropped;
    uint64_t sure_repeated; /* of sessions that are closed */
};

struct gateway {
    struct node_info info;
    struct urls coordinators;
    uint64_t wall_us, start_us, now_us, timeout_us;
    bool listed; /* the map names us, so servers take what we say */
    bool started, no_updates, no_reenter, stepping, closing, ready_told;
    struct terrane_callbacks callbacks;
    void *context;
    struct outbox *out; /* of the step that runs */

    struct world world;
    bool has_world;
    double unit;

    struct ownership map;
    uint64_t leaves_signature;
    struct node_id *owners; /* who owns a leaf, ascending by first leaf; each once */
    uint32_t owner_count, owner_room;
    struct membership coordinator;

    struct peer *peers;
    uint32_t peer_count, peer_room, peer_free;
    struct table peer_index;

    struct own *own;
    uint32_t own_count, own_room, own_free, own_live; /* own_live: in the id table */
    struct table own_index;
    uint64_t sequence, version;
    uint32_t *dirty, *unsettled;
    uint32_t dirty_count, dirty_room, unsettled_count, unsettled_room;
    uint32_t seeks, views_missing;
    struct table seek_index; /* number of a round -> own slot */
    uint64_t seek_us;        /* no seek is due before; UINT64_MAX: none */
    struct node_id former;   /* the incarnation under which servers may still hold what is ours; NONE: there was none */

    struct request *requests;
    uint32_t request_count, request_room, request_free, request_open, request_waiting, request_queued;
    uint32_t request_first, request_last;
    struct table request_index;
    uint64_t request_number, retry_us;
    size_t request_bytes;
    uint32_t *sending;
    uint32_t sending_count, sending_room;
    struct inquiry *inquiries;
    uint32_t inquiry_count, inquiry_room, inquiry_free;

    struct pair *pairs;
    uint32_t pair_count, pair_room, pair_free, pairs_waiting, pairs_told;
    struct table pair_index;
    struct subject *subjects;
    uint32_t subject_count, subject_room, subject_free;
    struct table subject_index;
    uint32_t *handle_subject;
    uint32_t handle_room;
    uint32_t marks;
    struct replicas *replicas;

    struct watch *watches;
    uint32_t watch_count, watch_room;
    struct table watch_index;
    uint64_t watch_ask_us; /* no SUBSCRIBE is due before */
    uint64_t sweep_us;

    struct table events[2]; /* now and before */
    uint64_t events_us;

    struct notes notes;
    uint64_t flush_us; /* UINT64_MAX: nothing to flush */
    struct writer message, packet;
    struct gateway_counters counters;
};

/* It is the one for which its entity is ENTERING. */
static inline bool enters(const struct request *r)
{
    return r->operation == TERRANE_ENTER || r->operation == TERRANE_ATTACH;
}

/* core.c */
void gateway_want_flush(struct gateway *g, uint64_t delay_us);
void gateway_to_entity(const struct gateway *g, const struct entity_record *record, struct terrane_entity *out);

/* own.c */
enum terrane_error gateway_usable(const struct gateway *g) TERRANE_MUST_CHECK; /* CLOSED, NOT_READY */
uint32_t gateway_own_find(const struct gateway *g, struct entity_id id);       /* not the GONE */
void gateway_own_set_peer(struct gateway *g, uint32_t slot, uint32_t peer);
/* ENTER or ATTACH is answered well, or another owner has spoken: what was held goes out. */
void gateway_own_entered(struct gateway *g, uint32_t slot);
/* It is ENTERING again: its requests wait for the answer. */
void gateway_own_hold(struct gateway *g, uint32_t slot);
/* Out of the id table; its pairs are unsee'n; its requests but `except` are done with error. */
void gateway_own_end(struct gateway *g, uint32_t slot, uint32_t except, enum terrane_error error);
void gateway_own_free_if_over(struct gateway *g, uint32_t slot);
void gateway_own_view_missing(struct gateway *g, uint32_t slot, bool missing);
void gateway_own_view_whole(struct gateway *g, uint32_t slot, struct node_id node);
void gateway_own_dirty(struct gateway *g, uint32_t slot);
void gateway_own_unsettle(struct gateway *g, uint32_t slot);
void gateway_own_record(const struct gateway *g, uint32_t slot, struct entity_record *out);
/* Fills the registers of a blank entity. */
void gateway_own_learn(struct gateway *g, uint32_t slot, const struct entity_record *record);
uint64_t gateway_own_next_version(struct gateway *g);
enum terrane_error gateway_own_new(struct gateway *g, struct entity_id id, enum terrane_operation operation,
                                   uint32_t *slot, uint32_t *request) TERRANE_MUST_CHECK;

/* owner.c */
/* Somebody who says that it owns the entity under that version. False: known to be outdated. */
bool gateway_own_claim(struct gateway *g, uint32_t slot, struct node_id node, uint64_t version);
void gateway_own_owner(struct gateway *g, struct node_id from, const struct owner *owner);
/* Where an owner says that the entity stands. */
void gateway_own_place(struct gateway *g, uint32_t slot, struct quadkey leaf);
/* Sends a LEAVE that nobody waits for. */
void gateway_own_expel(struct gateway *g, uint32_t slot);
/* The same for a life before the entity was entered again, which somebody still holds. */
void gateway_own_expel_former(struct gateway *g, uint32_t slot, struct node_id holder);
/* Goes over to the map's successor if the owner as known is gone or was replaced. */
void gateway_own_follow(struct gateway *g, uint32_t slot);
void gateway_owners_follow(struct gateway *g);

/* seek.c */
void gateway_seek(struct gateway *g, uint32_t slot, uint64_t delay_us); /* or sooner, if that is decided */
void gateway_seek_end(struct gateway *g, uint32_t slot);
void gateway_seeks_work(struct gateway *g);
void gateway_seeks_renew(struct gateway *g); /* the map has changed: open rounds ask anew */
/* False: no seek waits for that answer. */
bool gateway_seek_answer(struct gateway *g, struct node_id from, const struct lookup_result *result);
/* The next ENTER begins another life: a version above all that anybody can have given it, registers as they are now. */
void gateway_own_begin_life(struct gateway *g, uint32_t slot, uint32_t request);
/* Out of the world, and not entered again. */
void gateway_own_lose(struct gateway *g, uint32_t slot, enum terrane_error why);

/* attach.c */
void gateway_attached(struct gateway *g, struct node_id from, const struct attached *attached);
/* The owner of an entity that is to be attached is known: asks it. */
void gateway_attach_found(struct gateway *g, uint32_t slot);
/* An ENTER of a former incarnation may have been carried out: takes over what is there. */
void gateway_attach_instead(struct gateway *g, uint32_t slot, struct node_id holder);
void gateway_detached(struct gateway *g, struct node_id from, const struct result *result);
/* The coordinator has given this incarnation up: goes on as another. */
void gateway_reborn(struct gateway *g);

/* requests.c */
enum terrane_error gateway_request_new(struct gateway *g, enum terrane_operation operation, struct entity_id id,
                                       uint32_t own, uint32_t *slot) TERRANE_MUST_CHECK;
/* One whose `done` nobody hears and that waits without end; not counted against the limit. */
uint32_t gateway_request_silent(struct gateway *g, enum terrane_operation operation, struct entity_id id, uint32_t own);
void gateway_request_queue(struct gateway *g, uint32_t slot);
void gateway_request_hold(struct gateway *g, uint32_t slot);
void gateway_request_wait(struct gateway *g, uint32_t slot, uint64_t delay_us);
/* Calls `done` (later) and frees the slot. */
void gateway_request_done(struct gateway *g, uint32_t slot, enum terrane_error error);
/* How long to wait before the next try of what has been refused so often since the last change. */
uint64_t gateway_retry_us(uint32_t refusals);
uint32_t gateway_request_find(const struct gateway *g, uint64_t number);
void gateway_requests_send(struct gateway *g);
void gateway_requests_result(struct gateway *g, struct node_id from, const struct result *result);
void gateway_requests_expire(struct gateway *g);
void gateway_requests_retry(struct gateway *g); /* all that wait: something has changed */
void gateway_requests_moved(
    struct gateway *g); /* the map has changed: what went to a former owner goes to the new one */
void gateway_requests_resend(struct gateway *g, uint32_t own);
void gateway_requests_node_gone(struct gateway *g, struct node_id node);
uint64_t gateway_requests_deadline_us(const struct gateway *g);
void gateway_requests_close(struct gateway *g);

/* query.c */
void gateway_inquiry_send(struct gateway *g, uint32_t request);
void gateway_inquiry_free(struct gateway *g, uint32_t inquiry);
void gateway_inquiry_moved(struct gateway *g, uint32_t request); /* asks anew if somebody asked owns nothing of it */
void gateway_inquiry_query_result(struct gateway *g, struct node_id from, struct query_result *result);
void gateway_inquiry_lookup_result(struct gateway *g, struct node_id from, const struct lookup_result *result);
/* Tells what has been found so far. */
void gateway_inquiry_tell(struct gateway *g, uint32_t request);
void gateway_inquiries_close(struct gateway *g);

/* views.c */
void gateway_views_open(struct gateway *g);
void gateway_views_close(struct gateway *g);
void gateway_views_apply(struct gateway *g, struct node_id from, struct views *views);
void gateway_views_entity(void *context, uint32_t handle, const struct entity_record *record, uint32_t changes);
/* Every pair of an observer is over. */
void gateway_views_drop(struct gateway *g, uint32_t observer);
void gateway_views_announce(struct gateway *g, uint32_t observer); /* tells what has been seen while it entered */
void gateway_pair_tell(struct gateway *g, uint32_t pair);
void gateway_subject_tell(struct gateway *g, uint32_t subject);

/* notify.c */
void gateway_notify(struct gateway *g, const struct note *note, const void *bytes, size_t size);
void gateway_notify_deliver(struct gateway *g);
void gateway_notify_event(struct gateway *g, struct node_id from, const struct event_told *event);
void gateway_notify_close(struct gateway *g);

/* watch.c */
void gateway_watch_settle(struct gateway *g);  /* observers that crossed a cell */
void gateway_watch_rebuild(struct gateway *g); /* the set of leaves has changed */
void gateway_watch_epochs(struct gateway *g);  /* owners have changed */
void gateway_watch_sweep(struct gateway *g);
void gateway_watch_subscribe(void *context, enum stream_kind kind, struct quadkey leaf);
void gateway_watch_unsubscribed(struct gateway *g, struct node_id from, const struct unsubscribed *message);
void gateway_watch_retry(struct gateway *g);
void gateway_watch_renew(struct gateway *g); /* nobody knows us any more: subscribes anew */
void gateway_watch_peer_up(struct gateway *g, struct node_id node);
int32_t gateway_watch_cell(const struct gateway *g, int32_t coordinate);

/* map.c */
typedef void gateway_map_visit(void *context, const struct leaf_owner *leaf);
/* Leaves that meet the closed rectangle, in quadkey order. O(found x depth x log leaves). */
void gateway_map_leaves(const struct gateway *g, int64_t min_x, int64_t min_y, int64_t max_x, int64_t max_y,
                        gateway_map_visit *visit, void *context);
void gateway_map_apply(struct gateway *g, struct map *map);
struct node_id gateway_map_owner(const struct gateway *g, struct position p); /* NODE_NONE: nobody */
bool gateway_map_is_server(const struct gateway *g, struct node_id node);

/* peers.c */
uint32_t gateway_peer_find(const struct gateway *g, struct node_id node);
/* Opens session and link on first use. SLOT_NONE: not a cell server of the map. Only in a step. */
uint32_t gateway_peer_get(struct gateway *g, struct node_id node);
/* Queues g->message for the node. Errors: NOT_OWNER (no such server now), QUEUE_FULL. */
enum terrane_error gateway_peer_push(struct gateway *g, struct node_id node) TERRANE_MUST_CHECK;
void gateway_peers_packet(struct gateway *g, const uint8_t *bytes, size_t size);
void gateway_peers_up(struct gateway *g, struct node_id node);
void gateway_peers_down(struct gateway *g, struct node_id node);
void gateway_peers_map_changed(struct gateway *g);
void gateway_peers_moves(struct gateway *g); /* positions to sessions */
void gateway_peers_pump(struct gateway *g);  /* sessions to the outbox */
void gateway_peers_timers(struct gateway *g);
uint64_t gateway_peers_deadline_us(const struct gateway *g);
void gateway_peers_renew(struct gateway *g); /* sessions of another incarnation */
void gateway_peers_close(struct gateway *g);
void gateway_peer_resend_positions(struct gateway *g, uint32_t peer);

/* membership.c */
void gateway_membership_start(struct gateway *g);
void gateway_membership_timers(struct gateway *g);
void gateway_membership_up(struct gateway *g);
void gateway_membership_down(struct gateway *g);
/* False: the packet is not the coordinator's. */
bool gateway_membership_packet(struct gateway *g, const struct packet *packet);
void gateway_membership_pump(struct gateway *g);
void gateway_membership_renew(struct gateway *g);
void gateway_membership_ask_map(struct gateway *g);
void gateway_membership_bye(struct gateway *g);
uint64_t gateway_membership_deadline_us(const struct gateway *g);

#endif
