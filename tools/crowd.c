#include "tools/crowd.h"

#include "common/check.h"
#include "tools/dice.h"

#include <math.h>
#include <stdlib.h>

#define TURN           6.283185307179586
#define RIDE_LEAST     6.0 /* m/s */
#define RIDE_MOST      10.0
#define LEASH_M        20.0 /* times the path's scale */
#define EDGE_M         0.5  /* kept free at the square's sides */
#define HOT_SPOTS      3u
#define HOT_RADIUS_M   25.0
#define JUMP_EACH_S    5.0
#define WEAVE_M        8.0 /* how far the line weaves to each side */
#define WEAVE_LENGTH_M 20.0
#define CIRCLE_LEAST_M 5.0
#define CIRCLE_SHARE   0.2 /* largest circle, of the side */

struct bot {
    struct dice dice;
    struct crowd_place place;
    double home_x, home_y;                   /* its scene's middle */
    double scale;                            /* paths and paces are so many times the recorded ones */
    double offset_x, offset_y, cosine, sine; /* from the track's coordinates to the square's */
    double at_s;                             /* on the track; line and circle: m along the path */
    double lane;                             /* line: metres beside; circle: radius */
    uint32_t track;
    enum crowd_workload workload;
    bool jumped;
};

struct crowd {
    struct crowd_options options;
    struct bot *bots;
    struct dice dice;
    double pace;
    double hot_x[HOT_SPOTS], hot_y[HOT_SPOTS];
    double min_x, min_y, max_x, max_y;
};

const char *const *crowd_workload_names(void)
{
    static const char *const names[] = {"walk", "ride", "hotspot", "line", "circle", "teleport", "mix", NULL};
    return names;
}

/* Tracks */

static struct recording_point recorded(const struct crowd *c, const struct bot *b)
{
    const struct recording *r = c->options.recording;
    return recording_at(r, &r->tracks[b->track], b->at_s);
}

static void look(struct bot *b, double x, double y)
{
    double dx = x - b->place.x, dy = y - b->place.y;
    if (dx * dx + dy * dy > 1e-12) {
        double yaw = atan2(dy, dx);
        b->place.yaw = yaw < 0 ? yaw + TURN : yaw;
        if (b->place.yaw >= TURN) b->place.yaw = 0;
    }
    b->place.x = x;
    b->place.y = y;
}

/* Lays the bot's track so that the person's point at b->at_s is where the bot stands, turned by `angle`. */
static void lay_track(const struct crowd *c, struct bot *b, double angle)
{
    b->cosine = cos(angle) * b->scale;
    b->sine = sin(angle) * b->scale;
    struct recording_point p = recorded(c, b);
    b->offset_x = b->place.x - (p.x * b->cosine - p.y * b->sine);
    b->offset_y = b->place.y - (p.x * b->sine + p.y * b->cosine);
}

/* Another track from where the bot stands; towards (x, y) if `led`, else anywhere. */
static void next_track(const struct crowd *c, struct bot *b, bool led, double x, double y)
{
    const struct recording *r = c->options.recording;
    b->track = dice_below(&b->dice, r->track_count);
    b->at_s = 0;
    double angle = dice_between(&b->dice, 0, TURN);
    if (led) {
        const struct track *t = &r->tracks[b->track];
        struct recording_point first = r->points[t->first], last = r->points[t->first + t->count - 1];
        double recorded_heading = atan2((double)last.y - first.y, (double)last.x - first.x);
        angle = atan2(y - b->place.y, x - b->place.x) - recorded_heading + 0.3 * dice_normal(&b->dice);
    }
    lay_track(c, b, angle);
}

static void follow(const struct crowd *c, struct bot *b, double dt_s)
{
    const struct recording *r = c->options.recording;
    b->at_s += dt_s;
    double seconds = recording_seconds(&r->tracks[b->track]);
    if (b->at_s > seconds) {
        double rest = b->at_s - seconds;
        b->at_s = seconds;
        struct recording_point end = recorded(c, b);
        look(b, b->offset_x + end.x * b->cosine - end.y * b->sine, b->offset_y + end.x * b->sine + end.y * b->cosine);
        double away = hypot(b->place.x - b->home_x, b->place.y - b->home_y);
        next_track(c, b, away > LEASH_M * b->scale, b->home_x, b->home_y);
        b->at_s = rest;
    }
    struct recording_point p = recorded(c, b);
    double x = b->offset_x + p.x * b->cosine - p.y * b->sine;
    double y = b->offset_y + p.x * b->sine + p.y * b->cosine;
    double inside_x = fmin(fmax(x, c->min_x), c->max_x), inside_y = fmin(fmax(y, c->min_y), c->max_y);
    look(b, inside_x, inside_y);
    if (x != inside_x || y != inside_y) next_track(c, b, true, (c->min_x + c->max_x) / 2, (c->min_y + c->max_y) / 2);
}

/* Made-up paths */

static void go_line(const struct crowd *c, struct bot *b, double dt_s)
{
    double length = c->max_x - c->min_x;
    b->at_s = fmod(b->at_s + dt_s * b->scale, 2 * length);
    double along = b->at_s < length ? b->at_s : 2 * length - b->at_s;
    look(b, c->min_x + along,
         (c->min_y + c->max_y) / 2 + b->lane + WEAVE_M * sin((along + b->lane * 40) / WEAVE_LENGTH_M));
}

static void go_circle(const struct crowd *c, struct bot *b, double dt_s)
{
    b->at_s = fmod(b->at_s + dt_s * b->scale, TURN * b->lane);
    double angle = b->at_s / b->lane;
    look(b, (c->min_x + c->max_x) / 2 + b->lane * cos(angle), (c->min_y + c->max_y) / 2 + b->lane * sin(angle));
}

static void jump(const struct crowd *c, struct bot *b)
{
    b->place.x = b->home_x = dice_between(&b->dice, c->min_x, c->max_x);
    b->place.y = b->home_y = dice_between(&b->dice, c->min_y, c->max_y);
    b->jumped = true;
    next_track(c, b, false, 0, 0);
}

void crowd_step(struct crowd *c, double dt_s)
{
    for (uint32_t i = 0; i < c->options.count; i++) {
        struct bot *b = &c->bots[i];
        b->jumped = false;
        if (b->workload == CROWD_LINE)
            go_line(c, b, dt_s);
        else if (b->workload == CROWD_CIRCLE)
            go_circle(c, b, dt_s);
        else if (b->workload == CROWD_TELEPORT && dice_unit(&b->dice) < dt_s / JUMP_EACH_S)
            jump(c, b);
        else
            follow(c, b, dt_s);
    }
}

/* Laying */

static enum crowd_workload pick_workload(struct crowd *c)
{
    if (c->options.workload != CROWD_MIX) return c->options.workload;
    uint32_t percent = dice_below(&c->dice, 100);
    if (percent < 40) return CROWD_WALK;
    if (percent < 80) return CROWD_RIDE;
    if (percent < 88) return CROWD_HOTSPOT;
    if (percent < 93) return CROWD_LINE;
    return percent < 98 ? CROWD_CIRCLE : CROWD_TELEPORT;
}

static void scene_place(struct crowd *c, enum crowd_workload workload, double *x, double *y)
{
    *x = dice_between(&c->dice, c->min_x, c->max_x);
    *y = dice_between(&c->dice, c->min_y, c->max_y);
    if (workload == CROWD_HOTSPOT) {
        uint32_t spot = dice_below(&c->dice, HOT_SPOTS);
        *x = c->hot_x[spot] + HOT_RADIUS_M * dice_normal(&c->dice);
        *y = c->hot_y[spot] + HOT_RADIUS_M * dice_normal(&c->dice);
    } else if (c->options.band > 0) {
        bool upright = dice_below(&c->dice, 2) == 0;
        double *across = upright ? x : y;
        double middle = upright ? (c->min_x + c->max_x) / 2 : (c->min_y + c->max_y) / 2;
        *across = middle + dice_between(&c->dice, -c->options.band, c->options.band);
    }
}

static double pick_scale(struct crowd *c, enum crowd_workload workload)
{
    double riding = dice_between(&c->dice, RIDE_LEAST, RIDE_MOST);
    return c->options.speed * (workload == CROWD_RIDE ? riding / c->pace : 1.0);
}

static void lay_path_bot(struct crowd *c, struct bot *b)
{
    double walking = fmax(0.4, 1.3 + 0.3 * dice_normal(&c->dice));
    double riding = dice_between(&c->dice, RIDE_LEAST, RIDE_MOST);
    b->scale = c->options.speed * (dice_below(&c->dice, 2) == 0 ? walking : riding);
    double side = c->max_x - c->min_x;
    if (b->workload == CROWD_LINE) {
        b->at_s = dice_between(&c->dice, 0, 2 * side);
        b->lane = dice_between(&c->dice, -1, 1);
        go_line(c, b, 0);
    } else {
        b->lane = dice_between(&c->dice, CIRCLE_LEAST_M, fmax(CIRCLE_LEAST_M + 1, side * CIRCLE_SHARE));
        b->at_s = dice_between(&c->dice, 0, TURN * b->lane);
        go_circle(c, b, 0);
    }
}

/* Everybody of the source who is in the scene at `step` becomes a bot, as long as bots are left to be laid. */
static uint32_t lay_scene(struct crowd *c, uint32_t from, enum crowd_workload workload, uint32_t source, uint32_t step)
{
    const struct recording *r = c->options.recording;
    double home_x, home_y, angle = dice_between(&c->dice, 0, TURN), scale = pick_scale(c, workload);
    double mean_x = 0, mean_y = 0;
    uint32_t next = from;
    scene_place(c, workload, &home_x, &home_y);
    for (uint32_t i = 0; i < r->track_count && next < c->options.count; i++) {
        const struct track *t = &r->tracks[i];
        if (t->source != source || step < t->start || step - t->start >= t->count - 1) continue;
        struct bot *b = &c->bots[next++];
        b->workload = workload;
        b->scale = scale;
        b->track = i;
        b->at_s = (step - t->start) * RECORDING_STEP_S;
        mean_x += recorded(c, b).x;
        mean_y += recorded(c, b).y;
    }
    for (uint32_t i = from; i < next; i++) {
        struct bot *b = &c->bots[i];
        struct recording_point p = recorded(c, b);
        double dx = (p.x - mean_x / (next - from)) * scale, dy = (p.y - mean_y / (next - from)) * scale;
        b->home_x = fmin(fmax(home_x, c->min_x), c->max_x);
        b->home_y = fmin(fmax(home_y, c->min_y), c->max_y);
        b->place.x = fmin(fmax(home_x + dx * cos(angle) - dy * sin(angle), c->min_x), c->max_x);
        b->place.y = fmin(fmax(home_y + dx * sin(angle) + dy * cos(angle), c->min_y), c->max_y);
        lay_track(c, b, angle);
    }
    return next - from;
}

/* At least one bot: a random moment of a random track, so that somebody is there. */
static uint32_t lay_some(struct crowd *c, uint32_t from)
{
    const struct recording *r = c->options.recording;
    enum crowd_workload workload = pick_workload(c);
    if (workload == CROWD_LINE || workload == CROWD_CIRCLE) {
        /* As many as a scene holds, so that a mix's shares are shares of bots. */
        uint32_t some = 20 < c->options.count - from ? 20 : c->options.count - from;
        for (uint32_t i = 0; i < some; i++) {
            c->bots[from + i].workload = workload;
            lay_path_bot(c, &c->bots[from + i]);
        }
        return some;
    }
    const struct track *t = &r->tracks[dice_below(&c->dice, r->track_count)];
    return lay_scene(c, from, workload, t->source, t->start + dice_below(&c->dice, t->count - 1));
}

struct crowd *crowd_open(const struct crowd_options *options)
{
    CHECK(options->recording->track_count > 0 && options->side >= 20 && options->count > 0);
    CHECK(options->speed >= 0 && options->band >= 0);
    struct crowd *c = calloc(1, sizeof *c);
    CHECK(c != NULL);
    c->options = *options;
    if (c->options.speed == 0) c->options.speed = 1;
    c->dice.state = options->seed;
    c->pace = fmax(recording_pace(options->recording), 0.1);
    c->min_x = options->origin_x + EDGE_M;
    c->min_y = options->origin_y + EDGE_M;
    c->max_x = options->origin_x + options->side - EDGE_M;
    c->max_y = options->origin_y + options->side - EDGE_M;
    for (uint32_t i = 0; i < HOT_SPOTS; i++) {
        c->hot_x[i] = dice_between(&c->dice, c->min_x, c->max_x);
        c->hot_y[i] = dice_between(&c->dice, c->min_y, c->max_y);
    }
    c->bots = calloc(options->count, sizeof *c->bots);
    CHECK(c->bots != NULL);
    for (uint32_t i = 0; i < options->count; i++) c->bots[i].dice.state = dice_next(&c->dice);
    for (uint32_t laid = 0; laid < options->count;) laid += lay_some(c, laid);
    return c;
}

void crowd_close(struct crowd *c)
{
    if (c == NULL) return;
    free(c->bots);
    free(c);
}

uint32_t crowd_count(const struct crowd *c)
{
    return c->options.count;
}

struct crowd_place crowd_place(const struct crowd *c, uint32_t bot)
{
    return c->bots[bot].place;
}

bool crowd_jumped(const struct crowd *c, uint32_t bot)
{
    return c->bots[bot].jumped;
}

enum crowd_workload crowd_workload_of(const struct crowd *c, uint32_t bot)
{
    return c->bots[bot].workload;
}
