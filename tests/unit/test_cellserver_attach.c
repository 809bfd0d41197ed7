/* An entity changes its gateway; a gateway goes, and what it had stays for a while. */
#include "tests/unit/standby_rig.h"

#include "tests/unit/suite.h"

static struct stand s;

static const struct node_id other_gateway = {777}; /* not in the map */

/* Leaf 0 is ours by the primary's death, with entity 7, which belongs to `gateway`. */
static void open_with(struct node_id gateway, struct node_id standby)
{
    struct world world = world_default();
    stand_open(&s, &world);
    struct standby_item item = stand_item(7, 0, 1000, 1000, 0);
    item.transfer.gateway = gateway;
    stand_snapshot(&s, 0, &item, 1);
    stand_primary_dies(&s);
    if (standby.v != 0) {
        s.map[0].standby = standby;
        s.map[0].epoch++;
        stand_map(&s);
    }
    for (int i = 0; i < 20; i++) stand_tick(&s);
    stand_forget(&s);
}

static void attach(uint64_t sequence, uint64_t id, struct node_id former)
{
    attach_encode(&s.w, &(struct attach){.request = 40, .sequence = sequence, .id = {id}, .former = former});
    stand_say(&s, STAND_GATEWAY, true);
}

static void set_state(uint64_t sequence, const char *state)
{
    struct set_state m = {.request = 41, .sequence = sequence, .id = {7}, .state = (const uint8_t *)state};
    m.state_size = 4;
    set_state_encode(&s.w, &m);
    stand_say(&s, STAND_GATEWAY, true);
}

static const struct stand_told *told(void)
{
    return &s.told[STAND_GATEWAY];
}

START_TEST(who_attaches_hears_all_of_it_and_is_its_gateway_from_then_on)
{
    open_with(other_gateway, NODE_NONE);
    set_state(100, "hp=1"); /* not its own yet */
    ck_assert_int_ne(told()->result.error, TERRANE_ERR_OK);
    stand_forget(&s);
    attach(100, 7, NODE_NONE);
    ck_assert_uint_eq(told()->count[MESSAGE_ATTACHED], 1);
    ck_assert_uint_eq(told()->attached.record.id.v, 7);
    ck_assert_int_eq(told()->attached.record.position.x, 1000);
    ck_assert(quadkey_equal(told()->attached.leaf, stand_leaf(0)));
    ck_assert_uint_eq(told()->result.request, 40);
    ck_assert_int_eq(told()->result.error, TERRANE_ERR_OK);
    stand_tick(&s);
    ck_assert_uint_eq(told()->count[MESSAGE_VIEWS], 1);
    ck_assert_int_eq(told()->view.part, VIEW_WHOLE_LAST);
    set_state(99, "late"); /* said before the attach: the registers go by that */
    ck_assert_str_eq(stand_owned(&s, 7).state, "hp=7");
    set_state(101, "hp=2");
    ck_assert_str_eq(stand_owned(&s, 7).state, "hp=2");
    for (int i = 0; i < 220; i++) stand_tick(&s); /* its former gateway's grace is nothing to it */
    ck_assert_uint_eq(stand_owned(&s, 7).count, 1);
    stand_close(&s);
}
END_TEST

START_TEST(a_repeated_attach_is_answered_and_changes_nothing)
{
    open_with(other_gateway, NODE_NONE);
    attach(100, 7, NODE_NONE);
    set_state(101, "hp=2");
    attach(100, 7, NODE_NONE);
    ck_assert_uint_eq(told()->count[MESSAGE_ATTACHED], 2);
    set_state(101, "hp=9"); /* a repetition as well */
    ck_assert_str_eq(stand_owned(&s, 7).state, "hp=2");
    stand_close(&s);
}
END_TEST

START_TEST(an_attach_is_done_when_the_standby_has_it)
{
    open_with(other_gateway, stand_node[STAND_THIRD]);
    standby_ack_begin(&s.w, &(struct standby_ack){.count = 1});
    standby_ack_add(&s.w, &(struct standby_ack_item){.leaf = stand_leaf(0), .epoch = s.map[0].epoch, .seq = 1});
    stand_say(&s, STAND_THIRD, true);
    stand_forget(&s);
    attach(100, 7, NODE_NONE);
    ck_assert_uint_eq(told()->count[MESSAGE_ATTACHED], 1);
    ck_assert_uint_eq(told()->count[MESSAGE_RESULT], 0);
    ck_assert_uint_eq(s.told[STAND_THIRD].count[MESSAGE_STANDBY], 1);
    standby_ack_begin(&s.w, &(struct standby_ack){.count = 1});
    standby_ack_add(&s.w, &(struct standby_ack_item){.leaf = stand_leaf(0), .epoch = s.map[0].epoch, .seq = 2});
    stand_say(&s, STAND_THIRD, true);
    ck_assert_uint_eq(told()->count[MESSAGE_RESULT], 1);
    ck_assert_int_eq(told()->result.error, TERRANE_ERR_OK);
    stand_close(&s);
}
END_TEST

START_TEST(an_attach_that_names_a_former_gateway_takes_nothing_from_another)
{
    open_with(other_gateway, NODE_NONE);
    attach(100, 7, (struct node_id){778});
    ck_assert_uint_eq(told()->count[MESSAGE_ATTACHED], 0);
    ck_assert_int_eq(told()->result.error, TERRANE_ERR_DETACHED);
    attach(100, 7, other_gateway);
    ck_assert_uint_eq(told()->count[MESSAGE_ATTACHED], 1);
    attach(101, 8, NODE_NONE);
    ck_assert_int_eq(told()->result.error, TERRANE_ERR_ENTITY_UNKNOWN);
    stand_close(&s);
}
END_TEST

START_TEST(the_former_gateway_hears_that_it_has_it_no_more)
{
    open_with(stand_node[STAND_GATEWAY], NODE_NONE);
    struct writer command = {0};
    attach_encode(&command, &(struct attach){.request = 50, .sequence = 100, .id = {7}});
    forward_encode(
        &s.w, &(struct forward){.gateway = other_gateway, .hops = 1, .command = cursor_of(command.data, command.size)});
    stand_say(&s, STAND_THIRD, true);
    writer_close(&command);
    ck_assert_uint_eq(told()->count[MESSAGE_ATTACHED], 0);
    ck_assert_uint_eq(told()->count[MESSAGE_RESULT], 1);
    ck_assert_uint_eq(told()->result.request, 0);
    ck_assert_uint_eq(told()->result.id.v, 7);
    ck_assert_int_eq(told()->result.error, TERRANE_ERR_DETACHED);
    set_state(200, "hp=3");
    ck_assert_str_eq(stand_owned(&s, 7).state, "hp=7");
    stand_close(&s);
}
END_TEST

START_TEST(a_gateway_that_the_map_names_no_more_has_its_entities_for_its_grace)
{
    open_with(stand_node[STAND_GATEWAY], NODE_NONE);
    for (int i = 0; i < 220; i++) stand_tick(&s);
    ck_assert_uint_eq(stand_owned(&s, 7).count, 1); /* it is named */
    s.gone[STAND_GATEWAY] = true;
    stand_map(&s);
    for (int i = 0; i < 190; i++) stand_tick(&s);
    ck_assert_uint_eq(stand_owned(&s, 7).count, 1);
    for (int i = 0; i < 20; i++) stand_tick(&s);
    ck_assert_uint_eq(stand_owned(&s, 7).count, 0);
    stand_close(&s);
}
END_TEST

START_TEST(a_gateway_that_is_named_again_in_time_keeps_them)
{
    open_with(stand_node[STAND_GATEWAY], NODE_NONE);
    s.gone[STAND_GATEWAY] = true;
    stand_map(&s);
    for (int i = 0; i < 100; i++) stand_tick(&s);
    s.gone[STAND_GATEWAY] = false;
    stand_map(&s);
    for (int i = 0; i < 300; i++) stand_tick(&s);
    ck_assert_uint_eq(stand_owned(&s, 7).count, 1);
    stand_close(&s);
}
END_TEST

START_TEST(an_attach_over_the_gateways_quota_is_refused_and_what_it_had_stays_as_it_was)
{
    stand_session_entities = 1;
    open_with(other_gateway, NODE_NONE);
    struct enter enter = {.request = 8, .sequence = 1};
    enter.record = (struct entity_record){.id = {8}, .version = 1000, .position = {1000, 1000, 0}};
    enter_encode(&s.w, &enter);
    stand_say(&s, STAND_GATEWAY, true);
    ck_assert_int_eq(told()->result.error, TERRANE_ERR_OK);
    attach(100, 7, NODE_NONE);
    ck_assert_uint_eq(told()->result.id.v, 7);
    ck_assert_int_eq(told()->result.error, TERRANE_ERR_LIMIT);
    ck_assert_uint_eq(told()->count[MESSAGE_ATTACHED], 0);
    stand_tick(&s);
    leave_encode(&s.w, &(struct leave){.request = 9, .sequence = 2, .id = {8}});
    stand_say(&s, STAND_GATEWAY, true);
    attach(101, 7, NODE_NONE);
    ck_assert_uint_eq(told()->count[MESSAGE_ATTACHED], 1);
    attach(101, 7, NODE_NONE); /* its own by now: asks for no more */
    ck_assert_uint_eq(told()->count[MESSAGE_ATTACHED], 2);
    stand_close(&s);
    stand_session_entities = 0;
}
END_TEST

SUITE_MAIN("cellserver_attach", who_attaches_hears_all_of_it_and_is_its_gateway_from_then_on,
           a_repeated_attach_is_answered_and_changes_nothing, an_attach_is_done_when_the_standby_has_it,
           an_attach_that_names_a_former_gateway_takes_nothing_from_another,
           the_former_gateway_hears_that_it_has_it_no_more,
           a_gateway_that_the_map_names_no_more_has_its_entities_for_its_grace,
           a_gateway_that_is_named_again_in_time_keeps_them,
           an_attach_over_the_gateways_quota_is_refused_and_what_it_had_stays_as_it_was)
