/* Telling an incarnation that it is over: BYE, in answer to its HELLO. It was replaced, declared dead, or silent for so
 * long that it left the map, and would otherwise go on asking for ever.
 *
 * It is no member, so a link is made for this alone, to the url in its HELLO, and taken down soon. Who floods us with
 * such HELLOs gets a few links at a time and nothing else. */
#include "coordinator/internal.h"

#include <stdlib.h>
#include <string.h>

#define FAREWELLS_MAX 16u
#define FAREWELL_US   UINT64_C(2000000)
/* It may have a session with us that has counted many packets: this one is none of those it has seen (now is added). */
#define FAREWELL_TOTAL (UINT64_C(1) << 62)

struct farewell {
    struct node_id node;
    uint64_t until_us;
    bool up;
};

static struct farewell *farewell_of(const struct coordinator *c, struct node_id node)
{
    for (uint32_t i = 0; i < c->farewell_count; i++) {
        if (node_id_equal(c->farewells[i].node, node)) return &c->farewells[i];
    }
    return NULL;
}

static void send_bye(struct coordinator *c, struct node_id node)
{
    struct packet head = {.from = c->options.info.node, .to = node, .fast_total = FAREWELL_TOTAL + c->now_us};
    writer_clear(&c->packet);
    packet_begin(&c->packet, &head, 0);
    packet_fast(&c->packet, 1);
    bye_encode(&c->packet);
    outbox_push(c->out, (struct output){.kind = OUTPUT_SEND, .node = node}, c->packet.data, c->packet.size);
}

void farewell_say(struct coordinator *c, const struct node_info *info)
{
    struct farewell *f = farewell_of(c, info->node);
    uint32_t member = member_find(c, info->node);
    if (member != NONE && c->members[member].session != NULL) return; /* it said BYE itself and lingers */
    if (f != NULL && f->up) send_bye(c, info->node);
    if (f != NULL || c->farewell_count == FAREWELLS_MAX) return;
    if (c->farewells == NULL) c->farewells = calloc(FAREWELLS_MAX, sizeof *c->farewells);
    CHECK(c->farewells != NULL);
    c->farewells[c->farewell_count++] = (struct farewell){.node = info->node, .until_us = c->now_us + FAREWELL_US};
    outbox_push(c->out, (struct output){.kind = OUTPUT_LINK, .node = info->node}, info->inbox_url,
                strlen(info->inbox_url) + 1);
}

void farewell_link(struct coordinator *c, struct node_id node, bool up)
{
    struct farewell *f = farewell_of(c, node);
    if (f == NULL) return;
    f->up = up;
    if (up) send_bye(c, node);
}

void farewell_step(struct coordinator *c)
{
    for (uint32_t i = 0; i < c->farewell_count;) {
        if (c->farewells[i].until_us > c->now_us) {
            i++;
            continue;
        }
        outbox_push(c->out, (struct output){.kind = OUTPUT_UNLINK, .node = c->farewells[i].node}, NULL, 0);
        c->farewells[i] = c->farewells[--c->farewell_count];
    }
}

uint64_t farewell_due_us(const struct coordinator *c)
{
    uint64_t due_us = UINT64_MAX;
    for (uint32_t i = 0; i < c->farewell_count; i++) {
        if (c->farewells[i].until_us < due_us) due_us = c->farewells[i].until_us;
    }
    return due_us;
}

void farewell_close(struct coordinator *c)
{
    free(c->farewells);
}
