/* What one round of decisions makes of each leaf: `next` beside `owner`. A leaf may be planned several times in a round
 * (first its primary, then its standby); only the outcome counts, one epoch higher, and none if it is as it was. */
#include "coordinator/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Lines about leaves in one round: neighbours on the curve that fare alike share one. */
#define LINES_MAX 32u

static struct node_id node_of(const struct coordinator *c, uint32_t member)
{
    return member == NONE ? NODE_NONE : c->members[member].info.node;
}

static void count_leaf(struct coordinator *c, const struct leaf_owner *owner, uint32_t by)
{
    uint32_t primary = owner->primary.v == 0 ? NONE : member_find(c, owner->primary);
    uint32_t standby = owner->standby.v == 0 ? NONE : member_find(c, owner->standby);
    if (primary != NONE) c->members[primary].leaves += by;
    if (standby != NONE) c->members[standby].stands += by;
}

void plan_open(struct coordinator *c)
{
    for (uint32_t i = 0; i < c->member_count; i++) c->members[i].leaves = c->members[i].stands = 0;
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        struct leaf *leaf = &c->leaves[i];
        leaf->next = leaf->owner;
        leaf->saving = false;
        leaf->why_primary = leaf->why_standby = "";
        count_leaf(c, &leaf->owner, 1);
    }
}

void plan_leaf(struct coordinator *c, uint32_t at, uint32_t primary, uint32_t standby, const char *why)
{
    struct leaf *leaf = &c->leaves[at];
    struct leaf_owner next = leaf->owner;
    next.primary = node_of(c, primary);
    next.standby = node_of(c, standby);
    CHECK(next.standby.v == 0 || (next.primary.v != 0 && !node_id_equal(next.primary, next.standby)));
    bool moves = !node_id_equal(next.primary, leaf->owner.primary);
    leaf->saving = moves || !node_id_equal(next.standby, leaf->owner.standby);
    if (leaf->saving && !MUTATION(EPOCH_REUSED)) next.epoch++;
    if (moves) {
        next.since = next.epoch;
        next.feed = 0; /* spread over the new primary's feeds when all is planned */
    }
    if (moves && leaf->unheard && node_id_equal(next.primary, leaf->before.primary)) {
        next.since = leaf->before.since; /* it has been its all the time */
        next.feed = leaf->before.feed;
    }
    if (!node_id_equal(next.primary, leaf->next.primary))
        leaf->why_primary = why;
    else
        leaf->why_standby = why;
    count_leaf(c, &leaf->next, UINT32_MAX); /* modulo 2^32: one less */
    leaf->next = next;
    count_leaf(c, &leaf->next, 1);
}

static bool changes_hands(const struct leaf *leaf)
{
    return leaf->saving && !node_id_equal(leaf->next.primary, leaf->owner.primary);
}

/* What comes to a server in one round lies on the curve: cut evenly over its feeds, each is a stretch again. */
static void spread_feeds(struct coordinator *c)
{
    uint32_t *taken = calloc(c->member_count + 1u, sizeof *taken);
    uint32_t *total = calloc(c->member_count + 1u, sizeof *total);
    CHECK(taken != NULL && total != NULL);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < c->leaf_count; i++) {
            struct leaf *leaf = &c->leaves[c->curve[i]];
            if (!changes_hands(leaf) || leaf->next.primary.v == 0 || leaf->next.since != leaf->next.epoch) continue;
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

/* Leaves in a row on the curve with the same change. */
struct run {
    const struct leaf *first;
    uint32_t leaves;
};

static void log_primary(struct coordinator *c, const struct run *run)
{
    const struct leaf_owner *was = &run->first->owner, *is = &run->first->next;
    char key[LIMIT_QUADKEY_TEXT];
    quadkey_text(is->leaf, key);
    bool promoted = is->primary.v != 0 && node_id_equal(is->primary, was->standby);
    bool lost = !promoted && was->primary.v != 0; /* with what was in them */
    struct explained *e = explain_add(c,
                                      promoted        ? "promoted"
                                      : is->primary.v ? "assigned"
                                                      : "orphaned",
                                      is->leaf, run->first->why_primary);
    explain_servers(e, member_name(c, was->primary), member_name(c, is->primary));
    e->leaves = run->leaves;
    e->entities = run->first->load;
    outbox_log(c->out, lost ? LOG_WARNING : LOG_INFO,
               "event=%s leaves=%u first=\"%s\" server=\"%s\" node=%" PRIu64 " from=\"%s\" from_node=%" PRIu64
               " reason=\"%s\"",
               promoted        ? "promoted"
               : is->primary.v ? "assigned"
                               : "orphaned",
               run->leaves, key, member_name(c, is->primary), is->primary.v, member_name(c, was->primary),
               was->primary.v, run->first->why_primary);
}

static void log_standby(struct coordinator *c, const struct run *run)
{
    const struct leaf_owner *was = &run->first->owner, *is = &run->first->next;
    char key[LIMIT_QUADKEY_TEXT];
    quadkey_text(is->leaf, key);
    outbox_log(c->out, LOG_INFO,
               "event=standby leaves=%u first=\"%s\" server=\"%s\" standby=\"%s\" standby_node=%" PRIu64
               " former=\"%s\" reason=\"%s\"",
               run->leaves, key, member_name(c, is->primary), member_name(c, is->standby), is->standby.v,
               member_name(c, was->standby), run->first->why_standby);
}

static bool alike(const struct leaf *a, const struct leaf *b, bool standby)
{
    bool same = node_id_equal(a->owner.primary, b->owner.primary) && node_id_equal(a->next.primary, b->next.primary) &&
                node_id_equal(a->owner.standby, b->owner.standby);
    if (!standby) return same && strcmp(a->why_primary, b->why_primary) == 0;
    return same && node_id_equal(a->next.standby, b->next.standby) && strcmp(a->why_standby, b->why_standby) == 0;
}

static void log_runs(struct coordinator *c, bool standby)
{
    uint32_t lines = 0, unlogged = 0;
    for (uint32_t i = 0; i < c->leaf_count;) {
        const struct leaf *leaf = &c->leaves[c->curve[i]];
        struct run run = {leaf, 1};
        bool other_standby = !node_id_equal(leaf->next.standby, leaf->owner.standby);
        /* That a promoted standby is none any more needs no line. */
        bool told =
            standby ? other_standby && !(changes_hands(leaf) && leaf->next.standby.v == 0) : changes_hands(leaf);
        i++;
        if (!leaf->saving || !told) continue;
        for (; i < c->leaf_count; i++, run.leaves++) {
            const struct leaf *other = &c->leaves[c->curve[i]];
            if (!other->saving || !alike(leaf, other, standby)) break;
        }
        if (lines++ >= LINES_MAX)
            unlogged += run.leaves;
        else if (standby)
            log_standby(c, &run);
        else
            log_primary(c, &run);
    }
    if (unlogged > 0)
        outbox_log(c->out, LOG_INFO, "event=%s leaves=%u reason=\"more of these than are logged one by one\"",
                   standby ? "standbys" : "owners", unlogged);
}

static void log_unprotected(struct coordinator *c)
{
    uint32_t unprotected = 0;
    for (uint32_t i = 0; i < c->leaf_count; i++)
        unprotected += c->leaves[i].next.primary.v != 0 && c->leaves[i].next.standby.v == 0;
    if (unprotected == c->unprotected || c->options.no_standbys) return;
    c->unprotected = unprotected;
    outbox_log(c->out, unprotected > 0 ? LOG_WARNING : LOG_INFO, "event=unprotected leaves=%u reason=\"%s\"",
               unprotected,
               unprotected > 0 ? "no other server can stand by for them" : "each owned leaf has a standby");
}

void plan_close(struct coordinator *c)
{
    spread_feeds(c);
    for (uint32_t i = 0; i < c->member_count; i++) c->members[i].losing = false;
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        if (!changes_hands(&c->leaves[i]) || c->leaves[i].owner.primary.v == 0) continue;
        uint32_t from = member_find(c, c->leaves[i].owner.primary);
        if (from != NONE) c->members[from].losing = true;
    }
    log_runs(c, false);
    log_runs(c, true);
    log_unprotected(c);
}
