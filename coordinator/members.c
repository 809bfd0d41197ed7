#include "coordinator/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool member_is_server(const struct member *m)
{
    return m->info.role == ROLE_CELLSERVER;
}

bool member_to_save(const struct member *m)
{
    bool there = m->state == MEMBER_EXPECTED || (m->state == MEMBER_ACTIVE && m->proved);
    return there && member_is_server(m) && !m->saved;
}

static const char *role_name(const struct member *m)
{
    return member_is_server(m) ? "server" : "gateway";
}

uint32_t member_find(const struct coordinator *c, struct node_id node)
{
    return table_get(&c->member_index, node.v);
}

uint32_t member_named(const struct coordinator *c, const char *name)
{
    for (uint32_t i = 0; i < c->member_count; i++) {
        const struct member *m = &c->members[i];
        bool there = m->state == MEMBER_EXPECTED || (m->state == MEMBER_ACTIVE && m->proved);
        if (there && member_is_server(m) && strcmp(m->info.name, name) == 0) return i;
    }
    return NONE;
}

uint32_t member_new(struct coordinator *c, const struct node_info *info, enum member_state state)
{
    uint32_t index = c->member_free_from;
    while (index < c->member_count && c->members[index].state != MEMBER_FREE) index++;
    c->member_free_from = index + 1;
    if (index == c->member_count) {
        c->member_count++;
        ARRAY_RESERVE(c->members, c->member_room, c->member_count);
    }
    c->members[index] = (struct member){.state = state, .info = *info, .heard_us = c->now_us, .heir = NONE};
    table_put(&c->member_index, info->node.v, index);
    c->members_used++;
    if (info->role == ROLE_GATEWAY) c->gateways++;
    return index;
}

static void remember_ended(struct coordinator *c, struct node_id node)
{
    if (c->ended == NULL) {
        c->ended = calloc(ENDED_MAX, sizeof *c->ended);
        CHECK(c->ended != NULL);
    }
    if (c->ended_count == ENDED_MAX)
        table_remove(&c->ended_index, c->ended[c->ended_next].v);
    else
        c->ended_count++;
    c->ended[c->ended_next] = node;
    table_put(&c->ended_index, node.v, c->ended_next);
    c->ended_next = (c->ended_next + 1) % ENDED_MAX;
}

static void disconnect(struct coordinator *c, struct member *m)
{
    if (m->session == NULL) return;
    session_close(m->session);
    m->session = NULL;
    outbox_push(c->out, (struct output){.kind = OUTPUT_UNLINK, .node = m->info.node}, NULL, 0);
}

void member_free(struct coordinator *c, uint32_t index)
{
    struct member *m = &c->members[index];
    disconnect(c, m);
    member_needs_map(c, index, false);
    table_remove(&c->member_index, m->info.node.v);
    remember_ended(c, m->info.node);
    c->members_used--;
    if (index < c->member_free_from) c->member_free_from = index;
    if (m->info.role == ROLE_GATEWAY) c->gateways--;
    bool touched = m->touched;
    *m = (struct member){.touched = touched, .heir = NONE};
}

void member_touch(struct coordinator *c, uint32_t index)
{
    if (c->members[index].touched) return;
    c->members[index].touched = true;
    ARRAY_RESERVE(c->touched, c->touched_room, (size_t)c->touched_count + 1);
    c->touched[c->touched_count++] = index;
}

void refuse(struct coordinator *c, enum terrane_error error, const char *what, struct node_id from)
{
    c->stats.refused++;
    c->refused[(uint32_t)error % ERRORS_MAX]++;
    if (error == TERRANE_ERR_NOT_READY) return;
    if (c->now_us - c->log_window_us >= LOG_EVERY_US) {
        c->log_window_us = c->now_us;
        c->log_count = 0;
    }
    if (c->log_count >= LOG_REFUSED) return;
    c->log_count++;
    outbox_log(c->out, LOG_WARNING, "event=refused what=\"%s\" error=%s from=%" PRIu64, what, terrane_error_name(error),
               from.v);
}

/* What the shells could not use and people could not read is not let in. */
static const char *info_fault(const struct coordinator *c, const struct node_info *info, struct node_id from)
{
    if (!node_id_equal(info->node, from)) return "hello names another node than its sender";
    bool alias = info->node.v < NODE_RESERVED || node_id_equal(info->node, c->options.info.node);
    if (alias) return "hello with a reserved node id";
    if (info->role == ROLE_COORDINATOR) return "hello of another coordinator";
    if (info->name[0] == '\0') return "hello without a name";
    if (info->inbox_url[0] == '\0' || strchr(info->inbox_url, ' ') != NULL) return "hello without a usable inbox url";
    return NULL;
}

/* An incumbent that is alive keeps its name: a second process started by mistake must not take its leaves. */
static bool name_taken(const struct coordinator *c, const struct member *m)
{
    if (m->state == MEMBER_EXPECTED) return c->now_us < c->settle_us;
    return !m->link_down && c->now_us - m->heard_us < NAME_TAKEN_US;
}

bool member_prove(struct coordinator *c, uint32_t index)
{
    struct member *m = &c->members[index];
    if (m->proved || m->state != MEMBER_ACTIVE) return true;
    uint32_t old = member_is_server(m) ? member_named(c, m->info.name) : NONE;
    if (old != NONE && name_taken(c, &c->members[old])) {
        refuse(c, TERRANE_ERR_CONFIG, "hello under the name of a live server", m->info.node);
        member_free(c, index);
        return false;
    }
    if (old != NONE) {
        struct member *former = &c->members[old];
        outbox_log(c->out, LOG_WARNING,
                   "event=replaced role=server name=\"%s\" node=%" PRIu64 " by=%" PRIu64
                   " leaves=%u reason=\"a new incarnation; what the old one held is gone\"",
                   m->info.name, former->info.node.v, m->info.node.v, former->leaves);
        former->state = MEMBER_REPLACED;
        disconnect(c, former);
        member_needs_map(c, old, false);
    }
    m->proved = true;
    c->nodes_fresh = true;
    if (member_is_server(m)) c->members_changed = true;
    member_needs_map(c, index, true);
    return true;
}

static enum terrane_error admit(struct coordinator *c, const struct node_info *info, uint32_t *index, const char **what)
{
    uint32_t old = info->role == ROLE_CELLSERVER ? member_named(c, info->name) : NONE;
    *what = "hello of an incarnation that has left";
    if (table_get(&c->ended_index, info->node.v) != TABLE_NONE) return TERRANE_ERR_CLOSED;
    *what = "hello beyond the limit of nodes";
    bool full = c->members_used >= LIMIT_NODES || (info->role == ROLE_GATEWAY && c->gateways >= GATEWAYS_MAX);
    if (full) return TERRANE_ERR_LIMIT;
    *what = "hello under the name of a live server";
    if (old != NONE && name_taken(c, &c->members[old])) return TERRANE_ERR_CONFIG;
    *index = member_new(c, info, MEMBER_ACTIVE);
    return TERRANE_ERR_OK;
}

static bool info_equal(const struct node_info *a, const struct node_info *b)
{
    bool same = a->role == b->role && node_id_equal(a->node, b->node) && strcmp(a->name, b->name) == 0 &&
                strcmp(a->host, b->host) == 0 && strcmp(a->inbox_url, b->inbox_url) == 0 &&
                strcmp(a->sub_url, b->sub_url) == 0 && strcmp(a->query_url, b->query_url) == 0 &&
                strcmp(a->ghost_feed_url, b->ghost_feed_url) == 0 && a->feed_count == b->feed_count;
    for (uint32_t i = 0; same && i < a->feed_count; i++) same = strcmp(a->feed_urls[i], b->feed_urls[i]) == 0;
    return same;
}

/* A known incarnation says HELLO again: it has not got WELCOME, or it heard nothing for a while. */
static enum terrane_error readmit(struct coordinator *c, const struct hello *hello, uint32_t index, const char **what)
{
    struct member *m = &c->members[index];
    bool same = info_equal(&m->info, &hello->info);
    *what = "hello of an incarnation that has left";
    if (m->state != MEMBER_ACTIVE && m->state != MEMBER_EXPECTED) return TERRANE_ERR_CLOSED;
    *what = "hello of a known node under another name or urls";
    if (m->state == MEMBER_ACTIVE) return same ? TERRANE_ERR_OK : TERRANE_ERR_PEER_MISMATCH;
    if (m->info.role != hello->info.role || strcmp(m->info.name, hello->info.name) != 0)
        return TERRANE_ERR_PEER_MISMATCH;
    if (!same || m->capacity != hello->capacity) {
        m->info = hello->info;
        m->saved = false;
        m->fresh = true;
        c->nodes_fresh = true;
    }
    m->state = MEMBER_ACTIVE;
    m->proved = true; /* its name and leaves are its own since the former term */
    member_needs_map(c, index, true);
    return TERRANE_ERR_OK;
}

static void connect_member(struct coordinator *c, uint32_t index)
{
    struct member *m = &c->members[index];
    m->session = session_open(&(struct session_options){.self = c->options.info.node, .peer = m->info.node});
    outbox_push(c->out, (struct output){.kind = OUTPUT_LINK, .node = m->info.node}, m->info.inbox_url,
                strlen(m->info.inbox_url) + 1);
    outbox_log(c->out, LOG_INFO, "event=joined role=%s name=\"%s\" node=%" PRIu64 " inbox=\"%s\"", role_name(m),
               m->info.name, m->info.node.v, m->info.inbox_url);
    c->members_changed = true;
}

void member_hello(struct coordinator *c, struct node_id from, struct cursor message)
{
    struct hello hello;
    enum terrane_error error = hello_decode(message, &hello);
    const char *what = "hello";
    if (error == TERRANE_ERR_OK && (what = info_fault(c, &hello.info, from)) != NULL) error = TERRANE_ERR_MESSAGE_RANGE;
    uint32_t index = member_find(c, from);
    if (error == TERRANE_ERR_OK)
        error = index == NONE ? admit(c, &hello.info, &index, &what) : readmit(c, &hello, index, &what);
    if (error != TERRANE_ERR_OK) {
        refuse(c, error, what, from);
        return;
    }
    struct member *m = &c->members[index];
    m->heard_us = c->now_us;
    m->capacity = hello.capacity;
    if (m->session == NULL) connect_member(c, index);
    send_welcome(c, index);
}

void member_bye(struct coordinator *c, uint32_t index)
{
    struct member *m = &c->members[index];
    if (m->state != MEMBER_ACTIVE && m->state != MEMBER_EXPECTED) return;
    outbox_log(c->out, LOG_INFO, "event=left role=%s name=\"%s\" node=%" PRIu64 " leaves=%u", role_name(m),
               m->info.name, m->info.node.v, m->leaves);
    m->state = MEMBER_LEAVING;
    m->leaving_us = c->now_us;
    member_needs_map(c, index, false);
    if (member_is_server(m)) {
        c->members_changed = true;
        return;
    }
    m->released = true;
    if (m->listed) map_gone(c, m->info.node);
    m->listed = false;
}

static void member_check(struct coordinator *c, uint32_t index, uint64_t silence_us)
{
    struct member *m = &c->members[index];
    if (m->session != NULL && session_deadline_us(m->session) <= c->now_us) member_touch(c, index);
    if (m->state == MEMBER_LEAVING) {
        if (m->released && c->now_us - m->leaving_us >= LINGER_US) member_free(c, index);
        return;
    }
    if (m->state != MEMBER_ACTIVE && m->state != MEMBER_EXPECTED) return;
    uint64_t quiet_us = c->now_us > m->heard_us ? c->now_us - m->heard_us : 0;
    if (!m->silent && quiet_us > silence_us) {
        m->silent = true;
        outbox_log(c->out, LOG_WARNING,
                   "event=silent role=%s name=\"%s\" node=%" PRIu64 " quiet_ms=%" PRIu64 " leaves=%u", role_name(m),
                   m->info.name, m->info.node.v, quiet_us / 1000, m->leaves);
    }
    if (quiet_us > GONE_US && m->leaves == 0 && m->saving == MEMBER_FREE) {
        member_bye(c, index);
        if (m->info.role == ROLE_GATEWAY) member_free(c, index);
    }
}

void members_check(struct coordinator *c)
{
    if (c->now_us < c->due_us) return;
    uint64_t silence_us = c->options.silence_us;
    c->due_us = UINT64_MAX;
    for (uint32_t i = 0; i < c->member_count; i++) {
        if (c->members[i].state != MEMBER_FREE) member_check(c, i, silence_us);
    }
    if (c->members_used > 0) c->due_us = c->now_us + silence_us / 4 + 1;
    for (uint32_t i = 0; i < c->member_count; i++) {
        const struct member *m = &c->members[i];
        uint64_t due_us = m->session == NULL || m->touched ? UINT64_MAX : session_deadline_us(m->session);
        if (due_us < c->due_us) c->due_us = due_us;
    }
}

void members_shift(struct coordinator *c, uint64_t span_us)
{
    for (uint32_t i = 0; i < c->member_count; i++) c->members[i].heard_us += span_us;
}

void members_close(struct coordinator *c)
{
    for (uint32_t i = 0; i < c->member_count; i++) session_close(c->members[i].session);
    free(c->members);
    free(c->touched);
    free(c->ended);
    table_close(&c->member_index);
    table_close(&c->ended_index);
}
