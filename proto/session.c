#include "proto/session.h"

#include "common/check.h"
#include "common/limits.h"

#include <stdlib.h>
#include <string.h>

/* Two queues (sure, fast), each a ring of bytes with a ring of sizes beside it; offsets and numbers only rise, so the
 * place in a ring is a mask away. Rings double up to their bound and never shrink: in the steady state nothing is
 * allocated.
 *
 * Go-back-n. `first` is the oldest unacknowledged number, `next` what goes out next, `end` one past the newest queued,
 * `fresh` the first number never sent. first <= next <= fresh <= end.
 *
 * After a time-out only one packet goes out until an ack moves on: a peer that is stalled, not cut off, has everything
 * in its socket already, and 4 MiB four times a second would only make its waking worse. When the link comes up again
 * the whole window is repeated at once, since what was in flight is known to be suspect. */

#define WINDOW_BYTES   (4u << 20)
#define PROBE_BYTES    LIMIT_PACKET_TARGET
#define ENVELOPE_BYTES 64u /* more than the envelope's fields ever take */
#define FAST_BYTES     (256u << 10)
#define RETRANSMIT_US  250000u
#define BACKOFF_MAX    2u /* the repeat interval doubles at most so often without progress */
#define RING_BYTES_MIN 4096u
#define RING_SIZES_MIN 64u

struct ring {
    uint8_t *bytes;
    uint32_t *sizes;
    size_t bytes_room, sizes_room;  /* powers of two, or 0 */
    uint64_t bytes_head, bytes_end; /* offsets that only rise */
    uint64_t head, end;             /* message numbers that only rise */
};

struct session {
    struct session_options options;
    struct session_counters counters;
    struct ring sure, fast;
    uint64_t next, next_offset; /* the sure message to send next, and where its bytes are */
    uint64_t fresh;
    uint64_t repeat_at_us;
    size_t window;
    uint32_t backoff;
    bool repeat_all; /* the next repeat comes from a new link, not from a time-out */
    uint64_t expected;
    bool ack_due;
    uint64_t fast_total, fast_seen;
};

static uint64_t later(uint64_t now_us, uint64_t span_us)
{
    return span_us > UINT64_MAX - 1 - now_us ? UINT64_MAX - 1 : now_us + span_us;
}

static void ring_close(struct ring *r)
{
    free(r->bytes);
    free(r->sizes);
    *r = (struct ring){0};
}

static void ring_copy_in(uint8_t *ring, size_t room, uint64_t offset, const uint8_t *bytes, size_t size)
{
    size_t at = (size_t)(offset & (room - 1)), head = room - at < size ? room - at : size;
    memcpy(ring + at, bytes, head);
    memcpy(ring, bytes + head, size - head);
}

static void ring_grow_bytes(struct ring *r, size_t want)
{
    size_t room = r->bytes_room == 0 ? RING_BYTES_MIN : r->bytes_room;
    while (room < want) room *= 2;
    if (room == r->bytes_room) return;
    uint8_t *grown = malloc(room);
    CHECK(grown != NULL);
    for (uint64_t at = r->bytes_head; at < r->bytes_end;) {
        size_t place = (size_t)(at & (r->bytes_room - 1)), run = r->bytes_room - place;
        if (run > r->bytes_end - at) run = (size_t)(r->bytes_end - at);
        ring_copy_in(grown, room, at, r->bytes + place, run);
        at += run;
    }
    free(r->bytes);
    r->bytes = grown;
    r->bytes_room = room;
}

static void ring_grow_sizes(struct ring *r, size_t want)
{
    size_t room = r->sizes_room == 0 ? RING_SIZES_MIN : r->sizes_room;
    while (room < want) room *= 2;
    if (room == r->sizes_room) return;
    uint32_t *grown = malloc(room * sizeof *grown);
    CHECK(grown != NULL);
    for (uint64_t n = r->head; n < r->end; n++) grown[n & (room - 1)] = r->sizes[n & (r->sizes_room - 1)];
    free(r->sizes);
    r->sizes = grown;
    r->sizes_room = room;
}

static void ring_push(struct ring *r, const void *message, size_t size)
{
    ring_grow_bytes(r, (size_t)(r->bytes_end - r->bytes_head) + size);
    ring_grow_sizes(r, (size_t)(r->end - r->head) + 1);
    ring_copy_in(r->bytes, r->bytes_room, r->bytes_end, message, size);
    r->sizes[r->end & (r->sizes_room - 1)] = (uint32_t)size;
    r->bytes_end += size;
    r->end++;
}

static uint32_t ring_size(const struct ring *r, uint64_t number)
{
    return r->sizes[number & (r->sizes_room - 1)];
}

static void ring_pop(struct ring *r)
{
    r->bytes_head += ring_size(r, r->head);
    r->head++;
}

static void ring_write(const struct ring *r, uint64_t offset, size_t size, struct writer *w)
{
    if (size == 0) return;
    size_t at = (size_t)(offset & (r->bytes_room - 1)), head = r->bytes_room - at < size ? r->bytes_room - at : size;
    writer_raw(w, r->bytes + at, head);
    if (size > head) writer_raw(w, r->bytes, size - head);
}

struct session *session_open(const struct session_options *options)
{
    struct session *s = calloc(1, sizeof *s);
    CHECK(s != NULL && options->self.v != 0);
    s->options = *options;
    if (s->options.queue_bytes == 0) s->options.queue_bytes = LIMIT_SURE_BYTES;
    if (s->options.queue_messages == 0) s->options.queue_messages = LIMIT_SURE_MESSAGES;
    if (s->options.retransmit_us == 0) s->options.retransmit_us = RETRANSMIT_US;
    s->sure.head = s->sure.end = s->next = s->fresh = s->expected = 1;
    s->repeat_at_us = UINT64_MAX;
    s->window = WINDOW_BYTES;
    return s;
}

void session_close(struct session *s)
{
    if (s == NULL) return;
    ring_close(&s->sure);
    ring_close(&s->fast);
    free(s);
}

static enum terrane_error queue_push(struct session *s, struct ring *ring, size_t bytes_max, uint32_t messages_max,
                                     const void *message, size_t size)
{
    CHECK(size > 0);
    if (size > LIMIT_MESSAGE_BYTES) return TERRANE_ERR_MESSAGE_TOO_LARGE;
    if (ring->bytes_end - ring->bytes_head + size > bytes_max || ring->end - ring->head >= messages_max) {
        s->counters.refused_full++;
        return TERRANE_ERR_QUEUE_FULL;
    }
    ring_push(ring, message, size);
    return TERRANE_ERR_OK;
}

enum terrane_error session_push(struct session *s, const void *message, size_t size)
{
    CHECK(s->options.peer.v != 0);
    return queue_push(s, &s->sure, s->options.queue_bytes, s->options.queue_messages, message, size);
}

enum terrane_error session_push_fast(struct session *s, const void *message, size_t size)
{
    return queue_push(s, &s->fast, FAST_BYTES, UINT32_MAX, message, size);
}

static void session_go_back(struct session *s)
{
    s->window = s->repeat_all ? WINDOW_BYTES : PROBE_BYTES;
    if (!s->repeat_all && s->backoff < BACKOFF_MAX) s->backoff++;
    s->repeat_all = false;
    s->next = s->sure.head;
    s->next_offset = s->sure.bytes_head;
    s->repeat_at_us = UINT64_MAX;
}

/* How many messages from `from` on fit `room` bytes (the first always does if `one`), and their bytes. */
static uint32_t ring_fit(const struct ring *r, uint64_t from, size_t room, bool one, size_t *bytes)
{
    uint32_t count = 0;
    *bytes = 0;
    for (uint64_t n = from; n < r->end; n++) {
        size_t size = ring_size(r, n);
        if (*bytes + size > room && !(one && count == 0)) break;
        *bytes += size;
        count++;
    }
    return count;
}

static void sent_sure(struct session *s, uint64_t now_us, uint32_t count, size_t bytes)
{
    uint64_t end = s->next + count, again = s->fresh > s->next ? s->fresh - s->next : 0;
    if (again > count) again = count;
    s->counters.sure_repeated += again;
    s->counters.sure_sent += count - again;
    s->next = end;
    s->next_offset += bytes;
    if (s->fresh < end) s->fresh = end;
    if (s->repeat_at_us == UINT64_MAX) s->repeat_at_us = later(now_us, s->options.retransmit_us << s->backoff);
}

bool session_fill(struct session *s, uint64_t now_us, struct writer *w)
{
    writer_clear(w);
    if (now_us >= s->repeat_at_us) session_go_back(s);

    size_t target = LIMIT_PACKET_TARGET - ENVELOPE_BYTES, in_flight = (size_t)(s->next_offset - s->sure.bytes_head);
    size_t open = in_flight < s->window ? s->window - in_flight : 0;
    size_t sure_bytes, fast_bytes;
    uint32_t sure_count =
        ring_fit(&s->sure, s->next, open < target ? open : target, s->next == s->sure.head, &sure_bytes);
    size_t left = sure_bytes < target ? target - sure_bytes : 0;
    uint32_t fast_count = ring_fit(&s->fast, s->fast.head, left, sure_count == 0, &fast_bytes);
    if (sure_count == 0 && fast_count == 0 && !s->ack_due) return false;

    if (fast_count > 0) s->fast_total++;
    struct packet head = {.from = s->options.self,
                          .to = s->options.peer,
                          .sure_first = sure_count > 0 ? s->next : 0,
                          .sure_ack = s->expected - 1,
                          .fast_total = s->fast_total};
    packet_begin(w, &head, sure_count);
    ring_write(&s->sure, s->next_offset, sure_bytes, w);
    packet_fast(w, fast_count);
    ring_write(&s->fast, s->fast.bytes_head, fast_bytes, w);
    if (sure_count > 0) sent_sure(s, now_us, sure_count, sure_bytes);
    for (uint32_t i = 0; i < fast_count; i++) ring_pop(&s->fast);
    s->counters.fast_sent += fast_count;
    s->counters.packets_sent++;
    s->ack_due = false;
    return true;
}

/* Acks of what was never sent are a peer's fault or mischief and change nothing. */
static void take_ack(struct session *s, uint64_t now_us, uint64_t ack)
{
    if (ack < s->sure.head || ack >= s->fresh) return;
    while (s->sure.head <= ack) ring_pop(&s->sure);
    if (s->next < s->sure.head) {
        s->next = s->sure.head;
        s->next_offset = s->sure.bytes_head;
    }
    s->window = WINDOW_BYTES;
    s->backoff = 0;
    s->repeat_all = false;
    s->repeat_at_us = s->next > s->sure.head ? later(now_us, s->options.retransmit_us) : UINT64_MAX;
}

/* Whether the packet's fast messages are new; counts those that are missing before it. A packet that a gap of the
 * sure lane makes us drop is missing too. */
static bool take_fast_total(struct session *s, const struct packet *packet, bool gap, uint64_t *fast_lost)
{
    if (packet->fast_total <= s->fast_seen) {
        if (packet->fast_count > 0) s->counters.fast_stale++;
        return false;
    }
    bool taken = packet->fast_count > 0 && !gap;
    *fast_lost = packet->fast_total - s->fast_seen - (taken ? 1 : 0);
    s->counters.fast_lost += *fast_lost;
    s->fast_seen = packet->fast_total;
    return taken;
}

static void deliver_fast(struct session *s, struct cursor list, session_deliver *deliver, void *context)
{
    struct cursor message;
    while (packet_next(&list, &message)) {
        s->counters.fast_received++;
        deliver(context, message, false);
    }
}

static void deliver_sure(struct session *s, const struct packet *packet, session_deliver *deliver, void *context)
{
    struct cursor list = packet->sure, message;
    for (uint64_t number = packet->sure_first; packet_next(&list, &message); number++) {
        if (number < s->expected) {
            s->counters.sure_duplicates++;
            continue;
        }
        s->expected = number + 1;
        s->counters.sure_received++;
        deliver(context, message, true);
    }
}

enum terrane_error session_receive(struct session *s, uint64_t now_us, const struct packet *packet,
                                   session_deliver *deliver, void *context, uint64_t *fast_lost)
{
    *fast_lost = 0;
    bool sender = s->options.peer.v == 0 || node_id_equal(packet->from, s->options.peer);
    bool unaddressed = packet->to.v == 0 && packet->sure_count == 0;
    if (!sender || !(unaddressed || node_id_equal(packet->to, s->options.self))) return TERRANE_ERR_PEER_MISMATCH;
    s->counters.packets_received++;
    if (unaddressed) {
        /* From a peer that doesn't know us yet: its counts begin anew with the session that it will open. */
        deliver_fast(s, packet->fast, deliver, context);
        return TERRANE_ERR_OK;
    }
    take_ack(s, now_us, packet->sure_ack);
    bool gap = packet->sure_count > 0 && (packet->sure_first == 0 || packet->sure_first > s->expected);
    if (packet->sure_count > 0) s->ack_due = true;
    if (gap) s->counters.sure_gaps += packet->sure_count;
    bool fast = take_fast_total(s, packet, gap, fast_lost);
    if (!gap) deliver_sure(s, packet, deliver, context);
    if (fast) deliver_fast(s, packet->fast, deliver, context);
    return TERRANE_ERR_OK;
}

void session_link_up(struct session *s, uint64_t now_us)
{
    s->backoff = 0;
    if (s->fresh == s->sure.head) return; /* nothing was sent that could be lost */
    s->repeat_all = true;
    s->repeat_at_us = now_us;
}

uint64_t session_deadline_us(const struct session *s)
{
    return s->repeat_at_us;
}

size_t session_queued_bytes(const struct session *s)
{
    return (size_t)(s->sure.bytes_end - s->sure.bytes_head);
}

uint32_t session_queued_messages(const struct session *s)
{
    return (uint32_t)(s->sure.end - s->sure.head);
}

bool session_idle(const struct session *s)
{
    return s->sure.head == s->sure.end && s->fast.head == s->fast.end && !s->ack_due;
}

const struct session_counters *session_counters(const struct session *s)
{
    return &s->counters;
}

struct node_id session_peer(const struct session *s)
{
    return s->options.peer;
}
