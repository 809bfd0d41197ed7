#include "cellserver/internal.h"

#include <stdlib.h>

void quota_take(struct cellserver *cs, struct node_id gateway)
{
    struct quota_side *q = &cs->quota;
    if (gateway.v == 0) return; /* another server says so of an entity: nobody's */
    uint32_t at = table_get(&q->index, gateway.v);
    if (at == TABLE_NONE) {
        ARRAY_RESERVE(q->items, q->room, (size_t)q->count + 1);
        at = q->count++;
        q->items[at] = (struct quota_count){.gateway = gateway};
        table_put(&q->index, gateway.v, at);
    }
    q->items[at].owned++;
}

void quota_give(struct cellserver *cs, struct node_id gateway)
{
    struct quota_side *q = &cs->quota;
    if (gateway.v == 0) return;
    uint32_t at = table_get(&q->index, gateway.v);
    CHECK(at != TABLE_NONE && q->items[at].owned > 0);
    if (--q->items[at].owned > 0) return;
    q->items[at] = q->items[--q->count];
    if (at < q->count) table_put(&q->index, q->items[at].gateway.v, at);
    CHECK(table_remove(&q->index, gateway.v));
}

uint32_t quota_owned(const struct cellserver *cs, struct node_id gateway)
{
    uint32_t at = gateway.v == 0 ? TABLE_NONE : table_get(&cs->quota.index, gateway.v);
    return at == TABLE_NONE ? 0 : cs->quota.items[at].owned;
}

bool quota_refuses(struct cellserver *cs, struct node_id gateway)
{
    uint32_t most = cs->options.session_entities;
    if (most == 0 || quota_owned(cs, gateway) < most) return false;
    cs->stats.refused_entities++;
    return true;
}

void quota_close(struct cellserver *cs)
{
    free(cs->quota.items);
    table_close(&cs->quota.index);
}
