/* No id lives twice, wherever it is asked for and wherever its home is. */
#include "tests/unit/cell_rig.h"

#include "proto/registry.h"
#include "tests/unit/suite.h"

#define IDS 40u

static struct rig rig;
static int32_t half;

static void open_rig(void)
{
    struct world world = world_default();
    half = 1 << (world.resolution_bits - 1);
    rig_unique_ids = true;
    rig_open(&rig, &world);
}

static void close_rig(void)
{
    rig_close(&rig);
    rig_unique_ids = false;
}

static void settle(uint32_t ticks)
{
    for (uint32_t i = 0; i < ticks; i++) rig_tick(&rig);
}

/* Far in the west or the east, so that no ghost knows of it. */
static int32_t deep(uint32_t server)
{
    return server == 0 ? half / 4 : half + half / 2;
}

static void enter(uint32_t server, uint64_t id, uint64_t request, uint64_t version)
{
    struct enter enter = {.request = request, .sequence = request};
    enter.record = (struct entity_record){.id = {id}, .version = version, .position = {deep(server), 1000, 0}};
    enter_encode(&rig.w, &enter);
    rig_say(&rig, server, true);
    settle(8);
}

static void leave(uint32_t server, uint64_t id, uint64_t request)
{
    leave_encode(&rig.w, &(struct leave){.request = request, .sequence = request, .id = {id}});
    rig_say(&rig, server, true);
    settle(2);
}

static void expect(uint64_t request, enum terrane_error error)
{
    ck_assert_uint_eq(rig.seen.result.request, request);
    ck_assert_int_eq(rig.seen.result.error, error);
}

static uint32_t owned(uint32_t server)
{
    struct cellserver_stats stats;
    cellserver_stats(rig.servers[server], &stats);
    return stats.owned;
}

static struct leaf_owner owner_of(uint32_t k, uint32_t since, uint32_t server)
{
    return (struct leaf_owner){quadkey_child(QUADKEY_ROOT, k), since, since, rig_node(server), NODE_NONE, 0};
}

/* The server that is home to an id, as the rig's map has it. */
static uint32_t home_of(uint64_t id)
{
    struct ownership map = {0};
    struct writer w = {0};
    struct map m;
    map_begin(&w, &(struct map){.term = 1, .rev = 1, .parts = 1});
    map_list(&w, 0);
    map_list(&w, 4);
    for (uint32_t k = 0; k < 4; k++)
        map_add_leaf(&w, &(struct leaf_owner){quadkey_child(QUADKEY_ROOT, k), 1, 1, rig_node(k % 2), NODE_NONE, 0});
    map_list(&w, 0);
    map_list(&w, 0);
    ck_assert_int_eq(map_decode(cursor_of(w.data, w.size), &m), TERRANE_ERR_OK);
    ck_assert_int_eq(ownership_apply(&map, &m), OWNERSHIP_CHANGED);
    struct node_id home = registry_home(&map, &rig.world, (struct entity_id){id})->primary;
    ownership_close(&map);
    writer_close(&w);
    return node_id_equal(home, rig_node(0)) ? 0 : 1;
}

START_TEST(an_id_that_lives_elsewhere_is_refused)
{
    uint32_t homes[2] = {0};
    open_rig();
    for (uint64_t id = 1; id <= IDS; id++) {
        homes[home_of(id)]++;
        uint32_t first = id % 2;
        enter(first, id, 2 * id, 1000);
        expect(2 * id, TERRANE_ERR_OK);
        enter(1 - first, id, 2 * id + 1, 2000);
        expect(2 * id + 1, TERRANE_ERR_ENTITY_EXISTS);
    }
    ck_assert_uint_gt(homes[0], IDS / 4);
    ck_assert_uint_gt(homes[1], IDS / 4);
    ck_assert_uint_eq(owned(0) + owned(1), IDS);
    close_rig();
}
END_TEST

START_TEST(a_life_is_above_the_last_one_even_if_its_gateways_clock_is_behind)
{
    open_rig();
    for (uint64_t id = 1; id <= IDS; id++) {
        uint32_t first = id % 2;
        enter(first, id, 10 * id, 5000);
        leave(first, id, 10 * id + 1);
        enter(1 - first, id, 10 * id + 2, 2000);
        expect(10 * id + 2, TERRANE_ERR_OK);
        ck_assert_uint_gt(rig.seen.result.version, 5001); /* under which it left */
        leave(1 - first, id, 10 * id + 3);
    }
    close_rig();
}
END_TEST

START_TEST(an_id_that_has_left_may_enter_anywhere)
{
    open_rig();
    for (uint64_t id = 1; id <= IDS; id++) {
        uint32_t first = id % 2;
        enter(first, id, 10 * id, 1000);
        leave(first, id, 10 * id + 1);
        enter(1 - first, id, 10 * id + 2, 2000);
        expect(10 * id + 2, TERRANE_ERR_OK);
        enter(first, id, 10 * id + 3, 3000);
        expect(10 * id + 3, TERRANE_ERR_ENTITY_EXISTS);
    }
    ck_assert_uint_eq(owned(0) + owned(1), IDS);
    close_rig();
}
END_TEST

START_TEST(a_hand_off_takes_the_id_along)
{
    open_rig();
    for (uint64_t id = 1; id <= IDS; id++) {
        enter(0, id, 10 * id, 1000);
        rig_move(&rig, 0, 10 * id + 1, id, deep(1), 1000);
        settle(4);
        enter(0, id, 10 * id + 2, 2000);
        expect(10 * id + 2, TERRANE_ERR_ENTITY_EXISTS);
        leave(1, id, 10 * id + 3);
        enter(0, id, 10 * id + 4, 3000);
        expect(10 * id + 4, TERRANE_ERR_OK);
        leave(0, id, 10 * id + 5);
    }
    ck_assert_uint_eq(owned(0) + owned(1), 0);
    close_rig();
}
END_TEST

START_TEST(a_repetition_while_the_home_is_asked_is_answered_once)
{
    open_rig();
    for (uint64_t id = 1; id <= IDS; id++) {
        uint32_t before = rig.seen.count[MESSAGE_RESULT];
        enter(0, id, id, 1000);
        ck_assert_uint_eq(rig.seen.count[MESSAGE_RESULT], before + 1);
        enter(0, id, id, 1000);
        expect(id, TERRANE_ERR_OK);
    }
    ck_assert_uint_eq(owned(0), IDS);
    close_rig();
}
END_TEST

/* Nobody stands in the northern leaves, but half of all ids are at home there. */
START_TEST(a_new_home_hears_of_all_before_it_decides)
{
    open_rig();
    for (uint64_t id = 1; id <= IDS; id++) enter((uint32_t)(id % 2), id, 2 * id, 1000);
    struct leaf_owner owners[4] = {owner_of(0, 1, 0), owner_of(1, 1, 1), owner_of(2, 2, 1), owner_of(3, 2, 0)};
    rig_map_to(&rig, 0, 2, owners, false);
    rig_map_to(&rig, 1, 2, owners, false);
    settle(2);
    ck_assert_uint_eq(owned(0) + owned(1), IDS);
    for (uint64_t id = 1; id <= IDS; id++) {
        enter((uint32_t)(1 - id % 2), id, 2 * id + 1, 2000);
        expect(2 * id + 1, TERRANE_ERR_ENTITY_EXISTS);
    }
    close_rig();
}
END_TEST

START_TEST(a_new_home_waits_for_those_that_have_not_told_yet)
{
    uint32_t kept = 0;
    struct leaf_owner owners[4] = {owner_of(0, 1, 0), owner_of(1, 1, 1), owner_of(2, 2, 1), owner_of(3, 2, 0)};
    open_rig();
    for (uint64_t id = 1; id <= IDS; id++) enter(1, id, 2 * id, 1000);
    rig_map_to(&rig, 0, 2, owners, false);
    uint32_t before = rig.seen.count[MESSAGE_RESULT];
    for (uint64_t id = 1; id <= IDS; id++) {
        struct enter again = {.request = 2 * id + 1, .sequence = 2 * id + 1};
        again.record = (struct entity_record){.id = {id}, .version = 2000, .position = {deep(0), 1000, 0}};
        enter_encode(&rig.w, &again);
        rig_say(&rig, 0, true);
    }
    kept = before + IDS - rig.seen.count[MESSAGE_RESULT];
    ck_assert_uint_gt(kept, 0); /* whose home is new and has not heard of server 1's */
    rig_map_to(&rig, 1, 2, owners, false);
    settle(10);
    ck_assert_uint_eq(rig.seen.count[MESSAGE_RESULT], before + IDS);
    ck_assert_int_eq(rig.seen.result.error, TERRANE_ERR_ENTITY_EXISTS);
    ck_assert_uint_eq(owned(0), 0);
    ck_assert_uint_eq(owned(1), IDS);
    close_rig();
}
END_TEST

START_TEST(what_was_lost_with_its_server_may_enter_again)
{
    open_rig();
    for (uint64_t id = 1; id <= IDS; id++) enter(1, id, 2 * id, 1000);
    struct leaf_owner owners[4] = {owner_of(0, 1, 0), owner_of(1, 2, 0), owner_of(2, 1, 0), owner_of(3, 2, 0)};
    rig_map_to(&rig, 0, 2, owners, true);
    settle(60);
    for (uint64_t id = 1; id <= IDS; id++) {
        enter(0, id, 2 * id + 1, 2000);
        settle(25);
        expect(2 * id + 1, TERRANE_ERR_OK);
    }
    ck_assert_uint_eq(owned(0), IDS);
    close_rig();
}
END_TEST

SUITE_MAIN("cellserver registry", an_id_that_lives_elsewhere_is_refused,
           a_life_is_above_the_last_one_even_if_its_gateways_clock_is_behind, an_id_that_has_left_may_enter_anywhere,
           a_hand_off_takes_the_id_along, a_repetition_while_the_home_is_asked_is_answered_once,
           a_new_home_hears_of_all_before_it_decides, a_new_home_waits_for_those_that_have_not_told_yet,
           what_was_lost_with_its_server_may_enter_again)
