/* Whole ticks of hundreds: against brute force, plain kernels against vectors, and without a single allocation. */
#include "tests/unit/aoi_oracle.h"
#include "tests/unit/suite.h"

#include <stdatomic.h>

/* ---- counting allocations ---- */

#if defined(__SANITIZE_ADDRESS__)
#define COUNTS_ALLOCATIONS 0 /* the sanitizer has the allocator for itself */
#else
#define COUNTS_ALLOCATIONS 1
static atomic_size_t allocations;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    allocations++;
    return __libc_realloc(memory, size);
}
#endif

/* ---- crowds ---- */

struct crowd {
    enum aoi_mode mode;
    int32_t cell_size, hysteresis;
    int64_t side;                     /* of the square they are in, in cells */
    uint32_t radius_most;             /* 0: all have the cell's size */
    unsigned jumpers, blind, resting; /* percent */
    uint32_t z_range;
    unsigned layers;
};

static struct aoi_options crowd_options(const struct crowd *crowd)
{
    int32_t half = (int32_t)(crowd->side * crowd->cell_size / 2);
    return (struct aoi_options){.mode = crowd->mode,
                                .cell_size = crowd->cell_size,
                                .min_x = -half - 17,
                                .min_y = -half,
                                .max_x = half,
                                .max_y = half + 5,
                                .hysteresis = crowd->hysteresis,
                                .z_range = crowd->z_range,
                                .direct = true};
}

static int64_t bounded(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

static struct position crowd_place(struct oracle *o, const struct crowd *crowd, const struct oracle_entity *from)
{
    const struct aoi_options *b = &o->options;
    int64_t step = crowd->cell_size / 6 + 1, x, y;
    if (from && !oracle_chance(o, crowd->jumpers)) {
        x = from->x + oracle_between(o, -step, step);
        y = from->y + oracle_between(o, -step, step);
    } else {
        x = oracle_between(o, b->min_x, (int64_t)b->max_x - 1);
        y = oracle_between(o, b->min_y, (int64_t)b->max_y - 1);
    }
    return (struct position){.x = (int32_t)bounded(x, b->min_x, (int64_t)b->max_x - 1),
                             .y = (int32_t)bounded(y, b->min_y, (int64_t)b->max_y - 1),
                             .z = crowd->z_range == UINT32_MAX ? 0 : (int32_t)oracle_between(o, -4, 4)};
}

static void crowd_enter(struct oracle *o, const struct crowd *crowd)
{
    for (size_t i = 0; i < o->room; i++) {
        uint32_t radius =
            crowd->radius_most ? (uint32_t)oracle_between(o, 1, crowd->radius_most) : (uint32_t)crowd->cell_size;
        if (oracle_chance(o, crowd->blind)) radius = 0;
        struct oracle_entity *e = &o->entities[i];
        struct position at = crowd_place(o, crowd, NULL);
        uint16_t layer = (uint16_t)oracle_between(o, 0, crowd->layers);
        *e = (struct oracle_entity){.live = true, .x = at.x, .y = at.y, .z = at.z, .radius = radius, .layer = layer};
        struct aoi_place place = {.position = at, .radius = radius, .layer = layer};
        ck_assert_int_eq(aoi_enter(o->aoi, (struct entity_id){i + 1}, &place, NULL, NULL, &e->handle), TERRANE_ERR_OK);
    }
    oracle_check(o, false);
}

static void crowd_run(const struct crowd *crowd, size_t count, uint64_t seed, unsigned ticks, enum kernels most)
{
    struct oracle o;
    struct aoi_options options = crowd_options(crowd);
    oracle_open(&o, &options, count, seed);
    grid_kernels_limit(grid_of(o.aoi), most);
    crowd_enter(&o, crowd);
    for (unsigned tick = 0; tick < ticks; tick++) {
        for (size_t i = 0; i < count; i++) {
            if (!oracle_chance(&o, crowd->resting)) oracle_stage(&o, i, crowd_place(&o, crowd, &o.entities[i]));
        }
        oracle_tick(&o, true);
    }
    ck_assert_uint_gt(o.events, count / 4);
    oracle_close(&o);
}

static const struct crowd crowds[] = {
    {.mode = AOI_BLOCK, .cell_size = 100, .side = 12, .z_range = UINT32_MAX},
    {.mode = AOI_BLOCK, .cell_size = 64, .side = 70, .z_range = UINT32_MAX, .jumpers = 10, .resting = 30},
    {.mode = AOI_BLOCK, .cell_size = 64, .side = 5, .z_range = UINT32_MAX, .layers = 2},
    {.mode = AOI_BLOCK, .cell_size = 100, .side = 8, .z_range = 2},
    {.mode = AOI_RADIUS, .cell_size = 100, .side = 12, .z_range = UINT32_MAX},
    {.mode = AOI_RADIUS, .cell_size = 8192, .side = 34, .z_range = UINT32_MAX, .blind = 50},
    {.mode = AOI_RADIUS, .cell_size = 8192, .side = 10, .z_range = UINT32_MAX, .jumpers = 20, .resting = 20},
    {.mode = AOI_RADIUS, .cell_size = 100, .side = 10, .z_range = UINT32_MAX, .radius_most = 100},
    {.mode = AOI_RADIUS, .cell_size = 100, .side = 36, .z_range = UINT32_MAX, .radius_most = 350, .layers = 1},
    {.mode = AOI_RADIUS, .cell_size = 4, .side = 200, .z_range = UINT32_MAX, .radius_most = 80, .jumpers = 5},
    {.mode = AOI_RADIUS, .cell_size = 65536, .side = 12, .z_range = UINT32_MAX},
    {.mode = AOI_RADIUS, .cell_size = 1000003, .side = 9, .z_range = UINT32_MAX, .radius_most = 1500000},
    {.mode = AOI_RADIUS, .cell_size = 100, .side = 12, .z_range = UINT32_MAX, .hysteresis = 15},
    {.mode = AOI_RADIUS,
     .cell_size = 100,
     .side = 10,
     .z_range = UINT32_MAX,
     .hysteresis = 30,
     .radius_most = 90,
     .jumpers = 10,
     .blind = 20},
    {.mode = AOI_RADIUS, .cell_size = 65536, .side = 10, .z_range = UINT32_MAX, .hysteresis = 9000, .jumpers = 5},
    {.mode = AOI_RADIUS, .cell_size = 100, .side = 8, .z_range = 3, .hysteresis = 10},
};

START_TEST(a_tick_of_a_crowd_equals_the_difference_of_all_views)
{
    for (size_t i = 0; i < sizeof crowds / sizeof *crowds; i++) {
        for (uint64_t seed = 1; seed <= (ORACLE_PART > 1 ? 1 : 3); seed++)
            crowd_run(&crowds[i], 250 + 100 * seed, seed * 31 + i, 8, KERNELS_AVX512);
    }
}
END_TEST

START_TEST(a_tick_with_lesser_kernels_equals_the_difference_of_all_views)
{
    for (size_t i = 0; i < sizeof crowds / sizeof *crowds; i++) {
        crowd_run(&crowds[i], 350, 900 + i, 8, KERNELS_PLAIN);
        crowd_run(&crowds[i], 350, 950 + i, 8, KERNELS_AVX2);
    }
}
END_TEST

START_TEST(an_entity_with_a_vast_radius_among_many_sees_all_and_slows_no_stencil)
{
    struct crowd crowd = {.mode = AOI_RADIUS, .cell_size = 100, .side = 40, .z_range = UINT32_MAX, .hysteresis = 5};
    struct aoi_options options = crowd_options(&crowd);
    struct oracle o;
    oracle_open(&o, &options, 400, 5);
    crowd_enter(&o, &crowd);
    for (size_t i = 0; i < 4; i++) {
        o.entities[i].radius = i < 3 ? 100000 : 1900;
        ck_assert_int_eq(aoi_set_radius(o.aoi, o.entities[i].handle, o.entities[i].radius, oracle_sink, &o),
                         TERRANE_ERR_OK);
        oracle_check(&o, true);
    }
    crowd.jumpers = 3;
    for (unsigned tick = 0; tick < 10; tick++) {
        for (size_t i = 0; i < o.room; i++) oracle_stage(&o, i, crowd_place(&o, &crowd, &o.entities[i]));
        oracle_tick(&o, true);
    }
    for (size_t b = 1; b < o.room; b++) ck_assert(aoi_sees(o.aoi, o.entities[0].handle, o.entities[b].handle));
    oracle_close(&o);
}
END_TEST

/* ---- thousands, without an oracle ---- */

struct trace {
    uint64_t sum, count;
};

static void trace_sink(void *context, const struct aoi_span *spans, size_t count)
{
    struct trace *trace = context;
    for (size_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < spans[i].count; j++) {
            uint64_t event = ((uint64_t)spans[i].subject << 32 | spans[i].others[j]) * 16 + spans[i].change;
            trace->sum += (event ^ event >> 29) * 0xbf58476d1ce4e5b9u;
            trace->count++;
        }
    }
}

static struct aoi *many_open(enum aoi_mode mode, int32_t hysteresis, uint32_t count, struct position *at)
{
    struct aoi_options options = {.mode = mode,
                                  .cell_size = 8192,
                                  .max_x = 64 * 8192,
                                  .max_y = 64 * 8192,
                                  .hysteresis = hysteresis,
                                  .z_range = UINT32_MAX,
                                  .direct = true,
                                  .capacity = count};
    struct aoi *aoi;
    struct oracle draw = {.random = 4711};
    ck_assert_int_eq(aoi_create(&options, &aoi), TERRANE_ERR_OK);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t handle;
        at[i] = (struct position){.x = (int32_t)oracle_between(&draw, 0, 64 * 8192 - 1),
                                  .y = (int32_t)oracle_between(&draw, 0, 64 * 8192 - 1)};
        struct aoi_place place = {.position = at[i], .radius = i % 7 == 0 ? 0 : 8192};
        ck_assert_int_eq(aoi_enter(aoi, (struct entity_id){i + 1}, &place, NULL, NULL, &handle), TERRANE_ERR_OK);
        ck_assert_uint_eq(handle, i);
    }
    return aoi;
}

static void many_tick(struct aoi *aoi, uint32_t count, struct position *at, struct oracle *draw, struct trace *trace)
{
    for (uint32_t i = 0; i < count; i++) {
        at[i].x = (int32_t)bounded(at[i].x + oracle_between(draw, -600, 600), 0, 64 * 8192 - 1);
        at[i].y = (int32_t)bounded(at[i].y + oracle_between(draw, -600, 600), 0, 64 * 8192 - 1);
        if (aoi_stage(aoi, i, at[i]) != TERRANE_ERR_OK) abort();
    }
    aoi_tick(aoi, trace_sink, trace);
}

enum { MANY = 20000 };

/* One index with single calls, one with bulk calls, one of the latter without vectors: all must hold the same. */
static void stage_alike(struct aoi *aois[3], const uint32_t *handles, const struct position *at, size_t count)
{
    for (int which = 1; which < 3; which++) {
        for (size_t i = 0, staged; i < count; i += staged + 1) {
            enum terrane_error error = aoi_stage_many(aois[which], handles + i, at + i, count - i, &staged);
            for (size_t j = i; which == 1 && j < i + staged; j++) {
                ck_assert_int_eq(aoi_stage(aois[0], handles[j], at[j]), TERRANE_ERR_OK);
            }
            ck_assert_uint_le(staged, count - i);
            ck_assert_int_eq(error == TERRANE_ERR_OK, staged == count - i);
            if (error) ck_assert_int_eq(aoi_stage(aois[0], handles[i + staged], at[i + staged]), error);
        }
    }
}

static struct aoi *staging_open(enum aoi_mode mode, int32_t cell_size, uint32_t count, struct position *at)
{
    int32_t half = 20 * cell_size;
    struct aoi_options options = {.mode = mode,
                                  .cell_size = cell_size,
                                  .min_x = -half,
                                  .min_y = -half + 3,
                                  .max_x = half,
                                  .max_y = half,
                                  .z_range = UINT32_MAX,
                                  .direct = true,
                                  .capacity = count};
    struct oracle draw = {.random = 31};
    struct aoi *aoi;
    ck_assert_int_eq(aoi_create(&options, &aoi), TERRANE_ERR_OK);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t handle;
        at[i] = (struct position){.x = (int32_t)oracle_between(&draw, -half, half - 1),
                                  .y = (int32_t)oracle_between(&draw, -half + 3, half - 1)};
        struct aoi_place place = {.position = at[i], .radius = (uint32_t)cell_size};
        ck_assert_int_eq(aoi_enter(aoi, (struct entity_id){i + 1}, &place, NULL, NULL, &handle), TERRANE_ERR_OK);
    }
    for (uint32_t i = 5; i < count; i += 97) ck_assert_int_eq(aoi_leave(aoi, i, NULL, NULL), TERRANE_ERR_OK);
    return aoi;
}

/* Mostly short steps; now and then a jump, a place outside, a height, a stretch that is not consecutive. */
static void staging_draw(struct oracle *draw, int round, int32_t cell_size, uint32_t count, uint32_t *handles,
                         struct position *at)
{
    for (uint32_t i = 0; i < count; i++) {
        int32_t step = oracle_between(draw, 0, 39) ? cell_size / 8 : 60 * cell_size;
        handles[i] = i;
        at[i].x += (int32_t)oracle_between(draw, -step, step);
        at[i].y += (int32_t)oracle_between(draw, -step, step);
        if (oracle_between(draw, 0, 7)) { /* the others may be refused */
            at[i].x = (int32_t)bounded(at[i].x, -20 * cell_size, 20 * cell_size - 1);
            at[i].y = (int32_t)bounded(at[i].y, -20 * cell_size + 3, 20 * cell_size - 1);
        }
        at[i].z = round == 3 && i % 50 == 0 ? (int32_t)i : 0;
    }
    for (uint32_t i = 100; i < 130; i += 3) handles[i] = count - i;
    handles[200] = UINT32_MAX;
}

START_TEST(staging_many_at_once_is_the_same_as_one_after_the_other)
{
    enum { COUNT = 3000 };
    static const int32_t sizes[] = {1024, 1000, 16384, 3};
    static struct position at[COUNT];
    static uint32_t handles[COUNT];
    for (int variant = 0; variant < 8; variant++) {
        int32_t size = sizes[variant / 2];
        struct aoi *aois[3];
        struct oracle draw = {.random = 77};
        for (int i = 0; i < 3; i++) aois[i] = staging_open(variant % 2 ? AOI_RADIUS : AOI_BLOCK, size, COUNT, at);
        grid_kernels_limit(grid_of(aois[2]), KERNELS_PLAIN);
        for (int round = 0; round < 6; round++) {
            struct trace traces[3] = {{0}};
            staging_draw(&draw, round, size, COUNT, handles, at);
            stage_alike(aois, handles, at, COUNT);
            for (int i = 0; i < 3; i++) aoi_tick(aois[i], trace_sink, &traces[i]);
            ck_assert_uint_gt(traces[0].count, 100);
            for (uint32_t i = 0; i < COUNT; i++) {
                struct aoi_place places[3];
                memset(places, 0, sizeof places);
                bool alive = aoi_place_of(aois[0], i, &places[0]);
                for (int j = 1; j < 3; j++) {
                    ck_assert_int_eq(aoi_place_of(aois[j], i, &places[j]), alive);
                    ck_assert_int_eq(places[j].position.x, places[0].position.x);
                    ck_assert_int_eq(places[j].position.y, places[0].position.y);
                    ck_assert_int_eq(places[j].position.z, places[0].position.z);
                }
                if (alive) at[i] = places[0].position;
            }
            for (int i = 1; i < 3; i++) ck_assert_uint_eq(traces[i].count, traces[0].count);
            for (int i = 1; i < 3; i++) ck_assert_uint_eq(traces[i].sum, traces[0].sum);
        }
        for (int i = 0; i < 3; i++) aoi_destroy(aois[i]);
    }
}
END_TEST

START_TEST(plain_and_vector_kernels_report_the_same)
{
    static struct position at[3][MANY];
    for (int hysteresis = 0; hysteresis <= 1000; hysteresis += 1000) {
        struct trace traces[3] = {{0}};
        for (int most = KERNELS_PLAIN; most <= KERNELS_AVX512; most++) {
            struct trace *trace = &traces[most];
            struct aoi *aoi = many_open(AOI_RADIUS, hysteresis, MANY, at[most]);
            struct oracle draw = {.random = 99};
            uint32_t found[1000];
            grid_kernels_limit(grid_of(aoi), (enum kernels)most);
            for (int tick = 0; tick < 10; tick++) many_tick(aoi, MANY, at[most], &draw, trace);
            for (int i = 0; i < 300; i++) {
                size_t count = aoi_query_circle(aoi, at[most][i], (uint32_t)i * 70, -1, found, 1000);
                for (size_t j = 0; j < count; j++) trace->sum += found[j] * (j + 1);
            }
            aoi_destroy(aoi);
        }
        ck_assert_uint_gt(traces[0].count, 10000);
        for (int most = KERNELS_AVX2; most <= KERNELS_AVX512; most++) {
            ck_assert_uint_eq(traces[0].count, traces[most].count);
            ck_assert_uint_eq(traces[0].sum, traces[most].sum);
        }
    }
}
END_TEST

/* All stand in one cell; the even and the odd go three cells east and west, and come back. */
static void part_and_meet(enum aoi_mode mode, enum kernels most, uint32_t count)
{
    struct aoi_options options = {.mode = mode,
                                  .cell_size = 100,
                                  .max_x = 6400,
                                  .max_y = 6400,
                                  .z_range = UINT32_MAX,
                                  .direct = true,
                                  .capacity = count};
    struct aoi *aoi;
    ck_assert_int_eq(aoi_create(&options, &aoi), TERRANE_ERR_OK);
    grid_kernels_limit(grid_of(aoi), most);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t handle;
        struct aoi_place place = {.position = {.x = 3150, .y = 3120 + (int32_t)(i % 50)}, .radius = 100};
        ck_assert_int_eq(aoi_enter(aoi, (struct entity_id){i + 1}, &place, NULL, NULL, &handle), TERRANE_ERR_OK);
        ck_assert_uint_eq(handle, i);
    }
    uint64_t pairs = (uint64_t)(count / 2) * (count - count / 2);
    for (int meet = 0; meet < 2; meet++) {
        struct trace trace = {0};
        for (uint32_t i = 0; i < count; i++) {
            int32_t away = meet ? 0 : i % 2 ? 300 : -300;
            struct position to = {.x = 3150 + away, .y = 3120 + (int32_t)(i % 50)};
            ck_assert_int_eq(aoi_stage(aoi, i, to), TERRANE_ERR_OK);
        }
        aoi_tick(aoi, trace_sink, &trace);
        ck_assert_uint_eq(trace.count, pairs); /* each both ways at once */
    }
    aoi_destroy(aoi);
}

START_TEST(thousands_who_part_and_meet_again_are_all_told)
{
    for (int most = KERNELS_PLAIN; most <= KERNELS_AVX512; most++) {
        part_and_meet(AOI_BLOCK, (enum kernels)most, 5001 / ORACLE_PART);
        part_and_meet(AOI_RADIUS, (enum kernels)most, 5001 / ORACLE_PART);
    }
}
END_TEST

START_TEST(a_tick_allocates_nothing_in_the_steady_state)
{
#if COUNTS_ALLOCATIONS
    static struct position at[MANY];
    for (int mode = 0; mode < 3; mode++) {
        struct aoi *aoi = many_open(mode ? AOI_RADIUS : AOI_BLOCK, mode == 2 ? 800 : 0, MANY, at);
        struct oracle draw = {.random = 7};
        struct trace trace = {0};
        for (int tick = 0; tick < 40; tick++) many_tick(aoi, MANY, at, &draw, &trace);
        size_t before = allocations, memory = aoi_memory_bytes(aoi);
        trace.count = 0;
        for (int tick = 0; tick < 100; tick++) many_tick(aoi, MANY, at, &draw, &trace);
        size_t during = allocations - before; /* the assertions allocate */
        ck_assert_uint_gt(trace.count, 10000);
        ck_assert_uint_eq(during, 0);
        ck_assert_uint_eq(aoi_memory_bytes(aoi), memory);
        aoi_destroy(aoi);
    }
#else
    ck_assert_int_eq(COUNTS_ALLOCATIONS, 0);
#endif
}
END_TEST

START_TEST(the_index_keeps_to_its_bytes_an_entity)
{
    enum { HUNDRED_THOUSAND = 100000 };
    static struct position at[HUNDRED_THOUSAND];
    for (int mode = AOI_BLOCK; mode <= AOI_RADIUS; mode++) {
        struct aoi *aoi = many_open((enum aoi_mode)mode, 0, HUNDRED_THOUSAND, at);
        struct oracle draw = {.random = 8};
        struct trace trace = {0};
        for (int tick = 0; tick < 3; tick++) many_tick(aoi, HUNDRED_THOUSAND, at, &draw, &trace);
        ck_assert_uint_le(aoi_memory_bytes(aoi) / HUNDRED_THOUSAND, 64);
        aoi_destroy(aoi);
    }
}
END_TEST

SUITE_MAIN("aoi_tick", a_tick_of_a_crowd_equals_the_difference_of_all_views,
           a_tick_with_lesser_kernels_equals_the_difference_of_all_views,
           an_entity_with_a_vast_radius_among_many_sees_all_and_slows_no_stencil,
           staging_many_at_once_is_the_same_as_one_after_the_other, plain_and_vector_kernels_report_the_same,
           thousands_who_part_and_meet_again_are_all_told, a_tick_allocates_nothing_in_the_steady_state,
           the_index_keeps_to_its_bytes_an_entity)
