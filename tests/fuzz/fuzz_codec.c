/* Every decoder on arbitrary bytes. The first byte chooses the lane. What a decoder accepts is walked to its end. */
#include "common/check.h"
#include "proto/store.h"
#include "tests/vectors/vectors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void store_walk(const uint8_t *bytes, size_t size)
{
    struct store_map m;
    struct store_leaf leaf;
    struct quadkey gone;
    struct store_server server;
    char name[LIMIT_NAME];
    uint32_t leaves = 0, gone_leaves = 0, servers = 0, gone_servers = 0;
    if (store_map_decode(bytes, size, &m) != TERRANE_ERR_OK) return;
    while (store_next_leaf(&m, &leaf)) leaves++;
    while (store_next_gone_leaf(&m, &gone)) gone_leaves++;
    while (store_next_server(&m, &server)) servers++;
    while (store_next_gone_server(&m, name)) gone_servers++;
    CHECK(leaves == m.leaf_count && gone_leaves == m.gone_leaf_count);
    CHECK(servers == m.server_count && gone_servers == m.gone_server_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0) return 0;
    struct text text = {0};
    if (bytes[0] % 4 == 3)
        store_walk(bytes + 1, size - 1);
    else
        (void)!vector_fields((enum vector_kind)(bytes[0] % 4), bytes + 1, size - 1, &text);
    writer_close(&text.out);
    return 0;
}
