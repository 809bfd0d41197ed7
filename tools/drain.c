/* terrane drain SERVER: asks the coordinator to move everything away from a cell server, and says how far that is. */
#include "io/loop.h"
#include "io/program.h"
#include "tools/answer.h"
#include "tools/target.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME    "terrane drain"
#define LOOK_US 100000u

static struct flags {
    struct target target;
    bool wait;
} flags;

static const struct config_field fields[] = {
    TARGET_FIELDS(flags.target, "60000", "One object at the end."),
    {.name = "wait",
     .kind = CONFIG_BOOL,
     .value = &flags.wait,
     .preset = "0",
     .help = "Ends when nothing is left on the server; shows what is."},
};

static volatile bool stop;

static struct answer ask(struct cluster *c, const char *server)
{
    struct drain drain = {.name = ""};
    struct writer w = {0};
    snprintf(drain.name, sizeof drain.name, "%s", server);
    drain_encode(&w, &drain);
    struct answer answer = answer_ask(c, &w, &stop);
    writer_close(&w);
    return answer;
}

static void print_progress(const char *server, const struct answer *answer, double seconds)
{
    bool refused = answer->error != TERRANE_ERR_OK, explained = answer->text[0] != '\0';
    fprintf(stderr, "%6.1f s  %s: ", seconds, server);
    if (refused)
        fprintf(stderr, "%s%s", terrane_error_text(answer->error), explained ? ": " : "");
    else if (!explained)
        fprintf(stderr, "%u regions are left", answer->done.count);
    fprintf(stderr, "%s\n", answer->text);
}

static struct answer drain(struct cluster *c, const char *server, uint64_t began_us)
{
    uint64_t until_us = began_us + flags.target.patience * 1000;
    uint32_t shown = UINT32_MAX;
    struct answer answer = {.error = TERRANE_ERR_TIMED_OUT};
    while (!stop) {
        answer = ask(c, server);
        bool news = answer.error != TERRANE_ERR_OK ? shown != UINT32_MAX - 1 : shown != answer.done.count;
        shown = answer.error != TERRANE_ERR_OK ? UINT32_MAX - 1 : answer.done.count;
        if (news) print_progress(server, &answer, (double)(loop_now_us() - began_us) / 1e6);
        if (answer.error != TERRANE_ERR_OK && !answer_passes(answer.error)) break;
        if (answer.error == TERRANE_ERR_OK && (!flags.wait || answer.done.count == 0)) break;
        if (loop_now_us() >= until_us) break;
        usleep(LOOK_US);
    }
    return answer;
}

int command_drain(int argc, char **argv)
{
    int operand;
    command_configure(
        NAME,
        "Moves a cell server's regions to others, entity by entity unnoticed, and gives it nothing new, so\n"
        "that it can be stopped. Asking again is fine and says how many regions are left.",
        "SERVER", fields, sizeof fields / sizeof *fields, argc, argv, &operand);
    if (argc - operand != 1) program_fail(NAME, EXIT_USAGE, "one server's name, as terrane status shows it");
    const char *server = argv[operand];
    if (strlen(server) >= LIMIT_NAME) program_fail(NAME, EXIT_USAGE, "\"%.80s\" is no server's name", server);
    command_heed_signals(&stop);
    struct cluster cluster;
    target_open(NAME, &flags.target, &cluster);
    uint64_t began_us = loop_now_us();
    struct answer answer = drain(&cluster, server, began_us);
    bool drained = answer.error == TERRANE_ERR_OK && answer.done.count == 0;
    if (flags.target.json)
        printf("{\"server\":\"%s\",\"accepted\":%s,\"drained\":%s,\"regions_left\":%u,\"seconds\":%.3f}\n", server,
               answer.error == TERRANE_ERR_OK ? "true" : "false", drained ? "true" : "false", answer.done.count,
               (double)(loop_now_us() - began_us) / 1e6);
    if (answer.error == TERRANE_ERR_TIMED_OUT) {
        fprintf(stderr, "%s: no coordinator answers at %s\n", NAME,
                flags.target.query[0] != '\0' ? flags.target.query : flags.target.coordinator);
        return EXIT_MISSING;
    }
    return answer.error == TERRANE_ERR_OK && (drained || !flags.wait) ? EXIT_WELL : EXIT_NOT_HELD;
}
