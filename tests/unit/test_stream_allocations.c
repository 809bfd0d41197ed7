/* In the steady state neither a writer's nor a replica's tick allocates. */
#include "tests/unit/allocations.h"
#include "tests/unit/stream_kit.h"
#include "tests/unit/suite.h"

#define ENTITIES 200u

static uint64_t dice = 7;

static uint32_t below(uint32_t n)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((dice >> 33) % n);
}

/* Moves, turns, climbs, state of changing size, constants: all that entities do that stay. */
static void stir(struct kit_source *s)
{
    for (uint32_t i = 0; i < ENTITIES; i++) {
        struct kit_entity *e = &s->entities[i];
        e->record.position.z = (int32_t)below(5);
        e->record.yaw = (uint8_t)below(3);
        kit_move(s, i, (int32_t)below(5) - 2, (int32_t)below(200) - 100);
        e->record.state_size = below(KIT_STATE + 1);
        e->state[0]++;
        if (below(3) == 0) stream_touch_state(s->stream, e->slot);
        if (below(5) == 0) stream_touch_constants(s->stream, e->slot);
    }
}

/* Some go and as many come: slots, handles and claims are used again. */
static void churn(struct kit_source *s)
{
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t at = below(ENTITIES);
        struct entity_record record = s->entities[at].record;
        kit_leave(s, at, below(2) == 0 ? LEFT_GONE : LEFT_STRIP);
        record.version += 2;
        record.state = s->entities[at].state;
        uint8_t state[KIT_STATE];
        memcpy(state, s->entities[at].state, KIT_STATE);
        record.state = state;
        kit_enter(s, at, record);
    }
}

START_TEST(ticks_in_the_steady_state_allocate_nothing)
{
    struct kit_log *log = calloc(1, sizeof *log);
    struct replicas *r = kit_replicas_open(log);
    struct kit_source *s = kit_source_open("03", 1);
    for (uint32_t i = 0; i < ENTITIES; i++) kit_enter(s, i, kit_record(i + 1, 1, 500000, 500000));
    kit_publish(s);
    kit_level(r, 0, s);
    uint64_t before = 0, now = 0;
    for (uint32_t tick = 0; tick < 4000; tick++) {
        if (tick == 2000) before = allocations;
        now += 50000;
        allocations_counted = true;
        if (tick % 50 < 30) {
            stir(s);
            churn(s);
        }
        bool spoke = kit_publish(s);
        enum terrane_error error = spoke ? kit_feed(r, now, s) : TERRANE_ERR_OK;
        replicas_tick(r, now);
        allocations_counted = false;
        ck_assert_int_eq(error, TERRANE_ERR_OK);
    }
    ck_assert_uint_gt(before, 0);
    ck_assert_uint_eq(allocations - before, 0);
    ck_assert_uint_eq(replicas_counters(r)->gaps + replicas_counters(r)->malformed, 0);
    ck_assert_uint_eq(replicas_count(r), ENTITIES);
    ck_assert_uint_gt(replicas_counters(r)->beats, 10);
    replicas_close(r);
    kit_source_close(s);
    free(log);
}
END_TEST

SUITE_MAIN("stream_allocations", ticks_in_the_steady_state_allocate_nothing)
