/* Recorded movement: what persons did, as tracks of points 0.4 s apart. Read from text or generated.
 *
 * Text: rows of `frame person x y` separated by tabs or spaces, x and y in metres, 10 frames are 0.4 s; any order of
 * rows; empty lines and lines that begin with '#' are skipped. A person who is missing for a moment is interpolated;
 * after more than 4 s a new track begins.
 * What it is not: it opens no file and places nobody in a world (crowd.h).
 * Memory: a recording owns its arrays until recording_close; zero-initialise to open; several texts may be added. */
#ifndef TERRANE_TOOLS_RECORDING_H
#define TERRANE_TOOLS_RECORDING_H

#include "common/errors.h"

#include <stddef.h>
#include <stdint.h>

#define RECORDING_STEP_S 0.4

struct recording_point {
    float x, y; /* m */
};

/* One person from the first sight to the last; at least two points. */
struct track {
    uint32_t first, count; /* points */
    uint32_t start;        /* step of the first point, counted from the source's first frame */
    uint32_t source;       /* which text it came from, counted from 0 */
};

struct recording {
    struct recording_point *points;
    struct track *tracks; /* by source, then start, then order of appearance */
    uint32_t point_count, point_room, track_count, track_room;
    uint32_t sources, rows, persons, single; /* single: persons seen once, left out */
};

struct recording_fault {
    char text[320]; /* "zara.txt:17: x is \"abc\", not a finite number; ..." */
};

/* Adds the tracks of one text. On an error nothing is added and `fault` says where and why.
 * Errors: CONFIG (a malformed row, no track at all), LIMIT (more than 2^20 rows, tracks longer than 2^20 steps). */
enum terrane_error recording_add(struct recording *r, const char *name, const char *text, size_t size,
                                 struct recording_fault *fault) TERRANE_MUST_CHECK;

/* Adds one source of made-up pedestrians: groups of one to four, about 1.3 m/s (deviation 0.3), who start, turn
 * gently, stop for a while and go on. For those who have no recordings. */
void recording_generate(struct recording *r, uint64_t seed, uint32_t persons);

/* Mean speed of all steps in which somebody moves faster than 0.2 m/s; 0 for an empty recording. */
double recording_pace(const struct recording *r);
/* Where somebody on the track is, `at_s` after its beginning; beyond the end: the last point. */
struct recording_point recording_at(const struct recording *r, const struct track *track, double at_s);
double recording_seconds(const struct track *track);

void recording_close(struct recording *r);

#endif
