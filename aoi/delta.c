/* The textbook's form of a change: four ascending lists of ids of one subject. */
#include "aoi/aoi.h"
#include "common/check.h"

#include <stdlib.h>

void aoi_delta_open(struct aoi_delta *delta, struct aoi *aoi)
{
    *delta = (struct aoi_delta){.aoi = aoi};
}

void aoi_delta_begin(struct aoi_delta *delta, struct entity_id subject)
{
    delta->subject = subject;
    delta->see_count = delta->unsee_count = delta->seen_by_count = delta->unseen_by_count = 0;
}

static void list_add(const struct aoi *aoi, struct entity_id **list, size_t *count, size_t *room, uint32_t handle)
{
    if (*count == *room) {
        *room = *room * 2 + 32;
        *list = realloc(*list, *room * sizeof **list);
        CHECK(*list != NULL);
    }
    (*list)[(*count)++] = aoi_id(aoi, handle);
}

void aoi_delta_sink(void *context, const struct aoi_span *spans, size_t count)
{
    struct aoi_delta *d = context;
    for (size_t i = 0; i < count; i++) {
        const struct aoi_span *span = &spans[i];
        for (uint32_t j = 0; j < span->count; j++) {
            uint32_t other = span->others[j];
            if (span->change & AOI_SEE) list_add(d->aoi, &d->see, &d->see_count, &d->room[0], other);
            if (span->change & AOI_UNSEE) list_add(d->aoi, &d->unsee, &d->unsee_count, &d->room[1], other);
            if (span->change & AOI_SEEN_BY) list_add(d->aoi, &d->seen_by, &d->seen_by_count, &d->room[2], other);
            if (span->change & AOI_UNSEEN_BY) list_add(d->aoi, &d->unseen_by, &d->unseen_by_count, &d->room[3], other);
        }
    }
}

static int id_compare(const void *a, const void *b)
{
    const struct entity_id *x = a, *y = b;
    return (x->v > y->v) - (x->v < y->v);
}

static void list_sort(struct entity_id *list, size_t count)
{
    if (count > 1) qsort(list, count, sizeof *list, id_compare);
}

void aoi_delta_end(struct aoi_delta *delta)
{
    list_sort(delta->see, delta->see_count);
    list_sort(delta->unsee, delta->unsee_count);
    list_sort(delta->seen_by, delta->seen_by_count);
    list_sort(delta->unseen_by, delta->unseen_by_count);
}

void aoi_delta_close(struct aoi_delta *delta)
{
    free(delta->see);
    free(delta->unsee);
    free(delta->seen_by);
    free(delta->unseen_by);
    *delta = (struct aoi_delta){0};
}
