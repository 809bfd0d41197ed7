/* SURVEY: a walk over the entity table that counts what lies in a rectangle. The grid could find the same by its cells,
 * but a map for people mostly shows the whole world, and then the table's order is the cheapest there is. */
#include "cellserver/internal.h"

#include <stdlib.h>

#define LOOKS_MAX (1u << 17) /* about 2 ms */

void survey_open(struct survey_side *side)
{
    side->ring = calloc(SURVEY_CROSSINGS_MAX, sizeof *side->ring);
    side->counts = calloc(SURVEY_SIDE_MAX * SURVEY_SIDE_MAX, sizeof *side->counts);
    side->listed = calloc(SURVEY_ENTITIES_MAX, sizeof *side->listed);
    CHECK(side->ring != NULL && side->counts != NULL && side->listed != NULL);
}

void survey_close(struct survey_side *side)
{
    free(side->ring);
    free(side->counts);
    free(side->listed);
}

void survey_note_crossing(struct cellserver *cs, uint32_t entity, struct quadkey to, struct node_id node)
{
    const struct entity *e = &cs->entities[entity];
    struct survey_side *side = &cs->survey;
    side->ring[side->crossings++ % SURVEY_CROSSINGS_MAX] = (struct survey_crossing){.id = e->id,
                                                                                    .version = e->version,
                                                                                    .from = cs->leaves[e->leaf].key,
                                                                                    .to = to,
                                                                                    .node = node,
                                                                                    .x = e->position.x,
                                                                                    .y = e->position.y};
}

/* Which of `parts` equal parts of [min, max] holds v. */
static uint32_t part_of(int32_t v, int32_t min, int32_t max, uint32_t parts)
{
    return (uint32_t)((uint64_t)(v - min) * parts / ((uint64_t)(max - min) + 1));
}

/* Fills counts and listed; total may exceed what is listed, then nothing of the list is of use. */
static void look(struct cellserver *cs, const struct survey *m, struct survey_result *r)
{
    struct survey_side *side = &cs->survey;
    r->stride = cs->entity_count / LOOKS_MAX + 1;
    for (uint32_t at = 0; at < cs->entity_count; at += r->stride) {
        const struct entity *e = &cs->entities[at];
        struct position p = e->position;
        if (e->status != ENTITY_OWNED || p.x < m->min_x || p.x > m->max_x || p.y < m->min_y || p.y > m->max_y) continue;
        if (r->total < m->most) side->listed[r->total] = (struct survey_entity){.id = e->id, .x = p.x, .y = p.y};
        r->total++;
        if (m->columns == 0) continue;
        uint32_t cell =
            part_of(p.y, m->min_y, m->max_y, m->rows) * m->columns + part_of(p.x, m->min_x, m->max_x, m->columns);
        if (side->counts[cell]++ == 0) r->cell_count++;
    }
}

static void write_cells(struct survey_side *side, const struct survey *m, struct writer *w)
{
    uint32_t last = UINT32_MAX;
    for (uint32_t cell = 0; cell < m->columns * m->rows; cell++) {
        if (side->counts[cell] == 0) continue;
        survey_result_cell(w, last, (struct survey_cell){.index = cell, .count = side->counts[cell]});
        side->counts[cell] = 0;
        last = cell;
    }
}

/* What came behind `after`, as far as it is remembered. A number from another incarnation may lie ahead: then all. */
static void write_crossings(const struct survey_side *side, uint64_t after, struct writer *w)
{
    uint64_t kept = side->crossings < SURVEY_CROSSINGS_MAX ? side->crossings : SURVEY_CROSSINGS_MAX;
    uint64_t fresh = after <= side->crossings ? side->crossings - after : kept;
    if (fresh > kept) fresh = kept;
    survey_result_crossings(w, side->crossings, (uint32_t)fresh);
    for (uint64_t i = side->crossings - fresh; i < side->crossings; i++)
        survey_result_crossing(w, &side->ring[i % SURVEY_CROSSINGS_MAX]);
}

void survey_answer(struct cellserver *cs, const struct survey *m, struct writer *w)
{
    struct survey_side *side = &cs->survey;
    struct survey_result r = {.tick = cs->tick, .columns = m->columns, .rows = m->rows};
    look(cs, m, &r);
    survey_result_begin(w, &r);
    write_cells(side, m, w);
    uint32_t listed = r.total <= m->most ? r.total : 0;
    survey_result_entities(w, listed);
    for (uint32_t i = 0; i < listed; i++) survey_result_entity(w, &side->listed[i]);
    write_crossings(side, m->after, w);
}
