#include "tools/swarm.h"

#include "common/check.h"
#include "common/geometry.h"
#include "io/loop.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTER_EACH     250u  /* bots that are brought in with one call */
#define ENTER_OPEN     2000u /* enters that wait for an answer */
#define EVENT_RADIUS_M 30.0
#define EVENT_CODE     7u
#define SERVE_MS       50

static void note_fault(struct swarm *s, const char *what, uint64_t id, const char *why)
{
    if (s->fault[0] != '\0') return;
    snprintf(s->fault, sizeof s->fault, "%s of entity %llu: %s", what, (unsigned long long)id, why);
}

/* Callbacks */

static void told(struct gate *gate, const struct terrane_entity *subject)
{
    struct swarm *s = gate->swarm;
    uint64_t bot = subject->id - s->options.first_id;
    if (bot < s->options.bots) gate->told[bot] = swarm_position(s, subject->x, subject->y, subject->z);
}

static void on_see(void *context, uint64_t observer, const struct terrane_entity *subject)
{
    struct gate *gate = context;
    checker_see(gate->swarm->checker, observer, subject->id);
    told(gate, subject);
}

static void on_unsee(void *context, uint64_t observer, uint64_t subject)
{
    const struct gate *gate = context;
    checker_unsee(gate->swarm->checker, observer, subject);
}

static void on_update(void *context, uint64_t observer, const struct terrane_entity *subject, uint32_t changes)
{
    struct gate *gate = context;
    (void)changes;
    checker_update(gate->swarm->checker, observer, subject->id);
    told(gate, subject);
}

static void on_event(void *context, uint64_t observer, const struct terrane_event *event)
{
    const struct gate *gate = context;
    if (event->code == EVENT_CODE) hearing_heard(gate->swarm->hearing, observer, event->payload, event->payload_size);
}

static void set_stay(struct swarm *s, uint32_t bot, enum stay stay)
{
    s->away = s->away + (stay != STAY_HERE) - (s->stays[bot] != STAY_HERE);
    s->stays[bot] = (uint8_t)stay;
    checker_blur(s->checker, bot);
}

/* The answer to a leave or enter of the churn. */
static void churn_done(struct swarm *s, uint32_t bot, enum terrane_error error)
{
    bool leaving = s->stays[bot] == STAY_LEAVING;
    if (error != TERRANE_ERR_OK) {
        s->churn_wrong++;
        note_fault(s, leaving ? "a leave" : "an enter", s->options.first_id + bot, terrane_error_text(error));
    }
    s->churned += !leaving;
    set_stay(s, bot, leaving ? STAY_AWAY : STAY_HERE);
}

static void on_done(void *context, uint64_t request, enum terrane_operation operation, uint64_t id,
                    enum terrane_error error)
{
    const struct gate *gate = context;
    struct swarm *s = gate->swarm;
    uint64_t bot = id - s->options.first_id;
    if (bot < s->options.bots && s->stays != NULL &&
        ((operation == TERRANE_LEAVE && s->stays[bot] == STAY_LEAVING) ||
         (operation == TERRANE_ENTER && s->stays[bot] == STAY_ENTERING))) {
        churn_done(s, (uint32_t)bot, error);
        return;
    }
    if (operation == TERRANE_LEAVE) return;
    if (operation == TERRANE_QUERY || operation == TERRANE_FIND)
        questions_done(s->questions, gate->index, request, error != TERRANE_ERR_OK);
    if (error != TERRANE_ERR_OK)
        note_fault(s, operation == TERRANE_ENTER ? "the enter" : "a request", id, terrane_error_text(error));
    if (operation != TERRANE_ENTER) return;
    s->entered += error == TERRANE_ERR_OK;
    if (error != TERRANE_ERR_OK && s->refused++ == 0) s->refusal = error;
}

static void on_found(void *context, uint64_t request, const struct terrane_entity *entities, size_t count)
{
    const struct gate *gate = context;
    struct swarm *s = gate->swarm;
    for (size_t i = 0; i < count; i++)
        questions_found(s->questions, gate->index, request, entities[i].id,
                        swarm_position(s, entities[i].x, entities[i].y, entities[i].z));
}

static void on_error(void *context, uint64_t id, enum terrane_error error, const char *text)
{
    const struct gate *gate = context;
    gate->swarm->entities_lost += error == TERRANE_ERR_ENTITY_LOST || error == TERRANE_ERR_ENTITY_REENTERED;
    note_fault(gate->swarm, "an error", id, text);
}

/* Opening */

static enum terrane_error open_gate(struct swarm *s, struct gate *gate, uint32_t index)
{
    char name[LIMIT_NAME];
    snprintf(name, sizeof name, "bots-%u", index);
    struct terrane_options options = {.coordinator_url = s->options.coordinator_url,
                                      .listen_host = s->options.listen_host,
                                      .name = name,
                                      .context = gate,
                                      .fault = s->fault,
                                      .fault_size = sizeof s->fault,
                                      .callbacks = {.see = on_see,
                                                    .unsee = on_unsee,
                                                    .update = s->options.updates ? on_update : NULL,
                                                    .event = on_event,
                                                    .done = on_done,
                                                    .found = on_found,
                                                    .error = on_error}};
    gate->swarm = s;
    gate->index = index;
    gate->told = calloc(s->options.bots, sizeof *gate->told);
    CHECK(gate->told != NULL);
    return terrane_open(&options, &gate->session);
}

enum terrane_error swarm_open(const struct swarm_options *options, struct swarm **out)
{
    CHECK(options->gateways > 0 && options->gateways <= SWARM_GATEWAYS && options->bots > 0);
    struct swarm *s = calloc(1, sizeof *s);
    CHECK(s != NULL);
    *out = s;
    s->options = *options;
    s->dice.state = options->crowd.seed ^ 0x5eed;
    for (uint32_t i = 0; i < options->gateways; i++) {
        enum terrane_error error = open_gate(s, &s->gates[i], i);
        if (error != TERRANE_ERR_OK) return error;
    }
    return TERRANE_ERR_OK;
}

void swarm_close(struct swarm *s)
{
    if (s == NULL) return;
    for (uint32_t i = 0; i < s->options.gateways; i++) terrane_close(s->gates[i].session);
    for (uint32_t i = 0; i < s->options.gateways; i++) free(s->gates[i].told);
    free(s->stays);
    crowd_close(s->crowd);
    checker_close(s->checker);
    hearing_close(s->hearing);
    questions_close(s->questions);
    free(s);
}

/* World and places */

struct position swarm_position(const struct swarm *s, double x, double y, double z)
{
    CHECK(s->unit > 0);
    return (struct position){(int32_t)floor((x - s->world.origin_x) / s->unit),
                             (int32_t)floor((y - s->world.origin_y) / s->unit), (int32_t)floor(z / s->unit + 0.5)};
}

void swarm_coordinates(const struct swarm *s, struct position p, double *x, double *y)
{
    double z;
    world_coordinates(&s->world, p, x, y, &z);
}

struct gate *swarm_gate_of(struct swarm *s, uint32_t bot)
{
    CHECK(s->options.gateways > 0);
    return &s->gates[bot % s->options.gateways];
}

static void learn_world(struct swarm *s, const struct terrane_world *told_world)
{
    s->unit = told_world->unit;
    s->world = world_default();
    s->world.origin_x = told_world->origin_x;
    s->world.origin_y = told_world->origin_y;
    s->world.cell_size = told_world->cell_size;
    s->world.depth = (uint32_t)lround(log2(told_world->side / told_world->cell_size));
    s->world.resolution_bits = (uint32_t)lround(log2(told_world->side / told_world->unit));
    s->world.view_mode = told_world->block ? VIEW_BLOCK : VIEW_RADIUS;
    s->world.radius_max = world_length(&s->world, told_world->radius_max);
    s->world.hysteresis = world_length(&s->world, told_world->hysteresis);
    s->world.tick_hz = told_world->tick_hz;
    s->tick_us = 1000000u / told_world->tick_hz;
}

/* The place of a bot as an integer position, the same for the checker and for the library. */
static struct position place_of(const struct swarm *s, uint32_t bot)
{
    struct crowd_place place = crowd_place(s->crowd, bot);
    return swarm_position(s, place.x, place.y, 0);
}

enum terrane_error swarm_ready(struct swarm *s, uint32_t timeout_ms)
{
    uint64_t until_us = loop_now_us() + (uint64_t)timeout_ms * 1000;
    struct terrane_world world;
    for (uint32_t i = 0; i < s->options.gateways;) {
        if (terrane_is_ready(s->gates[i].session)) {
            i++;
            continue;
        }
        if (*s->options.stop) return TERRANE_ERR_CLOSED;
        if (loop_now_us() >= until_us) {
            snprintf(s->fault, sizeof s->fault, "no coordinator answers at %s, or it has no cell servers",
                     s->options.coordinator_url);
            return TERRANE_ERR_TIMED_OUT;
        }
        swarm_run(s, loop_now_us() + 20000);
    }
    if (!terrane_world(s->gates[0].session, &world)) return TERRANE_ERR_NOT_READY;
    learn_world(s, &world);
    if (s->options.radius > world.radius_max || world.side < 20) {
        snprintf(s->fault, sizeof s->fault, "--radius %g: this world of %g m has a largest radius of %g m",
                 s->options.radius, world.side, world.radius_max);
        return TERRANE_ERR_CONFIG;
    }
    struct crowd_options crowd = s->options.crowd;
    crowd.origin_x = world.origin_x;
    crowd.origin_y = world.origin_y;
    crowd.side = world.side;
    crowd.count = s->options.bots;
    s->crowd = crowd_open(&crowd);
    s->checker = checker_open(&(struct checker_options){.world = s->world,
                                                        .count = s->options.bots,
                                                        .first_id = s->options.first_id,
                                                        .radius = world_length(&s->world, s->options.radius)});
    s->hearing = hearing_open(s->checker, s->options.bots, s->options.first_id);
    s->questions = questions_open(s->checker, s->options.bots, s->options.first_id);
    return TERRANE_ERR_OK;
}

static enum terrane_error enter_bot(struct swarm *s, uint32_t bot, bool first)
{
    uint8_t state[CHECKER_STATE_MAX];
    struct terrane_entity entity = {.id = s->options.first_id + bot,
                                    .radius = s->options.radius,
                                    .kind = 1 + (uint32_t)crowd_workload_of(s->crowd, bot),
                                    .state = state};
    struct position p = place_of(s, bot);
    entity.state_size = first ? checker_state(entity.id, 0, state) : checker_renew(s->checker, bot, state);
    entity.yaw = crowd_place(s->crowd, bot).yaw;
    swarm_coordinates(s, p, &entity.x, &entity.y);
    checker_place(s->checker, bot, p);
    uint64_t request;
    return terrane_enter(swarm_gate_of(s, bot)->session, &entity, &request);
}

enum terrane_error swarm_enter(struct swarm *s, uint32_t timeout_ms)
{
    uint64_t until_us = loop_now_us() + (uint64_t)timeout_ms * 1000;
    uint32_t given = 0;
    while (s->entered < s->options.bots) {
        if (*s->options.stop) return TERRANE_ERR_CLOSED;
        if (s->refused > 0) return s->refusal;
        if (loop_now_us() >= until_us) {
            snprintf(s->fault, sizeof s->fault, "only %u of %u bots were let in in time", s->entered, s->options.bots);
            return TERRANE_ERR_TIMED_OUT;
        }
        for (uint32_t i = 0; i < ENTER_EACH && given < s->options.bots && given - s->entered < ENTER_OPEN; i++) {
            enum terrane_error error = enter_bot(s, given++, true);
            if (error == TERRANE_ERR_OK) continue;
            note_fault(s, "the enter", s->options.first_id + given - 1, terrane_error_text(error));
            return error;
        }
        swarm_run(s, loop_now_us() + 5000);
    }
    s->stays = calloc(s->options.bots, sizeof *s->stays);
    CHECK(s->stays != NULL);
    return TERRANE_ERR_OK;
}

/* Running */

void swarm_blur_away(struct swarm *s)
{
    for (uint32_t bot = 0; s->away > 0 && bot < s->options.bots; bot++)
        if (s->stays[bot] != STAY_HERE) checker_blur(s->checker, bot);
}

static void leave_bot(struct swarm *s, uint32_t bot)
{
    uint64_t request;
    if (s->stays[bot] != STAY_HERE) return;
    enum terrane_error error = terrane_leave(swarm_gate_of(s, bot)->session, s->options.first_id + bot, &request);
    if (error == TERRANE_ERR_OK)
        set_stay(s, bot, STAY_LEAVING);
    else if (error != TERRANE_ERR_NOT_READY)
        note_fault(s, "a leave", s->options.first_id + bot, terrane_error_text(error));
}

/* Whoever is away and not under way comes back where its path has led meanwhile. */
static void return_bots(struct swarm *s)
{
    for (uint32_t bot = 0; s->away > 0 && bot < s->options.bots; bot++) {
        if (s->stays[bot] != STAY_AWAY) continue;
        enum terrane_error error = enter_bot(s, bot, false);
        if (error == TERRANE_ERR_OK)
            set_stay(s, bot, STAY_ENTERING);
        else if (error != TERRANE_ERR_NOT_READY)
            note_fault(s, "an enter", s->options.first_id + bot, terrane_error_text(error));
    }
}

void swarm_emit(struct swarm *s)
{
    uint8_t payload[HEARING_PAYLOAD];
    uint32_t bot = dice_below(&s->dice, s->options.bots), radius = world_length(&s->world, EVENT_RADIUS_M);
    struct position centre = checker_position(s->checker, bot);
    uint64_t serial = hearing_begin(s->hearing, centre, radius, loop_now_us()), request;
    double x, y;
    if (serial == 0) return;
    hearing_payload(s->hearing, serial, payload);
    swarm_coordinates(s, centre, &x, &y);
    enum terrane_error error = terrane_emit(swarm_gate_of(s, bot)->session, EVENT_CODE, x, y, 0, 0, radius * s->unit,
                                            payload, sizeof payload, &request);
    if (error == TERRANE_ERR_OK) return;
    hearing_forget(s->hearing, serial);
    note_fault(s, "an event", 0, terrane_error_text(error));
}

bool swarm_ask(struct swarm *s)
{
    uint32_t bot = dice_below(&s->dice, s->options.bots);
    struct position p = checker_position(s->checker, bot);
    struct question q = {.kind = (enum question_kind)dice_below(&s->dice, 3), .min = p, .max = p, .bot = bot};
    struct gate *gate = &s->gates[dice_below(&s->dice, s->options.gateways)];
    double x, y, max_x, max_y;
    enum terrane_error error;
    uint64_t request;
    q.radius = world_length(&s->world, dice_between(&s->dice, 0, 100));
    if (q.kind == QUESTION_RECTANGLE) {
        int32_t last = (INT32_C(1) << s->world.resolution_bits) - 1;
        q.min.x = p.x > (int32_t)q.radius ? p.x - (int32_t)q.radius : 0;
        q.max.y = last - p.y > (int32_t)q.radius ? p.y + (int32_t)q.radius : last;
    }
    swarm_coordinates(s, q.min, &x, &y);
    swarm_coordinates(s, q.max, &max_x, &max_y);
    if (q.kind == QUESTION_CIRCLE)
        error = terrane_query_circle(gate->session, x, y, q.radius * s->unit, -1, &request);
    else if (q.kind == QUESTION_RECTANGLE)
        error = terrane_query_rectangle(gate->session, x, y, max_x, max_y, -1, &request);
    else
        error = terrane_find(gate->session, s->options.first_id + bot, &request);
    if (error != TERRANE_ERR_OK)
        note_fault(s, "a question", s->options.first_id + bot, terrane_error_text(error));
    else
        CHECK(questions_begin(s->questions, gate->index, request, &q));
    return error == TERRANE_ERR_OK;
}

static void renew_state(struct swarm *s)
{
    uint8_t state[CHECKER_STATE_MAX];
    uint32_t bot = dice_below(&s->dice, s->options.bots);
    if (s->stays[bot] != STAY_HERE) return;
    size_t size = checker_renew(s->checker, bot, state);
    uint64_t request;
    enum terrane_error error =
        terrane_set_state(swarm_gate_of(s, bot)->session, s->options.first_id + bot, state, size, &request);
    if (error != TERRANE_ERR_OK) note_fault(s, "a new state", s->options.first_id + bot, terrane_error_text(error));
}

static void move_all(struct swarm *s)
{
    crowd_step(s->crowd, (double)s->tick_us / 1e6);
    for (uint32_t bot = 0; bot < s->options.bots; bot++) {
        struct position now = place_of(s, bot), before = checker_position(s->checker, bot);
        if ((now.x == before.x && now.y == before.y) || s->stays[bot] != STAY_HERE) continue;
        double x, y;
        swarm_coordinates(s, now, &x, &y);
        enum terrane_error error = terrane_move(swarm_gate_of(s, bot)->session, s->options.first_id + bot, x, y, 0,
                                                crowd_place(s->crowd, bot).yaw);
        if (error != TERRANE_ERR_OK) {
            note_fault(s, "a move", s->options.first_id + bot, terrane_error_text(error));
            continue;
        }
        checker_place(s->checker, bot, now);
        s->moves++;
    }
    for (uint32_t i = 0; i < s->options.gateways; i++) terrane_flush(s->gates[i].session);
}

static void tick(struct swarm *s, uint64_t now_us)
{
    s->ticks++;
    s->ticks_late += now_us - s->tick_due_us > s->tick_us / 4;
    s->tick_due_us += s->tick_us;
    /* Ticks that were missed whole are not made up for: nobody's game would. */
    if (now_us > s->tick_due_us) s->tick_due_us = now_us + s->tick_us;
    move_all(s);
    double tick_s = (double)s->tick_us / 1e6;
    s->event_debt += s->options.events_per_s * tick_s;
    for (; s->event_debt >= 1; s->event_debt -= 1) swarm_emit(s);
    s->state_debt += s->options.states_per_s * tick_s;
    for (; s->state_debt >= 1; s->state_debt -= 1) renew_state(s);
    s->churn_debt += s->options.churn_per_s * tick_s;
    return_bots(s);
    for (; s->churn_debt >= 1; s->churn_debt -= 1) leave_bot(s, dice_below(&s->dice, s->options.bots));
}

void swarm_poll(struct swarm *s)
{
    for (uint32_t i = 0; i < s->options.gateways; i++) terrane_dispatch(s->gates[i].session);
}

void swarm_run(struct swarm *s, uint64_t until_us)
{
    struct pollfd fds[SWARM_GATEWAYS];
    for (uint32_t i = 0; i < s->options.gateways; i++)
        fds[i] = (struct pollfd){.fd = terrane_fd(s->gates[i].session), .events = POLLIN};
    return_bots(s);
    for (;;) {
        uint64_t now_us = loop_now_us();
        if (s->moving && s->tick_due_us == 0) s->tick_due_us = now_us;
        if (!s->moving) s->tick_due_us = 0;
        if (s->moving && now_us >= s->tick_due_us) tick(s, now_us);
        if (now_us >= until_us || *s->options.stop) return;
        uint64_t next_us = s->moving && s->tick_due_us < until_us ? s->tick_due_us : until_us;
        now_us = loop_now_us();
        int wait_ms = next_us > now_us ? (int)((next_us - now_us + 999) / 1000) : 0;
        if (s->options.loop != NULL) loop_poll(s->options.loop);
        if (s->options.loop != NULL && wait_ms > SERVE_MS) wait_ms = SERVE_MS;
        if (poll(fds, s->options.gateways, wait_ms) <= 0) continue;
        for (uint32_t i = 0; i < s->options.gateways; i++)
            if (fds[i].revents != 0) terrane_dispatch(s->gates[i].session);
    }
}

struct terrane_stats swarm_stats(const struct swarm *s)
{
    struct terrane_stats sum = {0};
    for (uint32_t i = 0; i < s->options.gateways; i++) {
        struct terrane_stats one;
        terrane_stats(s->gates[i].session, &one);
        sum.own += one.own;
        sum.seen_pairs += one.seen_pairs;
        sum.moves_sent += one.moves_sent;
        sum.handoffs += one.handoffs;
        sum.gaps += one.gaps;
        sum.gaps_repaired += one.gaps_repaired;
        sum.gaps_open += one.gaps_open;
        sum.moves_repeated += one.moves_repeated;
        sum.malformed += one.malformed;
        sum.dropped += one.dropped;
    }
    return sum;
}
