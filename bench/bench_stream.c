/* bench_stream: what a stream costs for each entity that moved, on both sides, next to the plain way in the same run:
 * an array [slot, dx, dy] an entity, packed and unpacked with msgpack-c.
 *
 * A case is a number of walkers (1.4 m/s at 20 Hz in the default world, each with a heading of its own that drifts) and
 * how many of them walk in a tick. `publish` is stream_move for each and stream_publish; `apply` is replicas_frame with
 * a listener that looks at each record; `bytes` is all of the message. The reference does the same moves and keeps
 * positions, no more: no claims, no validation of the whole before the first change. Medians over ticks. */
#include "common/check.h"
#include "common/geometry.h"
#include "stream/replicas.h"
#include "stream/writer.h"

#include <math.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TICK_HZ 20
#define WALK_MS 1.4

struct walker {
    double x, y, heading;
    struct entity_record record;
    uint32_t slot;
};

struct scene {
    uint32_t count, percent, ticks, told;
    uint64_t dice, checksum;
    double step; /* position units a tick */
    struct walker *walkers;
    uint32_t *moved; /* in the tick: who */
    uint32_t moved_count;
    struct stream_writer *stream;
    struct replicas *replicas;
    struct writer out;
    struct position *packed, *unpacked; /* the reference's two sides */
    msgpack_sbuffer buffer;
    msgpack_unpacked result;
    double *times[6];
};

enum figure { PUBLISH, APPLY, BYTES, PLAIN_PUBLISH, PLAIN_APPLY, PLAIN_BYTES };

/* CPU time of the thread: a tick that was interrupted by others costs no more. */
static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint32_t below(struct scene *s, uint32_t n)
{
    s->dice = s->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((s->dice >> 33) % n);
}

static void describe(void *context, uint32_t owner, struct entity_record *out)
{
    *out = ((struct scene *)context)->walkers[owner].record;
}

static void hear(void *context, uint32_t handle, const struct entity_record *record, uint32_t changes)
{
    struct scene *s = context;
    s->checksum += handle + (uint32_t)record->position.x + changes;
    s->told++;
}

static void subscribe(void *context, enum stream_kind kind, struct quadkey leaf)
{
    (void)context;
    (void)kind;
    (void)leaf;
}

static void take(void *context, const void *message, size_t size)
{
    struct scene *s = context;
    struct snapshot part;
    CHECK(snapshot_decode(cursor_of(message, size), &part) == TERRANE_ERR_OK);
    CHECK(replicas_snapshot(s->replicas, 0, &part) == TERRANE_ERR_OK);
}

static void scene_open(struct scene *s, uint32_t count, uint32_t percent, uint32_t ticks)
{
    struct world world = world_default();
    *s = (struct scene){.count = count, .percent = percent, .ticks = ticks, .dice = count};
    s->step = WALK_MS / TICK_HZ / world_unit(&world);
    s->walkers = calloc(count, sizeof *s->walkers);
    s->moved = calloc(count, sizeof *s->moved);
    s->packed = calloc(count, sizeof *s->packed);
    s->unpacked = calloc(count, sizeof *s->unpacked);
    for (int i = 0; i < 6; i++) s->times[i] = calloc(ticks, sizeof *s->times[i]);
    msgpack_sbuffer_init(&s->buffer);
    msgpack_unpacked_init(&s->result);
    s->stream = stream_writer_open(STREAM_REGION, QUADKEY_ROOT, 1);
    s->replicas = replicas_open(&(struct replicas_options){.kind = STREAM_REGION, .listener = {s, hear, subscribe}});
    for (uint32_t i = 0; i < count; i++) {
        struct walker *w = &s->walkers[i];
        w->x = 1e6 + below(s, 1000000);
        w->y = 1e6 + below(s, 1000000);
        w->heading = below(s, 6283) / 1000.0;
        w->record = (struct entity_record){.id = {i + 1}, .version = 1, .position = {(int32_t)w->x, (int32_t)w->y, 0}};
        w->slot = stream_enter(s->stream, i, &w->record);
        s->packed[i] = s->unpacked[i] = w->record.position;
    }
    while (stream_publish(s->stream, 1, 0, describe, s, &s->out)) writer_clear(&s->out);
    replicas_watch(s->replicas, 0, QUADKEY_ROOT);
    stream_snapshot(s->stream, 1, describe, s, take, s);
    CHECK(replicas_level(s->replicas, QUADKEY_ROOT) && replicas_count(s->replicas) == count);
}

static void scene_close(struct scene *s)
{
    stream_writer_close(s->stream);
    replicas_close(s->replicas);
    writer_close(&s->out);
    msgpack_sbuffer_destroy(&s->buffer);
    msgpack_unpacked_destroy(&s->result);
    free(s->walkers);
    free(s->moved);
    free(s->packed);
    free(s->unpacked);
    for (int i = 0; i < 6; i++) free(s->times[i]);
}

static void walk(struct scene *s)
{
    s->moved_count = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (below(s, 100) >= s->percent) continue;
        struct walker *w = &s->walkers[i];
        w->heading += (below(s, 2001) - 1000.0) / 5000.0;
        w->x += s->step * cos(w->heading);
        w->y += s->step * sin(w->heading);
        w->record.position.x = (int32_t)lround(w->x);
        w->record.position.y = (int32_t)lround(w->y);
        s->moved[s->moved_count++] = i;
    }
}

static void ours(struct scene *s, uint32_t tick)
{
    double begin = now_ns();
    for (uint32_t i = 0; i < s->moved_count; i++) {
        const struct walker *w = &s->walkers[s->moved[i]];
        stream_move(s->stream, w->slot, w->record.position, 0);
    }
    writer_clear(&s->out);
    CHECK(stream_publish(s->stream, tick + 2, 0, describe, s, &s->out));
    double published = now_ns();
    s->told = 0;
    CHECK(replicas_frame(s->replicas, tick, s->out.data, s->out.size) == TERRANE_ERR_OK);
    double applied = now_ns();
    CHECK(s->told > 0 && s->told <= s->moved_count);
    s->times[PUBLISH][tick] = (published - begin) / s->moved_count;
    s->times[APPLY][tick] = (applied - published) / s->moved_count;
    s->times[BYTES][tick] = (double)s->out.size / s->moved_count;
}

static void plain_publish(struct scene *s)
{
    msgpack_packer packer;
    msgpack_sbuffer_clear(&s->buffer);
    msgpack_packer_init(&packer, &s->buffer, msgpack_sbuffer_write);
    msgpack_pack_array(&packer, s->moved_count);
    for (uint32_t i = 0; i < s->moved_count; i++) {
        uint32_t at = s->moved[i];
        const struct position *now = &s->walkers[at].record.position;
        msgpack_pack_array(&packer, 3);
        msgpack_pack_uint32(&packer, at);
        msgpack_pack_int32(&packer, now->x - s->packed[at].x);
        msgpack_pack_int32(&packer, now->y - s->packed[at].y);
        s->packed[at] = *now;
    }
}

static void plain_apply(struct scene *s)
{
    size_t offset = 0;
    CHECK(msgpack_unpack_next(&s->result, s->buffer.data, s->buffer.size, &offset) == MSGPACK_UNPACK_SUCCESS);
    const msgpack_object_array *all = &s->result.data.via.array;
    for (uint32_t i = 0; i < all->size; i++) {
        const msgpack_object *item = all->ptr[i].via.array.ptr;
        CHECK(all->ptr[i].via.array.size == 3 && item[0].via.u64 < s->count);
        struct position *place = &s->unpacked[item[0].via.u64];
        place->x += (int32_t)item[1].via.i64;
        place->y += (int32_t)item[2].via.i64;
        s->checksum += (uint32_t)place->x;
    }
}

static void plain(struct scene *s, uint32_t tick)
{
    double begin = now_ns();
    plain_publish(s);
    double published = now_ns();
    plain_apply(s);
    double applied = now_ns();
    s->times[PLAIN_PUBLISH][tick] = (published - begin) / s->moved_count;
    s->times[PLAIN_APPLY][tick] = (applied - published) / s->moved_count;
    s->times[PLAIN_BYTES][tick] = (double)s->buffer.size / s->moved_count;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(struct scene *s, enum figure figure)
{
    qsort(s->times[figure], s->ticks, sizeof *s->times[figure], ascending);
    return s->times[figure][s->ticks / 2];
}

static void print(struct scene *s, const char *name, enum figure figure, const char *unit)
{
    static const char *const names[] = {"publish", "apply", "bytes"};
    double value = median(s, figure), reference = median(s, (enum figure)(figure + PLAIN_PUBLISH));
    printf("{\"bench\":\"stream\",\"case\":\"%s\",\"figure\":\"%s\",\"value\":%.2f,\"unit\":\"%s\","
           "\"reference\":\"msgpack-c [slot,dx,dy]\",\"reference_value\":%.2f,\"ratio\":%.2f}\n",
           name, names[figure], value, unit, reference, reference / value);
}

/* Both sides of both ways must have ended where the walkers are. */
static void scene_check(struct scene *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const struct walker *w = &s->walkers[i];
        struct entity_record record;
        CHECK(replicas_get(s->replicas, replicas_find(s->replicas, w->record.id), &record));
        const struct position want = w->record.position, plain_end = s->unpacked[i];
        CHECK(record.position.x == want.x && record.position.y == want.y);
        CHECK(plain_end.x == want.x && plain_end.y == want.y);
    }
}

static void scene_run(uint32_t count, uint32_t percent, uint32_t moves)
{
    struct scene s;
    char name[64];
    uint32_t ticks = moves / (count * percent / 100);
    scene_open(&s, count, percent, ticks < 20 ? 20 : ticks);
    for (uint32_t tick = 0; tick < s.ticks; tick++) {
        walk(&s);
        ours(&s, tick);
        plain(&s, tick);
    }
    scene_check(&s);
    snprintf(name, sizeof name, "walk/%u/%u%%", count, percent);
    print(&s, name, PUBLISH, "ns");
    print(&s, name, APPLY, "ns");
    print(&s, name, BYTES, "bytes");
    scene_close(&s);
}

int main(int argc, char **argv)
{
    bool quick = argc == 2 && strcmp(argv[1], "--quick") == 0;
    if (argc > 1 && !quick) {
        fputs("usage: bench_stream [--quick]\n", stderr);
        return 2;
    }
    const uint32_t counts[] = {100, 1000, 10000, 100000}, percents[] = {100, 50};
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t k = 0; k < 2; k++) scene_run(counts[i], percents[k], quick ? 1000000 : 10000000);
    }
    return 0;
}
