#include "tests/vectors/vectors.h"

static void ids(struct writer *w, uint64_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) entity_add(w, (struct entity_id){first + i});
}

static void views_changes(struct writer *w)
{
    views_begin(w, &(struct views){.tick = 1200, .count = 2});
    views_add(w, &(struct view_item){.observer = {7}, .version = 1000, .part = VIEW_CHANGES, .unsee_count = 1});
    ids(w, 12, 1);
    entity_list(w, 2);
    ids(w, 8, 2);
    views_add(w, &(struct view_item){.observer = {8}, .version = 1000, .part = VIEW_CHANGES});
    entity_list(w, 1);
    ids(w, 7, 1);
}

static void views_whole(struct writer *w)
{
    views_begin(w, &(struct views){.tick = 1201, .count = 1});
    views_add(w, &(struct view_item){.observer = {7}, .version = 1001, .part = VIEW_WHOLE_LAST});
    entity_list(w, 3);
    ids(w, 8, 3);
}

static const struct emit bang = {
    .origin = {500},
    .request = 77,
    .code = 3,
    .radius = 4096,
    .layer = 1,
    .position = {1048576, 1048600, 20},
    .payload = (const uint8_t *)"bang",
    .payload_size = 4,
};

static void emit(struct writer *w)
{
    emit_encode(w, MESSAGE_EMIT, &bang);
}

static void event_relay(struct writer *w)
{
    emit_encode(w, MESSAGE_EVENT_RELAY, &bang);
}

static void event(struct writer *w)
{
    event_told_begin(w, &(struct event_told){.emit = bang, .count = 2});
    ids(w, 7, 2);
}

static void query_circle(struct writer *w)
{
    query_encode(w, &(struct query){.request = 4, .shape = QUERY_CIRCLE, .layer = -1, .a = 1000, .b = 2000, .c = 500});
}

static void query_rectangle(struct writer *w)
{
    struct query m = {.request = 5, .shape = QUERY_RECTANGLE, .layer = 2, .a = -10, .b = 0, .c = 1000, .d = 2000};
    query_encode(w, &m);
}

static void query_result(struct writer *w)
{
    query_result_begin(w, &(struct query_result){.request = 4, .part = 0, .parts = 1, .count = 2});
    query_result_add(w, &(struct query_item){.id = {7}, .version = 1000, .position = {1010, 2020, 0}});
    query_result_add(w, &(struct query_item){.id = {8}, .version = 2000, .position = {900, 1990, -3}});
}

static void query_result_refused(struct writer *w)
{
    query_result_begin(w, &(struct query_result){.request = 4, .error = TERRANE_ERR_NOT_READY, .parts = 1});
}

static void lookup(struct writer *w)
{
    lookup_encode(w, &(struct lookup){.request = 6, .id = {7}});
}

static void lookup_result(struct writer *w)
{
    struct lookup_result m = {
        .request = 6, .id = {7}, .version = 1000, .leaf = {19}, .position = {1048576, 1048600, 0}};
    lookup_result_encode(w, &m);
}

static void lookup_result_unknown(struct writer *w)
{
    lookup_result_encode(w, &(struct lookup_result){.request = 6, .id = {7}, .error = TERRANE_ERR_ENTITY_UNKNOWN});
}

const struct vector_case vector_cases_view[] = {
    {"views", "changes of two observers", VECTOR_MESSAGE, views_changes},
    {"views", "a whole view", VECTOR_MESSAGE, views_whole},
    {"emit", "code 3 with a payload", VECTOR_MESSAGE, emit},
    {"event_relay", "the same event, passed on", VECTOR_MESSAGE, event_relay},
    {"event", "the same event, told to two observers", VECTOR_MESSAGE, event},
    {"query", "a circle, all layers", VECTOR_MESSAGE, query_circle},
    {"query", "a rectangle that reaches over the world's edge, layer 2", VECTOR_MESSAGE, query_rectangle},
    {"query_result", "two entities", VECTOR_MESSAGE, query_result},
    {"query_result", "refused: not ready", VECTOR_MESSAGE, query_result_refused},
    {"lookup", "entity 7", VECTOR_MESSAGE, lookup},
    {"lookup_result", "found", VECTOR_MESSAGE, lookup_result},
    {"lookup_result", "unknown here", VECTOR_MESSAGE, lookup_result_unknown},
    {0},
};
