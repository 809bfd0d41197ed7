/* The writer and the cursor, with msgpack-c as the oracle of both. */
#include "proto/wire.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <msgpack.h>
#include <stdio.h>

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Around every power of two, where the length of the encoding changes. */
static size_t integer_edges(int64_t *out)
{
    size_t count = 0;
    for (int bit = 0; bit < 63; bit++) {
        for (int64_t by = -1; by <= 1; by++) {
            out[count++] = (INT64_C(1) << bit) + by;
            out[count++] = -(INT64_C(1) << bit) + by;
        }
    }
    out[count++] = INT64_MAX;
    out[count++] = INT64_MIN;
    return count;
}

static void same_as_oracle(const struct writer *w, const msgpack_sbuffer *oracle)
{
    ck_assert_uint_eq(w->size, oracle->size);
    ck_assert_mem_eq(w->data, oracle->data, oracle->size);
}

START_TEST(integers_of_every_width_are_written_as_msgpack_c_writes_them)
{
    int64_t edges[400];
    size_t count = integer_edges(edges);
    struct writer w = {0};
    msgpack_sbuffer oracle;
    msgpack_sbuffer_init(&oracle);
    msgpack_packer packer;
    msgpack_packer_init(&packer, &oracle, msgpack_sbuffer_write);
    uint64_t seed = 1;
    for (size_t i = 0; i < 5000; i++) {
        uint64_t bits = random_next(&seed);
        int64_t v = i < count ? edges[i] : (int64_t)(bits >> (bits % 64)) * (i % 2 ? 1 : -1);
        writer_int(&w, v);
        msgpack_pack_int64(&packer, v);
        writer_uint(&w, (uint64_t)v);
        msgpack_pack_uint64(&packer, (uint64_t)v);
    }
    same_as_oracle(&w, &oracle);
    msgpack_sbuffer_destroy(&oracle);
    writer_close(&w);
}
END_TEST

START_TEST(what_is_written_is_read_back)
{
    int64_t edges[400];
    size_t count = integer_edges(edges);
    struct writer w = {0};
    for (size_t i = 0; i < count; i++) {
        writer_int(&w, edges[i]);
        writer_uint(&w, (uint64_t)edges[i]);
    }
    struct cursor c = cursor_of(w.data, w.size);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(cursor_int(&c, INT64_MIN, INT64_MAX), edges[i]);
        ck_assert_uint_eq(cursor_uint(&c, UINT64_MAX), (uint64_t)edges[i]);
    }
    ck_assert_int_eq(cursor_end(&c), TERRANE_ERR_OK);
    writer_close(&w);
}
END_TEST

/* One value in each of msgpack's integer types, the longer ones too: other libraries may write them. */
START_TEST(every_integer_type_is_read)
{
    static const struct {
        const char *bytes;
        size_t size;
        int64_t v;
    } cases[] = {
        {"\x05", 1, 5},
        {"\xff", 1, -1},
        {"\xe0", 1, -32},
        {"\xcc\x05", 2, 5},
        {"\xcd\x00\x05", 3, 5},
        {"\xce\x00\x00\x00\x05", 5, 5},
        {"\xcf\x00\x00\x00\x00\x00\x00\x00\x05", 9, 5},
        {"\xd0\x05", 2, 5},
        {"\xd1\x00\x05", 3, 5},
        {"\xd2\x00\x00\x00\x05", 5, 5},
        {"\xd3\x00\x00\x00\x00\x00\x00\x00\x05", 9, 5},
        {"\xd0\x80", 2, -128},
        {"\xd1\xff\xff", 3, -1},
        {"\xd2\x80\x00\x00\x00", 5, INT32_MIN},
        {"\xd3\x80\x00\x00\x00\x00\x00\x00\x00", 9, INT64_MIN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cursor c = cursor_of(cases[i].bytes, cases[i].size);
        ck_assert_int_eq(cursor_int(&c, INT64_MIN, INT64_MAX), cases[i].v);
        ck_assert_int_eq(cursor_end(&c), TERRANE_ERR_OK);
        c = cursor_of(cases[i].bytes, cases[i].size);
        uint64_t v = cursor_uint(&c, UINT64_MAX);
        if (cases[i].v >= 0)
            ck_assert_uint_eq(v, (uint64_t)cases[i].v);
        else
            ck_assert_int_eq(c.error, TERRANE_ERR_MESSAGE_RANGE);
        for (size_t cut = 0; cut < cases[i].size; cut++) {
            c = cursor_of(cases[i].bytes, cut);
            ck_assert_int_eq(cursor_int(&c, INT64_MIN, INT64_MAX), 0);
            ck_assert_int_eq(c.error, TERRANE_ERR_MESSAGE_TRUNCATED);
        }
    }
}
END_TEST

START_TEST(integers_outside_the_asked_range_are_refused)
{
    struct writer w = {0};
    writer_int(&w, 100);
    struct cursor c = cursor_of(w.data, w.size);
    ck_assert_uint_eq(cursor_uint(&c, 99), 0);
    ck_assert_int_eq(cursor_end(&c), TERRANE_ERR_MESSAGE_RANGE);
    c = cursor_of(w.data, w.size);
    ck_assert_int_eq(cursor_int(&c, 101, 200), 0);
    ck_assert_int_eq(cursor_end(&c), TERRANE_ERR_MESSAGE_RANGE);
    c = cursor_of(w.data, w.size);
    ck_assert_int_eq(cursor_int(&c, 100, 100), 100);
    writer_clear(&w);
    writer_uint(&w, UINT64_MAX);
    c = cursor_of(w.data, w.size);
    ck_assert_int_eq(cursor_int(&c, INT64_MIN, INT64_MAX), 0);
    ck_assert_int_eq(cursor_end(&c), TERRANE_ERR_MESSAGE_RANGE);
    writer_close(&w);
}
END_TEST

START_TEST(text_blobs_arrays_and_doubles_are_written_as_msgpack_c_writes_them)
{
    static const size_t sizes[] = {0, 1, 15, 16, 31, 32, 255, 256, 65535, 65536, 70000};
    static char text[70001];
    struct writer w = {0};
    msgpack_sbuffer oracle;
    msgpack_sbuffer_init(&oracle);
    msgpack_packer packer;
    msgpack_packer_init(&packer, &oracle, msgpack_sbuffer_write);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(text, 'x', sizes[i]);
        text[sizes[i]] = '\0';
        writer_str(&w, text);
        msgpack_pack_str_with_body(&packer, text, sizes[i]);
        writer_bin(&w, text, sizes[i]);
        msgpack_pack_bin_with_body(&packer, text, sizes[i]);
        writer_array(&w, (uint32_t)sizes[i]);
        msgpack_pack_array(&packer, sizes[i]);
        writer_double(&w, (double)sizes[i] / 3 - 100);
        msgpack_pack_double(&packer, (double)sizes[i] / 3 - 100);
    }
    writer_nil(&w);
    msgpack_pack_nil(&packer);
    writer_bool(&w, true);
    msgpack_pack_true(&packer);
    writer_bool(&w, false);
    msgpack_pack_false(&packer);
    same_as_oracle(&w, &oracle);
    msgpack_sbuffer_destroy(&oracle);
    writer_close(&w);
}
END_TEST

START_TEST(text_and_blobs_of_every_length_are_read_back)
{
    static const size_t sizes[] = {0, 1, 31, 32, 255, 256, 65535, 65536, 69999};
    static char text[70000], back[70000];
    struct writer w = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(text, 'a' + (int)i, sizes[i]);
        text[sizes[i]] = '\0';
        writer_clear(&w);
        writer_str(&w, text);
        writer_bin(&w, text, sizes[i]);
        struct cursor c = cursor_of(w.data, w.size);
        cursor_str(&c, back, sizes[i] + 1);
        const uint8_t *bytes;
        ck_assert_uint_eq(cursor_bin(&c, sizes[i], &bytes), sizes[i]);
        ck_assert_int_eq(cursor_end(&c), TERRANE_ERR_OK);
        ck_assert_str_eq(back, text);
        ck_assert_int_eq(memcmp(bytes, text, sizes[i]), 0);
    }
    writer_close(&w);
}
END_TEST

START_TEST(text_that_is_too_long_or_holds_a_nul_is_refused)
{
    char back[4];
    struct cursor c = cursor_of("\xa4"
                                "abcd",
                                5);
    cursor_str(&c, back, sizeof back);
    ck_assert_int_eq(cursor_end(&c), TERRANE_ERR_MESSAGE_RANGE);
    ck_assert_str_eq(back, "");
    c = cursor_of("\xa3"
                  "a\0b",
                  4);
    cursor_str(&c, back, sizeof back);
    ck_assert_int_eq(cursor_end(&c), TERRANE_ERR_MESSAGE_RANGE);
    ck_assert_str_eq(back, "");
    c = cursor_of("\xa3"
                  "abc",
                  4);
    cursor_str(&c, back, sizeof back);
    ck_assert_int_eq(cursor_end(&c), TERRANE_ERR_OK);
    ck_assert_str_eq(back, "abc");
}
END_TEST

START_TEST(doubles_are_finite_or_refused)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    struct writer w = {0};
    for (size_t i = 0; i < 3; i++) {
        writer_clear(&w);
        writer_double(&w, bad[i]);
        struct cursor c = cursor_of(w.data, w.size);
        ck_assert(cursor_double(&c) == 0);
        ck_assert_int_eq(cursor_end(&c), TERRANE_ERR_MESSAGE_RANGE);
    }
    writer_clear(&w);
    writer_double(&w, -12.25);
    writer_int(&w, -7);
    writer_uint(&w, UINT64_MAX);
    struct cursor c = cursor_of(w.data, w.size);
    ck_assert(cursor_double(&c) == -12.25);
    ck_assert(cursor_double(&c) == -7);
    ck_assert(cursor_double(&c) == 18446744073709551615.0);
    ck_assert_int_eq(cursor_end(&c), TERRANE_ERR_OK);
    writer_close(&w);
}
END_TEST

START_TEST(an_array_longer_than_the_bytes_left_is_refused)
{
    struct cursor c = cursor_of("\xdd\xff\xff\xff\xff", 5);
    ck_assert_uint_eq(cursor_array(&c, 0, UINT32_MAX), 0);
    ck_assert_int_eq(c.error, TERRANE_ERR_MESSAGE_TRUNCATED);
    c = cursor_of("\xdd\xff\xff\xff\xff", 5);
    cursor_skip(&c);
    ck_assert_int_eq(c.error, TERRANE_ERR_MESSAGE_TRUNCATED);
    c = cursor_of("\xc6\xff\xff\xff\xff", 5);
    cursor_skip(&c);
    ck_assert_int_eq(c.error, TERRANE_ERR_MESSAGE_TRUNCATED);
    c = cursor_of("\xdb\xff\xff\xff\xff", 5);
    cursor_skip(&c);
    ck_assert_int_eq(c.error, TERRANE_ERR_MESSAGE_TRUNCATED);
    c = cursor_of("\x93\x01\x02\x03", 4);
    ck_assert_uint_eq(cursor_array(&c, 0, 2), 0);
    ck_assert_int_eq(c.error, TERRANE_ERR_MESSAGE_RANGE);
}
END_TEST

START_TEST(the_first_fault_sticks)
{
    struct cursor c = cursor_of("\xc0\x01\x02", 3);
    ck_assert_uint_eq(cursor_uint(&c, UINT64_MAX), 0);
    const uint8_t *at = c.at, *bytes;
    char text[4] = "xyz";
    ck_assert_uint_eq(cursor_uint(&c, UINT64_MAX), 0);
    ck_assert_int_eq(cursor_int(&c, 1, 2), 0);
    ck_assert(cursor_double(&c) == 0);
    ck_assert(!cursor_nil(&c));
    ck_assert(!cursor_bool(&c));
    ck_assert_uint_eq(cursor_array(&c, 0, 9), 0);
    ck_assert_uint_eq(cursor_bin(&c, 9, &bytes), 0);
    cursor_str(&c, text, sizeof text);
    ck_assert_str_eq(text, "");
    cursor_skip(&c);
    ck_assert_ptr_eq(c.at, at);
    ck_assert_int_eq(cursor_end(&c), TERRANE_ERR_MESSAGE_TYPE);
}
END_TEST

START_TEST(bytes_behind_the_end_are_found)
{
    struct cursor c = cursor_of("\x01\x02", 2);
    ck_assert_uint_eq(cursor_uint(&c, 9), 1);
    ck_assert_int_eq(cursor_end(&c), TERRANE_ERR_MESSAGE_TRAILING);
}
END_TEST

START_TEST(nesting_deeper_than_eight_is_refused)
{
    uint8_t nest[64];
    for (size_t depth = 0; depth <= 20; depth++) {
        memset(nest, 0x91, depth);
        nest[depth] = 0x01;
        struct cursor c = cursor_of(nest, depth + 1);
        cursor_skip(&c);
        ck_assert_int_eq(cursor_end(&c), depth <= 8 ? TERRANE_ERR_OK : TERRANE_ERR_MESSAGE_RANGE);
    }
}
END_TEST

START_TEST(types_that_never_occur_are_refused_by_skip)
{
    static const uint8_t types[] = {0x80, 0x8f, 0xc1, 0xc7, 0xc8, 0xc9, 0xca, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xde, 0xdf};
    uint8_t bytes[32] = {0};
    for (size_t i = 0; i < sizeof types; i++) {
        bytes[0] = types[i];
        struct cursor c = cursor_of(bytes, sizeof bytes);
        cursor_skip(&c);
        ck_assert_int_eq(c.error, TERRANE_ERR_MESSAGE_TYPE);
    }
}
END_TEST

START_TEST(skip_passes_over_exactly_one_value)
{
    struct writer w = {0};
    writer_array(&w, 7);
    writer_array(&w, 2);
    writer_int(&w, -70000);
    writer_array(&w, 0);
    writer_str(&w, "text");
    writer_bin(&w, "bin", 3);
    writer_double(&w, 1.5);
    writer_nil(&w);
    writer_bool(&w, true);
    writer_uint(&w, UINT64_MAX);
    writer_uint(&w, 99);
    struct cursor c = cursor_of(w.data, w.size);
    cursor_skip(&c);
    ck_assert_uint_eq(cursor_uint(&c, 99), 99);
    ck_assert_int_eq(cursor_end(&c), TERRANE_ERR_OK);
    writer_close(&w);
}
END_TEST

START_TEST(an_array_opened_without_a_count_is_closed_with_one)
{
    struct writer w = {0};
    size_t mark = writer_array_open(&w);
    for (uint32_t i = 0; i < 300; i++) writer_uint(&w, i);
    writer_array_close(&w, mark, 300);
    struct cursor c = cursor_of(w.data, w.size);
    ck_assert_uint_eq(cursor_array(&c, 0, 1000), 300);
    for (uint32_t i = 0; i < 300; i++) ck_assert_uint_eq(cursor_uint(&c, 1000), i);
    ck_assert_int_eq(cursor_end(&c), TERRANE_ERR_OK);
    writer_close(&w);
}
END_TEST

/* Random nested values packed by msgpack-c are skipped whole. */
static size_t pack_random(msgpack_packer *packer, uint64_t *seed, uint32_t depth)
{
    uint64_t r = random_next(seed);
    size_t values = 1;
    switch (r % (depth < 7 ? 7 : 5)) {
    case 0: msgpack_pack_int64(packer, (int64_t)(random_next(seed) >> (r >> 8) % 64)); break;
    case 1: msgpack_pack_int64(packer, -(int64_t)(random_next(seed) >> (1 + (r >> 8) % 63))); break;
    case 2: msgpack_pack_double(packer, (double)r); break;
    case 3: msgpack_pack_str_with_body(packer, "0123456789", (r >> 8) % 11); break;
    case 4: msgpack_pack_bin_with_body(packer, "0123456789", (r >> 8) % 11); break;
    default:
        msgpack_pack_array(packer, (r >> 8) % 5);
        for (uint64_t i = 0; i < (r >> 8) % 5; i++) values += pack_random(packer, seed, depth + 1);
    }
    return values;
}

START_TEST(random_values_of_msgpack_c_are_skipped_whole)
{
    uint64_t seed = 7;
    size_t values = 0;
    for (size_t i = 0; i < 2000; i++) {
        msgpack_sbuffer bytes;
        msgpack_sbuffer_init(&bytes);
        msgpack_packer packer;
        msgpack_packer_init(&packer, &bytes, msgpack_sbuffer_write);
        values += pack_random(&packer, &seed, 0);
        struct cursor c = cursor_of(bytes.data, bytes.size);
        cursor_skip(&c);
        ck_assert_int_eq(cursor_end(&c), TERRANE_ERR_OK);
        for (size_t cut = 0; cut < bytes.size; cut++) {
            c = cursor_of(bytes.data, cut);
            cursor_skip(&c);
            ck_assert_int_eq(c.error, TERRANE_ERR_MESSAGE_TRUNCATED);
        }
        msgpack_sbuffer_destroy(&bytes);
    }
    ck_assert_uint_gt(values, 3000);
}
END_TEST

SUITE_MAIN("wire", integers_of_every_width_are_written_as_msgpack_c_writes_them, what_is_written_is_read_back,
           every_integer_type_is_read, integers_outside_the_asked_range_are_refused,
           text_blobs_arrays_and_doubles_are_written_as_msgpack_c_writes_them,
           text_and_blobs_of_every_length_are_read_back, text_that_is_too_long_or_holds_a_nul_is_refused,
           doubles_are_finite_or_refused, an_array_longer_than_the_bytes_left_is_refused, the_first_fault_sticks,
           bytes_behind_the_end_are_found, nesting_deeper_than_eight_is_refused,
           types_that_never_occur_are_refused_by_skip, skip_passes_over_exactly_one_value,
           an_array_opened_without_a_count_is_closed_with_one, random_values_of_msgpack_c_are_skipped_whole)
