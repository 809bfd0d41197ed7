#include "tests/unit/cell_rig.h"

#include "tests/unit/suite.h"

#define UNIT 164 /* position units in about a metre */

static struct rig rig;
static int32_t half;

static void open_rig(void)
{
    struct world world = world_default();
    world.radius_max = 200 * UNIT;
    half = 1 << (world.resolution_bits - 1);
    rig_open(&rig, &world);
}

static void settle(void)
{
    for (int i = 0; i < 6; i++) rig_tick(&rig);
}

struct census {
    uint32_t count, leaving;
    struct cellserver_entity last;
    uint8_t state[64];
};

static void count_entity(void *context, const struct cellserver_entity *entity)
{
    struct census *census = context;
    census->count++;
    census->leaving += entity->leaving;
    census->last = *entity;
    ck_assert_uint_le(entity->record.state_size, sizeof census->state);
    memcpy(census->state, entity->record.state, entity->record.state_size);
}

static struct census census(uint32_t server)
{
    struct census c = {0};
    cellserver_census(rig.servers[server], count_entity, &c);
    return c;
}

static uint64_t ghosts(uint32_t server)
{
    struct cellserver_stats stats;
    cellserver_stats(rig.servers[server], &stats);
    return stats.ghosts;
}

START_TEST(owns_what_the_map_says_and_is_ready)
{
    open_rig();
    uint32_t epoch = 0;
    ck_assert(cellserver_ready(rig.servers[0]));
    ck_assert(cellserver_owns(rig.servers[0], quadkey_child(QUADKEY_ROOT, 0), &epoch));
    ck_assert_uint_eq(epoch, 1);
    ck_assert(!cellserver_owns(rig.servers[0], quadkey_child(QUADKEY_ROOT, 1), &epoch));
    ck_assert(cellserver_calm(rig.servers[0]) && cellserver_calm(rig.servers[1]));
    rig_close(&rig);
}
END_TEST

START_TEST(an_enter_is_answered_once_and_repeats_are_harmless)
{
    open_rig();
    rig_enter(&rig, 0, 7, 1000, 1000, 0);
    ck_assert_uint_eq(rig.seen.count[MESSAGE_RESULT], 1);
    ck_assert_int_eq(rig.seen.result.error, TERRANE_ERR_OK);
    rig_enter(&rig, 0, 7, 1000, 1000, 0);
    ck_assert_int_eq(rig.seen.result.error, TERRANE_ERR_OK);
    ck_assert_uint_eq(census(0).count, 1);
    ck_assert_mem_eq(census(0).state, "hp=7", 4);
    rig_close(&rig);
}
END_TEST

START_TEST(enters_that_cannot_be_are_refused_with_their_cause)
{
    open_rig();
    rig_enter(&rig, 0, 1, half + 5, 5, 0);
    ck_assert_int_eq(rig.seen.result.error, TERRANE_ERR_NOT_OWNER);
    rig_enter(&rig, 0, 2, 2 * half, 5, 0);
    ck_assert_int_eq(rig.seen.result.error, TERRANE_ERR_POSITION_OUTSIDE);
    rig_enter(&rig, 0, 3, 5, 5, 201 * UNIT);
    ck_assert_int_eq(rig.seen.result.error, TERRANE_ERR_RADIUS_TOO_LARGE);
    ck_assert_uint_eq(census(0).count, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(what_stands_beyond_the_border_is_seen)
{
    open_rig();
    rig_enter(&rig, 0, 1, half - 10 * UNIT, 1000, 50 * UNIT);
    rig_enter(&rig, 1, 2, half + 10 * UNIT, 1000, 0);
    rig_enter(&rig, 1, 3, half + 60 * UNIT, 1000, 0);
    settle();
    ck_assert_uint_eq(ghosts(0), 2);
    ck_assert_uint_eq(ghosts(1), 1);
    ck_assert_uint_eq(rig.seen.view.observer.v, 1);
    ck_assert_uint_eq(rig.seen.view.see_count, 1);
    ck_assert_uint_eq(rig.seen.see[0], 2);
    rig_move(&rig, 1, 2, 2, half + 80 * UNIT, 1000);
    settle();
    ck_assert_uint_eq(rig.seen.view.unsee_count, 1);
    ck_assert_uint_eq(rig.seen.unsee[0], 2);
    rig_close(&rig);
}
END_TEST

START_TEST(a_crossing_keeps_everything_and_changes_the_owner)
{
    open_rig();
    rig_enter(&rig, 0, 7, half - UNIT, 5000, 30 * UNIT);
    settle();
    uint64_t version = census(0).last.record.version;
    rig_move(&rig, 0, 2, 7, half + 5 * UNIT, 5000);
    settle();
    struct census west = census(0), east = census(1);
    ck_assert_uint_eq(west.count, 0);
    ck_assert_uint_eq(east.count, 1);
    ck_assert_uint_eq(east.last.record.version, version + 1);
    ck_assert_int_eq(east.last.record.position.x, half + 5 * UNIT);
    ck_assert_mem_eq(east.state, "hp=7", 4);
    ck_assert_uint_eq(rig.seen.owner.id.v, 7);
    ck_assert_uint_eq(rig.seen.owner.version, version + 1);
    ck_assert_uint_eq(rig.seen.view.part, VIEW_WHOLE_LAST);
    ck_assert_uint_eq(ghosts(0), 1);
    ck_assert_uint_eq(ghosts(1), 0);
    rig_close(&rig);
}
END_TEST

START_TEST(inside_the_handoff_hysteresis_nothing_changes_owner)
{
    open_rig();
    rig_enter(&rig, 0, 7, half - UNIT, 5000, 0);
    rig_move(&rig, 0, 2, 7, half + UNIT, 5000);
    settle();
    ck_assert_uint_eq(census(0).count, 1);
    ck_assert_uint_eq(census(1).count, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(bystanders_never_lose_sight_of_who_crosses)
{
    open_rig();
    rig_enter(&rig, 0, 1, half - 20 * UNIT, 5000, 100 * UNIT);
    rig_enter(&rig, 1, 2, half + 20 * UNIT, 5000, 100 * UNIT);
    rig_enter(&rig, 0, 7, half - UNIT, 5000, 0);
    settle();
    uint32_t sees = rig.seen.sees;
    for (int32_t step = 1; step <= 40; step++) {
        int32_t x = half + (step % 20 < 10 ? step % 10 : 10 - step % 10) * UNIT - 4 * UNIT;
        uint32_t owner = census(0).count == 2 ? 0 : 1;
        rig_move(&rig, owner, 10 + (uint64_t)step, 7, x, 5000);
        rig_tick(&rig);
    }
    settle();
    struct cellserver_stats stats;
    cellserver_stats(rig.servers[0], &stats);
    ck_assert_uint_ge(stats.handoffs_out, 1);
    ck_assert_uint_eq(rig.seen.sees, sees);
    ck_assert_uint_eq(rig.seen.unsees, 0);
    ck_assert_uint_eq(census(0).count + census(1).count, 3);
    rig_close(&rig);
}
END_TEST

START_TEST(a_teleport_across_the_world_is_a_handoff_like_any_other)
{
    open_rig();
    rig_enter(&rig, 0, 7, 1000, 1000, 100 * UNIT);
    rig_enter(&rig, 1, 8, 2 * half - 1000, 2 * half - 1000, 0);
    settle();
    rig_move(&rig, 0, 2, 7, 2 * half - 1010, 2 * half - 1010);
    settle();
    ck_assert_uint_eq(census(0).count, 0);
    ck_assert_uint_eq(census(1).count, 2);
    ck_assert_uint_eq(ghosts(0), 0);
    ck_assert_uint_eq(rig.seen.view.observer.v, 7);
    ck_assert_uint_eq(rig.seen.see[0], 8);
    rig_close(&rig);
}
END_TEST

START_TEST(late_commands_follow_the_entity_and_run_once)
{
    open_rig();
    rig_enter(&rig, 0, 7, half - UNIT, 5000, 0);
    rig_move(&rig, 0, 2, 7, half + 5 * UNIT, 5000);
    settle();
    set_state_encode(&rig.w,
                     &(struct set_state){
                         .request = 50, .sequence = 3, .id = {7}, .state = (const uint8_t *)"hp=6", .state_size = 4});
    rig_say(&rig, 0, true); /* to the former owner */
    rig_move(&rig, 0, 4, 7, half + 6 * UNIT, 5000);
    settle();
    ck_assert_uint_eq(rig.seen.result.request, 50);
    ck_assert_int_eq(rig.seen.result.error, TERRANE_ERR_OK);
    ck_assert_mem_eq(census(1).state, "hp=6", 4);
    ck_assert_int_eq(census(1).last.record.position.x, half + 6 * UNIT);
    /* An older one that comes later changes nothing. */
    set_state_encode(
        &rig.w,
        &(struct set_state){.request = 51, .sequence = 2, .id = {7}, .state = (const uint8_t *)"no", .state_size = 2});
    rig_say(&rig, 1, true);
    ck_assert_int_eq(rig.seen.result.error, TERRANE_ERR_OK);
    ck_assert_mem_eq(census(1).state, "hp=6", 4);
    rig_close(&rig);
}
END_TEST

START_TEST(a_leave_takes_the_entity_out_of_every_view)
{
    open_rig();
    rig_enter(&rig, 0, 1, half - 10 * UNIT, 1000, 50 * UNIT);
    rig_enter(&rig, 1, 2, half + 10 * UNIT, 1000, 50 * UNIT);
    settle();
    leave_encode(&rig.w, &(struct leave){.request = 9, .sequence = 5, .id = {2}});
    rig_say(&rig, 1, true);
    ck_assert_int_eq(rig.seen.result.error, TERRANE_ERR_OK);
    settle();
    ck_assert_uint_eq(rig.seen.view.observer.v, 1);
    ck_assert_uint_eq(rig.seen.unsee[0], 2);
    ck_assert_uint_eq(ghosts(0), 0);
    leave_encode(&rig.w, &(struct leave){.request = 10, .sequence = 6, .id = {2}});
    rig_say(&rig, 1, true);
    ck_assert_int_eq(rig.seen.result.error, TERRANE_ERR_ENTITY_UNKNOWN);
    rig_close(&rig);
}
END_TEST

START_TEST(borders_inside_a_server_change_only_the_label)
{
    open_rig();
    rig_enter(&rig, 0, 7, 5000, half - UNIT, 0);
    rig_move(&rig, 0, 2, 7, 5000, half + 5 * UNIT);
    settle();
    ck_assert_uint_eq(census(0).count, 1);
    ck_assert_uint_eq(census(0).last.leaf.v, quadkey_child(QUADKEY_ROOT, 2).v);
    ck_assert_uint_eq(census(0).last.record.version, 1001);
    ck_assert_uint_eq(rig.seen.owner.version, 1001);
    rig_close(&rig);
}
END_TEST

START_TEST(who_may_not_say_something_is_not_heard)
{
    open_rig();
    struct cellserver_stats before, after;
    cellserver_stats(rig.servers[0], &before);
    offer_begin(&rig.w, &(struct offer){.from = {5}, .to = {4}, .from_epoch = 1, .to_epoch = 1, .count = 0});
    rig_say(&rig, 0, true); /* a hand-off from a gateway */
    welcome_encode(&rig.w, &(struct welcome){.node = rig_gateway, .term = 9, .world = rig.world, .lease_us = 250000});
    rig_say(&rig, 0, false);
    cellserver_stats(rig.servers[0], &after);
    ck_assert_uint_eq(after.malformed, before.malformed + 2);
    rig_step(&rig, 0,
             &(struct event){.kind = EVENT_MESSAGE, .bytes = (const uint8_t *)"\xdd\xff\xff\xff\xff", .size = 5});
    cellserver_stats(rig.servers[0], &after);
    ck_assert_uint_eq(after.malformed, before.malformed + 3);
    rig_close(&rig);
}
END_TEST

START_TEST(another_gateways_entity_is_out_of_reach)
{
    open_rig();
    rig_enter(&rig, 0, 7, 1000, 1000, 0);
    rig.seen.result = (struct result){0};
    /* A second gateway is not in the map: what it says is dropped. */
    struct session *other = session_open(&(struct session_options){.self = {201}, .peer = rig_node(0)});
    leave_encode(&rig.w, &(struct leave){.request = 9, .sequence = 5, .id = {7}});
    ck_assert_int_eq(session_push(other, rig.w.data, rig.w.size), TERRANE_ERR_OK);
    rig_flush(&rig, 0, other);
    session_close(other);
    ck_assert_uint_eq(census(0).count, 1);
    ck_assert_uint_eq(rig.seen.result.request, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(map_events_reach_observers_on_both_sides_once)
{
    open_rig();
    rig_enter(&rig, 0, 1, half - 10 * UNIT, 1000, 50 * UNIT);
    rig_enter(&rig, 1, 2, half + 10 * UNIT, 1000, 50 * UNIT);
    rig_enter(&rig, 1, 3, half + 60 * UNIT, 1000, 50 * UNIT);
    settle();
    emit_encode(&rig.w, MESSAGE_EMIT,
                &(struct emit){.origin = rig_gateway,
                               .request = 77,
                               .code = 5,
                               .radius = 30 * UNIT,
                               .position = {half - 5 * UNIT, 1000, 0},
                               .payload = (const uint8_t *)"bang",
                               .payload_size = 4});
    rig_say(&rig, 0, true);
    settle();
    ck_assert_uint_eq(rig.seen.count[MESSAGE_EVENT], 2);
    ck_assert_int_eq(rig.seen.result.error, TERRANE_ERR_OK);
    rig_close(&rig);
}
END_TEST

START_TEST(a_query_finds_what_is_owned_and_no_ghost)
{
    open_rig();
    rig_enter(&rig, 0, 1, half - 10 * UNIT, 1000, 50 * UNIT);
    rig_enter(&rig, 1, 2, half + 10 * UNIT, 1000, 0);
    settle();
    ck_assert_uint_eq(ghosts(0), 1);
    struct query query = {.request = 1, .shape = QUERY_CIRCLE, .layer = -1, .a = half, .b = 1000, .c = 50 * UNIT};
    query_encode(&rig.w, &query);
    rig_step(&rig, 0,
             &(struct event){
                 .kind = EVENT_MESSAGE, .lane = LANE_QUERY, .token = 3, .bytes = rig.w.data, .size = rig.w.size});
    struct query_result result;
    struct query_item item;
    ck_assert_int_eq(query_result_decode(cursor_of(rig.reply.data, rig.reply.size), &result), TERRANE_ERR_OK);
    ck_assert_uint_eq(result.count, 1);
    ck_assert(query_result_next(&result, &item));
    ck_assert_uint_eq(item.id.v, 1);
    rig_close(&rig);
}
END_TEST

START_TEST(the_query_lane_answers_status_and_refuses_nonsense)
{
    open_rig();
    status_request_encode(&rig.w);
    rig_step(&rig, 0,
             &(struct event){
                 .kind = EVENT_MESSAGE, .lane = LANE_QUERY, .token = 3, .bytes = rig.w.data, .size = rig.w.size});
    struct status status;
    ck_assert_uint_eq(rig.querying, 1);
    ck_assert_int_eq(status_decode(cursor_of(rig.reply.data, rig.reply.size), &status), TERRANE_ERR_OK);
    ck_assert(memmem(status.json, status.size, "\"role\":\"cellserver\"", 19) != NULL);
    rig_step(&rig, 0,
             &(struct event){.kind = EVENT_MESSAGE, .lane = LANE_QUERY, .bytes = (const uint8_t *)"x", .size = 1});
    struct fault fault;
    ck_assert_uint_eq(rig.querying, 2);
    ck_assert_int_eq(fault_decode(cursor_of(rig.reply.data, rig.reply.size), &fault), TERRANE_ERR_OK);
    rig_close(&rig);
}
END_TEST

SUITE_MAIN("cellserver", owns_what_the_map_says_and_is_ready, an_enter_is_answered_once_and_repeats_are_harmless,
           enters_that_cannot_be_are_refused_with_their_cause, what_stands_beyond_the_border_is_seen,
           a_crossing_keeps_everything_and_changes_the_owner, inside_the_handoff_hysteresis_nothing_changes_owner,
           bystanders_never_lose_sight_of_who_crosses, a_teleport_across_the_world_is_a_handoff_like_any_other,
           late_commands_follow_the_entity_and_run_once, a_leave_takes_the_entity_out_of_every_view,
           borders_inside_a_server_change_only_the_label, who_may_not_say_something_is_not_heard,
           another_gateways_entity_is_out_of_reach, map_events_reach_observers_on_both_sides_once,
           a_query_finds_what_is_owned_and_no_ghost, the_query_lane_answers_status_and_refuses_nonsense)
