/* The other way to receive, for comparison only (bench_link): NNG_OPT_RECVFD in an ev_io, drained without blocking.
 * Prints its url, then, after a packet whose stamp is 0, the count, its CPU time and the latencies, as bench_link does.
 */
#include <nng/nng.h>
#include <nng/protocol/pipeline0/pull.h>

#include <arpa/inet.h>
#include <ev.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define ROOM (1u << 20)

static nng_socket pull;
static uint32_t *latencies_us;
static uint64_t count, cpu_us;

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static uint64_t cpu_now_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    uint64_t seconds = (uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec;
    return seconds * 1000000u + (uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec;
}

static void finish(void)
{
    uint64_t report[2] = {count, cpu_now_us() - cpu_us};
    size_t written = fwrite(report, sizeof report, 1, stdout);
    written += fwrite(latencies_us, sizeof *latencies_us, count, stdout);
    fflush(stdout);
    _exit(written > 0 ? 0 : 3);
}

static void readable(struct ev_loop *loop, ev_io *watcher, int events)
{
    nng_msg *message;
    (void)loop, (void)watcher, (void)events;
    while (nng_recvmsg(pull, &message, NNG_FLAG_NONBLOCK) == 0) {
        uint64_t sent_us = 0;
        if (nng_msg_len(message) >= sizeof sent_us) memcpy(&sent_us, nng_msg_body(message), sizeof sent_us);
        nng_msg_free(message);
        if (sent_us == 0) finish();
        if (count == 0) cpu_us = cpu_now_us();
        if (count < ROOM) latencies_us[count++] = (uint32_t)(now_us() - sent_us);
    }
}

int main(void)
{
    nng_listener listener;
    nng_sockaddr address;
    int fd;
    ev_io watcher;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    latencies_us = calloc(ROOM, sizeof *latencies_us);
    if (latencies_us == NULL || nng_pull0_open(&pull) != 0 ||
        nng_listen(pull, "tcp://127.0.0.1:0", &listener, 0) != 0 ||
        nng_listener_get_addr(listener, NNG_OPT_LOCADDR, &address) != 0 ||
        nng_socket_get_int(pull, NNG_OPT_RECVFD, &fd) != 0)
        return 3;
    printf("tcp://127.0.0.1:%u\n", ntohs(address.s_in.sa_port));
    fflush(stdout);
    ev_io_init(&watcher, readable, fd, EV_READ);
    ev_io_start(EV_DEFAULT, &watcher);
    ev_run(EV_DEFAULT, 0);
    return 0;
}
