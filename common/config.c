#include "common/config.h"

#include "common/check.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Text under construction; what does not fit is cut. */
struct page {
    char *out;
    size_t size;
};

static void add(struct page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct page *p, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(p->out + p->size, CONFIG_ROOM - p->size, format, arguments);
    va_end(arguments);
    if (size > 0) p->size += (size_t)size;
    if (p->size >= CONFIG_ROOM) p->size = CONFIG_ROOM - 1;
}

void config_variable_name(const struct config_field *field, char *out)
{
    int size = snprintf(out, 64, "TERRANE_%s", field->name);
    CHECK(size > 8 && size < 64);
    for (char *c = out; *c != '\0'; c++) *c = (char)(*c == '-' ? '_' : toupper((unsigned char)*c));
}

static const char *unit_of(const struct config_field *f)
{
    if (f->unit != NULL) return f->unit;
    switch (f->kind) {
    case CONFIG_TEXT: return "TEXT";
    case CONFIG_UINT:
    case CONFIG_INT: return "N";
    case CONFIG_DOUBLE: return "NUMBER";
    case CONFIG_CHOICE: return "CHOICE";
    case CONFIG_BOOL: return "";
    }
    return "";
}

/* Help */

static void add_field(struct page *p, const struct config_field *f)
{
    char variable[64], flag[96];
    config_variable_name(f, variable);
    if (f->kind == CONFIG_BOOL)
        snprintf(flag, sizeof flag, "--[no-]%s", f->name);
    else
        snprintf(flag, sizeof flag, "--%s %s", f->name, unit_of(f));
    add(p, "  %-28s %s\n  %-28s [", flag, f->help, "");
    if (f->kind == CONFIG_CHOICE) {
        for (size_t i = 0; f->choices[i] != NULL; i++) add(p, "%s%s", i == 0 ? "" : "|", f->choices[i]);
        add(p, "; ");
    } else if (f->min < f->max) {
        add(p, "%.15g..%.15g; ", f->min, f->max);
    }
    if (f->preset == NULL)
        add(p, "required");
    else if (f->preset[0] == '\0')
        add(p, "default: none");
    else
        add(p, "default: %s", f->preset);
    add(p, "; %s]\n", variable);
}

static void help(const struct config *c, struct page *p)
{
    add(p, "Usage: %s [FLAGS]%s%s\n\n%s\n\nFlags (each also as an environment variable; a flag wins):\n", c->program,
        c->operands != NULL ? " " : "", c->operands != NULL ? c->operands : "", c->summary);
    for (size_t i = 0; i < c->field_count; i++) add_field(p, &c->fields[i]);
    add(p, "  %-28s Shows this text.\n  %-28s Shows the version.\n", "--help", "--version");
    add(p, "  %-28s Lists the flags with their kinds and choices, for completion.\n", "--flags");
}

/* For completion by a shell: a flag a line, its kind, its choices. */
static void list_flags(const struct config *c, struct page *p)
{
    for (size_t i = 0; i < c->field_count; i++) {
        const struct config_field *f = &c->fields[i];
        bool file = f->unit != NULL && (strcmp(f->unit, "FILE") == 0 || strcmp(f->unit, "DIR") == 0);
        const char *kind = f->kind == CONFIG_BOOL ? "bool" : f->kind == CONFIG_CHOICE ? "choice" : "value";
        add(p, "--%s %s", f->name, file ? "file" : kind);
        for (size_t k = 0; f->kind == CONFIG_CHOICE && f->choices[k] != NULL; k++) add(p, " %s", f->choices[k]);
        add(p, "\n");
    }
    add(p, "--help bool\n--version bool\n--flags bool\n");
}

/* Values */

/* Where a value came from, for messages: "--depth" or "TERRANE_DEPTH". */
struct source {
    const char *from, *text;
};

static void add_range(struct page *p, const struct config_field *f)
{
    if (f->min < f->max) add(p, " from %.15g to %.15g", f->min, f->max);
}

static bool number_bad(struct page *p, const struct config_field *f, const struct source *s, const char *what)
{
    add(p, "%s: \"%s\" is not %s", s->from, s->text, what);
    add_range(p, f);
    add(p, "; give one, or see --help\n");
    return false;
}

static bool in_range(const struct config_field *f, double v)
{
    return !(f->min < f->max) || (v >= f->min && v <= f->max);
}

static bool read_uint(struct page *p, const struct config_field *f, const struct source *s)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(s->text, &end, 10);
    if (!isdigit((unsigned char)s->text[0]) || *end != '\0' || errno != 0 || !in_range(f, (double)v))
        return number_bad(p, f, s, "a whole number");
    *(uint64_t *)f->value = v;
    return true;
}

static bool read_int(struct page *p, const struct config_field *f, const struct source *s)
{
    char *end;
    errno = 0;
    long long v = strtoll(s->text, &end, 10);
    bool begins = isdigit((unsigned char)s->text[s->text[0] == '-' ? 1 : 0]);
    if (!begins || *end != '\0' || errno != 0 || !in_range(f, (double)v)) return number_bad(p, f, s, "a whole number");
    *(int64_t *)f->value = v;
    return true;
}

static bool read_double(struct page *p, const struct config_field *f, const struct source *s)
{
    char *end;
    double v = strtod(s->text, &end);
    if (s->text[0] == '\0' || isspace((unsigned char)s->text[0]) || *end != '\0' || !isfinite(v) || !in_range(f, v))
        return number_bad(p, f, s, "a finite number");
    *(double *)f->value = v;
    return true;
}

static bool read_bool(struct page *p, const struct config_field *f, const struct source *s)
{
    static const char *const words[] = {"0", "1", "false", "true", "no", "yes", "off", "on"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(s->text, words[i]) != 0) continue;
        *(bool *)f->value = i % 2 == 1;
        return true;
    }
    add(p, "%s: \"%s\" is neither yes nor no; give 1 or 0\n", s->from, s->text);
    return false;
}

static bool read_choice(struct page *p, const struct config_field *f, const struct source *s)
{
    for (uint32_t i = 0; f->choices[i] != NULL; i++) {
        if (strcmp(s->text, f->choices[i]) != 0) continue;
        *(uint32_t *)f->value = i;
        return true;
    }
    add(p, "%s: \"%s\" is not known; choose one of:", s->from, s->text);
    for (uint32_t i = 0; f->choices[i] != NULL; i++) add(p, " %s", f->choices[i]);
    add(p, "\n");
    return false;
}

static bool read_value(struct page *p, const struct config_field *f, const struct source *s)
{
    switch (f->kind) {
    case CONFIG_TEXT: *(const char **)f->value = s->text; return true;
    case CONFIG_UINT: return read_uint(p, f, s);
    case CONFIG_INT: return read_int(p, f, s);
    case CONFIG_DOUBLE: return read_double(p, f, s);
    case CONFIG_BOOL: return read_bool(p, f, s);
    case CONFIG_CHOICE: return read_choice(p, f, s);
    }
    return false;
}

/* Flags */

static const struct config_field *field_named(const struct config *c, const char *name, size_t size)
{
    for (size_t i = 0; i < c->field_count; i++)
        if (strlen(c->fields[i].name) == size && strncmp(c->fields[i].name, name, size) == 0) return &c->fields[i];
    return NULL;
}

/* The flag's field, and whether it was said with --no-. */
static const struct config_field *flag_field(const struct config *c, const char *name, size_t size, bool *negated)
{
    *negated = false;
    const struct config_field *f = field_named(c, name, size);
    if (f != NULL || size <= 3 || strncmp(name, "no-", 3) != 0) return f;
    *negated = true;
    f = field_named(c, name + 3, size - 3);
    return f != NULL && f->kind == CONFIG_BOOL ? f : NULL;
}

/* Reads argv[*at] and perhaps its value behind it; moves *at past them. */
static bool read_flag(const struct config *c, int argc, char *const *argv, int *at, struct page *p)
{
    const char *word = argv[(*at)++], *name = word + 2, *equals = strchr(name, '=');
    size_t size = equals != NULL ? (size_t)(equals - name) : strlen(name);
    bool negated;
    const struct config_field *f = flag_field(c, name, size, &negated);
    if (f == NULL) {
        add(p, "%s: no such flag; see %s --help\n", word, c->program);
        return false;
    }
    char from[96];
    snprintf(from, sizeof from, "--%s", f->name);
    struct source s = {.from = from, .text = equals != NULL ? equals + 1 : NULL};
    if (negated && equals != NULL) {
        add(p, "%s: --no-%s takes no value\n", word, f->name);
        return false;
    }
    if (f->kind == CONFIG_BOOL && s.text == NULL) s.text = negated ? "0" : "1";
    if (s.text == NULL && *at == argc) {
        add(p, "%s: a value must follow: %s %s\n", word, from, unit_of(f));
        return false;
    }
    if (s.text == NULL) s.text = argv[(*at)++];
    return read_value(p, f, &s);
}

/* Presets and variables; fields that are still without a value are checked at the end. */
static bool read_variables(const struct config *c, struct page *p)
{
    for (size_t i = 0; i < c->field_count; i++) {
        const struct config_field *f = &c->fields[i];
        char variable[64];
        config_variable_name(f, variable);
        const char *text = c->variable != NULL ? c->variable(variable) : NULL;
        struct source s = {.from = text != NULL ? variable : f->name, .text = text != NULL ? text : f->preset};
        if (s.text == NULL || (s.text[0] == '\0' && f->kind != CONFIG_TEXT)) continue;
        if (!read_value(p, f, &s)) return false;
    }
    return true;
}

static bool given(const struct config *c, const struct config_field *f, int argc, char *const *argv)
{
    char variable[64];
    config_variable_name(f, variable);
    if (c->variable != NULL && c->variable(variable) != NULL) return true;
    size_t size = strlen(f->name);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--", 2) == 0 && strncmp(argv[i] + 2, f->name, size) == 0 &&
            (argv[i][2 + size] == '\0' || argv[i][2 + size] == '='))
            return true;
    return false;
}

static bool required_given(const struct config *c, int argc, char *const *argv, struct page *p)
{
    for (size_t i = 0; i < c->field_count; i++) {
        const struct config_field *f = &c->fields[i];
        if (f->preset != NULL || given(c, f, argc, argv)) continue;
        char variable[64];
        config_variable_name(f, variable);
        add(p, "--%s %s is required (or %s): %s\n", f->name, unit_of(f), variable, f->help);
        return false;
    }
    return true;
}

static bool is_word(int argc, char *const *argv, const char *word)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], word) == 0) return true;
    return false;
}

enum config_outcome config_read(const struct config *config, int argc, char *const *argv, int *operand,
                                struct config_text *out)
{
    CHECK(config->operands == NULL || operand != NULL);
    struct page p = {.out = out->text};
    out->text[0] = '\0';
    if (is_word(argc, argv, "--help")) {
        help(config, &p);
        return CONFIG_SHOW;
    }
    if (is_word(argc, argv, "--flags")) {
        list_flags(config, &p);
        return CONFIG_SHOW;
    }
    if (is_word(argc, argv, "--version")) {
        add(&p, "%s %s\n", config->program, config->version);
        return CONFIG_SHOW;
    }
    if (!read_variables(config, &p)) return CONFIG_BAD;
    int at = 1;
    while (at < argc && strncmp(argv[at], "--", 2) == 0) {
        if (argv[at][2] == '\0') {
            at++;
            break;
        }
        if (!read_flag(config, argc, argv, &at, &p)) return CONFIG_BAD;
    }
    if (config->operands == NULL && at < argc) {
        add(&p, "\"%s\" is no flag, and nothing else may follow; see %s --help\n", argv[at], config->program);
        return CONFIG_BAD;
    }
    if (operand != NULL) *operand = at;
    return required_given(config, argc, argv, &p) ? CONFIG_GO : CONFIG_BAD;
}
