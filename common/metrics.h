/* Named numbers of one process, for people and scrapers: counters, gauges and histograms of
 * durations, with a help text each.
 *
 * What it is not: it measures nothing and serves nothing; whoever owns a number sets it, io serves the rendering.
 * Memory: the registry owns its list and copies names, labels and helps; zero-initialise to open. Renderings go into
 * a growing text buffer that the caller keeps between calls. */
#ifndef TERRANE_COMMON_METRICS_H
#define TERRANE_COMMON_METRICS_H

#include "common/types.h"

/* The _US kinds take microseconds and are rendered in seconds, the unit that their names must end in. */
enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_COUNTER_US, METRIC_GAUGE_US, METRIC_HISTOGRAM_US };

struct metric; /* opaque */

struct metrics {
    struct metric *items;
    uint32_t count, room;
};

struct metric_id {
    uint32_t v; /* index + 1; 0 is none */
};

struct metrics_text {
    char *data; /* NUL-terminated once something was rendered */
    size_t size;
    uint32_t room;
};

void metrics_close(struct metrics *m);

/* Registers a series, or finds it: the same name and labels give the same id. name: [a-z_][a-z0-9_]*, labels: as in
 * Prometheus without braces (`cause="full",lane="inbox"`) or "". Kind and help must be the same in all series of a
 * name. CHECK: malformed names, contradicting kinds. */
struct metric_id metrics_register(struct metrics *m, enum metric_kind kind, const char *name, const char *labels,
                                  const char *help);
void metrics_set(struct metrics *m, struct metric_id id, uint64_t value);
void metrics_add(struct metrics *m, struct metric_id id, uint64_t more);
uint64_t metrics_get(const struct metrics *m, struct metric_id id);

/* Registers and sets at once, for numbers that are kept elsewhere. */
void metrics_put(struct metrics *m, enum metric_kind kind, const char *name, const char *labels, const char *help,
                 uint64_t value);

/* Sets the series whose names begin so to 0. */
void metrics_zero(struct metrics *m, const char *prefix);
/* Adds the series of `from` whose names begin so to those of `into`: of several parts of a process. */
void metrics_sum(struct metrics *into, const struct metrics *from, const char *prefix);

/* A histogram of durations in buckets of at most METRIC_BUCKETS[i] microseconds. Registering it twice gives the same
 * id. metrics_observe allocates nothing. */
#define METRIC_BUCKETS 14u
extern const uint64_t metric_bounds_us[METRIC_BUCKETS];
struct metric_id metrics_histogram(struct metrics *m, const char *name, const char *help);
void metrics_observe(struct metrics *m, struct metric_id id, uint64_t us);

void metrics_text_close(struct metrics_text *t);
/* Prometheus' text format 0.0.4: series of one name together, names in order of registration. Replaces the text. */
void metrics_prometheus(const struct metrics *m, struct metrics_text *out);
/* One JSON object: {"name": value, "name{labels}": value}, in the same order; a histogram is {"le":[seconds...],
 * "count":[of at most so much...],"sum":seconds,"total":count}. Replaces the text. */
void metrics_json(const struct metrics *m, struct metrics_text *out);

#endif
