/* What the coordinator writes to and reads from the store (OUTPUT_STORE, EVENT_STORED), as msgpack.
 *
 * STORE_LOAD asks with no bytes; the answer is a store_map, of term 0 if the store holds no map of this world.
 * STORE_SAVE carries a store_map with what has changed; the answer has no bytes. The store takes it only if its own
 * term is not higher, if it is not of the same term and another leader, and if of no leaf it holds a higher epoch, or
 * the same epoch with another primary: else STORE_CONFLICT and nothing is written. An empty store takes only a whole
 * map, so that no part is ever taken for a world. Saving the same once more is fine.
 *
 *   [head, rev, whole, [leaf...], [gone leaf...], [server...], [gone name...]]
 *   head        [leader, term, world], the world as in WELCOME; nil for an empty store, rev is 0 then
 *   leaf        [quadkey, epoch, since, primary, standby, feed, primary's name, standby's name]
 *   server      [node_info, capacity]
 * STORE_LEAD carries a store_lead and is answered by a store_leader. One coordinator at a time leads a world: the store
 * keeps its name for ttl_ms, and gives the world to the next who asks after that (at once to the next incarnation of
 * the same name and url). A world without a map goes only to who asks for it even so, so that whoever still has the map
 * in memory can bring it back.
 *
 *   store_lead    [node, name, url, ttl_ms, even_empty]
 *   store_leader  [node, name, url, term, rev]
 *
 * What it is not: the store's own representation (io/store, docs/STORE.md).
 * Memory: a decoded map points into the bytes. */
#ifndef TERRANE_PROTO_STORE_H
#define TERRANE_PROTO_STORE_H

#include "proto/messages.h"

struct store_leaf {
    struct leaf_owner owner;
    char primary[LIMIT_NAME], standby[LIMIT_NAME]; /* names; "": none */
};

struct store_server {
    struct node_info info; /* role cellserver */
    uint32_t capacity;
};

struct store_map {
    uint64_t term, rev;    /* term 0: nothing is stored */
    struct node_id leader; /* the coordinator that wrote it */
    bool whole;            /* to save: all leaves and servers are in it. Loaded: true */
    struct world world;
    uint32_t leaf_count, gone_leaf_count, server_count, gone_server_count;
    struct cursor leaves, gone_leaves, servers, gone_servers;
};

struct store_lead {
    struct node_id node;                   /* who asks */
    char name[LIMIT_NAME], url[LIMIT_URL]; /* its name and inbox, for people */
    uint32_t ttl_ms;                       /* 0: gives the leadership back, if it has it */
    bool even_empty;                       /* takes it even if the store holds no map */
};

struct store_leader {
    struct node_id node; /* NODE_NONE: nobody leads */
    char name[LIMIT_NAME], url[LIMIT_URL];
    uint64_t term, rev; /* of the stored map; term 0: there is none */
};

/* Then four lists in order, each store_list(w, count) and its items. */
void store_map_begin(struct writer *w, const struct store_map *m);
void store_list(struct writer *w, uint32_t count);
void store_add_leaf(struct writer *w, const struct store_leaf *leaf);
void store_add_gone_leaf(struct writer *w, struct quadkey leaf);
void store_add_server(struct writer *w, const struct store_server *server);
void store_add_gone_server(struct writer *w, const char *name);

/* Checks all of it; iterating can't fail after that. Errors: MESSAGE_*. */
enum terrane_error store_map_decode(const uint8_t *bytes, size_t size, struct store_map *out) TERRANE_MUST_CHECK;
bool store_next_leaf(struct store_map *m, struct store_leaf *leaf);
bool store_next_gone_leaf(struct store_map *m, struct quadkey *leaf);
bool store_next_server(struct store_map *m, struct store_server *server);
bool store_next_gone_server(struct store_map *m, char name[LIMIT_NAME]);

void store_lead_encode(struct writer *w, const struct store_lead *m);
enum terrane_error store_lead_decode(const uint8_t *bytes, size_t size, struct store_lead *out) TERRANE_MUST_CHECK;
void store_leader_encode(struct writer *w, const struct store_leader *m);
enum terrane_error store_leader_decode(const uint8_t *bytes, size_t size, struct store_leader *out) TERRANE_MUST_CHECK;

#endif
