/* Sinks that may call back: what an operation changes is copied while the index changes, and told afterwards.
 *
 * An operation in the midst of a telling takes effect at once, and its changes wait behind those that are being told.
 * There are two stretches of them: one is told, the other takes what comes in meanwhile, and then they swap; so what a
 * sink has borrowed never moves. Whoever leaves meanwhile may still be named in what waits: his handle is not given out
 * again, and his id is kept, until all is told.
 *
 * Rejected: telling at once, recursively. The changes of the inner operation would come before the rest of the outer
 * one's, which may be their opposites. */
#include "aoi/index.h"
#include "common/array.h"
#include "common/check.h"
#include "common/table.h"

#include <stdlib.h>
#include <string.h>

/* A span whose others are words[first .. first + count). */
struct kept_span {
    uint32_t subject, change;
    size_t first;
    uint32_t count;
};

/* The changes of one operation: spans[first .. first + count). */
struct kept_call {
    aoi_sink *sink;
    void *context;
    uint32_t first, count;
};

struct stretch {
    uint32_t *words;
    struct kept_span *spans;
    struct kept_call *calls;
    size_t word_count, word_room;
    uint32_t span_count, span_room, call_count, call_room;
};

struct departed {
    uint32_t handle;
    struct entity_id id;
};

struct retelling {
    struct stretch stretches[2];
    unsigned filling; /* the stretch that takes what comes in */
    bool telling;
    struct aoi_span *borrowed; /* a call's spans as the sink gets them */
    uint32_t borrowed_room;
    struct table departed_at; /* handle + 1 -> index in departed */
    struct departed *departed;
    uint32_t departed_count, departed_room;
    struct aoi_ops ops; /* the index's, but for those that tell */
};

static void words_reserve(struct stretch *s, size_t count)
{
    if (s->word_count + count <= s->word_room) return;
    s->word_room = (s->word_count + count) * 2;
    s->words = realloc(s->words, s->word_room * sizeof *s->words);
    CHECK(s->words != NULL); /* a change that is half told can't be undone */
}

static void keep_spans(void *context, const struct aoi_span *spans, size_t count)
{
    struct retelling *r = context;
    struct stretch *s = &r->stretches[r->filling];
    ARRAY_RESERVE(s->spans, s->span_room, s->span_count + count);
    for (size_t i = 0; i < count; i++) {
        words_reserve(s, spans[i].count);
        memcpy(s->words + s->word_count, spans[i].others, spans[i].count * sizeof *s->words);
        s->spans[s->span_count++] = (struct kept_span){
            .subject = spans[i].subject, .change = spans[i].change, .first = s->word_count, .count = spans[i].count};
        s->word_count += spans[i].count;
    }
    s->calls[s->call_count].count += (uint32_t)count;
}

/* Opens the call that keep_spans adds to; nobody calls back while an index changes, so there is one at a time. */
static void call_begin(struct retelling *r, aoi_sink *sink, void *context)
{
    struct stretch *s = &r->stretches[r->filling];
    ARRAY_RESERVE(s->calls, s->call_room, s->call_count + 1);
    s->calls[s->call_count] = (struct kept_call){.sink = sink, .context = context, .first = s->span_count};
}

static void call_tell(struct retelling *r, const struct stretch *s, const struct kept_call *call)
{
    ARRAY_RESERVE(r->borrowed, r->borrowed_room, call->count);
    for (uint32_t i = 0; i < call->count; i++) {
        const struct kept_span *span = &s->spans[call->first + i];
        r->borrowed[i] = (struct aoi_span){
            .subject = span->subject, .change = span->change, .others = s->words + span->first, .count = span->count};
    }
    call->sink(call->context, r->borrowed, call->count);
}

static void departed_forget(struct retelling *r)
{
    for (uint32_t i = 0; i < r->departed_count; i++) table_remove(&r->departed_at, (uint64_t)r->departed[i].handle + 1);
    r->departed_count = 0;
}

/* Ends the call, and tells all that waits unless that is being done further out. */
static void call_end(struct aoi *aoi)
{
    struct retelling *r = aoi->retelling;
    struct stretch *s = &r->stretches[r->filling];
    s->call_count += s->calls[s->call_count].count != 0;
    if (r->telling) return;
    r->telling = aoi->held = true;
    while (r->stretches[r->filling].call_count) {
        s = &r->stretches[r->filling];
        r->filling ^= 1;
        for (uint32_t i = 0; i < s->call_count; i++) call_tell(r, s, &s->calls[i]);
        s->word_count = s->span_count = s->call_count = 0;
    }
    r->telling = aoi->held = false;
    departed_forget(r);
}

static const struct aoi_ops *inner(const struct aoi *aoi)
{
    return aoi->index->ops;
}

static enum terrane_error retell_enter(struct aoi *aoi, struct entity_id id, const struct aoi_place *place,
                                       aoi_sink *sink, void *context, uint32_t *handle)
{
    if (!sink) return inner(aoi)->enter(aoi, id, place, NULL, NULL, handle);
    call_begin(aoi->retelling, sink, context);
    enum terrane_error error = inner(aoi)->enter(aoi, id, place, keep_spans, aoi->retelling, handle);
    call_end(aoi);
    return error;
}

static enum terrane_error retell_leave(struct aoi *aoi, uint32_t handle, aoi_sink *sink, void *context)
{
    struct retelling *r = aoi->retelling;
    struct entity_id id = inner(aoi)->id(aoi, handle);
    if (!id.v) return TERRANE_ERR_ENTITY_UNKNOWN;
    if (!sink && !r->telling) return inner(aoi)->leave(aoi, handle, NULL, NULL);
    ARRAY_RESERVE(r->departed, r->departed_room, r->departed_count + 1);
    table_put(&r->departed_at, (uint64_t)handle + 1, r->departed_count);
    r->departed[r->departed_count++] = (struct departed){.handle = handle, .id = id};
    if (!sink) return inner(aoi)->leave(aoi, handle, NULL, NULL);
    call_begin(r, sink, context);
    enum terrane_error error = inner(aoi)->leave(aoi, handle, keep_spans, r);
    call_end(aoi);
    return error;
}

static enum terrane_error retell_move(struct aoi *aoi, uint32_t handle, struct position position, aoi_sink *sink,
                                      void *context)
{
    if (!sink) return inner(aoi)->move(aoi, handle, position, NULL, NULL);
    call_begin(aoi->retelling, sink, context);
    enum terrane_error error = inner(aoi)->move(aoi, handle, position, keep_spans, aoi->retelling);
    call_end(aoi);
    return error;
}

static enum terrane_error retell_set_radius(struct aoi *aoi, uint32_t handle, uint32_t radius, aoi_sink *sink,
                                            void *context)
{
    if (!sink) return inner(aoi)->set_radius(aoi, handle, radius, NULL, NULL);
    call_begin(aoi->retelling, sink, context);
    enum terrane_error error = inner(aoi)->set_radius(aoi, handle, radius, keep_spans, aoi->retelling);
    call_end(aoi);
    return error;
}

static enum terrane_error retell_set_layer(struct aoi *aoi, uint32_t handle, uint16_t layer, aoi_sink *sink,
                                           void *context)
{
    if (!sink) return inner(aoi)->set_layer(aoi, handle, layer, NULL, NULL);
    call_begin(aoi->retelling, sink, context);
    enum terrane_error error = inner(aoi)->set_layer(aoi, handle, layer, keep_spans, aoi->retelling);
    call_end(aoi);
    return error;
}

static void retell_tick(struct aoi *aoi, aoi_sink *sink, void *context)
{
    if (!sink) {
        inner(aoi)->tick(aoi, NULL, NULL);
        return;
    }
    call_begin(aoi->retelling, sink, context);
    inner(aoi)->tick(aoi, keep_spans, aoi->retelling);
    call_end(aoi);
}

static struct entity_id retell_id(const struct aoi *aoi, uint32_t handle)
{
    const struct retelling *r = aoi->retelling;
    struct entity_id id = inner(aoi)->id(aoi, handle);
    if (id.v || !r->departed_count) return id;
    uint32_t at = table_get(&r->departed_at, (uint64_t)handle + 1);
    return at == TABLE_NONE ? id : r->departed[at].id;
}

static size_t stretch_bytes(const struct stretch *s)
{
    return s->word_room * sizeof *s->words + s->span_room * sizeof *s->spans + s->call_room * sizeof *s->calls;
}

static size_t retell_memory_bytes(const struct aoi *aoi)
{
    const struct retelling *r = aoi->retelling;
    return inner(aoi)->memory_bytes(aoi) + sizeof *r + stretch_bytes(&r->stretches[0]) +
           stretch_bytes(&r->stretches[1]) + r->borrowed_room * sizeof *r->borrowed +
           table_memory_bytes(&r->departed_at) + r->departed_room * sizeof *r->departed;
}

bool retell_open(struct aoi *aoi)
{
    struct retelling *r = calloc(1, sizeof *r);
    if (!r) return false;
    r->ops = *inner(aoi);
    r->ops.enter = retell_enter;
    r->ops.leave = retell_leave;
    r->ops.move = retell_move;
    r->ops.set_radius = retell_set_radius;
    r->ops.set_layer = retell_set_layer;
    r->ops.tick = retell_tick;
    r->ops.id = retell_id;
    r->ops.memory_bytes = retell_memory_bytes;
    aoi->retelling = r;
    aoi->ops = &r->ops;
    return true;
}

void retell_close(struct aoi *aoi)
{
    struct retelling *r = aoi->retelling;
    if (!r) return;
    for (unsigned i = 0; i < 2; i++) {
        free(r->stretches[i].words);
        free(r->stretches[i].spans);
        free(r->stretches[i].calls);
    }
    free(r->borrowed);
    table_close(&r->departed_at);
    free(r->departed);
    free(r);
}
