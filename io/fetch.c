#include "io/fetch.h"

#include "io/address.h"
#include "io/loop.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static enum terrane_error await(int fd, short what, uint64_t until_us)
{
    for (;;) {
        uint64_t now_us = loop_now_us();
        if (now_us >= until_us) return TERRANE_ERR_TIMED_OUT;
        struct pollfd waiting = {.fd = fd, .events = what};
        int ready = poll(&waiting, 1, (int)((until_us - now_us + 999) / 1000));
        if (ready > 0) return TERRANE_ERR_OK;
        if (ready < 0 && errno != EINTR) return TERRANE_ERR_CLOSED;
    }
}

static enum terrane_error connect_to(const char *address, uint64_t until_us, int *fd)
{
    char host[LIMIT_URL], service[8];
    uint16_t port;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (!address_split(address, host, &port)) return TERRANE_ERR_ADDRESS;
    snprintf(service, sizeof service, "%u", (unsigned)port);
    if (getaddrinfo(host, service, &hints, &found) != 0) return TERRANE_ERR_ADDRESS;
    enum terrane_error error = TERRANE_ERR_CLOSED;
    *fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd >= 0 && (connect(*fd, found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS))
        error = await(*fd, POLLOUT, until_us);
    freeaddrinfo(found);
    int failed = 0;
    socklen_t size = sizeof failed;
    if (error == TERRANE_ERR_OK && (getsockopt(*fd, SOL_SOCKET, SO_ERROR, &failed, &size) != 0 || failed != 0))
        error = TERRANE_ERR_CLOSED;
    if (error != TERRANE_ERR_OK && *fd >= 0) close(*fd);
    return error;
}

static enum terrane_error ask(int fd, const char *address, const char *path, uint64_t until_us)
{
    char request[512];
    int size =
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, address);
    if (size < 0 || (size_t)size >= sizeof request) return TERRANE_ERR_LIMIT;
    for (size_t sent = 0; sent < (size_t)size;) {
        enum terrane_error error = await(fd, POLLOUT, until_us);
        if (error != TERRANE_ERR_OK) return error;
        ssize_t more = send(fd, request + sent, (size_t)size - sent, MSG_NOSIGNAL);
        if (more < 0 && errno != EAGAIN) return TERRANE_ERR_CLOSED;
        if (more > 0) sent += (size_t)more;
    }
    return TERRANE_ERR_OK;
}

static enum terrane_error read_all(int fd, uint64_t until_us, struct writer *all)
{
    for (;;) {
        char bytes[16384];
        enum terrane_error error = await(fd, POLLIN, until_us);
        if (error != TERRANE_ERR_OK) return error;
        ssize_t more = recv(fd, bytes, sizeof bytes, 0);
        if (more == 0) return TERRANE_ERR_OK;
        if (more < 0 && errno != EAGAIN) return TERRANE_ERR_CLOSED;
        if (more > 0) writer_raw(all, bytes, (size_t)more);
        if (all->size > LIMIT_FETCH_BYTES) return TERRANE_ERR_LIMIT;
    }
}

/* Takes the head off; the answer is whole if the body is as long as the head says. */
static enum terrane_error take_head(struct writer *all, unsigned *status)
{
    writer_raw(all, "", 1);
    char *text = (char *)all->data, *body = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "content-length:");
    if (strncmp(text, "HTTP/1.1 ", 9) != 0 || body == NULL || length == NULL || length > body)
        return TERRANE_ERR_CLOSED;
    *status = (unsigned)strtoul(text + 9, NULL, 10);
    body += 4;
    size_t size = all->size - 1 - (size_t)(body - text);
    if (size != strtoul(length + strlen("content-length:"), NULL, 10)) return TERRANE_ERR_CLOSED;
    memmove(text, body, size);
    all->size = size;
    return TERRANE_ERR_OK;
}

enum terrane_error fetch(const char *address, const char *path, uint32_t timeout_ms, unsigned *status,
                         struct writer *body)
{
    int fd;
    uint64_t until_us = loop_now_us() + timeout_ms * UINT64_C(1000);
    writer_clear(body);
    enum terrane_error error = connect_to(address, until_us, &fd);
    if (error != TERRANE_ERR_OK) return error;
    error = ask(fd, address, path, until_us);
    if (error == TERRANE_ERR_OK) error = read_all(fd, until_us, body);
    close(fd);
    return error == TERRANE_ERR_OK ? take_head(body, status) : error;
}
