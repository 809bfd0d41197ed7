/* Child processes of `terrane up` and `terrane agent`: started by posix_spawn (nng must not live through a fork), tied
 * to their parent, stopped by their own id.
 *
 * A child is started through `terrane tether`, which asks the kernel to end it when its parent ends, however that
 * happens, and then becomes the program. It has its own process group, so that a terminal's interrupt reaches only the
 * parent, who then stops everybody in order.
 * What it is not: no supervisor: nothing is started again (agent.h does).
 * Memory: the struct is the caller's; child_close releases its descriptors. */
#ifndef TERRANE_TOOLS_CHILD_H
#define TERRANE_TOOLS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CHILD_ARGUMENTS 64u
#define CHILD_LINE      4096u

struct child {
    const char *name;
    pid_t pid;             /* 0: never started */
    int out;               /* reads what it prints; -1: closed, or not read */
    int end;               /* readable once it has ended (a pidfd); -1: closed */
    bool ended;            /* status holds */
    int status;            /* as waitpid says */
    double cpu_s;          /* that it has used, once it has ended */
    char line[CHILD_LINE]; /* the last whole line that it printed */
    size_t pending;        /* bytes behind it that are no line yet */
    char part[CHILD_LINE];
};

struct child_options {
    const char *name;
    char *const *argv;    /* argv[0]: a path or a name in PATH */
    const char *log;      /* its stderr is appended to that file; NULL: left alone */
    const char *variable; /* "NAME=value", one more in its environment; NULL: none */
    bool own_output;      /* it prints where its parent does: `out` is -1 */
};

/* False: errno says why. */
bool child_start(struct child *c, const struct child_options *options);
/* Takes what it has printed so far without waiting; true if c->line is a new line. False too at its end (out is -1
 * then). Call it again until it says false. */
bool child_read(struct child *c);
/* Waits at most timeout_ms for a line that begins with `prefix`; false: it never came. */
bool child_expect(struct child *c, const char *prefix, int timeout_ms);
/* Looks whether it has ended, without waiting. */
bool child_ended(struct child *c);
void child_signal(struct child *c, int signal);   /* nothing if it has ended or was never started */
bool child_wait(struct child *c, int timeout_ms); /* true: it has ended */
/* "exit status 3", "signal 11 (Segmentation fault)" */
void child_describe(const struct child *c, char *out, size_t room);
void child_close(struct child *c);

/* `terrane tether PARENT PROGRAM ARGUMENT...`: does not return but with an exit code. */
int child_tether(int argc, char *const *argv);

#endif
