/* What the standbys of our leaves are told, and what waits until they have it. */
#include "cellserver/internal.h"

void standby_note_put(struct cellserver *cs, uint32_t at)
{
    (void)cs;
    (void)at;
}

void standby_note_move(struct cellserver *cs, uint32_t at)
{
    (void)cs;
    (void)at;
}

void standby_note_drop(struct cellserver *cs, uint32_t leaf, struct entity_id id, uint32_t slot)
{
    (void)cs;
    (void)leaf;
    (void)id;
    (void)slot;
}

void standby_sync(struct cellserver *cs)
{
    (void)cs;
}

void standby_publish(struct cellserver *cs)
{
    (void)cs;
}

void standby_flush(struct cellserver *cs)
{
    (void)cs;
}

void standby_acked(struct cellserver *cs, uint32_t peer, struct standby_ack *m)
{
    (void)cs;
    (void)peer;
    (void)m;
}

uint64_t standby_close_leaf(struct cellserver *cs, uint32_t leaf)
{
    (void)cs;
    (void)leaf;
    return 0;
}
