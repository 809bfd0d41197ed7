#include "common/array.h"
#include "common/core.h"
#include "common/table.h"

#include "tests/unit/suite.h"

#include <string.h>

START_TEST(table_agrees_with_a_plain_array_under_random_work)
{
    enum { KEYS = 3000, STEPS = 400000 };
    static uint32_t truth[KEYS + 1];
    for (int i = 0; i <= KEYS; i++) truth[i] = TABLE_NONE;
    struct table table = {0};
    uint64_t random = 1;
    uint32_t count = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint32_t key = 1 + (uint32_t)(random >> 33) % KEYS;
        if (random >> 62 == 0) {
            ck_assert_int_eq(table_remove(&table, key), truth[key] != TABLE_NONE);
            count -= truth[key] != TABLE_NONE;
            truth[key] = TABLE_NONE;
        } else if (random >> 62 == 1) {
            count += truth[key] == TABLE_NONE;
            table_put(&table, key, step);
            truth[key] = step;
        } else {
            ck_assert_uint_eq(table_get(&table, key), truth[key]);
        }
        ck_assert_uint_eq(table.count, count);
    }
    for (uint32_t key = 1; key <= KEYS; key++) ck_assert_uint_eq(table_get(&table, key), truth[key]);
    table_clear(&table);
    ck_assert_uint_eq(table_get(&table, 1), TABLE_NONE);
    table_close(&table);
}
END_TEST

START_TEST(an_empty_table_answers)
{
    struct table table = {0};
    ck_assert_uint_eq(table_get(&table, 5), TABLE_NONE);
    ck_assert(!table_remove(&table, 5));
    ck_assert_uint_eq(table_get(&table, 0), TABLE_NONE);
    table_clear(&table);
    table_close(&table);
}
END_TEST

START_TEST(a_reserved_table_does_not_move)
{
    struct table table = {0};
    table_reserve(&table, 1000);
    uint64_t *keys = table.keys;
    for (uint32_t i = 1; i <= 1000; i++) table_put(&table, i, i);
    ck_assert_ptr_eq(table.keys, keys);
    table_close(&table);
}
END_TEST

START_TEST(new_array_items_are_zero)
{
    uint32_t room = 0, *items = NULL;
    ARRAY_RESERVE(items, room, 3);
    for (uint32_t i = 0; i < room; i++) ck_assert_uint_eq(items[i], 0);
    items[2] = 7;
    ARRAY_RESERVE(items, room, 100);
    ck_assert_uint_eq(items[2], 7);
    ck_assert_uint_eq(items[99], 0);
    free(items);
}
END_TEST

START_TEST(an_outbox_keeps_order_and_bytes)
{
    struct outbox out = {0};
    for (uint32_t i = 0; i < 1000; i++) {
        outbox_push(&out, (struct output){.kind = OUTPUT_PUBLISH, .feed = i}, &i, sizeof i);
    }
    outbox_log(&out, LOG_INFO, "event=%s", "test");
    ck_assert_uint_eq(out.count, 1001);
    for (uint32_t i = 0; i < 1000; i++) {
        ck_assert_uint_eq(out.items[i].feed, i);
        ck_assert_int_eq(memcmp(outbox_bytes(&out, &out.items[i]), &i, sizeof i), 0);
    }
    ck_assert_mem_eq(outbox_bytes(&out, &out.items[1000]), "event=test", out.items[1000].size);
    outbox_clear(&out);
    ck_assert_uint_eq(out.count, 0);
    outbox_close(&out);
}
END_TEST

SUITE_MAIN("table", table_agrees_with_a_plain_array_under_random_work, an_empty_table_answers,
           a_reserved_table_does_not_move, new_array_items_are_zero, an_outbox_keeps_order_and_bytes)
