/* Raw TCP at every socket: what is no nng peer, or a bad one, is cut off, counted, and hurts nobody else. */
#include "ends.h"

#include <arpa/inet.h>
#include <errno.h>
#include <nng/nng.h>
#include <nng/protocol/pipeline0/push.h>
#include <sys/socket.h>

/* The protocol numbers of SP: what a peer says in its greeting. */
enum { SP_PUB = 0x20, SP_SUB = 0x21, SP_REQ = 0x30, SP_PUSH = 0x50, SP_PULL = 0x51 };

static int dial(const char *url)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)atoi(strrchr(url, ':') + 1)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void say(int fd, const void *bytes, size_t size)
{
    /* The other side may have cut us off already. */
    ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
    (void)sent;
}

/* Takes the other side's greeting too, so that it is past it. */
static int dial_as(const char *url, uint8_t protocol)
{
    uint8_t hello[8] = {0, 'S', 'P', 0, 0, protocol, 0, 0}, theirs[8];
    int fd = dial(url);
    say(fd, hello, sizeof hello);
    ck_assert_int_eq(recv(fd, theirs, sizeof theirs, MSG_WAITALL), 8);
    return fd;
}

static void say_size(int fd, uint64_t size)
{
    uint8_t header[8];
    for (int i = 0; i < 8; i++) header[i] = (uint8_t)(size >> (56 - 8 * i));
    say(fd, header, sizeof header);
}

/* Reads until the other side closes. */
static bool is_cut(int fd)
{
    struct timeval patience = {.tv_sec = 10};
    uint8_t scrap[256];
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ssize_t got;
    while ((got = recv(fd, scrap, sizeof scrap, 0)) > 0) continue;
    return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

static struct end victim;

static void victim_open(void)
{
    end_open(&victim, (struct link_options){
                          .inbox_url = ANY, .sub_url = ANY, .query_url = ANY, .feed_urls = {ANY}, .feed_count = 1});
    link_watch(victim.link, "", 0);
}

/* A good peer still gets through to the inbox, and a feed's reader gets what is published. */
static void assert_serves(void)
{
    struct end good;
    uint32_t before = end_count(&victim, EVENT_MESSAGE), ups = end_count(&victim, EVENT_FEED_UP);
    end_open(&good, (struct link_options){.sub_url = ANY});
    link_watch(good.link, "", 0);
    ck_assert_int_eq(link_peer(good.link, node(20), link_urls(victim.link)->inbox), TERRANE_ERR_OK);
    ck_assert_int_eq(link_feed(victim.link, 0, node(21), link_urls(good.link)->sub), TERRANE_ERR_OK);
    WAIT_FOR(end_count(&good, EVENT_PEER_UP) == 1 && end_count(&victim, EVENT_FEED_UP) == ups + 1, &good, &victim);
    link_send(good.link, node(20), "good", 4);
    link_publish(victim.link, 0, "frame", 5);
    WAIT_FOR(end_count(&victim, EVENT_MESSAGE) == before + 1 && end_count(&good, EVENT_MESSAGE) == 1, &good, &victim);
    ck_assert_str_eq((char *)end_nth(&victim, EVENT_MESSAGE, before)->bytes, "good");
    link_unfeed(victim.link, 0, node(21));
    WAIT_FOR(link_quiet(good.link), &good, &victim);
    end_close(&good);
}

static const char *socket_url(uint32_t i)
{
    const struct link_urls *urls = link_urls(victim.link);
    const char *all[] = {urls->inbox, urls->sub, urls->query, urls->feeds[0]};
    return all[i];
}

static void victim_close(void)
{
    WAIT_FOR(link_quiet(victim.link), &victim);
    end_close(&victim);
}

enum junk { JUNK_PROBE, JUNK_HTTP, JUNK_HALF, JUNK_KINDS };

static void throw_junk(enum junk kind, const char *url)
{
    int fd = dial(url);
    if (kind == JUNK_HTTP) {
        say(fd, "GET / HTTP/1.1\r\nHost: terrane\r\n\r\n", 34);
        ck_assert(is_cut(fd));
    } else if (kind == JUNK_HALF) {
        say(fd, "\0SP", 3);
    }
    close(fd);
}

START_TEST(junk_on_every_socket_is_cut_and_counted)
{
    victim_open();
    for (uint32_t i = 0; i < 4; i++) {
        for (int kind = 0; kind < JUNK_KINDS; kind++) {
            uint64_t before = link_refused(victim.link);
            /* Again and again: nng counts one of a burst. */
            WAIT_FOR((throw_junk((enum junk)kind, socket_url(i)), link_refused(victim.link) > before), &victim);
        }
        assert_serves();
    }
    victim_close();
}
END_TEST

START_TEST(a_peer_of_the_wrong_protocol_is_cut_and_counted)
{
    const uint8_t wrong[] = {SP_REQ, SP_PUSH, SP_PUB, SP_PULL};
    victim_open();
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t before = link_refused(victim.link);
        int fd = dial_as(socket_url(i), wrong[i]);
        ck_assert(is_cut(fd));
        close(fd);
        WAIT_FOR(link_refused(victim.link) > before, &victim);
    }
    assert_serves();
    victim_close();
}
END_TEST

START_TEST(a_forged_length_is_cut_before_any_memory_is_taken)
{
    const uint8_t right[] = {SP_PUSH, SP_PUB, SP_REQ, SP_SUB};
    const uint64_t lengths[] = {LIMIT_PACKET_BYTES + 1, UINT64_C(8) << 30, UINT64_MAX};
    victim_open();
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t j = 0; j < 3; j++) {
            uint64_t before = link_refused(victim.link);
            int fd = dial_as(socket_url(i), right[i]);
            say_size(fd, lengths[j]);
            ck_assert(is_cut(fd));
            close(fd);
            WAIT_FOR(link_refused(victim.link) > before, &victim);
        }
    }
    assert_serves();
    ck_assert_uint_eq(end_counters(&victim).received_bytes[LANE_INBOX], 4);
    victim_close();
}
END_TEST

START_TEST(a_message_of_the_largest_size_arrives_and_one_byte_more_does_not)
{
    struct end a;
    nng_socket raw;
    victim_open();
    end_open(&a, (struct link_options){0});
    char *large = calloc(1, LIMIT_PACKET_BYTES + 1);
    ck_assert_int_eq(link_peer(a.link, node(77), link_urls(victim.link)->inbox), TERRANE_ERR_OK);
    WAIT_FOR(end_count(&a, EVENT_PEER_UP) == 1, &a, &victim);
    link_send(a.link, node(77), large, LIMIT_PACKET_BYTES);
    WAIT_FOR(end_count(&victim, EVENT_MESSAGE) == 1, &a, &victim);
    ck_assert_uint_eq(victim.items[0].event.size, LIMIT_PACKET_BYTES);

    uint64_t before = link_refused(victim.link);
    ck_assert_int_eq(nng_push0_open(&raw), 0);
    ck_assert_int_eq(nng_dial(raw, link_urls(victim.link)->inbox, NULL, 0), 0);
    ck_assert_int_eq(nng_send(raw, large, LIMIT_PACKET_BYTES + 1, 0), 0);
    WAIT_FOR(link_refused(victim.link) > before, &a, &victim);
    ck_assert_uint_eq(end_count(&victim, EVENT_MESSAGE), 1);
    nng_close(raw);
    free(large);
    end_close(&a);
    victim_close();
}
END_TEST

START_TEST(a_message_that_never_ends_hurts_nobody)
{
    victim_open();
    int fds[32];
    for (uint32_t i = 0; i < 32; i++) {
        const uint8_t right[] = {SP_PUSH, SP_PUB, SP_REQ, SP_SUB};
        fds[i] = dial_as(socket_url(i % 4), right[i % 4]);
        say_size(fds[i], 1000);
        say(fds[i], "begun", 5);
    }
    assert_serves();
    for (uint32_t i = 0; i < 32; i++) close(fds[i]);
    assert_serves();
    victim_close();
}
END_TEST

START_TEST(a_query_without_a_request_id_is_cut)
{
    victim_open();
    int fd = dial_as(socket_url(2), SP_REQ);
    say_size(fd, 2);
    say(fd, "hi", 2);
    ck_assert(is_cut(fd));
    close(fd);
    assert_serves();
    ck_assert_uint_eq(end_counters(&victim).received[LANE_QUERY], 0);
    victim_close();
}
END_TEST

START_TEST(two_thousand_connects_do_not_wear_a_listener_out)
{
    victim_open();
    for (uint32_t i = 0; i < 500; i++) {
        for (uint32_t j = 0; j < 4; j++) {
            int fd = dial(socket_url(j));
            if (i % 2 == 0) say(fd, "\xff\xff\xff\xff\xff\xff\xff\xff\xff", 9);
            close(fd);
        }
        end_pump(&victim);
    }
    assert_serves();
    victim_close();
}
END_TEST

SUITE_MAIN("link_hostile", junk_on_every_socket_is_cut_and_counted, a_peer_of_the_wrong_protocol_is_cut_and_counted,
           a_forged_length_is_cut_before_any_memory_is_taken,
           a_message_of_the_largest_size_arrives_and_one_byte_more_does_not, a_message_that_never_ends_hurts_nobody,
           a_query_without_a_request_id_is_cut, two_thousand_connects_do_not_wear_a_listener_out)
