/* What the cell server knows of who has which entity (proto/registry.h): what it has asked homes, and what it knows as
 * the primary of homes. Part of internal.h. */
#ifndef TERRANE_CELLSERVER_REGISTRY_H
#define TERRANE_CELLSERVER_REGISTRY_H

#include "common/table.h"
#include "proto/registry.h"

struct cellserver;

/* An ENTER that waits for its home's word. */
struct registry_claim {
    struct entity_id id;
    struct node_id gateway;
    uint64_t request, version, asked_us;
    struct writer enter; /* the message */
};

/* An item on its way: sent at the end of the step, several to one message. */
struct registry_note {
    struct node_id to; /* NODE_NONE: the home's primary */
    struct quadkey home;
    struct registry_item item; /* id 0: done */
};

/* Homes: what this server has told each. */
struct registry_told {
    struct quadkey leaf;
    uint32_t since;
    bool complete_due;
};

/* As a home: one entity. */
struct registry_entry {
    struct entity_id id;
    struct node_id holder; /* NODE_NONE: gone; kept for a while, since older news may come late */
    struct node_id gateway;
    uint64_t version, request, until_us; /* until_us: gone ones */
};

/* As a home: a claim that can't be decided yet. */
struct registry_waiting {
    struct registry_item item;
    struct node_id asker;
    uint64_t from_us, asked_us;
    uint64_t token_first, token; /* of its first and its newest ASK; 0: the holder has not been asked */
};

/* A home that has not heard of everybody yet. */
struct registry_gathering {
    struct quadkey leaf;
    uint32_t since;
    uint64_t from_us; /* since when it is ours; 0: not yet */
    struct node_id *heard;
    uint32_t heard_count, heard_room;
};

struct registry_side {
    struct registry_claim *claims;
    uint32_t claim_count, claim_room;
    struct table claim_index; /* entity id */
    struct registry_note *notes;
    uint32_t note_count, note_room;
    struct registry_told *told;
    uint32_t told_count, told_room;
    struct table told_index; /* quadkey */
    struct registry_entry *entries;
    uint32_t entry_count, entry_room, sweep_at;
    struct table entry_index; /* entity id */
    struct registry_waiting *waiting;
    uint32_t waiting_count, waiting_room;
    struct registry_gathering *gathering;
    uint32_t gathering_count, gathering_room;
    struct table gathering_index; /* quadkey */
    uint64_t token;
    struct writer items;
};

/* registry.c: asking and telling homes which entity is where. */
void registry_here(struct cellserver *cs, uint32_t entity); /* an owned entity has come to this server */
void registry_gone(struct cellserver *cs, uint32_t entity); /* it leaves the world */
/* An item for the home of its id, or (`to` is not NODE_NONE) from it; goes out at the end of the step. */
void registry_note(struct cellserver *cs, struct node_id to, const struct registry_item *item);
/* An ENTER waits for its home: command_enter_granted follows, or RESULT. Errors: NOT_OWNER (another ENTER of that id
 * waits), QUEUE_FULL. */
enum terrane_error registry_claim(struct cellserver *cs, const struct enter *m, struct node_id gateway,
                                  struct cursor message) TERRANE_MUST_CHECK;
void registry_received(struct cellserver *cs, struct node_id from, struct registry *m);
uint32_t registry_told_since(struct cellserver *cs, struct quadkey home); /* 0: never */
void registry_sync(struct cellserver *cs);                                /* after a map change and leaves_sync */
void registry_tick(struct cellserver *cs);
void registry_flush(struct cellserver *cs); /* the end of a step */
void registry_close(struct cellserver *cs);

/* registrar.c: being a home. */
void registrar_claim(struct cellserver *cs, struct node_id from, const struct registry_item *item);
void registrar_here(struct cellserver *cs, struct node_id from, const struct registry_item *item);
void registrar_gone(struct cellserver *cs, struct node_id from, const struct registry_item *item);
/* That server has told the home under that `since` all that it has. */
void registrar_heard(struct cellserver *cs, struct node_id from, struct quadkey home, uint32_t since);
void registrar_sync(struct cellserver *cs);
void registrar_tick(struct cellserver *cs);
void registrar_close(struct cellserver *cs);

#endif
