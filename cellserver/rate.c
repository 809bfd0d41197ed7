/* How many commands a gateway session may give in a second: each costs a change in the world, a frame, and a message to
 * the standby, so one gateway that runs wild must not cost the others their ticks.
 *
 * The virtual scheduling algorithm of ITU-T I.371: each command moves the session's due time on by its share of a
 * second; one that finds the due time more than a second ahead is refused with QUEUE_FULL. So a second's worth may come
 * at once. Moves are coalesced and need no such bound; queries and events have LIMIT_ASKS_PER_TICK; a LEAVE frees what
 * an ENTER took. What other servers forward was counted where it came in. */
#include "cellserver/rate.h"

#define SECOND_US UINT64_C(1000000)

static bool over_rate(struct cellserver *cs, struct peer *peer)
{
    uint64_t share_us = SECOND_US / cs->options.session_rate;
    if (peer->rate_due_us < cs->now_us) peer->rate_due_us = cs->now_us;
    if (peer->rate_due_us + share_us > cs->now_us + SECOND_US) return true;
    peer->rate_due_us += share_us;
    return false;
}

/* What the refusal is about; false: no command that is limited, or malformed, which others count. */
static bool limited(enum message_kind kind, struct cursor message, struct result *refusal)
{
    struct enter enter;
    struct set_state state;
    struct set_radius radius;
    struct attach attach;
    if (kind == MESSAGE_ENTER && enter_decode(message, &enter) == TERRANE_ERR_OK) {
        *refusal = (struct result){.request = enter.request, .id = enter.record.id, .version = enter.record.version};
    } else if (kind == MESSAGE_SET_STATE && set_state_decode(message, &state) == TERRANE_ERR_OK) {
        *refusal = (struct result){.request = state.request, .id = state.id};
    } else if (kind == MESSAGE_SET_RADIUS && set_radius_decode(message, &radius) == TERRANE_ERR_OK) {
        *refusal = (struct result){.request = radius.request, .id = radius.id};
    } else if (kind == MESSAGE_ATTACH && attach_decode(message, &attach) == TERRANE_ERR_OK) {
        *refusal = (struct result){.request = attach.request, .id = attach.id};
    } else {
        return false;
    }
    refusal->error = TERRANE_ERR_QUEUE_FULL;
    return true;
}

bool rate_refuses(struct cellserver *cs, uint32_t at, enum message_kind kind, struct cursor message)
{
    struct peer *peer = &cs->peers[at];
    struct result refusal;
    if (cs->options.session_rate == 0 || peer->info.role != ROLE_GATEWAY) return false;
    bool counts =
        kind == MESSAGE_ENTER || kind == MESSAGE_SET_STATE || kind == MESSAGE_SET_RADIUS || kind == MESSAGE_ATTACH;
    if (!counts || !over_rate(cs, peer) || !limited(kind, message, &refusal)) return false;
    cs->stats.refused_rate++;
    command_result(cs, peer->info.node, &refusal);
    return true;
}
