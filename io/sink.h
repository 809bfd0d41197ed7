/* Writes log lines to a descriptor, one write a line, so that lines of several processes on one terminal stay whole.
 * A descriptor that would block or is gone loses the line (counted): a log never stops a server.
 * Memory: the struct is the caller's; nothing is allocated. */
#ifndef TERRANE_IO_SINK_H
#define TERRANE_IO_SINK_H

#include "common/log.h"
#include "io/shell.h"

struct sink {
    int fd; /* 2 */
    const char *program;
    enum log_style style;
    enum log_level level; /* less urgent lines are left out */
    uint64_t lost;
};

void sink_write(struct sink *sink, enum log_level level, const char *line, size_t size);
/* For struct shell_options. */
struct shell_log sink_log(struct sink *sink);

#endif
