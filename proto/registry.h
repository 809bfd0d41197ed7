/* REGISTRY: which server has which entity, so that no id lives twice in a world.
 *
 * Each id has a home, the leaf in which a place made from the id lies. Before an id may enter, its owner asks the
 * home's primary (CLAIM; GRANT or EXISTS), which hears whenever an entity comes to a server (HERE) or leaves the world
 * (GONE). What a home knows may be old; so before it refuses it asks the server that it believes to have the entity
 * (ASK; HERE or GONE). A home that gets another primary hears everything anew, from every server, until each has said
 * that this was all (complete). */
#ifndef TERRANE_PROTO_REGISTRY_H
#define TERRANE_PROTO_REGISTRY_H

#include "proto/messages.h"
#include "proto/ownership.h"

enum registry_verb {
    REGISTRY_CLAIM,  /* to the home: may this id live? */
    REGISTRY_HERE,   /* to the home: the sender has it */
    REGISTRY_GONE,   /* to the home: the sender has it no more, and has not handed it on */
    REGISTRY_GRANT,  /* from the home: it may */
    REGISTRY_EXISTS, /* from the home: it lives, for that gateway by that request */
    REGISTRY_ASK,    /* from the home: do you have it? */
    REGISTRY_VERBS
};

/* msgpack: [verb, id, version, gateway, request, token] */
struct registry_item {
    enum registry_verb verb;
    struct entity_id id;
    uint64_t version;
    struct node_id gateway; /* NODE_NONE where it says nothing */
    uint64_t request;       /* that entered it; 0: not known */
    uint64_t token;         /* of the ASK that HERE answers, and of the ASK; 0: news */
};

/* msgpack: [39, leaf, since, complete, [item...]] */
struct registry {
    struct quadkey leaf; /* the home */
    uint32_t since;      /* of the home, as the sender knows it; not 0 */
    bool complete;       /* with this the home has heard of all that the sender has */
    uint32_t count;
    struct cursor items;
};

void registry_begin(struct writer *w, const struct registry *m); /* m->count items follow */
void registry_add(struct writer *w, const struct registry_item *item);
/* Errors: MESSAGE_*. */
enum terrane_error registry_decode(struct cursor c, struct registry *m) TERRANE_MUST_CHECK;
bool registry_next(struct registry *m, struct registry_item *item);

/* The home of an id; NULL: the map has no leaf there. Ids that follow each other have homes far apart. */
const struct leaf_owner *registry_home(const struct ownership *map, const struct world *world, struct entity_id id);

#endif
