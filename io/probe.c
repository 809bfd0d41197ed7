#include "io/probe.h"

#include "common/check.h"
#include "io/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct probe {
    struct probe_options options;
    struct http *http;
    struct metrics metrics; /* of the core, and about HTTP; the shell has its own */
    struct metrics_text text;
};

static void put_http(const struct http *http, struct metrics *m)
{
    static const char name[] = "terrane_http_requests_total", help[] = "HTTP requests, by what became of them.";
    struct http_counters c;
    http_counters(http, &c);
    metrics_put(m, METRIC_COUNTER, name, "result=\"handled\"", help, c.answered);
    metrics_put(m, METRIC_COUNTER, name, "result=\"not_found\"", help, c.not_found);
    metrics_put(m, METRIC_COUNTER, name, "result=\"refused_method\"", help, c.refused_method);
    metrics_put(m, METRIC_COUNTER, name, "result=\"refused_rate\"", help, c.refused_rate);
    metrics_put(m, METRIC_COUNTER, "terrane_http_sent_bytes_total", "", "Bytes of HTTP bodies sent.", c.bytes);
    metrics_put(m, METRIC_COUNTER, "terrane_http_connections_refused_total", "",
                "HTTP connections refused because there were too many.", c.refused_connections);
    metrics_put(m, METRIC_GAUGE, "terrane_http_connections", "", "HTTP connections now.", c.connections);
}

static void metrics_asked(void *context, const struct http_request *request, struct http_answer *out)
{
    struct probe *p = context;
    const struct probe_core *core = &p->options.core;
    char labels[128];
    (void)request;
    snprintf(labels, sizeof labels, "program=\"%s\",version=\"%s\"", p->options.program, p->options.version);
    metrics_put(&p->metrics, METRIC_GAUGE, "terrane_build_info", labels, "Always 1; the labels say what runs.", 1);
    metrics_put(&p->metrics, METRIC_GAUGE, "terrane_ready", "", "Whether /readyz says so.",
                core->unready(core->core) == NULL);
    core->collect(core->core, &p->metrics);
    put_http(p->http, &p->metrics);
    out->type = "text/plain; version=0.0.4; charset=utf-8";
    metrics_prometheus(&p->metrics, &p->text);
    writer_raw(out->body, p->text.data, p->text.size);
    if (p->options.shell == NULL) return;
    metrics_prometheus(shell_metrics(p->options.shell), &p->text);
    writer_raw(out->body, p->text.data, p->text.size);
}

static void say(struct http_answer *out, const char *text)
{
    writer_raw(out->body, text, strlen(text));
    writer_raw(out->body, "\n", 1);
}

static void health_asked(void *context, const struct http_request *request, struct http_answer *out)
{
    (void)context, (void)request;
    say(out, "alive");
}

static void readiness_asked(void *context, const struct http_request *request, struct http_answer *out)
{
    struct probe *p = context;
    (void)request;
    const char *why_not = p->options.core.unready(p->options.core.core);
    if (why_not != NULL) out->status = 503;
    say(out, why_not != NULL ? why_not : "ready");
}

static enum terrane_error open_http(const struct probe_options *o, struct http **out, char *fault, size_t room)
{
    char host[LIMIT_URL], address[LIMIT_URL + 8];
    uint16_t port;
    struct ev_loop *loop = loop_ev(o->shell == NULL ? o->loop : shell_loop(o->shell));
    if (strcmp(o->address, PROBE_AUTO) != 0) return http_open(loop, o->address, out, fault, room);
    enum terrane_error error = http_open(loop, o->automatic, out, fault, room);
    if (error != TERRANE_ERR_ADDRESS || !address_split(o->automatic, host, &port)) return error;
    snprintf(address, sizeof address, "%s:0", host);
    return http_open(loop, address, out, fault, room);
}

enum terrane_error probe_open(const struct probe_options *options, struct http **out, char *fault, size_t room)
{
    *out = NULL;
    if (strcmp(options->address, PROBE_NONE) == 0) return TERRANE_ERR_OK;
    enum terrane_error error = open_http(options, out, fault, room);
    if (error != TERRANE_ERR_OK) return error;
    struct probe *p = calloc(1, sizeof *p);
    CHECK(p != NULL);
    p->options = *options;
    p->http = *out;
    http_route(p->http, &(struct http_route){"/metrics", metrics_asked, p});
    http_route(p->http, &(struct http_route){"/healthz", health_asked, p});
    http_route(p->http, &(struct http_route){"/readyz", readiness_asked, p});
    return TERRANE_ERR_OK;
}
