/* Moves that wait for the tick.
 *
 * Nearly all moves are short, so the body keeps them as two 16-bit steps and the place they lead to costs nothing.
 * A longer one goes to a list, and a column that exists only once somebody has jumped says where in the list. A step
 * is longest where the packed positions of grid_join.c can still tell it from its own complement (step_max). */
#include "aoi/grid_bulk.h"

#include <stdlib.h>

void staged_clear(struct aoi *aoi, uint32_t handle)
{
    aoi->bodies[handle].step_x = aoi->bodies[handle].step_y = 0;
    if (aoi->z) aoi->z_next[handle] = aoi->z[handle];
}

/* An entity that jumps again before the tick keeps its place in the list. */
static bool jump_set(struct aoi *aoi, uint32_t handle, int32_t x, int32_t y)
{
    if (!aoi->jump_of) aoi->jump_of = calloc(aoi->capacity, sizeof *aoi->jump_of);
    if (!aoi->jump_of) return false;
    uint32_t index = aoi->jump_of[handle];
    if (index >= aoi->jump_count || aoi->jumps[index].handle != handle) {
        if (!grow(&aoi->jumps, &aoi->jump_room, aoi->jump_count + 1, sizeof *aoi->jumps)) return false;
        index = (uint32_t)aoi->jump_count++;
        aoi->jump_of[handle] = index;
    }
    aoi->jumps[index] = (struct jump){.handle = handle, .x = x, .y = y};
    aoi->bodies[handle].step_x = STEP_JUMP;
    return true;
}

/* The rare ways out of aoi_stage; apart from it, so that it needs no stack. */
__attribute__((noinline)) static enum terrane_error stage_rare(struct aoi *aoi, uint32_t handle,
                                                               struct position position)
{
    if (!aoi->z && position.z && !z_make(aoi)) return TERRANE_ERR_MEMORY;
    if (aoi->z) aoi->z_next[handle] = position.z;
    struct body *body = &aoi->bodies[handle];
    int64_t dx = (int64_t)position.x - body->x, dy = (int64_t)position.y - body->y, most = aoi->step_max;
    if ((uint64_t)(dx + most) > (uint64_t)(2 * most) || (uint64_t)(dy + most) > (uint64_t)(2 * most)) {
        return jump_set(aoi, handle, position.x, position.y) ? TERRANE_ERR_OK : TERRANE_ERR_MEMORY;
    }
    aoi->staged += !(body->step_x | body->step_y);
    body->step_x = (int16_t)dx;
    body->step_y = (int16_t)dy;
    return TERRANE_ERR_OK;
}

static inline enum terrane_error stage_one(struct aoi *aoi, uint32_t handle, struct position position)
{
    if (!live(aoi, handle)) return TERRANE_ERR_ENTITY_UNKNOWN;
    if (!position_inside(aoi, position.x, position.y)) return TERRANE_ERR_POSITION_OUTSIDE;
    struct body *body = &aoi->bodies[handle];
    uint32_t most = (uint32_t)aoi->step_max;
    uint32_t dx = (uint32_t)position.x - (uint32_t)body->x, dy = (uint32_t)position.y - (uint32_t)body->y;
    bool plane = !aoi->z && !position.z;
    if (__builtin_expect(!plane | !aoi->narrow | (dx + most > 2 * most) | (dy + most > 2 * most), 0)) {
        return stage_rare(aoi, handle, position);
    }
    aoi->staged += !(body->step_x | body->step_y);
    body->step_x = (int16_t)dx;
    body->step_y = (int16_t)dy;
    return TERRANE_ERR_OK;
}

enum terrane_error aoi_stage(struct aoi *aoi, uint32_t handle, struct position position)
{
    return stage_one(aoi, handle, position);
}

enum terrane_error aoi_stage_many(struct aoi *aoi, const uint32_t *handles, const struct position *positions,
                                  size_t count, size_t *staged)
{
    enum terrane_error error = TERRANE_ERR_OK;
    size_t i = 0;
    while (i < count && !error) {
        size_t end = i + bulk_stage(aoi, handles + i, positions + i, count - i);
        if (end != i) {
            i = end;
            continue;
        }
        /* Some that the vectors do not take; then they may try again. */
        for (end = count - i < BULK_LANES ? count : i + BULK_LANES; i < end; i++) {
            error = stage_one(aoi, handles[i], positions[i]);
            if (error) break;
        }
    }
    if (staged) *staged = i;
    return error;
}
