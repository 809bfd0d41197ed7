#include "proto/packet.h"

#include "common/limits.h"

/* Passes over `count` messages; the list is a cursor over exactly them. */
static struct cursor message_list(struct cursor *c, uint32_t *count)
{
    *count = cursor_array(c, 0, LIMIT_SURE_MESSAGES);
    struct cursor list = *c;
    for (uint32_t i = 0; i < *count && c->error == TERRANE_ERR_OK; i++) {
        struct cursor head = *c;
        (void)cursor_array(&head, 1, UINT32_MAX);
        if (head.error != TERRANE_ERR_OK)
            cursor_fail(c, head.error);
        else
            cursor_skip(c);
    }
    list.end = c->at;
    return list;
}

enum terrane_error packet_decode(const uint8_t *bytes, size_t size, struct packet *out)
{
    if (size > LIMIT_PACKET_BYTES) return TERRANE_ERR_MESSAGE_TOO_LARGE;
    struct cursor c = cursor_of(bytes, size);
    uint32_t fields = cursor_array(&c, 1, UINT32_MAX);
    uint64_t protocol = cursor_uint(&c, UINT64_MAX);
    if (c.error != TERRANE_ERR_OK) return c.error;
    if (protocol != PROTOCOL_VERSION) return TERRANE_ERR_VERSION_MISMATCH;
    if (fields != 8) return TERRANE_ERR_MESSAGE_RANGE;
    out->from.v = cursor_uint(&c, UINT64_MAX);
    out->to.v = cursor_uint(&c, UINT64_MAX);
    /* Numbers stay below 2^63, so that sums of number and count can't wrap anywhere. */
    out->sure_first = cursor_uint(&c, INT64_MAX);
    out->sure_ack = cursor_uint(&c, INT64_MAX);
    out->fast_total = cursor_uint(&c, INT64_MAX);
    out->sure = message_list(&c, &out->sure_count);
    out->fast = message_list(&c, &out->fast_count);
    enum terrane_error error = cursor_end(&c);
    if (error != TERRANE_ERR_OK) return error;
    bool numbered = out->sure_count == 0 || out->sure_first > 0;
    return out->from.v != 0 && numbered ? TERRANE_ERR_OK : TERRANE_ERR_MESSAGE_RANGE;
}

bool packet_next(struct cursor *list, struct cursor *message)
{
    const uint8_t *start = list->at;
    if (start == list->end) return false;
    cursor_skip(list);
    *message = cursor_of(start, (size_t)(list->at - start));
    return list->error == TERRANE_ERR_OK;
}

void packet_begin(struct writer *w, const struct packet *head, uint32_t sure_count)
{
    writer_array(w, 8);
    writer_uint(w, PROTOCOL_VERSION);
    writer_uint(w, head->from.v);
    writer_uint(w, head->to.v);
    writer_uint(w, head->sure_first);
    writer_uint(w, head->sure_ack);
    writer_uint(w, head->fast_total);
    writer_array(w, sure_count);
}

void packet_fast(struct writer *w, uint32_t fast_count)
{
    writer_array(w, fast_count);
}
