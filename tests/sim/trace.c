#include "tests/sim/trace.h"

#include "proto/packet.h"
#include "tests/sim/sim.h"

#include <stdarg.h>
#include <string.h>

void sim_note(struct sim *sim, uint64_t a, uint64_t b)
{
    sim->trace_hash = dice_mix(sim->trace_hash ^ a) + dice_mix(b + UINT64_C(0x51ed270b));
}

void sim_note_bytes(struct sim *sim, const void *bytes, size_t size)
{
    uint64_t hash = size, word;
    const uint8_t *at = bytes;
    for (; size >= 8; at += 8, size -= 8) {
        memcpy(&word, at, 8);
        hash = (hash ^ word) * UINT64_C(0x9fb21c651e98df25);
        hash ^= hash >> 29;
    }
    for (; size > 0; at++, size--) hash = (hash ^ *at) * UINT64_C(0x9fb21c651e98df25);
    sim_note(sim, hash, 0);
}

static void name_of(const struct sim *sim, uint32_t member, char *name, size_t room)
{
    static const char roles[] = "csg";
    snprintf(name, room, "%c%u", roles[sim->members[member].role], sim->members[member].number);
}

void sim_say(struct sim *sim, const char *format, ...)
{
    if (sim->trace == NULL) return;
    fprintf(sim->trace, "%11.6f ", (double)sim->now_us / 1e6);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(sim->trace, format, arguments);
    va_end(arguments);
    fputc('\n', sim->trace);
}

void sim_violation(struct sim *sim, const char *format, ...)
{
    if (sim->violated) return;
    sim->violated = true;
    sim->violated_us = sim->now_us;
    sim->violation_kind = format;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sim->violation, sizeof sim->violation, format, arguments);
    va_end(arguments);
    sim_say(sim, "VIOLATION %s", sim->violation);
}

static void say_entity(FILE *file, const struct entity_record *r)
{
    fprintf(file, " %llu@%llu(%d,%d)", (unsigned long long)r->id.v, (unsigned long long)r->version, r->position.x,
            r->position.y);
}

static void say_views(FILE *file, struct cursor message)
{
    struct views views;
    struct view_item item;
    struct entity_id id;
    if (views_decode(message, &views) != TERRANE_ERR_OK) return;
    while (views_next(&views, &item)) {
        fprintf(file, " %s%llu@%llu", item.part == VIEW_CHANGES ? "" : "whole ", (unsigned long long)item.observer.v,
                (unsigned long long)item.version);
        while (entity_next(&item.unsee, &id)) fprintf(file, " -%llu", (unsigned long long)id.v);
        while (entity_next(&item.see, &id)) fprintf(file, " +%llu", (unsigned long long)id.v);
    }
}

static void say_offer(FILE *file, struct cursor message)
{
    struct offer offer;
    struct transfer item;
    char to[LIMIT_QUADKEY_TEXT];
    if (offer_decode(message, &offer) != TERRANE_ERR_OK) return;
    quadkey_text(offer.to, to);
    fprintf(file, " to %s", to);
    while (offer_next(&offer, &item)) say_entity(file, &item.record);
}

static void say_moves(FILE *file, struct cursor message)
{
    struct moves moves;
    struct move move;
    if (moves_decode(message, &moves) != TERRANE_ERR_OK) return;
    fprintf(file, " #%llu", (unsigned long long)moves.sequence);
    while (moves_next(&moves, &move))
        fprintf(file, " %llu(%d,%d)", (unsigned long long)move.id.v, move.position.x, move.position.y);
}

static void say_accept(FILE *file, struct cursor message)
{
    struct accept accept;
    struct accept_item item;
    if (accept_decode(message, &accept) != TERRANE_ERR_OK) return;
    while (accept_next(&accept, &item))
        fprintf(file, " %llu@%llu->%llu", (unsigned long long)item.id.v, (unsigned long long)item.offered,
                (unsigned long long)item.version);
}

static void say_standby(FILE *file, struct cursor message)
{
    struct standby m;
    struct standby_item item;
    struct standby_move move;
    struct entity_id id;
    char leaf[LIMIT_QUADKEY_TEXT];
    if (standby_decode(message, &m) != TERRANE_ERR_OK) return;
    quadkey_text(m.leaf, leaf);
    fprintf(file, " %s/%u #%llu", leaf, m.epoch, (unsigned long long)m.seq);
    if (m.parts > 0) fprintf(file, " part %u of %u", m.part, m.parts);
    while (standby_next_drop(&m, &id)) fprintf(file, " -%llu", (unsigned long long)id.v);
    while (standby_next_put(&m, &item)) {
        fprintf(file, " +%u", item.slot);
        say_entity(file, &item.transfer.record);
        if (item.leaving_to.v != 0) fprintf(file, " leaving");
        if (item.pending) fprintf(file, " pending");
    }
    while (standby_next_move(&m, &move)) fprintf(file, " %u(%+d,%+d)", move.slot, move.dx, move.dy);
}

static void say_standby_ack(FILE *file, struct cursor message)
{
    struct standby_ack ack;
    struct standby_ack_item item;
    char leaf[LIMIT_QUADKEY_TEXT];
    if (standby_ack_decode(message, &ack) != TERRANE_ERR_OK) return;
    while (standby_ack_next(&ack, &item)) {
        quadkey_text(item.leaf, leaf);
        fprintf(file, " %s/%u #%llu%s", leaf, item.epoch, (unsigned long long)item.seq, item.refused ? " refused" : "");
    }
}

static void say_small(FILE *file, enum message_kind kind, struct cursor message)
{
    struct result result;
    struct owner owner;
    struct enter enter;
    struct leave leave;
    char text[LIMIT_QUADKEY_TEXT];
    if (kind == MESSAGE_RESULT && result_decode(message, &result) == TERRANE_ERR_OK)
        fprintf(file, " %llu of %llu %s", (unsigned long long)result.request, (unsigned long long)result.id.v,
                terrane_error_name(result.error));
    if (kind == MESSAGE_OWNER && owner_decode(message, &owner) == TERRANE_ERR_OK) {
        quadkey_text(owner.leaf, text);
        fprintf(file, " %llu@%llu in %s", (unsigned long long)owner.id.v, (unsigned long long)owner.version, text);
    }
    if (kind == MESSAGE_ENTER && enter_decode(message, &enter) == TERRANE_ERR_OK) say_entity(file, &enter.record);
    if (kind == MESSAGE_LEAVE && leave_decode(message, &leave) == TERRANE_ERR_OK)
        fprintf(file, " %llu #%llu", (unsigned long long)leave.id.v, (unsigned long long)leave.sequence);
}

static void say_message(FILE *file, struct cursor message)
{
    enum message_kind kind;
    if (message_kind_of(message, &kind) != TERRANE_ERR_OK) return;
    fprintf(file, " %s", message_kind_name(kind));
    if (kind == MESSAGE_VIEWS)
        say_views(file, message);
    else if (kind == MESSAGE_OFFER)
        say_offer(file, message);
    else if (kind == MESSAGE_MOVES)
        say_moves(file, message);
    else if (kind == MESSAGE_ACCEPT)
        say_accept(file, message);
    else if (kind == MESSAGE_STANDBY)
        say_standby(file, message);
    else if (kind == MESSAGE_STANDBY_ACK)
        say_standby_ack(file, message);
    else
        say_small(file, kind, message);
}

static void say_packet(FILE *file, const uint8_t *bytes, size_t size)
{
    struct packet packet;
    struct cursor message;
    if (packet_decode(bytes, size, &packet) != TERRANE_ERR_OK) {
        fprintf(file, " malformed");
        return;
    }
    fprintf(file, " from %04llx first %llu ack %llu fast %llu:", (unsigned long long)packet.from.v & 0xffff,
            (unsigned long long)packet.sure_first, (unsigned long long)packet.sure_ack,
            (unsigned long long)packet.fast_total);
    while (packet_next(&packet.sure, &message)) say_message(file, message);
    while (packet_next(&packet.fast, &message)) say_message(file, message);
}

static void say_frame(FILE *file, const uint8_t *bytes, size_t size)
{
    struct topic topic;
    struct frame frame;
    if (topic_decode(bytes, size, &topic) != TERRANE_ERR_OK) return;
    fprintf(file, " %.*s", (int)topic.size, (const char *)bytes);
    if (frame_decode(bytes + topic.size, size - topic.size, &frame) != TERRANE_ERR_OK) return;
    fprintf(file, " epoch %u seq %llu moved %u", frame.epoch, (unsigned long long)frame.seq, frame.moved_count);
    uint32_t slot;
    enum left_reason reason;
    uint64_t version;
    struct quadkey to;
    struct entity_record record;
    while (frame_next_left(&frame, &slot, &reason, &version, &to)) fprintf(file, " -slot %u (%d)", slot, (int)reason);
    while (frame_next_entered(&frame, &slot, &record)) {
        fprintf(file, " +slot %u", slot);
        say_entity(file, &record);
    }
}

void trace_event(struct sim *sim, uint32_t member, const struct event *event)
{
    static const char *const kinds[] = {"start",   "message",   "tick",    "timeout",  "stored",
                                        "peer_up", "peer_down", "feed_up", "feed_down"};
    if (sim->trace == NULL || event->kind == EVENT_TIMEOUT) return;
    char name[16];
    name_of(sim, member, name, sizeof name);
    fprintf(sim->trace, "%11.6f %s < %s", (double)sim->now_us / 1e6, name, kinds[event->kind]);
    if (event->kind == EVENT_MESSAGE && event->lane == LANE_INBOX) say_packet(sim->trace, event->bytes, event->size);
    if (event->kind == EVENT_MESSAGE && event->lane == LANE_FEED) say_frame(sim->trace, event->bytes, event->size);
    if (event->node.v != 0) fprintf(sim->trace, " node %04llx", (unsigned long long)event->node.v & 0xffff);
    fputc('\n', sim->trace);
}

void trace_output(struct sim *sim, uint32_t member, const struct output *output, const uint8_t *bytes)
{
    if (sim->trace == NULL || output->kind == OUTPUT_PUBLISH) return;
    char name[16];
    name_of(sim, member, name, sizeof name);
    fprintf(sim->trace, "%11.6f %s > ", (double)sim->now_us / 1e6, name);
    switch (output->kind) {
    case OUTPUT_SEND:
        fprintf(sim->trace, "send %04llx", (unsigned long long)output->node.v & 0xffff);
        say_packet(sim->trace, bytes, output->size);
        break;
    case OUTPUT_LOG: fprintf(sim->trace, "log %.*s", (int)output->size, (const char *)bytes); break;
    case OUTPUT_WATCH: fprintf(sim->trace, "watch %.*s", (int)output->size, (const char *)bytes); break;
    case OUTPUT_UNWATCH: fprintf(sim->trace, "unwatch %.*s", (int)output->size, (const char *)bytes); break;
    case OUTPUT_LINK: fprintf(sim->trace, "link %04llx", (unsigned long long)output->node.v & 0xffff); break;
    case OUTPUT_UNLINK: fprintf(sim->trace, "unlink %04llx", (unsigned long long)output->node.v & 0xffff); break;
    case OUTPUT_FEED_LINK:
        fprintf(sim->trace, "feed_link %u %04llx", output->feed, (unsigned long long)output->node.v & 0xffff);
        break;
    case OUTPUT_FEED_UNLINK:
        fprintf(sim->trace, "feed_unlink %u %04llx", output->feed, (unsigned long long)output->node.v & 0xffff);
        break;
    case OUTPUT_PUBLISH:
    case OUTPUT_REPLY:
    case OUTPUT_STORE: fprintf(sim->trace, "%s", output->kind == OUTPUT_STORE ? "store" : "reply"); break;
    }
    fputc('\n', sim->trace);
}
