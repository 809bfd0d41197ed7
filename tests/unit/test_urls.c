#include "common/urls.h"
#include "tests/unit/suite.h"

#include <string.h>

START_TEST(one_url_has_its_turn_for_ever)
{
    struct urls urls;
    ck_assert(urls_parse("tcp://a:1", &urls));
    ck_assert_uint_eq(urls.count, 1);
    ck_assert(!urls_turn(&urls, UINT64_MAX - 1));
    ck_assert_str_eq(urls_now(&urls), "tcp://a:1");
}
END_TEST

START_TEST(several_have_their_turns_one_after_another)
{
    struct urls urls;
    ck_assert(urls_parse("tcp://a:1,tcp://b:2,tcp://c:3", &urls));
    ck_assert_str_eq(urls_now(&urls), "tcp://a:1");
    urls.turn_us = 1000;
    ck_assert(!urls_turn(&urls, 999));
    ck_assert(urls_turn(&urls, 1000));
    ck_assert_str_eq(urls_now(&urls), "tcp://b:2");
    ck_assert(!urls_turn(&urls, 1000 + URLS_TURN_US - 1));
    ck_assert(urls_turn(&urls, 1000 + URLS_TURN_US));
    ck_assert(urls_turn(&urls, 1000 + 2 * URLS_TURN_US));
    ck_assert_str_eq(urls_now(&urls), "tcp://a:1");
}
END_TEST

START_TEST(lists_that_are_none_are_refused)
{
    struct urls urls;
    char nine[256] = "a", full[LIMIT_URL + 8] = "";
    for (uint32_t i = 0; i < URLS_MAX; i++) strcat(nine, ",a");
    memset(full, 'a', LIMIT_URL);
    ck_assert(!urls_parse("", &urls));
    ck_assert(!urls_parse("a,", &urls));
    ck_assert(!urls_parse(",a", &urls));
    ck_assert(!urls_parse("a,,b", &urls));
    ck_assert(!urls_parse(nine, &urls));
    ck_assert(urls_parse(nine + 2, &urls));
    ck_assert(!urls_parse(full, &urls));
    ck_assert(urls_parse(full + 1, &urls));
}
END_TEST

SUITE_MAIN("urls", one_url_has_its_turn_for_ever, several_have_their_turns_one_after_another,
           lists_that_are_none_are_refused)
