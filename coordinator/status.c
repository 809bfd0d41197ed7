#include "coordinator/internal.h"
#include "proto/json.h"

#include <string.h>

/* An answer is one message; what no longer fits is counted in "regions_left_off". */
#define STATUS_BYTES (900u << 10)

static void put_node(struct coordinator *c, const struct node_info *info)
{
    struct writer *w = &c->json;
    json_key(w, "name"), json_text(w, info->name);
    json_key(w, "node"), json_id(w, info->node.v);
    json_key(w, "host"), json_text(w, info->host);
    json_key(w, "inbox"), json_text(w, info->inbox_url);
}

/* Where tools ask and listen. */
static void put_sockets(struct coordinator *c, const struct node_info *info)
{
    struct writer *w = &c->json;
    json_key(w, "query"), json_text(w, info->query_url);
    json_key(w, "feeds"), json_open(w, '[');
    for (uint32_t i = 0; i < info->feed_count; i++) json_text(w, info->feed_urls[i]);
    json_close(w, ']');
}

static uint64_t owned_by(const struct coordinator *c, struct node_id node)
{
    uint64_t owned = 0;
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        if (node_id_equal(c->leaves[i].owner.primary, node)) owned += c->leaves[i].load;
    }
    return owned;
}

static void put_server(struct coordinator *c, const struct member *m)
{
    struct writer *w = &c->json;
    uint32_t leaves = 0, stands = 0;
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        leaves += node_id_equal(c->leaves[i].owner.primary, m->info.node);
        stands += node_id_equal(c->leaves[i].owner.standby, m->info.node);
    }
    json_open(w, '{');
    put_node(c, &m->info);
    put_sockets(c, &m->info);
    json_key(w, "ghost_feed"), json_text(w, m->info.ghost_feed_url);
    json_key(w, "capacity"), json_uint(w, m->capacity);
    json_key(w, "leaves"), json_uint(w, leaves);
    json_key(w, "standby_leaves"), json_uint(w, stands);
    json_key(w, "owned"), json_uint(w, owned_by(c, m->info.node));
    json_key(w, "ghosts"), json_uint(w, m->ghosts);
    json_key(w, "tick"), json_uint(w, m->tick);
    json_key(w, "ticks_late"), json_uint(w, m->ticks_late);
    json_key(w, "silent"), json_bool(w, m->silent || m->state != MEMBER_ACTIVE);
    json_key(w, "lapsed"), json_bool(w, m->lapsed || m->state == MEMBER_DEAD);
    json_key(w, "draining"), json_bool(w, m->draining);
    json_close(w, '}');
}

static void put_members(struct coordinator *c, enum node_role role)
{
    json_open(&c->json, '[');
    for (uint32_t i = 0; i < c->member_count; i++) {
        const struct member *m = &c->members[i];
        if (m->state == MEMBER_FREE || m->released || m->info.role != role) continue;
        if (c->json.size > STATUS_BYTES) break;
        if (role == ROLE_CELLSERVER) {
            put_server(c, m);
            continue;
        }
        json_open(&c->json, '{');
        put_node(c, &m->info);
        json_key(&c->json, "silent"), json_bool(&c->json, m->silent);
        json_close(&c->json, '}');
    }
    json_close(&c->json, ']');
}

static void put_regions(struct coordinator *c)
{
    struct writer *w = &c->json;
    uint32_t i = 0;
    json_key(w, "regions"), json_open(w, '[');
    for (; i < c->leaf_count && w->size < STATUS_BYTES; i++) {
        const struct leaf *leaf = &c->leaves[i];
        uint32_t primary = member_find(c, leaf->owner.primary), standby = member_find(c, leaf->owner.standby);
        char key[LIMIT_QUADKEY_TEXT];
        quadkey_text(leaf->owner.leaf, key);
        json_open(w, '{');
        json_key(w, "quadkey"), json_text(w, key);
        json_key(w, "epoch"), json_uint(w, leaf->owner.epoch);
        json_key(w, "server");
        if (primary == NONE)
            json_null(w);
        else
            json_text(w, c->members[primary].info.name);
        json_key(w, "standby");
        if (standby == NONE)
            json_null(w);
        else
            json_text(w, c->members[standby].info.name);
        json_key(w, "since"), json_uint(w, leaf->owner.since);
        json_key(w, "level"), json_bool(w, leaf_level(c, leaf));
        json_key(w, "feed_url");
        if (primary == NONE || leaf->owner.feed >= c->members[primary].info.feed_count)
            json_null(w);
        else
            json_text(w, c->members[primary].info.feed_urls[leaf->owner.feed]);
        json_key(w, "owned"), json_uint(w, leaf->load);
        json_key(w, "pinned"), json_bool(w, leaf->pinned);
        json_key(w, "moving"), json_bool(w, migrate_is_on(leaf));
        json_close(w, '}');
    }
    json_close(w, ']');
    json_key(w, "regions_left_off"), json_uint(w, c->leaf_count - i);
}

static void put_refused(struct coordinator *c)
{
    json_open(&c->json, '{');
    for (uint32_t i = 0; i < ERRORS_MAX; i++) {
        if (c->refused[i] == 0) continue;
        json_key(&c->json, terrane_error_name((enum terrane_error)i));
        json_uint(&c->json, c->refused[i]);
    }
    json_close(&c->json, '}');
}

/* As the store said last: null where nobody leads, or there is no store. */
static void put_leader(struct coordinator *c)
{
    const struct store_leader *leader = &c->lead.leader;
    if (leader->node.v == 0) {
        json_null(&c->json);
        return;
    }
    json_open(&c->json, '{');
    json_key(&c->json, "name"), json_text(&c->json, leader->name);
    json_key(&c->json, "node"), json_id(&c->json, leader->node.v);
    json_key(&c->json, "inbox"), json_text(&c->json, leader->url);
    json_close(&c->json, '}');
}

void coordinator_status_write(struct coordinator *c)
{
    struct writer *w = &c->json;
    struct coordinator_stats stats;
    coordinator_stats(c, &stats);
    writer_clear(w);
    json_open(w, '{');
    json_key(w, "role"), json_text(w, "coordinator");
    put_node(c, &c->options.info);
    put_sockets(c, &c->options.info);
    json_key(w, "http"), json_text(w, c->http_url);
    json_key(w, "world"), json_world(w, &c->options.world);
    json_key(w, "term"), json_uint(w, stats.term);
    json_key(w, "rev"), json_uint(w, stats.rev);
    json_key(w, "ready"), json_bool(w, stats.ready);
    json_key(w, "leads"), json_bool(w, stats.leads);
    json_key(w, "leader"), put_leader(c);
    json_key(w, "stored"), json_uint(w, stats.stored);
    json_key(w, "store_failures"), json_uint(w, stats.store_failures);
    json_key(w, "lease_ms"), json_uint(w, c->options.lease_us / 1000);
    json_key(w, "unowned"), json_uint(w, stats.unowned);
    json_key(w, "unprotected"), json_uint(w, stats.unprotected);
    json_key(w, "promotions"), json_uint(w, stats.promotions);
    json_key(w, "migrating"), json_uint(w, stats.migrating);
    json_key(w, "load_worst"), json_double(w, stats.worst);
    json_key(w, "load_least"), json_double(w, stats.least);
    json_key(w, "refused"), put_refused(c);
    json_key(w, "servers"), put_members(c, ROLE_CELLSERVER);
    json_key(w, "gateways"), put_members(c, ROLE_GATEWAY);
    put_regions(c);
    json_close(w, '}');
    writer_raw(w, "", 1);
}
