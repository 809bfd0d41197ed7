/* What comes on the query lane: STATUS_REQUEST from anybody, DEATH from agents, DRAIN, EXPLAIN and PLACE
 * from operators. */
#include "coordinator/internal.h"

#include <inttypes.h>
#include <stdio.h>

static enum terrane_error answer_status(struct coordinator *c, struct cursor message)
{
    enum terrane_error error = status_request_decode(message);
    if (error != TERRANE_ERR_OK) return error;
    coordinator_status_write(c);
    status_encode(&c->message, &(struct status){.json = (const char *)c->json.data});
    return TERRANE_ERR_OK;
}

/* An agent has seen the process end. Who is no member any more, or not yet, has nothing that others could take. */
static enum terrane_error answer_death(struct coordinator *c, struct cursor message)
{
    struct death death;
    struct done done = {.text = "no such member (any more)"};
    enum terrane_error error = death_decode(message, &death);
    if (error != TERRANE_ERR_OK) return error;
    if (!c->ready) return TERRANE_ERR_NOT_READY;
    uint32_t index = member_find(c, death.node);
    const struct member *m = index == NONE ? NULL : &c->members[index];
    bool there = m != NULL && (m->state == MEMBER_ACTIVE || m->state == MEMBER_EXPECTED);
    if (there && member_is_server(m)) {
        done.count = m->leaves;
        snprintf(done.text, sizeof done.text, "%.63s is dead, its leaves go to others", m->info.name);
        member_dead(c, index, "its agent says that the process has ended");
    } else if (there) {
        snprintf(done.text, sizeof done.text, "%.63s is no cell server: nothing to do", m->info.name);
    }
    done_encode(&c->message, &done);
    return TERRANE_ERR_OK;
}

static enum terrane_error answer_drain(struct coordinator *c, struct cursor message, char *fault, size_t room)
{
    struct drain drain;
    struct done done = {0};
    enum terrane_error error = drain_decode(message, &drain);
    if (error != TERRANE_ERR_OK) return error;
    if (!c->ready) return TERRANE_ERR_NOT_READY;
    uint32_t index = member_named(c, drain.name);
    if (index == NONE) {
        snprintf(fault, room, "no cell server has the name %.63s; status shows who is there", drain.name);
        return TERRANE_ERR_CONFIG;
    }
    member_drain(c, index, "an operator asks for it");
    const struct member *m = &c->members[index];
    done.count = m->leaves + m->stands;
    snprintf(done.text, sizeof done.text, "%u leaves and %u as standby are left", m->leaves, m->stands);
    done_encode(&c->message, &done);
    return TERRANE_ERR_OK;
}

static enum terrane_error answer_explain(struct coordinator *c, struct cursor message)
{
    struct explain asked;
    enum terrane_error error = explain_decode(message, &asked);
    if (error != TERRANE_ERR_OK) return error;
    explain_write(c, &asked);
    status_encode(&c->message, &(struct status){.json = (const char *)c->json.data});
    return TERRANE_ERR_OK;
}

static enum terrane_error answer_place(struct coordinator *c, struct cursor message, char *fault, size_t room)
{
    struct place asked;
    struct done done = {0};
    enum terrane_error error = place_decode(message, &asked);
    if (error == TERRANE_ERR_OK) error = place_ask(c, &asked, &done, fault, room);
    if (error == TERRANE_ERR_OK) done_encode(&c->message, &done);
    return error;
}

void query_answer(struct coordinator *c, uint64_t token, const uint8_t *bytes, size_t size)
{
    struct cursor message = cursor_of(bytes, size);
    enum message_kind kind;
    struct fault fault = {0};
    enum terrane_error error = message_kind_of(message, &kind);
    writer_clear(&c->message);
    if (error == TERRANE_ERR_OK && kind == MESSAGE_STATUS_REQUEST)
        error = answer_status(c, message);
    else if (error == TERRANE_ERR_OK && kind == MESSAGE_DEATH)
        error = answer_death(c, message);
    else if (error == TERRANE_ERR_OK && kind == MESSAGE_DRAIN)
        error = answer_drain(c, message, fault.text, sizeof fault.text);
    else if (error == TERRANE_ERR_OK && kind == MESSAGE_EXPLAIN)
        error = answer_explain(c, message);
    else if (error == TERRANE_ERR_OK && kind == MESSAGE_PLACE)
        error = answer_place(c, message, fault.text, sizeof fault.text);
    else if (error == TERRANE_ERR_OK)
        error = TERRANE_ERR_MESSAGE_UNKNOWN;
    if (error != TERRANE_ERR_OK) {
        fault.error = error;
        if (fault.text[0] == '\0')
            snprintf(fault.text, sizeof fault.text,
                     "a coordinator answers STATUS_REQUEST, DEATH, DRAIN, EXPLAIN and PLACE: %s",
                     terrane_error_text(error));
        refuse(c, error, "query", NODE_NONE);
        writer_clear(&c->message);
        fault_encode(&c->message, &fault);
    }
    outbox_push(c->out, (struct output){.kind = OUTPUT_REPLY, .token = token}, c->message.data, c->message.size);
}
