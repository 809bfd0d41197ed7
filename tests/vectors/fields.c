#include "tests/vectors/vectors.h"

#include "common/check.h"

enum terrane_error message_fields(struct cursor message, struct text *t)
{
    enum message_kind kind = MESSAGE_FAULT;
    enum terrane_error error = message_kind_of(message, &kind);
    if (error != TERRANE_ERR_OK) return error;
    text_open(t, NULL, '{');
    text_uint(t, "kind", (uint64_t)kind);
    bool known = member_fields(kind, message, t, &error) || command_fields(kind, message, t, &error) ||
                 view_fields(kind, message, t, &error) || stream_fields(kind, message, t, &error) ||
                 standby_fields(kind, message, t, &error) || registry_fields(kind, message, t, &error) ||
                 survey_fields(kind, message, t, &error) || trace_fields(kind, message, t, &error);
    CHECK(known);
    text_close(t, '}');
    return error;
}

static enum terrane_error messages_fields(struct cursor list, uint32_t count, const char *key, struct text *t)
{
    struct cursor message;
    uint32_t seen = 0;
    enum terrane_error first = TERRANE_ERR_OK;
    text_open(t, key, '[');
    while (packet_next(&list, &message)) {
        enum terrane_error error = message_fields(message, t);
        if (first == TERRANE_ERR_OK) first = error;
        seen++;
    }
    text_close(t, ']');
    CHECK(seen == count);
    return first;
}

static enum terrane_error packet_fields(const uint8_t *bytes, size_t size, struct text *t)
{
    struct packet packet;
    enum terrane_error error = packet_decode(bytes, size, &packet);
    if (error != TERRANE_ERR_OK) return error;
    text_open(t, NULL, '{');
    text_uint(t, "protocol", PROTOCOL_VERSION);
    text_uint(t, "from", packet.from.v);
    text_uint(t, "to", packet.to.v);
    text_uint(t, "sure_first", packet.sure_first);
    text_uint(t, "sure_ack", packet.sure_ack);
    text_uint(t, "fast_total", packet.fast_total);
    error = messages_fields(packet.sure, packet.sure_count, "sure", t);
    enum terrane_error fast = messages_fields(packet.fast, packet.fast_count, "fast", t);
    text_close(t, '}');
    return error != TERRANE_ERR_OK ? error : fast;
}

enum terrane_error vector_fields(enum vector_kind kind, const uint8_t *bytes, size_t size, struct text *t)
{
    switch (kind) {
    case VECTOR_MESSAGE: return message_fields(cursor_of(bytes, size), t);
    case VECTOR_PACKET: return packet_fields(bytes, size, t);
    case VECTOR_FRAME: return frame_fields(bytes, size, t);
    }
    return TERRANE_ERR_MESSAGE_UNKNOWN;
}
