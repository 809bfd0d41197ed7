/* The HTTP server as clients meet it: what it answers, and what it refuses. Client and server share one thread; the
 * clients' sockets never block. */
#include "io/http.h"
#include "io/loop.h"
#include "suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS (HTTP_CONNECTIONS + 8u)

static struct loop *loop;
static struct http *http;
static uint32_t handled;
static char got[1u << 20];

static void say(struct http_answer *out, const char *text)
{
    writer_raw(out->body, text, strlen(text));
}

static void greet(void *context, const struct http_request *request, struct http_answer *out)
{
    const char *name = http_parameter(request, "name");
    handled++;
    say(out, context);
    say(out, name != NULL ? name : "nobody");
    say(out, http_rest(request));
}

static void page(void *context, const struct http_request *request, struct http_answer *out)
{
    (void)context, (void)request;
    handled++;
    out->type = "text/html; charset=utf-8";
    out->page = "<p>";
    out->page_size = 3;
}

static const struct http_route routes[] = {
    {"/", page, NULL}, {"/hello", greet, "hello "}, {"/below/", greet, "below "}};

static void setup(void)
{
    char fault[256];
    signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(loop_open(&(struct loop_handlers){.context = NULL}, false, &loop), TERRANE_ERR_OK);
    ck_assert_int_eq(http_open(loop_ev(loop), "127.0.0.1:0", &http, fault, sizeof fault), TERRANE_ERR_OK);
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) http_route(http, &routes[i]);
    handled = 0;
}

static void teardown(void)
{
    http_close(http);
    loop_close(loop);
}

static int client_open(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)strtoul(strrchr(http_url(http), ':') + 1, NULL, 10));
    ck_assert(fd >= 0);
    ck_assert(connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS);
    struct pollfd writable = {.fd = fd, .events = POLLOUT};
    ck_assert_int_eq(poll(&writable, 1, 5000), 1);
    return fd;
}

/* Whether `got` holds one whole answer. */
static bool whole(void)
{
    const char *body = strstr(got, "\r\n\r\n"), *length = strstr(got, "Content-Length: ");
    if (body == NULL || length == NULL) return false;
    return strlen(body + 4) >= strtoul(length + 16, NULL, 10);
}

/* Runs the server until an answer has come whole, or the connection is closed. */
static void client_read(int fd, bool head)
{
    size_t size = 0;
    uint64_t until_us = loop_now_us() + 10000000u;
    for (got[0] = '\0'; !whole() && !(head && strstr(got, "\r\n\r\n") != NULL);) {
        loop_poll(loop);
        ssize_t more = recv(fd, got + size, sizeof got - 1 - size, 0);
        if (more == 0 || (more < 0 && errno != EAGAIN)) return;
        if (more > 0) size += (size_t)more;
        got[size] = '\0';
        ck_assert_msg(loop_now_us() < until_us, "no whole answer: %s", got);
    }
}

static void ask_on(int fd, const char *request)
{
    ck_assert_int_eq(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
    client_read(fd, strncmp(request, "HEAD", 4) == 0);
}

static void ask(const char *request)
{
    int fd = client_open();
    ask_on(fd, request);
    close(fd);
}

static void ck_status(const char *status)
{
    char begins[32];
    snprintf(begins, sizeof begins, "HTTP/1.1 %s ", status);
    ck_assert_msg(strncmp(got, begins, strlen(begins)) == 0, "not %s: %.200s", status, got);
}

static void ck_body(const char *body)
{
    const char *at = strstr(got, "\r\n\r\n");
    ck_assert_ptr_nonnull(at);
    ck_assert_str_eq(at + 4, body);
}

START_TEST(a_route_answers_its_path_and_its_subtree_alone)
{
    setup();
    ask("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
    ck_status("200");
    ck_body("hello nobody");
    ck_assert_ptr_nonnull(strstr(got, "text/plain"));
    ask("GET /below/this/one HTTP/1.1\r\nHost: a\r\n\r\n");
    ck_body("below nobodythis/one");
    ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    ck_body("<p>");
    ck_assert_ptr_nonnull(strstr(got, "Content-Security-Policy: default-src 'none'"));
    ck_assert_uint_eq(handled, 3);
    const char *const nowhere[] = {"/hell", "/hello/", "/below", "//", "/../hello"};
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
        char request[128];
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", nowhere[i]);
        ask(request);
        ck_status("404");
    }
    ck_assert_uint_eq(handled, 3);
    teardown();
}
END_TEST

START_TEST(parameters_arrive_decoded)
{
    setup();
    ask("GET /hello?x=1&name=a%20b%26c HTTP/1.1\r\nHost: a\r\n\r\n");
    ck_body("hello a b&c");
    ask("GET /hello?name HTTP/1.1\r\nHost: a\r\n\r\n");
    ck_body("hello nobody");
    teardown();
}
END_TEST

START_TEST(head_has_no_body)
{
    setup();
    ask("HEAD /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    ck_status("200");
    ck_assert_ptr_nonnull(strstr(got, "Content-Length: 12"));
    ck_body("");
    teardown();
}
END_TEST

START_TEST(a_connection_serves_many_requests)
{
    setup();
    int fd = client_open();
    for (int i = 0; i < 20; i++) {
        ask_on(fd, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
        ck_body("hello nobody");
    }
    close(fd);
    teardown();
}
END_TEST

START_TEST(other_methods_reach_no_handler)
{
    struct http_counters c;
    setup();
    const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        char request[128];
        snprintf(request, sizeof request, "%s /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", methods[i]);
        ask(request);
        ck_status("405");
        ck_assert_ptr_nonnull(strstr(got, "Allow: GET, HEAD"));
    }
    ck_assert_uint_eq(handled, 0);
    http_counters(http, &c);
    ck_assert_uint_eq(c.refused_method, 6);
    teardown();
}
END_TEST

START_TEST(what_is_not_http_ends_its_own_connection_only)
{
    setup();
    int kept = client_open();
    static char huge[HTTP_CONNECTION_ROOM * 2];
    memset(huge, 'x', sizeof huge - 1);
    memcpy(huge, "GET /", 5);
    ask("\x16\x03\x01\x02garbage\r\n\r\n");
    ck_assert(strncmp(got, "HTTP/1.1 200", 12) != 0);
    ask(huge);
    ck_assert(strncmp(got, "HTTP/1.1 200", 12) != 0);
    ask("GET /hello HTTP/1.1\r\n\r\n"); /* no Host */
    ck_status("400");
    ask_on(kept, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
    ck_body("hello nobody");
    ck_assert_uint_eq(handled, 1);
    close(kept);
    teardown();
}
END_TEST

START_TEST(a_flood_is_answered_with_429_and_reaches_no_handler)
{
    struct http_counters c;
    setup();
    int fd = client_open();
    uint32_t refused = 0, asked = HTTP_REQUESTS_PER_S * 3;
    uint64_t since_us = loop_now_us();
    for (uint32_t i = 0; i < asked; i++) {
        ask_on(fd, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
        refused += strncmp(got, "HTTP/1.1 429", 12) == 0;
    }
    uint64_t seconds = (loop_now_us() - since_us) / 1000000u + 2;
    http_counters(http, &c);
    ck_assert_uint_eq(c.refused_rate, refused);
    ck_assert_uint_eq(c.answered, handled);
    ck_assert_uint_eq(handled + refused, asked);
    ck_assert_uint_le(handled, HTTP_REQUESTS_PER_S * seconds);
    ck_assert(refused > 0 || seconds > 2);
    close(fd);
    teardown();
}
END_TEST

START_TEST(connections_over_the_bound_are_refused_and_counted)
{
    struct http_counters c;
    int fds[CLIENTS];
    setup();
    for (uint32_t i = 0; i < CLIENTS; i++) {
        fds[i] = client_open();
        loop_poll(loop);
    }
    uint64_t until_us = loop_now_us() + 5000000u;
    do {
        loop_poll(loop);
        http_counters(http, &c);
    } while (c.refused_connections < CLIENTS - HTTP_CONNECTIONS && loop_now_us() < until_us);
    ck_assert_uint_eq(c.connections, HTTP_CONNECTIONS);
    ck_assert_uint_eq(c.refused_connections, CLIENTS - HTTP_CONNECTIONS);
    ask_on(fds[0], "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
    ck_body("hello nobody");
    for (uint32_t i = 0; i < CLIENTS; i++) close(fds[i]);
    /* Room again once they have gone. */
    do {
        loop_poll(loop);
        http_counters(http, &c);
    } while (c.connections > 0 && loop_now_us() < until_us);
    ask("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
    ck_body("hello nobody");
    teardown();
}
END_TEST

START_TEST(an_address_that_cannot_be_listened_on_is_named)
{
    struct http *other;
    char fault[256], taken[LIMIT_URL];
    setup();
    snprintf(taken, sizeof taken, "%s", http_url(http) + strlen("http://"));
    const char *const bad[] = {taken,    "127.0.0.1", "127.0.0.1:70000",         ":7080",
                               "::1:80", "[]:80",     "no.such.host.invalid:80", "127.0.0.1:x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(http_open(loop_ev(loop), bad[i], &other, fault, sizeof fault), TERRANE_ERR_ADDRESS);
        char named[LIMIT_URL];
        snprintf(named, sizeof named, "%.*s", (int)strcspn(bad[i], ":"), bad[i]);
        ck_assert_msg(strstr(fault, named) != NULL, "%s: %s", bad[i], fault);
        ck_assert_ptr_null(other);
    }
    teardown();
}
END_TEST

SUITE_MAIN("http", a_route_answers_its_path_and_its_subtree_alone, parameters_arrive_decoded, head_has_no_body,
           a_connection_serves_many_requests, other_methods_reach_no_handler,
           what_is_not_http_ends_its_own_connection_only, a_flood_is_answered_with_429_and_reaches_no_handler,
           connections_over_the_bound_are_refused_and_counted, an_address_that_cannot_be_listened_on_is_named)
