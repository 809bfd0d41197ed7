/* Own leaves: taking and giving up ownership, streams, subscribers, publishing. */
#include "cellserver/internal.h"

#include <stdlib.h>

uint32_t leaf_find(const struct cellserver *cs, struct quadkey key)
{
    return table_get(&cs->leaf_index, key.v);
}

uint32_t ghost_feed(const struct cellserver *cs)
{
    return cs->options.info.feed_count;
}

static uint32_t stream_feed(const struct cellserver *cs, const struct own_leaf *leaf, enum stream_kind stream)
{
    return stream == STREAM_GHOST ? ghost_feed(cs) : leaf->feed;
}

static void leaf_open(struct cellserver *cs, const struct leaf_owner *owner)
{
    uint32_t at = 0;
    while (at < cs->leaf_count && cs->leaves[at].used) at++;
    if (at == cs->leaf_count) ARRAY_RESERVE(cs->leaves, cs->leaf_room, ++cs->leaf_count);
    uint32_t feeds = cs->options.info.feed_count;
    cs->leaves[at] = (struct own_leaf){
        .used = true,
        .key = owner->leaf,
        .epoch = owner->epoch,
        .since = owner->epoch,
        .feed = feeds == 0 ? 0 : owner->feed % feeds,
        .square = quadkey_square(&cs->world, owner->leaf),
        .region = stream_writer_open(STREAM_REGION, owner->leaf, owner->epoch),
        .ghost = stream_writer_open(STREAM_GHOST, owner->leaf, owner->epoch),
    };
    table_put(&cs->leaf_index, owner->leaf.v, at);
    cs->stats.leaves++;
}

/* The map says that somebody else answers for this leaf: what it holds is not ours to serve any more. */
static void leaf_give_up(struct cellserver *cs, uint32_t at)
{
    struct own_leaf *leaf = &cs->leaves[at];
    char key[LIMIT_QUADKEY_TEXT];
    quadkey_text(leaf->key, key);
    outbox_log(cs->out, LOG_WARNING, "event=leaf_given_up leaf=%s epoch=%u entities=%u", key, leaf->epoch, leaf->count);
    for (uint32_t i = 0; i < cs->entity_count && leaf->count > 0; i++) {
        struct entity *e = &cs->entities[i];
        if (e->status != ENTITY_OWNED || e->leaf != at) continue;
        entity_unplace(cs, i);
        entity_part_leaf(cs, i, LEFT_MOVED, leaf->key);
        entity_free(cs, i);
    }
    while (leaf->subscriber_count > 0) {
        struct subscriber *last = &leaf->subscribers[--leaf->subscriber_count];
        peer_feed_release(cs, last->peer, stream_feed(cs, leaf, last->stream));
    }
    stream_writer_close(leaf->region);
    stream_writer_close(leaf->ghost);
    free(leaf->subscribers);
    free(leaf->near);
    table_remove(&cs->leaf_index, leaf->key.v);
    *leaf = (struct own_leaf){0};
    cs->stats.leaves--;
}

static bool ours(const struct cellserver *cs, const struct leaf_owner *owner)
{
    return owner != NULL && node_id_equal(owner->primary, cs->options.info.node);
}

static void leaf_take(struct cellserver *cs, const struct leaf_owner *owner)
{
    uint32_t at = leaf_find(cs, owner->leaf);
    if (at == NONE) {
        leaf_open(cs, owner);
    } else if (owner->epoch > cs->leaves[at].epoch) {
        struct own_leaf *leaf = &cs->leaves[at];
        leaf->epoch = leaf->since = owner->epoch;
        stream_writer_set_epoch(leaf->region, owner->epoch);
        stream_writer_set_epoch(leaf->ghost, owner->epoch);
        for (uint32_t i = 0; i < leaf->subscriber_count; i++) leaf->subscribers[i].wants_snapshot = true;
    }
}

void leaves_sync(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->leaf_count; i++) {
        if (cs->leaves[i].used && !ours(cs, ownership_leaf(&cs->map, cs->leaves[i].key))) leaf_give_up(cs, i);
    }
    for (uint32_t i = 0; i < cs->map.now.leaf_count; i++) {
        const struct leaf_owner *owner = &cs->map.now.leaves[i];
        if (quadkey_depth(owner->leaf) > cs->world.depth) {
            cs->stats.malformed++;
            continue;
        }
        if (ours(cs, owner)) leaf_take(cs, owner);
    }
    ghosts_sync(cs);
}

static void refuse_subscription(struct cellserver *cs, uint32_t peer, const struct subscribe *m)
{
    writer_clear(&cs->message);
    unsubscribed_encode(&cs->message,
                        &(struct unsubscribed){.stream = m->stream, .leaf = m->leaf, .error = TERRANE_ERR_NOT_OWNER});
    peer_send(cs, peer, &cs->message, true);
}

static struct subscriber *subscriber_find(struct own_leaf *leaf, uint32_t peer, enum stream_kind stream)
{
    for (uint32_t i = 0; i < leaf->subscriber_count; i++) {
        struct subscriber *s = &leaf->subscribers[i];
        if (s->peer == peer && s->stream == stream) return s;
    }
    return NULL;
}

void leaf_subscribe(struct cellserver *cs, uint32_t peer, const struct subscribe *m)
{
    uint32_t at = leaf_find(cs, m->leaf);
    if (at == NONE || cs->peers[peer].info.sub_url[0] == '\0') {
        refuse_subscription(cs, peer, m);
        return;
    }
    struct own_leaf *leaf = &cs->leaves[at];
    struct subscriber *known = subscriber_find(leaf, peer, m->stream);
    if (known != NULL) {
        known->wants_snapshot = true;
        return;
    }
    ARRAY_RESERVE(leaf->subscribers, leaf->subscriber_room, leaf->subscriber_count + 1);
    leaf->subscribers[leaf->subscriber_count++] =
        (struct subscriber){.peer = peer, .stream = m->stream, .wants_snapshot = true};
    peer_feed_hold(cs, peer, stream_feed(cs, leaf, m->stream));
    if (m->stream == STREAM_GHOST) leaf_ghosts_on(cs, at);
}

static void subscriber_drop(struct cellserver *cs, uint32_t at, struct subscriber *subscriber)
{
    struct own_leaf *leaf = &cs->leaves[at];
    enum stream_kind stream = subscriber->stream;
    peer_feed_release(cs, subscriber->peer, stream_feed(cs, leaf, stream));
    *subscriber = leaf->subscribers[--leaf->subscriber_count];
    bool watched = false;
    for (uint32_t i = 0; i < leaf->subscriber_count; i++) watched |= leaf->subscribers[i].stream == STREAM_GHOST;
    if (stream == STREAM_GHOST && !watched) leaf_ghosts_off(cs, at);
}

void leaf_unsubscribe(struct cellserver *cs, uint32_t peer, const struct subscribe *m)
{
    uint32_t at = leaf_find(cs, m->leaf);
    if (at == NONE) return;
    struct subscriber *known = subscriber_find(&cs->leaves[at], peer, m->stream);
    if (known != NULL) subscriber_drop(cs, at, known);
}

void leaves_drop_subscriber(struct cellserver *cs, uint32_t peer)
{
    for (uint32_t at = 0; at < cs->leaf_count; at++) {
        struct own_leaf *leaf = &cs->leaves[at];
        for (uint32_t i = leaf->subscriber_count; i-- > 0;) {
            if (leaf->subscribers[i].peer == peer) subscriber_drop(cs, at, &leaf->subscribers[i]);
        }
    }
}

/* What was published while the pipe was down never reached that peer. */
void leaves_feed_up(struct cellserver *cs, uint32_t peer, uint32_t feed)
{
    for (uint32_t at = 0; at < cs->leaf_count; at++) {
        struct own_leaf *leaf = &cs->leaves[at];
        for (uint32_t i = 0; i < leaf->subscriber_count; i++) {
            struct subscriber *s = &leaf->subscribers[i];
            if (s->peer == peer && stream_feed(cs, leaf, s->stream) == feed) s->wants_snapshot = true;
        }
    }
}

void leaves_describe(void *context, uint32_t owner, struct entity_record *out)
{
    struct cellserver *cs = context;
    entity_record_of(&cs->entities[owner], out);
}

struct snapshot_target {
    struct cellserver *cs;
    uint32_t peer;
};

static void snapshot_take(void *context, const void *message, size_t size)
{
    struct snapshot_target *target = context;
    struct session *session = target->cs->peers[target->peer].session;
    if (session_push(session, message, size) != TERRANE_ERR_OK) target->cs->stats.dropped++;
}

static void leaf_send_snapshots(struct cellserver *cs, struct own_leaf *leaf)
{
    for (uint32_t i = 0; i < leaf->subscriber_count; i++) {
        struct subscriber *s = &leaf->subscribers[i];
        struct peer *peer = &cs->peers[s->peer];
        if (!s->wants_snapshot || !peer->feed_up[stream_feed(cs, leaf, s->stream)]) continue;
        /* A peer that does not take what it has asked for gets no second helping; its reader asks again. */
        if (session_queued_bytes(peer->session) > LIMIT_SURE_BYTES / 4) continue;
        s->wants_snapshot = false;
        struct snapshot_target target = {.cs = cs, .peer = s->peer};
        struct stream_writer *stream = s->stream == STREAM_GHOST ? leaf->ghost : leaf->region;
        stream_snapshot(stream, cs->tick, leaves_describe, cs, snapshot_take, &target);
    }
}

static void leaf_publish_stream(struct cellserver *cs, struct own_leaf *leaf, enum stream_kind kind)
{
    struct stream_writer *stream = kind == STREAM_GHOST ? leaf->ghost : leaf->region;
    writer_clear(&cs->frame);
    uint64_t moves = stream_counters(stream)->moves;
    if (!stream_publish(stream, cs->tick, cs->options.beat_ticks, leaves_describe, cs, &cs->frame)) return;
    outbox_push(cs->out, (struct output){.kind = OUTPUT_PUBLISH, .feed = stream_feed(cs, leaf, kind)}, cs->frame.data,
                cs->frame.size);
    if (kind == STREAM_GHOST) {
        cs->stats.ghost_frames++;
        cs->stats.ghost_bytes += cs->frame.size;
    } else {
        cs->stats.frames++;
        cs->stats.frame_bytes += cs->frame.size;
        cs->stats.frame_moves += stream_counters(stream)->moves - moves;
    }
}

void leaves_publish(struct cellserver *cs)
{
    for (uint32_t at = 0; at < cs->leaf_count; at++) {
        struct own_leaf *leaf = &cs->leaves[at];
        if (!leaf->used) continue;
        leaf_publish_stream(cs, leaf, STREAM_REGION);
        if (leaf->ghost_on) leaf_publish_stream(cs, leaf, STREAM_GHOST);
        leaf_send_snapshots(cs, leaf);
    }
}

void leaves_close(struct cellserver *cs)
{
    for (uint32_t at = 0; at < cs->leaf_count; at++) {
        if (!cs->leaves[at].used) continue;
        stream_writer_close(cs->leaves[at].region);
        stream_writer_close(cs->leaves[at].ghost);
        free(cs->leaves[at].subscribers);
        free(cs->leaves[at].near);
    }
    free(cs->leaves);
    table_close(&cs->leaf_index);
}
