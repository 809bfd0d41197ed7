/* What the coordinator does with bytes, values, orders and rates that no honest member sends; its leaves; STATUS. */
#include "tests/unit/coordinator_fixture.h"

static uint64_t refused(const struct fixture *f)
{
    return fixture_stats(f).refused;
}

static void raw_packet(struct fixture *f, struct packet head, const struct writer *sure, const struct writer *fast)
{
    writer_clear(&f->packet);
    packet_begin(&f->packet, &head, sure == NULL ? 0 : 1);
    if (sure != NULL) writer_raw(&f->packet, sure->data, sure->size);
    packet_fast(&f->packet, fast == NULL ? 0 : 1);
    if (fast != NULL) writer_raw(&f->packet, fast->data, fast->size);
    fixture_step(
        f, (struct event){.kind = EVENT_MESSAGE, .lane = LANE_INBOX, .bytes = f->packet.data, .size = f->packet.size});
}

static void raw_hello(struct fixture *f, uint64_t from, const struct node_info *info, uint32_t capacity)
{
    writer_clear(&f->message);
    hello_encode(&f->message, &(struct hello){.info = *info, .capacity = capacity});
    raw_packet(f, (struct packet){.from = {from}}, NULL, &f->message);
}

static struct node_info info_of(enum node_role role, const char *name, uint64_t node)
{
    struct node_info info = {.role = role, .node = {node}};
    snprintf(info.name, sizeof info.name, "%s", name);
    snprintf(info.inbox_url, sizeof info.inbox_url, "tcp://10.0.0.1:1");
    return info;
}

START_TEST(hellos_with_false_ids_names_urls_or_capacities_are_refused_and_counted)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    fixture_open(&f, &options);
    struct node_info good = info_of(ROLE_CELLSERVER, "cell-1", 101), bad;
    uint64_t count = refused(&f);
    raw_hello(&f, 102, &good, 100); /* speaks for another */
    bad = good, bad.node.v = 7;
    raw_hello(&f, 7, &bad, 100); /* an alias */
    bad = good, bad.node.v = 900;
    raw_hello(&f, 900, &bad, 100); /* the coordinator itself */
    bad = good, bad.role = ROLE_COORDINATOR;
    raw_hello(&f, 101, &bad, 100);
    bad = good, bad.name[0] = '\0';
    raw_hello(&f, 101, &bad, 100);
    bad = good, bad.inbox_url[0] = '\0';
    raw_hello(&f, 101, &bad, 100);
    bad = good, memcpy(bad.inbox_url, "tcp:// 1", 9);
    raw_hello(&f, 101, &bad, 100);
    raw_hello(&f, 101, &good, 0);
    raw_hello(&f, 101, &good, 1001);
    ck_assert_uint_eq(refused(&f), count + 9);
    ck_assert_uint_eq(fixture_stats(&f).servers, 0);
    raw_hello(&f, 101, &good, 100);
    ck_assert_uint_eq(refused(&f), count + 9);
    ck_assert_uint_eq(fixture_stats(&f).servers, 1);
    bad = good, memcpy(bad.inbox_url, "tcp://6.6.6.6:6", 16);
    raw_hello(&f, 101, &bad, 100); /* would turn a member's traffic to itself */
    ck_assert_uint_eq(refused(&f), count + 10);
    fixture_close(&f);
}
END_TEST

START_TEST(packets_of_strangers_to_others_and_of_wrong_kinds_change_nothing)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    fixture_run(&f, 500 * MS);
    struct writer bye = {0}, status = {0};
    bye_encode(&bye);
    status_request_encode(&status);
    uint64_t count = refused(&f), rev = fixture_stats(&f).rev;
    raw_packet(&f, (struct packet){.from = {555}, .to = {900}, .sure_first = 1}, &bye, NULL);
    raw_packet(&f, (struct packet){.from = {101}, .to = {899}, .sure_first = 1}, &bye, NULL);
    raw_packet(&f, (struct packet){.from = {101}, .sure_first = 1}, &bye, NULL);
    raw_packet(&f, (struct packet){.from = {101}}, NULL, &bye);
    raw_packet(&f, (struct packet){.from = {101}}, NULL, NULL);
    raw_packet(&f, (struct packet){.from = {101}, .to = {900}, .fast_total = 50}, NULL, &status);
    fixture_step(&f, (struct event){.kind = EVENT_MESSAGE, .lane = LANE_INBOX, .bytes = NULL, .size = 0});
    fixture_step(
        &f, (struct event){.kind = EVENT_MESSAGE, .lane = LANE_INBOX, .bytes = (const uint8_t *)"\xdd\xff", .size = 2});
    ck_assert_uint_eq(refused(&f), count + 8);
    ck_assert_uint_eq(fixture_stats(&f).rev, rev);
    ck_assert_uint_eq(leaves_of(&f, &a->map, a), 16);
    writer_close(&bye);
    writer_close(&status);
    fixture_close(&f);
}
END_TEST

START_TEST(loads_of_foreign_leaves_other_epochs_and_newer_terms_are_not_believed)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    options.expect_servers = 2;
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    struct tester *b = tester_join(&f, ROLE_CELLSERVER, "cell-2", 102);
    fixture_run(&f, 200 * MS);
    uint64_t count = refused(&f);
    writer_clear(&f.message);
    heartbeat_begin(&f.message, &(struct heartbeat){.term = 77, .rev = 1, .count = 17});
    for (uint32_t i = 0; i < 16; i++) {
        struct leaf_owner leaf = a->map.now.leaves[i];
        bool own = node_id_equal(leaf.primary, a->info.node);
        heartbeat_add(&f.message, &(struct leaf_load){leaf.leaf, own ? leaf.epoch + 1 : leaf.epoch, leaf.since, 1000});
    }
    heartbeat_add(&f.message, &(struct leaf_load){{1}, 1, 1, 1000});
    heartbeat_stands(&f.message, 0);
    ck_assert_int_eq(session_push_fast(a->session, f.message.data, f.message.size), TERRANE_ERR_OK);
    tester_flush(&f, a, a->session);
    ck_assert_uint_eq(refused(&f), count + 1);
    ck_assert_uint_eq(fixture_stats(&f).owned_entities, 0);
    ck_assert_uint_eq(fixture_stats(&f).term, 1);
    tester_beat(&f, b, 9);
    ck_assert_uint_eq(fixture_stats(&f).owned_entities, 8 * 9);
    fixture_close(&f);
}
END_TEST

START_TEST(a_flood_of_gateways_is_bounded_logged_sparingly_and_leaves_room_for_servers)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    fixture_open(&f, &options);
    f.no_links = true;
    for (uint64_t i = 0; i < 6000; i++) {
        struct node_info info = info_of(ROLE_GATEWAY, "flood", 10000 + i);
        raw_hello(&f, info.node.v, &info, 0);
    }
    struct coordinator_stats stats = fixture_stats(&f);
    ck_assert_uint_lt(stats.gateways, LIMIT_NODES);
    ck_assert_uint_eq(stats.refused, 6000 - stats.gateways);
    ck_assert_uint_le(f.warnings, 10);
    f.no_links = false;
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    fixture_run(&f, 500 * MS);
    ck_assert_uint_eq(leaves_of(&f, &a->map, a), 16);
    ck_assert_uint_eq(a->map.now.node_count, 1); /* whom no link reached is not told */
    fixture_run(&f, 12000 * MS);
    ck_assert_uint_eq(fixture_stats(&f).gateways, 0);
    fixture_close(&f);
}
END_TEST

/* Any damage of honest packets: nothing crashes, and the assignment stays what it was. */
START_TEST(damaged_packets_of_a_member_never_crash_and_move_no_leaf)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    fixture_open(&f, &options);
    struct tester *a = tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    fixture_run(&f, 500 * MS);
    uint64_t state = 42;
    uint8_t bytes[4096];
    for (uint32_t round = 0; round < 20000; round++) {
        writer_clear(&f.message);
        if (round % 3 == 0)
            hello_encode(&f.message, &(struct hello){.info = a->info, .capacity = 100});
        else if (round % 3 == 1)
            heartbeat_bare(&f.message, &(struct heartbeat){.term = 1, .rev = 3});
        else
            map_request_encode(&f.message, &(struct map_request){.rev = 3});
        struct packet head = {.from = {101}, .to = {round % 2 == 0 ? 900 : 0}, .fast_total = 100 + round};
        writer_clear(&f.packet);
        packet_begin(&f.packet, &head, 0);
        packet_fast(&f.packet, 1);
        writer_raw(&f.packet, f.message.data, f.message.size);
        size_t size = f.packet.size < sizeof bytes ? f.packet.size : sizeof bytes;
        memcpy(bytes, f.packet.data, size);
        for (uint32_t i = 0; i < 1 + round % 3; i++) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            bytes[(state >> 33) % size] ^= (uint8_t)(1u << (state >> 60 & 7));
        }
        if (round % 5 == 0) size = (state >> 20) % size;
        fixture_step(&f, (struct event){.kind = EVENT_MESSAGE, .lane = LANE_INBOX, .bytes = bytes, .size = size});
    }
    ck_assert_uint_ge(refused(&f), 1000);
    ck_assert_uint_eq(leaves_of(&f, &a->map, a), 16);
    ck_assert_uint_eq(fixture_stats(&f).unowned, 0);
    fixture_close(&f);
}
END_TEST

/* Brackets and quotes fit together. */
static bool balanced(const char *json, size_t size)
{
    char open[64];
    uint32_t depth = 0;
    bool text = false;
    for (size_t i = 0; i < size; i++) {
        char at = json[i];
        if (text) {
            if (at == '\\') i++;
            if (at == '"') text = false;
        } else if (at == '"') {
            text = true;
        } else if (at == '{' || at == '[') {
            if (depth == sizeof open) return false;
            open[depth++] = at == '{' ? '}' : ']';
        } else if (at == '}' || at == ']') {
            if (depth == 0 || open[--depth] != at) return false;
        }
    }
    return depth == 0 && !text;
}

START_TEST(status_is_json_that_names_servers_gateways_and_regions)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    struct writer request = {0};
    struct status status;
    fixture_open(&f, &options);
    (void)tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    (void)tester_join(&f, ROLE_GATEWAY, "gate", 18446744073709551615ULL);
    fixture_run(&f, 500 * MS);
    status_request_encode(&request);
    fixture_query(&f, &request);
    ck_assert_int_eq(status_decode(cursor_of(f.reply.data, f.reply.size), &status), TERRANE_ERR_OK);
    ck_assert(balanced(status.json, status.size));
    char *json = strndup(status.json, status.size);
    static const char *const parts[] = {
        "{\"role\":\"coordinator\",\"name\":\"coordinator\",\"node\":\"900\"",
        "\"world\":{\"origin_x\":0,\"origin_y\":0,\"cell_size\":50,\"depth\":8,",
        "\"term\":1,\"rev\":3,\"ready\":true",
        "\"servers\":[{\"name\":\"cell-1\",\"node\":\"101\",\"host\":\"host\",\"inbox\":\"tcp://127.0.0.1:101\"",
        "\"feeds\":[\"tcp://127.0.0.1:102\",\"tcp://127.0.0.1:103\"],\"ghost_feed\":\"\"",
        "\"leaves\":16,\"standby_leaves\":0,\"owned\":80,\"ghosts\":3,\"tick\":7,\"ticks_late\":0,\"silent\":false,"
        "\"lapsed\":false,\"draining\":false}]",
        "\"gateways\":[{\"name\":\"gate\",\"node\":\"18446744073709551615\"",
        "\"regions\":[{\"quadkey\":\"00\",\"epoch\":1,\"server\":\"cell-1\",\"standby\":null,\"since\":1,"
        "\"level\":false,\"feed_url\":\"tcp://127.0.0.1:102\",\"owned\":5,\"pinned\":false,\"moving\":false}",
        "\"regions_left_off\":0}",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ck_assert_msg(strstr(json, parts[i]) != NULL, "%s\nis not in\n%s", parts[i], json);
    free(json);
    writer_close(&request);
    fixture_close(&f);
}
END_TEST

START_TEST(other_queries_and_garbage_get_a_fault)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    struct writer request = {0};
    struct fault fault;
    fixture_open(&f, &options);
    lookup_encode(&request, &(struct lookup){.request = 1, .id = {5}});
    fixture_query(&f, &request);
    ck_assert_int_eq(fault_decode(cursor_of(f.reply.data, f.reply.size), &fault), TERRANE_ERR_OK);
    ck_assert_int_eq(fault.error, TERRANE_ERR_MESSAGE_UNKNOWN);
    writer_clear(&request);
    writer_uint(&request, 7);
    fixture_query(&f, &request);
    ck_assert_int_eq(fault_decode(cursor_of(f.reply.data, f.reply.size), &fault), TERRANE_ERR_OK);
    ck_assert_uint_eq(refused(&f), 2);
    writer_close(&request);
    fixture_close(&f);
}
END_TEST

START_TEST(status_of_very_many_regions_fits_one_message)
{
    static struct fixture f;
    struct coordinator_options options = fixture_options();
    struct writer request = {0};
    struct status status;
    options.split_depth = 7;
    fixture_open(&f, &options);
    (void)tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    status_request_encode(&request);
    fixture_query(&f, &request);
    ck_assert_uint_lt(f.reply.size, LIMIT_PACKET_BYTES);
    ck_assert_int_eq(status_decode(cursor_of(f.reply.data, f.reply.size), &status), TERRANE_ERR_OK);
    ck_assert(balanced(status.json, status.size));
    writer_close(&request);
    fixture_close(&f);
}
END_TEST

static enum terrane_error check_leaves(const char *list, char *fault, size_t room)
{
    struct quadkey keys[64];
    struct coordinator_options options = fixture_options();
    options.world.depth = 4;
    for (const char *at = list; *at != '\0'; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        ck_assert_int_eq(quadkey_parse(at, strcspn(at, ","), &keys[options.leaf_count++]), TERRANE_ERR_OK);
    }
    options.leaves = keys;
    struct coordinator *c;
    enum terrane_error error = coordinator_check(&options, fault, room);
    ck_assert_int_eq(coordinator_open(&options, &c), error);
    coordinator_close(c);
    return error;
}

START_TEST(leaves_that_do_not_tile_the_world_are_refused_with_the_place)
{
    char fault[256];
    ck_assert_int_eq(check_leaves("3,20,0,1,21,23,22", fault, sizeof fault), TERRANE_ERR_OK);
    static const struct {
        const char *list, *says;
    } cases[] = {
        {"0,1,3", "hole at 2, before leaf 3"},
        {"0,1,2", "hole at 3, after the last"},
        {"1,2,3", "hole at 0, before leaf 1"},
        {"0,10,12,13,2,3", "hole at 11, before leaf 12"},
        {"0,1,2,3,31", "leaf 31 lies inside leaf 3"},
        {"0,1,2,2,3", "leaf 2 is listed twice"},
        {"00000,1,2,3", "deeper than the world's depth of 4"},
        {"0,1,2,30,31,32,3330", "hole at 330, before leaf 3330"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(check_leaves(cases[i].list, fault, sizeof fault), TERRANE_ERR_CONFIG);
        ck_assert_msg(strstr(fault, cases[i].says) != NULL, "%s: %s", cases[i].list, fault);
    }
    struct coordinator_options options = fixture_options();
    options.split_depth = 9;
    ck_assert_int_eq(coordinator_check(&options, fault, sizeof fault), TERRANE_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(fault, "split depth 9"));
}
END_TEST

SUITE_MAIN("coordinator_hostile", hellos_with_false_ids_names_urls_or_capacities_are_refused_and_counted,
           packets_of_strangers_to_others_and_of_wrong_kinds_change_nothing,
           loads_of_foreign_leaves_other_epochs_and_newer_terms_are_not_believed,
           a_flood_of_gateways_is_bounded_logged_sparingly_and_leaves_room_for_servers,
           damaged_packets_of_a_member_never_crash_and_move_no_leaf,
           status_is_json_that_names_servers_gateways_and_regions, other_queries_and_garbage_get_a_fault,
           status_of_very_many_regions_fits_one_message, leaves_that_do_not_tile_the_world_are_refused_with_the_place)
