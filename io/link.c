#include "io/link.h"

#include "io/link_internal.h"

#include <arpa/inet.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pubsub0/sub.h>
#include <nng/protocol/reqrep0/rep.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INBOUND_BYTES    (64u << 20)
#define INBOUND_MESSAGES (64u << 10)

static enum terrane_error fault_say(struct link_fault *fault, enum terrane_error error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static enum terrane_error fault_say(struct link_fault *fault, enum terrane_error error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->text, sizeof fault->text, format, arguments);
    va_end(arguments);
    return error;
}

static bool present(const char *url)
{
    return url != NULL && url[0] != '\0';
}

/* tcp://HOST:PORT -> HOST, with brackets where it has them. */
static bool url_host(const char *url, char *host, size_t room)
{
    if (strnlen(url, LIMIT_URL) >= LIMIT_URL || strncmp(url, "tcp://", 6) != 0) return false;
    const char *begin = url + 6, *colon = strrchr(begin, ':');
    if (colon == NULL || colon == begin || (size_t)(colon - begin) >= room) return false;
    if (colon[1] == '\0' || strspn(colon + 1, "0123456789") != strlen(colon + 1)) return false;
    if (strlen(colon + 1) > 5 || strtoul(colon + 1, NULL, 10) > 65535) return false;
    memcpy(host, begin, (size_t)(colon - begin));
    host[colon - begin] = '\0';
    return host[0] == '[' || strchr(host, ':') == NULL;
}

static bool is_wildcard(const char *host)
{
    return strcmp(host, "*") == 0 || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "[::]") == 0;
}

static bool bound_port(nng_listener listener, uint16_t *port)
{
    nng_sockaddr address;
    if (nng_listener_get_addr(listener, NNG_OPT_LOCADDR, &address) != 0) return false;
    if (address.s_family == NNG_AF_INET)
        *port = ntohs(address.s_in.sa_port);
    else if (address.s_family == NNG_AF_INET6)
        *port = ntohs(address.s_in6.sa_port);
    else
        return false;
    return true;
}

/* What a socket is to listen on. */
struct listening {
    struct link *link;
    nng_socket socket;
    const char *what, *url, *advertise_host;
    size_t receive_bytes; /* bounds one message before any of it is read */
    char *advertised;     /* [LIMIT_URL] */
};

static enum terrane_error listen_on(const struct listening *at, struct link_fault *fault)
{
    char host[LIMIT_URL];
    if (!url_host(at->url, host, sizeof host))
        return fault_say(fault, TERRANE_ERR_ADDRESS, "the %s url \"%.128s\" is not of the form tcp://HOST:PORT",
                         at->what, at->url);
    if (is_wildcard(host) && !present(at->advertise_host))
        return fault_say(fault, TERRANE_ERR_ADDRESS,
                         "the %s url %s listens on every address: say which one peers dial (advertise host)", at->what,
                         at->url);
    nng_listener listener;
    int error = nng_socket_set_size(at->socket, NNG_OPT_RECVMAXSZ, at->receive_bytes);
    if (error == 0) error = nng_listener_create(&listener, at->socket, at->url);
    if (error == 0) error = nng_listener_start(listener, 0);
    if (error != 0)
        return fault_say(fault, TERRANE_ERR_ADDRESS,
                         "can't listen on %s (%s): %s; free it or choose another port (0: any free one)", at->url,
                         at->what, nng_strerror(error));
    at->link->listeners[at->link->listener_count++] = listener;
    uint16_t port;
    if (!bound_port(listener, &port))
        return fault_say(fault, TERRANE_ERR_ADDRESS, "no port is known for %s (%s)", at->url, at->what);
    const char *name = present(at->advertise_host) ? at->advertise_host : host;
    int size = snprintf(at->advertised, LIMIT_URL, "tcp://%s:%u", name, (unsigned)port);
    if (size < 0 || (size_t)size >= LIMIT_URL)
        return fault_say(fault, TERRANE_ERR_ADDRESS, "the advertise host \"%.128s\" is too long", name);
    return TERRANE_ERR_OK;
}

/* Opens one receiving socket, listens, and starts its receive. */
static enum terrane_error receiver_open(struct link *l, struct receiver *r, const struct listening *like,
                                        struct link_fault *fault)
{
    bool is_inbox = r == &l->inbox;
    int error = is_inbox ? nng_pull0_open(&r->socket) : nng_sub0_open(&r->socket);
    if (error != 0) return fault_say(fault, TERRANE_ERR_MEMORY, "no %s socket: %s", like->what, nng_strerror(error));
    r->link = l;
    r->lane = is_inbox ? LANE_INBOX : LANE_FEED;
    /* PULL has no buffer of its own: its receive is always pending. */
    if (!is_inbox) error = nng_socket_set_int(r->socket, NNG_OPT_RECVBUF, LINK_SUB_BUFFER);
    if (error == 0) error = nng_pipe_notify(r->socket, NNG_PIPE_EV_ADD_PRE, inbound_pipe_changed, l);
    if (error == 0) error = nng_pipe_notify(r->socket, NNG_PIPE_EV_REM_POST, inbound_pipe_changed, l);
    if (error != 0) return fault_say(fault, TERRANE_ERR_MEMORY, "%s socket: %s", like->what, nng_strerror(error));
    struct listening at = *like;
    at.socket = r->socket;
    enum terrane_error bad = inbound_receive(r);
    if (bad != TERRANE_ERR_OK) return fault_say(fault, bad, "no memory for the %s socket", like->what);
    return listen_on(&at, fault);
}

static enum terrane_error queries_open(struct link *l, const struct listening *like, struct link_fault *fault)
{
    int error = nng_rep0_open(&l->rep);
    if (error != 0) return fault_say(fault, TERRANE_ERR_MEMORY, "no query socket: %s", nng_strerror(error));
    l->has_rep = true;
    error = nng_pipe_notify(l->rep, NNG_PIPE_EV_ADD_PRE, inbound_pipe_changed, l);
    if (error == 0) error = nng_pipe_notify(l->rep, NNG_PIPE_EV_REM_POST, inbound_pipe_changed, l);
    if (error != 0 || inbound_queries(l) != TERRANE_ERR_OK)
        return fault_say(fault, TERRANE_ERR_MEMORY, "no memory for the query socket");
    struct listening at = *like;
    at.socket = l->rep;
    return listen_on(&at, fault);
}

/* The same frames over WebSocket, one message each, subprotocol pub.sp.nanomsg.org. Nobody in the cluster dials that.
 */
static enum terrane_error feed_ws_open(struct link *l, uint32_t feed, const char *url, struct link_fault *fault)
{
    nng_listener listener;
    if (strnlen(url, LIMIT_URL) >= LIMIT_URL || strncmp(url, "ws://", 5) != 0)
        return fault_say(fault, TERRANE_ERR_ADDRESS, "the url \"%.128s\" is not of the form ws://HOST:PORT/PATH", url);
    int error = nng_listener_create(&listener, l->feeds[feed].socket, url);
    if (error == 0) error = nng_listener_start(listener, 0);
    if (error != 0)
        return fault_say(fault, TERRANE_ERR_ADDRESS, "can't listen on %s: %s; free it or choose another port", url,
                         nng_strerror(error));
    l->listeners[l->listener_count++] = listener;
    return TERRANE_ERR_OK;
}

static enum terrane_error feeds_open(struct link *l, const struct link_options *options, struct link_fault *fault)
{
    if (options->feed_count > LIMIT_FEEDS)
        return fault_say(fault, TERRANE_ERR_LIMIT, "%u feeds are too many: at most %u", options->feed_count,
                         LIMIT_FEEDS);
    l->feeds = calloc(options->feed_count + 1, sizeof *l->feeds);
    if (l->feeds == NULL) return fault_say(fault, TERRANE_ERR_MEMORY, "no memory for the feeds");
    l->feed_count = options->feed_count;
    for (uint32_t i = 0; i < l->feed_count; i++) {
        if (feed_open(l, i) != TERRANE_ERR_OK) return fault_say(fault, TERRANE_ERR_MEMORY, "no socket for feed %u", i);
        const char *ws_url = options->feed_ws_urls[i];
        enum terrane_error error = present(ws_url) ? feed_ws_open(l, i, ws_url, fault) : TERRANE_ERR_OK;
        if (error != TERRANE_ERR_OK) return error;
        if (!present(options->feed_urls[i])) continue;
        struct listening at = {.link = l,
                               .socket = l->feeds[i].socket,
                               .what = "feed",
                               .url = options->feed_urls[i],
                               .advertise_host = options->advertise_host,
                               .receive_bytes = LINK_UNREAD_BYTES,
                               .advertised = l->urls.feeds[i]};
        error = listen_on(&at, fault);
        if (error != TERRANE_ERR_OK) return error;
    }
    return TERRANE_ERR_OK;
}

static enum terrane_error sockets_open(struct link *l, const struct link_options *o, struct link_fault *fault)
{
    struct listening inbox = {.link = l,
                              .what = "inbox",
                              .url = o->inbox_url,
                              .advertise_host = o->advertise_host,
                              .receive_bytes = LIMIT_PACKET_BYTES,
                              .advertised = l->urls.inbox};
    struct listening sub = {.link = l,
                            .what = "subscription",
                            .url = o->sub_url,
                            .advertise_host = o->advertise_host,
                            .receive_bytes = LIMIT_PACKET_BYTES,
                            .advertised = l->urls.sub};
    struct listening query = {.link = l,
                              .what = "query",
                              .url = o->query_url,
                              .advertise_host = o->advertise_host,
                              .receive_bytes = LINK_QUERY_BYTES,
                              .advertised = l->urls.query};
    enum terrane_error error = TERRANE_ERR_OK;
    if (present(o->inbox_url)) error = receiver_open(l, &l->inbox, &inbox, fault);
    if (error == TERRANE_ERR_OK && present(o->sub_url)) error = receiver_open(l, &l->sub, &sub, fault);
    if (error == TERRANE_ERR_OK && present(o->query_url)) error = queries_open(l, &query, fault);
    if (error == TERRANE_ERR_OK) error = feeds_open(l, o, fault);
    return error;
}

enum terrane_error link_open(const struct link_options *options, struct link **out, struct link_fault *fault)
{
    *out = NULL;
    fault->text[0] = '\0';
    struct link *l = calloc(1, sizeof *l);
    if (l == NULL) return fault_say(fault, TERRANE_ERR_MEMORY, "no memory for the link");
    pthread_mutex_init(&l->lock, NULL);
    l->wake = options->wake;
    l->wake_context = options->wake_context;
    l->inbound_bytes = options->inbound_bytes != 0 ? options->inbound_bytes : INBOUND_BYTES;
    l->inbound_messages = options->inbound_messages != 0 ? options->inbound_messages : INBOUND_MESSAGES;
    enum terrane_error error = sockets_open(l, options, fault);
    if (error != TERRANE_ERR_OK) {
        link_close(l);
        return error;
    }
    *out = l;
    return TERRANE_ERR_OK;
}

static void receivers_close(struct link *l)
{
    struct receiver *receivers[] = {&l->inbox, &l->sub};
    for (int i = 0; i < 2; i++) {
        if (receivers[i]->link == NULL) continue;
        nng_close(receivers[i]->socket);
        if (receivers[i]->aio != NULL) nng_aio_free(receivers[i]->aio);
    }
    if (!l->has_rep) return;
    for (uint32_t i = 0; i < LINK_QUERIES; i++) {
        if (l->queries[i].link == NULL) continue;
        nng_ctx_close(l->queries[i].context);
        if (l->queries[i].aio != NULL) nng_aio_free(l->queries[i].aio);
    }
    nng_close(l->rep);
}

void link_close(struct link *l)
{
    if (l == NULL) return;
    outbound_close(l);
    pthread_mutex_lock(&l->lock);
    l->abandoned = true;
    pthread_mutex_unlock(&l->lock);
    bool quiet = link_quiet(l);
    if (quiet) receivers_close(l);
    inbound_free(l);
    if (!quiet) return; /* nng's threads still hold it */
    pthread_mutex_destroy(&l->lock);
    free(l);
}

const struct link_urls *link_urls(const struct link *l)
{
    return &l->urls;
}

void link_watch(struct link *l, const void *prefix, size_t size)
{
    if (l->sub.link != NULL) nng_socket_set(l->sub.socket, NNG_OPT_SUB_SUBSCRIBE, prefix, size);
}

void link_unwatch(struct link *l, const void *prefix, size_t size)
{
    if (l->sub.link != NULL) nng_socket_set(l->sub.socket, NNG_OPT_SUB_UNSUBSCRIBE, prefix, size);
}

void link_counters(const struct link *l, struct link_counters *out)
{
    pthread_mutex_t *lock = &((struct link *)(uintptr_t)l)->lock;
    *out = l->counters;
    pthread_mutex_lock(lock);
    memcpy(out->received, l->received, sizeof out->received);
    memcpy(out->received_bytes, l->received_bytes, sizeof out->received_bytes);
    memcpy(out->dropped_full, l->dropped_full, sizeof out->dropped_full);
    out->receive_errors = l->receive_errors;
    pthread_mutex_unlock(lock);
}
