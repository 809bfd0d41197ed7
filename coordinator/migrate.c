/* Leaves on their way to another server, while both live.
 *
 * A leaf goes as in a fail-over, but in order: its target becomes its standby, which costs a whole copy, and as soon as
 * that is level it is promoted (failover.c: handover_plan). The former standby keeps its copy until then, and the
 * former primary stands by from then on, so a death on the way costs nothing. What does not get on is given up: the
 * target stays the standby, and all is as it should be.
 */
#include "coordinator/internal.h"

#define COURSE_US UINT64_C(10000000) /* a copy that takes longer than this is not worth waiting for */

bool migrate_is_on(const struct leaf *leaf)
{
    return leaf->course.target.v != 0;
}

bool migrate_due(const struct leaf *leaf)
{
    return migrate_is_on(leaf) && node_id_equal(leaf->course.target, leaf->owner.standby);
}

uint32_t migrate_count(const struct coordinator *c)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->leaf_count; i++) count += migrate_is_on(&c->leaves[i]) || c->leaves[i].moving_us != 0;
    return count;
}

static bool can_take(const struct coordinator *c, uint32_t target)
{
    return target != NONE && member_able(c, &c->members[target]) && !c->members[target].draining;
}

bool migrate_start(struct coordinator *c, uint32_t at, uint32_t target, const char *why)
{
    struct leaf *leaf = &c->leaves[at];
    uint32_t primary = leaf->owner.primary.v == 0 ? NONE : member_find(c, leaf->owner.primary);
    bool can = primary != NONE && primary != target && member_fate(c, primary) == FATE_SERVES && can_take(c, target);
    if (!can || c->options.no_standbys || migrate_is_on(leaf) || leaf->moving_us != 0) return false;
    leaf->course = (struct course){c->members[target].info.node, c->now_us, why};
    c->members_changed = true;
    return true;
}

/* NULL: it is well on its way. */
static const char *why_not(const struct coordinator *c, const struct leaf *leaf)
{
    uint32_t primary = leaf->next.primary.v == 0 ? NONE : member_find(c, leaf->next.primary);
    if (primary == NONE || member_fate(c, primary) != FATE_SERVES) return "its server is gone or silent";
    if (c->members[primary].draining) return "its server is being emptied";
    if (node_id_equal(leaf->next.primary, leaf->course.target)) return "it has come by another way";
    if (!can_take(c, member_find(c, leaf->course.target))) return "the target is gone, silent or being emptied";
    return c->now_us >= leaf->course.since_us + COURSE_US ? "the target did not get level in time" : NULL;
}

static void give_up(struct coordinator *c, struct leaf *leaf, const char *why)
{
    char key[LIMIT_QUADKEY_TEXT];
    quadkey_text(leaf->owner.leaf, key);
    outbox_log(c->out, LOG_INFO, "event=move_given_up leaf=\"%s\" to=\"%s\" reason=\"%s\"", key,
               member_name(c, leaf->course.target), why);
    struct explained *e = explain_add(c, "move_given_up", leaf->owner.leaf, why);
    explain_servers(e, member_name(c, leaf->owner.primary), member_name(c, leaf->course.target));
    leaf->course = (struct course){0};
    leaf->moved_us = c->now_us; /* it rests before it is tried again */
}

/* A level standby is given up for the target only while its primary is surely alive: the target has nothing yet. */
static bool may_begin(struct coordinator *c, const struct leaf *leaf, uint32_t primary)
{
    const struct member *m = &c->members[primary];
    if (leaf->saving || (leaf->owner.standby.v != 0 && !leaf_level(c, leaf))) return false;
    if (c->now_us <= m->heard_us + c->options.lease_us / 2) return true;
    assign_at(c, c->now_us + c->options.lease_us / 2);
    return false;
}

void migrate_plan(struct coordinator *c)
{
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        struct leaf *leaf = &c->leaves[i];
        if (!migrate_is_on(leaf)) continue;
        const char *why = why_not(c, leaf);
        if (why != NULL) {
            give_up(c, leaf, why);
            continue;
        }
        c->awaits_level = true;
        assign_at(c, leaf->course.since_us + COURSE_US);
        uint32_t primary = member_find(c, leaf->next.primary);
        if (!migrate_due(leaf) && may_begin(c, leaf, primary))
            plan_leaf(c, i, primary, member_find(c, leaf->course.target), leaf->course.why);
    }
}
