/* Bytes from outside: what is cut short, altered or forged is refused, or is well-formed again. */
#include "common/core.h"
#include "common/geometry.h"
#include "tests/unit/suite.h"
#include "tests/vectors/vectors.h"
#include <math.h>
#include <string.h>

static struct vector_list vectors;

static void vectors_need(void)
{
    if (vectors.count == 0) vector_list_load(&vectors, TERRANE_SOURCE_DIR "/proto/vectors");
    ck_assert_uint_gt(vectors.count, 50);
}

/* Decodes out of a buffer of exactly that size, so that a sanitizer sees a byte read too far; walks every list. */
static enum terrane_error fields_of(enum vector_kind kind, const uint8_t *bytes, size_t size, struct text *t)
{
    uint8_t *exact = malloc(size == 0 ? 1 : size);
    ck_assert_ptr_nonnull(exact);
    if (size > 0) memcpy(exact, bytes, size);
    writer_clear(&t->out);
    enum terrane_error error = vector_fields(kind, size == 0 ? exact + 1 : exact, size, t);
    free(exact);
    return error;
}

START_TEST(every_truncation_is_refused)
{
    vectors_need();
    struct text t = {0};
    for (uint32_t i = 0; i < vectors.count; i++) {
        const struct vector *v = &vectors.items[i];
        for (size_t cut = 0; cut < v->size; cut++) {
            enum terrane_error error = fields_of(v->kind, v->bytes, cut, &t);
            ck_assert_msg(error != TERRANE_ERR_OK, "%s: %s cut to %zu bytes", v->file, v->name, cut);
        }
    }
    writer_close(&t.out);
}
END_TEST

START_TEST(trailing_bytes_are_refused)
{
    vectors_need();
    struct text t = {0};
    for (uint32_t i = 0; i < vectors.count; i++) {
        const struct vector *v = &vectors.items[i];
        struct writer longer = {0};
        writer_raw(&longer, v->bytes, v->size);
        writer_nil(&longer);
        ck_assert_int_eq(fields_of(v->kind, longer.data, longer.size, &t), TERRANE_ERR_MESSAGE_TRAILING);
        writer_close(&longer);
    }
    writer_close(&t.out);
}
END_TEST

START_TEST(every_altered_byte_is_refused_or_read_without_fault)
{
    vectors_need();
    struct text t = {0};
    size_t refused = 0, read = 0;
    for (uint32_t i = 0; i < vectors.count; i++) {
        const struct vector *v = &vectors.items[i];
        for (size_t at = 0; at < v->size; at++) {
            uint8_t original = v->bytes[at];
            for (uint32_t value = 0; value < 256; value++) {
                v->bytes[at] = (uint8_t)value;
                bool ok = fields_of(v->kind, v->bytes, v->size, &t) == TERRANE_ERR_OK;
                if (value == original) ck_assert(ok);
                refused += !ok;
                read += ok;
            }
            v->bytes[at] = original;
        }
    }
    ck_assert_uint_gt(refused, 100000);
    ck_assert_uint_gt(read, 10000);
    writer_close(&t.out);
}
END_TEST

/* Runs of random bytes replaced, removed or doubled. */
START_TEST(damage_in_several_places_is_refused_or_read_without_fault)
{
    vectors_need();
    struct text t = {0};
    uint64_t seed = 99;
    size_t refused = 0;
    uint8_t bytes[2048];
    for (uint32_t round = 0; round < 40000; round++) {
        const struct vector *v = &vectors.items[round % vectors.count];
        size_t size = v->size;
        memcpy(bytes, v->bytes, size);
        for (uint32_t hit = 0; hit < 4; hit++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            size_t at = (size_t)(seed >> 33) % size, length = 1 + (size_t)(seed >> 24) % 9;
            if (at + length > size) length = size - at;
            if (hit == 0 && size > length + 1) {
                memmove(bytes + at, bytes + at + length, size - at - length);
                size -= length;
            } else if (hit == 1 && size + length < sizeof bytes) {
                memmove(bytes + at + length, bytes + at, size - at);
                size += length;
            } else {
                bytes[at] = (uint8_t)(seed >> 50);
            }
        }
        refused += fields_of(v->kind, bytes, size, &t) != TERRANE_ERR_OK;
    }
    ck_assert_uint_gt(refused, 30000);
    writer_close(&t.out);
}
END_TEST

/* In place of each array head of each vector (and of the few other bytes that look like one): 2^32 - 1 items. */
START_TEST(huge_counts_are_refused_wherever_an_array_stands)
{
    vectors_need();
    struct text t = {0};
    size_t heads = 0;
    for (uint32_t i = 0; i < vectors.count; i++) {
        const struct vector *v = &vectors.items[i];
        for (size_t at = 0; at < v->size; at++) {
            if ((v->bytes[at] & 0xf0) != 0x90) continue;
            struct writer forged = {0};
            writer_raw(&forged, v->bytes, at);
            writer_array(&forged, UINT32_MAX);
            writer_raw(&forged, v->bytes + at + 1, v->size - at - 1);
            ck_assert_int_ne(fields_of(v->kind, forged.data, forged.size, &t), TERRANE_ERR_OK);
            writer_close(&forged);
            heads++;
        }
    }
    ck_assert_uint_gt(heads, 150);
    writer_close(&t.out);
}
END_TEST

/* Each forges a message that is right but for one field. */
static const struct entity_record fine = {.id = {7}, .version = 1, .position = {5, 6, 7}};

static void forge_record(struct writer *w, struct entity_record record)
{
    enter_encode(w, &(struct enter){.request = 1, .sequence = 1, .record = record});
}

static void record_without_id(struct writer *w)
{
    struct entity_record record = fine;
    record.id.v = 0;
    forge_record(w, record);
}

static void enter_version(struct writer *w)
{
    struct entity_record record = fine;
    record.version = VERSION_ENTER_MAX + 1;
    forge_record(w, record);
}

static void offer_version(struct writer *w)
{
    struct transfer item = {.record = fine};
    item.record.version = VERSION_OFFER_MAX + 1;
    offer_begin(w, &(struct offer){.from = {4}, .to = {5}, .count = 1});
    offer_add(w, &item);
}

static void snapshot_version(struct writer *w)
{
    struct entity_record record = fine;
    record.version = VERSION_MAX + 1;
    snapshot_begin(w, &(struct snapshot){.stream = STREAM_REGION, .leaf = {19}, .parts = 1, .count = 1});
    snapshot_add(w, 0, &record);
}

static void record_outside(struct writer *w)
{
    struct entity_record record = fine;
    record.position.x = POSITION_END;
    forge_record(w, record);
}

static void record_negative(struct writer *w)
{
    struct entity_record record = fine;
    record.position.y = -1;
    forge_record(w, record);
}

static void record_too_high(struct writer *w)
{
    struct entity_record record = fine;
    record.position.z = HEIGHT_END;
    forge_record(w, record);
}

static void record_radius(struct writer *w)
{
    struct entity_record record = fine;
    record.radius = (uint32_t)INT32_MAX + 1;
    forge_record(w, record);
}

static void record_state(struct writer *w)
{
    static const uint8_t state[LIMIT_STATE_BYTES + 1];
    struct entity_record record = fine;
    record.state = state;
    record.state_size = sizeof state;
    forge_record(w, record);
}

static void state_too_large(struct writer *w)
{
    static const uint8_t state[LIMIT_STATE_BYTES + 1];
    set_state_encode(w, &(struct set_state){.request = 1, .id = {7}, .state = state, .state_size = sizeof state});
}

static void leave_without_id(struct writer *w)
{
    leave_encode(w, &(struct leave){.request = 1});
}

static void owner_without_leaf(struct writer *w)
{
    owner_encode(w, &(struct owner){.id = {7}});
}

static void owner_odd_quadkey(struct writer *w)
{
    owner_encode(w, &(struct owner){.id = {7}, .leaf = {2}});
}

static void owner_deep_quadkey(struct writer *w)
{
    owner_encode(w, &(struct owner){.id = {7}, .leaf = {UINT64_C(1) << 62}});
}

static void result_unknown_error(struct writer *w)
{
    result_encode(w, &(struct result){.request = 1, .id = {7}, .error = (enum terrane_error)5000});
}

static void moves_not_by_five(struct writer *w)
{
    writer_array(w, 3);
    writer_uint(w, MESSAGE_MOVES);
    writer_uint(w, 1);
    writer_array(w, 4);
    for (uint32_t i = 1; i <= 4; i++) writer_uint(w, i);
}

static void views_out_of_order(struct writer *w)
{
    views_begin(w, &(struct views){.count = 1});
    views_add(w, &(struct view_item){.observer = {7}});
    entity_list(w, 2);
    entity_add(w, (struct entity_id){9});
    entity_add(w, (struct entity_id){9});
}

static void views_whole_with_unsee(struct writer *w)
{
    views_begin(w, &(struct views){.count = 1});
    views_add(w, &(struct view_item){.observer = {7}, .part = VIEW_WHOLE_LAST, .unsee_count = 1});
    entity_add(w, (struct entity_id){9});
    entity_list(w, 0);
}

static void views_unknown_part(struct writer *w)
{
    views_begin(w, &(struct views){.count = 1});
    views_add(w, &(struct view_item){.observer = {7}, .part = (enum view_part)3});
    entity_list(w, 0);
}

static void emit_without_origin(struct writer *w)
{
    emit_encode(w, MESSAGE_EMIT, &(struct emit){.request = 1});
}

static void emit_payload(struct writer *w)
{
    static const uint8_t payload[LIMIT_EVENT_BYTES + 1];
    emit_encode(w, MESSAGE_EMIT, &(struct emit){.origin = {5}, .payload = payload, .payload_size = sizeof payload});
}

static void event_to_nobody(struct writer *w)
{
    event_told_begin(w, &(struct event_told){.emit = {.origin = {5}}, .count = 1});
    entity_add(w, (struct entity_id){0});
}

static void query_negative_radius(struct writer *w)
{
    query_encode(w, &(struct query){.c = -1});
}

static void query_fourth_number(struct writer *w)
{
    query_encode(w, &(struct query){.d = 1});
}

static void query_far(struct writer *w)
{
    query_encode(w, &(struct query){.a = -POSITION_END});
}

static void query_inverted(struct writer *w)
{
    query_encode(w, &(struct query){.shape = QUERY_RECTANGLE, .a = 5, .c = 4});
}

static void query_shapeless(struct writer *w)
{
    query_encode(w, &(struct query){.shape = (enum query_shape)2});
}

static void query_layer(struct writer *w)
{
    query_encode(w, &(struct query){.layer = -2});
}

static void part_behind_the_last(struct writer *w)
{
    query_result_begin(w, &(struct query_result){.request = 1, .part = 1, .parts = 1});
}

static void lookup_found_nowhere(struct writer *w)
{
    lookup_result_encode(w, &(struct lookup_result){.request = 1, .id = {7}, .error = TERRANE_ERR_OK});
}

static void subscribe_no_stream(struct writer *w)
{
    subscribe_encode(w, MESSAGE_SUBSCRIBE, &(struct subscribe){(enum stream_kind)'x', {19}});
}

static void snapshot_slot(struct writer *w)
{
    snapshot_begin(w, &(struct snapshot){.stream = STREAM_REGION, .leaf = {19}, .parts = 1, .count = 1});
    snapshot_add(w, LIMIT_ENTITIES, &fine);
}

static void forge_forward(struct writer *w, uint32_t hops, void (*command)(struct writer *))
{
    struct writer inner = {0};
    command(&inner);
    struct forward m = {.gateway = {5}, .hops = hops, .command = cursor_of(inner.data, inner.size)};
    forward_encode(w, &m);
    writer_close(&inner);
}

static void leave_fine(struct writer *w)
{
    leave_encode(w, &(struct leave){.id = {7}});
}

static void two_moves(struct writer *w)
{
    moves_begin(w, &(struct moves){.count = 2});
    moves_add(w, &(struct move){.id = {7}});
    moves_add(w, &(struct move){.id = {8}});
}

static void enter_fine(struct writer *w)
{
    forge_record(w, fine);
}

static void forward_ninth_hop(struct writer *w)
{
    forge_forward(w, 9, leave_fine);
}
static void forward_two_moves(struct writer *w)
{
    forge_forward(w, 1, two_moves);
}
static void forward_enter(struct writer *w)
{
    forge_forward(w, 1, enter_fine);
}
static void forward_bad_command(struct writer *w)
{
    forge_forward(w, 1, leave_without_id);
}

static struct hello hello_fine(void)
{
    return (struct hello){.info = {.role = ROLE_CELLSERVER, .node = {16}, .name = "n"}, .capacity = 1};
}

static void hello_alias(struct writer *w)
{
    struct hello m = hello_fine();
    m.info.node = NODE_COORDINATOR;
    hello_encode(w, &m);
}

static void hello_role(struct writer *w)
{
    struct hello m = hello_fine();
    m.info.role = (enum node_role)3;
    hello_encode(w, &m);
}

static void hello_weightless_server(struct writer *w)
{
    struct hello m = hello_fine();
    m.capacity = 0;
    hello_encode(w, &m);
}

static void hello_heavy(struct writer *w)
{
    struct hello m = hello_fine();
    m.capacity = 1001;
    hello_encode(w, &m);
}

static void hello_newline(struct writer *w)
{
    struct hello m = hello_fine();
    strcpy(m.info.name, "a\nb");
    hello_encode(w, &m);
}

static void hello_quote(struct writer *w)
{
    struct hello m = hello_fine();
    strcpy(m.info.inbox_url, "tcp://\"");
    hello_encode(w, &m);
}

static void hello_beyond_ascii(struct writer *w)
{
    struct hello m = hello_fine();
    strcpy(m.info.host, "h\x7f");
    hello_encode(w, &m);
}

static void forge_world(struct writer *w, void (*spoil)(struct world *))
{
    struct welcome m = {.node = {16}, .term = 1, .world = world_default(), .lease_us = 250000};
    spoil(&m.world);
    welcome_encode(w, &m);
}

static void spoil_nan(struct world *world)
{
    world->origin_x = NAN;
}
static void spoil_infinity(struct world *world)
{
    world->cell_size = INFINITY;
}
static void spoil_depth(struct world *world)
{
    world->depth = LIMIT_WORLD_DEPTH + 1;
}
static void spoil_rate(struct world *world)
{
    world->tick_hz = 0;
}
static void world_nan(struct writer *w)
{
    forge_world(w, spoil_nan);
}
static void world_infinite(struct writer *w)
{
    forge_world(w, spoil_infinity);
}
static void world_deep(struct writer *w)
{
    forge_world(w, spoil_depth);
}
static void world_still(struct writer *w)
{
    forge_world(w, spoil_rate);
}

static void map_feed(struct writer *w)
{
    map_begin(w, &(struct map){.parts = 1});
    map_list(w, 0);
    map_list(w, 1);
    map_add_leaf(w, &(struct leaf_owner){.leaf = {4}, .feed = NODE_FEEDS});
    map_list(w, 0);
    map_list(w, 0);
}

START_TEST(a_field_out_of_its_range_is_refused_with_message_range)
{
    static void (*const forgeries[])(struct writer *) = {
        record_without_id,
        enter_version,
        offer_version,
        snapshot_version,
        record_outside,
        record_negative,
        record_too_high,
        record_radius,
        record_state,
        state_too_large,
        leave_without_id,
        owner_without_leaf,
        owner_odd_quadkey,
        owner_deep_quadkey,
        result_unknown_error,
        moves_not_by_five,
        views_out_of_order,
        views_whole_with_unsee,
        views_unknown_part,
        emit_without_origin,
        emit_payload,
        event_to_nobody,
        query_negative_radius,
        query_fourth_number,
        query_far,
        query_inverted,
        query_shapeless,
        query_layer,
        part_behind_the_last,
        lookup_found_nowhere,
        subscribe_no_stream,
        snapshot_slot,
        forward_ninth_hop,
        forward_two_moves,
        forward_enter,
        forward_bad_command,
        hello_alias,
        hello_role,
        hello_weightless_server,
        hello_heavy,
        hello_newline,
        hello_quote,
        hello_beyond_ascii,
        world_nan,
        world_infinite,
        world_deep,
        world_still,
        map_feed,
    };
    struct writer w = {0};
    struct text t = {0};
    for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++) {
        writer_clear(&w);
        forgeries[i](&w);
        enum terrane_error error = fields_of(VECTOR_MESSAGE, w.data, w.size, &t);
        ck_assert_msg(error == TERRANE_ERR_MESSAGE_RANGE, "forgery %zu: %s", i, terrane_error_name(error));
    }
    writer_close(&w);
    writer_close(&t.out);
}
END_TEST

START_TEST(kinds_that_nobody_knows_are_refused_as_unknown)
{
    static const char *const bytes[] = {"\x91\x00", "\x91\x07", "\x91\x7f", "\x92\xcd\xff\xff\x01"};
    static const size_t sizes[] = {2, 2, 2, 5};
    for (size_t i = 0; i < 4; i++) {
        enum message_kind kind;
        ck_assert_int_eq(message_kind_of(cursor_of(bytes[i], sizes[i]), &kind), TERRANE_ERR_MESSAGE_UNKNOWN);
    }
}
END_TEST

START_TEST(a_decoder_refuses_another_kind_of_message)
{
    struct writer w = {0};
    struct set_radius m;
    struct subscribe s;
    leave_encode(&w, &(struct leave){.id = {7}});
    ck_assert_int_ne(set_radius_decode(cursor_of(w.data, w.size), &m), TERRANE_ERR_OK);
    writer_clear(&w);
    writer_array(&w, 3);
    writer_uint(&w, MESSAGE_LOOKUP);
    writer_uint(&w, STREAM_REGION);
    writer_uint(&w, 19);
    ck_assert_int_eq(subscribe_decode(cursor_of(w.data, w.size), &s), TERRANE_ERR_MESSAGE_RANGE);
    writer_close(&w);
}
END_TEST

START_TEST(teardown)
{
    vector_list_close(&vectors);
    ck_assert_uint_eq(vectors.count, 0);
}
END_TEST

SUITE_MAIN("malformed", every_truncation_is_refused, trailing_bytes_are_refused,
           every_altered_byte_is_refused_or_read_without_fault,
           damage_in_several_places_is_refused_or_read_without_fault, huge_counts_are_refused_wherever_an_array_stands,
           a_field_out_of_its_range_is_refused_with_message_range, kinds_that_nobody_knows_are_refused_as_unknown,
           a_decoder_refuses_another_kind_of_message, teardown)
