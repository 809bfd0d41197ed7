/* A round of decisions: who shall own what, and who shall stand by. Leaves lie on the Hilbert curve; leaves without an
 * owner are cut into contiguous stretches, one a server, as long as its capacity is large. What has a live owner moves
 * only from servers that are to be emptied, and where the planner wants it (rebalance.c). */
#include "coordinator/internal.h"

#include <stdlib.h>
#include <string.h>

#define AGAIN_US UINT64_C(1000000)

void assign_at(struct coordinator *c, uint64_t due_us)
{
    if (due_us <= c->now_us) due_us = c->now_us + AGAIN_US; /* nothing came of it this time */
    if (due_us < c->assign_due_us) c->assign_due_us = due_us;
}

bool assign_pending(const struct coordinator *c)
{
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        if (c->leaves[i].saving) return true;
    }
    for (uint32_t i = 0; i < c->member_count; i++) {
        const struct member *m = &c->members[i];
        if (member_goes(m) || member_to_save(m)) return true;
    }
    return false;
}

static bool can_own(const struct coordinator *c, const struct member *m)
{
    return member_able(c, m) && !m->draining;
}
struct recipient {
    const char *name;
    uint32_t member;
    uint64_t weight;
};

static int recipient_order(const void *a, const void *b)
{
    const struct recipient *left = a, *right = b;
    return strcmp(left->name, right->name);
}

/* How much each server lacks of its share, so that those who have less get more. */
static void weigh_by_lack(const struct coordinator *c, struct recipient *recipients, uint32_t count)
{
    uint64_t capacities = 0, lack = 0;
    for (uint32_t i = 0; i < count; i++) capacities += c->members[recipients[i].member].capacity;
    for (uint32_t i = 0; i < count; i++) {
        const struct member *m = &c->members[recipients[i].member];
        uint64_t share = (uint64_t)c->leaf_count * m->capacity / capacities;
        recipients[i].weight = share > m->leaves ? share - m->leaves : 0;
        lack += recipients[i].weight;
    }
    if (lack > 0) return;
    for (uint32_t i = 0; i < count; i++) recipients[i].weight = c->members[recipients[i].member].capacity;
}

/* The servers that get the leaves without an owner, in order of their names; 0: nobody yet. `orphans` is their number,
 * `waited` whether some have waited long enough to go to servers that have leaves already. */
static uint32_t choose(const struct coordinator *c, uint32_t orphans, bool waited, struct recipient *recipients)
{
    uint32_t empty = 0, able = 0, count = 0;
    for (uint32_t i = 0; i < c->member_count; i++) {
        if (!can_own(c, &c->members[i])) continue;
        able++;
        if (c->members[i].leaves == 0) empty++;
    }
    bool first = orphans == c->leaf_count;
    if (able == 0 || (first && able < c->options.expect_servers) || (!first && empty == 0 && !waited)) return 0;
    for (uint32_t i = 0; i < c->member_count; i++) {
        const struct member *m = &c->members[i];
        if (!can_own(c, m) || (empty > 0 && m->leaves > 0)) continue;
        recipients[count++] = (struct recipient){m->info.name, i, m->capacity};
    }
    if (empty == 0) weigh_by_lack(c, recipients, count);
    qsort(recipients, count, sizeof *recipients, recipient_order);
    return count;
}

static void give_orphans(struct coordinator *c, const uint32_t *orphans, uint32_t count, bool waited)
{
    struct recipient *recipients = calloc(c->member_count + 1u, sizeof *recipients);
    CHECK(recipients != NULL);
    uint32_t servers = choose(c, count, waited, recipients);
    uint64_t weight = 0, sum = 0;
    for (uint32_t i = 0; i < servers; i++) weight += recipients[i].weight;
    for (uint32_t i = 0, at = 0; i < servers; i++) {
        /* Rounding the running sum keeps every stretch within one leaf of its exact share. */
        sum += recipients[i].weight;
        uint32_t end = (uint32_t)(count * sum / weight);
        for (; at < end; at++) plan_leaf(c, orphans[at], recipients[i].member, NONE, "nobody owned it");
    }
    free(recipients);
}

/* Those that stay without an owner are looked at again, on every join and when they have waited long enough. */
static void orphans_plan(struct coordinator *c)
{
    uint32_t count = 0;
    uint64_t oldest_us = UINT64_MAX;
    uint32_t *orphans = calloc(c->leaf_count, sizeof *orphans);
    CHECK(orphans != NULL);
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        const struct leaf *leaf = &c->leaves[c->curve[i]];
        if (leaf->next.primary.v != 0) continue;
        orphans[count++] = c->curve[i];
        if (leaf->owner.primary.v == 0 && leaf->orphan_us < oldest_us) oldest_us = leaf->orphan_us;
    }
    bool waited = oldest_us != UINT64_MAX && c->now_us - oldest_us >= ORPHAN_US;
    if (count > 0) give_orphans(c, orphans, count, waited);
    if (count > 0 && oldest_us != UINT64_MAX && !waited) assign_at(c, oldest_us + ORPHAN_US);
    free(orphans);
}

/* Who is heard again after a lapse has to wait: not long, and then it may get something. */
static void wait_for_the_returned(struct coordinator *c)
{
    for (uint32_t i = 0; i < c->member_count; i++) {
        const struct member *m = &c->members[i];
        bool waits = m->state == MEMBER_ACTIVE && !m->lapsed && m->back_us != 0;
        if (waits && c->now_us < m->back_us + c->options.lease_us) assign_at(c, m->back_us + c->options.lease_us);
    }
}

void assign_decide(struct coordinator *c)
{
    c->members_changed = false;
    c->awaits_level = false;
    c->assign_due_us = UINT64_MAX;
    plan_open(c);
    drain_finish(c);
    failover_plan(c);
    orphans_plan(c);
    rebalance_plan(c);
    migrate_plan(c);
    handover_plan(c);
    standbys_plan(c);
    wait_for_the_returned(c);
    plan_close(c);
}
