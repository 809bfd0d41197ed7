#include "bench/race.h"

#include <stdlib.h>
#include <string.h>

#define LAPS_MOST     200000u
#define LAPS_LEAST    20u
#define VERIFY_MOVERS 500u
#define TICKS_MOST    41u
#define TICK_BUDGETS  100 /* in so many budgets all must be able to move, or only some do */
#define FOUND_ROOM    (1u << 20)

void racer_open(struct racer *r, const struct racer_options *options)
{
    *r = (struct racer){.options = *options};
    const struct workload_options *load = &r->options.load;
    struct aoi_options index = {.index = options->index,
                                .mode = options->mode,
                                .cell_size = options->cell,
                                .max_x = load->side,
                                .max_y = load->side,
                                .z_range = load->space ? 0 : UINT32_MAX,
                                .capacity = load->count,
                                .dimensions = load->space ? 3 : 2,
                                .max_z = load->space ? load->side : 0,
                                .direct = true};
    const char *fault = aoi_options_fault(&index);
    if (fault) kit_fail(2, "%s: %s", options->index, fault);
    kit_check(aoi_create(&index, &r->aoi));
    r->tally.aoi = r->aoi;
    workload_open(&r->load, load);
    r->handles = kit_take(load->count * sizeof *r->handles);
    r->laps = kit_take(LAPS_MOST * sizeof *r->laps);
    for (uint32_t i = 0; i < load->count; i++) {
        struct aoi_place place = {.position = r->load.at[i], .radius = options->radius};
        kit_check(aoi_enter(r->aoi, kit_id(i), &place, NULL, NULL, &r->handles[i]));
    }
    misses_open(&r->misses);
    if (r->misses.fault) kit_note("cache misses are not counted here: %s", r->misses.fault);
    double overheads[1001];
    for (size_t i = 0; i < 1001; i++) {
        double start = kit_wall_ns();
        overheads[i] = kit_wall_ns() - start;
    }
    r->overhead_ns = kit_median(overheads, 1001);
}

void racer_close(struct racer *r)
{
    aoi_destroy(r->aoi);
    workload_close(&r->load);
    misses_close(&r->misses);
    free(r->handles);
    free(r->laps);
}

double racer_bytes(const struct racer *r)
{
    return (double)aoi_memory_bytes(r->aoi) / r->options.load.count;
}

uint64_t racer_verify(struct racer *r)
{
    uint32_t movers = r->options.load.count < VERIFY_MOVERS ? r->options.load.count : VERIFY_MOVERS;
    struct tally tally = {.aoi = r->aoi};
    for (int whole = 0; whole < 2; whole++) {
        workload_step(&r->load);
        for (uint32_t i = 0; i < movers; i++) {
            kit_check(whole ? aoi_stage(r->aoi, r->handles[i], r->load.next[i])
                            : aoi_move(r->aoi, r->handles[i], r->load.next[i], tally_spans, &tally));
        }
        if (whole) aoi_tick(r->aoi, tally_spans, &tally);
        memcpy(r->load.at, r->load.next, movers * sizeof *r->load.at);
    }
    return tally.sum + kit_mix(tally.sees, tally.unsees);
}

/* ---- single operations ---- */

/* A stretch of single operations of one kind. */
struct stretch {
    double cpu;
    uint64_t events, misses;
    size_t count;
    double started, until; /* of the operation that runs; when to stop */
};

static struct stretch stretch_begin(struct racer *r)
{
    return (struct stretch){.cpu = kit_cpu_ns(),
                            .events = r->tally.sees + r->tally.unsees,
                            .misses = misses_read(&r->misses),
                            .until = kit_wall_ns() + 2 * r->options.budget_ns};
}

static inline void lap_begin(struct stretch *s)
{
    s->started = kit_wall_ns();
}

/* False: that was enough. */
static inline bool lap_end(struct racer *r, struct stretch *s)
{
    double now = kit_wall_ns(), ns = now - s->started - r->overhead_ns;
    r->laps[s->count++] = ns > 0 ? ns : 0;
    return s->count < LAPS_MOST && (s->count < LAPS_LEAST || now < s->until);
}

static struct lap_result stretch_end(struct racer *r, const struct stretch *s)
{
    double count = (double)s->count;
    double mean = (kit_cpu_ns() - s->cpu) / count - 2 * r->overhead_ns;
    struct lap_result result = {.mean = mean > 0.1 ? mean : 0.1};
    result.misses = (double)(misses_read(&r->misses) - s->misses) / count;
    result.changes = (double)(r->tally.sees + r->tally.unsees - s->events) / count;
    result.p99 = kit_percentile(r->laps, s->count, 99);
    return result;
}

static void leave(struct racer *r, uint32_t i)
{
    kit_check(aoi_leave(r->aoi, r->handles[i], count_spans, &r->tally));
}

static void enter(struct racer *r, uint32_t i)
{
    struct aoi_place place = {.position = r->load.at[i], .radius = r->options.radius};
    kit_check(aoi_enter(r->aoi, kit_id(i), &place, count_spans, &r->tally, &r->handles[i]));
}

static void move(struct racer *r, uint32_t i)
{
    kit_check(aoi_move(r->aoi, r->handles[i], r->load.next[i], count_spans, &r->tally));
    r->load.at[i] = r->load.next[i];
}

void racer_enter_leave(struct racer *r, struct lap_result *entered, struct lap_result *left)
{
    struct stretch s = stretch_begin(r);
    uint32_t count = r->options.load.count / 2, gone = 0;
    for (bool more = true; more && gone < count; gone++) {
        lap_begin(&s);
        leave(r, gone);
        more = lap_end(r, &s);
    }
    *left = stretch_end(r, &s);
    s = stretch_begin(r);
    s.until += 1e18; /* all must come back */
    for (uint32_t i = 0; i < gone; i++) {
        lap_begin(&s);
        enter(r, i);
        lap_end(r, &s);
    }
    *entered = stretch_end(r, &s);
}

struct lap_result racer_move(struct racer *r)
{
    workload_step(&r->load);
    struct stretch s = stretch_begin(r);
    bool more = true;
    for (uint32_t i = 0; more && i < r->options.load.count; i++) {
        lap_begin(&s);
        move(r, i);
        more = lap_end(r, &s);
    }
    return stretch_end(r, &s);
}

static size_t query(struct racer *r, struct position centre)
{
    static uint32_t out[FOUND_ROOM];
    if (r->options.load.space) return aoi_query_sphere(r->aoi, centre, r->options.radius, -1, out, FOUND_ROOM);
    return aoi_query_circle(r->aoi, centre, r->options.radius, -1, out, FOUND_ROOM);
}

struct lap_result racer_query(struct racer *r, double *found)
{
    size_t all = 0;
    struct stretch s = stretch_begin(r);
    for (bool more = true; more;) {
        struct position centre = r->load.at[workload_draw(&r->load) % r->options.load.count];
        lap_begin(&s);
        all += query(r, centre);
        more = lap_end(r, &s);
    }
    *found = (double)all / (double)s.count;
    return stretch_end(r, &s);
}

struct lap_result racer_mixed(struct racer *r)
{
    workload_step(&r->load);
    struct stretch s = stretch_begin(r);
    uint32_t count = r->options.load.count, gone = AOI_HANDLE_NONE;
    size_t found = 0;
    for (bool more = true; more || gone != AOI_HANDLE_NONE;) {
        uint32_t i = (uint32_t)(workload_draw(&r->load) % count), kind = (uint32_t)(workload_draw(&r->load) % 10);
        if (!more) kind = 9; /* whoever is away comes back */
        if (i == gone) i = (i + 1) % count;
        lap_begin(&s);
        if (kind < 7) {
            move(r, i);
        } else if (kind < 9) {
            found += query(r, r->load.at[i]);
        } else if (gone == AOI_HANDLE_NONE) {
            leave(r, i);
            gone = i;
        } else {
            enter(r, gone);
            gone = AOI_HANDLE_NONE;
        }
        more = lap_end(r, &s) && more;
        if (s.count == LAPS_MOST) s.count--;
    }
    if (!found) kit_fail(1, "no query has found anybody, not even the one it was around");
    return stretch_end(r, &s);
}

/* ---- ticks ---- */

struct lap_result racer_tick(struct racer *r, double move_ns, uint32_t *movers)
{
    uint32_t count = r->options.load.count;
    double move = move_ns > 1 ? move_ns : 1, affordable = TICK_BUDGETS * r->options.budget_ns / move;
    *movers = affordable < 100 ? 100 : affordable < count ? (uint32_t)affordable : count;
    if (*movers > count) *movers = count;
    double ticks[TICKS_MOST], begun = kit_cpu_ns();
    size_t rounds = 0;
    bool long_ones = move * *movers > 4 * r->options.budget_ns; /* then one is enough, and none to warm up */
    uint64_t events = 0, misses = 0;
    for (int round = long_ones ? 0 : -2; rounds < TICKS_MOST; round++) {
        workload_step(&r->load);
        if (round == 0) events = r->tally.sees + r->tally.unsees, misses = misses_read(&r->misses);
        double start = kit_cpu_ns();
        kit_check(aoi_stage_many(r->aoi, r->handles, r->load.next, *movers, NULL));
        aoi_tick(r->aoi, count_spans, &r->tally);
        double end = kit_cpu_ns();
        memcpy(r->load.at, r->load.next, *movers * sizeof *r->load.at);
        if (round >= 0) ticks[rounds++] = (end - start) / *movers;
        if (rounds >= (long_ones ? 1 : 3) && end - begun > 4 * r->options.budget_ns) break;
    }
    double moves = (double)rounds * *movers;
    struct lap_result result = {.changes = (double)(r->tally.sees + r->tally.unsees - events) / moves,
                                .misses = (double)(misses_read(&r->misses) - misses) / moves};
    result.mean = kit_median(ticks, rounds);
    result.p99 = ticks[rounds * 99 / 100];
    return result;
}
