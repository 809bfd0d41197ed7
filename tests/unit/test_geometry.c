#include "common/geometry.h"

#include "tests/unit/suite.h"

#include <math.h>
#include <string.h>

static struct world small_world(void)
{
    struct world world = world_default();
    world.origin_x = -6400;
    world.origin_y = -6400;
    return world;
}

START_TEST(default_world_is_valid_and_finer_than_a_centimetre)
{
    struct world world = world_default();
    ck_assert_int_eq(world_check(&world), TERRANE_ERR_OK);
    ck_assert(world_unit(&world) <= 0.01);
    ck_assert(fabs(world_unit(&world) * (1 << world.resolution_bits) - 12800.0) < 1e-9);
}
END_TEST

START_TEST(contradicting_constants_are_refused)
{
    struct world world = world_default();
    world.depth = 0;
    ck_assert_int_eq(world_check(&world), TERRANE_ERR_CONFIG);
    world = world_default();
    world.resolution_bits = world.depth - 1;
    ck_assert_int_eq(world_check(&world), TERRANE_ERR_CONFIG);
    world = world_default();
    world.cell_size = NAN;
    ck_assert_int_eq(world_check(&world), TERRANE_ERR_CONFIG);
    world = world_default();
    world.radius_max = UINT32_MAX;
    ck_assert_int_eq(world_check(&world), TERRANE_ERR_CONFIG);
}
END_TEST

START_TEST(positions_outside_or_not_finite_are_refused_at_the_edge)
{
    struct world world = small_world();
    struct position p;
    ck_assert_int_eq(world_position(&world, NAN, 0, 0, &p), TERRANE_ERR_POSITION_INVALID);
    ck_assert_int_eq(world_position(&world, 0, INFINITY, 0, &p), TERRANE_ERR_POSITION_INVALID);
    ck_assert_int_eq(world_position(&world, 6400, 0, 0, &p), TERRANE_ERR_POSITION_OUTSIDE);
    ck_assert_int_eq(world_position(&world, -6400.001, 0, 0, &p), TERRANE_ERR_POSITION_OUTSIDE);
    ck_assert_int_eq(world_position(&world, 0, 0, 1e300, &p), TERRANE_ERR_POSITION_OUTSIDE);
    ck_assert_int_eq(world_position(&world, -6400, 6399.999, 0, &p), TERRANE_ERR_OK);
    ck_assert_int_eq(p.x, 0);
    ck_assert_int_eq(p.y, (1 << world.resolution_bits) - 1);
}
END_TEST

START_TEST(clamping_worlds_take_the_nearest_position)
{
    struct world world = small_world();
    struct position p;
    world.edge = WORLD_EDGE_CLAMP;
    ck_assert_int_eq(world_position(&world, 1e18, -1e18, 1e300, &p), TERRANE_ERR_OK);
    ck_assert_int_eq(p.x, (1 << world.resolution_bits) - 1);
    ck_assert_int_eq(p.y, 0);
    ck_assert(world_contains(&world, p));
}
END_TEST

START_TEST(coordinates_and_back_give_the_same_position)
{
    struct world world = small_world();
    uint64_t random = 7;
    for (int i = 0; i < 100000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        struct position p = {(int32_t)(random >> 43), (int32_t)(random >> 22 & 0x1fffff), (int32_t)(random & 0xffff)},
                        q;
        double x, y, z;
        world_coordinates(&world, p, &x, &y, &z);
        ck_assert_int_eq(world_position(&world, x, y, z, &q), TERRANE_ERR_OK);
        ck_assert_int_eq(memcmp(&p, &q, sizeof p), 0);
    }
}
END_TEST

START_TEST(quadkeys_name_quadrants_south_west_first)
{
    struct world world = world_default();
    int32_t half = 1 << (world.resolution_bits - 1);
    const struct position corners[4] = {{0, 0, 0}, {half, 0, 0}, {0, half, 0}, {half, half, 0}};
    for (uint32_t digit = 0; digit < 4; digit++) {
        struct quadkey k = quadkey_at(&world, corners[digit], 1);
        ck_assert_uint_eq(k.v, quadkey_child(QUADKEY_ROOT, digit).v);
        struct square s = quadkey_square(&world, k);
        ck_assert_int_eq(s.x, corners[digit].x);
        ck_assert_int_eq(s.y, corners[digit].y);
        ck_assert_int_eq(s.side, half);
    }
}
END_TEST

START_TEST(quadkey_text_goes_there_and_back)
{
    const char *texts[] = {"", "0", "3", "0123", "333333333333333333333333333333"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct quadkey k;
        char text[LIMIT_QUADKEY_TEXT];
        ck_assert_int_eq(quadkey_parse(texts[i], strlen(texts[i]), &k), TERRANE_ERR_OK);
        ck_assert(quadkey_valid(k.v));
        quadkey_text(k, text);
        ck_assert_str_eq(text, texts[i]);
    }
    struct quadkey k;
    ck_assert_int_eq(quadkey_parse("014", 3, &k), TERRANE_ERR_QUADKEY_INVALID);
    ck_assert_int_eq(quadkey_parse("0000000000000000000000000000000", 31, &k), TERRANE_ERR_QUADKEY_INVALID);
    ck_assert(!quadkey_valid(0) && !quadkey_valid(2) && !quadkey_valid(UINT64_MAX));
}
END_TEST

START_TEST(z_order_puts_ancestors_first)
{
    struct quadkey a = quadkey_child(QUADKEY_ROOT, 1), b = quadkey_child(a, 0), c = quadkey_child(QUADKEY_ROOT, 2);
    ck_assert_int_lt(quadkey_compare(QUADKEY_ROOT, a), 0);
    ck_assert_int_lt(quadkey_compare(a, b), 0);
    ck_assert_int_lt(quadkey_compare(b, c), 0);
    ck_assert_int_eq(quadkey_compare(b, b), 0);
    ck_assert(quadkey_contains(a, b) && !quadkey_contains(b, a) && !quadkey_contains(c, b));
    ck_assert_uint_eq(quadkey_parent(b).v, a.v);
    ck_assert_uint_eq(quadkey_parent(QUADKEY_ROOT).v, 0);
}
END_TEST

START_TEST(hilbert_neighbours_touch)
{
    struct world world = world_default();
    enum { DEPTH = 5, SIDE = 1 << DEPTH, CELLS = SIDE * SIDE };
    static struct quadkey order[CELLS];
    int32_t cell = 1 << (world.resolution_bits - DEPTH);
    for (int32_t y = 0; y < SIDE; y++) {
        for (int32_t x = 0; x < SIDE; x++) {
            struct quadkey k = quadkey_at(&world, (struct position){x * cell, y * cell, 0}, DEPTH);
            uint64_t index = quadkey_hilbert(k);
            ck_assert_uint_lt(index, CELLS);
            ck_assert_uint_eq(order[index].v, 0);
            order[index] = k;
        }
    }
    for (size_t i = 1; i < CELLS; i++) {
        struct square a = quadkey_square(&world, order[i - 1]), b = quadkey_square(&world, order[i]);
        ck_assert_int_eq(abs(a.x - b.x) + abs(a.y - b.y), cell);
    }
}
END_TEST

START_TEST(squares_are_half_open)
{
    struct square s = {10, 20, 5};
    ck_assert(square_contains(s, (struct position){10, 20, 0}));
    ck_assert(square_contains(s, (struct position){14, 24, 0}));
    ck_assert(!square_contains(s, (struct position){15, 20, 0}));
    ck_assert_int_eq(square_distance(s, (struct position){15, 20, 0}), 1);
    ck_assert_int_eq(square_distance(s, (struct position){8, 30, 0}), 6);
    ck_assert_int_eq(square_depth(s, (struct position){12, 22, 0}), 2);
    ck_assert_int_eq(square_depth(s, (struct position){10, 22, 0}), 0);
    ck_assert_int_eq(square_gap(s, (struct square){15, 25, 5}), 0);
    ck_assert_int_eq(square_gap(s, (struct square){18, 0, 5}), 15);
    ck_assert(square_meets_circle(s, (struct position){17, 27, 0}, 5));
    ck_assert(!square_meets_circle(s, (struct position){17, 27, 0}, 4));
    ck_assert(square_meets_rectangle(s, 14, 24, 90, 90));
    ck_assert(!square_meets_rectangle(s, 15, 24, 90, 90));
}
END_TEST

START_TEST(strip_covers_the_farthest_view_in_whole_cells)
{
    struct world world = world_default();
    int64_t cell = world_cell_side(&world);
    int64_t reach = (int64_t)world.radius_max + world.hysteresis + world.handoff_hysteresis;
    ck_assert_int_ge(world_strip(&world), reach);
    ck_assert_int_lt(world_strip(&world), reach + cell);
    ck_assert_int_eq(world_strip(&world) % cell, 0);
    world.view_mode = VIEW_BLOCK;
    ck_assert_int_eq(world_strip(&world), 3 * cell);
}
END_TEST

SUITE_MAIN("geometry", default_world_is_valid_and_finer_than_a_centimetre, contradicting_constants_are_refused,
           positions_outside_or_not_finite_are_refused_at_the_edge, clamping_worlds_take_the_nearest_position,
           coordinates_and_back_give_the_same_position, quadkeys_name_quadrants_south_west_first,
           quadkey_text_goes_there_and_back, z_order_puts_ancestors_first, hilbert_neighbours_touch,
           squares_are_half_open, strip_covers_the_farthest_view_in_whole_cells)
