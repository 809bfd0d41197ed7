/* Emits, events, queries and finds: each answered once, whoever answers how often. */
#include "gateway_rig.h"

/* Under which number the server was asked last. */
static uint64_t asked(const struct rig *rig, int server, enum message_kind kind)
{
    struct query query;
    struct lookup lookup;
    struct cursor message = rig_cursor(rig_last(&rig->servers[server], kind));
    if (kind == MESSAGE_QUERY)
        ck_assert_int_eq(query_decode(message, &query), TERRANE_ERR_OK);
    else
        ck_assert_int_eq(lookup_decode(message, &lookup), TERRANE_ERR_OK);
    return kind == MESSAGE_QUERY ? query.request : lookup.request;
}

static void items(struct rig *rig, int server, const struct query_item *item, uint32_t count, uint32_t part,
                  uint32_t parts, enum terrane_error error)
{
    struct query_result result = {
        .request = asked(rig, server, MESSAGE_QUERY), .error = error, .part = part, .parts = parts, .count = count};
    query_result_begin(&rig->w, &result);
    for (uint32_t i = 0; i < count; i++) query_result_add(&rig->w, &item[i]);
    rig_say(rig, &rig->servers[server]);
}

static void looked_up(struct rig *rig, int server, uint64_t id, enum terrane_error error)
{
    struct lookup_result result = {.request = asked(rig, server, MESSAGE_LOOKUP),
                                   .id = {id},
                                   .error = error,
                                   .version = 1,
                                   .leaf = QUADKEY_ROOT,
                                   .position = {100, 200, 0}};
    lookup_result_encode(&rig->w, &result);
    rig_say(rig, &rig->servers[server]);
}

static void write_event(struct rig *rig, uint64_t origin, uint64_t request, const uint64_t *observers, uint32_t count)
{
    struct event_told event = {.emit = {.origin = {origin},
                                        .request = request,
                                        .code = 3,
                                        .radius = 5,
                                        .position = {10, 10, 0},
                                        .payload = (const uint8_t *)"boom",
                                        .payload_size = 4},
                               .count = count};
    event_told_begin(&rig->w, &event);
    for (uint32_t i = 0; i < count; i++) entity_add(&rig->w, (struct entity_id){observers[i]});
}

static void told_of_event(struct rig *rig, int server, uint64_t origin, uint64_t request, const uint64_t *observers,
                          uint32_t count)
{
    write_event(rig, origin, request, observers, count);
    rig_say(rig, &rig->servers[server]);
}

START_TEST(an_emit_goes_to_the_owner_of_the_place_and_again_if_it_was_not)
{
    struct rig rig = {0};
    struct leaf_owner leaves[4];
    struct emit emit;
    uint64_t request;
    rig_open_ready(&rig);
    ck_assert_int_eq(gateway_emit(rig.g, 3, 7000, 100, 0, 0, 30, "boom", 4, &request), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    ck_assert_int_eq(emit_decode(rig_cursor(rig_last(&rig.servers[1], MESSAGE_EMIT)), &emit), TERRANE_ERR_OK);
    ck_assert_uint_eq(emit.request, request);
    ck_assert_uint_eq(emit.origin.v, RIG_SELF.v);
    ck_assert_mem_eq(emit.payload, "boom", 4);
    rig_result(&rig, 1, request, 0, TERRANE_ERR_NOT_OWNER, 0);
    rig_quadrants(leaves);
    leaves[1].primary = SERVER(2);
    leaves[1].epoch = leaves[1].since = 2;
    rig_map(&rig, leaves, 4, 4);
    rig_run(&rig, 3000);
    ck_assert_int_eq(emit_decode(rig_cursor(rig_last(&rig.servers[2], MESSAGE_EMIT)), &emit), TERRANE_ERR_OK);
    ck_assert_uint_eq(emit.request, request);
    rig_result(&rig, 2, request, 0, TERRANE_ERR_OK, 0);
    rig_result(&rig, 2, request, 0, TERRANE_ERR_OK, 0);
    ck_assert_uint_eq(rig_told(&rig, TOLD_DONE), 1);
    ck_assert_int_eq(rig_last_told(&rig, TOLD_DONE)->operation, TERRANE_EMIT);
    rig_close(&rig);
}
END_TEST

START_TEST(emits_are_bounded_in_number_of_bytes_and_refused_beyond)
{
    struct rig rig = {0};
    static uint8_t payload[LIMIT_EVENT_BYTES + 1];
    rig_open_ready(&rig);
    ck_assert_int_eq(gateway_emit(rig.g, 1, 1, 1, 0, 0, 1, payload, sizeof payload, NULL), TERRANE_ERR_STATE_TOO_LARGE);
    ck_assert_int_eq(gateway_emit(rig.g, 1, -1, 1, 0, 0, 1, NULL, 0, NULL), TERRANE_ERR_POSITION_OUTSIDE);
    ck_assert_int_eq(gateway_emit(rig.g, 1, 1, 1, 0, 0, 1e9, NULL, 0, NULL), TERRANE_ERR_RADIUS_TOO_LARGE);
    enum terrane_error error = TERRANE_ERR_OK;
    int accepted = 0;
    while (accepted < 100000 && error == TERRANE_ERR_OK) {
        error = gateway_emit(rig.g, 1, 1, 1, 0, 0, 1, payload, LIMIT_EVENT_BYTES, NULL);
        accepted += error == TERRANE_ERR_OK;
    }
    ck_assert_int_eq(error, TERRANE_ERR_LIMIT);
    ck_assert_int_eq(accepted, (16 << 20) / (int)LIMIT_EVENT_BYTES);
    rig_run(&rig, 11000000);
    ck_assert_uint_eq(rig_told(&rig, TOLD_DONE), (size_t)accepted);
    ck_assert_int_eq(gateway_emit(rig.g, 1, 1, 1, 0, 0, 1, payload, LIMIT_EVENT_BYTES, NULL), TERRANE_ERR_OK);
    rig_close(&rig);
}
END_TEST

START_TEST(an_event_is_heard_once_by_each_observer_whoever_tells_it)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    rig_enter(&rig, 7, 100, 100, 50, 0);
    rig_enter(&rig, 8, 100, 100, 50, 0);
    const uint64_t both[] = {7, 8}, seven = 7, stranger = 99;
    told_of_event(&rig, 0, 60, 5, &seven, 1);
    told_of_event(&rig, 1, 60, 5, both, 2);
    ck_assert_uint_eq(rig_told(&rig, TOLD_EVENT), 2);
    told_of_event(&rig, 1, 60, 6, &seven, 1);
    told_of_event(&rig, 1, 61, 5, &seven, 1);
    ck_assert_uint_eq(rig_told(&rig, TOLD_EVENT), 4);
    told_of_event(&rig, 1, 60, 7, &stranger, 1);
    ck_assert_int_eq(gateway_leave(rig.g, 7, NULL), TERRANE_ERR_OK);
    told_of_event(&rig, 1, 60, 8, &seven, 1);
    ck_assert_uint_eq(rig_told(&rig, TOLD_EVENT), 4);
    /* A copy that is late by seconds is still known. */
    rig_run(&rig, 3000000);
    told_of_event(&rig, 0, 60, 5, both + 1, 1);
    ck_assert_uint_eq(rig_told(&rig, TOLD_EVENT), 4);
    rig_close(&rig);
}
END_TEST

static void leave_at_event(struct rig *rig, const struct told *told)
{
    if (told->kind == TOLD_EVENT) (void)!gateway_leave(rig->g, told->a, NULL);
}

START_TEST(who_enters_again_hears_nothing_of_its_last_life)
{
    struct rig rig = {0};
    const uint64_t seven = 7;
    rig_open_ready(&rig);
    rig_enter(&rig, 7, 100, 100, 50, 0);
    uint64_t request;
    ck_assert_int_eq(gateway_leave(rig.g, 7, &request), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    rig_result(&rig, 0, request, 7, TERRANE_ERR_OK, 0);
    const struct terrane_entity again = {.id = 7, .x = 7000, .y = 100, .radius = 50};
    ck_assert_int_eq(gateway_enter(rig.g, &again, &request), TERRANE_ERR_OK);
    rig_run(&rig, 3000); /* the ENTER went to server 1 */
    told_of_event(&rig, 0, 60, 5, &seven, 1);
    ck_assert_uint_eq(rig_told(&rig, TOLD_EVENT), 0);
    struct enter enter;
    ck_assert_int_eq(enter_decode(rig_cursor(rig_last(&rig.servers[1], MESSAGE_ENTER)), &enter), TERRANE_ERR_OK);
    told_of_event(&rig, 1, 60, 6, &seven, 1);
    rig_result(&rig, 1, request, 7, TERRANE_ERR_OK, enter.record.version);
    ck_assert_uint_eq(rig_told(&rig, TOLD_EVENT), 1);
    rig_close(&rig);
}
END_TEST

START_TEST(who_leaves_at_an_event_hears_no_other)
{
    struct rig rig = {0};
    const uint64_t seven = 7;
    rig_open_ready(&rig);
    rig_enter(&rig, 7, 100, 100, 50, 0);
    rig.hook = leave_at_event;
    /* Both in one packet, so that both are queued when the first is told. */
    write_event(&rig, 60, 1, &seven, 1);
    ck_assert_int_eq(session_push(rig.servers[0].session, rig.w.data, rig.w.size), TERRANE_ERR_OK);
    writer_clear(&rig.w);
    told_of_event(&rig, 0, 60, 2, &seven, 1);
    ck_assert_uint_eq(rig_told(&rig, TOLD_EVENT), 1);
    rig_close(&rig);
}
END_TEST

START_TEST(a_query_merges_what_all_servers_of_the_shape_say)
{
    struct rig rig = {0};
    uint64_t request;
    rig_open_ready(&rig);
    /* Around the corner of four leaves. */
    ck_assert_int_eq(gateway_query_circle(rig.g, 6400, 6400, 100, -1, &request), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    for (int i = 0; i < 4; i++) ck_assert_uint_eq(rig_messages(&rig.servers[i], MESSAGE_QUERY), 1);
    const struct query_item a[] = {{{9}, 4, {1, 2, 0}}, {{5}, 1, {3, 4, 0}}}, b[] = {{{9}, 5, {100, 100, 0}}};
    items(&rig, 0, a, 1, 0, 2, TERRANE_ERR_OK);
    items(&rig, 0, a + 1, 1, 1, 2, TERRANE_ERR_OK);
    items(&rig, 1, b, 1, 0, 1, TERRANE_ERR_OK);
    items(&rig, 1, b, 1, 0, 1, TERRANE_ERR_OK); /* said twice: ignored */
    items(&rig, 2, NULL, 0, 0, 1, TERRANE_ERR_OK);
    ck_assert_uint_eq(rig.told_count, 0);
    items(&rig, 3, NULL, 0, 0, 1, TERRANE_ERR_OK);
    ck_assert_uint_eq(rig.told_count, 3);
    ck_assert_int_eq(rig.told[0].kind, TOLD_FOUND);
    ck_assert_uint_eq(rig.told[0].b, 5);
    ck_assert_uint_eq(rig.told[1].b, 9);
    double x, y, z;
    world_coordinates(&rig.world, b[0].position, &x, &y, &z);
    ck_assert_double_eq(rig.told[1].x, x);
    ck_assert_int_eq(rig.told[2].kind, TOLD_DONE);
    ck_assert_int_eq(rig.told[2].error, TERRANE_ERR_OK);
    rig_close(&rig);
}
END_TEST

START_TEST(a_query_asks_only_servers_whose_leaves_may_hold_what_it_seeks)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    ck_assert_int_eq(gateway_query_rectangle(rig.g, -500, 100, 6000, 200, -1, NULL), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_QUERY), 1);
    ck_assert_uint_eq(rig_messages(&rig.servers[1], MESSAGE_QUERY), 0);
    /* Entities may stand past a border by the hand-off hysteresis of 2 m. */
    ck_assert_int_eq(gateway_query_rectangle(rig.g, 10, 100, 6399, 200, -1, NULL), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(rig_messages(&rig.servers[1], MESSAGE_QUERY), 1);
    ck_assert_uint_eq(rig_messages(&rig.servers[2], MESSAGE_QUERY), 0);
    ck_assert_int_eq(gateway_query_rectangle(rig.g, 10, 10, 5, 20, -1, NULL), TERRANE_ERR_POSITION_INVALID);
    ck_assert_int_eq(gateway_query_rectangle(rig.g, -10, -10, -5, -5, -1, NULL), TERRANE_ERR_POSITION_OUTSIDE);
    ck_assert_int_eq(gateway_query_circle(rig.g, 10, 10, -1, -1, NULL), TERRANE_ERR_POSITION_INVALID);
    rig_close(&rig);
}
END_TEST

START_TEST(a_query_that_fails_somewhere_tells_what_is_there_and_the_error)
{
    struct rig rig = {0};
    uint64_t request;
    const struct query_item item = {{9}, 4, {1, 2, 0}};
    rig_open_ready(&rig);
    ck_assert_int_eq(gateway_query_circle(rig.g, 6400, 100, 100, -1, &request), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    items(&rig, 0, &item, 1, 0, 1, TERRANE_ERR_OK);
    items(&rig, 1, NULL, 0, 0, 1, TERRANE_ERR_QUEUE_FULL);
    ck_assert_uint_eq(rig.told_count, 2);
    ck_assert_int_eq(rig.told[0].kind, TOLD_FOUND);
    ck_assert_int_eq(rig.told[1].error, TERRANE_ERR_QUEUE_FULL);
    rig_close(&rig);
}
END_TEST

START_TEST(a_query_does_not_wait_for_servers_that_are_gone_or_never_were)
{
    struct rig rig = {0};
    struct leaf_owner leaves[4];
    uint64_t request;
    rig_open_ready(&rig);
    ck_assert_int_eq(gateway_query_circle(rig.g, 100, 6400, 100, -1, &request), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    items(&rig, 0, NULL, 0, 0, 1, TERRANE_ERR_OK);
    rig_quadrants(leaves);
    leaves[2].primary = leaves[3].primary = NODE_NONE;
    leaves[2].epoch = leaves[3].epoch = leaves[2].since = leaves[3].since = 2;
    rig_map(&rig, leaves, 4, 2);
    items(&rig, 0, NULL, 0, 0, 1, TERRANE_ERR_OK); /* who is there is asked anew */
    ck_assert_int_eq(rig_last_told(&rig, TOLD_DONE)->error, TERRANE_ERR_REGION_UNOWNED);
    ck_assert_int_eq(gateway_query_circle(rig.g, 100, 7000, 100, -1, &request), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(rig_last_told(&rig, TOLD_DONE)->a, request);
    ck_assert_int_eq(rig_last_told(&rig, TOLD_DONE)->error, TERRANE_ERR_REGION_UNOWNED);
    rig_close(&rig);
}
END_TEST

START_TEST(a_query_that_is_not_answered_in_time_tells_what_it_has)
{
    struct rig rig = {0};
    uint64_t request;
    const struct query_item item = {{9}, 4, {1, 2, 0}};
    rig_open_ready(&rig);
    ck_assert_int_eq(gateway_query_circle(rig.g, 6400, 100, 100, -1, &request), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    items(&rig, 0, &item, 1, 0, 1, TERRANE_ERR_OK);
    rig_run(&rig, 10100000);
    ck_assert_uint_eq(rig.told_count, 2);
    ck_assert_int_eq(rig.told[0].kind, TOLD_FOUND);
    ck_assert_int_eq(rig.told[1].error, TERRANE_ERR_TIMED_OUT);
    items(&rig, 1, &item, 1, 0, 1, TERRANE_ERR_OK);
    ck_assert_uint_eq(rig.told_count, 2);
    rig_close(&rig);
}
END_TEST

START_TEST(the_first_server_that_knows_an_entity_answers_a_find)
{
    struct rig rig = {0};
    uint64_t request;
    rig_open_ready(&rig);
    ck_assert_int_eq(gateway_find(rig.g, 9, &request), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    for (int i = 0; i < 4; i++) ck_assert_uint_eq(rig_messages(&rig.servers[i], MESSAGE_LOOKUP), 1);
    looked_up(&rig, 0, 9, TERRANE_ERR_ENTITY_UNKNOWN);
    looked_up(&rig, 2, 9, TERRANE_ERR_OK);
    ck_assert_uint_eq(rig.told_count, 2);
    ck_assert_int_eq(rig.told[0].kind, TOLD_FOUND);
    ck_assert_uint_eq(rig.told[0].b, 9);
    ck_assert_int_eq(rig.told[1].error, TERRANE_ERR_OK);
    looked_up(&rig, 3, 9, TERRANE_ERR_OK);
    ck_assert_uint_eq(rig.told_count, 2);
    rig_close(&rig);
}
END_TEST

START_TEST(a_find_looks_twice_before_it_gives_up)
{
    struct rig rig = {0};
    uint64_t request;
    rig_open_ready(&rig);
    ck_assert_int_eq(gateway_find(rig.g, 9, &request), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    for (int i = 0; i < 4; i++) looked_up(&rig, i, 9, TERRANE_ERR_ENTITY_UNKNOWN);
    rig_run(&rig, 190000);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_LOOKUP), 1);
    ck_assert_uint_eq(rig.told_count, 0);
    rig_run(&rig, 20000);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_LOOKUP), 2);
    for (int i = 0; i < 4; i++) looked_up(&rig, i, 9, TERRANE_ERR_ENTITY_UNKNOWN);
    ck_assert_uint_eq(rig.told_count, 1);
    ck_assert_int_eq(rig.told[0].error, TERRANE_ERR_ENTITY_UNKNOWN);
    ck_assert_int_eq(gateway_find(rig.g, 0, NULL), TERRANE_ERR_ENTITY_NONE);
    rig_close(&rig);
}
END_TEST

SUITE_MAIN("gateway_requests", an_emit_goes_to_the_owner_of_the_place_and_again_if_it_was_not,
           emits_are_bounded_in_number_of_bytes_and_refused_beyond,
           an_event_is_heard_once_by_each_observer_whoever_tells_it, who_enters_again_hears_nothing_of_its_last_life,
           who_leaves_at_an_event_hears_no_other, a_query_merges_what_all_servers_of_the_shape_say,
           a_query_asks_only_servers_whose_leaves_may_hold_what_it_seeks,
           a_query_that_fails_somewhere_tells_what_is_there_and_the_error,
           a_query_does_not_wait_for_servers_that_are_gone_or_never_were,
           a_query_that_is_not_answered_in_time_tells_what_it_has, the_first_server_that_knows_an_entity_answers_a_find,
           a_find_looks_twice_before_it_gives_up)
