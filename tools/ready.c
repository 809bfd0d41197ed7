/* terrane ready: asks a server's /readyz, for container health checks and scripts that wait. */
#include "io/fetch.h"
#include "io/loop.h"
#include "io/program.h"
#include "proto/json.h"
#include "tools/command.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define NAME    "terrane ready"
#define LOOK_MS 100
#define ASK_MS  2000u

static struct flags {
    const char *http;
    uint64_t wait_ms;
    bool json;
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
    {.name = "json",
     .kind = CONFIG_BOOL,
     .value = &flags.json,
     .preset = "0",
     .help = "One object: whom it asked, whether that is ready, and why not."},
};

static volatile bool stop;

/* `why`: "" if it is ready. */
static int answer(bool ready, const char *why)
{
    if (flags.json) {
        struct writer json = {0};
        json_open(&json, '{');
        json_key(&json, "http"), json_text(&json, flags.http);
        json_key(&json, "ready"), json_bool(&json, ready);
        json_key(&json, "why"), json_text(&json, why);
        json_close(&json, '}');
        printf("%.*s\n", (int)json.size, (const char *)json.data);
        writer_close(&json);
    } else if (ready) {
        printf("%s is ready\n", flags.http);
    } else {
        printf("%s %s\n", flags.http, why);
    }
    return ready ? EXIT_WELL : EXIT_NOT_HELD;
}

int command_ready(int argc, char **argv)
{
    struct writer body = {0};
    unsigned status = 0;
    char why[512];
    command_configure(NAME, "Asks a server whether it is ready; exit code 0 if so, 1 if not, and why.", NULL, fields,
                      sizeof fields / sizeof *fields, argc, argv, NULL);
    command_heed_signals(&stop);
    uint64_t until_us = loop_now_us() + flags.wait_ms * 1000;
    for (;;) {
        enum terrane_error error = fetch(flags.http, "/readyz", ASK_MS, &status, &body);
        if (error == TERRANE_ERR_OK && status == 200) return answer(true, "");
        if (loop_now_us() >= until_us || stop) {
            if (error == TERRANE_ERR_OK)
                snprintf(why, sizeof why, "is not ready: %.*s", (int)body.size, (const char *)body.data);
            else
                snprintf(why, sizeof why, "does not say whether it is ready: %s", terrane_error_text(error));
            why[strcspn(why, "\n")] = '\0';
            return answer(false, why);
        }
        (void)poll(NULL, 0, LOOK_MS);
    }
}
