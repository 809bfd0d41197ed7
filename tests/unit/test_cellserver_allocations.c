#include "tests/unit/allocations.h"
#include "tests/unit/cell_rig.h"

#include "tests/unit/suite.h"

enum { ENTITIES = 400, WARM_TICKS = 1200, COUNTED_TICKS = 400, UNIT = 164 };

static struct rig rig;

/* Everybody walks to and fro across the border, out of step, all in sight of many others. */
static int32_t place(uint32_t entity, uint32_t tick)
{
    uint32_t phase = (tick + entity * 7) % 80;
    int32_t offset = phase < 40 ? (int32_t)phase : 80 - (int32_t)phase;
    return (1 << 20) + (offset - 20) * UNIT;
}

static void owned_here(void *context, const struct cellserver_entity *entity)
{
    uint8_t *owners = context;
    owners[entity->record.id.v] = 1;
}

static void walk(uint32_t tick)
{
    static uint8_t east[ENTITIES + 1];
    memset(east, 0, sizeof east);
    cellserver_census(rig.servers[1], owned_here, east);
    for (uint32_t server = 0; server < RIG_SERVERS; server++) {
        uint32_t count = 0;
        for (uint32_t id = 1; id <= ENTITIES; id++) count += east[id] == server;
        moves_begin(&rig.w, &(struct moves){.sequence = 10 + tick, .count = count});
        for (uint32_t id = 1; id <= ENTITIES; id++) {
            if (east[id] != server) continue;
            moves_add(&rig.w, &(struct move){.id = {id}, .position = {place(id, tick), 1000 + (int32_t)id * UNIT, 0}});
        }
        rig_say(&rig, server, false);
    }
    rig_tick(&rig);
}

/* `paired`: each server is the other's standby. */
static void check_steady_state(bool paired)
{
    struct world world = world_default();
    rig_open(&rig, &world);
    if (paired) rig_map_of(&rig, 2, 2, 1, true);
    for (uint32_t id = 1; id <= ENTITIES; id++) {
        int32_t x = place(id, 0);
        rig_enter(&rig, x >= 1 << 20, id, x, 1000 + (int32_t)id * UNIT, 20 * UNIT);
    }
    uint32_t tick = 0;
    while (tick < WARM_TICKS) walk(tick++);
    struct cellserver_stats before, after;
    cellserver_stats(rig.servers[0], &before);
    uint64_t allocations_before = allocations;
    ck_assert_uint_gt(allocations_before, 0);
    while (tick < WARM_TICKS + COUNTED_TICKS) walk(tick++);
    uint64_t made = allocations - allocations_before;
    cellserver_stats(rig.servers[0], &after);
    ck_assert_uint_ge(after.handoffs_out - before.handoffs_out, ENTITIES);
    ck_assert_uint_ge(after.view_changes - before.view_changes, ENTITIES);
    uint32_t owned = after.owned;
    cellserver_stats(rig.servers[1], &after);
    ck_assert_uint_ge(owned + after.owned, ENTITIES); /* one more for each hand-off whose ACCEPT is under way */
    ck_assert_uint_eq(made, 0);
    ck_assert_int_eq(after.standby_bytes > before.standby_bytes, paired);
    rig_close(&rig);
}

START_TEST(a_tick_allocates_nothing_in_the_steady_state)
{
    check_steady_state(false);
}
END_TEST

START_TEST(a_tick_of_primaries_and_standbys_allocates_nothing_in_the_steady_state)
{
    check_steady_state(true);
}
END_TEST

SUITE_MAIN("cellserver_allocations", a_tick_allocates_nothing_in_the_steady_state,
           a_tick_of_primaries_and_standbys_allocates_nothing_in_the_steady_state)
