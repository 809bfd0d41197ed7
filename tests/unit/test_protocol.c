/* docs/PROTOCOL.md tells what the code does: its examples are the vectors, its numbers the lists'. */
#include "tests/unit/suite.h"
#include "tests/vectors/vectors.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define FENCE "\n```hex\n"

static struct vector_list vectors;
static char *page;

static void page_need(void)
{
    if (page != NULL) return;
    vector_list_load(&vectors, TERRANE_SOURCE_DIR "/proto/vectors");
    FILE *file = fopen(TERRANE_SOURCE_DIR "/docs/PROTOCOL.md", "rb");
    ck_assert_ptr_nonnull(file);
    page = calloc(1, 1u << 20);
    ck_assert_ptr_nonnull(page);
    ck_assert_uint_gt(fread(page, 1, (1u << 20) - 1, file), 10000);
    fclose(file);
}

static void hex_of(const struct vector *v, char *out)
{
    for (size_t i = 0; i < v->size; i++) sprintf(out + 2 * i, "%02x", v->bytes[i]);
    out[2 * v->size] = '\0';
}

/* The digits of the block at `at`, without the line ends. */
static void block_read(const char *at, char *out, size_t room)
{
    size_t size = 0;
    for (; *at != '`' && *at != '\0' && size + 1 < room; at++)
        if (!isspace((unsigned char)*at)) out[size++] = *at;
    out[size] = '\0';
}

static bool page_shows(const char *hex)
{
    char block[4096];
    for (const char *at = page; (at = strstr(at, FENCE)) != NULL;) {
        at += strlen(FENCE);
        block_read(at, block, sizeof block);
        if (strcmp(block, hex) == 0) return true;
    }
    return false;
}

START_TEST(the_page_shows_the_first_vector_of_every_file_and_all_frames_and_packets)
{
    page_need();
    char hex[4096];
    const char *file = "";
    uint32_t shown = 0;
    for (uint32_t i = 0; i < vectors.count; i++) {
        const struct vector *v = &vectors.items[i];
        bool first = strcmp(v->file, file) != 0;
        file = v->file;
        if (!first && v->kind == VECTOR_MESSAGE) continue;
        hex_of(v, hex);
        ck_assert_msg(page_shows(hex), "%s: %s is not in docs/PROTOCOL.md", v->file, v->name);
        shown++;
    }
    ck_assert_uint_gt(shown, 40);
}
END_TEST

START_TEST(every_example_of_the_page_is_a_vector)
{
    page_need();
    char hex[4096], block[4096];
    uint32_t blocks = 0;
    for (const char *at = page; (at = strstr(at, FENCE)) != NULL; blocks++) {
        at += strlen(FENCE);
        block_read(at, block, sizeof block);
        bool known = false;
        for (uint32_t i = 0; i < vectors.count && !known; i++) {
            hex_of(&vectors.items[i], hex);
            known = strcmp(block, hex) == 0;
        }
        ck_assert_msg(known, "no vector has the bytes %s", block);
    }
    ck_assert_uint_gt(blocks, 40);
}
END_TEST

START_TEST(every_kind_has_a_section_with_its_number_and_lane)
{
    page_need();
    char heading[96];
#define X(NAME, name, number, lane)                                                                                    \
    {                                                                                                                  \
        snprintf(heading, sizeof heading, "\n### %d " #name "\n\nLane: " #lane ".", number);                           \
        for (char *at = strstr(heading, "Lane: ") + 6; *at != '\0'; at++) *at = (char)tolower((unsigned char)*at);     \
        ck_assert_msg(strstr(page, heading) != NULL, "docs/PROTOCOL.md lacks: %s", heading);                           \
    }
    MESSAGE_KINDS(X)
#undef X
}
END_TEST

START_TEST(every_error_stands_there_with_its_number_and_text)
{
    page_need();
    char row[256];
#define X(NAME, name, number, text)                                                                                    \
    snprintf(row, sizeof row, "\n| %d | `%s` | %s |\n", number, #name, text);                                          \
    ck_assert_msg(strstr(page, row) != NULL, "docs/PROTOCOL.md lacks: %s", row);
    TERRANE_ERRORS(X)
#undef X
}
END_TEST

START_TEST(teardown)
{
    vector_list_close(&vectors);
    free(page);
    ck_assert_uint_eq(vectors.count, 0);
}
END_TEST

SUITE_MAIN("protocol", the_page_shows_the_first_vector_of_every_file_and_all_frames_and_packets,
           every_example_of_the_page_is_a_vector, every_kind_has_a_section_with_its_number_and_lane,
           every_error_stands_there_with_its_number_and_text, teardown)
