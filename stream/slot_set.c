#include "stream/slot_set.h"

#include "common/check.h"
#include "common/limits.h"

#include <stdlib.h>
#include <string.h>

static uint32_t level_words(uint32_t room, uint32_t level)
{
    for (uint32_t i = 0; i <= level; i++) room = (room + 63) >> 6;
    return room;
}

void slot_set_close(struct slot_set *set)
{
    for (uint32_t level = 0; level < SLOT_SET_LEVELS; level++) free(set->words[level]);
    *set = (struct slot_set){0};
}

void slot_set_reserve(struct slot_set *set, uint32_t count)
{
    CHECK(count <= LIMIT_ENTITIES);
    if (count <= set->room) return;
    uint32_t room = set->room == 0 ? 64 : set->room;
    while (room < count) room *= 2;
    for (uint32_t level = 0; level < SLOT_SET_LEVELS; level++) {
        uint32_t before = set->room == 0 ? 0 : level_words(set->room, level), after = level_words(room, level);
        uint64_t *words = realloc(set->words[level], after * sizeof *words);
        CHECK(words != NULL);
        memset(words + before, 0, (after - before) * sizeof *words);
        set->words[level] = words;
    }
    set->room = room;
}
