#include "tools/document.h"

#include "common/array.h"
#include "common/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64u

struct reader {
    struct document *json;
    char *at, *end; /* in the document's own copy, NUL at end; texts are unescaped in place */
    uint32_t depth;
    enum terrane_error error;
};

static bool fail(struct reader *r, enum terrane_error error)
{
    if (r->error == TERRANE_ERR_OK) r->error = error;
    return false;
}

static void skip_space(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) r->at++;
}

static bool take(struct reader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

static bool take_word(struct reader *r, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(r->end - r->at) < size || memcmp(r->at, word, size) != 0) return fail(r, TERRANE_ERR_CONFIG);
    r->at += size;
    return true;
}

static uint32_t add(struct reader *r, enum document_kind kind)
{
    struct document *j = r->json;
    ARRAY_RESERVE(j->values, j->room, (size_t)j->count + 1);
    j->values[j->count] = (struct document_value){.kind = kind, .next = DOCUMENT_NONE, .first = DOCUMENT_NONE};
    return j->count++;
}

/* Texts */

static bool read_hex(struct reader *r, uint32_t *out)
{
    if (r->end - r->at < 4) return fail(r, TERRANE_ERR_CONFIG);
    *out = 0;
    for (int i = 0; i < 4; i++) {
        char c = *r->at++;
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10
                                                : 16u;
        if (digit == 16) return fail(r, TERRANE_ERR_CONFIG);
        *out = *out * 16 + digit;
    }
    return true;
}

static char *put_utf8(char *out, uint32_t code)
{
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *out++ = (char)(0xe0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    } else {
        *out++ = (char)(0xf0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 0x3f));
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    }
    return out;
}

/* Behind "\u". The escape is at least as long as what it stands for, so writing in place never overtakes reading. */
static bool read_escaped_code(struct reader *r, char **out)
{
    uint32_t code = 0, low = 0;
    if (!read_hex(r, &code)) return false;
    if (code >= 0xd800 && code < 0xdc00) {
        if (r->end - r->at < 2 || r->at[0] != '\\' || r->at[1] != 'u') return fail(r, TERRANE_ERR_CONFIG);
        r->at += 2;
        if (!read_hex(r, &low) || low < 0xdc00 || low >= 0xe000) return fail(r, TERRANE_ERR_CONFIG);
        code = 0x10000 + (code - 0xd800) * 0x400 + (low - 0xdc00);
    }
    if (code == 0 || (code >= 0xdc00 && code < 0xe000)) return fail(r, TERRANE_ERR_CONFIG);
    *out = put_utf8(*out, code);
    return true;
}

static bool read_text(struct reader *r, const char **text)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (!take(r, '"')) return fail(r, TERRANE_ERR_CONFIG);
    char *out = r->at;
    *text = out;
    while (r->at < r->end && *r->at != '"') {
        char c = *r->at++;
        if ((unsigned char)c < 0x20) return fail(r, TERRANE_ERR_CONFIG);
        if (c != '\\') {
            *out++ = c;
            continue;
        }
        if (r->at == r->end) return fail(r, TERRANE_ERR_CONFIG);
        c = *r->at++;
        const char *known = c != '\0' ? strchr(from, c) : NULL;
        if (known != NULL)
            *out++ = to[known - from];
        else if (c != 'u')
            return fail(r, TERRANE_ERR_CONFIG);
        else if (!read_escaped_code(r, &out))
            return false;
    }
    if (r->at == r->end) return fail(r, TERRANE_ERR_CONFIG);
    r->at++;
    *out = '\0'; /* at most on the closing quote */
    return true;
}

/* Values */

static bool read_number(struct reader *r, uint32_t index)
{
    size_t size = strspn(r->at, "+-.0123456789eE");
    char *end;
    double number = strtod(r->at, &end);
    bool begins = *r->at == '-' || (*r->at >= '0' && *r->at <= '9');
    if (!begins || end != r->at + size || !isfinite(number)) return fail(r, TERRANE_ERR_CONFIG);
    r->json->values[index].number = number;
    r->at = end;
    return true;
}

static bool read_value(struct reader *r, uint32_t *index);

static bool read_list(struct reader *r, uint32_t list, bool object)
{
    char close = object ? '}' : ']';
    uint32_t last = DOCUMENT_NONE;
    if (++r->depth > DEPTH_MAX) return fail(r, TERRANE_ERR_LIMIT);
    if (!take(r, close)) {
        do {
            const char *key = NULL;
            uint32_t item = DOCUMENT_NONE;
            if (object && (!read_text(r, &key) || !take(r, ':'))) return fail(r, TERRANE_ERR_CONFIG);
            if (!read_value(r, &item)) return false;
            struct document_value *values = r->json->values;
            values[item].key = key;
            if (last == DOCUMENT_NONE)
                values[list].first = item;
            else
                values[last].next = item;
            values[list].count++;
            last = item;
        } while (take(r, ','));
        if (!take(r, close)) return fail(r, TERRANE_ERR_CONFIG);
    }
    r->depth--;
    return true;
}

static bool read_value(struct reader *r, uint32_t *index) /* NOLINT(misc-no-recursion): bounded by DEPTH_MAX */
{
    skip_space(r);
    if (r->at == r->end) return fail(r, TERRANE_ERR_CONFIG);
    switch (*r->at) {
    case '{': r->at++; return read_list(r, *index = add(r, DOCUMENT_OBJECT), true);
    case '[': r->at++; return read_list(r, *index = add(r, DOCUMENT_ARRAY), false);
    case '"': {
        const char *text = NULL;
        *index = add(r, DOCUMENT_TEXT);
        if (!read_text(r, &text)) return false;
        r->json->values[*index].text = text;
        return true;
    }
    case 't': *index = add(r, DOCUMENT_TRUE); return take_word(r, "true");
    case 'f': *index = add(r, DOCUMENT_FALSE); return take_word(r, "false");
    case 'n': *index = add(r, DOCUMENT_NULL); return take_word(r, "null");
    default: return read_number(r, *index = add(r, DOCUMENT_NUMBER));
    }
}

enum terrane_error document_parse(struct document *j, const char *text, size_t size)
{
    document_close(j);
    j->text = malloc(size + 1);
    CHECK(j->text != NULL);
    memcpy(j->text, text, size);
    j->text[size] = '\0';
    struct reader r = {.json = j, .at = j->text, .end = j->text + size};
    uint32_t root;
    if (read_value(&r, &root)) {
        skip_space(&r);
        if (r.at == r.end) return TERRANE_ERR_OK;
        fail(&r, TERRANE_ERR_CONFIG);
    }
    document_close(j);
    return r.error;
}

void document_close(struct document *j)
{
    free(j->values);
    free(j->text);
    *j = (struct document){0};
}

uint32_t document_first(const struct document *j, uint32_t value)
{
    return value < j->count ? j->values[value].first : DOCUMENT_NONE;
}

uint32_t document_next(const struct document *j, uint32_t value)
{
    return value < j->count ? j->values[value].next : DOCUMENT_NONE;
}

uint32_t document_member(const struct document *j, uint32_t value, const char *key)
{
    if (value >= j->count || j->values[value].kind != DOCUMENT_OBJECT) return DOCUMENT_NONE;
    for (uint32_t at = j->values[value].first; at != DOCUMENT_NONE; at = j->values[at].next)
        if (strcmp(j->values[at].key, key) == 0) return at;
    return DOCUMENT_NONE;
}

static const struct document_value *member_of(const struct document *j, uint32_t value, const char *key,
                                              enum document_kind kind)
{
    uint32_t at = document_member(j, value, key);
    return at != DOCUMENT_NONE && j->values[at].kind == kind ? &j->values[at] : NULL;
}

double document_number(const struct document *j, uint32_t value, const char *key, double otherwise)
{
    const struct document_value *v = member_of(j, value, key, DOCUMENT_NUMBER);
    return v != NULL ? v->number : otherwise;
}

uint64_t document_count(const struct document *j, uint32_t value, const char *key)
{
    double number = document_number(j, value, key, 0);
    if (!(number > 0)) return 0;
    return number < 0x1p53 ? (uint64_t)number : UINT64_C(1) << 53;
}

const char *document_text(const struct document *j, uint32_t value, const char *key)
{
    const struct document_value *v = member_of(j, value, key, DOCUMENT_TEXT);
    return v != NULL ? v->text : "";
}

bool document_bool(const struct document *j, uint32_t value, const char *key)
{
    return member_of(j, value, key, DOCUMENT_TRUE) != NULL;
}
