/* Every bound in one place, each with its reason. Decoders and queues refuse what exceeds them. */
#ifndef TERRANE_COMMON_LIMITS_H
#define TERRANE_COMMON_LIMITS_H

#include <stdint.h>

/* World. 2^20 cells of 50 m are 52,000 km; 30 bits leave headroom for sums of int32 positions. */
#define LIMIT_WORLD_DEPTH     20u
#define LIMIT_RESOLUTION_BITS 30u
/* 30 digits behind the leading 1 fill 61 bits of a quadkey. */
#define LIMIT_QUADKEY_DEPTH 30u
#define LIMIT_QUADKEY_TEXT  (LIMIT_QUADKEY_DEPTH + 1)

/* One message. nng delivers whole messages; a larger one only delays what is behind it. */
#define LIMIT_PACKET_BYTES  (1u << 20)  /* between nodes: NNG_OPT_RECVMAXSZ */
#define LIMIT_PACKET_TARGET (60u << 10) /* senders cut packets here, so a gateway's 64 KiB bound holds */
#define LIMIT_GATEWAY_BYTES (64u << 10) /* one packet of a gateway: cell servers refuse larger ones */
#define LIMIT_MESSAGE_BYTES (56u << 10) /* one message on a lane fits one packet */
#define LIMIT_FRAME_BYTES   (1u << 20)

/* An entity's opaque state: what fits one message with its record around it. */
#define LIMIT_STATE_BYTES (16u << 10)
#define LIMIT_EVENT_BYTES (8u << 10)

/* Text fields. 107 is the longest AF_UNIX path and longer than any sensible tcp url. */
#define LIMIT_URL  128u
#define LIMIT_NAME 64u

/* Per process. A leaf's slot is a column index in frames; a million entities a process is past any tick's budget. */
#define LIMIT_ENTITIES        (1u << 20)
#define LIMIT_LEAVES          (1u << 16)
#define LIMIT_NODES           4096u
#define LIMIT_FEEDS           64u
#define LIMIT_LEAVES_PER_PART 512u /* leaves in one MAP message: keeps it under LIMIT_MESSAGE_BYTES */

/* The sure lane towards one peer. A stalled peer costs this much memory and no more. */
#define LIMIT_SURE_BYTES    (32u << 20)
#define LIMIT_SURE_MESSAGES (1u << 16)
/* Questions and events of one gateway in one tick: each may cost a walk over many cells. More are refused. */
#define LIMIT_ASKS_PER_TICK 512u
/* A lease: shorter ones end in every hiccup of a machine, longer ones keep a dead server's place silent for as long. */
#define LIMIT_LEASE_MIN_US UINT64_C(100000)
#define LIMIT_LEASE_MAX_US UINT64_C(10000000)
/* What a receiver buffers of a stream while it waits for the snapshot. */
#define LIMIT_STREAM_BACKLOG (1u << 20)

/* A node that a map of a new term does not name may live: its coordinator has not heard of it yet, since the store has
 * lost it. So sessions with it are kept: a node that is named again goes on in the one it had. */
#define LIMIT_UNNAMED_US UINT64_C(10000000)

#endif
