#include "io/vitals.h"

#include "proto/messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static void count(struct metrics *m, const char *name, const char *labels, const char *help, uint64_t value)
{
    metrics_put(m, METRIC_COUNTER, name, labels, help, value);
}

static void gauge(struct metrics *m, const char *name, const char *help, uint64_t value)
{
    metrics_put(m, METRIC_GAUGE, name, "", help, value);
}

static void collect_dropped(const struct link_counters *c, struct metrics *m)
{
    const struct {
        const char *labels;
        uint64_t value;
    } causes[] = {
        {"cause=\"inbox_full\"", c->dropped_full[LANE_INBOX]}, {"cause=\"feed_full\"", c->dropped_full[LANE_FEED]},
        {"cause=\"receive_error\"", c->receive_errors},        {"cause=\"send_full\"", c->send_full},
        {"cause=\"send_unlinked\"", c->send_unlinked},         {"cause=\"send_error\"", c->send_errors},
        {"cause=\"send_oversize\"", c->send_oversize},         {"cause=\"publish_error\"", c->publish_errors},
        {"cause=\"reply_unknown\"", c->reply_unknown}};
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        count(m, "terrane_io_dropped_total", causes[i].labels, "Messages dropped here, by cause.", causes[i].value);
}

void vitals_collect(const struct link_counters *c, uint64_t refused, const struct ticker *ticker, struct metrics *m)
{
    static const char *const lanes[] = {
        [LANE_INBOX] = "lane=\"inbox\"", [LANE_FEED] = "lane=\"feed\"", [LANE_QUERY] = "lane=\"query\""};
    for (int i = 0; i < 3; i++) {
        count(m, "terrane_io_received_total", lanes[i], "Messages received, by lane.", c->received[i]);
        count(m, "terrane_io_received_bytes_total", lanes[i], "Their bytes, without TCP/IP.", c->received_bytes[i]);
    }
    const char *sent = "Messages handed to nng, by lane.", *bytes = "Their bytes, before nng copies them per reader.";
    count(m, "terrane_io_sent_total", lanes[LANE_INBOX], sent, c->sent);
    count(m, "terrane_io_sent_total", lanes[LANE_FEED], sent, c->published);
    count(m, "terrane_io_sent_total", lanes[LANE_QUERY], sent, c->replied);
    count(m, "terrane_io_sent_bytes_total", lanes[LANE_INBOX], bytes, c->sent_bytes);
    count(m, "terrane_io_sent_bytes_total", lanes[LANE_FEED], bytes, c->published_bytes);
    collect_dropped(c, m);
    count(m, "terrane_io_send_retries_total", "", "Second attempts of sends that met a full buffer.", c->send_retries);
    count(m, "terrane_io_published_nobody_total", "", "Frames not sent because nobody is connected to their feed.",
          c->published_nobody);
    count(m, "terrane_io_links_up_total", "kind=\"peer\"", "Connections that came up, by kind.", c->peers_up);
    count(m, "terrane_io_links_up_total", "kind=\"feed\"", "Connections that came up, by kind.", c->feeds_up);
    count(m, "terrane_io_links_down_total", "kind=\"peer\"", "Connections that broke, by kind.", c->peers_down);
    count(m, "terrane_io_links_down_total", "kind=\"feed\"", "Connections that broke, by kind.", c->feeds_down);
    count(m, "terrane_io_urls_refused_total", "", "Urls of others that can't be dialled.", c->urls_refused);
    count(m, "terrane_io_refused_total", "", "Connections to the own sockets that were refused, cut or lost.", refused);
    gauge(m, "terrane_io_peers", "Peers that this process dials.", c->peers);
    gauge(m, "terrane_io_subscribers", "Subscribers that this process dials.", c->subscribers);
    if (ticker == NULL) return;
    count(m, "terrane_ticks_total", "", "Ticks started.", ticker->ticks);
    count(m, "terrane_ticks_late_total", "", "Ticks started more than a quarter of an interval late.", ticker->late);
    count(m, "terrane_ticks_skipped_total", "", "Ticks left out after a stall.", ticker->skipped);
    metrics_put(m, METRIC_GAUGE_US, "terrane_tick_late_worst_seconds", "", "The latest start of a tick so far.",
                ticker->late_worst_us);
}

/* Names and meanings as every Prometheus client library has them. */
void vitals_process(struct metrics *m)
{
    struct rusage usage;
    unsigned long resident = 0;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        uint64_t seconds = (uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec;
        metrics_put(m, METRIC_COUNTER_US, "process_cpu_seconds_total", "", "CPU time of this process.",
                    seconds * 1000000u + (uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec);
    }
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) == 0)
        metrics_put(m, METRIC_GAUGE_US, "terrane_clock_seconds", "", "This host's wall clock, to compare hosts by.",
                    (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        gauge(m, "process_max_fds", "Files and sockets that this process may open.", files.rlim_cur);
    FILE *statm = fopen("/proc/self/statm", "re");
    if (statm == NULL) return;
    char line[128];
    if (fgets(line, sizeof line, statm) != NULL && strchr(line, ' ') != NULL)
        resident = strtoul(strchr(line, ' '), NULL, 10);
    fclose(statm);
    gauge(m, "process_resident_memory_bytes", "Memory of this process that is in RAM.",
          resident * (uint64_t)sysconf(_SC_PAGESIZE));
}

bool vitals_join(const uint8_t *reply, size_t size, const struct metrics *m, struct writer *out)
{
    enum message_kind kind;
    struct status status;
    struct cursor c = cursor_of(reply, size);
    if (message_kind_of(c, &kind) != TERRANE_ERR_OK || kind != MESSAGE_STATUS ||
        status_decode(c, &status) != TERRANE_ERR_OK)
        return false;
    if (status.size < 3 || status.json[status.size - 1] != '}') return false;
    struct metrics_text text = {0};
    struct writer json = {0};
    metrics_json(m, &text);
    bool fits = status.size + text.size + 64 <= LIMIT_PACKET_BYTES;
    if (fits) {
        writer_raw(&json, status.json, status.size - 1);
        writer_raw(&json, ",\"io\":", 6);
        writer_raw(&json, text.data, text.size);
        writer_raw(&json, "}", 2);
        writer_clear(out);
        status_encode(out, &(struct status){.json = (const char *)json.data});
    }
    metrics_text_close(&text);
    writer_close(&json);
    return fits;
}
