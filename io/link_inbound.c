/* The receiving half of the link. nng's threads run inbox_received and query_moved; everything else here belongs to
 * the draining thread. nng is never called
 * under the lock. */
#include "io/link_internal.h"

#include "common/array.h"
#include "common/check.h"

#include <nng/protocol/reqrep0/rep.h>
#include <stdlib.h>

static void arrivals_push(struct arrivals *a, struct arrival item)
{
    ARRAY_RESERVE(a->items, a->room, (size_t)a->count + 1);
    a->items[a->count++] = item;
}

/* The wake-up comes under the lock too: after link_close has taken it once, there is nobody to wake. */
static void append_locked(struct link *l, struct arrival item)
{
    arrivals_push(&l->arrived, item);
    if (!l->woken) l->wake(l->wake_context);
    l->woken = true;
}

void inbound_notice(struct link *l, struct arrival notice)
{
    pthread_mutex_lock(&l->lock);
    if (!l->abandoned) append_locked(l, notice);
    pthread_mutex_unlock(&l->lock);
}

/* Takes the message over, into the queue or the bin. */
static void message_arrived(struct link *l, enum lane lane, uint64_t token, nng_msg *message)
{
    size_t size = nng_msg_len(message);
    pthread_mutex_lock(&l->lock);
    bool keep = !l->abandoned;
    if (keep && lane != LANE_QUERY &&
        (l->waiting_messages[lane] >= l->inbound_messages || l->waiting_bytes[lane] + size > l->inbound_bytes)) {
        l->dropped_full[lane]++;
        keep = false;
    }
    if (keep) {
        l->received[lane]++;
        l->received_bytes[lane] += size;
        l->waiting_messages[lane]++;
        l->waiting_bytes[lane] += size;
        append_locked(l, (struct arrival){.kind = EVENT_MESSAGE, .lane = lane, .token = token, .message = message});
    }
    pthread_mutex_unlock(&l->lock);
    if (!keep) nng_msg_free(message);
}

static bool receive_failed(struct link *l, int error)
{
    if (error == 0) return false;
    if (error != NNG_ECLOSED && error != NNG_ECANCELED) {
        pthread_mutex_lock(&l->lock);
        l->receive_errors++;
        pthread_mutex_unlock(&l->lock);
    }
    return true;
}

static void inbox_received(void *argument)
{
    struct receiver *r = argument;
    int error = nng_aio_result(r->aio);
    if (error == NNG_ECLOSED || error == NNG_ECANCELED) return;
    if (!receive_failed(r->link, error)) message_arrived(r->link, r->lane, 0, nng_aio_get_msg(r->aio));
    nng_recv_aio(r->socket, r->aio);
}

enum terrane_error inbound_receive(struct receiver *r)
{
    if (nng_aio_alloc(&r->aio, inbox_received, r) != 0) return TERRANE_ERR_MEMORY;
    nng_recv_aio(r->socket, r->aio);
    return TERRANE_ERR_OK;
}

static void query_receive(struct query *q)
{
    atomic_store(&q->state, QUERY_RECEIVING);
    nng_ctx_recv(q->context, q->aio);
}

/* The context's one operation has ended, whichever it was. */
static void query_moved(void *argument)
{
    struct query *q = argument;
    int error = nng_aio_result(q->aio);
    if (error == NNG_ECLOSED || error == NNG_ECANCELED) {
        if (atomic_load(&q->state) == QUERY_ANSWERING) nng_msg_free(nng_aio_get_msg(q->aio));
        return;
    }
    bool failed = receive_failed(q->link, error);
    if (atomic_load(&q->state) == QUERY_ANSWERING) {
        /* Sent, or the asker has gone. Either way the next question may come. */
        if (failed) nng_msg_free(nng_aio_get_msg(q->aio));
        query_receive(q);
    } else if (failed) {
        query_receive(q);
    } else {
        uint64_t index = (uint64_t)(q - q->link->queries);
        q->generation++;
        atomic_store(&q->state, QUERY_ASKED);
        message_arrived(q->link, LANE_QUERY, (uint64_t)q->generation << 8 | index, nng_aio_get_msg(q->aio));
    }
}

enum terrane_error inbound_queries(struct link *l)
{
    for (uint32_t i = 0; i < LINK_QUERIES; i++) {
        struct query *q = &l->queries[i];
        q->link = l;
        if (nng_ctx_open(&q->context, l->rep) != 0) return TERRANE_ERR_MEMORY;
        if (nng_aio_alloc(&q->aio, query_moved, q) != 0) return TERRANE_ERR_MEMORY;
    }
    for (uint32_t i = 0; i < LINK_QUERIES; i++) query_receive(&l->queries[i]);
    return TERRANE_ERR_OK;
}

void link_reply(struct link *l, uint64_t token, const void *bytes, size_t size)
{
    uint64_t index = token & 0xff;
    struct query *q = &l->queries[index < LINK_QUERIES ? index : 0];
    bool asked = index < LINK_QUERIES && q->aio != NULL && atomic_load(&q->state) == QUERY_ASKED;
    if (!asked || token >> 8 != q->generation) {
        l->counters.reply_unknown++;
        return;
    }
    nng_msg *message;
    if (nng_msg_alloc(&message, 0) != 0 || nng_msg_append(message, bytes, size) != 0) CHECK(!"memory for a reply");
    atomic_store(&q->state, QUERY_ANSWERING);
    nng_aio_set_msg(q->aio, message);
    nng_ctx_send(q->context, q->aio);
    l->counters.replied++;
}

/* A pipe that the protocol refuses gets ADD_PRE and REM_POST, but no ADD_POST. */
void inbound_pipe_changed(nng_pipe pipe, nng_pipe_ev what, void *argument)
{
    struct link *l = argument;
    (void)pipe;
    if (what == NNG_PIPE_EV_ADD_PRE) atomic_fetch_add(&l->inbound_pipes, 1);
    if (what == NNG_PIPE_EV_REM_POST) atomic_fetch_sub(&l->inbound_pipes, 1);
}

bool link_quiet(const struct link *l)
{
    return atomic_load(&((struct link *)(uintptr_t)l)->inbound_pipes) == 0;
}

/* What has been delivered no longer counts against the bounds. */
static void release(struct link *l, const size_t bytes[3], const uint32_t messages[3])
{
    pthread_mutex_lock(&l->lock);
    for (int lane = 0; lane < 3; lane++) {
        l->waiting_bytes[lane] -= bytes[lane];
        l->waiting_messages[lane] -= messages[lane];
    }
    pthread_mutex_unlock(&l->lock);
}

static void take_arrived(struct link *l)
{
    struct arrivals empty = l->draining;
    empty.count = 0;
    pthread_mutex_lock(&l->lock);
    l->draining = l->arrived;
    l->arrived = empty;
    l->woken = false;
    pthread_mutex_unlock(&l->lock);
    l->drained = 0;
}

bool link_drain(struct link *l, uint32_t max, link_each *each, void *context)
{
    size_t bytes[3] = {0};
    uint32_t messages[3] = {0};
    outbound_linger(l);
    if (l->drained == l->draining.count) take_arrived(l);
    for (; max > 0 && l->drained < l->draining.count; max--) {
        struct arrival item = l->draining.items[l->drained++];
        struct event event = {.kind = item.kind, .lane = item.lane, .token = item.token};
        if (item.message == NULL) {
            if (outbound_notice(l, &item, &event)) each(context, &event);
            continue;
        }
        event.bytes = nng_msg_body(item.message);
        event.size = nng_msg_len(item.message);
        bytes[item.lane] += event.size;
        messages[item.lane]++;
        each(context, &event);
        nng_msg_free(item.message);
    }
    release(l, bytes, messages);
    return l->drained < l->draining.count;
}

void inbound_free(struct link *l)
{
    for (uint32_t i = l->drained; i < l->draining.count; i++)
        if (l->draining.items[i].message != NULL) nng_msg_free(l->draining.items[i].message);
    free(l->draining.items);
    l->draining = (struct arrivals){0};
    l->drained = 0;
    pthread_mutex_lock(&l->lock);
    struct arrivals last = l->arrived;
    l->arrived = (struct arrivals){0};
    pthread_mutex_unlock(&l->lock);
    for (uint32_t i = 0; i < last.count; i++)
        if (last.items[i].message != NULL) nng_msg_free(last.items[i].message);
    free(last.items);
}
