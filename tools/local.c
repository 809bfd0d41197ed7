#include "tools/local.h"

#include "tools/cluster.h"

#include "common/check.h"
#include "io/loop.h"
#include "tools/places.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_MS   15000
#define USUAL_PORT 7070u
#define PORTS_EACH 3u /* a coordinator's: inbox, queries, map/ */
#define HTTP_PORT  7080u

static bool fail(struct local *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(struct local *l, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(l->fault, sizeof l->fault, format, arguments);
    va_end(arguments);
    return false;
}

/* Text arguments that live as long as the process. */
static char *text(const char *with, ...) __attribute__((format(printf, 1, 2)));
static char *text(const char *with, ...)
{
    char *out;
    va_list arguments;
    va_start(arguments, with);
    int size = vasprintf(&out, with, arguments);
    va_end(arguments);
    CHECK(size >= 0);
    return out;
}

/* children.json */

static void write_children(void *context, const struct ward *changed)
{
    const struct local *l = context;
    char path[600], fresh[620];
    (void)changed;
    if (l->agent == NULL) return;
    snprintf(path, sizeof path, "%s/children.json", l->options.run_dir);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    FILE *file = fopen(fresh, "we");
    if (file == NULL) return;
    fputs("[", file);
    for (uint32_t i = 0; i < agent_count(l->agent); i++) {
        const struct ward *w = agent_ward(l->agent, i);
        fprintf(file, "%s{\"name\":\"%s\",\"pid\":%ld,\"node\":\"%016" PRIx64 "\",\"starts\":%u,\"deaths\":%u}",
                i == 0 ? "" : ",\n ", w->options.child.name, w->ended_us == 0 ? (long)w->child.pid : 0L, w->node.v,
                w->starts, w->deaths);
    }
    fputs("]\n", file);
    if (fclose(file) == 0) (void)rename(fresh, path);
}

/* Starting */

/* The arguments as the agent keeps them. `group` not 0: under that group id; a change of it loses the tether's death
 * signal, so it is asked for again. */
static char **keep(char *const *argv, uint64_t group)
{
    char *const prefix[] = {(char *)"setpriv", text("--regid=%" PRIu64, group), (char *)"--clear-groups",
                            (char *)"--pdeathsig=KILL"};
    size_t count = 0, before = group != 0 ? sizeof prefix / sizeof *prefix : 0;
    while (argv[count] != NULL) count++;
    char **kept = calloc(before + count + 1, sizeof *kept);
    CHECK(kept != NULL);
    memcpy(kept, prefix, before * sizeof *kept);
    memcpy(kept + before, argv, count * sizeof *kept);
    return kept;
}

static struct ward *start(struct local *l, const char *name, char *const *argv, bool node, uint64_t group)
{
    char **kept = keep(argv, group);
    struct ward_options options = {
        .child = {.name = name, .argv = kept, .log = text("%s/%s.log", l->options.run_dir, name)}, .node = node};
    struct ward *w = agent_add(l->agent, &options);
    if (w == NULL) fail(l, "%s can't be started: %s", name, strerror(errno));
    return w;
}

static bool await_ready(struct local *l, struct ward *w)
{
    char how[80];
    if (child_expect(&w->child, "ready ", START_MS)) return true;
    child_wait(&w->child, 100);
    child_describe(&w->child, how, sizeof how);
    return fail(l, "%s did not become ready: %s; see %s", w->options.child.name, how, w->options.child.log);
}

static bool start_redis(struct local *l, bool *missing)
{
    uint16_t port = places_free_port();
    *missing = !places_in_path("redis-server");
    if (*missing) return fail(l, "redis-server is missing: apt-get install redis-server");
    /* Every write is in the file before it is answered, so that one that is killed comes back with all it had. */
    char *argv[] = {(char *)"redis-server",
                    (char *)"--port",
                    text("%u", port),
                    (char *)"--bind",
                    (char *)"127.0.0.1",
                    (char *)"--save",
                    (char *)"",
                    (char *)"--appendonly",
                    (char *)"yes",
                    (char *)"--appendfsync",
                    (char *)"no",
                    (char *)"--dir",
                    (char *)(uintptr_t)l->options.run_dir,
                    (char *)"--logfile",
                    text("%s/redis.log", l->options.run_dir),
                    NULL};
    l->redis = start(l, "redis", argv, false, 0);
    if (l->redis == NULL) return false;
    snprintf(l->redis_address, sizeof l->redis_address, "127.0.0.1:%u", port);
    uint64_t until_us = loop_now_us() + START_MS * UINT64_C(1000);
    while (!places_listens(port)) {
        if (child_ended(&l->redis->child) || loop_now_us() >= until_us)
            return fail(l, "redis-server does not listen at %s", l->redis_address);
        (void)poll(NULL, 0, 5);
    }
    return true;
}

static void add_url(char *list, size_t room, uint32_t port)
{
    size_t used = strlen(list);
    snprintf(list + used, room - used, "%stcp://127.0.0.1:%u", used > 0 ? "," : "", port);
}

/* Ports for the coordinators' consoles, beside the others from `port` on. They keep them when they are started again,
 * so that a browser finds them. */
static uint16_t http_ports(const struct local *l, uint16_t port)
{
    uint16_t count = (uint16_t)l->options.coordinators, taken = (uint16_t)(count * PORTS_EACH);
    if (places_ports_free(HTTP_PORT, count)) return HTTP_PORT;
    uint16_t first = places_free_ports(count);
    return first + count > port && first < port + taken ? (uint16_t)(port + taken) : first;
}

static struct ward *start_coordinator(struct local *l, uint32_t index, uint32_t port, uint32_t http,
                                      const char *consoles)
{
    const struct local_options *o = &l->options;
    char *name = o->coordinators == 1 ? text("coordinator") : text("coordinator-%u", index + 1);
    char *argv[] = {text("%s/terrane-coordinator", o->programs),
                    text("--inbox=tcp://127.0.0.1:%u", port),
                    text("--name=%s", name),
                    text("--http=127.0.0.1:%u", http),
                    text("--consoles=%s", consoles),
                    text("--redis=%s", l->redis_address),
                    text("--expect-servers=%" PRIu64, o->servers),
                    text("--depth=%" PRIu64, o->depth),
                    text("--resolution-bits=%" PRIu64, o->depth + 13),
                    text("--split-depth=%" PRIu64, o->split_depth),
                    text("--radius-max=%g", o->radius_max),
                    text("--hysteresis=%g", o->hysteresis),
                    text("--view-mode=%s", o->view_mode),
                    text("--tick-hz=%" PRIu64, o->tick_hz),
                    text("--lease-ms=%" PRIu64, o->lease_ms),
                    (char *)(uintptr_t)(o->no_standbys ? "--no-standbys" : "--standbys"),
                    NULL};
    return start(l, name, argv, false, 0);
}

static bool start_coordinators(struct local *l, uint16_t port)
{
    uint16_t http = http_ports(l, port);
    char consoles[CLUSTER_URLS_TEXT] = "";
    for (uint32_t i = 0; i < l->options.coordinators; i++) {
        size_t used = strlen(consoles);
        snprintf(consoles + used, sizeof consoles - used, "%shttp://127.0.0.1:%u", i > 0 ? "," : "", http + i);
    }
    l->inboxes[0] = l->queries[0] = '\0';
    for (uint32_t i = 0; i < l->options.coordinators; i++) {
        add_url(l->inboxes, sizeof l->inboxes, port + i * PORTS_EACH);
        add_url(l->queries, sizeof l->queries, port + i * PORTS_EACH + 1);
        l->coordinators[i] = start_coordinator(l, i, port + i * PORTS_EACH, http + i, consoles);
        if (l->coordinators[i] == NULL) return false;
    }
    for (uint32_t i = 0; i < l->options.coordinators; i++)
        if (!await_ready(l, l->coordinators[i])) return false;
    return true;
}

static bool start_servers(struct local *l)
{
    const struct local_options *o = &l->options;
    for (uint32_t i = 0; i < o->servers; i++) {
        char *name = text("cell-%u", i + 1);
        char *argv[] = {text("%s/terrane-cellserver", o->programs),
                        text("--coordinator=%s", l->inboxes),
                        text("--name=%s", name),
                        text("--feeds=%" PRIu64, o->feeds),
                        text("--entities=%" PRIu64, o->entities),
                        NULL};
        l->servers[i] = start(l, name, argv, true, o->first_group != 0 ? o->first_group + i : 0);
        if (l->servers[i] == NULL) return false;
    }
    for (uint32_t i = 0; i < o->servers; i++)
        if (!await_ready(l, l->servers[i])) return false;
    return true;
}

/* The ports at which tools look by themselves, if they are free. Ports that were free may be taken between the look and
 * the use: others are tried, once. */
static bool place_coordinators(struct local *l)
{
    uint16_t count = (uint16_t)(l->options.coordinators * PORTS_EACH);
    bool usual = l->options.port == 0 && places_ports_free(USUAL_PORT, count);
    uint16_t port = l->options.port != 0 ? (uint16_t)l->options.port : usual ? USUAL_PORT : places_free_ports(count);
    if (port == 0) return fail(l, "no %u free ports in a row; choose them with --first-port", count);
    if (start_coordinators(l, port)) return true;
    if (l->options.port != 0 || (port = places_free_ports(count)) == 0) return false;
    while (agent_count(l->agent) > 1) agent_drop_last(l->agent); /* Redis came first */
    return start_coordinators(l, port);
}

bool local_start(struct local *l, const struct local_options *options, bool *missing)
{
    CHECK(options->servers <= LOCAL_SERVERS && options->coordinators <= LOCAL_COORDINATORS);
    *l = (struct local){.options = *options};
    *missing = false;
    struct agent_options agent = {.name = options->name,
                                  .hold_folder = options->run_dir,
                                  .restart_ms = options->restart_ms,
                                  .context = l,
                                  .changed = write_children};
    if (agent_open(&agent, &l->agent) != TERRANE_ERR_OK) return fail(l, "no agent: out of memory or descriptors");
    if (!start_redis(l, missing) || !place_coordinators(l)) return false;
    if (agent_tell(l->agent, l->queries) != TERRANE_ERR_OK) return fail(l, "no socket for %s", l->queries);
    return start_servers(l);
}

const struct ward *local_dead(struct local *l)
{
    for (uint32_t i = 0; i < agent_count(l->agent); i++) {
        struct ward *w = agent_ward(l->agent, i);
        if (child_ended(&w->child)) return w;
    }
    return NULL;
}

/* Ending */

static int left_ms(uint64_t until_us)
{
    uint64_t now_us = loop_now_us();
    return until_us > now_us ? (int)((until_us - now_us) / 1000) + 1 : 0;
}

static void ask_to_stop(struct ward *w)
{
    if (w == NULL) return;
    child_signal(&w->child, SIGTERM);
    child_signal(&w->child, SIGCONT); /* a stopped one could not hear it */
}

static void await_end(const struct local *l, struct ward *w, uint64_t until_us)
{
    if (w == NULL) return;
    if (!child_wait(&w->child, left_ms(until_us))) {
        fprintf(stderr, "%s: %s does not end by itself: killed\n", l->options.name, w->options.child.name);
        child_signal(&w->child, SIGKILL);
        child_wait(&w->child, 1000);
    }
    child_close(&w->child);
}

void local_stop(struct local *l, int patience_ms)
{
    uint64_t until_us = loop_now_us() + (uint64_t)patience_ms * 1000;
    if (l->agent == NULL) return;
    for (uint32_t i = 0; i < LOCAL_COORDINATORS; i++) ask_to_stop(l->coordinators[i]);
    for (uint32_t i = 0; i < LOCAL_COORDINATORS; i++) await_end(l, l->coordinators[i], until_us);
    for (uint32_t i = 0; i < LOCAL_SERVERS; i++) ask_to_stop(l->servers[i]);
    for (uint32_t i = 0; i < LOCAL_SERVERS; i++) await_end(l, l->servers[i], until_us);
    ask_to_stop(l->redis);
    await_end(l, l->redis, until_us);
}

void local_report_cpu(const struct local *l)
{
    fprintf(stderr, "CPU seconds:");
    for (uint32_t i = 0; i < agent_count(l->agent); i++) {
        const struct ward *w = agent_ward(l->agent, i);
        fprintf(stderr, " %s %.1f", w->options.child.name, w->child.cpu_s);
    }
    fputc('\n', stderr);
}
