#include "tests/vectors/vectors.h"

#include <string.h>

static const struct entity_record walker = {
    .id = {7},
    .version = 1000,
    .kind = 1,
    .yaw = 64,
    .radius = 32768,
    .position = {1048576, 1048600, 0},
    .state = (const uint8_t *)"hp",
    .state_size = 2,
};
static const struct entity_record stone = {.id = {300}, .version = 5, .kind = 2, .position = {1048000, 1049000, 12}};
static const struct quadkey leaf = {19};

static struct standby_item walker_item(void)
{
    struct standby_item item = {.transfer.record = walker, .transfer.gateway = {500}, .enter_request = 1, .slot = 4};
    item.transfer.position_sequence = 43;
    item.transfer.state_sequence = 5;
    item.transfer.radius_sequence = 6;
    return item;
}

static void standby_changes(struct writer *w)
{
    struct standby_item leaving = walker_item(), pending = {.transfer.record = stone, .slot = 5, .pending = true};
    leaving.leaving_to = (struct quadkey){24};
    standby_begin(w, &(struct standby){.leaf = leaf, .epoch = 3, .seq = 17, .drop_count = 1});
    entity_add(w, (struct entity_id){12});
    standby_puts(w, 2);
    standby_put(w, &leaving);
    standby_put(w, &pending);
    standby_moves(w, 2);
    standby_move(w, &(struct standby_move){.slot = 0, .dx = 14, .dy = -9, .yaw = 70});
    standby_move(w, &(struct standby_move){.slot = 200, .dx = -600, .dy = 3, .dz = -40, .yaw = 255});
}

static void standby_copy(struct writer *w)
{
    struct standby_item item = walker_item();
    standby_begin(w, &(struct standby){.leaf = leaf, .epoch = 3, .seq = 2, .part = 1, .parts = 2});
    standby_puts(w, 1);
    standby_put(w, &item);
    standby_moves(w, 0);
}

static void standby_nothing(struct writer *w)
{
    standby_begin(w, &(struct standby){.leaf = {1}, .epoch = 1, .seq = 1, .parts = 1});
    standby_puts(w, 0);
    standby_moves(w, 0);
}

/* Every field at the end of its range. */
static void standby_extreme(struct writer *w)
{
    struct standby_item item = {.transfer.record = stone, .transfer.gateway = {UINT64_MAX}};
    item.transfer.record.version = VERSION_MAX - 1;
    item.transfer.position_sequence = item.transfer.state_sequence = item.transfer.radius_sequence = UINT64_MAX;
    item.enter_request = UINT64_MAX;
    item.slot = LIMIT_ENTITIES - 1;
    standby_begin(w, &(struct standby){.leaf = {1}, .epoch = UINT32_MAX, .seq = UINT64_MAX});
    standby_puts(w, 1);
    standby_put(w, &item);
    standby_moves(w, 1);
    struct standby_move move = {LIMIT_ENTITIES - 1, POSITION_END - 1, 1 - POSITION_END, 2 * HEIGHT_END - 1, UINT8_MAX};
    standby_move(w, &move);
}

static void ack(struct writer *w)
{
    standby_ack_begin(w, &(struct standby_ack){.stamp = 61000000, .count = 2});
    standby_ack_add(w, &(struct standby_ack_item){.leaf = leaf, .epoch = 3, .seq = 17});
    standby_ack_add(w, &(struct standby_ack_item){.leaf = {5}, .epoch = 2, .refused = true});
}

static void ack_bare(struct writer *w)
{
    standby_ack_begin(w, &(struct standby_ack){.stamp = 61050000});
}

static void beat(struct writer *w)
{
    standby_beat_encode(w, &(struct standby_beat){.stamp = 61000000});
}

static void release(struct writer *w)
{
    release_encode(w, &(struct release){.leaf = leaf, .epoch = 4, .seq = 18});
}

static void end(struct writer *w)
{
    standby_end_encode(w, &(struct standby_end){.leaf = leaf, .epoch = 4});
}

static void death(struct writer *w)
{
    death_encode(w, &(struct death){.node = {4660}});
}

static void drain(struct writer *w)
{
    drain_encode(w, &(struct drain){.name = "cell-1"});
}

static void explain(struct writer *w)
{
    explain_encode(w, &(struct explain){.what = EXPLAIN_EVENTS, .since = 12});
}

static void explain_plan(struct writer *w)
{
    explain_encode(w, &(struct explain){.what = EXPLAIN_PLAN});
}

static void place(struct writer *w)
{
    place_encode(w, &(struct place){.what = PLACE_MOVE, .leaf = leaf, .name = "cell-2"});
}

static void place_pin(struct writer *w)
{
    place_encode(w, &(struct place){.what = PLACE_PIN, .leaf = leaf});
}

static void done(struct writer *w)
{
    done_encode(w, &(struct done){.count = 3, .text = "3 leaves are still to be moved"});
}

const struct vector_case vector_cases_standby[] = {
    {"standby", "changes: a drop, a mark, one that is pending, two moves", VECTOR_MESSAGE, standby_changes},
    {"standby", "the second part of a copy", VECTOR_MESSAGE, standby_copy},
    {"standby", "a copy of an empty leaf", VECTOR_MESSAGE, standby_nothing},
    {"standby", "every field at the end of its range", VECTOR_MESSAGE, standby_extreme},
    {"standby_ack", "one leaf acknowledged, another refused", VECTOR_MESSAGE, ack},
    {"standby_ack", "nothing but the stamp", VECTOR_MESSAGE, ack_bare},
    {"standby_beat", "at 61 s", VECTOR_MESSAGE, beat},
    {"release", "of leaf 03", VECTOR_MESSAGE, release},
    {"standby_end", "of leaf 03", VECTOR_MESSAGE, end},
    {"death", "of node 4660", VECTOR_MESSAGE, death},
    {"drain", "cell-1", VECTOR_MESSAGE, drain},
    {"explain", "events after the twelfth", VECTOR_MESSAGE, explain},
    {"explain", "the plan", VECTOR_MESSAGE, explain_plan},
    {"place", "leaf 03 to cell-2", VECTOR_MESSAGE, place},
    {"place", "leaf 03 stays where it is", VECTOR_MESSAGE, place_pin},
    {"done", "three leaves to go", VECTOR_MESSAGE, done},
    {0},
};
