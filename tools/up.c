/* terrane up: a whole cluster on this machine: Redis, the coordinator, cell servers, bots; and their orderly end.
 *
 * Order: start what others need first; each is ready when it says so (its ready line; the coordinator's status), never
 * after a delay. Stop bots first, so that their last check finds a whole cluster, then servers, coordinator, Redis. */
#include "io/loop.h"
#include "io/program.h"
#include "tools/child.h"
#include "tools/cluster.h"
#include "tools/command.h"
#include "tools/places.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME          "terrane up"
#define SERVERS       64u
#define CHILDREN      (SERVERS + 3)
#define START_MS      15000
#define USUAL_PORT    7070
#define STOP_MS       3000
#define LAST_CHECK_MS 60000 /* the bots' last calm, once they are told to stop */
#define LAST_WORDS_MS 20000 /* the same when a server has died under them */

static struct flags {
    const char *crowds, *run_dir;
    uint64_t servers, bots, seed, split_depth, depth, feeds, gateways, port, events, queries, states, tick_hz, window,
        patience;
    double seconds, radius, radius_max, speed, band, calm_every, hysteresis;
    uint32_t workload, view_mode, updates;
    bool json;
} flags;

static const char *const updates[] = {"auto", "on", "off", NULL};
static const char *const workloads[] = {"walk", "ride", "hotspot", "line", "circle", "teleport", "mix", NULL};
static const char *const modes[] = {"radius", "block", NULL};

#define UINT_FIELD(flag, member, otherwise, least, most, text)                                                         \
    {                                                                                                                  \
        .name = flag, .kind = CONFIG_UINT, .value = &flags.member, .preset = otherwise, .min = least, .max = most,     \
        .help = text                                                                                                   \
    }
#define DOUBLE_FIELD(flag, member, otherwise, least, most, of, text)                                                   \
    {                                                                                                                  \
        .name = flag, .kind = CONFIG_DOUBLE, .value = &flags.member, .preset = otherwise, .min = least, .max = most,   \
        .unit = of, .help = text                                                                                       \
    }
#define TEXT_FIELD(flag, member, otherwise, of, text)                                                                  \
    {                                                                                                                  \
        .name = flag, .kind = CONFIG_TEXT, .value = &flags.member, .preset = otherwise, .unit = of, .help = text       \
    }
#define BOOL_FIELD(flag, member, otherwise, text)                                                                      \
    {                                                                                                                  \
        .name = flag, .kind = CONFIG_BOOL, .value = &flags.member, .preset = otherwise, .help = text                   \
    }

static const struct config_field fields[] = {
    UINT_FIELD("servers", servers, "4", 1, SERVERS, "Cell servers."),
    UINT_FIELD("bots", bots, "10000", 0, 200000, "Bots that move, look and check; 0: none."),
    DOUBLE_FIELD("for", seconds, "0", 0, 1e9, "SECONDS", "How long bots move; 0: until SIGINT or SIGTERM."),
    UINT_FIELD("seed", seed, "1", 0, 0, "Who is where and does what."),
    BOOL_FIELD("json", json, "0", "The bots' JSON object as the last line of standard output."),
    {.name = "workload",
     .kind = CONFIG_CHOICE,
     .value = &flags.workload,
     .preset = "mix",
     .choices = workloads,
     .help = "What bots do; see terrane bots --help."},
    TEXT_FIELD("crowds", crowds, "", "DIR", "Recorded crowds for the bots; none: a made-up one."),
    DOUBLE_FIELD("speed", speed, "1", 0.01, 100, "FACTOR", "All paths are so much longer at the same time."),
    DOUBLE_FIELD("band", band, "60", 0, 1e9, "M",
                 "Lays crowds within M of the middle lines, where servers meet: many hand-offs; 0: evenly."),
    DOUBLE_FIELD("radius", radius, "20", 0, 1e6, "M", "How far bots see."),
    DOUBLE_FIELD("calm-every", calm_every, "10", 0.5, 1e9, "SECONDS", "Between two checks against brute force."),
    UINT_FIELD("window", window, "1000", 100, 60000, "Milliseconds of delay that are forgiven while all move."),
    UINT_FIELD("patience", patience, "10000", 100, 600000,
               "Milliseconds in which all must be right once all stand still."),
    UINT_FIELD("gateways", gateways, "2", 1, 16, "Gateway sessions that share the bots."),
    UINT_FIELD("events", events, "5", 0, 50, "Map events a second."),
    UINT_FIELD("states", states, "20", 0, 10000, "New states a second."),
    UINT_FIELD("queries", queries, "20", 0, 100000, "Queries asked in each calm."),
    {.name = "updates",
     .kind = CONFIG_CHOICE,
     .value = &flags.updates,
     .preset = "auto",
     .choices = updates,
     .help = "Bots take every update of every view; auto: up to 2000 bots."},
    UINT_FIELD("depth", depth, "5", 1, 20, "The world's side has 2^N cells of 50 m."),
    UINT_FIELD("split-depth", split_depth, "3", 0, 8, "All regions of that depth are leaves: 4^N."),
    DOUBLE_FIELD("radius-max", radius_max, "30", 0, 1e6, "M", "The world's largest view radius."),
    DOUBLE_FIELD("hysteresis", hysteresis, "3", 0, 1e6, "M",
                 "How far beyond its radius an observer loses what it saw."),
    {.name = "view-mode",
     .kind = CONFIG_CHOICE,
     .value = &flags.view_mode,
     .preset = "radius",
     .choices = modes,
     .help = "Views by radius or by 3x3 cells."},
    UINT_FIELD("tick-hz", tick_hz, "20", 10, 60, "Ticks a second."),
    UINT_FIELD("feeds", feeds, "4", 1, 8, "Feeds of each cell server."),
    UINT_FIELD("first-port", port, "0", 0, 65533, "The coordinator's inbox; queries and map/ at the next two; 0: any."),
    TEXT_FIELD("run-dir", run_dir, "", "DIR",
               "Logs and Redis's files; none: a temporary one, removed if all went well."),
};

static struct up {
    struct child children[CHILDREN]; /* redis, coordinator, servers; bots last */
    uint32_t count;
    struct child *redis, *coordinator, *bots;
    char run_dir[256], programs[512];
    char inbox[LIMIT_URL], query[LIMIT_URL], redis_address[64];
    bool temporary, failed;
    char result[CHILD_LINE]; /* the bots' last line */
} up;

static volatile bool stop;

static void stop_all(void);

/* Ends with a message; whatever runs is stopped first. */
static _Noreturn void give_up(enum program_exit code, const char *format, ...) __attribute__((format(printf, 2, 3)));
static _Noreturn void give_up(enum program_exit code, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s: ", NAME);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (up.run_dir[0] != '\0') fprintf(stderr, "; logs are in %s", up.run_dir);
    fputc('\n', stderr);
    stop_all();
    _exit((int)code);
}

/* Starting */

static void make_run_dir(void)
{
    if (flags.run_dir[0] != '\0') {
        snprintf(up.run_dir, sizeof up.run_dir, "%s", flags.run_dir);
        if (mkdir(up.run_dir, 0755) != 0 && errno != EEXIST) {
            up.run_dir[0] = '\0';
            give_up(EXIT_USAGE, "--run-dir: \"%s\" can't be made: %s", flags.run_dir, strerror(errno));
        }
        return;
    }
    const char *base = getenv("TMPDIR");
    snprintf(up.run_dir, sizeof up.run_dir, "%s/terrane-up-XXXXXX", base != NULL ? base : "/tmp");
    if (mkdtemp(up.run_dir) == NULL) {
        up.run_dir[0] = '\0';
        give_up(EXIT_USAGE, "no temporary folder can be made: %s; choose one with --run-dir", strerror(errno));
    }
    up.temporary = true;
}

static struct child *start(const char *name, char *const *argv, bool own_log)
{
    char log[400];
    struct child *c = &up.children[up.count];
    snprintf(log, sizeof log, "%s/%s.log", up.run_dir, name);
    if (!child_start(c, name, argv, own_log ? log : NULL))
        give_up(EXIT_MISSING, "%s can't be started: %s", name, strerror(errno));
    up.count++;
    return c;
}

static void expect_ready(struct child *c)
{
    char how[80];
    if (child_expect(c, "ready ", START_MS)) return;
    child_wait(c, 100);
    child_describe(c, how, sizeof how);
    give_up(EXIT_NOT_HELD, "%s did not become ready: %s; see %s/%s.log", c->name, how, up.run_dir, c->name);
}

/* Text arguments that live as long as the process. */
static char *format(const char *with, ...) __attribute__((format(printf, 1, 2)));
static char *format(const char *with, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, with);
    int size = vasprintf(&text, with, arguments);
    va_end(arguments);
    if (size < 0) give_up(EXIT_NOT_HELD, "out of memory");
    return text;
}

static void start_redis(void)
{
    uint16_t port = places_free_port();
    char *argv[] = {(char *)"redis-server",
                    (char *)"--port",
                    format("%u", port),
                    (char *)"--bind",
                    (char *)"127.0.0.1",
                    (char *)"--save",
                    (char *)"",
                    (char *)"--appendonly",
                    (char *)"no",
                    (char *)"--dir",
                    up.run_dir,
                    (char *)"--logfile",
                    format("%s/redis.log", up.run_dir),
                    NULL};
    if (!places_in_path("redis-server")) give_up(EXIT_MISSING, "redis-server is missing: apt-get install redis-server");
    up.redis = start("redis", argv, true);
    snprintf(up.redis_address, sizeof up.redis_address, "127.0.0.1:%u", port);
    uint64_t until_us = loop_now_us() + START_MS * UINT64_C(1000);
    while (!places_listens(port)) {
        if (child_ended(up.redis) || loop_now_us() >= until_us)
            give_up(EXIT_NOT_HELD, "redis-server does not listen at %s", up.redis_address);
        (void)poll(NULL, 0, 5);
    }
}

static void run_coordinator(uint16_t port)
{
    if (port == 0) give_up(EXIT_NOT_HELD, "no three free ports in a row; choose them with --first-port");
    snprintf(up.inbox, sizeof up.inbox, "tcp://127.0.0.1:%u", port);
    snprintf(up.query, sizeof up.query, "tcp://127.0.0.1:%u", port + 1);
    char *argv[] = {format("%s/terrane-coordinator", up.programs),
                    format("--inbox=%s", up.inbox),
                    format("--redis=%s", up.redis_address),
                    format("--expect-servers=%" PRIu64, flags.servers),
                    format("--depth=%" PRIu64, flags.depth),
                    format("--resolution-bits=%" PRIu64, flags.depth + 13),
                    format("--split-depth=%" PRIu64, flags.split_depth),
                    format("--radius-max=%g", flags.radius_max),
                    format("--hysteresis=%g", flags.hysteresis),
                    format("--view-mode=%s", modes[flags.view_mode]),
                    format("--tick-hz=%" PRIu64, flags.tick_hz),
                    NULL};
    up.coordinator = start("coordinator", argv, true);
}

/* The ports at which tools look by themselves, if they are free; they may be taken between the look and the use. */
static void start_coordinator(void)
{
    bool usual = flags.port == 0 && places_ports_free(USUAL_PORT, 3);
    run_coordinator(flags.port != 0 ? (uint16_t)flags.port : usual ? USUAL_PORT : places_free_ports(3));
    if (flags.port == 0 && !child_expect(up.coordinator, "ready ", START_MS) && child_wait(up.coordinator, 0)) {
        child_close(up.coordinator);
        up.count--;
        run_coordinator(places_free_ports(3));
        expect_ready(up.coordinator);
    } else if (flags.port != 0) {
        expect_ready(up.coordinator);
    }
}

static void start_servers(void)
{
    struct child *first = &up.children[up.count];
    for (uint64_t i = 1; i <= flags.servers; i++) {
        char *name = format("cell-%" PRIu64, i);
        char *argv[] = {format("%s/terrane-cellserver", up.programs),
                        format("--coordinator=%s", up.inbox),
                        format("--name=%s", name),
                        format("--feeds=%" PRIu64, flags.feeds),
                        format("--entities=%" PRIu64, flags.bots / flags.servers * 2 + 4096),
                        NULL};
        start(name, argv, true);
    }
    for (uint64_t i = 0; i < flags.servers; i++) expect_ready(&first[i]);
}

/* The first child that has ended; NULL: none. Bots may end. */
static struct child *dead_child(void)
{
    for (uint32_t i = 0; i < up.count; i++)
        if (&up.children[i] != up.bots && child_ended(&up.children[i])) return &up.children[i];
    return NULL;
}

static void report_death(const struct child *c)
{
    char how[80];
    child_describe(c, how, sizeof how);
    fprintf(stderr, "%s: %s died: %s; see %s/%s.log\n", NAME, c->name, how, up.run_dir, c->name);
    up.failed = true;
}

/* The coordinator has stored a map in which every region has a server. */
static void await_map(void)
{
    struct cluster cluster;
    uint64_t until_us = loop_now_us() + START_MS * UINT64_C(1000);
    cluster_open(&cluster, up.query);
    for (;;) {
        enum terrane_error error = cluster_refresh(&cluster, 500);
        if (error == TERRANE_ERR_OK && cluster_ready(&cluster, flags.servers)) break;
        struct child *dead = dead_child();
        if (dead != NULL) report_death(dead);
        if (dead != NULL || stop || loop_now_us() >= until_us)
            give_up(EXIT_NOT_HELD, "the cluster did not become ready: %s",
                    stop           ? "told to stop"
                    : dead != NULL ? "a process died"
                                   : "regions are without a server");
        (void)poll(NULL, 0, 50);
    }
    const struct cluster_server *first = &cluster.servers[0];
    uint32_t feeds = document_member(&cluster.map, first->listed, "feeds");
    const char *feed = document_first(&cluster.map, feeds) != DOCUMENT_NONE
                           ? cluster.map.values[document_first(&cluster.map, feeds)].text
                           : "";
    fprintf(stderr,
            "coordinator  %s   queries %s   map feed tcp://127.0.0.1:%u\n"
            "redis        %s\n"
            "a feed       %s (%s)\n"
            "look:        %s/terrane status --coordinator %s\n"
            "             %s/terrane watch --coordinator %s r/03\n"
            "             nngcat --sub0 --dial %s --subscribe r/ --hex\n"
            "             redis-cli -p %s hgetall 'terrane:{terrane}:map'\n"
            "logs         %s\n",
            up.inbox, up.query, (unsigned)strtoul(strrchr(up.query, ':') + 1, NULL, 10) + 1, up.redis_address, feed,
            first->name, up.programs, up.inbox, up.programs, up.inbox, feed, strchr(up.redis_address, ':') + 1,
            up.run_dir);
    cluster_close(&cluster);
}

static void start_bots(void)
{
    char *argv[] = {format("%s/terrane", up.programs),
                    (char *)"bots",
                    (char *)"--json",
                    format("--coordinator=%s", up.inbox),
                    format("--query=%s", up.query),
                    format("--bots=%" PRIu64, flags.bots),
                    format("--for=%.17g", flags.seconds),
                    format("--seed=%" PRIu64, flags.seed),
                    format("--workload=%s", workloads[flags.workload]),
                    format("--crowds=%s", flags.crowds),
                    format("--speed=%.17g", flags.speed),
                    format("--band=%.17g", flags.band),
                    format("--radius=%.17g", flags.radius),
                    format("--calm-every=%.17g", flags.calm_every),
                    format("--window=%" PRIu64, flags.window),
                    format("--patience=%" PRIu64, flags.patience),
                    format("--gateways=%" PRIu64, flags.gateways),
                    format("--events=%" PRIu64, flags.events),
                    format("--queries=%" PRIu64, flags.queries),
                    format("--states=%" PRIu64, flags.states),
                    format("--updates=%s", updates[flags.updates]),
                    NULL};
    up.bots = start("bots", argv, false);
}

/* Running */

static void read_bots(void)
{
    while (up.bots != NULL && child_read(up.bots)) snprintf(up.result, sizeof up.result, "%s", up.bots->line);
}

/* Until the bots end, somebody dies, or a signal comes. */
static void watch(void)
{
    while (!stop) {
        struct pollfd waiting = {.fd = up.bots != NULL ? up.bots->out : -1, .events = POLLIN};
        (void)poll(&waiting, 1, 100);
        read_bots();
        if (up.bots != NULL && child_ended(up.bots)) return;
        struct child *dead = dead_child();
        if (dead == NULL) continue;
        report_death(dead);
        return;
    }
}

/* The bots' last check takes its time; its result is wanted also after a signal. */
static void end_bots(void)
{
    if (up.bots == NULL) return;
    uint64_t until_us = loop_now_us() + (up.failed ? LAST_WORDS_MS : LAST_CHECK_MS) * UINT64_C(1000);
    child_signal(up.bots, SIGTERM);
    while (!child_ended(up.bots) && loop_now_us() < until_us) {
        read_bots();
        (void)poll(NULL, 0, 20);
    }
    read_bots();
}

static int left_ms(uint64_t until_us)
{
    uint64_t now_us = loop_now_us();
    return until_us > now_us ? (int)((until_us - now_us) / 1000) + 1 : 0;
}

/* Everybody who still runs: asked first, then ended. */
static void stop_all(void)
{
    uint64_t until_us = loop_now_us() + STOP_MS * UINT64_C(1000);
    for (uint32_t i = up.count; i-- > 0;) {
        /* The last started first; Redis and the coordinator go when the servers are gone. */
        if (i == 1)
            for (uint32_t j = 2; j < up.count; j++) child_wait(&up.children[j], left_ms(until_us));
        child_signal(&up.children[i], SIGTERM);
    }
    for (uint32_t i = 0; i < up.count; i++) {
        struct child *c = &up.children[i];
        if (!child_wait(c, left_ms(until_us))) {
            fprintf(stderr, "%s: %s does not end by itself: killed\n", NAME, c->name);
            child_signal(c, SIGKILL);
            child_wait(c, 1000);
        }
        child_close(c);
    }
}

static void report_cpu(void)
{
    fprintf(stderr, "CPU seconds:");
    for (uint32_t i = 0; i < up.count; i++) fprintf(stderr, " %s %.1f", up.children[i].name, up.children[i].cpu_s);
    fputc('\n', stderr);
}

static void remove_run_dir(void)
{
    DIR *dir = opendir(up.run_dir);
    if (dir == NULL) return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[600];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", up.run_dir, entry->d_name);
        unlink(path);
    }
    closedir(dir);
    rmdir(up.run_dir);
}

/* The bots' exit code, unless somebody died. */
static int outcome(void)
{
    char how[80];
    if (up.bots == NULL) return up.failed ? EXIT_NOT_HELD : EXIT_WELL;
    child_describe(up.bots, how, sizeof how);
    if (!up.bots->ended || !WIFEXITED(up.bots->status)) {
        fprintf(stderr, "%s: the bots did not finish: %s\n", NAME, how);
        return EXIT_NOT_HELD;
    }
    int code = WEXITSTATUS(up.bots->status);
    return code == EXIT_WELL && up.failed ? EXIT_NOT_HELD : code;
}

int command_up(int argc, char **argv)
{
    command_configure(
        NAME,
        "Runs Redis, a coordinator, cell servers and bots that check what they see, and stops them again.\n"
        "The world is smaller than a coordinator's default, and crowds lie near its middle lines, so that\n"
        "thousands of entities change their server within half a minute.",
        NULL, fields, sizeof fields / sizeof *fields, argc, argv, NULL);
    if (flags.split_depth > flags.depth)
        program_fail(NAME, EXIT_USAGE, "--split-depth %" PRIu64 " is deeper than --depth %" PRIu64, flags.split_depth,
                     flags.depth);
    if (flags.depth + 13 > LIMIT_RESOLUTION_BITS)
        program_fail(NAME, EXIT_USAGE, "--depth %" PRIu64 ": at most %u here", flags.depth, LIMIT_RESOLUTION_BITS - 13);
    if (!places_programs(up.programs, sizeof up.programs))
        program_fail(NAME, EXIT_MISSING, "terrane-coordinator and terrane-cellserver are not beside this program (%s)",
                     up.programs);
    command_heed_signals(&stop);
    make_run_dir();
    start_redis();
    start_coordinator();
    start_servers();
    await_map();
    if (flags.bots > 0) start_bots();
    watch();
    end_bots();
    int code = outcome();
    stop_all();
    report_cpu();
    if (code == EXIT_WELL && up.temporary)
        remove_run_dir();
    else
        fprintf(stderr, "%s: logs are in %s\n", NAME, up.run_dir);
    if (flags.json && up.result[0] != '\0')
        puts(up.result);
    else if (!flags.json && up.bots != NULL)
        puts(code == EXIT_WELL ? "all that was checked holds" : "something is wrong: see above");
    return code;
}
