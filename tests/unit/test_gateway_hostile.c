/* What servers and the coordinator say is well-formed but makes no sense: unknown ids, wrong versions, maps with holes,
 * answers to what was never asked, in any order. Nothing may crash, and pairs stay exact (the rig's model). */
#include "gateway_rig.h"

struct hostile {
    struct rig rig;
    uint64_t dice;
};

static uint32_t draw(struct hostile *h, uint32_t below)
{
    h->dice = h->dice * 6364136223846793005ULL + 1442695040888963407ULL;
    uint64_t mixed = h->dice ^ h->dice >> 31;
    return (uint32_t)((mixed * 0x9e3779b97f4a7c15ULL >> 33) % below);
}

static uint64_t some_id(struct hostile *h)
{
    return 1 + draw(h, 12);
}

static uint64_t some_version(struct hostile *h)
{
    return draw(h, 4) == 0 ? draw(h, 100) : 1000000 + h->rig.now + draw(h, 5);
}

static enum terrane_error some_error(struct hostile *h)
{
    static const enum terrane_error errors[] = {
        TERRANE_ERR_OK,        TERRANE_ERR_NOT_OWNER, TERRANE_ERR_ENTITY_UNKNOWN,
        TERRANE_ERR_NOT_READY, TERRANE_ERR_LIMIT,     TERRANE_ERR_ENTITY_EXISTS};
    return errors[draw(h, 6)];
}

static struct quadkey some_leaf(struct hostile *h)
{
    struct quadkey leaf = QUADKEY_ROOT;
    for (uint32_t depth = draw(h, 4); depth > 0; depth--) leaf = quadkey_child(leaf, draw(h, 4));
    return leaf;
}

static void say(struct hostile *h)
{
    rig_say(&h->rig, &h->rig.servers[draw(h, RIG_SERVERS)]);
}

static void say_views(struct hostile *h)
{
    uint64_t unsee[3], see[3];
    uint32_t unsees = draw(h, 4), sees = draw(h, 4);
    for (uint32_t i = 0, id = 0; i < unsees; i++) unsee[i] = id += 1 + draw(h, 4);
    for (uint32_t i = 0, id = 0; i < sees; i++) see[i] = id += 1 + draw(h, 4);
    rig_views(&h->rig, (int)draw(h, RIG_SERVERS), some_id(h), some_version(h), (enum view_part)draw(h, 3), unsee,
              unsees, see, sees);
}

static void say_map(struct hostile *h)
{
    struct map map = {.term = 1 + draw(h, 2), .rev = h->rig.rev + draw(h, 3), .part = 0, .parts = 1};
    if (draw(h, 3) == 0) map.base = h->rig.rev;
    h->rig.rev = map.rev > h->rig.rev ? map.rev : h->rig.rev;
    map_begin(&h->rig.w, &map);
    map_list(&h->rig.w, 2);
    for (uint32_t i = 0; i < 2; i++) {
        struct node_info info = {.role = ROLE_CELLSERVER, .node = SERVER(draw(h, RIG_SERVERS)), .feed_count = 1};
        snprintf(info.inbox_url, sizeof info.inbox_url, "tcp://127.0.0.1:9000");
        snprintf(info.feed_urls[0], sizeof info.feed_urls[0], "tcp://127.0.0.1:9001");
        map_add_node(&h->rig.w, &info);
    }
    uint32_t leaves = draw(h, 5);
    map_list(&h->rig.w, leaves);
    for (uint32_t i = 0; i < leaves; i++) {
        uint32_t epoch = 1 + draw(h, 9);
        struct leaf_owner leaf = {.leaf = some_leaf(h), .epoch = epoch, .primary = SERVER(draw(h, 5))};
        leaf.since = 1 + draw(h, epoch);
        map_add_leaf(&h->rig.w, &leaf);
    }
    map_list(&h->rig.w, 1);
    map_add_gone_node(&h->rig.w, SERVER(draw(h, RIG_SERVERS)));
    map_list(&h->rig.w, 1);
    map_add_gone_leaf(&h->rig.w, some_leaf(h));
    rig_say(&h->rig, &h->rig.coordinator);
}

static void say_something(struct hostile *h)
{
    struct position position = {(int32_t)draw(h, 1u << 21), (int32_t)draw(h, 1u << 21), 0};
    uint64_t request = 1 + draw(h, 400);
    switch (draw(h, 9)) {
    case 0: rig_result(&h->rig, (int)draw(h, RIG_SERVERS), request, some_id(h), some_error(h), some_version(h)); return;
    case 1: {
        struct owner owner = {.id = {some_id(h)}, .version = some_version(h), .leaf = some_leaf(h)};
        owner_encode(&h->rig.w, &owner);
        break;
    }
    case 2:
    case 3: say_views(h); return;
    case 4: {
        struct query_result result = {.request = request, .error = some_error(h), .parts = 1 + draw(h, 3), .count = 1};
        result.part = draw(h, result.parts);
        query_result_begin(&h->rig.w, &result);
        query_result_add(&h->rig.w, &(struct query_item){{some_id(h)}, some_version(h), position});
        break;
    }
    case 5: {
        struct lookup_result result = {
            .request = request, .id = {some_id(h)}, .error = some_error(h), .leaf = some_leaf(h), .position = position};
        lookup_result_encode(&h->rig.w, &result);
        break;
    }
    case 6: {
        struct unsubscribed message = {STREAM_REGION, some_leaf(h), some_error(h)};
        unsubscribed_encode(&h->rig.w, &message);
        break;
    }
    case 7: {
        uint64_t ids[] = {some_id(h)};
        struct snapshot snapshot = {.stream = STREAM_REGION,
                                    .leaf = some_leaf(h),
                                    .epoch = 1 + draw(h, 9),
                                    .seq = draw(h, 100),
                                    .part = 0,
                                    .parts = 1 + draw(h, 2),
                                    .count = 1};
        struct entity_record record = {.id = {ids[0]}, .version = some_version(h), .position = position};
        snapshot_begin(&h->rig.w, &snapshot);
        snapshot_add(&h->rig.w, draw(h, 10), &record);
        break;
    }
    default:
        if (draw(h, 4) == 0) say_map(h);
        return;
    }
    say(h);
}

static void do_something(struct hostile *h)
{
    uint64_t id = some_id(h);
    double x = draw(h, 12800), y = draw(h, 12800);
    struct terrane_entity entity = {.id = id, .x = x, .y = y, .radius = draw(h, 200), .state = "abc", .state_size = 3};
    switch (draw(h, 8)) {
    case 0:
    case 1: (void)!gateway_enter(h->rig.g, &entity, NULL); break;
    case 2: (void)!gateway_leave(h->rig.g, id, NULL); break;
    case 3: (void)!gateway_set_state(h->rig.g, id, "state", draw(h, 6), NULL); break;
    case 4: (void)!gateway_set_radius(h->rig.g, id, draw(h, 200), NULL); break;
    case 5: (void)!gateway_emit(h->rig.g, 1, x, y, 0, 0, 10, "boom", 4, NULL); break;
    case 6:
        (void)!(draw(h, 2) ? gateway_find(h->rig.g, id, NULL) : gateway_query_circle(h->rig.g, x, y, 500, -1, NULL));
        break;
    default: (void)!gateway_move(h->rig.g, id, x, y, 0, 0);
    }
}

static void suffer(uint64_t seed)
{
    struct hostile *h = calloc(1, sizeof *h);
    h->dice = seed * 2654435761u + 7;
    rig_open_ready(&h->rig);
    for (int step = 0; step < 400; step++) {
        if (draw(h, 2) == 0)
            do_something(h);
        else
            say_something(h);
        if (draw(h, 10) == 0) rig_run(&h->rig, draw(h, 2) ? 3000 : 400000);
        if (draw(h, 50) == 0) {
            enum event_kind kind = draw(h, 2) ? EVENT_PEER_DOWN : EVENT_PEER_UP;
            rig_step(&h->rig, (struct event){.kind = kind, .node = SERVER(draw(h, RIG_SERVERS))});
        }
    }
    /* Whatever was asked is answered in the end. */
    rig_run(&h->rig, 12000000);
    struct terrane_stats stats;
    gateway_stats(h->rig.g, &stats);
    ck_assert_uint_eq(stats.seen_pairs, h->rig.seen_count);
    gateway_shutdown(h->rig.g);
    rig_run(&h->rig, 12000000);
    ck_assert_uint_eq(h->rig.seen_count, 0);
    gateway_stats(h->rig.g, &stats);
    ck_assert_uint_eq(stats.own, 0);
    rig_close(&h->rig);
    free(h);
}

START_TEST(senseless_words_crash_nothing_and_break_no_pair)
{
    for (uint64_t seed = 1; seed <= 60; seed++) suffer(seed);
}
END_TEST

SUITE_MAIN("gateway_hostile", senseless_words_crash_nothing_and_break_no_pair)
