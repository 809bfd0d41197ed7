#include "tests/fuzz/forge.h"

#include "common/geometry.h"
#include "proto/survey.h"
#include "proto/trace.h"

#include <stdio.h>
#include <string.h>

struct world forge_world(void)
{
    struct world world = world_default();
    world.depth = 3;
    world.resolution_bits = 14;
    world.radius_max = 4096;
    world.hysteresis = 128;
    world.handoff_hysteresis = 64;
    world.z_range = 1000;
    return world;
}

struct node_info forge_node(uint64_t node, enum node_role role)
{
    struct node_info info = {.role = role, .node = {node}, .host = "fuzz"};
    snprintf(info.name, sizeof info.name, "n%u", (unsigned)node);
    snprintf(info.inbox_url, sizeof info.inbox_url, "tcp://in%u", (unsigned)node);
    snprintf(info.sub_url, sizeof info.sub_url, "tcp://sub%u", (unsigned)node);
    if (role == ROLE_CELLSERVER) {
        snprintf(info.ghost_feed_url, sizeof info.ghost_feed_url, "tcp://ghost%u", (unsigned)node);
        info.feed_count = 2;
        for (unsigned i = 0; i < 2; i++)
            snprintf(info.feed_urls[i], sizeof info.feed_urls[i], "tcp://feed%u-%u", (unsigned)node, i);
    }
    return info;
}

struct quadkey forge_leaf_at(uint32_t index)
{
    if (index == 0) return QUADKEY_ROOT;
    if (index < 5) return quadkey_child(QUADKEY_ROOT, index - 1);
    return quadkey_child(quadkey_child(QUADKEY_ROOT, (index - 5) / 4 % 4), (index - 5) % 4);
}

struct entity_id forge_id(struct forge *f)
{
    uint8_t v = input_byte(f->in);
    if (v == 255) return (struct entity_id){input_long(f->in) | 1};
    return (struct entity_id){1 + v % 24u};
}

static uint64_t forge_version(struct forge *f)
{
    uint8_t v = input_byte(f->in);
    if (v < 253) return v;
    return (v == 253 ? VERSION_ENTER_MAX : v == 254 ? VERSION_OFFER_MAX : VERSION_MAX) - input_byte(f->in);
}

static uint32_t forge_leaf_index(struct forge *f)
{
    return input_choice(f->in, FORGE_LEAVES);
}

struct quadkey forge_leaf(struct forge *f)
{
    return forge_leaf_at(forge_leaf_index(f));
}

struct node_id forge_some_node(struct forge *f)
{
    static const uint64_t nodes[] = {0, FORGE_COORDINATOR, FORGE_SELF, FORGE_PEER, FORGE_PEER + 1, FORGE_GATEWAY, 999};
    return (struct node_id){nodes[input_choice(f->in, sizeof nodes / sizeof *nodes)]};
}

struct node_id forge_real_node(struct forge *f)
{
    struct node_id node = forge_some_node(f);
    return node.v == 0 ? (struct node_id){FORGE_GATEWAY} : node;
}

struct position forge_position(struct forge *f)
{
    uint8_t x = input_byte(f->in), y = input_byte(f->in), fine = input_byte(f->in);
    struct position p = {x * 64 + (fine & 63), y * 64 + (fine & 63), (fine >> 6) * 400};
    if (fine == 255) p = (struct position){POSITION_END - 1 - x, y, HEIGHT_END - 1};
    return p;
}

static uint32_t forge_radius(struct forge *f)
{
    uint8_t v = input_byte(f->in);
    return v == 255 ? INT32_MAX : v * 32u;
}

struct entity_record forge_record(struct forge *f)
{
    struct entity_record record = {.id = forge_id(f), .version = forge_version(f)};
    uint8_t shape = input_byte(f->in);
    record.kind = shape & 3;
    record.flags = shape >> 6;
    record.layer = shape >> 5 & 1;
    record.yaw = shape;
    record.position = forge_position(f);
    record.radius = forge_radius(f);
    size_t size;
    record.state = input_bytes(f->in, input_choice(f->in, 12), &size);
    record.state_size = (uint32_t)size;
    return record;
}

uint64_t forge_request(struct forge *f)
{
    uint8_t v = input_byte(f->in);
    return v < 128 ? ++f->request : v - 128u;
}

uint64_t forge_sequence(struct forge *f)
{
    uint8_t v = input_byte(f->in);
    if (v == 255) return UINT64_MAX;
    return v < 192 ? ++f->sequence : v - 192u;
}

static enum terrane_error forge_error(struct forge *f)
{
    return (enum terrane_error)input_choice(f->in, TERRANE_ERR_VERSION_MISMATCH + 1);
}

static enum stream_kind forge_stream(struct forge *f)
{
    return input_byte(f->in) & 1 ? STREAM_GHOST : STREAM_REGION;
}

void forge_ids(struct forge *f, struct writer *w, uint32_t count, bool ascending)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct entity_id id = ascending ? (struct entity_id){last + 1 + input_choice(f->in, 6)} : forge_id(f);
        last = id.v;
        entity_add(w, id);
    }
}

static void forge_member(struct forge *f, struct writer *w, enum message_kind kind)
{
    if (kind == MESSAGE_HELLO) {
        enum node_role role = (enum node_role)input_choice(f->in, 3);
        struct hello m = {.info = forge_node(forge_real_node(f).v, role), .capacity = 1 + input_byte(f->in)};
        hello_encode(w, &m);
    } else if (kind == MESSAGE_WELCOME) {
        struct welcome m = {.node = forge_real_node(f), .term = input_byte(f->in), .world = f->world};
        m.lease_us = 250000;
        if (input_byte(f->in) == 7) m.world.tick_hz++;
        welcome_encode(w, &m);
    } else if (kind == MESSAGE_HEARTBEAT) {
        struct heartbeat m = {.term = input_byte(f->in), .rev = input_byte(f->in), .count = input_choice(f->in, 4)};
        m.stamp = input_byte(f->in);
        m.echo = input_byte(f->in);
        heartbeat_begin(w, &m);
        for (uint32_t i = 0; i < m.count; i++) {
            struct leaf_load load = {.leaf = forge_leaf(f), .epoch = input_byte(f->in), .owned = input_word(f->in)};
            load.since = load.epoch;
            heartbeat_add(w, &load);
        }
        uint32_t stands = input_choice(f->in, 4);
        heartbeat_stands(w, stands);
        for (uint32_t i = 0; i < stands; i++)
            heartbeat_add_stand(w, &(struct leaf_stand){.leaf = forge_leaf(f), .epoch = input_byte(f->in)});
    } else if (kind == MESSAGE_BYE) {
        bye_encode(w);
    } else if (kind == MESSAGE_MAP) {
        forge_map(f, w);
    } else {
        map_request_encode(w, &(struct map_request){.rev = input_byte(f->in)});
    }
}

static void forge_moves(struct forge *f, struct writer *w, uint32_t count)
{
    moves_begin(w, &(struct moves){.sequence = forge_sequence(f), .count = count});
    for (uint32_t i = 0; i < count; i++) {
        struct move move = {.id = forge_id(f), .position = forge_position(f), .yaw = (uint8_t)i};
        moves_add(w, &move);
    }
}

static void forge_plain_command(struct forge *f, struct writer *w, enum message_kind kind)
{
    if (kind == MESSAGE_LEAVE) {
        leave_encode(w, &(struct leave){forge_request(f), forge_sequence(f), forge_id(f)});
    } else if (kind == MESSAGE_SET_STATE) {
        struct set_state m = {.request = forge_request(f), .sequence = forge_sequence(f), .id = forge_id(f)};
        size_t size;
        m.state = input_bytes(f->in, input_choice(f->in, 40), &size);
        m.state_size = (uint32_t)size;
        set_state_encode(w, &m);
    } else if (kind == MESSAGE_ATTACH) {
        struct attach m = {forge_request(f), forge_sequence(f), forge_id(f), {0}};
        if (input_choice(f->in, 2) == 0) m.former = forge_real_node(f);
        attach_encode(w, &m);
    } else if (kind == MESSAGE_SET_RADIUS) {
        set_radius_encode(w, &(struct set_radius){forge_request(f), forge_sequence(f), forge_id(f), forge_radius(f)});
    } else {
        forge_moves(f, w, 1);
    }
}

static void forge_forward(struct forge *f, struct writer *w)
{
    static const enum message_kind kinds[] = {MESSAGE_LEAVE, MESSAGE_SET_STATE, MESSAGE_SET_RADIUS, MESSAGE_MOVES,
                                              MESSAGE_ATTACH};
    struct writer command = {0};
    forge_plain_command(f, &command, kinds[input_choice(f->in, 5)]);
    struct forward m = {.gateway = forge_real_node(f), .hops = input_choice(f->in, 9)};
    m.command = cursor_of(command.data, command.size);
    forward_encode(w, &m);
    writer_close(&command);
}

static void forge_command(struct forge *f, struct writer *w, enum message_kind kind)
{
    if (kind == MESSAGE_ENTER) {
        enter_encode(w, &(struct enter){forge_request(f), forge_sequence(f), forge_record(f)});
    } else if (kind == MESSAGE_MOVES) {
        forge_moves(f, w, input_choice(f->in, 6));
    } else if (kind == MESSAGE_RESULT) {
        result_encode(w, &(struct result){forge_request(f), forge_id(f), forge_error(f), forge_version(f)});
    } else if (kind == MESSAGE_ATTACHED) {
        attached_encode(w, &(struct attached){forge_request(f), forge_leaf(f), forge_record(f)});
    } else if (kind == MESSAGE_OWNER) {
        owner_encode(w, &(struct owner){forge_id(f), forge_version(f), forge_leaf(f)});
    } else if (kind == MESSAGE_FORWARD) {
        forge_forward(f, w);
    } else if (kind == MESSAGE_MOVES_LOST) {
        moves_lost_encode(w, &(struct moves_lost){.packets = input_byte(f->in)});
    } else {
        forge_plain_command(f, w, kind);
    }
}

static struct emit forge_emit(struct forge *f)
{
    struct emit m = {.origin = forge_real_node(f), .request = forge_request(f), .code = input_byte(f->in)};
    m.radius = forge_radius(f);
    m.layer = input_byte(f->in) & 1;
    m.position = forge_position(f);
    size_t size;
    m.payload = input_bytes(f->in, input_choice(f->in, 8), &size);
    m.payload_size = (uint32_t)size;
    return m;
}

static void forge_views(struct forge *f, struct writer *w)
{
    struct views m = {.tick = input_byte(f->in), .count = input_choice(f->in, 4)};
    views_begin(w, &m);
    for (uint32_t i = 0; i < m.count; i++) {
        struct view_item item = {.observer = forge_id(f), .version = forge_version(f)};
        item.part = (enum view_part)input_choice(f->in, 3);
        item.unsee_count = item.part == VIEW_CHANGES ? input_choice(f->in, 4) : 0;
        uint32_t see_count = input_choice(f->in, 6);
        views_add(w, &item);
        forge_ids(f, w, item.unsee_count, true);
        entity_list(w, see_count);
        forge_ids(f, w, see_count, true);
    }
}

static struct query forge_query(struct forge *f)
{
    struct position a = forge_position(f), b = forge_position(f);
    struct query m = {.request = forge_request(f), .layer = (int32_t)input_choice(f->in, 3) - 1};
    m.shape = (enum query_shape)input_choice(f->in, 2);
    m.a = a.x;
    m.b = a.y;
    m.c = m.shape == QUERY_CIRCLE ? (int32_t)forge_radius(f) : a.x > b.x ? a.x : b.x;
    m.d = m.shape == QUERY_CIRCLE ? 0 : a.y > b.y ? a.y : b.y;
    return m;
}

static void forge_query_result(struct forge *f, struct writer *w)
{
    struct query_result m = {.request = forge_request(f), .error = forge_error(f)};
    m.part = input_choice(f->in, 3);
    m.parts = m.part + 1 + input_choice(f->in, 2);
    m.count = input_choice(f->in, 5);
    query_result_begin(w, &m);
    for (uint32_t i = 0; i < m.count; i++) {
        struct query_item item = {.id = forge_id(f), .version = forge_version(f), .position = forge_position(f)};
        query_result_add(w, &item);
    }
}

static void forge_view(struct forge *f, struct writer *w, enum message_kind kind)
{
    if (kind == MESSAGE_VIEWS) {
        forge_views(f, w);
    } else if (kind == MESSAGE_EMIT || kind == MESSAGE_EVENT_RELAY) {
        struct emit m = forge_emit(f);
        emit_encode(w, kind, &m);
    } else if (kind == MESSAGE_EVENT) {
        struct event_told m = {.emit = forge_emit(f), .count = input_choice(f->in, 5)};
        event_told_begin(w, &m);
        forge_ids(f, w, m.count, false);
    } else if (kind == MESSAGE_QUERY) {
        struct query m = forge_query(f);
        query_encode(w, &m);
    } else if (kind == MESSAGE_QUERY_RESULT) {
        forge_query_result(f, w);
    } else if (kind == MESSAGE_LOOKUP) {
        lookup_encode(w, &(struct lookup){forge_request(f), forge_id(f)});
    } else {
        struct lookup_result m = {.request = forge_request(f), .id = forge_id(f), .error = forge_error(f)};
        m.version = forge_version(f);
        m.leaf = forge_leaf(f);
        m.position = forge_position(f);
        lookup_result_encode(w, &m);
    }
}

static void forge_snapshot(struct forge *f, struct writer *w)
{
    uint32_t leaf = forge_leaf_index(f);
    struct snapshot m = {.stream = forge_stream(f), .leaf = forge_leaf_at(leaf), .epoch = 1 + input_choice(f->in, 3)};
    m.seq = f->seq[m.stream == STREAM_GHOST][leaf];
    m.part = input_choice(f->in, 3);
    m.parts = m.part + 1 + input_choice(f->in, 2);
    m.count = input_choice(f->in, 5);
    snapshot_begin(w, &m);
    uint32_t slot = 0;
    for (uint32_t i = 0; i < m.count; i++) {
        slot += input_choice(f->in, 4);
        struct entity_record record = forge_record(f);
        snapshot_add(w, slot, &record);
    }
}

static void forge_offer(struct forge *f, struct writer *w)
{
    struct offer m = {.from = forge_leaf(f), .to = forge_leaf(f), .from_epoch = 1 + input_choice(f->in, 3)};
    m.to_epoch = 1 + input_choice(f->in, 3);
    m.count = input_choice(f->in, 4);
    offer_begin(w, &m);
    for (uint32_t i = 0; i < m.count; i++) {
        struct transfer item = {.record = forge_record(f), .gateway = forge_some_node(f)};
        item.position_sequence = forge_sequence(f);
        item.state_sequence = forge_sequence(f);
        item.radius_sequence = forge_sequence(f);
        item.recall_count = input_choice(f->in, 4);
        offer_add(w, &item);
        forge_ids(f, w, item.recall_count, false);
    }
}

void forge_answer(struct forge *f, struct writer *w)
{
    const struct forge_offers *o = &f->offers;
    bool refuse = input_byte(f->in) & 1;
    struct accept accept = {.to = o->to, .to_epoch = o->to_epoch, .count = o->count};
    struct refuse refused = {.to = o->to, .to_epoch = o->to_epoch, .error = TERRANE_ERR_NOT_OWNER, .count = o->count};
    if (o->to.v == 0) accept.to = refused.to = forge_leaf(f);
    if (refuse)
        refuse_begin(w, &refused);
    else
        accept_begin(w, &accept);
    for (uint32_t i = 0; i < o->count; i++) {
        struct accept_item item = o->items[i];
        item.version = refuse ? 0 : item.offered + 1;
        accept_add(w, &item);
    }
}

static void forge_any_answer(struct forge *f, struct writer *w, enum message_kind kind)
{
    uint32_t count = input_choice(f->in, 4);
    if (kind == MESSAGE_ACCEPT)
        accept_begin(w, &(struct accept){forge_leaf(f), 1 + input_choice(f->in, 3), count, {0}});
    else
        refuse_begin(w, &(struct refuse){forge_leaf(f), 1 + input_choice(f->in, 3), forge_error(f), count, {0}});
    for (uint32_t i = 0; i < count; i++)
        accept_add(w, &(struct accept_item){forge_id(f), forge_version(f), forge_version(f)});
}

static void forge_streams(struct forge *f, struct writer *w, enum message_kind kind)
{
    if (kind == MESSAGE_SUBSCRIBE || kind == MESSAGE_UNSUBSCRIBE)
        subscribe_encode(w, kind, &(struct subscribe){forge_stream(f), forge_leaf(f)});
    else if (kind == MESSAGE_SNAPSHOT_REQUEST)
        snapshot_request_encode(w, &(struct snapshot_request){forge_stream(f), forge_leaf(f), input_byte(f->in)});
    else if (kind == MESSAGE_SNAPSHOT)
        forge_snapshot(f, w);
    else if (kind == MESSAGE_UNSUBSCRIBED)
        unsubscribed_encode(w, &(struct unsubscribed){forge_stream(f), forge_leaf(f), forge_error(f)});
    else if (kind == MESSAGE_OFFER)
        forge_offer(f, w);
    else if (kind == MESSAGE_ACCEPT || kind == MESSAGE_REFUSE)
        forge_any_answer(f, w, kind);
    else if (kind == MESSAGE_STATUS_REQUEST)
        status_request_encode(w);
    else if (kind == MESSAGE_STATUS)
        status_encode(w, &(struct status){.json = "{}"});
    else
        fault_encode(w, &(struct fault){.error = forge_error(f), .text = "fault"});
}

static void forge_survey(struct forge *f, struct writer *w, enum message_kind kind)
{
    struct position a = forge_position(f), b = forge_position(f);
    uint32_t side = input_choice(f->in, SURVEY_SIDE_MAX + 1);
    if (kind == MESSAGE_SURVEY) {
        struct survey m = {
            .min_x = a.x < b.x ? a.x : b.x, .min_y = a.y < b.y ? a.y : b.y, .columns = side, .rows = side};
        m.max_x = a.x < b.x ? b.x : a.x;
        m.max_y = a.y < b.y ? b.y : a.y;
        m.most = input_choice(f->in, SURVEY_ENTITIES_MAX + 1);
        m.after = forge_request(f);
        survey_encode(w, &m);
        return;
    }
    survey_result_begin(w, &(struct survey_result){.stride = 1, .total = 1, .columns = side, .rows = side});
    survey_result_entities(w, 1);
    survey_result_entity(w, &(struct survey_entity){.id = forge_id(f), .x = a.x, .y = a.y});
    survey_result_crossings(w, forge_request(f), 0);
}

static void forge_trace(struct forge *f, struct writer *w, enum message_kind kind)
{
    if (kind == MESSAGE_TRACE) {
        trace_encode(w, &(struct trace){.id = forge_id(f)});
        return;
    }
    trace_result_begin(w, &(struct trace_result){.id = forge_id(f), .role = TRACE_OWNED, .count = 1});
    trace_result_step(w, &(struct trace_step){.cause = TRACE_LEFT, .version = 1, .from = QUADKEY_ROOT});
}

void forge_message(struct forge *f, struct writer *w)
{
    static const enum message_kind kinds[] = {
#define X(NAME, name, number, lane) MESSAGE_##NAME,
        MESSAGE_KINDS(X)
#undef X
    };
    enum message_kind kind = kinds[input_choice(f->in, sizeof kinds / sizeof *kinds)];
    if (kind <= MESSAGE_MAP_REQUEST)
        forge_member(f, w, kind);
    else if (kind <= MESSAGE_OWNER || kind == MESSAGE_FORWARD || kind == MESSAGE_MOVES_LOST || kind == MESSAGE_ATTACH ||
             kind == MESSAGE_ATTACHED)
        forge_command(f, w, kind);
    else if (kind <= MESSAGE_LOOKUP_RESULT)
        forge_view(f, w, kind);
    else if ((kind >= MESSAGE_STANDBY && kind <= MESSAGE_RELEASE) || kind == MESSAGE_STANDBY_END)
        forge_standby(f, w, kind);
    else if (kind == MESSAGE_REGISTRY)
        forge_registry(f, w);
    else if (kind == MESSAGE_TRACE || kind == MESSAGE_TRACE_RESULT)
        forge_trace(f, w, kind);
    else if (kind == MESSAGE_SURVEY || kind == MESSAGE_SURVEY_RESULT)
        forge_survey(f, w, kind);
    else if (kind >= MESSAGE_DEATH)
        forge_admin(f, w, kind);
    else
        forge_streams(f, w, kind);
}
