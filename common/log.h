/* Log lines as bytes: logfmt or JSON, one line a call. Pure formatting; io/sink writes them.
 *
 * Input is what a core says with OUTPUT_LOG: logfmt pairs without time and level, e.g.
 *     event=assign leaf=03 server=a epoch=4 reason="joined late"
 * A word without '=' at the start is taken as the message: `server joined name=a` is msg="server joined" name=a.
 * Memory: the caller's buffer. Nothing is allocated; a line that does not fit is cut and marked cut=true. */
#ifndef TERRANE_COMMON_LOG_H
#define TERRANE_COMMON_LOG_H

#include "common/core.h"

enum log_style { LOG_LOGFMT, LOG_JSON };

#define LOG_LINE_ROOM 2048u

struct log_entry {
    uint64_t wall_us; /* since 1970 */
    enum log_level level;
    const char *program;
    const char *line; /* need not be NUL-terminated */
    size_t size;
};

/* Names for flags, in order of enum log_level / log_style; for CONFIG_CHOICE. */
#define LOG_LEVEL_CHOICES ((const char *const[]){"debug", "info", "warning", "error", NULL})
#define LOG_STYLE_CHOICES ((const char *const[]){"logfmt", "json", NULL})

/* Writes one line with its newline into out[LOG_LINE_ROOM]; returns its size. Control characters are escaped, so that
 * one entry is one line whatever it holds. */
size_t log_format(enum log_style style, const struct log_entry *entry, char *out);

#endif
