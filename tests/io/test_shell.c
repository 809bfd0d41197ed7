/* The shell with a scripted core: what happens becomes the right event, and outputs are carried out in order. */
#include "ends.h"

#include "io/shell.h"
#include "proto/messages.h"

#include <signal.h>

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>

/* A core that notes its events and, at each, runs `react`. */
struct script {
    struct shell *shell;
    struct seen *items;
    uint32_t count, room;
    uint64_t deadline_us, tick_us, last_us;
    bool time_went_back;
    void (*react)(struct script *s, const struct event *in, uint64_t now_us, struct outbox *out);
    void *context;
    uint32_t stop_after_ticks;
    bool said_bye;
};

static void script_step(void *core, const struct event *in, uint64_t now_us, struct outbox *out)
{
    struct script *s = core;
    ARRAY_RESERVE(s->items, s->room, (size_t)s->count + 1);
    struct seen *item = &s->items[s->count++];
    *item = (struct seen){.event = *in, .bytes = malloc(in->size + 1)};
    if (in->size > 0) memcpy(item->bytes, in->bytes, in->size);
    item->bytes[in->size] = 0;
    if (now_us < s->last_us) s->time_went_back = true;
    s->last_us = now_us;
    if (in->kind == EVENT_TIMEOUT) s->deadline_us = UINT64_MAX;
    if (s->react != NULL) s->react(s, in, now_us, out);
}

static uint64_t script_deadline_us(const void *core)
{
    return ((const struct script *)core)->deadline_us;
}

static uint64_t script_tick_us(const void *core)
{
    return ((const struct script *)core)->tick_us;
}

static uint32_t script_count(const struct script *s, enum event_kind kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->count; i++) n += s->items[i].event.kind == kind;
    return n;
}

static const struct seen *script_nth(const struct script *s, enum event_kind kind, uint32_t n)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->items[i].event.kind == kind && n-- == 0) return &s->items[i];
    return NULL;
}

static void script_open(struct script *s, struct shell_options options)
{
    struct link_fault fault;
    options.no_signals = true;
    enum terrane_error error = shell_open(&options, &s->shell, &fault);
    ck_assert_msg(error == TERRANE_ERR_OK, "%s", fault.text);
    if (s->deadline_us == 0) s->deadline_us = UINT64_MAX;
}

static void script_start(struct script *s)
{
    shell_start(s->shell, &(struct shell_core){.core = s,
                                               .step = script_step,
                                               .deadline_us = script_deadline_us,
                                               .tick_us = s->tick_us != 0 ? script_tick_us : NULL});
}

static void script_close(struct script *s)
{
    ck_assert(!s->time_went_back);
    shell_close(s->shell);
    for (uint32_t i = 0; i < s->count; i++) free(s->items[i].bytes);
    free(s->items);
}

static void dispatch_until_readable(struct script *s)
{
    struct pollfd fd = {.fd = shell_fd(s->shell), .events = POLLIN};
    if (poll(&fd, 1, 5) == 1) shell_dispatch(s->shell);
}

/* Lets the embedded shells run until the condition holds. */
#define SHELLS_UNTIL(condition, ...)                                                                                   \
    do {                                                                                                               \
        struct script *const until_shells[] = {__VA_ARGS__};                                                           \
        uint64_t until_us = loop_now_us() + 20000000u;                                                                 \
        while (!(condition)) {                                                                                         \
            ck_assert_msg(loop_now_us() < until_us, "waited in vain for: %s", #condition);                             \
            for (size_t until_i = 0; until_i < sizeof until_shells / sizeof *until_shells; until_i++)                  \
                dispatch_until_readable(until_shells[until_i]);                                                        \
        }                                                                                                              \
    } while (0)

static void push(struct outbox *out, struct output like, const char *text, size_t size)
{
    outbox_push(out, like, text, size);
}

static void link_at_start(struct script *s, const struct event *in, uint64_t now_us, struct outbox *out)
{
    (void)now_us;
    const struct link_urls *to = s->context;
    if (in->kind == EVENT_START) {
        push(out, (struct output){.kind = OUTPUT_LINK, .node = NODE_COORDINATOR}, to->inbox, strlen(to->inbox) + 1);
        push(out, (struct output){.kind = OUTPUT_FEED_LINK, .node = node(40), .feed = 0}, to->sub, strlen(to->sub) + 1);
    }
    if (in->kind == EVENT_PEER_UP)
        for (const char *word = "abc"; *word != '\0'; word++)
            push(out, (struct output){.kind = OUTPUT_SEND, .node = NODE_COORDINATOR}, word, 1);
    if (in->kind == EVENT_FEED_UP) push(out, (struct output){.kind = OUTPUT_PUBLISH, .feed = 0}, "r/0/x", 5);
}

static void watch_at_start(struct script *s, const struct event *in, uint64_t now_us, struct outbox *out)
{
    (void)s, (void)now_us;
    if (in->kind == EVENT_START) push(out, (struct output){.kind = OUTPUT_WATCH}, "r/0/", 4);
}

START_TEST(start_comes_first_and_links_carry_packets_and_frames)
{
    struct script a = {.react = link_at_start}, b = {.react = watch_at_start};
    script_open(&b, (struct shell_options){.embedded = true, .link = {.inbox_url = ANY, .sub_url = ANY}});
    script_open(&a, (struct shell_options){.embedded = true, .link = {.feed_count = 1}});
    struct link_urls urls = *shell_urls(b.shell);
    a.context = &urls;
    script_start(&b);
    script_start(&a);
    SHELLS_UNTIL(script_count(&b, EVENT_MESSAGE) == 4, &a, &b);
    ck_assert_int_eq(a.items[0].event.kind, EVENT_START);
    ck_assert_uint_eq(script_nth(&a, EVENT_PEER_UP, 0)->event.node.v, NODE_COORDINATOR.v);
    ck_assert_uint_eq(script_nth(&a, EVENT_FEED_UP, 0)->event.node.v, 40);
    char packets[8] = "";
    for (uint32_t i = 0; i < 4; i++) {
        const struct seen *m = script_nth(&b, EVENT_MESSAGE, i);
        if (m->event.lane == LANE_INBOX)
            strcat(packets, (char *)m->bytes);
        else
            ck_assert_str_eq((char *)m->bytes, "r/0/x");
    }
    ck_assert_str_eq(packets, "abc");
    script_close(&a);
    SHELLS_UNTIL(link_quiet(shell_link(b.shell)), &b);
    script_close(&b);
}
END_TEST

START_TEST(messages_before_the_start_wait_for_it)
{
    struct script b = {0};
    struct end a;
    script_open(&b, (struct shell_options){.embedded = true, .link = {.inbox_url = ANY}});
    end_open(&a, (struct link_options){0});
    ck_assert_int_eq(link_peer(a.link, node(77), shell_urls(b.shell)->inbox), TERRANE_ERR_OK);
    WAIT_FOR(end_count(&a, EVENT_PEER_UP) == 1, &a);
    link_send(a.link, node(77), "early", 5);
    struct link_counters c = {0};
    WAIT_FOR((link_counters(shell_link(b.shell), &c), c.received[LANE_INBOX] == 1), &a);
    script_start(&b);
    ck_assert_uint_eq(b.count, 1);
    SHELLS_UNTIL(script_count(&b, EVENT_MESSAGE) == 1, &b);
    ck_assert_int_eq(b.items[0].event.kind, EVENT_START);
    end_close(&a);
    SHELLS_UNTIL(link_quiet(shell_link(b.shell)), &b);
    script_close(&b);
}
END_TEST

START_TEST(the_embedded_fd_is_readable_at_the_deadline_and_not_before)
{
    struct script s = {0};
    script_open(&s, (struct shell_options){.embedded = true});
    script_start(&s);
    shell_dispatch(s.shell);
    struct pollfd fd = {.fd = shell_fd(s.shell), .events = POLLIN};
    ck_assert_int_eq(poll(&fd, 1, 0), 0);
    for (int i = 0; i < 20; i++) {
        uint64_t at_us = loop_now_us() + 5000;
        s.deadline_us = at_us;
        shell_rearm(s.shell);
        ck_assert_int_eq(poll(&fd, 1, 20000), 1);
        ck_assert_uint_ge(loop_now_us(), at_us);
        shell_dispatch(s.shell);
        ck_assert_uint_eq(script_count(&s, EVENT_TIMEOUT), (uint32_t)i + 1);
        ck_assert_int_eq(poll(&fd, 1, 0), 0);
    }
    script_close(&s);
}
END_TEST

static void stuck(struct script *s, const struct event *in, uint64_t now_us, struct outbox *out)
{
    (void)now_us, (void)out;
    if (in->kind == EVENT_TIMEOUT) s->deadline_us = 1;
}

START_TEST(a_core_whose_deadline_never_moves_does_not_hold_the_caller)
{
    struct script s = {.react = stuck, .deadline_us = 1};
    script_open(&s, (struct shell_options){.embedded = true});
    script_start(&s);
    shell_dispatch(s.shell);
    ck_assert_uint_gt(script_count(&s, EVENT_TIMEOUT), 0);
    script_close(&s);
}
END_TEST

START_TEST(an_outbox_filled_by_calls_is_carried_out_by_flush)
{
    struct script s = {0};
    struct end b;
    script_open(&s, (struct shell_options){.embedded = true});
    end_open(&b, (struct link_options){.inbox_url = ANY});
    script_start(&s);
    const char *url = link_urls(b.link)->inbox;
    push(shell_outbox(s.shell), (struct output){.kind = OUTPUT_LINK, .node = node(30)}, url, strlen(url) + 1);
    shell_flush(s.shell);
    SHELLS_UNTIL(script_count(&s, EVENT_PEER_UP) == 1, &s);
    push(shell_outbox(s.shell), (struct output){.kind = OUTPUT_SEND, .node = node(30)}, "now", 3);
    shell_flush(s.shell);
    WAIT_FOR(end_count(&b, EVENT_MESSAGE) == 1, &b);
    push(shell_outbox(s.shell), (struct output){.kind = OUTPUT_UNLINK, .node = node(30)}, NULL, 0);
    shell_flush(s.shell);
    WAIT_FOR((shell_flush(s.shell), link_quiet(b.link)), &b);
    script_close(&s);
    end_close(&b);
}
END_TEST

/* A store that answers LOAD at once and SAVE when told. */
struct late_store {
    struct script *script;
    uint64_t token;
};

static void late_execute(void *context, enum store_operation operation, uint64_t token, const uint8_t *bytes,
                         size_t size)
{
    struct late_store *store = context;
    if (operation == STORE_LOAD)
        shell_stored(store->script->shell, token, TERRANE_ERR_OK, (const uint8_t *)"map", 3);
    else
        store->token = token;
    ck_assert(operation == STORE_LOAD || (size == 4 && memcmp(bytes, "save", 4) == 0));
}

static void store_twice(struct script *s, const struct event *in, uint64_t now_us, struct outbox *out)
{
    (void)s, (void)now_us;
    if (in->kind == EVENT_START)
        push(out, (struct output){.kind = OUTPUT_STORE, .operation = STORE_LOAD, .token = 7}, NULL, 0);
    if (in->kind == EVENT_STORED && in->token == 7)
        push(out, (struct output){.kind = OUTPUT_STORE, .operation = STORE_SAVE, .token = 8}, "save", 4);
}

START_TEST(a_store_may_answer_at_once_or_later)
{
    struct script s = {.react = store_twice};
    struct late_store store = {.script = &s};
    script_open(&s, (struct shell_options){.embedded = true});
    shell_set_store(s.shell, (struct shell_store){.context = &store, .execute = late_execute});
    script_start(&s);
    ck_assert_uint_eq(script_count(&s, EVENT_STORED), 1);
    ck_assert_str_eq((char *)script_nth(&s, EVENT_STORED, 0)->bytes, "map");
    ck_assert_uint_eq(store.token, 8);
    shell_stored(s.shell, 8, TERRANE_ERR_STORE_CONFLICT, NULL, 0);
    ck_assert_uint_eq(script_count(&s, EVENT_STORED), 2);
    ck_assert_int_eq(script_nth(&s, EVENT_STORED, 1)->event.error, TERRANE_ERR_STORE_CONFLICT);
    script_close(&s);
}
END_TEST

START_TEST(without_a_store_the_answer_is_that_there_is_none)
{
    struct script s = {.react = store_twice};
    script_open(&s, (struct shell_options){.embedded = true});
    script_start(&s);
    ck_assert_uint_eq(script_count(&s, EVENT_STORED), 2);
    ck_assert_int_eq(script_nth(&s, EVENT_STORED, 0)->event.error, TERRANE_ERR_STORE_UNAVAILABLE);
    script_close(&s);
}
END_TEST

static void answer_odd(struct script *s, const struct event *in, uint64_t now_us, struct outbox *out)
{
    (void)s, (void)now_us;
    if (in->kind == EVENT_MESSAGE && in->bytes[0] % 2 == 1)
        push(out, (struct output){.kind = OUTPUT_REPLY, .token = in->token}, "answer", 6);
}

START_TEST(a_query_that_the_core_ignores_is_answered_with_a_fault)
{
    struct script s = {.react = answer_odd};
    nng_socket req[2];
    script_open(&s, (struct shell_options){.embedded = true, .query_patience_us = 50000, .link = {.query_url = ANY}});
    script_start(&s);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(nng_req0_open(&req[i]), 0);
        ck_assert_int_eq(nng_dial(req[i], shell_urls(s.shell)->query, NULL, 0), 0);
        ck_assert_int_eq(nng_send(req[i], i == 0 ? (char[]){"2"} : (char[]){"1"}, 1, 0), 0);
    }
    nng_msg *got[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) SHELLS_UNTIL(nng_recvmsg(req[i], &got[i], NNG_FLAG_NONBLOCK) == 0, &s);
    ck_assert_uint_eq(nng_msg_len(got[1]), 6);
    struct fault fault;
    ck_assert_int_eq(fault_decode(cursor_of(nng_msg_body(got[0]), nng_msg_len(got[0])), &fault), TERRANE_ERR_OK);
    ck_assert_int_eq(fault.error, TERRANE_ERR_TIMED_OUT);
    for (int i = 0; i < 2; i++) {
        nng_msg_free(got[i]);
        nng_close(req[i]);
    }
    SHELLS_UNTIL(link_quiet(shell_link(s.shell)), &s);
    script_close(&s);
}
END_TEST

static void answer_status(struct script *s, const struct event *in, uint64_t now_us, struct outbox *out)
{
    (void)now_us;
    if (in->kind != EVENT_MESSAGE) return;
    struct writer w = {0};
    status_encode(&w, &(struct status){.json = s->context});
    outbox_push(out, (struct output){.kind = OUTPUT_REPLY, .token = in->token}, w.data, w.size);
    writer_close(&w);
}

START_TEST(a_status_answer_carries_the_links_counters_too)
{
    struct script s = {.react = answer_status};
    nng_socket req;
    nng_msg *got = NULL;
    struct status status;
    script_open(&s, (struct shell_options){.embedded = true, .link = {.query_url = ANY}});
    script_start(&s);
    ck_assert_int_eq(nng_req0_open(&req), 0);
    ck_assert_int_eq(nng_dial(req, shell_urls(s.shell)->query, NULL, 0), 0);
    const char *const answers[] = {"{\"role\":\"x\"}", "{}", "[1]"};
    for (int i = 0; i < 3; i++) {
        s.context = (void *)(uintptr_t)answers[i];
        ck_assert_int_eq(nng_send(req, (char[]){"?"}, 1, 0), 0);
        SHELLS_UNTIL(nng_recvmsg(req, &got, NNG_FLAG_NONBLOCK) == 0, &s);
        ck_assert_int_eq(status_decode(cursor_of(nng_msg_body(got), nng_msg_len(got)), &status), TERRANE_ERR_OK);
        char *json = strndup(status.json, status.size);
        nng_msg_free(got);
        if (i == 0) {
            ck_assert_int_eq(strncmp(json, "{\"role\":\"x\",\"io\":{\"terrane_io_", 30), 0);
            ck_assert_ptr_nonnull(strstr(json, "\"terrane_io_received_total{lane=\\\"query\\\"}\":1,"));
            ck_assert_int_eq(strcmp(json + strlen(json) - 2, "}}"), 0);
        } else {
            ck_assert_str_eq(json, answers[i]); /* nothing to add to */
        }
        free(json);
    }
    nng_close(req);
    SHELLS_UNTIL(link_quiet(shell_link(s.shell)), &s);
    script_close(&s);
}
END_TEST

static void stop_at_tick(struct script *s, const struct event *in, uint64_t now_us, struct outbox *out)
{
    (void)now_us, (void)out;
    if (in->kind != EVENT_TICK) return;
    if (script_count(s, EVENT_TICK) == 5) s->tick_us = 4000;
    if (script_count(s, EVENT_TICK) == s->stop_after_ticks) shell_stop(s->shell);
}

START_TEST(the_loop_ticks_at_the_rate_that_the_core_wants)
{
    struct script s = {.react = stop_at_tick, .tick_us = 10000, .stop_after_ticks = 10};
    script_open(&s, (struct shell_options){.link = {.inbox_url = ANY}});
    script_start(&s);
    uint64_t began_us = loop_now_us();
    shell_run(s.shell);
    ck_assert_uint_eq(script_count(&s, EVENT_TICK), 10);
    ck_assert_uint_ge(loop_now_us() - began_us, 5 * 10000 - 1000 + 5 * 4000);
    ck_assert_uint_eq(loop_ticker(shell_loop(s.shell))->interval_us, 4000);
    script_close(&s);
}
END_TEST

static void stop_at_message(struct script *s, const struct event *in, uint64_t now_us, struct outbox *out)
{
    (void)out;
    if (in->kind == EVENT_START) s->deadline_us = now_us + 5000;
    if (in->kind == EVENT_TIMEOUT) {
        struct end *a = s->context;
        link_send(a->link, node(77), "stop", 4);
    }
    if (in->kind == EVENT_MESSAGE) shell_stop(s->shell);
}

START_TEST(the_loop_gives_timeouts_and_messages)
{
    struct script s = {.react = stop_at_message};
    struct end a;
    script_open(&s, (struct shell_options){.link = {.inbox_url = ANY}});
    end_open(&a, (struct link_options){0});
    ck_assert_int_eq(link_peer(a.link, node(77), shell_urls(s.shell)->inbox), TERRANE_ERR_OK);
    WAIT_FOR(end_count(&a, EVENT_PEER_UP) == 1, &a);
    s.context = &a;
    script_start(&s);
    shell_run(s.shell);
    ck_assert_uint_eq(script_count(&s, EVENT_TIMEOUT), 1);
    ck_assert_uint_eq(script_count(&s, EVENT_MESSAGE), 1);
    end_close(&a);
    while (!link_quiet(shell_link(s.shell))) continue;
    script_close(&s);
}
END_TEST

static void script_say_bye(void *core, uint64_t now_us, struct outbox *out)
{
    struct script *s = core;
    (void)now_us, (void)out;
    ck_assert(!s->said_bye);
    s->said_bye = true;
    s->stop_after_ticks = script_count(s, EVENT_TICK) + 3;
}

static bool script_closed(const void *core)
{
    const struct script *s = core;
    return s->said_bye && script_count(s, EVENT_TICK) >= s->stop_after_ticks;
}

static void signal_at_tick(struct script *s, const struct event *in, uint64_t now_us, struct outbox *out)
{
    (void)now_us, (void)out;
    if (in->kind == EVENT_TICK && script_count(s, EVENT_TICK) == 2) raise(SIGTERM);
}

START_TEST(a_core_that_says_bye_ends_the_loop_itself)
{
    struct script s = {.react = signal_at_tick, .tick_us = 10000};
    struct link_fault fault;
    enum terrane_error error = shell_open(&(struct shell_options){.link = {.inbox_url = ANY}}, &s.shell, &fault);
    ck_assert_int_eq(error, TERRANE_ERR_OK);
    s.deadline_us = UINT64_MAX;
    shell_start(s.shell, &(struct shell_core){.core = &s,
                                              .step = script_step,
                                              .deadline_us = script_deadline_us,
                                              .tick_us = script_tick_us,
                                              .close = script_say_bye,
                                              .closed = script_closed});
    shell_run(s.shell);
    ck_assert(script_closed(&s));
    script_close(&s);
}
END_TEST

START_TEST(node_ids_are_above_the_reserved_and_never_the_same)
{
    struct node_id a = shell_node_id(), b = shell_node_id();
    ck_assert_uint_ge(a.v, 16);
    ck_assert_uint_ne(a.v, b.v);
}
END_TEST

SUITE_MAIN("shell", start_comes_first_and_links_carry_packets_and_frames, messages_before_the_start_wait_for_it,
           the_embedded_fd_is_readable_at_the_deadline_and_not_before,
           a_core_whose_deadline_never_moves_does_not_hold_the_caller,
           an_outbox_filled_by_calls_is_carried_out_by_flush, a_store_may_answer_at_once_or_later,
           without_a_store_the_answer_is_that_there_is_none, a_query_that_the_core_ignores_is_answered_with_a_fault,
           a_status_answer_carries_the_links_counters_too, the_loop_ticks_at_the_rate_that_the_core_wants,
           the_loop_gives_timeouts_and_messages, a_core_that_says_bye_ends_the_loop_itself,
           node_ids_are_above_the_reserved_and_never_the_same)
