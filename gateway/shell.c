/* libterrane: terrane.h on the gateway core and the embedded shell. Nothing is decided here. */
#include "io/shell.h"
#include "common/check.h"
#include "common/geometry.h"
#include "common/urls.h"
#include "gateway/collect.h"
#include "gateway/core.h"
#include "io/program.h"
#include "io/vitals.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ANSWERS_US    1000000u
#define HANG_UP_US    1500000u /* the coordinator keeps its link for a second, should our BYE be repeated */
#define CLOSE_LOOK_MS 10

struct terrane {
    struct gateway *core;
    struct shell *shell;
    struct terrane_callbacks callbacks;
    void *context;
    bool armed; /* a command since the last dispatch has brought the shell's deadline forward */
};

static void step(void *core, const struct event *in, uint64_t now_us, struct outbox *out)
{
    gateway_step(core, in, now_us, out);
}

static uint64_t deadline_us(const void *core)
{
    return gateway_deadline_us(core);
}

static void write_log(void *context, enum log_level level, const char *line, size_t size)
{
    const struct terrane *t = context;
    char text[512];
    if (t->callbacks.log == NULL) return;
    size_t kept = size < sizeof text - 1 ? size : sizeof text - 1;
    memcpy(text, line, kept);
    text[kept] = '\0';
    t->callbacks.log(t->context, (int)level, text);
}

static void say_fault(const struct terrane_options *options, const char *format, const char *detail)
{
    if (options->fault == NULL || options->fault_size == 0) return;
    snprintf(options->fault, options->fault_size, format, detail);
}

static bool url_well_formed(const char *text)
{
    struct urls urls;
    if (text == NULL || !urls_parse(text, &urls)) return false;
    for (uint32_t i = 0; i < urls.count; i++) {
        const char *url = urls.items[i], *port = strrchr(url, ':');
        if (strncmp(url, "tcp://", 6) != 0 || port <= url + 6 || port[1] == '\0') return false;
    }
    return true;
}

/* The shell and its sockets; the core is made when their urls are known. */
static enum terrane_error open_shell(struct terrane *t, const struct terrane_options *options)
{
    char listen_url[LIMIT_URL];
    struct link_fault fault = {.text = ""};
    const char *host = options->listen_host == NULL ? "127.0.0.1" : options->listen_host;
    if (snprintf(listen_url, sizeof listen_url, "tcp://%s:0", host) >= (int)sizeof listen_url) {
        say_fault(options, "listen_host is too long: %s", host);
        return TERRANE_ERR_ADDRESS;
    }
    struct shell_options shell = {.link = {.inbox_url = listen_url, .sub_url = options->no_updates ? NULL : listen_url},
                                  .log = {.context = t, .write = write_log},
                                  .embedded = true,
                                  .no_signals = true};
    enum terrane_error error = shell_open(&shell, &t->shell, &fault);
    if (error != TERRANE_ERR_OK) say_fault(options, "%s", fault.text);
    return error;
}

static void open_core(struct terrane *t, const struct terrane_options *options)
{
    struct timespec wall;
    CHECK(clock_gettime(CLOCK_REALTIME, &wall) == 0);
    struct gateway_options core = {.info = {.role = ROLE_GATEWAY, .node = shell_node_id()},
                                   .coordinator_url = options->coordinator_url,
                                   .wall_us = (uint64_t)wall.tv_sec * 1000000 + (uint64_t)wall.tv_nsec / 1000,
                                   .request_timeout_us = options->request_timeout_ms * 1000,
                                   .no_updates = options->no_updates,
                                   .no_reenter = options->no_reenter,
                                   .callbacks = options->callbacks,
                                   .context = options->context};
    program_identify(&core.info, options->name == NULL ? "gateway" : options->name, shell_urls(t->shell), 0);
    t->core = gateway_open(&core);
}

enum terrane_error terrane_open(const struct terrane_options *options, struct terrane **out)
{
    *out = NULL;
    if (!url_well_formed(options->coordinator_url)) {
        say_fault(options, "coordinator_url must be like tcp://127.0.0.1:7070 (or several, with commas), not %s",
                  options->coordinator_url == NULL ? "NULL" : options->coordinator_url);
        return TERRANE_ERR_CONFIG;
    }
    struct terrane *t = calloc(1, sizeof *t);
    if (t == NULL) {
        say_fault(options, "%s", terrane_error_text(TERRANE_ERR_MEMORY));
        return TERRANE_ERR_MEMORY;
    }
    t->callbacks = options->callbacks;
    t->context = options->context;
    enum terrane_error error = open_shell(t, options);
    if (error != TERRANE_ERR_OK) {
        free(t);
        return error;
    }
    open_core(t, options);
    shell_start(t->shell, &(struct shell_core){.core = t->core, .step = step, .deadline_us = deadline_us});
    *out = t;
    return TERRANE_ERR_OK;
}

/* Dispatches until `over` holds or the time is up. */
static void dispatch_until(struct terrane *t, bool (*over)(const struct terrane *t), uint64_t end_us)
{
    while (!over(t)) {
        uint64_t now_us = loop_now_us();
        if (now_us >= end_us) return;
        struct pollfd poll_fd = {.fd = shell_fd(t->shell), .events = POLLIN};
        (void)poll(&poll_fd, 1, CLOSE_LOOK_MS); /* nothing wakes for a connection that ends */
        terrane_dispatch(t);
    }
}

static bool all_answered(const struct terrane *t)
{
    return gateway_closed(t->core);
}

static bool nobody_sends(const struct terrane *t)
{
    return link_quiet(shell_link(t->shell));
}

void terrane_close(struct terrane *t)
{
    if (t == NULL) return;
    gateway_shutdown(t->core);
    terrane_flush(t);
    dispatch_until(t, all_answered, loop_now_us() + ANSWERS_US);
    /* With BYE the others hang up; only then can the listening sockets be closed. */
    dispatch_until(t, nobody_sends, loop_now_us() + HANG_UP_US);
    shell_close(t->shell);
    gateway_close(t->core);
    free(t);
}

int terrane_fd(const struct terrane *t)
{
    return shell_fd(t->shell);
}

void terrane_dispatch(struct terrane *t)
{
    t->armed = false;
    shell_dispatch(t->shell);
}

void terrane_flush(struct terrane *t)
{
    t->armed = false;
    gateway_flush(t->core, loop_now_us(), shell_outbox(t->shell));
    shell_flush(t->shell);
}

bool terrane_is_ready(const struct terrane *t)
{
    return gateway_is_ready(t->core);
}

bool terrane_world(const struct terrane *t, struct terrane_world *out)
{
    const struct world *world = gateway_world(t->core);
    if (world == NULL) return false;
    double unit = world_unit(world);
    *out = (struct terrane_world){.origin_x = world->origin_x,
                                  .origin_y = world->origin_y,
                                  .side = ldexp(world->cell_size, (int)world->depth),
                                  .cell_size = world->cell_size,
                                  .radius_max = world->radius_max * unit,
                                  .hysteresis = world->hysteresis * unit,
                                  .unit = unit,
                                  .tick_hz = world->tick_hz,
                                  .block = world->view_mode == VIEW_BLOCK};
    return true;
}

/* Commands wait in the core; the first one since a dispatch makes sure that there is a next. */
static enum terrane_error commanded(struct terrane *t, enum terrane_error error)
{
    if (error == TERRANE_ERR_OK && !t->armed) {
        t->armed = true;
        shell_rearm(t->shell);
    }
    return error;
}

enum terrane_error terrane_enter(struct terrane *t, const struct terrane_entity *entity, uint64_t *request)
{
    return commanded(t, gateway_enter(t->core, entity, request));
}

enum terrane_error terrane_move(struct terrane *t, uint64_t id, double x, double y, double z, double yaw)
{
    return commanded(t, gateway_move(t->core, id, x, y, z, yaw));
}

enum terrane_error terrane_set_state(struct terrane *t, uint64_t id, const void *state, size_t size, uint64_t *request)
{
    return commanded(t, gateway_set_state(t->core, id, state, size, request));
}

enum terrane_error terrane_set_radius(struct terrane *t, uint64_t id, double radius, uint64_t *request)
{
    return commanded(t, gateway_set_radius(t->core, id, radius, request));
}

enum terrane_error terrane_leave(struct terrane *t, uint64_t id, uint64_t *request)
{
    return commanded(t, gateway_leave(t->core, id, request));
}

enum terrane_error terrane_attach(struct terrane *t, uint64_t id, uint64_t *request)
{
    return commanded(t, gateway_attach(t->core, id, request));
}

enum terrane_error terrane_emit(struct terrane *t, uint32_t code, double x, double y, double z, uint16_t layer,
                                double radius, const void *payload, size_t size, uint64_t *request)
{
    return commanded(t, gateway_emit(t->core, code, x, y, z, layer, radius, payload, size, request));
}

enum terrane_error terrane_query_circle(struct terrane *t, double x, double y, double radius, int layer,
                                        uint64_t *request)
{
    return commanded(t, gateway_query_circle(t->core, x, y, radius, layer, request));
}

enum terrane_error terrane_query_rectangle(struct terrane *t, double min_x, double min_y, double max_x, double max_y,
                                           int layer, uint64_t *request)
{
    return commanded(t, gateway_query_rectangle(t->core, min_x, min_y, max_x, max_y, layer, request));
}

enum terrane_error terrane_find(struct terrane *t, uint64_t id, uint64_t *request)
{
    return commanded(t, gateway_find(t->core, id, request));
}

size_t terrane_view(const struct terrane *t, uint64_t observer, uint64_t *ids, size_t room)
{
    return gateway_view(t->core, observer, ids, room);
}

bool terrane_get(const struct terrane *t, uint64_t id, struct terrane_entity *out)
{
    return gateway_get(t->core, id, out);
}

void terrane_stats(const struct terrane *t, struct terrane_stats *out)
{
    gateway_stats(t->core, out);
}

void gateway_collect(struct terrane *const *sessions, size_t count, struct metrics *out)
{
    metrics_zero(out, "terrane_gateway_");
    metrics_zero(out, "terrane_io_");
    for (size_t i = 0; i < count; i++) {
        gateway_metrics(sessions[i]->core, out);
        metrics_sum(out, shell_metrics(sessions[i]->shell), "terrane_io_");
    }
    vitals_process(out);
}

size_t terrane_metrics(struct terrane *const *sessions, size_t count, char *text, size_t room)
{
    struct metrics metrics = {0};
    struct metrics_text rendered = {0};
    gateway_collect(sessions, count, &metrics);
    metrics_prometheus(&metrics, &rendered);
    size_t size = rendered.size, kept = size < room ? size : room == 0 ? 0 : room - 1;
    if (kept > 0) memcpy(text, rendered.data, kept);
    if (room > 0) text[kept] = '\0';
    metrics_text_close(&rendered);
    metrics_close(&metrics);
    return size;
}
