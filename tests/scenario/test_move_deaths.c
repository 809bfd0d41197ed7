/* A leaf changes hands while both of its servers live, and somebody dies, at every point of it: from the map that names
 * the heir until the standby that is chosen afterwards is level. As in test_handoff_deaths.c the move is run once and
 * what happens in it counted; then for each count and each victim it is run again. Meanwhile an entity of the leaf
 * stays, comes from next door or goes there, and its state is set again and again: what was acknowledged must be there
 * at the end, in one place, and nobody has blinked. */
#include "tests/scenario/death_judge.h"

enum { GIVER = 0, HEIR = 1 };
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

struct tale {
    const struct layout *layout;
    const struct journey *journey;
    uint32_t victim, after;
    enum death_end end;
    uint64_t seed;
};

static struct rig rig;
static struct tale tale;
static uint32_t tales, acts;

static void say_tale(void)
{
    printf("%s, one %s: node %u %s after event %u, order %llu", tale.layout->name, tale.journey->name, tale.victim,
           death_end_names[tale.end], tale.after, (unsigned long long)tale.seed);
}
static struct death_judge judge = {.rig = &rig, .say_tale = say_tale};

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

static void aftermath(uint64_t ticks)
{
    if (ticks == 7 && rig.frozen[tale.victim] && tale.victim != COORDINATOR) bury();
    if (ticks == 30) rig.frozen[tale.victim] = false;
}

/* ---- the tale ---- */

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
            if (death_strike(&rig, tale.victim, tale.end)) bury();
            struck = rig.ticks;
        }
        if (acts < ACTS && event % ACT_EVERY == 0) act();
        bool given = node_id_equal(rig.map[0].standby, rig_node(GIVER)) && rig.map[0].epoch == 2;
        if (event >= IMPROVED_AT && given && death_find_held_at(&rig, WEST, GIVER).served == 1) improve();
        death_event(&rig);
        if (death_find_owned(&rig, TRAVELLER).served > 1) complain(&judge, "two serve the traveller");
        if (death_find_owned(&rig, WEST).served > 1) complain(&judge, "two serve the west");
        if (struck != 0 && rig.ticks != ticked) aftermath(rig.ticks - struck);
        ticked = rig.ticks;
        if (struck != 0 && rig.ticks - struck > 60 && acts == ACTS) return event;
        if (tale.after == UINT32_MAX && over == 0 && has_come()) over = event + 20;
        if (over != 0 && event == over) return event;
    }
    complain(&judge, "no end");
    return event;
}

/* ---- what must hold ---- */

static uint32_t run(struct tale what)
{
    tale = what;
    tales++;
    acts = 0;
    death_settle(&rig, (uint32_t[]){GIVER, HEIR}, (uint32_t[]){tale.layout->primary, tale.layout->standby}, tale.seed,
                 tale.journey->from, "s0");
    uint32_t events = change_hands();
    if (tale.after == UINT32_MAX) death_ticks(&rig, 10);
    judge_entity(&judge, WEST, "s0", 6380, 0);
    judge_entity(&judge, EAST, "s0", 6420, 1);
    judge_entity(&judge, TRAVELLER, "s6", tale.journey->to, tale.journey->leaf);
    judge_games(&judge, 1 + ACTS);
    for (uint32_t i = 0; i < 100 && !death_calm(&rig); i++) death_ticks(&rig, 1);
    if (!death_calm(&rig)) complain(&judge, "it never gets calm");
    death_close(&rig);
    return events;
}

static void matrix(const struct layout *layout, const struct journey *journey, uint64_t seed, uint32_t stride)
{
    const uint32_t victims[] = {HEIR, GIVER, COORDINATOR};
    judge.faults = tales = 0;
    uint32_t events = run((struct tale){layout, journey, SPARE, UINT32_MAX, DIES, seed});
    ck_assert_uint_gt(events, (ACTS - 1) * ACT_EVERY);
    ck_assert_uint_eq(judge.faults, 0);
    for (uint32_t v = 0; v < 3; v++) {
        for (int end = DIES; end <= SLEEPS; end++) {
            if (victims[v] == COORDINATOR && end != SLEEPS) continue;
            for (uint32_t after = 0; after <= events; after += stride * SPARSE) {
                run((struct tale){layout, journey, victims[v], after, (enum death_end)end, seed});
            }
        }
    }
    printf("%s, one %s, order %llu: %u events, %u tales, %u faults\n", layout->name, journey->name,
           (unsigned long long)seed, events, tales, judge.faults);
    ck_assert_uint_gt(tales, 50 / (stride * SPARSE));
    ck_assert_uint_eq(judge.faults, 0);
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
