/* The console's pure parts: events from log lines, one look at the world from many answers, a STATUS without its lists.
 */
#include "common/array.h"
#include "console/consoles.h"
#include "console/journal.h"
#include "console/look.h"
#include "console/members.h"
#include "tests/unit/suite.h"

#include <string.h>

static struct writer out;

static const char *text_of(void)
{
    writer_raw(&out, "", 1);
    return (const char *)out.data;
}

static void note(struct journal *j, uint64_t at_ms, const char *line)
{
    journal_note(j, at_ms, LOG_INFO, line, strlen(line));
}

START_TEST(a_log_line_becomes_an_event_with_its_reason_unquoted)
{
    static struct journal j;
    note(&j, 5, "event=promoted leaves=4 first=\"03\" server=\"a b\" reason=\"it said \\\"no\\\" = so\"");
    note(&j, 6, "no event here");
    writer_clear(&out);
    journal_write(&j, 0, 10, &out);
    ck_assert_str_eq(text_of(), "[{\"seq\":1,\"at\":5,\"level\":\"info\",\"event\":\"promoted\",\"leaves\":\"4\","
                                "\"first\":\"03\",\"server\":\"a b\",\"reason\":\"it said \\\"no\\\" = so\"}]");
    journal_close(&j);
}
END_TEST

START_TEST(a_reader_gets_what_is_new_the_latest_first_to_go_when_it_asks_for_few)
{
    static struct journal j;
    for (uint64_t i = 1; i <= 4; i++) note(&j, i, "event=x");
    writer_clear(&out);
    journal_write(&j, 3, 10, &out);
    ck_assert_str_eq(text_of(), "[{\"seq\":4,\"at\":4,\"level\":\"info\",\"event\":\"x\"}]");
    writer_clear(&out);
    journal_write(&j, 4, 10, &out);
    ck_assert_str_eq(text_of(), "[]");
    writer_clear(&out);
    journal_write(&j, 1, 1, &out);
    ck_assert_ptr_nonnull(strstr(text_of(), "\"seq\":4"));
    ck_assert_ptr_null(strstr((const char *)out.data, "\"seq\":3"));
    writer_clear(&out);
    journal_write(&j, 99, 10, &out); /* of a former process: all is new */
    ck_assert_ptr_nonnull(strstr(text_of(), "\"seq\":1"));
    journal_close(&j);
}
END_TEST

START_TEST(the_journal_keeps_the_latest_lines_and_no_more)
{
    static struct journal j;
    for (uint64_t i = 1; i <= JOURNAL_LINES + 7; i++) note(&j, i, "event=x");
    writer_clear(&out);
    journal_write(&j, 0, UINT64_MAX, &out);
    ck_assert_ptr_nonnull(strstr(text_of(), "[{\"seq\":8,"));
    journal_close(&j);
}
END_TEST

START_TEST(lines_of_any_shape_are_read_to_their_end_and_no_further)
{
    static const char *const lines[] = {"event=",    "event=a b=\"", "event=a b=\"\\",
                                        "event=a =", "event=a b",    "event=\"a\"x=\"y\""};
    static struct journal j;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) note(&j, 1, lines[i]);
    char longest[3000];
    memset(longest, 'k', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    memcpy(longest, "event=", 6);
    note(&j, 1, longest);
    writer_clear(&out);
    journal_write(&j, 0, 10, &out);
    ck_assert_uint_eq(j.line_count, 7);
    ck_assert_ptr_nonnull(strstr(text_of(), "\"seq\":7"));
    journal_close(&j);
}
END_TEST

static void answer(struct writer *w, uint32_t columns, uint32_t total, uint32_t listed)
{
    writer_clear(w);
    survey_result_begin(
        w, &(struct survey_result){
               .tick = 9, .stride = 1, .total = total, .columns = columns, .rows = columns, .cell_count = 1});
    survey_result_cell(w, UINT32_MAX, (struct survey_cell){1, total});
    survey_result_entities(w, listed);
    for (uint32_t i = 0; i < listed; i++)
        survey_result_entity(w, &(struct survey_entity){.id = {i + 1}, .x = 1 << 20, .y = 0});
    survey_result_crossings(w, 0, 0);
}

START_TEST(a_look_is_pending_until_each_server_has_answered_and_adds_them_up)
{
    struct world world = world_default();
    struct look l = {0};
    struct survey_result r;
    struct writer w = {0};
    look_reset(&l,
               &(struct survey){.max_x = (1 << 21) - 1, .max_y = (1 << 21) - 1, .columns = 4, .rows = 4, .most = 5});
    l.wanted_us = 1;
    look_share(&l, (struct node_id){300});
    look_share(&l, (struct node_id){301});
    answer(&w, 4, 2, 2);
    ck_assert_int_eq(look_answer(&l, (struct node_id){300}, 1000, w.data, w.size, &r), TERRANE_ERR_OK);
    writer_clear(&out);
    look_write(&l, &world, 6000, &out);
    ck_assert_ptr_nonnull(strstr(text_of(), "\"pending\":true,\"total\":2,"));
    answer(&w, 4, 3, 3);
    ck_assert_int_eq(look_answer(&l, (struct node_id){301}, 2000, w.data, w.size, &r), TERRANE_ERR_OK);
    writer_clear(&out);
    look_write(&l, &world, 6000, &out);
    ck_assert_str_eq(text_of(),
                     "{\"pending\":false,\"total\":5,\"min_x\":0,\"min_y\":0,\"max_x\":12800,\"max_y\":12800,"
                     "\"columns\":4,\"rows\":4,\"servers\":["
                     "{\"node\":\"300\",\"age_ms\":5,\"tick\":9,\"stride\":1,\"total\":2,\"cells\":[1,2],"
                     "\"entities\":[\"1\",6400,0,\"2\",6400,0]},"
                     "{\"node\":\"301\",\"age_ms\":4,\"tick\":9,\"stride\":1,\"total\":3,\"cells\":[1,3],"
                     "\"entities\":[\"1\",6400,0,\"2\",6400,0,\"3\",6400,0]}]}");
    writer_close(&w);
    look_close(&l);
}
END_TEST

START_TEST(entities_are_listed_only_if_all_servers_together_have_few_enough)
{
    struct world world = world_default();
    struct look l = {0};
    struct survey_result r;
    struct writer w = {0};
    look_reset(&l, &(struct survey){.max_x = 9, .max_y = 9, .columns = 4, .rows = 4, .most = 4});
    for (uint64_t node = 300; node < 302; node++) {
        answer(&w, 4, 3, 3);
        ck_assert_int_eq(look_answer(&l, (struct node_id){node}, 1, w.data, w.size, &r), TERRANE_ERR_OK);
    }
    writer_clear(&out);
    look_write(&l, &world, 1, &out);
    ck_assert_ptr_nonnull(strstr(text_of(), "\"total\":6,"));
    ck_assert_ptr_null(strstr((const char *)out.data, "\"entities\":[\""));
    writer_close(&w);
    look_close(&l);
}
END_TEST

START_TEST(answers_to_another_question_and_broken_ones_are_refused)
{
    struct look l = {0};
    struct survey_result r;
    struct writer w = {0};
    look_reset(&l, &(struct survey){.max_x = 9, .max_y = 9, .columns = 4, .rows = 4});
    answer(&w, 8, 1, 0);
    ck_assert_int_eq(look_answer(&l, (struct node_id){300}, 1, w.data, w.size, &r), TERRANE_ERR_MESSAGE_RANGE);
    answer(&w, 4, 1, 0);
    ck_assert_int_ne(look_answer(&l, (struct node_id){300}, 1, w.data, w.size - 1, &r), TERRANE_ERR_OK);
    ck_assert_uint_eq(l.share_count, 0);
    writer_close(&w);
    look_close(&l);
}
END_TEST

START_TEST(a_server_that_has_gone_takes_its_part_of_the_look_along)
{
    struct world world = world_default();
    struct look l = {0};
    struct survey_result r;
    struct writer w = {0};
    look_reset(&l, &(struct survey){.max_x = 9, .max_y = 9, .columns = 4, .rows = 4});
    for (uint64_t node = 300; node < 302; node++) {
        answer(&w, 4, 1, 0);
        ck_assert_int_eq(look_answer(&l, (struct node_id){node}, 1, w.data, w.size, &r), TERRANE_ERR_OK);
    }
    look_forget(&l, (struct node_id){300});
    writer_clear(&out);
    look_write(&l, &world, 1, &out);
    ck_assert_ptr_nonnull(strstr(text_of(), "\"pending\":false,\"total\":1,"));
    ck_assert_ptr_null(strstr((const char *)out.data, "\"300\""));
    look_share(&l, (struct node_id){302}); /* in the place of the one that went */
    ck_assert_uint_eq(l.shares[1].answer.size, 0);
    writer_close(&w);
    look_close(&l);
}
END_TEST

START_TEST(an_object_is_copied_without_the_members_that_are_named)
{
    static const char *const names[] = {"long", "last", NULL};
    const char *json = "{\"a\":1,\"long\":[{\"x\":\"}]\\\"\"}, 2],\"b\":{\"long\":[]},\"c\" : \"x,y\",\"last\":null}";
    writer_clear(&out);
    json_without(&out, json, strlen(json), names);
    ck_assert_str_eq(text_of(), "{\"a\":1,\"b\":{\"long\":[]},\"c\":\"x,y\"}");
}
END_TEST

START_TEST(what_is_no_whole_object_yields_what_is_whole_of_it)
{
    static const char *const broken[] = {"",        "{",        "[1]",        "{\"a",       "{\"a\"",
                                         "{\"a\":", "{\"a\":1", "{\"a\":\"x", "{\"a\":[1}", "x"};
    static const char *const names[] = {NULL};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        /* A copy of exactly its size, so that reading on is seen. */
        size_t size = strlen(broken[i]);
        char *exact = malloc(size + 1);
        ck_assert_ptr_nonnull(exact);
        memcpy(exact, broken[i], size);
        char *tight = realloc(exact, size == 0 ? 1 : size);
        writer_clear(&out);
        json_without(&out, tight, size, names);
        ck_assert_str_eq(text_of(), "{}");
        free(tight);
    }
}
END_TEST

START_TEST(a_member_that_is_plain_text_is_found_and_others_are_not_taken_for_it)
{
    const char *json = "{\"url\":\"http://a:1\",\"n\":5,\"q\":\"a\\\"b\"}";
    char text[16];
    ck_assert(json_member_text(json, strlen(json), "url", text, sizeof text));
    ck_assert_str_eq(text, "http://a:1");
    ck_assert(!json_member_text(json, strlen(json), "url", text, 10));
    ck_assert(!json_member_text(json, strlen(json), "n", text, sizeof text));
    ck_assert(!json_member_text(json, strlen(json), "q", text, sizeof text));
    ck_assert(!json_member_text(json, strlen(json), "ur", text, sizeof text));
}
END_TEST

START_TEST(teardown)
{
    writer_close(&out);
    ck_assert_uint_eq(out.size, 0);
}
END_TEST

START_TEST(consoles_are_urls_without_a_path_and_nothing_that_a_header_could_not_bear)
{
    struct consoles consoles;
    char policy[CONSOLES_POLICY];
    ck_assert(consoles_parse("", &consoles) && consoles.count == 0);
    ck_assert(consoles_parse("http://localhost:7080/,https://[::1]:7081", &consoles));
    writer_clear(&out);
    consoles_write(&consoles, &out);
    ck_assert_str_eq(text_of(), "[\"http://localhost:7080\",\"https://[::1]:7081\"]");
    consoles_policy(&consoles, policy);
    ck_assert_ptr_nonnull(strstr(policy, "; connect-src 'self' http://localhost:7080 https://[::1]:7081"));
    static const char *const wrong[] = {
        "localhost:7080", "http://",        "http:///",           "http://a,",         ",http://a",
        "http://a b",     "http://a;b",     "http://a/path",      "ftp://a",           "http://a\r\nX: y",
        "http://a'b",     "javascript:a()", "http://a, http://b", "http://a,,http://b"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!consoles_parse(wrong[i], &consoles), "%s is taken", wrong[i]);
    char many[512] = "http://a";
    for (uint32_t i = 1; i < CONSOLES_MAX; i++) strcat(many, ",http://a");
    ck_assert(consoles_parse(many, &consoles));
    consoles_policy(&consoles, policy);
    ck_assert(!consoles_parse(strcat(many, ",http://a"), &consoles));
}
END_TEST

SUITE_MAIN("console", a_log_line_becomes_an_event_with_its_reason_unquoted,
           a_reader_gets_what_is_new_the_latest_first_to_go_when_it_asks_for_few,
           the_journal_keeps_the_latest_lines_and_no_more, lines_of_any_shape_are_read_to_their_end_and_no_further,
           a_look_is_pending_until_each_server_has_answered_and_adds_them_up,
           entities_are_listed_only_if_all_servers_together_have_few_enough,
           answers_to_another_question_and_broken_ones_are_refused,
           a_server_that_has_gone_takes_its_part_of_the_look_along,
           an_object_is_copied_without_the_members_that_are_named, what_is_no_whole_object_yields_what_is_whole_of_it,
           a_member_that_is_plain_text_is_found_and_others_are_not_taken_for_it,
           consoles_are_urls_without_a_path_and_nothing_that_a_header_could_not_bear, teardown)
