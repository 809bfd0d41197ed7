/* What a change does to views: the judgement of pairs, one change at a time, and the tick.
 *
 * No view is stored. Whether `a` saw `b` before follows from where both were, but for the band between radius and
 * radius + hysteresis, which is remembered. So what is lost is found around the old place and what is gained around
 * the new one; where the two places are close, both are found in one look. */
#include "aoi/engine.h"
#include "common/array.h"
#include "common/check.h"

/* ---- radii in use ---- */

static unsigned class_of(uint64_t limit)
{
    return limit ? 64 - (unsigned)__builtin_clzll(limit) : 0;
}

void sight_add(struct engine *e, uint32_t radius)
{
    uint64_t limit = view_limit(e, radius);
    unsigned class = class_of(limit);
    e->sights.count[class]++;
    if (limit > e->sights.most[class]) e->sights.most[class] = limit;
}

void sight_remove(struct engine *e, uint32_t radius)
{
    unsigned class = class_of(view_limit(e, radius));
    if (--e->sights.count[class] == 0) e->sights.most[class] = 0;
}

uint64_t sight_most(const struct engine *e)
{
    unsigned class = VIEW_CLASSES - 1;
    while (class > 0 && !e->sights.count[class]) class --;
    return e->sights.most[class];
}

/* ---- volumes ---- */

static int32_t clamped(int64_t v)
{
    return v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : (int32_t)v;
}

struct volume volume_around(const struct engine *e, struct position at, uint64_t x, uint64_t y, uint64_t z)
{
    struct volume volume = {.min = {clamped(at.x - (int64_t)x), clamped(at.y - (int64_t)y), INT32_MIN},
                            .max = {clamped(at.x + (int64_t)x), clamped(at.y + (int64_t)y), INT32_MAX}};
    if (!e->space) return volume;
    volume.min.z = clamped(at.z - (int64_t)z);
    volume.max.z = clamped(at.z + (int64_t)z);
    return volume;
}

struct volume volume_block(const struct engine *e, struct position at)
{
    int64_t size = e->cells.size, base = e->cells.base;
    int64_t x = base + cell_at(&e->cells, at.x) * size, y = base + cell_at(&e->cells, at.y) * size,
            z = base + cell_at(&e->cells, at.z) * size;
    struct volume volume = {.min = {clamped(x - size), clamped(y - size), INT32_MIN},
                            .max = {clamped(x + 2 * size - 1), clamped(y + 2 * size - 1), INT32_MAX}};
    if (!e->space) return volume;
    volume.min.z = clamped(z - size);
    volume.max.z = clamped(z + 2 * size - 1);
    return volume;
}

struct volume volume_near(const struct engine *e, const struct mote *mote)
{
    if (e->options.mode == AOI_BLOCK) return volume_block(e, mote->at);
    uint64_t own = view_limit(e, mote->radius), others = sight_most(e);
    uint64_t x = others + mote->extent_x, y = others + mote->extent_y;
    return volume_around(e, mote->at, x > own ? x : own, y > own ? y : own, others > own ? others : own);
}

struct volume volume_view(const struct engine *e, const struct mote *mote)
{
    if (e->options.mode == AOI_BLOCK) return volume_block(e, mote->at);
    uint64_t own = view_limit(e, mote->radius);
    return volume_around(e, mote->at, own, own, own);
}

/* ---- pairs ---- */

/* In AOI_BLOCK views go by cells, and only z matters besides. */
bool views_stay(const struct engine *e, struct position from, struct position to)
{
    if (e->options.mode != AOI_BLOCK || e->z_decides) return false;
    if (cell_at(&e->cells, from.x) != cell_at(&e->cells, to.x)) return false;
    if (cell_at(&e->cells, from.y) != cell_at(&e->cells, to.y)) return false;
    return !e->space || cell_at(&e->cells, from.z) == cell_at(&e->cells, to.z);
}

static uint64_t gap_beyond(int32_t a, int32_t b, uint32_t extent)
{
    uint64_t distance = gap(a, b);
    return distance > extent ? distance - extent : 0;
}

bool engine_within(const struct engine *e, struct position from, const struct mote *subject, uint64_t radius)
{
    uint64_t dx = gap_beyond(from.x, subject->at.x, subject->extent_x);
    uint64_t dy = gap_beyond(from.y, subject->at.y, subject->extent_y);
    return within_sphere(dx, dy, e->space ? gap(from.z, subject->at.z) : 0, radius);
}

static bool cells_touch(const struct cells *cells, int32_t a, int32_t b)
{
    int64_t d = (int64_t)cell_at(cells, a) - cell_at(cells, b);
    return d >= -1 && d <= 1;
}

static bool blocks_touch(const struct engine *e, struct position a, struct position b)
{
    if (!cells_touch(&e->cells, a.x, b.x) || !cells_touch(&e->cells, a.y, b.y)) return false;
    return !e->space || cells_touch(&e->cells, a.z, b.z);
}

/* Whether the two could see each other but for the distance. */
static bool eligible(const struct engine *e, const struct mote *a, const struct mote *b)
{
    if (!a->live || !b->live || a->layer != b->layer) return false;
    return !e->z_decides || gap(a->at.z, b->at.z) <= e->options.z_range;
}

static bool saw(const struct engine *e, uint32_t a, const struct mote *observer, uint32_t b, const struct mote *subject)
{
    if (!observer->radius) return false;
    if (engine_within(e, observer->at, subject, observer->radius)) return true;
    return e->band.count && engine_within(e, observer->at, subject, view_limit(e, observer->radius)) &&
           band_holds(&e->band, a, b);
}

static bool sees(const struct engine *e, const struct mote *observer, const struct mote *subject, bool before)
{
    if (!observer->radius) return false;
    uint64_t limit = before ? view_limit(e, observer->radius) : observer->radius;
    return engine_within(e, observer->at, subject, limit);
}

struct pair {
    uint32_t a, b;
    const struct mote *a_before, *a_after, *b_before, *b_after;
    unsigned before, after; /* SIDE_OUT: a sees b. SIDE_IN: b sees a */
};

static void pair_judge(const struct engine *e, struct pair *p)
{
    bool before = eligible(e, p->a_before, p->b_before), after = eligible(e, p->a_after, p->b_after);
    p->before = p->after = 0;
    if (e->options.mode == AOI_BLOCK) {
        if (before && blocks_touch(e, p->a_before->at, p->b_before->at)) p->before = SIDE_OUT | SIDE_IN;
        if (after && blocks_touch(e, p->a_after->at, p->b_after->at)) p->after = SIDE_OUT | SIDE_IN;
        return;
    }
    if (before) {
        if (saw(e, p->a, p->a_before, p->b, p->b_before)) p->before |= SIDE_OUT;
        if (saw(e, p->b, p->b_before, p->a, p->a_before)) p->before |= SIDE_IN;
    }
    if (after) {
        if (sees(e, p->a_after, p->b_after, p->before & SIDE_OUT)) p->after |= SIDE_OUT;
        if (sees(e, p->b_after, p->a_after, p->before & SIDE_IN)) p->after |= SIDE_IN;
    }
}

bool engine_sees(const struct engine *e, uint32_t observer, uint32_t subject)
{
    const struct mote *a = &e->motes[observer], *b = &e->motes[subject];
    if (!eligible(e, a, b)) return false;
    return e->options.mode == AOI_BLOCK ? blocks_touch(e, a->at, b->at) : saw(e, observer, a, subject, b);
}

static void band_settle(struct engine *e, const struct mote *observer, uint32_t a, const struct mote *subject,
                        uint32_t b)
{
    if (engine_within(e, observer->at, subject, observer->radius)) {
        band_remove(&e->band, a, b);
    } else {
        band_add(&e->band, a, b);
    }
}

/* What is judged after settling would be judged wrong: lost first, kept when all that is lost is known. */
static void pair_settle_lost(struct engine *e, const struct pair *p)
{
    unsigned lost = p->before & ~p->after;
    if (lost & SIDE_OUT) band_remove(&e->band, p->a, p->b);
    if (lost & SIDE_IN) band_remove(&e->band, p->b, p->a);
}

static void pair_settle_kept(struct engine *e, const struct pair *p)
{
    unsigned kept = p->before & p->after;
    if (kept & SIDE_OUT) band_settle(e, p->a_after, p->a, p->b_after, p->b);
    if (kept & SIDE_IN) band_settle(e, p->b_after, p->b, p->a_after, p->a);
}

/* ---- one change ---- */

enum pass { PASS_LOST = 1, PASS_GAINED = 2 };

/* Adds to the lists of the report; a list that nobody reads takes what is of no interest. */
static void pair_note(struct engine *e, const struct pair *p, unsigned passes)
{
    unsigned lost = p->before & ~p->after, gained = p->after & ~p->before;
    bool banded = e->hysteresis;
    if (passes & PASS_LOST && lost) found_add(&e->report.lost[lost], p->b);
    if (passes & PASS_LOST && banded) pair_settle_lost(e, p);
    if (passes & PASS_GAINED && gained) found_add(&e->report.gained[gained], p->b);
    if (passes & PASS_GAINED && banded) pair_settle_kept(e, p);
}

/* Squared radius; -1: sees nothing. */
static int64_t limit_of(const struct mote *mote)
{
    return mote->radius && mote->live ? (int64_t)((uint64_t)mote->radius * mote->radius) : -1;
}

/* The commonest case, without a call for each pair: distances alone decide, nobody else moves, and squares fit. One who
 * was or will be nowhere has no sight there. */
static void found_judge_plainly(struct engine *e, uint32_t handle, const struct mote *before, const struct mote *after,
                                unsigned passes)
{
    int64_t old_limit = limit_of(before), new_limit = limit_of(after);
    unsigned lost_mask = passes & PASS_LOST ? 3 : 0, gained_mask = passes & PASS_GAINED ? 3 : 0;
    unsigned old_there = before->live ? SIDE_IN : 0, new_there = after->live ? SIDE_IN : 0;
    bool space = e->space;
    struct position was_at = before->live ? before->at : after->at, is_at = after->live ? after->at : before->at;
    for (size_t i = 0; i < e->found.count; i++) {
        uint32_t other = e->found.handles[i];
        const struct mote *mote = &e->motes[other];
        int64_t ox = (int64_t)mote->at.x - was_at.x, oy = (int64_t)mote->at.y - was_at.y;
        int64_t nx = (int64_t)mote->at.x - is_at.x, ny = (int64_t)mote->at.y - is_at.y;
        int64_t old = ox * ox + oy * oy, new = nx *nx + ny *ny;
        if (space) {
            int64_t oz = (int64_t)mote->at.z - was_at.z, nz = (int64_t)mote->at.z - is_at.z;
            old += oz * oz;
            new += nz *nz;
        }
        int64_t limit = limit_of(mote);
        unsigned was = (old <= old_limit ? SIDE_OUT : 0u) | (old <= limit ? old_there : 0u);
        unsigned is = (new <= new_limit ? SIDE_OUT : 0u) | (new <= limit ? new_there : 0u);
        unsigned lost = was & ~is & lost_mask, gained = is & ~was & gained_mask;
        if (!(lost | gained) || other == handle) continue;
        if (lost) found_add(&e->report.lost[lost], other);
        if (gained) found_add(&e->report.gained[gained], other);
    }
}

/* Judges the entity with all that were found. */
static void found_judge(struct engine *e, uint32_t handle, const struct mote *before, const struct mote *after,
                        unsigned passes, bool plain)
{
    if (plain) {
        found_judge_plainly(e, handle, before, after, passes);
        return;
    }
    struct pair p = {.a = handle, .a_before = before, .a_after = after};
    for (size_t i = 0; i < e->found.count; i++) {
        p.b = e->found.handles[i];
        if (p.b == handle) continue;
        p.b_before = p.b_after = &e->motes[p.b];
        pair_judge(e, &p);
        pair_note(e, &p, passes);
    }
}

/* Finds all who may see the mote or whom it may see. */
static void near_find(struct engine *e, const struct mote *mote)
{
    e->found.count = 0;
    struct stratum *stratum = mote->live ? stratum_find(e, mote->layer) : NULL;
    if (!stratum) return;
    if (e->structure->near) {
        e->structure->near(stratum, mote, &e->found);
    } else {
        struct volume volume = volume_near(e, mote);
        e->structure->find(stratum, &volume, &e->found);
    }
}

static uint64_t side_of(int32_t min, int32_t max)
{
    return (uint64_t)((int64_t)max - min) + 1;
}

/* One look at both places, if that is less than two. */
static bool near_find_both(struct engine *e, const struct mote *a, const struct mote *b)
{
    if (!a->live || !b->live || a->layer != b->layer || e->structure->near) return false;
    struct volume both = volume_near(e, a), other = volume_near(e, b);
    long double alone = (long double)side_of(both.min.x, both.max.x) * (long double)side_of(both.min.y, both.max.y);
    if (other.min.x < both.min.x) both.min.x = other.min.x;
    if (other.min.y < both.min.y) both.min.y = other.min.y;
    if (other.min.z < both.min.z) both.min.z = other.min.z;
    if (other.max.x > both.max.x) both.max.x = other.max.x;
    if (other.max.y > both.max.y) both.max.y = other.max.y;
    if (other.max.z > both.max.z) both.max.z = other.max.z;
    long double together = (long double)side_of(both.min.x, both.max.x) * (long double)side_of(both.min.y, both.max.y);
    if (together > 2 * alone) return false;
    if (e->space && side_of(both.min.z, both.max.z) > 2 * side_of(other.min.z, other.max.z)) return false;
    e->found.count = 0;
    e->structure->find(stratum_find(e, a->layer), &both, &e->found);
    return true;
}

/* Whether distances alone decide. */
static bool change_plain(const struct engine *e, const struct mote *before, const struct mote *after)
{
    bool one_layer = !before->live || !after->live || before->layer == after->layer;
    return e->plain && one_layer && !e->extended;
}

void change_collect(struct engine *e, uint32_t handle, const struct mote *before, const struct mote *after)
{
    bool plain = change_plain(e, before, after);
    if (near_find_both(e, before, after)) {
        found_judge(e, handle, before, after, PASS_LOST | PASS_GAINED, plain);
        return;
    }
    near_find(e, before);
    found_judge(e, handle, before, after, PASS_LOST, plain);
    near_find(e, after);
    found_judge(e, handle, before, after, PASS_GAINED, plain);
}

static size_t spans_add(struct found lists[4], uint32_t handle, unsigned shift, struct aoi_span *spans)
{
    size_t count = 0;
    for (unsigned sides = 1; sides < 4; sides++) {
        if (!lists[sides].count) continue;
        spans[count++] = (struct aoi_span){.subject = handle,
                                           .change = sides << shift,
                                           .others = lists[sides].handles,
                                           .count = (uint32_t)lists[sides].count};
        lists[sides].count = 0;
    }
    return count;
}

void change_tell(struct engine *e, uint32_t handle, aoi_sink *sink, void *context)
{
    struct aoi_span spans[6];
    size_t count = spans_add(e->report.lost, handle, 2, spans);
    count += spans_add(e->report.gained, handle, 0, spans + count);
    if (sink && count) sink(context, spans, count);
}

/* ---- the tick ---- */

/* Who moves: those who are staged, each once, though the list may hold them twice or no more. Those who move without
 * any view changing are taken along, but not judged. */
static void movers_take(struct engine *e)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < e->mover_count; i++) {
        struct mote *mote = &e->motes[e->movers[i]];
        if (!mote->staged) continue;
        mote->staged = false;
        mote->moving = !views_stay(e, mote->at, e->next[e->movers[i]]);
        e->movers[count++] = e->movers[i];
    }
    e->mover_count = count;
}

/* Squared, where the world is so small that it fits. */
static inline int64_t distance_of(const struct engine *e, struct position a, struct position b)
{
    int64_t dx = (int64_t)a.x - b.x, dy = (int64_t)a.y - b.y, dz = e->space ? (int64_t)a.z - b.z : 0;
    return dx * dx + dy * dy + dz * dz;
}

/* One mover with all that were found; a pair of two movers is judged from the one with the lower handle. Before the
 * middle of the tick motes are where they were, and next[] says where they will be; from then on the reverse. */
static void mover_judge(struct engine *e, uint32_t handle, enum pass pass)
{
    struct mote other = e->motes[handle], b_other;
    other.at = e->next[handle];
    struct pair p = {.a = handle, .a_before = &e->motes[handle], .a_after = &other};
    if (pass == PASS_GAINED) {
        p.a_before = &other;
        p.a_after = &e->motes[handle];
    }
    for (size_t i = 0; i < e->found.count; i++) {
        p.b = e->found.handles[i];
        const struct mote *mote = &e->motes[p.b];
        if (p.b == handle || (mote->moving && p.b < handle)) continue;
        p.b_before = p.b_after = mote;
        if (mote->moving) {
            b_other = *mote;
            b_other.at = e->next[p.b];
            if (pass == PASS_LOST) p.b_after = &b_other;
            if (pass == PASS_GAINED) p.b_before = &b_other;
        }
        pair_judge(e, &p);
        pair_note(e, &p, pass);
    }
}

/* The same where distances alone decide. Motes are here, next[] says there: what is lost is seen here and not there
 * while motes are where they were, and so is what is gained once they are where they will be. */
static void mover_judge_plainly(struct engine *e, uint32_t handle, enum pass pass)
{
    struct found *lists = pass == PASS_LOST ? e->report.lost : e->report.gained;
    const struct mote *mote = &e->motes[handle];
    struct position here = mote->at, there = e->next[handle];
    int64_t limit = limit_of(mote);
    for (size_t i = 0; i < e->found.count; i++) {
        uint32_t other = e->found.handles[i];
        const struct mote *found = &e->motes[other];
        int64_t other_limit = limit_of(found), distance = distance_of(e, here, found->at);
        unsigned seen = (distance <= limit ? SIDE_OUT : 0u) | (distance <= other_limit ? SIDE_IN : 0u);
        if (!seen || other == handle || (found->moving && other < handle)) continue;
        distance = distance_of(e, there, found->moving ? e->next[other] : found->at);
        unsigned kept = (distance <= limit ? SIDE_OUT : 0u) | (distance <= other_limit ? SIDE_IN : 0u);
        if (seen & ~kept) found_add(&lists[seen & ~kept], other);
    }
}

static void movers_judge(struct engine *e, enum pass pass, aoi_sink *sink, void *context)
{
    if (!sink && !e->hysteresis) return;
    bool plain = e->plain && !e->extended;
    for (uint32_t i = 0; i < e->mover_count; i++) {
        uint32_t handle = e->movers[i];
        if (!e->motes[handle].moving) continue;
        near_find(e, &e->motes[handle]);
        if (plain) {
            mover_judge_plainly(e, handle, pass);
        } else {
            mover_judge(e, handle, pass);
        }
        change_tell(e, handle, sink, context);
    }
}

static void movers_commit(struct engine *e)
{
    for (uint32_t i = 0; i < e->mover_count; i++) {
        uint32_t handle = e->movers[i];
        struct mote *mote = &e->motes[handle];
        struct position from = mote->at;
        /* A tick that is half told can't be undone. */
        CHECK(e->structure->move(stratum_find(e, mote->layer), handle, e->next[handle]));
        mote->at = e->next[handle];
        e->next[handle] = from;
    }
}

void engine_tick(struct aoi *aoi, aoi_sink *sink, void *context)
{
    struct engine *e = engine_of(aoi);
    movers_take(e);
    movers_judge(e, PASS_LOST, sink, context);
    movers_commit(e);
    movers_judge(e, PASS_GAINED, sink, context);
    for (uint32_t i = 0; i < e->mover_count; i++) e->motes[e->movers[i]].moving = false;
    e->mover_count = 0;
}
