/* terrane status: what the coordinator and every cell server say of themselves, with rates. */
#include "io/loop.h"
#include "io/program.h"
#include "tools/look.h"
#include "tools/target.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NAME         "terrane status"
#define WAIT_ASK_MS  500u
#define WAIT_LOOK_US 50000u

static struct flags {
    struct target target;
    double interval;
    uint64_t wait_protected;
    bool regions;
} flags;

static const struct config_field fields[] = {
    TARGET_FIELDS(flags.target, "2000", "One object: the coordinator's answer, each server's, and the rates."),
    {.name = "interval",
     .kind = CONFIG_DOUBLE,
     .value = &flags.interval,
     .preset = "1",
     .min = 0.05,
     .max = 3600,
     .unit = "SECONDS",
     .help = "Between the two looks that rates are made from."},
    {.name = "regions",
     .kind = CONFIG_BOOL,
     .value = &flags.regions,
     .preset = "0",
     .help = "Lists every region with its primary, standby, epochs and entities."},
    {.name = "wait-protected",
     .kind = CONFIG_UINT,
     .value = &flags.wait_protected,
     .preset = "0",
     .min = 0,
     .max = 3600000,
     .unit = "MS",
     .help = "First waits, so long at most, until every region has a level standby and every server is heard; exit "
             "code 1 if that does not come. Progress goes to stderr. 0: does not wait."},
};

/* What keeps the loss of any one server from being unnoticed. */
struct exposure {
    uint64_t unowned, unprotected, unheard;
    bool ready;
};

static struct exposure exposure_of(const struct cluster *c)
{
    struct exposure e = {.unowned = document_count(&c->map, 0, "unowned"),
                         .unprotected = document_count(&c->map, 0, "unprotected"),
                         .ready = cluster_ready(c, 1)};
    for (uint32_t i = 0; i < c->server_count; i++) {
        uint32_t at = c->servers[i].listed;
        e.unheard += document_bool(&c->map, at, "lapsed") || document_bool(&c->map, at, "silent");
    }
    return e;
}

/* False: it did not come in time; what is missing has been told. */
static bool wait_protected(struct cluster *c)
{
    uint64_t until_us = loop_now_us() + flags.wait_protected * 1000;
    struct exposure shown = {.unheard = UINT64_MAX};
    for (;;) {
        enum terrane_error error = cluster_refresh(c, WAIT_ASK_MS);
        struct exposure e = {.ready = false};
        if (error == TERRANE_ERR_OK) e = exposure_of(c);
        if (e.ready && e.unowned + e.unprotected + e.unheard == 0) return true;
        bool late = loop_now_us() >= until_us;
        bool news = e.ready != shown.ready || e.unowned != shown.unowned || e.unprotected != shown.unprotected ||
                    e.unheard != shown.unheard;
        if (error != TERRANE_ERR_OK && (news || late))
            fprintf(stderr, "no coordinator leads: %s\n", terrane_error_text(error));
        else if (news || late)
            fprintf(stderr,
                    "%" PRIu64 " regions without a server, %" PRIu64 " unprotected, %" PRIu64 " servers unheard%s\n",
                    e.unowned, e.unprotected, e.unheard, e.ready ? "" : ", not ready");
        if (late) return false;
        shown = e;
        usleep(WAIT_LOOK_US);
    }
}

static void print_server(const struct cluster *c, const struct cluster_server *s, const struct sample *before,
                         double seconds)
{
    struct sample now = look_sample(s);
    printf("%-12s %6" PRIu64 " %8" PRIu64, s->name, document_count(&c->map, s->listed, "leaves"),
           document_count(&c->map, s->listed, "standby_leaves"));
    if (!s->answered) {
        printf("  does not answer at %s  %s\n", s->query_url, look_state(c, s));
        return;
    }
    printf(" %8" PRIu64 " %8" PRIu64 " %9.0f %10.1f %9.1f %7.1f %9" PRIu64 " %6" PRIu64 "  %s\n",
           document_count(&s->status, 0, "owned"), document_count(&s->status, 0, "ghosts"),
           look_rate(before->moves, now.moves, seconds), look_rate(before->handoffs, now.handoffs, seconds),
           look_rate(before->bytes, now.bytes, seconds) / 1000, look_rate(before->ticks, now.ticks, seconds), now.late,
           document_count(&s->status, 0, "gaps_open"), look_state(c, s));
}

static void print_feeds(const struct cluster *c)
{
    printf("\n%-12s feeds for nngcat and others: r/ topics, then g/ topics\n", "server");
    for (uint32_t i = 0; i < c->server_count; i++) {
        uint32_t listed = c->servers[i].listed, at = document_first(&c->map, document_member(&c->map, listed, "feeds"));
        printf("%-12s", c->servers[i].name);
        for (; at != DOCUMENT_NONE; at = document_next(&c->map, at))
            if (c->map.values[at].kind == DOCUMENT_TEXT) printf(" %s", c->map.values[at].text);
        printf("  %s\n", document_text(&c->map, listed, "ghost_feed"));
    }
}

static void print_regions(const struct cluster *c)
{
    uint32_t at = document_first(&c->map, document_member(&c->map, 0, "regions"));
    printf("\n%-16s %-12s %-12s %-9s %6s %6s %8s  %s\n", "region", "primary", "standby", "level", "epoch", "since",
           "entities", "feed");
    for (; at != DOCUMENT_NONE; at = document_next(&c->map, at)) {
        const char *server = document_text(&c->map, at, "server"), *standby = document_text(&c->map, at, "standby");
        char topic[48];
        snprintf(topic, sizeof topic, "r/%.30s/", document_text(&c->map, at, "quadkey"));
        printf("%-16s %-12s %-12s %-9s %6" PRIu64 " %6" PRIu64 " %8" PRIu64 "  %s\n", topic,
               server[0] != '\0' ? server : "(nobody)", standby[0] != '\0' ? standby : "(nobody)",
               document_bool(&c->map, at, "level") ? "level" : "not level", document_count(&c->map, at, "epoch"),
               document_count(&c->map, at, "since"), document_count(&c->map, at, "owned"),
               document_text(&c->map, at, "feed_url"));
    }
}

static uint32_t length_of(const struct document *d, const char *list)
{
    uint32_t at = document_member(d, 0, list);
    return at == DOCUMENT_NONE ? 0 : d->values[at].count;
}

static void print_table(const struct cluster *c, const struct sample *before, double seconds)
{
    struct cluster_sums sums = cluster_sums(c);
    printf("coordinator %s  term %" PRIu64 "  revision %" PRIu64 "  %s\n", document_text(&c->map, 0, "name"),
           document_count(&c->map, 0, "term"), document_count(&c->map, 0, "rev"),
           document_bool(&c->map, 0, "ready") ? "ready" : "NOT READY (store?)");
    printf("%u servers, %u gateways, %u regions (%" PRIu64 " without a server, %" PRIu64 " unprotected), %" PRIu64
           " entities\n\n",
           c->server_count, length_of(&c->map, "gateways"), length_of(&c->map, "regions"),
           document_count(&c->map, 0, "unowned"), document_count(&c->map, 0, "unprotected"), sums.owned);
    printf("%-12s %6s %8s %8s %8s %9s %10s %9s %7s %9s %6s  %s\n", "server", "leaves", "standby", "owned", "ghosts",
           "moves/s", "handoffs/s", "kB/s out", "ticks/s", "late", "gaps", "state");
    for (uint32_t i = 0; i < c->server_count; i++) print_server(c, &c->servers[i], &before[i], seconds);
    print_feeds(c);
    if (flags.regions) print_regions(c);
}

static void print_value(const struct document *d, uint32_t at);

static void print_list(const struct document *d, uint32_t list, char open, char close)
{
    putchar(open);
    for (uint32_t at = document_first(d, list); at != DOCUMENT_NONE; at = document_next(d, at)) {
        print_value(d, at);
        if (document_next(d, at) != DOCUMENT_NONE) putchar(',');
    }
    putchar(close);
}

static void print_text(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\' || (unsigned char)*text < 0x20)
            printf("\\u%04x", (unsigned)(unsigned char)*text);
        else
            putchar(*text);
    }
    putchar('"');
}

static void print_value(const struct document *d, uint32_t at) /* NOLINT(misc-no-recursion): the reader's depth */
{
    const struct document_value *v = &d->values[at];
    if (v->key != NULL) {
        print_text(v->key);
        putchar(':');
    }
    switch (v->kind) {
    case DOCUMENT_NULL: fputs("null", stdout); break;
    case DOCUMENT_FALSE: fputs("false", stdout); break;
    case DOCUMENT_TRUE: fputs("true", stdout); break;
    case DOCUMENT_NUMBER: printf("%.17g", v->number); break;
    case DOCUMENT_TEXT: print_text(v->text); break;
    case DOCUMENT_ARRAY: print_list(d, at, '[', ']'); break;
    case DOCUMENT_OBJECT: print_list(d, at, '{', '}'); break;
    }
}

static void print_json(const struct cluster *c, const struct sample *before, double seconds)
{
    printf("{\"coordinator\":");
    print_value(&c->map, 0);
    printf(",\"servers\":[");
    for (uint32_t i = 0; i < c->server_count; i++) {
        const struct cluster_server *s = &c->servers[i];
        struct sample now = look_sample(s);
        printf("%s{\"name\":", i == 0 ? "" : ",");
        print_text(s->name);
        printf(
            ",\"answered\":%s,\"moves_per_s\":%.1f,\"handoffs_per_s\":%.1f,\"bytes_per_s\":%.1f,\"ticks_per_s\":%.2f",
            s->answered ? "true" : "false", look_rate(before[i].moves, now.moves, seconds),
            look_rate(before[i].handoffs, now.handoffs, seconds), look_rate(before[i].bytes, now.bytes, seconds),
            look_rate(before[i].ticks, now.ticks, seconds));
        if (s->answered) {
            printf(",\"status\":");
            print_value(&s->status, 0);
        }
        putchar('}');
    }
    printf("],\"entities\":%" PRIu64 "}\n", cluster_sums(c).owned);
}

int command_status(int argc, char **argv)
{
    command_configure(NAME, "Shows servers, regions, entities and rates of a running cluster.", NULL, fields,
                      sizeof fields / sizeof *fields, argc, argv, NULL);
    struct cluster cluster;
    target_open(NAME, &flags.target, &cluster);
    if (flags.wait_protected > 0 && !wait_protected(&cluster)) {
        cluster_close(&cluster);
        return EXIT_NOT_HELD;
    }
    target_refresh(NAME, &flags.target, &cluster);
    uint64_t first_us = loop_now_us();
    uint32_t count = cluster.server_count;
    struct sample *before = calloc(count + 1, sizeof *before);
    if (before == NULL) program_fail(NAME, EXIT_NOT_HELD, "out of memory");
    for (uint32_t i = 0; i < count; i++) before[i] = look_sample(&cluster.servers[i]);
    usleep((useconds_t)(flags.interval * 1e6));
    target_refresh(NAME, &flags.target, &cluster);
    if (cluster.server_count != count) {
        /* Somebody joined or left between the looks: rates would be of others. */
        free(before);
        before = calloc(cluster.server_count + 1, sizeof *before);
        if (before == NULL) program_fail(NAME, EXIT_NOT_HELD, "out of memory");
        for (uint32_t i = 0; i < cluster.server_count; i++) before[i] = look_sample(&cluster.servers[i]);
    }
    double seconds = (double)(loop_now_us() - first_us) / 1e6;
    if (flags.target.json)
        print_json(&cluster, before, seconds);
    else
        print_table(&cluster, before, seconds);
    bool well = cluster_ready(&cluster, 1) && cluster_sums(&cluster).silent == 0;
    free(before);
    cluster_close(&cluster);
    return well ? EXIT_WELL : EXIT_NOT_HELD;
}
