#include "io/lookup.h"

#include "common/check.h"

#include <ev.h>
#include <pthread.h>
#include <stdlib.h>

struct lookup {
    struct ev_loop *loop;
    const char *text;
    lookup_resolve *resolve;
    void (*found)(void *context, const struct store_address *address);
    void *context;
    ev_async done;
    bool under_way; /* the thread is to be joined; address and error are its own until `done` comes */
    pthread_t thread;
    struct store_address address;
    enum terrane_error error;
};

static void *look_up(void *context)
{
    struct lookup *l = context;
    char fault[256];
    l->error = l->resolve(l->text, &l->address, fault, sizeof fault);
    ev_async_send(l->loop, &l->done);
    return NULL;
}

static void done_came(struct ev_loop *loop, ev_async *watcher, int events)
{
    struct lookup *l = watcher->data;
    (void)loop, (void)events;
    if (!l->under_way) return;
    pthread_join(l->thread, NULL);
    l->under_way = false;
    if (l->error == TERRANE_ERR_OK) l->found(l->context, &l->address);
}

struct lookup *lookup_open(struct ev_loop *loop, const char *text, lookup_resolve *resolve,
                           void (*found)(void *context, const struct store_address *address), void *context)
{
    struct lookup *l = calloc(1, sizeof *l);
    CHECK(l != NULL);
    *l = (struct lookup){.loop = loop, .text = text, .resolve = resolve, .found = found, .context = context};
    ev_async_init(&l->done, done_came);
    l->done.data = l;
    ev_async_start(loop, &l->done);
    return l;
}

void lookup_start(struct lookup *l)
{
    if (l->under_way) return;
    l->under_way = pthread_create(&l->thread, NULL, look_up, l) == 0; /* else the next failure tries again */
}

void lookup_close(struct lookup *l)
{
    if (l == NULL) return;
    if (l->under_way) pthread_join(l->thread, NULL);
    ev_async_stop(l->loop, &l->done);
    free(l);
}
