/* From the AOI's spans to what each gateway is told of each observer's view.
 *
 * During a step, changes are chained per observer; at the end of the tick they are netted (a see and an unsee of one
 * pair cancel), sorted, and written as items of one VIEWS message per gateway. An observer marked view_whole gets
 * its whole view instead: after an enter, a change of leaf or owner, or when changes had to be dropped because its
 * gateway did not take them. */
#include "cellserver/internal.h"

#include <stdlib.h>

#define SETTLE_TICKS 2u    /* from when all near leaves are level until all that is on its way between them has come */
#define ITEM_IDS     4000u /* 9 bytes each at most: an item stays below LIMIT_MESSAGE_BYTES */

void views_touch(struct cellserver *cs, uint32_t at)
{
    struct entity *e = &cs->entities[at];
    if (e->touched) return;
    e->touched = true;
    ARRAY_RESERVE(cs->touched, cs->touched_room, cs->touched_count + 1);
    cs->touched[cs->touched_count++] = at;
}

void views_forget(struct cellserver *cs, uint32_t at)
{
    cs->entities[at].view_head = NONE;
    cs->entities[at].view_whole = false;
}

static void note(struct cellserver *cs, uint32_t observer, uint32_t subject, bool see)
{
    struct entity *e = &cs->entities[observer];
    if (e->status != ENTITY_OWNED) return;
    views_touch(cs, observer);
    if (e->view_whole) return;
    ARRAY_RESERVE(cs->changes, cs->change_room, cs->change_count + 1);
    cs->changes[cs->change_count] =
        (struct view_change){.subject = cs->entities[subject].id.v, .next = e->view_head, .see = see};
    e->view_head = cs->change_count++;
}

static uint32_t entity_of(const struct cellserver *cs, uint32_t handle)
{
    uint32_t at = handle < cs->handle_room ? cs->entity_of_handle[handle] : NONE;
    if (at == NONE) at = cs->entering;
    CHECK(at != NONE);
    return at;
}

void views_sink(void *context, const struct aoi_span *spans, size_t count)
{
    struct cellserver *cs = context;
    for (size_t i = 0; i < count; i++) {
        const struct aoi_span *span = &spans[i];
        uint32_t subject = entity_of(cs, span->subject);
        bool see = (span->change & (AOI_SEE | AOI_SEEN_BY)) != 0;
        for (uint32_t j = 0; j < span->count; j++) {
            uint32_t other = entity_of(cs, span->others[j]);
            if (span->change & (AOI_SEE | AOI_UNSEE)) note(cs, subject, other, see);
            if (span->change & (AOI_SEEN_BY | AOI_UNSEEN_BY)) note(cs, other, subject, see);
        }
    }
}

/* Heap sort: in place and without the allocation that qsort makes. */
static void sift(uint64_t *ids, size_t root, size_t count)
{
    for (size_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        if (child + 1 < count && ids[child] < ids[child + 1]) child++;
        if (ids[root] >= ids[child]) return;
        uint64_t swap = ids[root];
        ids[root] = ids[child];
        ids[child] = swap;
        root = child;
    }
}

void sort_ids(uint64_t *ids, size_t count)
{
    for (size_t i = count / 2; i-- > 0;) sift(ids, i, count);
    for (size_t end = count; end-- > 1;) {
        uint64_t swap = ids[0];
        ids[0] = ids[end];
        ids[end] = swap;
        sift(ids, 0, end);
    }
}

static void peer_send_views(struct cellserver *cs, uint32_t at)
{
    struct peer *peer = &cs->peers[at];
    if (peer->view_items == 0) return;
    writer_clear(&cs->message);
    views_begin(&cs->message, &(struct views){.tick = cs->tick, .count = peer->view_items});
    writer_raw(&cs->message, peer->views.data, peer->views.size);
    bool room = session_queued_bytes(peer->session) < LIMIT_SURE_BYTES / 2;
    if (!room || !peer_send(cs, at, &cs->message, false)) {
        peer->resync = true;
        cs->stats.views_dropped += peer->view_items;
    }
    peer->view_items = 0;
    writer_clear(&peer->views);
}

static void add_item(struct cellserver *cs, uint32_t at, const struct view_item *item, const uint64_t *unsee,
                     const uint64_t *see)
{
    struct peer *peer = &cs->peers[at];
    size_t bound = 64 + 9 * ((size_t)item->unsee_count + item->see_count);
    if (peer->views.size + bound > LIMIT_MESSAGE_BYTES - 64) peer_send_views(cs, at);
    views_add(&peer->views, item);
    for (uint32_t i = 0; i < item->unsee_count; i++) entity_add(&peer->views, (struct entity_id){unsee[i]});
    entity_list(&peer->views, item->see_count);
    for (uint32_t i = 0; i < item->see_count; i++) entity_add(&peer->views, (struct entity_id){see[i]});
    peer->view_items++;
}

static void add_whole(struct cellserver *cs, uint32_t peer, const struct entity *e)
{
    size_t count = aoi_view(cs->aoi, e->aoi, cs->handles, cs->query_room);
    if (count > cs->query_room) {
        ARRAY_RESERVE(cs->handles, cs->query_room, count);
        count = aoi_view(cs->aoi, e->aoi, cs->handles, cs->query_room);
    }
    ARRAY_RESERVE(cs->ids, cs->id_room, count);
    for (size_t i = 0; i < count; i++) cs->ids[i] = cs->entities[entity_of(cs, cs->handles[i])].id.v;
    sort_ids(cs->ids, count);
    size_t done = 0;
    do {
        uint32_t part = count - done > ITEM_IDS ? ITEM_IDS : (uint32_t)(count - done);
        struct view_item item = {.observer = e->id, .version = e->version, .see_count = part};
        item.part = done + part < count ? VIEW_WHOLE_MORE : VIEW_WHOLE_LAST;
        add_item(cs, peer, &item, NULL, cs->ids + done);
        done += part;
    } while (done < count);
    cs->stats.views_whole++;
}

/* Nets an observer's chain into cs->ids: unsee ids ascending, then see ids ascending. A pair's changes alternate, so
 * an even number of them is none, and of an odd number the newest (first in the chain) is what remains. */
static uint32_t net_changes(struct cellserver *cs, const struct entity *e, uint32_t *unsee_count)
{
    uint32_t total = 0;
    for (uint32_t at = e->view_head; at != NONE; at = cs->changes[at].next) total++;
    ARRAY_RESERVE(cs->ids, cs->id_room, 2 * (size_t)total);
    uint64_t *sees = cs->ids, *unsees = cs->ids + total;
    uint32_t see = 0, unsee = 0;
    for (uint32_t at = e->view_head; at != NONE; at = cs->changes[at].next) {
        if (cs->changes[at].see) {
            sees[see++] = cs->changes[at].subject;
        } else {
            unsees[unsee++] = cs->changes[at].subject;
        }
    }
    sort_ids(sees, see);
    sort_ids(unsees, unsee);
    /* Merge the two sorted lists, dropping one see against one unsee of the same subject. */
    uint32_t i = 0, j = 0, kept_see = 0, kept_unsee = 0;
    while (i < see || j < unsee) {
        if (i < see && j < unsee && sees[i] == unsees[j]) {
            i++;
            j++;
        } else if (j == unsee || (i < see && sees[i] < unsees[j])) {
            sees[kept_see++] = sees[i++];
        } else {
            unsees[kept_unsee++] = unsees[j++];
        }
    }
    *unsee_count = kept_unsee;
    return kept_see;
}

static void add_changes(struct cellserver *cs, uint32_t peer, const struct entity *e)
{
    uint32_t total = 0, unsee_count;
    for (uint32_t at = e->view_head; at != NONE; at = cs->changes[at].next) total++;
    uint32_t see_count = net_changes(cs, e, &unsee_count);
    cs->stats.view_changes += see_count + unsee_count;
    uint32_t unsees = 0, sees = 0;
    while (unsees < unsee_count || sees < see_count) {
        struct view_item item = {.observer = e->id, .version = e->version, .part = VIEW_CHANGES};
        item.unsee_count = unsee_count - unsees > ITEM_IDS ? ITEM_IDS : unsee_count - unsees;
        uint32_t room = ITEM_IDS - item.unsee_count;
        item.see_count = see_count - sees > room ? room : see_count - sees;
        add_item(cs, peer, &item, cs->ids + total + unsees, cs->ids + sees);
        unsees += item.unsee_count;
        sees += item.see_count;
    }
}

/* A gateway whose changes were dropped has taken enough of its queue: tell it everything anew. */
static void resync(struct cellserver *cs, uint32_t at)
{
    struct peer *peer = &cs->peers[at];
    if (session_queued_bytes(peer->session) > LIMIT_SURE_BYTES / 4) return;
    peer->resync = false;
    for (uint32_t i = 0; i < cs->entity_count; i++) {
        struct entity *e = &cs->entities[i];
        if (e->status != ENTITY_OWNED || !node_id_equal(e->gateway, peer->info.node)) continue;
        e->view_whole = true;
        views_touch(cs, i);
    }
}

/* Content from before is not enough: a former owner of both leaves did not show one to the other. Nor is a snapshot of
 * each leaf: what goes from one to another between the two is in neither, but in a frame that comes a tick later. */
static void ghosts_await(struct cellserver *cs, struct own_leaf *leaf)
{
    leaf->views_held = leaf->rim_held = false;
    if (!leaf->used || leaf->rim_until_us <= cs->now_us) return;
    bool alone = true, level = true;
    for (uint32_t i = 0; i < cs->watched_count; i++) {
        if (!leaf_neighbours(cs, leaf, cs->watched[i])) continue;
        alone = false;
        level &= replicas_sure(cs->ghosts, cs->watched[i]);
    }
    if (!level || leaf->level_us == 0) leaf->level_us = level ? cs->now_us : 0;
    uint64_t tick_us = cellserver_tick_us(cs);
    bool awaited = !alone && (!level || cs->now_us < leaf->level_us + SETTLE_TICKS * tick_us - tick_us / 2);
    leaf->views_held = awaited && (level || cs->now_us < leaf->hold_until_us);
    leaf->rim_held = awaited && !leaf->views_held;
}

static bool reaches_unknown(const struct cellserver *cs, const struct entity *e)
{
    for (uint32_t i = 0; i < cs->watched_count; i++) {
        if (replicas_sure(cs->ghosts, cs->watched[i])) continue;
        if (square_distance(quadkey_square(&cs->world, cs->watched[i]), e->position) <= cs->strip) return true;
    }
    return false;
}

/* The view of an observer whose leaf has just been promoted would lack what its former server saw of the neighbours,
 * and those who watch it would lose them for a moment. It keeps what it was told so far until the ghosts are there. */
static bool view_held(const struct cellserver *cs, const struct entity *e)
{
    if (e->status != ENTITY_OWNED || !e->view_whole) return false;
    const struct own_leaf *leaf = &cs->leaves[e->leaf];
    return leaf->views_held || (leaf->rim_held && reaches_unknown(cs, e));
}

void views_publish(struct cellserver *cs)
{
    uint32_t held = 0;
    for (uint32_t at = 0; at < cs->leaf_count; at++) ghosts_await(cs, &cs->leaves[at]);
    for (uint32_t at = 0; at < cs->peer_count; at++) {
        if (cs->peers[at].used && cs->peers[at].resync) resync(cs, at);
    }
    for (uint32_t i = 0; i < cs->touched_count; i++) {
        struct entity *e = &cs->entities[cs->touched[i]];
        uint32_t peer = peer_find(cs, e->gateway);
        if (view_held(cs, e)) {
            e->view_head = NONE;
            cs->touched[held++] = cs->touched[i];
            continue;
        }
        e->touched = false;
        if (peer == NONE || cs->peers[peer].resync) {
            if (peer != NONE) cs->stats.views_dropped++;
        } else if (e->status == ENTITY_OWNED && !leaf_serves(cs, e->leaf)) {
            cs->stats.views_dropped++; /* lease.c tells it whole when it may */
        } else if (e->view_whole) {
            add_whole(cs, peer, e);
        } else if (e->view_head != NONE) {
            add_changes(cs, peer, e);
        }
        views_forget(cs, cs->touched[i]);
    }
    cs->touched_count = held;
    cs->change_count = 0;
    for (uint32_t at = 0; at < cs->peer_count; at++) {
        if (cs->peers[at].used) peer_send_views(cs, at);
    }
}
