/* terrane: the command for people and scripts. See command.h. */
#include "io/program.h"
#include "tools/child.h"
#include "tools/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"up", "runs a whole cluster on this machine, with bots that check it", command_up},
    {"bots", "moves a swarm of bots through a running cluster and checks what they see", command_bots},
    {"status", "shows servers, regions, entities and rates", command_status},
    {"top", "shows all servers live, full screen", command_top},
    {"doctor", "examines a cluster and says what to do about what is wrong", command_doctor},
    {"map", "shows the world's regions and whose they are, in the terminal or as a picture", command_map},
    {"find", "finds an entity: its server, region and position", command_find},
    {"trace", "tells where an entity has been, and why it changed hands", command_trace},
    {"watch", "shows the frames of a part of the world as they are published", command_watch},
    {"drain", "moves a cell server's regions to others, so that it can be stopped", command_drain},
    {"events", "shows what the coordinator decided, and why", command_events},
    {"plan", "shows what the planner would do now, and why", command_plan},
    {"move", "moves a region to another server", command_move},
    {"pin", "keeps a region where it is", command_pin},
    {"ready", "asks a server whether it is ready, for health checks and scripts that wait", command_ready},
    {"agent", "keeps one process running and tells the coordinators at once when it dies", command_agent},
};

static void usage(FILE *to)
{
    fputs("Usage: terrane COMMAND [FLAGS]\n\nOne seamless game world over many processes.\n\nCommands:\n", to);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].summary);
    fputs("\n`terrane COMMAND --help` lists a command's flags. Exit codes: 0 well; 1 the thing checked does not hold;\n"
          "2 bad usage or configuration; 3 something needed is missing.\n",
          to);
}

/* Ends without destructors: sockets of nng must not be closed on the way out. */
static _Noreturn void leave(int code)
{
    fflush(stdout);
    fflush(stderr);
    _exit(code);
}

int main(int argc, char **argv)
{
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
        usage(stdout);
        return EXIT_WELL;
    }
    if (argc >= 2 && strcmp(argv[1], "--version") == 0) {
        printf("terrane %s\n", TERRANE_VERSION);
        return EXIT_WELL;
    }
    if (argc >= 2 && strcmp(argv[1], "--flags") == 0) {
        for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) puts(commands[i].name);
        puts("--help\n--version");
        return EXIT_WELL;
    }
    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "tether") == 0) return child_tether(argc - 1, argv + 1);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[1], commands[i].name) != 0) continue;
        char name[64];
        snprintf(name, sizeof name, "terrane %s", commands[i].name);
        argv[1] = name;
        leave(commands[i].run(argc - 1, argv + 1));
    }
    fprintf(stderr, "terrane: \"%s\" is no command; see terrane --help\n", argv[1]);
    return EXIT_USAGE;
}
