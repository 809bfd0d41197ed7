/* Who serves which leaf: by the servers' own word at their ticks, against each other and against the coordinator. */
#include "common/array.h"
#include "tests/sim/checker.h"
#include "tests/sim/sim.h"

static void add(struct checker *k, struct quadkey leaf)
{
    ARRAY_RESERVE(k->claims, k->claim_room, (size_t)k->claim_count + 1);
    k->claims[k->claim_count++] = (struct leaf_claim){.leaf = leaf};
}

static void add_below(struct checker *k, struct quadkey leaf, uint32_t depth)
{
    if (depth == 0) {
        add(k, leaf);
        return;
    }
    for (uint32_t digit = 0; digit < 4; digit++) add_below(k, quadkey_child(leaf, digit), depth - 1);
}

void checker_leaves_open(struct sim *sim)
{
    struct checker *k = &sim->checker;
    for (uint32_t i = 0; i < sim->plan.leaf_count; i++) add(k, sim->plan.leaves[i]);
    if (sim->plan.leaf_count == 0) add_below(k, QUADKEY_ROOT, sim->plan.split_depth);
}

void checker_ticked(struct sim *sim, uint32_t member)
{
    struct checker *k = &sim->checker;
    const struct member *m = &sim->members[member];
    char text[LIMIT_QUADKEY_TEXT];
    for (uint32_t i = 0; i < k->claim_count; i++) {
        struct leaf_claim *claim = &k->claims[i];
        uint32_t epoch;
        if (!cellserver_owns(m->server, claim->leaf, &epoch)) continue;
        if (!node_id_equal(claim->node, m->node)) {
            quadkey_text(claim->leaf, text);
            if (epoch <= claim->epoch)
                sim_violation(sim, "server %u serves the leaf \"%s\" under epoch %u after server %u did under %u",
                              m->number, text, epoch, claim->server, claim->epoch);
            *claim = (struct leaf_claim){.leaf = claim->leaf, .node = m->node, .server = m->number};
        }
        claim->epoch = epoch;
    }
}

/* ---- as the coordinator has it ---- */

struct leaf_look {
    struct sim *sim;
    bool known; /* the coordinator has read its map, and the store has lost nothing */
};

static void take_leaf(void *context, const struct leaf_owner *leaf)
{
    struct leaf_look *look = context;
    struct sim *sim = look->sim;
    uint32_t owners = 0;
    char text[LIMIT_QUADKEY_TEXT];
    for (uint32_t i = 0; i < sim->plan.servers; i++) {
        const struct member *m = &sim->members[sim->server_first + i];
        uint32_t epoch = 0;
        if (m->server == NULL || !cellserver_owns(m->server, leaf->leaf, &epoch)) continue;
        owners++;
        if (plants_strike(sim, PLANT_LEAF_DOUBLED)) owners++;
        if (look->known && (epoch > leaf->epoch || (epoch == leaf->epoch && !node_id_equal(leaf->primary, m->node))))
            sim_violation(sim, "server %u owns a leaf under epoch %u, which the coordinator gave to another", i, epoch);
    }
    /* With deaths, who is no owner any more may not have noticed: checker_ticked judges that. */
    if (owners <= 1 || sim->plan.fail_overs) return;
    quadkey_text(leaf->leaf, text);
    sim_violation(sim, "%u servers own the leaf \"%s\"", owners, text);
}

void census_leaves(struct sim *sim)
{
    const struct member *m = &sim->members[COORDINATOR];
    if (m->coordinator == NULL) return;
    struct coordinator_stats stats;
    coordinator_stats(m->coordinator, &stats);
    struct leaf_look look = {.sim = sim, .known = stats.ready && sim->faults.happened[CLASS_FORGET] == 0};
    coordinator_leaves(m->coordinator, take_leaf, &look);
}
