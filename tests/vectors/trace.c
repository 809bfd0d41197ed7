/* The vectors of TRACE and TRACE_RESULT: built and read back. */
#include "proto/trace.h"
#include "common/check.h"
#include "common/geometry.h"
#include "tests/vectors/vectors.h"

static void asked(struct writer *w)
{
    trace_encode(w, &(struct trace){.id = {7}});
}

static void a_way(struct writer *w)
{
    trace_result_begin(w, &(struct trace_result){.id = {7}, .role = TRACE_GHOST, .horizon_us = 300000000, .count = 3});
    trace_result_step(w, &(struct trace_step){
                             .age_us = 90000000, .cause = TRACE_ENTERED, .version = 1000, .to = {19}, .node = {200}});
    trace_result_step(w, &(struct trace_step){
                             .age_us = 60000000, .cause = TRACE_PROMOTED, .version = 2024, .from = {19}, .to = {19}});
    trace_result_step(
        w, &(struct trace_step){
               .age_us = 2500000, .cause = TRACE_PASSED_ON, .version = 2025, .from = {19}, .to = {17}, .node = {500}});
}

static void nothing_known(struct writer *w)
{
    trace_result_begin(w, &(struct trace_result){.id = {UINT64_MAX}, .horizon_us = 1000000});
}

const struct vector_case vector_cases_trace[] = {
    {"trace", "where has it been?", VECTOR_MESSAGE, asked},
    {"trace_result", "entered here, taken over here, passed on", VECTOR_MESSAGE, a_way},
    {"trace_result", "never heard of", VECTOR_MESSAGE, nothing_known},
    {0},
};

static void leaf_field(struct text *t, const char *key, struct quadkey leaf)
{
    if (leaf.v == QUADKEY_NONE.v)
        text_uint(t, key, 0);
    else
        text_quadkey(t, key, leaf);
}

bool trace_fields(enum message_kind kind, struct cursor c, struct text *t, enum terrane_error *error)
{
    struct trace m;
    struct trace_result r;
    struct trace_step step;
    uint32_t seen = 0;
    if (kind == MESSAGE_TRACE) {
        *error = trace_decode(c, &m);
        if (*error == TERRANE_ERR_OK) text_uint(t, "id", m.id.v);
        return true;
    }
    if (kind != MESSAGE_TRACE_RESULT) return false;
    *error = trace_result_decode(c, &r);
    if (*error != TERRANE_ERR_OK) return true;
    text_uint(t, "id", r.id.v);
    text_uint(t, "role", r.role);
    text_uint(t, "horizon_us", r.horizon_us);
    text_open(t, "steps", '[');
    for (; trace_result_next(&r, &step); seen++) {
        text_open(t, NULL, '{');
        text_uint(t, "age_us", step.age_us);
        text_uint(t, "cause", step.cause);
        text_uint(t, "version", step.version);
        leaf_field(t, "from", step.from);
        leaf_field(t, "to", step.to);
        text_uint(t, "node", step.node.v);
        text_close(t, '}');
    }
    text_close(t, ']');
    CHECK(seen == r.count);
    return true;
}
