/* What the stream tests share: a source of one leaf's stream that keeps its entities, and a listener that writes down
 * what it is told and CHECKs the pairing of APPEARED and VANISHED as it goes. */
#ifndef TERRANE_TESTS_UNIT_STREAM_KIT_H
#define TERRANE_TESTS_UNIT_STREAM_KIT_H

#include "common/check.h"
#include "common/geometry.h"
#include "stream/replicas.h"
#include "stream/writer.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define KIT_ENTITIES 256u
#define KIT_STATE    32u
#define KIT_BEAT     10u
#define KIT_SECOND   UINT64_C(1000000)

/* The kind of all streams of a test. */
static enum stream_kind kit_kind = STREAM_GHOST;

#define BIT(change) (1u << (change))

/* An entity at its owner. Its owner index in the stream is its index here. */
struct kit_entity {
    struct entity_record record;
    uint8_t state[KIT_STATE];
    uint32_t slot;
};

struct kit_source {
    struct stream_writer *stream;
    struct quadkey leaf;
    struct kit_entity entities[KIT_ENTITIES];
    uint64_t tick;
    struct writer out; /* the last frame */
};

static inline struct quadkey kit_leaf(const char *digits)
{
    struct quadkey leaf;
    CHECK(quadkey_parse(digits, strlen(digits), &leaf) == TERRANE_ERR_OK);
    return leaf;
}

static inline struct entity_record kit_record(uint64_t id, uint64_t version, int32_t x, int32_t y)
{
    return (struct entity_record){.id = {id}, .version = version, .kind = 7, .radius = 100, .position = {x, y, 5}};
}

static inline void kit_describe(void *context, uint32_t owner, struct entity_record *out)
{
    struct kit_source *source = context;
    *out = source->entities[owner].record;
    out->state = out->state_size > 0 ? source->entities[owner].state : NULL;
}

static inline struct kit_source *kit_source_open(const char *digits, uint32_t epoch)
{
    struct kit_source *source = calloc(1, sizeof *source);
    CHECK(source != NULL);
    source->leaf = kit_leaf(digits);
    source->stream = stream_writer_open(kit_kind, source->leaf, epoch);
    return source;
}

static inline void kit_source_close(struct kit_source *source)
{
    stream_writer_close(source->stream);
    writer_close(&source->out);
    free(source);
}

static inline void kit_enter(struct kit_source *source, uint32_t owner, struct entity_record record)
{
    struct kit_entity *e = &source->entities[owner];
    e->record = record;
    if (record.state_size > 0) memcpy(e->state, record.state, record.state_size);
    e->slot = stream_enter(source->stream, owner, &record);
}

static inline void kit_move(struct kit_source *source, uint32_t owner, int32_t dx, int32_t dy)
{
    struct kit_entity *e = &source->entities[owner];
    e->record.position.x += dx;
    e->record.position.y += dy;
    stream_move(source->stream, e->slot, e->record.position, e->record.yaw);
}

static inline void kit_leave(struct kit_source *source, uint32_t owner, enum left_reason reason)
{
    stream_leave(source->stream, source->entities[owner].slot, reason, source->entities[owner].record.version + 1,
                 QUADKEY_ROOT);
}

static inline void kit_leave_to(struct kit_source *source, uint32_t owner, struct quadkey to)
{
    stream_leave(source->stream, source->entities[owner].slot, LEFT_MOVED, source->entities[owner].record.version + 1,
                 to);
}

/* The next tick's frame into source->out; false: nothing happened. */
static inline bool kit_publish(struct kit_source *source)
{
    writer_clear(&source->out);
    return stream_publish(source->stream, ++source->tick, KIT_BEAT, kit_describe, source, &source->out);
}

/* What the listener was told, in order. */
struct kit_told {
    uint32_t handle, changes;
    struct entity_record record;
    uint8_t state[KIT_STATE];
};

struct kit_log {
    struct kit_told told[1024];
    uint32_t count;
    struct quadkey asked[256];
    uint32_t asked_count;
    bool visible[4096]; /* by handle */
    uint64_t seen, lost;
};

static inline void kit_hear(void *context, uint32_t handle, const struct entity_record *record, uint32_t changes)
{
    struct kit_log *log = context;
    CHECK(handle < sizeof log->visible / sizeof *log->visible && changes != 0);
    bool appears = changes == BIT(REPLICA_APPEARED), vanishes = changes == BIT(REPLICA_VANISHED);
    CHECK(log->visible[handle] != appears);
    CHECK(appears || vanishes || (changes & (BIT(REPLICA_APPEARED) | BIT(REPLICA_VANISHED))) == 0);
    if (appears || vanishes) log->visible[handle] = appears;
    log->seen += appears;
    log->lost += vanishes;
    if (log->count == sizeof log->told / sizeof *log->told) return;
    struct kit_told *told = &log->told[log->count++];
    *told = (struct kit_told){.handle = handle, .changes = changes, .record = *record};
    if (record->state_size > 0)
        memcpy(told->state, record->state, record->state_size < KIT_STATE ? record->state_size : KIT_STATE);
}

static inline void kit_asked(void *context, enum stream_kind kind, struct quadkey leaf)
{
    struct kit_log *log = context;
    CHECK(kind == kit_kind);
    if (log->asked_count < sizeof log->asked / sizeof *log->asked) log->asked[log->asked_count++] = leaf;
}

static inline struct replicas *kit_replicas_open(struct kit_log *log)
{
    *log = (struct kit_log){0};
    return replicas_open(&(struct replicas_options){.kind = kit_kind, .listener = {log, kit_hear, kit_asked}});
}

/* Feeds the source's last frame. */
static inline enum terrane_error kit_feed(struct replicas *r, uint64_t now_us, const struct kit_source *source)
{
    return replicas_frame(r, now_us, source->out.data, source->out.size);
}

struct kit_delivery {
    struct replicas *r;
    uint64_t now_us;
    enum terrane_error error;
    uint32_t parts;
};

static inline void kit_take(void *context, const void *message, size_t size)
{
    struct kit_delivery *to = context;
    struct snapshot part;
    CHECK(size <= LIMIT_MESSAGE_BYTES);
    CHECK(snapshot_decode(cursor_of(message, size), &part) == TERRANE_ERR_OK);
    to->error = replicas_snapshot(to->r, to->now_us, &part);
    to->parts++;
}

/* Feeds a snapshot of the source. */
static inline enum terrane_error kit_snapshot(struct replicas *r, uint64_t now_us, struct kit_source *source)
{
    struct kit_delivery to = {.r = r, .now_us = now_us};
    stream_snapshot(source->stream, source->tick, kit_describe, source, kit_take, &to);
    return to.error;
}

/* Watches the source's leaf and brings it level. */
static inline void kit_level(struct replicas *r, uint64_t now_us, struct kit_source *source)
{
    replicas_watch(r, now_us, source->leaf);
    CHECK(kit_snapshot(r, now_us, source) == TERRANE_ERR_OK);
    CHECK(replicas_level(r, source->leaf));
}

static inline bool kit_record_equal(const struct entity_record *a, const struct entity_record *b)
{
    return a->id.v == b->id.v && a->version == b->version && a->kind == b->kind && a->flags == b->flags &&
           a->layer == b->layer && a->yaw == b->yaw && a->radius == b->radius && a->position.x == b->position.x &&
           a->position.y == b->position.y && a->position.z == b->position.z && a->state_size == b->state_size &&
           (a->state_size == 0 || memcmp(a->state, b->state, a->state_size) == 0);
}

#endif
