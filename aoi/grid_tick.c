/* The tick: all staged moves at once, reported net.
 *
 * Both ends of a move are still known when the tick begins, so nothing is recorded on the way: first all that is lost
 * is found around the old places, then those that left their cell change over, then all that is gained is found
 * around the new places, and last the bodies take their new positions. A pair of two movers is judged from the one
 * with the lower handle. */
#include "aoi/grid.h"

#include <string.h>

struct side side_next(const struct aoi *aoi, uint32_t handle, const struct side *now)
{
    struct position position = staged_of(aoi, handle);
    struct side next = *now;
    next.x = position.x;
    next.y = position.y;
    next.z = position.z;
    return next;
}

void mover_note(struct aoi *aoi, uint32_t handle)
{
    CHECK(grow(&aoi->movers, &aoi->mover_room, aoi->mover_count + 1, sizeof *aoi->movers));
    aoi->movers[aoi->mover_count++] = handle;
}

static void movers_note(struct aoi *aoi)
{
    aoi->mover_count = 0;
    for (uint32_t handle = 0; handle < aoi->high; handle++) {
        if (aoi->bodies[handle].radius != BODY_DEAD && staged_any(aoi, handle)) mover_note(aoi, handle);
    }
}

/* What a scan judges: an entity with others, and which of them. */
struct scan {
    struct aoi *aoi;
    uint32_t handle;
    struct side before, after;
    unsigned first;
    bool joined, jumps; /* after a join: all pairs of those who jump, or else only the own far sight */
};

static void scan_judge(struct scan *scan, uint32_t other)
{
    struct aoi *aoi = scan->aoi;
    if (other == scan->handle) return;
    bool moves = staged_any(aoi, other), jumps = aoi->bodies[other].step_x == STEP_JUMP;
    struct side before = side_of(aoi, other), after = before;
    if (scan->joined && !scan->jumps) {
        if (jumps) return;
        before.radius = 0;
    } else if (other < scan->handle && (scan->joined ? jumps : moves)) {
        return;
    }
    after.radius = before.radius;
    if (moves) after = side_next(aoi, other, &before);
    struct pair_change change = pair_judge(aoi, scan->handle, &scan->before, &scan->after, other, &before, &after);
    if (scan->first == UNSEES) {
        unsigned lost = change.before & ~change.after;
        if (lost) changes_add(&aoi->changes, UNSEES, lost, other);
        pair_settle_lost(aoi, scan->handle, other, change);
    } else {
        unsigned gained = change.after & ~change.before;
        if (gained) changes_add(&aoi->changes, SEES, gained, other);
        pair_settle_kept(aoi, scan->handle, &scan->after, other, &after, change);
    }
}

void mover_scan(struct aoi *aoi, uint32_t handle, unsigned first, bool joined)
{
    struct scan scan = {.aoi = aoi, .handle = handle, .before = side_of(aoi, handle), .first = first, .joined = joined};
    scan.after = side_next(aoi, handle, &scan.before);
    scan.jumps = aoi->bodies[handle].step_x == STEP_JUMP;
    struct walk walk;
    uint32_t cells;
    changes_clear(&aoi->changes);
    struct box box = side_box(aoi, first == UNSEES ? &scan.before : &scan.after);
    box_fetch(aoi, scan.before.layer, box);
    walk_start(&walk, aoi, scan.before.layer, box);
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (; cells--; cell++) {
            changes_reserve(&aoi->changes, cell->count);
            const uint32_t *others = cell_handles(aoi, cell);
            for (uint32_t i = 0; i < cell->count; i++) scan_judge(&scan, others[i]);
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

/* Crossers on their way to another cell. They come in no spatial order, so the cells and blocks of many are asked for
 * before the first is moved. */
struct removal {
    uint32_t handle;
    struct seat from, to;
};

static void removal_prepare(struct aoi *aoi, struct removal *removal, uint32_t handle, struct position next)
{
    struct side side = side_of(aoi, handle);
    uint32_t x = cell_x(aoi, next.x), y = cell_y(aoi, next.y);
    struct page *page = page_make(aoi, side.layer, x >> PAGE_BITS, y >> PAGE_BITS);
    CHECK(page != NULL); /* a tick that is half reported can't be undone */
    *removal = (struct removal){
        .handle = handle, .from = seat_of(aoi, &side), .to = {.page = page, .cell = page_cell(page, x, y)}};
    __builtin_prefetch(removal->from.cell, 1);
    __builtin_prefetch(removal->to.cell, 1);
}

static void removals_do(struct aoi *aoi, const struct removal *removals, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct cell *from = removals[i].from.cell, *to = removals[i].to.cell;
        __builtin_prefetch(cell_handles(aoi, from), 1);
        __builtin_prefetch(cell_handles(aoi, to) + to->count, 1);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct removal *removal = &removals[i];
        seat_leave(aoi, removal->from, removal->handle);
        CHECK(cell_add(aoi, removal->to.page, removal->to.cell, removal->handle));
    }
}

void crossers_reseat(struct aoi *aoi)
{
    enum { REMOVALS_MOST = 32 };
    struct removal removals[REMOVALS_MOST];
    uint32_t count = 0;
    for (uint32_t handle = 0; handle < aoi->high; handle++) {
        const struct body *body = &aoi->bodies[handle];
        if (!(body->step_x | body->step_y)) continue;
        struct position next = staged_of(aoi, handle);
        if (!x_cells_differ(aoi, body->x, next.x) && !y_cells_differ(aoi, body->y, next.y)) continue;
        removal_prepare(aoi, &removals[count++], handle, next);
        if (count < REMOVALS_MOST) continue;
        removals_do(aoi, removals, count);
        count = 0;
    }
    removals_do(aoi, removals, count);
}

void moves_commit(struct aoi *aoi)
{
    for (uint32_t handle = 0; handle < aoi->high; handle++) {
        struct body *body = &aoi->bodies[handle];
        if (__builtin_expect(body->step_x == STEP_JUMP, 0)) {
            mover_commit(aoi, handle);
            continue;
        }
        body->x += body->step_x;
        body->y += body->step_y;
        body->step_x = body->step_y = 0;
    }
    if (aoi->z) memcpy(aoi->z, aoi->z_next, aoi->high * sizeof *aoi->z);
}

/* A join looks at everybody, whoever moves; it pays from about every eighth on. */
static bool join_pays(const struct aoi *aoi)
{
    return aoi->options.mode == AOI_RADIUS && !z_matters(aoi) && aoi->staged > aoi->count / 8;
}

/* The tick of blocks packs cell numbers into 16 bits. Differences of neighbours' are exact all the same, but for those
 * of jumps across a vast world. */
static bool block_pays(const struct aoi *aoi)
{
    bool vast = aoi->cells_x > UINT16_MAX || aoi->cells_y > UINT16_MAX;
    return aoi->options.mode == AOI_BLOCK && !z_matters(aoi) && !(vast && aoi->jump_count);
}

/* The general way: any mode, z, radii and distances, one mover after the other. */
static void tick_movers(struct aoi *aoi)
{
    movers_note(aoi);
    for (size_t i = 0; i < aoi->mover_count; i++) mover_scan(aoi, aoi->movers[i], UNSEES, false);
    for (size_t i = 0; i < aoi->mover_count; i++) mover_reseat(aoi, aoi->movers[i]);
    for (size_t i = 0; i < aoi->mover_count; i++) mover_scan(aoi, aoi->movers[i], SEES, false);
    for (size_t i = 0; i < aoi->mover_count; i++) mover_commit(aoi, aoi->movers[i]);
}

void aoi_tick(struct aoi *aoi, aoi_sink *sink, void *context)
{
    aoi->emitter.sink = sink;
    aoi->emitter.context = context;
    if (block_pays(aoi)) {
        tick_block(aoi);
    } else if (join_pays(aoi)) {
        tick_join(aoi);
    } else {
        tick_movers(aoi);
    }
    aoi->jump_count = 0;
    aoi->staged = 0;
    copies_age(aoi);
    pages_sweep(aoi);
}
