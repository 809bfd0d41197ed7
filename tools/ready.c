/* terrane ready: asks a server's /readyz, for container health checks and scripts that wait. */
#include "io/fetch.h"
#include "io/loop.h"
#include "io/program.h"
#include "tools/command.h"

#include <poll.h>
#include <stdio.h>

#define NAME    "terrane ready"
#define LOOK_MS 100
#define ASK_MS  2000u

static struct flags {
    const char *http;
    uint64_t wait_ms;
} flags;

static const struct config_field fields[] = {
    {.name = "http",
     .kind = CONFIG_TEXT,
     .value = &flags.http,
     .preset = "127.0.0.1:7080",
     .unit = "HOST:PORT",
     .help = "Where the server's --http is."},
    {.name = "wait",
     .kind = CONFIG_UINT,
     .value = &flags.wait_ms,
     .preset = "0",
     .min = 0,
     .max = 3600000,
     .unit = "MS",
     .help = "Asks again until it is ready, for so long at most."},
};

static volatile bool stop;

int command_ready(int argc, char **argv)
{
    struct writer body = {0};
    unsigned status = 0;
    command_configure(NAME, "Asks a server whether it is ready; exit code 0 if so, 1 if not, and why.", NULL, fields,
                      sizeof fields / sizeof *fields, argc, argv, NULL);
    command_heed_signals(&stop);
    uint64_t until_us = loop_now_us() + flags.wait_ms * 1000;
    for (;;) {
        enum terrane_error error = fetch(flags.http, "/readyz", ASK_MS, &status, &body);
        if (error == TERRANE_ERR_OK && status == 200) break;
        if (loop_now_us() >= until_us || stop) {
            if (error == TERRANE_ERR_OK)
                printf("%s is not ready: %.*s", flags.http, (int)body.size, (const char *)body.data);
            else
                printf("%s does not say whether it is ready: %s\n", flags.http, terrane_error_text(error));
            return EXIT_NOT_HELD;
        }
        (void)poll(NULL, 0, LOOK_MS);
    }
    printf("%s is ready\n", flags.http);
    return EXIT_WELL;
}
