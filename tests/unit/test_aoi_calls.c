/* Sinks that call back, and what an index says that it can't do: for every index that there is. */
#include "aoi/engine.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 40, SIDE = 600, RADIUS = 100 };

/* A world in which whoever is told of something does something else, a few times deep. */
struct unrest {
    struct aoi *aoi;
    uint64_t random;
    uint32_t handles[ROOM]; /* by id - 1; AOI_HANDLE_NONE: not in the world */
    bool told[ROOM][ROOM];  /* observer, subject */
    unsigned depth, calls, departures, events;
};

static uint32_t draw(struct unrest *u, uint32_t most)
{
    u->random ^= u->random << 13;
    u->random ^= u->random >> 7;
    u->random ^= u->random << 17;
    return (uint32_t)(u->random * 0x2545f4914f6cdd1du >> 33) % most;
}

static void act(struct unrest *u);

static void play(struct unrest *u, uint32_t observer, uint32_t subject, bool sees)
{
    uint64_t a = aoi_id(u->aoi, observer).v, b = aoi_id(u->aoi, subject).v;
    ck_assert_msg(a > 0 && a <= ROOM && b > 0 && b <= ROOM, "a change of nobody");
    ck_assert_msg(u->told[a - 1][b - 1] != sees, "%d told twice of %d", (int)a, (int)b);
    u->told[a - 1][b - 1] = sees;
    u->events++;
}

static void unrest_sink(void *context, const struct aoi_span *spans, size_t count)
{
    struct unrest *u = context;
    for (size_t i = 0; i < count; i++) {
        bool sees = spans[i].change & (AOI_SEE | AOI_SEEN_BY);
        for (uint32_t j = 0; j < spans[i].count; j++) {
            uint32_t other = spans[i].others[j];
            if (spans[i].change & (AOI_SEE | AOI_UNSEE)) play(u, spans[i].subject, other, sees);
            if (spans[i].change & (AOI_SEEN_BY | AOI_UNSEEN_BY)) play(u, other, spans[i].subject, sees);
            if (u->depth < 3 && draw(u, 4) == 0) act(u);
        }
    }
}

static void enter_or_leave(struct unrest *u, uint32_t i, struct position at)
{
    if (u->handles[i] != AOI_HANDLE_NONE) {
        uint32_t handle = u->handles[i];
        u->handles[i] = AOI_HANDLE_NONE; /* before: whoever is told must not use it any more */
        ck_assert_int_eq(aoi_leave(u->aoi, handle, unrest_sink, u), TERRANE_ERR_OK);
        u->departures += u->depth > 1;
        return;
    }
    struct aoi_place place = {.position = at, .radius = RADIUS};
    ck_assert_int_eq(aoi_enter(u->aoi, (struct entity_id){i + 1}, &place, unrest_sink, u, &u->handles[i]),
                     TERRANE_ERR_OK);
}

/* Any operation on anybody. */
static void act(struct unrest *u)
{
    uint32_t i = draw(u, ROOM), kind = draw(u, 8), handle = u->handles[i];
    struct position at = {(int32_t)draw(u, SIDE), (int32_t)draw(u, SIDE), 0};
    u->depth++;
    u->calls++;
    if (handle == AOI_HANDLE_NONE || kind == 0) {
        enter_or_leave(u, i, at);
    } else if (kind < 4) {
        ck_assert_int_eq(aoi_move(u->aoi, handle, at, unrest_sink, u), TERRANE_ERR_OK);
    } else if (kind < 5) {
        ck_assert_int_eq(aoi_set_radius(u->aoi, handle, draw(u, 3) * RADIUS, unrest_sink, u), TERRANE_ERR_OK);
    } else if (kind < 6) {
        ck_assert_int_eq(aoi_set_layer(u->aoi, handle, (uint16_t)draw(u, 2), unrest_sink, u), TERRANE_ERR_OK);
    } else if (kind < 7) {
        ck_assert_int_eq(aoi_stage(u->aoi, handle, at), TERRANE_ERR_OK);
    } else {
        aoi_tick(u->aoi, unrest_sink, u);
    }
    u->depth--;
}

static void unrest_open(struct unrest *u, const struct aoi_index_info *info, uint64_t seed)
{
    memset(u, 0, sizeof *u);
    struct aoi_options options = {.index = info->name,
                                  .mode = AOI_RADIUS,
                                  .cell_size = RADIUS,
                                  .max_x = SIDE,
                                  .max_y = SIDE,
                                  .hysteresis = seed % 2 ? 20 : 0,
                                  .z_range = UINT32_MAX,
                                  .dimensions = info->abilities & AOI_CAN_PLANE ? 2 : 3};
    ck_assert_int_eq(aoi_create(&options, &u->aoi), TERRANE_ERR_OK);
    u->random = seed * 0x9e3779b97f4a7c15u + 1;
    for (unsigned i = 0; i < ROOM; i++) u->handles[i] = AOI_HANDLE_NONE;
}

/* In the end what was told is what there is. */
static void unrest_check(const struct unrest *u)
{
    for (unsigned a = 0; a < ROOM; a++) {
        for (unsigned b = 0; b < ROOM; b++) {
            bool sees = u->handles[a] != AOI_HANDLE_NONE && u->handles[b] != AOI_HANDLE_NONE &&
                        aoi_sees(u->aoi, u->handles[a], u->handles[b]);
            ck_assert_msg(u->told[a][b] == sees, "%u and %u", a, b);
        }
    }
}

START_TEST(a_sink_may_enter_move_and_remove_anybody)
{
    const struct aoi_index_info *info;
    for (size_t at = 0; (info = aoi_index_list(at)); at++) {
        unsigned departures = 0;
        for (uint64_t seed = 1; seed <= 6; seed++) {
            struct unrest u;
            unrest_open(&u, info, seed);
            for (int i = 0; i < 400; i++) act(&u);
            unrest_check(&u);
            ck_assert_uint_gt(u.events, 1000);
            ck_assert_uint_gt(u.calls, 600);
            departures += u.departures;
            aoi_destroy(u.aoi);
        }
        ck_assert_uint_gt(departures, 20);
    }
}
END_TEST

/* Destroys whoever it is told of, at the first sight. */
static void destroy_sink(void *context, const struct aoi_span *spans, size_t count)
{
    struct aoi *aoi = context;
    for (size_t i = 0; i < count; i++) {
        if (!(spans[i].change & AOI_SEE)) continue;
        for (uint32_t j = 0; j < spans[i].count; j++) {
            ck_assert_uint_ne(aoi_id(aoi, spans[i].others[j]).v, 0);
            ck_assert_int_eq(aoi_leave(aoi, spans[i].others[j], destroy_sink, context), TERRANE_ERR_OK);
            ck_assert_int_eq(aoi_leave(aoi, spans[i].others[j], destroy_sink, context), TERRANE_ERR_ENTITY_UNKNOWN);
            ck_assert_uint_ne(aoi_id(aoi, spans[i].others[j]).v, 0); /* still named: more may have to be told of it */
        }
    }
}

START_TEST(who_is_destroyed_while_being_told_of_keeps_its_name_until_all_is_told)
{
    const struct aoi_index_info *info;
    for (size_t at = 0; (info = aoi_index_list(at)); at++) {
        struct unrest u;
        unrest_open(&u, info, 2);
        struct aoi_place place = {.position = {50, 50, 0}, .radius = RADIUS};
        for (unsigned i = 0; i < 20; i++) {
            ck_assert_int_eq(aoi_enter(u.aoi, (struct entity_id){i + 1}, &place, NULL, NULL, &u.handles[i]),
                             TERRANE_ERR_OK);
        }
        uint32_t last;
        ck_assert_int_eq(aoi_enter(u.aoi, (struct entity_id){99}, &place, destroy_sink, u.aoi, &last), TERRANE_ERR_OK);
        ck_assert_uint_eq(aoi_count(u.aoi), 1);
        for (unsigned i = 0; i < 20; i++) ck_assert_uint_eq(aoi_id(u.aoi, u.handles[i]).v, 0);
        aoi_destroy(u.aoi);
    }
}
END_TEST

START_TEST(what_an_index_can_not_do_is_refused_with_the_reason)
{
    struct aoi_options options = {.mode = AOI_RADIUS, .cell_size = 10, .max_x = 100, .max_y = 100};
    struct aoi *aoi;
    options.index = "octopus";
    ck_assert_int_eq(aoi_create(&options, &aoi), TERRANE_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(aoi_options_fault(&options), "no index is called so"));
    options.index = "tower";
    options.dimensions = 3;
    ck_assert_int_eq(aoi_create(&options, &aoi), TERRANE_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(aoi_options_fault(&options), "of the plane"));
    options.index = "grid3d";
    ck_assert_ptr_null(aoi_options_fault(&options));
    options.dimensions = 2;
    ck_assert_ptr_nonnull(strstr(aoi_options_fault(&options), "of space"));
    options.index = NULL;
    ck_assert_ptr_null(aoi_options_fault(&options));
    ck_assert_int_eq(aoi_create(&options, &aoi), TERRANE_ERR_OK);
    struct aoi_place wide = {.extent_x = 3};
    uint32_t handle;
    ck_assert_int_eq(aoi_enter(aoi, (struct entity_id){1}, &wide, NULL, NULL, &handle), TERRANE_ERR_UNSUPPORTED);
    ck_assert_uint_eq(aoi_count(aoi), 0);
    aoi_destroy(aoi);
}
END_TEST

START_TEST(the_list_of_indexes_is_in_order_and_each_is_found_by_its_name)
{
    const struct aoi_index_info *info;
    size_t count = 0;
    for (; (info = aoi_index_list(count)); count++) {
        ck_assert_ptr_eq(aoi_index_find(info->name), info);
        ck_assert(info->abilities & (AOI_CAN_PLANE | AOI_CAN_SPACE) && strlen(info->about) > 10);
        if (count) ck_assert_int_lt(strcmp(aoi_index_list(count - 1)->name, info->name), 0);
    }
    ck_assert_uint_ge(count, 11);
    ck_assert_ptr_eq(aoi_index_find(NULL), aoi_index_find("grid"));
}
END_TEST

enum { MANY = 4000 };

/* All on a line along one axis, in one cell, or in one point. */
static struct position shape_place(unsigned shape, uint32_t i)
{
    int32_t along = (int32_t)i * 10, within = (int32_t)(i * 7919u % RADIUS);
    if (shape == 0) return (struct position){along, 20000, 0};
    if (shape == 1) return (struct position){20000, along, 0};
    if (shape == 2) return (struct position){20000 + within, 20000 + (int32_t)(i * 104729u % RADIUS), 0};
    return (struct position){20000, 20000, 0};
}

/* Looks around some, and counts who was considered for how many found; brute force would consider all. */
static void shape_look(struct aoi *aoi, unsigned shape)
{
    static uint32_t found[MANY];
    size_t all = 0, considered = 0;
    for (uint32_t i = 0; i < MANY; i += 97) {
        all += aoi_query_circle(aoi, shape_place(shape, i), RADIUS, 0, found, MANY);
        considered += engine_of(aoi)->found.count;
    }
    ck_assert_uint_gt(all, MANY / 97);
    ck_assert_msg(considered <= 10 * all, "%zu considered for %zu found", considered, all);
}

/* The same look is what a move is judged by. */
START_TEST(on_a_line_in_a_cell_and_in_a_point_a_look_considers_hardly_more_than_it_finds)
{
    const struct aoi_index_info *info;
    for (size_t at = 0; (info = aoi_index_list(at)); at++) {
        if (!strcmp(info->name, "brute") || !strcmp(info->name, "grid")) continue; /* grid is no engine's */
        for (unsigned shape = 0; shape < 4; shape++) {
            struct aoi_options options = {.index = info->name,
                                          .mode = AOI_RADIUS,
                                          .cell_size = RADIUS,
                                          .max_x = 1 << 16,
                                          .max_y = 1 << 16,
                                          .z_range = UINT32_MAX,
                                          .dimensions = info->abilities & AOI_CAN_PLANE ? 2 : 3};
            struct aoi *aoi;
            uint32_t handle;
            ck_assert_int_eq(aoi_create(&options, &aoi), TERRANE_ERR_OK);
            for (uint32_t i = 0; i < MANY; i++) {
                struct aoi_place place = {.position = shape_place(shape, i), .radius = RADIUS};
                ck_assert_int_eq(aoi_enter(aoi, (struct entity_id){i + 1}, &place, NULL, NULL, &handle),
                                 TERRANE_ERR_OK);
            }
            shape_look(aoi, shape);
            aoi_destroy(aoi);
        }
    }
}
END_TEST

SUITE_MAIN("aoi_calls", on_a_line_in_a_cell_and_in_a_point_a_look_considers_hardly_more_than_it_finds,
           a_sink_may_enter_move_and_remove_anybody,
           who_is_destroyed_while_being_told_of_keeps_its_name_until_all_is_told,
           what_an_index_can_not_do_is_refused_with_the_reason,
           the_list_of_indexes_is_in_order_and_each_is_found_by_its_name)
