/* One core on a stage: the harness plays every other process with real sessions, so that what the fuzzer makes gets
 * past the envelope and deep into the core.
 *
 * What it checks besides that nothing crashes: every packet, frame, reply and map that the core puts out decodes.
 * Memory: a stage owns its sessions and buffers until stage_close. */
#ifndef TERRANE_TESTS_FUZZ_STAGE_H
#define TERRANE_TESTS_FUZZ_STAGE_H

#include "common/core.h"
#include "proto/session.h"
#include "tests/fuzz/forge.h"
#include "tests/vectors/vectors.h"

#define STAGE_REMOTES 4u
#define STAGE_STEPS   400u /* steps of one run at most: a run must end within milliseconds */

typedef void stage_step(void *core, const struct event *in, uint64_t now_us, struct outbox *out);
typedef uint64_t stage_deadline(const void *core);

struct remote {
    struct node_id node;
    struct session *session;
};

struct stage {
    void *core;
    stage_step *step;
    stage_deadline *deadline;
    struct node_id self;
    uint64_t now_us, token;
    uint32_t steps;
    struct forge forge;
    struct outbox out;
    struct remote remotes[STAGE_REMOTES]; /* coordinator, peer, second peer, gateway */
    uint64_t store_token;                 /* of the last STORE that was not answered; 0: none */
    struct node_id link;                  /* the last node of a LINK */
    struct node_id feed_node;             /* of the last FEED_LINK */
    uint32_t feed;
    struct writer message, bytes;
    struct text scratch;
};

/* self: the node id of the core under test; it is no remote then. */
void stage_open(struct stage *s, struct input *in, uint64_t self);
void stage_close(struct stage *s);

/* Gives the core one event and takes in what it puts out. */
void stage_event(struct stage *s, struct event event);
/* Takes in what is in s->out, after calls that are no step. */
void stage_take(struct stage *s);
void stage_tick(struct stage *s, uint64_t after_us);
/* s->message on a session of the harness, then what that session has to send. */
void stage_say(struct stage *s, uint32_t remote, bool sure);
void stage_flush(struct stage *s, uint32_t remote);
/* s->bytes as a message of that lane. */
void stage_bytes(struct stage *s, enum lane lane);
/* One operation of the fuzzer's choice. */
void stage_operate(struct stage *s);
bool stage_ended(const struct stage *s);

#endif
