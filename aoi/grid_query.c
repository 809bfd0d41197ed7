/* Queries: all of a circle, rectangle, block or view; and how many would see something at a place. */
#include "aoi/grid.h"

struct found {
    uint32_t *out;
    size_t room, count;
};

static inline void found_add(struct found *found, uint32_t handle)
{
    if (found->count < found->room) found->out[found->count] = handle;
    found->count++;
}

size_t aoi_query_circle(struct aoi *aoi, struct position centre, uint32_t radius, int32_t layer, uint32_t *out,
                        size_t room)
{
    struct found found = {.out = out, .room = room};
    struct walk walk;
    uint32_t cells;
    walk_start(&walk, aoi, layer, box_around(aoi, centre.x, centre.y, radius));
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (; cells--; cell++) {
            const uint32_t *handles = cell_handles(aoi, cell);
            for (uint32_t i = 0; i < cell->count; i++) {
                const struct body *body = &aoi->bodies[handles[i]];
                if (within(gap(body->x, centre.x), gap(body->y, centre.y), radius)) found_add(&found, handles[i]);
            }
        }
    }
    return found.count;
}

size_t aoi_query_rectangle(struct aoi *aoi, int32_t min_x, int32_t min_y, int32_t max_x, int32_t max_y, int32_t layer,
                           uint32_t *out, size_t room)
{
    struct found found = {.out = out, .room = room};
    struct walk walk;
    uint32_t cells;
    if (min_x > max_x || min_y > max_y) return 0;
    walk_start(&walk, aoi, layer, box_of(aoi, min_x, min_y, max_x, max_y));
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (; cells--; cell++) {
            const uint32_t *handles = cell_handles(aoi, cell);
            for (uint32_t i = 0; i < cell->count; i++) {
                const struct body *body = &aoi->bodies[handles[i]];
                if (body->x < min_x || body->x > max_x || body->y < min_y || body->y > max_y) continue;
                found_add(&found, handles[i]);
            }
        }
    }
    return found.count;
}

size_t aoi_query_block(struct aoi *aoi, struct position centre, int32_t layer, uint32_t *out, size_t room)
{
    struct found found = {.out = out, .room = room};
    struct walk walk;
    uint32_t cells;
    if (!position_inside(aoi, centre.x, centre.y)) return 0;
    walk_start(&walk, aoi, layer, box_block(aoi, cell_x(aoi, centre.x), cell_y(aoi, centre.y)));
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (; cells--; cell++) {
            const uint32_t *handles = cell_handles(aoi, cell);
            for (uint32_t i = 0; i < cell->count; i++) found_add(&found, handles[i]);
        }
    }
    return found.count;
}

/* The box of the observer's own view alone. */
static struct box view_box(const struct aoi *aoi, const struct side *side)
{
    if (aoi->options.mode == AOI_BLOCK) return box_block(aoi, cell_x(aoi, side->x), cell_y(aoi, side->y));
    if (!side->radius) return (struct box){.empty = true};
    return box_around(aoi, side->x, side->y, view_limit(aoi, side->radius));
}

size_t aoi_view(struct aoi *aoi, uint32_t observer, uint32_t *out, size_t room)
{
    if (!live(aoi, observer)) return 0;
    struct found found = {.out = out, .room = room};
    struct side side = side_of(aoi, observer);
    struct walk walk;
    uint32_t cells;
    walk_start(&walk, aoi, side.layer, view_box(aoi, &side));
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (; cells--; cell++) {
            const uint32_t *handles = cell_handles(aoi, cell);
            for (uint32_t i = 0; i < cell->count; i++) {
                if (aoi_sees(aoi, observer, handles[i])) found_add(&found, handles[i]);
            }
        }
    }
    return found.count;
}

size_t aoi_fanout(struct aoi *aoi, const struct aoi_place *place)
{
    struct position at = place->position;
    if (!position_inside(aoi, at.x, at.y)) return 0;
    bool block = aoi->options.mode == AOI_BLOCK;
    struct side side = {.x = at.x, .y = at.y, .there = true};
    struct walk walk;
    uint32_t cells;
    size_t count = 0;
    walk_start(&walk, aoi, place->layer, side_box(aoi, &side));
    for (const struct cell *cell; (cell = walk_next(&walk, &cells));) {
        for (; cells--; cell++) {
            const uint32_t *handles = cell_handles(aoi, cell);
            for (uint32_t i = 0; i < cell->count; i++) {
                const struct body *body = &aoi->bodies[handles[i]];
                if (!z_within(aoi, z_of(aoi, handles[i]), at.z)) continue;
                bool sees = body->radius && within(gap(body->x, at.x), gap(body->y, at.y), body->radius);
                count += block || sees;
            }
        }
    }
    return count;
}
