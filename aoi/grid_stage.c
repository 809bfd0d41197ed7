/* Moves that wait for the tick.
 *
 * Nearly all moves are short, so the body keeps them as two 16-bit steps and the place they lead to costs nothing.
 * A longer one goes to a list, and a column that exists only once somebody has jumped says where in the list. A step
 * is longest where the packed positions of grid_join.c can still tell it from its own complement (step_max). */
#include "aoi/grid.h"

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

enum terrane_error aoi_stage(struct aoi *aoi, uint32_t handle, struct position position)
{
    if (!live(aoi, handle)) return TERRANE_ERR_ENTITY_UNKNOWN;
    if (!position_inside(aoi, position.x, position.y)) return TERRANE_ERR_POSITION_OUTSIDE;
    if (aoi->z) {
        aoi->z_next[handle] = position.z;
    } else if (position.z) {
        if (!z_make(aoi)) return TERRANE_ERR_MEMORY;
        aoi->z_next[handle] = position.z;
    }
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
