/* Entities that servers hold for another node: attached by the game, or taken over after this gateway was given up. */
#include "gateway_rig.h"

static struct attach last_attach(struct rig *rig, int server)
{
    struct attach attach;
    ck_assert_int_eq(attach_decode(rig_cursor(rig_last(&rig->servers[server], MESSAGE_ATTACH)), &attach),
                     TERRANE_ERR_OK);
    return attach;
}

/* The server says that entity 7 is the asker's: at (200, 100), radius 50, state "hp". */
static void say_attached(struct rig *rig, int server, uint64_t request, uint64_t version)
{
    size_t done = rig_told(rig, TOLD_DONE);
    struct attached m = {.request = request,
                         .leaf = quadkey_child(QUADKEY_ROOT, (uint32_t)server),
                         .record = {.id = {7},
                                    .version = version,
                                    .kind = 3,
                                    .flags = 4,
                                    .radius = world_length(&rig->world, 50),
                                    .state = (const uint8_t *)"hp",
                                    .state_size = 2}};
    ck_assert_int_eq(world_position(&rig->world, 200, 100, 0, &m.record.position), TERRANE_ERR_OK);
    attached_encode(&rig->w, &m);
    rig_say(rig, &rig->servers[server]);
    ck_assert_uint_eq(rig_told(rig, TOLD_DONE), done); /* its standby does not know yet */
    rig_result(rig, server, request, 7, TERRANE_ERR_OK, version);
}

static void say_bye(struct rig *rig)
{
    struct packet head = {.from = rig->coordinator.node, .to = gateway_node(rig->g), .fast_total = 1};
    writer_clear(&rig->packet);
    packet_begin(&rig->packet, &head, 0);
    packet_fast(&rig->packet, 1);
    bye_encode(&rig->packet);
    uint8_t bytes[256];
    size_t size = rig->packet.size;
    ck_assert_uint_le(size, sizeof bytes);
    memcpy(bytes, rig->packet.data, size);
    rig_step(rig, (struct event){.kind = EVENT_MESSAGE, .lane = LANE_INBOX, .bytes = bytes, .size = size});
}

START_TEST(an_attached_entity_is_found_and_known)
{
    struct rig rig = {0};
    const uint64_t nine = 9;
    uint64_t request, set;
    rig_open_ready(&rig);
    ck_assert_int_eq(gateway_attach(rig.g, 0, NULL), TERRANE_ERR_ENTITY_NONE);
    ck_assert_int_eq(gateway_attach(rig.g, 7, &request), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_attach(rig.g, 7, NULL), TERRANE_ERR_ENTITY_EXISTS);
    ck_assert_int_eq(gateway_move(rig.g, 7, 1, 1, 0, 0), TERRANE_ERR_NOT_READY);
    rig_run(&rig, 3000);
    rig_looked_up(&rig, 1, 1, TERRANE_ERR_ENTITY_UNKNOWN, 0);
    rig_looked_up(&rig, 0, 0, TERRANE_ERR_OK, 40);
    rig_run(&rig, 3000);
    struct attach attach = last_attach(&rig, 0);
    ck_assert_uint_eq(attach.request, request);
    ck_assert_uint_eq(attach.former.v, 0);
    ck_assert_uint_eq(rig.told_count, 0);
    say_attached(&rig, 0, request, 40);
    ck_assert_uint_eq(rig.told_count, 1);
    ck_assert_int_eq(rig.told[0].kind, TOLD_DONE);
    ck_assert_int_eq(rig.told[0].operation, TERRANE_ATTACH);
    ck_assert_int_eq(rig.told[0].error, TERRANE_ERR_OK);
    struct terrane_entity entity;
    ck_assert(gateway_get(rig.g, 7, &entity));
    ck_assert_double_eq_tol(entity.x, 200, 0.01);
    ck_assert_uint_eq(entity.kind, 3);
    ck_assert_uint_eq(entity.flags, 4);
    ck_assert_mem_eq(entity.state, "hp", 2);
    /* Its view, its streams, its commands. */
    rig_run(&rig, 3000);
    ck_assert_ptr_nonnull(rig_last(&rig.servers[0], MESSAGE_SUBSCRIBE));
    rig_views(&rig, 0, 7, 40, VIEW_WHOLE_LAST, NULL, 0, &nine, 1);
    rig_snapshot(&rig, 0, 0, 1, 5, &nine, 1, 210, 100, 3);
    ck_assert_uint_eq(rig.seen_count, 1);
    ck_assert_int_eq(gateway_set_state(rig.g, 7, "new", 3, &set), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    struct set_state state;
    ck_assert_int_eq(set_state_decode(rig_cursor(rig_last(&rig.servers[0], MESSAGE_SET_STATE)), &state),
                     TERRANE_ERR_OK);
    ck_assert_uint_gt(state.sequence, attach.sequence);
    rig_result(&rig, 0, set, 7, TERRANE_ERR_OK, 40);
    rig_run(&rig, 20000);
    ck_assert(gateway_calm(rig.g));
    rig_close(&rig);
}
END_TEST

START_TEST(an_entity_that_nobody_has_can_not_be_attached)
{
    struct rig rig = {0};
    uint64_t request;
    rig_open_ready(&rig);
    ck_assert_int_eq(gateway_attach(rig.g, 7, &request), TERRANE_ERR_OK);
    for (int round = 0; round < 2; round++) {
        ck_assert_uint_eq(rig.told_count, 0);
        rig_run(&rig, 220000);
        for (int i = 0; i < 4; i++) rig_looked_up(&rig, i, 0, TERRANE_ERR_ENTITY_UNKNOWN, 0);
    }
    ck_assert_uint_eq(rig.told_count, 1);
    ck_assert_uint_eq(rig.told[0].a, request);
    ck_assert_int_eq(rig.told[0].error, TERRANE_ERR_ENTITY_UNKNOWN);
    rig_run(&rig, 20000);
    ck_assert(gateway_calm(rig.g));
    struct terrane_stats stats;
    gateway_stats(rig.g, &stats);
    ck_assert_uint_eq(stats.own, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(an_attach_follows_an_entity_that_is_handed_over_meanwhile)
{
    struct rig rig = {0};
    uint64_t request;
    rig_open_ready(&rig);
    ck_assert_int_eq(gateway_attach(rig.g, 7, &request), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    rig_looked_up(&rig, 0, 0, TERRANE_ERR_OK, 40);
    rig_run(&rig, 3000);
    rig_result(&rig, 0, request, 7, TERRANE_ERR_NOT_OWNER, 0);
    rig_run(&rig, 60000);
    rig_looked_up(&rig, 0, 0, TERRANE_ERR_ENTITY_UNKNOWN, 0);
    rig_looked_up(&rig, 1, 1, TERRANE_ERR_OK, 41);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(last_attach(&rig, 1).request, request);
    ck_assert_uint_eq(last_attach(&rig, 1).sequence, last_attach(&rig, 0).sequence);
    say_attached(&rig, 1, request, 41);
    say_attached(&rig, 1, request, 41);
    ck_assert_uint_eq(rig.told_count, 1);
    ck_assert_int_eq(rig.told[0].error, TERRANE_ERR_OK);
    rig_close(&rig);
}
END_TEST

START_TEST(what_another_has_attached_is_over_here)
{
    struct rig rig = {0};
    const uint64_t nine = 9;
    uint64_t set;
    rig_open_ready(&rig);
    uint64_t version = rig_enter(&rig, 7, 100, 100, 50, 0);
    rig_run(&rig, 10000);
    rig_snapshot(&rig, 0, 0, 1, 5, &nine, 1, 110, 100, 3);
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, &nine, 1);
    ck_assert_int_eq(gateway_set_state(rig.g, 7, "x", 1, &set), TERRANE_ERR_OK);
    rig.told_count = 0;
    rig_result(&rig, 1, 0, 7, TERRANE_ERR_DETACHED, version); /* who does not own it can't say so */
    ck_assert_uint_eq(rig.told_count, 0);
    rig_result(&rig, 0, 0, 7, TERRANE_ERR_DETACHED, version);
    ck_assert_uint_eq(rig.told_count, 3);
    ck_assert_uint_eq(rig_told(&rig, TOLD_UNSEE), 1);
    ck_assert_int_eq(rig_last_told(&rig, TOLD_DONE)->error, TERRANE_ERR_DETACHED);
    ck_assert_int_eq(rig_last_told(&rig, TOLD_ERROR)->error, TERRANE_ERR_DETACHED);
    ck_assert_int_eq(gateway_move(rig.g, 7, 101, 100, 0, 0), TERRANE_ERR_ENTITY_UNKNOWN);
    rig_close(&rig);
}
END_TEST

static void name_gateway(struct rig *rig)
{
    struct map map = {.term = 1, .rev = rig->rev + 1, .base = rig->rev, .part = 0, .parts = 1};
    struct node_info info = {.role = ROLE_GATEWAY, .node = gateway_node(rig->g), .name = "gateway"};
    strcpy(info.inbox_url, "tcp://127.0.0.1:8000");
    strcpy(info.sub_url, "tcp://127.0.0.1:8001");
    rig->rev++;
    map_begin(&rig->w, &map);
    map_list(&rig->w, 1);
    map_add_node(&rig->w, &info);
    for (int i = 0; i < 3; i++) map_list(&rig->w, 0);
    rig_say(rig, &rig->coordinator);
}

/* It was paused, and the coordinator holds it for dead: it is named again, under another id. */
static void be_reborn(struct rig *rig)
{
    int hellos = rig->hellos;
    say_bye(rig);
    ck_assert_uint_ne(gateway_node(rig->g).v, RIG_SELF.v);
    ck_assert_uint_ge(gateway_node(rig->g).v, 16);
    ck_assert_int_gt(rig->hellos, hellos);
    session_close(rig->coordinator.session);
    rig->coordinator.session = rig_session_with(rig->coordinator.node, gateway_node(rig->g));
    rig_welcome(rig);
    name_gateway(rig);
    rig_run(rig, 3000);
}

START_TEST(a_gateway_that_was_given_up_goes_on_as_another)
{
    struct rig rig = {0};
    const uint64_t nine = 9;
    uint64_t set, leave, emit;
    rig_open_ready(&rig);
    uint64_t version = rig_enter(&rig, 7, 100, 100, 50, 0);
    rig_enter(&rig, 8, 7000, 100, 50, 1);
    rig_run(&rig, 10000);
    rig_snapshot(&rig, 0, 0, 1, 5, &nine, 1, 110, 100, 3);
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, &nine, 1);
    ck_assert_int_eq(gateway_set_state(rig.g, 7, "later", 5, &set), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_leave(rig.g, 8, &leave), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_emit(rig.g, 1, 100, 100, 0, 0, 10, NULL, 0, &emit), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    size_t subscribes = rig_messages(&rig.servers[0], MESSAGE_SUBSCRIBE);
    rig.told_count = 0;
    be_reborn(&rig);
    /* The event may have been told; whoever hears it twice could not know. */
    ck_assert_uint_eq(rig_told(&rig, TOLD_DONE), 1);
    ck_assert_uint_eq(rig_last_told(&rig, TOLD_DONE)->a, emit);
    ck_assert_int_eq(rig_last_told(&rig, TOLD_DONE)->error, TERRANE_ERR_TIMED_OUT);
    ck_assert_uint_gt(rig_messages(&rig.servers[0], MESSAGE_SUBSCRIBE), subscribes);
    struct attach seven = last_attach(&rig, 0), eight = last_attach(&rig, 1);
    ck_assert_uint_eq(seven.id.v, 7);
    ck_assert_uint_eq(seven.former.v, RIG_SELF.v);
    ck_assert_uint_eq(eight.id.v, 8);
    ck_assert_int_eq(gateway_move(rig.g, 7, 105, 100, 0, 0), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    size_t states = rig_messages(&rig.servers[0], MESSAGE_SET_STATE);
    say_attached(&rig, 0, seven.request, version);
    struct attached other = {.request = eight.request,
                             .leaf = quadkey_child(QUADKEY_ROOT, 1),
                             .record = {.id = {8}, .version = version + 100}};
    attached_encode(&rig.w, &other);
    rig_say(&rig, &rig.servers[1]);
    rig_result(&rig, 1, eight.request, 8, TERRANE_ERR_OK, version + 100);
    rig_run(&rig, 3000);
    /* What it knew is newer than what the server had. */
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_SET_STATE), states + 1);
    struct set_state state;
    ck_assert_int_eq(set_state_decode(rig_cursor(rig_last(&rig.servers[0], MESSAGE_SET_STATE)), &state),
                     TERRANE_ERR_OK);
    ck_assert_uint_eq(state.request, set);
    ck_assert_uint_gt(state.sequence, seven.sequence);
    ck_assert_mem_eq(state.state, "later", 5);
    struct moves moves;
    struct move move;
    double x, y, z;
    ck_assert_int_eq(moves_decode(rig_cursor(rig_last(&rig.servers[0], MESSAGE_MOVES)), &moves), TERRANE_ERR_OK);
    ck_assert(moves_next(&moves, &move));
    world_coordinates(&rig.world, move.position, &x, &y, &z);
    ck_assert_double_eq_tol(x, 105, 0.01);
    struct leave left;
    ck_assert_int_eq(leave_decode(rig_cursor(rig_last(&rig.servers[1], MESSAGE_LEAVE)), &left), TERRANE_ERR_OK);
    ck_assert_uint_gt(left.sequence, eight.sequence);
    rig_result(&rig, 0, set, 7, TERRANE_ERR_OK, 0);
    rig_result(&rig, 1, leave, 8, TERRANE_ERR_OK, 0);
    ck_assert_uint_eq(rig_told(&rig, TOLD_DONE), 3);
    ck_assert_uint_eq(rig_told(&rig, TOLD_ERROR), 0);
    /* Nothing blinked; the whole view is compared. */
    ck_assert_uint_eq(rig.seen_count, 1);
    ck_assert_uint_eq(rig_told(&rig, TOLD_SEE), 0);
    rig_views(&rig, 0, 7, version, VIEW_WHOLE_LAST, NULL, 0, &nine, 1);
    rig_run(&rig, 20000);
    ck_assert_uint_eq(rig.seen_count, 1);
    rig_close(&rig);
}
END_TEST

START_TEST(an_enter_under_the_former_id_is_not_lost)
{
    struct rig rig = {0};
    struct terrane_entity entity = {.id = 7, .x = 100, .y = 100, .radius = 50};
    uint64_t request;
    rig_open_ready(&rig);
    ck_assert_int_eq(gateway_enter(rig.g, &entity, &request), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    be_reborn(&rig);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_ENTER), 2);
    rig_result(&rig, 0, request, 7, TERRANE_ERR_ENTITY_EXISTS, 2000000);
    rig_run(&rig, 3000);
    struct attach attach = last_attach(&rig, 0);
    ck_assert_uint_eq(attach.request, request);
    ck_assert_uint_eq(attach.former.v, RIG_SELF.v);
    say_attached(&rig, 0, request, 2000000);
    ck_assert_uint_eq(rig_last_told(&rig, TOLD_DONE)->a, request);
    ck_assert_int_eq(rig_last_told(&rig, TOLD_DONE)->operation, TERRANE_ENTER);
    ck_assert_int_eq(rig_last_told(&rig, TOLD_DONE)->error, TERRANE_ERR_OK);
    rig_close(&rig);
}
END_TEST

START_TEST(what_another_attached_meanwhile_is_not_taken_back)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    rig_enter(&rig, 7, 100, 100, 50, 0);
    rig_run(&rig, 10000);
    rig.told_count = 0;
    be_reborn(&rig);
    rig_result(&rig, 0, last_attach(&rig, 0).request, 7, TERRANE_ERR_DETACHED, 0);
    ck_assert_uint_eq(rig_told(&rig, TOLD_ERROR), 1);
    ck_assert_int_eq(rig_last_told(&rig, TOLD_ERROR)->error, TERRANE_ERR_DETACHED);
    rig_close(&rig);
}
END_TEST

START_TEST(what_the_servers_have_forgotten_meanwhile_is_entered_again)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    rig_enter(&rig, 7, 100, 100, 50, 0);
    rig_run(&rig, 10000);
    rig.told_count = 0;
    be_reborn(&rig);
    rig_result(&rig, 0, last_attach(&rig, 0).request, 7, TERRANE_ERR_ENTITY_UNKNOWN, 0);
    for (int round = 0; round < 2; round++) {
        rig_run(&rig, 220000);
        for (int i = 0; i < 4; i++) rig_looked_up(&rig, i, 0, TERRANE_ERR_ENTITY_UNKNOWN, 0);
    }
    rig_run(&rig, 3000);
    struct enter enter;
    ck_assert_int_eq(enter_decode(rig_cursor(rig_last(&rig.servers[0], MESSAGE_ENTER)), &enter), TERRANE_ERR_OK);
    rig_result(&rig, 0, enter.request, 7, TERRANE_ERR_OK, enter.record.version);
    ck_assert_uint_eq(rig_told(&rig, TOLD_ERROR), 1);
    ck_assert_int_eq(rig_last_told(&rig, TOLD_ERROR)->error, TERRANE_ERR_ENTITY_REENTERED);
    ck_assert_int_eq(gateway_move(rig.g, 7, 105, 100, 0, 0), TERRANE_ERR_OK);
    rig_close(&rig);
}
END_TEST

START_TEST(a_gateway_given_up_while_it_closes_is_closed)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    rig_enter(&rig, 7, 100, 100, 50, 0);
    gateway_shutdown(rig.g);
    say_bye(&rig);
    rig_run(&rig, 20000);
    struct terrane_stats stats;
    gateway_stats(rig.g, &stats);
    ck_assert_uint_eq(stats.own, 0);
    ck_assert(gateway_closed(rig.g));
    rig_close(&rig);
}
END_TEST

SUITE_MAIN("gateway_attach", an_attached_entity_is_found_and_known, an_entity_that_nobody_has_can_not_be_attached,
           an_attach_follows_an_entity_that_is_handed_over_meanwhile, what_another_has_attached_is_over_here,
           a_gateway_that_was_given_up_goes_on_as_another, an_enter_under_the_former_id_is_not_lost,
           what_another_attached_meanwhile_is_not_taken_back,
           what_the_servers_have_forgotten_meanwhile_is_entered_again, a_gateway_given_up_while_it_closes_is_closed)
