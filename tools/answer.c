#include "tools/answer.h"

#include "io/loop.h"
#include "io/program.h"

#include <stdio.h>
#include <unistd.h>

#define LOOK_US 100000u

static struct answer answer_of(const uint8_t *bytes, size_t size)
{
    struct answer answer = {.error = TERRANE_ERR_OK};
    struct fault fault;
    struct status status;
    if (fault_decode(cursor_of(bytes, size), &fault) == TERRANE_ERR_OK) {
        answer.error = fault.error;
        snprintf(answer.text, sizeof answer.text, "%s", fault.text);
    } else if (status_decode(cursor_of(bytes, size), &status) == TERRANE_ERR_OK) {
        answer.json = status.json;
        answer.json_size = status.size;
    } else {
        answer.error = done_decode(cursor_of(bytes, size), &answer.done);
        if (answer.error == TERRANE_ERR_OK) snprintf(answer.text, sizeof answer.text, "%s", answer.done.text);
    }
    return answer;
}

struct answer answer_ask(struct cluster *c, const struct writer *message, const volatile bool *stop)
{
    struct answer answer = {.error = TERRANE_ERR_TIMED_OUT};
    for (uint32_t i = 0; i < c->url_count && !*stop; i++) {
        const uint8_t *bytes;
        size_t size;
        uint32_t at = (c->leader + i) % c->url_count;
        if (query_ask(c->lane, c->query_urls[at], message->data, message->size, CLUSTER_PATIENCE_MS / c->url_count,
                      &bytes, &size) != TERRANE_ERR_OK)
            continue;
        struct answer said = answer_of(bytes, size);
        if (said.error == TERRANE_ERR_OK || answer.error == TERRANE_ERR_TIMED_OUT) answer = said;
        if (said.error != TERRANE_ERR_OK) continue;
        c->leader = at;
        break;
    }
    return answer;
}

bool answer_passes(enum terrane_error error)
{
    return error == TERRANE_ERR_TIMED_OUT || error == TERRANE_ERR_NOT_READY;
}

struct answer answer_wait(struct cluster *c, const struct writer *message, uint64_t patience_ms,
                          const volatile bool *stop)
{
    uint64_t until_us = loop_now_us() + patience_ms * 1000;
    struct answer answer = answer_ask(c, message, stop);
    while (answer.error != TERRANE_ERR_OK && answer_passes(answer.error) && !*stop && loop_now_us() < until_us) {
        usleep(LOOK_US);
        answer = answer_ask(c, message, stop);
    }
    return answer;
}

int answer_failed(const char *name, const struct answer *answer)
{
    if (answer->error == TERRANE_ERR_TIMED_OUT) {
        fprintf(stderr, "%s: no coordinator answers\n", name);
        return EXIT_MISSING;
    }
    fprintf(stderr, "%s: %s%s%s\n", name, terrane_error_text(answer->error), answer->text[0] != '\0' ? ": " : "",
            answer->text);
    return EXIT_NOT_HELD;
}
