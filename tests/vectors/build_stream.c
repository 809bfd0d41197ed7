#include "tests/vectors/vectors.h"

#include <string.h>

static const struct entity_record walker = {
    .id = {7},
    .version = 1000,
    .kind = 1,
    .yaw = 64,
    .radius = 32768,
    .position = {1048576, 1048600, 0},
    .state = (const uint8_t *)"hp",
    .state_size = 2,
};
static const struct entity_record stone = {.id = {300}, .version = 5, .kind = 2, .position = {1048000, 1049000, 12}};
static const struct quadkey leaf = {19};

static void subscribe(struct writer *w)
{
    subscribe_encode(w, MESSAGE_SUBSCRIBE, &(struct subscribe){STREAM_REGION, leaf});
}

static void unsubscribe(struct writer *w)
{
    subscribe_encode(w, MESSAGE_UNSUBSCRIBE, &(struct subscribe){STREAM_GHOST, leaf});
}

static void unsubscribed(struct writer *w)
{
    unsubscribed_encode(w, &(struct unsubscribed){STREAM_REGION, leaf, TERRANE_ERR_NOT_OWNER});
}

static void snapshot_request(struct writer *w)
{
    snapshot_request_encode(w, &(struct snapshot_request){STREAM_REGION, leaf, 128});
}

static void snapshot(struct writer *w)
{
    struct snapshot m = {
        .stream = STREAM_REGION, .leaf = leaf, .epoch = 1, .seq = 41, .tick = 1200, .parts = 1, .count = 2};
    snapshot_begin(w, &m);
    snapshot_add(w, 0, &walker);
    snapshot_add(w, 3, &stone);
}

static void snapshot_empty(struct writer *w)
{
    snapshot_begin(w, &(struct snapshot){.stream = STREAM_GHOST, .leaf = {1}, .epoch = 2, .part = 2, .parts = 3});
}

static void offer(struct writer *w)
{
    struct offer m = {.from = leaf, .to = {24}, .from_epoch = 1, .to_epoch = 4, .count = 2};
    struct transfer item = {.record = walker, .gateway = {500}, .position_sequence = 43};
    item.state_sequence = 5;
    item.radius_sequence = 6;
    item.recall_count = 2;
    offer_begin(w, &m);
    offer_add(w, &item);
    entity_add(w, (struct entity_id){12});
    entity_add(w, (struct entity_id){11});
    offer_add(w, &(struct transfer){.record = stone});
}

static void accept(struct writer *w)
{
    accept_begin(w, &(struct accept){.to = {24}, .to_epoch = 4, .count = 2});
    accept_add(w, &(struct accept_item){.id = {7}, .offered = 1000, .version = 1001});
    accept_add(w, &(struct accept_item){.id = {300}, .offered = 5, .version = 6});
}

static void refuse(struct writer *w)
{
    refuse_begin(w, &(struct refuse){.to = {24}, .to_epoch = 2, .error = TERRANE_ERR_LIMIT, .count = 1});
    accept_add(w, &(struct accept_item){.id = {7}, .offered = 1000});
}

static void status(struct writer *w)
{
    status_encode(w, &(struct status){.json = "{\"tick\":1200,\"owned\":250}"});
}

static void fault(struct writer *w)
{
    struct fault m = {.error = TERRANE_ERR_NOT_OWNER};
    strcpy(m.text, "this server does not own leaf 03");
    fault_encode(w, &m);
}

const struct vector_case vector_cases_stream[] = {
    {"subscribe", "to the region stream of leaf 03", VECTOR_MESSAGE, subscribe},
    {"unsubscribe", "from the ghost stream of leaf 03", VECTOR_MESSAGE, unsubscribe},
    {"unsubscribed", "not the owner", VECTOR_MESSAGE, unsubscribed},
    {"snapshot_request", "leaf 03 from slot 128 on", VECTOR_MESSAGE, snapshot_request},
    {"snapshot", "leaf 03 with two entities", VECTOR_MESSAGE, snapshot},
    {"snapshot", "an empty last part", VECTOR_MESSAGE, snapshot_empty},
    {"offer", "two entities, one with a gateway", VECTOR_MESSAGE, offer},
    {"accept", "both", VECTOR_MESSAGE, accept},
    {"refuse", "no room", VECTOR_MESSAGE, refuse},
    {"status_request", "the only form", VECTOR_MESSAGE, status_request_encode},
    {"status", "a little JSON", VECTOR_MESSAGE, status},
    {"fault", "not the owner", VECTOR_MESSAGE, fault},
    {0},
};
