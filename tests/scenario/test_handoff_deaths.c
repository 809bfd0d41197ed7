/* A hand-off in which somebody dies, at every point: the hand-off is run once and what happens in it counted; then for
 * each count and each victim it is run again, and the victim dies after so many. The coordinator's part, a new map, is
 * given by hand; then all goes on until it is calm, and the entity must be there once, where it went, with the state
 * that was acknowledged, seen by all who stand near it, who never blinked. */
#include "tests/scenario/death_judge.h"

/* Who is what for the west leaf (source) and the east leaf (destination). The spare becomes the standby of whatever
 * has none any more. */
struct layout {
    const char *name;
    uint32_t source, source_standby, destination, destination_standby;
};
static const struct layout two_standbys = {"two standbys", 0, 1, 2, 3};
static const struct layout one_standby = {"one standby", 0, 1, 2, 1};
static const struct layout each_others = {"each other's standby", 0, 2, 2, 0};
static const struct layout one_server = {"one server", 0, 1, 0, 3};
static const struct layout one_server_one_standby = {"one server, one standby", 0, 1, 0, 1};

struct tale {
    const struct layout *layout;
    uint32_t victim, after;
    enum death_end end;
    uint64_t seed;
};

static struct rig rig;
static struct tale tale;
static uint32_t tales;

#define CALM_TICKS 100u

static void say_tale(void)
{
    printf("%s: node %u %s after event %u, order %llu", tale.layout->name, tale.victim, death_end_names[tale.end],
           tale.after, (unsigned long long)tale.seed);
}
static struct death_judge judge = {.rig = &rig, .say_tale = say_tale};

/* ---- the tale ---- */

static bool move(double x)
{
    return gateway_move(core_of(&rig, GATEWAY), TRAVELLER, x, 1000, 0, 0) == TERRANE_ERR_OK;
}

/* What the coordinator does about a victim: whoever stood by takes over, the spare stands by. */
static void tell_new_map(void)
{
    struct node_id victim = rig_node(tale.victim);
    for (uint32_t i = 0; i < 2; i++) {
        struct leaf_owner *leaf = &rig.map[i];
        bool dead = node_id_equal(leaf->primary, victim);
        if (!dead && !node_id_equal(leaf->standby, victim)) continue;
        leaf->epoch++;
        if (dead) {
            leaf->since = leaf->epoch;
            leaf->primary = leaf->standby;
        }
        leaf->standby = rig_node(SPARE);
    }
    coordinator_tell(&rig);
}

/* What happens some ticks after it. */
static void aftermath(uint64_t ticks)
{
    if (ticks == 7 && rig.frozen[tale.victim] && tale.victim != COORDINATOR) tell_new_map();
    if (ticks == 30) rig.frozen[tale.victim] = false;
}

static void check_one_serves(void)
{
    struct death_found found = death_find_owned(&rig, TRAVELLER);
    if (found.served > 1) complain(&judge, "%u serve the traveller", found.served);
}

/* The traveller crosses while its state is set and, a little later, moves on. Returns the events until it is over. */
static uint32_t cross(void)
{
    uint64_t request, struck = 0, ticked = 0;
    uint32_t event = 0, over = 0;
    ck_assert(move(6403));
    for (; event < MAX_EVENTS; event++) {
        if (event == tale.after) {
            if (death_strike(&rig, tale.victim, tale.end)) tell_new_map();
            struck = rig.ticks;
        }
        if (event == 12 && !rig.dead[GATEWAY]) {
            ck_assert(move(6405));
            ck_assert_int_eq(gateway_set_state(core_of(&rig, GATEWAY), TRAVELLER, "s2", 2, &request), TERRANE_ERR_OK);
        }
        death_event(&rig);
        check_one_serves();
        if (struck != 0 && rig.ticks != ticked) aftermath(rig.ticks - struck);
        ticked = rig.ticks;
        if (struck != 0 && rig.ticks - struck > 60) return event;
        bool there = tale.after == UINT32_MAX && quadkey_equal(death_find_owned(&rig, TRAVELLER).leaf, rig.map[1].leaf);
        if (there && over == 0 && death_calm(&rig)) over = event + 20;
        if (over != 0 && event == over) return event;
    }
    complain(&judge, "no end");
    return event;
}

/* ---- what must hold ---- */

static void check_departure(void)
{
    const struct game *game = &rig.games[1];
    death_ticks(&rig, 220);
    if (death_find_owned(&rig, TRAVELLER).owned + death_find_held(&rig, TRAVELLER).owned > 0)
        complain(&judge, "the traveller stays without a gateway");
    if (game->unsee_count != 2 || game->mispaired > 0) complain(&judge, "unseen %u times", game->unsee_count);
    if (game->sees[WEST][TRAVELLER] || game->sees[EAST][TRAVELLER]) complain(&judge, "a phantom is seen");
}

static uint32_t run(struct tale what)
{
    tale = what;
    tales++;
    const struct layout *l = tale.layout;
    death_settle(&rig, (uint32_t[]){l->source, l->source_standby}, (uint32_t[]){l->destination, l->destination_standby},
                 tale.seed, 6397, "s1");
    ck_assert_uint_eq(death_find_owned(&rig, TRAVELLER).server, l->source);
    uint32_t events = cross();
    bool known = !rig.dead[GATEWAY];
    if (tale.after == UINT32_MAX) {
        ck_assert_uint_eq(death_find_owned(&rig, TRAVELLER).leaving, 0);
        death_ticks(&rig, 10);
    }
    judge_entity(&judge, WEST, "s1", 6380, 0);
    judge_entity(&judge, EAST, "s1", 6420, 1);
    if (known) {
        judge_entity(&judge, TRAVELLER, "s2", 6405, 1);
    } else {
        struct death_found owned = death_find_owned(&rig, TRAVELLER);
        uint32_t leaf = quadkey_equal(owned.leaf, rig.map[0].leaf) ? 0 : 1;
        judge_entity(&judge, TRAVELLER, rig.games[0].done_ok == 2 ? "s2" : NULL, 0, leaf);
    }
    judge_games(&judge, 2);
    if (!known) check_departure();
    /* Word for a dead gateway is kept until its entities go; orphans stay for two seconds. */
    for (uint32_t i = 0; i < CALM_TICKS && !death_calm(&rig); i++) death_ticks(&rig, 1);
    if (!death_calm(&rig)) complain(&judge, "it never gets calm");
    death_close(&rig);
    return events;
}

/* Every victim at every point of the hand-off, its messages carried in that order. */
static void matrix(const struct layout *layout, uint64_t seed, uint32_t stride)
{
    const uint32_t victims[] = {
        layout->source, layout->destination, layout->source_standby, layout->destination_standby, COORDINATOR, GATEWAY};
    judge.faults = tales = 0;
    struct tale quiet = {.layout = layout, .victim = SPARE, .after = UINT32_MAX, .seed = seed};
    uint32_t events = run(quiet);
    ck_assert_uint_gt(events, 40);
    ck_assert_uint_eq(judge.faults, 0);
    for (uint32_t v = 0; v < 6; v++) {
        bool again = false;
        for (uint32_t u = 0; u < v; u++) again |= victims[u] == victims[v];
        for (int end = DIES; end <= SLEEPS && !again; end++) {
            if (victims[v] == COORDINATOR && end != SLEEPS) continue;
            if (victims[v] == GATEWAY && end == SLEEPS) continue;
            for (uint32_t after = 0; after <= events; after += stride * SPARSE) {
                run((struct tale){layout, victims[v], after, (enum death_end)end, seed});
            }
        }
    }
    printf("%s, order %llu: %u events, %u tales, %u faults\n", layout->name, (unsigned long long)seed, events, tales,
           judge.faults);
    ck_assert_uint_gt(tales, 50 / SPARSE);
    ck_assert_uint_eq(judge.faults, 0);
}

START_TEST(a_death_at_any_point_between_two_standbys_loses_nothing)
{
    matrix(&two_standbys, 0, 1);
}
END_TEST

START_TEST(a_death_at_any_point_with_one_standby_for_both_leaves_loses_nothing)
{
    matrix(&one_standby, 0, 1);
}
END_TEST

START_TEST(a_death_at_any_point_between_two_that_stand_by_for_each_other_loses_nothing)
{
    matrix(&each_others, 0, 1);
}
END_TEST

START_TEST(a_death_at_any_point_between_two_leaves_of_one_server_loses_nothing)
{
    matrix(&one_server, 0, 1);
    matrix(&one_server_one_standby, 0, 1);
}
END_TEST

START_TEST(a_death_loses_nothing_in_whatever_order_messages_arrive)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        matrix(&two_standbys, seed, 7);
        matrix(&one_standby, seed, 7);
        matrix(&each_others, seed, 7);
        matrix(&one_server, seed, 7);
    }
}
END_TEST

SUITE_MAIN("handoff_deaths", a_death_at_any_point_between_two_standbys_loses_nothing,
           a_death_at_any_point_with_one_standby_for_both_leaves_loses_nothing,
           a_death_at_any_point_between_two_that_stand_by_for_each_other_loses_nothing,
           a_death_at_any_point_between_two_leaves_of_one_server_loses_nothing,
           a_death_loses_nothing_in_whatever_order_messages_arrive)
