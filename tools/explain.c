/* terrane events and terrane plan: what the coordinator decided and why, and what it would do now. */
#include "io/program.h"
#include "tools/answer.h"
#include "tools/target.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FOLLOW_US 250000u

static struct event_flags {
    struct target target;
    bool follow;
} event_flags;

static struct plan_flags {
    struct target target;
} plan_flags;

static const struct config_field event_fields[] = {
    TARGET_FIELDS(event_flags.target, "2000", "One object an event."),
    {.name = "follow",
     .kind = CONFIG_BOOL,
     .value = &event_flags.follow,
     .preset = "0",
     .help = "Goes on with what is decided from now on, until interrupted."},
};

static const struct config_field plan_fields[] = {
    TARGET_FIELDS(plan_flags.target, "2000", "The coordinator's whole answer."),
};

static volatile bool stop;

/* The parsed answer; false: `answer` says why not. */
static bool ask(struct cluster *c, const struct explain *explain, uint64_t patience_ms, struct document *j,
                struct answer *answer)
{
    struct writer w = {0};
    explain_encode(&w, explain);
    *answer = answer_wait(c, &w, patience_ms, &stop);
    writer_close(&w);
    if (answer->error == TERRANE_ERR_OK && answer->json == NULL) answer->error = TERRANE_ERR_MESSAGE_UNKNOWN;
    if (answer->error == TERRANE_ERR_OK) answer->error = document_parse(j, answer->json, answer->json_size);
    return answer->error == TERRANE_ERR_OK;
}

static void print_figures(const struct document *j, uint32_t at)
{
    const char *leaf = document_text(j, at, "leaf"), *from = document_text(j, at, "from");
    const char *to = document_text(j, at, "to");
    uint64_t leaves = document_count(j, at, "leaves");
    printf("%-13s %-9s", document_text(j, at, "event"), leaf[0] == '\0' ? "(root)" : leaf);
    if (leaves > 1) printf(" and %llu more", (unsigned long long)leaves - 1);
    if (strcmp(from, to) != 0 && to[0] != '\0')
        printf(" %s -> %s", from[0] == '\0' ? "nobody" : from, to);
    else
        printf(" %s", from);
    printf(", %llu entities", (unsigned long long)document_count(j, at, "entities"));
    double load = document_number(j, at, "load", 0), mark = document_number(j, at, "mark", 0);
    double from_part = document_number(j, at, "from_part", 0), to_part = document_number(j, at, "to_part", 0);
    if (load > 0) printf(", load %.0f", load);
    if (mark > 0) printf(" of %.0f", mark);
    if (from_part > 0) printf(", shares %.2f -> %.2f", from_part, to_part);
    printf(": %s\n", document_text(j, at, "reason"));
}

/* An event as one line of JSON, with the members that the coordinator gave. */
static void print_json(const struct document *j, uint32_t at)
{
    const char *separator = "{";
    for (uint32_t m = document_first(j, at); m != DOCUMENT_NONE; m = document_next(j, m)) {
        const struct document_value *v = &j->values[m];
        printf("%s\"%s\":", separator, v->key);
        if (v->kind == DOCUMENT_TEXT)
            printf("\"%s\"", v->text); /* names, quadkeys and our own words: nothing to escape */
        else if (v->kind == DOCUMENT_NUMBER)
            printf("%.15g", v->number);
        else
            printf("null");
        separator = ",";
    }
    printf("}\n");
}

static uint64_t print_events(const struct document *j, uint64_t since)
{
    uint32_t events = document_member(j, 0, "events");
    for (uint32_t e = document_first(j, events); e != DOCUMENT_NONE; e = document_next(j, e)) {
        since = document_count(j, e, "number");
        if (event_flags.target.json) {
            print_json(j, e);
            continue;
        }
        printf("%6llu  %8.1f s ago  ", (unsigned long long)since, document_number(j, e, "ago_ms", 0) / 1000);
        print_figures(j, e);
    }
    fflush(stdout);
    return since;
}

int command_events(int argc, char **argv)
{
    static const char name[] = "terrane events";
    int operand;
    command_configure(name,
                      "Shows what the coordinator decided (moves, promotions, refusals, ...) with the figures that\n"
                      "caused it: the last thousand since it leads.",
                      "", event_fields, sizeof event_fields / sizeof *event_fields, argc, argv, &operand);
    if (argc != operand) program_fail(name, EXIT_USAGE, "\"%.40s\" is too much", argv[operand]);
    command_heed_signals(&stop);
    struct cluster cluster;
    struct document j = {0};
    struct answer answer;
    target_open(name, &event_flags.target, &cluster);
    uint64_t since = 0, term = 0;
    do {
        struct explain explain = {.what = EXPLAIN_EVENTS, .since = since};
        if (!ask(&cluster, &explain, event_flags.target.patience, &j, &answer)) {
            if (stop) break;
            return answer_failed(name, &answer);
        }
        bool other = term != 0 && document_count(&j, 0, "term") != term;
        term = document_count(&j, 0, "term");
        since = other ? 0 : print_events(&j, since); /* another leads: from its beginning */
        if (event_flags.follow && !stop && !other) usleep(FOLLOW_US);
    } while (event_flags.follow && !stop);
    return EXIT_WELL;
}

int command_plan(int argc, char **argv)
{
    static const char name[] = "terrane plan";
    int operand;
    command_configure(
        name,
        "Shows how evenly the servers bear the load and what the planner would do now, and why. Nothing is\n"
        "done; also with --balance 0.",
        "", plan_fields, sizeof plan_fields / sizeof *plan_fields, argc, argv, &operand);
    if (argc != operand) program_fail(name, EXIT_USAGE, "\"%.40s\" is too much", argv[operand]);
    command_heed_signals(&stop);
    struct cluster cluster;
    struct document j = {0};
    struct answer answer;
    target_open(name, &plan_flags.target, &cluster);
    struct explain explain = {.what = EXPLAIN_PLAN};
    if (!ask(&cluster, &explain, plan_flags.target.patience, &j, &answer)) return answer_failed(name, &answer);
    if (plan_flags.target.json) {
        printf("%.*s\n", (int)answer.json_size, answer.json);
        return EXIT_WELL;
    }
    uint32_t decisions = document_member(&j, 0, "decisions");
    if (!document_bool(&j, 0, "known")) printf("too few servers have said yet what they bear\n");
    printf("load %.0f, the share of a server %.0f; the most loaded bears %.3f of its share, the least %.3f; %llu "
           "leaves are "
           "moving\n",
           document_number(&j, 0, "load", 0), document_number(&j, 0, "mean", 0), document_number(&j, 0, "worst", 0),
           document_number(&j, 0, "least", 0), (unsigned long long)document_count(&j, 0, "migrating"));
    if (document_first(&j, decisions) == DOCUMENT_NONE) printf("nothing to do\n");
    for (uint32_t d = document_first(&j, decisions); d != DOCUMENT_NONE; d = document_next(&j, d)) print_figures(&j, d);
    return EXIT_WELL;
}
