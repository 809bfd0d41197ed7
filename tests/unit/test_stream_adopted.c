/* Who was given away by this process: how long it is shown, and what ends it. */
#include "tests/unit/stream_kit.h"
#include "tests/unit/suite.h"

#define HOLD (2 * KIT_SECOND)

static struct kit_log log_;
static struct replicas *r;
static struct kit_source *west, *east;

static void begin_with(enum stream_kind kind)
{
    kit_kind = kind;
    r = kit_replicas_open(&log_);
    west = kit_source_open("0", 1);
    east = kit_source_open("1", 1);
    kit_level(r, 0, west);
    kit_level(r, 0, east);
}

static void begin(void)
{
    begin_with(STREAM_REGION);
}

static void end(void)
{
    replicas_close(r);
    kit_source_close(west);
    kit_source_close(east);
}

static void tell(uint64_t now_us, struct kit_source *s)
{
    ck_assert(kit_publish(s));
    ck_assert_int_eq(kit_feed(r, now_us, s), TERRANE_ERR_OK);
}

/* What is known of entity `id`; false: it is not visible. */
static bool known(uint64_t id, struct entity_record *out)
{
    uint32_t handle = replicas_find(r, (struct entity_id){id});
    return handle != UINT32_MAX && replicas_get(r, handle, out);
}

static bool visible(uint64_t id)
{
    struct entity_record record;
    return known(id, &record);
}

static uint64_t version_of(uint64_t id)
{
    struct entity_record record;
    ck_assert(known(id, &record));
    return record.version;
}

static void last_told(uint64_t id, uint32_t changes)
{
    ck_assert_uint_gt(log_.count, 0);
    ck_assert_uint_eq(log_.told[log_.count - 1].record.id.v, id);
    ck_assert_uint_eq(log_.told[log_.count - 1].changes, changes);
}

START_TEST(an_adopted_entity_is_visible_until_its_next_owner_speaks)
{
    begin();
    struct entity_record record = kit_record(1, 11, 99, 0);
    record.state = (const uint8_t *)"ab";
    record.state_size = 2;
    replicas_supersede(r, 1, record.id, 11); /* it was ours */
    replicas_adopt(r, 2, QUADKEY_NONE, &record);
    last_told(1, BIT(REPLICA_APPEARED));
    ck_assert(memcmp(log_.told[0].state, "ab", 2) == 0);
    replicas_tick(r, 1 + HOLD);
    record.version = 12;
    record.position.x = 101;
    kit_enter(east, 0, record);
    tell(1 + HOLD, east);
    last_told(1, BIT(REPLICA_MOVED) | BIT(REPLICA_CHANGED));
    replicas_tick(r, 10 * HOLD);
    ck_assert(visible(1) && log_.count == 2);
    end();
}
END_TEST

START_TEST(an_adopted_entity_that_no_stream_claims_vanishes)
{
    begin();
    struct entity_record record = kit_record(1, 11, 99, 0);
    replicas_adopt(r, 2, QUADKEY_NONE, &record);
    replicas_adopt(r, 3, QUADKEY_NONE, &record); /* once more: its time starts anew */
    ck_assert_uint_eq(log_.count, 1);
    replicas_tick(r, 2 + HOLD);
    ck_assert(visible(1));
    replicas_tick(r, 3 + HOLD);
    ck_assert(!visible(1));
    end();
}
END_TEST

START_TEST(who_is_not_in_a_snapshot_of_where_it_went_ends_soon_when_all_leaves_are_level)
{
    begin();
    struct entity_record stays = kit_record(1, 11, 99, 0), goes = kit_record(2, 11, 99, 0);
    replicas_adopt(r, 2, east->leaf, &stays);
    replicas_adopt(r, 2, east->leaf, &goes);
    kit_snapshot(r, 3, west); /* of another leaf */
    ck_assert(visible(1) && visible(2) && replicas_orphaned(r));
    stays.version = 12;
    kit_enter(east, 0, stays);
    kit_publish(east);                   /* that frame is lost */
    replicas_watch(r, 4, kit_leaf("2")); /* it may have gone on to there */
    kit_snapshot(r, 4, east);
    replicas_tick(r, 1 + HOLD);
    ck_assert(visible(1) && visible(2) && replicas_orphaned(r));
    replicas_unwatch(r, 1 + HOLD, kit_leaf("2"), true);
    replicas_adopt(r, 1 + HOLD, east->leaf, &goes);
    kit_snapshot(r, 2 + HOLD, east);
    replicas_tick(r, 2 + HOLD);
    replicas_tick(r, 1 + HOLD + HOLD / 2);
    ck_assert(visible(2)); /* a frame may have been lost, and be asked for */
    replicas_tick(r, 2 + HOLD + HOLD / 2);
    ck_assert(visible(1) && !visible(2) && !replicas_orphaned(r));
    end();
}
END_TEST

START_TEST(who_is_adopted_while_no_leaf_is_known_waits_out_its_time_whatever_takes_the_place_of_a_leaf)
{
    begin();
    struct entity_record record = kit_record(1, 11, 99, 0);
    replicas_adopt(r, 2, east->leaf, &record);
    replicas_unwatch(r, 3, east->leaf, true);
    replicas_watch(r, 4, kit_leaf("2")); /* in the same place of the table */
    struct kit_source *north = kit_source_open("2", 1);
    kit_snapshot(r, 5, north);
    ck_assert(visible(1));
    replicas_tick(r, 2 + HOLD);
    ck_assert(!visible(1));
    kit_source_close(north);
    end();
}
END_TEST

START_TEST(adopting_changes_nothing_where_a_claim_is_as_new_or_the_life_is_over)
{
    begin();
    kit_enter(west, 0, kit_record(1, 11, 90, 0));
    kit_enter(west, 1, kit_record(2, 11, 90, 0));
    kit_enter(west, 2, kit_record(3, 10, 90, 0));
    tell(1, west);
    kit_leave(west, 1, LEFT_GONE);
    tell(2, west);
    log_.count = 0;
    for (uint64_t id = 1; id <= 2; id++) {
        struct entity_record record = kit_record(id, 11, 55, 0);
        replicas_adopt(r, 3, QUADKEY_NONE, &record);
    }
    ck_assert(log_.count == 0 && visible(1) && !visible(2));
    struct entity_record newer = kit_record(3, 11, 55, 0);
    replicas_adopt(r, 3, QUADKEY_NONE, &newer);
    last_told(3, BIT(REPLICA_MOVED) | BIT(REPLICA_CHANGED));
    ck_assert_uint_eq(version_of(3), 11);
    end();
}
END_TEST

SUITE_MAIN("stream_adopted", an_adopted_entity_is_visible_until_its_next_owner_speaks,
           an_adopted_entity_that_no_stream_claims_vanishes,
           who_is_not_in_a_snapshot_of_where_it_went_ends_soon_when_all_leaves_are_level,
           who_is_adopted_while_no_leaf_is_known_waits_out_its_time_whatever_takes_the_place_of_a_leaf,
           adopting_changes_nothing_where_a_claim_is_as_new_or_the_life_is_over)
