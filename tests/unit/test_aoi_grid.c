/* What aoi.h promises, case by case; the oracle (test_aoi_oracle.c) has the rest. */
#include "tests/unit/aoi_oracle.h"
#include "tests/unit/suite.h"

static struct aoi *open_mode(enum aoi_mode mode, int32_t hysteresis)
{
    struct aoi_options options = {.mode = mode,
                                  .cell_size = 100,
                                  .min_x = -1000,
                                  .min_y = -1000,
                                  .max_x = 1000,
                                  .max_y = 1000,
                                  .radius_max = 500,
                                  .hysteresis = hysteresis,
                                  .z_range = 50};
    struct aoi *aoi = NULL;
    ck_assert_int_eq(aoi_create(&options, &aoi), TERRANE_ERR_OK);
    return aoi;
}

static uint32_t put(struct aoi *aoi, uint64_t id, int32_t x, int32_t y, uint32_t radius)
{
    struct aoi_place place = {.position = {.x = x, .y = y}, .radius = radius};
    uint32_t handle;
    ck_assert_int_eq(aoi_enter(aoi, (struct entity_id){id}, &place, NULL, NULL, &handle), TERRANE_ERR_OK);
    return handle;
}

static struct position at(int32_t x, int32_t y)
{
    return (struct position){.x = x, .y = y};
}

/* Moves and collects what that changes, as ids. */
static void move_to(struct aoi *aoi, uint32_t handle, struct position to, struct aoi_delta *delta)
{
    aoi_delta_begin(delta, aoi_id(aoi, handle));
    ck_assert_int_eq(aoi_move(aoi, handle, to, aoi_delta_sink, delta), TERRANE_ERR_OK);
    aoi_delta_end(delta);
}

static void ids_are(const struct entity_id *ids, size_t count, size_t expected, const uint64_t *values)
{
    ck_assert_uint_eq(count, expected);
    for (size_t i = 0; i < count; i++) ck_assert_uint_eq(ids[i].v, values[i]);
}

#define IDS(ids, count, ...)                                                                                           \
    ids_are(ids, count, sizeof(uint64_t[]){__VA_ARGS__} / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__})

START_TEST(cells_are_half_open_on_both_sides_of_zero)
{
    struct aoi *aoi = open_mode(AOI_BLOCK, 0);
    uint32_t middle = put(aoi, 1, 0, 0, 0); /* cell (0, 0) sees cells -1 .. 1: x from -100 to 199 */
    uint32_t in_low = put(aoi, 2, -100, -100, 0), out_low = put(aoi, 3, -101, 0, 0);
    uint32_t in_high = put(aoi, 4, 199, 199, 0), out_high = put(aoi, 5, 0, 200, 0);
    ck_assert(aoi_sees(aoi, middle, in_low) && aoi_sees(aoi, in_low, middle));
    ck_assert(aoi_sees(aoi, middle, in_high) && aoi_sees(aoi, in_high, middle));
    ck_assert(!aoi_sees(aoi, middle, out_low) && !aoi_sees(aoi, middle, out_high));
    ck_assert(!aoi_sees(aoi, middle, middle));
    aoi_destroy(aoi);
}
END_TEST

START_TEST(a_move_across_a_border_reports_the_difference_of_the_blocks)
{
    struct aoi *aoi = open_mode(AOI_BLOCK, 0);
    struct aoi_delta delta;
    aoi_delta_open(&delta, aoi);
    put(aoi, 30, -50, 0, 0); /* cell -1: lost */
    put(aoi, 20, -50, 150, 0);
    put(aoi, 40, 50, 50, 0); /* cells 0 and 1: kept */
    put(aoi, 50, 150, -50, 0);
    put(aoi, 70, 250, 50, 0); /* cell 2: gained */
    put(aoi, 60, 299, -1, 0);
    put(aoi, 80, 300, 0, 0); /* cell 3: never */
    uint32_t mover = put(aoi, 1, 99, 0, 0);
    move_to(aoi, mover, at(100, 0), &delta);
    IDS(delta.unsee, delta.unsee_count, 20, 30);
    IDS(delta.unseen_by, delta.unseen_by_count, 20, 30);
    IDS(delta.see, delta.see_count, 60, 70);
    IDS(delta.seen_by, delta.seen_by_count, 60, 70);
    aoi_delta_close(&delta);
    aoi_destroy(aoi);
}
END_TEST

START_TEST(a_move_inside_a_cell_changes_no_view_of_blocks)
{
    struct aoi *aoi = open_mode(AOI_BLOCK, 0);
    struct aoi_delta delta;
    struct aoi_place place;
    aoi_delta_open(&delta, aoi);
    put(aoi, 2, 150, 50, 0);
    uint32_t mover = put(aoi, 1, 0, 0, 0);
    move_to(aoi, mover, at(99, 99), &delta);
    ck_assert_uint_eq(delta.see_count + delta.unsee_count + delta.seen_by_count + delta.unseen_by_count, 0);
    ck_assert(aoi_place_of(aoi, mover, &place));
    ck_assert_int_eq(place.position.x, 99);
    aoi_delta_close(&delta);
    aoi_destroy(aoi);
}
END_TEST

START_TEST(a_leave_reports_only_unsees_in_both_directions)
{
    for (int mode = AOI_BLOCK; mode <= AOI_RADIUS; mode++) {
        struct aoi *aoi = open_mode((enum aoi_mode)mode, 10);
        struct aoi_delta delta;
        aoi_delta_open(&delta, aoi);
        put(aoi, 9, 10, 0, 100);
        put(aoi, 3, 20, 0, 100);
        uint32_t leaver = put(aoi, 5, 0, 0, 100);
        aoi_delta_begin(&delta, (struct entity_id){5});
        ck_assert_int_eq(aoi_leave(aoi, leaver, aoi_delta_sink, &delta), TERRANE_ERR_OK);
        aoi_delta_end(&delta);
        IDS(delta.unsee, delta.unsee_count, 3, 9);
        IDS(delta.unseen_by, delta.unseen_by_count, 3, 9);
        ck_assert_uint_eq(delta.see_count + delta.seen_by_count, 0);
        aoi_delta_close(&delta);
        aoi_destroy(aoi);
    }
}
END_TEST

START_TEST(wrong_options_are_refused)
{
    struct aoi_options good = {.mode = AOI_RADIUS, .cell_size = 10, .max_x = 100, .max_y = 100};
    struct aoi_options bad[] = {good, good, good, good, good, good, good};
    bad[0].cell_size = 0;
    bad[1].max_x = 0;
    bad[2].max_y = -5;
    bad[3].radius_max = -1;
    bad[4].hysteresis = -1;
    bad[5].mode = (enum aoi_mode)7;
    bad[6].cell_size = -10;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct aoi *aoi = (struct aoi *)&good;
        ck_assert_int_eq(aoi_create(&bad[i], &aoi), TERRANE_ERR_CONFIG);
        ck_assert_ptr_null(aoi);
    }
    aoi_destroy(NULL);
}
END_TEST

START_TEST(a_refused_operation_says_why_and_changes_nothing)
{
    struct aoi *aoi = open_mode(AOI_RADIUS, 0);
    uint32_t a = put(aoi, 1, 0, 0, 100), b = put(aoi, 2, 50, 0, 100), handle;
    struct aoi_place place = {.position = at(0, 0), .radius = 100};
    ck_assert_int_eq(aoi_enter(aoi, (struct entity_id){0}, &place, NULL, NULL, &handle), TERRANE_ERR_ENTITY_NONE);
    ck_assert_uint_eq(handle, AOI_HANDLE_NONE);
    ck_assert_int_eq(aoi_enter(aoi, (struct entity_id){2}, &place, NULL, NULL, &handle), TERRANE_ERR_ENTITY_EXISTS);
    ck_assert_uint_eq(handle, b);
    place.position.x = 1000;
    ck_assert_int_eq(aoi_enter(aoi, (struct entity_id){3}, &place, NULL, NULL, &handle), TERRANE_ERR_POSITION_OUTSIDE);
    place.position.x = -1001;
    ck_assert_int_eq(aoi_enter(aoi, (struct entity_id){3}, &place, NULL, NULL, &handle), TERRANE_ERR_POSITION_OUTSIDE);
    place.position.x = 0;
    place.radius = 501;
    ck_assert_int_eq(aoi_enter(aoi, (struct entity_id){3}, &place, NULL, NULL, &handle), TERRANE_ERR_RADIUS_TOO_LARGE);
    ck_assert_int_eq(aoi_move(aoi, a, at(0, 1000), NULL, NULL), TERRANE_ERR_POSITION_OUTSIDE);
    ck_assert_int_eq(aoi_stage(aoi, a, at(0, -1001)), TERRANE_ERR_POSITION_OUTSIDE);
    ck_assert_int_eq(aoi_set_radius(aoi, a, 501, NULL, NULL), TERRANE_ERR_RADIUS_TOO_LARGE);
    aoi_tick(aoi, NULL, NULL);
    ck_assert(aoi_sees(aoi, a, b) && aoi_sees(aoi, b, a));
    ck_assert_uint_eq(aoi_count(aoi), 2);
    aoi_destroy(aoi);
}
END_TEST

START_TEST(a_handle_that_is_not_live_is_refused_everywhere)
{
    struct aoi *aoi = open_mode(AOI_RADIUS, 10);
    uint32_t b = put(aoi, 2, 50, 0, 100), gone = put(aoi, 1, 0, 0, 100), out[4];
    ck_assert_int_eq(aoi_leave(aoi, gone, NULL, NULL), TERRANE_ERR_OK);
    const uint32_t stale[] = {gone, 77, AOI_HANDLE_NONE};
    for (size_t i = 0; i < 3; i++) {
        struct aoi_place place;
        ck_assert_int_eq(aoi_leave(aoi, stale[i], NULL, NULL), TERRANE_ERR_ENTITY_UNKNOWN);
        ck_assert_int_eq(aoi_move(aoi, stale[i], at(0, 0), NULL, NULL), TERRANE_ERR_ENTITY_UNKNOWN);
        ck_assert_int_eq(aoi_stage(aoi, stale[i], at(0, 0)), TERRANE_ERR_ENTITY_UNKNOWN);
        ck_assert_int_eq(aoi_set_radius(aoi, stale[i], 5, NULL, NULL), TERRANE_ERR_ENTITY_UNKNOWN);
        ck_assert_int_eq(aoi_set_layer(aoi, stale[i], 5, NULL, NULL), TERRANE_ERR_ENTITY_UNKNOWN);
        ck_assert_uint_eq(aoi_id(aoi, stale[i]).v, 0);
        ck_assert(!aoi_place_of(aoi, stale[i], &place));
        ck_assert(!aoi_sees(aoi, b, stale[i]) && !aoi_sees(aoi, stale[i], b));
        ck_assert(!aoi_recall(aoi, b, stale[i]) && !aoi_recall(aoi, stale[i], b));
        ck_assert_uint_eq(aoi_view(aoi, stale[i], out, 4), 0);
    }
    ck_assert_uint_eq(aoi_find(aoi, (struct entity_id){1}), AOI_HANDLE_NONE);
    ck_assert_uint_eq(aoi_find(aoi, (struct entity_id){2}), b);
    aoi_destroy(aoi);
}
END_TEST

START_TEST(enter_and_leave_radii_differ_so_nothing_flickers_at_the_edge) /* report 23 */
{
    struct aoi *aoi = open_mode(AOI_RADIUS, 20);
    struct aoi_delta delta;
    aoi_delta_open(&delta, aoi);
    uint32_t a = put(aoi, 1, 0, 0, 100), b = put(aoi, 2, 101, 0, 0);
    ck_assert(!aoi_sees(aoi, a, b));
    move_to(aoi, b, at(100, 0), &delta); /* exactly the radius: seen */
    IDS(delta.seen_by, delta.seen_by_count, 1);
    for (int i = 0; i < 10; i++) {
        move_to(aoi, b, at(i % 2 ? 99 : 120, 0), &delta); /* exactly radius + hysteresis: still seen */
        ck_assert_uint_eq(delta.seen_by_count + delta.unseen_by_count, 0);
        ck_assert(aoi_sees(aoi, a, b));
    }
    move_to(aoi, b, at(121, 0), &delta);
    IDS(delta.unseen_by, delta.unseen_by_count, 1);
    move_to(aoi, b, at(120, 0), &delta); /* back within the band, from outside: not seen */
    ck_assert_uint_eq(delta.seen_by_count, 0);
    ck_assert(!aoi_sees(aoi, a, b));
    aoi_delta_close(&delta);
    aoi_destroy(aoi);
}
END_TEST

START_TEST(recall_takes_effect_in_the_band_and_nowhere_else)
{
    struct aoi *aoi = open_mode(AOI_RADIUS, 20);
    uint32_t a = put(aoi, 1, 0, 0, 100), inside = put(aoi, 2, 100, 0, 0), band = put(aoi, 3, 0, 110, 0);
    uint32_t beyond = put(aoi, 4, 121, 0, 0);
    ck_assert(!aoi_recall(aoi, a, inside) && !aoi_recall(aoi, a, beyond) && !aoi_recall(aoi, a, a));
    ck_assert(!aoi_recall(aoi, band, a)); /* radius 0 sees nothing */
    ck_assert(aoi_recall(aoi, a, band));
    ck_assert(aoi_sees(aoi, a, band) && !aoi_sees(aoi, a, beyond));
    ck_assert_int_eq(aoi_set_radius(aoi, a, 0, NULL, NULL), TERRANE_ERR_OK);
    ck_assert_int_eq(aoi_set_radius(aoi, a, 100, NULL, NULL), TERRANE_ERR_OK);
    ck_assert(!aoi_sees(aoi, a, band));
    aoi_destroy(aoi);
    aoi = open_mode(AOI_BLOCK, 20);
    a = put(aoi, 1, 0, 0, 100);
    ck_assert(!aoi_recall(aoi, a, put(aoi, 2, 110, 0, 0)));
    aoi_destroy(aoi);
}
END_TEST

START_TEST(a_radius_beyond_the_cell_sees_that_far_and_a_smaller_one_loses) /* report 19 */
{
    struct aoi *aoi = open_mode(AOI_RADIUS, 0);
    struct aoi_delta delta;
    aoi_delta_open(&delta, aoi);
    put(aoi, 2, 350, 0, 0);
    put(aoi, 3, 0, -500, 0);
    put(aoi, 4, 360, 350, 0); /* farther than 500 */
    uint32_t a = put(aoi, 1, 0, 0, 10);
    aoi_delta_begin(&delta, (struct entity_id){1});
    ck_assert_int_eq(aoi_set_radius(aoi, a, 500, aoi_delta_sink, &delta), TERRANE_ERR_OK);
    aoi_delta_end(&delta);
    IDS(delta.see, delta.see_count, 2, 3);
    ck_assert_uint_eq(delta.seen_by_count, 0);
    aoi_delta_begin(&delta, (struct entity_id){1});
    ck_assert_int_eq(aoi_set_radius(aoi, a, 499, aoi_delta_sink, &delta), TERRANE_ERR_OK);
    aoi_delta_end(&delta);
    IDS(delta.unsee, delta.unsee_count, 3);
    aoi_delta_close(&delta);
    aoi_destroy(aoi);
}
END_TEST

START_TEST(equal_radii_see_each_other_whoever_came_first) /* report 21 */
{
    struct aoi *aoi = open_mode(AOI_RADIUS, 0);
    uint32_t a = put(aoi, 1, 0, 0, 0), b = put(aoi, 2, 60, 80, 0);
    ck_assert_int_eq(aoi_set_radius(aoi, a, 100, NULL, NULL), TERRANE_ERR_OK);
    ck_assert(aoi_sees(aoi, a, b) && !aoi_sees(aoi, b, a));
    ck_assert_int_eq(aoi_set_radius(aoi, b, 100, NULL, NULL), TERRANE_ERR_OK);
    ck_assert(aoi_sees(aoi, a, b) && aoi_sees(aoi, b, a));
    aoi_destroy(aoi);
}
END_TEST

START_TEST(leaving_is_reported_in_every_direction) /* reports 18 and 20 */
{
    static const int32_t ways[][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, 1}, {-1, -1}, {1, -1}, {-1, 1}};
    for (int mode = AOI_BLOCK; mode <= AOI_RADIUS; mode++) {
        for (size_t i = 0; i < 8; i++) {
            struct aoi *aoi = open_mode((enum aoi_mode)mode, 0);
            struct aoi_delta delta;
            aoi_delta_open(&delta, aoi);
            put(aoi, 7, 0, 0, 100);
            uint32_t mover = put(aoi, 1, 0, 0, 100);
            size_t unsees = 0, sees = 0;
            for (int32_t step = 1; step <= 30; step++) {
                int32_t far = step <= 15 ? step * 20 : (30 - step) * 20;
                move_to(aoi, mover, at(ways[i][0] * far, ways[i][1] * far), &delta);
                unsees += delta.unsee_count + delta.unseen_by_count;
                sees += delta.see_count + delta.seen_by_count;
            }
            ck_assert_uint_eq(unsees, 2);
            ck_assert_uint_eq(sees, 2);
            aoi_delta_close(&delta);
            aoi_destroy(aoi);
        }
    }
}
END_TEST

START_TEST(layers_and_height_hide)
{
    for (int mode = AOI_BLOCK; mode <= AOI_RADIUS; mode++) {
        struct aoi *aoi = open_mode((enum aoi_mode)mode, 0);
        struct aoi_delta delta;
        aoi_delta_open(&delta, aoi);
        uint32_t a = put(aoi, 1, 0, 0, 100), b = put(aoi, 2, 10, 0, 100);
        move_to(aoi, b, (struct position){.x = 10, .z = 50}, &delta);
        ck_assert_uint_eq(delta.unsee_count, 0);
        move_to(aoi, b, (struct position){.x = 10, .z = 51}, &delta);
        IDS(delta.unsee, delta.unsee_count, 1);
        IDS(delta.unseen_by, delta.unseen_by_count, 1);
        move_to(aoi, b, (struct position){.x = 10, .z = -50}, &delta);
        IDS(delta.see, delta.see_count, 1);
        aoi_delta_begin(&delta, (struct entity_id){2});
        ck_assert_int_eq(aoi_set_layer(aoi, b, 9, aoi_delta_sink, &delta), TERRANE_ERR_OK);
        aoi_delta_end(&delta);
        IDS(delta.unsee, delta.unsee_count, 1);
        ck_assert(!aoi_sees(aoi, a, b));
        ck_assert_int_eq(aoi_set_layer(aoi, a, 9, NULL, NULL), TERRANE_ERR_OK);
        ck_assert(aoi_sees(aoi, a, b));
        aoi_delta_close(&delta);
        aoi_destroy(aoi);
    }
}
END_TEST

START_TEST(a_staged_move_takes_effect_at_the_tick_and_the_last_word_holds)
{
    struct aoi *aoi = open_mode(AOI_RADIUS, 0);
    uint32_t a = put(aoi, 1, 0, 0, 100), b = put(aoi, 2, 900, 0, 100), found[2];
    ck_assert_int_eq(aoi_stage(aoi, b, at(500, 0)), TERRANE_ERR_OK);
    ck_assert_int_eq(aoi_stage(aoi, b, at(50, 0)), TERRANE_ERR_OK);
    ck_assert(!aoi_sees(aoi, a, b));
    ck_assert_uint_eq(aoi_query_circle(aoi, at(900, 0), 0, -1, found, 2), 1);
    aoi_tick(aoi, NULL, NULL);
    ck_assert(aoi_sees(aoi, a, b));
    ck_assert_int_eq(aoi_stage(aoi, b, at(900, 0)), TERRANE_ERR_OK);
    ck_assert_int_eq(aoi_move(aoi, b, at(60, 0), NULL, NULL), TERRANE_ERR_OK); /* a move now supersedes */
    aoi_tick(aoi, NULL, NULL);
    ck_assert(aoi_sees(aoi, a, b));
    ck_assert_int_eq(aoi_stage(aoi, b, at(-900, 0)), TERRANE_ERR_OK);
    ck_assert_int_eq(aoi_leave(aoi, b, NULL, NULL), TERRANE_ERR_OK); /* what was staged goes with it */
    ck_assert_uint_eq(put(aoi, 3, 70, 0, 0), b);
    aoi_tick(aoi, NULL, NULL);
    ck_assert(aoi_sees(aoi, a, b));
    aoi_destroy(aoi);
}
END_TEST

START_TEST(two_who_move_together_keep_each_other_without_an_event) /* report 24: net */
{
    for (int mode = AOI_BLOCK; mode <= AOI_RADIUS; mode++) {
        struct aoi *aoi = open_mode((enum aoi_mode)mode, 0);
        struct aoi_delta delta;
        aoi_delta_open(&delta, aoi);
        uint32_t a = put(aoi, 1, -900, 0, 100), b = put(aoi, 2, -890, 0, 100);
        aoi_delta_begin(&delta, (struct entity_id){0});
        for (int32_t x = -800; x < 900; x += 400) {
            ck_assert_int_eq(aoi_stage(aoi, a, at(x, x)), TERRANE_ERR_OK);
            ck_assert_int_eq(aoi_stage(aoi, b, at(x + 10, x)), TERRANE_ERR_OK);
            aoi_tick(aoi, aoi_delta_sink, &delta);
        }
        ck_assert_uint_eq(delta.see_count + delta.unsee_count + delta.seen_by_count + delta.unseen_by_count, 0);
        ck_assert(aoi_sees(aoi, a, b));
        aoi_delta_close(&delta);
        aoi_destroy(aoi);
    }
}
END_TEST

START_TEST(a_query_says_how_many_there_are_even_when_room_is_short)
{
    struct aoi *aoi = open_mode(AOI_RADIUS, 0);
    for (uint64_t id = 1; id <= 100; id++) put(aoi, id, (int32_t)id, 0, 100);
    for (size_t room = 0; room <= 110; room += 5) {
        uint32_t out[120];
        for (size_t i = 0; i < 120; i++) out[i] = 12345;
        ck_assert_uint_eq(aoi_query_circle(aoi, at(0, 0), 100, -1, out, room), 100);
        for (size_t i = room; i < 120; i++) ck_assert_uint_eq(out[i], 12345);
        ck_assert_uint_eq(aoi_query_rectangle(aoi, 1, 0, 50, 0, 0, out, room), 50);
        ck_assert_uint_eq(aoi_query_block(aoi, at(0, 0), 3, out, room), 0);
        ck_assert_uint_eq(aoi_view(aoi, 0, out, room), 99);
        for (size_t i = room; i < 120; i++) ck_assert_uint_eq(out[i], 12345);
    }
    struct aoi_place place = {.position = at(-90, 0)};
    ck_assert_uint_eq(aoi_fanout(aoi, &place), 10);
    aoi_destroy(aoi);
}
END_TEST

START_TEST(ids_of_all_sizes_find_their_entity_through_growth_and_leaves)
{
    enum { MANY = 20000 };
    struct aoi *aoi = open_mode(AOI_BLOCK, 0);
    for (uint64_t i = 1; i <= MANY; i++) put(aoi, i * 0x123456789abcdefu, (int32_t)(i % 1900) - 950, 0, 0);
    for (uint64_t i = 1; i <= MANY; i += 3) {
        uint32_t handle = aoi_find(aoi, (struct entity_id){i * 0x123456789abcdefu});
        ck_assert_int_eq(aoi_leave(aoi, handle, NULL, NULL), TERRANE_ERR_OK);
    }
    for (uint64_t i = 1; i <= MANY; i++) {
        struct entity_id id = {i * 0x123456789abcdefu};
        uint32_t handle = aoi_find(aoi, id);
        ck_assert((handle == AOI_HANDLE_NONE) == (i % 3 == 1));
        if (handle != AOI_HANDLE_NONE) ck_assert_uint_eq(aoi_id(aoi, handle).v, id.v);
    }
    aoi_destroy(aoi);
}
END_TEST

SUITE_MAIN("aoi_grid", cells_are_half_open_on_both_sides_of_zero,
           a_move_across_a_border_reports_the_difference_of_the_blocks, a_move_inside_a_cell_changes_no_view_of_blocks,
           a_leave_reports_only_unsees_in_both_directions, wrong_options_are_refused,
           a_refused_operation_says_why_and_changes_nothing, a_handle_that_is_not_live_is_refused_everywhere,
           enter_and_leave_radii_differ_so_nothing_flickers_at_the_edge,
           recall_takes_effect_in_the_band_and_nowhere_else,
           a_radius_beyond_the_cell_sees_that_far_and_a_smaller_one_loses,
           equal_radii_see_each_other_whoever_came_first, leaving_is_reported_in_every_direction,
           layers_and_height_hide, a_staged_move_takes_effect_at_the_tick_and_the_last_word_holds,
           two_who_move_together_keep_each_other_without_an_event,
           a_query_says_how_many_there_are_even_when_room_is_short,
           ids_of_all_sizes_find_their_entity_through_growth_and_leaves)
