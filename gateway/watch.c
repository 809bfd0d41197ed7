/* Which leaves' streams this gateway needs. An own entity needs the leaves within its reach of the cell it stands in,
 * so only a crossing of a cell changes anything; each leaf counts who needs it. What an entity counted is found again
 * from its cell and reach, so no entity keeps a list of leaves. */
#include "gateway/internal.h"

#include <stdlib.h>

int32_t gateway_watch_cell(const struct gateway *g, int32_t coordinate)
{
    return coordinate >> (g->world.resolution_bits - g->world.depth);
}

static struct watch *watch_find(const struct gateway *g, struct quadkey leaf)
{
    uint32_t slot = table_get(&g->watch_index, leaf.v);
    return slot == TABLE_NONE ? NULL : &g->watches[slot];
}

static void topic_output(struct gateway *g, enum output_kind kind, struct quadkey leaf)
{
    writer_clear(&g->message);
    topic_write(&g->message, STREAM_REGION, leaf);
    struct output output = {.kind = kind};
    outbox_push(g->out, output, g->message.data, g->message.size);
}

/* Who may succeed the owner is linked and asked before it is needed: it keeps the SUBSCRIBE, and the first that it
 * publishes as the owner comes here whatever the map has said. One that refuses, since it does not know yet that it
 * stands by, is asked again by the sweep. */
static void ask_early(struct gateway *g, struct watch *watch, const struct leaf_owner *owner)
{
    if (node_id_equal(owner->standby, watch->early)) return;
    watch->early = NODE_NONE;
    uint32_t peer = owner->standby.v == 0 ? SLOT_NONE : gateway_peer_get(g, owner->standby);
    if (peer == SLOT_NONE || !g->peers[peer].up) return;
    struct subscribe message = {STREAM_REGION, watch->leaf};
    writer_clear(&g->message);
    subscribe_encode(&g->message, MESSAGE_SUBSCRIBE, &message);
    if (gateway_peer_push(g, owner->standby) == TERRANE_ERR_OK) watch->early = owner->standby;
}

static void unsubscribe(struct gateway *g, struct node_id node, struct quadkey leaf)
{
    if (node.v == 0 || !gateway_map_is_server(g, node) || ownership_leaf(&g->map, leaf) == NULL) return;
    struct subscribe message = {STREAM_REGION, leaf};
    writer_clear(&g->message);
    subscribe_encode(&g->message, MESSAGE_UNSUBSCRIBE, &message);
    /* Refused only by a full queue; then the owner goes on until the link ends. */
    if (gateway_peer_push(g, node) != TERRANE_ERR_OK) g->counters.dropped++;
}

static void watch_open(struct gateway *g, struct quadkey leaf)
{
    uint32_t slot = g->watch_count++;
    ARRAY_RESERVE(g->watches, g->watch_room, g->watch_count);
    g->watches[slot] = (struct watch){.leaf = leaf};
    table_put(&g->watch_index, leaf.v, slot);
    topic_output(g, OUTPUT_WATCH, leaf);
    replicas_watch(g->replicas, g->now_us, leaf);
    const struct leaf_owner *owner = ownership_leaf(&g->map, leaf);
    if (owner == NULL) return;
    replicas_set_epoch(g->replicas, g->now_us, leaf, owner->since);
    ask_early(g, &g->watches[slot], owner);
}

static void watch_close(struct gateway *g, uint32_t slot)
{
    struct watch watch = g->watches[slot];
    table_remove(&g->watch_index, watch.leaf.v);
    g->watches[slot] = g->watches[--g->watch_count];
    if (slot < g->watch_count) table_put(&g->watch_index, g->watches[slot].leaf.v, slot);
    unsubscribe(g, watch.asked, watch.leaf);
    if (!node_id_equal(watch.early, watch.asked)) unsubscribe(g, watch.early, watch.leaf);
    topic_output(g, OUTPUT_UNWATCH, watch.leaf);
    replicas_unwatch(g->replicas, g->now_us, watch.leaf, true);
}

static void need(void *context, const struct leaf_owner *leaf)
{
    struct gateway *g = context;
    if (watch_find(g, leaf->leaf) == NULL) watch_open(g, leaf->leaf);
    struct watch *watch = watch_find(g, leaf->leaf);
    watch->need++;
    watch->unneeded_us = 0;
}

static void need_no_more(void *context, const struct leaf_owner *leaf)
{
    struct gateway *g = context;
    struct watch *watch = watch_find(g, leaf->leaf);
    CHECK(watch != NULL && watch->need > 0);
    if (--watch->need == 0) watch->unneeded_us = g->now_us;
}

static void visit_needed(struct gateway *g, const struct own *own, gateway_map_visit *visit)
{
    int64_t cell = world_cell_side(&g->world);
    int64_t x = own->cell_x * cell, y = own->cell_y * cell;
    gateway_map_leaves(g, x - own->reach, y - own->reach, x + cell - 1 + own->reach, y + cell - 1 + own->reach, visit,
                       g);
}

/* How far from its cell an entity may see another, plus that other's distance from its leaf, plus a cell: so that a
 * leaf's content is there when the view first names one in it. */
static int64_t reach_of(const struct gateway *g, const struct own *own)
{
    int64_t cell = world_cell_side(&g->world), hysteresis = g->world.handoff_hysteresis;
    if (g->world.view_mode == VIEW_BLOCK) return cell + (hysteresis > cell ? hysteresis : cell);
    if (own->radius == 0) return hysteresis;
    return own->radius + (int64_t)g->world.hysteresis + hysteresis + cell;
}

static void settle(struct gateway *g, uint32_t slot)
{
    struct own before = g->own[slot];
    struct own *own = &g->own[slot];
    bool needs = own->state != OWN_GONE && !own->leaving && !own->blank;
    own->cell_x = gateway_watch_cell(g, own->position.x);
    own->cell_y = gateway_watch_cell(g, own->position.y);
    own->reach = reach_of(g, own);
    own->needing = needs;
    bool same = before.cell_x == own->cell_x && before.cell_y == own->cell_y && before.reach == own->reach;
    if (before.needing && needs && same) return;
    struct own now = *own; /* the walk may open watches; the entity's place in its array is not touched by that */
    if (needs) visit_needed(g, &now, need);
    if (before.needing) visit_needed(g, &before, need_no_more);
}

void gateway_watch_settle(struct gateway *g)
{
    for (uint32_t i = 0; i < g->unsettled_count; i++) {
        uint32_t slot = g->unsettled[i];
        g->own[slot].unsettled = false;
        if (!g->no_updates) settle(g, slot);
        gateway_own_free_if_over(g, slot);
    }
    g->unsettled_count = 0;
}

void gateway_watch_rebuild(struct gateway *g)
{
    for (uint32_t i = 0; i < g->watch_count; i++) g->watches[i].need = 0;
    for (uint32_t slot = 0; slot < g->own_count; slot++) {
        if (g->own[slot].needing) visit_needed(g, &g->own[slot], need);
    }
    for (uint32_t i = g->watch_count; i-- > 0;) {
        struct watch *watch = &g->watches[i];
        if (watch->need == 0 && watch->unneeded_us == 0) watch->unneeded_us = g->now_us;
        /* A leaf that is no more publishes no more. */
        if (ownership_leaf(&g->map, watch->leaf) == NULL) watch_close(g, i);
    }
}

void gateway_watch_epochs(struct gateway *g)
{
    for (uint32_t i = 0; i < g->watch_count; i++) {
        struct quadkey leaf = g->watches[i].leaf;
        const struct leaf_owner *owner = ownership_leaf(&g->map, leaf);
        if (owner == NULL) continue;
        bool replaced = g->watches[i].asked.v != 0 && !node_id_equal(g->watches[i].asked, owner->primary);
        if (replaced) g->watches[i].refusals = 0;
        replicas_set_epoch(g->replicas, g->now_us, leaf, owner->since);
        ask_early(g, &g->watches[i], owner);
        if (g->watches[i].ask_us != 0) gateway_watch_subscribe(g, STREAM_REGION, leaf);
    }
}

static void ask_later(struct gateway *g, struct watch *watch, uint64_t delay_us)
{
    watch->ask_us = g->now_us + delay_us;
    if (watch->ask_us < g->watch_ask_us) g->watch_ask_us = watch->ask_us;
}

void gateway_watch_subscribe(void *context, enum stream_kind kind, struct quadkey leaf)
{
    struct gateway *g = context;
    struct watch *watch = watch_find(g, leaf);
    const struct leaf_owner *owner = ownership_leaf(&g->map, leaf);
    if (watch == NULL) return;
    uint32_t peer = owner == NULL ? SLOT_NONE : gateway_peer_get(g, owner->primary);
    ask_later(g, watch, RETRY_US);
    /* Without an owner or its link this is tried again: a queue of repetitions helps nobody. */
    if (peer == SLOT_NONE || !g->peers[peer].up) return;
    struct subscribe message = {kind, leaf};
    writer_clear(&g->message);
    subscribe_encode(&g->message, MESSAGE_SUBSCRIBE, &message);
    if (gateway_peer_push(g, owner->primary) != TERRANE_ERR_OK) return;
    watch->ask_us = 0;
    watch->asked = owner->primary;
    gateway_want_flush(g, 0);
}

void gateway_watch_peer_up(struct gateway *g, struct node_id node)
{
    for (uint32_t i = 0; i < g->watch_count; i++) {
        const struct leaf_owner *owner = ownership_leaf(&g->map, g->watches[i].leaf);
        if (owner != NULL && node_id_equal(owner->standby, node)) ask_early(g, &g->watches[i], owner);
        if (g->watches[i].ask_us != 0 && owner != NULL && node_id_equal(owner->primary, node))
            gateway_watch_subscribe(g, STREAM_REGION, g->watches[i].leaf);
    }
}

void gateway_watch_unsubscribed(struct gateway *g, struct node_id from, const struct unsubscribed *message)
{
    struct watch *watch = watch_find(g, message->leaf);
    if (message->stream != STREAM_REGION || watch == NULL) return;
    if (node_id_equal(watch->early, from)) watch->early = NODE_NONE;
    if (!node_id_equal(watch->asked, from)) return;
    /* A successor that is about to serve refuses until it does. */
    ask_later(g, watch, gateway_retry_us(watch->refusals++));
}

void gateway_watch_retry(struct gateway *g)
{
    if (g->now_us < g->watch_ask_us) return;
    g->watch_ask_us = UINT64_MAX;
    for (uint32_t i = 0; i < g->watch_count; i++) {
        struct watch *watch = &g->watches[i];
        if (watch->ask_us == 0) continue;
        if (g->now_us >= watch->ask_us)
            gateway_watch_subscribe(g, STREAM_REGION, watch->leaf);
        else
            ask_later(g, watch, watch->ask_us - g->now_us);
    }
}

void gateway_watch_renew(struct gateway *g)
{
    for (uint32_t i = 0; i < g->watch_count; i++) {
        g->watches[i].asked = g->watches[i].early = NODE_NONE;
        g->watches[i].refusals = 0;
        ask_later(g, &g->watches[i], 0);
    }
}

void gateway_watch_sweep(struct gateway *g)
{
    for (uint32_t i = g->watch_count; i-- > 0;) {
        struct watch *watch = &g->watches[i];
        const struct leaf_owner *owner = ownership_leaf(&g->map, watch->leaf);
        if (watch->need == 0 && g->now_us >= watch->unneeded_us + LINGER_US)
            watch_close(g, i);
        else if (owner != NULL)
            ask_early(g, watch, owner);
    }
}
