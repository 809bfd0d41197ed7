#include "console/journal.h"

#include "common/check.h"
#include "proto/json.h"

#include <stdlib.h>
#include <string.h>

#define WORD_ROOM  64u
#define VALUE_ROOM 512u

void journal_close(struct journal *j)
{
    for (uint32_t i = 0; i < JOURNAL_LINES; i++) free(j->lines[i].text);
    *j = (struct journal){0};
}

void journal_note(struct journal *j, uint64_t at_ms, enum log_level level, const char *line, size_t size)
{
    if (size < 6 || memcmp(line, "event=", 6) != 0) return;
    struct journal_line *place = &j->lines[j->line_count++ % JOURNAL_LINES];
    free(place->text);
    char *text = malloc(size + 1);
    CHECK(text != NULL);
    memcpy(text, line, size);
    text[size] = '\0';
    *place = (struct journal_line){.at_ms = at_ms, .level = level, .text = text};
}

void journal_note_crossing(struct journal *j, uint64_t at_ms, struct node_id from, const struct survey_crossing *what)
{
    j->crossings[j->crossing_count++ % JOURNAL_CROSSINGS] =
        (struct journal_crossing){.at_ms = at_ms, .from = from, .what = *what};
}

/* One key and its value, unquoted; what has no room is cut. Returns where the next one begins, NULL at the end. */
static const char *pair_read(const char *at, char key[WORD_ROOM], char value[VALUE_ROOM])
{
    size_t used = 0;
    while (*at == ' ') at++;
    for (; *at != '\0' && *at != '=' && *at != ' '; at++)
        if (used + 1 < WORD_ROOM) key[used++] = *at;
    key[used] = '\0';
    used = 0;
    value[0] = '\0';
    if (*at != '=') return key[0] != '\0' ? at : NULL;
    bool quoted = *++at == '"';
    if (quoted) at++;
    for (; *at != '\0' && *at != (quoted ? '"' : ' '); at++) {
        if (quoted && *at == '\\' && at[1] != '\0') at++;
        if (used + 1 < VALUE_ROOM) value[used++] = *at;
    }
    value[used] = '\0';
    return quoted && *at == '"' ? at + 1 : at;
}

static void write_line(const struct journal_line *line, uint64_t seq, struct writer *json)
{
    static const char *const levels[] = {
        [LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARNING] = "warning", [LOG_ERROR] = "error"};
    char key[WORD_ROOM], value[VALUE_ROOM];
    json_open(json, '{');
    json_key(json, "seq"), json_uint(json, seq);
    json_key(json, "at"), json_uint(json, line->at_ms);
    json_key(json, "level"), json_text(json, levels[line->level]);
    const char *at = line->text;
    while ((at = pair_read(at, key, value)) != NULL) {
        json_key(json, key);
        json_text(json, value);
    }
    json_close(json, '}');
}

void journal_write(const struct journal *j, uint64_t after, uint64_t most, struct writer *json)
{
    uint64_t first = after <= j->line_count ? after : 0;
    uint64_t kept = j->line_count < JOURNAL_LINES ? j->line_count : JOURNAL_LINES;
    if (most > kept) most = kept;
    if (j->line_count - first > most) first = j->line_count - most;
    json_open(json, '[');
    for (uint64_t i = first; i < j->line_count; i++) write_line(&j->lines[i % JOURNAL_LINES], i + 1, json);
    json_close(json, ']');
}
