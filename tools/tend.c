/* terrane agent: one process under an agent, for containers and hosts (systemd, Kubernetes): what `terrane up` does for
 * its whole cluster, for one program. */
#include "io/loop.h"
#include "io/program.h"
#include "tools/agent.h"
#include "tools/command.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME         "terrane agent"
#define LAST_MS      2000 /* for the last report */
#define SENSELESS_US 2000000u

static struct flags {
    const char *queries, *name;
    uint64_t restart_ms, stop_ms;
    bool node;
} flags;

static const struct config_field fields[] = {
    {.name = "coordinator-query",
     .kind = CONFIG_TEXT,
     .value = &flags.queries,
     .preset = "tcp://127.0.0.1:7071",
     .unit = "URL",
     .help = "The coordinators' query sockets, separated by commas: who is told of a death."},
    {.name = "restart-ms",
     .kind = CONFIG_UINT,
     .value = &flags.restart_ms,
     .preset = "100",
     .min = 1,
     .max = 5000,
     .unit = "MS",
     .help = "It is started again after so long; twice as long each time it dies young, up to 5 s."},
    {.name = "stop-ms",
     .kind = CONFIG_UINT,
     .value = &flags.stop_ms,
     .preset = "10000",
     .min = 1,
     .max = 600000,
     .unit = "MS",
     .help = "How long it may take to end after SIGTERM or SIGINT, which are passed on; then it is killed."},
    {.name = "node",
     .kind = CONFIG_BOOL,
     .value = &flags.node,
     .preset = "1",
     .help = "It is a node of the cluster: TERRANE_NODE_ID says who it is, and its death is told; --no-node for a "
             "coordinator."},
    {.name = "label",
     .kind = CONFIG_TEXT,
     .value = &flags.name,
     .preset = "",
     .unit = "TEXT",
     .help = "What it is called in messages; none: the program's name."},
};

static volatile bool stop;

/* Its own exit code, or 128 + the signal that ended it. */
static int code_of(const struct child *c)
{
    if (!c->ended) return EXIT_NOT_HELD;
    return WIFEXITED(c->status) ? WEXITSTATUS(c->status) : 128 + WTERMSIG(c->status);
}

/* A wrong command line does not become right by repetition. */
static bool is_senseless(const struct ward *w)
{
    bool usage = w->ended_us != 0 && w->child.ended && WIFEXITED(w->child.status) &&
                 (WEXITSTATUS(w->child.status) == EXIT_USAGE || WEXITSTATUS(w->child.status) == 127);
    return usage && w->starts == 1 && w->ended_us - w->started_us < SENSELESS_US;
}

static int end(struct agent *agent, struct ward *w)
{
    child_signal(&w->child, SIGTERM);
    child_signal(&w->child, SIGCONT);
    if (w->ended_us == 0 && !child_wait(&w->child, (int)flags.stop_ms)) {
        fprintf(stderr, "%s: %s does not end by itself: killed\n", NAME, w->options.child.name);
        child_signal(&w->child, SIGKILL);
        child_wait(&w->child, 1000);
    }
    agent_finish(agent, LAST_MS);
    return code_of(&w->child);
}

int command_agent(int argc, char **argv)
{
    int operand;
    struct agent *agent;
    command_configure(
        NAME,
        "Runs PROGRAM and starts it again whenever it ends, each time as a new incarnation. The moment it\n"
        "ends the coordinators are told, so that a standby takes over without waiting for the lease.",
        "-- PROGRAM [ARGUMENT...]", fields, sizeof fields / sizeof *fields, argc, argv, &operand);
    if (operand >= argc) program_fail(NAME, EXIT_USAGE, "the program to run is missing; see %s --help", NAME);
    if (argc - operand > (int)CHILD_ARGUMENTS)
        program_fail(NAME, EXIT_USAGE, "at most %u arguments, not %d", CHILD_ARGUMENTS, argc - operand);
    command_heed_signals(&stop);
    if (agent_open(&(struct agent_options){.name = NAME, .restart_ms = flags.restart_ms}, &agent) != TERRANE_ERR_OK)
        program_fail(NAME, EXIT_NOT_HELD, "out of memory or file descriptors");
    if (flags.node && agent_tell(agent, flags.queries) != TERRANE_ERR_OK)
        program_fail(NAME, EXIT_USAGE, "--coordinator-query: \"%.200s\" is no url like tcp://127.0.0.1:7071",
                     flags.queries);
    const char *slash = strrchr(argv[operand], '/');
    const char *label = flags.name[0] != '\0' ? flags.name : slash != NULL ? slash + 1 : argv[operand];
    struct ward *w =
        agent_add(agent, &(struct ward_options){.child = {.name = label, .argv = argv + operand, .own_output = true},
                                                .node = flags.node});
    if (w == NULL) program_fail(NAME, EXIT_MISSING, "%s can't be started", argv[operand]);
    while (!stop && !is_senseless(w)) agent_wait(agent, -1, 200);
    return stop ? end(agent, w) : code_of(&w->child);
}
