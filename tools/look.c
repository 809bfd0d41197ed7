#include "tools/look.h"

#include "common/geometry.h"
#include "proto/json.h"

#include <stdio.h>
#include <string.h>

struct sample look_sample(const struct cluster_server *s)
{
    const struct document *d = &s->status;
    uint32_t io = document_member(d, 0, "io");
    return (struct sample){.moves = document_count(d, 0, "moves"),
                           .handoffs = document_count(d, 0, "handoffs_in"),
                           .bytes = document_count(d, 0, "frame_bytes"),
                           .ticks = document_count(d, 0, "tick"),
                           .late = document_count(d, 0, "ticks_late"),
                           .cpu_s = document_number(d, io, "process_cpu_seconds_total", 0)};
}

double look_rate(uint64_t before, uint64_t after, double seconds)
{
    return after > before ? (double)(after - before) / seconds : 0;
}

const char *look_state(const struct cluster *c, const struct cluster_server *s)
{
    bool draining = document_bool(&c->map, s->listed, "draining");
    if (document_bool(&c->map, s->listed, "lapsed")) return draining ? "lapsed, draining" : "lapsed";
    if (document_bool(&c->map, s->listed, "silent")) return "silent";
    return draining ? "draining" : "";
}

static uint32_t place_of(const struct cluster *c, const char *name)
{
    for (uint32_t i = 0; i < c->server_count; i++)
        if (strcmp(c->servers[i].name, name) == 0) return i;
    return MOSAIC_NOBODY;
}

void look_mosaic(const struct cluster *c, struct mosaic *out)
{
    uint32_t at = document_first(&c->map, document_member(&c->map, 0, "regions"));
    mosaic_clear(out);
    for (; at != DOCUMENT_NONE; at = document_next(&c->map, at)) {
        const char *key = document_text(&c->map, at, "quadkey");
        struct mosaic_tile tile = {.server = place_of(c, document_text(&c->map, at, "server")),
                                   .load = document_count(&c->map, at, "owned"),
                                   .exposed = !document_bool(&c->map, at, "level")};
        if (quadkey_parse(key, strlen(key), &tile.region) == TERRANE_ERR_OK) mosaic_add(out, &tile);
    }
}

static void put_name(struct writer *w, const char *key, const char *name)
{
    json_key(w, key);
    if (name[0] == '\0')
        json_null(w);
    else
        json_text(w, name);
}

static void put_region(struct writer *w, const struct cluster *c, const struct world *world, uint32_t at)
{
    const char *key = document_text(&c->map, at, "quadkey");
    struct quadkey region;
    if (quadkey_parse(key, strlen(key), &region) != TERRANE_ERR_OK) return;
    struct square square = quadkey_square(world, region);
    double unit = world_unit(world);
    json_open(w, '{');
    json_key(w, "quadkey"), json_text(w, key);
    put_name(w, "server", document_text(&c->map, at, "server"));
    put_name(w, "standby", document_text(&c->map, at, "standby"));
    json_key(w, "level"), json_bool(w, document_bool(&c->map, at, "level"));
    json_key(w, "epoch"), json_uint(w, document_count(&c->map, at, "epoch"));
    json_key(w, "owned"), json_uint(w, document_count(&c->map, at, "owned"));
    json_key(w, "x"), json_double(w, world->origin_x + square.x * unit);
    json_key(w, "y"), json_double(w, world->origin_y + square.y * unit);
    json_key(w, "side"), json_double(w, (double)square.side * unit);
    json_close(w, '}');
}

void look_print_regions(const struct cluster *c)
{
    struct writer w = {0};
    struct world world;
    json_open(&w, '{');
    json_key(&w, "regions"), json_open(&w, '[');
    if (cluster_world(c, &world) == TERRANE_ERR_OK) {
        uint32_t at = document_first(&c->map, document_member(&c->map, 0, "regions"));
        for (; at != DOCUMENT_NONE; at = document_next(&c->map, at)) put_region(&w, c, &world, at);
    }
    json_close(&w, ']');
    json_close(&w, '}');
    printf("%.*s\n", (int)w.size, (const char *)w.data);
    writer_close(&w);
}
