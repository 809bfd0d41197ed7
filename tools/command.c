#include "tools/command.h"

#include "io/program.h"
#include "tools/cluster.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static volatile bool *told_to_stop;

void command_configure(const char *name, const char *summary, const char *operands, const struct config_field *fields,
                       size_t field_count, int argc, char **argv, int *operand)
{
    struct config config = {.program = name,
                            .summary = summary,
                            .version = TERRANE_VERSION,
                            .operands = operands,
                            .fields = fields,
                            .field_count = field_count};
    program_configure(&config, argc, argv, operand);
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
