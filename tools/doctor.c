/* terrane doctor: looks at a cluster for what commonly goes wrong, and says what to do about it.
 *
 * Each check is one function that adds findings; a finding has a name for scripts, what was seen, and the remedy. What
 * can't be checked because something before it failed is not reported as well. */
#include "common/array.h"
#include "io/loop.h"
#include "io/program.h"
#include "proto/json.h"
#include "tools/look.h"
#include "tools/target.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NAME "terrane doctor"

#define FILES_LEAST 4096u /* a server with 1,000 peers: two sockets and some hundred streams each way */
#define LATE_SHARE  0.01  /* of its ticks */
#define CLOCK_S     2.0   /* what logs of two hosts can still be compared with */

static struct flags {
    struct target target;
    double interval;
} flags;

static const struct config_field fields[] = {
    TARGET_FIELDS(flags.target, "2000", "One object: \"well\" and the findings."),
    {.name = "interval",
     .kind = CONFIG_DOUBLE,
     .value = &flags.interval,
     .preset = "1",
     .min = 0.1,
     .max = 60,
     .unit = "SECONDS",
     .help = "Between the two looks that tell what still happens from what once happened."},
};

enum weight { FINE, WARNING, FAULT };

struct finding {
    enum weight weight;
    const char *name;
    char seen[256];
    const char *remedy;
};

struct findings {
    struct finding *items;
    uint32_t count, room;
};

static void found(struct findings *f, enum weight weight, const char *name, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

static void found(struct findings *f, enum weight weight, const char *name, const char *remedy, const char *format, ...)
{
    va_list arguments;
    ARRAY_RESERVE(f->items, f->room, (size_t)f->count + 1);
    struct finding *item = &f->items[f->count++];
    *item = (struct finding){.weight = weight, .name = name, .remedy = remedy};
    va_start(arguments, format);
    vsnprintf(item->seen, sizeof item->seen, format, arguments);
    va_end(arguments);
}

static double wall_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- coordinators and the store ---- */

/* How many of the coordinators that the flags name answer. Those that don't are faults if none does. */
static void check_coordinators(struct findings *f, struct cluster *c)
{
    uint32_t answered = 0, leading = 0;
    for (uint32_t i = 0; i < c->url_count; i++) {
        const char *json;
        size_t size;
        struct document d = {0};
        enum terrane_error error =
            query_status(c->lane, c->query_urls[i], (uint32_t)flags.target.patience, &json, &size);
        if (error == TERRANE_ERR_OK) error = document_parse(&d, json, size);
        if (error != TERRANE_ERR_OK) {
            found(f, c->url_count > 1 ? WARNING : FAULT, "coordinator_silent",
                  "is it running, and is this its query port (inbox + 1)? see its log; --coordinator, --query",
                  "no answer from %s: %s", c->query_urls[i], terrane_error_text(error));
            continue;
        }
        answered++;
        leading += document_bool(&d, 0, "leads");
        document_close(&d);
    }
    if (answered > 0 && leading == 0)
        found(f, FAULT, "nobody_leads",
              "is Redis running and reachable by the coordinators (their --store)? without it nobody may lead",
              "none of %u coordinators that answer leads", answered);
    if (leading > 1)
        found(f, WARNING, "two_lead", "one has not heard yet that it was replaced; if it stays so, see their clocks",
              "%u coordinators say that they lead", leading);
    if (leading == 1) found(f, FINE, "coordinators", "", "%u of %u answer, one leads", answered, c->url_count);
}

static void check_store(struct findings *f, const struct cluster *c)
{
    uint64_t failures = document_count(&c->map, 0, "store_failures");
    if (!document_bool(&c->map, 0, "ready"))
        found(f, FAULT, "not_ready",
              "is Redis up, not read-only, and is its password right? see the coordinator's log for store=...; until "
              "then nothing is decided",
              "the coordinator is not ready; the store has failed %" PRIu64 " times", failures);
    else
        found(f, FINE, "store", "", "the map is stored; %" PRIu64 " failures since the coordinator's start", failures);
}

/* Who was turned away at the door. */
static void check_refused(struct findings *f, const struct cluster *c)
{
    uint32_t refused = document_member(&c->map, 0, "refused");
    uint64_t version = document_count(&c->map, refused, "version_mismatch");
    uint64_t world = document_count(&c->map, refused, "world_mismatch");
    if (version > 0)
        found(f, WARNING, "versions_differ",
              "some process speaks another version of the protocol: finish the upgrade (docs/OPERATIONS.md)",
              "the coordinator has refused %" PRIu64 " messages of another protocol version", version);
    if (world > 0)
        found(f, WARNING, "worlds_differ",
              "some process was started with other world flags, or belongs to another cluster: compare them",
              "the coordinator has refused %" PRIu64 " messages about another world", world);
}

/* ---- cell servers ---- */

static void check_servers(struct findings *f, const struct cluster *c, const struct sample *before)
{
    uint32_t well = 0;
    if (c->server_count == 0)
        found(f, FAULT, "no_servers", "start some with --coordinator naming this cluster's coordinators",
              "no cell server has joined");
    if (c->server_count == 1)
        found(f, WARNING, "single_server", "run two at least, on different hosts: a region's standby is another server",
              "one cell server only: its loss loses the world");
    for (uint32_t i = 0; i < c->server_count; i++) {
        const struct cluster_server *s = &c->servers[i];
        const char *state = look_state(c, s);
        struct sample now = look_sample(s);
        uint64_t ticks = now.ticks - before[i].ticks, late = now.late - before[i].late;
        if (strstr(state, "lapsed") != NULL || strstr(state, "silent") != NULL)
            found(f, FAULT, "server_silent",
                  "is its process alive, and do packets pass between it and the coordinator in both directions?",
                  "%s is %s", s->name, state);
        else if (!s->answered)
            found(f, FAULT, "query_unreachable",
                  "open its query port to this machine, or give it an --advertise that this machine can reach",
                  "%s does not answer at %s, but the coordinator hears it", s->name, s->query_url);
        else if (ticks > 0 && (double)late > LATE_SHARE * (double)ticks)
            found(f, WARNING, "ticks_late",
                  "it lacks CPU: add servers, give it a core of its own, or drain it (terrane drain)",
                  "%s: %" PRIu64 " of the last %" PRIu64 " ticks were late", s->name, late, ticks);
        else
            well++;
    }
    if (well > 0) found(f, FINE, "servers", "", "%u of %u are well", well, c->server_count);
}

static void check_regions(struct findings *f, const struct cluster *c)
{
    uint64_t unowned = document_count(&c->map, 0, "unowned"), exposed = document_count(&c->map, 0, "unprotected");
    if (unowned > 0)
        found(f, FAULT, "regions_unowned",
              "start cell servers; what lost primary and standby together is entered again by its gateways",
              "%" PRIu64 " regions have no server", unowned);
    if (exposed > 0)
        found(f, c->server_count > 1 ? WARNING : FINE, "regions_unprotected",
              "normal for seconds after a death or a start; if it stays: are two servers up that are not draining?",
              "%" PRIu64 " regions have no level standby", exposed);
    if (unowned + exposed == 0) found(f, FINE, "regions", "", "each has a server and a level standby");
}

static void check_hosts(struct findings *f, const struct cluster *c)
{
    const char *first = NULL;
    bool several = false;
    for (uint32_t i = 0; i < c->server_count; i++) {
        const char *host = document_text(&c->map, c->servers[i].listed, "host");
        if (first == NULL) first = host;
        several = several || strcmp(first, host) != 0;
    }
    if (c->server_count > 1 && !several)
        found(f, WARNING, "one_host", "spread the servers over machines: standbys then lie on another one",
              "all %u cell servers run on host %s: its loss loses the world", c->server_count, first);
}

/* Versions of the map that servers hold: one that lags for a whole interval does not hear the coordinator. */
static void check_maps(struct findings *f, const struct cluster *c, const uint64_t *revisions)
{
    for (uint32_t i = 0; i < c->server_count; i++) {
        const struct cluster_server *s = &c->servers[i];
        uint64_t rev = document_count(&s->status, 0, "rev"), term = document_count(&s->status, 0, "term");
        if (!s->answered || term > document_count(&c->map, 0, "term")) continue;
        if (rev == revisions[i] && rev + 1 < document_count(&c->map, 0, "rev"))
            found(f, WARNING, "map_stale", "packets from the coordinator do not reach it: check the path and its inbox",
                  "%s holds revision %" PRIu64 " of the map, the coordinator has %" PRIu64, s->name, rev,
                  document_count(&c->map, 0, "rev"));
    }
}

/* Hosts' clocks say when things happened in logs and traces, and entities' first versions come from them; leases and
 * ticks do not. `asked_s` before the looks, now after them: what lies between is no fault. */
static void check_clocks(struct findings *f, const struct cluster *c, double asked_s)
{
    uint32_t told = 0;
    for (uint32_t i = 0; i < c->server_count; i++) {
        const struct document *d = &c->servers[i].status;
        double clock_s = document_number(d, document_member(d, 0, "io"), "terrane_clock_seconds", 0);
        if (!c->servers[i].answered || clock_s <= 0) continue;
        double early_s = asked_s - clock_s, ahead_s = clock_s - wall_s();
        if (early_s > CLOCK_S || ahead_s > CLOCK_S)
            found(f, WARNING, "clock_differs", "run an NTP client on both hosts (chrony, systemd-timesyncd)",
                  "%s is %.1f s %s of this machine", c->servers[i].name, early_s > ahead_s ? early_s : ahead_s,
                  early_s > ahead_s ? "behind" : "ahead");
        else
            told++;
    }
    if (told > 0) found(f, FINE, "clocks", "", "%u servers are within %.0f s of this machine", told, CLOCK_S);
}

static void check_limits(struct findings *f, const struct cluster *c)
{
    for (uint32_t i = 0; i < c->server_count; i++) {
        const struct document *d = &c->servers[i].status;
        uint64_t files = document_count(d, document_member(d, 0, "io"), "process_max_fds");
        if (files > 0 && files < FILES_LEAST)
            found(f, WARNING, "open_files",
                  "raise its limit: LimitNOFILE= in the unit, `ulimits:` in the compose file, or `ulimit -n 65536`",
                  "%s may open %" PRIu64 " files and sockets; a busy server needs %u", c->servers[i].name, files,
                  FILES_LEAST);
    }
}

static void examine(struct findings *f, struct cluster *c)
{
    check_coordinators(f, c);
    if (cluster_refresh_all(c, (uint32_t)flags.target.patience) != TERRANE_ERR_OK) return;
    double asked_s;
    struct sample *before = calloc(c->server_count + 1, sizeof *before);
    uint64_t *revisions = calloc(c->server_count + 1, sizeof *revisions);
    if (before == NULL || revisions == NULL) program_fail(NAME, EXIT_NOT_HELD, "out of memory");
    uint32_t count = c->server_count;
    for (uint32_t i = 0; i < count; i++) {
        before[i] = look_sample(&c->servers[i]);
        revisions[i] = document_count(&c->servers[i].status, 0, "rev");
    }
    usleep((useconds_t)(flags.interval * 1e6));
    asked_s = wall_s();
    bool same = cluster_refresh_all(c, (uint32_t)flags.target.patience) == TERRANE_ERR_OK && c->server_count == count;
    check_store(f, c);
    check_refused(f, c);
    if (same) check_servers(f, c, before);
    if (same) check_maps(f, c, revisions);
    if (!same)
        found(f, WARNING, "changing", "ask again when nobody joins or leaves", "the servers changed while we looked");
    check_regions(f, c);
    check_hosts(f, c);
    check_clocks(f, c, asked_s);
    check_limits(f, c);
    free(before);
    free(revisions);
}

static void print_json(const struct findings *f, bool well)
{
    static const char *const weights[] = {"fine", "warning", "fault"};
    struct writer w = {0};
    json_open(&w, '{');
    json_key(&w, "well"), json_bool(&w, well);
    json_key(&w, "findings"), json_open(&w, '[');
    for (uint32_t i = 0; i < f->count; i++) {
        json_open(&w, '{');
        json_key(&w, "name"), json_text(&w, f->items[i].name);
        json_key(&w, "weight"), json_text(&w, weights[f->items[i].weight]);
        json_key(&w, "seen"), json_text(&w, f->items[i].seen);
        json_key(&w, "remedy"), json_text(&w, f->items[i].remedy);
        json_close(&w, '}');
    }
    json_close(&w, ']');
    json_close(&w, '}');
    printf("%.*s\n", (int)w.size, (const char *)w.data);
    writer_close(&w);
}

int command_doctor(int argc, char **argv)
{
    static const char *const marks[] = {"ok     ", "warning", "FAULT  "};
    command_configure(
        NAME,
        "Examines a cluster and this machine: coordinators, store, servers, regions, hosts, limits. Says\n"
        "what to do about each finding. Exit code 1 if there is a fault; warnings alone are 0.",
        NULL, fields, sizeof fields / sizeof *fields, argc, argv, NULL);
    struct cluster cluster;
    struct findings findings = {0};
    bool well = true;
    target_open(NAME, &flags.target, &cluster);
    examine(&findings, &cluster);
    for (uint32_t i = 0; i < findings.count; i++) {
        const struct finding *item = &findings.items[i];
        well = well && item->weight != FAULT;
        if (flags.target.json) continue;
        printf("%s %-20s %s\n", marks[item->weight], item->name, item->seen);
        if (item->weight != FINE) printf("%29s-> %s\n", "", item->remedy);
    }
    if (flags.target.json) print_json(&findings, well);
    free(findings.items);
    cluster_close(&cluster);
    return well ? EXIT_WELL : EXIT_NOT_HELD;
}
