/* Faults that can be planted in the cores themselves, to show that the simulator's checker finds what they break.
 *
 * They exist only in the program terrane_sim_mutants, whose cores are compiled with TERRANE_MUTANTS and which says by
 * terrane_mutation (tests/sim/plants.c) which fault is planted; everywhere else MUTATION is the constant false, and
 * the compiler leaves nothing of it. */
#ifndef TERRANE_COMMON_MUTATION_H
#define TERRANE_COMMON_MUTATION_H

#include <stdbool.h>

/* X(NAME, name, faults, what it does): `faults` is the level (tests/sim/plan.h) at which it shows, or moves: deaths
 * while leaves are moved. */
#define MUTATIONS(X)                                                                                                   \
    X(FENCE_SKIPPED, fence_skipped, "all", "a primary serves on though its lease and its standby's acks are old")      \
    X(ACKED_EARLY, acked_early, "deaths", "a command is answered before the standby has it")                           \
    X(ACCEPTED_EARLY, accepted_early, "deaths", "a hand-off is accepted before the new owner's standby has it")        \
    X(MARK_LOST, mark_lost, "deaths", "a standby is not told that an entity is leaving")                               \
    X(MARK_IGNORED, mark_ignored, "deaths", "a promoted entity that was leaving is served without asking")             \
    X(PENDING_LOST, pending_lost, "deaths", "a promoted standby forgets what was offered to its primary")              \
    X(DROP_LOST, drop_lost, "deaths", "a standby keeps who has left")                                                  \
    X(STATE_OLD, state_old, "deaths", "a standby keeps an entity's first state")                                       \
    X(MOVES_UNAPPLIED, moves_unapplied, "deaths", "a standby does not apply moves")                                    \
    X(SNAPSHOT_SHORT, snapshot_short, "deaths", "a standby's snapshot lacks an entity")                                \
    X(VERSION_REUSED, version_reused, "deaths", "a promoted entity keeps its version")                                 \
    X(PROMOTED_EARLY, promoted_early, "all", "a standby serves at once, while its primary may do so still")            \
    X(PROMOTED_UNLEVEL, promoted_unlevel, "all", "the coordinator promotes a standby that is not level")               \
    X(PROMOTED_ACKS, promoted_acks, "all", "a promoted standby acks its former primary")                               \
    X(RELEASED_EARLY, released_early, "all", "a leaf is released before its standby has all of it")                    \
    X(EPOCH_REUSED, epoch_reused, "deaths", "the coordinator promotes without a new epoch")                            \
    X(TOLD_UNSTORED, told_unstored, "all", "the coordinator tells a map that is not stored yet")                       \
    X(GIVEN_DROPPED, given_dropped, "moves", "who gives a leaf away keeps nothing of it")                              \
    X(FORWARD_FORGOTTEN, forward_forgotten, "all", "a former owner forgets at once where an entity went")              \
    X(STALE_OFFER, stale_offer, "all", "an OFFER of a deposed primary is taken")                                       \
    X(COMMAND_FORGOTTEN, command_forgotten, "deaths", "a gateway does not repeat a command to a new primary")

enum mutation {
#define X(NAME, name, faults, what) MUTATION_##NAME,
    MUTATIONS(X)
#undef X
        MUTATION_COUNT,
};

#ifdef TERRANE_MUTANTS
bool terrane_mutation(enum mutation mutation);
#define MUTATION(NAME) terrane_mutation(MUTATION_##NAME)
#else
#define MUTATION(NAME) false
#endif

#endif
