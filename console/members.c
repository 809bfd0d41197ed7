#include "console/members.h"

#include <string.h>

static size_t skip_space(const char *json, size_t size, size_t at)
{
    while (at < size && (json[at] == ' ' || json[at] == '\n' || json[at] == '\t' || json[at] == '\r')) at++;
    return at;
}

/* Behind the closing quote; size if there is none. */
static size_t skip_text(const char *json, size_t size, size_t at)
{
    for (at++; at < size && json[at] != '"'; at++)
        if (json[at] == '\\') at++;
    return at < size ? at + 1 : size;
}

/* Behind the value that begins at `at`: at the comma or bracket that ends it. */
static size_t skip_value(const char *json, size_t size, size_t at)
{
    size_t depth = 0;
    while (at < size) {
        char c = json[at];
        if (c == '"') {
            at = skip_text(json, size, at);
            continue;
        }
        if (depth == 0 && (c == ',' || c == '}' || c == ']')) return at;
        if (c == '{' || c == '[') depth++;
        if (c == '}' || c == ']') depth--;
        at++;
    }
    return size;
}

bool json_member_next(const char *json, size_t size, size_t *at, struct json_member *out)
{
    size_t from = skip_space(json, size, *at);
    if (from < size && json[from] == (*at == 0 ? '{' : ',')) from = skip_space(json, size, from + 1);
    if (from >= size || json[from] != '"') return false;
    size_t key_end = skip_text(json, size, from), value = skip_space(json, size, key_end);
    if (value >= size || json[value] != ':') return false;
    value = skip_space(json, size, value + 1);
    size_t end = skip_value(json, size, value);
    if (end == value || end >= size) return false;
    *out = (struct json_member){
        .key = json + from + 1, .key_size = key_end - from - 2, .value = json + value, .value_size = end - value};
    *at = end;
    return true;
}

static bool is_named(const struct json_member *m, const char *name)
{
    return m->key_size == strlen(name) && memcmp(m->key, name, m->key_size) == 0;
}

void json_without(struct writer *out, const char *json, size_t size, const char *const names[])
{
    struct json_member m;
    bool first = true;
    writer_raw(out, "{", 1);
    for (size_t at = 0; json_member_next(json, size, &at, &m);) {
        bool left_out = false;
        for (size_t i = 0; names[i] != NULL && !left_out; i++) left_out = is_named(&m, names[i]);
        if (left_out) continue;
        if (!first) writer_raw(out, ",", 1);
        first = false;
        writer_raw(out, "\"", 1);
        writer_raw(out, m.key, m.key_size);
        writer_raw(out, "\":", 2);
        writer_raw(out, m.value, m.value_size);
    }
    writer_raw(out, "}", 1);
}

bool json_member_text(const char *json, size_t size, const char *name, char *text, size_t room)
{
    struct json_member m;
    for (size_t at = 0; json_member_next(json, size, &at, &m);) {
        if (!is_named(&m, name)) continue;
        if (m.value_size < 2 || m.value[0] != '"' || m.value_size - 2 >= room) return false;
        if (memchr(m.value, '\\', m.value_size) != NULL) return false;
        memcpy(text, m.value + 1, m.value_size - 2);
        text[m.value_size - 2] = '\0';
        return true;
    }
    return false;
}
