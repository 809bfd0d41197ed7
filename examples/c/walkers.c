#include "walkers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static void place(const struct walkers *w, uint32_t i, double *x, double *y)
{
    /* Each walks a circle of its own, at 2 m/s, around the middle of the world where four regions meet. */
    double radius = 10.0 + i % 90, angle = i * 2.4 + w->time_s * 2.0 / radius;
    *x = w->centre_x + radius * cos(angle);
    *y = w->centre_y + radius * sin(angle);
}

static void on_ready(void *context)
{
    struct walkers *w = context;
    struct terrane_world world;
    if (w->entered > 0 || !terrane_world(w->world, &world)) return;
    w->centre_x = world.origin_x + world.side / 2;
    w->centre_y = world.origin_y + world.side / 2;
    for (uint32_t i = 0; i < w->count; i++) {
        struct terrane_entity walker = {.id = w->first_id + i, .radius = 30, .state = "walker", .state_size = 6};
        place(w, i, &walker.x, &walker.y);
        enum terrane_error error = terrane_enter(w->world, &walker, NULL);
        if (error != TERRANE_ERR_OK) fprintf(stderr, "enter %" PRIu64 ": %s\n", walker.id, terrane_error_text(error));
    }
}

static void on_done(void *context, uint64_t request, enum terrane_operation operation, uint64_t id,
                    enum terrane_error error)
{
    struct walkers *w = context;
    (void)request;
    if (error != TERRANE_ERR_OK)
        fprintf(stderr, "entity %" PRIu64 ": %s\n", id, terrane_error_text(error));
    else if (operation == TERRANE_ENTER)
        w->entered++;
}

static void on_see(void *context, uint64_t observer, const struct terrane_entity *subject)
{
    struct walkers *w = context;
    w->sees++;
    /* A real gateway tells the client of `observer`; here the first walker speaks for all. */
    if (observer == w->first_id) printf("I see %" PRIu64 " at %.1f %.1f\n", subject->id, subject->x, subject->y);
}

static void on_unsee(void *context, uint64_t observer, uint64_t subject)
{
    struct walkers *w = context;
    w->unsees++;
    if (observer == w->first_id) printf("I no longer see %" PRIu64 "\n", subject);
}

static void on_update(void *context, uint64_t observer, const struct terrane_entity *subject, uint32_t changes)
{
    (void)observer, (void)subject, (void)changes;
    ((struct walkers *)context)->updates++;
}

static void on_error(void *context, uint64_t id, enum terrane_error error, const char *text)
{
    (void)context, (void)error;
    fprintf(stderr, "entity %" PRIu64 ": %s\n", id, text);
}

void walkers_listen(struct walkers *walkers, struct terrane_options *options)
{
    options->context = walkers;
    options->callbacks = (struct terrane_callbacks){
        .ready = on_ready, .see = on_see, .unsee = on_unsee, .update = on_update, .done = on_done, .error = on_error};
}

void walkers_walk(struct walkers *walkers, double step_s)
{
    double x, y;
    if (!terrane_is_ready(walkers->world)) return;
    walkers->time_s += step_s;
    for (uint32_t i = 0; i < walkers->count; i++) {
        place(walkers, i, &x, &y);
        /* Before its enter was called, or after it was lost, an entity is unknown; nothing to do about it here. */
        enum terrane_error error = terrane_move(walkers->world, walkers->first_id + i, x, y, 0, 0);
        if (error != TERRANE_ERR_OK && error != TERRANE_ERR_ENTITY_UNKNOWN)
            fprintf(stderr, "move: %s\n", terrane_error_text(error));
    }
    terrane_flush(walkers->world);
}

void walkers_report(const struct walkers *walkers)
{
    struct terrane_stats stats;
    terrane_stats(walkers->world, &stats);
    printf("entered=%u sees=%u unsees=%u updates=%u handoffs=%" PRIu64 " servers=%" PRIu64 " gaps=%" PRIu64 "\n",
           walkers->entered, walkers->sees, walkers->unsees, walkers->updates, stats.handoffs, stats.servers,
           stats.gaps);
}

void walkers_write_metrics(const struct walkers *walkers, const char *path)
{
    /* A game's own server answers GET /metrics with this; a file suits the textfile collector of a node exporter. */
    static char text[32768];
    size_t size = terrane_metrics(&walkers->world, 1, text, sizeof text);
    FILE *file = size < sizeof text ? fopen(path, "w") : NULL;
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) fprintf(stderr, "%s is not written\n", path);
}
