/* Recorded movement: reading rows robustly, tracks at steps of 0.4 s, the made-up crowd. */
#include "tests/unit/suite.h"
#include "tools/recording.h"

#include <math.h>
#include <string.h>

static enum terrane_error add(struct recording *r, const char *text, struct recording_fault *fault)
{
    return recording_add(r, "some.txt", text, strlen(text), fault);
}

START_TEST(rows_become_one_track_a_person)
{
    struct recording r = {0};
    struct recording_fault fault;
    /* Out of order, with a comment, a blank line, CRLF, spaces for tabs and no newline at the end. */
    ck_assert_int_eq(add(&r,
                         "# people\n10\t1\t1.0\t2.0\r\n\n0.0\t1.0\t0\t0\n20 1 2 4\n10\t2\t5\t5\n"
                         "20\t2\t6\t5\n30\t3\t1\t1",
                         &fault),
                     TERRANE_ERR_OK);
    ck_assert_uint_eq(r.rows, 6);
    ck_assert_uint_eq(r.persons, 3);
    ck_assert_uint_eq(r.single, 1);
    ck_assert_uint_eq(r.track_count, 2);
    ck_assert_uint_eq(r.tracks[0].start, 0);
    ck_assert_uint_eq(r.tracks[0].count, 3);
    ck_assert_uint_eq(r.tracks[1].start, 1);
    ck_assert_uint_eq(r.tracks[1].count, 2);
    ck_assert_double_eq_tol(recording_seconds(&r.tracks[0]), 0.8, 1e-9);
    struct recording_point p = recording_at(&r, &r.tracks[0], 0.6);
    ck_assert_float_eq_tol(p.x, 1.5f, 1e-6f);
    ck_assert_float_eq_tol(p.y, 3.0f, 1e-6f);
    ck_assert_float_eq(recording_at(&r, &r.tracks[0], 99).x, 2.0f);
    ck_assert_float_eq(recording_at(&r, &r.tracks[0], -1).x, 0.0f);
    recording_close(&r);
}
END_TEST

START_TEST(a_short_gap_is_interpolated_and_a_long_one_parts_the_track)
{
    struct recording r = {0};
    struct recording_fault fault;
    ck_assert_int_eq(add(&r, "0 1 0 0\n40 1 4 0\n200 1 9 9\n210 1 9 8\n", &fault), TERRANE_ERR_OK);
    ck_assert_uint_eq(r.track_count, 2);
    ck_assert_uint_eq(r.persons, 1);
    ck_assert_uint_eq(r.tracks[0].count, 5);
    for (uint32_t i = 0; i < 5; i++) ck_assert_float_eq_tol(r.points[r.tracks[0].first + i].x, (float)i, 1e-6f);
    ck_assert_uint_eq(r.tracks[1].start, 20);
    recording_close(&r);
}
END_TEST

START_TEST(a_fault_names_the_file_and_the_line_and_adds_nothing)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"0 1 0 0\n10 1 abc 0\n", "some.txt:2: x is \"abc\""},
        {"0 1 0 0\n\n10 1 0\n", "some.txt:3: the row ends before its y"},
        {"0 1 0 0 7\n", "some.txt:1: \"7\" follows"},
        {"0 1 nan 0\n", "some.txt:1: x is \"nan\""},
        {"0 1 0 inf\n", "some.txt:1: y is \"inf\""},
        {"1e300 1 0 0\n", "some.txt:1: frame is \"1e300\""},
        {"0 1 0 0\n0 1 5 5\n", "person 1 is in frame 0 twice"},
        {"0 1 0 0\n0 2 5 5\n", "nobody is seen in two rows"},
        {"", "nobody is seen in two rows"},
        {"0 1 0 0\n900000000 1 0 0\n", "is more than"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct recording r = {0};
        struct recording_fault fault = {{0}};
        ck_assert_int_eq(add(&r, "0 1 0 0\n10 1 1 1\n", &fault), TERRANE_ERR_OK);
        ck_assert_int_ne(add(&r, bad[i].text, &fault), TERRANE_ERR_OK);
        ck_assert_msg(strstr(fault.text, bad[i].says) != NULL, "%s", fault.text);
        ck_assert_uint_eq(r.track_count, 1);
        ck_assert_uint_eq(r.point_count, 2);
        ck_assert_uint_eq(r.sources, 1);
        recording_close(&r);
    }
}
END_TEST

START_TEST(bytes_that_are_no_text_are_refused)
{
    struct recording r = {0};
    struct recording_fault fault;
    char noise[4096];
    for (size_t i = 0; i < sizeof noise; i++) noise[i] = (char)(i * 37 + i / 7);
    ck_assert_int_eq(recording_add(&r, "noise", noise, sizeof noise, &fault), TERRANE_ERR_CONFIG);
    ck_assert_uint_eq(r.point_count, 0);
    recording_close(&r);
}
END_TEST

START_TEST(the_made_up_crowd_walks_like_one)
{
    struct recording r = {0};
    recording_generate(&r, 7, 300);
    ck_assert_uint_ge(r.track_count, 300);
    double pace = recording_pace(&r);
    ck_assert(pace > 1.0 && pace < 1.5);
    uint32_t stops = 0;
    for (uint32_t i = 0; i < r.track_count; i++) {
        const struct track *t = &r.tracks[i];
        for (uint32_t j = t->first; j + 1 < t->first + t->count; j++) {
            double step = hypot(r.points[j + 1].x - r.points[j].x, r.points[j + 1].y - r.points[j].y);
            ck_assert(step < 3.0 * RECORDING_STEP_S);
            stops += step < 0.02 * RECORDING_STEP_S;
        }
    }
    ck_assert_uint_gt(stops, 100);
    recording_close(&r);
}
END_TEST

START_TEST(the_same_seed_makes_the_same_crowd)
{
    struct recording a = {0}, b = {0}, other = {0};
    recording_generate(&a, 1, 50);
    recording_generate(&b, 1, 50);
    recording_generate(&other, 2, 50);
    ck_assert_uint_eq(a.point_count, b.point_count);
    ck_assert_mem_eq(a.points, b.points, a.point_count * sizeof *a.points);
    ck_assert(other.point_count != a.point_count ||
              memcmp(a.points, other.points, a.point_count * sizeof *a.points) != 0);
    recording_close(&a);
    recording_close(&b);
    recording_close(&other);
}
END_TEST

SUITE_MAIN("recording", rows_become_one_track_a_person, a_short_gap_is_interpolated_and_a_long_one_parts_the_track,
           a_fault_names_the_file_and_the_line_and_adds_nothing, bytes_that_are_no_text_are_refused,
           the_made_up_crowd_walks_like_one, the_same_seed_makes_the_same_crowd)
