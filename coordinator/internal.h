/* What the files of the coordinator's core share. Nothing outside coordinator/ includes this.
 *
 *   members.c      who is there: HELLO, BYE, lapses, deaths          sessions.c  packets in and out
 *   farewell.c     telling an incarnation that it is over            quadtree.c  the leaves: tiling check, Hilbert
 * order assign.c       a round of decisions; leaves without an owner     failover.c  leaves of the dead, silent and
 * draining standby.c      who stands by for which leaf                      plan.c      what a round makes of each leaf
 *   migrate.c      leaves on their way to another server             rebalance.c what the planner (balance.h) wants
 *   keep.c         loading, saving, back-off                         map.c       telling the map, whole or changes
 *   lead.c         which of several coordinators leads; reports that know more than the map
 *   admin.c        the query lane: DEATH, DRAIN, EXPLAIN, PLACE      status.c    STATUS as JSON
 *   place.c        leaves that operators move or pin                 explain.c   what was decided, and why
 *   picture.c      the map for the console                    coordinator.c  open, close, step
 *
 * How a change goes: members.c notes who came and went; assign.c turns that, while no save is under way, into `next`
 * of each leaf that changes; keep.c writes these and the servers' data to the store, and repeats the very same bytes
 * until the store has answered (an attempt whose answer was lost must find only itself there); then `next` becomes
 * `owner`, and map.c tells. What happens meanwhile is looked at in the next round, which begins at once. Gateways own
 * nothing, so their coming and going is told without the store. */
#ifndef TERRANE_COORDINATOR_INTERNAL_H
#define TERRANE_COORDINATOR_INTERNAL_H

#include "common/array.h"
#include "common/check.h"
#include "common/mutation.h"
#include "common/table.h"
#include "coordinator/balance.h"
#include "coordinator/coordinator.h"
#include "proto/session.h"
#include "proto/store.h"

#define NONE UINT32_MAX

#define LEADER_LEASE_US    UINT64_C(2000000)
#define LEASE_US           UINT64_C(250000)
#define MARGIN_MIN_US      UINT64_C(20000) /* beyond the lease; a fifth of it if that is more */
#define SILENCE_US         UINT64_C(2000000)
#define GONE_US            UINT64_C(10000000) /* silent members that own nothing leave the map after */
#define NAME_TAKEN_US      UINT64_C(1000000)  /* a server heard within this keeps its name */
#define SETTLE_US          UINT64_C(2000000)  /* after a take-over: members say HELLO again within this */
#define FIND_US            UINT64_C(1500000)  /* within this members find a new leader */
#define LINGER_US          UINT64_C(2000000)  /* after BYE: repetitions are still acknowledged */
#define ORPHAN_US          UINT64_C(5000000)  /* leaves without an owner wait so long for a new server */
#define MAP_EVERY_US       UINT64_C(100000)   /* whole maps to one member, asked for or not */
#define STORE_RETRY_US     UINT64_C(200000)
#define STORE_RETRY_MAX_US UINT64_C(2000000)
#define CONFLICTS_MAX      2u
#define LOG_EVERY_US       UINT64_C(1000000)
#define LOG_REFUSED        10u                  /* lines about refusals in LOG_EVERY_US */
#define NODE_RESERVED      16u                  /* node ids below are aliases (common/core.h) */
#define GATEWAYS_MAX       (LIMIT_NODES - 512u) /* a flood of gateways leaves room for servers */
#define ENDED_MAX          LIMIT_NODES
#define ERRORS_MAX         64u

#define MIGRATIONS_MAX 16u               /* leaves on their way at a time */
#define MIGRATION_US   UINT64_C(2000000) /* one whose new primary says nothing counts no longer than this */
#define EMPTY_US       UINT64_C(500000)  /* besides two leases: from the last leaf to the end of a BYE */
#define STOOD_US       UINT64_C(1000000) /* a level standby names the leaf in its lists at least this often */

enum member_state {
    MEMBER_FREE,
    MEMBER_EXPECTED, /* in the store; has not said HELLO to this term yet */
    MEMBER_ACTIVE,
    MEMBER_DEAD,    /* a server proved dead; goes when no leaf names it any more */
    MEMBER_LEAVING, /* said BYE and holds nothing; goes when its BYE is surely acknowledged */
};

struct member {
    enum member_state state;
    bool link_down;           /* broken since it last stood */
    bool proved;              /* something came back over its link: its urls are real */
    bool silent;              /* reported */
    bool saved;               /* servers: the store has it */
    bool listed;              /* the map as told holds it */
    bool fresh;               /* its data has changed since */
    bool level;               /* has been sent the whole map and each change since */
    bool needs_map;           /* the whole map is due */
    bool released;            /* leaving: nothing refers to it any more */
    bool lapsed;              /* servers: not heard for lease and margin, or since */
    bool draining;            /* servers: gets nothing new, and what it has goes to others */
    bool bye;                 /* servers: draining because it said BYE */
    bool losing;              /* the save under way takes leaves from it */
    enum member_state saving; /* its state in the save under way; FREE: it is not in there */
    bool touched;             /* in c->touched */
    struct node_info info;
    uint32_t capacity;
    struct session *session; /* ACTIVE and LEAVING */
    uint64_t heard_us, map_us, leaving_us;
    uint64_t back_us;                     /* heard again after a lapse; 0: never lapsed */
    uint64_t shunned_us;                  /* until when it is to stand by for nothing more: it did not get level */
    uint64_t lists_us;                    /* its last heartbeat with lists */
    uint64_t withheld_us;                 /* draining: gets no lease since; 0: it does */
    uint64_t empty_us;                    /* said BYE: no leaf names it since; 0: some do */
    uint64_t lost_rev;                    /* the revision that tells of the last leaf that was taken from it */
    uint64_t term, rev, tick, ticks_late; /* as it said last */
    uint32_t ghosts;
    uint32_t leaves, stands; /* that it owns and stands by for, as planned: counted by plan.c */
};

/* Where a leaf is to go: its target stands by for it, and takes over when it is level. */
struct course {
    struct node_id target; /* NODE_NONE: it stays */
    uint64_t since_us;
    const char *why; /* static text */
};

struct leaf {
    struct leaf_owner owner; /* as stored */
    struct leaf_owner next;  /* what the save under way makes of it */
    bool saving, fresh;      /* next is another; owner has changed since it was told */
    uint64_t hilbert;        /* place on the curve, at the deepest depth of any world */
    uint64_t orphan_us;      /* since when nobody owns it */
    uint64_t lost_us;        /* since when its primary is dead and its standby may have a copy; 0: it is not so */
    uint64_t moving_us;      /* since when it goes over from a draining server; 0: it does not */
    uint64_t stands_us;      /* since when its standby is its standby */
    uint64_t stood_us;       /* when its standby last said that it is level */
    uint32_t stood_epoch;    /* and under which epoch */
    struct node_id former;   /* the standby before, as long as the present one is not level; NODE_NONE: none */
    uint32_t former_epoch;   /* under which it was */
    uint64_t former_us;      /* when it last said that it is level; 0: not yet */
    uint32_t load;           /* entities, as its owner said last */
    uint32_t told_epoch;     /* and under which epoch */
    struct course course;
    uint64_t moved_us;        /* when the planner moved it, or what it was cut from; 0: never */
    uint64_t cut_us;          /* when it was made by a split or a merge; 0: never */
    uint64_t hot_us, cold_us; /* the planner's: balance.h */
    bool pinned;              /* an operator wants it to stay as it is */
    struct leaf_owner claim;  /* lead.c: what its primary and its standby report under higher epochs than ours */
    struct leaf_owner before; /* unheard: as it was before the last save that gave it to another */
    bool unheard;             /* that is not told yet */
    uint64_t served_us;       /* when its owner said so last */
    uint32_t claim_standby_epoch;
    const char *why_primary, *why_standby; /* plan.c: static text */
};

#define EXPLAINED_MAX 1024u

/* One decision with its figures; those that do not belong to it are 0. */
struct explained {
    uint64_t at_us;
    const char *kind, *why; /* static text */
    struct quadkey leaf;    /* the first of */
    uint32_t leaves, entities;
    char from[LIMIT_NAME], to[LIMIT_NAME];
    double load, mark, from_part, to_part; /* as in struct balance_decision */
};

enum keep_state {
    KEEP_NEW,     /* before START */
    KEEP_LOADING, /* STORE_LOAD under way */
    KEEP_SAVING,  /* STORE_SAVE under way */
    KEEP_WAITING, /* the store failed: again at retry_us */
    KEEP_IDLE,
    KEEP_REFUSED, /* the store's world is another, or a newer leader has it: this coordinator stays out */
};

struct lead {
    bool holds;       /* the store said so last */
    bool stalled;     /* since stalled_us: the lease has run out */
    bool asked;       /* a STORE_LEAD is under way */
    bool giving_back; /* that one gives it back */
    bool again;       /* the map is to be loaded again when we are told that we lead */
    bool overtaken;   /* another has led: it is given back before anything else */
    bool closing, claims;
    bool adopting; /* what servers claim is being saved */
    uint64_t token, sent_us, until_us, due_us, stalled_us;
    uint64_t term_seen;         /* the highest in the store so far */
    uint64_t term_heard;        /* the highest in a HELLO so far */
    uint64_t empty_us;          /* since when nobody leads and a map that there was is gone; 0: it is not so */
    struct store_leader leader; /* as told last */
    struct {
        uint64_t stalled, deposed, restored;
    } stats;
};

struct coordinator {
    struct coordinator_options options;
    struct lead lead;
    uint64_t now_us, last_step_us, due_us;
    uint64_t term, rev;
    bool ready;
    bool led;           /* this leadership has loaded the map */
    uint64_t settle_us; /* nothing is told before */
    char http_url[LIMIT_URL];
    struct coordinator_stats stats;
    uint64_t refused[ERRORS_MAX]; /* by error */
    uint64_t log_window_us;
    uint32_t log_count;

    struct member *members;
    uint32_t member_count, member_room, members_used, gateways;
    uint32_t member_free_from; /* no lower place is free */
    struct table member_index; /* node id */
    uint32_t *touched;
    uint32_t touched_count, touched_room;
    struct node_id *ended; /* a ring of incarnations that must not come back */
    uint32_t ended_next, ended_count;
    struct table ended_index;

    struct leaf *leaves; /* in quadkey order */
    uint32_t *curve;     /* leaf indices in Hilbert order */
    uint32_t leaf_count;
    struct table leaf_index;
    bool members_changed;           /* assign.c has something to look at */
    bool nodes_fresh, leaves_fresh; /* map.c has something to tell */
    bool takes_back;                /* what is stored gives a leaf to somebody who has died since: it is not told */
    bool told;                      /* this term has told a map */
    uint32_t maps_due;              /* members with needs_map */
    uint64_t assign_due_us;         /* when assign.c has something to look at by itself */
    bool awaits_level;              /* a decision waits for some standby to be level */
    uint32_t unprotected;           /* owned leaves without a standby, as logged last */
    struct choice *choice;          /* standby.c */
    struct explained *explained;    /* a ring of EXPLAINED_MAX */
    uint64_t explained_count;       /* so far */
    struct rebalance *rebalance;    /* rebalance.c */
    struct farewell *farewells;
    uint32_t farewell_count;

    enum keep_state keep, keep_failed; /* failed: what is to be repeated */
    uint64_t token, retry_us, backoff_us;
    uint32_t conflicts;             /* in a row */
    struct writer save;             /* the bytes of the save under way */
    uint64_t saving_rev, saved_rev; /* of the map: under way, and in the store */

    struct node_id *gone; /* nodes that the next change of the map takes out */
    uint32_t gone_count, gone_room;
    struct writer whole; /* the whole map of whole_rev, part after part */
    size_t *whole_ends;
    uint32_t whole_parts, whole_room;
    uint64_t whole_rev;

    struct writer message, packet, json;
    struct outbox *out; /* of the step under way */
};

/* members.c */
uint32_t member_find(const struct coordinator *c, struct node_id node);    /* index or NONE */
uint32_t member_named(const struct coordinator *c, const char *name);      /* the server of that name, or NONE */
const char *member_name(const struct coordinator *c, struct node_id node); /* "": not a member */
uint32_t member_new(struct coordinator *c, const struct node_info *info, enum member_state state);
void member_free(struct coordinator *c, uint32_t index); /* its incarnation must not come back */
/* Its urls are real, so it may replace a former incarnation, own and be told. False: another live server has its name
 * and it is a member no more. */
bool member_prove(struct coordinator *c, uint32_t index);
void member_touch(struct coordinator *c, uint32_t index);
void member_hello(struct coordinator *c, struct node_id from, struct cursor message);
void member_bye(struct coordinator *c, uint32_t index);
void member_leave(struct coordinator *c, uint32_t index); /* no leaf names it any more */
void member_drain(struct coordinator *c, uint32_t index, const char *why);
void member_dead(struct coordinator *c, uint32_t index, const char *proof); /* a server's process is surely no more */
void member_heard(struct coordinator *c, uint32_t index);
void members_check(struct coordinator *c); /* lapses, silence, lingering, departures */
void members_shift(struct coordinator *c, uint64_t span_us);
uint64_t lapse_margin_us(const struct coordinator *c);
/* It may own and stand by: heard now, and for a while since its last lapse. */
bool member_able(const struct coordinator *c, const struct member *m);
/* The map names it no longer once the save under way is stored. */
bool member_goes(const struct member *m);
void members_listen_anew(struct coordinator *c);
void members_forget(struct coordinator *c); /* all of them, as if they had never been */
void members_close(struct coordinator *c);
bool member_is_server(const struct member *m);
bool member_to_save(const struct member *m); /* the store has not got it yet */
/* Counts a refusal and logs it, at most LOG_REFUSED lines a LOG_EVERY_US. */
void refuse(struct coordinator *c, enum terrane_error error, const char *what, struct node_id from);

/* sessions.c */
void packet_arrived(struct coordinator *c, const uint8_t *bytes, size_t size);
void send_welcome(struct coordinator *c, uint32_t index);
void sessions_flush(struct coordinator *c);

/* quadtree.c */
enum terrane_error leaves_open(struct coordinator *c, char *fault, size_t room);
void leaves_replace(struct coordinator *c, const struct leaf_owner *owners, uint32_t count); /* they tile the world */
enum terrane_error leaves_tile(const struct world *world, const struct quadkey *leaves, uint32_t count, char *fault,
                               size_t room); /* leaves in quadkey order */
uint32_t coordinator_leaf_find(const struct coordinator *c, struct quadkey key);
void coordinator_leaves_close(struct coordinator *c);

/* farewell.c */
void farewell_say(struct coordinator *c, const struct node_info *info); /* to an incarnation that is over */
void farewell_link(struct coordinator *c, struct node_id node, bool up);
void farewell_step(struct coordinator *c);
uint64_t farewell_due_us(const struct coordinator *c);
void farewell_close(struct coordinator *c);

/* assign.c */
void assign_decide(struct coordinator *c);        /* sets next and saving; only while no save is under way */
bool assign_pending(const struct coordinator *c); /* something is to be saved */
void assign_at(struct coordinator *c, uint64_t due_us);

/* plan.c: one round's decisions. Members are indices or NONE. */
void plan_open(struct coordinator *c);
void plan_leaf(struct coordinator *c, uint32_t leaf, uint32_t primary, uint32_t standby, const char *why);
void plan_close(struct coordinator *c); /* feeds, counts, the log */

/* failover.c */
enum fate {
    FATE_SERVES,
    FATE_SILENT, /* its lease has run out; nothing proves that it is dead */
    FATE_DEAD,
};
enum fate member_fate(const struct coordinator *c, uint32_t index);    /* of a server; NONE is dead */
bool leaf_level(const struct coordinator *c, const struct leaf *leaf); /* its standby has all of it */
/* It was given to somebody who died while that was being saved, and its former primary, which has not heard of that,
 * serves on. */
bool leaf_goes_back(const struct coordinator *c, const struct leaf *leaf);
void failover_plan(struct coordinator *c); /* leaves of the dead and silent */
void handover_plan(struct coordinator *c); /* leaves of the draining; those on their way */
void drain_finish(struct coordinator *c);  /* who said BYE and is empty may go */

/* migrate.c: a leaf goes to another server by way of being copied there first. */
/* False: not now (it is on its way already, is nobody's, or the target can't take it). */
bool migrate_start(struct coordinator *c, uint32_t leaf, uint32_t target, const char *why);
void migrate_plan(struct coordinator *c);            /* targets become standbys; what fails ends */
bool migrate_due(const struct leaf *leaf);           /* its standby is its target */
bool migrate_is_on(const struct leaf *leaf);         /* it has a target */
uint32_t migrate_count(const struct coordinator *c); /* leaves on their way, drained ones too */

/* rebalance.c */
void rebalance_plan(struct coordinator *c); /* asks the planner, at most each BALANCE_US, and begins what it wants */
void rebalance_close(struct coordinator *c);
/* What the planner would want now; false: it is not asked, since too little is known. */
bool rebalance_preview(struct coordinator *c, struct balance_view *view,
                       void (*each)(void *context, const struct explained *decision), void *context);

/* explain.c */
/* One more decision, to be filled; valid until the next. */
struct explained *explain_add(struct coordinator *c, const char *kind, struct quadkey leaf, const char *why);
void explain_servers(struct explained *e, const char *from, const char *to); /* names of members */
void explain_write(struct coordinator *c, const struct explain *asked);      /* into c->json, NUL-terminated */
void explain_close(struct coordinator *c);

/* place.c */
enum terrane_error place_ask(struct coordinator *c, const struct place *asked, struct done *done, char *fault,
                             size_t room) TERRANE_MUST_CHECK;

/* standby.c */
void standbys_plan(struct coordinator *c);
void standbys_close(struct coordinator *c);

/* keep.c */
void keep_lead(struct coordinator *c);   /* we lead: load, take the next term, claim it */
void keep_follow(struct coordinator *c); /* another does: nothing is ours any more, members included */
/* Writes all there is. `claim`: under a new term, and nothing is told before. Only while idle. */
void keep_restore(struct coordinator *c, bool claim);
bool keep_is_busy(const struct coordinator *c); /* an operation is with the store */
void keep_stored(struct coordinator *c, const struct event *in);
void keep_step(struct coordinator *c); /* what is due: a retry, a save of what has changed */
uint64_t keep_due_us(const struct coordinator *c);

/* lead.c */
void lead_start(struct coordinator *c);
bool lead_is_fresh(const struct coordinator *c);                 /* it may decide, save and grant leases */
bool lead_stored(struct coordinator *c, const struct event *in); /* false: not an answer of its own */
void lead_step(struct coordinator *c);
uint64_t lead_due_us(const struct coordinator *c);
void lead_again(struct coordinator *c);
void lead_overtaken(struct coordinator *c); /* a later term than ours is in the store */
void lead_heard_term(struct coordinator *c, uint64_t term);
void lead_claimed(struct coordinator *c, struct leaf *leaf, const struct leaf_load *load, struct node_id primary);
void lead_stands(struct coordinator *c, struct leaf *leaf, const struct leaf_stand *stand, struct node_id standby);
bool lead_adopt(struct coordinator *c); /* sets next and saving; whether something is to be saved */

/* map.c */
void map_tell(struct coordinator *c);
void map_send_due(struct coordinator *c);                  /* whole maps to those who need one */
bool map_open(const struct coordinator *c);                /* the map may be told */
void map_gone(struct coordinator *c, struct node_id node); /* a listed node is no more */
void member_needs_map(struct coordinator *c, uint32_t index, bool needs);
void map_forget(struct coordinator *c); /* nothing has been told, nothing is to be */
void map_close(struct coordinator *c);

/* admin.c */
void query_answer(struct coordinator *c, uint64_t token, const uint8_t *bytes, size_t size);

/* status.c */
void coordinator_status_write(struct coordinator *c); /* into c->json, NUL-terminated */

#endif
