/* A socket for each url, kept for good: REQ sockets can't be closed safely while their peer may answer, and a process
 * that comes back often comes back at its former url. One whose process is gone redials every two seconds at most. */
#include "io/asker.h"

#include "common/array.h"
#include "common/check.h"
#include "common/limits.h"
#include "io/caller.h"

#include <ev.h>
#include <stdlib.h>
#include <string.h>

#define ASKER_SOCKETS LIMIT_NODES
#define REDIAL_MS     2000u

struct question {
    struct node_id node;
    uint64_t tag;
    uint8_t *bytes;
    size_t size;
};

struct target {
    struct caller *caller;
    struct question waiting[ASKER_WAITING];
    uint32_t waiting_count;
    bool open; /* a question is under way: */
    struct node_id open_node;
    uint64_t open_tag;
};

struct asker {
    struct ev_loop *loop;
    ev_async news;
    asker_heard *heard;
    void *context;
    struct target *targets;
    uint32_t count, room;
    struct asker_counters counters;
};

static void wake(void *context)
{
    struct asker *a = context;
    ev_async_send(a->loop, &a->news);
}

static void question_free(struct question *q)
{
    free(q->bytes);
    *q = (struct question){0};
}

static struct question take_first(struct target *t)
{
    struct question first = t->waiting[0];
    memmove(t->waiting, t->waiting + 1, --t->waiting_count * sizeof *t->waiting);
    return first;
}

static void ask_next(struct target *t)
{
    while (!t->open && t->waiting_count > 0 && caller_idle(t->caller)) {
        struct question q = take_first(t);
        if (caller_ask(t->caller, q.bytes, q.size) == TERRANE_ERR_OK) {
            t->open = true;
            t->open_node = q.node;
            t->open_tag = q.tag;
        }
        question_free(&q);
    }
}

/* The callback may ask, which may move the table. */
static void news(struct ev_loop *loop, ev_async *watcher, int events)
{
    struct asker *a = watcher->data;
    (void)loop;
    (void)events;
    for (uint32_t i = 0; i < a->count; i++) {
        const uint8_t *bytes;
        size_t size;
        struct target *t = &a->targets[i];
        bool answered = caller_answer(t->caller, &bytes, &size);
        if (answered || caller_idle(t->caller)) {
            struct node_id node = t->open_node;
            bool told = t->open && answered && node.v != 0;
            t->open = false;
            if (answered) a->counters.answered++;
            if (told) a->heard(a->context, node, t->open_tag, bytes, size);
        }
        ask_next(&a->targets[i]);
    }
}

enum terrane_error asker_open(struct ev_loop *loop, asker_heard *heard, void *context, struct asker **out)
{
    *out = NULL;
    struct asker *a = calloc(1, sizeof *a);
    if (a == NULL) return TERRANE_ERR_MEMORY;
    *a = (struct asker){.loop = loop, .heard = heard, .context = context};
    ev_async_init(&a->news, news);
    a->news.data = a;
    ev_async_start(loop, &a->news);
    *out = a;
    return TERRANE_ERR_OK;
}

static struct target *target_of(struct asker *a, const char *url)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (strcmp(caller_url(a->targets[i].caller), url) == 0) return &a->targets[i];
    struct caller *caller;
    if (a->count >= ASKER_SOCKETS || caller_open(url, REDIAL_MS, wake, a, &caller) != TERRANE_ERR_OK) return NULL;
    ARRAY_RESERVE(a->targets, a->room, (size_t)a->count + 1);
    a->targets[a->count] = (struct target){.caller = caller};
    a->counters.sockets = a->count + 1;
    return &a->targets[a->count++];
}

static bool is_asked(const struct target *t, struct node_id node, uint64_t tag)
{
    if (t->open && t->open_tag == tag && node_id_equal(t->open_node, node)) return true;
    for (uint32_t i = 0; i < t->waiting_count; i++)
        if (t->waiting[i].tag == tag && node_id_equal(t->waiting[i].node, node)) return true;
    return false;
}

bool asker_ask(struct asker *a, struct node_id node, const char *url, uint64_t tag, const void *question, size_t size)
{
    CHECK(node.v != 0);
    struct target *t = target_of(a, url);
    if (t != NULL && is_asked(t, node, tag)) return true;
    if (t == NULL || t->waiting_count == ASKER_WAITING) {
        a->counters.refused++;
        return false;
    }
    struct question q = {.node = node, .tag = tag, .bytes = malloc(size), .size = size};
    CHECK(q.bytes != NULL);
    memcpy(q.bytes, question, size);
    t->waiting[t->waiting_count++] = q;
    a->counters.asked++;
    ask_next(t);
    return true;
}

void asker_forget(struct asker *a, struct node_id node)
{
    for (uint32_t i = 0; i < a->count; i++) {
        struct target *t = &a->targets[i];
        uint32_t kept = 0;
        for (uint32_t k = 0; k < t->waiting_count; k++) {
            if (node_id_equal(t->waiting[k].node, node))
                question_free(&t->waiting[k]);
            else
                t->waiting[kept++] = t->waiting[k];
        }
        t->waiting_count = kept;
        if (node_id_equal(t->open_node, node)) t->open_node = NODE_NONE;
    }
}

void asker_counters(const struct asker *a, struct asker_counters *out)
{
    *out = a->counters;
}
