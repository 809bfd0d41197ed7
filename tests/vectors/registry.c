/* REGISTRY's vectors: built and read back. */
#include "proto/registry.h"
#include "common/check.h"
#include "tests/vectors/vectors.h"

static const struct quadkey home = {19};

static void claim(struct writer *w)
{
    registry_begin(w, &(struct registry){.leaf = home, .since = 2, .count = 1});
    struct registry_item item = {REGISTRY_CLAIM, {7}, 1000, {500}, 1, 0};
    registry_add(w, &item);
}

static void answers(struct writer *w)
{
    registry_begin(w, &(struct registry){.leaf = home, .since = 2, .count = 3});
    registry_add(w, &(struct registry_item){REGISTRY_GRANT, {7}, 1000, {500}, 1, 0});
    registry_add(w, &(struct registry_item){REGISTRY_EXISTS, {300}, 5, {501}, 12, 9});
    registry_add(w, &(struct registry_item){.verb = REGISTRY_ASK, .id = {301}, .version = 6, .token = 10});
}

static void news(struct writer *w)
{
    registry_begin(w, &(struct registry){.leaf = {5}, .since = UINT32_MAX, .complete = true, .count = 2});
    registry_add(w, &(struct registry_item){REGISTRY_HERE, {300}, VERSION_MAX, {UINT64_MAX}, UINT64_MAX, UINT64_MAX});
    registry_add(w, &(struct registry_item){.verb = REGISTRY_GONE, .id = {UINT64_MAX}, .version = 6});
}

static void nothing(struct writer *w)
{
    registry_begin(w, &(struct registry){.leaf = {1}, .since = 1, .complete = true});
}

const struct vector_case vector_cases_registry[] = {
    {"registry", "a home's answers and a question", VECTOR_MESSAGE, answers},
    {"registry", "may 7 live?", VECTOR_MESSAGE, claim},
    {"registry", "news, and that this was all", VECTOR_MESSAGE, news},
    {"registry", "the sender has nothing that is at home there", VECTOR_MESSAGE, nothing},
    {0},
};

bool registry_fields(enum message_kind kind, struct cursor c, struct text *t, enum terrane_error *error)
{
    struct registry m;
    struct registry_item item;
    uint32_t seen = 0;
    if (kind != MESSAGE_REGISTRY) return false;
    *error = registry_decode(c, &m);
    if (*error != TERRANE_ERR_OK) return true;
    text_quadkey(t, "leaf", m.leaf);
    text_uint(t, "since", m.since);
    text_bool(t, "complete", m.complete);
    text_open(t, "items", '[');
    for (; registry_next(&m, &item); seen++) {
        text_open(t, NULL, '{');
        text_uint(t, "verb", (uint64_t)item.verb);
        text_uint(t, "id", item.id.v);
        text_uint(t, "version", item.version);
        text_uint(t, "gateway", item.gateway.v);
        text_uint(t, "request", item.request);
        text_uint(t, "token", item.token);
        text_close(t, '}');
    }
    text_close(t, ']');
    CHECK(seen == m.count);
    return true;
}
