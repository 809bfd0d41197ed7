/* One leaf's replica as a state machine: what was heard, what is missing, when to ask for it.
 *
 * Epochs. The sure lane (snapshots, the ownership map) is believed; a frame may only fence: it raises epoch_seen, which
 * makes lower epochs stale. If nobody confirms such an epoch and no frame repeats it for silence_us, it is forgotten,
 * so that one forged or misled frame can't shut a leaf for ever.
 *
 * Snapshots are applied part by part, as they come: staging a large leaf would take its size once more. Until the last
 * part the replica waits and buffers frames. What is missing in the end leaves by the orphan's rule, so an entity that
 * is in another slot or leaf now does not blink meanwhile.
 *
 * Asking. At most one SUBSCRIBE in retry_us for one leaf (but for a new epoch, which means another addressee); without
 * an answer the time between them doubles up to eight times retry_us. Parts of a snapshot that are coming in put the
 * next one off: asking again would start the snapshot anew. */
#include "stream/replica.h"

#include "common/check.h"

#include <stdlib.h>

#define BACK_OFF_MAX 8u

struct transition {
    bool allowed;
    enum replica_state next;
    bool counts; /* as a gap */
};

static const struct transition transitions[REPLICA_STATES][REPLICA_EVENTS] = {
    [REPLICA_WAITING] =
        {
            [REPLICA_NEW_EPOCH] = {true, REPLICA_WAITING, false},
            [REPLICA_PART] = {true, REPLICA_WAITING, false},
            [REPLICA_WHOLE] = {true, REPLICA_LEVEL, false},
        },
    [REPLICA_LEVEL] =
        {
            [REPLICA_GAP] = {true, REPLICA_WAITING, true},
            [REPLICA_BROKEN] = {true, REPLICA_WAITING, false},
            [REPLICA_NEW_EPOCH] = {true, REPLICA_WAITING, false},
            [REPLICA_PART] = {true, REPLICA_WAITING, false},
            [REPLICA_WHOLE] = {true, REPLICA_LEVEL, false},
        },
};

static void replica_go(struct replicas *r, struct replica *leaf, enum replica_event event)
{
    const struct transition *t = &transitions[leaf->state][event];
    CHECK(t->allowed);
    if (t->counts) {
        r->counters.gaps++;
        leaf->gap_open = true;
    }
    if (t->next == leaf->state) return;
    leaf->state = t->next;
    bool level = t->next == REPLICA_LEVEL;
    directory_set_level(&r->directory, leaf->index, level);
    r->waiting += level ? UINT32_MAX : 1;
}

static void gap_close(struct replicas *r, struct replica *leaf)
{
    if (leaf->gap_open) r->counters.gaps_repaired++;
    leaf->gap_open = false;
}

static void due_set(struct replicas *r, struct replica *leaf, uint64_t due_us)
{
    leaf->due_us = due_us;
    if (due_us < r->leaves_due_us) r->leaves_due_us = due_us;
}

/* The owner is alive and the content is up to date. */
static void heard(struct replicas *r, struct replica *leaf)
{
    leaf->wait_us = r->options.retry_us;
    if (!leaf->unsure) due_set(r, leaf, r->now_us + r->options.silence_us);
}

void replica_ask(struct replicas *r, struct replica *leaf)
{
    if (leaf->epoch_seen > leaf->epoch && r->now_us - leaf->seen_us >= r->options.silence_us) {
        leaf->epoch_seen = leaf->epoch;
        backlog_clear(&leaf->backlog); /* what else is in it is older than the snapshot that is asked for now */
    }
    leaf->asked = true;
    leaf->asked_us = r->now_us;
    due_set(r, leaf, r->now_us + leaf->wait_us);
    uint64_t most_us = BACK_OFF_MAX * r->options.retry_us;
    leaf->wait_us = 2 * leaf->wait_us < most_us ? 2 * leaf->wait_us : most_us;
    r->directory.telling = true;
    r->options.listener.subscribe(r->options.listener.context, r->options.kind, leaf->leaf);
    r->directory.telling = false;
}

static void ask_soon(struct replicas *r, struct replica *leaf)
{
    uint64_t next_us = leaf->asked_us + r->options.retry_us;
    if (!leaf->asked || r->now_us >= next_us)
        replica_ask(r, leaf);
    else
        due_set(r, leaf, next_us);
}

void replica_open(struct replicas *r, struct replica *leaf, struct quadkey key)
{
    uint32_t index = leaf->index;
    *leaf = (struct replica){
        .leaf = key, .state = REPLICA_WAITING, .index = index, .order = r->order++, .wait_us = r->options.retry_us};
    directory_set_level(&r->directory, index, false);
    r->waiting++;
    replica_ask(r, leaf);
}

void replica_close(struct replicas *r, struct replica *leaf, enum claim_release how)
{
    for (uint32_t slot = 0; slot < leaf->slot_end; slot++) {
        if (leaf->claims[slot] != DIRECTORY_NONE)
            directory_release(&r->directory, r->now_us, leaf->claims[slot], how, 0);
    }
    directory_forget_leaf(&r->directory, leaf->index);
    if (leaf->state == REPLICA_WAITING) r->waiting--;
    directory_set_level(&r->directory, leaf->index, false);
    gap_close(r, leaf); /* nothing of it is wanted any more */
    backlog_clear(&leaf->backlog);
    free(leaf->claims);
    *leaf = (struct replica){.index = leaf->index};
}

void replica_set_epoch(struct replicas *r, struct replica *leaf, uint32_t epoch)
{
    if (epoch <= leaf->epoch) return;
    bool just_asked = leaf->epoch_seen == 0 && leaf->asked_us == r->now_us;
    leaf->epoch = epoch;
    if (leaf->epoch_seen < epoch) leaf->epoch_seen = epoch;
    if (leaf->incoming.epoch < epoch) leaf->incoming.active = false;
    replica_go(r, leaf, REPLICA_NEW_EPOCH);
    leaf->wait_us = r->options.retry_us;
    if (!just_asked) replica_ask(r, leaf);
}

static void keep_for_later(struct replicas *r, struct replica *leaf, const uint8_t *body, size_t size)
{
    r->counters.backlog_dropped += backlog_push(&leaf->backlog, body, size);
}

enum verdict { VERDICT_STALE, VERDICT_NEXT, VERDICT_BEAT, VERDICT_GAP };

/* What a frame is to a level replica. */
static enum verdict replica_judge(const struct replica *leaf, const struct frame *frame)
{
    if (frame->epoch != leaf->content_epoch) return frame->epoch < leaf->content_epoch ? VERDICT_STALE : VERDICT_GAP;
    if (frame_is_beat(frame) && frame->seq == leaf->seq) return VERDICT_BEAT;
    if (frame->seq <= leaf->seq) return VERDICT_STALE;
    return frame->seq == leaf->seq + 1 && !frame_is_beat(frame) ? VERDICT_NEXT : VERDICT_GAP;
}

/* Applies the next frame; one that does not fit costs the level. */
static enum terrane_error replica_advance(struct replicas *r, struct replica *leaf, const struct frame *frame)
{
    enum terrane_error error = replica_apply(r, leaf, frame);
    if (error == TERRANE_ERR_OK) {
        leaf->seq = frame->seq;
        return error;
    }
    r->counters.malformed++;
    replica_go(r, leaf, REPLICA_BROKEN);
    ask_soon(r, leaf);
    return error;
}

enum terrane_error replica_hear(struct replicas *r, struct replica *leaf, const struct frame *frame,
                                const uint8_t *body, size_t size)
{
    if (frame->epoch < leaf->epoch_seen) {
        r->counters.stale++;
        return TERRANE_ERR_EPOCH_STALE;
    }
    leaf->epoch_seen = frame->epoch;
    leaf->seen_us = r->now_us;
    bool beat = frame_is_beat(frame);
    if (leaf->state == REPLICA_WAITING) {
        if (!beat) keep_for_later(r, leaf, body, size);
        return TERRANE_ERR_OK;
    }
    switch (replica_judge(leaf, frame)) {
    case VERDICT_BEAT: heard(r, leaf); return TERRANE_ERR_OK;
    case VERDICT_NEXT: heard(r, leaf); return replica_advance(r, leaf, frame);
    case VERDICT_STALE: r->counters.stale++; return TERRANE_ERR_OK;
    case VERDICT_GAP:
    default:
        replica_go(r, leaf, REPLICA_GAP);
        if (!beat) keep_for_later(r, leaf, body, size);
        ask_soon(r, leaf);
        return TERRANE_ERR_OK;
    }
}

/* After a snapshot: the frames that came meanwhile, up to the first that does not follow. */
static void replica_replay(struct replicas *r, struct replica *leaf)
{
    const uint8_t *body;
    size_t size;
    struct frame frame;
    while (leaf->state == REPLICA_LEVEL && backlog_front(&leaf->backlog, &body, &size)) {
        CHECK(frame_decode(body, size, &frame) == TERRANE_ERR_OK);
        enum verdict verdict = replica_judge(leaf, &frame);
        if (verdict == VERDICT_GAP) {
            replica_go(r, leaf, REPLICA_GAP);
            ask_soon(r, leaf);
            return;
        }
        if (verdict == VERDICT_STALE) r->counters.stale++;
        /* What is wrong with a frame here has been counted; the snapshot itself was well. */
        if (verdict == VERDICT_NEXT) (void)replica_advance(r, leaf, &frame);
        backlog_pop(&leaf->backlog);
    }
    if (leaf->state == REPLICA_LEVEL) backlog_clear(&leaf->backlog);
}

static bool older(uint32_t epoch, uint64_t seq, uint32_t than_epoch, uint64_t than_seq)
{
    return epoch < than_epoch || (epoch == than_epoch && seq < than_seq);
}

static void incoming_begin(struct replicas *r, struct replica *leaf, const struct snapshot *part)
{
    leaf->incoming.active = true;
    leaf->incoming.epoch = part->epoch;
    leaf->incoming.seq = part->seq;
    leaf->incoming.parts = part->parts;
    leaf->incoming.next = 0;
    for (uint32_t slot = 0; slot < leaf->slot_end; slot++) {
        uint32_t claim = leaf->claims[slot];
        if (claim != DIRECTORY_NONE) r->directory.claims[claim].marks &= (uint8_t)~CLAIM_SEEN;
    }
    directory_whole_begins(&r->directory, leaf->index);
    if (part->epoch > leaf->epoch) leaf->epoch = part->epoch;
    if (part->parts > 1) replica_go(r, leaf, REPLICA_PART);
}

/* Whether the part is the one that is due, of the newest snapshot. */
static bool incoming_accepts(struct replicas *r, struct replica *leaf, const struct snapshot *part)
{
    if (leaf->content && older(part->epoch, part->seq, leaf->content_epoch, leaf->seq)) return false;
    if (leaf->incoming.active && older(part->epoch, part->seq, leaf->incoming.epoch, leaf->incoming.seq)) return false;
    if (part->part == 0) {
        incoming_begin(r, leaf, part);
        return true;
    }
    return leaf->incoming.active && part->epoch == leaf->incoming.epoch && part->seq == leaf->incoming.seq &&
           part->parts == leaf->incoming.parts && part->part == leaf->incoming.next;
}

static void item_put(struct replicas *r, struct replica *leaf, uint32_t slot, const struct entity_record *record)
{
    struct directory *d = &r->directory;
    uint32_t claim = slot < leaf->slot_end ? leaf->claims[slot] : DIRECTORY_NONE;
    if (claim != DIRECTORY_NONE && entity_id_equal(d->claims[claim].id, record->id)) {
        claim = directory_renew(d, r->now_us, claim, record);
    } else {
        if (claim != DIRECTORY_NONE) {
            leaf->claims[slot] = DIRECTORY_NONE;
            directory_release(d, r->now_us, claim, RELEASE_HELD, 0);
        }
        claim = directory_claim(d, leaf->index, slot, record);
    }
    replica_place(leaf, slot, claim);
    d->claims[claim].marks |= CLAIM_SEEN;
}

static void incoming_finish(struct replicas *r, struct replica *leaf)
{
    leaf->incoming.active = false;
    for (uint32_t slot = 0; slot < leaf->slot_end; slot++) {
        uint32_t claim = leaf->claims[slot];
        if (claim == DIRECTORY_NONE || (r->directory.claims[claim].marks & CLAIM_SEEN) != 0) continue;
        leaf->claims[slot] = DIRECTORY_NONE;
        directory_release(&r->directory, r->now_us, claim, RELEASE_HELD, 0);
    }
    directory_whole_ends(&r->directory, leaf->index);
    leaf->content = true;
    leaf->content_epoch = leaf->incoming.epoch;
    leaf->seq = leaf->incoming.seq;
    r->counters.snapshots++;
    gap_close(r, leaf);
    replica_go(r, leaf, REPLICA_WHOLE);
    heard(r, leaf);
    replica_replay(r, leaf);
}

enum terrane_error replica_snapshot(struct replicas *r, struct replica *leaf, struct snapshot part)
{
    if (part.epoch < leaf->epoch_seen) {
        r->counters.stale++;
        return TERRANE_ERR_EPOCH_STALE;
    }
    /* One that frames have overtaken says as well that its sender hears us. */
    if (part.part + 1 == part.parts) leaf->unsure = false;
    if (!incoming_accepts(r, leaf, &part)) {
        r->counters.stale++;
        return TERRANE_ERR_OK;
    }
    leaf->epoch_seen = part.epoch;
    uint32_t slot;
    struct entity_record record;
    while (snapshot_next(&part, &slot, &record)) item_put(r, leaf, slot, &record);
    if (++leaf->incoming.next == part.parts)
        incoming_finish(r, leaf);
    else
        due_set(r, leaf, r->now_us + r->options.silence_us);
    return TERRANE_ERR_OK;
}
