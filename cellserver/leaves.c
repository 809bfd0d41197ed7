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

uint32_t leaf_open(struct cellserver *cs, const struct leaf_owner *owner)
{
    uint32_t at = 0;
    while (at < cs->leaf_count && (cs->leaves[at].used || cs->leaves[at].given_up)) at++;
    if (at == cs->leaf_count) ARRAY_RESERVE(cs->leaves, cs->leaf_room, ++cs->leaf_count);
    uint32_t feeds = cs->options.info.feed_count;
    cs->leaves[at] = (struct own_leaf){
        .used = true,
        .key = owner->leaf,
        .epoch = owner->epoch,
        .since = owner->since,
        .feed = feeds == 0 ? 0 : owner->feed % feeds,
        .square = quadkey_square(&cs->world, owner->leaf),
        .region = stream_writer_open(STREAM_REGION, owner->leaf, owner->since),
        .ghost = stream_writer_open(STREAM_GHOST, owner->leaf, owner->since),
    };
    table_put(&cs->leaf_index, owner->leaf.v, at);
    cs->stats.leaves++;
    return at;
}

/* Tells the new primary that we serve the leaf no more, after all that its standby still lacked. */
static void send_release(struct cellserver *cs, const struct leaf_owner *owner, uint64_t seq)
{
    uint32_t peer = peer_find(cs, owner->primary);
    if (peer == NONE) return;
    writer_clear(&cs->message);
    release_encode(&cs->message, &(struct release){.leaf = owner->leaf, .epoch = owner->since, .seq = seq});
    peer_send(cs, peer, &cs->message, true);
}

/* The map says that somebody else answers for this leaf, or that we do so anew: what it holds is not ours to serve any
 * more. Its entities stand where they are until leaf_clear. owner: NULL if the leaf is no more. */
static void leaf_give_up(struct cellserver *cs, uint32_t at, const struct leaf_owner *owner)
{
    struct own_leaf *leaf = &cs->leaves[at];
    char key[LIMIT_QUADKEY_TEXT];
    quadkey_text(leaf->key, key);
    outbox_log(cs->out, LOG_WARNING, "event=leaf_given_up leaf=%s epoch=%u entities=%u", key, leaf->epoch, leaf->count);
    if (owner != NULL) formers_keep_given(cs, at, owner);
    uint64_t seq = standby_close_leaf(cs, at);
    if (owner != NULL) send_release(cs, owner, seq);
    while (leaf->subscriber_count > 0) {
        struct subscriber *last = &leaf->subscribers[--leaf->subscriber_count];
        peer_feed_release(cs, last->peer, stream_feed(cs, leaf, last->stream));
    }
    table_remove(&cs->leaf_index, leaf->key.v);
    leaf->used = leaf->ghost_on = false;
    leaf->given_up = true;
    cs->stats.leaves--;
}

/* Who stood in a leaf that was given up becomes a ghost where it is in sight; what still comes for it goes on to the
 * new primary. */
static void entity_give_up(struct cellserver *cs, uint32_t at, struct quadkey key, struct node_id to)
{
    struct entity *e = &cs->entities[at];
    if (peer_find(cs, to) != NONE) {
        forward_waiting(cs, at, to);
        forward_give(cs, e->id, to);
    }
    if (e->leaving) handoff_abandon(cs, at);
    views_forget(cs, at);
    history_note(cs, at, &(struct trace_step){.cause = TRACE_GIVEN_UP, .from = key, .to = key, .node = to});
    entity_part_leaf(cs, at, LEFT_MOVED, key);
    ghost_from_owned(cs, at, key);
}

static void leaf_clear(struct cellserver *cs, uint32_t at)
{
    struct own_leaf *leaf = &cs->leaves[at];
    const struct leaf_owner *owner = ownership_leaf(&cs->map, leaf->key);
    struct node_id to = owner == NULL ? NODE_NONE : owner->primary;
    for (uint32_t i = 0; i < cs->entity_count && leaf->count > 0; i++) {
        struct entity *e = &cs->entities[i];
        if (e->status == ENTITY_OWNED && e->leaf == at) entity_give_up(cs, i, leaf->key, to);
    }
    stream_writer_close(leaf->region);
    stream_writer_close(leaf->ghost);
    free(leaf->subscribers);
    free(leaf->near);
    *leaf = (struct own_leaf){0};
}

static bool ours(const struct cellserver *cs, const struct leaf_owner *owner)
{
    return owner != NULL && node_id_equal(owner->primary, cs->options.info.node);
}

/* A leaf that is ours under a later `since` has been another's meanwhile: what we have of it is not what it is. */
static void leaf_take(struct cellserver *cs, const struct leaf_owner *owner)
{
    uint32_t at = leaf_find(cs, owner->leaf);
    if (at == NONE) {
        if (replica_find(cs, owner->leaf) == NULL) leaf_open(cs, owner);
    } else if (owner->epoch > cs->leaves[at].epoch) {
        cs->leaves[at].epoch = owner->epoch;
    }
}

void leaves_sync(struct cellserver *cs)
{
    bool given_up = false;
    for (uint32_t i = 0; i < cs->leaf_count; i++) {
        if (!cs->leaves[i].used) continue;
        const struct leaf_owner *owner = ownership_leaf(&cs->map, cs->leaves[i].key);
        if (ours(cs, owner) && owner->since <= cs->leaves[i].since) continue;
        if (!given_up) entities_apply_moves(cs); /* what has been taken from a gateway is not taken back */
        given_up = true;
        leaf_give_up(cs, i, owner);
    }
    replica_sync(cs);
    for (uint32_t i = 0; i < cs->map.now.leaf_count; i++) {
        const struct leaf_owner *owner = &cs->map.now.leaves[i];
        if (quadkey_depth(owner->leaf) > cs->world.depth) {
            cs->stats.malformed++;
            continue;
        }
        if (ours(cs, owner)) leaf_take(cs, owner);
    }
    ghosts_sync(cs);
    for (uint32_t i = 0; given_up && i < cs->leaf_count; i++) {
        if (cs->leaves[i].given_up) leaf_clear(cs, i);
    }
}

void leaf_refuse_subscription(struct cellserver *cs, uint32_t peer, const struct subscribe *m)
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

/* The readers of a leaf that has just been promoted have been without news for long enough: they don't wait for the
 * tick. */
static void leaf_hurry(struct cellserver *cs, uint32_t at)
{
    if (cs->leaves[at].hold_until_us > cs->now_us) leaf_publish_now(cs, at);
}

void leaf_subscribe(struct cellserver *cs, uint32_t peer, const struct subscribe *m)
{
    uint32_t at = leaf_find(cs, m->leaf);
    if (at == NONE || cs->peers[peer].info.sub_url[0] == '\0') {
        if (at != NONE || !replica_early_reader(cs, peer, m)) leaf_refuse_subscription(cs, peer, m);
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
    leaf_hurry(cs, at);
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
    if (at == NONE) {
        replica_drop_reader(cs, peer, m);
        return;
    }
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
        leaf_hurry(cs, at);
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

void leaf_publish_now(struct cellserver *cs, uint32_t at)
{
    struct own_leaf *leaf = &cs->leaves[at];
    if (!leaf->used || !leaf_serves(cs, at)) return;
    leaf_publish_stream(cs, leaf, STREAM_REGION);
    if (leaf->ghost_on) leaf_publish_stream(cs, leaf, STREAM_GHOST);
    leaf_send_snapshots(cs, leaf);
}

void leaves_publish(struct cellserver *cs)
{
    for (uint32_t at = 0; at < cs->leaf_count; at++) leaf_publish_now(cs, at);
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
