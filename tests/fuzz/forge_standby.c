/* Between primary and standby, and what agents tell the coordinator. */
#include "common/geometry.h"
#include "proto/registry.h"
#include "tests/fuzz/forge.h"

static void forge_put(struct forge *f, struct writer *w)
{
    struct standby_item item = {.transfer.record = forge_record(f), .transfer.gateway = forge_some_node(f)};
    uint8_t how = input_byte(f->in);
    if (item.transfer.record.version == VERSION_MAX) item.transfer.record.version--;
    item.transfer.position_sequence = forge_sequence(f);
    item.transfer.state_sequence = forge_sequence(f);
    item.transfer.radius_sequence = forge_sequence(f);
    item.enter_request = how & 4 ? forge_request(f) : 0;
    item.slot = how == 255 ? LIMIT_ENTITIES - 1 : how >> 3;
    item.pending = (how & 3) == 1;
    item.leaving_to = (how & 3) == 2 ? forge_leaf(f) : QUADKEY_NONE;
    standby_put(w, &item);
}

static void forge_standby_changes(struct forge *f, struct writer *w)
{
    uint8_t how = input_byte(f->in);
    struct standby m = {.leaf = forge_leaf(f), .epoch = 1 + (how & 3), .seq = ++f->standby_seq};
    if (how >> 5 == 1) m.seq = 1 + input_choice(f->in, 8);
    if (how & 8) m.parts = 1 + input_choice(f->in, 3);
    if (m.parts > 0) m.part = input_choice(f->in, m.parts);
    uint32_t puts = input_choice(f->in, 4), moves = m.parts > 0 ? 0 : input_choice(f->in, 6);
    m.drop_count = m.parts > 0 ? 0 : input_choice(f->in, 3);
    standby_begin(w, &m);
    forge_ids(f, w, m.drop_count, false);
    standby_puts(w, puts);
    for (uint32_t i = 0; i < puts; i++) forge_put(f, w);
    standby_moves(w, moves);
    for (uint32_t i = 0; i < moves; i++) {
        struct standby_move move = {.slot = input_choice(f->in, 40), .yaw = how};
        move.dx = (int8_t)input_byte(f->in) * 16;
        move.dy = how == 129 ? POSITION_END - 1 : (int8_t)input_byte(f->in);
        move.dz = how == 130 ? 1 - 2 * HEIGHT_END : 0;
        standby_move(w, &move);
    }
}

static void forge_ack(struct forge *f, struct writer *w)
{
    struct standby_ack m = {.stamp = f->stamp, .count = input_choice(f->in, 4)};
    if (input_byte(f->in) & 1) m.stamp = input_long(f->in);
    standby_ack_begin(w, &m);
    for (uint32_t i = 0; i < m.count; i++) {
        struct standby_ack_item item = {.leaf = forge_leaf(f), .epoch = 1 + input_choice(f->in, 3)};
        item.seq = input_byte(f->in);
        item.refused = input_byte(f->in) >> 7;
        standby_ack_add(w, &item);
    }
}

void forge_standby(struct forge *f, struct writer *w, enum message_kind kind)
{
    if (kind == MESSAGE_STANDBY)
        forge_standby_changes(f, w);
    else if (kind == MESSAGE_STANDBY_ACK)
        forge_ack(f, w);
    else if (kind == MESSAGE_STANDBY_BEAT)
        standby_beat_encode(w, &(struct standby_beat){.stamp = f->stamp += 1000});
    else if (kind == MESSAGE_STANDBY_END)
        standby_end_encode(w, &(struct standby_end){forge_leaf(f), 1 + input_choice(f->in, 3)});
    else
        release_encode(w, &(struct release){forge_leaf(f), 1 + input_choice(f->in, 3), input_byte(f->in)});
}

void forge_registry(struct forge *f, struct writer *w)
{
    uint8_t how = input_byte(f->in);
    struct registry m = {forge_leaf(f), 1 + (how & 3), how & 4, .count = input_choice(f->in, 6)};
    registry_begin(w, &m);
    for (uint32_t i = 0; i < m.count; i++) {
        struct registry_item item = {.verb = (enum registry_verb)input_choice(f->in, REGISTRY_VERBS)};
        item.id = forge_record(f).id;
        item.version = input_byte(f->in);
        item.gateway = forge_some_node(f);
        item.request = input_byte(f->in) & 1 ? forge_request(f) : 0;
        item.token = input_byte(f->in) & 7;
        registry_add(w, &item);
    }
}

void forge_admin(struct forge *f, struct writer *w, enum message_kind kind)
{
    if (kind == MESSAGE_DEATH) {
        death_encode(w, &(struct death){forge_real_node(f)});
    } else if (kind == MESSAGE_DRAIN) {
        struct drain m = {0};
        struct node_info info = forge_node(forge_real_node(f).v, ROLE_CELLSERVER);
        for (uint32_t i = 0; i < sizeof m.name; i++) m.name[i] = info.name[i];
        drain_encode(w, &m);
    } else if (kind == MESSAGE_EXPLAIN) {
        uint32_t what = input_byte(f->in);
        explain_encode(w, &(struct explain){(enum explain_what)(what & 1), what >> 1});
    } else if (kind == MESSAGE_PLACE) {
        struct place m = {.what = (enum place_what)(input_byte(f->in) % 3), .leaf = {16 | (input_byte(f->in) & 15)}};
        struct node_info info = forge_node(forge_real_node(f).v, ROLE_CELLSERVER);
        for (uint32_t i = 0; m.what == PLACE_MOVE && i < sizeof m.name; i++) m.name[i] = info.name[i];
        place_encode(w, &m);
    } else {
        done_encode(w, &(struct done){.count = input_byte(f->in), .text = "done"});
    }
}
