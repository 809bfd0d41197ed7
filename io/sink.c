#include "io/sink.h"

#include <time.h>
#include <unistd.h>

void sink_write(struct sink *sink, enum log_level level, const char *line, size_t size)
{
    if (level < sink->level) return;
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    struct log_entry entry = {.wall_us = (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u,
                              .level = level,
                              .program = sink->program,
                              .line = line,
                              .size = size};
    char out[LOG_LINE_ROOM];
    size_t length = log_format(sink->style, &entry, out);
    if (write(sink->fd, out, length) != (ssize_t)length) sink->lost++;
}

static void write_line(void *context, enum log_level level, const char *line, size_t size)
{
    sink_write(context, level, line, size);
}

struct shell_log sink_log(struct sink *sink)
{
    return (struct shell_log){.context = sink, .write = write_line};
}
