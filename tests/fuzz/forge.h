/* Messages and frames made from the fuzzer's choices: well-formed, about few entities, leaves and nodes, so that they
 * meet what the core under test knows; now and then with a value from the ends of the range. */
#ifndef TERRANE_TESTS_FUZZ_FORGE_H
#define TERRANE_TESTS_FUZZ_FORGE_H

#include "common/types.h"
#include "proto/frame.h"
#include "proto/messages.h"
#include "tests/fuzz/input.h"

#define FORGE_COORDINATOR UINT64_C(50)
#define FORGE_SELF        UINT64_C(100) /* the core under test */
#define FORGE_PEER        UINT64_C(200) /* a cell server */
#define FORGE_GATEWAY     UINT64_C(300)
#define FORGE_LEAVES      21u

/* What one side offered last, to be answered. */
struct forge_offers {
    struct quadkey to;
    uint32_t to_epoch, count;
    struct accept_item items[16];
};

struct forge {
    struct input *in;
    struct world world;
    uint64_t map_rev;
    uint64_t seq[2][FORGE_LEAVES]; /* of the streams that the harness plays */
    uint64_t sequence, request;
    uint64_t standby_seq, stamp;
    struct forge_offers offers;
    struct frame_builder builder;
};

/* A world of 8 x 8 cells and 16,384 position units a side. */
struct world forge_world(void);
struct node_info forge_node(uint64_t node, enum node_role role);
/* Depths 0, 1 and 2, counted from the root. */
struct quadkey forge_leaf_at(uint32_t index);

/* Appends one message of any kind. */
void forge_message(struct forge *f, struct writer *w);
/* A whole map: all nodes that the harness plays; who owns which quadrant, and which of them is split, is chosen. */
void forge_map(struct forge *f, struct writer *w);
/* The map that a test begins with: the core under test and the peer own two quadrants each. */
void forge_first_map(struct forge *f, struct writer *w, uint64_t owner);
/* What a store may hold (proto/store.h). */
void forge_stored(struct forge *f, struct writer *w);
/* ACCEPT or REFUSE for what was offered last. */
void forge_answer(struct forge *f, struct writer *w);
/* Topic and body. */
void forge_frame(struct forge *f, struct writer *w);
void forge_close(struct forge *f);

/* Parts of forge_message. */
void forge_registry(struct forge *f, struct writer *w);
void forge_standby(struct forge *f, struct writer *w, enum message_kind kind); /* STANDBY to RELEASE */
void forge_admin(struct forge *f, struct writer *w, enum message_kind kind);   /* DEATH, DRAIN, EXPLAIN, PLACE, DONE */

/* Fields, for the parts and for the harness's own choices. */
struct entity_id forge_id(struct forge *f);
struct position forge_position(struct forge *f);
struct quadkey forge_leaf(struct forge *f);
struct node_id forge_some_node(struct forge *f); /* or none */
struct node_id forge_real_node(struct forge *f);
struct entity_record forge_record(struct forge *f);
uint64_t forge_request(struct forge *f);
uint64_t forge_sequence(struct forge *f);
void forge_ids(struct forge *f, struct writer *w, uint32_t count, bool ascending);

#endif
