/* Every error that can happen in operation, made from one list with its text and its stable wire number.
 *
 * Numbers are part of the protocol: never reuse one, add at the end. A programmer's fault is no error but a CHECK
 * (check.h). */
#ifndef TERRANE_COMMON_ERRORS_H
#define TERRANE_COMMON_ERRORS_H

/* X(NAME, name, number, text); the second name is for logs and metrics labels. */
#define TERRANE_ERRORS(X)                                                                                              \
    X(OK, ok, 0, "ok")                                                                                                 \
    X(ENTITY_NONE, entity_none, 1, "the entity id is 0, which names no entity")                                        \
    X(ENTITY_EXISTS, entity_exists, 2, "an entity with this id is already in the world")                               \
    X(ENTITY_UNKNOWN, entity_unknown, 3, "no entity with this id is known here")                                       \
    X(POSITION_INVALID, position_invalid, 4, "the position is not a finite number")                                    \
    X(POSITION_OUTSIDE, position_outside, 5, "the position lies outside the world")                                    \
    X(RADIUS_TOO_LARGE, radius_too_large, 6, "the radius exceeds the world's radius_max")                              \
    X(STATE_TOO_LARGE, state_too_large, 7, "the state blob exceeds the limit")                                         \
    X(MESSAGE_TRUNCATED, message_truncated, 8, "the message ends before its content does")                             \
    X(MESSAGE_TYPE, message_type, 9, "a field of the message has the wrong type")                                      \
    X(MESSAGE_RANGE, message_range, 10, "a field of the message is out of its range")                                  \
    X(MESSAGE_UNKNOWN, message_unknown, 11, "the message's kind is unknown")                                           \
    X(MESSAGE_TRAILING, message_trailing, 12, "bytes follow the end of the message")                                   \
    X(MESSAGE_TOO_LARGE, message_too_large, 13, "the message exceeds the limit")                                       \
    X(EPOCH_STALE, epoch_stale, 14, "the epoch is older than the highest seen")                                        \
    X(NOT_OWNER, not_owner, 15, "this server does not own that leaf or entity")                                        \
    X(NOT_READY, not_ready, 16, "the process is not ready yet")                                                        \
    X(QUEUE_FULL, queue_full, 17, "a bounded queue is full")                                                           \
    X(SESSION_UNKNOWN, session_unknown, 18, "the sender has no session here")                                          \
    X(REGION_UNOWNED, region_unowned, 19, "no server owns the region yet")                                             \
    X(TIMED_OUT, timed_out, 20, "no answer came in time")                                                              \
    X(STORE_UNAVAILABLE, store_unavailable, 21, "the store does not answer")                                           \
    X(STORE_CONFLICT, store_conflict, 22, "the store holds a newer term or epoch")                                     \
    X(MEMORY, memory, 23, "out of memory")                                                                             \
    X(CONFIG, config, 24, "a flag, variable or option is wrong")                                                       \
    X(ADDRESS, address, 25, "the url can't be used")                                                                   \
    X(QUADKEY_INVALID, quadkey_invalid, 26, "the quadkey is malformed or deeper than the world")                       \
    X(HANDOFF_REFUSED, handoff_refused, 27, "the destination refused the hand-off")                                    \
    X(LIMIT, limit, 28, "a limit is reached")                                                                          \
    X(ENTITY_LOST, entity_lost, 29, "the entity's server went away with it")                                           \
    X(CLOSED, closed, 30, "the handle or session is closed")                                                           \
    X(PEER_MISMATCH, peer_mismatch, 31, "the message is addressed to another incarnation")                             \
    X(WORLD_MISMATCH, world_mismatch, 32, "the world's constants differ")                                              \
    X(VERSION_MISMATCH, version_mismatch, 33, "the protocol version differs")                                          \
    X(ENTITY_REENTERED, entity_reentered, 34,                                                                          \
      "its servers died together; it was entered again from what this gateway knew")                                   \
    X(DETACHED, detached, 35, "another gateway has attached the entity")                                               \
    X(UNSUPPORTED, unsupported, 36, "the chosen index does not support this")

enum terrane_error {
#define X(NAME, name, number, text) TERRANE_ERR_##NAME = number,
    TERRANE_ERRORS(X)
#undef X
};

#define TERRANE_MUST_CHECK __attribute__((warn_unused_result))

/* The error's text, in static memory; "unknown error" for a number that is not in the list. */
const char *terrane_error_text(enum terrane_error error);
/* The error's short name ("entity_exists"), for logs and metrics labels; static memory. */
const char *terrane_error_name(enum terrane_error error);

#endif
