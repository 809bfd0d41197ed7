/* A receiving process for the link's tests: `io_peer inbox|sub URL` listens, prints its url, then every message's bytes
 * as a line, until it is killed or its parent goes. */
#include "io/link.h"
#include "io/loop.h"
#include "io/ready.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void ring(void *context)
{
    ready_ring(context);
}

static void print(void *context, const struct event *event)
{
    (void)context;
    if (event->kind != EVENT_MESSAGE) return;
    printf("%.*s\n", (int)event->size, (const char *)event->bytes);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct ready ready;
    if (argc != 3 || ready_open(&ready) != TERRANE_ERR_OK) return 2;
    bool inbox = strcmp(argv[1], "inbox") == 0;
    struct link_options options = {.wake = ring, .wake_context = &ready};
    *(inbox ? &options.inbox_url : &options.sub_url) = argv[2];
    struct link *l;
    struct link_fault fault;
    if (link_open(&options, &l, &fault) != TERRANE_ERR_OK) {
        fprintf(stderr, "io_peer: %s\n", fault.text);
        return 2;
    }
    link_watch(l, "", 0);
    printf("%s\n", inbox ? link_urls(l)->inbox : link_urls(l)->sub);
    fflush(stdout);
    for (;;) {
        struct pollfd fd = {.fd = ready.fd, .events = POLLIN};
        poll(&fd, 1, -1);
        ready_clear(&ready);
        while (link_drain(l, 256, print, NULL)) continue;
    }
}
