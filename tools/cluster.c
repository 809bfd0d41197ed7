#include "tools/cluster.h"

#include "common/array.h"
#include "common/check.h"
#include "common/geometry.h"
#include "proto/messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum terrane_error query_url(const char *inbox_url, size_t length, char *out, size_t room)
{
    char inbox[LIMIT_URL], *end;
    if (length == 0 || length >= sizeof inbox) return TERRANE_ERR_ADDRESS;
    snprintf(inbox, sizeof inbox, "%.*s", (int)length, inbox_url);
    const char *colon = strrchr(inbox, ':');
    if (strncmp(inbox, "tcp://", 6) != 0 || colon == NULL || colon <= inbox + 6) return TERRANE_ERR_ADDRESS;
    unsigned long port = strtoul(colon + 1, &end, 10);
    if (colon[1] < '0' || colon[1] > '9' || *end != '\0' || port == 0 || port >= 65535) return TERRANE_ERR_ADDRESS;
    int size = snprintf(out, room, "%.*s:%lu", (int)(colon - inbox), inbox, port + 1);
    return size > 0 && (size_t)size < room && size < (int)LIMIT_URL ? TERRANE_ERR_OK : TERRANE_ERR_ADDRESS;
}

enum terrane_error cluster_query_urls(const char *inbox_urls, char out[CLUSTER_URLS_TEXT])
{
    uint32_t count = 0;
    size_t used = 0;
    for (const char *at = inbox_urls;; at++) {
        size_t size = strcspn(at, ",");
        if (count++ == CLUSTER_URLS) return TERRANE_ERR_LIMIT;
        if (used > 0) out[used++] = ',';
        enum terrane_error error = query_url(at, size, out + used, CLUSTER_URLS_TEXT - used);
        if (error != TERRANE_ERR_OK) return error;
        used += strlen(out + used);
        at += size;
        if (*at == '\0') return TERRANE_ERR_OK;
    }
}

void cluster_open(struct cluster *c, const char *query_urls)
{
    *c = (struct cluster){.lane = query_lane_open()};
    for (const char *at = query_urls;; at++) {
        size_t size = strcspn(at, ",");
        CHECK(c->url_count < CLUSTER_URLS && size < LIMIT_URL);
        snprintf(c->query_urls[c->url_count++], LIMIT_URL, "%.*s", (int)size, at);
        at += size;
        if (*at == '\0') break;
    }
    c->query_url = c->query_urls[0];
}

static void drop_servers(struct cluster *c)
{
    for (uint32_t i = 0; i < c->server_count; i++) document_close(&c->servers[i].status);
    c->server_count = 0;
}

void cluster_close(struct cluster *c)
{
    drop_servers(c);
    free(c->servers);
    c->servers = NULL;
    document_close(&c->map);
}

static enum terrane_error ask_status(struct cluster *c, const char *url, uint32_t timeout_ms, struct document *out)
{
    const char *json;
    size_t size;
    enum terrane_error error = query_status(c->lane, url, timeout_ms, &json, &size);
    return error == TERRANE_ERR_OK ? document_parse(out, json, size) : error;
}

/* Who leads has a map that is stored; one that waits does not say that it is ready. */
static enum terrane_error ask_leader(struct cluster *c, uint32_t timeout_ms)
{
    enum terrane_error error = TERRANE_ERR_TIMED_OUT;
    uint32_t first = c->leader, answered = CLUSTER_URLS, each_ms = c->url_count > 1 ? timeout_ms / 2 : timeout_ms;
    for (uint32_t i = 0; i < c->url_count; i++) {
        uint32_t at = (first + i) % c->url_count;
        error = ask_status(c, c->query_urls[at], each_ms, &c->map);
        if (error != TERRANE_ERR_OK) continue;
        answered = c->leader = at;
        if (document_bool(&c->map, 0, "ready")) break;
    }
    c->query_url = c->query_urls[c->leader];
    return answered < CLUSTER_URLS ? TERRANE_ERR_OK : error;
}

/* cell-2 before cell-10. */
static int by_name(const void *a, const void *b)
{
    const struct cluster_server *x = a, *y = b;
    return strverscmp(x->name, y->name);
}

enum terrane_error cluster_refresh(struct cluster *c, uint32_t timeout_ms)
{
    drop_servers(c);
    enum terrane_error error = ask_leader(c, timeout_ms);
    if (error != TERRANE_ERR_OK) return error;
    uint32_t at = document_first(&c->map, document_member(&c->map, 0, "servers"));
    for (; at != DOCUMENT_NONE; at = document_next(&c->map, at)) {
        ARRAY_RESERVE(c->servers, c->server_room, (size_t)c->server_count + 1);
        c->servers[c->server_count++] = (struct cluster_server){
            .name = document_text(&c->map, at, "name"), .query_url = document_text(&c->map, at, "query"), .listed = at};
    }
    if (c->server_count > 1) qsort(c->servers, c->server_count, sizeof *c->servers, by_name);
    return TERRANE_ERR_OK;
}

enum terrane_error cluster_refresh_all(struct cluster *c, uint32_t timeout_ms)
{
    enum terrane_error error = cluster_refresh(c, timeout_ms);
    if (error != TERRANE_ERR_OK) return error;
    for (uint32_t i = 0; i < c->server_count; i++) {
        struct cluster_server *s = &c->servers[i];
        s->answered = ask_status(c, s->query_url, timeout_ms, &s->status) == TERRANE_ERR_OK;
    }
    return TERRANE_ERR_OK;
}

bool cluster_ready(const struct cluster *c, uint64_t servers)
{
    uint32_t regions = document_member(&c->map, 0, "regions"), at = document_first(&c->map, regions);
    if (!document_bool(&c->map, 0, "ready") || c->server_count < servers || at == DOCUMENT_NONE) return false;
    for (; at != DOCUMENT_NONE; at = document_next(&c->map, at))
        if (document_text(&c->map, at, "server")[0] == '\0') return false;
    return true;
}

struct cluster_sums cluster_server_sums(const struct cluster_server *s)
{
    const struct document *d = &s->status;
    CHECK(s->answered);
    return (struct cluster_sums){.owned = document_count(d, 0, "owned"),
                                 .ghosts = document_count(d, 0, "ghosts"),
                                 .leaving = document_count(d, 0, "leaving"),
                                 .moves = document_count(d, 0, "moves"),
                                 .handoffs_in = document_count(d, 0, "handoffs_in"),
                                 .handoffs_out = document_count(d, 0, "handoffs_out"),
                                 .frames = document_count(d, 0, "frames"),
                                 .frame_bytes = document_count(d, 0, "frame_bytes"),
                                 .frame_moves = document_count(d, 0, "frame_moves"),
                                 .gaps = document_count(d, 0, "gaps"),
                                 .gaps_open = document_count(d, 0, "gaps_open"),
                                 .ticks = document_count(d, 0, "tick"),
                                 .ticks_late = document_count(d, 0, "ticks_late")};
}

void cluster_sums_add(struct cluster_sums *to, const struct cluster_sums *from)
{
    to->owned += from->owned;
    to->ghosts += from->ghosts;
    to->leaving += from->leaving;
    to->moves += from->moves;
    to->handoffs_in += from->handoffs_in;
    to->handoffs_out += from->handoffs_out;
    to->frames += from->frames;
    to->frame_bytes += from->frame_bytes;
    to->frame_moves += from->frame_moves;
    to->gaps += from->gaps;
    to->gaps_open += from->gaps_open;
    to->ticks += from->ticks;
    to->ticks_late += from->ticks_late;
    to->promotions += from->promotions;
    to->silent += from->silent;
}

struct cluster_sums cluster_sums(const struct cluster *c)
{
    struct cluster_sums sums = {0};
    for (uint32_t i = 0; i < c->server_count; i++) {
        struct cluster_sums one = {.silent = 1};
        if (c->servers[i].answered) one = cluster_server_sums(&c->servers[i]);
        cluster_sums_add(&sums, &one);
    }
    return sums;
}

struct cluster_server *cluster_server(struct cluster *c, const char *name)
{
    for (uint32_t i = 0; i < c->server_count; i++)
        if (strcmp(c->servers[i].name, name) == 0) return &c->servers[i];
    return NULL;
}

enum terrane_error cluster_world(const struct cluster *c, struct world *out)
{
    const struct document *d = &c->map;
    uint32_t at = document_member(d, 0, "world");
    if (at == DOCUMENT_NONE) return TERRANE_ERR_CONFIG;
    *out = (struct world){.origin_x = document_number(d, at, "origin_x", 0),
                          .origin_y = document_number(d, at, "origin_y", 0),
                          .cell_size = document_number(d, at, "cell_size", 0),
                          .depth = (uint32_t)document_count(d, at, "depth"),
                          .resolution_bits = (uint32_t)document_count(d, at, "resolution_bits"),
                          .radius_max = (uint32_t)document_count(d, at, "radius_max"),
                          .hysteresis = (uint32_t)document_count(d, at, "hysteresis"),
                          .z_range = (uint32_t)document_count(d, at, "z_range"),
                          .handoff_hysteresis = (uint32_t)document_count(d, at, "handoff_hysteresis"),
                          .tick_hz = (uint32_t)document_count(d, at, "tick_hz")};
    if (strcmp(document_text(d, at, "view_mode"), "block") == 0) out->view_mode = VIEW_BLOCK;
    if (strcmp(document_text(d, at, "edge"), "clamp") == 0) out->edge = WORLD_EDGE_CLAMP;
    return world_check(out);
}

const char *cluster_node_name(const struct cluster *c, struct node_id node)
{
    static const char *const lists[] = {"servers", "gateways"};
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, node.v);
    if (strcmp(document_text(&c->map, 0, "node"), text) == 0) return document_text(&c->map, 0, "name");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        uint32_t at = document_first(&c->map, document_member(&c->map, 0, lists[i]));
        for (; at != DOCUMENT_NONE; at = document_next(&c->map, at))
            if (strcmp(document_text(&c->map, at, "node"), text) == 0) return document_text(&c->map, at, "name");
    }
    return NULL;
}

enum terrane_error cluster_ask(struct cluster *c, const struct cluster_server *server, const struct writer *question,
                               uint32_t timeout_ms, struct cursor *answer)
{
    const uint8_t *bytes;
    size_t size;
    struct fault fault;
    enum terrane_error error =
        query_ask(c->lane, server->query_url, question->data, question->size, timeout_ms, &bytes, &size);
    if (error != TERRANE_ERR_OK) return error;
    *answer = cursor_of(bytes, size);
    return fault_decode(*answer, &fault) == TERRANE_ERR_OK ? fault.error : TERRANE_ERR_OK;
}

/* Census */

struct census {
    struct cluster *cluster;
    void (*each)(void *context, const struct cluster_entity *entity);
    void *context;
    uint32_t timeout_ms, last_slot;
    bool more;
};

static enum terrane_error take_part(struct census *census, const uint8_t *answer, size_t size)
{
    struct snapshot snapshot;
    struct fault fault;
    if (fault_decode(cursor_of(answer, size), &fault) == TERRANE_ERR_OK) return fault.error;
    enum terrane_error error = snapshot_decode(cursor_of(answer, size), &snapshot);
    if (error != TERRANE_ERR_OK) return error;
    struct entity_record record;
    while (snapshot_next(&snapshot, &census->last_slot, &record)) {
        struct cluster_entity entity = {
            .id = record.id.v, .position = record.position, .state = record.state, .state_size = record.state_size};
        census->each(census->context, &entity);
    }
    census->more = snapshot.parts > 1;
    return snapshot.count == 0 && census->more ? TERRANE_ERR_MESSAGE_RANGE : TERRANE_ERR_OK;
}

static enum terrane_error take_region(struct census *census, const char *url, struct quadkey leaf)
{
    struct writer w = {0};
    enum terrane_error error = TERRANE_ERR_OK;
    struct snapshot_request request = {.stream = STREAM_REGION, .leaf = leaf};
    census->more = true;
    while (error == TERRANE_ERR_OK && census->more) {
        const uint8_t *answer;
        size_t size;
        writer_clear(&w);
        snapshot_request_encode(&w, &request);
        error = query_ask(census->cluster->lane, url, w.data, w.size, census->timeout_ms, &answer, &size);
        if (error == TERRANE_ERR_OK) error = take_part(census, answer, size);
        request.from_slot = census->last_slot + 1;
    }
    writer_close(&w);
    return error;
}

enum terrane_error cluster_census(struct cluster *c, uint32_t timeout_ms,
                                  void (*each)(void *context, const struct cluster_entity *entity),
                                  void (*between)(void *context), void *context)
{
    struct census census = {.cluster = c, .each = each, .context = context, .timeout_ms = timeout_ms};
    uint32_t at = document_first(&c->map, document_member(&c->map, 0, "regions"));
    for (; at != DOCUMENT_NONE; at = document_next(&c->map, at)) {
        const char *text = document_text(&c->map, at, "quadkey");
        struct cluster_server *server = cluster_server(c, document_text(&c->map, at, "server"));
        struct quadkey leaf;
        if (server == NULL) return TERRANE_ERR_REGION_UNOWNED;
        enum terrane_error error = quadkey_parse(text, strlen(text), &leaf);
        if (error == TERRANE_ERR_OK) error = take_region(&census, server->query_url, leaf);
        if (error != TERRANE_ERR_OK) return error;
        if (between != NULL) between(context);
    }
    return TERRANE_ERR_OK;
}
