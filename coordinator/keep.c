#include "coordinator/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void operate(struct coordinator *c, enum store_operation operation)
{
    c->token++;
    c->keep = operation == STORE_LOAD ? KEEP_LOADING : KEEP_SAVING;
    struct output like = {.kind = OUTPUT_STORE, .operation = operation, .token = c->token};
    outbox_push(c->out, like, c->save.data, operation == STORE_LOAD ? 0 : c->save.size);
}

static void keep_wait(struct coordinator *c, enum terrane_error error)
{
    const char *what = c->keep == KEEP_LOADING ? "load" : "save";
    c->stats.store_failures++;
    c->backoff_us = c->backoff_us == 0 ? STORE_RETRY_US : c->backoff_us * 2;
    if (c->backoff_us > STORE_RETRY_MAX_US) c->backoff_us = STORE_RETRY_MAX_US;
    c->keep_failed = c->keep;
    c->keep = KEEP_WAITING;
    c->retry_us = c->now_us + c->backoff_us;
    outbox_log(c->out, LOG_ERROR, "event=store_failed operation=%s error=%s retry_ms=%" PRIu64, what,
               terrane_error_name(error), c->backoff_us / 1000);
}

static void write_leaves(struct coordinator *c)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->leaf_count; i++) count += c->leaves[i].saving;
    store_list(&c->save, count);
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        if (!c->leaves[i].saving) continue;
        struct store_leaf leaf = {.owner = c->leaves[i].next};
        const char *primary = member_name(c, leaf.owner.primary), *standby = member_name(c, leaf.owner.standby);
        memcpy(leaf.primary, primary, strlen(primary) + 1);
        memcpy(leaf.standby, standby, strlen(standby) + 1);
        store_add_leaf(&c->save, &leaf);
    }
    store_list(&c->save, 0);
}

/* A name goes from the store only if no incarnation bears it any more. */
static bool to_unsave(const struct coordinator *c, const struct member *m)
{
    return member_goes(m) && member_named(c, m->info.name) == NONE;
}

static void write_servers(struct coordinator *c)
{
    uint32_t count = 0, gone = 0;
    for (uint32_t i = 0; i < c->member_count; i++) {
        struct member *m = &c->members[i];
        m->saving = member_goes(m) || member_to_save(m) ? m->state : MEMBER_FREE;
        count += member_to_save(m);
        gone += to_unsave(c, m);
    }
    store_list(&c->save, count);
    for (uint32_t i = 0; i < c->member_count; i++) {
        const struct member *m = &c->members[i];
        if (member_to_save(m)) store_add_server(&c->save, &(struct store_server){m->info, m->capacity});
    }
    store_list(&c->save, gone);
    for (uint32_t i = 0; i < c->member_count; i++) {
        if (to_unsave(c, &c->members[i])) store_add_gone_server(&c->save, c->members[i].info.name);
    }
}

static void member_kept(struct coordinator *c, uint32_t index)
{
    struct member *m = &c->members[index];
    enum member_state saved_as = m->saving;
    m->saving = MEMBER_FREE;
    if (saved_as == MEMBER_ACTIVE || saved_as == MEMBER_EXPECTED) {
        m->saved = true;
        c->nodes_fresh = true;
        return;
    }
    if (m->listed) map_gone(c, m->info.node);
    m->listed = false;
    m->released = true;
    if (saved_as == MEMBER_DEAD) member_free(c, index);
}

/* A standby that another replaces keeps its copy for a while; until that one is level the primary answers nobody, so
 * the copy lacks nothing that anybody was promised. The same holds if nobody replaces it and the primary is known to be
 * dead before it can have heard so. Whether a copy that we had not heard of is level, it says itself. A primary whose
 * level standby takes over keeps what it had when it hears of that, for the same reason (cellserver/formers.h). */
static void note_former(struct coordinator *c, struct leaf *leaf)
{
    bool moves = !node_id_equal(leaf->owner.primary, leaf->next.primary);
    bool other = !node_id_equal(leaf->owner.standby, leaf->next.standby);
    bool unheard = leaf->owner.primary.v != 0 && member_fate(c, member_find(c, leaf->owner.primary)) == FATE_DEAD;
    bool level = leaf_level(c, leaf);
    bool given = moves && level && !unheard && node_id_equal(leaf->owner.standby, leaf->next.primary);
    if (given && !node_id_equal(leaf->owner.primary, leaf->next.standby)) {
        leaf->former = leaf->owner.primary;
        leaf->former_epoch = leaf->owner.epoch;
        leaf->former_us = 0;
    } else if (moves || (leaf->next.standby.v == 0 && !unheard)) {
        leaf->former = NODE_NONE;
    } else if (other && leaf->owner.standby.v != 0 && (level || leaf->former.v == 0)) {
        leaf->former = leaf->owner.standby;
        leaf->former_epoch = leaf->owner.epoch;
        leaf->former_us = level ? c->now_us : 0;
    }
}

static void leaf_kept(struct coordinator *c, struct leaf *leaf)
{
    note_former(c, leaf);
    bool moves = !node_id_equal(leaf->owner.primary, leaf->next.primary);
    uint32_t former = moves && leaf->owner.primary.v != 0 ? member_find(c, leaf->owner.primary) : NONE;
    if (former != NONE) c->members[former].lost_rev = c->rev + 1; /* what is told next */
    if (!node_id_equal(leaf->owner.standby, leaf->next.standby)) leaf->stands_us = c->now_us;
    bool promoted = leaf->next.primary.v != 0 && node_id_equal(leaf->owner.standby, leaf->next.primary);
    c->stats.promotions += moves && promoted;
    if (moves && !promoted) leaf->load = 0;
    if (moves && migrate_due(leaf)) leaf->moved_us = c->now_us; /* fail-overs don't count: it may go on at once */
    if (moves) leaf->orphan_us = c->now_us;
    if (moves) leaf->course = (struct course){0};
    if (moves && !leaf->unheard) leaf->before = leaf->owner;
    leaf->unheard |= moves;
    leaf->owner = leaf->next;
    leaf->saving = false;
    leaf->fresh = true;
    c->leaves_fresh = true;
}

/* The store holds it: from now on it is so. */
static void kept(struct coordinator *c)
{
    c->stats.stored++;
    c->backoff_us = 0;
    c->conflicts = 0;
    c->saved_rev = c->saving_rev;
    c->keep = KEEP_IDLE;
    c->lead.adopting = false;
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        if (c->leaves[i].saving) leaf_kept(c, &c->leaves[i]);
    }
    for (uint32_t i = 0; i < c->member_count; i++) {
        c->members[i].losing = false;
        if (c->members[i].saving != MEMBER_FREE) member_kept(c, i);
    }
    c->members_changed = true;
    c->takes_back = false;
    for (uint32_t i = 0; i < c->leaf_count; i++) c->takes_back |= leaf_goes_back(c, &c->leaves[i]);
    if (c->ready) return;
    c->ready = true;
    outbox_log(c->out, LOG_INFO, "event=ready term=%" PRIu64 " rev=%" PRIu64 " leaves=%u", c->term, c->rev,
               c->leaf_count);
}

/* `whole`: all that there is to store is marked, so the store may be empty. */
static void save(struct coordinator *c, bool whole)
{
    struct store_map head = {
        .term = c->term, .rev = c->rev + 1, .leader = c->options.info.node, .whole = whole, .world = c->options.world};
    c->saving_rev = head.rev;
    writer_clear(&c->save);
    store_map_begin(&c->save, &head);
    write_leaves(c);
    write_servers(c);
    if (c->options.storeless)
        kept(c);
    else
        operate(c, STORE_SAVE);
}

static void save_whole(struct coordinator *c)
{
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        c->leaves[i].next = c->leaves[i].owner;
        c->leaves[i].saving = true;
    }
    for (uint32_t i = 0; i < c->member_count; i++) c->members[i].saved = false;
    save(c, true);
}

bool keep_is_busy(const struct coordinator *c)
{
    return c->keep == KEEP_LOADING || c->keep == KEEP_SAVING;
}

void keep_lead(struct coordinator *c)
{
    if (!c->options.storeless) {
        operate(c, STORE_LOAD);
        return;
    }
    c->term = 1;
    save_whole(c);
}

void keep_follow(struct coordinator *c)
{
    c->keep = KEEP_NEW;
    c->ready = false;
    c->led = c->lead.adopting = c->takes_back = false;
    c->conflicts = 0;
    c->backoff_us = c->settle_us = c->saved_rev = 0;
    members_forget(c);
    map_forget(c);
    for (uint32_t i = 0; i < c->leaf_count; i++) c->leaves[i].saving = c->leaves[i].unheard = false;
}

/* Long enough for all to find us, and for leases that a former leader granted to run out. */
static void settle(struct coordinator *c)
{
    uint64_t wait_us = FIND_US + c->options.lease_us + lapse_margin_us(c);
    c->settle_us = c->now_us + (wait_us > SETTLE_US ? wait_us : SETTLE_US);
}

void keep_restore(struct coordinator *c, bool claim)
{
    CHECK(c->keep == KEEP_IDLE);
    if (claim) {
        c->ready = false;
        c->told = false;
        c->leaves_fresh = true;
        settle(c); /* members may know of leaves what the store has lost */
    }
    save_whole(c);
}

static void keep_refuse(struct coordinator *c)
{
    c->keep = KEEP_REFUSED;
    c->ready = false;
}

/* Logs each constant that differs; whether none does. */
static bool world_same(struct coordinator *c, const struct world *stored)
{
    const struct world *given = &c->options.world;
    const struct {
        const char *name;
        double stored, given;
    } fields[] = {
        {"origin_x", stored->origin_x, given->origin_x},
        {"origin_y", stored->origin_y, given->origin_y},
        {"cell_size", stored->cell_size, given->cell_size},
        {"depth", stored->depth, given->depth},
        {"resolution_bits", stored->resolution_bits, given->resolution_bits},
        {"view_mode", stored->view_mode, given->view_mode},
        {"edge", stored->edge, given->edge},
        {"radius_max", stored->radius_max, given->radius_max},
        {"hysteresis", stored->hysteresis, given->hysteresis},
        {"z_range", stored->z_range, given->z_range},
        {"handoff_hysteresis", stored->handoff_hysteresis, given->handoff_hysteresis},
        {"tick_hz", stored->tick_hz, given->tick_hz},
    };
    bool same = true;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (!(fields[i].stored < fields[i].given) && !(fields[i].stored > fields[i].given)) continue;
        same = false;
        outbox_log(c->out, LOG_ERROR,
                   "event=world_differs field=%s stored=%.17g given=%.17g "
                   "hint=\"start with the stored value, or give this world another name\"",
                   fields[i].name, fields[i].stored, fields[i].given);
    }
    return same;
}

static int owner_order(const void *a, const void *b)
{
    const struct leaf_owner *left = a, *right = b;
    return quadkey_compare(left->leaf, right->leaf);
}

/* Takes the stored leaves for ours if they are a world's. */
static bool take_leaves(struct coordinator *c, struct store_map *map)
{
    char fault[256];
    struct store_leaf leaf;
    struct leaf_owner *owners = calloc(map->leaf_count + 1u, sizeof *owners);
    struct quadkey *keys = calloc(map->leaf_count + 1u, sizeof *keys);
    CHECK(owners != NULL && keys != NULL);
    uint32_t count = 0;
    while (store_next_leaf(map, &leaf)) owners[count++] = leaf.owner;
    qsort(owners, count, sizeof *owners, owner_order);
    for (uint32_t i = 0; i < count; i++) keys[i] = owners[i].leaf;
    bool well = leaves_tile(&c->options.world, keys, count, fault, sizeof fault) == TERRANE_ERR_OK;
    if (!well) {
        outbox_log(c->out, LOG_ERROR, "event=stored_map_broken reason=\"%s\" hint=\"repair or delete it\"", fault);
    } else {
        bool other = count != c->leaf_count;
        for (uint32_t i = 0; !other && i < count; i++) other = !quadkey_equal(keys[i], c->leaves[i].owner.leaf);
        if (other)
            outbox_log(c->out, LOG_WARNING,
                       "event=stored_leaves stored=%u given=%u reason=\"the stored leaves are used\"", count,
                       c->leaf_count);
        leaves_replace(c, owners, count);
    }
    free(owners);
    free(keys);
    return well;
}

static void take_servers(struct coordinator *c, struct store_map *map)
{
    struct store_server server;
    while (store_next_server(map, &server)) {
        if (member_find(c, server.info.node) != NONE || member_named(c, server.info.name) != NONE) continue;
        if (node_id_equal(server.info.node, c->options.info.node)) continue;
        uint32_t index = member_new(c, &server.info, MEMBER_EXPECTED);
        struct member *m = &c->members[index];
        m->capacity = server.capacity;
        m->saved = true;
        m->heard_us = c->settle_us > c->now_us ? c->settle_us : c->now_us;
    }
    c->due_us = c->now_us;
}

/* When we begin to lead, and again after a conflict: then the store knows better, be it that a write of a former leader
 * came late or that somebody emptied it. */
static void loaded(struct coordinator *c, struct store_map *map)
{
    bool led = c->led;
    if (led && map->term > c->term) {
        c->keep = KEEP_NEW;
        lead_overtaken(c);
        return;
    }
    uint64_t term = c->lead.term_seen > c->lead.term_heard ? c->lead.term_seen : c->lead.term_heard;
    c->led = true;
    c->lead.adopting = false;
    c->backoff_us = 0;
    for (uint32_t i = 0; i < c->leaf_count; i++) c->leaves[i].saving = false;
    for (uint32_t i = 0; i < c->member_count; i++) c->members[i].saving = MEMBER_FREE, c->members[i].losing = false;
    c->told = false;
    c->leaves_fresh = true;
    if (map->term > term) term = map->term;
    c->term = (term > c->term ? term : c->term) + 1;
    if (map->term == 0) {
        if (!led && c->term > 1) settle(c); /* there was a map, and servers that know of it */
        save_whole(c);
        return;
    }
    if (map->rev > c->rev) c->rev = map->rev;
    if (!world_same(c, &map->world) || !take_leaves(c, map)) {
        keep_refuse(c);
        return;
    }
    if (!led) settle(c);
    take_servers(c, map);
    outbox_log(c->out, LOG_INFO, "event=took_over term=%" PRIu64 " rev=%" PRIu64 " leaves=%u servers=%u", c->term,
               c->rev, c->leaf_count, c->members_used);
    save(c, false); /* claims the term */
}

static void conflict(struct coordinator *c)
{
    c->stats.store_failures++;
    c->ready = false;
    outbox_log(c->out, LOG_ERROR, "event=store_conflict term=%" PRIu64 " action=\"load again\"", c->term);
    if (c->conflicts++ < CONFLICTS_MAX) {
        c->keep = KEEP_NEW;
        lead_again(c);
        return;
    }
    outbox_log(c->out, LOG_ERROR, "event=store_conflict_stays hint=\"look at the world's keys in the store\"");
    keep_refuse(c);
}

void keep_stored(struct coordinator *c, const struct event *in)
{
    bool awaited = (c->keep == KEEP_LOADING || c->keep == KEEP_SAVING) && in->token == c->token;
    if (!awaited) return;
    struct store_map map;
    enum terrane_error error = in->error;
    if (error == TERRANE_ERR_OK && c->keep == KEEP_LOADING) error = store_map_decode(in->bytes, in->size, &map);
    if (error == TERRANE_ERR_STORE_CONFLICT)
        conflict(c);
    else if (error != TERRANE_ERR_OK)
        keep_wait(c, error);
    else if (c->keep == KEEP_LOADING)
        loaded(c, &map);
    else
        kept(c);
}

void keep_step(struct coordinator *c)
{
    if (!lead_is_fresh(c) || c->lead.asked) return;
    if (c->keep == KEEP_WAITING && c->now_us >= c->retry_us)
        operate(c, c->keep_failed == KEEP_LOADING ? STORE_LOAD : STORE_SAVE);
    bool open = c->keep == KEEP_IDLE && c->ready && c->now_us >= c->settle_us;
    if (open && lead_adopt(c)) {
        c->lead.adopting = true;
        save(c, false);
        return;
    }
    /* Without a store a save ends at once and may leave more to decide; it ends, since each round moves states on. */
    while (open && (c->members_changed || c->now_us >= c->assign_due_us)) {
        assign_decide(c);
        if (!assign_pending(c)) break;
        save(c, false);
        open = c->keep == KEEP_IDLE;
    }
}

uint64_t keep_due_us(const struct coordinator *c)
{
    if (!lead_is_fresh(c) || c->lead.asked) return UINT64_MAX;
    uint64_t due_us = c->keep == KEEP_WAITING ? c->retry_us : UINT64_MAX;
    if (c->keep != KEEP_IDLE || !c->ready) return due_us;
    if ((c->members_changed || c->lead.claims) && c->settle_us < due_us) due_us = c->settle_us;
    return c->assign_due_us < due_us ? c->assign_due_us : due_us;
}
