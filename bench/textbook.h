/* The textbook grid, as the reference that every figure is compared with: a vector of ids a cell, a chained hash map
 * from id to entity, hash sets for the difference between two views, one callback for each pair and change.
 *
 * Written plainly, as one finds it in articles; not slowed down, not tuned. Every entity observes with one radius.
 * Header-only because a benchmark is one program of one file. Memory is counted as it is taken. */
#ifndef TERRANE_BENCH_TEXTBOOK_H
#define TERRANE_BENCH_TEXTBOOK_H

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct textbook;
/* `sees`: observer begins to see subject; otherwise ceases to. */
typedef void textbook_callback(void *context, uint64_t observer, uint64_t subject, bool sees);

struct textbook_node { /* of a map (value used) or of a set */
    struct textbook_node *next;
    uint64_t key;
    int32_t x, y;
};

struct textbook_table {
    struct textbook_node **buckets;
    size_t bucket_count, count;
};

struct textbook_cell {
    uint64_t *ids;
    uint32_t count, room;
};

struct textbook {
    bool radius_mode;
    int32_t cell_size, radius, cells; /* the world is cells x cells, from (0, 0) */
    struct textbook_cell *grid;
    struct textbook_table entities, old_view, new_view;
    textbook_callback *callback;
    void *context;
    size_t bytes;
};

static void *textbook_take(struct textbook *t, void *old, size_t size)
{
    if (old) t->bytes -= malloc_usable_size(old) + 8;
    void *memory = realloc(old, size);
    if (!memory) {
        fprintf(stderr, "bench: out of memory in the textbook grid\n");
        exit(3);
    }
    t->bytes += malloc_usable_size(memory) + 8;
    return memory;
}

static void textbook_give(struct textbook *t, void *memory)
{
    if (memory) t->bytes -= malloc_usable_size(memory) + 8;
    free(memory);
}

/* ---- the hash table ---- */

static size_t textbook_bucket(const struct textbook_table *table, uint64_t key)
{
    return (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) % table->bucket_count;
}

static void textbook_rehash(struct textbook *t, struct textbook_table *table, size_t bucket_count)
{
    struct textbook_table old = *table;
    table->bucket_count = bucket_count;
    table->buckets = textbook_take(t, NULL, bucket_count * sizeof(struct textbook_node *));
    for (size_t i = 0; i < bucket_count; i++) table->buckets[i] = NULL;
    for (size_t i = 0; i < old.bucket_count; i++) {
        for (struct textbook_node *node = old.buckets[i], *next; node; node = next) {
            next = node->next;
            size_t bucket = textbook_bucket(table, node->key);
            node->next = table->buckets[bucket];
            table->buckets[bucket] = node;
        }
    }
    textbook_give(t, old.buckets);
}

static struct textbook_node *textbook_get(const struct textbook_table *table, uint64_t key)
{
    if (!table->bucket_count) return NULL;
    struct textbook_node *node = table->buckets[textbook_bucket(table, key)];
    while (node && node->key != key) node = node->next;
    return node;
}

static struct textbook_node *textbook_put(struct textbook *t, struct textbook_table *table, uint64_t key)
{
    if (table->count >= table->bucket_count) textbook_rehash(t, table, table->bucket_count * 2 + 13);
    struct textbook_node *node = textbook_take(t, NULL, sizeof *node);
    size_t bucket = textbook_bucket(table, key);
    *node = (struct textbook_node){.next = table->buckets[bucket], .key = key};
    table->buckets[bucket] = node;
    table->count++;
    return node;
}

static void textbook_erase(struct textbook *t, struct textbook_table *table, uint64_t key)
{
    struct textbook_node **at = &table->buckets[textbook_bucket(table, key)];
    while ((*at)->key != key) at = &(*at)->next;
    struct textbook_node *node = *at;
    *at = node->next;
    textbook_give(t, node);
    table->count--;
}

static void textbook_clear(struct textbook *t, struct textbook_table *table)
{
    for (size_t i = 0; i < table->bucket_count; i++) {
        for (struct textbook_node *node = table->buckets[i], *next; node; node = next) {
            next = node->next;
            textbook_give(t, node);
        }
        table->buckets[i] = NULL;
    }
    table->count = 0;
    if (table->bucket_count > 64) { /* a set that was once large must not be slow to clear for ever */
        textbook_give(t, table->buckets);
        *table = (struct textbook_table){0};
    }
}

/* ---- the grid ---- */

static void textbook_open(struct textbook *t, bool radius_mode, int32_t cell_size, int32_t radius, int32_t cells,
                          textbook_callback *callback)
{
    *t = (struct textbook){.radius_mode = radius_mode, .cell_size = cell_size, .radius = radius, .cells = cells};
    t->callback = callback;
    size_t size = (size_t)cells * (size_t)cells * sizeof *t->grid;
    t->grid = textbook_take(t, NULL, size);
    for (size_t i = 0; i < size / sizeof *t->grid; i++) t->grid[i] = (struct textbook_cell){0};
}

static void textbook_close(struct textbook *t)
{
    for (int32_t i = 0; i < t->cells * t->cells; i++) textbook_give(t, t->grid[i].ids);
    textbook_give(t, t->grid);
    struct textbook_table *tables[] = {&t->entities, &t->old_view, &t->new_view};
    for (size_t i = 0; i < 3; i++) {
        textbook_clear(t, tables[i]);
        textbook_give(t, tables[i]->buckets);
    }
}

static struct textbook_cell *textbook_cell_at(struct textbook *t, int32_t x, int32_t y)
{
    return &t->grid[(size_t)(y / t->cell_size) * (size_t)t->cells + (size_t)(x / t->cell_size)];
}

static void textbook_cell_add(struct textbook *t, struct textbook_cell *cell, uint64_t id)
{
    if (cell->count == cell->room) {
        cell->room = cell->room ? cell->room * 2 : 4;
        cell->ids = textbook_take(t, cell->ids, cell->room * sizeof *cell->ids);
    }
    cell->ids[cell->count++] = id;
}

static void textbook_cell_remove(struct textbook_cell *cell, uint64_t id)
{
    uint32_t i = 0;
    while (cell->ids[i] != id) i++;
    cell->ids[i] = cell->ids[--cell->count];
}

static bool textbook_near(const struct textbook *t, int32_t ax, int32_t ay, int32_t bx, int32_t by)
{
    int64_t dx = ax - bx, dy = ay - by;
    return dx * dx + dy * dy <= (int64_t)t->radius * t->radius;
}

/* Calls `found` for all others in view from (x, y); the cell is the radius, so 3 x 3 cells hold the circle. */
static void textbook_look(struct textbook *t, uint64_t self, int32_t x, int32_t y, bool circle,
                          void (*found)(struct textbook *t, void *context, uint64_t other), void *context)
{
    int32_t cx = x / t->cell_size, cy = y / t->cell_size;
    for (int32_t j = cy > 0 ? cy - 1 : 0; j <= cy + 1 && j < t->cells; j++) {
        for (int32_t i = cx > 0 ? cx - 1 : 0; i <= cx + 1 && i < t->cells; i++) {
            const struct textbook_cell *cell = &t->grid[(size_t)j * (size_t)t->cells + (size_t)i];
            for (uint32_t k = 0; k < cell->count; k++) {
                if (cell->ids[k] == self) continue;
                if (circle) {
                    const struct textbook_node *other = textbook_get(&t->entities, cell->ids[k]);
                    if (!textbook_near(t, x, y, other->x, other->y)) continue;
                }
                found(t, context, cell->ids[k]);
            }
        }
    }
}

static void textbook_collect(struct textbook *t, void *set, uint64_t other)
{
    textbook_put(t, set, other);
}

/* Tells both directions of each pair that is in `from` and not in `other`. */
static void textbook_tell(struct textbook *t, uint64_t id, const struct textbook_table *from,
                          const struct textbook_table *other, bool sees)
{
    for (size_t i = 0; i < from->bucket_count; i++) {
        for (const struct textbook_node *node = from->buckets[i]; node; node = node->next) {
            if (textbook_get(other, node->key)) continue;
            t->callback(t->context, id, node->key, sees);
            t->callback(t->context, node->key, id, sees);
        }
    }
}

static void textbook_difference(struct textbook *t, uint64_t id)
{
    textbook_tell(t, id, &t->old_view, &t->new_view, false);
    textbook_tell(t, id, &t->new_view, &t->old_view, true);
    textbook_clear(t, &t->old_view);
    textbook_clear(t, &t->new_view);
}

/* `quietly`: without telling anybody (to load a world). */
static void textbook_enter(struct textbook *t, uint64_t id, int32_t x, int32_t y, bool quietly)
{
    struct textbook_node *entity = textbook_put(t, &t->entities, id);
    entity->x = x;
    entity->y = y;
    if (!quietly) {
        textbook_look(t, id, x, y, t->radius_mode, textbook_collect, &t->new_view);
        textbook_difference(t, id);
    }
    textbook_cell_add(t, textbook_cell_at(t, x, y), id);
}

static void textbook_leave(struct textbook *t, uint64_t id)
{
    const struct textbook_node *entity = textbook_get(&t->entities, id);
    textbook_cell_remove(textbook_cell_at(t, entity->x, entity->y), id);
    textbook_look(t, id, entity->x, entity->y, t->radius_mode, textbook_collect, &t->old_view);
    textbook_difference(t, id);
    textbook_erase(t, &t->entities, id);
}

static void textbook_move(struct textbook *t, uint64_t id, int32_t x, int32_t y)
{
    struct textbook_node *entity = textbook_get(&t->entities, id);
    struct textbook_cell *from = textbook_cell_at(t, entity->x, entity->y), *to = textbook_cell_at(t, x, y);
    if (from != to || t->radius_mode) {
        textbook_look(t, id, entity->x, entity->y, t->radius_mode, textbook_collect, &t->old_view);
        textbook_look(t, id, x, y, t->radius_mode, textbook_collect, &t->new_view);
        textbook_difference(t, id);
    }
    if (from != to) {
        textbook_cell_remove(from, id);
        textbook_cell_add(t, to, id);
    }
    entity->x = x;
    entity->y = y;
}

struct textbook_found {
    uint64_t *out;
    size_t count, room;
};

static void textbook_note(struct textbook *t, void *context, uint64_t other)
{
    (void)t;
    struct textbook_found *found = context;
    if (found->count < found->room) found->out[found->count] = other;
    found->count++;
}

/* All within the radius of (x, y). */
static size_t textbook_query(struct textbook *t, int32_t x, int32_t y, uint64_t *out, size_t room)
{
    struct textbook_found found = {.out = out, .room = room};
    textbook_look(t, 0, x, y, true, textbook_note, &found);
    return found.count;
}

#endif
