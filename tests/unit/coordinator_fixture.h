/* A coordinator's core with hand-made members and a store in memory around it, for the tests of coordinator/.
 *
 * Members are sessions and a map, nothing more; they speak only when a test says so. The store fences as the real one
 * does. After every step each member's map is checked: what it was told had been stored, and no leaf ever had two
 * owners under one epoch. Include in one file of a program. */
#ifndef TERRANE_TESTS_UNIT_COORDINATOR_FIXTURE_H
#define TERRANE_TESTS_UNIT_COORDINATOR_FIXTURE_H

#include "common/array.h"
#include "common/table.h"
#include "coordinator/coordinator.h"
#include "proto/ownership.h"
#include "proto/session.h"
#include "proto/store.h"
#include "tests/unit/suite.h"

#include <stdio.h>
#include <string.h>

#define TESTERS_MAX 64u
#define MS          UINT64_C(1000)
/* libcheck writes to a file at each assertion that holds; the frequent ones speak only when they don't. */
#define HOLDS(condition) ((condition) ? (void)0 : ck_abort_msg("%s:%d: %s", __FILE__, __LINE__, #condition))

struct tester {
    bool used, welcomed, cut; /* cut: the network loses what it sends and gets */
    struct node_info info;
    uint32_t capacity;
    struct session *session, *greeter;
    struct node_id coordinator;
    struct welcome welcome;
    struct ownership map;
    uint64_t heard_us, hello_us, welcome_us;
    uint32_t welcomes, beats, asks, maps;
    struct heartbeat beat;
};

enum store_mood {
    MOOD_WELL,
    MOOD_HOLD, /* answers when the test says so */
    MOOD_DOWN, /* nothing is written */
    MOOD_MUTE, /* written, but the answer is lost */
};

struct fixture {
    struct coordinator *core;
    struct coordinator_options options;
    uint64_t now_us, token;
    struct outbox out;
    struct writer packet, message, reply, held;
    struct tester testers[TESTERS_MAX];
    uint32_t ups[TESTERS_MAX], up_count;
    bool no_links; /* links never stand */
    enum store_mood mood;
    bool asked, held_save; /* a store operation waits for its answer */
    uint64_t stored_term, stored_rev, saves, loads, logs, warnings;
    struct node_id stored_leader;
    struct world stored_world;
    struct store_leaf *stored;
    uint32_t stored_count, stored_room;
    struct table stored_index;
    struct store_server servers[TESTERS_MAX];
    uint32_t server_count;
    struct leaf_owner *history; /* highest epoch ever told of a leaf */
    uint32_t history_count, history_room;
    struct table history_index;
    struct writer late;    /* a save of a former coordinator that reaches the store only now */
    struct ownership feed; /* an outside reader of map/ */
    uint64_t published;
};

static inline void fixture_step(struct fixture *f, struct event in);

/* ---- the store ---- */

static inline enum terrane_error store_save(struct fixture *f, const uint8_t *bytes, size_t size)
{
    struct store_map m, again;
    struct store_leaf leaf;
    struct store_server server;
    char name[LIMIT_NAME];
    ck_assert_int_eq(store_map_decode(bytes, size, &m), TERRANE_ERR_OK);
    again = m;
    if (f->stored_term == 0 && !m.whole) return TERRANE_ERR_STORE_CONFLICT;
    bool stale = m.term < f->stored_term || (m.term == f->stored_term && !node_id_equal(m.leader, f->stored_leader));
    while (store_next_leaf(&again, &leaf)) {
        uint32_t at = table_get(&f->stored_index, leaf.owner.leaf.v);
        if (at == TABLE_NONE) continue;
        const struct leaf_owner *old = &f->stored[at].owner;
        stale = stale || old->epoch > leaf.owner.epoch ||
                (old->epoch == leaf.owner.epoch && !node_id_equal(old->primary, leaf.owner.primary));
    }
    if (stale) return TERRANE_ERR_STORE_CONFLICT;
    f->stored_term = m.term;
    f->stored_rev = m.rev;
    f->stored_leader = m.leader;
    f->stored_world = m.world;
    while (store_next_leaf(&m, &leaf)) {
        uint32_t at = table_get(&f->stored_index, leaf.owner.leaf.v);
        if (at == TABLE_NONE) {
            at = f->stored_count++;
            ARRAY_RESERVE(f->stored, f->stored_room, f->stored_count);
            table_put(&f->stored_index, leaf.owner.leaf.v, at);
        }
        f->stored[at] = leaf;
    }
    while (store_next_server(&m, &server)) {
        uint32_t at = 0;
        while (at < f->server_count && strcmp(f->servers[at].info.name, server.info.name) != 0) at++;
        if (at == f->server_count) f->server_count++;
        ck_assert_uint_le(f->server_count, TESTERS_MAX);
        f->servers[at] = server;
    }
    while (store_next_gone_server(&m, name)) {
        for (uint32_t at = 0; at < f->server_count; at++) {
            if (strcmp(f->servers[at].info.name, name) == 0) f->servers[at] = f->servers[--f->server_count];
        }
    }
    return TERRANE_ERR_OK;
}

static inline void store_answer(struct fixture *f, enum terrane_error error, bool save)
{
    struct writer w = {0};
    if (!save && error == TERRANE_ERR_OK) {
        store_map_begin(&w, &(struct store_map){.term = f->stored_term,
                                                .rev = f->stored_rev,
                                                .leader = f->stored_leader,
                                                .world = f->stored_world});
        store_list(&w, f->stored_count);
        for (uint32_t i = 0; i < f->stored_count; i++) store_add_leaf(&w, &f->stored[i]);
        store_list(&w, 0);
        store_list(&w, f->server_count);
        for (uint32_t i = 0; i < f->server_count; i++) store_add_server(&w, &f->servers[i]);
        store_list(&w, 0);
    }
    f->asked = false;
    fixture_step(
        f, (struct event){.kind = EVENT_STORED, .token = f->token, .error = error, .bytes = w.data, .size = w.size});
    writer_close(&w);
}

/* Answers the operation that waits, as the mood is now. */
static inline void store_release(struct fixture *f)
{
    ck_assert(f->asked);
    if (f->mood == MOOD_DOWN) {
        store_answer(f, TERRANE_ERR_STORE_UNAVAILABLE, f->held_save);
        return;
    }
    if (f->held_save && f->late.size > 0) {
        (void)store_save(f, f->late.data, f->late.size);
        writer_clear(&f->late);
    }
    enum terrane_error error = f->held_save ? store_save(f, f->held.data, f->held.size) : TERRANE_ERR_OK;
    if (f->mood == MOOD_MUTE) error = TERRANE_ERR_TIMED_OUT;
    store_answer(f, error, f->held_save);
}

static inline void store_asked(struct fixture *f, const struct output *output)
{
    ck_assert_msg(!f->asked, "two store operations at once");
    f->asked = true;
    f->token = output->token;
    f->held_save = output->operation == STORE_SAVE;
    writer_clear(&f->held);
    writer_raw(&f->held, outbox_bytes(&f->out, output), output->size);
    if (f->held_save)
        f->saves++;
    else
        f->loads++;
}

/* ---- what is told ---- */

static inline void told_check(struct fixture *f, const struct ownership *map)
{
    for (uint32_t i = 0; i < map->now.leaf_count; i++) {
        const struct leaf_owner *leaf = &map->now.leaves[i];
        uint32_t at = table_get(&f->history_index, leaf->leaf.v);
        if (at == TABLE_NONE) {
            at = f->history_count++;
            ARRAY_RESERVE(f->history, f->history_room, f->history_count);
            f->history[at] = *leaf;
            table_put(&f->history_index, leaf->leaf.v, at);
        }
        struct leaf_owner *highest = &f->history[at];
        if (leaf->epoch == highest->epoch) HOLDS(leaf->primary.v == highest->primary.v);
        if (leaf->epoch > highest->epoch) *highest = *leaf;
        if (f->options.storeless || f->stored_count == 0) continue; /* 0: somebody emptied it */
        at = table_get(&f->stored_index, leaf->leaf.v);
        HOLDS(at != TABLE_NONE);
        HOLDS(f->stored[at].owner.epoch >= leaf->epoch);
        if (f->stored[at].owner.epoch == leaf->epoch) HOLDS(f->stored[at].owner.primary.v == leaf->primary.v);
    }
}

static inline void tester_take(void *context, struct cursor message, bool sure)
{
    struct tester *t = context;
    enum message_kind kind;
    struct map map;
    (void)sure;
    HOLDS(message_kind_of(message, &kind) == TERRANE_ERR_OK);
    if (kind == MESSAGE_WELCOME) {
        HOLDS(welcome_decode(message, &t->welcome) == TERRANE_ERR_OK);
        t->welcomes++;
        t->welcomed = true;
    } else if (kind == MESSAGE_HEARTBEAT) {
        HOLDS(heartbeat_decode(message, &t->beat) == TERRANE_ERR_OK);
        t->beats++;
    } else {
        HOLDS(kind == MESSAGE_MAP);
        HOLDS(map_decode(message, &map) == TERRANE_ERR_OK);
        t->maps++;
        if (ownership_apply(&t->map, &map) == OWNERSHIP_ASK) t->asks++;
    }
}

static inline struct tester *tester_of(struct fixture *f, struct node_id node)
{
    for (uint32_t i = 0; i < TESTERS_MAX; i++) {
        if (f->testers[i].used && node_id_equal(f->testers[i].info.node, node)) return &f->testers[i];
    }
    return NULL;
}

static inline void tester_receive(struct fixture *f, struct tester *t, const uint8_t *bytes, size_t size)
{
    struct packet packet;
    uint64_t lost;
    HOLDS(packet_decode(bytes, size, &packet) == TERRANE_ERR_OK);
    HOLDS(packet.to.v == t->info.node.v);
    t->heard_us = f->now_us;
    if (t->session == NULL || !node_id_equal(packet.from, t->coordinator)) {
        session_close(t->session);
        t->coordinator = packet.from;
        t->session = session_open(&(struct session_options){.self = t->info.node, .peer = packet.from});
    }
    HOLDS(session_receive(t->session, f->now_us, &packet, tester_take, t, &lost) == TERRANE_ERR_OK);
    told_check(f, &t->map);
}

static inline void fixture_published(struct fixture *f, const uint8_t *bytes, size_t size)
{
    struct map map;
    ck_assert_uint_gt(size, 4);
    ck_assert_int_eq(memcmp(bytes, "map/", 4), 0);
    ck_assert_int_eq(map_decode(cursor_of(bytes + 4, size - 4), &map), TERRANE_ERR_OK);
    f->published++;
    ck_assert_int_ne(ownership_apply(&f->feed, &map), OWNERSHIP_ASK);
    told_check(f, &f->feed);
}

static inline void fixture_linked(struct fixture *f, const struct output *output)
{
    struct tester *t = tester_of(f, output->node);
    ck_assert_uint_gt(output->size, 1);
    if (t == NULL || f->no_links || t->cut) return;
    ck_assert_str_eq((const char *)outbox_bytes(&f->out, output), t->info.inbox_url);
    f->ups[f->up_count++] = (uint32_t)(t - f->testers);
}

static inline void fixture_output(struct fixture *f, const struct output *output)
{
    const uint8_t *bytes = outbox_bytes(&f->out, output);
    struct tester *t = tester_of(f, output->node);
    if (output->kind == OUTPUT_SEND && t != NULL && !t->cut && !f->no_links) tester_receive(f, t, bytes, output->size);
    if (output->kind == OUTPUT_LINK) fixture_linked(f, output);
    if (output->kind == OUTPUT_PUBLISH) fixture_published(f, bytes, output->size);
    if (output->kind == OUTPUT_STORE) store_asked(f, output);
    if (output->kind == OUTPUT_REPLY) {
        writer_clear(&f->reply);
        writer_raw(&f->reply, bytes, output->size);
    }
    if (output->kind == OUTPUT_LOG) {
        f->logs++;
        if (output->level >= LOG_WARNING) f->warnings++;
        if (getenv("TERRANE_TEST_LOG") != NULL)
            printf("%9llu %.*s\n", (unsigned long long)f->now_us, (int)output->size, bytes);
    }
}

static inline void fixture_step(struct fixture *f, struct event in)
{
    outbox_clear(&f->out);
    coordinator_step(f->core, &in, f->now_us, &f->out);
    for (size_t i = 0; i < f->out.count; i++) fixture_output(f, &f->out.items[i]);
    if (f->asked && f->mood != MOOD_HOLD) store_release(f);
    while (f->up_count > 0) {
        struct tester *t = &f->testers[f->ups[--f->up_count]];
        fixture_step(f, (struct event){.kind = EVENT_PEER_UP, .node = t->info.node});
    }
}

/* ---- running ---- */

static inline struct coordinator_options fixture_options(void)
{
    struct coordinator_options options = {.info = {.role = ROLE_COORDINATOR, .node = {900}, .name = "coordinator"},
                                          .world = world_default(),
                                          .split_depth = 2,
                                          .expect_servers = 1};
    return options;
}

static inline void fixture_start(struct fixture *f)
{
    ck_assert_int_eq(coordinator_open(&f->options, &f->core), TERRANE_ERR_OK);
    fixture_step(f, (struct event){.kind = EVENT_START});
}

static inline void fixture_open(struct fixture *f, const struct coordinator_options *options)
{
    *f = (struct fixture){.now_us = 1000 * MS, .options = *options};
    fixture_start(f);
}

static inline void tester_close(struct tester *t)
{
    session_close(t->session);
    session_close(t->greeter);
    ownership_close(&t->map);
    *t = (struct tester){0};
}

static inline void fixture_close(struct fixture *f)
{
    for (uint32_t i = 0; i < TESTERS_MAX; i++) tester_close(&f->testers[i]);
    coordinator_close(f->core);
    outbox_close(&f->out);
    ownership_close(&f->feed);
    writer_close(&f->packet);
    writer_close(&f->message);
    writer_close(&f->reply);
    writer_close(&f->held);
    writer_close(&f->late);
    free(f->stored);
    free(f->history);
    table_close(&f->stored_index);
    table_close(&f->history_index);
}

/* The process ends and another takes its place, over the same store. What it was saving arrives after the other has
 * loaded. */
static inline void fixture_restart(struct fixture *f)
{
    coordinator_close(f->core);
    writer_clear(&f->late);
    if (f->asked && f->held_save) writer_raw(&f->late, f->held.data, f->held.size);
    f->options.info.node.v++;
    f->asked = false;
    fixture_start(f);
}

static inline struct tester *tester_new(struct fixture *f, enum node_role role, const char *name, uint64_t node)
{
    for (uint32_t i = 0; i < TESTERS_MAX; i++) {
        struct tester *t = &f->testers[i];
        if (t->used) continue;
        *t = (struct tester){.used = true, .capacity = 100};
        t->info.role = role;
        t->info.node.v = node;
        snprintf(t->info.name, sizeof t->info.name, "%s", name);
        snprintf(t->info.host, sizeof t->info.host, "host");
        snprintf(t->info.inbox_url, sizeof t->info.inbox_url, "tcp://127.0.0.1:%u", (unsigned)(node % 60000));
        if (role == ROLE_CELLSERVER) {
            t->info.feed_count = 2;
            for (uint32_t feed = 0; feed < 2; feed++)
                snprintf(t->info.feed_urls[feed], LIMIT_URL, "tcp://127.0.0.1:%u", (unsigned)(node % 60000 + 1 + feed));
        }
        return t;
    }
    ck_abort_msg("too many testers");
    return NULL;
}

static inline void tester_flush(struct fixture *f, struct tester *t, struct session *session)
{
    while (session != NULL && session_fill(session, f->now_us, &f->packet)) {
        if (t->cut) continue;
        fixture_step(
            f,
            (struct event){.kind = EVENT_MESSAGE, .lane = LANE_INBOX, .bytes = f->packet.data, .size = f->packet.size});
    }
}

static inline void tester_hello(struct fixture *f, struct tester *t)
{
    if (t->greeter == NULL) t->greeter = session_open(&(struct session_options){.self = t->info.node});
    writer_clear(&f->message);
    hello_encode(&f->message, &(struct hello){.info = t->info, .capacity = t->capacity});
    ck_assert_int_eq(session_push_fast(t->greeter, f->message.data, f->message.size), TERRANE_ERR_OK);
    tester_flush(f, t, t->greeter);
}

/* Says `owned` entities for each leaf of its map that it owns. */
static inline void tester_beat(struct fixture *f, struct tester *t, uint32_t owned)
{
    struct heartbeat beat = {.term = t->map.term, .rev = t->map.rev, .tick = 7, .ghosts = 3};
    if (t->session == NULL) return;
    for (uint32_t pass = 0; pass < 2; pass++) {
        writer_clear(&f->message);
        heartbeat_begin(&f->message, &beat);
        for (uint32_t i = 0; i < t->map.now.leaf_count; i++) {
            const struct leaf_owner *leaf = &t->map.now.leaves[i];
            if (!node_id_equal(leaf->primary, t->info.node)) continue;
            if (pass == 0)
                beat.count++;
            else
                heartbeat_add(&f->message, &(struct leaf_load){leaf->leaf, leaf->epoch, owned});
        }
        heartbeat_stands(&f->message, 0);
    }
    ck_assert_int_eq(session_push_fast(t->session, f->message.data, f->message.size), TERRANE_ERR_OK);
    tester_flush(f, t, t->session);
}

/* A heartbeat without lists. */
static inline void heartbeat_bare(struct writer *w, const struct heartbeat *m)
{
    heartbeat_begin(w, m);
    heartbeat_stands(w, 0);
}

static inline void tester_bye(struct fixture *f, struct tester *t)
{
    writer_clear(&f->message);
    bye_encode(&f->message);
    ck_assert_int_eq(session_push(t->session, f->message.data, f->message.size), TERRANE_ERR_OK);
    tester_flush(f, t, t->session);
}

static inline struct tester *tester_join(struct fixture *f, enum node_role role, const char *name, uint64_t node)
{
    struct tester *t = tester_new(f, role, name, node);
    tester_hello(f, t);
    return t;
}

/* Time passes; deadlines are served, and who is connected beats every 250 ms. */
static inline void fixture_run(struct fixture *f, uint64_t span_us)
{
    uint64_t until_us = f->now_us + span_us;
    while (f->now_us < until_us) {
        uint64_t left_us = until_us - f->now_us;
        f->now_us += left_us < 50 * MS ? left_us : 50 * MS;
        for (uint32_t i = 0; i < TESTERS_MAX; i++) {
            struct tester *t = &f->testers[i];
            if (!t->used || t->cut) continue;
            tester_flush(f, t, t->session);
            if (f->now_us / (250 * MS) != (f->now_us - 50 * MS) / (250 * MS)) tester_beat(f, t, 5);
        }
        if (coordinator_deadline_us(f->core) <= f->now_us) fixture_step(f, (struct event){.kind = EVENT_TIMEOUT});
    }
}

static inline uint32_t leaves_of(const struct fixture *f, const struct ownership *map, const struct tester *t)
{
    uint32_t count = 0;
    (void)f;
    for (uint32_t i = 0; i < map->now.leaf_count; i++) count += node_id_equal(map->now.leaves[i].primary, t->info.node);
    return count;
}

/* The leaf of that place in quadkey order, as the member knows it. */
static inline struct leaf_owner tester_leaf(const struct tester *t, uint32_t index)
{
    ck_assert_uint_lt(index, t->map.now.leaf_count);
    return t->map.now.leaves[index];
}

static inline struct coordinator_stats fixture_stats(const struct fixture *f)
{
    struct coordinator_stats stats;
    coordinator_stats(f->core, &stats);
    return stats;
}

#endif
