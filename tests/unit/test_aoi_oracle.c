/* The index against brute force: random operations over many seeds, shapes of worlds and distributions. */
#include "tests/unit/aoi_oracle.h"
#include "tests/unit/suite.h"

struct shape {
    struct aoi_options options;
    int64_t spread;       /* entities keep within this distance of the middle */
    uint32_t radius_most; /* 0: all have the cell's size as radius */
    unsigned layers;
    int64_t z_spread;
};

static int64_t clamped(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static struct position place_random(struct oracle *o, const struct shape *shape, const struct oracle_entity *near)
{
    const struct aoi_options *options = &o->options;
    int64_t size = options->cell_size, x, y, z = oracle_between(o, -shape->z_spread, shape->z_spread);
    int64_t middle_x = ((int64_t)options->min_x + options->max_x) / 2;
    int64_t middle_y = ((int64_t)options->min_y + options->max_y) / 2;
    unsigned kind = (unsigned)(oracle_random(o) % 8);
    if (near && kind < 5) { /* a step, often straight over a border */
        int64_t step = kind < 3 ? size / 8 + 1 : size + 1;
        x = near->x + oracle_between(o, -step, step);
        y = near->y + oracle_between(o, -step, step);
        z = near->z + oracle_between(o, -1, 1) * (shape->z_spread != 0);
    } else if (kind < 7) {
        x = middle_x + oracle_between(o, -shape->spread, shape->spread);
        y = middle_y + oracle_between(o, -shape->spread, shape->spread);
    } else { /* corners of cells */
        x = oracle_cell(middle_x + oracle_between(o, -shape->spread, shape->spread), size) * size -
            oracle_between(o, 0, 1);
        y = oracle_cell(middle_y + oracle_between(o, -shape->spread, shape->spread), size) * size -
            oracle_between(o, 0, 1);
    }
    return (struct position){.x = (int32_t)clamped(x, options->min_x, (int64_t)options->max_x - 1),
                             .y = (int32_t)clamped(y, options->min_y, (int64_t)options->max_y - 1),
                             .z = (int32_t)z};
}

static uint32_t radius_random(struct oracle *o, const struct shape *shape)
{
    if (oracle_chance(o, 20)) return 0;
    if (!shape->radius_most || oracle_chance(o, 30)) return (uint32_t)o->options.cell_size;
    return (uint32_t)oracle_between(o, 0, shape->radius_most);
}

static void step_random(struct oracle *o, const struct shape *shape)
{
    size_t i = (size_t)oracle_between(o, 0, (int64_t)o->room - 1),
           j = (size_t)oracle_between(o, 0, (int64_t)o->room - 1);
    struct oracle_entity *e = &o->entities[i];
    uint16_t layer = (uint16_t)oracle_between(o, 0, shape->layers - 1);
    bool report = !oracle_chance(o, 2);
    unsigned kind = (unsigned)(oracle_random(o) % 100);
    if (!e->live) {
        oracle_enter(o, i, place_random(o, shape, NULL), radius_random(o, shape), layer, report);
    } else if (kind < 5) {
        oracle_leave(o, i, report);
    } else if (kind < 45) {
        oracle_move(o, i,
                    oracle_chance(o, 5) && o->entities[j].live ? oracle_position(&o->entities[j])
                                                               : place_random(o, shape, e),
                    report);
    } else if (kind < 55) {
        e->radius = radius_random(o, shape);
        ck_assert_int_eq(aoi_set_radius(o->aoi, e->handle, e->radius, report ? oracle_sink : NULL, o), TERRANE_ERR_OK);
        oracle_check(o, report);
    } else if (kind < 60) {
        e->layer = layer;
        ck_assert_int_eq(aoi_set_layer(o->aoi, e->handle, layer, report ? oracle_sink : NULL, o), TERRANE_ERR_OK);
        oracle_check(o, report);
    } else if (kind < 65) {
        struct oracle_entity *other = &o->entities[j];
        bool may = other->live && o->options.mode == AOI_RADIUS && oracle_sees(o, e, other, true) &&
                   !oracle_sees(o, e, other, false);
        ck_assert(aoi_recall(o->aoi, e->handle, other->live ? other->handle : AOI_HANDLE_NONE) == may);
        if (may) o->expected[i * o->room + j] = o->told[i * o->room + j] = true;
    } else if (kind < 90) {
        oracle_stage(o, i, place_random(o, shape, e));
    } else if (kind < 93) { /* all move at once */
        for (size_t k = 0; k < o->room; k++) {
            if (o->entities[k].live) oracle_stage(o, k, place_random(o, shape, &o->entities[k]));
        }
        oracle_tick(o, report);
    } else {
        oracle_tick(o, report);
    }
}

static int handle_compare(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The handles that the index found must be those for which wanted[] is true. */
static void found_check(struct oracle *o, uint32_t *found, size_t count, const bool *wanted)
{
    size_t expected = 0;
    for (size_t i = 0; i < o->room; i++) expected += wanted[i];
    ck_assert_uint_eq(count, expected);
    qsort(found, count, sizeof *found, handle_compare);
    for (size_t i = 0; i < count; i++) {
        ck_assert(i == 0 || found[i] != found[i - 1]);
        ck_assert(wanted[oracle_index(o, found[i])]);
    }
}

static void queries_check(struct oracle *o, const struct shape *shape)
{
    uint32_t *found = calloc(o->room, sizeof *found);
    bool *wanted = calloc(o->room, sizeof *wanted);
    struct position at = place_random(o, shape, NULL), to = place_random(o, shape, NULL);
    int32_t layer = oracle_chance(o, 50) ? -1 : (int32_t)oracle_between(o, 0, shape->layers - 1);
    uint32_t radius = (uint32_t)oracle_between(o, 0, 4 * (int64_t)o->options.cell_size);
    struct oracle_entity probe = {.x = at.x, .y = at.y, .live = true};
    for (size_t i = 0; i < o->room; i++) {
        const struct oracle_entity *e = &o->entities[i];
        wanted[i] = e->live && (layer < 0 || e->layer == layer) && oracle_close_by(&probe, e, radius);
    }
    found_check(o, found, aoi_query_circle(o->aoi, at, radius, layer, found, o->room), wanted);

    int32_t x0 = at.x < to.x ? at.x : to.x, x1 = at.x < to.x ? to.x : at.x;
    int32_t y0 = at.y < to.y ? at.y : to.y, y1 = at.y < to.y ? to.y : at.y;
    for (size_t i = 0; i < o->room; i++) {
        const struct oracle_entity *e = &o->entities[i];
        wanted[i] = e->live && (layer < 0 || e->layer == layer) && e->x >= x0 && e->x <= x1 && e->y >= y0 && e->y <= y1;
    }
    found_check(o, found, aoi_query_rectangle(o->aoi, x0, y0, x1, y1, layer, found, o->room), wanted);

    int64_t size = o->options.cell_size;
    for (size_t i = 0; i < o->room; i++) {
        const struct oracle_entity *e = &o->entities[i];
        wanted[i] = e->live && (layer < 0 || e->layer == layer) &&
                    llabs(oracle_cell(e->x, size) - oracle_cell(at.x, size)) <= 1 &&
                    llabs(oracle_cell(e->y, size) - oracle_cell(at.y, size)) <= 1;
    }
    found_check(o, found, aoi_query_block(o->aoi, at, layer, found, o->room), wanted);

    size_t i = (size_t)oracle_between(o, 0, (int64_t)o->room - 1), observers = 0;
    if (o->entities[i].live) {
        found_check(o, found, aoi_view(o->aoi, o->entities[i].handle, found, o->room), &o->expected[i * o->room]);
        for (size_t j = 0; j < o->room; j++) {
            if (!o->entities[j].live) continue;
            ck_assert(aoi_sees(o->aoi, o->entities[i].handle, o->entities[j].handle) == o->expected[i * o->room + j]);
        }
    }
    struct aoi_place place = {.position = at, .layer = layer < 0 ? 0 : (uint16_t)layer};
    probe.z = at.z;
    probe.layer = place.layer;
    for (size_t j = 0; j < o->room; j++) observers += oracle_sees(o, &o->entities[j], &probe, false);
    ck_assert_uint_eq(aoi_fanout(o->aoi, &place), observers);
    free(found);
    free(wanted);
}

static void world_run(const struct shape *shape, uint64_t seed, size_t room, size_t operations, enum kernels most)
{
    struct oracle o;
    oracle_open(&o, &shape->options, room, seed);
    bool grid = !shape->options.index;
    if (grid) grid_kernels_limit(grid_of(o.aoi), most);
    for (size_t i = 0; i < operations; i++) {
        step_random(&o, shape);
        if (i % 16 == 0) queries_check(&o, shape);
    }
    ck_assert(o.events > operations / 20 || shape->spread == INT32_MAX);
    size_t live_count = 0;
    for (size_t i = 0; i < room; i++) live_count += o.entities[i].live;
    ck_assert_uint_eq(aoi_count(o.aoi), live_count);
    for (size_t i = 0; i < room; i++) {
        if (o.entities[i].live) oracle_leave(&o, i, true);
    }
    ck_assert_uint_eq(aoi_count(o.aoi), 0);
    if (grid) ck_assert_uint_eq(grid_of(o.aoi)->band.count, 0);
    if (grid) ck_assert_uint_eq(grid_of(o.aoi)->page_count, 0);
    oracle_close(&o);
}

/* Draws a world: cells of one unit or of a million, bounds at the ends of the range, few or many radii. */
static struct shape shape_random(struct oracle *o, enum aoi_mode mode)
{
    static const int32_t sizes[] = {1, 2, 7, 64, 100, 5000, 8192, 30011, 65536, 1000003};
    int32_t size = sizes[oracle_random(o) % (sizeof sizes / sizeof *sizes)];
    struct shape shape = {.spread = size * oracle_between(o, 1, 5), .layers = oracle_chance(o, 60) ? 1 : 3};
    struct aoi_options *options = &shape.options;
    *options = (struct aoi_options){.mode = mode, .cell_size = size, .z_range = UINT32_MAX};
    options->capacity = oracle_chance(o, 50) ? 0 : 200;
    switch (oracle_random(o) % 4) {
    case 0: /* small, around the origin, no multiple of the cell */
        options->min_x = -size * 3 - size / 2;
        options->max_x = size * 4 + size / 3 + 1;
        options->min_y = -size * 2;
        options->max_y = size * 3;
        break;
    case 1: /* far east and south */
        options->min_x = (1 << 30) - size * 12;
        options->max_x = 1 << 30;
        options->min_y = -(1 << 30);
        options->max_y = -(1 << 30) + size * 12;
        break;
    case 2: /* all that there is */
        options->min_x = options->min_y = INT32_MIN;
        options->max_x = options->max_y = INT32_MAX;
        if (oracle_chance(o, 30)) shape.spread = INT32_MAX;
        break;
    default: /* vast */ options->min_x = options->min_y = -(1 << 30); options->max_x = options->max_y = 1 << 30;
    }
    if (oracle_chance(o, 60)) shape.radius_most = (uint32_t)size * (uint32_t)oracle_between(o, 1, 4);
    if (oracle_chance(o, 50)) options->hysteresis = (int32_t)oracle_between(o, 1, size);
    if (oracle_chance(o, 40)) {
        options->z_range = (uint32_t)oracle_between(o, 0, 5);
        shape.z_spread = 8;
    } else if (oracle_chance(o, 20)) {
        shape.z_spread = 1000;
    }
    return shape;
}

static void seeds_run(enum aoi_mode mode, uint64_t first, uint64_t count, enum kernels most)
{
    for (uint64_t seed = first; seed < first + count / ORACLE_PART; seed++) {
        struct oracle draw = {.random = seed * 7919 + 12345};
        for (int i = 0; i < 8; i++) oracle_random(&draw);
        struct shape shape = shape_random(&draw, mode);
        shape.options.direct = seed % 2; /* or else told afterwards */
        world_run(&shape, seed, 12 + seed % 40, 1000, most);
    }
}

START_TEST(views_of_blocks_equal_brute_force_in_any_world)
{
    seeds_run(AOI_BLOCK, 1, 120, KERNELS_AVX512);
}
END_TEST

START_TEST(views_of_radii_equal_brute_force_in_any_world)
{
    seeds_run(AOI_RADIUS, 1000, 200, KERNELS_AVX512);
}
END_TEST

START_TEST(lesser_kernels_equal_brute_force_as_well)
{
    seeds_run(AOI_BLOCK, 5000, 20, KERNELS_PLAIN);
    seeds_run(AOI_RADIUS, 6000, 60, KERNELS_PLAIN);
    seeds_run(AOI_RADIUS, 7000, 60, KERNELS_AVX2);
}
END_TEST

/* Brute force inside the library is what aoi_differ compares all other indexes with; here it is compared with the words
 * of aoi.h, on the plane and in space. */
START_TEST(the_brute_index_is_right)
{
    for (uint64_t seed = 9000; seed < 9000 + 120 / ORACLE_PART; seed++) {
        struct oracle draw = {.random = seed * 7919 + 12345};
        for (int i = 0; i < 8; i++) oracle_random(&draw);
        struct shape shape = shape_random(&draw, seed % 4 ? AOI_RADIUS : AOI_BLOCK);
        shape.options.index = "brute";
        shape.options.direct = seed % 2;
        shape.options.dimensions = seed % 3 ? 2 : 3;
        if (seed % 3 == 0) shape.z_spread = shape.spread;
        world_run(&shape, seed, 12 + seed % 40, 1000, KERNELS_PLAIN);
    }
}
END_TEST

SUITE_MAIN("aoi_oracle", the_brute_index_is_right, views_of_blocks_equal_brute_force_in_any_world,
           views_of_radii_equal_brute_force_in_any_world, lesser_kernels_equal_brute_force_as_well)
