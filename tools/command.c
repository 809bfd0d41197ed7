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

const char *command_query_url(const char *name, const char *coordinator, const char *query)
{
    static char url[LIMIT_URL];
    if (query[0] == '\0') {
        if (cluster_query_url(coordinator, url) != TERRANE_ERR_OK)
            program_fail(name, EXIT_USAGE, "--coordinator: \"%.100s\" is no url like tcp://127.0.0.1:7070",
                         coordinator);
    } else {
        if (strncmp(query, "tcp://", 6) != 0 || strlen(query) >= LIMIT_URL)
            program_fail(name, EXIT_USAGE, "--query: \"%.100s\" is no url like tcp://127.0.0.1:7071", query);
        snprintf(url, sizeof url, "%s", query);
    }
    return url;
}
