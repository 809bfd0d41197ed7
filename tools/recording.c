#include "tools/recording.h"

#include "common/array.h"
#include "common/check.h"
#include "tools/dice.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX       (1u << 20)
#define STEPS_MAX      (1u << 20)
#define FRAMES_A_STEP  10.0
#define GAP_STEPS      10.0 /* longer without a row: another track */
#define FIELD_ROOM     64u
#define PACE_STILL_M_S 0.2

struct row {
    double frame, x, y;
    double person;
    uint32_t order; /* of appearance, breaks ties */
};

struct rows {
    struct row *items;
    uint32_t count, room;
};

/* Text to rows */

static void complain(struct recording_fault *fault, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void complain(struct recording_fault *fault, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->text, sizeof fault->text, format, arguments);
    va_end(arguments);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next field of the line, copied; false if there is none. */
static bool next_field(const char **at, const char *end, char field[FIELD_ROOM])
{
    while (*at < end && is_blank(**at)) (*at)++;
    size_t size = 0;
    for (; *at < end && !is_blank(**at); (*at)++)
        if (size + 1 < FIELD_ROOM) field[size++] = **at;
    field[size] = '\0';
    return size > 0;
}

static bool read_number(const char *field, double *out)
{
    char *end;
    *out = strtod(field, &end);
    return *end == '\0' && isfinite(*out);
}

static bool read_row(const char *name, uint32_t line, const char *at, const char *end, struct row *row,
                     struct recording_fault *fault)
{
    static const char *const columns[] = {"frame", "person", "x", "y"};
    double *const values[] = {&row->frame, &row->person, &row->x, &row->y};
    char field[FIELD_ROOM];
    for (size_t i = 0; i < 4; i++) {
        if (!next_field(&at, end, field)) {
            complain(fault, "%s:%u: the row ends before its %s; a row is: frame person x y", name, line, columns[i]);
            return false;
        }
        if (!read_number(field, values[i]) || (i < 2 && fabs(*values[i]) > 1e9) || fabs(*values[i]) > 1e12) {
            complain(fault, "%s:%u: %s is \"%s\", not a finite number of sensible size; correct or remove the row",
                     name, line, columns[i], field);
            return false;
        }
    }
    if (next_field(&at, end, field)) {
        complain(fault, "%s:%u: \"%s\" follows the y; a row is: frame person x y", name, line, field);
        return false;
    }
    return true;
}

static enum terrane_error read_rows(const char *name, const char *text, size_t size, struct rows *rows,
                                    struct recording_fault *fault)
{
    const char *end = text + size;
    uint32_t line = 0;
    for (const char *at = text; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL) stop = end;
        const char *first = at;
        while (first < stop && is_blank(*first)) first++;
        line++;
        if (first < stop && *first != '#') {
            if (rows->count == ROWS_MAX) {
                complain(fault, "%s:%u: more than %u rows; split the file", name, line, ROWS_MAX);
                return TERRANE_ERR_LIMIT;
            }
            ARRAY_RESERVE(rows->items, rows->room, (size_t)rows->count + 1);
            struct row *row = &rows->items[rows->count];
            if (!read_row(name, line, first, stop, row, fault)) return TERRANE_ERR_CONFIG;
            row->order = rows->count++;
        }
        at = stop < end ? stop + 1 : end;
    }
    return TERRANE_ERR_OK;
}

static int by_person(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    if (a->person != b->person) return a->person < b->person ? -1 : 1;
    if (a->frame != b->frame) return a->frame < b->frame ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

/* Rows to tracks */

static void add_point(struct recording *r, double x, double y)
{
    ARRAY_RESERVE(r->points, r->point_room, (size_t)r->point_count + 1);
    r->points[r->point_count++] = (struct recording_point){(float)x, (float)y};
}

static void add_track(struct recording *r, uint32_t first, double start)
{
    ARRAY_RESERVE(r->tracks, r->track_room, (size_t)r->track_count + 1);
    r->tracks[r->track_count++] =
        (struct track){.first = first, .count = r->point_count - first, .start = (uint32_t)start, .source = r->sources};
}

/* Rows [from, to) are one person without a long gap: points at every step between the first and the last row. */
static void resample(struct recording *r, const struct row *rows, uint32_t from, uint32_t to, double zero)
{
    uint32_t first = r->point_count, at = from;
    double begin = rows[from].frame, end = rows[to - 1].frame;
    for (double frame = begin; frame <= end + 1e-9; frame += FRAMES_A_STEP) {
        while (at + 2 < to && rows[at + 1].frame <= frame) at++;
        const struct row *a = &rows[at], *b = &rows[at + 1];
        double part = (frame - a->frame) / (b->frame - a->frame);
        add_point(r, a->x + (b->x - a->x) * part, a->y + (b->y - a->y) * part);
    }
    if (r->point_count - first >= 2)
        add_track(r, first, floor((begin - zero) / FRAMES_A_STEP));
    else
        r->point_count = first;
}

static enum terrane_error make_tracks(struct recording *r, const char *name, struct rows *rows,
                                      struct recording_fault *fault)
{
    double zero = INFINITY;
    if (rows->count > 0) qsort(rows->items, rows->count, sizeof *rows->items, by_person);
    for (uint32_t i = 0; i < rows->count; i++) zero = fmin(zero, rows->items[i].frame);
    for (uint32_t from = 0, to; from < rows->count; from = to) {
        const struct row *first = &rows->items[from];
        bool fresh = from == 0 || rows->items[from - 1].person != first->person;
        for (to = from + 1; to < rows->count && rows->items[to].person == first->person; to++) {
            double gap = rows->items[to].frame - rows->items[to - 1].frame;
            if (gap == 0) {
                complain(fault, "%s: person %.15g is in frame %.15g twice; remove one of the rows", name, first->person,
                         rows->items[to].frame);
                return TERRANE_ERR_CONFIG;
            }
            if (gap > GAP_STEPS * FRAMES_A_STEP) break;
        }
        if (rows->items[to - 1].frame - zero > STEPS_MAX * FRAMES_A_STEP) {
            complain(fault, "%s: frame %.15g is more than %u steps behind the first; split the file", name,
                     rows->items[to - 1].frame, STEPS_MAX);
            return TERRANE_ERR_LIMIT;
        }
        r->persons += fresh;
        if (to - from >= 2)
            resample(r, rows->items, from, to, zero);
        else
            r->single++;
    }
    return TERRANE_ERR_OK;
}

static int by_start(const void *left, const void *right)
{
    const struct track *a = left, *b = right;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    return a->first < b->first ? -1 : 1;
}

enum terrane_error recording_add(struct recording *r, const char *name, const char *text, size_t size,
                                 struct recording_fault *fault)
{
    struct recording before = *r;
    struct rows rows = {0};
    enum terrane_error error = read_rows(name, text, size, &rows, fault);
    if (error == TERRANE_ERR_OK) error = make_tracks(r, name, &rows, fault);
    if (error == TERRANE_ERR_OK && r->track_count == before.track_count) {
        complain(fault, "%s: nobody is seen in two rows; a recording needs rows of: frame person x y", name);
        error = TERRANE_ERR_CONFIG;
    }
    if (error == TERRANE_ERR_OK) {
        r->rows += rows.count;
        r->sources++;
        qsort(r->tracks + before.track_count, r->track_count - before.track_count, sizeof *r->tracks, by_start);
    } else {
        r->point_count = before.point_count;
        r->track_count = before.track_count;
        r->persons = before.persons;
        r->single = before.single;
    }
    free(rows.items);
    return error;
}

/* Made-up pedestrians */

#define PATH_STEPS  40u /* 16 s */
#define SCENE_M     16.0
#define GROUP_MOST  4u
#define START_STEPS 600u

/* One group walks through the scene side by side; the leader's path decides, the others keep their places. */
static void generate_group(struct recording *r, struct dice *d, uint32_t members)
{
    uint32_t start = dice_below(d, START_STEPS), steps = PATH_STEPS / 2 + dice_below(d, PATH_STEPS);
    double x = dice_between(d, 0, SCENE_M), y = dice_between(d, 0, SCENE_M);
    double heading = dice_between(d, 0, 6.283185307179586);
    double pace = fmax(0.4, 1.3 + 0.3 * dice_normal(d)), speed = pace;
    uint32_t stopped = 0, first = r->point_count;
    for (uint32_t step = 0; step < steps; step++) {
        add_point(r, x, y);
        if (stopped == 0 && dice_unit(d) < 0.01) stopped = 3 + dice_below(d, 15);
        double wanted = stopped > 0 ? 0 : pace;
        stopped -= stopped > 0;
        speed += (wanted - speed) * 0.6;
        heading += 0.08 * dice_normal(d);
        x += cos(heading) * speed * RECORDING_STEP_S;
        y += sin(heading) * speed * RECORDING_STEP_S;
    }
    add_track(r, first, start);
    for (uint32_t member = 1; member < members; member++) {
        double side = 0.7 * member, angle = heading + 1.5707963267948966;
        uint32_t begin = r->point_count;
        for (uint32_t step = 0; step < steps; step++) {
            struct recording_point p = r->points[first + step];
            add_point(r, p.x + cos(angle) * side + 0.03 * dice_normal(d), p.y + sin(angle) * side);
        }
        add_track(r, begin, start);
    }
}

void recording_generate(struct recording *r, uint64_t seed, uint32_t persons)
{
    struct dice d = {seed};
    uint32_t before = r->track_count;
    CHECK(persons > 0);
    for (uint32_t made = 0; made < persons;) {
        uint32_t members = 1 + dice_below(&d, GROUP_MOST);
        if (members > persons - made) members = persons - made;
        generate_group(r, &d, members);
        made += members;
    }
    r->persons += persons;
    r->rows += r->point_count;
    r->sources++;
    qsort(r->tracks + before, r->track_count - before, sizeof *r->tracks, by_start);
}

/* Reading */

double recording_seconds(const struct track *track)
{
    return (track->count - 1) * RECORDING_STEP_S;
}

struct recording_point recording_at(const struct recording *r, const struct track *track, double at_s)
{
    double step = at_s / RECORDING_STEP_S;
    if (!(step > 0)) return r->points[track->first];
    if (step >= track->count - 1) return r->points[track->first + track->count - 1];
    uint32_t whole = (uint32_t)step;
    float part = (float)(step - whole);
    struct recording_point a = r->points[track->first + whole], b = r->points[track->first + whole + 1];
    return (struct recording_point){a.x + (b.x - a.x) * part, a.y + (b.y - a.y) * part};
}

double recording_pace(const struct recording *r)
{
    double sum = 0, count = 0;
    for (uint32_t i = 0; i < r->track_count; i++) {
        const struct track *t = &r->tracks[i];
        for (uint32_t j = t->first; j + 1 < t->first + t->count; j++) {
            double speed =
                hypot((double)r->points[j + 1].x - r->points[j].x, (double)r->points[j + 1].y - r->points[j].y) /
                RECORDING_STEP_S;
            if (speed <= PACE_STILL_M_S) continue;
            sum += speed;
            count++;
        }
    }
    return count > 0 ? sum / count : 0;
}

void recording_close(struct recording *r)
{
    free(r->points);
    free(r->tracks);
    *r = (struct recording){0};
}
