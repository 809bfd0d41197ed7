/* What the cell server knows of who has which entity (proto/registry.h): what it has asked homes, and what it knows as
 * the primary of homes. Part of internal.h. */
#ifndef TERRANE_CELLSERVER_REGISTRY_H
#define TERRANE_CELLSERVER_REGISTRY_H

#include "common/table.h"
#include "proto/registry.h"

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

#endif
