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

const char *member_name(const struct coordinator *c, struct node_id node)
{
    uint32_t index = node.v == 0 ? NONE : member_find(c, node);
    return index == NONE ? "" : c->members[index].info.name;
}

bool member_able(const struct coordinator *c, const struct member *m)
{
    if (m->state != MEMBER_ACTIVE || !member_is_server(m) || !m->proved || m->lapsed) return false;
    return m->back_us == 0 || c->now_us >= m->back_us + c->options.lease_us;
}

bool member_goes(const struct member *m)
{
    bool over = m->state == MEMBER_DEAD || (m->state == MEMBER_LEAVING && !m->released);
    return over && m->leaves + m->stands == 0;
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
    c->members[index] = (struct member){.state = state, .info = *info, .heard_us = c->now_us};
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
    *m = (struct member){.touched = touched};
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

void member_dead(struct coordinator *c, uint32_t index, const char *proof)
{
    struct member *m = &c->members[index];
    outbox_log(c->out, LOG_WARNING,
               "event=dead role=server name=\"%s\" node=%" PRIu64 " leaves=%u standby_leaves=%u reason=\"%s\"",
               m->info.name, m->info.node.v, m->leaves, m->stands, proof);
    m->state = MEMBER_DEAD;
    disconnect(c, m);
    member_needs_map(c, index, false);
    c->members_changed = true;
}

bool member_prove(struct coordinator *c, uint32_t index)
{
    struct member *m = &c->members[index];
    if (m->proved || m->state != MEMBER_ACTIVE) return true;
    uint32_t old = member_is_server(m) ? member_named(c, m->info.name) : NONE;
    if (old != NONE && name_taken(c, &c->members[old])) {
        /* Not its end: the link that was down when it was let in may be up again because it listens there now. */
        refuse(c, TERRANE_ERR_CONFIG, "packet under the name of a live server", m->info.node);
        return false;
    }
    if (old != NONE) member_dead(c, old, "a new incarnation has its name");
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
    /* If the store has lost writes, a leader before us may have had the term that we have: whom we have not welcomed
     * can't know it from us. (A gateway may, under a former node id.) */
    bool welcomed = index != NONE && c->members[index].state != MEMBER_EXPECTED;
    bool same = hello.term == c->term && !welcomed && hello.info.role == ROLE_CELLSERVER;
    if (error == TERRANE_ERR_OK && (hello.term > c->term || same) && !c->options.storeless) {
        lead_heard_term(c, same ? hello.term + 1 : hello.term);
        error = TERRANE_ERR_NOT_READY;
    }
    if (error == TERRANE_ERR_OK)
        error = index == NONE ? admit(c, &hello.info, &index, &what) : readmit(c, &hello, index, &what);
    if (error != TERRANE_ERR_OK) {
        refuse(c, error, what, from);
        if (error == TERRANE_ERR_CLOSED) farewell_say(c, &hello.info);
        return;
    }
    struct member *m = &c->members[index];
    m->capacity = hello.capacity;
    member_heard(c, index);
    if (m->session == NULL) connect_member(c, index);
    send_welcome(c, index);
}

void member_heard(struct coordinator *c, uint32_t index)
{
    struct member *m = &c->members[index];
    m->heard_us = c->now_us;
    if (!m->silent && !m->lapsed) return;
    if (m->lapsed) m->back_us = c->now_us;
    m->silent = m->lapsed = false;
    c->members_changed = true;
    outbox_log(c->out, LOG_INFO, "event=heard_again role=%s name=\"%s\" node=%" PRIu64 " leaves=%u", role_name(m),
               m->info.name, m->info.node.v, m->leaves);
}

void member_leave(struct coordinator *c, uint32_t index)
{
    struct member *m = &c->members[index];
    m->state = MEMBER_LEAVING;
    m->leaving_us = c->now_us;
    c->due_us = c->now_us;
    member_needs_map(c, index, false);
    outbox_log(c->out, LOG_INFO, "event=left role=%s name=\"%s\" node=%" PRIu64, role_name(m), m->info.name,
               m->info.node.v);
    if (member_is_server(m)) { /* the store comes first */
        c->members_changed = true;
        return;
    }
    m->released = true;
    if (m->listed) map_gone(c, m->info.node);
    m->listed = false;
}

void member_drain(struct coordinator *c, uint32_t index, const char *why)
{
    struct member *m = &c->members[index];
    if (m->draining) return;
    m->draining = true;
    c->members_changed = true;
    outbox_log(c->out, LOG_INFO,
               "event=draining name=\"%s\" node=%" PRIu64 " leaves=%u standby_leaves=%u reason=\"%s\"", m->info.name,
               m->info.node.v, m->leaves, m->stands, why);
}

/* A server that says so is emptied first, and goes on until the map names it nowhere. Without standbys nobody could
 * take anything over: then it is as good as dead. */
void member_bye(struct coordinator *c, uint32_t index)
{
    struct member *m = &c->members[index];
    if (m->state != MEMBER_ACTIVE && m->state != MEMBER_EXPECTED) return;
    if (!member_is_server(m) || c->options.no_standbys) {
        member_leave(c, index);
        return;
    }
    member_drain(c, index, "it says BYE");
    m->bye = true;
    c->members_changed = true;
}

uint64_t lapse_margin_us(const struct coordinator *c)
{
    uint64_t fifth_us = c->options.lease_us / 5;
    return fifth_us > MARGIN_MIN_US ? fifth_us : MARGIN_MIN_US;
}

static void member_lapse(struct coordinator *c, uint32_t index)
{
    struct member *m = &c->members[index];
    m->lapsed = true;
    m->withheld_us = 0;
    c->members_changed = true;
    outbox_log(c->out, LOG_WARNING,
               "event=lapsed role=server name=\"%s\" node=%" PRIu64 " quiet_ms=%" PRIu64
               " leaves=%u standby_leaves=%u reason=\"not heard for a lease of %" PRIu64 " ms and the margin\"",
               m->info.name, m->info.node.v, (c->now_us - m->heard_us) / 1000, m->leaves, m->stands,
               c->options.lease_us / 1000);
    if (m->bye) member_dead(c, index, "it said BYE and is heard no more");
}

static void member_silence(struct coordinator *c, struct member *m)
{
    m->silent = true;
    outbox_log(c->out, LOG_WARNING, "event=silent role=%s name=\"%s\" node=%" PRIu64 " quiet_ms=%" PRIu64 " leaves=%u",
               role_name(m), m->info.name, m->info.node.v, (c->now_us - m->heard_us) / 1000, m->leaves);
}

static void due_at(struct coordinator *c, uint64_t due_us)
{
    if (due_us < c->due_us) c->due_us = due_us;
}

/* Lapse, then silence, then departure: what is next is noted in due_us. */
static void member_quiet(struct coordinator *c, uint32_t index)
{
    struct member *m = &c->members[index];
    uint64_t lapse_us = m->heard_us + c->options.lease_us + lapse_margin_us(c);
    uint64_t silence_us = m->heard_us + c->options.silence_us, gone_us = m->heard_us + GONE_US;
    if (member_is_server(m) && !m->lapsed) {
        if (c->now_us >= lapse_us)
            member_lapse(c, index);
        else
            due_at(c, lapse_us);
        if (m->state == MEMBER_DEAD) return;
    }
    if (!m->silent && c->now_us > silence_us) member_silence(c, m);
    if (!m->silent) due_at(c, silence_us + 1);
    if (c->now_us <= gone_us) {
        due_at(c, gone_us + 1);
        return;
    }
    bool held = m->leaves + m->stands > 0 || m->saving != MEMBER_FREE || (member_is_server(m) && !c->ready);
    if (held) {
        due_at(c, c->now_us + c->options.silence_us);
        return;
    }
    member_leave(c, index);
    if (!member_is_server(m)) member_free(c, index);
}

static void member_check(struct coordinator *c, uint32_t index)
{
    struct member *m = &c->members[index];
    if (m->session != NULL && session_deadline_us(m->session) <= c->now_us) member_touch(c, index);
    bool there = m->state == MEMBER_ACTIVE || m->state == MEMBER_EXPECTED;
    if (there && lead_is_fresh(c)) member_quiet(c, index);
    if (m->state != MEMBER_LEAVING) return;
    if (m->released && c->now_us >= m->leaving_us + LINGER_US)
        member_free(c, index);
    else
        due_at(c, m->released ? m->leaving_us + LINGER_US : c->now_us + LINGER_US);
}

void members_check(struct coordinator *c)
{
    if (c->now_us < c->due_us) return;
    c->due_us = UINT64_MAX;
    for (uint32_t i = 0; i < c->member_count; i++) {
        if (c->members[i].state != MEMBER_FREE) member_check(c, i);
    }
    for (uint32_t i = 0; i < c->member_count; i++) {
        const struct member *m = &c->members[i];
        if (m->session != NULL && !m->touched) due_at(c, session_deadline_us(m->session));
    }
}

void members_shift(struct coordinator *c, uint64_t span_us)
{
    for (uint32_t i = 0; i < c->member_count; i++) c->members[i].heard_us += span_us;
}

/* As if all had been heard just now. */
void members_listen_anew(struct coordinator *c)
{
    for (uint32_t i = 0; i < c->member_count; i++) {
        if (c->members[i].heard_us < c->now_us) c->members[i].heard_us = c->now_us;
    }
    c->due_us = c->now_us;
    c->members_changed = true;
}

void members_forget(struct coordinator *c)
{
    for (uint32_t i = 0; i < c->member_count; i++) {
        if (c->members[i].state != MEMBER_FREE) member_free(c, i);
    }
    c->ended_count = c->ended_next = 0;
    table_clear(&c->ended_index);
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
