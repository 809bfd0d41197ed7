/* Queries: the structure finds, the engine sifts and counts. */
#include "aoi/engine.h"

/* Where the found go; `count` may exceed `room`. */
struct answer {
    uint32_t *out;
    size_t room, count;
};

static void answer_add(struct answer *answer, uint32_t handle)
{
    if (answer->count < answer->room) answer->out[answer->count] = handle;
    answer->count++;
}

/* Goes over the layers that are asked for; finds in each. `at` is the place in the list; false at the end. */
static bool layer_find(struct engine *e, int32_t layer, uint32_t *at, const struct volume *volume)
{
    struct stratum *stratum = NULL;
    if (layer < 0) {
        stratum = *at < e->stratum_count ? e->strata[*at] : NULL;
    } else if (*at == 0 && layer <= UINT16_MAX) {
        stratum = stratum_find(e, (uint16_t)layer);
    }
    if (!stratum) return false;
    ++*at;
    e->found.count = 0;
    e->structure->find(stratum, volume, &e->found);
    return true;
}

size_t engine_query_circle(struct aoi *aoi, struct position centre, uint32_t radius, int32_t layer, uint32_t *out,
                           size_t room)
{
    struct engine *e = engine_of(aoi);
    struct answer answer = {.out = out, .room = room};
    struct volume volume = volume_around(e, centre, radius, radius, UINT32_MAX);
    for (uint32_t at = 0; layer_find(e, layer, &at, &volume);) {
        for (size_t i = 0; i < e->found.count; i++) {
            const struct mote *mote = &e->motes[e->found.handles[i]];
            uint64_t dx = gap(centre.x, mote->at.x), dy = gap(centre.y, mote->at.y);
            dx = dx > mote->extent_x ? dx - mote->extent_x : 0;
            dy = dy > mote->extent_y ? dy - mote->extent_y : 0;
            if (within_sphere(dx, dy, 0, radius)) answer_add(&answer, e->found.handles[i]);
        }
    }
    return answer.count;
}

size_t engine_query_sphere(struct aoi *aoi, struct position centre, uint32_t radius, int32_t layer, uint32_t *out,
                           size_t room)
{
    struct engine *e = engine_of(aoi);
    struct answer answer = {.out = out, .room = room};
    struct volume volume = volume_around(e, centre, radius, radius, radius);
    for (uint32_t at = 0; layer_find(e, layer, &at, &volume);) {
        for (size_t i = 0; i < e->found.count; i++) {
            const struct mote *mote = &e->motes[e->found.handles[i]];
            uint64_t dx = gap(centre.x, mote->at.x), dy = gap(centre.y, mote->at.y);
            dx = dx > mote->extent_x ? dx - mote->extent_x : 0;
            dy = dy > mote->extent_y ? dy - mote->extent_y : 0;
            if (within_sphere(dx, dy, gap(centre.z, mote->at.z), radius)) answer_add(&answer, e->found.handles[i]);
        }
    }
    return answer.count;
}

size_t engine_query_rectangle(struct aoi *aoi, int32_t min_x, int32_t min_y, int32_t max_x, int32_t max_y,
                              int32_t layer, uint32_t *out, size_t room)
{
    struct engine *e = engine_of(aoi);
    struct answer answer = {.out = out, .room = room};
    if (min_x > max_x || min_y > max_y) return 0;
    struct volume volume = {.min = {min_x, min_y, INT32_MIN}, .max = {max_x, max_y, INT32_MAX}};
    for (uint32_t at = 0; layer_find(e, layer, &at, &volume);) {
        for (size_t i = 0; i < e->found.count; i++) {
            const struct mote *mote = &e->motes[e->found.handles[i]];
            if ((int64_t)mote->at.x + mote->extent_x < min_x || (int64_t)mote->at.x - mote->extent_x > max_x) continue;
            if ((int64_t)mote->at.y + mote->extent_y < min_y || (int64_t)mote->at.y - mote->extent_y > max_y) continue;
            answer_add(&answer, e->found.handles[i]);
        }
    }
    return answer.count;
}

size_t engine_query_block(struct aoi *aoi, struct position centre, int32_t layer, uint32_t *out, size_t room)
{
    struct engine *e = engine_of(aoi);
    struct answer answer = {.out = out, .room = room};
    const struct aoi_options *o = &e->options;
    if (centre.x < o->min_x || centre.x >= o->max_x || centre.y < o->min_y || centre.y >= o->max_y) return 0;
    struct volume volume = volume_block(e, centre);
    volume.min.z = INT32_MIN;
    volume.max.z = INT32_MAX;
    for (uint32_t at = 0; layer_find(e, layer, &at, &volume);) {
        for (size_t i = 0; i < e->found.count; i++) {
            struct position p = e->motes[e->found.handles[i]].at;
            if (p.x < volume.min.x || p.x > volume.max.x || p.y < volume.min.y || p.y > volume.max.y) continue;
            answer_add(&answer, e->found.handles[i]);
        }
    }
    return answer.count;
}

size_t engine_view(struct aoi *aoi, uint32_t observer, uint32_t *out, size_t room)
{
    struct engine *e = engine_of(aoi);
    if (!engine_live(e, observer)) return 0;
    const struct mote *mote = &e->motes[observer];
    if (e->options.mode == AOI_RADIUS && !mote->radius) return 0;
    struct answer answer = {.out = out, .room = room};
    struct volume volume = volume_view(e, mote);
    e->found.count = 0;
    e->structure->find(stratum_find(e, mote->layer), &volume, &e->found);
    for (size_t i = 0; i < e->found.count; i++) {
        uint32_t other = e->found.handles[i];
        if (other != observer && engine_sees(e, observer, other)) answer_add(&answer, other);
    }
    return answer.count;
}

/* The block of a place is that of those who see it, and a circle of the largest view holds all others'. */
size_t engine_fanout(struct aoi *aoi, const struct aoi_place *place)
{
    struct engine *e = engine_of(aoi);
    const struct aoi_options *o = &e->options;
    struct position at = place->position;
    if (at.x < o->min_x || at.x >= o->max_x || at.y < o->min_y || at.y >= o->max_y) return 0;
    struct stratum *stratum = stratum_find(e, place->layer);
    if (!stratum) return 0;
    struct mote subject = {
        .at = at, .extent_x = place->extent_x, .extent_y = place->extent_y, .layer = place->layer, .live = true};
    struct volume volume = volume_near(e, &subject);
    size_t count = 0;
    e->found.count = 0;
    e->structure->find(stratum, &volume, &e->found);
    for (size_t i = 0; i < e->found.count; i++) {
        const struct mote *mote = &e->motes[e->found.handles[i]];
        if (e->z_decides && gap(mote->at.z, at.z) > o->z_range) continue;
        if (o->mode == AOI_RADIUS) {
            count += mote->radius && engine_within(e, mote->at, &subject, mote->radius);
            continue;
        }
        struct volume block = volume_block(e, mote->at);
        count += at.x >= block.min.x && at.x <= block.max.x && at.y >= block.min.y && at.y <= block.max.y &&
                 at.z >= block.min.z && at.z <= block.max.z;
    }
    return count;
}
