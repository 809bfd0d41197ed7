/* Which leaves' streams a gateway takes, from whom, and for how long. */
#include "gateway_rig.h"

static struct subscribe last_subscribe(const struct rig_peer *peer, enum message_kind kind)
{
    struct subscribe message;
    ck_assert_int_eq(subscribe_decode(rig_cursor(rig_last(peer, kind)), &message), TERRANE_ERR_OK);
    return message;
}

static size_t watched(const struct rig *rig)
{
    struct terrane_stats stats;
    gateway_stats(rig->g, &stats);
    return stats.leaves_watched;
}

START_TEST(an_observer_near_a_corner_needs_all_four_leaves)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    rig_enter(&rig, 7, 6390, 6390, 50, 0);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(watched(&rig), 4);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert(
            quadkey_equal(last_subscribe(&rig.servers[i], MESSAGE_SUBSCRIBE).leaf, quadkey_child(QUADKEY_ROOT, i)));
    rig_close(&rig);
}
END_TEST

START_TEST(who_sees_nothing_needs_only_where_it_stands)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    rig_enter(&rig, 7, 6300, 6300, 0, 0);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(watched(&rig), 1);
    ck_assert_str_eq(rig.last_watch, "r/0/");
    /* A radius makes it need more. */
    ck_assert_int_eq(gateway_set_radius(rig.g, 7, 100, NULL), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(watched(&rig), 4);
    rig_close(&rig);
}
END_TEST

START_TEST(a_leaf_that_nobody_needs_is_kept_for_five_seconds)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    rig_enter(&rig, 7, 6300, 100, 100, 0);
    rig_enter(&rig, 8, 6300, 100, 100, 0);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(watched(&rig), 2);
    ck_assert_int_eq(gateway_move(rig.g, 7, 3000, 100, 0, 0), TERRANE_ERR_OK);
    rig_run(&rig, 8000000);
    ck_assert_uint_eq(watched(&rig), 2); /* the other still needs it */
    ck_assert_int_eq(gateway_move(rig.g, 8, 3000, 100, 0, 0), TERRANE_ERR_OK);
    rig_run(&rig, 4000000);
    ck_assert_uint_eq(watched(&rig), 2);
    ck_assert_int_eq(gateway_move(rig.g, 8, 6300, 100, 0, 0), TERRANE_ERR_OK);
    rig_run(&rig, 3000000);
    ck_assert_int_eq(gateway_move(rig.g, 8, 3000, 100, 0, 0), TERRANE_ERR_OK);
    rig_run(&rig, 4000000);
    ck_assert_uint_eq(watched(&rig), 2);
    ck_assert_int_eq(rig.unwatches, 0);
    rig_run(&rig, 2000000);
    ck_assert_uint_eq(watched(&rig), 1);
    ck_assert_int_eq(rig.unwatches, 1);
    ck_assert_str_eq(rig.last_unwatch, "r/1/");
    ck_assert(quadkey_equal(last_subscribe(&rig.servers[1], MESSAGE_UNSUBSCRIBE).leaf, quadkey_child(QUADKEY_ROOT, 1)));
    rig_close(&rig);
}
END_TEST

START_TEST(who_leaves_needs_nothing_any_more)
{
    struct rig rig = {0};
    uint64_t request;
    rig_open_ready(&rig);
    rig_enter(&rig, 7, 100, 100, 100, 0);
    rig_run(&rig, 3000);
    ck_assert_int_eq(gateway_leave(rig.g, 7, &request), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    rig_result(&rig, 0, request, 7, TERRANE_ERR_OK, 0);
    rig_run(&rig, 6000000);
    ck_assert_uint_eq(watched(&rig), 0);
    rig_close(&rig);
}
END_TEST

START_TEST(a_leaf_with_a_new_owner_is_asked_for_there)
{
    struct rig rig = {0};
    struct leaf_owner leaves[4];
    const uint64_t nine = 9;
    rig_open_ready(&rig);
    uint64_t version = rig_enter(&rig, 7, 100, 100, 50, 0);
    rig_run(&rig, 3000);
    rig_snapshot(&rig, 0, 0, 1, 5, &nine, 1, 110, 100, 3);
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, &nine, 1);
    rig_quadrants(leaves);
    leaves[0].primary = SERVER(3);
    leaves[0].epoch = leaves[0].since = 2;
    rig_map(&rig, leaves, 4, 4);
    rig_run(&rig, 3000);
    ck_assert(quadkey_equal(last_subscribe(&rig.servers[3], MESSAGE_SUBSCRIBE).leaf, leaves[0].leaf));
    /* What the former owner publishes is stale; nothing blinks. */
    struct frame_builder frame = {0};
    frame_builder_clear(&frame);
    frame_builder_left(&frame, 0, LEFT_GONE, 0, QUADKEY_NONE);
    rig_frame(&rig, 0, &frame, 1, 6);
    frame_builder_close(&frame);
    ck_assert_uint_eq(rig.seen_count, 1);
    rig_snapshot(&rig, 3, 0, 2, 1, &nine, 1, 120, 100, 3);
    ck_assert_uint_eq(rig.seen_count, 1);
    ck_assert_uint_eq(rig_told(&rig, TOLD_SEE), 1);
    ck_assert_double_eq_tol(rig_last_told(&rig, TOLD_UPDATE)->x, 120, 0.01);
    rig_close(&rig);
}
END_TEST

START_TEST(who_is_told_that_it_is_not_subscribed_asks_again)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    rig_enter(&rig, 7, 100, 100, 50, 0);
    rig_run(&rig, 3000);
    rig_snapshot(&rig, 0, 0, 1, 5, NULL, 0, 1, 1, 1);
    size_t before = rig_messages(&rig.servers[0], MESSAGE_SUBSCRIBE);
    struct unsubscribed unsubscribed = {STREAM_REGION, quadkey_child(QUADKEY_ROOT, 0), TERRANE_ERR_NOT_OWNER};
    unsubscribed_encode(&rig.w, &unsubscribed);
    rig_say(&rig, &rig.servers[0]);
    rig_run(&rig, 600000);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_SUBSCRIBE), before + 1);
    rig_close(&rig);
}
END_TEST

START_TEST(a_split_leaf_is_replaced_by_its_children_and_a_merged_one_by_its_parent)
{
    struct rig rig = {0};
    struct leaf_owner split[7], whole[4];
    rig_open_ready(&rig);
    rig_enter(&rig, 7, 100, 100, 50, 0);
    rig_run(&rig, 3000);
    rig_quadrants(whole);
    struct quadkey first = whole[0].leaf;
    for (uint32_t i = 0; i < 4; i++)
        split[i] = (struct leaf_owner){quadkey_child(first, i), 2, 2, SERVER(i), NODE_NONE, 0};
    memcpy(split + 4, whole + 1, 3 * sizeof *whole);
    whole[0].epoch = whole[0].since = 3;
    rig_map(&rig, split, 7, 4);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(watched(&rig), 1);
    ck_assert_str_eq(rig.last_watch, "r/00/");
    ck_assert_str_eq(rig.last_unwatch, "r/0/");
    rig_map(&rig, whole, 4, 4);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(watched(&rig), 1);
    ck_assert_str_eq(rig.last_watch, "r/0/");
    /* The counts are those of the new leaves: leaving still lets go. */
    ck_assert_int_eq(gateway_move(rig.g, 7, 12000, 12000, 0, 0), TERRANE_ERR_OK);
    rig_run(&rig, 6000000);
    ck_assert_uint_eq(watched(&rig), 1);
    ck_assert_str_eq(rig.last_watch, "r/3/");
    rig_close(&rig);
}
END_TEST

START_TEST(thousands_of_observers_in_one_place_watch_each_leaf_once)
{
    struct rig rig = {0};
    rig_open_ready(&rig);
    for (uint64_t i = 1; i <= 3000; i++) {
        struct terrane_entity entity = {.id = i, .x = 6390 + (double)(i % 20), .y = 6400, .radius = 50};
        ck_assert_int_eq(gateway_enter(rig.g, &entity, NULL), TERRANE_ERR_OK);
    }
    rig_run(&rig, 3000);
    ck_assert_int_eq(rig.watches, 4);
    ck_assert_uint_eq(watched(&rig), 4);
    rig_close(&rig);
}
END_TEST

SUITE_MAIN("gateway_watch", an_observer_near_a_corner_needs_all_four_leaves,
           who_sees_nothing_needs_only_where_it_stands, a_leaf_that_nobody_needs_is_kept_for_five_seconds,
           who_leaves_needs_nothing_any_more, a_leaf_with_a_new_owner_is_asked_for_there,
           who_is_told_that_it_is_not_subscribed_asks_again,
           a_split_leaf_is_replaced_by_its_children_and_a_merged_one_by_its_parent,
           thousands_of_observers_in_one_place_watch_each_leaf_once)
