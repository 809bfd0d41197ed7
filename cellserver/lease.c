/* Who may serve. A primary does while the coordinator's echo or its standby's acks are fresh: so it stops by itself
 * before anybody else is told to take its place (a coordinator waits for the lease and a margin; a promoted standby
 * acks no more, and waits for its last ack to have gone stale here). A leaf without a standby always serves: it is the
 * only copy, and goes to somebody else only when this process is proved dead.
 *
 * Freshness counts from when we sent what was answered, on our own clock, and is asked for whenever it matters; the
 * tick only notes that a fence fell or rose. Behind a fence nothing is published or answered and commands wait; moves
 * are taken. */
#include "cellserver/internal.h"

#include "common/mutation.h"

static bool fresh(const struct cellserver *cs, uint64_t echoed_us, uint64_t now_us)
{
    return echoed_us != 0 && now_us < echoed_us + cs->lease_us;
}

static bool serves(const struct cellserver *cs, uint32_t at, uint64_t now_us)
{
    const struct standby_stream *s = &cs->leaves[at].standby;
    if (MUTATION(FENCE_SKIPPED) || s->node.v == 0 || fresh(cs, cs->coordinator.echoed_us, now_us)) return true;
    uint32_t peer = peer_find(cs, s->node);
    return peer != NONE && !s->refused && fresh(cs, cs->peers[peer].echoed_us, now_us);
}

bool leaf_serves(const struct cellserver *cs, uint32_t at)
{
    return serves(cs, at, cs->now_us);
}

bool cellserver_owns_at(const struct cellserver *cs, struct quadkey leaf, uint64_t now_us, uint32_t *epoch)
{
    uint32_t at = leaf_find(cs, leaf);
    if (at == NONE || !serves(cs, at, now_us)) return false;
    *epoch = cs->leaves[at].epoch;
    return true;
}

bool cellserver_owns(const struct cellserver *cs, struct quadkey leaf, uint32_t *epoch)
{
    return cellserver_owns_at(cs, leaf, cs->now_us, epoch);
}

/* What was not told meanwhile is not known singly. All are told, also who sees nothing: it may have seen something
 * before, and a gateway whose entity has come here waits for its view. */
static void tell_whole(struct cellserver *cs, uint32_t leaf)
{
    for (uint32_t i = 0; i < cs->entity_count; i++) {
        struct entity *e = &cs->entities[i];
        if (e->status != ENTITY_OWNED || e->leaf != leaf) continue;
        e->view_whole = true;
        views_touch(cs, i);
    }
}

void lease_tick(struct cellserver *cs)
{
    char key[LIMIT_QUADKEY_TEXT];
    cs->stats.fenced = 0;
    for (uint32_t at = 0; at < cs->leaf_count; at++) {
        struct own_leaf *leaf = &cs->leaves[at];
        if (!leaf->used) continue;
        bool fenced = !leaf_serves(cs, at);
        cs->stats.fenced += fenced;
        if (fenced == leaf->fenced) continue;
        leaf->fenced = fenced;
        quadkey_text(leaf->key, key);
        outbox_log(cs->out, LOG_WARNING, "event=%s leaf=%s epoch=%u entities=%u", fenced ? "fenced" : "unfenced", key,
                   leaf->epoch, leaf->count);
        if (fenced) {
            cs->stats.fences++;
            continue;
        }
        tell_whole(cs, at);
        standby_release(cs, at);
    }
}
