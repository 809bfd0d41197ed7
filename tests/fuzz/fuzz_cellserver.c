/* The cell server's core between a coordinator, two other cell servers and a gateway. The first byte chooses how views
 * are defined. */
#include "cellserver/cellserver.h"
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

static void nothing(void *context, const struct cellserver_entity *entity)
{
    (void)context;
    (void)entity;
}

static void begin(struct stage *s)
{
    stage_event(s, (struct event){.kind = EVENT_START});
    stage_event(s, (struct event){.kind = EVENT_PEER_UP, .node = NODE_COORDINATOR});
    welcome_encode(&s->message, &(struct welcome){{FORGE_COORDINATOR}, 1, s->forge.world});
    stage_say(s, 0, false);
    writer_clear(&s->message);
    forge_first_map(&s->forge, &s->message, FORGE_SELF);
    stage_say(s, 0, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct input in = {bytes, bytes + size};
    struct stage s;
    struct cellserver_options options = {.info = forge_node(FORGE_SELF, ROLE_CELLSERVER), .entities = 64};
    options.coordinator_url = "tcp://coordinator";
    stage_open(&s, &in, FORGE_SELF);
    if (input_byte(&in) & 1) s.forge.world.view_mode = VIEW_BLOCK;
    s.core = cellserver_open(&options);
    s.step = step;
    s.deadline = deadline;
    begin(&s);
    while (!stage_ended(&s)) stage_operate(&s);
    struct cellserver_stats stats;
    cellserver_stats(s.core, &stats);
    cellserver_census(s.core, nothing, NULL);
    (void)cellserver_calm(s.core);
    cellserver_close(s.core);
    stage_close(&s);
    return 0;
}
