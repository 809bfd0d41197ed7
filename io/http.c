/* libmicrohttpd without threads: its epoll descriptor is one watcher of the loop, its own time-outs one timer. After
 * each run it is asked when it wants to run again (MHD_get_timeout), which may be at once. */
#include "io/http.h"

#include "common/check.h"
#include "io/address.h"
#include "io/loop.h"

#include <ev.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_POLICY                                                                                                    \
    "default-src 'none'; connect-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "                 \
    "script-src 'self' 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

struct http {
    struct ev_loop *loop;
    struct MHD_Daemon *daemon;
    ev_io readable;
    ev_timer due;
    struct http_route routes[HTTP_ROUTES];
    uint32_t route_count;
    struct writer body;
    char url[LIMIT_URL + 8];
    struct http_counters counters;
    uint64_t second; /* of the loop's clock, in which `in_second` requests have come */
    uint32_t in_second;
};

struct http_request {
    struct MHD_Connection *connection;
    const char *rest;
};

const char *http_rest(const struct http_request *request)
{
    return request->rest;
}

const char *http_parameter(const struct http_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

/* The table */

static const struct http_route *route_of(const struct http *h, const char *path, const char **rest)
{
    for (uint32_t i = 0; i < h->route_count; i++) {
        const struct http_route *route = &h->routes[i];
        size_t size = strlen(route->path);
        bool subtree = size > 1 && route->path[size - 1] == '/';
        if (strncmp(path, route->path, size) != 0 || (!subtree && path[size] != '\0')) continue;
        *rest = path + size;
        return route;
    }
    return NULL;
}

static bool over_rate(struct http *h)
{
    uint64_t second = loop_now_us() / 1000000u;
    if (second != h->second) h->in_second = 0;
    h->second = second;
    return ++h->in_second > HTTP_REQUESTS_PER_S;
}

static void refuse(struct http_answer *answer, unsigned status, const char *text)
{
    answer->status = status;
    writer_raw(answer->body, text, strlen(text));
}

static void fill(struct http *h, struct MHD_Connection *connection, const char *path, const char *method,
                 struct http_answer *answer)
{
    struct http_request request = {.connection = connection};
    bool reads = strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    const struct http_route *route = route_of(h, path, &request.rest);
    h->counters.requests++;
    if (!reads) {
        h->counters.refused_method++;
        answer->header = MHD_HTTP_HEADER_ALLOW;
        answer->value = "GET, HEAD";
        refuse(answer, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD: nothing can be changed here\n");
    } else if (over_rate(h)) {
        h->counters.refused_rate++;
        answer->header = MHD_HTTP_HEADER_RETRY_AFTER;
        answer->value = "1";
        refuse(answer, MHD_HTTP_TOO_MANY_REQUESTS, "too many requests: ask again in a second\n");
    } else if (route == NULL) {
        h->counters.not_found++;
        refuse(answer, MHD_HTTP_NOT_FOUND, "there is nothing at this path\n");
    } else {
        h->counters.answered++;
        route->handle(route->context, &request, answer);
    }
}

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
    CHECK(MHD_add_response_header(response, name, value) == MHD_YES);
}

static enum MHD_Result send_answer(struct http *h, struct MHD_Connection *connection, const struct http_answer *answer)
{
    const void *bytes = answer->page != NULL ? answer->page : answer->body->data;
    size_t size = answer->page != NULL ? answer->page_size : answer->body->size;
    struct MHD_Response *response = MHD_create_response_from_buffer(
        size, (void *)(uintptr_t)bytes, answer->page != NULL ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY);
    if (response == NULL) return MHD_NO; /* no memory: the connection is closed */
    h->counters.bytes += size;
    add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
    add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    add_header(response, "X-Content-Type-Options", "nosniff");
    /* Two policies would both have to allow what a page does: one that brings its own has only that. */
    bool own = answer->header != NULL && strcmp(answer->header, "Content-Security-Policy") == 0;
    if (!own && strncmp(answer->type, "text/html", 9) == 0)
        add_header(response, "Content-Security-Policy", PAGE_POLICY);
    if (answer->header != NULL) add_header(response, answer->header, answer->value);
    enum MHD_Result result = MHD_queue_response(connection, answer->status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result request_came(void *context, struct MHD_Connection *connection, const char *url,
                                    const char *method, const char *version, const char *upload_data,
                                    size_t *upload_data_size, void **seen)
{
    struct http *h = context;
    (void)version, (void)upload_data;
    if (*seen == NULL) { /* the headers alone; answering now would end a kept connection */
        *seen = h;
        return MHD_YES;
    }
    if (*upload_data_size != 0) { /* a body: read past it, so that the refusal arrives */
        *upload_data_size = 0;
        return MHD_YES;
    }
    writer_clear(&h->body);
    struct http_answer answer = {.status = MHD_HTTP_OK, .type = "text/plain; charset=utf-8", .body = &h->body};
    fill(h, connection, url, method, &answer);
    return send_answer(h, connection, &answer);
}

static enum MHD_Result admit(void *context, const struct sockaddr *address, socklen_t size)
{
    struct http *h = context;
    (void)address, (void)size;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    if (info == NULL || info->num_connections < HTTP_CONNECTIONS) return MHD_YES;
    h->counters.refused_connections++;
    return MHD_NO;
}

/* The loop */

static void run(struct http *h)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms;
    MHD_run(h->daemon);
    ev_timer_stop(h->loop, &h->due);
    if (MHD_get_timeout(h->daemon, &timeout_ms) != MHD_YES) return;
    ev_now_update(h->loop);
    ev_timer_set(&h->due, (double)timeout_ms * 1e-3, 0.);
    ev_timer_start(h->loop, &h->due);
}

static void readable_came(struct ev_loop *ev, ev_io *watcher, int events)
{
    (void)ev, (void)events;
    run(watcher->data);
}

static void due_came(struct ev_loop *ev, ev_timer *watcher, int events)
{
    (void)ev, (void)events;
    run(watcher->data);
}

enum terrane_error http_open(struct ev_loop *loop, const char *address, struct http **out, char *fault, size_t room)
{
    int fd;
    char place[LIMIT_URL];
    *out = NULL;
    enum terrane_error error = address_listen(address, &fd, place, fault, room);
    if (error != TERRANE_ERR_OK) return error;
    struct http *h = calloc(1, sizeof *h);
    snprintf(fault, room, "no memory for the HTTP server");
    if (h == NULL) {
        close(fd);
        return TERRANE_ERR_MEMORY;
    }
    h->loop = loop;
    snprintf(h->url, sizeof h->url, "http://%s", place);
    /* One connection more than is admitted: at its own limit the library would stop to listen, and count nothing. */
    h->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, admit, h, request_came, h, MHD_OPTION_LISTEN_SOCKET, fd,
                                 MHD_OPTION_CONNECTION_LIMIT, HTTP_CONNECTIONS + 1, MHD_OPTION_CONNECTION_TIMEOUT,
                                 HTTP_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_CONNECTION_ROOM,
                                 MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (h->daemon == NULL) {
        close(fd);
        free(h);
        return TERRANE_ERR_MEMORY;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    CHECK(info != NULL);
    ev_io_init(&h->readable, readable_came, info->epoll_fd, EV_READ);
    ev_timer_init(&h->due, due_came, 0., 0.);
    h->readable.data = h->due.data = h;
    /* Ticks and messages go first. */
    ev_set_priority(&h->readable, EV_MINPRI);
    ev_set_priority(&h->due, EV_MINPRI);
    ev_io_start(loop, &h->readable);
    *out = h;
    return TERRANE_ERR_OK;
}

void http_route(struct http *h, const struct http_route *route)
{
    CHECK(h->route_count < HTTP_ROUTES && route->path[0] == '/');
    h->routes[h->route_count++] = *route;
}

const char *http_url(const struct http *h)
{
    return h->url;
}

void http_close(struct http *h)
{
    if (h == NULL) return;
    ev_io_stop(h->loop, &h->readable);
    ev_timer_stop(h->loop, &h->due);
    MHD_stop_daemon(h->daemon); /* closes the listening socket too */
    writer_close(&h->body);
    free(h);
}

void http_counters(const struct http *h, struct http_counters *out)
{
    *out = h->counters;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    out->connections = info != NULL ? info->num_connections : 0;
}
