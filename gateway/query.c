/* Inquiries: queries of a shape and finds of an entity. Several servers are asked, each answers for what it owns; the
 * game gets one list and one `done`. */
#include "gateway/internal.h"

#include <math.h>
#include <stdlib.h>

void gateway_inquiry_free(struct gateway *g, uint32_t slot)
{
    struct inquiry *q = &g->inquiries[slot];
    if (q->item_room > KEPT_ITEMS) {
        free(q->items);
        q->items = NULL;
        q->item_room = 0;
    }
    q->next = g->inquiry_free;
    g->inquiry_free = slot;
}

void gateway_inquiries_close(struct gateway *g)
{
    for (uint32_t i = 0; i < g->inquiry_count; i++) {
        free(g->inquiries[i].asks);
        free(g->inquiries[i].items);
    }
    free(g->inquiries);
}

/* Makes a request with an inquiry. */
static enum terrane_error inquiry_new(struct gateway *g, enum terrane_operation operation, struct entity_id id,
                                      const struct query *query, uint64_t *number)
{
    uint32_t request;
    if (g->closing) return TERRANE_ERR_CLOSED;
    if (!gateway_is_ready(g)) return TERRANE_ERR_NOT_READY;
    enum terrane_error error = gateway_request_new(g, operation, id, SLOT_NONE, &request);
    if (error != TERRANE_ERR_OK) return error;
    uint32_t slot = g->inquiry_free;
    if (slot != SLOT_NONE) {
        g->inquiry_free = g->inquiries[slot].next;
    } else {
        slot = g->inquiry_count++;
        ARRAY_RESERVE(g->inquiries, g->inquiry_room, g->inquiry_count);
    }
    struct inquiry *q = &g->inquiries[slot];
    *q = (struct inquiry){
        .query = *query, .asks = q->asks, .ask_room = q->ask_room, .items = q->items, .item_room = q->item_room};
    g->requests[request].inquiry = slot;
    if (number != NULL) *number = g->requests[request].number;
    gateway_request_queue(g, request);
    return TERRANE_ERR_OK;
}

static void fail(struct inquiry *q, enum terrane_error error)
{
    if (q->error == TERRANE_ERR_OK) q->error = error;
}

static struct inquiry_ask *find_ask(struct inquiry *q, struct node_id node)
{
    for (uint32_t i = 0; i < q->ask_count; i++) {
        if (node_id_equal(q->asks[i].node, node)) return &q->asks[i];
    }
    return NULL;
}

static void add_ask(struct inquiry *q, struct node_id node)
{
    ARRAY_RESERVE(q->asks, q->ask_room, q->ask_count + 1);
    q->asks[q->ask_count++] = (struct inquiry_ask){.node = node};
}

struct shape {
    struct gateway *g;
    struct inquiry *q;
};

static void ask_owner(void *context, const struct leaf_owner *leaf)
{
    struct shape *shape = context;
    struct inquiry *q = shape->q;
    const struct world *world = &shape->g->world;
    struct position centre = {q->query.a, q->query.b, 0};
    /* An entity may stand past its leaf's border by the hand-off hysteresis. */
    int64_t reach = (int64_t)q->query.c + world->handoff_hysteresis;
    if (q->query.shape == QUERY_CIRCLE && !square_meets_circle(quadkey_square(world, leaf->leaf), centre, reach))
        return;
    if (leaf->primary.v == 0)
        fail(q, TERRANE_ERR_REGION_UNOWNED);
    else if (find_ask(q, leaf->primary) == NULL)
        add_ask(q, leaf->primary);
}

static void choose_servers(struct gateway *g, struct inquiry *q, enum terrane_operation operation)
{
    q->ask_count = 0;
    if (operation == TERRANE_FIND) {
        for (uint32_t i = 0; i < g->owner_count; i++) add_ask(q, g->owners[i]);
        return;
    }
    const struct query *query = &q->query;
    bool circle = query->shape == QUERY_CIRCLE;
    int64_t more = g->world.handoff_hysteresis;
    int64_t min_x = circle ? (int64_t)query->a - query->c : query->a;
    int64_t min_y = circle ? (int64_t)query->b - query->c : query->b;
    int64_t max_x = circle ? (int64_t)query->a + query->c : query->c;
    int64_t max_y = circle ? (int64_t)query->b + query->c : query->d;
    struct shape shape = {g, q};
    gateway_map_leaves(g, min_x - more, min_y - more, max_x + more, max_y + more, ask_owner, &shape);
}

static void finish(struct gateway *g, uint32_t request)
{
    struct request *r = &g->requests[request];
    struct inquiry *q = &g->inquiries[r->inquiry];
    bool missing = r->operation == TERRANE_FIND && q->item_count == 0;
    if (q->unsure && (missing || r->operation == TERRANE_QUERY)) {
        gateway_request_wait(g, request, gateway_retry_us(r->refusals++));
        return;
    }
    if (missing && !q->again) {
        q->again = true;
        gateway_request_wait(g, request, FIND_AGAIN_US);
        return;
    }
    if (missing) fail(q, TERRANE_ERR_ENTITY_UNKNOWN);
    enum terrane_error error = q->error;
    gateway_inquiry_tell(g, request);
    gateway_request_done(g, request, error);
}

void gateway_inquiry_send(struct gateway *g, uint32_t request)
{
    struct request *r = &g->requests[request];
    struct inquiry *q = &g->inquiries[r->inquiry];
    /* Each round has a number of its own, so that no answer to a former one is taken for this one's. */
    if (r->wire != 0) table_remove(&g->request_index, r->wire);
    r->wire = q->query.request = ++g->request_number;
    table_put(&g->request_index, r->wire, request);
    q->item_count = 0;
    q->error = TERRANE_ERR_OK;
    q->unsure = false;
    choose_servers(g, q, r->operation);
    q->open = q->ask_count;
    writer_clear(&g->message);
    if (r->operation == TERRANE_FIND) {
        struct lookup lookup = {.request = r->wire, .id = r->id};
        lookup_encode(&g->message, &lookup);
    } else {
        query_encode(&g->message, &q->query);
    }
    for (uint32_t i = 0; i < q->ask_count; i++) {
        enum terrane_error error = gateway_peer_push(g, q->asks[i].node);
        if (error == TERRANE_ERR_OK) continue;
        if (r->operation == TERRANE_QUERY) fail(q, error);
        q->asks[i].answered = true;
        q->open--;
    }
    if (q->open == 0) finish(g, request);
}

/* Whoever was asked and owns nothing of the shape any more may never answer, and his successor has not been asked for
 * what was his. */
void gateway_inquiry_moved(struct gateway *g, uint32_t request)
{
    struct request *r = &g->requests[request];
    struct inquiry *q = &g->inquiries[r->inquiry], now = {.query = q->query};
    bool moved = false;
    choose_servers(g, &now, r->operation);
    for (uint32_t i = 0; i < q->ask_count && !moved; i++)
        moved = !q->asks[i].answered && find_ask(&now, q->asks[i].node) == NULL;
    free(now.asks);
    if (moved) gateway_request_queue(g, request);
}

static void answered(struct gateway *g, uint32_t request, struct inquiry_ask *ask)
{
    struct inquiry *q = &g->inquiries[g->requests[request].inquiry];
    ask->answered = true;
    if (--q->open == 0) finish(g, request);
}

/* The inquiry that `from` was asked by and has not answered; NULL and counted: none. */
static struct inquiry_ask *asked(struct gateway *g, uint64_t number, enum terrane_operation operation,
                                 struct node_id from, uint32_t *request)
{
    *request = gateway_request_find(g, number);
    if (*request == SLOT_NONE) return NULL; /* timed out, or found before: late answers are no fault */
    struct request *r = &g->requests[*request];
    struct inquiry_ask *ask = NULL;
    bool waits = r->operation == operation && r->state == REQUEST_SENT && r->wire == number;
    if (waits) ask = find_ask(&g->inquiries[r->inquiry], from);
    if (ask == NULL || ask->answered) {
        g->counters.stale++;
        return NULL;
    }
    return ask;
}

void gateway_inquiry_query_result(struct gateway *g, struct node_id from, struct query_result *result)
{
    uint32_t request;
    struct inquiry_ask *ask = asked(g, result->request, TERRANE_QUERY, from, &request);
    if (ask == NULL) return;
    struct inquiry *q = &g->inquiries[g->requests[request].inquiry];
    if (result->part != ask->parts++) g->counters.malformed++;
    if (result->error == TERRANE_ERR_NOT_READY || result->error == TERRANE_ERR_NOT_OWNER)
        q->unsure = true; /* it is about to be its leaf's owner */
    else if (result->error != TERRANE_ERR_OK)
        fail(q, result->error);
    struct query_item item;
    while (query_result_next(result, &item)) {
        if (q->item_count >= LIMIT_FOUND) {
            fail(q, TERRANE_ERR_LIMIT);
            break;
        }
        ARRAY_RESERVE(q->items, q->item_room, q->item_count + 1);
        q->items[q->item_count++] = item;
    }
    if (result->part + 1 >= result->parts || result->error != TERRANE_ERR_OK) answered(g, request, ask);
}

void gateway_inquiry_lookup_result(struct gateway *g, struct node_id from, const struct lookup_result *result)
{
    uint32_t request;
    struct inquiry_ask *ask = asked(g, result->request, TERRANE_FIND, from, &request);
    if (ask == NULL) return;
    struct inquiry *q = &g->inquiries[g->requests[request].inquiry];
    q->unsure |= result->error == TERRANE_ERR_NOT_READY;
    if (result->error != TERRANE_ERR_OK || !entity_id_equal(result->id, g->requests[request].id)) {
        answered(g, request, ask);
        return;
    }
    ARRAY_RESERVE(q->items, q->item_room, q->item_count + 1);
    q->items[q->item_count++] = (struct query_item){result->id, result->version, result->position};
    finish(g, request);
}

static int item_order(const void *a, const void *b)
{
    const struct query_item *left = a, *right = b;
    if (left->id.v != right->id.v) return left->id.v < right->id.v ? -1 : 1;
    return left->version > right->version ? -1 : left->version < right->version;
}

void gateway_inquiry_tell(struct gateway *g, uint32_t request)
{
    struct inquiry *q = &g->inquiries[g->requests[request].inquiry];
    uint32_t kept = 0;
    if (q->item_count == 0) return;
    qsort(q->items, q->item_count, sizeof *q->items, item_order);
    for (uint32_t i = 0; i < q->item_count; i++) {
        /* Two servers know an entity that passes between them; the higher version comes first. */
        if (kept == 0 || !entity_id_equal(q->items[i].id, q->items[kept - 1].id)) q->items[kept++] = q->items[i];
    }
    struct note note = {.kind = NOTE_FOUND, .request = g->requests[request].number};
    gateway_notify(g, &note, q->items, kept * sizeof *q->items);
    q->item_count = 0;
}

enum terrane_error gateway_query_circle(struct gateway *g, double x, double y, double radius, int layer,
                                        uint64_t *request)
{
    struct position centre;
    if (!gateway_is_ready(g)) return g->closing ? TERRANE_ERR_CLOSED : TERRANE_ERR_NOT_READY;
    enum terrane_error error = world_position(&g->world, x, y, 0, &centre);
    if (error == TERRANE_ERR_OK && (!isfinite(radius) || radius < 0)) error = TERRANE_ERR_POSITION_INVALID;
    if (error != TERRANE_ERR_OK) return error;
    struct query query = {.shape = QUERY_CIRCLE,
                          .layer = layer < 0 || layer > UINT16_MAX ? -1 : layer,
                          .a = centre.x,
                          .b = centre.y,
                          .c = (int32_t)world_length(&g->world, radius)};
    return inquiry_new(g, TERRANE_QUERY, (struct entity_id){0}, &query, request);
}

/* A side of a rectangle, which may lie outside the world: cut to it. */
static int32_t side_of(const struct gateway *g, double v, double origin)
{
    double units = floor((v - origin) / g->unit), last = ldexp(1.0, (int)g->world.resolution_bits) - 1;
    return units < 0 ? 0 : units > last ? (int32_t)last : (int32_t)units;
}

enum terrane_error gateway_query_rectangle(struct gateway *g, double min_x, double min_y, double max_x, double max_y,
                                           int layer, uint64_t *request)
{
    if (!gateway_is_ready(g)) return g->closing ? TERRANE_ERR_CLOSED : TERRANE_ERR_NOT_READY;
    bool finite = isfinite(min_x) && isfinite(min_y) && isfinite(max_x) && isfinite(max_y);
    if (!finite || min_x > max_x || min_y > max_y) return TERRANE_ERR_POSITION_INVALID;
    double side = ldexp(g->world.cell_size, (int)g->world.depth);
    bool outside = max_x < g->world.origin_x || max_y < g->world.origin_y || min_x >= g->world.origin_x + side ||
                   min_y >= g->world.origin_y + side;
    if (outside) return TERRANE_ERR_POSITION_OUTSIDE;
    struct query query = {.shape = QUERY_RECTANGLE,
                          .layer = layer < 0 || layer > UINT16_MAX ? -1 : layer,
                          .a = side_of(g, min_x, g->world.origin_x),
                          .b = side_of(g, min_y, g->world.origin_y),
                          .c = side_of(g, max_x, g->world.origin_x),
                          .d = side_of(g, max_y, g->world.origin_y)};
    return inquiry_new(g, TERRANE_QUERY, (struct entity_id){0}, &query, request);
}

enum terrane_error gateway_find(struct gateway *g, uint64_t id, uint64_t *request)
{
    if (id == 0) return TERRANE_ERR_ENTITY_NONE;
    struct query none = {0};
    return inquiry_new(g, TERRANE_FIND, (struct entity_id){id}, &none, request);
}
