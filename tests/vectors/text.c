#include "tests/vectors/vectors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void text_raw(struct text *t, const char *text)
{
    writer_raw(&t->out, text, strlen(text));
}

/* The comma if one is due, and the key if there is one. */
static void text_lead(struct text *t, const char *key)
{
    if (t->more) text_raw(t, ", ");
    t->more = true;
    if (key == NULL) return;
    text_raw(t, "\"");
    text_raw(t, key);
    text_raw(t, "\": ");
}

void text_open(struct text *t, const char *key, char bracket)
{
    text_lead(t, key);
    writer_raw(&t->out, &bracket, 1);
    t->more = false;
}

void text_close(struct text *t, char bracket)
{
    writer_raw(&t->out, &bracket, 1);
    t->more = true;
}

void text_uint(struct text *t, const char *key, uint64_t v)
{
    char number[32];
    snprintf(number, sizeof number, "%" PRIu64, v);
    text_lead(t, key);
    text_raw(t, number);
}

void text_bool(struct text *t, const char *key, bool v)
{
    text_lead(t, key);
    text_raw(t, v ? "true" : "false");
}

void text_int(struct text *t, const char *key, int64_t v)
{
    char number[32];
    snprintf(number, sizeof number, "%" PRId64, v);
    text_lead(t, key);
    text_raw(t, number);
}

/* Always with a point or an exponent, so that a double can be told from an integer. */
void text_double(struct text *t, const char *key, double v)
{
    char number[48];
    snprintf(number, sizeof number, "%.17g", v);
    if (strpbrk(number, ".e") == NULL) strcat(number, ".0");
    text_lead(t, key);
    text_raw(t, number);
}

void text_str(struct text *t, const char *key, const char *v, size_t size)
{
    text_lead(t, key);
    text_raw(t, "\"");
    for (size_t i = 0; i < size; i++) {
        if (v[i] == '"' || v[i] == '\\') text_raw(t, "\\");
        writer_raw(&t->out, v + i, 1);
    }
    text_raw(t, "\"");
}

void text_bin(struct text *t, const char *key, const uint8_t *v, size_t size)
{
    text_lead(t, key);
    text_raw(t, "\"");
    for (size_t i = 0; i < size; i++) {
        char digits[3];
        snprintf(digits, sizeof digits, "%02x", v[i]);
        text_raw(t, digits);
    }
    text_raw(t, "\"");
}

void text_quadkey(struct text *t, const char *key, struct quadkey k)
{
    text_uint(t, key, k.v);
}

void text_position(struct text *t, struct position p)
{
    text_int(t, "x", p.x);
    text_int(t, "y", p.y);
    text_int(t, "z", p.z);
}

void text_record(struct text *t, const char *key, const struct entity_record *record)
{
    text_open(t, key, '{');
    text_uint(t, "id", record->id.v);
    text_uint(t, "version", record->version);
    text_uint(t, "kind", record->kind);
    text_uint(t, "flags", record->flags);
    text_uint(t, "layer", record->layer);
    text_position(t, record->position);
    text_uint(t, "yaw", record->yaw);
    text_uint(t, "radius", record->radius);
    text_bin(t, "state", record->state, record->state_size);
    text_close(t, '}');
}
