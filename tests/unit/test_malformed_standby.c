/* Messages of standbys, leases and agents that are right but for one field. */
#include "proto/registry.h"
#include "tests/unit/suite.h"
#include "tests/vectors/vectors.h"

#include "common/geometry.h"

static const struct entity_record fine = {.id = {7}, .version = 1, .position = {5, 6, 7}};

static void forge_leaf_owner(struct writer *w, struct leaf_owner leaf)
{
    map_begin(w, &(struct map){.parts = 1});
    map_list(w, 0);
    map_list(w, 1);
    map_add_leaf(w, &leaf);
    map_list(w, 0);
    map_list(w, 0);
}

static void map_since_ahead(struct writer *w)
{
    forge_leaf_owner(w, (struct leaf_owner){.leaf = {4}, .epoch = 3, .since = 4, .primary = {16}});
}

static void map_since_none(struct writer *w)
{
    forge_leaf_owner(w, (struct leaf_owner){.leaf = {4}, .epoch = 3, .primary = {16}});
}

static void forge_lease(struct writer *w, uint64_t lease_us)
{
    welcome_encode(w, &(struct welcome){.node = {16}, .term = 1, .world = world_default(), .lease_us = lease_us});
}

static void lease_short(struct writer *w)
{
    forge_lease(w, LIMIT_LEASE_MIN_US - 1);
}
static void lease_long(struct writer *w)
{
    forge_lease(w, LIMIT_LEASE_MAX_US + 1);
}

static void forge_standby(struct writer *w, const struct standby *m, uint32_t puts, uint32_t moves)
{
    struct standby_item item = {.transfer.record = fine};
    standby_begin(w, m);
    for (uint32_t i = 0; i < m->drop_count; i++) entity_add(w, (struct entity_id){7});
    standby_puts(w, puts);
    for (uint32_t i = 0; i < puts; i++) standby_put(w, &item);
    standby_moves(w, moves);
    for (uint32_t i = 0; i < moves; i++) standby_move(w, &(struct standby_move){0});
}

static void standby_without_epoch(struct writer *w)
{
    forge_standby(w, &(struct standby){.leaf = {4}, .seq = 1}, 1, 1);
}
static void standby_without_seq(struct writer *w)
{
    forge_standby(w, &(struct standby){.leaf = {4}, .epoch = 1}, 1, 1);
}
static void standby_part_of_none(struct writer *w)
{
    forge_standby(w, &(struct standby){.leaf = {4}, .epoch = 1, .seq = 1, .part = 1}, 1, 0);
}
static void standby_part_behind_the_last(struct writer *w)
{
    forge_standby(w, &(struct standby){.leaf = {4}, .epoch = 1, .seq = 1, .part = 2, .parts = 2}, 1, 0);
}
static void standby_copy_with_drop(struct writer *w)
{
    forge_standby(w, &(struct standby){.leaf = {4}, .epoch = 1, .seq = 1, .parts = 1, .drop_count = 1}, 1, 0);
}
static void standby_copy_with_move(struct writer *w)
{
    forge_standby(w, &(struct standby){.leaf = {4}, .epoch = 1, .seq = 1, .parts = 1}, 1, 1);
}

static void standby_moves_not_by_five(struct writer *w)
{
    standby_begin(w, &(struct standby){.leaf = {4}, .epoch = 1, .seq = 1});
    standby_puts(w, 0);
    writer_array(w, 4);
    for (uint32_t i = 1; i <= 4; i++) writer_uint(w, i);
}

static void forge_put(struct writer *w, struct standby_item item)
{
    item.transfer.record.id = fine.id;
    standby_begin(w, &(struct standby){.leaf = {4}, .epoch = 1, .seq = 1});
    standby_puts(w, 1);
    standby_put(w, &item);
    standby_moves(w, 0);
}

static void put_version(struct writer *w)
{
    forge_put(w, (struct standby_item){.transfer.record.version = VERSION_MAX});
}
static void put_slot(struct writer *w)
{
    forge_put(w, (struct standby_item){.slot = LIMIT_ENTITIES});
}
static void put_leaving_nowhere(struct writer *w)
{
    forge_put(w, (struct standby_item){.leaving_to = {2}});
}
static void put_pending_and_leaving(struct writer *w)
{
    forge_put(w, (struct standby_item){.leaving_to = {5}, .pending = true});
}

static void forge_move(struct writer *w, struct standby_move move)
{
    standby_begin(w, &(struct standby){.leaf = {4}, .epoch = 1, .seq = 1});
    standby_puts(w, 0);
    standby_moves(w, 1);
    standby_move(w, &move);
}

static void move_slot(struct writer *w)
{
    forge_move(w, (struct standby_move){.slot = LIMIT_ENTITIES});
}
static void move_far(struct writer *w)
{
    forge_move(w, (struct standby_move){.dx = POSITION_END});
}
static void move_far_back(struct writer *w)
{
    forge_move(w, (struct standby_move){.dy = -POSITION_END});
}
static void move_high(struct writer *w)
{
    forge_move(w, (struct standby_move){.dz = 2 * HEIGHT_END});
}

static void ack_odd_quadkey(struct writer *w)
{
    standby_ack_begin(w, &(struct standby_ack){.count = 1});
    standby_ack_add(w, &(struct standby_ack_item){.leaf = {2}});
}

static void stand_odd_quadkey(struct writer *w)
{
    heartbeat_begin(w, &(struct heartbeat){.term = 1});
    heartbeat_stands(w, 1);
    heartbeat_add_stand(w, &(struct leaf_stand){.leaf = {2}, .epoch = 1});
}

static void release_odd_quadkey(struct writer *w)
{
    release_encode(w, &(struct release){.leaf = {2}, .epoch = 1});
}
static void death_of_nobody(struct writer *w)
{
    death_encode(w, &(struct death){{0}});
}
static void drain_of_nobody(struct writer *w)
{
    drain_encode(w, &(struct drain){.name = ""});
}
static void place_nowhere(struct writer *w)
{
    place_encode(w, &(struct place){.what = PLACE_MOVE, .leaf = {16}});
}
static void place_pin_to_a_server(struct writer *w)
{
    place_encode(w, &(struct place){.what = PLACE_PIN, .leaf = {16}, .name = "cell-1"});
}
static void place_odd_quadkey(struct writer *w)
{
    place_encode(w, &(struct place){.what = PLACE_PIN, .leaf = {2}});
}
static void place_what_else(struct writer *w)
{
    place_encode(w, &(struct place){.what = (enum place_what)3, .leaf = {16}});
}
static void explain_what_else(struct writer *w)
{
    explain_encode(w, &(struct explain){.what = (enum explain_what)2});
}
static void drain_newline(struct writer *w)
{
    drain_encode(w, &(struct drain){.name = "a\nb"});
}

static void forge_registry(struct writer *w, struct registry m, struct registry_item item)
{
    m.count = 1;
    registry_begin(w, &m);
    registry_add(w, &item);
}
static void registry_odd_quadkey(struct writer *w)
{
    forge_registry(w, (struct registry){{2}, .since = 1}, (struct registry_item){.id = {7}});
}
static void registry_without_since(struct writer *w)
{
    forge_registry(w, (struct registry){{4}, .since = 0}, (struct registry_item){.id = {7}});
}
static void registry_of_nobody(struct writer *w)
{
    forge_registry(w, (struct registry){{4}, .since = 1}, (struct registry_item){.id = {0}});
}
static void registry_version(struct writer *w)
{
    forge_registry(w, (struct registry){{4}, .since = 1},
                   (struct registry_item){.id = {7}, .version = VERSION_MAX + 1});
}
static void registry_verb_unknown(struct writer *w)
{
    forge_registry(w, (struct registry){{4}, .since = 1}, (struct registry_item){REGISTRY_VERBS, .id = {7}});
}

START_TEST(a_field_out_of_its_range_is_refused_with_message_range)
{
    static void (*const forgeries[])(struct writer *) = {
        map_since_ahead,
        map_since_none,
        lease_short,
        lease_long,
        standby_without_epoch,
        standby_without_seq,
        standby_part_of_none,
        standby_part_behind_the_last,
        standby_copy_with_drop,
        standby_copy_with_move,
        standby_moves_not_by_five,
        put_version,
        put_slot,
        put_leaving_nowhere,
        put_pending_and_leaving,
        move_slot,
        move_far,
        move_far_back,
        move_high,
        ack_odd_quadkey,
        stand_odd_quadkey,
        release_odd_quadkey,
        death_of_nobody,
        drain_of_nobody,
        drain_newline,
        place_nowhere,
        place_pin_to_a_server,
        place_odd_quadkey,
        place_what_else,
        explain_what_else,
        registry_odd_quadkey,
        registry_without_since,
        registry_of_nobody,
        registry_version,
        registry_verb_unknown,
    };
    struct writer w = {0};
    struct text t = {0};
    for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++) {
        writer_clear(&w);
        forgeries[i](&w);
        enum terrane_error error = vector_fields(VECTOR_MESSAGE, w.data, w.size, &t);
        ck_assert_msg(error == TERRANE_ERR_MESSAGE_RANGE, "forgery %zu: %s", i, terrane_error_name(error));
    }
    writer_close(&w);
    writer_close(&t.out);
}
END_TEST

/* So a forgery is refused for its one field and for nothing else. */
START_TEST(the_same_messages_with_that_field_in_its_range_are_read)
{
    struct writer w = {0};
    struct text t = {0};
    struct standby changes = {.leaf = {4}, .epoch = 1, .seq = 1, .drop_count = 1};
    struct standby part = {.leaf = {4}, .epoch = 1, .seq = 1, .part = 1, .parts = 2};
    for (uint32_t i = 0; i < 8; i++) {
        writer_clear(&w);
        if (i == 0) forge_standby(&w, &changes, 1, 1);
        if (i == 1) forge_standby(&w, &part, 1, 0);
        if (i == 2) forge_put(&w, (struct standby_item){.leaving_to = {5}, .slot = LIMIT_ENTITIES - 1});
        if (i == 3) forge_move(&w, (struct standby_move){.dx = POSITION_END - 1, .dz = 1 - 2 * HEIGHT_END});
        if (i == 4) forge_lease(&w, LIMIT_LEASE_MIN_US);
        if (i == 5) forge_lease(&w, LIMIT_LEASE_MAX_US);
        if (i == 6) forge_leaf_owner(&w, (struct leaf_owner){.leaf = {4}, .epoch = 3, .since = 3, .primary = {16}});
        if (i == 7) forge_registry(&w, (struct registry){{4}, .since = 1}, (struct registry_item){.id = {7}});
        enum terrane_error error = vector_fields(VECTOR_MESSAGE, w.data, w.size, &t);
        ck_assert_msg(error == TERRANE_ERR_OK, "message %u: %s", i, terrane_error_name(error));
    }
    writer_close(&w);
    writer_close(&t.out);
}
END_TEST

SUITE_MAIN("malformed_standby", a_field_out_of_its_range_is_refused_with_message_range,
           the_same_messages_with_that_field_in_its_range_are_read)
