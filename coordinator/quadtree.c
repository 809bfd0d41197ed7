#include "coordinator/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the leaf begins and how long it is, in cells of `depth`, along the Z-order. */
static uint64_t leaf_start(struct quadkey key, uint32_t depth)
{
    uint32_t own = quadkey_depth(key);
    return (key.v ^ UINT64_C(1) << (2 * own)) << (2 * (depth - own));
}

static uint64_t leaf_length(struct quadkey key, uint32_t depth)
{
    return UINT64_C(1) << (2 * (depth - quadkey_depth(key)));
}

static const char *key_shown(struct quadkey key, char *text)
{
    quadkey_text(key, text);
    return text[0] == '\0' ? "(root)" : text;
}

/* The largest region that begins at the cell `at` and is not longer than `length`. */
static struct quadkey hole_at(uint64_t at, uint64_t length, uint32_t depth)
{
    uint32_t up = 0;
    while (up < depth && at % (UINT64_C(4) << (2 * up)) == 0 && UINT64_C(4) << (2 * up) <= length) up++;
    return (struct quadkey){(UINT64_C(1) << (2 * depth) | at) >> (2 * up)};
}

enum terrane_error leaves_tile(const struct world *world, const struct quadkey *leaves, uint32_t count, char *fault,
                               size_t room)
{
    char text[LIMIT_QUADKEY_TEXT], other[LIMIT_QUADKEY_TEXT];
    uint32_t depth = world->depth;
    uint64_t at = 0, cells = UINT64_C(1) << (2 * depth);
    for (uint32_t i = 0; i < count; i++) {
        if (quadkey_depth(leaves[i]) > depth) {
            snprintf(fault, room, "leaf %s is deeper than the world's depth of %u; use at most %u digits",
                     key_shown(leaves[i], text), depth, depth);
            return TERRANE_ERR_CONFIG;
        }
        uint64_t start = leaf_start(leaves[i], depth);
        if (start < at) {
            if (quadkey_equal(leaves[i], leaves[i - 1]))
                snprintf(fault, room, "leaf %s is listed twice", key_shown(leaves[i], text));
            else
                snprintf(fault, room, "leaf %s lies inside leaf %s; drop one of them", key_shown(leaves[i], text),
                         key_shown(leaves[i - 1], other));
            return TERRANE_ERR_CONFIG;
        }
        if (start > at) {
            snprintf(fault, room, "the leaves leave a hole at %s, before leaf %s; add what is missing",
                     key_shown(hole_at(at, start - at, depth), text), key_shown(leaves[i], other));
            return TERRANE_ERR_CONFIG;
        }
        at = start + leaf_length(leaves[i], depth);
    }
    if (at != cells) {
        snprintf(fault, room, "the leaves leave a hole at %s, after the last one; add what is missing",
                 key_shown(hole_at(at, cells - at, depth), text));
        return TERRANE_ERR_CONFIG;
    }
    return TERRANE_ERR_OK;
}

static int key_order(const void *a, const void *b)
{
    const struct quadkey *left = a, *right = b;
    return quadkey_compare(*left, *right);
}

struct curve_place {
    uint64_t hilbert;
    uint32_t leaf;
};

static int curve_order(const void *a, const void *b)
{
    const struct curve_place *left = a, *right = b;
    return left->hilbert < right->hilbert ? -1 : left->hilbert > right->hilbert;
}

void leaves_replace(struct coordinator *c, const struct leaf_owner *owners, uint32_t count)
{
    coordinator_leaves_close(c);
    c->leaves = calloc(count, sizeof *c->leaves);
    c->curve = calloc(count, sizeof *c->curve);
    struct curve_place *places = calloc(count, sizeof *places);
    CHECK(count > 0 && c->leaves != NULL && c->curve != NULL && places != NULL);
    c->leaf_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct leaf *leaf = &c->leaves[i];
        leaf->owner = leaf->next = owners[i];
        leaf->fresh = true;
        leaf->orphan_us = leaf->stands_us = c->now_us;
        /* The curve inside a region is a stretch of the curve of any deeper depth, so the shifted index is exact. */
        leaf->hilbert = quadkey_hilbert(owners[i].leaf) << (2 * (LIMIT_WORLD_DEPTH - quadkey_depth(owners[i].leaf)));
        places[i] = (struct curve_place){leaf->hilbert, i};
        table_put(&c->leaf_index, owners[i].leaf.v, i);
    }
    qsort(places, count, sizeof *places, curve_order);
    for (uint32_t i = 0; i < count; i++) c->curve[i] = places[i].leaf;
    free(places);
}

static uint32_t split_keys(uint32_t depth, struct quadkey *keys)
{
    uint32_t count = UINT32_C(1) << (2 * depth);
    for (uint32_t i = 0; i < count; i++) keys[i].v = (uint64_t)count | i;
    return count;
}

enum terrane_error leaves_open(struct coordinator *c, char *fault, size_t room)
{
    const struct coordinator_options *options = &c->options;
    if (options->leaf_count == 0 && (options->split_depth > options->world.depth || options->split_depth > 8)) {
        snprintf(fault, room, "split depth %u exceeds the world's depth of %u or the limit of 8", options->split_depth,
                 options->world.depth);
        return TERRANE_ERR_CONFIG;
    }
    uint32_t count = options->leaf_count > 0 ? options->leaf_count : UINT32_C(1) << (2 * options->split_depth);
    if (count > LIMIT_LEAVES) {
        snprintf(fault, room, "%u leaves exceed the limit of %u", count, LIMIT_LEAVES);
        return TERRANE_ERR_CONFIG;
    }
    struct quadkey *keys = calloc(count, sizeof *keys);
    struct leaf_owner *owners = calloc(count, sizeof *owners);
    CHECK(keys != NULL && owners != NULL);
    if (options->leaf_count > 0)
        memcpy(keys, options->leaves, count * sizeof *keys);
    else
        split_keys(options->split_depth, keys);
    enum terrane_error error = TERRANE_ERR_OK;
    for (uint32_t i = 0; i < count; i++) {
        if (!quadkey_valid(keys[i].v)) error = TERRANE_ERR_CONFIG;
    }
    if (error != TERRANE_ERR_OK) {
        snprintf(fault, room, "a leaf's quadkey is malformed");
    } else {
        qsort(keys, count, sizeof *keys, key_order);
        error = leaves_tile(&options->world, keys, count, fault, room);
    }
    for (uint32_t i = 0; i < count; i++) owners[i].leaf = keys[i];
    if (error == TERRANE_ERR_OK) leaves_replace(c, owners, count);
    free(keys);
    free(owners);
    return error;
}

uint32_t coordinator_leaf_find(const struct coordinator *c, struct quadkey key)
{
    return table_get(&c->leaf_index, key.v);
}

void coordinator_leaves_close(struct coordinator *c)
{
    free(c->leaves);
    free(c->curve);
    table_close(&c->leaf_index);
    c->leaves = NULL;
    c->curve = NULL;
    c->leaf_count = 0;
}
