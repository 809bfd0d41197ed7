/* What primaries tell us of the leaves that we stand by for, and what we tell them (replica.h).
 *
 * Whom we believe. A primary's message counts if the map names it and us for that leaf, or if it speaks of an epoch
 * that our map has not reached; else it is refused, so that it does not take our acks for leave to serve. A message of
 * a new primary replaces what the old one has told. Epochs only rise: the map may raise a leaf's epoch while the pair
 * stays the same, but what we say that we hold goes by the primary's own messages, since only they prove that it has
 * not spoken to another standby in between.
 *
 * Acks are cumulative and go out at the end of a step: after a beat for all leaves with news, after puts and drops
 * for the sake of those who wait for them. They ride the sure lane, so a refusal can't be overtaken by a later stamp:
 * from the first refusal on, no ack gives the primary leave to serve that leaf. */
#include "cellserver/internal.h"

#include <stdlib.h>

#define ASK_EVERY_US        UINT64_C(1000000) /* for a snapshot, while none comes */
#define HELD_MAX            (2u * LIMIT_ENTITIES)
#define COMMANDS_KEPT_BYTES (1u << 20) /* a leaf, until it is promoted: a lease's worth; then they are refused */

static struct held_leaf *leaf_of(const struct cellserver *cs, struct quadkey key)
{
    uint32_t at = table_get(&cs->held.index, key.v);
    return at == TABLE_NONE ? NULL : &cs->held.leaves[at];
}

struct held_leaf *replica_find(const struct cellserver *cs, struct quadkey key)
{
    return leaf_of(cs, key);
}

static void held_follows(struct cellserver *cs, struct held_leaf *leaf, struct node_id primary)
{
    leaf->primary = primary;
    leaf->named_term = ownership_node(&cs->map, primary) == NULL ? 0 : cs->map.term;
}

struct held_leaf *replica_begin(struct cellserver *cs, struct quadkey key, struct node_id primary)
{
    struct held_side *s = &cs->held;
    uint32_t at = 0;
    CHECK(s->count == 0 || s->leaves != NULL);
    while (at < s->count && s->leaves[at].used) at++;
    if (at == s->count) ARRAY_RESERVE(s->leaves, s->room, ++s->count);
    s->leaves[at] = (struct held_leaf){.used = true, .key = key, .asked_us = cs->now_us};
    held_follows(cs, &s->leaves[at], primary);
    table_put(&s->index, key.v, at);
    s->used++;
    return &s->leaves[at];
}

static void content_close(struct cellserver *cs, struct held_content *content)
{
    cs->stats.replicas -= content->count;
    held_close(content);
}

static void incoming_close(struct cellserver *cs, struct held_leaf *leaf)
{
    content_close(cs, &leaf->incoming.content);
    leaf->incoming.active = false;
}

void replica_set_level(struct cellserver *cs, struct held_leaf *leaf, bool level)
{
    if (leaf->level == level) return;
    leaf->level = level;
    cs->stats.replica_leaves += level ? 1 : UINT32_MAX;
    cs->report_due = true;
}

/* Forgets what the primary has told, not whom we stand by for. */
static void held_empty(struct cellserver *cs, struct held_leaf *leaf)
{
    replica_set_level(cs, leaf, false);
    incoming_close(cs, leaf);
    content_close(cs, &leaf->content);
    leaf->epoch = 0;
    leaf->seq = leaf->acked = leaf->raise = 0;
}

static void early_refuse(struct cellserver *cs, struct held_leaf *leaf)
{
    for (uint32_t i = 0; i < leaf->early_count; i++) {
        uint32_t peer = peer_find(cs, leaf->early[i].node);
        struct subscribe m = {.stream = leaf->early[i].stream, .leaf = leaf->key};
        if (peer == NONE) continue;
        peer_feed_release(cs, peer, leaf->early[i].feed);
        leaf_refuse_subscription(cs, peer, &m);
    }
    leaf->early_count = 0;
}

void replica_free(struct cellserver *cs, struct held_leaf *leaf)
{
    early_refuse(cs, leaf);
    held_empty(cs, leaf);
    if (leaf->promoting) cs->held.promoting--;
    held_commands_free(leaf->commands, leaf->command_count);
    free(leaf->early);
    table_remove(&cs->held.index, leaf->key.v);
    *leaf = (struct held_leaf){0};
    cs->held.used--;
}

static void ack_due(struct cellserver *cs, struct node_id primary)
{
    uint32_t peer = peer_find(cs, primary);
    if (peer == NONE) return;
    cs->peers[peer].beats.due = true;
    cs->held.due = true;
}

void replica_refuse(struct cellserver *cs, struct node_id primary, struct quadkey leaf, uint32_t epoch)
{
    struct held_side *s = &cs->held;
    if (MUTATION(PROMOTED_ACKS)) return;
    ack_due(cs, primary);
    for (uint32_t i = 0; i < s->refusal_count; i++) {
        struct standby_refusal *known = &s->refusals[i];
        if (!quadkey_equal(known->leaf, leaf) || !node_id_equal(known->primary, primary)) continue;
        if (epoch > known->epoch) known->epoch = epoch;
        return;
    }
    ARRAY_RESERVE(s->refusals, s->refusal_room, s->refusal_count + 1);
    s->refusals[s->refusal_count++] = (struct standby_refusal){.primary = primary, .leaf = leaf, .epoch = epoch};
}

/* The content does not follow the primary any more. */
static void held_break(struct cellserver *cs, struct held_leaf *leaf, uint32_t epoch, const char *why)
{
    char key[LIMIT_QUADKEY_TEXT];
    quadkey_text(leaf->key, key);
    outbox_log(cs->out, LOG_WARNING, "event=replica_broken leaf=%s epoch=%u seq=%llu why=\"%s\"", key, leaf->epoch,
               (unsigned long long)leaf->seq, why);
    cs->stats.replicas_broken++;
    held_empty(cs, leaf);
    leaf->epoch = epoch;
    leaf->ask = true;
    leaf->asked_us = cs->now_us;
    ack_due(cs, leaf->primary);
}

static bool item_fits(const struct cellserver *cs, const struct standby_item *item)
{
    const struct entity_record *record = &item->transfer.record;
    return world_contains(&cs->world, record->position) && record->radius <= cs->world.radius_max &&
           cs->stats.replicas < HELD_MAX;
}

/* NULL: all of it fitted. */
static const char *put_all(struct cellserver *cs, struct held_content *content, struct standby *m)
{
    struct standby_item item;
    while (standby_next_put(m, &item)) {
        uint32_t before = content->count;
        if (!item_fits(cs, &item)) return "an entity does not fit this world";
        if (!held_put(content, &item)) return "a slot is taken";
        cs->stats.replicas += content->count - before;
    }
    return NULL;
}

static const char *change_all(struct cellserver *cs, struct held_leaf *leaf, struct standby *m)
{
    struct entity_id id;
    struct standby_move move;
    while (standby_next_drop(m, &id)) {
        const struct held_entity *e = held_find(&leaf->content, id);
        /* Whoever OFFERs it later holds the past; but what was only pending may still be its source's. */
        if (e != NULL && !e->pending) forward_depart(cs, id, e->version + 1, NODE_NONE);
        if (!MUTATION(DROP_LOST) && held_drop(&leaf->content, id)) cs->stats.replicas--;
    }
    const char *why = put_all(cs, &leaf->content, m);
    if (why != NULL) return why;
    while (standby_next_move(m, &move)) {
        if (!MUTATION(MOVES_UNAPPLIED) && !held_move(&leaf->content, &cs->world, &move)) return "a move fits nobody";
    }
    return NULL;
}

/* The old content stays what it was until the last part is there: a primary that dies in between leaves that. */
static void snapshot_part(struct cellserver *cs, struct held_leaf *leaf, struct standby *m)
{
    if (m->part == 0) {
        incoming_close(cs, leaf);
        leaf->incoming.active = true;
        leaf->incoming.epoch = m->epoch;
        leaf->incoming.parts = m->parts;
        leaf->incoming.next = 0;
    } else if (!leaf->incoming.active || m->epoch != leaf->incoming.epoch || m->parts != leaf->incoming.parts ||
               m->part != leaf->incoming.next || m->seq != leaf->incoming.seq + 1) {
        held_break(cs, leaf, m->epoch, "a part of a snapshot is missing");
        return;
    }
    leaf->incoming.seq = m->seq;
    leaf->incoming.next++;
    const char *why = put_all(cs, &leaf->incoming.content, m);
    if (why != NULL) {
        held_break(cs, leaf, m->epoch, why);
        return;
    }
    if (leaf->incoming.next < leaf->incoming.parts) return;
    content_close(cs, &leaf->content);
    leaf->content = leaf->incoming.content;
    leaf->incoming.content = (struct held_content){0};
    leaf->incoming.active = false;
    leaf->epoch = m->epoch;
    leaf->seq = m->seq;
    leaf->acked = 0;
    leaf->raise = 0;
    leaf->ask = false;
    replica_set_level(cs, leaf, true);
    cs->report_due = true;
    ack_due(cs, leaf->primary);
}

static void changes(struct cellserver *cs, struct held_leaf *leaf, struct standby *m)
{
    if (!leaf->level) {
        /* Perhaps its snapshot is lost to us because our map was behind when it came. */
        if (!leaf->ask) held_break(cs, leaf, m->epoch, "changes without a snapshot");
        return;
    }
    bool rises = m->epoch > leaf->epoch;
    if (leaf->incoming.active || m->seq != (rises && m->seq == 1 ? 1 : leaf->seq + 1)) {
        held_break(cs, leaf, m->epoch, leaf->incoming.active ? "changes within a snapshot" : "a message is missing");
        return;
    }
    if (rises) {
        cs->report_due = true;
        leaf->acked = 0;
    }
    leaf->epoch = m->epoch;
    leaf->seq = m->seq;
    bool urgent = m->put_count + m->drop_count > 0;
    const char *why = change_all(cs, leaf, m);
    if (why != NULL)
        held_break(cs, leaf, m->epoch, why);
    else if (urgent)
        ack_due(cs, leaf->primary);
}

/* Whether we stand by for that peer's leaf as far as we know; our map may be behind the peer's. */
static bool stands(const struct cellserver *cs, const struct node_info *peer, const struct standby *m)
{
    const struct leaf_owner *owner = ownership_leaf(&cs->map, m->leaf);
    const struct held_leaf *held = leaf_of(cs, m->leaf);
    if (quadkey_depth(m->leaf) > cs->world.depth) return false;
    if (held != NULL && held->promoting) return node_id_equal(held->primary, peer->node);
    if (owner == NULL || owner->epoch < m->epoch) return held != NULL || cs->held.used < LIMIT_LEAVES;
    return node_id_equal(owner->primary, peer->node) && node_id_equal(owner->standby, cs->options.info.node);
}

void replica_receive(struct cellserver *cs, uint32_t peer, struct standby *m)
{
    const struct node_info *from = &cs->peers[peer].info;
    if (!stands(cs, from, m)) {
        cs->stats.stale++;
        replica_refuse(cs, from->node, m->leaf, m->epoch);
        return;
    }
    struct held_leaf *leaf = leaf_of(cs, m->leaf);
    if (leaf == NULL) leaf = replica_begin(cs, m->leaf, from->node);
    if (!node_id_equal(leaf->primary, from->node)) {
        if (m->epoch <= leaf->epoch) {
            cs->stats.stale++;
            replica_refuse(cs, from->node, m->leaf, m->epoch);
            return;
        }
        held_empty(cs, leaf);
        held_follows(cs, leaf, from->node);
    }
    if (leaf->promoting) replica_refuse(cs, from->node, m->leaf, m->epoch);
    if (m->epoch < leaf->epoch) {
        cs->stats.stale++;
    } else if (m->parts > 0) {
        snapshot_part(cs, leaf, m);
    } else {
        changes(cs, leaf, m);
    }
}

void replica_beat(struct cellserver *cs, uint32_t peer, uint64_t stamp)
{
    struct standby_beats *beats = &cs->peers[peer].beats;
    beats->stamp = stamp;
    beats->heard_us = cs->now_us;
    beats->due = true;
    cs->held.due = true;
}

/* The leaf goes on elsewhere. A successor as its standby may not be level before the primary dies, or the primary may
 * die before it hears that it has no standby; so our copy is kept, and may still be promoted, until the primary says
 * that it is out of date (formers.h), also if we are to stand by once more. */
static void held_follow(struct cellserver *cs, struct held_leaf *leaf, const struct leaf_owner *owner)
{
    bool mine = node_id_equal(owner->standby, cs->options.info.node);
    bool same = node_id_equal(owner->primary, leaf->primary);
    if (owner->epoch < leaf->epoch || (same && mine && !leaf->retired)) return;
    if (!same || !leaf->level) {
        replica_free(cs, leaf);
    } else if (mine) {
        leaf->retired = false;
    } else if (!leaf->retired) {
        leaf->retired = true;
        early_refuse(cs, leaf);
    }
}

void replica_ended(struct cellserver *cs, uint32_t peer, const struct standby_end *m)
{
    struct held_leaf *leaf = leaf_of(cs, m->leaf);
    uint32_t own = leaf_find(cs, m->leaf);
    if (own != NONE && m->epoch > cs->leaves[own].epoch) cs->leaves[own].outdated = true; /* our map is behind */
    bool ours = leaf != NULL && !leaf->promoting && node_id_equal(leaf->primary, cs->peers[peer].info.node);
    if (!ours || m->epoch <= leaf->epoch) {
        cs->stats.stale++;
        return;
    }
    replica_free(cs, leaf);
}

bool replica_is_ending(const struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->held.count; i++) {
        if (cs->held.leaves[i].retired || cs->held.leaves[i].promoting) return true;
    }
    return false;
}

/* After a map change: whom we stand by for, and which leaves have become ours. */
void replica_sync(struct cellserver *cs)
{
    struct held_side *s = &cs->held;
    struct node_id self = cs->options.info.node;
    for (uint32_t i = 0; i < s->count; i++) {
        struct held_leaf *leaf = &s->leaves[i];
        if (!leaf->used) continue;
        if (ownership_node(&cs->map, leaf->primary) != NULL) leaf->named_term = cs->map.term;
        const struct leaf_owner *owner = ownership_leaf(&cs->map, leaf->key);
        if (owner == NULL) {
            replica_free(cs, leaf);
        } else if (node_id_equal(owner->primary, self)) {
            promote_begin(cs, leaf);
        } else if (leaf->promoting) {
            replica_free(cs, leaf); /* its acks were refused: another standby of the same leaf begins */
        } else {
            held_follow(cs, leaf, owner);
        }
    }
    for (uint32_t i = 0; i < cs->map.now.leaf_count; i++) {
        const struct leaf_owner *owner = &cs->map.now.leaves[i];
        if (!node_id_equal(owner->standby, self) || owner->primary.v == 0 || node_id_equal(owner->primary, self)) {
            continue;
        }
        if (quadkey_depth(owner->leaf) <= cs->world.depth && leaf_of(cs, owner->leaf) == NULL) {
            replica_begin(cs, owner->leaf, owner->primary);
        }
    }
}

static uint32_t acks_write(struct cellserver *cs, struct node_id primary, struct writer *w)
{
    struct held_side *s = &cs->held;
    uint32_t count = 0, kept = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        struct held_leaf *leaf = &s->leaves[i];
        if (!leaf->used || leaf->promoting || leaf->retired || !node_id_equal(leaf->primary, primary)) continue;
        if (leaf->ask) {
            leaf->ask = false;
            const struct leaf_owner *owner = ownership_leaf(&cs->map, leaf->key);
            uint32_t epoch = owner != NULL && owner->epoch > leaf->epoch ? owner->epoch : leaf->epoch;
            standby_ack_add(w, &(struct standby_ack_item){.leaf = leaf->key, .epoch = epoch});
        } else if (leaf->level && leaf->seq != leaf->acked) {
            leaf->acked = leaf->seq;
            standby_ack_add(w, &(struct standby_ack_item){.leaf = leaf->key, .epoch = leaf->epoch, .seq = leaf->seq});
        } else {
            continue;
        }
        count++;
    }
    for (uint32_t i = 0; i < s->refusal_count; i++) {
        struct standby_refusal refusal = s->refusals[i];
        if (!node_id_equal(refusal.primary, primary)) {
            s->refusals[kept++] = refusal;
            continue;
        }
        standby_ack_add(w, &(struct standby_ack_item){.leaf = refusal.leaf, .epoch = refusal.epoch, .refused = true});
        count++;
    }
    s->refusal_count = kept;
    return count;
}

void replica_flush(struct cellserver *cs)
{
    if (!cs->held.due) return;
    cs->held.due = false;
    for (uint32_t at = 0; at < cs->peer_count; at++) {
        struct peer *peer = &cs->peers[at];
        if (!peer->used || !peer->beats.due) continue;
        peer->beats.due = false;
        writer_clear(&cs->scratch);
        uint32_t count = acks_write(cs, peer->info.node, &cs->scratch);
        writer_clear(&cs->message);
        standby_ack_begin(&cs->message, &(struct standby_ack){.stamp = peer->beats.stamp, .count = count});
        writer_raw(&cs->message, cs->scratch.data, cs->scratch.size);
        peer_send(cs, at, &cs->message, true);
    }
}

void replica_ack_tick(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->held.count; i++) {
        struct held_leaf *leaf = &cs->held.leaves[i];
        bool waits = leaf->used && !leaf->level && !leaf->promoting && !leaf->incoming.active;
        if (!waits || cs->now_us - leaf->asked_us < ASK_EVERY_US) continue;
        leaf->ask = true;
        leaf->asked_us = cs->now_us;
        ack_due(cs, leaf->primary);
    }
}

static bool could_serve(const struct held_leaf *leaf)
{
    return leaf->used && leaf->level && !leaf->promoting;
}

void replica_stands(struct cellserver *cs, struct writer *w)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < cs->held.count; i++) count += could_serve(&cs->held.leaves[i]);
    heartbeat_stands(w, count);
    for (uint32_t i = 0; i < cs->held.count; i++) {
        const struct held_leaf *leaf = &cs->held.leaves[i];
        if (!could_serve(leaf)) continue;
        heartbeat_add_stand(w, &(struct leaf_stand){.leaf = leaf->key, .epoch = leaf->epoch});
    }
}

static bool nearly_ours(const struct held_leaf *leaf)
{
    return leaf->promoting || leaf->released > 0;
}

/* The standby leaf in which the entity is, and which is about to be ours if there are several; NULL: none. */
static struct held_leaf *holder_of(const struct cellserver *cs, struct entity_id id)
{
    struct held_leaf *found = NULL;
    for (uint32_t i = 0; i < cs->held.count; i++) {
        struct held_leaf *leaf = &cs->held.leaves[i];
        if (!leaf->used || held_find(&leaf->content, id) == NULL) continue;
        if (found == NULL || nearly_ours(leaf)) found = leaf;
    }
    return found;
}

bool replica_holds(const struct cellserver *cs, struct entity_id id)
{
    return holder_of(cs, id) != NULL;
}

bool replica_promotes(const struct cellserver *cs, struct entity_id id)
{
    const struct held_leaf *leaf = cs->held.promoting == 0 ? NULL : holder_of(cs, id);
    return leaf != NULL && leaf->promoting;
}

bool replica_keep_command(struct cellserver *cs, struct entity_id id, struct node_id gateway, uint32_t hops,
                          struct cursor command)
{
    struct held_leaf *leaf = holder_of(cs, id);
    size_t size = (size_t)(command.end - command.at);
    if (leaf == NULL || !nearly_ours(leaf)) return false;
    if (leaf->command_bytes + size > COMMANDS_KEPT_BYTES) {
        cs->stats.dropped++;
        return false;
    }
    leaf->command_bytes += size;
    ARRAY_RESERVE(leaf->commands, leaf->command_room, leaf->command_count + 1);
    struct held_command *kept = &leaf->commands[leaf->command_count++];
    *kept = (struct held_command){.gateway = gateway, .hops = hops};
    writer_raw(&kept->command, command.at, size);
    return true;
}

/* What a primary tells of positions has no sequence, so a move that went astray could not be told from a newer one.
 * Only those that the gateway sends to us, because it knows that we are to be the owner, are newer than all that its
 * former owner had. */
bool replica_keep_move(struct cellserver *cs, struct node_id gateway, uint64_t sequence, const struct move *move)
{
    struct held_leaf *leaf = holder_of(cs, move->id);
    if (leaf == NULL || !nearly_ours(leaf) || !world_contains(&cs->world, move->position)) return false;
    struct held_entity *e = held_find(&leaf->content, move->id);
    if (!node_id_equal(e->gateway, gateway) || sequence <= e->position_sequence || sequence <= e->move_sequence) {
        return false;
    }
    e->move_sequence = sequence;
    e->move_position = move->position;
    e->move_yaw = move->yaw;
    return true;
}

static void early_drop(struct cellserver *cs, struct held_leaf *leaf, uint32_t at)
{
    uint32_t peer = peer_find(cs, leaf->early[at].node);
    if (peer != NONE) peer_feed_release(cs, peer, leaf->early[at].feed);
    leaf->early[at] = leaf->early[--leaf->early_count];
}

/* A reader that asks beforehand, or whose map is ahead of ours, or of a leaf that is not quite ours yet. */
bool replica_early_reader(struct cellserver *cs, uint32_t peer, const struct subscribe *m)
{
    struct held_leaf *leaf = leaf_of(cs, m->leaf);
    struct node_id node = cs->peers[peer].info.node;
    if (leaf == NULL || cs->peers[peer].info.sub_url[0] == '\0') return false;
    for (uint32_t i = 0; i < leaf->early_count; i++) {
        if (node_id_equal(leaf->early[i].node, node) && leaf->early[i].stream == m->stream) return true;
    }
    ARRAY_RESERVE(leaf->early, leaf->early_room, leaf->early_count + 1);
    const struct leaf_owner *owner = ownership_leaf(&cs->map, m->leaf);
    uint32_t feeds = cs->options.info.feed_count, feed = owner == NULL || feeds == 0 ? 0 : owner->feed % feeds;
    if (m->stream == STREAM_GHOST) feed = ghost_feed(cs);
    leaf->early[leaf->early_count++] = (struct early_reader){.node = node, .stream = m->stream, .feed = feed};
    peer_feed_hold(cs, peer, feed);
    return true;
}

void replica_drop_reader(struct cellserver *cs, uint32_t peer, const struct subscribe *m)
{
    struct held_leaf *leaf = leaf_of(cs, m->leaf);
    struct node_id node = cs->peers[peer].info.node;
    for (uint32_t i = 0; leaf != NULL && i < leaf->early_count; i++) {
        if (!node_id_equal(leaf->early[i].node, node) || leaf->early[i].stream != m->stream) continue;
        early_drop(cs, leaf, i);
        return;
    }
}

/* What it has told stays: it may be needed now. */
void replica_peer_gone(struct cellserver *cs, struct node_id node)
{
    struct held_side *s = &cs->held;
    uint32_t peer = peer_find(cs, node);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->refusal_count; i++) {
        if (!node_id_equal(s->refusals[i].primary, node)) s->refusals[kept++] = s->refusals[i];
    }
    s->refusal_count = kept;
    for (uint32_t i = 0; i < s->count; i++) {
        struct held_leaf *leaf = &s->leaves[i];
        bool its = leaf->used && !leaf->promoting && node_id_equal(leaf->primary, node);
        if (its && peer != NONE) leaf->quiet_us = cs->peers[peer].beats.heard_us;
        for (uint32_t j = leaf->early_count; j-- > 0;) {
            if (node_id_equal(leaf->early[j].node, node)) early_drop(cs, leaf, j);
        }
    }
}

void cellserver_replicas(const struct cellserver *cs,
                         void (*each)(void *context, struct quadkey leaf, uint32_t epoch, bool level,
                                      const struct cellserver_entity *entity),
                         void *context)
{
    for (uint32_t i = 0; i < cs->held.count; i++) {
        const struct held_leaf *leaf = &cs->held.leaves[i];
        if (!leaf->used) continue;
        for (uint32_t at = 0; at < leaf->content.end; at++) {
            const struct held_entity *e = &leaf->content.entities[at];
            if (e->id.v == 0) continue;
            struct transfer transfer;
            held_transfer(&leaf->content, e, &transfer);
            struct cellserver_entity entity = {
                .record = transfer.record, .gateway = e->gateway, .leaf = leaf->key, .leaving = e->leaving_to.v != 0};
            each(context, leaf->key, leaf->epoch, leaf->level, &entity);
        }
    }
}

void replica_close_all(struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->held.count; i++) {
        if (!cs->held.leaves[i].used) continue;
        cs->held.leaves[i].early_count = 0; /* nobody is there to be told */
        replica_free(cs, &cs->held.leaves[i]);
    }
    free(cs->held.leaves);
    free(cs->held.refusals);
    table_close(&cs->held.index);
}
