#include "io/query.h"

#include "common/array.h"
#include "common/check.h"
#include "common/limits.h"
#include "proto/messages.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
    char url[LIMIT_URL];
    nng_socket socket;
};

struct query_lane {
    struct line *lines;
    uint32_t count, room;
    nng_aio *aio;
    nng_msg *answer; /* the last one, lent to the caller */
};

struct query_lane *query_lane_open(void)
{
    struct query_lane *q = calloc(1, sizeof *q);
    CHECK(q != NULL && nng_aio_alloc(&q->aio, NULL, NULL) == 0);
    return q;
}

static enum terrane_error error_of(int nng_error)
{
    switch (nng_error) {
    case 0: return TERRANE_ERR_OK;
    case NNG_ENOMEM: return TERRANE_ERR_MEMORY;
    case NNG_ETIMEDOUT: return TERRANE_ERR_TIMED_OUT;
    case NNG_EINVAL:
    case NNG_EADDRINVAL:
    case NNG_ENOTSUP: return TERRANE_ERR_ADDRESS;
    default: return TERRANE_ERR_TIMED_OUT; /* nobody answers there */
    }
}

/* A new REQ socket that goes on dialling until somebody is there. */
static int dial(nng_socket *socket, const char *url)
{
    nng_dialer dialer;
    int error = nng_req0_open(socket);
    if (error != 0) return error;
    error = nng_socket_set_size(*socket, NNG_OPT_RECVMAXSZ, LIMIT_PACKET_BYTES);
    if (error == 0) error = nng_socket_set_ms(*socket, NNG_OPT_RECONNMINT, 20);
    if (error == 0) error = nng_socket_set_ms(*socket, NNG_OPT_RECONNMAXT, 200);
    if (error == 0) error = nng_dial(*socket, url, &dialer, NNG_FLAG_NONBLOCK);
    if (error != 0) nng_close(*socket); /* nobody was ever connected: closing is safe */
    return error;
}

static enum terrane_error line_to(struct query_lane *q, const char *url, nng_socket *socket)
{
    for (uint32_t i = 0; i < q->count; i++) {
        if (strcmp(q->lines[i].url, url) != 0) continue;
        *socket = q->lines[i].socket;
        return TERRANE_ERR_OK;
    }
    if (strlen(url) >= LIMIT_URL) return TERRANE_ERR_ADDRESS;
    if (q->count == LIMIT_NODES) return TERRANE_ERR_LIMIT;
    struct line line = {0};
    snprintf(line.url, sizeof line.url, "%s", url);
    int error = dial(&line.socket, url);
    if (error != 0) return error_of(error);
    ARRAY_RESERVE(q->lines, q->room, (size_t)q->count + 1);
    q->lines[q->count++] = line;
    *socket = line.socket;
    return TERRANE_ERR_OK;
}

enum terrane_error query_ask(struct query_lane *q, const char *url, const void *request, size_t size,
                             uint32_t timeout_ms, const uint8_t **answer, size_t *answer_size)
{
    nng_socket socket;
    nng_msg *message;
    enum terrane_error error = line_to(q, url, &socket);
    if (error != TERRANE_ERR_OK) return error;
    if (q->answer != NULL) nng_msg_free(q->answer);
    q->answer = NULL;
    if (nng_msg_alloc(&message, 0) != 0) return TERRANE_ERR_MEMORY;
    if (nng_msg_append(message, request, size) != 0) {
        nng_msg_free(message);
        return TERRANE_ERR_MEMORY;
    }
    nng_aio_set_timeout(q->aio, (nng_duration)timeout_ms);
    nng_aio_set_msg(q->aio, message);
    nng_send_aio(socket, q->aio);
    nng_aio_wait(q->aio);
    int result = nng_aio_result(q->aio);
    if (result != 0) {
        nng_msg_free(nng_aio_get_msg(q->aio));
        return error_of(result);
    }
    nng_recv_aio(socket, q->aio);
    nng_aio_wait(q->aio);
    if ((result = nng_aio_result(q->aio)) != 0) return error_of(result);
    q->answer = nng_aio_get_msg(q->aio);
    *answer = nng_msg_body(q->answer);
    *answer_size = nng_msg_len(q->answer);
    return TERRANE_ERR_OK;
}

enum terrane_error query_status(struct query_lane *q, const char *url, uint32_t timeout_ms, const char **json,
                                size_t *size)
{
    struct writer w = {0};
    const uint8_t *answer;
    size_t answer_size;
    status_request_encode(&w);
    enum terrane_error error = query_ask(q, url, w.data, w.size, timeout_ms, &answer, &answer_size);
    writer_close(&w);
    if (error != TERRANE_ERR_OK) return error;
    struct status status;
    struct fault fault;
    if (fault_decode(cursor_of(answer, answer_size), &fault) == TERRANE_ERR_OK) return fault.error;
    error = status_decode(cursor_of(answer, answer_size), &status);
    if (error != TERRANE_ERR_OK) return error;
    *json = status.json;
    *size = status.size;
    return TERRANE_ERR_OK;
}
