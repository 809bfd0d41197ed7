#include "tests/sim/store.h"

#include "common/array.h"
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

static void content_close(struct store_content *s)
{
    free(s->leaves);
    free(s->servers);
    *s = (struct store_content){0};
}

void store_close(struct store_model *s)
{
    content_close(&s->now);
    for (uint32_t i = 0; i < STORE_PAST; i++) content_close(&s->past[i]);
    writer_close(&s->answer);
    *s = (struct store_model){0};
}

static void content_copy(struct store_content *to, const struct store_content *from)
{
    struct store_leaf *leaves = to->leaves;
    struct store_server *servers = to->servers;
    uint32_t leaf_room = to->leaf_room, server_room = to->server_room;
    ARRAY_RESERVE(leaves, leaf_room, (size_t)from->leaf_count + 1);
    ARRAY_RESERVE(servers, server_room, (size_t)from->server_count + 1);
    if (from->leaf_count > 0) memcpy(leaves, from->leaves, from->leaf_count * sizeof *leaves);
    if (from->server_count > 0) memcpy(servers, from->servers, from->server_count * sizeof *servers);
    *to = *from;
    to->leaves = leaves;
    to->servers = servers;
    to->leaf_room = leaf_room;
    to->server_room = server_room;
}

/* Keeps what is there now, before a save. */
static void keep(struct store_model *s)
{
    struct store_content *last = &s->past[STORE_PAST - 1];
    if (s->past_count < STORE_PAST) {
        last = &s->past[s->past_count++];
    } else {
        struct store_content oldest = s->past[0];
        memmove(&s->past[0], &s->past[1], (STORE_PAST - 1) * sizeof s->past[0]);
        *last = oldest; /* its buffers */
    }
    content_copy(last, &s->now);
}

void store_forget(struct sim *sim, struct dice *d)
{
    struct store_model *s = &sim->store;
    uint32_t back = 1 + (uint32_t)dice_below(d, STORE_PAST);
    if (dice_chance(d, 0.2)) {
        sim_say(sim, "the store is empty");
        content_close(&s->now);
        s->past_count = 0;
    } else if (back <= s->past_count) {
        sim_say(sim, "the store loses its last %u saves", back);
        s->past_count -= back;
        content_copy(&s->now, &s->past[s->past_count]);
    }
}

static struct store_leaf *find_leaf(struct store_content *s, struct quadkey leaf)
{
    for (uint32_t i = 0; i < s->leaf_count; i++)
        if (quadkey_equal(s->leaves[i].owner.leaf, leaf)) return &s->leaves[i];
    return NULL;
}

static struct store_server *find_server(struct store_content *s, const char *name)
{
    for (uint32_t i = 0; i < s->server_count; i++)
        if (strcmp(s->servers[i].info.name, name) == 0) return &s->servers[i];
    return NULL;
}

/* As the script in io/store_values.c. */
static bool fenced(struct store_content *s, struct store_map map)
{
    struct store_leaf leaf;
    if (s->term == 0 && !map.whole) return true;
    if (s->term > map.term || (s->term == map.term && !node_id_equal(s->leader, map.leader))) return true;
    while (store_next_leaf(&map, &leaf)) {
        const struct store_leaf *held = find_leaf(s, leaf.owner.leaf);
        if (held == NULL) continue;
        if (held->owner.epoch > leaf.owner.epoch) return true;
        bool other = !node_id_equal(held->owner.primary, leaf.owner.primary) ||
                     !node_id_equal(held->owner.standby, leaf.owner.standby);
        if (held->owner.epoch == leaf.owner.epoch && other) return true;
    }
    return false;
}

static void save(struct store_content *s, struct store_map map)
{
    struct store_leaf leaf;
    struct store_server server;
    struct quadkey gone;
    char name[LIMIT_NAME];
    s->term = map.term;
    s->rev = map.rev;
    s->leader = map.leader;
    s->world = map.world;
    if (map.whole) s->leaf_count = 0;
    while (store_next_leaf(&map, &leaf)) {
        struct store_leaf *held = find_leaf(s, leaf.owner.leaf);
        if (held == NULL) {
            ARRAY_RESERVE(s->leaves, s->leaf_room, (size_t)s->leaf_count + 1);
            held = &s->leaves[s->leaf_count++];
        }
        *held = leaf;
    }
    while (store_next_gone_leaf(&map, &gone)) {
        struct store_leaf *held = find_leaf(s, gone);
        if (held != NULL) *held = s->leaves[--s->leaf_count];
    }
    while (store_next_server(&map, &server)) {
        struct store_server *held = find_server(s, server.info.name);
        if (held == NULL) {
            ARRAY_RESERVE(s->servers, s->server_room, (size_t)s->server_count + 1);
            held = &s->servers[s->server_count++];
        }
        *held = server;
    }
    while (store_next_gone_server(&map, name)) {
        struct store_server *held = find_server(s, name);
        if (held != NULL) *held = s->servers[--s->server_count];
    }
}

static void load(struct store_model *model)
{
    const struct store_content *s = &model->now;
    writer_clear(&model->answer);
    store_map_begin(&model->answer,
                    &(struct store_map){.term = s->term, .rev = s->rev, .leader = s->leader, .world = s->world});
    store_list(&model->answer, s->leaf_count);
    for (uint32_t i = 0; i < s->leaf_count; i++) store_add_leaf(&model->answer, &s->leaves[i]);
    store_list(&model->answer, 0);
    store_list(&model->answer, s->server_count);
    for (uint32_t i = 0; i < s->server_count; i++) store_add_server(&model->answer, &s->servers[i]);
    store_list(&model->answer, 0);
}

/* As the script in io/store_values.c. */
static void lead(struct sim *sim, const struct store_lead *m)
{
    struct store_model *s = &sim->store;
    struct store_leader answer;
    bool heir = strcmp(s->leader.name, m->name) == 0 && strcmp(s->leader.url, m->url) == 0;
    bool its = node_id_equal(s->leader.node, m->node);
    if (sim->now_us >= s->leader_until_us || (heir && !its)) {
        s->leader = (struct store_leader){0};
        its = false;
    }
    bool free = s->leader.node.v == 0;
    if ((free || its) && m->ttl_ms == 0) {
        s->leader = (struct store_leader){0};
    } else if (its || (free && (s->now.term > 0 || m->even_empty))) {
        s->leader = (struct store_leader){.node = m->node};
        memcpy(s->leader.name, m->name, sizeof m->name);
        memcpy(s->leader.url, m->url, sizeof m->url);
        s->leader_until_us = sim->now_us + m->ttl_ms * UINT64_C(1000);
    }
    answer = s->leader;
    answer.term = s->now.term;
    answer.rev = s->now.rev;
    writer_clear(&s->answer);
    store_leader_encode(&s->answer, &answer);
}

void store_execute(struct sim *sim, uint32_t member, const struct output *output, const uint8_t *bytes)
{
    struct store_model *s = &sim->store;
    struct happening answer = {.kind = HAPPEN_STORED, .member = member, .token = output->token};
    answer.connection = (uint32_t)sim->members[member].incarnation;
    answer.at_us = sim->now_us + 100 + dice_below(&sim->timers, 5000);
    bool fails = !sim->network.healed && dice_chance(&sim->timers, sim->plan.store_failure);
    if (faults_store_away(sim)) fails = true;
    bool lost = fails && dice_chance(&sim->timers, 0.5);
    if (output->operation == STORE_LOAD) {
        load(s);
        answer.bytes = queue_bytes(s->answer.data, s->answer.size);
        answer.size = s->answer.size;
    } else if (output->operation == STORE_LEAD) {
        struct store_lead ask;
        if (store_lead_decode(bytes, output->size, &ask) != TERRANE_ERR_OK) {
            sim_violation(sim, "the coordinator asks for the leadership in a malformed way");
            return;
        }
        if (!lost) {
            lead(sim, &ask);
            answer.bytes = queue_bytes(s->answer.data, s->answer.size);
            answer.size = s->answer.size;
        }
    } else {
        struct store_map map;
        if (store_map_decode(bytes, output->size, &map) != TERRANE_ERR_OK) {
            sim_violation(sim, "the coordinator saves a malformed map");
            return;
        }
        if (fenced(&s->now, map)) {
            answer.error = TERRANE_ERR_STORE_CONFLICT;
        } else if (!lost && !plants_unstored(sim)) {
            keep(s);
            save(&s->now, map);
            s->saves++;
        }
        if (answer.error != TERRANE_ERR_OK) s->conflicts++;
    }
    if (fails) {
        s->failures++;
        free(answer.bytes);
        answer.bytes = NULL;
        answer.size = 0;
        answer.error = TERRANE_ERR_STORE_UNAVAILABLE;
        answer.at_us += 50000;
    }
    queue_push(&sim->queue, answer);
}

void store_answered(struct sim *sim, const struct happening *what)
{
    if (what->connection != sim->members[what->member].incarnation) return;
    struct event event = {
        .kind = EVENT_STORED, .token = what->token, .error = what->error, .bytes = what->bytes, .size = what->size};
    sim_step(sim, what->member, &event);
}
