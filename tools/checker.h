/* Checks a swarm of bots from outside: what their gateways are told against where the bots truly are.
 *
 * Five checks, each able to fail on its own:
 *   pairing   at every callback: a see only of who is not seen, an unsee and an update only of who is (checker_see...)
 *   blinks    at every callback: no unsee of who was within the radius for the whole window of samples, no see of who
 *             was beyond radius + hysteresis all that time: whoever changes hands must not blink
 *   moving    while all move: who was within the radius for the whole window of samples must be seen, who was beyond
 *             radius + hysteresis for the whole window must not be. The window is the delay that is forgiven.
 *   calm      while all stand still: every view equals brute force; between the radius and radius + hysteresis both
 *             is right
 *   census    who owns what: each bot exactly once, at its place, with its state
 * Entities that are not of this swarm may be seen; they are let alone.
 *
 * What it is not: it calls no library, waits for nothing and prints nothing.
 * All bots share one layer and one height. Positions are integers in position units, ids of bots are first_id ..
 * first_id + count - 1. Memory: opaque, owned by the caller through open/close; views grow as bots see more. */
#ifndef TERRANE_TOOLS_CHECKER_H
#define TERRANE_TOOLS_CHECKER_H

#include "common/types.h"

#define CHECKER_SAMPLES 8u  /* the window reaches over so many checker_sample */
#define CHECKER_HISTORY 16u /* the long one, of checker_inside: what happens before the window has effects in it */
#define CHECKER_FAULTS  16u /* described; all are counted */

struct checker; /* opaque */

struct checker_options {
    struct world world;
    uint32_t count;
    uint64_t first_id;
    uint32_t radius; /* of all bots */
};

struct checker_counts {
    uint64_t sees, unsees, updates;
    uint64_t seen_twice, unseen_unsee, unseen_update, foreign; /* pairing; foreign: an observer that is no bot */
    uint64_t unseen_near, seen_far;                            /* blinks */
    uint64_t moving_pairs, moving_missing, moving_false;       /* pairs looked at while moving */
};

struct checker_calm {
    uint64_t views, wrong, missing, false_seen; /* wrong: views in which something was missing or false */
};

struct checker_census {
    uint64_t owned, lost, doubled, misplaced, states_wrong;
};

struct checker *checker_open(const struct checker_options *options);
void checker_close(struct checker *c);
uint64_t checker_id(const struct checker *c, uint32_t bot);

/* A bot's true position. The first one makes it part of the world. */
void checker_place(struct checker *c, uint32_t bot, struct position position);
/* It leaves the world or comes into it: for the whole window from now on nothing is known of where it is. */
void checker_blur(struct checker *c, uint32_t bot);
struct position checker_position(const struct checker *c, uint32_t bot);

/* Callbacks. Blinks are looked for once there are CHECKER_SAMPLES samples. */
void checker_see(struct checker *c, uint64_t observer, uint64_t subject);
void checker_unsee(struct checker *c, uint64_t observer, uint64_t subject);
void checker_update(struct checker *c, uint64_t observer, uint64_t subject);

/* Remembers all positions as they are now. */
void checker_sample(struct checker *c);
/* Every view against the window. Needs CHECKER_SAMPLES samples, else it looks at nothing. O(count * seen). */
void checker_moving(struct checker *c);

/* What the library says an observer sees: fills ids up to room, returns how many there are. */
typedef size_t checker_view(void *context, uint32_t bot, uint64_t *ids, size_t room);
/* Bots from..to-1: the view by callbacks and the library's own (view may be NULL) against brute force over all bots.
 * Adds to *out. O((to - from) * count). */
void checker_calm(struct checker *c, uint32_t from, uint32_t to, checker_view *view, void *context,
                  struct checker_calm *out);

/* A census: begin, each owned entity that any server names, end. */
void checker_census_begin(struct checker *c);
void checker_census_add(struct checker *c, uint64_t id, struct position position, const void *state, size_t size);
void checker_census_end(struct checker *c, struct checker_census *out);

/* The state that a bot carries through the world: bytes made from its id and how often it was renewed, of every size up
 * to 4 KiB, mostly small. */
#define CHECKER_STATE_MAX 4096u
size_t checker_state(uint64_t id, uint32_t renewed, uint8_t out[CHECKER_STATE_MAX]);
/* The bot's next state, which the census expects from now on. */
size_t checker_renew(struct checker *c, uint32_t bot, uint8_t out[CHECKER_STATE_MAX]);

/* Whether the closed circle holds the bot: for the whole long window, at no time of it, or neither is known. As of the
 * last checker_measure. */
enum checker_inside { CHECKER_INSIDE, CHECKER_OUTSIDE, CHECKER_CROSSED };
enum checker_inside checker_inside(const struct checker *c, uint32_t bot, struct position centre, uint32_t radius);
/* How far everybody has been, within the windows, from where it is now. checker_moving does it too. */
void checker_measure(struct checker *c);

/* Whom a bot sees by its callbacks, ids ascending. */
const uint64_t *checker_seen_ids(const struct checker *c, uint32_t bot, uint32_t *count);

const struct checker_counts *checker_counts(const struct checker *c);
/* The first faults in words, oldest first; NULL past the last one. */
const char *checker_fault(const struct checker *c, uint32_t index);
/* While it is on, faults are counted but not described: for looks that may come too early. */
void checker_hush(struct checker *c, bool on);

#endif
