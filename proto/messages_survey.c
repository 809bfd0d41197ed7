/* What maps for people are made of: SURVEY, SURVEY_RESULT. */
#include "proto/survey.h"

#include "proto/codec.h"

void survey_encode(struct writer *w, const struct survey *m)
{
    head_write(w, MESSAGE_SURVEY, 8);
    writer_int(w, m->min_x);
    writer_int(w, m->min_y);
    writer_int(w, m->max_x);
    writer_int(w, m->max_y);
    writer_uint(w, m->columns);
    writer_uint(w, m->rows);
    writer_uint(w, m->most);
    writer_uint(w, m->after);
}

enum terrane_error survey_decode(struct cursor c, struct survey *m)
{
    head_read(&c, MESSAGE_SURVEY, 8);
    m->min_x = (int32_t)cursor_int(&c, 0, POSITION_END - 1);
    m->min_y = (int32_t)cursor_int(&c, 0, POSITION_END - 1);
    m->max_x = (int32_t)cursor_int(&c, m->min_x, POSITION_END - 1);
    m->max_y = (int32_t)cursor_int(&c, m->min_y, POSITION_END - 1);
    m->columns = (uint32_t)cursor_uint(&c, SURVEY_SIDE_MAX);
    m->rows = (uint32_t)cursor_uint(&c, SURVEY_SIDE_MAX);
    if ((m->columns == 0) != (m->rows == 0)) cursor_fail(&c, TERRANE_ERR_MESSAGE_RANGE);
    m->most = (uint32_t)cursor_uint(&c, SURVEY_ENTITIES_MAX);
    m->after = number_read(&c);
    return cursor_end(&c);
}

void survey_result_begin(struct writer *w, const struct survey_result *m)
{
    head_write(w, MESSAGE_SURVEY_RESULT, 9);
    writer_uint(w, m->tick);
    writer_uint(w, m->stride);
    writer_uint(w, m->total);
    writer_uint(w, m->columns);
    writer_uint(w, m->rows);
    writer_array(w, 2 * m->cell_count);
}

void survey_result_cell(struct writer *w, uint32_t last, struct survey_cell cell)
{
    writer_uint(w, cell.index - last - 1); /* modulo 2^32: the first one's gap is its index */
    writer_uint(w, cell.count);
}

void survey_result_entities(struct writer *w, uint32_t count)
{
    writer_array(w, 3 * count);
}

void survey_result_entity(struct writer *w, const struct survey_entity *entity)
{
    writer_uint(w, entity->id.v);
    writer_int(w, entity->x);
    writer_int(w, entity->y);
}

void survey_result_crossings(struct writer *w, uint64_t crossings, uint32_t count)
{
    writer_uint(w, crossings);
    writer_array(w, count);
}

void survey_result_crossing(struct writer *w, const struct survey_crossing *crossing)
{
    writer_array(w, 7);
    writer_uint(w, crossing->id.v);
    writer_uint(w, crossing->version);
    writer_uint(w, crossing->from.v);
    writer_uint(w, crossing->to.v);
    writer_uint(w, crossing->node.v);
    writer_int(w, crossing->x);
    writer_int(w, crossing->y);
}

static int32_t place_read(struct cursor *c)
{
    return (int32_t)cursor_int(c, 0, POSITION_END - 1);
}

/* `cell` is the one before; false: it does not lie within the grid. */
static bool cell_read(struct cursor *c, uint32_t cells, struct survey_cell *cell)
{
    uint64_t from = cell->index == UINT32_MAX ? 0 : (uint64_t)cell->index + 1, index = from + word_read(c);
    if (index >= cells) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    cell->index = (uint32_t)index;
    cell->count = word_read(c);
    if (cell->count == 0) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    return c->error == TERRANE_ERR_OK;
}

static void entity_read(struct cursor *c, struct survey_entity *entity)
{
    entity->id = id_read(c);
    entity->x = place_read(c);
    entity->y = place_read(c);
}

static void crossing_read(struct cursor *c, struct survey_crossing *crossing)
{
    (void)cursor_array(c, 7, 7);
    crossing->id = id_read(c);
    crossing->version = version_read(c);
    crossing->from = quadkey_read(c);
    crossing->to = quadkey_read(c);
    crossing->node = node_read(c);
    crossing->x = place_read(c);
    crossing->y = place_read(c);
}

/* The count of items of `fields` numbers each in a flat list. */
static uint32_t flat_read(struct cursor *c, uint32_t fields, uint32_t most)
{
    uint32_t numbers = cursor_array(c, 0, fields * most);
    if (numbers % fields != 0) cursor_fail(c, TERRANE_ERR_MESSAGE_RANGE);
    return numbers / fields;
}

static void cells_read(struct cursor *c, struct survey_result *m)
{
    struct survey_cell cell = {.index = UINT32_MAX};
    m->cell_count = flat_read(c, 2, SURVEY_SIDE_MAX * SURVEY_SIDE_MAX);
    m->cells = list_open(c);
    for (uint32_t i = 0; i < m->cell_count && cell_read(c, m->columns * m->rows, &cell); i++) continue;
    list_close(&m->cells, c);
}

enum terrane_error survey_result_decode(struct cursor c, struct survey_result *m)
{
    struct survey_entity entity;
    struct survey_crossing crossing;
    head_read(&c, MESSAGE_SURVEY_RESULT, 9);
    m->tick = number_read(&c);
    m->stride = word_read(&c);
    if (m->stride == 0) cursor_fail(&c, TERRANE_ERR_MESSAGE_RANGE);
    m->total = word_read(&c);
    m->columns = (uint32_t)cursor_uint(&c, SURVEY_SIDE_MAX);
    m->rows = (uint32_t)cursor_uint(&c, SURVEY_SIDE_MAX);
    cells_read(&c, m);
    m->entity_count = flat_read(&c, 3, SURVEY_ENTITIES_MAX);
    m->entities = list_open(&c);
    for (uint32_t i = 0; i < m->entity_count && c.error == TERRANE_ERR_OK; i++) entity_read(&c, &entity);
    list_close(&m->entities, &c);
    m->crossings = number_read(&c);
    m->crossing_count = cursor_array(&c, 0, SURVEY_CROSSINGS_MAX);
    m->crossing_list = list_open(&c);
    for (uint32_t i = 0; i < m->crossing_count && c.error == TERRANE_ERR_OK; i++) crossing_read(&c, &crossing);
    list_close(&m->crossing_list, &c);
    return cursor_end(&c);
}

bool survey_result_next_cell(struct survey_result *m, struct survey_cell *cell)
{
    return list_more(&m->cells) && cell_read(&m->cells, m->columns * m->rows, cell);
}

bool survey_result_next_entity(struct survey_result *m, struct survey_entity *entity)
{
    if (!list_more(&m->entities)) return false;
    entity_read(&m->entities, entity);
    return m->entities.error == TERRANE_ERR_OK;
}

bool survey_result_next_crossing(struct survey_result *m, struct survey_crossing *crossing)
{
    if (!list_more(&m->crossing_list)) return false;
    crossing_read(&m->crossing_list, crossing);
    return m->crossing_list.error == TERRANE_ERR_OK;
}
