/* A leaf changes hands while both of its servers live, and somebody dies, at every point of it: from the map that names
 * the heir until the standby that is chosen afterwards is level. As in test_handoff_deaths.c the move is run once and
 * what happens in it counted; then for each count and each victim it is run again. Meanwhile an entity of the leaf
 * stays, comes from next door or goes there, and its state is set again and again: what was acknowledged must be there
 * at the end, in one place, and nobody has blinked. */
#include "tests/scenario/death_rig.h"
#include "tests/unit/suite.h"

#include <math.h>

enum { WEST = 1, EAST, TRAVELLER, GIVER = 0, HEIR = 1, SPARE = SERVERS - 1, MAX_EVENTS = 4000 };
enum { ACT_EVERY = 17, ACTS = 6, IMPROVED_AT = 90 };

/* Who has the east leaf, to which the west leaf's entities are near. */
struct layout {
    const char *name;
    uint32_t primary, standby;
    uint32_t next; /* who stands by for the heir from the first */
};
static const struct layout strangers = {"the east is others'", 2, 3, GIVER};
static const struct layout heirs = {"the east is the heir's", HEIR, GIVER, GIVER};
static const struct layout givers = {"the east is the giver's", GIVER, HEIR, GIVER};
static const struct layout deposed = {"a third stands by", 2, 3, SPARE};

struct journey {
    const char *name;
    double from, to;
    uint32_t leaf;
};
static const struct journey journeys[] = {{"stays", 6394, 6396, 0}, {"comes", 6403, 6397, 0}, {"goes", 6397, 6403, 1}};

enum end { DIES, DIES_HEARD, SLEEPS };
static const char *const end_names[] = {"dies", "dies, heard", "sleeps"};

struct tale {
    const struct layout *layout;
    const struct journey *journey;
    uint32_t victim, after;
    enum end end;
    uint64_t seed;
};

static struct rig rig;
static struct tale tale;
static uint32_t faults, tales, acts;

#define COMPLAIN(...)                                                                                                  \
    do {                                                                                                               \
        if (faults++ < 40) {                                                                                           \
            printf("%s, one %s: node %u %s after event %u, order %llu: ", tale.layout->name, tale.journey->name,       \
                   tale.victim, end_names[tale.end], tale.after, (unsigned long long)tale.seed);                       \
            printf(__VA_ARGS__);                                                                                       \
            printf("\n");                                                                                              \
        }                                                                                                              \
    } while (0)

static void enter(uint32_t gateway, uint64_t id, double x)
{
    uint64_t request;
    const struct terrane_entity entity = {.id = id, .x = x, .y = 1000, .radius = 100, .state = "s0", .state_size = 2};
    ck_assert_int_eq(gateway_enter(core_of(&rig, gateway), &entity, &request), TERRANE_ERR_OK);
}

static void settle(void)
{
    struct leaf_owner map[LEAVES];
    for (uint32_t i = 0; i < LEAVES; i++) {
        map[i] = (struct leaf_owner){
            .leaf = quadkey_child(QUADKEY_ROOT, i), .epoch = 1, .since = 1, .primary = rig_node(SPARE)};
    }
    map[0].primary = rig_node(GIVER);
    map[0].standby = rig_node(HEIR);
    map[1].primary = rig_node(tale.layout->primary);
    map[1].standby = rig_node(tale.layout->standby);
    death_open(&rig, map, tale.seed);
    enter(WATCHER, WEST, 6380);
    enter(WATCHER, EAST, 6420);
    enter(GATEWAY, TRAVELLER, tale.journey->from);
    death_ticks(&rig, 8);
    ck_assert_uint_eq(rig.games[0].done_ok, 1);
    ck_assert_uint_eq(rig.games[1].done_ok, 2);
    ck_assert_uint_eq(rig.games[0].see_count, 2);
    ck_assert_uint_eq(rig.games[1].see_count, 4);
    acts = 0;
}

/* ---- what the coordinator does ---- */

static void leaf_change(uint32_t leaf, uint32_t primary, uint32_t standby)
{
    struct leaf_owner *owner = &rig.map[leaf];
    owner->epoch++;
    if (!node_id_equal(owner->primary, rig_node(primary))) owner->since = owner->epoch;
    owner->primary = rig_node(primary);
    owner->standby = rig_node(standby);
}

static void give(void)
{
    leaf_change(0, HEIR, tale.layout->next);
    coordinator_tell(&rig);
}

/* Another standby is chosen as soon as the giver is one. */
static void improve(void)
{
    leaf_change(0, HEIR, SPARE);
    coordinator_tell(&rig);
}

/* The leaf's level copy: the standby's, or the one that the giver has kept for it. */
static uint32_t successor(uint32_t leaf)
{
    uint32_t standby = rig_index(rig.map[leaf].standby);
    if (leaf != 0 || standby != SPARE) return standby;
    return death_find_held_at(&rig, WEST, SPARE).served == 1 ? SPARE : GIVER;
}

static void bury(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t primary = rig_index(rig.map[i].primary), standby = rig_index(rig.map[i].standby);
        if (primary == tale.victim) {
            uint32_t to = successor(i);
            leaf_change(i, to, to == SPARE ? 3 : SPARE);
        } else if (standby == tale.victim) {
            leaf_change(i, primary, SPARE);
        }
    }
    coordinator_tell(&rig);
}

static void strike(void)
{
    if (tale.victim == COORDINATOR || tale.end == SLEEPS) {
        rig.frozen[tale.victim] = true;
        return;
    }
    rig.dead[tale.victim] = true;
    if (tale.end == DIES) rig_lose(&rig, tale.victim);
    rig.listed[tale.victim] = false;
    bury();
}

static void aftermath(uint64_t ticks)
{
    if (ticks == 7 && rig.frozen[tale.victim] && tale.victim != COORDINATOR) bury();
    if (ticks == 30) rig.frozen[tale.victim] = false;
}

/* ---- the tale ---- */

static bool all_calm(void)
{
    for (uint32_t server = 0; server < SERVERS; server++) {
        if (!rig.dead[server] && !rig.frozen[server] && !cellserver_calm(rig.servers[server])) return false;
    }
    return death_find_owned(&rig, TRAVELLER).leaving == 0;
}

/* Moves a sixth of its way and has its state set, without waiting for the answer. */
static void act(void)
{
    uint64_t request;
    char state[4];
    acts++;
    double x = tale.journey->from + (tale.journey->to - tale.journey->from) * acts / ACTS;
    snprintf(state, sizeof state, "s%u", acts);
    ck_assert_int_eq(gateway_move(core_of(&rig, GATEWAY), TRAVELLER, x, 1000, 0, 0), TERRANE_ERR_OK);
    ck_assert_int_eq(gateway_set_state(core_of(&rig, GATEWAY), TRAVELLER, state, 2, &request), TERRANE_ERR_OK);
}

static bool has_come(void)
{
    return acts == ACTS && node_id_equal(rig.map[0].standby, rig_node(SPARE)) &&
           death_find_held_at(&rig, WEST, SPARE).served == 1 && death_find_held(&rig, WEST).owned == 1;
}

/* Returns the events until it is over. */
static uint32_t change_hands(void)
{
    uint64_t struck = 0, ticked = 0;
    uint32_t event = 0, over = 0;
    give();
    for (; event < MAX_EVENTS; event++) {
        if (event == tale.after) {
            strike();
            struck = rig.ticks;
        }
        if (acts < ACTS && event % ACT_EVERY == 0) act();
        bool given = node_id_equal(rig.map[0].standby, rig_node(GIVER)) && rig.map[0].epoch == 2;
        if (event >= IMPROVED_AT && given && death_find_held_at(&rig, WEST, GIVER).served == 1) improve();
        death_event(&rig);
        if (death_find_owned(&rig, TRAVELLER).served > 1) COMPLAIN("two serve the traveller");
        if (death_find_owned(&rig, WEST).served > 1) COMPLAIN("two serve the west");
        if (struck != 0 && rig.ticks != ticked) aftermath(rig.ticks - struck);
        ticked = rig.ticks;
        if (struck != 0 && rig.ticks - struck > 60 && acts == ACTS) return event;
        if (tale.after == UINT32_MAX && over == 0 && has_come()) over = event + 20;
        if (over != 0 && event == over) return event;
    }
    COMPLAIN("no end");
    return event;
}

/* ---- what must hold ---- */

static void check_copies(uint64_t id, const struct death_found *owned)
{
    struct death_found held = death_find_held(&rig, id);
    if (held.owned != 1 || held.served != 1) {
        COMPLAIN("%u copies of %d, %u level", held.owned, (int)id, held.served);
    } else if (!quadkey_equal(held.leaf, owned->leaf) || strcmp(held.state, owned->state) != 0 ||
               held.version != owned->version || held.position.x != owned->position.x) {
        COMPLAIN("the copy of %d is another: version %d of %d, state %s of %s", (int)id, (int)(held.version % 100000),
                 (int)(owned->version % 100000), held.state, owned->state);
    }
}

static void check_entity(uint64_t id, const char *state, double stands, uint32_t leaf)
{
    struct death_found owned = death_find_owned(&rig, id);
    double x, y, z;
    if (owned.owned != 1 || owned.served != 1) {
        COMPLAIN("%d is there %u times, served by %u", (int)id, owned.owned, owned.served);
        return;
    }
    world_coordinates(&rig.world, owned.position, &x, &y, &z);
    if (strcmp(owned.state, state) != 0) COMPLAIN("%d has state %s", (int)id, owned.state);
    if (fabs(x - stands) > 0.05) COMPLAIN("%d stands at %g, not %g", (int)id, x, stands);
    if (!quadkey_equal(owned.leaf, rig.map[leaf].leaf)) COMPLAIN("%d is in another leaf", (int)id);
    if (!node_id_equal(rig.map[leaf].primary, rig_node(owned.server))) COMPLAIN("%d is at a wrong server", (int)id);
    check_copies(id, &owned);
}

static void check_games(void)
{
    for (uint32_t g = 0; g < 2; g++) {
        const struct game *game = &rig.games[g];
        if (game->mispaired > 0) COMPLAIN("%u see or unsee out of turn", game->mispaired);
        if (game->errors + game->done_failed > 0) COMPLAIN("an error or a failed request");
        if (game->unsee_count > 0) COMPLAIN("gateway %u blinked %u times", g, game->unsee_count);
        for (uint32_t a = 1; a <= TRAVELLER; a++) {
            bool owns = (a == TRAVELLER) == (g == 0);
            for (uint32_t b = 1; b <= TRAVELLER && owns; b++) {
                if (a != b && !game->sees[a][b]) COMPLAIN("%u does not see %u", a, b);
            }
        }
    }
    if (rig.games[0].done_ok != 1 + ACTS) COMPLAIN("%u requests were answered", rig.games[0].done_ok);
}

static uint32_t run(struct tale what)
{
    tale = what;
    tales++;
    settle();
    uint32_t events = change_hands();
    if (tale.after == UINT32_MAX) death_ticks(&rig, 10);
    check_entity(WEST, "s0", 6380, 0);
    check_entity(EAST, "s0", 6420, 1);
    check_entity(TRAVELLER, "s6", tale.journey->to, tale.journey->leaf);
    check_games();
    for (uint32_t i = 0; i < 100 && !all_calm(); i++) death_ticks(&rig, 1);
    if (!all_calm()) COMPLAIN("it never gets calm");
    death_close(&rig);
    return events;
}

/* The sanitizers make a run five times as long; they see the same code at every fifth point. */
#ifdef __SANITIZE_ADDRESS__
#define SPARSE 5u
#else
#define SPARSE 1u
#endif

static void matrix(const struct layout *layout, const struct journey *journey, uint64_t seed, uint32_t stride)
{
    const uint32_t victims[] = {HEIR, GIVER, COORDINATOR};
    faults = tales = 0;
    uint32_t events = run((struct tale){layout, journey, SPARE, UINT32_MAX, DIES, seed});
    ck_assert_uint_gt(events, (ACTS - 1) * ACT_EVERY);
    ck_assert_uint_eq(faults, 0);
    for (uint32_t v = 0; v < 3; v++) {
        for (int end = DIES; end <= SLEEPS; end++) {
            if (victims[v] == COORDINATOR && end != SLEEPS) continue;
            for (uint32_t after = 0; after <= events; after += stride * SPARSE) {
                run((struct tale){layout, journey, victims[v], after, (enum end)end, seed});
            }
        }
    }
    printf("%s, one %s, order %llu: %u events, %u tales, %u faults\n", layout->name, journey->name,
           (unsigned long long)seed, events, tales, faults);
    ck_assert_uint_gt(tales, 50 / (stride * SPARSE));
    ck_assert_uint_eq(faults, 0);
}

START_TEST(a_death_at_any_point_of_a_move_loses_nothing)
{
    for (uint32_t i = 0; i < 3; i++) matrix(&strangers, &journeys[i], 0, i == 0 ? 1 : 2);
}
END_TEST

START_TEST(a_death_at_any_point_of_a_move_to_a_neighbour_loses_nothing)
{
    for (uint32_t i = 0; i < 3; i++) matrix(&heirs, &journeys[i], 0, 4);
}
END_TEST

START_TEST(a_death_at_any_point_of_a_move_away_from_a_neighbour_loses_nothing)
{
    for (uint32_t i = 0; i < 3; i++) matrix(&givers, &journeys[i], 0, 4);
}
END_TEST

/* As if the giver's lease had run out, though it lives. */
START_TEST(a_death_at_any_point_of_a_promotion_without_a_death_loses_nothing)
{
    for (uint32_t i = 0; i < 3; i++) matrix(&deposed, &journeys[i], 0, 4);
}
END_TEST

START_TEST(a_death_in_a_move_loses_nothing_in_whatever_order_messages_arrive)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        for (uint32_t i = 0; i < 3; i++) matrix(&strangers, &journeys[i], seed, 7);
    }
}
END_TEST

SUITE_MAIN("move_deaths", a_death_at_any_point_of_a_move_loses_nothing,
           a_death_at_any_point_of_a_move_to_a_neighbour_loses_nothing,
           a_death_at_any_point_of_a_move_away_from_a_neighbour_loses_nothing,
           a_death_at_any_point_of_a_promotion_without_a_death_loses_nothing,
           a_death_in_a_move_loses_nothing_in_whatever_order_messages_arrive)
