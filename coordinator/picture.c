/* The map as a picture of it needs it: compact, since it is told again and again while somebody looks. */
#include "coordinator/internal.h"
#include "proto/json.h"

#include <stdlib.h>
#include <string.h>

static bool is_shown(const struct member *m)
{
    return m->state != MEMBER_FREE && !m->released && member_is_server(m);
}

static void put_server(struct coordinator *c, const struct member *m, struct writer *json)
{
    json_open(json, '{');
    json_key(json, "name"), json_text(json, m->info.name);
    json_key(json, "node"), json_id(json, m->info.node.v);
    json_key(json, "host"), json_text(json, m->info.host);
    json_key(json, "capacity"), json_uint(json, m->capacity);
    json_key(json, "ghosts"), json_uint(json, m->ghosts);
    json_key(json, "expected"), json_bool(json, m->state == MEMBER_EXPECTED);
    json_key(json, "silent"), json_bool(json, m->silent);
    json_key(json, "lapsed"), json_bool(json, m->lapsed || m->state == MEMBER_DEAD);
    json_key(json, "able"), json_bool(json, member_able(c, m));
    json_key(json, "draining"), json_bool(json, m->draining);
    json_close(json, '}');
}

static void put_place(const struct coordinator *c, const uint32_t *places, struct node_id node, struct writer *json)
{
    uint32_t member = node.v == 0 ? NONE : member_find(c, node);
    if (member == NONE || places[member] == NONE)
        json_null(json);
    else
        json_uint(json, places[member]);
}

static void put_region(const struct coordinator *c, const uint32_t *places, const struct leaf *leaf,
                       struct writer *json)
{
    char key[LIMIT_QUADKEY_TEXT];
    quadkey_text(leaf->owner.leaf, key);
    json_open(json, '[');
    json_text(json, key);
    json_uint(json, leaf->owner.epoch);
    json_uint(json, leaf->owner.since);
    put_place(c, places, leaf->owner.primary, json);
    put_place(c, places, leaf->owner.standby, json);
    json_bool(json, leaf_level(c, leaf));
    json_uint(json, leaf->load);
    json_close(json, ']');
}

static void put_leader(const struct coordinator *c, struct writer *json)
{
    const struct store_leader *leader = &c->lead.leader;
    json_key(json, "leader");
    if (leader->node.v == 0)
        json_null(json);
    else
        json_text(json, leader->name);
}

void coordinator_picture(struct coordinator *c, struct writer *json)
{
    struct coordinator_stats stats;
    coordinator_stats(c, &stats);
    uint32_t *places = calloc(c->member_count + 1u, sizeof *places), place = 0;
    CHECK(places != NULL);
    json_open(json, '{');
    json_key(json, "world"), json_world(json, &c->options.world);
    json_key(json, "name"), json_text(json, c->options.info.name);
    json_key(json, "node"), json_id(json, c->options.info.node.v);
    json_key(json, "term"), json_uint(json, stats.term);
    json_key(json, "rev"), json_uint(json, stats.rev);
    json_key(json, "ready"), json_bool(json, stats.ready);
    json_key(json, "leads"), json_bool(json, stats.leads);
    put_leader(c, json);
    json_key(json, "gateways"), json_uint(json, stats.gateways);
    json_key(json, "entities"), json_uint(json, stats.owned_entities);
    json_key(json, "unowned"), json_uint(json, stats.unowned);
    json_key(json, "unprotected"), json_uint(json, stats.unprotected);
    json_key(json, "promotions"), json_uint(json, stats.promotions);
    json_key(json, "servers"), json_open(json, '[');
    for (uint32_t i = 0; i < c->member_count; i++) {
        places[i] = is_shown(&c->members[i]) ? place++ : NONE;
        if (places[i] != NONE) put_server(c, &c->members[i], json);
    }
    json_close(json, ']');
    json_key(json, "regions"), json_open(json, '[');
    for (uint32_t i = 0; i < c->leaf_count; i++) put_region(c, places, &c->leaves[i], json);
    json_close(json, ']');
    json_close(json, '}');
    free(places);
}

void coordinator_servers(const struct coordinator *c, void (*each)(void *context, const struct node_info *server),
                         void *context)
{
    for (uint32_t i = 0; i < c->member_count; i++)
        if (is_shown(&c->members[i])) each(context, &c->members[i].info);
}

bool coordinator_leader(const struct coordinator *c, struct node_id *node, char inbox_url[LIMIT_URL])
{
    *node = c->lead.leader.node;
    memcpy(inbox_url, c->lead.leader.url, LIMIT_URL);
    return node->v != 0;
}
