/* Leaves that we stand by for: their primaries' copies, kept level. */
#include "cellserver/internal.h"

void replica_receive(struct cellserver *cs, uint32_t peer, struct standby *m)
{
    (void)cs;
    (void)peer;
    (void)m;
}

void replica_beat(struct cellserver *cs, uint32_t peer, uint64_t stamp)
{
    (void)cs;
    (void)peer;
    (void)stamp;
}

void replica_ack_tick(struct cellserver *cs)
{
    (void)cs;
}

void replica_flush(struct cellserver *cs)
{
    (void)cs;
}

void replica_stands(struct cellserver *cs, struct writer *w)
{
    (void)cs;
    (void)w;
}

void replica_peer_gone(struct cellserver *cs, struct node_id node)
{
    (void)cs;
    (void)node;
}

void cellserver_replicas(const struct cellserver *cs,
                         void (*each)(void *context, struct quadkey leaf, uint32_t epoch, bool level,
                                      const struct cellserver_entity *entity),
                         void *context)
{
    (void)cs;
    (void)each;
    (void)context;
}
