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
    uint64_t value;                      /* of a histogram: the sum */
    uint64_t counts[METRIC_BUCKETS + 1]; /* of a histogram, by bucket; the last: beyond all bounds */
};

/* From a tick that does next to nothing to one that has missed twenty. */
const uint64_t metric_bounds_us[METRIC_BUCKETS] = {100,   250,   500,   1000,   2500,   5000,   10000,
                                                   16000, 25000, 50000, 100000, 250000, 500000, 1000000};

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

void metrics_put(struct metrics *m, enum metric_kind kind, const char *name, const char *labels, const char *help,
                 uint64_t value)
{
    metrics_set(m, metrics_register(m, kind, name, labels, help), value);
}

static bool begins(const struct metric *series, const char *prefix)
{
    return strncmp(series->name, prefix, strlen(prefix)) == 0;
}

void metrics_zero(struct metrics *m, const char *prefix)
{
    for (uint32_t i = 0; i < m->count; i++) {
        struct metric *series = &m->items[i];
        if (!begins(series, prefix)) continue;
        series->value = 0;
        memset(series->counts, 0, sizeof series->counts);
    }
}

void metrics_sum(struct metrics *into, const struct metrics *from, const char *prefix)
{
    for (uint32_t i = 0; i < from->count; i++) {
        const struct metric *series = &from->items[i];
        if (!begins(series, prefix)) continue;
        struct metric_id id = metrics_register(into, series->kind, series->name, series->labels, series->help);
        struct metric *sum = &into->items[id.v - 1];
        sum->value += series->value;
        for (uint32_t bucket = 0; bucket <= METRIC_BUCKETS; bucket++) sum->counts[bucket] += series->counts[bucket];
    }
}

struct metric_id metrics_histogram(struct metrics *m, const char *name, const char *help)
{
    return metrics_register(m, METRIC_HISTOGRAM_US, name, "", help);
}

void metrics_observe(struct metrics *m, struct metric_id id, uint64_t us)
{
    CHECK(id.v >= 1 && id.v <= m->count && m->items[id.v - 1].kind == METRIC_HISTOGRAM_US);
    struct metric *histogram = &m->items[id.v - 1];
    uint32_t bucket = 0;
    while (bucket < METRIC_BUCKETS && us > metric_bounds_us[bucket]) bucket++;
    histogram->counts[bucket]++;
    histogram->value += us;
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

static void add_seconds(struct metrics_text *out, uint64_t us)
{
    add(out, "%" PRIu64 ".%06u", us / 1000000u, (unsigned)(us % 1000000u));
}

static void add_value(struct metrics_text *out, const struct metric *s)
{
    if (s->kind == METRIC_COUNTER || s->kind == METRIC_GAUGE)
        add(out, "%" PRIu64, s->value);
    else
        add_seconds(out, s->value);
}

static void add_buckets(struct metrics_text *out, const struct metric *s)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < METRIC_BUCKETS; i++) {
        add(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", s->name, (double)metric_bounds_us[i] / 1e6, sum += s->counts[i]);
    }
    sum += s->counts[METRIC_BUCKETS];
    add(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum ", s->name, sum, s->name);
    add_seconds(out, s->value);
    add(out, "\n%s_count %" PRIu64 "\n", s->name, sum);
}

static const char *type_of(const struct metric *s)
{
    if (s->kind == METRIC_HISTOGRAM_US) return "histogram";
    return s->kind == METRIC_COUNTER || s->kind == METRIC_COUNTER_US ? "counter" : "gauge";
}

static void add_prometheus(struct metrics_text *out, const struct metric *s, bool first)
{
    if (first) add(out, "# HELP %s %s\n# TYPE %s %s\n", s->name, s->help, s->name, type_of(s));
    if (s->kind == METRIC_HISTOGRAM_US) {
        add_buckets(out, s);
        return;
    }
    const char *open = s->labels[0] != '\0' ? "{" : "", *close = s->labels[0] != '\0' ? "}" : "";
    add(out, "%s%s%s%s ", s->name, open, s->labels, close);
    add_value(out, s);
    add(out, "\n");
}

void metrics_prometheus(const struct metrics *m, struct metrics_text *out)
{
    out->size = 0;
    add(out, "%s", "");
    in_order(m, out, add_prometheus);
}

static void add_json_histogram(struct metrics_text *out, const struct metric *s)
{
    uint64_t sum = 0;
    add(out, "{\"le\":[");
    for (uint32_t i = 0; i < METRIC_BUCKETS; i++)
        add(out, "%s%g", i == 0 ? "" : ",", (double)metric_bounds_us[i] / 1e6);
    add(out, "],\"count\":[");
    for (uint32_t i = 0; i < METRIC_BUCKETS; i++) add(out, "%s%" PRIu64, i == 0 ? "" : ",", sum += s->counts[i]);
    add(out, "],\"sum\":");
    add_seconds(out, s->value);
    add(out, ",\"total\":%" PRIu64 "}", sum + s->counts[METRIC_BUCKETS]);
}

static void add_json(struct metrics_text *out, const struct metric *s, bool first)
{
    (void)first;
    add(out, "%s\"%s", out->size > 1 ? "," : "", s->name);
    if (s->labels[0] != '\0') add(out, "{");
    for (const char *c = s->labels; *c != '\0'; c++) add(out, *c == '"' ? "\\\"" : "%c", *c);
    if (s->labels[0] != '\0') add(out, "}");
    add(out, "\":");
    if (s->kind == METRIC_HISTOGRAM_US)
        add_json_histogram(out, s);
    else
        add_value(out, s);
}

void metrics_json(const struct metrics *m, struct metrics_text *out)
{
    out->size = 0;
    add(out, "{");
    in_order(m, out, add_json);
    add(out, "}");
}
