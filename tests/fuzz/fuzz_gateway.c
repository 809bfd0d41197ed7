/* The gateway's core between a coordinator and two cell servers, used by a game that calls back from callbacks.
 *
 * Besides the stage's checks: each see of a pair has exactly one unsee before the next see, an update or event names
 * a pair that is seen, a request is done once. */
#include "common/check.h"
#include "gateway/core.h"
#include "tests/fuzz/stage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct game {
    struct gateway *core;
    struct stage *stage;
    uint32_t every; /* so many callbacks call the API again; 0: none does */
    uint32_t heard, calls;
    uint8_t seen[32][32]; /* pairs of ids below 32 */
};

static uint8_t *pair(struct game *g, uint64_t observer, uint64_t subject)
{
    return observer < 32 && subject < 32 ? &g->seen[observer][subject] : NULL;
}

/* Coordinates around and in the world; now and then none at all. */
static double coordinate(struct input *in)
{
    uint8_t v = input_byte(in);
    return v == 255 ? NAN : v == 254 ? INFINITY : v * 1.6 - 4;
}

static void call(struct game *g)
{
    struct input *in = g->stage->forge.in;
    uint64_t id = forge_id(&g->stage->forge).v % 32, request = 0;
    struct terrane_entity e = {.id = id, .radius = input_byte(in), .layer = 0, .state = "state", .state_size = 3};
    uint64_t ids[40];
    switch (input_choice(in, 12)) {
    case 0:
    case 1:
        e.x = coordinate(in);
        e.y = coordinate(in);
        (void)!gateway_enter(g->core, &e, &request);
        break;
    case 2:
    case 3: (void)!gateway_move(g->core, id, coordinate(in), coordinate(in), 0, 1); break;
    case 4: (void)!gateway_set_state(g->core, id, "other", input_choice(in, 6), &request); break;
    case 5: (void)!gateway_set_radius(g->core, id, coordinate(in), &request); break;
    case 6: (void)!gateway_leave(g->core, id, &request); break;
    case 7: (void)!gateway_emit(g->core, 1, coordinate(in), coordinate(in), 0, 0, 50, "x", 1, NULL); break;
    case 8: (void)!gateway_query_circle(g->core, coordinate(in), coordinate(in), 60, -1, &request); break;
    case 9:
        (void)!gateway_query_rectangle(g->core, coordinate(in), coordinate(in), coordinate(in), coordinate(in), 0,
                                       NULL);
        break;
    case 10: (void)!gateway_find(g->core, id, &request); break;
    default: (void)gateway_view(g->core, id, ids, 40); (void)gateway_get(g->core, id, &e);
    }
}

/* What a game does in a callback: sometimes it calls again. */
static void react(struct game *g)
{
    if (g->every == 0 || ++g->heard % g->every != 0 || g->calls >= 50) return;
    g->calls++;
    call(g);
}

static void on_see(void *context, uint64_t observer, const struct terrane_entity *subject)
{
    struct game *g = context;
    uint8_t *seen = pair(g, observer, subject->id);
    if (seen != NULL) CHECK(!*seen);
    if (seen != NULL) *seen = 1;
    react(g);
}

static void on_unsee(void *context, uint64_t observer, uint64_t subject)
{
    struct game *g = context;
    uint8_t *seen = pair(g, observer, subject);
    if (seen != NULL) CHECK(*seen);
    if (seen != NULL) *seen = 0;
    react(g);
}

static void on_update(void *context, uint64_t observer, const struct terrane_entity *subject, uint32_t changes)
{
    struct game *g = context;
    uint8_t *seen = pair(g, observer, subject->id);
    (void)changes;
    if (seen != NULL) CHECK(*seen);
    react(g);
}

static void on_event(void *context, uint64_t observer, const struct terrane_event *event)
{
    (void)observer;
    (void)event;
    react(context);
}

static void on_done(void *context, uint64_t request, enum terrane_operation operation, uint64_t id,
                    enum terrane_error error)
{
    struct game *g = context;
    (void)operation;
    (void)error;
    (void)id;
    CHECK(request != 0);
    react(g);
}

static void on_found(void *context, uint64_t request, const struct terrane_entity *entities, size_t count)
{
    for (size_t i = 0; i < count; i++) CHECK(isfinite(entities[i].x) && isfinite(entities[i].y));
    (void)request;
    react(context);
}

static void on_error(void *context, uint64_t id, enum terrane_error error, const char *text)
{
    (void)id;
    (void)error;
    CHECK(text != NULL);
    react(context);
}

static void step(void *core, const struct event *in, uint64_t now_us, struct outbox *out)
{
    gateway_step(core, in, now_us, out);
}

static uint64_t deadline(const void *core)
{
    return gateway_deadline_us(core);
}

static void begin(struct stage *s)
{
    stage_event(s, (struct event){.kind = EVENT_START});
    stage_event(s, (struct event){.kind = EVENT_PEER_UP, .node = NODE_COORDINATOR});
    welcome_encode(&s->message, &(struct welcome){{FORGE_COORDINATOR}, 1, s->forge.world, 250000});
    stage_say(s, 0, false);
    writer_clear(&s->message);
    forge_first_map(&s->forge, &s->message, FORGE_PEER);
    stage_say(s, 0, true);
}

static void operate(struct stage *s, struct game *g)
{
    uint8_t what = input_byte(s->forge.in);
    if (what < 140) {
        stage_operate(s);
    } else if (what < 240) {
        call(g);
    } else if (what < 250) {
        gateway_flush(g->core, s->now_us, &s->out);
        stage_take(s);
    } else if (what == 250) {
        gateway_shutdown(g->core);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct game game;
    struct input in = {bytes, bytes + size};
    struct stage s;
    struct gateway_options options = {.info = forge_node(FORGE_GATEWAY, ROLE_GATEWAY), .wall_us = 5};
    options.coordinator_url = "tcp://coordinator";
    options.callbacks = (struct terrane_callbacks){.see = on_see,
                                                   .unsee = on_unsee,
                                                   .update = on_update,
                                                   .event = on_event,
                                                   .done = on_done,
                                                   .found = on_found,
                                                   .error = on_error};
    options.context = &game;
    memset(&game, 0, sizeof game);
    stage_open(&s, &in, FORGE_GATEWAY);
    options.no_updates = input_byte(&in) == 1;
    game.every = input_choice(&in, 6);
    game.core = gateway_open(&options);
    game.stage = &s;
    s.core = game.core;
    s.step = step;
    s.deadline = deadline;
    begin(&s);
    while (!stage_ended(&s)) operate(&s, &game);
    struct terrane_stats stats;
    gateway_stats(game.core, &stats);
    (void)gateway_calm(game.core);
    (void)gateway_closed(game.core);
    gateway_close(game.core);
    stage_close(&s);
    return 0;
}
