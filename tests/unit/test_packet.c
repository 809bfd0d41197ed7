/* The envelope of the inbox lanes. */
#include "common/limits.h"
#include "proto/messages.h"
#include "proto/packet.h"
#include "tests/unit/suite.h"

#include <stdlib.h>
#include <string.h>

static const struct packet head = {.from = {500}, .to = {600}, .sure_first = 5, .sure_ack = 9, .fast_total = 3};

/* A packet of `sure` and `fast` MOVES_LOST messages that count up from 1. */
static void packet_write(struct writer *w, const struct packet *h, uint32_t sure, uint32_t fast)
{
    writer_clear(w);
    packet_begin(w, h, sure);
    for (uint32_t i = 1; i <= sure + fast; i++) {
        if (i == sure + 1) packet_fast(w, fast);
        moves_lost_encode(w, &(struct moves_lost){.packets = i});
    }
    if (fast == 0) packet_fast(w, 0);
}

START_TEST(messages_come_back_one_by_one_in_order)
{
    struct writer w = {0};
    struct packet packet;
    struct cursor message;
    struct moves_lost m;
    packet_write(&w, &head, 20, 3);
    ck_assert_int_eq(packet_decode(w.data, w.size, &packet), TERRANE_ERR_OK);
    ck_assert_uint_eq(packet.from.v, 500);
    ck_assert_uint_eq(packet.to.v, 600);
    ck_assert_uint_eq(packet.sure_first, 5);
    ck_assert_uint_eq(packet.sure_ack, 9);
    ck_assert_uint_eq(packet.fast_total, 3);
    ck_assert_uint_eq(packet.sure_count, 20);
    ck_assert_uint_eq(packet.fast_count, 3);
    for (uint64_t i = 1; i <= 23; i++) {
        ck_assert(packet_next(i <= 20 ? &packet.sure : &packet.fast, &message));
        ck_assert_int_eq(moves_lost_decode(message, &m), TERRANE_ERR_OK);
        ck_assert_uint_eq(m.packets, i);
    }
    ck_assert(!packet_next(&packet.sure, &message));
    ck_assert(!packet_next(&packet.fast, &message));
    writer_close(&w);
}
END_TEST

START_TEST(another_protocol_version_is_named_as_such)
{
    struct writer w = {0};
    struct packet packet;
    packet_write(&w, &head, 1, 1);
    ck_assert_uint_eq(w.data[1], PROTOCOL_VERSION);
    w.data[1] = PROTOCOL_VERSION + 1;
    ck_assert_int_eq(packet_decode(w.data, w.size, &packet), TERRANE_ERR_VERSION_MISMATCH);
    writer_clear(&w);
    writer_array(&w, 1);
    writer_uint(&w, 77);
    ck_assert_int_eq(packet_decode(w.data, w.size, &packet), TERRANE_ERR_VERSION_MISMATCH);
    writer_close(&w);
}
END_TEST

START_TEST(a_packet_needs_a_sender_and_sure_messages_need_a_number)
{
    struct writer w = {0};
    struct packet packet, bad = head;
    bad.from.v = 0;
    packet_write(&w, &bad, 0, 1);
    ck_assert_int_eq(packet_decode(w.data, w.size, &packet), TERRANE_ERR_MESSAGE_RANGE);
    bad = head;
    bad.sure_first = 0;
    packet_write(&w, &bad, 1, 0);
    ck_assert_int_eq(packet_decode(w.data, w.size, &packet), TERRANE_ERR_MESSAGE_RANGE);
    packet_write(&w, &bad, 0, 1);
    ck_assert_int_eq(packet_decode(w.data, w.size, &packet), TERRANE_ERR_OK);
    writer_close(&w);
}
END_TEST

START_TEST(numbers_that_could_wrap_are_refused)
{
    struct writer w = {0};
    struct packet packet;
    for (uint32_t field = 0; field < 3; field++) {
        struct packet bad = head;
        *(field == 0 ? &bad.sure_first : field == 1 ? &bad.sure_ack : &bad.fast_total) = UINT64_C(1) << 63;
        packet_write(&w, &bad, 1, 1);
        ck_assert_int_eq(packet_decode(w.data, w.size, &packet), TERRANE_ERR_MESSAGE_RANGE);
    }
    writer_close(&w);
}
END_TEST

START_TEST(messages_that_are_no_arrays_or_empty_ones_are_refused)
{
    static const uint8_t items[] = {0x01, 0xc0, 0xa0, 0x80, 0x90};
    struct writer w = {0};
    struct packet packet;
    for (size_t i = 0; i < sizeof items; i++) {
        writer_clear(&w);
        packet_begin(&w, &head, 1);
        writer_raw(&w, &items[i], 1);
        packet_fast(&w, 0);
        ck_assert_int_ne(packet_decode(w.data, w.size, &packet), TERRANE_ERR_OK);
    }
    writer_close(&w);
}
END_TEST

START_TEST(messages_nested_too_deep_are_refused)
{
    struct writer w = {0};
    struct packet packet;
    for (uint32_t depth = 1; depth < 12; depth++) {
        writer_clear(&w);
        packet_begin(&w, &head, 1);
        for (uint32_t i = 0; i < depth; i++) writer_array(&w, 1);
        writer_uint(&w, 1);
        packet_fast(&w, 0);
        enum terrane_error error = packet_decode(w.data, w.size, &packet);
        ck_assert_int_eq(error, depth <= 8 ? TERRANE_ERR_OK : TERRANE_ERR_MESSAGE_RANGE);
    }
    writer_close(&w);
}
END_TEST

START_TEST(a_packet_above_the_limit_is_refused_unread)
{
    struct packet packet;
    uint8_t *bytes = calloc(1, LIMIT_PACKET_BYTES + 1);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_int_eq(packet_decode(bytes, LIMIT_PACKET_BYTES + 1, &packet), TERRANE_ERR_MESSAGE_TOO_LARGE);
    free(bytes);
}
END_TEST

START_TEST(a_message_of_the_largest_size_fits_a_packet_of_the_target_size)
{
    static const uint8_t state[LIMIT_STATE_BYTES];
    struct writer w = {0};
    struct packet full = {.from = {UINT64_MAX}, .to = {UINT64_MAX}, .sure_first = INT64_MAX, .sure_ack = INT64_MAX};
    full.fast_total = INT64_MAX;
    packet_begin(&w, &full, 1);
    size_t envelope = w.size + 3;
    ck_assert_uint_le(LIMIT_MESSAGE_BYTES + envelope, LIMIT_PACKET_TARGET);
    writer_clear(&w);
    struct transfer item = {.record = {.id = {1}, .state = state, .state_size = sizeof state}};
    offer_begin(&w, &(struct offer){.from = {4}, .to = {5}, .count = 1});
    offer_add(&w, &item);
    ck_assert_uint_lt(w.size, LIMIT_MESSAGE_BYTES);
    writer_close(&w);
}
END_TEST

SUITE_MAIN("packet", messages_come_back_one_by_one_in_order, another_protocol_version_is_named_as_such,
           a_packet_needs_a_sender_and_sure_messages_need_a_number, numbers_that_could_wrap_are_refused,
           messages_that_are_no_arrays_or_empty_ones_are_refused, messages_nested_too_deep_are_refused,
           a_packet_above_the_limit_is_refused_unread, a_message_of_the_largest_size_fits_a_packet_of_the_target_size)
