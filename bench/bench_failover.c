/* How long the world is silent when a process dies: from the fault to the first frame of the successor, as a gateway
 * hears it. Real processes, sockets and Redis; this process is the launcher (tools/local.h), its agent, and the
 * gateway.
 *
 *   kill         SIGKILL of a cell server, whose end the agent sees; each of its regions is a sample
 *   pause        SIGSTOP of a cell server: nobody can prove its death, so the lease decides
 *   partition    a cell server's packets are dropped, both ways: likewise (needs root, nft, setpriv)
 *   coordinator  SIGKILL of the coordinator while a gateway joins: until the others are told of it
 *   soak         no fault at all, but a busy loop on every core: every fail-over is a false one
 *
 * One fault at a time: the next one comes when every region has a level standby again and is heard. */
#include "bench/failover_probe.h"
#include "common/check.h"
#include "common/config.h"
#include "common/geometry.h"
#include "io/loop.h"
#include "io/program.h"
#include "tools/cluster.h"
#include "tools/local.h"
#include "tools/places.h"

#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRAM     "bench_failover"
#define FIRST_GROUP 64200u
#define GONE_US     10000000u /* a fault that nobody makes good in that time has failed */
#define WELL_US     60000000u
#define FRESH_US    300000u
#define SETTLED_US  700000u
#define SAMPLES_MAX 65536u
#define BUSY_MAX    64u

static const char *const cases[] = {"all", "kill", "pause", "partition", "coordinator", "soak", NULL};
enum failure { ALL, KILL, PAUSE, PARTITION, COORDINATOR, SOAK };

static struct flags {
    uint64_t rounds, servers, bots, lease_ms;
    double seconds;
    uint32_t chosen;
    bool quick;
} flags;

static const struct config_field fields[] = {
    {.name = "case",
     .kind = CONFIG_CHOICE,
     .value = &flags.chosen,
     .preset = "all",
     .choices = cases,
     .help = "One case only; all: but the soak."},
    {.name = "rounds",
     .kind = CONFIG_UINT,
     .value = &flags.rounds,
     .preset = "0",
     .min = 0,
     .max = 10000,
     .help = "Faults of each case; 0: 30, with --quick 4."},
    {.name = "servers",
     .kind = CONFIG_UINT,
     .value = &flags.servers,
     .preset = "4",
     .min = 2,
     .max = LOCAL_SERVERS,
     .help = "Cell servers."},
    {.name = "bots",
     .kind = CONFIG_UINT,
     .value = &flags.bots,
     .preset = "1000",
     .min = 0,
     .max = 200000,
     .help = "Bots that move meanwhile; 0: none."},
    {.name = "lease-ms",
     .kind = CONFIG_UINT,
     .value = &flags.lease_ms,
     .preset = "250",
     .min = 100,
     .max = 10000,
     .help = "The cluster's lease."},
    {.name = "seconds",
     .kind = CONFIG_DOUBLE,
     .value = &flags.seconds,
     .preset = "600",
     .min = 1,
     .max = 1e6,
     .unit = "SECONDS",
     .help = "How long the soak lasts."},
    {.name = "quick", .kind = CONFIG_BOOL, .value = &flags.quick, .preset = "0", .help = "Ends within a minute."},
};

static struct bench {
    struct local local;
    struct cluster cluster;
    struct child bots, busy[BUSY_MAX];
    struct probe *probe;
    char run_dir[256], programs[512];
    bool own_network;
    uint32_t next_victim;
    double samples[SAMPLES_MAX]; /* ms */
    uint32_t sample_count;
} bench;

static _Noreturn void leave(enum program_exit code)
{
    for (uint32_t i = 0; i < BUSY_MAX; i++) child_signal(&bench.busy[i], SIGKILL);
    child_signal(&bench.bots, SIGKILL);
    local_stop(&bench.local, 3000);
    if (code != EXIT_WELL)
        fprintf(stderr, "%s: logs are in %s\n", PROGRAM, bench.run_dir);
    else
        places_remove_folder(bench.run_dir);
    fflush(stdout);
    _exit((int)code);
}

/* Lets everything run for at most that long, or until something has happened. */
static void turn(uint64_t until_us)
{
    uint64_t next_us = probe_step(bench.probe), now_us = loop_now_us();
    if (next_us > until_us) next_us = until_us;
    int wait_ms = next_us > now_us ? (int)((next_us - now_us) / 1000) + 1 : 0;
    agent_wait(bench.local.agent, probe_fd(bench.probe), wait_ms);
}

static void turn_for(uint64_t span_us)
{
    for (uint64_t until_us = loop_now_us() + span_us; loop_now_us() < until_us;) turn(until_us);
}

/* Setting up */

static void run_command(char *const *argv, bool must)
{
    struct child c;
    bool well = child_start(&c, &(struct child_options){.name = argv[0], .argv = argv}) && child_wait(&c, 10000);
    child_close(&c);
    if (must && (!well || c.status != 0)) {
        fprintf(stderr, "%s: %s failed\n", PROGRAM, argv[0]);
        leave(EXIT_MISSING);
    }
}

static void shell_command(const char *text)
{
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)(uintptr_t)text, NULL};
    run_command(argv, true);
}

/* A network of our own: packets can be dropped without anybody else noticing. */
static bool take_network(void)
{
    if (!places_in_path("nft") || !places_in_path("setpriv") || unshare(CLONE_NEWNET) != 0) return false;
    shell_command("ip link set lo up && nft 'add table inet t' && "
                  "nft 'add chain inet t out { type filter hook output priority 0; }'");
    for (uint64_t i = 0; i < flags.servers; i++) {
        char text[128];
        uint64_t group = FIRST_GROUP + i;
        snprintf(text, sizeof text, "nft 'add rule inet t out meta skgid %" PRIu64 " ct mark set %" PRIu64 "'", group,
                 group);
        shell_command(text);
    }
    return true;
}

static void start_cluster(void)
{
    bool missing;
    struct local_options options = {.name = PROGRAM,
                                    .programs = bench.programs,
                                    .run_dir = bench.run_dir,
                                    .servers = flags.servers,
                                    .coordinators = 1,
                                    .depth = 5,
                                    .split_depth = 2,
                                    .tick_hz = 20,
                                    .feeds = 4,
                                    .entities = flags.bots + 4096,
                                    .lease_ms = flags.lease_ms,
                                    .first_group = bench.own_network ? FIRST_GROUP : 0,
                                    .radius_max = 30,
                                    .hysteresis = 3,
                                    .view_mode = "radius"};
    if (!local_start(&bench.local, &options, &missing)) {
        fprintf(stderr, "%s: %s\n", PROGRAM, bench.local.fault);
        leave(missing ? EXIT_MISSING : EXIT_NOT_HELD);
    }
    cluster_open(&bench.cluster, bench.local.queries);
}

static void start_bots(void)
{
    char program[600], coordinator[600], bots[32];
    snprintf(program, sizeof program, "%s/terrane", bench.programs);
    snprintf(coordinator, sizeof coordinator, "--coordinator=%s", bench.local.inboxes);
    snprintf(bots, sizeof bots, "--bots=%" PRIu64, flags.bots);
    char *argv[] = {program,
                    (char *)"bots",
                    coordinator,
                    bots,
                    (char *)"--calm-every=1000000",
                    (char *)"--band=60",
                    (char *)"--deaths",
                    NULL};
    char log[300];
    snprintf(log, sizeof log, "%s/bots.log", bench.run_dir);
    if (flags.bots > 0)
        (void)child_start(&bench.bots, &(struct child_options){.name = "bots", .argv = argv, .log = log});
}

static void start_probe(void)
{
    bench.probe = probe_open(bench.local.inboxes, "bench", 15000);
    if (bench.probe == NULL || cluster_refresh(&bench.cluster, 2000) != TERRANE_ERR_OK) {
        fprintf(stderr, "%s: the cluster did not become ready\n", PROGRAM);
        leave(EXIT_NOT_HELD);
    }
    const struct document *map = &bench.cluster.map;
    uint32_t at = document_first(map, document_member(map, 0, "regions"));
    for (; at != DOCUMENT_NONE; at = document_next(map, at)) {
        const char *text = document_text(map, at, "quadkey");
        struct quadkey leaf;
        if (quadkey_parse(text, strlen(text), &leaf) == TERRANE_ERR_OK) probe_add(bench.probe, leaf);
    }
}

/* Rounds */

static bool is_well(void)
{
    const struct document *map = &bench.cluster.map;
    if (cluster_refresh(&bench.cluster, 200) != TERRANE_ERR_OK || !cluster_ready(&bench.cluster, flags.servers))
        return false;
    for (uint32_t i = 0; i < bench.cluster.server_count; i++) {
        uint32_t at = bench.cluster.servers[i].listed;
        if (document_bool(map, at, "lapsed") || document_bool(map, at, "silent")) return false;
    }
    for (uint32_t i = 0; i < agent_count(bench.local.agent); i++)
        if (agent_ward(bench.local.agent, i)->ended_us != 0) return false;
    return document_count(map, 0, "unprotected") == 0 && probe_hears_all(bench.probe, FRESH_US);
}

/* For a while without a break: who has come back is given standby leaves, which are not level at once. */
static void await_well(const char *after)
{
    uint64_t until_us = loop_now_us() + WELL_US, since_us = 0;
    while (since_us == 0 || loop_now_us() < since_us + SETTLED_US) {
        bool well = is_well();
        if (!well) since_us = 0;
        if (well && since_us == 0) since_us = loop_now_us();
        turn_for(50000);
        if (loop_now_us() < until_us) continue;
        fprintf(stderr, "%s: not protected again within a minute after %s\n", PROGRAM, after);
        leave(EXIT_NOT_HELD);
    }
    turn_for((uint64_t)(bench.sample_count * 37 % 100) * 1000); /* not always at the same point of a tick */
}

/* A server that owns something, in turn. */
static uint32_t choose_victim(void)
{
    for (uint32_t i = 0; i < flags.servers; i++) {
        uint32_t at = (bench.next_victim + i) % (uint32_t)flags.servers;
        const struct cluster_server *s = cluster_server(&bench.cluster, bench.local.servers[at]->options.child.name);
        if (s == NULL || document_count(&bench.cluster.map, s->listed, "leaves") == 0) continue;
        bench.next_victim = at + 1;
        return at;
    }
    fprintf(stderr, "%s: no server owns anything\n", PROGRAM);
    leave(EXIT_NOT_HELD);
}

/* Marks the leaves of a server; before the fault. */
static uint32_t mark_leaves(const char *server, bool *marks, uint32_t *epochs)
{
    const struct document *map = &bench.cluster.map;
    uint32_t marked = 0, at = document_first(map, document_member(map, 0, "regions"));
    memset(marks, 0, probe_count(bench.probe) * sizeof *marks);
    for (; at != DOCUMENT_NONE; at = document_next(map, at)) {
        const char *text = document_text(map, at, "quadkey");
        struct quadkey leaf;
        if (strcmp(document_text(map, at, "server"), server) != 0) continue;
        if (quadkey_parse(text, strlen(text), &leaf) != TERRANE_ERR_OK) continue;
        for (uint32_t i = 0; i < probe_count(bench.probe); i++) {
            if (probe_leaf(bench.probe, i)->key.v != leaf.v) continue;
            marks[i] = true;
            epochs[i] = probe_leaf(bench.probe, i)->epoch;
            marked++;
        }
    }
    return marked;
}

static void add_sample(double ms)
{
    if (bench.sample_count < SAMPLES_MAX) bench.samples[bench.sample_count++] = ms;
}

static bool all_taken_over(const bool *marks, const uint32_t *epochs)
{
    for (uint32_t i = 0; i < probe_count(bench.probe); i++)
        if (marks[i] && probe_leaf(bench.probe, i)->epoch <= epochs[i]) return false;
    return true;
}

static void partition(uint64_t group, bool on)
{
    char text[200];
    if (on)
        snprintf(text, sizeof text, "nft 'add rule inet t out ct mark %" PRIu64 " drop'", group);
    else
        snprintf(text, sizeof text,
                 "nft -a list chain inet t out | sed -n 's/.* drop # handle //p' | "
                 "xargs -n1 nft delete rule inet t out handle");
    shell_command(text);
}

static void strike(enum failure fault, const struct ward *victim, uint64_t group, bool on)
{
    if (fault == PARTITION)
        partition(group, on);
    else if (fault == PAUSE)
        kill(victim->child.pid, on ? SIGSTOP : SIGCONT);
    else if (on)
        kill(victim->child.pid, SIGKILL);
}

static void server_round(enum failure fault)
{
    bool *marks = calloc(probe_count(bench.probe), sizeof *marks);
    uint32_t *epochs = calloc(probe_count(bench.probe), sizeof *epochs);
    CHECK(marks != NULL && epochs != NULL);
    uint32_t at = choose_victim();
    const struct ward *victim = bench.local.servers[at];
    uint32_t marked = mark_leaves(victim->options.child.name, marks, epochs);
    uint64_t fault_us = loop_now_us();
    strike(fault, victim, FIRST_GROUP + at, true);
    /* A packet filter takes its time; what counts is when it holds. */
    if (fault == PARTITION) fault_us = loop_now_us();
    while (!all_taken_over(marks, epochs) && loop_now_us() < fault_us + GONE_US) turn(fault_us + GONE_US);
    bool well = all_taken_over(marks, epochs);
    for (uint32_t i = 0; i < probe_count(bench.probe) && well; i++)
        if (marks[i]) add_sample((double)(probe_leaf(bench.probe, i)->first_us - fault_us) / 1000);
    strike(fault, victim, FIRST_GROUP + at, false);
    free(marks);
    free(epochs);
    if (well && marked > 0) return;
    fprintf(stderr, "%s: %s of %s: its %u regions were not all heard again\n", PROGRAM, cases[fault],
            victim->options.child.name, marked);
    leave(EXIT_NOT_HELD);
}

/* Sessions that have left are stepped until they are gone for sure; then their memory is all that stays. */
static void coordinator_round(void)
{
    uint64_t fault_us = loop_now_us();
    kill(bench.local.coordinators[0]->child.pid, SIGKILL);
    struct probe *joining = probe_begin(bench.local.inboxes, "joining");
    CHECK(joining != NULL);
    probe_expect(bench.probe, probe_node(joining));
    while (probe_told_us(bench.probe) == 0 && loop_now_us() < fault_us + GONE_US) {
        (void)probe_step(joining);
        turn(loop_now_us() + 2000);
    }
    if (probe_told_us(bench.probe) == 0) {
        fprintf(stderr, "%s: nobody was told of who joined\n", PROGRAM);
        leave(EXIT_NOT_HELD);
    }
    add_sample((double)(probe_told_us(bench.probe) - fault_us) / 1000);
    probe_leave(joining);
    for (uint64_t until_us = loop_now_us() + 300000; loop_now_us() < until_us;) {
        (void)probe_step(joining);
        turn(loop_now_us() + 5000);
    }
}

/* Figures */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_figure(enum failure fault, const char *figure, double value)
{
    printf("{\"bench\":\"failover\",\"case\":\"%s\",\"figure\":\"%s\",\"value\":%.1f,\"unit\":\"ms\"", cases[fault],
           figure, value);
    if (fault == PAUSE || fault == PARTITION)
        printf(",\"reference\":\"lease\",\"reference_value\":%" PRIu64 ",\"ratio\":%.3f", flags.lease_ms,
               (double)flags.lease_ms / value);
    printf(",\"samples\":%u}\n", bench.sample_count);
    fflush(stdout);
}

static void run_case(enum failure fault)
{
    uint64_t rounds = flags.rounds != 0 ? flags.rounds : flags.quick ? 4 : 30;
    bench.sample_count = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        await_well(round == 0 ? "the start" : cases[fault]);
        if (fault == COORDINATOR)
            coordinator_round();
        else
            server_round(fault);
    }
    uint32_t count = bench.sample_count;
    qsort(bench.samples, count, sizeof *bench.samples, by_value);
    print_figure(fault, "p50", bench.samples[count / 2]);
    print_figure(fault, "p99", bench.samples[(uint64_t)count * 99 / 100]);
    print_figure(fault, "max", bench.samples[count - 1]);
    if (probe_lost(bench.probe) > 0) {
        fprintf(stderr, "%s: %" PRIu64 " entities were lost\n", PROGRAM, probe_lost(bench.probe));
        leave(EXIT_NOT_HELD);
    }
}

static void start_busy(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)"while :; do :; done", NULL};
    for (long i = 0; i < cores && i < (long)BUSY_MAX; i++)
        (void)child_start(&bench.busy[i], &(struct child_options){.name = "busy", .argv = argv});
}

static void soak(void)
{
    await_well("the start");
    uint64_t before = document_count(&bench.cluster.map, 0, "promotions"), deaths = agent_deaths(bench.local.agent);
    start_busy();
    turn_for((uint64_t)(flags.seconds * 1e6));
    for (uint32_t i = 0; i < BUSY_MAX; i++) child_signal(&bench.busy[i], SIGKILL);
    await_well("the soak");
    uint64_t after = document_count(&bench.cluster.map, 0, "promotions");
    printf("{\"bench\":\"failover\",\"case\":\"soak\",\"figure\":\"false_failovers\",\"value\":%" PRIu64
           ",\"unit\":\"regions\",\"seconds\":%.0f}\n",
           after - before, flags.seconds);
    if (agent_deaths(bench.local.agent) != deaths) fprintf(stderr, "%s: somebody died during the soak\n", PROGRAM);
    if (after != before || agent_deaths(bench.local.agent) != deaths) leave(EXIT_NOT_HELD);
}

int main(int argc, char **argv)
{
    struct config config = {.program = PROGRAM,
                            .summary =
                                "Measures from a fault to the first frame of the successor, as a gateway hears it.",
                            .version = TERRANE_VERSION,
                            .fields = fields,
                            .field_count = sizeof fields / sizeof *fields};
    if (argc >= 2 && strcmp(argv[1], "tether") == 0) return child_tether(argc - 1, argv + 1);
    program_configure(&config, argc, argv, NULL);
    if (!places_programs(bench.programs, sizeof bench.programs))
        program_fail(PROGRAM, EXIT_MISSING, "terrane-coordinator and terrane-cellserver are not beside this program");
    snprintf(bench.run_dir, sizeof bench.run_dir, "/tmp/terrane-failover-XXXXXX");
    if (mkdtemp(bench.run_dir) == NULL) program_fail(PROGRAM, EXIT_USAGE, "no temporary folder can be made");
    signal(SIGPIPE, SIG_IGN);
    if (flags.quick && flags.bots > 300) flags.bots = 300;
    if (flags.chosen == ALL || flags.chosen == PARTITION) bench.own_network = take_network();
    if (flags.chosen == PARTITION && !bench.own_network)
        program_fail(PROGRAM, EXIT_MISSING, "the case partition needs root, nft and setpriv");
    start_cluster();
    start_probe();
    start_bots();
    for (enum failure fault = KILL; fault <= COORDINATOR; fault++) {
        if (flags.chosen != ALL && flags.chosen != (uint32_t)fault) continue;
        if (fault == PARTITION && !bench.own_network)
            fprintf(stderr, "%s: partition is left out: it needs root, nft and setpriv\n", PROGRAM);
        else
            run_case(fault);
    }
    if (flags.chosen == SOAK) soak();
    leave(EXIT_WELL);
}
