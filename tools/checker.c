#include "tools/checker.h"

#include "common/array.h"
#include "common/check.h"
#include "common/geometry.h"
#include "tools/dice.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Who a bot sees by its callbacks: subjects' ids, ascending. */
struct seen {
    uint64_t *ids;
    uint32_t count, room;
};

struct checker {
    struct checker_options options;
    struct position *positions;
    bool *placed;
    struct seen *seen;
    uint32_t *stamps; /* of whom the observer sees that is being looked at */
    uint32_t stamp;
    uint8_t *truth; /* enum verdict of each bot, for the observer that is being looked at */
    uint32_t *census, *renewed;

    /* The window: where each bot was, how far it went from there until the next sample, and from both: how far at most
     * it has been from where it is now. */
    struct position *samples[CHECKER_HISTORY];
    uint32_t *paths[CHECKER_HISTORY];
    uint32_t sample_count, sample_now; /* the latest */
    uint32_t *reach, *reach_long;

    /* Bots by square of the grid, for finding who must be seen while moving. */
    uint32_t *starts, *order;
    uint32_t grid_shift, grid_side;

    uint64_t *ids; /* a view as the library tells it */
    uint32_t id_room;

    struct checker_counts counts;
    char faults[CHECKER_FAULTS][200];
    uint32_t fault_count;
    bool hushed;
};

static void tell(struct checker *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell(struct checker *c, const char *format, ...)
{
    if (c->hushed || c->fault_count == CHECKER_FAULTS) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->faults[c->fault_count++], sizeof c->faults[0], format, arguments);
    va_end(arguments);
}

static void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    CHECK(memory != NULL);
    return memory;
}

/* Squares at least as large as the reach of any view, at most 1024 a side. */
static void size_grid(struct checker *c)
{
    const struct world *w = &c->options.world;
    uint32_t reach = w->view_mode == VIEW_BLOCK ? 2 * world_cell_side(w) : c->options.radius;
    c->grid_shift = w->resolution_bits > 10 ? w->resolution_bits - 10 : 0;
    while (c->grid_shift < w->resolution_bits && (UINT32_C(1) << c->grid_shift) < reach) c->grid_shift++;
    c->grid_side = UINT32_C(1) << (w->resolution_bits - c->grid_shift);
}

struct checker *checker_open(const struct checker_options *options)
{
    struct checker *c = zeroed(1, sizeof *c);
    size_t count = options->count;
    CHECK(count > 0 && options->first_id > 0 && world_check(&options->world) == TERRANE_ERR_OK);
    c->options = *options;
    c->positions = zeroed(count, sizeof *c->positions);
    c->placed = zeroed(count, sizeof *c->placed);
    c->seen = zeroed(count, sizeof *c->seen);
    c->stamps = zeroed(count, sizeof *c->stamps);
    c->truth = zeroed(count, sizeof *c->truth);
    c->census = zeroed(count, sizeof *c->census);
    c->renewed = zeroed(count, sizeof *c->renewed);
    c->reach = zeroed(count, sizeof *c->reach);
    c->reach_long = zeroed(count, sizeof *c->reach_long);
    c->order = zeroed(count, sizeof *c->order);
    for (uint32_t i = 0; i < CHECKER_HISTORY; i++) {
        c->samples[i] = zeroed(count, sizeof **c->samples);
        c->paths[i] = zeroed(count, sizeof **c->paths);
    }
    size_grid(c);
    c->starts = zeroed((size_t)c->grid_side * c->grid_side + 1, sizeof *c->starts);
    return c;
}

void checker_close(struct checker *c)
{
    if (c == NULL) return;
    for (uint32_t i = 0; i < c->options.count; i++) free(c->seen[i].ids);
    for (uint32_t i = 0; i < CHECKER_HISTORY; i++) {
        free(c->samples[i]);
        free(c->paths[i]);
    }
    free(c->positions);
    free(c->placed);
    free(c->seen);
    free(c->stamps);
    free(c->truth);
    free(c->census);
    free(c->renewed);
    free(c->reach);
    free(c->reach_long);
    free(c->order);
    free(c->starts);
    free(c->ids);
    free(c);
}

uint64_t checker_id(const struct checker *c, uint32_t bot)
{
    return c->options.first_id + bot;
}

/* UINT32_MAX: no bot of this swarm. */
static uint32_t bot_of(const struct checker *c, uint64_t id)
{
    uint64_t bot = id - c->options.first_id;
    return bot < c->options.count ? (uint32_t)bot : UINT32_MAX;
}

static double distance(struct position a, struct position b)
{
    double dx = (double)a.x - b.x, dy = (double)a.y - b.y;
    return sqrt(dx * dx + dy * dy);
}

void checker_place(struct checker *c, uint32_t bot, struct position position)
{
    if (!c->placed[bot]) {
        c->placed[bot] = true;
        for (uint32_t i = 0; i < CHECKER_HISTORY; i++) c->samples[i][bot] = position;
    } else {
        double path = c->paths[c->sample_now][bot] + ceil(distance(position, c->positions[bot]));
        c->paths[c->sample_now][bot] = path < INT32_MAX ? (uint32_t)path : INT32_MAX;
    }
    c->positions[bot] = position;
}

void checker_blur(struct checker *c, uint32_t bot)
{
    c->paths[c->sample_now][bot] = UINT32_C(3) << (c->options.world.resolution_bits - 1); /* from corner to corner */
}

struct position checker_position(const struct checker *c, uint32_t bot)
{
    return c->positions[bot];
}

const uint64_t *checker_seen_ids(const struct checker *c, uint32_t bot, uint32_t *count)
{
    *count = c->seen[bot].count;
    return c->seen[bot].ids;
}

/* Pairing and blinks */

enum verdict { MUST_SEE, MUST_NOT_SEE, EITHER };
/* How far a bot may be from where it is now: not at all; as of the last checker_measure; also since then. */
enum slack { NO_SLACK, MEASURED_SLACK, PRESENT_SLACK };

static enum verdict verdict_of(const struct checker *c, uint32_t observer, uint32_t subject, enum slack slack);

/* What was already wrong a whole window ago, with all that both have gone since. */
static bool blinks(const struct checker *c, uint64_t observer, uint64_t subject, enum verdict wrong)
{
    uint32_t a = bot_of(c, observer), b = bot_of(c, subject);
    if (a == UINT32_MAX || b == UINT32_MAX || c->sample_count < CHECKER_SAMPLES || !c->placed[b]) return false;
    return verdict_of(c, a, b, PRESENT_SLACK) == wrong;
}

static void tell_blink(struct checker *c, uint64_t observer, uint64_t subject, const char *what)
{
    struct position a = c->positions[bot_of(c, observer)], b = c->positions[bot_of(c, subject)];
    tell(c, "%" PRIu64 " at (%d, %d) was told to %s %" PRIu64 " at (%d, %d), against the whole window", observer, a.x,
         a.y, what, subject, b.x, b.y);
}

static uint32_t lower_bound(const struct seen *s, uint64_t id)
{
    uint32_t low = 0, high = s->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct seen *view_of(struct checker *c, uint64_t observer, const char *what)
{
    uint32_t bot = bot_of(c, observer);
    if (bot != UINT32_MAX) return &c->seen[bot];
    c->counts.foreign++;
    tell(c, "%s told to %" PRIu64 ", which is no observer of this gateway", what, observer);
    return NULL;
}

static bool sees(const struct seen *s, uint32_t at, uint64_t id)
{
    return at < s->count && s->ids[at] == id;
}

void checker_see(struct checker *c, uint64_t observer, uint64_t subject)
{
    c->counts.sees++;
    struct seen *s = view_of(c, observer, "see");
    if (s == NULL) return;
    uint32_t at = lower_bound(s, subject);
    if (sees(s, at, subject)) {
        c->counts.seen_twice++;
        tell(c, "%" PRIu64 " was told to see %" PRIu64 ", which it saw already", observer, subject);
        return;
    }
    if (blinks(c, observer, subject, MUST_NOT_SEE)) {
        c->counts.seen_far++;
        tell_blink(c, observer, subject, "see");
    }
    ARRAY_RESERVE(s->ids, s->room, (size_t)s->count + 1);
    memmove(s->ids + at + 1, s->ids + at, (s->count - at) * sizeof *s->ids);
    s->ids[at] = subject;
    s->count++;
}

void checker_unsee(struct checker *c, uint64_t observer, uint64_t subject)
{
    c->counts.unsees++;
    struct seen *s = view_of(c, observer, "unsee");
    if (s == NULL) return;
    uint32_t at = lower_bound(s, subject);
    if (!sees(s, at, subject)) {
        c->counts.unseen_unsee++;
        tell(c, "%" PRIu64 " was told to unsee %" PRIu64 ", which it did not see", observer, subject);
        return;
    }
    if (blinks(c, observer, subject, MUST_SEE)) {
        c->counts.unseen_near++;
        tell_blink(c, observer, subject, "unsee");
    }
    s->count--;
    memmove(s->ids + at, s->ids + at + 1, (s->count - at) * sizeof *s->ids);
}

void checker_update(struct checker *c, uint64_t observer, uint64_t subject)
{
    c->counts.updates++;
    struct seen *s = view_of(c, observer, "update");
    if (s == NULL || sees(s, lower_bound(s, subject), subject)) return;
    c->counts.unseen_update++;
    tell(c, "%" PRIu64 " was told news of %" PRIu64 ", which it did not see", observer, subject);
}

/* What is right */

static int64_t cell_of(const struct world *w, int64_t coordinate)
{
    return coordinate >> (w->resolution_bits - w->depth);
}

/* Cells of the two along one axis, each anywhere within its reach: the least and the largest distance. */
static void cell_distances(const struct world *w, int32_t a, int64_t a_reach, int32_t b, int64_t b_reach,
                           int64_t *least, int64_t *most)
{
    int64_t a_low = cell_of(w, a - a_reach), a_high = cell_of(w, a + a_reach);
    int64_t b_low = cell_of(w, b - b_reach), b_high = cell_of(w, b + b_reach);
    int64_t apart = a_low > b_high ? a_low - b_high : b_low > a_high ? b_low - a_high : 0;
    int64_t left = a_high - b_low, right = b_high - a_low;
    if (apart > *least) *least = apart;
    if (left > *most) *most = left;
    if (right > *most) *most = right;
}

static int64_t reach_of(const struct checker *c, uint32_t bot, enum slack slack)
{
    if (slack == NO_SLACK) return 0;
    return (int64_t)c->reach[bot] + (slack == PRESENT_SLACK ? c->paths[c->sample_now][bot] : 0);
}

static enum verdict verdict_of(const struct checker *c, uint32_t observer, uint32_t subject, enum slack slack_of)
{
    const struct world *w = &c->options.world;
    struct position a = c->positions[observer], b = c->positions[subject];
    int64_t a_reach = reach_of(c, observer, slack_of), b_reach = reach_of(c, subject, slack_of);
    if (w->view_mode == VIEW_BLOCK) {
        int64_t least = 0, most = 0;
        cell_distances(w, a.x, a_reach, b.x, b_reach, &least, &most);
        cell_distances(w, a.y, a_reach, b.y, b_reach, &least, &most);
        return most <= 1 ? MUST_SEE : least > 1 ? MUST_NOT_SEE : EITHER;
    }
    int64_t dx = (int64_t)a.x - b.x, dy = (int64_t)a.y - b.y, square = dx * dx + dy * dy;
    int64_t slack = a_reach + b_reach;
    int64_t near = (int64_t)c->options.radius - slack, far = (int64_t)c->options.radius + w->hysteresis + slack;
    if (c->options.radius == 0) return MUST_NOT_SEE;
    if (near >= 0 && square <= near * near) return MUST_SEE;
    return square > far * far ? MUST_NOT_SEE : EITHER;
}

/* Marks whom the list names; false where a subject is named twice or is the observer. Foreign ones are passed over. */
static bool stamp_all(struct checker *c, uint32_t observer, const uint64_t *ids, size_t count)
{
    bool well = true;
    if (++c->stamp == 0) {
        memset(c->stamps, 0, c->options.count * sizeof *c->stamps);
        c->stamp = 1;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t bot = bot_of(c, ids[i]);
        if (bot == UINT32_MAX) continue;
        if (bot == observer || c->stamps[bot] == c->stamp) well = false;
        c->stamps[bot] = c->stamp;
    }
    return well;
}

/* Moving */

void checker_sample(struct checker *c)
{
    c->sample_now = (c->sample_now + 1) % CHECKER_HISTORY;
    memcpy(c->samples[c->sample_now], c->positions, c->options.count * sizeof *c->positions);
    memset(c->paths[c->sample_now], 0, c->options.count * sizeof **c->paths);
    if (c->sample_count < CHECKER_SAMPLES) c->sample_count++;
}

void checker_measure(struct checker *c)
{
    for (uint32_t i = 0; i < c->options.count; i++) {
        double most = 0;
        for (uint32_t ago = 0; ago < CHECKER_HISTORY; ago++) {
            uint32_t at = (c->sample_now + CHECKER_HISTORY - ago) % CHECKER_HISTORY;
            most = fmax(most, ceil(distance(c->samples[at][i], c->positions[i])) + c->paths[at][i]);
            if (ago + 1 == CHECKER_SAMPLES) c->reach[i] = most < INT32_MAX ? (uint32_t)most : INT32_MAX;
        }
        c->reach_long[i] = most < INT32_MAX ? (uint32_t)most : INT32_MAX;
    }
}

static uint32_t square_of(const struct checker *c, struct position p)
{
    return (uint32_t)(p.y >> c->grid_shift) * c->grid_side + (uint32_t)(p.x >> c->grid_shift);
}

static void fill_grid(struct checker *c)
{
    size_t squares = (size_t)c->grid_side * c->grid_side;
    memset(c->starts, 0, (squares + 1) * sizeof *c->starts);
    for (uint32_t i = 0; i < c->options.count; i++)
        if (c->placed[i]) c->starts[square_of(c, c->positions[i]) + 1]++;
    for (size_t i = 0; i < squares; i++) c->starts[i + 1] += c->starts[i];
    /* Filling moves each start to the next one's; afterwards square s holds [starts[s - 1], starts[s]). */
    for (uint32_t i = 0; i < c->options.count; i++)
        if (c->placed[i]) c->order[c->starts[square_of(c, c->positions[i])]++] = i;
}

static void missing_in_square(struct checker *c, uint32_t observer, uint32_t square)
{
    for (uint32_t at = square == 0 ? 0 : c->starts[square - 1]; at < c->starts[square]; at++) {
        uint32_t subject = c->order[at];
        c->counts.moving_pairs++;
        if (subject == observer || c->stamps[subject] == c->stamp) continue;
        if (verdict_of(c, observer, subject, MEASURED_SLACK) != MUST_SEE) continue;
        c->counts.moving_missing++;
        tell(c, "while moving, %" PRIu64 " does not see %" PRIu64 ", which is near for the whole window",
             checker_id(c, observer), checker_id(c, subject));
    }
}

static void moving_view(struct checker *c, uint32_t observer)
{
    const struct seen *s = &c->seen[observer];
    stamp_all(c, observer, s->ids, s->count);
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t subject = bot_of(c, s->ids[i]);
        if (subject == UINT32_MAX) continue;
        c->counts.moving_pairs++;
        if (verdict_of(c, observer, subject, MEASURED_SLACK) != MUST_NOT_SEE) continue;
        c->counts.moving_false++;
        tell(c, "while moving, %" PRIu64 " sees %" PRIu64 ", which is far for the whole window",
             checker_id(c, observer), s->ids[i]);
    }
    uint32_t x = (uint32_t)(c->positions[observer].x >> c->grid_shift);
    uint32_t y = (uint32_t)(c->positions[observer].y >> c->grid_shift);
    for (uint32_t row = y > 0 ? y - 1 : 0; row <= y + 1 && row < c->grid_side; row++)
        for (uint32_t column = x > 0 ? x - 1 : 0; column <= x + 1 && column < c->grid_side; column++)
            missing_in_square(c, observer, row * c->grid_side + column);
}

void checker_moving(struct checker *c)
{
    if (c->sample_count < CHECKER_SAMPLES) return;
    checker_measure(c);
    fill_grid(c);
    for (uint32_t i = 0; i < c->options.count; i++)
        if (c->placed[i]) moving_view(c, i);
}

/* Calm */

static bool calm_list(struct checker *c, uint32_t observer, const uint64_t *ids, size_t count, const char *whose,
                      struct checker_calm *out)
{
    bool well = stamp_all(c, observer, ids, count);
    if (!well) tell(c, "%s of %" PRIu64 " names somebody twice or itself", whose, checker_id(c, observer));
    for (uint32_t subject = 0; subject < c->options.count; subject++) {
        bool seen = c->stamps[subject] == c->stamp;
        if (c->truth[subject] == EITHER || seen == (c->truth[subject] == MUST_SEE)) continue;
        well = false;
        if (seen)
            out->false_seen++;
        else
            out->missing++;
        tell(c, "in the calm, %s of %" PRIu64 " %s %" PRIu64, whose, checker_id(c, observer),
             seen ? "holds the far" : "lacks the near", checker_id(c, subject));
    }
    return well;
}

/* Brute force: every bot against this one. */
static void find_truth(struct checker *c, uint32_t observer)
{
    for (uint32_t subject = 0; subject < c->options.count; subject++)
        c->truth[subject] = c->placed[subject] ? (uint8_t)verdict_of(c, observer, subject, NO_SLACK) : MUST_NOT_SEE;
    c->truth[observer] = EITHER; /* stamp_all looks for it */
}

static size_t ask_view(struct checker *c, uint32_t bot, checker_view *view, void *context)
{
    for (;;) {
        size_t count = view(context, bot, c->ids, c->id_room);
        if (count <= c->id_room) return count;
        ARRAY_RESERVE(c->ids, c->id_room, count);
    }
}

void checker_calm(struct checker *c, uint32_t from, uint32_t to, checker_view *view, void *context,
                  struct checker_calm *out)
{
    for (uint32_t bot = from; bot < to; bot++) {
        if (!c->placed[bot]) continue;
        find_truth(c, bot);
        bool well = calm_list(c, bot, c->seen[bot].ids, c->seen[bot].count, "the view by callbacks", out);
        if (view != NULL) {
            size_t count = ask_view(c, bot, view, context);
            well &= calm_list(c, bot, c->ids, count, "the library's view", out);
        }
        out->views++;
        out->wrong += !well;
    }
}

enum checker_inside checker_inside(const struct checker *c, uint32_t bot, struct position centre, uint32_t radius)
{
    int64_t dx = (int64_t)c->positions[bot].x - centre.x, dy = (int64_t)c->positions[bot].y - centre.y;
    int64_t square = dx * dx + dy * dy, near = (int64_t)radius - c->reach_long[bot];
    int64_t far = (int64_t)radius + c->reach_long[bot];
    if (!c->placed[bot]) return CHECKER_OUTSIDE;
    if (near >= 0 && square <= near * near) return CHECKER_INSIDE;
    return square > far * far ? CHECKER_OUTSIDE : CHECKER_CROSSED;
}

/* Census */

size_t checker_state(uint64_t id, uint32_t renewed, uint8_t out[CHECKER_STATE_MAX])
{
    struct dice d = {dice_mix(id) + renewed};
    uint32_t most = dice_below(&d, 200) == 0 ? CHECKER_STATE_MAX : 48;
    uint32_t size = dice_below(&d, most + 1);
    for (uint32_t i = 0; i < size; i++) out[i] = (uint8_t)dice_next(&d);
    return size;
}

size_t checker_renew(struct checker *c, uint32_t bot, uint8_t out[CHECKER_STATE_MAX])
{
    return checker_state(checker_id(c, bot), ++c->renewed[bot], out);
}

void checker_census_begin(struct checker *c)
{
    memset(c->census, 0, c->options.count * sizeof *c->census);
}

/* What a census finds wrong with an entity, kept in its count's upper bits until the end. */
#define CENSUS_MISPLACED (UINT32_C(1) << 30)
#define CENSUS_STATE     (UINT32_C(1) << 31)

void checker_census_add(struct checker *c, uint64_t id, struct position position, const void *state, size_t size)
{
    uint8_t wanted[CHECKER_STATE_MAX];
    uint32_t bot = bot_of(c, id);
    if (bot == UINT32_MAX || !c->placed[bot]) return;
    struct position p = c->positions[bot];
    c->census[bot]++;
    if (position.x != p.x || position.y != p.y || position.z != p.z) {
        c->census[bot] |= CENSUS_MISPLACED;
        tell(c, "%" PRIu64 " is at (%d, %d, %d), its server says (%d, %d, %d)", id, p.x, p.y, p.z, position.x,
             position.y, position.z);
    }
    if (checker_state(id, c->renewed[bot], wanted) != size || (size > 0 && memcmp(state, wanted, size) != 0)) {
        c->census[bot] |= CENSUS_STATE;
        tell(c, "the state of %" PRIu64 " has changed on its way (%zu bytes)", id, size);
    }
}

void checker_census_end(struct checker *c, struct checker_census *out)
{
    *out = (struct checker_census){0};
    for (uint32_t bot = 0; bot < c->options.count; bot++) {
        if (!c->placed[bot]) continue;
        uint32_t owners = c->census[bot] & ~(CENSUS_MISPLACED | CENSUS_STATE);
        out->owned += owners;
        out->lost += owners == 0;
        out->doubled += owners > 1;
        out->misplaced += (c->census[bot] & CENSUS_MISPLACED) != 0;
        out->states_wrong += (c->census[bot] & CENSUS_STATE) != 0;
        if (owners == 0) tell(c, "%" PRIu64 " is lost: no server owns it", checker_id(c, bot));
        if (owners > 1) tell(c, "%" PRIu64 " is doubled: %u servers own it", checker_id(c, bot), owners);
    }
}

const struct checker_counts *checker_counts(const struct checker *c)
{
    return &c->counts;
}

const char *checker_fault(const struct checker *c, uint32_t index)
{
    return index < c->fault_count ? c->faults[index] : NULL;
}

void checker_hush(struct checker *c, bool on)
{
    c->hushed = on;
}
