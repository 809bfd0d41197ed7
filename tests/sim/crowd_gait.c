#include "tests/sim/crowd.h"

#include "tests/sim/sim.h"

#include <math.h>

#define TURN (2 * 3.14159265358979323846)

static int32_t world_side(const struct sim *sim)
{
    return INT32_C(1) << sim->plan.world.resolution_bits;
}

static int32_t inside(const struct sim *sim, double v)
{
    double last = world_side(sim) - 1;
    return (int32_t)(v < 0 ? 0 : v > last ? last : v);
}

struct position position_random(struct sim *sim)
{
    struct dice *d = &sim->crowd.dice;
    int32_t spread = sim->plan.z_spread;
    struct position p = {(int32_t)dice_below(d, (uint64_t)world_side(sim)),
                         (int32_t)dice_below(d, (uint64_t)world_side(sim)), (int32_t)dice_between(d, -spread, spread)};
    return p;
}

enum gait gait_draw(struct sim *sim)
{
    uint64_t sum = 0;
    for (int i = 0; i < GAITS; i++) sum += sim->plan.gait_weight[i];
    uint64_t at = dice_below(&sim->crowd.dice, sum);
    int gait = 0;
    while (at >= sim->plan.gait_weight[gait]) at -= sim->plan.gait_weight[gait++];
    return (enum gait)gait;
}

/* A corner of a leaf that is not on the world's edge, if the leaf has one. */
static struct position leaf_corner(struct sim *sim)
{
    struct square s = quadkey_square(&sim->plan.world, plan_leaf_at(&sim->plan, position_random(sim)));
    struct position corner = {s.x, s.y, 0};
    if (corner.x == 0) corner.x += (int32_t)s.side;
    if (corner.y == 0) corner.y += (int32_t)s.side;
    return corner;
}

void gait_begin(struct sim *sim, struct walker *w, enum gait gait)
{
    struct dice *d = &sim->crowd.dice;
    double cell = world_cell_side(&sim->plan.world);
    w->gait = gait;
    w->heading = TURN * dice_fraction(d);
    w->phase = TURN * dice_fraction(d);
    w->x = w->position.x;
    w->y = w->position.y;
    w->rest = 0;
    w->anchor = gait == GAIT_BORDER || gait == GAIT_CORNER ? leaf_corner(sim) : position_random(sim);
    if (gait == GAIT_HOTSPOT) w->anchor = sim->crowd.hotspot;
    if (gait == GAIT_CIRCLE)
        w->size = cell * (0.4 + 2 * dice_fraction(d));
    else
        w->size = sim->plan.world.handoff_hysteresis + sim->plan.step * (0.5 + dice_fraction(d));
}

static void walk(struct sim *sim, struct walker *w, double step)
{
    double side = world_side(sim);
    w->heading += (dice_fraction(&sim->crowd.dice) - 0.5) * 0.8;
    w->x += step * cos(w->heading);
    w->y += step * sin(w->heading);
    if (w->x < 0 || w->y < 0 || w->x >= side || w->y >= side) {
        w->x = inside(sim, w->x);
        w->y = inside(sim, w->y);
        w->heading += TURN / 2;
    }
}

static void walk_border(struct sim *sim, struct walker *w, double step)
{
    double side = world_side(sim);
    w->phase += 0.3 + 1.2 * dice_fraction(&sim->crowd.dice);
    double across = w->size * 1.5 * sin(w->phase);
    bool upright = w->heading < TURN / 2; /* along a vertical line */
    double *along = upright ? &w->y : &w->x;
    *along += w->phase < 40 ? step : -step;
    if (w->phase > 80) w->phase -= 80;
    if (*along < 0 || *along >= side) *along = (double)dice_below(&sim->crowd.dice, (uint64_t)side);
    if (upright)
        w->x = w->anchor.x + across;
    else
        w->y = w->anchor.y + across;
}

static void walk_corner(struct sim *sim, struct walker *w, double step)
{
    struct dice *d = &sim->crowd.dice;
    double reach = w->size + step;
    w->x = w->anchor.x + reach * (2 * dice_fraction(d) - 1);
    w->y = w->anchor.y + reach * (2 * dice_fraction(d) - 1);
}

static void walk_edge(struct sim *sim, struct walker *w, double step)
{
    walk(sim, w, step);
    if (w->phase < TURN / 4)
        w->x = 0;
    else if (w->phase < TURN / 2)
        w->x = world_side(sim) - 1;
    else if (w->phase < 3 * TURN / 4)
        w->y = 0;
    else
        w->y = world_side(sim) - 1;
}

static void walk_teleport(struct sim *sim, struct walker *w, double step)
{
    if (!dice_chance(&sim->crowd.dice, 0.05)) {
        walk(sim, w, step);
        return;
    }
    struct position p = position_random(sim);
    w->x = p.x;
    w->y = p.y;
}

struct position gait_next(struct sim *sim, struct walker *w)
{
    struct dice *d = &sim->crowd.dice;
    double step = sim->plan.step * (0.5 + dice_fraction(d));
    switch (w->gait) {
    case GAIT_WANDER: walk(sim, w, step); break;
    case GAIT_BORDER: walk_border(sim, w, step); break;
    case GAIT_CORNER: walk_corner(sim, w, step); break;
    case GAIT_CIRCLE:
        w->phase += step / w->size;
        w->x = w->anchor.x + w->size * cos(w->phase);
        w->y = w->anchor.y + w->size * sin(w->phase);
        break;
    case GAIT_TELEPORT: walk_teleport(sim, w, step); break;
    case GAIT_HOTSPOT:
        w->x += step * (2 * dice_fraction(d) - 1) + (w->anchor.x - w->x) * 0.1;
        w->y += step * (2 * dice_fraction(d) - 1) + (w->anchor.y - w->y) * 0.1;
        break;
    case GAIT_STOPGO:
        if (w->rest > 0)
            w->rest--;
        else if (dice_chance(d, 0.05))
            w->rest = 10 + (uint32_t)dice_below(d, 60);
        else
            walk(sim, w, step);
        break;
    case GAIT_EDGE: walk_edge(sim, w, step); break;
    case GAIT_STILL:
    case GAITS: break;
    }
    struct position p = {inside(sim, w->x), inside(sim, w->y), w->position.z};
    if (sim->plan.z_spread > 0 && w->gait != GAIT_STILL && dice_chance(d, 0.2))
        p.z = (int32_t)dice_between(d, -sim->plan.z_spread, sim->plan.z_spread);
    return p;
}
