/* Moves that wait for the tick.
 *
 * Nearly all moves are short, so the body keeps them as two 16-bit steps and the place they lead to costs nothing.
 * A longer one goes to a list, and a column that exists only once somebody has jumped says where in the list. A step
 * is longest where the packed positions of grid_join.c can still tell it from its own complement (step_max). */
#include "aoi/grid.h"

#include <stdlib.h>

bool staged_any(const struct aoi *aoi, uint32_t handle)
{
    const struct body *body = &aoi->bodies[handle];
    return body->step_x || body->step_y || z_next_of(aoi, handle) != z_of(aoi, handle);
}

struct position staged_of(const struct aoi *aoi, uint32_t handle)
{
    const struct body *body = &aoi->bodies[handle];
    int32_t z = z_next_of(aoi, handle);
    if (body->step_x == STEP_JUMP) {
        const struct jump *jump = &aoi->jumps[aoi->jump_of[handle]];
        return (struct position){.x = jump->x, .y = jump->y, .z = z};
    }
    return (struct position){.x = body->x + body->step_x, .y = body->y + body->step_y, .z = z};
}

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

enum terrane_error staged_set(struct aoi *aoi, uint32_t handle, struct position position)
{
    struct body *body = &aoi->bodies[handle];
    if (aoi->z) aoi->z_next[handle] = position.z;
    uint64_t dx = gap(position.x, body->x), dy = gap(position.y, body->y), most = (uint64_t)aoi->step_max;
    if (dx > most || dy > most) {
        return jump_set(aoi, handle, position.x, position.y) ? TERRANE_ERR_OK : TERRANE_ERR_MEMORY;
    }
    body->step_x = (int16_t)(position.x - body->x);
    body->step_y = (int16_t)(position.y - body->y);
    return TERRANE_ERR_OK;
}

enum terrane_error aoi_stage(struct aoi *aoi, uint32_t handle, struct position position)
{
    if (!live(aoi, handle)) return TERRANE_ERR_ENTITY_UNKNOWN;
    if (!position_inside(aoi, position.x, position.y)) return TERRANE_ERR_POSITION_OUTSIDE;
    if (position.z && !z_make(aoi)) return TERRANE_ERR_MEMORY;
    return staged_set(aoi, handle, position);
}
