/* terrane watch PREFIX: frames of regions, ghosts or the map, in words, as they are published. */
#include "common/geometry.h"
#include "io/loop.h"
#include "io/program.h"
#include "io/tap.h"
#include "proto/messages.h"
#include "tools/target.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME    "terrane watch"
#define SHOWN   3u /* moves, entities of each list */
#define LOOK_US 2000000u

static struct flags {
    struct target target;
    double seconds;
    uint64_t count;
} flags;

static const struct config_field fields[] = {
    TARGET_FIELDS(flags.target, "2000", "One JSON object a message."),
    {.name = "for",
     .kind = CONFIG_DOUBLE,
     .value = &flags.seconds,
     .preset = "0",
     .min = 0,
     .max = 1e9,
     .unit = "SECONDS",
     .help = "How long; 0: until SIGINT or SIGTERM."},
    {.name = "count",
     .kind = CONFIG_UINT,
     .value = &flags.count,
     .preset = "0",
     .help = "Ends after so many messages; 0: any number."},
};

static volatile bool stop;

/* Feeds */

static void dial(struct tap *tap, const char *url)
{
    if (url[0] == '\0') return;
    enum terrane_error error = tap_dial(tap, url);
    if (error != TERRANE_ERR_OK) fprintf(stderr, "%s: %s: %s\n", NAME, url, terrane_error_text(error));
}

/* Whether a region's topic may begin with what is asked for: one is the beginning of the other. */
static bool meets(const char *quadkey, const char *wanted)
{
    size_t a = strlen(quadkey), b = strcspn(wanted, "/");
    return strncmp(quadkey, wanted, a < b ? a : b) == 0 && (wanted[b] != '/' || a == b);
}

/* Feeds of whoever owns a region that is asked for; again from time to time, as owners and servers change. */
static void dial_all(struct tap *tap, struct cluster *c, const char *prefix)
{
    enum terrane_error error = cluster_refresh(c, (uint32_t)flags.target.patience);
    if (error != TERRANE_ERR_OK) {
        fprintf(stderr, "%s: no status from %s: %s\n", NAME, c->query_url, terrane_error_text(error));
        return;
    }
    if (prefix[0] == 'm' || prefix[0] == '\0') {
        uint32_t feeds = document_member(&c->map, 0, "feeds"), at = document_first(&c->map, feeds);
        for (; at != DOCUMENT_NONE; at = document_next(&c->map, at))
            if (c->map.values[at].kind == DOCUMENT_TEXT) dial(tap, c->map.values[at].text);
    }
    const char *wanted = strlen(prefix) > 2 ? prefix + 2 : "";
    uint32_t at = document_first(&c->map, document_member(&c->map, 0, "regions"));
    for (; at != DOCUMENT_NONE; at = document_next(&c->map, at)) {
        if (!meets(document_text(&c->map, at, "quadkey"), wanted)) continue;
        const struct cluster_server *server = cluster_server(c, document_text(&c->map, at, "server"));
        if (prefix[0] == 'r' || prefix[0] == '\0') dial(tap, document_text(&c->map, at, "feed_url"));
        if (server != NULL && (prefix[0] == 'g' || prefix[0] == '\0'))
            dial(tap, document_text(&c->map, server->listed, "ghost_feed"));
    }
}

/* Frames */

static void print_entered(struct frame *f)
{
    uint32_t slot, shown = 0;
    struct entity_record record;
    if (f->entered_count == 0) return;
    printf("  entered %u:", f->entered_count);
    while (frame_next_entered(f, &slot, &record) && shown++ < SHOWN)
        printf(" #%u=%" PRIu64 " at (%d, %d)", slot, record.id.v, record.position.x, record.position.y);
    printf(f->entered_count > SHOWN ? " ..." : "");
}

static void print_left(struct frame *f)
{
    static const char *const reasons[] = {"gone", "moved", "no longer near"};
    uint32_t slot, shown = 0;
    enum left_reason reason;
    uint64_t version;
    struct quadkey to;
    if (f->left_count == 0) return;
    printf("  left %u:", f->left_count);
    while (frame_next_left(f, &slot, &reason, &version, &to) && shown++ < SHOWN) {
        char key[LIMIT_QUADKEY_TEXT] = "";
        if (reason == LEFT_MOVED) quadkey_text(to, key);
        printf(" #%u %s%s%s", slot, reasons[reason], reason == LEFT_MOVED ? " to " : "", key);
    }
    printf(f->left_count > SHOWN ? " ..." : "");
}

static void print_moved(struct frame *f)
{
    uint32_t slot, shown = 0;
    int32_t dx, dy;
    printf("  moved %u%s", f->moved_count, f->moved_count > 0 ? ":" : "");
    while (shown++ < SHOWN && frame_next_moved(f, &slot, &dx, &dy)) printf(" #%u %+d %+d", slot, dx, dy);
    printf(f->moved_count > SHOWN ? " ..." : "");
}

static void print_frame(const char *topic, struct frame *f, size_t size)
{
    if (flags.target.json) {
        printf("{\"topic\":\"%s\",\"bytes\":%zu,\"epoch\":%u,\"seq\":%" PRIu64 ",\"tick\":%" PRIu64
               ",\"moved\":%u,\"left\":%u,\"entered\":%u,\"turned\":%u,\"climbed\":%u,\"states\":%u,\"changed\":%u}\n",
               topic, size, f->epoch, f->seq, f->tick, f->moved_count, f->left_count, f->entered_count, f->turned_count,
               f->climbed_count, f->state_count, f->changed_count);
        return;
    }
    printf("%-12s epoch %u  seq %" PRIu64 "  tick %" PRIu64 "  %zu bytes", topic, f->epoch, f->seq, f->tick, size);
    if (frame_is_beat(f)) {
        printf("  beat\n");
        return;
    }
    print_left(f);
    print_entered(f);
    print_moved(f);
    if (f->turned_count > 0) printf("  turned %u", f->turned_count);
    if (f->climbed_count > 0) printf("  climbed %u", f->climbed_count);
    if (f->state_count > 0) printf("  states %u", f->state_count);
    if (f->changed_count > 0) printf("  changed %u", f->changed_count);
    putchar('\n');
}

static enum terrane_error print_map(const uint8_t *body, size_t size)
{
    struct map map;
    enum terrane_error error = map_decode(cursor_of(body, size), &map);
    if (error != TERRANE_ERR_OK) return error;
    if (flags.target.json)
        printf("{\"topic\":\"map/\",\"bytes\":%zu,\"term\":%" PRIu64 ",\"rev\":%" PRIu64 ",\"base\":%" PRIu64
               ",\"nodes\":%u,\"leaves\":%u,\"gone_nodes\":%u,\"gone_leaves\":%u}\n",
               size + 4, map.term, map.rev, map.base, map.node_count, map.leaf_count, map.gone_node_count,
               map.gone_leaf_count);
    else
        printf("map/  term %" PRIu64 "  revision %" PRIu64 " %s  %u nodes  %u leaves  gone: %u nodes %u leaves\n",
               map.term, map.rev, map.base == 0 ? "whole" : "changes", map.node_count, map.leaf_count,
               map.gone_node_count, map.gone_leaf_count);
    return TERRANE_ERR_OK;
}

static void print_message(const uint8_t *bytes, size_t size)
{
    struct topic topic;
    struct frame frame;
    enum terrane_error error;
    if (size >= 4 && memcmp(bytes, "map/", 4) == 0) {
        error = print_map(bytes + 4, size - 4);
    } else {
        error = topic_decode(bytes, size, &topic);
        if (error == TERRANE_ERR_OK) error = frame_decode(bytes + topic.size, size - topic.size, &frame);
        if (error == TERRANE_ERR_OK) {
            char key[LIMIT_QUADKEY_TEXT], text[LIMIT_QUADKEY_TEXT + 4];
            quadkey_text(topic.leaf, key);
            snprintf(text, sizeof text, "%c/%s/", (char)topic.kind, key);
            print_frame(text, &frame, size);
        }
    }
    if (error != TERRANE_ERR_OK) fprintf(stderr, "%s: %zu bytes: %s\n", NAME, size, terrane_error_text(error));
    fflush(stdout);
}

static const char *prefix_of(int argc, char **argv, int operand)
{
    const char *prefix = operand < argc ? argv[operand] : "";
    if (argc - operand > 1) program_fail(NAME, EXIT_USAGE, "\"%s\": one prefix only", argv[operand + 1]);
    bool known = strncmp(prefix, "r/", 2) == 0 || strncmp(prefix, "g/", 2) == 0 || strcmp(prefix, "map/") == 0;
    const char *digits = known ? prefix + 2 : "";
    size_t count = strspn(digits, "0123");
    bool ends = digits[count] == '\0' || (digits[count] == '/' && digits[count + 1] == '\0');
    if (prefix[0] != '\0' && (!known || (prefix[0] != 'm' && !ends)))
        program_fail(NAME, EXIT_USAGE,
                     "\"%.64s\" is no topic: r/ (regions), r/03 (a subtree), r/03/ (one region), g/... (ghosts), map/",
                     prefix);
    return prefix;
}

int command_watch(int argc, char **argv)
{
    int operand;
    command_configure(NAME,
                      "Shows frames as they are published: r/ all regions, r/03 the subtree of 03, r/03/ one region,\n"
                      "g/... what neighbours are shown of them, map/ changes of ownership, no prefix: all.",
                      "[PREFIX]", fields, sizeof fields / sizeof *fields, argc, argv, &operand);
    const char *prefix = prefix_of(argc, argv, operand);
    command_heed_signals(&stop);
    struct cluster cluster;
    struct tap *tap;
    target_open(NAME, &flags.target, &cluster);
    if (tap_open(prefix, &tap) != TERRANE_ERR_OK) program_fail(NAME, EXIT_NOT_HELD, "no socket: out of memory");
    uint64_t now_us = loop_now_us(), look_us = now_us, messages = 0;
    uint64_t end_us = flags.seconds > 0 ? now_us + (uint64_t)(flags.seconds * 1e6) : UINT64_MAX;
    while (!stop && now_us < end_us && (flags.count == 0 || messages < flags.count)) {
        const uint8_t *bytes;
        size_t size;
        if (now_us >= look_us) {
            dial_all(tap, &cluster, prefix);
            look_us = now_us + LOOK_US;
        }
        uint64_t wait_us = end_us - now_us < 100000 ? end_us - now_us : 100000;
        if (tap_next(tap, (int)(wait_us / 1000) + 1, &bytes, &size) == TERRANE_ERR_OK) {
            print_message(bytes, size);
            messages++;
        }
        now_us = loop_now_us();
    }
    if (messages == 0) fprintf(stderr, "%s: nothing was published under \"%s\"\n", NAME, prefix);
    return messages > 0 ? EXIT_WELL : EXIT_NOT_HELD;
}
