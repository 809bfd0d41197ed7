/* Map events and questions of the bots: right ones pass, each planted fault is counted by its kind. */
#include "common/geometry.h"
#include "tests/unit/suite.h"
#include "tools/checker.h"
#include "tools/hearing.h"
#include "tools/questions.h"

#include <string.h>

#define FIRST 77u
#define BOTS  10u

/* Bot i stands i * 100 units east of the first. */
static struct position place(uint32_t bot)
{
    return (struct position){500000 + (int32_t)bot * 100, 500000, 0};
}

static struct checker *line_of_bots(void)
{
    struct checker *c = checker_open(
        &(struct checker_options){.world = world_default(), .count = BOTS, .first_id = FIRST, .radius = 1000});
    for (uint32_t i = 0; i < BOTS; i++) checker_place(c, i, place(i));
    for (uint32_t i = 0; i < CHECKER_HISTORY; i++) checker_sample(c);
    checker_measure(c);
    return c;
}

/* An event at the first bot that reaches bots 0 to 3 exactly; `heard[i]` times by each. */
static struct hearing_counts event(struct checker *c, const uint32_t heard[BOTS])
{
    struct hearing *h = hearing_open(c, BOTS, FIRST);
    uint8_t payload[HEARING_PAYLOAD];
    uint64_t serial = hearing_begin(h, place(0), 300, 1000);
    ck_assert_uint_ne(serial, 0);
    hearing_payload(h, serial, payload);
    for (uint32_t i = 0; i < BOTS; i++)
        for (uint32_t n = 0; n < heard[i]; n++) hearing_heard(h, FIRST + i, payload, sizeof payload);
    ck_assert(hearing_complete(h) == (heard[0] > 0 && heard[1] > 0 && heard[2] > 0 && heard[3] > 0));
    hearing_judge(h, 1500, 501);
    ck_assert_uint_eq(hearing_open_count(h), 1);
    hearing_judge(h, 1500, 500);
    ck_assert_uint_eq(hearing_open_count(h), 0);
    struct hearing_counts counts = *hearing_counts(h);
    hearing_close(h);
    return counts;
}

START_TEST(who_hears_an_event_is_judged_exactly_in_the_calm)
{
    struct checker *c = line_of_bots();
    struct hearing_counts right = event(c, (uint32_t[BOTS]){1, 1, 1, 1});
    ck_assert_uint_eq(right.judged, 1);
    ck_assert_uint_eq(right.heard, 4);
    ck_assert_uint_eq(right.missed + right.false_heard + right.twice + right.unknown, 0);
    ck_assert_uint_eq(event(c, (uint32_t[BOTS]){1, 1, 1, 0}).missed, 1);
    ck_assert_uint_eq(event(c, (uint32_t[BOTS]){1, 1, 1, 1, 1}).false_heard, 1);
    ck_assert_uint_eq(event(c, (uint32_t[BOTS]){1, 3, 1, 1}).twice, 1);
    checker_close(c);
}
END_TEST

START_TEST(who_crosses_the_circle_may_hear_or_not)
{
    struct checker *c = line_of_bots();
    checker_place(c, 3, place(4)); /* left it just now */
    checker_place(c, 9, place(0)); /* came into it just now */
    checker_sample(c);
    checker_measure(c);
    for (uint32_t heard = 0; heard <= 1; heard++) {
        struct hearing *h = hearing_open(c, BOTS, FIRST);
        uint8_t payload[HEARING_PAYLOAD];
        hearing_payload(h, hearing_begin(h, place(0), 300, 0), payload);
        for (uint32_t bot = 0; bot < 3; bot++) hearing_heard(h, FIRST + bot, payload, sizeof payload);
        if (heard) hearing_heard(h, FIRST + 3, payload, sizeof payload);
        if (heard) hearing_heard(h, FIRST + 9, payload, sizeof payload);
        ck_assert(hearing_complete(h));
        hearing_judge(h, 1, 0);
        ck_assert_uint_eq(hearing_counts(h)->missed + hearing_counts(h)->false_heard, 0);
        hearing_close(h);
    }
    checker_close(c);
}
END_TEST

START_TEST(damaged_and_unknown_events_are_counted)
{
    struct checker *c = line_of_bots();
    struct hearing *h = hearing_open(c, BOTS, FIRST);
    uint8_t payload[HEARING_PAYLOAD];
    uint64_t serial = hearing_begin(h, place(0), 300, 0);
    hearing_payload(h, serial, payload);
    hearing_heard(h, FIRST + BOTS, payload, sizeof payload);
    ck_assert_uint_eq(hearing_counts(h)->unknown, 1);
    hearing_heard(h, FIRST, payload, sizeof payload - 1);
    ck_assert_uint_eq(hearing_counts(h)->unknown, 2);
    payload[20] ^= 1;
    hearing_heard(h, FIRST, payload, sizeof payload);
    ck_assert_uint_eq(hearing_counts(h)->unknown, 3);
    hearing_payload(h, serial + 1, payload);
    hearing_heard(h, FIRST, payload, sizeof payload);
    ck_assert_uint_eq(hearing_counts(h)->unknown, 4);
    struct hearing *other = hearing_open(c, BOTS, FIRST + 1000);
    hearing_payload(other, 1, payload);
    hearing_heard(h, FIRST, payload, sizeof payload); /* another swarm's is nobody's fault */
    ck_assert_uint_eq(hearing_counts(h)->unknown, 4);
    ck_assert_uint_eq(hearing_counts(h)->heard, 0);
    hearing_close(other);
    hearing_forget(h, serial);
    hearing_judge(h, 100, 0);
    ck_assert_uint_eq(hearing_counts(h)->judged, 0);
    for (uint32_t i = 0; i < HEARING_OPEN; i++) ck_assert_uint_ne(hearing_begin(h, place(0), 1, 0), 0);
    ck_assert_uint_eq(hearing_begin(h, place(0), 1, 0), 0);
    hearing_close(h);
    checker_close(c);
}
END_TEST

/* A circle around bot 0 that holds bots 0 to 2: what is found besides or instead is planted. */
static struct question_counts circle(uint32_t count, const uint32_t *bots, int32_t moved, bool failed)
{
    struct checker *c = line_of_bots();
    struct questions *q = questions_open(c, BOTS, FIRST);
    struct question question = {.kind = QUESTION_CIRCLE, .min = place(0), .radius = 200};
    ck_assert(questions_begin(q, 1, 5, &question));
    for (uint32_t i = 0; i < count; i++) {
        struct position p = place(bots[i]);
        p.x += moved;
        questions_found(q, 1, 5, FIRST + bots[i], p);
    }
    questions_done(q, 1, 5, failed);
    ck_assert_uint_eq(questions_open_count(q), 0);
    struct question_counts counts = *questions_counts(q);
    questions_close(q);
    checker_close(c);
    return counts;
}

START_TEST(answers_are_judged_exactly)
{
    struct question_counts right = circle(3, (uint32_t[]){2, 0, 1}, 0, false);
    ck_assert_uint_eq(right.answered, 1);
    ck_assert_uint_eq(right.missing + right.false_found + right.failed + right.unknown, 0);
    ck_assert_uint_eq(circle(2, (uint32_t[]){0, 1}, 0, false).missing, 1);
    ck_assert_uint_eq(circle(4, (uint32_t[]){0, 1, 2, 3}, 0, false).false_found, 1);
    ck_assert_uint_eq(circle(4, (uint32_t[]){0, 1, 2, 2}, 0, false).false_found, 1);
    ck_assert_uint_eq(circle(3, (uint32_t[]){0, 1, 2}, 1, false).false_found, 3);
    ck_assert_uint_eq(circle(0, NULL, 0, true).failed, 1);
}
END_TEST

START_TEST(rectangles_and_finds_hold_whom_they_name)
{
    struct checker *c = line_of_bots();
    struct questions *q = questions_open(c, BOTS, FIRST);
    struct question rectangle = {.kind = QUESTION_RECTANGLE, .min = place(3), .max = place(4)};
    struct question find = {.kind = QUESTION_FIND, .bot = 8};
    ck_assert(questions_begin(q, 0, 1, &rectangle) && questions_begin(q, 1, 1, &find));
    questions_found(q, 0, 1, FIRST + 3, place(3));
    questions_found(q, 0, 1, FIRST + 4, place(4));
    questions_found(q, 0, 1, FIRST + 5000, place(3)); /* somebody else's entity */
    questions_done(q, 0, 1, false);
    questions_found(q, 1, 1, FIRST + 8, place(8));
    questions_done(q, 1, 1, false);
    const struct question_counts *counts = questions_counts(q);
    ck_assert_uint_eq(counts->answered, 2);
    ck_assert_uint_eq(counts->missing + counts->false_found + counts->unknown, 0);
    questions_done(q, 1, 1, false);
    questions_found(q, 2, 9, FIRST, place(0));
    ck_assert_uint_eq(counts->unknown, 2);
    ck_assert(questions_begin(q, 0, 2, &find));
    questions_give_up(q);
    ck_assert_uint_eq(counts->failed, 1);
    ck_assert_uint_eq(questions_open_count(q), 0);
    questions_close(q);
    checker_close(c);
}
END_TEST

SUITE_MAIN("hearing", who_hears_an_event_is_judged_exactly_in_the_calm, who_crosses_the_circle_may_hear_or_not,
           damaged_and_unknown_events_are_counted, answers_are_judged_exactly, rectangles_and_finds_hold_whom_they_name)
