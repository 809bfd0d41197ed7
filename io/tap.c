#include "io/tap.h"

#include "common/array.h"
#include "common/check.h"
#include "common/limits.h"

#include <errno.h>
#include <nng/nng.h>
#include <nng/protocol/pubsub0/sub.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tapped {
    char url[LIMIT_URL];
};

struct tap {
    nng_socket socket;
    int fd; /* readable when a message waits */
    struct tapped *feeds;
    uint32_t count, room;
    nng_msg *message; /* the last one, lent to the caller */
};

enum terrane_error tap_open(const char *prefix, struct tap **out)
{
    struct tap *t = calloc(1, sizeof *t);
    CHECK(t != NULL);
    int error = nng_sub0_open(&t->socket);
    if (error == 0) error = nng_socket_set(t->socket, NNG_OPT_SUB_SUBSCRIBE, prefix, strlen(prefix));
    if (error == 0) error = nng_socket_set_size(t->socket, NNG_OPT_RECVMAXSZ, LIMIT_FRAME_BYTES);
    if (error == 0) error = nng_socket_set_int(t->socket, NNG_OPT_RECVBUF, 1024);
    if (error == 0) error = nng_socket_get_int(t->socket, NNG_OPT_RECVFD, &t->fd);
    if (error == 0) {
        *out = t;
        return TERRANE_ERR_OK;
    }
    free(t);
    return TERRANE_ERR_MEMORY;
}

enum terrane_error tap_dial(struct tap *t, const char *url)
{
    nng_dialer dialer;
    for (uint32_t i = 0; i < t->count; i++)
        if (strcmp(t->feeds[i].url, url) == 0) return TERRANE_ERR_OK;
    if (strlen(url) >= LIMIT_URL) return TERRANE_ERR_ADDRESS;
    int error = nng_dial(t->socket, url, &dialer, NNG_FLAG_NONBLOCK);
    if (error != 0) return error == NNG_ENOMEM ? TERRANE_ERR_MEMORY : TERRANE_ERR_ADDRESS;
    ARRAY_RESERVE(t->feeds, t->room, (size_t)t->count + 1);
    snprintf(t->feeds[t->count++].url, LIMIT_URL, "%s", url);
    return TERRANE_ERR_OK;
}

enum terrane_error tap_next(struct tap *t, int timeout_ms, const uint8_t **bytes, size_t *size)
{
    struct pollfd waiting = {.fd = t->fd, .events = POLLIN};
    if (t->message != NULL) nng_msg_free(t->message);
    t->message = NULL;
    for (;;) {
        /* Asked before and after the poll: the fd says that something may wait, not that it does. */
        int error = nng_recvmsg(t->socket, &t->message, NNG_FLAG_NONBLOCK);
        if (error == 0) break;
        if (error != NNG_EAGAIN) return TERRANE_ERR_CLOSED;
        int ready = poll(&waiting, 1, timeout_ms);
        if (ready == 0) return TERRANE_ERR_TIMED_OUT;
        if (ready < 0 && errno != EINTR) return TERRANE_ERR_CLOSED;
        if (ready < 0) return TERRANE_ERR_TIMED_OUT;
    }
    *bytes = nng_msg_body(t->message);
    *size = nng_msg_len(t->message);
    return TERRANE_ERR_OK;
}
