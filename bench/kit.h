/* What the parts of bench_aoi share: how they fail, show progress and tell the time; one figure as a line; what a sink
 * counts. Memory: nothing here owns any but what kit_take gives, which the caller frees. */
#ifndef TERRANE_BENCH_KIT_H
#define TERRANE_BENCH_KIT_H

#include "aoi/aoi.h"

#include <stdio.h>

/* Says what is wrong and ends the program: 1 a thing checked does not hold, 2 bad usage, 3 something is missing. */
void kit_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
void kit_check(enum terrane_error error); /* any error of an index ends the program */
void kit_progress(const char *format, ...) __attribute__((format(printf, 1, 2))); /* on stderr, if it is a terminal */
void kit_progress_end(void);
/* Once for each text: something that a reader of the figures should know, on stderr. */
void kit_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Zeroed memory; without any the program ends. */
void *kit_take(size_t size);
double kit_cpu_ns(void);  /* of this thread's processor time, so that a busy machine does not count */
double kit_wall_ns(void); /* cheap enough to time single operations */
/* Sorts the values. */
double kit_median(double *values, size_t count);
double kit_percentile(double *values, size_t count, double percent);
double kit_mean(const double *values, size_t count);

/* A hash of (observer, subject), and what else needs well mixed bits. */
uint64_t kit_mix(uint64_t a, uint64_t b);
/* The id of a bench's i-th entity. */
struct entity_id kit_id(uint32_t i);

/* What a sink saw. */
struct tally {
    uint64_t sees, unsees, sum; /* sum: over sees plus, over unsees minus, a hash of the pair */
    struct aoi *aoi;
};
void tally_pair(struct tally *tally, uint64_t observer, uint64_t subject, bool sees);
void tally_spans(void *tally, const struct aoi_span *spans, size_t count); /* an aoi_sink */
void count_spans(void *tally, const struct aoi_span *spans, size_t count); /* the same without the sum */

/* One figure. Numbers that are 0 are not known, and left out. */
struct record {
    const char *name; /* of the case */
    const char *index, *figure, *unit;
    double value;
    double p99;
    double per_s;   /* operations a second */
    double misses;  /* cache misses an operation */
    double changes; /* of views, an operation */
    const char *reference;
    double reference_value;
};
/* A line of JSON on stdout; with `csv` one of commas (the first call prints the head). */
void record_print(const struct record *record, bool csv);

/* Cache misses of this thread, where the machine counts them. */
struct misses {
    int file;          /* -1: it does not */
    const char *fault; /* why not */
};
void misses_open(struct misses *misses);
void misses_close(struct misses *misses);
uint64_t misses_read(const struct misses *misses);

#endif
