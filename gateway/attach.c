/* Taking entities over that servers hold for another node: another gateway, or a former incarnation of this one, which
 * the coordinator has given up while this process stood still. Servers keep the entities of a gateway that is gone for
 * a grace period; ATTACH makes them ours. ATTACHED tells what is known of it, RESULT that its standby knows, too. A
 * blank entity (attached by the game) learns its registers from ATTACHED; one of a former incarnation knows better and
 * says its position and what is unanswered again. */
#include "gateway/internal.h"

void gateway_attach_found(struct gateway *g, uint32_t slot)
{
    const struct own *own = &g->own[slot];
    if (own->state != OWN_ENTERING || !own->attaching) return;
    for (uint32_t at = own->requests; at != SLOT_NONE; at = g->requests[at].own_next) {
        if (enters(&g->requests[at])) gateway_request_queue(g, at);
    }
}

void gateway_attach_instead(struct gateway *g, uint32_t slot, struct node_id holder)
{
    g->own[slot].attaching = true;
    gateway_own_set_peer(g, slot, gateway_peer_find(g, holder));
    gateway_attach_found(g, slot);
}

enum terrane_error gateway_attach(struct gateway *g, uint64_t id, uint64_t *request)
{
    uint32_t slot, at;
    enum terrane_error error = gateway_usable(g);
    if (error == TERRANE_ERR_OK && id == 0) error = TERRANE_ERR_ENTITY_NONE;
    if (error == TERRANE_ERR_OK && gateway_own_find(g, (struct entity_id){id}) != SLOT_NONE)
        error = TERRANE_ERR_ENTITY_EXISTS;
    if (error == TERRANE_ERR_OK) error = gateway_own_new(g, (struct entity_id){id}, TERRANE_ATTACH, &slot, &at);
    if (error != TERRANE_ERR_OK) return error;
    g->own[slot].attaching = g->own[slot].blank = true;
    gateway_request_hold(g, at); /* until it is found */
    gateway_seek(g, slot, 0);
    if (request != NULL) *request = g->requests[at].number;
    return TERRANE_ERR_OK;
}

void gateway_attached(struct gateway *g, struct node_id from, const struct attached *m)
{
    uint32_t at = gateway_request_find(g, m->request), peer = gateway_peer_find(g, from);
    const struct request *r = at == SLOT_NONE ? NULL : &g->requests[at];
    bool asked = r != NULL && r->own != SLOT_NONE && enters(r) && r->attempts > 0 &&
                 entity_id_equal(r->id, m->record.id) && g->own[r->own].attaching;
    if (!asked || peer == SLOT_NONE) {
        g->counters.stale++;
        return;
    }
    uint32_t slot = r->own;
    struct own *own = &g->own[slot];
    if (m->record.version < own->life_version) {
        gateway_own_expel_former(g, slot, from);
        gateway_seek(g, slot, SEEK_SOON_US);
        return;
    }
    gateway_seek_end(g, slot);
    if (m->record.version > own->version) own->version = m->record.version;
    if (own->blank) gateway_own_learn(g, slot, &m->record);
    gateway_own_set_peer(g, slot, peer);
    gateway_own_place(g, slot, m->leaf);
}

void gateway_detached(struct gateway *g, struct node_id from, const struct result *result)
{
    uint32_t slot = gateway_own_find(g, result->id);
    if (slot == SLOT_NONE) return; /* it has left here */
    const struct own *own = &g->own[slot];
    if (own->peer == SLOT_NONE || !node_id_equal(g->peers[own->peer].node, from)) {
        g->counters.stale++;
        return;
    }
    gateway_own_lose(g, slot, TERRANE_ERR_DETACHED);
}

/* What was said under the former id may have been carried out or not; all of it is said again under the new one, in the
 * order of the game's calls, after the ATTACH. */
static void say_again(struct gateway *g, struct own *own)
{
    for (uint32_t at = own->requests; at != SLOT_NONE; at = g->requests[at].own_next) {
        if (!enters(&g->requests[at])) g->requests[at].sequence = ++g->sequence;
    }
    own->state_sequence = ++g->sequence;
    own->radius_sequence = ++g->sequence;
}

static void take_over(struct gateway *g, uint32_t slot)
{
    struct own *own = &g->own[slot];
    own->view.node = NODE_NONE;
    own->view.filling = false;
    if (own->state == OWN_ENTERING) {
        for (uint32_t at = own->requests; at != SLOT_NONE; at = g->requests[at].own_next) {
            if (enters(&g->requests[at]) && g->requests[at].state == REQUEST_SENT) gateway_request_queue(g, at);
        }
        return;
    }
    gateway_own_hold(g, slot);
    uint32_t attach = gateway_request_silent(g, TERRANE_ATTACH, own->id, slot);
    say_again(g, own);
    own->attaching = true;
    gateway_own_view_missing(g, slot, true);
    if (own->peer == SLOT_NONE) gateway_seek(g, slot, 0);
    gateway_request_queue(g, attach);
}

/* An event may have been told already, and who is told again can't know: under another id it is another event. */
static void end_emits(struct gateway *g)
{
    for (uint32_t slot = g->request_first, next; slot != SLOT_NONE; slot = next) {
        const struct request *r = &g->requests[slot];
        next = r->next;
        if (r->state != REQUEST_SENT) continue;
        if (r->operation == TERRANE_EMIT)
            gateway_request_done(g, slot, TERRANE_ERR_TIMED_OUT);
        else if (r->inquiry != SLOT_NONE)
            gateway_request_queue(g, slot);
    }
}

/* Another id out of the former one, as random as that was. */
static struct node_id next_node(struct node_id node)
{
    uint64_t v = node.v + 0x9e3779b97f4a7c15ULL;
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ULL;
    v = (v ^ v >> 27) * 0x94d049bb133111ebULL;
    v ^= v >> 31;
    return (struct node_id){v < NODE_FIRST ? v + NODE_FIRST : v};
}

void gateway_reborn(struct gateway *g)
{
    if (g->closing) {
        for (uint32_t slot = 0; slot < g->own_count; slot++) gateway_own_end(g, slot, SLOT_NONE, TERRANE_ERR_CLOSED);
        g->coordinator.bye = true;
        return;
    }
    g->former = g->info.node;
    g->info.node = next_node(g->former);
    outbox_log(
        g->out, LOG_WARNING,
        "event=given_up former=%llu node=%llu reason=\"the coordinator has held this gateway for dead; it goes on "
        "as another\"",
        (unsigned long long)g->former.v, (unsigned long long)g->info.node.v);
    gateway_membership_renew(g);
    gateway_peers_renew(g);
    gateway_watch_renew(g);
    end_emits(g);
    for (uint32_t slot = 0; slot < g->own_count; slot++) {
        if (g->own[slot].state != OWN_FREE && g->own[slot].state != OWN_GONE) take_over(g, slot);
    }
    gateway_want_flush(g, 0);
}

struct node_id gateway_node(const struct gateway *g)
{
    return g->info.node;
}
