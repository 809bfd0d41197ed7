/* The tick: all staged moves at once, reported net.
 *
 * Both ends of a move are still known when the tick begins, so nothing is recorded on the way: first all that is lost
 * is found around the old places, then those that left their cell change over, then all that is gained is found
 * around the new places, and last the bodies take their new positions. A pair of two movers is judged from the one
 * with the lower handle. */
#include "aoi/grid.h"

static struct side side_next(const struct aoi *aoi, uint32_t handle, const struct side *now)
{
    struct position position = staged_of(aoi, handle);
    struct side next = *now;
    next.x = position.x;
    next.y = position.y;
    next.z = position.z;
    return next;
}

static void movers_note(struct aoi *aoi)
{
    aoi->mover_count = 0;
    for (uint32_t handle = 0; handle < aoi->high; handle++) {
        if (aoi->bodies[handle].radius == BODY_DEAD || !staged_any(aoi, handle)) continue;
        CHECK(grow(&aoi->movers, &aoi->mover_room, aoi->mover_count + 1, sizeof *aoi->movers));
        aoi->movers[aoi->mover_count++] = handle;
    }
}

static void mover_judge(struct aoi *aoi, uint32_t handle, const struct side *before, const struct side *after,
                        uint32_t other, unsigned first)
{
    if (other == handle) return;
    bool moves = staged_any(aoi, other);
    if (moves && other < handle) return;
    struct side other_before = side_of(aoi, other), other_after = other_before;
    if (moves) other_after = side_next(aoi, other, &other_before);
    struct pair_change change = pair_judge(aoi, handle, before, after, other, &other_before, &other_after);
    if (first == UNSEES) {
        unsigned lost = change.before & ~change.after;
        if (lost) changes_add(&aoi->changes, UNSEES, lost, other);
        pair_settle_lost(aoi, handle, other, change);
    } else {
        unsigned gained = change.after & ~change.before;
        if (gained) changes_add(&aoi->changes, SEES, gained, other);
        pair_settle_kept(aoi, handle, after, other, &other_after, change);
    }
}

/* Around the old place for UNSEES, around the new for SEES. */
static void mover_scan(struct aoi *aoi, uint32_t handle, unsigned first)
{
    struct side before = side_of(aoi, handle), after = side_next(aoi, handle, &before);
    struct walk walk;
    uint32_t cells;
    changes_clear(&aoi->changes);
    walk_start(&walk, aoi, before.layer, side_box(aoi, first == UNSEES ? &before : &after));
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (; cells--; cell++) {
            changes_reserve(&aoi->changes, cell->count);
            const uint32_t *others = cell_handles(aoi, cell);
            for (uint32_t i = 0; i < cell->count; i++) mover_judge(aoi, handle, &before, &after, others[i], first);
        }
    }
    changes_emit(&aoi->changes, &aoi->emitter, handle, first);
}

/* Takes the entity to the cell of its staged place. */
static void mover_reseat(struct aoi *aoi, uint32_t handle)
{
    struct side before = side_of(aoi, handle), after = side_next(aoi, handle, &before);
    struct seat from = seat_of(aoi, &before), to = seat_make(aoi, after.layer, after.x, after.y);
    CHECK(to.cell != NULL); /* a tick that is half reported can't be undone */
    if (from.cell == to.cell) return;
    seat_leave(aoi, from, handle);
    CHECK(cell_add(aoi, to.page, to.cell, handle));
}

static void mover_commit(struct aoi *aoi, uint32_t handle)
{
    struct position position = staged_of(aoi, handle);
    struct body *body = &aoi->bodies[handle];
    body->x = position.x;
    body->y = position.y;
    body->step_x = body->step_y = 0;
    if (aoi->z) aoi->z[handle] = position.z;
}

/* The general way: any mode, z, radii and distances, one mover after the other. */
static void tick_movers(struct aoi *aoi)
{
    movers_note(aoi);
    for (size_t i = 0; i < aoi->mover_count; i++) mover_scan(aoi, aoi->movers[i], UNSEES);
    for (size_t i = 0; i < aoi->mover_count; i++) mover_reseat(aoi, aoi->movers[i]);
    for (size_t i = 0; i < aoi->mover_count; i++) mover_scan(aoi, aoi->movers[i], SEES);
    for (size_t i = 0; i < aoi->mover_count; i++) mover_commit(aoi, aoi->movers[i]);
}

void aoi_tick(struct aoi *aoi, aoi_sink *sink, void *context)
{
    aoi->emitter.sink = sink;
    aoi->emitter.context = context;
    if (aoi->options.mode == AOI_BLOCK && !z_matters(aoi)) {
        tick_block(aoi);
    } else {
        tick_movers(aoi);
    }
    aoi->jump_count = 0;
    aoi->generation++;
    pages_sweep(aoi);
}
