/* A store on a real redis-server that the test starts, stops, kills and starts again. Include in one file of a
 * program. */
#ifndef TERRANE_TESTS_IO_STORE_RIG_H
#define TERRANE_TESTS_IO_STORE_RIG_H

#include "io/store.h"

#include "common/geometry.h"
#include "io/store_values.h"
#include "proto/store.h"
#include "suite.h"

#include <arpa/inet.h>
#include <ev.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEADLINE_S 15.0
#define TIMEOUT_US 1000000u

extern char **environ;

struct rig {
    struct ev_loop *loop;
    ev_timer turn;
    pid_t redis;
    int port;
    char address[128], user[32], password[32], sentinel_password[32];
    lookup_resolve *resolve;
    struct store *store;
    uint32_t answers, conflicts_logged, downs_logged;
    uint64_t token;
    enum terrane_error error;
    struct writer bytes, payload;
};

static inline double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline int port_free(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static inline void redis_start(struct rig *r)
{
    char port[16], secret[40], file[40];
    snprintf(port, sizeof port, "%d", r->port);
    snprintf(secret, sizeof secret, ">%s", r->password);
    snprintf(file, sizeof file, "terrane-test-%d.rdb", r->port); /* it writes one for a replica */
    /* With a user: exactly the rights that docs/STORE.md names. */
    char *const argv[] = {"redis-server",
                          "--port",
                          port,
                          "--bind",
                          "127.0.0.1",
                          "--save",
                          "",
                          "--dir",
                          "/tmp",
                          "--dbfilename",
                          file,
                          "--repl-diskless-sync-delay",
                          "0",
                          "--logfile",
                          "/dev/null",
                          "--requirepass",
                          r->user[0] != '\0' ? "other" : r->password,
                          r->user[0] != '\0' ? "--user" : NULL,
                          r->user,
                          "on",
                          secret,
                          "~terrane:*",
                          "+eval",
                          "+ping",
                          "+hget",
                          "+hgetall",
                          "+hset",
                          "+hdel",
                          "+get",
                          "+set",
                          "+del",
                          "+exists",
                          NULL};
    ck_assert_int_eq(posix_spawnp(&r->redis, "redis-server", NULL, NULL, argv, environ), 0);
}

static inline void redis_end(struct rig *r)
{
    char file[48];
    if (r->redis == 0) return;
    kill(r->redis, SIGKILL);
    ck_assert_int_eq(waitpid(r->redis, NULL, 0), r->redis);
    r->redis = 0;
    snprintf(file, sizeof file, "/tmp/terrane-test-%d.rdb", r->port);
    (void)unlink(file);
}

static inline void on_stored(void *context, uint64_t token, enum terrane_error error, const uint8_t *bytes, size_t size)
{
    struct rig *r = context;
    r->answers++;
    r->token = token;
    r->error = error;
    writer_clear(&r->bytes);
    writer_raw(&r->bytes, bytes, size);
}

static inline void on_log(void *context, enum log_level level, const char *line, size_t size)
{
    struct rig *r = context;
    char text[512];
    (void)level;
    snprintf(text, sizeof text, "%.*s", (int)size, line);
    if (strstr(text, "CONFLICT") != NULL) r->conflicts_logged++;
    if (strstr(text, "store_down") != NULL) r->downs_logged++;
}

static inline void on_turn(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)timer;
    (void)events;
}

static inline void store_begin(struct rig *r)
{
    char fault[256];
    struct store_options options = {.loop = r->loop,
                                    .address = r->address,
                                    .user = r->user,
                                    .password = r->password,
                                    .sentinel_password = r->sentinel_password,
                                    .resolve = r->resolve,
                                    .world = "test",
                                    .timeout_us = TIMEOUT_US,
                                    .context = r,
                                    .stored = on_stored,
                                    .log = on_log,
                                    .log_context = r};
    ck_assert_int_eq(store_open(&options, &r->store, fault, sizeof fault), TERRANE_ERR_OK);
}

static inline void wait_connected(struct rig *r, bool state);

static inline void rig_open_as(struct rig *r, const char *user, const char *password)
{
    *r = (struct rig){.loop = ev_loop_new(EVFLAG_AUTO)};
    signal(SIGPIPE, SIG_IGN);
    snprintf(r->user, sizeof r->user, "%s", user);
    snprintf(r->password, sizeof r->password, "%s", password);
    r->port = port_free();
    snprintf(r->address, sizeof r->address, "127.0.0.1:%d", r->port);
    /* The loop must wake for the deadline even if the store has forgotten its timers. */
    ev_timer_init(&r->turn, on_turn, 0.02, 0.02);
    ev_timer_start(r->loop, &r->turn);
    redis_start(r);
    store_begin(r);
    wait_connected(r, true); /* a server may take longer to start than an operation may take */
}

static inline void rig_open(struct rig *r, const char *password)
{
    rig_open_as(r, "", password);
}

static inline void rig_close(struct rig *r)
{
    store_close(r->store);
    redis_end(r);
    ev_timer_stop(r->loop, &r->turn);
    ev_loop_destroy(r->loop);
    writer_close(&r->bytes);
    writer_close(&r->payload);
}

/* Runs the loop until the store has answered as often as that. */
static inline void wait_answers(struct rig *r, uint32_t answers)
{
    double until = now_s() + DEADLINE_S;
    while (r->answers < answers) {
        ck_assert_msg(now_s() < until, "no answer within the deadline");
        ev_run(r->loop, EVRUN_ONCE);
    }
    ck_assert_uint_eq(r->answers, answers);
}

static inline bool connected(const struct rig *r)
{
    struct store_counters counters;
    store_counters(r->store, &counters);
    return counters.connected;
}

static inline void wait_connected(struct rig *r, bool state)
{
    double until = now_s() + DEADLINE_S;
    while (connected(r) != state) {
        ck_assert_msg(now_s() < until, "the connection did not change within the deadline");
        ev_run(r->loop, EVRUN_ONCE);
    }
}

static inline struct world strange_world(void)
{
    struct world world = world_default();
    world.origin_x = -1234.56789012345678;
    world.cell_size = 0.1;
    world.view_mode = VIEW_BLOCK;
    world.edge = WORLD_EDGE_CLAMP;
    return world;
}

static inline struct store_leaf leaf_of(const char *key, uint32_t epoch, uint64_t node, const char *name)
{
    struct store_leaf leaf = {.owner = {.epoch = epoch, .since = epoch, .primary = {node}, .feed = 1}};
    ck_assert_int_eq(quadkey_parse(key, strlen(key), &leaf.owner.leaf), TERRANE_ERR_OK);
    snprintf(leaf.primary, sizeof leaf.primary, "%s", name);
    return leaf;
}

static inline struct store_server server_of(uint64_t node, const char *name)
{
    struct store_server server = {.capacity = 70, .info = {.role = ROLE_CELLSERVER, .node = {node}, .feed_count = 2}};
    snprintf(server.info.name, LIMIT_NAME, "%s", name);
    snprintf(server.info.host, LIMIT_NAME, "host-%s", name);
    snprintf(server.info.inbox_url, LIMIT_URL, "tcp://127.0.0.1:7101");
    snprintf(server.info.ghost_feed_url, LIMIT_URL, "tcp://127.0.0.1:7109");
    snprintf(server.info.feed_urls[0], LIMIT_URL, "tcp://127.0.0.1:7102");
    snprintf(server.info.feed_urls[1], LIMIT_URL, "tcp://127.0.0.1:7103");
    return server;
}

static inline void payload_write(struct writer *w, uint64_t term, const struct store_leaf *leaves, uint32_t leaf_count,
                                 const struct store_server *servers, uint32_t server_count)
{
    writer_clear(w);
    store_map_begin(
        w, &(struct store_map){.term = term, .rev = 9, .leader = {77}, .whole = true, .world = strange_world()});
    store_list(w, leaf_count);
    for (uint32_t i = 0; i < leaf_count; i++) store_add_leaf(w, &leaves[i]);
    store_list(w, 0);
    store_list(w, server_count);
    for (uint32_t i = 0; i < server_count; i++) store_add_server(w, &servers[i]);
    store_list(w, 0);
}

static inline enum terrane_error save(struct rig *r, uint64_t term, struct store_leaf leaf)
{
    uint32_t answers = r->answers;
    payload_write(&r->payload, term, &leaf, 1, NULL, 0);
    store_execute(r->store, STORE_SAVE, 1000 + answers, r->payload.data, r->payload.size);
    wait_answers(r, answers + 1);
    ck_assert_uint_eq(r->token, 1000 + answers);
    return r->error;
}

static inline void load(struct rig *r, struct store_map *m)
{
    uint32_t answers = r->answers;
    store_execute(r->store, STORE_LOAD, 5, NULL, 0);
    wait_answers(r, answers + 1);
    ck_assert_int_eq(r->error, TERRANE_ERR_OK);
    ck_assert_int_eq(store_map_decode(r->bytes.data, r->bytes.size, m), TERRANE_ERR_OK);
}

static inline uint32_t epoch_of(struct rig *r, const char *key)
{
    struct store_map m;
    struct store_leaf leaf, wanted = leaf_of(key, 0, 0, "");
    load(r, &m);
    while (store_next_leaf(&m, &leaf)) {
        if (quadkey_equal(leaf.owner.leaf, wanted.owner.leaf)) return leaf.owner.epoch;
    }
    return UINT32_MAX;
}

#endif
