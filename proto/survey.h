/* SURVEY: how many entities are where, some of them by id, and who has just changed hands; for maps that people look
 * at. One question and one answer on the query lane; what it costs the server is bounded whatever the world holds.
 *
 * Only entities that the server owns count. The rectangle is cut into columns x rows equal parts; an entity at x
 * belongs to column (x - min_x) * columns / (max_x - min_x + 1), rows likewise from min_y.
 * Memory: a decoded answer's lists point into the message. */
#ifndef TERRANE_PROTO_SURVEY_H
#define TERRANE_PROTO_SURVEY_H

#include "proto/messages.h"

#define SURVEY_SIDE_MAX      256u  /* columns and rows at most: 65,536 counts fit a packet */
#define SURVEY_ENTITIES_MAX  8192u /* 21 bytes each at most */
#define SURVEY_CROSSINGS_MAX 256u  /* what a server remembers */

/* msgpack: [54, min_x, min_y, max_x, max_y, columns, rows, most, after] */
struct survey {
    int32_t min_x, min_y, max_x, max_y; /* closed; 0 <= min <= max < POSITION_END */
    uint32_t columns, rows;             /* 1..SURVEY_SIDE_MAX, or both 0: no counts wanted */
    uint32_t most;                      /* entities are listed if there are no more than these in the rectangle */
    uint64_t after;                     /* crossings behind that one (survey_result.crossings of the last answer) */
};

/* msgpack: [55, tick, stride, total, columns, rows, [gap, count, ...], [id, x, y, ...], crossings, [crossing...]] */
struct survey_result {
    uint64_t tick;
    uint32_t stride; /* 1: every entity was looked at; n: each n-th place of the table, so counts are samples */
    uint32_t total;  /* in the rectangle, of those looked at */
    uint32_t columns, rows;
    uint32_t cell_count, entity_count, crossing_count;
    struct cursor cells, entities;
    uint64_t crossings; /* hand-offs from this server so far, those between its own leaves included */
    struct cursor crossing_list;
};
struct survey_cell {
    uint32_t index; /* row * columns + column; ascending */
    uint32_t count; /* not 0 */
};
struct survey_entity {
    struct entity_id id;
    int32_t x, y;
};
/* An entity that has changed its leaf. msgpack: [id, version, from, to, node, x, y] */
struct survey_crossing {
    struct entity_id id;
    uint64_t version; /* under which it was given on */
    struct quadkey from, to;
    struct node_id node; /* who has it now */
    int32_t x, y;        /* where the former owner had it last */
};

void survey_encode(struct writer *w, const struct survey *m);
enum terrane_error survey_decode(struct cursor c, struct survey *m) TERRANE_MUST_CHECK;

/* In this order: begin, cell_count cells, entities(count) and its items, crossings(total, count) and its items. */
void survey_result_begin(struct writer *w, const struct survey_result *m);
/* The first cell: last is UINT32_MAX. */
void survey_result_cell(struct writer *w, uint32_t last, struct survey_cell cell);
void survey_result_entities(struct writer *w, uint32_t count);
void survey_result_entity(struct writer *w, const struct survey_entity *entity);
void survey_result_crossings(struct writer *w, uint64_t crossings, uint32_t count);
void survey_result_crossing(struct writer *w, const struct survey_crossing *crossing);
enum terrane_error survey_result_decode(struct cursor c, struct survey_result *m) TERRANE_MUST_CHECK;
/* cell: the last one, or one with index UINT32_MAX at first. */
bool survey_result_next_cell(struct survey_result *m, struct survey_cell *cell);
bool survey_result_next_entity(struct survey_result *m, struct survey_entity *entity);
bool survey_result_next_crossing(struct survey_result *m, struct survey_crossing *crossing);

#endif
