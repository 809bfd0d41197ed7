#include "tests/sim/store.h"

#include "common/array.h"
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

void store_close(struct store_model *s)
{
    free(s->leaves);
    free(s->servers);
    writer_close(&s->answer);
    *s = (struct store_model){0};
}

static struct store_leaf *find_leaf(struct store_model *s, struct quadkey leaf)
{
    for (uint32_t i = 0; i < s->leaf_count; i++)
        if (quadkey_equal(s->leaves[i].owner.leaf, leaf)) return &s->leaves[i];
    return NULL;
}

static struct store_server *find_server(struct store_model *s, const char *name)
{
    for (uint32_t i = 0; i < s->server_count; i++)
        if (strcmp(s->servers[i].info.name, name) == 0) return &s->servers[i];
    return NULL;
}

static bool fenced(struct store_model *s, struct store_map map)
{
    struct store_leaf leaf;
    if (s->term > map.term || (s->term == map.term && !node_id_equal(s->leader, map.leader))) return true;
    while (store_next_leaf(&map, &leaf)) {
        const struct store_leaf *held = find_leaf(s, leaf.owner.leaf);
        if (held == NULL) continue;
        if (held->owner.epoch > leaf.owner.epoch) return true;
        if (held->owner.epoch == leaf.owner.epoch && !node_id_equal(held->owner.primary, leaf.owner.primary))
            return true;
    }
    return false;
}

static void save(struct store_model *s, struct store_map map)
{
    struct store_leaf leaf;
    struct store_server server;
    struct quadkey gone;
    char name[LIMIT_NAME];
    s->term = map.term;
    s->rev = map.rev;
    s->leader = map.leader;
    s->world = map.world;
    s->saves++;
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

static void load(struct store_model *s)
{
    writer_clear(&s->answer);
    store_map_begin(&s->answer,
                    &(struct store_map){.term = s->term, .rev = s->rev, .leader = s->leader, .world = s->world});
    store_list(&s->answer, s->leaf_count);
    for (uint32_t i = 0; i < s->leaf_count; i++) store_add_leaf(&s->answer, &s->leaves[i]);
    store_list(&s->answer, 0);
    store_list(&s->answer, s->server_count);
    for (uint32_t i = 0; i < s->server_count; i++) store_add_server(&s->answer, &s->servers[i]);
    store_list(&s->answer, 0);
}

void store_execute(struct sim *sim, uint32_t member, const struct output *output, const uint8_t *bytes)
{
    struct store_model *s = &sim->store;
    struct happening answer = {.kind = HAPPEN_STORED, .member = member, .token = output->token};
    answer.connection = (uint32_t)sim->members[member].incarnation;
    answer.at_us = sim->now_us + 100 + dice_below(&sim->timers, 5000);
    bool fails = !sim->network.healed && dice_chance(&sim->timers, sim->plan.store_failure);
    bool lost = fails && dice_chance(&sim->timers, 0.5);
    if (output->operation == STORE_LOAD) {
        load(s);
        answer.bytes = queue_bytes(s->answer.data, s->answer.size);
        answer.size = s->answer.size;
    } else {
        struct store_map map;
        if (store_map_decode(bytes, output->size, &map) != TERRANE_ERR_OK) {
            sim_violation(sim, "the coordinator saves a malformed map");
            return;
        }
        if (fenced(s, map))
            answer.error = TERRANE_ERR_STORE_CONFLICT;
        else if (!lost)
            save(s, map);
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
