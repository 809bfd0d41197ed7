#include "tests/vectors/vectors.h"

static const struct entity_record walker = {
    .id = {7},
    .version = 1000,
    .kind = 1,
    .layer = 0,
    .yaw = 64,
    .radius = 32768,
    .position = {1048576, 1048600, 0},
    .state = (const uint8_t *)"hp",
    .state_size = 2,
};
/* Every field at the end of its range. */
static const struct entity_record extreme = {
    .id = {UINT64_MAX},
    .version = VERSION_ENTER_MAX,
    .kind = UINT32_MAX,
    .flags = UINT32_MAX,
    .layer = UINT16_MAX,
    .yaw = UINT8_MAX,
    .radius = INT32_MAX,
    .position = {POSITION_END - 1, POSITION_END - 1, -HEIGHT_END},
};

static void enter(struct writer *w)
{
    enter_encode(w, &(struct enter){.request = 1, .sequence = 1, .record = walker});
}

static void enter_extreme(struct writer *w)
{
    enter_encode(w, &(struct enter){.request = UINT64_MAX, .sequence = UINT64_MAX, .record = extreme});
}

static void leave(struct writer *w)
{
    leave_encode(w, &(struct leave){.request = 9, .sequence = 40, .id = {7}});
}

static void set_state(struct writer *w)
{
    static const uint8_t state[] = {0x82, 0x00, 0xff};
    struct set_state m = {.request = 2, .sequence = 5, .id = {7}, .state = state, .state_size = sizeof state};
    set_state_encode(w, &m);
}

static void set_radius(struct writer *w)
{
    set_radius_encode(w, &(struct set_radius){.request = 3, .sequence = 6, .id = {7}, .radius = 16384});
}

static void attach(struct writer *w)
{
    attach_encode(w, &(struct attach){.request = 4, .sequence = 44, .id = {7}, .former = {500}});
}

static void attach_any(struct writer *w)
{
    attach_encode(w, &(struct attach){.request = 5, .sequence = 45, .id = {7}});
}

static void attached(struct writer *w)
{
    attached_encode(w, &(struct attached){.request = 4, .leaf = {19}, .record = walker});
}

static void moves(struct writer *w)
{
    moves_begin(w, &(struct moves){.sequence = 41, .count = 2});
    moves_add(w, &(struct move){.id = {7}, .position = {1048590, 1048612, 0}, .yaw = 66});
    moves_add(w, &(struct move){.id = {300}, .position = {0, POSITION_END - 1, -5}, .yaw = 255});
}

static void moves_none(struct writer *w)
{
    moves_begin(w, &(struct moves){.sequence = 42});
}

static void result(struct writer *w)
{
    result_encode(w, &(struct result){.request = 1, .id = {7}, .error = TERRANE_ERR_OK, .version = 1000});
}

static void result_refused(struct writer *w)
{
    result_encode(w, &(struct result){.request = 1, .id = {7}, .error = TERRANE_ERR_ENTITY_EXISTS});
}

static void result_detached(struct writer *w)
{
    result_encode(w, &(struct result){.id = {7}, .error = TERRANE_ERR_DETACHED, .version = 1000});
}

static void owner(struct writer *w)
{
    owner_encode(w, &(struct owner){.id = {7}, .version = 1001, .leaf = {19}});
}

static void forward_moves(struct writer *w)
{
    struct writer command = {0};
    moves_begin(&command, &(struct moves){.sequence = 43, .count = 1});
    moves_add(&command, &(struct move){.id = {7}, .position = {1048600, 1048620, 0}, .yaw = 67});
    struct forward m = {.gateway = {500}, .hops = 1, .command = cursor_of(command.data, command.size)};
    forward_encode(w, &m);
    writer_close(&command);
}

static void forward_attach(struct writer *w)
{
    struct writer command = {0};
    attach_any(&command);
    struct forward m = {.gateway = {501}, .hops = 1, .command = cursor_of(command.data, command.size)};
    forward_encode(w, &m);
    writer_close(&command);
}

static void forward_leave(struct writer *w)
{
    struct writer command = {0};
    leave(&command);
    struct forward m = {.gateway = {500}, .hops = 8, .command = cursor_of(command.data, command.size)};
    forward_encode(w, &m);
    writer_close(&command);
}

static void moves_lost(struct writer *w)
{
    moves_lost_encode(w, &(struct moves_lost){.packets = 3});
}

const struct vector_case vector_cases_command[] = {
    {"enter", "a walker", VECTOR_MESSAGE, enter},
    {"enter", "every field at the end of its range", VECTOR_MESSAGE, enter_extreme},
    {"leave", "entity 7", VECTOR_MESSAGE, leave},
    {"set_state", "three bytes", VECTOR_MESSAGE, set_state},
    {"set_radius", "entity 7 sees 16384 units far", VECTOR_MESSAGE, set_radius},
    {"attach", "if it is still that node's", VECTOR_MESSAGE, attach},
    {"attach", "whoever's it is", VECTOR_MESSAGE, attach_any},
    {"attached", "a walker in leaf 03", VECTOR_MESSAGE, attached},
    {"moves", "two entities", VECTOR_MESSAGE, moves},
    {"moves", "none", VECTOR_MESSAGE, moves_none},
    {"result", "done", VECTOR_MESSAGE, result},
    {"result", "refused: the entity exists", VECTOR_MESSAGE, result_refused},
    {"result", "nobody asked: another gateway has attached entity 7", VECTOR_MESSAGE, result_detached},
    {"owner", "of entity 7, in leaf 03", VECTOR_MESSAGE, owner},
    {"forward", "a move", VECTOR_MESSAGE, forward_moves},
    {"forward", "a leave, on its last hop", VECTOR_MESSAGE, forward_leave},
    {"forward", "an attach", VECTOR_MESSAGE, forward_attach},
    {"moves_lost", "three packets", VECTOR_MESSAGE, moves_lost},
    {0},
};
