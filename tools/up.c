/* terrane up: a whole cluster on this machine (local.h) with bots, kept running until the bots or a signal end it.
 *
 * Who dies is started again: a death is no failure as long as what the bots check holds. Bots are stopped first, so
 * that their last check finds a whole cluster. */
#include "io/loop.h"
#include "io/program.h"
#include "tools/cluster.h"
#include "tools/command.h"
#include "tools/local.h"
#include "tools/places.h"

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
#define READY_MS      15000
#define STOP_MS       3000
#define LAST_CHECK_MS 60000 /* the bots' last calm, once they are told to stop */

static struct flags {
    const char *crowds, *run_dir;
    uint64_t servers, coordinators, bots, churn, seed, split_depth, depth, feeds, gateways, port, events, queries,
        states, tick_hz, window, patience, lease_ms, restart_ms, first_group;
    double seconds, radius, radius_max, speed, band, calm_every, hysteresis;
    uint32_t workload, view_mode, updates;
    bool deaths, standbys, json;
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
    UINT_FIELD("servers", servers, "4", 1, LOCAL_SERVERS, "Cell servers."),
    UINT_FIELD("coordinators", coordinators, "1", 1, LOCAL_COORDINATORS, "Coordinators: one leads, the others wait."),
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
    UINT_FIELD("churn", churn, "0", 0, 10000, "Bots a second that leave the world and enter it again."),
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
    UINT_FIELD("lease-ms", lease_ms, "250", 100, 10000,
               "A server that is silent so long is replaced, unless its end is seen before."),
    UINT_FIELD("first-group", first_group, "0", 0, 4000000000,
               "Each server runs under a group id of its own from here on, so that a packet filter tells them apart: "
               "for trials, as root; 0: no."),
    BOOL_FIELD("standbys", standbys, "1", "Each region has a live copy on another server; --no-standbys: none has."),
    BOOL_FIELD("deaths", deaths, "0", "Somebody will kill processes: passed on to the bots."),
    UINT_FIELD("restart-ms", restart_ms, "100", 1, 5000,
               "Who dies is started again after so long; twice as long each time it dies young, up to 5 s."),
    UINT_FIELD("feeds", feeds, "4", 1, 8, "Feeds of each cell server."),
    UINT_FIELD("first-port", port, "0", 0, 65533, "The coordinator's inbox; queries and map/ at the next two; 0: any."),
    TEXT_FIELD("run-dir", run_dir, "", "DIR",
               "Logs, Redis's files, children.json; none: a temporary one, removed if all went well. While a file\n"
               "hold-NAME is in it, NAME is not started again."),
};

static struct up {
    struct local local;
    struct child bots; /* pid 0: none */
    char run_dir[256], programs[512];
    bool temporary;
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

static void start_cluster(void)
{
    bool missing;
    struct local_options options = {.name = NAME,
                                    .programs = up.programs,
                                    .run_dir = up.run_dir,
                                    .servers = flags.servers,
                                    .coordinators = flags.coordinators,
                                    .port = flags.port,
                                    .depth = flags.depth,
                                    .split_depth = flags.split_depth,
                                    .tick_hz = flags.tick_hz,
                                    .feeds = flags.feeds,
                                    .entities = flags.bots / flags.servers * 2 + 4096,
                                    .lease_ms = flags.lease_ms,
                                    .restart_ms = flags.restart_ms,
                                    .no_standbys = !flags.standbys,
                                    .first_group = flags.first_group,
                                    .radius_max = flags.radius_max,
                                    .hysteresis = flags.hysteresis,
                                    .view_mode = modes[flags.view_mode]};
    if (local_start(&up.local, &options, &missing)) return;
    give_up(missing ? EXIT_MISSING : EXIT_NOT_HELD, "%s", up.local.fault);
}

static void print_places(struct cluster *cluster)
{
    const struct cluster_server *first = &cluster->servers[0];
    uint32_t feeds = document_member(&cluster->map, first->listed, "feeds");
    const char *feed = document_first(&cluster->map, feeds) != DOCUMENT_NONE
                           ? cluster->map.values[document_first(&cluster->map, feeds)].text
                           : "";
    const char *inbox = up.local.inboxes, *query = up.local.queries;
    fprintf(stderr,
            "console      %s/\n"
            "coordinator  %s   queries %s   map feed tcp://127.0.0.1:%u\n"
            "redis        %s\n"
            "a feed       %s (%s)\n"
            "look:        %s/terrane status --coordinator %s\n"
            "             %s/terrane watch --coordinator %s r/03\n"
            "             nngcat --sub0 --dial %s --subscribe r/ --hex\n"
            "             redis-cli -p %s hgetall 'terrane:{terrane}:map'\n"
            "logs         %s\n",
            document_text(&cluster->map, 0, "http"), inbox, query,
            (unsigned)strtoul(strchr(query + sizeof "tcp:", ':') + 1, NULL, 10) + 1, up.local.redis_address, feed,
            first->name, up.programs, inbox, up.programs, inbox, feed, strchr(up.local.redis_address, ':') + 1,
            up.run_dir);
}

/* A coordinator has stored a map in which every region has a server. */
static void await_map(void)
{
    struct cluster cluster;
    uint64_t until_us = loop_now_us() + READY_MS * UINT64_C(1000);
    cluster_open(&cluster, up.local.queries);
    for (;;) {
        enum terrane_error error = cluster_refresh(&cluster, 500);
        if (error == TERRANE_ERR_OK && cluster_ready(&cluster, flags.servers)) break;
        const struct ward *dead = local_dead(&up.local);
        if (dead != NULL || stop || loop_now_us() >= until_us)
            give_up(EXIT_NOT_HELD, "the cluster did not become ready: %s%s",
                    stop           ? "told to stop"
                    : dead != NULL ? dead->options.child.name
                                   : "regions are without a server",
                    dead != NULL ? " died" : "");
        (void)poll(NULL, 0, 50);
    }
    print_places(&cluster);
    cluster_close(&cluster);
}

static void start_bots(void)
{
    char *argv[] = {format("%s/terrane", up.programs),
                    (char *)"bots",
                    (char *)"--json",
                    format("--coordinator=%s", up.local.inboxes),
                    format("--query=%s", up.local.queries),
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
                    format("--churn=%" PRIu64, flags.churn),
                    format("--updates=%s", updates[flags.updates]),
                    flags.deaths ? (char *)"--deaths" : NULL,
                    NULL};
    if (!child_start(&up.bots, &(struct child_options){.name = "bots", .argv = argv}))
        give_up(EXIT_MISSING, "the bots can't be started: %s", strerror(errno));
}

/* Running */

static int bots_fd(void)
{
    return up.bots.pid != 0 ? up.bots.out : -1;
}

static bool bots_run(void)
{
    while (up.bots.pid != 0 && child_read(&up.bots)) snprintf(up.result, sizeof up.result, "%s", up.bots.line);
    return up.bots.pid != 0 && !child_ended(&up.bots);
}

/* Until the bots end or a signal comes. */
static void watch(void)
{
    while (!stop && (up.bots.pid == 0 || bots_run())) agent_wait(up.local.agent, bots_fd(), 100);
}

/* The bots' last check takes its time; its result is wanted also after a signal. Who dies meanwhile still comes back.
 */
static void end_bots(void)
{
    uint64_t until_us = loop_now_us() + LAST_CHECK_MS * UINT64_C(1000);
    if (up.bots.pid == 0) return;
    child_signal(&up.bots, SIGTERM);
    while (bots_run() && loop_now_us() < until_us) agent_wait(up.local.agent, bots_fd(), 20);
    (void)bots_run(); /* what it said last */
}

static void stop_all(void)
{
    child_signal(&up.bots, SIGTERM);
    if (up.bots.pid != 0 && !child_wait(&up.bots, STOP_MS)) {
        fprintf(stderr, "%s: the bots do not end by themselves: killed\n", NAME);
        child_signal(&up.bots, SIGKILL);
        child_wait(&up.bots, 1000);
    }
    local_stop(&up.local, STOP_MS);
}

/* The bots' exit code. */
static int outcome(void)
{
    char how[80];
    if (up.bots.pid == 0) return EXIT_WELL;
    child_describe(&up.bots, how, sizeof how);
    if (up.bots.ended && WIFEXITED(up.bots.status)) return WEXITSTATUS(up.bots.status);
    fprintf(stderr, "%s: the bots did not finish: %s\n", NAME, how);
    return EXIT_NOT_HELD;
}

/* The bots' object with what only their parent knows. */
static void print_result(void)
{
    size_t size = strlen(up.result);
    if (size == 0 || up.result[size - 1] != '}') return;
    printf("%.*s,\"deaths\":%" PRIu64 "}\n", (int)size - 1, up.result, agent_deaths(up.local.agent));
}

int command_up(int argc, char **argv)
{
    command_configure(
        NAME,
        "Runs Redis, a coordinator, cell servers and bots that check what they see, and stops them again. Who of\n"
        "them dies (but the bots) is started again; deaths are counted.\n"
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
    start_cluster();
    await_map();
    if (flags.bots > 0) start_bots();
    watch();
    end_bots();
    int code = outcome();
    stop_all();
    fprintf(stderr, "CPU seconds: bots %.1f\n", up.bots.cpu_s);
    local_report_cpu(&up.local);
    if (code == EXIT_WELL && up.temporary)
        places_remove_folder(up.run_dir);
    else
        fprintf(stderr, "%s: logs are in %s\n", NAME, up.run_dir);
    if (flags.json)
        print_result();
    else if (up.bots.pid != 0)
        puts(code == EXIT_WELL ? "all that was checked holds" : "something is wrong: see above");
    return code;
}
