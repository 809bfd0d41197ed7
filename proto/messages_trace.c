/* Where an entity has been: TRACE, TRACE_RESULT. */
#include "proto/trace.h"

#include "common/check.h"
#include "common/geometry.h"
#include "proto/codec.h"

const char *trace_cause_name(enum trace_cause cause)
{
    static const char *const names[] = {"none",
#define X(NAME, name) #name,
                                        TRACE_CAUSES(X)
#undef X
    };
    CHECK(cause < TRACE_CAUSE_END);
    return names[cause];
}

const char *trace_role_name(enum trace_role role)
{
    static const char *const names[] = {"unknown", "owned", "ghost", "standby"};
    CHECK(role < TRACE_ROLE_END);
    return names[role];
}

void trace_encode(struct writer *w, const struct trace *m)
{
    head_write(w, MESSAGE_TRACE, 1);
    writer_uint(w, m->id.v);
}

enum terrane_error trace_decode(struct cursor c, struct trace *m)
{
    head_read(&c, MESSAGE_TRACE, 1);
    m->id = id_read(&c);
    return cursor_end(&c);
}

void trace_result_begin(struct writer *w, const struct trace_result *m)
{
    head_write(w, MESSAGE_TRACE_RESULT, 4);
    writer_uint(w, m->id.v);
    writer_uint(w, m->role);
    writer_uint(w, m->horizon_us);
    writer_array(w, m->count);
}

void trace_result_step(struct writer *w, const struct trace_step *step)
{
    writer_array(w, 6);
    writer_uint(w, step->age_us);
    writer_uint(w, step->cause);
    writer_uint(w, step->version);
    writer_uint(w, step->from.v);
    writer_uint(w, step->to.v);
    writer_uint(w, step->node.v);
}

static struct quadkey leaf_read(struct cursor *c)
{
    struct cursor peek = *c;
    if (cursor_uint(&peek, UINT64_MAX) != QUADKEY_NONE.v) return quadkey_read(c);
    *c = peek;
    return QUADKEY_NONE;
}

static void step_read(struct cursor *c, struct trace_step *step)
{
    (void)cursor_array(c, 6, 6);
    step->age_us = number_read(c);
    uint64_t cause = cursor_uint(c, TRACE_CAUSE_END - 1);
    if (cause == TRACE_NONE) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    step->cause = (enum trace_cause)cause;
    step->version = version_read(c);
    step->from = leaf_read(c);
    step->to = leaf_read(c);
    step->node = (struct node_id){cursor_uint(c, UINT64_MAX)};
}

enum terrane_error trace_result_decode(struct cursor c, struct trace_result *m)
{
    struct trace_step step;
    head_read(&c, MESSAGE_TRACE_RESULT, 4);
    m->id = id_read(&c);
    m->role = (enum trace_role)cursor_uint(&c, TRACE_ROLE_END - 1);
    m->horizon_us = number_read(&c);
    m->count = cursor_array(&c, 0, TRACE_STEPS_MAX);
    m->steps = list_open(&c);
    for (uint32_t i = 0; i < m->count && c.error == TERRANE_ERR_OK; i++) step_read(&c, &step);
    list_close(&m->steps, &c);
    return cursor_end(&c);
}

bool trace_result_next(struct trace_result *m, struct trace_step *step)
{
    if (!list_more(&m->steps)) return false;
    step_read(&m->steps, step);
    return m->steps.error == TERRANE_ERR_OK;
}
