#include "tools/command.h"

#include "io/program.h"
#include "tools/target.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile bool *told_to_stop;

/* Whether the word is a flag whose value is the word behind it. */
static bool takes_next(const char *word, const struct config_field *fields, size_t field_count)
{
    for (size_t i = 0; i < field_count; i++)
        if (strcmp(word + 2, fields[i].name) == 0) return fields[i].kind != CONFIG_BOOL;
    return false;
}

/* People write flags behind what they are about, too: brings them to the front, each group in its order. */
static void flags_first(const struct config_field *fields, size_t field_count, int argc, char **argv)
{
    int front = 1;
    for (int at = 1; at < argc && strcmp(argv[at], "--") != 0; at++) {
        if (strncmp(argv[at], "--", 2) != 0) continue;
        int words = takes_next(argv[at], fields, field_count) ? 2 : 1;
        if (at + words > argc) return; /* a value is missing: not the operand in front of it */
        for (int word = 0; word < words; word++, front++) {
            char *moved = argv[at + word];
            memmove(&argv[front + 1], &argv[front], (size_t)(at + word - front) * sizeof *argv);
            argv[front] = moved;
        }
        at += words - 1;
    }
}

void command_configure(const char *name, const char *summary, const char *operands, const struct config_field *fields,
                       size_t field_count, int argc, char **argv, int *operand)
{
    struct config config = {.program = name,
                            .summary = summary,
                            .version = TERRANE_VERSION,
                            .operands = operands,
                            .fields = fields,
                            .field_count = field_count};
    bool another_command = operands != NULL && strncmp(operands, "--", 2) == 0;
    if (operands != NULL && !another_command) flags_first(fields, field_count, argc, argv);
    program_configure(&config, argc, argv, operand);
}

uint64_t command_entity(const char *name, int argc, char *const *argv, int operand)
{
    if (argc - operand != 1) program_fail(name, EXIT_USAGE, "one entity's id: %s 42", name);
    char *end;
    errno = 0;
    unsigned long long id = strtoull(argv[operand], &end, 10);
    if (argv[operand][0] < '0' || argv[operand][0] > '9' || *end != '\0' || errno != 0 || id == 0)
        program_fail(name, EXIT_USAGE, "\"%.80s\" is no entity's id: a whole number from 1", argv[operand]);
    return id;
}

static void on_signal(int number)
{
    *told_to_stop = true;
    signal(number, SIG_DFL); /* the second one is obeyed by the system */
}

void command_heed_signals(volatile bool *flag)
{
    struct sigaction action = {.sa_handler = on_signal};
    told_to_stop = flag;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

const char *command_query_urls(const char *name, const char *coordinator, const char *query)
{
    static char urls[CLUSTER_URLS_TEXT];
    if (query[0] == '\0') {
        if (cluster_query_urls(coordinator, urls) != TERRANE_ERR_OK)
            program_fail(name, EXIT_USAGE, "--coordinator: \"%.100s\" is no url like tcp://127.0.0.1:7070",
                         coordinator);
        return urls;
    }
    uint32_t count = 0;
    for (const char *at = query;; at++) {
        size_t size = strcspn(at, ",");
        if (strncmp(at, "tcp://", 6) != 0 || size >= LIMIT_URL || count++ == CLUSTER_URLS)
            program_fail(name, EXIT_USAGE, "--query: \"%.100s\" is no url like tcp://127.0.0.1:7071", query);
        at += size;
        if (*at == '\0') return query;
    }
}

void target_refresh(const char *name, const struct target *target, struct cluster *c)
{
    enum terrane_error error = cluster_refresh_all(c, (uint32_t)target->patience);
    if (error == TERRANE_ERR_OK) return;
    program_fail(name, error == TERRANE_ERR_TIMED_OUT ? EXIT_MISSING : EXIT_NOT_HELD,
                 "no status from %s: %s; is a coordinator there? (--coordinator, --query)", c->query_url,
                 terrane_error_text(error));
}
