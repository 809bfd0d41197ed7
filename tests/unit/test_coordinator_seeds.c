/* Random histories by seed: servers and gateways join, part, are drained, die (with and without an agent that says so)
 * and come back, the network fails, the store fails, the coordinator is restarted. The fixture checks after each step
 * that what is told was stored, that epochs only rise, and that a leaf changes hands only to a level standby or after
 * proof of its server's death. */
#include "tests/unit/coordinator_fixture.h"

#define ROUNDS 120u

struct dice {
    uint64_t state;
};

static uint64_t roll(struct dice *d, uint64_t sides)
{
    d->state += 0x9e3779b97f4a7c15ULL;
    uint64_t z = d->state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return (z ^ (z >> 31)) % sides;
}

struct story {
    struct fixture f;
    struct dice dice;
    uint64_t next_node;
    struct quadkey leaves[512];
    uint32_t leaf_count;
    bool drained[TESTERS_MAX];
};

static uint64_t promotions; /* of all stories: that something was tested */

/* Splits random leaves, so that sizes differ. */
static void random_leaves(struct story *s)
{
    s->leaf_count = 1;
    s->leaves[0] = QUADKEY_ROOT;
    for (uint64_t splits = roll(&s->dice, 80); splits > 0; splits--) {
        uint32_t at = (uint32_t)roll(&s->dice, s->leaf_count);
        struct quadkey key = s->leaves[at];
        if (quadkey_depth(key) >= s->f.options.world.depth) continue;
        s->leaves[at] = quadkey_child(key, 0);
        for (uint32_t digit = 1; digit < 4; digit++) s->leaves[s->leaf_count++] = quadkey_child(key, digit);
    }
}

static struct tester *join(struct story *s, enum node_role role, const char *name)
{
    struct tester *t = tester_new(&s->f, role, name, s->next_node++);
    t->welcome_us = s->f.now_us;
    s->drained[t - s->f.testers] = false;
    snprintf(t->info.host, sizeof t->info.host, "host-%u", (unsigned)roll(&s->dice, 3));
    tester_hello(&s->f, t);
    return t;
}

static bool is_live(const struct tester *t)
{
    return t->used && t->session != NULL && !t->cut;
}

/* A member says HELLO until it is welcome, and whenever it hears nothing for a second; one that stays unwelcome for
 * long starts anew as another incarnation. */
static void member_acts(struct story *s, struct tester *t)
{
    struct fixture *f = &s->f;
    if (t->cut) return;
    if (t->heard_us != 0 && f->now_us - t->heard_us < 1000 * MS) {
        t->welcome_us = f->now_us;
        return;
    }
    if (t->over || f->now_us - t->welcome_us > 6000 * MS) {
        struct tester again = *t;
        tester_close(t);
        (void)join(s, again.info.role, again.info.name);
        return;
    }
    if (f->now_us - t->hello_us < 200 * MS) return;
    t->hello_us = f->now_us;
    tester_hello(f, t);
}

static void run(struct story *s, uint64_t span_us)
{
    for (uint64_t until_us = s->f.now_us + span_us; s->f.now_us < until_us;) {
        fixture_run(&s->f, 50 * MS);
        for (uint32_t i = 0; i < TESTERS_MAX; i++) {
            if (s->f.testers[i].used) member_acts(s, &s->f.testers[i]);
        }
    }
}

static uint32_t members(const struct story *s, enum node_role role)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < TESTERS_MAX; i++) count += s->f.testers[i].used && s->f.testers[i].info.role == role;
    return count;
}

static struct tester *pick(struct story *s)
{
    struct tester *t = &s->f.testers[roll(&s->dice, 16)];
    return t->used ? t : NULL;
}

static void dies(struct story *s, struct tester *t)
{
    struct node_id node = t->info.node;
    tester_close(t);
    if (roll(&s->dice, 2) == 0) fixture_step(&s->f, (struct event){.kind = EVENT_PEER_DOWN, .node = node});
    if (roll(&s->dice, 3) > 0 && fixture_stats(&s->f).ready) (void)fixture_death(&s->f, node);
}

static void drain(struct story *s, struct tester *t)
{
    if (t->info.role != ROLE_CELLSERVER || !is_live(t) || !fixture_stats(&s->f).ready) return;
    struct writer w = {0};
    struct drain drain = {{0}};
    snprintf(drain.name, sizeof drain.name, "%s", t->info.name);
    drain_encode(&w, &drain);
    fixture_query(&s->f, &w); /* DONE, or FAULT if it is no member now */
    writer_close(&w);
    s->drained[t - s->f.testers] = true;
}

static void something_happens(struct story *s)
{
    struct fixture *f = &s->f;
    struct tester *t = pick(s);
    char name[16];
    snprintf(name, sizeof name, "cell-%u", (unsigned)roll(&s->dice, 8));
    switch (roll(&s->dice, 13)) {
    case 0:
        if (members(s, ROLE_CELLSERVER) < 9) (void)join(s, ROLE_CELLSERVER, name);
        break;
    case 1:
        if (members(s, ROLE_GATEWAY) < 5) (void)join(s, ROLE_GATEWAY, "gate");
        break;
    case 2:
        if (t == NULL || !is_live(t)) break;
        tester_bye(f, t);
        tester_close(t);
        break;
    case 3:
        if (t != NULL) dies(s, t);
        break;
    case 4:
    case 5:
        if (t == NULL) break;
        t->cut = !t->cut;
        if (!t->cut) fixture_step(f, (struct event){.kind = EVENT_PEER_UP, .node = t->info.node});
        break;
    case 6:
        f->mood = (enum store_mood)roll(&s->dice, 4);
        if (f->asked && f->mood != MOOD_HOLD) store_release(f);
        break;
    case 7:
        if (roll(&s->dice, 3) == 0) fixture_restart(f);
        break;
    case 8:
        f->now_us += roll(&s->dice, 5000 * MS); /* the whole machine stands still */
        break;
    case 10:
        if (t != NULL) drain(s, t);
        break;
    case 11:
    case 12:
        if (t == NULL || t->cut) break;
        t->cut = true; /* for long enough to lapse, or nearly */
        run(s, 200 * MS + roll(&s->dice, 400 * MS));
        t->cut = false;
        break;
    default:
        if (roll(&s->dice, 4) == 0) f->mood = MOOD_WELL;
        if (f->asked && f->mood != MOOD_HOLD) store_release(f);
        break;
    }
}

struct curve_leaf {
    uint64_t place;
    uint64_t owner;
};

static int curve_order(const void *a, const void *b)
{
    const struct curve_leaf *left = a, *right = b;
    return left->place < right->place ? -1 : left->place > right->place;
}

/* Each owner has one stretch of the curve, and the stretches' lengths differ by one at most. */
static void check_stretches(const struct ownership *map, uint32_t servers)
{
    struct curve_leaf order[512];
    uint32_t changes = 0, least = UINT32_MAX, most = 0, length = 0, count = map->now.leaf_count;
    for (uint32_t i = 0; i < count; i++) {
        const struct leaf_owner *leaf = &map->now.leaves[i];
        order[i].place = quadkey_hilbert(leaf->leaf) << (2 * (20 - quadkey_depth(leaf->leaf)));
        order[i].owner = leaf->primary.v;
    }
    qsort(order, count, sizeof *order, curve_order);
    for (uint32_t i = 0; i < count; i++) {
        length++;
        if (i + 1 < count && order[i + 1].owner == order[i].owner) continue;
        changes++;
        least = length < least ? length : least;
        most = length > most ? length : most;
        length = 0;
    }
    ck_assert_uint_eq(changes, count < servers ? count : servers);
    ck_assert_uint_le(most - least, 1);
}

/* Level, and on another host: there is one in each story's end or all are on one. */
static void check_standby(const struct story *s, const struct leaf_owner *leaf, const struct tester *owner)
{
    const struct tester *standby = tester_of((struct fixture *)&s->f, leaf->standby);
    HOLDS(standby != NULL && is_live(standby) && standby != owner && tester_stands(standby, leaf));
    bool elsewhere = false;
    for (uint32_t i = 0; i < TESTERS_MAX; i++) {
        const struct tester *t = &s->f.testers[i];
        bool other = t->used && t->info.role == ROLE_CELLSERVER && strcmp(t->info.host, owner->info.host) != 0;
        elsewhere = elsewhere || other;
    }
    HOLDS(!elsewhere || strcmp(standby->info.host, owner->info.host) != 0);
    uint32_t at = table_get(&s->f.stored_index, leaf->leaf.v);
    HOLDS(at != TABLE_NONE && strcmp(s->f.stored[at].standby, standby->info.name) == 0);
}

static void check_leaf(void *context, const struct leaf_owner *leaf)
{
    struct story *s = context;
    const struct tester *owner = tester_of(&s->f, leaf->primary);
    HOLDS(owner != NULL && is_live(owner) && owner->info.role == ROLE_CELLSERVER);
    HOLDS(leaf->feed < owner->info.feed_count);
    for (uint32_t i = 0; i < TESTERS_MAX; i++) {
        const struct tester *t = &s->f.testers[i];
        if (!t->used) continue;
        const struct leaf_owner *told = ownership_leaf(&t->map, leaf->leaf);
        HOLDS(told != NULL && told->epoch == leaf->epoch && told->feed == leaf->feed && told->since == leaf->since);
        HOLDS(node_id_equal(told->primary, leaf->primary) && node_id_equal(told->standby, leaf->standby));
    }
    if (!s->f.options.no_standbys) check_standby(s, leaf, owner);
    uint32_t at = table_get(&s->f.stored_index, leaf->leaf.v);
    HOLDS(at != TABLE_NONE && s->f.stored[at].owner.epoch == leaf->epoch);
    HOLDS(strcmp(s->f.stored[at].primary, owner->info.name) == 0);
}

/* Everything works again: after a while all leaves are owned by who is there, and all know it. */
static void check_calm(struct story *s)
{
    struct fixture *f = &s->f;
    f->mood = MOOD_WELL;
    if (f->asked) store_release(f);
    for (uint32_t i = 0; i < TESTERS_MAX; i++) {
        /* Nobody takes over from a server that is only silent, so the dead ones come back under their names. */
        bool drained = s->drained[i] && is_live(&f->testers[i]);
        if (f->testers[i].used && (f->testers[i].cut || drained)) dies(s, &f->testers[i]);
    }
    run(s, 4000 * MS);
    for (uint32_t i = 0; i < 8; i++) {
        char name[16];
        bool there = false;
        snprintf(name, sizeof name, "cell-%u", i);
        for (uint32_t j = 0; j < TESTERS_MAX; j++)
            there = there || (f->testers[j].used && strcmp(f->testers[j].info.name, name) == 0);
        if (!there) (void)join(s, ROLE_CELLSERVER, name);
    }
    run(s, 25000 * MS);
    /* Of two processes with one name only one is let in; the other is not part of the end. */
    for (uint32_t i = 0; i < TESTERS_MAX; i++) {
        struct tester *t = &f->testers[i];
        if (t->used && f->now_us - t->heard_us > 1000 * MS) tester_close(t);
    }
    struct coordinator_stats stats = fixture_stats(f);
    ck_assert(stats.ready);
    ck_assert_uint_eq(stats.unowned, 0);
    ck_assert_uint_eq(stats.lapsed, 0);
    if (!f->options.no_standbys) ck_assert_uint_eq(stats.unprotected, 0);
    promotions += stats.promotions;
    ck_assert_uint_eq(stats.servers, 8);
    ck_assert_uint_eq(stats.servers, members(s, ROLE_CELLSERVER));
    ck_assert_uint_eq(stats.gateways, members(s, ROLE_GATEWAY));
    coordinator_leaves(f->core, check_leaf, s);
    for (uint32_t i = 0; i < TESTERS_MAX; i++) {
        const struct tester *t = &f->testers[i];
        if (!t->used) continue;
        ck_assert_uint_eq(t->map.term, stats.term);
        ck_assert_uint_eq(t->map.rev, stats.rev);
        ck_assert_uint_eq(t->map.now.node_count, stats.servers + stats.gateways);
        ck_assert_uint_eq(t->map.now.leaf_count, stats.leaves);
        ck_assert_uint_eq(t->asks, 0);
    }
}

static void tell_story(uint64_t seed)
{
    static struct story s;
    struct coordinator_options options = fixture_options();
    s = (struct story){.dice = {seed}, .next_node = 1000};
    s.f = (struct fixture){.now_us = 1000 * MS, .options = options};
    random_leaves(&s);
    s.f.options.leaves = s.leaves;
    s.f.options.leaf_count = s.leaf_count;
    s.f.options.expect_servers = 1 + (uint32_t)roll(&s.dice, 6);
    s.f.options.no_standbys = roll(&s.dice, 5) == 0;
    fixture_start(&s.f);
    struct tester *last = NULL;
    for (uint32_t i = 0; i < s.f.options.expect_servers; i++) {
        char name[16];
        snprintf(name, sizeof name, "cell-%u", i);
        last = join(&s, ROLE_CELLSERVER, name);
    }
    run(&s, 1000 * MS);
    check_stretches(&last->map, s.f.options.expect_servers);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        something_happens(&s);
        run(&s, roll(&s.dice, 8) * 100 * MS);
    }
    check_calm(&s);
    fixture_close(&s.f);
}

START_TEST(every_seed_keeps_one_owner_an_epoch_stores_before_it_tells_and_ends_whole)
{
    const char *one = getenv("TERRANE_TEST_SEED");
    uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1, last = one != NULL ? first : 40;
    for (uint64_t seed = first; seed <= last; seed++) {
        if (getenv("TERRANE_TEST_LOG") != NULL) printf("seed %llu\n", (unsigned long long)seed);
        tell_story(seed);
    }
    ck_assert(one != NULL || promotions > 0);
}
END_TEST

SUITE_MAIN("coordinator_seeds", every_seed_keeps_one_owner_an_epoch_stores_before_it_tells_and_ends_whole)
