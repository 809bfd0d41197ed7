#include "aoi/axis.h"
#include "common/check.h"

#include <stdlib.h>
#include <string.h>

#define SPARSE 16 /* a block with fewer entries joins the next, if both together leave some room */

void axis_close(struct axis *axis)
{
    free(axis->blocks);
    *axis = (struct axis){0};
}

/* Whether (a_key, a_handle) comes before (b_key, b_handle). */
static bool before(int32_t a_key, uint32_t a_handle, int32_t b_key, uint32_t b_handle)
{
    return a_key < b_key || (a_key == b_key && a_handle < b_handle);
}

static uint32_t next_of(const struct axis *axis, uint32_t block, uint32_t lane)
{
    return block == AXIS_NONE ? axis->head[lane] - 1 : axis->blocks[block].next[lane];
}

static void next_set(struct axis *axis, uint32_t block, uint32_t lane, uint32_t next)
{
    if (block == AXIS_NONE) {
        axis->head[lane] = next + 1;
    } else {
        axis->blocks[block].next[lane] = next;
    }
}

/* In each lane the last block that begins before the entry; AXIS_NONE: the head. */
static void path_find(const struct axis *axis, int32_t key, uint32_t handle, uint32_t path[AXIS_LANES])
{
    uint32_t at = AXIS_NONE;
    for (uint32_t lane = AXIS_LANES; lane-- > 0;) {
        for (uint32_t next; (next = next_of(axis, at, lane)) != AXIS_NONE; at = next) {
            const struct axis_block *block = &axis->blocks[next];
            if (!before(block->keys[0], block->handles[0], key, handle)) break;
        }
        path[lane] = at;
    }
}

uint32_t axis_seek(const struct axis *axis, int32_t key)
{
    uint32_t path[AXIS_LANES];
    path_find(axis, key, 0, path);
    return path[0] == AXIS_NONE ? next_of(axis, AXIS_NONE, 0) : path[0];
}

/* ---- blocks ---- */

static bool blocks_reserve(struct axis *axis)
{
    if (axis->free || axis->high < axis->room) return true;
    uint32_t room = axis->room + axis->room / 2 + 1;
    struct axis_block *blocks = realloc(axis->blocks, room * sizeof *blocks);
    if (!blocks) return false;
    axis->blocks = blocks;
    axis->room = room;
    return true;
}

/* Every fourth block is in a second lane, every sixteenth in a third, and so on. */
static uint32_t lanes_draw(struct axis *axis)
{
    uint32_t lanes = 1 + (uint32_t)__builtin_ctz(++axis->drawn | 1u << 30) / 2;
    return lanes < AXIS_LANES ? lanes : AXIS_LANES;
}

static uint32_t block_take(struct axis *axis)
{
    uint32_t index = axis->free ? axis->free - 1 : axis->high++;
    struct axis_block *block = &axis->blocks[index];
    if (axis->free) axis->free = block->next[0] == AXIS_NONE ? 0 : block->next[0] + 1;
    block->count = 0;
    block->lanes = lanes_draw(axis);
    return index;
}

/* Puts a block, which has its first entry, behind those of the path. */
static void block_link(struct axis *axis, uint32_t index, const uint32_t path[AXIS_LANES])
{
    struct axis_block *block = &axis->blocks[index];
    for (uint32_t lane = 0; lane < block->lanes; lane++) {
        block->next[lane] = next_of(axis, path[lane], lane);
        next_set(axis, path[lane], lane, index);
    }
}

/* Takes a block out, which still has its first entry. */
static void block_unlink(struct axis *axis, uint32_t index)
{
    struct axis_block *block = &axis->blocks[index];
    uint32_t path[AXIS_LANES];
    path_find(axis, block->keys[0], block->handles[0], path);
    for (uint32_t lane = 0; lane < block->lanes; lane++) next_set(axis, path[lane], lane, block->next[lane]);
    block->next[0] = axis->free ? axis->free - 1 : AXIS_NONE;
    block->count = 0;
    axis->free = index + 1;
}

/* ---- entries ---- */

/* The place of the entry in a block, or where it would go. */
static uint32_t entry_search(const struct axis_block *block, int32_t key, uint32_t handle)
{
    uint32_t low = 0, high = block->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (before(block->keys[middle], block->handles[middle], key, handle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Moves `count` entries within or between blocks. */
static void entries_move(struct axis_block *to, uint32_t to_at, const struct axis_block *from, uint32_t from_at,
                         uint32_t count)
{
    memmove(to->keys + to_at, from->keys + from_at, count * sizeof *to->keys);
    memmove(to->across + to_at, from->across + from_at, count * sizeof *to->across);
    memmove(to->handles + to_at, from->handles + from_at, count * sizeof *to->handles);
}

static void entry_set(struct axis_block *block, uint32_t at, uint32_t handle, int32_t key, int32_t across)
{
    block->keys[at] = key;
    block->across[at] = across;
    block->handles[at] = handle;
}

static void entry_insert(struct axis_block *block, uint32_t handle, int32_t key, int32_t across)
{
    uint32_t at = entry_search(block, key, handle);
    entries_move(block, at + 1, block, at, block->count - at);
    entry_set(block, at, handle, key, across);
    block->count++;
}

/* The upper half of a full block goes to a new one behind it. */
static void block_split(struct axis *axis, struct axis_places *places, uint32_t index)
{
    uint32_t upper = block_take(axis), half = AXIS_BLOCK / 2, path[AXIS_LANES];
    struct axis_block *from = &axis->blocks[index], *to = &axis->blocks[upper];
    entries_move(to, 0, from, half, AXIS_BLOCK - half);
    to->count = AXIS_BLOCK - half;
    from->count = half;
    for (uint32_t i = 0; i < to->count; i++) places->block[to->handles[i]] = upper;
    path_find(axis, to->keys[0], to->handles[0], path);
    block_link(axis, upper, path);
}

static bool places_reserve(struct axis_places *places, uint32_t handle)
{
    if (handle < places->room) return true;
    uint32_t room = handle + handle / 4 + 64;
    uint32_t *block = realloc(places->block, room * sizeof *block);
    if (!block) return false;
    places->block = block;
    places->room = room;
    return true;
}

/* There must be a spare block. */
static void entry_add(struct axis *axis, struct axis_places *places, uint32_t handle, int32_t key, int32_t across)
{
    uint32_t path[AXIS_LANES];
    path_find(axis, key, handle, path);
    uint32_t index = path[0] == AXIS_NONE ? next_of(axis, AXIS_NONE, 0) : path[0];
    if (index == AXIS_NONE) {
        index = block_take(axis);
        entry_set(&axis->blocks[index], 0, handle, key, across);
        block_link(axis, index, path);
        axis->blocks[index].count = 1;
    } else {
        if (axis->blocks[index].count == AXIS_BLOCK) {
            block_split(axis, places, index);
            const struct axis_block *upper = &axis->blocks[next_of(axis, index, 0)];
            if (before(upper->keys[0], upper->handles[0], key, handle)) index = next_of(axis, index, 0);
        }
        entry_insert(&axis->blocks[index], handle, key, across);
    }
    places->block[handle] = index;
    axis->count++;
}

bool axis_add(struct axis *axis, struct axis_places *places, uint32_t handle, int32_t key, int32_t across)
{
    if (!blocks_reserve(axis) || !places_reserve(places, handle)) return false;
    entry_add(axis, places, handle, key, across);
    return true;
}

static uint32_t entry_of(const struct axis_block *block, uint32_t handle)
{
    uint32_t at = 0;
    while (block->handles[at] != handle) at++;
    return at;
}

/* Takes the next block's entries into a sparse one. */
static void block_join(struct axis *axis, struct axis_places *places, uint32_t index)
{
    uint32_t next = next_of(axis, index, 0);
    if (next == AXIS_NONE) return;
    struct axis_block *block = &axis->blocks[index], *other = &axis->blocks[next];
    uint32_t count = other->count;
    if (block->count + count > AXIS_BLOCK - SPARSE / 2) return;
    entries_move(block, block->count, other, 0, count);
    block_unlink(axis, next);
    for (uint32_t i = 0; i < count; i++) places->block[block->handles[block->count + i]] = index;
    block->count += count;
}

void axis_remove(struct axis *axis, struct axis_places *places, uint32_t handle)
{
    uint32_t index = places->block[handle];
    struct axis_block *block = &axis->blocks[index];
    axis->count--;
    if (block->count == 1) {
        block_unlink(axis, index);
        return;
    }
    uint32_t at = entry_of(block, handle);
    entries_move(block, at, block, at + 1, block->count - at - 1);
    block->count--;
    if (block->count < SPARSE) block_join(axis, places, index);
}

/* Whether the entry belongs into the block: not before its first, unless that is the list's, nor behind the next's. */
static bool block_suits(const struct axis *axis, uint32_t index, int32_t key, uint32_t handle)
{
    const struct axis_block *block = &axis->blocks[index];
    bool first = axis->head[0] == index + 1;
    if (!first && before(key, handle, block->keys[0], block->handles[0])) return false;
    if (block->next[0] == AXIS_NONE) return true;
    const struct axis_block *next = &axis->blocks[block->next[0]];
    return before(key, handle, next->keys[0], next->handles[0]);
}

/* Shifts the entries between its old and its new place by one. */
static void entry_shift(struct axis_block *block, uint32_t from, uint32_t handle, int32_t key, int32_t across)
{
    while (from > 0 && before(key, handle, block->keys[from - 1], block->handles[from - 1])) {
        entries_move(block, from, block, from - 1, 1);
        from--;
    }
    while (from + 1 < block->count && before(block->keys[from + 1], block->handles[from + 1], key, handle)) {
        entries_move(block, from, block, from + 1, 1);
        from++;
    }
    entry_set(block, from, handle, key, across);
}

bool axis_move(struct axis *axis, struct axis_places *places, uint32_t handle, int32_t key, int32_t across)
{
    uint32_t index = places->block[handle];
    if (block_suits(axis, index, key, handle)) {
        struct axis_block *block = &axis->blocks[index];
        entry_shift(block, entry_of(block, handle), handle, key, across);
        return true;
    }
    if (!blocks_reserve(axis)) return false;
    axis_remove(axis, places, handle);
    entry_add(axis, places, handle, key, across);
    return true;
}

size_t axis_bytes(const struct axis *axis)
{
    return axis->room * sizeof *axis->blocks;
}

void axis_find(const struct axis *axis, uint32_t block, int32_t low, int32_t high, int32_t across_low,
               int32_t across_high, struct found *found)
{
    for (; block != AXIS_NONE; block = axis_after(axis, block)) {
        const struct axis_block *b = &axis->blocks[block];
        if (b->keys[0] > high) return;
        if (found->room < found->count + AXIS_BLOCK) found_grow(found, AXIS_BLOCK);
        uint32_t *out = found->handles + found->count;
        for (uint32_t i = 0; i < b->count; i++) {
            *out = b->handles[i];
            out += (b->keys[i] >= low) & (b->keys[i] <= high) & (b->across[i] >= across_low) &
                   (b->across[i] <= across_high);
        }
        found->count = (size_t)(out - found->handles);
    }
}
