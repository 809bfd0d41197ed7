/* Moves that wait for the tick.
 *
 * Nearly all moves are short, so the body keeps them as two 16-bit steps and the place they lead to costs nothing.
 * A longer one goes to a list, and a column that exists only once somebody has jumped says where in the list. A step
 * is longest where the packed positions of grid_join.c can still tell it from its own complement (step_max). */
#include "aoi/grid_bulk.h"

#include <stdlib.h>

void staged_clear(struct grid *grid, uint32_t handle)
{
    grid->bodies[handle].step_x = grid->bodies[handle].step_y = 0;
    if (grid->z) grid->z_next[handle] = grid->z[handle];
}

/* An entity that jumps again before the tick keeps its place in the list. */
static bool jump_set(struct grid *grid, uint32_t handle, int32_t x, int32_t y)
{
    if (!grid->jump_of) grid->jump_of = calloc(grid->capacity, sizeof *grid->jump_of);
    if (!grid->jump_of) return false;
    uint32_t index = grid->jump_of[handle];
    if (index >= grid->jump_count || grid->jumps[index].handle != handle) {
        if (!grow(&grid->jumps, &grid->jump_room, grid->jump_count + 1, sizeof *grid->jumps)) return false;
        index = (uint32_t)grid->jump_count++;
        grid->jump_of[handle] = index;
    }
    grid->jumps[index] = (struct jump){.handle = handle, .x = x, .y = y};
    grid->bodies[handle].step_x = STEP_JUMP;
    return true;
}

/* The rare ways out of aoi_stage; apart from it, so that it needs no stack. */
__attribute__((noinline)) static enum terrane_error stage_rare(struct grid *grid, uint32_t handle,
                                                               struct position position)
{
    if (!grid->z && position.z && !z_make(grid)) return TERRANE_ERR_MEMORY;
    if (grid->z) grid->z_next[handle] = position.z;
    struct body *body = &grid->bodies[handle];
    int64_t dx = (int64_t)position.x - body->x, dy = (int64_t)position.y - body->y, most = grid->step_max;
    if ((uint64_t)(dx + most) > (uint64_t)(2 * most) || (uint64_t)(dy + most) > (uint64_t)(2 * most)) {
        return jump_set(grid, handle, position.x, position.y) ? TERRANE_ERR_OK : TERRANE_ERR_MEMORY;
    }
    grid->staged += !(body->step_x | body->step_y);
    body->step_x = (int16_t)dx;
    body->step_y = (int16_t)dy;
    return TERRANE_ERR_OK;
}

static inline enum terrane_error stage_one(struct grid *grid, uint32_t handle, struct position position)
{
    if (!live(grid, handle)) return TERRANE_ERR_ENTITY_UNKNOWN;
    if (!position_inside(grid, position.x, position.y)) return TERRANE_ERR_POSITION_OUTSIDE;
    struct body *body = &grid->bodies[handle];
    uint32_t most = (uint32_t)grid->step_max;
    uint32_t dx = (uint32_t)position.x - (uint32_t)body->x, dy = (uint32_t)position.y - (uint32_t)body->y;
    bool plane = !grid->z && !position.z;
    if (__builtin_expect(!plane | !grid->narrow | (dx + most > 2 * most) | (dy + most > 2 * most), 0)) {
        return stage_rare(grid, handle, position);
    }
    grid->staged += !(body->step_x | body->step_y);
    body->step_x = (int16_t)dx;
    body->step_y = (int16_t)dy;
    return TERRANE_ERR_OK;
}

enum terrane_error grid_stage(struct aoi *aoi, uint32_t handle, struct position position)
{
    struct grid *grid = grid_of(aoi);
    return stage_one(grid, handle, position);
}

enum terrane_error grid_stage_many(struct aoi *aoi, const uint32_t *handles, const struct position *positions,
                                   size_t count, size_t *staged)
{
    struct grid *grid = grid_of(aoi);
    enum terrane_error error = TERRANE_ERR_OK;
    size_t i = 0;
    while (i < count && !error) {
        size_t end = i + bulk_stage(grid, handles + i, positions + i, count - i);
        if (end != i) {
            i = end;
            continue;
        }
        /* Some that the vectors do not take; then they may try again. */
        for (end = count - i < BULK_LANES ? count : i + BULK_LANES; i < end; i++) {
            error = stage_one(grid, handles[i], positions[i]);
            if (error) break;
        }
    }
    if (staged) *staged = i;
    return error;
}
