/* What the observers of a leaf that has just been promoted are told, and when: nobody may blink. */
#include "tests/unit/standby_rig.h"

#include "tests/unit/suite.h"

#define UNIT 164 /* position units in about a metre */

static struct stand s;
static int32_t half;

static void open_rig(void)
{
    struct world world = world_default();
    world.radius_max = 200 * UNIT;
    half = 1 << (world.resolution_bits - 1);
    stand_open(&s, &world);
}

START_TEST(whole_views_wait_for_the_ghosts_around_but_not_for_ever)
{
    open_rig();
    /* Leaf 2 is the third's now, and of its border nothing is here yet: leaf 1, which is ours, is far from it. */
    struct standby_item observer = stand_item(7, 0, 1000, half - 1000, 100 * UNIT);
    stand_snapshot(&s, 0, &observer, 1);
    s.map[2].primary = stand_node[STAND_THIRD];
    s.map[2].standby = NODE_NONE;
    s.map[2].since = ++s.map[2].epoch;
    stand_map(&s);
    stand_primary_dies(&s);
    for (int i = 0; i < 4; i++) stand_tick(&s);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_VIEWS], 0);
    struct session *third = s.session[STAND_THIRD];
    ck_assert_uint_gt(s.told[STAND_THIRD].count[MESSAGE_SUBSCRIBE], 0);
    for (uint32_t child = 2; child <= 3; child++) {
        snapshot_begin(&s.w, &(struct snapshot){.stream = STREAM_GHOST,
                                                .leaf = stand_leaf(child),
                                                .epoch = s.map[child].since,
                                                .parts = 1,
                                                .count = child == 2});
        struct entity_record record = {.id = {9}, .version = 5, .position = {1000, half + 1000, 0}};
        if (child == 2) snapshot_add(&s.w, 0, &record);
        ck_assert_int_eq(session_push(third, s.w.data, s.w.size), TERRANE_ERR_OK);
        writer_clear(&s.w);
    }
    stand_flush(&s, STAND_THIRD);
    for (int i = 0; i < 2; i++) stand_tick(&s);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_VIEWS],
                      0); /* somebody may be on the way from one to another */
    stand_tick(&s);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_VIEWS], 1);
    ck_assert_int_eq(s.told[STAND_GATEWAY].view.part, VIEW_WHOLE_LAST);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].view.see_count, 1);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].see[0], 9);
    stand_close(&s);

    open_rig();
    struct standby_item both[] = {observer, stand_item(8, 1, 1000, 1000, 100 * UNIT)};
    stand_snapshot(&s, 0, both, 2);
    s.map[2].primary = stand_node[STAND_THIRD];
    s.map[2].since = ++s.map[2].epoch;
    s.map[2].standby = NODE_NONE;
    s.seq[0] = 1;
    stand_map(&s);
    stand_primary_dies(&s);
    for (int i = 0; i < 14; i++) stand_tick(&s); /* three leases are 15 ticks */
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_VIEWS], 0);
    for (int i = 0; i < 2; i++) stand_tick(&s);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_VIEWS], 1); /* of the one that can't see into leaf 2 */
    ck_assert_uint_eq(s.told[STAND_GATEWAY].view.observer.v, 8);
    for (int i = 0; i < 38; i++) stand_tick(&s);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_VIEWS], 1);
    for (int i = 0; i < 2; i++) stand_tick(&s); /* two seconds more, and no longer */
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_VIEWS], 2);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].view.observer.v, 7);
    stand_close(&s);
}
END_TEST

static void ghosts_come(enum stand_peer from, uint32_t child, const struct entity_record *record)
{
    snapshot_begin(&s.w, &(struct snapshot){.stream = STREAM_GHOST,
                                            .leaf = stand_leaf(child),
                                            .epoch = s.map[child].since,
                                            .parts = 1,
                                            .count = record != NULL});
    if (record != NULL) snapshot_add(&s.w, 0, record);
    ck_assert_int_eq(session_push(s.session[from], s.w.data, s.w.size), TERRANE_ERR_OK);
    writer_clear(&s.w);
    stand_flush(&s, from);
}

/* Leaves 0 and 3 are both the primary's; what it told of 3's border is what leaf 1, ours, may see, and not what its own
 * leaf 0 sees. */
START_TEST(whole_views_wait_for_ghosts_of_a_leaf_that_changed_hands_as_well)
{
    open_rig();
    struct standby_item observer = stand_item(7, 0, half - 1000, half - 1000, 100 * UNIT);
    struct entity_record record = {.id = {9}, .version = 5, .position = {half + 1000, half + 1000, 0}};
    s.map[3].primary = stand_node[STAND_PRIMARY];
    s.map[3].since = ++s.map[3].epoch;
    stand_map(&s);
    ghosts_come(STAND_PRIMARY, 3, NULL);
    stand_snapshot(&s, 0, &observer, 1);
    s.map[3].primary = stand_node[STAND_THIRD];
    s.map[3].since = ++s.map[3].epoch;
    stand_primary_dies(&s);
    ck_assert_uint_eq(stand_owned(&s, 7).count, 1);
    for (int i = 0; i < 4; i++) stand_tick(&s);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_VIEWS], 0);
    ghosts_come(STAND_THIRD, 3, &record);
    for (int i = 0; i < 3; i++) stand_tick(&s);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].count[MESSAGE_VIEWS], 1);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].view.see_count, 1);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].see[0], 9);
    stand_close(&s);
}
END_TEST

SUITE_MAIN("cellserver_views_held", whole_views_wait_for_the_ghosts_around_but_not_for_ever,
           whole_views_wait_for_ghosts_of_a_leaf_that_changed_hands_as_well)
