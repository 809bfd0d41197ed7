/* The store against a real redis-server that the test starts, stops, kills and starts again. */
#include "store_rig.h"

START_TEST(an_empty_store_loads_as_term_0_and_what_is_saved_is_loaded_again)
{
    static struct rig r;
    struct store_map m;
    rig_open(&r, "");
    load(&r, &m);
    ck_assert_uint_eq(m.term, 0);
    ck_assert_uint_eq(m.leaf_count, 0);

    struct store_leaf leaves[] = {leaf_of("", 1, UINT64_MAX, "cell \xc3\xa9 1"), leaf_of("0123", 4000000000u, 0, "")};
    leaves[1].owner.since = 3999999999u;
    const struct store_server servers[] = {server_of(UINT64_MAX, "cell-1"), server_of(17, "cell-2")};
    payload_write(&r.payload, 3, leaves, 2, servers, 2);
    store_execute(r.store, STORE_SAVE, 6, r.payload.data, r.payload.size);
    wait_answers(&r, 2);
    ck_assert_int_eq(r.error, TERRANE_ERR_OK);

    struct world world = strange_world();
    load(&r, &m);
    ck_assert_uint_eq(m.term, 3);
    ck_assert_uint_eq(m.rev, 9);
    ck_assert_uint_eq(m.leader.v, 77);
    ck_assert_int_eq(memcmp(&m.world.origin_x, &world.origin_x, sizeof world.origin_x), 0);
    ck_assert_int_eq(memcmp(&m.world.cell_size, &world.cell_size, sizeof world.cell_size), 0);
    ck_assert_int_eq(m.world.view_mode, VIEW_BLOCK);
    ck_assert_int_eq(m.world.edge, WORLD_EDGE_CLAMP);
    ck_assert_uint_eq(m.world.z_range, UINT32_MAX);
    ck_assert_uint_eq(m.world.radius_max, world.radius_max);
    ck_assert_uint_eq(m.leaf_count, 2);
    ck_assert_uint_eq(m.server_count, 2);
    struct store_leaf leaf;
    while (store_next_leaf(&m, &leaf)) {
        const struct store_leaf *wanted = leaf.owner.leaf.v == 1 ? &leaves[0] : &leaves[1];
        ck_assert_uint_eq(leaf.owner.leaf.v, wanted->owner.leaf.v);
        ck_assert_uint_eq(leaf.owner.epoch, wanted->owner.epoch);
        ck_assert_uint_eq(leaf.owner.since, wanted->owner.since);
        ck_assert_uint_eq(leaf.owner.primary.v, wanted->owner.primary.v);
        ck_assert_uint_eq(leaf.owner.standby.v, 0);
        ck_assert_uint_eq(leaf.owner.feed, 1);
        ck_assert_str_eq(leaf.primary, wanted->primary);
    }
    struct store_server server;
    while (store_next_server(&m, &server)) {
        const struct store_server *wanted = server.info.node.v == 17 ? &servers[1] : &servers[0];
        ck_assert_str_eq(server.info.name, wanted->info.name);
        ck_assert_str_eq(server.info.host, wanted->info.host);
        ck_assert_str_eq(server.info.inbox_url, wanted->info.inbox_url);
        ck_assert_str_eq(server.info.sub_url, "");
        ck_assert_uint_eq(server.info.feed_count, 2);
        ck_assert_str_eq(server.info.feed_urls[1], wanted->info.feed_urls[1]);
        ck_assert_uint_eq(server.capacity, 70);
    }
    rig_close(&r);
}
END_TEST

START_TEST(a_lower_term_another_leader_a_lower_epoch_and_a_second_owner_of_one_epoch_are_refused)
{
    static struct rig r;
    rig_open(&r, "");
    ck_assert_int_eq(save(&r, 2, leaf_of("0", 5, 100, "a")), TERRANE_ERR_OK);
    ck_assert_int_eq(save(&r, 2, leaf_of("0", 5, 100, "a")), TERRANE_ERR_OK);
    ck_assert_int_eq(save(&r, 1, leaf_of("0", 6, 100, "a")), TERRANE_ERR_STORE_CONFLICT);
    ck_assert_int_eq(save(&r, 2, leaf_of("0", 4, 100, "a")), TERRANE_ERR_STORE_CONFLICT);
    ck_assert_int_eq(save(&r, 2, leaf_of("0", 5, 101, "b")), TERRANE_ERR_STORE_CONFLICT);
    ck_assert_uint_eq(r.conflicts_logged, 3);

    struct store_leaf other = leaf_of("0", 7, 100, "a");
    writer_clear(&r.payload);
    store_map_begin(&r.payload, &(struct store_map){.term = 2, .rev = 9, .leader = {78}, .world = strange_world()});
    store_list(&r.payload, 1);
    store_add_leaf(&r.payload, &other);
    for (uint32_t i = 0; i < 3; i++) store_list(&r.payload, 0);
    store_execute(r.store, STORE_SAVE, 7, r.payload.data, r.payload.size);
    wait_answers(&r, 6);
    ck_assert_int_eq(r.error, TERRANE_ERR_STORE_CONFLICT);

    /* Nothing of a refused save is written. */
    ck_assert_uint_eq(epoch_of(&r, "0"), 5);
    ck_assert_int_eq(save(&r, 3, leaf_of("0", 6, 101, "b")), TERRANE_ERR_OK);
    ck_assert_uint_eq(epoch_of(&r, "0"), 6);
    rig_close(&r);
}
END_TEST

START_TEST(an_emptied_store_takes_only_a_whole_map)
{
    static struct rig r;
    rig_open(&r, "");
    struct store_leaf leaf = leaf_of("0", 7, 100, "a");
    for (uint32_t whole = 0; whole < 2; whole++) {
        writer_clear(&r.payload);
        store_map_begin(&r.payload,
                        &(struct store_map){.term = 2, .leader = {77}, .whole = whole == 1, .world = strange_world()});
        store_list(&r.payload, 1);
        store_add_leaf(&r.payload, &leaf);
        for (uint32_t i = 0; i < 3; i++) store_list(&r.payload, 0);
        store_execute(r.store, STORE_SAVE, 7, r.payload.data, r.payload.size);
        wait_answers(&r, whole + 1);
        ck_assert_int_eq(r.error, whole == 1 ? TERRANE_ERR_OK : TERRANE_ERR_STORE_CONFLICT);
    }
    rig_close(&r);
}
END_TEST

START_TEST(a_second_standby_of_one_epoch_is_refused)
{
    static struct rig r;
    rig_open(&r, "");
    struct store_leaf leaf = leaf_of("0", 5, 100, "a"), other = leaf;
    leaf.owner.standby.v = 200;
    other.owner.standby.v = UINT64_MAX;
    ck_assert_int_eq(save(&r, 2, leaf), TERRANE_ERR_OK);
    ck_assert_int_eq(save(&r, 2, leaf), TERRANE_ERR_OK);
    ck_assert_int_eq(save(&r, 3, other), TERRANE_ERR_STORE_CONFLICT);
    other.owner.standby.v = 0;
    ck_assert_int_eq(save(&r, 3, other), TERRANE_ERR_STORE_CONFLICT);
    other.owner.epoch = 6;
    ck_assert_int_eq(save(&r, 3, other), TERRANE_ERR_OK);
    leaf.owner.epoch = 6;
    ck_assert_int_eq(save(&r, 3, leaf), TERRANE_ERR_STORE_CONFLICT);
    rig_close(&r);
}
END_TEST

START_TEST(a_whole_map_removes_leaves_that_it_lacks_and_a_part_of_it_none)
{
    static struct rig r;
    rig_open(&r, "");
    const struct store_leaf leaves[] = {leaf_of("0", 1, 100, "a"), leaf_of("1", 1, 100, "a"), leaf_of("1", 2, 100, "a"),
                                        leaf_of("00", 1, 100, "a")};
    const struct {
        uint32_t first, count;
        bool whole;
        uint32_t epochs[3]; /* then, of 0, 1 and 00 */
    } steps[] = {{0, 2, true, {1, 1, UINT32_MAX}}, {2, 1, false, {1, 2, UINT32_MAX}}, {2, 2, true, {UINT32_MAX, 2, 1}}};
    uint32_t answers = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        writer_clear(&r.payload);
        store_map_begin(&r.payload, &(struct store_map){
                                        .term = 2, .leader = {77}, .whole = steps[i].whole, .world = strange_world()});
        store_list(&r.payload, steps[i].count);
        for (uint32_t j = 0; j < steps[i].count; j++) store_add_leaf(&r.payload, &leaves[steps[i].first + j]);
        for (uint32_t j = 0; j < 3; j++) store_list(&r.payload, 0);
        store_execute(r.store, STORE_SAVE, 7, r.payload.data, r.payload.size);
        wait_answers(&r, ++answers);
        ck_assert_int_eq(r.error, TERRANE_ERR_OK);
        const char *const names[] = {"0", "1", "00"};
        for (uint32_t j = 0; j < 3; j++) ck_assert_uint_eq(epoch_of(&r, names[j]), steps[i].epochs[j]);
        answers = r.answers; /* epoch_of asks as well */
    }
    rig_close(&r);
}
END_TEST

START_TEST(one_stale_leaf_among_many_refuses_the_whole_save)
{
    static struct rig r;
    rig_open(&r, "");
    ck_assert_int_eq(save(&r, 1, leaf_of("33", 5, 100, "a")), TERRANE_ERR_OK);
    const struct store_leaf leaves[] = {leaf_of("30", 1, 100, "a"), leaf_of("31", 1, 100, "a"),
                                        leaf_of("33", 4, 100, "a")};
    payload_write(&r.payload, 1, leaves, 3, NULL, 0);
    store_execute(r.store, STORE_SAVE, 2, r.payload.data, r.payload.size);
    wait_answers(&r, 2);
    ck_assert_int_eq(r.error, TERRANE_ERR_STORE_CONFLICT);
    ck_assert_uint_eq(epoch_of(&r, "30"), UINT32_MAX);
    rig_close(&r);
}
END_TEST

START_TEST(a_killed_server_fails_operations_and_a_new_one_is_found_again)
{
    static struct rig r;
    rig_open(&r, "");
    ck_assert_int_eq(save(&r, 1, leaf_of("0", 1, 100, "a")), TERRANE_ERR_OK);
    uint32_t downs = r.downs_logged;
    redis_end(&r);
    wait_connected(&r, false);
    double began = now_s();
    ck_assert_int_eq(save(&r, 1, leaf_of("0", 2, 100, "a")), TERRANE_ERR_STORE_UNAVAILABLE);
    ck_assert_double_le(now_s() - began, 3.0);
    ck_assert_uint_eq(r.downs_logged, downs + 1);
    redis_start(&r);
    wait_connected(&r, true);
    ck_assert_int_eq(save(&r, 1, leaf_of("0", 2, 100, "a")), TERRANE_ERR_OK);
    ck_assert_uint_eq(epoch_of(&r, "0"), 2);
    rig_close(&r);
}
END_TEST

/* Where the name points to; the look-up's thread reads it. */
static _Atomic int named_port;

static enum terrane_error resolve_name(const char *text, struct store_address *out, char *fault, size_t room)
{
    ck_assert_str_eq(text, "redis.example:6379");
    enum terrane_error error = store_address_parse("127.0.0.1:1", out, fault, room);
    out->places[0].port = named_port;
    out->named = true;
    return error;
}

START_TEST(a_server_that_comes_back_at_another_address_of_its_name_is_found)
{
    static struct rig r;
    rig_open(&r, "");
    store_close(r.store);
    named_port = r.port;
    r.resolve = resolve_name;
    snprintf(r.address, sizeof r.address, "redis.example:6379");
    store_begin(&r);
    wait_connected(&r, true);
    redis_end(&r);
    wait_connected(&r, false);
    r.port = port_free();
    redis_start(&r);
    named_port = r.port;
    wait_connected(&r, true);
    ck_assert_int_eq(save(&r, 1, leaf_of("0", 1, 100, "a")), TERRANE_ERR_OK);
    redis_end(&r); /* and a store that looks up again can be closed */
    wait_connected(&r, false);
    rig_close(&r);
}
END_TEST

START_TEST(a_stopped_server_times_out_blocks_nobody_and_goes_on_when_it_wakes)
{
    static struct rig r;
    rig_open(&r, "");
    ck_assert_int_eq(save(&r, 1, leaf_of("0", 1, 100, "a")), TERRANE_ERR_OK);
    ck_assert_int_eq(kill(r.redis, SIGSTOP), 0);
    double began = now_s();
    struct store_leaf leaf = leaf_of("0", 2, 100, "a");
    payload_write(&r.payload, 1, &leaf, 1, NULL, 0);
    store_execute(r.store, STORE_SAVE, 8, r.payload.data, r.payload.size);
    ck_assert_double_le(now_s() - began, 0.2);
    wait_answers(&r, 2);
    ck_assert_int_eq(r.error, TERRANE_ERR_TIMED_OUT);
    ck_assert_double_le(now_s() - began, 3.0);
    /* The kernel takes new connections for it, but it is not connected before it answers. */
    ck_assert_int_eq(save(&r, 1, leaf), TERRANE_ERR_STORE_UNAVAILABLE);
    ck_assert(!connected(&r));
    ck_assert_int_eq(kill(r.redis, SIGCONT), 0);
    wait_connected(&r, true);
    ck_assert_int_eq(save(&r, 1, leaf), TERRANE_ERR_OK);
    ck_assert_uint_eq(epoch_of(&r, "0"), 2);
    rig_close(&r);
}
END_TEST

START_TEST(a_password_is_given_and_a_wrong_one_is_told)
{
    static struct rig r;
    rig_open(&r, "secret");
    ck_assert_int_eq(save(&r, 1, leaf_of("0", 1, 100, "a")), TERRANE_ERR_OK);
    store_close(r.store);
    snprintf(r.password, sizeof r.password, "wrong");
    store_begin(&r);
    ck_assert_int_eq(save(&r, 1, leaf_of("0", 1, 100, "a")), TERRANE_ERR_STORE_UNAVAILABLE);
    ck_assert_uint_ge(r.downs_logged, 1);
    rig_close(&r);
}
END_TEST

START_TEST(a_user_with_the_documented_rights_is_enough)
{
    static struct rig r;
    rig_open_as(&r, "terrane", "secret");
    const struct store_leaf leaf = leaf_of("0", 1, 100, "a");
    const struct store_server server = server_of(100, "a");
    payload_write(&r.payload, 1, &leaf, 1, &server, 1);
    store_execute(r.store, STORE_SAVE, 6, r.payload.data, r.payload.size);
    wait_answers(&r, 1);
    ck_assert_int_eq(r.error, TERRANE_ERR_OK);
    ck_assert_uint_eq(epoch_of(&r, "0"), 1);
    rig_close(&r);
}
END_TEST

START_TEST(a_second_operation_under_way_is_refused_and_the_first_is_answered)
{
    static struct rig r;
    rig_open(&r, "");
    store_execute(r.store, STORE_LOAD, 1, NULL, 0);
    store_execute(r.store, STORE_LOAD, 2, NULL, 0);
    ck_assert_uint_eq(r.answers, 1);
    ck_assert_uint_eq(r.token, 2);
    ck_assert_int_eq(r.error, TERRANE_ERR_QUEUE_FULL);
    wait_answers(&r, 2);
    ck_assert_uint_eq(r.token, 1);
    ck_assert_int_eq(r.error, TERRANE_ERR_OK);
    store_execute(r.store, STORE_SAVE, 3, (const uint8_t *)"\xc1", 1);
    ck_assert_uint_eq(r.answers, 3);
    ck_assert_int_ne(r.error, TERRANE_ERR_OK);
    rig_close(&r);
}
END_TEST

START_TEST(values_that_somebody_else_wrote_are_refused_not_believed)
{
    struct writer out = {0};
    struct value_list values = {0};
    const char *const head[] = {"1", "2", "3", "0", "0", "50", "8", "21", "radius", "refuse", "1", "1", "1", "1", "20"};
    const struct {
        const char *values[12];
        enum terrane_error error;
    } cases[] = {
        {{"0", "0"}, TERRANE_ERR_OK},
        {{"0"}, TERRANE_ERR_MESSAGE_TRUNCATED},
        {{"0", "0", "more"}, TERRANE_ERR_MESSAGE_TRAILING},
        {{"x", "0"}, TERRANE_ERR_MESSAGE_TYPE},
        {{"99999999", "0"}, TERRANE_ERR_MESSAGE_RANGE},
        {{"1", "4", "1", "1", "", "", "", "", "0", "0"}, TERRANE_ERR_QUADKEY_INVALID},
        {{"1", "3", "-1", "1", "", "", "", "", "0", "0"}, TERRANE_ERR_MESSAGE_TYPE},
        {{"1", "3", "4294967296", "1", "", "", "", "", "0", "0"}, TERRANE_ERR_MESSAGE_RANGE},
        {{"1", "3", "1", "1", "", "", "", "", "64", "0"}, TERRANE_ERR_MESSAGE_RANGE},
        {{"1", "3", "1", "2", "", "", "", "", "0", "0"}, TERRANE_ERR_MESSAGE_RANGE},
        {{"1", "root", "1", "1", "9", "a", "", "", "0", "0"}, TERRANE_ERR_OK},
        {{"1", "root", "7", "", "9", "a", "", "", "0", "0"}, TERRANE_ERR_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        value_list_clear(&values);
        writer_clear(&out);
        for (size_t j = 0; j < sizeof head / sizeof *head; j++) value_list_add(&values, head[j], strlen(head[j]));
        for (size_t j = 0; j < 12 && cases[i].values[j] != NULL; j++)
            value_list_add(&values, cases[i].values[j], strlen(cases[i].values[j]));
        ck_assert_msg(map_of_values(&values, &out) == cases[i].error, "case %zu", i);
    }
    value_list_close(&values);
    writer_close(&out);
}
END_TEST

START_TEST(wrong_addresses_and_names_are_explained)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    const struct {
        const char *address, *world, *says;
    } cases[] = {
        {"localhost", "w", "HOST:PORT"}, {"127.0.0.1:", "w", "HOST:PORT"},      {"127.0.0.1:0", "w", "HOST:PORT"},
        {"unix:", "w", "path"},          {"127.0.0.1:70000", "w", "HOST:PORT"}, {"127.0.0.1:6379", "{w}", "braces"},
        {"127.0.0.1:6379", "", "1 to"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char fault[256] = "";
        struct store *store;
        struct store_options options = {
            .loop = loop, .address = cases[i].address, .world = cases[i].world, .stored = on_stored};
        ck_assert_int_ne(store_open(&options, &store, fault, sizeof fault), TERRANE_ERR_OK);
        ck_assert_ptr_null(store);
        ck_assert_msg(strstr(fault, cases[i].says) != NULL, "%s: %s", cases[i].address, fault);
    }
    ev_loop_destroy(loop);
}
END_TEST

SUITE_MAIN("store", an_empty_store_loads_as_term_0_and_what_is_saved_is_loaded_again,
           a_lower_term_another_leader_a_lower_epoch_and_a_second_owner_of_one_epoch_are_refused,
           an_emptied_store_takes_only_a_whole_map, a_second_standby_of_one_epoch_is_refused,
           a_whole_map_removes_leaves_that_it_lacks_and_a_part_of_it_none,
           one_stale_leaf_among_many_refuses_the_whole_save,
           a_killed_server_fails_operations_and_a_new_one_is_found_again,
           a_server_that_comes_back_at_another_address_of_its_name_is_found,
           a_stopped_server_times_out_blocks_nobody_and_goes_on_when_it_wakes,
           a_password_is_given_and_a_wrong_one_is_told, a_user_with_the_documented_rights_is_enough,
           a_second_operation_under_way_is_refused_and_the_first_is_answered,
           values_that_somebody_else_wrote_are_refused_not_believed, wrong_addresses_and_names_are_explained)
