/* The parts inside: sets of slots, state blobs, the backlog. Each against a plain model. */
#include "common/limits.h"
#include "stream/backlog.h"
#include "stream/blobs.h"
#include "stream/slot_set.h"
#include "tests/unit/suite.h"

#include <string.h>

/* libcheck writes down every assertion that holds; in loops over a million slots that takes a minute. */
#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) ck_abort_msg("%s", #condition);                                                              \
    } while (0)

static uint64_t dice = 1;

static uint32_t below(uint32_t n)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((dice >> 33) % n);
}

START_TEST(a_slot_set_is_a_set_in_ascending_order)
{
    const uint32_t rooms[] = {1, 64, 65, 4096, 4097, 300000, LIMIT_ENTITIES};
    for (uint32_t k = 0; k < sizeof rooms / sizeof *rooms; k++) {
        struct slot_set set = {0};
        uint32_t room = rooms[k];
        bool *model = calloc(room, sizeof *model);
        slot_set_reserve(&set, room);
        ck_assert_uint_eq(slot_set_next(&set, 0), SLOT_SET_NONE);
        for (uint32_t i = 0; i < 3000; i++) {
            uint32_t slot = below(4) == 0 ? room - 1 - below(room < 100 ? room : 100) : below(room);
            model[slot] = below(2) == 0;
            if (model[slot])
                slot_set_add(&set, slot);
            else
                slot_set_remove(&set, slot);
        }
        uint32_t found = slot_set_next(&set, 0);
        for (uint32_t slot = 0; slot < room; slot++) {
            MUST(slot_set_has(&set, slot) == model[slot]);
            if (!model[slot]) continue;
            MUST(found == slot);
            found = slot_set_next(&set, slot + 1);
        }
        ck_assert_uint_eq(found, SLOT_SET_NONE);
        ck_assert_uint_eq(slot_set_next(&set, UINT32_MAX), SLOT_SET_NONE);
        slot_set_close(&set);
        free(model);
    }
}
END_TEST

START_TEST(a_slot_set_keeps_its_members_when_it_grows)
{
    struct slot_set set = {0};
    for (uint32_t room = 1; room <= LIMIT_ENTITIES; room *= 2) {
        slot_set_reserve(&set, room);
        slot_set_add(&set, room - 1);
        slot_set_reserve(&set, room / 2);
    }
    uint32_t slot = 0;
    for (uint32_t room = 1; room <= LIMIT_ENTITIES; room *= 2, slot++) {
        slot = slot_set_next(&set, slot);
        ck_assert_uint_eq(slot, room - 1);
    }
    ck_assert_uint_eq(slot_set_next(&set, slot), SLOT_SET_NONE);
    slot_set_close(&set);
}
END_TEST

#define BLOBS 500u

START_TEST(blobs_keep_their_bytes_and_give_back_their_blocks)
{
    struct blobs blobs = {0};
    static uint8_t bytes[LIMIT_STATE_BYTES];
    static struct {
        uint32_t ref, size;
        uint8_t value;
    } model[BLOBS];
    uint32_t slabs = 0;
    for (uint32_t i = 0; i < 60000; i++) {
        uint32_t at = below(BLOBS), limit = 1u << below(15);
        model[at].size = below(8) == 0 ? 0 : below(limit + 1);
        model[at].value = (uint8_t)i;
        memset(bytes, model[at].value, model[at].size);
        if (below(2) == 0) {
            blobs_set(&blobs, &model[at].ref, bytes, model[at].size);
        } else {
            blobs_drop(&blobs, model[at].ref);
            model[at].ref = blobs_put(&blobs, bytes, model[at].size);
        }
        uint32_t other = below(BLOBS), size;
        const uint8_t *have = blobs_get(&blobs, model[other].ref, &size);
        MUST(size == model[other].size && (size == 0) == (have == NULL));
        if (size > 0) MUST(have[0] == model[other].value && memcmp(have, have + 1, size - 1) == 0);
        if (i == 40000) slabs = blobs.slab_count;
    }
    ck_assert_uint_le(blobs.slab_count, slabs + slabs / 10);
    blobs_close(&blobs);
}
END_TEST

START_TEST(the_largest_blob_fits)
{
    struct blobs blobs = {0};
    static uint8_t bytes[LIMIT_STATE_BYTES];
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t small = blobs_put(&blobs, bytes, 1), large, size;
        bytes[LIMIT_STATE_BYTES - 1] = (uint8_t)i;
        large = blobs_put(&blobs, bytes, LIMIT_STATE_BYTES);
        ck_assert_uint_ne(small, large);
        ck_assert_uint_eq(blobs_get(&blobs, large, &size)[LIMIT_STATE_BYTES - 1], i);
        ck_assert_uint_eq(size, LIMIT_STATE_BYTES);
    }
    blobs_close(&blobs);
}
END_TEST

START_TEST(a_backlog_is_a_bounded_queue)
{
    struct backlog backlog = {0};
    static uint8_t bytes[LIMIT_STREAM_BACKLOG + 1];
    uint64_t pushed = 0, popped = 0;
    const uint8_t *front;
    size_t size, held = 0;
    static size_t sizes[20000];
    for (uint32_t i = 0; i < 20000; i++) {
        if (below(5) > 0) {
            sizes[pushed] = 4 + below(20000);
            uint32_t mark = (uint32_t)pushed;
            memcpy(bytes, &mark, sizeof mark);
            held += sizes[pushed];
            uint64_t dropped = backlog_push(&backlog, bytes, sizes[pushed++]);
            for (; dropped > 0; dropped--) held -= sizes[popped++];
            ck_assert_uint_le(held, LIMIT_STREAM_BACKLOG);
        } else if (backlog_front(&backlog, &front, &size)) {
            uint32_t mark;
            memcpy(&mark, front, sizeof mark);
            ck_assert_uint_eq(mark, popped);
            ck_assert_uint_eq(size, sizes[popped]);
            held -= sizes[popped++];
            backlog_pop(&backlog);
        }
        ck_assert_uint_eq(backlog.held, held);
        ck_assert_uint_le(backlog.room, 4 * LIMIT_STREAM_BACKLOG);
    }
    ck_assert_uint_eq(backlog_push(&backlog, bytes, sizeof bytes), 1);
    ck_assert_uint_eq(backlog.held, held);
    ck_assert_uint_gt(popped, 0);
    backlog_clear(&backlog);
    ck_assert(!backlog_front(&backlog, &front, &size));
}
END_TEST

SUITE_MAIN("stream_parts", a_slot_set_is_a_set_in_ascending_order, a_slot_set_keeps_its_members_when_it_grows,
           blobs_keep_their_bytes_and_give_back_their_blocks, the_largest_blob_fits, a_backlog_is_a_bounded_queue)
