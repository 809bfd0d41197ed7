/* What becomes of the leaves of servers that are dead, silent, or to be emptied, and of those that are to go elsewhere.
 *
 * A leaf's standby takes over only if it is level: it has said so under the leaf's present epoch, and it can say so
 * only when the primary, knowing that epoch, has given it everything. From then on the primary serves only with a
 * lease of ours or fresh acks of that standby. So a primary that is merely silent (lapsed) can be replaced: the lease
 * has run out, the standby refuses it, and until its map tells it so it gets no lease again (sessions.c).
 * A leaf whose standby is not level, or which has none, exists once: without proof of death it stays where it is. */
#include "coordinator/internal.h"

#include <inttypes.h>

#define COPY_WAIT_US UINT64_C(1000000) /* a server that is heard has told by then what it stands by for */
#define LAST_US      UINT64_C(250000)  /* the last words of a dead server have come by then to those who hear us */

enum fate member_fate(const struct coordinator *c, uint32_t index)
{
    const struct member *m = index == NONE ? NULL : &c->members[index];
    if (m == NULL || (m->state != MEMBER_ACTIVE && m->state != MEMBER_EXPECTED)) return FATE_DEAD;
    return m->lapsed ? FATE_SILENT : FATE_SERVES;
}

bool leaf_level(const struct coordinator *c, const struct leaf *leaf)
{
    if (leaf->owner.standby.v != 0 && MUTATION(PROMOTED_UNLEVEL)) return true;
    if (leaf->owner.standby.v == 0 || leaf->stood_epoch != leaf->owner.epoch) return false;
    uint32_t standby = member_find(c, leaf->owner.standby);
    /* Told of others since and not of this one any more: it has lost it. */
    return standby != NONE && c->members[standby].lists_us <= leaf->stood_us + STOOD_US;
}

/* Whether a standby that has not said that it is level may be so; then it is given time to be heard. */
static bool may_be_level(struct coordinator *c, struct leaf *leaf, uint32_t standby)
{
    const struct member *s = &c->members[standby];
    if (leaf->lost_us == 0) leaf->lost_us = c->now_us;
    bool heard = s->state == MEMBER_ACTIVE && !s->lapsed;
    uint64_t until_us = leaf->lost_us + (heard ? COPY_WAIT_US : ORPHAN_US);
    /* Lists that were on their way may be older than what makes it level. */
    if (c->now_us >= until_us || (heard && s->lists_us > leaf->lost_us + LAST_US)) return false;
    c->awaits_level = true;
    assign_at(c, until_us);
    return true;
}

/* The server that bears the name now, if it can have leaves. */
static uint32_t heir_of(const struct coordinator *c, uint32_t primary)
{
    uint32_t heir = primary == NONE ? NONE : member_named(c, c->members[primary].info.name);
    bool fit = heir != NONE && member_able(c, &c->members[heir]) && !c->members[heir].draining;
    return fit ? heir : NONE;
}

/* The standby before the present one, if it still has its copy; NONE: there is none. */
static uint32_t former_of(const struct coordinator *c, const struct leaf *leaf)
{
    uint32_t former = leaf->former.v == 0 ? NONE : member_find(c, leaf->former);
    bool has = former != NONE && member_fate(c, former) == FATE_SERVES && leaf->former_us != 0 &&
               c->members[former].lists_us <= leaf->former_us + STOOD_US;
    return has ? former : NONE;
}

/* Whether the one before the present standby may have a copy and has not been heard of it yet. */
static bool former_may(struct coordinator *c, struct leaf *leaf)
{
    uint32_t former = leaf->former.v == 0 ? NONE : member_find(c, leaf->former);
    return former != NONE && member_fate(c, former) != FATE_DEAD && may_be_level(c, leaf, former);
}

/* Dead, and the present standby was not level: it may have got so in the last moment, and then says so at once. Only
 * with proof of death: a silent primary might live on by the acks of the present standby. */
static bool fail_over_to_former(struct coordinator *c, uint32_t at)
{
    struct leaf *leaf = &c->leaves[at];
    uint32_t former = former_of(c, leaf);
    if (former == NONE) return former_may(c, leaf);
    if (leaf->lost_us == 0) leaf->lost_us = c->now_us;
    uint64_t from_us = leaf->lost_us + c->options.lease_us / 2;
    if (c->now_us >= from_us)
        plan_leaf(c, at, former, NONE, "its server is dead, its standby not level: to the one before, which was");
    else
        assign_at(c, from_us);
    return true;
}

bool leaf_goes_back(const struct coordinator *c, const struct leaf *leaf)
{
    if (!leaf->unheard || leaf->before.primary.v == 0 || leaf->owner.primary.v == 0) return false;
    return member_fate(c, member_find(c, leaf->owner.primary)) == FATE_DEAD &&
           member_fate(c, member_find(c, leaf->before.primary)) != FATE_DEAD;
}

static void fail_over_dead(struct coordinator *c, uint32_t at, uint32_t primary, uint32_t standby)
{
    struct leaf *leaf = &c->leaves[at];
    if (leaf_goes_back(c, leaf)) {
        plan_leaf(c, at, member_find(c, leaf->before.primary), NONE,
                  "its new server is dead, its former one serves on");
        return;
    }
    bool there = standby != NONE && member_fate(c, standby) != FATE_DEAD;
    if (there && leaf_level(c, leaf)) {
        /* Even to one that is silent: nobody else has it. */
        plan_leaf(c, at, standby, NONE, "its server is dead, its standby is level");
        return;
    }
    c->awaits_level = true;
    if (fail_over_to_former(c, at)) return;
    if (there && may_be_level(c, leaf, standby)) return;
    uint32_t heir = heir_of(c, primary);
    plan_leaf(c, at, heir, NONE,
              heir != NONE ? "its server is dead, nobody has a copy: to the next incarnation, empty"
                           : "its server is dead, nobody has a copy");
}

/* Who is not may be dead: nothing that somebody else still has depends on it then. */
static bool heard_lately(const struct coordinator *c, uint32_t member)
{
    uint64_t beat_us = UINT64_C(1000000) / c->options.world.tick_hz;
    return c->now_us <= c->members[member].heard_us + c->options.lease_us / 4 + beat_us;
}

static void fail_over_silent(struct coordinator *c, uint32_t at, uint32_t primary, uint32_t standby)
{
    const struct leaf *leaf = &c->leaves[at];
    enum fate fate = standby == NONE ? FATE_DEAD : member_fate(c, standby);
    if (fate == FATE_SERVES && leaf_level(c, leaf)) {
        if (!heard_lately(c, standby))
            assign_at(c, c->now_us + c->options.lease_us / 4);
        else if (member_able(c, &c->members[standby]))
            plan_leaf(c, at, standby, NONE, "its server's lease has run out, its standby is level");
        return;
    }
    c->awaits_level = true;
    if (fate == FATE_DEAD && leaf->owner.standby.v != 0) plan_leaf(c, at, primary, NONE, "the standby is dead");
}

/* A silent standby is replaced only while its primary is heard: of a primary that has just died it may have the only
 * copy, and may be heard again first. */
static void replace_silent(struct coordinator *c, uint32_t at, uint32_t primary)
{
    if (!leaf_level(c, &c->leaves[at]) || heard_lately(c, primary))
        plan_leaf(c, at, primary, NONE, "the standby's lease has run out");
    else
        assign_at(c, c->now_us + c->options.lease_us / 2);
}

void failover_plan(struct coordinator *c)
{
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        struct leaf *leaf = &c->leaves[i];
        if (leaf->owner.primary.v == 0) continue;
        uint32_t primary = member_find(c, leaf->owner.primary);
        uint32_t standby = leaf->owner.standby.v == 0 ? NONE : member_find(c, leaf->owner.standby);
        enum fate fate = member_fate(c, primary);
        if (fate != FATE_DEAD) leaf->lost_us = 0;
        if (fate == FATE_DEAD)
            fail_over_dead(c, i, primary, standby);
        else if (fate == FATE_SILENT)
            fail_over_silent(c, i, primary, standby);
        else if (leaf->owner.standby.v != 0 && member_fate(c, standby) == FATE_DEAD)
            plan_leaf(c, i, primary, NONE, "the standby is dead");
        else if (leaf->owner.standby.v != 0 && member_fate(c, standby) == FATE_SILENT)
            replace_silent(c, i, primary);
    }
}

/* Leaves that have changed hands; their new primary's word ends it (sessions.c). */
static uint32_t moving(struct coordinator *c)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        struct leaf *leaf = &c->leaves[i];
        if (leaf->moving_us == 0) continue;
        if (c->now_us >= leaf->moving_us + MIGRATION_US) {
            leaf->moving_us = 0;
            continue;
        }
        assign_at(c, leaf->moving_us + MIGRATION_US);
        count++;
    }
    return count;
}

/* Its standby can take it over now. It was heard just now: one that is dead already would only cost time. */
static bool movable(const struct coordinator *c, const struct leaf *leaf)
{
    uint32_t standby = leaf->owner.standby.v == 0 ? NONE : member_find(c, leaf->owner.standby);
    if (leaf->saving || standby == NONE || !leaf_level(c, leaf)) return false;
    const struct member *s = &c->members[standby];
    return member_able(c, s) && !s->draining && c->now_us <= s->heard_us + c->options.lease_us / 2;
}

static bool goes(const struct coordinator *c, const struct member *m, const struct leaf *leaf)
{
    if (!node_id_equal(leaf->owner.primary, m->info.node)) return false;
    return (m->draining || migrate_due(leaf)) && movable(c, leaf);
}

/* While leaves go over, their old primary has no lease of ours: it serves by its standbys' acks, and each standby ends
 * that when it takes over. Else a primary that did not hear of it could go on beside its successor. */
static bool withheld(struct coordinator *c, struct member *m, bool any)
{
    if (!any) m->withheld_us = 0;
    if (!any) return false;
    if (m->withheld_us == 0) m->withheld_us = c->now_us;
    uint64_t from_us = m->withheld_us + c->options.lease_us + lapse_margin_us(c);
    if (c->now_us < from_us) assign_at(c, from_us);
    return c->now_us >= from_us;
}

/* Who gives a leaf away stands by for it in the same change: what it has is what its successor begins with, and nobody
 * is answered before the successor's own copy is there (cellserver/formers.c). So not for a moment is the leaf in one
 * place alone. Better standbys, another host, or any if this server is being emptied, are chosen when it has come. */
static void send_leaves(struct coordinator *c, uint32_t index, uint32_t *room)
{
    struct member *m = &c->members[index];
    bool any = false;
    for (uint32_t i = 0; i < c->leaf_count && !any; i++) any = goes(c, m, &c->leaves[i]);
    if (m->draining && m->leaves > 0) c->awaits_level = true;
    if (!withheld(c, m, any)) return;
    for (uint32_t i = 0; i<c->leaf_count && * room> 0; i++) {
        struct leaf *leaf = &c->leaves[c->curve[i]];
        if (!goes(c, m, leaf)) continue;
        uint32_t to = member_find(c, leaf->owner.standby);
        plan_leaf(c, c->curve[i], to, NONE, m->draining ? "its server is being emptied" : leaf->course.why);
        plan_leaf(c, c->curve[i], to, index, "it gives the leaf away and has all of it");
        leaf->moving_us = c->now_us;
        (*room)--;
    }
}

void handover_plan(struct coordinator *c)
{
    uint32_t count = moving(c), room = count < MIGRATIONS_MAX ? MIGRATIONS_MAX - count : 0;
    for (uint32_t i = 0; i < c->member_count; i++) {
        bool serves = member_is_server(&c->members[i]) && member_fate(c, i) == FATE_SERVES;
        if (serves) send_leaves(c, i, &room);
    }
}

/* Whether it has the last level copy of a leaf whose new standby is not level yet. */
static bool is_former(struct coordinator *c, const struct member *m)
{
    bool is = false;
    for (uint32_t i = 0; i < c->leaf_count && !is; i++) is = node_id_equal(c->leaves[i].former, m->info.node);
    if (is) c->awaits_level = true;
    return is;
}

/* A server that said BYE stays in the map until its last leaf's new primary must have heard all from it: a node that
 * is gone from the map counts as dead, and nobody waits for its last words. */
void drain_finish(struct coordinator *c)
{
    for (uint32_t i = 0; i < c->member_count; i++) {
        struct member *m = &c->members[i];
        bool may_go = m->bye && (m->state == MEMBER_ACTIVE || m->state == MEMBER_EXPECTED);
        if (!may_go) continue;
        bool empty = m->leaves + m->stands == 0 && !is_former(c, m);
        if (!empty) m->empty_us = 0;
        if (!empty) continue;
        if (m->empty_us == 0) m->empty_us = c->now_us;
        bool held = m->lost_rev > 0;
        uint64_t from_us = m->empty_us + (held ? 2 * c->options.lease_us + EMPTY_US : 0);
        if (c->now_us >= from_us)
            member_leave(c, i);
        else
            assign_at(c, from_us);
    }
}
