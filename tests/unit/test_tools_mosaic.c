/* The quadtree's picture: north is up, every pixel has the tile under its centre, borders, colours. */
#include "common/geometry.h"
#include "tests/unit/suite.h"
#include "tools/mosaic.h"

#include <string.h>

static struct mosaic mosaic;

static void add(const char *key, uint32_t server, uint64_t load)
{
    struct mosaic_tile tile = {.server = server, .load = load};
    ck_assert_int_eq(quadkey_parse(key, strlen(key), &tile.region), TERRANE_ERR_OK);
    mosaic_add(&mosaic, &tile);
}

static const char *row_text(uint32_t row)
{
    static char text[64];
    for (uint32_t column = 0; column < mosaic.width; column++) {
        const struct mosaic_tile *tile = mosaic_at(&mosaic, column, row);
        text[column] = tile == NULL ? '.' : (char)('A' + tile->server);
    }
    text[mosaic.width] = '\0';
    return text;
}

START_TEST(north_is_up_and_leaves_of_different_sizes_fill_their_squares)
{
    add("0", 0, 1);
    add("1", 1, 1);
    add("2", 2, 1);
    add("30", 3, 1);
    add("31", 4, 1);
    add("33", 5, 1);
    mosaic_paint(&mosaic, 8, 8);
    ck_assert_str_eq(row_text(0), "CCCC..FF");
    ck_assert_str_eq(row_text(2), "CCCCDDEE");
    ck_assert_str_eq(row_text(7), "AAAABBBB");
    ck_assert(!mosaic_borders(&mosaic, 0, 0));
    ck_assert(mosaic_borders(&mosaic, 4, 7));
    ck_assert(!mosaic_borders(&mosaic, 5, 7));
    ck_assert(mosaic_borders(&mosaic, 0, 4));
    mosaic_close(&mosaic);
}
END_TEST

START_TEST(each_pixel_has_the_tile_under_its_centre_whatever_the_sizes)
{
    for (uint32_t depth = 0; depth < 3; depth++) {
        for (uint64_t code = 0; code < (UINT64_C(1) << 2 * depth); code++)
            mosaic_add(&mosaic, &(struct mosaic_tile){.region = {(UINT64_C(1) << 2 * depth) + code}});
        for (uint32_t size = 1; size < 40; size++) {
            mosaic_paint(&mosaic, size, size);
            for (uint32_t i = 0; i < size * size; i++) {
                uint32_t column = i % size, row = i / size, parts = 1u << depth;
                uint32_t x = (2 * column + 1) * parts / (2 * size), y = (2 * (size - 1 - row) + 1) * parts / (2 * size);
                const struct mosaic_tile *tile = mosaic_at(&mosaic, column, row);
                ck_assert_ptr_nonnull(tile);
                uint64_t code = 0;
                for (uint32_t level = depth; level-- > 0;) code = code << 2 | (y >> level & 1) << 1 | (x >> level & 1);
                ck_assert_uint_eq(tile->region.v, (UINT64_C(1) << 2 * depth) + code);
            }
        }
        mosaic_clear(&mosaic);
    }
    mosaic_close(&mosaic);
}
END_TEST

START_TEST(a_loaded_region_is_lighter_and_servers_differ_in_colour)
{
    add("0", 0, 0);
    add("1", 0, 100);
    add("2", 1, 100);
    add("3", MOSAIC_NOBODY, 0);
    struct colour idle = mosaic_colour(&mosaic, &mosaic.tiles[0]), busy = mosaic_colour(&mosaic, &mosaic.tiles[1]);
    struct colour other = mosaic_colour(&mosaic, &mosaic.tiles[2]), nobody = mosaic_colour(&mosaic, &mosaic.tiles[3]);
    ck_assert_int_gt(busy.red + busy.green + busy.blue, idle.red + idle.green + idle.blue);
    ck_assert(memcmp(&busy, &other, sizeof busy) != 0);
    ck_assert(nobody.red == nobody.green && nobody.green == nobody.blue);
    struct colour full = mosaic_server_colour(0);
    ck_assert(memcmp(&busy, &full, sizeof busy) == 0);
    mosaic_close(&mosaic);
}
END_TEST

SUITE_MAIN("tools_mosaic", north_is_up_and_leaves_of_different_sizes_fill_their_squares,
           each_pixel_has_the_tile_under_its_centre_whatever_the_sizes,
           a_loaded_region_is_lighter_and_servers_differ_in_colour)
