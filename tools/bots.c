/* terrane bots: a swarm gateway that checks what it is told. */
#include "common/geometry.h"
#include "gateway/collect.h"
#include "io/loop.h"
#include "io/probe.h"
#include "io/program.h"
#include "tools/command.h"
#include "tools/recording_files.h"
#include "tools/trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME         "terrane bots"
#define PERSONS      400u /* in a made-up crowd */
#define UPDATES_MOST 2000u
#define SECOND_US    UINT64_C(1000000)

static struct flags {
    const char *coordinator, *query, *listen, *crowds, *http;
    uint64_t bots, seed, gateways, events, queries, states, churn, window, patience;
    double seconds, calm_every, radius, speed, band;
    uint32_t workload, updates;
    bool deaths, json;
} flags;

static const char *const updates[] = {"auto", "on", "off", NULL};
static const char *const workloads[] = {"walk", "ride", "hotspot", "line", "circle", "teleport", "mix", NULL};

static const struct config_field fields[] = {
    {.name = "coordinator",
     .kind = CONFIG_TEXT,
     .value = &flags.coordinator,
     .preset = "tcp://127.0.0.1:7070",
     .unit = "URL",
     .help = "The coordinator's inbox; several, separated by commas."},
    {.name = "query",
     .kind = CONFIG_TEXT,
     .value = &flags.query,
     .preset = "",
     .unit = "URL",
     .help = "The coordinators' query sockets; none: the ports behind their inboxes."},
    {.name = "listen",
     .kind = CONFIG_TEXT,
     .value = &flags.listen,
     .preset = "127.0.0.1",
     .unit = "HOST",
     .help = "The address on which cell servers reach the bots' gateways."},
    {.name = "bots",
     .kind = CONFIG_UINT,
     .value = &flags.bots,
     .preset = "1000",
     .min = 1,
     .max = 200000,
     .help = "How many bots."},
    {.name = "for",
     .kind = CONFIG_DOUBLE,
     .value = &flags.seconds,
     .preset = "0",
     .min = 0,
     .max = 1e9,
     .unit = "SECONDS",
     .help = "How long they move, pauses for checks included; 0: until SIGINT or SIGTERM."},
    {.name = "seed",
     .kind = CONFIG_UINT,
     .value = &flags.seed,
     .preset = "1",
     .help = "Who is where and does what; also which ids the bots have."},
    {.name = "workload",
     .kind = CONFIG_CHOICE,
     .value = &flags.workload,
     .preset = "mix",
     .choices = workloads,
     .help = "mix: 40 % walk, 40 % ride (6-10 m/s), the rest hot spots, lines, circles, teleports."},
    {.name = "crowds",
     .kind = CONFIG_TEXT,
     .value = &flags.crowds,
     .preset = "",
     .unit = "DIR",
     .help = "Recorded crowds: *.txt with rows of frame, person, x, y; none: a made-up one."},
    {.name = "speed",
     .kind = CONFIG_DOUBLE,
     .value = &flags.speed,
     .preset = "1",
     .min = 0.01,
     .max = 100,
     .unit = "FACTOR",
     .help = "All paths are so much longer at the same time."},
    {.name = "radius",
     .kind = CONFIG_DOUBLE,
     .value = &flags.radius,
     .preset = "20",
     .min = 0,
     .max = 1e6,
     .unit = "M",
     .help = "How far bots see."},
    {.name = "band",
     .kind = CONFIG_DOUBLE,
     .value = &flags.band,
     .preset = "0",
     .min = 0,
     .max = 1e9,
     .unit = "M",
     .help = "Lays crowds within M of the world's two middle lines, where borders are; 0: evenly."},
    {.name = "gateways",
     .kind = CONFIG_UINT,
     .value = &flags.gateways,
     .preset = "2",
     .min = 1,
     .max = SWARM_GATEWAYS,
     .help = "Gateway sessions that share the bots."},
    {.name = "calm-every",
     .kind = CONFIG_DOUBLE,
     .value = &flags.calm_every,
     .preset = "10",
     .min = 0.5,
     .max = 1e9,
     .unit = "SECONDS",
     .help = "All stop so often, are checked against brute force, and go on; the last time at the end."},
    {.name = "patience",
     .kind = CONFIG_UINT,
     .value = &flags.patience,
     .preset = "10000",
     .min = 100,
     .max = 600000,
     .unit = "MS",
     .help = "How long what is wrong in a calm may take to become right."},
    {.name = "window",
     .kind = CONFIG_UINT,
     .value = &flags.window,
     .preset = "1000",
     .min = 100,
     .max = 60000,
     .unit = "MS",
     .help = "The delay that is forgiven while all move."},
    {.name = "events",
     .kind = CONFIG_UINT,
     .value = &flags.events,
     .preset = "5",
     .min = 0,
     .max = 50,
     .help = "Map events emitted a second, and as many in each calm; who hears them is checked."},
    {.name = "states",
     .kind = CONFIG_UINT,
     .value = &flags.states,
     .preset = "20",
     .min = 0,
     .max = 10000,
     .help = "New states a second; each must be whole and the last one in the next calm."},
    {.name = "churn",
     .kind = CONFIG_UINT,
     .value = &flags.churn,
     .preset = "0",
     .min = 0,
     .max = 10000,
     .help = "Bots a second that leave the world and enter it again."},
    {.name = "queries",
     .kind = CONFIG_UINT,
     .value = &flags.queries,
     .preset = "20",
     .min = 0,
     .max = 100000,
     .help = "Circles, rectangles and finds asked in each calm; their answers are checked."},
    {.name = "updates",
     .kind = CONFIG_CHOICE,
     .value = &flags.updates,
     .preset = "auto",
     .choices = updates,
     .help = "Take every update of every view (millions a second); auto: up to 2000 bots."},
    {.name = "deaths",
     .kind = CONFIG_BOOL,
     .value = &flags.deaths,
     .preset = "0",
     .help = "Servers may die meanwhile: questions that fail in a calm are asked again, nothing else is forgiven."},
    {.name = "http",
     .kind = CONFIG_TEXT,
     .value = &flags.http,
     .preset = PROBE_NONE,
     .unit = "HOST:PORT",
     .help = "Where /metrics, /healthz and /readyz of the bots' gateways are served; none: nowhere."},
    {.name = "json",
     .kind = CONFIG_BOOL,
     .value = &flags.json,
     .preset = "0",
     .help = "One JSON object as the last line of standard output."},
};

static const char summary[] =
    "Moves bots through a running cluster, every world tick, and checks what they are told.\n\n"
    "While they move: each see is of somebody not seen, each unsee and update of somebody seen, nobody blinks (is\n"
    "unseen though near all the time, or seen though far); views are right but for a forgiven delay. In each calm: "
    "views equal brute force over all bots, told positions are the true ones,\n"
    "every bot is owned once, at its place, with its state; queries and events are exact.\n\n"
    "JSON: entities, moves (positions given to the library), handoffs (taken over by another server), lost, doubled,\n"
    "views_wrong (views that differ from brute force in a calm, and told positions that are not the true ones),\n"
    "events_wrong (false or missing see, unsee, update or map event; blinks is a part of it), gaps and gaps_unrepaired "
    "(in streams of servers\n"
    "and gateways), ticks and ticks_late (of the servers), bytes_per_move (region frames with topic and nng's 8-byte\n"
    "header, over the moves in them, while bots move), failovers (regions that a standby has taken over).\n"
    "Exit code 0 only if nothing is wrong.";

static volatile bool stop;

static struct recording read_crowds(void)
{
    struct recording recording = {0};
    struct recording_fault fault;
    if (flags.crowds[0] == '\0')
        recording_generate(&recording, flags.seed, PERSONS);
    else if (recording_read_folder(&recording, flags.crowds, &fault) != TERRANE_ERR_OK)
        program_fail(NAME, EXIT_USAGE, "%s", fault.text);
    fprintf(stderr, "crowd: %u persons, %s%s, %.2f m/s when they walk\n", recording.persons,
            flags.crowds[0] == '\0' ? "made up" : "recorded in ", flags.crowds, recording_pace(&recording));
    return recording;
}

/* What was found wrong since the last time: when it was found is a part of it. */
static void print_new_faults(const struct checker *checker)
{
    static uint32_t shown;
    for (const char *fault; (fault = checker_fault(checker, shown)) != NULL; shown++)
        fprintf(stderr, "wrong: %s\n", fault);
}

static void progress(const struct trial *t, double seconds, uint64_t moves, uint64_t handoffs)
{
    const struct swarm *s = t->swarm;
    struct terrane_stats stats = swarm_stats(s);
    uint64_t wrong = t->views_wrong + t->positions_wrong + trial_events_wrong(t) + trial_queries_wrong(t) + t->lost +
                     t->doubled + t->misplaced + t->states_wrong;
    fprintf(stderr,
            "%5.0f s  %" PRIu64 " entities  %" PRIu64 " moves/s  %" PRIu64 " hand-offs/s  %.1f seen each  %" PRIu64
            " late ticks  %" PRIu64 " calms  %" PRIu64 " wrong\n",
            seconds, stats.own, moves, handoffs, (double)stats.seen_pairs / s->options.bots, s->ticks_late, t->calms,
            wrong);
    print_new_faults(s->checker);
}

/* Moves until the next calm, with a line a second. */
static void move(struct trial *t, uint64_t until_us, uint64_t zero_us)
{
    struct swarm *s = t->swarm;
    uint64_t now_us = loop_now_us(), sample_us = now_us, second_us = now_us + SECOND_US;
    uint64_t moves = s->moves, handoffs = swarm_stats(s).handoffs;
    s->moving = true;
    while (now_us < until_us && !stop) {
        uint64_t next_us = sample_us < second_us ? sample_us : second_us;
        swarm_run(s, next_us < until_us ? next_us : until_us);
        now_us = loop_now_us();
        if (now_us >= sample_us) sample_us = trial_sample(t, now_us);
        if (now_us < second_us) continue;
        checker_moving(s->checker);
        uint64_t handoffs_now = swarm_stats(s).handoffs;
        progress(t, (double)(now_us - zero_us) / 1e6, s->moves - moves, handoffs_now - handoffs);
        moves = s->moves;
        handoffs = handoffs_now;
        second_us += SECOND_US;
    }
    s->moving = false;
}

static void run(struct trial *t)
{
    static const volatile bool never;
    uint64_t zero_us = loop_now_us();
    uint64_t end_us = flags.seconds > 0 ? zero_us + (uint64_t)(flags.seconds * 1e6) : UINT64_MAX;
    t->begin = trial_sums(t, true);
    while (!stop && loop_now_us() < end_us) {
        uint64_t calm_us = loop_now_us() + (uint64_t)(flags.calm_every * 1e6);
        move(t, calm_us < end_us ? calm_us : end_us, zero_us);
        t->swarm->options.stop = &never; /* a calm is not cut short */
        trial_calm(t);
        if (t->deaths) (void)trial_sums(t, false); /* before somebody takes its counts along */
        t->swarm->options.stop = &stop;
    }
    t->swarm->options.stop = &never;
    t->end = trial_sums(t, true);
}

static void print_faults(const struct trial *t)
{
    if (t->swarm->fault[0] != '\0') fprintf(stderr, "told: %s\n", t->swarm->fault);
    if (t->uncounted > 0)
        fprintf(stderr, "%" PRIu64 " censuses failed, the last one: %s\n", t->uncounted,
                terrane_error_text(t->census_error));
    if (t->end.silent > 0) fprintf(stderr, "a server or the coordinator did not answer in the end\n");
    print_new_faults(t->swarm->checker);
    const struct checker_counts *c = checker_counts(t->swarm->checker);
    const struct hearing_counts *h = hearing_counts(t->swarm->hearing);
    const struct question_counts *q = questions_counts(t->swarm->questions);
    fprintf(stderr,
            "checked: %" PRIu64 " sees, %" PRIu64 " unsees, %" PRIu64 " updates, %" PRIu64
            " pairs while moving; in %" PRIu64 " calms %" PRIu64 " views, %" PRIu64 " questions; %" PRIu64
            " events heard %" PRIu64 " times\n",
            c->sees, c->unsees, c->updates, c->moving_pairs, t->calms, t->views, q->answered, h->judged, h->heard);
    if (trial_holds(t)) return;
    fprintf(stderr,
            "wrong: lost %" PRIu64 " doubled %" PRIu64 " misplaced %" PRIu64 " states %" PRIu64 " views %" PRIu64
            " positions %" PRIu64 "; seen twice %" PRIu64 " unsee %" PRIu64 " update %" PRIu64 " foreign %" PRIu64
            " churn %" PRIu64 "; blinks: unsee %" PRIu64 " see %" PRIu64 "; moving: missing %" PRIu64 " false %" PRIu64
            "; events: missed %" PRIu64 " false %" PRIu64 " twice %" PRIu64 " unknown %" PRIu64
            "; questions: failed %" PRIu64 " unanswered %" PRIu64 " missing %" PRIu64 " false %" PRIu64
            " unknown %" PRIu64 "\n",
            t->lost, t->doubled, t->misplaced, t->states_wrong, t->views_wrong, t->positions_wrong, c->seen_twice,
            c->unseen_unsee, c->unseen_update, c->foreign, t->swarm->churn_wrong, c->unseen_near, c->seen_far,
            c->moving_missing, c->moving_false, h->missed, h->false_heard, h->twice, h->unknown, q->failed,
            t->unanswered, q->missing, q->false_found, q->unknown);
}

static void print_result(const struct trial *t)
{
    const struct swarm *s = t->swarm;
    printf("{\"entities\":%u,\"moves\":%" PRIu64 ",\"handoffs\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"doubled\":%" PRIu64
           ",\"views_wrong\":%" PRIu64 ",\"events_wrong\":%" PRIu64 ",\"gaps\":%" PRIu64 ",\"gaps_unrepaired\":%" PRIu64
           ",\"ticks\":%" PRIu64 ",\"ticks_late\":%" PRIu64 ",\"bytes_per_move\":%.3f",
           s->options.bots, s->moves, t->end.handoffs_in - t->begin.handoffs_in, t->lost + s->entities_lost, t->doubled,
           t->views_wrong + t->positions_wrong, trial_events_wrong(t), trial_gaps(t), trial_gaps_unrepaired(t),
           t->end.ticks, t->end.ticks_late, trial_bytes_per_move(t));
    printf(",\"misplaced\":%" PRIu64 ",\"states_wrong\":%" PRIu64 ",\"queries_wrong\":%" PRIu64 ",\"calms\":%" PRIu64
           ",\"views_checked\":%" PRIu64 ",\"settle_ms_worst\":%" PRIu64 ",\"bot_ticks\":%" PRIu64
           ",\"bot_ticks_late\":%" PRIu64 ",\"blinks\":%" PRIu64 ",\"questions_failed\":%" PRIu64
           ",\"churned\":%" PRIu64 ",\"failovers\":%" PRIu64 "}\n",
           t->misplaced, t->states_wrong, trial_queries_wrong(t), t->calms, t->views, t->settle_ms_worst, s->ticks,
           s->ticks_late, checker_counts(s->checker)->unseen_near + checker_counts(s->checker)->seen_far,
           questions_counts(s->questions)->failed, s->churned, t->end.promotions - t->begin.promotions);
}

/* What is served over HTTP: a loop of its own, polled while the swarm runs. */

static struct swarm *served; /* NULL: not open yet */

static void collect(const void *core, struct metrics *m)
{
    struct terrane *sessions[SWARM_GATEWAYS];
    (void)core;
    for (uint32_t i = 0; served != NULL && i < served->options.gateways; i++) sessions[i] = served->gates[i].session;
    gateway_collect(sessions, served == NULL ? 0 : served->options.gateways, m);
}

static const char *unready(const void *core)
{
    (void)core;
    for (uint32_t i = 0; served != NULL && i < served->options.gateways; i++)
        if (!terrane_is_ready(served->gates[i].session)) return "a session does not know the world yet";
    return served == NULL || served->stays == NULL ? "the bots are not in the world yet" : NULL;
}

/* NULL: none is wanted. */
static struct loop *open_http(void)
{
    struct loop *loop;
    struct http *http;
    char fault[320];
    if (strcmp(flags.http, PROBE_NONE) == 0) return NULL;
    if (loop_open(&(struct loop_handlers){0}, false, &loop) != TERRANE_ERR_OK)
        program_fail(NAME, EXIT_MISSING, "%s", terrane_error_text(TERRANE_ERR_MEMORY));
    struct probe_options options = {.program = "terrane-bots",
                                    .version = TERRANE_VERSION,
                                    .address = flags.http,
                                    .automatic = "127.0.0.1:0",
                                    .loop = loop,
                                    .core = {.collect = collect, .unready = unready}};
    if (probe_open(&options, &http, fault, sizeof fault) != TERRANE_ERR_OK)
        program_fail(NAME, EXIT_USAGE, "--http: %s", fault);
    fprintf(stderr, "http %s\n", http_url(http));
    return loop;
}

/* Ids that another seed's bots do not have: the seed's hash above, a bot's number below. */
static uint64_t first_id(void)
{
    return (dice_mix(flags.seed + 1) >> 34) << 32 | 1;
}

static struct swarm *open_swarm(const struct recording *recording, struct loop *loop)
{
    struct swarm *s;
    struct swarm_options options = {.coordinator_url = flags.coordinator,
                                    .listen_host = flags.listen,
                                    .gateways = (uint32_t)flags.gateways,
                                    .bots = (uint32_t)flags.bots,
                                    .first_id = first_id(),
                                    .radius = flags.radius,
                                    .updates = flags.updates == 1 || (flags.updates == 0 && flags.bots <= UPDATES_MOST),
                                    .events_per_s = (uint32_t)flags.events,
                                    .states_per_s = (uint32_t)flags.states,
                                    .churn_per_s = (uint32_t)flags.churn,
                                    .stop = &stop,
                                    .loop = loop,
                                    .crowd = {.recording = recording,
                                              .workload = (enum crowd_workload)flags.workload,
                                              .speed = flags.speed,
                                              .band = flags.band,
                                              .seed = flags.seed}};
    enum terrane_error error = swarm_open(&options, &s);
    if (error != TERRANE_ERR_OK) program_fail(NAME, EXIT_USAGE, "%s", s->fault);
    served = s;
    error = swarm_ready(s, 30000);
    if (error == TERRANE_ERR_CLOSED) program_fail(NAME, EXIT_NOT_HELD, "stopped before the cluster was ready");
    if (error != TERRANE_ERR_OK)
        program_fail(NAME, error == TERRANE_ERR_CONFIG ? EXIT_USAGE : EXIT_MISSING, "%s", s->fault);
    error = swarm_enter(s, 60000);
    if (error != TERRANE_ERR_OK) {
        char fault[sizeof s->fault];
        memcpy(fault, s->fault, sizeof fault);
        served = NULL;
        swarm_close(s); /* who got in leaves again */
        program_fail(NAME, EXIT_NOT_HELD, "the bots did not get into the world: %s (%s)%s", terrane_error_text(error),
                     fault, error == TERRANE_ERR_ENTITY_EXISTS ? "; are other bots of this --seed there?" : "");
    }
    fprintf(stderr, "%u bots are in a world of %g m\n", s->options.bots,
            s->world.cell_size * (double)(UINT64_C(1) << s->world.depth));
    return s;
}

int command_bots(int argc, char **argv)
{
    command_configure(NAME, summary, NULL, fields, sizeof fields / sizeof *fields, argc, argv, NULL);
    command_heed_signals(&stop);
    struct cluster cluster;
    cluster_open(&cluster, command_query_urls(NAME, flags.coordinator, flags.query));
    struct recording recording = read_crowds();
    struct loop *loop = open_http();
    struct trial trial = {.swarm = open_swarm(&recording, loop),
                          .cluster = &cluster,
                          .window_ms = (uint32_t)flags.window,
                          .patience_ms = (uint32_t)flags.patience,
                          .events_in_calms = (uint32_t)flags.events,
                          .queries = (uint32_t)flags.queries,
                          .deaths = flags.deaths};
    run(&trial);
    print_faults(&trial);
    bool holds = trial_holds(&trial);
    if (flags.json)
        print_result(&trial);
    else
        printf("%s\n", holds ? "all that was checked holds" : "something is wrong: see above");
    fflush(stdout);
    served = NULL;
    swarm_close(trial.swarm);
    trial_close(&trial);
    cluster_close(&cluster);
    recording_close(&recording);
    return holds ? EXIT_WELL : EXIT_NOT_HELD;
}
