/* In the steady state a gateway allocates nothing: moves out, frames and view changes in, updates told. */
#include "allocations.h"
#include "gateway_rig.h"

#define OBSERVERS 200
#define SUBJECTS  500

static void ignore(void *context, struct cursor message, bool sure)
{
    (void)context, (void)message, (void)sure;
}

static uint64_t updates;
static void count_update(void *context, uint64_t observer, const struct terrane_entity *subject, uint32_t changes)
{
    (void)context, (void)observer, (void)subject, (void)changes;
    updates++;
}
static void count_see(void *context, uint64_t observer, const struct terrane_entity *subject)
{
    (void)context, (void)observer, (void)subject;
}
static void count_unsee(void *context, uint64_t observer, uint64_t subject)
{
    (void)context, (void)observer, (void)subject;
}

/* A step whose allocations count; its packets reach the fakes. The rig's own steps would allocate by themselves. */
static void counted_step(struct rig *rig, const struct event *event)
{
    outbox_clear(&rig->out);
    allocations_counted = true;
    gateway_step(rig->g, event, rig->now, &rig->out);
    allocations_counted = false;
    for (size_t i = 0; i < rig->out.count; i++) {
        const struct output *item = &rig->out.items[i];
        struct rig_peer *peer = rig_peer_of(rig, item->node);
        struct packet packet;
        uint64_t lost;
        if (item->kind != OUTPUT_SEND) continue;
        ck_assert_int_eq(packet_decode(outbox_bytes(&rig->out, item), item->size, &packet), TERRANE_ERR_OK);
        ck_assert_int_eq(session_receive(peer->session, rig->now, &packet, ignore, NULL, &lost), TERRANE_ERR_OK);
    }
}

static void counted_pump(struct rig *rig, struct rig_peer *peer)
{
    while (session_fill(peer->session, rig->now, &rig->packet)) {
        struct event event = {
            .kind = EVENT_MESSAGE, .lane = LANE_INBOX, .bytes = rig->packet.data, .size = rig->packet.size};
        counted_step(rig, &event);
    }
}

/* One tick of server 0: a frame in which everything moves, and some observers see one subject more or less. */
static void tick(struct rig *rig, uint64_t seq, uint64_t version, struct frame_builder *frame)
{
    frame_builder_clear(frame);
    for (uint32_t slot = 0; slot < SUBJECTS; slot++)
        frame_builder_moved(frame, slot, seq % 2 ? 3 : -3, 1 - (int)(seq % 3));
    writer_clear(&rig->packet);
    topic_write(&rig->packet, STREAM_REGION, quadkey_child(QUADKEY_ROOT, 0));
    frame_builder_write(frame, 1, seq, seq, &rig->packet);
    struct event event = {
        .kind = EVENT_MESSAGE, .lane = LANE_FEED, .bytes = rig->packet.data, .size = rig->packet.size};
    counted_step(rig, &event);
    views_begin(&rig->w, &(struct views){.tick = seq, .count = OBSERVERS / 10});
    for (uint64_t i = 1; i <= OBSERVERS / 10; i++) {
        bool in = seq % 2 == 0;
        struct view_item item = {
            .observer = {i}, .version = version, .part = VIEW_CHANGES, .see_count = in, .unsee_count = !in};
        views_add(&rig->w, &item);
        if (!in) entity_add(&rig->w, (struct entity_id){10000 + i + 20});
        entity_list(&rig->w, in);
        if (in) entity_add(&rig->w, (struct entity_id){10000 + i + 20});
    }
    ck_assert_int_eq(session_push(rig->servers[0].session, rig->w.data, rig->w.size), TERRANE_ERR_OK);
    writer_clear(&rig->w);
    counted_pump(rig, &rig->servers[0]);
    allocations_counted = true;
    for (uint64_t i = 1; i <= OBSERVERS; i++) (void)!gateway_move(rig->g, i, 100 + (double)(seq % 7), 100, 0, 0);
    allocations_counted = false;
    for (uint64_t due = rig->now + 50000; gateway_deadline_us(rig->g) < due;) {
        if (gateway_deadline_us(rig->g) > rig->now) rig->now = gateway_deadline_us(rig->g);
        counted_step(rig, &(struct event){.kind = EVENT_TIMEOUT});
    }
    rig->now += 1000;
    counted_pump(rig, &rig->servers[0]);
}

START_TEST(a_steady_gateway_allocates_nothing)
{
    struct rig rig = {0};
    struct gateway_options options = rig_options(&rig);
    struct leaf_owner leaves[4];
    uint64_t subjects[SUBJECTS], version = 1;
    options.callbacks.update = count_update;
    options.callbacks.see = count_see;
    options.callbacks.unsee = count_unsee;
    rig_open_with(&rig, &options);
    rig_welcome(&rig);
    rig_quadrants(leaves);
    rig_map(&rig, leaves, 4, 4);
    for (uint32_t i = 0; i < SUBJECTS; i++) subjects[i] = 10001 + i;
    for (uint64_t i = 1; i <= OBSERVERS; i++) version = rig_enter(&rig, i, 100, 100, 50, 0);
    rig_snapshot(&rig, 0, 0, 1, 0, subjects, SUBJECTS, 110, 100, 3);
    for (uint64_t i = 1; i <= OBSERVERS; i++) rig_views(&rig, 0, i, version, VIEW_WHOLE_LAST, NULL, 0, subjects, 15);
    struct frame_builder frame = {0};
    uint64_t seq = 0;
    for (int i = 0; i < 100; i++) tick(&rig, ++seq, version, &frame);
    ck_assert_uint_gt(updates, 0);
    ck_assert_uint_gt(allocations, 0); /* the count works */
    allocations = 0;
    updates = 0;
    for (int i = 0; i < 200; i++) tick(&rig, ++seq, version, &frame);
    ck_assert_uint_ge(updates, 200 * OBSERVERS * 15);
    ck_assert_uint_eq(allocations, 0);
    frame_builder_close(&frame);
    rig_close(&rig);
}
END_TEST

SUITE_MAIN("gateway_allocations", a_steady_gateway_allocates_nothing)
