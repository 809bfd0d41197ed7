/* The sending half of the link: one dialing PUSH a peer, one PUB a feed with a dialer a subscriber. Closing any of
 * these is safe at any time. Pipe notices come from nng's threads by way of the inbound queue, so what stands changes
 * only while the owner drains. */
#include "io/link_internal.h"

#include "common/array.h"
#include "common/check.h"
#include "io/loop.h"

#include <nng/protocol/pipeline0/push.h>
#include <nng/protocol/pubsub0/pub.h>
#include <stdlib.h>
#include <string.h>

static bool url_usable(const char *url)
{
    size_t size = strnlen(url, LIMIT_URL);
    return size < LIMIT_URL && strncmp(url, "tcp://", 6) == 0 && size > 6;
}

static int sender_options(nng_socket socket)
{
    int error = nng_socket_set_int(socket, NNG_OPT_SENDBUF, LINK_SEND_BUFFER);
    if (error == 0) error = nng_socket_set_size(socket, NNG_OPT_RECVMAXSZ, LINK_UNREAD_BYTES);
    if (error == 0) error = nng_socket_set_ms(socket, NNG_OPT_RECONNMINT, 10);
    if (error == 0) error = nng_socket_set_ms(socket, NNG_OPT_RECONNMAXT, 100);
    return error;
}

static void peer_pipe_changed(nng_pipe pipe, nng_pipe_ev what, void *argument)
{
    struct link *l = argument;
    inbound_notice(l, (struct arrival){.kind = what == NNG_PIPE_EV_ADD_POST ? EVENT_PEER_UP : EVENT_PEER_DOWN,
                                       .dialer = nng_pipe_dialer(pipe).id,
                                       .pipe = pipe.id});
}

static void feed_pipe_changed(nng_pipe pipe, nng_pipe_ev what, void *argument)
{
    struct feed *f = argument;
    /* A pipe that the protocol refuses gets ADD_PRE and REM_POST, but no ADD_POST. */
    if (what == NNG_PIPE_EV_REM_POST) atomic_fetch_sub(&f->pipes, 1);
    if (what == NNG_PIPE_EV_ADD_PRE) {
        atomic_fetch_add(&f->pipes, 1);
        return;
    }
    inbound_notice(f->link, (struct arrival){.kind = what == NNG_PIPE_EV_ADD_POST ? EVENT_FEED_UP : EVENT_FEED_DOWN,
                                             .dialer = nng_pipe_dialer(pipe).id,
                                             .pipe = pipe.id});
}

static int notify(nng_socket socket, nng_pipe_cb callback, void *argument)
{
    int error = nng_pipe_notify(socket, NNG_PIPE_EV_ADD_POST, callback, argument);
    if (error == 0) error = nng_pipe_notify(socket, NNG_PIPE_EV_REM_POST, callback, argument);
    return error;
}

/* Peers */

static struct peer *peer_find(const struct link *l, struct node_id node)
{
    uint32_t slot = table_get(&l->peer_slots, node.v);
    return slot == TABLE_NONE ? NULL : l->peers[slot];
}

static uint32_t peer_free_slot(struct link *l)
{
    for (uint32_t i = 0; i < l->peer_room; i++) {
        if (l->peers[i] == NULL) {
            l->peers[i] = calloc(1, sizeof *l->peers[i]);
            CHECK(l->peers[i] != NULL);
            return i;
        }
        if (l->peers[i]->node.v == 0) return i;
    }
    uint32_t slot = l->peer_room;
    l->peers = array_reserve(l->peers, &l->peer_room, (size_t)slot + 1, sizeof(struct peer *));
    return peer_free_slot(l);
}

static void peer_drop_waiting(struct peer *p)
{
    for (uint32_t i = 0; i < p->waiting_count; i++) nng_msg_free(p->waiting[i]);
    p->waiting_count = 0;
}

void link_unpeer(struct link *l, struct node_id node)
{
    struct peer *p = peer_find(l, node);
    if (p == NULL) return;
    l->counters.send_full += p->waiting_count;
    peer_drop_waiting(p);
    table_remove(&l->dialers, p->dialer);
    table_remove(&l->peer_slots, node.v);
    ARRAY_RESERVE(l->closing, l->closing_room, (size_t)l->closing_count + 1);
    l->closing[l->closing_count++] = (struct closing){p->socket, loop_now_us() + LINK_LINGER_US};
    *p = (struct peer){0};
    l->counters.peers--;
}

static void close_until(struct link *l, uint64_t now_us, uint32_t max)
{
    uint32_t done = 0;
    while (done < max && done < l->closing_count && l->closing[done].at_us <= now_us)
        nng_close(l->closing[done++].socket);
    if (done == 0) return;
    l->closing_count -= done;
    memmove(l->closing, l->closing + done, l->closing_count * sizeof *l->closing);
}

void outbound_linger(struct link *l)
{
    if (l->closing_count > 0) close_until(l, loop_now_us(), LINK_CLOSES);
}

static enum terrane_error peer_dial(struct link *l, struct peer *p, uint32_t slot)
{
    if (nng_push0_open(&p->socket) != 0) return TERRANE_ERR_MEMORY;
    nng_dialer dialer;
    int error = sender_options(p->socket);
    if (error == 0) error = notify(p->socket, peer_pipe_changed, l);
    if (error == 0) error = nng_dialer_create(&dialer, p->socket, p->url);
    if (error == 0) {
        p->dialer = dialer.id;
        table_put(&l->dialers, dialer.id, slot);
        error = nng_dialer_start(dialer, NNG_FLAG_NONBLOCK);
        if (error != 0) table_remove(&l->dialers, dialer.id);
    }
    if (error == 0) return TERRANE_ERR_OK;
    nng_close(p->socket);
    return TERRANE_ERR_ADDRESS;
}

enum terrane_error link_peer(struct link *l, struct node_id node, const char *url)
{
    CHECK(node.v != 0);
    if (!url_usable(url)) {
        l->counters.urls_refused++;
        return TERRANE_ERR_ADDRESS;
    }
    struct peer *p = peer_find(l, node);
    if (p != NULL && strcmp(p->url, url) == 0) {
        if (p->pipe != 0) inbound_notice(l, (struct arrival){.kind = EVENT_PEER_UP, .dialer = p->dialer});
        return TERRANE_ERR_OK;
    }
    link_unpeer(l, node);
    if (l->counters.peers >= LIMIT_NODES) return TERRANE_ERR_LIMIT;
    uint32_t slot = peer_free_slot(l);
    p = l->peers[slot];
    memcpy(p->url, url, strlen(url) + 1);
    enum terrane_error error = peer_dial(l, p, slot);
    if (error != TERRANE_ERR_OK) {
        l->counters.urls_refused++;
        *p = (struct peer){0};
        return error;
    }
    p->node = node;
    table_put(&l->peer_slots, node.v, slot);
    l->counters.peers++;
    return TERRANE_ERR_OK;
}

static nng_msg *message_of(const void *bytes, size_t size)
{
    nng_msg *message;
    if (nng_msg_alloc(&message, size) != 0) return NULL;
    if (size > 0) memcpy(nng_msg_body(message), bytes, size);
    return message;
}

/* Whether nng took it. Otherwise the message is still the caller's. */
static bool attempt(struct link *l, struct peer *p, nng_msg *message, bool *full)
{
    size_t size = nng_msg_len(message);
    int error = nng_sendmsg(p->socket, message, NNG_FLAG_NONBLOCK);
    *full = error == NNG_EAGAIN || error == NNG_ETIMEDOUT;
    if (error != 0) return false;
    l->counters.sent++;
    l->counters.sent_bytes += size;
    return true;
}

/* The buffer is full: keep it for link_flush. */
static void wait_for_flush(struct link *l, struct peer *p, nng_msg *message)
{
    if (p->waiting_count == LINK_WAITING) {
        l->counters.send_full++;
        nng_msg_free(message);
        return;
    }
    if (p->waiting_count == 0) {
        ARRAY_RESERVE(l->retry, l->retry_room, (size_t)l->retry_count + 1);
        l->retry[l->retry_count++] = table_get(&l->peer_slots, p->node.v);
    }
    p->waiting[p->waiting_count++] = message;
}

void link_send(struct link *l, struct node_id node, const void *bytes, size_t size)
{
    struct peer *p = peer_find(l, node);
    if (p == NULL || p->pipe == 0) {
        l->counters.send_unlinked++;
        return;
    }
    if (size > LIMIT_PACKET_BYTES) {
        l->counters.send_oversize++;
        return;
    }
    nng_msg *message = message_of(bytes, size);
    bool full = true;
    if (message == NULL) {
        l->counters.send_errors++;
    } else if (p->waiting_count > 0) {
        wait_for_flush(l, p, message);
    } else if (!attempt(l, p, message, &full)) {
        if (full) {
            wait_for_flush(l, p, message);
        } else {
            l->counters.send_errors++;
            nng_msg_free(message);
        }
    }
}

static void peer_flush(struct link *l, struct peer *p)
{
    for (uint32_t i = 0; i < p->waiting_count; i++) {
        bool full;
        l->counters.send_retries++;
        if (attempt(l, p, p->waiting[i], &full)) continue;
        if (full)
            l->counters.send_full++;
        else
            l->counters.send_errors++;
        nng_msg_free(p->waiting[i]);
    }
    p->waiting_count = 0;
}

void link_flush(struct link *l)
{
    for (uint32_t i = 0; i < l->retry_count; i++) peer_flush(l, l->peers[l->retry[i]]);
    l->retry_count = 0;
    outbound_linger(l);
}

/* Feeds */

enum terrane_error feed_open(struct link *l, uint32_t index)
{
    struct feed *f = &l->feeds[index];
    f->link = l;
    if (nng_pub0_open(&f->socket) != 0) return TERRANE_ERR_MEMORY;
    int error = sender_options(f->socket);
    if (error == 0) error = nng_pipe_notify(f->socket, NNG_PIPE_EV_ADD_PRE, feed_pipe_changed, f);
    if (error == 0) error = notify(f->socket, feed_pipe_changed, f);
    return error == 0 ? TERRANE_ERR_OK : TERRANE_ERR_MEMORY;
}

/* Linear: subscribers come and go with the map, not with ticks. */
static struct subscriber *subscriber_find(const struct link *l, uint32_t feed, struct node_id node)
{
    for (uint32_t i = 0; i < l->subscriber_room; i++)
        if (node_id_equal(l->subscribers[i].node, node) && l->subscribers[i].feed == feed) return &l->subscribers[i];
    return NULL;
}

void link_unfeed(struct link *l, uint32_t feed, struct node_id node)
{
    struct subscriber *s = node.v == 0 ? NULL : subscriber_find(l, feed, node);
    if (s == NULL) return;
    table_remove(&l->dialers, s->dialer.id);
    nng_dialer_close(s->dialer);
    *s = (struct subscriber){0};
    l->counters.subscribers--;
}

enum terrane_error link_feed(struct link *l, uint32_t feed, struct node_id node, const char *url)
{
    CHECK(node.v != 0 && feed < l->feed_count);
    if (!url_usable(url)) {
        l->counters.urls_refused++;
        return TERRANE_ERR_ADDRESS;
    }
    struct subscriber *s = subscriber_find(l, feed, node);
    if (s != NULL && strcmp(s->url, url) == 0) {
        if (s->pipe != 0) inbound_notice(l, (struct arrival){.kind = EVENT_FEED_UP, .dialer = s->dialer.id});
        return TERRANE_ERR_OK;
    }
    link_unfeed(l, feed, node);
    if (l->counters.subscribers >= LIMIT_NODES) return TERRANE_ERR_LIMIT;
    uint32_t slot = 0;
    while (slot < l->subscriber_room && l->subscribers[slot].node.v != 0) slot++;
    ARRAY_RESERVE(l->subscribers, l->subscriber_room, (size_t)slot + 1);
    nng_dialer dialer;
    if (nng_dialer_create(&dialer, l->feeds[feed].socket, url) != 0) {
        l->counters.urls_refused++;
        return TERRANE_ERR_ADDRESS;
    }
    s = &l->subscribers[slot];
    *s = (struct subscriber){.node = node, .feed = feed, .dialer = dialer};
    memcpy(s->url, url, strlen(url) + 1);
    table_put(&l->dialers, dialer.id, slot | DIALER_FEED);
    l->counters.subscribers++;
    if (nng_dialer_start(dialer, NNG_FLAG_NONBLOCK) == 0) return TERRANE_ERR_OK;
    link_unfeed(l, feed, node);
    l->counters.urls_refused++;
    return TERRANE_ERR_ADDRESS;
}

void link_publish(struct link *l, uint32_t feed, const void *bytes, size_t size)
{
    CHECK(feed < l->feed_count);
    struct feed *f = &l->feeds[feed];
    if (atomic_load(&f->pipes) == 0) {
        l->counters.published_nobody++;
        return;
    }
    nng_msg *message = size <= LIMIT_PACKET_BYTES ? message_of(bytes, size) : NULL;
    if (message == NULL) {
        l->counters.publish_errors++;
        return;
    }
    if (nng_sendmsg(f->socket, message, NNG_FLAG_NONBLOCK) != 0) {
        l->counters.publish_errors++;
        nng_msg_free(message);
        return;
    }
    l->counters.published++;
    l->counters.published_bytes += size;
}

/* Notices */

bool outbound_notice(struct link *l, const struct arrival *notice, struct event *event)
{
    uint32_t slot = notice->dialer == 0 ? TABLE_NONE : table_get(&l->dialers, notice->dialer);
    if (slot == TABLE_NONE) return false; /* a listened pipe, or a link that has been closed since */
    bool up = notice->kind == EVENT_PEER_UP || notice->kind == EVENT_FEED_UP;
    bool is_feed = (slot & DIALER_FEED) != 0;
    struct subscriber *s = is_feed ? &l->subscribers[slot & ~DIALER_FEED] : NULL;
    struct peer *p = is_feed ? NULL : l->peers[slot];
    uint32_t *pipe = is_feed ? &s->pipe : &p->pipe;

    event->node = is_feed ? s->node : p->node;
    event->feed = is_feed ? s->feed : 0;
    if (notice->pipe == 0) return *pipe != 0;
    if (up) {
        *pipe = notice->pipe;
        *(is_feed ? &l->counters.feeds_up : &l->counters.peers_up) += 1;
        return true;
    }
    if (*pipe != notice->pipe) return false; /* a later pipe stands already */
    *pipe = 0;
    *(is_feed ? &l->counters.feeds_down : &l->counters.peers_down) += 1;
    return true;
}

void outbound_close(struct link *l)
{
    for (uint32_t i = 0; i < l->peer_room; i++) {
        if (l->peers[i] == NULL) continue;
        if (l->peers[i]->node.v != 0) link_unpeer(l, l->peers[i]->node);
        free(l->peers[i]);
    }
    for (uint32_t i = 0; i < l->feed_count; i++)
        if (l->feeds[i].link != NULL) nng_close(l->feeds[i].socket);
    close_until(l, UINT64_MAX, UINT32_MAX);
    free(l->closing);
    free(l->peers);
    free(l->feeds);
    free(l->subscribers);
    free(l->retry);
    l->closing = NULL;
    l->peers = NULL;
    l->feeds = NULL;
    l->subscribers = NULL;
    l->retry = NULL;
    l->feed_count = l->peer_room = l->subscriber_room = 0;
    table_close(&l->peer_slots);
    table_close(&l->dialers);
}
