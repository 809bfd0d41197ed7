/* What the console shows of the map is what the coordinator has told. */
#include "tests/unit/coordinator_fixture.h"

static struct fixture f;
static struct writer json;

static const char *picture(void)
{
    writer_clear(&json);
    coordinator_picture(f.core, &json);
    writer_raw(&json, "", 1);
    return (const char *)json.data;
}

static void count_server(void *context, const struct node_info *server)
{
    uint32_t *count = context;
    ck_assert_int_eq(server->role, ROLE_CELLSERVER);
    (*count)++;
}

START_TEST(regions_name_primary_and_standby_by_their_place_in_the_list_of_servers)
{
    struct coordinator_options options = fixture_protected(2);
    fixture_open(&f, &options);
    ck_assert_ptr_nonnull(strstr(picture(), "\"servers\":[],\"regions\":[[\"00\",0,0,null,null,false,0],"));
    tester_join(&f, ROLE_GATEWAY, "gate", 200);
    tester_join(&f, ROLE_CELLSERVER, "cell-1", 101);
    tester_join(&f, ROLE_CELLSERVER, "cell-2", 102);
    fixture_run(&f, 1000 * MS);
    const char *text = picture();
    uint32_t servers = 0, regions = 0;
    coordinator_servers(f.core, count_server, &servers);
    ck_assert_uint_eq(servers, 2);
    ck_assert_ptr_nonnull(strstr(text, "{\"name\":\"cell-1\",\"node\":\"101\","));
    ck_assert_ptr_null(strstr(text, "\"gate\""));
    ck_assert_ptr_nonnull(strstr(text, "\"gateways\":1,"));
    for (const char *at = strstr(text, "\"regions\":[") + 10; (at = strchr(at + 1, '[')) != NULL; regions++) {
        unsigned epoch, since, primary, standby;
        ck_assert_int_eq(sscanf(at, "[\"%*[0-3]\",%u,%u,%u,%u,", &epoch, &since, &primary, &standby), 4);
        ck_assert_uint_le(since, epoch);
        ck_assert_uint_eq(primary + standby, 1); /* one is the first server, one the second */
    }
    ck_assert_uint_eq(regions, 16);
    writer_close(&json);
    fixture_close(&f);
}
END_TEST

SUITE_MAIN("coordinator_picture", regions_name_primary_and_standby_by_their_place_in_the_list_of_servers)
