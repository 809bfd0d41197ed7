/* What every server's main.c does in the same way: read the configuration or leave, say who this process is, say that
 * it is ready, end.
 *
 * Memory: nothing is kept; texts are the caller's. */
#ifndef TERRANE_IO_PROGRAM_H
#define TERRANE_IO_PROGRAM_H

#include "common/config.h"
#include "io/shell.h"
#include "proto/messages.h"

/* Exit codes of all programs. */
enum program_exit { EXIT_WELL = 0, EXIT_NOT_HELD = 1, EXIT_USAGE = 2, EXIT_MISSING = 3 };

/* config_read with this process's environment. --help and --version print and leave with 0, faults with 2. */
void program_configure(struct config *config, int argc, char *const *argv, int *operand);

/* Prints "PROGRAM: what" to stderr and leaves with the code. */
_Noreturn void program_fail(const char *program, enum program_exit code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Name (cut to fit), host name and the link's urls. Feeds beyond region_feeds: the next one is the ghost feed. */
void program_identify(struct node_info *info, const char *name, const struct link_urls *urls, uint32_t region_feeds);

/* "tcp://HOST:PORT" into url[LIMIT_URL]; port 0 stays 0, else base + offset. Fails with EXIT_USAGE if it is too long or
 * beyond 65535. */
void program_url(const char *program, char *url, const char *host, uint64_t base, uint64_t offset);

/* One line on stdout, at once: `ready program=... node=... name=... inbox=URL sub=URL query=URL feeds=URL,URL
 * ghost=URL http=URL`; what there is not is left out. Who started this process may wait for it. */
void program_ready(const char *program, const struct node_info *info, const char *http_url);

/* Lets nng send what it has, then leaves without destructors: receiving sockets must not be closed. */
_Noreturn void program_leave(struct shell *shell, enum program_exit code);

#endif
