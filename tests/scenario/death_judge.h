/* What the tests have in common that run one tale of death_rig.h again and again, with a death at each point of it:
 * three entities that see each other (the west's and the east's belong to WATCHER, the traveller to GATEWAY), how a
 * victim ends, and what must hold afterwards. A fault is printed with the tale that it is of, and counted. */
#ifndef TERRANE_TESTS_SCENARIO_DEATH_JUDGE_H
#define TERRANE_TESTS_SCENARIO_DEATH_JUDGE_H

#include "tests/scenario/death_rig.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <stdarg.h>

enum { WEST = 1, EAST, TRAVELLER, SPARE = SERVERS - 1, MAX_EVENTS = 4000, FAULTS_SHOWN = 40 };

enum death_end {
    DIES,       /* proved dead at once; what it has said and nobody has heard is lost, */
    DIES_HEARD, /* or arrives */
    SLEEPS,     /* hears and says nothing for a second; given up when the lease is over */
};
static const char *const death_end_names[] = {"dies", "dies, heard", "sleeps"};

/* The sanitizers make a run five times as long; they see the same code at every fifth point. */
#ifdef __SANITIZE_ADDRESS__
#define SPARSE 5u
#else
#define SPARSE 1u
#endif

struct death_judge {
    struct rig *rig;
    void (*say_tale)(void); /* prints which one it is, without an end of line */
    uint32_t faults;
};

__attribute__((format(printf, 2, 3))) static void complain(struct death_judge *j, const char *format, ...)
{
    if (j->faults++ >= FAULTS_SHOWN) return;
    va_list arguments;
    va_start(arguments, format);
    j->say_tale();
    printf(": ");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

static void death_enter(struct rig *rig, uint32_t gateway, uint64_t id, double x, const char *state)
{
    uint64_t request;
    const struct terrane_entity entity = {.id = id, .x = x, .y = 1000, .radius = 100, .state = state, .state_size = 2};
    ck_assert_int_eq(gateway_enter(core_of(rig, gateway), &entity, &request), TERRANE_ERR_OK);
}

/* west, east: primary and standby; the other leaves are the spare's. */
static void death_settle(struct rig *rig, const uint32_t west[2], const uint32_t east[2], uint64_t seed,
                         double traveller_x, const char *state)
{
    struct leaf_owner map[LEAVES];
    for (uint32_t i = 0; i < LEAVES; i++) {
        map[i] = (struct leaf_owner){
            .leaf = quadkey_child(QUADKEY_ROOT, i), .epoch = 1, .since = 1, .primary = rig_node(SPARE)};
    }
    map[0].primary = rig_node(west[0]);
    map[0].standby = rig_node(west[1]);
    map[1].primary = rig_node(east[0]);
    map[1].standby = rig_node(east[1]);
    death_open(rig, map, seed);
    death_enter(rig, WATCHER, WEST, 6380, state);
    death_enter(rig, WATCHER, EAST, 6420, state);
    death_enter(rig, GATEWAY, TRAVELLER, traveller_x, state);
    death_ticks(rig, 8);
    ck_assert_uint_eq(rig->games[0].done_ok, 1);
    ck_assert_uint_eq(rig->games[1].done_ok, 2);
    ck_assert_uint_eq(rig->games[0].see_count, 2);
    ck_assert_uint_eq(rig->games[1].see_count, 4);
}

/* Whether that is proved: then the map does not name the victim any more. */
static bool death_strike(struct rig *rig, uint32_t victim, enum death_end end)
{
    if (victim == COORDINATOR || end == SLEEPS) {
        rig->frozen[victim] = true;
        return false;
    }
    rig->dead[victim] = true;
    if (end == DIES) rig_lose(rig, victim);
    rig->listed[victim] = false;
    return true;
}

static bool death_calm(struct rig *rig)
{
    for (uint32_t server = 0; server < SERVERS; server++) {
        if (!rig->dead[server] && !rig->frozen[server] && !cellserver_calm(rig->servers[server])) return false;
    }
    return death_find_owned(rig, TRAVELLER).leaving == 0;
}

static void judge_copies(struct death_judge *j, uint64_t id, const struct death_found *owned)
{
    struct death_found held = death_find_held(j->rig, id);
    if (held.owned != 1 || held.served != 1) {
        complain(j, "%u copies of %d, %u level", held.owned, (int)id, held.served);
    } else if (!quadkey_equal(held.leaf, owned->leaf) || strcmp(held.state, owned->state) != 0 ||
               held.version != owned->version || held.position.x != owned->position.x) {
        complain(j, "the copy of %d is another: version %d of %d, state %s of %s", (int)id,
                 (int)(held.version % 100000), (int)(owned->version % 100000), held.state, owned->state);
    }
}

/* It is there once, in that leaf, and so is its copy. state NULL: any; stands 0: anywhere. */
static void judge_entity(struct death_judge *j, uint64_t id, const char *state, double stands, uint32_t leaf)
{
    const struct rig *rig = j->rig;
    struct death_found owned = death_find_owned(j->rig, id);
    double x, y, z;
    if (owned.owned != 1 || owned.served != 1) {
        complain(j, "%d is there %u times, served by %u", (int)id, owned.owned, owned.served);
        return;
    }
    world_coordinates(&rig->world, owned.position, &x, &y, &z);
    if (state != NULL && strcmp(owned.state, state) != 0) complain(j, "%d has state %s", (int)id, owned.state);
    if (stands > 0 && fabs(x - stands) > 0.05) complain(j, "%d stands at %g, not %g", (int)id, x, stands);
    if (!quadkey_equal(owned.leaf, rig->map[leaf].leaf)) complain(j, "%d is in another leaf", (int)id);
    if (!node_id_equal(rig->map[leaf].primary, rig_node(owned.server))) complain(j, "%d is at a wrong server", (int)id);
    judge_copies(j, id, &owned);
}

/* All see all, nobody has blinked, and the traveller's gateway, if it lives, has had so many answers. */
static void judge_games(struct death_judge *j, uint32_t answers)
{
    const struct rig *rig = j->rig;
    for (uint32_t g = 0; g < 2; g++) {
        const struct game *game = &rig->games[g];
        if (g == 0 && rig->dead[GATEWAY]) continue;
        if (game->mispaired > 0) complain(j, "%u see or unsee out of turn", game->mispaired);
        if (game->errors + game->done_failed > 0) complain(j, "an error or a failed request");
        if (game->unsee_count > 0) complain(j, "gateway %u blinked %u times", g, game->unsee_count);
        for (uint32_t a = 1; a <= TRAVELLER; a++) {
            bool owns = (a == TRAVELLER) == (g == 0);
            for (uint32_t b = 1; b <= TRAVELLER && owns; b++) {
                if (a != b && !game->sees[a][b]) complain(j, "%u does not see %u", a, b);
            }
        }
    }
    if (!rig->dead[GATEWAY] && rig->games[0].done_ok != answers)
        complain(j, "%u requests were answered", rig->games[0].done_ok);
}

#endif
