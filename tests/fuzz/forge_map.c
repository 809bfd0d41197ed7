/* Maps and frames. */
#include "common/geometry.h"
#include "proto/store.h"
#include "tests/fuzz/forge.h"

#include <string.h>

static void nodes_write(struct writer *w, bool second_peer)
{
    map_list(w, second_peer ? 4 : 3);
    struct node_info self = forge_node(FORGE_SELF, ROLE_CELLSERVER), peer = forge_node(FORGE_PEER, ROLE_CELLSERVER);
    struct node_info gateway = forge_node(FORGE_GATEWAY, ROLE_GATEWAY);
    struct node_info second = forge_node(FORGE_PEER + 1, ROLE_CELLSERVER);
    map_add_node(w, &self);
    map_add_node(w, &peer);
    map_add_node(w, &gateway);
    if (second_peer) map_add_node(w, &second);
}

static void leaf_write(struct writer *w, struct quadkey leaf, uint64_t primary, uint32_t epoch)
{
    struct leaf_owner owner = {.leaf = leaf, .epoch = epoch, .since = epoch, .primary = {primary}};
    owner.feed = (uint32_t)leaf.v & 1;
    map_add_leaf(w, &owner);
}

void forge_first_map(struct forge *f, struct writer *w, uint64_t owner)
{
    f->map_rev = 1;
    map_begin(w, &(struct map){.term = 1, .rev = 1, .parts = 1});
    nodes_write(w, true);
    map_list(w, 7);
    for (uint32_t i = 0; i < 3; i++)
        leaf_write(w, quadkey_child(QUADKEY_ROOT, i), i == 0 ? owner : i == 1 ? FORGE_PEER : FORGE_PEER + 1, 1);
    for (uint32_t i = 0; i < 4; i++)
        leaf_write(w, quadkey_child(quadkey_child(QUADKEY_ROOT, 3), i), i % 2 == 0 ? owner : FORGE_PEER, 1);
    map_list(w, 0);
    map_list(w, 0);
}

void forge_map(struct forge *f, struct writer *w)
{
    static const uint64_t owners[] = {FORGE_SELF, FORGE_PEER, FORGE_PEER + 1, 0};
    uint32_t quadrants = input_byte(f->in), children = input_byte(f->in), shape = input_byte(f->in);
    uint32_t split = shape & 7, epoch = 1 + (shape >> 3 & 3);
    uint64_t step = input_choice(f->in, 8);
    struct map m = {.term = 1, .rev = ++f->map_rev, .parts = 1};
    if (step == 6) m.rev = 1;
    if (step == 7) m.term = 2;
    if (step == 5) m.base = f->map_rev - 1;
    map_begin(w, &m);
    nodes_write(w, shape & 32);
    map_list(w, split < 4 ? 7 : 4);
    for (uint32_t i = 0; i < 4; i++) {
        struct quadkey quadrant = quadkey_child(QUADKEY_ROOT, i);
        if (i != split) {
            leaf_write(w, quadrant, owners[quadrants >> (2 * i) & 3], epoch);
            continue;
        }
        for (uint32_t j = 0; j < 4; j++)
            leaf_write(w, quadkey_child(quadrant, j), owners[children >> (2 * j) & 3], epoch);
    }
    bool gone = shape & 64;
    map_list(w, gone);
    if (gone) map_add_gone_node(w, (struct node_id){FORGE_GATEWAY});
    map_list(w, gone);
    if (gone) map_add_gone_leaf(w, quadkey_child(QUADKEY_ROOT, 3));
}

static struct store_leaf stored_leaf(struct forge *f, struct quadkey key)
{
    static const uint64_t owners[] = {FORGE_PEER, FORGE_PEER + 1, FORGE_SELF, 0};
    uint8_t how = input_byte(f->in);
    struct store_leaf leaf = {.owner = {.leaf = key, .epoch = how >> 4, .since = how >> 4}};
    leaf.owner.primary.v = owners[how & 3];
    if (leaf.owner.primary.v != 0) strcpy(leaf.primary, forge_node(leaf.owner.primary.v, ROLE_CELLSERVER).name);
    if (how & 4) strcpy(leaf.standby, "other");
    if (how & 4) leaf.owner.standby.v = 777;
    return leaf;
}

void forge_stored(struct forge *f, struct writer *w)
{
    uint8_t how = input_byte(f->in);
    struct store_map m = {.term = how & 7, .rev = how >> 3 & 7, .leader = {how & 64 ? 51 : FORGE_COORDINATOR}};
    m.world = f->world;
    if (how == 255) m.world.depth++;
    uint32_t quadrants = input_choice(f->in, 5), servers = input_choice(f->in, 3);
    bool split = quadrants == 4 && how & 128;
    store_map_begin(w, &m);
    store_list(w, quadrants + (split ? 3 : 0));
    for (uint32_t i = 0; i < quadrants + (split ? 3 : 0); i++) {
        struct quadkey key = quadkey_child(QUADKEY_ROOT, i < 3 ? i : 3);
        struct store_leaf leaf = stored_leaf(f, i >= 3 && split ? quadkey_child(key, i - 3) : key);
        store_add_leaf(w, &leaf);
    }
    store_list(w, 0);
    store_list(w, servers);
    for (uint32_t i = 0; i < servers; i++) {
        struct store_server server = {.info = forge_node(FORGE_PEER + i, ROLE_CELLSERVER), .capacity = 100};
        store_add_server(w, &server);
    }
    store_list(w, 0);
}

static void sections_fill(struct forge *f, uint8_t which)
{
    struct frame_builder *b = &f->builder;
    struct entity_record record = {.id = forge_id(f), .version = input_byte(f->in), .radius = 100};
    uint32_t slot = input_choice(f->in, 12);
    if (which & 1) {
        enum left_reason reason = (enum left_reason)input_choice(f->in, 3);
        frame_builder_left(b, slot, reason, record.version, forge_leaf_at(input_choice(f->in, FORGE_LEAVES)));
    }
    if (which & 2) {
        record.position = forge_position(f);
        frame_builder_entered(b, slot, &record);
        record.id = forge_id(f);
        if (which & 128) frame_builder_entered(b, slot + (which & 1), &record);
    }
    if (which & 4) {
        frame_builder_turned(b, slot, which);
        frame_builder_turned(b, slot + 1, 9);
    }
    if (which & 8) frame_builder_climbed(b, slot, which & 1 ? 2 * HEIGHT_END - 1 : -20);
    if (which & 16) frame_builder_state(b, slot, (const uint8_t *)"state", which & 3);
    if (which & 32) frame_builder_changed(b, slot, 1, 2, which & 1, which & 1 ? INT32_MAX : 300);
}

void forge_frame(struct forge *f, struct writer *w)
{
    uint8_t how = input_byte(f->in);
    uint32_t leaf = input_choice(f->in, FORGE_LEAVES), slot = 0, epoch = 1 + (how >> 2 & 3);
    bool ghost = how & 1;
    uint64_t *seq = &f->seq[ghost][leaf];
    frame_builder_clear(&f->builder);
    for (uint32_t moves = input_choice(f->in, 6); moves > 0; moves--) {
        slot += input_choice(f->in, 4);
        int32_t dx = (int8_t)input_byte(f->in), dy = (int8_t)input_byte(f->in);
        if (how == 128) dx = POSITION_END - 1;
        frame_builder_moved(&f->builder, slot++, dx, dy);
    }
    if (how & 2) sections_fill(f, input_byte(f->in));
    if (!frame_builder_empty(&f->builder)) ++*seq;
    if (how >> 4 == 9) *seq += 2;
    topic_write(w, ghost ? STREAM_GHOST : STREAM_REGION, forge_leaf_at(leaf));
    frame_builder_write(&f->builder, epoch, *seq, input_byte(f->in), w);
}

void forge_close(struct forge *f)
{
    frame_builder_close(&f->builder);
}
