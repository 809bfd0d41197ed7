/* Who is in view of whom, from DESIGN's words alone: loops and 64-bit arithmetic, no grid. */
#include "tests/sim/checker.h"
#include "tests/sim/sim.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static int64_t size_of(int64_t v)
{
    return v < 0 ? -v : v;
}

static int32_t cell_of(const struct plan *plan, int32_t v)
{
    return v >> (plan->world.resolution_bits - plan->world.depth);
}

bool view_within(const struct plan *plan, struct position a, struct position b, uint64_t radius)
{
    (void)plan;
    int64_t dx = (int64_t)a.x - b.x, dy = (int64_t)a.y - b.y;
    return (uint64_t)(dx * dx + dy * dy) <= radius * radius;
}

static bool z_in_range(const struct plan *plan, int32_t a, int32_t b)
{
    return plan->world.z_range == UINT32_MAX || size_of((int64_t)a - b) <= plan->world.z_range;
}

bool view_holds(const struct plan *plan, struct position o, uint32_t radius, struct position s, uint32_t extra)
{
    if (!z_in_range(plan, o.z, s.z)) return false;
    if (plan->world.view_mode == VIEW_BLOCK)
        return size_of(cell_of(plan, o.x) - cell_of(plan, s.x)) <= 1 &&
               size_of(cell_of(plan, o.y) - cell_of(plan, s.y)) <= 1;
    return radius > 0 && view_within(plan, o, s, (uint64_t)radius + extra);
}

bool view_possible(const struct plan *plan, const struct walker *o, const struct walker *s, uint64_t from_us)
{
    if (o->layer != s->layer && o->left_us == 0 && s->left_us == 0 && o->presence == PRESENT &&
        s->presence == PRESENT && o->entered_us < from_us && s->entered_us < from_us)
        return false;
    uint64_t o_from = walker_history_from(o, from_us), s_from = walker_history_from(s, from_us);
    /* Radius and position are registers of their own: a new radius may be known before an older position is. */
    uint32_t radius = 0;
    for (uint64_t i = o_from; i < o->history_end; i++)
        if (walker_history(o, i)->radius > radius) radius = walker_history(o, i)->radius;
    for (uint64_t i = o->history_end; i-- > o_from;) {
        struct position a = walker_history(o, i)->position;
        for (uint64_t j = s->history_end; j-- > s_from;)
            if (view_holds(plan, a, radius, walker_history(s, j)->position, plan->world.hysteresis)) return true;
    }
    return false;
}

void span_of(const struct sim *sim, const struct walker *w, uint64_t from_us, struct span *out)
{
    (void)sim;
    *out = (struct span){.layer = w->layer};
    if (w->history_end == 0) {
        out->gone = true;
        return;
    }
    uint64_t from = walker_history_from(w, from_us);
    const struct sample *first = walker_history(w, from);
    struct position p = first->position;
    out->min_x = out->max_x = p.x;
    out->min_y = out->max_y = p.y;
    out->min_z = out->max_z = p.z;
    out->radius_min = out->radius_max = first->radius;
    for (uint64_t i = from + 1; i < w->history_end; i++) {
        const struct sample *s = walker_history(w, i);
        p = s->position;
        if (p.x < out->min_x) out->min_x = p.x;
        if (p.x > out->max_x) out->max_x = p.x;
        if (p.y < out->min_y) out->min_y = p.y;
        if (p.y > out->max_y) out->max_y = p.y;
        if (p.z < out->min_z) out->min_z = p.z;
        if (p.z > out->max_z) out->max_z = p.z;
        if (s->radius < out->radius_min) out->radius_min = s->radius;
        if (s->radius > out->radius_max) out->radius_max = s->radius;
    }
    out->sure = w->presence == PRESENT && w->entered_us <= from_us && first->at_us <= from_us;
    out->gone = w->presence == ABSENT && w->left_us <= from_us;
}

/* Largest and least distance in one coordinate between two stretches. */
static int64_t far_apart(int32_t a_min, int32_t a_max, int32_t b_min, int32_t b_max)
{
    return larger(size_of((int64_t)a_max - b_min), size_of((int64_t)b_max - a_min));
}

static int64_t near_apart(int32_t a_min, int32_t a_max, int32_t b_min, int32_t b_max)
{
    return larger(0, larger((int64_t)b_min - a_max, (int64_t)a_min - b_max));
}

bool view_always(const struct plan *plan, const struct span *o, const struct span *s)
{
    if (!o->sure || !s->sure || o->layer != s->layer) return false;
    if (plan->world.z_range != UINT32_MAX && far_apart(o->min_z, o->max_z, s->min_z, s->max_z) > plan->world.z_range)
        return false;
    if (plan->world.view_mode == VIEW_BLOCK)
        return far_apart(cell_of(plan, o->min_x), cell_of(plan, o->max_x), cell_of(plan, s->min_x),
                         cell_of(plan, s->max_x)) <= 1 &&
               far_apart(cell_of(plan, o->min_y), cell_of(plan, o->max_y), cell_of(plan, s->min_y),
                         cell_of(plan, s->max_y)) <= 1;
    int64_t dx = far_apart(o->min_x, o->max_x, s->min_x, s->max_x);
    int64_t dy = far_apart(o->min_y, o->max_y, s->min_y, s->max_y);
    return o->radius_min > 0 && dx * dx + dy * dy <= (int64_t)o->radius_min * o->radius_min;
}

bool view_never(const struct plan *plan, const struct span *o, const struct span *s)
{
    if (o->gone || s->gone) return true;
    if (o->sure && s->sure && o->layer != s->layer) return true;
    if (plan->world.z_range != UINT32_MAX && near_apart(o->min_z, o->max_z, s->min_z, s->max_z) > plan->world.z_range)
        return true;
    if (plan->world.view_mode == VIEW_BLOCK)
        return near_apart(cell_of(plan, o->min_x), cell_of(plan, o->max_x), cell_of(plan, s->min_x),
                          cell_of(plan, s->max_x)) > 1 ||
               near_apart(cell_of(plan, o->min_y), cell_of(plan, o->max_y), cell_of(plan, s->min_y),
                          cell_of(plan, s->max_y)) > 1;
    int64_t dx = near_apart(o->min_x, o->max_x, s->min_x, s->max_x);
    int64_t dy = near_apart(o->min_y, o->max_y, s->min_y, s->max_y);
    int64_t reach = (int64_t)o->radius_max + plan->world.hysteresis;
    return o->radius_max == 0 || dx * dx + dy * dy > reach * reach;
}

bool span_always_within(const struct span *s, struct position p, uint64_t radius, bool rectangle)
{
    if (!s->sure) return false;
    int64_t dx = far_apart(s->min_x, s->max_x, p.x, p.x), dy = far_apart(s->min_y, s->max_y, p.y, p.y);
    if (rectangle) return (uint64_t)dx <= radius && (uint64_t)dy <= radius;
    return (uint64_t)(dx * dx + dy * dy) <= radius * radius;
}

bool span_possibly_within(const struct walker *w, uint64_t from_us, struct position p, uint64_t radius, bool rectangle)
{
    uint64_t from = walker_history_from(w, from_us);
    for (uint64_t i = w->history_end; i-- > from;) {
        const struct sample *s = walker_history(w, i);
        int64_t dx = size_of((int64_t)s->position.x - p.x), dy = size_of((int64_t)s->position.y - p.y);
        if (rectangle ? (uint64_t)larger(dx, dy) <= radius : (uint64_t)(dx * dx + dy * dy) <= radius * radius)
            return true;
    }
    return false;
}
