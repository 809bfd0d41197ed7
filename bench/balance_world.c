#include "bench/balance_world.h"

#include "common/check.h"
#include "common/geometry.h"
#include "tools/crowd.h"
#include "tools/dice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIDE_M    12800.0
#define CELLS     (1u << WORLD_DEPTH)
#define CELL_M    (SIDE_M / CELLS)
#define SPREAD_M  200.0
#define WALK_MS   1.4
#define STAR_MS   4.0
#define STAR_M    5000.0
#define DAY_S     1440.0
#define NIGHT     0.05
#define BAND_M    1600.0
#define PI        3.14159265358979323846
#define PAIR_COST 0.01

const char *const WORKLOAD_NAMES[WORKLOADS] = {"crowds", "jump", "star", "waves"};

struct wanderer {
    double x, y, heading, waking;
};

struct balance_world {
    enum workload workload;
    struct dice dice;
    double now_s, jump_every_s, jump_s, centre_x, centre_y;
    struct crowd *crowd;
    struct wanderer *entities;
    uint32_t count, spot;                   /* the first `spot` entities are around the centre */
    uint32_t *entities_of[WORLD_DEPTH + 1]; /* by depth, then Z-order */
    double *load_of[WORLD_DEPTH + 1];
    uint32_t *cells, *rows; /* entities in cells, and in each cell's row of three */
};

static double roll(struct balance_world *w)
{
    return dice_unit(&w->dice);
}

static double clamp(double at)
{
    return fmin(fmax(at, 0), SIDE_M - 0.001);
}

static void gather(struct balance_world *w)
{
    for (uint32_t i = 0; i < w->spot; i++) {
        w->entities[i].x = clamp(w->centre_x + SPREAD_M * dice_normal(&w->dice));
        w->entities[i].y = clamp(w->centre_y + SPREAD_M * dice_normal(&w->dice));
    }
}

static bool jump(struct balance_world *w)
{
    double x, y;
    if (w->workload != WORKLOAD_JUMP || w->now_s < w->jump_s) return false;
    do {
        x = 1000 + roll(w) * (SIDE_M - 2000);
        y = 1000 + roll(w) * (SIDE_M - 2000);
    } while (hypot(x - w->centre_x, y - w->centre_y) < SIDE_M / 2);
    w->centre_x = x;
    w->centre_y = y;
    w->jump_s += w->jump_every_s;
    gather(w);
    return true;
}

/* The corner `n` of the star {8/3}: each edge skips two corners. */
static void corner(uint32_t n, double *x, double *y)
{
    double angle = 3.0 * n * PI / 4;
    *x = SIDE_M / 2 + STAR_M * cos(angle);
    *y = SIDE_M / 2 + STAR_M * sin(angle);
}

static void star(struct balance_world *w)
{
    double edge = 2 * STAR_M * sin(3 * PI / 8), gone = STAR_MS * w->now_s / edge;
    double x0, y0, x1, y1, was_x = w->centre_x, was_y = w->centre_y;
    corner((uint32_t)gone, &x0, &y0);
    corner((uint32_t)gone + 1, &x1, &y1);
    double part = gone - floor(gone);
    w->centre_x = x0 + part * (x1 - x0);
    w->centre_y = y0 + part * (y1 - y0);
    for (uint32_t i = 0; i < w->spot; i++) {
        w->entities[i].x = clamp(w->entities[i].x + w->centre_x - was_x);
        w->entities[i].y = clamp(w->entities[i].y + w->centre_y - was_y);
    }
}

static void wander(struct balance_world *w, struct wanderer *e)
{
    e->heading += 0.2 * (roll(w) - 0.5);
    double x = e->x + WALK_MS * STEP_S * cos(e->heading), y = e->y + WALK_MS * STEP_S * sin(e->heading);
    if (x < 0 || x >= SIDE_M || y < 0 || y >= SIDE_M) e->heading += PI;
    e->x = clamp(x);
    e->y = clamp(y);
}

/* Those around the centre go to and fro within it: by the mean they stay. */
static void mill(struct balance_world *w, struct wanderer *e)
{
    wander(w, e);
    if (hypot(e->x - w->centre_x, e->y - w->centre_y) > 2.5 * SPREAD_M)
        e->heading = atan2(w->centre_y - e->y, w->centre_x - e->x);
}

static bool awake(const struct balance_world *w, const struct wanderer *e)
{
    if (w->workload != WORKLOAD_WAVES) return true;
    double day = 0.5 + 0.5 * sin(2 * PI * (w->now_s / DAY_S - e->x / SIDE_M));
    return e->waking < NIGHT + (1 - NIGHT) * day;
}

static uint32_t zorder(uint32_t x, uint32_t y)
{
    uint32_t z = 0;
    for (uint32_t bit = 0; bit < WORLD_DEPTH; bit++) z |= (x >> bit & 1) << 2 * bit | (y >> bit & 1) << (2 * bit + 1);
    return z;
}

static void put(struct balance_world *w, double x, double y)
{
    w->cells[(uint32_t)(clamp(y) / CELL_M) * CELLS + (uint32_t)(clamp(x) / CELL_M)]++;
}

static uint32_t row_of_three(const uint32_t *values, uint32_t at, uint32_t stride, uint32_t place)
{
    return values[at] + (place > 0 ? values[at - stride] : 0) + (place + 1 < CELLS ? values[at + stride] : 0);
}

/* What each region holds and costs, from the cells up. */
static void weigh(struct balance_world *w)
{
    for (uint32_t at = 0; at < CELLS * CELLS; at++) w->rows[at] = row_of_three(w->cells, at, 1, at % CELLS);
    for (uint32_t at = 0; at < CELLS * CELLS; at++) {
        uint32_t x = at % CELLS, y = at / CELLS, z = zorder(x, y), around = row_of_three(w->rows, at, CELLS, y);
        w->entities_of[WORLD_DEPTH][z] = w->cells[at];
        w->load_of[WORLD_DEPTH][z] = w->cells[at] * (1 + PAIR_COST * around);
    }
    for (uint32_t depth = WORLD_DEPTH; depth-- > 0;) {
        for (uint32_t z = 0; z < 1u << 2 * depth; z++) {
            const uint32_t *below = &w->entities_of[depth + 1][4 * z];
            const double *load = &w->load_of[depth + 1][4 * z];
            w->entities_of[depth][z] = below[0] + below[1] + below[2] + below[3];
            w->load_of[depth][z] = load[0] + load[1] + load[2] + load[3];
        }
    }
}

static void count(struct balance_world *w)
{
    memset(w->cells, 0, CELLS * CELLS * sizeof *w->cells);
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->crowd != NULL) {
            struct crowd_place place = crowd_place(w->crowd, i);
            put(w, place.x, place.y);
        } else if (awake(w, &w->entities[i])) {
            put(w, w->entities[i].x, w->entities[i].y);
        }
    }
    weigh(w);
}

struct balance_world *balance_world_open(enum workload workload, uint32_t entities, uint64_t seed, double jump_every_s,
                                         const struct recording *recording)
{
    struct balance_world *w = calloc(1, sizeof *w);
    CHECK(w != NULL);
    *w = (struct balance_world){.workload = workload, .dice = {seed}, .count = entities};
    w->jump_every_s = w->jump_s = jump_every_s;
    w->centre_x = w->centre_y = SIDE_M / 4;
    w->entities = calloc(entities, sizeof *w->entities);
    w->cells = calloc(CELLS * CELLS, sizeof *w->cells);
    w->rows = calloc(CELLS * CELLS, sizeof *w->rows);
    CHECK(w->entities != NULL && w->cells != NULL && w->rows != NULL);
    for (uint32_t depth = 0; depth <= WORLD_DEPTH; depth++) {
        w->entities_of[depth] = calloc(1u << 2 * depth, sizeof *w->entities_of[depth]);
        w->load_of[depth] = calloc(1u << 2 * depth, sizeof *w->load_of[depth]);
        CHECK(w->entities_of[depth] != NULL && w->load_of[depth] != NULL);
    }
    for (uint32_t i = 0; i < entities; i++)
        w->entities[i] = (struct wanderer){roll(w) * SIDE_M, roll(w) * SIDE_M, 2 * PI * roll(w), roll(w)};
    if (workload == WORKLOAD_JUMP) w->spot = entities / 4;
    if (workload == WORKLOAD_STAR) w->spot = entities / 4;
    if (workload == WORKLOAD_STAR) corner(0, &w->centre_x, &w->centre_y);
    gather(w);
    if (workload == WORKLOAD_CROWDS)
        w->crowd = crowd_open(&(struct crowd_options){.recording = recording,
                                                      .side = SIDE_M,
                                                      .band = BAND_M,
                                                      .seed = seed,
                                                      .count = entities,
                                                      .workload = CROWD_WALK});
    count(w);
    return w;
}

void balance_world_close(struct balance_world *w)
{
    for (uint32_t depth = 0; depth <= WORLD_DEPTH; depth++) {
        free(w->entities_of[depth]);
        free(w->load_of[depth]);
    }
    if (w->crowd != NULL) crowd_close(w->crowd);
    free(w->entities);
    free(w->cells);
    free(w->rows);
    free(w);
}

bool balance_world_step(struct balance_world *w)
{
    w->now_s += STEP_S;
    bool jumped = jump(w);
    if (w->workload == WORKLOAD_STAR) star(w);
    if (w->crowd != NULL) crowd_step(w->crowd, STEP_S);
    for (uint32_t i = 0; i < w->count && w->crowd == NULL; i++) {
        if (i < w->spot)
            mill(w, &w->entities[i]);
        else
            wander(w, &w->entities[i]);
    }
    count(w);
    return jumped;
}

static uint32_t index_of(struct quadkey region)
{
    return (uint32_t)(region.v ^ UINT64_C(1) << 2 * quadkey_depth(region));
}

uint32_t balance_world_entities(const struct balance_world *w, struct quadkey region)
{
    return w->entities_of[quadkey_depth(region)][index_of(region)];
}

double balance_world_load(const struct balance_world *w, struct quadkey region)
{
    return w->load_of[quadkey_depth(region)][index_of(region)];
}
