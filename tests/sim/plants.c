#include "tests/sim/plants.h"

#include "proto/packet.h"
#include "tests/sim/sim.h"

#include <string.h>

#define PLANT_US UINT64_C(3000000) /* from when on they strike */

static const struct {
    const char *name, *text, *says, *faults;
} plants[] = {{"", "", "", "net"},
#define X(NAME, name, what, says) {#name, what, says, "net"},
              PLANTS(X)
#undef X
#define X(NAME, name, faults, what) {#name, what, "", faults},
                  MUTATIONS(X)
#undef X
};

#ifdef TERRANE_MUTANTS
/* The cores ask without knowing the simulation that they are in. */
static const struct sim *planted;

bool terrane_mutation(enum mutation mutation)
{
    return planted != NULL && planted->now_us > PLANT_US && planted->plant == PLANT_MUTATIONS + mutation;
}

void plants_open(const struct sim *sim)
{
    planted = sim;
}
#else
void plants_open(const struct sim *sim)
{
    (void)sim;
}
#endif

const char *plant_name(enum plant plant)
{
    return plants[plant].name;
}
const char *plant_text(enum plant plant)
{
    return plants[plant].text;
}
const char *plant_says(enum plant plant)
{
    return plants[plant].says;
}
const char *plant_faults(enum plant plant)
{
    return plants[plant].faults;
}

enum plant plant_of(const char *name)
{
    for (int i = 1; i < PLANT_COUNT; i++)
        if (strcmp(plants[i].name, name) == 0) return (enum plant)i;
    return PLANT_COUNT;
}

bool plants_strike(struct sim *sim, enum plant plant)
{
    return sim->plant == plant && sim->plant != PLANT_NONE && sim->now_us > PLANT_US && dice_chance(&sim->plants, 0.05);
}

bool plants_unstored(const struct sim *sim)
{
    return sim->plant == PLANT_MUTATION_TOLD_UNSTORED && sim->now_us > PLANT_US;
}

/* ---- packets ---- */

/* A packet taken apart and put together again with other numbers or fewer messages. */
static void rewrite(struct sim *sim, struct packet packet, bool drop_sure, bool drop_moves, const uint8_t **bytes,
                    size_t *size)
{
    struct writer *w = &sim->plant_writer;
    struct cursor message;
    enum message_kind kind;
    uint32_t fast_count = 0;
    struct cursor fast = packet.fast;
    while (packet_next(&fast, &message)) {
        bool moves = message_kind_of(message, &kind) == TERRANE_ERR_OK && kind == MESSAGE_MOVES;
        if (!moves || !drop_moves) fast_count++;
    }
    writer_clear(w);
    packet_begin(w, &packet, drop_sure ? packet.sure_count - 1 : packet.sure_count);
    for (uint32_t i = 0; packet_next(&packet.sure, &message); i++)
        if (!drop_sure || i + 1 < packet.sure_count) writer_raw(w, message.at, (size_t)(message.end - message.at));
    packet_fast(w, fast_count);
    while (packet_next(&packet.fast, &message)) {
        bool moves = message_kind_of(message, &kind) == TERRANE_ERR_OK && kind == MESSAGE_MOVES;
        if (!moves || !drop_moves) writer_raw(w, message.at, (size_t)(message.end - message.at));
    }
    *bytes = w->data;
    *size = w->size;
}

static struct sim_link *back_link(struct sim *sim, const struct sim_link *link)
{
    for (uint32_t i = 0; i < sim->network.count; i++) {
        struct sim_link *back = &sim->network.links[i];
        if (!back->feed && back->from == link->to && back->to == link->from) return back;
    }
    return NULL;
}

/* The last sure message of a fresh packet vanishes; from then on the receiver is shown numbers one lower, and the
 * sender acknowledgements one higher. */
static bool lose_sure(struct sim *sim, struct sim_link *link, struct packet *packet)
{
    uint64_t last = packet->sure_first + packet->sure_count - 1;
    if (link->sure_cut > 0 || packet->sure_count == 0 || last <= link->sure_high) return false;
    if (sim->members[link->to].role == ROLE_COORDINATOR || sim->members[link->from].role == ROLE_COORDINATOR)
        return false;
    if (!plants_strike(sim, PLANT_SURE_LOST)) return false;
    sim_say(sim, "plant: sure message %llu is lost", (unsigned long long)last);
    link->sure_cut = last;
    return true;
}

static bool plant_sure(struct sim *sim, struct sim_link *link, struct packet packet, const uint8_t **bytes,
                       size_t *size)
{
    bool drop = lose_sure(sim, link, &packet);
    uint64_t last = packet.sure_first + packet.sure_count - 1;
    if (packet.sure_count > 0 && last > link->sure_high) link->sure_high = last;
    const struct sim_link *back = back_link(sim, link);
    if (back != NULL && back->sure_cut > 0 && packet.sure_ack + 1 >= back->sure_cut) packet.sure_ack++;
    if (link->sure_cut > 0 && !drop) {
        /* A repetition that straddles the lost message is not worth rewriting: the sender repeats once more. */
        if (packet.sure_count > 0 && packet.sure_first <= link->sure_cut && last >= link->sure_cut) {
            if (last > link->sure_cut || packet.sure_count == 1) return false;
            drop = true;
        } else if (packet.sure_first > link->sure_cut) {
            packet.sure_first--;
        }
    }
    if (drop && packet.sure_count == 1) packet.sure_first = 0;
    rewrite(sim, packet, drop, false, bytes, size);
    return true;
}

static bool plant_moves(struct sim *sim, struct sim_link *link, struct packet packet, const uint8_t **bytes,
                        size_t *size)
{
    if (sim->members[link->from].role != ROLE_GATEWAY || sim->members[link->to].role != ROLE_CELLSERVER) return true;
    if (!link->plant_deaf && packet.fast_count > 0 && plants_strike(sim, PLANT_MOVES_LOST)) {
        sim_say(sim, "plant: moves are lost");
        link->plant_deaf = true;
    }
    rewrite(sim, packet, false, link->plant_deaf, bytes, size);
    return true;
}

/* A byte of the first state blob in the packet. */
static bool plant_state(struct sim *sim, const uint8_t **bytes, size_t *size)
{
    if (!plants_strike(sim, PLANT_STATE_FLIPPED)) return true;
    for (uint32_t i = 0; i < sim->crowd.count; i++) {
        const struct walker *w = &sim->crowd.walkers[i];
        uint8_t header[12];
        memcpy(header, &w->id, 8);
        memcpy(header + 8, &w->life, 4);
        const uint8_t *found = memmem(*bytes, *size, header, sizeof header);
        if (found == NULL) continue;
        size_t at = (size_t)(found - *bytes) + STATE_HEADER - 1; /* the highest byte of its number */
        writer_clear(&sim->plant_writer);
        writer_raw(&sim->plant_writer, *bytes, *size);
        sim->plant_writer.data[at] ^= 1;
        sim_say(sim, "plant: a byte of the state of %llu flips", (unsigned long long)w->id);
        *bytes = sim->plant_writer.data;
        return true;
    }
    return true;
}

bool plants_packet(struct sim *sim, struct sim_link *link, const uint8_t **bytes, size_t *size)
{
    struct packet packet;
    if (sim->plant == PLANT_STATE_FLIPPED) return plant_state(sim, bytes, size);
    if (sim->plant != PLANT_SURE_LOST && sim->plant != PLANT_MOVES_LOST) return true;
    if (packet_decode(*bytes, *size, &packet) != TERRANE_ERR_OK) return true;
    if (sim->plant == PLANT_SURE_LOST) return plant_sure(sim, link, packet, bytes, size);
    return plant_moves(sim, link, packet, bytes, size);
}

/* ---- frames ---- */

/* A frame of one leaf is lost on the way to a gateway; later frames of that leaf on this link are numbered as if it
 * had never been. */
bool plants_frame(struct sim *sim, struct sim_link *link, const uint8_t **bytes, size_t *size)
{
    struct topic topic;
    struct frame frame;
    if (sim->plant != PLANT_FRAME_SKIPPED || sim->members[link->to].role != ROLE_GATEWAY) return true;
    if (topic_decode(*bytes, *size, &topic) != TERRANE_ERR_OK ||
        frame_decode(*bytes + topic.size, *size - topic.size, &frame) != TERRANE_ERR_OK)
        return true;
    if (link->plant_leaf == 0 && !frame_is_beat(&frame) && frame.moved_count > 0 &&
        plants_strike(sim, PLANT_FRAME_SKIPPED)) {
        sim_say(sim, "plant: frame %llu of a leaf is skipped", (unsigned long long)frame.seq);
        link->plant_leaf = topic.leaf.v;
        return false;
    }
    if (link->plant_leaf != topic.leaf.v) return true;
    struct cursor body = cursor_of(*bytes + topic.size, *size - topic.size);
    uint32_t count = cursor_array(&body, 5, 16);
    writer_clear(&sim->plant_writer);
    writer_raw(&sim->plant_writer, *bytes, topic.size);
    writer_array(&sim->plant_writer, count);
    writer_uint(&sim->plant_writer, cursor_uint(&body, UINT32_MAX));
    writer_uint(&sim->plant_writer, cursor_uint(&body, UINT64_MAX) - 1);
    writer_raw(&sim->plant_writer, body.at, (size_t)(body.end - body.at));
    *bytes = sim->plant_writer.data;
    *size = sim->plant_writer.size;
    return true;
}
