#include "tools/child.h"

#include "common/check.h"
#include "io/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char self[] = "/proc/self/exe";

static int redirect(posix_spawn_file_actions_t *actions, const struct child_options *options, int write_end)
{
    int error = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (error == 0 && write_end >= 0) error = posix_spawn_file_actions_adddup2(actions, write_end, STDOUT_FILENO);
    if (error == 0 && options->log != NULL)
        error =
            posix_spawn_file_actions_addopen(actions, STDERR_FILENO, options->log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    return error;
}

static int spawn(struct child *c, const struct child_options *options, char *const *arguments, char *const *variables,
                 int write_end)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) return error;
    error = posix_spawnattr_init(&attributes);
    if (error == 0) {
        error = redirect(&actions, options, write_end);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &all);
        if (error == 0) error = posix_spawn(&c->pid, self, &actions, &attributes, arguments, variables);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* This process's environment with one variable more, in front so that it wins. NULL: no memory. The caller frees. */
static char **variables_with(const char *variable)
{
    size_t count = 0, kept = 0;
    while (environ[count] != NULL) count++;
    char **out = calloc(count + 2, sizeof *out);
    if (out == NULL) return NULL;
    if (variable != NULL) out[kept++] = (char *)(uintptr_t)variable;
    for (size_t i = 0; i < count; i++) {
        size_t name = variable != NULL ? strcspn(variable, "=") + 1 : 0;
        if (variable == NULL || strncmp(environ[i], variable, name) != 0) out[kept++] = environ[i];
    }
    return out;
}

static int start(struct child *c, const struct child_options *options, int write_end)
{
    char parent[24];
    char *arguments[CHILD_ARGUMENTS + 4] = {(char *)"terrane", (char *)"tether", parent};
    for (size_t count = 0; options->argv[count] != NULL; count++) {
        CHECK(count < CHILD_ARGUMENTS);
        arguments[count + 3] = options->argv[count];
    }
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    char **variables = variables_with(options->variable);
    if (variables == NULL) return ENOMEM;
    int error = spawn(c, options, arguments, variables, write_end);
    free(variables);
    return error;
}

bool child_start(struct child *c, const struct child_options *options)
{
    int ends[2] = {-1, -1};
    *c = (struct child){.name = options->name, .out = -1, .end = -1};
    if (!options->own_output && pipe2(ends, O_CLOEXEC) != 0) return false;
    int error = start(c, options, ends[1]);
    if (ends[1] >= 0) close(ends[1]);
    c->out = ends[0];
    if (error != 0) {
        child_close(c);
        c->pid = 0;
        errno = error;
        return false;
    }
    if (c->out >= 0) CHECK(fcntl(c->out, F_SETFL, O_NONBLOCK) == 0);
    c->end = pidfd_open(c->pid, 0); /* without it, its end is seen a little later */
    return true;
}

/* Moves the first whole line of what is pending to c->line. Longer ones are cut. */
static bool take_line(struct child *c)
{
    char *stop = memchr(c->part, '\n', c->pending);
    if (stop == NULL && c->pending < sizeof c->part) return false;
    size_t size = stop != NULL ? (size_t)(stop - c->part) : c->pending - 1;
    size_t used = stop != NULL ? size + 1 : c->pending;
    memcpy(c->line, c->part, size);
    c->line[size] = '\0';
    memmove(c->part, c->part + used, c->pending - used);
    c->pending -= used;
    return true;
}

bool child_read(struct child *c)
{
    for (;;) {
        if (take_line(c)) return true;
        if (c->out < 0) return false;
        ssize_t got = read(c->out, c->part + c->pending, sizeof c->part - c->pending);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
        if (got <= 0) {
            close(c->out);
            c->out = -1;
            return false;
        }
        c->pending += (size_t)got;
    }
}

bool child_expect(struct child *c, const char *prefix, int timeout_ms)
{
    uint64_t until_us = loop_now_us() + (uint64_t)timeout_ms * 1000;
    for (;;) {
        while (child_read(c))
            if (strncmp(c->line, prefix, strlen(prefix)) == 0) return true;
        uint64_t now_us = loop_now_us();
        if (c->out < 0 || now_us >= until_us) return false;
        struct pollfd waiting = {.fd = c->out, .events = POLLIN};
        (void)poll(&waiting, 1, (int)((until_us - now_us) / 1000) + 1);
    }
}

bool child_ended(struct child *c)
{
    if (c->pid == 0 || c->ended) return c->ended;
    struct rusage usage;
    pid_t pid = wait4(c->pid, &c->status, WNOHANG, &usage);
    c->ended = pid == c->pid;
    if (c->ended)
        c->cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    return c->ended;
}

void child_signal(struct child *c, int signal)
{
    /* Not waited for yet, so the id still is this child's, be it dead or not. */
    if (c->pid != 0 && !c->ended) kill(c->pid, signal);
}

bool child_wait(struct child *c, int timeout_ms)
{
    uint64_t until_us = loop_now_us() + (uint64_t)timeout_ms * 1000;
    while (!child_ended(c) && c->pid != 0) {
        if (loop_now_us() >= until_us) return false;
        (void)poll(NULL, 0, 5);
    }
    return true;
}

void child_describe(const struct child *c, char *out, size_t room)
{
    if (!c->ended)
        snprintf(out, room, "still running");
    else if (WIFSIGNALED(c->status))
        snprintf(out, room, "signal %d (%s)", WTERMSIG(c->status), strsignal(WTERMSIG(c->status)));
    else
        snprintf(out, room, "exit status %d", WEXITSTATUS(c->status));
}

void child_close(struct child *c)
{
    if (c->out >= 0) close(c->out);
    if (c->end >= 0) close(c->end);
    c->out = c->end = -1;
}

int child_tether(int argc, char *const *argv)
{
    if (argc < 3) {
        fputs(
            "terrane tether: usage: terrane tether PARENT PROGRAM ARGUMENT...; for terrane up and terrane agent only\n",
            stderr);
        return 2;
    }
    long parent = strtol(argv[1], NULL, 10);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || (long)getppid() != parent) {
        fputs("terrane tether: the parent is gone already\n", stderr);
        return 1;
    }
    execvp(argv[2], argv + 2);
    fprintf(stderr, "terrane tether: %s can't be started: %s\n", argv[2], strerror(errno));
    return 127;
}
