#include "cellserver/internal.h"

#include "common/mutation.h"

void formers_note(struct standby_formers *formers, struct node_id node)
{
    for (uint32_t i = 0; i < formers->count; i++) {
        if (node_id_equal(formers->nodes[i], node)) return;
    }
    if (formers->count < FORMERS_MAX) formers->nodes[formers->count++] = node;
}

void formers_end(struct cellserver *cs, uint32_t leaf_at)
{
    struct own_leaf *leaf = &cs->leaves[leaf_at];
    for (uint32_t i = 0; i < leaf->formers.count; i++) {
        uint32_t peer = peer_find(cs, leaf->formers.nodes[i]);
        if (peer == NONE || node_id_equal(leaf->formers.nodes[i], leaf->standby.node)) continue;
        writer_clear(&cs->message);
        standby_end_encode(&cs->message, &(struct standby_end){.leaf = leaf->key, .epoch = leaf->epoch});
        peer_send(cs, peer, &cs->message, true);
    }
    leaf->formers.count = 0;
}

static bool keep(struct cellserver *cs, struct held_content *content, struct standby_item item)
{
    item.slot = content->end;
    uint32_t before = content->count;
    if (!held_put(content, &item)) return false;
    cs->stats.replicas += content->count - before;
    return true;
}

static bool keep_all(struct cellserver *cs, uint32_t leaf_at, struct held_content *content)
{
    bool all = true;
    for (uint32_t i = 0; i < cs->entity_count && all; i++) {
        const struct entity *e = &cs->entities[i];
        if (e->status == ENTITY_OWNED && e->leaf == leaf_at) all = keep(cs, content, entity_standby_item(e));
    }
    for (uint32_t i = 0; i < cs->pending_count && all; i++) {
        const struct pending *p = &cs->pendings[i];
        if (p->used && p->leaf == leaf_at) all = keep(cs, content, pending_standby_item(p));
    }
    return all;
}

void formers_keep_given(struct cellserver *cs, uint32_t leaf_at, const struct leaf_owner *owner)
{
    const struct own_leaf *leaf = &cs->leaves[leaf_at];
    bool next = owner->since == owner->epoch && owner->epoch == leaf->epoch + 1;
    bool heir = node_id_equal(owner->primary, leaf->standby.node);
    if (!next || !heir || leaf->outdated || MUTATION(GIVEN_DROPPED)) return;
    struct held_leaf *held = replica_find(cs, leaf->key);
    if (held == NULL) held = replica_begin(cs, leaf->key, owner->primary);
    /* Its own copy has been faster than our map. */
    if (held->level || held->promoting || !node_id_equal(held->primary, owner->primary)) return;
    if (!keep_all(cs, leaf_at, &held->content)) {
        cs->stats.replicas -= held->content.count;
        held_close(&held->content);
        return;
    }
    held->retired = !node_id_equal(owner->standby, cs->options.info.node);
    held->raise = VERSIONS_UNHEARD; /* as the new primary does */
    held->epoch = held->retired ? leaf->epoch : owner->epoch;
    replica_set_level(cs, held, true);
}
