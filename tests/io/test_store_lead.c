/* Who leads a world, by a lease in Redis; and a Redis behind sentinels that fails over. */
#include "store_rig.h"

#include <stdlib.h>

static struct store_leader lead_as(struct rig *r, struct store_lead ask)
{
    struct store_leader leader = {0};
    uint32_t answers = r->answers;
    writer_clear(&r->payload);
    store_lead_encode(&r->payload, &ask);
    store_execute(r->store, STORE_LEAD, 2000 + answers, r->payload.data, r->payload.size);
    wait_answers(r, answers + 1);
    ck_assert_int_eq(store_leader_decode(r->bytes.data, r->bytes.size, &leader), TERRANE_ERR_OK);
    return leader;
}

static struct store_leader lead(struct rig *r, uint64_t node, uint32_t ttl_ms, bool even_empty)
{
    struct store_lead ask = {.node = {node}, .ttl_ms = ttl_ms, .even_empty = even_empty};
    snprintf(ask.name, sizeof ask.name, "coordinator-%u", (unsigned)node);
    snprintf(ask.url, sizeof ask.url, "tcp://127.0.0.1:%u", (unsigned)node);
    return lead_as(r, ask);
}

static int tell_redis(int port, const char *command)
{
    char line[256];
    snprintf(line, sizeof line, "redis-cli -p %d %s >/dev/null 2>&1", port, command);
    return system(line);
}

START_TEST(one_leads_until_its_lease_is_over_and_others_are_told_who)
{
    static struct rig r;
    rig_open(&r, "");
    ck_assert_int_eq(save(&r, 4, leaf_of("0", 1, 100, "a")), TERRANE_ERR_OK);
    struct store_leader leader = lead(&r, 901, 400, false);
    ck_assert_uint_eq(leader.node.v, 901);
    ck_assert_uint_eq(leader.term, 4);
    ck_assert_uint_eq(leader.rev, 9);
    leader = lead(&r, 902, 400, true);
    ck_assert_uint_eq(leader.node.v, 901);
    ck_assert_str_eq(leader.name, "coordinator-901");
    ck_assert_str_eq(leader.url, "tcp://127.0.0.1:901");
    /* Asking does not prolong it; renewing does. */
    double began = now_s();
    ck_assert_uint_eq(lead(&r, 901, 400, false).node.v, 901);
    double until = now_s() + DEADLINE_S;
    while ((leader = lead(&r, 902, 400, false)).node.v != 902) {
        ck_assert_uint_eq(leader.node.v, 901);
        ck_assert(now_s() < until);
        ev_run(r.loop, EVRUN_ONCE);
    }
    ck_assert_double_ge(now_s() - began, 0.39);
    ck_assert_uint_eq(lead(&r, 901, 400, false).node.v, 902);
    rig_close(&r);
}
END_TEST

START_TEST(the_next_incarnation_at_the_same_place_does_not_wait_and_another_there_does)
{
    static struct rig r;
    rig_open(&r, "");
    struct store_lead ask = {
        .node = {901}, .name = "one", .url = "tcp://127.0.0.1:1", .ttl_ms = 60000, .even_empty = true};
    ck_assert_uint_eq(lead_as(&r, ask).node.v, 901);
    ask.node.v = 902;
    ask.url[16]++;
    ck_assert_uint_eq(lead_as(&r, ask).node.v, 901);
    ask.url[16]--;
    ask.name[0]++;
    ck_assert_uint_eq(lead_as(&r, ask).node.v, 901);
    ask.name[0]--;
    ck_assert_uint_eq(lead_as(&r, ask).node.v, 902);
    rig_close(&r);
}
END_TEST

START_TEST(who_gives_it_back_is_followed_at_once_and_nobody_gives_back_what_another_has)
{
    static struct rig r;
    rig_open(&r, "");
    ck_assert_int_eq(save(&r, 4, leaf_of("0", 1, 100, "a")), TERRANE_ERR_OK);
    ck_assert_uint_eq(lead(&r, 901, 60000, false).node.v, 901);
    ck_assert_uint_eq(lead(&r, 902, 0, false).node.v, 901);
    ck_assert_uint_eq(lead(&r, 901, 0, false).node.v, 0);
    ck_assert_uint_eq(lead(&r, 902, 60000, false).node.v, 902);
    rig_close(&r);
}
END_TEST

START_TEST(a_world_without_a_map_goes_only_to_who_has_one_or_needs_none)
{
    static struct rig r;
    rig_open(&r, "");
    ck_assert_int_eq(save(&r, 4, leaf_of("0", 1, 100, "a")), TERRANE_ERR_OK);
    ck_assert_uint_eq(lead(&r, 901, 60000, false).node.v, 901);
    redis_end(&r);
    wait_connected(&r, false);
    redis_start(&r);
    wait_connected(&r, true);
    struct store_leader leader = lead(&r, 902, 60000, false);
    ck_assert_uint_eq(leader.node.v, 0);
    ck_assert_uint_eq(leader.term, 0);
    ck_assert_uint_eq(lead(&r, 901, 60000, true).node.v, 901);
    ck_assert_uint_eq(lead(&r, 901, 60000, false).node.v, 901); /* it has it by now */
    ck_assert_uint_eq(lead(&r, 902, 60000, true).node.v, 901);
    rig_close(&r);
}
END_TEST

START_TEST(a_leader_that_somebody_wrote_by_hand_in_another_form_is_nobody)
{
    static struct rig r;
    static const char *const values[] = {"me", "7", "[1]", "'{\"node\":7}'"};
    rig_open(&r, "");
    wait_connected(&r, true);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char command[128];
        snprintf(command, sizeof command, "set 'terrane:{test}:leader' %s", values[i]);
        ck_assert_int_eq(tell_redis(r.port, command), 0);
        ck_assert_uint_eq(lead(&r, 901, 60000, true).node.v, 901);
    }
    rig_close(&r);
}
END_TEST

START_TEST(the_documented_rights_are_enough_to_lead)
{
    static struct rig r;
    rig_open_as(&r, "terrane", "secret");
    ck_assert_uint_eq(lead(&r, 901, 60000, true).node.v, 901);
    ck_assert_uint_eq(lead(&r, 901, 0, true).node.v, 0);
    ck_assert_int_eq(r.error, TERRANE_ERR_OK);
    rig_close(&r);
}
END_TEST

START_TEST(malformed_questions_and_answers_are_refused)
{
    static struct rig r;
    struct writer out = {0};
    struct value_list values = {0};
    const struct {
        const char *values[6];
        enum terrane_error error;
    } cases[] = {
        {{"", "", "", "0", "0"}, TERRANE_ERR_OK},
        {{"7", "a", "tcp://b", "3", "4"}, TERRANE_ERR_OK},
        {{"7", "a", "tcp://b", "3"}, TERRANE_ERR_MESSAGE_TRUNCATED},
        {{"7", "a", "tcp://b", "3", "4", "5"}, TERRANE_ERR_MESSAGE_TRAILING},
        {{"x", "a", "tcp://b", "3", "4"}, TERRANE_ERR_MESSAGE_TYPE},
        {{"7", "a\nb", "tcp://b", "3", "4"}, TERRANE_ERR_MESSAGE_RANGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        value_list_clear(&values);
        writer_clear(&out);
        for (size_t j = 0; j < 6 && cases[i].values[j] != NULL; j++)
            value_list_add(&values, cases[i].values[j], strlen(cases[i].values[j]));
        ck_assert_msg(leader_of_values(&values, &out) == cases[i].error, "case %zu", i);
    }
    value_list_close(&values);
    writer_close(&out);
    rig_open(&r, "");
    store_execute(r.store, STORE_LEAD, 3, (const uint8_t *)"\xc1", 1);
    ck_assert_uint_eq(r.answers, 1);
    ck_assert_int_ne(r.error, TERRANE_ERR_OK);
    rig_close(&r);
}
END_TEST

START_TEST(a_server_that_becomes_a_replica_is_left)
{
    static struct rig r;
    struct store_counters counters;
    rig_open(&r, "");
    ck_assert_int_eq(save(&r, 1, leaf_of("0", 1, 100, "a")), TERRANE_ERR_OK);
    ck_assert_int_eq(tell_redis(r.port, "replicaof 127.0.0.1 1"), 0);
    ck_assert_int_eq(save(&r, 1, leaf_of("0", 2, 100, "a")), TERRANE_ERR_STORE_UNAVAILABLE);
    store_counters(r.store, &counters);
    ck_assert_uint_eq(counters.disconnects, 1);
    ck_assert_int_eq(tell_redis(r.port, "replicaof no one"), 0);
    wait_connected(&r, true);
    ck_assert_int_eq(save(&r, 1, leaf_of("0", 2, 100, "a")), TERRANE_ERR_OK);
    rig_close(&r);
}
END_TEST

static pid_t spawn(char *const argv[])
{
    pid_t pid;
    ck_assert_int_eq(posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ), 0);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static void wait_told(struct rig *r, int port, const char *command)
{
    double until = now_s() + DEADLINE_S;
    while (tell_redis(port, command) != 0) {
        ck_assert_msg(now_s() < until, "%s", command);
        ev_run(r->loop, EVRUN_ONCE);
    }
}

static pid_t replica_start(const char *directory, int port, int of)
{
    char text[16], master[16], place[64];
    snprintf(text, sizeof text, "%d", port);
    snprintf(master, sizeof master, "%d", of);
    snprintf(place, sizeof place, "%s", directory);
    return spawn((char *[]){"redis-server", "--port", text, "--bind", "127.0.0.1", "--save", "", "--dir", place,
                            "--logfile", "/dev/null", "--replicaof", "127.0.0.1", master, NULL});
}

/* A sentinel writes its file anew, so it gets a directory of its own. */
static pid_t sentinel_start(const char *directory, int port, int master, const char *password)
{
    char path[96], text[16];
    snprintf(path, sizeof path, "%s/sentinel.conf", directory);
    snprintf(text, sizeof text, "%d", port);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "bind 127.0.0.1\nlogfile /dev/null\ndir %s\nsentinel monitor world 127.0.0.1 %d 1\n"
            "sentinel down-after-milliseconds world 300\nsentinel failover-timeout world 3000\nrequirepass \"%s\"\n",
            directory, master, password);
    ck_assert_int_eq(fclose(file), 0);
    return spawn((char *[]){"redis-server", path, "--port", text, "--sentinel", NULL});
}

START_TEST(sentinels_are_asked_one_after_another_and_again_after_the_master_failed)
{
    static struct rig r;
    char directory[] = "/tmp/terrane-sentinel-XXXXXX", remove[64];
    rig_open(&r, "");
    ck_assert_int_eq(save(&r, 4, leaf_of("0", 1, 100, "a")), TERRANE_ERR_OK);
    store_close(r.store);
    ck_assert_ptr_nonnull(mkdtemp(directory));
    int replica_port = port_free(), sentinel_port = port_free(), nobody = port_free();
    pid_t replica = replica_start(directory, replica_port, r.port),
          sentinel = sentinel_start(directory, sentinel_port, r.port, "");
    wait_told(&r, replica_port, "hget 'terrane:{test}:meta' term | grep -qx 4");
    wait_told(&r, sentinel_port, "sentinel replicas world | grep -qx slave-repl-offset");

    snprintf(r.address, sizeof r.address, "redis-sentinel://127.0.0.1:%d,127.0.0.1:%d/world", nobody, sentinel_port);
    store_begin(&r);
    wait_connected(&r, true);
    ck_assert_int_eq(save(&r, 5, leaf_of("0", 2, 100, "a")), TERRANE_ERR_OK);
    wait_told(&r, replica_port, "hget 'terrane:{test}:meta' term | grep -qx 5");
    redis_end(&r);
    wait_connected(&r, false);
    wait_connected(&r, true); /* perhaps still read-only: then it is left again */
    double until = now_s() + DEADLINE_S;
    while (save(&r, 5, leaf_of("0", 3, 100, "a")) != TERRANE_ERR_OK) ck_assert(now_s() < until);
    ck_assert_uint_eq(epoch_of(&r, "0"), 3);
    end(sentinel);
    end(replica);
    snprintf(remove, sizeof remove, "rm -r %s", directory);
    ck_assert_int_eq(system(remove), 0);
    rig_close(&r);
}
END_TEST

START_TEST(sentinels_that_know_no_such_master_are_told_of_and_asked_again)
{
    static struct rig r;
    char directory[] = "/tmp/terrane-sentinel-XXXXXX", remove[64];
    rig_open(&r, "");
    wait_connected(&r, true);
    store_close(r.store);
    ck_assert_ptr_nonnull(mkdtemp(directory));
    int port = port_free();
    pid_t sentinel = sentinel_start(directory, port, r.port, "");
    wait_told(&r, port, "sentinel masters | grep -qx world");
    uint32_t downs = r.downs_logged;
    snprintf(r.address, sizeof r.address, "redis-sentinel://127.0.0.1:%d/other", port);
    store_begin(&r);
    ck_assert_int_eq(save(&r, 1, leaf_of("0", 1, 100, "a")), TERRANE_ERR_STORE_UNAVAILABLE);
    ck_assert_uint_eq(r.downs_logged, downs + 1);
    ck_assert_int_eq(tell_redis(port, "sentinel set world quorum 1"), 0);
    char command[96];
    snprintf(command, sizeof command, "sentinel monitor other 127.0.0.1 %d 1", r.port);
    ck_assert_int_eq(tell_redis(port, command), 0);
    wait_connected(&r, true);
    ck_assert_int_eq(save(&r, 1, leaf_of("0", 1, 100, "a")), TERRANE_ERR_OK);
    end(sentinel);
    snprintf(remove, sizeof remove, "rm -r %s", directory);
    ck_assert_int_eq(system(remove), 0);
    rig_close(&r);
}
END_TEST

START_TEST(sentinels_with_a_password_of_their_own_are_given_it)
{
    static struct rig r;
    char directory[] = "/tmp/terrane-sentinel-XXXXXX", remove[64];
    rig_open(&r, "servers");
    store_close(r.store);
    ck_assert_ptr_nonnull(mkdtemp(directory));
    int port = port_free();
    pid_t sentinel = sentinel_start(directory, port, r.port, "sentinels");
    wait_told(&r, port, "-a sentinels sentinel masters | grep -qx world");
    uint32_t downs = r.downs_logged;
    snprintf(r.address, sizeof r.address, "redis-sentinel://127.0.0.1:%d/world", port);
    snprintf(r.sentinel_password, sizeof r.sentinel_password, "servers");
    store_begin(&r);
    ck_assert_int_eq(save(&r, 1, leaf_of("0", 1, 100, "a")), TERRANE_ERR_STORE_UNAVAILABLE);
    ck_assert_uint_eq(r.downs_logged, downs + 1);
    store_close(r.store);
    snprintf(r.sentinel_password, sizeof r.sentinel_password, "sentinels");
    store_begin(&r);
    wait_connected(&r, true);
    ck_assert_int_eq(save(&r, 1, leaf_of("0", 1, 100, "a")), TERRANE_ERR_OK);
    end(sentinel);
    snprintf(remove, sizeof remove, "rm -r %s", directory);
    ck_assert_int_eq(system(remove), 0);
    rig_close(&r);
}
END_TEST

START_TEST(wrong_addresses_of_sentinels_are_explained)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    static const char *const cases[][2] = {
        {"redis-sentinel://127.0.0.1:26379", "/MASTER"}, {"redis-sentinel://127.0.0.1:26379/", "/MASTER"},
        {"redis-sentinel:///world", "HOST:PORT"},        {"redis-sentinel://127.0.0.1/world", "HOST:PORT"},
        {"redis-sentinel://127.0.0.1:1,/world", "HOST"}, {"redis-sentinel://127.0.0.1:1,:2/world", "HOST:PORT"},
        {"redis-sentinel://127.0.0.1:1/a/b", "/MASTER"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char fault[256] = "";
        struct store *store;
        struct store_options options = {.loop = loop, .address = cases[i][0], .world = "w", .stored = on_stored};
        enum terrane_error error = store_open(&options, &store, fault, sizeof fault);
        if (error == TERRANE_ERR_OK) store_close(store);
        ck_assert_msg(error != TERRANE_ERR_OK && strstr(fault, cases[i][1]) != NULL, "%s: %s", cases[i][0], fault);
    }
    ev_loop_destroy(loop);
}
END_TEST

SUITE_MAIN("store_lead", the_next_incarnation_at_the_same_place_does_not_wait_and_another_there_does,
           one_leads_until_its_lease_is_over_and_others_are_told_who,
           who_gives_it_back_is_followed_at_once_and_nobody_gives_back_what_another_has,
           a_world_without_a_map_goes_only_to_who_has_one_or_needs_none,
           a_leader_that_somebody_wrote_by_hand_in_another_form_is_nobody, the_documented_rights_are_enough_to_lead,
           malformed_questions_and_answers_are_refused, a_server_that_becomes_a_replica_is_left,
           sentinels_are_asked_one_after_another_and_again_after_the_master_failed,
           sentinels_that_know_no_such_master_are_told_of_and_asked_again,
           sentinels_with_a_password_of_their_own_are_given_it, wrong_addresses_of_sentinels_are_explained)
