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

static void finish(struct frame_builder *b, struct writer *w, enum stream_kind kind, struct quadkey leaf, uint64_t seq)
{
    topic_write(w, kind, leaf);
    frame_builder_write(b, 1, seq, 1200, w);
    frame_builder_close(b);
}

static void frame_beat(struct writer *w)
{
    struct frame_builder b = {0};
    finish(&b, w, STREAM_REGION, (struct quadkey){19}, 41);
}

static void frame_gaps(struct writer *w)
{
    struct frame_builder b = {0};
    frame_builder_moved(&b, 2, 12, -3);
    frame_builder_moved(&b, 5, -1, 0);
    frame_builder_moved(&b, 200, 127, -32);
    finish(&b, w, STREAM_REGION, (struct quadkey){19}, 42);
}

static void frame_runs(struct writer *w)
{
    struct frame_builder b = {0};
    for (uint32_t slot = 0; slot < 4; slot++) frame_builder_moved(&b, slot, (int32_t)slot, 10);
    for (uint32_t slot = 6; slot < 41; slot++) frame_builder_moved(&b, slot, -7, (int32_t)slot);
    finish(&b, w, STREAM_REGION, (struct quadkey){19}, 43);
}

static void frame_far(struct writer *w)
{
    struct frame_builder b = {0};
    frame_builder_moved(&b, 0, POSITION_END - 1, 1 - POSITION_END);
    frame_builder_moved(&b, LIMIT_ENTITIES - 1, -33, 128);
    finish(&b, w, STREAM_REGION, (struct quadkey){1}, UINT32_MAX);
}

static void frame_left_entered(struct writer *w)
{
    struct frame_builder b = {0};
    frame_builder_left(&b, 0, LEFT_GONE, 0, (struct quadkey){0});
    frame_builder_left(&b, 1, LEFT_MOVED, 1001, (struct quadkey){24});
    frame_builder_left(&b, 9, LEFT_STRIP, 0, (struct quadkey){0});
    frame_builder_entered(&b, 0, &walker);
    finish(&b, w, STREAM_GHOST, (struct quadkey){19}, 44);
}

static void frame_everything(struct writer *w)
{
    struct frame_builder b = {0};
    struct entity_record fresh = walker;
    fresh.id.v = 8;
    frame_builder_left(&b, 3, LEFT_GONE, 0, (struct quadkey){0});
    frame_builder_entered(&b, 3, &fresh);
    frame_builder_moved(&b, 0, 11, 4);
    frame_builder_moved(&b, 1, 0, -9);
    frame_builder_turned(&b, 0, 70);
    frame_builder_turned(&b, 4, 200);
    frame_builder_climbed(&b, 1, -40);
    frame_builder_climbed(&b, 2, 3);
    frame_builder_state(&b, 2, (const uint8_t *)"on fire", 7);
    frame_builder_state(&b, 4, NULL, 0);
    frame_builder_changed(&b, 1, 1, 6, 2, 16384);
    finish(&b, w, STREAM_REGION, (struct quadkey){UINT64_C(0x4e4)}, 45);
}

static void packet_hello(struct writer *w)
{
    struct hello hello = {.info = {.role = ROLE_GATEWAY, .node = {500}, .name = "gate-1", .host = "beta"}};
    strcpy(hello.info.inbox_url, "tcp://10.0.0.2:8001");
    packet_begin(w, &(struct packet){.from = {500}, .fast_total = 1}, 0);
    packet_fast(w, 1);
    hello_encode(w, &hello);
}

static void packet_mixed(struct writer *w)
{
    struct packet head = {.from = {500}, .to = {4660}, .sure_first = 17, .sure_ack = 230, .fast_total = 900};
    packet_begin(w, &head, 2);
    leave_encode(w, &(struct leave){.request = 9, .sequence = 40, .id = {7}});
    moves_lost_encode(w, &(struct moves_lost){.packets = 1});
    packet_fast(w, 1);
    moves_begin(w, &(struct moves){.sequence = 41, .count = 1});
    moves_add(w, &(struct move){.id = {8}, .position = {1048590, 1048612, 0}, .yaw = 66});
}

static void packet_ack(struct writer *w)
{
    packet_begin(w, &(struct packet){.from = {4660}, .to = {500}, .sure_ack = 18, .fast_total = 31}, 0);
    packet_fast(w, 0);
}

const struct vector_case vector_cases_frame[] = {
    {"frame", "moves, with gaps between the slots", VECTOR_FRAME, frame_gaps},
    {"frame", "moves in runs, one longer than 32", VECTOR_FRAME, frame_runs},
    {"frame", "the largest moves and the last slot, in the root", VECTOR_FRAME, frame_far},
    {"frame", "a ghost stream: three ways to leave, and a slot taken again", VECTOR_FRAME, frame_left_entered},
    {"frame", "every section", VECTOR_FRAME, frame_everything},
    {"frame", "a beat", VECTOR_FRAME, frame_beat},
    {"packet", "a gateway's first: HELLO to whoever listens", VECTOR_PACKET, packet_hello},
    {"packet", "two sure messages, an ack and a move", VECTOR_PACKET, packet_mixed},
    {"packet", "an ack alone", VECTOR_PACKET, packet_ack},
    {0},
};

const struct vector_case *vector_table(size_t index)
{
    static const struct vector_case *const tables[] = {
        vector_cases_member,   vector_cases_command, vector_cases_view,  vector_cases_stream, vector_cases_standby,
        vector_cases_registry, vector_cases_survey,  vector_cases_trace, vector_cases_frame,  NULL};
    return tables[index];
}
