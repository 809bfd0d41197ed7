/* A hand-off, one side of it real: what the source asks again, what the destination keeps and what it can't refuse. */
#include "tests/unit/standby_rig.h"

#include "tests/unit/suite.h"

enum { UNIT = 164, HALF = 1 << 20 };

static struct stand s;

/* We own leaf 1 (the south-east), the third leaf 3 (the north-east). */
static void open_with_standby(struct node_id standby)
{
    struct world world = world_default();
    stand_open(&s, &world);
    s.map[1].standby = standby;
    s.map[1].epoch++;
    stand_map(&s);
    stand_tick(&s);
}

static void enter_and_cross(uint64_t id)
{
    struct enter enter = {.request = id, .sequence = 1};
    enter.record =
        (struct entity_record){.id = {id}, .version = 1000, .position = {HALF + 10 * UNIT, HALF - 5 * UNIT, 0}};
    enter_encode(&s.w, &enter);
    stand_say(&s, STAND_GATEWAY, true);
    stand_tick(&s);
    stand_tick(&s);
    moves_begin(&s.w, &(struct moves){.sequence = 10, .count = 1});
    moves_add(&s.w, &(struct move){.id = {id}, .position = {HALF + 10 * UNIT, HALF + 5 * UNIT, 0}});
    stand_say(&s, STAND_GATEWAY, false);
    stand_tick(&s);
}

static void refuse(enum stand_peer peer, uint32_t since, uint64_t id)
{
    refuse_begin(&s.w,
                 &(struct refuse){.to = stand_leaf(3), .to_epoch = since, .error = TERRANE_ERR_LIMIT, .count = 1});
    accept_add(&s.w, &(struct accept_item){.id = {id}, .offered = 1000});
    stand_say(&s, peer, true);
}

static void accept(enum stand_peer peer, uint32_t since, uint64_t id)
{
    accept_begin(&s.w, &(struct accept){.to = stand_leaf(3), .to_epoch = since, .count = 1});
    accept_add(&s.w, &(struct accept_item){.id = {id}, .offered = 1000, .version = 1001});
    stand_say(&s, peer, true);
}

static void offer(enum stand_peer peer, uint32_t child, uint32_t since, uint64_t id, int32_t x)
{
    struct transfer item = stand_item(id, 0, x, 3000, 0).transfer;
    offer_begin(&s.w,
                &(struct offer){
                    .from = stand_leaf(3), .to = stand_leaf(child), .from_epoch = 1, .to_epoch = since, .count = 1});
    offer_add(&s.w, &item);
    stand_say(&s, peer, true);
}

/* The standby of leaf 1, played by the primary, has all. */
static void acknowledge(void)
{
    standby_ack_begin(&s.w, &(struct standby_ack){.stamp = s.now_us, .count = 1});
    standby_ack_add(&s.w, &(struct standby_ack_item){.leaf = stand_leaf(1),
                                                     .epoch = s.map[1].epoch,
                                                     .seq = s.told[STAND_PRIMARY].count[MESSAGE_STANDBY]});
    stand_say(&s, STAND_PRIMARY, true);
}

START_TEST(an_offer_is_repeated_when_the_destination_has_another_since)
{
    open_with_standby(NODE_NONE);
    enter_and_cross(7);
    ck_assert_uint_eq(s.told[STAND_THIRD].offered_count, 1);
    s.map[3].epoch = 2; /* another standby changes nothing */
    stand_map(&s);
    stand_tick(&s);
    ck_assert_uint_eq(s.told[STAND_THIRD].offered_count, 1);
    s.map[3].epoch = s.map[3].since = 3;
    stand_map(&s);
    ck_assert_uint_eq(s.told[STAND_THIRD].offered_count, 2);
    ck_assert_uint_eq(s.told[STAND_THIRD].offered[1].offered, 1000);
    s.map[3].epoch = s.map[3].since = 4;
    s.map[3].primary = stand_node[STAND_PRIMARY];
    stand_map(&s);
    ck_assert_uint_eq(s.told[STAND_THIRD].offered_count, 2);
    ck_assert_uint_eq(s.told[STAND_PRIMARY].offered_count, 1);
    ck_assert_uint_eq(s.told[STAND_PRIMARY].offered[0].offered, 1000);
    accept(STAND_THIRD, 3, 7); /* it is asked no more */
    ck_assert(stand_owned(&s, 7).entity.leaving);
    accept(STAND_PRIMARY, 4, 7);
    ck_assert_uint_eq(stand_owned(&s, 7).count, 0);
    ck_assert_uint_eq(stand_stats(&s).leaving, 0);
    stand_close(&s);
}
END_TEST

START_TEST(a_refusal_under_an_older_since_does_not_count)
{
    open_with_standby(NODE_NONE);
    enter_and_cross(7);
    s.map[3].epoch = s.map[3].since = 2;
    stand_map(&s);
    ck_assert_uint_eq(s.told[STAND_THIRD].offered_count, 2);
    refuse(STAND_THIRD, 1, 7);
    ck_assert(stand_owned(&s, 7).entity.leaving);
    ck_assert_uint_eq(stand_stats(&s).handoffs_refused, 0);
    refuse(STAND_THIRD, 2, 7);
    ck_assert(!stand_owned(&s, 7).entity.leaving);
    ck_assert_uint_eq(stand_stats(&s).handoffs_refused, 1);
    stand_close(&s);
}
END_TEST

START_TEST(an_offer_for_a_leaf_that_is_not_ours_yet_is_answered_when_it_is)
{
    open_with_standby(NODE_NONE);
    struct standby_item item = stand_item(5, 0, 1000, 1000, 0);
    stand_snapshot(&s, 0, &item, 1);
    stand_beat(&s);
    offer(STAND_THIRD, 0, 2, 50, 2000); /* our map is behind the third's */
    stand_tick(&s);
    ck_assert_uint_eq(s.told[STAND_THIRD].count[MESSAGE_ACCEPT] + s.told[STAND_THIRD].count[MESSAGE_REFUSE], 0);
    stand_give(&s, 0, NODE_NONE); /* its primary may serve still: it is ours when the last ack is old */
    stand_map(&s);
    stand_tick(&s);
    ck_assert_uint_eq(stand_owned(&s, 50).count, 0);
    ck_assert_uint_eq(s.told[STAND_THIRD].count[MESSAGE_ACCEPT] + s.told[STAND_THIRD].count[MESSAGE_REFUSE], 0);
    for (int i = 0; i < 8; i++) stand_tick(&s);
    ck_assert_uint_eq(stand_owned(&s, 5).count, 1);
    ck_assert_uint_eq(stand_owned(&s, 50).count, 1);
    ck_assert_uint_eq(s.told[STAND_THIRD].count[MESSAGE_ACCEPT], 1);
    stand_close(&s);
}
END_TEST

START_TEST(an_offer_for_a_leaf_that_is_ours_no_more_gets_no_answer)
{
    open_with_standby(NODE_NONE);
    offer(STAND_PRIMARY, 3, 1, 50, 2000);
    stand_tick(&s);
    ck_assert_uint_eq(s.told[STAND_PRIMARY].count[MESSAGE_ACCEPT] + s.told[STAND_PRIMARY].count[MESSAGE_REFUSE], 0);
    ck_assert_uint_eq(stand_owned(&s, 50).count, 0);
    stand_close(&s);
}
END_TEST

START_TEST(what_is_pending_is_not_refused_and_the_newest_asker_is_answered)
{
    open_with_standby(stand_node[STAND_PRIMARY]);
    offer(STAND_THIRD, 1, 1, 51, 2 * HALF); /* outside of the world: refused while it is new here */
    ck_assert_uint_eq(s.told[STAND_THIRD].count[MESSAGE_REFUSE], 1);
    offer(STAND_THIRD, 1, 1, 50, HALF + 2000);
    ck_assert_uint_eq(stand_stats(&s).pending, 1);
    ck_assert_uint_eq(s.told[STAND_THIRD].count[MESSAGE_ACCEPT], 0);
    lookup_encode(&s.w, &(struct lookup){.request = 7, .id = {50}});
    stand_say(&s, STAND_GATEWAY, true);
    ck_assert_int_eq(s.told[STAND_GATEWAY].lookup.error, TERRANE_ERR_NOT_READY); /* it may be about to have it */
    s.map[3].epoch = s.map[3].since = 2; /* the third's leaf has another primary, which asks again */
    s.map[3].primary = stand_node[STAND_PRIMARY];
    stand_map(&s);
    struct transfer item = stand_item(50, 0, 2 * HALF, 3000, 0).transfer;
    offer_begin(
        &s.w, &(struct offer){.from = stand_leaf(3), .to = stand_leaf(1), .from_epoch = 2, .to_epoch = 1, .count = 1});
    offer_add(&s.w, &item);
    stand_say(&s, STAND_PRIMARY, true);
    ck_assert_uint_eq(s.told[STAND_PRIMARY].count[MESSAGE_REFUSE], 0);
    ck_assert_uint_eq(stand_stats(&s).pending, 1);
    acknowledge();
    ck_assert_uint_eq(stand_stats(&s).pending, 0);
    ck_assert_uint_eq(stand_owned(&s, 50).entity.record.version, 1001);
    ck_assert_uint_eq(s.told[STAND_THIRD].count[MESSAGE_ACCEPT], 0);
    ck_assert_uint_eq(s.told[STAND_PRIMARY].count[MESSAGE_ACCEPT], 1);
    stand_close(&s);
}
END_TEST

/* The source has let go and its copy here is without it; the copy of the destination, which died behind its commit, has
 * it as pending only. */
START_TEST(who_is_pending_in_one_copy_and_dropped_from_another_is_there)
{
    open_with_standby(NODE_NONE);
    struct standby_item item = stand_item(50, 0, 1000, 1000, 0);
    item.leaving_to = stand_leaf(2);
    stand_snapshot(&s, 0, &item, 1);
    item.leaving_to = (struct quadkey){0};
    item.pending = true;
    stand_snapshot(&s, 2, &item, 1);
    stand_change(&s, 0, 50, NULL, NULL);
    stand_primary_dies(&s);
    ck_assert_uint_eq(stand_owned(&s, 50).count, 1);
    ck_assert_uint_gt(stand_owned(&s, 50).entity.record.version, 1001);
    stand_close(&s);
}
END_TEST

static void set_state(uint64_t request)
{
    static uint8_t state[LIMIT_STATE_BYTES];
    set_state_encode(
        &s.w, &(struct set_state){
                  .request = request, .sequence = request, .id = {7}, .state = state, .state_size = sizeof state});
    stand_say(&s, STAND_GATEWAY, true);
}

START_TEST(commands_are_refused_while_the_queue_to_the_standby_is_full)
{
    open_with_standby(stand_node[STAND_PRIMARY]);
    struct enter enter = {.request = 7, .sequence = 1};
    enter.record = (struct entity_record){.id = {7}, .version = 1000, .position = {HALF + 2000, 2000, 0}};
    enter_encode(&s.w, &enter);
    stand_say(&s, STAND_GATEWAY, true);
    acknowledge();
    ck_assert_int_eq(s.told[STAND_GATEWAY].result.error, TERRANE_ERR_OK);
    s.gone[STAND_PRIMARY] = true; /* deaf, but the map names it */
    uint64_t request = 100;
    while (s.told[STAND_GATEWAY].result.error == TERRANE_ERR_OK && request < 100000) {
        set_state(++request);
        if (request % 50 == 0) stand_tick(&s); /* which acknowledges packets */
    }
    ck_assert_int_eq(s.told[STAND_GATEWAY].result.error, TERRANE_ERR_QUEUE_FULL);
    ck_assert_uint_eq(s.told[STAND_GATEWAY].result.request, request);
    ck_assert_uint_eq(stand_stats(&s).standby_waiting, request - 101);
    ck_assert_uint_le((request - 100) * LIMIT_STATE_BYTES, LIMIT_SURE_BYTES); /* by its bytes */
    s.gone[STAND_PRIMARY] = false; /* then all that was taken is answered, and more is taken */
    stand_step(&s, &(struct event){.kind = EVENT_PEER_UP, .node = stand_node[STAND_PRIMARY]});
    for (int i = 0; i < 20; i++) stand_tick(&s);
    acknowledge();
    ck_assert_uint_eq(stand_stats(&s).standby_waiting, 0);
    set_state(++request);
    acknowledge();
    ck_assert_uint_eq(s.told[STAND_GATEWAY].result.request, request);
    ck_assert_int_eq(s.told[STAND_GATEWAY].result.error, TERRANE_ERR_OK);
    stand_close(&s);
}
END_TEST

SUITE_MAIN("cellserver_handoff", an_offer_is_repeated_when_the_destination_has_another_since,
           a_refusal_under_an_older_since_does_not_count,
           an_offer_for_a_leaf_that_is_not_ours_yet_is_answered_when_it_is,
           an_offer_for_a_leaf_that_is_ours_no_more_gets_no_answer,
           what_is_pending_is_not_refused_and_the_newest_asker_is_answered,
           who_is_pending_in_one_copy_and_dropped_from_another_is_there,
           commands_are_refused_while_the_queue_to_the_standby_is_full)
