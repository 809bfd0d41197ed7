/* A session in its steady state: as many messages a tick, for ever, without an allocation. */
#include "proto/session.h"

#include "tests/unit/allocations.h"
#include "tests/unit/suite.h"

#define TICKS 300u
#define EACH  20u /* messages a lane and tick */

struct pair {
    struct session *sides[2];
    struct writer packet, message;
    uint64_t now_us, sure, fast;
};

static void deliver(void *context, struct cursor message, bool sure)
{
    struct pair *p = context;
    (void)message;
    if (sure)
        p->sure++;
    else
        p->fast++;
}

/* Without assertions: libcheck's allocate. */
static bool tick(struct pair *p, uint32_t number)
{
    static const uint8_t zeros[256];
    struct packet packet;
    uint64_t lost;
    bool well = true;
    writer_clear(&p->message);
    writer_array(&p->message, 2);
    writer_uint(&p->message, 99);
    writer_bin(&p->message, zeros, 100 + number % 50);
    for (uint32_t i = 0; i < EACH; i++) {
        well = well && session_push(p->sides[0], p->message.data, p->message.size) == TERRANE_ERR_OK;
        well = well && session_push_fast(p->sides[0], p->message.data, p->message.size) == TERRANE_ERR_OK;
    }
    for (uint32_t from = 0; from < 2; from++) {
        while (session_fill(p->sides[from], p->now_us, &p->packet)) {
            well = well && packet_decode(p->packet.data, p->packet.size, &packet) == TERRANE_ERR_OK;
            well = well && session_receive(p->sides[1 - from], p->now_us, &packet, deliver, p, &lost) == TERRANE_ERR_OK;
        }
    }
    p->now_us += 50000;
    return well;
}

START_TEST(the_steady_state_allocates_nothing)
{
    struct pair p = {0};
    for (uint32_t i = 0; i < 2; i++)
        p.sides[i] = session_open(&(struct session_options){.self = {100 + i}, .peer = {101 - i}});
    bool well = true;
    allocations_counted = true;
    for (uint32_t i = 0; i < TICKS / 3; i++) well = tick(&p, i) && well;
    uint64_t warming = allocations;
    for (uint32_t i = TICKS / 3; i < TICKS; i++) well = tick(&p, i) && well;
    allocations_counted = false;
    ck_assert(well);
    ck_assert_uint_gt(warming, 0);
    ck_assert_uint_eq(allocations, warming);
    ck_assert_uint_eq(p.sure, TICKS * EACH);
    ck_assert_uint_eq(p.fast, TICKS * EACH);
    for (uint32_t i = 0; i < 2; i++) session_close(p.sides[i]);
    writer_close(&p.packet);
    writer_close(&p.message);
}
END_TEST

SUITE_MAIN("session_allocations", the_steady_state_allocates_nothing)
