/* Own entities whose owner is in doubt. Time alone proves nothing: a successor may take its time, an owner may be late
 * to speak. So all servers that own leaves are asked (LOOKUP), in rounds: somebody owns it                  -> that is
 * the owner somebody can't say (yet), e.g. since it is about to take a leaf over, or a leaf on the way has no owner ->
 * again nobody knows it, in SEEK_ROUNDS rounds that lie further apart than a hand-off takes -> it is out of the world
 * An entity that is out of the world although nobody took it out is entered again from its registers, with a version
 * above all that anybody can have given it. Should an old owner turn up with it after all, the lower version gives it
 * away, and a LEAVE with a sequence before the new life's first takes it out there (owner.c). */
#include "gateway/internal.h"

static void due(struct gateway *g, struct own *own, uint64_t delay_us)
{
    own->seek.due_us = g->now_us + delay_us;
    if (own->seek.due_us < g->seek_us) g->seek_us = own->seek.due_us;
}

static void round_close(struct gateway *g, struct own *own)
{
    if (own->seek.number != 0) table_remove(&g->seek_index, own->seek.number);
    own->seek.number = 0;
    own->seek.open = 0;
}

void gateway_seek(struct gateway *g, uint32_t slot, uint64_t delay_us)
{
    struct own *own = &g->own[slot];
    if (own->seek.due_us != 0) {
        bool sooner = own->seek.number == 0 && g->now_us + delay_us < own->seek.due_us;
        if (sooner) due(g, own, delay_us);
        return;
    }
    own->seek = (struct seek){0};
    due(g, own, delay_us);
    g->seeks++;
}

void gateway_seek_end(struct gateway *g, uint32_t slot)
{
    struct own *own = &g->own[slot];
    if (own->seek.due_us == 0) return;
    round_close(g, own);
    own->seek = (struct seek){0};
    g->seeks--;
}

void gateway_seeks_renew(struct gateway *g)
{
    for (uint32_t slot = 0; g->seeks > 0 && slot < g->own_count; slot++) {
        struct own *own = &g->own[slot];
        if (own->seek.number == 0) continue;
        round_close(g, own);
        due(g, own, SEEK_SOON_US);
    }
}

void gateway_own_lose(struct gateway *g, uint32_t slot, enum terrane_error why)
{
    struct own *own = &g->own[slot];
    struct note note = {.kind = NOTE_ERROR, .id = own->id, .error = why};
    bool leaving = own->leaving;
    if (leaving && why == TERRANE_ERR_ENTITY_LOST) why = TERRANE_ERR_ENTITY_UNKNOWN; /* it has left, as asked */
    uint32_t leave = SLOT_NONE;
    for (uint32_t at = own->requests; at != SLOT_NONE; at = g->requests[at].own_next) {
        if (g->requests[at].operation == TERRANE_LEAVE) leave = at;
    }
    gateway_own_end(g, slot, leave, why);
    if (leave != SLOT_NONE) gateway_request_done(g, leave, TERRANE_ERR_OK);
    if (!leaving) gateway_notify(g, &note, NULL, 0);
}

void gateway_own_begin_life(struct gateway *g, uint32_t slot, uint32_t request)
{
    struct own *own = &g->own[slot];
    uint64_t version = gateway_own_next_version(g);
    if (version < own->version + REENTER_LEAP) version = g->version = own->version + REENTER_LEAP;
    own->version = own->life_version = version;
    own->life_sequence = ++g->sequence;
    g->requests[request].sequence = ++g->sequence;
    own->doubtful = own->attaching = false;
    own->left = own->view.node = NODE_NONE;
    own->leaf = QUADKEY_NONE;
    own->enter_position = own->position;
}

static void reenter(struct gateway *g, uint32_t slot)
{
    struct own *own = &g->own[slot];
    uint32_t waiting = SLOT_NONE;
    for (uint32_t at = own->requests; at != SLOT_NONE; at = g->requests[at].own_next) {
        if (enters(&g->requests[at])) waiting = at;
    }
    if (waiting != SLOT_NONE && g->requests[waiting].operation == TERRANE_ENTER) {
        own->attaching = false; /* it was not carried out after all */
        gateway_request_queue(g, waiting);
        return;
    }
    if (waiting != SLOT_NONE) gateway_request_done(g, waiting, TERRANE_ERR_OK); /* to take it over; it is silent */
    gateway_own_hold(g, slot);
    uint32_t enter = gateway_request_silent(g, TERRANE_ENTER, own->id, slot);
    gateway_own_begin_life(g, slot, enter);
    gateway_own_set_peer(g, slot, SLOT_NONE);
    gateway_own_view_missing(g, slot, true);
    gateway_request_queue(g, enter);
    gateway_want_flush(g, 0);
    outbox_log(g->out, LOG_WARNING, "event=entity_reentered id=%llu version=%llu", (unsigned long long)own->id.v,
               (unsigned long long)own->version);
}

/* Nobody has it. */
static void out_of_the_world(struct gateway *g, uint32_t slot)
{
    struct own *own = &g->own[slot];
    gateway_seek_end(g, slot);
    if (own->blank) {
        gateway_own_end(g, slot, SLOT_NONE, TERRANE_ERR_ENTITY_UNKNOWN);
    } else if (own->leaving || g->closing || g->no_reenter) {
        gateway_own_lose(g, slot, TERRANE_ERR_ENTITY_LOST);
    } else {
        reenter(g, slot);
    }
}

/* All that were asked have answered. */
static void round_ends(struct gateway *g, uint32_t slot)
{
    struct own *own = &g->own[slot];
    round_close(g, own);
    own->seek.rounds = own->seek.unsure ? 0 : own->seek.rounds + 1;
    if (own->seek.rounds < SEEK_ROUNDS) {
        due(g, own, own->seek.unsure ? SEEK_SOON_US : FIND_AGAIN_US);
    } else if (own->seek.version != 0) {
        /* A newer version that somebody told us of died before anybody else had it: this is what is left. */
        own->version = own->seek.version;
        own->doubtful = true;
        own->left = NODE_NONE;
        (void)gateway_own_claim(g, slot, own->seek.node, own->seek.version);
    } else {
        out_of_the_world(g, slot);
    }
}

/* Whether every leaf through which the entity may come back has an owner to be asked. */
static bool can_ask(const struct gateway *g, const struct own *own)
{
    if (own->blank) return g->map.now.leaf_count > 0;
    const struct leaf_owner *leaf = own->leaf.v == 0 ? NULL : ownership_leaf(&g->map, own->leaf);
    const struct leaf_owner *place = ownership_at(&g->map, &g->world, own->position);
    return place != NULL && place->primary.v != 0 && (leaf == NULL || leaf->primary.v != 0);
}

static void ask_all(struct gateway *g, uint32_t slot)
{
    struct own *own = &g->own[slot];
    struct seek *seek = &own->seek;
    if (seek->began_us == 0) seek->began_us = g->now_us;
    seek->unsure = false;
    seek->version = 0;
    seek->number = ++g->request_number;
    table_put(&g->seek_index, seek->number, slot);
    struct lookup lookup = {.request = seek->number, .id = own->id};
    writer_clear(&g->message);
    lookup_encode(&g->message, &lookup);
    due(g, own, SEEK_ROUND_US);
    for (uint32_t i = 0; i < g->owner_count; i++) {
        if (gateway_peer_push(g, g->owners[i]) == TERRANE_ERR_OK)
            seek->open++;
        else
            seek->unsure = true;
    }
    if (seek->open == 0) round_ends(g, slot);
}

static void seek_work(struct gateway *g, uint32_t slot, uint32_t *asked)
{
    struct own *own = &g->own[slot];
    if (own->seek.number != 0) {
        /* Somebody is silent. It is not waited for without end: should it have the entity, its version is lower. */
        own->seek.unsure |= g->now_us < own->seek.began_us + SEEK_SILENT_US;
        round_ends(g, slot);
    } else if (!can_ask(g, own)) {
        due(g, own, SEEK_SOON_US);
    } else if (*asked < SEEK_BATCH) {
        ++*asked;
        ask_all(g, slot);
    }
}

void gateway_seeks_work(struct gateway *g)
{
    uint32_t asked = 0;
    if (g->now_us < g->seek_us) return;
    for (uint32_t slot = 0; g->seeks > 0 && slot < g->own_count; slot++) {
        const struct own *own = &g->own[slot];
        if (own->seek.due_us != 0 && g->now_us >= own->seek.due_us) seek_work(g, slot, &asked);
    }
    g->seek_us = UINT64_MAX;
    for (uint32_t slot = 0; g->seeks > 0 && slot < g->own_count; slot++) {
        uint64_t due_us = g->own[slot].seek.due_us;
        if (due_us == 0) continue;
        if (due_us <= g->now_us) due_us = g->now_us + RETRY_FIRST_US; /* beyond this batch */
        if (due_us < g->seek_us) g->seek_us = due_us;
    }
}

bool gateway_seek_answer(struct gateway *g, struct node_id from, const struct lookup_result *result)
{
    uint32_t slot = table_get(&g->seek_index, result->request);
    if (slot == TABLE_NONE) return false;
    struct own *own = &g->own[slot];
    if (!entity_id_equal(own->id, result->id) || own->seek.open == 0) {
        g->counters.malformed++;
        return true;
    }
    own->seek.open--;
    if (result->error == TERRANE_ERR_OK && result->version < own->life_version) {
        gateway_own_expel_former(g, slot, from);
        own->seek.unsure = true;
    } else if (result->error == TERRANE_ERR_OK) {
        own->doubtful |= own->peer == SLOT_NONE;
        if (gateway_own_claim(g, slot, from, result->version)) {
            gateway_seek_end(g, slot);
            gateway_own_place(g, slot, result->leaf);
            gateway_attach_found(g, slot);
            return true;
        }
        if (result->version > own->seek.version) {
            own->seek.version = result->version;
            own->seek.node = from;
        }
    } else if (result->error != TERRANE_ERR_ENTITY_UNKNOWN) {
        own->seek.unsure = true;
    }
    if (own->seek.open == 0) round_ends(g, slot);
    return true;
}
