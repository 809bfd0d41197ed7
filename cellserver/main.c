/* terrane-cellserver: the cell server's core tied to nng, libev and this process's clock. */
#include "aoi/aoi.h"
#include "cellserver/cellserver.h"
#include "io/address.h"
#include "io/probe.h"
#include "io/program.h"
#include "io/sink.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM       "terrane-cellserver"
#define NODE_RESERVED 16u /* ids below are aliases (common/core.h) */

static struct flags {
    const char *coordinator, *listen, *advertise, *http, *host, *name, *node_id, *aoi, *ws;
    uint64_t port_base, feeds, entities, capacity, session_rate, session_entities;
    uint32_t log_format, log_level;
} flags;

static const struct config_field fields[] = {
    {.name = "coordinator",
     .kind = CONFIG_TEXT,
     .value = &flags.coordinator,
     .preset = "tcp://127.0.0.1:7070",
     .unit = "URL",
     .help = "The coordinator's inbox; several, separated by commas. It may start later."},
    {.name = "listen",
     .kind = CONFIG_TEXT,
     .value = &flags.listen,
     .preset = "127.0.0.1",
     .unit = "HOST",
     .help = "The address that all sockets listen on; 0.0.0.0 needs --advertise."},
    {.name = "advertise",
     .kind = CONFIG_TEXT,
     .value = &flags.advertise,
     .preset = "",
     .unit = "HOST",
     .help = "The host that others dial, if it is not the one of --listen."},
    {.name = "http",
     .kind = CONFIG_TEXT,
     .value = &flags.http,
     .preset = PROBE_AUTO,
     .unit = "HOST:PORT",
     .help = "Where /metrics, /healthz and /readyz are; auto: 127.0.0.1 and any free port; none: nowhere."},
    {.name = "host",
     .kind = CONFIG_TEXT,
     .value = &flags.host,
     .preset = "",
     .unit = "NAME",
     .help = "The machine that it runs on: standbys are chosen on another one; none: this host's name."},
    {.name = "name",
     .kind = CONFIG_TEXT,
     .value = &flags.name,
     .preset = "",
     .unit = "NAME",
     .help = "This server's name in the map, one of its own; none: cell-PID."},
    {.name = "node-id",
     .kind = CONFIG_TEXT,
     .value = &flags.node_id,
     .preset = "",
     .unit = "HEX",
     .help = "This incarnation's id, 16 hexadecimal digits, never used before: for an agent, which must know it to "
             "report its death; none: a random one."},
    {.name = "port-base",
     .kind = CONFIG_UINT,
     .value = &flags.port_base,
     .preset = "0",
     .min = 0,
     .max = 65524,
     .unit = "PORT",
     .help = "Inbox, then subscriptions, queries, ghosts and the feeds at the next ports; 0: any."},
    {.name = "ws",
     .kind = CONFIG_TEXT,
     .value = &flags.ws,
     .preset = PROBE_NONE,
     .unit = "HOST:PORT",
     .help = "Where browsers read the region feeds over WebSocket, as ws://HOST:PORT/feed/0 and so on; none: nowhere."},
    {.name = "feeds",
     .kind = CONFIG_UINT,
     .value = &flags.feeds,
     .preset = "4",
     .min = 1,
     .max = NODE_FEEDS,
     .help = "Region feeds that the leaves are spread over."},
    {.name = "entities",
     .kind = CONFIG_UINT,
     .value = &flags.entities,
     .preset = "16384",
     .min = 1,
     .max = LIMIT_ENTITIES,
     .help = "Entities to reserve memory for; more are fine."},
    {.name = "aoi",
     .kind = CONFIG_TEXT,
     .value = &flags.aoi,
     .preset = "grid",
     .unit = "INDEX",
     .help = "The area-of-interest index, one of the plane; docs/AOI.md says which is for what."},
    {.name = "capacity",
     .kind = CONFIG_UINT,
     .value = &flags.capacity,
     .preset = "100",
     .min = 1,
     .max = 1000,
     .help = "This server's weight when leaves are shared out."},
    {.name = "session-rate",
     .kind = CONFIG_UINT,
     .value = &flags.session_rate,
     .preset = "20000",
     .min = 0,
     .max = 1000000,
     .help = "Commands a second that one gateway may give here (enters, states, radii, attaches), a second's worth at\n"
             "once; more are refused. 0: any."},
    {.name = "session-entities",
     .kind = CONFIG_UINT,
     .value = &flags.session_entities,
     .preset = "250000",
     .min = 0,
     .max = LIMIT_ENTITIES,
     .help = "Entities that one gateway may have here: over that its enters and attaches are refused. 0: any."},
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
                            .summary = "Simulates the leaves of one Terrane world that the coordinator gives it.",
                            .version = TERRANE_VERSION,
                            .fields = fields,
                            .field_count = sizeof fields / sizeof *fields};
    program_configure(&config, argc, argv, NULL);
}

static void step(void *core, const struct event *in, uint64_t now_us, struct outbox *out)
{
    cellserver_step(core, in, now_us, out);
}

static uint64_t deadline_us(const void *core)
{
    return cellserver_deadline_us(core);
}

static uint64_t tick_us(const void *core)
{
    return cellserver_tick_us(core);
}

static void say_bye(void *core, uint64_t now_us, struct outbox *out)
{
    cellserver_say_bye(core, now_us, out);
}

static bool closed(const void *core)
{
    return cellserver_closed(core);
}

/* The urls of the region feeds for browsers; the ghosts' is for servers alone. */
static void serve_browsers(struct link_options *link)
{
    static char urls[NODE_FEEDS][LIMIT_URL];
    char host[LIMIT_URL];
    uint16_t port;
    if (strcmp(flags.ws, PROBE_NONE) == 0) return;
    if (!address_split(flags.ws, host, &port) || port == 0 || strlen(flags.ws) + 16 > LIMIT_URL)
        program_fail(PROGRAM, EXIT_USAGE, "--ws: \"%.128s\" is not of the form HOST:PORT with a port from 1", flags.ws);
    for (uint32_t i = 0; i < flags.feeds; i++) {
        snprintf(urls[i], LIMIT_URL, "ws://%.*s/feed/%u", (int)(LIMIT_URL - 16), flags.ws, i);
        link->feed_ws_urls[i] = urls[i];
    }
}

static struct shell *open_shell(struct sink *sink)
{
    char inbox[LIMIT_URL], sub[LIMIT_URL], query[LIMIT_URL], feeds[NODE_FEEDS + 1][LIMIT_URL];
    struct shell_options options = {.log = sink_log(sink)};
    program_url(PROGRAM, inbox, flags.listen, flags.port_base, 0);
    program_url(PROGRAM, sub, flags.listen, flags.port_base, 1);
    program_url(PROGRAM, query, flags.listen, flags.port_base, 2);
    options.link = (struct link_options){.inbox_url = inbox,
                                         .sub_url = sub,
                                         .query_url = query,
                                         .feed_count = (uint32_t)flags.feeds + 1,
                                         .advertise_host = flags.advertise};
    for (uint32_t i = 0; i <= flags.feeds; i++) {
        program_url(PROGRAM, feeds[i], flags.listen, flags.port_base, i == flags.feeds ? 3 : 4 + i);
        options.link.feed_urls[i] = feeds[i];
    }
    serve_browsers(&options.link);
    struct shell *shell;
    struct link_fault fault;
    if (shell_open(&options, &shell, &fault) != TERRANE_ERR_OK) program_fail(PROGRAM, EXIT_USAGE, "%s", fault.text);
    return shell;
}

static struct node_id node_id(void)
{
    char *end;
    if (flags.node_id[0] == '\0') return shell_node_id();
    struct node_id node = {strtoull(flags.node_id, &end, 16)};
    bool digits = strspn(flags.node_id, "0123456789abcdefABCDEF") == strlen(flags.node_id);
    if (!digits || strlen(flags.node_id) > 16 || node.v < NODE_RESERVED)
        program_fail(PROGRAM, EXIT_USAGE, "--node-id: \"%.40s\" is no id: 1 to 16 hexadecimal digits, at least %x",
                     flags.node_id, NODE_RESERVED);
    return node;
}

/* Any index of the plane serves, in whichever mode the world turns out to have. */
static void check_aoi(void)
{
    const unsigned needed = AOI_CAN_PLANE | AOI_CAN_BLOCK | AOI_CAN_RADIUS;
    const struct aoi_index_info *info = aoi_index_find(flags.aoi);
    char names[512] = "";
    if (info != NULL && (info->abilities & needed) == needed) return;
    for (size_t i = 0, used = 0; (info = aoi_index_list(i)) != NULL; i++) {
        if ((info->abilities & needed) != needed || used >= sizeof names) continue;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", info->name);
    }
    program_fail(PROGRAM, EXIT_USAGE, "--aoi: \"%.40s\" is no index of the plane; there are: %s", flags.aoi, names);
}

static void collect(const void *core, struct metrics *m)
{
    cellserver_metrics(core, m);
}

static const char *unready(const void *core)
{
    return cellserver_unready(core);
}

static struct http *open_http(struct shell *shell, const void *core)
{
    struct probe_options options = {.program = PROGRAM,
                                    .version = TERRANE_VERSION,
                                    .address = flags.http,
                                    .automatic = "127.0.0.1:0",
                                    .shell = shell,
                                    .core = {.core = core, .collect = collect, .unready = unready}};
    struct http *http;
    char fault[320];
    if (probe_open(&options, &http, fault, sizeof fault) != TERRANE_ERR_OK)
        program_fail(PROGRAM, EXIT_USAGE, "--http: %s", fault);
    return http;
}

int main(int argc, char **argv)
{
    read_flags(argc, argv);
    check_aoi();
    struct sink sink = {.fd = STDERR_FILENO,
                        .program = PROGRAM,
                        .style = (enum log_style)flags.log_format,
                        .level = (enum log_level)flags.log_level};
    struct shell *shell = open_shell(&sink);

    char name[LIMIT_NAME];
    snprintf(name, sizeof name, "cell-%ld", (long)getpid());
    struct cellserver_options options = {.info = {.role = ROLE_CELLSERVER, .node = node_id()},
                                         .capacity = (uint32_t)flags.capacity,
                                         .coordinator_url = flags.coordinator,
                                         .entities = (uint32_t)flags.entities,
                                         .tick_hz = 20,
                                         .session_rate = (uint32_t)flags.session_rate,
                                         .session_entities = (uint32_t)flags.session_entities,
                                         .aoi_index = flags.aoi,
                                         .unique_ids = true};
    program_identify(&options.info, flags.name[0] != '\0' ? flags.name : name, shell_urls(shell),
                     (uint32_t)flags.feeds);
    if (flags.host[0] != '\0') snprintf(options.info.host, sizeof options.info.host, "%s", flags.host);
    struct cellserver *cellserver = cellserver_open(&options);
    struct http *http = open_http(shell, cellserver);
    shell_start(shell, &(struct shell_core){.core = cellserver,
                                            .step = step,
                                            .deadline_us = deadline_us,
                                            .tick_us = tick_us,
                                            .close = say_bye,
                                            .closed = closed});
    program_ready(PROGRAM, &options.info, http != NULL ? http_url(http) : "");
    shell_run(shell);
    program_leave(shell, cellserver_dismissed(cellserver) ? EXIT_NOT_HELD : EXIT_WELL);
}
