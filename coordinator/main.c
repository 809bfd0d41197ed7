/* terrane-coordinator: the coordinator's core tied to nng, libev, Redis and this process's clock. */
#include "console/console.h"
#include "coordinator/coordinator.h"
#include "io/probe.h"
#include "io/program.h"
#include "io/sink.h"
#include "io/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "terrane-coordinator"

static struct flags {
    const char *inbox, *query, *feed, *advertise, *http, *http_advertise, *consoles, *name, *world, *leaves;
    const char *redis, *redis_user, *redis_password, *sentinel_user, *sentinel_password;
    bool storeless, standbys, balance;
    double cell_size, origin_x, origin_y, radius_max, hysteresis, handoff_hysteresis, z_range;
    uint64_t depth, resolution_bits, tick_hz, split_depth, expect_servers, lease_ms, leader_lease_ms;
    uint32_t view_mode, edge, log_format, log_level;
} flags;

static const char *const modes[] = {"radius", "block", NULL}; /* as enum view_mode */
static const char *const edges[] = {"refuse", "clamp", NULL}; /* as enum world_edge */
static const struct config_field fields[] = {
    {.name = "inbox",
     .kind = CONFIG_TEXT,
     .value = &flags.inbox,
     .preset = "tcp://127.0.0.1:7070",
     .unit = "URL",
     .help = "Where servers and gateways reach it; port 0: any."},
    {.name = "query",
     .kind = CONFIG_TEXT,
     .value = &flags.query,
     .preset = "",
     .unit = "URL",
     .help = "Where tools ask; none: the inbox's host at the next port."},
    {.name = "feed",
     .kind = CONFIG_TEXT,
     .value = &flags.feed,
     .preset = "",
     .unit = "URL",
     .help = "Where map/ is published; none: the inbox's host at the second next port."},
    {.name = "advertise",
     .kind = CONFIG_TEXT,
     .value = &flags.advertise,
     .preset = "",
     .unit = "HOST",
     .help = "The host that others dial, if it is not the one that is listened on."},
    {.name = "http",
     .kind = CONFIG_TEXT,
     .value = &flags.http,
     .preset = PROBE_AUTO,
     .unit = "HOST:PORT",
     .help = "Where the console, /metrics, /healthz and /readyz are; auto: 127.0.0.1:7080, or any free port if that is "
             "taken; none: nowhere."},
    {.name = "http-advertise",
     .kind = CONFIG_TEXT,
     .value = &flags.http_advertise,
     .preset = "",
     .unit = "URL",
     .help = "Where browsers reach this coordinator's console, if not there; another one's page links to it."},
    {.name = "consoles",
     .kind = CONFIG_TEXT,
     .value = &flags.consoles,
     .preset = "",
     .unit = "URL",
     .help = "Where browsers reach all coordinators' consoles, separated by commas: a page goes on at another one when "
             "its own is gone."},
    {.name = "name",
     .kind = CONFIG_TEXT,
     .value = &flags.name,
     .preset = "coordinator",
     .unit = "NAME",
     .help = "This coordinator's name."},
    {.name = "world",
     .kind = CONFIG_TEXT,
     .value = &flags.world,
     .preset = "terrane",
     .unit = "NAME",
     .help = "The world's name; the store keeps one map a world."},
    {.name = "redis",
     .kind = CONFIG_TEXT,
     .value = &flags.redis,
     .preset = "127.0.0.1:6379",
     .unit = "ADDRESS",
     .help = "The Redis that holds the map: HOST:PORT, unix:PATH or redis-sentinel://HOST:PORT,.../MASTER."},
    {.name = "redis-user",
     .kind = CONFIG_TEXT,
     .value = &flags.redis_user,
     .preset = "",
     .unit = "NAME",
     .help = "Redis user, if not the default one."},
    {.name = "redis-password",
     .kind = CONFIG_TEXT,
     .value = &flags.redis_password,
     .preset = "",
     .help = "Its password; better given as the variable, which other users do not see."},
    {.name = "sentinel-user",
     .kind = CONFIG_TEXT,
     .value = &flags.sentinel_user,
     .preset = "",
     .unit = "NAME",
     .help = "The sentinels' user, if not the default one."},
    {.name = "sentinel-password",
     .kind = CONFIG_TEXT,
     .value = &flags.sentinel_password,
     .preset = "",
     .help = "Their password; none: they ask for none."},
    {.name = "storeless",
     .kind = CONFIG_BOOL,
     .value = &flags.storeless,
     .preset = "0",
     .help = "Keep the map in memory only: for trials, a restart forgets it."},
    {.name = "cell-size",
     .kind = CONFIG_DOUBLE,
     .value = &flags.cell_size,
     .preset = "50",
     .min = 0.001,
     .max = 1e6,
     .unit = "M",
     .help = "A cell's side."},
    {.name = "depth",
     .kind = CONFIG_UINT,
     .value = &flags.depth,
     .preset = "8",
     .min = 1,
     .max = LIMIT_WORLD_DEPTH,
     .help = "The world's side has 2^N cells."},
    {.name = "resolution-bits",
     .kind = CONFIG_UINT,
     .value = &flags.resolution_bits,
     .preset = "21",
     .min = 1,
     .max = LIMIT_RESOLUTION_BITS,
     .help = "Positions are N-bit integers over the world's side; at least --depth."},
    {.name = "origin-x",
     .kind = CONFIG_DOUBLE,
     .value = &flags.origin_x,
     .preset = "0",
     .unit = "M",
     .help = "West edge of the world."},
    {.name = "origin-y",
     .kind = CONFIG_DOUBLE,
     .value = &flags.origin_y,
     .preset = "0",
     .unit = "M",
     .help = "South edge of the world."},
    {.name = "view-mode",
     .kind = CONFIG_CHOICE,
     .value = &flags.view_mode,
     .preset = "radius",
     .choices = modes,
     .help = "An observer sees what is within its radius, or the 3x3 cells around it."},
    {.name = "radius-max",
     .kind = CONFIG_DOUBLE,
     .value = &flags.radius_max,
     .preset = "200",
     .min = 0,
     .max = 1e9,
     .unit = "M",
     .help = "The largest view radius."},
    {.name = "hysteresis",
     .kind = CONFIG_DOUBLE,
     .value = &flags.hysteresis,
     .preset = "5",
     .min = 0,
     .max = 1e9,
     .unit = "M",
     .help = "How far beyond its radius an observer loses what it saw."},
    {.name = "z-range",
     .kind = CONFIG_DOUBLE,
     .value = &flags.z_range,
     .preset = "-1",
     .min = -1,
     .max = 1e9,
     .unit = "M",
     .help = "The largest height difference that is seen across; -1: any."},
    {.name = "edge",
     .kind = CONFIG_CHOICE,
     .value = &flags.edge,
     .preset = "refuse",
     .choices = edges,
     .help = "What happens to a position outside the world."},
    {.name = "tick-hz",
     .kind = CONFIG_UINT,
     .value = &flags.tick_hz,
     .preset = "20",
     .min = 10,
     .max = 60,
     .help = "Ticks a second of every cell server."},
    {.name = "handoff-hysteresis",
     .kind = CONFIG_DOUBLE,
     .value = &flags.handoff_hysteresis,
     .preset = "2",
     .min = 0,
     .max = 1e9,
     .unit = "M",
     .help = "How far past a border an entity is when it changes its leaf."},
    {.name = "split-depth",
     .kind = CONFIG_UINT,
     .value = &flags.split_depth,
     .preset = "2",
     .min = 0,
     .max = 8,
     .help = "The world begins with all regions of that depth as leaves."},
    {.name = "leaves",
     .kind = CONFIG_TEXT,
     .value = &flags.leaves,
     .preset = "",
     .unit = "KEY,KEY...",
     .help = "Or with these leaves, which must tile the world, e.g. 0,1,2,30,31,32,33."},
    {.name = "expect-servers",
     .kind = CONFIG_UINT,
     .value = &flags.expect_servers,
     .preset = "1",
     .min = 1,
     .max = LIMIT_NODES,
     .help = "Leaves are first shared out when so many cell servers have joined."},
    {.name = "leader-lease-ms",
     .kind = CONFIG_UINT,
     .value = &flags.leader_lease_ms,
     .preset = "2000",
     .min = 300,
     .max = 60000,
     .unit = "MS",
     .help = "Several coordinators: how long one leads without hearing from the store."},
    {.name = "lease-ms",
     .kind = CONFIG_UINT,
     .value = &flags.lease_ms,
     .preset = "250",
     .min = LIMIT_LEASE_MIN_US / 1000,
     .max = LIMIT_LEASE_MAX_US / 1000,
     .unit = "MS",
     .help = "A server that is not heard for that long, and a fifth more, is replaced by its standbys."},
    {.name = "standbys",
     .kind = CONFIG_BOOL,
     .value = &flags.standbys,
     .preset = "1",
     .help = "Each leaf has a live copy on another server; 0: a server's leaves are lost with it."},
    {.name = "balance",
     .kind = CONFIG_BOOL,
     .value = &flags.balance,
     .preset = "1",
     .help = "Leaves go to servers that have less to bear; 0: only where servers fail or are drained."},
    {.name = "log-format",
     .kind = CONFIG_CHOICE,
     .value = &flags.log_format,
     .preset = "logfmt",
     .choices = LOG_STYLE_CHOICES,
     .help = "How log lines on standard error look."},
    {.name = "log-level",
     .kind = CONFIG_CHOICE,
     .value = &flags.log_level,
     .preset = "info",
     .choices = LOG_LEVEL_CHOICES,
     .help = "The least urgent lines that are written."},
};

static void read_flags(int argc, char *const *argv)
{
    struct config config = {.program = PROGRAM,
                            .summary = "Keeps one Terrane world's map: which cell server owns which region.",
                            .version = TERRANE_VERSION,
                            .fields = fields,
                            .field_count = sizeof fields / sizeof *fields};
    program_configure(&config, argc, argv, NULL);
}

static struct world world_of(void)
{
    struct world world = {.origin_x = flags.origin_x,
                          .origin_y = flags.origin_y,
                          .cell_size = flags.cell_size,
                          .depth = (uint32_t)flags.depth,
                          .resolution_bits = (uint32_t)flags.resolution_bits,
                          .view_mode = (enum view_mode)flags.view_mode,
                          .edge = (enum world_edge)flags.edge,
                          .tick_hz = (uint32_t)flags.tick_hz};
    world.radius_max = world_length(&world, flags.radius_max);
    world.hysteresis = world_length(&world, flags.hysteresis);
    world.handoff_hysteresis = world_length(&world, flags.handoff_hysteresis);
    world.z_range = flags.z_range < 0 ? UINT32_MAX : world_length(&world, flags.z_range);
    if (world_check(&world) != TERRANE_ERR_OK)
        program_fail(
            PROGRAM, EXIT_USAGE,
            "the world's constants contradict each other: --resolution-bits %u must be at least --depth %u, and "
            "--radius-max, --hysteresis and --handoff-hysteresis at most the world's side of %.15g m",
            world.resolution_bits, world.depth, world.cell_size * (double)(UINT64_C(1) << world.depth));
    return world;
}

/* "0,1,2,30" -> keys; the caller frees. */
static struct quadkey *leaves_of(const char *text, uint32_t *count)
{
    struct quadkey *keys = calloc(strlen(text) / 2 + 1, sizeof *keys);
    *count = 0;
    for (const char *at = text; *at != '\0';) {
        size_t size = strcspn(at, ",");
        if (keys == NULL || quadkey_parse(at, size, &keys[*count]) != TERRANE_ERR_OK || size == 0)
            program_fail(PROGRAM, EXIT_USAGE, "--leaves: \"%.*s\" is no quadkey: digits 0 to 3, at least one",
                         (int)(size < 40 ? size : 40), at);
        (*count)++;
        at += size + (at[size] == ',' ? 1 : 0);
    }
    return keys;
}

/* The inbox's url with its port raised by `offset`; 0 stays 0. What is no tcp url stays as it is and fails when bound.
 */
static void neighbour_url(char *url, const char *inbox, uint64_t offset)
{
    const char *colon = strrchr(inbox, ':');
    char host[LIMIT_URL];
    if (strncmp(inbox, "tcp://", 6) != 0 || colon == NULL || colon < inbox + 6 || strlen(inbox) >= LIMIT_URL) {
        snprintf(url, LIMIT_URL, "%.127s", inbox);
        return;
    }
    snprintf(host, sizeof host, "%.*s", (int)(colon - inbox - 6), inbox + 6);
    program_url(PROGRAM, url, host, strtoul(colon + 1, NULL, 10), offset);
}

/* Where the coordinator's log goes: to standard error, and to the console once there is one. */
struct listeners {
    struct sink sink;
    struct console *console;
};

static void log_line(void *context, enum log_level level, const char *line, size_t size)
{
    struct listeners *l = context;
    sink_write(&l->sink, level, line, size);
    if (l->console != NULL) console_note(l->console, level, line, size);
}

static struct shell *open_shell(struct listeners *listeners)
{
    char query[LIMIT_URL], feed[LIMIT_URL];
    neighbour_url(query, flags.inbox, 1);
    neighbour_url(feed, flags.inbox, 2);
    struct shell_options options = {.log = {.context = listeners, .write = log_line}};
    options.link = (struct link_options){.inbox_url = flags.inbox,
                                         .query_url = flags.query[0] != '\0' ? flags.query : query,
                                         .feed_urls = {flags.feed[0] != '\0' ? flags.feed : feed},
                                         .feed_count = 1,
                                         .advertise_host = flags.advertise};
    struct shell *shell;
    struct link_fault fault;
    if (shell_open(&options, &shell, &fault) != TERRANE_ERR_OK) program_fail(PROGRAM, EXIT_USAGE, "%s", fault.text);
    return shell;
}

static void stored(void *shell, uint64_t token, enum terrane_error error, const uint8_t *bytes, size_t size)
{
    shell_stored(shell, token, error, bytes, size);
}

static void execute(void *store, enum store_operation operation, uint64_t token, const uint8_t *bytes, size_t size)
{
    store_execute(store, operation, token, bytes, size);
}

static void open_store(struct shell *shell, struct listeners *listeners)
{
    struct store_options options = {.loop = loop_ev(shell_loop(shell)),
                                    .address = flags.redis,
                                    .user = flags.redis_user,
                                    .password = flags.redis_password,
                                    .sentinel_user = flags.sentinel_user,
                                    .sentinel_password = flags.sentinel_password,
                                    .world = flags.world,
                                    .context = shell,
                                    .stored = stored,
                                    .log = log_line,
                                    .log_context = listeners};
    struct store *store;
    char fault[256];
    if (store_open(&options, &store, fault, sizeof fault) != TERRANE_ERR_OK)
        program_fail(PROGRAM, EXIT_USAGE, "%s (or run without a store: --storeless)", fault);
    shell_set_store(shell, (struct shell_store){.context = store, .execute = execute});
}

static void step(void *core, const struct event *in, uint64_t now_us, struct outbox *out)
{
    coordinator_step(core, in, now_us, out);
}

static uint64_t deadline_us(const void *core)
{
    return coordinator_deadline_us(core);
}

static void give_back(void *core, uint64_t now_us, struct outbox *out)
{
    coordinator_leave(core, now_us, out);
}

static bool left(const void *core)
{
    return coordinator_left(core);
}

static void collect(const void *core, struct metrics *m)
{
    coordinator_metrics(core, m);
}

static const char *unready(const void *core)
{
    return coordinator_unready(core);
}

/* The url at which metrics, health and console are; "" for none. */
static const char *open_http(struct shell *shell, struct coordinator *core, const struct world *world,
                             struct listeners *listeners)
{
    struct probe_options options = {.program = PROGRAM,
                                    .version = TERRANE_VERSION,
                                    .address = flags.http,
                                    .automatic = "127.0.0.1:7080",
                                    .shell = shell,
                                    .core = {.core = core, .collect = collect, .unready = unready}};
    struct http *http;
    char fault[320];
    if (probe_open(&options, &http, fault, sizeof fault) != TERRANE_ERR_OK)
        program_fail(PROGRAM, EXIT_USAGE, "--http: %s", fault);
    if (http == NULL) return "";
    struct console_options console = {
        .loop = loop_ev(shell_loop(shell)), .http = http, .coordinator = core, .world = *world};
    if (!consoles_parse(flags.consoles, &console.consoles))
        program_fail(PROGRAM, EXIT_USAGE,
                     "--consoles: \"%.200s\" is no list of at most %u urls like http://localhost:7080", flags.consoles,
                     CONSOLES_MAX);
    if (console_open(&console, &listeners->console) != TERRANE_ERR_OK)
        program_fail(PROGRAM, EXIT_NOT_HELD, "no memory for the console");
    coordinator_show_console(core, flags.http_advertise[0] != '\0' ? flags.http_advertise : http_url(http));
    return http_url(http);
}

int main(int argc, char **argv)
{
    read_flags(argc, argv);
    struct coordinator_options options = {.info = {.role = ROLE_COORDINATOR, .node = shell_node_id()},
                                          .world = world_of(),
                                          .split_depth = (uint32_t)flags.split_depth,
                                          .expect_servers = (uint32_t)flags.expect_servers,
                                          .lease_us = flags.lease_ms * 1000,
                                          .leader_lease_us = flags.leader_lease_ms * 1000,
                                          .no_standbys = !flags.standbys,
                                          .storeless = flags.storeless,
                                          .balance = flags.balance};
    if (flags.leaves[0] == '\0' && options.split_depth > options.world.depth)
        program_fail(PROGRAM, EXIT_USAGE, "--split-depth %u is deeper than --depth %u", options.split_depth,
                     options.world.depth);
    struct quadkey *leaves = leaves_of(flags.leaves, &options.leaf_count);
    options.leaves = leaves;
    char fault[256];
    if (coordinator_check(&options, fault, sizeof fault) != TERRANE_ERR_OK)
        program_fail(PROGRAM, EXIT_USAGE, "%s", fault);
    struct listeners listeners = {.sink = {.fd = STDERR_FILENO,
                                           .program = PROGRAM,
                                           .style = (enum log_style)flags.log_format,
                                           .level = (enum log_level)flags.log_level}};
    struct shell *shell = open_shell(&listeners);
    program_identify(&options.info, flags.name, shell_urls(shell), 1);

    struct coordinator *coordinator;
    if (coordinator_open(&options, &coordinator) != TERRANE_ERR_OK)
        program_fail(PROGRAM, EXIT_USAGE, "these options make no coordinator");
    free(leaves);
    if (!flags.storeless) open_store(shell, &listeners);
    const char *url = open_http(shell, coordinator, &options.world, &listeners);
    shell_start(shell,
                &(struct shell_core){
                    .core = coordinator, .step = step, .deadline_us = deadline_us, .close = give_back, .closed = left});
    program_ready(PROGRAM, &options.info, url);
    shell_run(shell);
    program_leave(shell, EXIT_WELL);
}
