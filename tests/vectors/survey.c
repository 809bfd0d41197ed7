/* The vectors of SURVEY and SURVEY_RESULT: built and read back. */
#include "proto/survey.h"
#include "common/check.h"
#include "tests/vectors/vectors.h"

static void whole_world(struct writer *w)
{
    survey_encode(w, &(struct survey){.max_x = 2097151, .max_y = 2097151, .columns = 128, .rows = 128, .after = 300});
}

static void a_street(struct writer *w)
{
    survey_encode(
        w, &(struct survey){.min_x = 1000, .min_y = 2000, .max_x = 5000, .max_y = 2500, .most = 4096, .after = 300});
}

static void counts(struct writer *w)
{
    struct survey_result m = {.tick = 1200, .stride = 1, .total = 45, .columns = 128, .rows = 128, .cell_count = 3};
    survey_result_begin(w, &m);
    survey_result_cell(w, UINT32_MAX, (struct survey_cell){2, 4});
    survey_result_cell(w, 2, (struct survey_cell){3, 40});
    survey_result_cell(w, 3, (struct survey_cell){16383, 1});
    survey_result_entities(w, 0);
    survey_result_crossings(w, 302, 1);
    struct survey_crossing crossing = {.id = {7}, .version = 1000, .from = {19}, .to = {17}, .node = {500}};
    crossing.x = 1048576;
    crossing.y = 1048600;
    survey_result_crossing(w, &crossing);
}

static void two_entities(struct writer *w)
{
    survey_result_begin(w, &(struct survey_result){.tick = 1201, .stride = 1, .total = 2});
    survey_result_entities(w, 2);
    survey_result_entity(w, &(struct survey_entity){{7}, 1000, 2010});
    survey_result_entity(w, &(struct survey_entity){{UINT64_MAX}, 1073741823, 0});
    survey_result_crossings(w, 302, 0);
}

const struct vector_case vector_cases_survey[] = {
    {"survey", "the whole world in 128 x 128 parts", VECTOR_MESSAGE, whole_world},
    {"survey", "who is in this street?", VECTOR_MESSAGE, a_street},
    {"survey_result", "three parts hold somebody, and one has gone", VECTOR_MESSAGE, counts},
    {"survey_result", "two entities", VECTOR_MESSAGE, two_entities},
    {0},
};

static void asked_fields(const struct survey *m, struct text *t)
{
    text_int(t, "min_x", m->min_x);
    text_int(t, "min_y", m->min_y);
    text_int(t, "max_x", m->max_x);
    text_int(t, "max_y", m->max_y);
    text_uint(t, "columns", m->columns);
    text_uint(t, "rows", m->rows);
    text_uint(t, "most", m->most);
    text_uint(t, "after", m->after);
}

static void cells_fields(struct survey_result *m, struct text *t)
{
    struct survey_cell cell = {.index = UINT32_MAX};
    uint32_t seen = 0, last = UINT32_MAX;
    text_open(t, "cells", '[');
    for (; survey_result_next_cell(m, &cell); seen++) {
        text_uint(t, NULL, cell.index - last - 1);
        text_uint(t, NULL, cell.count);
        last = cell.index;
    }
    text_close(t, ']');
    CHECK(seen == m->cell_count);
}

static void entities_fields(struct survey_result *m, struct text *t)
{
    struct survey_entity entity;
    uint32_t seen = 0;
    text_open(t, "entities", '[');
    for (; survey_result_next_entity(m, &entity); seen++) {
        text_uint(t, NULL, entity.id.v);
        text_int(t, NULL, entity.x);
        text_int(t, NULL, entity.y);
    }
    text_close(t, ']');
    CHECK(seen == m->entity_count);
}

static void crossings_fields(struct survey_result *m, struct text *t)
{
    struct survey_crossing crossing;
    uint32_t seen = 0;
    text_uint(t, "crossings", m->crossings);
    text_open(t, "list", '[');
    for (; survey_result_next_crossing(m, &crossing); seen++) {
        text_open(t, NULL, '{');
        text_uint(t, "id", crossing.id.v);
        text_uint(t, "version", crossing.version);
        text_quadkey(t, "from", crossing.from);
        text_quadkey(t, "to", crossing.to);
        text_uint(t, "node", crossing.node.v);
        text_int(t, "x", crossing.x);
        text_int(t, "y", crossing.y);
        text_close(t, '}');
    }
    text_close(t, ']');
    CHECK(seen == m->crossing_count);
}

bool survey_fields(enum message_kind kind, struct cursor c, struct text *t, enum terrane_error *error)
{
    struct survey asked;
    struct survey_result m;
    if (kind == MESSAGE_SURVEY) {
        *error = survey_decode(c, &asked);
        if (*error == TERRANE_ERR_OK) asked_fields(&asked, t);
        return true;
    }
    if (kind != MESSAGE_SURVEY_RESULT) return false;
    *error = survey_result_decode(c, &m);
    if (*error != TERRANE_ERR_OK) return true;
    text_uint(t, "tick", m.tick);
    text_uint(t, "stride", m.stride);
    text_uint(t, "total", m.total);
    text_uint(t, "columns", m.columns);
    text_uint(t, "rows", m.rows);
    cells_fields(&m, t);
    entities_fields(&m, t);
    crossings_fields(&m, t);
    return true;
}
