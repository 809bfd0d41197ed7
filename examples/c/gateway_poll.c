/* A complete gateway on a plain poll loop: WALKERS players walk at the middle of the world for SECONDS.
 * Usage: gateway_poll COORDINATOR_URL [WALKERS [SECONDS [FIRST_ID [METRICS_FILE]]]] */
#include "walkers.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STEP_MS 50

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: gateway_poll COORDINATOR_URL [WALKERS [SECONDS [FIRST_ID [METRICS_FILE]]]]\n");
        return 2;
    }
    struct walkers walkers = {.count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 10,
                              .first_id = argc > 4 ? strtoull(argv[4], NULL, 10) : 1};
    long seconds = argc > 3 ? strtol(argv[3], NULL, 10) : 10;
    if (walkers.count > WALKERS_MAX) walkers.count = WALKERS_MAX;
    char fault[256] = "";
    struct terrane_options options = {
        .coordinator_url = argv[1], .name = "example-poll", .fault = fault, .fault_size = sizeof fault};
    walkers_listen(&walkers, &options);
    if (terrane_open(&options, &walkers.world) != TERRANE_ERR_OK) {
        fprintf(stderr, "gateway_poll: %s\n", fault);
        return 3;
    }
    int64_t end = now_ms() + seconds * 1000, step = now_ms() + STEP_MS;
    while (now_ms() < end) {
        int64_t wait = step - now_ms();
        struct pollfd poll_fd = {.fd = terrane_fd(walkers.world), .events = POLLIN};
        if (wait > 0 && poll(&poll_fd, 1, (int)wait) > 0) terrane_dispatch(walkers.world);
        if (now_ms() < step) continue;
        walkers_walk(&walkers, STEP_MS / 1000.0);
        step += STEP_MS;
    }
    walkers_report(&walkers);
    if (argc > 5) walkers_write_metrics(&walkers, argv[5]);
    bool well = walkers.entered == walkers.count;
    terrane_close(walkers.world);
    return well ? 0 : 1;
}
