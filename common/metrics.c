#include "common/metrics.h"

#include "common/array.h"
#include "common/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct metric {
    enum metric_kind kind;
    char *name, *labels, *help;
    uint64_t value;
};

void metrics_close(struct metrics *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        free(m->items[i].name);
        free(m->items[i].labels);
        free(m->items[i].help);
    }
    free(m->items);
    *m = (struct metrics){0};
}

static char *copy(const char *text)
{
    char *copied = strdup(text);
    CHECK(copied != NULL);
    return copied;
}

static bool name_valid(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    if (name[0] == '\0' || strchr(letters, name[0]) == NULL) return false;
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789")] == '\0';
}

struct metric_id metrics_register(struct metrics *m, enum metric_kind kind, const char *name, const char *labels,
                                  const char *help)
{
    CHECK(name_valid(name));
    CHECK(strpbrk(labels, "\n{}\\") == NULL && strpbrk(help, "\n\\") == NULL);
    for (uint32_t i = 0; i < m->count; i++) {
        const struct metric *known = &m->items[i];
        if (strcmp(known->name, name) != 0) continue;
        CHECK(known->kind == kind && strcmp(known->help, help) == 0);
        if (strcmp(known->labels, labels) == 0) return (struct metric_id){i + 1};
    }
    ARRAY_RESERVE(m->items, m->room, (size_t)m->count + 1);
    m->items[m->count++] =
        (struct metric){.kind = kind, .name = copy(name), .labels = copy(labels), .help = copy(help)};
    return (struct metric_id){m->count};
}

void metrics_set(struct metrics *m, struct metric_id id, uint64_t value)
{
    CHECK(id.v >= 1 && id.v <= m->count);
    m->items[id.v - 1].value = value;
}

void metrics_add(struct metrics *m, struct metric_id id, uint64_t more)
{
    CHECK(id.v >= 1 && id.v <= m->count);
    m->items[id.v - 1].value += more;
}

uint64_t metrics_get(const struct metrics *m, struct metric_id id)
{
    CHECK(id.v >= 1 && id.v <= m->count);
    return m->items[id.v - 1].value;
}

void metrics_text_close(struct metrics_text *t)
{
    free(t->data);
    *t = (struct metrics_text){0};
}

static void add(struct metrics_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct metrics_text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    CHECK(size >= 0);
    ARRAY_RESERVE(t->data, t->room, t->size + (size_t)size + 1);
    va_start(arguments, format);
    vsnprintf(t->data + t->size, (size_t)size + 1, format, arguments);
    va_end(arguments);
    t->size += (size_t)size;
}

/* Calls `each` for every series: those of one name together, at the place of the name's first. Quadratic in the number
 * of names, which is some dozens. */
static void in_order(const struct metrics *m, struct metrics_text *out,
                     void (*each)(struct metrics_text *out, const struct metric *series, bool first))
{
    for (uint32_t i = 0; i < m->count; i++) {
        bool seen = false;
        for (uint32_t j = 0; j < i && !seen; j++) seen = strcmp(m->items[j].name, m->items[i].name) == 0;
        for (uint32_t j = i; j < m->count && !seen; j++)
            if (strcmp(m->items[j].name, m->items[i].name) == 0) each(out, &m->items[j], j == i);
    }
}

static void add_prometheus(struct metrics_text *out, const struct metric *s, bool first)
{
    if (first)
        add(out, "# HELP %s %s\n# TYPE %s %s\n", s->name, s->help, s->name,
            s->kind == METRIC_COUNTER ? "counter" : "gauge");
    const char *open = s->labels[0] != '\0' ? "{" : "", *close = s->labels[0] != '\0' ? "}" : "";
    add(out, "%s%s%s%s %" PRIu64 "\n", s->name, open, s->labels, close, s->value);
}

void metrics_prometheus(const struct metrics *m, struct metrics_text *out)
{
    out->size = 0;
    add(out, "%s", "");
    in_order(m, out, add_prometheus);
}

static void add_json(struct metrics_text *out, const struct metric *s, bool first)
{
    (void)first;
    add(out, "%s\"%s", out->size > 1 ? "," : "", s->name);
    if (s->labels[0] != '\0') add(out, "{");
    for (const char *c = s->labels; *c != '\0'; c++) add(out, *c == '"' ? "\\\"" : "%c", *c);
    if (s->labels[0] != '\0') add(out, "}");
    add(out, "\":%" PRIu64, s->value);
}

void metrics_json(const struct metrics *m, struct metrics_text *out)
{
    out->size = 0;
    add(out, "{");
    in_order(m, out, add_json);
    add(out, "}");
}
