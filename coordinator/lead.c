/* Who of several coordinators leads. One has a lease in the store (STORE_LEAD) and renews it three times in its length;
 * the others ask as often, and one of them gets it when it has run out or is given back.
 *
 *   follows --the store says that we lead--> takes over (keep.c: load, next term, claim, settle) --> leads
 *   leads --the lease runs out without an answer--> stalls: decides nothing, saves nothing, grants no leases
 *   stalls --renewed, and nobody led meanwhile--> leads on, in the same term
 *   leads, stalls --another leads, or has led--> follows: forgets its members, who find the other by themselves
 *
 * The lease is counted from when its renewal was sent. It is no fence: what one writes who led until a moment ago is
 * refused by the store if a term or an epoch says so.
 *
 * The store may lose what it had: emptied, restarted without its data, or replaced by a replica that lacked the last
 * writes. The leader sees that when it renews and writes all of it again. If a new leader loads such a map, the
 * servers know better: what they report under a higher epoch is so, and their terms in HELLO say how high ours must be.
 *
 * One operation is with the store at a time, so a renewal waits for a save and a save for a renewal. */
#include "coordinator/internal.h"

#include <inttypes.h>
#include <string.h>

#define EMPTY_TTLS 5u /* leases for which nobody takes a world that had a map and has none: who has it comes first */

bool lead_is_fresh(const struct coordinator *c)
{
    return c->options.storeless || (c->lead.holds && c->now_us < c->lead.until_us);
}

void lead_start(struct coordinator *c)
{
    c->lead.due_us = c->now_us;
    if (c->options.storeless) keep_lead(c);
}

static uint32_t ttl_ms(const struct coordinator *c)
{
    return (uint32_t)(c->options.leader_lease_us / 1000);
}

static void ask(struct coordinator *c, bool give_back)
{
    struct lead *lead = &c->lead;
    const struct node_info *info = &c->options.info;
    struct store_lead m = {.node = info->node, .ttl_ms = give_back ? 0 : ttl_ms(c)};
    bool waited = lead->empty_us != 0 && c->now_us - lead->empty_us >= EMPTY_TTLS * c->options.leader_lease_us;
    m.even_empty = lead->holds || lead->term_seen == 0 || waited;
    memcpy(m.name, info->name, sizeof m.name);
    memcpy(m.url, info->inbox_url, sizeof m.url);
    lead->asked = true;
    lead->giving_back = give_back;
    lead->token = ++c->token;
    lead->sent_us = c->now_us;
    lead->due_us = c->now_us + c->options.leader_lease_us / 3;
    writer_clear(&c->message);
    store_lead_encode(&c->message, &m);
    struct output like = {.kind = OUTPUT_STORE, .operation = STORE_LEAD, .token = lead->token};
    outbox_push(c->out, like, c->message.data, c->message.size);
}

static void lose(struct coordinator *c, const char *why)
{
    outbox_log(c->out, LOG_WARNING, "event=deposed term=%" PRIu64 " by=%" PRIu64 " reason=\"%s\"", c->term,
               c->lead.leader.node.v, why);
    c->lead.holds = c->lead.stalled = c->lead.overtaken = false;
    c->lead.stats.deposed++;
    c->lead.due_us = c->now_us;
    keep_follow(c);
    /* Sessions of members that never found the other would go on where they were, and ours begin anew: so that they
     * notice, we are another incarnation from now on. */
    c->options.info.node.v++;
}

void lead_overtaken(struct coordinator *c)
{
    c->lead.overtaken = true;
    c->lead.until_us = c->now_us;
    ask(c, true);
}

static void follow(struct coordinator *c, const struct store_leader *before)
{
    const struct store_leader *leader = &c->lead.leader;
    if (leader->node.v != 0 && !node_id_equal(before->node, leader->node))
        outbox_log(c->out, LOG_INFO, "event=follows leader=\"%s\" node=%" PRIu64 " inbox=\"%s\" term=%" PRIu64,
                   leader->name, leader->node.v, leader->url, leader->term);
    bool lost = leader->node.v == 0 && leader->term == 0 && c->lead.term_seen > 0;
    if (!lost)
        c->lead.empty_us = 0;
    else if (c->lead.empty_us == 0)
        c->lead.empty_us = c->now_us;
}

/* Renewed: whether the store still has what we wrote, and whether our term is high enough. */
static void look_after(struct coordinator *c)
{
    const struct store_leader *stored = &c->lead.leader;
    if (c->keep != KEEP_IDLE || !c->ready) return;
    bool lost = stored->term < c->term || (stored->term == c->term && stored->rev < c->saved_rev);
    if (c->lead.term_heard > c->term) {
        outbox_log(c->out, LOG_WARNING,
                   "event=term_raised term=%" PRIu64 " heard=%" PRIu64 " reason=\"members know a later term than the "
                   "store: it has lost writes\"",
                   c->term, c->lead.term_heard);
        c->term = c->lead.term_heard + 1;
        keep_restore(c, true);
    } else if (lost) {
        outbox_log(c->out, LOG_ERROR,
                   "event=store_lost term=%" PRIu64 " rev=%" PRIu64 " stored_term=%" PRIu64 " stored_rev=%" PRIu64
                   " action=\"all is written again\"",
                   c->term, c->saved_rev, stored->term, stored->rev);
        c->lead.stats.restored++;
        keep_restore(c, false);
    }
}

static void lead_on(struct coordinator *c)
{
    struct lead *lead = &c->lead;
    bool first = !lead->holds;
    lead->holds = true;
    lead->until_us = lead->sent_us + c->options.leader_lease_us;
    lead->empty_us = 0;
    if (!first && c->ready && lead->leader.term > c->term) {
        lead_overtaken(c);
        return;
    }
    if (lead->stalled && c->now_us < lead->until_us) {
        outbox_log(c->out, LOG_INFO, "event=leads_on term=%" PRIu64 " stalled_ms=%" PRIu64, c->term,
                   (c->now_us - lead->stalled_us) / 1000);
        members_listen_anew(c); /* meanwhile they may have looked elsewhere */
        lead->stalled = false;
    }
    if (first || lead->again) {
        if (first)
            outbox_log(c->out, LOG_INFO, "event=leads node=%" PRIu64 " stored_term=%" PRIu64, c->options.info.node.v,
                       lead->leader.term);
        lead->again = false;
        keep_lead(c);
        return;
    }
    look_after(c);
}

bool lead_stored(struct coordinator *c, const struct event *in)
{
    struct lead *lead = &c->lead;
    struct store_leader leader, before = lead->leader;
    if (!lead->asked || in->token != lead->token) return false;
    lead->asked = false;
    if (in->error != TERRANE_ERR_OK || store_leader_decode(in->bytes, in->size, &leader) != TERRANE_ERR_OK) {
        c->stats.store_failures++;
        return true;
    }
    lead->leader = leader;
    if (leader.term > lead->term_seen) lead->term_seen = leader.term;
    if (lead->giving_back) {
        if (lead->overtaken) lose(c, "another led while our lease had run out");
        lead->holds = false;
        return true;
    }
    if (node_id_equal(leader.node, c->options.info.node)) {
        lead_on(c);
        return true;
    }
    if (lead->holds) lose(c, "another coordinator leads");
    follow(c, &before);
    return true;
}

void lead_step(struct coordinator *c)
{
    struct lead *lead = &c->lead;
    if (c->options.storeless) return;
    if (lead->holds && !lead->stalled && c->now_us >= lead->until_us) {
        lead->stalled = true;
        lead->stalled_us = c->now_us;
        lead->stats.stalled++;
        outbox_log(c->out, LOG_ERROR,
                   "event=stalled term=%" PRIu64 " reason=\"the leader's lease ran out: nothing is decided until the "
                   "store answers\"",
                   c->term);
    }
    if (lead->asked || keep_is_busy(c)) return;
    if (lead->closing || c->keep == KEEP_REFUSED) {
        if (lead->holds) ask(c, true);
        return;
    }
    if (c->now_us >= lead->due_us) ask(c, lead->overtaken);
}

uint64_t lead_due_us(const struct coordinator *c)
{
    const struct lead *lead = &c->lead;
    if (c->options.storeless || c->keep == KEEP_REFUSED || lead->closing) return UINT64_MAX;
    uint64_t due_us = lead->asked || keep_is_busy(c) ? UINT64_MAX : lead->due_us;
    bool runs = lead->holds && !lead->stalled;
    return runs && lead->until_us < due_us ? lead->until_us : due_us;
}

/* The store does not hold what we thought: whether we still lead comes before what it does hold. */
void lead_again(struct coordinator *c)
{
    c->lead.again = true;
    c->lead.due_us = c->now_us;
}

void lead_heard_term(struct coordinator *c, uint64_t term)
{
    if (term <= c->lead.term_heard) return;
    c->lead.term_heard = term;
    c->lead.due_us = c->now_us;
}

void coordinator_leave(struct coordinator *c, uint64_t now_us, struct outbox *out)
{
    c->out = out;
    c->now_us = now_us;
    c->lead.closing = true;
    lead_step(c);
    c->out = NULL;
}

bool coordinator_left(const struct coordinator *c)
{
    const struct lead *lead = &c->lead;
    return lead->closing && (!lead->holds || c->options.storeless || (!lead_is_fresh(c) && !lead->asked));
}

/* ---- reports that know more than the map ---- */

static bool higher(const struct leaf *leaf, uint32_t epoch)
{
    const struct leaf_owner *ours = leaf->saving ? &leaf->next : &leaf->owner;
    return epoch > ours->epoch && epoch < UINT32_MAX;
}

void lead_claimed(struct coordinator *c, struct leaf *leaf, const struct leaf_load *load, struct node_id primary)
{
    if (!higher(leaf, load->epoch) || load->epoch <= leaf->claim.epoch) return;
    leaf->claim.epoch = load->epoch;
    leaf->claim.since = load->since;
    leaf->claim.primary = primary;
    c->lead.claims = true;
}

void lead_stands(struct coordinator *c, struct leaf *leaf, const struct leaf_stand *stand, struct node_id standby)
{
    if (!higher(leaf, stand->epoch) || stand->epoch <= leaf->claim_standby_epoch) return;
    leaf->claim_standby_epoch = stand->epoch;
    leaf->claim.standby = standby;
    c->lead.claims = true;
}

/* Whether somebody says that he is the leaf's primary: by a claim, or the stored one by what he lists. */
static bool has_primary(const struct coordinator *c, const struct leaf *leaf)
{
    uint32_t primary = leaf->owner.primary.v == 0 ? NONE : member_find(c, leaf->owner.primary);
    if (leaf->claim.epoch > 0) return true;
    return primary != NONE && member_fate(c, primary) == FATE_SERVES && leaf->served_us != 0 &&
           c->members[primary].lists_us <= leaf->served_us + STOOD_US;
}

/* What the servers' words make of the leaf. Where primary and standby agree it is just that, and the standby's copy
 * stays level. A standby whose primary nobody knows has the only copy: it becomes the primary, and waits by itself
 * until the former one, if that lives after all, can't serve any more. */
static void adopt_words(struct coordinator *c, struct leaf *leaf, const struct leaf_owner *claim, uint32_t epoch)
{
    struct leaf_owner *next = &leaf->next;
    bool there = claim->standby.v != 0 && member_find(c, claim->standby) != NONE;
    bool agree = there && claim->epoch == leaf->claim_standby_epoch && !node_id_equal(claim->standby, claim->primary);
    next->epoch = agree ? epoch : epoch + 1;
    next->standby = NODE_NONE;
    if (claim->epoch > 0) {
        next->primary = claim->primary;
        next->since = claim->since;
    }
    if (there && !has_primary(c, leaf)) {
        next->primary = claim->standby;
        next->since = next->epoch;
    } else if (there && next->primary.v != 0 && !node_id_equal(claim->standby, next->primary)) {
        next->standby = claim->standby;
    }
    if (next->since == 0) next->since = next->epoch; /* nobody has it */
    if (!agree) return;
    leaf->stood_epoch = epoch;
    leaf->stood_us = c->now_us;
}

static bool adopt_leaf(struct coordinator *c, struct leaf *leaf)
{
    struct leaf_owner claim = leaf->claim;
    uint32_t epoch = leaf->claim_standby_epoch > claim.epoch ? leaf->claim_standby_epoch : claim.epoch;
    char key[LIMIT_QUADKEY_TEXT];
    bool any = epoch > 0 && higher(leaf, epoch);
    if (any) {
        leaf->next = leaf->owner;
        adopt_words(c, leaf, &claim, epoch);
        if (!node_id_equal(leaf->next.primary, leaf->owner.primary)) leaf->next.feed = 0;
        leaf->saving = true;
    }
    leaf->claim = (struct leaf_owner){0};
    leaf->claim_standby_epoch = 0;
    if (!any) return false;
    quadkey_text(leaf->owner.leaf, key);
    outbox_log(c->out, LOG_WARNING,
               "event=adopted leaf=%s epoch=%u stored_epoch=%u primary=%" PRIu64 " standby=%" PRIu64
               " reason=\"servers know a later epoch than the store: it has lost writes\"",
               key, leaf->next.epoch, leaf->owner.epoch, leaf->next.primary.v, leaf->next.standby.v);
    return true;
}

bool lead_adopt(struct coordinator *c)
{
    bool any = false;
    if (!c->lead.claims) return false;
    c->lead.claims = false;
    for (uint32_t i = 0; i < c->leaf_count; i++) any |= adopt_leaf(c, &c->leaves[i]);
    return any;
}
