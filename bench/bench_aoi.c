/* bench_aoi: what the area-of-interest indexes cost. The command; the work is in aoi_duel.c (an index next to the
 * textbook grid), aoi_race.c (indexes next to each other) and aoi_advise.c (which one to take). */
#include "bench/bench_aoi.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: bench_aoi [--quick] [--case TEXT] [--index NAME|all] [--workload NAME|all] [--entities N,...] [--3d] "
    "[--csv]\n"
    "       bench_aoi --advise --map M --entities N --radius M [--speed M] [--rate HZ] [--3d] ...\n"
    "       bench_aoi --steps N --workload NAME --entities N [--3d] [--cells N]\n"
    "Measures the area-of-interest indexes; one JSON object a line and figure.\n"
    "\n"
    "Without --workload: one index next to the textbook grid, at 10k, 100k and 1m entities. With it, or with\n"
    "--index all: indexes next to each other, all on the same work, which must report the same changes.\n"
    "\n"
    "  --quick            fewer rounds; ends within a minute (all indexes under all workloads: a few)\n"
    "  --case TEXT        only the cases whose name contains TEXT, e.g. block/100k or radius/1m/uniform\n"
    "  --index NAME       the index that is measured (see --list), or all; grid unless told\n"
    "  --workload NAME    how they move (see --list-workloads), or all\n"
    "  --entities N,...   how many, with k and m, at most eight numbers; 1k,10k,100k unless told (--quick: 1k,10k)\n"
    "  --3d               in space instead of on the plane\n"
    "  --cells N          the side of the world in cells, 1 to 10000; 200 unless told\n"
    "  --csv              commas instead of JSON\n"
    "  --steps N          measure nothing: print the workload's world, and where all are in N ticks, for other "
    "programs\n"
    "  --plain            the grid without vector instructions\n"
    "  --list             the names of the indexes\n"
    "  --list-workloads   the names of the workloads\n"
    "  --help             this text\n"
    "\n"
    "  --advise           run the indexes on a world like yours, and say which to take and what it sends\n"
    "    --map M          side of the world, metres\n"
    "    --entities N     how many\n"
    "    --radius M       how far they see, metres\n"
    "    --speed M        metres a second; 5 unless told\n"
    "    --rate HZ        ticks a second; 20 unless told\n"
    "    --queries N      circle queries a second, all together; 0 unless told\n"
    "    --bytes N        bytes an update costs; 3 unless told (what a walker costs in a frame: docs/FIGURES.md)\n"
    "    --workload NAME  how they move; uniform and hotspot unless told, and the worse counts\n"
    "    --json           one JSON object instead of text\n"
    "\n"
    "Times are processor time. Figures: enter, leave, move_inside, move_one: ns an operation, one at a time. query: ns "
    "an\n"
    "entity found by a circle (with --workload: ns a query). move: ns a move when all move in one tick, all events\n"
    "included; tick: ms for that tick. mixed: ns an operation. bytes: an entity. p99: of single operations, by the "
    "clock\n"
    "on the wall (of ticks: of their means); misses: of the caches, where the machine counts them; changes: of views "
    "an\n"
    "operation (query: entities found).\n"
    "Exit: 0 well, 1 two indexes reported different events, 2 bad usage, 3 something needed is missing.\n";

static void list_print(void)
{
    const struct aoi_index_info *info;
    for (size_t i = 0; (info = aoi_index_list(i)); i++) puts(info->name);
    puts("textbook");
}

static void workloads_print(void)
{
    const struct workload_info *info;
    for (size_t i = 0; (info = workload_list(i)); i++) printf("%-10s %s\n", info->name, info->about);
}

static uint32_t count_parse(const char *text, char **end)
{
    unsigned long count = strtoul(text, end, 10);
    unsigned long unit = **end == 'k' ? 1000 : **end == 'm' ? 1000000 : 1;
    if (unit > 1) ++*end;
    if (*end == text || count == 0 || count > 10000000 / unit)
        kit_fail(2, "'%s' is no number of entities from 1 to 10m", text);
    return (uint32_t)(count * unit);
}

static void counts_parse(const char *text, uint32_t *counts)
{
    size_t used = 0;
    for (char *end;; text = end + 1) {
        if (used == BENCH_SIZES - 1) kit_fail(2, "more than %u numbers of entities", BENCH_SIZES - 1);
        counts[used++] = count_parse(text, &end);
        if (*end == '\0') return;
        if (*end != ',') kit_fail(2, "'%s' is no list of numbers, like 1k,10k", text);
    }
}

static double number_parse(const char *name, const char *text, double least)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || !isfinite(number) || number < least || number > 1e9) {
        kit_fail(2, "--%s: '%s' is no number from %g to 1e9", name, text, least);
    }
    return number;
}

static uint32_t cells_parse(const char *text)
{
    double cells = number_parse("cells", text, 1);
    if (cells != floor(cells) || cells > 10000) kit_fail(2, "--cells: '%s' is no whole number up to 10000", text);
    return (uint32_t)cells;
}

/* What is asked for besides the flags of both. */
struct command {
    struct bench_flags flags;
    struct advise_options advise;
    bool advises;
    uint32_t steps; /* 0: not asked for */
};

static uint32_t steps_parse(const char *text)
{
    double steps = number_parse("steps", text, 1);
    if (steps != floor(steps) || steps > 1e6) kit_fail(2, "--steps: '%s' is no whole number up to 1000000", text);
    return (uint32_t)steps;
}

static bool advise_flag(struct command *c, int flag, const char *text)
{
    struct advise_options *o = &c->advise;
    switch (flag) {
    case 'A': c->advises = true; return true;
    case 'j': o->json = true; return true;
    case 'm': o->map = number_parse("map", text, 1); return true;
    case 'r': o->radius = number_parse("radius", text, 0.01); return true;
    case 's': o->speed = number_parse("speed", text, 0); return true;
    case 't': o->rate = number_parse("rate", text, 0.1); return true;
    case 'b': o->bytes = number_parse("bytes", text, 0); return true;
    case 'Q': o->queries = number_parse("queries", text, 0); return true;
    default: return false;
    }
}

static void index_set(struct bench_flags *flags, const char *name)
{
    flags->index = name;
    if (!strcmp(name, "all") || !strcmp(name, "textbook") || aoi_index_find(name)) return;
    kit_fail(2, "no index is called '%s'; --list prints the names", name);
}

static void workload_set(struct bench_flags *flags, const char *name)
{
    flags->workload = name;
    if (strcmp(name, "all") != 0 && !workload_find(name)) {
        kit_fail(2, "no workload is called '%s'; --list-workloads prints the names", name);
    }
}

static struct command command_parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"quick", no_argument, NULL, 'q'},
        {"plain", no_argument, NULL, 'p'},
        {"csv", no_argument, NULL, 'C'},
        {"3d", no_argument, NULL, '3'},
        {"cells", required_argument, NULL, 'n'},
        {"case", required_argument, NULL, 'c'},
        {"index", required_argument, NULL, 'i'},
        {"workload", required_argument, NULL, 'w'},
        {"entities", required_argument, NULL, 'e'},
        {"list", no_argument, NULL, 'l'},
        {"list-workloads", no_argument, NULL, 'L'},
        {"steps", required_argument, NULL, 'S'},
        {"help", no_argument, NULL, 'h'},
        {"advise", no_argument, NULL, 'A'},
        {"map", required_argument, NULL, 'm'},
        {"radius", required_argument, NULL, 'r'},
        {"speed", required_argument, NULL, 's'},
        {"rate", required_argument, NULL, 't'},
        {"bytes", required_argument, NULL, 'b'},
        {"queries", required_argument, NULL, 'Q'},
        {"json", no_argument, NULL, 'j'},
        {0},
    };
    struct command c = {.flags = {.crowds = getenv("TERRANE_CROWDS"), .cells = BENCH_CELLS},
                        .advise = {.speed = 5, .rate = 20, .bytes = 3}};
    bool advises = false;
    for (int flag; (flag = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (flag) {
        case 'q': c.flags.quick = true; break;
        case 'p': c.flags.plain = true; break;
        case 'C': c.flags.csv = true; break;
        case '3': c.flags.space = true; break;
        case 'n': c.flags.cells = cells_parse(optarg); break;
        case 'c': c.flags.only = optarg; break;
        case 'i': index_set(&c.flags, optarg); break;
        case 'w': workload_set(&c.flags, optarg); break;
        case 'e': counts_parse(optarg, c.flags.entities); break;
        case 'S': c.steps = steps_parse(optarg); break;
        case 'l': list_print(); exit(0);
        case 'L': workloads_print(); exit(0);
        case 'h': fputs(help, stdout); exit(0);
        default:
            if (!advise_flag(&c, flag, optarg)) kit_fail(2, "see --help");
            advises = true;
        }
    }
    if (optind < argc) kit_fail(2, "'%s' is not understood; see --help", argv[optind]);
    if (advises && !c.advises) kit_fail(2, "that is for --advise; see --help");
    return c;
}

static void advise(struct command *c)
{
    struct advise_options *o = &c->advise;
    o->entities = c->flags.entities[0];
    o->space = c->flags.space;
    o->quick = c->flags.quick;
    o->workload = c->flags.workload;
    o->crowds = c->flags.crowds;
    if (o->map <= 0 || o->entities == 0 || o->radius <= 0) kit_fail(2, "--advise needs --map, --entities and --radius");
    if (c->flags.entities[1]) kit_fail(2, "--advise takes one number of entities");
    if (o->workload && (!strcmp(o->workload, "all") || !strcmp(o->workload, "mixed"))) {
        kit_fail(2, "--advise takes one workload in which all move");
    }
    if (o->radius > o->map) kit_fail(2, "a radius of %g m is more than the map's side", o->radius);
    advise_run(o);
}

/* The world in one line, then one line a tick: what other programs need in order to do the same work. */
static void steps_print(const struct command *c)
{
    const struct bench_flags *f = &c->flags;
    if (!f->workload || !strcmp(f->workload, "all") || !f->entities[0] || f->entities[1]) {
        kit_fail(2, "--steps needs one --workload and one number of --entities");
    }
    struct workload_options options = race_load(f, f->workload, f->entities[0]);
    struct workload load;
    workload_open(&load, &options);
    printf("{\"workload\":\"%s\",\"entities\":%u,\"side\":%d,\"radius\":%d}\n", options.name, options.count,
           options.side, options.cell);
    for (uint32_t step = 0; step < c->steps; step++) {
        for (uint32_t i = 0; i < options.count; i++) {
            printf("%s[%d,%d,%d]", i ? "," : "[", load.at[i].x, load.at[i].y, load.at[i].z);
        }
        puts("]");
        workload_step(&load);
        workload_accept(&load);
    }
    workload_close(&load);
}

int main(int argc, char **argv)
{
    struct command command = command_parse(argc, argv);
    const struct bench_flags *flags = &command.flags;
    if (command.advises) {
        advise(&command);
        return 0;
    }
    if (command.steps) {
        steps_print(&command);
        return 0;
    }
    bool all = flags->index && !strcmp(flags->index, "all");
    bool race = all || flags->workload || flags->entities[0] || flags->space || flags->cells != BENCH_CELLS;
    if (race && flags->index && !strcmp(flags->index, "textbook")) {
        kit_fail(2, "the textbook is measured without --workload, --entities and --3d");
    }
    if (!race && flags->plain && flags->index && strcmp(flags->index, "grid") != 0)
        kit_fail(2, "--plain is the grid's");
    unsigned run = race ? race_run(flags) : duel_run(flags);
    if (!run) kit_fail(2, "no case's name contains '%s'; for example block/100k/uniform", flags->only);
    return 0;
}
