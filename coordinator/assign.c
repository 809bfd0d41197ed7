/* Who shall own what. Leaves lie on the Hilbert curve; leaves without an owner are cut into contiguous stretches, one
 * a server, as long as its capacity is large. Nothing that has a live owner moves: balancing by load is another
 * matter. */
#include "coordinator/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool assign_pending(const struct coordinator *c)
{
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        if (c->leaves[i].saving) return true;
    }
    for (uint32_t i = 0; i < c->member_count; i++) {
        const struct member *m = &c->members[i];
        if (m->state == MEMBER_REPLACED || (m->state == MEMBER_LEAVING && !m->released)) return true;
        if (member_to_save(m)) return true;
    }
    return false;
}

static void name_heirs(struct coordinator *c)
{
    for (uint32_t i = 0; i < c->member_count; i++) {
        struct member *m = &c->members[i];
        m->leaves = 0;
        m->heir = NONE;
        if (m->state == MEMBER_ACTIVE || m->state == MEMBER_EXPECTED) m->heir = i;
        if (m->state == MEMBER_REPLACED) m->heir = member_named(c, m->info.name);
    }
}

static void give(struct coordinator *c, struct leaf *leaf, uint32_t member)
{
    struct node_id primary = member == NONE ? NODE_NONE : c->members[member].info.node;
    uint32_t epoch = leaf->owner.epoch + 1;
    leaf->next = (struct leaf_owner){.leaf = leaf->owner.leaf, .epoch = epoch, .since = epoch, .primary = primary};
    leaf->saving = true;
    if (member != NONE) c->members[member].leaves++;
}

/* Leaves of those who went: to their next incarnation, or to nobody. */
static void inherit(struct coordinator *c)
{
    name_heirs(c);
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        struct leaf *leaf = &c->leaves[i];
        if (leaf->owner.primary.v == 0) continue;
        uint32_t owner = member_find(c, leaf->owner.primary);
        uint32_t heir = owner == NONE ? NONE : c->members[owner].heir;
        if (heir == NONE || heir != owner)
            give(c, leaf, heir);
        else
            c->members[heir].leaves++;
    }
}

static bool can_own(const struct member *m)
{
    return m->state == MEMBER_ACTIVE && member_is_server(m) && m->proved && !m->silent;
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
        if (!can_own(&c->members[i])) continue;
        able++;
        if (c->members[i].leaves == 0) empty++;
    }
    bool first = orphans == c->leaf_count;
    if (able == 0 || (first && able < c->options.expect_servers) || (!first && empty == 0 && !waited)) return 0;
    for (uint32_t i = 0; i < c->member_count; i++) {
        const struct member *m = &c->members[i];
        if (!can_own(m) || (empty > 0 && m->leaves > 0)) continue;
        recipients[count++] = (struct recipient){m->info.name, i, m->capacity};
    }
    if (empty == 0) weigh_by_lack(c, recipients, count);
    qsort(recipients, count, sizeof *recipients, recipient_order);
    return count;
}

/* One stretch for one server, itself cut evenly over the server's feeds. */
static void give_stretch(struct coordinator *c, const uint32_t *stretch, uint32_t count, uint32_t member)
{
    uint32_t feeds = c->members[member].info.feed_count > 0 ? c->members[member].info.feed_count : 1;
    for (uint32_t i = 0; i < count; i++) {
        struct leaf *leaf = &c->leaves[stretch[i]];
        give(c, leaf, member);
        leaf->next.feed = (uint32_t)((uint64_t)i * feeds / count);
    }
    outbox_log(c->out, LOG_INFO, "event=assigned server=\"%s\" node=%" PRIu64 " leaves=%u capacity=%u",
               c->members[member].info.name, c->members[member].info.node.v, count, c->members[member].capacity);
}

static void give_orphans(struct coordinator *c, const uint32_t *orphans, uint32_t count, bool waited)
{
    struct recipient *recipients = calloc(c->member_count > 0 ? c->member_count : 1, sizeof *recipients);
    CHECK(recipients != NULL);
    uint32_t servers = choose(c, count, waited, recipients);
    uint64_t weight = 0, sum = 0;
    for (uint32_t i = 0; i < servers; i++) weight += recipients[i].weight;
    for (uint32_t i = 0, at = 0; i < servers; i++) {
        /* Rounding the running sum keeps every stretch within one leaf of its exact share. */
        sum += recipients[i].weight;
        uint32_t end = (uint32_t)(count * sum / weight);
        if (end > at) give_stretch(c, orphans + at, end - at, recipients[i].member);
        at = end;
    }
    free(recipients);
}

/* Leaves that came to a new incarnation lie where the old one's lay: spread over its feeds likewise. */
static void spread_inherited(struct coordinator *c)
{
    uint32_t *taken = calloc(c->member_count + 1u, sizeof *taken);
    uint32_t *total = calloc(c->member_count + 1u, sizeof *total);
    CHECK(taken != NULL && total != NULL);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < c->leaf_count; i++) {
            struct leaf *leaf = &c->leaves[c->curve[i]];
            if (!leaf->saving || leaf->next.primary.v == 0) continue;
            uint32_t member = member_find(c, leaf->next.primary);
            uint32_t feeds = c->members[member].info.feed_count > 0 ? c->members[member].info.feed_count : 1;
            if (pass == 0)
                total[member]++;
            else
                leaf->next.feed = (uint32_t)((uint64_t)taken[member]++ * feeds / total[member]);
        }
    }
    free(taken);
    free(total);
}

void assign_decide(struct coordinator *c)
{
    c->members_changed = false;
    inherit(c);
    spread_inherited(c);
    uint32_t count = 0;
    uint64_t oldest_us = UINT64_MAX;
    uint32_t *orphans = calloc(c->leaf_count, sizeof *orphans);
    CHECK(orphans != NULL);
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        const struct leaf *leaf = &c->leaves[c->curve[i]];
        if ((leaf->saving ? leaf->next.primary : leaf->owner.primary).v != 0) continue;
        orphans[count++] = c->curve[i];
        if (leaf->owner.primary.v == 0 && leaf->orphan_us < oldest_us) oldest_us = leaf->orphan_us;
    }
    bool waited = oldest_us != UINT64_MAX && c->now_us - oldest_us >= ORPHAN_US;
    if (count > 0) give_orphans(c, orphans, count, waited);
    free(orphans);
    /* Those that stay without an owner are looked at again, on every join and when they have waited long enough. */
    c->orphans_due_us = UINT64_MAX;
    if (count > 0 && oldest_us != UINT64_MAX && !waited) c->orphans_due_us = oldest_us + ORPHAN_US;
}
