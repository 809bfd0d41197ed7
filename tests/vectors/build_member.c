#include "common/geometry.h"
#include "tests/vectors/vectors.h"

#include <string.h>

static const struct node_info server = {
    .role = ROLE_CELLSERVER,
    .node = {4660},
    .name = "cell-1",
    .host = "alpha",
    .inbox_url = "tcp://10.0.0.1:7001",
    .sub_url = "tcp://10.0.0.1:7002",
    .query_url = "tcp://10.0.0.1:7003",
    .ghost_feed_url = "tcp://10.0.0.1:7004",
    .feed_count = 2,
    .feed_urls = {"tcp://10.0.0.1:7010", "tcp://10.0.0.1:7011"},
};
static const struct node_info gateway = {
    .role = ROLE_GATEWAY,
    .node = {UINT64_C(0xfedcba9876543210)},
    .name = "gate-1",
    .host = "beta",
    .inbox_url = "tcp://10.0.0.2:8001",
    .sub_url = "tcp://10.0.0.2:8002",
};

static void hello_server(struct writer *w)
{
    hello_encode(w, &(struct hello){.info = server, .capacity = 100, .term = 3});
}

static void hello_gateway(struct writer *w)
{
    hello_encode(w, &(struct hello){.info = gateway});
}

static void welcome(struct writer *w)
{
    struct welcome m = {.node = {99}, .term = 3, .world = world_default()};
    m.lease_us = 250000;
    m.world.origin_x = m.world.origin_y = -6400;
    welcome_encode(w, &m);
}

static void heartbeat_loaded(struct writer *w)
{
    struct heartbeat m = {.term = 3, .rev = 12, .tick = 1200, .ticks_late = 2, .ghosts = 40, .count = 2};
    m.stamp = 61000000;
    m.echo = 60950000;
    heartbeat_begin(w, &m);
    heartbeat_add(w, &(struct leaf_load){.leaf = {19}, .epoch = 3, .since = 1, .owned = 250});
    heartbeat_add(w, &(struct leaf_load){.leaf = {76}, .epoch = 4, .since = 4, .owned = 0});
    heartbeat_stands(w, 1);
    heartbeat_add_stand(w, &(struct leaf_stand){.leaf = {5}, .epoch = 3});
}

static void heartbeat_bare(struct writer *w)
{
    heartbeat_begin(w, &(struct heartbeat){.term = 3, .rev = 12});
    heartbeat_stands(w, 0);
}

static void map_whole(struct writer *w)
{
    map_begin(w, &(struct map){.term = 3, .rev = 12, .parts = 1});
    map_list(w, 2);
    map_add_node(w, &server);
    map_add_node(w, &gateway);
    map_list(w, 2);
    map_add_leaf(
        w, &(struct leaf_owner){.leaf = {4}, .epoch = 3, .since = 1, .primary = {4660}, .standby = {4661}, .feed = 1});
    map_add_leaf(w, &(struct leaf_owner){.leaf = {5}});
    map_list(w, 0);
    map_list(w, 0);
}

static void map_second_part(struct writer *w)
{
    map_begin(w, &(struct map){.term = 3, .rev = 12, .part = 1, .parts = 2});
    map_list(w, 0);
    map_list(w, 1);
    map_add_leaf(w, &(struct leaf_owner){.leaf = {7}, .epoch = 9, .since = 9, .primary = {4660}});
    map_list(w, 0);
    map_list(w, 0);
}

static void map_delta(struct writer *w)
{
    map_begin(w, &(struct map){.term = 3, .rev = 14, .base = 12, .parts = 1});
    map_list(w, 0);
    map_list(w, 1);
    map_add_leaf(w, &(struct leaf_owner){.leaf = {16}, .epoch = 2, .since = 1, .primary = {4660}});
    map_list(w, 1);
    map_add_gone_node(w, (struct node_id){4661});
    map_list(w, 1);
    map_add_gone_leaf(w, (struct quadkey){4});
}

static void map_request(struct writer *w)
{
    map_request_encode(w, &(struct map_request){.rev = 12});
}

const struct vector_case vector_cases_member[] = {
    {"hello", "a cell server with two region feeds", VECTOR_MESSAGE, hello_server},
    {"hello", "a gateway", VECTOR_MESSAGE, hello_gateway},
    {"welcome", "the default world around the origin", VECTOR_MESSAGE, welcome},
    {"heartbeat", "a cell server with two leaves", VECTOR_MESSAGE, heartbeat_loaded},
    {"heartbeat", "a gateway", VECTOR_MESSAGE, heartbeat_bare},
    {"bye", "the only form", VECTOR_MESSAGE, bye_encode},
    {"map", "whole: two nodes, an owned leaf and an unowned one", VECTOR_MESSAGE, map_whole},
    {"map", "whole: the second of two parts", VECTOR_MESSAGE, map_second_part},
    {"map", "changes from revision 12 to 14", VECTOR_MESSAGE, map_delta},
    {"map_request", "from revision 12", VECTOR_MESSAGE, map_request},
    {0},
};
