#include "bench/workload.h"

#include "bench/kit.h"
#include "tools/crowd.h"
#include "tools/recording_files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TURN         6.283185307179586
#define TELEPORT_ONE 50 /* one in so many jumps in a tick */

/* A direction to march in, or a circle to walk. */
struct track_state {
    int32_t x, y; /* march: step; patrol: centre */
    double radius, angle, pace;
};

struct workload_kind {
    struct workload_info info;
    struct position (*place)(struct workload *w, uint32_t i);
    void (*begin)(struct workload *w); /* NULL: nothing to begin */
    void (*step)(struct workload *w);
};

/* ---- chance ---- */

uint64_t workload_draw(struct workload *w)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random * 0x2545f4914f6cdd1du >> 11;
}

static double draw_unit(struct workload *w)
{
    return (double)workload_draw(w) / 9007199254740992.0;
}

/* Close to a normal distribution: the sum of twelve uniform ones. */
static int64_t draw_normal(struct workload *w, int64_t deviation)
{
    int64_t sum = -6 * 65536;
    for (int i = 0; i < 12; i++) sum += (int64_t)(workload_draw(w) & 65535);
    return sum * deviation / 65536;
}

static int32_t inside(const struct workload *w, int64_t v)
{
    return v < 0 ? 0 : v >= w->options.side ? w->options.side - 1 : (int32_t)v;
}

static int32_t draw_coordinate(struct workload *w)
{
    return (int32_t)(workload_draw(w) % (uint64_t)w->options.side);
}

/* ---- places ---- */

static struct position place_anywhere(struct workload *w, uint32_t i)
{
    (void)i;
    struct position p = {.x = draw_coordinate(w)};
    p.y = draw_coordinate(w);
    return p;
}

static struct position place_around(struct workload *w, int64_t percent_x, int64_t percent_y, int64_t deviation)
{
    int64_t side = w->options.side, x = percent_x * side / 100 + draw_normal(w, deviation);
    int64_t y = percent_y * side / 100 + draw_normal(w, deviation);
    return (struct position){.x = inside(w, x), .y = inside(w, y)};
}

static struct position place_hotspot(struct workload *w, uint32_t i)
{
    (void)i;
    static const int64_t centres[3][2] = {{25, 30}, {70, 35}, {45, 75}}; /* percent of the side; 7% deviation */
    const int64_t *centre = centres[workload_draw(w) % 3];
    return place_around(w, centre[0], centre[1], (int64_t)w->options.side * 7 / 100);
}

static struct position place_spot90(struct workload *w, uint32_t i)
{
    return i % 10 == 0 ? place_anywhere(w, i) : place_around(w, 50, 50, w->options.cell / 2);
}

static struct position place_cell(struct workload *w, uint32_t i)
{
    (void)i;
    int32_t cell = w->options.cell, corner = w->options.side / 2 / cell * cell;
    struct position p = {.x = corner + draw_coordinate(w) % cell};
    p.y = corner + draw_coordinate(w) % cell;
    return p;
}

static struct position place_point(struct workload *w, uint32_t i)
{
    (void)i;
    return (struct position){.x = w->options.side / 2, .y = w->options.side / 2};
}

static struct position place_line(struct workload *w, uint32_t i)
{
    (void)i;
    return (struct position){.x = draw_coordinate(w), .y = w->options.side / 2};
}

static struct position place_crowd(struct workload *w, uint32_t i)
{
    struct crowd_place place = crowd_place(w->crowd, i);
    return (struct position){.x = inside(w, (int64_t)(place.x * w->options.metre)),
                             .y = inside(w, (int64_t)(place.y * w->options.metre))};
}

/* ---- steps ---- */

/* A step in one of sixteen directions, of any length up to the longest. */
static struct position stepped(struct workload *w, struct position from)
{
    static const int64_t directions[16][2] = {
        {1000, 0},  {924, 383},   {707, 707},   {383, 924},   {0, 1000},  {-383, 924}, {-707, 707}, {-924, 383},
        {-1000, 0}, {-924, -383}, {-707, -707}, {-383, -924}, {0, -1000}, {383, -924}, {707, -707}, {924, -383}};
    uint64_t r = workload_draw(w);
    const int64_t *direction = directions[r % 16];
    int64_t length = (int64_t)(r >> 4) % ((int64_t)w->options.step + 1);
    struct position to = {.x = inside(w, from.x + direction[0] * length / 1000),
                          .y = inside(w, from.y + direction[1] * length / 1000),
                          .z = from.z};
    return to;
}

static void step_walk(struct workload *w)
{
    for (uint32_t i = 0; i < w->options.count; i++) w->next[i] = stepped(w, w->at[i]);
}

static void step_cell(struct workload *w)
{
    int32_t cell = w->options.cell;
    for (uint32_t i = 0; i < w->options.count; i++) {
        struct position to = stepped(w, w->at[i]);
        bool same = to.x / cell == w->at[i].x / cell && to.y / cell == w->at[i].y / cell;
        w->next[i] = same ? to : w->at[i];
    }
}

/* All stand in the one point; each in a while one steps aside, and is back in the next tick. */
static void step_point(struct workload *w)
{
    struct position point = place_point(w, 0);
    for (uint32_t i = 0; i < w->options.count; i++) {
        bool away = w->at[i].x != point.x || w->at[i].y != point.y;
        w->next[i] = away ? point : workload_draw(w) % 100 ? w->at[i] : stepped(w, w->at[i]);
    }
}

static void step_line(struct workload *w)
{
    step_walk(w);
    for (uint32_t i = 0; i < w->options.count; i++) w->next[i].y = w->at[i].y;
}

static void step_teleport(struct workload *w)
{
    for (uint32_t i = 0; i < w->options.count; i++) {
        struct position z = {.z = w->at[i].z};
        bool jumps = workload_draw(w) % TELEPORT_ONE == 0;
        w->next[i] = jumps ? place_anywhere(w, i) : stepped(w, w->at[i]);
        w->next[i].z = z.z;
    }
}

/* Columns in which all go the same way, at one pace, and turn around at the world's end. */
static void begin_march(struct workload *w)
{
    w->states = kit_take(w->options.count * sizeof *w->states);
    for (uint32_t i = 0; i < w->options.count; i++) {
        uint64_t column = kit_mix((uint64_t)(w->at[i].y / w->options.cell), 3) % 4;
        int32_t pace = w->options.step;
        w->states[i].x = column == 0 ? pace : column == 1 ? -pace : 0;
        w->states[i].y = column == 2 ? pace : column == 3 ? -pace : 0;
    }
}

static int32_t marched(const struct workload *w, int32_t from, int32_t *step)
{
    int64_t to = (int64_t)from + *step;
    if (to < 0 || to >= w->options.side) *step = -*step;
    return inside(w, to);
}

static void step_march(struct workload *w)
{
    for (uint32_t i = 0; i < w->options.count; i++) {
        w->next[i] = w->at[i];
        w->next[i].x = marched(w, w->at[i].x, &w->states[i].x);
        w->next[i].y = marched(w, w->at[i].y, &w->states[i].y);
    }
}

static struct position on_circle(const struct workload *w, const struct track_state *s, int32_t z)
{
    return (struct position){.x = inside(w, s->x + (int64_t)(cos(s->angle) * s->radius)),
                             .y = inside(w, s->y + (int64_t)(sin(s->angle) * s->radius)),
                             .z = z};
}

/* Each around a centre of its own, half a cell to three cells away, at its own pace. */
static void begin_patrol(struct workload *w)
{
    w->states = kit_take(w->options.count * sizeof *w->states);
    for (uint32_t i = 0; i < w->options.count; i++) {
        struct track_state *s = &w->states[i];
        *s = (struct track_state){.x = w->at[i].x, .y = w->at[i].y};
        s->radius = (0.5 + 2.5 * draw_unit(w)) * w->options.cell;
        s->angle = draw_unit(w) * TURN;
        s->pace = w->options.step * (0.5 + draw_unit(w) / 2) / s->radius;
        w->at[i] = on_circle(w, s, w->at[i].z);
    }
}

static void step_patrol(struct workload *w)
{
    for (uint32_t i = 0; i < w->options.count; i++) {
        struct track_state *s = &w->states[i];
        s->angle += s->pace;
        w->next[i] = on_circle(w, s, w->at[i].z);
    }
}

static void crowd_begin(struct workload *w)
{
    w->recording = kit_take(sizeof *w->recording);
    struct recording_fault fault;
    if (!w->options.crowds) {
        recording_generate(w->recording, w->options.seed + 1, 400);
    } else if (recording_read_folder(w->recording, w->options.crowds, &fault)) {
        kit_fail(3, "%s", fault.text);
    }
    struct crowd_options options = {.recording = w->recording,
                                    .side = w->options.side / w->options.metre,
                                    .seed = w->options.seed + 1,
                                    .count = w->options.count,
                                    .workload = CROWD_WALK};
    w->crowd = crowd_open(&options);
}

static void step_crowd(struct workload *w)
{
    crowd_step(w->crowd, w->options.tick_s);
    for (uint32_t i = 0; i < w->options.count; i++) {
        w->next[i] = place_crowd(w, i);
        w->next[i].z = w->at[i].z;
    }
}

static const struct workload_kind kinds[] = {
    {{"uniform", "random walk, spread evenly"}, place_anywhere, NULL, step_walk},
    {{"hotspot", "random walk in three crowded spots"}, place_hotspot, NULL, step_walk},
    {{"march", "columns that go straight on and turn at the world's end"}, place_anywhere, begin_march, step_march},
    {{"patrol", "each around a circle of its own"}, place_anywhere, begin_patrol, step_patrol},
    {{"teleport", "random walk, and one in 50 jumps anywhere"}, place_anywhere, NULL, step_teleport},
    {{"mixed", "one at a time: 70% moves, 20% queries, 10% leave and enter"}, place_anywhere, NULL, step_walk},
    {{"crowd", "people as recorded in TERRANE_CROWDS, made up without it"}, place_crowd, NULL, step_crowd},
    {{"spot90", "random walk, nine of ten in one spot"}, place_spot90, NULL, step_walk},
    {{"cell", "random walk, all within one cell"}, place_cell, NULL, step_cell},
    {{"point", "all in one point, one in 100 steps aside and back"}, place_point, NULL, step_point},
    {{"line", "random walk, all on one line"}, place_line, NULL, step_line},
};

const struct workload_info *workload_list(size_t at)
{
    return at < sizeof kinds / sizeof *kinds ? &kinds[at].info : NULL;
}

static const struct workload_kind *kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!strcmp(kinds[i].info.name, name)) return &kinds[i];
    }
    return NULL;
}

const struct workload_info *workload_find(const char *name)
{
    const struct workload_kind *kind = kind_of(name);
    return kind ? &kind->info : NULL;
}

void workload_open(struct workload *w, const struct workload_options *options)
{
    *w = (struct workload){.options = *options, .kind = kind_of(options->name)};
    if (!w->kind) kit_fail(2, "no workload is called '%s'; --list-workloads prints the names", options->name);
    w->random = options->seed ? kit_mix(options->seed, 1) | 1 : 0x853c49e6748fea9bu;
    w->at = kit_take(options->count * sizeof *w->at);
    w->next = kit_take(options->count * sizeof *w->next);
    if (w->kind->step == step_crowd) crowd_begin(w);
    for (uint32_t i = 0; i < options->count; i++) w->at[i] = w->kind->place(w, i);
    for (uint32_t i = 0; options->space && i < options->count; i++) w->at[i].z = draw_coordinate(w);
    if (w->kind->begin) w->kind->begin(w);
}

void workload_close(struct workload *w)
{
    if (w->crowd) crowd_close(w->crowd);
    if (w->recording) recording_close(w->recording);
    free(w->recording);
    free(w->states);
    free(w->at);
    free(w->next);
}

void workload_step(struct workload *w)
{
    w->kind->step(w);
    for (uint32_t i = 0; w->options.space && i < w->options.count; i++) {
        int64_t up = (int64_t)(workload_draw(w) % (2 * (uint64_t)w->options.step + 1)) - w->options.step;
        w->next[i].z = inside(w, w->at[i].z + up);
    }
}

void workload_accept(struct workload *w)
{
    struct position *old = w->at;
    w->at = w->next;
    w->next = old;
}
