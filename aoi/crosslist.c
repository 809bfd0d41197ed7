/* Crossed lists: everybody is in a list ordered by x and in one ordered by y.
 *
 * A look goes to where the view begins in both lists, follows the two side by side until one has passed the view's end,
 * and sifts the shorter stretch. So it costs what lies in the thinner of two strips across the world, whatever the
 * world's size; no cell size has to be chosen.
 *
 * When it wins: entities on lines (roads, rivers, side scrollers: everybody in one strip, few in the other), small
 * worlds, radii that nobody knew beforehand, and worlds so sparse that a strip holds hardly more than a circle.
 * When it loses: with the number of entities. A strip across the world holds as many as there are, times the view's
 * width over the world's: at 100,000 in 200 x 200 views that is 1,000 to find 9. `grid` and all trees are far ahead.
 * Source: the crossed lists of MMO engines (Kingsoft's, KBEngine's and BigWorld's range lists); skip list of Pugh (CACM
 * 1990), unrolled as in Shao, Reppy and Appel (1994), so that an insertion is O(log n) instead of a walk from an end.
 *
 * Rejected: trigger nodes at the ends of each view in both lists, which tell who comes and goes as they are passed by.
 * They tell of boxes, so that all in the box are measured anyway as soon as views are circles; they are four nodes more
 * an entity; and with sets of who is in the box, memory is that of all pairs. A strip needs none of it. Also a walk
 * node by node to an entity's new place: a far jump passes the whole world. */
#include "aoi/axis.h"
#include "common/check.h"

#include <stdlib.h>

struct crosslist {
    struct stratum base;
    struct axis x, y;
    struct axis_places x_places, y_places;
};

static struct crosslist *crosslist_of(const struct stratum *stratum)
{
    return (struct crosslist *)stratum;
}

static void crosslist_close(struct stratum *stratum)
{
    struct crosslist *c = crosslist_of(stratum);
    axis_close(&c->x);
    axis_close(&c->y);
    free(c->x_places.block);
    free(c->y_places.block);
}

static bool crosslist_add(struct stratum *stratum, uint32_t handle)
{
    struct crosslist *c = crosslist_of(stratum);
    struct position at = stratum->engine->motes[handle].at;
    if (!axis_add(&c->x, &c->x_places, handle, at.x, at.y)) return false;
    if (axis_add(&c->y, &c->y_places, handle, at.y, at.x)) return true;
    axis_remove(&c->x, &c->x_places, handle);
    return false;
}

static void crosslist_remove(struct stratum *stratum, uint32_t handle)
{
    struct crosslist *c = crosslist_of(stratum);
    axis_remove(&c->x, &c->x_places, handle);
    axis_remove(&c->y, &c->y_places, handle);
}

static bool crosslist_move(struct stratum *stratum, uint32_t handle, struct position to)
{
    struct crosslist *c = crosslist_of(stratum);
    struct position from = stratum->engine->motes[handle].at;
    if (!axis_move(&c->x, &c->x_places, handle, to.x, to.y)) return false;
    if (axis_move(&c->y, &c->y_places, handle, to.y, to.x)) return true;
    CHECK(axis_move(&c->x, &c->x_places, handle, from.x, from.y)); /* half a move has no other way back */
    return false;
}

/* Follows both lists a block at a time; whichever ends first is the thinner strip. */
static void crosslist_find(struct stratum *stratum, const struct volume *volume, struct found *found)
{
    const struct crosslist *c = crosslist_of(stratum);
    struct position low = volume->min, high = volume->max;
    uint32_t x_first = axis_seek(&c->x, low.x), y_first = axis_seek(&c->y, low.y), x = x_first, y = y_first;
    while (x != AXIS_NONE && y != AXIS_NONE && c->x.blocks[x].keys[0] <= high.x && c->y.blocks[y].keys[0] <= high.y) {
        x = axis_after(&c->x, x);
        y = axis_after(&c->y, y);
    }
    if (x == AXIS_NONE || c->x.blocks[x].keys[0] > high.x) {
        axis_find(&c->x, x_first, low.x, high.x, low.y, high.y, found);
    } else {
        axis_find(&c->y, y_first, low.y, high.y, low.x, high.x, found);
    }
}

static size_t crosslist_bytes(const struct stratum *stratum)
{
    const struct crosslist *c = crosslist_of(stratum);
    return axis_bytes(&c->x) + axis_bytes(&c->y) + (c->x_places.room + c->y_places.room) * sizeof(uint32_t);
}

static const struct structure crosslist = {
    .stratum_bytes = sizeof(struct crosslist),
    .close = crosslist_close,
    .add = crosslist_add,
    .remove = crosslist_remove,
    .move = crosslist_move,
    .find = crosslist_find,
    .bytes = crosslist_bytes,
};

const struct aoi_index index_crosslist = {
    .info = {.name = "crosslist",
             .about = "lists ordered by x and by y: for lines and small or sparse worlds, without a cell size",
             .abilities = AOI_CAN_BLOCK | AOI_CAN_RADIUS | AOI_CAN_PLANE},
    .create = engine_create,
    .ops = &engine_ops,
    .structure = &crosslist,
};
