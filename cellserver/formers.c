#include "cellserver/internal.h"

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
