/* What has happened, for people: the last lines of the coordinator's log as JSON, numbered, and the last hand-offs that
 * cell servers have told of.
 *
 * Every decision is a log line with its reason (`event=promoted leaves=4 first="03" server="a" reason="..."`), so the
 * feed of events needs no source of its own. Lines without `event=` are left out.
 * What it is not: complete. Rings hold the latest; numbers tell readers what they have missed. It has no clock.
 * Memory: the struct owns its lines; zero-initialise to open. */
#ifndef TERRANE_CONSOLE_JOURNAL_H
#define TERRANE_CONSOLE_JOURNAL_H

#include "common/core.h"
#include "proto/survey.h"

#define JOURNAL_LINES     512u
#define JOURNAL_CROSSINGS 2048u

struct journal_line {
    uint64_t at_ms; /* since 1970 */
    enum log_level level;
    char *text; /* logfmt, NUL-terminated */
};

struct journal_crossing {
    uint64_t at_ms;
    struct node_id from; /* the server that gave it on */
    struct survey_crossing what;
};

struct journal {
    struct journal_line lines[JOURNAL_LINES];
    struct journal_crossing crossings[JOURNAL_CROSSINGS];
    uint64_t line_count, crossing_count; /* so far: the numbers of the latest */
};

void journal_close(struct journal *j);
void journal_note(struct journal *j, uint64_t at_ms, enum log_level level, const char *line, size_t size);
void journal_note_crossing(struct journal *j, uint64_t at_ms, struct node_id from, const struct survey_crossing *what);

/* Appends an array of what has a number above `after`, oldest first, the latest `most` of them:
 * [{"seq": 12, "at": 1790000000000, "level": "info", "event": "promoted", "leaves": "4", ...}]. All values but seq and
 * at are text, as the log has them. An `after` that is ahead is of a former process: then all. */
void journal_write(const struct journal *j, uint64_t after, uint64_t most, struct writer *json);

#endif
