#include "io/caller.h"

#include "common/check.h"
#include "common/limits.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* IDLE -> SENDING -> WAITING -> ANSWERED -> IDLE; a failure of nng's leads back to IDLE from anywhere. nng's thread
 * moves it on from SENDING and WAITING, the owner from IDLE and ANSWERED. */
enum stage { IDLE, SENDING, WAITING, ANSWERED };

struct caller {
    char url[LIMIT_URL];
    nng_socket socket;
    nng_aio *aio;
    _Atomic(enum stage) stage;
    nng_msg *answer;
    void (*wake)(void *context);
    void *context;
};

static void moved(void *argument)
{
    struct caller *c = argument;
    bool sending = atomic_load(&c->stage) == SENDING;
    if (nng_aio_result(c->aio) != 0) {
        if (sending) nng_msg_free(nng_aio_get_msg(c->aio));
        atomic_store(&c->stage, IDLE);
    } else if (sending) {
        atomic_store(&c->stage, WAITING);
        nng_recv_aio(c->socket, c->aio);
        return;
    } else {
        c->answer = nng_aio_get_msg(c->aio);
        atomic_store(&c->stage, ANSWERED);
    }
    c->wake(c->context);
}

static int dial(struct caller *c, uint32_t redial_ms)
{
    nng_dialer dialer;
    int error = nng_req0_open(&c->socket);
    if (error != 0) return error;
    error = nng_socket_set_size(c->socket, NNG_OPT_RECVMAXSZ, LIMIT_PACKET_BYTES);
    if (error == 0) error = nng_socket_set_ms(c->socket, NNG_OPT_RECONNMINT, 10);
    if (error == 0) error = nng_socket_set_ms(c->socket, NNG_OPT_RECONNMAXT, (nng_duration)redial_ms);
    if (error == 0) error = nng_dial(c->socket, c->url, &dialer, NNG_FLAG_NONBLOCK);
    if (error != 0) nng_close(c->socket); /* nobody was ever connected: closing is safe */
    return error;
}

enum terrane_error caller_open(const char *url, uint32_t redial_ms, void (*wake)(void *context), void *context,
                               struct caller **out)
{
    *out = NULL;
    if (strlen(url) >= LIMIT_URL) return TERRANE_ERR_ADDRESS;
    struct caller *c = calloc(1, sizeof *c);
    if (c == NULL) return TERRANE_ERR_MEMORY;
    snprintf(c->url, sizeof c->url, "%s", url);
    c->wake = wake;
    c->context = context;
    int error = nng_aio_alloc(&c->aio, moved, c);
    if (error == 0) {
        error = dial(c, redial_ms);
        if (error == 0) {
            *out = c;
            return TERRANE_ERR_OK;
        }
        nng_aio_free(c->aio);
    }
    free(c);
    return error == NNG_ENOMEM ? TERRANE_ERR_MEMORY : TERRANE_ERR_ADDRESS;
}

const char *caller_url(const struct caller *c)
{
    return c->url;
}

bool caller_idle(const struct caller *c)
{
    return atomic_load(&c->stage) == IDLE;
}

enum terrane_error caller_ask(struct caller *c, const void *question, size_t size)
{
    nng_msg *message;
    CHECK(caller_idle(c));
    if (nng_msg_alloc(&message, 0) != 0) return TERRANE_ERR_MEMORY;
    if (nng_msg_append(message, question, size) != 0) {
        nng_msg_free(message);
        return TERRANE_ERR_MEMORY;
    }
    if (c->answer != NULL) nng_msg_free(c->answer);
    c->answer = NULL;
    atomic_store(&c->stage, SENDING);
    nng_aio_set_msg(c->aio, message);
    nng_send_aio(c->socket, c->aio);
    return TERRANE_ERR_OK;
}

bool caller_answer(struct caller *c, const uint8_t **bytes, size_t *size)
{
    if (atomic_load(&c->stage) != ANSWERED) return false;
    *bytes = nng_msg_body(c->answer);
    *size = nng_msg_len(c->answer);
    atomic_store(&c->stage, IDLE);
    return true;
}
