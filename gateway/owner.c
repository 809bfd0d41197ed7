/* Who owns an own entity. Two voices say so: the servers (OWNER, VIEWS, answers), by the entity's version, and the map,
 * by `since` of the leaf in which it stands. A server's word stands above the map's, but the map comes when servers
 * can't speak any more: then everything goes on with the successor at once, in doubt (own->doubtful) until that has
 * spoken. What a former owner still says under the same version is not believed from then on. */
#include "gateway/internal.h"

/* A server has said that it owns the entity: whatever the former one may not have passed on is said again. */
static void settle_owner(struct gateway *g, uint32_t slot, uint32_t peer)
{
    struct own *own = &g->own[slot];
    bool replaced = own->peer != SLOT_NONE && own->peer != peer;
    if (replaced || own->doubtful) g->counters.handoffs++;
    own->doubtful = false;
    own->left = NODE_NONE;
    gateway_own_set_peer(g, slot, peer);
    if (own->state == OWN_ENTERING) return;
    gateway_own_dirty(g, slot);
    gateway_requests_resend(g, slot);
    gateway_want_flush(g, 0);
}

bool gateway_own_claim(struct gateway *g, uint32_t slot, struct node_id node, uint64_t version)
{
    struct own *own = &g->own[slot];
    uint32_t peer = gateway_peer_get(g, node);
    bool moves = own->peer != peer, newer = version > own->version;
    /* Each change of owner raises the version by one, so the same server has it back from another that we did not hear
     * of: what went on to that one may have died with it. */
    bool back = !moves && version > own->version + 1;
    bool equal_counts = !moves || (own->doubtful && !node_id_equal(node, own->left));
    if (peer == SLOT_NONE || version < own->version || (!newer && !equal_counts)) {
        g->counters.stale++;
        return false;
    }
    own->version = version;
    if (newer || own->doubtful) gateway_seek_end(g, slot);
    if (moves) {
        own->leaf = QUADKEY_NONE;
        gateway_own_view_missing(g, slot, true);
    }
    if (moves || back || own->doubtful) settle_owner(g, slot, peer);
    /* Whom it was asked of shows it before the standby has it; only the answer counts then. Another has taken it over,
     * which is done when a standby has it. */
    bool passed_on = own->state == OWN_ENTERING && !own->attaching && !node_id_equal(node, own->asked);
    if (passed_on) gateway_own_entered(g, slot);
    return true;
}

/* An entity of ours that we gave up: its ENTER or LEAVE timed out, or it was held for lost. Nobody would ever take it
 * out of the world. */
static void expel(struct gateway *g, struct node_id node, struct entity_id id, uint64_t sequence)
{
    struct leave leave = {.request = ++g->request_number, .sequence = sequence, .id = id};
    writer_clear(&g->message);
    leave_encode(&g->message, &leave);
    if (gateway_peer_push(g, node) != TERRANE_ERR_OK) g->counters.dropped++;
}

void gateway_own_expel(struct gateway *g, uint32_t slot)
{
    const struct own *own = &g->own[slot];
    if (own->peer != SLOT_NONE) expel(g, g->peers[own->peer].node, own->id, ++g->sequence);
}

void gateway_own_expel_former(struct gateway *g, uint32_t slot, struct node_id holder)
{
    expel(g, holder, g->own[slot].id, g->own[slot].life_sequence);
}

void gateway_own_place(struct gateway *g, uint32_t slot, struct quadkey key)
{
    struct own *own = &g->own[slot];
    const struct leaf_owner *leaf = ownership_leaf(&g->map, key);
    own->leaf = key;
    own->leaf_since = leaf == NULL ? 0 : leaf->since;
    /* The map will name it soon, or the word is older than the map. */
    bool named = leaf != NULL && own->peer != SLOT_NONE && node_id_equal(leaf->primary, g->peers[own->peer].node);
    if (!named) gateway_seek(g, slot, SEEK_AHEAD_US);
}

void gateway_own_owner(struct gateway *g, struct node_id from, const struct owner *owner)
{
    uint32_t slot = gateway_own_find(g, owner->id);
    if (slot == SLOT_NONE) {
        expel(g, from, owner->id, ++g->sequence);
    } else if (owner->version < g->own[slot].life_version) {
        g->counters.stale++;
        gateway_own_expel_former(g, slot, from);
    } else if (gateway_own_claim(g, slot, from, owner->version)) {
        gateway_own_place(g, slot, owner->leaf);
    }
}

static const struct leaf_owner *leaf_of(const struct gateway *g, const struct own *own)
{
    const struct leaf_owner *leaf = own->leaf.v == 0 ? NULL : ownership_leaf(&g->map, own->leaf);
    return leaf != NULL || own->blank ? leaf : ownership_at(&g->map, &g->world, own->position);
}

void gateway_own_follow(struct gateway *g, uint32_t slot)
{
    struct own *own = &g->own[slot];
    bool entering = own->state == OWN_ENTERING && !own->attaching;
    if (own->state == OWN_FREE || own->state == OWN_GONE || entering) return;
    const struct leaf_owner *leaf = leaf_of(g, own);
    struct node_id owner = own->peer == SLOT_NONE ? NODE_NONE : g->peers[own->peer].node;
    bool gone = own->peer == SLOT_NONE;
    own->doubtful |= gone;
    if (leaf == NULL || (!gone && !quadkey_equal(leaf->leaf, own->leaf))) {
        if (gone) gateway_seek(g, slot, SEEK_US);
        return;
    }
    if (!gone && node_id_equal(leaf->primary, owner)) {
        own->leaf_since = leaf->since;
        if (!own->doubtful) gateway_seek_end(g, slot);
        return;
    }
    if (!gone && leaf->since <= own->leaf_since) return;
    if (!gone) own->left = owner;
    own->doubtful = true;
    own->leaf = leaf->leaf;
    own->leaf_since = leaf->since;
    gateway_own_set_peer(g, slot, gateway_peer_get(g, leaf->primary)); /* NONE: the leaf has no owner now */
    gateway_own_view_missing(g, slot, true);
    gateway_seek(g, slot, SEEK_US);
    if (own->peer == SLOT_NONE || own->state == OWN_ENTERING) return;
    gateway_own_dirty(g, slot);
    gateway_requests_resend(g, slot);
}

void gateway_owners_follow(struct gateway *g)
{
    for (uint32_t slot = 0; slot < g->own_count; slot++) gateway_own_follow(g, slot);
}
