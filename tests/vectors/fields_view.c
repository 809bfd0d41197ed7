#include "tests/vectors/vectors.h"

#include "common/check.h"

static void ids_fields(struct text *t, const char *key, struct cursor list, uint32_t count)
{
    struct entity_id id;
    uint32_t seen = 0;
    text_open(t, key, '[');
    for (; entity_next(&list, &id); seen++) text_uint(t, NULL, id.v);
    text_close(t, ']');
    CHECK(seen == count);
}

static enum terrane_error views_fields(struct cursor c, struct text *t)
{
    struct views m;
    struct view_item item;
    uint32_t seen = 0;
    enum terrane_error error = views_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_uint(t, "tick", m.tick);
    text_open(t, "items", '[');
    for (; views_next(&m, &item); seen++) {
        text_open(t, NULL, '{');
        text_uint(t, "observer", item.observer.v);
        text_uint(t, "version", item.version);
        text_uint(t, "part", (uint64_t)item.part);
        ids_fields(t, "unsee", item.unsee, item.unsee_count);
        ids_fields(t, "see", item.see, item.see_count);
        text_close(t, '}');
    }
    text_close(t, ']');
    CHECK(seen == m.count);
    return error;
}

static void emit_plain_fields(struct text *t, const struct emit *m)
{
    text_uint(t, "origin", m->origin.v);
    text_uint(t, "request", m->request);
    text_uint(t, "code", m->code);
    text_uint(t, "radius", m->radius);
    text_uint(t, "layer", m->layer);
    text_position(t, m->position);
    text_bin(t, "payload", m->payload, m->payload_size);
}

static enum terrane_error emit_fields(struct cursor c, struct text *t)
{
    struct emit m;
    enum terrane_error error = emit_decode(c, &m);
    if (error == TERRANE_ERR_OK) emit_plain_fields(t, &m);
    return error;
}

static enum terrane_error event_fields(struct cursor c, struct text *t)
{
    struct event_told m;
    enum terrane_error error = event_told_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    emit_plain_fields(t, &m.emit);
    ids_fields(t, "observers", m.observers, m.count);
    return error;
}

static enum terrane_error query_fields(struct cursor c, struct text *t)
{
    struct query m;
    enum terrane_error error = query_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_uint(t, "request", m.request);
    text_uint(t, "shape", (uint64_t)m.shape);
    text_int(t, "layer", m.layer);
    text_int(t, "a", m.a);
    text_int(t, "b", m.b);
    text_int(t, "c", m.c);
    text_int(t, "d", m.d);
    return error;
}

static enum terrane_error query_result_fields(struct cursor c, struct text *t)
{
    struct query_result m;
    struct query_item item;
    uint32_t seen = 0;
    enum terrane_error error = query_result_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_uint(t, "request", m.request);
    text_uint(t, "error", (uint64_t)m.error);
    text_uint(t, "part", m.part);
    text_uint(t, "parts", m.parts);
    text_open(t, "items", '[');
    for (; query_result_next(&m, &item); seen++) {
        text_open(t, NULL, '{');
        text_uint(t, "id", item.id.v);
        text_uint(t, "version", item.version);
        text_position(t, item.position);
        text_close(t, '}');
    }
    text_close(t, ']');
    CHECK(seen == m.count);
    return error;
}

static enum terrane_error lookup_fields(struct cursor c, struct text *t)
{
    struct lookup m;
    enum terrane_error error = lookup_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_uint(t, "request", m.request);
    text_uint(t, "id", m.id.v);
    return error;
}

static enum terrane_error lookup_result_fields(struct cursor c, struct text *t)
{
    struct lookup_result m;
    enum terrane_error error = lookup_result_decode(c, &m);
    if (error != TERRANE_ERR_OK) return error;
    text_uint(t, "request", m.request);
    text_uint(t, "id", m.id.v);
    text_uint(t, "error", (uint64_t)m.error);
    text_uint(t, "version", m.version);
    text_quadkey(t, "leaf", m.leaf);
    text_position(t, m.position);
    return error;
}

bool view_fields(enum message_kind kind, struct cursor c, struct text *t, enum terrane_error *error)
{
    if (kind == MESSAGE_VIEWS)
        *error = views_fields(c, t);
    else if (kind == MESSAGE_EMIT || kind == MESSAGE_EVENT_RELAY)
        *error = emit_fields(c, t);
    else if (kind == MESSAGE_EVENT)
        *error = event_fields(c, t);
    else if (kind == MESSAGE_QUERY)
        *error = query_fields(c, t);
    else if (kind == MESSAGE_QUERY_RESULT)
        *error = query_result_fields(c, t);
    else if (kind == MESSAGE_LOOKUP)
        *error = lookup_fields(c, t);
    else if (kind == MESSAGE_LOOKUP_RESULT)
        *error = lookup_result_fields(c, t);
    else
        return false;
    return true;
}
