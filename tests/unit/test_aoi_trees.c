/* What the tree indexes have to themselves: they stay in shape whatever comes in whatever order, and give back what
 * they no longer need. That their views are right is for tests/aoi, which has every index. */
#include "aoi/aoi.h"
#include "tests/unit/suite.h"

#define MANY 6000

static const char *const trees[] = {"bvh", "octree", "quadtree", "rtree"};

static struct aoi *open_tree(const char *index)
{
    struct aoi_options options = {.index = index,
                                  .mode = AOI_RADIUS,
                                  .cell_size = 1024,
                                  .max_x = 1 << 20,
                                  .max_y = 1 << 20,
                                  .z_range = UINT32_MAX};
    struct aoi *aoi = NULL;
    ck_assert_int_eq(aoi_create(&options, &aoi), TERRANE_ERR_OK);
    return aoi;
}

static uint32_t put(struct aoi *aoi, uint64_t id, int32_t x, int32_t y)
{
    struct aoi_place place = {.position = {.x = x, .y = y}};
    uint32_t handle;
    ck_assert_int_eq(aoi_enter(aoi, (struct entity_id){id}, &place, NULL, NULL, &handle), TERRANE_ERR_OK);
    return handle;
}

static size_t found(struct aoi *aoi, int32_t x, int32_t y, uint32_t radius)
{
    uint32_t out[1];
    return aoi_query_circle(aoi, (struct position){.x = x, .y = y}, radius, -1, out, 1);
}

START_TEST(who_enter_in_the_order_of_a_line_are_all_found)
{
    for (int tree = 0; tree < 4; tree++) {
        for (int downwards = 0; downwards < 2; downwards++) {
            struct aoi *aoi = open_tree(trees[tree]);
            for (int32_t i = 0; i < MANY; i++) put(aoi, (uint64_t)i + 1, 20 * (downwards ? MANY - i : i), 500);
            ck_assert_uint_eq(found(aoi, 10 * MANY, 500, 1 << 20), MANY);
            ck_assert_uint_eq(found(aoi, 10 * MANY, 500, 200), 21);
            aoi_destroy(aoi);
        }
    }
}
END_TEST

/* Each next entity half as far from the corner: whoever halves space or chooses the last box goes ever deeper. */
START_TEST(who_close_in_on_a_point_do_not_make_a_chain)
{
    for (int tree = 0; tree < 4; tree++) {
        struct aoi *aoi = open_tree(trees[tree]);
        for (int32_t i = 0; i < MANY; i++) {
            int32_t distance = (1 << 19) >> i % 20;
            put(aoi, (uint64_t)i + 1, distance + i % 3, distance);
        }
        ck_assert_uint_eq(found(aoi, 0, 0, 1 << 20), MANY);
        ck_assert_uint_eq(found(aoi, 1 << 19, 1 << 19, 10), MANY / 20);
        aoi_destroy(aoi);
    }
}
END_TEST

START_TEST(all_in_one_point_are_found_together_and_leave_one_by_one)
{
    for (int tree = 0; tree < 4; tree++) {
        struct aoi *aoi = open_tree(trees[tree]);
        static uint32_t handles[MANY];
        for (int32_t i = 0; i < MANY; i++) handles[i] = put(aoi, (uint64_t)i + 1, 777, 777);
        ck_assert_uint_eq(found(aoi, 777, 777, 0), MANY);
        ck_assert_uint_eq(found(aoi, 900, 777, 122), 0);
        for (int32_t i = 0; i < MANY; i += 2) {
            struct position away = {.x = 5000 + i, .y = 9000};
            ck_assert_int_eq(aoi_move(aoi, handles[i], away, NULL, NULL), TERRANE_ERR_OK);
        }
        ck_assert_uint_eq(found(aoi, 777, 777, 100), MANY / 2);
        for (int32_t i = 1; i < MANY; i += 2) {
            ck_assert_int_eq(aoi_leave(aoi, handles[i], NULL, NULL), TERRANE_ERR_OK);
        }
        ck_assert_uint_eq(found(aoi, 777, 777, 100), 0);
        ck_assert_uint_eq(found(aoi, 5000 + MANY / 2, 9000, 1 << 20), MANY / 2);
        aoi_destroy(aoi);
    }
}
END_TEST

START_TEST(a_crowd_that_wanders_leaves_no_nodes_behind)
{
    for (int tree = 0; tree < 4; tree++) {
        struct aoi *aoi = open_tree(trees[tree]);
        static uint32_t handles[MANY];
        size_t bytes = 0;
        for (int32_t i = 0; i < MANY; i++) handles[i] = put(aoi, (uint64_t)i + 1, i * 37 % 30000, i * 101 % 30000);
        for (int32_t place = 0; place < 12; place++) {
            for (int32_t i = 0; i < MANY; i++) {
                struct position to = {.x = place * 40000 + i * 37 % 30000, .y = i * 101 % 30000 + place * 17000};
                ck_assert_int_eq(aoi_move(aoi, handles[i], to, NULL, NULL), TERRANE_ERR_OK);
            }
            if (place == 3) bytes = aoi_memory_bytes(aoi);
        }
        ck_assert_uint_le(aoi_memory_bytes(aoi), bytes + bytes / 4);
        ck_assert_uint_eq(found(aoi, 11 * 40000 + 15000, 11 * 17000 + 15000, 30000), MANY);
        aoi_destroy(aoi);
    }
}
END_TEST

SUITE_MAIN("aoi_trees", who_enter_in_the_order_of_a_line_are_all_found, who_close_in_on_a_point_do_not_make_a_chain,
           all_in_one_point_are_found_together_and_leave_one_by_one, a_crowd_that_wanders_leaves_no_nodes_behind)
