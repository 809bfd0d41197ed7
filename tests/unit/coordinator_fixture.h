/* A coordinator's core with hand-made members and a store in memory around it, for the tests of coordinator/.
 *
 * Members are sessions and a map, nothing more; they speak only when a test says so. The store fences as the real one
 * does. A member that stands by for a leaf is level as soon as it and the primary know of it, and says so with its next
 * lists. After every step each member's map is checked: what it was told had been stored, epochs only rise, and a leaf
 * changes hands only to a level standby or after proof of death. Include in one file of a program. */
#ifndef TERRANE_TESTS_UNIT_COORDINATOR_FIXTURE_H
#define TERRANE_TESTS_UNIT_COORDINATOR_FIXTURE_H

#include "tests/unit/coordinator_fixture_store.h"

static inline void tester_take(void *context, struct cursor message, bool sure)
{
    struct tester *t = context;
    enum message_kind kind;
    struct map map;
    HOLDS(message_kind_of(message, &kind) == TERRANE_ERR_OK);
    if (kind == MESSAGE_WELCOME) {
        HOLDS(welcome_decode(message, &t->welcome) == TERRANE_ERR_OK);
        t->welcomes++;
        t->welcomed = true;
    } else if (kind == MESSAGE_HEARTBEAT) {
        HOLDS(heartbeat_decode(message, &t->beat) == TERRANE_ERR_OK);
        if (t->beat.echo != 0 && t->beat.echo + t->welcome.lease_us > t->lease_us)
            t->lease_us = t->beat.echo + t->welcome.lease_us;
        t->beats++;
    } else if (kind == MESSAGE_BYE) {
        HOLDS(!sure && bye_decode(message) == TERRANE_ERR_OK);
        t->over = true;
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
    if (t->map.term == t->checked_term && t->map.rev == t->checked_rev) return;
    t->checked_term = t->map.term;
    t->checked_rev = t->map.rev;
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
    if (f->lead_asked) store_release_lead(f);
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
                                          .expect_servers = 1,
                                          .no_standbys = true};
    return options;
}

/* With standbys, for so many servers. */
static inline struct coordinator_options fixture_protected(uint32_t servers)
{
    struct coordinator_options options = fixture_options();
    options.no_standbys = false;
    options.expect_servers = servers;
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
    table_close(&t->level);
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
    writer_close(&f->lead_held);
    writer_close(&f->late);
    free(f->stored);
    free(f->history);
    table_close(&f->stored_index);
    table_close(&f->history_index);
    table_close(&f->proved);
}

/* The process ends and another takes its place, over the same store. What it was saving arrives after the other has
 * loaded. */
static inline void fixture_restart(struct fixture *f)
{
    coordinator_close(f->core);
    writer_clear(&f->late);
    if (f->asked && f->held_save) writer_raw(&f->late, f->held.data, f->held.size);
    f->options.info.node.v++;
    f->asked = f->lead_asked = false;
    f->leader_until_us = 0; /* its lease has run out */
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
    hello_encode(&f->message, &(struct hello){.info = t->info, .capacity = t->capacity, .term = t->term});
    ck_assert_int_eq(session_push_fast(t->greeter, f->message.data, f->message.size), TERRANE_ERR_OK);
    /* What bears the same name may be replaced by it. */
    for (uint32_t i = 0; i < TESTERS_MAX; i++) {
        const struct tester *other = &f->testers[i];
        bool former = other->used && other != t && t->info.role == ROLE_CELLSERVER && !t->cut;
        if (former && strcmp(other->info.name, t->info.name) == 0) table_put(&f->proved, other->info.node.v, 1);
    }
    for (uint32_t i = 0; i < f->server_count && !t->cut; i++) {
        const struct node_info *stored = &f->servers[i].info;
        if (stored->node.v != t->info.node.v && strcmp(stored->name, t->info.name) == 0)
            table_put(&f->proved, stored->node.v, 1);
    }
    tester_flush(f, t, t->greeter);
}

static inline bool tester_stands(const struct tester *t, const struct leaf_owner *leaf)
{
    return node_id_equal(leaf->standby, t->info.node) && table_get(&t->level, leaf->leaf.v) == leaf->epoch;
}

/* Gets level where its primary knows of it and they reach each other; whether something is new. */
static inline bool tester_level(struct fixture *f, struct tester *t)
{
    bool news = false;
    for (uint32_t i = 0; i < t->map.now.leaf_count && !t->unlevel && !t->cut; i++) {
        const struct leaf_owner *leaf = &t->map.now.leaves[i];
        if (!node_id_equal(leaf->standby, t->info.node) || tester_stands(t, leaf)) continue;
        const struct tester *primary = tester_of(f, leaf->primary);
        const struct leaf_owner *known = primary == NULL ? NULL : ownership_leaf(&primary->map, leaf->leaf);
        if (known == NULL || known->epoch != leaf->epoch || primary->cut || primary->frozen) continue;
        table_put(&t->level, leaf->leaf.v, leaf->epoch);
        news = true;
    }
    return news;
}

static inline void tester_stood(struct fixture *f, struct tester *t, const struct leaf_owner *leaf)
{
    uint32_t at = table_get(&f->history_index, leaf->leaf.v);
    if (f->history[at].owner.epoch == leaf->epoch && !t->cut) f->history[at].level = t->info.node.v;
    t->stood++;
}

/* Says `owned` entities for each leaf of its map that it owns, and for which it stands by, level. */
static inline void tester_beat(struct fixture *f, struct tester *t, uint32_t owned)
{
    struct heartbeat beat = {.term = t->map.term, .rev = t->map.rev, .tick = 7, .ghosts = 3, .stamp = f->now_us};
    if (t->session == NULL) return;
    (void)tester_level(f, t);
    uint32_t stands = t->stood = 0;
    for (uint32_t pass = 0; pass < 2; pass++) {
        writer_clear(&f->message);
        heartbeat_begin(&f->message, &beat);
        for (uint32_t i = 0; i < t->map.now.leaf_count; i++) {
            const struct leaf_owner *leaf = &t->map.now.leaves[i];
            stands += pass == 0 && tester_stands(t, leaf);
            if (!node_id_equal(leaf->primary, t->info.node)) continue;
            if (pass == 0)
                beat.count++;
            else
                heartbeat_add(&f->message, &(struct leaf_load){leaf->leaf, leaf->epoch, leaf->since, owned});
        }
        heartbeat_stands(&f->message, stands);
    }
    for (uint32_t i = 0; i < t->map.now.leaf_count; i++) {
        const struct leaf_owner *leaf = &t->map.now.leaves[i];
        if (!tester_stands(t, leaf)) continue;
        heartbeat_add_stand(&f->message, &(struct leaf_stand){leaf->leaf, leaf->epoch});
        tester_stood(f, t, leaf);
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

static inline void tester_light_beat(struct fixture *f, struct tester *t)
{
    if (t->session == NULL) return;
    writer_clear(&f->message);
    heartbeat_bare(&f->message, &(struct heartbeat){.term = t->map.term, .rev = t->map.rev, .stamp = f->now_us});
    ck_assert_int_eq(session_push_fast(t->session, f->message.data, f->message.size), TERRANE_ERR_OK);
    tester_flush(f, t, t->session);
}

static inline void tester_bye(struct fixture *f, struct tester *t)
{
    if (!t->cut) table_put(&f->proved, t->info.node.v, 1);
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

static inline void testers_act(struct fixture *f, uint64_t slice_us)
{
    for (uint32_t i = 0; i < TESTERS_MAX; i++) {
        struct tester *t = &f->testers[i];
        if (!t->used || t->cut || t->frozen) continue;
        tester_flush(f, t, t->session);
        bool server = t->info.role == ROLE_CELLSERVER;
        if (f->now_us / (250 * MS) != (f->now_us - slice_us) / (250 * MS) || (server && !f->slow && tester_level(f, t)))
            tester_beat(f, t, 5);
        else if (server && f->now_us / (50 * MS) != (f->now_us - slice_us) / (50 * MS))
            tester_light_beat(f, t);
    }
}

/* Time passes; deadlines are served to 5 ms. Who is connected beats every 250 ms with lists, servers every 50 ms, and
 * with lists as soon as they are level. */
static inline void fixture_run(struct fixture *f, uint64_t span_us)
{
    uint64_t until_us = f->now_us + span_us, slice_us = 25 * MS;
    while (f->now_us < until_us) {
        uint64_t to_us = f->now_us + slice_us < until_us ? f->now_us + slice_us : until_us, from_us = f->now_us;
        while (coordinator_deadline_us(f->core) <= to_us) {
            uint64_t due_us = coordinator_deadline_us(f->core);
            f->now_us = due_us > f->now_us + MS ? due_us : f->now_us + MS;
            if (f->now_us > to_us) break;
            fixture_step(f, (struct event){.kind = EVENT_TIMEOUT});
        }
        f->now_us = to_us;
        testers_act(f, to_us - from_us);
    }
}

static inline uint32_t stands_of(const struct ownership *map, const struct tester *t)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < map->now.leaf_count; i++) count += node_id_equal(map->now.leaves[i].standby, t->info.node);
    return count;
}

/* One message on the query lane; the answer stands in f->reply. */
static inline void fixture_query(struct fixture *f, const struct writer *message)
{
    writer_clear(&f->reply);
    fixture_step(
        f, (struct event){
               .kind = EVENT_MESSAGE, .lane = LANE_QUERY, .token = 9, .bytes = message->data, .size = message->size});
    ck_assert_uint_gt(f->reply.size, 0);
}

/* An agent says that the process has ended. */
static inline struct done fixture_death(struct fixture *f, struct node_id node)
{
    struct done done;
    table_put(&f->proved, node.v, 1);
    writer_clear(&f->message);
    death_encode(&f->message, &(struct death){.node = node});
    fixture_query(f, &f->message);
    ck_assert_int_eq(done_decode(cursor_of(f->reply.data, f->reply.size), &done), TERRANE_ERR_OK);
    return done;
}

static inline struct done fixture_drain(struct fixture *f, const char *name)
{
    struct drain drain = {{0}};
    struct done done;
    snprintf(drain.name, sizeof drain.name, "%s", name);
    writer_clear(&f->message);
    drain_encode(&f->message, &drain);
    fixture_query(f, &f->message);
    ck_assert_int_eq(done_decode(cursor_of(f->reply.data, f->reply.size), &done), TERRANE_ERR_OK);
    return done;
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
