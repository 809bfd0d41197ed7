#include "bench/kit.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void kit_fail(int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    kit_progress_end();
    fputs("bench_aoi: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(code);
}

void kit_check(enum terrane_error error)
{
    if (error) kit_fail(1, "the index refused an operation: %s", terrane_error_text(error));
}

void kit_progress(const char *format, ...)
{
    if (!isatty(STDERR_FILENO)) return;
    va_list arguments;
    va_start(arguments, format);
    fputs("\r\033[K", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
}

void kit_progress_end(void)
{
    if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
}

void kit_note(const char *format, ...)
{
    static char said[64][160];
    char text[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < 64; i++) {
        if (!strcmp(said[i], text)) return;
        if (said[i][0]) continue;
        memcpy(said[i], text, sizeof text);
        break;
    }
    kit_progress_end();
    fprintf(stderr, "bench_aoi: %s\n", text);
}

void *kit_take(size_t size)
{
    void *memory = calloc(1, size ? size : 1);
    if (!memory) kit_fail(3, "out of memory (%zu bytes)", size);
    return memory;
}

static double clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

double kit_cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

double kit_wall_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static int double_compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

double kit_median(double *values, size_t count)
{
    return kit_percentile(values, count, 50);
}

double kit_percentile(double *values, size_t count, double percent)
{
    qsort(values, count, sizeof *values, double_compare);
    size_t at = (size_t)((double)count * percent / 100);
    return values[at < count ? at : count - 1];
}

double kit_mean(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += values[i];
    return sum / (double)count;
}

uint64_t kit_mix(uint64_t a, uint64_t b)
{
    uint64_t h = a * 0x9e3779b97f4a7c15u + b;
    h = (h ^ h >> 31) * 0xbf58476d1ce4e5b9u;
    return h ^ h >> 29;
}

struct entity_id kit_id(uint32_t i)
{
    return (struct entity_id){.v = kit_mix(i + UINT64_C(1), 7) | 1};
}

/* ---- tallies ---- */

void tally_pair(struct tally *tally, uint64_t observer, uint64_t subject, bool sees)
{
    uint64_t hash = kit_mix(observer, subject);
    tally->sees += sees;
    tally->unsees += !sees;
    tally->sum += sees ? hash : -hash;
}

void tally_spans(void *context, const struct aoi_span *spans, size_t count)
{
    struct tally *tally = context;
    for (size_t i = 0; i < count; i++) {
        uint64_t subject = aoi_id(tally->aoi, spans[i].subject).v;
        bool sees = spans[i].change & (AOI_SEE | AOI_SEEN_BY);
        for (uint32_t j = 0; j < spans[i].count; j++) {
            uint64_t other = aoi_id(tally->aoi, spans[i].others[j]).v;
            if (spans[i].change & (AOI_SEE | AOI_UNSEE)) tally_pair(tally, subject, other, sees);
            if (spans[i].change & (AOI_SEEN_BY | AOI_UNSEEN_BY)) tally_pair(tally, other, subject, sees);
        }
    }
}

void count_spans(void *context, const struct aoi_span *spans, size_t count)
{
    static const uint8_t sees[16] = {[AOI_SEE] = 1, [AOI_SEEN_BY] = 1, [AOI_SEE | AOI_SEEN_BY] = 2};
    static const uint8_t unsees[16] = {[AOI_UNSEE] = 1, [AOI_UNSEEN_BY] = 1, [AOI_UNSEE | AOI_UNSEEN_BY] = 2};
    struct tally *tally = context;
    uint64_t seen = 0, unseen = 0;
    for (size_t i = 0; i < count; i++) {
        seen += (uint64_t)spans[i].count * sees[spans[i].change];
        unseen += (uint64_t)spans[i].count * unsees[spans[i].change];
    }
    tally->sees += seen;
    tally->unsees += unseen;
}

/* ---- records ---- */

static void record_json(const struct record *r)
{
    printf("{\"bench\":\"aoi\",\"case\":\"%s\",\"figure\":\"%s\",\"value\":%.4g,\"unit\":\"%s\"", r->name, r->figure,
           r->value, r->unit);
    if (r->reference) {
        printf(",\"reference\":\"%s\",\"reference_value\":%.4g,\"ratio\":%.3g", r->reference, r->reference_value,
               r->reference_value / r->value);
    }
    printf(",\"index\":\"%s\"", r->index);
    if (r->p99 > 0) printf(",\"p99\":%.4g", r->p99);
    if (r->per_s > 0) printf(",\"per_s\":%.4g", r->per_s);
    if (r->misses > 0) printf(",\"misses\":%.3g", r->misses);
    if (r->changes > 0) printf(",\"changes\":%.4g", r->changes);
    puts("}");
}

static void number_csv(double number)
{
    if (number > 0) printf("%.4g", number);
    putchar(',');
}

static void record_csv(const struct record *r)
{
    static bool begun;
    if (!begun) puts("case,index,figure,value,unit,p99,per_s,misses,changes,reference,reference_value");
    begun = true;
    printf("%s,%s,%s,%.4g,%s,", r->name, r->index, r->figure, r->value, r->unit);
    number_csv(r->p99);
    number_csv(r->per_s);
    number_csv(r->misses);
    number_csv(r->changes);
    printf("%s,", r->reference ? r->reference : "");
    if (r->reference) printf("%.4g", r->reference_value);
    putchar('\n');
}

void record_print(const struct record *record, bool csv)
{
    kit_progress_end();
    if (csv) {
        record_csv(record);
    } else {
        record_json(record);
    }
    fflush(stdout);
}

/* ---- cache misses ---- */

void misses_open(struct misses *m)
{
    struct perf_event_attr event = {.type = PERF_TYPE_HARDWARE,
                                    .size = sizeof event,
                                    .config = PERF_COUNT_HW_CACHE_MISSES,
                                    .exclude_kernel = 1,
                                    .exclude_hv = 1};
    m->file = (int)syscall(SYS_perf_event_open, &event, 0, -1, -1, 0);
    m->fault = m->file < 0 ? strerror(errno) : NULL;
}

void misses_close(struct misses *m)
{
    if (m->file >= 0) close(m->file);
}

uint64_t misses_read(const struct misses *m)
{
    uint64_t count = 0;
    if (m->file < 0 || read(m->file, &count, sizeof count) != sizeof count) return 0;
    return count;
}
