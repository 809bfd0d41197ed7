/* Everybody in one list, everybody compared with everybody.
 *
 * When it wins: below some fifty entities a layer nothing is faster, because a look is one sweep over adjacent memory
 * and a change costs nothing. It is also the oracle: so little is in it that it is right, and every other index is
 * compared with it.
 * When it loses: everywhere else. A move costs as much as there are entities, a tick the square of it. No operation of
 * another index may come to this.
 * Source: the definition. */
#include "aoi/engine.h"

#include <stdlib.h>

struct brute {
    struct stratum base;
    uint32_t *members;
    uint32_t room;
    uint32_t *place; /* by handle: where in members */
    uint32_t place_room;
};

static bool resized(uint32_t **array, uint32_t *room, uint32_t need)
{
    if (need <= *room) return true;
    uint32_t next = need + need / 2 + 16;
    uint32_t *grown = realloc(*array, next * sizeof **array);
    if (!grown) return false;
    *array = grown;
    *room = next;
    return true;
}

static void brute_close(struct stratum *stratum)
{
    struct brute *b = (struct brute *)stratum;
    free(b->members);
    free(b->place);
}

static bool brute_add(struct stratum *stratum, uint32_t handle)
{
    struct brute *b = (struct brute *)stratum;
    if (!resized(&b->members, &b->room, stratum->population + 1)) return false;
    if (!resized(&b->place, &b->place_room, handle + 1)) return false;
    b->members[stratum->population] = handle;
    b->place[handle] = stratum->population;
    return true;
}

static void brute_remove(struct stratum *stratum, uint32_t handle)
{
    struct brute *b = (struct brute *)stratum;
    uint32_t last = b->members[stratum->population - 1], at = b->place[handle];
    b->members[at] = last;
    b->place[last] = at;
}

static bool brute_move(struct stratum *stratum, uint32_t handle, struct position to)
{
    (void)stratum, (void)handle, (void)to;
    return true;
}

static void brute_find(struct stratum *stratum, const struct volume *volume, struct found *found)
{
    (void)volume;
    found_add_many(found, ((struct brute *)stratum)->members, stratum->population);
}

static size_t brute_bytes(const struct stratum *stratum)
{
    const struct brute *b = (const struct brute *)stratum;
    return b->room * sizeof *b->members + b->place_room * sizeof *b->place;
}

static const struct structure brute = {
    .stratum_bytes = sizeof(struct brute),
    .close = brute_close,
    .add = brute_add,
    .remove = brute_remove,
    .move = brute_move,
    .find = brute_find,
    .bytes = brute_bytes,
};

const struct aoi_index index_brute = {
    .info = {.name = "brute",
             .about = "everybody with everybody: the oracle, and the fastest below some fifty entities",
             .abilities = AOI_CAN_BLOCK | AOI_CAN_RADIUS | AOI_CAN_PLANE | AOI_CAN_SPACE | AOI_CAN_EXTENT},
    .create = engine_create,
    .ops = &engine_ops,
    .structure = &brute,
};
