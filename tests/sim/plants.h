/* Planted bugs: each makes one promise fail, to show that the checker notices. The first ones sit in the network
 * (bytes changed on the way, with the numbering made to fit) or between a core and the checker. The others are
 * mutations of the cores (common/mutation.h) and only in the program terrane_sim_mutants.
 *
 * A plant strikes now and then from the third second on; without a plant, all functions here pass everything through.
 */
#ifndef TERRANE_TESTS_SIM_PLANTS_H
#define TERRANE_TESTS_SIM_PLANTS_H

#include "cellserver/cellserver.h"
#include "common/mutation.h"

struct sim;
struct sim_link;

/* X(NAME, name, what it does, what the checker must say (a part of it)) */
#define PLANTS(X)                                                                                                      \
    X(SURE_LOST, sure_lost, "a sure message is lost though it was acknowledged", "")                                   \
    X(MOVES_LOST, moves_lost, "moves are lost and nobody can notice", "")                                              \
    X(FRAME_SKIPPED, frame_skipped, "a frame is lost and later ones are renumbered", "")                               \
    X(STATE_FLIPPED, state_flipped, "one byte of an entity's state changes", "state")                                  \
    X(SEE_LOST, see_lost, "a see is not reported", "")                                                                 \
    X(SEE_TWICE, see_twice, "a see is reported twice", "sees")                                                         \
    X(UNSEE_LOST, unsee_lost, "an unsee is not reported", "")                                                          \
    X(EVENT_TWICE, event_twice, "a map event is reported twice", "event")                                              \
    X(EVENT_LOST, event_lost, "a map event is not reported", "event")                                                  \
    X(DONE_TWICE, done_twice, "a request is answered twice", "request")                                                \
    X(DONE_LOST, done_lost, "a request is never answered", "request")                                                  \
    X(ENTITY_DOUBLED, entity_doubled, "two servers answer for one entity", "doubled")                                  \
    X(ENTITY_LOST, entity_lost, "no server answers for an entity", "lost")                                             \
    X(LEAF_DOUBLED, leaf_doubled, "two servers answer for one leaf", "leaf")

enum plant {
    PLANT_NONE,
#define X(NAME, name, what, says) PLANT_##NAME,
    PLANTS(X)
#undef X
#define X(NAME, name, faults, what) PLANT_MUTATION_##NAME,
        MUTATIONS(X)
#undef X
            PLANT_COUNT,
};

#define PLANT_MUTATIONS PLANT_MUTATION_FENCE_SKIPPED /* the first of them */

const char *plant_name(enum plant plant);
const char *plant_text(enum plant plant);
/* A part of the violation that must come; "" any. */
const char *plant_says(enum plant plant);
/* The name of the level of faults (plan.h) at which it shows, or moves: deaths while leaves are moved. */
const char *plant_faults(enum plant plant);
/* PLANT_COUNT: no such plant. */
enum plant plant_of(const char *name);

/* The cores' mutations are those of this simulation from now on; NULL: none. */
void plants_open(const struct sim *sim);
/* Whether this plant is set and strikes now. */
bool plants_strike(struct sim *sim, enum plant plant);
/* The store says that it has kept what it has not: as if the coordinator told before it stored. */
bool plants_unstored(const struct sim *sim);
/* What is put on a link: may replace the bytes (valid until the next call), or return false: gone. */
bool plants_packet(struct sim *sim, struct sim_link *link, const uint8_t **bytes, size_t *size);
bool plants_frame(struct sim *sim, struct sim_link *link, const uint8_t **bytes, size_t *size);

#endif
