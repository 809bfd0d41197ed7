#include "tests/aoi/rivals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hashed(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t h = a * 0x9e3779b97f4a7c15u + b * 0xbf58476d1ce4e5b9u + c;
    h = (h ^ h >> 31) * 0x94d049bb133111ebu;
    return h ^ h >> 29;
}

static void told(void *context, const struct aoi_span *spans, size_t count)
{
    struct rival *rival = context;
    struct tally *t = &rival->tally;
    for (size_t i = 0; i < count; i++) {
        const struct aoi_span *span = &spans[i];
        uint64_t subject = aoi_id(rival->aoi, span->subject).v;
        bool sees = span->change & (AOI_SEE | AOI_SEEN_BY);
        t->disorder |= !sees && t->sees;
        for (uint32_t j = 0; j < span->count; j++) {
            uint64_t other = aoi_id(rival->aoi, span->others[j]).v;
            uint64_t out = span->change & (AOI_SEE | AOI_UNSEE) ? hashed(subject, other, sees) : 0;
            uint64_t in = span->change & (AOI_SEEN_BY | AOI_UNSEEN_BY) ? hashed(other, subject, sees) : 0;
            t->sum += out + in;
            *(sees ? &t->sees : &t->unsees) += (uint64_t)(out != 0) + (in != 0);
        }
    }
}

bool rivals_open(struct rivals *r, const struct aoi_options *options, uint32_t room, unsigned abilities,
                 const char *only)
{
    memset(r, 0, sizeof *r);
    r->room = room;
    r->found_room = room;
    r->found = calloc(room, sizeof *r->found);
    const struct aoi_index_info *brute = aoi_index_find("brute"), *info = brute;
    for (size_t at = 0; info; info = aoi_index_list(at++)) {
        bool wanted = (info == brute) == !r->count && (info == brute || !only || !strcmp(only, info->name));
        if (!wanted || (info->abilities & abilities) != abilities) continue;
        struct rival *rival = &r->rivals[r->count];
        struct aoi_options own = *options;
        own.index = rival->name = info->name;
        own.direct = r->count % 2; /* either way of telling */
        if (aoi_options_fault(&own)) continue;
        if (aoi_create(&own, &rival->aoi)) abort();
        rival->handles = malloc(room * sizeof *rival->handles);
        for (uint32_t i = 0; i < room; i++) rival->handles[i] = AOI_HANDLE_NONE;
        r->count++;
    }
    return r->count > 1;
}

void rivals_close(struct rivals *r)
{
    for (unsigned i = 0; i < r->count; i++) {
        aoi_destroy(r->rivals[i].aoi);
        free(r->rivals[i].handles);
    }
    free(r->found);
}

bool rivals_live(const struct rivals *r, uint32_t entity)
{
    return r->rivals[0].handles[entity] != AOI_HANDLE_NONE;
}

static bool differ(struct rivals *r, const struct rival *rival, const char *what, uint64_t is, uint64_t wanted)
{
    if (is == wanted) return false;
    snprintf(r->fault, sizeof r->fault, "%s, operation %llu: %s: %llu, by brute force %llu", rival->name,
             (unsigned long long)r->operations, what, (unsigned long long)is, (unsigned long long)wanted);
    return true;
}

/* Compares what was told since the last time. */
static bool agree(struct rivals *r, const char *what)
{
    const struct tally *wanted = &r->rivals[0].tally;
    r->operations++;
    r->events += wanted->sees + wanted->unsees;
    for (unsigned i = 0; i < r->count; i++) {
        const struct rival *rival = &r->rivals[i];
        const struct tally *t = &rival->tally;
        char name[96];
        snprintf(name, sizeof name, "%s, unsees", what);
        if (differ(r, rival, name, t->unsees, wanted->unsees)) return false;
        snprintf(name, sizeof name, "%s, sees", what);
        if (differ(r, rival, name, t->sees, wanted->sees)) return false;
        snprintf(name, sizeof name, "%s, pairs", what);
        if (differ(r, rival, name, t->sum, wanted->sum)) return false;
        if (differ(r, rival, "an unsee after a see", t->disorder, 0)) return false;
    }
    for (unsigned i = 0; i < r->count; i++) r->rivals[i].tally = (struct tally){0};
    return true;
}

bool rivals_enter(struct rivals *r, uint32_t entity, const struct aoi_place *place)
{
    enum terrane_error wanted = TERRANE_ERR_OK;
    for (unsigned i = 0; i < r->count; i++) {
        struct rival *rival = &r->rivals[i];
        struct entity_id id = {entity + 1};
        enum terrane_error error = aoi_enter(rival->aoi, id, place, told, rival, &rival->handles[entity]);
        if (!i) wanted = error;
        if (differ(r, rival, "enter's error", error, wanted)) return false;
        if (!error && differ(r, rival, "find", aoi_find(rival->aoi, id), rival->handles[entity])) return false;
    }
    return agree(r, "enter");
}

bool rivals_leave(struct rivals *r, uint32_t entity)
{
    for (unsigned i = 0; i < r->count; i++) {
        struct rival *rival = &r->rivals[i];
        enum terrane_error error = aoi_leave(rival->aoi, rival->handles[entity], told, rival);
        if (differ(r, rival, "leave's error", error, TERRANE_ERR_OK)) return false;
        error = aoi_leave(rival->aoi, rival->handles[entity], told, rival);
        if (differ(r, rival, "a second leave's error", error, TERRANE_ERR_ENTITY_UNKNOWN)) return false;
        if (differ(r, rival, "count", aoi_count(rival->aoi), aoi_count(r->rivals[0].aoi))) return false;
        rival->handles[entity] = AOI_HANDLE_NONE;
    }
    return agree(r, "leave");
}

bool rivals_move(struct rivals *r, uint32_t entity, struct position to)
{
    enum terrane_error wanted = TERRANE_ERR_OK;
    for (unsigned i = 0; i < r->count; i++) {
        struct rival *rival = &r->rivals[i];
        enum terrane_error error = aoi_move(rival->aoi, rival->handles[entity], to, told, rival);
        if (!i) wanted = error;
        if (differ(r, rival, "move's error", error, wanted)) return false;
    }
    return agree(r, "move");
}

bool rivals_set_radius(struct rivals *r, uint32_t entity, uint32_t radius)
{
    for (unsigned i = 0; i < r->count; i++) {
        struct rival *rival = &r->rivals[i];
        enum terrane_error error = aoi_set_radius(rival->aoi, rival->handles[entity], radius, told, rival);
        if (differ(r, rival, "set_radius's error", error, TERRANE_ERR_OK)) return false;
    }
    return agree(r, "set_radius");
}

bool rivals_set_layer(struct rivals *r, uint32_t entity, uint16_t layer)
{
    for (unsigned i = 0; i < r->count; i++) {
        struct rival *rival = &r->rivals[i];
        enum terrane_error error = aoi_set_layer(rival->aoi, rival->handles[entity], layer, told, rival);
        if (differ(r, rival, "set_layer's error", error, TERRANE_ERR_OK)) return false;
    }
    return agree(r, "set_layer");
}

bool rivals_recall(struct rivals *r, uint32_t observer, uint32_t subject)
{
    bool wanted = false;
    for (unsigned i = 0; i < r->count; i++) {
        struct rival *rival = &r->rivals[i];
        bool recalled = aoi_recall(rival->aoi, rival->handles[observer], rival->handles[subject]);
        if (!i) wanted = recalled;
        if (differ(r, rival, "recall", recalled, wanted)) return false;
    }
    return agree(r, "recall");
}

bool rivals_stage(struct rivals *r, uint32_t entity, struct position to)
{
    enum terrane_error wanted = TERRANE_ERR_OK;
    for (unsigned i = 0; i < r->count; i++) {
        struct rival *rival = &r->rivals[i];
        enum terrane_error error = aoi_stage(rival->aoi, rival->handles[entity], to);
        if (!i) wanted = error;
        if (differ(r, rival, "stage's error", error, wanted)) return false;
    }
    return agree(r, "stage");
}

bool rivals_tick(struct rivals *r)
{
    for (unsigned i = 0; i < r->count; i++) aoi_tick(r->rivals[i].aoi, told, &r->rivals[i]);
    return agree(r, "tick");
}

/* The sum of the hashes of the ids that a query has found. */
static uint64_t found_sum(const struct rivals *r, const struct rival *rival, size_t count)
{
    uint64_t sum = count << 1;
    for (size_t i = 0; i < count && i < r->found_room; i++) sum += hashed(aoi_id(rival->aoi, r->found[i]).v, 0, 3);
    return sum;
}

enum { QUERIES = 7 };

static void queries_ask(struct rivals *r, const struct rival *rival, const struct position *at, uint32_t radius,
                        int32_t layer, uint32_t entity, uint64_t sums[QUERIES])
{
    struct aoi *aoi = rival->aoi;
    size_t room = r->found_room;
    struct aoi_place place = {.position = at[0], .layer = (uint16_t)(layer < 0 ? 0 : layer)};
    struct position low = {at[0].x < at[1].x ? at[0].x : at[1].x, at[0].y < at[1].y ? at[0].y : at[1].y, 0};
    struct position high = {at[0].x > at[1].x ? at[0].x : at[1].x, at[0].y > at[1].y ? at[0].y : at[1].y, 0};
    sums[0] = found_sum(r, rival, aoi_query_circle(aoi, at[0], radius, layer, r->found, room));
    sums[1] = found_sum(r, rival, aoi_query_rectangle(aoi, low.x, low.y, high.x, high.y, layer, r->found, room));
    sums[2] = found_sum(r, rival, aoi_query_sphere(aoi, at[0], radius, layer, r->found, room));
    sums[3] = found_sum(r, rival, aoi_query_block(aoi, at[0], layer, r->found, room));
    sums[4] = found_sum(r, rival, aoi_view(aoi, rival->handles[entity], r->found, room));
    sums[5] = aoi_fanout(aoi, &place);
    sums[6] = aoi_query_circle(aoi, at[1], radius, layer, r->found, room / 8); /* too little room */
}

bool rivals_query(struct rivals *r, struct position a, struct position b, uint32_t radius, int32_t layer,
                  uint32_t entity)
{
    static const char *const names[QUERIES] = {"circle", "rectangle", "sphere", "block", "view", "fanout", "count"};
    struct position at[2] = {a, b};
    uint64_t wanted[QUERIES], sums[QUERIES];
    for (unsigned i = 0; i < r->count; i++) {
        const struct rival *rival = &r->rivals[i];
        queries_ask(r, rival, at, radius, layer, entity, i ? sums : wanted);
        for (unsigned q = 0; i && q < QUERIES; q++) {
            if (differ(r, rival, names[q], sums[q], wanted[q])) return false;
        }
        uint32_t other = (entity + 1) % r->room;
        bool saw = aoi_sees(r->rivals[0].aoi, r->rivals[0].handles[entity], r->rivals[0].handles[other]);
        bool sees = aoi_sees(rival->aoi, rival->handles[entity], rival->handles[other]);
        if (differ(r, rival, "sees", sees, saw)) return false;
    }
    return true;
}
