#include "tests/aoi/worlds.h"
#include "tools/crowd.h"
#include "tools/recording_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t draw(struct differ *d)
{
    d->random ^= d->random << 13;
    d->random ^= d->random >> 7;
    d->random ^= d->random << 17;
    return d->random * 0x2545f4914f6cdd1du >> 16;
}

static int64_t between(struct differ *d, int64_t low, int64_t high)
{
    return low + (int64_t)(draw(d) % (uint64_t)(high - low + 1));
}

static bool chance(struct differ *d, unsigned percent)
{
    return draw(d) % 100 < percent;
}

static int32_t clamped(int64_t v, int64_t low, int64_t high)
{
    return (int32_t)(v < low ? low : v > high ? high : v);
}

static int64_t corner_of(int64_t v, int64_t size)
{
    return (v >= 0 ? v / size : -((-v + size - 1) / size)) * size;
}

/* ---- worlds ---- */

static void bounds_draw(struct differ *d, int32_t size)
{
    struct aoi_options *o = &d->options;
    int64_t most = INT32_MAX - 12;
    switch (draw(d) % 4) {
    case 0: /* small, around the origin, no multiple of the cell */
        o->min_x = clamped((int64_t)-size * 3 - size / 2, INT32_MIN, most);
        o->max_x = clamped((int64_t)size * 4 + size / 3 + 1, 0, most);
        o->min_y = clamped((int64_t)-size * 2, INT32_MIN, most);
        o->max_y = clamped((int64_t)size * 3, 0, most);
        break;
    case 1: /* far east and south */
        o->min_x = (int32_t)((1 << 30) - (int64_t)size * 12);
        o->max_x = 1 << 30;
        o->min_y = -(1 << 30);
        o->max_y = (int32_t)(-(1 << 30) + (int64_t)size * 12);
        break;
    case 2: /* all that there is */
        o->min_x = o->min_y = INT32_MIN;
        o->max_x = o->max_y = INT32_MAX;
        break;
    default: /* vast */ o->min_x = o->min_y = -(1 << 30); o->max_x = o->max_y = 1 << 30;
    }
    if (o->dimensions == 3 && chance(d, 50)) {
        o->min_z = o->min_x;
        o->max_z = o->max_x;
    }
}

void world_draw(struct differ *d, uint64_t seed)
{
    static const int32_t sizes[] = {1, 2, 7, 64, 100, 5000, 8192, 30011, 65536, 1000003};
    memset(d, 0, sizeof *d);
    d->random = seed * 0x9e3779b97f4a7c15u + 88172645463325252u;
    for (int i = 0; i < 8; i++) draw(d);
    int32_t size = sizes[draw(d) % (sizeof sizes / sizeof *sizes)];
    d->options = (struct aoi_options){
        .mode = chance(d, 35) ? AOI_BLOCK : AOI_RADIUS, .cell_size = size, .z_range = UINT32_MAX, .dimensions = 2};
    if (seed % 3 == 0) d->options.dimensions = 3;
    d->spread = size * between(d, 1, 5);
    d->drawn = (enum drawn)(draw(d) % DRAWN_COUNT);
    d->layers = chance(d, 60) ? 1 : 3;
    bounds_draw(d, size);
    d->radius_most = (uint32_t)size * (chance(d, 60) ? (uint32_t)between(d, 1, 4) : 1);
    if (chance(d, 10)) d->radius_most *= 16;
    if (chance(d, 50)) d->options.hysteresis = (int32_t)between(d, 1, size);
    if (seed % 12 == 1) d->extent_most = (uint32_t)size * 2;
    if (d->options.dimensions == 3) {
        d->z_spread = d->spread;
    } else if (chance(d, 40)) {
        d->options.z_range = (uint32_t)between(d, 0, 5);
        d->z_spread = 8;
    }
}

static struct position place_draw(struct differ *d, const struct position *near)
{
    const struct aoi_options *o = &d->options;
    int64_t size = o->cell_size, middle_x = ((int64_t)o->min_x + o->max_x) / 2,
            middle_y = ((int64_t)o->min_y + o->max_y) / 2, middle_z = ((int64_t)o->min_z + o->max_z) / 2;
    int64_t x = middle_x + between(d, -d->spread, d->spread), y = middle_y + between(d, -d->spread, d->spread);
    int64_t z = middle_z + between(d, -d->z_spread, d->z_spread);
    unsigned kind = (unsigned)(draw(d) % 8);
    if (near && kind < 5 && d->drawn != ONE_POINT && d->drawn != THREE_POINTS) { /* a step, often over a border */
        int64_t step = kind < 3 ? size / 8 + 1 : size + 1;
        x = near->x + between(d, -step, step);
        y = near->y + between(d, -step, step);
        z = near->z + between(d, -1, 1) * (d->z_spread ? step : 0);
    } else if (d->drawn == CORNERS || kind == 7) {
        x = corner_of(x, size) - between(d, 0, 1);
        y = corner_of(y, size) - between(d, 0, 1);
        if (o->dimensions == 3) z = corner_of(z, size) - between(d, 0, 1);
    }
    if (d->drawn == ONE_POINT || d->drawn == THREE_POINTS) {
        x = middle_x + (d->drawn == THREE_POINTS ? between(d, -1, 1) * size : 0);
        y = middle_y;
    }
    if (d->drawn == LINE_X) y = middle_y;
    if (d->drawn == LINE_Y) x = middle_x;
    if (d->drawn == ONE_CELL) {
        x = corner_of(middle_x, size) + between(d, 0, size - 1);
        y = corner_of(middle_y, size) + between(d, 0, size - 1);
    }
    if (d->drawn == FAR && chance(d, 30)) {
        x = between(d, o->min_x, (int64_t)o->max_x - 1);
        y = between(d, o->min_y, (int64_t)o->max_y - 1);
    }
    bool deep = o->min_z || o->max_z;
    return (struct position){clamped(x, o->min_x, (int64_t)o->max_x - 1), clamped(y, o->min_y, (int64_t)o->max_y - 1),
                             deep ? clamped(z, o->min_z, (int64_t)o->max_z - 1) : clamped(z, INT32_MIN, INT32_MAX)};
}

static uint32_t radius_draw(struct differ *d)
{
    if (chance(d, 20)) return 0;
    if (chance(d, 30)) return (uint32_t)d->options.cell_size;
    return (uint32_t)between(d, 0, d->radius_most);
}

/* ---- random operations ---- */

static bool enter_draw(struct differ *d, uint32_t i)
{
    d->at[i] = place_draw(d, NULL);
    struct aoi_place place = {
        .position = d->at[i], .radius = radius_draw(d), .layer = (uint16_t)between(d, 0, d->layers - 1)};
    if (d->extent_most && chance(d, 70)) {
        place.extent_x = (uint32_t)between(d, 0, d->extent_most);
        place.extent_y = (uint32_t)between(d, 0, d->extent_most);
    }
    return rivals_enter(&d->rivals, i, &place);
}

static bool all_stage(struct differ *d)
{
    for (uint32_t i = 0; i < d->rivals.room; i++) {
        if (!rivals_live(&d->rivals, i)) continue;
        d->at[i] = place_draw(d, &d->at[i]);
        if (!rivals_stage(&d->rivals, i, d->at[i])) return false;
    }
    return rivals_tick(&d->rivals);
}

static bool operation_draw(struct differ *d)
{
    struct rivals *r = &d->rivals;
    uint32_t i = (uint32_t)between(d, 0, (int64_t)r->room - 1), j = (uint32_t)between(d, 0, (int64_t)r->room - 1);
    unsigned kind = (unsigned)(draw(d) % 100);
    if (!rivals_live(r, i)) return enter_draw(d, i);
    if (kind < 5) return rivals_leave(r, i);
    if (kind < 45) {
        d->at[i] = chance(d, 5) && rivals_live(r, j) ? d->at[j] : place_draw(d, &d->at[i]);
        return rivals_move(r, i, d->at[i]);
    }
    if (kind < 55) return rivals_set_radius(r, i, radius_draw(d));
    if (kind < 60) return rivals_set_layer(r, i, (uint16_t)between(d, 0, d->layers - 1));
    if (kind < 65) return rivals_recall(r, i, j);
    if (kind < 90) {
        d->at[i] = place_draw(d, &d->at[i]);
        return rivals_stage(r, i, d->at[i]);
    }
    return kind < 93 ? all_stage(d) : rivals_tick(r);
}

static bool queries_draw(struct differ *d)
{
    struct position a = place_draw(d, NULL), b = place_draw(d, NULL);
    int32_t layer = chance(d, 50) ? -1 : (int32_t)between(d, 0, d->layers - 1);
    uint32_t radius = (uint32_t)between(d, 0, 4 * (int64_t)d->options.cell_size);
    return rivals_query(&d->rivals, a, b, radius, layer, (uint32_t)between(d, 0, (int64_t)d->rivals.room - 1));
}

/* All leave, and then nothing may be left. */
static bool world_empty(struct differ *d)
{
    for (uint32_t i = 0; i < d->rivals.room; i++) {
        if (rivals_live(&d->rivals, i) && !rivals_leave(&d->rivals, i)) return false;
    }
    return true;
}

bool world_run(struct differ *d, uint64_t operations)
{
    while (d->rivals.operations < operations) {
        if (!operation_draw(d)) return false;
        if (d->rivals.operations % 16 == 0 && !queries_draw(d)) return false;
    }
    return world_empty(d);
}

/* ---- recorded crowds ---- */

static void recording_load(struct recording *recording, uint64_t seed)
{
    const char *folder = getenv("TERRANE_CROWDS");
    struct recording_fault fault;
    if (!folder) {
        recording_generate(recording, seed, 200);
    } else if (recording_read_folder(recording, folder, &fault)) {
        fprintf(stderr, "aoi_differ: TERRANE_CROWDS: %s\n", fault.text);
        exit(2);
    }
}

static struct position crowd_position(const struct differ *d, const struct crowd *crowd, uint32_t i, double side)
{
    struct crowd_place place = crowd_place(crowd, i);
    double scale = ((double)d->options.max_x - d->options.min_x) / side;
    return (struct position){
        clamped((int64_t)(d->options.min_x + place.x * scale), d->options.min_x, d->options.max_x - 1),
        clamped((int64_t)(d->options.min_y + place.y * scale), d->options.min_y, d->options.max_y - 1), 0};
}

bool crowd_run(struct differ *d, uint64_t seed, uint64_t operations)
{
    const double side = 200;
    struct recording recording = {0};
    recording_load(&recording, seed);
    struct crowd_options options = {
        .recording = &recording, .side = side, .seed = seed + 1, .count = d->rivals.room, .workload = CROWD_MIX};
    struct crowd *crowd = crowd_open(&options);
    bool well = true;
    for (uint32_t i = 0; well && i < d->rivals.room; i++) {
        struct aoi_place place = {.position = crowd_position(d, crowd, i, side), .radius = radius_draw(d)};
        well = rivals_enter(&d->rivals, i, &place);
    }
    while (well && d->rivals.operations < operations) {
        crowd_step(crowd, 0.05);
        for (uint32_t i = 0; well && i < d->rivals.room; i++) {
            d->at[i] = crowd_position(d, crowd, i, side);
            well = rivals_stage(&d->rivals, i, d->at[i]);
        }
        well = well && rivals_tick(&d->rivals) && queries_draw(d);
    }
    well = well && world_empty(d);
    crowd_close(crowd);
    recording_close(&recording);
    return well;
}

/* A square of twenty cells for the crowd's square. */
void crowd_world(struct differ *d)
{
    static const int32_t sizes[] = {1000, 8192, 20000};
    int32_t size = sizes[draw(d) % 3];
    d->options = (struct aoi_options){.mode = d->options.mode,
                                      .cell_size = size,
                                      .min_x = -10 * size,
                                      .min_y = -10 * size,
                                      .max_x = 10 * size,
                                      .max_y = 10 * size,
                                      .hysteresis = chance(d, 50) ? size / 10 : 0,
                                      .z_range = UINT32_MAX,
                                      .dimensions = d->options.dimensions};
    d->radius_most = (uint32_t)size * 2;
    d->spread = 10 * size;
    d->layers = 1;
    d->z_spread = d->extent_most = 0;
    d->drawn = ANYWHERE;
}
