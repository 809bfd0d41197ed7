/* Pairs at the API: exactly once, whatever order the servers' words come in. The rig fails by itself on a second see,
 * on an unsee or an update of what is not seen. */
#include "gateway_rig.h"

static const uint64_t NINE = 9, TEN = 10, ELEVEN = 11;

/* An observer 7 at (100, 100) on server 0, whose leaf's stream holds 9, 10 and 11 near it. */
static uint64_t open_observer(struct rig *rig)
{
    const uint64_t subjects[] = {NINE, TEN, ELEVEN};
    rig_open_ready(rig);
    uint64_t version = rig_enter(rig, 7, 100, 100, 50, 0);
    rig_run(rig, 10000);
    rig_snapshot(rig, 0, 0, 1, 5, subjects, 3, 110, 100, 3);
    rig->told_count = 0;
    return version;
}

START_TEST(a_pair_is_told_only_when_view_and_data_agree)
{
    struct rig rig = {0};
    uint64_t version = open_observer(&rig), unknown = 77;
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, &unknown, 1);
    ck_assert_uint_eq(rig.seen_count, 0);
    ck_assert(!gateway_calm(rig.g));
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, &NINE, 1);
    ck_assert_uint_eq(rig.seen_count, 1);
    /* What was never told needs no unsee. */
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, &unknown, 1, NULL, 0);
    ck_assert_uint_eq(rig_told(&rig, TOLD_UNSEE), 0);
    rig_run(&rig, 50000);
    ck_assert(gateway_calm(rig.g));
    rig_close(&rig);
}
END_TEST

START_TEST(a_whole_view_is_told_as_its_difference_unsees_first)
{
    struct rig rig = {0};
    uint64_t version = open_observer(&rig);
    const uint64_t before[] = {NINE, TEN}, after[] = {TEN, ELEVEN};
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, before, 2);
    rig.told_count = 0;
    rig_views(&rig, 0, 7, version, VIEW_WHOLE_LAST, NULL, 0, after, 2);
    ck_assert_uint_eq(rig.told_count, 2);
    ck_assert_int_eq(rig.told[0].kind, TOLD_UNSEE);
    ck_assert_uint_eq(rig.told[0].b, NINE);
    ck_assert_int_eq(rig.told[1].kind, TOLD_SEE);
    ck_assert_uint_eq(rig.told[1].b, ELEVEN);
    rig_close(&rig);
}
END_TEST

START_TEST(a_whole_view_in_parts_counts_when_the_last_is_there)
{
    struct rig rig = {0};
    uint64_t version = open_observer(&rig);
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, &NINE, 1);
    rig.told_count = 0;
    rig_views(&rig, 0, 7, version + 1, VIEW_WHOLE_MORE, NULL, 0, &TEN, 1);
    ck_assert_uint_eq(rig.told_count, 0);
    rig_views(&rig, 0, 7, version + 1, VIEW_WHOLE_LAST, NULL, 0, &ELEVEN, 1);
    ck_assert_uint_eq(rig_told(&rig, TOLD_UNSEE), 1);
    ck_assert_uint_eq(rig_told(&rig, TOLD_SEE), 2);
    rig_close(&rig);
}
END_TEST

START_TEST(a_whole_view_that_is_overtaken_leaves_nothing_behind)
{
    struct rig rig = {0};
    uint64_t version = open_observer(&rig);
    rig_views(&rig, 1, 7, version + 1, VIEW_WHOLE_MORE, NULL, 0, &TEN, 1);
    rig_views(&rig, 2, 7, version + 2, VIEW_WHOLE_LAST, NULL, 0, &NINE, 1);
    rig_views(&rig, 1, 7, version + 1, VIEW_WHOLE_LAST, NULL, 0, &ELEVEN, 1);
    ck_assert_uint_eq(rig.seen_count, 1);
    ck_assert_uint_eq(rig.seen[0][1], NINE);
    rig_run(&rig, 50000);
    ck_assert(gateway_calm(rig.g));
    rig_close(&rig);
}
END_TEST

START_TEST(changes_of_a_new_owner_wait_for_its_whole_view)
{
    struct rig rig = {0};
    uint64_t version = open_observer(&rig);
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, &NINE, 1);
    rig_views(&rig, 1, 7, version + 1, VIEW_CHANGES, &NINE, 1, &TEN, 1);
    ck_assert_uint_eq(rig.seen_count, 1);
    ck_assert_uint_eq(rig.seen[0][1], NINE);
    ck_assert(!gateway_calm(rig.g));
    /* The former owner's words no longer count, though nothing blinks. */
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, &NINE, 1, NULL, 0);
    ck_assert_uint_eq(rig.seen_count, 1);
    rig_views(&rig, 1, 7, version + 1, VIEW_WHOLE_LAST, NULL, 0, &ELEVEN, 1);
    ck_assert_uint_eq(rig.seen_count, 1);
    ck_assert_uint_eq(rig.seen[0][1], ELEVEN);
    rig_close(&rig);
}
END_TEST

START_TEST(an_unsee_and_a_see_of_one_pair_in_one_step_are_both_told)
{
    struct rig rig = {0};
    uint64_t version = open_observer(&rig);
    struct views views = {.tick = 1, .count = 2};
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, &NINE, 1);
    rig.told_count = 0;
    views_begin(&rig.w, &views);
    struct view_item out = {.observer = {7}, .version = version, .part = VIEW_CHANGES, .unsee_count = 1};
    views_add(&rig.w, &out);
    entity_add(&rig.w, (struct entity_id){NINE});
    entity_list(&rig.w, 0);
    struct view_item in = {.observer = {7}, .version = version, .part = VIEW_CHANGES, .see_count = 1};
    views_add(&rig.w, &in);
    entity_list(&rig.w, 1);
    entity_add(&rig.w, (struct entity_id){NINE});
    rig_say(&rig, &rig.servers[0]);
    ck_assert_uint_eq(rig.told_count, 2);
    ck_assert_int_eq(rig.told[0].kind, TOLD_UNSEE);
    ck_assert_int_eq(rig.told[1].kind, TOLD_SEE);
    rig_close(&rig);
}
END_TEST

START_TEST(what_has_left_the_world_is_updated_no_more_until_its_unsee)
{
    struct rig rig = {0};
    uint64_t version = open_observer(&rig);
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, &NINE, 1);
    struct frame_builder frame = {0};
    frame_builder_clear(&frame);
    frame_builder_left(&frame, 0, LEFT_GONE, 0, QUADKEY_NONE);
    rig_frame(&rig, 0, &frame, 1, 6);
    rig.told_count = 0;
    frame_builder_clear(&frame);
    frame_builder_moved(&frame, 1, 5, 5);
    rig_frame(&rig, 0, &frame, 1, 7);
    /* Another entity takes its place in every table; its movement is its own. */
    rig_run(&rig, 2500000);
    frame_builder_clear(&frame);
    struct entity_record record = {.id = {20}, .version = 9, .position = {100, 100, 0}};
    frame_builder_entered(&frame, 0, &record);
    rig_frame(&rig, 0, &frame, 1, 8);
    frame_builder_clear(&frame);
    frame_builder_moved(&frame, 0, 5, 5);
    rig_frame(&rig, 0, &frame, 1, 9);
    ck_assert_uint_eq(rig.told_count, 0);
    ck_assert_uint_eq(rig.seen_count, 1);
    const uint64_t twenty = 20;
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, &twenty, 1);
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, &NINE, 1, NULL, 0);
    ck_assert_uint_eq(rig.seen_count, 1);
    rig_frame(&rig, 0, &frame, 1, 10);
    frame_builder_close(&frame);
    ck_assert_uint_eq(rig_last_told(&rig, TOLD_UPDATE)->b, twenty);
    rig_close(&rig);
}
END_TEST

START_TEST(updates_reach_exactly_the_observers_that_see_the_subject)
{
    struct rig rig = {0};
    uint64_t version = open_observer(&rig);
    uint64_t other = rig_enter(&rig, 8, 120, 100, 50, 0);
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, &NINE, 1);
    rig_views(&rig, 0, 8, other, VIEW_CHANGES, NULL, 0, &TEN, 1);
    rig.told_count = 0;
    struct frame_builder frame = {0};
    frame_builder_clear(&frame);
    frame_builder_moved(&frame, 0, 164, 0);
    frame_builder_moved(&frame, 2, 164, 0);
    const uint8_t state[] = {1, 2};
    frame_builder_state(&frame, 0, state, 2);
    rig_frame(&rig, 0, &frame, 1, 6);
    frame_builder_close(&frame);
    ck_assert_uint_eq(rig.told_count, 1);
    ck_assert_uint_eq(rig.told[0].a, 7);
    ck_assert_uint_eq(rig.told[0].b, NINE);
    ck_assert_uint_eq(rig.told[0].changes, TERRANE_MOVED | TERRANE_STATE_CHANGED);
    rig_close(&rig);
}
END_TEST

START_TEST(leave_unsees_all_and_ends_what_an_observer_hears)
{
    struct rig rig = {0};
    uint64_t version = open_observer(&rig), request;
    const uint64_t both[] = {NINE, TEN};
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, both, 2);
    rig.told_count = 0;
    ck_assert_int_eq(gateway_leave(rig.g, 7, &request), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_leave(rig.g, 7, NULL), TERRANE_ERR_ENTITY_UNKNOWN);
    ck_assert_int_eq(gateway_move(rig.g, 7, 1, 1, 0, 0), TERRANE_ERR_ENTITY_UNKNOWN);
    rig_run(&rig, 3000);
    ck_assert_uint_eq(rig_told(&rig, TOLD_UNSEE), 2);
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, &ELEVEN, 1);
    ck_assert_uint_eq(rig.told_count, 2);
    rig_result(&rig, 0, request, 7, TERRANE_ERR_OK, 0);
    ck_assert_int_eq(rig.told[rig.told_count - 1].kind, TOLD_DONE);
    rig_run(&rig, 50000);
    ck_assert(gateway_calm(rig.g));
    rig_close(&rig);
}
END_TEST

/* Reports 21 and 22: callbacks may call anything. */
static void call_everything(struct rig *rig, const struct told *told)
{
    uint64_t *step = rig->hook_context;
    if (told->kind != TOLD_SEE && told->kind != TOLD_UPDATE && told->kind != TOLD_UNSEE) return;
    ++*step;
    struct terrane_entity entity = {.id = 1000 + *step, .x = 130, .y = 130, .radius = 40};
    ck_assert_int_eq(gateway_enter(rig->g, &entity, NULL), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_set_state(rig->g, entity.id, "x", 1, NULL), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_leave(rig->g, entity.id, NULL), TERRANE_ERR_OK);
    (void)!gateway_move(rig->g, 7, 100 + (double)*step, 100, 0, 0);
    (void)!gateway_set_radius(rig->g, 7, 60, NULL);
    ck_assert_int_eq(gateway_query_circle(rig->g, 100, 100, 10, -1, NULL), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_find(rig->g, 9, NULL), TERRANE_ERR_OK);
    uint64_t ids[4];
    gateway_view(rig->g, 7, ids, 4);
    gateway_get(rig->g, 9, &entity);
    gateway_flush(rig->g, rig->now, &rig->out);
}

START_TEST(callbacks_may_call_any_function)
{
    struct rig rig = {0};
    uint64_t version = open_observer(&rig), step = 0;
    const uint64_t all[] = {NINE, TEN, ELEVEN};
    rig.hook = call_everything;
    rig.hook_context = &step;
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, all, 3);
    struct frame_builder frame = {0};
    frame_builder_clear(&frame);
    frame_builder_moved(&frame, 0, 5, 0);
    frame_builder_moved(&frame, 1, 5, 0);
    rig_frame(&rig, 0, &frame, 1, 6);
    frame_builder_close(&frame);
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, all, 2, NULL, 0);
    ck_assert_uint_eq(step, 7);
    rig.hook = NULL;
    ck_assert_uint_ge(rig_messages(&rig.servers[0], MESSAGE_ENTER), 6);
    rig_close(&rig);
}
END_TEST

static void leave_at_once(struct rig *rig, const struct told *told)
{
    if (told->kind == TOLD_SEE || told->kind == TOLD_UPDATE) (void)!gateway_leave(rig->g, told->a, NULL);
}

START_TEST(an_observer_may_leave_inside_its_first_see)
{
    struct rig rig = {0};
    uint64_t version = open_observer(&rig);
    const uint64_t all[] = {NINE, TEN, ELEVEN};
    rig.hook = leave_at_once;
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, all, 3);
    /* One see; the others were queued, but it has left; the one unsee follows. */
    ck_assert_uint_eq(rig_told(&rig, TOLD_SEE), 1);
    ck_assert_uint_eq(rig_told(&rig, TOLD_UNSEE), 1);
    ck_assert_uint_eq(rig.seen_count, 0);
    rig_close(&rig);
}
END_TEST

START_TEST(an_observer_may_leave_inside_an_update_that_others_wait_for)
{
    struct rig rig = {0};
    uint64_t version = open_observer(&rig);
    uint64_t other = rig_enter(&rig, 8, 120, 100, 50, 0);
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, &NINE, 1);
    rig_views(&rig, 0, 8, other, VIEW_CHANGES, NULL, 0, &NINE, 1);
    rig.told_count = 0;
    rig.hook = leave_at_once;
    struct frame_builder frame = {0};
    frame_builder_clear(&frame);
    frame_builder_moved(&frame, 0, 5, 0);
    rig_frame(&rig, 0, &frame, 1, 6);
    frame_builder_close(&frame);
    ck_assert_uint_eq(rig_told(&rig, TOLD_UPDATE), 2);
    ck_assert_uint_eq(rig_told(&rig, TOLD_UNSEE), 2);
    rig_close(&rig);
}
END_TEST

static void enter_again(struct rig *rig, const struct told *told)
{
    if (told->kind != TOLD_DONE || told->operation != TERRANE_LEAVE) return;
    struct terrane_entity entity = {.id = told->b, .x = 100, .y = 100, .radius = 50};
    ck_assert_int_eq(gateway_enter(rig->g, &entity, NULL), TERRANE_ERR_OK);
}

START_TEST(an_id_may_be_entered_again_when_its_leave_is_done)
{
    struct rig rig = {0};
    uint64_t version = open_observer(&rig), request;
    struct enter enter;
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, &NINE, 1);
    rig.hook = enter_again;
    ck_assert_int_eq(gateway_leave(rig.g, 7, &request), TERRANE_ERR_OK);
    rig_run(&rig, 3000);
    rig_result(&rig, 0, request, 7, TERRANE_ERR_OK, 0);
    rig_run(&rig, 3000);
    ck_assert_int_eq(enter_decode(rig_cursor(rig_last(&rig.servers[0], MESSAGE_ENTER)), &enter), TERRANE_ERR_OK);
    ck_assert_uint_gt(enter.record.version, version);
    rig_result(&rig, 0, enter.request, 7, TERRANE_ERR_OK, enter.record.version);
    /* A late word about the former life changes nothing. */
    rig_views(&rig, 1, 7, version + 1, VIEW_WHOLE_LAST, NULL, 0, &TEN, 1);
    ck_assert_uint_eq(rig.seen_count, 0);
    rig_views(&rig, 0, 7, enter.record.version, VIEW_WHOLE_LAST, NULL, 0, &NINE, 1);
    ck_assert_uint_eq(rig.seen_count, 1);
    rig_close(&rig);
}
END_TEST

START_TEST(without_updates_pairs_are_told_at_once_by_id)
{
    struct rig rig = {0};
    struct gateway_options options = rig_options(&rig);
    struct leaf_owner leaves[4];
    options.no_updates = true;
    rig_open_with(&rig, &options);
    rig_welcome(&rig);
    rig_quadrants(leaves);
    rig_map(&rig, leaves, 4, 4);
    uint64_t version = rig_enter(&rig, 7, 100, 100, 50, 0);
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, &NINE, 1);
    ck_assert_uint_eq(rig.seen_count, 1);
    ck_assert_int_eq(rig.watches, 0);
    ck_assert_uint_eq(rig_messages(&rig.servers[0], MESSAGE_SUBSCRIBE), 0);
    rig_close(&rig);
}
END_TEST

START_TEST(view_lists_ids_ascending_and_the_lowest_if_room_is_short)
{
    struct rig rig = {0};
    struct gateway_options options = rig_options(&rig);
    struct leaf_owner leaves[4];
    options.no_updates = true;
    rig_open_with(&rig, &options);
    rig_welcome(&rig);
    rig_quadrants(leaves);
    rig_map(&rig, leaves, 4, 4);
    uint64_t version = rig_enter(&rig, 7, 100, 100, 50, 0), ids[8];
    const uint64_t see[] = {50, 60, 70, 80, 90};
    const uint64_t late[] = {10, 55};
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, see, 5);
    rig_views(&rig, 0, 7, version, VIEW_CHANGES, NULL, 0, late, 2);
    ck_assert_uint_eq(gateway_view(rig.g, 7, ids, 8), 7);
    for (int i = 1; i < 7; i++) ck_assert_uint_lt(ids[i - 1], ids[i]);
    ck_assert_uint_eq(gateway_view(rig.g, 7, ids, 3), 7);
    ck_assert_uint_eq(ids[0], 10);
    ck_assert_uint_eq(ids[1], 50);
    ck_assert_uint_eq(ids[2], 55);
    ck_assert_uint_eq(gateway_view(rig.g, 7, NULL, 0), 7);
    ck_assert_uint_eq(gateway_view(rig.g, 1234, ids, 8), 0);
    rig_close(&rig);
}
END_TEST

SUITE_MAIN("gateway_views", a_pair_is_told_only_when_view_and_data_agree,
           a_whole_view_is_told_as_its_difference_unsees_first, a_whole_view_in_parts_counts_when_the_last_is_there,
           a_whole_view_that_is_overtaken_leaves_nothing_behind, changes_of_a_new_owner_wait_for_its_whole_view,
           an_unsee_and_a_see_of_one_pair_in_one_step_are_both_told,
           what_has_left_the_world_is_updated_no_more_until_its_unsee,
           updates_reach_exactly_the_observers_that_see_the_subject, leave_unsees_all_and_ends_what_an_observer_hears,
           callbacks_may_call_any_function, an_observer_may_leave_inside_its_first_see,
           an_observer_may_leave_inside_an_update_that_others_wait_for,
           an_id_may_be_entered_again_when_its_leave_is_done, without_updates_pairs_are_told_at_once_by_id,
           view_lists_ids_ascending_and_the_lowest_if_room_is_short)
