/* Between cell servers about who has which entity: REGISTRY. */
#include "proto/registry.h"

#include "proto/codec.h"

void registry_begin(struct writer *w, const struct registry *m)
{
    head_write(w, MESSAGE_REGISTRY, 4);
    writer_uint(w, m->leaf.v);
    writer_uint(w, m->since);
    writer_bool(w, m->complete);
    writer_array(w, m->count);
}

void registry_add(struct writer *w, const struct registry_item *item)
{
    writer_array(w, 6);
    writer_uint(w, (uint64_t)item->verb);
    writer_uint(w, item->id.v);
    writer_uint(w, item->version);
    writer_uint(w, item->gateway.v);
    writer_uint(w, item->request);
    writer_uint(w, item->token);
}

static void item_read(struct cursor *c, struct registry_item *item)
{
    (void)cursor_array(c, 6, 6);
    item->verb = (enum registry_verb)choice_read(c, REGISTRY_VERBS - 1);
    item->id = id_read(c);
    item->version = version_read(c);
    item->gateway = node_or_none_read(c);
    item->request = number_read(c);
    item->token = number_read(c);
}

enum terrane_error registry_decode(struct cursor c, struct registry *m)
{
    head_read(&c, MESSAGE_REGISTRY, 4);
    m->leaf = quadkey_read(&c);
    m->since = word_read(&c);
    if (m->since == 0) cursor_fail(&c, TERRANE_ERR_MESSAGE_RANGE);
    m->complete = cursor_bool(&c);
    m->count = cursor_array(&c, 0, LIMIT_ENTITIES);
    m->items = list_open(&c);
    struct registry_item item;
    for (uint32_t i = 0; i < m->count && c.error == TERRANE_ERR_OK; i++) item_read(&c, &item);
    list_close(&m->items, &c);
    return cursor_end(&c);
}

bool registry_next(struct registry *m, struct registry_item *item)
{
    if (!list_more(&m->items)) return false;
    item_read(&m->items, item);
    return m->items.error == TERRANE_ERR_OK;
}

const struct leaf_owner *registry_home(const struct ownership *map, const struct world *world, struct entity_id id)
{
    /* The finaliser of MurmurHash3 (Appleby): each bit of the id moves each bit of the place. */
    uint64_t mixed = id.v;
    mixed = (mixed ^ mixed >> 33) * UINT64_C(0xff51afd7ed558ccd);
    mixed = (mixed ^ mixed >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    mixed ^= mixed >> 33;
    uint32_t shift = 32 - world->resolution_bits;
    struct position place = {.x = (int32_t)((uint32_t)mixed >> shift),
                             .y = (int32_t)((uint32_t)(mixed >> 32) >> shift)};
    return ownership_at(map, world, place);
}
