#include "tools/trial.h"

#include "common/array.h"
#include "common/check.h"
#include "io/loop.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK        128u /* observers between two dispatches */
#define LOOK_EACH_US 100000u
#define NNG_HEADER   8u /* bytes of a message's length on the wire */

#define ASK_MS 500u /* a server that does not answer holds up the bots no longer */

/* What one incarnation of a cell server, or of the coordinator, has counted, as it said last. */
struct incarnation {
    char node[20];
    struct cluster_sums sums;
};

/* One look's findings. */
struct look {
    struct trial *trial;
    struct checker_calm calm;
    struct checker_census census;
    uint64_t positions_wrong;
};

static size_t library_view(void *context, uint32_t bot, uint64_t *ids, size_t room)
{
    struct swarm *s = context;
    return terrane_view(swarm_gate_of(s, bot)->session, s->options.first_id + bot, ids, room);
}

/* Whoever is seen must be where its observers' session heard that it is: by the last update (own and foreign bots), or,
 * without updates, by the streams (bots of other sessions; of an own one a session tells what it was given itself). */
static uint64_t positions_wrong(struct swarm *s, uint32_t bot)
{
    uint32_t count;
    uint64_t wrong = 0;
    const uint64_t *ids = checker_seen_ids(s->checker, bot, &count);
    const struct gate *gate = swarm_gate_of(s, bot);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t subject = ids[i] - s->options.first_id;
        if (subject >= s->options.bots) continue;
        struct position p = checker_position(s->checker, (uint32_t)subject), heard = gate->told[subject];
        if (!s->options.updates) {
            struct terrane_entity entity = {0};
            if (swarm_gate_of(s, (uint32_t)subject) == gate) continue;
            bool known = terrane_get(gate->session, ids[i], &entity);
            heard = known ? swarm_position(s, entity.x, entity.y, 0) : (struct position){-1, -1, 0};
        }
        wrong += heard.x != p.x || heard.y != p.y;
    }
    return wrong;
}

/* False: wrong, and there is no need to go on. */
static bool look_at_views(struct look *l, bool last)
{
    struct swarm *s = l->trial->swarm;
    for (uint32_t from = 0; from < s->options.bots; from += CHUNK) {
        uint32_t to = s->options.bots - from > CHUNK ? from + CHUNK : s->options.bots;
        checker_calm(s->checker, from, to, library_view, s, &l->calm);
        for (uint32_t bot = from; bot < to; bot++) l->positions_wrong += positions_wrong(s, bot);
        if (!last && l->calm.wrong + l->positions_wrong > 0) return false;
        swarm_poll(s);
    }
    return true;
}

static void census_each(void *context, const struct cluster_entity *entity)
{
    const struct look *l = context;
    checker_census_add(l->trial->swarm->checker, entity->id, entity->position, entity->state, entity->state_size);
}

static void census_between(void *context)
{
    const struct look *l = context;
    swarm_poll(l->trial->swarm);
}

static bool look_at_owners(struct look *l)
{
    struct trial *t = l->trial;
    checker_census_begin(t->swarm->checker);
    t->census_error = cluster_refresh(t->cluster, ASK_MS);
    if (t->census_error == TERRANE_ERR_OK)
        t->census_error = cluster_census(t->cluster, ASK_MS, census_each, census_between, l);
    if (t->census_error != TERRANE_ERR_OK) return false;
    checker_census_end(t->swarm->checker, &l->census);
    const struct checker_census *c = &l->census;
    return c->lost + c->doubled + c->misplaced + c->states_wrong == 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void count(struct trial *t, const struct look *l)
{
    t->views += l->calm.views;
    t->views_wrong += l->calm.wrong;
    t->positions_wrong += l->positions_wrong;
    t->lost = larger(t->lost, l->census.lost);
    t->doubled = larger(t->doubled, l->census.doubled);
    t->misplaced = larger(t->misplaced, l->census.misplaced);
    t->states_wrong = larger(t->states_wrong, l->census.states_wrong);
}

/* A look at everything; true: all is right. `last`: what is wrong is described and counted. */
static bool look(struct trial *t, bool last)
{
    struct look l = {.trial = t};
    checker_hush(t->swarm->checker, !last);
    bool right = look_at_views(&l, last) && l.calm.wrong + l.positions_wrong == 0;
    if (right || last) right = look_at_owners(&l) && right;
    right = right && swarm_stats(t->swarm).gaps_open == 0;
    checker_hush(t->swarm->checker, false);
    if (right || last) count(t, &l);
    return right;
}

/* Events in the calm: nobody moves, so who must hear them is exact. */
static void try_events(struct trial *t)
{
    struct swarm *s = t->swarm;
    /* Those that were emitted while all moved are judged with the window that still knows of it. */
    while (hearing_open_count(s->hearing) > 0) swarm_run(s, trial_sample(t, loop_now_us()));
    for (uint32_t i = 0; i < CHECKER_HISTORY; i++) checker_sample(s->checker);
    checker_measure(s->checker);
    for (uint32_t i = 0; i < t->events_in_calms; i++) swarm_emit(s);
    uint64_t until_us = loop_now_us() + t->patience_ms * UINT64_C(1000);
    do swarm_run(s, loop_now_us() + 20000);
    while (!hearing_complete(s->hearing) && loop_now_us() < until_us && !*s->options.stop);
    hearing_judge(s->hearing, loop_now_us(), 0);
}

/* Without deaths each question has one try. */
static uint64_t settled(const struct trial *t)
{
    const struct question_counts *c = questions_counts(t->swarm->questions);
    return t->deaths ? c->answered - c->failed : c->answered;
}

static void try_questions(struct trial *t)
{
    struct swarm *s = t->swarm;
    uint64_t until_us = loop_now_us() + t->patience_ms * UINT64_C(1000);
    uint64_t wanted = settled(t) + t->queries;
    while (settled(t) < wanted && loop_now_us() < until_us) {
        while (settled(t) + questions_open_count(s->questions) < wanted &&
               questions_open_count(s->questions) < QUESTIONS_OPEN && swarm_ask(s))
            continue;
        swarm_run(s, loop_now_us() + 5000);
    }
    t->unanswered += wanted - settled(t);
    questions_give_up(s->questions);
}

void trial_calm(struct trial *t)
{
    struct swarm *s = t->swarm;
    uint64_t began_us = loop_now_us(), until_us = began_us + t->patience_ms * UINT64_C(1000);
    s->moving = false;
    do swarm_run(s, loop_now_us() + LOOK_EACH_US);
    while (s->away > 0 && loop_now_us() < until_us);
    uint64_t look_us = loop_now_us(); /* looking takes its own time, which is not the cluster's */
    while (!look(t, false)) {
        if (look_us >= until_us) {
            look(t, true);
            break;
        }
        swarm_run(s, loop_now_us() + LOOK_EACH_US);
        look_us = loop_now_us();
    }
    uint64_t settle_ms = (look_us - began_us) / 1000;
    if (settle_ms > t->settle_ms_worst) t->settle_ms_worst = settle_ms;
    t->calms++;
    if (t->census_error != TERRANE_ERR_OK) { /* somebody is gone: there is nothing more to learn */
        t->uncounted++;
        return;
    }
    try_events(t);
    try_questions(t);
}

uint64_t trial_sample(struct trial *t, uint64_t now_us)
{
    struct checker *checker = t->swarm->checker;
    swarm_blur_away(t->swarm);
    checker_sample(checker);
    swarm_blur_away(t->swarm);
    checker_measure(checker);
    /* An event may take the forgiven delay to be heard, and a hearer's place as long to be known where it is told: the
     * long window still reaches back before the event. */
    hearing_judge(t->swarm->hearing, now_us, t->window_ms * UINT64_C(1000));
    return now_us + t->window_ms * UINT64_C(1000) / (CHECKER_SAMPLES - 1);
}

/* Counters of all incarnations */

static struct incarnation *incarnation_of(struct trial *t, const char *node)
{
    for (uint32_t i = 0; i < t->incarnation_count; i++)
        if (strcmp(t->incarnations[i].node, node) == 0) return &t->incarnations[i];
    ARRAY_RESERVE(t->incarnations, t->incarnation_room, (size_t)t->incarnation_count + 1);
    struct incarnation *new = &t->incarnations[t->incarnation_count++];
    *new = (struct incarnation){.node = ""};
    strncat(new->node, node, sizeof new->node - 1);
    return new;
}

/* True: everybody whom the coordinator knows has answered. */
static bool ask_all(struct trial *t)
{
    if (cluster_refresh_all(t->cluster, ASK_MS) != TERRANE_ERR_OK) return false;
    const struct document *map = &t->cluster->map;
    incarnation_of(t, document_text(map, 0, "node"))->sums.promotions = document_count(map, 0, "promotions");
    for (uint32_t i = 0; i < t->cluster->server_count; i++) {
        const struct cluster_server *s = &t->cluster->servers[i];
        if (s->answered) incarnation_of(t, document_text(&s->status, 0, "node"))->sums = cluster_server_sums(s);
    }
    return cluster_sums(t->cluster).silent == 0 && t->cluster->server_count > 0;
}

struct cluster_sums trial_sums(struct trial *t, bool patiently)
{
    uint64_t until_us = loop_now_us() + t->patience_ms * UINT64_C(1000);
    bool all = ask_all(t);
    while (!all && patiently && loop_now_us() < until_us) {
        swarm_run(t->swarm, loop_now_us() + LOOK_EACH_US);
        all = ask_all(t);
    }
    struct cluster_sums now = cluster_sums(t->cluster), sums = {.silent = all ? 0 : now.silent + 1};
    for (uint32_t i = 0; i < t->incarnation_count; i++) cluster_sums_add(&sums, &t->incarnations[i].sums);
    /* These are of the present, not of what has been. */
    sums.gaps_open = now.gaps_open;
    sums.owned = now.owned;
    sums.ghosts = now.ghosts;
    sums.leaving = now.leaving;
    return sums;
}

void trial_close(struct trial *t)
{
    free(t->incarnations);
    t->incarnations = NULL;
}

/* Figures */

uint64_t trial_events_wrong(const struct trial *t)
{
    const struct checker_counts *c = checker_counts(t->swarm->checker);
    const struct hearing_counts *h = hearing_counts(t->swarm->hearing);
    return c->seen_twice + c->unseen_unsee + c->unseen_update + c->foreign + c->unseen_near + c->seen_far +
           c->moving_missing + c->moving_false + h->missed + h->false_heard + h->twice + h->unknown;
}

uint64_t trial_queries_wrong(const struct trial *t)
{
    const struct question_counts *c = questions_counts(t->swarm->questions);
    return (t->deaths ? 0 : c->failed) + t->unanswered + c->missing + c->false_found + c->unknown;
}

uint64_t trial_gaps(const struct trial *t)
{
    return swarm_stats(t->swarm).gaps + t->end.gaps;
}

uint64_t trial_gaps_unrepaired(const struct trial *t)
{
    return swarm_stats(t->swarm).gaps_open + t->end.gaps_open;
}

double trial_bytes_per_move(const struct trial *t)
{
    uint64_t frames = t->end.frames - t->begin.frames, moves = t->end.frame_moves - t->begin.frame_moves;
    uint64_t bytes = t->end.frame_bytes - t->begin.frame_bytes + NNG_HEADER * frames;
    return moves > 0 ? (double)bytes / (double)moves : 0;
}

bool trial_holds(const struct trial *t)
{
    return t->lost + t->doubled + t->misplaced + t->states_wrong + t->views_wrong + t->positions_wrong +
                   trial_events_wrong(t) + trial_queries_wrong(t) + trial_gaps_unrepaired(t) + t->swarm->entities_lost +
                   t->end.silent ==
               0 &&
           t->calms > 0 && t->uncounted == 0;
}
