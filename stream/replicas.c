#include "stream/replicas.h"

#include "common/array.h"
#include "common/check.h"
#include "stream/replica.h"

#include <stdlib.h>

struct replicas *replicas_open(const struct replicas_options *options)
{
    CHECK(options->listener.entity != NULL && options->listener.subscribe != NULL);
    struct replicas *r = calloc(1, sizeof *r);
    CHECK(r != NULL);
    r->options = *options;
    if (r->options.orphan_us == 0) r->options.orphan_us = 2000000;
    if (r->options.silence_us == 0) r->options.silence_us = 3000000;
    if (r->options.retry_us == 0) r->options.retry_us = 500000;
    r->leaves_due_us = UINT64_MAX;
    directory_open(&r->directory, &r->options.listener, r->options.orphan_us);
    return r;
}

void replicas_close(struct replicas *r)
{
    if (r == NULL) return;
    for (uint32_t i = 0; i < r->leaf_end; i++) {
        backlog_clear(&r->leaves[i].backlog);
        free(r->leaves[i].claims);
    }
    free(r->leaves);
    free(r->moves);
    free(r->places);
    free(r->due);
    table_close(&r->leaf_index);
    table_close(&r->entering);
    directory_close(&r->directory);
    free(r);
}

static struct replica *replica_find(const struct replicas *r, struct quadkey leaf)
{
    uint32_t at = table_get(&r->leaf_index, leaf.v);
    return at == TABLE_NONE ? NULL : &r->leaves[at];
}

/* Every call that may tell the listener begins so: it must not come from the listener. Time never goes back. */
static void step_begin(struct replicas *r, uint64_t now_us)
{
    CHECK(!r->directory.telling);
    if (now_us > r->now_us) r->now_us = now_us;
}

static void due_find(struct replicas *r)
{
    r->leaves_due_us = UINT64_MAX;
    for (uint32_t i = 0; i < r->leaf_end; i++) {
        if (r->leaves[i].leaf.v != 0 && r->leaves[i].due_us < r->leaves_due_us) r->leaves_due_us = r->leaves[i].due_us;
    }
}

/* The first free index: few leaves, and indices that are the same on every machine. */
static struct replica *replica_take(struct replicas *r)
{
    uint32_t at = 0;
    while (r->leaves != NULL && at < r->leaf_end && r->leaves[at].leaf.v != 0) at++;
    if (at == r->leaf_end) {
        ARRAY_RESERVE(r->leaves, r->leaf_room, ++r->leaf_end);
        r->leaves[at] = (struct replica){.index = at};
    }
    return &r->leaves[at];
}

void replicas_watch(struct replicas *r, uint64_t now_us, struct quadkey leaf)
{
    CHECK(leaf.v != 0);
    step_begin(r, now_us);
    if (replica_find(r, leaf) != NULL) return;
    struct replica *fresh = replica_take(r);
    table_put(&r->leaf_index, leaf.v, fresh->index);
    r->watched++;
    replica_open(r, fresh, leaf);
}

void replicas_unwatch(struct replicas *r, uint64_t now_us, struct quadkey leaf, bool hold)
{
    step_begin(r, now_us);
    struct replica *old = replica_find(r, leaf);
    if (old == NULL) return;
    table_remove(&r->leaf_index, leaf.v);
    r->watched--;
    replica_close(r, old, hold ? RELEASE_HELD : RELEASE_AT_ONCE);
    due_find(r);
    directory_tell(&r->directory);
}

bool replicas_watches(const struct replicas *r, struct quadkey leaf)
{
    return replica_find(r, leaf) != NULL;
}

void replicas_set_epoch(struct replicas *r, uint64_t now_us, struct quadkey leaf, uint32_t epoch)
{
    step_begin(r, now_us);
    struct replica *found = replica_find(r, leaf);
    if (found != NULL) replica_set_epoch(r, found, epoch);
}

enum terrane_error replicas_frame(struct replicas *r, uint64_t now_us, const uint8_t *bytes, size_t size)
{
    step_begin(r, now_us);
    struct topic topic;
    struct frame frame;
    enum terrane_error error = topic_decode(bytes, size, &topic);
    if (error != TERRANE_ERR_OK) {
        r->counters.malformed++;
        return error;
    }
    struct replica *leaf = topic.kind == r->options.kind ? replica_find(r, topic.leaf) : NULL;
    if (leaf == NULL) {
        r->counters.unwatched++;
        return TERRANE_ERR_NOT_OWNER;
    }
    error = frame_decode(bytes + topic.size, size - topic.size, &frame);
    if (error != TERRANE_ERR_OK) {
        r->counters.malformed++;
        return error;
    }
    if (frame_is_beat(&frame))
        r->counters.beats++;
    else
        r->counters.frames++;
    error = replica_hear(r, leaf, &frame, bytes + topic.size, size - topic.size);
    directory_tell(&r->directory);
    return error;
}

enum terrane_error replicas_snapshot(struct replicas *r, uint64_t now_us, const struct snapshot *snapshot)
{
    step_begin(r, now_us);
    struct replica *leaf = snapshot->stream == r->options.kind ? replica_find(r, snapshot->leaf) : NULL;
    if (leaf == NULL) {
        r->counters.unwatched++;
        return TERRANE_ERR_NOT_OWNER;
    }
    enum terrane_error error = replica_snapshot(r, leaf, *snapshot);
    directory_tell(&r->directory);
    return error;
}

/* Insertion, by (due, order): few are due at once, and there is no context to give to a qsort. */
static void due_insert(struct replicas *r, uint32_t count, uint32_t leaf)
{
    ARRAY_RESERVE(r->due, r->due_room, count + 1u);
    const struct replica *fresh = &r->leaves[leaf];
    uint32_t at = count;
    for (; at > 0; at--) {
        const struct replica *before = &r->leaves[r->due[at - 1]];
        if (before->due_us < fresh->due_us || (before->due_us == fresh->due_us && before->order < fresh->order)) break;
        r->due[at] = r->due[at - 1];
    }
    r->due[at] = leaf;
}

/* leaves_due_us is a lower bound, so leaves are looked through only when one may be due. */
static void ask_silent(struct replicas *r)
{
    if (r->now_us < r->leaves_due_us) return;
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->leaf_end; i++) {
        if (r->leaves[i].leaf.v != 0 && r->leaves[i].due_us <= r->now_us) due_insert(r, count++, i);
    }
    for (uint32_t i = 0; i < count; i++) replica_ask(r, &r->leaves[r->due[i]]);
    due_find(r);
}

void replicas_tick(struct replicas *r, uint64_t now_us)
{
    step_begin(r, now_us);
    if (r->waiting == 0) directory_hasten(&r->directory, r->now_us);
    directory_expire(&r->directory, r->now_us);
    directory_tell(&r->directory);
    ask_silent(r);
}

uint64_t replicas_deadline_us(const struct replicas *r)
{
    uint64_t due_us = directory_due_us(&r->directory);
    return due_us < r->leaves_due_us ? due_us : r->leaves_due_us;
}

void replicas_supersede(struct replicas *r, uint64_t now_us, struct entity_id id, uint64_t version)
{
    step_begin(r, now_us);
    directory_supersede(&r->directory, r->now_us, id, version);
    directory_tell(&r->directory);
}

void replicas_adopt(struct replicas *r, uint64_t now_us, struct quadkey leaf, const struct entity_record *record)
{
    step_begin(r, now_us);
    const struct replica *next = replica_find(r, leaf);
    directory_adopt(&r->directory, r->now_us, record, next == NULL ? DIRECTORY_NONE : next->index);
    directory_tell(&r->directory);
}

uint32_t replicas_find(const struct replicas *r, struct entity_id id)
{
    return directory_find(&r->directory, id);
}

bool replicas_get(const struct replicas *r, uint32_t handle, struct entity_record *out)
{
    const struct directory *d = &r->directory;
    if (handle >= d->entity_end || d->entities[handle].id.v == 0) return false;
    if (d->entities[handle].winner == DIRECTORY_NONE) return false;
    directory_record(d, d->entities[handle].winner, out);
    return true;
}

bool replicas_level(const struct replicas *r, struct quadkey leaf)
{
    const struct replica *found = replica_find(r, leaf);
    return found != NULL && found->state == REPLICA_LEVEL;
}

void replicas_confirm(struct replicas *r, uint64_t now_us, struct quadkey leaf)
{
    step_begin(r, now_us);
    struct replica *found = replica_find(r, leaf);
    if (found == NULL || found->state != REPLICA_LEVEL || found->unsure) return;
    found->unsure = true;
    found->wait_us = r->options.retry_us;
    replica_ask(r, found);
}

bool replicas_sure(const struct replicas *r, struct quadkey leaf)
{
    const struct replica *found = replica_find(r, leaf);
    return found != NULL && found->state == REPLICA_LEVEL && !found->unsure;
}

bool replicas_filled(const struct replicas *r, struct quadkey leaf)
{
    const struct replica *found = replica_find(r, leaf);
    return found != NULL && found->content;
}

size_t replicas_count(const struct replicas *r)
{
    return r->directory.visible;
}

size_t replicas_watched(const struct replicas *r)
{
    return r->watched;
}

size_t replicas_waiting(const struct replicas *r)
{
    return r->waiting;
}

bool replicas_orphaned(const struct replicas *r)
{
    return r->directory.first[DUE_ORPHAN] != DIRECTORY_NONE;
}

const struct replicas_counters *replicas_counters(const struct replicas *r)
{
    return &r->counters;
}
