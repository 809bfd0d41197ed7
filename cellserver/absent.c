/* Gateways that the map does not name: their entities stay for a while, then they leave.
 *
 * Such a gateway may be one that a coordinator that has just started does not know yet. Its session goes on meanwhile,
 * since it does so on the other side: what was sent and heard would be lost with it. An entity may also come here when
 * its gateway is gone, by a hand-off or a promotion: then its time begins here. */
#include "cellserver/internal.h"

static uint32_t absent_find(const struct cellserver *cs, struct node_id node)
{
    uint32_t i = 0;
    while (i < cs->absent_count && !node_id_equal(cs->absent[i].node, node)) i++;
    return i;
}

void absent_note(struct cellserver *cs, struct node_id gateway)
{
    if (gateway.v == 0 || ownership_node(&cs->map, gateway) != NULL) return;
    if (absent_find(cs, gateway) < cs->absent_count) return;
    ARRAY_RESERVE(cs->absent, cs->absent_room, cs->absent_count + 1);
    cs->absent[cs->absent_count++] =
        (struct absent_gateway){.node = gateway, .until_us = cs->now_us + GATEWAY_GRACE_US};
}

void absent_sync(struct cellserver *cs)
{
    for (uint32_t i = cs->absent_count; i-- > 0;) {
        if (ownership_node(&cs->map, cs->absent[i].node) != NULL) cs->absent[i] = cs->absent[--cs->absent_count];
    }
    for (uint32_t i = 0; i < cs->peer_count; i++) {
        const struct peer *peer = &cs->peers[i];
        if (peer->used && peer->info.role == ROLE_GATEWAY) absent_note(cs, peer->info.node);
    }
}

/* False: some of its entities can't leave now, they are between two owners or may not be served. */
static bool entities_leave(struct cellserver *cs, struct node_id gateway)
{
    bool all = true;
    for (uint32_t at = 0; at < cs->entity_count; at++) {
        const struct entity *e = &cs->entities[at];
        if (e->status != ENTITY_OWNED || !node_id_equal(e->gateway, gateway)) continue;
        if (e->leaving || !leaf_serves(cs, e->leaf)) {
            all = false;
        } else {
            entity_remove(cs, at);
        }
    }
    return all;
}

void absent_expire(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->absent_count;) {
        if (cs->absent[i].until_us > cs->now_us) {
            i++;
            continue;
        }
        if (!entities_leave(cs, cs->absent[i].node)) {
            cs->absent[i++].until_us = cs->now_us + BORDER_RETRY_US;
            continue;
        }
        uint32_t peer = peer_find(cs, cs->absent[i].node);
        if (peer != NONE) peer_remove(cs, peer);
        cs->absent[i] = cs->absent[--cs->absent_count];
    }
}
