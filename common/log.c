#include "common/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A line under construction. What does not fit is left out, pair by pair, and `cut` says so. */
struct line {
    char *out;
    size_t size, room;
    bool cut;
};

static void put(struct line *l, const char *bytes, size_t size)
{
    if (l->size + size > l->room) {
        l->cut = true;
        return;
    }
    memcpy(l->out + l->size, bytes, size);
    l->size += size;
}

static void put_text(struct line *l, const char *text)
{
    put(l, text, strlen(text));
}

/* One character inside double quotes, escaped as JSON and logfmt both read it. */
static void put_escaped(struct line *l, char c)
{
    char escape[8];
    unsigned char byte = (unsigned char)c;
    if (c == '"' || c == '\\')
        snprintf(escape, sizeof escape, "\\%c", c);
    else if (c == '\n')
        snprintf(escape, sizeof escape, "\\n");
    else if (byte < 0x20 || byte >= 0x7f)
        snprintf(escape, sizeof escape, "\\u%04x", byte);
    else
        snprintf(escape, sizeof escape, "%c", c);
    put_text(l, escape);
}

/* One pair of the input. A quoted value's escapes are not resolved yet. */
struct pair {
    const char *key, *value;
    size_t key_size, value_size;
    bool quoted, bare; /* bare: no '=', a word of the message */
};

static size_t word_end(const char *at, size_t size)
{
    size_t n = 0;
    while (n < size && at[n] != ' ' && at[n] != '=') n++;
    return n;
}

/* Takes the next pair off *at; false: the end. */
static bool pair_next(const char **at, size_t *size, struct pair *p)
{
    while (*size > 0 && **at == ' ') (*at)++, (*size)--;
    if (*size == 0) return false;
    const char *begin = *at;
    size_t left = *size, n = word_end(begin, left);
    *p = (struct pair){.key = begin, .key_size = n, .bare = n == left || begin[n] == ' '};
    if (!p->bare) {
        n++;
        p->quoted = n < left && begin[n] == '"';
        size_t from = p->quoted ? n + 1 : n, end = from;
        while (end < left && (p->quoted ? begin[end] != '"' : begin[end] != ' '))
            end += p->quoted && begin[end] == '\\' && end + 1 < left ? 2 : 1;
        p->value = begin + from;
        p->value_size = end - from;
        n = end + (p->quoted && end < left ? 1 : 0);
    } else if (n == 0) {
        n = 1;
    }
    *at = begin + n;
    *size = left - n;
    return true;
}

static bool is_number(const struct pair *p)
{
    const char *v = p->value;
    size_t size = p->value_size, n = 0, digits = 0;
    if (p->quoted || size == 0 || size > 17) return false;
    if (v[0] == '-') n++;
    if (n + 1 < size && v[n] == '0' && v[n + 1] != '.') return false; /* JSON has no leading zeros */
    for (; n < size && v[n] >= '0' && v[n] <= '9'; n++) digits++;
    if (digits == 0) return false;
    if (n == size) return true;
    if (v[n++] != '.' || n == size) return false;
    while (n < size && v[n] >= '0' && v[n] <= '9') n++;
    return n == size;
}

static bool needs_quotes(const struct pair *p)
{
    if (p->value_size == 0) return true;
    for (size_t i = 0; i < p->value_size; i++) {
        unsigned char byte = (unsigned char)p->value[i];
        if (byte <= ' ' || byte >= 0x7f || byte == '"' || byte == '=' || byte == '\\') return true;
    }
    return false;
}

static void put_quoted(struct line *l, const struct pair *p)
{
    put(l, "\"", 1);
    for (size_t i = 0; i < p->value_size; i++) {
        /* An escaped quote or backslash of the input stands for itself. */
        if (p->quoted && p->value[i] == '\\' && i + 1 < p->value_size &&
            (p->value[i + 1] == '"' || p->value[i + 1] == '\\'))
            i++;
        put_escaped(l, p->value[i]);
    }
    put(l, "\"", 1);
}

static void put_key(struct line *l, enum log_style style, const char *key, size_t size)
{
    if (style == LOG_LOGFMT) {
        put(l, " ", 1);
        for (size_t i = 0; i < size; i++) {
            unsigned char byte = (unsigned char)key[i];
            put(l, byte > ' ' && byte < 0x7f && byte != '"' ? &key[i] : "_", 1);
        }
        put(l, "=", 1);
    } else {
        put(l, ",\"", 2);
        for (size_t i = 0; i < size; i++) put_escaped(l, key[i]);
        put(l, "\":", 2);
    }
}

static void put_pair(struct line *l, enum log_style style, const struct pair *p)
{
    size_t before = l->size;
    put_key(l, style, p->key, p->key_size);
    bool plain = style == LOG_JSON ? is_number(p) : !p->quoted && !needs_quotes(p);
    if (plain)
        put(l, p->value, p->value_size);
    else
        put_quoted(l, p);
    if (l->cut) l->size = before;
}

/* "2026-01-31T23:59:59.000042Z". The calendar by H. Hinnant, "chrono-Compatible Low-Level Date Algorithms": years that
 * begin in March, in eras of 400 years. No gmtime: formatting stays pure. */
static void stamp(uint64_t wall_us, char out[80])
{
    uint64_t seconds = wall_us / 1000000u, days = seconds / 86400u + 719468u, second = seconds % 86400u;
    uint64_t era = days / 146097u, day_of_era = days % 146097u;
    uint64_t year_of_era = (day_of_era - day_of_era / 1460u + day_of_era / 36524u - day_of_era / 146096u) / 365u;
    uint64_t day_of_year = day_of_era - (365u * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint64_t march_month = (5 * day_of_year + 2) / 153;
    unsigned day = (unsigned)(day_of_year - (153 * march_month + 2) / 5 + 1);
    unsigned month = (unsigned)(march_month < 10 ? march_month + 3 : march_month - 9);
    unsigned year = (unsigned)((year_of_era + era * 400 + (month <= 2 ? 1 : 0)) % 10000);
    snprintf(out, 80, "%04u-%02u-%02uT%02u:%02u:%02u.%06uZ", year, month, day, (unsigned)(second / 3600),
             (unsigned)(second / 60 % 60), (unsigned)(second % 60), (unsigned)(wall_us % 1000000u));
}

/* Time, level and program. */
static void put_head(struct line *l, enum log_style style, const struct log_entry *e)
{
    char head[192], when[80];
    stamp(e->wall_us, when);
    const char *format = style == LOG_JSON ? "{\"time\":\"%s\",\"level\":\"%s\",\"program\":\"%.40s\""
                                           : "time=%s level=%s program=%.40s";
    snprintf(head, sizeof head, format, when, LOG_LEVEL_CHOICES[e->level], e->program);
    put_text(l, head);
}

size_t log_format(enum log_style style, const struct log_entry *entry, char *out)
{
    /* Room is kept for the end: the cut mark, the brace, the newline. */
    struct line l = {.out = out, .room = LOG_LINE_ROOM - 20};
    put_head(&l, style, entry);
    const char *at = entry->line;
    size_t size = entry->size;
    struct pair p, message = {0};
    const char *rest = at;
    size_t rest_size = size;
    while (pair_next(&rest, &rest_size, &p) && p.bare) {
        if (message.value == NULL) message = (struct pair){.key = "msg", .key_size = 3, .value = p.key};
        message.value_size = (size_t)(p.key - message.value) + (p.key_size > 0 ? p.key_size : 1);
        at = rest;
        size = rest_size;
    }
    if (message.value != NULL) put_pair(&l, style, &message);
    while (!l.cut && pair_next(&at, &size, &p)) {
        if (p.bare) p.value = p.key, p.value_size = p.key_size, p.key = "word", p.key_size = 4;
        put_pair(&l, style, &p);
    }
    l.room = LOG_LINE_ROOM;
    if (l.cut) put_text(&l, style == LOG_JSON ? ",\"cut\":true" : " cut=true");
    put_text(&l, style == LOG_JSON ? "}\n" : "\n");
    return l.size;
}
