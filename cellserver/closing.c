/* The end of a cell server that was asked to stop: BYE, then it serves on until its leaves are with their standbys.
 *
 * The coordinator drains a server that says BYE, and takes it out of the map when nothing is left with it. Whoever
 * can't be drained goes without that: the only server, one without a coordinator, one that has waited for long enough.
 * A coordinator that answers HELLO with BYE has declared this incarnation dead while it could not hear that: whatever
 * it still holds is served by others, so it ends as well. */
#include "cellserver/internal.h"

static bool is_alone(const struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->peer_count; i++) {
        if (cs->peers[i].used && cs->peers[i].info.role == ROLE_CELLSERVER) return false;
    }
    return true;
}

void cellserver_say_bye(struct cellserver *cs, uint64_t now_us, struct outbox *out)
{
    struct coordinator_link *link = &cs->coordinator;
    if (cs->closing_us != 0) return;
    cs->now_us = now_us;
    cs->out = out;
    cs->closing_us = now_us;
    outbox_log(out, LOG_INFO, "event=closing leaves=%u standby_leaves=%u", cs->stats.leaves, cs->held.used);
    writer_clear(&cs->message);
    bye_encode(&cs->message);
    if (link->known && session_push(link->session, cs->message.data, cs->message.size) != TERRANE_ERR_OK) {
        cs->stats.dropped++;
    }
    coordinator_flush(cs);
    cs->out = NULL;
}

void closing_dismiss(struct cellserver *cs)
{
    if (cs->dismissed) return;
    cs->dismissed = true;
    outbox_log(cs->out, LOG_ERROR,
               "event=dismissed hint=\"the coordinator has declared this process dead while it could not be heard; "
               "others serve its leaves. It ends; start it anew\"");
}

static bool all_is_said(const struct cellserver *cs)
{
    for (uint32_t i = 0; i < cs->peer_count; i++) {
        const struct peer *peer = &cs->peers[i];
        if (peer->used && peer->info.role == ROLE_CELLSERVER && session_queued_messages(peer->session) > 0)
            return false;
    }
    return session_queued_messages(cs->coordinator.session) == 0;
}

bool cellserver_closed(const struct cellserver *cs)
{
    const struct coordinator_link *link = &cs->coordinator;
    if (cs->dismissed) return true;
    if (cs->closing_us == 0) return false;
    if (!link->known || !link->up || !cs->has_world || cs->now_us - cs->closing_us >= CLOSING_US) return true;
    if (cs->now_us - link->heard_us > COORDINATOR_SILENT_US) return true;
    if (!all_is_said(cs)) return false;
    return is_alone(cs) || cs->stats.leaves + cs->held.used == 0;
}

bool cellserver_dismissed(const struct cellserver *cs)
{
    return cs->dismissed;
}
