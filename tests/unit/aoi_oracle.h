/* A world that knows all views by brute force, and drives an index with the same operations.
 *
 * Shares no code with the index. The relation "observer sees subject" is a matrix, updated pair by pair from the words
 * of aoi.h; the spans of the index are played onto a second matrix, and the two must be equal after each operation.
 * Playing them also checks what a span may say: no see of what is seen, no unsee of what is not, unsees first. */
#ifndef TERRANE_TESTS_UNIT_AOI_ORACLE_H
#define TERRANE_TESTS_UNIT_AOI_ORACLE_H

#include "aoi/aoi.h"
#include "aoi/grid.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* Sanitized builds do a part of what others do. */
#if defined(__SANITIZE_ADDRESS__)
#define ORACLE_PART 8
#else
#define ORACLE_PART 1
#endif

struct oracle_entity {
    bool live, staged;
    int64_t x, y, z, next_x, next_y, next_z;
    uint32_t radius, handle;
    uint16_t layer;
};

struct oracle {
    struct aoi_options options;
    struct aoi *aoi;
    size_t room;
    struct oracle_entity *entities;
    bool *expected, *told; /* [observer * room + subject] */
    uint64_t random;
    bool sees_began;
    size_t events;
};

static inline uint64_t oracle_random(struct oracle *o)
{
    o->random ^= o->random << 13;
    o->random ^= o->random >> 7;
    o->random ^= o->random << 17;
    return o->random * 0x2545f4914f6cdd1du >> 16;
}

static inline int64_t oracle_between(struct oracle *o, int64_t low, int64_t high)
{
    return low + (int64_t)(oracle_random(o) % (uint64_t)(high - low + 1));
}

static inline bool oracle_chance(struct oracle *o, unsigned percent)
{
    return oracle_random(o) % 100 < percent;
}

static inline void oracle_open(struct oracle *o, const struct aoi_options *options, size_t room, uint64_t seed)
{
    memset(o, 0, sizeof *o);
    o->options = *options;
    o->room = room;
    o->entities = calloc(room, sizeof *o->entities);
    o->expected = calloc(room * room, sizeof *o->expected);
    o->told = calloc(room * room, sizeof *o->told);
    o->random = seed * 0x9e3779b97f4a7c15u + 88172645463325252u;
    ck_assert_int_eq(aoi_create(options, &o->aoi), TERRANE_ERR_OK);
}

static inline void oracle_close(struct oracle *o)
{
    aoi_destroy(o->aoi);
    free(o->entities);
    free(o->expected);
    free(o->told);
}

static inline void oracle_play(struct oracle *o, uint32_t observer, uint32_t subject, bool sees)
{
    ck_assert_uint_ne(observer, subject);
    bool *told = &o->told[observer * o->room + subject];
    ck_assert_msg(*told != sees, "%u %s %u twice", observer, sees ? "sees" : "loses", subject);
    *told = sees;
    o->events++;
}

/* The entity of a handle: its id is its index plus one. */
static inline uint32_t oracle_index(const struct oracle *o, uint32_t handle)
{
    uint64_t id = aoi_id(o->aoi, handle).v;
    ck_assert_msg(id > 0 && id <= o->room, "handle %u is of nobody", handle);
    return (uint32_t)(id - 1);
}

static inline void oracle_sink(void *context, const struct aoi_span *spans, size_t count)
{
    struct oracle *o = context;
    ck_assert_uint_gt(count, 0);
    for (size_t i = 0; i < count; i++) {
        const struct aoi_span *span = &spans[i];
        bool sees = span->change & (AOI_SEE | AOI_SEEN_BY);
        ck_assert(span->change && span->count > 0);
        ck_assert(!sees || !(span->change & (AOI_UNSEE | AOI_UNSEEN_BY)));
        ck_assert_msg(sees || !o->sees_began, "an unsee after a see");
        o->sees_began |= sees;
        uint32_t subject = oracle_index(o, span->subject);
        for (uint32_t j = 0; j < span->count; j++) {
            uint32_t other = oracle_index(o, span->others[j]);
            if (span->change & (AOI_SEE | AOI_UNSEE)) oracle_play(o, subject, other, sees);
            if (span->change & (AOI_SEEN_BY | AOI_UNSEEN_BY)) oracle_play(o, other, subject, sees);
        }
    }
}

static inline int64_t oracle_cell(int64_t p, int64_t size)
{
    return p >= 0 ? p / size : -((-p + size - 1) / size);
}

static inline bool oracle_eligible(const struct oracle *o, const struct oracle_entity *a, const struct oracle_entity *b)
{
    int64_t dz = a->z > b->z ? a->z - b->z : b->z - a->z;
    return a != b && a->live && b->live && a->layer == b->layer &&
           (o->options.dimensions == 3 || dz <= (int64_t)o->options.z_range);
}

static inline bool oracle_close_by(const struct oracle_entity *a, const struct oracle_entity *b, int64_t r)
{
    long double dx = (long double)(a->x - b->x), dy = (long double)(a->y - b->y);
    return dx * dx + dy * dy <= (long double)r * (long double)r;
}

/* Whether a sees b, given that it did or did not a moment ago. */
static inline bool oracle_sees(const struct oracle *o, const struct oracle_entity *a, const struct oracle_entity *b,
                               bool before)
{
    if (!oracle_eligible(o, a, b)) return false;
    bool space = o->options.dimensions == 3;
    if (o->options.mode == AOI_BLOCK) {
        int64_t size = o->options.cell_size;
        return llabs(oracle_cell(a->x, size) - oracle_cell(b->x, size)) <= 1 &&
               llabs(oracle_cell(a->y, size) - oracle_cell(b->y, size)) <= 1 &&
               (!space || llabs(oracle_cell(a->z, size) - oracle_cell(b->z, size)) <= 1);
    }
    if (!a->radius) return false;
    long double dz = space ? (long double)(a->z - b->z) : 0, limit = (long double)a->radius;
    long double dx = (long double)(a->x - b->x), dy = (long double)(a->y - b->y),
                distance2 = dx * dx + dy * dy + dz * dz;
    if (before && distance2 > limit * limit) limit += o->options.hysteresis;
    return distance2 <= limit * limit;
}

static inline void oracle_update(struct oracle *o)
{
    for (size_t a = 0; a < o->room; a++) {
        for (size_t b = 0; b < o->room; b++) {
            bool *sees = &o->expected[a * o->room + b];
            *sees = oracle_sees(o, &o->entities[a], &o->entities[b], *sees);
        }
    }
}

/* After each operation: the two relations must be equal. `reported`: whether the index had a sink. */
static inline void oracle_check(struct oracle *o, bool reported)
{
    oracle_update(o);
    o->sees_began = false;
    if (!reported) memcpy(o->told, o->expected, o->room * o->room * sizeof *o->told);
    if (!memcmp(o->told, o->expected, o->room * o->room * sizeof *o->told)) return;
    for (size_t i = 0; i < o->room * o->room; i++) {
        ck_assert_msg(o->told[i] == o->expected[i], "%zu %s %zu, but was told otherwise", i / o->room,
                      o->expected[i] ? "sees" : "does not see", i % o->room);
    }
}

static inline struct position oracle_position(const struct oracle_entity *e)
{
    return (struct position){.x = (int32_t)e->x, .y = (int32_t)e->y, .z = (int32_t)e->z};
}

static inline void oracle_enter(struct oracle *o, size_t i, struct position at, uint32_t radius, uint16_t layer,
                                bool report)
{
    struct oracle_entity *e = &o->entities[i];
    *e = (struct oracle_entity){.live = true, .x = at.x, .y = at.y, .z = at.z, .radius = radius, .layer = layer};
    struct aoi_place place = {.position = at, .radius = radius, .layer = layer};
    struct entity_id id = {.v = i + 1};
    ck_assert_int_eq(aoi_enter(o->aoi, id, &place, report ? oracle_sink : NULL, o, &e->handle), TERRANE_ERR_OK);
    oracle_check(o, report);
}

static inline void oracle_leave(struct oracle *o, size_t i, bool report)
{
    o->entities[i].live = o->entities[i].staged = false;
    ck_assert_int_eq(aoi_leave(o->aoi, o->entities[i].handle, report ? oracle_sink : NULL, o), TERRANE_ERR_OK);
    ck_assert(!o->sees_began);
    oracle_check(o, report);
}

static inline void oracle_move(struct oracle *o, size_t i, struct position at, bool report)
{
    struct oracle_entity *e = &o->entities[i];
    e->x = at.x;
    e->y = at.y;
    e->z = at.z;
    e->staged = false;
    ck_assert_int_eq(aoi_move(o->aoi, e->handle, at, report ? oracle_sink : NULL, o), TERRANE_ERR_OK);
    oracle_check(o, report);
}

static inline void oracle_stage(struct oracle *o, size_t i, struct position at)
{
    struct oracle_entity *e = &o->entities[i];
    e->staged = true;
    e->next_x = at.x;
    e->next_y = at.y;
    e->next_z = at.z;
    ck_assert_int_eq(aoi_stage(o->aoi, e->handle, at), TERRANE_ERR_OK);
}

static inline void oracle_tick(struct oracle *o, bool report)
{
    for (size_t i = 0; i < o->room; i++) {
        struct oracle_entity *e = &o->entities[i];
        if (!e->staged) continue;
        e->staged = false;
        e->x = e->next_x;
        e->y = e->next_y;
        e->z = e->next_z;
    }
    aoi_tick(o->aoi, report ? oracle_sink : NULL, o);
    oracle_check(o, report);
}

#endif
