/* aoi_differ: every index of aoi_index_list() against brute force, operation by operation, in worlds made from seeds
 * (worlds.h). Of eight worlds one is a crowd as recorded, and one moves by a workload of the benchmark. */
#include "tests/aoi/worlds.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLD_OPERATIONS 2000

/* ---- the command ---- */

static const char help[] = "Usage: aoi_differ [--ops N] [--seed N] [--worlds N] [--index NAME] [--help]\n"
                           "Compares every area-of-interest index with brute force, in worlds made from seeds.\n"
                           "\n"
                           "  --ops N       operations that each index gets at least; 1000000 unless told\n"
                           "  --seed N      the first world; 1 unless told\n"
                           "  --worlds N    so many worlds, whatever --ops says\n"
                           "  --index NAME  only this index\n"
                           "\n"
                           "TERRANE_CROWDS: a folder of recorded crowds; without it they are made up.\n"
                           "The last line is one JSON object. Exit: 0 no difference, 1 a difference, 2 bad usage.\n";

struct flags {
    uint64_t operations, seed, worlds;
    const char *only;
};

static uint64_t number_parse(const char *flag, const char *text)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (!*text || *end || !value) {
        fprintf(stderr, "aoi_differ: --%s: \"%s\" is no number above 0\n", flag, text);
        exit(2);
    }
    return value;
}

static struct flags flags_parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"ops", required_argument, NULL, 'o'},    {"seed", required_argument, NULL, 's'},
        {"worlds", required_argument, NULL, 'w'}, {"index", required_argument, NULL, 'i'},
        {"help", no_argument, NULL, 'h'},         {0},
    };
    struct flags flags = {.operations = 1000000, .seed = 1};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'o': flags.operations = number_parse("ops", optarg); break;
        case 's': flags.seed = number_parse("seed", optarg); break;
        case 'w': flags.worlds = number_parse("worlds", optarg); break;
        case 'i': flags.only = optarg; break;
        case 'h': fputs(help, stdout); exit(0);
        default: exit(2);
        }
    }
    if (optind < argc || (flags.only && !aoi_index_find(flags.only))) {
        fprintf(stderr, "aoi_differ: \"%s\" is not understood; see --help\n",
                optind < argc ? argv[optind] : flags.only);
        exit(2);
    }
    return flags;
}

/* Operations so far, of each index. */
struct scores {
    const char *names[RIVALS_MOST];
    uint64_t operations[RIVALS_MOST], events;
    unsigned count;
};

static void scores_open(struct scores *s, const char *only)
{
    const struct aoi_index_info *info;
    for (size_t at = 0; (info = aoi_index_list(at)); at++) {
        if (!strcmp(info->name, "brute") || (only && strcmp(only, info->name) != 0)) continue;
        s->names[s->count++] = info->name;
    }
}

static void scores_add(struct scores *s, const struct rivals *r)
{
    s->events += r->events;
    for (unsigned i = 1; i < r->count; i++) {
        for (unsigned j = 0; j < s->count; j++) {
            if (!strcmp(s->names[j], r->rivals[i].name)) s->operations[j] += r->operations;
        }
    }
}

static uint64_t scores_least(const struct scores *s)
{
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < s->count; i++) least = s->operations[i] < least ? s->operations[i] : least;
    return least;
}

/* One world; false: a difference. */
static bool seed_run(uint64_t seed, const char *only, struct scores *scores)
{
    static struct differ d;
    world_draw(&d, seed);
    bool crowd = seed % 8 == 0, workload = seed % 8 == 4;
    if (crowd || workload) crowd_world(&d);
    uint32_t room = crowd || workload ? 150 : seed % 16 == 3 ? 400 : (uint32_t)(8 + seed % 40);
    unsigned abilities = (d.options.mode == AOI_BLOCK ? AOI_CAN_BLOCK : AOI_CAN_RADIUS) |
                         (d.options.dimensions == 3 ? AOI_CAN_SPACE : AOI_CAN_PLANE) |
                         (d.extent_most ? AOI_CAN_EXTENT : 0);
    bool well = true;
    if (rivals_open(&d.rivals, &d.options, room, abilities, only)) {
        d.at = calloc(room, sizeof *d.at);
        well = crowd      ? crowd_run(&d, seed, 2 * WORLD_OPERATIONS)
               : workload ? workload_run(&d, seed, 2 * WORLD_OPERATIONS)
                          : world_run(&d, WORLD_OPERATIONS);
        scores_add(scores, &d.rivals);
        free(d.at);
    }
    if (!well) {
        printf("seed %llu: %s\n  again: aoi_differ --seed %llu --worlds 1%s%s\n", (unsigned long long)seed,
               d.rivals.fault, (unsigned long long)seed, only ? " --index " : "", only ? only : "");
    }
    rivals_close(&d.rivals);
    return well;
}

int main(int argc, char **argv)
{
    struct flags flags = flags_parse(argc, argv);
    struct scores scores = {0};
    scores_open(&scores, flags.only);
    if (!scores.count) {
        fputs("aoi_differ: there is nothing to compare with brute force\n", stderr);
        return 2;
    }
    uint64_t seed = flags.seed, differences = 0;
    for (; flags.worlds ? seed < flags.seed + flags.worlds : scores_least(&scores) < flags.operations; seed++) {
        differences += !seed_run(seed, flags.only, &scores);
        if (differences >= 10) break;
    }
    printf("{\"indexes\":%u,\"worlds\":%llu,\"operations_each\":%llu,\"events\":%llu,\"differences\":%llu}\n",
           scores.count, (unsigned long long)(seed - flags.seed), (unsigned long long)scores_least(&scores),
           (unsigned long long)scores.events, (unsigned long long)differences);
    return differences ? 1 : 0;
}
