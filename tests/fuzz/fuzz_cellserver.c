/* The cell server's core between a coordinator, two other cell servers and a gateway. The first byte chooses how views
 * are defined. After each operation the core's counts must agree with its census. */
#include "cellserver/cellserver.h"
#include "common/check.h"
#include "tests/fuzz/stage.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void step(void *core, const struct event *in, uint64_t now_us, struct outbox *out)
{
    cellserver_step(core, in, now_us, out);
}

static uint64_t deadline(const void *core)
{
    return cellserver_deadline_us(core);
}

struct count {
    const struct cellserver *core;
    uint32_t owned, leaving;
};

static void counted(void *context, const struct cellserver_entity *entity)
{
    struct count *count = context;
    uint32_t epoch;
    CHECK(cellserver_owns(count->core, entity->leaf, &epoch));
    CHECK(entity->record.id.v != 0 && entity->record.state_size <= LIMIT_STATE_BYTES);
    count->owned++;
    count->leaving += entity->leaving;
}

/* What the core says of itself must agree with what it answers for. */
static void audit(const struct cellserver *core)
{
    struct cellserver_stats stats;
    struct count count = {.core = core};
    cellserver_stats(core, &stats);
    cellserver_census(core, counted, &count);
    CHECK(stats.owned == count.owned);
    CHECK(stats.leaving == count.leaving);
    (void)cellserver_calm(core);
}

static void begin(struct stage *s)
{
    stage_event(s, (struct event){.kind = EVENT_START});
    stage_event(s, (struct event){.kind = EVENT_PEER_UP, .node = NODE_COORDINATOR});
    welcome_encode(&s->message, &(struct welcome){{FORGE_COORDINATOR}, 1, s->forge.world, 250000});
    stage_say(s, 0, false);
    writer_clear(&s->message);
    forge_first_map(&s->forge, &s->message, FORGE_SELF);
    stage_say(s, 0, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct input in = {bytes, bytes + size};
    struct stage s;
    struct cellserver_options options = {
        .info = forge_node(FORGE_SELF, ROLE_CELLSERVER), .entities = 64, .unique_ids = true};
    options.coordinator_url = "tcp://coordinator";
    stage_open(&s, &in, FORGE_SELF);
    if (input_byte(&in) & 1) s.forge.world.view_mode = VIEW_BLOCK;
    s.core = cellserver_open(&options);
    s.step = step;
    s.deadline = deadline;
    begin(&s);
    while (!stage_ended(&s)) {
        stage_operate(&s);
        audit(s.core);
    }
    cellserver_close(s.core);
    stage_close(&s);
    return 0;
}
