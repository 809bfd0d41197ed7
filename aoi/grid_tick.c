/* The tick: all staged moves at once, reported net.
 *
 * Both ends of a move are still known when the tick begins, so nothing is recorded on the way: first all that is lost
 * is found around the old places, then those that left their cell change over, then all that is gained is found
 * around the new places, and last the bodies take their new positions. A pair of two movers is judged from the one
 * with the lower handle. */
#include "aoi/grid.h"

#include <string.h>

struct side side_next(const struct grid *grid, uint32_t handle, const struct side *now)
{
    struct position position = staged_of(grid, handle);
    struct side next = *now;
    next.x = position.x;
    next.y = position.y;
    next.z = position.z;
    return next;
}

void mover_note(struct grid *grid, uint32_t handle)
{
    CHECK(grow(&grid->movers, &grid->mover_room, grid->mover_count + 1, sizeof *grid->movers));
    grid->movers[grid->mover_count++] = handle;
}

static void movers_note(struct grid *grid)
{
    grid->mover_count = 0;
    for (uint32_t handle = 0; handle < grid->high; handle++) {
        if (grid->bodies[handle].radius != BODY_DEAD && staged_any(grid, handle)) mover_note(grid, handle);
    }
}

/* What a scan judges: an entity with others, and which of them. */
struct scan {
    struct grid *grid;
    uint32_t handle;
    struct side before, after;
    unsigned first;
    bool joined, jumps; /* after a join: all pairs of those who jump, or else only the own far sight */
};

static void scan_judge(struct scan *scan, uint32_t other)
{
    struct grid *grid = scan->grid;
    if (other == scan->handle) return;
    bool moves = staged_any(grid, other), jumps = grid->bodies[other].step_x == STEP_JUMP;
    struct side before = side_of(grid, other), after = before;
    if (scan->joined && !scan->jumps) {
        if (jumps) return;
        before.radius = 0;
    } else if (other < scan->handle && (scan->joined ? jumps : moves)) {
        return;
    }
    after.radius = before.radius;
    if (moves) after = side_next(grid, other, &before);
    struct pair_change change = pair_judge(grid, scan->handle, &scan->before, &scan->after, other, &before, &after);
    if (scan->first == UNSEES) {
        unsigned lost = change.before & ~change.after;
        if (lost) changes_add(&grid->changes, UNSEES, lost, other);
        pair_settle_lost(grid, scan->handle, other, change);
    } else {
        unsigned gained = change.after & ~change.before;
        if (gained) changes_add(&grid->changes, SEES, gained, other);
        pair_settle_kept(grid, scan->handle, &scan->after, other, &after, change);
    }
}

void mover_scan(struct grid *grid, uint32_t handle, unsigned first, bool joined)
{
    struct scan scan = {
        .grid = grid, .handle = handle, .before = side_of(grid, handle), .first = first, .joined = joined};
    scan.after = side_next(grid, handle, &scan.before);
    scan.jumps = grid->bodies[handle].step_x == STEP_JUMP;
    struct walk walk;
    uint32_t cells;
    changes_clear(&grid->changes);
    struct box box = side_box(grid, first == UNSEES ? &scan.before : &scan.after);
    box_fetch(grid, scan.before.layer, box);
    walk_start(&walk, grid, scan.before.layer, box);
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (; cells--; cell++) {
            changes_reserve(&grid->changes, cell->count);
            const uint32_t *others = cell_handles(grid, cell);
            for (uint32_t i = 0; i < cell->count; i++) scan_judge(&scan, others[i]);
        }
    }
    changes_emit(&grid->changes, &grid->emitter, handle, first);
}

/* Takes the entity to the cell of its staged place. */
static void mover_reseat(struct grid *grid, uint32_t handle)
{
    struct side before = side_of(grid, handle), after = side_next(grid, handle, &before);
    struct seat from = seat_of(grid, &before), to = seat_make(grid, after.layer, after.x, after.y);
    CHECK(to.cell != NULL); /* a tick that is half reported can't be undone */
    if (from.cell == to.cell) return;
    seat_leave(grid, from, handle);
    CHECK(cell_add(grid, to.page, to.cell, handle));
}

static void mover_commit(struct grid *grid, uint32_t handle)
{
    struct position position = staged_of(grid, handle);
    struct body *body = &grid->bodies[handle];
    body->x = position.x;
    body->y = position.y;
    body->step_x = body->step_y = 0;
    if (grid->z) grid->z[handle] = position.z;
}

/* Crossers on their way to another cell. They come in no spatial order, so the cells and blocks of many are asked for
 * before the first is moved. */
struct removal {
    uint32_t handle;
    struct seat from, to;
};

static void removal_prepare(struct grid *grid, struct removal *removal, uint32_t handle, struct position next)
{
    struct side side = side_of(grid, handle);
    uint32_t x = cell_x(grid, next.x), y = cell_y(grid, next.y);
    struct page *page = page_make(grid, side.layer, x >> PAGE_BITS, y >> PAGE_BITS);
    CHECK(page != NULL); /* a tick that is half reported can't be undone */
    *removal = (struct removal){
        .handle = handle, .from = seat_of(grid, &side), .to = {.page = page, .cell = page_cell(page, x, y)}};
    __builtin_prefetch(removal->from.cell, 1);
    __builtin_prefetch(removal->to.cell, 1);
}

static void removals_do(struct grid *grid, const struct removal *removals, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct cell *from = removals[i].from.cell, *to = removals[i].to.cell;
        __builtin_prefetch(cell_handles(grid, from), 1);
        __builtin_prefetch(cell_handles(grid, to) + to->count, 1);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct removal *removal = &removals[i];
        seat_leave(grid, removal->from, removal->handle);
        CHECK(cell_add(grid, removal->to.page, removal->to.cell, removal->handle));
    }
}

void crossers_reseat(struct grid *grid)
{
    enum { REMOVALS_MOST = 32 };
    struct removal removals[REMOVALS_MOST];
    uint32_t count = 0;
    for (uint32_t handle = 0; handle < grid->high; handle++) {
        const struct body *body = &grid->bodies[handle];
        if (!(body->step_x | body->step_y)) continue;
        struct position next = staged_of(grid, handle);
        if (!x_cells_differ(grid, body->x, next.x) && !y_cells_differ(grid, body->y, next.y)) continue;
        removal_prepare(grid, &removals[count++], handle, next);
        if (count < REMOVALS_MOST) continue;
        removals_do(grid, removals, count);
        count = 0;
    }
    removals_do(grid, removals, count);
}

void moves_commit(struct grid *grid)
{
    for (uint32_t handle = 0; handle < grid->high; handle++) {
        struct body *body = &grid->bodies[handle];
        if (__builtin_expect(body->step_x == STEP_JUMP, 0)) {
            mover_commit(grid, handle);
            continue;
        }
        body->x += body->step_x;
        body->y += body->step_y;
        body->step_x = body->step_y = 0;
    }
    if (grid->z) memcpy(grid->z, grid->z_next, grid->high * sizeof *grid->z);
}

/* A join looks at everybody, whoever moves; it pays from about every eighth on. */
static bool join_pays(const struct grid *grid)
{
    return grid->options.mode == AOI_RADIUS && !z_matters(grid) && grid->staged > grid->count / 8;
}

/* The tick of blocks packs cell numbers into 16 bits. Differences of neighbours' are exact all the same, but for those
 * of jumps across a vast world. */
static bool block_pays(const struct grid *grid)
{
    bool vast = grid->cells_x > UINT16_MAX || grid->cells_y > UINT16_MAX;
    return grid->options.mode == AOI_BLOCK && !z_matters(grid) && !(vast && grid->jump_count);
}

/* The general way: any mode, z, radii and distances, one mover after the other. */
static void tick_movers(struct grid *grid)
{
    movers_note(grid);
    for (size_t i = 0; i < grid->mover_count; i++) mover_scan(grid, grid->movers[i], UNSEES, false);
    for (size_t i = 0; i < grid->mover_count; i++) mover_reseat(grid, grid->movers[i]);
    for (size_t i = 0; i < grid->mover_count; i++) mover_scan(grid, grid->movers[i], SEES, false);
    for (size_t i = 0; i < grid->mover_count; i++) mover_commit(grid, grid->movers[i]);
}

void grid_tick(struct aoi *aoi, aoi_sink *sink, void *context)
{
    struct grid *grid = grid_of(aoi);
    grid->emitter.sink = sink;
    grid->emitter.context = context;
    if (block_pays(grid)) {
        tick_block(grid);
    } else if (join_pays(grid)) {
        tick_join(grid);
    } else {
        tick_movers(grid);
    }
    grid->jump_count = 0;
    grid->staged = 0;
    copies_age(grid);
    pages_sweep(grid);
}
