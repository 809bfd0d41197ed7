/* Told stories: a small cluster on the simulator's harness in which the test itself says what every entity does.
 *
 * The checker watches all the time; each helper fails the test at the first violation. Walkers are numbered from 0;
 * walker i belongs to gateway i % gateways. Places are fractions of a leaf's square, leaves are quadkeys as text. */
#ifndef TERRANE_TESTS_SCENARIO_STORY_H
#define TERRANE_TESTS_SCENARIO_STORY_H

#include "tests/sim/sim.h"
#include "tests/unit/suite.h"

/* Opens the plan's cluster with `walkers` entities that are not in the world yet, waits until all is ready. */
struct sim *story_open(struct plan *plan, uint32_t walkers);
/* The same, but returns at once: nothing has started yet. */
struct sim *story_open_unready(struct plan *plan, uint32_t walkers);
/* A last calm, then the end. */
void story_close(struct sim *sim);
/* Lets milliseconds pass. */
void story_run(struct sim *sim, uint64_t ms);
/* Waits for the calm and checks everything (checker_calm.c), then lets the network loose again. */
void story_calm(struct sim *sim);

struct position story_place(const struct sim *sim, const char *leaf, double x, double y);
/* Radius in cells. */
void story_enter(struct sim *sim, uint32_t walker, const char *leaf, double x, double y, double radius);
void story_move(struct sim *sim, uint32_t walker, const char *leaf, double x, double y);
void story_leave(struct sim *sim, uint32_t walker);
void story_state(struct sim *sim, uint32_t walker, bool big);
void story_radius(struct sim *sim, uint32_t walker, double radius);
bool story_sees(const struct sim *sim, uint32_t observer, uint32_t subject);
/* The server (its number) that answers for a walker; fails the test if there is none. */
uint32_t story_owner(struct sim *sim, uint32_t walker);
/* Its member number, for network_slow and network_break. */
uint32_t story_server(const struct sim *sim, uint32_t number);
uint32_t story_gateway(const struct sim *sim, uint32_t number);
/* Sums over all servers. */
struct cellserver_stats story_stats(const struct sim *sim);

#endif
