#include "common/log.h"

#include "suite.h"

#include <string.h>

#define WALL_US UINT64_C(1700000000000042) /* 2023-11-14T22:13:20.000042Z */

static char out[LOG_LINE_ROOM + 1];

static const char *line_of(enum log_style style, enum log_level level, const char *line, size_t size)
{
    struct log_entry entry = {.wall_us = WALL_US, .level = level, .program = "prog", .line = line, .size = size};
    size_t length = log_format(style, &entry, out);
    ck_assert_uint_le(length, LOG_LINE_ROOM);
    out[length] = '\0';
    ck_assert_int_eq(out[length - 1], '\n');
    ck_assert_ptr_eq(strchr(out, '\n'), &out[length - 1]);
    return out;
}

static void assert_line(enum log_style style, const char *line, const char *tail)
{
    const char *head = style == LOG_JSON
                           ? "{\"time\":\"2023-11-14T22:13:20.000042Z\",\"level\":\"info\",\"program\":\"prog\""
                           : "time=2023-11-14T22:13:20.000042Z level=info program=prog";
    const char *got = line_of(style, LOG_INFO, line, strlen(line));
    ck_assert_msg(strncmp(got, head, strlen(head)) == 0, "%s", got);
    ck_assert_str_eq(got + strlen(head), tail);
}

START_TEST(pairs_are_kept_as_they_are)
{
    assert_line(LOG_LOGFMT, "event=assign leaf=03 epoch=4 reason=\"joined late\"",
                " event=assign leaf=03 epoch=4 reason=\"joined late\"\n");
    assert_line(LOG_JSON, "event=assign leaf=03 epoch=4 share=0.25 delta=-3 reason=\"joined late\"",
                ",\"event\":\"assign\",\"leaf\":\"03\",\"epoch\":4,\"share\":0.25,\"delta\":-3,\"reason\":\"joined "
                "late\"}\n");
}
END_TEST

START_TEST(leading_words_are_the_message)
{
    assert_line(LOG_LOGFMT, "server joined name=a", " msg=\"server joined\" name=a\n");
    assert_line(LOG_JSON, "server joined name=a", ",\"msg\":\"server joined\",\"name\":\"a\"}\n");
    assert_line(LOG_JSON, "ready", ",\"msg\":\"ready\"}\n");
    assert_line(LOG_LOGFMT, "", "\n");
}
END_TEST

START_TEST(whatever_a_value_holds_it_stays_one_line_and_one_value)
{
    assert_line(LOG_LOGFMT, "name=\"a\nlevel=error\" x=1", " name=\"a\\nlevel=error\" x=1\n");
    assert_line(LOG_JSON, "name=\"say \\\"hi\\\"\"", ",\"name\":\"say \\\"hi\\\"\"}\n");
    assert_line(LOG_JSON, "name=a\tb\x01\xff", ",\"name\":\"a\\u0009b\\u0001\\u00ff\"}\n");
    assert_line(LOG_JSON, "a= b=\"\" c=\"open", ",\"a\":\"\",\"b\":\"\",\"c\":\"open\"}\n");
    assert_line(LOG_JSON, "n=007 m=1. k=1e5 j=-0.5 i=-",
                ",\"n\":\"007\",\"m\":\"1.\",\"k\":\"1e5\",\"j\":-0.5,\"i\":\"-\"}\n");
}
END_TEST

START_TEST(words_between_pairs_are_kept_too)
{
    assert_line(LOG_LOGFMT, "event=x stray y=1", " event=x word=stray y=1\n");
}
END_TEST

START_TEST(a_line_that_is_too_long_is_cut_and_says_so)
{
    char line[4096];
    memset(line, 'x', sizeof line);
    memcpy(line, "event=long first=1 rest=", 24);
    const char *got = line_of(LOG_JSON, LOG_ERROR, line, sizeof line);
    ck_assert_ptr_nonnull(strstr(got, "\"first\":1,\"cut\":true}\n"));
    ck_assert_ptr_nonnull(strstr(got, "\"level\":\"error\""));
    got = line_of(LOG_LOGFMT, LOG_WARNING, line, sizeof line);
    ck_assert_ptr_nonnull(strstr(got, " first=1 cut=true\n"));
}
END_TEST

START_TEST(the_calendar_is_right)
{
    const struct {
        uint64_t seconds;
        const char *says;
    } days[] = {{0, "1970-01-01T00:00:00"},          {951782399, "2000-02-28T23:59:59"},
                {951782400, "2000-02-29T00:00:00"},  {1709251199, "2024-02-29T23:59:59"},
                {1735689599, "2024-12-31T23:59:59"}, {1735689600, "2025-01-01T00:00:00"},
                {4107542400, "2100-03-01T00:00:00"}};
    for (size_t i = 0; i < sizeof days / sizeof *days; i++) {
        struct log_entry entry = {.wall_us = days[i].seconds * 1000000u + 7, .program = "p", .line = ""};
        out[log_format(LOG_LOGFMT, &entry, out)] = '\0';
        ck_assert_msg(strncmp(out + 5, days[i].says, 19) == 0, "%s is not %s", out, days[i].says);
        ck_assert_int_eq(strncmp(out + 24, ".000007Z ", 9), 0);
    }
}
END_TEST

START_TEST(any_bytes_give_one_line)
{
    char line[64];
    uint64_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        size_t size = (size_t)round % sizeof line;
        for (size_t i = 0; i < size; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            line[i] = "=\" \\\nab1\x80\0"[(seed >> 33) % 10];
        }
        line_of(round % 2 == 0 ? LOG_JSON : LOG_LOGFMT, LOG_DEBUG, line, size);
    }
}
END_TEST

SUITE_MAIN("log", pairs_are_kept_as_they_are, leading_words_are_the_message,
           whatever_a_value_holds_it_stays_one_line_and_one_value, words_between_pairs_are_kept_too,
           a_line_that_is_too_long_is_cut_and_says_so, the_calendar_is_right, any_bytes_give_one_line)
