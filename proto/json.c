#include "proto/json.h"

#include "common/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(struct writer *w, const char *text)
{
    writer_raw(w, text, strlen(text));
}

/* A value or key needs a comma unless it is the first in its bracket or follows its key. */
static void separate(struct writer *w)
{
    if (w->size == 0) return;
    uint8_t last = w->data[w->size - 1];
    if (last != '{' && last != '[' && last != ':') put(w, ",");
}

void json_open(struct writer *w, char bracket)
{
    CHECK(bracket == '{' || bracket == '[');
    separate(w);
    writer_raw(w, &bracket, 1);
}

void json_close(struct writer *w, char bracket)
{
    CHECK(bracket == '}' || bracket == ']');
    writer_raw(w, &bracket, 1);
}

/* Bytes of the well-formed UTF-8 sequence at `at` (no overlong forms, no surrogates); 0: none is there. */
static size_t utf8_size(const uint8_t *at)
{
    size_t size = at[0] < 0x80                    ? 1
                  : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
                  : at[0] >= 0xe0 && at[0] < 0xf0 ? 3
                  : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
                                                  : 0;
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
    }
    bool overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    bool outside = (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf4 && at[1] > 0x8f);
    return overlong || outside ? 0 : size;
}

static void quote(struct writer *w, const char *text)
{
    put(w, "\"");
    for (const uint8_t *at = (const uint8_t *)text; *at != 0;) {
        size_t size = utf8_size(at);
        if (size == 0) {
            put(w, "?");
            size = 1;
        } else if (*at < 0x20 || *at == 0x7f) {
            char escape[8];
            snprintf(escape, sizeof escape, "\\u%04x", *at);
            put(w, escape);
        } else {
            if (*at == '"' || *at == '\\') put(w, "\\");
            writer_raw(w, at, size);
        }
        at += size;
    }
    put(w, "\"");
}

void json_key(struct writer *w, const char *key)
{
    separate(w);
    quote(w, key);
    put(w, ":");
}

void json_text(struct writer *w, const char *text)
{
    separate(w);
    quote(w, text);
}

void json_uint(struct writer *w, uint64_t v)
{
    char digits[24];
    separate(w);
    snprintf(digits, sizeof digits, "%" PRIu64, v);
    put(w, digits);
}

void json_double(struct writer *w, double v)
{
    char digits[32];
    CHECK(isfinite(v));
    separate(w);
    snprintf(digits, sizeof digits, "%.15g", v);
    double back = strtod(digits, NULL);
    if (back < v || back > v) snprintf(digits, sizeof digits, "%.17g", v);
    put(w, digits);
}

void json_bool(struct writer *w, bool v)
{
    separate(w);
    put(w, v ? "true" : "false");
}

void json_null(struct writer *w)
{
    separate(w);
    put(w, "null");
}

void json_id(struct writer *w, uint64_t v)
{
    char digits[24];
    if (v == 0) {
        json_null(w);
        return;
    }
    snprintf(digits, sizeof digits, "%" PRIu64, v);
    json_text(w, digits);
}

void json_world(struct writer *w, const struct world *world)
{
    json_open(w, '{');
    json_key(w, "origin_x"), json_double(w, world->origin_x);
    json_key(w, "origin_y"), json_double(w, world->origin_y);
    json_key(w, "cell_size"), json_double(w, world->cell_size);
    json_key(w, "depth"), json_uint(w, world->depth);
    json_key(w, "resolution_bits"), json_uint(w, world->resolution_bits);
    json_key(w, "view_mode"), json_text(w, world->view_mode == VIEW_BLOCK ? "block" : "radius");
    json_key(w, "edge"), json_text(w, world->edge == WORLD_EDGE_CLAMP ? "clamp" : "refuse");
    json_key(w, "radius_max"), json_uint(w, world->radius_max);
    json_key(w, "hysteresis"), json_uint(w, world->hysteresis);
    json_key(w, "z_range"), json_uint(w, world->z_range);
    json_key(w, "handoff_hysteresis"), json_uint(w, world->handoff_hysteresis);
    json_key(w, "tick_hz"), json_uint(w, world->tick_hz);
    json_close(w, '}');
}
