/* Snapshots: what subscribers have been told, not what is true now, so that the next frame's deltas fit on them. */
#include "common/check.h"
#include "stream/writer_state.h"

/* A part's head around its items: the kind, eight fields and the list's length. */
#define PART_MARGIN 64u
#define PART_BYTES  (LIMIT_MESSAGE_BYTES - PART_MARGIN)

/* Appends the slot's item if subscribers have the slot. */
static bool item_write(const struct stream_writer *s, uint32_t slot, stream_describe *describe, void *context,
                       struct writer *items)
{
    const struct stream_slot *e = &s->slots[slot];
    if ((e->marks & (SLOT_USED | SLOT_TOLD)) != (SLOT_USED | SLOT_TOLD)) return false;
    struct entity_record record = {0};
    describe(context, e->owner, &record);
    CHECK(record.state_size <= LIMIT_STATE_BYTES);
    record.position = e->told;
    record.yaw = e->yaw_told;
    snapshot_add(items, slot, &record);
    return true;
}

/* Appends items from `slot` on while they fit one part; returns the slot to go on from. */
static uint32_t part_write(const struct stream_writer *s, uint32_t slot, stream_describe *describe, void *context,
                           struct writer *items, uint32_t *count)
{
    size_t begin = items->size;
    for (*count = 0; slot < s->slot_end; slot++) {
        size_t before = items->size;
        if (!item_write(s, slot, describe, context, items)) continue;
        if (items->size - begin > PART_BYTES) {
            items->size = before;
            return slot;
        }
        ++*count;
    }
    return slot;
}

static struct snapshot head_of(const struct stream_writer *s, uint64_t tick)
{
    return (struct snapshot){.stream = s->kind, .leaf = s->leaf, .epoch = s->epoch, .seq = s->seq, .tick = tick};
}

static void part_finish(struct writer *w, const struct snapshot *head, const void *items, size_t size)
{
    size_t before = w->size;
    snapshot_begin(w, head);
    writer_raw(w, items, size);
    CHECK(w->size - before <= LIMIT_MESSAGE_BYTES);
}

/* A part names the number of parts, which is known only when all are cut: two walks, the first for the count. Keeping
 * the items of a large leaf between the walks would cost megabytes and be no faster. */
void stream_snapshot(struct stream_writer *s, uint64_t tick, stream_describe *describe, void *context,
                     stream_take *take, void *take_context)
{
    struct writer items = {0}, message = {0};
    struct snapshot head = head_of(s, tick);
    uint32_t slot = 0;
    do {
        writer_clear(&items);
        slot = part_write(s, slot, describe, context, &items, &head.count);
        head.parts++;
    } while (slot < s->slot_end);
    slot = 0;
    for (head.part = 0; head.part < head.parts; head.part++) {
        if (head.parts > 1) {
            writer_clear(&items);
            slot = part_write(s, slot, describe, context, &items, &head.count);
        }
        writer_clear(&message);
        part_finish(&message, &head, items.data, items.size);
        take(take_context, message.data, message.size);
    }
    writer_close(&items);
    writer_close(&message);
}

void stream_snapshot_from(struct stream_writer *s, uint64_t tick, uint32_t from_slot, stream_describe *describe,
                          void *context, struct writer *w)
{
    struct writer items = {0};
    struct snapshot head = head_of(s, tick);
    uint32_t slot = part_write(s, from_slot, describe, context, &items, &head.count);
    head.parts = slot < s->slot_end ? 2 : 1;
    part_finish(w, &head, items.data, items.size);
    writer_close(&items);
}
