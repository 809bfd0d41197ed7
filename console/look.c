#include "console/look.h"

#include "common/array.h"
#include "common/check.h"
#include "proto/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void look_reset(struct look *l, const struct survey *survey)
{
    for (uint32_t i = 0; i < l->share_count; i++) l->shares[i].asked_us = l->shares[i].heard_us = 0;
    l->survey = *survey;
    l->survey.after = 0;
    l->generation++;
    l->wanted_us = 0;
}

void look_close(struct look *l)
{
    for (uint32_t i = 0; i < l->share_room; i++) writer_close(&l->shares[i].answer);
    free(l->shares);
    *l = (struct look){0};
}

bool look_is(const struct look *l, const struct survey *survey)
{
    const struct survey *s = &l->survey;
    return l->wanted_us != 0 && s->min_x == survey->min_x && s->min_y == survey->min_y && s->max_x == survey->max_x &&
           s->max_y == survey->max_y && s->columns == survey->columns && s->rows == survey->rows &&
           s->most == survey->most;
}

struct look_share *look_share(struct look *l, struct node_id node)
{
    for (uint32_t i = 0; i < l->share_count; i++)
        if (node_id_equal(l->shares[i].node, node)) return &l->shares[i];
    ARRAY_RESERVE(l->shares, l->share_room, (size_t)l->share_count + 1);
    struct look_share *share = &l->shares[l->share_count++];
    struct writer kept = share->answer; /* of one that has gone: its buffer is used again */
    writer_clear(&kept);
    *share = (struct look_share){.node = node, .answer = kept};
    return share;
}

void look_forget(struct look *l, struct node_id node)
{
    for (uint32_t i = 0; i < l->share_count; i++) {
        if (!node_id_equal(l->shares[i].node, node)) continue;
        struct look_share gone = l->shares[i];
        l->shares[i] = l->shares[--l->share_count];
        l->shares[l->share_count] = gone;
        return;
    }
}

enum terrane_error look_answer(struct look *l, struct node_id node, uint64_t now_us, const uint8_t *bytes, size_t size,
                               struct survey_result *out)
{
    enum terrane_error error = survey_result_decode(cursor_of(bytes, size), out);
    if (error != TERRANE_ERR_OK) return error;
    if (out->columns != l->survey.columns || out->rows != l->survey.rows) return TERRANE_ERR_MESSAGE_RANGE;
    struct look_share *share = look_share(l, node);
    writer_clear(&share->answer);
    writer_raw(&share->answer, bytes, size);
    share->heard_us = now_us;
    return TERRANE_ERR_OK;
}

/* Two decimals: a centimetre where world units are metres. */
static void put_length(struct writer *json, double v)
{
    json_double(json, round(v * 100) / 100);
}

static void put_cells(struct survey_result *r, struct writer *json)
{
    struct survey_cell cell = {.index = UINT32_MAX};
    uint32_t last = UINT32_MAX;
    json_key(json, "cells"), json_open(json, '[');
    while (survey_result_next_cell(r, &cell)) {
        json_uint(json, cell.index - last - 1);
        json_uint(json, cell.count);
        last = cell.index;
    }
    json_close(json, ']');
}

static void put_entities(struct survey_result *r, const struct world *world, struct writer *json)
{
    struct survey_entity entity;
    json_key(json, "entities"), json_open(json, '[');
    while (survey_result_next_entity(r, &entity)) {
        double x, y, z;
        world_coordinates(world, (struct position){entity.x, entity.y, 0}, &x, &y, &z);
        json_id(json, entity.id.v);
        put_length(json, x);
        put_length(json, y);
    }
    json_close(json, ']');
}

static void put_share(const struct look_share *share, const struct world *world, bool listed, uint64_t now_us,
                      struct writer *json)
{
    struct survey_result r;
    CHECK(survey_result_decode(cursor_of(share->answer.data, share->answer.size), &r) == TERRANE_ERR_OK);
    json_open(json, '{');
    json_key(json, "node"), json_id(json, share->node.v);
    json_key(json, "age_ms"), json_uint(json, (now_us - share->heard_us) / 1000);
    json_key(json, "tick"), json_uint(json, r.tick);
    json_key(json, "stride"), json_uint(json, r.stride);
    json_key(json, "total"), json_uint(json, r.total);
    put_cells(&r, json);
    if (!listed) r.entities.at = r.entities.end;
    put_entities(&r, world, json);
    json_close(json, '}');
}

static void put_rectangle(const struct survey *s, const struct world *world, struct writer *json)
{
    double x, y, z;
    world_coordinates(world, (struct position){s->min_x, s->min_y, 0}, &x, &y, &z);
    json_key(json, "min_x"), put_length(json, x);
    json_key(json, "min_y"), put_length(json, y);
    world_coordinates(world, (struct position){s->max_x, s->max_y, 0}, &x, &y, &z);
    /* The far edge of the last position. */
    json_key(json, "max_x"), put_length(json, x + world_unit(world));
    json_key(json, "max_y"), put_length(json, y + world_unit(world));
}

void look_write(const struct look *l, const struct world *world, uint64_t now_us, struct writer *json)
{
    uint64_t total = 0;
    bool pending = l->share_count == 0;
    for (uint32_t i = 0; i < l->share_count; i++) {
        const struct look_share *share = &l->shares[i];
        struct survey_result r = {0};
        if (share->heard_us == 0)
            pending = true;
        else
            CHECK(survey_result_decode(cursor_of(share->answer.data, share->answer.size), &r) == TERRANE_ERR_OK);
        total += r.total;
    }
    json_open(json, '{');
    json_key(json, "pending"), json_bool(json, pending);
    json_key(json, "total"), json_uint(json, total);
    put_rectangle(&l->survey, world, json);
    json_key(json, "columns"), json_uint(json, l->survey.columns);
    json_key(json, "rows"), json_uint(json, l->survey.rows);
    json_key(json, "servers"), json_open(json, '[');
    for (uint32_t i = 0; i < l->share_count; i++)
        if (l->shares[i].heard_us != 0) put_share(&l->shares[i], world, total <= l->survey.most, now_us, json);
    json_close(json, ']');
    json_close(json, '}');
}
