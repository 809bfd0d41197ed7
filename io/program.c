#include "io/program.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *variable(const char *name)
{
    return getenv(name);
}

void program_configure(struct config *config, int argc, char *const *argv, int *operand)
{
    static struct config_text text; /* too large for the stack of a careful reader */
    config->variable = variable;
    switch (config_read(config, argc, argv, operand, &text)) {
    case CONFIG_GO: return;
    case CONFIG_SHOW: fputs(text.text, stdout); exit(EXIT_WELL);
    case CONFIG_BAD: fprintf(stderr, "%s: %s", config->program, text.text); exit(EXIT_USAGE);
    }
}

_Noreturn void program_fail(const char *program, enum program_exit code, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s: ", program);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    _exit((int)code);
}

void program_identify(struct node_info *info, const char *name, const struct link_urls *urls, uint32_t region_feeds)
{
    snprintf(info->name, sizeof info->name, "%s", name);
    if (gethostname(info->host, sizeof info->host - 1) != 0) snprintf(info->host, sizeof info->host, "unknown");
    info->host[sizeof info->host - 1] = '\0';
    memcpy(info->inbox_url, urls->inbox, LIMIT_URL);
    memcpy(info->sub_url, urls->sub, LIMIT_URL);
    memcpy(info->query_url, urls->query, LIMIT_URL);
    info->feed_count = region_feeds;
    for (uint32_t i = 0; i < region_feeds; i++) memcpy(info->feed_urls[i], urls->feeds[i], LIMIT_URL);
    memcpy(info->ghost_feed_url, urls->feeds[region_feeds], LIMIT_URL);
}

void program_url(const char *program, char *url, const char *host, uint64_t base, uint64_t offset)
{
    uint64_t port = base == 0 ? 0 : base + offset;
    int size = snprintf(url, LIMIT_URL, "tcp://%s:%" PRIu64, host, port);
    if (size < 0 || (size_t)size >= LIMIT_URL)
        program_fail(program, EXIT_USAGE, "the host \"%.100s\" is too long", host);
    if (port > 65535)
        program_fail(program, EXIT_USAGE, "port %" PRIu64 " does not exist: choose a smaller first port", port);
}

static void put(const char *key, const char *value)
{
    if (value[0] != '\0') printf(" %s=%s", key, value);
}

void program_ready(const char *program, const struct node_info *info, const char *http_url)
{
    printf("ready program=%s node=%016" PRIx64, program, info->node.v);
    put("name", info->name);
    put("inbox", info->inbox_url);
    put("sub", info->sub_url);
    put("query", info->query_url);
    for (uint32_t i = 0; i < info->feed_count; i++) printf("%s%s", i == 0 ? " feeds=" : ",", info->feed_urls[i]);
    put("ghost", info->ghost_feed_url);
    put("http", http_url);
    putchar('\n');
    fflush(stdout);
}

_Noreturn void program_leave(struct shell *shell, enum program_exit code)
{
    shell_finish(shell);
    fflush(stdout);
    _exit((int)code);
}
