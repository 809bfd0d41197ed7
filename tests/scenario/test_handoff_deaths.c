/* A hand-off in which somebody dies, at every point: the hand-off is run once and what happens in it counted; then for
 * each count and each victim it is run again, and the victim dies after so many. The coordinator's part, a new map, is
 * given by hand; then all goes on until it is calm, and the entity must be there once, where it went, with the state
 * that was acknowledged, seen by all who stand near it, who never blinked. */
#include "tests/scenario/death_rig.h"
#include "tests/unit/suite.h"

#include <math.h>

enum { WEST = 1, EAST, TRAVELLER, SPARE = SERVERS - 1, MAX_EVENTS = 4000 };

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

enum end {
    DIES,       /* proved dead at once; what it has said and nobody has heard is lost, */
    DIES_HEARD, /* or arrives */
    SLEEPS,     /* hears and says nothing for a second; given up when the lease is over */
};
static const char *const end_names[] = {"dies", "dies, heard", "sleeps"};

struct tale {
    const struct layout *layout;
    uint32_t victim, after;
    enum end end;
    uint64_t seed;
};

static struct rig rig;
static struct tale tale;
static uint32_t faults, tales;

#define CALM_TICKS 100u

#define COMPLAIN(...)                                                                                                  \
    do {                                                                                                               \
        if (faults++ < 40) {                                                                                           \
            printf("%s: node %u %s after event %u, order %llu: ", tale.layout->name, tale.victim, end_names[tale.end], \
                   tale.after, (unsigned long long)tale.seed);                                                         \
            printf(__VA_ARGS__);                                                                                       \
            printf("\n");                                                                                              \
        }                                                                                                              \
    } while (0)

/* ---- the tale ---- */

static void open_world(void)
{
    struct leaf_owner map[LEAVES];
    const struct layout *l = tale.layout;
    for (uint32_t i = 0; i < LEAVES; i++) {
        map[i] = (struct leaf_owner){
            .leaf = quadkey_child(QUADKEY_ROOT, i), .epoch = 1, .since = 1, .primary = rig_node(SPARE)};
    }
    map[0].primary = rig_node(l->source);
    map[0].standby = rig_node(l->source_standby);
    map[1].primary = rig_node(l->destination);
    map[1].standby = rig_node(l->destination_standby);
    death_open(&rig, map, tale.seed);
}

static void enter(uint32_t gateway, uint64_t id, double x)
{
    uint64_t request;
    const struct terrane_entity entity = {.id = id, .x = x, .y = 1000, .radius = 100, .state = "s1", .state_size = 2};
    ck_assert_int_eq(gateway_enter(core_of(&rig, gateway), &entity, &request), TERRANE_ERR_OK);
}

static bool move(double x)
{
    return gateway_move(core_of(&rig, GATEWAY), TRAVELLER, x, 1000, 0, 0) == TERRANE_ERR_OK;
}

/* The west and the east each have a watcher; all three see each other all the time. */
static void settle(void)
{
    open_world();
    enter(WATCHER, WEST, 6380);
    enter(WATCHER, EAST, 6420);
    enter(GATEWAY, TRAVELLER, 6397);
    death_ticks(&rig, 8);
    ck_assert_uint_eq(rig.games[0].done_ok, 1);
    ck_assert_uint_eq(rig.games[1].done_ok, 2);
    ck_assert_uint_eq(rig.games[0].see_count, 2);
    ck_assert_uint_eq(rig.games[1].see_count, 4);
    ck_assert_uint_eq(death_find_owned(&rig, TRAVELLER).server, tale.layout->source);
}

/* What the coordinator does about a victim: whoever stood by takes over, the spare stands by. */
static void tell_new_map(bool proved)
{
    struct node_id victim = rig_node(tale.victim);
    if (proved) rig.listed[tale.victim] = false;
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

static void strike(void)
{
    if (tale.victim == COORDINATOR || tale.end == SLEEPS) {
        rig.frozen[tale.victim] = true;
        return;
    }
    rig.dead[tale.victim] = true;
    if (tale.end == DIES) rig_lose(&rig, tale.victim);
    tell_new_map(true);
}

/* What happens some ticks after it. */
static void aftermath(uint64_t ticks)
{
    if (ticks == 7 && rig.frozen[tale.victim] && tale.victim != COORDINATOR) tell_new_map(false);
    if (ticks == 30) rig.frozen[tale.victim] = false;
}

static bool all_calm(void)
{
    for (uint32_t server = 0; server < SERVERS; server++) {
        if (!rig.dead[server] && !rig.frozen[server] && !cellserver_calm(rig.servers[server])) return false;
    }
    return death_find_owned(&rig, TRAVELLER).leaving == 0;
}

static void check_one_serves(void)
{
    struct death_found found = death_find_owned(&rig, TRAVELLER);
    if (found.served > 1) COMPLAIN("%u serve the traveller", found.served);
}

/* The traveller crosses while its state is set and, a little later, moves on. Returns the events until it is over. */
static uint32_t cross(void)
{
    uint64_t request, struck = 0, ticked = 0;
    uint32_t event = 0, over = 0;
    ck_assert(move(6403));
    for (; event < MAX_EVENTS; event++) {
        if (event == tale.after) {
            strike();
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
        if (there && over == 0 && all_calm()) over = event + 20;
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
    if (state != NULL && strcmp(owned.state, state) != 0) COMPLAIN("%d has state %s", (int)id, owned.state);
    if (stands > 0 && fabs(x - stands) > 0.05) COMPLAIN("%d stands at %g, not %g", (int)id, x, stands);
    if (!quadkey_equal(owned.leaf, rig.map[leaf].leaf)) COMPLAIN("%d is in another leaf", (int)id);
    if (!node_id_equal(rig.map[leaf].primary, rig_node(owned.server))) COMPLAIN("%d is at a wrong server", (int)id);
    check_copies(id, &owned);
}

static void check_games(void)
{
    for (uint32_t g = 0; g < 2; g++) {
        const struct game *game = &rig.games[g];
        if (g == 0 && rig.dead[GATEWAY]) continue;
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
    if (!rig.dead[GATEWAY] && rig.games[0].done_ok != 2) COMPLAIN("%u requests were answered", rig.games[0].done_ok);
}

/* The entities of a gateway that is gone leave after a time, once for all who see them. */
static void check_departure(void)
{
    const struct game *game = &rig.games[1];
    death_ticks(&rig, 220);
    if (death_find_owned(&rig, TRAVELLER).owned + death_find_held(&rig, TRAVELLER).owned > 0)
        COMPLAIN("the traveller stays without a gateway");
    if (game->unsee_count != 2 || game->mispaired > 0) COMPLAIN("unseen %u times", game->unsee_count);
    if (game->sees[WEST][TRAVELLER] || game->sees[EAST][TRAVELLER]) COMPLAIN("a phantom is seen");
}

static uint32_t run(struct tale what)
{
    tale = what;
    tales++;
    settle();
    uint32_t events = cross();
    bool known = !rig.dead[GATEWAY];
    if (tale.after == UINT32_MAX) {
        ck_assert_uint_eq(death_find_owned(&rig, TRAVELLER).leaving, 0);
        death_ticks(&rig, 10);
    }
    check_entity(WEST, "s1", 6380, 0);
    check_entity(EAST, "s1", 6420, 1);
    if (known) {
        check_entity(TRAVELLER, "s2", 6405, 1);
    } else {
        struct death_found owned = death_find_owned(&rig, TRAVELLER);
        uint32_t leaf = quadkey_equal(owned.leaf, rig.map[0].leaf) ? 0 : 1;
        check_entity(TRAVELLER, rig.games[0].done_ok == 2 ? "s2" : NULL, 0, leaf);
    }
    check_games();
    if (!known) check_departure();
    /* Word for a dead gateway is kept until its entities go; orphans stay for two seconds. */
    for (uint32_t i = 0; i < CALM_TICKS && !all_calm(); i++) death_ticks(&rig, 1);
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

/* Every victim at every point of the hand-off, its messages carried in that order. */
static void matrix(const struct layout *layout, uint64_t seed, uint32_t stride)
{
    const uint32_t victims[] = {
        layout->source, layout->destination, layout->source_standby, layout->destination_standby, COORDINATOR, GATEWAY};
    faults = tales = 0;
    struct tale quiet = {.layout = layout, .victim = SPARE, .after = UINT32_MAX, .seed = seed};
    uint32_t events = run(quiet);
    ck_assert_uint_gt(events, 40);
    ck_assert_uint_eq(faults, 0);
    for (uint32_t v = 0; v < 6; v++) {
        bool again = false;
        for (uint32_t u = 0; u < v; u++) again |= victims[u] == victims[v];
        for (int end = DIES; end <= SLEEPS && !again; end++) {
            if (victims[v] == COORDINATOR && end != SLEEPS) continue;
            if (victims[v] == GATEWAY && end == SLEEPS) continue;
            for (uint32_t after = 0; after <= events; after += stride * SPARSE) {
                run((struct tale){layout, victims[v], after, (enum end)end, seed});
            }
        }
    }
    printf("%s, order %llu: %u events, %u tales, %u faults\n", layout->name, (unsigned long long)seed, events, tales,
           faults);
    ck_assert_uint_gt(tales, 50 / SPARSE);
    ck_assert_uint_eq(faults, 0);
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
