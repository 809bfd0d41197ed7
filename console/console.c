/* Nothing happens here by itself: a request wants something, and what is due of it is asked; answers come later and are
 * there for the next request. So nobody is asked anything when nobody looks, and no request waits for a server. */
#include "console/internal.h"

#include "common/array.h"
#include "common/check.h"
#include "console/members.h"
#include "io/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What an answer is to: a kind, the place in its table, and that place's generation. */
enum wanted { WANTED_STATUS, WANTED_LOOK, WANTED_ENTITY, WANTED_LEADER };

static uint64_t tag_of(enum wanted wanted, size_t place, uint32_t generation)
{
    return (uint64_t)wanted << 56 | (uint64_t)place << 32 | generation;
}

uint64_t console_wall_ms(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

/* Servers */

struct server *console_server(struct console *c, struct node_id node)
{
    for (uint32_t i = 0; i < c->server_count; i++)
        if (node_id_equal(c->servers[i].node, node)) return &c->servers[i];
    return NULL;
}

static void met(void *context, const struct node_info *info)
{
    struct console *c = context;
    struct server *s = console_server(c, info->node);
    if (s == NULL) {
        ARRAY_RESERVE(c->servers, c->server_room, (size_t)c->server_count + 1);
        s = &c->servers[c->server_count++];
        struct writer kept = s->status; /* of one that has gone: its buffer is used again */
        writer_clear(&kept);
        *s = (struct server){.node = info->node, .status = kept};
        snprintf(s->name, sizeof s->name, "%s", info->name);
        snprintf(s->url, sizeof s->url, "%s", info->query_url);
    }
    s->here = true;
}

static void forget(struct console *c, uint32_t index)
{
    struct server gone = c->servers[index];
    asker_forget(c->asker, gone.node);
    for (uint32_t i = 0; i < LOOKS_MAX; i++) look_forget(&c->looks[i], gone.node);
    for (uint32_t i = 0; i < FINDS_MAX; i++)
        if (node_id_equal(c->finds[i].owner, gone.node)) c->finds[i].owner = NODE_NONE;
    c->servers[index] = c->servers[--c->server_count];
    c->servers[c->server_count] = gone;
}

void console_meet(struct console *c, uint64_t now_us)
{
    for (uint32_t i = 0; i < c->server_count; i++) c->servers[i].here = false;
    coordinator_servers(c->options.coordinator, met, c);
    for (uint32_t i = c->server_count; i-- > 0;)
        if (!c->servers[i].here) forget(c, i);
    for (uint32_t i = 0; i < LOOKS_MAX; i++)
        if (now_us - c->looks[i].wanted_us > UNWANTED_US) c->looks[i].wanted_us = 0;
    for (uint32_t i = 0; i < FINDS_MAX; i++)
        if (now_us - c->finds[i].wanted_us > UNWANTED_US) c->finds[i].wanted_us = 0;
}

/* A server without a query socket has no url, and none is asked. */
static bool ask(struct console *c, const struct server *s, uint64_t tag)
{
    return s->url[0] != '\0' && asker_ask(c->asker, s->node, s->url, tag, c->question.data, c->question.size);
}

void console_want_status(struct console *c, uint64_t now_us)
{
    writer_clear(&c->question);
    status_request_encode(&c->question);
    for (uint32_t i = 0; i < c->server_count; i++) {
        struct server *s = &c->servers[i];
        if (s->asked_us != 0 && now_us - s->asked_us < STATUS_EVERY_US) continue;
        if (ask(c, s, tag_of(WANTED_STATUS, 0, 0))) s->asked_us = now_us;
    }
}

static void heard_status(struct console *c, struct server *s, const uint8_t *bytes, size_t size)
{
    static const char *const long_lists[] = {"regions", "standbys", NULL};
    struct status status;
    if (status_decode(cursor_of(bytes, size), &status) != TERRANE_ERR_OK) return;
    writer_clear(&s->status);
    json_without(&s->status, status.json, status.size, long_lists);
    s->heard_us = loop_now_us();
    (void)c;
}

/* Rectangles */

static struct look *place_for_look(struct console *c)
{
    struct look *oldest = &c->looks[0];
    for (uint32_t i = 1; i < LOOKS_MAX; i++)
        if (c->looks[i].wanted_us < oldest->wanted_us) oldest = &c->looks[i];
    return oldest;
}

static void survey(struct console *c, struct look *l, uint64_t now_us)
{
    uint32_t looks = 0;
    for (uint32_t i = 0; i < LOOKS_MAX; i++) looks += c->looks[i].wanted_us != 0;
    for (uint32_t i = 0; i < c->server_count; i++) {
        struct server *s = &c->servers[i];
        struct look_share *share = look_share(l, s->node);
        if (share->asked_us != 0 && now_us - share->asked_us < LOOK_EVERY_US * looks) continue;
        struct survey question = l->survey;
        question.after = s->crossings;
        writer_clear(&c->question);
        survey_encode(&c->question, &question);
        if (ask(c, s, tag_of(WANTED_LOOK, (size_t)(l - c->looks), l->generation))) share->asked_us = now_us;
    }
}

struct look *console_want_look(struct console *c, const struct survey *wanted, uint64_t now_us)
{
    struct look *look = NULL;
    for (uint32_t i = 0; i < LOOKS_MAX && look == NULL; i++)
        if (look_is(&c->looks[i], wanted)) look = &c->looks[i];
    if (look == NULL) {
        look = place_for_look(c);
        look_reset(look, wanted);
    }
    look->wanted_us = now_us;
    survey(c, look, now_us);
    return look;
}

/* A server remembers its latest hand-offs: those from before it was first asked are no news. */
static void heard_crossings(struct console *c, struct server *s, struct survey_result *r)
{
    struct survey_crossing crossing;
    uint64_t at_ms = console_wall_ms(), known = r->crossings - r->crossing_count;
    for (uint64_t n = known + 1; survey_result_next_crossing(r, &crossing); n++)
        if (s->introduced && n > s->crossings) journal_note_crossing(&c->journal, at_ms, s->node, &crossing);
    s->introduced = true;
    s->crossings = r->crossings;
}

static void heard_look(struct console *c, struct server *s, uint32_t place, uint32_t generation, const uint8_t *bytes,
                       size_t size)
{
    struct survey_result r;
    struct look *l = &c->looks[place];
    if (l->generation != generation || l->wanted_us == 0) return;
    if (look_answer(l, s->node, loop_now_us(), bytes, size, &r) == TERRANE_ERR_OK) heard_crossings(c, s, &r);
}

/* Entities */

static void ask_where(struct console *c, struct find *f, struct server *s)
{
    writer_clear(&c->question);
    lookup_encode(&c->question, &(struct lookup){.request = f->generation, .id = f->id});
    if (ask(c, s, tag_of(WANTED_ENTITY, (size_t)(f - c->finds), f->generation))) f->asked++;
}

static void ask_all(struct console *c, struct find *f, uint64_t now_us)
{
    f->asked = f->denied = 0;
    f->round_us = now_us;
    for (uint32_t i = 0; i < c->server_count; i++) ask_where(c, f, &c->servers[i]);
}

static void seek(struct console *c, struct find *f, uint64_t now_us)
{
    struct server *owner = f->owner.v == 0 ? NULL : console_server(c, f->owner);
    if (owner == NULL) {
        if (f->round_us == 0 || now_us - f->round_us >= ROUND_EVERY_US) ask_all(c, f, now_us);
    } else if (now_us - f->asked_us >= FIND_EVERY_US) {
        f->asked_us = now_us;
        ask_where(c, f, owner);
    }
}

struct find *console_want_entity(struct console *c, struct entity_id id, uint64_t now_us)
{
    struct find *f = NULL, *oldest = &c->finds[0];
    for (uint32_t i = 0; i < FINDS_MAX && f == NULL; i++) {
        if (c->finds[i].wanted_us != 0 && entity_id_equal(c->finds[i].id, id)) f = &c->finds[i];
        if (c->finds[i].wanted_us < oldest->wanted_us) oldest = &c->finds[i];
    }
    if (f == NULL) {
        f = oldest;
        *f = (struct find){.id = id, .generation = f->generation + 1};
    }
    f->wanted_us = now_us;
    seek(c, f, now_us);
    return f;
}

/* Its owner has it no more: it has gone on, so everybody is asked at once. */
static void heard_entity(struct console *c, struct server *s, uint32_t place, uint32_t generation, const uint8_t *bytes,
                         size_t size)
{
    struct find *f = &c->finds[place];
    struct lookup_result r;
    if (f->generation != generation || lookup_result_decode(cursor_of(bytes, size), &r) != TERRANE_ERR_OK) return;
    if (r.error == TERRANE_ERR_OK && r.version >= f->version) {
        f->owner = s->node;
        f->version = r.version;
        f->heard_us = loop_now_us();
        f->leaf = r.leaf;
        f->position = r.position;
    } else if (r.error == TERRANE_ERR_ENTITY_UNKNOWN && node_id_equal(f->owner, s->node)) {
        f->owner = NODE_NONE;
        ask_all(c, f, loop_now_us());
    } else if (r.error == TERRANE_ERR_ENTITY_UNKNOWN) {
        f->denied++;
    }
}

/* Where the leader's console is: a coordinator says so in its STATUS. Its query socket is asked at the port behind its
 * inbox, as tools do. */
void console_want_leader(struct console *c, uint64_t now_us)
{
    struct node_id leader;
    char inbox[LIMIT_URL], query[LIMIT_URL];
    if (!coordinator_leader(c->options.coordinator, &leader, inbox)) leader = NODE_NONE;
    if (!node_id_equal(leader, c->leader)) {
        if (c->leader.v != 0) asker_forget(c->asker, c->leader);
        c->leader = leader;
        c->leader_http[0] = '\0';
        c->leader_asked_us = 0;
    }
    const char *colon = strrchr(inbox, ':');
    if (leader.v == 0 || colon == NULL || (c->leader_asked_us != 0 && now_us - c->leader_asked_us < STATUS_EVERY_US))
        return;
    int size = snprintf(query, sizeof query, "%.*s:%lu", (int)(colon - inbox), inbox, strtoul(colon + 1, NULL, 10) + 1);
    if (size <= 0 || (size_t)size >= sizeof query) return;
    writer_clear(&c->question);
    status_request_encode(&c->question);
    if (asker_ask(c->asker, leader, query, tag_of(WANTED_LEADER, 0, 0), c->question.data, c->question.size))
        c->leader_asked_us = now_us;
}

static void heard_leader(struct console *c, struct node_id node, const uint8_t *bytes, size_t size)
{
    struct status status;
    if (!node_id_equal(node, c->leader) || status_decode(cursor_of(bytes, size), &status) != TERRANE_ERR_OK) return;
    if (!json_member_text(status.json, status.size, "http", c->leader_http, sizeof c->leader_http))
        c->leader_http[0] = '\0';
}

/* Answers; what is no answer of the right kind (a FAULT of one that is not ready) is none. */
static void heard(void *context, struct node_id node, uint64_t tag, const uint8_t *bytes, size_t size)
{
    struct console *c = context;
    enum wanted wanted = (enum wanted)(tag >> 56);
    uint32_t place = (uint32_t)(tag >> 32) & 0xffffff, generation = (uint32_t)tag;
    if (wanted == WANTED_LEADER) {
        heard_leader(c, node, bytes, size);
        return;
    }
    struct server *s = console_server(c, node);
    if (s == NULL) return;
    if (wanted == WANTED_STATUS) heard_status(c, s, bytes, size);
    if (wanted == WANTED_LOOK) heard_look(c, s, place, generation, bytes, size);
    if (wanted == WANTED_ENTITY) heard_entity(c, s, place, generation, bytes, size);
}

void console_note(struct console *c, enum log_level level, const char *line, size_t size)
{
    if (level >= LOG_INFO) journal_note(&c->journal, console_wall_ms(), level, line, size);
}

static void send_file(void *context, const struct http_request *request, struct http_answer *out)
{
    const struct page *page = context;
    (void)request;
    out->type = page->file->type;
    out->header = "Content-Security-Policy";
    out->value = page->console->policy;
    out->page = page->file->bytes;
    out->page_size = page->file->size;
}

enum terrane_error console_open(const struct console_options *options, struct console **out)
{
    *out = NULL;
    struct console *c = calloc(1, sizeof *c);
    if (c == NULL) return TERRANE_ERR_MEMORY;
    c->options = *options;
    c->started_ms = console_wall_ms();
    if (asker_open(options->loop, heard, c, &c->asker) != TERRANE_ERR_OK) {
        free(c);
        return TERRANE_ERR_MEMORY;
    }
    http_route(options->http, &(struct http_route){.path = "/api/", .handle = console_api, .context = c});
    consoles_policy(&options->consoles, c->policy);
    for (uint32_t i = 0; console_files[i].path != NULL; i++) {
        CHECK(i < PAGES_MAX);
        c->pages[i] = (struct page){.console = c, .file = &console_files[i]};
        http_route(options->http,
                   &(struct http_route){.path = console_files[i].path, .handle = send_file, .context = &c->pages[i]});
    }
    *out = c;
    return TERRANE_ERR_OK;
}
