#include "coordinator/internal.h"

#include <inttypes.h>
#include <stdlib.h>

/* What fits one message: a node_info is at most 1,691 bytes, a leaf 39, an id 9. */
#define NODE_BYTES 1700u
#define LEAF_BYTES 40u
#define GONE_BYTES 10u
#define PART_BYTES (54u << 10)
#define MAP_FEED   0u

_Static_assert(PART_BYTES + 64 <= LIMIT_MESSAGE_BYTES, "a part of the map must fit one message");

/* What a new leader has loaded is not told while servers know better: they would give up what they have. */
bool map_open(const struct coordinator *c)
{
    bool corrects = !c->told && (c->lead.claims || c->lead.adopting);
    return c->ready && c->now_us >= c->settle_us && !corrects && !c->takes_back;
}

void map_gone(struct coordinator *c, struct node_id node)
{
    ARRAY_RESERVE(c->gone, c->gone_room, (size_t)c->gone_count + 1);
    c->gone[c->gone_count++] = node;
    c->nodes_fresh = true;
}

void member_needs_map(struct coordinator *c, uint32_t index, bool needs)
{
    struct member *m = &c->members[index];
    if (m->needs_map == needs) return;
    m->needs_map = needs;
    c->maps_due += needs ? 1 : UINT32_MAX; /* modulo 2^32: one less */
}

static bool tellable(const struct member *m)
{
    if (member_is_server(m)) return m->saved && m->state != MEMBER_FREE && !m->released;
    return m->state == MEMBER_ACTIVE && m->proved;
}

static bool is_news(const struct member *m)
{
    return m->state != MEMBER_FREE && tellable(m) && (!m->listed || m->fresh);
}

static void publish(struct coordinator *c, const uint8_t *body, size_t size)
{
    static const char topic[] = "map/";
    writer_clear(&c->packet);
    writer_raw(&c->packet, topic, sizeof topic - 1);
    writer_raw(&c->packet, body, size);
    outbox_push(c->out, (struct output){.kind = OUTPUT_PUBLISH, .feed = MAP_FEED}, c->packet.data, c->packet.size);
}

/* Where the part that begins at (node, leaf) ends. Both run over members and leaves. */
struct part {
    uint32_t node_from, node_to, nodes, leaf_from, leaf_to;
};

static struct part part_from(const struct coordinator *c, uint32_t node, uint32_t leaf)
{
    struct part part = {.node_from = node, .node_to = node, .leaf_from = leaf, .leaf_to = leaf};
    size_t bytes = 0;
    for (; part.node_to < c->member_count && bytes + NODE_BYTES <= PART_BYTES; part.node_to++) {
        if (!c->members[part.node_to].listed) continue;
        part.nodes++;
        bytes += NODE_BYTES;
    }
    if (part.node_to < c->member_count) return part;
    while (part.leaf_to < c->leaf_count && part.leaf_to - leaf < LIMIT_LEAVES_PER_PART &&
           bytes + LEAF_BYTES <= PART_BYTES) {
        part.leaf_to++;
        bytes += LEAF_BYTES;
    }
    return part;
}

static void part_write(struct coordinator *c, const struct part *part, uint32_t number, uint32_t parts)
{
    map_begin(&c->whole, &(struct map){.term = c->term, .rev = c->rev, .part = number, .parts = parts});
    map_list(&c->whole, part->nodes);
    for (uint32_t i = part->node_from; i < part->node_to; i++) {
        if (c->members[i].listed) map_add_node(&c->whole, &c->members[i].info);
    }
    map_list(&c->whole, part->leaf_to - part->leaf_from);
    for (uint32_t i = part->leaf_from; i < part->leaf_to; i++) map_add_leaf(&c->whole, &c->leaves[i].owner);
    map_list(&c->whole, 0);
    map_list(&c->whole, 0);
}

/* Encodes the whole map once a revision. */
static void whole_build(struct coordinator *c)
{
    if (c->whole_parts > 0 && c->whole_rev == c->rev) return;
    uint32_t parts = 0;
    struct part part = {0};
    do {
        part = part_from(c, part.node_to, part.leaf_to);
        parts++;
    } while (part.node_to < c->member_count || part.leaf_to < c->leaf_count);
    ARRAY_RESERVE(c->whole_ends, c->whole_room, parts);
    writer_clear(&c->whole);
    part = (struct part){0};
    for (uint32_t i = 0; i < parts; i++) {
        part = part_from(c, part.node_to, part.leaf_to);
        part_write(c, &part, i, parts);
        c->whole_ends[i] = c->whole.size;
    }
    c->whole_parts = parts;
    c->whole_rev = c->rev;
}

static const uint8_t *whole_part(const struct coordinator *c, uint32_t part, size_t *size)
{
    size_t start = part == 0 ? 0 : c->whole_ends[part - 1];
    *size = c->whole_ends[part] - start;
    return c->whole.data + start;
}

/* Writes the changes since the last revision into c->message; false: they don't fit one part. */
static bool changes_write(struct coordinator *c, uint32_t nodes, uint32_t leaves)
{
    size_t bytes = (size_t)nodes * NODE_BYTES + (size_t)leaves * LEAF_BYTES + (size_t)c->gone_count * GONE_BYTES;
    if (!c->told || leaves > LIMIT_LEAVES_PER_PART || bytes > PART_BYTES) return false;
    writer_clear(&c->message);
    map_begin(&c->message, &(struct map){.term = c->term, .rev = c->rev + 1, .base = c->rev, .parts = 1});
    map_list(&c->message, nodes);
    for (uint32_t i = 0; i < c->member_count; i++) {
        if (is_news(&c->members[i])) map_add_node(&c->message, &c->members[i].info);
    }
    map_list(&c->message, leaves);
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        if (c->leaves[i].fresh) map_add_leaf(&c->message, &c->leaves[i].owner);
    }
    map_list(&c->message, c->gone_count);
    for (uint32_t i = 0; i < c->gone_count; i++) map_add_gone_node(&c->message, c->gone[i]);
    map_list(&c->message, 0);
    return true;
}

/* The new revision to all who have followed so far. */
static void changes_send(struct coordinator *c)
{
    publish(c, c->message.data, c->message.size);
    for (uint32_t i = 0; i < c->member_count; i++) {
        struct member *m = &c->members[i];
        if (m->state != MEMBER_ACTIVE || !m->level) continue;
        member_touch(c, i);
        if (session_push(m->session, c->message.data, c->message.size) == TERRANE_ERR_OK) continue;
        refuse(c, TERRANE_ERR_QUEUE_FULL, "a change of the map to a member that does not read", m->info.node);
        m->level = false;
        member_needs_map(c, i, true);
    }
}

static void whole_announce(struct coordinator *c)
{
    size_t size;
    whole_build(c);
    for (uint32_t part = 0; part < c->whole_parts; part++) {
        const uint8_t *body = whole_part(c, part, &size);
        publish(c, body, size);
    }
    for (uint32_t i = 0; i < c->member_count; i++) {
        struct member *m = &c->members[i];
        if (m->state != MEMBER_ACTIVE || !m->level) continue;
        m->level = false;
        member_needs_map(c, i, true);
    }
}

void map_tell(struct coordinator *c)
{
    if (!map_open(c) || (!c->nodes_fresh && !c->leaves_fresh)) return;
    c->nodes_fresh = c->leaves_fresh = false;
    uint32_t nodes = 0, leaves = 0;
    for (uint32_t i = 0; i < c->member_count; i++) nodes += is_news(&c->members[i]);
    for (uint32_t i = 0; i < c->leaf_count; i++) leaves += c->leaves[i].fresh;
    if (nodes + leaves + c->gone_count == 0) return;
    bool fits = changes_write(c, nodes, leaves);
    c->rev++;
    c->told = true;
    for (uint32_t i = 0; i < c->member_count; i++) {
        if (!is_news(&c->members[i])) continue;
        c->members[i].listed = true;
        c->members[i].fresh = false;
    }
    for (uint32_t i = 0; i < c->leaf_count; i++) c->leaves[i].fresh = c->leaves[i].unheard = false;
    outbox_log(c->out, LOG_INFO, "event=map term=%" PRIu64 " rev=%" PRIu64 " nodes=%u leaves=%u gone=%u", c->term,
               c->rev, nodes, leaves, c->gone_count);
    c->gone_count = 0;
    if (fits)
        changes_send(c);
    else
        whole_announce(c);
}

static bool whole_send(struct coordinator *c, struct member *m)
{
    size_t size;
    whole_build(c);
    for (uint32_t part = 0; part < c->whole_parts; part++) {
        const uint8_t *body = whole_part(c, part, &size);
        if (session_push(m->session, body, size) != TERRANE_ERR_OK) return false;
    }
    return true;
}

void map_send_due(struct coordinator *c)
{
    if (c->maps_due == 0 || !map_open(c)) return;
    for (uint32_t i = 0; i < c->member_count; i++) {
        struct member *m = &c->members[i];
        /* One whole map at most is on its way to a member, so that asking often costs its asker most. */
        if (!m->needs_map || m->session == NULL || session_queued_messages(m->session) > 0) continue;
        uint64_t from_us = m->map_us == 0 ? 0 : m->map_us + MAP_EVERY_US;
        if (c->now_us < from_us) {
            if (from_us < c->due_us) c->due_us = from_us;
            continue;
        }
        m->map_us = c->now_us;
        member_needs_map(c, i, false);
        member_touch(c, i);
        m->level = whole_send(c, m);
        if (m->level) continue;
        refuse(c, TERRANE_ERR_QUEUE_FULL, "the map to a member that does not read", m->info.node);
        member_needs_map(c, i, true);
    }
}

void map_forget(struct coordinator *c)
{
    c->nodes_fresh = c->leaves_fresh = c->told = false;
    c->gone_count = c->whole_parts = 0;
}

void map_close(struct coordinator *c)
{
    writer_close(&c->whole);
    free(c->whole_ends);
    free(c->gone);
}
