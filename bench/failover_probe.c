#include "bench/failover_probe.h"

#include "common/array.h"
#include "common/check.h"
#include "common/geometry.h"
#include "gateway/core.h"
#include "io/program.h"
#include "io/shell.h"
#include "proto/packet.h"

#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEP_US  50000u
#define RADIUS_M 5.0
#define PATH_M   1.0 /* each entity goes to and fro, well inside its leaf */
#define PHASES   20u

struct walker {
    double x, y;
    bool entered;
};

struct probe {
    struct gateway *core;
    struct shell *shell;
    struct probe_leaf *leaves;
    struct walker *walkers;
    uint32_t count, leaf_room, walker_room;
    uint64_t move_us, moves, first_id;
    struct node_id node, expected;
    uint64_t told_us, lost;
};

/* The tap */

static struct probe_leaf *leaf_of(struct probe *p, struct quadkey key)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->leaves[i].key.v == key.v) return &p->leaves[i];
    return NULL;
}

static void hear(struct probe *p, struct quadkey key, uint32_t epoch, uint64_t now_us)
{
    struct probe_leaf *l = leaf_of(p, key);
    if (l == NULL) return;
    if (epoch < l->epoch) {
        l->stale++;
        return;
    }
    if (epoch > l->epoch) l->first_us = now_us;
    l->epoch = epoch;
    l->last_us = now_us;
}

static void tap_feed(struct probe *p, const struct event *in, uint64_t now_us)
{
    struct topic topic;
    struct frame frame;
    if (topic_decode(in->bytes, in->size, &topic) != TERRANE_ERR_OK || topic.kind != STREAM_REGION) return;
    if (frame_decode(in->bytes + topic.size, in->size - topic.size, &frame) != TERRANE_ERR_OK) return;
    hear(p, topic.leaf, frame.epoch, now_us);
}

static void tap_message(struct probe *p, struct cursor message, uint64_t now_us)
{
    struct map map;
    struct node_info node;
    struct snapshot snapshot;
    if (snapshot_decode(message, &snapshot) == TERRANE_ERR_OK && snapshot.stream == STREAM_REGION)
        hear(p, snapshot.leaf, snapshot.epoch, now_us);
    if (p->expected.v == 0 || map_decode(message, &map) != TERRANE_ERR_OK) return;
    while (map_next_node(&map, &node))
        if (node.node.v == p->expected.v && p->told_us == 0) p->told_us = now_us;
}

static void tap_inbox(struct probe *p, const struct event *in, uint64_t now_us)
{
    struct packet packet;
    struct cursor message;
    if (packet_decode(in->bytes, in->size, &packet) != TERRANE_ERR_OK) return;
    while (packet_next(&packet.sure, &message)) tap_message(p, message, now_us);
}

static void step(void *context, const struct event *in, uint64_t now_us, struct outbox *out)
{
    struct probe *p = context;
    if (in->kind == EVENT_MESSAGE && in->lane == LANE_FEED) tap_feed(p, in, now_us);
    if (in->kind == EVENT_MESSAGE && in->lane == LANE_INBOX) tap_inbox(p, in, now_us);
    gateway_step(p->core, in, now_us, out);
}

static uint64_t deadline_us(const void *context)
{
    const struct probe *p = context;
    return gateway_deadline_us(p->core);
}

static void on_error(void *context, uint64_t id, enum terrane_error error, const char *text)
{
    struct probe *p = context;
    (void)id, (void)text;
    p->lost += error == TERRANE_ERR_ENTITY_LOST;
}

static void on_done(void *context, uint64_t request, enum terrane_operation operation, uint64_t id,
                    enum terrane_error error)
{
    struct probe *p = context;
    (void)request;
    if (operation == TERRANE_ENTER && error == TERRANE_ERR_OK) p->walkers[id - p->first_id].entered = true;
}

/* Life */

struct probe *probe_begin(const char *coordinator_url, const char *name)
{
    struct link_fault fault;
    struct timespec wall;
    struct probe *p = calloc(1, sizeof *p);
    CHECK(p != NULL && clock_gettime(CLOCK_REALTIME, &wall) == 0);
    struct shell_options options = {.link = {.inbox_url = "tcp://127.0.0.1:0", .sub_url = "tcp://127.0.0.1:0"},
                                    .embedded = true,
                                    .no_signals = true};
    if (shell_open(&options, &p->shell, &fault) != TERRANE_ERR_OK) return NULL;
    p->node = shell_node_id();
    p->first_id = (p->node.v >> 20) + 1;
    struct gateway_options core = {.info = {.role = ROLE_GATEWAY, .node = p->node},
                                   .coordinator_url = coordinator_url,
                                   .wall_us = (uint64_t)wall.tv_sec * 1000000 + (uint64_t)wall.tv_nsec / 1000,
                                   .callbacks = {.error = on_error, .done = on_done},
                                   .context = p};
    program_identify(&core.info, name, shell_urls(p->shell), 0);
    p->core = gateway_open(&core);
    shell_start(p->shell, &(struct shell_core){.core = p, .step = step, .deadline_us = deadline_us});
    return p;
}

struct probe *probe_open(const char *coordinator_url, const char *name, uint32_t timeout_ms)
{
    struct probe *p = probe_begin(coordinator_url, name);
    uint64_t until_us = loop_now_us() + timeout_ms * UINT64_C(1000);
    while (p != NULL && !gateway_is_ready(p->core)) {
        if (loop_now_us() >= until_us) return NULL;
        struct pollfd waiting = {.fd = probe_fd(p), .events = POLLIN};
        (void)poll(&waiting, 1, 20);
        (void)probe_step(p);
    }
    return p;
}

void probe_leave(struct probe *p)
{
    gateway_shutdown(p->core);
    gateway_flush(p->core, loop_now_us(), shell_outbox(p->shell));
    shell_flush(p->shell);
}

void probe_add(struct probe *p, struct quadkey leaf)
{
    const struct world *world = gateway_world(p->core);
    struct square square = quadkey_square(world, leaf);
    struct position middle = {(int32_t)(square.x + square.side / 2), (int32_t)(square.y + square.side / 2), 0};
    struct walker w = {.x = 0};
    double z;
    world_coordinates(world, middle, &w.x, &w.y, &z);
    ARRAY_RESERVE(p->leaves, p->leaf_room, (size_t)p->count + 1);
    ARRAY_RESERVE(p->walkers, p->walker_room, (size_t)p->count + 1);
    p->leaves[p->count] = (struct probe_leaf){.key = leaf};
    p->walkers[p->count] = w;
    struct terrane_entity entity = {.id = p->first_id + p->count, .x = w.x, .y = w.y, .radius = RADIUS_M};
    CHECK(gateway_enter(p->core, &entity, NULL) == TERRANE_ERR_OK);
    p->count++;
    shell_rearm(p->shell);
}

uint32_t probe_count(const struct probe *p)
{
    return p->count;
}

const struct probe_leaf *probe_leaf(const struct probe *p, uint32_t index)
{
    CHECK(index < p->count);
    return &p->leaves[index];
}

int probe_fd(const struct probe *p)
{
    return shell_fd(p->shell);
}

static void move_all(struct probe *p)
{
    double along = PATH_M * sin((double)(p->moves++ % PHASES) / PHASES * 2 * 3.14159265358979);
    for (uint32_t i = 0; i < p->count; i++) {
        const struct walker *w = &p->walkers[i];
        enum terrane_error error = gateway_move(p->core, p->first_id + i, w->x + along, w->y, 0, 0);
        (void)error; /* lost ones are counted in on_error */
    }
    gateway_flush(p->core, loop_now_us(), shell_outbox(p->shell));
    shell_flush(p->shell);
}

uint64_t probe_step(struct probe *p)
{
    shell_dispatch(p->shell);
    uint64_t now_us = loop_now_us();
    if (p->count == 0) return UINT64_MAX;
    if (now_us >= p->move_us) {
        move_all(p);
        p->move_us = now_us - p->move_us > STEP_US ? now_us + STEP_US : p->move_us + STEP_US;
    }
    return p->move_us;
}

bool probe_hears_all(const struct probe *p, uint64_t age_us)
{
    uint64_t now_us = loop_now_us();
    for (uint32_t i = 0; i < p->count; i++) {
        bool heard = p->leaves[i].last_us != 0 && now_us - p->leaves[i].last_us <= age_us;
        if (!heard || !p->walkers[i].entered) return false;
    }
    return true;
}

struct node_id probe_node(const struct probe *p)
{
    return p->node;
}

void probe_expect(struct probe *p, struct node_id node)
{
    p->expected = node;
    p->told_us = 0;
}

uint64_t probe_told_us(const struct probe *p)
{
    return p->told_us;
}

uint64_t probe_lost(const struct probe *p)
{
    return p->lost;
}
