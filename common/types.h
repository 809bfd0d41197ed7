/* The domain's words as types: identities, positions, the world's constants.
 *
 * What it is not: no behaviour lives here but trivial comparisons; geometry is in geometry.h.
 * Everything here is plain data; whoever holds a struct owns it. */
#ifndef TERRANE_COMMON_TYPES_H
#define TERRANE_COMMON_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An entity, for ever and everywhere in one world. 0 is "none". */
struct entity_id {
    uint64_t v;
};

/* One incarnation of one process (server, coordinator, gateway session). A restart is a new node. 0 is "none". */
struct node_id {
    uint64_t v;
};

/* A region: the path from the root, two bits a digit behind a leading 1. 1 is the root, 0 is "none".
 * Digits: 0 SW, 1 SE, 2 NW, 3 NE. As text: the digits, the root is the empty string. */
struct quadkey {
    uint64_t v;
};

/* A place in the world, in position units (world.side / 2^resolution_bits). x and y lie in [0, 2^resolution_bits);
 * z is signed and free. */
struct position {
    int32_t x, y, z;
};

/* What to do with a position outside the world at the API's edge. */
enum world_edge { WORLD_EDGE_REFUSE, WORLD_EDGE_CLAMP };

/* How an observer's view is defined (DESIGN "AOI semantics"). */
enum view_mode { VIEW_RADIUS, VIEW_BLOCK };

/* The constants of a world. The coordinator owns them; every other process learns them in WELCOME. */
struct world {
    double origin_x, origin_y; /* south-west corner, world units (m) */
    double cell_size;          /* side of a cell, world units */
    uint32_t depth;            /* the side has 2^depth cells; 1..20 */
    uint32_t resolution_bits;  /* positions are [0, 2^resolution_bits); depth..30 */
    enum view_mode view_mode;
    enum world_edge edge;
    uint32_t radius_max;         /* largest view radius, position units */
    uint32_t hysteresis;         /* seen at <= r, lost at > r + hysteresis; position units */
    uint32_t z_range;            /* visible if |dz| <= z_range; position units; UINT32_MAX: no limit */
    uint32_t handoff_hysteresis; /* how far past a border an entity must be before it changes its leaf */
    uint32_t tick_hz;            /* 10..60 */
};

static inline bool entity_id_equal(struct entity_id a, struct entity_id b)
{
    return a.v == b.v;
}
static inline bool node_id_equal(struct node_id a, struct node_id b)
{
    return a.v == b.v;
}
static inline bool quadkey_equal(struct quadkey a, struct quadkey b)
{
    return a.v == b.v;
}

#endif
