/* Order within one dispatch: first what has arrived (at most a batch, so that time is looked at in between), then a
 * deadline that has passed, then, once, the second attempts of refused sends. Each step's outbox is carried out before
 * the next step. */
#include "io/shell.h"

#include "common/array.h"
#include "common/check.h"
#include "io/ready.h"
#include "io/vitals.h"
#include "proto/messages.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>

#define BATCH_MESSAGES    1024u
#define BATCH_TIMEOUTS    16u
#define QUERY_PATIENCE_US 5000000u
#define COMPLAIN_EACH_US  10000000u
#define REFUSED_EACH_US   5000000u /* it walks all of nng's statistics */
#define FINISH_MS         100

/* Answers of the store that came while a step or its outbox was under way. */
struct stored {
    uint64_t token;
    enum terrane_error error;
    uint8_t *bytes;
    size_t size;
};

struct question {
    uint64_t token, until_us;
};

struct shell {
    struct link *link;
    struct loop *loop; /* NULL: embedded */
    struct ready ready;
    struct shell_core core;
    struct shell_store store;
    struct shell_log log;
    struct outbox out;
    bool started, stepping, dispatching;
    struct stored *stored;
    uint32_t stored_count, stored_room;
    uint64_t patience_us;
    struct question *questions; /* unanswered, oldest first */
    uint32_t question_count, question_room;
    struct link_counters told; /* what the log has said of drops, and of ticks */
    uint64_t told_us, told_late, told_skipped;
    struct metrics metrics;
    struct metric_id tick_time;
    struct writer joined;
    uint64_t refused, refused_us;
};

struct node_id shell_node_id(void)
{
    struct node_id node = {0};
    while (node.v < 16) CHECK(getrandom(&node.v, sizeof node.v, 0) == (ssize_t)sizeof node.v);
    return node;
}

static void say(struct shell *s, enum log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say(struct shell *s, enum log_level level, const char *format, ...)
{
    char line[512];
    va_list arguments;
    if (s->log.write == NULL) return;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (size < 0) return;
    s->log.write(s->log.context, level, line, (size_t)size < sizeof line ? (size_t)size : sizeof line - 1);
}

/* Queries */

static void question_opened(struct shell *s, uint64_t token, uint64_t now_us)
{
    ARRAY_RESERVE(s->questions, s->question_room, (size_t)s->question_count + 1);
    s->questions[s->question_count++] = (struct question){token, now_us + s->patience_us};
}

static void question_closed(struct shell *s, uint64_t token)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->question_count; i++)
        if (s->questions[i].token != token) s->questions[kept++] = s->questions[i];
    s->question_count = kept;
}

static void refuse_old_questions(struct shell *s, uint64_t now_us)
{
    while (s->question_count > 0 && s->questions[0].until_us <= now_us) {
        struct fault fault = {.error = TERRANE_ERR_TIMED_OUT};
        struct writer w = {0};
        snprintf(fault.text, sizeof fault.text, "%s", "the process has not answered the query in time");
        fault_encode(&w, &fault);
        link_reply(s->link, s->questions[0].token, w.data, w.size);
        writer_close(&w);
        question_closed(s, s->questions[0].token);
    }
}

/* Outputs */

static void carry_link(struct shell *s, const struct output *o, const char *url)
{
    CHECK(o->size > 0 && url[o->size - 1] == '\0');
    enum terrane_error error =
        o->kind == OUTPUT_LINK ? link_peer(s->link, o->node, url) : link_feed(s->link, o->feed, o->node, url);
    if (error != TERRANE_ERR_OK)
        say(s, LOG_WARNING, "event=link_refused node=%" PRIx64 " url=\"%.128s\" error=%s", o->node.v, url,
            terrane_error_name(error));
}

static void carry_store(struct shell *s, const struct output *o, const uint8_t *bytes)
{
    if (s->store.execute != NULL)
        s->store.execute(s->store.context, o->operation, o->token, bytes, o->size);
    else
        shell_stored(s, o->token, TERRANE_ERR_STORE_UNAVAILABLE, NULL, 0);
}

const struct metrics *shell_metrics(struct shell *s)
{
    struct link_counters c;
    uint64_t now_us = loop_now_us();
    if (s->refused_us == 0 || now_us - s->refused_us >= REFUSED_EACH_US) {
        s->refused = link_refused(s->link);
        s->refused_us = now_us;
    }
    link_counters(s->link, &c);
    vitals_collect(&c, s->refused, s->loop != NULL && s->core.tick_us != NULL ? loop_ticker(s->loop) : NULL,
                   &s->metrics);
    vitals_process(&s->metrics);
    return &s->metrics;
}

static void carry_reply(struct shell *s, const struct output *o, const uint8_t *bytes)
{
    enum message_kind kind;
    bool is_status = message_kind_of(cursor_of(bytes, o->size), &kind) == TERRANE_ERR_OK && kind == MESSAGE_STATUS;
    question_closed(s, o->token);
    if (is_status && vitals_join(bytes, o->size, shell_metrics(s), &s->joined))
        link_reply(s->link, o->token, s->joined.data, s->joined.size);
    else
        link_reply(s->link, o->token, bytes, o->size);
}

static void carry(struct shell *s, const struct output *o, const uint8_t *bytes)
{
    switch (o->kind) {
    case OUTPUT_SEND: link_send(s->link, o->node, bytes, o->size); break;
    case OUTPUT_PUBLISH: link_publish(s->link, o->feed, bytes, o->size); break;
    case OUTPUT_REPLY: carry_reply(s, o, bytes); break;
    case OUTPUT_STORE: carry_store(s, o, bytes); break;
    case OUTPUT_WATCH: link_watch(s->link, bytes, o->size); break;
    case OUTPUT_UNWATCH: link_unwatch(s->link, bytes, o->size); break;
    case OUTPUT_LINK:
    case OUTPUT_FEED_LINK: carry_link(s, o, (const char *)bytes); break;
    case OUTPUT_UNLINK: link_unpeer(s->link, o->node); break;
    case OUTPUT_FEED_UNLINK: link_unfeed(s->link, o->feed, o->node); break;
    case OUTPUT_LOG:
        if (s->log.write != NULL) s->log.write(s->log.context, o->level, (const char *)bytes, o->size);
        break;
    }
}

static void carry_all(struct shell *s)
{
    for (size_t i = 0; i < s->out.count; i++) carry(s, &s->out.items[i], outbox_bytes(&s->out, &s->out.items[i]));
    outbox_clear(&s->out);
}

/* Steps */

static void step(struct shell *s, const struct event *event)
{
    CHECK(s->started && !s->stepping);
    s->stepping = true;
    s->core.step(s->core.core, event, loop_now_us(), &s->out);
    carry_all(s);
    s->stepping = false;
}

static void step_stored(struct shell *s)
{
    for (uint32_t i = 0; i < s->stored_count; i++) {
        struct stored answer = s->stored[i]; /* the step may queue more */
        struct event event = {.kind = EVENT_STORED,
                              .token = answer.token,
                              .error = answer.error,
                              .bytes = answer.bytes,
                              .size = answer.size};
        step(s, &event);
        free(answer.bytes);
    }
    s->stored_count = 0;
}

static void arrived(void *context, const struct event *event)
{
    struct shell *s = context;
    if (event->kind == EVENT_MESSAGE && event->lane == LANE_QUERY) question_opened(s, event->token, loop_now_us());
    step(s, event);
    step_stored(s);
}

/* Says what has been dropped and what was late since the last time, at most once in a while: drops are counted, never
 * silent. */
static void complain(struct shell *s, uint64_t now_us)
{
    if (now_us - s->told_us < COMPLAIN_EACH_US) return;
    struct link_counters c;
    link_counters(s->link, &c);
    const struct link_counters *t = &s->told;
    uint64_t inbound = c.dropped_full[LANE_INBOX] - t->dropped_full[LANE_INBOX];
    uint64_t feed = c.dropped_full[LANE_FEED] - t->dropped_full[LANE_FEED];
    uint64_t full = c.send_full - t->send_full, errors = c.send_errors - t->send_errors;
    uint64_t publish = c.publish_errors - t->publish_errors, oversize = c.send_oversize - t->send_oversize;
    if (inbound + feed + full + errors + publish + oversize > 0)
        say(s, LOG_WARNING,
            "event=dropped inbox_full=%" PRIu64 " feed_full=%" PRIu64 " send_full=%" PRIu64 " send_errors=%" PRIu64
            " publish_errors=%" PRIu64 " oversize=%" PRIu64,
            inbound, feed, full, errors, publish, oversize);
    s->told = c;
    s->told_us = now_us;
    if (s->loop == NULL) return;
    const struct ticker *ticks = loop_ticker(s->loop);
    if (ticks->late > s->told_late)
        say(s, LOG_WARNING, "event=late_ticks late=%" PRIu64 " skipped=%" PRIu64 " worst_us=%" PRIu64,
            ticks->late - s->told_late, ticks->skipped - s->told_skipped, ticks->late_worst_us);
    s->told_late = ticks->late;
    s->told_skipped = ticks->skipped;
}

static uint64_t deadline_us(const struct shell *s)
{
    uint64_t at_us = s->core.deadline_us(s->core.core);
    if (s->question_count > 0 && s->questions[0].until_us < at_us) at_us = s->questions[0].until_us;
    return at_us;
}

void shell_rearm(struct shell *s)
{
    if (!s->started || s->stepping || s->dispatching) return;
    if (s->loop == NULL) {
        ready_at(&s->ready, deadline_us(s));
        return;
    }
    loop_deadline(s->loop, deadline_us(s));
    if (s->core.tick_us != NULL) loop_tick(s->loop, s->core.tick_us(s->core.core));
}

static void timeouts(struct shell *s)
{
    /* A core whose deadline never moves on must not hold the loop. */
    for (uint32_t i = 0; i < BATCH_TIMEOUTS; i++) {
        uint64_t now_us = loop_now_us();
        refuse_old_questions(s, now_us);
        if (s->core.deadline_us(s->core.core) > now_us) return;
        step(s, &(struct event){.kind = EVENT_TIMEOUT});
        step_stored(s);
    }
}

static void begin(struct shell *s)
{
    CHECK(s->started && !s->dispatching);
    s->dispatching = true;
}

static void end(struct shell *s)
{
    link_flush(s->link);
    complain(s, loop_now_us());
    s->dispatching = false;
    if (s->core.closed != NULL && s->core.closed(s->core.core)) shell_stop(s);
    shell_rearm(s);
}

void shell_dispatch(struct shell *s)
{
    begin(s);
    if (s->loop == NULL) ready_clear(&s->ready);
    carry_all(s);
    step_stored(s);
    bool more = link_drain(s->link, BATCH_MESSAGES, arrived, s);
    timeouts(s);
    end(s);
    if (!more) return;
    if (s->loop == NULL)
        ready_ring(&s->ready);
    else
        loop_wake(s->loop);
}

static void woken(void *context)
{
    struct shell *s = context;
    if (s->started) shell_dispatch(s);
}

static void deadline_came(void *context)
{
    struct shell *s = context;
    begin(s);
    timeouts(s);
    end(s);
}

static void tick_came(void *context, uint64_t late_us)
{
    struct shell *s = context;
    uint64_t began_us = loop_now_us();
    begin(s);
    /* What has arrived belongs to this tick. */
    bool more = link_drain(s->link, BATCH_MESSAGES, arrived, s);
    step(s, &(struct event){.kind = EVENT_TICK, .late_us = late_us});
    step_stored(s);
    end(s);
    metrics_observe(&s->metrics, s->tick_time, loop_now_us() - began_us);
    if (more) loop_wake(s->loop);
}

void shell_stored(struct shell *s, uint64_t token, enum terrane_error error, const uint8_t *bytes, size_t size)
{
    struct stored answer = {.token = token, .error = error, .size = size};
    if (size > 0) {
        answer.bytes = malloc(size);
        CHECK(answer.bytes != NULL);
        memcpy(answer.bytes, bytes, size);
    }
    ARRAY_RESERVE(s->stored, s->stored_room, (size_t)s->stored_count + 1);
    s->stored[s->stored_count++] = answer;
    if (s->stepping || s->dispatching || !s->started) return;
    begin(s);
    step_stored(s);
    end(s);
}

struct outbox *shell_outbox(struct shell *s)
{
    return &s->out;
}

void shell_flush(struct shell *s)
{
    if (!s->started || s->stepping || s->dispatching) return;
    begin(s);
    carry_all(s);
    step_stored(s);
    end(s);
}

/* Life */

static void wake_loop(void *context)
{
    loop_wake(((struct shell *)context)->loop);
}

static void wake_ready(void *context)
{
    ready_ring(&((struct shell *)context)->ready);
}

static void stop_came(void *context)
{
    struct shell *s = context;
    say(s, LOG_INFO, "event=stop cause=signal");
    if (s->core.close == NULL || !s->started) {
        shell_stop(s);
        return;
    }
    begin(s);
    s->core.close(s->core.core, loop_now_us(), &s->out);
    carry_all(s);
    step_stored(s);
    end(s);
}

/* One descriptor a pipe: a coordinator of a large world needs more than the usual soft limit. */
static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

enum terrane_error shell_open(const struct shell_options *options, struct shell **out, struct link_fault *fault)
{
    *out = NULL;
    struct shell *s = calloc(1, sizeof *s);
    if (s == NULL) {
        snprintf(fault->text, sizeof fault->text, "no memory for the shell");
        return TERRANE_ERR_MEMORY;
    }
    s->log = options->log;
    s->patience_us = options->query_patience_us != 0 ? options->query_patience_us : QUERY_PATIENCE_US;
    s->ready = (struct ready){.fd = -1, .bell = -1, .timer = -1};
    struct loop_handlers handlers = {
        .context = s, .wake = woken, .tick = tick_came, .deadline = deadline_came, .stop = stop_came};
    if (!options->embedded) raise_descriptors();
    enum terrane_error error =
        options->embedded ? ready_open(&s->ready) : loop_open(&handlers, !options->no_signals, &s->loop);
    snprintf(fault->text, sizeof fault->text, "no event loop: out of memory or file descriptors");
    if (error == TERRANE_ERR_OK) {
        struct link_options at = options->link;
        at.wake = options->embedded ? wake_ready : wake_loop;
        at.wake_context = s;
        error = link_open(&at, &s->link, fault);
    }
    if (error == TERRANE_ERR_OK)
        *out = s;
    else
        shell_close(s);
    return error;
}

const struct link_urls *shell_urls(const struct shell *s)
{
    return link_urls(s->link);
}

struct link *shell_link(struct shell *s)
{
    return s->link;
}

struct loop *shell_loop(struct shell *s)
{
    return s->loop;
}

void shell_set_store(struct shell *s, struct shell_store store)
{
    s->store = store;
}

void shell_start(struct shell *s, const struct shell_core *core)
{
    CHECK(!s->started);
    s->core = *core;
    if (core->tick_us != NULL)
        s->tick_time = metrics_histogram(&s->metrics, "terrane_tick_seconds", "What one tick took, start to end.");
    s->started = true;
    begin(s);
    step(s, &(struct event){.kind = EVENT_START});
    step_stored(s);
    end(s);
    /* What arrived before had nobody to go to, and its wake-up has been spent. */
    if (s->loop == NULL)
        ready_ring(&s->ready);
    else
        loop_wake(s->loop);
}

void shell_run(struct shell *s)
{
    CHECK(s->loop != NULL && s->started);
    loop_run(s->loop);
}

void shell_stop(struct shell *s)
{
    loop_stop(s->loop);
}

void shell_finish(struct shell *s)
{
    link_flush(s->link);
    struct timespec left = {.tv_nsec = FINISH_MS * 1000000L};
    while (nanosleep(&left, &left) != 0) continue;
}

int shell_fd(const struct shell *s)
{
    return s->ready.fd;
}

void shell_close(struct shell *s)
{
    if (s == NULL) return;
    link_close(s->link);
    loop_close(s->loop);
    ready_close(&s->ready);
    for (uint32_t i = 0; i < s->stored_count; i++) free(s->stored[i].bytes);
    free(s->stored);
    free(s->questions);
    outbox_close(&s->out);
    metrics_close(&s->metrics);
    writer_close(&s->joined);
    free(s);
}
