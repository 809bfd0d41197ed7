/* What one entity's change does to the views, and the judgement of a pair that all but the fast paths share.
 *
 * No view is stored. Whether `a` saw `b` before is worked out from where both were: the distance says it, except
 * between radius and radius + hysteresis, where the band set remembers the pairs that are still seen. So a change is
 * judged from both ends: around the old place for what is lost, around the new one for what is gained. */
#include "aoi/grid.h"

#include <stdlib.h>
#include <string.h>

void emit_flush(struct emitter *emitter)
{
    if (emitter->count && emitter->sink) emitter->sink(emitter->context, emitter->spans, emitter->count);
    emitter->count = 0;
    for (unsigned i = 0; i < 3; i++) {
        struct notes *notes = &emitter->notes[i];
        notes->used -= notes->start;
        memmove(notes->words, notes->words + notes->start, notes->used * sizeof *notes->words);
        notes->start = 0;
    }
}

void emit_note_end(struct emitter *emitter, uint32_t subject, unsigned first)
{
    if (emitter->count + 3 > SPANS_BATCH) emit_flush(emitter);
    for (unsigned sides = SIDE_OUT; sides <= (SIDE_OUT | SIDE_IN); sides++) {
        struct notes *notes = &emitter->notes[sides - 1];
        emit(emitter, subject, change_of(first, sides), notes->words + notes->start, notes->used - notes->start);
        notes->start = notes->used;
    }
}

/* ---- lists of changes ---- */

void changes_clear(struct changes *changes)
{
    for (unsigned kind = 0; kind < CHANGE_KINDS; kind++) changes->count[kind] = 0;
    changes->bound = 0;
}

void changes_reserve(struct changes *changes, size_t count)
{
    changes->bound += count;
    if (changes->bound <= changes->room) return;
    size_t room = changes->bound + changes->bound / 2 + 64;
    for (unsigned kind = 0; kind < CHANGE_KINDS; kind++) {
        uint32_t *list = realloc(changes->lists[kind], room * sizeof *list);
        CHECK(list != NULL); /* a change that is half reported can't be undone */
        changes->lists[kind] = list;
    }
    changes->room = room;
}

void changes_close(struct changes *changes)
{
    for (unsigned kind = 0; kind < CHANGE_KINDS; kind++) free(changes->lists[kind]);
}

void changes_emit(struct changes *changes, struct emitter *emitter, uint32_t subject, unsigned first)
{
    for (unsigned sides = SIDE_OUT; sides <= (SIDE_OUT | SIDE_IN); sides++) {
        unsigned kind = first + sides;
        emit(emitter, subject, change_of(first, sides), changes->lists[kind], changes->count[kind]);
        changes->count[kind] = 0;
    }
    emit_flush(emitter);
    changes->bound = 0;
}

/* ---- radii in use ---- */

uint32_t view_reach(const struct grid *grid, uint32_t radius)
{
    uint64_t cells =
        (view_limit(grid, radius) + (uint64_t)grid->options.cell_size - 1) / (uint64_t)grid->options.cell_size;
    return cells < REACH_COUNTED ? (uint32_t)cells : REACH_COUNTED;
}

void view_count_add(struct grid *grid, uint32_t radius)
{
    uint32_t reach = view_reach(grid, radius);
    uint64_t limit = view_limit(grid, radius);
    grid->reach_count[reach]++;
    if (reach == REACH_COUNTED && limit > grid->view_beyond) grid->view_beyond = limit;
}

void view_count_remove(struct grid *grid, uint32_t radius)
{
    uint32_t reach = view_reach(grid, radius);
    if (--grid->reach_count[reach] == 0 && reach == REACH_COUNTED) grid->view_beyond = 0;
}

uint64_t view_max(const struct grid *grid)
{
    if (grid->reach_count[REACH_COUNTED]) return grid->view_beyond;
    uint64_t reach = REACH_COUNTED;
    while (reach > 0 && !grid->reach_count[reach]) reach--;
    return reach * (uint64_t)grid->options.cell_size;
}

/* ---- pairs ---- */

static bool cells_touch(const struct grid *grid, const struct side *a, const struct side *b)
{
    int64_t dx = (int64_t)cell_x(grid, a->x) - cell_x(grid, b->x),
            dy = (int64_t)cell_y(grid, a->y) - cell_y(grid, b->y);
    return dx >= -1 && dx <= 1 && dy >= -1 && dy <= 1;
}

/* Whether the two could see each other but for the distance. */
static bool eligible(const struct grid *grid, const struct side *a, const struct side *b)
{
    return a->there && b->there && a->layer == b->layer && z_within(grid, a->z, b->z);
}

/* Whether `observer` saw `subject` before. */
static bool saw(const struct grid *grid, uint32_t observer, uint32_t radius, uint32_t subject, uint64_t dx, uint64_t dy)
{
    if (!radius) return false;
    if (within(dx, dy, radius)) return true;
    return grid->hysteresis && within(dx, dy, view_limit(grid, radius)) && band_holds(&grid->band, observer, subject);
}

static bool sees_now(const struct grid *grid, uint32_t radius, bool saw_before, uint64_t dx, uint64_t dy)
{
    if (!radius) return false;
    return within(dx, dy, radius) || (saw_before && within(dx, dy, view_limit(grid, radius)));
}

struct pair_change pair_judge(const struct grid *grid, uint32_t a, const struct side *a_before,
                              const struct side *a_after, uint32_t b, const struct side *b_before,
                              const struct side *b_after)
{
    struct pair_change change = {0};
    bool before = eligible(grid, a_before, b_before), after = eligible(grid, a_after, b_after);
    if (grid->options.mode == AOI_BLOCK) {
        if (before && cells_touch(grid, a_before, b_before)) change.before = SIDE_OUT | SIDE_IN;
        if (after && cells_touch(grid, a_after, b_after)) change.after = SIDE_OUT | SIDE_IN;
        return change;
    }
    if (before) {
        uint64_t dx = gap(a_before->x, b_before->x), dy = gap(a_before->y, b_before->y);
        if (saw(grid, a, a_before->radius, b, dx, dy)) change.before |= SIDE_OUT;
        if (saw(grid, b, b_before->radius, a, dx, dy)) change.before |= SIDE_IN;
    }
    if (after) {
        uint64_t dx = gap(a_after->x, b_after->x), dy = gap(a_after->y, b_after->y);
        if (sees_now(grid, a_after->radius, change.before & SIDE_OUT, dx, dy)) change.after |= SIDE_OUT;
        if (sees_now(grid, b_after->radius, change.before & SIDE_IN, dx, dy)) change.after |= SIDE_IN;
    }
    return change;
}

void pair_settle_lost(struct grid *grid, uint32_t a, uint32_t b, struct pair_change change)
{
    if (!grid->hysteresis) return;
    unsigned lost = change.before & ~change.after;
    if (lost & SIDE_OUT) band_remove(&grid->band, a, b);
    if (lost & SIDE_IN) band_remove(&grid->band, b, a);
}

static void settle_kept(struct grid *grid, uint32_t observer, uint32_t radius, uint32_t subject, uint64_t dx,
                        uint64_t dy)
{
    if (within(dx, dy, radius)) {
        band_remove(&grid->band, observer, subject);
    } else {
        band_add(&grid->band, observer, subject);
    }
}

void pair_settle_kept(struct grid *grid, uint32_t a, const struct side *a_after, uint32_t b, const struct side *b_after,
                      struct pair_change change)
{
    unsigned kept = change.before & change.after;
    if (!grid->hysteresis || !kept || grid->options.mode == AOI_BLOCK) return;
    uint64_t dx = gap(a_after->x, b_after->x), dy = gap(a_after->y, b_after->y);
    if (kept & SIDE_OUT) settle_kept(grid, a, a_after->radius, b, dx, dy);
    if (kept & SIDE_IN) settle_kept(grid, b, b_after->radius, a, dx, dy);
}

struct side side_of(const struct grid *grid, uint32_t handle)
{
    const struct body *body = &grid->bodies[handle];
    return (struct side){.x = body->x,
                         .y = body->y,
                         .z = z_of(grid, handle),
                         .radius = body->radius,
                         .layer = layer_of(grid, handle),
                         .there = true};
}

struct box side_box(const struct grid *grid, const struct side *side)
{
    if (!side->there) return (struct box){.empty = true};
    if (grid->options.mode == AOI_BLOCK) return box_block(grid, cell_x(grid, side->x), cell_y(grid, side->y));
    uint64_t own = view_limit(grid, side->radius), others = view_max(grid);
    return box_around(grid, side->x, side->y, own > others ? own : others);
}

/* ---- one entity's change ---- */

enum pass { PASS_LOST = 1, PASS_GAINED = 2 };

/* The limits of one entity's change where the distance alone decides: no z, no hysteresis, and squares that fit. */
struct plain_change {
    uint32_t handle;
    int64_t old_x, old_y, new_x, new_y;
    int64_t old_limit, new_limit; /* own radius, squared; -1: sees nothing, or is not there */
    bool old_there, new_there;
};

static int64_t limit_of(uint32_t radius, bool there)
{
    return radius && there ? (int64_t)((uint64_t)radius * radius) : -1;
}

static struct plain_change plain_change_of(uint32_t handle, const struct side *before, const struct side *after)
{
    return (struct plain_change){.handle = handle,
                                 .old_x = before->x,
                                 .old_y = before->y,
                                 .new_x = after->x,
                                 .new_y = after->y,
                                 .old_limit = limit_of(before->radius, before->there),
                                 .new_limit = limit_of(after->radius, after->there),
                                 .old_there = before->there,
                                 .new_there = after->there};
}

/* As below, without a branch on what is found: the lists of kind "nothing" take what is of no interest. */
static void cell_collect_plain(struct grid *grid, const struct plain_change *c, const struct cell *cell,
                               unsigned passes)
{
    const uint32_t *others = cell_handles(grid, cell);
    struct changes *changes = &grid->changes;
    unsigned lost_mask = passes & PASS_LOST ? 3 : 0, gained_mask = passes & PASS_GAINED ? 3 : 0;
    for (uint32_t i = 0; i < cell->count; i++) {
        uint32_t other = others[i];
        const struct body *body = &grid->bodies[other];
        int64_t old_x = body->x - c->old_x, old_y = body->y - c->old_y, old = old_x * old_x + old_y * old_y;
        int64_t new_x = body->x - c->new_x, new_y = body->y - c->new_y, new = new_x *new_x + new_y *new_y;
        int64_t limit = body->radius ? (int64_t)((uint64_t)body->radius * body->radius) : -1;
        unsigned before =
            (unsigned)(old <= c->old_limit) * SIDE_OUT | (unsigned)(c->old_there & (old <= limit)) * SIDE_IN;
        unsigned after =
            (unsigned)(new <= c->new_limit) * SIDE_OUT | (unsigned)(c->new_there & (new <= limit)) * SIDE_IN;
        unsigned lost = before & ~after & lost_mask, gained = after & ~before & gained_mask;
        if (other == c->handle) continue;
        changes_add(changes, UNSEES, lost, other);
        changes_add(changes, SEES, gained, other);
    }
}

/* The general way. */
static void cell_collect(struct grid *grid, uint32_t handle, const struct side *before, const struct side *after,
                         const struct cell *cell, unsigned passes)
{
    const uint32_t *others = cell_handles(grid, cell);
    for (uint32_t i = 0; i < cell->count; i++) {
        uint32_t other = others[i];
        if (other == handle) continue;
        struct side side = side_of(grid, other);
        struct pair_change change = pair_judge(grid, handle, before, after, other, &side, &side);
        if (!(change.before | change.after)) continue;
        if (passes & PASS_LOST) {
            changes_add(&grid->changes, UNSEES, change.before & ~change.after, other);
            pair_settle_lost(grid, handle, other, change);
        }
        if (passes & PASS_GAINED) {
            changes_add(&grid->changes, SEES, change.after & ~change.before, other);
            pair_settle_kept(grid, handle, after, other, &side, change);
        }
    }
}

/* Judges the entity with everybody in the box; `passes` says which changes to collect and book. */
static void change_collect(struct grid *grid, uint32_t handle, const struct side *before, const struct side *after,
                           int32_t layer, struct box box, unsigned passes)
{
    struct walk walk;
    uint32_t cells;
    struct plain_change c = plain_change_of(handle, before, after);
    uint64_t view = view_max(grid), own = before->radius > after->radius ? before->radius : after->radius;
    uint64_t farthest = 4 * ((view > own ? view : own) + (uint64_t)grid->options.cell_size);
    bool plain = grid->options.mode == AOI_RADIUS && !grid->hysteresis && !z_matters(grid) && farthest < 1u << 30 &&
                 (!before->there || !after->there || before->layer == after->layer) &&
                 (passes == (PASS_LOST | PASS_GAINED) || !before->there || !after->there);
    box_fetch(grid, layer, box);
    walk_start(&walk, grid, layer, box);
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (; cells--; cell++) {
            if (!cell->count) continue;
            changes_reserve(&grid->changes, cell->count);
            if (plain) {
                cell_collect_plain(grid, &c, cell, passes);
            } else {
                cell_collect(grid, handle, before, after, cell, passes);
            }
        }
    }
}

static uint64_t box_cells(const struct box *box)
{
    return box->empty ? 0 : (uint64_t)(box->x1 - box->x0 + 1) * (box->y1 - box->y0 + 1);
}

/* The smallest box around both. */
static struct box box_union(const struct box *a, const struct box *b)
{
    return (struct box){.x0 = a->x0 < b->x0 ? a->x0 : b->x0,
                        .y0 = a->y0 < b->y0 ? a->y0 : b->y0,
                        .x1 = a->x1 > b->x1 ? a->x1 : b->x1,
                        .y1 = a->y1 > b->y1 ? a->y1 : b->y1};
}

/* The cells of one block that are not in another are spans as they stand: all members change, mutually. */
static void blocks_differ(struct grid *grid, uint32_t handle, const struct side *in, const struct side *not_in,
                          unsigned change)
{
    if (!in->there) return;
    struct box other = side_box(grid, not_in);
    bool apart = other.empty || in->layer != not_in->layer;
    struct walk walk;
    uint32_t cells;
    walk_start(&walk, grid, in->layer, side_box(grid, in));
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (uint32_t i = 0; i < cells; i++) {
            if (!apart && box_holds(&other, walk.x + i, walk.y - 1)) continue;
            emit(&grid->emitter, handle, change, cell_handles(grid, &cell[i]), cell[i].count);
        }
    }
}

void change_views(struct grid *grid, uint32_t handle, const struct side *before, const struct side *after,
                  aoi_sink *sink, void *context)
{
    if (!sink && !grid->hysteresis) return;
    grid->emitter.sink = sink;
    grid->emitter.context = context;
    if (grid->options.mode == AOI_BLOCK && !z_matters(grid)) {
        blocks_differ(grid, handle, before, after, AOI_UNSEE | AOI_UNSEEN_BY);
        blocks_differ(grid, handle, after, before, AOI_SEE | AOI_SEEN_BY);
        emit_flush(&grid->emitter);
        return;
    }
    struct box old = side_box(grid, before), new = side_box(grid, after);
    changes_clear(&grid->changes);
    if (!old.empty && !new.empty && before->layer == after->layer) {
        struct box both = box_union(&old, &new);
        if (box_cells(&both) <= box_cells(&old) + box_cells(&new)) {
            change_collect(grid, handle, before, after, before->layer, both, PASS_LOST | PASS_GAINED);
            changes_emit(&grid->changes, &grid->emitter, handle, UNSEES);
            changes_emit(&grid->changes, &grid->emitter, handle, SEES);
            return;
        }
    }
    change_collect(grid, handle, before, after, before->layer, old, PASS_LOST);
    changes_emit(&grid->changes, &grid->emitter, handle, UNSEES);
    change_collect(grid, handle, before, after, after->layer, new, PASS_GAINED);
    changes_emit(&grid->changes, &grid->emitter, handle, SEES);
}
