/* Pairs under any interleaving. One observer wanders between two servers; each server's words reach the gateway in
 * order, but how the two mix, and when the subjects' data comes and goes, is drawn by a seed. The rig's model fails on
 * any see or unsee out of turn; at the end the view must be the last owner's. */
#include "gateway_rig.h"

#define SUBJECTS 24
#define FIRST    1000u
#define QUEUE    4096
#define OBSERVER 7u

/* Numerical Recipes' linear congruence with a finaliser is plenty for a test that prints its seed. */
static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    uint64_t mixed = *state ^ *state >> 31;
    return (uint32_t)((mixed * 0x9e3779b97f4a7c15ULL >> 33) % below);
}

struct word {
    uint8_t *bytes;
    size_t size;
};

struct told_world {
    struct rig rig;
    uint64_t dice, version;
    int owner;
    bool view[SUBJECTS];
    struct word queue[2][QUEUE];
    size_t said[2], heard[2];
    uint64_t seq;
    struct leaf_owner leaves[4];
    bool streamed[SUBJECTS]; /* in the region stream */
};

static void queue_word(struct told_world *w, int server)
{
    struct word *word = &w->queue[server][w->said[server]++];
    ck_assert_uint_lt(w->said[server], QUEUE);
    *word = (struct word){malloc(w->rig.w.size), w->rig.w.size};
    memcpy(word->bytes, w->rig.w.data, word->size);
    writer_clear(&w->rig.w);
}

static void hear(struct told_world *w, int server)
{
    if (w->heard[server] == w->said[server]) return;
    struct word *word = &w->queue[server][w->heard[server]++];
    writer_raw(&w->rig.w, word->bytes, word->size);
    free(word->bytes);
    rig_say(&w->rig, &w->rig.servers[server]);
}

static void write_item(struct told_world *w, enum view_part part, const uint64_t *unsee, uint32_t unsee_count,
                       const uint64_t *see, uint32_t see_count)
{
    struct view_item item = {.observer = {OBSERVER},
                             .version = w->version,
                             .part = part,
                             .unsee_count = unsee_count,
                             .see_count = see_count};
    views_begin(&w->rig.w, &(struct views){.tick = 1, .count = 1});
    views_add(&w->rig.w, &item);
    for (uint32_t i = 0; i < unsee_count; i++) entity_add(&w->rig.w, (struct entity_id){unsee[i]});
    entity_list(&w->rig.w, see_count);
    for (uint32_t i = 0; i < see_count; i++) entity_add(&w->rig.w, (struct entity_id){see[i]});
    queue_word(w, w->owner);
}

static void change_view(struct told_world *w, bool tell)
{
    uint64_t unsee[SUBJECTS], see[SUBJECTS];
    uint32_t unsee_count = 0, see_count = 0;
    for (uint32_t i = 0; i < SUBJECTS; i++) {
        if (draw(&w->dice, 5) > 0) continue;
        if (w->view[i])
            unsee[unsee_count++] = FIRST + i;
        else
            see[see_count++] = FIRST + i;
        w->view[i] = !w->view[i];
    }
    if (tell && unsee_count + see_count > 0) write_item(w, VIEW_CHANGES, unsee, unsee_count, see, see_count);
}

static void tell_whole(struct told_world *w)
{
    uint64_t see[SUBJECTS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < SUBJECTS; i++) {
        if (w->view[i]) see[count++] = FIRST + i;
    }
    uint32_t first = draw(&w->dice, 2) == 0 ? 0 : draw(&w->dice, count + 1);
    if (first > 0) write_item(w, VIEW_WHOLE_MORE, NULL, 0, see, first);
    write_item(w, VIEW_WHOLE_LAST, NULL, 0, see + first, count - first);
}

static void hand_over(struct told_world *w)
{
    w->owner = 1 - w->owner;
    w->version++;
    change_view(w, false);
    struct owner owner = {.id = {OBSERVER}, .version = w->version, .leaf = w->leaves[0].leaf};
    owner_encode(&w->rig.w, &owner);
    queue_word(w, w->owner);
    tell_whole(w);
}

/* The map names the present owner for the leaf, be its words heard yet or not. What the other one has said before and
 * is still to be heard is a deposed owner's. The successor's stream begins anew. */
static void promote(struct told_world *w)
{
    struct rig *rig = &w->rig;
    rig_give(&w->leaves[0], SERVER(w->owner));
    rig_map(rig, w->leaves, 4, 4);
    struct snapshot snapshot = {
        .stream = STREAM_REGION, .leaf = w->leaves[0].leaf, .epoch = w->leaves[0].since, .seq = ++w->seq, .parts = 1};
    for (uint32_t i = 0; i < SUBJECTS; i++) snapshot.count += w->streamed[i];
    snapshot_begin(&rig->w, &snapshot);
    for (uint32_t i = 0; i < SUBJECTS; i++) {
        struct entity_record record = {.id = {FIRST + i}, .version = 10 + w->seq, .position = {100, 100, 0}};
        if (w->streamed[i]) snapshot_add(&rig->w, i, &record);
    }
    queue_word(w, w->owner);
    while (w->heard[w->owner] < w->said[w->owner]) hear(w, w->owner);
}

/* Some subject enters or leaves the stream, another moves. */
static void stream(struct told_world *w)
{
    struct frame_builder frame = {0};
    frame_builder_clear(&frame);
    uint32_t slot = draw(&w->dice, SUBJECTS), other = draw(&w->dice, SUBJECTS);
    if (w->streamed[slot]) {
        frame_builder_left(&frame, slot, LEFT_GONE, 0, QUADKEY_NONE);
    } else {
        struct entity_record record = {.id = {FIRST + slot}, .version = 10 + w->seq, .position = {100, 100, 0}};
        frame_builder_entered(&frame, slot, &record);
    }
    w->streamed[slot] = !w->streamed[slot];
    if (w->streamed[other] && other != slot) frame_builder_moved(&frame, other, 1, 1);
    rig_frame(&w->rig, 0, &frame, w->leaves[0].since, ++w->seq);
    frame_builder_close(&frame);
}

/* All data is there at the end, so that the view must show in full. */
static void stream_all(struct told_world *w)
{
    for (uint32_t i = 0; i < SUBJECTS; i++) {
        if (w->streamed[i]) continue;
        struct frame_builder frame = {0};
        frame_builder_clear(&frame);
        struct entity_record record = {.id = {FIRST + i}, .version = 10 + w->seq, .position = {100, 100, 0}};
        frame_builder_entered(&frame, i, &record);
        rig_frame(&w->rig, 0, &frame, w->leaves[0].since, ++w->seq);
        frame_builder_close(&frame);
    }
}

static void check_end(struct told_world *w, uint64_t seed)
{
    uint64_t ids[SUBJECTS];
    uint32_t expected = 0;
    size_t count = gateway_view(w->rig.g, OBSERVER, ids, SUBJECTS);
    for (uint32_t i = 0; i < SUBJECTS; i++) {
        expected += w->view[i];
        bool seen = rig_pair(&w->rig, OBSERVER, FIRST + i) != SIZE_MAX;
        ck_assert_msg(seen == w->view[i], "seed %llu: subject %u", (unsigned long long)seed, i);
    }
    ck_assert_uint_eq(count, expected);
    ck_assert_uint_eq(w->rig.seen_count, expected);
    ck_assert(gateway_calm(w->rig.g));
}

static void live(uint64_t seed)
{
    struct told_world *w = calloc(1, sizeof *w);
    w->dice = seed * 2654435761u + 1;
    rig_open_ready(&w->rig);
    w->version = rig_enter(&w->rig, OBSERVER, 100, 100, 50, 0);
    rig_run(&w->rig, 10000);
    rig_snapshot(&w->rig, 0, 0, 1, w->seq, NULL, 0, 1, 1, 1);
    rig_quadrants(w->leaves);
    for (int step = 0; step < 250; step++) {
        switch (draw(&w->dice, 8)) {
        case 0: hand_over(w); break;
        case 1: /* another leaf of the same server */
            w->version++;
            change_view(w, false);
            tell_whole(w);
            break;
        case 2:
        case 3: change_view(w, true); break;
        case 4: stream(w); break;
        default: hear(w, (int)draw(&w->dice, 2));
        }
        if (draw(&w->dice, 40) == 0) rig_run(&w->rig, 1000);
        if (draw(&w->dice, 25) == 0) {
            hand_over(w);
            promote(w);
        }
    }
    while (w->heard[0] < w->said[0] || w->heard[1] < w->said[1]) hear(w, (int)draw(&w->dice, 2));
    promote(w);
    stream_all(w);
    rig_run(&w->rig, 50000);
    check_end(w, seed);
    rig_close(&w->rig);
    free(w);
}

START_TEST(pairs_are_exact_under_any_interleaving_of_two_servers)
{
    for (uint64_t seed = 1; seed <= 150; seed++) live(seed);
}
END_TEST

SUITE_MAIN("gateway_random", pairs_are_exact_under_any_interleaving_of_two_servers)
