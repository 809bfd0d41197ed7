/* Many query sockets asked at once: who answers is heard, who does not keeps nobody waiting. */
#include "io/asker.h"
#include "io/link.h"
#include "io/loop.h"
#include "suite.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct loop *loop;
static struct asker *asker;
static struct link *links[2];
static bool mute[2];
static uint32_t asked[2];
static struct {
    struct node_id node;
    uint64_t tag;
    char text[32];
} heard[32];
static uint32_t heard_count;

static void hear(void *context, struct node_id node, uint64_t tag, const uint8_t *bytes, size_t size)
{
    (void)context;
    ck_assert_uint_lt(heard_count, 32);
    ck_assert_uint_lt(size, 32);
    heard[heard_count].node = node;
    heard[heard_count].tag = tag;
    memcpy(heard[heard_count].text, bytes, size);
    heard[heard_count++].text[size] = '\0';
}

static void nothing(void *context)
{
    (void)context;
}

static void echo(void *context, const struct event *event)
{
    size_t at = (size_t)(uintptr_t)context;
    if (event->kind != EVENT_MESSAGE) return;
    asked[at]++;
    if (!mute[at]) link_reply(links[at], event->token, event->bytes, event->size);
}

static void turn(void)
{
    for (size_t i = 0; i < 2; i++)
        if (links[i] != NULL) link_drain(links[i], 64, echo, (void *)(uintptr_t)i);
    loop_poll(loop);
    (void)poll(NULL, 0, 1);
}

static void until_heard(uint32_t count)
{
    uint64_t until_us = loop_now_us() + 5000000;
    while (heard_count < count && loop_now_us() < until_us) turn();
    ck_assert_uint_eq(heard_count, count);
}

static bool ask(size_t at, uint64_t node, uint64_t tag, const char *text)
{
    return asker_ask(asker, (struct node_id){node}, link_urls(links[at])->query, tag, text, strlen(text));
}

static void setup(void)
{
    struct link_fault fault;
    struct link_options options = {.query_url = "tcp://127.0.0.1:0", .wake = nothing};
    memset(mute, 0, sizeof mute);
    memset(asked, 0, sizeof asked);
    heard_count = 0;
    ck_assert_int_eq(loop_open(&(struct loop_handlers){.context = NULL}, false, &loop), TERRANE_ERR_OK);
    ck_assert_int_eq(asker_open(loop_ev(loop), hear, NULL, &asker), TERRANE_ERR_OK);
    for (size_t i = 0; i < 2; i++) ck_assert_int_eq(link_open(&options, &links[i], &fault), TERRANE_ERR_OK);
}

START_TEST(answers_come_with_the_node_and_tag_of_their_question)
{
    setup();
    ck_assert(ask(0, 300, 1, "a"));
    ck_assert(ask(1, 301, 1, "b"));
    ck_assert(ask(1, 301, 2, "c"));
    until_heard(3);
    for (uint32_t i = 0; i < 3; i++) {
        const char *text = heard[i].node.v == 300 ? "a" : heard[i].tag == 1 ? "b" : "c";
        ck_assert_str_eq(heard[i].text, text);
    }
}
END_TEST

START_TEST(one_that_does_not_answer_keeps_nobody_waiting_and_its_questions_are_bounded)
{
    setup();
    mute[0] = true;
    ck_assert(ask(0, 300, 1, "?"));
    uint64_t until_us = loop_now_us() + 5000000;
    while (asked[0] == 0 && loop_now_us() < until_us) turn(); /* that one is open, the others wait */
    for (uint64_t tag = 2; tag <= ASKER_WAITING + 1; tag++) ck_assert(ask(0, 300, tag, "?"));
    ck_assert(!ask(0, 300, ASKER_WAITING + 2, "?"));
    ck_assert(ask(1, 301, 1, "b"));
    until_heard(1);
    ck_assert_uint_eq(heard[0].node.v, 301);
    ck_assert_uint_eq(asked[0], 1);
}
END_TEST

START_TEST(a_question_that_waits_is_not_asked_twice)
{
    setup();
    for (int i = 0; i < 20; i++) ck_assert(ask(0, 300, 7, "once"));
    until_heard(1);
    for (int i = 0; i < 50; i++) turn();
    ck_assert_uint_eq(heard_count, 1);
    ck_assert_uint_eq(asked[0], 1);
    ck_assert(ask(0, 300, 7, "again"));
    until_heard(2);
    ck_assert_str_eq(heard[1].text, "again");
}
END_TEST

START_TEST(answers_of_one_that_is_forgotten_are_not_told)
{
    setup();
    ck_assert(ask(0, 300, 1, "a"));
    ck_assert(ask(0, 300, 2, "b"));
    asker_forget(asker, (struct node_id){300});
    ck_assert(ask(0, 302, 3, "c")); /* its successor at the same place */
    until_heard(1);
    for (int i = 0; i < 50; i++) turn();
    ck_assert_uint_eq(heard_count, 1);
    ck_assert_uint_eq(heard[0].node.v, 302);
    struct asker_counters counters;
    asker_counters(asker, &counters);
    ck_assert_uint_eq(counters.sockets, 1);
}
END_TEST

/* Callers' sockets stay open (caller.h), so the process ends as those of the programs do. */
int main(void)
{
    const TTest *const tests[] = {answers_come_with_the_node_and_tag_of_their_question,
                                  one_that_does_not_answer_keeps_nobody_waiting_and_its_questions_are_bounded,
                                  a_question_that_waits_is_not_asked_twice,
                                  answers_of_one_that_is_forgotten_are_not_told};
    int code = suite_run("asker", tests, sizeof tests / sizeof *tests);
    fflush(stdout);
    _exit(code);
}
