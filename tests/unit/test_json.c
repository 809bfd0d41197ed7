/* JSON for people, and the store's payloads. */
#include "common/geometry.h"
#include "proto/json.h"
#include "proto/store.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <string.h>

static void check_json(struct writer *w, const char *wanted)
{
    writer_raw(w, "", 1);
    ck_assert_str_eq((const char *)w->data, wanted);
    writer_clear(w);
}

START_TEST(commas_stand_between_values_and_nowhere_else)
{
    struct writer w = {0};
    json_open(&w, '{');
    json_key(&w, "a"), json_open(&w, '['), json_close(&w, ']');
    json_key(&w, "b"), json_open(&w, '[');
    json_uint(&w, 1);
    json_uint(&w, UINT64_MAX);
    json_open(&w, '{'), json_close(&w, '}');
    json_null(&w);
    json_bool(&w, true);
    json_close(&w, ']');
    json_key(&w, "c"), json_id(&w, 0);
    json_key(&w, "d"), json_id(&w, UINT64_MAX);
    json_close(&w, '}');
    check_json(&w, "{\"a\":[],\"b\":[1,18446744073709551615,{},null,true],\"c\":null,\"d\":\"18446744073709551615\"}");
    writer_close(&w);
}
END_TEST

START_TEST(texts_are_escaped_and_what_is_no_utf8_becomes_a_question_mark)
{
    struct writer w = {0};
    json_text(&w, "a\"b\\c\n\x01\x7f");
    check_json(&w, "\"a\\\"b\\\\c\\u000a\\u0001\\u007f\"");
    json_text(&w, "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8d");
    check_json(&w, "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8d\"");
    json_text(&w, "\x80 \xc3 \xc0\xaf \xed\xa0\x80 \xf5\x80\x80\x80 \xe2\x82");
    check_json(&w, "\"? ? ?? ??? ???? ??\"");
    writer_close(&w);
}
END_TEST

START_TEST(doubles_read_back_as_the_same_number)
{
    static const double numbers[] = {0, 50, 0.1, -1234.56789012345678, 1e300, 5e-324, 1.0 / 3, 12800};
    struct writer w = {0};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        json_double(&w, numbers[i]);
        writer_raw(&w, "", 1);
        double back = strtod((const char *)w.data, NULL);
        ck_assert(!(back < numbers[i]) && !(back > numbers[i]));
        writer_clear(&w);
    }
    json_double(&w, 0.1);
    check_json(&w, "0.1");
    writer_close(&w);
}
END_TEST

static void payload_write(struct writer *w)
{
    struct store_leaf leaf = {.owner = {{5}, 3, 2, {77}, {0}, 1}, .primary = "cell-1"};
    struct store_server server = {.capacity = 100, .info = {.role = ROLE_CELLSERVER, .node = {77}, .name = "cell-1"}};
    writer_clear(w);
    store_map_begin(w,
                    &(struct store_map){.term = 4, .rev = 9, .leader = {900}, .whole = true, .world = world_default()});
    store_list(w, 1);
    store_add_leaf(w, &leaf);
    store_list(w, 1);
    store_add_gone_leaf(w, (struct quadkey){6});
    store_list(w, 1);
    store_add_server(w, &server);
    store_list(w, 1);
    store_add_gone_server(w, "cell-9");
}

START_TEST(a_store_map_comes_back_as_it_was_written)
{
    struct writer w = {0};
    struct store_map m;
    struct store_leaf leaf;
    struct store_server server;
    struct quadkey gone;
    char name[LIMIT_NAME];
    payload_write(&w);
    ck_assert_int_eq(store_map_decode(w.data, w.size, &m), TERRANE_ERR_OK);
    ck_assert(m.term == 4 && m.rev == 9 && m.leader.v == 900 && m.whole);
    ck_assert_uint_eq(m.world.radius_max, world_default().radius_max);
    ck_assert(store_next_leaf(&m, &leaf) && leaf.owner.leaf.v == 5 && leaf.owner.epoch == 3 && leaf.owner.since == 2);
    ck_assert(leaf.owner.primary.v == 77 && leaf.owner.standby.v == 0 && leaf.owner.feed == 1);
    ck_assert_str_eq(leaf.primary, "cell-1");
    ck_assert(!store_next_leaf(&m, &leaf));
    ck_assert(store_next_gone_leaf(&m, &gone) && gone.v == 6 && !store_next_gone_leaf(&m, &gone));
    ck_assert(store_next_server(&m, &server) && server.capacity == 100 && !store_next_server(&m, &server));
    ck_assert(store_next_gone_server(&m, name) && !store_next_gone_server(&m, name));
    ck_assert_str_eq(name, "cell-9");
    writer_close(&w);
}
END_TEST

START_TEST(a_store_map_cut_anywhere_or_with_any_byte_changed_never_crashes)
{
    struct writer w = {0};
    struct store_map m;
    uint8_t bytes[512];
    uint32_t refused = 0;
    payload_write(&w);
    ck_assert_uint_lt(w.size, sizeof bytes);
    for (size_t size = 0; size < w.size; size++) ck_assert_int_ne(store_map_decode(w.data, size, &m), TERRANE_ERR_OK);
    for (size_t at = 0; at < w.size; at++) {
        for (uint32_t value = 0; value < 256; value++) {
            memcpy(bytes, w.data, w.size);
            bytes[at] = (uint8_t)value;
            if (store_map_decode(bytes, w.size, &m) != TERRANE_ERR_OK) {
                refused++;
                continue;
            }
            struct store_leaf leaf;
            struct store_server server;
            while (store_next_leaf(&m, &leaf)) {
            }
            while (store_next_server(&m, &server)) {
            }
        }
    }
    ck_assert_uint_gt(refused, 1000);
    writer_close(&w);
}
END_TEST

SUITE_MAIN("json", commas_stand_between_values_and_nowhere_else,
           texts_are_escaped_and_what_is_no_utf8_becomes_a_question_mark, doubles_read_back_as_the_same_number,
           a_store_map_comes_back_as_it_was_written, a_store_map_cut_anywhere_or_with_any_byte_changed_never_crashes)
