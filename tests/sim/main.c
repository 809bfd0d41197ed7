/* terrane_sim: whole clusters in one thread under seeded clock, network and store, judged by an independent checker. */
#include "aoi/aoi.h"
#include "common/check.h"
#include "tests/sim/minimise.h"
#include "tests/sim/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MINIMISE_RUNS 60u
#define MINIMISED     3u /* seeds of one call */

enum { EXIT_WELL = 0, EXIT_VIOLATION = 1, EXIT_USAGE = 2, EXIT_MISSING = 3 };

static const char usage[] =
    "usage: terrane_sim --seeds A..B [options]\n"
    "Runs a cluster for each seed from A to B and checks its promises after every step.\n"
    "  --servers N     cell servers (1..64); default: by seed, 2..9\n"
    "  --entities N    entities (1..2048); default: by seed, 60..180\n"
    "  --ticks N       server ticks of movement a seed (1..1000000); default: by seed, 300..500\n"
    "  --faults LEVEL  none; net (losses, delays, broken connections, pauses; default); deaths (of cell servers, and\n"
    "                  nothing else); all (all classes; cell servers still die one at a time); beyond (several die\n"
    "                  at once: entities may be lost, but never silently)\n"
    "  --standbys      regions have standbys under none and net as well, as they always have under the other levels\n"
    "  --balance       leaves are moved all the time (implies --standbys)\n"
    "  --aoi NAME      the area-of-interest index of the cell servers; default grid\n"
    "  --without LIST  leaves out classes of faults (loss,breaks,...; --list-faults names them)\n"
    "  --only-faults LIST  of the numbered faults of a seed, only these (3,7), or none\n"
    "  --minimise N    finds the fewest faults with which a failing seed still fails in the same way, in at most N\n"
    "                  runs; default 60 for the first 3 that fail\n"
    "  --plant NAME    plants a bug, to see the checker find it; its level of faults becomes the default\n"
    "  --stop          ends with the first seed that fails\n"
    "  --list-plants   names the bugs that can be planted; --list-faults the classes of faults\n"
    "  --trace         every event and output on standard output, for one seed\n"
    "  --json          failing seeds as JSON lines too\n"
    "Exit: 0 all hold, 1 a promise is broken, 2 bad usage. The last line is a JSON summary.\n";

struct flags {
    uint64_t first, last;
    bool seeds, trace, json, stop, faults;
    uint32_t minimise; /* runs that may be spent on a failing seed */
    struct plan_options options;
    enum plant plant;
};

static bool parse_number(const char *text, uint64_t most, uint64_t *out, const char **end)
{
    char *stop;
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    unsigned long long value = strtoull(text, &stop, 10);
    if (errno != 0 || value > most) return false;
    *out = value;
    if (end != NULL) *end = stop;
    return end != NULL || *stop == '\0';
}

static bool parse_seeds(const char *text, struct flags *flags)
{
    const char *end;
    if (!parse_number(text, UINT64_MAX - 1, &flags->first, &end)) return false;
    flags->last = flags->first;
    flags->seeds = true;
    if (*end == '\0') return true;
    return strncmp(end, "..", 2) == 0 && parse_number(end + 2, UINT64_MAX - 1, &flags->last, NULL) &&
           flags->last >= flags->first;
}

static bool parse_count(const char *text, uint64_t most, uint32_t *out)
{
    uint64_t value;
    if (!parse_number(text, most, &value, NULL) || value == 0) return false;
    *out = (uint32_t)value;
    return true;
}

/* Names of fault classes, with commas between. */
static bool parse_classes(const char *text, uint32_t *out)
{
    for (;;) {
        size_t size = strcspn(text, ",");
        enum fault_class class = fault_class_of(text, size);
        if (class == CLASS_COUNT) return false;
        *out |= 1u << class;
        if (text[size] == '\0') return true;
        text += size + 1;
    }
}

/* Numbers of faults, with commas between; or "none". */
static bool parse_numbers(const char *text, uint64_t *out)
{
    if (strcmp(text, "none") == 0) return true;
    for (;;) {
        uint64_t number;
        const char *end;
        if (!parse_number(text, PLAN_FAULTS, &number, &end) || number == 0) return false;
        *out |= UINT64_C(1) << (number - 1);
        if (*end == '\0') return true;
        if (*end != ',') return false;
        text = end + 1;
    }
}

/* One flag with a value. False: unknown, or its value is wrong. */
static bool parse_value(const char *name, const char *value, struct flags *flags)
{
    if (strcmp(name, "--seeds") == 0) return parse_seeds(value, flags);
    if (strcmp(name, "--servers") == 0) return parse_count(value, 64, &flags->options.servers);
    if (strcmp(name, "--entities") == 0) return parse_count(value, 2048, &flags->options.entities);
    if (strcmp(name, "--ticks") == 0) return parse_count(value, 1000000, &flags->options.ticks);
    if (strcmp(name, "--without") == 0) return parse_classes(value, &flags->options.without);
    if (strcmp(name, "--minimise") == 0) {
        if (strcmp(value, "0") != 0) return parse_count(value, 1000000, &flags->minimise);
        flags->minimise = 0;
        return true;
    }
    if (strcmp(name, "--only-faults") == 0) {
        flags->options.only = true;
        return parse_numbers(value, &flags->options.kept);
    }
    if (strcmp(name, "--faults") == 0) {
        flags->faults = true;
        flags->options.faults = fault_level_of(value);
        return flags->options.faults != FAULT_LEVELS;
    }
    if (strcmp(name, "--aoi") == 0) {
        const struct aoi_index_info *info = aoi_index_find(value);
        flags->options.aoi = value;
        return info != NULL && (info->abilities & AOI_CAN_PLANE);
    }
    if (strcmp(name, "--plant") != 0) return false;
    flags->plant = plant_of(value);
    return flags->plant != PLANT_COUNT;
}

static int list_plants(void)
{
    for (int i = 1; i < PLANT_COUNT; i++)
        printf("%-18s %-6s %s\n", plant_name((enum plant)i), plant_faults((enum plant)i), plant_text((enum plant)i));
    return EXIT_WELL;
}

static int list_faults(void)
{
    for (int i = 0; i < CLASS_COUNT; i++)
        printf("%-12s %s%s\n", fault_class_name((enum fault_class)i), fault_class_text((enum fault_class)i),
               i < CLASS_SINGLE ? "" : " (numbered)");
    return EXIT_WELL;
}

static int bad_usage(const char *what)
{
    fprintf(stderr, "terrane_sim: %s is unknown, lacks its value, or the value is wrong\n\n%s", what, usage);
    return EXIT_USAGE;
}

#ifndef TERRANE_MUTANTS
/* Mutations of the cores are in another program, beside this one. Returns only if there is none. */
static int run_mutants(char **argv)
{
    char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - sizeof "_mutants");
    if (size > 0) {
        memcpy(path + size, "_mutants", sizeof "_mutants");
        execv(path, argv);
    }
    fprintf(stderr, "terrane_sim: this bug is planted in the cores of terrane_sim_mutants, which is not beside this "
                    "program; build the target terrane_sim_mutants\n");
    return EXIT_MISSING;
}
#endif

/* A plant's level: "moves" is deaths while leaves are moved. */
static void take_level(const char *level, struct plan_options *options)
{
    bool moves = strcmp(level, "moves") == 0;
    options->faults = fault_level_of(moves ? "deaths" : level);
    if (moves) options->balance = options->standbys = true;
}

/* -1: go on. */
static int parse(int argc, char **argv, struct flags *flags)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            return EXIT_WELL;
        }
        if (strcmp(argv[i], "--list-plants") == 0) return list_plants();
        if (strcmp(argv[i], "--list-faults") == 0) return list_faults();
        if (strcmp(argv[i], "--trace") == 0) {
            flags->trace = true;
        } else if (strcmp(argv[i], "--json") == 0) {
            flags->json = true;
        } else if (strcmp(argv[i], "--standbys") == 0) {
            flags->options.standbys = true;
        } else if (strcmp(argv[i], "--balance") == 0) {
            flags->options.balance = flags->options.standbys = true;
        } else if (strcmp(argv[i], "--stop") == 0) {
            flags->stop = true;
        } else {
            if (i + 1 >= argc || !parse_value(argv[i], argv[i + 1], flags)) return bad_usage(argv[i]);
            i++;
        }
    }
    if (!flags->faults) take_level(plant_faults(flags->plant), &flags->options);
    return flags->seeds ? -1 : bad_usage("--seeds");
}

static double wall_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void tell_failure(const struct flags *flags, const struct plan_options *options, uint64_t seed,
                         const struct run_result *r)
{
    char command[600], more[400];
    minimise_flags(options, more, sizeof more);
    snprintf(command, sizeof command, "terrane_sim --seeds %" PRIu64 "..%" PRIu64 "%s", seed, seed, more);
    if (flags->plant != PLANT_NONE) {
        snprintf(more, sizeof more, " --plant %s", plant_name(flags->plant));
        strncat(command, more, sizeof command - strlen(command) - 1);
    }
    if (flags->json) {
        printf("{\"seed\":%" PRIu64 ",\"at_s\":%.6f,\"violation\":\"", seed, (double)r->violated_us / 1e6);
        for (const char *c = r->violation; *c != '\0'; c++) printf(*c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
        printf("\",\"replay\":\"%s\"}\n", command);
    } else {
        printf("seed %" PRIu64 " fails at %.6f s: %s   replay: %s --trace\n", seed, (double)r->violated_us / 1e6,
               r->violation, command);
    }
    fflush(stdout);
}

static void tell_sum(const struct run_result *sum, uint64_t seeds, uint64_t violations, double wall)
{
    printf("{\"seeds\":%" PRIu64 ",\"violations\":%" PRIu64 ",\"crossings\":%" PRIu64 ",\"handoffs\":%" PRIu64
           ",\"faults\":%" PRIu64 ",\"deaths\":%" PRIu64 ",\"promotions\":%" PRIu64,
           seeds, violations, sum->crossings, sum->handoffs, sum->faults, sum->deaths, sum->promotions);
    for (int i = CLASS_SINGLE; i < CLASS_COUNT; i++)
        if (sum->happened[i] > 0) printf(",\"%s\":%" PRIu64, fault_class_name((enum fault_class)i), sum->happened[i]);
    printf(",\"queries_short\":%" PRIu64, sum->queries_short);
    printf(",\"calms\":%" PRIu64 ",\"sees\":%" PRIu64 ",\"trace\":\"%016" PRIx64 "\",\"sim_s\":%.1f,\"wall_s\":%.1f}\n",
           sum->calms, sum->sees, sum->trace_hash, (double)sum->sim_us / 1e6, wall);
}

int main(int argc, char **argv)
{
    struct flags flags = {.options.faults = FAULTS_NET, .minimise = MINIMISE_RUNS};
    int end = parse(argc, argv, &flags);
    if (end >= 0) return end;
#ifndef TERRANE_MUTANTS
    if (flags.plant >= PLANT_MUTATIONS) return run_mutants(argv);
#endif
    struct run_result sum = {0};
    uint64_t seeds = 0, violations = 0;
    bool progress = isatty(STDERR_FILENO);
    double start_s = wall_s();
    for (uint64_t seed = flags.first; seed <= flags.last; seed++) {
        struct run_result r;
        flags.options.seed = seed;
        run_seed(&flags.options, flags.plant, flags.trace ? stdout : NULL, &r);
        seeds++;
        sum.crossings += r.crossings;
        sum.handoffs += r.handoffs;
        sum.faults += r.faults;
        sum.deaths += r.deaths;
        sum.promotions += r.promotions;
        for (int i = 0; i < CLASS_COUNT; i++) sum.happened[i] += r.happened[i];
        sum.sim_us += r.sim_us;
        sum.sees += r.sees;
        sum.queries_short += r.queries_short;
        sum.calms += r.calms;
        sum.trace_hash = sum.trace_hash * 31 + r.trace_hash;
        if (r.violated) {
            struct plan_options least = flags.options;
            violations++;
            if (flags.minimise > 0 && flags.options.faults >= FAULTS_DEATHS && !flags.trace && violations <= MINIMISED)
                minimise(&least, flags.plant, flags.minimise, &r);
            tell_failure(&flags, &least, seed, &r);
            if (flags.stop) break;
        }
        if (progress)
            fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " seeds, %" PRIu64 " violations, %" PRIu64 " crossings ", seeds,
                    flags.last - flags.first + 1, violations, sum.crossings);
    }
    if (progress) fputc('\n', stderr);
    tell_sum(&sum, seeds, violations, wall_s() - start_s);
    return violations > 0 ? EXIT_VIOLATION : EXIT_WELL;
}
