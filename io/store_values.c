#include "io/store_values.h"

#include "common/array.h"
#include "common/geometry.h"
#include "proto/json.h"
#include "proto/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A hash field can be any text, but an empty one is hard to type in redis-cli. */
#define ROOT_FIELD "root"

/* Everything is compared before anything is written. A whole map is all that there is: leaves that it lacks were split
 * or merged away in what the store did not hear of, and would overlap those that it has. */
static const char script_save[] =
    "local term, leader = tonumber(ARGV[1]), ARGV[3]\n"
    "local old_term = tonumber(redis.call('HGET', KEYS[2], 'term') or '0')\n"
    "local old_leader = redis.call('HGET', KEYS[2], 'leader')\n"
    "if old_term > term then return redis.error_reply('CONFLICT term ' .. old_term) end\n"
    "if old_term == term and old_leader ~= leader then\n"
    "  return redis.error_reply('CONFLICT leader ' .. tostring(old_leader))\n"
    "end\n"
    "if old_term == 0 and ARGV[9] ~= '1' then return redis.error_reply('CONFLICT the store is empty') end\n"
    "local leaves, gone, servers, lost =\n"
    "  tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])\n"
    "local function node(v) return (v == nil or v == cjson.null) and '' or v end\n"
    "for i = 0, leaves - 1 do\n"
    "  local old = redis.call('HGET', KEYS[1], ARGV[10 + 4 * i])\n"
    "  if old then\n"
    "    local leaf, epoch = cjson.decode(old), tonumber(ARGV[11 + 4 * i])\n"
    "    local other = leaf.epoch == epoch and (node(leaf.node) ~= ARGV[12 + 4 * i] or\n"
    "      node(leaf.standby_node) ~= node(cjson.decode(ARGV[13 + 4 * i]).standby_node))\n"
    "    if leaf.epoch > epoch or other then\n"
    "      return redis.error_reply('CONFLICT epoch of ' .. ARGV[10 + 4 * i])\n"
    "    end\n"
    "  end\n"
    "end\n"
    "local at = 10\n"
    "if ARGV[9] == '1' then redis.call('DEL', KEYS[1]) end\n"
    "for i = 1, leaves do redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 3]); at = at + 4 end\n"
    "for i = 1, gone do redis.call('HDEL', KEYS[1], ARGV[at]); at = at + 1 end\n"
    "for i = 1, servers do redis.call('HSET', KEYS[3], ARGV[at], ARGV[at + 1]); at = at + 2 end\n"
    "for i = 1, lost do redis.call('HDEL', KEYS[3], ARGV[at]); at = at + 1 end\n"
    "redis.call('HSET', KEYS[2], 'term', ARGV[1], 'rev', ARGV[2], 'leader', ARGV[3], 'world', ARGV[4])\n"
    "return redis.status_reply('OK')\n";

/* Redis makes integers of Lua's numbers on the way out, so they go as text. */
static const char script_load[] =
    "local meta = {}\n"
    "local raw = redis.call('HGETALL', KEYS[2])\n"
    "for i = 1, #raw, 2 do meta[raw[i]] = raw[i + 1] end\n"
    "if not meta.term then return {} end\n"
    "local function text(v)\n"
    "  if v == nil or v == cjson.null then return '' end\n"
    "  if type(v) == 'number' then return string.format('%.17g', v) end\n"
    "  return tostring(v)\n"
    "end\n"
    "local out = {meta.term, text(meta.rev), text(meta.leader)}\n"
    "local world = cjson.decode(meta.world)\n"
    "for _, name in ipairs({'origin_x', 'origin_y', 'cell_size', 'depth', 'resolution_bits', 'view_mode', 'edge',\n"
    "                       'radius_max', 'hysteresis', 'z_range', 'handoff_hysteresis', 'tick_hz'}) do\n"
    "  out[#out + 1] = text(world[name])\n"
    "end\n"
    "local leaves = redis.call('HGETALL', KEYS[1])\n"
    "out[#out + 1] = tostring(#leaves / 2)\n"
    "for i = 1, #leaves, 2 do\n"
    "  local leaf = cjson.decode(leaves[i + 1])\n"
    "  out[#out + 1] = leaves[i]\n"
    "  for _, name in ipairs({'epoch', 'since', 'node', 'primary', 'standby_node', 'standby', 'feed'}) do\n"
    "    out[#out + 1] = text(leaf[name])\n"
    "  end\n"
    "end\n"
    "local servers = redis.call('HGETALL', KEYS[3])\n"
    "out[#out + 1] = tostring(#servers / 2)\n"
    "for i = 1, #servers, 2 do\n"
    "  local server = cjson.decode(servers[i + 1])\n"
    "  out[#out + 1] = servers[i]\n"
    "  for _, name in ipairs({'node', 'host', 'inbox', 'sub', 'query', 'ghost_feed', 'capacity'}) do\n"
    "    out[#out + 1] = text(server[name])\n"
    "  end\n"
    "  local feeds = server.feeds or {}\n"
    "  out[#out + 1] = tostring(#feeds)\n"
    "  for _, url in ipairs(feeds) do out[#out + 1] = text(url) end\n"
    "end\n"
    "return out\n";

/* A leader that somebody wrote by hand in another form is nobody. One of our name that listened where we do is our
 * predecessor: nobody else could have got that socket while it lived. */
static const char script_lead[] =
    "local held, leader = redis.call('GET', KEYS[4]), nil\n"
    "if held then\n"
    "  local well, value = pcall(cjson.decode, held)\n"
    "  if well and type(value) == 'table' and type(value.node) == 'string' then leader = value end\n"
    "end\n"
    "local term = redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HGET', KEYS[2], 'term') or '0'\n"
    "local rev = term ~= '0' and redis.call('HGET', KEYS[2], 'rev') or '0'\n"
    "local asks = cjson.decode(ARGV[2])\n"
    "if leader and leader.node ~= asks.node and leader.name == asks.name and leader.inbox == asks.inbox then\n"
    "  leader = nil\n"
    "end\n"
    "if not leader or leader.node == ARGV[1] then\n"
    "  if ARGV[3] == '0' then\n"
    "    if leader then redis.call('DEL', KEYS[4]) end\n"
    "    leader = nil\n"
    "  elseif leader or term ~= '0' or ARGV[4] == '1' then\n"
    "    redis.call('SET', KEYS[4], ARGV[2], 'PX', ARGV[3])\n"
    "    leader = asks\n"
    "  end\n"
    "end\n"
    "leader = leader or {node = '', name = '', inbox = ''}\n"
    "return {leader.node, tostring(leader.name), tostring(leader.inbox), term, rev}\n";

const char *store_script_load(void)
{
    return script_load;
}

const char *store_script_save(void)
{
    return script_save;
}

const char *store_script_lead(void)
{
    return script_lead;
}

void value_list_close(struct value_list *list)
{
    writer_close(&list->bytes);
    free(list->ends);
    *list = (struct value_list){0};
}

void value_list_clear(struct value_list *list)
{
    writer_clear(&list->bytes);
    list->count = 0;
}

void value_list_add(struct value_list *list, const void *bytes, size_t size)
{
    ARRAY_RESERVE(list->ends, list->room, (size_t)list->count + 1);
    writer_raw(&list->bytes, bytes, size);
    list->ends[list->count++] = list->bytes.size;
}

const char *value_list_get(const struct value_list *list, uint32_t index, size_t *size)
{
    size_t start = index == 0 ? 0 : list->ends[index - 1];
    *size = list->ends[index] - start;
    return *size == 0 ? "" : (const char *)list->bytes.data + start;
}

static void add_text(struct value_list *list, const char *text)
{
    value_list_add(list, text, strlen(text));
}

static void add_uint(struct value_list *list, uint64_t v)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, v);
    add_text(list, digits);
}

static void add_json(struct value_list *list, const struct writer *json)
{
    value_list_add(list, json->data, json->size);
}

static void add_node(struct value_list *list, struct node_id node)
{
    if (node.v == 0)
        add_text(list, "");
    else
        add_uint(list, node.v);
}

static void add_field(struct value_list *list, struct quadkey leaf)
{
    char text[LIMIT_QUADKEY_TEXT];
    quadkey_text(leaf, text);
    add_text(list, text[0] == '\0' ? ROOT_FIELD : text);
}

static void json_name(struct writer *json, const char *key, const char *name)
{
    json_key(json, key);
    if (name[0] == '\0')
        json_null(json);
    else
        json_text(json, name);
}

static void leaf_json(struct writer *json, const struct store_leaf *leaf)
{
    writer_clear(json);
    json_open(json, '{');
    json_name(json, "primary", leaf->primary);
    json_key(json, "node"), json_id(json, leaf->owner.primary.v);
    json_name(json, "standby", leaf->standby);
    json_key(json, "standby_node"), json_id(json, leaf->owner.standby.v);
    json_key(json, "epoch"), json_uint(json, leaf->owner.epoch);
    json_key(json, "since"), json_uint(json, leaf->owner.since);
    json_key(json, "feed"), json_uint(json, leaf->owner.feed);
    json_close(json, '}');
}

static void server_json(struct writer *json, const struct store_server *server)
{
    const struct node_info *info = &server->info;
    writer_clear(json);
    json_open(json, '{');
    json_key(json, "node"), json_id(json, info->node.v);
    json_key(json, "host"), json_text(json, info->host);
    json_key(json, "inbox"), json_text(json, info->inbox_url);
    json_key(json, "sub"), json_text(json, info->sub_url);
    json_key(json, "query"), json_text(json, info->query_url);
    json_key(json, "ghost_feed"), json_text(json, info->ghost_feed_url);
    json_key(json, "feeds"), json_open(json, '[');
    for (uint32_t i = 0; i < info->feed_count; i++) json_text(json, info->feed_urls[i]);
    json_close(json, ']');
    json_key(json, "capacity"), json_uint(json, server->capacity);
    json_close(json, '}');
}

enum terrane_error values_of_map(const uint8_t *bytes, size_t size, struct value_list *out)
{
    struct store_map m;
    struct store_leaf leaf;
    struct store_server server;
    struct quadkey gone;
    char name[LIMIT_NAME];
    struct writer json = {0};
    enum terrane_error error = store_map_decode(bytes, size, &m);
    if (error != TERRANE_ERR_OK) return error;
    if (m.term == 0) return TERRANE_ERR_MESSAGE_RANGE;
    add_uint(out, m.term);
    add_uint(out, m.rev);
    add_uint(out, m.leader.v);
    json_world(&json, &m.world);
    add_json(out, &json);
    add_uint(out, m.leaf_count);
    add_uint(out, m.gone_leaf_count);
    add_uint(out, m.server_count);
    add_uint(out, m.gone_server_count);
    add_uint(out, m.whole ? 1 : 0);
    while (store_next_leaf(&m, &leaf)) {
        leaf_json(&json, &leaf);
        add_field(out, leaf.owner.leaf);
        add_uint(out, leaf.owner.epoch);
        add_node(out, leaf.owner.primary);
        add_json(out, &json);
    }
    while (store_next_gone_leaf(&m, &gone)) add_field(out, gone);
    while (store_next_server(&m, &server)) {
        server_json(&json, &server);
        add_text(out, server.info.name);
        add_json(out, &json);
    }
    while (store_next_gone_server(&m, name)) add_text(out, name);
    writer_close(&json);
    return TERRANE_ERR_OK;
}

enum terrane_error values_of_lead(const uint8_t *bytes, size_t size, struct value_list *out)
{
    struct store_lead m;
    struct writer json = {0};
    enum terrane_error error = store_lead_decode(bytes, size, &m);
    if (error != TERRANE_ERR_OK) return error;
    json_open(&json, '{');
    json_key(&json, "node"), json_id(&json, m.node.v);
    json_key(&json, "name"), json_text(&json, m.name);
    json_key(&json, "inbox"), json_text(&json, m.url);
    json_close(&json, '}');
    add_uint(out, m.node.v);
    add_json(out, &json);
    add_uint(out, m.ttl_ms);
    add_uint(out, m.even_empty ? 1 : 0);
    writer_close(&json);
    return TERRANE_ERR_OK;
}

/* Reads a flat list in order with a sticky error, as a cursor does. */
struct value_reader {
    const struct value_list *list;
    uint32_t at;
    enum terrane_error error;
};

static void read_text(struct value_reader *r, char *out, size_t room)
{
    size_t size = 0;
    out[0] = '\0';
    if (r->error == TERRANE_ERR_OK && r->at >= r->list->count) r->error = TERRANE_ERR_MESSAGE_TRUNCATED;
    if (r->error != TERRANE_ERR_OK) return;
    const char *text = value_list_get(r->list, r->at++, &size);
    if (size >= room || memchr(text, '\0', size) != NULL) {
        r->error = TERRANE_ERR_MESSAGE_RANGE;
        return;
    }
    memcpy(out, text, size);
    out[size] = '\0';
}

/* Decimal digits; "" is 0. */
static uint64_t read_uint(struct value_reader *r, uint64_t max)
{
    char text[32];
    uint64_t v = 0;
    read_text(r, text, sizeof text);
    for (const char *at = text; *at != '\0'; at++) {
        bool digit = *at >= '0' && *at <= '9';
        if (!digit || v > (max - (uint64_t)(*at - '0')) / 10) {
            r->error = digit ? TERRANE_ERR_MESSAGE_RANGE : TERRANE_ERR_MESSAGE_TYPE;
            return 0;
        }
        v = v * 10 + (uint64_t)(*at - '0');
    }
    return v;
}

static double read_double(struct value_reader *r)
{
    char text[40], *end;
    read_text(r, text, sizeof text);
    double v = strtod(text, &end);
    if (r->error == TERRANE_ERR_OK && (end == text || *end != '\0')) r->error = TERRANE_ERR_MESSAGE_TYPE;
    return v;
}

static uint32_t read_word(struct value_reader *r)
{
    return (uint32_t)read_uint(r, UINT32_MAX);
}

/* 0 or 1, by the two words that may stand there. */
static uint32_t read_word_of(struct value_reader *r, const char *zero, const char *one)
{
    char text[16];
    read_text(r, text, sizeof text);
    bool known = strcmp(text, zero) == 0 || strcmp(text, one) == 0;
    if (r->error == TERRANE_ERR_OK && !known) r->error = TERRANE_ERR_MESSAGE_RANGE;
    return strcmp(text, one) == 0 ? 1 : 0;
}

static void read_head(struct value_reader *r, struct store_map *m)
{
    m->term = read_uint(r, UINT64_MAX);
    m->rev = read_uint(r, UINT64_MAX);
    m->leader.v = read_uint(r, UINT64_MAX);
    m->world.origin_x = read_double(r);
    m->world.origin_y = read_double(r);
    m->world.cell_size = read_double(r);
    m->world.depth = read_word(r);
    m->world.resolution_bits = read_word(r);
    m->world.view_mode = (enum view_mode)read_word_of(r, "radius", "block");
    m->world.edge = (enum world_edge)read_word_of(r, "refuse", "clamp");
    m->world.radius_max = read_word(r);
    m->world.hysteresis = read_word(r);
    m->world.z_range = read_word(r);
    m->world.handoff_hysteresis = read_word(r);
    m->world.tick_hz = read_word(r);
    if (r->error == TERRANE_ERR_OK && m->term == 0) r->error = TERRANE_ERR_MESSAGE_RANGE;
}

static void read_leaf(struct value_reader *r, struct store_leaf *leaf)
{
    char field[LIMIT_QUADKEY_TEXT];
    *leaf = (struct store_leaf){0};
    read_text(r, field, sizeof field);
    size_t size = strcmp(field, ROOT_FIELD) == 0 ? 0 : strlen(field);
    enum terrane_error error = quadkey_parse(field, size, &leaf->owner.leaf);
    if (r->error == TERRANE_ERR_OK) r->error = error;
    leaf->owner.epoch = read_word(r);
    leaf->owner.since = read_word(r);
    if (leaf->owner.since == 0) leaf->owner.since = leaf->owner.epoch; /* written before there was such a field */
    leaf->owner.primary.v = read_uint(r, UINT64_MAX);
    read_text(r, leaf->primary, sizeof leaf->primary);
    leaf->owner.standby.v = read_uint(r, UINT64_MAX);
    read_text(r, leaf->standby, sizeof leaf->standby);
    leaf->owner.feed = read_word(r);
}

static void read_server(struct value_reader *r, struct store_server *server)
{
    struct node_info *info = &server->info;
    *server = (struct store_server){.info.role = ROLE_CELLSERVER};
    read_text(r, info->name, sizeof info->name);
    info->node.v = read_uint(r, UINT64_MAX);
    read_text(r, info->host, sizeof info->host);
    read_text(r, info->inbox_url, sizeof info->inbox_url);
    read_text(r, info->sub_url, sizeof info->sub_url);
    read_text(r, info->query_url, sizeof info->query_url);
    read_text(r, info->ghost_feed_url, sizeof info->ghost_feed_url);
    server->capacity = read_word(r);
    info->feed_count = (uint32_t)read_uint(r, NODE_FEEDS);
    for (uint32_t i = 0; i < info->feed_count; i++) read_text(r, info->feed_urls[i], sizeof info->feed_urls[i]);
}

enum terrane_error map_of_values(const struct value_list *values, struct writer *out)
{
    struct value_reader r = {.list = values};
    struct store_map m = {0};
    struct store_leaf leaf;
    struct store_server server;
    if (values->count > 0) read_head(&r, &m);
    if (r.error != TERRANE_ERR_OK) return r.error;
    m.whole = true;
    store_map_begin(out, &m);
    uint32_t leaves = values->count > 0 ? (uint32_t)read_uint(&r, LIMIT_LEAVES) : 0;
    store_list(out, leaves);
    for (uint32_t i = 0; i < leaves && r.error == TERRANE_ERR_OK; i++) {
        read_leaf(&r, &leaf);
        store_add_leaf(out, &leaf);
    }
    store_list(out, 0);
    uint32_t servers = values->count > 0 ? (uint32_t)read_uint(&r, LIMIT_NODES) : 0;
    store_list(out, servers);
    for (uint32_t i = 0; i < servers && r.error == TERRANE_ERR_OK; i++) {
        read_server(&r, &server);
        store_add_server(out, &server);
    }
    store_list(out, 0);
    if (r.error != TERRANE_ERR_OK) return r.error;
    if (r.at != values->count) return TERRANE_ERR_MESSAGE_TRAILING;
    return store_map_decode(out->data, out->size, &m);
}

enum terrane_error leader_of_values(const struct value_list *values, struct writer *out)
{
    struct value_reader r = {.list = values};
    struct store_leader m;
    m.node.v = read_uint(&r, UINT64_MAX);
    read_text(&r, m.name, sizeof m.name);
    read_text(&r, m.url, sizeof m.url);
    m.term = read_uint(&r, UINT64_MAX);
    m.rev = read_uint(&r, UINT64_MAX);
    if (r.error != TERRANE_ERR_OK) return r.error;
    if (r.at != values->count) return TERRANE_ERR_MESSAGE_TRAILING;
    store_leader_encode(out, &m);
    return store_leader_decode(out->data, out->size, &m);
}
