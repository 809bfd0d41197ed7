/* An entity changes its gateway: another gateway attaches it, or another incarnation of the one that it had. */
#include "cellserver/internal.h"

static void send_result(struct cellserver *cs, struct node_id gateway, const struct result *result)
{
    uint32_t peer = peer_find(cs, gateway);
    if (peer == NONE) return;
    writer_clear(&cs->message);
    result_encode(&cs->message, result);
    peer_send(cs, peer, &cs->message, true);
}

/* Registers go by the new gateway's sequence from now on; what the former one still says is refused. */
static void change_hands(struct cellserver *cs, uint32_t at, struct node_id gateway, uint64_t sequence)
{
    struct entity *e = &cs->entities[at];
    send_result(cs, e->gateway, &(struct result){.id = e->id, .error = TERRANE_ERR_DETACHED, .version = e->version});
    quota_give(cs, e->gateway);
    quota_take(cs, gateway);
    e->gateway = gateway;
    e->enter_request = 0;
    e->position_sequence = e->state_sequence = e->radius_sequence = sequence;
    standby_note_put(cs, at);
}

static void answer_attached(struct cellserver *cs, uint32_t at, uint64_t request)
{
    struct entity *e = &cs->entities[at];
    uint32_t peer = peer_find(cs, e->gateway);
    if (peer == NONE) return;
    struct attached m = {.request = request, .leaf = cs->leaves[e->leaf].key};
    entity_record_of(e, &m.record);
    writer_clear(&cs->message);
    attached_encode(&cs->message, &m);
    peer_send(cs, peer, &cs->message, true);
    standby_wait_result(cs, e->leaf, e->gateway,
                        &(struct result){.request = request, .id = e->id, .version = e->version});
    views_forget(cs, at);
    e->view_whole = true;
    views_touch(cs, at);
}

bool command_attach(struct cellserver *cs, struct node_id gateway, uint32_t hops, struct cursor command)
{
    struct attach m;
    if (attach_decode(command, &m) != TERRANE_ERR_OK) return false;
    uint32_t at = entity_find(cs, m.id);
    struct result refusal = {.request = m.request, .id = m.id};
    if (at == NONE || cs->entities[at].status != ENTITY_OWNED) {
        if (replica_keep_command(cs, m.id, gateway, hops, command)) return true;
        if (forward_command(cs, m.id, gateway, hops, command)) return true;
        cs->stats.not_owner++;
        bool unknown = at == NONE && !replica_holds(cs, m.id);
        refusal.error = unknown ? TERRANE_ERR_ENTITY_UNKNOWN : TERRANE_ERR_NOT_OWNER;
        send_result(cs, gateway, &refusal);
        return true;
    }
    const struct entity *e = &cs->entities[at];
    bool has = node_id_equal(e->gateway, gateway);
    if (e->leaving || !leaf_serves(cs, e->leaf)) {
        if (forward_hold(cs, at, gateway, command)) return true;
        refusal.error = TERRANE_ERR_QUEUE_FULL;
        send_result(cs, gateway, &refusal);
    } else if (!has && m.former.v != 0 && !node_id_equal(e->gateway, m.former)) {
        refusal.error = TERRANE_ERR_DETACHED;
        send_result(cs, gateway, &refusal);
    } else if (!has && quota_refuses(cs, gateway)) {
        refusal.error = TERRANE_ERR_LIMIT;
        send_result(cs, gateway, &refusal);
    } else {
        if (!has) change_hands(cs, at, gateway, m.sequence);
        answer_attached(cs, at, m.request);
    }
    return true;
}
