/* bench_balance: how well the planner (coordinator/balance.h) keeps 16 simulated servers equally loaded, next to a
 * static grid, to plain greedy by count, and to cutting the whole curve anew; and how long it takes for a large world.
 *
 * Each case is a workload (bench/balance_world.h) that all policies see in the same run; the first minute is not
 * counted. imbalance is the load of the most loaded server by the mean, at each quarter of a second, jumps and what
 * follows them included. recover_s is the longest time from a jump until that is under 1.15. migrated_per_min is the
 * part of all entities, in percent, whose leaf changed servers. moved_twice counts leaves moved again within 30 s. */
#include "bench/balance_policy.h"
#include "common/check.h"
#include "tools/dice.h"
#include "tools/recording_files.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ENTITIES     20000u
#define WARM_UP_S    60.0
#define JUMP_S       300.0
#define PLAN_LEAVES  100000u
#define PLAN_SERVERS 1000u
#define PLAN_ROUNDS  15u

struct flags {
    bool quick, bars;
    const char *only;
    uint64_t seed;
};

struct bar {
    const char *figure;
    double most;
};

static _Noreturn void fail(int code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "bench_balance: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    exit(code);
}

static double seconds_of(enum workload workload, bool quick)
{
    static const double whole[WORKLOADS] = {600, 1500, 900, 1440}, few[WORKLOADS] = {120, 620, 120, 240};
    return quick ? few[workload] : whole[workload];
}

static void put(const char *name, const char *figure, const char *unit, double value, const char *reference,
                double reference_value)
{
    printf("{\"bench\":\"balance\",\"case\":\"%s\",\"figure\":\"%s\",\"value\":%.4g,\"unit\":\"%s\"", name, figure,
           value, unit);
    if (reference != NULL) {
        printf(",\"reference\":\"%s\",\"reference_value\":%.4g", reference, reference_value);
        if (value > 0) printf(",\"ratio\":%.3g", reference_value / value);
    }
    printf("}\n");
    fflush(stdout);
}

static void put_workload(enum workload workload, const struct cluster_figures *f)
{
    const char *name = WORKLOAD_NAMES[workload];
    const struct cluster_figures *ours = &f[POLICY_PLANNER];
    for (int p = POLICY_STATIC; p < POLICIES; p++) {
        put(name, "imbalance_mean", "max/mean", ours->imbalance_mean, POLICY_NAMES[p], f[p].imbalance_mean);
        put(name, "imbalance_p99", "max/mean", ours->imbalance_p99, POLICY_NAMES[p], f[p].imbalance_p99);
        if (workload == WORKLOAD_JUMP) put(name, "recover_s", "s", ours->recover_s, POLICY_NAMES[p], f[p].recover_s);
        if (p == POLICY_STATIC) continue;
        put(name, "migrated_per_min", "%", ours->migrated_per_min, POLICY_NAMES[p], f[p].migrated_per_min);
        put(name, "moved_twice", "leaves", ours->moved_twice, POLICY_NAMES[p], f[p].moved_twice);
        put(name, "stretches", "stretches", ours->stretches, POLICY_NAMES[p], f[p].stretches);
    }
    put(name, "leaves", "leaves", ours->leaves, NULL, 0);
}

static bool within(const char *name, const char *figure, double value, double most)
{
    if (value <= most) return true;
    fprintf(stderr, "bench_balance: %s: %s is %.4g, and must be at most %.4g\n", name, figure, value, most);
    return false;
}

static bool holds(enum workload workload, const struct cluster_figures *f)
{
    const char *name = WORKLOAD_NAMES[workload];
    bool well = within(name, "imbalance_mean", f->imbalance_mean, 1.10);
    well &= within(name, "imbalance_p99", f->imbalance_p99, 1.25);
    well &= within(name, "moved_twice", f->moved_twice, 0);
    if (workload == WORKLOAD_JUMP) well &= within(name, "recover_s", f->recover_s, 5);
    if (workload == WORKLOAD_CROWDS) well &= within(name, "migrated_per_min", f->migrated_per_min, 2);
    return well;
}

static bool run_workload(const struct flags *flags, enum workload workload, const struct recording *recording)
{
    struct balance_world *world = balance_world_open(workload, ENTITIES, flags->seed, JUMP_S, recording);
    struct cluster *clusters[POLICIES];
    struct cluster_figures figures[POLICIES];
    for (int p = 0; p < POLICIES; p++) clusters[p] = cluster_open((enum policy)p, world, flags->seed);
    uint32_t steps = (uint32_t)((WARM_UP_S + seconds_of(workload, flags->quick)) / STEP_S);
    for (uint32_t step = 0; step < steps; step++) {
        bool jumped = balance_world_step(world), counts = step * STEP_S >= WARM_UP_S;
        for (int p = 0; p < POLICIES; p++) cluster_step(clusters[p], world, jumped, counts);
    }
    for (int p = 0; p < POLICIES; p++) {
        figures[p] = cluster_figures(clusters[p]);
        cluster_close(clusters[p]);
    }
    balance_world_close(world);
    put_workload(workload, figures);
    return holds(workload, &figures[POLICY_PLANNER]);
}

/* ---- a plan for a large world ---- */

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct large {
    struct balance_leaf *leaves;
    struct balance_server *servers;
};

/* A depth of nine has 262,144 places; a stretch of them along the curve is as good as all. Loads differ a thousandfold,
 * so that all is to be done: splits, merges, moves. */
static struct large large_world(struct dice *dice)
{
    struct large l = {calloc(PLAN_LEAVES, sizeof *l.leaves), calloc(PLAN_SERVERS, sizeof *l.servers)};
    CHECK(l.leaves != NULL && l.servers != NULL);
    for (uint32_t i = 0; i < PLAN_LEAVES; i++) {
        double heavy = dice_unit(dice);
        l.leaves[i] = (struct balance_leaf){.key = {(UINT64_C(1) << 18) | i}, .standby = BALANCE_NONE};
        l.leaves[i].primary = i / (PLAN_LEAVES / PLAN_SERVERS);
        l.leaves[i].load = 1 + 1000 * heavy * heavy * heavy * heavy * heavy;
        l.leaves[i].entities = (uint32_t)l.leaves[i].load;
    }
    for (uint32_t s = 0; s < PLAN_SERVERS; s++)
        l.servers[s] = (struct balance_server){.host = s / 4, .capacity = 1 + dice_below(dice, 4), .able = true};
    return l;
}

static bool run_large(const struct flags *flags)
{
    struct dice dice = {flags->seed};
    struct large l = large_world(&dice);
    struct balancer *balancer = balancer_open();
    double times[PLAN_ROUNDS];
    uint32_t decisions = 0;
    for (uint32_t round = 0; round < PLAN_ROUNDS; round++) {
        struct balance_state state = {0};
        struct balance_input in = {.leaves = l.leaves,
                                   .servers = l.servers,
                                   .leaf_count = PLAN_LEAVES,
                                   .server_count = PLAN_SERVERS,
                                   .now_us = 1000000000 + round * 1000000,
                                   .state = &state,
                                   .knobs = balance_knobs_default(9)};
        double begin = now_ms();
        decisions = balancer_plan(balancer, &in);
        times[round] = now_ms() - begin;
    }
    qsort(times, PLAN_ROUNDS, sizeof *times, ascending);
    put("large", "plan_ms", "ms", times[PLAN_ROUNDS / 2], NULL, 0);
    put("large", "decisions", "decisions", decisions, NULL, 0);
    balancer_close(balancer);
    free(l.leaves);
    free(l.servers);
    return within("large", "plan_ms", times[PLAN_ROUNDS / 2], 50) && decisions > 0;
}

/* ---- the command ---- */

static const char help[] =
    "Usage: bench_balance [--quick] [--case NAME] [--seed N] [--bars]\n"
    "Simulates 16 servers under the planner and under three others; one JSON object a line and figure.\n"
    "\n"
    "  --quick      less of each workload; ends within a minute\n"
    "  --case NAME  only this: crowds, jump, star, waves, or large (a plan for 100,000 leaves on 1,000 servers)\n"
    "  --seed N     another run of each workload; 1 unless told\n"
    "  --bars       exit 1 where a figure is worse than it must be\n"
    "  --help       this text\n"
    "\n"
    "TERRANE_CROWDS=DIR: a folder of recorded crowds for the case crowds; generated ones if it is not set.\n"
    "Exit: 0 well, 1 a bar does not hold, 2 bad usage.\n";

static struct flags flags_parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"quick", no_argument, NULL, 'q'},      {"case", required_argument, NULL, 'c'},
        {"seed", required_argument, NULL, 's'}, {"bars", no_argument, NULL, 'b'},
        {"help", no_argument, NULL, 'h'},       {0},
    };
    struct flags flags = {.seed = 1};
    char *end;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'q': flags.quick = true; break;
        case 'b': flags.bars = true; break;
        case 'c': flags.only = optarg; break;
        case 's':
            flags.seed = strtoull(optarg, &end, 10);
            if (*optarg == '\0' || *end != '\0') fail(2, "--seed: '%s' is no number", optarg);
            break;
        case 'h': fputs(help, stdout); exit(0);
        default: fail(2, "see --help");
        }
    }
    if (optind < argc) fail(2, "'%s' is not understood; see --help", argv[optind]);
    return flags;
}

int main(int argc, char **argv)
{
    struct flags flags = flags_parse(argc, argv);
    struct recording recording = {0};
    struct recording_fault fault;
    const char *folder = getenv("TERRANE_CROWDS");
    bool well = true, run = false;
    if (folder == NULL || *folder == '\0')
        recording_generate(&recording, flags.seed, 400);
    else if (recording_read_folder(&recording, folder, &fault) != TERRANE_ERR_OK)
        fail(2, "%s", fault.text);
    for (int workload = 0; workload < WORKLOADS; workload++) {
        if (flags.only != NULL && strcmp(flags.only, WORKLOAD_NAMES[workload]) != 0) continue;
        well &= run_workload(&flags, (enum workload)workload, &recording);
        run = true;
    }
    if (flags.only == NULL || strcmp(flags.only, "large") == 0) {
        well &= run_large(&flags);
        run = true;
    }
    recording_close(&recording);
    if (!run) fail(2, "no case is called '%s'; see --help", flags.only);
    return well || !flags.bars ? 0 : 1;
}
