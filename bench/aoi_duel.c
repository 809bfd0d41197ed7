/* One index next to the textbook grid (textbook.h), on the same work in the same run.
 *
 * A case is a view mode, a number of entities and a distribution over a world of 200 x 200 cells; the radius is a
 * cell's side, and each tick everybody takes a step of at most a tenth of that. Before anything is timed, both get the
 * same operations and must report the same: single moves pair by pair, ticks by the signed sum over pairs (a tick
 * reports net, the textbook one move after the other, and what is undone cancels out). */
#include "aoi/grid.h"
#include "bench/bench_aoi.h"
#include "bench/textbook.h"

#include <string.h>

#define QUERIES       20000
#define FOUND_ROOM    (1u << 20)
#define TICKS_MOST_NS 5e9

struct sample {
    double grid, textbook;
};

struct scene {
    const struct bench_flags *flags;
    bool radius_mode, textbook_only;
    const char *name, *index;
    uint32_t count, sampled; /* entities; how many of them the textbook moves (it costs the same for each) */
    struct aoi *aoi;
    struct textbook textbook;
    struct tally tally;
    uint32_t *handles;
    struct workload load;
};

static void show(const struct scene *w, const char *what)
{
    kit_progress("%s: %s", w->name, what);
}

/* What the textbook calls: with the sum, and without. */
static void note_pair(void *context, uint64_t observer, uint64_t subject, bool sees)
{
    tally_pair(context, observer, subject, sees);
}

static void count_pair(void *context, uint64_t observer, uint64_t subject, bool sees)
{
    struct tally *tally = context;
    (void)observer;
    (void)subject;
    tally->sees += sees;
    tally->unsees += !sees;
}

/* ---- the world ---- */

static void world_open(struct scene *w, const char *workload)
{
    show(w, "loading");
    struct aoi_options options = {.index = w->index,
                                  .mode = w->radius_mode ? AOI_RADIUS : AOI_BLOCK,
                                  .cell_size = BENCH_CELL,
                                  .max_x = BENCH_SIDE,
                                  .max_y = BENCH_SIDE,
                                  .z_range = UINT32_MAX,
                                  .capacity = w->count,
                                  .direct = true};
    kit_check(aoi_create(&options, &w->aoi));
    if (w->flags->plain) grid_kernels_limit(grid_of(w->aoi), KERNELS_PLAIN);
    textbook_open(&w->textbook, w->radius_mode, BENCH_CELL, BENCH_CELL, BENCH_CELLS, count_pair);
    w->textbook.context = &w->tally;
    w->tally.aoi = w->aoi;
    w->handles = kit_take(w->count * sizeof *w->handles);
    struct workload_options load = {
        .name = workload, .count = w->count, .side = BENCH_SIDE, .cell = BENCH_CELL, .step = BENCH_STEP};
    workload_open(&w->load, &load);
    for (uint32_t i = 0; i < w->count; i++) {
        struct aoi_place place = {.position = w->load.at[i], .radius = BENCH_CELL};
        kit_check(aoi_enter(w->aoi, kit_id(i), &place, NULL, NULL, &w->handles[i]));
        textbook_enter(&w->textbook, kit_id(i).v, w->load.at[i].x, w->load.at[i].y, true);
    }
}

static void world_close(struct scene *w)
{
    aoi_destroy(w->aoi);
    textbook_close(&w->textbook);
    free(w->handles);
    workload_close(&w->load);
}

/* Only the sampled have moved (the first ones; their places are random). */
static void accept_sampled(struct scene *w)
{
    memcpy(w->load.at, w->load.next, w->sampled * sizeof *w->load.at);
}

static void textbook_moves(struct scene *w, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) textbook_move(&w->textbook, kit_id(i).v, w->load.next[i].x, w->load.next[i].y);
}

/* ---- verification ---- */

static void require(const struct scene *w, bool holds, const char *what, const struct tally *grid,
                    const struct tally *textbook)
{
    if (holds) return;
    kit_fail(1, "%s: %s differ: grid %llu sees, %llu unsees, sum %llx; textbook %llu, %llu, %llx", w->name, what,
             (unsigned long long)grid->sees, (unsigned long long)grid->unsees, (unsigned long long)grid->sum,
             (unsigned long long)textbook->sees, (unsigned long long)textbook->unsees,
             (unsigned long long)textbook->sum);
}

static void world_verify(struct scene *w)
{
    show(w, "verifying");
    for (int whole = 0; whole < 2; whole++) {
        workload_step(&w->load);
        struct tally grid = {.aoi = w->aoi}, textbook = {0};
        for (uint32_t i = 0; i < w->sampled; i++) {
            kit_check(whole ? aoi_stage(w->aoi, w->handles[i], w->load.next[i])
                            : aoi_move(w->aoi, w->handles[i], w->load.next[i], tally_spans, &grid));
        }
        if (whole) aoi_tick(w->aoi, tally_spans, &grid);
        w->textbook.callback = note_pair;
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
        if (!grid.sees || !grid.unsees) kit_fail(1, "%s: nothing happened, so nothing was compared", w->name);
    }
}

/* ---- figures ---- */

static void figure_print(const struct scene *w, const char *figure, const char *unit, struct sample sample)
{
    record_print(&(struct record){.name = w->name,
                                  .index = w->textbook_only ? "textbook" : w->index,
                                  .figure = figure,
                                  .unit = unit,
                                  .value = w->textbook_only ? sample.textbook : sample.grid,
                                  .reference = "textbook",
                                  .reference_value = sample.textbook},
                 w->flags->csv);
}

/* Circles around entities: ns an entity found. Each index is asked in a stretch of its own, of which the first round
 * only warms it up: it goes once over the whole world. */
static double grid_queries(struct scene *w, const struct position *centres, uint32_t count, size_t *found)
{
    static uint32_t out[FOUND_ROOM];
    double start = kit_cpu_ns();
    for (uint32_t i = 0; i < count; i++) {
        *found += aoi_query_circle(w->aoi, centres[i], BENCH_CELL, -1, out, FOUND_ROOM);
    }
    return kit_cpu_ns() - start;
}

static double textbook_queries(struct scene *w, const struct position *centres, uint32_t count, size_t *found)
{
    static uint64_t out[FOUND_ROOM];
    double start = kit_cpu_ns();
    for (uint32_t i = 0; i < count; i++) {
        *found += textbook_query(&w->textbook, centres[i].x, centres[i].y, out, FOUND_ROOM);
    }
    return kit_cpu_ns() - start;
}

static struct sample measure_query(struct scene *w)
{
    enum { ROUNDS = 6 };
    static struct position centres[ROUNDS][QUERIES];
    double grid[ROUNDS], textbook[ROUNDS];
    size_t found[ROUNDS] = {0};
    uint32_t sampled = w->count > 200000 || !strcmp(w->load.options.name, "hotspot") ? QUERIES / 50 : QUERIES / 5;
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < QUERIES; i++) centres[round][i] = w->load.at[workload_draw(&w->load) % w->count];
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
        if (others != found[round]) kit_fail(1, "%s: queries found %zu and %zu", w->name, found[round], others);
    }
    return (struct sample){kit_median(grid + 1, ROUNDS - 1), kit_median(textbook + 1, ROUNDS - 1)};
}

/* Everybody's next place: anywhere in the same cell. */
static void shuffle_all(struct scene *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        uint64_t r = workload_draw(&w->load);
        w->load.next[i].x = w->load.at[i].x / BENCH_CELL * BENCH_CELL + (int32_t)(r % BENCH_CELL);
        w->load.next[i].y = w->load.at[i].y / BENCH_CELL * BENCH_CELL + (int32_t)((r >> 20) % BENCH_CELL);
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
        double start = kit_cpu_ns();
        for (uint32_t i = 0; i < moves; i++) {
            kit_check(aoi_move(w->aoi, w->handles[i], w->load.next[i], count_spans, &w->tally));
        }
        grid[round] = (kit_cpu_ns() - start) / moves;
        memcpy(w->load.at, w->load.next, moves * sizeof *w->load.at);
    }
    for (int round = 0; round < TEXTBOOK_ROUNDS; round++) {
        if (round + 1 < TEXTBOOK_ROUNDS) {
            shuffle_all(w);
        } else {
            memcpy(w->load.next, w->load.at, w->count * sizeof *w->load.at);
        }
        double start = kit_cpu_ns();
        textbook_moves(w, w->sampled);
        textbook[round] = (kit_cpu_ns() - start) / w->sampled;
    }
    textbook_moves(w, moves);
    return (struct sample){kit_median(grid, ROUNDS), kit_median(textbook, TEXTBOOK_ROUNDS)};
}

static void measure_enter_leave(struct scene *w, struct sample *enter, struct sample *leave)
{
    double enters[2][5], leaves[2][5];
    uint32_t count = w->sampled < 5000 ? w->sampled : 5000;
    for (int round = 0; round < 5; round++) {
        double start = kit_cpu_ns();
        for (uint32_t i = 0; i < count; i++) kit_check(aoi_leave(w->aoi, w->handles[i], count_spans, &w->tally));
        double middle = kit_cpu_ns();
        for (uint32_t i = 0; i < count; i++) {
            struct aoi_place place = {.position = w->load.at[i], .radius = BENCH_CELL};
            kit_check(aoi_enter(w->aoi, kit_id(i), &place, count_spans, &w->tally, &w->handles[i]));
        }
        leaves[0][round] = (middle - start) / count;
        enters[0][round] = (kit_cpu_ns() - middle) / count;
        start = kit_cpu_ns();
        for (uint32_t i = 0; i < count; i++) textbook_leave(&w->textbook, kit_id(i).v);
        middle = kit_cpu_ns();
        for (uint32_t i = 0; i < count; i++)
            textbook_enter(&w->textbook, kit_id(i).v, w->load.at[i].x, w->load.at[i].y, false);
        leaves[1][round] = (middle - start) / count;
        enters[1][round] = (kit_cpu_ns() - middle) / count;
    }
    *enter = (struct sample){kit_median(enters[0], 5), kit_median(enters[1], 5)};
    *leave = (struct sample){kit_median(leaves[0], 5), kit_median(leaves[1], 5)};
}

/* Everybody moves, with all events: ns a tick. The textbook goes first, so that its world is still the same. */
static struct sample measure_tick(struct scene *w)
{
    enum { ROUNDS_MOST = 41 };
    double grid[ROUNDS_MOST], textbook;
    double begun = kit_cpu_ns();
    size_t rounds = w->count <= 100000 ? ROUNDS_MOST : w->flags->quick ? 7 : 21;
    workload_step(&w->load);
    double start = kit_cpu_ns();
    textbook_moves(w, w->sampled);
    textbook = (kit_cpu_ns() - start) / w->sampled * w->count;
    for (size_t round = 0; round < rounds + 2; round++) {
        if (round) workload_step(&w->load);
        start = kit_cpu_ns();
        kit_check(aoi_stage_many(w->aoi, w->handles, w->load.next, w->count, NULL));
        aoi_tick(w->aoi, count_spans, &w->tally);
        if (round >= 2) grid[round - 2] = kit_cpu_ns() - start;
        workload_accept(&w->load);
        /* Other indexes than the grid may take seconds a tick. */
        if (round >= 4 && kit_cpu_ns() - begun > TICKS_MOST_NS) rounds = round - 1;
    }
    return (struct sample){kit_median(grid, rounds), textbook};
}

static void case_run(struct scene *w, const char *workload)
{
    world_open(w, workload);
    world_verify(w);
    struct sample enter, leave;
    show(w, "enter and leave");
    measure_enter_leave(w, &enter, &leave);
    figure_print(w, "enter", "ns", enter);
    figure_print(w, "leave", "ns", leave);
    show(w, "query");
    figure_print(w, "query", "ns/found", measure_query(w));
    show(w, "move_inside");
    figure_print(w, "move_inside", "ns", measure_move_inside(w));
    show(w, "tick");
    size_t textbook_bytes = w->textbook.bytes;
    struct sample tick = measure_tick(w);
    figure_print(w, "move", "ns", (struct sample){tick.grid / w->count, tick.textbook / w->count});
    figure_print(w, "tick", "ms", (struct sample){tick.grid / 1e6, tick.textbook / 1e6});
    figure_print(w, "bytes", "bytes",
                 (struct sample){(double)aoi_memory_bytes(w->aoi) / w->count, (double)textbook_bytes / w->count});
    world_close(w);
}

/* So many moves of the textbook that a case takes seconds: it handles one entity at a time, so a sample says it all. */
static uint32_t sample_size(const struct bench_flags *flags, uint32_t count, bool radius_mode, bool hotspot)
{
    uint32_t most = radius_mode ? 100000 : 1000000;
    if (hotspot) most /= 5;
    if (count > 200000 && radius_mode) most /= hotspot ? 20 : 5;
    if (flags->quick) most /= 15;
    return count < most ? count : most;
}

unsigned duel_run(const struct bench_flags *flags)
{
    static const struct {
        const char *name;
        uint32_t count;
    } sizes[] = {{"10k", 10000}, {"100k", 100000}, {"1m", 1000000}};
    static const char *const workloads[] = {"uniform", "hotspot"};
    unsigned run = 0;
    for (int mode = 0; mode < 2; mode++) {
        for (int size = 0; size < 3; size++) {
            for (int hotspot = 0; hotspot < 2; hotspot++) {
                char name[64];
                snprintf(name, sizeof name, "%s/%s/%s", mode ? "radius" : "block", sizes[size].name,
                         workloads[hotspot]);
                if (flags->only && !strstr(name, flags->only)) continue;
                struct scene world = {.flags = flags, .radius_mode = mode, .name = name, .count = sizes[size].count};
                world.textbook_only = flags->index && !strcmp(flags->index, "textbook");
                world.index = flags->index && !world.textbook_only ? flags->index : "grid";
                world.sampled = sample_size(flags, world.count, mode, hotspot);
                case_run(&world, workloads[hotspot]);
                run++;
            }
        }
    }
    return run;
}
