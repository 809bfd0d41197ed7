/* What the files of the cell server's core share. Nothing outside cellserver/ includes this.
 *
 * One struct cellserver holds tables of plain structs that refer to each other by index. Who owns which part:
 *   peers.c      nodes, sessions, links, what goes out          leaves.c   own leaves, their streams and subscribers
 *   entities.c   the entity table, owned and ghosts alike       border.c   ghosts in (replicas) and out (strip)
 *   handoff.c    leaving: marks, OFFERs, answers to them        takeover.c OFFERs from others, what is pending
 *   forward.c    commands that wait, or go on to a new owner    views.c    AOI changes -> VIEWS for gateways
 *   commands.c   what gateways ask                              queries.c  queries, look-ups, map events
 *   standby.c    what our standbys are told, what waits for it  lease.c    who may serve: echoes, stamps, fences
 *   replica.c    leaves that we stand by for                    promote.c  a standby becomes the primary
 *   held.c       the content of a standby leaf              absent.c   gateways that are gone
 *   closing.c    BYE                                            main.c     the program
 *   status.c     STATUS as JSON                                 cellserver.c  step, tick, coordinator link
 *   survey.c     SURVEY: counts for maps, the latest hand-offs  history.c  TRACE: where an entity has been
 *   rate.c       how much a gateway may command                 metrics.c  numbers for scrapers, readiness
 *   quota.c      how many entities a gateway may have */
#ifndef TERRANE_CELLSERVER_INTERNAL_H
#define TERRANE_CELLSERVER_INTERNAL_H

#include "aoi/aoi.h"
#include "cellserver/cellserver.h"
#include "cellserver/formers.h"
#include "cellserver/history.h"
#include "cellserver/quota.h"
#include "cellserver/registry.h"
#include "cellserver/replica.h"
#include "cellserver/survey.h"
#include "common/array.h"
#include "common/check.h"
#include "common/mutation.h"
#include "common/table.h"
#include "common/urls.h"
#include "proto/ownership.h"
#include "proto/session.h"
#include "stream/replicas.h"
#include "stream/slot_set.h"
#include "stream/writer.h"

#define NONE UINT32_MAX

#define HELLO_EVERY_US        UINT64_C(200000)
#define REPORT_EVERY_US       UINT64_C(250000)
#define LEASE_US              UINT64_C(250000) /* until WELCOME says */
#define COORDINATOR_SILENT_US UINT64_C(1000000)
#define BORDER_RETRY_US       UINT64_C(200000)   /* a refused or impossible hand-off is tried again after */
#define FORWARD_KEEP_US       UINT64_C(30000000) /* how long a former owner knows where an entity went */
#define EVENT_KEEP_US         UINT64_C(3000000)  /* how long a map event is told to entities that arrive late */
#define GATEWAY_GRACE_US      UINT64_C(10000000) /* entities of a gateway that has gone stay so long */
#define CLOSING_US            UINT64_C(5000000)  /* after BYE a server waits so long for its leaves to move away */
#define EARLY_RESULTS         1024u
#define FORWARD_HOPS          8u

/* Of an entity that leaves; handoff.c says what each is. */
enum handoff_step { STEP_MARK, STEP_DRAFT, STEP_OFFER, STEP_LOCAL, STEP_WAIT };

enum entity_status { ENTITY_FREE, ENTITY_OWNED, ENTITY_GHOST };

struct entity {
    enum entity_status status;
    bool leaving;       /* on its way to another owner: commands wait */
    bool move_buffered; /* a move came while leaving */
    bool moved;         /* in cs->moved: pending_* are to be applied at the tick */
    bool straying;      /* in cs->straying: past its leaf's border, waits for an owner to go to */
    bool view_whole;    /* its gateway is to get the whole view at the end of this tick */
    bool touched;       /* in cs->touched */
    uint16_t layer;
    uint8_t yaw, pending_yaw;
    uint32_t kind, flags, radius;
    struct entity_id id;
    uint64_t version;
    struct position position, pending_position;
    uint8_t *state;
    uint32_t state_size, state_room;
    struct node_id gateway;
    uint64_t position_sequence, state_sequence, radius_sequence, enter_request;
    uint32_t leaf; /* own leaf (index); owned only */
    uint32_t region_slot, ghost_slot;
    uint32_t aoi;               /* handle */
    uint64_t draft_order;       /* of its draft */
    uint64_t buffered_sequence; /* of the buffered move: an OFFER still to be written must not claim to hold it */
    uint64_t joined_at; /* cs->published when it joined its leaf: while equal, no subscriber has heard of it there */
    uint32_t view_head; /* newest pending view change, NONE */
    enum handoff_step step; /* the rest: while leaving */
    bool asked; /* some owner has been OFFERed this version and may have it, or a standby holds it pending */
    struct quadkey leaving_to; /* the mark */
    struct node_id offered_to;
    uint32_t offered_since;
    uint32_t standby_slot; /* in its leaf's standby stream; STREAM_SLOT_NONE: in none */
    uint32_t next_free;
};

/* One pending view change of an observer, a link in its list. */
struct view_change {
    uint64_t subject;
    uint32_t next;
    bool see;
};

struct subscriber {
    uint32_t peer;
    enum stream_kind stream;
    bool wants_snapshot;
};

/* What one entity (or pending one) is in a leaf's standby stream, and where the standby has it. */
struct standby_slot {
    uint32_t owner; /* index of the entity or pending */
    bool pending;
    bool sent; /* the standby has it, or will have, in this slot */
    uint8_t yaw;
    struct position position;
};

struct standby_gone {
    struct entity_id id;
    uint32_t slot; /* free when the drop is sent */
};

/* A leaf's standby stream: what its standby has been told, what it is still to be told, who waits for its acks. */
struct standby_stream {
    struct node_id node; /* NODE_NONE: the map names no standby */
    uint32_t epoch;
    uint64_t seq, acked, level_seq; /* sent, acknowledged, the last part of the whole copy (0: none yet) */
    bool refused;                   /* it does not stand by for us any more */
    bool whole;                     /* a whole copy is due */
    bool dirty;                     /* something is to be sent, or waits for a seq */
    struct slot_set free, changed, moved;
    struct standby_slot *slots;
    uint32_t slot_count, slot_room;
    struct standby_gone *gone;
    uint32_t gone_count, gone_room;
    uint32_t wait_first, wait_last, wait_open; /* cs->waiting; open: the first without a seq */
};

/* What happens when a leaf's standby has acknowledged `seq`. */
#define WAITING_NONE 0u /* index 0 of cs->waiting is nobody's */
enum waiting_kind { WAITING_RESULT, WAITING_MARK, WAITING_PENDING };
struct waiting {
    enum waiting_kind kind;
    uint32_t leaf, next;
    uint64_t seq;   /* UINT64_MAX: that of this step's last message */
    uint32_t index; /* of the entity or pending, */
    uint64_t order; /* which is void if it has another one now */
    struct node_id gateway;
    struct result result;
};

/* What another owner has OFFERed and our standby does not have yet. */
struct pending {
    bool used;
    uint32_t leaf, slot;
    uint32_t entity; /* NONE, or our own one, on its way between two leaves of ours */
    uint64_t order;
    struct node_id asker; /* the newest */
    uint64_t floor;       /* under more than this it is taken over; 0: just above the transfer's */
    struct transfer transfer;
    uint8_t *state;
    uint32_t state_room;
    struct writer recall;
};

/* An OFFER for a leaf that is not ours yet. */
struct parked_offer {
    struct node_id asker; /* NODE_NONE: free */
    struct writer message;
};

/* ACCEPTs on their way into one message. */
struct acceptances {
    struct node_id asker;
    struct quadkey to;
    uint32_t count;
    struct writer items;
};

struct own_leaf {
    bool used, ghost_on;
    bool given_up;   /* not used any more, but its entities are still to become ghosts (leaves_sync) */
    bool views_held; /* in this tick: all whole views wait for ghosts */
    bool rim_held;   /* in this tick: those wait that reach a leaf whose ghosts are not there */
    bool outdated;   /* a successor that our map does not know yet has a level standby: what is here is the past */
    struct quadkey key;
    uint32_t epoch, since, feed, count;
    struct square square;
    struct stream_writer *region, *ghost;
    struct square *near; /* foreign leaves whose observers may see into this one */
    uint32_t near_count, near_room;
    struct subscriber *subscribers;
    uint32_t subscriber_count, subscriber_room;
    uint64_t hold_until_us; /* it has been promoted: until then whole views wait for the ghosts around it */
    uint64_t rim_until_us;  /* until then those wait that reach a leaf whose ghosts are not there */
    uint64_t level_us;      /* while it waits so: since when all leaves around are level; 0: they are not */
    bool fenced;            /* as of the last tick */
    struct standby_stream standby;
    struct standby_formers formers;
};

struct peer {
    bool used, linked, urgent;
    uint64_t named_term, unnamed_us; /* the last term whose map named it; since when none does, 0: it does */
    bool resync;                     /* its view changes were dropped: send whole views when its queue has drained */
    struct node_info info;
    struct session *session;
    uint32_t asks;        /* queries and events of this tick */
    uint64_t rate_due_us; /* up to when its commands have used up its rate */
    uint64_t moves_lost;  /* fast packets that went missing, to be told at the tick */
    uint64_t beat_us;     /* when it, as our standby, was last sent a beat */
    uint64_t echoed_us;   /* the newest of our beats that it has answered; 0: none */
    bool standby_blocked; /* its queue has no room for all that this step notes */
    uint32_t feed_refs[NODE_FEEDS + 1];
    bool feed_up[NODE_FEEDS + 1];
    struct writer views; /* view items of this tick */
    uint32_t view_items;
    struct standby_beats beats;
};

/* A command of a gateway for an entity that is between owners. */
struct buffered {
    bool used;
    uint32_t entity;
    uint64_t order;
    struct node_id gateway;
    struct writer command;
};

/* An entity that was ours under a lower version than this. */
struct forward_entry {
    struct entity_id id;
    struct node_id to; /* NODE_NONE: it has left the world */
    bool given;        /* with its leaf, which its new primary may have had from before */
    uint64_t version;
    uint64_t until_us;
};

#define EVENT_TOLD 16u
struct recent_event {
    struct emit emit; /* payload: own copy */
    uint8_t *payload;
    uint64_t until_us;
    /* It was emitted here: other servers that have been told. Where there are more, the last place is the latest's. */
    bool ours;
    struct node_id told[EVENT_TOLD];
    uint32_t told_count;
};

/* An answer for a gateway that the map does not name here yet. */
struct early_result {
    struct node_id gateway;
    struct result result;
};

struct absent_gateway {
    struct node_id node;
    uint64_t until_us;
};

/* An OFFER to be written at the next tick; void if its entity has another draft or does not leave any more. */
struct offer_draft {
    uint32_t entity;
    uint64_t order;
    struct quadkey from, to;
};

struct coordinator_link {
    bool known, up;
    struct node_id node;
    struct session *session;
    uint64_t term, heard_us, hello_us;
    uint64_t heartbeat_us, report_us; /* last sent; last with lists */
    uint64_t echoed_us;               /* the newest of our stamps that it has answered; 0: none */
};

struct cellserver {
    struct cellserver_options options;
    struct urls coordinators;
    bool has_world;
    struct world world;
    int64_t strip;
    uint64_t now_us, tick, stray_us;
    uint64_t lease_us;   /* how long a fresh answer gives leave to serve */
    bool report_due;     /* the coordinator is to be told at once of what we stand by for */
    bool offers_due;     /* drafts go out at the end of this step */
    bool standby_noted;  /* some stream is dirty */
    bool standby_ticks;  /* moves go with this step */
    uint64_t published;  /* times that all streams were published */
    uint64_t closing_us; /* when BYE was said; 0: not yet */
    bool dismissed;      /* the coordinator has declared us dead */
    struct cellserver_stats stats;
    struct coordinator_link coordinator;
    struct ownership map;

    struct peer *peers;
    uint32_t peer_count, peer_room;
    struct table peer_index; /* node id */

    struct own_leaf *leaves;
    uint32_t leaf_count, leaf_room;
    struct table leaf_index; /* quadkey */

    struct entity *entities;
    uint32_t entity_count, entity_room, entity_free;
    struct table entity_index; /* entity id */
    uint32_t *entity_of_handle;
    uint32_t handle_room, entering;
    uint32_t *moved, *straying, *touched, *shown;
    uint32_t moved_count, moved_room, straying_count, straying_room, touched_count, touched_room;
    uint32_t shown_count, shown_room;

    struct held_side held; /* leaves that we stand by for */

    struct registry_side registry;

    struct quota_side quota;

    struct survey_side survey;
    struct history_side history;

    struct aoi *aoi;
    struct replicas *ghosts;
    struct quadkey *watched; /* foreign leaves whose ghost streams we follow */
    uint32_t watched_count, watched_room;
    struct view_change *changes;
    uint32_t change_count, change_room;
    uint64_t *ids;     /* scratch */
    uint32_t *handles; /* scratch */
    uint32_t id_room, query_room;

    struct offer_draft *drafts;
    uint32_t draft_count, draft_room;
    struct buffered *buffered;
    uint32_t buffered_count, buffered_room;
    uint64_t buffered_order, draft_order;
    struct waiting *waiting;
    uint32_t waiting_count, waiting_room, waiting_free;
    struct pending *pendings;
    uint32_t pending_count, pending_room;
    uint32_t *pending_free, pending_free_count, pending_free_room;
    struct table pending_index; /* entity id */
    struct table since_index;   /* leaf -> the highest `since` heard of */
    struct acceptances accepted;
    struct parked_offer *parked;
    uint32_t parked_count, parked_room;
    struct forward_entry *forwards; /* a ring in order of until_us */
    uint32_t forward_first, forward_count, forward_room;
    struct table forward_index; /* entity id -> ring position */
    struct recent_event *events;
    uint32_t event_count, event_room;
    struct early_result *early; /* a ring */
    uint32_t early_room, early_next;
    struct absent_gateway *absent;
    uint32_t absent_count, absent_room;

    struct writer message, packet, frame, scratch, refusals, single; /* reused buffers */
    struct writer standby_puts, standby_moves, standby_drops;
    struct outbox *out; /* of the step under way */
};

/* peers.c */
uint32_t peer_find(const struct cellserver *cs, struct node_id node); /* index or NONE */
void peer_remove(struct cellserver *cs, uint32_t peer);
void peers_sync(struct cellserver *cs); /* after a map change */
void peers_expire(struct cellserver *cs);
/* Queues a sure message for a peer; false: its queue is full (counted). urgent: sent at the end of this step. */
bool peer_send(struct cellserver *cs, uint32_t peer, const struct writer *message, bool urgent);
void peer_receive(struct cellserver *cs, const uint8_t *bytes, size_t size);
void peers_flush(struct cellserver *cs, bool all);
void peer_feed_hold(struct cellserver *cs, uint32_t peer, uint32_t feed);
void peer_feed_release(struct cellserver *cs, uint32_t peer, uint32_t feed);
void peers_close(struct cellserver *cs);

/* leaves.c */
uint32_t leaf_find(const struct cellserver *cs, struct quadkey key);
uint32_t leaf_open(struct cellserver *cs, const struct leaf_owner *owner); /* a leaf that is not open here */
void leaves_sync(struct cellserver *cs); /* after a map change: take what is ours, give up what is not, ghosts */
void leaf_subscribe(struct cellserver *cs, uint32_t peer, const struct subscribe *m);
void leaf_refuse_subscription(struct cellserver *cs, uint32_t peer, const struct subscribe *m);
void leaf_unsubscribe(struct cellserver *cs, uint32_t peer, const struct subscribe *m);
void leaves_drop_subscriber(struct cellserver *cs, uint32_t peer);
void leaves_feed_up(struct cellserver *cs, uint32_t peer, uint32_t feed);
void leaves_publish(struct cellserver *cs);
/* What a leaf's streams have to say, now, with the snapshots that are asked for. */
void leaf_publish_now(struct cellserver *cs, uint32_t leaf);
void leaves_describe(void *context, uint32_t owner, struct entity_record *out);
void leaves_close(struct cellserver *cs);
uint32_t ghost_feed(const struct cellserver *cs);

/* entities.c */
uint32_t entity_find(const struct cellserver *cs, struct entity_id id); /* index or NONE; owned or ghost */
uint32_t entity_new(struct cellserver *cs, const struct entity_record *record, enum entity_status status);
void entity_free(struct cellserver *cs, uint32_t index);
enum terrane_error entity_place(struct cellserver *cs, uint32_t index, uint32_t radius); /* into the AOI */
void entity_unplace(struct cellserver *cs, uint32_t index);
void entity_record_of(const struct entity *e, struct entity_record *out);
/* All of an owned entity for another process, with the move that waits for the tick, without recall. */
void entity_transfer(const struct entity *e, struct transfer *out);
void entity_set_state(struct entity *e, const uint8_t *state, uint32_t size);
/* Puts an owned entity into a leaf's streams; takes it out of them. */
void entity_join_leaf(struct cellserver *cs, uint32_t index, uint32_t leaf);
void entity_part_leaf(struct cellserver *cs, uint32_t index, enum left_reason reason, struct quadkey to);
void entity_remove(struct cellserver *cs, uint32_t index); /* an owned entity leaves the world */
void entity_note_move(struct cellserver *cs, uint32_t index);
void entity_drop_move(struct cellserver *cs, uint32_t index);
/* The sequence of the move in pending_*, taken from its gateway and not applied yet; 0: there is none. */
uint64_t entity_move_waits(const struct entity *e);
void entities_apply_moves(struct cellserver *cs);
void entity_update_strip(struct cellserver *cs, uint32_t index);
/* A newcomer from another leaf appears in the ghost stream once, wherever it stands, so that whoever still shows it
 * where it was learns where it is. entities_settle_shown, after the publishing, takes out those who stand too deep, and
 * sends on those who are past the border again. */
void entity_show(struct cellserver *cs, uint32_t index);
void entities_settle_shown(struct cellserver *cs);
void entities_close(struct cellserver *cs);

/* border.c */
void ghosts_open(struct cellserver *cs);
void ghosts_sync(struct cellserver *cs);
bool leaf_neighbours(const struct cellserver *cs, const struct own_leaf *leaf, struct quadkey other); /* sees into it */
void ghosts_confirm(struct cellserver *cs, uint32_t leaf); /* its neighbours are asked what they would show now */
bool leaf_shows(const struct cellserver *cs, const struct own_leaf *leaf, struct position p);
void ghost_from_owned(struct cellserver *cs, uint32_t index, struct quadkey to);
void leaf_ghosts_on(struct cellserver *cs, uint32_t leaf);
void leaf_ghosts_off(struct cellserver *cs, uint32_t leaf);

/* handoff.c */
void handoff_check(struct cellserver *cs, uint32_t index);
void handoff_retry_straying(struct cellserver *cs);
void handoff_send_offers(struct cellserver *cs);
void handoff_accept(struct cellserver *cs, uint32_t peer, struct accept *m);
void handoff_refuse(struct cellserver *cs, uint32_t peer, struct refuse *m);
/* A leaving entity's life has ended elsewhere: its buffered commands are nobody's, it may be removed. */
void handoff_abandon(struct cellserver *cs, uint32_t index);
/* An owned entity is somebody else's under `version`, who stands for `leaf`: here it becomes a ghost. */
void handoff_let_go(struct cellserver *cs, uint32_t index, struct node_id to, struct quadkey leaf, uint64_t version);
/* The standby has its mark; the standby of its new leaf has it. `order`: of the draft that waited. */
void handoff_marked(struct cellserver *cs, uint32_t index, uint64_t order);
void handoff_local_done(struct cellserver *cs, uint32_t index, uint32_t leaf, uint64_t order);
/* An entity that has just joined a promoted leaf was marked as leaving: it is so again, and OFFERed at the end of this
 * step to the owner of that leaf. */
void handoff_leave_again(struct cellserver *cs, uint32_t index, struct quadkey to);
/* The map or the set of open leaves has changed: OFFERs whose destination has another owner are made again. */
void handoff_sync(struct cellserver *cs);
void handoff_tell_owner(struct cellserver *cs, uint32_t index);
void handoff_close(struct cellserver *cs);

/* takeover.c */
void handoff_offer(struct cellserver *cs, uint32_t peer, struct cursor message, struct offer *m); /* m: of message */
/* An owned entity goes to another leaf of ours when that one's standby has it. */
void takeover_local(struct cellserver *cs, uint32_t entity, uint32_t leaf);
void takeover_commit(struct cellserver *cs, uint32_t pending, uint64_t order); /* the standby has it */
void takeover_flush(struct cellserver *cs);                                    /* ACCEPTs that wait for more */
bool takeover_pends(const struct cellserver *cs, struct entity_id id);
void takeover_forget(struct cellserver *cs, uint32_t entity);
void takeover_close_leaf(struct cellserver *cs, uint32_t leaf);
void takeover_sync(struct cellserver *cs); /* after a map change: who may OFFER */
void takeover_close(struct cellserver *cs);
/* Makes the entity ours under `version`, whether it was unknown here, a ghost, or our own under a lower version (then
 * it parts from its leaf). It is in the AOI afterwards and in no leaf: entity_join_leaf comes next. Position and radius
 * must fit the world. */
uint32_t entity_install(struct cellserver *cs, uint32_t leaf, struct transfer *item, uint64_t version);

/* forward.c. `version`: the highest under which the entity was ours or went on. */
void forward_depart(struct cellserver *cs, struct entity_id id, uint64_t version, struct node_id to);
void forward_remember(struct cellserver *cs, struct entity_id id, struct node_id to); /* under its version here */
void forward_give(struct cellserver *cs, struct entity_id id, struct node_id to);     /* likewise, with its leaf */
bool forward_gave(const struct cellserver *cs, struct entity_id id, struct node_id to);
uint64_t forward_version(const struct cellserver *cs, struct entity_id id); /* 0: nothing remembered */
void forward_forget(struct cellserver *cs, struct entity_id id);
void forward_expire(struct cellserver *cs);
/* What waits for an entity (commands, its newest move) goes to its new owner. */
void forward_waiting(struct cellserver *cs, uint32_t entity, struct node_id to);
/* Sends a command on to where the entity went. False: nobody knows. */
bool forward_command(struct cellserver *cs, struct entity_id id, struct node_id gateway, uint32_t hops,
                     struct cursor command);
/* Keeps a command until its entity is to be had. False: too many wait. */
bool forward_hold(struct cellserver *cs, uint32_t entity, struct node_id gateway, struct cursor command);
void forward_drop_held(struct cellserver *cs, uint32_t entity);
/* What waited happens, in order; an entity may leave by it. What is put off once more waits for another time. */
void forward_run_held(struct cellserver *cs, uint32_t entity);
void forward_run_deferred(struct cellserver *cs); /* of all that are to be had now */
void forward_close(struct cellserver *cs);

/* views.c */
void views_sink(void *cs, const struct aoi_span *spans, size_t count);
void views_forget(struct cellserver *cs, uint32_t index); /* drop pending changes of an observer */
void views_touch(struct cellserver *cs, uint32_t index);  /* its view is to be looked at this tick */
void views_publish(struct cellserver *cs);
void sort_ids(uint64_t *ids, size_t count);

/* commands.c */
void command_handle(struct cellserver *cs, struct node_id gateway, uint32_t hops, struct cursor command);
void command_enter(struct cellserver *cs, uint32_t peer, struct cursor message);
/* The id's home has granted it: all else is judged again. */
void command_enter_granted(struct cellserver *cs, uint32_t peer, struct cursor message, uint64_t version);
void command_moves(struct cellserver *cs, struct node_id gateway, uint32_t hops, struct cursor message);
/* attach.c. Whose the entity is changes; false: malformed. */
bool command_attach(struct cellserver *cs, struct node_id gateway, uint32_t hops, struct cursor command);
void command_result(struct cellserver *cs, struct node_id gateway, const struct result *result);
void command_results_early(struct cellserver *cs, struct node_id gateway); /* it has become known */

/* queries.c */
void asks_reset(struct cellserver *cs);
void query_handle(struct cellserver *cs, uint32_t peer, struct cursor message);
void lookup_handle(struct cellserver *cs, uint32_t peer, struct cursor message);
void event_emit(struct cellserver *cs, uint32_t peer, struct cursor message);
void event_relay(struct cellserver *cs, struct cursor message);
void event_tell_arrival(struct cellserver *cs, uint32_t index);
void events_retell(struct cellserver *cs); /* after a map change */
void events_expire(struct cellserver *cs);
void query_lane(struct cellserver *cs, uint64_t token, struct cursor message);
void queries_close(struct cellserver *cs);

/* standby.c: this server as the primary of leaves that have a standby.
 *
 * entity_join_leaf and entity_part_leaf note their put and drop themselves; whoever changes an owned entity otherwise
 * calls standby_note_put. What is noted is written by standby_flush, from what is true then. Leaves without a standby
 * cost a test. */
void standby_note_put(struct cellserver *cs, uint32_t entity);  /* something durable of an owned entity has changed */
void standby_note_move(struct cellserver *cs, uint32_t entity); /* its position or yaw: goes with the next tick */
void standby_note_pending(struct cellserver *cs, uint32_t pending);
void standby_note_drop(struct cellserver *cs, uint32_t leaf, struct entity_id id, uint32_t slot);
bool standby_named(const struct cellserver *cs, uint32_t leaf); /* the map names one for it */
bool standby_level(const struct cellserver *cs, uint32_t leaf); /* and it has all but what is on its way */
/* Whether the entity may go to that leaf in one stroke: no standby on either side, or one that is level for both. */
bool standby_shared(const struct cellserver *cs, uint32_t entity, uint32_t leaf);
bool standby_room(const struct cellserver *cs, uint32_t leaf); /* another command may be taken */
/* When the standby has all that was noted so far. Without a standby a RESULT goes out at once. */
void standby_wait_result(struct cellserver *cs, uint32_t leaf, struct node_id gateway, const struct result *result);
void standby_wait_mark(struct cellserver *cs, uint32_t leaf, uint32_t entity, uint64_t order);
void standby_wait_pending(struct cellserver *cs, uint32_t leaf, uint32_t pending, uint64_t order);
/* The leaf (index) in which a RESULT about that entity waits; NONE. */
uint32_t standby_waits_for(const struct cellserver *cs, struct entity_id id);
void standby_release(struct cellserver *cs, uint32_t leaf); /* whoever has waited long enough */
void standby_sync(struct cellserver *cs);                   /* after a map change, when leaves_sync is done */
void standby_publish(struct cellserver *cs);                /* the tick: moves, beats */
void standby_flush(struct cellserver *cs);                  /* the end of a step: what is urgent */
void standby_acked(struct cellserver *cs, uint32_t peer, struct standby_ack *m);
/* A leaf is about to be given up: sends the standby what it still lacks, forgets whoever waits for its acks. To be
 * called before its entities part. Returns the last seq under the epoch that the standby knows; 0: it had none. */
uint64_t standby_close_leaf(struct cellserver *cs, uint32_t leaf);
void standby_close(struct cellserver *cs);

/* lease.c. False: fenced; its frames, views and answers must wait (FAILOVER: a leaf without a standby always serves).
 */
bool leaf_serves(const struct cellserver *cs, uint32_t leaf);
void lease_tick(struct cellserver *cs); /* fences fall and rise; before anything is published */

/* replica.c: this server as the standby of others' leaves (replica.h). */
void replica_receive(struct cellserver *cs, uint32_t peer, struct standby *m);
void replica_beat(struct cellserver *cs, uint32_t peer, uint64_t stamp);
void replica_ended(struct cellserver *cs, uint32_t peer, const struct standby_end *m);
void replica_ack_tick(struct cellserver *cs);                       /* each tick */
void replica_flush(struct cellserver *cs);                          /* the end of a step: urgent acks */
void replica_stands(struct cellserver *cs, struct writer *w);       /* writes heartbeat_stands and its items */
void replica_peer_gone(struct cellserver *cs, struct node_id node); /* proved dead */
void replica_sync(struct cellserver *cs);                           /* after a map change */
void replica_close_all(struct cellserver *cs);
bool replica_is_ending(const struct cellserver *cs); /* some copy is to be promoted, or to go, in a while */
struct held_leaf *replica_find(const struct cellserver *cs, struct quadkey key); /* NULL: no standby leaf */
struct held_leaf *replica_begin(struct cellserver *cs, struct quadkey key, struct node_id primary); /* there is none */
void replica_set_level(struct cellserver *cs, struct held_leaf *leaf, bool level);
void replica_free(struct cellserver *cs, struct held_leaf *leaf);
/* With the next ack the peer hears that we are no standby of its leaf. */
void replica_refuse(struct cellserver *cs, struct node_id primary, struct quadkey leaf, uint32_t epoch);
/* Whether an entity that is not owned here is in a standby leaf: then its gateway asks again, it is not unknown. */
bool replica_holds(const struct cellserver *cs, struct entity_id id);
bool replica_promotes(const struct cellserver *cs, struct entity_id id); /* and that leaf is about to be ours */
/* Keeps a command or move of a gateway for such an entity until the leaf is promoted. False: it is not kept. */
bool replica_keep_command(struct cellserver *cs, struct entity_id id, struct node_id gateway, uint32_t hops,
                          struct cursor command);
bool replica_keep_move(struct cellserver *cs, struct node_id gateway, uint64_t sequence, const struct move *move);
/* Keeps a subscription until the leaf is promoted. False: we don't stand by for that leaf. */
bool replica_early_reader(struct cellserver *cs, uint32_t peer, const struct subscribe *m);
void replica_drop_reader(struct cellserver *cs, uint32_t peer, const struct subscribe *m);

/* promote.c */
void promote_begin(struct cellserver *cs, struct held_leaf *leaf); /* the map says that it is ours */
void promote_check(struct cellserver *cs);                         /* each step */
void release_received(struct cellserver *cs, uint32_t peer, const struct release *m);

/* cellserver.c */
void coordinator_flush(struct cellserver *cs); /* what is queued for the coordinator goes out */

/* closing.c */
void closing_dismiss(struct cellserver *cs); /* the coordinator has said BYE */

/* absent.c: gateways that are gone. */
void absent_sync(struct cellserver *cs); /* after a map change */
/* An entity of that gateway has come: if the map does not name the gateway, the entity's time runs. */
void absent_note(struct cellserver *cs, struct node_id gateway);
void absent_expire(struct cellserver *cs);

/* status.c */
void status_write(struct cellserver *cs, struct writer *json); /* NUL-terminated */

static inline bool entity_is_observer(const struct cellserver *cs, const struct entity *e)
{
    return e->status == ENTITY_OWNED && (cs->world.view_mode == VIEW_BLOCK || e->radius > 0);
}

#endif
