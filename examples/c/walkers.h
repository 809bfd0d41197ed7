/* Some players that walk about, for the example gateways. They only use terrane.h; a game's own state would be here. */
#ifndef EXAMPLES_WALKERS_H
#define EXAMPLES_WALKERS_H

#include <terrane.h>

#define WALKERS_MAX 1000u

struct walkers {
    struct terrane *world;
    uint64_t first_id;
    uint32_t count;
    uint32_t entered, sees, unsees, updates;
    double centre_x, centre_y, time_s;
};

/* Fills the options' callbacks and context. */
void walkers_listen(struct walkers *walkers, struct terrane_options *options);
/* A step of `step_s` seconds: moves everybody and sends it. */
void walkers_walk(struct walkers *walkers, double step_s);
void walkers_report(const struct walkers *walkers);
void walkers_write_metrics(const struct walkers *walkers, const char *path);

#endif
