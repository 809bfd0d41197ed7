/* The coordinator's core between cell servers and a gateway. The first byte chooses whether it has a store and how many
 * leaves. */
#include "common/check.h"
#include "coordinator/coordinator.h"
#include "tests/fuzz/stage.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void step(void *core, const struct event *in, uint64_t now_us, struct outbox *out)
{
    coordinator_step(core, in, now_us, out);
}

static uint64_t deadline(const void *core)
{
    return coordinator_deadline_us(core);
}

static void nothing(void *context, const struct leaf_owner *leaf)
{
    (void)context;
    (void)leaf;
}

/* HELLO as a process sends it that does not know the coordinator's id yet. */
static void hello(struct stage *s, uint32_t remote, enum node_role role)
{
    struct node_id node = s->remotes[remote].node;
    writer_clear(&s->bytes);
    packet_begin(&s->bytes, &(struct packet){.from = node, .fast_total = 1}, 0);
    packet_fast(&s->bytes, 1);
    hello_encode(&s->bytes, &(struct hello){.info = forge_node(node.v, role), .capacity = 100});
    stage_bytes(s, LANE_INBOX);
    stage_event(s, (struct event){.kind = EVENT_PEER_UP, .node = node});
}

static void operate(struct stage *s)
{
    if (input_byte(s->forge.in) < 224) {
        stage_operate(s);
        return;
    }
    uint32_t remote = input_choice(s->forge.in, STAGE_REMOTES);
    hello(s, remote, remote == 3 ? ROLE_GATEWAY : ROLE_CELLSERVER);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct input in = {bytes, bytes + size};
    struct stage s;
    struct coordinator *core;
    struct coordinator_options options = {.info = forge_node(FORGE_COORDINATOR, ROLE_COORDINATOR)};
    stage_open(&s, &in, FORGE_COORDINATOR);
    options.world = s.forge.world;
    uint8_t mode = input_byte(&in);
    options.storeless = mode & 1;
    options.split_depth = 1 + (mode >> 1 & 1);
    CHECK(coordinator_open(&options, &core) == TERRANE_ERR_OK);
    s.core = core;
    s.step = step;
    s.deadline = deadline;
    stage_event(&s, (struct event){.kind = EVENT_START});
    hello(&s, 1, ROLE_CELLSERVER);
    hello(&s, 3, ROLE_GATEWAY);
    while (!stage_ended(&s)) operate(&s);
    struct coordinator_stats stats;
    coordinator_stats(core, &stats);
    coordinator_leaves(core, nothing, NULL);
    coordinator_close(core);
    stage_close(&s);
    return 0;
}
