#include "common/table.h"

#include "common/check.h"

#include <stdlib.h>

/* The finaliser of MurmurHash3 (Appleby, public domain): every bit of the key reaches every bit of the result, so
 * sequential ids and quadkeys with equal low bits spread. */
static uint64_t mixed(uint64_t key)
{
    key ^= key >> 33;
    key *= 0xff51afd7ed558ccdULL;
    key ^= key >> 33;
    key *= 0xc4ceb9fe1a85ec53ULL;
    key ^= key >> 33;
    return key;
}

void table_close(struct table *t)
{
    free(t->keys);
    free(t->values);
    *t = (struct table){0};
}

void table_clear(struct table *t)
{
    if (t->keys == NULL) return;
    for (uint32_t i = 0; i <= t->mask; i++) t->keys[i] = 0;
    t->count = 0;
}

static void table_insert(struct table *t, uint64_t key, uint32_t value)
{
    uint32_t at = (uint32_t)mixed(key) & t->mask;
    while (t->keys[at] != 0) at = (at + 1) & t->mask;
    t->keys[at] = key;
    t->values[at] = value;
    t->count++;
}

void table_reserve(struct table *t, uint32_t count)
{
    uint64_t slots = t->keys == NULL ? 0 : (uint64_t)t->mask + 1;
    uint64_t want = slots == 0 ? 16 : slots;
    while (want - want / 8 < count) want *= 2;
    if (want == slots) return;
    CHECK(want <= UINT32_MAX);
    struct table grown = {.keys = calloc(want, sizeof *grown.keys),
                          .values = malloc(want * sizeof *grown.values),
                          .mask = (uint32_t)(want - 1)};
    CHECK(grown.keys != NULL && grown.values != NULL);
    for (uint64_t i = 0; i < slots; i++) {
        if (t->keys[i] != 0) table_insert(&grown, t->keys[i], t->values[i]);
    }
    table_close(t);
    *t = grown;
}

uint32_t table_get(const struct table *t, uint64_t key)
{
    if (t->count == 0 || key == 0) return TABLE_NONE;
    for (uint32_t at = (uint32_t)mixed(key) & t->mask; t->keys[at] != 0; at = (at + 1) & t->mask) {
        if (t->keys[at] == key) return t->values[at];
    }
    return TABLE_NONE;
}

void table_put(struct table *t, uint64_t key, uint32_t value)
{
    CHECK(key != 0);
    if (t->count > 0) {
        for (uint32_t at = (uint32_t)mixed(key) & t->mask; t->keys[at] != 0; at = (at + 1) & t->mask) {
            if (t->keys[at] == key) {
                t->values[at] = value;
                return;
            }
        }
    }
    table_reserve(t, t->count + 1);
    table_insert(t, key, value);
}

bool table_remove(struct table *t, uint64_t key)
{
    if (t->count == 0 || key == 0) return false;
    uint32_t hole = (uint32_t)mixed(key) & t->mask;
    while (t->keys[hole] != key) {
        if (t->keys[hole] == 0) return false;
        hole = (hole + 1) & t->mask;
    }
    for (uint32_t at = (hole + 1) & t->mask; t->keys[at] != 0; at = (at + 1) & t->mask) {
        uint32_t home = (uint32_t)mixed(t->keys[at]) & t->mask;
        /* May the entry at `at` move to the hole without passing in front of its home? */
        if (((at - home) & t->mask) >= ((at - hole) & t->mask)) {
            t->keys[hole] = t->keys[at];
            t->values[hole] = t->values[at];
            hole = at;
        }
    }
    t->keys[hole] = 0;
    t->count--;
    return true;
}

size_t table_memory_bytes(const struct table *t)
{
    return t->keys == NULL ? 0 : ((size_t)t->mask + 1) * (sizeof *t->keys + sizeof *t->values);
}
