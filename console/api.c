/* /api/...: what the page and scripts read. Each answer is made from what is known now; what is wanted is asked for and
 * there the next time. */
#include "console/internal.h"

#include "common/check.h"
#include "io/loop.h"
#include "proto/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_MOST 200u /* in one answer, unless asked otherwise */
#define PARTS       128u /* columns and rows of a survey, likewise */

static void fail(struct http_answer *out, unsigned status, const char *format, const char *what)
{
    char text[256];
    snprintf(text, sizeof text, format, what);
    writer_clear(out->body);
    out->status = status;
    json_open(out->body, '{');
    json_key(out->body, "error"), json_text(out->body, text);
    json_close(out->body, '}');
}

/* Parameters. False: it is given and wrong, and the answer says so. */

static bool parameter_uint(const struct http_request *request, const char *name, uint64_t preset, uint64_t most,
                           uint64_t *value, struct http_answer *out)
{
    const char *text = http_parameter(request, name);
    char *end = NULL;
    *value = preset;
    if (text == NULL) return true;
    errno = 0;
    *value = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *value <= most) return true;
    char what[96];
    snprintf(what, sizeof what, "%s=%.32s: not a number from 0 to %" PRIu64, name, text, most);
    fail(out, 400, "%s", what);
    return false;
}

static bool parameter_double(const struct http_request *request, const char *name, double preset, double *value,
                             struct http_answer *out)
{
    const char *text = http_parameter(request, name);
    char *end = NULL;
    *value = preset;
    if (text == NULL) return true;
    *value = strtod(text, &end);
    if (end != text && *end == '\0' && isfinite(*value)) return true;
    char what[96];
    snprintf(what, sizeof what, "%s=%.32s", name, text);
    fail(out, 400, "%s: not a finite number", what);
    return false;
}

/* A length along one axis as a position, within the world. */
static int32_t place_of(const struct console *c, double v, double origin)
{
    double end = (double)(INT64_C(1) << c->options.world.resolution_bits),
           at = (v - origin) / world_unit(&c->options.world);
    return at < 0 ? 0 : at >= end ? (int32_t)(end - 1) : (int32_t)at;
}

/* Answers */

static void put_crossing(const struct journal_crossing *crossing, uint64_t seq, const struct world *world,
                         struct writer *json)
{
    char key[LIMIT_QUADKEY_TEXT];
    double x, y, z;
    world_coordinates(world, (struct position){crossing->what.x, crossing->what.y, 0}, &x, &y, &z);
    json_open(json, '{');
    json_key(json, "seq"), json_uint(json, seq);
    json_key(json, "at"), json_uint(json, crossing->at_ms);
    json_key(json, "id"), json_id(json, crossing->what.id.v);
    quadkey_text(crossing->what.from, key);
    json_key(json, "from"), json_text(json, key);
    quadkey_text(crossing->what.to, key);
    json_key(json, "to"), json_text(json, key);
    json_key(json, "from_node"), json_id(json, crossing->from.v);
    json_key(json, "to_node"), json_id(json, crossing->what.node.v);
    json_key(json, "x"), json_double(json, round(x * 100) / 100);
    json_key(json, "y"), json_double(json, round(y * 100) / 100);
    json_close(json, '}');
}

static void put_crossings(const struct console *c, uint64_t after, uint64_t most, struct writer *json)
{
    const struct journal *j = &c->journal;
    uint64_t first = after <= j->crossing_count ? after : 0;
    if (most > JOURNAL_CROSSINGS) most = JOURNAL_CROSSINGS;
    if (j->crossing_count - first > most) first = j->crossing_count - most;
    json_key(json, "crossings"), json_open(json, '[');
    for (uint64_t i = first; i < j->crossing_count; i++)
        put_crossing(&j->crossings[i % JOURNAL_CROSSINGS], i + 1, &c->options.world, json);
    json_close(json, ']');
    json_key(json, "crossing"), json_uint(json, j->crossing_count);
}

/* /api/live: what a page asks for several times a second. */
static void answer_live(struct console *c, const struct http_request *request, uint64_t now_us, struct http_answer *out)
{
    uint64_t event, crossing, most;
    if (!parameter_uint(request, "event", 0, UINT64_MAX, &event, out) ||
        !parameter_uint(request, "crossing", 0, UINT64_MAX, &crossing, out) ||
        !parameter_uint(request, "most", EVENTS_MOST, JOURNAL_LINES, &most, out))
        return;
    struct coordinator_stats stats;
    coordinator_stats(c->options.coordinator, &stats);
    struct writer *json = out->body;
    json_open(json, '{');
    json_key(json, "instance"), json_uint(json, c->started_ms);
    json_key(json, "now"), json_uint(json, console_wall_ms());
    json_key(json, "term"), json_uint(json, stats.term);
    json_key(json, "rev"), json_uint(json, stats.rev);
    json_key(json, "leads"), json_bool(json, stats.leads);
    if (!stats.leads && !stats.ready) {
        console_want_leader(c, now_us);
        json_key(json, "leader_http"), json_text(json, c->leader_http);
    }
    json_key(json, "consoles"), consoles_write(&c->options.consoles, json);
    json_key(json, "events"), journal_write(&c->journal, event, most, json);
    json_key(json, "event"), json_uint(json, c->journal.line_count);
    put_crossings(c, crossing, most, json);
    json_close(json, '}');
}

/* /api/map: rendered once for all who ask, when it has changed or is a second old. */
static void answer_map(struct console *c, uint64_t now_us, struct http_answer *out)
{
    struct coordinator_stats stats;
    coordinator_stats(c->options.coordinator, &stats);
    if (c->map_us == 0 || stats.term != c->map_term || stats.rev != c->map_rev || now_us - c->map_us >= MAP_EVERY_US) {
        writer_clear(&c->map);
        coordinator_picture(c->options.coordinator, &c->map);
        c->map_us = now_us;
        c->map_term = stats.term;
        c->map_rev = stats.rev;
    }
    writer_raw(out->body, c->map.data, c->map.size);
}

static void answer_servers(struct console *c, uint64_t now_us, struct http_answer *out)
{
    struct writer *json = out->body;
    console_want_status(c, now_us);
    json_open(json, '{');
    json_key(json, "servers"), json_open(json, '[');
    for (uint32_t i = 0; i < c->server_count; i++) {
        const struct server *s = &c->servers[i];
        json_open(json, '{');
        json_key(json, "name"), json_text(json, s->name);
        json_key(json, "node"), json_id(json, s->node.v);
        json_key(json, "age_ms");
        if (s->heard_us == 0)
            json_null(json);
        else
            json_uint(json, (now_us - s->heard_us) / 1000);
        json_key(json, "status");
        if (s->heard_us == 0)
            json_null(json);
        else
            writer_raw(json, s->status.data, s->status.size);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_close(json, '}');
}

static void answer_survey(struct console *c, const struct http_request *request, uint64_t now_us,
                          struct http_answer *out)
{
    const struct world *world = &c->options.world;
    double side = world->cell_size * (double)(UINT64_C(1) << world->depth), min_x, min_y, max_x, max_y;
    uint64_t columns, rows, most;
    if (!parameter_double(request, "min_x", world->origin_x, &min_x, out) ||
        !parameter_double(request, "min_y", world->origin_y, &min_y, out) ||
        !parameter_double(request, "max_x", world->origin_x + side, &max_x, out) ||
        !parameter_double(request, "max_y", world->origin_y + side, &max_y, out) ||
        !parameter_uint(request, "columns", PARTS, SURVEY_SIDE_MAX, &columns, out) ||
        !parameter_uint(request, "rows", PARTS, SURVEY_SIDE_MAX, &rows, out) ||
        !parameter_uint(request, "most", 0, SURVEY_ENTITIES_MAX, &most, out))
        return;
    if (max_x < min_x || max_y < min_y || (columns == 0) != (rows == 0)) {
        fail(out, 400, "%s",
             max_x < min_x || max_y < min_y ? "the rectangle's maximum lies below its minimum"
                                            : "columns and rows: both 0, or neither");
        return;
    }
    double end = world_unit(world) / 2; /* max_x is where the rectangle ends: the last position lies before it */
    struct survey survey = {.min_x = place_of(c, min_x, world->origin_x), .min_y = place_of(c, min_y, world->origin_y)};
    survey.max_x = place_of(c, max_x - end, world->origin_x);
    survey.max_y = place_of(c, max_y - end, world->origin_y);
    if (survey.max_x < survey.min_x) survey.max_x = survey.min_x;
    if (survey.max_y < survey.min_y) survey.max_y = survey.min_y;
    survey.columns = (uint32_t)columns;
    survey.rows = (uint32_t)rows;
    survey.most = (uint32_t)most;
    look_write(console_want_look(c, &survey, now_us), world, now_us, out->body);
}

static void put_found(struct console *c, const struct find *f, uint64_t now_us, struct writer *json)
{
    const struct server *owner = f->owner.v == 0 ? NULL : console_server(c, f->owner);
    char key[LIMIT_QUADKEY_TEXT];
    double x, y, z;
    world_coordinates(&c->options.world, f->position, &x, &y, &z);
    quadkey_text(f->leaf, key);
    json_key(json, "server");
    if (owner == NULL)
        json_null(json);
    else
        json_text(json, owner->name);
    json_key(json, "node"), json_id(json, f->owner.v);
    json_key(json, "leaf"), json_text(json, key);
    json_key(json, "version"), json_uint(json, f->version);
    json_key(json, "x"), json_double(json, round(x * 100) / 100);
    json_key(json, "y"), json_double(json, round(y * 100) / 100);
    json_key(json, "z"), json_double(json, round(z * 100) / 100);
    json_key(json, "age_ms"), json_uint(json, (now_us - f->heard_us) / 1000);
}

/* Pending: some server has not said yet whether it has it. */
static void answer_entity(struct console *c, const struct http_request *request, uint64_t now_us,
                          struct http_answer *out)
{
    uint64_t id;
    if (!parameter_uint(request, "id", 0, UINT64_MAX, &id, out)) return;
    if (id == 0) {
        fail(out, 400, "%s", "id: which entity? a number above 0");
        return;
    }
    const struct find *f = console_want_entity(c, (struct entity_id){id}, now_us);
    struct writer *json = out->body;
    json_open(json, '{');
    json_key(json, "id"), json_id(json, id);
    json_key(json, "found"), json_bool(json, f->owner.v != 0);
    json_key(json, "pending"), json_bool(json, f->owner.v == 0 && f->denied < c->server_count);
    if (f->heard_us != 0) put_found(c, f, now_us, json);
    json_close(json, '}');
}

static void answer_list(struct http_answer *out)
{
    static const char *const lines[] = {"/api/live?event=N&crossing=N&most=N",
                                        "/api/map",
                                        "/api/servers",
                                        "/api/survey?min_x=&min_y=&max_x=&max_y=&columns=&rows=&most=",
                                        "/api/entity?id=N",
                                        NULL};
    json_open(out->body, '{');
    json_key(out->body, "endpoints"), json_open(out->body, '[');
    for (size_t i = 0; lines[i] != NULL; i++) json_text(out->body, lines[i]);
    json_close(out->body, ']');
    json_close(out->body, '}');
}

void console_api(void *console, const struct http_request *request, struct http_answer *out)
{
    struct console *c = console;
    const char *rest = http_rest(request);
    uint64_t now_us = loop_now_us();
    out->type = "application/json";
    out->header = "Cache-Control";
    out->value = "no-store";
    console_meet(c, now_us);
    if (strcmp(rest, "live") == 0)
        answer_live(c, request, now_us, out);
    else if (strcmp(rest, "map") == 0)
        answer_map(c, now_us, out);
    else if (strcmp(rest, "servers") == 0)
        answer_servers(c, now_us, out);
    else if (strcmp(rest, "survey") == 0)
        answer_survey(c, request, now_us, out);
    else if (strcmp(rest, "entity") == 0)
        answer_entity(c, request, now_us, out);
    else if (rest[0] == '\0')
        answer_list(out);
    else
        fail(out, 404, "there is no /api/%.64s; /api/ lists what there is", rest);
}
