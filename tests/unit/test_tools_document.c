/* The JSON reader: what our STATUS answers hold, and what must be refused. */
#include "tests/unit/suite.h"
#include "tools/document.h"

#include <string.h>

static enum terrane_error parse(struct document *j, const char *text)
{
    return document_parse(j, text, strlen(text));
}

START_TEST(members_and_items_are_found_in_order)
{
    struct document j = {0};
    ck_assert_int_eq(parse(&j, " {\"role\": \"cell\", \"tick\":12 , \"ready\":true,\"servers\":[{\"n\":1},{\"n\":2.5}],"
                               "\"none\":null,\"empty\":[]}\n"),
                     TERRANE_ERR_OK);
    ck_assert_str_eq(document_text(&j, 0, "role"), "cell");
    ck_assert_uint_eq(document_count(&j, 0, "tick"), 12);
    ck_assert(document_bool(&j, 0, "ready"));
    uint32_t servers = document_member(&j, 0, "servers"), first = document_first(&j, servers);
    ck_assert_uint_eq(j.values[servers].count, 2);
    ck_assert_uint_eq(document_count(&j, first, "n"), 1);
    ck_assert_double_eq(document_number(&j, document_next(&j, first), "n", 0), 2.5);
    ck_assert_uint_eq(document_next(&j, document_next(&j, first)), DOCUMENT_NONE);
    ck_assert_uint_eq(document_first(&j, document_member(&j, 0, "empty")), DOCUMENT_NONE);
    document_close(&j);
}
END_TEST

START_TEST(what_is_absent_or_of_another_kind_reads_as_the_default)
{
    struct document j = {0};
    ck_assert_int_eq(parse(&j, "{\"a\":\"text\",\"b\":-4,\"c\":1e300}"), TERRANE_ERR_OK);
    ck_assert_uint_eq(document_count(&j, 0, "a"), 0);
    ck_assert_uint_eq(document_count(&j, 0, "b"), 0);
    ck_assert_uint_eq(document_count(&j, 0, "c"), UINT64_C(1) << 53);
    ck_assert_str_eq(document_text(&j, 0, "b"), "");
    ck_assert_double_eq(document_number(&j, 0, "nobody", 7), 7);
    ck_assert_uint_eq(document_member(&j, DOCUMENT_NONE, "a"), DOCUMENT_NONE);
    ck_assert_uint_eq(document_first(&j, DOCUMENT_NONE), DOCUMENT_NONE);
    document_close(&j);
    ck_assert_uint_eq(document_member(&j, 0, "a"), DOCUMENT_NONE);
}
END_TEST

START_TEST(escapes_become_what_they_stand_for)
{
    struct document j = {0};
    ck_assert_int_eq(parse(&j, "{\"a\\u0062\":\"\\\"\\\\\\/\\n\\t\\u00e9\\u20ac\\ud83d\\ude00\"}"), TERRANE_ERR_OK);
    ck_assert_str_eq(document_text(&j, 0, "ab"), "\"\\/\n\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    document_close(&j);
}
END_TEST

START_TEST(malformed_text_is_refused_and_leaves_nothing)
{
    static const char *const bad[] = {
        "",
        "{",
        "[1,]",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "[1 2]",
        "1 2",
        "tru",
        "nul",
        "\"open",
        "\"\\x\"",
        "\"\\u12\"",
        "+1",
        "1e999",
        "1.2.3",
        "[1}",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\udc00\"",
        "\"\\u0000\"",
        "\"\n\"",
        "{\"a\":1,}",
        "-",
        "[[[",
        "\"a\\",
        "{\"a\":1 \"b\":2}",
        "inf",
        "nan",
        "0x10",
    };
    struct document j = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(parse(&j, bad[i]) != TERRANE_ERR_OK, "taken: %s", bad[i]);
        ck_assert_uint_eq(j.count, 0);
    }
    ck_assert_int_ne(document_parse(&j, "[1]\0x", 5), TERRANE_ERR_OK);
}
END_TEST

START_TEST(every_prefix_of_a_document_is_refused)
{
    static const char text[] = "{\"a\":[1,-2.5e3,\"x\\u00e9\\n\",{\"b\":[true,false,null]}],\"c\":{}}";
    struct document j = {0};
    for (size_t size = 0; size + 1 < sizeof text; size++)
        ck_assert_int_ne(document_parse(&j, text, size), TERRANE_ERR_OK);
    ck_assert_int_eq(document_parse(&j, text, sizeof text - 1), TERRANE_ERR_OK);
    document_close(&j);
}
END_TEST

START_TEST(depth_is_bounded)
{
    char text[400];
    struct document j = {0};
    memset(text, '[', 200);
    memset(text + 200, ']', 200);
    ck_assert_int_eq(document_parse(&j, text, 400), TERRANE_ERR_LIMIT);
    ck_assert_int_eq(document_parse(&j, text + 140, 120), TERRANE_ERR_OK);
    document_close(&j);
}
END_TEST

SUITE_MAIN("document", members_and_items_are_found_in_order, what_is_absent_or_of_another_kind_reads_as_the_default,
           escapes_become_what_they_stand_for, malformed_text_is_refused_and_leaves_nothing,
           every_prefix_of_a_document_is_refused, depth_is_bounded)
