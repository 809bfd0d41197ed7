/* STATUS: what this cell server is doing, as one JSON object. */
#include "cellserver/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void put(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct writer *w, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    CHECK(size >= 0 && (size_t)size < sizeof text);
    writer_raw(w, text, (size_t)size);
}

/* A name is a person's: quotes, backslashes and control characters become escapes. */
static void put_name(struct writer *w, const char *text)
{
    writer_raw(w, "\"", 1);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c == '"' || c == '\\') {
            put(w, "\\u%04x", c);
        } else {
            writer_raw(w, text, 1);
        }
    }
    writer_raw(w, "\"", 1);
}

void status_write(struct cellserver *cs, struct writer *w)
{
    struct cellserver_stats s;
    cellserver_stats(cs, &s);
    put(w, "{\"role\":\"cellserver\",\"name\":");
    put_name(w, cs->options.info.name);
    put(w, ",\"node\":\"%016llx\",\"ready\":%s,\"term\":%llu,\"rev\":%llu", (unsigned long long)cs->options.info.node.v,
        cellserver_ready(cs) ? "true" : "false", (unsigned long long)cs->map.term, (unsigned long long)cs->map.rev);
#define COUNTER(field) put(w, ",\"" #field "\":%llu", (unsigned long long)s.field)
    COUNTER(tick);
    COUNTER(ticks_late);
    COUNTER(leaves);
    COUNTER(owned);
    COUNTER(ghosts);
    COUNTER(leaving);
    COUNTER(sessions);
    COUNTER(moves);
    COUNTER(enters);
    COUNTER(leaves_done);
    COUNTER(handoffs_out);
    COUNTER(handoffs_in);
    COUNTER(handoffs_refused);
    COUNTER(handoffs_local);
    COUNTER(frames);
    COUNTER(frame_bytes);
    COUNTER(frame_moves);
    COUNTER(ghost_frames);
    COUNTER(ghost_bytes);
    COUNTER(view_changes);
    COUNTER(views_whole);
    COUNTER(views_dropped);
    COUNTER(forwarded);
    COUNTER(not_owner);
    COUNTER(stale);
    COUNTER(malformed);
    COUNTER(dropped);
    COUNTER(moves_lost);
    COUNTER(gaps);
    COUNTER(gaps_repaired);
    COUNTER(gaps_open);
    COUNTER(memory_bytes);
#undef COUNTER
    put(w, ",\"regions\":[");
    bool first = true;
    for (uint32_t i = 0; i < cs->leaf_count; i++) {
        const struct own_leaf *leaf = &cs->leaves[i];
        if (!leaf->used) continue;
        char key[LIMIT_QUADKEY_TEXT];
        quadkey_text(leaf->key, key);
        put(w, "%s{\"quadkey\":\"%s\",\"epoch\":%u,\"owned\":%u,\"feed\":%u,\"subscribers\":%u}", first ? "" : ",", key,
            leaf->epoch, leaf->count, leaf->feed, leaf->subscriber_count);
        first = false;
    }
    put(w, "]}");
    writer_raw(w, "", 1);
}
