/* STATUS: what this cell server is doing, as one JSON object. */
#include "cellserver/internal.h"

#include "proto/json.h"

#include <stdio.h>

static void put_count(struct writer *w, const char *key, uint64_t count)
{
    json_key(w, key);
    json_uint(w, count);
}

static void put_counters(struct writer *w, const struct cellserver_stats *s)
{
#define COUNTER(field) put_count(w, #field, s->field)
    COUNTER(tick);
    COUNTER(ticks_late);
    COUNTER(leaves);
    COUNTER(owned);
    COUNTER(ghosts);
    COUNTER(leaving);
    COUNTER(sessions);
    COUNTER(moves);
    COUNTER(enters);
    COUNTER(leaves_done);
    COUNTER(handoffs_out);
    COUNTER(handoffs_in);
    COUNTER(handoffs_refused);
    COUNTER(handoffs_local);
    COUNTER(frames);
    COUNTER(frame_bytes);
    COUNTER(frame_moves);
    COUNTER(ghost_frames);
    COUNTER(ghost_bytes);
    COUNTER(view_changes);
    COUNTER(views_whole);
    COUNTER(views_dropped);
    COUNTER(forwarded);
    COUNTER(not_owner);
    COUNTER(stale);
    COUNTER(malformed);
    COUNTER(dropped);
    COUNTER(moves_lost);
    COUNTER(gaps);
    COUNTER(gaps_repaired);
    COUNTER(gaps_open);
    COUNTER(memory_bytes);
    COUNTER(fenced);
    COUNTER(standby_waiting);
    COUNTER(standby_bytes);
    COUNTER(replica_leaves);
    COUNTER(replicas);
    COUNTER(refused_rate);
    COUNTER(refused_entities);
    COUNTER(replicas_broken);
    COUNTER(promotions);
#undef COUNTER
}

static void put_node(struct writer *w, const char *key, struct node_id node)
{
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)node.v);
    json_key(w, key);
    json_text(w, node.v == 0 ? "" : text);
}

static void put_quadkey(struct writer *w, struct quadkey leaf)
{
    char key[LIMIT_QUADKEY_TEXT];
    quadkey_text(leaf, key);
    json_key(w, "quadkey");
    json_text(w, key);
}

static void put_region(struct writer *w, const struct cellserver *cs, uint32_t at)
{
    const struct own_leaf *leaf = &cs->leaves[at];
    const struct leaf_owner *owner = ownership_leaf(&cs->map, leaf->key);
    json_open(w, '{');
    put_quadkey(w, leaf->key);
    put_count(w, "epoch", leaf->epoch);
    put_count(w, "since", leaf->since);
    put_node(w, "standby", owner == NULL ? NODE_NONE : owner->standby);
    json_key(w, "fenced");
    json_bool(w, !leaf_serves(cs, at));
    put_count(w, "owned", leaf->count);
    put_count(w, "feed", leaf->feed);
    put_count(w, "subscribers", leaf->subscriber_count);
    json_close(w, '}');
}

/* A leaf that we stand by for. */
static void put_standby(struct writer *w, const struct held_leaf *leaf)
{
    json_open(w, '{');
    put_quadkey(w, leaf->key);
    put_count(w, "epoch", leaf->epoch);
    put_node(w, "primary", leaf->primary);
    json_key(w, "level");
    json_bool(w, leaf->level);
    json_key(w, "promoting");
    json_bool(w, leaf->promoting);
    put_count(w, "entities", leaf->content.count);
    json_close(w, '}');
}

void status_write(struct cellserver *cs, struct writer *w)
{
    struct cellserver_stats s;
    cellserver_stats(cs, &s);
    json_open(w, '{');
    json_key(w, "role");
    json_text(w, "cellserver");
    json_key(w, "name");
    json_text(w, cs->options.info.name);
    put_node(w, "node", cs->options.info.node);
    json_key(w, "ready");
    json_bool(w, cellserver_ready(cs));
    put_count(w, "term", cs->map.term);
    put_count(w, "rev", cs->map.rev);
    put_counters(w, &s);
    json_key(w, "regions");
    json_open(w, '[');
    for (uint32_t i = 0; i < cs->leaf_count; i++) {
        if (cs->leaves[i].used) put_region(w, cs, i);
    }
    json_close(w, ']');
    json_key(w, "standbys");
    json_open(w, '[');
    for (uint32_t i = 0; i < cs->held.count; i++) {
        if (cs->held.leaves[i].used) put_standby(w, &cs->held.leaves[i]);
    }
    json_close(w, ']');
    json_close(w, '}');
    writer_raw(w, "", 1);
}
