/* Crowds: where each of many bots is, tick by tick. Recorded (or made-up) persons are laid many times over a square at
 * seeded places and rotations; each bot follows one person's track and, when that ends, goes on with another one from
 * where it stands. Nobody jumps unless the workload is about jumping.
 *
 * How a crowd is laid: a scene is one moment of one recording; everybody in it becomes a bot, groups stay together.
 * A rider's scene is a walker's, larger: space is scaled until the mean pace is a rider's. Scenes lie evenly over the
 * square, or within `band` of its two middle lines, where the quarters of the world meet; whoever strays far from its
 * scene's place is led back by the next track's rotation.
 *
 * What it is not: it knows no network and no units but metres and seconds.
 * Memory: opaque, owned by the caller through open/close; the recording is borrowed and must outlive it. */
#ifndef TERRANE_TOOLS_CROWD_H
#define TERRANE_TOOLS_CROWD_H

#include "tools/recording.h"

#include <stdbool.h>

struct crowd; /* opaque */

enum crowd_workload {
    CROWD_WALK,     /* as recorded, about 1.3 m/s */
    CROWD_RIDE,     /* the same paths scaled to 6-10 m/s */
    CROWD_HOTSPOT,  /* walkers packed around three places */
    CROWD_LINE,     /* to and fro along the west-east middle line, weaving across it */
    CROWD_CIRCLE,   /* around the middle of the square */
    CROWD_TELEPORT, /* walkers that jump to a random place every 5 s on average */
    CROWD_MIX,      /* 40 % walk, 40 % ride, 8 % hot spots, 5 % line, 5 % circle, 2 % teleport */
};

/* Names for flags, in the enum's order; NULL-terminated. */
const char *const *crowd_workload_names(void);

struct crowd_options {
    const struct recording *recording; /* at least one track */
    double origin_x, origin_y, side;   /* the square; side at least 20 m */
    double band;                       /* 0: scenes lie evenly; else within so many metres of the middle lines */
    double speed;                      /* factor on all paths; 0: 1 */
    uint64_t seed;
    uint32_t count;
    enum crowd_workload workload;
};

struct crowd_place {
    double x, y, yaw; /* yaw: where it goes, radians, [0, 2 pi) */
};

struct crowd *crowd_open(const struct crowd_options *options);
void crowd_close(struct crowd *c);
/* Everybody goes on by `dt_s` seconds. O(count), allocates nothing. */
void crowd_step(struct crowd *c, double dt_s);
uint32_t crowd_count(const struct crowd *c);
/* Always inside the square. */
struct crowd_place crowd_place(const struct crowd *c, uint32_t bot);
bool crowd_jumped(const struct crowd *c, uint32_t bot);                     /* teleported in the last step */
enum crowd_workload crowd_workload_of(const struct crowd *c, uint32_t bot); /* never CROWD_MIX */

#endif
