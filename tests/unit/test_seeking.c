/* Members that know several coordinators: nobody answers, so each has its turn, HELLO goes to whom it is. */
#include "cellserver/cellserver.h"
#include "gateway/core.h"
#include "tests/unit/suite.h"

#include <stdio.h>

struct log {
    char dialled[32][64];
    uint32_t dials, hellos;
};

static void take(struct log *log, struct outbox *out)
{
    for (size_t i = 0; i < out->count; i++) {
        const struct output *o = &out->items[i];
        if (!node_id_equal(o->node, NODE_COORDINATOR)) continue;
        if (o->kind == OUTPUT_LINK && log->dials < 32)
            snprintf(log->dialled[log->dials++], 64, "%s", (const char *)outbox_bytes(out, o));
        log->hellos += o->kind == OUTPUT_SEND;
    }
    outbox_clear(out);
}

static void check(const struct log *log)
{
    static const char *const urls[] = {"tcp://a:1", "tcp://b:2", "tcp://c:3"};
    ck_assert_uint_ge(log->dials, 7);
    ck_assert_uint_le(log->dials, 9);
    for (uint32_t i = 0; i < log->dials; i++) ck_assert_str_eq(log->dialled[i], urls[i % 3]);
    ck_assert_uint_ge(log->hellos, log->dials);
}

START_TEST(a_cell_server_tries_one_coordinator_after_another)
{
    struct cellserver_options options = {.info = {.role = ROLE_CELLSERVER, .node = {100}, .feed_count = 1},
                                         .coordinator_url = "tcp://a:1,tcp://b:2,tcp://c:3"};
    struct cellserver *cs = cellserver_open(&options);
    struct outbox out = {0};
    struct log log = {0};
    for (uint64_t ms = 1000; ms < 4000; ms += 50) {
        cellserver_step(cs, &(struct event){.kind = ms == 1000 ? EVENT_START : EVENT_TICK}, ms * 1000, &out);
        take(&log, &out);
    }
    check(&log);
    cellserver_close(cs);
    outbox_close(&out);
}
END_TEST

START_TEST(a_gateway_tries_one_coordinator_after_another)
{
    struct gateway_options options = {.info = {.role = ROLE_GATEWAY, .node = {300}},
                                      .coordinator_url = "tcp://a:1,tcp://b:2,tcp://c:3"};
    struct gateway *g = gateway_open(&options);
    struct outbox out = {0};
    struct log log = {0};
    for (uint64_t ms = 1000; ms < 4000; ms += 10) {
        gateway_step(g, &(struct event){.kind = ms == 1000 ? EVENT_START : EVENT_TIMEOUT}, ms * 1000, &out);
        take(&log, &out);
    }
    check(&log);
    gateway_close(g);
    outbox_close(&out);
}
END_TEST

SUITE_MAIN("seeking", a_cell_server_tries_one_coordinator_after_another, a_gateway_tries_one_coordinator_after_another)
