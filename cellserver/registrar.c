/* Being a home: what the primary of a leaf knows of the ids whose home it is (proto/registry.h).
 *
 * An entry says which server had an id last; the one with the higher version counts. It may be old, so it refuses
 * nothing by itself: a claim of an id with an entry waits until the holder has been asked. A holder that is not
 * among the map's nodes any more can't answer; whoever took its leaves over says so in time, and if nobody does, it is
 * gone with it. Until every server has told all that it has, a new home decides nothing (but no longer than
 * GATHER_US: who is silent so long serves nothing). */
#include "cellserver/internal.h"

#include <stdlib.h>

#define GATHER_US    UINT64_C(2000000)
#define HEIR_US      UINT64_C(1000000) /* in which the heirs of a dead holder's leaves have spoken */
#define ASK_EVERY_US UINT64_C(200000)
#define GONE_KEEP_US UINT64_C(10000000)
#define WAITING_MAX  16384u
#define ENTRIES_MAX  (4u * LIMIT_ENTITIES)
#define LIVES_APART  2u  /* who had the last life remembers its end under its version and one more */
#define SWEEP        64u /* entries looked at in a tick */

static struct registry_entry *entry_of(struct cellserver *cs, struct entity_id id)
{
    uint32_t at = table_get(&cs->registry.entry_index, id.v);
    return at == TABLE_NONE ? NULL : &cs->registry.entries[at];
}

static void entry_drop(struct cellserver *cs, uint32_t at)
{
    struct registry_side *r = &cs->registry;
    table_remove(&r->entry_index, r->entries[at].id.v);
    r->entries[at] = r->entries[--r->entry_count];
    if (at < r->entry_count) table_put(&r->entry_index, r->entries[at].id.v, at);
}

static struct registry_entry *entry_put(struct cellserver *cs, struct node_id holder, const struct registry_item *item)
{
    struct registry_side *r = &cs->registry;
    struct registry_entry *entry = entry_of(cs, item->id);
    if (entry == NULL) {
        if (r->entry_count >= ENTRIES_MAX) return NULL;
        table_put(&r->entry_index, item->id.v, r->entry_count);
        ARRAY_RESERVE(r->entries, r->entry_room, r->entry_count + 1);
        entry = &r->entries[r->entry_count++];
    }
    *entry = (struct registry_entry){
        .id = item->id, .holder = holder, .gateway = item->gateway, .version = item->version, .request = item->request};
    return entry;
}

static struct registry_gathering *gathering_of(struct cellserver *cs, struct quadkey leaf)
{
    uint32_t at = table_get(&cs->registry.gathering_index, leaf.v);
    return at == TABLE_NONE ? NULL : &cs->registry.gathering[at];
}

/* Whether the home of an id is ours and knows enough to decide. */
static bool decides(struct cellserver *cs, struct entity_id id)
{
    const struct leaf_owner *home = registry_home(&cs->map, &cs->world, id);
    uint32_t leaf = home == NULL ? NONE : leaf_find(cs, home->leaf);
    return leaf != NONE && leaf_serves(cs, leaf) && gathering_of(cs, home->leaf) == NULL;
}

/* Decides a claim; false: not yet. */
static bool judge(struct cellserver *cs, struct registry_waiting *w)
{
    struct registry_item answer = w->item;
    if (!decides(cs, w->item.id)) return false;
    struct registry_entry *entry = entry_of(cs, w->item.id);
    bool free = entry == NULL || entry->holder.v == 0;
    bool again = !free && node_id_equal(entry->holder, w->asker) && node_id_equal(entry->gateway, w->item.gateway) &&
                 entry->request == w->item.request;
    bool dead = !free && !node_id_equal(entry->holder, cs->options.info.node) &&
                ownership_node(&cs->map, entry->holder) == NULL;
    if (dead && cs->now_us - w->from_us >= HEIR_US) free = true;
    if (free || again) {
        answer.verb = REGISTRY_GRANT;
        uint64_t least = entry == NULL ? 0 : again ? entry->version : entry->version + LIVES_APART;
        if (answer.version < least) answer.version = least;
        if (entry_put(cs, w->asker, &answer) == NULL) return false;
        registry_note(cs, w->asker, &answer);
        return true;
    }
    if (!dead && cs->now_us - w->asked_us >= ASK_EVERY_US) {
        w->asked_us = cs->now_us;
        w->token = ++cs->registry.token;
        if (w->token_first == 0) w->token_first = w->token;
        answer =
            (struct registry_item){.verb = REGISTRY_ASK, .id = entry->id, .version = entry->version, .token = w->token};
        registry_note(cs, entry->holder, &answer);
    }
    return false;
}

/* Looks at the waiting claims of an id (0: all), in the order in which they came. */
static void decide(struct cellserver *cs, struct entity_id id)
{
    struct registry_side *r = &cs->registry;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->waiting_count; i++) {
        struct registry_waiting *w = &r->waiting[i];
        if ((id.v == 0 || entity_id_equal(w->item.id, id)) && judge(cs, w)) continue;
        r->waiting[kept++] = *w;
    }
    r->waiting_count = kept;
}

void registrar_claim(struct cellserver *cs, struct node_id from, const struct registry_item *item)
{
    struct registry_side *r = &cs->registry;
    struct registry_waiting claim = {.item = *item, .asker = from, .from_us = cs->now_us};
    for (uint32_t i = 0; i < r->waiting_count; i++) {
        const struct registry_waiting *w = &r->waiting[i];
        if (w->item.id.v == item->id.v && node_id_equal(w->asker, from)) return; /* asked again */
    }
    if (judge(cs, &claim)) return;
    if (r->waiting_count >= WAITING_MAX) {
        cs->stats.dropped++; /* it will be asked again */
        return;
    }
    ARRAY_RESERVE(r->waiting, r->waiting_room, r->waiting_count + 1);
    r->waiting[r->waiting_count++] = claim;
}

/* Any question since the claim came will do: the newest may always be on its way where trips take long. */
static bool answers(const struct registry_waiting *w, const struct registry_item *item)
{
    return w->token_first > 0 && item->token >= w->token_first && item->token <= w->token;
}

/* The holder has been asked for the sake of a claim, and has it: the claim is refused. News alone refuses nothing; what
 * it tells may be over by now. */
static void refuse(struct cellserver *cs, const struct registry_item *item)
{
    struct registry_side *r = &cs->registry;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->waiting_count; i++) {
        const struct registry_waiting *w = &r->waiting[i];
        struct registry_item answer = *item;
        if (!entity_id_equal(w->item.id, item->id) || !answers(w, item)) {
            r->waiting[kept++] = *w;
            continue;
        }
        answer.verb = REGISTRY_EXISTS;
        registry_note(cs, w->asker, &answer);
    }
    r->waiting_count = kept;
}

void registrar_here(struct cellserver *cs, struct node_id from, const struct registry_item *item)
{
    const struct registry_entry *entry = entry_of(cs, item->id);
    if (entry != NULL && entry->version > item->version) return;
    if (entry != NULL && entry->version == item->version && entry->holder.v == 0) return; /* it was here, before */
    entry_put(cs, from, item);
    if (item->token != 0) refuse(cs, item);
}

/* Whether this answers a question that was asked for the sake of a claim that waits. */
static bool was_asked(const struct cellserver *cs, const struct registry_item *item)
{
    const struct registry_side *r = &cs->registry;
    for (uint32_t i = 0; i < r->waiting_count; i++) {
        const struct registry_waiting *w = &r->waiting[i];
        if (entity_id_equal(w->item.id, item->id) && answers(w, item)) return true;
    }
    return false;
}

/* Of the version that another has it is no news, unless that one passed the question on: it gave the leaf up. */
void registrar_gone(struct cellserver *cs, struct node_id from, const struct registry_item *item)
{
    struct registry_entry *entry = entry_of(cs, item->id);
    if (entry != NULL && entry->version > item->version) return;
    bool others = entry != NULL && entry->version == item->version && !node_id_equal(entry->holder, from);
    if (others && !was_asked(cs, item)) return;
    struct registry_item gone = {.id = item->id, .version = item->version};
    entry = entry_put(cs, NODE_NONE, &gone);
    if (entry != NULL) entry->until_us = cs->now_us + GONE_KEEP_US;
    decide(cs, item->id);
}

/* ---- new homes ---- */

static struct registry_gathering *gathering_begin(struct cellserver *cs, struct quadkey leaf, uint32_t since)
{
    struct registry_side *r = &cs->registry;
    struct registry_gathering *g = gathering_of(cs, leaf);
    if (g == NULL) {
        ARRAY_RESERVE(r->gathering, r->gathering_room, r->gathering_count + 1);
        table_put(&r->gathering_index, leaf.v, r->gathering_count);
        g = &r->gathering[r->gathering_count++];
    }
    struct node_id *heard = g->heard;
    uint32_t heard_room = g->heard_room;
    *g = (struct registry_gathering){.leaf = leaf, .since = since, .heard = heard, .heard_room = heard_room};
    return g;
}

static void gathering_end(struct registry_side *r, struct registry_gathering *g)
{
    struct registry_gathering ended = *g, *last = &r->gathering[--r->gathering_count];
    table_put(&r->gathering_index, last->leaf.v, (uint32_t)(g - r->gathering));
    table_remove(&r->gathering_index, ended.leaf.v);
    *g = *last;
    *last = ended; /* its memory is used again */
}

static bool heard_of(const struct registry_gathering *g, struct node_id node)
{
    for (uint32_t i = 0; i < g->heard_count; i++) {
        if (node_id_equal(g->heard[i], node)) return true;
    }
    return false;
}

static bool heard_of_all(const struct cellserver *cs, const struct registry_gathering *g)
{
    for (uint32_t i = 0; i < cs->map.now.node_count; i++) {
        const struct node_info *node = &cs->map.now.nodes[i];
        if (node->role == ROLE_CELLSERVER && !heard_of(g, node->node)) return false;
    }
    return true;
}

/* Those that know enough. */
static void gatherings_check(struct cellserver *cs)
{
    struct registry_side *r = &cs->registry;
    uint32_t before = r->gathering_count;
    CHECK(r->gathering_count == 0 || r->gathering != NULL);
    for (uint32_t i = 0; i < r->gathering_count;) {
        struct registry_gathering *g = &r->gathering[i];
        bool ours = g->from_us != 0;
        if (ours && (heard_of_all(cs, g) || cs->now_us - g->from_us >= GATHER_US))
            gathering_end(r, g);
        else
            i++;
    }
    if (r->gathering_count < before) decide(cs, (struct entity_id){0});
}

void registrar_heard(struct cellserver *cs, struct node_id from, struct quadkey leaf, uint32_t since)
{
    const struct leaf_owner *owner = ownership_leaf(&cs->map, leaf);
    struct registry_gathering *g = gathering_of(cs, leaf);
    bool ahead = owner == NULL || owner->since < since; /* the sender's map is ahead of ours */
    if (ahead && (g == NULL || g->since < since) && cs->registry.gathering_count < LIMIT_LEAVES)
        g = gathering_begin(cs, leaf, since);
    if (g == NULL || g->since != since || heard_of(g, from)) return;
    ARRAY_RESERVE(g->heard, g->heard_room, g->heard_count + 1);
    g->heard[g->heard_count++] = from;
    gatherings_check(cs);
}

/* A home that has become ours begins to gather; of one that is ours no more nothing is kept. */
void registrar_sync(struct cellserver *cs)
{
    struct registry_side *r = &cs->registry;
    struct node_id self = cs->options.info.node;
    for (uint32_t i = 0; i < cs->map.now.leaf_count; i++) {
        const struct leaf_owner *owner = &cs->map.now.leaves[i];
        const struct registry_gathering *known = gathering_of(cs, owner->leaf);
        bool ours = node_id_equal(owner->primary, self);
        bool new = ours &&registry_told_since(cs, owner->leaf) != owner->since;
        if (new && (known == NULL || known->since < owner->since)) gathering_begin(cs, owner->leaf, owner->since);
        struct registry_gathering *g = gathering_of(cs, owner->leaf);
        if (g == NULL || g->since > owner->since) continue;
        if (!ours)
            gathering_end(r, g);
        else if (g->from_us == 0)
            g->from_us = cs->now_us;
    }
    for (uint32_t i = 0; i < r->entry_count;) {
        const struct leaf_owner *home = registry_home(&cs->map, &cs->world, r->entries[i].id);
        bool keep = home != NULL && (node_id_equal(home->primary, self) || gathering_of(cs, home->leaf) != NULL);
        if (keep)
            i++;
        else
            entry_drop(cs, i);
    }
    gatherings_check(cs);
}

void registrar_tick(struct cellserver *cs)
{
    struct registry_side *r = &cs->registry;
    if (r->gathering_count > 0) gatherings_check(cs);
    if (r->waiting_count > 0) decide(cs, (struct entity_id){0});
    for (uint32_t i = 0; i < SWEEP && r->entry_count > 0; i++) {
        if (r->sweep_at >= r->entry_count) r->sweep_at = 0;
        const struct registry_entry *entry = &r->entries[r->sweep_at];
        if (entry->holder.v == 0 && cs->now_us >= entry->until_us)
            entry_drop(cs, r->sweep_at);
        else
            r->sweep_at++;
    }
}

void registrar_close(struct cellserver *cs)
{
    struct registry_side *r = &cs->registry;
    for (uint32_t i = 0; i < r->gathering_room; i++) free(r->gathering[i].heard);
    free(r->gathering);
    free(r->waiting);
    free(r->entries);
    table_close(&r->entry_index);
    table_close(&r->gathering_index);
}
