/* terrane trace ID: who has had an entity when, and why it changed hands. Each server remembers its own part; sorted
 * by version they make the whole way. */
#include "proto/trace.h"
#include "common/array.h"
#include "common/geometry.h"
#include "io/program.h"
#include "proto/json.h"
#include "tools/target.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NAME "terrane trace"

static struct flags {
    struct target target;
} flags;

static const struct config_field fields[] = {
    TARGET_FIELDS(flags.target, "2000", "One object: roles and steps, oldest first."),
};

struct seen { /* one step, at the server that remembers it */
    const struct cluster_server *server;
    struct trace_step step;
};

struct way {
    struct seen *steps;
    uint32_t count, room;
    enum trace_role *roles; /* of each server; TRACE_ROLE_END: it did not answer */
    uint32_t silent;
    uint64_t horizon_us; /* the shortest of all: further back there may be more */
};

static void collect(struct way *way, struct cluster *c, struct entity_id id)
{
    struct writer question = {0};
    trace_encode(&question, &(struct trace){.id = id});
    way->roles = calloc(c->server_count + 1, sizeof *way->roles);
    if (way->roles == NULL) program_fail(NAME, EXIT_NOT_HELD, "out of memory");
    way->horizon_us = UINT64_MAX;
    for (uint32_t i = 0; i < c->server_count; i++) {
        const struct cluster_server *s = &c->servers[i];
        struct trace_result result;
        struct trace_step step;
        struct cursor answer;
        enum terrane_error error = TERRANE_ERR_TIMED_OUT;
        if (s->answered) error = cluster_ask(c, s, &question, (uint32_t)flags.target.patience, &answer);
        if (error == TERRANE_ERR_OK) error = trace_result_decode(answer, &result);
        way->roles[i] = error == TERRANE_ERR_OK ? result.role : TRACE_ROLE_END;
        way->silent += error != TERRANE_ERR_OK;
        if (error != TERRANE_ERR_OK) continue;
        if (result.horizon_us < way->horizon_us) way->horizon_us = result.horizon_us;
        while (trace_result_next(&result, &step)) {
            ARRAY_RESERVE(way->steps, way->room, (size_t)way->count + 1);
            way->steps[way->count++] = (struct seen){.server = s, .step = step};
        }
    }
    writer_close(&question);
}

/* Oldest first. A hand-off's two ends have one version: who gave comes before who took. */
static int compare(const void *a, const void *b)
{
    const struct trace_step *x = &((const struct seen *)a)->step, *y = &((const struct seen *)b)->step;
    if (x->version != y->version) return x->version < y->version ? -1 : 1;
    if ((x->cause == TRACE_PASSED_ON) != (y->cause == TRACE_PASSED_ON)) return x->cause == TRACE_PASSED_ON ? -1 : 1;
    if (x->age_us != y->age_us) return x->age_us > y->age_us ? -1 : 1;
    return x->cause < y->cause ? -1 : x->cause > y->cause;
}

static const char *leaf_text(struct quadkey leaf, char out[LIMIT_QUADKEY_TEXT + 4])
{
    char key[LIMIT_QUADKEY_TEXT];
    if (quadkey_equal(leaf, QUADKEY_NONE)) return "";
    quadkey_text(leaf, key);
    snprintf(out, LIMIT_QUADKEY_TEXT + 4, "r/%s/", key);
    return out;
}

/* "2026-11-30T20:15:01.250Z". */
static const char *time_text(uint64_t age_us, char out[40])
{
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 - (int64_t)age_us;
    time_t second = (time_t)(us / 1000000);
    char text[24];
    gmtime_r(&second, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out, 40, "%s.%03dZ", text, (int)(us / 1000 % 1000));
    return out;
}

static const char *node_text(const struct cluster *c, struct node_id node)
{
    const char *name = cluster_node_name(c, node);
    return node.v == 0 ? "" : name != NULL ? name : "(one that is gone)";
}

/* "passed on to cell-2, r/03/". */
static void cause_text(const struct cluster *c, const struct trace_step *s, char *out, size_t room)
{
    char from[LIMIT_QUADKEY_TEXT + 4], to[LIMIT_QUADKEY_TEXT + 4];
    const char *a = leaf_text(s->from, from), *b = leaf_text(s->to, to), *node = node_text(c, s->node);
    switch (s->cause) {
    case TRACE_ENTERED: snprintf(out, room, "entered by %s in %s", node, b); break;
    case TRACE_ARRIVED: snprintf(out, room, "arrived by a hand-off in %s", b); break;
    case TRACE_PASSED_ON: snprintf(out, room, "passed on from %s to %s, %s", a, node, b); break;
    case TRACE_CROSSED: snprintf(out, room, "crossed from %s to %s, same server", a, b); break;
    case TRACE_PROMOTED: snprintf(out, room, "taken over with %s: the standby became its primary", b); break;
    case TRACE_GIVEN_UP: snprintf(out, room, "given up with %s: its primary is %s", a, node); break;
    case TRACE_LEFT: snprintf(out, room, "left the world from %s", a); break;
    case TRACE_NONE:
    case TRACE_CAUSE_END: snprintf(out, room, "?"); break;
    }
}

static void print_text(const struct way *way, const struct cluster *c, uint64_t id)
{
    bool known = way->count > 0;
    for (uint32_t i = 0; i < way->count; i++) {
        const struct seen *s = &way->steps[i];
        char when[40], what[160];
        cause_text(c, &s->step, what, sizeof what);
        printf("%s  %-12s v%-10" PRIu64 " %s\n", time_text(s->step.age_us, when), s->server->name, s->step.version,
               what);
    }
    for (uint32_t i = 0; i < c->server_count; i++) {
        static const char *const roles[] = {"", "owns it", "sees it across a border", "holds the standby's copy"};
        if (way->roles[i] == TRACE_ROLE_END)
            printf("now  %-12s does not answer\n", c->servers[i].name);
        else if (way->roles[i] != TRACE_UNKNOWN)
            printf("now  %-12s %s\n", c->servers[i].name, roles[way->roles[i]]);
        known = known || way->roles[i] == TRACE_OWNED;
    }
    if (!known) fprintf(stderr, "%s: nobody remembers %" PRIu64 "\n", NAME, id);
    if (way->horizon_us != UINT64_MAX)
        fprintf(stderr, "all servers remember the last %.0f s, and what they have been through since their starts\n",
                (double)way->horizon_us / 1e6);
}

static void put_leaf(struct writer *w, const char *key, struct quadkey leaf)
{
    char text[LIMIT_QUADKEY_TEXT];
    json_key(w, key);
    if (quadkey_equal(leaf, QUADKEY_NONE)) {
        json_null(w);
        return;
    }
    quadkey_text(leaf, text);
    json_text(w, text);
}

static void put_step(struct writer *w, const struct cluster *c, const struct seen *s)
{
    char when[40];
    const char *node = cluster_node_name(c, s->step.node);
    json_open(w, '{');
    json_key(w, "time"), json_text(w, time_text(s->step.age_us, when));
    json_key(w, "age_us"), json_uint(w, s->step.age_us);
    json_key(w, "server"), json_text(w, s->server->name);
    json_key(w, "cause"), json_text(w, trace_cause_name(s->step.cause));
    json_key(w, "version"), json_uint(w, s->step.version);
    put_leaf(w, "from", s->step.from);
    put_leaf(w, "to", s->step.to);
    json_key(w, "node"), json_id(w, s->step.node.v);
    json_key(w, "node_name");
    if (node != NULL)
        json_text(w, node);
    else
        json_null(w);
    json_close(w, '}');
}

static void print_json(const struct way *way, const struct cluster *c, uint64_t id)
{
    struct writer w = {0};
    json_open(&w, '{');
    json_key(&w, "id"), json_uint(&w, id);
    json_key(&w, "steps"), json_open(&w, '[');
    for (uint32_t i = 0; i < way->count; i++) put_step(&w, c, &way->steps[i]);
    json_close(&w, ']');
    json_key(&w, "roles"), json_open(&w, '{');
    for (uint32_t i = 0; i < c->server_count; i++) {
        if (way->roles[i] == TRACE_ROLE_END) continue;
        json_key(&w, c->servers[i].name), json_text(&w, trace_role_name(way->roles[i]));
    }
    json_close(&w, '}');
    json_key(&w, "servers_silent"), json_uint(&w, way->silent);
    json_key(&w, "horizon_us"), json_uint(&w, way->horizon_us == UINT64_MAX ? 0 : way->horizon_us);
    json_close(&w, '}');
    printf("%.*s\n", (int)w.size, (const char *)w.data);
    writer_close(&w);
}

int command_trace(int argc, char **argv)
{
    int operand;
    command_configure(
        NAME,
        "Tells where an entity has been: its owners in order, when each changed and why (entered, hand-off,\n"
        "fail-over, left), and what it is to each server now. Exit code 1 if nobody knows it.\n\n"
        "Example: terrane trace 42",
        "ID", fields, sizeof fields / sizeof *fields, argc, argv, &operand);
    uint64_t id = command_entity(NAME, argc, argv, operand);
    struct cluster cluster;
    struct way way = {0};
    target_open(NAME, &flags.target, &cluster);
    target_refresh(NAME, &flags.target, &cluster);
    collect(&way, &cluster, (struct entity_id){id});
    if (way.count > 0) qsort(way.steps, way.count, sizeof *way.steps, compare);
    if (flags.target.json)
        print_json(&way, &cluster, id);
    else
        print_text(&way, &cluster, id);
    bool known = way.count > 0;
    for (uint32_t i = 0; i < cluster.server_count; i++) known = known || way.roles[i] == TRACE_OWNED;
    free(way.steps);
    free(way.roles);
    cluster_close(&cluster);
    return known ? EXIT_WELL : EXIT_NOT_HELD;
}
