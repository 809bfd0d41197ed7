/* Answers to GET over HTTP, for metrics, health checks and the console: a table of handlers behind libmicrohttpd, which
 * runs inside this process's libev loop. The only user of that library.
 *
 * What it is not: no way in. It takes no body and no method but GET and HEAD, keeps no state between requests, and
 * sends no file. It has no passwords and no TLS: it listens on loopback unless told otherwise.
 *
 * Everything is bounded: connections, header bytes, idle time, requests a second (HTTP_* below); what is over a bound
 * is refused with the status that HTTP has for it, and counted. Handlers run in the loop's thread, between its ticks,
 * so they must be short; nothing here waits for a client. Memory: opaque; routes are borrowed, not copied, and must
 * outlive it, as must handlers' contexts. */
#ifndef TERRANE_IO_HTTP_H
#define TERRANE_IO_HTTP_H

#include "common/errors.h"
#include "common/limits.h"
#include "proto/wire.h"

struct http;    /* opaque */
struct ev_loop; /* libev's */

#define HTTP_CONNECTIONS     64u         /* at once; browsers and scrapers hold one to six each */
#define HTTP_CONNECTION_ROOM (16u << 10) /* request line and headers */
#define HTTP_IDLE_S          30u         /* longer than a scraper's interval, so that its connection lives on */
#define HTTP_REQUESTS_PER_S  200u        /* over that 429: a tick must not wait for a flood of requests */
#define HTTP_PARAMETER_ROOM  256u

struct http_request; /* opaque; lives for the call */

/* The path behind the route's: "" for an exact one. */
const char *http_rest(const struct http_request *request);
/* A parameter of the query string, decoded; NULL: not given. Lives for the call. */
const char *http_parameter(const struct http_request *request, const char *name);

struct http_answer {
    unsigned status;    /* preset 200 */
    const char *type;   /* Content-Type; preset "text/plain; charset=utf-8". A constant */
    const char *header; /* NULL, or one more header's name, with its value; constants */
    const char *value;
    struct writer *body; /* empty when the handler is called; its bytes are copied */
    const void *page;    /* instead of the body, if not NULL: bytes that live as long as the process, not copied */
    size_t page_size;
};

/* Fills the answer. */
typedef void http_handler(void *context, const struct http_request *request, struct http_answer *out);

struct http_route {
    const char *path; /* "/metrics" is that path only; one that ends in '/' but "/" also all below it */
    http_handler *handle;
    void *context;
};

#define HTTP_ROUTES 32u

/* Listens at "HOST:PORT": a numeric address ("[::1]:80" for IPv6) or a name; port 0 takes any free one. `fault` says
 * what is wrong with it and what to do. Errors: ADDRESS, MEMORY. */
enum terrane_error http_open(struct ev_loop *loop, const char *address, struct http **out, char *fault,
                             size_t room) TERRANE_MUST_CHECK;
/* One more route; the first that fits is taken. Before the loop runs, or in it. CHECK: HTTP_ROUTES. */
void http_route(struct http *h, const struct http_route *route);
/* "http://HOST:PORT" with the real port. */
const char *http_url(const struct http *h);
/* Cuts all connections. NULL is fine. */
void http_close(struct http *h);

struct http_counters {
    uint64_t requests, answered, bytes; /* bytes: bodies, before the library adds headers */
    uint64_t refused_method, refused_rate, not_found;
    uint64_t refused_connections; /* more than HTTP_CONNECTIONS at once */
    uint32_t connections;         /* now */
};
void http_counters(const struct http *h, struct http_counters *out);

#endif
