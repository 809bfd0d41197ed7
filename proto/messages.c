#include "proto/messages.h"

enum terrane_error message_kind_of(struct cursor message, enum message_kind *kind)
{
    (void)cursor_array(&message, 1, UINT32_MAX);
    uint64_t number = cursor_uint(&message, UINT64_MAX);
    if (message.error != TERRANE_ERR_OK) return message.error;
    switch (number) {
#define X(NAME, name, value, lane)                                                                                     \
    case value: *kind = MESSAGE_##NAME; return TERRANE_ERR_OK;
        MESSAGE_KINDS(X)
#undef X
    default: return TERRANE_ERR_MESSAGE_UNKNOWN;
    }
}

const char *message_kind_name(enum message_kind kind)
{
    switch (kind) {
#define X(NAME, name, value, lane)                                                                                     \
    case MESSAGE_##NAME: return #name;
        MESSAGE_KINDS(X)
#undef X
    }
    return "unknown";
}
