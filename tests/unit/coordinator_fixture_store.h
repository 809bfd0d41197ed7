/* What coordinator_fixture.h stands on: its parts, the store, and the check of all that is told. */
#ifndef TERRANE_TESTS_UNIT_COORDINATOR_FIXTURE_STORE_H
#define TERRANE_TESTS_UNIT_COORDINATOR_FIXTURE_STORE_H

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
    bool unlevel;             /* it never gets level */
    bool over;                /* was told that its incarnation is over */
    bool frozen;              /* it does nothing */
    struct node_info info;
    uint32_t capacity;
    struct session *session, *greeter;
    struct node_id coordinator;
    struct welcome welcome;
    struct ownership map;
    uint64_t heard_us, hello_us, welcome_us, term; /* term: that it says in HELLO */
    uint64_t lease_us;                             /* until when its lease goes: from the stamps that were echoed */
    uint32_t welcomes, beats, asks, maps, stood;
    uint64_t checked_term, checked_rev;
    struct heartbeat beat;
    struct table level; /* leaf -> the epoch under which it is level */
};

/* A leaf as told under its highest epoch, and who has said that it stands by for it, level, under that epoch. */
struct history {
    struct leaf_owner owner;
    uint64_t level;
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
    bool slow;     /* getting level takes until the next lists */
    enum store_mood mood;
    bool asked, held_save; /* a store operation waits for its answer */
    bool deaf;             /* the store does not answer who leads */
    struct fixture *store; /* whose store it is; NULL: its own */
    struct store_leader leader;
    uint64_t leader_until_us, leads, given_back;
    bool lead_asked;
    uint64_t lead_token;
    struct writer lead_held;
    uint64_t stored_term, stored_rev, saves, loads, logs, warnings;
    struct node_id stored_leader;
    struct world stored_world;
    struct store_leaf *stored;
    uint32_t stored_count, stored_room;
    struct table stored_index;
    struct store_server servers[TESTERS_MAX];
    uint32_t server_count;
    struct history *history;
    struct table proved; /* nodes of whose end there is a proof */
    uint32_t history_count, history_room;
    struct table history_index;
    struct writer late;    /* a save of a former coordinator that reaches the store only now */
    struct ownership feed; /* an outside reader of map/ */
    uint64_t published;
};

static inline void fixture_step(struct fixture *f, struct event in);

/* ---- the store ---- */

static inline struct fixture *store_of(struct fixture *f)
{
    return f->store == NULL ? f : f->store;
}

/* As the script in io/store_values.c. */
static inline struct store_leader store_lead(struct fixture *asker, const uint8_t *bytes, size_t size)
{
    struct fixture *f = store_of(asker);
    struct store_lead m;
    ck_assert_int_eq(store_lead_decode(bytes, size, &m), TERRANE_ERR_OK);
    if (asker->now_us >= f->leader_until_us) f->leader = (struct store_leader){0};
    bool heir = strcmp(f->leader.name, m.name) == 0 && strcmp(f->leader.url, m.url) == 0;
    if (heir && !node_id_equal(f->leader.node, m.node)) f->leader = (struct store_leader){0};
    bool free = f->leader.node.v == 0, its = node_id_equal(f->leader.node, m.node);
    if ((free || its) && m.ttl_ms == 0) {
        f->given_back += its;
        f->leader = (struct store_leader){0};
    } else if (its || (free && (f->stored_term > 0 || m.even_empty))) {
        f->leader = (struct store_leader){.node = m.node};
        memcpy(f->leader.name, m.name, sizeof m.name);
        memcpy(f->leader.url, m.url, sizeof m.url);
        f->leader_until_us = asker->now_us + m.ttl_ms * MS;
    }
    struct store_leader answer = f->leader;
    answer.term = f->stored_term;
    answer.rev = f->stored_term == 0 ? 0 : f->stored_rev;
    return answer;
}

static inline enum terrane_error store_save(struct fixture *asker, const uint8_t *bytes, size_t size)
{
    struct fixture *f = store_of(asker);
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
                (old->epoch == leaf.owner.epoch && (!node_id_equal(old->primary, leaf.owner.primary) ||
                                                    !node_id_equal(old->standby, leaf.owner.standby)));
    }
    if (stale) return TERRANE_ERR_STORE_CONFLICT;
    f->stored_term = m.term;
    f->stored_rev = m.rev;
    f->stored_leader = m.leader;
    f->stored_world = m.world;
    if (m.whole) {
        f->stored_count = 0;
        table_clear(&f->stored_index);
    }
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

static inline void store_answer(struct fixture *asker, enum terrane_error error, bool save)
{
    struct fixture *f = store_of(asker);
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
    asker->asked = false;
    fixture_step(
        asker,
        (struct event){.kind = EVENT_STORED, .token = asker->token, .error = error, .bytes = w.data, .size = w.size});
    writer_close(&w);
}

/* Answers who leads; at once, unless the store is deaf: then it fails. */
static inline void store_release_lead(struct fixture *f)
{
    struct writer w = {0};
    struct event in = {.kind = EVENT_STORED, .token = f->lead_token, .error = TERRANE_ERR_STORE_UNAVAILABLE};
    if (!f->deaf) {
        struct store_leader leader = store_lead(f, f->lead_held.data, f->lead_held.size);
        store_leader_encode(&w, &leader);
        in.error = TERRANE_ERR_OK;
        in.bytes = w.data;
        in.size = w.size;
    }
    f->lead_asked = false;
    fixture_step(f, in);
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
    ck_assert_msg(!f->asked && !f->lead_asked, "two store operations at once");
    if (output->operation == STORE_LEAD) {
        f->leads++;
        f->lead_asked = true;
        f->lead_token = output->token;
        writer_clear(&f->lead_held);
        writer_raw(&f->lead_held, outbox_bytes(&f->out, output), output->size);
        return;
    }
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

/* The next that is told of a leaf after `was`. */
static inline void step_check(struct fixture *f, const struct history *was, const struct leaf_owner *leaf)
{
    bool moves = !node_id_equal(leaf->primary, was->owner.primary), next = leaf->epoch == was->owner.epoch + 1;
    HOLDS(moves || next ? (leaf->since > was->owner.since) == moves : leaf->since >= was->owner.since);
    if (moves) HOLDS(next ? leaf->since == leaf->epoch : leaf->since > was->owner.epoch);
    if (next && !moves) HOLDS(!node_id_equal(leaf->standby, was->owner.standby));
    if (!moves || !next || was->owner.primary.v == 0) return;
    bool promoted = node_id_equal(leaf->primary, was->owner.standby) && was->level == leaf->primary.v;
    HOLDS(promoted || table_get(&f->proved, was->owner.primary.v) != TABLE_NONE);
}

static inline void told_check(struct fixture *f, const struct ownership *map)
{
    for (uint32_t i = 0; i < map->now.leaf_count; i++) {
        const struct leaf_owner *leaf = &map->now.leaves[i];
        HOLDS(leaf->since <= leaf->epoch);
        HOLDS(leaf->standby.v == 0 || (leaf->primary.v != 0 && leaf->standby.v != leaf->primary.v));
        uint32_t at = table_get(&f->history_index, leaf->leaf.v);
        if (at == TABLE_NONE) {
            at = f->history_count++;
            ARRAY_RESERVE(f->history, f->history_room, f->history_count);
            f->history[at] = (struct history){.owner = *leaf};
            table_put(&f->history_index, leaf->leaf.v, at);
        }
        struct history *highest = &f->history[at];
        if (leaf->epoch == highest->owner.epoch)
            HOLDS(leaf->primary.v == highest->owner.primary.v && leaf->standby.v == highest->owner.standby.v &&
                  leaf->since == highest->owner.since);
        if (leaf->epoch > highest->owner.epoch) {
            step_check(f, highest, leaf);
            *highest = (struct history){.owner = *leaf};
        }
        const struct fixture *s = f->store == NULL ? f : f->store;
        if (f->options.storeless || s->stored_count == 0) continue; /* 0: somebody emptied it */
        at = table_get(&s->stored_index, leaf->leaf.v);
        HOLDS(at != TABLE_NONE);
        const struct leaf_owner *stored = &s->stored[at].owner;
        HOLDS(stored->epoch >= leaf->epoch);
        if (stored->epoch == leaf->epoch)
            HOLDS(stored->primary.v == leaf->primary.v && stored->standby.v == leaf->standby.v &&
                  stored->since == leaf->since);
    }
}

#endif
