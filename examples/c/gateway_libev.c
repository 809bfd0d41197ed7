/* The same gateway on libev: terrane_fd is one more watcher.
 * Usage: gateway_libev COORDINATOR_URL [WALKERS [SECONDS [FIRST_ID]]] */
#include "walkers.h"

#include <ev.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP_S 0.05

static void on_readable(struct ev_loop *loop, ev_io *watcher, int events)
{
    (void)loop, (void)events;
    terrane_dispatch(((struct walkers *)watcher->data)->world);
}

static void on_step(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)loop, (void)events;
    walkers_walk(watcher->data, STEP_S);
}

static void on_end(struct ev_loop *loop, ev_timer *watcher, int events)
{
    (void)watcher, (void)events;
    ev_break(loop, EVBREAK_ALL);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: gateway_libev COORDINATOR_URL [WALKERS [SECONDS [FIRST_ID]]]\n");
        return 2;
    }
    struct walkers walkers = {.count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 10,
                              .first_id = argc > 4 ? strtoull(argv[4], NULL, 10) : 1};
    double seconds = argc > 3 ? strtod(argv[3], NULL) : 10;
    if (walkers.count > WALKERS_MAX) walkers.count = WALKERS_MAX;
    char fault[256] = "";
    struct terrane_options options = {
        .coordinator_url = argv[1], .name = "example-libev", .fault = fault, .fault_size = sizeof fault};
    walkers_listen(&walkers, &options);
    if (terrane_open(&options, &walkers.world) != TERRANE_ERR_OK) {
        fprintf(stderr, "gateway_libev: %s\n", fault);
        return 3;
    }
    struct ev_loop *loop = ev_default_loop(0);
    ev_io readable;
    ev_timer step, end;
    ev_io_init(&readable, on_readable, terrane_fd(walkers.world), EV_READ);
    ev_timer_init(&step, on_step, STEP_S, STEP_S);
    ev_timer_init(&end, on_end, seconds, 0);
    readable.data = step.data = &walkers;
    ev_io_start(loop, &readable);
    ev_timer_start(loop, &step);
    ev_timer_start(loop, &end);
    ev_run(loop, 0);
    walkers_report(&walkers);
    bool well = walkers.entered == walkers.count;
    terrane_close(walkers.world);
    return well ? 0 : 1;
}
