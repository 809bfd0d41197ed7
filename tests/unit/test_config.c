#include "common/config.h"

#include "suite.h"

#include <string.h>

struct values {
    const char *url, *name;
    uint64_t port;
    int64_t offset;
    double size;
    bool storeless;
    uint32_t mode;
};

static const char *const modes[] = {"radius", "block", NULL};

/* What the environment holds: "NAME=value" pairs. */
static const char *const *environment;

static const char *variable(const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0; environment != NULL && environment[i] != NULL; i++)
        if (strncmp(environment[i], name, size) == 0 && environment[i][size] == '=') return environment[i] + size + 1;
    return NULL;
}

static struct config_text text;

static enum config_outcome read_words(struct values *v, const char *operands, int *operand, const char *const *words)
{
    const struct config_field fields[] = {
        {.name = "url", .kind = CONFIG_TEXT, .value = &v->url, .preset = "tcp://x:1", .unit = "URL", .help = "A url."},
        {.name = "name", .kind = CONFIG_TEXT, .value = &v->name, .preset = "", .help = "A name."},
        {.name = "port-base", .kind = CONFIG_UINT, .value = &v->port, .preset = "0", .max = 65535, .help = "A port."},
        {.name = "offset", .kind = CONFIG_INT, .value = &v->offset, .preset = "-5", .help = "An offset."},
        {.name = "size",
         .kind = CONFIG_DOUBLE,
         .value = &v->size,
         .preset = "50",
         .min = 1,
         .max = 100,
         .help = "A size."},
        {.name = "storeless", .kind = CONFIG_BOOL, .value = &v->storeless, .preset = "0", .help = "No store."},
        {.name = "mode",
         .kind = CONFIG_CHOICE,
         .value = &v->mode,
         .preset = "radius",
         .choices = modes,
         .help = "A mode."},
    };
    struct config config = {.program = "prog",
                            .summary = "Does things.",
                            .version = "1.2.3",
                            .operands = operands,
                            .fields = fields,
                            .field_count = sizeof fields / sizeof *fields,
                            .variable = variable};
    int argc = 0;
    while (words[argc] != NULL) argc++;
    *v = (struct values){0};
    return config_read(&config, argc, (char *const *)(uintptr_t)words, operand, &text);
}

#define READ(v, ...) read_words((v), NULL, NULL, (const char *const[]){"prog", __VA_ARGS__, NULL})

static void assert_bad(const char *says)
{
    ck_assert_msg(strstr(text.text, says) != NULL, "\"%s\" does not say \"%s\"", text.text, says);
    ck_assert_int_eq(text.text[strlen(text.text) - 1], '\n');
}

START_TEST(what_is_not_given_has_its_default)
{
    struct values v;
    environment = NULL;
    ck_assert_int_eq(read_words(&v, NULL, NULL, (const char *const[]){"prog", NULL}), CONFIG_GO);
    ck_assert_str_eq(v.url, "tcp://x:1");
    ck_assert_str_eq(v.name, "");
    ck_assert_uint_eq(v.port, 0);
    ck_assert_int_eq(v.offset, -5);
    ck_assert(v.size == 50);
    ck_assert(!v.storeless);
    ck_assert_uint_eq(v.mode, VIEW_RADIUS);
}
END_TEST

START_TEST(flags_are_read_with_a_space_or_an_equals_sign)
{
    struct values v;
    environment = NULL;
    ck_assert_int_eq(READ(&v, "--url", "tcp://y:2", "--port-base=7", "--offset", "-12", "--size=1.5", "--storeless",
                          "--mode", "block", "--name="),
                     CONFIG_GO);
    ck_assert_str_eq(v.url, "tcp://y:2");
    ck_assert_uint_eq(v.port, 7);
    ck_assert_int_eq(v.offset, -12);
    ck_assert(v.size == 1.5);
    ck_assert(v.storeless);
    ck_assert_uint_eq(v.mode, VIEW_BLOCK);
    ck_assert_str_eq(v.name, "");
}
END_TEST

START_TEST(a_flag_wins_over_a_variable_and_that_over_the_default)
{
    struct values v;
    environment =
        (const char *const[]){"TERRANE_PORT_BASE=100", "TERRANE_SIZE=20", "TERRANE_STORELESS=yes", "PORT_BASE=1", NULL};
    ck_assert_int_eq(READ(&v, "--size", "30", "--no-storeless"), CONFIG_GO);
    ck_assert_uint_eq(v.port, 100);
    ck_assert(v.size == 30);
    ck_assert(!v.storeless);
    environment = NULL;
}
END_TEST

START_TEST(a_wrong_value_is_named_with_its_origin_and_range)
{
    struct values v;
    environment = NULL;
    const char *const whole[] = {"x", "-1", "1.5", "", " 1", "65536", "1x", "99999999999999999999999"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        ck_assert_msg(READ(&v, "--port-base", whole[i]) == CONFIG_BAD, "took \"%s\"", whole[i]);
        assert_bad("--port-base");
        assert_bad(whole[i]);
        assert_bad("from 0 to 65535");
    }
    const char *const real[] = {"nan", "inf", "0.5", "101", "", "ten"};
    for (size_t i = 0; i < sizeof real / sizeof *real; i++)
        ck_assert_msg(READ(&v, "--size", real[i]) == CONFIG_BAD, "took \"%s\"", real[i]);
    ck_assert_int_eq(READ(&v, "--offset", "--3"), CONFIG_BAD);
    ck_assert_int_eq(READ(&v, "--mode", "square"), CONFIG_BAD);
    assert_bad("radius block");
    ck_assert_int_eq(READ(&v, "--storeless=maybe"), CONFIG_BAD);
    environment = (const char *const[]){"TERRANE_SIZE=big", NULL};
    ck_assert_int_eq(READ(&v, "--port-base", "1"), CONFIG_BAD);
    assert_bad("TERRANE_SIZE: \"big\"");
    environment = NULL;
}
END_TEST

START_TEST(unknown_flags_missing_values_and_stray_words_are_refused)
{
    struct values v;
    environment = NULL;
    ck_assert_int_eq(READ(&v, "--porte-base", "1"), CONFIG_BAD);
    assert_bad("--porte-base");
    ck_assert_int_eq(READ(&v, "--no-url"), CONFIG_BAD);
    ck_assert_int_eq(READ(&v, "--no-storeless=1"), CONFIG_BAD);
    ck_assert_int_eq(READ(&v, "--url"), CONFIG_BAD);
    assert_bad("a value must follow");
    ck_assert_int_eq(READ(&v, "--storeless", "stray"), CONFIG_BAD);
    assert_bad("stray");
    ck_assert_int_eq(READ(&v, "-x"), CONFIG_BAD);
}
END_TEST

START_TEST(operands_begin_where_the_flags_end)
{
    struct values v;
    int operand = 0;
    environment = NULL;
    const char *const plain[] = {"prog", "--port-base", "1", "r/03", "--size", NULL};
    ck_assert_int_eq(read_words(&v, "TOPIC", &operand, plain), CONFIG_GO);
    ck_assert_int_eq(operand, 3);
    const char *const dashes[] = {"prog", "--storeless", "--", "--size", NULL};
    ck_assert_int_eq(read_words(&v, "TOPIC", &operand, dashes), CONFIG_GO);
    ck_assert_int_eq(operand, 3);
    const char *const none[] = {"prog", NULL};
    ck_assert_int_eq(read_words(&v, "TOPIC", &operand, none), CONFIG_GO);
    ck_assert_int_eq(operand, 1);
}
END_TEST

START_TEST(help_names_every_flag_variable_range_and_default)
{
    struct values v;
    ck_assert_int_eq(READ(&v, "--port-base", "nonsense", "--help"), CONFIG_SHOW);
    const char *const says[] = {"Usage: prog", "Does things.",     "--url URL",    "TERRANE_PORT_BASE",
                                "0..65535",    "--[no-]storeless", "radius|block", "default: radius",
                                "A size.",     "--version"};
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        ck_assert_msg(strstr(text.text, says[i]) != NULL, "no \"%s\" in:\n%s", says[i], text.text);
    ck_assert_int_eq(READ(&v, "--version"), CONFIG_SHOW);
    ck_assert_str_eq(text.text, "prog 1.2.3\n");
}
END_TEST

START_TEST(what_is_required_is_asked_for)
{
    const char *url = NULL;
    const struct config_field field = {
        .name = "url", .kind = CONFIG_TEXT, .value = &url, .unit = "URL", .help = "Where."};
    struct config config = {.program = "prog", .summary = "", .version = "", .fields = &field, .field_count = 1};
    char *const bare[] = {(char[]){"prog"}, NULL};
    ck_assert_int_eq(config_read(&config, 1, bare, NULL, &text), CONFIG_BAD);
    assert_bad("--url URL is required");
    char *const given[] = {(char[]){"prog"}, (char[]){"--url=u"}, NULL};
    ck_assert_int_eq(config_read(&config, 2, given, NULL, &text), CONFIG_GO);
    ck_assert_str_eq(url, "u");
}
END_TEST

SUITE_MAIN("config", what_is_not_given_has_its_default, flags_are_read_with_a_space_or_an_equals_sign,
           a_flag_wins_over_a_variable_and_that_over_the_default, a_wrong_value_is_named_with_its_origin_and_range,
           unknown_flags_missing_values_and_stray_words_are_refused, operands_begin_where_the_flags_end,
           help_names_every_flag_variable_range_and_default, what_is_required_is_asked_for)
