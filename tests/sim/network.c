#include "tests/sim/network.h"

#include "common/array.h"
#include "common/check.h"
#include "tests/sim/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REDIAL_US UINT64_C(100000)

void network_close(struct network *n)
{
    free(n->links);
    *n = (struct network){0};
}

static struct sim_link *find(struct network *n, uint32_t from, struct node_id named, bool feed, uint32_t number)
{
    for (uint32_t i = 0; i < n->count; i++) {
        struct sim_link *link = &n->links[i];
        if (link->from == from && link->named.v == named.v && link->feed == feed && link->feed_number == number)
            return link;
    }
    return NULL;
}

static uint32_t index_of(const struct network *n, const struct sim_link *link)
{
    return (uint32_t)(link - n->links);
}

static uint64_t delay(struct sim *sim)
{
    const struct plan *plan = &sim->plan;
    struct dice *d = &sim->network.dice;
    uint64_t base = (uint64_t)dice_between(d, (int64_t)plan->delay_min_us, (int64_t)plan->delay_max_us);
    return base + dice_below(d, plan->delay_jitter_us + 1);
}

/* Exponential with that mean. */
static uint64_t life(struct dice *d, uint64_t mean_us)
{
    return (uint64_t)(-log(1.0 - dice_fraction(d)) * (double)mean_us) + 1;
}

static void dial(struct sim *sim, struct sim_link *link, uint64_t after_us)
{
    queue_push(&sim->queue, (struct happening){.kind = HAPPEN_LINK_UP,
                                               .at_us = sim->now_us + after_us,
                                               .member = link->from,
                                               .link = index_of(&sim->network, link),
                                               .connection = link->connection});
}

/* The connection is over; what is in flight arrives so much later; 0: never. */
static void cut(struct sim_link *link, uint64_t late_us)
{
    struct broken_connection *broken = &link->broken[link->broken_next++ % LINK_BROKEN_KEPT];
    broken->connection = link->connection;
    broken->late_us = late_us;
    link->connection++;
    link->up = false;
    link->last_arrival_us = 0;
}

static uint64_t draw_late(struct sim *sim)
{
    if (!dice_chance(&sim->network.dice, sim->plan.late_chance)) return 0;
    return (uint64_t)dice_between(&sim->network.dice, (int64_t)sim->plan.late_min_us, (int64_t)sim->plan.late_max_us);
}

static void tell(struct sim *sim, const struct sim_link *link, bool up)
{
    const struct member *m = &sim->members[link->from];
    if (m->busy_until_us > sim->now_us) {
        queue_push(&sim->queue, (struct happening){.kind = HAPPEN_TOLD,
                                                   .at_us = m->busy_until_us,
                                                   .member = link->from,
                                                   .link = index_of(&sim->network, link),
                                                   .connection = (uint32_t)m->incarnation,
                                                   .token = up ? 1 : 0});
        return;
    }
    enum event_kind kind = link->feed ? (up ? EVENT_FEED_UP : EVENT_FEED_DOWN) : (up ? EVENT_PEER_UP : EVENT_PEER_DOWN);
    struct event event = {.kind = kind, .node = link->named, .feed = link->feed_number};
    sim_step(sim, link->from, &event);
}

void network_told(struct sim *sim, const struct happening *what)
{
    if (what->connection == sim->members[what->member].incarnation)
        tell(sim, &sim->network.links[what->link], what->token == 1);
}

void network_link(struct sim *sim, uint32_t from, const struct output *output, const uint8_t *url)
{
    struct network *n = &sim->network;
    bool feed = output->kind == OUTPUT_FEED_LINK;
    uint32_t to = sim_member_at(sim, (const char *)url, output->size);
    if (to == MEMBER_NONE) {
        sim_violation(sim, "member %u dials an address that nobody has: %.*s", from, (int)output->size,
                      (const char *)url);
        return;
    }
    struct sim_link *link = find(n, from, output->node, feed, feed ? output->feed : 0);
    if (link == NULL) {
        ARRAY_RESERVE(n->links, n->room, (size_t)n->count + 1);
        link = &n->links[n->count++];
        *link = (struct sim_link){
            .from = from, .to = to, .named = output->node, .feed = feed, .feed_number = feed ? output->feed : 0};
    } else if (link->wanted && link->to == to) {
        if (link->up) sim_tell_later(sim, index_of(n, link));
        return;
    } else if (link->up) {
        cut(link, 0);
    }
    link->to = to;
    link->wanted = true;
    link->connection++;
    dial(sim, link, delay(sim) + 100);
}

void network_unlink(struct sim *sim, uint32_t from, const struct output *output)
{
    bool feed = output->kind == OUTPUT_FEED_UNLINK;
    struct sim_link *link = find(&sim->network, from, output->node, feed, feed ? output->feed : 0);
    if (link == NULL || !link->wanted) return;
    link->wanted = false;
    cut(link, 0);
}

static void put_on(struct sim *sim, struct sim_link *link, const uint8_t *bytes, size_t size)
{
    struct path path = faults_path(sim, link->from, link->to);
    if (path.drops) {
        sim->network.lost_packets++;
        return;
    }
    uint64_t at = (path.held_us > sim->now_us ? path.held_us : sim->now_us) + delay(sim) + link->slow_us + 1;
    at += path.slow_us;
    if (at < link->last_arrival_us) at = link->last_arrival_us;
    link->last_arrival_us = at;
    queue_push(&sim->queue, (struct happening){.kind = link->feed ? HAPPEN_FRAME : HAPPEN_PACKET,
                                               .at_us = at,
                                               .member = link->to,
                                               .link = index_of(&sim->network, link),
                                               .connection = link->connection,
                                               .bytes = queue_bytes(bytes, size),
                                               .size = size});
}

void network_send(struct sim *sim, uint32_t from, struct node_id to, const uint8_t *bytes, size_t size)
{
    struct network *n = &sim->network;
    n->packets++;
    struct sim_link *link = find(n, from, to, false, 0);
    if (link == NULL || !link->up) {
        n->dropped_unlinked++;
        return;
    }
    if (plants_packet(sim, link, &bytes, &size)) put_on(sim, link, bytes, size);
}

void network_publish(struct sim *sim, uint32_t from, uint32_t feed, const uint8_t *bytes, size_t size)
{
    struct network *n = &sim->network;
    for (uint32_t i = 0; i < n->count; i++) {
        struct sim_link *link = &n->links[i];
        if (!link->feed || link->from != from || link->feed_number != feed || !link->up) continue;
        n->frames++;
        if (!n->healed && dice_chance(&n->dice, sim->plan.feed_loss)) {
            n->lost_frames++;
            continue;
        }
        const uint8_t *sent = bytes;
        size_t sent_size = size;
        if (plants_frame(sim, link, &sent, &sent_size)) put_on(sim, link, sent, sent_size);
    }
}

void network_link_up(struct sim *sim, const struct happening *what)
{
    struct network *n = &sim->network;
    struct sim_link *link = &n->links[what->link];
    if (!link->wanted || link->connection != what->connection) return;
    if (link->up) { /* told again on request: see sim_tell_later */
        tell(sim, link, true);
        return;
    }
    if (!sim->members[link->to].listening || faults_parted(sim, link->from, link->to)) {
        dial(sim, link, REDIAL_US);
        return;
    }
    link->up = true;
    if (sim->plan.break_mean_us > 0) {
        queue_push(&sim->queue, (struct happening){.kind = HAPPEN_LINK_DOWN,
                                                   .at_us = sim->now_us + life(&n->dice, sim->plan.break_mean_us),
                                                   .member = link->from,
                                                   .link = what->link,
                                                   .connection = link->connection});
    }
    tell(sim, link, true);
}

static void break_link(struct sim *sim, uint32_t index)
{
    struct network *n = &sim->network;
    n->breaks++;
    struct sim_link *link = &n->links[index];
    cut(link, draw_late(sim));
    dial(sim, link, 1000 + dice_below(&n->dice, sim->plan.down_max_us));
    tell(sim, link, false);
}

void network_link_down(struct sim *sim, const struct happening *what)
{
    struct network *n = &sim->network;
    struct sim_link *link = &n->links[what->link];
    if (!link->up || link->connection != what->connection) return;
    if (n->healed) { /* it would have broken; now it lives on for another while */
        struct happening again = *what;
        again.at_us = sim->now_us + life(&n->dice, sim->plan.break_mean_us);
        queue_push(&sim->queue, again);
        return;
    }
    /* A third takes all connections between the two processes along, both ways. */
    if (dice_chance(&n->dice, 0.33)) {
        network_break(sim, link->from, link->to);
        network_break(sim, n->links[what->link].to, n->links[what->link].from);
    } else {
        break_link(sim, what->link);
    }
}

void network_break(struct sim *sim, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < sim->network.count; i++) {
        const struct sim_link *link = &sim->network.links[i];
        if (link->from == from && link->to == to && link->up) break_link(sim, i);
    }
}

void network_slow(struct sim *sim, uint32_t from, uint32_t to, bool feed, uint64_t slow_us)
{
    for (uint32_t i = 0; i < sim->network.count; i++) {
        struct sim_link *link = &sim->network.links[i];
        if (link->from == from && link->to == to && link->feed == feed) link->slow_us = slow_us;
    }
}

void network_member_gone(struct sim *sim, uint32_t member)
{
    /* What it wrote to its sockets arrives as a rule: the kernel sends it. */
    uint64_t after_us = dice_chance(&sim->network.dice, 0.7) ? 1 : 0;
    for (uint32_t i = 0; i < sim->network.count; i++) {
        struct sim_link *link = &sim->network.links[i];
        if (link->from == member && link->wanted) {
            link->wanted = false;
            cut(link, after_us);
        } else if (link->to == member && link->up) {
            break_link(sim, i);
        }
    }
}

bool network_arrives(struct sim *sim, struct happening *what)
{
    struct network *n = &sim->network;
    const struct sim_link *link = &n->links[what->link];
    if (faults_path(sim, link->from, link->to).drops) {
        n->lost_packets++;
        return false;
    }
    if (what->late || what->connection == link->connection) return sim->members[what->member].listening;
    for (uint32_t i = 0; i < LINK_BROKEN_KEPT; i++) {
        if (link->broken[i].connection != what->connection || link->broken[i].late_us == 0) continue;
        struct happening late = *what;
        late.at_us += link->broken[i].late_us;
        late.late = true;
        queue_push(&sim->queue, late);
        what->bytes = NULL;
        n->late_packets++;
        return false;
    }
    n->lost_packets++;
    return false;
}
