/* One hop over the inbox: how long a packet takes from link_send to the receiving core's step, and what that costs the
 * receiver, next to the same hop with nng's RECVFD in a bare libev loop (tests/io/recvfd.c).
 *
 * The sender is this process; the receiver is a child, this program again (`--receive`) or io_recvfd. The two take
 * turns in short rounds, so that whatever else runs on the machine hits both. Clock: CLOCK_MONOTONIC, one for all
 * processes. A receiver prints its url, then, after the packet that ends the round, a struct report and the latencies.
 */
#include "common/config.h"
#include "io/program.h"
#include "io/ready.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM      "bench_link"
#define PACKET_BYTES 1024u
#define PEER         ((struct node_id){77})

/* The head of every packet; sent_us 0 ends the round. */
struct stamp {
    uint64_t sent_us;
};

struct report {
    uint64_t count, cpu_us; /* CPU of the receiving process from its first packet to its last */
};

static uint64_t cpu_now_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    uint64_t seconds = (uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec;
    return seconds * 1000000u + (uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec;
}

static void write_all(const void *bytes, size_t size)
{
    if (fwrite(bytes, 1, size, stdout) != size) _exit(EXIT_MISSING);
    fflush(stdout);
}

/* The receiving core. */

struct receiver {
    struct shell *shell;
    uint32_t *latencies_us;
    uint64_t count, room, cpu_us;
};

static void receive(void *core, const struct event *in, uint64_t now_us, struct outbox *out)
{
    struct receiver *r = core;
    struct stamp stamp;
    (void)out;
    if (in->kind != EVENT_MESSAGE || in->size < sizeof stamp) return;
    memcpy(&stamp, in->bytes, sizeof stamp);
    if (stamp.sent_us == 0) {
        struct report report = {.count = r->count, .cpu_us = cpu_now_us() - r->cpu_us};
        write_all(&report, sizeof report);
        write_all(r->latencies_us, r->count * sizeof *r->latencies_us);
        _exit(EXIT_WELL);
    }
    if (r->count == 0) r->cpu_us = cpu_now_us();
    if (r->count < r->room) r->latencies_us[r->count++] = (uint32_t)(now_us - stamp.sent_us);
}

static uint64_t never_us(const void *core)
{
    (void)core;
    return UINT64_MAX;
}

_Noreturn static void run_receiver(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct receiver r = {.room = 1u << 20};
    struct link_fault fault;
    struct shell_options options = {.link = {.inbox_url = "tcp://127.0.0.1:0"}};
    r.latencies_us = calloc(r.room, sizeof *r.latencies_us);
    if (r.latencies_us == NULL || shell_open(&options, &r.shell, &fault) != TERRANE_ERR_OK) _exit(EXIT_MISSING);
    shell_start(r.shell, &(struct shell_core){.core = &r, .step = receive, .deadline_us = never_us});
    printf("%s\n", shell_urls(r.shell)->inbox);
    fflush(stdout);
    shell_run(r.shell);
    _exit(EXIT_WELL);
}

/* The sender. */

enum figure { FIGURE_P50, FIGURE_P99, FIGURE_CPU, FIGURES };

struct figures {
    double of[FIGURES]; /* us */
};

struct child {
    pid_t pid;
    FILE *out;
    char url[LIMIT_URL];
};

static void child_start(struct child *c, char *const *argv)
{
    int ends[2];
    posix_spawn_file_actions_t actions;
    char *const environment[] = {NULL};
    if (pipe(ends) != 0) program_fail(PROGRAM, EXIT_MISSING, "no pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    if (posix_spawn(&c->pid, argv[0], &actions, NULL, argv, environment) != 0)
        program_fail(PROGRAM, EXIT_MISSING, "can't start %s: build it first", argv[0]);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    c->out = fdopen(ends[0], "r");
    if (c->out == NULL || fgets(c->url, sizeof c->url, c->out) == NULL)
        program_fail(PROGRAM, EXIT_MISSING, "%s gives no url", argv[0]);
    c->url[strcspn(c->url, "\n")] = '\0';
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* What the child measured. */
static struct figures child_report(struct child *c)
{
    struct report report;
    if (fread(&report, sizeof report, 1, c->out) != 1 || report.count == 0)
        program_fail(PROGRAM, EXIT_MISSING, "a receiver has died");
    uint32_t *latencies_us = calloc(report.count, sizeof *latencies_us);
    if (latencies_us == NULL || fread(latencies_us, sizeof *latencies_us, report.count, c->out) != report.count)
        program_fail(PROGRAM, EXIT_MISSING, "a receiver has died");
    qsort(latencies_us, report.count, sizeof *latencies_us, by_value);
    struct figures figures = {.of = {[FIGURE_P50] = latencies_us[report.count / 2],
                                     [FIGURE_P99] = latencies_us[report.count * 99 / 100],
                                     [FIGURE_CPU] = (double)report.cpu_us / (double)report.count}};
    free(latencies_us);
    waitpid(c->pid, NULL, 0);
    fclose(c->out);
    return figures;
}

static void ring(void *ready)
{
    ready_ring(ready);
}

static void note_up(void *up, const struct event *event)
{
    if (event->kind == EVENT_PEER_UP) *(bool *)up = true;
}

static void sleep_until(uint64_t at_us)
{
    struct timespec at = {.tv_sec = (time_t)(at_us / 1000000u), .tv_nsec = (long)(at_us % 1000000u) * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0) continue;
}

/* One packet every 1/rate s, on its due time. */
static void send_paced(struct link *l, uint64_t rate, uint64_t duration_us)
{
    uint8_t packet[PACKET_BYTES] = {0};
    uint64_t start_us = loop_now_us();
    for (uint64_t i = 0; i * 1000000u / rate < duration_us; i++) {
        sleep_until(start_us + i * 1000000u / rate);
        struct stamp stamp = {.sent_us = loop_now_us()};
        memcpy(packet, &stamp, sizeof stamp);
        link_send(l, PEER, packet, sizeof packet);
        link_flush(l);
    }
}

/* A packet may be dropped, also this one: until the child begins to report. */
static void send_end(struct link *l, const struct child *child)
{
    uint8_t packet[PACKET_BYTES] = {0};
    struct pollfd fd = {.fd = fileno(child->out), .events = POLLIN};
    for (int tries = 0; poll(&fd, 1, 50) == 0; tries++) {
        if (tries == 200) program_fail(PROGRAM, EXIT_MISSING, "a receiver does not end");
        link_send(l, PEER, packet, sizeof packet);
        link_flush(l);
    }
}

static struct figures round_with(char *const *argv, uint64_t rate, uint64_t duration_us)
{
    struct child child;
    struct ready ready;
    struct link *l;
    struct link_fault fault;
    bool up = false;
    child_start(&child, argv);
    if (ready_open(&ready) != TERRANE_ERR_OK ||
        link_open(&(struct link_options){.wake = ring, .wake_context = &ready}, &l, &fault) != TERRANE_ERR_OK ||
        link_peer(l, PEER, child.url) != TERRANE_ERR_OK)
        program_fail(PROGRAM, EXIT_MISSING, "no link to %s", child.url);
    while (!up) {
        struct pollfd fd = {.fd = ready.fd, .events = POLLIN};
        poll(&fd, 1, 100);
        ready_clear(&ready);
        link_drain(l, 16, note_up, &up);
    }
    send_paced(l, rate, duration_us);
    send_end(l, &child);
    struct figures figures = child_report(&child);
    link_close(l);
    ready_close(&ready);
    return figures;
}

/* Results */

#define ROUNDS_MAX 100u

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Over the rounds: a burst of foreign work spoils some rounds' tails, not the median of the tails. */
static double median(const struct figures *rounds, uint64_t count, enum figure figure)
{
    double values[ROUNDS_MAX];
    for (uint64_t i = 0; i < count; i++) values[i] = rounds[i].of[figure];
    qsort(values, count, sizeof *values, by_size);
    return values[count / 2];
}

static void run_case(const char *self, const char *other, uint64_t rate, uint64_t rounds, uint64_t round_us)
{
    static const char *const names[] = {"p50", "p99", "cpu"};
    char *const shell[] = {(char *)(uintptr_t)self, (char[]){"--receive"}, NULL};
    char *const recvfd[] = {(char *)(uintptr_t)other, NULL};
    struct figures ours[ROUNDS_MAX], theirs[ROUNDS_MAX];
    for (uint64_t i = 0; i < rounds; i++) {
        ours[i] = round_with(shell, rate, round_us);
        theirs[i] = round_with(recvfd, rate, round_us);
    }
    for (int f = 0; f < FIGURES; f++) {
        double value = median(ours, rounds, (enum figure)f), reference = median(theirs, rounds, (enum figure)f);
        printf("{\"bench\":\"link\",\"case\":\"inbox/%" PRIu64 "\",\"figure\":\"%s\",\"value\":%.4g,\"unit\":\"us\","
               "\"reference\":\"recvfd\",\"reference_value\":%.4g,\"ratio\":%.3g}\n",
               rate, names[f], value, reference, value > 0 ? reference / value : 0.0);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct {
        uint64_t rounds, round_ms;
        bool quick, list, receive;
    } flags;
    static const struct config_field fields[] = {
        {.name = "rounds",
         .kind = CONFIG_UINT,
         .value = &flags.rounds,
         .preset = "15",
         .min = 1,
         .max = ROUNDS_MAX,
         .help = "Rounds of each receiver in each case."},
        {.name = "round-ms",
         .kind = CONFIG_UINT,
         .value = &flags.round_ms,
         .preset = "1000",
         .min = 10,
         .max = 60000,
         .unit = "MS",
         .help = "Length of a round."},
        {.name = "quick", .kind = CONFIG_BOOL, .value = &flags.quick, .preset = "0", .help = "Five short rounds each."},
        {.name = "list", .kind = CONFIG_BOOL, .value = &flags.list, .preset = "0", .help = "Print the cases' names."},
        {.name = "receive", .kind = CONFIG_BOOL, .value = &flags.receive, .preset = "0", .help = "Be the receiver."},
    };
    static const uint64_t rates[] = {200, 2000, 10000};
    struct config config = {.program = PROGRAM,
                            .summary = "Latency and cost of one hop over the inbox, in us; case inbox/MESSAGES_PER_S.",
                            .version = TERRANE_VERSION,
                            .fields = fields,
                            .field_count = sizeof fields / sizeof *fields};
    program_configure(&config, argc, argv, NULL);
    if (flags.receive) run_receiver();
    char self[4096], other[4096 + 16];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    if (size <= 0) program_fail(PROGRAM, EXIT_MISSING, "/proc is not mounted");
    self[size] = '\0';
    snprintf(other, sizeof other, "%.*s/io_recvfd", (int)(strrchr(self, '/') - self), self);
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        if (flags.list)
            printf("inbox/%" PRIu64 "\n", rates[i]);
        else
            run_case(self, other, rates[i], flags.quick ? 5 : flags.rounds,
                     (flags.quick ? 500 : flags.round_ms) * 1000);
    }
    _exit(EXIT_WELL);
}
