/* A primary with a standby: two servers, each the standby of the other's leaves. */
#include "tests/unit/cell_rig.h"

#include "tests/unit/suite.h"

#define UNIT 164 /* position units in about a metre */

static struct rig rig;
static int32_t half;

static void ticks(int count)
{
    for (int i = 0; i < count; i++) rig_tick(&rig);
}

static void open_rig(void)
{
    struct world world = world_default();
    world.radius_max = 200 * UNIT;
    half = 1 << (world.resolution_bits - 1);
    rig_open(&rig, &world);
    rig_map_of(&rig, 2, 2, 1, true);
    ticks(4);
}

/* The sessions repeat what was lost meanwhile. */
static void heal(void)
{
    rig.cut = false;
    for (uint32_t i = 0; i < RIG_SERVERS; i++) {
        rig_step(&rig, i, &(struct event){.kind = EVENT_PEER_UP, .node = rig_node(1 - i)});
    }
    ticks(8);
}

struct found {
    uint32_t count, leaving;
    bool fenced, level;
    struct entity_record record;
    char state[8];
};

static void note(struct found *found, const struct cellserver_entity *e)
{
    found->count++;
    found->leaving += e->leaving;
    found->fenced = e->fenced;
    found->record = e->record;
    memcpy(found->state, e->record.state, e->record.state_size < 8 ? e->record.state_size : 8);
}

static void note_owned(void *context, const struct cellserver_entity *e)
{
    note(context, e);
}

static void note_held(void *context, struct quadkey leaf, uint32_t epoch, bool level, const struct cellserver_entity *e)
{
    (void)leaf;
    (void)epoch;
    note(context, e);
    ((struct found *)context)->level = level;
}

static struct found owned(uint32_t server)
{
    struct found found = {0};
    cellserver_census(rig.servers[server], note_owned, &found);
    return found;
}

static struct found held(uint32_t server)
{
    struct found found = {0};
    cellserver_replicas(rig.servers[server], note_held, &found);
    return found;
}

static struct cellserver_stats stats(uint32_t server)
{
    struct cellserver_stats s;
    cellserver_stats(rig.servers[server], &s);
    return s;
}

static void set_state(uint64_t request, uint64_t sequence, const char *state)
{
    set_state_encode(
        &rig.w,
        &(struct set_state){
            .request = request, .sequence = sequence, .id = {7}, .state = (const uint8_t *)state, .state_size = 4});
    rig_say(&rig, 0, true);
}

START_TEST(an_enter_is_answered_when_the_standby_has_it)
{
    open_rig();
    rig.cut = true;
    rig_enter(&rig, 0, 7, 1000, 1000, 0);
    ck_assert_uint_eq(rig.seen.count[MESSAGE_RESULT], 0);
    ck_assert_uint_eq(owned(0).count, 1);
    rig_enter(&rig, 0, 7, 1000, 1000, 0); /* a repetition waits as well */
    ck_assert_uint_eq(rig.seen.count[MESSAGE_RESULT], 0);
    ck_assert_uint_eq(stats(0).standby_waiting, 2);
    heal();
    ck_assert_uint_eq(rig.seen.count[MESSAGE_RESULT], 2);
    ck_assert_int_eq(rig.seen.result.error, TERRANE_ERR_OK);
    ck_assert_uint_eq(held(1).count, 1);
    ck_assert_uint_eq(stats(0).standby_waiting, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(states_and_leaves_are_answered_in_order_when_the_standby_has_them)
{
    open_rig();
    rig_enter(&rig, 0, 7, 1000, 1000, 0);
    ticks(2);
    uint32_t answered = rig.seen.count[MESSAGE_RESULT];
    rig.cut = true;
    set_state(50, 3, "hp=6");
    set_state(51, 2, "late");
    leave_encode(&rig.w, &(struct leave){.request = 52, .sequence = 5, .id = {7}});
    rig_say(&rig, 0, true);
    leave_encode(&rig.w, &(struct leave){.request = 53, .sequence = 6, .id = {7}});
    rig_say(&rig, 0, true); /* that it is gone is not certain yet */
    ck_assert_uint_eq(rig.seen.count[MESSAGE_RESULT], answered);
    ck_assert_uint_eq(held(1).count, 1);
    heal();
    ck_assert_uint_eq(rig.seen.count[MESSAGE_RESULT], answered + 4);
    ck_assert_uint_eq(rig.seen.result.request, 53);
    ck_assert_int_eq(rig.seen.result.error, TERRANE_ERR_ENTITY_UNKNOWN);
    ck_assert_uint_eq(held(1).count, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(who_waits_is_answered_when_the_map_takes_the_standby_away)
{
    open_rig();
    rig.cut = true;
    rig_enter(&rig, 0, 7, 1000, 1000, 0);
    ck_assert_uint_eq(rig.seen.count[MESSAGE_RESULT], 0);
    rig_map_of(&rig, 3, 3, 1, false);
    ck_assert_uint_eq(rig.seen.count[MESSAGE_RESULT], 1);
    rig_map_of(&rig, 4, 4, 1, true);
    heal();
    ck_assert_uint_eq(held(1).count, 1);
    ck_assert(held(1).level);
    rig_close(&rig);
}
END_TEST

START_TEST(moves_reach_the_standby_with_the_tick)
{
    open_rig();
    rig_enter(&rig, 0, 7, 1000, 1000, 0);
    ticks(2);
    for (int i = 1; i <= 20; i++) {
        rig_move(&rig, 0, 10 + (uint64_t)i, 7, 1000 + 7 * i, 1000 - 3 * i);
        rig_tick(&rig);
        ck_assert_int_eq(held(1).record.position.x, 1000 + 7 * i);
        ck_assert_int_eq(held(1).record.position.y, 1000 - 3 * i);
    }
    rig_close(&rig);
}
END_TEST

START_TEST(nobody_is_offered_before_the_standby_has_the_mark)
{
    open_rig();
    rig_enter(&rig, 0, 7, half - UNIT, 5000, 0);
    ticks(2);
    rig.cut = true;
    rig_move(&rig, 0, 20, 7, half + 5 * UNIT, 5000);
    ticks(2);
    ck_assert_uint_eq(owned(0).leaving, 1);
    set_state(60, 30, "hp=5"); /* waits for the new owner */
    heal();
    ck_assert_uint_eq(owned(0).count, 0);
    ck_assert_uint_eq(owned(1).count, 1);
    ck_assert_uint_eq(owned(1).record.version, 1001);
    ck_assert_mem_eq(owned(1).state, "hp=5", 4);
    ck_assert_uint_eq(rig.seen.result.request, 60);
    ck_assert_uint_eq(held(1).count, 0); /* dropped from the old leaf's copy, */
    ck_assert_uint_eq(held(0).count, 1); /* kept by the new leaf's standby */
    ck_assert_uint_eq(stats(1).pending, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(a_primary_that_hears_neither_coordinator_nor_standby_serves_no_more)
{
    open_rig();
    rig_enter(&rig, 0, 7, 1000, 1000, 0);
    ticks(2);
    uint32_t epoch;
    rig.deaf = true;
    ticks(10);
    ck_assert(cellserver_owns(rig.servers[0], quadkey_child(QUADKEY_ROOT, 0), &epoch)); /* by its standby's acks */
    rig.cut = true;
    ticks(10);
    ck_assert(!cellserver_owns(rig.servers[0], quadkey_child(QUADKEY_ROOT, 0), &epoch));
    ck_assert(owned(0).fenced);
    uint64_t published = rig.published;
    uint32_t answered = rig.seen.count[MESSAGE_RESULT];
    set_state(70, 40, "hp=1");
    ticks(20);
    ck_assert_uint_eq(rig.published, published);
    ck_assert_uint_eq(rig.seen.count[MESSAGE_RESULT], answered);
    rig.deaf = false; /* the coordinator is enough to serve, but not to answer */
    ticks(3);
    ck_assert(cellserver_owns(rig.servers[0], quadkey_child(QUADKEY_ROOT, 0), &epoch));
    ck_assert_mem_eq(owned(0).state, "hp=1", 4);
    heal();
    ck_assert_uint_eq(rig.seen.count[MESSAGE_RESULT], answered + 1);
    rig_close(&rig);
}
END_TEST

START_TEST(who_stops_seeing_while_its_leaf_is_fenced_is_told_so_afterwards)
{
    open_rig();
    rig_enter(&rig, 0, 8, 1000 + UNIT, 1000, 0);
    rig_enter(&rig, 0, 7, 1000, 1000, 50 * UNIT); /* the last one of a message */
    ticks(4);
    ck_assert_uint_eq(rig.seen.sees, 1);
    rig.deaf = rig.cut = true;
    ticks(20);
    ck_assert(owned(0).fenced);
    set_radius_encode(&rig.w, &(struct set_radius){.request = 80, .sequence = 50, .id = {7}, .radius = 0});
    rig_say(&rig, 0, true);
    ticks(2);
    uint32_t told = rig.seen.count[MESSAGE_VIEWS];
    rig.deaf = false;
    ticks(3);
    ck_assert_uint_gt(rig.seen.count[MESSAGE_VIEWS], told);
    ck_assert_uint_eq(rig.seen.view.observer.v, 7);
    ck_assert_int_eq(rig.seen.view.part, VIEW_WHOLE_LAST);
    ck_assert_uint_eq(rig.seen.view.see_count, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(a_leaf_without_a_standby_serves_whatever_is_silent)
{
    open_rig();
    rig_map_of(&rig, 3, 3, 1, false);
    rig.deaf = rig.cut = true;
    ticks(20);
    uint32_t epoch;
    ck_assert(cellserver_owns(rig.servers[0], quadkey_child(QUADKEY_ROOT, 0), &epoch));
    rig_close(&rig);
}
END_TEST

SUITE_MAIN("cellserver_standby", an_enter_is_answered_when_the_standby_has_it,
           states_and_leaves_are_answered_in_order_when_the_standby_has_them,
           who_waits_is_answered_when_the_map_takes_the_standby_away, moves_reach_the_standby_with_the_tick,
           nobody_is_offered_before_the_standby_has_the_mark,
           a_primary_that_hears_neither_coordinator_nor_standby_serves_no_more,
           who_stops_seeing_while_its_leaf_is_fenced_is_told_so_afterwards,
           a_leaf_without_a_standby_serves_whatever_is_silent)
