/* bench_aoi: what the area-of-interest index costs, next to the textbook grid, on the same work in the same run.
 *
 * A case is a view mode, a number of entities and a distribution over a world of 200 x 200 cells; the radius is a
 * cell's side (50 m = 8192 units), and each tick everybody takes a step of at most a tenth of that. Before anything is
 * timed, both get the same operations and must report the same: single moves pair by pair, ticks by the signed sum
 * over pairs (a tick reports net, the textbook one move after the other, and what is undone cancels out). */
#include "aoi/aoi.h"
#include "aoi/grid.h"
#include "bench/textbook.h"

#include <getopt.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CELL       8192
#define CELLS      200
#define WORLD      (CELL * CELLS)
#define STEP       (CELL / 10)
#define QUERIES    20000
#define FOUND_ROOM (1u << 20)

struct flags {
    bool quick, plain, textbook_only;
    const char *only;
};

/* What a sink saw. */
struct tally {
    uint64_t sees, unsees, sum; /* sum: over sees plus, over unsees minus, a hash of the pair */
    struct aoi *aoi;
};

struct sample {
    double grid, textbook;
};

struct scene {
    const struct flags *flags;
    bool radius_mode, hotspot;
    const char *name;
    uint32_t count, sampled; /* entities; how many of them the textbook moves (it costs the same for each) */
    uint64_t random;
    struct aoi *aoi;
    struct textbook textbook;
    struct tally tally;
    uint32_t *handles;
    struct position *at, *next;
};

/* ---- small things ---- */

static void fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
static void fail(int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("bench_aoi: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(code);
}

static void progress(const struct scene *w, const char *what)
{
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K%s: %s", w->name, what);
}

static void progress_end(void)
{
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K");
}

/* Of this thread's processor time, so that a busy machine does not count. */
static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *take(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory) fail(3, "out of memory (%zu bytes)", size);
    return memory;
}

static int double_compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, double_compare);
    return values[count / 2];
}

static uint64_t draw(struct scene *w)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random * 0x2545f4914f6cdd1du >> 11;
}

static int32_t inside(int64_t v)
{
    return v < 0 ? 0 : v >= WORLD ? WORLD - 1 : (int32_t)v;
}

/* Close to a normal distribution: the sum of twelve uniform ones. */
static int64_t draw_normal(struct scene *w, int64_t deviation)
{
    int64_t sum = -6 * 65536;
    for (int i = 0; i < 12; i++) sum += (int64_t)(draw(w) & 65535);
    return sum * deviation / 65536;
}

static struct position draw_place(struct scene *w)
{
    if (!w->hotspot) return (struct position){.x = (int32_t)(draw(w) % WORLD), .y = (int32_t)(draw(w) % WORLD)};
    static const int64_t centres[3][2] = {{25, 30}, {70, 35}, {45, 75}}; /* percent of the side; 7% deviation */
    const int64_t *centre = centres[draw(w) % 3];
    int64_t x = centre[0] * WORLD / 100 + draw_normal(w, WORLD * 7 / 100);
    int64_t y = centre[1] * WORLD / 100 + draw_normal(w, WORLD * 7 / 100);
    return (struct position){.x = inside(x), .y = inside(y)};
}

static uint64_t pair_hash(uint64_t observer, uint64_t subject)
{
    uint64_t h = observer * 0x9e3779b97f4a7c15u + subject;
    h = (h ^ h >> 31) * 0xbf58476d1ce4e5b9u;
    return h ^ h >> 29;
}

/* ---- sinks ---- */

static void tally_pair(void *context, uint64_t observer, uint64_t subject, bool sees)
{
    struct tally *tally = context;
    uint64_t hash = pair_hash(observer, subject);
    tally->sees += sees;
    tally->unsees += !sees;
    tally->sum += sees ? hash : -hash;
}

static void tally_spans(void *context, const struct aoi_span *spans, size_t count)
{
    struct tally *tally = context;
    for (size_t i = 0; i < count; i++) {
        uint64_t subject = aoi_id(tally->aoi, spans[i].subject).v;
        bool sees = spans[i].change & (AOI_SEE | AOI_SEEN_BY);
        for (uint32_t j = 0; j < spans[i].count; j++) {
            uint64_t other = aoi_id(tally->aoi, spans[i].others[j]).v;
            if (spans[i].change & (AOI_SEE | AOI_UNSEE)) tally_pair(tally, subject, other, sees);
            if (spans[i].change & (AOI_SEEN_BY | AOI_UNSEEN_BY)) tally_pair(tally, other, subject, sees);
        }
    }
}

/* The sinks of the timed rounds: they count. */
static void count_pair(void *context, uint64_t observer, uint64_t subject, bool sees)
{
    struct tally *tally = context;
    (void)observer;
    (void)subject;
    tally->sees += sees;
    tally->unsees += !sees;
}

static void count_spans(void *context, const struct aoi_span *spans, size_t count)
{
    static const uint8_t sees[16] = {[AOI_SEE] = 1, [AOI_SEEN_BY] = 1, [AOI_SEE | AOI_SEEN_BY] = 2};
    static const uint8_t unsees[16] = {[AOI_UNSEE] = 1, [AOI_UNSEEN_BY] = 1, [AOI_UNSEE | AOI_UNSEEN_BY] = 2};
    struct tally *tally = context;
    uint64_t seen = 0, unseen = 0;
    for (size_t i = 0; i < count; i++) {
        seen += (uint64_t)spans[i].count * sees[spans[i].change];
        unseen += (uint64_t)spans[i].count * unsees[spans[i].change];
    }
    tally->sees += seen;
    tally->unsees += unseen;
}

/* ---- the world ---- */

static void check_error(enum terrane_error error)
{
    if (error) fail(1, "the index refused an operation: %s", terrane_error_text(error));
}

static struct entity_id id_of(uint32_t i)
{
    return (struct entity_id){.v = pair_hash(i + 1, 7) | 1};
}

static void world_open(struct scene *w)
{
    progress(w, "loading");
    struct aoi_options options = {.mode = w->radius_mode ? AOI_RADIUS : AOI_BLOCK,
                                  .cell_size = CELL,
                                  .max_x = WORLD,
                                  .max_y = WORLD,
                                  .z_range = UINT32_MAX,
                                  .capacity = w->count,
                                  .direct = true};
    check_error(aoi_create(&options, &w->aoi));
    if (w->flags->plain) grid_kernels_limit(grid_of(w->aoi), KERNELS_PLAIN);
    textbook_open(&w->textbook, w->radius_mode, CELL, CELL, CELLS, count_pair);
    w->textbook.context = &w->tally;
    w->tally.aoi = w->aoi;
    w->handles = take(w->count * sizeof *w->handles);
    w->at = take(w->count * sizeof *w->at);
    w->next = take(w->count * sizeof *w->next);
    for (uint32_t i = 0; i < w->count; i++) {
        w->at[i] = draw_place(w);
        struct aoi_place place = {.position = w->at[i], .radius = CELL};
        check_error(aoi_enter(w->aoi, id_of(i), &place, NULL, NULL, &w->handles[i]));
        textbook_enter(&w->textbook, id_of(i).v, w->at[i].x, w->at[i].y, true);
    }
}

static void world_close(struct scene *w)
{
    aoi_destroy(w->aoi);
    textbook_close(&w->textbook);
    free(w->handles);
    free(w->at);
    free(w->next);
}

/* Everybody's next place: a step in one of sixteen directions, of any length up to a tenth of a cell. 6% of them cross
 * a border. */
static void walk_all(struct scene *w)
{
    static const int64_t directions[16][2] = {
        {1000, 0},  {924, 383},   {707, 707},   {383, 924},   {0, 1000},  {-383, 924}, {-707, 707}, {-924, 383},
        {-1000, 0}, {-924, -383}, {-707, -707}, {-383, -924}, {0, -1000}, {383, -924}, {707, -707}, {924, -383}};
    for (uint32_t i = 0; i < w->count; i++) {
        uint64_t r = draw(w);
        const int64_t *direction = directions[r % 16];
        int64_t length = (int64_t)(r >> 4) % (STEP + 1);
        w->next[i].x = inside(w->at[i].x + direction[0] * length / 1000);
        w->next[i].y = inside(w->at[i].y + direction[1] * length / 1000);
    }
}

static void swap_places(struct scene *w)
{
    struct position *old = w->at;
    w->at = w->next;
    w->next = old;
}

/* Only the sampled have moved (the first ones; their places are random). */
static void accept_sampled(struct scene *w)
{
    memcpy(w->at, w->next, w->sampled * sizeof *w->at);
}

static void textbook_moves(struct scene *w, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) textbook_move(&w->textbook, id_of(i).v, w->next[i].x, w->next[i].y);
}

/* ---- verification ---- */

static void require(const struct scene *w, bool holds, const char *what, const struct tally *grid,
                    const struct tally *textbook)
{
    if (holds) return;
    progress_end();
    fail(1, "%s: %s differ: grid %llu sees, %llu unsees, sum %llx; textbook %llu, %llu, %llx", w->name, what,
         (unsigned long long)grid->sees, (unsigned long long)grid->unsees, (unsigned long long)grid->sum,
         (unsigned long long)textbook->sees, (unsigned long long)textbook->unsees, (unsigned long long)textbook->sum);
}

static void world_verify(struct scene *w)
{
    progress(w, "verifying");
    for (int whole = 0; whole < 2; whole++) {
        walk_all(w);
        struct tally grid = {.aoi = w->aoi}, textbook = {0};
        for (uint32_t i = 0; i < w->sampled; i++) {
            check_error(whole ? aoi_stage(w->aoi, w->handles[i], w->next[i])
                              : aoi_move(w->aoi, w->handles[i], w->next[i], tally_spans, &grid));
        }
        if (whole) aoi_tick(w->aoi, tally_spans, &grid);
        w->textbook.callback = tally_pair;
        w->textbook.context = &textbook;
        textbook_moves(w, w->sampled);
        w->textbook.callback = count_pair;
        w->textbook.context = &w->tally;
        accept_sampled(w);
        require(w, grid.sum == textbook.sum, whole ? "net events of a tick" : "events of single moves", &grid,
                &textbook);
        if (whole) {
            require(w, grid.sees - grid.unsees == textbook.sees - textbook.unsees, "net counts", &grid, &textbook);
            require(w, grid.sees <= textbook.sees, "counts", &grid, &textbook);
        } else {
            require(w, grid.sees == textbook.sees && grid.unsees == textbook.unsees, "counts", &grid, &textbook);
        }
        if (!grid.sees || !grid.unsees) fail(1, "%s: nothing happened, so nothing was compared", w->name);
    }
}

/* ---- figures ---- */

static void figure_print(const struct scene *w, const char *figure, const char *unit, struct sample sample)
{
    progress_end();
    double value = w->flags->textbook_only ? sample.textbook : sample.grid;
    printf("{\"bench\":\"aoi\",\"case\":\"%s\",\"figure\":\"%s\",\"value\":%.4g,\"unit\":\"%s\",\"reference\":"
           "\"textbook\","
           "\"reference_value\":%.4g,\"ratio\":%.3g}\n",
           w->name, figure, value, unit, sample.textbook, sample.textbook / value);
    fflush(stdout);
}

/* Circles around entities: ns an entity found. Each index is asked in a stretch of its own, of which the first round
 * only warms it up: it goes once over the whole world. */
static double grid_queries(struct scene *w, const struct position *centres, uint32_t count, size_t *found)
{
    static uint32_t out[FOUND_ROOM];
    double start = now_ns();
    for (uint32_t i = 0; i < count; i++) {
        *found += aoi_query_circle(w->aoi, centres[i], CELL, -1, out, FOUND_ROOM);
    }
    return now_ns() - start;
}

static double textbook_queries(struct scene *w, const struct position *centres, uint32_t count, size_t *found)
{
    static uint64_t out[FOUND_ROOM];
    double start = now_ns();
    for (uint32_t i = 0; i < count; i++) {
        *found += textbook_query(&w->textbook, centres[i].x, centres[i].y, out, FOUND_ROOM);
    }
    return now_ns() - start;
}

static struct sample measure_query(struct scene *w)
{
    enum { ROUNDS = 6 };
    static struct position centres[ROUNDS][QUERIES];
    double grid[ROUNDS], textbook[ROUNDS];
    size_t found[ROUNDS] = {0};
    uint32_t sampled = w->count > 200000 || w->hotspot ? QUERIES / 50 : QUERIES / 5;
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < QUERIES; i++) centres[round][i] = w->at[draw(w) % w->count];
    }
    for (int round = 0; round < ROUNDS; round++) {
        size_t all;
        double ns = grid_queries(w, centres[round], sampled, &found[round]);
        all = found[round];
        ns += grid_queries(w, centres[round] + sampled, QUERIES - sampled, &all);
        grid[round] = ns / (double)all;
    }
    for (int round = 0; round < ROUNDS; round++) {
        size_t others = 0;
        textbook[round] = textbook_queries(w, centres[round], sampled, &others) / (double)others;
        if (others != found[round]) fail(1, "%s: queries found %zu and %zu", w->name, found[round], others);
    }
    return (struct sample){median(grid + 1, ROUNDS - 1), median(textbook + 1, ROUNDS - 1)};
}

/* Everybody's next place: anywhere in the same cell. */
static void shuffle_all(struct scene *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        uint64_t r = draw(w);
        w->next[i].x = w->at[i].x / CELL * CELL + (int32_t)(r % CELL);
        w->next[i].y = w->at[i].y / CELL * CELL + (int32_t)((r >> 20) % CELL);
    }
}

/* Steps that stay within the cell, one at a time: first all rounds of the grid, then those of the textbook, which ends
 * where the grid did. */
static struct sample measure_move_inside(struct scene *w)
{
    enum { ROUNDS = 5, TEXTBOOK_ROUNDS = 3 };
    double grid[ROUNDS], textbook[TEXTBOOK_ROUNDS];
    uint32_t moves = w->radius_mode ? w->sampled : w->count;
    for (int round = 0; round < ROUNDS; round++) {
        shuffle_all(w);
        double start = now_ns();
        for (uint32_t i = 0; i < moves; i++) {
            check_error(aoi_move(w->aoi, w->handles[i], w->next[i], count_spans, &w->tally));
        }
        grid[round] = (now_ns() - start) / moves;
        memcpy(w->at, w->next, moves * sizeof *w->at);
    }
    for (int round = 0; round < TEXTBOOK_ROUNDS; round++) {
        if (round + 1 < TEXTBOOK_ROUNDS) {
            shuffle_all(w);
        } else {
            memcpy(w->next, w->at, w->count * sizeof *w->at);
        }
        double start = now_ns();
        textbook_moves(w, w->sampled);
        textbook[round] = (now_ns() - start) / w->sampled;
    }
    textbook_moves(w, moves);
    return (struct sample){median(grid, ROUNDS), median(textbook, TEXTBOOK_ROUNDS)};
}

static void measure_enter_leave(struct scene *w, struct sample *enter, struct sample *leave)
{
    double enters[2][5], leaves[2][5];
    uint32_t count = w->sampled < 5000 ? w->sampled : 5000;
    for (int round = 0; round < 5; round++) {
        double start = now_ns();
        for (uint32_t i = 0; i < count; i++) check_error(aoi_leave(w->aoi, w->handles[i], count_spans, &w->tally));
        double middle = now_ns();
        for (uint32_t i = 0; i < count; i++) {
            struct aoi_place place = {.position = w->at[i], .radius = CELL};
            check_error(aoi_enter(w->aoi, id_of(i), &place, count_spans, &w->tally, &w->handles[i]));
        }
        leaves[0][round] = (middle - start) / count;
        enters[0][round] = (now_ns() - middle) / count;
        start = now_ns();
        for (uint32_t i = 0; i < count; i++) textbook_leave(&w->textbook, id_of(i).v);
        middle = now_ns();
        for (uint32_t i = 0; i < count; i++) textbook_enter(&w->textbook, id_of(i).v, w->at[i].x, w->at[i].y, false);
        leaves[1][round] = (middle - start) / count;
        enters[1][round] = (now_ns() - middle) / count;
    }
    *enter = (struct sample){median(enters[0], 5), median(enters[1], 5)};
    *leave = (struct sample){median(leaves[0], 5), median(leaves[1], 5)};
}

/* Everybody moves, with all events: ns a tick. The textbook goes first, so that its world is still the same. */
static struct sample measure_tick(struct scene *w)
{
    enum { ROUNDS_MOST = 41 };
    double grid[ROUNDS_MOST], textbook;
    size_t rounds = w->count <= 100000 ? ROUNDS_MOST : w->flags->quick ? 7 : 21;
    walk_all(w);
    double start = now_ns();
    textbook_moves(w, w->sampled);
    textbook = (now_ns() - start) / w->sampled * w->count;
    for (size_t round = 0; round < rounds + 2; round++) {
        if (round) walk_all(w);
        start = now_ns();
        check_error(aoi_stage_many(w->aoi, w->handles, w->next, w->count, NULL));
        aoi_tick(w->aoi, count_spans, &w->tally);
        if (round >= 2) grid[round - 2] = now_ns() - start;
        swap_places(w);
    }
    return (struct sample){median(grid, rounds), textbook};
}

static void case_run(struct scene *w)
{
    world_open(w);
    world_verify(w);
    struct sample enter, leave;
    progress(w, "enter and leave");
    measure_enter_leave(w, &enter, &leave);
    figure_print(w, "enter", "ns", enter);
    figure_print(w, "leave", "ns", leave);
    progress(w, "query");
    figure_print(w, "query", "ns/found", measure_query(w));
    progress(w, "move_inside");
    figure_print(w, "move_inside", "ns", measure_move_inside(w));
    progress(w, "tick");
    size_t textbook_bytes = w->textbook.bytes;
    struct sample tick = measure_tick(w);
    figure_print(w, "move", "ns", (struct sample){tick.grid / w->count, tick.textbook / w->count});
    figure_print(w, "tick", "ms", (struct sample){tick.grid / 1e6, tick.textbook / 1e6});
    figure_print(w, "bytes", "bytes",
                 (struct sample){(double)aoi_memory_bytes(w->aoi) / w->count, (double)textbook_bytes / w->count});
    world_close(w);
}

/* ---- the command ---- */

static const char help[] =
    "Usage: bench_aoi [--quick] [--case TEXT] [--index NAME] [--plain]\n"
    "Measures the area-of-interest index next to the textbook grid; one JSON object a line and figure.\n"
    "\n"
    "  --quick       fewer rounds and a smaller sample for the textbook; ends within a minute\n"
    "  --case TEXT   only the cases whose name contains TEXT, e.g. block/100k or radius/1m/uniform\n"
    "  --index NAME  the index whose figures are the values (see --list); grid unless told\n"
    "  --plain       the grid without vector instructions\n"
    "  --list        the names of the indexes\n"
    "  --help        this text\n"
    "\n"
    "Times are processor time. Figures: enter, leave, move_inside: ns an operation, one at a time. query: ns an entity "
    "found by a circle.\n"
    "move: ns a move when all move in one tick, all events included; tick: ms for that tick. bytes: an entity.\n"
    "Exit: 0 well, 1 the two reported different events, 2 bad usage, 3 out of memory.\n";

static struct flags flags_parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"quick", no_argument, NULL, 'q'},
        {"plain", no_argument, NULL, 'p'},
        {"case", required_argument, NULL, 'c'},
        {"index", required_argument, NULL, 'i'},
        {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct flags flags = {0};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'q': flags.quick = true; break;
        case 'p': flags.plain = true; break;
        case 'c': flags.only = optarg; break;
        case 'i':
            flags.textbook_only = !strcmp(optarg, "textbook");
            if (!flags.textbook_only && strcmp(optarg, "grid") != 0) {
                fail(2, "no index is called '%s'; --list prints the names", optarg);
            }
            break;
        case 'l': puts("grid\ntextbook"); exit(0);
        case 'h': fputs(help, stdout); exit(0);
        default: fail(2, "see --help");
        }
    }
    if (optind < argc) fail(2, "'%s' is not understood; see --help", argv[optind]);
    return flags;
}

/* So many moves of the textbook that a case takes seconds: it handles one entity at a time, so a sample says it all. */
static uint32_t sample_size(const struct flags *flags, uint32_t count, bool radius_mode, bool hotspot)
{
    uint32_t most = radius_mode ? 100000 : 1000000;
    if (hotspot) most /= 5;
    if (count > 200000 && radius_mode) most /= hotspot ? 20 : 5;
    if (flags->quick) most /= 15;
    return count < most ? count : most;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        uint32_t count;
    } sizes[] = {{"10k", 10000}, {"100k", 100000}, {"1m", 1000000}};
    struct flags flags = flags_parse(argc, argv);
    unsigned run = 0;
    for (int mode = 0; mode < 2; mode++) {
        for (int size = 0; size < 3; size++) {
            for (int hotspot = 0; hotspot < 2; hotspot++) {
                char name[64];
                snprintf(name, sizeof name, "%s/%s/%s", mode ? "radius" : "block", sizes[size].name,
                         hotspot ? "hotspot" : "uniform");
                if (flags.only && !strstr(name, flags.only)) continue;
                struct scene world = {.flags = &flags, .radius_mode = mode, .hotspot = hotspot, .name = name};
                world.count = sizes[size].count;
                world.sampled = sample_size(&flags, world.count, mode, hotspot);
                world.random = 0x853c49e6748fea9bu;
                case_run(&world);
                run++;
            }
        }
    }
    if (!run) fail(2, "no case's name contains '%s'; for example block/100k/uniform", flags.only);
    return 0;
}
